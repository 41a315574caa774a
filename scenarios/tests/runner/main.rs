//! The runner from outside: verdicts on subjects that behave, misbehave and die, and that nothing
//! of a case is left whatever became of it.
//!
//! This program is also the fake server, and the built-in harness on stdio, when it is started
//! with `fake-lsp` or `subject`.

#![cfg(unix)]

mod bench;
mod doubles;
mod hostile;
mod many;
mod verdicts;

use std::os::fd::AsFd as _;
use std::process::ExitCode;

use dsh_scenarios::subject::serve;
use libtest_mimic::{Arguments, Trial};
use tokio::io::BufReader;
use tokio::net::unix::pipe;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1).peekable();
    if args.next_if(|arg| arg == "fake-lsp").is_some() {
        let code = dsh_fake_lsp::run_from_args(args);
        return ExitCode::from(u8::try_from(code).unwrap_or(1));
    }
    if args.next_if(|arg| arg == "subject").is_some() {
        return ExitCode::from(u8::from(!served()));
    }
    let trials = [verdicts::trials(), hostile::trials(), many::trials()];
    libtest_mimic::run(
        &Arguments::from_args(),
        trials.into_iter().flatten().collect(),
    )
    .exit_code()
}

fn served() -> bool {
    let runtime = bench::runtime();
    let served = runtime.block_on(async {
        let stdin = std::io::stdin().as_fd().try_clone_to_owned()?;
        let stdout = std::io::stdout().as_fd().try_clone_to_owned()?;
        let input = BufReader::new(pipe::Receiver::from_owned_fd(stdin)?);
        serve(input, pipe::Sender::from_owned_fd(stdout)?)
            .await
            .map_err(std::io::Error::other)
    });
    runtime.shutdown_background();
    served.is_ok()
}

/// A test of this name. A panic in it fails it.
fn trial(name: &'static str, test: impl FnOnce() + Send + 'static) -> Trial {
    Trial::test(name, move || {
        test();
        Ok(())
    })
}
