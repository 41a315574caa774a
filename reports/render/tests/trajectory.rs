//! The page of a session: what it shows, that nothing from outside gets out of its place, and that
//! any file gives a page or a reason.

#[path = "support/session.rs"]
mod session;

use dsh_reports::{SessionReadError, clock, read_session, render_trajectory};
use dsh_transcript::{Direction, Event, EventBody, Frame};
use serde_json::json;

use session::{Log, page};

/// A page without the style and the script, which are the same in all.
fn without_assets(page: &str) -> String {
    let mut out = page.to_owned();
    for (open, close) in [("<style>", "</style>"), ("<script>", "</script>")] {
        let from = out.find(open).expect("the page has one") + open.len();
        let to = from + out[from..].find(close).expect("it ends");
        out.replace_range(from..to, "…");
    }
    let from = out.find("'sha256-").expect("the policy names the script");
    let to = from + out[from..].find(';').expect("it ends");
    out.replace_range(from..to, "'sha256-…'");
    out
}

/// The tags of a page, without what is between them.
fn tags(page: &str) -> Vec<&str> {
    without_comments(page)
        .split('<')
        .skip(1)
        .map(|rest| &rest[..rest.find('>').unwrap_or(rest.len())])
        .collect()
}

fn without_comments(page: &str) -> &str {
    assert!(!page.contains("<!--"), "a comment could hide something");
    page
}

/// The values of an attribute, over all tags.
fn attribute<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    let name = format!(" {name}=\"");
    tags(page)
        .into_iter()
        .filter_map(|tag| {
            let from = tag.find(&name)? + name.len();
            Some(&tag[from..from + tag[from..].find('"')?])
        })
        .collect()
}

/// What holds for every page, whatever it shows.
#[track_caller]
fn check(page: &str) {
    let bare = without_assets(page);
    for tag in tags(&bare) {
        assert!(!tag.contains(" src"), "fetches: <{tag}>");
        assert!(!tag.contains("url("), "fetches: <{tag}>");
        assert!(!tag.contains(" on"), "has a handler: <{tag}>");
        let name = tag.trim_start_matches('/').split([' ', '\n']).next();
        let foreign = ["link", "img", "iframe", "object", "embed", "base", "form"];
        assert!(!foreign.contains(&name.unwrap_or_default()), "<{tag}>");
    }
    assert_eq!(bare.matches("<script").count(), 1);
    assert_eq!(bare.matches("</script").count(), 1);
    let links = attribute(&bare, "href");
    assert!(links.iter().all(|href| href.starts_with('#')), "{links:?}");
    let mut ids = attribute(&bare, "id");
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "an id occurs twice");
    for to in links {
        assert!(ids.binary_search(&&to[1..]).is_ok(), "{to} leads nowhere");
    }
    for label in attribute(&bare, "aria-labelledby") {
        assert!(ids.binary_search(&label).is_ok(), "no label {label}");
    }
    let hidden = |char: char| {
        (char.is_control() && !matches!(char, '\n' | '\t'))
            || matches!(char, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert!(!page.contains(hidden), "something that hides or reorders");
}

#[test]
fn a_small_run_is_shown_with_all_that_is_known_of_it() {
    let page = page(&Log::small().bytes());
    check(&page);
    insta::assert_snapshot!(without_assets(&page));
}

#[test]
fn the_same_session_gives_the_same_page() {
    let log = Log::small().bytes();
    assert_eq!(page(&log), page(&log));
}

#[test]
fn the_style_and_the_script_fetch_nothing() {
    let page = page(&Log::small().bytes());
    let style = &page[page.find("<style>").unwrap()..page.find("</style>").unwrap()];
    let script = &page[page.find("<script>").unwrap()..page.rfind("</script>").unwrap()];
    for text in [style, script] {
        for word in [
            "url(",
            "@import",
            "http",
            "fetch",
            "import(",
            "XMLHttp",
            "innerHTML",
            "src",
        ] {
            assert!(!text.contains(word), "{word}");
        }
    }
    assert!(page.contains("default-src 'none'"));
    assert!(page.contains("prefers-color-scheme: dark") && page.contains("@media print"));
}

#[test]
fn what_comes_from_outside_stays_text_wherever_it_stands() {
    let evil = "</script></style></title><script>alert(1)</script><img src=x onerror=alert(1)>\" \
                onclick=\"x' \u{202e}\u{0}\u{1b}[31m&lt; {{ 7 * 7 }} {% raw %} <!-- ]]>";
    let mut log = Log::named(evil, Some(evil));
    log.add("turn/start", json!({"turn": 1}));
    log.add("step/start", json!({"turn": 1, "step": 1}));
    log.add(
        "user/message",
        json!({"source": {"kind": evil, evil: evil}, "content": [{"type": "text", "text": evil}, {"type": evil}]}),
    );
    log.add(
        "step/request",
        json!({"turn": 1, "step": 1, "system": evil, "tools": [{"name": evil, "description": evil, "parameters": {evil: evil}}], "sha1": evil}),
    );
    log.add(
        "assistant/message",
        json!({"text": evil, "reasoning": evil, "toolCalls": [{"id": evil, "name": evil, "arguments": {evil: evil}}]}),
    );
    log.call(evil, evil, &json!({evil: evil}), None);
    log.add(
        "tool/result",
        json!({"callId": evil, "name": evil, "isError": true, "code": evil, "value": {evil: evil}, "content": [{"type": "text", "text": evil}], "parent": evil}),
    );
    log.add(evil, json!({evil: evil}));
    log.add(
        "step/end",
        json!({"turn": 1, "step": 1, "outcome": {"status": evil, "reason": evil, "code": evil, "message": evil}}),
    );
    let frames = [
        event(0, None, clock(1_000_000)),
        event(
            1,
            Some(1),
            EventBody::ProcessStarted {
                pid: 1,
                argv: vec![evil.to_owned()],
                cwd: Some(evil.to_owned()),
            },
        ),
        frame(
            2,
            Direction::ToServer,
            &json!({"method": evil, "params": evil}),
        ),
        event(
            3,
            Some(1),
            EventBody::Stderr {
                text: evil.as_bytes().into(),
            },
        ),
    ];
    let session = read_session(&log.bytes()).unwrap();
    let page = render_trajectory(&session, Some(&frames)).unwrap();
    check(&page);
    assert!(page.contains("{{ 7 * 7 }}"), "shown as it is");
    assert!(
        page.contains("‹U+202E›‹U+0000›‹U+001B›[31m"),
        "made visible"
    );
}

#[test]
fn what_happened_otherwise_than_it_should_is_said() {
    let page = page(&Log::eventful().bytes());
    check(&page);
    for words in [
        "compacted away",
        "hides events 3 to 8",
        "Here the session was gone on with",
        "TOOL_INTERRUPTED",
        "cancelled: interrupted",
        "failed: MODEL_STREAM_CUT: the stream ended",
        "no answer, asked again",
        "within run_code",
        "the log does not see this turn end",
        "no result",
        "until the next",
        "rejected: not today",
    ] {
        assert!(page.contains(words), "{words}");
    }
}

#[test]
fn calls_that_overlap_stand_side_by_side_and_any_number_of_them_finds_room() {
    for calls in [1_usize, 3, 200] {
        let mut log = Log::named("s", None);
        log.begin();
        for call in 0..calls {
            log.call(&format!("c{call}"), "read", &json!({}), None);
        }
        log.after(20);
        for call in 0..calls {
            log.result(&format!("c{call}"), "read", "text");
        }
        let page = page(&log.bytes());
        check(&page);
        assert!(page.contains(&format!("repeat({},minmax(0,", calls.min(7))));
        assert_eq!(page.matches("data-item><").count(), calls);
        assert_eq!(page.contains("<p>+194<"), calls == 200);
    }
}

#[test]
fn a_result_of_many_bytes_is_cut_with_a_note() {
    let mut log = Log::named("s", None);
    log.begin();
    log.call(
        "c",
        "read",
        &json!({"file_path": "x".repeat(1 << 20)}),
        None,
    );
    log.result("c", "read", &"y".repeat(10 << 20));
    let page = page(&log.bytes());
    check(&page);
    assert!(page.len() < 600_000, "{}", page.len());
    assert!(page.contains("of 10\u{202f}485\u{202f}760 bytes; the rest is on line 5"));
}

#[test]
fn a_page_grows_with_its_session_and_no_faster() {
    let sized = |steps: u64| {
        let mut log = Log::named("s", None);
        log.add("turn/start", json!({"turn": 1}));
        for step in 1..=steps {
            log.step(step);
        }
        let page = page(&log.bytes());
        check(&page);
        page.len()
    };
    let (small, large) = (sized(125), sized(1250));
    assert!(large < small * 10, "{small} {large}");
    assert!(large < 16 << 20, "{large}");
}

#[test]
fn a_file_that_is_no_session_is_refused_by_its_line() {
    let refused = |bytes: &[u8]| read_session(bytes).unwrap_err();
    assert!(matches!(refused(b""), SessionReadError::Empty));
    for bytes in [
        &b"\n"[..],
        b"hello\n",
        b"{\"format\":\"dsh-session/1\"}\n",
        b"{\"format\":3}\n",
        b"\xff\xfe\n",
        b"[]",
    ] {
        let error = refused(bytes);
        assert!(
            matches!(error, SessionReadError::NotASession { .. }),
            "{error}"
        );
        assert!(error.to_string().starts_with("line 1 "), "{error}");
    }
    let error = refused(b"{\"format\":\"dsh-session/2\",\"header\":{}}\n");
    assert!(error.to_string().contains("\"dsh-session/2\""), "{error}");
    let deep = "[".repeat(100_000);
    for line in [
        "nonsense",
        "[]",
        "{}",
        "{\"seq\":1,\"atMs\":2}",
        "{\"seq\":-1,\"atMs\":2,\"type\":\"x\"}",
        &deep,
    ] {
        let mut log = Log::small();
        log.line(line);
        let lines = log.bytes().split(|byte| *byte == b'\n').count() - 1;
        let error = refused(&log.bytes());
        assert!(
            error
                .to_string()
                .starts_with(&format!("line {lines} is no event")),
            "{error}"
        );
    }
    let mut bytes = Log::small().bytes();
    bytes.extend(b"{\"seq\":1,\"atMs\":2,\"type\":\"\xff\"}\n");
    assert!(matches!(refused(&bytes), SessionReadError::Line { .. }));
}

#[test]
fn what_is_odd_about_a_file_is_told_with_its_line_and_the_rest_is_shown() {
    let odd = |bytes: &[u8]| {
        let session = read_session(bytes).unwrap();
        check(&render_trajectory(&session, None).unwrap());
        session.notes()
    };
    assert!(odd(&Log::small().bytes()).is_empty());

    let mut torn = Log::small().bytes();
    torn.extend("{\"seq\":12,\"atMs\":1,\"type\":\"ä".as_bytes());
    torn.pop();
    let notes = odd(&torn);
    assert_eq!(notes.len(), 1);
    assert!(
        notes[0].contains("has no end") && notes[0].starts_with("Line "),
        "{notes:?}"
    );

    let mut log = Log::named("s", None);
    log.add("novel/thing", json!({"x": 1}));
    log.add("turn/start", json!({"turn": "one"}));
    log.line("{\"seq\":7,\"atMs\":5,\"type\":\"turn/start\",\"turn\":1}");
    log.add("toString", json!({}));
    let notes = odd(&log.bytes());
    for (note, words) in notes.iter().zip([
        "Line 2: this version does not know events of the type \"novel/thing\"",
        "Line 3: this event of the type \"turn/start\" has another form",
        "Line 4: event 7 stands where event 3 should",
        "Line 4: the writer's clock went back",
    ]) {
        assert!(note.starts_with(words), "{note}");
    }
    let mut many = Log::named("s", None);
    for _ in 0..1000 {
        many.add("novel/thing", json!({}));
    }
    let notes = odd(&many.bytes());
    assert_eq!(notes.len(), 21);
    assert!(notes[20].starts_with("980 more"), "{}", notes[20]);
}

#[test]
fn every_beginning_of_a_file_gives_a_page_or_a_reason() {
    let bytes = Log::eventful().bytes();
    for end in 0..bytes.len() {
        let read = read_session(&bytes[..end]);
        if let (Ok(session), 0) = (read, end % 97) {
            check(&render_trajectory(&session, None).unwrap());
        }
    }
}

#[test]
fn events_in_any_order_give_a_page() {
    let bytes = Log::eventful().bytes();
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    // Steps through the orders are coprime to the number of lines more often than not.
    for by in 1..lines.len() {
        let mut mixed = lines[0].to_vec();
        for at in 0..lines.len() {
            mixed.extend(lines[1 + at * by % (lines.len() - 1)]);
        }
        check(&page(&mixed));
    }
}

#[test]
fn numbers_at_their_limits_give_a_page() {
    let most = u64::MAX;
    let mut log = Log::named("s", None);
    log.line(&format!(
        "{{\"seq\":{most},\"atMs\":0,\"type\":\"turn/start\",\"turn\":{most}}}"
    ));
    log.line(&format!("{{\"seq\":{most},\"atMs\":{most},\"type\":\"compaction\",\"from\":0,\"to\":{most},\"summary\":[]}}"));
    log.line(&format!("{{\"seq\":0,\"atMs\":{most},\"type\":\"assistant/message\",\"usage\":{{\"inputTokens\":{most},\"outputTokens\":{most}}}}}"));
    check(&page(&log.bytes()));
}

fn event(seq: u64, process: Option<u32>, body: EventBody) -> Event {
    Event {
        seq,
        at_us: seq * 1000,
        process,
        body,
    }
}

fn frame(seq: u64, direction: Direction, body: &serde_json::Value) -> Event {
    let body = body.to_string();
    let frame = Frame::conforming(direction, 0, body.as_bytes());
    event(seq, Some(1), EventBody::Frame(frame))
}

/// A request for a place in a document, and its answer.
fn asked(seq: u64, id: u64, uri: &str, line: u64) -> [Event; 2] {
    let params = json!({"textDocument": {"uri": uri}, "position": {"line": line, "character": 0}});
    let request =
        json!({"jsonrpc": "2.0", "id": id, "method": "textDocument/hover", "params": params});
    let answer = json!({"jsonrpc": "2.0", "id": id, "result": null});
    [
        frame(seq, Direction::ToServer, &request),
        frame(seq + 3, Direction::ToClient, &answer),
    ]
}

/// The text of the details with this id.
fn article<'a>(page: &'a str, id: &str) -> &'a str {
    let from = page
        .find(&format!("<article id=\"{id}\""))
        .expect("it is there");
    &page[from..from + page[from..].find("</article>").expect("it ends")]
}

/// Two calls that overlap, of which the recording has four frames, and two that no call caused.
fn two_calls() -> (Vec<u8>, Vec<Event>) {
    let mut log = Log::named("s", None);
    log.begin();
    let hover = |line: u64| json!({"operation": "hover", "file_path": "a b.rs", "line": line, "character": 1});
    log.call("one", "lsp", &hover(5), None);
    log.call("two", "lsp", &hover(9), None);
    log.after(20);
    log.result("two", "lsp", "nothing");
    log.result("one", "lsp", "nothing");
    let [first, first_answer] = asked(5, 1, "file:///w/a%20b.rs", 4);
    let [second, second_answer] = asked(6, 2, "file:///w/a%20b.rs", 8);
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize"});
    let exit = json!({"jsonrpc": "2.0", "method": "exit"});
    let events = vec![
        event(0, None, clock(Log::START * 1000)),
        frame(1, Direction::ToServer, &initialize),
        first,
        second,
        first_answer,
        second_answer,
        frame(90, Direction::ToServer, &exit),
    ];
    (log.bytes(), events)
}

#[test]
fn each_call_has_its_frames_in_order_with_direction_and_time() {
    let (log, events) = two_calls();
    let session = read_session(&log).unwrap();
    let page = render_trajectory(&session, Some(&events)).unwrap();
    check(&page);
    // The calls are events 3 and 4, on lines 4 and 5; both run from 0 to 21 ms.
    let (one, two) = (article(&page, "e4"), article(&page, "e5"));
    for (article, mine, other) in [(one, 1, 2), (two, 2, 1)] {
        let request = article.find(&format!("hover (request {mine})")).unwrap();
        let answer = article
            .find(&format!("answer to textDocument/hover (request {mine})"))
            .unwrap();
        assert!(request < answer);
        assert!(
            !article.contains(&format!("(request {other})")),
            "{article}"
        );
        assert!(
            article.contains("initialize (request 0) ±"),
            "it may be of either"
        );
        assert!(!article.contains("exit"));
    }
    assert!(
        one.contains("+5.000 ms") && one.contains("to server 1"),
        "{one}"
    );
    assert!(one.contains("+8.000 ms") && one.contains("from server 1"));
    let servers = &page[page.find("Language servers").unwrap()..];
    assert!(servers.contains("exit") && servers.contains("While no call ran: 1 entry"));
}

#[test]
fn a_recording_that_does_not_say_when_it_was_made_stands_apart() {
    let (log, events) = two_calls();
    let session = read_session(&log).unwrap();
    let page = render_trajectory(&session, Some(&events[1..])).unwrap();
    check(&page);
    assert!(page.contains("does not say when it was made"));
    assert!(!article(&page, "e4").contains("class=\"frames\""));
    assert!(page.contains("On the wire: 6 entries"));
}
