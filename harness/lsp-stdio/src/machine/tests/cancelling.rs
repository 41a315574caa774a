use serde_json::json;

use super::super::*;
use super::rig::{GRACE, Rig, ask, policy};

/// Sizes of `didOpen` and of the request behind it.
fn sizes() -> (usize, usize) {
    let mut rig = Rig::serving(policy());
    rig.machine.begin(ask(Operation::Hover));
    let whole = rig.machine.pending().len();
    let mut open = 0;
    while rig.methods().is_empty() {
        rig.write(1);
        open += 1;
    }
    (open, whole - open)
}

/// OPN-5, CAN-3, CAN-4: giving up at every single byte of `didOpen` and request.
///
/// While `didOpen` is not whole, the instance ends. When it is, a request that was not begun is
/// never sent; one that was is finished, and cancelled behind it.
#[test]
fn giving_up_at_every_byte() {
    let (open, request) = sizes();
    for written in 0..=open + request {
        let mut rig = Rig::serving(policy());
        rig.machine.begin(ask(Operation::Hover));
        rig.write(written);
        rig.machine.cancel();
        rig.machine.cancel();
        assert!(!rig.machine.is_asking() || rig.machine.failure().is_some());
        if written < open {
            rig.is_failed(&Failure::OpenGivenUp);
            continue;
        }
        assert_eq!(rig.machine.failure(), None);
        if written == open {
            rig.flush();
            assert_eq!(
                rig.methods(),
                ["textDocument/didOpen", "textDocument/didClose"]
            );
            assert!(rig.machine.is_free());
            assert_eq!(rig.machine.timer(), None);
        } else {
            let timer = Timer {
                reason: TimerReason::Cancelled(2),
                after: GRACE,
            };
            assert_eq!(rig.machine.timer(), Some(timer));
            rig.flush();
            let wire = rig.take_wire();
            assert_eq!(wire.len(), 3);
            assert_eq!(wire[1]["id"], json!(2));
            assert_eq!(wire[2]["method"], "$/cancelRequest");
            assert_eq!(wire[2]["params"], json!({"id": 2}));
            assert!(!rig.machine.is_free(), "the grace has begun");
        }
        assert_eq!(
            rig.machine.take_settled(),
            None,
            "nobody waits for an outcome"
        );
    }
}

/// CAN-4: the server honours the cancel, by a result or by an error: the document is closed and the
/// instance lives on.
#[test]
fn an_honoured_cancel_keeps_the_instance() {
    for honours in [
        json!({"result": null}),
        json!({"result": [5]}),
        json!({"error": {"code": -32800, "message": "cancelled"}}),
        json!({"error": {"code": -32801, "message": "stale"}}),
        json!({}),
    ] {
        let (mut rig, id) = Rig::asking(Policy {
            retry_stale: 3,
            ..policy()
        });
        rig.machine.cancel();
        rig.flush();
        assert_eq!(rig.methods(), ["$/cancelRequest"]);
        let mut message = honours;
        message["id"] = json!(id);
        rig.say(&message);
        assert_eq!(rig.machine.take_settled(), None);
        rig.flush();
        assert_eq!(rig.methods(), ["textDocument/didClose"]);
        assert!(rig.machine.is_free() && rig.machine.failure().is_none());
        assert_eq!(rig.machine.timer(), None);
        rig.machine.begin(ask(Operation::Hover));
        rig.flush();
        assert_eq!(
            rig.methods(),
            ["textDocument/didOpen", "textDocument/hover"]
        );
    }
}

/// CAN-4: the server ignores the cancel: the instance is over when the grace is.
#[test]
fn an_ignored_cancel_ends_the_instance() {
    let (mut rig, _) = Rig::asking(policy());
    rig.machine.cancel();
    rig.flush();
    rig.request(&json!(1), "window/workDoneProgress/create");
    rig.flush();
    assert_eq!(rig.methods(), ["$/cancelRequest", "response 1"]);
    rig.machine.timer_fired();
    rig.is_failed(&Failure::Unresponsive);
}

/// CAN-4, CRS-1: the server dies instead of honouring the cancel.
#[test]
fn a_death_during_the_grace_ends_it() {
    let (mut rig, _) = Rig::asking(policy());
    rig.machine.cancel();
    rig.flush();
    rig.machine.output_closed();
    assert_eq!(rig.reason(), Some(TimerReason::Dying));
    rig.machine.exited();
    rig.is_failed(&Failure::Died);
}

/// CAN-3, CAN-4: the grace also covers a pipe that takes neither the rest of the request nor the
/// cancel.
#[test]
fn a_blocked_cancel_is_bounded() {
    let (open, _) = sizes();
    let mut rig = Rig::serving(policy());
    rig.machine.begin(ask(Operation::Hover));
    rig.write(open + 1);
    rig.machine.cancel();
    rig.machine.timer_fired();
    rig.is_failed(&Failure::Unresponsive);
}

/// CAN-7: an answer that was read before the caller gave up is not cancelled.
#[test]
fn an_answered_request_is_not_cancelled() {
    let (mut rig, id) = Rig::asking(policy());
    rig.reply(id, &json!(null));
    rig.machine.cancel();
    assert!(rig.machine.take_settled().is_some());
    rig.flush();
    assert_eq!(rig.methods(), ["textDocument/didClose"]);
}

/// CAN-7: an answer that is read while the cancel waits for the pipe takes it back, unless it is
/// half written.
#[test]
fn a_cancel_that_did_not_leave_is_taken_back() {
    for written in [0, 1] {
        let (mut rig, id) = Rig::asking(policy());
        rig.machine.cancel();
        rig.write(written);
        rig.reply(id, &json!(null));
        rig.flush();
        let expected: &[&str] = match written {
            0 => &["textDocument/didClose"],
            _ => &["$/cancelRequest", "textDocument/didClose"],
        };
        assert_eq!(rig.methods(), expected);
        assert!(rig.machine.is_free());
    }
}

/// CAN-3, ERR-4: what is cancelled is the request that is in flight, not the one before it.
#[test]
fn the_latest_request_is_the_one_that_is_cancelled() {
    let (mut rig, id) = Rig::asking(Policy {
        retry_stale: 1,
        ..policy()
    });
    rig.reply_error(id, -32801);
    rig.flush();
    let again = rig.take_wire()[0]["id"].as_u64().unwrap();
    rig.machine.cancel();
    rig.flush();
    assert_eq!(rig.take_wire()[0]["params"], json!({"id": again}));
    rig.reply(id, &json!(null));
    assert!(
        !rig.machine.is_free(),
        "the first request was answered long ago"
    );
    rig.reply_error(again, -32801);
    rig.flush();
    assert_eq!(
        rig.methods(),
        ["textDocument/didClose"],
        "and is not asked for again"
    );
}

/// CAN-3, ERR-4: a repeat that has not left is never sent.
#[test]
fn a_repeat_that_did_not_leave_is_taken_back() {
    let (mut rig, id) = Rig::asking(Policy {
        retry_stale: 1,
        ..policy()
    });
    rig.reply_error(id, -32801);
    rig.machine.cancel();
    rig.flush();
    assert_eq!(rig.methods(), ["textDocument/didClose"]);
}

/// OPN-6: a `didClose` that the server does not take is bounded; the answer was settled before.
#[test]
fn a_blocked_close_is_bounded() {
    for written in [0, 1] {
        let (mut rig, id) = Rig::asking(policy());
        rig.reply(id, &json!(null));
        assert!(
            rig.machine
                .take_settled()
                .is_some_and(|outcome| outcome.is_ok())
        );
        rig.write(written);
        assert!(matches!(rig.reason(), Some(TimerReason::Closing(_))));
        rig.machine.cancel();
        assert_eq!(
            rig.machine.failure(),
            None,
            "the query is over, there is nothing to cancel"
        );
        rig.machine.timer_fired();
        rig.is_failed(&Failure::NotReading);
        assert_eq!(rig.machine.take_settled(), None);
    }
}

/// CAN-2: a timer that fires late means nothing.
#[test]
fn a_late_timer_is_nothing() {
    let (mut rig, id) = Rig::asking(policy());
    rig.machine.timer_fired();
    rig.machine.cancel();
    rig.reply(id, &json!(null));
    rig.flush();
    rig.machine.timer_fired();
    assert_eq!(rig.machine.failure(), None);
    assert!(rig.machine.is_free());
}
