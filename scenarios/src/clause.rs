//! The records of `clauses/*.yaml`: types, reader, look-up.

mod source;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use source::{Source, SourceError};

/// How binding a clause is, as in RFC 2119.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// It decides.
    Must,
    /// Where it does not hold, there is a note.
    Should,
}

/// Whom a clause binds.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The client of the language server, with the tool and the runtime around it.
    Harness,
    /// The language server.
    Server,
    /// Whoever wrote the transcript.
    Wire,
}

/// A group of clauses that a subject can claim to keep.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// What LSP asks of any client.
    LspBase,
    /// Opening a document for one question only.
    Transient,
    /// The model-facing tool.
    Tool,
    /// Plugin host, tools pipeline, session and loop.
    Runtime,
    /// Workspace instructions.
    Instructions,
    /// What makes a language server usable.
    Server,
}

/// How it can be found out whether a clause holds.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Judged {
    /// From a transcript of the wire.
    Wire,
    /// By driving a subject and looking at what it returns and does.
    Subject,
    /// By a test of the part itself.
    Unit,
    /// By reading sources or manifests.
    Source,
    /// By probing a language server.
    Probe,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Clause {
    /// Section and number, `OPN-3` for instance; in the section LSP, words in lower case with
    /// slashes, `base/header/sep` for instance. Never used again for another rule.
    #[schemars(regex(pattern = r"^([A-Z]{3,4}-[1-9][0-9]*|[a-z]+(/[a-z0-9-]+)+)$"))]
    pub id: String,
    /// How binding it is.
    pub level: Level,
    /// Whom it binds.
    #[schemars(length(min = 1))]
    pub sides: Vec<Side>,
    /// Which profiles it is part of.
    #[schemars(length(min = 1))]
    pub profiles: Vec<Profile>,
    /// Where it comes from.
    #[schemars(length(min = 1))]
    pub sources: Vec<Source>,
    /// How it can be judged.
    #[schemars(length(min = 1))]
    pub judged: Vec<Judged>,
    /// What it says.
    #[schemars(length(min = 1))]
    pub statement: String,
    /// The version of this project that it came with.
    pub since: String,
    /// The clauses, or the rules `shape` and `framing` of the monitors, that say the same or more:
    /// what judges those judges this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub see: Vec<String>,
    /// Why nothing judges it. A clause that has a case has no such reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excluded: Option<String>,
}

/// What `see` may name besides clauses: rules of the monitors that are about all messages.
pub const UNNUMBERED_RULES: [&str; 2] = ["shape", "framing"];

/// The section whose ids are words.
const WORDED: &str = "LSP";

/// The clauses about one subject matter: one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Section {
    /// What its ids begin with.
    #[schemars(regex(pattern = r"^[A-Z]{3,4}$"))]
    pub section: String,
    /// What it is about.
    pub title: String,
    /// Its clauses, by rising number.
    #[schemars(length(min = 1))]
    pub clauses: Vec<Clause>,
}

/// All clauses, in the order in which they are read best.
#[derive(Clone, Debug)]
pub struct Clauses {
    sections: Vec<Section>,
    /// Id → section and place in it.
    by_id: BTreeMap<String, (usize, usize)>,
}

/// Records that do not make a set of clauses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClausesError {
    /// A file is not what the schema says.
    #[error("{file}: {message}")]
    Unreadable {
        /// The file.
        file: String,
        /// What is wrong with it, and where.
        message: String,
    },
    /// An id is not its file's section and a number without leading zeros, or, in the section LSP,
    /// not words and slashes.
    #[error(
        "{file}: {id:?} is no id of this section: write {}",
        if section == WORDED {
            "words in lower case with slashes, such as base/header/sep".to_owned()
        } else {
            format!("{section}- and a number from 1")
        }
    )]
    MalformedId {
        /// The file.
        file: String,
        /// What is not an id.
        id: String,
        /// The file's section.
        section: String,
    },
    /// Two records have one id, or two files one section, or numbers do not rise.
    #[error("{file}: {id} stands behind one that is the same or has a higher number")]
    OutOfOrder {
        /// The file.
        file: String,
        /// The later of the two.
        id: String,
    },
    /// A record says nothing where it has to say something.
    #[error("{file}: {id} has no {key}; give at least one")]
    Empty {
        /// The file.
        file: String,
        /// The record.
        id: String,
        /// What is empty.
        key: &'static str,
    },
    /// `see` names no clause, or one that refers on.
    #[error("{file}: {id} refers to {to}, {problem}")]
    BadReference {
        /// The file.
        file: String,
        /// The record.
        id: String,
        /// What it refers to.
        to: String,
        /// What is wrong with that.
        problem: &'static str,
    },
    /// A record is judged by others and by nothing.
    #[error("{file}: {id} has both `see` and `excluded`; give one")]
    Contradiction {
        /// The file.
        file: String,
        /// The record.
        id: String,
    },
}

/// An id that no clause has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no clause {id:?}; did you mean {nearest}?")]
pub struct UnknownClause {
    /// What was asked for.
    pub id: String,
    /// The nearest there is.
    pub nearest: String,
}

/// The records this program was built with: file and text.
const FILES: [(&str, &str); 20] = [
    ("clauses/seam.yaml", include_str!("../clauses/seam.yaml")),
    ("clauses/cfg.yaml", include_str!("../clauses/cfg.yaml")),
    ("clauses/env.yaml", include_str!("../clauses/env.yaml")),
    ("clauses/hst.yaml", include_str!("../clauses/hst.yaml")),
    ("clauses/ini.yaml", include_str!("../clauses/ini.yaml")),
    ("clauses/opn.yaml", include_str!("../clauses/opn.yaml")),
    ("clauses/frm.yaml", include_str!("../clauses/frm.yaml")),
    ("clauses/nav.yaml", include_str!("../clauses/nav.yaml")),
    ("clauses/hov.yaml", include_str!("../clauses/hov.yaml")),
    ("clauses/srq.yaml", include_str!("../clauses/srq.yaml")),
    ("clauses/err.yaml", include_str!("../clauses/err.yaml")),
    ("clauses/can.yaml", include_str!("../clauses/can.yaml")),
    ("clauses/crs.yaml", include_str!("../clauses/crs.yaml")),
    ("clauses/dis.yaml", include_str!("../clauses/dis.yaml")),
    ("clauses/wire.yaml", include_str!("../clauses/wire.yaml")),
    ("clauses/tool.yaml", include_str!("../clauses/tool.yaml")),
    ("clauses/run.yaml", include_str!("../clauses/run.yaml")),
    ("clauses/ins.yaml", include_str!("../clauses/ins.yaml")),
    ("clauses/qua.yaml", include_str!("../clauses/qua.yaml")),
    ("clauses/lsp.yaml", include_str!("../clauses/lsp.yaml")),
];

impl Clauses {
    /// The clauses that this program was built with.
    pub fn embedded() -> &'static Self {
        static EMBEDDED: OnceLock<Clauses> = OnceLock::new();
        EMBEDDED.get_or_init(|| {
            Self::parse(FILES).expect("a test reads the embedded records, and they are constant")
        })
    }

    /// Reads records: pairs of a file's name, for errors, and its text.
    pub fn parse<'a>(
        files: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, ClausesError> {
        let mut this = Self {
            sections: Vec::new(),
            by_id: BTreeMap::new(),
        };
        let mut names = Vec::new();
        for (file, text) in files {
            let section =
                serde_saphyr::from_str(text).map_err(|error| ClausesError::Unreadable {
                    file: file.to_owned(),
                    message: error.to_string(),
                })?;
            this.add(file, section)?;
            names.push(file);
        }
        for (section, file) in this.sections.iter().zip(names) {
            for clause in &section.clauses {
                this.check_references(file, clause)?;
            }
        }
        Ok(this)
    }

    fn check_references(&self, file: &str, clause: &Clause) -> Result<(), ClausesError> {
        for to in &clause.see {
            let problem = match self.get(to) {
                None if UNNUMBERED_RULES.contains(&to.as_str()) => continue,
                None => "which is no clause",
                Some(other) if !other.see.is_empty() => "which refers to others itself",
                Some(other) if other.excluded.is_some() => "which nothing judges",
                Some(_) => continue,
            };
            return Err(ClausesError::BadReference {
                file: file.to_owned(),
                id: clause.id.clone(),
                to: to.clone(),
                problem,
            });
        }
        if clause.excluded.is_some() && !clause.see.is_empty() {
            return Err(ClausesError::Contradiction {
                file: file.to_owned(),
                id: clause.id.clone(),
            });
        }
        Ok(())
    }

    fn add(&mut self, file: &str, section: Section) -> Result<(), ClausesError> {
        let mut last = 0;
        for (place, clause) in section.clauses.iter().enumerate() {
            let malformed = || ClausesError::MalformedId {
                file: file.to_owned(),
                id: clause.id.clone(),
                section: section.section.clone(),
            };
            // Words have no order; they only have to differ.
            let number = if section.section == WORDED {
                let number = u32::try_from(place).unwrap_or(u32::MAX).saturating_add(1);
                is_worded(&clause.id).then_some(number)
            } else {
                number(&clause.id, &section.section)
            };
            let number = number.ok_or_else(malformed)?;
            if number <= last || self.by_id.contains_key(&clause.id) {
                return Err(ClausesError::OutOfOrder {
                    file: file.to_owned(),
                    id: clause.id.clone(),
                });
            }
            last = number;
            if let Some(key) = empty_key(clause) {
                return Err(ClausesError::Empty {
                    file: file.to_owned(),
                    id: clause.id.clone(),
                    key,
                });
            }
            self.by_id
                .insert(clause.id.clone(), (self.sections.len(), place));
        }
        self.sections.push(section);
        Ok(())
    }

    /// The sections, each with its clauses.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// All clauses.
    pub fn iter(&self) -> impl Iterator<Item = &Clause> {
        self.sections.iter().flat_map(|section| &section.clauses)
    }

    /// The clauses of `profile`.
    pub fn of_profile(&self, profile: Profile) -> impl Iterator<Item = &Clause> {
        self.iter()
            .filter(move |clause| clause.profiles.contains(&profile))
    }

    /// The clause with exactly this id.
    pub fn get(&self, id: &str) -> Option<&Clause> {
        let (section, place) = *self.by_id.get(id)?;
        Some(&self.sections[section].clauses[place])
    }

    /// The clause that a person means by `id`, in whatever letter case; else the nearest one.
    pub fn find(&self, id: &str) -> Result<&Clause, UnknownClause> {
        let id = id.trim();
        let upper = id.to_uppercase();
        let found = self.get(&upper).or_else(|| self.get(&id.to_lowercase()));
        found.ok_or_else(|| {
            let near = |clause: &&Clause| {
                let own = clause.id.to_uppercase();
                strsim::damerau_levenshtein(&own, &upper)
            };
            let nearest = self.iter().min_by_key(near).map(|clause| clause.id.clone());
            UnknownClause {
                id: id.to_owned(),
                nearest: nearest.unwrap_or_default(),
            }
        })
    }
}

/// The number of an id of this section, if it is one.
fn number(id: &str, section: &str) -> Option<u32> {
    let digits = id.strip_prefix(section)?.strip_prefix('-')?;
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    digits.parse().ok().filter(|_| plain)
}

/// Whether an id is two or more words in lower case with slashes between them.
fn is_worded(id: &str) -> bool {
    let word = |word: &str| {
        let fine = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !word.is_empty() && word.bytes().all(fine)
    };
    id.contains('/') && id.split('/').all(word)
}

fn empty_key(clause: &Clause) -> Option<&'static str> {
    [
        ("sides", clause.sides.is_empty()),
        ("profiles", clause.profiles.is_empty()),
        ("sources", clause.sources.is_empty()),
        ("judged", clause.judged.is_empty()),
        ("statement", clause.statement.trim().is_empty()),
        ("since", clause.since.trim().is_empty()),
        (
            "excluded",
            clause
                .excluded
                .as_ref()
                .is_some_and(|why| why.trim().is_empty()),
        ),
    ]
    .into_iter()
    .find_map(|(key, empty)| empty.then_some(key))
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Must => "MUST",
            Self::Should => "SHOULD",
        })
    }
}

impl From<Level> for dsh_reports::Level {
    fn from(level: Level) -> Self {
        match level {
            Level::Must => Self::Must,
            Level::Should => Self::Should,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Harness => "harness",
            Self::Server => "server",
            Self::Wire => "wire",
        })
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::LspBase => "lsp-base",
            Self::Transient => "transient",
            Self::Tool => "tool",
            Self::Runtime => "runtime",
            Self::Instructions => "instructions",
            Self::Server => "server",
        })
    }
}

impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Wire => "wire",
            Self::Subject => "subject",
            Self::Unit => "unit",
            Self::Source => "source",
            Self::Probe => "probe",
        })
    }
}
