//! What holds for every conversation, whatever the model, the tools and the plugins do.

use std::sync::Arc;

use dsh_agent::{
    Agent, LoopOptions, PreStepDecision, RetryPolicy, ScriptedCall, ScriptedError, ScriptedModel,
    ScriptedReply,
};
use dsh_kernel::{Cancel, CancelReason};
use dsh_session::{EventBody, Message, ModelRequest};
use proptest::prelude::*;
use serde_json::json;

use crate::support::{AddContext, Bench, context, echo, stage, tool};

/// What one reply of the model does.
#[derive(Clone, Debug)]
enum Move {
    Say(String),
    Call(Vec<Called>),
    Fail { passes: bool },
    Cut,
    Nothing,
}

/// What one call is like.
#[derive(Clone, Debug)]
enum Called {
    Echo {
        fails: bool,
        id: Option<u8>,
    },
    Panicking,
    Unknown,
    NoJson,
    /// Cancels the turn that makes it.
    GivesUp,
    /// Queues a context.
    Pushes,
}

/// What one turn is like.
#[derive(Clone, Debug)]
struct Asked {
    prompt: String,
    contexts: u8,
    rejected: bool,
}

fn called() -> impl Strategy<Value = Called> {
    prop_oneof![
        4 => (any::<bool>(), prop::option::of(0..3_u8)).prop_map(|(fails, id)| Called::Echo { fails, id }),
        1 => Just(Called::Panicking),
        1 => Just(Called::Unknown),
        1 => Just(Called::NoJson),
        1 => Just(Called::GivesUp),
        2 => Just(Called::Pushes),
    ]
}

fn moved() -> impl Strategy<Value = Move> {
    prop_oneof![
        3 => "[a-zä€ \n\"\\\\]{1,6}".prop_map(Move::Say),
        5 => prop::collection::vec(called(), 1..5).prop_map(Move::Call),
        1 => any::<bool>().prop_map(|passes| Move::Fail { passes }),
        1 => Just(Move::Cut),
        1 => Just(Move::Nothing),
    ]
}

fn asked() -> impl Strategy<Value = Asked> {
    let rejected = prop::bool::weighted(0.15);
    ("[a-z\u{0}\u{1f600}]{0,4}", 0..3_u8, rejected).prop_map(|(prompt, contexts, rejected)| Asked {
        prompt,
        contexts,
        rejected,
    })
}

fn reply(made: &Move) -> ScriptedReply {
    match made {
        Move::Say(text) => ScriptedReply::text(text),
        Move::Call(calls) => ScriptedReply {
            text: Some("calling".to_owned()),
            reasoning: Some("thinking".to_owned()),
            tool_calls: calls.iter().map(call).collect(),
            ..ScriptedReply::default()
        },
        Move::Fail { passes } => ScriptedReply {
            error: Some(ScriptedError {
                code: "X".to_owned(),
                message: "x".to_owned(),
                retry: *passes,
                after_ms: None,
            }),
            ..ScriptedReply::text("lost")
        },
        Move::Cut => ScriptedReply {
            cut: true,
            ..ScriptedReply::text("lost")
        },
        Move::Nothing => ScriptedReply::default(),
    }
}

fn call(called: &Called) -> ScriptedCall {
    let (name, arguments, id) = match called {
        Called::Echo { fails, id } => {
            let id = id.map(|id| format!("id{id}"));
            ("echo", json!({"text": "e", "fail": fails}).to_string(), id)
        }
        Called::Panicking => ("bomb", String::new(), None),
        Called::Unknown => ("nobody", "{}".to_owned(), None),
        Called::NoJson => ("echo", "{\"text\":".to_owned(), None),
        Called::GivesUp => ("give-up", String::new(), None),
        Called::Pushes => ("push", String::new(), None),
    };
    ScriptedCall {
        id,
        name: name.to_owned(),
        arguments: None,
        arguments_raw: Some(arguments),
    }
}

/// Plays a conversation to its end, and returns what the model was sent.
async fn play(moves: &[Move], turns: &[Asked]) -> (Bench, Arc<ScriptedModel>) {
    let running: Arc<std::sync::Mutex<Option<(Cancel, Agent)>>> = Arc::default();
    let (of_give_up, of_push) = (Arc::clone(&running), Arc::clone(&running));
    let bench = Bench::new()
        .with(echo().overlapping())
        .with(tool("bomb", |_, _| async { panic!("boom") }))
        .with(tool("give-up", move |_, _| {
            let (cancel, _) = of_give_up
                .lock()
                .expect("not poisoned")
                .clone()
                .expect("a turn runs");
            cancel.cancel(CancelReason::Caller);
            async { Ok(json!("given up")) }
        }))
        .with(tool("push", move |_, _| {
            let (_, agent) = of_push
                .lock()
                .expect("not poisoned")
                .clone()
                .expect("a turn runs");
            agent.inbox().push_next_step(context("pushed"));
            async { Ok(json!("pushed")) }
        }));
    let _contexts = bench.tools.after_execute(0, Arc::new(AddContext));
    let reject = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let rejects = Arc::clone(&reject);
    let gate = stage(move |context, batch, next| {
        let refuse = rejects.load(std::sync::atomic::Ordering::SeqCst);
        if refuse && context.step == 1 {
            return Box::pin(async { Ok(PreStepDecision::Reject("no".to_owned())) });
        }
        next.run(batch)
    });
    let _gate = bench.service.on_pre_step(0, gate);
    let options = LoopOptions {
        max_steps: 4,
        retry: RetryPolicy {
            max_attempts: 2,
            first_delay: std::time::Duration::ZERO,
            ..RetryPolicy::default()
        },
        ..LoopOptions::default()
    };
    let (agent, model) = bench.limited(options, moves.iter().map(reply));
    for turn in turns {
        let cancel = Cancel::new();
        *running.lock().expect("not poisoned") = Some((cancel.clone(), agent.clone()));
        reject.store(turn.rejected, std::sync::atomic::Ordering::SeqCst);
        for number in 0..turn.contexts {
            agent.inbox().push_next_step(context(&format!("c{number}")));
        }
        // Failed, cancelled or completed: whatever it came to, the log has to be in order.
        let _ = agent.prompt(turn.prompt.as_str(), &cancel).await;
    }
    *running.lock().expect("not poisoned") = None;
    (bench, model)
}

fn bytes(messages: &[Message]) -> Vec<String> {
    let text = |message| serde_json::to_string(message).expect("it is written");
    messages.iter().map(text).collect()
}

/// INS-23: each request is the one before with more behind it.
fn extends(requests: &[ModelRequest]) -> Result<(), TestCaseError> {
    for pair in requests.windows(2) {
        let (before, after) = (bytes(&pair[0].messages), bytes(&pair[1].messages));
        prop_assert!(after.starts_with(&before), "{before:?}\nthen {after:?}");
        prop_assert_eq!(&pair[0].system, &pair[1].system);
        prop_assert_eq!(&pair[0].tools, &pair[1].tools);
    }
    Ok(())
}

/// Every result stands behind the message that called, in its order, with nothing in between, and
/// no id is used twice: what a chat API accepts.
fn is_well_formed(messages: &[Message]) -> Result<(), TestCaseError> {
    let mut owed = std::collections::VecDeque::new();
    let mut ids = std::collections::HashSet::new();
    for message in messages {
        match message {
            Message::Tool { call_id, .. } => {
                let due = owed.pop_front();
                prop_assert_eq!(Some(call_id), due.as_ref());
            }
            Message::User { .. } => prop_assert!(owed.is_empty()),
            Message::Assistant { tool_calls, .. } => {
                prop_assert!(owed.is_empty());
                for call in tool_calls {
                    prop_assert!(ids.insert(call.id.clone()), "{} twice", call.id);
                    owed.push_back(call.id.clone());
                }
            }
        }
    }
    prop_assert!(owed.is_empty());
    Ok(())
}

/// Turns and steps are all closed, and each result was told once.
fn is_closed(bench: &Bench) -> Result<(), TestCaseError> {
    let (open, calls, results) = bench.session.read(|log| {
        let count =
            |is: fn(&EventBody) -> bool| log.events().iter().filter(|e| is(&e.body)).count();
        (
            log.open_turn(),
            count(|body| matches!(body, EventBody::ToolCall { .. })),
            count(|body| matches!(body, EventBody::ToolResult(_))),
        )
    });
    prop_assert_eq!(open, None);
    prop_assert_eq!(calls, results);
    prop_assert_eq!(bench.told_results().len(), results);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// RUN-11, RUN-12, RUN-13, RUN-14, INS-23: over conversations with failing models, unknown and
    /// panicking tools, repeated ids, broken arguments, cancellations and rejections, each request
    /// extends the one before byte for byte and is rebuilt from the log; each call has one result,
    /// right behind its message; everything is closed.
    #[test]
    fn each_request_extends_the_one_before(
        moves in prop::collection::vec(moved(), 1..14),
        turns in prop::collection::vec(asked(), 1..7),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let (bench, model) = runtime.block_on(play(&moves, &turns));
        let requests = model.requests();
        extends(&requests)?;
        for request in &requests {
            is_well_formed(&request.messages)?;
        }
        prop_assert_eq!(crate::support::rebuilt(&bench.session), requests);
        is_closed(&bench)?;
    }
}
