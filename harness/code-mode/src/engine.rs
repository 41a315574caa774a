//! One script in one interpreter, on the thread that calls [`run`].
//!
//! The interpreter has the language and nothing else: no module loader, no timers, no files, no
//! network. What a script can reach outside of itself is two functions, `dispatch` and `print`, which
//! the prelude dresses up as `tools` and `console`. Calls go out through a channel, their results come
//! in through another one, on which the thread waits while the script has nothing to do.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Instant;

use rquickjs::context::{EvalOptions, intrinsic};
use rquickjs::promise::PromiseState;
use rquickjs::{Context, Ctx, Error, Exception, Function, Object, Promise, Runtime, Value};
use tokio::sync::mpsc::UnboundedSender;

use crate::config::{CodeModeConfig, size};
use crate::names::Mounted;
use crate::text::{self, Console, cut};

const PRELUDE: &str = include_str!("prelude.js");

/// Memory on top of a script's own that has to be free between its jobs. An interpreter that has not
/// even the memory for the next job drops it, and says nothing; so the end is looked for before.
const ROOM: usize = 128 << 10;

/// How many jobs are run between two looks at the memory. What so many jobs keep without an
/// allocation of a size that fails by itself is far below [`ROOM`].
const JOBS: usize = 32;

/// The parts of the language that a script has. Left out: the clock of high resolution.
type Language = (
    intrinsic::Date,
    intrinsic::Eval,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::Proxy,
    intrinsic::MapSet,
    intrinsic::TypedArrays,
    intrinsic::Promise,
    intrinsic::WeakRef,
);

/// What a script is run with.
pub(crate) struct Job {
    pub(crate) code: String,
    pub(crate) mounted: Vec<Mounted>,
    pub(crate) config: CodeModeConfig,
    pub(crate) deadline: Instant,
    /// Set, from outside, when the script is to end at once.
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) calls: UnboundedSender<Request>,
    pub(crate) replies: Receiver<Reply>,
}

/// A call that the script makes.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) number: u32,
    /// The tool's own name.
    pub(crate) name: String,
    pub(crate) arguments: serde_json::Value,
}

/// What comes back to the script.
#[derive(Debug)]
pub(crate) enum Reply {
    /// A call has ended.
    Settled {
        number: u32,
        outcome: Result<serde_json::Value, Failure>,
    },
    /// Look at [`Job::stop`].
    Wake,
}

/// A call that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: String,
    pub(crate) message: String,
}

/// What became of a script.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) ended: Ended,
    pub(crate) console: String,
    pub(crate) console_dropped: u64,
    pub(crate) calls: u32,
    /// Calls that had no result when the script returned.
    pub(crate) unawaited: u32,
    /// The first failure among those.
    pub(crate) unawaited_failure: Option<Failure>,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Ended {
    Returned(Returned),
    /// It is no script.
    Syntax(String),
    Threw(String),
    OutOfMemory,
    /// It threw null, or the interpreter did, having no memory left for an error.
    ThrewNull,
    StackOverflow(String),
    /// It returned what is no JSON value.
    NoValue(String),
    /// It waits for something that will never be.
    Deadlock,
    TimedOut,
    Stopped,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Returned {
    /// `undefined`, or what is left out of JSON: a function, a symbol.
    Nothing,
    Value(serde_json::Value),
    /// The beginning of its JSON text, and how long that is.
    Cut {
        text: String,
        bytes: usize,
    },
}

/// Why a script was interrupted.
struct Halt {
    deadline: Instant,
    stop: Arc<AtomicBool>,
    hit: Cell<Option<Hit>>,
}

#[derive(Clone, Copy)]
enum Hit {
    TimedOut,
    Stopped,
}

impl Halt {
    fn check(&self) -> bool {
        if self.hit.get().is_none() {
            if self.stop.load(Ordering::Relaxed) {
                self.hit.set(Some(Hit::Stopped));
            } else if Instant::now() >= self.deadline {
                self.hit.set(Some(Hit::TimedOut));
            }
        }
        self.hit.get().is_some()
    }
}

/// What the native functions and the loop share.
struct Shared {
    console: RefCell<Console>,
    calls: Cell<u32>,
    outstanding: Cell<u32>,
    /// Set once the script has returned: it makes no more calls.
    closed: Cell<bool>,
}

/// Runs the script to its end.
pub(crate) fn run(job: Job) -> Report {
    let shared = Rc::new(Shared {
        console: RefCell::new(Console::new(size(job.config.max_console_bytes))),
        calls: Cell::new(0),
        outstanding: Cell::new(0),
        closed: Cell::new(false),
    });
    let halt = Rc::new(Halt {
        deadline: job.deadline,
        stop: Arc::clone(&job.stop),
        hit: Cell::new(None),
    });
    let mut unawaited = Unawaited::default();
    let ended = interpret(job, &shared, &halt, &mut unawaited);
    let ended = match halt.hit.get() {
        Some(Hit::TimedOut) => Ended::TimedOut,
        Some(Hit::Stopped) => Ended::Stopped,
        // The interpreter could not even be set up.
        None => ended.unwrap_or(Ended::OutOfMemory),
    };
    let (console, console_dropped) = shared.console.borrow_mut().take();
    Report {
        ended,
        console,
        console_dropped,
        calls: shared.calls.get(),
        unawaited: unawaited.count,
        unawaited_failure: unawaited.failure,
    }
}

#[derive(Default)]
struct Unawaited {
    count: u32,
    failure: Option<Failure>,
}

fn interpret(
    job: Job,
    shared: &Rc<Shared>,
    halt: &Rc<Halt>,
    unawaited: &mut Unawaited,
) -> rquickjs::Result<Ended> {
    let runtime = Runtime::new()?;
    runtime.set_memory_limit(size(job.config.memory_bytes) + ROOM);
    runtime.set_max_stack_size(size(job.config.stack_bytes));
    let watched = Rc::clone(halt);
    runtime.set_interrupt_handler(Some(Box::new(move || watched.check())));
    let context = Context::custom::<Language>(&runtime)?;
    context.with(|ctx| {
        let script = Script::new(&ctx, job, shared, halt)?;
        Ok(script.run(unawaited))
    })
}

struct Script<'js> {
    ctx: Ctx<'js>,
    code: String,
    max_result_bytes: usize,
    replies: Receiver<Reply>,
    shared: Rc<Shared>,
    halt: Rc<Halt>,
    settle: Function<'js>,
    explain: Function<'js>,
    /// Whether so many bytes are to be had.
    has_room: Function<'js>,
    /// Set when the outcome of a call could not be handed to the script.
    lost: Cell<bool>,
}

impl<'js> Script<'js> {
    fn new(
        ctx: &Ctx<'js>,
        job: Job,
        shared: &Rc<Shared>,
        halt: &Rc<Halt>,
    ) -> rquickjs::Result<Self> {
        let table = serde_json::to_string(&job.mounted).unwrap_or_default();
        let table = ctx.json_parse(table)?;
        let printing = Rc::clone(shared);
        let print = Function::new(ctx.clone(), move |line: String| {
            printing.console.borrow_mut().print(&line);
        })?;
        let dispatch = dispatcher(ctx, job.mounted, job.config.max_calls, job.calls, shared)?;
        let prelude: Function<'js> = ctx.eval_with_options(PRELUDE, options("prelude.js"))?;
        let bound: Object<'js> = prelude.call((dispatch, print, table))?;
        Ok(Self {
            ctx: ctx.clone(),
            code: job.code,
            max_result_bytes: size(job.config.max_result_bytes),
            replies: job.replies,
            shared: Rc::clone(shared),
            halt: Rc::clone(halt),
            settle: bound.get("settle")?,
            explain: bound.get("explain")?,
            has_room: bound.get("hasRoom")?,
            lost: Cell::new(false),
        })
    }

    fn run(&self, unawaited: &mut Unawaited) -> Ended {
        // The first line is the script's own, so that places in it are right.
        let source = format!("(async () => {{{}\n}})()", self.code);
        let begun = self
            .ctx
            .eval_with_options::<Value<'js>, _>(source, options("script.js"));
        let main = match begun {
            Ok(value) => match Promise::from_value(value) {
                Ok(main) => main,
                Err(_) => return Ended::Syntax("its braces do not match".to_owned()),
            },
            Err(error) => return self.failure(&error, Ended::Syntax),
        };
        loop {
            if let Err(ended) = self.jobs() {
                return ended;
            }
            if main.state() != PromiseState::Pending {
                return self.ending(&main, unawaited);
            }
            if self.shared.outstanding.get() == 0 {
                return if self.lost.get() {
                    Ended::OutOfMemory
                } else {
                    Ended::Deadlock
                };
            }
            self.wait();
        }
    }

    /// Runs the jobs that are pending, and those that they add, until none is left or a limit is
    /// reached.
    fn jobs(&self) -> Result<(), Ended> {
        loop {
            for _ in 0..JOBS {
                if self.halt.check() {
                    return Err(Ended::Stopped);
                }
                if !self.ctx.execute_pending_job() {
                    return Ok(());
                }
            }
            // A look that fails was interrupted, or there is no memory for the look itself.
            if !self.has_room.call((ROOM,)).unwrap_or(false) {
                drop(self.ctx.catch());
                return Err(Ended::OutOfMemory);
            }
        }
    }

    /// What the script ended with. After a success, calls that it did not wait for are waited for:
    /// their effects, and what stages add to them, are part of its result.
    fn ending(&self, main: &Promise<'js>, unawaited: &mut Unawaited) -> Ended {
        self.shared.closed.set(true);
        let returned = match main.result::<Value<'js>>() {
            Some(Ok(value)) => match self.returned(value) {
                Ok(returned) => returned,
                Err(ended) => return ended,
            },
            Some(Err(error)) => return self.failure(&error, Ended::Threw),
            None => return Ended::Deadlock,
        };
        unawaited.count = self.shared.outstanding.get();
        while self.shared.outstanding.get() > 0 && !self.halt.check() {
            if let Some(failure) = self.wait() {
                unawaited.failure.get_or_insert(failure);
            }
            if let Err(ended) = self.jobs() {
                return ended;
            }
        }
        Ended::Returned(returned)
    }

    /// The value as JSON. This runs code of the script's: getters, `toJSON`.
    fn returned(&self, value: Value<'js>) -> Result<Returned, Ended> {
        let text = match self.ctx.json_stringify(value) {
            Ok(Some(text)) => text.to_string(),
            Ok(None) => return Ok(Returned::Nothing),
            Err(error) => return Err(self.failure(&error, Ended::NoValue)),
        };
        let text = text.map_err(|error| Ended::NoValue(error.to_string()))?;
        if text.len() > self.max_result_bytes {
            return Ok(Returned::Cut {
                text: cut(&text, self.max_result_bytes).to_owned(),
                bytes: text.len(),
            });
        }
        match text::parse(&text) {
            Ok(value) => Ok(Returned::Value(value)),
            Err(error) => Err(Ended::NoValue(error.to_string())),
        }
    }

    /// Waits for the next reply and hands it in. The failure, if it is one.
    fn wait(&self) -> Option<Failure> {
        let left = self.halt.deadline.saturating_duration_since(Instant::now());
        let (number, outcome) = match self.replies.recv_timeout(left) {
            Ok(Reply::Settled { number, outcome }) => (number, outcome),
            Ok(Reply::Wake) | Err(RecvTimeoutError::Timeout) => return None,
            Err(RecvTimeoutError::Disconnected) => {
                self.halt.hit.set(Some(Hit::Stopped));
                return None;
            }
        };
        self.shared
            .outstanding
            .set(self.shared.outstanding.get() - 1);
        match outcome {
            Ok(value) => {
                let parsed = self.ctx.json_parse(value.to_string());
                let settled =
                    parsed.and_then(|value| self.settle.call::<_, ()>((number, false, value, "")));
                if let Err(error) = settled {
                    // Most likely there is no memory for the value; the script is told.
                    let told = match error {
                        Error::Exception => self.explained(self.ctx.catch()),
                        other => other.to_string(),
                    };
                    let failed = self
                        .settle
                        .call::<_, ()>((number, true, told.as_str(), RESULT));
                    self.forget(&failed);
                }
                None
            }
            Err(failure) => {
                let failed = self.settle.call::<_, ()>((
                    number,
                    true,
                    failure.message.as_str(),
                    failure.code.as_str(),
                ));
                self.forget(&failed);
                Some(failure)
            }
        }
    }

    /// A failure of the prelude's own can only be one of memory; where the script then waits in vain
    /// that is what it is told.
    fn forget(&self, outcome: &rquickjs::Result<()>) {
        if outcome.is_err() {
            drop(self.ctx.catch());
            self.lost.set(true);
        }
    }

    fn failure(&self, error: &Error, otherwise: impl FnOnce(String) -> Ended) -> Ended {
        let text = match error {
            Error::Allocation => return Ended::OutOfMemory,
            Error::Exception => {
                let thrown = self.ctx.catch();
                if thrown.is_null() {
                    return Ended::ThrewNull;
                }
                self.explained(thrown)
            }
            other => other.to_string(),
        };
        // The interpreter's own words; a script that throws the same is told the same.
        if text.starts_with("InternalError: out of memory") {
            return Ended::OutOfMemory;
        }
        if text.starts_with("RangeError: Maximum call stack size exceeded")
            || text.starts_with("InternalError: stack overflow")
        {
            return Ended::StackOverflow(text);
        }
        otherwise(text)
    }

    /// What was thrown, in words; this runs code of the script's.
    fn explained(&self, thrown: Value<'js>) -> String {
        if let Ok(text) = self.explain.call::<_, String>((thrown,)) {
            text.trim_end().to_owned()
        } else {
            drop(self.ctx.catch());
            "[an error that cannot be shown]".to_owned()
        }
    }
}

/// The code of a result for which the script has no memory.
const RESULT: &str = "SCRIPT_OUT_OF_MEMORY";

fn options(name: &str) -> EvalOptions {
    let mut options = EvalOptions::default();
    options.global = true;
    options.strict = true;
    options.filename = Some(name.to_owned());
    options
}

/// The function by which calls leave the interpreter. It returns the call's number.
fn dispatcher<'js>(
    ctx: &Ctx<'js>,
    mounted: Vec<Mounted>,
    max_calls: u32,
    calls: UnboundedSender<Request>,
    shared: &Rc<Shared>,
) -> rquickjs::Result<Function<'js>> {
    let shared = Rc::clone(shared);
    Function::new(
        ctx.clone(),
        move |ctx: Ctx<'js>, index: usize, arguments: String| -> rquickjs::Result<u32> {
            let refuse = |message: &str| Err(Exception::throw_message(&ctx, message));
            if shared.closed.get() {
                return refuse("the script has returned and makes no more calls");
            }
            let number = shared.calls.get();
            if number == max_calls {
                return refuse(&format!(
                    "a script makes at most {max_calls} calls; do the rest in another one"
                ));
            }
            let Some(tool) = mounted.get(index) else {
                return refuse("there is no such tool");
            };
            let arguments = match text::parse(&arguments) {
                Ok(arguments) => arguments,
                Err(error) => {
                    return refuse(&format!("the arguments of tools.{}: {error}", tool.id));
                }
            };
            let request = Request {
                number,
                name: tool.name.clone(),
                arguments,
            };
            if calls.send(request).is_err() {
                return refuse("the call of the script is over");
            }
            shared.calls.set(number + 1);
            shared.outstanding.set(shared.outstanding.get() + 1);
            Ok(number)
        },
    )
}
