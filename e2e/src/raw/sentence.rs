//! What an author of a client has to know of a start, in a sentence: pure.

use std::fmt::Write as _;

use dsh_reports::{OperationTimeline, Signal, StartKind, duration};

/// From here on the first answer is worth telling of, in microseconds.
const SLOW_US: u64 = 1_000_000;

/// As many kinds of answer are named.
const SHOWN: usize = 4;

/// The sentence of a start. `operations` count from the start of the process.
pub(super) fn of_start(
    kind: StartKind,
    operations: &[OperationTimeline],
    signals: &[Signal],
) -> String {
    let start = match kind {
        StartKind::Cold => "a cold start",
        StartKind::Warm => "a warm start",
    };
    if operations.is_empty() {
        return format!("Nothing could be asked in {start}.");
    }
    let never: Vec<&str> = operations
        .iter()
        .filter(|timeline| timeline.first_right_us.is_none())
        .map(|timeline| timeline.operation.as_str())
        .collect();
    if never.len() == operations.len() {
        let came = worst(operations).map_or_else(String::new, |(.., answers)| {
            format!(": what came was {answers}")
        });
        return format!("No question was answered rightly in {start}{came}.");
    }
    let mut text = match worst(operations) {
        None => match first_us(operations) {
            Some(first) if first >= SLOW_US => format!(
                "Right from the first question on in {start}, whose first answer comes after {}.",
                duration(first)
            ),
            _ => format!("Right from the first question on in {start}: there is no need to wait."),
        },
        Some((since_us, until_us, answers)) => {
            let told = told_by(signals, until_us);
            format!(
                "A client that does not wait in {start} sees {} of {answers}{told}.",
                duration(until_us.saturating_sub(since_us))
            )
        }
    };
    if !never.is_empty() {
        let _ = write!(text, " {} never came right.", never.join(" and "));
    }
    let unsteady = operations
        .iter()
        .filter(|timeline| timeline.first_right_us.is_some() && was_wrong_again(timeline));
    let unsteady: Vec<&str> = unsteady
        .map(|timeline| timeline.operation.as_str())
        .collect();
    if !unsteady.is_empty() {
        let _ = write!(
            text,
            " One right answer is not enough: {} was wrong again after it.",
            unsteady.join(" and ")
        );
    }
    text
}

/// When the first answer of all came.
fn first_us(operations: &[OperationTimeline]) -> Option<u64> {
    let heard = operations.iter().filter_map(|known| known.heard.first());
    heard.map(|heard| heard.from_us).min()
}

fn was_wrong_again(timeline: &OperationTimeline) -> bool {
    let mut after = timeline.heard.iter().skip_while(|heard| !heard.right);
    after.any(|heard| !heard.right)
}

/// Since when and until when wrong answers came to any operation, and which: those that were not
/// right, in the order of their names, each once.
fn worst(operations: &[OperationTimeline]) -> Option<(u64, u64, String)> {
    let wrong = || {
        operations
            .iter()
            .flat_map(|timeline| &timeline.heard)
            .filter(|heard| !heard.right)
    };
    // The wrong time lasts until the right answer that ends it, not to the last wrong one.
    let until = operations
        .iter()
        .filter(|timeline| timeline.heard.iter().any(|heard| !heard.right))
        .filter_map(|timeline| {
            let last = timeline.heard.iter().rposition(|heard| !heard.right)?;
            let next = timeline.heard.get(last + 1).map(|heard| heard.from_us);
            Some(next.unwrap_or(timeline.heard[last].until_us))
        })
        .max()?;
    let mut answers: Vec<&str> = wrong().map(|heard| plain(&heard.answer)).collect();
    answers.sort_unstable();
    answers.dedup();
    let more = answers.len().saturating_sub(SHOWN);
    answers.truncate(SHOWN);
    let mut said = match answers.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => return None,
    };
    if more > 0 {
        said = format!("{said} (and {more} more kinds of answer)");
    }
    // Before the first answer nothing false is seen.
    let since = wrong().map(|heard| heard.from_us).min()?;
    Some((since, until, said))
}

fn plain(answer: &str) -> &str {
    match answer {
        "[]" => "empty lists",
        "null" => "null",
        "wrong place" => "wrong places",
        partial if partial.starts_with("partial") => "partial answers",
        "no answer" => "silence",
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
fn told_by(signals: &[Signal], until_us: u64) -> String {
    let told = |held| {
        let mut signals = signals.iter().filter(|signal| means_ready(&signal.name));
        signals.find(|signal| signal.held == Some(held))
    };
    if let Some(signal) = told(true) {
        let late = signal.at_us > until_us.saturating_mul(3).saturating_add(1_000_000);
        let how = if late { ", though late," } else { "" };
        return format!(
            "; {} is true{how} at {}: every answer after it was right",
            signal.name,
            duration(signal.at_us)
        );
    }
    if let Some(signal) = told(false) {
        return format!(
            "; {} at {} is no sign of the end: wrong answers came after it",
            signal.name,
            duration(signal.at_us)
        );
    }
    "; nothing it sends says when that is over".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dsh_reports::Heard;

    fn timeline(operation: &str, heard: &[(&str, u64, u64)]) -> OperationTimeline {
        let heard: Vec<Heard> = heard
            .iter()
            .map(|(answer, from_us, until_us)| Heard {
                answer: (*answer).to_owned(),
                right: *answer == "right",
                times: 1,
                from_us: *from_us,
                until_us: *until_us,
                detail: None,
            })
            .collect();
        OperationTimeline {
            operation: operation.to_owned(),
            asked_us: 0,
            first_right_us: heard.iter().find(|h| h.right).map(|h| h.from_us),
            stable_us: None,
            asked: 1,
            latency_us: None,
            heard,
        }
    }

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
        let told = of_start(WARM, &[timeline("hover", &[("right", 5, 9)])], &[]);
        assert_eq!(
            told,
            "Right from the first question on in a warm start: there is no need to wait."
        );
    }

    #[test]
    fn a_first_answer_that_takes_long_is_told() {
        let told = of_start(
            WARM,
            &[timeline("hover", &[("right", 5_600_000, 6_000_000)])],
            &[],
        );
        assert_eq!(
            told,
            "Right from the first question on in a warm start, whose first answer comes after \
             5.6 s."
        );
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
        let told = |signals: &[Signal]| of_start(StartKind::Cold, &operations, signals);
        assert_eq!(
            told(&[]),
            "A client that does not wait in a cold start sees 2.1 s of empty lists and null; \
             nothing it sends says when that is over."
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
    fn what_never_came_right_and_what_was_wrong_again_is_told() {
        let told = of_start(
            WARM,
            &[
                timeline(
                    "hover",
                    &[("right", 5, 9), ("error -32801", 10, 11), ("right", 12, 13)],
                ),
                timeline("findReferences", &[("partial 3/6", 5, 10)]),
            ],
            &[],
        );
        assert!(told.contains("error -32801 and partial answers"), "{told}");
        assert!(told.contains(" findReferences never came right."), "{told}");
        assert!(told.contains("hover was wrong again"), "{told}");
        let told = of_start(WARM, &[timeline("hover", &[("no answer", 5, 10)])], &[]);
        assert_eq!(
            told,
            "No question was answered rightly in a warm start: what came was silence."
        );
        assert_eq!(
            of_start(WARM, &[], &[]),
            "Nothing could be asked in a warm start."
        );
    }
}
