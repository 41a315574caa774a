//! A picture of what happened around the event that decided: subject, wire and server over time.

use super::text::shown;
use crate::model::Evidence;
use crate::text::duration;

/// The most events of one picture.
const MOST: usize = 60;

/// From how long on nothing happening is worth a word, in microseconds.
const LONG: u64 = 100_000;

/// The picture.
pub(super) struct Sequence {
    pub(super) rows: Vec<Row>,
    /// How many events were left out.
    pub(super) more: usize,
}

/// One event.
pub(super) struct Row {
    pub(super) class: &'static str,
    /// Who does what to whom, for those who do not see the lanes.
    pub(super) who: &'static str,
    pub(super) at: String,
    /// How long nothing happened before.
    pub(super) pause: Option<String>,
    pub(super) seq: u64,
    pub(super) text: String,
    pub(super) decisive: bool,
}

/// The picture of events, if there are any.
pub(super) fn sequence(evidence: &[Evidence]) -> Option<Sequence> {
    let mut before: Option<u64> = None;
    let rows: Vec<Row> = evidence
        .iter()
        .take(MOST)
        .map(|event| {
            let (class, who, text) = lane(&event.text);
            let pause = before.map(|before| event.at_us.saturating_sub(before));
            before = Some(event.at_us);
            Row {
                class,
                who,
                at: duration(event.at_us),
                pause: pause.filter(|pause| *pause >= LONG).map(duration),
                seq: event.seq,
                text: shown(text),
                decisive: event.decisive,
            }
        })
        .collect();
    (!rows.is_empty()).then(|| Sequence {
        rows,
        more: evidence.len().saturating_sub(MOST),
    })
}

/// Where an event belongs, by how [`event_line`](crate::event_line) writes it.
fn lane(text: &str) -> (&'static str, &'static str, &str) {
    const SERVER: [&str; 4] = ["process ", "stderr ", "end of the tree", "no process left"];
    const SUBJECT: [&str; 3] = ["asked ", "got ", "file "];
    if let Some(text) = text.strip_prefix("→ ") {
        return ("out", "to the server", text);
    }
    if let Some(text) = text.strip_prefix("← ") {
        return ("in", "from the server", text);
    }
    if SERVER.iter().any(|start| text.starts_with(start)) {
        return ("server", "at the server", text);
    }
    if SUBJECT.iter().any(|start| text.starts_with(start)) {
        return ("subject", "at the subject", text);
    }
    ("beside", "beside", text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_has_its_lane_and_long_pauses_are_told() {
        let event = |seq, at_us, text: &str| Evidence {
            seq,
            at_us,
            text: text.to_owned(),
            decisive: seq == 3,
        };
        let picture = sequence(&[
            event(1, 1_000, "process 7 started: x"),
            event(2, 2_000, "→ initialize (1)"),
            event(3, 902_000, "← result of initialize (1): {}"),
            event(4, 903_000, "asked hover {}"),
            event(5, 1_000, "anything"),
        ])
        .unwrap();
        let classes: Vec<&str> = picture.rows.iter().map(|row| row.class).collect();
        assert_eq!(classes, ["server", "out", "in", "subject", "beside"]);
        assert_eq!(picture.rows[2].pause.as_deref(), Some("900 ms"));
        assert_eq!(picture.rows[2].text, "result of initialize (1): {}");
        assert!(picture.rows[2].decisive && picture.rows[4].pause.is_none());
        assert!(sequence(&[]).is_none());
        let many: Vec<Evidence> = (0..1_000).map(|seq| event(seq, 0, "→ x")).collect();
        let picture = sequence(&many).unwrap();
        assert_eq!((picture.rows.len(), picture.more), (MOST, 940));
    }
}
