//! What came out of a process, counted from the recording: pure.

use dsh_reports::{Output, StartKind};
use dsh_transcript::{Direction, Event, EventBody, View};

use crate::evidence::is_cut_by_us;

/// What process `process` wrote from its start to its end.
pub(super) fn of_process(events: &[Event], process: u32, kind: StartKind) -> Output {
    let mut output = Output {
        kind,
        frames: 0,
        stdout_bytes: 0,
        stray_bytes: 0,
        stderr_bytes: 0,
    };
    let mut framed = 0;
    let mut stray = 0;
    // What was cut off by us is neither a frame nor anything else.
    let mut cut = 0;
    let mut total = None;
    for event in View(events).of(process) {
        match &event.body {
            EventBody::Frame(frame) if frame.direction == Direction::ToClient => {
                output.frames += 1;
                framed += frame.header.len() as u64 + frame.size;
            }
            EventBody::Stray {
                direction: Direction::ToClient,
                bytes,
                dropped,
                ..
            } => {
                let size = bytes.len() as u64 + dropped;
                stray += size;
                if is_cut_by_us(events, event) {
                    cut += size;
                }
            }
            EventBody::Closed {
                direction: Direction::ToClient,
                total: passed,
            } => total = Some(*passed),
            EventBody::Stderr { text } => output.stderr_bytes += text.len() as u64,
            _ => {}
        }
    }
    output.stdout_bytes = total.unwrap_or(framed + stray);
    output.stray_bytes = output.stdout_bytes.saturating_sub(framed + cut);
    output
}

#[cfg(test)]
mod tests {
    use super::*;
    use dsh_transcript::{Raw, Recorder, Tap};

    #[test]
    fn frames_and_what_belongs_to_none_are_counted_apart() {
        let recorder = Recorder::new();
        let mut out = Tap::new(recorder.clone(), 1, Direction::ToClient);
        let mut into = Tap::new(recorder.clone(), 1, Direction::ToServer);
        let mut other = Tap::new(recorder.clone(), 2, Direction::ToClient);
        into.bytes(b"Content-Length: 2\r\n\r\n{}");
        out.bytes(b"Content-Length: 2\r\n\r\n{}");
        out.bytes(b"Content-Length: 2\r\n\r\n[]");
        out.bytes(b"hello\nworld");
        other.bytes(b"Content-Length: 2\r\n\r\n[]");
        let text = Raw::copy(b"four");
        recorder.emit(Some(1), EventBody::Stderr { text });
        out.end();
        let output = of_process(&recorder.events(), 1, StartKind::Warm);
        assert_eq!(
            output,
            Output {
                kind: StartKind::Warm,
                frames: 2,
                stdout_bytes: 57,
                stray_bytes: 11,
                stderr_bytes: 4,
            }
        );
    }

    #[test]
    fn a_frame_that_was_cut_off_is_stray() {
        let recorder = Recorder::new();
        let mut out = Tap::new(recorder.clone(), 1, Direction::ToClient);
        out.bytes(b"Content-Length: 9\r\n\r\n{");
        out.end();
        let output = of_process(&recorder.events(), 1, StartKind::Cold);
        assert_eq!(
            (output.frames, output.stdout_bytes, output.stray_bytes),
            (0, 22, 22)
        );
    }

    #[test]
    fn a_frame_that_we_cut_off_is_not() {
        let recorder = Recorder::new();
        let mut into = Tap::new(recorder.clone(), 1, Direction::ToServer);
        let mut out = Tap::new(recorder.clone(), 1, Direction::ToClient);
        out.bytes(b"Content-Length: 2\r\n\r\n{}Content-Length: 9\r\n\r\n{");
        into.end();
        out.end();
        let output = of_process(&recorder.events(), 1, StartKind::Cold);
        assert_eq!(
            (output.frames, output.stdout_bytes, output.stray_bytes),
            (1, 45, 0)
        );
    }
}
