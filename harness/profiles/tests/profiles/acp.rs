//! The Agent Client Protocol, driven by the client side of its own crate.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    CancelNotification, CloseSessionRequest, ContentBlock, InitializeRequest, InitializeResponse,
    LoadSessionRequest, NewSessionRequest, PromptRequest, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse, SelectedPermissionOutcome,
    SessionNotification, StopReason, TextContent,
};
use agent_client_protocol::{
    Agent, Client, Error, Lines, on_receive_notification, on_receive_request,
};
use dsh_harness::agent::ScriptedReply;
use dsh_harness::kernel::{Cancel, CancelReason};
use dsh_profiles::{Profile, acp};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::sync::mpsc;

use crate::support::{Mounted, calls_echo, hangs, within};

/// What the editor was told, in order.
#[derive(Clone)]
struct Told {
    all: Arc<Mutex<Vec<Value>>>,
    news: mpsc::UnboundedSender<Value>,
}

/// How the person in front of the editor answers.
#[derive(Clone, Copy)]
struct Person(&'static str);

fn transport(
    stream: DuplexStream,
) -> Lines<
    impl futures::Sink<String, Error = io::Error> + Send + 'static,
    impl futures::Stream<Item = io::Result<String>> + Send + 'static,
> {
    let (reader, writer) = tokio::io::split(stream);
    let lines = BufReader::new(reader).lines();
    let incoming = futures::stream::unfold(lines, |mut lines| async move {
        let line = lines.next_line().await.transpose()?;
        Some((line, lines))
    });
    let outgoing = futures::sink::unfold(writer, |mut writer, line: String| async move {
        writer.write_all(format!("{line}\n").as_bytes()).await?;
        Ok(writer)
    });
    Lines::new(outgoing, incoming)
}

/// Serves an editor that does `play`, and returns what that came to once the agent has ended.
async fn serving<T>(
    mounted: &Mounted,
    cancel: &Cancel,
    person: Person,
    play: impl AsyncFnOnce(
        ConnectionTo<Agent>,
        Told,
        mpsc::UnboundedReceiver<Value>,
    ) -> Result<T, Error>,
) -> (Result<(), acp::ServeError>, Result<T, Error>) {
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let (input, output) = tokio::io::split(ours);
    let (news, coming) = mpsc::unbounded_channel();
    let told = Told {
        all: Arc::default(),
        news,
    };
    let hears = told.clone();
    let editor = Box::pin(
        Client
            .v1()
            .name("editor")
            .on_receive_notification(
                async move |notification: SessionNotification, _agent| {
                    let value = serde_json::to_value(notification.update).unwrap();
                    hears.all.lock().unwrap().push(value.clone());
                    let _ = hears.news.send(value);
                    Ok(())
                },
                on_receive_notification!(),
            )
            .on_receive_request(
                async move |request: RequestPermissionRequest, responder, _agent| {
                    let chosen = request
                        .options
                        .iter()
                        .find(|option| &*option.option_id.0 == person.0)
                        .unwrap();
                    responder.respond(RequestPermissionResponse::new(
                        RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(
                            chosen.option_id.clone(),
                        )),
                    ))
                },
                on_receive_request!(),
            )
            .connect_with(transport(theirs), async |agent: ConnectionTo<Agent>| {
                play(agent, told, coming).await
            }),
    );
    let host = Arc::clone(&mounted.host);
    let agent = Box::pin(acp::serve(host, BufReader::new(input), output, cancel));
    let (served, played) = within("the end", async { tokio::join!(agent, editor) }).await;
    assert!(mounted.is_disposed(), "what was mounted is there no more");
    (served, played)
}

async fn initialize(agent: &ConnectionTo<Agent>) -> Result<InitializeResponse, Error> {
    agent
        .send_request(InitializeRequest::new(ProtocolVersion::V1))
        .block_task()
        .await
}

async fn new_session(agent: &ConnectionTo<Agent>) -> Result<String, Error> {
    initialize(agent).await?;
    let answer = agent
        .send_request(NewSessionRequest::new("/"))
        .block_task()
        .await?;
    Ok(answer.session_id.0.to_string())
}

fn prompt(session: &str) -> PromptRequest {
    let text = ContentBlock::Text(TextContent::new("go"));
    PromptRequest::new(session.to_owned(), vec![text])
}

async fn mounted(replies: Vec<ScriptedReply>, folder: Option<&Path>) -> Mounted {
    Mounted::new(Profile::Acp, replies, folder).await
}

/// The text of all chunks of that kind.
fn text(told: &[Value], kind: &str) -> String {
    let chunks = told.iter().filter(|update| update["sessionUpdate"] == kind);
    chunks
        .filter_map(|update| update["content"]["text"].as_str())
        .collect()
}

/// RUN-6, RUN-12: what the model says, its calls and their results arrive while the turn runs; the
/// person is asked once, and not again where they allowed the tool for good.
#[tokio::test]
async fn a_prompt_is_streamed_with_its_calls_and_the_person_is_asked() {
    let first = ScriptedReply {
        text: Some("I speak first.".to_owned()),
        ..calls_echo("hi")
    };
    let replies = vec![first, calls_echo("again"), ScriptedReply::text("done")];
    let mounted = mounted(replies, None).await;
    let play = async |agent: ConnectionTo<Agent>, told: Told, _coming| {
        let answer = initialize(&agent).await?;
        assert_eq!(answer.protocol_version, ProtocolVersion::V1);
        assert!(!answer.agent_capabilities.load_session);
        let session = new_session(&agent).await?;
        let answer = agent.send_request(prompt(&session)).block_task().await?;
        assert_eq!(answer.stop_reason, StopReason::EndTurn);
        let told = told.all.lock().unwrap().clone();
        assert_eq!(text(&told, "agent_message_chunk"), "I speak first.done");
        let calls: Vec<_> = told
            .iter()
            .filter(|update| update["sessionUpdate"] == "tool_call")
            .map(|update| (&update["name"], &update["rawInput"]["text"]))
            .collect();
        let (echo, hi, again) = (json!("echo"), json!("hi"), json!("again"));
        assert_eq!(calls, [(&echo, &hi), (&echo, &again)]);
        let results: Vec<_> = told
            .iter()
            .filter(|update| update["sessionUpdate"] == "tool_call_update")
            .map(|update| (&update["status"], &update["content"][0]["content"]["text"]))
            .collect();
        let completed = json!("completed");
        assert_eq!(results, [(&completed, &hi), (&completed, &again)]);
        Ok(())
    };
    let cancel = Cancel::new();
    let (served, played) = serving(&mounted, &cancel, Person("allow-always"), play).await;
    played.unwrap();
    served.unwrap();
}

/// RUN-6: a rejection is the model's to read.
#[tokio::test]
async fn a_call_that_the_person_rejects_is_not_executed() {
    let replies = vec![calls_echo("hi"), ScriptedReply::text("pity")];
    let mounted = mounted(replies, None).await;
    let play = async |agent: ConnectionTo<Agent>, told: Told, _coming| {
        let session = new_session(&agent).await?;
        agent.send_request(prompt(&session)).block_task().await?;
        let told = told.all.lock().unwrap().clone();
        let result = told
            .iter()
            .find(|update| update["sessionUpdate"] == "tool_call_update")
            .unwrap();
        assert_eq!(result["status"], "failed");
        let text = result["content"][0]["content"]["text"].as_str().unwrap();
        assert!(text.contains("the user rejected it"), "{text}");
        Ok(())
    };
    let cancel = Cancel::new();
    let (served, played) = serving(&mounted, &cancel, Person("reject-once"), play).await;
    played.unwrap();
    served.unwrap();
}

/// RUN-14: a cancelled prompt is answered as cancelled, and the session takes the next one.
#[tokio::test]
async fn a_cancelled_prompt_is_answered_so() {
    let mounted = mounted(vec![hangs(), ScriptedReply::text("done")], None).await;
    let play = async |agent: ConnectionTo<Agent>,
                      _told: Told,
                      mut coming: mpsc::UnboundedReceiver<Value>| {
        let session = new_session(&agent).await?;
        let running = agent.send_request(prompt(&session));
        let begun = coming.recv().await.unwrap();
        assert_eq!(begun["sessionUpdate"], "agent_message_chunk");
        let second = agent.send_request(prompt(&session)).block_task().await;
        let error = second.unwrap_err();
        assert!(error.message.contains("a prompt of session"), "{error}");
        agent.send_notification(CancelNotification::new(session.clone()))?;
        let answer = running.block_task().await?;
        assert_eq!(answer.stop_reason, StopReason::Cancelled);
        let answer = agent.send_request(prompt(&session)).block_task().await?;
        assert_eq!(answer.stop_reason, StopReason::EndTurn);
        agent
            .send_request(CloseSessionRequest::new(session.clone()))
            .block_task()
            .await?;
        let gone = agent.send_request(prompt(&session)).block_task().await;
        assert!(gone.unwrap_err().message.contains("no session"));
        Ok(())
    };
    let cancel = Cancel::new();
    let (served, played) = serving(&mounted, &cancel, Person("reject-once"), play).await;
    played.unwrap();
    served.unwrap();
}

/// A failure of the model is an error with its stable code.
#[tokio::test]
async fn a_failed_turn_is_an_error_with_its_code() {
    let mounted = mounted(Vec::new(), None).await;
    let play = async |agent: ConnectionTo<Agent>, _told: Told, _coming| {
        let session = new_session(&agent).await?;
        let failed = agent.send_request(prompt(&session)).block_task().await;
        let error = failed.unwrap_err();
        assert_eq!(error.data, Some(json!({"code": "SCRIPT_EXHAUSTED"})));
        let relative = NewSessionRequest::new("relative");
        let refused = agent.send_request(relative).block_task().await;
        assert!(refused.unwrap_err().message.contains("not absolute"));
        let gone = NewSessionRequest::new("/no/such/folder");
        let refused = agent.send_request(gone).block_task().await.unwrap_err();
        assert!(refused.message.contains("does not exist"), "{refused}");
        assert_eq!(refused.data, Some(json!({"code": "CWD_UNUSABLE"})));
        Ok(())
    };
    let cancel = Cancel::new();
    let (served, played) = serving(&mounted, &cancel, Person("reject-once"), play).await;
    played.unwrap();
    served.unwrap();
}

/// RUN-11: where sessions are kept one is gone on with, and the editor is told what was said.
#[tokio::test]
async fn a_kept_session_is_loaded_and_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let first = mounted(vec![ScriptedReply::text("one")], Some(folder.path())).await;
    let play = async |agent: ConnectionTo<Agent>, _told: Told, _coming| {
        let session = new_session(&agent).await?;
        agent.send_request(prompt(&session)).block_task().await?;
        Ok(session)
    };
    let cancel = Cancel::new();
    let (served, session) = serving(&first, &cancel, Person("reject-once"), play).await;
    served.unwrap();
    let session = session.unwrap();
    let second = mounted(vec![ScriptedReply::text("two")], Some(folder.path())).await;
    let play = async |agent: ConnectionTo<Agent>, told: Told, _coming| {
        assert!(initialize(&agent).await?.agent_capabilities.load_session);
        let elsewhere = LoadSessionRequest::new(session.clone(), "/elsewhere");
        let refused = agent.send_request(elsewhere).block_task().await;
        assert!(refused.unwrap_err().message.contains("works in /"));
        let load = LoadSessionRequest::new(session.clone(), "/");
        agent.send_request(load).block_task().await?;
        let replayed = told.all.lock().unwrap().clone();
        assert_eq!(text(&replayed, "user_message_chunk"), "go");
        assert_eq!(text(&replayed, "agent_message_chunk"), "one");
        agent.send_request(prompt(&session)).block_task().await?;
        let all = told.all.lock().unwrap().clone();
        assert_eq!(text(&all, "agent_message_chunk"), "onetwo");
        Ok(())
    };
    let (served, played) = serving(&second, &cancel, Person("reject-once"), play).await;
    played.unwrap();
    served.unwrap();
}

/// RUN-14: an editor that goes away, and an interruption, end what runs and close it in the log.
#[tokio::test]
async fn the_end_of_either_side_closes_what_runs() {
    for interrupted in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let mounted = mounted(vec![hangs()], Some(folder.path())).await;
        let cancel = Cancel::new();
        let ours = &cancel;
        let play = async |agent: ConnectionTo<Agent>,
                          _told: Told,
                          mut coming: mpsc::UnboundedReceiver<Value>| {
            let session = new_session(&agent).await?;
            let running = agent.send_request(prompt(&session));
            coming.recv().await.unwrap();
            if interrupted {
                ours.cancel(CancelReason::Caller);
                // Its answer, or the end of the connection.
                let _ = running.block_task().await;
            } else {
                running.detach();
            }
            Ok(())
        };
        let (served, _played) = serving(&mounted, &cancel, Person("reject-once"), play).await;
        served.unwrap();
        let file = folder.path().join("session-1.jsonl");
        let log = std::fs::read_to_string(file).unwrap();
        let last: Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
        assert_eq!(last["type"], "turn/end", "interrupted: {interrupted}");
        assert_eq!(last["outcome"]["status"], "cancelled");
    }
}

/// What is too long, and what is no message, is answered without being sent back; the connection goes
/// on.
#[tokio::test]
async fn a_line_that_is_no_message_ends_nothing() {
    let mounted = mounted(Vec::new(), None).await;
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let (input, output) = tokio::io::split(ours);
    let cancel = Cancel::new();
    let host = Arc::clone(&mounted.host);
    let agent = Box::pin(acp::serve(host, BufReader::new(input), output, &cancel));
    let (reader, mut writer) = tokio::io::split(theirs);
    let mut lines = BufReader::new(reader).lines();
    let play = async move {
        let ask = |id: u64, method: &str, params: Value| {
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
        };
        let long = "SECRET".repeat(3 << 20);
        for (line, id, code, words) in [
            (long.clone(), Value::Null, -32600, "16777216 bytes"),
            (
                ask(1, &long, json!({})),
                Value::Null,
                -32600,
                "16777216 bytes",
            ),
            (
                "SECRET, no JSON".to_owned(),
                Value::Null,
                -32700,
                "not JSON",
            ),
            (
                ask(2, "initialize", json!({"protocolVersion": "SECRET"})),
                json!(2),
                -32602,
                "",
            ),
            ("[\"SECRET\"]".to_owned(), Value::Null, -32600, ""),
        ] {
            writer.write_all(line.as_bytes()).await.unwrap();
            writer.write_all(b"\n").await.unwrap();
            let told = lines.next_line().await.unwrap().unwrap();
            let answer: Value = serde_json::from_str(&told).unwrap();
            assert_eq!(
                (&answer["id"], &answer["error"]["code"]),
                (&id, &json!(code)),
                "{told}"
            );
            assert!(
                told.contains(words) && !told.contains("SECRETSECRET"),
                "{told}"
            );
            assert!(told.len() < 1000, "{told}");
        }
        for (line, id) in [
            (ask(3, "initialize", json!({"protocolVersion": 1})), 3),
            (
                ask(4, "session/new", json!({"cwd": "/", "mcpServers": []})),
                4,
            ),
        ] {
            writer.write_all(line.as_bytes()).await.unwrap();
            writer.write_all(b"\n").await.unwrap();
            let told = lines.next_line().await.unwrap().unwrap();
            let answer: Value = serde_json::from_str(&told).unwrap();
            assert_eq!(answer["id"], id, "{told}");
            assert!(answer.get("result").is_some(), "{told}");
        }
        writer.shutdown().await.unwrap();
        drop(writer);
        while lines.next_line().await.unwrap().is_some() {}
    };
    let (served, ()) = within("the end", async { tokio::join!(agent, play) }).await;
    served.unwrap();
}
