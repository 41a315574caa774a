//! Which event may follow which: turns and steps nest, calls come from the model's message, and each
//! result has its call.

use std::collections::{HashMap, VecDeque};

use crate::{AssistantMessage, EventBody, LoggedResult, ToolCall};

/// Where the log stands: what is open, and what is owed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Order {
    /// The last turn that began; 0 before the first.
    last_turn: u64,
    turn_open: bool,
    /// The last step of the turn that began; 0 before its first.
    last_step: u64,
    step: Option<Step>,
}

/// The open step.
#[derive(Clone, Debug, Default)]
struct Step {
    requested: bool,
    answered: bool,
    owed: Owed,
}

/// The calls of the model's message that have no result yet.
#[derive(Clone, Debug, Default)]
struct Owed {
    /// Id, name, and whether the call was logged; in the model's order.
    calls: VecDeque<Owing>,
    /// How many calls were taken off the front.
    taken: usize,
    /// Where in the model's order the calls of an id stand that were not logged yet.
    uncalled: HashMap<String, VecDeque<usize>>,
    /// How many calls of an id are logged and have no result.
    running: HashMap<String, usize>,
    /// Calls that calls have made, by the id of the maker, and how many of each id.
    nested: HashMap<String, HashMap<String, usize>>,
}

#[derive(Clone, Debug)]
struct Owing {
    call: ToolCall,
    called: bool,
}

impl Order {
    /// The open turn.
    pub(crate) fn turn(&self) -> Option<u64> {
        self.turn_open.then_some(self.last_turn)
    }

    /// The open step.
    pub(crate) fn step(&self) -> Option<u64> {
        self.step.is_some().then_some(self.last_step)
    }

    pub(crate) fn next_turn(&self) -> u64 {
        self.last_turn + 1
    }

    /// The calls that are owed a result, in the model's order, and whether each was logged.
    pub(crate) fn owed(&self) -> impl Iterator<Item = (&ToolCall, bool)> {
        let calls = self.step.iter().flat_map(|step| &step.owed.calls);
        calls.map(|owing| (&owing.call, owing.called))
    }

    /// Checks that `body` may come next, and goes on to where the log stands after it. Nothing has
    /// changed after an error, which says what is wrong.
    pub(crate) fn advance(&mut self, body: &EventBody) -> Result<(), String> {
        match body {
            EventBody::TurnStart { turn } => self.turn_start(*turn),
            EventBody::TurnEnd { turn, .. } => self.turn_end(*turn),
            EventBody::StepStart { turn, step } => self.step_start(*turn, *step),
            EventBody::StepRequest { turn, step, .. } => self.request(*turn, *step),
            EventBody::StepEnd { turn, step, .. } => self.step_end(*turn, *step),
            EventBody::UserMessage { .. } | EventBody::Compaction { .. } => self.between(),
            EventBody::AssistantMessage(message) => self.answer(message),
            EventBody::ToolCall { call, parent: None } => self.owed_mut()?.call(call),
            EventBody::ToolCall {
                call,
                parent: Some(parent),
            } => self.owed_mut()?.nested_call(call, parent),
            EventBody::ToolResult(result) => self.owed_mut()?.result(result),
        }
    }

    fn turn_start(&mut self, turn: u64) -> Result<(), String> {
        if let Some(open) = self.turn() {
            return Err(format!("turn {open} has not ended"));
        }
        expect("the turn", turn, self.next_turn())?;
        self.last_turn = turn;
        self.turn_open = true;
        self.last_step = 0;
        Ok(())
    }

    fn turn_end(&mut self, turn: u64) -> Result<(), String> {
        self.in_turn(turn)?;
        if let Some(open) = self.step() {
            return Err(format!("step {open} of turn {turn} has not ended"));
        }
        self.turn_open = false;
        Ok(())
    }

    fn step_start(&mut self, turn: u64, step: u64) -> Result<(), String> {
        self.in_turn(turn)?;
        if let Some(open) = self.step() {
            return Err(format!("step {open} of turn {turn} has not ended"));
        }
        expect("the step", step, self.last_step + 1)?;
        self.last_step = step;
        self.step = Some(Step::default());
        Ok(())
    }

    fn request(&mut self, turn: u64, step: u64) -> Result<(), String> {
        let open = self.in_step(turn, step)?;
        if open.answered {
            return Err(format!(
                "step {step} of turn {turn} has its answer already; another request is another step"
            ));
        }
        open.requested = true;
        Ok(())
    }

    fn step_end(&mut self, turn: u64, step: u64) -> Result<(), String> {
        self.in_step(turn, step)?.owed.none()?;
        self.step = None;
        Ok(())
    }

    /// What the model reads as said by the user stands before a request or after all results.
    fn between(&self) -> Result<(), String> {
        let Some(step) = &self.step else {
            return Ok(());
        };
        if step.requested && !step.answered {
            return Err("the model was asked and has not answered".to_owned());
        }
        step.owed.none()
    }

    fn answer(&mut self, message: &AssistantMessage) -> Result<(), String> {
        let Some(step) = &mut self.step else {
            return Err("no step is open".to_owned());
        };
        if !step.requested {
            return Err("the model was not asked in this step".to_owned());
        }
        if step.answered {
            return Err("the model has answered in this step already".to_owned());
        }
        step.answered = true;
        for (index, call) in message.tool_calls.iter().enumerate() {
            let places = step.owed.uncalled.entry(call.id.clone()).or_default();
            places.push_back(index);
            step.owed.calls.push_back(Owing {
                call: call.clone(),
                called: false,
            });
        }
        Ok(())
    }

    fn in_turn(&self, turn: u64) -> Result<(), String> {
        match self.turn() {
            None => Err("no turn is open".to_owned()),
            Some(open) => expect("the turn", turn, open),
        }
    }

    fn in_step(&mut self, turn: u64, step: u64) -> Result<&mut Step, String> {
        self.in_turn(turn)?;
        let last = self.last_step;
        let Some(open) = &mut self.step else {
            return Err("no step is open".to_owned());
        };
        expect("the step", step, last)?;
        Ok(open)
    }

    fn owed_mut(&mut self) -> Result<&mut Owed, String> {
        match &mut self.step {
            Some(step) if step.answered => Ok(&mut step.owed),
            Some(_) => Err("the model has not answered in this step".to_owned()),
            None => Err("no step is open".to_owned()),
        }
    }
}

impl Owed {
    fn none(&self) -> Result<(), String> {
        match self.calls.front() {
            None => Ok(()),
            Some(first) => Err(format!("call {} has no result yet", quoted(&first.call.id))),
        }
    }

    fn call(&mut self, call: &ToolCall) -> Result<(), String> {
        let place = self
            .uncalled
            .get_mut(&call.id)
            .and_then(VecDeque::pop_front);
        let Some(index) = place else {
            return Err(format!(
                "the model's message asks for no call {} that was not made yet",
                quoted(&call.id)
            ));
        };
        self.calls[index - self.taken].called = true;
        *self.running.entry(call.id.clone()).or_default() += 1;
        Ok(())
    }

    fn nested_call(&mut self, call: &ToolCall, parent: &str) -> Result<(), String> {
        if !self.running.contains_key(parent) {
            return Err(format!(
                "call {}, which is said to make it, does not run",
                quoted(parent)
            ));
        }
        let made = self.nested.entry(parent.to_owned()).or_default();
        *made.entry(call.id.clone()).or_default() += 1;
        Ok(())
    }

    fn result(&mut self, result: &LoggedResult) -> Result<(), String> {
        let id = quoted(&result.call_id);
        if let Some(parent) = &result.parent {
            let made = self.nested.get_mut(parent);
            return if made.is_some_and(|made| take_one(made, &result.call_id)) {
                Ok(())
            } else {
                Err(format!("call {} has made no call {id}", quoted(parent)))
            };
        }
        match self.calls.front() {
            None => Err(format!("no call waits for a result, {id} neither")),
            Some(first) if first.call.id != result.call_id => Err(format!(
                "call {} comes first in the model's order and has no result yet",
                quoted(&first.call.id)
            )),
            Some(first) if !first.called => Err(format!("call {id} was not made")),
            Some(_) => {
                self.calls.pop_front();
                self.taken += 1;
                take_one(&mut self.running, &result.call_id);
                if !self.running.contains_key(&result.call_id) {
                    // Calls of a call that has ended come to nothing (RUN-15).
                    self.nested.remove(&result.call_id);
                }
                Ok(())
            }
        }
    }
}

/// Counts down, and forgets what has come to nothing. Whether there was something to count.
fn take_one(counts: &mut HashMap<String, usize>, key: &str) -> bool {
    match counts.get_mut(key) {
        None => false,
        Some(1) => counts.remove(key).is_some(),
        Some(count) => {
            *count -= 1;
            true
        }
    }
}

fn expect(what: &str, is: u64, should: u64) -> Result<(), String> {
    if is == should {
        Ok(())
    } else {
        Err(format!("{what} is {is}, and {should} is due"))
    }
}

/// An id as messages name it: whoever made it up may have made it long.
fn quoted(id: &str) -> String {
    match id.char_indices().nth(64) {
        None => format!("{id:?}"),
        Some((end, _)) => format!("{:?}", format!("{}…", &id[..end])),
    }
}
