//! What a step costs, over what the session it is logged in costs.
//!
//! One side runs turns of one step, with the scripted model and no tools; the other one logs the same
//! events in a session of its own and makes the same requests. Blocks of both alternate within one
//! run, so that what counts is the difference and not the machine.
//!
//! ```text
//! cargo bench -p dsh-agent --bench step
//! ```

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use dsh_agent::{AgentService, LoopOptions, ScriptedModel, ScriptedReply, SystemPrompt};
use dsh_kernel::{Cancel, EventBus};
use dsh_session::{
    AssistantMessage, ContentBlock, Ending, EventBody, MessageSource, Session, SessionHeader,
};
use dsh_tools::ToolRegistry;
use tokio::runtime::{Builder, Runtime};

/// What a step may cost more.
const LIMIT: Duration = Duration::from_micros(200);
const ROUNDS: usize = 15;
const ANSWER: &str = "It says hello.";

fn main() {
    // `cargo test --benches` runs this with `--test`: nothing is measured then.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let runtime = Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    println!(
        "{:<34} {:>10} {:>10} {:>10} {:>7}  at most",
        "", "session", "step", "more", "ratio"
    );
    for turns in [1, 20, 200] {
        let (mut of_session, mut of_step) = (Duration::MAX, Duration::MAX);
        for _ in 0..ROUNDS {
            of_session = of_session.min(logged(turns));
            of_step = of_step.min(run(&runtime, turns));
        }
        let each = u32::try_from(turns).expect("a small number");
        let (of_session, of_step) = (of_session / each, of_step / each);
        let more = of_step.saturating_sub(of_session);
        println!(
            "{:<34} {:>7.1} µs {:>7.1} µs {:>7.1} µs {:>6.2}x  {} µs{}",
            format!("step of a session of {turns} turns"),
            micros(of_session),
            micros(of_step),
            micros(more),
            of_step.as_secs_f64() / of_session.as_secs_f64(),
            LIMIT.as_micros(),
            if more > LIMIT { "  OVER" } else { "" }
        );
    }
}

fn session() -> Session {
    Session::new(SessionHeader {
        id: "s".to_owned(),
        cwd: None,
    })
}

/// The time of turns of one step.
fn run(runtime: &Runtime, turns: u64) -> Duration {
    let bus = EventBus::new();
    let service = AgentService::new(ToolRegistry::new(bus.clone()), SystemPrompt::new(), bus);
    let replies = (0..turns).map(|_| ScriptedReply::text(ANSWER)).collect();
    let model = Arc::new(ScriptedModel::from_replies(replies).expect("a script"));
    let agent = service.open(session(), model.clone(), LoopOptions::default());
    let cancel = Cancel::new();
    let start = Instant::now();
    runtime.block_on(async {
        for _ in 0..turns {
            agent.prompt("hi", &cancel).await.expect("it completes");
        }
    });
    let elapsed = start.elapsed();
    model.finish().expect("every reply was given");
    elapsed
}

/// The time that the session takes for the same log and the same requests.
fn logged(turns: u64) -> Duration {
    let session = session();
    let step = 1;
    let outcome = Ending::Completed;
    let start = Instant::now();
    for turn in 1..=turns {
        let log = |body| session.append(body).expect("it follows");
        log(EventBody::TurnStart { turn });
        log(EventBody::StepStart { turn, step });
        log(EventBody::UserMessage {
            source: MessageSource::prompt(),
            content: vec![ContentBlock::text("hi")],
        });
        session
            .append_request(turn, step, String::new(), Vec::new())
            .expect("it follows");
        log(EventBody::AssistantMessage(AssistantMessage {
            text: ANSWER.to_owned(),
            ..AssistantMessage::default()
        }));
        let outcome = outcome.clone();
        log(EventBody::StepEnd {
            turn,
            step,
            outcome: outcome.clone(),
        });
        log(EventBody::TurnEnd { turn, outcome });
    }
    start.elapsed()
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
