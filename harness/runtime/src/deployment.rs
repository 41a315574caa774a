//! The deployment file (RUN-3): a list of rows, each a plugin's name and its configuration.

use std::collections::BTreeMap;

use dsh_lsp_stdio::LspStdioConfig;
use dsh_tool_lsp::ToolLspConfig;
use dsh_tools::nearest;

use crate::DeploymentError;
use crate::row::{self, PluginName, RowConfig, quoted, unknown_key};
use crate::yaml::{self, Entry, Node, Place, Tree};

/// The keys of a row.
const ROW_KEYS: [&str; 3] = ["name", "config", "id"];

/// What a runtime is made of: the rows of a deployment file, read and checked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Deployment {
    rows: Vec<Row>,
}

/// One plugin to mount.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    id: Option<String>,
    config: RowConfig,
    origin: Option<(String, u64)>,
}

impl Row {
    /// A row made in code.
    pub fn new(config: RowConfig) -> Self {
        Self {
            id: None,
            config,
            origin: None,
        }
    }

    /// The row's own id, unique in its deployment.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// The plugin and its configuration.
    pub const fn config(&self) -> &RowConfig {
        &self.config
    }

    /// File and line (one-based) of the row; none if it was made in code.
    pub fn origin(&self) -> Option<(&str, u64)> {
        self.origin
            .as_ref()
            .map(|(file, line)| (file.as_str(), *line))
    }
}

impl Deployment {
    /// Reads a deployment file. `origin` is its name in errors; nothing is opened.
    ///
    /// Every error carries line and column and what to do about it.
    pub fn parse(text: &str, origin: &str) -> Result<Self, DeploymentError> {
        let fail = |at: Place, problem: String| DeploymentError::new(origin, at, problem);
        let root = yaml::read(text).map_err(|error| fail(error.at, error.problem))?;
        let Tree::List(items) = &root.tree else {
            let problem = format!(
                "a deployment is a list of rows (`- name: dsh-lsp`), and this is {}",
                root.kind()
            );
            return Err(fail(first_line(root.at), problem));
        };
        let mut rows = Vec::new();
        let mut ids: BTreeMap<&str, u64> = BTreeMap::new();
        let mut plugins: Vec<(PluginName, u64)> = Vec::new();
        for item in items {
            let raw = RawRow::read(item).map_err(|(at, problem)| fail(at, problem))?;
            if let Some((id, at)) = raw.id
                && let Some(line) = ids.insert(id, at.line)
            {
                let problem = format!(
                    "the row id {} is taken by line {line}; give each row its own",
                    quoted(id)
                );
                return Err(fail(at, problem));
            }
            let name_at = raw.name.1;
            let row = raw
                .configure(origin)
                .map_err(|(at, problem)| fail(at, problem))?;
            let plugin = row.config.plugin();
            let earlier = plugins.iter().find(|(other, _)| *other == plugin);
            if let (Some((_, line)), false) = (earlier, plugin.repeats()) {
                let problem =
                    format!("{plugin} is named by line {line} already; one row is enough");
                return Err(fail(name_at, problem));
            }
            plugins.push((plugin, item.at.line));
            rows.push(row);
        }
        Ok(Self { rows })
    }

    /// The rows for language servers without the model's tool: files, processes, seam, host.
    pub fn language_servers(config: LspStdioConfig) -> Self {
        let rows = [
            RowConfig::FsLocal,
            RowConfig::SubprocessLocal,
            RowConfig::Lsp,
            RowConfig::LspStdio(config),
        ];
        Self {
            rows: rows.into_iter().map(Row::new).collect(),
        }
    }

    /// Adds the row of the model's tool.
    #[must_use]
    pub fn with_tool(self, config: ToolLspConfig) -> Self {
        self.with_row(RowConfig::ToolLsp(config))
    }

    /// Adds a row.
    #[must_use]
    pub fn with_row(mut self, config: RowConfig) -> Self {
        self.rows.push(Row::new(config));
        self
    }

    /// The rows, in their order.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }
}

/// An absent document has no place of its own.
fn first_line(at: Place) -> Place {
    Place {
        line: at.line.max(1),
        column: at.column.max(1),
    }
}

type Problem = (Place, String);

/// A row whose shape is right and whose configuration was not read yet.
struct RawRow<'a> {
    at: Place,
    name: (&'a str, Place),
    id: Option<(&'a str, Place)>,
    config: Option<&'a Node>,
}

impl<'a> RawRow<'a> {
    fn read(item: &'a Node) -> Result<Self, Problem> {
        let Tree::Table(entries) = &item.tree else {
            let problem = format!(
                "a row is a table with the key `name`, and this is {}; write `- name: …`",
                item.kind()
            );
            return Err((item.at, problem));
        };
        if let Some(entry) = entries
            .iter()
            .find(|entry| !ROW_KEYS.contains(&entry.key.as_str()))
        {
            return Err((entry.at, stray_key(&entry.key)));
        }
        let find = |key: &str| entries.iter().find(|entry| entry.key == key);
        let Some(name) = find("name") else {
            return Err((
                item.at,
                "the row has no `name`; add the plugin's name".to_owned(),
            ));
        };
        Ok(Self {
            at: item.at,
            name: string(name)?,
            id: find("id").map(string).transpose()?,
            config: find("config").map(|entry| &entry.node),
        })
    }

    fn configure(self, origin: &str) -> Result<Row, Problem> {
        let (name, name_at) = self.name;
        let plugin = PluginName::find(name).map_err(|problem| (name_at, problem))?;
        // `config:` without anything behind it is a row without configuration.
        let node = self.config.filter(|node| !node.to_value().is_null());
        let value = node.map_or_else(yaml::empty_table, Node::to_value);
        if !value.is_object() {
            let kind = node.map_or("nothing", Node::kind);
            let at = node.map_or(self.at, |node| node.at);
            return Err((
                at,
                format!("`config` of {plugin} must be a table, and this is {kind}"),
            ));
        }
        if let Some(node) = node
            && let Some((path, written)) = node.not_finite()
            && !row::takes_not_finite(plugin, &path)
        {
            let key = quoted(&path.join("."));
            let problem = format!("{plugin}: {key} must be a finite number, not {written}");
            return Err((node.place(&path, false), problem));
        }
        let config = row::configure(plugin, value).map_err(|problem| {
            let at = node.map_or(self.at, |node| node.place(&problem.path, problem.of_key));
            (at, format!("{plugin}: {}", problem.problem))
        })?;
        Ok(Row {
            id: self.id.map(|(id, _)| id.to_owned()),
            config,
            origin: Some((origin.to_owned(), self.at.line)),
        })
    }
}

/// A key that no row has; often it belongs one level deeper.
fn stray_key(key: &str) -> String {
    let of_config = PluginName::ALL.into_iter().find(|plugin| {
        let schema = plugin.config_schema();
        schema.is_some_and(|schema| schema.pointer(&format!("/properties/{key}")).is_some())
    });
    match of_config {
        Some(plugin) if nearest(key, ROW_KEYS).is_none() => format!(
            "unknown key {} in a row; it is a key of {plugin}'s `config`: indent it below that",
            quoted(key)
        ),
        _ => format!("{} in a row", unknown_key(&[key.to_owned()], &ROW_KEYS)),
    }
}

fn string(entry: &Entry) -> Result<(&str, Place), Problem> {
    let text = match &entry.node.tree {
        Tree::Scalar(value) => value.as_str().filter(|text| !text.trim().is_empty()),
        _ => None,
    };
    text.map(|text| (text, entry.node.at)).ok_or_else(|| {
        let kind = entry.node.kind();
        let blank = if kind == "a string" { "blank" } else { kind };
        (
            entry.node.at,
            format!(
                "`{}` must be a string with something in it, and this is {blank}",
                entry.key
            ),
        )
    })
}
