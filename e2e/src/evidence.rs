//! What transcripts of this crate hold besides what every transcript holds.

use dsh_reports::Evidence;
use dsh_transcript::{Direction, Event, EventBody, Malformed};

pub(crate) use dsh_reports::{ending as exit, event_line as line, member_names as names, quote};

/// The kind of the note that stands where a host began to end a process tree.
pub(crate) const TERMINATE: &str = "terminate";

/// The kind of the note that stands where a client ceases to read what a server writes.
pub(crate) const UNREAD: &str = "unread";

/// The kind of the note that stands where the server was killed in a question.
pub(crate) const KILLED: &str = "killed";

/// Whether `event` is a frame that is not whole because its process was being ended, or not read on,
/// by us: that says nothing of what the server writes.
pub(crate) fn is_cut_by_us(events: &[Event], event: &Event) -> bool {
    let is_cut = matches!(
        &event.body,
        EventBody::Stray {
            direction: Direction::ToClient,
            reason: Some(Malformed::EndInHeader { .. } | Malformed::EndInBody { .. }),
            ..
        }
    );
    let by_us = |earlier: &Event| match &earlier.body {
        EventBody::Note { kind, .. } => [TERMINATE, KILLED, UNREAD].contains(&kind.as_str()),
        EventBody::Closed { direction, .. } => *direction == Direction::ToServer,
        _ => false,
    };
    is_cut
        && events
            .iter()
            .take_while(|earlier| earlier.seq < event.seq)
            .any(|earlier| earlier.process == event.process && by_us(earlier))
}

/// The kind of the note that stands behind the start of a process that the raw driver speaks to,
/// not a host: what passes there is said on purpose, and judges nobody.
pub const RAW: &str = "raw";

/// The event at position `seq` and those around it that concern the same process. Questions that
/// the check asked are left out: it asks them over and over.
pub(crate) fn around(events: &[Event], seq: u64) -> Vec<Evidence> {
    dsh_reports::around(events, seq, |body| {
        !matches!(body, EventBody::Call { .. } | EventBody::Result { .. })
    })
}
