//! One prompt on the command line.

use std::io::Read as _;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use dsh_harness::agent::Agent;
use dsh_harness::kernel::CancelReason;
use dsh_harness::session::{Ending, Session};
use dsh_profiles::{Answered, Host, OpenError, ending, event_line, headless, opening, progress};

use super::model::Chosen;
use super::{Args, usage};
use crate::cli::Global;
use crate::exit::Exit;
use crate::output::{Printed, complain, print, print_of_others};
use crate::shell::Shell;
use crate::signals::Interruption;

/// The most bytes of a prompt that is read from stdin.
const MOST: u64 = 16 << 20;

/// Runs the prompt; `session` is told which session it runs in as soon as that is open.
pub(super) async fn run(
    shell: &Shell,
    global: Global,
    args: &Args,
    host: Host,
    models: &Chosen,
    interruption: &Interruption,
    session: &OnceLock<Session>,
) -> Exit {
    let host = Arc::new(host);
    let work = async {
        let prompt = tokio::select! {
            biased;
            () = interruption.token.cancelled() => None,
            prompt = prompt(args) => Some(prompt),
        };
        let exit = match prompt {
            None => Exit::Interrupted,
            Some(Ok(prompt)) => match open(shell, args, &host).await {
                Ok(agent) => {
                    session.get_or_init(|| agent.session().clone());
                    answer(global, args, &host, agent, &prompt, models, interruption).await
                }
                Err(error) => {
                    complain(&format!("error: {error}"));
                    Exit::NotCarriedOut
                }
            },
            Some(Err(problem)) => usage(&problem),
        };
        match host.dispose().await {
            Ok(()) => exit,
            Err(error) => {
                complain(&format!("warning: not everything ended in order: {error}"));
                exit
            }
        }
    };
    tokio::select! {
        biased;
        () = interruption.stop.cancelled() => Exit::Interrupted,
        exit = work => exit,
    }
}

async fn prompt(args: &Args) -> Result<String, String> {
    let given = args.prompt.clone().unwrap_or_default();
    let text = if given == "-" {
        tokio::task::spawn_blocking(stdin)
            .await
            .map_err(|error| format!("the prompt cannot be read: {error}"))??
    } else {
        given
    };
    if text.trim().is_empty() {
        return Err("the prompt is empty; say what is to be done".to_owned());
    }
    Ok(text)
}

fn stdin() -> Result<String, String> {
    let mut text = Vec::new();
    std::io::stdin()
        .lock()
        .take(MOST + 1)
        .read_to_end(&mut text)
        .map_err(|error| format!("the prompt cannot be read from stdin: {error}"))?;
    if text.len() as u64 > MOST {
        return Err(format!(
            "the prompt on stdin has more than {MOST} bytes, the most that is read"
        ));
    }
    String::from_utf8(text).map_err(|_| "the prompt on stdin is not UTF-8 text".to_owned())
}

async fn open(shell: &Shell, args: &Args, host: &Host) -> Result<Agent, OpenError> {
    if let Some(file) = &args.resume {
        return host.resume_in(&shell.absolute(file)).await;
    }
    let directory = match &args.cwd {
        Some(folder) => shell.absolute(folder),
        None => shell.directory.clone(),
    };
    let directory = directory.to_string_lossy();
    match &args.session {
        Some(file) => host.open_in(&shell.absolute(file), Some(&directory)).await,
        None => host.open(Some(&directory)).await,
    }
}

/// Runs the prompt, and prints what comes of it.
async fn answer(
    global: Global,
    args: &Args,
    host: &Arc<Host>,
    agent: Agent,
    prompt: &str,
    models: &Chosen,
    interruption: &Interruption,
) -> Exit {
    let out = Arc::new(Lines::default());
    let cancel = interruption.cancel.child();
    if args.json {
        out.print(&opening(host, agent.session().header()));
    }
    let (json, quiet) = (args.json, global.quiet);
    let listener = {
        let (host, out, cancel) = (Arc::clone(host), Arc::clone(&out), cancel.clone());
        move |event: &dsh_harness::session::Event| {
            if json && !out.print(&event_line(event)) {
                // Nobody reads any more: there is nobody left to work for.
                cancel.cancel(CancelReason::Caller);
            }
            if !json
                && !quiet
                && let Some(line) = progress(event, |call| host.card(call))
            {
                complain(&line);
            }
        }
    };
    let answered = headless(&agent, prompt, listener, &cancel).await;
    let synced = agent.session().sync().await;
    drop(agent);
    if let Err(error) = synced {
        complain(&format!("error: the session was not kept whole: {error}"));
        return Exit::NotCarriedOut;
    }
    if args.json {
        out.print(&ending(&answered));
        if let Some(exit) = unread(out.ended()) {
            return exit;
        }
        return told(&answered, models);
    }
    let exit = told(&answered, models);
    if exit != Exit::Fine {
        return exit;
    }
    let printed = print_of_others(answered.answer.trim_end_matches('\n'));
    unread(printed).unwrap_or(Exit::Fine)
}

/// The status where what was printed has not arrived. An answer is not to be had a second time, so a
/// reader that is gone is told of too.
fn unread(printed: Printed) -> Option<Exit> {
    match printed {
        Printed::Whole => None,
        Printed::Unread => {
            complain("error: the answer was not read to its end: the reader of stdout is gone");
            Some(Exit::NotCarriedOut)
        }
        Printed::Failed => Some(Exit::NotCarriedOut),
    }
}

/// The status, and words on stderr where there is no answer.
fn told(answered: &Answered, models: &Chosen) -> Exit {
    match &answered.outcome {
        Ending::Completed => match models.finish() {
            Ok(()) => Exit::Fine,
            Err(problem) => {
                complain(&format!("error: {problem}"));
                Exit::DoesNotConform
            }
        },
        Ending::Rejected { reason } => {
            complain(&format!("error: the prompt was rejected: {reason}"));
            Exit::DoesNotConform
        }
        Ending::Cancelled { reason } => {
            complain(&format!("the prompt was given up: {reason}"));
            Exit::Interrupted
        }
        Ending::Failed { code, message } => {
            complain(&format!("{code}: {message}"));
            status(code)
        }
    }
}

/// Whether a turn failed since something does not conform, or could not be carried out.
fn status(code: &str) -> Exit {
    match code {
        "LOOP_PANICKED" | "MODEL_PANICKED" | "PRE_STEP_PANICKED" => Exit::OurFault,
        "MAX_STEPS" | "PRE_STEP_FAILED" => Exit::DoesNotConform,
        code if code.starts_with("SCRIPT_") => Exit::DoesNotConform,
        _ => Exit::NotCarriedOut,
    }
}

/// Lines on stdout, until nobody reads any more or it cannot be written.
#[derive(Default)]
struct Lines(Mutex<Option<Printed>>);

impl Lines {
    /// Prints a line; false once that is not possible any more.
    fn print(&self, line: &str) -> bool {
        let mut ended = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if ended.is_none() {
            *ended = Some(print(line)).filter(|printed| *printed != Printed::Whole);
        }
        ended.is_none()
    }

    /// What became of them.
    fn ended(&self) -> Printed {
        let ended = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ended.unwrap_or(Printed::Whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_conform_is_told_from_what_could_not_be_carried_out() {
        for (code, exit) in [
            ("SCRIPT_MISMATCH", Exit::DoesNotConform),
            ("SCRIPT_EXHAUSTED", Exit::DoesNotConform),
            ("MAX_STEPS", Exit::DoesNotConform),
            ("MODEL_STREAM_CUT", Exit::NotCarriedOut),
            ("SESSION_STORE", Exit::NotCarriedOut),
            ("LOOP_PANICKED", Exit::OurFault),
        ] {
            assert_eq!(status(code), exit, "{code}");
        }
    }
}
