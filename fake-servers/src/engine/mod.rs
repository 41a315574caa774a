//! The server as a state machine without I/O: events in, effects out.
//!
//! An event is matched against the rules; the actions of the rule that is found form a
//! [`Sequence`], which runs until it has to wait for something (time, a release, a write, an
//! answer). Any number of sequences wait at a time, while further events are served. What the
//! server does without a rule is in [`defaults`].

mod defaults;
mod perform;

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use dsh_transcript::{Envelope, EventBody, Id};
use serde_json::{Value, json};

use crate::markers::Files;
use crate::order::Order;
use crate::script::template::{self, Source};
use crate::script::{Action, Chunk, Helper, Rule, Script, Signal, Spelling, Stream};
use crate::uri;

/// Names a sequence that waits.
pub(crate) type Key = u64;

/// What happens to the server.
pub(crate) enum Input<'a> {
    /// It was started; nothing is read yet.
    Start,
    /// A frame came.
    Message {
        /// Its kind.
        envelope: Envelope,
        /// Its body.
        body: &'a [u8],
    },
    /// The client's bytes cannot be read on.
    Unreadable(String),
    /// Stdin ended.
    Eof,
    /// SIGTERM came.
    Sigterm,
    /// What this sequence waited for is there.
    Resume(Key),
    /// The runner wants this done.
    Perform(Vec<Action>),
}

/// What the server does.
#[derive(Debug, PartialEq)]
pub(crate) enum Effect {
    /// Write to stdout, in pieces of these lengths, each when the pipe is empty, or at once.
    Write {
        bytes: Vec<u8>,
        pieces: Option<Vec<usize>>,
    },
    /// Write to stderr, then resume.
    Stderr { bytes: StderrBytes, key: Key },
    /// Resume after this time.
    Timer { ms: u64, key: Key },
    /// Resume when this name is released.
    Hold { name: String, key: Key },
    /// Resume when everything for stdout was written.
    Written { key: Key },
    /// Read from stdin, or stop reading.
    Read(bool),
    /// Close a stream.
    Close(Stream),
    /// End.
    Exit(i32),
    /// Send itself a signal.
    Kill(Signal),
    /// Die of the SIGTERM that came.
    Die,
    /// Outlive SIGTERM.
    Trap,
    /// Start a helper, then resume.
    Spawn { helper: Helper, key: Key },
    /// Record this.
    Record(EventBody),
}

/// Bytes for stderr.
#[derive(Debug, PartialEq)]
pub(crate) enum StderrBytes {
    /// These.
    Bytes(Vec<u8>),
    /// So many, in lines.
    Flood(u64),
}

/// What the server can see of the world.
pub(crate) struct Surroundings {
    /// Its process id.
    pub(crate) pid: u32,
    /// Its number in the run, from 1.
    pub(crate) process: u32,
    /// Its program and arguments.
    pub(crate) argv: Vec<String>,
    /// Its working directory.
    pub(crate) cwd: String,
    /// Its environment.
    pub(crate) env: BTreeMap<String, String>,
    /// The files of a workspace.
    pub(crate) files: Box<dyn Files>,
}

/// What happened, as far as rules and templates need it.
#[derive(Debug, Default)]
pub(super) struct Happening {
    /// The method, or the name of the pseudo-event.
    name: String,
    kind: Kind,
    /// The id of a request.
    id: Option<Id>,
    /// Its params, where something needs them.
    params: Value,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    Request,
    Notification,
    #[default]
    Other,
}

/// Actions on their way.
#[derive(Debug)]
pub(super) struct Sequence {
    happening: Rc<Happening>,
    actions: Rc<[Action]>,
    at: usize,
    /// Whether one of the actions stands for the default.
    settled: bool,
    /// Whether the actions are those of a rule, which stay.
    lasting: bool,
    spelling: Option<Spelling>,
    chunk: Option<Chunk>,
    /// What `coalesce` collects.
    block: Option<Vec<u8>>,
    /// Whether the output before the current action was written.
    written: bool,
    /// Answers it waits for.
    awaiting: usize,
}

/// A request of the client without an answer so far.
#[derive(Debug)]
struct Unanswered {
    id: Id,
    sequence: Option<Key>,
}

/// A request of this server without an answer so far.
#[derive(Debug)]
struct Asked {
    method: String,
    sequence: Option<Key>,
}

/// See the [module](self).
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, not the states of one thing"
)]
pub(crate) struct Engine {
    script: Rc<Script>,
    actions: Vec<Rc<[Action]>>,
    surroundings: Surroundings,
    /// Whether events are recorded.
    watched: bool,
    /// Whether something needs the params of every message.
    needs_params: bool,
    /// Events each rule matched, and how often it was carried out.
    counts: Vec<(u64, u64)>,
    set: Option<String>,
    order: Option<Order>,
    root: Option<String>,
    links: (bool, bool),
    initialized: bool,
    shut_down: bool,
    sequences: BTreeMap<Key, Sequence>,
    next_key: Key,
    unanswered: Vec<Unanswered>,
    asked: HashMap<Id, Asked>,
    next_id: i64,
    /// Results in JSON that are the same each time, by the address of their action.
    constants: HashMap<usize, Option<Rc<[u8]>>>,
}

impl Engine {
    /// A server that has not started yet. `watched` is whether what happens is recorded.
    pub(crate) fn new(script: Script, surroundings: Surroundings, watched: bool) -> Self {
        let uses_text = script_uses(&script, &|name| name == "text");
        let uses_params = script_uses(&script, &|name| {
            name == "params" || name.starts_with("params.")
        });
        let conditional = script.rules.iter().any(|rule| rule.when.is_some());
        let follows = watched || uses_text || script.base.is_some();
        Self {
            actions: script
                .rules
                .iter()
                .map(|rule| rule.r#do.clone().into())
                .collect(),
            counts: vec![(0, 0); script.rules.len()],
            script: Rc::new(script),
            surroundings,
            watched,
            needs_params: follows || uses_params || conditional,
            set: None,
            order: follows.then(Order::new),
            root: None,
            links: (false, false),
            initialized: false,
            shut_down: false,
            sequences: BTreeMap::new(),
            next_key: 0,
            unanswered: Vec::new(),
            asked: HashMap::new(),
            next_id: 1,
            constants: HashMap::new(),
        }
    }

    /// Whether any rule, or the recording, cares about SIGTERM.
    pub(crate) fn minds_sigterm(&self) -> bool {
        self.watched
            || self.script.rules.iter().any(|rule| {
                rule.on == "SIGTERM" || rule.r#do.iter().any(|a| matches!(a, Action::Trap(_)))
            })
    }

    /// Takes an event; what is to be done is added to `effects`, in order.
    pub(crate) fn handle(&mut self, input: Input<'_>, effects: &mut Vec<Effect>) {
        match input {
            Input::Start => self.happened("start", effects),
            Input::Eof => self.happened("eof", effects),
            Input::Sigterm => self.happened("SIGTERM", effects),
            Input::Message { envelope, body } => self.message(envelope, body, effects),
            Input::Unreadable(reason) => {
                let text = format!("dsh-fake-lsp: cannot read the client: {reason}\n");
                let text = text.replace("${", "$${");
                let stderr = crate::script::Stderr::Text(text);
                let actions = [Action::Stderr(stderr), Action::Exit(1)];
                self.begin(Happening::default(), actions.into(), false, effects);
            }
            Input::Resume(key) => {
                if let Some(mut sequence) = self.sequences.remove(&key) {
                    sequence.written = true;
                    self.run(sequence, effects);
                }
            }
            Input::Perform(actions) => {
                // Whatever these are, no default follows.
                let actions = actions.into_iter().chain([Action::Ignore]).collect();
                self.begin(Happening::default(), actions, false, effects);
            }
        }
    }

    /// A pseudo-event.
    fn happened(&mut self, name: &str, effects: &mut Vec<Effect>) {
        let happening = Happening {
            name: name.to_owned(),
            ..Happening::default()
        };
        self.matched(happening, effects);
    }

    fn message(&mut self, envelope: Envelope, body: &[u8], effects: &mut Vec<Effect>) {
        let needed = matches!(envelope.method(), Some("initialize" | "$/cancelRequest"))
            || self.needs_params;
        let params = if needed { params_of(body) } else { Value::Null };
        if let Some(order) = &mut self.order {
            for finding in order.received(&envelope, &params) {
                if self.watched {
                    let (message, data) = (finding.message, finding.data);
                    let kind = "order".to_owned();
                    effects.push(Effect::Record(EventBody::Note {
                        kind,
                        message,
                        data,
                    }));
                }
            }
        }
        match envelope {
            Envelope::Request { id, method } => {
                if method == "initialize" {
                    self.initialize(&params);
                }
                let id = Some(id);
                self.matched(
                    Happening {
                        name: method,
                        kind: Kind::Request,
                        id,
                        params,
                    },
                    effects,
                );
            }
            Envelope::Notification { method } => {
                let (kind, id) = (Kind::Notification, None);
                self.matched(
                    Happening {
                        name: method,
                        kind,
                        id,
                        params,
                    },
                    effects,
                );
            }
            Envelope::Response { id, .. } => self.response(&id, body, effects),
            Envelope::NotJson { error } => Self::refuse(-32700, &error, effects),
            _ => Self::refuse(
                -32600,
                "neither request, notification nor response",
                effects,
            ),
        }
    }

    /// Learns from the params of `initialize`.
    fn initialize(&mut self, params: &Value) {
        let text = |pointer: &str| params.pointer(pointer).and_then(Value::as_str);
        let root = text("/workspaceFolders/0/uri").or_else(|| text("/rootUri"));
        self.root = root.map(str::to_owned);
        let links = |name: &str| {
            let pointer = format!("/capabilities/textDocument/{name}/linkSupport");
            params.pointer(&pointer) == Some(&Value::Bool(true))
        };
        self.links = (links("definition"), links("implementation"));
    }

    /// An answer of the client to a request of this server.
    fn response(&mut self, id: &Id, body: &[u8], effects: &mut Vec<Effect>) {
        let asked = self.asked.remove(id);
        if self.watched {
            let (kind, message) = match &asked {
                Some(asked) => ("answer", format!("`{}` was answered", asked.method)),
                None => ("order", "an answer to nothing that was asked".to_owned()),
            };
            let mut data = json!({"id": id, "method": asked.as_ref().map(|asked| &asked.method)});
            if asked.is_none() {
                data["rule"] = "answer-unasked".into();
            }
            let kind = kind.to_owned();
            effects.push(Effect::Record(EventBody::Note {
                kind,
                message,
                data,
            }));
        }
        if self.script.rules.iter().any(|rule| rule.on == "response") {
            let mut params = serde_json::from_slice(body).unwrap_or(Value::Null);
            if let (Some(asked), Value::Object(params)) = (&asked, &mut params) {
                params.insert("method".to_owned(), asked.method.clone().into());
            }
            let name = "response".to_owned();
            let happening = Happening {
                name,
                kind: Kind::Other,
                id: None,
                params,
            };
            self.matched(happening, effects);
        }
        let waiting = asked.and_then(|asked| asked.sequence);
        if let Some(key) = waiting
            && let Some(sequence) = self.sequences.get_mut(&key)
        {
            sequence.awaiting = sequence.awaiting.saturating_sub(1);
            if sequence.awaiting == 0 {
                self.handle(Input::Resume(key), effects);
            }
        }
    }

    /// Finds the rule for what happened and carries it out, or does what is usual.
    fn matched(&mut self, happening: Happening, effects: &mut Vec<Effect>) {
        let script = Rc::clone(&self.script);
        let mut chosen = None;
        for (at, rule) in script.rules.iter().enumerate() {
            if !self.matches(rule, &happening) {
                continue;
            }
            let (seen, fired) = &mut self.counts[at];
            *seen += 1;
            if chosen.is_none()
                && rule.nth.is_none_or(|nth| nth == *seen)
                && rule.times.is_none_or(|times| *fired < times)
            {
                *fired += 1;
                chosen = Some(at);
            }
        }
        let actions = match chosen {
            Some(at) => {
                if self.watched {
                    let on = &script.rules[at].on;
                    let data = json!({"rule": at + 1, "on": on, "method": happening.name});
                    let message = format!("rule {} (on {on})", at + 1);
                    let kind = "rule".to_owned();
                    effects.push(Effect::Record(EventBody::Note {
                        kind,
                        message,
                        data,
                    }));
                }
                Rc::clone(&self.actions[at])
            }
            None => Rc::from([]),
        };
        if let (Some(id), true) = (&happening.id, chosen.is_some()) {
            self.unanswered.push(Unanswered {
                id: id.clone(),
                sequence: None,
            });
        }
        self.begin(happening, actions, chosen.is_some(), effects);
    }

    fn matches(&self, rule: &Rule, happening: &Happening) -> bool {
        let named = match rule.on.strip_suffix('*') {
            Some(start) => happening.kind != Kind::Other && happening.name.starts_with(start),
            None => rule.on == happening.name,
        };
        named
            && rule
                .process
                .is_none_or(|process| process == self.surroundings.process)
            && rule.set.is_none_or_is(self.set.as_deref())
            && rule.when.as_ref().is_none_or(|when| {
                let wanted = template::fill(when, &self.values(happening));
                template::contains(&happening.params, &wanted)
            })
    }

    fn begin(
        &mut self,
        happening: Happening,
        actions: Rc<[Action]>,
        lasting: bool,
        effects: &mut Vec<Effect>,
    ) {
        let sequence = Sequence {
            settled: actions.iter().any(settles),
            happening: Rc::new(happening),
            actions,
            at: 0,
            lasting,
            spelling: None,
            chunk: None,
            block: None,
            written: false,
            awaiting: 0,
        };
        self.run(sequence, effects);
    }

    /// Keeps a sequence until it is resumed.
    fn wait(&mut self, key: Key, sequence: Sequence) {
        if let Some(id) = &sequence.happening.id
            && let Some(open) = self.unanswered.iter_mut().find(|open| open.id == *id)
        {
            open.sequence = Some(key);
        }
        self.sequences.insert(key, sequence);
    }

    fn key(&mut self) -> Key {
        self.next_key += 1;
        self.next_key
    }

    fn values<'a>(&'a self, happening: &'a Happening) -> Values<'a> {
        Values {
            engine: self,
            happening,
        }
    }
}

/// A condition that holds where it is not given.
trait Condition {
    fn is_none_or_is(&self, current: Option<&str>) -> bool;
}

impl Condition for Option<String> {
    fn is_none_or_is(&self, current: Option<&str>) -> bool {
        self.as_deref().is_none_or(|wanted| current == Some(wanted))
    }
}

/// Whether an action stands for what would be done by default.
fn settles(action: &Action) -> bool {
    matches!(
        action,
        Action::Reply(_)
            | Action::ReplyRaw(_)
            | Action::Capabilities(_)
            | Action::Default
            | Action::Ignore
            | Action::Exit(_)
            | Action::Kill(_)
    )
}

/// The member `params` of a body.
fn params_of(body: &[u8]) -> Value {
    #[derive(serde::Deserialize)]
    struct Body {
        #[serde(default)]
        params: Value,
    }
    serde_json::from_slice::<Body>(body).map_or(Value::Null, |body| body.params)
}

/// Whether any template of a script has a name that `wanted` accepts.
pub(crate) fn script_uses(script: &Script, wanted: &dyn Fn(&str) -> bool) -> bool {
    // The script as a value has the same texts.
    serde_json::to_value(script).is_ok_and(|script| template::uses(&script, wanted))
}

/// The values of templates for one happening.
struct Values<'a> {
    engine: &'a Engine,
    happening: &'a Happening,
}

impl Source for Values<'_> {
    fn value(&self, name: &str) -> Option<Value> {
        let Engine { surroundings, .. } = self.engine;
        let root = || {
            self.engine
                .root
                .clone()
                .unwrap_or_else(|| uri::of(surroundings.cwd.as_bytes()))
        };
        Some(match name {
            "id" => self
                .happening
                .id
                .as_ref()
                .map_or(Value::Null, |id| id.0.clone()),
            "method" => self.happening.name.clone().into(),
            "params" => self.happening.params.clone(),
            "workspaceUri" => root().into(),
            "workspace" => {
                let path = uri::path_of(&root())?;
                String::from_utf8_lossy(&path).into_owned().into()
            }
            "text" => {
                let uri = self
                    .happening
                    .params
                    .pointer("/textDocument/uri")?
                    .as_str()?;
                self.engine.order.as_ref()?.text(uri)?.into()
            }
            "pid" => surroundings.pid.into(),
            "process" => surroundings.process.into(),
            "argv" => surroundings.argv.clone().into(),
            "cwd" => surroundings.cwd.clone().into(),
            "env" => json!(surroundings.env),
            _ => {
                if let Some(path) = name.strip_prefix("params.") {
                    template::member(&self.happening.params, path)?.clone()
                } else if let Some(path) = name.strip_prefix("uri:") {
                    uri::below(&root(), path.as_bytes()).into()
                } else if let Some(name) = name.strip_prefix("env:") {
                    surroundings.env.get(name)?.clone().into()
                } else {
                    return None;
                }
            }
        })
    }
}

#[cfg(test)]
mod tests;
