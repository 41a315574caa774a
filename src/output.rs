//! Writing to the terminal: results on stdout, everything else on stderr.

use std::io::{self, IsTerminal as _, Write as _};

use crate::lines::wrapped;
use crate::signals;

/// Stdout does not take what is written; the user was told so.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unwritten;

/// What became of text for stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Printed {
    /// It was written.
    Whole,
    /// The reader is gone.
    Unread,
    /// It cannot be written; the user was told so.
    Failed,
}

/// Whether there is a stdout. Where the shell has closed it, as with `>&-`, the standard library
/// opens `/dev/null` in its place before `main`, and what is written is lost without an error.
pub(crate) fn open() -> io::Result<()> {
    if closed::is_closed() {
        let message = "stdout is closed, and what is printed would be lost;                        let it lead to a file, or to /dev/null where it is not wanted";
        return Err(io::Error::other(message));
    }
    Ok(())
}

/// From then on only `/dev/null` itself can be seen, and many open that for their children exactly
/// as the standard library does, so this is looked at before the standard library begins.
#[cfg(unix)]
mod closed {
    use std::sync::atomic::{AtomicBool, Ordering};

    static CLOSED: AtomicBool = AtomicBool::new(false);

    #[ctor::ctor]
    fn look() {
        let stdout = rustix::stdio::stdout();
        let closed = rustix::io::fcntl_getfd(stdout) == Err(rustix::io::Errno::BADF);
        CLOSED.store(closed, Ordering::Relaxed);
    }

    pub(super) fn is_closed() -> bool {
        CLOSED.load(Ordering::Relaxed)
    }
}

#[cfg(not(unix))]
mod closed {
    pub(super) const fn is_closed() -> bool {
        false
    }
}

/// Writes text to stdout. Everything but a reader that is gone is complained about here, so that no
/// caller can fail in silence.
pub(crate) fn print(text: &str) -> Printed {
    if let Err(error) = open() {
        complain(&format!("error: {error}"));
        return Printed::Failed;
    }
    let mut out = io::stdout().lock();
    match out.flush().and_then(|()| write(&out, text.as_bytes())) {
        Ok(()) => Printed::Whole,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Printed::Unread,
        Err(error) => {
            complain(&format!("error: cannot write to stdout: {error}"));
            Printed::Failed
        }
    }
}

/// The same where a reader that is gone, as behind `| head`, is nothing to complain about: what it
/// wanted it has read, and the same can be had again.
pub(crate) fn say(text: &str) -> Result<(), Unwritten> {
    match print(text) {
        Printed::Failed => Err(Unwritten),
        Printed::Whole | Printed::Unread => Ok(()),
    }
}

/// Writes lines in words that came from outside: a terminal takes no commands from them.
pub(crate) fn print_of_others(text: &str) -> Printed {
    if io::stdout().is_terminal() {
        print(&format!("{}\n", harmless(text)))
    } else {
        print(&format!("{text}\n"))
    }
}

/// The text without what moves a cursor, or turns the direction of what is read.
fn harmless(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' | '\t' => c,
        c if c.is_control() || matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}') => {
            '\u{FFFD}'
        }
        c => c,
    };
    text.chars().map(shown).collect()
}

/// Writes what there is to say to stderr, in lines of at most 80 columns. Where that is not possible there is nobody left to tell.
pub(crate) fn complain(text: &str) {
    let mut err = io::stderr().lock();
    let _ = err
        .flush()
        .and_then(|()| write(&err, format!("{}\n", wrapped(text)).as_bytes()));
}

/// How often a reader that takes nothing is looked at again, once this program was asked to end.
#[cfg(unix)]
const LOOKS: u32 = 10;
/// How long one look takes at most, in nanoseconds.
#[cfg(unix)]
const LOOK: i64 = 100_000_000;
/// What a pipe that takes anything takes without blocking (POSIX's smallest `PIPE_BUF`, and Linux's).
#[cfg(unix)]
const PIECE: usize = 4096;

/// Writes everything. A reader that takes nothing is waited for as long as it likes, until this
/// program is asked to end: from then on a second, and then it counts as gone. A write that blocks
/// would keep the signal from being acted upon.
#[cfg(unix)]
pub(crate) fn write(to: &impl std::os::fd::AsFd, mut text: &[u8]) -> io::Result<()> {
    use rustix::event::PollFlags;
    use rustix::io::Errno;

    let mut looks = 0;
    while !text.is_empty() {
        if !look(to, PollFlags::OUT)? {
            looks += u32::from(signals::asked().is_some());
            if looks > LOOKS {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            continue;
        }
        match rustix::io::write(to, &text[..text.len().min(PIECE)]) {
            Ok(written) => {
                text = &text[written..];
                looks = 0;
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Looks whether a read or a write would not block; a moment is waited for that.
#[cfg(unix)]
pub(crate) fn look(
    at: &impl std::os::fd::AsFd,
    wanted: rustix::event::PollFlags,
) -> io::Result<bool> {
    use rustix::event::{PollFd, Timespec, poll};

    let look = Timespec {
        tv_sec: 0,
        tv_nsec: LOOK,
    };
    match poll(&mut [PollFd::new(at, wanted)], Some(&look)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(unix))]
fn write(mut to: impl io::Write, text: &[u8]) -> io::Result<()> {
    to.write_all(text).and_then(|()| to.flush())
}

/// When to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Color {
    /// Whether stdout is coloured.
    pub(crate) fn on_stdout(self) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => {
                anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_takes_no_commands_from_outside() {
        assert_eq!(
            harmless("a\tb\nc\u{1b}[31m\u{202e}é"),
            "a\tb\nc\u{fffd}[31m\u{fffd}é"
        );
    }
}
