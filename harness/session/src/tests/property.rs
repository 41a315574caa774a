//! Any session that can come about.

use std::collections::HashMap;
use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::Message;
use crate::limit;
use crate::store::decode;

/// Something that may be tried; what it comes to depends on where the log stands.
#[derive(Clone, Debug)]
struct Move {
    choice: u8,
    /// For what has numbers.
    number: u8,
    words: String,
    value: Value,
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((any::<String>(), inner), 0..4)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

fn any_move() -> impl Strategy<Value = Move> {
    (any::<u8>(), any::<u8>(), ".{0,12}", any_json()).prop_map(|(choice, number, words, value)| {
        Move {
            choice,
            number,
            words,
            value,
        }
    })
}

fn moves(most: usize) -> impl Strategy<Value = Vec<Move>> {
    proptest::collection::vec(any_move(), 1..most)
}

/// How something ended.
fn ending(made: &Move) -> Ending {
    match made.number % 4 {
        0 => Ending::Completed,
        1 => Ending::Rejected {
            reason: made.words.clone(),
        },
        2 => Ending::Cancelled {
            reason: made.words.clone(),
        },
        _ => Ending::Failed {
            code: "X".to_owned(),
            message: made.words.clone(),
        },
    }
}

/// A body that mostly may come next. What is out of place is refused, which is tried as well.
fn body(log: &mut Log, made: &Move) -> EventBody {
    let turn = log.open_turn().unwrap_or(log.next_turn());
    let step = log.open_step().unwrap_or(1);
    let number = u64::from(made.number);
    let call_of = |id: String| ToolCall {
        id,
        name: made.words.clone(),
        arguments: made.value.clone(),
    };
    let unanswered = log.unanswered();
    match made.choice % 13 {
        0 => EventBody::TurnStart { turn },
        1 => EventBody::TurnEnd {
            turn,
            outcome: ending(made),
        },
        2 => {
            let steps = log
                .events()
                .iter()
                .rev()
                .find_map(|event| match event.body {
                    EventBody::StepStart { turn: of, step } if of == turn => Some(step),
                    _ => None,
                });
            EventBody::StepStart {
                turn,
                step: steps.unwrap_or(0) + 1,
            }
        }
        3 | 4 => {
            let system = format!("system {}", made.number % 2);
            let tools = vec![schema("read"); usize::from(made.number % 3)];
            log.request(turn, step, system, tools).1
        }
        5 => EventBody::StepEnd {
            turn,
            step,
            outcome: ending(made),
        },
        6 => EventBody::UserMessage {
            source: source_with("value", made.value.clone()),
            content: text(&made.words),
        },
        7 | 8 => EventBody::AssistantMessage(AssistantMessage {
            text: made.words.clone(),
            reasoning: (made.number.is_multiple_of(2)).then(|| made.words.clone()),
            tool_calls: (0..made.number % 4)
                .map(|index| call_of(format!("c{}", index % 2)))
                .collect(),
            usage: None,
        }),
        9 => {
            let index = usize::from(made.number) % unanswered.len().max(1);
            let call = unanswered.get(index).cloned();
            EventBody::ToolCall {
                call: call.unwrap_or_else(|| call_of("c0".to_owned())),
                parent: None,
            }
        }
        10 => EventBody::ToolCall {
            call: call_of("n".to_owned()),
            parent: Some("c0".to_owned()),
        },
        11 => EventBody::ToolResult(LoggedResult {
            call_id: unanswered
                .first()
                .map_or("n".to_owned(), |call| call.id.clone()),
            name: made.words.clone(),
            is_error: made.number.is_multiple_of(2),
            code: None,
            value: Some(made.value.clone()),
            content: text(&made.words),
            parent: None,
        }),
        _ => EventBody::Compaction {
            from: number % 16 + 1,
            to: number / 4 + 1,
            summary: text(&made.words),
        },
    }
}

/// The log that some moves come to, and how many were refused. A refused one has changed nothing.
fn play(moves: &[Move]) -> Log {
    let mut log = Log::new();
    for made in moves {
        let before = log.clone();
        let body = body(&mut log, made);
        if log.push(body, u64::from(made.number)).is_err() {
            assert_eq!(log.events(), before.events());
            assert_eq!(surface(&log), surface(&before));
            assert_eq!(log.closing(), before.closing());
        }
    }
    log
}

/// What the model sees, told another way: a list from which compaction takes pieces.
fn reference(log: &Log) -> Vec<Message> {
    let mut seen: Vec<(u64, Message)> = Vec::new();
    for event in log.events() {
        let at = match &event.body {
            EventBody::Compaction { from, to, .. } => {
                seen.retain(|(at, _)| at < from || at > to);
                *from
            }
            _ => event.seq,
        };
        if let Some(message) = Message::of(event) {
            let place = seen.partition_point(|(other, _)| *other < at);
            seen.insert(place, (at, message));
        }
    }
    seen.into_iter().map(|(_, message)| message).collect()
}

/// Every tool message stands behind the message that called, and every call is answered before
/// anything else is said.
fn assert_valid(messages: &[Message]) {
    let mut owed: HashMap<&str, usize> = HashMap::new();
    for message in messages {
        match message {
            Message::Tool { call_id, .. } => {
                let count = owed.get_mut(call_id.as_str()).expect("it was called");
                *count -= 1;
                owed.retain(|_, count| *count > 0);
            }
            other => {
                assert!(owed.is_empty(), "{owed:?} have no result");
                if let Message::Assistant { tool_calls, .. } = other {
                    for call in tool_calls {
                        *owed.entry(&call.id).or_default() += 1;
                    }
                }
            }
        }
    }
    assert!(owed.is_empty(), "{owed:?} have no result");
}

fn load(file: &[u8]) -> decode::Loaded {
    decode::read(Path::new("s.jsonl"), &mut &file[..]).unwrap()
}

proptest! {
    /// RUN-11: seqs have no gaps, what is saved is loaded, and each request is the same again.
    #[test]
    fn what_is_saved_is_loaded_and_replayed_to_the_same_requests(moves in moves(60)) {
        let log = play(&moves);
        for (index, event) in log.events().iter().enumerate() {
            prop_assert_eq!(event.seq, index as u64 + 1);
            // What decides whether an event is small enough never says less than it takes.
            prop_assert!(limit::most(event).unwrap() >= line_of(event).len());
        }
        let file = file_of(&log);
        let loaded = load(&file);
        prop_assert_eq!(loaded.log.events(), log.events());
        prop_assert_eq!(loaded.log.messages(), log.messages());
        prop_assert_eq!(loaded.log.closing(), log.closing());
        prop_assert_eq!((loaded.length, loaded.torn), (file.len() as u64, 0));
        prop_assert_eq!(&file_of(&loaded.log), &file);
        let requests = log.events().iter().filter(|event| event.body.kind() == "step/request");
        prop_assert_eq!(loaded.log.verify(), Ok(requests.clone().count() as u64));
        for event in requests {
            let request = loaded.log.rebuild(event.seq).unwrap();
            let EventBody::StepRequest { sha1, .. } = &event.body else { unreachable!() };
            prop_assert_eq!(&request.sha1(), sha1);
            assert_valid(&request.messages);
        }
    }

    /// RUN-16: the surface is what a list would be from which compaction takes pieces.
    #[test]
    fn the_surface_is_as_a_plain_list_has_it(moves in moves(80)) {
        let log = play(&moves);
        prop_assert_eq!(log.messages(), reference(&log));
    }

    /// RUN-11: wherever a session is left, ending what is open makes a valid request of it.
    #[test]
    fn what_a_crash_left_makes_a_valid_request(moves in moves(60)) {
        let mut log = play(&moves);
        for body in log.closing() {
            log.push(body, 0).unwrap();
        }
        assert_valid(&log.messages());
        let turn = log.next_turn();
        push(&mut log, [turn_start(turn), step_start(turn, 1)]);
        ask(&mut log);
        log.verify().unwrap();
    }

    /// RUN-11: a last line that was torn at any byte is no line, and everything before it is there.
    #[test]
    fn a_line_torn_at_any_byte_is_cut_off(moves in moves(25)) {
        let mut log = play(&moves);
        let turn = log.open_turn();
        push(&mut log, if turn.is_some() { vec![] } else { vec![user("at least one")] });
        prop_assume!(log.last_seq() > 0);
        let file = file_of(&log);
        let (last, before) = log.events().split_last().unwrap();
        let begin = file.len() - line_of(last).len();
        for end in begin..file.len() {
            let loaded = load(&file[..end]);
            prop_assert_eq!(loaded.log.events(), before);
            prop_assert_eq!(loaded.length, begin as u64);
            prop_assert_eq!(loaded.torn, (end - begin) as u64);
        }
    }

    /// RUN-11: whatever a file holds, it is loaded or refused in words of bounded length.
    #[test]
    fn any_bytes_are_judged_without_a_panic(
        moves in moves(12),
        at in any::<proptest::sample::Index>(),
        junk in proptest::collection::vec(any::<u8>(), 0..8),
        cut in 0_usize..8,
    ) {
        let mut file = file_of(&play(&moves));
        let begin = at.index(file.len());
        let end = (begin + cut).min(file.len());
        file.splice(begin..end, junk);
        if let Err(error) = decode::read(Path::new("s.jsonl"), &mut &file[..]) {
            let message = error.to_string();
            prop_assert!(message.starts_with("s.jsonl:"), "{}", message);
            prop_assert!(message.len() < 2_000, "{}", message);
        }
    }
}
