//! What a server made of one way of a client: pure.

use std::collections::BTreeSet;

use dsh_reports::{NO_WORSE, PersonaOutcome, Signal, duration};

use super::client::Departure;
use crate::readiness::Track;
use crate::samples::Operation;

/// What came of `initialize`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Handshake {
    Initialized,
    /// The error's code and text.
    Refused(String),
    Silent,
    /// How the process ended.
    Died(String),
    /// It was given up from outside.
    Cancelled,
}

/// What a server sent of its own accord.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sent {
    /// Any request.
    pub(super) request: bool,
    /// `workspace/configuration`.
    pub(super) configuration: bool,
    /// `$/progress`.
    pub(super) progress: bool,
}

/// Everything that was seen of one process.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) handshake: Handshake,
    /// From the start of the process to the answer to `initialize`.
    pub(super) initialized_us: Option<u64>,
    /// Whether the right answers are known; else any result counts as one.
    pub(super) known: bool,
    /// Of each question that could be asked.
    pub(super) tracks: Vec<(Operation, Track)>,
    /// Whether any question was answered, with whatever.
    pub(super) answered: bool,
    /// From the start of the process to its end, or to where it was told to end.
    pub(super) waited_us: u64,
    /// How the process died, where it did before it was told to end.
    pub(super) died: Option<String>,
    /// Its end, where it was told to.
    pub(super) departure: Option<Departure>,
    pub(super) sent: Sent,
    pub(super) signals: Vec<Signal>,
    pub(super) process: Option<u32>,
    /// Whether it was cut short from outside, so that it says nothing.
    pub(super) interrupted: bool,
}

impl Seen {
    /// A process that came to nothing yet.
    pub(super) fn new(handshake: Handshake) -> Self {
        Self {
            handshake,
            initialized_us: None,
            known: true,
            tracks: Vec::new(),
            answered: false,
            waited_us: 0,
            died: None,
            departure: None,
            sent: Sent::default(),
            signals: Vec::new(),
            process: None,
            interrupted: false,
        }
    }

    /// The operations that were answered rightly, for all of their questions.
    pub(super) fn right(&self) -> BTreeSet<Operation> {
        let wrong = |operation| {
            self.tracks
                .iter()
                .any(|(known, track)| *known == operation && track.first_right_us().is_none())
        };
        let all = self.tracks.iter().map(|(operation, _)| *operation);
        all.filter(|operation| !wrong(*operation)).collect()
    }

    /// What was to come, for people.
    fn wanted(&self) -> &'static str {
        if self.known { "right answer" } else { "result" }
    }

    /// From the start of the process to the first right answer.
    pub(super) fn first_right_us(&self) -> Option<u64> {
        let firsts = self
            .tracks
            .iter()
            .filter_map(|(_, track)| track.first_right_us());
        firsts.min()
    }

    /// From the start of the process to where every operation that came right had been so.
    pub(super) fn all_right_us(&self) -> Option<u64> {
        let firsts = self
            .tracks
            .iter()
            .filter_map(|(_, track)| track.first_right_us());
        firsts.max()
    }
}

/// What a way is about, and so what a server must have done for it to say anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// Any request of the server.
    Requests,
    /// `workspace/configuration`.
    Configuration,
    /// `$/progress`.
    Progress,
    /// How it is told to end.
    End,
    /// What the client says by itself.
    Everything,
}

/// What came of a way, and more about it. `usual` are the operations that come right in the usual
/// way: what that does not get right is no fault of another way.
pub(super) fn outcome(
    about: About,
    seen: &Seen,
    usual: &BTreeSet<Operation>,
) -> (PersonaOutcome, Option<String>) {
    match &seen.handshake {
        Handshake::Initialized => {}
        Handshake::Refused(why) => {
            let said = format!("initialize was refused with {why}");
            return (PersonaOutcome::Silent, Some(said));
        }
        Handshake::Silent | Handshake::Cancelled => {
            let said = "initialize was not answered".to_owned();
            return (PersonaOutcome::Silent, Some(said));
        }
        Handshake::Died(how) => return (PersonaOutcome::Dead, Some(how.clone())),
    }
    if let Some(how) = &seen.died {
        return (PersonaOutcome::Dead, Some(how.clone()));
    }
    let right = seen.right();
    // How a process is told to end changes nothing of what it answered before.
    let asked = !seen.tracks.is_empty() && about != About::End;
    let provoked = match about {
        About::Requests => seen.sent.request,
        About::Configuration => seen.sent.configuration,
        About::Progress => seen.sent.progress,
        About::End | About::Everything => true,
    };
    // What a server never asked for made no difference on the wire, and so is no cause.
    let same = !provoked && matches!(about, About::Requests | About::Configuration);
    if asked && !same {
        let waited = duration(seen.waited_us);
        if !seen.answered {
            let said = format!("no question was answered in {waited}");
            return (PersonaOutcome::Silent, Some(said));
        }
        if right.is_empty() || !right.is_superset(usual) {
            let said = format!("in {waited} no {} to {}", seen.wanted(), what_came(seen));
            return (PersonaOutcome::Wrong, Some(said));
        }
    }
    let end = seen.departure.as_ref();
    if let Some(end) = end.filter(|end| end.took_us.is_none() && !same) {
        let said = match &end.refused {
            Some(error) => format!("shutdown was refused with {error}; it had to be killed"),
            None if end.unanswered => "shutdown was not answered; it had to be killed".to_owned(),
            None => {
                "it stayed after exit and the end of its stdin, and had to be killed".to_owned()
            }
        };
        return (PersonaOutcome::DoesNotEnd, Some(said));
    }
    if !provoked {
        let said = match about {
            About::Requests => "it sends no request",
            About::Configuration => "it does not ask for workspace/configuration",
            _ => "it reports no progress",
        };
        let said = if asked && !right.is_superset(usual) {
            format!(
                "{said}, so this way makes no difference to it; all the same there was no {} to {}",
                seen.wanted(),
                what_came(seen)
            )
        } else {
            said.to_owned()
        };
        return (PersonaOutcome::NotAsked, Some(said));
    }
    let mut notes = Vec::new();
    if let Some(end) = end {
        if let Some(error) = &end.refused {
            notes.push(format!("it ends, though it refuses shutdown with {error}"));
        } else if end.unanswered && about == About::End {
            notes.push("it ends, though it leaves shutdown unanswered".to_owned());
        }
        if end.needed_eof {
            notes.push("exit alone does not end it, closing its stdin does".to_owned());
        }
    }
    if asked && right.len() < operations(seen).len() {
        notes.push(format!(
            "{NO_WORSE}, which gets no {} there either: {}",
            seen.wanted(),
            what_came(seen)
        ));
    }
    let detail = (!notes.is_empty()).then(|| notes.join("; "));
    (PersonaOutcome::Fine, detail)
}

fn operations(seen: &Seen) -> BTreeSet<Operation> {
    seen.tracks
        .iter()
        .map(|(operation, _)| *operation)
        .collect()
}

/// `hover: 4 × null; goToDefinition: 2 × []`.
fn what_came(seen: &Seen) -> String {
    let wrong = seen
        .tracks
        .iter()
        .filter(|(_, track)| track.first_right_us().is_none());
    let parts: Vec<String> = wrong
        .map(|(operation, track)| match track.summary() {
            nothing if nothing.is_empty() => format!("{operation}: not asked in time"),
            heard => format!("{operation}: {heard}"),
        })
        .collect();
    parts.join("; ")
}
