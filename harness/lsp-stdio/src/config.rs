//! The configuration of the host (CFG-1…3).
//!
//! [`LspStdioConfig`] is plain data with the types it has after reading. Reading it from JSON (or
//! from anything serde reads) goes through [`LspStdioConfig::from_value`], so that every error names
//! the key as `servers.<id>.<key>`; [`LspStdioConfig::validate`] holds the rules that types cannot,
//! also for a configuration that was built in Rust.

mod read;
mod rules;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::Value;

use dsh_lsp::LspError;

/// Most milliseconds a time budget may have (CFG-3).
pub const MAX_BUDGET_MS: u64 = 2_147_483_647;

/// The language servers of one host.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LspStdioConfig {
    /// Provider id → how to run its language server. At least one entry; ids are not blank.
    #[schemars(extend("minProperties" = 1))]
    pub servers: BTreeMap<String, ServerConfig>,
}

/// How to run one language server and what it is for.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ServerConfig {
    /// The executable: an absolute path, or a name that is looked up on the PATH the server will
    /// get, when the configuration is loaded. No shell is involved. Required.
    pub command: String,
    /// Its arguments, passed as they are. Default: none.
    #[serde(default)]
    pub args: Vec<String>,
    /// Environment variables, merged over the scrubbed environment of the harness, so that a
    /// deliberate secret or `DSH_*` entry does arrive. Default: none.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// File extension (with or without the leading dot, in any letter case) → LSP language id, for
    /// instance `.ts: typescript`. An extension belongs to one server at a time. Required, not empty.
    #[schemars(extend("minProperties" = 1))]
    pub extension_to_language: BTreeMap<String, String>,
    /// Sent as `initializationOptions` of `initialize`. Default: null, which leaves the member out.
    #[serde(default)]
    pub initialization_options: Value,
    /// The answer to each item of `workspace/configuration`. Default: null.
    #[serde(default)]
    pub configuration: Value,
    /// Most bytes the body of one message of the server may have; a larger one ends the process.
    /// Bytes. Default: 16000000.
    #[serde(default = "defaults::max_message_bytes")]
    #[schemars(range(min = 1))]
    pub max_message_bytes: u64,
    /// How much of the server's stderr is kept for diagnosis, the last bytes of it. Bytes.
    /// Default: 1000000.
    #[serde(default = "defaults::max_stderr_bytes")]
    #[schemars(range(min = 1))]
    pub max_stderr_bytes: u64,
    /// Most bytes a source file may have to be opened in the server. Bytes. Default: 4000000.
    #[serde(default = "defaults::max_document_bytes")]
    #[schemars(range(min = 1))]
    pub max_document_bytes: u64,
    /// Budget of the whole graceful end: `shutdown`, `exit`, closing stdin, waiting. Milliseconds.
    /// Default: 5000.
    #[serde(default = "defaults::shutdown_timeout_ms")]
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub shutdown_timeout_ms: u64,
    /// How long a cancelled request may take to settle, and a terminated process to go before it is
    /// killed. Milliseconds. Default: 2000.
    #[serde(default = "defaults::kill_grace_ms")]
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub kill_grace_ms: u64,
    /// How often a query is asked again, in the same open document and without a pause, when the
    /// answer is `ContentModified` or `ServerCancelled`. Default: 0.
    #[serde(default)]
    #[schemars(range(max = 2_147_483_647))]
    pub retry_stale: u32,
    /// Whether one `workspace/didChangeConfiguration` with the configured value follows
    /// `initialized`, for servers that stay silent until then. Default: false.
    #[serde(default)]
    pub announce_configuration: bool,
    /// The version that an opened document is given. Default: `fixed`.
    #[serde(default)]
    pub versions: Versions,
}

/// How documents are numbered (OPN-12).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Versions {
    /// Always 1: each open is a document of its own.
    #[default]
    Fixed,
    /// One more at each open of the same document in the same process, for servers that would
    /// answer a reopened document from the text they cached under the version.
    Rising,
}

/// The values of keys that are left out (CFG-1).
mod defaults {
    pub(super) const fn max_message_bytes() -> u64 {
        16_000_000
    }

    pub(super) const fn max_stderr_bytes() -> u64 {
        1_000_000
    }

    pub(super) const fn max_document_bytes() -> u64 {
        4_000_000
    }

    pub(super) const fn shutdown_timeout_ms() -> u64 {
        5_000
    }

    pub(super) const fn kill_grace_ms() -> u64 {
        2_000
    }
}

impl ServerConfig {
    /// A server of which only what is required is given; everything else has its default.
    pub fn new(
        command: impl Into<String>,
        extension_to_language: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>,
    ) -> Self {
        Self {
            command: command.into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            extension_to_language: extension_to_language
                .into_iter()
                .map(|(extension, language)| (extension.into(), language.into()))
                .collect(),
            initialization_options: Value::Null,
            configuration: Value::Null,
            max_message_bytes: defaults::max_message_bytes(),
            max_stderr_bytes: defaults::max_stderr_bytes(),
            max_document_bytes: defaults::max_document_bytes(),
            shutdown_timeout_ms: defaults::shutdown_timeout_ms(),
            kill_grace_ms: defaults::kill_grace_ms(),
            retry_stale: 0,
            announce_configuration: false,
            versions: Versions::Fixed,
        }
    }
}

impl LspStdioConfig {
    /// Reads a configuration; the error names the key and says what may stand there.
    pub fn from_value(value: Value) -> Result<Self, ConfigError> {
        read::host(value)
    }

    /// Holds the rules of CFG-2 and CFG-3, and those of SEAM-3 on extensions, so that a bad table
    /// fails before anything is looked up, registered or started.
    pub fn validate(&self) -> Result<(), ConfigError> {
        rules::host(self)
    }
}

impl ServerConfig {
    /// As [`LspStdioConfig::validate`], for the entry `id` alone.
    pub fn validate(&self, id: &str) -> Result<(), ConfigError> {
        rules::server(id, self)
    }
}

impl<'de> Deserialize<'de> for LspStdioConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_value(Value::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

/// What is wrong with a configuration, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {problem}", self.key())]
pub struct ConfigError {
    path: Vec<String>,
    problem: String,
    code: &'static str,
}

impl ConfigError {
    /// The keys that lead to the place, `["servers", "typescript", "killGraceMs"]` for instance;
    /// for an unknown key, that key is the last one. Empty for the configuration as a whole.
    pub fn path(&self) -> &[String] {
        &self.path
    }

    /// The same in one piece: `servers.typescript.killGraceMs`.
    pub fn key(&self) -> String {
        if self.path.is_empty() {
            "config".to_owned()
        } else {
            self.path.join(".")
        }
    }

    /// What is wrong there and what may stand there instead.
    pub fn problem(&self) -> &str {
        &self.problem
    }

    /// The stable code: `LSP_CONFIG_INVALID`, or `LSP_INVALID_PROVIDER` for what SEAM-3 forbids.
    pub const fn code(&self) -> &'static str {
        self.code
    }

    fn at(path: &[&str], problem: impl Into<String>) -> Self {
        Self {
            path: path.iter().map(|&key| key.to_owned()).collect(),
            problem: problem.into(),
            code: "LSP_CONFIG_INVALID",
        }
    }
}

impl From<ConfigError> for LspError {
    fn from(error: ConfigError) -> Self {
        if error.code == "LSP_INVALID_PROVIDER" {
            Self::InvalidProvider(error.to_string())
        } else {
            Self::ConfigInvalid(error.to_string())
        }
    }
}

#[cfg(test)]
mod tests;
