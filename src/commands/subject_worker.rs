//! `subject`.

use dsh_scenarios::subject::serve;

use crate::exit::Exit;
use crate::output::complain;
use crate::signals::Signals;
use crate::streams;

/// Serve the built-in harness over the subject protocol, on stdin and stdout
///
/// One request a line, JSON-RPC 2.0; `run` starts these workers by itself. By hand:
///
///   echo '{"jsonrpc":"2.0","id":1,"method":"describe"}' | dsh-conform subject
///
/// It ends at the end of stdin, and ends the servers it started.
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {}

pub(crate) fn run(Args {}: Args) -> Exit {
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            complain(&format!("error: no event loop can be started: {error}"));
            return Exit::NotCarriedOut;
        }
    };
    let exit = runtime.block_on(until_the_end());
    // Whatever the harness still owned is dropped here, processes included. A read of stdin that
    // blocks is not waited for: there is no way to end it.
    runtime.shutdown_background();
    exit
}

async fn until_the_end() -> Exit {
    let mut signals = match Signals::new() {
        Ok(signals) => signals,
        Err(error) => {
            complain(&format!("error: signals cannot be caught: {error}"));
            return Exit::NotCarriedOut;
        }
    };
    let serving = async {
        let input = streams::input().map_err(|error| format!("stdin cannot be read: {error}"))?;
        let output =
            streams::output().map_err(|error| format!("stdout cannot be written: {error}"))?;
        serve(input, output)
            .await
            .map_err(|error| error.to_string())
    };
    tokio::select! {
        biased;
        exit = signals.next() => exit,
        served = serving => match served {
            Ok(()) => Exit::Fine,
            Err(problem) => {
                complain(&format!("error: {problem}"));
                Exit::NotCarriedOut
            }
        },
    }
}
