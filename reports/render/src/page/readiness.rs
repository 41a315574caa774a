//! How soon a server's answers are true: what each operation answered from the first moment on.

use super::text::{percent, shown};
use crate::measured::{Measured, Start, StartKind};
use crate::model::{Heard, OperationTimeline, Run};
use crate::text::duration;
use crate::trajectory::text::clipped;
use crate::words;

/// The most stretches of one operation that are shown.
const MOST: usize = 400;

/// The most characters of what there is to say of an answer: the log of a crash is longer.
const DETAIL: usize = 300;

/// Which part of the scale a stretch takes at least: one of so many.
const LEAST: u64 = 250;

/// One start, or what was asked through the host.
pub(super) struct StartView {
    pub(super) heading: &'static str,
    pub(super) summary: Option<String>,
    pub(super) lines: Vec<TimeLine>,
    /// Moments that are no answer: the answer to `initialize`, signals.
    pub(super) marks: Vec<Mark>,
    pub(super) ticks: Vec<Tick>,
    /// The scale's end in words.
    pub(super) span: String,
}

/// One operation's answers.
pub(super) struct TimeLine {
    pub(super) operation: String,
    pub(super) bars: Vec<Bar>,
    /// Where the first right answer came, in per cent.
    pub(super) right: Option<String>,
    pub(super) words: String,
    pub(super) heard: Vec<HeardRow>,
    pub(super) more: usize,
}

/// A stretch of equal answers, as long as nothing else was answered.
pub(super) struct Bar {
    pub(super) class: &'static str,
    pub(super) x: String,
    pub(super) width: String,
}

pub(super) struct HeardRow {
    pub(super) class: &'static str,
    pub(super) answer: String,
    pub(super) times: u64,
    pub(super) when: String,
    pub(super) detail: Option<String>,
}

/// A moment on the time line.
pub(super) struct Mark {
    pub(super) x: String,
    pub(super) at: String,
    pub(super) name: String,
    /// What came of it.
    pub(super) class: &'static str,
    pub(super) sign: &'static str,
    pub(super) words: &'static str,
}

/// A number at the scale.
pub(super) struct Tick {
    pub(super) x: String,
    pub(super) text: String,
    /// Where the text stands: behind the first, before the last.
    pub(super) class: &'static str,
}

/// The starts on one scale, so that they can be compared.
pub(super) fn starts(run: &Run) -> Vec<StartView> {
    let none = Measured::default();
    let starts = &run.measured.as_ref().unwrap_or(&none).starts;
    let followed = starts.iter().map(end_of_start).max().unwrap_or(0);
    let mut views: Vec<StartView> = Vec::new();
    for start in starts {
        let again = views.iter().any(|known| known.heading == kind(start.kind));
        views.push(StartView {
            heading: heading(start.kind, again),
            ..of_start(start, followed, run.knows_answers())
        });
    }
    // A cold start that was measured says the same, and more.
    let told = starts.iter().any(|start| start.kind == StartKind::Cold);
    if !run.operations.is_empty() && !told {
        let span = end(&run.operations);
        views.push(StartView {
            heading: "As the host was answered",
            summary: None,
            lines: lines(&run.operations, span, run.knows_answers()),
            marks: Vec::new(),
            ticks: ticks(span),
            span: duration(span),
        });
    }
    views
}

fn end(operations: &[OperationTimeline]) -> u64 {
    let moments = operations.iter().flat_map(|operation| {
        let heard = operation.heard.iter().map(|heard| heard.until_us);
        heard.chain([operation.asked_us, operation.stable_us.unwrap_or(0)])
    });
    moments.max().unwrap_or(0)
}

fn end_of_start(start: &Start) -> u64 {
    let signals = start.signals.iter().map(|signal| signal.at_us);
    let moments = signals.chain([end(&start.operations), start.initialized_us.unwrap_or(0)]);
    moments.max().unwrap_or(0)
}

fn of_start(start: &Start, span: u64, known: bool) -> StartView {
    let initialized = start.initialized_us.map(|at| Mark {
        x: percent(at, span),
        at: duration(at),
        name: "initialize answered".to_owned(),
        class: "none",
        sign: "",
        words: "",
    });
    let signals = start.signals.iter().take(MOST).map(|signal| {
        let (class, sign, words) = match signal.held {
            Some(true) if known => ("good", "✓", "true: every answer after it was right"),
            Some(true) => ("good", "✓", "true: every question after it was answered"),
            Some(false) if known => ("bad", "✗", "not true: an answer after it was not right"),
            Some(false) => (
                "bad",
                "✗",
                "not true: not every question after it was answered",
            ),
            None => ("none", "–", "nothing was asked after it"),
        };
        Mark {
            x: percent(signal.at_us, span),
            at: duration(signal.at_us),
            name: shown(&signal.name),
            class,
            sign,
            words,
        }
    });
    StartView {
        heading: kind(start.kind),
        summary: Some(shown(&start.summary)).filter(|summary| !summary.is_empty()),
        lines: lines(&start.operations, span, known),
        marks: initialized.into_iter().chain(signals).collect(),
        ticks: ticks(span),
        span: duration(span),
    }
}

/// What stands over a start. One that was followed twice was so the second time by a client that
/// takes progress: that one hears signals of which the host does not ask.
const fn heading(of: StartKind, again: bool) -> &'static str {
    match (of, again) {
        (_, false) => kind(of),
        (StartKind::Cold, true) => "Cold start, seen by a client that announces progress",
        (StartKind::Warm, true) => "Warm start, seen by a client that announces progress",
    }
}

/// What a start is called.
pub(super) const fn kind(kind: StartKind) -> &'static str {
    match kind {
        StartKind::Cold => "Cold start",
        StartKind::Warm => "Warm start",
    }
}

fn lines(operations: &[OperationTimeline], span: u64, known: bool) -> Vec<TimeLine> {
    operations.iter().map(|of| line(of, span, known)).collect()
}

fn line(of: &OperationTimeline, span: u64, known: bool) -> TimeLine {
    let heard = &of.heard[..of.heard.len().min(MOST)];
    let bars = heard.iter().enumerate().map(|(index, stretch)| {
        let next = heard.get(index + 1).map(|next| next.from_us);
        let until = next.unwrap_or(stretch.until_us).max(stretch.from_us);
        // A single answer takes no time, and is seen all the same.
        let least = span.div_ceil(LEAST);
        Bar {
            class: class(stretch),
            x: percent(stretch.from_us.min(span.saturating_sub(least)), span),
            width: percent((until - stretch.from_us).max(least), span),
        }
    });
    let rows = heard.iter().map(|stretch| HeardRow {
        class: class(stretch),
        answer: shown(&stretch.answer),
        times: stretch.times,
        when: if stretch.from_us == stretch.until_us {
            format!("at {}", duration(stretch.from_us))
        } else {
            format!(
                "{} to {}",
                duration(stretch.from_us),
                duration(stretch.until_us)
            )
        },
        detail: stretch
            .detail
            .as_deref()
            .map(|of| clipped(&shown(of), DETAIL)),
    });
    TimeLine {
        operation: shown(&of.operation),
        right: of.first_right_us.map(|at| percent(at, span)),
        words: words::readiness(of, known, ""),
        bars: bars.collect(),
        heard: rows.collect(),
        more: of.heard.len().saturating_sub(MOST),
    }
}

/// What kind of answer it is: the truth, something that passes for it, or an honest error.
pub(super) fn class(heard: &Heard) -> &'static str {
    let answer = heard.answer.as_str();
    match answer {
        _ if heard.right => "right",
        "[]" => "empty",
        "null" => "null",
        _ if answer.starts_with("partial") => "partial",
        "error -32801" => "stale",
        "the server died" => "error",
        _ if answer.starts_with("error") => "error",
        _ if answer.starts_with("no answer") => "silence",
        _ => "wrong",
    }
}

/// The kinds of answers that occur on time lines: class and words.
pub(super) fn kinds(starts: &[StartView], known: bool) -> Vec<(&'static str, &'static str)> {
    const ALL: [(&str, &str); 8] = [
        ("right", "right"),
        ("partial", "partial"),
        ("empty", "[]"),
        ("null", "null"),
        ("wrong", "wrong"),
        ("stale", "error −32801"),
        ("error", "other error, or death"),
        ("silence", "no answer"),
    ];
    let lines = starts.iter().flat_map(|start| &start.lines);
    let bars: Vec<&str> = lines
        .flat_map(|line| &line.bars)
        .map(|bar| bar.class)
        .collect();
    let occurs = |(class, _): &(&str, &str)| bars.contains(class);
    let said = |(class, words): (&'static str, &'static str)| match class {
        "right" if !known => (class, "answered"),
        "wrong" if !known => (class, "another answer"),
        _ => (class, words),
    };
    ALL.into_iter().filter(occurs).map(said).collect()
}

/// At most six round numbers, the beginning with them.
fn ticks(span: u64) -> Vec<Tick> {
    let mut step: u64 = 1_000;
    let mut factors = [2_u64, 5, 10].into_iter().cycle();
    let mut base = step;
    while span / step > 5 {
        let factor = factors.next().unwrap_or(10);
        step = base.saturating_mul(factor);
        if factor == 10 {
            base = step;
        }
    }
    (0..=span / step)
        .map(|index| {
            let at = index * step;
            let near_end = at > span - span / 12;
            Tick {
                x: percent(at, span),
                text: if at == 0 {
                    "0".to_owned()
                } else {
                    duration(at)
                },
                class: match (index, near_end) {
                    (0, _) => "start",
                    (_, true) => "end",
                    _ => "middle",
                },
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_starts_have_the_same_heading() {
        let start = |kind| Start {
            kind,
            initialized_us: None,
            operations: Vec::new(),
            signals: Vec::new(),
            summary: String::new(),
        };
        let mut run = Run::new(crate::Subject::named(crate::SubjectKind::Server, "x"));
        run.measured = Some(Measured {
            starts: [StartKind::Cold, StartKind::Cold, StartKind::Warm]
                .map(start)
                .into(),
            ..Measured::default()
        });
        let headings: Vec<&str> = starts(&run).iter().map(|start| start.heading).collect();
        assert_eq!(
            headings,
            [
                "Cold start",
                "Cold start, seen by a client that announces progress",
                "Warm start"
            ]
        );
    }

    #[test]
    fn ticks_are_few_and_round_at_every_scale() {
        for span in [
            0,
            1,
            999,
            5_000,
            60_000,
            412_000,
            21_000_000,
            600_000_000,
            u64::MAX,
        ] {
            let ticks = ticks(span);
            assert!((1..=6).contains(&ticks.len()), "{span}: {}", ticks.len());
        }
        let texts: Vec<String> = ticks(21_000_000)
            .into_iter()
            .map(|tick| tick.text)
            .collect();
        assert_eq!(texts, ["0", "5.0 s", "10 s", "15 s", "20 s"]);
    }

    #[test]
    fn answers_are_told_apart_by_what_they_do_to_a_client() {
        let heard = |answer: &str, right| Heard {
            answer: answer.to_owned(),
            right,
            times: 1,
            from_us: 0,
            until_us: 0,
            detail: None,
        };
        for (answer, kind) in [
            ("[]", "empty"),
            ("null", "null"),
            ("partial 3/6", "partial"),
            ("error -32801", "stale"),
            ("error -32603", "error"),
            ("no answer", "silence"),
            ("wrong place", "wrong"),
        ] {
            assert_eq!(class(&heard(answer, false)), kind);
        }
        assert_eq!(class(&heard("[]", true)), "right");
    }

    #[test]
    fn a_stretch_lasts_until_the_next_answer() {
        let heard = |right, from_us, until_us| Heard {
            answer: if right { "right" } else { "[]" }.to_owned(),
            right,
            times: 2,
            from_us,
            until_us,
            detail: None,
        };
        let line = line(
            &OperationTimeline {
                operation: "hover".to_owned(),
                asked_us: 0,
                first_right_us: Some(500),
                stable_us: Some(900),
                asked: 4,
                latency_us: None,
                heard: vec![heard(false, 100, 200), heard(true, 500, 900)],
            },
            1_000,
            true,
        );
        let bars: Vec<(&str, &str)> = line.bars.iter().map(|bar| (&*bar.x, &*bar.width)).collect();
        assert_eq!(bars, [("10.00", "40.00"), ("50.00", "40.00")]);
        assert_eq!(line.words, "right 500 µs, stable 900 µs");
    }
}
