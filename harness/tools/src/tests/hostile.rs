//! Arguments that are no arguments, and tools that are no tools.

use super::*;

/// Longer than any message of the pipeline's own.
const LONG: usize = 8 * 1024;

fn bench() -> Bench {
    let mut tool = counter();
    tool.parameters = json!({
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "list": {"type": "array", "items": {"type": "object", "required": ["a", "b"]}},
            "any": {},
        },
        "required": ["text"],
        "additionalProperties": false,
    });
    Bench::new([tool])
}

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!([inner]))
}

async fn refused(arguments: Value, words: &[&str]) {
    let bench = bench();
    let result = bench.call("count", arguments).await;
    failed(&result, code::INVALID_ARGS, words);
    assert!(result.text().len() < LONG, "{} bytes", result.text().len());
    assert!(!bench.was_executed());
}

/// RUN-4: arguments of ten megabytes are judged in time in proportion and told in few words.
#[tokio::test]
async fn arguments_of_ten_megabytes_are_told_in_few_words() {
    let big = "x".repeat(10 << 20);
    let bench = bench();
    let result = bench.call("count", json!({"text": big})).await;
    assert_eq!(result.value, Some(json!({"count": 10 << 20})));

    refused(json!(big), &["must be an object", "xxx…"]).await;
    refused(
        json!({"text": [big]}),
        &["\"text\" must be a string, not an array of 1"],
    )
    .await;
    refused(json!({"list": [big]}), &["\"text\" is missing"]).await;
    let inside = format!("[{}1]", "[],".repeat(3 << 20));
    refused(
        json!({"text": "", "list": inside}),
        &["\"list\" must be an array, and this is an array inside a string"],
    )
    .await;
    refused(json!({"text": "", &big: 1}), &["is not known"]).await;
    refused(
        json!({"text": "", "list": [{(&big): 1}]}),
        &["\"list[0]\" lacks \"a\""],
    )
    .await;
}

/// RUN-4: so are very many faults, be they alike or not.
#[tokio::test]
async fn very_many_faults_are_told_in_few_words() {
    let wrong = vec![json!({"c": 1}); 300_000];
    refused(
        json!({"text": "", "list": wrong}),
        &["\"list[0]\" lacks \"a\"", "and more"],
    )
    .await;
    let extra: serde_json::Map<_, _> = (0..300_000)
        .map(|number| (format!("key{number}"), json!(1)))
        .collect();
    refused(
        Value::Object(extra),
        &["\"text\" is missing", "is not known"],
    )
    .await;
    refused(
        json!(vec![json!(null); 1_000_000]),
        &["an array of 1000000"],
    )
    .await;
}

/// RUN-4: what could not be logged is refused, and nothing overflows.
#[tokio::test]
async fn arguments_that_nest_too_deep_are_refused() {
    refused(
        json!({"text": "", "any": nested(64)}),
        &["deeper than 64 levels", "flatter"],
    )
    .await;
    refused(
        json!({"text": "", "any": nested(500)}),
        &["deeper than 64 levels"],
    )
    .await;
    refused(nested(500), &["deeper than 64 levels"]).await;
    let bench = bench();
    let deep = json!({"text": "", "any": nested(63)});
    assert!(!bench.call("count", deep).await.is_error);
}

/// RUN-4: of the wrong type, missing, extra: each is named.
#[tokio::test]
async fn every_sort_of_wrong_arguments_is_named() {
    for (arguments, words) in [
        (json!(null), "must be an object, not null"),
        (json!([]), "not an array of 0"),
        (
            json!("{}"),
            "this is an object inside a string; give it as it is",
        ),
        (json!("{"), "not the string \"{\""),
        (json!({}), "\"text\" is missing"),
        (json!({"text": null}), "\"text\" must be a string, not null"),
        (json!({"text": "", "txet": ""}), "did you mean \"text\"?"),
        (json!({"text": "", "list": {}}), "\"list\" must be an array"),
    ] {
        refused(arguments, &[words]).await;
    }
}

/// RUN-4: a tool that returns the wrong shape has failed, not the program.
#[tokio::test]
async fn values_that_cannot_be_kept_are_refused() {
    async fn returns(value: Value, words: &[&str]) {
        let mut tool = fake("count", move |_, _| {
            let value = value.clone();
            async move { Ok(value) }.boxed()
        });
        tool.output = json!({});
        tool.render = |_, value| {
            let text = value.as_str().unwrap_or_default();
            vec![ContentBlock::text(text)]
        };
        let result = Bench::new([tool]).call("count", json!({"text": ""})).await;
        failed(&result, code::INVALID_TOOL_OUTPUT, words);
        assert!(result.text().len() < LONG);
    }
    returns(nested(65), &["deeper than 64 levels", "fault of the tool"]).await;
    returns(nested(500), &["deeper than 64 levels"]).await;
    returns(
        json!("x".repeat(17 << 20)),
        &["at most 33 MB", "for less at once"],
    )
    .await;
}

/// RUN-6: what a panic says is quoted in part.
#[tokio::test]
async fn a_panic_of_many_words_is_told_in_few() {
    let bench = Bench::new([fake("count", |_, _| panic!("{}", "boom".repeat(1_000_000)))]);
    let result = bench.call("count", json!({"text": ""})).await;
    failed(&result, code::TOOL_PANICKED, &["boomboom"]);
    assert!(result.text().len() < LONG);
}

/// RUN-7, RUN-14: a tool without a budget that does not hear its cancellation is dropped as well.
#[tokio::test]
async fn a_tool_that_never_ends_is_dropped_when_its_caller_gives_up() {
    for timeout_ms in [None, Some(2_000_000_000)] {
        let entered: Arc<Notify> = Arc::default();
        let begun = Arc::clone(&entered);
        let mut deaf = fake("count", move |_, _| {
            begun.notify_one();
            std::future::pending().boxed()
        });
        deaf.timeout_ms = timeout_ms;
        let (_kernel, registry, _handle) = with_policy(10, deaf).await;
        let cancel = Cancel::new();
        let (result, ()) = tokio::join!(call(&registry, cancel.clone()), async {
            entered.notified().await;
            cancel.cancel(CancelReason::Caller);
        });
        failed(&result, code::TOOL_CANCELLED, &["cancelled by the caller"]);
    }
}
