//! The rows that a deployment may have: names, what they are for, and their configuration.

use dsh_code_mode::CodeModeConfig;
use dsh_fs::FileSystem;
use dsh_kernel::ServiceKey;
use dsh_lsp::LspService;
use dsh_lsp_stdio::LspStdioConfig;
use dsh_subprocess::Subprocess;
use dsh_tool_fs::{ReadBeforeWriteConfig, ToolFsConfig, WriteGuard};
use dsh_tool_lsp::ToolLspConfig;
use dsh_tools::{TimeoutPolicyConfig, nearest};
use dsh_workspace_context::WorkspaceContextConfig;
use schemars::schema_for;
use serde_json::Value;

/// A plugin that a row can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PluginName {
    /// `dsh-fs-local`
    FsLocal,
    /// `dsh-subprocess-local`
    SubprocessLocal,
    /// `dsh-lsp`
    Lsp,
    /// `dsh-lsp-stdio`
    LspStdio,
    /// `dsh-tool-lsp`
    ToolLsp,
    /// `dsh-tool-call-timeout-policy`
    TimeoutPolicy,
    /// `dsh-tool-fs`
    ToolFs,
    /// `dsh-read-before-write-policy`
    ReadBeforeWrite,
    /// `dsh-code-mode`
    CodeMode,
    /// `dsh-workspace-context`
    WorkspaceContext,
}

/// The scope of the package names in its two spellings; it may be left out.
const SCOPES: [&str; 2] = ["@deepseek-ai/", "deepseek-ai/"];

/// What belongs to the base.
const BASE: [&str; 4] = ["dsh-tools", "dsh-system-prompt", "dsh-session", "dsh-agent"];

impl PluginName {
    /// All of them, in the order in which they are documented.
    pub const ALL: [Self; 10] = [
        Self::FsLocal,
        Self::SubprocessLocal,
        Self::Lsp,
        Self::LspStdio,
        Self::ToolLsp,
        Self::TimeoutPolicy,
        Self::ToolFs,
        Self::ReadBeforeWrite,
        Self::CodeMode,
        Self::WorkspaceContext,
    ];

    /// The short name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FsLocal => "dsh-fs-local",
            Self::SubprocessLocal => "dsh-subprocess-local",
            Self::Lsp => "dsh-lsp",
            Self::LspStdio => "dsh-lsp-stdio",
            Self::ToolLsp => "dsh-tool-lsp",
            Self::TimeoutPolicy => "dsh-tool-call-timeout-policy",
            Self::ToolFs => "dsh-tool-fs",
            Self::ReadBeforeWrite => "dsh-read-before-write-policy",
            Self::CodeMode => "dsh-code-mode",
            Self::WorkspaceContext => "dsh-workspace-context",
        }
    }

    /// The service that others get from it.
    pub(crate) fn provides(self) -> Option<ServiceKey> {
        match self {
            Self::FsLocal => Some(ServiceKey::of::<dyn FileSystem>()),
            Self::SubprocessLocal => Some(ServiceKey::of::<dyn Subprocess>()),
            Self::Lsp => Some(ServiceKey::of::<dyn LspService>()),
            Self::ReadBeforeWrite => Some(ServiceKey::of::<dyn WriteGuard>()),
            Self::LspStdio
            | Self::ToolLsp
            | Self::TimeoutPolicy
            | Self::ToolFs
            | Self::CodeMode
            | Self::WorkspaceContext => None,
        }
    }

    /// What it is for, in one sentence.
    pub const fn about(self) -> &'static str {
        match self {
            Self::FsLocal => "Files of this machine.",
            Self::SubprocessLocal => "Processes of this machine.",
            Self::Lsp => "The language-server seam: which provider answers for which extension.",
            Self::LspStdio => {
                "Runs the configured language servers and registers each with the seam. \
                 Needs the rows of the file system, the processes and the seam."
            }
            Self::ToolLsp => "The `lsp` tool of the model. Needs the row of the seam.",
            Self::TimeoutPolicy => {
                "Gives each call of a tool with a budget a deadline. Part of the base: \
                 a row is only needed to configure it."
            }
            Self::ToolFs => {
                "The tools `read`, `write` and `edit` of the model. Needs the row of the file system."
            }
            Self::ReadBeforeWrite => {
                "Lets a session write a file only if it has read it, by whatever path, and it has not \
                 changed since. A window of a file that was read counts as the file."
            }
            Self::CodeMode => {
                "The tool `run_code` of the model: JavaScript that calls the other tools."
            }
            Self::WorkspaceContext => {
                "Shows the model the `AGENTS.md` files of its workspace, and what changes in them. \
                 Does nothing while there is no file system."
            }
        }
    }

    /// Whether a deployment may have it more than once.
    pub(crate) const fn repeats(self) -> bool {
        matches!(self, Self::LspStdio)
    }

    /// JSON Schema of its configuration; none if it takes none.
    pub fn config_schema(self) -> Option<Value> {
        let schema = match self {
            Self::FsLocal | Self::SubprocessLocal | Self::Lsp | Self::ReadBeforeWrite => {
                return None;
            }
            Self::LspStdio => schema_for!(LspStdioConfig),
            Self::ToolLsp => schema_for!(ToolLspConfig),
            Self::TimeoutPolicy => schema_for!(TimeoutPolicyConfig),
            Self::ToolFs => schema_for!(ToolFsConfig),
            Self::CodeMode => schema_for!(CodeModeConfig),
            Self::WorkspaceContext => schema_for!(WorkspaceContextConfig),
        };
        Some(schema.to_value())
    }

    /// The plugin of a row's `name`; the error says what was probably meant.
    pub(crate) fn find(name: &str) -> Result<Self, String> {
        let unscoped = SCOPES
            .into_iter()
            .find_map(|scope| name.strip_prefix(scope));
        let short = unscoped.unwrap_or(name);
        if let Some(found) = Self::ALL
            .into_iter()
            .find(|plugin| plugin.as_str() == short)
        {
            return Ok(found);
        }
        if BASE.contains(&short) {
            return Err(format!(
                "{short} belongs to the base and has no row; leave it out"
            ));
        }
        let names = Self::ALL.map(Self::as_str);
        Err(match nearest(short, names) {
            Some(near) => format!("unknown plugin {}; did you mean {near}?", quoted(name)),
            None => format!(
                "unknown plugin {}; there are {}",
                quoted(name),
                names.join(", ")
            ),
        })
    }
}

impl std::fmt::Display for PluginName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A plugin with its configuration.
#[derive(Clone, Debug, PartialEq)]
pub enum RowConfig {
    /// `dsh-fs-local`
    FsLocal,
    /// `dsh-subprocess-local`
    SubprocessLocal,
    /// `dsh-lsp`
    Lsp,
    /// `dsh-lsp-stdio`
    LspStdio(LspStdioConfig),
    /// `dsh-tool-lsp`
    ToolLsp(ToolLspConfig),
    /// `dsh-tool-call-timeout-policy`
    TimeoutPolicy(TimeoutPolicyConfig),
    /// `dsh-tool-fs`
    ToolFs(ToolFsConfig),
    /// `dsh-read-before-write-policy`
    ReadBeforeWrite(ReadBeforeWriteConfig),
    /// `dsh-code-mode`
    CodeMode(CodeModeConfig),
    /// `dsh-workspace-context`
    WorkspaceContext(WorkspaceContextConfig),
}

impl RowConfig {
    /// The plugin.
    pub const fn plugin(&self) -> PluginName {
        match self {
            Self::FsLocal => PluginName::FsLocal,
            Self::SubprocessLocal => PluginName::SubprocessLocal,
            Self::Lsp => PluginName::Lsp,
            Self::LspStdio(_) => PluginName::LspStdio,
            Self::ToolLsp(_) => PluginName::ToolLsp,
            Self::TimeoutPolicy(_) => PluginName::TimeoutPolicy,
            Self::ToolFs(_) => PluginName::ToolFs,
            Self::ReadBeforeWrite(_) => PluginName::ReadBeforeWrite,
            Self::CodeMode(_) => PluginName::CodeMode,
            Self::WorkspaceContext(_) => PluginName::WorkspaceContext,
        }
    }
}

/// What is wrong with a configuration: the keys that lead there, whether it is about the last key
/// itself, and the words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfigProblem {
    pub(crate) path: Vec<String>,
    pub(crate) of_key: bool,
    pub(crate) problem: String,
}

/// Reads a row's configuration.
pub(crate) fn configure(plugin: PluginName, value: Value) -> Result<RowConfig, ConfigProblem> {
    match plugin.config_schema() {
        Some(schema) => known_keys(&schema, &schema, &value, &mut Vec::new())?,
        None => no_keys(plugin, &value)?,
    }
    Ok(match plugin {
        PluginName::FsLocal => RowConfig::FsLocal,
        PluginName::SubprocessLocal => RowConfig::SubprocessLocal,
        PluginName::Lsp => RowConfig::Lsp,
        PluginName::LspStdio => {
            RowConfig::LspStdio(LspStdioConfig::from_value(value).map_err(|error| {
                ConfigProblem {
                    path: error.path().to_vec(),
                    of_key: false,
                    problem: error.to_string(),
                }
            })?)
        }
        PluginName::ToolLsp => RowConfig::ToolLsp(flat(plugin, &value)?),
        PluginName::TimeoutPolicy => RowConfig::TimeoutPolicy(flat(plugin, &value)?),
        PluginName::ToolFs => {
            let config: ToolFsConfig = flat(plugin, &value)?;
            let fits = config.validate();
            fits.map_err(|error| out_of_range(&error.key.to_string(), &error))?;
            RowConfig::ToolFs(config)
        }
        PluginName::ReadBeforeWrite => RowConfig::ReadBeforeWrite(ReadBeforeWriteConfig::default()),
        PluginName::CodeMode => {
            let config: CodeModeConfig = flat(plugin, &value)?;
            let fits = config.validate();
            fits.map_err(|error| out_of_range(error.key(), &error))?;
            RowConfig::CodeMode(config)
        }
        PluginName::WorkspaceContext => RowConfig::WorkspaceContext(flat(plugin, &value)?),
    })
}

/// Whether a number that is not finite means something at this key: a budget that switches off
/// (INS-11).
pub(crate) fn takes_not_finite(plugin: PluginName, path: &[String]) -> bool {
    plugin == PluginName::WorkspaceContext && path == ["maxBytes"]
}

fn out_of_range(key: &str, error: &dyn std::fmt::Display) -> ConfigProblem {
    ConfigProblem {
        path: vec![key.to_owned()],
        of_key: false,
        problem: error.to_string(),
    }
}

fn no_keys(plugin: PluginName, value: &Value) -> Result<(), ConfigProblem> {
    let first = value.as_object().and_then(|table| table.keys().next());
    match (value, first) {
        (Value::Object(_), None) => Ok(()),
        (_, first) => Err(ConfigProblem {
            path: first.cloned().into_iter().collect(),
            of_key: true,
            problem: format!("{plugin} takes no configuration; leave `config` out"),
        }),
    }
}

/// Finds the first key that the schema does not know.
fn known_keys(
    root: &Value,
    schema: &Value,
    value: &Value,
    path: &mut Vec<String>,
) -> Result<(), ConfigProblem> {
    let schema = resolve(root, schema);
    let (Some(table), Some(schema)) = (value.as_object(), schema.as_object()) else {
        return Ok(());
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    let additional = schema.get("additionalProperties");
    for (key, value) in table {
        let known = properties.and_then(|known| known.get(key));
        path.push(key.clone());
        match known.or(additional) {
            Some(Value::Bool(false)) => {
                let names = properties.into_iter().flat_map(|known| known.keys());
                let names: Vec<_> = names.map(String::as_str).collect();
                let problem = unknown_key(path, &names);
                return Err(ConfigProblem {
                    path: path.clone(),
                    of_key: true,
                    problem,
                });
            }
            Some(of) => known_keys(root, of, value, path)?,
            None => {}
        }
        path.pop();
    }
    Ok(())
}

pub(crate) fn unknown_key(path: &[String], known: &[&str]) -> String {
    let name = path.last().map(String::as_str).unwrap_or_default();
    let full = quoted(&path.join("."));
    match nearest(name, known.iter().copied()) {
        Some(near) => format!("unknown key {full}; did you mean {near}?"),
        None => format!("unknown key {full}; the keys here are {}", known.join(", ")),
    }
}

/// Follows a reference to a definition of the same schema.
pub(crate) fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let reference = schema.get("$ref").and_then(Value::as_str);
    reference
        .and_then(|reference| reference.strip_prefix('#'))
        .and_then(|pointer| root.pointer(pointer))
        .unwrap_or(schema)
}

/// Reads a configuration without tables in it.
fn flat<T: serde::de::DeserializeOwned>(
    plugin: PluginName,
    value: &Value,
) -> Result<T, ConfigProblem> {
    let schema = plugin.config_schema().unwrap_or_default();
    if let Some(key) = missing(&schema, value) {
        return Err(ConfigProblem {
            path: Vec::new(),
            of_key: false,
            problem: format!("{key} is missing; add it to `config`"),
        });
    }
    serde_json::from_value(value.clone()).map_err(|error| {
        // The format does not tell which key was at fault: each is tried alone.
        let table = value.as_object();
        let alone = |(key, value): (&String, &Value)| {
            let one: serde_json::Map<_, _> = [(key.clone(), value.clone())].into_iter().collect();
            let error = serde_json::from_value::<T>(Value::Object(one)).err()?;
            // A required key that is not there is no fault of this one.
            let own = !error.to_string().starts_with("missing field");
            own.then(|| (key.clone(), error))
        };
        let found = table.and_then(|table| table.iter().find_map(alone));
        let (path, problem) = match found {
            Some((key, error)) => {
                let told = error.to_string();
                let problem = if told.starts_with(&key) {
                    told
                } else {
                    let kind = crate::reference::kind(&schema, &schema["properties"][&key]);
                    format!("{key} must be {kind}; this is {}", shown(&value[&key]))
                };
                (vec![key], problem)
            }
            None => (Vec::new(), format!("config: {error}")),
        };
        ConfigProblem {
            path,
            of_key: false,
            problem,
        }
    })
}

/// The first key that must be there and is not.
fn missing<'a>(schema: &'a Value, value: &Value) -> Option<&'a str> {
    let required = schema["required"].as_array()?;
    let mut names = required.iter().filter_map(Value::as_str);
    names.find(|name| value.get(name).is_none())
}

/// A value in a message; what is large is named by its kind.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a table".to_owned(),
        other => other.to_string(),
    }
}

/// A name from the file in a message: quoted, and not longer than a line.
pub(crate) fn quoted(name: &str) -> String {
    const MAX: usize = 80;
    match name.char_indices().nth(MAX) {
        None => format!("{name:?}"),
        Some((end, _)) => format!("{:?}…", &name[..end]),
    }
}
