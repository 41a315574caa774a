//! What transcripts of this crate hold besides what every transcript holds.

use dsh_reports::Evidence;
use dsh_transcript::{Event, EventBody};

pub(crate) use dsh_reports::{ending as exit, event_line as line, member_names as names, quote};

/// The kind of the note that stands where a host began to end a process tree.
pub(crate) const TERMINATE: &str = "terminate";

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
