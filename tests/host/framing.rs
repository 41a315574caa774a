//! The base protocol through real pipes: what is tolerated, what is fatal, and what that means (FRM).

use dsh_fake_lsp::{
    Action, Base64Bytes, Case, FakeServer, Helper, Length, Order, Payload, Rule, Spelling,
    capabilities, coalesce, cut_at, each_byte, hold, ignore, notify, notify_times, raw, raw_bytes,
    reply, reply_raw, request, spawn_helper, spell,
};
use dsh_lsp::Operation::{GoToDefinition, Hover};
use serde_json::{Value, json};

use crate::support::{Over, bench, failure, fake, hover_text};

const ONE_QUERY: &str = "initialize initialized didOpen hover didClose shutdown exit";

/// A text with characters of one to four bytes.
const TEXT: &str = "aé数😀\r\n\r\nContent-Length: 5\r\n\r\n";

fn says(text: &str) -> Action {
    reply(json!({"contents": text}))
}

/// A server that answers the hovers one by one after these actions.
fn hovers(cases: impl IntoIterator<Item = Vec<Action>>) -> FakeServer {
    (1..).zip(cases).fold(fake(), |server, (nth, actions)| {
        server.rule(Rule::on("textDocument/hover").nth(nth).run(actions))
    })
}

/// FRM-1: the length counts bytes of UTF-8. The fake server's reader compares every header.
#[test]
fn lengths_are_counted_in_bytes() {
    let over = bench(fake()).file("größe 数😀.x", TEXT).run(async |bench| {
        bench.query(Hover, "größe 数😀.x:1:1").await.unwrap();
    });
    assert_eq!(over.params(1, "didOpen")["textDocument"]["text"], TEXT);
    over.processes(1).wire(1, ONE_QUERY);
}

/// FRM-2, FRM-4: everything a header may be.
#[test]
fn every_legal_spelling_of_a_header_is_read() {
    let plain = Spelling::default;
    let length = |text: &str| Some(Length::Text(text.to_owned()));
    let extra = |lines: &[&str]| {
        lines
            .iter()
            .map(|&line| line.to_owned())
            .collect::<Vec<_>>()
    };
    let content_type = "Content-Type: application/vscode-jsonrpc; charset=utf-8";
    let spellings = [
        plain(),
        Spelling {
            case: Some(Case::Lower),
            ..plain()
        },
        Spelling {
            case: Some(Case::Upper),
            ..plain()
        },
        Spelling {
            case: Some(Case::Mixed),
            ..plain()
        },
        Spelling {
            separator: Some(":".into()),
            ..plain()
        },
        Spelling {
            separator: Some(":  \t ".into()),
            ..plain()
        },
        Spelling {
            after: " \t".into(),
            ..plain()
        },
        Spelling {
            extra: extra(&[content_type]),
            ..plain()
        },
        Spelling {
            extra: extra(&[content_type]),
            order: Some(Order::LengthLast),
            ..plain()
        },
        Spelling {
            extra: extra(&["X-Empty:", "x!#$%&'*+-.^_`|~9: a:b: c"]),
            ..plain()
        },
        Spelling {
            length: length("000${length}"),
            ..plain()
        },
        Spelling {
            second_length: length("${length}"),
            ..plain()
        },
        Spelling {
            second_length: length("0${length}"),
            case: Some(Case::Upper),
            ..plain()
        },
    ];
    let server = hovers(
        spellings
            .iter()
            .map(|spelling| vec![spell(spelling.clone()), says(TEXT)]),
    );
    let over = bench(server).run(async |bench| {
        for spelling in &spellings {
            let outcome = bench.query(Hover, "a.x:1:1").await;
            assert_eq!(hover_text(outcome).as_deref(), Some(TEXT), "{spelling:?}");
        }
    });
    over.processes(1);
}

/// FRM-3: each byte alone, in both directions of the handshake and of a query.
#[test]
fn a_server_that_writes_byte_by_byte_is_understood() {
    let server = fake()
        .on(
            "initialize",
            [
                each_byte(),
                request(json!(1), "workspace/configuration", json!({"items": [{}]})),
                each_byte(),
                capabilities(json!({})),
            ],
        )
        .on("textDocument/hover", [each_byte(), says(TEXT)]);
    let over = bench(server).run(async |bench| {
        assert_eq!(
            hover_text(bench.query(Hover, "a.x:1:1").await).as_deref(),
            Some(TEXT)
        );
    });
    assert_eq!(over.processes(1).wire(1, ONE_QUERY).answers(1).len(), 1);
}

/// FRM-3: a cut at every place of a frame: in the header, the separator, each character.
#[test]
fn a_frame_is_read_wherever_it_is_cut() {
    const LENGTH: i64 = 110;
    let server = hovers((1..LENGTH).map(|at| vec![cut_at([at]), says("aé数😀")]));
    let over = bench(server).run(async |bench| {
        for at in 1..LENGTH {
            let outcome = bench.query(Hover, "a.x:1:1").await;
            assert_eq!(
                hover_text(outcome).as_deref(),
                Some("aé数😀"),
                "cut at {at}"
            );
        }
    });
    over.processes(1);
}

/// FRM-3: many messages in one write, the answer in the middle.
#[test]
fn messages_that_come_together_are_all_read() {
    let log = |n: u32| {
        notify(
            "window/logMessage",
            json!({"type": 4, "message": "é".repeat(n as usize)}),
        )
    };
    let server = fake().on(
        "textDocument/hover",
        [
            coalesce(),
            log(1),
            request(
                json!("a"),
                "workspace/configuration",
                json!({"items": [{}, {}]}),
            ),
            log(1000),
            says(TEXT),
            request(json!("b"), "no/such", Value::Null),
            log(3),
        ],
    );
    let over = bench(server).run(async |bench| {
        for _ in 0..2 {
            assert_eq!(
                hover_text(bench.query(Hover, "a.x:1:1").await).as_deref(),
                Some(TEXT)
            );
        }
    });
    assert_eq!(over.processes(1).answers(1).len(), 4);
}

/// Has the first process do this when asked for a hover. The query fails with the protocol error
/// (FRM-7), its document is not closed, the process is ended, and the next query gets another one.
/// Returns the message.
#[track_caller]
fn fatal(actions: impl IntoIterator<Item = Action>) -> String {
    fatal_with(actions, |_| {}).0
}

#[track_caller]
fn fatal_with(
    actions: impl IntoIterator<Item = Action>,
    configure: impl FnOnce(&mut dsh_lsp_stdio::ServerConfig) + 'static,
) -> (String, Over) {
    let kept = std::cell::OnceCell::new();
    let server = fake().rule(Rule::on("textDocument/hover").process(1).run(actions));
    let over = bench(server).configure(configure).run(async |bench| {
        kept.set(failure(
            bench.query(Hover, "a.x:1:1").await,
            "LSP_PROTOCOL_ERROR",
        ))
        .unwrap();
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    over.processes(2)
        .wire(1, "initialize initialized didOpen hover")
        .wire(2, ONE_QUERY)
        .terminated(1);
    (kept.into_inner().unwrap(), over)
}

fn spelled(spelling: Spelling) -> [Action; 2] {
    [spell(spelling), says("unread")]
}

/// FRM-4.
#[test]
fn a_frame_without_a_length_is_fatal() {
    let message = fatal(spelled(Spelling {
        no_length: true,
        ..Spelling::default()
    }));
    assert!(
        message.contains("stdout is not a frame stream"),
        "{message}"
    );
    let extra = vec!["Content-Type: text/plain".to_owned()];
    let message = fatal(spelled(Spelling {
        no_length: true,
        extra,
        ..Spelling::default()
    }));
    assert!(message.contains("no Content-Length"), "{message}");
}

/// FRM-4.
#[test]
fn a_length_that_is_no_number_is_fatal() {
    for value in [
        "-1",
        "+5",
        "1.5",
        "0x10",
        "1e3",
        "",
        " ",
        "5 5",
        "5,5",
        "٥",
        "9007199254740993",
    ] {
        let length = Some(Length::Text(value.to_owned()));
        let message = fatal(spelled(Spelling {
            length,
            ..Spelling::default()
        }));
        assert!(message.contains("Content-Length"), "{value:?}: {message}");
        assert!(
            message.contains("not a decimal number"),
            "{value:?}: {message}"
        );
    }
}

/// FRM-4, FRM-6.
#[test]
fn a_length_of_zero_is_fatal() {
    let message = fatal([raw("Content-Length: 0\r\n\r\n"), ignore()]);
    assert!(message.contains("Content-Length is 0"), "{message}");
}

/// FRM-4: in either order.
#[test]
fn two_lengths_that_differ_are_fatal() {
    for (first, second) in [("${length}", "7"), ("7", "${length}")] {
        let text = |text: &str| Some(Length::Text(text.to_owned()));
        let (length, second_length) = (text(first), text(second));
        let message = fatal(spelled(Spelling {
            length,
            second_length,
            ..Spelling::default()
        }));
        assert!(message.contains("differ"), "{message}");
    }
}

/// FRM-4: lines that are no header lines.
#[test]
fn lines_that_are_no_headers_are_fatal() {
    for line in [
        "no colon",
        "bad name: 1",
        ": no name",
        "näme: 1",
        "(x): 1",
        " folded: 1",
    ] {
        let extra = vec![line.to_owned()];
        let message = fatal(spelled(Spelling {
            extra,
            ..Spelling::default()
        }));
        assert!(
            message.contains("stdout is not a frame stream"),
            "{line}: {message}"
        );
    }
}

/// FRM-4.
#[test]
fn line_ends_without_a_carriage_return_are_fatal() {
    let message = fatal(spelled(Spelling {
        lf_only: true,
        ..Spelling::default()
    }));
    assert!(message.contains("CR LF"), "{message}");
    fatal([raw("Content-Length: 2\r{}"), ignore()]);
    fatal([raw("\r\n"), says("behind a blank line")]);
}

/// FRM-4.
#[test]
fn a_byte_order_mark_is_fatal() {
    fatal([raw("\u{FEFF}"), says("behind a mark")]);
}

/// FRM-4: what is left over of a body that was longer than it said is no header.
#[test]
fn a_length_that_is_too_short_is_fatal() {
    let length_by = Some(-1);
    let message = fatal(spelled(Spelling {
        length_by,
        ..Spelling::default()
    }));
    assert!(message.contains("not JSON"), "{message}");
}

/// FRM-5: found out before the body is awaited.
#[test]
fn a_body_of_a_gigabyte_is_refused_by_its_header() {
    let message = fatal([raw("Content-Length: 1000000000\r\n\r\n"), ignore()]);
    assert!(message.contains("1000000000 bytes"), "{message}");
    assert!(message.contains("maxMessageBytes (16000000)"), "{message}");
    fatal([raw("Content-Length: 9007199254740992\r\n\r\n"), ignore()]);
}

/// A hover's answer whose body has exactly so many bytes; the id is that of a first query.
fn answer_of(bytes: usize) -> Action {
    let around = r#"{"jsonrpc":"2.0","id":2,"result":{"contents":""}}"#.len();
    let text = "x".repeat(bytes - around);
    reply_raw(&format!(
        r#"{{"jsonrpc":"2.0","id":2,"result":{{"contents":"{text}"}}}}"#
    ))
}

/// FRM-5: the limit is met exactly.
#[test]
fn a_body_of_exactly_the_limit_is_read() {
    let server = fake().on("textDocument/hover", [answer_of(1_000)]);
    let over = bench(server)
        .configure(|config| config.max_message_bytes = 1_000)
        .run(async |bench| {
            assert!(hover_text(bench.query(Hover, "a.x:1:1").await).is_some());
        });
    over.processes(1).wire(1, ONE_QUERY);
}

/// FRM-5: one byte more is fatal.
#[test]
fn a_body_of_one_byte_over_the_limit_is_fatal() {
    let (message, _) = fatal_with([answer_of(1_001)], |config| {
        config.max_message_bytes = 1_000;
    });
    assert!(
        message.contains("1001 bytes") && message.contains("maxMessageBytes (1000)"),
        "{message}"
    );
}

/// FRM-5: with an end to the section or without.
#[test]
fn a_header_section_that_is_too_long_is_fatal() {
    let long = "X-Filler: ".to_owned() + &"x".repeat(65_536);
    let message = fatal([raw(&long), ignore()]);
    assert!(message.contains("longer than 65536 bytes"), "{message}");
    let lines = "X-Filler: x\r\n".repeat(6_000);
    let message = fatal([
        raw(&format!("Content-Length: 2\r\n{lines}\r\n{{}}")),
        ignore(),
    ]);
    assert!(message.contains("longer than 65536 bytes"), "{message}");
}

/// FRM-5: a long section within the limit is read.
#[test]
fn a_header_section_within_the_limit_is_read() {
    let extra = vec![format!("X-Filler: {}", "x".repeat(65_000))];
    let server = fake().on(
        "textDocument/hover",
        spelled(Spelling {
            extra,
            ..Spelling::default()
        }),
    );
    let over = bench(server).run(async |bench| {
        assert!(hover_text(bench.query(Hover, "a.x:1:1").await).is_some());
    });
    over.processes(1);
}

/// FRM-6: text that is not JSON.
#[test]
fn a_body_that_is_not_json_is_fatal() {
    for body in [
        "{\"jsonrpc\":",
        " ",
        "nul",
        "{} {}",
        "{'a': 1}",
        "{\"a\": 01}",
        "\u{FEFF}{}",
    ] {
        let message = fatal([reply_raw(body)]);
        assert!(message.contains("not JSON"), "{body}: {message}");
    }
}

/// FRM-6: bytes that are not UTF-8, even inside a string.
#[test]
fn a_body_that_is_not_utf8_is_fatal() {
    use base64_of as base64;
    let body = b"{\"jsonrpc\":\"2.0\",\"method\":\"log\",\"params\":\"\xE9\"}";
    let payload = Payload::Bytes(Base64Bytes {
        base64: base64(body),
    });
    let message = fatal([Action::ReplyRaw(payload)]);
    assert!(message.contains("not UTF-8"), "{message}");
}

fn base64_of(bytes: &[u8]) -> String {
    match raw_bytes(bytes) {
        Action::Raw(Payload::Bytes(Base64Bytes { base64 })) => base64,
        _ => unreachable!("raw bytes are base64"),
    }
}

/// FRM-7: fatal means that the whole tree goes, and that the cause is in the error.
#[test]
fn a_fatal_frame_ends_the_whole_tree() {
    let actions = [
        spawn_helper(Helper::default()),
        raw("what is this\n"),
        ignore(),
    ];
    let (message, over) = fatal_with(actions, |_| {});
    assert!(message.contains("what is this"), "{message}");
    assert_eq!(over.report(1).terminated.len(), 2);
}

/// FRM-7, CRS-2: a broken stream is noticed while nobody asks, and fails nobody.
#[test]
fn a_fatal_frame_between_queries_fails_no_query() {
    let server = fake().rule(
        Rule::on("textDocument/didClose")
            .process(1)
            .run([hold("idle"), raw("oops\n")]),
    );
    let over = bench(server).run(async |bench| {
        bench.query(Hover, "a.x:1:1").await.unwrap();
        bench.held("idle").await;
        bench.control.release("idle");
        bench.ended(1).await;
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    over.processes(2)
        .wire(1, "initialize initialized didOpen hover didClose")
        .terminated(1);
}

/// FRM-8: well-formed bodies that say nothing to the host.
#[test]
fn bodies_that_are_no_messages_are_ignored() {
    let frames = [
        "[]",
        "[{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":null}]",
        "0",
        "\"text\"",
        "null",
        "true",
        "{}",
        "{\"jsonrpc\":\"2.0\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":4711,\"result\":{\"contents\":\"wrong\"}}",
        "{\"jsonrpc\":\"2.0\",\"id\":\"2\",\"result\":{\"contents\":\"wrong\"}}",
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"wrong\"}}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"capabilities\":{}}}",
        "{\"jsonrpc\":\"2.0\",\"id\":-2,\"result\":{\"contents\":\"wrong\"}}",
        "{\"jsonrpc\":\"2.0\",\"id\":2.5,\"result\":{\"contents\":\"wrong\"}}",
        "{\"jsonrpc\":\"2.0\",\"id\":[2],\"result\":{\"contents\":\"wrong\"}}",
        "{\"jsonrpc\":\"2.0\",\"result\":{\"contents\":\"wrong\"}}",
        "{\"jsonrpc\":\"2.0\",\"method\":7}",
        " \n{\"jsonrpc\":\"2.0\",\"method\":\"$/unknown\"}\n ",
    ];
    let raw_frames =
        frames.map(|body| raw(&format!("Content-Length: {}\r\n\r\n{body}", body.len())));
    let actions = raw_frames.into_iter().chain([says("right")]);
    let server = fake().on("textDocument/hover", actions);
    let over = bench(server).run(async |bench| {
        for _ in 0..2 {
            assert_eq!(
                hover_text(bench.query(Hover, "a.x:1:1").await).as_deref(),
                Some("right")
            );
        }
    });
    over.processes(1);
}

/// FRM-8: an answer that comes again is no answer to the next question.
#[test]
fn an_answer_that_comes_again_is_ignored() {
    let again = r#"{"jsonrpc":"2.0","id":2,"result":{"contents":"the first"}}"#;
    let server = hovers([
        vec![says("the first")],
        vec![
            raw(&format!("Content-Length: {}\r\n\r\n{again}", again.len())),
            says("the second"),
        ],
    ]);
    let over = bench(server).run(async |bench| {
        for text in ["the first", "the second"] {
            assert_eq!(
                hover_text(bench.query(Hover, "a.x:1:1").await).as_deref(),
                Some(text)
            );
        }
    });
    over.processes(1);
}

/// FRM-10: the error shows the first bytes of what came, cut to a bearable length.
#[test]
fn text_before_the_first_frame_is_shown() {
    let long = "Loading workspace… ".repeat(100);
    for text in [
        "Debugger listening on ws://127.0.0.1\n",
        "{\"level\":\"info\"}\n",
        &long,
    ] {
        let server = fake().rule(Rule::on("start").process(1).run([raw(text)]));
        let over = bench(server).run(async |bench| {
            let message = failure(bench.query(Hover, "a.x:1:1").await, "LSP_PROTOCOL_ERROR");
            let (start, _) = text.char_indices().nth(15).unwrap();
            let shown = format!("{:?}", &text[..start]);
            assert!(message.contains(shown.trim_end_matches('"')), "{message}");
            assert!(message.contains("before the first message"), "{message}");
            assert!(message.contains("must log to stderr"), "{message}");
            bench.query(Hover, "a.x:1:1").await.unwrap();
        });
        over.processes(2);
    }
}

/// FRM-10: bytes that are no text are shown as far as they can be.
#[test]
fn bytes_before_the_first_frame_are_shown() {
    let server = fake().rule(
        Rule::on("start")
            .process(1)
            .run([raw_bytes(b"\xFF\xFEbinary\0")]),
    );
    let over = bench(server).run(async |bench| {
        let message = failure(bench.query(Hover, "a.x:1:1").await, "LSP_PROTOCOL_ERROR");
        assert!(message.contains("\u{FFFD}\u{FFFD}binary"), "{message}");
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    over.processes(2);
}

/// FRM-10: text between frames is told with how many came before.
#[test]
fn text_between_frames_is_shown() {
    let message = fatal([
        notify("a", Value::Null),
        raw("INFO indexing done\n"),
        says("unread"),
    ]);
    assert!(message.contains("INFO indexing done"), "{message}");
    assert!(message.contains("after 2 messages"), "{message}");
}

/// FRM-9, FRM-5: a body near the default limit is read. It takes a second or so, nearly all of it
/// spent by a fake server that is built without optimization.
#[test]
fn a_large_body_is_read() {
    // Eight bytes each and the rest of the message.
    const TIMES: usize = 1_990_000;
    let text = format!("${{repeat:{TIMES}:aé😀.}}");
    let over = bench(fake().on("textDocument/hover", [says(&text)])).run(async |bench| {
        let text = hover_text(bench.query(Hover, "a.x:1:1").await).unwrap();
        assert_eq!(text.len(), TIMES * 8);
        assert!(text.ends_with("aé😀."));
    });
    over.processes(1);
}

/// SRQ-6, FRM-3: ten thousand notifications in front of an answer are read and dropped.
#[test]
fn ten_thousand_notifications_before_an_answer_are_dropped() {
    let params = json!({"uri": "file:///x", "diagnostics": [{"message": "m${n}"}]});
    let server = fake().on(
        "textDocument/definition",
        [
            coalesce(),
            notify_times(10_000, "textDocument/publishDiagnostics", params),
        ],
    );
    let over = bench(server).run(async |bench| {
        bench.query(GoToDefinition, "a.x:1:1").await.unwrap();
        bench.query(GoToDefinition, "a.x:1:1").await.unwrap();
    });
    over.processes(1);
}
