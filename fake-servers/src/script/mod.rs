//! The script of the fake server: what it answers, and how it misbehaves.
//!
//! A script is YAML or JSON: a list of rules, or an object with rules and capabilities. For each
//! event the first rule that matches says what to do; without one the server behaves well.

mod check;
mod load;
pub(crate) mod template;

use schemars::JsonSchema;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

pub use load::ScriptError;
pub use template::contains;

/// A whole script.
///
/// In a file it is a list of rules, or an object of these members.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Script {
    /// Merged over the default capabilities of the `initialize` result; null removes a member.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub capabilities: Map<String, Value>,
    /// Takes the place of the default capabilities, whatever it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replace_capabilities: Option<Value>,
    /// A real language server underneath, in place of null answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<Base>,
    /// Tried in order for each event; the first that matches is carried out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
}

/// What answers where no rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Base {
    /// Answers from the facts in the `*.fake` files of the workspace; see the README.
    Markers,
}

/// What to do when something happens.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The event: a method the client sends (a final `*` matches any rest), or `start` (before
    /// anything is read), `response` (an answer to a request of this server), `eof` (stdin
    /// ended), `SIGTERM`.
    pub on: String,
    /// Only in the process of this number: the first, second, … of the run, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub process: Option<u32>,
    /// Only while the rule set of this name is current; see the action `set`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// Only when `params` contain this: members of an object are compared where they are given,
    /// an array member by member, anything else whole. Of `response` it is compared with `id`,
    /// `method`, `result` and `error`. Templates are filled in first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Value>,
    /// Only the nth event, from 1, of those that match all of the above, whether or not another
    /// rule took one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub nth: Option<u64>,
    /// At most so many times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    /// Carried out in sequence. If none of them settles the event (`reply`, `reply_raw`,
    /// `capabilities`, `default`, `ignore`, `exit`, `kill`), what the server does by default
    /// follows them.
    pub r#do: Vec<Action>,
}

/// One step of a rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Action {
    /// Answers the request: with this result, or, given an object whose only member is `error`
    /// (or `result`), with that member.
    Reply(Value),
    /// Answers the request with a frame whose body is exactly these bytes.
    ReplyRaw(Payload),
    /// Answers `initialize` with the default capabilities, these merged over them.
    Capabilities(Map<String, Value>),
    /// Does what the server does without a rule.
    Default,
    /// Does not answer, does not obey.
    Ignore,
    /// Goes on only when the runner releases this name (needs a control channel).
    Hold(String),
    /// Goes on only after so many milliseconds. Other events are served meanwhile.
    DelayMs(u64),
    /// Sends a notification.
    Notify(Notify),
    /// Sends a request.
    Request(Request),
    /// Cuts the next write of this rule into pieces; each is written when the pipe is empty.
    Chunk(Chunk),
    /// Everything the rule writes from here to its end, or its next pause, is one write.
    Coalesce,
    /// Spells the next frame of this rule differently.
    Frame(Spelling),
    /// Writes bytes to stdout that are no frame.
    Raw(Payload),
    /// Writes to stderr.
    Stderr(Stderr),
    /// Ends with this exit code, when all before it is written.
    Exit(u8),
    /// Sends itself a signal, when all before it is written.
    Kill(Signal),
    /// Closes a stream, when all before it is written.
    Close(Stream),
    /// Reads nothing more from stdin.
    StopReading,
    /// Reads from stdin again.
    ResumeReading,
    /// Starts a process that outlives this one.
    SpawnHelper(Helper),
    /// Does not die of this signal from here on.
    Trap(Trap),
    /// Makes the rule set of this name current; the empty name makes none so.
    Set(String),
    /// Records a note in the transcript.
    Note(Note),
}

/// Bytes: a text, in which templates are filled in, or an object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Payload {
    /// As UTF-8.
    Text(String),
    /// A text, repeated.
    Repeated(Repeated),
    /// Any bytes.
    Bytes(Base64Bytes),
}

/// A text, repeated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Repeated {
    /// The text.
    pub text: String,
    /// How often.
    pub times: u32,
}

/// Any bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Base64Bytes {
    /// In base64, with padding.
    pub base64: String,
}

/// A notification to the client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Notify {
    /// Its method.
    pub method: String,
    /// Its params; left out if not given.
    #[serde(
        default,
        deserialize_with = "given",
        skip_serializing_if = "Option::is_none"
    )]
    pub params: Option<Value>,
    /// How often, `${n}` counting from 0.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub times: u32,
}

/// A request to the client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Its method.
    pub method: String,
    /// Its params; left out if not given.
    #[serde(
        default,
        deserialize_with = "given",
        skip_serializing_if = "Option::is_none"
    )]
    pub params: Option<Value>,
    /// Its id, of any type, null too; if not given, a number of its own. With `times`, an integer
    /// id counts up, and a text should have `${n}` in it.
    #[serde(
        default,
        deserialize_with = "given",
        skip_serializing_if = "Option::is_none"
    )]
    pub id: Option<Value>,
    /// Goes on only when all of them are answered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub r#await: bool,
    /// How often, `${n}` counting from 0.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub times: u32,
}

fn once() -> u32 {
    1
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature serde asks for"
)]
fn is_once(times: &u32) -> bool {
    *times == 1
}

/// A member that is there, null included.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Where a write is cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Chunk {
    /// After each byte.
    EachByte,
    /// After so many bytes, each of these in turn; the rest is one piece.
    Sizes(Vec<u32>),
    /// At these offsets from the start, negative ones from the end.
    At(Vec<i64>),
    /// The nth frame of a `notify` or `request` with `times` after its nth byte, so that a frame
    /// is cut at each of its places in turn.
    EachPlace,
    /// At places drawn at random, each frame of a `notify` or `request` with `times` at others.
    Random(RandomCuts),
}

/// Cuts drawn at random.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RandomCuts {
    /// How many; fewer where two fall together.
    pub cuts: u32,
    /// Any text; the same one gives the same places.
    pub seed: String,
}

impl Chunk {
    /// The cuts of the nth of several frames, from 0, that one action writes.
    pub(crate) fn of(&self, n: u32) -> Option<Self> {
        match self {
            Self::EachPlace => Some(Self::At(vec![i64::from(n) + 1])),
            Self::Random(random) => Some(Self::Random(RandomCuts {
                cuts: random.cuts,
                seed: format!("{}/{n}", random.seed),
            })),
            Self::EachByte | Self::Sizes(_) | Self::At(_) => (n == 0).then(|| self.clone()),
        }
    }
}

/// How a frame is spelled. Unset members are as LSP has them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Spelling {
    /// Letter case of the field names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub case: Option<Case>,
    /// What stands between `Content-Length` and its value; normally `": "`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub separator: Option<String>,
    /// What stands after the value; normally nothing.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub after: String,
    /// Further header lines, such as `Content-Type: application/vscode-jsonrpc`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub extra: Vec<String>,
    /// Where `Content-Length` stands among them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<Order>,
    /// The value of `Content-Length`, as it is to stand there; `${length}` is the true one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<Length>,
    /// Added to the true length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length_by: Option<i64>,
    /// The value of a second `Content-Length`; `${length}` is the true one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second_length: Option<Length>,
    /// Leaves `Content-Length` out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_length: bool,
    /// Ends header lines with LF alone.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub lf_only: bool,
    /// Writes only so many bytes of the frame, header included; a negative number leaves out so
    /// many at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only: Option<i64>,
}

/// Letter case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Case {
    /// `content-length`.
    Lower,
    /// `CONTENT-LENGTH`.
    Upper,
    /// `cOnTeNt-LeNgTh`.
    Mixed,
}

/// Place of the length among the header lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Before all others, as is usual.
    LengthFirst,
    /// After all others.
    LengthLast,
}

/// A length as it is to stand in a header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Length {
    /// A number.
    Number(i64),
    /// Any text.
    Text(String),
}

/// What is written to stderr: a text, in which templates are filled in, or an object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Stderr {
    /// A text.
    Text(String),
    /// A flood.
    Flood(Flood),
    /// Bytes.
    Payload(Payload),
}

/// So many bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flood {
    /// How many bytes, in lines of 64.
    pub flood: u64,
}

/// A signal a process may send itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the names of the signals say it")]
pub enum Signal {
    SIGABRT,
    SIGBUS,
    SIGFPE,
    SIGHUP,
    SIGILL,
    SIGINT,
    SIGKILL,
    SIGPIPE,
    SIGQUIT,
    SIGSEGV,
    SIGSTOP,
    SIGTERM,
}

/// A signal that can be trapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Trap {
    /// The signal by which a client ends a server.
    SIGTERM,
}

/// One of the three streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Stream {
    Stdin,
    Stdout,
    Stderr,
}

/// A process that outlives the server. It ends by itself when the control channel is lost, and
/// without one, or in any case, after `life_ms`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent switches of a script"
)]
pub struct Helper {
    /// Does not die of SIGTERM, SIGINT and SIGHUP.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub deaf: bool,
    /// Leaves the process group and session of the server.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub new_session: bool,
    /// Is no child of the server any more when the server goes on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub orphan: bool,
    /// Keeps the server's stdout and stderr open.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub inherit: bool,
    /// Ends by itself after so many milliseconds; at most 600000.
    #[schemars(range(max = 600_000))]
    pub life_ms: u64,
}

impl Default for Helper {
    fn default() -> Self {
        Self {
            deaf: false,
            new_session: false,
            orphan: false,
            inherit: false,
            life_ms: 60_000,
        }
    }
}

/// Something to be recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// For people.
    pub message: String,
    /// For judges; templates are filled in.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub data: Value,
}

/// The object form of a script.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Object {
    /// Merged over the default capabilities of the `initialize` result; null removes a member.
    capabilities: Map<String, Value>,
    /// Takes the place of the default capabilities, whatever it is.
    #[serde(deserialize_with = "given")]
    replace_capabilities: Option<Value>,
    /// A real language server underneath, in place of null answers.
    base: Option<Base>,
    /// Tried in order for each event; the first that matches is carried out.
    rules: Vec<Rule>,
}

impl<'de> Deserialize<'de> for Script {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Written out, since an untagged enum would lose the place of an error.
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Script;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list of rules, or an object with `rules`, `capabilities`, …")
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, seq: A) -> Result<Script, A::Error> {
                let rules = Vec::deserialize(SeqAccessDeserializer::new(seq))?;
                Ok(Script {
                    rules,
                    ..Script::default()
                })
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Script, A::Error> {
                let object = Object::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Script {
                    capabilities: object.capabilities,
                    replace_capabilities: object.replace_capabilities,
                    base: object.base,
                    rules: object.rules,
                })
            }

            fn visit_unit<E>(self) -> Result<Script, E> {
                Ok(Script::default())
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Script {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Script".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let rules = generator.subschema_for::<Vec<Rule>>();
        let object = generator.subschema_for::<Object>();
        schemars::json_schema!({
            "title": "Script of dsh-fake-lsp",
            "description": "A list of rules, or an object with rules and capabilities.",
            "anyOf": [rules, object],
        })
    }
}

/// The JSON Schema of a script, as text.
pub fn schema() -> String {
    let schema = schemars::schema_for!(Script);
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema is JSON");
    text.push('\n');
    text
}
