//! Which profiles there are, and what each is composed of.

use std::fmt::Write as _;

use dsh_harness::lsp_stdio::LspStdioConfig;
use dsh_harness::tool_lsp::ToolLspConfig;
use dsh_harness::{Deployment, PluginName, RowConfig};

/// Rows of the profiles that stand on the base.
const BASE: &str = include_str!("../deployments/base.yml");

/// Rows of the one that does not.
const MINIMAL: &str = include_str!("../deployments/sdk-minimal.yml");

/// A way to run agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Profile {
    /// One prompt, to its end.
    Headless,
    /// JSON-RPC 2.0 over stdio, for programs.
    Sdk,
    /// The same with few abilities, and none of the base's.
    SdkMinimal,
    /// The Agent Client Protocol over stdio, for editors.
    Acp,
}

/// What a profile is composed of.
#[derive(Clone, Debug, PartialEq)]
pub struct Composition {
    /// Whether it stands on the base: the timeout policy, which needs no row.
    pub base: bool,
    /// The rows that are mounted unless others are given.
    pub deployment: Deployment,
    /// The plugin that stands between the runtime and who uses it.
    pub front: &'static str,
}

impl Profile {
    /// All of them, in the order in which they are documented.
    pub const ALL: [Self; 4] = [Self::Headless, Self::Sdk, Self::SdkMinimal, Self::Acp];

    /// The name as it is typed.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Headless => "headless",
            Self::Sdk => "sdk",
            Self::SdkMinimal => "sdk-minimal",
            Self::Acp => "acp",
        }
    }

    /// What it is for, in one sentence.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Headless => "One prompt on the command line, run to its end.",
            Self::Sdk => "For programs: JSON-RPC 2.0 on stdin and stdout.",
            Self::SdkMinimal => "The same with file tools alone.",
            Self::Acp => "For editors: the Agent Client Protocol on stdin and stdout.",
        }
    }

    /// The profile of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|profile| profile.as_str() == name)
    }

    /// Whether it stands on the base.
    pub const fn has_base(self) -> bool {
        !matches!(self, Self::SdkMinimal)
    }

    /// The plugin that stands between the runtime and who uses it.
    pub const fn front(self) -> &'static str {
        match self {
            Self::Headless => "dsh-headless",
            Self::Sdk | Self::SdkMinimal => "dsh-sdk-app",
            Self::Acp => "dsh-acp-app",
        }
    }

    /// What it is composed of.
    pub fn composition(self) -> Composition {
        let (origin, rows) = if self.has_base() {
            ("base.yml", BASE)
        } else {
            ("sdk-minimal.yml", MINIMAL)
        };
        Composition {
            base: self.has_base(),
            deployment: Deployment::parse(rows, origin)
                .expect("the rows of the profiles are read by a test"),
            front: self.front(),
        }
    }
}

impl std::fmt::Display for Profile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Adds language servers and the model's tool for them to rows, with whichever of the rows they
/// need are not there yet.
#[must_use]
pub fn with_language_servers(rows: Deployment, servers: LspStdioConfig) -> Deployment {
    let needed = [
        RowConfig::FsLocal,
        RowConfig::SubprocessLocal,
        RowConfig::Lsp,
        RowConfig::LspStdio(servers),
        RowConfig::ToolLsp(ToolLspConfig::default()),
    ];
    needed.into_iter().fold(rows, |rows, row| {
        let plugin = row.plugin();
        let there = rows
            .rows()
            .iter()
            .any(|row| row.config().plugin() == plugin);
        if there && plugin != PluginName::LspStdio {
            rows
        } else {
            rows.with_row(row)
        }
    })
}

/// What each profile is composed of, as a Markdown table. A test holds it against the mounted
/// runtime.
pub fn composition_table() -> String {
    let mut table =
        String::from("| profile | for | base | rows | front |\n|---|---|---|---|---|\n");
    for profile in Profile::ALL {
        let Composition {
            base,
            deployment,
            front,
        } = profile.composition();
        let rows: Vec<String> = deployment
            .rows()
            .iter()
            .map(|row| format!("`{}`", row.config().plugin()))
            .collect();
        let _ = writeln!(
            table,
            "| `{profile}` | {} | {} | {} | `{front}` |",
            profile.about(),
            if base { "yes" } else { "no" },
            rows.join(", "),
        );
    }
    table
}
