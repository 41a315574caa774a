//! QUA-19: what the server did to its workspace.

use dsh_reports::{Case, Verdict};

use super::Observed;
use crate::probes::Probe;

/// How many entries are named in the message.
const NAMED: usize = 4;

/// QUA-19. What the check itself writes is not in the difference.
pub(super) fn left_alone(probe: &Probe, seen: &Observed<'_>) -> Case {
    if let Err(case) = seen.initialized(probe) {
        return *case;
    }
    let in_part = if seen.written.in_part {
        "; the workspace is large, only a part of it was compared"
    } else {
        ""
    };
    let written = &seen.written.written;
    if written.is_empty() {
        return probe.case(
            Verdict::Pass,
            format!("nothing in the workspace was changed{in_part}"),
        );
    }
    let named: Vec<String> = written
        .iter()
        .take(NAMED)
        .map(|written| format!("{} {}", written.change, written.path))
        .collect();
    let more = match written.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let said = format!("{}{more}{in_part}", named.join(", "));
    let mut case = probe.missed(said, "the workspace as it was before");
    // Nothing on the wire shows it: the start of the process is what it follows from.
    let started = seen
        .whole
        .iter()
        .find(|event| matches!(event.body, dsh_transcript::EventBody::ProcessStarted { .. }));
    case.evidence = started.map_or_else(Vec::new, |event| seen.around(event.seq));
    case
}
