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

#[cfg(test)]
mod tests {
    use dsh_transcript::{Recorder, Tap};

    use super::*;

    /// What is told of half a frame behind a whole one, where `ours` happens before the stream ends.
    fn told(half: &[u8], ours: Option<EventBody>) -> Vec<bool> {
        let recorder = Recorder::new();
        let mut out = Tap::new(recorder.clone(), 1, Direction::ToClient);
        out.bytes(b"Content-Length: 2\r\n\r\n{}");
        out.bytes(half);
        if let Some(ours) = ours {
            // What is done to another process says nothing.
            recorder.emit(Some(2), EventBody::note(KILLED, ""));
            recorder.emit(Some(1), ours);
        }
        out.end();
        let events = recorder.events();
        let stray = |event: &&Event| matches!(event.body, EventBody::Stray { .. });
        events
            .iter()
            .filter(stray)
            .map(|event| is_cut_by_us(&events, event))
            .collect()
    }

    #[test]
    fn half_a_frame_of_a_process_that_we_end_is_our_doing() {
        let closed = |direction| EventBody::Closed {
            direction,
            total: 0,
        };
        for half in [&b"Content-Le"[..], b"Content-Length: 9\r\n\r\n{\"a"] {
            for ours in [TERMINATE, KILLED, UNREAD] {
                assert_eq!(
                    told(half, Some(EventBody::note(ours, ""))),
                    [true],
                    "{ours}"
                );
            }
            assert_eq!(told(half, Some(closed(Direction::ToServer))), [true]);
            assert_eq!(told(half, None), [false]);
            let other = EventBody::note("asked", "");
            assert_eq!(told(half, Some(other)), [false]);
        }
        // What is no frame is none, whoever ends the process.
        let killed = EventBody::note(KILLED, "");
        assert_eq!(told(b"hello\r\n\r\n", Some(killed)), [false]);
    }
}
