//! The keys of the plugin's row in a deployment (INS-17), and what they come to once the
//! environment is known.

use std::fmt;
use std::path::{Path, PathBuf};

use dsh_fs::normal;
use schemars::JsonSchema;
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

/// Which instruction files are read, and how much of them is shown (INS-17).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkspaceContextConfig {
    /// Where the user's own instructions lie, `AGENTS.md` in it; absolute, or beginning with `~`.
    /// Wins over the variable `DSH_HOME`; without both it is `~/.dsh`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "keys::dsh_home")]
    pub dsh_home: Option<String>,
    /// Names that mark the root of a project, be it files or directories. The nearest ancestor of
    /// the working directory that holds one is the root. What is no plain name is ignored.
    #[serde(default = "default_markers", deserialize_with = "keys::markers")]
    pub project_root_markers: Vec<String>,
    /// How long one message of instructions is at most, in bytes of UTF-8, its frame included. Zero,
    /// negative and not finite numbers (`.nan`, `.inf`) switch instructions off (INS-11).
    #[serde(deserialize_with = "keys::max_bytes")]
    pub max_bytes: f64,
    /// How large one instruction file may be, in bytes (INS-13).
    #[serde(
        default = "default_max_source_bytes",
        deserialize_with = "keys::max_source_bytes"
    )]
    #[schemars(range(min = 1))]
    pub max_source_bytes: u64,
    /// File names that are looked for in each directory, in this order. What is no plain file name
    /// is ignored.
    #[serde(default = "default_candidates", deserialize_with = "keys::candidates")]
    pub instruction_file_candidates: Vec<String>,
    /// File names of overlays, rendered behind the others of their directory; empty for none.
    #[serde(default = "default_local", deserialize_with = "keys::local")]
    pub local_instruction_file_candidates: Vec<String>,
}

fn default_markers() -> Vec<String> {
    vec![".git".to_owned()]
}

const fn default_max_source_bytes() -> u64 {
    1024 * 1024
}

fn default_candidates() -> Vec<String> {
    vec!["AGENTS.md".to_owned(), "CLAUDE.md".to_owned()]
}

fn default_local() -> Vec<String> {
    vec!["AGENTS.local.md".to_owned(), "CLAUDE.local.md".to_owned()]
}

/// A value that a key, or a variable, does not take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} must be {wanted}, not {got}")]
pub struct InvalidConfig {
    /// The key or variable.
    pub key: &'static str,
    /// What it takes.
    pub wanted: &'static str,
    /// What it was given.
    pub got: String,
}

const MAX_BYTES: (&str, &str) = ("maxBytes", "a number of bytes (0 or less switches it off)");
const MAX_SOURCE_BYTES: (&str, &str) = ("maxSourceBytes", "a positive integer");
const DSH_HOME: (&str, &str) = ("dshHome", "an absolute path, or one that begins with ~/");

impl WorkspaceContextConfig {
    /// The defaults with a budget, which has none (INS-11).
    pub fn new(max_bytes: f64) -> Self {
        Self {
            dsh_home: None,
            project_root_markers: default_markers(),
            max_bytes,
            max_source_bytes: default_max_source_bytes(),
            instruction_file_candidates: default_candidates(),
            local_instruction_file_candidates: default_local(),
        }
    }

    /// The settings that follow in an environment, or the key or variable that is wrong (INS-13,
    /// INS-17).
    pub(crate) fn settle(&self, environment: &HomeVariables) -> Result<Settings, InvalidConfig> {
        if self.max_source_bytes == 0 {
            return Err(refused(MAX_SOURCE_BYTES, 0));
        }
        let names = |list: &[String]| -> Vec<String> {
            list.iter()
                .filter(|name| is_file_name(name))
                .cloned()
                .collect()
        };
        let markers = &self.project_root_markers;
        Ok(Settings {
            home: self.home(environment)?,
            markers: markers
                .iter()
                .filter(|name| is_file_name(name))
                .cloned()
                .collect(),
            base: names(&self.instruction_file_candidates),
            local: names(&self.local_instruction_file_candidates),
            max_bytes: budget(self.max_bytes),
            max_source_bytes: self.max_source_bytes,
        })
    }

    fn home(&self, environment: &HomeVariables) -> Result<Option<Home>, InvalidConfig> {
        let user = environment
            .home
            .as_deref()
            .map(Path::new)
            .filter(|home| home.is_absolute());
        let default = user.map(|user| user.join(".dsh"));
        let variable = environment
            .dsh_home
            .as_deref()
            .filter(|value| !value.is_empty());
        let (given, about) = match (self.dsh_home.as_deref(), variable) {
            (Some(given), _) => (given, DSH_HOME),
            (None, Some(given)) => (given, ("DSH_HOME", DSH_HOME.1)),
            (None, None) => {
                return Ok(default.map(|dir| Home {
                    dir,
                    shown: "~/.dsh",
                }));
            }
        };
        let dir = expanded(given, user)
            .filter(|dir| dir.is_absolute())
            .map(|dir| normal(&dir))
            .ok_or_else(|| refused(about, format_args!("{given:?}")))?;
        let shown = if Some(&dir) == default.map(|default| normal(&default)).as_ref() {
            "~/.dsh"
        } else {
            "$DSH_HOME"
        };
        Ok(Some(Home { dir, shown }))
    }
}

fn refused((key, wanted): (&'static str, &'static str), got: impl fmt::Display) -> InvalidConfig {
    InvalidConfig {
        key,
        wanted,
        got: got.to_string(),
    }
}

/// `~`, `~/…` and `~\…` by the user's home; none where that is not known.
fn expanded(path: &str, user: Option<&Path>) -> Option<PathBuf> {
    let Some(rest) = path.strip_prefix('~') else {
        return Some(PathBuf::from(path));
    };
    if rest.is_empty() {
        return user.map(Path::to_path_buf);
    }
    if let Some(rest) = rest.strip_prefix('/') {
        return user.map(|user| user.join(rest.trim_start_matches('/')));
    }
    let rest = rest.strip_prefix('\\')?;
    let parts = rest.split(['\\', '/']).filter(|part| !part.is_empty());
    user.map(|user| user.join(parts.collect::<PathBuf>()))
}

fn is_file_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\\'])
}

/// Whole bytes; none where instructions are off (INS-11).
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positive here, and the cast saturates"
)]
fn budget(max_bytes: f64) -> Option<usize> {
    (max_bytes.is_finite() && max_bytes >= 1.0).then_some(max_bytes as usize)
}

/// What the plugin must know of its environment; handed in, never looked up (INS-17).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HomeVariables {
    /// The user's home directory, which `~` stands for.
    pub home: Option<String>,
    /// The variable `DSH_HOME`; an empty one counts as unset.
    pub dsh_home: Option<String>,
}

/// The configuration with everything decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Where the user's own file lies.
    pub(crate) home: Option<Home>,
    /// Names that mark a root.
    pub(crate) markers: Vec<String>,
    /// Names of instruction files.
    pub(crate) base: Vec<String>,
    /// Names of overlays.
    pub(crate) local: Vec<String>,
    /// Bytes of one message; none if instructions are off.
    pub(crate) max_bytes: Option<usize>,
    /// Bytes of one file.
    pub(crate) max_source_bytes: u64,
}

/// The directory of the user's own instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Home {
    /// Absolute.
    pub(crate) dir: PathBuf,
    /// How the model is told of it.
    pub(crate) shown: &'static str,
}

/// Reads one key each, so that an error names it whatever the format of the file is.
mod keys {
    use super::{DSH_HOME, Deserializer, MAX_BYTES, MAX_SOURCE_BYTES, Names, Number, Text};

    pub(super) fn max_bytes<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        from.deserialize_any(Number(MAX_BYTES))
    }

    pub(super) fn max_source_bytes<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        from.deserialize_any(super::Integer(MAX_SOURCE_BYTES))
    }

    pub(super) fn dsh_home<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
        from.deserialize_any(Text(DSH_HOME)).map(Some)
    }

    pub(super) fn markers<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
        from.deserialize_any(Names("projectRootMarkers"))
    }

    pub(super) fn candidates<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
        from.deserialize_any(Names("instructionFileCandidates"))
    }

    pub(super) fn local<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
        from.deserialize_any(Names("localInstructionFileCandidates"))
    }
}

type About = (&'static str, &'static str);

/// The values that a reader takes for none of its own.
macro_rules! refuse {
    ($($name:ident: $type:ty),*) => {$(
        fn $name<E: de::Error>(self, value: $type) -> Result<Self::Value, E> {
            Err(E::custom(refused(self.about(), format_args!("{value:?}"))))
        }
    )*};
    (all) => {
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            let (key, wanted) = self.about();
            write!(f, "{key} to be {wanted}")
        }

        fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
            Err(E::custom(refused(self.about(), "null")))
        }

        fn visit_map<A: de::MapAccess<'de>>(self, _: A) -> Result<Self::Value, A::Error> {
            Err(de::Error::custom(refused(self.about(), "a mapping")))
        }

        refuse!(visit_bool: bool);
    };
    (list) => {
        fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<Self::Value, A::Error> {
            Err(de::Error::custom(refused(self.about(), "a list")))
        }
    };
}

struct Number(About);

impl Number {
    const fn about(&self) -> About {
        self.0
    }
}

impl<'de> Visitor<'de> for Number {
    type Value = f64;

    refuse!(all);
    refuse!(list);

    /// JSON has no numbers that are not finite; they come as YAML writes them.
    fn visit_str<E: de::Error>(self, value: &str) -> Result<f64, E> {
        match value {
            ".nan" => Ok(f64::NAN),
            ".inf" => Ok(f64::INFINITY),
            "-.inf" => Ok(f64::NEG_INFINITY),
            _ => Err(E::custom(refused(self.about(), format_args!("{value:?}")))),
        }
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<f64, E> {
        Ok(value)
    }

    #[expect(clippy::cast_precision_loss, reason = "a budget that large is none")]
    fn visit_u64<E: de::Error>(self, value: u64) -> Result<f64, E> {
        Ok(value as f64)
    }

    #[expect(clippy::cast_precision_loss, reason = "a budget that large is none")]
    fn visit_i64<E: de::Error>(self, value: i64) -> Result<f64, E> {
        Ok(value as f64)
    }

    #[expect(clippy::cast_precision_loss, reason = "a budget that large is none")]
    fn visit_i128<E: de::Error>(self, value: i128) -> Result<f64, E> {
        Ok(value as f64)
    }

    #[expect(clippy::cast_precision_loss, reason = "a budget that large is none")]
    fn visit_u128<E: de::Error>(self, value: u128) -> Result<f64, E> {
        Ok(value as f64)
    }
}

struct Integer(About);

impl Integer {
    const fn about(&self) -> About {
        self.0
    }
}

impl<'de> Visitor<'de> for Integer {
    type Value = u64;

    refuse!(all);
    refuse!(list);
    refuse!(visit_str: &str, visit_f64: f64, visit_i128: i128, visit_u128: u128);

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<u64, E> {
        if value == 0 {
            return Err(E::custom(refused(self.0, 0)));
        }
        Ok(value)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<u64, E> {
        match u64::try_from(value) {
            Ok(value) => self.visit_u64(value),
            Err(_) => Err(E::custom(refused(self.0, value))),
        }
    }
}

struct Text(About);

impl Text {
    const fn about(&self) -> About {
        self.0
    }
}

impl<'de> Visitor<'de> for Text {
    type Value = String;

    refuse!(all);
    refuse!(list);
    refuse!(visit_u64: u64, visit_i64: i64, visit_f64: f64);

    fn visit_str<E: de::Error>(self, value: &str) -> Result<String, E> {
        Ok(value.to_owned())
    }
}

struct Names(&'static str);

impl Names {
    const fn about(&self) -> About {
        (self.0, "a list of file names")
    }
}

impl<'de> Visitor<'de> for Names {
    type Value = Vec<String>;

    refuse!(all);
    refuse!(visit_str: &str, visit_u64: u64, visit_i64: i64, visit_f64: f64);

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<String>, A::Error> {
        let mut names = Vec::new();
        loop {
            match list.next_element::<String>() {
                Ok(Some(name)) => names.push(name),
                Ok(None) => return Ok(names),
                Err(_) => {
                    let got = "a list with something else in it; put names in quotes";
                    return Err(de::Error::custom(refused(self.about(), got)));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
