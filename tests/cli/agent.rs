//! `agent`: runs with a script in a model's place, on the sample of the examples.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::{Desk, Said, is_alive, program};

/// The sample, as the README runs it.
fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/agent")
}

const QUESTION: &str = "Where is area defined?";

/// Runs the sample with further options.
fn run_sample(desk: &Desk, further: &[&str]) -> Said {
    let workspace = sample().join("workspace").display().to_string();
    let model = format!("scripted:{}", sample().join("script.yaml").display());
    let mut args = vec!["agent", "--profile", "headless", "--model", &model];
    args.extend(["--server", "built-in", "--cwd", &workspace]);
    args.extend(further);
    args.push(QUESTION);
    desk.run(&args)
}

/// A script in a file of the desk.
fn script(desk: &Desk, replies: &Value) -> String {
    let file = desk.path().join("script.json");
    std::fs::write(&file, json!({"replies": replies}).to_string()).unwrap();
    format!("scripted:{}", file.display())
}

fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// RUN-8, RUN-12, INS-1: instructions, `read` and `lsp` on a sample; stdout is the answer alone.
#[test]
fn the_sample_reads_asks_the_server_and_answers() {
    let desk = Desk::new();
    let said = run_sample(&desk, &[]).ended(0);
    assert_eq!(said.out, "`area` is defined at shapes.fake:5:5.\n");
    let said = said
        .err_has("read: ")
        .err_has("lsp: goToDefinition main.fake:3:9");
    assert!(said.err.lines().all(|line| line.chars().count() <= 80));
    let said = run_sample(&desk, &["--quiet"]).ended(0);
    assert_eq!(said.err, "");
    assert_eq!(desk.files(), Vec::<String>::new());
}

/// RUN-11: the events on stdout are those of the file, which another run goes on with.
#[test]
fn events_are_lines_and_the_session_is_kept_and_gone_on_with() {
    let desk = Desk::new();
    let said = run_sample(&desk, &["--json", "--session", "run.jsonl"]).ended(0);
    let told = lines(&said.out);
    let (first, last) = (&told[0], told.last().unwrap());
    assert_eq!(
        (&first["type"], &first["profile"]),
        (&json!("session"), &json!("headless"))
    );
    assert!(first["tools"].as_array().unwrap().contains(&json!("lsp")));
    assert_eq!(last["type"], "end");
    assert_eq!(last["outcome"], json!({"status": "completed"}));
    assert_eq!(last["answer"], "`area` is defined at shapes.fake:5:5.");
    let kept = lines(&std::fs::read_to_string(desk.path().join("run.jsonl")).unwrap());
    assert_eq!(kept[0]["format"], "dsh-session/1");
    assert_eq!(kept[1..], told[1..told.len() - 1]);

    let again = run_sample(&desk, &["--session", "run.jsonl"]).ended(3);
    again.err_has("is there already");
    let replies = json!([{"expect": {"contains": ["And now?"]}, "text": "still there"}]);
    let model = script(&desk, &replies);
    let said = desk
        .run(&[
            "agent",
            "--model",
            &model,
            "--resume",
            "run.jsonl",
            "And now?",
        ])
        .ended(0);
    assert_eq!(said.out, "still there\n");
    let resumed = lines(&std::fs::read_to_string(desk.path().join("run.jsonl")).unwrap());
    assert_eq!(resumed[..kept.len()], kept[..]);
    assert!(resumed.len() > kept.len());
}

/// What passes between the harness and its servers is a recording that `audit` judges.
#[test]
fn the_wire_is_recorded_for_audit() {
    let desk = Desk::new();
    run_sample(&desk, &["--wire", "wire.jsonl"]).ended(0);
    desk.run(&["audit", "wire.jsonl"]).ended(0);
}

#[test]
fn a_script_that_is_not_followed_is_told_with_its_place() {
    let desk = Desk::new();
    let folder = desk.path().display().to_string();
    let run = |replies: Value, status: i32, words: &str| {
        let model = script(&desk, &replies);
        let said = desk
            .run(&["agent", "--model", &model, "--cwd", &folder, "hello"])
            .ended(status)
            .err_has(words);
        assert_eq!(said.out, "");
    };
    run(json!([]), 1, "SCRIPT_EXHAUSTED");
    run(
        json!([{"expect": {"contains": ["goodbye"]}, "text": "x"}]),
        1,
        "SCRIPT_MISMATCH",
    );
    run(json!([{"text": "one"}, {"text": "two"}]), 1, "2 replies");
    let error = json!({"code": "MODEL_DOWN", "message": "the model is down"});
    run(
        json!([{"error": error}]),
        3,
        "MODEL_DOWN: the model is down",
    );
    run(json!([{"txt": "x"}]), 2, "txt");
}

#[test]
fn what_does_not_go_together_is_refused_before_anything_starts() {
    let desk = Desk::new();
    let model = script(&desk, &json!([{"text": "x"}]));
    for (args, words) in [
        (&["--model", &model][..], "headless runs one prompt"),
        (&["--model", &model, " "], "the prompt is empty"),
        (&["--model", "gpt", "hi"], "scripted:FILE"),
        (&["--model", "scripted:missing", "hi"], "missing"),
        (
            &["--model", &model, "--profile", "sdk", "hi"],
            "a prompt is for the profile headless",
        ),
        (
            &["--model", &model, "--profile", "acp", "--json"],
            "--json is for",
        ),
        (
            &["--model", &model, "--profile", "headles", "hi"],
            "headless",
        ),
        (&["--model", &model, "--sessions", ".", "hi"], "--session"),
        (
            &["--model", &model, "--server", "built-im", "hi"],
            "built-im",
        ),
        (
            &["--model", &model, "--deployment", "missing.yml", "hi"],
            "missing.yml",
        ),
        (
            &["--model", "openai:m", "--key-from", "MISSING_KEY", "hi"],
            "MISSING_KEY",
        ),
    ] {
        let said = desk
            .run(&[&["agent"], args].concat())
            .ended(2)
            .err_has(words);
        assert_eq!(said.out, "");
    }
    desk.run(&[
        "agent",
        "--model",
        &model,
        "--resume",
        "missing.jsonl",
        "hi",
    ])
    .ended(3)
    .err_has("missing.jsonl");
}

/// A model's server that takes one request, and repeats the key it was given in what it says.
fn unfriendly() -> (String, std::thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = format!("openai:m@http://{}", listener.local_addr().unwrap());
    let server = std::thread::Builder::new().spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = String::new();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        while !head.ends_with("\r\n\r\n") {
            reader.read_line(&mut head).unwrap();
        }
        let body = r#"{"error": {"message": "sesame-open is no key of ours"}}"#;
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\nconnection: close\r\n\r\n{body}"
        );
        stream.write_all(answer.as_bytes()).unwrap();
        head
    });
    (place, server.unwrap())
}

/// ENV-1: the key goes to the model's server, and to neither stdout, stderr nor the session's file.
#[test]
fn a_key_is_never_shown() {
    let desk = Desk::new();
    let (model, server) = unfriendly();
    let output = desk
        .command(&[
            "agent",
            "--model",
            &model,
            "--session",
            "run.jsonl",
            "--json",
            "--verbose",
            "hi",
        ])
        .env("DSH_API_KEY", "sesame-open")
        .output()
        .unwrap();
    assert!(server.join().unwrap().contains("Bearer sesame-open"));
    assert_eq!(output.status.code(), Some(3));
    let kept = std::fs::read(desk.path().join("run.jsonl")).unwrap();
    for text in [output.stdout, output.stderr, kept] {
        let text = String::from_utf8(text).unwrap();
        assert!(!text.contains("sesame-open"), "{text}");
    }
}

struct Running {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
    desk: Desk,
}

impl Running {
    /// Starts a run whose model calls the language server and then says nothing.
    fn start(further: &[&str]) -> Self {
        let desk = Desk::new();
        let call = json!({
            "operation": "goToDefinition", "file_path": "main.fake", "line": 3, "character": 9,
        });
        let replies = json!([
            {"tool_calls": [{"name": "lsp", "arguments": call}]},
            {"text": "well", "hang": true},
        ]);
        let model = script(&desk, &replies);
        let workspace = sample().join("workspace");
        let mut child = Command::new(program())
            .current_dir(desk.path())
            .args(["agent", "--model", &model, "--server", "built-in", "--json"])
            .args(["--session", "run.jsonl", "--wire", "wire.jsonl", "--cwd"])
            .arg(workspace)
            .args(further)
            .arg("go")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out, desk }
    }

    /// Reads until the second request has been made, when the server runs and the model is silent.
    fn until_silent(&mut self) {
        let mut requests = 0;
        while requests < 2 {
            let mut line = String::new();
            assert_ne!(self.out.read_line(&mut line).unwrap(), 0, "it has ended");
            let event: Value = serde_json::from_str(&line).unwrap();
            requests += u32::from(event["type"] == "step/request");
        }
    }

    /// Ends it, and looks at what is left.
    fn end(mut self, status: i32) {
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        let mut err = String::new();
        let stderr = self.child.stderr.as_mut().unwrap();
        stderr.read_to_string(&mut err).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(status), "{err}");
        let kept = lines(&std::fs::read_to_string(self.desk.path().join("run.jsonl")).unwrap());
        let last = kept.last().unwrap();
        assert_eq!(last["type"], "turn/end", "the log is closed");
        assert_eq!(last["outcome"]["status"], "cancelled");
        let wire = lines(&std::fs::read_to_string(self.desk.path().join("wire.jsonl")).unwrap());
        let pid = wire
            .iter()
            .find_map(|event| event["event"]["processStarted"]["pid"].as_u64())
            .unwrap();
        assert!(!is_alive(u32::try_from(pid).unwrap()), "the server is gone");
    }
}

/// RUN-14: the turn is closed in the log, the server is gone.
#[test]
fn an_interruption_closes_the_log_and_ends_the_servers() {
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let mut running = Running::start(&[]);
        running.until_silent();
        let pid = Pid::from_raw(i32::try_from(running.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
        running.end(status);
    }
}

/// INS-10, INS-13: instructions that are not used are told of, once each, also to those who want no
/// progress; the way out is in the line.
#[test]
fn instructions_that_are_passed_over_are_told() {
    let desk = Desk::new();
    std::fs::create_dir(desk.path().join(".git")).unwrap();
    std::fs::write(desk.path().join("AGENTS.md"), "x".repeat((1 << 20) + 1)).unwrap();
    std::fs::write(desk.path().join("AGENTS.local.md"), b"caf\xe9").unwrap();
    std::fs::create_dir(desk.path().join("CLAUDE.md")).unwrap();
    let fifo = desk.path().join("CLAUDE.local.md");
    let mode = rustix::fs::Mode::RUSR;
    rustix::fs::mknodat(rustix::fs::CWD, fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let call = json!({"name": "read", "arguments": {"file_path": "AGENTS.local.md"}});
    let model = script(&desk, &json!([{"tool_calls": [call]}, {"text": "done"}]));
    let args = ["agent", "--quiet", "--model", &model, "go"];
    let said = desk.run(&args).ended(0);
    for (name, why) in [
        (
            "AGENTS.md",
            "more than 1048576 bytes; shorten the file, or raise maxSourceBytes",
        ),
        ("AGENTS.local.md", "not UTF-8 text; save the file as UTF-8"),
        ("CLAUDE.md", "a directory and no regular file"),
        ("CLAUDE.local.md", "a FIFO and no regular file"),
    ] {
        let told = format!("{name}\" are passed over: {why}");
        let unbroken = said.err.replace("\n  ", " ");
        assert_eq!(unbroken.matches(&told).count(), 1, "{name}: {}", said.err);
    }
    assert_eq!(said.messages(), 4, "{}", said.err);
}

/// A reader that goes away in the middle ends the run. The answer is lost then, which the status says.
#[test]
fn a_reader_that_goes_away_ends_the_run() {
    let desk = Desk::new();
    let replies = json!([{"text": "x"}]);
    let model = script(&desk, &replies);
    let mut child = Command::new(program())
        .current_dir(desk.path())
        .args([
            "agent",
            "--model",
            &model,
            "--json",
            "--session",
            "run.jsonl",
            "go",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut err = String::new();
    let stderr = child.stderr.as_mut().unwrap();
    stderr.read_to_string(&mut err).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(3), "{err}");
    assert!(err.contains("the reader of stdout is gone"), "{err}");
    let kept = std::fs::read_to_string(desk.path().join("run.jsonl")).unwrap();
    if let Some(last) = lines(&kept).last() {
        assert!(
            last["type"] == "turn/end" || last["format"] == "dsh-session/1",
            "{last}"
        );
    }
}

/// The end of stdin ends a served run, whatever runs.
#[test]
fn the_end_of_stdin_ends_a_served_run() {
    let desk = Desk::new();
    let model = script(&desk, &json!([{"text": "done"}]));
    for profile in ["sdk", "sdk-minimal", "acp"] {
        let mut child = Command::new(program())
            .current_dir(desk.path())
            .args(["agent", "--profile", profile, "--model", &model])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        if profile != "acp" {
            let open = json!({"jsonrpc": "2.0", "id": 1, "method": "open", "params": {}});
            stdin.write_all(format!("{open}\n").as_bytes()).unwrap();
        }
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            (output.status.code(), err.as_str()),
            (Some(0), ""),
            "{profile}"
        );
        if profile != "acp" {
            let told = lines(&String::from_utf8(output.stdout).unwrap());
            assert_eq!(told[0]["id"], 1, "{profile}");
        }
    }
}

/// The same page comes of a run itself and of what it kept; it shows the frames of the `lsp` call.
#[test]
fn a_run_is_shown_as_a_page() {
    let desk = Desk::new();
    let kept = ["--session", "run.jsonl", "--wire", "wire.jsonl"];
    let mut further = vec!["--trajectory", "run.html"];
    further.extend(kept);
    run_sample(&desk, &further).ended(0);
    let read = |name: &str| std::fs::read_to_string(desk.path().join(name)).unwrap();
    let page = read("run.html");
    let call = page.find("goToDefinition main.fake 3 9").unwrap();
    let frames = page.find("On the wire: ").unwrap();
    assert!(call < frames);
    let mut from = frames;
    for entry in [
        "initialize (request 1)",
        "answer to initialize",
        "textDocument/didOpen",
        "textDocument/definition (request 2)",
        "answer to textDocument/definition",
        "textDocument/didClose",
        "While no call ran",
        "shutdown (request 3)",
    ] {
        from += page[from..]
            .find(entry)
            .unwrap_or_else(|| panic!("{entry}"));
    }
    let stored = ["report", "trajectory", "run.jsonl", "--wire", "wire.jsonl"];
    assert_eq!(desk.run(&stored).ended(0).out, page);
    let mut to_file = stored.to_vec();
    to_file.extend(["--out", "again.html"]);
    assert_eq!(desk.run(&to_file).ended(0).out, "");
    assert_eq!(read("again.html"), page);
    desk.run(&["audit", "wire.jsonl"]).ended(0);
}

/// An answer that does not arrive is no success, be it that nobody reads it or that it cannot be
/// written.
#[test]
fn an_answer_that_does_not_arrive_is_told() {
    let desk = Desk::new();
    let model = script(&desk, &json!([{"text": "x"}]));
    for json in [false, true] {
        for full in [false, true] {
            let stdout = if full {
                if !cfg!(target_os = "linux") {
                    continue;
                }
                Stdio::from(
                    std::fs::File::options()
                        .write(true)
                        .open("/dev/full")
                        .unwrap(),
                )
            } else {
                let (reader, writer) = std::io::pipe().unwrap();
                drop(reader);
                Stdio::from(writer)
            };
            let output = Command::new(program())
                .current_dir(desk.path())
                .args(["agent", "--model", &model, "go"])
                .args(json.then_some("--json"))
                .stdout(stdout)
                .output()
                .unwrap();
            let told = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(3), "{json} {full}: {told}");
            let words = if full {
                "error: cannot write to stdout"
            } else {
                "the reader of stdout is gone"
            };
            assert_eq!(told.matches(words).count(), 1, "{json} {full}: {told}");
        }
    }
}

/// What is written at the end makes its folder; what a session is kept in does not.
#[test]
fn folders_are_made_for_what_is_written_at_the_end() {
    let desk = Desk::new();
    let model = script(&desk, &json!([{"text": "x"}]));
    let files = ["--trajectory", "a/b/run.html", "--wire", "c/d/wire.jsonl"];
    let mut args = vec!["agent", "--model", &model];
    args.extend(files);
    args.push("go");
    desk.run(&args).ended(0);
    let files = desk.files();
    assert!(files.contains(&"a/b/run.html".to_owned()), "{files:?}");
    assert!(files.contains(&"c/d/wire.jsonl".to_owned()), "{files:?}");
    let long = "x".repeat(300);
    for (session, words) in [
        ("none/run.jsonl", "the folder must exist"),
        (long.as_str(), "Choose a shorter name"),
        ("script.json/run.jsonl", "A part of the path is no folder"),
    ] {
        let said = desk.run(&["agent", "--model", &model, "--session", session, "go"]);
        let said = said.ended(3).err_has(words);
        assert!(!said.err.contains("the next step"), "{}", said.err);
    }
}

#[test]
fn a_run_that_fails_is_shown_as_a_page_too() {
    let desk = Desk::new();
    let model = script(
        &desk,
        &json!([{"error": {"code": "MODEL_GONE", "message": "it is gone"}}]),
    );
    let page = "run.html";
    desk.run(&["agent", "--model", &model, "--trajectory", page, "Anybody?"])
        .ended(3);
    let page = std::fs::read_to_string(desk.path().join(page)).unwrap();
    assert!(page.contains("failed: MODEL_GONE: it is gone"), "{page}");
}

#[test]
fn what_gives_no_page_is_refused() {
    let desk = Desk::new();
    std::fs::write(desk.path().join("not.jsonl"), "hello\n").unwrap();
    desk.run(&["report", "trajectory", "not.jsonl"])
        .ended(2)
        .err_has("not.jsonl: line 1 is no header of a session");
    desk.run(&["report", "trajectory", "missing.jsonl"])
        .ended(2)
        .err_has("missing.jsonl");
    let model = script(&desk, &json!([{"text": "Yes."}]));
    desk.run(&[
        "agent",
        "--profile",
        "sdk",
        "--model",
        &model,
        "--trajectory",
        "x.html",
    ])
    .ended(2)
    .err_has("--trajectory is for the profile headless");
    std::fs::write(desk.path().join("file"), "").unwrap();
    desk.run(&[
        "agent",
        "--model",
        &model,
        "--trajectory",
        "file/x.html",
        "Anybody?",
    ])
    .ended(3)
    .err_has("cannot write file/x.html");
}
