//! What there is to tell about a monitor.

use std::fmt::Write as _;

use dsh_scenarios::monitor::{MonitorInfo, TRANSCRIPTS};

use super::clauses;
use crate::lines::{hanging, paragraph};

pub(super) fn explained(monitor: &MonitorInfo) -> String {
    let mut text = format!("{}: a monitor\n\n", monitor.name);
    paragraph(&mut text, 0, monitor.statement);
    let _ = writeln!(text, "\nprofile     {}", monitor.profile);
    text.push_str("shown in    ");
    hanging(&mut text, 12, monitor.topic);
    let judged: Vec<String> = monitor.clauses.iter().map(ToString::to_string).collect();
    clauses(&mut text, "judges", &judged);
    text.push_str("\nIt looks at every scenario, and at recordings by `dsh-conform audit`.\n");
    for (begin, title) in [
        (
            "pass",
            "Transcripts in scenarios/monitors in which all is well",
        ),
        (
            "fail",
            "Transcripts in scenarios/monitors in which it finds something",
        ),
    ] {
        let _ = writeln!(text, "\n{title}");
        for transcript in TRANSCRIPTS {
            if monitor.clauses.contains(&transcript.clause) && transcript.name.starts_with(begin) {
                let _ = writeln!(text, "  {}/{}", transcript.clause, transcript.name);
                paragraph(&mut text, 6, transcript.title);
            }
        }
    }
    text
}
