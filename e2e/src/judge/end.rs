//! QUA-8 and QUA-9: how the server ends.

use dsh_reports::{Case, Verdict, duration};
use dsh_transcript::{Direction, Event, EventBody, Termination};

use super::Observed;
use crate::evidence::{self, TERMINATE, names};
use crate::probes::Probe;

/// The end of the process that was asked to shut down.
struct Ending<'a> {
    process: u32,
    shutdown: &'a Event,
    answer: Option<&'a Event>,
    error: Option<serde_json::Value>,
    exit: Option<&'a Event>,
    ended: Option<&'a Event>,
    stdin_closed: Option<&'a Event>,
    /// Where the host began to end what was left.
    forced: Option<&'a Event>,
    terminations: Vec<(&'a Event, &'a Termination)>,
}

impl<'a> Ending<'a> {
    /// The ending of the last process that was sent `shutdown`.
    fn of(seen: &Observed<'a>) -> Option<Self> {
        let view = seen.view();
        view.processes().into_iter().rev().find_map(|process| {
            let exchange = view
                .exchanges(process, Direction::ToServer)
                .into_iter()
                .find(|exchange| exchange.method() == "shutdown")?;
            let behind = || view.of(process).filter(|event| event.seq > exchange.request.seq);
            Some(Self {
                process,
                shutdown: exchange.request,
                answer: exchange.answer,
                error: exchange.error(),
                exit: behind().find(|event| event.is_message(Direction::ToServer, "exit")),
                ended: view
                    .of(process)
                    .find(|event| matches!(event.body, EventBody::ProcessEnded { .. })),
                stdin_closed: behind().find(|event| {
                    matches!(event.body, EventBody::Closed { direction: Direction::ToServer, .. })
                }),
                forced: behind().find(
                    |event| matches!(&event.body, EventBody::Note { kind, .. } if kind == TERMINATE),
                ),
                terminations: behind()
                    .filter_map(|event| match &event.body {
                        EventBody::Termination(end) => Some((event, end)),
                        _ => None,
                    })
                    .collect(),
            })
        })
    }

    /// Whether the leader ended before anything was done to it.
    fn by_itself(&self) -> bool {
        self.ended
            .is_some_and(|ended| self.forced.is_none_or(|forced| ended.seq < forced.seq))
    }

    /// Whether the process was still there when its stdin was closed: it may have taken that to end
    /// it, or more time than a host waits before it closes stdin.
    fn outlived_stdin(&self) -> bool {
        match (self.ended, self.stdin_closed) {
            (Some(ended), Some(closed)) => closed.seq < ended.seq,
            (None, Some(_)) => true,
            _ => false,
        }
    }
}

fn never_asked(probe: &Probe, seen: &Observed<'_>) -> Case {
    let said = if seen
        .handshake()
        .is_none_or(|handshake| handshake.result.is_none())
    {
        "initialize was not answered, so there was nothing to shut down"
    } else {
        "no process was left to be shut down"
    };
    probe.case(Verdict::Untestable, said)
}

/// QUA-8.
pub(super) fn leaves(probe: &Probe, seen: &Observed<'_>) -> Case {
    let Some(ending) = Ending::of(seen) else {
        return never_asked(probe, seen);
    };
    let expected = "shutdown answered, the process gone after exit, nothing left behind";
    let fail = |said: String, seq: u64| {
        let mut case = probe.missed(said, expected);
        case.evidence = seen.around(seq);
        case
    };
    // Some servers take `shutdown` for `exit` and are gone before they answer.
    if ending.answer.is_none() {
        return match ending.ended.filter(|_| ending.by_itself()) {
            Some(ended) => fail("ended without an answer to shutdown".to_owned(), ended.seq),
            None => fail("shutdown was not answered".to_owned(), ending.shutdown.seq),
        };
    }
    let Some(ended) = ending.ended.filter(|_| ending.by_itself()) else {
        let after = if ending.exit.is_some() {
            "exit"
        } else {
            "shutdown"
        };
        let seq = ending.forced.map_or(ending.shutdown.seq, |event| event.seq);
        return fail(
            format!("still running after {after} and the end of stdin"),
            seq,
        );
    };
    for (event, end) in &ending.terminations {
        let left = [&end.alive, &end.terminated, &end.killed, &end.escaped];
        if let Some(left) = left.into_iter().find(|members| !members.is_empty()) {
            return fail(format!("left behind: {}", names(left)), event.seq);
        }
    }
    if ending.terminations.is_empty() {
        let said = format!("process {} was not watched to its end", ending.process);
        return probe.case(Verdict::HarnessError, said);
    }
    let asked = ending.exit.unwrap_or(ending.shutdown);
    let took = duration(ended.at_us.saturating_sub(asked.at_us));
    let mut said = format!("exit after {took}, no process left");
    if ending.outlived_stdin() {
        said = format!("exit after {took}, stdin was closed before that; no process left");
    }
    if let Some(error) = &ending.error {
        said = format!("{said}; shutdown answered with error {}", error["code"]);
    }
    probe.case(Verdict::Pass, said)
}

/// QUA-9.
pub(super) fn exit_code(probe: &Probe, seen: &Observed<'_>) -> Case {
    let Some(ending) = Ending::of(seen) else {
        return never_asked(probe, seen);
    };
    let Some(ended) = ending.ended.filter(|_| ending.by_itself()) else {
        return probe.case(
            Verdict::Untestable,
            "it did not end by itself, so it has no exit code",
        );
    };
    match ended.body {
        EventBody::ProcessEnded { code: Some(0), .. } => probe.case(Verdict::Pass, "exit code 0"),
        EventBody::ProcessEnded { code, signal } => {
            let mut case = probe.missed(evidence::exit(code, signal), "exit code 0");
            case.evidence = seen.around(ended.seq);
            case
        }
        _ => probe.case(
            Verdict::HarnessError,
            "the end of the process was not recorded",
        ),
    }
}
