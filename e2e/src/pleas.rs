//! What a server asks people for: a licence, a log-in, a newer runtime, another command. Pure.

use dsh_reports::{Conclusion, Run};
use dsh_transcript::{Direction, Event, EventBody};

use crate::evidence::quote;

/// What a server asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plea {
    /// A newer version of what it runs on.
    Runtime,
    /// A licence.
    Licence,
    /// A log-in.
    LogIn,
}

impl Plea {
    const fn said(self) -> &'static str {
        match self {
            Self::Runtime => "it needs a newer runtime than is here",
            Self::Licence => "it asks for a licence",
            Self::LogIn => "it asks for a log-in",
        }
    }
}

/// How each plea is known, in lower case: all words of one row have to be in the line.
const SIGNS: [(Plea, &[&str]); 30] = [
    (Plea::Runtime, &["unsupportedclassversionerror"]),
    (Plea::Runtime, &["class file version"]),
    (Plea::Runtime, &["requires", "node"]),
    (Plea::Runtime, &["unsupported engine"]),
    (Plea::Runtime, &["requires", "java"]),
    (Plea::Runtime, &["requires", "jdk"]),
    (Plea::Runtime, &["requires", "jre"]),
    (Plea::Runtime, &["requires", "python"]),
    (Plea::Runtime, &["requires", "ruby"]),
    (Plea::Runtime, &["requires", "php"]),
    (Plea::Runtime, &["node", "or newer"]),
    (Plea::Runtime, &["node", "or higher"]),
    (Plea::Runtime, &["java", "or later", "required"]),
    (Plea::Runtime, &["you must install or update .net"]),
    (Plea::Runtime, &["glibc_", "not found"]),
    (Plea::Runtime, &["glibcxx_", "not found"]),
    (Plea::Licence, &["licence key"]),
    (Plea::Licence, &["license key"]),
    (Plea::Licence, &["valid license"]),
    (Plea::Licence, &["valid licence"]),
    (Plea::Licence, &["license", "accept"]),
    (Plea::Licence, &["license", "required"]),
    (Plea::LogIn, &["log in"]),
    (Plea::LogIn, &["sign in"]),
    (Plea::LogIn, &["not authenticated"]),
    (Plea::LogIn, &["log-in"]),
    (Plea::LogIn, &["please login"]),
    (Plea::LogIn, &["login required"]),
    (Plea::LogIn, &["not logged in"]),
    (Plea::LogIn, &["authentication required"]),
];

fn plea_of(line: &str) -> Option<Plea> {
    let line = line.to_lowercase();
    SIGNS
        .iter()
        .find(|(_, words)| words.iter().all(|word| line.contains(word)))
        .map(|(plea, _)| *plea)
}

/// How a program says that it has no such command or argument, in lower case: all words of one row
/// have to be in the line.
const REFUSALS: [&[&str]; 15] = [
    &["not part of this build"],
    &["unrecognized", "command"],
    &["unrecognized", "argument"],
    &["unrecognized", "option"],
    &["unrecognised", "command"],
    &["unknown", "command"],
    &["unknown", "argument"],
    &["unknown", "option"],
    &["unknown", "flag"],
    &["no such", "command"],
    &["no such", "option"],
    &["invalid", "choice"],
    &["found argument", "wasn't expected"],
    &["unexpected argument"],
    &["flag provided but not defined"],
];

/// What a program does that fails while it works, and does not refuse its command line.
const BREAKDOWNS: [&str; 4] = ["traceback (", "panicked at", "uncaught", "    at "];

/// The words with which the program refused the command it was started by: its first process ended
/// with an exit code other than 0, none wrote a frame, and stderr says so.
fn refusal(events: &[Event]) -> Option<String> {
    let mut stderr = String::new();
    let mut code = None;
    for event in events {
        match &event.body {
            EventBody::Frame(frame) if frame.direction == Direction::ToClient => return None,
            EventBody::ProcessEnded { code: ended, .. } => code = code.or(Some(*ended)),
            EventBody::Stderr { text } => stderr.push_str(&text.lossy()),
            _ => {}
        }
    }
    code.flatten().filter(|code| *code != 0)?;
    let lower = stderr.to_lowercase();
    if BREAKDOWNS.iter().any(|sign| lower.contains(sign)) {
        return None;
    }
    let refuses = |line: &&str| {
        let line = line.to_lowercase();
        REFUSALS
            .iter()
            .any(|words| words.iter().all(|word| line.contains(word)))
    };
    stderr
        .lines()
        .map(str::trim)
        .find(refuses)
        .map(str::to_owned)
}

/// The first plea in what a server said, with its words.
fn plea(events: &[Event]) -> Option<(Plea, String)> {
    let shown = |event: &Event| {
        let of = |method| event.is_message(Direction::ToClient, method);
        let is_message = of("window/showMessageRequest") || of("window/showMessage");
        let text = event
            .frame()
            .filter(|_| is_message)?
            .at("/params/message")?;
        text.as_str().map(str::to_owned)
    };
    let said = |event: &Event| match &event.body {
        EventBody::Stderr { text } => Some(text.lossy().into_owned()),
        _ => shown(event),
    };
    events.iter().filter_map(said).find_map(|text| {
        let mut lines = text.lines().map(str::trim);
        lines.find_map(|line| Some((plea_of(line)?, line.to_owned())))
    })
}

/// The requests for an answer of a person, in the server's words.
fn requests(events: &[Event]) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for event in events {
        if !event.is_message(Direction::ToClient, "window/showMessageRequest") {
            continue;
        }
        let text = event.frame().and_then(|frame| frame.at("/params/message"));
        if let Some(text) = text.as_ref().and_then(|text| text.as_str()) {
            let text = quote(text);
            if !words.contains(&text) && words.len() < 3 {
                words.push(text);
            }
        }
    }
    words
}

/// Says in the run what the server asks for, whatever became of it: what it answers without may be
/// little. A server that was not even initialized for want of it was not tested, and the reason is
/// the want.
pub(crate) fn tell(run: &mut Run, events: &[Event]) {
    let unanswered = matches!(
        &run.conclusion,
        Conclusion::NotQualified { musts } if musts.iter().any(|must| must == "QUA-1")
    );
    if let Some(words) = refusal(events).filter(|_| unanswered) {
        run.conclusion = Conclusion::Untestable {
            reason: format!(
                "it does not know the command it is started by: {}",
                quote(&words)
            ),
            musts: Vec::new(),
        };
        return;
    }
    match plea(events) {
        Some((plea, words)) if unanswered => {
            run.conclusion = Conclusion::Untestable {
                reason: format!("{}: {}", plea.said(), quote(&words)),
                musts: Vec::new(),
            };
        }
        Some((plea, words)) => {
            let said = format!("In its own words {}: {}.", plea.said(), quote(&words));
            run.remarks.push(said);
        }
        None => {
            for words in requests(events) {
                let said = format!("It asked a person, and nobody answered: {words}.");
                run.remarks.push(said);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::wiretap::Story;
    use dsh_reports::{Subject, SubjectKind};

    fn run(musts: &[&str]) -> Run {
        let mut run = Run::new(Subject::named(SubjectKind::Server, "x"));
        run.conclusion = Conclusion::NotQualified {
            musts: musts.iter().map(|must| (*must).to_owned()).collect(),
        };
        run
    }

    fn stderr(text: &'static str) -> Vec<Event> {
        let story = Story {
            stderr: Some(text),
            ending: None,
            ..Story::default()
        };
        story.told().events
    }

    #[test]
    fn lines_of_real_runtimes_are_known_and_ordinary_ones_are_not() {
        for (line, plea) in [
            (
                "Error: LinkageError java.lang.UnsupportedClassVersionError: x has been compiled",
                Some(Plea::Runtime),
            ),
            ("error: x requires Node.js 22 or newer", Some(Plea::Runtime)),
            (
                "/lib/libc.so.6: version `GLIBC_2.38' not found (required by x)",
                Some(Plea::Runtime),
            ),
            ("Please enter your licence key", Some(Plea::Licence)),
            ("You are not authenticated", Some(Plea::LogIn)),
            ("Please sign in to continue", Some(Plea::LogIn)),
            ("A log-in is needed", Some(Plea::LogIn)),
            ("Login required: run `x auth`", Some(Plea::LogIn)),
            ("indexed 12 files in 3 s", None),
            ("Using license MIT", None),
            ("node_modules not found", None),
        ] {
            assert_eq!(plea_of(line), plea, "{line}");
        }
    }

    #[test]
    fn a_server_that_does_not_start_for_want_of_a_runtime_is_untestable_in_its_words() {
        let events = stderr("warming up\nerror: x requires Java 21, found 17\n");
        let mut run = run(&["QUA-1"]);
        tell(&mut run, &events);
        assert_eq!(
            run.conclusion.to_string(),
            "UNTESTABLE: it needs a newer runtime than is here: \
             \"error: x requires Java 21, found 17\""
        );
    }

    #[test]
    fn a_server_that_starts_and_asks_for_a_licence_is_judged_and_quoted() {
        let events = stderr("A valid license is needed for references");
        let mut run = run(&["QUA-4"]);
        let before = run.conclusion.clone();
        tell(&mut run, &events);
        assert_eq!(run.conclusion, before);
        assert_eq!(
            run.remarks,
            [
                "In its own words it asks for a licence: \"A valid license is needed for references\"."
            ]
        );
    }

    #[test]
    fn a_program_that_refuses_its_command_is_untestable_in_its_words() {
        for (words, reason) in [
            (
                "error: unrecognized subcommand 'lsp'\n\nUsage: x <COMMAND>\n",
                "error: unrecognized subcommand 'lsp'",
            ),
            (
                "ERROR operation failed error=the LSP is not part of this build, please\n",
                "ERROR operation failed error=the LSP is not part of this build, please",
            ),
            (
                "usage: x [-h]\nx: error: unrecognized arguments: --stdio\n",
                "x: error: unrecognized arguments: --stdio",
            ),
            (
                "error: Found argument 'y' which wasn't expected\n",
                "error: Found argument 'y' which wasn't expected",
            ),
        ] {
            let story = Story {
                handshake: None,
                stderr: Some(words),
                ending: None,
                ..Story::default()
            };
            let mut run = run(&["QUA-1", "QUA-8"]);
            tell(&mut run, &story.told().events);
            let said =
                format!("UNTESTABLE: it does not know the command it is started by: {reason:?}");
            assert_eq!(run.conclusion.to_string(), said);
        }
    }

    /// A crash, an end without a word, a server that did answer.
    #[test]
    fn a_server_that_breaks_down_at_the_start_is_judged() {
        let usage = "error: unrecognized subcommand 'lsp'";
        let dead = Story {
            handshake: None,
            stderr: Some(usage),
            ending: None,
            ..Story::default()
        };
        let crashed = |stderr| Story {
            stderr,
            ..dead.clone()
        };
        let answered = Story {
            stderr: Some(usage),
            ending: None,
            ..Story::default()
        };
        let traceback =
            "Traceback (most recent call last):\n  File \"x\"\nKeyError: unknown option";
        let panic = "thread 'main' panicked at src/main.rs:1:1:\nunexpected argument";
        for story in [
            crashed(Some(traceback)),
            crashed(Some(panic)),
            crashed(Some("ImportError: cannot import name 'y'")),
            crashed(None),
            answered,
        ] {
            let mut run = run(&["QUA-1"]);
            let before = run.conclusion.clone();
            tell(&mut run, &story.told().events);
            assert_eq!(run.conclusion, before, "{:?}", story.stderr);
        }
        let mut later = run(&["QUA-4"]);
        let before = later.conclusion.clone();
        tell(&mut later, &dead.told().events);
        assert_eq!(later.conclusion, before);
    }

    #[test]
    fn it_is_told_whatever_became_of_the_server() {
        for conclusion in [
            Conclusion::Qualified { notes: 0 },
            Conclusion::ProtocolOnly { notes: 0 },
            Conclusion::Interrupted,
        ] {
            let mut run = run(&[]);
            run.conclusion = conclusion.clone();
            tell(&mut run, &stderr("Please sign in to continue"));
            assert_eq!(run.conclusion, conclusion);
            assert_eq!(
                run.remarks,
                ["In its own words it asks for a log-in: \"Please sign in to continue\"."]
            );
            tell(&mut run, &stderr("ready"));
            assert_eq!(run.remarks.len(), 1);
        }
    }
}
