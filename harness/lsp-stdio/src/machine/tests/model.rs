//! Random lives of a machine, judged by the rules of the wire.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::*;
use super::rig::{Rig, URI, ask, full_capabilities, policy};

#[derive(Clone, Debug)]
enum Step {
    Begin,
    Cancel,
    Write(usize),
    Flush,
    /// Answer the request that was received this many back.
    Reply(usize, u8),
    Ask(u8),
    Stray,
    Timer,
    OutputClosed,
    Exited,
    InputClosed,
    Shutdown,
    ShutdownExpired,
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Begin),
        3 => Just(Step::Cancel),
        5 => (0..400_usize).prop_map(Step::Write),
        5 => Just(Step::Flush),
        8 => (0..3_usize, any::<u8>()).prop_map(|(back, kind)| Step::Reply(back, kind)),
        2 => any::<u8>().prop_map(Step::Ask),
        1 => Just(Step::Stray),
        1 => Just(Step::Timer),
        1 => Just(Step::OutputClosed),
        1 => Just(Step::Exited),
        1 => Just(Step::InputClosed),
        1 => Just(Step::Shutdown),
        1 => Just(Step::ShutdownExpired),
    ]
}

/// What the server knows, and what it would object to.
#[derive(Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are what has been seen, independent"
)]
struct Judge {
    begun: usize,
    settled: usize,
    initialized: bool,
    open: bool,
    requests: Vec<u64>,
    answered: BTreeSet<u64>,
    /// Answered while a frame was half written: a cancel that had begun must be finished.
    excused: BTreeSet<u64>,
    asked: usize,
    answers: usize,
    shut_down: bool,
    exited: bool,
}

impl Judge {
    fn look(&mut self, message: &Value) -> Result<(), String> {
        if self.exited {
            return Err(format!("after exit: {message}"));
        }
        let method = message["method"].as_str();
        if let (Some(_), Some(id)) = (method, message["id"].as_u64()) {
            if self.requests.contains(&id) {
                return Err(format!("id used twice: {message}"));
            }
            self.requests.push(id);
        }
        let handshake_over = self.answered.contains(&1);
        match method {
            None => {
                self.answers += 1;
                (self.answers <= self.asked)
                    .then_some(())
                    .ok_or("answers nothing")?;
            }
            Some("initialize") => (self.requests == [1])
                .then_some(())
                .ok_or("late initialize")?,
            Some("initialized") if handshake_over && !self.initialized => self.initialized = true,
            Some(other) if !self.initialized => return Err(format!("before initialized: {other}")),
            Some("exit") if self.shut_down => self.exited = true,
            Some(other) if self.shut_down => return Err(format!("after shutdown: {other}")),
            Some("textDocument/didOpen") if !self.open => self.open = true,
            Some("textDocument/didClose") if self.open => self.open = false,
            Some("textDocument/hover") if self.open => {
                let others = self
                    .requests
                    .iter()
                    .filter(|&id| !self.answered.contains(id))
                    .count();
                (others == 1)
                    .then_some(())
                    .ok_or("two requests in flight")?;
            }
            Some("$/cancelRequest") => {
                let id = message["params"]["id"].as_u64().ok_or("no id")?;
                let due = !self.answered.contains(&id) || self.excused.contains(&id);
                due.then_some(()).ok_or("cancels what was answered")?;
            }
            Some("shutdown") => self.shut_down = true,
            Some(other) => return Err(format!("unexpected {other}")),
        }
        Ok(())
    }
}

fn reply(kind: u8, id: u64) -> Value {
    match kind % 4 {
        _ if id == 1 => json!({"id": id, "result": full_capabilities()}),
        0 => json!({"id": id, "result": {"contents": "it"}}),
        1 => json!({"id": id, "error": {"code": -32801, "message": "stale"}}),
        2 => json!({"id": id, "result": 5}),
        _ => json!({"id": id}),
    }
}

fn step(rig: &mut Rig, judge: &mut Judge, step: &Step) {
    match step {
        Step::Begin => {
            if rig.machine.is_free()
                && rig.machine.failure().is_none()
                && !judge.shut_down
                && rig.machine.has_said_exit() == rig.machine.is_dying()
            {
                rig.machine.begin(ask(Operation::Hover));
                judge.begun += 1;
            }
        }
        Step::Cancel => rig.machine.cancel(),
        Step::Write(count) => rig.write((*count).min(rig.machine.pending().len())),
        Step::Flush => rig.flush(),
        Step::Reply(back, kind) => {
            if let Some(&id) = judge.requests.iter().rev().nth(*back) {
                // The machine looks at what it reads before it decides to cancel, and so does the
                // judge: an answer counts from the moment it was given to be read.
                if judge.answered.insert(id) && !rig.between_frames() {
                    judge.excused.insert(id);
                }
                rig.say(&reply(*kind, id));
            }
        }
        Step::Ask(number) => {
            judge.asked += 1;
            rig.request(&json!(number), "client/registerCapability");
        }
        Step::Stray => rig.say(&json!({"id": 999, "result": {"contents": URI}})),
        Step::Timer => rig.machine.timer_fired(),
        Step::OutputClosed => rig.machine.output_closed(),
        Step::Exited => rig.machine.exited(),
        Step::InputClosed => rig.machine.input_closed(None),
        Step::Shutdown => {
            if rig.machine.is_free() && rig.machine.is_serving() && !judge.shut_down {
                rig.machine.shutdown();
                // From here on the machine is leaving, whether or not it has been written.
                judge.begun = usize::MAX / 2;
            }
        }
        Step::ShutdownExpired => rig.machine.shutdown_expired(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// INI-1, OPN-1…8, CAN-3, CAN-7, SRQ-1, DIS-2, WIRE-1…5, WIRE-8: whatever happens in whatever
    /// order, what is on the wire keeps the rules, and each query is settled at most once.
    #[test]
    fn any_life_keeps_the_rules(
        steps in prop::collection::vec(any_step(), 0..60),
        retry_stale in 0..2_u32,
    ) {
        let mut rig = Rig::fresh(Policy { retry_stale, ..policy() });
        let mut judge = Judge::default();
        let mut failure = None;
        for one in steps {
            if judge.begun >= usize::MAX / 2 && matches!(one, Step::Begin | Step::Shutdown) {
                continue;
            }
            step(&mut rig, &mut judge, &one);
            for message in rig.take_wire() {
                let verdict = judge.look(&message);
                prop_assert!(verdict.is_ok(), "{:?} at {:?}", verdict, one);
            }
            judge.settled += usize::from(rig.machine.take_settled().is_some());
            prop_assert!(judge.settled <= judge.begun);
            if let Some(failure) = &failure {
                prop_assert_eq!(rig.machine.failure(), Some(failure), "the first failure stays");
                prop_assert_eq!(rig.machine.pending(), b"");
            }
            failure = rig.machine.failure().cloned();
        }
    }
}
