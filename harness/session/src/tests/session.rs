//! The session that is shared: order, listeners, forks.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};

use super::*;
use crate::{ForkError, LogSubscription, Session};

fn session() -> Session {
    Session::new(header())
}

fn append(session: &Session, bodies: impl IntoIterator<Item = EventBody>) {
    for body in bodies {
        session.append(body).unwrap();
    }
}

/// A listener that writes down the seqs it hears.
fn recorder(session: &Session) -> (Arc<Mutex<Vec<u64>>>, LogSubscription) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&heard);
    let subscription = session.subscribe(move |event| sink.lock().unwrap().push(event.seq));
    (heard, subscription)
}

/// TOOL-3.
#[test]
fn a_header_without_a_directory_keeps_it_absent() {
    let header = SessionHeader {
        id: "s1".to_owned(),
        cwd: None,
    };
    let text = serde_json::to_string(&header).unwrap();
    assert_eq!(text, r#"{"id":"s1"}"#);
    assert_eq!(
        serde_json::from_str::<SessionHeader>(&text).unwrap(),
        header
    );
}

#[test]
fn clones_are_the_same_session() {
    let session = session();
    assert!(std::ptr::eq(session.header(), session.clone().header()));
    session.clone().append(turn_start(1)).unwrap();
    assert_eq!(session.read(Log::last_seq), 1);
}

/// RUN-11: events are dated by the writer's clock, and refused ones leave no trace.
#[test]
fn an_event_is_dated_and_told_once_or_refused() {
    let now = Arc::new(AtomicU64::new(7));
    let clock = Arc::clone(&now);
    let session = Session::with_clock(header(), move || clock.load(Ordering::SeqCst));
    let (heard, _subscription) = recorder(&session);
    let event = session.append(turn_start(1)).unwrap();
    assert_eq!((event.seq, event.at_ms), (1, 7));
    now.store(9, Ordering::SeqCst);
    session.append(turn_start(1)).unwrap_err();
    assert_eq!(session.append(step_start(1, 1)).unwrap().at_ms, 9);
    assert_eq!(*heard.lock().unwrap(), [1, 2]);
    assert!(
        super::super::Session::new(header())
            .append(turn_start(1))
            .unwrap()
            .at_ms
            > 1_600_000_000_000
    );
}

#[test]
fn a_listener_hears_until_its_subscription_is_dropped() {
    let session = session();
    let (heard, subscription) = recorder(&session);
    append(&session, [turn_start(1)]);
    drop(subscription);
    append(&session, [turn_end(1)]);
    assert_eq!(*heard.lock().unwrap(), [1]);
    let (_, outlives) = recorder(&session);
    drop(session);
    drop(outlives);
}

#[test]
fn a_listener_that_panics_disturbs_nobody() {
    let session = session();
    let _first = session.subscribe(|_| panic!("broken recorder"));
    let (heard, _second) = recorder(&session);
    append(&session, [turn_start(1), turn_end(1)]);
    assert_eq!(*heard.lock().unwrap(), [1, 2]);
}

/// A listener finds the event in the log, and may log something itself, which others hear after it.
#[test]
fn a_listener_may_read_the_session_and_append_to_it() {
    let session = session();
    let own = session.clone();
    let _first = session.subscribe(move |event| {
        assert!(own.read(|log| log.event(event.seq).is_some()));
        if let EventBody::TurnStart { turn } = event.body {
            own.append(step_start(turn, 1)).unwrap();
            own.append(user("from a listener")).unwrap();
        }
    });
    let (heard, _second) = recorder(&session);
    append(&session, [turn_start(1)]);
    assert_eq!(*heard.lock().unwrap(), [1, 2, 3]);
    append(&session, [step_end(1, 1)]);
    assert_eq!(*heard.lock().unwrap(), [1, 2, 3, 4]);
}

/// RUN-11: also when many threads append, there are no gaps, and listeners hear the log's order; an
/// event has been told when its append returns.
#[test]
fn many_writers_make_one_order() {
    const WRITERS: usize = 4;
    const EACH: usize = 200;
    let session = session();
    let (heard, _subscription) = recorder(&session);
    let begin = Barrier::new(WRITERS);
    std::thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| {
                begin.wait();
                for _ in 0..EACH {
                    let seq = session.append(user("x")).unwrap().seq;
                    assert!(heard.lock().unwrap().contains(&seq));
                }
            });
        }
    });
    let all: Vec<u64> = (1..=(WRITERS * EACH) as u64).collect();
    assert_eq!(*heard.lock().unwrap(), all);
    let logged: Vec<u64> = session.read(|log| log.events().iter().map(|event| event.seq).collect());
    assert_eq!(logged, all);
}

/// RUN-11, RUN-12: the request that is sent is the one that is logged.
#[test]
fn a_request_is_logged_and_returned() {
    let session = session();
    append(&session, [turn_start(1), step_start(1, 1), user("hello")]);
    let request = session
        .append_request(1, 1, "be kind".to_owned(), vec![schema("read")])
        .unwrap();
    assert_eq!(request.messages.len(), 1);
    assert_eq!(session.read(|log| log.rebuild(4)).unwrap(), request);
    append(&session, [answer("", &[])]);
    session
        .append_request(1, 1, String::new(), vec![])
        .unwrap_err();
    assert_eq!(session.read(Log::verify), Ok(1));
}

/// RUN-11: a fork begins with the same events and goes on alone; what was open there is ended.
#[test]
fn a_fork_shares_the_beginning_and_nothing_else() {
    let session = Session::new(header());
    let whole = whole_turn();
    append(
        &session,
        whole.events().iter().map(|event| event.body.clone()),
    );
    let other = |id: &str| SessionHeader {
        id: id.to_owned(),
        cwd: None,
    };
    let fork = session.fork(7, other("f1")).unwrap();
    assert_eq!(fork.header().id, "f1");
    let (same, open) = fork.read(|log| (log.events()[..7].to_vec(), log.open_turn()));
    assert_eq!(same, session.read(|log| log.events()[..7].to_vec()));
    assert_eq!(open, None);
    append(
        &fork,
        [turn_start(2), step_start(2, 1), user("another way")],
    );
    fork.append_request(2, 1, "be kind".to_owned(), vec![schema("read")])
        .unwrap();
    assert_eq!(fork.read(Log::verify), Ok(2));
    assert_eq!(
        session.read(Log::last_seq),
        18,
        "the first knows nothing of it"
    );

    let whole = session.fork(18, other("f2")).unwrap();
    assert_eq!(whole.read(Log::last_seq), 18);
    assert_eq!(session.fork(0, other("f3")).unwrap().read(Log::last_seq), 0);
    let beyond = session.fork(19, other("f4")).unwrap_err();
    assert_eq!(
        beyond,
        ForkError::Beyond {
            up_to: 19,
            last: 18
        }
    );
    assert!(beyond.to_string().contains("last event is 18"));
}

/// A session without a store has nothing to write.
#[tokio::test]
async fn a_session_in_memory_syncs_at_once() {
    session().sync().await.unwrap();
}
