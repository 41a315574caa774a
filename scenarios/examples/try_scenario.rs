//! Runs scenario files against the built-in harness in this process, and prints what became of
//! each case. For writing scenarios:
//!
//! ```sh
//! cargo run -p dsh-scenarios --example try_scenario -- scenarios/suite/cancel/ignored.yaml
//! ```
//!
//! `--events` prints the transcript of every case, `--jobs N` runs so many at a time, `--repeat N`
//! runs everything so often, `--foreign` judges as if the harness were somebody else's,
//! `--process` gives each case a process of its own. With `fake-lsp` or `subject` as its first
//! argument this program is the fake server, or the built-in harness on stdio.

use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use dsh_reports::Verdict;
use dsh_scenarios::format::{Case, Severity};
use dsh_scenarios::run::{CaseResult, Observer, Setup, run};
use dsh_scenarios::subject::{InProcessSource, Launch, Pool, SubjectSource, serve};
use dsh_scenarios::suite::Suite;
use dsh_transcript::jsonl;
use tokio::io::BufReader;
use tokio::net::unix::pipe;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1).peekable();
    if args.next_if(|arg| arg == "fake-lsp").is_some() {
        let code = dsh_fake_lsp::run_from_args(args);
        return ExitCode::from(u8::try_from(code).unwrap_or(1));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("threads can be started");
    if args.next_if(|arg| arg == "subject").is_some() {
        let served = runtime.block_on(async {
            let input =
                pipe::Receiver::from_owned_fd(std::io::stdin().as_fd().try_clone_to_owned()?)?;
            let output =
                pipe::Sender::from_owned_fd(std::io::stdout().as_fd().try_clone_to_owned()?)?;
            serve(BufReader::new(input), output)
                .await
                .map_err(std::io::Error::other)
        });
        runtime.shutdown_background();
        return ExitCode::from(u8::from(served.is_err()));
    }
    let args: Vec<String> = args.map(|arg| arg.to_string_lossy().into_owned()).collect();
    let ok = runtime.block_on(tried(&args));
    ExitCode::from(u8::from(!ok))
}

struct Options {
    files: Vec<PathBuf>,
    events: bool,
    foreign: bool,
    process: bool,
    jobs: usize,
    repeat: usize,
}

impl Options {
    fn read(args: &[String]) -> Self {
        let mut options = Self {
            files: Vec::new(),
            events: false,
            foreign: false,
            process: false,
            jobs: 8,
            repeat: 1,
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut number = || {
                args.next()
                    .and_then(|text| text.parse().ok())
                    .expect("a number follows")
            };
            match arg.as_str() {
                "--events" => options.events = true,
                "--foreign" => options.foreign = true,
                "--process" => options.process = true,
                "--jobs" => options.jobs = number(),
                "--repeat" => options.repeat = number(),
                file => options.files.push(file.into()),
            }
        }
        options
    }
}

async fn tried(args: &[String]) -> bool {
    let options = Options::read(args);
    let mut out = std::io::stdout();
    let mut ok = true;
    let mut cases: Vec<Arc<Case>> = Vec::new();
    for file in &options.files {
        match Suite::read(file) {
            Ok(suite) => {
                for diagnostic in suite.diagnostics() {
                    ok &= diagnostic.severity != Severity::Error;
                    let _ = writeln!(out, "{diagnostic}");
                }
                cases.extend(suite.cases().iter().cloned().map(Arc::new));
            }
            Err(error) => {
                ok = false;
                let _ = writeln!(out, "error: {error}");
            }
        }
    }
    let executable = std::env::current_exe().expect("this program has a path");
    let mut setup = Setup::new(&executable, std::env::temp_dir());
    setup.foreign = options.foreign;
    setup.keep_transcripts = options.events;
    let setup = Arc::new(setup);
    let source: Arc<dyn SubjectSource> = if options.process {
        let launch = Launch::built_in(executable.to_string_lossy());
        match Pool::start(launch).await {
            Ok(pool) => Arc::new(pool),
            Err(error) => {
                let _ = writeln!(out, "error: {error}");
                return false;
            }
        }
    } else {
        Arc::new(InProcessSource::new())
    };
    for _ in 0..options.repeat {
        let mut printer = Printer {
            events: options.events,
            ok: true,
        };
        let (cases, setup) = (cases.clone(), Arc::clone(&setup));
        let source = Arc::clone(&source);
        let summary = run(cases, source, setup, None, options.jobs, &mut printer).await;
        ok &= printer.ok;
        let _ = writeln!(
            out,
            "{} cases, {} ms",
            summary.ended,
            summary.duration.as_millis()
        );
    }
    source.close().await;
    ok
}

struct Printer {
    events: bool,
    ok: bool,
}

impl Observer for Printer {
    fn ended(&mut self, result: CaseResult) {
        let mut out = std::io::stdout();
        let ms = result.duration.as_millis();
        let _ = writeln!(out, "{:<14} {} ({ms} ms)", result.verdict, result.id);
        if !matches!(result.verdict, Verdict::Pass | Verdict::NotApplicable) {
            self.ok &= !result.verdict.is_red();
            let clauses = result.clauses.join(", ");
            let _ = writeln!(out, "    {} [{clauses}]", result.message);
            if let (Some(expected), Some(got)) = (&result.expected, &result.got) {
                let _ = writeln!(out, "    expected: {expected}\n    got:      {got}");
            }
            if let Some(seq) = result.decisive {
                let _ = writeln!(out, "    event {seq}");
            }
        } else if !result.message.is_empty() {
            let _ = writeln!(out, "    {}", result.message);
        }
        if self.events {
            let _ = jsonl::write(&mut out, &result.transcript);
        } else {
            for event in &result.transcript {
                let text = serde_json::to_string(event).unwrap_or_default();
                let _ = writeln!(out, "    {}", text.chars().take(160).collect::<String>());
            }
        }
        for (name, text) in &result.snapshots {
            let _ = writeln!(out, "--- {name}\n{text}");
        }
    }
}
