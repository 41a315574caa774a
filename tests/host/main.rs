//! The host over the fake server: each behaviour the contract asks of it, through real processes.
//!
//! A test says what the server does (`fake`), what is asked (`Bench`), and what must have been on
//! the wire when all is over (`Over`). What must hold in every test is in `support::rules` and is
//! checked at the end of each: the strict framing of all that was written, the order of messages,
//! and that no process, pipe, task or file is left.
#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "all of it is tests: what fails here fails a test, and is shown"
)]

mod support;

mod cancel;
mod config;
mod crash;
mod dispose;
mod env;
mod errors;
mod framing;
mod handshake;
mod open;
mod requests;
mod results;
mod runtime;
mod servers;
mod workspace;
