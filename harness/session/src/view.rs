//! What follows from the events for the model: which of them it sees, and what it is asked.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use serde::Serialize;
use sha1::{Digest as _, Sha1};

use crate::request::hex;
use crate::{Event, EventBody, Message, ToolSchema};

/// What the model sees, after some of the events.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    surface: Surface,
    /// The requests that logged the system prompt and the tools in force.
    system: Option<u64>,
    tools: Option<u64>,
    sum: Option<Sum>,
}

/// Each visible event by the seq at which it stands. A compaction stands where what it hides began,
/// everything else at its own seq.
#[derive(Clone, Debug, Default)]
struct Surface(BTreeMap<u64, u64>);

/// The sum of a request's bytes up to the end of its messages. The next request mostly begins with
/// the same bytes (INS-23), and each message is summed once.
#[derive(Clone, Debug)]
struct Sum {
    hasher: Sha1,
    system: String,
    /// Up to where on the surface, and whether anything was.
    up_to: u64,
    any: bool,
}

/// The events of a log, by seq.
#[derive(Clone, Copy)]
pub(crate) struct Events<'a>(pub(crate) &'a [Arc<Event>]);

impl<'a> Events<'a> {
    pub(crate) fn get(self, seq: u64) -> Option<&'a Arc<Event>> {
        let index = usize::try_from(seq.checked_sub(1)?).ok()?;
        self.0.get(index)
    }

    fn is_result(self, seq: u64) -> bool {
        self.get(seq)
            .is_some_and(|event| matches!(event.body, EventBody::ToolResult(_)))
    }
}

impl View {
    pub(crate) fn add(&mut self, seq: u64, body: &EventBody) {
        match body {
            EventBody::StepRequest { system, tools, .. } => {
                self.system = system.is_some().then_some(seq).or(self.system);
                self.tools = tools.is_some().then_some(seq).or(self.tools);
            }
            EventBody::Compaction { from, to, .. } => {
                self.surface.hide(*from, *to, seq);
                self.sum = None;
            }
            EventBody::UserMessage { .. } | EventBody::AssistantMessage(_) => {
                self.surface.0.insert(seq, seq);
            }
            EventBody::ToolResult(result) if result.parent.is_none() => {
                self.surface.0.insert(seq, seq);
            }
            _ => {}
        }
    }

    /// The visible seqs, in the model's order.
    pub(crate) fn seqs(&self) -> impl DoubleEndedIterator<Item = u64> {
        self.surface.0.values().copied()
    }

    pub(crate) fn messages(&self, events: Events<'_>) -> Vec<Message> {
        self.seqs()
            .filter_map(|seq| Message::of(events.get(seq)?))
            .collect()
    }

    /// The system prompt in force.
    pub(crate) fn system<'a>(&self, events: Events<'a>) -> Option<&'a str> {
        match &events.get(self.system?)?.body {
            EventBody::StepRequest { system, .. } => system.as_deref(),
            _ => None,
        }
    }

    /// The tools in force.
    pub(crate) fn tools<'a>(&self, events: Events<'a>) -> Option<&'a [ToolSchema]> {
        match &events.get(self.tools?)?.body {
            EventBody::StepRequest { tools, .. } => tools.as_deref(),
            _ => None,
        }
    }

    /// SHA-1 of the canonical bytes of the request with this system prompt, what is visible, and
    /// these tools. Time in the length of what has become visible since the last sum.
    pub(crate) fn sum(&mut self, events: Events<'_>, system: &str, tools: &[ToolSchema]) -> String {
        let begun = self.sum.take().filter(|sum| sum.system == system);
        let mut sum = begun.unwrap_or_else(|| Sum::begin(system));
        for (at, seq) in self.surface.0.range(sum.up_to + 1..) {
            sum.up_to = *at;
            if let Some(message) = events.get(*seq).and_then(|event| Message::of(event)) {
                sum.add(&message);
            }
        }
        let mut whole = sum.hasher.clone();
        whole.update(br#"],"tools":"#);
        write(&mut whole, tools);
        whole.update(b"}");
        self.sum = Some(sum);
        hex(&whole.finalize())
    }

    /// Whether what stands from `from` to `to` may be hidden; if not, why.
    pub(crate) fn may_hide(&self, events: Events<'_>, from: u64, to: u64) -> Result<(), String> {
        let last = events.0.len() as u64;
        if from < 1 || from > to || to > last {
            return Err(format!(
                "{from} to {to} is no range of events; it must lie within 1 to {last}"
            ));
        }
        let Some((first, first_seq)) = self.surface.0.range(from..=to).next() else {
            return Err(format!("nothing visible stands at {from} to {to}"));
        };
        if events.is_result(*first_seq) {
            return Err(format!(
                "it would hide result {first} and leave the message that called; begin at that \
                 message"
            ));
        }
        match self.surface.0.range(to + 1..).next() {
            Some((left, seq)) if events.is_result(*seq) => Err(format!(
                "it would leave result {left} and hide the message that called; go on to the last \
                 of its results"
            )),
            _ => Ok(()),
        }
    }
}

impl Surface {
    /// Puts the compaction `seq` in the place of what stands from `from` to `to`.
    fn hide(&mut self, from: u64, to: u64, seq: u64) {
        let mut later = self.0.split_off(&from);
        let mut behind = later.split_off(&(to + 1));
        self.0.insert(from, seq);
        self.0.append(&mut behind);
    }
}

impl Sum {
    fn begin(system: &str) -> Self {
        let mut hasher = Sha1::new();
        hasher.update(br#"{"system":"#);
        write(&mut hasher, system);
        hasher.update(br#","messages":["#);
        Self {
            hasher,
            system: system.to_owned(),
            up_to: 0,
            any: false,
        }
    }

    fn add(&mut self, message: &Message) {
        if std::mem::replace(&mut self.any, true) {
            self.hasher.update(b",");
        }
        write(&mut self.hasher, message);
    }
}

/// Sums the JSON of a value.
fn write(hasher: &mut Sha1, value: &(impl Serialize + ?Sized)) {
    struct Into<'a>(&'a mut Sha1);
    impl io::Write for Into<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.update(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    // A hasher takes short pieces badly; JSON comes in very short ones.
    let mut buffered = io::BufWriter::new(Into(hasher));
    serde_json::to_writer(&mut buffered, value)
        .and_then(|()| io::Write::flush(&mut buffered).map_err(serde_json::Error::io))
        .expect("strings and JSON values are always written");
}
