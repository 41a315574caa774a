//! The process that outlives its server.

use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::control::link::Link;
use crate::script::Helper;

/// How long a helper may take to be ready.
const PATIENCE: Duration = Duration::from_secs(10);

/// How a helper was told to live.
#[derive(Clone, Debug)]
pub(crate) struct HelperOptions {
    pub(crate) deaf: bool,
    pub(crate) new_session: bool,
    pub(crate) orphan: bool,
    pub(crate) life_ms: u64,
    pub(crate) control: Option<String>,
}

/// Starts a helper and waits until it is ready; returns its process id, and the child to be
/// reaped if it is one.
pub(super) fn start(
    helper: &Helper,
    prefix: &[OsString],
    control: Option<&str>,
) -> io::Result<(u32, Option<Child>)> {
    let (ours, theirs) = UnixStream::pair()?;
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(prefix)
        .arg("--helper")
        .arg("--life-ms")
        .arg(helper.life_ms.to_string());
    for (flag, given) in [
        ("--deaf", helper.deaf),
        ("--new-session", helper.new_session),
        ("--orphan", helper.orphan),
    ] {
        if given {
            command.arg(flag);
        }
    }
    if let Some(address) = control {
        command.arg("--control").arg(address);
    }
    let other = || {
        if helper.inherit {
            Stdio::inherit()
        } else {
            Stdio::null()
        }
    };
    command
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(other())
        .stderr(other());
    let mut child = command.spawn()?;
    // The command holds their end until it is dropped, and would keep the read below waiting.
    drop(command);
    ours.set_read_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    let read = BufReader::new(ours).read_line(&mut line);
    let pid = line.trim().parse::<u32>();
    match (read, pid) {
        (Ok(_), Ok(pid)) if helper.orphan => {
            // The one in between has ended, or is about to.
            child.wait()?;
            Ok((pid, None))
        }
        (Ok(_), Ok(pid)) => Ok((pid, Some(child))),
        (read, _) => {
            let _ = child.kill();
            let _ = child.wait();
            Err(read
                .err()
                .unwrap_or_else(|| io::Error::other("the helper did not start")))
        }
    }
}

/// Lives as a helper; stdin is the socket on which it says that it is ready.
pub(crate) fn live(options: &HelperOptions, prefix: &[OsString]) -> io::Result<i32> {
    if options.orphan {
        // The process in between: it starts the real one, which says its own readiness.
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(prefix)
            .arg("--helper")
            .arg("--life-ms")
            .arg(options.life_ms.to_string());
        for (flag, given) in [
            ("--deaf", options.deaf),
            ("--new-session", options.new_session),
        ] {
            if given {
                command.arg(flag);
            }
        }
        if let Some(address) = &options.control {
            command.arg("--control").arg(address);
        }
        // Left behind on purpose: outliving its parent is what it is for. It ends by itself.
        command.spawn()?;
        return Ok(0);
    }
    if options.new_session {
        rustix::process::setsid()?;
    }
    if options.deaf {
        for signal in [SIGTERM, SIGINT, SIGHUP] {
            let seen = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
            signal_hook::flag::register(signal, seen)?;
        }
    }
    let link = options.control.as_deref().map(Link::helper).transpose()?;
    let ready = io::stdin().as_fd().try_clone_to_owned()?;
    let mut ready = UnixStream::from(ready);
    writeln!(ready, "{}", std::process::id())?;
    drop(ready);
    super::output::close(crate::script::Stream::Stdin)?;
    rest(link.as_ref(), Duration::from_millis(options.life_ms))
}

/// Waits for the end of the control channel or of its time.
fn rest(link: Option<&Link>, life: Duration) -> io::Result<i32> {
    let start = Instant::now();
    loop {
        let Some(left) = life.checked_sub(start.elapsed()) else {
            return Ok(0);
        };
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        // The runner never speaks to a helper: news is the end.
        let mut fds: Vec<PollFd<'_>> = link
            .iter()
            .map(|link| PollFd::new(link.stream(), PollFlags::IN))
            .collect();
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(0),
            Err(error) => return Err(error.into()),
        }
    }
}
