//! The fake server as a program of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    let code = dsh_fake_lsp::run_from_args(std::env::args_os().skip(1));
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
