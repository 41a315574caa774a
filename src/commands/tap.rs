//! `tap`.

use std::ffi::OsString;
use std::path::PathBuf;

use dsh_scenarios::tap::{self, Exec, Options};

use crate::exit::Exit;
use crate::output::complain;
use crate::shell::Shell;

/// Stand between a client and its language server, and record what passes
///
/// Configure this as the command of the server. Bytes, stderr and signals are passed on unchanged
/// and at once, and the exit status is the server's. The recording is judged by `audit`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A recording that is there is gone on with: a client that starts its server
several times, or several at once, makes one recording with several processes.
%p in FILE stands for the process id, where one file each is wanted.

Exit status: that of the server (death by a signal included); 126 or 127 where
it cannot be started; 3 where the recording cannot be begun.

Examples:
  dsh-conform tap --log t.jsonl -- typescript-language-server --stdio
  dsh-conform audit t.jsonl")]
pub(crate) struct Args {
    /// Where the recording goes; by default a new file in the folder for temporary files, named
    /// on stderr
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Become the command, bound to the life of this process
    #[arg(long, hide = true, value_name = "PID")]
    exec_under: Option<u32>,
    /// Start the command where nothing finds it
    #[arg(long, hide = true)]
    adrift: bool,
    /// Start the command there
    #[arg(long = "in", hide = true, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// The server
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

pub(crate) fn run(args: Args) -> Exit {
    if args.exec_under.is_some() || args.adrift || args.directory.is_some() {
        let how = Exec {
            under: args.exec_under,
            adrift: args.adrift,
            directory: args.directory,
        };
        return own(tap::exec(&how, &args.command));
    }
    let shell = match Shell::read() {
        Ok(shell) => shell,
        Err(problem) => {
            complain(&format!("error: {problem}"));
            return Exit::NotCarriedOut;
        }
    };
    let log = args.log.unwrap_or_else(|| {
        let path = shell.temporary.join("dsh-conform-tap-%p.jsonl");
        let told = path
            .display()
            .to_string()
            .replace("%p", &std::process::id().to_string());
        complain(&format!("dsh-conform tap: the recording is {told}"));
        path
    });
    let options = Options {
        trampoline: trampoline(&shell),
        command: args.command,
        log,
        directory: Some(shell.directory),
    };
    match tap::run(options) {
        Ok(ending) => own(tap::end(ending)),
        Err(error) => {
            complain(&format!("error: {error}"));
            Exit::NotCarriedOut
        }
    }
}

/// How this program starts itself to become a server.
pub(super) fn trampoline(shell: &Shell) -> Vec<OsString> {
    vec![shell.program.clone().into(), "tap".into()]
}

/// The server's status, which is no statement of this program.
pub(super) fn own(code: i32) -> Exit {
    Exit::Own(u8::try_from(code & 0xff).unwrap_or(u8::MAX))
}
