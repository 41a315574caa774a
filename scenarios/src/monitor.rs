//! Monitors: rules that hold on every transcript, whoever wrote it.
//!
//! A monitor looks at one event after the other, together with what is known of the session so far
//! (phase, documents, requests of both sides), and says which clause an event breaks. It knows
//! neither the scenario nor the harness, so the same monitors judge a case of the suite and a
//! recording of somebody's editor.
//!
//! # What the order of events proves
//!
//! Events are recorded at one place between client and server: in the server, or in a tap. Two
//! messages of one direction stand in the order in which they were sent. Of two messages of
//! opposite directions the recorded order proves one thing only: what is recorded *before* a
//! message of the other side was sent without knowledge of it. So "the client sent this before it
//! had that answer" can be proved (the answer stands behind it), and "the client sent this although
//! it had that answer" cannot be: the two may have crossed. Rules of the second kind (CAN-7, an
//! unanswered request of the server) are judged only where a message of the client proves that it
//! had read so far: it answers something that the server wrote later, for instance.
//!
//! # What is no violation
//!
//! - A frame of the client that the end of its stream cuts off: whoever gives up writing in the
//!   middle of a frame is ending the process, and nothing can follow. After `exit` it is one, since
//!   nothing at all may follow that.
//! - A frame of the server that the end of its stream cuts off, if the process was being ended.
//! - Requests without an answer in a process that was killed, died, or was being ended.
//! - Whatever comes after bytes that are no frame, in either direction: nobody can tell any more
//!   who knew what.

mod answers;
mod audit;
mod base;
mod framing;
mod initialize;
mod session;
mod shape;
mod transient;

pub use session::is_question;

use std::collections::{BTreeMap, HashMap};

use dsh_transcript::Event;

use crate::clause::Source;
use crate::format::Who;
use crate::{Clause, Clauses, Level, Profile};

pub use audit::{audit, audit_clauses};

use session::{Session, Step};

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The clause, or `shape` (a message does not have the shape LSP gives its method), or
    /// `framing` (bytes that are no frame).
    pub clause: String,
    /// The clause's level; of `shape` and `framing`, MUST.
    pub level: Level,
    /// Who broke it.
    pub by: Who,
    /// In which process.
    pub process: Option<u32>,
    /// The event that broke it.
    pub seq: u64,
    /// What is wrong, in one line.
    pub message: String,
    /// What the rule demands.
    pub expected: String,
    /// What came.
    pub got: String,
}

/// What a transcript is held to.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    /// `lsp-base`, or that and `transient`.
    pub profiles: &'a [Profile],
    /// Whether the client is a harness of somebody else's: rules of source policy are then of
    /// level SHOULD.
    pub foreign: bool,
}

/// A monitor, for lists and explanations.
#[derive(Clone, Copy, Debug)]
pub struct MonitorInfo {
    /// Its name.
    pub name: &'static str,
    /// The clauses it judges; `shape` and `framing` are none, and stand for themselves.
    pub clauses: &'static [&'static str],
    /// What it is about, in one word: the part of a report its clauses are shown in.
    pub topic: &'static str,
    /// The profile it belongs to: `lsp-base` for what LSP demands of everybody, `transient` for
    /// what is demanded in addition.
    pub profile: Profile,
    /// What it looks at, in one sentence.
    pub statement: &'static str,
    check: fn(&Session, &Step<'_>, &mut Sink<'_>),
}

/// A transcript, written by hand, by which a monitor is shown to work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transcript {
    /// The clause it is about, or `shape`, or `framing`: its folder.
    pub clause: &'static str,
    /// Its file. It begins with `pass` where the clause is kept, and with `fail` where it is
    /// broken.
    pub name: &'static str,
    /// What happens in it.
    pub title: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/transcripts.rs"));

/// All monitors, in the order in which they look at an event.
pub const MONITORS: &[MonitorInfo] = &[
    MonitorInfo {
        name: "framing",
        clauses: &["FRM-1", "framing"],
        topic: "framing",
        profile: Profile::LspBase,
        statement: "The client writes frames in the one spelling and nothing else; the server \
                    writes frames that can be read.",
        check: framing::frames,
    },
    MonitorInfo {
        name: "messages",
        clauses: &["WIRE-7"],
        topic: "messages",
        profile: Profile::LspBase,
        statement: "Each body is one message of JSON-RPC 2.0.",
        check: framing::messages,
    },
    MonitorInfo {
        name: "shapes",
        clauses: &["shape"],
        topic: "messages",
        profile: Profile::LspBase,
        statement: "A message has the shape that LSP gives to its method, and comes from the side \
                    that sends it.",
        check: shape::shapes,
    },
    MonitorInfo {
        name: "ids",
        clauses: &["WIRE-1"],
        topic: "messages",
        profile: Profile::LspBase,
        statement: "A request has an id that no other request in flight has.",
        check: base::ids,
    },
    MonitorInfo {
        name: "responses",
        clauses: &["WIRE-5", "SRQ-1"],
        topic: "messages",
        profile: Profile::LspBase,
        statement: "A response belongs to one request, and the client leaves none of the server's \
                    unanswered.",
        check: base::responses,
    },
    MonitorInfo {
        name: "handshake",
        clauses: &["INI-1"],
        topic: "handshake",
        profile: Profile::LspBase,
        statement: "initialize, its answer, initialized, and only then anything else.",
        check: base::handshake,
    },
    MonitorInfo {
        name: "announcement",
        clauses: &["INI-2", "INI-3", "INI-4"],
        topic: "handshake",
        profile: Profile::Transient,
        statement: "initialize says what a transient client has to say, and no more.",
        check: initialize::announcement,
    },
    MonitorInfo {
        name: "server's word",
        clauses: &["INI-5", "INI-6"],
        topic: "handshake",
        profile: Profile::Transient,
        statement: "Positions are UTF-16, and nothing is asked that the server does not offer.",
        check: initialize::servers_word,
    },
    MonitorInfo {
        name: "documents",
        clauses: &["WIRE-3", "OPN-2"],
        topic: "documents",
        profile: Profile::LspBase,
        statement: "Documents are opened and closed by turns, with a server that wants to know.",
        check: base::documents,
    },
    MonitorInfo {
        name: "transient open",
        clauses: &["WIRE-2", "HST-8", "OPN-1", "OPN-3", "OPN-4"],
        topic: "documents",
        profile: Profile::Transient,
        statement: "A document is opened, asked about once, and closed when that is settled.",
        check: transient::open,
    },
    MonitorInfo {
        name: "one at a time",
        clauses: &["WIRE-8", "CAN-4"],
        topic: "documents",
        profile: Profile::Transient,
        statement: "One document and one request at a time; nothing new while a cancelled request \
                    has no answer.",
        check: transient::one_at_a_time,
    },
    MonitorInfo {
        name: "vocabulary",
        clauses: &["OPN-8"],
        topic: "documents",
        profile: Profile::Transient,
        statement: "No method but those a transient open needs.",
        check: transient::vocabulary,
    },
    MonitorInfo {
        name: "questions",
        clauses: &["OPN-9", "OPN-13"],
        topic: "documents",
        profile: Profile::Transient,
        statement: "A question has a document and a position, and context for references only.",
        check: transient::questions,
    },
    MonitorInfo {
        name: "cancellation",
        clauses: &["CAN-7", "WIRE-6"],
        topic: "cancelling",
        profile: Profile::LspBase,
        statement: "What is cancelled has no answer yet, and gets one.",
        check: base::cancellation,
    },
    MonitorInfo {
        name: "named cancellation",
        clauses: &["CAN-3"],
        topic: "cancelling",
        profile: Profile::Transient,
        statement: "A cancellation names a request that was sent.",
        check: transient::named_cancellation,
    },
    MonitorInfo {
        name: "reserved requests",
        clauses: &["SRQ-5"],
        topic: "answers",
        profile: Profile::LspBase,
        statement: "A request of the server under $/ that nobody knows is refused with -32601.",
        check: answers::reserved,
    },
    MonitorInfo {
        name: "answers to the server",
        clauses: &["SRQ-2", "SRQ-3", "SRQ-4", "SRQ-5", "SRQ-7"],
        topic: "answers",
        profile: Profile::Transient,
        statement: "The server's requests get the answers of a client that edits nothing.",
        check: answers::transient,
    },
    MonitorInfo {
        name: "farewell",
        clauses: &["WIRE-4"],
        topic: "end",
        profile: Profile::LspBase,
        statement: "After shutdown comes exit, and after exit nothing.",
        check: base::farewell,
    },
    MonitorInfo {
        name: "graceful end",
        clauses: &["DIS-2"],
        topic: "end",
        profile: Profile::Transient,
        statement: "shutdown, its answer, exit, both without params.",
        check: transient::graceful_end,
    },
];

/// Judges a whole transcript. Findings come in the order of the events that broke the rules.
///
/// The monitors of `lsp-base` always look; those of `transient` if `rules` names that profile.
/// Time is linear in the bytes of the transcript.
pub fn judge(events: &[Event], rules: Rules<'_>) -> Vec<Finding> {
    examine(events, rules).findings
}

/// What a transcript shows: broken rules, and what the rules were about at all.
#[derive(Debug, Default)]
pub(crate) struct Examined {
    pub(crate) findings: Vec<Finding>,
    /// Clause → how many events it had something to say about.
    pub(crate) seen: BTreeMap<&'static str, u64>,
}

pub(crate) fn examine(events: &[Event], rules: Rules<'_>) -> Examined {
    let mut sessions: HashMap<Option<u32>, Session> = HashMap::new();
    let transient = rules.profiles.contains(&Profile::Transient);
    let mut examined = Examined::default();
    for event in events {
        let session = sessions.entry(event.process).or_default();
        let step = Step::of(event, session);
        let mut sink = Sink {
            rules,
            transient,
            event,
            examined: &mut examined,
        };
        for monitor in MONITORS {
            if monitor.profile == Profile::LspBase || transient {
                (monitor.check)(session, &step, &mut sink);
            }
        }
        session.advance(&step);
    }
    examined
}

/// Where monitors put what they find in one event.
pub(crate) struct Sink<'a> {
    rules: Rules<'a>,
    transient: bool,
    event: &'a Event,
    examined: &'a mut Examined,
}

impl Sink<'_> {
    /// Whether the profile `transient` is judged too.
    fn transient(&self) -> bool {
        self.transient
    }

    /// The event is one that the clause is about.
    fn saw(&mut self, clause: &'static str) {
        *self.examined.seen.entry(clause).or_default() += 1;
    }

    /// The event breaks the clause.
    fn broken(&mut self, clause: &'static str, by: Who, said: Broken) {
        let level = self.level(clause, said.policy);
        self.examined.findings.push(Finding {
            clause: clause.to_owned(),
            level,
            by,
            process: self.event.process,
            seq: self.event.seq,
            message: said.message,
            expected: said.expected.to_owned(),
            got: said.got,
        });
    }

    fn level(&self, id: &str, policy: bool) -> Level {
        let Some(clause) = Clauses::embedded().get(id) else {
            return Level::Must;
        };
        if self.rules.foreign && (policy || is_policy(clause)) {
            Level::Should
        } else {
            clause.level
        }
    }
}

/// Whether a clause comes from nowhere but the project itself.
fn is_policy(clause: &Clause) -> bool {
    clause
        .sources
        .iter()
        .all(|source| matches!(source, Source::Policy { .. }))
}

/// What is said of a broken rule.
#[derive(Debug)]
struct Broken {
    message: String,
    expected: &'static str,
    got: String,
    policy: bool,
}

/// A rule was broken: what is wrong, what is demanded, what came.
fn broken(message: impl Into<String>, expected: &'static str, got: impl Into<String>) -> Broken {
    Broken {
        message: message.into(),
        expected,
        got: got.into(),
        policy: false,
    }
}

impl Broken {
    /// The part of the clause that is the project's own decision.
    fn by_policy(mut self, policy: bool) -> Self {
        self.policy = policy;
        self
    }
}

/// A text short enough for a line.
fn brief(text: &str) -> String {
    const MOST: usize = 160;
    match text.char_indices().nth(MOST) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
