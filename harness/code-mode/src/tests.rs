//! Scripts that do what they should, and scripts that do not.

mod fixture;
mod hostile;
mod plugin;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use dsh_kernel::{Cancel, CancelReason};
use dsh_session::{ContextMessage, MessageSource};
use dsh_tools::{
    ContentBlock, Executed, Invocation, PostExecute, ToolError, Verdict, code as tools,
};
use serde_json::json;

use self::fixture::Fixture;
use crate::code;

/// RUN-15: a script calls tools and gets their canonical values, not what a model would read.
#[tokio::test]
async fn a_script_calls_tools_and_returns_a_value() {
    let fixture = Fixture::new();
    let value = fixture
        .value(
            "const a = await tools.echo({ n: 1 });\n\
             const b = await tools.web_search({ n: a.n + 1 });\n\
             const c = await tools['web-search']({ n: [b.n, null, 'é'] });\n\
             return { sum: a.n + b.n, c, none: await tools.echo() };",
        )
        .await;
    assert_eq!(
        value,
        json!({ "sum": 3, "c": { "n": [2, null, "é"] }, "none": {} })
    );
}

/// RUN-15: nested calls pass the same pipeline, each with a token of its own under the outer call's,
/// and each with its own result event, the outer one's last.
#[tokio::test]
async fn nested_calls_are_calls_under_the_outer_token() {
    let fixture = Fixture::new();
    let result = fixture
        .run("await tools.echo({}); try { await tools.fail() } catch {} return tools.nope === 1")
        .await;
    assert_eq!(result.code.as_deref(), Some(code::SCRIPT_THREW));
    let told = fixture.results.lock().unwrap();
    let ids: Vec<&str> = told.iter().map(|told| told.call.id.as_str()).collect();
    assert_eq!(ids, ["outer/1", "outer/2", "outer"]);
    let outer = told[2].token;
    assert_eq!(told[2].outer, None);
    assert_eq!((told[0].outer, told[1].outer), (Some(outer), Some(outer)));
    assert_ne!(told[0].token, told[1].token);
    assert_eq!(told[1].result.code.as_deref(), Some("E_TEST"));
}

struct AddsContext {
    /// Holds the outer result back.
    blocks: bool,
}

#[async_trait]
impl PostExecute for AddsContext {
    async fn review(
        &self,
        invocation: &Invocation,
        _executed: Executed<'_>,
    ) -> Result<Verdict, ToolError> {
        if invocation.outer.is_some() {
            let id = &invocation.call.id;
            return Ok(Verdict::AddContext(ContextMessage {
                source: MessageSource::new("test", serde_json::Map::new()),
                content: vec![ContentBlock::text(format!("about {id}"))],
            }));
        }
        if self.blocks {
            return Ok(Verdict::Block("not today".to_owned()));
        }
        Ok(Verdict::Accept)
    }
}

/// RUN-15, INS-16: what stages add to nested calls rides on the outer result, in the order of the
/// calls; also where the script fails, or did not await the call.
#[tokio::test]
async fn contexts_of_nested_calls_ride_on_the_outer_result() {
    let fixture = Fixture::new();
    let stage = fixture
        .registry
        .after_execute(0, Arc::new(AddsContext { blocks: false }));
    for script in [
        "await tools.echo({}); await tools.alone({});",
        "tools.echo({}); tools.alone({});",
    ] {
        let result = fixture.run(script).await;
        let texts: Vec<String> = result
            .contexts
            .iter()
            .map(|context| context.content[0].as_text().to_owned())
            .collect();
        assert_eq!(texts, ["about outer/1", "about outer/2"], "{script}");
    }
    drop(stage);
}

/// INS-16, INS-21: they are dropped with a result that a stage holds back.
#[tokio::test]
async fn contexts_of_nested_calls_are_dropped_with_a_blocked_result() {
    let fixture = Fixture::new();
    let _stage = fixture
        .registry
        .after_execute(0, Arc::new(AddsContext { blocks: true }));
    let result = fixture.run("await tools.echo({}); return 1").await;
    assert_eq!(result.code.as_deref(), Some(tools::TOOL_BLOCKED));
    assert_eq!(result.contexts, []);
}

/// RUN-15: a script cannot run scripts.
#[tokio::test]
async fn a_script_has_no_way_to_itself() {
    let fixture = Fixture::new();
    let text = fixture
        .failure(
            "await tools.run_code({ code: 'return 1' })",
            code::SCRIPT_THREW,
        )
        .await;
    assert!(
        text.contains("there is no tools.run_code; there are: "),
        "{text}"
    );
    assert!(text.contains("web_search"), "{text}");
}

/// A failed call throws an Error with code and message, which a script may catch or not.
#[tokio::test]
async fn a_failed_call_throws() {
    let fixture = Fixture::new();
    let value = fixture
        .value(
            "try { await tools.fail({}) } catch (error) {\n\
               return [error instanceof Error, error.code, error.message] }",
        )
        .await;
    assert_eq!(value, json!([true, "E_TEST", "it went wrong"]));
    let text = fixture
        .failure(
            "console.log('before');\nawait tools.fail({})",
            code::SCRIPT_THREW,
        )
        .await;
    assert!(text.contains("Error [E_TEST]: it went wrong"), "{text}");
    assert!(text.contains("Console:\nbefore"), "{text}");
    // Arguments are the pipeline's to check.
    let value = fixture
        .value("try { await tools.echo([1]) } catch (error) { return error.code }")
        .await;
    assert_eq!(value, json!(tools::INVALID_ARGS));
}

/// RUN-13: calls that may overlap do; `meet` ends only when two are inside.
#[tokio::test]
async fn safe_calls_overlap() {
    let fixture = Fixture::new();
    let value = fixture
        .value("return (await Promise.all([tools.meet({ n: 1 }), tools.meet({ n: 2 })])).map(r => r.n)")
        .await;
    assert_eq!(value, json!([1, 2]));
}

/// RUN-13: calls that may not are alone, and calls behind them wait.
#[tokio::test]
async fn exclusive_calls_are_alone() {
    let fixture = Fixture::new();
    let value = fixture
        .value(
            "const order = [];\n\
             const note = (n) => () => order.push(n);\n\
             await Promise.all([tools.alone({}).then(note(1)), tools.alone({}).then(note(2)),\n\
               tools.echo({}).then(note(3)), tools.alone({}).then(note(4))]);\n\
             return order",
        )
        .await;
    assert_eq!(value, json!([1, 2, 3, 4]));
    assert_eq!(fixture.world.most_inside.load(Ordering::SeqCst), 1);
}

/// A call that is not awaited is made all the same, and the model is told.
#[tokio::test]
async fn calls_that_are_not_awaited_are_waited_for_and_told() {
    let fixture = Fixture::new();
    let result = fixture
        .run("tools.echo({}); tools.fail({}); return 1")
        .await;
    let value = result.value.clone().expect("it succeeds");
    assert_eq!(value["notAwaited"], 2);
    assert!(
        result.text().contains("2 of 2 calls were not awaited"),
        "{}",
        result.text()
    );
    assert!(
        result.text().contains("[E_TEST] it went wrong"),
        "{}",
        result.text()
    );
    assert_eq!(fixture.results.lock().unwrap().len(), 3);
    // What would go on behind the script's back does not.
    let result = fixture
        .run("(async () => { for (;;) await tools.echo({}) })(); return 1")
        .await;
    assert_eq!(result.value.expect("it succeeds")["calls"], 1);
}

#[tokio::test]
async fn values_of_every_kind_are_returned() {
    let fixture = Fixture::new();
    for (script, expected) in [
        ("return null", json!(null)),
        ("return 'text'", json!("text")),
        (
            "return [1.5, true, { a: undefined, b: NaN }]",
            json!([1.5, true, { "b": null }]),
        ),
        ("return new Date(0)", json!("1970-01-01T00:00:00.000Z")),
        ("return { toJSON() { return 7 } }", json!(7)),
        ("return '\\ud83d' + '\\0'", json!("\u{fffd}\u{0}")),
        (
            "return await tools.echo({ s: '\\ude00\\ud83d\\ude00' })",
            json!({ "s": "\u{fffd}😀" }),
        ),
        ("return /* a comment at the end */ 1 //", json!(1)),
        ("return Promise.resolve(2)", json!(2)),
    ] {
        assert_eq!(fixture.value(script).await, expected, "{script}");
    }
    for script in [
        "",
        "return",
        "1",
        "return () => 1",
        "return Symbol()",
        "// only a comment",
    ] {
        let result = if script.is_empty() {
            fixture.run(" ").await
        } else {
            fixture.run(script).await
        };
        assert!(
            result.text().contains("returned nothing"),
            "{script}: {}",
            result.text()
        );
        assert!(
            result.value.expect("it succeeds").get("result").is_none(),
            "{script}"
        );
    }
}

#[tokio::test]
async fn what_is_printed_is_shown() {
    let fixture = Fixture::with(|config| config.max_console_bytes = 100);
    let result = fixture
        .run(
            "console.log('a', 1, { b: [2] }, null, undefined, () => 1, Symbol('s'), 3n);\n\
             console.error(new TypeError('t').message, Object.create(null)); return 5",
        )
        .await;
    let text = result.text();
    assert!(
        text.starts_with(
            "Result:\n5\n\nConsole:\na 1 {\"b\":[2]} null undefined () => 1 Symbol(s) 3\nt {}"
        ),
        "{text}"
    );
    let result = fixture
        .run("for (let i = 0; i < 10000; i++) console.log('0123456789')")
        .await;
    let value = result.value.clone().expect("it succeeds");
    assert_eq!(value["console"].as_str().map(str::len), Some(100));
    assert_eq!(value["consoleDroppedBytes"], 110_000 - 100);
    assert!(
        result.text().contains("(console cut: 109900 more bytes"),
        "{}",
        result.text()
    );
}

#[tokio::test]
async fn a_result_that_is_too_large_is_cut_and_said() {
    let fixture = Fixture::with(|config| config.max_result_bytes = 1000);
    let result = fixture.run("return 'é'.repeat(5 * 1024 * 1024)").await;
    assert!(!result.is_error, "{}", result.text());
    let value = result.value.clone().expect("it succeeds");
    assert!(value.get("result").is_none());
    assert_eq!(value["resultBytes"], 10 * 1024 * 1024 + 2);
    assert_eq!(value["resultBegins"].as_str().map(str::len), Some(999));
    assert!(
        result
            .text()
            .contains("(result cut: these are the first 999 of 10485762 bytes"),
        "{}",
        result.text()
    );
}

/// RUN-14: cancelling ends the script and its calls, and waits for both.
#[tokio::test]
async fn cancelling_ends_a_script_wherever_it_is() {
    let fixture = Fixture::new();
    for script in [
        "await tools.hold({})",
        "tools.hold({}); for (;;) {}",
        "tools.hold({}); return 1",
        "tools.hold({}); for (;;) await null",
        "try { await tools.hold({}) } catch {} await tools.hold({})",
    ] {
        let before = fixture.world.let_go.load(Ordering::SeqCst);
        let cancel = Cancel::new();
        let (result, ()) = tokio::join!(fixture.run_under(script, &cancel), async {
            fixture.world.holding.notified().await;
            cancel.cancel(CancelReason::Caller);
        });
        assert_eq!(
            result.code.as_deref(),
            Some(tools::TOOL_CANCELLED),
            "{script}"
        );
        assert!(
            result.text().contains("cancelled by the caller"),
            "{}",
            result.text()
        );
        assert!(
            fixture.world.let_go.load(Ordering::SeqCst) > before,
            "{script}"
        );
        fixture.custody.settled().await;
        assert_eq!(fixture.custody.count(), 0);
    }
}

/// A call that is dropped leaves no script behind.
#[tokio::test]
async fn a_dropped_call_ends_its_script() {
    let fixture = Fixture::new();
    for script in ["await tools.hold({})", "tools.hold({}); for (;;) {}"] {
        let cancel = Cancel::new();
        tokio::select! {
            result = fixture.run_under(script, &cancel) => panic!("{result:?}"),
            () = fixture.world.holding.notified() => {}
        }
        assert_eq!(fixture.custody.count(), 1);
        fixture.custody.settled().await;
        assert_eq!(fixture.custody.count(), 0);
    }
}

/// A script that fails ends the calls it has under way, and waits for that.
#[tokio::test]
async fn a_script_that_fails_ends_its_calls() {
    let fixture = Fixture::new();
    let text = fixture
        .failure(
            "await Promise.all([tools.hold({}), tools.fail({})])",
            code::SCRIPT_THREW,
        )
        .await;
    assert!(text.contains("E_TEST"), "{text}");
    assert_eq!(fixture.world.let_go.load(Ordering::SeqCst), 1);
    assert_eq!(fixture.results.lock().unwrap().len(), 3);
}
