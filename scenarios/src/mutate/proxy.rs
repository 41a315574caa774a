//! The process that tampers: a [`Tamperer`] between a client and its server.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Stdio};

use dsh_transcript::Direction;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use signal_hook::consts::SIGTERM;

use super::form::{Life, Spec};
use super::wire::{Order, Tamperer};
use crate::tap::{Between, Ending, Exec, OnSignal, Out, Relay, StartError, spawn};

/// How long what holds a server's pipes lives at most.
const HOLD: Timespec = Timespec {
    tv_sec: 20,
    tv_nsec: 0,
};

/// Stands between client and server as [`tap`](crate::tap::run) does, and tampers.
///
/// `trampoline` is as for the tap, `holder` this program and the arguments by which it comes to
/// [`hold`].
pub fn tamper(
    trampoline: Vec<OsString>,
    holder: Vec<OsString>,
    spec: Spec,
    command: Vec<OsString>,
) -> Result<Ending, StartError> {
    let mut proxy = Proxy {
        trampoline,
        holder,
        command,
        report: spec.report,
        tamperer: Tamperer::new(spec.wire, spec.life.clone()),
        life: spec.life,
        second: None,
        starts: 0,
        told: None,
    };
    let ending = Relay::start(&mut proxy)?.run();
    if let Some(mut second) = proxy.second.take() {
        let _ = second.kill();
        let _ = second.wait();
    }
    ending
}

/// Keeps stdin and stdout open until nobody is at their other ends.
pub fn hold() {
    let stdin = io::stdin();
    loop {
        // Our stdin is a pipe's writing end: it tells when its reader is gone.
        let mut fds = [PollFd::new(&stdin, PollFlags::empty())];
        match poll(&mut fds, Some(&HOLD)) {
            Err(rustix::io::Errno::INTR) => {}
            _ => return,
        }
    }
}

struct Proxy {
    trampoline: Vec<OsString>,
    holder: Vec<OsString>,
    command: Vec<OsString>,
    report: PathBuf,
    tamperer: Tamperer,
    life: Vec<Life>,
    /// Another server that gets the same.
    second: Option<Child>,
    starts: u32,
    /// What a server that is started again is told first.
    told: Option<Vec<u8>>,
}

impl Proxy {
    fn lives(&self, life: Life) -> bool {
        self.life.contains(&life)
    }

    /// Tells that something was tampered with.
    fn report(&self, what: &str) {
        let file = File::options().append(true).create(true).open(&self.report);
        // Where that fails, the mutant counts as one that did nothing.
        let _ = file.and_then(|mut file| writeln!(file, "{what}"));
    }

    fn obey(&mut self, orders: Vec<Order>, out: &mut Out) {
        for order in orders {
            match order {
                Order::Write(direction, bytes) => {
                    if direction == Direction::ToServer
                        && let Some(stdin) = self
                            .second
                            .as_mut()
                            .and_then(|second| second.stdin.as_mut())
                    {
                        let _ = stdin.write_all(&bytes);
                    }
                    out.write(direction, &bytes);
                }
                Order::Kill(name) => out.kill = Some(named(&name)),
                Order::CloseStdin => out.close_server = true,
                Order::Leave => out.end = Some(Ending::Exit(0)),
                Order::Applied => self.report("wire"),
            }
        }
    }
}

fn named(name: &str) -> Signal {
    match name {
        "SIGTERM" => Signal::TERM,
        "SIGSTOP" => Signal::STOP,
        _ => Signal::KILL,
    }
}

impl Between for Proxy {
    fn start(&mut self) -> Result<Child, StartError> {
        self.starts += 1;
        let adrift = self.lives(Life::Adrift);
        let how = Exec {
            under: (!adrift).then(std::process::id),
            adrift,
            directory: self.lives(Life::InRoot).then(|| PathBuf::from("/")),
        };
        for (life, what) in [(Life::Adrift, "adrift"), (Life::InRoot, "in root")] {
            if self.lives(life) {
                self.report(what);
            }
        }
        if self.lives(Life::Second) && self.second.is_none() {
            let mut second = spawn(&self.trampoline, &how, &self.command)?;
            // Nobody hears it.
            second.stdout = None;
            second.stderr = None;
            self.second = Some(second);
            self.report("second");
        }
        Ok(spawn(&self.trampoline, &how, &self.command)?)
    }

    fn first(&mut self, out: &mut Out) {
        for (life, what) in [
            (Life::StderrUnread, "stderr unread"),
            (Life::Buffered, "buffered"),
        ] {
            if self.lives(life) {
                self.report(what);
            }
        }
        if let Some(told) = self.told.take() {
            out.write(Direction::ToServer, &told);
        }
    }

    fn bytes(&mut self, direction: Direction, bytes: &[u8], out: &mut Out) {
        let orders = self.tamperer.read(direction, bytes);
        self.obey(orders, out);
    }

    fn closed(&mut self, direction: Direction, out: &mut Out) {
        let orders = self.tamperer.ended(direction);
        self.obey(orders, out);
        if direction == Direction::ToServer && self.lives(Life::StdinStaysOpen) {
            self.report("stdin stays open");
            out.close_server = false;
            if self.lives(Life::Adrift) {
                out.end = Some(Ending::Exit(0));
            }
        }
    }

    fn stderr(&mut self, _: &[u8]) {}

    fn signal(&mut self, signal: i32) -> OnSignal {
        match signal {
            SIGTERM if self.lives(Life::DeafToSigterm) => {
                self.report("SIGTERM");
                OnSignal::Ignore
            }
            // The server is not where a signal to us would reach it.
            _ if self.lives(Life::Adrift) => OnSignal::Die,
            _ => OnSignal::Pass,
        }
    }

    fn ended(&mut self, _: ExitStatus, out: &mut Out) {
        if !self.lives(Life::Replayed) || self.starts > 1 {
            return;
        }
        if let Some(told) = self.tamperer.replay() {
            self.told = Some(told);
            self.report("replayed");
            out.restart = true;
        }
    }

    fn drains(&self) -> bool {
        !self.lives(Life::StderrUnread)
    }

    fn adrift(&self) -> bool {
        self.lives(Life::Adrift)
    }

    fn outlives(&self) -> bool {
        self.lives(Life::Replayed) && self.starts == 1
    }

    fn takes_everything(&self) -> bool {
        self.lives(Life::Buffered)
    }

    fn left(&mut self, stdin: OwnedFd, stdout: OwnedFd) {
        if !self.lives(Life::Adrift) || !self.lives(Life::StdinStaysOpen) {
            return;
        }
        let how = Exec {
            adrift: true,
            ..Exec::default()
        };
        let Some((program, arguments)) = self.trampoline.split_first() else {
            return;
        };
        let mut holder = std::process::Command::new(program);
        holder
            .args(arguments)
            .args(how.arguments())
            .arg("--")
            .args(&self.holder)
            .env_clear()
            .stdin(Stdio::from(stdin))
            .stdout(Stdio::from(stdout))
            .stderr(Stdio::null());
        if let Ok(mut child) = holder.spawn() {
            // The one in between; the holder itself ends with the server.
            let _ = child.wait();
        }
    }
}
