//! The mutants this program was built with.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use super::form::{Life, Mutant, MutantFile};
use crate::{Clauses, Judged, Level, Profile};

/// All mutants, file by file.
#[derive(Clone, Debug, Default)]
pub struct Mutants {
    files: Vec<(String, MutantFile)>,
}

/// Records that are no mutants.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {message}")]
pub struct MutantError {
    /// The file.
    pub file: String,
    /// What is wrong with it, and what would be right.
    pub message: String,
}

macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        [$((
            concat!("mutants/", $name, ".yaml"),
            include_str!(concat!("../../mutants/", $name, ".yaml")),
        )),+]
    };
}

const FILES: [(&str, &str); 16] = files![
    "seam",
    "config",
    "environment",
    "sources",
    "handshake",
    "open",
    "framing",
    "results",
    "server-requests",
    "errors",
    "cancel",
    "crash-and-dispose",
    "tool",
    "runtime",
    "instructions",
    "instructions-in-detail",
];

impl Mutants {
    /// The mutants that this program was built with.
    pub fn embedded() -> &'static Self {
        static EMBEDDED: OnceLock<Mutants> = OnceLock::new();
        EMBEDDED.get_or_init(|| {
            Self::parse(FILES).expect("a test reads the embedded records, and they are constant")
        })
    }

    /// Reads records: pairs of a file's name, for errors, and its text.
    pub fn parse<'a>(
        files: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, MutantError> {
        let mut this = Self::default();
        let mut names = BTreeSet::new();
        for (file, text) in files {
            let fault = |message: String| MutantError {
                file: file.to_owned(),
                message,
            };
            let parsed: MutantFile =
                serde_saphyr::from_str(text).map_err(|error| fault(error.to_string()))?;
            for mutant in &parsed.mutants {
                let name = &mutant.name;
                if !names.insert(name.clone()) {
                    return Err(fault(format!("there are two mutants {name}; rename one")));
                }
                check(mutant).map_err(|message| fault(format!("{name}: {message}")))?;
            }
            this.files.push((file.to_owned(), parsed));
        }
        Ok(this)
    }

    /// All of them, with their files.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Mutant)> {
        self.files
            .iter()
            .flat_map(|(file, parsed)| parsed.mutants.iter().map(move |mutant| (&**file, mutant)))
    }

    /// Those that break a clause.
    pub fn of<'a>(&'a self, clause: &'a str) -> impl Iterator<Item = &'a Mutant> {
        self.iter()
            .map(|(_, mutant)| mutant)
            .filter(move |mutant| mutant.breaks.iter().any(|broken| broken == clause))
    }

    /// The clauses that have to be broken by a mutant: each MUST of the profiles `transient`, `tool`,
    /// `runtime` and `instructions` that can be judged on the wire or through a subject.
    pub fn wanted() -> impl Iterator<Item = &'static str> {
        Clauses::embedded().iter().filter_map(|clause| {
            let profiled = clause.profiles.iter().any(|profile| {
                matches!(
                    profile,
                    Profile::Transient | Profile::Tool | Profile::Runtime | Profile::Instructions
                )
            });
            let judged = |judged| clause.judged.contains(&judged);
            (clause.level == Level::Must
                && profiled
                && (judged(Judged::Wire) || judged(Judged::Subject)))
            .then_some(clause.id.as_str())
        })
    }
}

fn check(mutant: &Mutant) -> Result<(), String> {
    if mutant.breaks.is_empty() {
        return Err("it breaks nothing; name at least one clause in `breaks`".to_owned());
    }
    for clause in &mutant.breaks {
        Clauses::embedded()
            .find(clause)
            .map_err(|unknown| unknown.to_string())?;
    }
    if mutant.wire.is_empty() && mutant.result.is_empty() && mutant.life.is_empty() {
        return Err("it does nothing; give `wire`, `result` or `life`".to_owned());
    }
    for rule in &mutant.wire {
        let on = &rule.on;
        let given = [
            &on.client,
            &on.server,
            &on.client_answers,
            &on.server_answers,
            &on.deviates,
        ];
        if given.into_iter().flatten().count() != 1 {
            return Err("a rule of `wire` names exactly one of `client`, `server`, \
                        `client_answers`, `server_answers` and `deviates`"
                .to_owned());
        }
        if rule.r#do.is_empty() {
            return Err("a rule of `wire` does nothing".to_owned());
        }
    }
    for pattern in &mutant.scenarios {
        glob::Pattern::new(pattern).map_err(|error| format!("{pattern:?}: {error}"))?;
    }
    let left = [Life::Adrift, Life::DeafToSigterm];
    if left.iter().all(|life| mutant.life.contains(life)) {
        return Err("a server that is adrift gets no signal anyway".to_owned());
    }
    Ok(())
}

/// The JSON Schema of a file of mutants.
pub fn mutant_schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(MutantFile);
    schema.insert("title".to_owned(), "Mutants of dsh-conform".into());
    schema.to_value()
}
