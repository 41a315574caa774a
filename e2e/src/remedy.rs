//! What is tried where a MUST fails, and what is advised from what was measured: pure.

use std::time::Duration;

use dsh_reports::{Case, PersonaOutcome, Run, StartKind, Verdict};
use dsh_transcript::{Direction, Event, View};
use serde_json::json;

use crate::setting::Setting;
use crate::target::Target;
use crate::time::millis;

/// The tool's own `timeoutMs`, in milliseconds.
pub const TOOL_TIMEOUT_MS: u64 = 60_000;
/// An advised timeout is a multiple of this.
const TIMEOUT_STEP_MS: u64 = 5_000;
/// How often a stale answer is asked for again where that is tried.
const RETRIES: u32 = 5;
/// By how much the time to shut down is multiplied where that is tried.
const LONGER: [u64; 2] = [4, 12];

/// The MUSTs that failed, in the order in which they are shown, each with its first case.
pub(crate) fn failed(run: &Run) -> Vec<(String, &Case)> {
    let mut failed: Vec<(String, &Case)> = Vec::new();
    for case in &run.cases {
        let Some(clause) = case.clauses.first() else {
            continue;
        };
        let is_must = case.level == dsh_reports::Level::Must && case.verdict.is_failure();
        if is_must && !failed.iter().any(|(known, _)| known == clause) {
            failed.push((clause.clone(), case));
        }
    }
    failed
}

/// Whether a clause was judged and holds.
pub(crate) fn holds(run: &Run, clause: &str) -> bool {
    let of = |case: &&Case| case.clauses.iter().any(|id| id == clause);
    let cases = || run.cases.iter().filter(of);
    // Without a known answer nothing is told to be right, and what failed before can only not fail.
    let not_failed = |verdict| run.sample.is_none() && verdict == Verdict::NotApplicable;
    let holds = |case: &Case| case.verdict == Verdict::Pass || not_failed(case.verdict);
    cases().any(holds) && !cases().any(|case| case.verdict.is_red())
}

/// What may help against the failure of a clause, least first: settings the target is not given
/// yet, each by itself and then together, so that the first that helps has none too many.
pub(crate) fn trials(clause: &str, events: &[Event], target: &Target) -> Vec<Vec<Setting>> {
    let mut trials: Vec<Vec<Setting>> = target
        .remedies
        .iter()
        .map(|suggested| suggested.settings.clone())
        .collect();
    let announce = (!target.announce_configuration).then_some(Setting::AnnounceConfiguration);
    let empty_answer = || {
        let unset = target.configuration.is_null();
        unset.then(|| Setting::Configuration(json!({})))
    };
    let options = || {
        let unset = target.initialization_options.is_null();
        unset.then(|| Setting::InitializationOptions(json!({})))
    };
    match clause {
        "QUA-1" => {
            trials.extend(together(
                &[options(), empty_answer().filter(|_| asks(events))],
                events,
            ));
        }
        "QUA-4" => {
            if target.retry_stale == 0 && is_stale(events) {
                trials.push(vec![Setting::RetryStale(RETRIES)]);
            }
            trials.extend(together(&[announce, empty_answer(), options()], events));
        }
        "QUA-5" if !target.rising_versions => trials.push(vec![Setting::RisingVersions]),
        "QUA-8" => {
            let now = target.limits.unwrap_or_default().shutdown_ms;
            let longer = LONGER.map(|times| vec![Setting::ShutdownTimeout(now * times)]);
            trials.extend(longer);
        }
        _ => {}
    }
    let mut known: Vec<Vec<Setting>> = Vec::new();
    for trial in trials {
        if !known.contains(&trial) {
            known.push(trial);
        }
    }
    known
}

/// The same trials, those last that a client without the host was seen to have no use of. What is
/// left stays in its order, so that the first that helps still has no setting too many.
pub(crate) fn unpromising_last(trials: Vec<Vec<Setting>>, run: &Run) -> Vec<Vec<Setting>> {
    let seen_in_vain = |trial: &Vec<Setting>| {
        let way = match trial.as_slice() {
            [Setting::AnnounceConfiguration] => "configuration-announced",
            [Setting::Configuration(value)] if *value == json!({}) => "configuration-empty",
            _ => return false,
        };
        let ways = run.measured.iter().flat_map(|measured| &measured.personas);
        let in_vain = [
            PersonaOutcome::Wrong,
            PersonaOutcome::Silent,
            PersonaOutcome::Dead,
        ];
        let mut tried = ways.filter(|persona| persona.name == way);
        tried.any(|persona| in_vain.contains(&persona.outcome))
    };
    let (last, mut first): (Vec<_>, Vec<_>) = trials.into_iter().partition(seen_in_vain);
    first.extend(last);
    first
}

/// Each that there is, then two of them at a time, then all. The answer to a question that was
/// never put changes nothing by itself, but may together with another setting.
fn together(all: &[Option<Setting>], events: &[Event]) -> Vec<Vec<Setting>> {
    let all: Vec<&Setting> = all.iter().flatten().collect();
    let unasked =
        |setting: &&&Setting| matches!(setting, Setting::Configuration(_)) && !asks(events);
    let mut trials: Vec<Vec<Setting>> = all
        .iter()
        .filter(|setting| !unasked(setting))
        .map(|setting| vec![(*setting).clone()])
        .collect();
    if all.len() > 2 {
        for (index, one) in all.iter().enumerate() {
            for other in &all[index + 1..] {
                trials.push(vec![(*one).clone(), (*other).clone()]);
            }
        }
    }
    if all.len() > 1 {
        trials.push(all.into_iter().cloned().collect());
    }
    trials
}

/// Whether the server asked for its configuration.
fn asks(events: &[Event]) -> bool {
    let asked = |event: &Event| event.is_message(Direction::ToClient, "workspace/configuration");
    events.iter().any(asked)
}

/// Whether a question was answered with an error that says to ask again.
fn is_stale(events: &[Event]) -> bool {
    let view = View(events);
    view.processes()
        .into_iter()
        .flat_map(|process| view.exchanges(process, Direction::ToServer))
        .filter_map(|exchange| exchange.answer?.frame()?.at("/error/code")?.as_i64())
        .any(|code| matches!(code, -32801 | -32802))
}

/// What to say where a clause failed at first and holds now, with nothing changed.
pub(crate) fn unsteady(clause: &str) -> String {
    format!(
        "{clause} failed at first and held when it was tried again with nothing changed, so no \
         setting is advised: the server or the machine is unsteady. Check again, on a machine that \
         does nothing else."
    )
}

/// When `initialize` was answered, from the first event on.
pub(crate) fn initialized(events: &[Event]) -> Duration {
    let view = View(events);
    let at = view
        .processes()
        .into_iter()
        .flat_map(|process| view.exchanges(process, Direction::ToServer))
        .filter(|exchange| exchange.method() == "initialize")
        .find_map(|exchange| exchange.answer)
        .map_or(0, |answer| answer.at_us);
    Duration::from_micros(at)
}

/// The longest that any question took to be answered rightly for good, from a cold start on.
pub(crate) fn slowest(run: &Run) -> Option<Duration> {
    let cold = run
        .measured
        .iter()
        .flat_map(|measured| &measured.starts)
        .filter(|start| start.kind == StartKind::Cold)
        .flat_map(|start| &start.operations);
    run.operations
        .iter()
        .chain(cold)
        .filter_map(|timeline| timeline.stable_us)
        .max()
        .map(Duration::from_micros)
}

/// `timeoutMs` for the tool: twice the slowest time to a stable answer, rounded up to whole 5 s, at
/// least what the tool has anyway.
pub(crate) fn advised_timeout_ms(slowest: Duration) -> u64 {
    let twice = millis(slowest).saturating_mul(2);
    twice
        .div_ceil(TIMEOUT_STEP_MS)
        .saturating_mul(TIMEOUT_STEP_MS)
        .max(TOOL_TIMEOUT_MS)
}

/// The settings of one trial as they are named in a row.
pub(crate) fn named(settings: &[Setting]) -> String {
    let names: Vec<String> = settings.iter().map(Setting::name).collect();
    names.join(" with ")
}

#[cfg(test)]
mod tests;
