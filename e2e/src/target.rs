//! The server under test, and the deployment that puts it behind the host.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::catalogue::{Entry, Versions};
use crate::install::{Located, Origin};
use crate::setting::Suggested;
use crate::time::millis;

/// Time budgets of the host for one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `shutdownTimeoutMs`.
    pub shutdown_ms: u64,
    /// `killGraceMs`.
    pub kill_grace_ms: u64,
}

impl Default for Limits {
    /// The host's own.
    fn default() -> Self {
        Self {
            shutdown_ms: 5_000,
            kill_grace_ms: 2_000,
        }
    }
}

impl Limits {
    /// Never more than `budget`: what a probe may wait for holds for the end too.
    #[must_use]
    pub fn within(self, budget: std::time::Duration) -> Self {
        let budget = millis(budget).max(1);
        Self {
            shutdown_ms: budget.min(self.shutdown_ms),
            kill_grace_ms: budget.min(self.kill_grace_ms),
        }
    }
}

/// A language server, and how it is started.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The name it is reported under, also the provider's id.
    pub name: String,
    /// Its version, where it is known before it is asked.
    pub version: Option<String>,
    /// The language it serves, as people write it, where that is known.
    pub language: Option<String>,
    /// Where it comes from.
    pub origin: dsh_reports::Origin,
    /// The program: an absolute path, or a bare name.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables it gets besides the environment's.
    pub env: BTreeMap<String, String>,
    /// Extension → language id.
    pub extensions: BTreeMap<String, String>,
    /// `initializationOptions`; null for none.
    pub initialization_options: Value,
    /// The answer to `workspace/configuration`; null for none.
    pub configuration: Value,
    /// `announceConfiguration`.
    pub announce_configuration: bool,
    /// Whether `versions` is `rising`.
    pub rising_versions: bool,
    /// `retryStale`.
    pub retry_stale: u32,
    /// Settings that are tried where a MUST fails without them.
    pub remedies: Vec<Suggested>,
    /// How long it may take to shut down, and how long it has after SIGTERM; the host's own
    /// defaults where they are not given.
    pub limits: Option<Limits>,
    /// What else was found on the way to it and did not count.
    pub remarks: Vec<String>,
}

impl Target {
    /// The server of a catalogue entry, where it was found.
    pub fn of_entry(entry: &Entry, located: &Located) -> Self {
        Self {
            name: entry.name.clone(),
            version: Some(located.version.clone()),
            language: Some(entry.language.clone()),
            origin: match located.origin {
                Origin::Path => dsh_reports::Origin::Path,
                Origin::Cache { .. } => dsh_reports::Origin::Cache,
            },
            command: located.command.display().to_string(),
            args: located.args.clone(),
            env: BTreeMap::new(),
            extensions: entry.extensions.clone(),
            initialization_options: located.initialization_options.clone(),
            configuration: located.configuration.clone(),
            announce_configuration: entry.announce_configuration,
            rising_versions: entry.versions == Versions::Rising,
            retry_stale: entry.retry_stale,
            remedies: located.remedies.iter().map(Suggested::of_entry).collect(),
            limits: entry.shutdown_timeout_ms.map(|shutdown_ms| Limits {
                shutdown_ms,
                ..Limits::default()
            }),
            remarks: located.remarks(),
        }
    }

    /// A server that is in no catalogue.
    pub fn of_command(name: &str, argv: &[String], extensions: BTreeMap<String, String>) -> Self {
        Self {
            name: name.to_owned(),
            version: None,
            language: None,
            origin: dsh_reports::Origin::Command,
            command: argv.first().cloned().unwrap_or_default(),
            args: argv.get(1..).unwrap_or_default().to_vec(),
            env: BTreeMap::new(),
            extensions,
            initialization_options: Value::Null,
            configuration: Value::Null,
            announce_configuration: false,
            rising_versions: false,
            retry_stale: 0,
            remedies: Vec::new(),
            limits: None,
            remarks: Vec::new(),
        }
    }

    /// What stands under the server's name in `servers` of the row that mounts it; what has the
    /// host's own default is left out.
    pub fn row(&self) -> Value {
        let mut server = json!({"command": self.command});
        if !self.args.is_empty() {
            server["args"] = json!(self.args);
        }
        if !self.env.is_empty() {
            server["env"] = json!(self.env);
        }
        server["extensionToLanguage"] = json!(self.extensions);
        for (key, value) in [
            ("initializationOptions", &self.initialization_options),
            ("configuration", &self.configuration),
        ] {
            if !value.is_null() {
                server[key] = value.clone();
            }
        }
        if self.announce_configuration {
            server["announceConfiguration"] = true.into();
        }
        if self.rising_versions {
            server["versions"] = "rising".into();
        }
        if self.retry_stale > 0 {
            server["retryStale"] = self.retry_stale.into();
        }
        let (limits, default) = (self.limits.unwrap_or_default(), Limits::default());
        if limits.shutdown_ms != default.shutdown_ms {
            server["shutdownTimeoutMs"] = limits.shutdown_ms.into();
        }
        if limits.kill_grace_ms != default.kill_grace_ms {
            server["killGraceMs"] = limits.kill_grace_ms.into();
        }
        server
    }

    /// The rows that mount a runtime with this server behind the tool. JSON is YAML.
    pub fn deployment(&self) -> String {
        let servers = Map::from_iter([(self.name.clone(), self.row())]);
        format!("{:#}\n", deployment_rows(&servers, None))
    }

    /// The command as it would be typed.
    pub(crate) fn argv(&self) -> Vec<String> {
        std::iter::once(&self.command)
            .chain(&self.args)
            .cloned()
            .collect()
    }

    pub(crate) fn subject(&self) -> dsh_reports::Subject {
        dsh_reports::Subject {
            kind: dsh_reports::SubjectKind::Server,
            name: self.name.clone(),
            version: self.version.clone(),
            language: self.language.clone(),
            path: Some(self.command.clone()),
            origin: Some(self.origin),
            command: self.argv(),
        }
    }
}

/// The rows that mount a runtime with these servers behind the tool; with the tool's own
/// `timeoutMs` where none is given.
pub fn deployment_rows(servers: &Map<String, Value>, timeout_ms: Option<u64>) -> Value {
    let mut tool = json!({"name": "@deepseek-ai/dsh-tool-lsp"});
    if let Some(timeout_ms) = timeout_ms {
        tool["config"] = json!({"timeoutMs": timeout_ms});
    }
    json!([
        {"name": "@deepseek-ai/dsh-fs-local"},
        {"name": "@deepseek-ai/dsh-subprocess-local"},
        {"name": "@deepseek-ai/dsh-lsp"},
        {"name": "@deepseek-ai/dsh-lsp-stdio", "config": {"servers": servers}},
        tool,
    ])
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_budget_bounds_the_limits() {
        let slow = Limits {
            shutdown_ms: 20_000,
            ..Limits::default()
        };
        assert_eq!(slow.within(Duration::from_mins(1)), slow);
        assert_eq!(
            slow.within(Duration::from_secs(3)),
            Limits {
                shutdown_ms: 3_000,
                kill_grace_ms: 2_000
            }
        );
        let least = Limits::default().within(Duration::ZERO);
        assert_eq!((least.shutdown_ms, least.kill_grace_ms), (1, 1));
    }

    #[test]
    fn the_deployment_leaves_out_what_is_not_set() {
        let argv = ["/bin/x".to_owned(), "--stdio".to_owned()];
        let extensions = BTreeMap::from([(".x".to_owned(), "x".to_owned())]);
        let target = Target::of_command("x", &argv, extensions);
        let rows: Value = serde_json::from_str(&target.deployment()).unwrap();
        assert_eq!(
            rows[3]["config"]["servers"]["x"],
            json!({
                "command": "/bin/x",
                "args": ["--stdio"],
                "extensionToLanguage": {".x": "x"},
            })
        );
        let target = Target {
            configuration: json!({}),
            ..target
        };
        let rows: Value = serde_json::from_str(&target.deployment()).unwrap();
        assert_eq!(
            rows[3]["config"]["servers"]["x"]["configuration"],
            json!({})
        );
        let limits = Some(Limits {
            shutdown_ms: 20_000,
            ..Limits::default()
        });
        let target = Target {
            limits,
            announce_configuration: true,
            rising_versions: true,
            retry_stale: 2,
            ..target
        };
        assert_eq!(
            target.row(),
            json!({
                "command": "/bin/x",
                "args": ["--stdio"],
                "extensionToLanguage": {".x": "x"},
                "configuration": {},
                "announceConfiguration": true,
                "versions": "rising",
                "retryStale": 2,
                "shutdownTimeoutMs": 20_000,
            })
        );
    }
}
