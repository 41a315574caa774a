//! What a session costs: loading it, keeping it in memory, checking it, adding to it (RUN-11).
//!
//! The floor of loading is reading the same file into memory; that of a durable step is one write
//! and one sync of the same bytes. Memory is measured in a process of its own for each size, since
//! what one session has freed would serve the next.
//!
//! ```text
//! cargo bench --bench session              # everything
//! cargo bench --bench session -- load      # only the parts whose name holds "load"
//! ```

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints its figures"
)]

mod support;

use std::fs;
use std::hint::black_box;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use dsh_session::{
    AssistantMessage, ContentBlock, Ending, EventBody, LoggedResult, MessageSource, Session,
    SessionHeader, SessionStore, ToolCall, ToolSchema,
};
use serde_json::json;

/// Events of a turn of [`turn`].
const TURN: u64 = 14;
const WANTED: u64 = 100_000;
const ROUNDS: usize = 7;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, path] = arguments.as_slice()
        && flag == "--resident"
    {
        return resident_child(Path::new(path));
    }
    // `cargo test --benches` runs this with `--test`: nothing is measured then.
    if arguments.iter().any(|argument| argument == "--test") {
        return;
    }
    let filters: Vec<&String> = arguments
        .iter()
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let wanted =
        |name: &str| filters.is_empty() || filters.iter().any(|f| name.contains(f.as_str()));
    support::pin_to_one_core();
    let runtime = runtime();
    let folder = tempfile::tempdir().expect("a temporary folder");
    if wanted("load") {
        load(&runtime, folder.path());
    }
    if wanted("memory") {
        memory(&runtime, folder.path());
    }
    if wanted("verify") {
        verify(&runtime, folder.path());
    }
    if wanted("step") {
        step(&runtime, folder.path());
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime")
}

fn load(runtime: &tokio::runtime::Runtime, folder: &Path) {
    let path = folder.join("load.jsonl");
    write_session(runtime, &path, WANTED);
    let bytes = size(&path);
    let read = best(|| {
        black_box(fs::read(&path).expect("the file is read"));
    });
    let loaded = best(|| {
        let session = open(runtime, &path);
        assert_eq!(session.read(dsh_session::Log::last_seq), WANTED);
    });
    println!(
        "load {WANTED} events, {} MB: {:.0} ms (reading the file: {:.0} ms)  wanted < 1000 ms",
        bytes / 1_000_000,
        loaded.as_secs_f64() * 1e3,
        read.as_secs_f64() * 1e3,
    );
}

fn memory(runtime: &tokio::runtime::Runtime, folder: &Path) {
    let mut first = None;
    for events in [WANTED / 4, WANTED / 2, WANTED, WANTED * 2] {
        let path = folder.join(format!("memory-{events}.jsonl"));
        write_session(runtime, &path, events);
        let output = Command::new(std::env::current_exe().expect("this program"))
            .arg("--resident")
            .arg(&path)
            .output()
            .expect("this program runs");
        let text = String::from_utf8_lossy(&output.stdout);
        let grown: u64 = text.trim().parse().expect("the child prints a number");
        let each = lossy(grown) / lossy(events);
        let first = *first.get_or_insert(each);
        println!(
            "memory of {events} events, {} MB: {} MB, {each:.0} bytes each, {:.2}x the first  \
             wanted about 1",
            size(&path) / 1_000_000,
            grown / 1_000_000,
            each / first,
        );
    }
}

/// Opens the session and tells by how much the process has grown.
fn resident_child(path: &Path) {
    let runtime = runtime();
    let before = resident();
    let session = open(&runtime, path);
    println!("{}", resident().saturating_sub(before));
    drop(session);
}

fn verify(runtime: &tokio::runtime::Runtime, folder: &Path) {
    let path = folder.join("verify.jsonl");
    write_session(runtime, &path, WANTED);
    let session = open(runtime, &path);
    let mut requests = 0;
    let checked = best(|| {
        requests = session
            .read(dsh_session::Log::verify)
            .expect("every request can be rebuilt");
    });
    println!(
        "verify {requests} requests of {WANTED} events: {:.0} ms",
        checked.as_secs_f64() * 1e3
    );
}

fn step(runtime: &tokio::runtime::Runtime, folder: &Path) {
    for (name, turns) in [("empty", 0), ("long", 1_000)] {
        let path = folder.join(format!("step-{name}.jsonl"));
        write_session(runtime, &path, turns * TURN);
        let session = open(runtime, &path);
        let rounds = 200;
        let mut in_memory = Duration::ZERO;
        let mut on_disk = Duration::ZERO;
        let before = size(&path);
        for _ in 0..rounds {
            let start = Instant::now();
            turn(&session);
            in_memory += start.elapsed();
            let start = Instant::now();
            runtime.block_on(session.sync()).expect("it is written");
            on_disk += start.elapsed();
        }
        let line = vec![b'x'; usize::try_from((size(&path) - before) / rounds).expect("small")];
        let mut file = fs::File::create(folder.join("floor")).expect("a file");
        let start = Instant::now();
        for _ in 0..rounds {
            file.write_all(&line).expect("it is written");
            file.sync_data().expect("it is on the disk");
        }
        let floor = start.elapsed();
        let each = |time: Duration| time.as_secs_f64() * 1e6 / lossy(rounds);
        println!(
            "turn of two steps, {name} session: {:.0} us in memory; synced in {:.0} us, floor \
             {:.0} us",
            each(in_memory),
            each(on_disk),
            each(floor),
        );
    }
}

fn open(runtime: &tokio::runtime::Runtime, path: &Path) -> Session {
    runtime
        .block_on(SessionStore::open(path))
        .expect("the session opens")
}

/// A session of turns as they are: a prompt, a call with its result, an answer.
fn write_session(runtime: &tokio::runtime::Runtime, path: &Path, events: u64) {
    let session = Session::new(SessionHeader {
        id: "bench".to_owned(),
        cwd: Some("/work".to_owned()),
    });
    while session.read(dsh_session::Log::last_seq) + TURN <= events {
        turn(&session);
        if session
            .read(dsh_session::Log::next_turn)
            .is_multiple_of(100)
        {
            compact(&session);
        }
    }
    while session.read(dsh_session::Log::last_seq) < events {
        prompt(&session);
    }
    runtime
        .block_on(SessionStore::attach(path, &session))
        .expect("the session is written");
}

/// Hides what is visible, as a long session has to.
fn compact(session: &Session) {
    let to = session.read(dsh_session::Log::last_seq);
    append(
        session,
        EventBody::Compaction {
            from: 1,
            to,
            summary: vec![ContentBlock::text("what was done so far ".repeat(20))],
        },
    );
}

fn append(session: &Session, body: EventBody) {
    session.append(body).expect("it follows");
}

fn prompt(session: &Session) {
    append(
        session,
        EventBody::UserMessage {
            source: MessageSource::prompt(),
            content: vec![ContentBlock::text("Please look at this. ".repeat(8))],
        },
    );
}

fn turn(session: &Session) {
    let turn = session.read(dsh_session::Log::next_turn);
    append(session, EventBody::TurnStart { turn });
    append(session, EventBody::StepStart { turn, step: 1 });
    prompt(session);
    request(session, turn, 1);
    let call = ToolCall {
        id: format!("call-{turn}"),
        name: "read".to_owned(),
        arguments: json!({"file_path": "/project/src/lib.rs", "offset": 1, "limit": 20}),
    };
    append(
        session,
        EventBody::AssistantMessage(AssistantMessage {
            text: "I shall read it.".to_owned(),
            tool_calls: vec![call.clone()],
            ..AssistantMessage::default()
        }),
    );
    append(
        session,
        EventBody::ToolCall {
            call: call.clone(),
            parent: None,
        },
    );
    let lines: Vec<_> = (1..20)
        .map(|number| json!({"number": number, "text": "let x = 1;"}))
        .collect();
    append(
        session,
        EventBody::ToolResult(LoggedResult {
            call_id: call.id,
            name: call.name,
            is_error: false,
            code: None,
            value: Some(json!({"path": "/project/src/lib.rs", "lines": lines, "totalLines": 20})),
            content: vec![ContentBlock::text("12: let x = 1;\n".repeat(20))],
            parent: None,
        }),
    );
    end_step(session, turn, 1);
    append(session, EventBody::StepStart { turn, step: 2 });
    prompt(session);
    request(session, turn, 2);
    append(
        session,
        EventBody::AssistantMessage(AssistantMessage {
            text: "It says that x is 1. ".repeat(10),
            ..AssistantMessage::default()
        }),
    );
    end_step(session, turn, 2);
    append(
        session,
        EventBody::TurnEnd {
            turn,
            outcome: Ending::Completed,
        },
    );
}

fn request(session: &Session, turn: u64, step: u64) {
    let tool = |name: &str| ToolSchema {
        name: name.to_owned(),
        description: "Reads a file. ".repeat(20),
        parameters: json!({"type": "object", "properties": {"file_path": {"type": "string"}}}),
    };
    let tools = ["edit", "lsp", "read", "write"].map(tool).to_vec();
    session
        .append_request(turn, step, "You are careful. ".repeat(100), tools)
        .expect("it follows");
}

fn end_step(session: &Session, turn: u64, step: u64) {
    append(
        session,
        EventBody::StepEnd {
            turn,
            step,
            outcome: Ending::Completed,
        },
    );
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).expect("the file is there").len()
}

fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("the kernel tells");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let words = line.expect("the kernel reports VmRSS").split_whitespace();
    let kilobytes: Option<u64> = words.into_iter().next().and_then(|word| word.parse().ok());
    kilobytes.expect("it is a number") * 1024
}

/// The fastest of some rounds: what is left is the work, without what else the machine was doing.
fn best(mut work: impl FnMut()) -> Duration {
    (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        })
        .min()
        .expect("there are rounds")
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn lossy(count: u64) -> f64 {
    count as f64
}
