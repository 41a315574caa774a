//! `dsh-conform`: the command line of the toolkit.
//!
//! This is the outer shell: it reads the environment, the clock and the arguments, and writes to
//! the terminal. What there is to know and to do lives in the crates below; nothing there looks
//! around by itself.

mod artifacts;
mod cli;
mod commands;
mod exit;
mod files;
mod forms;
mod limits;
mod lines;
mod output;
mod progress;
mod shell;
mod signals;
mod streams;

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(shell::guarded(cli::run).code())
}
