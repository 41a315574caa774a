//! Checking several servers: side by side within what the machine has, each within its bounds,
//! with progress, and going on where an earlier check was interrupted.

mod admission;
mod kept;
mod limit;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dsh_e2e::memory::{self, ProcessTable};
use dsh_e2e::{CheckError, Checked, Ground, Probe, Target};
use dsh_reports::{Division, Run};
use dsh_scenarios::suite::Shard;
use dsh_transcript::{Event, EventBody};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use super::outcome::{self, Outcome};
use super::selection::{Chosen, Refused, Server};
use super::{Args, Checker};
use crate::exit::Exit;
use crate::output::complain;
use crate::progress::Line;
use admission::Admission;
use kept::{Found, Kept};
pub(super) use limit::Limit;

/// What a check needs where its entry does not say, in MiB.
const NEED_MIB: u64 = 1024;

/// What all servers together may need where the machine does not tell, in MiB.
const MEMORY_MIB: u64 = 4096;

/// How long the check of one server may take unless the options say otherwise.
const SERVER_TIME: Duration = Duration::from_mins(30);

/// How often servers are looked at. The system has no event for memory that is taken.
const LOOK: Duration = Duration::from_millis(250);

/// Every how many looks the whole table of processes is read, which finds new ones and takes ten
/// times as long as the look itself.
const WHOLE_TABLE: u64 = 8;

/// The most bytes of a transcript that one of many servers leaves.
const TRANSCRIPT: usize = 16 << 20;

/// How several servers are checked.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Several servers")]
pub(super) struct Scale {
    /// Servers that are checked at the same time; as many as there are cores without this. Times
    /// are truest with one
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: Option<u16>,
    /// Memory for all servers that run at the same time, in MiB or as 4G; three quarters of what
    /// is available without this. A check begins when what it needs is left
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory: Option<u64>,
    /// The most memory one server may hold, its whole process tree; as much as --memory without
    /// this. One that takes more is ended, and reported
    #[arg(long, value_name = "SIZE", value_parser = size)]
    server_memory: Option<u64>,
    /// The most seconds that the check of one server may take; one that takes longer is ended, and
    /// reported
    #[arg(long, value_name = "S", default_value = "1800", value_parser = super::seconds)]
    server_time: Duration,
    /// Take over the runs that an interrupted check of the same servers, in the same way, has left
    /// in the folder of --out
    #[arg(long, conflicts_with = "command")]
    resume: bool,
    /// Check one part of the servers, to spread them over machines; report merge joins them
    #[arg(long, value_name = "I/N", conflicts_with = "command")]
    shard: Option<Shard>,
}

/// `512`, `512M`, `4G`: bytes.
fn size(text: &str) -> Result<u64, String> {
    let fault = || format!("{text:?} is no amount of memory; give MiB, 4096 for instance, or 4G");
    let lower = text.trim().to_lowercase();
    let lower = lower.trim_end_matches("ib").trim_end_matches('b');
    let (digits, unit) = match lower.strip_suffix('g') {
        Some(digits) => (digits, 1_u64 << 30),
        None => (lower.strip_suffix('m').unwrap_or(lower), 1 << 20),
    };
    let count: u64 = digits.parse().map_err(|_| fault())?;
    let bytes = count.checked_mul(unit).filter(|bytes| *bytes > 0);
    bytes.ok_or_else(fault)
}

impl Scale {
    /// How many servers are checked at the same time, at most.
    pub(super) fn places(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.jobs.map_or_else(cores, usize::from)
    }

    /// The options that bound the check of one server, where they were given.
    pub(super) fn bounds(&self) -> Vec<(&'static str, String)> {
        let mut bounds = Vec::new();
        if let Some(bytes) = self.server_memory {
            bounds.push(("--server-memory", bytes.div_ceil(1 << 20).to_string()));
        }
        if self.server_time != SERVER_TIME {
            let seconds = self.server_time.as_secs_f64().to_string();
            bounds.push(("--server-time", seconds));
        }
        bounds
    }

    /// In bytes.
    fn memory(&self) -> u64 {
        let machine = || memory::available().map_or(MEMORY_MIB << 20, |free| free / 4 * 3);
        self.memory.unwrap_or_else(machine)
    }

    /// The servers of this part; which the others have is kept for the report.
    pub(super) fn divide(&self, servers: &mut Vec<Server>) -> Result<Option<Division>, Refused> {
        let Some(shard) = self.shard else {
            return Ok(None);
        };
        let count = servers.len();
        let mut elsewhere = Vec::new();
        let mut own = Vec::new();
        // Neighbours go to different parts, so that each part has its share of what is alike.
        for (index, server) in std::mem::take(servers).into_iter().enumerate() {
            if index % shard.of() as usize == shard.number() as usize - 1 {
                own.push(server);
            } else {
                elsewhere.push(server.name().to_owned());
            }
        }
        if own.is_empty() {
            return Err(Refused {
                message: format!(
                    "nothing is selected: shard {shard} of {count} servers is empty; divide them \
                     into at most {count}"
                ),
                exit: Exit::NothingSelected,
            });
        }
        *servers = own;
        Ok(Some(Division {
            shards: vec![dsh_reports::Shard {
                index: shard.number(),
                of: shard.of(),
            }],
            elsewhere,
        }))
    }
}

/// What one check came to.
pub(super) struct Done {
    pub(super) checked: Checked,
    /// What it depends on; none where it is not worth keeping, or was kept before.
    pub(super) key: Option<Value>,
    /// Whether an earlier check found it.
    pub(super) taken_over: bool,
}

impl Done {
    /// What an earlier check found.
    pub(super) fn taken_over(run: Run) -> Self {
        Self {
            checked: Checked {
                run,
                events: Vec::new(),
                workspace: None,
            },
            key: None,
            taken_over: true,
        }
    }

    /// The run of a server that was not checked, and why.
    pub(super) fn absent(server: &Server, reason: &str) -> Self {
        let mut checked = outcome::absent(server.name(), reason);
        checked.run.subject.language = server.language();
        Self {
            checked,
            key: None,
            taken_over: false,
        }
    }
}

/// Where an earlier check may have left what this one would find.
#[derive(Clone)]
pub(super) struct Earlier {
    kept: Kept,
    resume: bool,
}

impl Earlier {
    /// The kept run of this very server, if there is one; what keeps one from counting is told.
    pub(super) fn find(&self, name: &str, key: &Value, line: &Line) -> Option<Run> {
        if !self.resume {
            return None;
        }
        match self.kept.find(name, key) {
            Found::Same(run) => Some(*run),
            Found::Other(why) => {
                line.announce(&format!("{name}: checked again, since {why}"));
                None
            }
            Found::None => None,
        }
    }
}

/// What a check of this server in this way depends on.
pub(super) fn key(args: &Args, program: &Path, target: &Target, ground: &Ground) -> Value {
    kept::key(args, &kept::build(program), target, ground)
}

type Ended = (usize, Result<Option<Done>, CheckError>);

/// The checks of one invocation while they run.
struct Whole {
    checker: Checker,
    only: Vec<&'static Probe>,
    servers: Vec<Server>,
    earlier: Earlier,
    admission: Admission,
    limits: BTreeMap<usize, Arc<Limit>>,
    /// In bytes.
    memory: u64,
    checks: JoinSet<Ended>,
    /// Which server a task is for.
    tasks: BTreeMap<tokio::task::Id, usize>,
    line: Option<Line>,
    done: usize,
    taken_over: usize,
    looks: u64,
}

/// Checks all servers that were chosen, and leaves the report.
pub(super) async fn run(checker: Checker, chosen: Chosen, mut outcome: Outcome) -> Exit {
    let scale = checker.args.scale.clone();
    let several = chosen.servers.len() > 1;
    let memory = scale.memory();
    let needs = chosen.servers.iter().map(Server::need);
    let needs: Vec<u64> = needs.map(|mib| mib.unwrap_or(NEED_MIB) << 20).collect();
    for server in &chosen.servers {
        outcome.expect(server.name());
    }
    let earlier = Earlier {
        kept: Kept::below(outcome.folder()),
        resume: scale.resume,
    };
    let mut whole = Whole {
        line: several.then(|| checker.progress.line("all")),
        only: chosen.only,
        earlier,
        admission: Admission::new(scale.places(), memory, needs),
        limits: BTreeMap::new(),
        memory,
        checks: JoinSet::new(),
        tasks: BTreeMap::new(),
        servers: chosen.servers,
        checker,
        done: 0,
        taken_over: 0,
        looks: 0,
    };
    whole.look_for_earlier_ones();
    whole.carry_out(&mut outcome).await;
    whole.tell_what_was_taken_over();
    drop(whole.line.take());
    let interrupted = whole.checker.interruption.exit().is_some();
    outcome.finish(interrupted, chosen.division)
}

impl Whole {
    async fn carry_out(&mut self, outcome: &mut Outcome) {
        let mut look = tokio::time::interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let interrupted = self.checker.interruption.token.clone();
        loop {
            if interrupted.is_cancelled() {
                self.admission.close();
            }
            while let Some(index) = self.admission.next() {
                self.begin(index);
            }
            self.show();
            tokio::select! {
                ended = self.checks.join_next_with_id() => match ended {
                    None => return,
                    Some(Ok((id, (index, ended)))) => {
                        self.tasks.remove(&id);
                        self.take(index, ended, outcome);
                    }
                    Some(Err(error)) => {
                        let fault = error.to_string();
                        outcome.fault(&fault);
                        if let Some(index) = self.tasks.remove(&error.id()) {
                            self.leave(index);
                            outcome.broken(index, &fault);
                        }
                    }
                },
                _ = look.tick() => self.look(),
                () = interrupted.cancelled(), if self.admission.waiting() > 0 => {}
            }
        }
    }

    fn begin(&mut self, index: usize) {
        let server = self.servers[index].clone();
        // One that is known to need more than the rest may have has it.
        let need = server.need().map_or(0, |mib| mib << 20);
        let most = self.checker.args.scale.server_memory;
        let limit = Arc::new(Limit::new(
            Arc::clone(&self.checker.subprocess),
            &self.checker.interruption,
            most.unwrap_or_else(|| self.memory.max(need)),
            self.checker.args.scale.server_time,
        ));
        self.limits.insert(index, Arc::clone(&limit));
        let checker = self.checker.clone();
        let (only, earlier) = (self.only.clone(), self.earlier.clone());
        if let Some(line) = &self.line {
            let (running, waiting) = (self.admission.running(), self.admission.waiting());
            line.plain(&format!(
                "{} begins; {} done, {running} running, {waiting} left",
                server.name(),
                self.done
            ));
        }
        let task = self.checks.spawn(async move {
            let ended = tokio::select! {
                biased;
                never = limit.enforce() => match never {},
                ended = checker.one(server, only, &limit, &earlier) => ended,
            };
            (index, ended)
        });
        self.tasks.insert(task.id(), index);
    }

    /// A check has ended: what it held is free again.
    fn leave(&mut self, index: usize) {
        self.limits.remove(&index);
        self.admission.ended(index);
        self.done += 1;
    }

    fn take(
        &mut self,
        index: usize,
        ended: Result<Option<Done>, CheckError>,
        outcome: &mut Outcome,
    ) {
        self.leave(index);
        let server = &self.servers[index];
        let mut done = match ended {
            Ok(Some(done)) => done,
            Ok(None) => return,
            Err(error) => Done::absent(server, &error.to_string()),
        };
        if done.taken_over {
            self.taken_over += 1;
        }
        let checker = &self.checker;
        let reproduce = || server.reproduce_whole(&checker.shell, &checker.args);
        let run = &mut done.checked.run;
        run.reproduce.get_or_insert_with(reproduce);
        if let Some(line) = &self.line {
            let run = &done.checked.run;
            let version = run.subject.version.as_deref().unwrap_or_default();
            let said = run.conclusion.to_string();
            let how = if done.taken_over {
                "taken over".to_owned()
            } else {
                dsh_reports::duration(run.duration_us)
            };
            line.announce(&format!(
                "[{}/{}] {} {version}: {} ({how})",
                self.done,
                self.servers.len(),
                server.name(),
                said.lines().next().unwrap_or_default()
            ));
            if !self.checker.args.keep {
                bound(&mut done.checked.events, TRANSCRIPT);
            }
        }
        let key = done.key.take();
        outcome.take(index, done.checked);
        let finished = outcome.run(index).filter(|run| kept::is_finished(run));
        if let (Some(key), Some(run), true) = (key, finished, self.servers.len() > 1)
            && let Err(error) = self.earlier.kept.write(server.name(), key, run)
        {
            complain(&format!(
                "warning: the run of {} is not kept for --resume: {}: {error}",
                server.name(),
                self.earlier.kept.folder().display()
            ));
        }
    }

    /// Looks at what the servers take.
    fn look(&mut self) {
        if self.limits.is_empty() {
            return;
        }
        // Where there is no table, time alone is bounded.
        let anew = self.looks.is_multiple_of(WHOLE_TABLE);
        let table = anew.then(|| ProcessTable::read().unwrap_or_default());
        self.looks += 1;
        for (index, limit) in &self.limits {
            let held = limit.look(table.as_ref());
            self.admission.seen(*index, held);
        }
    }

    fn show(&self) {
        if let Some(line) = &self.line {
            line.say(&format!(
                "{} of {} done, {} running, {} left",
                self.done,
                self.servers.len(),
                self.admission.running(),
                self.admission.waiting()
            ));
        }
    }

    fn look_for_earlier_ones(&self) {
        let (Some(line), true) = (&self.line, self.earlier.resume) else {
            return;
        };
        let folder = self.earlier.kept.folder().display();
        line.announce(&match self.earlier.kept.count() {
            0 => format!("there is nothing to take over in {folder}; all servers are checked"),
            1 => format!("there is 1 run of before in {folder}; the same one is not made again"),
            count => {
                format!(
                    "there are {count} runs of before in {folder}; the same ones are not made again"
                )
            }
        });
    }

    fn tell_what_was_taken_over(&self) {
        if let (Some(line), true) = (&self.line, self.earlier.resume) {
            line.announce(&format!(
                "{} of {} runs were taken over from {}",
                self.taken_over,
                self.servers.len(),
                self.earlier.kept.folder().display()
            ));
        }
    }
}

/// Leaves the first events, as many as fit, with a note that says what is not there.
fn bound(events: &mut Vec<Event>, most: usize) {
    let mut size = 0;
    let fits = events.iter().position(|event| {
        // What cannot be written counts as too much.
        size += serde_json::to_vec(event).map_or(most, |line| line.len());
        size > most
    });
    let Some(kept) = fits else {
        return;
    };
    let left_out = events.len() - kept;
    let Some(first) = events.get(kept).cloned() else {
        return;
    };
    events.truncate(kept);
    events.push(Event {
        process: None,
        body: EventBody::note(
            "cut",
            format!(
                "{left_out} events are left out: a transcript of one of several servers has at most \
                 {most} bytes; check this server alone for all of it"
            ),
        ),
        ..first
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_of_memory_are_read_or_refused_with_the_form() {
        assert_eq!(size("512"), Ok(512 << 20));
        assert_eq!(size("512M"), Ok(512 << 20));
        assert_eq!(size("4GiB"), Ok(4 << 30));
        for text in ["", "x", "0", "4T", "-1", "99999999999999999G"] {
            assert!(size(text).unwrap_err().contains("4G"), "{text}");
        }
    }

    #[test]
    fn a_transcript_that_is_too_long_is_cut_and_says_so() {
        let recorder = dsh_transcript::Recorder::new();
        for _ in 0..50 {
            recorder.emit(None, EventBody::note("x", "y".repeat(100)));
        }
        let mut events = recorder.events();
        let whole = events.clone();
        bound(&mut events, 1 << 20);
        assert_eq!(events, whole);
        bound(&mut events, 2000);
        assert!(events.len() > 5 && events.len() < 20, "{}", events.len());
        let mut file = Vec::new();
        dsh_transcript::jsonl::write(&mut file, &events).unwrap();
        assert!(file.len() < 3000);
        assert_eq!(dsh_transcript::jsonl::read(&file[..]).unwrap(), events);
        let said = String::from_utf8(file).unwrap();
        assert!(said.contains("events are left out"), "{said}");
    }
}
