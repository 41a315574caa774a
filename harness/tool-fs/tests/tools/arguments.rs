use serde_json::{Value, json};

use crate::support::Fixture;

/// RUN-4: wrong types, missing and unknown arguments are refused by name; nothing is touched.
#[tokio::test]
async fn bad_arguments_are_refused_by_name() {
    let fixture = Fixture::new().await;
    fixture.put("a", "x");
    for (tool, arguments, words) in [
        ("read", json!(null), "must be an object"),
        ("read", json!({}), "\"file_path\" is missing"),
        (
            "read",
            json!({"file_path": 7}),
            "\"file_path\" must be a string, not 7",
        ),
        (
            "read",
            json!({"file_path": ""}),
            "\"file_path\" must have at least 1",
        ),
        (
            "read",
            json!({"file_path": "a", "offset": 0}),
            "\"offset\" must be at least 1, not 0",
        ),
        (
            "read",
            json!({"file_path": "a", "offset": -1}),
            "\"offset\" must be at least 1",
        ),
        (
            "read",
            json!({"file_path": "a", "offset": 1.5}),
            "\"offset\" must be an integer",
        ),
        (
            "read",
            json!({"file_path": "a", "offset": "2"}),
            "\"offset\" must be an integer",
        ),
        (
            "read",
            json!({"file_path": "a", "limit": null}),
            "\"limit\" must be an integer",
        ),
        (
            "read",
            json!({"file_path": "a", "limit": 2001}),
            "\"limit\" must be at most 2000",
        ),
        (
            "read",
            json!({"filepath": "a"}),
            "did you mean \"file_path\"?",
        ),
        ("write", json!({"file_path": "a"}), "\"content\" is missing"),
        (
            "write",
            json!({"file_path": "a", "content": {}}),
            "\"content\" must be a string",
        ),
        (
            "edit",
            json!({"file_path": "a", "old_string": "x"}),
            "\"new_string\" is missing",
        ),
        (
            "edit",
            json!({"file_path": "a", "old_string": "", "new_string": "y"}),
            "\"old_string\" is empty; give the text to replace, or use write",
        ),
        (
            "edit",
            json!({"file_path": "a", "old_string": "x", "new_string": "x"}),
            "\"old_string\" and \"new_string\" are the same",
        ),
        (
            "edit",
            json!({"file_path": "a", "old_string": "x", "new_string": "y", "replace_all": "yes"}),
            "\"replace_all\" must be a boolean",
        ),
    ] {
        let (code, text) = fixture.refusal(tool, arguments).await;
        assert_eq!(code, "INVALID_ARGS", "{text}");
        assert!(text.contains(words), "{text}");
    }
    assert_eq!(fixture.bytes("a"), b"x");
    assert!(fixture.observed().is_empty());
}

/// RUN-8: a line that no file has is refused as what it is, and not as one beyond the end.
#[tokio::test]
async fn a_line_that_no_file_has_is_refused_by_name() {
    let fixture = Fixture::new().await;
    fixture.put("a", "x");
    for (tool, arguments, words) in [
        (
            "read",
            json!({"file_path": "a", "offset": 1e300}),
            "\"offset\" must be at most 9007199254740991, not 1e+300; the last line",
        ),
        (
            "read",
            json!({"file_path": "a", "offset": u64::MAX}),
            "\"offset\" must be at most 9007199254740991, not 18446744073709551615",
        ),
        (
            "read",
            json!({"file_path": "a", "limit": 1e300}),
            "\"limit\" must be at most 2000, not 1e+300",
        ),
        (
            "read",
            json!({"file_path": "a", "offset": -1e300}),
            "\"offset\" must be at least 1, not -1e+300",
        ),
    ] {
        let (code, text) = fixture.refusal(tool, arguments).await;
        assert_eq!(code, "INVALID_ARGS", "{text}");
        assert!(text.contains(words), "{text}");
    }
    assert!(fixture.observed().is_empty());
}

/// RUN-4: deep nesting and ten megabytes of arguments are an answer like any other, in few words.
#[tokio::test]
async fn monstrous_arguments_are_answered_in_few_words() {
    let fixture = Fixture::new().await;
    let mut deep = json!("a");
    for _ in 0..100 {
        deep = json!([deep]);
    }
    let long = "x".repeat(10 * 1024 * 1024);
    for arguments in [
        json!({"file_path": deep}),
        json!({"file_path": "a", "extra": long}),
        json!({"file_path": long}),
        json!({"file_path": format!("a/{long}")}),
        Value::from(vec![0; 1_000_000]),
    ] {
        let (_, text) = fixture.refusal("read", arguments).await;
        assert!(text.len() < 2000, "{} bytes", text.len());
    }
    let arguments = json!({"file_path": "a", "content": long});
    let text = fixture.text("write", arguments).await;
    assert_eq!(text, "Created /w/a with 10485760 bytes.");
    let arguments = json!({"file_path": "a", "old_string": format!("{long}y"), "new_string": long});
    let (code, text) = fixture.refusal("edit", arguments).await;
    assert_eq!(code, "FS_OLD_STRING_ABSENT");
    assert!(text.len() < 2000, "{} bytes", text.len());
}

/// RUN-8, RUN-9: names that look odd are names like any other.
#[tokio::test]
async fn odd_names_are_names() {
    let fixture = Fixture::new().await;
    let long = "n".repeat(255);
    for name in [
        " ",
        "a b",
        "-rf",
        "é中𝕏",
        "new\nline",
        "<path>",
        "*",
        "$HOME",
        "\\",
        &long,
    ] {
        let arguments = json!({"file_path": name, "content": "x"});
        fixture.text("write", arguments).await;
        let edit = json!({"file_path": name, "old_string": "x", "new_string": "y"});
        fixture.text("edit", edit).await;
        let shown = fixture.text("read", json!({"file_path": name})).await;
        assert!(shown.contains("\n1: y\n"), "{shown}");
    }
    let arguments = json!({"file_path": "n".repeat(256), "content": "x"});
    let (code, text) = fixture.refusal("write", arguments).await;
    assert_eq!(code, "FS_FAILED");
    assert!(text.contains("name too long"), "{text}");
}
