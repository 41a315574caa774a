//! A writer that is killed in the middle of its work (RUN-11).
//!
//! The program starts itself as the writer: that logs and syncs without end, and says after each sync
//! up to where it has promised. It is killed without warning, and the file is opened again.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use dsh_session::{
    AssistantMessage, ContentBlock, EventBody, Log, LoggedResult, MessageSource, Session,
    SessionHeader, SessionStore, StoreError, ToolCall,
};
use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::json;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, flag, path] = arguments.as_slice()
        && flag == "--writer"
    {
        return runtime().block_on(writer(Path::new(path)));
    }
    let tests = vec![
        Trial::test("a_killed_writer_leaves_what_it_promised", || {
            a_killed_writer_leaves_what_it_promised();
            Ok::<(), Failed>(())
        }),
        Trial::test("a_file_that_another_process_has_open_is_refused", || {
            a_file_that_another_process_has_open_is_refused();
            Ok(())
        }),
    ];
    libtest_mimic::run(&Arguments::from_args(), tests).exit();
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime")
}

/// Writes turns until it is killed.
async fn writer(path: &Path) {
    let session = if path.exists() {
        SessionStore::open(path).await.expect("it opens")
    } else {
        let header = SessionHeader {
            id: "s1".to_owned(),
            cwd: None,
        };
        SessionStore::create(path, header)
            .await
            .expect("it is created")
    };
    promise(&session).await;
    loop {
        let turn = session.read(Log::next_turn);
        append(&session, EventBody::TurnStart { turn });
        append(&session, EventBody::StepStart { turn, step: 1 });
        append(
            &session,
            EventBody::UserMessage {
                source: MessageSource::prompt(),
                content: vec![ContentBlock::text("x".repeat(3_000))],
            },
        );
        promise(&session).await;
        session
            .append_request(turn, 1, "be kind".to_owned(), vec![])
            .expect("it follows");
        let call = ToolCall {
            id: "c1".to_owned(),
            name: "read".to_owned(),
            arguments: json!({"file_path": "a"}),
        };
        append(
            &session,
            EventBody::AssistantMessage(AssistantMessage {
                tool_calls: vec![call.clone()],
                ..AssistantMessage::default()
            }),
        );
        append(
            &session,
            EventBody::ToolCall {
                call: call.clone(),
                parent: None,
            },
        );
        promise(&session).await;
        append(
            &session,
            EventBody::ToolResult(LoggedResult {
                call_id: call.id,
                name: call.name,
                is_error: false,
                code: None,
                value: None,
                content: vec![ContentBlock::text("y".repeat(20_000))],
                parent: None,
            }),
        );
        session.close_open().expect("what is open can be ended");
        // Keeps what is visible short.
        let to = session.read(Log::last_seq);
        append(
            &session,
            EventBody::Compaction {
                from: 1,
                to,
                summary: vec![ContentBlock::text("it was read")],
            },
        );
        promise(&session).await;
    }
}

fn append(session: &Session, body: EventBody) {
    session.append(body).expect("it follows");
}

/// Syncs, and says up to where.
async fn promise(session: &Session) {
    let seq = session.read(Log::last_seq);
    session.sync().await.expect("it is written");
    let mut out = std::io::stdout().lock();
    writeln!(out, "{seq}")
        .and_then(|()| out.flush())
        .expect("the parent listens");
}

/// Ends its process, also when the test fails.
struct Writer(Child);

impl Writer {
    fn start(path: &Path) -> Self {
        let child = Command::new(std::env::current_exe().expect("this program"))
            .arg("--writer")
            .arg(path)
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program runs");
        Self(child)
    }

    /// The lines that it says.
    fn promises(&mut self) -> impl Iterator<Item = u64> + use<> {
        let out = self.0.stdout.take().expect("it is a pipe");
        BufReader::new(out)
            .lines()
            .map_while(|line| line.ok()?.parse().ok())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// RUN-11: everything that was promised is there, nothing is torn, every request can be rebuilt, and
/// the next writer goes on.
fn a_killed_writer_leaves_what_it_promised() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s.jsonl");
    for round in 0..25 {
        let mut writer = Writer::start(&path);
        let mut said = writer.promises();
        // Killed after a different count of syncs each time, in the middle of the next.
        let promised = said
            .by_ref()
            .nth(round % 7 * 3)
            .expect("it goes on until it is killed");
        writer.0.kill().expect("it runs");
        let promised = said.last().unwrap_or(promised);
        drop(writer);
        let session = runtime()
            .block_on(SessionStore::open(&path))
            .expect("the session opens");
        session.read(|log| {
            assert!(
                log.last_seq() >= promised,
                "{} of {promised}",
                log.last_seq()
            );
            assert_eq!(log.open_turn(), None);
            log.verify().expect("every request can be rebuilt");
        });
    }
}

/// RUN-11: two processes do not write to one file.
fn a_file_that_another_process_has_open_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s.jsonl");
    let mut writer = Writer::start(&path);
    let mut said = writer.promises();
    said.next().expect("it has the file");
    let error = runtime()
        .block_on(SessionStore::open(&path))
        .expect_err("it is open elsewhere");
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    drop(writer);
    runtime()
        .block_on(SessionStore::open(&path))
        .expect("the lock has ended with its holder");
}
