//! `tamper`: what stands between a harness and its server while a mutant is tried out.

use std::ffi::OsString;

use dsh_scenarios::mutate::{self, Spec};
use dsh_scenarios::tap;

use super::tap::{own, trampoline};
use crate::exit::Exit;
use crate::output::complain;
use crate::shell::Shell;

/// Stand between a harness and its server and tamper; `run --mutants` starts it
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What is done, as JSON
    #[arg(required_unless_present = "hold")]
    spec: Option<String>,
    /// Only keep stdin and stdout open
    #[arg(long, hide = true)]
    hold: bool,
    /// The server
    #[arg(last = true, required_unless_present = "hold")]
    command: Vec<OsString>,
}

pub(crate) fn run(args: Args) -> Exit {
    if args.hold {
        mutate::hold();
        return Exit::Fine;
    }
    let spec = args.spec.unwrap_or_default();
    let spec: Spec = match serde_json::from_str(&spec) {
        Ok(spec) => spec,
        Err(error) => {
            complain(&format!(
                "error: the first argument says nothing to do: {error}"
            ));
            return Exit::Usage;
        }
    };
    let shell = match Shell::read() {
        Ok(shell) => shell,
        Err(problem) => {
            complain(&format!("error: {problem}"));
            return Exit::NotCarriedOut;
        }
    };
    let holder = [
        shell.program.clone().into(),
        "tamper".into(),
        "--hold".into(),
    ];
    match mutate::tamper(trampoline(&shell), holder.to_vec(), spec, args.command) {
        Ok(ending) => own(tap::end(ending)),
        Err(error) => {
            complain(&format!("error: {error}"));
            Exit::NotCarriedOut
        }
    }
}
