//! What an author of a client has to know of a start, in a sentence: pure. Who followed the start
//! makes no difference, the host or the raw driver.

use std::fmt::Write as _;

use dsh_reports::{OperationTimeline, Signal, StartKind, duration};

/// From here on the first answer is worth telling of, in microseconds.
const SLOW_US: u64 = 1_000_000;

/// As many kinds of answer are named.
const SHOWN: usize = 4;

/// The sentence of a start. `operations` count from the start of the process, and `signals` are what
/// the server sent that could tell when it is ready; none where nobody listened for any. `known` says
/// whether the right answers are: else no answer is told to be right, or false.
pub(crate) fn of_start(
    kind: StartKind,
    operations: &[OperationTimeline],
    signals: Option<&[Signal]>,
    known: bool,
) -> String {
    let start = match kind {
        StartKind::Cold => "a cold start",
        StartKind::Warm => "a warm start",
    };
    if operations.is_empty() {
        return format!("Nothing could be asked in {start}.");
    }
    let (right, never): (Vec<&OperationTimeline>, Vec<_>) = operations
        .iter()
        .partition(|timeline| timeline.first_right_us.is_some());
    if right.is_empty() {
        let came =
            answers(&never).map_or_else(String::new, |came| format!(": what came was {came}"));
        let how = if known { " rightly" } else { "" };
        return format!("No question was answered{how} in {start}{came}.");
    }
    let mut text = match Falsehood::of(&right) {
        None => {
            let which = if never.is_empty() {
                String::new()
            } else {
                format!(" ({})", names(&right, ", "))
            };
            let ending = match slowest_us(&right) {
                slowest if slowest >= SLOW_US => format!(
                    ", but a first answer takes up to {}: a shorter timeout gets none",
                    duration(slowest)
                ),
                _ if known => ": there is no need to wait".to_owned(),
                _ => String::new(),
            };
            if known {
                format!("Right from the first question on in {start}{which}{ending}.")
            } else {
                format!(
                    "Answered from the first question on in {start}{which}{ending}; whether \
                     rightly is not known."
                )
            }
        }
        Some(seen) => format!(
            "A client that does not wait in {start} sees {} of {} ({}){}.",
            duration(seen.until_us.saturating_sub(seen.since_us)),
            seen.answers,
            seen.operations,
            signals.map_or_else(String::new, |signals| told_by(
                signals,
                seen.until_us,
                known
            ))
        ),
    };
    if let Some(came) = answers(&never) {
        let _ = write!(
            text,
            " Waiting does not help {}: what came was {came}, and never {}.",
            names(&never, " and "),
            if known {
                "the right answer"
            } else {
                "a result"
            }
        );
    }
    let unsteady: Vec<&OperationTimeline> = right
        .into_iter()
        .filter(|timeline| was_wrong_again(timeline))
        .collect();
    if !unsteady.is_empty() {
        let names = names(&unsteady, " and ");
        let _ = if known {
            write!(
                text,
                " One right answer is not enough: {names} was wrong again after it."
            )
        } else {
            write!(
                text,
                " One answer is not enough: {names} was answered otherwise after it."
            )
        };
    }
    text
}

fn names(operations: &[&OperationTimeline], between: &str) -> String {
    let names: Vec<&str> = operations
        .iter()
        .map(|timeline| timeline.operation.as_str())
        .collect();
    names.join(between)
}

/// How long a client may have to wait for a first answer. The first question starts the process and
/// waits for all of the start; the others count from when they were asked.
fn slowest_us(operations: &[&OperationTimeline]) -> u64 {
    let heard = operations.iter().filter_map(|known| known.heard.first());
    let start = heard.map(|heard| heard.from_us).min().unwrap_or(0);
    let waited = operations.iter().filter_map(|known| {
        let first = known.first_right_us?;
        Some(first.saturating_sub(known.asked_us))
    });
    waited.max().unwrap_or(0).max(start)
}

fn was_wrong_again(timeline: &OperationTimeline) -> bool {
    let mut after = timeline.heard.iter().skip_while(|heard| !heard.right);
    after.any(|heard| !heard.right)
}

/// Answers that were not right, to operations that come right.
struct Falsehood {
    /// When the first came. Before the first answer nothing false is seen.
    since_us: u64,
    /// When the right answer came that ends the last of them; when that came, where none did.
    until_us: u64,
    /// Which.
    answers: String,
    /// To what.
    operations: String,
}

impl Falsehood {
    fn of(operations: &[&OperationTimeline]) -> Option<Self> {
        let wrong: Vec<&OperationTimeline> = operations
            .iter()
            .copied()
            .filter(|timeline| timeline.heard.iter().any(|heard| !heard.right))
            .collect();
        let since = wrong
            .iter()
            .flat_map(|timeline| &timeline.heard)
            .filter(|heard| !heard.right)
            .map(|heard| heard.from_us);
        let until = wrong.iter().filter_map(|timeline| {
            let last = timeline.heard.iter().rposition(|heard| !heard.right)?;
            let next = timeline.heard.get(last + 1).map(|heard| heard.from_us);
            Some(next.unwrap_or(timeline.heard[last].until_us))
        });
        Some(Self {
            since_us: since.min()?,
            until_us: until.max()?,
            answers: answers(&wrong)?,
            operations: names(&wrong, ", "),
        })
    }
}

/// The answers that were not right, each kind once, in the order of their names; none if all were.
fn answers(operations: &[&OperationTimeline]) -> Option<String> {
    let heard = operations.iter().flat_map(|timeline| &timeline.heard);
    let wrong = heard.filter(|heard| !heard.right);
    let mut answers: Vec<&str> = wrong.map(|heard| plain(&heard.answer)).collect();
    answers.sort_unstable();
    answers.dedup();
    let more = answers.len().saturating_sub(SHOWN);
    answers.truncate(SHOWN);
    let said = match answers.split_last()? {
        (last, []) => (*last).to_owned(),
        (last, others) => format!("{} and {last}", others.join(", ")),
    };
    Some(match more {
        0 => said,
        more => format!("{said} (and {more} more kinds of answer)"),
    })
}

fn plain(answer: &str) -> &str {
    match answer {
        "[]" | "empty" => "false empty lists",
        "empty text" => "false empty texts",
        "null" => "false nulls",
        "wrong place" => "wrong places",
        partial if partial.starts_with("partial") => "partial answers",
        "no answer" => "silence",
        "another answer" => "answers that change",
        "the server died" => "deaths",
        other => other,
    }
}

/// Whether an author of a client would take it for a sign: servers send other things of their own.
fn means_ready(name: &str) -> bool {
    let name = name.to_lowercase();
    ["progress", "status", "ready", "load", "init"]
        .iter()
        .any(|word| name.contains(word))
}

/// Whether something the server sends tells when that is over.
fn told_by(signals: &[Signal], until_us: u64, known: bool) -> String {
    let told = |held| {
        let mut signals = signals.iter().filter(|signal| means_ready(&signal.name));
        signals.find(|signal| signal.held == Some(held))
    };
    if let Some(signal) = told(true) {
        let late = signal.at_us > until_us.saturating_mul(3).saturating_add(1_000_000);
        let how = if late { ", though late," } else { "" };
        return format!(
            "; {} is true{how} at {}: every {} after it was {}",
            signal.name,
            duration(signal.at_us),
            if known { "answer" } else { "question" },
            if known { "right" } else { "answered" },
        );
    }
    if let Some(signal) = told(false) {
        return format!(
            "; {} at {} is no sign of the end: {}",
            signal.name,
            duration(signal.at_us),
            if known {
                "wrong answers came after it"
            } else {
                "not every question after it was answered"
            },
        );
    }
    "; nothing it sends says when that is over".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readiness::fixture::timeline;

    fn signal(held: Option<bool>, at_us: u64) -> Signal {
        Signal {
            name: "x/ready".to_owned(),
            at_us,
            held,
        }
    }

    const WARM: StartKind = StartKind::Warm;

    #[test]
    fn a_server_that_is_right_at_once_needs_no_wait() {
        let told = of_start(
            WARM,
            &[timeline("hover", &[("right", 5, 9)])],
            Some(&[]),
            true,
        );
        assert_eq!(
            told,
            "Right from the first question on in a warm start: there is no need to wait."
        );
    }

    #[test]
    fn a_first_answer_that_takes_long_is_told() {
        let told = |timeline| of_start(WARM, &[timeline], None, true);
        let slow = timeline("hover", &[("right", 5_600_000, 6_000_000)]);
        let said = "Right from the first question on in a warm start, but a first answer takes up \
                    to 5.6 s: a shorter timeout gets none.";
        assert_eq!(told(slow.clone()), said);
        // One that was asked late did not take long for that; the start did.
        let asked_us = 5_500_000;
        assert_eq!(told(OperationTimeline { asked_us, ..slow }), said);
        let operations = [
            timeline("hover", &[("right", 5, 9)]),
            OperationTimeline {
                asked_us: 5_000_000,
                ..timeline("goToDefinition", &[("right", 5_600_000, 6_000_000)])
            },
        ];
        let told = of_start(WARM, &operations, None, true);
        assert!(told.ends_with("there is no need to wait."), "{told}");
    }

    #[test]
    fn false_answers_are_told_with_how_long_they_came() {
        let operations = [
            timeline("hover", &[("null", 0, 10), ("right", 20, 30)]),
            timeline(
                "goToDefinition",
                &[("[]", 0, 900_000), ("right", 2_100_000, 3)],
            ),
        ];
        let told = |signals: &[Signal]| of_start(StartKind::Cold, &operations, Some(signals), true);
        assert_eq!(
            told(&[]),
            "A client that does not wait in a cold start sees 2.1 s of false empty lists and false \
             nulls (hover, goToDefinition); nothing it sends says when that is over."
        );
        // Who did not listen for signals says nothing of them.
        assert_eq!(
            of_start(StartKind::Cold, &operations, None, true),
            "A client that does not wait in a cold start sees 2.1 s of false empty lists and false \
             nulls (hover, goToDefinition)."
        );
        assert!(
            told(&[signal(Some(true), 2_000_000)])
                .contains("; x/ready is true at 2.0 s: every answer after it was right.")
        );
        assert!(told(&[signal(Some(true), 20_000_000)]).contains(", though late, at 20 s"));
        assert!(told(&[signal(Some(false), 40)]).contains("wrong answers came after it"));
        assert!(told(&[signal(None, 40)]).contains("nothing it sends"));
        let version = Signal {
            name: "$/version".to_owned(),
            ..signal(Some(true), 40)
        };
        assert!(told(&[version]).contains("nothing it sends"));
    }

    #[test]
    fn falsehoods_behind_a_right_answer_count_from_where_they_begin() {
        let heard = [
            ("right", 3_100_000, 3_200_000),
            ("error -32801", 21_000_000, 22_000_000),
            ("right", 22_100_000, 22_200_000),
        ];
        assert_eq!(
            of_start(StartKind::Cold, &[timeline("hover", &heard)], None, true),
            "A client that does not wait in a cold start sees 1.1 s of error -32801 (hover). One \
             right answer is not enough: hover was wrong again after it."
        );
    }

    /// What never comes right makes nobody wait: it lengthens no stretch of false answers.
    #[test]
    fn what_never_comes_right_is_told_apart() {
        let never = timeline("findReferences", &[("partial 3/6", 5, 60_000_000)]);
        let right = timeline("hover", &[("right", 5, 9)]);
        assert_eq!(
            of_start(WARM, &[right, never.clone()], Some(&[]), true),
            "Right from the first question on in a warm start (hover): there is no need to wait. \
             Waiting does not help findReferences: what came was partial answers, and never the \
             right answer."
        );
        let wrong = timeline("hover", &[("[]", 5, 80_000), ("right", 90_005, 95_000)]);
        let told = of_start(WARM, &[wrong, never], None, true);
        assert!(
            told.contains("sees 90 ms of false empty lists (hover)."),
            "{told}"
        );
        let told = of_start(
            WARM,
            &[timeline("hover", &[("no answer", 5, 10)])],
            None,
            true,
        );
        assert_eq!(
            told,
            "No question was answered rightly in a warm start: what came was silence."
        );
        assert_eq!(
            of_start(WARM, &[], Some(&[]), true),
            "Nothing could be asked in a warm start."
        );
    }

    /// Where no right answer is known, none is told to be right or false.
    #[test]
    fn without_known_answers_only_what_came_is_told() {
        let answered = |from, until| ("answered", from, until);
        let timeline = |operation, heard: &[(&str, u64, u64)]| {
            let mut told = timeline(operation, heard);
            for heard in &mut told.heard {
                heard.right = heard.answer == "answered";
            }
            let mut heard = told.heard.iter();
            told.first_right_us = heard.find(|heard| heard.right).map(|heard| heard.from_us);
            told
        };
        let told = |operations: &[OperationTimeline], signals: &[Signal]| {
            of_start(WARM, operations, Some(signals), false)
        };
        assert_eq!(
            told(&[timeline("hover", &[answered(5, 9)])], &[]),
            "Answered from the first question on in a warm start; whether rightly is not known."
        );
        let error = ("error -32801", 5, 1_000_000);
        let late = timeline("hover", &[error, answered(2_000_005, 2_100_000)]);
        let signals = [signal(Some(true), 2_000_000)];
        assert_eq!(
            told(std::slice::from_ref(&late), &signals),
            "A client that does not wait in a warm start sees 2.0 s of error -32801 (hover); \
             x/ready is true at 2.0 s: every question after it was answered."
        );
        let signals = [signal(Some(false), 40)];
        let changing = ("another answer", 2_200_000, 2_300_000);
        let never = timeline("findReferences", &[error]);
        let operations = [
            timeline("hover", &[error, answered(2_000_005, 2_100_000), changing]),
            never.clone(),
        ];
        let all = told(&operations, &signals);
        for part in [
            "x/ready at 40 µs is no sign of the end: not every question after it was answered",
            "what came was error -32801, and never a result",
            "One answer is not enough: hover was answered otherwise after it.",
        ] {
            assert!(all.contains(part), "{all}");
        }
        let none = told(&[never], &[]);
        assert_eq!(
            none,
            "No question was answered in a warm start: what came was error -32801."
        );
        for text in [all, none] {
            assert!(!text.contains("right") && !text.contains("wrong"), "{text}");
        }
    }
}
