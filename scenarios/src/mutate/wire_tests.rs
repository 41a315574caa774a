use serde_json::{Value, json};

use super::*;

fn tamperer(rules: Value) -> Tamperer {
    Tamperer::new(serde_json::from_value(rules).unwrap(), Vec::new())
}

fn living(life: Life) -> Tamperer {
    Tamperer::new(Vec::new(), vec![life])
}

fn request(id: i64, method: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {}})
}

fn answer(id: i64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": null})
}

fn notification(method: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": {}})
}

/// What arrives where, by method, or by id for answers; and whether something was applied.
fn pass(tamperer: &mut Tamperer, direction: Direction, message: &Value) -> (Vec<String>, bool) {
    let mut arrived = Vec::new();
    let mut applied = false;
    for order in tamperer.read(direction, &frame(message, None)) {
        match order {
            Order::Write(to, bytes) => {
                let text = String::from_utf8(bytes).unwrap();
                let body = text
                    .split_once("\r\n\r\n")
                    .map_or(text.as_str(), |(_, body)| body);
                let json: Value = serde_json::from_str(body).unwrap_or(json!({"method": text}));
                let what = match json["method"].as_str() {
                    Some(method) => method.to_owned(),
                    None => format!("answer {}", json["id"]),
                };
                let mark = if to == direction { "" } else { "back " };
                arrived.push(format!("{mark}{what}"));
            }
            Order::Applied => applied = true,
            other => arrived.push(format!("{other:?}")),
        }
    }
    (arrived, applied)
}

use Direction::{ToClient, ToServer};

#[test]
fn what_no_rule_wants_passes_as_it_was() {
    let mut tamperer = tamperer(json!([{"client": "hover", "do": ["drop"]}]));
    let strange = b"content-length:2\r\nX-Y: z\r\n\r\n{}garbage".as_slice();
    let mut all = Vec::new();
    for byte in strange {
        for order in tamperer.read(ToClient, &[*byte]) {
            let Order::Write(ToClient, mut bytes) = order else {
                panic!("{order:?}");
            };
            all.append(&mut bytes);
        }
    }
    // A header that is not complete yet may still become one.
    assert!(strange.starts_with(&all) && all.len() >= 30, "{all:?}");
}

#[test]
fn messages_are_dropped_doubled_and_exchanged() {
    let mut drops = tamperer(json!([{"client": "textDocument/hover", "nth": 2, "do": ["drop"]}]));
    let hover = request(1, "textDocument/hover");
    assert_eq!(
        pass(&mut drops, ToServer, &hover),
        (vec!["textDocument/hover".into()], false)
    );
    assert_eq!(pass(&mut drops, ToServer, &hover), (vec![], true));
    assert_eq!(
        pass(&mut drops, ToServer, &hover),
        (vec!["textDocument/hover".into()], false)
    );

    let mut doubles = tamperer(json!([{"client": "initialized", "do": ["duplicate"]}]));
    let twice = pass(&mut doubles, ToServer, &notification("initialized"));
    assert_eq!(
        twice,
        (vec!["initialized".into(), "initialized".into()], true)
    );

    let mut swaps = tamperer(json!([{"client": "didOpen", "do": ["swap"]}]));
    let open = notification("textDocument/didOpen");
    assert_eq!(pass(&mut swaps, ToServer, &open), (vec![], true));
    let (arrived, _) = pass(&mut swaps, ToServer, &hover);
    assert_eq!(arrived, ["textDocument/hover", "textDocument/didOpen"]);
}

#[test]
fn a_delay_is_until_another_message_has_passed() {
    let mut holds = tamperer(json!([
        {"client": "didClose", "do": [{"hold": {"client": "didOpen"}}]}
    ]));
    let close = notification("textDocument/didClose");
    assert_eq!(pass(&mut holds, ToServer, &close).0, Vec::<String>::new());
    pass(&mut holds, ToServer, &request(1, "x"));
    let (arrived, _) = pass(&mut holds, ToServer, &notification("textDocument/didOpen"));
    assert_eq!(arrived, ["textDocument/didOpen", "textDocument/didClose"]);
    pass(&mut holds, ToServer, &close);
    assert_eq!(holds.ended(ToServer).len(), 1, "nothing is lost at the end");
}

#[test]
fn answers_are_known_by_their_requests() {
    let mut edits = tamperer(json!([
        {"server_answers": "hover", "do": [{"set": {"/result": 1}}]},
        {"client_answers": "workspace/configuration", "do": ["drop"]},
    ]));
    pass(&mut edits, ToServer, &request(1, "textDocument/hover"));
    pass(&mut edits, ToClient, &request(1, "workspace/configuration"));
    assert_eq!(
        pass(&mut edits, ToClient, &answer(1)),
        (vec!["answer 1".into()], true)
    );
    assert_eq!(pass(&mut edits, ToServer, &answer(1)), (vec![], true));
    // Each is an answer to one request only.
    assert_eq!(
        pass(&mut edits, ToClient, &answer(1)),
        (vec!["answer 1".into()], false)
    );
}

#[test]
fn messages_that_nobody_sent() {
    let mut inserts = tamperer(json!([
        {"client": "hover", "do": [
            {"before": [{"message": {"jsonrpc": "2.0", "id": "${fresh}", "method": "extra"}}]},
            {"after": [{"message": {"jsonrpc": "2.0", "method": "$/cancelRequest",
                "params": {"id": "${/id}"}}}]},
        ]},
        {"client": "shutdown", "do": [{"answer": {"result": null}}]},
    ]));
    let (arrived, applied) = pass(&mut inserts, ToServer, &request(4, "textDocument/hover"));
    assert_eq!(arrived, ["extra", "textDocument/hover", "$/cancelRequest"]);
    assert!(applied);
    assert_eq!(
        pass(&mut inserts, ToClient, &answer(FRESH + 1)).0,
        Vec::<String>::new()
    );
    assert_eq!(
        pass(&mut inserts, ToServer, &request(5, "shutdown")).0,
        ["back answer 5"]
    );
}

#[test]
fn frames_are_written_in_other_ways() {
    for (header, head) in [
        (
            json!({"name": "content-length"}),
            "content-length: 37\r\n\r\n",
        ),
        (json!({"separator": ":"}), "Content-Length:37\r\n\r\n"),
        (json!({"newline": "\n"}), "Content-Length: 37\n\n"),
        (json!({"off_by": 1}), "Content-Length: 38\r\n\r\n"),
        (json!({"characters": true}), "Content-Length: 36\r\n\r\n"),
        (
            json!({"last": ["A: b"]}),
            "Content-Length: 37\r\nA: b\r\n\r\n",
        ),
    ] {
        let mut heads = tamperer(json!([{"client": "*", "do": [{"header": header}]}]));
        let message = json!({"jsonrpc": "2.0", "method": "méthode"});
        let mut orders = heads.read(ToServer, &frame(&message, None));
        let Order::Write(_, bytes) = orders.pop().unwrap() else {
            panic!("{orders:?}");
        };
        assert!(
            bytes.starts_with(head.as_bytes()),
            "{}",
            bytes.escape_ascii()
        );
        assert_eq!(orders, [Order::Applied]);
    }
}

#[test]
fn values_of_the_first_message_of_the_kind() {
    let mut stale = tamperer(json!([
        {"client": "didOpen", "do": [{"from_first": {"/params/text": "/params/text"}}]}
    ]));
    let open = |text| json!({"method": "textDocument/didOpen", "params": {"text": text}});
    assert!(!pass(&mut stale, ToServer, &open("one")).1);
    let orders = stale.read(ToServer, &frame(&open("two"), None));
    assert!(
        matches!(&orders[1], Order::Write(_, bytes) if bytes.ends_with(
        br#"{"method":"textDocument/didOpen","params":{"text":"one"}}"#))
    );
}

#[test]
fn one_id_for_all_and_back() {
    let mut same = living(Life::SameId);
    let orders = same.read(ToServer, &frame(&request(41, "a"), None));
    assert!(format!("{orders:?}").contains("Applied"));
    same.read(ToServer, &frame(&request(42, "b"), None));
    assert_eq!(pass(&mut same, ToClient, &answer(SAME)).0, ["answer 41"]);
    assert_eq!(pass(&mut same, ToClient, &answer(SAME)).0, ["answer 42"]);
}

#[test]
fn what_is_read_at_once() {
    let two = [
        frame(&notification("a"), None),
        frame(&notification("b"), None),
    ]
    .concat();
    let mut first = living(Life::FirstOfARead);
    assert_eq!(
        first.read(ToClient, &two).len(),
        2,
        "one is written, one is told of"
    );
    let mut whole = living(Life::WholeOrNothing);
    assert_eq!(whole.read(ToClient, &two).len(), 2);
    assert_eq!(whole.read(ToClient, &two[..10]), [Order::Applied]);
    assert_eq!(whole.read(ToClient, &two[10..]), []);
}

#[test]
fn bytes_that_are_no_frame_are_passed_over() {
    let mut forgives = living(Life::FramesForgiven);
    pass(&mut forgives, ToServer, &request(3, "textDocument/hover"));
    let orders = forgives.read(ToClient, b"log text\n");
    assert_eq!(orders.len(), 2);
    assert!(matches!(&orders[0], Order::Write(ToClient, bytes)
        if bytes.ends_with(br#""id":3,"result":null}"#)));
}

#[test]
fn a_new_server_is_told_what_the_old_one_was() {
    let mut replays = living(Life::Replayed);
    for message in [
        request(1, "initialize"),
        notification("initialized"),
        notification("textDocument/didOpen"),
        notification("textDocument/didClose"),
        notification("textDocument/didOpen"),
    ] {
        pass(&mut replays, ToServer, &message);
    }
    pass(&mut replays, ToClient, &answer(1));
    assert_eq!(replays.replay(), None, "nothing was asked");
    pass(&mut replays, ToServer, &request(2, "textDocument/hover"));
    let told = String::from_utf8(replays.replay().unwrap()).unwrap();
    let methods: Vec<_> = told
        .split("\"method\":\"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap())
        .collect();
    assert_eq!(
        methods,
        [
            "initialize",
            "initialized",
            "textDocument/didOpen",
            "textDocument/hover"
        ]
    );
    assert_eq!(
        pass(&mut replays, ToClient, &answer(1)).0,
        Vec::<String>::new()
    );
    assert_eq!(pass(&mut replays, ToClient, &answer(2)).0, ["answer 2"]);
}
