//! `agent`.

mod headless;
mod model;
mod servers;
mod trajectory;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use dsh_e2e::RecordingSubprocess;
use dsh_harness::agent::LoopOptions;
use dsh_harness::kernel::Subscription;
use dsh_harness::subprocess::LocalSubprocess;
use dsh_harness::workspace_context::{HomeVariables, InstructionsPassedOver};
use dsh_harness::{Deployment, MountError, Runtime};
use dsh_profiles::{Host, HostOptions, Profile, acp, sdk};
use dsh_transcript::Recorder;

use self::model::ModelName;
use super::deployment;
use crate::artifacts::Artifacts;
use crate::cli::Global;
use crate::exit::Exit;
use crate::output::{self, complain};
use crate::shell::{Shell, compact_date, unix_us};
use crate::signals::{Interruption, interruptible_reader};
use crate::streams;

/// Run an agent on the built-in harness
///
/// Profiles: headless runs one prompt to its end and prints the answer; sdk and sdk-minimal serve a
/// program that speaks JSON-RPC 2.0, one message a line; acp serves an editor that speaks the Agent
/// Client Protocol.
///
/// Models: `scripted:FILE` says what a script has it say and checks what it is asked;
/// `openai:MODEL[@BASE_URL]` asks a server for chat completions, <https://api.deepseek.com> unless
/// another is named, with the key of the variable that --key-from names.
///
/// Exit status of headless: 0 with an answer; 1 where the turn ended without one, by a policy, a
/// limit, or a script that was not followed; 3 where it could not be carried out, the model failed
/// for instance, or nobody read the answer; 130 interrupted (143 by SIGTERM, 129 by SIGHUP), with
/// everything ended and the session's file whole.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  dsh-conform agent --profile headless --model scripted:script.yaml \\
      --server built-in \"Where is area defined?\"
  dsh-conform agent --model openai:deepseek-chat --server rust-analyzer \\
      --session run.jsonl \"Explain src/main.rs\"
  dsh-conform agent --model openai:deepseek-chat --resume run.jsonl \\
      \"And its tests?\"
  dsh-conform agent --model openai:deepseek-chat --server pyright \\
      --trajectory run.html \"Who calls main?\"
  dsh-conform agent --profile acp --model openai:local@http://127.0.0.1:8080/v1")]
pub(crate) struct Args {
    /// How the agent is used
    #[arg(long, value_name = "P", default_value = Profile::Headless.as_str(),
          value_parser = clap::builder::PossibleValuesParser::new(Profile::ALL.map(Profile::as_str)))]
    profile: String,
    /// What answers: `scripted:FILE` or `openai:MODEL[@BASE_URL]`
    #[arg(long, value_name = "MODEL")]
    model: ModelName,
    /// The variable that holds the key of the model's server; its name must have KEY, TOKEN, SECRET
    /// or PASSWORD in it. By default `DSH_API_KEY` if that is set, else no key is sent
    #[arg(long, value_name = "VARIABLE")]
    key_from: Option<String>,
    /// The agent's working directory [default: this one]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// The rows to mount in place of the profile's own
    #[arg(long, value_name = "FILE")]
    deployment: Option<PathBuf>,
    /// A language server for the agent: one of the catalogue, or built-in, the toy language's
    #[arg(long, value_name = "NAME")]
    server: Vec<String>,
    /// Take the pinned servers in the cache, and install what is not there
    #[arg(long, requires = "server")]
    install: bool,
    /// Print the session's events, one JSON object a line, in place of the answer
    #[arg(long)]
    json: bool,
    /// Keep the session in this new file; its folder has to be there
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    session: Option<PathBuf>,
    /// Go on with the session of this file, in the directory it began in
    #[arg(long, value_name = "FILE", conflicts_with = "cwd")]
    resume: Option<PathBuf>,
    /// sdk and acp: keep the sessions in this folder, so that they can be gone on with
    #[arg(long, value_name = "DIR")]
    sessions: Option<PathBuf>,
    /// Record what passes between the harness and its language servers, for audit; the folder of
    /// the file is made, as for the other files that are written when the run has ended
    #[arg(long, value_name = "FILE")]
    wire: Option<PathBuf>,
    /// headless: write the session and what passed on the wire as one HTML page, also where the run
    /// fails or is given up; the folder of the file is made
    #[arg(long, value_name = "FILE")]
    trajectory: Option<PathBuf>,
    /// headless: what to do; - reads it from stdin
    #[arg(value_name = "PROMPT")]
    prompt: Option<String>,
}

impl Args {
    fn profile(&self) -> Profile {
        Profile::named(&self.profile).expect("the parser takes no other names")
    }

    /// What does not go together.
    fn check(&self) -> Result<(), String> {
        let profile = self.profile();
        let headless = profile == Profile::Headless;
        if headless && self.prompt.is_none() {
            return Err("headless runs one prompt; give it, or - to read it from stdin".to_owned());
        }
        let only_headless = [
            ("a prompt", self.prompt.is_some()),
            ("--json", self.json),
            ("--session", self.session.is_some()),
            ("--resume", self.resume.is_some()),
            ("--cwd", self.cwd.is_some()),
            ("--trajectory", self.trajectory.is_some()),
        ];
        let given = only_headless.into_iter().find(|(_, given)| *given);
        match given {
            Some((what, _)) if !headless => Err(format!(
                "{what} is for the profile headless; with {profile} the client says what is to be \
                 done, and where"
            )),
            _ if headless && self.sessions.is_some() => Err(
                "--sessions is for the profiles that serve a client; name the file with --session"
                    .to_owned(),
            ),
            _ => Ok(()),
        }
    }
}

pub(crate) fn run(shell: &Shell, global: Global, args: Args) -> Exit {
    if let Err(problem) = args.check() {
        return usage(&problem);
    }
    // Nothing is worked for whose answer would be lost.
    if let Err(error) = output::open() {
        complain(&format!("error: {error}"));
        return Exit::NotCarriedOut;
    }
    interruptible_reader(|interruption| async move {
        let recorder = recorder(&args);
        let session = OnceLock::new();
        let exit = match host(shell, &args, recorder.as_ref(), &interruption).await {
            Ok((host, models)) => {
                let _telling = passed_over(&host);
                match args.profile() {
                    Profile::Headless => {
                        let run = headless::run(
                            shell,
                            global,
                            &args,
                            host,
                            &models,
                            &interruption,
                            &session,
                        );
                        run.await
                    }
                    _ => serve(args.profile(), host, &interruption).await,
                }
            }
            Err(exit) => exit,
        };
        let Some(recorder) = recorder else {
            return exit;
        };
        let exit = match &args.wire {
            Some(file) => keep(shell, file, &recorder, exit),
            None => exit,
        };
        match (&args.trajectory, session.into_inner()) {
            (Some(file), Some(session)) => trajectory::keep(shell, file, &session, &recorder, exit),
            _ => exit,
        }
    })
}

/// Records what passes on the wire if that is kept or shown, on a clock that is tied to the
/// session's.
fn recorder(args: &Args) -> Option<Recorder> {
    let wanted = args.wire.is_some() || args.trajectory.is_some();
    wanted.then(|| {
        let recorder = Recorder::new();
        recorder.emit(None, dsh_reports::clock(unix_us()));
        recorder
    })
}

/// The most instruction files whose passing over is told.
const MOST_PASSED_OVER: usize = 20;

/// Tells, a line each, of instruction files that are there and are not used: the model is not told,
/// and whoever wrote them waits for what they ask for.
fn passed_over(host: &Host) -> Subscription {
    let count = AtomicUsize::new(0);
    let events = host.runtime().events();
    events.subscribe(move |event: &InstructionsPassedOver| {
        match count.fetch_add(1, Ordering::Relaxed) {
            earlier if earlier < MOST_PASSED_OVER => complain(&format!("warning: {event}")),
            MOST_PASSED_OVER => complain("warning: further ones are told with --verbose"),
            _ => {}
        }
    })
}

fn usage(problem: &str) -> Exit {
    complain(&format!("error: {problem}"));
    Exit::Usage
}

/// The environment of children: no variable of any name has the key.
fn without_key(
    variables: &BTreeMap<OsString, OsString>,
    key: Option<&str>,
) -> BTreeMap<OsString, OsString> {
    let mut ambient = variables.clone();
    ambient.retain(|_, value| key.is_none_or(|key| value != key));
    ambient
}

/// Mounts what was asked for.
async fn host(
    shell: &Shell,
    args: &Args,
    recorder: Option<&Recorder>,
    interruption: &Interruption,
) -> Result<(Host, Arc<model::Chosen>), Exit> {
    let profile = args.profile();
    let rows = match &args.deployment {
        Some(file) => deployment::read(shell, file).map_err(|problem| usage(&problem))?,
        None => profile.composition().deployment,
    };
    let rows: Deployment = servers::added(shell, args, rows, interruption).await?;
    let models = model::chosen(shell, &args.model, args.key_from.as_deref())
        .map(Arc::new)
        .map_err(|problem| usage(&problem))?;
    let folder = args
        .sessions
        .as_deref()
        .map(|folder| shell.absolute(folder));
    if let Some(folder) = folder.as_deref().filter(|folder| !folder.is_dir()) {
        return Err(usage(&format!(
            "--sessions {} is no folder; make it first",
            folder.display()
        )));
    }
    let variable = |name| shell.variable(name).map(str::to_owned);
    let mut runtime = Runtime::builder().home(HomeVariables {
        home: variable("HOME"),
        dsh_home: variable("DSH_HOME"),
    });
    let key = model::key(shell, &args.model, args.key_from.as_deref());
    let ambient = without_key(&shell.variables, key);
    let local = Arc::new(LocalSubprocess::new(ambient));
    runtime = match recorder {
        Some(recorder) => {
            runtime.subprocess(Arc::new(RecordingSubprocess::new(local, recorder.clone())))
        }
        None => runtime.subprocess(local),
    };
    let options = HostOptions {
        profile,
        deployment: rows,
        runtime,
        models: Arc::clone(&models) as Arc<dyn dsh_profiles::Models>,
        folder,
        prefix: format!("session-{}-{}", compact_date(), std::process::id()),
        limits: LoopOptions::default(),
    };
    let mounted = Host::mount(options, &interruption.cancel).await;
    let host = mounted.map_err(|error| match error {
        MountError::Cancelled { .. } => Exit::Interrupted,
        error => {
            complain(&format!("error: {error}"));
            Exit::NotCarriedOut
        }
    })?;
    for waiting in host.runtime().waiting() {
        complain(&format!("warning: {waiting}"));
    }
    Ok((host, models))
}

/// Serves a client on stdin and stdout.
async fn serve(profile: Profile, host: Host, interruption: &Interruption) -> Exit {
    let host = Arc::new(host);
    let cancel = &interruption.cancel;
    let serving = async {
        let input = streams::input().map_err(|error| format!("stdin cannot be read: {error}"))?;
        let output =
            streams::output().map_err(|error| format!("stdout cannot be written: {error}"))?;
        if profile == Profile::Acp {
            return Box::pin(acp::serve(Arc::clone(&host), input, output, cancel))
                .await
                .map_err(|error| error.to_string());
        }
        let limits = sdk::Limits::default();
        sdk::serve(Arc::clone(&host), input, output, limits, cancel)
            .await
            .map_err(|error| error.to_string())
    };
    tokio::select! {
        biased;
        () = interruption.stop.cancelled() => Exit::Interrupted,
        served = serving => match served {
            Ok(()) => Exit::Fine,
            Err(problem) => {
                complain(&format!("error: {problem}"));
                Exit::NotCarriedOut
            }
        },
    }
}

/// Writes what passed on the wire.
fn keep(shell: &Shell, file: &Path, recorder: &Recorder, exit: Exit) -> Exit {
    let mut text = Vec::new();
    let text = recorder
        .write_jsonl(&mut text)
        .map_err(|error| error.to_string())
        .and_then(|()| String::from_utf8(text).map_err(|error| error.to_string()));
    write(shell, file, text, exit)
}

/// Writes a file of the run, and lets the status say where that is not possible.
fn write(shell: &Shell, file: &Path, text: Result<String, String>, exit: Exit) -> Exit {
    let written = text.and_then(|text| {
        Artifacts::write(&shell.absolute(file), text.as_bytes()).map_err(|error| error.to_string())
    });
    match written {
        Ok(()) => exit,
        Err(problem) => {
            complain(&format!(
                "error: cannot write {}: {problem}",
                file.display()
            ));
            if exit == Exit::Fine {
                Exit::NotCarriedOut
            } else {
                exit
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ENV-1 goes by names; a key may have another name than one that looks like it.
    #[test]
    fn the_key_is_withheld_under_any_name() {
        let variables = [
            ("A", "sk-1"),
            ("COPY_OF", "sk-1"),
            ("B", "sk-12"),
            ("PATH", "/bin"),
        ];
        let variables = variables
            .map(|(name, value)| (name.into(), value.into()))
            .into();
        let names = |key| without_key(&variables, key).into_keys().collect::<Vec<_>>();
        assert_eq!(names(Some("sk-1")), ["B", "PATH"]);
        assert_eq!(names(None).len(), 4);
    }
}
