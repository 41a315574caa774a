//! Touches and the tools pipeline (INS-5, INS-6, INS-8, INS-14, INS-16, INS-20, INS-21).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use dsh_agent::ScriptedReply;
use dsh_kernel::{Cancel, CancelReason};
use dsh_session::{ContentBlock, EventBody, Session};
use dsh_tools::{Executed, Invocation, PostExecute, ToolCall, ToolError, Verdict};
use serde_json::json;

use super::rig::{Rig, contexts, headings, sources};
use crate::WorkspaceContextConfig;

const NEW: &str = "Additional instructions from: a/AGENTS.md";

async fn nested() -> (Rig, Session) {
    let rig = Rig::new().await;
    rig.write("p/a/AGENTS.md", "deep");
    rig.write("p/a/f", "");
    rig.write("p/f", "");
    let session = rig.session("p");
    (rig, session)
}

/// Holds every result back while it is switched on.
struct Block(AtomicBool);

#[async_trait]
impl PostExecute for Block {
    async fn review(&self, _: &Invocation, _: Executed<'_>) -> Result<Verdict, ToolError> {
        Ok(if self.0.load(Ordering::SeqCst) {
            Verdict::Block("held back".to_owned())
        } else {
            Verdict::Accept
        })
    }
}

/// Does so with the results of calls that the model made.
struct Outer(Arc<Block>);

#[async_trait]
impl PostExecute for Outer {
    async fn review(
        &self,
        invocation: &Invocation,
        executed: Executed<'_>,
    ) -> Result<Verdict, ToolError> {
        if invocation.outer.is_some() {
            return Ok(Verdict::Accept);
        }
        self.0.review(invocation, executed).await
    }
}

/// INS-5, INS-8, INS-23: new, changed, gone, back again, each once, behind the group of results.
#[tokio::test]
async fn a_touch_tells_what_is_new_and_what_has_changed() {
    let (rig, session) = nested().await;
    rig.write("p/b/AGENTS.md", "a sibling");
    let two = ScriptedReply::calls([
        ("read", json!({"path": rig.path("p/a/f")})),
        ("read", json!({"path": rig.path("p/a/f")})),
    ]);
    let read = || rig.read("p/a/f");
    let ok = || ScriptedReply::text("ok");
    let agent = rig.open(
        &session,
        vec![two, ok(), read(), ok(), read(), ok(), read(), ok()],
    );
    agent.prompt("one").await;
    let heard = agent.heard();
    assert_eq!(heard[..3], ["one", "read", "read"]);
    assert_eq!(headings(&heard[3]), [NEW]);
    assert_eq!(
        heard.len(),
        4,
        "told once by two calls that overlap: {heard:?}"
    );

    for (change, heading) in [
        ("edit", "Updated instructions from: a/AGENTS.md"),
        ("remove", "Instructions removed: a/AGENTS.md"),
        ("write", NEW),
    ] {
        match change {
            "remove" => rig.remove("p/a/AGENTS.md"),
            content => rig.write("p/a/AGENTS.md", content),
        }
        agent.prompt(change).await;
        let heard = agent.heard();
        assert_eq!(headings(heard.last().unwrap()), [heading], "{change}");
    }
}

/// INS-5: other tools, failed calls and results that were held back trigger nothing.
#[tokio::test]
async fn only_successful_calls_of_the_file_tools_count() {
    let (rig, session) = nested().await;
    let path = rig.path("p/a/f");
    for (name, arguments) in [
        ("edit", json!({"path": path})),
        ("read", json!({"path": path, "fail": true})),
        ("read", json!({"path": rig.path("p/a/none")})),
        ("nothing", json!({})),
    ] {
        let result = rig.call(&session, name, arguments).await;
        assert!(contexts(&result).is_empty(), "{name}");
    }
    assert_eq!(rig.disk.counts(), (0, 0), "nothing was looked at");
    // Held back by a stage before ours, and by one behind it.
    for order in [0, i32::MAX] {
        let block = Arc::new(Block(AtomicBool::new(true)));
        let handle = rig.registry().after_execute(order, Arc::clone(&block) as _);
        let held = rig.call(&session, "read", json!({"path": path})).await;
        assert!(held.is_error && contexts(&held).is_empty());
        handle.release();
    }
    assert_eq!(headings(&rig.touch(&session, "p/a/f").await[0]), [NEW]);
}

/// INS-5: outside the working directory nothing is discovered, but what is loaded is checked.
#[tokio::test]
async fn a_touch_outside_discovers_nothing_and_checks_what_is_loaded() {
    let rig = Rig::new().await;
    for path in ["p/a/f", "p/a/b/f", "p/c/f", "f"] {
        rig.write(path, "");
    }
    for path in ["p/a/b/AGENTS.md", "p/c/AGENTS.md", "p/AGENTS.md"] {
        rig.write(path, "one");
    }
    let session = rig.session("p/a");
    assert!(rig.touch(&session, "p/c/f").await.is_empty());
    assert!(rig.touch(&session, "f").await.is_empty());
    let told = rig.touch(&session, "p/a/b/f").await;
    assert_eq!(
        headings(&told[0]),
        [
            "Additional instructions from: AGENTS.md",
            "Additional instructions from: a/b/AGENTS.md",
        ]
    );
    rig.write("p/a/b/AGENTS.md", "two");
    let told = rig.touch(&session, "f").await;
    assert_eq!(
        headings(&told[0]),
        ["Updated instructions from: a/b/AGENTS.md"]
    );
}

/// INS-21: what rides on a result suppresses a repeat, until the step ends without it.
#[tokio::test]
async fn a_context_that_was_not_logged_is_told_again_after_the_step() {
    let (rig, session) = nested().await;
    let step = |turn| EventBody::StepStart { turn, step: 1 };
    let ended = |turn| EventBody::StepEnd {
        turn,
        step: 1,
        outcome: dsh_session::Ending::Completed,
    };
    session.append(EventBody::TurnStart { turn: 1 }).unwrap();
    session.append(step(1)).unwrap();
    assert_eq!(rig.touch(&session, "p/a/f").await.len(), 1);
    assert!(rig.touch(&session, "p/a/f").await.is_empty());
    let reads = rig.disk.counts().1;
    session.append(ended(1)).unwrap();
    assert_eq!(headings(&rig.touch(&session, "p/a/f").await[0]), [NEW]);
    assert_eq!(
        rig.disk.counts().1,
        reads + 1,
        "the shortcut is gone with it"
    );
}

/// INS-16, INS-21: nested touches ride on the outer result, once, if it passes.
#[tokio::test]
async fn nested_touches_are_deferred_to_the_outer_result() {
    let (rig, session) = nested().await;
    let paths = json!({"paths": [rig.path("p/a/f"), rig.path("p/a/f")]});
    let ran = rig.call(&session, "run_code", paths.clone()).await;
    let told = contexts(&ran);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(headings(&told[0]), [NEW]);
    assert!(
        rig.touch(&session, "p/a/f").await.is_empty(),
        "it is on its way"
    );

    let (rig, session) = nested().await;
    let paths = json!({"paths": [rig.path("p/a/f")]});
    let block = Arc::new(Block(AtomicBool::new(true)));
    let stage = Arc::new(Outer(Arc::clone(&block)));
    let _handle = rig.registry().after_execute(0, stage);
    let held = rig.call(&session, "run_code", paths.clone()).await;
    assert!(held.is_error && contexts(&held).is_empty());
    block.0.store(false, Ordering::SeqCst);
    let ran = rig.call(&session, "run_code", paths).await;
    assert_eq!(
        headings(&contexts(&ran)[0]),
        [NEW],
        "the first one did not count"
    );
}

/// INS-16, RUN-15: in a loop, the context follows the outer result.
#[tokio::test]
async fn a_nested_context_is_logged_behind_the_outer_result() {
    let (rig, session) = nested().await;
    let run = ScriptedReply::calls([("run_code", json!({"paths": [rig.path("p/a/f")]}))]);
    let agent = rig.open(&session, vec![run, ScriptedReply::text("ok")]);
    agent.prompt("hello").await;
    let heard = agent.heard();
    assert_eq!(heard[..2], ["hello", "ran"]);
    assert_eq!(headings(&heard[2]), [NEW]);
    assert_eq!(sources(&session).len(), 1);
}

/// INS-14: compaction re-arms what it hides, although no file has changed.
#[tokio::test]
async fn compaction_re_arms_what_it_hides() {
    let (rig, session) = nested().await;
    rig.write("p/AGENTS.md", "one");
    let (read, outside) = (rig.read("p/a/f"), rig.read("f"));
    rig.write("f", "");
    let ok = || ScriptedReply::text("ok");
    let agent = rig.open(&session, vec![read, ok(), outside, ok()]);
    agent.prompt("hello").await;
    let to = session.read(dsh_session::Log::last_seq);
    let summary = vec![ContentBlock::text("so far")];
    let hidden = EventBody::Compaction {
        from: 1,
        to,
        summary,
    };
    session.append(hidden).unwrap();
    agent.prompt("go on").await;
    let heard = agent.heard();
    assert_eq!(heard[..3], ["so far", "go on", "read"]);
    // The chain comes back at any touch, what lies deeper when it is reached again.
    assert_eq!(
        headings(&heard[3]),
        ["Additional instructions from: AGENTS.md"]
    );
    assert_eq!(headings(&rig.touch(&session, "p/a/f").await[0]), [NEW]);
}

/// INS-20: cancelling the call ends the look, and nothing is recorded.
#[tokio::test]
async fn a_cancelled_touch_records_nothing() {
    let (rig, session) = nested().await;
    let waiting = Arc::new(tokio::sync::Notify::new());
    *rig.disk.hangs.lock().unwrap() = Some(Arc::clone(&waiting));
    let cancel = Cancel::new();
    let call = ToolCall {
        id: "call".to_owned(),
        name: "read".to_owned(),
        arguments: json!({"path": rig.path("p/a/f")}),
    };
    let registry = rig.registry();
    let (result, ()) = tokio::join!(
        registry.call(call, session.clone(), cancel.clone()),
        async {
            waiting.notified().await;
            cancel.cancel(CancelReason::Caller);
        }
    );
    assert!(contexts(&result).is_empty());
    *rig.disk.hangs.lock().unwrap() = None;
    assert_eq!(headings(&rig.touch(&session, "p/a/f").await[0]), [NEW]);
}

/// INS-6: with 200 loaded scopes an unchanged touch is one batch of probes and no read; with a new
/// version of the same content, one read and nothing to tell.
#[tokio::test]
async fn an_unchanged_touch_reads_no_content() {
    let rig = Rig::with(WorkspaceContextConfig::new(10_000_000.0)).await;
    let session = rig.session("p");
    let mut last = String::new();
    for index in 0..200 {
        last = format!("p/d{index}/f");
        rig.write(&last, "");
        rig.write(&format!("p/d{index}/AGENTS.md"), format!("scope {index}"));
    }
    for index in 0..200 {
        let told = rig.touch(&session, &format!("p/d{index}/f")).await;
        assert_eq!(told.len(), 1);
    }
    let (probes, reads) = rig.disk.counts();
    assert!(rig.touch(&session, &last).await.is_empty());
    assert_eq!(rig.disk.counts(), (probes + 1, reads));
    rig.write("p/d7/AGENTS.md", "scope 7");
    assert!(rig.touch(&session, &last).await.is_empty());
    assert!(rig.touch(&session, &last).await.is_empty());
    assert_eq!(rig.disk.counts(), (probes + 3, reads + 1));
}
