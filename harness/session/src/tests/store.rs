//! The store: what it writes, what it reads, and what it refuses.

use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::*;
use crate::store::decode;
use crate::{MAX_LINE, Session, SessionStore, StoreError};

fn append(session: &Session, bodies: impl IntoIterator<Item = EventBody>) {
    for body in bodies {
        session.append(body).unwrap();
    }
}

fn bodies(log: &Log) -> Vec<EventBody> {
    log.events()
        .iter()
        .map(|event| event.body.clone())
        .collect()
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("s.jsonl")
    }

    /// A file with these bytes.
    fn holds(bytes: &[u8]) -> Self {
        let folder = Self::new();
        fs::write(folder.path(), bytes).unwrap();
        folder
    }

    async fn open(&self) -> Session {
        SessionStore::open(self.path()).await.unwrap()
    }

    /// Why the file is not opened. It is as it was afterwards.
    async fn refused(&self) -> String {
        let before = fs::read(self.path()).unwrap();
        let error = SessionStore::open(self.path()).await.unwrap_err();
        assert_eq!(fs::read(self.path()).unwrap(), before);
        let message = error.to_string();
        let place = self.path().display().to_string();
        let rest = message.strip_prefix(&place).expect("the file is named");
        rest.to_owned()
    }
}

/// RUN-11: what was synced is there when the session is opened again, and the format is as it is
/// documented.
#[tokio::test]
async fn a_session_is_saved_and_opened_again() {
    let folder = Folder::new();
    let session = SessionStore::create(folder.path(), header()).await.unwrap();
    append(&session, [turn_start(1), step_start(1, 1), user("hello")]);
    session.sync().await.unwrap();
    append(&session, [step_end(1, 1), turn_end(1)]);
    session.sync().await.unwrap();
    session.sync().await.unwrap();
    let events = session.read(|log| log.events().to_vec());
    drop(session);
    let file = fs::read_to_string(folder.path()).unwrap();
    let lines: Vec<&str> = file.lines().collect();
    assert_eq!(lines.len(), 6);
    assert_eq!(
        lines[0],
        r#"{"format":"dsh-session/1","header":{"id":"s1","cwd":"/w"}}"#
    );
    let at = events[2].at_ms;
    assert_eq!(
        lines[3],
        format!(
            r#"{{"seq":3,"atMs":{at},"type":"user/message","source":{{"kind":"prompt"}},"content":[{{"type":"text","text":"hello"}}]}}"#
        )
    );
    let again = folder.open().await;
    assert_eq!(again.header(), &header());
    assert_eq!(again.read(|log| log.events().to_vec()), events);
    append(&again, [turn_start(2)]);
    again.sync().await.unwrap();
    drop(again);
    // What was open is ended on opening.
    assert_eq!(folder.open().await.read(Log::last_seq), 7);
    assert_eq!(folder.open().await.read(Log::last_seq), 7);
}

/// RUN-11: what was not synced was not promised.
#[tokio::test]
async fn what_was_not_synced_is_not_there() {
    let folder = Folder::new();
    let session = SessionStore::create(folder.path(), header()).await.unwrap();
    append(&session, [turn_start(1)]);
    drop(session);
    assert_eq!(folder.open().await.read(Log::last_seq), 0);
}

/// RUN-11: a session left in the middle of calls goes on with results for them, on the disk too.
#[tokio::test]
async fn calls_that_a_crash_interrupted_get_results() {
    let mut log = answered(&["c1", "c2"]);
    push(&mut log, [call("c1", None)]);
    let folder = Folder::holds(&file_of(&log));
    let kinds = |session: &Session| {
        session.read(|log| {
            let events = log.events()[6..].iter();
            events.map(|event| event.body.kind()).collect::<Vec<_>>()
        })
    };
    let wanted = [
        "tool/result",
        "tool/call",
        "tool/result",
        "step/end",
        "turn/end",
    ];
    let session = folder.open().await;
    assert_eq!(kinds(&session), wanted);
    let messages = serde_json::to_string(&session.read(Log::messages)).unwrap();
    assert_eq!(messages.matches("the call was interrupted").count(), 2);
    drop(session);
    // Nobody synced but the opening itself.
    assert_eq!(kinds(&folder.open().await), wanted);
}

/// RUN-11: a fork is kept in a file of its own, and the first session knows nothing of it.
#[tokio::test]
async fn a_fork_is_kept_in_a_file_of_its_own() {
    let folder = Folder::new();
    let session = SessionStore::create(folder.path(), header()).await.unwrap();
    append(&session, bodies(&whole_turn()));
    let fork = session
        .fork(
            5,
            SessionHeader {
                id: "f".to_owned(),
                cwd: None,
            },
        )
        .unwrap();
    let other = folder.0.path().join("fork.jsonl");
    SessionStore::attach(&other, &fork).await.unwrap();
    append(&fork, [turn_start(2)]);
    fork.sync().await.unwrap();
    let error = SessionStore::attach(folder.0.path().join("third"), &fork)
        .await
        .unwrap_err();
    assert!(matches!(error, StoreError::Attached { .. }), "{error}");
    assert!(error.to_string().contains("fork.jsonl"));
    let events = fork.read(Log::last_seq);
    drop(fork);
    // The turn that was just begun is ended.
    let fork = SessionStore::open(&other).await.unwrap();
    assert_eq!(fork.read(Log::last_seq), events + 1);
    assert_eq!(fork.header().id, "f");
}

/// RUN-11: nothing is overwritten, and nothing is left of what could not be begun.
#[tokio::test]
async fn a_new_session_needs_a_new_file() {
    let folder = Folder::holds(b"precious");
    let error = SessionStore::create(folder.path(), header())
        .await
        .unwrap_err();
    assert!(matches!(error, StoreError::Exists { .. }));
    assert!(
        error.to_string().contains("s.jsonl: is there already"),
        "{error}"
    );
    assert_eq!(fs::read(folder.path()).unwrap(), b"precious");
    let nowhere = folder.0.path().join("none/s.jsonl");
    let error = SessionStore::create(&nowhere, header()).await.unwrap_err();
    assert!(
        error.to_string().contains("the folder must exist"),
        "{error}"
    );
}

/// RUN-11: two writers would spoil a file; the second one is told.
#[tokio::test]
async fn a_session_is_open_once() {
    let folder = Folder::new();
    let session = SessionStore::create(folder.path(), header()).await.unwrap();
    let error = SessionStore::open(folder.path()).await.unwrap_err();
    assert!(matches!(error, StoreError::Locked { .. }));
    assert!(error.to_string().contains("is open already"), "{error}");
    let clone = session.clone();
    drop(session);
    SessionStore::open(folder.path()).await.unwrap_err();
    drop(clone);
    let again = folder.open().await;
    SessionStore::open(folder.path()).await.unwrap_err();
    drop(again);
}

/// RUN-11: only regular files are opened, and a pipe is not waited for.
#[tokio::test]
async fn what_is_no_file_is_refused() {
    let folder = Folder::new();
    let error = SessionStore::open(folder.0.path()).await.unwrap_err();
    assert!(matches!(error, StoreError::NotAFile { .. }), "{error}");
    let error = SessionStore::open(folder.path()).await.unwrap_err();
    assert!(error.to_string().contains("Check the path"), "{error}");
    let error = SessionStore::open("/dev/null").await.unwrap_err();
    assert!(error.to_string().contains("no regular file"), "{error}");
}

/// RUN-11: a torn last line is cut off, on the disk too, whatever it holds.
#[tokio::test]
async fn a_torn_last_line_is_cut_off() {
    let whole = file_of(&whole_turn());
    let last = line_of(whole_turn().events().last().unwrap());
    let tails: [&[u8]; 5] = [
        b"{",
        &last[..last.len() - 1],
        b"\xff\xfe",
        &[0; 4096],
        b"{\"seq\":19,\"type\":\"no/such\"}",
    ];
    for tail in tails {
        let folder = Folder::holds(&[&whole, tail].concat());
        let session = folder.open().await;
        assert_eq!(session.read(Log::last_seq), 18);
        assert_eq!(fs::read(folder.path()).unwrap(), whole);
        append(&session, [turn_start(2), turn_end(2)]);
        session.sync().await.unwrap();
        drop(session);
        assert_eq!(folder.open().await.read(Log::last_seq), 20);
    }
}

/// RUN-11: a file that is no session, or none of ours, is refused with the way out.
#[tokio::test]
async fn files_that_are_no_session_are_refused() {
    #[track_caller]
    fn says(message: &str, words: &[&str]) {
        assert!(message.starts_with(":1: "), "{message}");
        assert!(message.len() < 500, "{message}");
        for word in words {
            assert!(message.contains(word), "{word:?} is not in: {message}");
        }
    }
    let refused = async |bytes: &[u8]| Folder::holds(bytes).refused().await;
    says(&refused(b"").await, &["is empty", "Delete it and create"]);
    says(
        &refused(br#"{"format":"dsh-sess"#).await,
        &["torn", "create the session anew"],
    );
    for other in [
        &b"\n"[..],
        b"hello\n",
        b"hello",
        b"[]\n",
        b"{\"format\":7}\n",
        b"\xff\n",
        b"{\"format\":\"jsonl/1\"}\n",
    ] {
        says(
            &refused(other).await,
            &["this is no session", "Name the file"],
        );
    }
    let long = vec![b'x'; MAX_LINE + 10];
    says(&refused(&long).await, &["this is no session"]);
    let foreign = b"{\"format\":\"dsh-session/2\",\"header\":{\"id\":1,\"more\":[]}}\n{}\n";
    says(
        &refused(foreign).await,
        &["dsh-session/2", "dsh-session/1", "version that wrote it"],
    );
    let foreign = format!("{{\"format\":\"dsh-session/{}\"}}\n", "9".repeat(100_000));
    says(
        &refused(foreign.as_bytes()).await,
        &["version that wrote it"],
    );
    let broken = b"{\"format\":\"dsh-session/1\",\"header\":{\"id\":\"a\",\"cwf\":\"/w\"}}\n";
    says(
        &refused(broken).await,
        &["the header is wrong", "cwf", "Mend it"],
    );
}

/// The file of a whole turn with line `number` replaced.
fn with_line(number: usize, line: &[u8]) -> Vec<u8> {
    let file = file_of(&whole_turn());
    let mut lines: Vec<&[u8]> = file.split_inclusive(|byte| *byte == b'\n').collect();
    lines[number - 1] = line;
    lines.concat()
}
async fn line_refused(number: usize, line: &[u8], words: &[&str]) {
    let message = Folder::holds(&with_line(number, line)).refused().await;
    assert!(message.starts_with(&format!(":{number}: ")), "{message}");
    assert!(message.len() < 800, "{message}");
    let way_out = format!("with the first {} lines in a new file", number - 1);
    for word in words.iter().copied().chain([way_out.as_str()]) {
        assert!(message.contains(word), "{word:?} is not in: {message}");
    }
}

/// RUN-11: a whole line that is wrong is refused, with file, line, what is wrong, and the way out;
/// the file is left as it is.
#[tokio::test]
async fn lines_that_are_wrong_are_refused() {
    let start = br#"{"seq":1,"atMs":0,"type":"turn/start","turn":1}"#;
    line_refused(
        4,
        b"",
        &[
            "event 4 (step/request)",
            "3 is due: what is between is missing",
        ],
    )
    .await;
    line_refused(
        3,
        &[&start[..], b"\n"].concat(),
        &["event 1 (turn/start)", "that seq is there already"],
    )
    .await;
    line_refused(
        2,
        b"{\"seq\":1,\"atMs\":0,\"type\":\"turn/begin\",\"turn\":1}\n",
        &["unknown variant `turn/begin`", "`turn/start`", "at byte"],
    )
    .await;
    line_refused(
        2,
        b"{\"seq\":1,\"atMs\":0,\"type\":\"turn/start\",\"turn\":1,\"why\":2}\n",
        &["unknown field `why`"],
    )
    .await;
    line_refused(
        2,
        b"{\"why\":1,\"seq\":1,\"atMs\":0,\"type\":\"turn/start\",\"turn\":1}\n",
        &["unknown field `why`"],
    )
    .await;
    line_refused(
        2,
        b"{\"seq\":1,\"seq\":1,\"atMs\":0,\"type\":\"turn/start\",\"turn\":1}\n",
        &["duplicate field `seq`"],
    )
    .await;
    line_refused(
        2,
        b"{\"seq\":1,\"atMs\":0,\"type\":\"turn/start\"}\n",
        &["missing field `turn`"],
    )
    .await;
    line_refused(
        2,
        b"{\"seq\":1,\"atMs\":0,\"turn\":1}\n",
        &["missing field `type`"],
    )
    .await;
    line_refused(
        2,
        b"{\"seq\":-1,\"atMs\":0,\"type\":\"turn/start\",\"turn\":1}\n",
        &["-1"],
    )
    .await;
    line_refused(
        2,
        b"{\"seq\":1,\"atMs\":0,\"type\":\"turn/start\",\"turn\":\"one\"}\n",
        &["one"],
    )
    .await;
}

/// RUN-11: so is one that is no event at all.
#[tokio::test]
async fn lines_that_are_no_event_are_refused() {
    let start = br#"{"seq":1,"atMs":0,"type":"turn/start","turn":1}"#;
    line_refused(2, b"{\"seq\":1,\n", &["EOF"]).await;
    line_refused(2, b"\n", &["EOF"]).await;
    line_refused(2, b"[1]\n", &["an event, which is an object"]).await;
    line_refused(2, b"{\"seq\":1} {}\n", &["missing field"]).await;
    line_refused(2, &[&start[..], b"x\n"].concat(), &["trailing characters"]).await;
    line_refused(
        2,
        b"{\"seq\":1,\"atMs\":\xc3\x28}\n",
        &["byte 17 of the line is not UTF-8"],
    )
    .await;
    line_refused(
        2,
        b"{\"seq\":1,\"atMs\":0,\"type\":\"step/start\",\"turn\":1,\"step\":1}\n",
        &["event 1 (step/start)", "no turn is open"],
    )
    .await;
    let deep = format!(
        "{{\"seq\":1,\"atMs\":0,\"type\":{}1{}}}\n",
        "[".repeat(9_000),
        "]".repeat(9_000)
    );
    line_refused(2, deep.as_bytes(), &["at byte"]).await;
    let long = format!(
        "{{\"seq\":1,\"atMs\":0,\"type\":\"{}\",\"turn\":1}}\n",
        "x".repeat(1_000_000)
    );
    line_refused(2, long.as_bytes(), &["unknown variant"]).await;
    // A line of zeros that a whole line follows is no torn tail.
    line_refused(19, &[&[0; 512][..], b"\n"].concat(), &["at byte 1"]).await;
}

/// RUN-11: what another program wrote in another order of keys is read as well.
#[tokio::test]
async fn the_order_of_keys_does_not_matter() {
    let head = "{\"header\":{\"id\":\"s1\",\"cwd\":\"/w\"},\"format\":\"dsh-session/1\"}\n";
    let event = "{ \"turn\" : 1 , \"type\":\"turn/start\",\"seq\":1,\"atMs\":5 }\r\n";
    let other = "{\"step\":1,\"type\":\"step/start\",\"turn\":1,\"seq\":2,\"atMs\":6}\n";
    let folder = Folder::holds(format!("{head}{event}{other}").as_bytes());
    let session = folder.open().await;
    let first = session.read(|log| log.events()[0].clone());
    assert_eq!((first.at_ms, &first.body), (5, &turn_start(1)));
    assert_eq!(
        session.read(|log| log.events()[1].body.clone()),
        step_start(1, 1)
    );
}

/// RUN-11: a line of a gigabyte costs no more memory than the longest line that is allowed.
#[test]
fn a_line_of_a_gigabyte_is_refused_in_bounded_memory() {
    /// Counts how much was read.
    struct Counting<R>(R, Arc<Mutex<u64>>);
    impl<R: Read> Read for Counting<R> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let read = self.0.read(buffer)?;
            *self.1.lock().unwrap() += read as u64;
            Ok(read)
        }
    }
    for byte in [b'x', b' ', 0] {
        let head = file_of(&Log::new());
        let endless = io::repeat(byte).take(1 << 30);
        let read = Arc::new(Mutex::new(0));
        let counting = Counting(head.as_slice().chain(endless), Arc::clone(&read));
        let mut reader = BufReader::new(counting);
        let error = decode::read(Path::new("s.jsonl"), &mut reader)
            .err()
            .unwrap()
            .to_string();
        assert!(
            error.contains("s.jsonl:2: the line is longer than 67108864 bytes"),
            "{error}"
        );
        assert!(*read.lock().unwrap() < MAX_LINE as u64 + 100_000);
    }
}

/// RUN-11: an error of the disk while reading is told as such, and nothing is cut off.
#[test]
fn a_read_that_fails_is_no_torn_line() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::from_raw_os_error(5))
        }
    }
    let file = file_of(&whole_turn());
    for end in [0, 10, file.len() - 3] {
        let mut reader = BufReader::new(file[..end].chain(Broken));
        assert!(reader.fill_buf().is_ok() || end == 0);
        let error = decode::read(Path::new("s.jsonl"), &mut reader)
            .err()
            .unwrap();
        assert!(
            matches!(error, StoreError::Io { doing: "read", .. }),
            "{error}"
        );
        assert!(error.to_string().contains("Check the disk"), "{error}");
    }
}
