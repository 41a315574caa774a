//! The scenario suite against the built-in harness: one test for each case, named by its file.
//!
//!   cargo test -p dsh-scenarios --test suite cancel/
//!
//! With `fake-lsp` as its first argument this program is the fake server of its own cases, and with
//! `subject` the built-in harness on stdio.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::fd::AsFd as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use dsh_reports::Verdict;
use dsh_scenarios::format::Case;
use dsh_scenarios::run::{CaseResult, Setup, run_case};
use dsh_scenarios::subject::{InProcessSource, SubjectSource, serve};
use dsh_scenarios::suite::{Suite, SuiteError, snapshot_text};
use dsh_transcript::jsonl;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use tokio::io::BufReader;
use tokio::net::unix::pipe;
use tokio::runtime::{Builder, Handle, Runtime};

/// Cases in flight for each processor: they wait most of the time.
const IN_FLIGHT: usize = 4;

/// What is printed of a transcript around the event a failure rests on.
const AROUND: usize = 6;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1).peekable();
    if args.next_if(|arg| arg == "fake-lsp").is_some() {
        let code = dsh_fake_lsp::run_from_args(args);
        return ExitCode::from(u8::try_from(code).unwrap_or(1));
    }
    let runtime = Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("threads can be started");
    if args.next_if(|arg| arg == "subject").is_some() {
        return subject(runtime);
    }
    let mut arguments = Arguments::from_args();
    if arguments.test_threads.is_none() {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        arguments.test_threads = Some(processors * IN_FLIGHT);
    }
    let suite = match suite(&arguments) {
        Ok(suite) => suite,
        Err(error) => panic!("{error}"),
    };
    let mut trials = trials(suite, runtime.handle());
    let handle = runtime.handle().clone();
    let redaction = move || handle.block_on(redaction::the_same_everywhere());
    trials.push(Trial::test(redaction::NAME, redaction));
    let code = libtest_mimic::run(&arguments, trials).exit_code();
    drop(runtime);
    code
}

/// The built-in harness on stdio.
fn subject(runtime: Runtime) -> ExitCode {
    let served = runtime.block_on(async {
        let input = pipe::Receiver::from_owned_fd(io::stdin().as_fd().try_clone_to_owned()?)?;
        let output = pipe::Sender::from_owned_fd(io::stdout().as_fd().try_clone_to_owned()?)?;
        serve(BufReader::new(input), output)
            .await
            .map_err(io::Error::other)
    });
    runtime.shutdown_background();
    ExitCode::from(u8::from(served.is_err()))
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("suite")
}

/// Texts that are compared with snapshots are the same wherever, whenever and by whom they are
/// rendered.
mod redaction {
    use std::path::Path;

    use dsh_scenarios::format::load;
    use dsh_scenarios::run::{Setup, run_case};
    use dsh_scenarios::subject::{InProcessSource, SubjectSource as _};
    use dsh_transcript::EventBody;
    use libtest_mimic::Failed;

    pub(super) const NAME: &str = "redaction/the-same-everywhere";

    /// What one rendering gives: the text of the snapshot, and the text as it was.
    struct Rendered {
        redacted: String,
        raw: String,
    }

    /// Under two roots, two homes, two dates and two process ids the bytes are equal.
    pub(super) async fn the_same_everywhere() -> Result<(), Failed> {
        let [here, there] = [tempfile::tempdir()?, tempfile::tempdir()?];
        let elsewhere = there.path().join("quite another folder");
        std::fs::create_dir(&elsewhere)?;
        let one = rendered(here.path(), "/home/ada", "2026-01-31T10:11:12.345Z").await?;
        let other = rendered(&elsewhere, "${root}/o", "1999-12-01 23:59").await?;
        // Nothing is proved by texts that had nothing to take out.
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let (raw_one, raw_other) = (lines(&one.raw), lines(&other.raw));
        for what in ["root", "workspace", "home", "date", "pid", "uri"] {
            let of = |raw: &[String]| raw.iter().find(|line| line.starts_with(what)).cloned();
            let (first, second) = (of(&raw_one), of(&raw_other));
            if first.is_none() || first == second {
                return Err(format!("{what} does not vary: {first:?}, {second:?}").into());
            }
        }
        if one.redacted != other.redacted {
            let both = format!("{}\n--- and ---\n{}", one.redacted, other.redacted);
            return Err(format!("the texts differ:\n{both}").into());
        }
        if !one.redacted.contains("pid ${pid}") || !one.redacted.contains("date ${date}") {
            return Err(format!("nothing was taken out:\n{}", one.redacted).into());
        }
        Ok(())
    }

    async fn rendered(temp: &Path, home: &str, date: &str) -> Result<Rendered, Failed> {
        let text = format!(
            r#"title: Everything that varies, in one hover
clauses: [TOOL-1]
profile: tool
environment: {{HOME: "{home}", TODAY: "{date}"}}
server:
  - on: textDocument/hover
    do:
      - reply:
          contents: "root ${{root}}/x

workspace ${{workspace}}/a.ts

home ${{env:HOME}}/.config

date ${{env:TODAY}}

pid ${{pid}}

uri ${{uri:a.ts}}"
steps:
  - tool: {{as: t, operation: hover, at: "a.ts:1:7", snapshot: true}}
  - expect: {{t: {{contains: [workspace]}}}}
"#
        );
        let loaded = load("redaction/varying", "varying.yaml", text.as_bytes());
        let said: Vec<String> = loaded.diagnostics.iter().map(ToString::to_string).collect();
        let Some(case) = loaded.cases.first() else {
            return Err(said.join("\n").into());
        };
        let mut setup = Setup::new(std::env::current_exe()?, temp);
        setup.keep_transcripts = true;
        let source = InProcessSource::new();
        let subject = source.take().await?;
        let ran = run_case(case, &*subject, &setup, None).await;
        source.give_back(subject, ran.sound).await;
        let result = ran.result;
        if result.verdict.is_red() {
            return Err(format!("{}: {}", result.verdict, result.message).into());
        }
        let raw = result
            .transcript
            .iter()
            .find_map(|event| match &event.body {
                EventBody::Result { call, value, .. } if call == "t" => value["text"].as_str(),
                _ => None,
            });
        let [(_, redacted)] = result.snapshots.as_slice() else {
            return Err(format!("{:?}", result.snapshots).into());
        };
        Ok(Rendered {
            redacted: redacted.clone(),
            raw: raw.unwrap_or_default().to_owned(),
        })
    }
}

/// The whole suite; of one case that is named exactly, its file only, since a runner of tests that
/// starts a process for each would read all files each time.
fn suite(arguments: &Arguments) -> Result<Suite, SuiteError> {
    if let Some(name) = arguments.filter.as_deref().filter(|_| arguments.exact) {
        let file = dsh_scenarios::suite::file_of(name);
        let path = folder().join(format!("{file}.yaml"));
        if path.is_file() {
            return Suite::read_file_of(&folder(), file);
        }
    }
    Suite::read(&folder())
}

fn trials(suite: Suite, runtime: &Handle) -> Vec<Trial> {
    let suite = Arc::new(suite);
    let executable = std::env::current_exe().expect("this program has a path");
    let setup = Arc::new(Setup::new(executable, std::env::temp_dir()));
    let source = Arc::new(InProcessSource::new());
    let mut trials = Vec::new();
    let mut broken: Vec<&str> = suite.errors().map(|error| error.file.as_str()).collect();
    broken.dedup();
    for file in broken {
        let said: Vec<String> = suite
            .diagnostics()
            .iter()
            .filter(|one| one.file == file)
            .map(ToString::to_string)
            .collect();
        let below = Path::new(file).strip_prefix(folder());
        let name = below.unwrap_or(Path::new(file)).with_extension("");
        let failed = move || Err(Failed::from(said.join("\n")));
        trials.push(Trial::test(name.to_string_lossy(), failed));
    }
    for case in suite.cases().iter().cloned() {
        let (setup, source) = (Arc::clone(&setup), Arc::clone(&source));
        let (runtime, suite) = (runtime.clone(), Arc::clone(&suite));
        trials.push(Trial::ignorable_test(case.id.clone(), move || {
            let result = runtime.block_on(async {
                let subject = source.take().await.map_err(|error| error.to_string())?;
                let ran = run_case(&case, &*subject, &setup, None).await;
                source.give_back(subject, ran.sound).await;
                Ok::<_, String>(ran.result)
            })?;
            judged(&case, &result, &suite)
        }));
    }
    trials
}

fn judged(case: &Case, result: &CaseResult, suite: &Suite) -> Result<Completion, Failed> {
    if result.verdict == Verdict::NotApplicable {
        return Ok(Completion::ignored_with(&result.message));
    }
    if result.verdict.is_red() {
        return Err(explained(case, result).into());
    }
    let Some(text) = snapshot_text(&result.snapshots) else {
        suite.hold_snapshot(&case.id, &[])?;
        return Ok(Completion::Completed);
    };
    held(&case.id, &text)?;
    Ok(Completion::Completed)
}

/// Holds a text against its snapshot beside the scenario.
fn held(id: &str, text: &str) -> Result<(), Failed> {
    let (below, name) = id.rsplit_once('/').unwrap_or(("", id));
    let mut settings = insta::Settings::new();
    settings.set_snapshot_path(folder().join(below));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    // A panic would be caught further up too, but the lock it poisons is the library's.
    let asserted = catch_unwind(AssertUnwindSafe(|| {
        settings.bind(|| insta::assert_snapshot!(name, text));
    }));
    asserted.map_err(|_| format!("the texts are not those of {id}.snap: cargo insta review").into())
}

/// Everything about a failure: what was demanded, what came, where the transcript is.
fn explained(case: &Case, result: &CaseResult) -> String {
    let mut text = format!(
        "{}: {} [{}]\n  {}:{}: {}\n",
        result.verdict,
        result.message,
        result.clauses.join(", "),
        case.file,
        case.line,
        case.scenario.title,
    );
    if let (Some(expected), Some(got)) = (&result.expected, &result.got) {
        let _ = writeln!(text, "  expected: {expected}\n  got:      {got}");
    }
    if let Some(seq) = result.decisive {
        let at = result.transcript.iter().position(|event| event.seq == seq);
        let first = at.unwrap_or(0).saturating_sub(AROUND);
        for event in result.transcript.iter().skip(first).take(2 * AROUND + 1) {
            let sign = if event.seq == seq { ">" } else { " " };
            let line = serde_json::to_string(event).unwrap_or_default();
            let line: String = line.chars().take(300).collect();
            let _ = writeln!(text, "  {sign} {line}");
        }
    }
    match kept(&case.id, result) {
        Ok(path) => {
            let _ = writeln!(text, "  transcript: {}", path.display());
        }
        Err(error) => {
            let _ = writeln!(text, "  the transcript cannot be written: {error}");
        }
    }
    let _ = write!(
        text,
        "  again: cargo test -p dsh-scenarios --test suite -- --exact '{}'",
        case.id
    );
    text
}

fn kept(id: &str, result: &CaseResult) -> io::Result<PathBuf> {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("suite/{id}.jsonl"));
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut file = fs::File::create(&path)?;
    jsonl::write(&mut file, &result.transcript).map_err(io::Error::other)?;
    Ok(path)
}
