//! What becomes of results, shape by shape, through the wire (NAV, HOV).

use dsh_fake_lsp::{FakeServer, Rule, reply, reply_raw};
use dsh_lsp::Operation::{self, FindReferences, GoToDefinition, GoToImplementation, Hover};
use dsh_lsp::{Location, LspError, QueryResult};
use serde_json::{Value, json};

use crate::support::{bench, failure, fake, locations, lsp_range, range};

/// A server that answers a question about line n (from 0) with the nth of these results.
fn answering(method: &str, results: &[Value]) -> FakeServer {
    results
        .iter()
        .enumerate()
        .fold(fake(), |server, (line, result)| {
            let when = json!({"position": {"line": line}});
            let rule = Rule::on(&format!("textDocument/{method}")).when(when);
            server.rule(rule.run([reply(result.clone())]))
        })
}

/// Asks for each of these results, one after the other, of one process.
fn asked(
    operation: Operation,
    method: &str,
    results: &[Value],
) -> Vec<Result<QueryResult, LspError>> {
    let outcomes = std::cell::RefCell::new(Vec::new());
    let over = bench(answering(method, results)).run(async |bench| {
        for line in 1..=results.len() {
            let outcome = bench.query(operation, &format!("a.x:{line}:1")).await;
            outcomes.borrow_mut().push(outcome);
        }
    });
    over.processes(1);
    outcomes.into_inner()
}

fn location(uri: &str, line: u64) -> Value {
    json!({"uri": uri, "range": lsp_range((line, 1), (line, 4))})
}

fn link(uri: &str, line: u64) -> Value {
    json!({
        "originSelectionRange": lsp_range((9, 9), (9, 10)),
        "targetUri": uri,
        "targetRange": lsp_range((line, 0), (line + 3, 0)),
        "targetSelectionRange": lsp_range((line, 1), (line, 4)),
    })
}

fn place(uri: &str, line: u64) -> Location {
    Location {
        uri: uri.to_owned(),
        range: range((line, 1), (line, 4)),
    }
}

const NAVIGATIONS: [(Operation, &str); 3] = [
    (GoToDefinition, "definition"),
    (FindReferences, "references"),
    (GoToImplementation, "implementation"),
];

/// NAV-1, NAV-2: every shape, for every navigation, in the server's order.
#[test]
fn every_shape_of_navigation_is_understood() {
    let (a, b) = ("file:///a", "file:///b");
    let bare_link = json!({"targetUri": a, "targetSelectionRange": lsp_range((7, 1), (7, 4))});
    let cases = [
        (json!(null), vec![]),
        (json!([]), vec![]),
        (location(a, 1), vec![place(a, 1)]),
        (link(a, 1), vec![place(a, 1)]),
        (bare_link.clone(), vec![place(a, 7)]),
        (
            json!([location(b, 2), location(a, 1)]),
            vec![place(b, 2), place(a, 1)],
        ),
        (
            json!([link(b, 2), link(a, 1)]),
            vec![place(b, 2), place(a, 1)],
        ),
        (
            json!([link(b, 3), location(a, 1), bare_link, location(a, 1)]),
            vec![place(b, 3), place(a, 1), place(a, 7), place(a, 1)],
        ),
    ];
    let results: Vec<Value> = cases.iter().map(|(result, _)| result.clone()).collect();
    for (operation, method) in NAVIGATIONS {
        let outcomes = asked(operation, method, &results);
        for ((result, expected), outcome) in cases.iter().zip(outcomes) {
            assert_eq!(locations(outcome), *expected, "{operation}: {result}");
        }
    }
}

/// NAV-4: URIs stay as they came, whatever they are.
#[test]
fn uris_are_kept_as_received() {
    let uris = [
        "file:///C%3A/x%20y",
        "file:///c:/X Y#z?q",
        "untitled:Untitled-1",
        "jdt://contents/a?=b",
        "not a uri",
        "",
        "FILE:///UP",
        "file://host/share/x",
        "\u{0}é😀%zz",
    ];
    let results: Vec<Value> = uris
        .iter()
        .flat_map(|uri| [location(uri, 1), link(uri, 1)])
        .collect();
    let outcomes = asked(GoToDefinition, "definition", &results);
    for (index, outcome) in outcomes.into_iter().enumerate() {
        assert_eq!(locations(outcome), [place(uris[index / 2], 1)]);
    }
}

/// NAV-5: whole numbers in any spelling that JSON has for them.
#[test]
fn whole_numbers_may_be_spelled_as_floats() {
    for (spelled, value) in [
        ("3.0", 3),
        ("3e0", 3),
        ("30e-1", 3),
        ("0.0", 0),
        ("-0.0", 0),
        ("2e3", 2_000),
    ] {
        let range = format!(
            r#"{{"start":{{"line":{spelled},"character":0}},"end":{{"line":{spelled},"character":{spelled}}}}}"#
        );
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":${{id}},"result":{{"uri":"file:///a","range":{range}}}}}"#
        );
        let over =
            bench(fake().on("textDocument/definition", [reply_raw(&body)])).run(async |bench| {
                let found = locations(bench.query(GoToDefinition, "a.x:1:1").await);
                assert_eq!(
                    found[0].range,
                    crate::support::range((value, 0), (value, value))
                );
            });
        over.processes(1);
    }
}

/// What no line, character, or number is.
fn no_numbers() -> Vec<Value> {
    vec![
        json!(null),
        json!("1"),
        json!(-1),
        json!(1.5),
        json!(true),
        json!([]),
        json!({}),
    ]
}

/// Variants of a valid value in which one leaf of its ranges is no number, or is gone.
fn with_bad_numbers(valid: &Value, range: &str) -> Vec<Value> {
    let mut variants = Vec::new();
    for end in ["start", "end"] {
        for number in ["line", "character"] {
            for bad in no_numbers() {
                let mut variant = valid.clone();
                variant[range][end][number] = bad;
                variants.push(variant);
            }
            let mut variant = valid.clone();
            variant[range][end].as_object_mut().unwrap().remove(number);
            variants.push(variant);
        }
    }
    variants
}

/// Variants of a valid value in which one member is of another type, or is gone.
fn with_bad_member(valid: &Value, member: &str, bad: &[Value]) -> Vec<Value> {
    let mut variants: Vec<Value> = bad
        .iter()
        .map(|bad| {
            let mut variant = valid.clone();
            variant[member] = bad.clone();
            variant
        })
        .collect();
    let mut variant = valid.clone();
    variant.as_object_mut().unwrap().remove(member);
    variants.push(variant);
    variants
}

/// Asks for each of these results; each is malformed, and the session goes on to answer rightly.
#[track_caller]
fn all_malformed(operation: Operation, method: &str, results: &[Value]) {
    let right = if operation == Hover {
        json!({"contents": "x"})
    } else {
        location("file:///a", 1)
    };
    let all: Vec<Value> = results
        .iter()
        .flat_map(|wrong| [wrong.clone(), right.clone()])
        .collect();
    for (result, outcome) in all.iter().zip(asked(operation, method, &all)) {
        match outcome {
            Ok(_) if *result == right => {}
            Ok(outcome) => panic!("{result} was taken for {outcome:?}"),
            Err(error) => {
                assert_ne!(*result, right);
                let message = failure(Err(error), "LSP_MALFORMED_RESPONSE");
                assert!(message.contains(operation.as_str()), "{message}");
            }
        }
    }
}

/// NAV-3: one number that is none spoils the whole.
#[test]
fn a_location_with_a_bad_number_is_malformed() {
    let mut results = with_bad_numbers(&location("file:///a", 1), "range");
    results.extend(with_bad_numbers(
        &link("file:///a", 1),
        "targetSelectionRange",
    ));
    all_malformed(GoToDefinition, "definition", &results);
}

/// NAV-3: one member that is missing or of another type spoils the whole.
#[test]
fn a_location_with_a_bad_member_is_malformed() {
    let no_text = [
        json!(null),
        json!(7),
        json!(["file:///a"]),
        json!({}),
        json!(false),
    ];
    let no_range = [
        json!(null),
        json!(7),
        json!("1:1"),
        json!([0, 1, 0, 2]),
        json!({}),
    ];
    let (location, link) = (location("file:///a", 1), link("file:///a", 1));
    let mut results = with_bad_member(&location, "uri", &no_text);
    results.extend(with_bad_member(&location, "range", &no_range));
    results.extend(with_bad_member(&link, "targetUri", &no_text));
    results.extend(with_bad_member(&link, "targetSelectionRange", &no_range));
    all_malformed(FindReferences, "references", &results);
}

/// NAV-3: results of another shape, and arrays with one entry of another shape, whichever it is.
#[test]
fn a_navigation_of_another_shape_is_malformed() {
    let mut results = vec![
        json!(false),
        json!(0),
        json!("file:///a"),
        json!({}),
        json!({"locations": []}),
    ];
    let (good, bad) = (location("file:///a", 1), link("file:///b", 2));
    for entry in [
        json!(null),
        json!(7),
        json!("file:///a"),
        json!([good]),
        json!({}),
        json!(true),
    ] {
        results.push(json!([entry]));
        results.push(json!([good, entry]));
        results.push(json!([entry, bad]));
        results.push(json!([good, bad, entry, good]));
    }
    all_malformed(GoToImplementation, "implementation", &results);
}

/// NAV-3, HOV-3: an answer with neither result nor error.
#[test]
fn a_missing_result_is_malformed() {
    let empty = reply_raw(r#"{"jsonrpc":"2.0","id":${id}}"#);
    let over = bench(fake().on("textDocument/*", [empty])).run(async |bench| {
        for operation in Operation::ALL {
            failure(
                bench.query(operation, "a.x:1:1").await,
                "LSP_MALFORMED_RESPONSE",
            );
        }
    });
    over.processes(1);
}

/// What a hover came out as: its contents and range.
type Shown = Option<(String, Option<dsh_lsp::Range>)>;

#[track_caller]
fn shown(outcome: Result<QueryResult, LspError>) -> Shown {
    match outcome {
        Ok(QueryResult::Hover { hover }) => hover.map(|hover| (hover.contents, hover.range)),
        other => panic!("expected a hover, got {other:?}"),
    }
}

/// HOV-1, HOV-2: every shape of contents.
#[test]
fn every_shape_of_hover_is_understood() {
    let cases: [(Value, Option<&str>); 20] = [
        (json!(null), None),
        (json!({"contents": ""}), None),
        (json!({"contents": []}), None),
        (json!({"contents": {"kind": "markdown", "value": ""}}), None),
        (json!({"contents": {"language": "x", "value": ""}}), None),
        (
            json!({"contents": ["", {"language": "x", "value": ""}]}),
            None,
        ),
        (
            json!({"contents": "plain *text*\n"}),
            Some("plain *text*\n"),
        ),
        (json!({"contents": " "}), Some(" ")),
        (
            json!({"contents": {"kind": "markdown", "value": "# a\r\n"}}),
            Some("# a\r\n"),
        ),
        (
            json!({"contents": {"kind": "plaintext", "value": "<b> *"}}),
            Some("<b> *"),
        ),
        (
            json!({"contents": {"language": "rust", "value": "fn f()"}}),
            Some("```rust\nfn f()\n```"),
        ),
        (json!({"contents": ["one"]}), Some("one")),
        (
            json!({"contents": ["one", "two", "three"]}),
            Some("one\n\ntwo\n\nthree"),
        ),
        (
            json!({"contents": [{"language": "x", "value": "a = 1"}, "words"]}),
            Some("```x\na = 1\n```\n\nwords"),
        ),
        (
            json!({"contents": ["words", {"language": "x", "value": "a\nb"}, "more"]}),
            Some("words\n\n```x\na\nb\n```\n\nmore"),
        ),
        (json!({"contents": ["one", "", "two"]}), Some("one\n\ntwo")),
        (
            json!({"contents": {"language": "", "value": "a"}}),
            Some("```\na\n```"),
        ),
        (json!({"contents": "x", "range": null}), Some("x")),
        (
            json!({"contents": "x", "more": [1, {"deep": true}]}),
            Some("x"),
        ),
        (json!({"contents": "😀 é \u{0}"}), Some("😀 é \u{0}")),
    ];
    let results: Vec<Value> = cases.iter().map(|(result, _)| result.clone()).collect();
    for ((result, expected), outcome) in cases.iter().zip(asked(Hover, "hover", &results)) {
        let expected = expected.map(|text| (text.to_owned(), None));
        assert_eq!(shown(outcome), expected, "{result}");
    }
}

/// HOV-5: code that has fences of its own ends where it should.
#[test]
fn code_with_fences_is_fenced_safely() {
    let codes = [
        "``` inside",
        "a\n```x\nb\n```",
        "`````",
        "one ` tick",
        "~~~",
    ];
    let results: Vec<Value> = codes
        .iter()
        .map(|code| json!({"contents": {"language": "md", "value": code}}))
        .collect();
    for (code, outcome) in codes.iter().zip(asked(Hover, "hover", &results)) {
        let (text, _) = shown(outcome).unwrap();
        let fence: String = text.chars().take_while(|&c| c == '`').collect();
        assert!(fence.len() >= 3 && !code.contains(&fence), "{text}");
        assert_eq!(text, format!("{fence}md\n{code}\n{fence}"));
    }
}

/// HOV-4: a valid range is kept.
#[test]
fn the_range_of_a_hover_is_kept() {
    let result = json!({"contents": "x", "range": lsp_range((1, 2), (3, 4))});
    let outcomes = asked(Hover, "hover", &[result]);
    let [outcome] = <[_; 1]>::try_from(outcomes).unwrap();
    assert_eq!(
        shown(outcome),
        Some(("x".to_owned(), Some(range((1, 2), (3, 4)))))
    );
}

/// HOV-4: null counts as absent; everything else that is no range is malformed.
#[test]
fn a_hover_with_a_bad_range_is_malformed() {
    let valid = json!({"contents": "x", "range": lsp_range((1, 2), (3, 4))});
    let mut results = with_bad_numbers(&valid, "range");
    let no_ranges = [json!(7), json!("1:1"), json!([]), json!({}), json!(false)];
    results.extend(no_ranges.map(|range| json!({"contents": "x", "range": range})));
    all_malformed(Hover, "hover", &results);
}

/// HOV-3: contents of another shape, whole or in part.
#[test]
fn a_hover_of_another_shape_is_malformed() {
    let mut results = vec![
        json!(true),
        json!(7),
        json!("text"),
        json!([]),
        json!(["text"]),
        json!({}),
    ];
    let mut parts = vec![
        json!(null),
        json!(7),
        json!(true),
        json!({}),
        json!({"value": "v"}),
        json!({"language": "x"}),
        json!({"language": "x", "value": 7}),
        json!({"language": 7, "value": "v"}),
        json!({"language": null, "value": "v"}),
    ];
    let contents = [
        json!({"kind": "html", "value": "v"}),
        json!({"kind": "markdown"}),
        json!({"kind": "markdown", "value": null}),
        json!({"kind": "markdown", "value": ["v"]}),
        json!({"kind": 7, "value": "v"}),
        json!({"kind": "Markdown", "value": "v"}),
    ];
    parts.push(json!(["nested"]));
    for part in &parts {
        for whole in [json!([part]), json!(["good", part]), json!([part, "good"])] {
            results.push(json!({"contents": whole}));
        }
    }
    parts.pop();
    results.extend(
        parts
            .iter()
            .chain(&contents)
            .map(|contents| json!({"contents": contents})),
    );
    all_malformed(Hover, "hover", &results);
}
