use std::collections::BTreeMap;

use dsh_transcript::Envelope;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Effect, Engine, Input, Key, StderrBytes, Surroundings};
use crate::markers::Files;
use crate::script::Script;

struct NoFiles;

impl Files for NoFiles {
    fn texts(&self, _: &[u8]) -> Vec<(Vec<u8>, String)> {
        Vec::new()
    }
}

fn engine(script: &str, watched: bool) -> Engine {
    let surroundings = Surroundings {
        pid: 1,
        process: 1,
        argv: Vec::new(),
        cwd: "/w".into(),
        env: BTreeMap::new(),
        files: Box::new(NoFiles),
    };
    Engine::new(
        Script::parse(script, "test").unwrap(),
        surroundings,
        watched,
    )
}

fn give(engine: &mut Engine, body: &Value) -> Vec<Effect> {
    let body = body.to_string();
    let envelope = Envelope::of(body.as_bytes());
    let mut effects = Vec::new();
    engine.handle(
        Input::Message {
            envelope,
            body: body.as_bytes(),
        },
        &mut effects,
    );
    effects
}

fn resume(engine: &mut Engine, key: Key) -> Vec<Effect> {
    let mut effects = Vec::new();
    engine.handle(Input::Resume(key), &mut effects);
    effects
}

fn write(body: &str) -> Effect {
    let bytes = format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes();
    Effect::Write {
        bytes,
        pieces: None,
    }
}

#[test]
fn nothing_is_recorded_when_nobody_watches() {
    let mut engine = engine("[{on: a, do: [{reply: 1}]}]", false);
    assert!(!engine.minds_sigterm());
    let effects = give(&mut engine, &json!({"id": 7, "method": "a"}));
    assert_eq!(effects, [write(r#"{"jsonrpc":"2.0","id":7,"result":1}"#)]);
}

#[test]
fn sequences_wait_side_by_side_and_end_in_any_order() {
    let mut engine = engine(
        "[{on: a, do: [{delay_ms: 5}, {hold: h}, {reply: '${params}'}]}]",
        false,
    );
    let ask = |id: u64| json!({"id": id, "method": "a", "params": id * 10});
    assert_eq!(
        give(&mut engine, &ask(1)),
        [Effect::Timer { ms: 5, key: 1 }]
    );
    assert_eq!(
        give(&mut engine, &ask(2)),
        [Effect::Timer { ms: 5, key: 2 }]
    );
    let hold = |key| Effect::Hold {
        name: "h".into(),
        key,
    };
    assert_eq!(resume(&mut engine, 2), [hold(3)]);
    assert_eq!(resume(&mut engine, 1), [hold(4)]);
    assert_eq!(
        resume(&mut engine, 3),
        [write(r#"{"jsonrpc":"2.0","id":2,"result":20}"#)]
    );
    // What was resumed before, and what never was, does nothing.
    assert_eq!(resume(&mut engine, 1), []);
    assert_eq!(resume(&mut engine, 99), []);
    assert_eq!(
        resume(&mut engine, 4),
        [write(r#"{"jsonrpc":"2.0","id":1,"result":10}"#)]
    );
    assert!(engine.sequences.is_empty() && engine.unanswered.is_empty());
}

#[test]
fn an_end_waits_until_everything_is_written() {
    let mut engine = engine(
        "[{on: a, do: [{stderr: x}, {raw: y}, {exit: 3}, {raw: never}]}]",
        false,
    );
    let effects = give(&mut engine, &json!({"method": "a"}));
    assert_eq!(
        effects,
        [Effect::Stderr {
            bytes: StderrBytes::Bytes(b"x".into()),
            key: 1
        }]
    );
    let raw = Effect::Write {
        bytes: b"y".into(),
        pieces: None,
    };
    assert_eq!(resume(&mut engine, 1), [raw, Effect::Written { key: 2 }]);
    assert_eq!(resume(&mut engine, 2)[0], Effect::Exit(3));
}

#[test]
fn a_block_ends_with_a_pause() {
    let script = "[{on: a, do: [coalesce, {raw: x}, {raw: y}, {delay_ms: 1}, {raw: z}]}]";
    let mut engine = engine(script, false);
    let write = |text: &str| Effect::Write {
        bytes: text.into(),
        pieces: None,
    };
    let effects = give(&mut engine, &json!({"method": "a"}));
    assert_eq!(effects, [write("xy"), Effect::Timer { ms: 1, key: 1 }]);
    assert_eq!(resume(&mut engine, 1), [write("z")]);
}

#[test]
fn a_reply_where_nothing_was_asked_is_noted() {
    let mut engine = engine("[{on: a, do: [{reply: 1}]}]", false);
    let effects = give(&mut engine, &json!({"method": "a"}));
    let [Effect::Record(body)] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!(
        *body,
        dsh_transcript::EventBody::note("script", "`a` is no request and has no answer")
    );
}

proptest! {
    /// Whatever a client says, and whenever sequences are resumed, the engine keeps its feet, and
    /// records only for those who watch.
    #[test]
    fn any_conversation_is_survived(
        watched in any::<bool>(),
        steps in proptest::collection::vec((0_usize..9, 0_u64..6), 0..40),
    ) {
        let script = "
- {on: a, nth: 2, do: [ignore]}
- {on: a, do: [{delay_ms: 1}, {reply: x}]}
- {on: b, do: [{request: {method: q, await: true}}]}
- {on: c, do: [coalesce, {frame: {only: 3}}, {chunk: each_byte}, default, {exit: 1}]}
- {on: response, do: [{set: s}]}
- {on: d, set: s, do: [{kill: SIGTERM}]}
- {on: eof, do: [ignore]}
";
        let mut engine = engine(script, watched);
        let mut effects = Vec::new();
        for (kind, number) in steps {
            let uri = json!({"textDocument": {"uri": number.to_string(), "text": "t"}});
            let body = match kind {
                0 => json!({"id": number, "method": "a"}),
                1 => json!({"id": number, "method": "b"}),
                2 => json!({"id": number, "method": "c"}),
                3 => json!({"id": number, "result": null}),
                4 => json!({"method": "$/cancelRequest", "params": {"id": number}}),
                5 => json!({"method": "textDocument/didOpen", "params": uri}),
                6 => json!({"id": number, "method": "textDocument/hover", "params": uri}),
                7 => json!([number]),
                _ => {
                    engine.handle(Input::Resume(number), &mut effects);
                    engine.handle(Input::Eof, &mut effects);
                    continue;
                }
            };
            let text = body.to_string();
            let envelope = Envelope::of(text.as_bytes());
            engine.handle(Input::Message { envelope, body: text.as_bytes() }, &mut effects);
        }
        let recorded = effects.iter().any(|effect| matches!(effect, Effect::Record(_)));
        prop_assert!(watched || !recorded);
    }

    /// Arbitrary text is a script or an error, never a panic.
    #[test]
    fn arbitrary_scripts_are_survived(text in ".*", json in "[\\[\\]{}:,\"a-z0-9 \\n-]*") {
        let _ = Script::parse(&text, "x");
        let _ = Script::parse(&json, "x");
    }
}
