//! QUA-6, QUA-7, QUA-17: what passed on the wire over the whole life of the server.

use dsh_reports::{Case, Evidence, Verdict};
use dsh_scenarios::monitor::is_question;
use dsh_transcript::{Direction, Envelope, Event, EventBody, Exchange};

use super::answers::evidence_of;
use super::handshake::with_answer;
use super::{Asked, Knowledge, Observed, counted};
use crate::evidence::{self, is_cut_by_us, quote};
use crate::probes::Probe;
use crate::readiness::End;
use crate::shape;

/// QUA-6.
pub(super) fn purity(probe: &Probe, seen: &Observed<'_>) -> Case {
    let from_server = |event: &&Event| match &event.body {
        EventBody::Frame(frame) => frame.direction == Direction::ToClient,
        _ => false,
    };
    let frames = seen.events.iter().filter(from_server).count();
    if let Some(impure) = seen.whole.iter().find(|event| is_impure(seen, event)) {
        let (what, first) = whats_there(seen, impure);
        let mut case = probe.missed(
            format!("something else than frames on stdout: {}", quote(&first)),
            "frames and nothing else on stdout",
        );
        case.got = Some(what);
        case.evidence = seen.around(impure.seq);
        return case;
    }
    if frames == 0 {
        return probe.case(Verdict::Untestable, "no whole frame was written to stdout");
    }
    probe.case(
        Verdict::Pass,
        format!("{} on stdout, nothing else", counted(frames, "frame")),
    )
}

/// Bytes from the server that are no frame, or a frame that is not JSON. A frame that was cut off
/// because the process was ended is not the server's doing.
fn is_impure(seen: &Observed<'_>, event: &Event) -> bool {
    match &event.body {
        EventBody::Stray {
            direction: Direction::ToClient,
            ..
        } => !is_cut_by_us(seen.whole, event),
        EventBody::Frame(frame) => {
            frame.direction == Direction::ToClient
                && matches!(frame.envelope, Envelope::NotJson { .. })
        }
        _ => false,
    }
}

/// Where the bytes stood and what was wrong with them, and the text that is no frame.
fn whats_there(seen: &Observed<'_>, impure: &Event) -> (String, String) {
    match &impure.body {
        EventBody::Stray { offset, reason, .. } => {
            // The bytes behind the first unreadable ones belong to the same text.
            let text: String = seen
                .whole
                .iter()
                .filter(|event| event.seq >= impure.seq && event.process == impure.process)
                .filter_map(|event| match &event.body {
                    EventBody::Stray {
                        direction: Direction::ToClient,
                        bytes,
                        ..
                    } => Some(bytes.lossy().into_owned()),
                    _ => None,
                })
                .take(8)
                .collect();
            let place = if *offset == 0 {
                "before the first frame".to_owned()
            } else {
                format!("{offset} bytes into the stream")
            };
            let reason = reason
                .as_ref()
                .map_or_else(String::new, |reason| format!(" ({reason})"));
            (
                format!("{place}: {}{reason}", quote(&text)),
                before_a_header(&text).to_owned(),
            )
        }
        EventBody::Frame(frame) => {
            let body = String::from_utf8_lossy(&frame.body).into_owned();
            (
                format!("a frame whose body is not JSON: {}", quote(&body)),
                body,
            )
        }
        _ => (String::new(), String::new()),
    }
}

/// The text up to where a frame seems to begin again.
fn before_a_header(text: &str) -> &str {
    match text.find("Content-Length:") {
        Some(at) if at > 0 => &text[..at],
        _ => text,
    }
}

/// QUA-7.
pub(super) fn shapes(probe: &Probe, seen: &Observed<'_>) -> Case {
    if let Err(case) = seen.initialized(probe) {
        return *case;
    }
    let view = seen.view();
    let (mut legal, mut long) = (0_usize, 0_usize);
    for process in view.processes() {
        for exchange in view.exchanges(process, Direction::ToServer) {
            let method = exchange.method();
            let Some(answer) = exchange.answer.filter(|_| is_question(method)) else {
                continue;
            };
            let Some(frame) = answer.frame() else {
                continue;
            };
            if matches!(frame.envelope, Envelope::Response { error: Some(_), .. }) {
                continue;
            }
            if frame.cut.is_some() {
                long += 1;
                continue;
            }
            match shape::judge(method, exchange.result().as_ref()) {
                Ok(_) => legal += 1,
                Err(misshapen) => {
                    let said = format!("answer to {method}: {misshapen}");
                    let mut case = probe.missed(said, "one of the shapes LSP gives to the answer");
                    case.evidence = seen.around(answer.seq);
                    return case;
                }
            }
        }
    }
    match (legal, long) {
        (0, _) if seen.knowledge == Knowledge::Known => {
            probe.case(Verdict::Untestable, "no answer with a result came")
        }
        (0, _) => probe.case(
            Verdict::NotApplicable,
            "no answer with a result came from where was asked; give --at FILE:LINE:COL",
        ),
        (legal, 0) => probe.case(
            Verdict::Pass,
            format!("{} of legal shape", counted(legal, "answer")),
        ),
        (legal, long) => probe.case(
            Verdict::Pass,
            format!(
                "{} of legal shape, {long} too long to be kept",
                counted(legal, "answer")
            ),
        ),
    }
}

/// QUA-17.
pub(super) fn unconfigured(probe: &Probe, seen: &Observed<'_>) -> Case {
    if let Err(case) = seen.initialized(probe) {
        return *case;
    }
    let view = seen.view();
    let (mut configuration, mut registrations) = (0_usize, 0_usize);
    let mut first: Option<Exchange<'_>> = None;
    for process in view.processes() {
        for exchange in view.exchanges(process, Direction::ToClient) {
            match exchange.method() {
                "workspace/configuration" => configuration += 1,
                "client/registerCapability" => registrations += 1,
                _ => continue,
            }
            first = first.or(Some(exchange));
        }
    }
    let asked: Vec<String> = [
        (configuration, "configuration answered null"),
        (registrations, "registration acknowledged"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("{what} ({count}×)"))
    .collect();
    let expected = if seen.knowledge == Knowledge::Known {
        "right answers without settings"
    } else {
        "answers without settings"
    };
    if seen.configured {
        let case = probe.missed(
            "it is given settings, so what it does without them was not seen",
            expected,
        );
        return match first {
            Some(asked) => {
                with_evidence(case, seen.around(asked.answer.unwrap_or(asked.request).seq))
            }
            None => with_answer(seen, case),
        };
    }
    if asked.is_empty() {
        let said = "it asked for no configuration and registered nothing";
        return probe.case(Verdict::NotApplicable, said);
    }
    let asked = asked.join(", ");
    if seen.knowledge != Knowledge::Known {
        let said = format!("{asked}; whether it works is not known without known answers");
        return probe.case(Verdict::NotApplicable, said);
    }
    let decided = || {
        let questions = seen.questions.iter();
        questions.filter_map(|asked| Some((asked, asked.track.end()?)))
    };
    if let Some((wrong, _)) = decided().find(|(_, end)| **end != End::Stable) {
        let case = probe.missed(
            format!("{asked}; some answers were not right, settings may be what is missing"),
            expected,
        );
        with_evidence(case, refused_and_wrong(seen, first, wrong))
    } else if decided().next().is_none() {
        probe.case(
            Verdict::Untestable,
            format!("{asked}; no question was decided"),
        )
    } else {
        probe.case(Verdict::Pass, asked)
    }
}

/// What was asked of the client first, and what passed around the last answer to a question that did
/// not come right.
fn refused_and_wrong(
    seen: &Observed<'_>,
    first: Option<Exchange<'_>>,
    wrong: &Asked,
) -> Vec<Evidence> {
    let asked = first.map(|asked| [Some(asked.request), asked.answer]);
    let mut all: Vec<Evidence> = asked
        .into_iter()
        .flatten()
        .flatten()
        .map(|event| Evidence {
            seq: event.seq,
            at_us: event.at_us,
            text: evidence::line(seen.whole, event),
            decisive: false,
        })
        .collect();
    let around = evidence_of(seen, wrong);
    all.retain(|event| around.iter().all(|other| other.seq != event.seq));
    all.extend(around);
    all.sort_by_key(|event| event.seq);
    all
}

fn with_evidence(mut case: Case, evidence: Vec<Evidence>) -> Case {
    case.evidence = evidence;
    case
}
