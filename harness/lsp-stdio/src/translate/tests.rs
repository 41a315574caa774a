use dsh_lsp::{Position, Range};
use serde_json::{Value, json};

use super::*;

fn locations(result: &Value) -> Result<Vec<Location>, Malformed> {
    json::read(&result.to_string(), LocationsShape).expect("it is JSON")
}

fn hover(result: &Value) -> Result<Option<Hover>, Malformed> {
    json::read(&result.to_string(), HoverShape).expect("it is JSON")
}

fn handshake(capabilities: &Value) -> Result<Handshake, Malformed> {
    let result = json!({"capabilities": capabilities}).to_string();
    json::read(&result, HandshakeShape).expect("it is JSON")
}

fn range(line: u64) -> Range {
    Range {
        start: Position { line, character: 2 },
        end: Position { line, character: 5 },
    }
}

fn range_json(line: u64) -> Value {
    json!({"start": {"line": line, "character": 2}, "end": {"line": line, "character": 5}})
}

fn place(uri: &str, line: u64) -> Location {
    Location {
        uri: uri.to_owned(),
        range: range(line),
    }
}

#[track_caller]
fn malformed<T: std::fmt::Debug>(outcome: Result<T, Malformed>) -> String {
    outcome
        .expect_err("the payload is malformed")
        .0
        .into_owned()
}

#[track_caller]
fn text(contents: &Value) -> String {
    hover(&json!({"contents": contents}))
        .expect("it is a hover")
        .map_or_else(String::new, |h| h.contents)
}

/// OPN-13: the four methods and their capabilities.
#[test]
fn operations_have_a_method_and_a_capability() {
    let table: Vec<_> = Operation::ALL
        .into_iter()
        .map(|o| (method(o), capability(o)))
        .collect();
    assert_eq!(
        table,
        [
            ("textDocument/definition", "definitionProvider"),
            ("textDocument/references", "referencesProvider"),
            ("textDocument/implementation", "implementationProvider"),
            ("textDocument/hover", "hoverProvider"),
        ]
    );
}

/// NAV-1, NAV-2: every legal shape, mixed ones too, in order.
#[test]
fn every_shape_of_a_navigation_is_taken() {
    let location = json!({"uri": "file:///a", "range": range_json(1)});
    let link = json!({
        "originSelectionRange": range_json(9),
        "targetUri": "file:///b",
        "targetRange": range_json(8),
        "targetSelectionRange": range_json(2),
    });
    let bare_link = json!({"targetUri": "file:///c", "targetSelectionRange": range_json(3)});
    assert_eq!(locations(&json!(null)), Ok(vec![]));
    assert_eq!(locations(&json!([])), Ok(vec![]));
    assert_eq!(locations(&location), Ok(vec![place("file:///a", 1)]));
    assert_eq!(locations(&link), Ok(vec![place("file:///b", 2)]));
    assert_eq!(
        locations(&json!([bare_link, location, link, location])),
        Ok(vec![
            place("file:///c", 3),
            place("file:///a", 1),
            place("file:///b", 2),
            place("file:///a", 1),
        ])
    );
}

/// NAV-3: anything else is malformed, and one bad entry spoils the whole.
#[test]
fn anything_else_is_malformed() {
    let good = json!({"uri": "file:///a", "range": range_json(1)});
    for bad in [
        json!(true),
        json!(0),
        json!(-3),
        json!(1.5),
        json!("file:///a"),
        json!({}),
        json!([good, null]),
    ] {
        malformed(locations(&bad));
    }
    for entry in [
        json!({"uri": "file:///a"}),
        json!({"range": range_json(1)}),
        json!({"uri": 5, "range": range_json(1)}),
        json!({"uri": "file:///a", "range": null}),
        json!({"uri": "file:///a", "range": []}),
        json!({"uri": "file:///a", "range": {"start": {"line": 1, "character": 1}}}),
        json!({"targetUri": "file:///a", "targetRange": range_json(1)}),
        json!({"targetUri": null, "targetSelectionRange": range_json(1)}),
    ] {
        let what = malformed(locations(&json!([good, entry, good])));
        assert!(what.starts_with("entry 1: "), "{what}");
        malformed(locations(&entry));
    }
    for number in [
        json!(-1),
        json!(0.5),
        json!("1"),
        json!(null),
        json!(1e300),
        json!(true),
    ] {
        for (line, character) in [(number.clone(), json!(1)), (json!(1), number.clone())] {
            let mut bad = good.clone();
            bad["range"]["start"] = json!({"line": line, "character": character});
            malformed(locations(&json!([bad])));
            bad["range"]["end"] = bad["range"]["start"].take();
            malformed(locations(&json!([bad])));
        }
    }
}

/// NAV-4: a URI is what the server wrote, whatever it is.
#[test]
fn uris_stay_as_received() {
    for uri in ["file:///c%3A/é x", "jar:file:///a!/b", "", "not a uri"] {
        assert_eq!(
            locations(&json!({"uri": uri, "range": range_json(1)})),
            Ok(vec![place(uri, 1)])
        );
    }
}

/// NAV-5: `3.0` is an integer.
#[test]
fn whole_floats_are_integers() {
    let floats =
        json!({"start": {"line": 7.0, "character": 2.0}, "end": {"line": 7, "character": 5e0}});
    assert_eq!(
        locations(&json!({"uri": "u", "range": floats})),
        Ok(vec![place("u", 7)])
    );
}

/// HOV-1: null and empty text are no hover.
#[test]
fn nothing_to_say_is_no_hover() {
    let empty = json!({"kind": "markdown", "value": ""});
    assert_eq!(hover(&json!(null)), Ok(None));
    for contents in [
        json!(""),
        json!([]),
        json!(["", ""]),
        empty,
        json!({"language": "x", "value": ""}),
    ] {
        assert_eq!(
            hover(&json!({"contents": contents, "range": range_json(1)})),
            Ok(None)
        );
    }
}

/// HOV-2: the shapes, and how they are written.
#[test]
fn every_shape_of_a_hover_is_taken() {
    assert_eq!(
        text(&json!({"kind": "markdown", "value": "**a**"})),
        "**a**"
    );
    assert_eq!(text(&json!({"kind": "plaintext", "value": " a\n"})), " a\n");
    assert_eq!(text(&json!(" *x* \u{fffd}")), " *x* \u{fffd}");
    assert_eq!(
        text(&json!({"language": "ts", "value": "let x"})),
        "```ts\nlet x\n```"
    );
    assert_eq!(
        text(
            &json!(["a", {"language": "ts", "value": "b"}, "", {"kind": "markdown", "value": "c"}])
        ),
        "a\n\n```ts\nb\n```\n\nc"
    );
    assert_eq!(text(&json!(["", "a"])), "a");
}

/// HOV-3: anything else is malformed.
#[test]
fn any_other_hover_is_malformed() {
    for result in [
        json!(5),
        json!("text"),
        json!([]),
        json!({}),
        json!({"range": range_json(1)}),
    ] {
        malformed(hover(&result));
    }
    for contents in [
        json!(null),
        json!(5),
        json!({}),
        json!({"value": "x"}),
        json!({"kind": "markdown"}),
        json!({"kind": "html", "value": "x"}),
        json!({"kind": null, "value": "x"}),
        json!({"kind": "markdown", "value": null}),
        json!({"language": 5, "value": "x"}),
        json!({"language": "ts"}),
        json!({"language": "ts", "value": 5}),
        json!(["a", null]),
        json!([["a"], "b"]),
        json!([5]),
        json!([{"language": "ts"}]),
    ] {
        malformed(hover(&json!({"contents": contents})));
    }
}

/// HOV-4: a valid range is kept, null is none, anything else is malformed.
#[test]
fn the_range_of_a_hover_is_checked() {
    let with = |range: Value| hover(&json!({"contents": "x", "range": range}));
    assert_eq!(with(range_json(4)).unwrap().unwrap().range, Some(range(4)));
    assert_eq!(with(json!(null)).unwrap().unwrap().range, None);
    assert_eq!(
        hover(&json!({"contents": "x"})).unwrap().unwrap().range,
        None
    );
    for bad in [
        json!(5),
        json!([]),
        json!({}),
        json!("x"),
        json!({"start": {"line": 0, "character": 0}}),
    ] {
        malformed(with(bad));
    }
    let mut negative = range_json(1);
    negative["start"]["line"] = json!(-1);
    malformed(with(negative));
}

/// HOV-5: the fence is longer than any inside, and the tag cannot break out of its line.
#[test]
fn code_is_fenced_safely() {
    let fence = |language: &str, value: &str| text(&json!({"language": language, "value": value}));
    assert_eq!(fence("md", "a `b` ``c``"), "```md\na `b` ``c``\n```");
    assert_eq!(fence("md", "```ts\nx\n```"), "````md\n```ts\nx\n```\n````");
    assert_eq!(fence("md", "`````"), "``````md\n`````\n``````");
    assert_eq!(fence("ts\n```\nevil", "x"), "```ts\nx\n```");
    assert_eq!(fence("t`s", "x"), "```t\nx\n```");
    assert_eq!(fence("", "x"), "```\nx\n```");
}

/// INI-6: `true` and an options object advertise; false, null, absent and nonsense do not.
#[test]
fn what_is_advertised() {
    for operation in Operation::ALL {
        let with = |value: Value| handshake(&json!({ capability(operation): value })).unwrap();
        for yes in [json!(true), json!({}), json!({"workDoneProgress": true})] {
            assert!(with(yes).advertises(operation));
        }
        for no in [
            json!(false),
            json!(null),
            json!(1),
            json!("true"),
            json!([]),
        ] {
            assert!(!with(no).advertises(operation));
        }
        let one = with(json!(true));
        let others = Operation::ALL
            .into_iter()
            .filter(|&other| other != operation);
        assert!(others.into_iter().all(|other| !one.advertises(other)));
        assert!(!handshake(&json!({})).unwrap().advertises(operation));
    }
}

/// OPN-2: which synchronization allows a transient open.
#[test]
fn which_synchronization_fits() {
    let fits = |value: Value| {
        handshake(&json!({"textDocumentSync": value}))
            .unwrap()
            .transient_open
    };
    for yes in [
        json!(1),
        json!(2),
        json!(2.0),
        json!({"openClose": true}),
        json!({"change": 0, "openClose": true}),
    ] {
        assert!(fits(yes));
    }
    for no in [
        json!(0),
        json!(3),
        json!(null),
        json!(true),
        json!("1"),
        json!({}),
        json!({"change": 2}),
        json!({"openClose": false, "change": 1}),
        json!({"openClose": null}),
        json!({"openClose": 1}),
        json!([1]),
    ] {
        assert!(!fits(no.clone()), "{no}");
    }
    assert!(!handshake(&json!({})).unwrap().transient_open);
}

/// INI-5: left out means UTF-16, and nothing else does.
#[test]
fn which_encoding_fits() {
    let check = |value: Value| {
        handshake(&json!({"positionEncoding": value}))
            .unwrap()
            .check_encoding()
    };
    assert_eq!(handshake(&json!({})).unwrap().check_encoding(), Ok(()));
    assert_eq!(check(json!("utf-16")), Ok(()));
    assert_eq!(check(json!("utf-8")), Err("\"utf-8\"".to_owned()));
    for other in [
        json!("UTF-16"),
        json!(""),
        json!(null),
        json!(16),
        json!(["utf-16"]),
    ] {
        assert!(check(other).is_err());
    }
}

/// INI-7: a result that is no `InitializeResult` is malformed.
#[test]
fn a_malformed_handshake_is_noticed() {
    for result in [
        json!([]),
        json!(null),
        json!("x"),
        json!({}),
        json!({"capabilities": []}),
        json!({"capabilities": null}),
    ] {
        let read = json::read(&result.to_string(), HandshakeShape).expect("it is JSON");
        malformed(read);
    }
}

/// ERR-1, ERR-3: the server's code and message, and the two codes that are worth another try.
#[test]
fn error_answers_become_errors() {
    let error = |value: Value| {
        json::read(&value.to_string(), ErrorShape)
            .expect("it is JSON")
            .map(ErrorAnswer::into_error)
    };
    assert_eq!(error(json!(null)), None);
    assert_eq!(
        error(json!({"code": -32603, "message": "boom", "data": [1]})),
        Some(LspError::ServerError {
            server_code: -32603,
            message: "boom".to_owned()
        })
    );
    for code in [-32801, -32802] {
        let stale = error(json!({"code": code, "message": "later"})).unwrap();
        assert_eq!(
            (stale.code(), stale.server_code()),
            ("LSP_STALE", Some(code))
        );
    }
    for code in [-32800, -32803, 0, 1, 7001] {
        let other = error(json!({"code": code, "message": "x"})).unwrap();
        assert_eq!(
            (other.code(), other.server_code()),
            ("LSP_SERVER_ERROR", Some(code))
        );
    }
    let silent = error(json!({"code": 7})).unwrap();
    assert!(silent.to_string().contains("no message"), "{silent}");
}

mod properties {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::any_json;

    /// The rules once more, over a tree, as plainly as can be.
    mod plain {
        use super::*;

        fn natural(value: &Value) -> Option<u64> {
            let number = value.as_f64()?;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "checked"
            )]
            (number >= 0.0 && number.fract() == 0.0 && number <= 9_007_199_254_740_992.0)
                .then_some(value.as_u64().unwrap_or(number as u64))
        }

        fn position(value: &Value) -> Option<Position> {
            let (line, character) = (
                natural(value.get("line")?)?,
                natural(value.get("character")?)?,
            );
            Some(Position { line, character })
        }

        fn range(value: &Value) -> Option<Range> {
            Some(Range {
                start: position(value.get("start")?)?,
                end: position(value.get("end")?)?,
            })
        }

        fn location(value: &Value) -> Option<Location> {
            let (uri, range_of) = match value.get("uri") {
                Some(uri) => (uri, "range"),
                None => (value.get("targetUri")?, "targetSelectionRange"),
            };
            Some(Location {
                uri: uri.as_str()?.to_owned(),
                range: range(value.get(range_of)?)?,
            })
        }

        pub(super) fn locations(value: &Value) -> Option<Vec<Location>> {
            match value {
                Value::Null => Some(Vec::new()),
                Value::Array(entries) => entries.iter().map(location).collect(),
                one => location(one).map(|one| vec![one]),
            }
        }
    }

    fn almost_a_range() -> impl Strategy<Value = Value> {
        let number = prop_oneof![4 => (0..9_u64).prop_map(Value::from), 1 => any_json()];
        (number.clone(), number.clone(), number.clone(), number, any::<u8>()).prop_map(
            |(a, b, c, d, odd)| {
                let mut range = json!({"start": {"line": a, "character": b}, "end": {"line": c, "character": d}});
                if odd < 20 {
                    range.as_object_mut().expect("an object").remove("end");
                }
                range
            },
        )
    }

    fn almost_locations() -> impl Strategy<Value = Value> {
        let entry = prop_oneof![
            8 => (almost_a_range(), ".{0,4}").prop_map(|(range, uri)| json!({"uri": uri, "range": range})),
            8 => (almost_a_range(), ".{0,4}")
                .prop_map(|(range, uri)| json!({"targetUri": uri, "targetSelectionRange": range, "targetRange": 1})),
            1 => any_json(),
        ];
        prop_oneof![
            entry.clone(),
            prop::collection::vec(entry, 0..5).prop_map(Value::from),
            any_json(),
        ]
    }

    proptest! {
        /// NAV-1…5: reading in one pass finds what a plain walk over the tree finds.
        #[test]
        fn navigation_agrees_with_the_plain_rules(result in almost_locations()) {
            prop_assert_eq!(locations(&result).ok(), plain::locations(&result));
        }

        /// HOV-1…5: any JSON is a hover, none, or malformed; never an empty one.
        #[test]
        fn any_json_is_a_hover_or_not(contents in any_json(), range in any_json()) {
            for result in [json!({"contents": contents, "range": range}), json!({"contents": contents}), contents] {
                if let Ok(Some(hover)) = hover(&result) {
                    prop_assert!(!hover.contents.is_empty());
                }
            }
        }

        /// HOV-5: whatever the code, the block is closed by its last line and by none before it.
        #[test]
        fn a_fence_ends_where_the_code_ends(code in "([`a\n ]|```){1,30}", language in "[a-z`\n]{0,5}") {
            let block = text(&json!({"language": language, "value": code}));
            let lines: Vec<&str> = block.split('\n').collect();
            let fence = lines[0].trim_end_matches(|c| c != '`');
            prop_assert_eq!(lines.last(), Some(&fence));
            let body = &lines[1..lines.len() - 1];
            prop_assert!(body.iter().all(|line| !line.contains(fence)));
            prop_assert_eq!(body.join("\n"), code);
        }
    }
}
