//! The recording on disk: `dsh-transcript/1`, written as it happens.
//!
//! Each event is one write, made before what it tells of is passed on, so that a process that is
//! killed leaves everything that passed. Several processes, at the same time or one after the
//! other, write to one file as processes 1, 2, … of one transcript: each event is added under a
//! lock of the file, behind what others added meanwhile.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use dsh_transcript::{Event, EventBody, jsonl, monotonic_us};
use memchr::{memchr, memmem};
use serde::{Deserialize, Serialize};

/// The part of a line that is looked at: its process is named at its beginning.
const HEAD: u64 = 4096;

/// Why a recording cannot be begun.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// It cannot be written.
    #[error(
        "the recording {} cannot be written: {source}; name another file with --log",
        path.display()
    )]
    Io {
        /// Where.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It is a pipe without a reader.
    #[error(
        "the recording {} is a pipe that nobody reads; start its reader first, or name a file with \
         --log",
        path.display()
    )]
    Unread {
        /// Where.
        path: PathBuf,
    },
    /// Something else is there.
    #[error(
        "{} is there and is no recording, so nothing is added to it; name another file with --log",
        path.display()
    )]
    NoRecording {
        /// Where.
        path: PathBuf,
    },
}

/// The first line. `origin_us` is ours: the moment from which the times of all processes count.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Header {
    format: String,
    #[serde(default)]
    origin_us: u64,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Log {
    /// None after the recording failed.
    file: Option<File>,
    path: PathBuf,
    /// Whether others can add to it; a pipe or device cannot be looked at.
    regular: bool,
    origin_us: u64,
    /// The number of the next event, and where the file ended when it was that.
    next: u64,
    length: u64,
    process: u32,
}

/// Opens what is recorded into; none where it is a pipe that nobody reads. That one would be waited
/// for by an open that blocks, and be its own reader by one for both.
fn opened(path: &Path) -> io::Result<Option<File>> {
    use rustix::fs::OFlags;
    use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};

    let kind = std::fs::metadata(path).map(|about| about.file_type());
    if !kind.is_ok_and(|kind| kind.is_fifo()) {
        let file = File::options()
            .append(true)
            .read(true)
            .create(true)
            .open(path);
        return match file {
            // A terminal may be writable only.
            Err(_) if path.exists() => File::options().append(true).open(path).map(Some),
            other => other.map(Some),
        };
    }
    let file = File::options()
        .append(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path);
    match file {
        Ok(file) => {
            let flags = rustix::fs::fcntl_getfl(&file)?;
            rustix::fs::fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
            Ok(Some(file))
        }
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// What is in a file already.
#[derive(Debug, Default)]
struct Tail {
    lines: u64,
    /// Bytes of whole lines.
    whole: u64,
    process: u32,
}

impl Log {
    /// Begins a recording, or goes on with the one that is there, as its next process.
    pub(super) fn open(path: &Path) -> Result<Self, LogError> {
        let io = |source| LogError::Io {
            path: path.to_owned(),
            source,
        };
        let file = match opened(path) {
            Ok(Some(file)) => file,
            Ok(None) => {
                return Err(LogError::Unread {
                    path: path.to_owned(),
                });
            }
            Err(source) => return Err(io(source)),
        };
        let regular = file.metadata().map_err(io)?.is_file();
        let mut log = Self {
            file: None,
            path: path.to_owned(),
            regular,
            origin_us: monotonic_us(),
            next: 0,
            length: 0,
            process: 1,
        };
        if regular {
            file.lock().map_err(io)?;
            let begun = log.begin(&file);
            let unlocked = file.unlock();
            match begun {
                Ok(true) => unlocked.map_err(io)?,
                Ok(false) => {
                    return Err(LogError::NoRecording {
                        path: path.to_owned(),
                    });
                }
                Err(error) => return Err(io(error)),
            }
        } else {
            (&file).write_all(&log.header()).map_err(io)?;
        }
        log.file = Some(file);
        Ok(log)
    }

    fn header(&self) -> Vec<u8> {
        let header = Header {
            format: jsonl::FORMAT.to_owned(),
            origin_us: self.origin_us,
        };
        let mut line = serde_json::to_vec(&header).unwrap_or_default();
        line.push(b'\n');
        line
    }

    /// Writes the header, or reads what is there, and takes the next process's number. False if it is something else.
    fn begin(&mut self, mut file: &File) -> io::Result<bool> {
        if file.metadata()?.len() == 0 {
            let header = self.header();
            file.write_all(&header)?;
            self.length = header.len() as u64;
            return self.claim(file);
        }
        file.seek(SeekFrom::Start(0))?;
        let mut first = Vec::new();
        let mut source = BufReader::new(file);
        source.by_ref().take(HEAD).read_until(b'\n', &mut first)?;
        match serde_json::from_slice::<Header>(&first) {
            Ok(header) if header.format == jsonl::FORMAT && first.ends_with(b"\n") => {
                // The clock begins anew with the machine.
                if header.origin_us > 0 && header.origin_us < self.origin_us {
                    self.origin_us = header.origin_us;
                }
            }
            _ => return Ok(false),
        }
        self.length = first.len() as u64;
        let tail = tail(source)?;
        self.take(file, &tail)?;
        self.process = tail.process + 1;
        self.claim(file)
    }

    /// Takes the number by an event of it, before anybody else can look.
    fn claim(&mut self, file: &File) -> io::Result<bool> {
        let message = "what passes to and from the server is recorded";
        self.append(file, EventBody::note("tap", message))?;
        Ok(true)
    }

    /// Counts what others added. A line without an end is that of a process that was killed while
    /// it wrote, or whose disk was full: it is taken away, so that the rest can be read.
    fn take(&mut self, file: &File, tail: &Tail) -> io::Result<()> {
        self.next += tail.lines;
        self.length += tail.whole;
        if file.metadata()?.len() > self.length {
            file.set_len(self.length)?;
        }
        Ok(())
    }

    /// The number of this process in the recording.
    #[cfg(test)]
    fn process(&self) -> u32 {
        self.process
    }

    /// Adds an event that happens now. Where that fails, the recording ends here; the complaint is
    /// returned, once.
    pub(super) fn add(&mut self, body: EventBody) -> Option<String> {
        let file = self.file.take()?;
        match self.try_add(&file, body) {
            Ok(()) => {
                self.file = Some(file);
                None
            }
            Err(error) => Some(format!(
                "dsh-conform tap: the recording {} ends here, the server goes on: {error}",
                self.path.display()
            )),
        }
    }

    fn try_add(&mut self, mut file: &File, body: EventBody) -> io::Result<()> {
        if !self.regular {
            let line = self.line(body)?;
            file.write_all(&line)?;
            self.next += 1;
            return Ok(());
        }
        file.lock()?;
        let added = self.add_locked(file, body);
        let unlocked = file.unlock();
        added.and(unlocked)
    }

    fn add_locked(&mut self, mut file: &File, body: EventBody) -> io::Result<()> {
        let length = file.metadata()?.len();
        if length < self.length {
            return Err(io::Error::other("somebody else made the file shorter"));
        }
        if length > self.length {
            file.seek(SeekFrom::Start(self.length))?;
            let tail = tail(BufReader::new(file))?;
            self.take(file, &tail)?;
        }
        self.append(file, body)
    }

    fn append(&mut self, mut file: &File, body: EventBody) -> io::Result<()> {
        let line = self.line(body)?;
        if let Err(error) = file.write_all(&line) {
            // Half a line would make the rest unreadable.
            let _ = file.set_len(self.length);
            return Err(error);
        }
        self.next += 1;
        self.length += line.len() as u64;
        Ok(())
    }

    fn line(&self, body: EventBody) -> io::Result<Vec<u8>> {
        let event = Event {
            seq: self.next,
            at_us: monotonic_us().saturating_sub(self.origin_us),
            process: Some(self.process),
            body,
        };
        let mut line = Vec::new();
        jsonl::write_event(&mut line, &event)?;
        Ok(line)
    }
}

/// Reads lines to the end, holding the beginning of one at a time.
fn tail(mut source: impl io::BufRead) -> io::Result<Tail> {
    let mut tail = Tail::default();
    let mut head = Vec::new();
    loop {
        head.clear();
        let mut count = source.by_ref().take(HEAD).read_until(b'\n', &mut head)?;
        let mut complete = head.ends_with(b"\n");
        while !complete {
            let more = source.fill_buf()?;
            if more.is_empty() {
                return Ok(tail);
            }
            let end = memchr(b'\n', more);
            complete = end.is_some();
            let taken = end.map_or(more.len(), |at| at + 1);
            source.consume(taken);
            count += taken;
        }
        tail.lines += 1;
        tail.whole += count as u64;
        tail.process = tail.process.max(process(&head).unwrap_or(0));
    }
}

/// The number of the process that a line tells of.
fn process(head: &[u8]) -> Option<u32> {
    let event = memmem::find(head, b"\"event\":")?;
    let before = &head[..event];
    let at = memmem::find(before, b"\"process\":")? + b"\"process\":".len();
    let digits = before[at..].split(|byte| !byte.is_ascii_digit()).next()?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use dsh_transcript::{EventBody, jsonl};

    use super::Log;

    fn started(pid: u32) -> EventBody {
        EventBody::ProcessStarted {
            pid,
            // Longer than what is looked at, with a text that looks like another event.
            argv: vec!["\"process\":9".repeat(600)],
            cwd: None,
        }
    }

    #[test]
    fn several_write_to_one_recording_in_turn() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        let mut first = Log::open(&path).unwrap();
        assert_eq!(first.add(started(10)), None);
        let mut second = Log::open(&path).unwrap();
        assert_eq!((first.process(), second.process()), (1, 2));
        assert_eq!(second.add(started(20)), None);
        for turn in 0..5 {
            assert_eq!(first.add(EventBody::note("x", format!("{turn}"))), None);
            assert_eq!(second.add(EventBody::note("y", format!("{turn}"))), None);
        }
        let third = Log::open(&path).unwrap();
        assert_eq!(third.process(), 3);
        let events = jsonl::read(std::fs::read(&path).unwrap().as_slice()).unwrap();
        assert_eq!(events.len(), 15);
        assert!(events.is_sorted_by_key(|event| event.at_us));
        assert_eq!(events[14].process, Some(3));
    }

    #[test]
    fn half_a_line_of_one_that_was_killed_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        let mut log = Log::open(&path).unwrap();
        assert_eq!(log.add(started(1)), None);
        let torn = |text: &str| {
            let mut file = std::fs::File::options().append(true).open(&path).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        };
        torn("{\"seq\":1,\"atUs\"");
        assert_eq!(log.add(EventBody::note("x", "after")), None);
        torn("{");
        let mut second = Log::open(&path).unwrap();
        assert_eq!(second.add(started(2)), None);
        let events = jsonl::read(std::fs::read(&path).unwrap().as_slice()).unwrap();
        assert_eq!(events.len(), 5);
    }

    #[test]
    fn another_file_is_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.txt");
        for text in ["dear diary\n", "{\"format\":\"dsh-transcript/2\"}\n", "{"] {
            std::fs::write(&path, text).unwrap();
            let error = Log::open(&path).unwrap_err();
            assert!(error.to_string().contains("no recording"), "{error}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn a_full_disk_ends_the_recording_with_one_complaint() {
        if !std::path::Path::new("/dev/full").exists() {
            return;
        }
        let error = Log::open("/dev/full".as_ref()).unwrap_err();
        assert!(error.to_string().contains("/dev/full"), "{error}");
    }

    #[test]
    fn a_recording_that_was_emptied_is_not_gone_on_with() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        let mut log = Log::open(&path).unwrap();
        std::fs::write(&path, "").unwrap();
        let complaint = log.add(started(1)).unwrap();
        assert!(complaint.contains("ends here"), "{complaint}");
        assert_eq!(log.add(started(1)), None);
    }
}
