//! The JSON-RPC profiles, as a program that speaks them meets them.

use std::collections::VecDeque;
use std::path::Path;

use dsh_harness::agent::ScriptedReply;
use dsh_harness::kernel::{Cancel, CancelReason};
use dsh_profiles::{Profile, sdk};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf,
};

use crate::support::{Mounted, calls_echo, hangs, within};

/// The client's end.
struct Client {
    lines: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: Option<WriteHalf<DuplexStream>>,
    next: u64,
    /// What came while something else was waited for.
    kept: VecDeque<Value>,
}

impl Client {
    async fn say(&mut self, line: &str) {
        let writer = self.writer.as_mut().unwrap();
        writer.write_all(line.as_bytes()).await.unwrap();
        writer.write_all(b"\n").await.unwrap();
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.say(&message.to_string()).await;
        json!(id)
    }

    async fn next(&mut self) -> Value {
        let line = within("a line", self.lines.next_line()).await.unwrap();
        serde_json::from_str(&line.expect("the server has ended")).unwrap()
    }

    /// The next message that fits; others are kept, in order.
    async fn wait(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.kept.iter().position(&fits) {
            return self.kept.remove(at).unwrap();
        }
        loop {
            let message = self.next().await;
            if fits(&message) {
                return message;
            }
            self.kept.push_back(message);
        }
    }

    async fn answer(&mut self, id: &Value) -> Value {
        let message = self.wait(|message| message["id"] == *id).await;
        assert!(message.get("error").is_none(), "{message}");
        message["result"].clone()
    }

    async fn error(&mut self, id: &Value) -> Value {
        let message = self.wait(|message| message["id"] == *id).await;
        message["error"].clone()
    }

    async fn event(&mut self, session: &Value, kind: &str) -> Value {
        self.wait(|message| {
            message["method"] == "event"
                && message["params"]["session"] == *session
                && message["params"]["event"]["type"] == kind
        })
        .await
    }

    async fn open(&mut self, params: Value) -> Value {
        let id = self.ask("open", params).await;
        self.answer(&id).await["session"].clone()
    }

    /// The end of the input.
    async fn hang_up(&mut self) {
        self.writer.take().unwrap().shutdown().await.unwrap();
    }

    /// What comes until the server has ended.
    async fn rest(&mut self) -> Vec<Value> {
        let mut rest: Vec<Value> = self.kept.drain(..).collect();
        while let Some(line) = within("the end", self.lines.next_line()).await.unwrap() {
            rest.push(serde_json::from_str(&line).unwrap());
        }
        rest
    }
}

/// Serves `play`, and returns once both have ended.
async fn serving<F>(
    mounted: &Mounted,
    limits: sdk::Limits,
    cancel: &Cancel,
    play: impl FnOnce(Client) -> F,
) -> Result<(), sdk::ServeError>
where
    F: Future<Output = ()>,
{
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let (input, output) = tokio::io::split(ours);
    let (reader, writer) = tokio::io::split(theirs);
    let client = Client {
        lines: BufReader::new(reader).lines(),
        writer: Some(writer),
        next: 0,
        kept: VecDeque::new(),
    };
    let host = std::sync::Arc::clone(&mounted.host);
    let serving = sdk::serve(host, BufReader::new(input), output, limits, cancel);
    let (ended, ()) = within("the end", async { tokio::join!(serving, play(client)) }).await;
    assert!(mounted.is_disposed(), "what was mounted is there no more");
    ended
}

async fn sdk(replies: Vec<ScriptedReply>, folder: Option<&Path>) -> Mounted {
    Mounted::new(Profile::Sdk, replies, folder).await
}

fn default() -> sdk::Limits {
    sdk::Limits::default()
}

/// RUN-12: an answer comes after every event of its turn, and the log says the same.
#[tokio::test]
async fn a_prompt_is_answered_after_its_events() {
    let mounted = sdk(vec![ScriptedReply::text("done")], None).await;
    let play = |mut client: Client| async move {
        let session = client.open(json!({"cwd": "/", "deltas": true})).await;
        let id = client
            .ask("prompt", json!({"session": session, "text": "go"}))
            .await;
        let mut events = Vec::new();
        let mut said = String::new();
        let answer = loop {
            let message = client.next().await;
            match message["method"].as_str() {
                Some("event") => events.push(message["params"]["event"].clone()),
                Some("delta") => said.push_str(message["params"]["text"].as_str().unwrap()),
                _ => break message,
            }
        };
        assert_eq!(answer["id"], id);
        assert_eq!(
            answer["result"],
            json!({"outcome": {"status": "completed"}, "answer": "done"})
        );
        assert_eq!(said, "done");
        assert_eq!(events.last().unwrap()["type"], "turn/end");
        let asked = client.ask("events", json!({"session": session})).await;
        assert_eq!(client.answer(&asked).await["events"], Value::from(events));
        let asked = client
            .ask("events", json!({"session": session, "after": u64::MAX}))
            .await;
        assert_eq!(client.answer(&asked).await["events"], json!([]));
        let closed = client.ask("close", json!({"session": session})).await;
        assert_eq!(client.answer(&closed).await, json!({}));
        let gone = client.ask("close", json!({"session": session})).await;
        assert_eq!(client.error(&gone).await["data"]["code"], "SESSION_UNKNOWN");
        client.hang_up().await;
        assert_eq!(client.rest().await, Vec::<Value>::new());
    };
    serving(&mounted, default(), &Cancel::new(), play)
        .await
        .unwrap();
}

/// RUN-14: one session waits for its model while another is answered; a cancel ends the running
/// prompt and those that wait, of its session alone.
#[tokio::test]
async fn sessions_run_side_by_side_and_are_cancelled_alone() {
    let mounted = sdk(vec![hangs()], None).await;
    let play = |mut client: Client| async move {
        let first = client.open(json!({"cwd": "/"})).await;
        let second = client.open(json!({})).await;
        assert_ne!(first, second);
        let text = "go";
        let running = client
            .ask("prompt", json!({"session": first, "text": text}))
            .await;
        let waiting = client
            .ask("prompt", json!({"session": first, "text": text}))
            .await;
        let other = client
            .ask("prompt", json!({"session": second, "text": text}))
            .await;
        client.event(&first, "step/request").await;
        client.event(&second, "step/request").await;
        let cancel = client.ask("cancel", json!({"session": first})).await;
        assert_eq!(client.answer(&cancel).await, json!({"cancelled": 2}));
        for id in [&running, &waiting] {
            let answer = client.answer(id).await;
            assert_eq!(answer["outcome"]["status"], "cancelled", "{answer}");
        }
        assert!(
            !client.kept.iter().any(|message| message["id"] == other),
            "the other session goes on"
        );
        let cancel = client.ask("cancel", json!({"session": second})).await;
        assert_eq!(client.answer(&cancel).await, json!({"cancelled": 1}));
        client.answer(&other).await;
        client.hang_up().await;
        client.rest().await;
    };
    serving(&mounted, default(), &Cancel::new(), play)
        .await
        .unwrap();
}

#[tokio::test]
async fn what_is_no_request_is_told_and_changes_nothing() {
    let mounted = sdk(vec![ScriptedReply::text("done")], None).await;
    let limits = sdk::Limits {
        line_bytes: 1000,
        ..default()
    };
    let play = |mut client: Client| async move {
        let session = client.open(json!({})).await;
        for (line, number) in [
            ("{", -32700),
            ("[]", -32600),
            (r#"{"jsonrpc":"2.0","id":1}"#, -32600),
            (&"x".repeat(2000), -32600),
        ] {
            client.say(line).await;
            let message = client.wait(|message| message.get("error").is_some()).await;
            assert_eq!(message["error"]["code"], number, "{message}");
        }
        for (method, params, code) in [
            ("nonsense", json!({}), "METHOD_NOT_FOUND"),
            ("prompt", json!({"session": session}), "INVALID_PARAMS"),
            (
                "prompt",
                json!({"session": "x", "text": "t"}),
                "SESSION_UNKNOWN",
            ),
            ("open", json!({"cwd": "relative"}), "CWD_NOT_ABSOLUTE"),
            ("open", json!({"cwd": "/no/such"}), "CWD_UNUSABLE"),
            (
                "open",
                json!({"cwd": concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")}),
                "CWD_UNUSABLE",
            ),
            ("open", json!({"resume": "x"}), "SESSIONS_NOT_KEPT"),
            ("open", json!({"resume": "x", "cwd": "/"}), "INVALID_PARAMS"),
        ] {
            let id = client.ask(method, params).await;
            let error = client.error(&id).await;
            assert_eq!(error["data"]["code"], code, "{error}");
        }
        client.say("").await;
        client.say(r#"{"jsonrpc":"2.0","method":"nonsense"}"#).await;
        let id = client
            .ask("prompt", json!({"session": session, "text": "go"}))
            .await;
        assert_eq!(client.answer(&id).await["answer"], "done");
        client.hang_up().await;
        client.rest().await;
    };
    serving(&mounted, limits, &Cancel::new(), play)
        .await
        .unwrap();
}

#[tokio::test]
async fn more_than_the_limits_is_refused_and_the_rest_goes_on() {
    let mounted = sdk(vec![hangs()], None).await;
    let limits = sdk::Limits {
        sessions: 2,
        prompts: 3,
        ..default()
    };
    let play = |mut client: Client| async move {
        let session = client.open(json!({})).await;
        client.open(json!({})).await;
        let third = client.ask("open", json!({})).await;
        assert_eq!(
            client.error(&third).await["data"]["code"],
            "TOO_MANY_SESSIONS"
        );
        let mut asked = Vec::new();
        for _ in 0..10 {
            let prompt = json!({"session": session, "text": "go"});
            asked.push(client.ask("prompt", prompt).await);
        }
        for id in &asked[3..] {
            assert_eq!(client.error(id).await["data"]["code"], "TOO_MANY_PROMPTS");
        }
        client.hang_up().await;
        let rest = client.rest().await;
        for id in &asked[..3] {
            let answer = rest.iter().find(|message| message["id"] == *id).unwrap();
            assert_eq!(answer["result"]["outcome"]["status"], "cancelled");
        }
    };
    serving(&mounted, limits, &Cancel::new(), play)
        .await
        .unwrap();
}

/// RUN-14: the end of the input is the end of everything, and what ran is closed and told.
#[tokio::test]
async fn the_end_of_the_input_cancels_what_runs_and_disposes_everything() {
    let folder = tempfile::tempdir().unwrap();
    let mounted = sdk(vec![hangs()], Some(folder.path())).await;
    let play = |mut client: Client| async move {
        let session = client.open(json!({"cwd": "/"})).await;
        let id = client
            .ask("prompt", json!({"session": session, "text": "go"}))
            .await;
        client.event(&session, "step/request").await;
        client.hang_up().await;
        let rest = client.rest().await;
        let kinds: Vec<_> = rest
            .iter()
            .filter_map(|message| message["params"]["event"]["type"].as_str())
            .collect();
        assert!(kinds.ends_with(&["step/end", "turn/end"]), "{kinds:?}");
        let answer = rest.last().unwrap();
        assert_eq!(answer["id"], id);
        assert_eq!(answer["result"]["outcome"]["status"], "cancelled");
    };
    serving(&mounted, default(), &Cancel::new(), play)
        .await
        .unwrap();
    let text = std::fs::read_to_string(folder.path().join("session-1.jsonl")).unwrap();
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(last["type"], "turn/end", "the file is whole");
}

#[tokio::test]
async fn an_interruption_ends_serving_though_the_client_stays() {
    let mounted = sdk(vec![hangs()], None).await;
    let cancel = Cancel::new();
    let play = |mut client: Client| {
        let cancel = &cancel;
        async move {
            let session = client.open(json!({})).await;
            client
                .ask("prompt", json!({"session": session, "text": "go"}))
                .await;
            client.event(&session, "step/request").await;
            cancel.cancel(CancelReason::Caller);
            let rest = client.rest().await;
            assert!(
                rest.iter()
                    .any(|message| { message["result"]["outcome"]["status"] == "cancelled" })
            );
        }
    };
    serving(&mounted, default(), &cancel, play).await.unwrap();
}

/// RUN-6: the client decides on a call that needs an approval, where it offered to.
#[tokio::test]
async fn the_client_is_asked_for_approvals_where_it_offered_to_answer() {
    let replies = vec![
        calls_echo("one"),
        calls_echo("two"),
        ScriptedReply::text("done"),
    ];
    let mounted = sdk(replies, None).await;
    let play = |mut client: Client| async move {
        let session = client.open(json!({"approvals": true})).await;
        let id = client
            .ask("prompt", json!({"session": session, "text": "go"}))
            .await;
        for (text, granted) in [("one", true), ("two", false)] {
            let question = client.wait(|message| message["method"] == "approve").await;
            let params = &question["params"];
            assert_eq!(params["session"], session);
            assert_eq!(params["question"], "may it speak?");
            assert_eq!(params["call"]["arguments"]["text"], text);
            let answer = json!({"granted": granted, "reason": "not now"});
            let message = json!({"jsonrpc": "2.0", "id": question["id"], "result": answer});
            client.say(&message.to_string()).await;
            let event = client.event(&session, "tool/result").await;
            let result = &event["params"]["event"];
            assert_eq!(result["isError"], !granted, "{result}");
            if !granted {
                let told = result["content"][0]["text"].as_str().unwrap();
                assert!(told.contains("not now"), "{told}");
            }
        }
        client.answer(&id).await;
        // An answer that nobody waits for is no fault.
        client
            .say(r#"{"jsonrpc":"2.0","id":"approve-1","result":{"granted":true}}"#)
            .await;
        client.hang_up().await;
        client.rest().await;
    };
    serving(&mounted, default(), &Cancel::new(), play)
        .await
        .unwrap();
}

/// RUN-11: a stored session is gone on with, by another run too.
#[tokio::test]
async fn a_session_is_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let mounted = sdk(vec![ScriptedReply::text("one")], Some(folder.path())).await;
    let play = |mut client: Client| async move {
        let session = client.open(json!({"cwd": "/"})).await;
        let id = client
            .ask("prompt", json!({"session": session, "text": "go"}))
            .await;
        client.answer(&id).await;
        let again = client.ask("open", json!({"resume": session})).await;
        assert_eq!(client.error(&again).await["data"]["code"], "SESSION_STORE");
        let closed = client.ask("close", json!({"session": session})).await;
        client.answer(&closed).await;
        let again = client.ask("open", json!({"resume": session})).await;
        let opened = client.answer(&again).await;
        assert_eq!(
            (&opened["session"], &opened["resumed"]),
            (&session, &json!(true))
        );
        client.hang_up().await;
        client.rest().await;
    };
    serving(&mounted, default(), &Cancel::new(), play)
        .await
        .unwrap();
    let mounted = sdk(vec![ScriptedReply::text("two")], Some(folder.path())).await;
    let play = |mut client: Client| async move {
        let id = client.ask("open", json!({"resume": "../session-1"})).await;
        assert_eq!(
            client.error(&id).await["data"]["code"],
            "SESSION_ID_INVALID"
        );
        let session = client.open(json!({"resume": "session-1"})).await;
        let id = client
            .ask("prompt", json!({"session": session, "text": "go"}))
            .await;
        assert_eq!(client.answer(&id).await["answer"], "two");
        client.hang_up().await;
        client.rest().await;
    };
    serving(&mounted, default(), &Cancel::new(), play)
        .await
        .unwrap();
}
