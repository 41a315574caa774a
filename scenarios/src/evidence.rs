//! Who witnesses a clause: the tests that name it in their documentation, and the probes.
//!
//! The index `evidence.json` is generated from the sources, embedded for `explain`, and held
//! current by a test. Finding witnesses in a text is pure; walking the tree is the caller's.

mod scan;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::clause::Clauses;

/// What kind of witness it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WitnessKind {
    /// A test that `cargo test` runs.
    Test,
    /// A probe that `check` runs.
    Probe,
}

/// One test or probe that names a clause.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Witness {
    /// What kind of witness it is.
    pub kind: WitnessKind,
    /// The package it is in.
    pub package: String,
    /// The file it is in, relative to the project's root, with slashes.
    pub file: String,
    /// The test's function; the clause's id for a probe.
    pub name: String,
}

impl Witness {
    /// The command that runs it.
    pub fn command(&self) -> String {
        match self.kind {
            WitnessKind::Test => format!("cargo test -p {} {}", self.package, self.name),
            WitnessKind::Probe => format!("dsh-conform check --only {}", self.name),
        }
    }
}

impl fmt::Display for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            WitnessKind::Test => write!(f, "test {} ({})", self.name, self.file),
            WitnessKind::Probe => write!(f, "probe {} ({})", self.name, self.file),
        }
    }
}

/// Clause → who witnesses it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence(BTreeMap<String, Vec<Witness>>);

/// An index that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the evidence index cannot be read: {0}")]
pub struct EvidenceError(#[from] serde_json::Error);

impl Evidence {
    /// The index that this program was built with.
    pub fn embedded() -> &'static Self {
        static EMBEDDED: OnceLock<Evidence> = OnceLock::new();
        EMBEDDED.get_or_init(|| {
            Self::parse(include_str!("../evidence.json"))
                .expect("a test reads the embedded index, and it is constant")
        })
    }

    /// Reads an index.
    pub fn parse(text: &str) -> Result<Self, EvidenceError> {
        Ok(Self(serde_json::from_str(text)?))
    }

    /// Adds what a source file witnesses. `file` is relative to the root, with slashes; files that
    /// belong to no package of ours, and ids of no clause, witness nothing.
    pub fn add(&mut self, file: &str, text: &str) {
        let Some(package) = package(file) else { return };
        for (id, kind, name) in scan::witnesses(file, text) {
            let witness = Witness {
                kind,
                package: package.to_owned(),
                file: file.to_owned(),
                name,
            };
            let known = self.0.entry(id).or_default();
            if let Err(place) = known.binary_search(&witness) {
                known.insert(place, witness);
            }
        }
    }

    /// Who witnesses the clause with this id.
    pub fn of(&self, id: &str) -> &[Witness] {
        self.0.get(id).map_or(&[], Vec::as_slice)
    }

    /// The ids that are named, known as clauses or not.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The index as it is committed: clauses in their order, a line each witness, so that a change
    /// is small. Ids of no clause are left out.
    pub fn to_json(&self, clauses: &Clauses) -> String {
        let mut entries = Vec::new();
        for clause in clauses.iter() {
            let witnesses: Vec<String> = self
                .of(&clause.id)
                .iter()
                .map(|witness| {
                    let line = serde_json::to_string(witness)
                        .expect("four strings can always be written as JSON");
                    format!("\n    {line}")
                })
                .collect();
            if !witnesses.is_empty() {
                entries.push(format!(
                    "\n  \"{}\": [{}\n  ]",
                    clause.id,
                    witnesses.join(",")
                ));
            }
        }
        format!("{{{}\n}}\n", entries.join(","))
    }
}

/// The package a file belongs to, by the layout of the project.
fn package(file: &str) -> Option<&'static str> {
    const PACKAGES: [(&str, &str); 21] = [
        ("harness/kernel/", "dsh-kernel"),
        ("harness/fs/", "dsh-fs"),
        ("harness/subprocess/", "dsh-subprocess"),
        ("harness/tools/", "dsh-tools"),
        ("harness/session/", "dsh-session"),
        ("harness/agent/", "dsh-agent"),
        ("harness/lsp/", "dsh-lsp"),
        ("harness/lsp-stdio/", "dsh-lsp-stdio"),
        ("harness/tool-lsp/", "dsh-tool-lsp"),
        ("harness/model-openai/", "dsh-model-openai"),
        ("harness/code-mode/", "dsh-code-mode"),
        ("harness/workspace-context/", "dsh-workspace-context"),
        ("harness/tool-fs/", "dsh-tool-fs"),
        ("harness/runtime/", "dsh-harness"),
        ("harness/profiles/", "dsh-profiles"),
        ("fake-servers/", "dsh-fake-lsp"),
        ("scenarios/", "dsh-scenarios"),
        ("e2e/", "dsh-e2e"),
        ("reports/transcript/", "dsh-transcript"),
        ("reports/render/", "dsh-reports"),
        ("tests/", "dsh-conform"),
    ];
    PACKAGES
        .iter()
        .find_map(|(folder, package)| file.starts_with(folder).then_some(*package))
}
