//! What a server says of itself cannot break the forms it is shown in, and none of them calls right
//! what is not known to be.

#[expect(dead_code, reason = "each test takes what it needs of what they share")]
#[path = "support/servers.rs"]
mod servers;

use dsh_reports::{
    Conclusion, Heard, OperationTimeline, PersonaOutcome, Report, Run, TextOptions, Verdict,
    render_badge, render_github, render_junit, render_markdown, render_matrix, render_overview,
    render_page, render_summary, render_text,
};
use unicode_width::UnicodeWidthStr as _;

/// Every form, by its name.
fn forms(report: &Report) -> Vec<(&'static str, String)> {
    vec![
        ("text", render_text(report, TextOptions::default())),
        ("markdown", render_markdown(report)),
        (
            "page",
            render_page(std::slice::from_ref(report)).expect("a page is made of any report"),
        ),
        (
            "junit",
            render_junit(report).expect("a report is written as XML"),
        ),
        ("github", render_github(report)),
        ("badge", render_badge(report)),
        ("summary", render_summary(report)),
        ("matrix", render_matrix(report)),
        ("overview", render_overview(report)),
    ]
}

/// A run in which every text that a server chooses is this one.
fn says(text: &str) -> Run {
    let mut run = servers::server("a", "1", "x");
    servers::spoil(&mut run, "QUA-1", Verdict::Fail, text);
    let case = servers::case(&mut run, "QUA-1");
    case.expected = Some(text.to_owned());
    case.got = Some(text.to_owned());
    let mut measured = servers::measured(1);
    for start in &mut measured.starts {
        text.clone_into(&mut start.summary);
        for signal in &mut start.signals {
            text.clone_into(&mut signal.name);
        }
        for heard in start.operations.iter_mut().flat_map(|of| &mut of.heard) {
            heard.detail = Some(text.to_owned());
        }
    }
    for persona in &mut measured.personas {
        persona.outcome = PersonaOutcome::Wrong;
        persona.detail = Some(text.to_owned());
    }
    run.measured = Some(measured);
    run.remarks = vec![text.to_owned()];
    text.clone_into(&mut run.subject.name);
    run.subject.version = Some(text.to_owned());
    run.conclusion = Conclusion::Untestable {
        reason: text.to_owned(),
        musts: Vec::new(),
    };
    run
}

const HIDDEN: &str = "\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}\u{feff}\u{1b}\u{7}\u{7f}\u{9b}";

#[test]
fn nothing_hidden_is_in_any_form() {
    let report = servers::report(vec![says(&format!("a{HIDDEN}b\nc\r\nd"))]);
    for (form, text) in forms(&report) {
        for mark in HIDDEN.chars().chain(['\r']) {
            assert!(!text.contains(mark), "{mark:?} in {form}");
        }
    }
    let badge = render_badge(&report);
    assert!(
        badge.contains("\\\\u{202e}") && badge.contains("\\\\n"),
        "{badge}"
    );
}

#[test]
fn nothing_long_is_in_any_form() {
    let long = "漢".repeat(2_000_000);
    let report = servers::report(vec![says(&long)]);
    for (form, text) in forms(&report) {
        assert!(text.len() < 300_000, "{form}: {} bytes", text.len());
        assert!(text.contains('…'), "{form}");
    }
    let badge: serde_json::Value = serde_json::from_str(&render_badge(&report)).unwrap();
    let label = badge["label"].as_str().unwrap();
    assert!(label.width() <= 80 && label.ends_with('…'), "{label}");
    for line in render_text(&report, TextOptions::default()).lines().skip(1) {
        assert!(line.width() <= 80 || line.contains('/'), "{line}");
    }
}

#[test]
fn no_form_calls_right_what_is_not_known_to_be() {
    let heard = |answer: &str, right, at| Heard {
        answer: answer.to_owned(),
        right,
        times: 2,
        from_us: at,
        until_us: at + 5,
        detail: None,
    };
    let timeline = |label: &str, right: bool| OperationTimeline {
        operation: label.to_owned(),
        asked_us: 0,
        first_right_us: right.then_some(40),
        stable_us: right.then_some(90),
        asked: 6,
        latency_us: None,
        heard: vec![
            heard("error -32801", false, 5),
            heard("answered", right, 40),
            heard("another answer", false, 50),
            heard("answered", right, 90),
        ],
    };
    let mut run = servers::server("a", "1", "x");
    run.sample = None;
    run.surprises.clear();
    let operations = vec![timeline("hover", true), timeline("goToDefinition", false)];
    let mut measured = servers::measured(1);
    for start in &mut measured.starts {
        start.operations.clone_from(&operations);
        "Answered.".clone_into(&mut start.summary);
    }
    for persona in &mut measured.personas {
        persona.outcome = PersonaOutcome::Wrong;
        persona.detail = None;
        "a client".clone_into(&mut persona.summary);
    }
    for edge in &mut measured.edges {
        edge.alive = false;
    }
    measured.cycles.iter_mut().for_each(|cycles| {
        cycles.wrong = 3;
        cycles.heard = vec![heard("another answer", false, 5)];
    });
    run.measured = Some(measured);
    run.operations = operations;
    let report = servers::report(vec![run]);
    for (form, text) in forms(&report) {
        // The page's looks and its words on all servers say it of those that are known.
        let text = match text.split_once("<h4>") {
            Some((_, parts)) if form == "page" => parts.split("<script").next().unwrap().to_owned(),
            _ => text,
        };
        for clause in &report.runs[0].coverage {
            assert!(!clause.statement.is_empty());
        }
        let mut said = text.clone();
        for clause in &report.runs[0].coverage {
            said = said.replace(&clause.statement, "");
        }
        let said = said
            .replace("class=\"right\"", "")
            .replace("swatch right", "");
        let said = said
            .replace("class=\"wrong\"", "")
            .replace("swatch wrong", "");
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        let said = said.replace("right after initialized", "");
        let said = said.replace("brightgreen", "");
        for word in ["right", "wrong"] {
            let at = said.find(word).map(|at| {
                let (from, to) = (
                    said.floor_char_boundary(at.saturating_sub(80)),
                    said.ceil_char_boundary((at + 80).min(said.len())),
                );
                &said[from..to]
            });
            assert_eq!(at, None, "{form} says {word:?}");
        }
    }
    let text = render_text(&report, TextOptions::default());
    assert!(
        text.contains("answered after 40 µs, the same thrice after 90 µs"),
        "{text}"
    );
}
