//! `query`.

mod workspace;

use std::path::PathBuf;
use std::time::Duration;

use dsh_e2e::{Asking, At, Target};
use dsh_harness::Deployment;
use dsh_harness::lsp::Operation;

use super::check::seconds;
use super::deployment;
use super::subject::{self, Extension};
use crate::exit::Exit;
use crate::output::{complain, say};
use crate::shell::Shell;
use crate::signals::{Interruption, interruptible};

/// Ask a language server one question, and print the answer as a model would see it
///
/// The question goes through the `lsp` tool of a mounted runtime. The server is started for it, so
/// the first answer may be early: many servers say nothing, or something wrong, until they have
/// loaded the project. --settle asks until the answer has stayed the same for three seconds; one
/// that says nothing is asked again until the time is over.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Operations: goToDefinition, findReferences, goToImplementation, hover

Examples:
  dsh-conform query --server pyright hover src/main.py:12:7
  dsh-conform query --server rust-analyzer --settle 60 \\
      findReferences src/lib.rs:3:8
  dsh-conform query --command 'my-server --stdio' --ext .foo=foolang \\
      hover a.foo:1:1
  dsh-conform query --deployment cordis.yml goToDefinition src/main.ts:4:11")]
pub(crate) struct Args {
    /// A server of the catalogue
    #[arg(long, value_name = "NAME", required_unless_present_any = ["command", "deployment"],
          conflicts_with_all = ["command", "deployment"])]
    server: Option<String>,
    /// Any server: its program and arguments, split as a shell would
    #[arg(
        long,
        value_name = "CMD",
        requires = "ext",
        conflicts_with = "deployment"
    )]
    command: Option<String>,
    /// Extension and language id of what the server of --command serves
    #[arg(long, value_name = ".EXT=LANGUAGE", requires = "command")]
    ext: Vec<Extension>,
    /// A deployment file (cordis.yml) to mount: what a host consists of, its servers included
    #[arg(long, value_name = "FILE")]
    deployment: Option<PathBuf>,
    /// Take the pinned server in the cache, and install it if it is not there
    #[arg(long, requires = "server")]
    install: bool,
    /// The workspace; without it the nearest folder above the file that looks like a project
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// Ask again until the answer has stayed the same, for at most so many seconds
    #[arg(long, value_name = "S", value_parser = seconds)]
    settle: Option<Duration>,
    /// What to ask
    #[arg(value_name = "OP", value_parser = clap::builder::PossibleValuesParser::new(
        Operation::ALL.map(Operation::as_str)))]
    operation: String,
    /// Where, one-based; columns in UTF-16 code units
    #[arg(value_name = "FILE:LINE:COL")]
    at: At,
}

pub(crate) fn run(shell: &Shell, args: Args) -> Exit {
    let mut file = shell.absolute(args.at.file.as_ref());
    let (workspace, why) = match &args.workspace {
        Some(folder) => {
            let folder = shell.absolute(folder);
            // As it is typed here, or as the tool takes it.
            let inside = folder.join(&args.at.file);
            if !file.exists() && inside.exists() {
                file = inside;
            }
            (folder, "as given".to_owned())
        }
        None => workspace::above(&file),
    };
    complain(&format!("workspace: {} ({why})", workspace.display()));
    let asking = Asking {
        operation: args.operation.clone(),
        at: At {
            file: file.display().to_string(),
            position: args.at.position,
        },
        workspace: workspace.display().to_string(),
        settle: args.settle,
    };
    interruptible(|interruption| async move {
        match deployed(shell, &args, &interruption).await {
            Ok(deployment) => ask(deployment, &asking, &interruption).await,
            Err(exit) => exit,
        }
    })
}

async fn deployed(
    shell: &Shell,
    args: &Args,
    interruption: &Interruption,
) -> Result<Deployment, Exit> {
    let usage = |message: String| {
        complain(&format!("error: {message}"));
        Exit::Usage
    };
    if let Some(file) = &args.deployment {
        return deployment::read(shell, file).map_err(usage);
    }
    let target = match (&args.command, &args.server) {
        (Some(command), _) => subject::of_command(shell, command, &args.ext).map_err(usage)?,
        (None, name) => {
            let name = name.as_deref().unwrap_or_default();
            subject::named(shell, name, args.install, interruption).await?
        }
    };
    complain(&format!("server: {}", shown(&target)));
    Deployment::parse(&target.deployment(), "(made from the options)")
        .map_err(|error| usage(error.problem().to_owned()))
}

fn shown(target: &Target) -> String {
    match &target.version {
        Some(version) => format!("{} {version}, {}", target.name, target.command),
        None => target.command.clone(),
    }
}

async fn ask(deployment: Deployment, asking: &Asking, interruption: &Interruption) -> Exit {
    let cancel = &interruption.cancel;
    let runtime = match deployment::mount(deployment, cancel).await {
        Ok(runtime) => runtime,
        Err(exit) => return exit,
    };
    let told = tokio::select! {
        biased;
        // Dropped, the runtime kills what it started at once.
        () = interruption.stop.cancelled() => return Exit::Interrupted,
        told = dsh_e2e::query(&runtime, asking, cancel) => told,
    };
    let disposed = tokio::select! {
        biased;
        () = interruption.stop.cancelled() => return Exit::Interrupted,
        disposed = runtime.dispose() => disposed,
    };
    if let Err(error) = disposed {
        complain(&format!(
            "warning: the server did not end in order: {error}"
        ));
    }
    if !told.settled {
        let times = told.asked;
        let last = if told.empty {
            "and the last answer was empty, which a server also says while it loads"
        } else {
            "and the answer has not stayed the same for three seconds; give --settle more"
        };
        let asked = if times == 1 {
            "once".to_owned()
        } else {
            format!("{times} times")
        };
        complain(&format!("warning: asked {asked}, {last}"));
    }
    if told.is_error {
        let code = told.code.as_deref().unwrap_or("error");
        complain(&format!("{code}: {}", told.text));
        return if code == "INVALID_ARGS" {
            Exit::Usage
        } else {
            Exit::DoesNotConform
        };
    }
    match say(&format!("{}\n", told.text.trim_end_matches('\n'))) {
        Ok(()) => Exit::Fine,
        Err(_) => Exit::NotCarriedOut,
    }
}
