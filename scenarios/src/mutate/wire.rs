//! What becomes of the messages between a client and its server: bytes in, bytes and orders out.
//!
//! Pure: it moves nothing, starts nothing and knows no time. A delay is always until another
//! message has passed.

use std::collections::HashMap;
use std::fmt::Write as _;

use dsh_fake_lsp::contains;
use dsh_transcript::strict::{Body, Item, Limits};
use dsh_transcript::{Direction, Envelope, StrictReader, short_name};
use serde_json::{Value, json};

use super::edit::{self, apply};
use super::form::{Act, Header, Insert, Life, On, WireRule};

/// Ids of requests that nobody sent begin here.
const FRESH: i64 = 8_100_000_000;

/// The id of all requests, where they have the same.
const SAME: i64 = 7;

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Write this.
    Write(Direction, Vec<u8>),
    /// Send the server this signal.
    Kill(String),
    /// Close the server's stdin.
    CloseStdin,
    /// End, and leave the server running.
    Leave,
    /// Something is not as it was: tell it.
    Applied,
}

/// A message, and what is known of it.
#[derive(Clone, Debug)]
struct Message {
    direction: Direction,
    header: Vec<u8>,
    body: Vec<u8>,
    /// None where the body is no JSON.
    json: Option<Value>,
    /// Of a request or notification its own, of an answer that of its request.
    method: Option<String>,
    answer: bool,
    /// Whether the frame is not written as LSP writes it.
    deviates: bool,
}

impl Message {
    fn bytes(&self) -> Vec<u8> {
        [self.header.as_slice(), &self.body].concat()
    }

    /// The id, if there is one.
    fn id(&self) -> Option<&Value> {
        self.json.as_ref()?.get("id")
    }

    fn is_request(&self) -> bool {
        !self.answer && self.method.is_some() && self.id().is_some()
    }
}

/// One that waits for another to pass.
#[derive(Debug)]
struct Held {
    direction: Direction,
    bytes: Vec<u8>,
    /// None for the next of the same direction.
    until: Option<On>,
}

#[derive(Debug)]
struct Counted {
    rule: WireRule,
    matched: u32,
    done: u32,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Tamperer {
    rules: Vec<Counted>,
    life: Vec<Life>,
    to_server: StrictReader,
    to_client: StrictReader,
    /// Requests that are not answered: who asked, the id, the method.
    pending: Vec<(Direction, Value, String)>,
    /// The first message of each kind.
    firsts: HashMap<String, Value>,
    held: Vec<Held>,
    fresh: i64,
    /// The client's ids behind [`SAME`], oldest first.
    renamed: Vec<Value>,
    /// Answers to these are nobody's.
    swallowed: Vec<Value>,
    /// What a server that is started again has to be told.
    history: Vec<(String, Vec<u8>)>,
    /// Bytes of whole messages that came from the server.
    whole: u64,
    /// What comes from the server is not read any more.
    lost: bool,
}

impl Tamperer {
    pub(crate) fn new(rules: Vec<WireRule>, life: Vec<Life>) -> Self {
        let counted = |rule| Counted {
            rule,
            matched: 0,
            done: 0,
        };
        Self {
            rules: rules.into_iter().map(counted).collect(),
            life,
            to_server: StrictReader::new(Limits::default()),
            to_client: StrictReader::new(Limits::default()),
            pending: Vec::new(),
            firsts: HashMap::new(),
            held: Vec::new(),
            fresh: FRESH,
            renamed: Vec::new(),
            swallowed: Vec::new(),
            history: Vec::new(),
            whole: 0,
            lost: false,
        }
    }

    fn lives(&self, life: Life) -> bool {
        self.life.contains(&life)
    }

    /// What was read at once.
    pub(crate) fn read(&mut self, direction: Direction, bytes: &[u8]) -> Vec<Order> {
        let mut orders = Vec::new();
        if direction == Direction::ToClient && self.lost {
            return orders;
        }
        let mut reader = match direction {
            Direction::ToServer => std::mem::take(&mut self.to_server),
            Direction::ToClient => std::mem::take(&mut self.to_client),
        };
        let mut found = Vec::new();
        reader.feed(bytes, |item| found.push(owned(direction, &item)));
        for item in &found {
            if let Found::Message(message) = item
                && direction == Direction::ToClient
            {
                self.whole += (message.header.len() + message.body.len()) as u64;
            }
        }
        let within = reader.taken() != self.whole;
        for (at, item) in found.into_iter().enumerate() {
            let dropped =
                at > 0 && direction == Direction::ToClient && self.lives(Life::FirstOfARead);
            if dropped {
                orders.push(Order::Applied);
                continue;
            }
            match item {
                Found::Message(message) => self.message(*message, &mut orders),
                Found::Unreadable(bytes) => self.unreadable(direction, bytes, &mut orders),
            }
        }
        if direction == Direction::ToClient && self.lives(Life::WholeOrNothing) && within {
            self.lost = true;
            orders.push(Order::Applied);
        }
        match direction {
            Direction::ToServer => self.to_server = reader,
            Direction::ToClient => self.to_client = reader,
        }
        orders
    }

    /// The stream that goes in `direction` ended: what waits does not wait any more.
    pub(crate) fn ended(&mut self, direction: Direction) -> Vec<Order> {
        let (gone, rest) = std::mem::take(&mut self.held)
            .into_iter()
            .partition(|held| held.direction == direction);
        self.held = rest;
        let gone: Vec<Held> = gone;
        gone.into_iter()
            .map(|held| Order::Write(held.direction, held.bytes))
            .collect()
    }

    /// The server is gone. What a new one is to be told; none if nothing was asked of the old one.
    pub(crate) fn replay(&mut self) -> Option<Vec<u8>> {
        let asked = self.pending.iter().any(|(who, _, method)| {
            *who == Direction::ToServer && method.starts_with("textDocument/")
        });
        if !asked || self.history.len() < 2 {
            return None;
        }
        self.to_client = StrictReader::new(Limits::default());
        let id = self.firsts.get("client initialize")?.get("id")?.clone();
        self.swallowed.push(id);
        Some(
            self.history
                .iter()
                .flat_map(|(_, bytes)| bytes.clone())
                .collect(),
        )
    }

    fn unreadable(&mut self, direction: Direction, bytes: Vec<u8>, orders: &mut Vec<Order>) {
        if direction == Direction::ToServer || !self.lives(Life::FramesForgiven) {
            orders.push(Order::Write(direction, bytes));
            return;
        }
        let asked: Vec<Value> = self
            .pending
            .extract_if(.., |(who, ..)| *who == Direction::ToServer)
            .map(|(_, id, _)| id)
            .collect();
        for id in asked {
            let answer = json!({"jsonrpc": "2.0", "id": id, "result": null});
            orders.push(Order::Write(direction, frame(&answer, None)));
            orders.push(Order::Applied);
        }
    }

    fn message(&mut self, mut message: Message, orders: &mut Vec<Order>) {
        self.restore_id(&mut message);
        if message.answer
            && let Some(id) = message.id()
            && let Some(at) = self.swallowed.iter().position(|swallowed| swallowed == id)
        {
            self.swallowed.remove(at);
            return;
        }
        self.note(&mut message);
        let chosen = self.choose(&message);
        let original = message.clone();
        let sent = match chosen {
            None => vec![message.clone()],
            Some(at) => {
                let acts = self.rules[at].rule.r#do.clone();
                self.act(message.clone(), &acts, orders)
            }
        };
        for sent in sent {
            self.send(sent, orders);
        }
        self.release(&original, orders);
        if chosen.is_some() {
            // What ends the process comes after what it is to write.
            let late = orders
                .extract_if(.., |order| {
                    matches!(order, Order::CloseStdin | Order::Leave)
                })
                .collect::<Vec<_>>();
            orders.extend(late);
        }
    }

    /// Keeps what later messages refer to.
    fn note(&mut self, message: &mut Message) {
        let Some(json) = &message.json else { return };
        let id = json.get("id").cloned();
        match (&message.method, id) {
            (Some(method), Some(id)) => {
                self.pending.push((message.direction, id, method.clone()));
            }
            (None, Some(id)) if message.answer => {
                let asked = message.direction.reverse();
                let found = self
                    .pending
                    .iter()
                    .position(|(who, pending, _)| *who == asked && *pending == id);
                message.method = found.map(|at| self.pending.remove(at).2);
            }
            _ => {}
        }
        if let (Some(json), Some(method)) = (&message.json, &message.method) {
            let kind = kind(message.direction, message.answer, method);
            self.firsts.entry(kind).or_insert_with(|| json.clone());
        }
    }

    /// The first rule that wants the message, and has not had enough.
    fn choose(&mut self, message: &Message) -> Option<usize> {
        for (at, counted) in self.rules.iter_mut().enumerate() {
            if !matches(&counted.rule.on, message) {
                continue;
            }
            counted.matched += 1;
            let rule = &counted.rule;
            let wanted = rule.nth.is_none_or(|nth| counted.matched == nth)
                && rule.from.is_none_or(|from| counted.matched >= from)
                && rule.times.is_none_or(|times| counted.done < times);
            if wanted {
                counted.done += 1;
                return Some(at);
            }
        }
        None
    }

    /// Does what a rule says; gives what is left to be sent.
    fn act(&mut self, message: Message, acts: &[Act], orders: &mut Vec<Order>) -> Vec<Message> {
        let mut message = message;
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let mut copies = 1;
        let mut applied = false;
        let mut header = None;
        for act in acts {
            match act {
                Act::Drop => {
                    copies = 0;
                    applied = true;
                }
                Act::Duplicate => {
                    copies = 2;
                    applied = true;
                }
                Act::Swap | Act::Hold(_) => {
                    let until = match act {
                        Act::Hold(on) => Some((**on).clone()),
                        _ => None,
                    };
                    self.held.push(Held {
                        direction: message.direction,
                        bytes: message.bytes(),
                        until,
                    });
                    copies = 0;
                    applied = true;
                }
                Act::Before(inserts) | Act::After(inserts) => {
                    let made = inserts.iter().map(|insert| self.insert(insert, &message));
                    let made: Vec<Message> = made.collect();
                    if matches!(act, Act::Before(_)) {
                        before.extend(made);
                    } else {
                        after.extend(made);
                    }
                    applied = true;
                }
                Act::Answer(answer) => {
                    if let Some(id) = message.id().cloned() {
                        let mut made = json!({"jsonrpc": "2.0", "id": id});
                        merge(&mut made, answer);
                        before.push(made_message(message.direction.reverse(), &made));
                        copies = 0;
                        applied = true;
                    }
                }
                Act::Header(new) => header = Some(new),
                Act::Spoil => {
                    message.header.clear();
                    message.body = b"this is no frame\n\n".to_vec();
                    applied = true;
                }
                Act::FromFirst(pointers) => applied |= self.take_from_first(&mut message, pointers),
                Act::Kill(signal) => {
                    orders.push(Order::Kill(signal.clone()));
                    applied = true;
                }
                Act::CloseStdin => {
                    orders.push(Order::CloseStdin);
                    applied = true;
                }
                Act::Leave => {
                    orders.push(Order::Leave);
                    applied = true;
                }
                Act::Edit(edit) => {
                    if let Some(json) = &mut message.json
                        && apply(std::slice::from_ref(edit), json)
                    {
                        rewrite(&mut message, None);
                        applied = true;
                    }
                }
            }
        }
        if let Some(new) = header {
            let old = message.bytes();
            rewrite(&mut message, Some(new));
            applied |= old != message.bytes();
        }
        if applied {
            orders.push(Order::Applied);
        }
        let kept = std::iter::repeat_n(message, copies);
        before.into_iter().chain(kept).chain(after).collect()
    }

    fn take_from_first(
        &self,
        message: &mut Message,
        pointers: &indexmap::IndexMap<String, String>,
    ) -> bool {
        let (Some(json), Some(method)) = (&mut message.json, &message.method) else {
            return false;
        };
        let Some(first) = self
            .firsts
            .get(&kind(message.direction, message.answer, method))
        else {
            return false;
        };
        let old = json.clone();
        for (to, from) in pointers {
            if let Some(value) = first.pointer(from) {
                edit::set(json, to, value);
            }
        }
        let changed = old != *json;
        if changed {
            rewrite(message, None);
        }
        changed
    }

    fn insert(&mut self, insert: &Insert, beside: &Message) -> Message {
        let direction = match insert.to.as_deref() {
            Some("server") => Direction::ToServer,
            Some("client") => Direction::ToClient,
            _ => beside.direction,
        };
        let mut json = insert.message.clone();
        let null = Value::Null;
        self.fill(&mut json, beside.json.as_ref().unwrap_or(&null));
        made_message(direction, &json)
    }

    /// Puts values in the place of `${…}`.
    fn fill(&mut self, value: &mut Value, from: &Value) {
        match value {
            Value::String(text) => {
                let name = text
                    .strip_prefix("${")
                    .and_then(|text| text.strip_suffix('}'));
                match name.map(str::to_owned) {
                    Some(name) if name == "fresh" => {
                        self.fresh += 1;
                        self.swallowed.push(self.fresh.into());
                        *value = self.fresh.into();
                    }
                    Some(pointer) => {
                        *value = from.pointer(&pointer).cloned().unwrap_or(Value::Null);
                    }
                    None => {}
                }
            }
            Value::Array(list) => list.iter_mut().for_each(|value| self.fill(value, from)),
            Value::Object(object) => {
                object.values_mut().for_each(|value| self.fill(value, from));
            }
            _ => {}
        }
    }

    fn send(&mut self, mut message: Message, orders: &mut Vec<Order>) {
        if message.direction == Direction::ToServer {
            self.same_id(&mut message, orders);
            self.remember(&message);
        }
        orders.push(Order::Write(message.direction, message.bytes()));
    }

    /// Keeps what a server that is started again has to be told: the handshake, and what belongs
    /// to the document that is open.
    fn remember(&mut self, message: &Message) {
        if !self.lives(Life::Replayed) || message.answer {
            return;
        }
        let Some(method) = &message.method else {
            return;
        };
        if method == "textDocument/didClose" {
            self.history.truncate(2);
        } else {
            self.history.push((method.clone(), message.bytes()));
        }
    }

    fn same_id(&mut self, message: &mut Message, orders: &mut Vec<Order>) {
        if !self.lives(Life::SameId) {
            return;
        }
        let request = message.is_request();
        let Some(json) = &mut message.json else {
            return;
        };
        let pointer = if request { "/id" } else { "/params/id" };
        let Some(id) = json.pointer_mut(pointer) else {
            return;
        };
        let old = std::mem::replace(id, SAME.into());
        if request {
            self.renamed.push(old);
        }
        rewrite(message, None);
        orders.push(Order::Applied);
    }

    fn restore_id(&mut self, message: &mut Message) {
        let restored = message.direction == Direction::ToClient
            && message.answer
            && message.id() == Some(&SAME.into())
            && !self.renamed.is_empty();
        if restored && let Some(json) = &mut message.json {
            json["id"] = self.renamed.remove(0);
            rewrite(message, None);
        }
    }

    /// Sends what waited for this message.
    fn release(&mut self, passed: &Message, orders: &mut Vec<Order>) {
        let mut own = passed.bytes();
        let due = self.held.extract_if(.., |held| {
            // It does not wait for itself.
            if held.direction == passed.direction && held.bytes == own {
                own.clear();
                return false;
            }
            match &held.until {
                None => held.direction == passed.direction,
                Some(on) => matches(on, passed),
            }
        });
        orders.extend(due.map(|held| Order::Write(held.direction, held.bytes)));
    }
}

enum Found {
    Message(Box<Message>),
    Unreadable(Vec<u8>),
}

fn owned(direction: Direction, item: &Item<'_>) -> Found {
    match item {
        Item::Frame(frame) => {
            let body = match frame.body {
                Body::Whole(body) => body,
                Body::Cut { prefix, .. } => prefix,
            };
            let mut message = read_message(direction, frame.header.to_vec(), body.to_vec());
            message.deviates = !frame.deviations.is_empty();
            Found::Message(Box::new(message))
        }
        Item::Violation { header, body, .. } => Found::Unreadable([*header, *body].concat()),
        Item::Stray { bytes, .. } => Found::Unreadable(bytes.to_vec()),
    }
}

fn read_message(direction: Direction, header: Vec<u8>, body: Vec<u8>) -> Message {
    let envelope = Envelope::of(&body);
    Message {
        direction,
        header,
        json: serde_json::from_slice(&body).ok(),
        body,
        method: envelope.method().map(str::to_owned),
        answer: matches!(envelope, Envelope::Response { .. }),
        deviates: false,
    }
}

fn made_message(direction: Direction, json: &Value) -> Message {
    let body = json.to_string().into_bytes();
    read_message(direction, head(json, body.len(), None), body)
}

/// The frame of a message.
fn frame(json: &Value, header: Option<&Header>) -> Vec<u8> {
    let mut body = json.to_string().into_bytes();
    let mut bytes = head(json, body.len(), header);
    bytes.append(&mut body);
    bytes
}

fn rewrite(message: &mut Message, header: Option<&Header>) {
    if let Some(json) = &message.json {
        message.body = json.to_string().into_bytes();
        message.header = head(json, message.body.len(), header);
        if let Some(behind) = header.and_then(|header| header.behind.as_deref()) {
            message.body.extend_from_slice(behind.as_bytes());
        }
    }
}

fn head(json: &Value, length: usize, header: Option<&Header>) -> Vec<u8> {
    let plain = Header::default();
    let header = header.unwrap_or(&plain);
    let newline = header.newline.as_deref().unwrap_or("\r\n");
    let name = header.name.as_deref().unwrap_or("Content-Length");
    let separator = header.separator.as_deref().unwrap_or(": ");
    let length = if header.characters {
        json.to_string().chars().count()
    } else {
        length
    };
    let length = i64::try_from(length).unwrap_or(i64::MAX) + header.off_by.unwrap_or(0);
    let mut text = String::new();
    for line in &header.first {
        text.push_str(line);
        text.push_str(newline);
    }
    let _ = write!(text, "{name}{separator}{length}{newline}");
    for line in &header.last {
        text.push_str(line);
        text.push_str(newline);
    }
    text.push_str(newline);
    text.into_bytes()
}

fn merge(into: &mut Value, more: &Value) {
    if let (Value::Object(into), Value::Object(more)) = (into, more) {
        into.extend(more.clone());
    }
}

fn kind(direction: Direction, answer: bool, method: &str) -> String {
    let who = match direction {
        Direction::ToServer => "client",
        Direction::ToClient => "server",
    };
    let what = if answer { " answers" } else { "" };
    format!("{who}{what} {method}")
}

fn names(pattern: &str, method: &str) -> bool {
    pattern == "*" || pattern == method || pattern == short_name(method)
}

fn matches(on: &On, message: &Message) -> bool {
    let (pattern, direction, answer) = match on {
        On {
            client: Some(method),
            ..
        } => (method, Direction::ToServer, false),
        On {
            server: Some(method),
            ..
        } => (method, Direction::ToClient, false),
        On {
            client_answers: Some(method),
            ..
        } => (method, Direction::ToServer, true),
        On {
            server_answers: Some(method),
            ..
        } => (method, Direction::ToClient, true),
        On {
            deviates: Some(how),
            ..
        } => {
            let nothing = message.method.is_none() && !message.answer;
            return message.direction == Direction::ToClient
                && match how.as_str() {
                    "header" => message.deviates,
                    "body" => nothing,
                    _ => message.deviates || nothing,
                };
        }
        _ => return false,
    };
    let named = match &message.method {
        Some(method) => names(pattern, method),
        None => answer && pattern == "*",
    };
    named
        && message.direction == direction
        && message.answer == answer
        && on
            .at_least
            .is_none_or(|bytes| message.body.len() as u64 >= bytes)
        && on.when.as_ref().is_none_or(|part| {
            message
                .json
                .as_ref()
                .is_some_and(|whole| contains(whole, part))
        })
        && on.has.iter().all(|(pointer, part)| {
            message
                .json
                .as_ref()
                .and_then(|json| json.pointer(pointer))
                .is_some_and(|value| match value {
                    Value::String(text) => text.contains(part),
                    other => other.to_string().contains(part),
                })
        })
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
