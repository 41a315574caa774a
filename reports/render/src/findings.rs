//! What was measured of a server, in a few words: what somebody who is about to use it has to know.
//! Text and Markdown say the same; JSON has everything.

use crate::measured::{
    Cycles, CyclesKind, Edge, Ending, Measured, Overlay, Persona, PersonaOutcome, Remedy,
    StartKind, TextSource,
};
use crate::model::Surprise;
use crate::size::bytes;
use crate::text::duration;
use crate::ways;

/// As many ways and edges as are told one by one.
const TOLD: usize = 6;

/// Name and text of each finding, in the order in which they are shown. A name that is empty goes
/// on with the one before; `known` says whether the right answers are. Nothing where the server was
/// only judged: what that took is in the report, and nobody asked for it as a measurement.
pub(crate) fn of(measured: &Measured, known: bool) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    if !measured.goes_beyond() {
        return found;
    }
    for (index, start) in measured.starts.iter().enumerate() {
        let name = match start.kind {
            StartKind::Cold => "cold start",
            StartKind::Warm => "warm start",
        };
        // One that was followed twice was so the second time by a client that takes progress.
        let again = measured.starts[..index]
            .iter()
            .any(|known| known.kind == start.kind);
        found.push(if again {
            (
                "",
                format!("Where progress is announced: {}", start.summary),
            )
        } else {
            (name, start.summary.clone())
        });
    }
    listed(
        &mut found,
        "rounds",
        measured.cycles.iter().map(|cycles| rounds(cycles, known)),
    );
    if let Some(text) = measured.overlay.as_ref().and_then(overlay) {
        found.push(("overlay", text.to_owned()));
    }
    for output in &measured.output {
        if output.stray_bytes > 0 {
            let text = format!(
                "{} of {} bytes on stdout belong to no frame",
                output.stray_bytes, output.stdout_bytes
            );
            found.push(("stdout", text));
        }
    }
    let noisy = measured.output.iter().map(|output| output.stderr_bytes);
    if let Some(most) = noisy.max().filter(|written| *written >= 10_000) {
        found.push(("stderr", format!("{} from start to end", bytes(most))));
    }
    if !measured.ends.is_empty() {
        let ends: Vec<String> = measured.ends.iter().map(ending).collect();
        found.push(("ends", ends.join("; ")));
    }
    ways(&mut found, &measured.personas, known);
    edges(&mut found, &measured.edges);
    if !measured.written.is_empty() {
        let paths: Vec<&str> = measured.written.iter().map(|w| w.path.as_str()).collect();
        let more = paths.len().saturating_sub(TOLD);
        let mut text = paths[..paths.len() - more].join(", ");
        if more > 0 {
            text = format!("{text} and {more} more");
        }
        found.push(("writes", text));
    }
    found
}

/// The row's settings, and the timeout that is advised.
pub(crate) fn remedy(remedy: &Remedy) -> Vec<(&'static str, String)> {
    let settings = remedy
        .settings
        .iter()
        .map(|setting| format!("{} (against: {})", setting.name, setting.against));
    let mut found = Vec::new();
    listed(&mut found, "settings", settings);
    if let Some(timeout) = remedy.timeout_ms {
        found.push(("timeoutMs", timeout.to_string()));
    }
    if names_home(remedy) {
        found.push(("paths", HOME.to_owned()));
    }
    found
}

/// What to do with a path of a row that begins with `~`.
pub(crate) const HOME: &str = "~ stands for the home folder of whoever starts the server. Clients do not \
                               expand it: write the folder out.";

/// Whether a path in the row begins with `~`.
pub(crate) fn names_home(remedy: &Remedy) -> bool {
    remedy.row.to_string().contains("~/")
}

/// What the server is known for, each with what helps.
pub(crate) fn surprises(surprises: &[Surprise]) -> Vec<(&'static str, String)> {
    let told = surprises.iter().map(|surprise| match &surprise.remedy {
        Some(remedy) => format!("{} What helps: {remedy}", surprise.what.trim_end()),
        None => surprise.what.trim_end().to_owned(),
    });
    let mut found = Vec::new();
    listed(&mut found, "surprises", told);
    found
}

fn listed(
    found: &mut Vec<(&'static str, String)>,
    name: &'static str,
    texts: impl Iterator<Item = String>,
) {
    let mut name = name;
    for text in texts {
        found.push((name, text));
        name = "";
    }
}

fn rounds(cycles: &Cycles, known: bool) -> String {
    let what = match cycles.kind {
        CyclesKind::SameText => "of one file",
        CyclesKind::ChangedText => "of one file, its text changed each time",
        CyclesKind::ManyFiles => "over a hundred files",
    };
    let mut text = format!(
        "{} rounds {what}: p50 {}, p95 {}, longest {}",
        cycles.rounds,
        duration(cycles.p50_us),
        duration(cycles.p95_us),
        duration(cycles.max_us)
    );
    if let (Some(before), Some(after)) = (cycles.memory_before, cycles.memory_after) {
        text = format!("{text}; memory {} → {}", bytes(before), bytes(after));
    }
    if cycles.wrong > 0 {
        let how = if known { "wrong" } else { "otherwise" };
        text = format!("{text}; {} {how}", cycles.wrong);
    }
    if cycles.left_open > 0 {
        text = format!("{text}; {} documents left open", cycles.left_open);
    }
    text
}

fn overlay(overlay: &Overlay) -> Option<&'static str> {
    Some(match (overlay.open, overlay.closed) {
        (TextSource::Disk, _) => "answers from the disk although another text is open",
        (TextSource::Neither, _) => {
            "answers from neither the open text nor the disk where the two differ"
        }
        (TextSource::Opened, TextSource::Opened) => {
            "still answers from the text that was open after it was closed"
        }
        (TextSource::Opened, TextSource::Disk | TextSource::Neither) => return None,
    })
}

fn ending(ending: &Ending) -> String {
    let mut text = match (ending.took_us, ending.code, ending.signal) {
        (None, _, _) => format!("{}: had to be killed", ending.way),
        (Some(took), code, signal) => {
            let how = crate::evidence::ending(code, signal);
            format!("{} {} ({how})", ending.way, duration(took))
        }
    };
    match ending.left {
        0 => {}
        1 => text.push_str(", 1 process left"),
        left => text = format!("{text}, {left} processes left"),
    }
    if !ending.left_names.is_empty() {
        text = format!("{text} ({})", few(&ending.left_names));
    }
    if let Some(replaced) = ending.replaced_us {
        text = format!("{text}, replaced in {}", duration(replaced));
    }
    text
}

/// As many names as are told one by one.
fn few(names: &[String]) -> String {
    let shown = names.len().min(TOLD);
    let more = names.len() - shown;
    match more {
        0 => names.join(", "),
        more => format!("{} and {more} more", names[..shown].join(", ")),
    }
}

fn ways(found: &mut Vec<(&'static str, String)>, personas: &[Persona], known: bool) {
    if personas.is_empty() {
        return;
    }
    // What goes wrong in the usual way goes wrong in the others too; it is told once.
    let bad = personas
        .iter()
        .filter(|persona| ways::is_bad(persona.outcome) && !ways::is_as_usual(persona, personas));
    let bad: Vec<String> = bad
        .map(|persona| {
            let outcome = match persona.outcome {
                PersonaOutcome::Wrong if known => "does not answer rightly",
                PersonaOutcome::Wrong => "does not answer everything",
                PersonaOutcome::Silent => "is silent",
                PersonaOutcome::Dead => "dies",
                PersonaOutcome::DoesNotEnd => "does not end",
                PersonaOutcome::Fine | PersonaOutcome::NotAsked => "is fine",
            };
            let mut told = format!("{}: {outcome}", persona.name);
            if let Some(detail) = &persona.detail {
                told = format!("{told}: {detail}");
            }
            match ways::advice(persona, personas) {
                Some(advice) => format!("{told}. What helps: {advice}"),
                None => told,
            }
        })
        .collect();
    if bad.is_empty() {
        let text = format!("fine with each of {} ways of a client", personas.len());
        found.push(("ways", text));
    } else {
        shortened(found, "ways", bad);
    }
}

fn edges(found: &mut Vec<(&'static str, String)>, edges: &[Edge]) {
    let bad = edges.iter().filter(|edge| !edge.alive);
    let bad: Vec<String> = bad
        .map(|edge| {
            let behind = if edge.answer == "the server died" {
                ""
            } else {
                ", and no usual answer behind it"
            };
            match &edge.detail {
                Some(detail) => format!("{}: {}{behind}: {detail}", edge.name, edge.answer),
                None => format!("{}: {}{behind}", edge.name, edge.answer),
            }
        })
        .collect();
    if bad.is_empty() && !edges.is_empty() {
        let text = format!("alive behind each of {} odd requests", edges.len());
        found.push(("edges", text));
    } else {
        shortened(found, "edges", bad);
    }
}

fn shortened(found: &mut Vec<(&'static str, String)>, name: &'static str, mut texts: Vec<String>) {
    let more = texts.len().saturating_sub(TOLD);
    texts.truncate(TOLD);
    if more > 0 {
        texts.push(format!("and {more} more, which the JSON report names"));
    }
    listed(found, name, texts.into_iter());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn persona(name: &str, outcome: PersonaOutcome, detail: Option<&str>) -> Persona {
        Persona {
            name: name.to_owned(),
            summary: String::new(),
            outcome,
            detail: detail.map(str::to_owned),
            first_right_us: None,
        }
    }

    fn edge(name: &str, answer: &str, alive: bool) -> Edge {
        Edge {
            name: name.to_owned(),
            answer: answer.to_owned(),
            detail: None,
            alive,
        }
    }

    fn end(way: &str, took_us: Option<u64>, left: u64) -> Ending {
        Ending {
            way: way.to_owned(),
            took_us,
            code: took_us.map(|_| 0),
            signal: None,
            left,
            left_names: Vec::new(),
            replaced_us: None,
        }
    }

    #[test]
    fn what_an_end_left_behind_is_named() {
        let names = ["sleep", "java"].map(str::to_owned).to_vec();
        let two = Ending {
            left_names: names,
            ..end("shutdown", Some(1_000), 2)
        };
        let told = ending(&two);
        assert!(told.ends_with(", 2 processes left (sleep, java)"), "{told}");
    }

    #[test]
    fn a_start_that_was_followed_twice_is_told_apart() {
        let start = |kind, summary: &str| crate::Start {
            kind,
            initialized_us: None,
            operations: Vec::new(),
            signals: Vec::new(),
            summary: summary.to_owned(),
        };
        let measured = Measured {
            starts: vec![
                start(StartKind::Cold, "One."),
                start(StartKind::Cold, "Two."),
                start(StartKind::Warm, "Three."),
            ],
            ..Measured::default()
        };
        let told = of(&measured, true);
        let told: Vec<(&str, &str)> = told
            .iter()
            .map(|(name, text)| (*name, text.as_str()))
            .collect();
        assert_eq!(
            told,
            [
                ("cold start", "One."),
                ("", "Where progress is announced: Two."),
                ("warm start", "Three.")
            ]
        );
    }

    #[test]
    fn what_bites_is_told_and_what_does_not_is_counted() {
        let measured = Measured {
            personas: vec![
                persona("usual", PersonaOutcome::Fine, None),
                persona(
                    "requests-refused",
                    PersonaOutcome::Dead,
                    Some("exit code 1"),
                ),
                persona("x", PersonaOutcome::NotAsked, None),
            ],
            ends: vec![end("shutdown", Some(12_000), 0), end("sigterm", None, 2)],
            edges: vec![edge("empty-file", "null", true)],
            overlay: Some(Overlay {
                open: TextSource::Disk,
                closed: TextSource::Disk,
            }),
            ..Measured::default()
        };
        assert_eq!(
            of(&measured, true),
            [
                (
                    "overlay",
                    "answers from the disk although another text is open".to_owned()
                ),
                (
                    "ends",
                    "shutdown 12 ms (exit code 0); sigterm: had to be killed, 2 processes left"
                        .to_owned()
                ),
                (
                    "ways",
                    "requests-refused: dies: exit code 1. What helps: Answer every request of the \
                     server with a result, null where there is nothing to say, and refuse none."
                        .to_owned()
                ),
                ("edges", "alive behind each of 1 odd requests".to_owned()),
            ]
        );
    }

    #[test]
    fn a_path_that_no_client_expands_is_told() {
        let told = |command: &str| {
            let row = serde_json::json!({"command": command});
            remedy(&Remedy {
                row,
                settings: Vec::new(),
                timeout_ms: None,
            })
        };
        assert_eq!(told("gopls"), []);
        assert_eq!(told("~/bin/gopls"), [("paths", HOME.to_owned())]);
    }

    #[test]
    fn what_is_so_in_the_usual_way_is_told_once() {
        let stays = |name| persona(name, PersonaOutcome::DoesNotEnd, Some("stays"));
        let measured = Measured {
            personas: vec![
                stays("usual"),
                stays("a"),
                persona("b", PersonaOutcome::DoesNotEnd, Some("refused")),
            ],
            ..Measured::default()
        };
        let told: Vec<String> = of(&measured, true)
            .into_iter()
            .map(|(_, text)| text)
            .collect();
        let helps = "What helps: Close its stdin after exit, and end its whole process group when its \
                     time is over.";
        assert_eq!(
            told,
            [
                format!("usual: does not end: stays. {helps}"),
                format!("b: does not end: refused. {helps}")
            ]
        );
    }

    #[test]
    fn many_findings_of_one_kind_are_cut_and_counted() {
        let measured = Measured {
            edges: vec![edge("e", "no answer", false); 9],
            ..Measured::default()
        };
        let found = of(&measured, true);
        assert_eq!(found.len(), TOLD + 1);
        assert_eq!(found[0].0, "edges");
        assert_eq!(found[1].0, "");
        assert_eq!(found[TOLD].1, "and 3 more, which the JSON report names");
    }

    #[test]
    fn a_good_server_has_little_to_tell() {
        let measured = Measured {
            personas: vec![persona("usual", PersonaOutcome::Fine, None)],
            overlay: Some(Overlay {
                open: TextSource::Opened,
                closed: TextSource::Neither,
            }),
            ..Measured::default()
        };
        let told = "fine with each of 1 ways of a client".to_owned();
        assert_eq!(of(&measured, true), [("ways", told)]);
        assert_eq!(of(&Measured::default(), true), []);
    }
}
