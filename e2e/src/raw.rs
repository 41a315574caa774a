//! A driver that speaks to a server without the host, for what the host never says.
//!
//! The host has one way to behave. Whether a server is silent because nobody configured it, dies
//! when a request of its own is refused, answers from the disk or stays when its stdin is closed
//! can only be seen with other ways. This is a small client of the instrument's own: it frames what
//! it sends itself, reads with the strict reader of the transcript, and is recorded like the host;
//! each of its processes carries a note of kind `raw` in the recording. It is not judged, and no
//! clause hangs on it: what it finds is measured.
//!
//! - [`dialogue`], [`manner`], [`ways`], [`value`], [`signals`], [`persona`], [`output`]: what
//!   is said, what it is worth and what follows, without I/O.
//! - [`client`]: the process, its pipes and the clock. [`asking`], [`process`], [`overlay`],
//!   [`edges`]: what is done with one process.
//! - this module: which processes there are, in which order and within which time.

mod asking;
mod client;
mod dialogue;
mod edges;
mod manner;
mod output;
mod overlay;
mod persona;
mod process;
mod signal;
mod signals;
mod site;
mod symbols;
mod value;
mod ways;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dsh_harness::kernel::Cancel;
use dsh_harness::subprocess::Subprocess as _;
use dsh_reports::{Ending, Measured, Persona, PersonaOutcome, Start, StartKind};
use dsh_transcript::{Event, EventBody};

use crate::RecordingSubprocess;
use crate::evidence::RAW;
use crate::samples::Operation;
use crate::sentence;
use crate::target::{Limits, Target};
use crate::time::micros;
use client::{Client, Stable};
use edges::Edges;
use manner::Manner;
use persona::{About, Handshake, Seen};
use process::{Bounds, Plan, Way};
pub(crate) use site::{Query, Site};
pub(crate) use symbols::symbols;
use ways::Step;

/// What the times of the parts are shares of, at most.
const LONGEST: Duration = Duration::from_mins(1);
/// So many budgets of a probe that is at most.
const BUDGETS: u32 = 8;
/// The shares of the two starts …
const COLD: f64 = 0.3;
const WARM: f64 = 0.2;
/// … of the overlay and the odd requests, of the ends, and of the ways of a client. What a part does
/// not use is left for those behind it, and none can take what is another's.
const ODD: f64 = 0.35;
const ENDS: f64 = 0.3;
const WAYS: f64 = 0.35;
/// The longest a start is asked for answers of which the host saw none within a whole budget.
const IN_VAIN: Duration = Duration::from_secs(6);
/// Beyond what the usual way needed, the least that is left for another.
const LEAST: Duration = Duration::from_millis(500);
/// Deaths behind odd requests that are followed by a new process.
const MOST_DEATHS: u8 = 3;
/// The time that the odd requests take of themselves.
const EDGES: Duration = Duration::from_secs(8);
/// The longest one way of a client may take to be answered rightly.
const PATIENCE: Duration = Duration::from_secs(15);
/// The time beyond what the usual way needed three times over.
const LEAST_PATIENCE: Duration = Duration::from_secs(3);

/// What the driver needs.
pub(crate) struct Bench<'a> {
    pub(crate) recording: Arc<RecordingSubprocess>,
    pub(crate) cancel: &'a Cancel,
    pub(crate) target: &'a Target,
    pub(crate) site: Site<'a>,
    /// How long a process may take to end, and to be killed.
    pub(crate) limits: Limits,
    /// How long each probe may wait.
    pub(crate) budget: Duration,
    /// Whether the host followed a cold start already.
    pub(crate) cold_is_known: bool,
    /// Whether the host asked, and no question was ever answered rightly.
    pub(crate) in_vain: bool,
    /// Is told what is done next.
    pub(crate) watch: &'a (dyn Fn(&'static str) + Sync),
}

/// What the driver found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Part {
    pub(crate) measured: Measured,
    /// What was not reached, and why nothing was measured.
    pub(crate) remarks: Vec<String>,
}

/// Measures a server. Each part has a time of its own, all of them together a minute and a half, or
/// twelve budgets where those are less, and nothing is begun that could take more than is left of its
/// part; the end of a process may take longer. Where it is cancelled it ends at once. Whatever it
/// started is gone then.
pub(crate) async fn measure(bench: Bench<'_>) -> Part {
    let mut part = Part::default();
    let target = bench.target;
    let resolved = bench
        .recording
        .resolve_executable(&target.command, &target.env, bench.cancel)
        .await;
    let executable: PathBuf = match resolved {
        Ok(executable) => executable,
        Err(error) => {
            part.remarks.push(format!("nothing was measured: {error}"));
            return part;
        }
    };
    let Ok(root_uri) = url::Url::from_file_path(bench.site.root) else {
        let said = format!("nothing was measured: {} has no URI", bench.site.root);
        part.remarks.push(said);
        return part;
    };
    let stable = Stable {
        recording: Arc::clone(&bench.recording),
        cancel: bench.cancel,
        target,
        executable,
        root: bench.site.root,
        root_uri: root_uri.into(),
        grace: Duration::from_millis(bench.limits.kill_grace_ms),
    };
    let whole = LONGEST.min(bench.budget * BUDGETS);
    let began_us = stable.now_us();
    let mut work = Work {
        bench: &bench,
        stable: &stable,
        whole,
        ends_us: began_us,
        time: Duration::ZERO,
        usual: None,
        usual_right: BTreeSet::new(),
        not_reached: Vec::new(),
        part,
    };
    work.all().await;
    work.part
}

struct Work<'w> {
    bench: &'w Bench<'w>,
    stable: &'w Stable<'w>,
    /// What the times of the parts are shares of.
    whole: Duration,
    /// When the part that is done now is over, on the clock of the recording.
    ends_us: u64,
    /// How long it may take.
    time: Duration,
    /// What was seen of the usual way, and which operations it gets right.
    usual: Option<Seen>,
    usual_right: BTreeSet<Operation>,
    /// What there was no time for, with the time that its part had.
    not_reached: Vec<(&'static str, Duration)>,
    part: Part,
}

impl Work<'_> {
    async fn all(&mut self) {
        self.begin(COLD + WARM);
        if self.starts().await {
            self.begin(ODD);
            self.overlay_and_edges().await;
            self.begin(ENDS);
            let known = |end: &Ending| end.way == HANG_UP;
            if !self.part.measured.ends.iter().any(known) {
                self.end(HANG_UP, Way::StdinClosed).await;
            }
            self.end("sigterm", Way::Sigterm).await;
            self.begin(WAYS);
            self.ways(&ways::first(&self.usual_manner(), self.is_fine()))
                .await;
            self.ways(&ways::later(&self.usual_manner())).await;
        }
        self.conclude();
    }

    /// Begins a part that has this share of the whole, and what those before it left. An end that
    /// took longer than its part shortens none of the others.
    fn begin(&mut self, share: f64) {
        let now_us = self.stable.now_us();
        let own_us = micros(self.whole.mul_f64(share));
        self.ends_us = self.ends_us.max(now_us).saturating_add(own_us);
        self.time = Duration::from_micros(self.ends_us.saturating_sub(now_us));
    }

    fn usual_manner(&self) -> Manner {
        let target = self.bench.target;
        Manner {
            announce: target.announce_configuration,
            ..Manner::usual(target.configuration.clone())
        }
    }

    /// Whether the usual way is answered rightly, and ends.
    fn is_fine(&self) -> bool {
        let mut personas = self.part.measured.personas.iter();
        let usual = personas.find(|persona| persona.name == USUAL);
        usual.is_some_and(|persona| persona.outcome == PersonaOutcome::Fine)
    }

    fn left(&self) -> Duration {
        let left = self.ends_us.saturating_sub(self.stable.now_us());
        Duration::from_micros(left)
    }

    fn is_over(&self) -> bool {
        self.stable.cancel.is_cancelled()
    }

    /// Bounds of a process that may take `within` before its end, or what is left; none if less
    /// is left than the usual way needed.
    fn bounds(&self, within: Duration) -> Option<Bounds> {
        let needed = self.usual.as_ref().and_then(Seen::all_right_us);
        let needed = Duration::from_micros(needed.unwrap_or(0)).mul_f64(1.3);
        let enough = self.left() >= within.min(needed + LEAST);
        let bounds = Bounds {
            within: within.min(self.left()),
            budget: self.bench.budget,
            end: self.end_limit(),
        };
        (enough && !self.is_over()).then_some(bounds)
    }

    /// How long a process may take to end: what the host gives it, and where the usual end takes
    /// most of that, twice the usual.
    fn end_limit(&self) -> Duration {
        let usual = self.usual.as_ref().and_then(|seen| seen.departure.as_ref());
        let usual = usual.and_then(|departure| departure.took_us).unwrap_or(0);
        let limit = Duration::from_millis(self.bench.limits.shutdown_ms);
        let twice = Duration::from_micros(usual) * 2;
        limit.max(twice).min(self.whole / 6)
    }

    /// A cold start of a client that takes progress, then a warm one of the usual client. False if
    /// nothing more can be seen of this server.
    async fn starts(&mut self) -> bool {
        (self.bench.watch)("a cold start");
        let progress = Manner {
            progress: true,
            ..self.usual_manner()
        };
        let patience = if self.bench.in_vain {
            IN_VAIN
        } else {
            self.whole
        };
        let share = self.whole.mul_f64(COLD).min(patience);
        let cold = self
            .start(progress, "progress, cold", Plan::UntilStable, share)
            .await;
        let Some(cold) = cold else {
            return false;
        };
        (self.bench.watch)("a warm start");
        let share = self.whole.mul_f64(WARM).min(patience);
        let manner = self.usual_manner();
        let warm = self
            .start(manner, "usual, warm", Plan::UntilStable, share)
            .await;
        let Some(warm) = warm else {
            return false;
        };
        self.usual_right = warm.right();
        self.take_start(StartKind::Cold, &cold);
        self.take_start(StartKind::Warm, &warm);
        if let Some(end) = &warm.departure {
            self.part.measured.ends.push(ending("shutdown", end));
        }
        let outputs = self.stable.recorder().look(0, |events| {
            // Of a cold start, what the host saw is what is usual.
            let started = [
                (host_process(events).or(cold.process), StartKind::Cold),
                (warm.process, StartKind::Warm),
            ];
            started
                .into_iter()
                .filter_map(|(process, kind)| Some(output::of_process(events, process?, kind)))
                .collect::<Vec<_>>()
        });
        self.part.measured.output.extend(outputs);
        let dead = |seen: &Seen| seen.handshake != Handshake::Initialized;
        let hopeless = dead(&cold) && dead(&warm);
        self.take_usual(&cold, &warm);
        self.usual = Some(warm);
        if hopeless {
            let said = "the ways of a client were not tried: initialize is not answered in any";
            self.part.remarks.push(said.to_owned());
        }
        !hopeless && !self.is_over()
    }

    /// What the two starts say of the ways of a client that they had.
    fn take_usual(&mut self, cold: &Seen, warm: &Seen) {
        let usual = self.usual_manner();
        let everything: BTreeSet<Operation> = warm.tracks.iter().map(|(known, _)| *known).collect();
        // The usual way is held to everything it could be asked.
        let (outcome, detail) = persona::outcome(About::Everything, warm, &everything);
        self.add(USUAL, USUAL_SUMMARY, warm, (outcome, detail));
        let came = persona::outcome(About::Progress, cold, &self.usual_right);
        let summary = "announces window.workDoneProgress and takes every progress";
        self.add("progress-announced", summary, cold, came);
        let came = persona::outcome(About::End, warm, &self.usual_right);
        let summary = "writes shutdown and exit without params, as the host does";
        self.add("shutdown-params-absent", summary, warm, came);
        let came = persona::outcome(About::Configuration, warm, &self.usual_right);
        if usual.configuration.is_null() {
            let summary = "answers workspace/configuration with null";
            self.add("configuration-null", summary, warm, came);
        } else {
            let summary = "answers workspace/configuration with the configuration it is given";
            self.add("configuration-given", summary, warm, came);
        }
    }

    fn add(
        &mut self,
        name: &str,
        summary: &str,
        seen: &Seen,
        came: (PersonaOutcome, Option<String>),
    ) {
        let persona = Persona {
            name: name.to_owned(),
            summary: summary.to_owned(),
            outcome: came.0,
            detail: came.1,
            first_right_us: seen.first_right_us(),
        };
        self.part.measured.personas.push(persona);
    }

    async fn start(
        &mut self,
        manner: Manner,
        label: &'static str,
        plan: Plan<'_>,
        within: Duration,
    ) -> Option<Seen> {
        self.process(manner, label, label, plan, Way::Shutdown, within)
            .await
    }

    /// Runs one process; none if there was no time, it was given up, or it could not be started.
    async fn process(
        &mut self,
        manner: Manner,
        name: &'static str,
        label: &str,
        plan: Plan<'_>,
        way: Way,
        within: Duration,
    ) -> Option<Seen> {
        let Some(bounds) = self.bounds(within) else {
            self.leave_out([name]);
            return None;
        };
        let site = &self.bench.site;
        match process::run(self.stable, site, manner, label, plan, way, bounds).await {
            Ok(seen) if seen.interrupted => {
                self.leave_out([name]);
                None
            }
            Ok(seen) => Some(seen),
            Err(error) => {
                self.part.remarks.push(format!("{name}: {error}"));
                None
            }
        }
    }

    fn take_start(&mut self, kind: StartKind, seen: &Seen) {
        if kind == StartKind::Cold && self.bench.cold_is_known && seen.signals.is_empty() {
            return;
        }
        let timelines = seen.tracks.iter();
        let operations: Vec<_> = timelines
            .filter_map(|(_, track)| track.timeline())
            .collect();
        let summary = match &seen.handshake {
            Handshake::Initialized => {
                sentence::of_start(kind, &operations, Some(&seen.signals), seen.known)
            }
            Handshake::Refused(why) => format!("initialize was refused with {why}."),
            Handshake::Died(how) => format!("It died before it was initialized: {how}."),
            Handshake::Silent | Handshake::Cancelled => "initialize was not answered.".to_owned(),
        };
        self.part.measured.starts.push(Start {
            kind,
            initialized_us: seen.initialized_us,
            operations,
            signals: seen.signals.clone(),
            summary,
        });
    }

    async fn ways(&mut self, steps: &[Step]) {
        for step in steps {
            if self.is_over() {
                self.leave_out([step.name]);
                continue;
            }
            (self.bench.watch)(step.name);
            let enough = self.usual_right.clone();
            let plan = match step.about {
                About::End => Plan::Once,
                _ => Plan::UntilRight {
                    enough: &enough,
                    may_help: step.may_help,
                },
            };
            let patience = self.patience();
            let in_full = self.left() >= patience;
            let seen = self
                .process(
                    step.manner.clone(),
                    step.name,
                    step.name,
                    plan,
                    Way::Shutdown,
                    patience,
                )
                .await;
            if let Some(seen) = seen {
                let came = persona::outcome(step.about, &seen, &self.usual_right);
                // What was given less time than the usual way's patience may only have been slow.
                if !in_full && matches!(came.0, PersonaOutcome::Silent | PersonaOutcome::Wrong) {
                    self.leave_out([step.name]);
                    continue;
                }
                self.add(step.name, step.summary, &seen, came);
            }
        }
    }

    /// How long one way may take to be answered rightly: what the usual one needed, and more.
    fn patience(&self) -> Duration {
        let needed = self.usual.as_ref().and_then(Seen::all_right_us);
        let thrice = Duration::from_micros(needed.unwrap_or(0)) * 3;
        let patience = thrice + LEAST_PATIENCE;
        patience.min(PATIENCE).min(self.bench.budget)
    }

    async fn end(&mut self, name: &'static str, way: Way) {
        (self.bench.watch)(name);
        let within = self.patience();
        let manner = self.usual_manner();
        let seen = self
            .process(manner, name, name, Plan::Once, way, within)
            .await;
        match seen {
            Some(Seen {
                departure: Some(departure),
                ..
            }) => self.part.measured.ends.push(ending(name, &departure)),
            Some(Seen {
                died: Some(how), ..
            }) => {
                let said = format!("{name}: it died before it was told to end: {how}");
                self.part.remarks.push(said);
            }
            _ => {}
        }
    }

    async fn overlay_and_edges(&mut self) {
        (self.bench.watch)("edges");
        let mut names = edges::ALL.iter().copied();
        let mut overlay = true;
        let mut died = 0_u8;
        while names.len() > 0 || overlay {
            let within = self.left().min(self.patience() + EDGES);
            let Some(bounds) = self.bounds(within) else {
                break;
            };
            let manner = self.usual_manner();
            let started = Client::start(self.stable, manner, "overlay and edges", bounds.within);
            let mut client = match started.await {
                Ok(client) => client,
                Err(error) => {
                    self.part.remarks.push(format!("edges: {error}"));
                    break;
                }
            };
            let (initialized, _) = process::shake_hands(&mut client, bounds).await;
            let Some(initialized) = initialized else {
                client.finish().await;
                let said = "edges: initialize was not answered, so none was tried";
                self.part.remarks.push(said.to_owned());
                return;
            };
            let site = &self.bench.site;
            let mut edges = Edges::of(site, &initialized, &self.usual_right);
            let ready = edges.settle(&mut client, bounds.within / 2).await;
            if overlay && edges.query.is_some() && !edges.answers() {
                let said = "overlay: no question is answered, so it was not tried";
                self.part.remarks.push(said.to_owned());
            }
            overlay &= edges.query.is_some() && edges.answers();
            if overlay && !client.is_gone() && !client.is_late() {
                overlay = false;
                // A question that is never answered leaves the odd requests their time.
                let deadline_us = client.deadline_us;
                let own_us = client.now_us().saturating_add(micros(self.left() / 3));
                client.deadline_us = deadline_us.min(own_us);
                let told =
                    overlay::probe(&mut client, site, edges.initialized, bounds.budget).await;
                client.deadline_us = deadline_us;
                match told {
                    Ok(overlay) => self.part.measured.overlay = Some(overlay),
                    Err(why) => self.part.remarks.push(format!("overlay: {why}")),
                }
            }
            while ready && !client.is_gone() && !client.is_late() && !client.is_cancelled() {
                let Some(name) = names.next() else {
                    break;
                };
                if !edges.can(name) {
                    continue;
                }
                let Some(edge) = edges.one(&mut client, name).await else {
                    self.leave_out([name]);
                    break;
                };
                let alive = edge.alive;
                self.part.measured.edges.push(edge);
                if !alive {
                    died += 1;
                    break;
                }
            }
            let late = client.is_late();
            let whole = !client.is_gone() && !client.is_cancelled();
            // One that is as good as before is ended in a way that has to be seen anyway.
            let hung_up = if ready && whole && names.len() == 0 && !overlay {
                Some(client.hang_up(bounds.end).await)
            } else {
                None
            };
            let left = client.finish().await;
            if let Some(departure) = hung_up {
                let departure = client::Departure { left, ..departure };
                self.part.measured.ends.push(ending(HANG_UP, &departure));
            }
            if !ready || late || died > MOST_DEATHS {
                break;
            }
        }
        if overlay {
            self.leave_out(["overlay"]);
        }
        self.leave_out(names);
        self.without_a_place();
    }

    /// Says what was not tried since no operation is advertised.
    fn without_a_place(&mut self) {
        let has = |name: &&&str| {
            self.part
                .measured
                .edges
                .iter()
                .any(|edge| edge.name == **name)
        };
        let first = edges::ALL.iter().find(has);
        if first.is_some_and(|name| !edges::OF_A_PLACE.contains(name)) {
            let names = edges::OF_A_PLACE.join(", ");
            let said = format!("edges: no operation is advertised, so not tried: overlay, {names}");
            self.part.remarks.push(said);
        }
    }

    /// Notes what there was no time for.
    fn leave_out(&mut self, names: impl IntoIterator<Item = &'static str>) {
        let time = self.time;
        let left_out = names.into_iter().map(|name| (name, time));
        self.not_reached.extend(left_out);
    }

    fn conclude(&mut self) {
        let more = if LONGEST > self.bench.budget * BUDGETS {
            "; a larger --budget gives more time"
        } else {
            ""
        };
        for parts in self.not_reached.chunk_by(|one, other| one.1 == other.1) {
            let names: Vec<&str> = parts.iter().map(|(name, _)| *name).collect();
            let names = names.join(", ");
            let said = if self.is_over() {
                format!("not measured, since interrupted: {names}")
            } else {
                let time = dsh_reports::duration(micros(parts[0].1));
                format!("not measured, since the {time} for it were over{more}: {names}")
            };
            self.part.remarks.push(said);
        }
    }
}

/// The end of stdin without a word before.
const HANG_UP: &str = "stdin-closed";
/// The way that everything is compared with.
const USUAL: &str = "usual";
const USUAL_SUMMARY: &str =
    "behaves as the host does: answers what the server asks, announces nothing more";

fn ending(way: &str, departure: &client::Departure) -> Ending {
    Ending {
        way: way.to_owned(),
        took_us: departure.took_us,
        code: departure.code,
        signal: departure.signal,
        left: departure.left.len() as u64,
        left_names: crate::measure::distinct(departure.left.clone()),
        replaced_us: None,
    }
}

/// The first process that is not the raw driver's.
fn host_process(events: &[Event]) -> Option<u32> {
    let raw: BTreeSet<u32> = events
        .iter()
        .filter(|event| matches!(&event.body, EventBody::Note { kind, .. } if kind == RAW))
        .filter_map(|event| event.process)
        .collect();
    events
        .iter()
        .filter(|event| matches!(event.body, EventBody::ProcessStarted { .. }))
        .filter_map(|event| event.process)
        .find(|process| !raw.contains(process))
}
