//! Disks that fail.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::*;
use crate::store::disk::Disk;
use crate::store::{Store, decode};
use crate::{Session, StoreError};

/// A disk in memory that fails when it is told to.
#[derive(Clone)]
struct Faulty(Arc<Mutex<State>>);

struct State {
    /// What the system has taken.
    bytes: Vec<u8>,
    /// How much of it survives a crash.
    synced: usize,
    operations: usize,
    /// Which operation fails, and how many bytes of it are written before.
    fails: Option<(usize, usize)>,
    error: i32,
}

impl Faulty {
    fn new(bytes: &[u8], fails: Option<(usize, usize)>, error: i32) -> Self {
        Self(Arc::new(Mutex::new(State {
            bytes: bytes.to_vec(),
            synced: bytes.len(),
            operations: 0,
            fails,
            error,
        })))
    }

    fn step(&self) -> Option<usize> {
        let mut state = self.0.lock().unwrap();
        state.operations += 1;
        let now = state.operations;
        state
            .fails
            .filter(|(at, _)| *at == now)
            .map(|(_, written)| written)
    }

    fn error(&self) -> io::Error {
        io::Error::from_raw_os_error(self.0.lock().unwrap().error)
    }

    /// Everything that the file may hold after a crash at this moment: what is synced, and any part
    /// of what is not.
    fn after_a_crash(&self) -> Vec<Vec<u8>> {
        let state = self.0.lock().unwrap();
        (state.synced..=state.bytes.len())
            .map(|end| state.bytes[..end].to_vec())
            .collect()
    }
}

impl Disk for Faulty {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let fails = self.step();
        let mut state = self.0.lock().unwrap();
        let written = fails.map_or(bytes.len(), |written| written.min(bytes.len()));
        state.bytes.extend_from_slice(&bytes[..written]);
        drop(state);
        fails.map_or(Ok(()), |_| Err(self.error()))
    }

    fn sync(&mut self) -> io::Result<()> {
        if let Some(lost) = self.step() {
            // What a failed sync has lost nobody knows; here it is the end.
            let mut state = self.0.lock().unwrap();
            let left = state.bytes.len().saturating_sub(lost).max(state.synced);
            state.bytes.truncate(left);
            drop(state);
            return Err(self.error());
        }
        let mut state = self.0.lock().unwrap();
        state.synced = state.bytes.len();
        Ok(())
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        if self.step().is_some() {
            return Err(self.error());
        }
        let mut state = self.0.lock().unwrap();
        let length = usize::try_from(length).unwrap();
        assert!(length >= state.synced, "what is durable is not cut");
        state.bytes.truncate(length);
        Ok(())
    }
}

/// RUN-11: whichever write, sync or cut fails, and however much of it was done, the next one makes it
/// good; a crash at any moment leaves at least what was synced.
#[test]
fn a_disk_that_fails_loses_nothing_that_was_promised() {
    let log = whole_turn();
    let head = file_of(&Log::new());
    for (error, words) in [(28, "Free some space"), (5, "Check the disk")] {
        for operation in 1..=14 {
            for part in [0, 1, 40, 400, 100_000] {
                let disk = Faulty::new(&head, Some((operation, part)), error);
                let path = PathBuf::from("s.jsonl");
                let mut store = Store::new(path, Box::new(disk.clone()), 0, head.len() as u64);
                let mut failures = 0;
                for end in [4, 9, 10, 13, 18] {
                    let durable = store.durable();
                    match store.write(&log.events()[durable..end]) {
                        Ok(()) => assert_eq!(store.durable(), end),
                        Err(error) => {
                            failures += 1;
                            let message = error.to_string();
                            assert!(message.contains("s.jsonl"), "{message}");
                            assert!(message.contains(words), "{message}");
                            assert_eq!(store.durable(), durable);
                        }
                    }
                    for file in disk.after_a_crash() {
                        let left = decode::read(Path::new("s"), &mut &file[..]).unwrap();
                        let count = left.log.events().len();
                        assert!(count >= store.durable());
                        assert_eq!(left.log.events(), &log.events()[..count]);
                    }
                }
                if store.durable() < 18 {
                    let durable = store.durable();
                    store.write(&log.events()[durable..]).unwrap();
                }
                // Ten operations where nothing fails; with a cut, eleven and more.
                assert_eq!(
                    failures,
                    usize::from(operation <= 10),
                    "operation {operation}"
                );
                let file = disk.0.lock().unwrap().bytes.clone();
                assert_eq!(file, file_of(&log));
            }
        }
    }
}

/// RUN-11: when mending fails as well, the next call tries again.
#[test]
fn a_disk_that_goes_on_failing_is_told_each_time() {
    struct Full;
    impl Disk for Full {
        fn append(&mut self, _: &[u8]) -> io::Result<()> {
            Err(io::Error::from_raw_os_error(28))
        }
        fn sync(&mut self) -> io::Result<()> {
            Ok(())
        }
        fn cut(&mut self, _: u64) -> io::Result<()> {
            Err(io::Error::from_raw_os_error(5))
        }
    }
    let log = whole_turn();
    let mut store = Store::new(PathBuf::from("s"), Box::new(Full), 0, 60);
    let first = store.write(log.events()).unwrap_err().to_string();
    assert!(first.contains("could not be written"), "{first}");
    for _ in 0..2 {
        let next = store.write(log.events()).unwrap_err().to_string();
        assert!(next.contains("mended after a failed write"), "{next}");
    }
    assert_eq!(store.durable(), 0);
}

/// RUN-11: a session goes on in memory while its disk is full, and catches up.
#[tokio::test]
async fn a_session_catches_up_after_its_disk_was_full() {
    let head = file_of(&Log::new());
    let disk = Faulty::new(&head, Some((1, 7)), 28);
    let session = Session::new(header());
    let store = Store::new(
        PathBuf::from("s"),
        Box::new(disk.clone()),
        0,
        head.len() as u64,
    );
    *session.store().lock().await = Some(store);
    session.append(turn_start(1)).unwrap();
    let error = session.sync().await.unwrap_err();
    assert!(matches!(error, StoreError::Io { .. }), "{error}");
    session.append(turn_end(1)).unwrap();
    session.sync().await.unwrap();
    let file = disk.0.lock().unwrap().bytes.clone();
    assert_eq!(file, file_of(&session.read(Clone::clone)));
}
