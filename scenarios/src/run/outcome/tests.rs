#![expect(
    clippy::too_many_lines,
    clippy::unnecessary_wraps,
    reason = "a test is a table, and hands over what it has just written down"
)]

use serde_json::json;

use super::*;

fn settled(value: Value) -> Settled {
    Ok(value)
}

fn refused(code: &str, message: &str) -> Settled {
    Err(CallError::Refused {
        code: Some(code.to_owned()),
        message: message.to_owned(),
        data: json!({"code": code, "serverCode": 7}),
    })
}

fn judged(check: Value, outcome: Option<&Settled>, foreign: bool) -> Result<(), Mismatch> {
    let places = Places {
        root: "/r".into(),
        workspace: "/r/ws".into(),
        fake: "/fake".into(),
        seed: 7,
    };
    let (_, marks) = place::unmark("ab⟦m⟧");
    let markers = Markers::from([("a.ts".to_owned(), marks)]);
    let earlier = BTreeMap::from([("q0".to_owned(), settled(json!({"hover": null})))]);
    let context = Context {
        turn: None,
        places: &places,
        markers: &markers,
        foreign,
        settled: &earlier,
    };
    judge(&serde_json::from_value(check).unwrap(), outcome, &context)
}

fn location(line: u64, character: u64) -> Value {
    let start = json!({"line": line, "character": character});
    let end = json!({"line": line, "character": character + 1});
    json!({"uri": "file:///r/ws/a.ts", "range": {"start": start, "end": end}})
}

#[test]
fn results_are_held_against_each_demand() {
    let one = settled(json!({
        "kind": "locations",
        "locations": [location(0, 2)],
        "resolvedWorkspaceUri": "file:///r/ws",
    }));
    let hover = settled(json!({"kind": "hover", "hover": {
        "contents": "Some text",
        "range": location(3, 4)["range"],
    }}));
    let none = settled(json!({"kind": "hover", "hover": null}));
    let prompt = settled(json!({"tools": [], "systemPrompt": "Use lsp"}));
    let tool = settled(json!({"text": "Two: 😀", "isError": false}));
    let bad = settled(json!({"text": "Wrong", "isError": true, "code": "X"}));
    let refused = refused("LSP_STALE", "the file changed");
    for (outcome, right, wrong) in [
        (
            &one,
            json!({"locations": ["a.ts:1:3"]}),
            json!({"locations": []}),
        ),
        (
            &one,
            json!({"locations": ["a.ts@m"]}),
            json!({"locations": ["a.ts:1:4"]}),
        ),
        (
            &one,
            json!({"locations": ["a.ts:1:3-1:4"]}),
            json!({"locations": ["a.ts:1:3-1:5"]}),
        ),
        (
            &one,
            json!({"locations": [location(0, 2)]}),
            json!({"locations": ["b.ts:1:3"]}),
        ),
        (&one, json!({"count": 1}), json!({"count": 2})),
        (&one, json!({"count": 1}), json!({"hover": null})),
        (
            &one,
            json!({"resolved_workspace_uri": "file:///r/ws"}),
            json!({"resolved_workspace_uri": "file:///r"}),
        ),
        (&one, json!({"ok": true}), json!({"ok": false})),
        (&one, json!({"ok": true}), json!({"pending": true})),
        (&one, json!({"ok": true}), json!({"error": {}})),
        (
            &one,
            json!({"value": {"kind": "locations"}}),
            json!({"value": {"kind": "hover"}}),
        ),
        (
            &hover,
            json!({"hover": "Some text"}),
            json!({"hover": "Some"}),
        ),
        (
            &hover,
            json!({"hover": {"range": "4:5-4:6"}}),
            json!({"hover": {"range": "4:5-4:7"}}),
        ),
        (
            &hover,
            json!({"contains": ["text"]}),
            json!({"contains": ["Text"]}),
        ),
        (
            &hover,
            json!({"lacks": ["other"]}),
            json!({"lacks": ["TEXT"]}),
        ),
        (
            &prompt,
            json!({"contains": ["lsp"]}),
            json!({"lacks": ["LSP"]}),
        ),
        (&hover, json!({"ok": true}), json!({"hover": null})),
        (
            &hover,
            json!({"ok": true}),
            json!({"hover": {"range": null}}),
        ),
        (&none, json!({"hover": null}), json!({"hover": ""})),
        (&none, json!({"hover": null}), json!({"locations": []})),
        (&tool, json!({"text": "Two: 😀"}), json!({"text": "Two"})),
        (&tool, json!({"at_most": 7}), json!({"at_most": 6})),
        (&tool, json!({"ok": true}), json!({"error": {"code": "X"}})),
        (
            &bad,
            json!({"error": {"code": "X"}}),
            json!({"error": {"code": "Y"}}),
        ),
        (
            &bad,
            json!({"error": {}, "contains": ["Wrong"]}),
            json!({"contains": ["Wrong"]}),
        ),
        (&bad, json!({"ok": false}), json!({"ok": true})),
        (
            &refused,
            json!({"error": {"code": "LSP_STALE", "serverCode": 7, "contains": ["changed"]}}),
            json!({"error": {"contains": ["gone"]}}),
        ),
        (
            &refused,
            json!({"error": {"lacks": ["gone"]}}),
            json!({"error": {"lacks": ["FILE"]}}),
        ),
        (
            &refused,
            json!({"error": {}}),
            json!({"error": {"serverCode": 8}}),
        ),
        (&refused, json!({"error": {}}), json!({"locations": []})),
        (
            &refused,
            json!({"any_of": [{"locations": []}, {"error": {}}]}),
            json!({"any_of": [{"locations": []}, {"hover": null}]}),
        ),
        (
            &settled(json!({"hover": null})),
            json!({"same_as": "q0"}),
            json!({"same_as": "q9"}),
        ),
        (&none, json!({"ok": true}), json!({"same_as": "q0"})),
    ] {
        assert_eq!(
            judged(right.clone(), Some(outcome), false),
            Ok(()),
            "{right}"
        );
        let mismatch = judged(wrong.clone(), Some(outcome), false);
        assert!(mismatch.is_err(), "{wrong} of {outcome:?}");
    }
}

#[test]
fn what_is_not_settled_is_pending_only() {
    assert_eq!(judged(json!({"pending": true}), None, false), Ok(()));
    assert_eq!(
        judged(
            json!({"any_of": [{"pending": true}, {"ok": true}]}),
            None,
            false
        ),
        Ok(())
    );
    assert!(judged(json!({"ok": true}), None, false).is_err());
}

#[test]
fn codes_of_the_project_bind_its_own_harness_only() {
    let stale = refused("ANOTHER", "no");
    for (code, own, foreign) in [
        ("LSP_STALE", false, true),
        ("LSP_DISPOSED", false, false),
        ("ANOTHER", true, true),
    ] {
        let check = json!({"error": {"code": code}});
        assert_eq!(
            judged(check.clone(), Some(&stale), false).is_ok(),
            own,
            "{code}"
        );
        assert_eq!(judged(check, Some(&stale), true).is_ok(), foreign, "{code}");
    }
    let words = json!({"error": {"contains": ["no"], "says": ["not now"]}});
    assert!(judged(words.clone(), Some(&stale), false).is_err());
    assert!(judged(words, Some(&stale), true).is_ok());
    let facts = json!({"error": {"contains": ["not now"]}});
    assert!(judged(facts, Some(&stale), true).is_err());
    let check = json!({"error": {"code": "LSP_STALE"}});
    let success = settled(json!({"hover": null}));
    assert!(judged(check, Some(&success), true).is_err());
}

#[test]
fn what_is_shown_is_bounded() {
    let long = settled(Value::String("é".repeat(5_000)));
    let shown = describe(Some(&long));
    assert!(shown.len() < 2 * SHOWN + 40, "{}", shown.len());
    assert!(shown.ends_with("(10002 bytes)"), "{shown}");
}

#[test]
fn what_came_is_written_as_what_was_demanded() {
    let got =
        |check: Value, value: Value| judged(check, Some(&settled(value)), false).unwrap_err().got;
    let elsewhere = json!({"uri": "file:///x/b.ts", "range": location(0, 2)["range"]});
    let above = json!({"uri": "file:///r/a%20b.ts", "range": location(0, 2)["range"]});
    let locations = json!({"locations": [location(0, 2), above, elsewhere], "kind": "locations"});
    let written = r#"locations ["a.ts:1:3-1:4","../a b.ts:1:3-1:4","file:///x/b.ts:1:3-1:4"]"#;
    assert_eq!(got(json!({"locations": []}), locations.clone()), written);
    assert_eq!(got(json!({"count": 2}), locations.clone()), written);
    let any = json!({"any_of": [{"locations": []}, {"count": 2}]});
    assert_eq!(got(any, locations.clone()), written);
    // What is demanded as JSON is answered so.
    assert_eq!(
        got(json!({"value": {"kind": "x"}}), locations.clone()),
        locations.to_string()
    );
    let hover = |hover: Value| got(json!({"hover": "other"}), json!({"hover": hover}));
    assert_eq!(hover(json!({"contents": "text"})), r#"hover "text""#);
    assert_eq!(hover(Value::Null), "hover null");
    assert_eq!(
        hover(json!({"contents": "text", "range": location(3, 4)["range"]})),
        r#"hover {"contents":"text","range":"4:5-4:6"}"#
    );
    assert_eq!(
        got(json!({"text": "a"}), json!({"text": "b"})),
        r#"the text "b""#
    );
    let failed = json!({"isError": true, "code": "C", "text": "why"});
    assert_eq!(got(json!({"text": "a"}), failed), "failure C: why");
}
