//! One prompt, to its end.

use std::sync::{Arc, Mutex};

use dsh_harness::agent::ScriptedReply;
use dsh_harness::kernel::{Cancel, CancelReason};
use dsh_harness::session::{Ending, EventBody, Log};
use dsh_profiles::{Profile, headless};

use crate::support::{Mounted, calls_echo, hangs, within};

/// RUN-12: the answer is what the model said last, and every event of the log was told.
#[tokio::test]
async fn a_prompt_is_answered_and_its_events_told_in_order() {
    let replies = vec![calls_echo("hi"), ScriptedReply::text("done")];
    let mounted = Mounted::new(Profile::Headless, replies, None).await;
    let agent = mounted.host.open(None).await.unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let listener = {
        let told = Arc::clone(&told);
        move |event: &dsh_harness::session::Event| told.lock().unwrap().push(event.seq)
    };
    let answered = within(
        "the answer",
        headless(&agent, "go", listener, &Cancel::new()),
    )
    .await;
    assert_eq!(answered.outcome, Ending::Completed);
    assert_eq!(answered.answer, "done");
    let last = agent.session().read(Log::last_seq);
    assert_eq!(*told.lock().unwrap(), (1..=last).collect::<Vec<_>>());
    mounted.host.dispose().await.unwrap();
    assert!(mounted.is_disposed());
}

/// RUN-6: where nobody can be asked, the call is denied and says so to the model.
#[tokio::test]
async fn a_call_that_needs_an_approval_is_denied_with_the_reason() {
    let replies = vec![calls_echo("hi"), ScriptedReply::text("pity")];
    let mounted = Mounted::new(Profile::Headless, replies, None).await;
    let agent = mounted.host.open(None).await.unwrap();
    let answered = headless(&agent, "go", |_| {}, &Cancel::new()).await;
    assert_eq!(answered.answer, "pity");
    let result = agent.session().read(|log| {
        let mut events = log.events().iter();
        events.find_map(|event| match &event.body {
            EventBody::ToolResult(result) => Some(result.clone()),
            _ => None,
        })
    });
    let result = result.unwrap();
    assert_eq!(result.code.as_deref(), Some("TOOL_DENIED"));
    let text = result.content[0].as_text();
    assert!(
        text.contains("nobody") && text.contains("may it speak?"),
        "{text}"
    );
    mounted.host.dispose().await.unwrap();
}

/// RUN-14: a prompt that is cancelled leaves a log in which nothing is open.
#[tokio::test]
async fn a_cancelled_prompt_closes_its_turn_in_the_log() {
    let mounted = Mounted::new(Profile::Headless, vec![hangs()], None).await;
    let agent = mounted.host.open(None).await.unwrap();
    let cancel = Cancel::new();
    let listener = {
        let cancel = cancel.clone();
        move |event: &dsh_harness::session::Event| {
            if matches!(event.body, EventBody::StepRequest { .. }) {
                cancel.cancel(CancelReason::Caller);
            }
        }
    };
    let answered = within("the end", headless(&agent, "go", listener, &cancel)).await;
    assert!(matches!(answered.outcome, Ending::Cancelled { .. }));
    let (turn, step) = agent
        .session()
        .read(|log| (log.open_turn(), log.open_step()));
    assert_eq!((turn, step), (None, None));
    mounted.host.dispose().await.unwrap();
}
