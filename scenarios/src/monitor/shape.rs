//! Whether a message has the shape LSP gives to its method.
//!
//! The shapes are data, `shape/shapes.yaml`; this module compiles them once and holds raw JSON
//! against them. Members that no shape mentions, and methods that LSP does not know, are fine. A
//! method that LSP knows has to come from the side, and as the kind of message, that LSP says.

mod check;
mod read;

use std::collections::HashMap;
use std::sync::OnceLock;

use dsh_transcript::{Envelope, Id};
use serde_json::Value;

use super::session::{Message, Session, Step};
use super::{Sink, brief, broken};
use crate::format::Who;

use check::{Misfit, check};
use read::read;

/// A type, compiled.
#[derive(Clone, Debug, PartialEq)]
enum Type {
    Any,
    Null,
    Boolean,
    Integer,
    UInteger,
    Decimal,
    String,
    Uri,
    Object,
    /// No params: missing, null or an empty object.
    None,
    Text(String),
    Number(i64),
    Array(Box<Type>),
    Union(Vec<Type>),
    /// Place in [`Shapes::types`].
    Named(usize),
    Members(Vec<Member>),
}

#[derive(Clone, Debug, PartialEq)]
struct Member {
    name: String,
    optional: bool,
    shape: Type,
}

/// What kind of message a method is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Request,
    Notification,
}

#[derive(Clone, Debug)]
struct Method {
    /// None: either side.
    by: Option<Who>,
    kind: Kind,
    params: Type,
    result: Option<Type>,
}

/// All shapes.
#[derive(Debug)]
pub(super) struct Shapes {
    types: Vec<Type>,
    methods: HashMap<String, Method>,
    error: Type,
}

impl Shapes {
    fn embedded() -> &'static Self {
        static EMBEDDED: OnceLock<Shapes> = OnceLock::new();
        EMBEDDED.get_or_init(|| {
            read(include_str!("shape/shapes.yaml"))
                .expect("a test reads the embedded shapes, and they are constant")
        })
    }
}

/// Holds a result against the shape that LSP gives to the answer of `method`. A method LSP does
/// not know may be answered with anything.
fn result_of(method: &str, result: Option<&Value>) -> Result<(), Misfit> {
    let shapes = Shapes::embedded();
    match shapes.methods.get(method).and_then(|m| m.result.as_ref()) {
        Some(shape) => check(&shapes.types, shape, "result", result),
        None => Ok(()),
    }
}

/// `shape`.
pub(super) fn shapes(session: &Session, step: &Step<'_>, sink: &mut Sink<'_>) {
    let Some((by, message)) = step.message() else {
        return;
    };
    sink.saw("shape");
    let mut found = |what: &str, misfit: &Misfit| {
        let message = format!("{what}: {misfit}");
        let expected = "the shape that LSP gives to the message";
        sink.broken("shape", by, broken(message, expected, brief(&misfit.got)));
    };
    match message {
        Message::Request(id, method) => {
            if let Err(misfit) = id_shape(id) {
                found(method, &misfit);
            }
            said(step, by, Kind::Request, method, &mut found);
        }
        Message::Notification(method) => said(step, by, Kind::Notification, method, &mut found),
        Message::Response(_) if session.in_order() => answered(session, step, &mut found),
        Message::Response(_) => {}
    }
}

/// LSP's ids are strings, and integers of 32 bits.
fn id_shape(id: &Id) -> Result<(), Misfit> {
    let shape = Type::Union(vec![Type::Integer, Type::String]);
    check(&[], &shape, "id", Some(&id.0))
}

fn said(step: &Step<'_>, by: Who, kind: Kind, method: &str, found: &mut impl FnMut(&str, &Misfit)) {
    let shapes = Shapes::embedded();
    let Some(known) = shapes.methods.get(method) else {
        return;
    };
    let wrong = |problem: &str| Misfit {
        at: "method".to_owned(),
        problem: problem.to_owned(),
        got: method.to_owned(),
    };
    if known.by.is_some_and(|side| side != by) {
        let problem = match by {
            Who::Client => "is for the server to send",
            Who::Server => "is for the client to send",
        };
        found(method, &wrong(problem));
        return;
    }
    if known.kind != kind {
        let problem = match kind {
            Kind::Request => "is a notification and has no id",
            Kind::Notification => "is a request and needs an id",
        };
        found(method, &wrong(problem));
        return;
    }
    if step.json.is_some()
        && let Err(misfit) = check(&shapes.types, &known.params, "params", step.params())
    {
        found(method, &misfit);
    }
}

fn answered(session: &Session, step: &Step<'_>, found: &mut impl FnMut(&str, &Misfit)) {
    let shapes = Shapes::embedded();
    let (Some((_, frame)), Some(_)) = (step.frame(), &step.json) else {
        return;
    };
    let method = step.answers.as_ref().map(|(method, _)| method.as_str());
    let what = format!(
        "answer to {}",
        brief(method.unwrap_or("what was not asked"))
    );
    if let Some(error) = step.at("/error") {
        if let Err(misfit) = check(&shapes.types, &shapes.error, "error", Some(error)) {
            found(&what, &misfit);
        }
    } else if matches!(frame.envelope, Envelope::Response { result: true, .. })
        && let Some(method) = method
    {
        let result = step.at("/result");
        let judged = result_of(method, result).and_then(|()| announced(session, method, result));
        if let Err(misfit) = judged {
            found(&what, &misfit);
        }
    }
}

/// Links are for clients that announced them.
fn announced(session: &Session, method: &str, result: Option<&Value>) -> Result<(), Misfit> {
    let Some(operation) = method.strip_prefix("textDocument/") else {
        return Ok(());
    };
    let Some(capabilities) = session.announced.get("capabilities") else {
        return Ok(());
    };
    let links = capabilities.pointer(&format!("/textDocument/{operation}/linkSupport"));
    let all = result.and_then(Value::as_array).into_iter().flatten();
    let link = all.zip(0..).find(|(entry, _)| {
        matches!(
            operation,
            "definition" | "declaration" | "typeDefinition" | "implementation"
        ) && entry.get("targetUri").is_some()
    });
    match link {
        Some((link, index)) if links != Some(&Value::Bool(true)) => Err(Misfit {
            at: format!("result[{index}]"),
            problem: "is a LocationLink, and the client did not announce linkSupport".to_owned(),
            got: link.to_string(),
        }),
        _ => Ok(()),
    }
}
