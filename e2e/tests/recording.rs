//! The recording between a host and a server changes nothing, holds nothing back, and keeps the
//! order of what was said.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use dsh_e2e::RecordingSubprocess;
use dsh_harness::kernel::{Cancel, ExecutionWorld};
use dsh_harness::subprocess::{
    ChildExit, ChildIo, ChildProcess, LocalSubprocess, MemberInfo, ProcessControl, ResolveError,
    SpawnError, SpawnSpec, Subprocess, TerminationReport,
};
use dsh_transcript::{Direction, EventBody, Recorder, View};
use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, ReadBuf,
};

/// A service whose processes are the other ends of pipes in memory.
struct InMemory {
    world: ExecutionWorld,
    capacity: usize,
    far: Mutex<Vec<(DuplexStream, DuplexStream)>>,
}

impl InMemory {
    fn new(capacity: usize) -> Arc<Self> {
        Arc::new(Self {
            world: ExecutionWorld::local(),
            capacity,
            far: Mutex::default(),
        })
    }

    /// What the process reads from and writes to.
    fn far_ends(&self) -> (DuplexStream, DuplexStream) {
        self.far.lock().unwrap().pop().unwrap()
    }
}

#[async_trait]
impl Subprocess for InMemory {
    fn world(&self) -> &ExecutionWorld {
        &self.world
    }

    async fn resolve_executable(
        &self,
        command: &str,
        _env: &BTreeMap<String, String>,
        _cancel: &Cancel,
    ) -> Result<PathBuf, ResolveError> {
        Ok(PathBuf::from(command))
    }

    async fn spawn(&self, _spec: SpawnSpec) -> Result<ChildProcess, SpawnError> {
        let (stdin, far_stdin) = tokio::io::duplex(self.capacity);
        let (far_stdout, stdout) = tokio::io::duplex(self.capacity);
        self.far.lock().unwrap().push((far_stdin, far_stdout));
        let io = ChildIo {
            stdin: Box::new(stdin),
            stdout: Box::new(stdout),
        };
        Ok(ChildProcess {
            io,
            control: Arc::new(Ended),
        })
    }
}

/// A process that ended with code 3 and left somebody behind.
struct Ended;

#[async_trait]
impl ProcessControl for Ended {
    fn pid(&self) -> u32 {
        4711
    }

    async fn wait(&self) -> ChildExit {
        ChildExit::Code(3)
    }

    fn exited(&self) -> Option<ChildExit> {
        Some(ChildExit::Code(3))
    }

    fn stderr_tail(&self) -> String {
        "last words".to_owned()
    }

    async fn stderr_drained(&self, _limit: Duration) {}

    async fn wait_tree(&self, _limit: Duration) -> Vec<MemberInfo> {
        vec![MemberInfo {
            pid: 9,
            name: "left".to_owned(),
        }]
    }

    async fn terminate_tree(&self, _grace: Duration) -> TerminationReport {
        TerminationReport {
            killed: vec![MemberInfo {
                pid: 9,
                name: "left".to_owned(),
            }],
            ..TerminationReport::default()
        }
    }
}

fn spec(executable: &str) -> SpawnSpec {
    SpawnSpec {
        executable: PathBuf::from(executable),
        args: Vec::new(),
        env: BTreeMap::new(),
        cwd: PathBuf::from("/"),
        max_stderr_bytes: 1_000,
    }
}

fn frame(body: &str) -> Vec<u8> {
    format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// Sizes of pieces that differ from run to run of the loop, but not from test run to test run.
fn pieces(bytes: &[u8], seed: u64) -> Vec<&[u8]> {
    let mut state = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    let mut rest = bytes;
    let mut all = Vec::new();
    while !rest.is_empty() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let size = 1 + usize::try_from(state >> 60).unwrap().min(rest.len() - 1);
        all.push(&rest[..size]);
        rest = &rest[size..];
    }
    all
}

#[tokio::test]
async fn bytes_pass_unchanged_in_both_directions_however_they_are_cut() {
    let messages: Vec<Vec<u8>> = (0..20)
        .map(|n| frame(&format!(r#"{{"jsonrpc":"2.0","id":{n},"method":"é{n}"}}"#)))
        .collect();
    let all: Vec<u8> = messages.concat();
    for seed in 0..25 {
        let service = InMemory::new(1 + usize::try_from(seed).unwrap());
        let recording = RecordingSubprocess::new(service.clone(), Recorder::new());
        let ChildProcess {
            io: ChildIo {
                mut stdin,
                mut stdout,
            },
            ..
        } = recording.spawn(spec("/x")).await.unwrap();
        let (mut far_stdin, mut far_stdout) = service.far_ends();
        let mut arrived = Vec::new();
        let mut answered = Vec::new();
        let talk = async {
            for piece in pieces(&all, seed) {
                stdin.write_all(piece).await.unwrap();
            }
            drop(stdin);
        };
        let hear = async {
            far_stdin.read_to_end(&mut arrived).await.unwrap();
        };
        let answer = async {
            for piece in pieces(&all, seed + 100) {
                far_stdout.write_all(piece).await.unwrap();
            }
            drop(far_stdout);
        };
        let listen = async {
            stdout.read_to_end(&mut answered).await.unwrap();
        };
        tokio::join!(talk, hear, answer, listen);
        drop(stdout);
        assert_eq!(arrived, all);
        assert_eq!(answered, all);
        let events = recording.recorder().events();
        for direction in [Direction::ToServer, Direction::ToClient] {
            let recorded: Vec<Vec<u8>> = View(&events)
                .sent(1, direction)
                .map(|(_, frame)| [&frame.header.0[..], &frame.body[..]].concat())
                .collect();
            assert_eq!(recorded, messages);
            let closed = |event: &&dsh_transcript::Event| matches!(&event.body, EventBody::Closed { direction: d, total } if *d == direction && *total == all.len() as u64);
            assert_eq!(events.iter().filter(closed).count(), 1);
        }
    }
}

#[tokio::test]
async fn text_that_is_no_frame_passes_and_is_recorded_as_what_it_is() {
    let service = InMemory::new(64);
    let recording = RecordingSubprocess::new(service.clone(), Recorder::new());
    let mut child = recording.spawn(spec("/x")).await.unwrap();
    let (_far_stdin, mut far_stdout) = service.far_ends();
    far_stdout.write_all(b"hello\n").await.unwrap();
    drop(far_stdout);
    let mut heard = String::new();
    child.io.stdout.read_to_string(&mut heard).await.unwrap();
    assert_eq!(heard, "hello\n");
    let events = recording.recorder().events();
    let stray: Vec<_> = View(&events).stray(1, Direction::ToClient).collect();
    assert_eq!(stray.len(), 1);
    assert!(matches!(&stray[0].body, EventBody::Stray { bytes, .. } if &bytes.0[..] == b"hello\n"));
}

#[tokio::test]
async fn starts_ends_and_what_was_left_are_events_in_their_order() {
    let recording = RecordingSubprocess::new(InMemory::new(64), Recorder::new());
    let child = recording.spawn(spec("/bin/x")).await.unwrap();
    assert_eq!(child.control.wait().await, ChildExit::Code(3));
    assert_eq!(child.control.wait().await, ChildExit::Code(3));
    child.control.wait_tree(Duration::ZERO).await;
    child.control.terminate_tree(Duration::ZERO).await;
    let told: Vec<String> = recording
        .recorder()
        .events()
        .iter()
        .map(|event| match &event.body {
            EventBody::ProcessStarted { pid, argv, .. } => format!("started {pid} {argv:?}"),
            EventBody::ProcessEnded { code, .. } => format!("ended {code:?}"),
            EventBody::Termination(end) => {
                format!("alive {} killed {}", end.alive.len(), end.killed.len())
            }
            EventBody::Note { kind, .. } => kind.clone(),
            EventBody::Stderr { text } => format!("stderr {}", text.lossy()),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(
        told,
        [
            "started 4711 [\"/bin/x\"]",
            "ended Some(3)",
            "alive 1 killed 0",
            "terminate",
            "alive 0 killed 1",
            "stderr last words",
        ]
    );
}

/// A service whose process answers before the write that asked it has returned: the worst that a
/// scheduler can do to the order of a recording.
struct Hasty {
    world: ExecutionWorld,
    pipes: Mutex<Option<(HastyWrite, HastyRead)>>,
}

/// Gives what is written to the reader, and returns only when the reader is through with it, or
/// can be seen to wait.
struct HastyWrite {
    to_reader: tokio::sync::mpsc::UnboundedSender<Vec<u8>>,
    through: std::sync::mpsc::Receiver<()>,
}

struct HastyRead(tokio::sync::mpsc::UnboundedReceiver<Vec<u8>>);

impl AsyncWrite for HastyWrite {
    fn poll_write(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        self.to_reader.send(buf.to_vec()).unwrap();
        let _ = self.through.recv_timeout(Duration::from_millis(50));
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for HastyRead {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        if let Some(bytes) = std::task::ready!(self.0.poll_recv(cx)) {
            buf.put_slice(&bytes);
        }
        Poll::Ready(Ok(()))
    }
}

#[async_trait]
impl Subprocess for Hasty {
    fn world(&self) -> &ExecutionWorld {
        &self.world
    }

    async fn resolve_executable(
        &self,
        command: &str,
        _env: &BTreeMap<String, String>,
        _cancel: &Cancel,
    ) -> Result<PathBuf, ResolveError> {
        Ok(PathBuf::from(command))
    }

    async fn spawn(&self, _spec: SpawnSpec) -> Result<ChildProcess, SpawnError> {
        let (stdin, stdout) = self.pipes.lock().unwrap().take().unwrap();
        let io = ChildIo {
            stdin: Box::new(stdin),
            stdout: Box::new(stdout),
        };
        Ok(ChildProcess {
            io,
            control: Arc::new(Ended),
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_stands_before_its_answer_however_soon_that_comes() {
    let (to_reader, from_writer) = tokio::sync::mpsc::unbounded_channel();
    let (say_through, through) = std::sync::mpsc::channel();
    let pipes = (HastyWrite { to_reader, through }, HastyRead(from_writer));
    let hasty = Hasty {
        world: ExecutionWorld::local(),
        pipes: Mutex::new(Some(pipes)),
    };
    let recording = RecordingSubprocess::new(Arc::new(hasty), Recorder::new());
    let ChildIo {
        mut stdin,
        mut stdout,
    } = recording.spawn(spec("/x")).await.unwrap().io;
    let reader = tokio::task::JoinSet::from_iter([async move {
        let mut buffer = [0; 4096];
        while stdout.read(&mut buffer).await.unwrap() > 0 {
            let _ = say_through.send(());
        }
    }]);
    for n in 0..5 {
        let question = frame(&format!(r#"{{"id":{n},"method":"m"}}"#));
        stdin.write_all(&question).await.unwrap();
    }
    drop(stdin);
    reader.join_all().await;
    let events = recording.recorder().events();
    let sequence = |direction| -> Vec<u64> {
        View(&events)
            .sent(1, direction)
            .map(|(event, _)| event.seq)
            .collect()
    };
    let (asked, answered) = (sequence(Direction::ToServer), sequence(Direction::ToClient));
    assert_eq!((asked.len(), answered.len()), (5, 5));
    assert!(
        asked
            .iter()
            .zip(&answered)
            .all(|(asked, answered)| asked < answered)
    );
}

#[tokio::test]
async fn everything_that_runs_can_be_ended_at_once() {
    let local = Arc::new(LocalSubprocess::from_environment());
    let recording = RecordingSubprocess::new(local, Recorder::new());
    let mut children = Vec::new();
    for _ in 0..3 {
        let mut spec = spec("/bin/sleep");
        spec.args = vec!["1000".to_owned()];
        children.push(recording.spawn(spec).await.unwrap());
    }
    recording.end_all().await;
    for child in &children {
        assert!(matches!(child.control.wait().await, ChildExit::Signal(_)));
    }
}
