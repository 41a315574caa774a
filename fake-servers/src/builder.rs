//! Scripts from Rust, and the command that runs them.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use serde_json::{Map, Value};
use tempfile::TempPath;

use crate::control::Control;
use crate::script::{
    Action, Base, Chunk, Flood, Helper, Note, Notify, Payload, RandomCuts, Request, Rule, Script,
    ScriptError, Signal, Spelling, Stderr, Stream, Trap,
};

/// The longest script passed in an argument, in bytes; a longer one goes into a file.
const INLINE: usize = 30_000;

/// A fake server to be started by whatever is tested.
///
/// ```
/// use dsh_fake_lsp::{FakeServer, reply};
/// use serde_json::json;
///
/// let server = FakeServer::new()
///     .on("textDocument/hover", [reply(json!({"contents": "a hover"}))])
///     .capabilities(json!({"implementationProvider": false}));
/// let command = server.command("dsh-fake-lsp")?;
/// assert_eq!(command.program.to_str(), Some("dsh-fake-lsp"));
/// assert_eq!(command.args[0], "--script-inline");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct FakeServer {
    script: Script,
    control: Option<String>,
    transcript: Option<PathBuf>,
    counter: Option<PathBuf>,
    before: Vec<String>,
    after: Vec<String>,
}

impl FakeServer {
    /// A server that behaves well.
    pub fn new() -> Self {
        Self::default()
    }

    /// A server that answers from the facts in the `*.fake` files of its workspace.
    pub fn markers() -> Self {
        Self::from(Script {
            base: Some(Base::Markers),
            ..Script::default()
        })
    }

    /// Adds a rule: whenever `event` happens (a method, `start`, `response`, `eof`, `SIGTERM`),
    /// and no earlier rule matches, these actions are carried out.
    #[must_use]
    pub fn on(self, event: &str, actions: impl IntoIterator<Item = Action>) -> Self {
        self.rule(Rule::on(event).run(actions))
    }

    /// Adds a rule with conditions.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Self {
        self.script.rules.push(rule);
        self
    }

    /// Merges an object over the default capabilities; null removes a member.
    #[must_use]
    pub fn capabilities(mut self, patch: Value) -> Self {
        if let Value::Object(patch) = patch {
            self.script.capabilities.extend(patch);
        }
        self
    }

    /// Replaces the capabilities.
    #[must_use]
    pub fn replace_capabilities(mut self, capabilities: Value) -> Self {
        self.script.replace_capabilities = Some(capabilities);
        self
    }

    /// Has every process report to a runner.
    #[must_use]
    pub fn control(self, control: &Control) -> Self {
        self.control_address(control.address())
    }

    /// Has every process report to the runner at this address.
    #[must_use]
    pub fn control_address(mut self, address: &str) -> Self {
        self.control = Some(address.to_owned());
        self
    }

    /// Has a process write its transcript to a file, which it replaces.
    #[must_use]
    pub fn transcript(mut self, file: impl Into<PathBuf>) -> Self {
        self.transcript = Some(file.into());
        self
    }

    /// Has the processes count themselves in a file, so that rules with `process` work without a
    /// control channel.
    #[must_use]
    pub fn counter(mut self, file: impl Into<PathBuf>) -> Self {
        self.counter = Some(file.into());
        self
    }

    /// An argument that stands before the server's own, such as the name of a subcommand of a
    /// program that contains it.
    #[must_use]
    pub fn subcommand(mut self, name: &str) -> Self {
        self.before.push(name.to_owned());
        self
    }

    /// A further argument, which the server does not look at (`${argv}` tells it).
    #[must_use]
    pub fn arg(mut self, arg: &str) -> Self {
        self.after.push(arg.to_owned());
        self
    }

    /// The script.
    pub fn script(&self) -> &Script {
        &self.script
    }

    /// Checks the script for what the types do not say.
    pub fn check(&self) -> Result<(), ScriptError> {
        self.script.check()
    }

    /// The command that runs it. `executable` is `dsh-fake-lsp`, or a program that contains it;
    /// see [`FakeServer::subcommand`].
    ///
    /// The script is an argument, or, if it is long, a temp file that lives as long as the
    /// command and its clones. Fails if the file cannot be written, or on a script that is wrong.
    pub fn command(&self, executable: impl AsRef<Path>) -> io::Result<FakeCommand> {
        self.check().map_err(io::Error::other)?;
        let mut args = self.before.clone();
        let text = serde_json::to_string(&self.script)?;
        let mut file = None;
        if text.len() <= INLINE {
            args.extend(["--script-inline".to_owned(), text]);
        } else {
            let named = tempfile::Builder::new()
                .prefix("dsh-script")
                .suffix(".json")
                .tempfile()?;
            let path = named.into_temp_path();
            std::fs::write(&path, text)?;
            args.extend(["--script".to_owned(), utf8(&path)?]);
            file = Some(Arc::new(path));
        }
        if let Some(address) = &self.control {
            args.extend(["--control".to_owned(), address.clone()]);
        }
        for (flag, path) in [
            ("--transcript", &self.transcript),
            ("--counter", &self.counter),
        ] {
            if let Some(path) = path {
                args.extend([flag.to_owned(), utf8(path)?]);
            }
        }
        if !self.after.is_empty() {
            args.push("--".to_owned());
            args.extend(self.after.iter().cloned());
        }
        Ok(FakeCommand {
            program: executable.as_ref().to_owned(),
            args,
            _script: file,
        })
    }
}

fn utf8(path: &Path) -> io::Result<String> {
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| io::Error::other(format!("{} is not UTF-8", path.display())))
}

impl From<Script> for FakeServer {
    fn from(script: Script) -> Self {
        Self {
            script,
            ..Self::default()
        }
    }
}

/// A program with its arguments. The script's file, if there is one, lives as long as this and its
/// clones.
#[derive(Clone, Debug)]
pub struct FakeCommand {
    /// The executable.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    _script: Option<Arc<TempPath>>,
}

impl FakeCommand {
    /// As a command of the standard library, with nothing else set.
    pub fn std(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args);
        command
    }
}

impl Rule {
    /// A rule for this event, without conditions and without actions.
    pub fn on(event: &str) -> Self {
        Self {
            on: event.to_owned(),
            ..Self::default()
        }
    }

    /// Only in this process, from 1.
    #[must_use]
    pub fn process(mut self, process: u32) -> Self {
        self.process = Some(process);
        self
    }

    /// Only the nth event that matches, from 1.
    #[must_use]
    pub fn nth(mut self, nth: u64) -> Self {
        self.nth = Some(nth);
        self
    }

    /// At most so many times.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self
    }

    /// Only if the params contain this.
    #[must_use]
    pub fn when(mut self, params: Value) -> Self {
        self.when = Some(params);
        self
    }

    /// Only while this rule set is current.
    #[must_use]
    pub fn in_set(mut self, set: &str) -> Self {
        self.set = Some(set.to_owned());
        self
    }

    /// Adds actions.
    #[must_use]
    pub fn run(mut self, actions: impl IntoIterator<Item = Action>) -> Self {
        self.r#do.extend(actions);
        self
    }
}

/// Answers with this result.
pub fn reply(result: Value) -> Action {
    Action::Reply(Value::Object(Map::from_iter([(
        "result".to_owned(),
        result,
    )])))
}

/// Answers with an error.
pub fn reply_error(code: i64, message: &str) -> Action {
    Action::Reply(serde_json::json!({"error": {"code": code, "message": message}}))
}

/// Answers with a frame of exactly this body.
pub fn reply_raw(body: &str) -> Action {
    Action::ReplyRaw(Payload::Text(body.to_owned()))
}

/// Answers `initialize` with the default capabilities, these merged over them.
pub fn capabilities(patch: Value) -> Action {
    match patch {
        Value::Object(patch) => Action::Capabilities(patch),
        _ => Action::Default,
    }
}

/// Neither answers nor obeys.
pub fn ignore() -> Action {
    Action::Ignore
}

/// Goes on when the runner releases this name.
pub fn hold(name: &str) -> Action {
    Action::Hold(name.to_owned())
}

/// Goes on after so many milliseconds.
pub fn delay_ms(ms: u64) -> Action {
    Action::DelayMs(ms)
}

/// Sends a notification.
pub fn notify(method: &str, params: Value) -> Action {
    notify_times(1, method, params)
}

/// Sends a notification so many times; `${n}` counts from 0.
pub fn notify_times(times: u32, method: &str, params: Value) -> Action {
    Action::Notify(Notify {
        method: method.to_owned(),
        params: Some(params),
        times,
    })
}

/// Sends a request of this id, and does not wait for the answer.
pub fn request(id: Value, method: &str, params: Value) -> Action {
    let (id, params) = (Some(id), Some(params));
    Action::Request(Request {
        method: method.to_owned(),
        params,
        id,
        r#await: false,
        times: 1,
    })
}

/// Sends a request of this id, and goes on when it is answered.
pub fn request_and_wait(id: Value, method: &str, params: Value) -> Action {
    let (id, params) = (Some(id), Some(params));
    Action::Request(Request {
        method: method.to_owned(),
        params,
        id,
        r#await: true,
        times: 1,
    })
}

/// Cuts the next write into its bytes.
pub fn each_byte() -> Action {
    Action::Chunk(Chunk::EachByte)
}

/// Cuts the next write at these offsets, negative ones from its end.
pub fn cut_at(offsets: impl IntoIterator<Item = i64>) -> Action {
    Action::Chunk(Chunk::At(offsets.into_iter().collect()))
}

/// Cuts the nth frame of the next action (such as [`notify_times`]) after its nth byte.
pub fn cut_at_each_place() -> Action {
    Action::Chunk(Chunk::EachPlace)
}

/// Cuts each frame of the next action at so many places that follow from the seed.
pub fn cut_at_random(cuts: u32, seed: impl Into<String>) -> Action {
    let seed = seed.into();
    Action::Chunk(Chunk::Random(RandomCuts { cuts, seed }))
}

/// Cuts the next write into pieces of these sizes, and the rest.
pub fn cut_into(sizes: impl IntoIterator<Item = u32>) -> Action {
    Action::Chunk(Chunk::Sizes(sizes.into_iter().collect()))
}

/// Makes all that follows in this rule one write.
pub fn coalesce() -> Action {
    Action::Coalesce
}

/// Spells the next frame differently.
pub fn spell(spelling: Spelling) -> Action {
    Action::Frame(spelling)
}

/// Writes only the first bytes of the next frame, or leaves out so many at its end if negative.
pub fn only(bytes: i64) -> Action {
    Action::Frame(Spelling {
        only: Some(bytes),
        ..Spelling::default()
    })
}

/// Writes this text to stdout, outside any frame.
pub fn raw(text: &str) -> Action {
    Action::Raw(Payload::Text(text.to_owned()))
}

/// Writes these bytes to stdout, outside any frame.
pub fn raw_bytes(bytes: &[u8]) -> Action {
    use base64::Engine as _;
    let base64 = base64::engine::general_purpose::STANDARD.encode(bytes);
    Action::Raw(Payload::Bytes(crate::script::Base64Bytes { base64 }))
}

/// Writes this text to stderr.
pub fn stderr(text: &str) -> Action {
    Action::Stderr(Stderr::Text(text.to_owned()))
}

/// Writes so many bytes to stderr.
pub fn stderr_flood(bytes: u64) -> Action {
    Action::Stderr(Stderr::Flood(Flood { flood: bytes }))
}

/// Ends with this code.
pub fn exit(code: u8) -> Action {
    Action::Exit(code)
}

/// Dies of this signal.
pub fn kill(signal: Signal) -> Action {
    Action::Kill(signal)
}

/// Closes a stream.
pub fn close(stream: Stream) -> Action {
    Action::Close(stream)
}

/// Reads no more from stdin.
pub fn stop_reading() -> Action {
    Action::StopReading
}

/// Starts a process that outlives the server.
pub fn spawn_helper(helper: Helper) -> Action {
    Action::SpawnHelper(helper)
}

/// Outlives SIGTERM from here on.
pub fn trap_sigterm() -> Action {
    Action::Trap(Trap::SIGTERM)
}

/// Makes a rule set current.
pub fn set(name: &str) -> Action {
    Action::Set(name.to_owned())
}

/// Records a note, in whose data templates are filled in.
pub fn note(message: &str, data: Value) -> Action {
    Action::Note(Note {
        message: message.to_owned(),
        data,
    })
}
