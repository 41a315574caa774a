//! Process trees on Linux.
//!
//! What makes signalling safe:
//! - **The leader is reaped last.** As long as it was not, dead or alive, the kernel gives its pid
//!   to nobody, so the group of that number is this tree's. It is reaped only when the group is
//!   empty, and from then on the group is not signalled. How it ended is told before that.
//! - **Members are pinned** (see `pin`): a pid that was used again is never signalled.
//!
//! Membership is the group, and what descends from a member by parent links at the time of looking.
//! What left both ways is found by the mark in its environment, when the tree is ended.
//!
//! Needs `/proc` and pidfds (Linux 5.3).

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid,
};
use tokio::time::timeout;

use super::pin::{self, Pinned};
use super::table::{self, Environment, Identity, Process};
use super::{PAUSE, exit_of};
use crate::marker::Marker;
use crate::milestone::Milestone;
use crate::service::{ChildExit, MemberInfo, TerminationReport};

/// How long a process that cannot be awaited for ever is awaited: one that escaped, and those that
/// are killed when nobody is there to wait.
const LAST_WAIT: Duration = Duration::from_secs(3);

/// How often ending what escaped is tried anew, for what was started while it was looked for.
const ROUNDS: usize = 8;

/// How often the environment of a process that is replacing its program is looked at.
const EXEC_LOOKS: usize = 100;

/// How often an environment that may not be looked at is tried.
const DENIED_LOOKS: usize = 8;

/// Pause between such looks.
const EXEC_PAUSE: Duration = Duration::from_millis(3);

/// How often a look at the table is tried anew when descriptors are short.
const LOOKS: usize = 200;

/// A leader and what belongs to it.
#[derive(Debug)]
pub(crate) struct Tree {
    pid: Pid,
    leader: Identity,
    descriptor: OwnedFd,
    marker: Marker,
    child: Mutex<Leader>,
    exit: Milestone<ChildExit>,
    /// The group was seen empty and the leader was reaped.
    emptied: Milestone<()>,
    /// Nothing is left to be done by [`Tree::kill_now`].
    over: AtomicBool,
    /// Held while the table is looked at, so that [`Tree::kill_now`] is the last to look. True once
    /// nobody was left, neither a member nor one that carries the mark: nobody is there then who
    /// could start another, and the table need not be read again.
    deserted: Mutex<bool>,
}

#[derive(Debug)]
struct Leader {
    child: Child,
    reaped: bool,
}

/// Who is alive of a tree at one moment.
#[derive(Debug, Default)]
struct Survey {
    members: Vec<Pinned>,
    /// Those that carry the mark and are no members.
    escaped: Vec<Pinned>,
}

impl Tree {
    /// Takes charge of a child that was just started as the leader of its group.
    ///
    /// The error says what the system lacks; the child is ended then.
    pub(crate) fn new(mut child: Child, marker: Marker) -> Result<Self, String> {
        match Self::identify(&child) {
            Ok((pid, start, descriptor)) => Ok(Self {
                pid,
                leader: (pid.as_raw_nonzero().get(), start),
                descriptor,
                marker,
                child: Mutex::new(Leader {
                    child,
                    reaped: false,
                }),
                exit: Milestone::new(),
                emptied: Milestone::new(),
                over: AtomicBool::new(false),
                deserted: Mutex::new(false),
            }),
            Err(reason) => {
                // Both fail only if it has ended already.
                let _ = child.kill();
                let _ = child.wait();
                Err(reason)
            }
        }
    }

    fn identify(child: &Child) -> Result<(Pid, u64, OwnedFd), String> {
        let pid = Pid::from_child(child);
        let descriptor = pidfd_open(pid, PidfdFlags::empty()).map_err(|errno| {
            format!("no pidfd of it could be opened ({errno}); Linux 5.3 or later is needed")
        })?;
        let process = table::read_one(pid.as_raw_nonzero().get())
            .map_err(|error| format!("/proc cannot be read ({error})"))?
            .ok_or("/proc does not show it; mount /proc, so that its helpers can be ended")?;
        Ok((pid, process.start, descriptor))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.leader.0.unsigned_abs()
    }

    pub(crate) fn exit(&self) -> &Milestone<ChildExit> {
        &self.exit
    }

    pub(crate) fn emptied(&self) -> &Milestone<()> {
        &self.emptied
    }

    /// Follows the tree without a signal: tells how the leader ended, then waits until the group
    /// is empty and reaps the leader.
    pub(crate) async fn watch(self: &Arc<Self>) {
        pin::ended(self.descriptor.as_fd()).await;
        self.tell_exit();
        loop {
            // With the mark, so that ending a tree that is deserted takes no second look.
            let Some(Survey { members, .. }) = self.look(true, HashSet::new()).await else {
                continue;
            };
            if members.is_empty() {
                self.reap();
            }
            tokio::select! {
                biased;
                () = async { self.emptied.wait().await; } => return,
                () = pin::all_ended(&members) => {}
            }
        }
    }

    /// The members that are alive.
    pub(crate) async fn alive(self: &Arc<Self>) -> Vec<MemberInfo> {
        let survey = self.look(false, HashSet::new()).await.unwrap_or_default();
        survey.members.iter().map(Pinned::info).collect()
    }

    /// Ends all members, and then what escaped (ENV-6).
    pub(crate) async fn terminate(self: &Arc<Self>, grace: Duration) -> TerminationReport {
        let mut report = TerminationReport::default();
        let escaped = self.end_members(grace, &mut report).await;
        self.reap();
        self.end_escaped(escaped, &mut report).await;
        self.over.store(true, Ordering::Release);
        report
    }

    /// SIGTERM to each member, SIGKILL to those that outlive the grace; returns when none is left,
    /// with what was seen of those that escaped.
    async fn end_members(
        self: &Arc<Self>,
        grace: Duration,
        report: &mut TerminationReport,
    ) -> Vec<Pinned> {
        let started = Instant::now();
        let mut asked: Vec<Pinned> = Vec::new();
        let mut killing = false;
        // Those that we have no right to signal: not to be waited for, and told as escaped.
        let mut beyond: HashSet<Identity> = HashSet::new();
        let mut told: HashSet<Identity> = HashSet::new();
        loop {
            let known = asked.iter().map(Pinned::identity).collect();
            let Some(mut survey) = self.look(true, known).await else {
                // Blind: what can be ended without looking is.
                self.kill_group();
                pin::ended(self.descriptor.as_fd()).await;
                return Vec::new();
            };
            survey
                .members
                .retain(|member| !beyond.contains(&member.identity()));
            if survey.members.is_empty() {
                return survey.escaped;
            }
            let (signal, list) = if killing {
                // All at once: a member that is just starting another one has no time to.
                self.kill_group();
                (Signal::KILL, &mut report.killed)
            } else {
                (Signal::TERM, &mut report.terminated)
            };
            for member in &survey.members {
                if !told.insert(member.identity()) {
                    continue;
                }
                match member.signal(signal) {
                    Ok(()) => list.push(member.info()),
                    Err(errno) => {
                        tracing::warn!(member = ?member.info(), %errno, "not ours to end");
                        report.escaped.push(member.info());
                        beyond.insert(member.identity());
                    }
                }
            }
            survey
                .members
                .retain(|member| !beyond.contains(&member.identity()));
            asked = survey.members;
            if killing {
                pin::all_ended(&asked).await;
                continue;
            }
            let left = grace.saturating_sub(started.elapsed());
            let in_time = timeout(left, pin::all_ended(&asked)).await.is_ok();
            if !in_time || started.elapsed() >= grace {
                killing = true;
                told.clear();
            }
        }
    }

    /// SIGKILL to those that carry the mark but left the tree; waits a bounded time for each.
    async fn end_escaped(self: &Arc<Self>, mut found: Vec<Pinned>, report: &mut TerminationReport) {
        let mut told: HashSet<Identity> = HashSet::new();
        for _ in 0..ROUNDS {
            found.retain(|escaped| told.insert(escaped.identity()));
            if found.is_empty() {
                return;
            }
            for escaped in &found {
                report.escaped.push(escaped.info());
                if let Err(errno) = escaped.signal(Signal::KILL) {
                    tracing::warn!(escaped = ?escaped.info(), %errno, "not ours to end");
                }
            }
            if timeout(LAST_WAIT, pin::all_ended(&found)).await.is_err() {
                tracing::warn!(?found, "alive still, although killed");
            }
            found = self
                .look(true, HashSet::new())
                .await
                .unwrap_or_default()
                .escaped;
        }
    }

    /// Ends everything at once, blocking, for when nobody is left to wait (DIS-6): SIGKILL to the
    /// group, its descendants and what escaped, then a wait for their end, bounded.
    /// Does nothing once the tree was ended.
    pub(crate) fn kill_now(&self) {
        if self.over.swap(true, Ordering::AcqRel) {
            return;
        }
        let deadline = Instant::now() + LAST_WAIT;
        let mut known = HashSet::new();
        loop {
            self.kill_group();
            let survey = self.survey(true, &known);
            let looked = survey.is_ok();
            let Survey {
                mut members,
                escaped,
            } = survey.unwrap_or_default();
            members.extend(escaped);
            known.extend(members.iter().map(Pinned::identity));
            for member in &members {
                // Not ours to end: nothing more can be done.
                let _ = member.signal(Signal::KILL);
            }
            pin::block_until_ended(&members, deadline);
            if (looked && members.is_empty()) || Instant::now() >= deadline {
                break;
            }
        }
        self.reap();
    }

    /// A survey on a thread that may block, tried anew while descriptors are short; `None` if they
    /// stay so.
    async fn look(self: &Arc<Self>, marked: bool, known: HashSet<Identity>) -> Option<Survey> {
        for _ in 0..LOOKS {
            let (tree, known) = (Arc::clone(self), known.clone());
            let look = tokio::task::spawn_blocking(move || {
                // The thread may get to it only after everybody has left.
                if tree.over.load(Ordering::Acquire) {
                    return Ok(Survey::default());
                }
                tree.survey(marked, &known)
            });
            match look.await {
                Ok(Ok(survey)) => return Some(survey),
                Ok(Err(error)) => tracing::warn!(%error, "the process table cannot be read"),
                Err(error) => tracing::warn!(%error, "the process table was not read"),
            }
            #[expect(
                clippy::disallowed_methods,
                reason = "no event tells that descriptors became free"
            )]
            tokio::time::sleep(PAUSE).await;
        }
        None
    }

    /// Who is alive, the leader included. Blocking: it reads the table of processes, and, if what
    /// is `marked` is asked for, the environment of those that started after the leader.
    fn survey(&self, marked: bool, known: &HashSet<Identity>) -> io::Result<Survey> {
        let mut deserted = self.deserted.lock().unwrap_or_else(PoisonError::into_inner);
        if *deserted {
            return Ok(Survey::default());
        }
        let processes = table::read()?;
        let mut survey = Survey::default();
        let mut pids = HashSet::new();
        let mut alive = false;
        for process in table::members(&processes, self.leader, known) {
            pids.insert(process.pid);
            alive |= !process.zombie;
            survey.members.extend(Pinned::take(process)?);
        }
        // Once the leader was reaped, its group is empty, and the number may be another's.
        if self.child().reaped {
            survey
                .members
                .retain(|member| known.contains(&member.identity()));
            pids = survey
                .members
                .iter()
                .map(|member| member.process.pid)
                .collect();
        }
        if marked {
            let own = std::process::id();
            let candidates = processes.iter().filter(|process| {
                process.start >= self.leader.1
                    && !pids.contains(&process.pid)
                    && process.pid.unsigned_abs() != own
                    && !process.kernel
                    && !process.zombie
            });
            let (escaped, none) = self.marked(candidates.collect())?;
            survey.escaped = escaped;
            // A member that ended since the table was read may have started another.
            *deserted = none && !alive;
        }
        Ok(survey)
    }

    /// Those of `candidates` that carry the mark, and whether it is sure that none did.
    fn marked(&self, candidates: Vec<&Process>) -> io::Result<(Vec<Pinned>, bool)> {
        let mut found = Vec::new();
        let mut none = true;
        // With how often each could not be looked into.
        let mut undecided: Vec<(&Process, usize)> =
            candidates.into_iter().map(|process| (process, 0)).collect();
        for _ in 0..EXEC_LOOKS {
            let mut left = Vec::new();
            for (process, denied) in undecided {
                match table::environment(process)? {
                    Environment::Changing => left.push((process, denied)),
                    Environment::Denied if denied < DENIED_LOOKS => {
                        left.push((process, denied + 1));
                    }
                    Environment::Block(block) if self.marker.is_in(&block) => {
                        none = false;
                        found.extend(Pinned::take(process)?);
                    }
                    // It may have ended meanwhile, and started another before that.
                    Environment::Block(block) => none &= !block.is_empty(),
                    Environment::Denied => none = false,
                }
            }
            undecided = left;
            if undecided.is_empty() {
                break;
            }
            #[expect(
                clippy::disallowed_methods,
                reason = "no event tells the end of an exec"
            )]
            std::thread::sleep(EXEC_PAUSE);
        }
        none &= undecided.is_empty();
        Ok((found, none))
    }

    /// SIGKILL to the whole group, if it is surely this tree's.
    fn kill_group(&self) {
        let leader = self.child();
        if !leader.reaped {
            // Fails if none is alive, or none is ours to end.
            let _ = kill_process_group(self.pid, Signal::KILL);
        }
    }

    /// Tells how the leader ended without reaping it.
    fn tell_exit(&self) {
        let leader = self.child();
        if leader.reaped {
            return;
        }
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        let status = waitid(WaitId::Pid(self.pid), options).ok().flatten();
        self.exit.reach(status.map_or(ChildExit::Unknown, |status| {
            let code = status.exit_status().map(ChildExit::Code);
            let signal = status.terminating_signal().map(ChildExit::Signal);
            code.or(signal).unwrap_or(ChildExit::Unknown)
        }));
    }

    /// Reaps a leader that has ended; the group must be empty, or given up.
    fn reap(&self) {
        let mut leader = self.child();
        if leader.reaped {
            return;
        }
        let exit = match leader.child.try_wait() {
            Ok(Some(status)) => exit_of(status),
            Ok(None) => return,
            // Reaped behind our back: whoever started us ignores the end of children.
            Err(_) => ChildExit::Unknown,
        };
        leader.reaped = true;
        self.exit.reach(exit);
        self.emptied.reach(());
    }

    fn child(&self) -> MutexGuard<'_, Leader> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.kill_now();
    }
}
