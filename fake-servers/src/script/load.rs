//! Reading a script, with errors that name the place and the way out.

use std::path::Path;

use super::{Script, check};

/// The longest script, in bytes.
const MAX_SCRIPT: u64 = 64 << 20;

/// Why a script cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// It cannot be read.
    #[error("{origin}: {reason}")]
    Unreadable {
        /// The file.
        origin: String,
        /// What the system says.
        reason: String,
    },
    /// It is larger than scripts may be.
    #[error("{origin}: larger than {MAX_SCRIPT} bytes, which is the limit for a script")]
    TooLarge {
        /// The file.
        origin: String,
    },
    /// It is not what a script may be.
    #[error("{origin}:{line}:{column}: {reason}{}", suggestion.as_ref().map_or(String::new(),
            |name| format!(" (did you mean `{name}`?)")))]
    Syntax {
        /// The file, or `script`.
        origin: String,
        /// From 1.
        line: u64,
        /// From 1.
        column: u64,
        /// What is wrong.
        reason: String,
        /// The nearest name that exists.
        suggestion: Option<String>,
    },
    /// It can be read, but not carried out.
    #[error("{origin}: {place}: {reason}")]
    Invalid {
        /// The file, or `script`.
        origin: String,
        /// Which rule.
        place: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl Script {
    /// Reads YAML or JSON; `origin` names where it came from in errors.
    pub fn parse(text: &str, origin: &str) -> Result<Self, ScriptError> {
        let script = if text.trim_start().starts_with(['{', '[']) {
            // YAML in flow style also starts like this, and is no JSON.
            serde_json::from_str(text).or_else(|error| match error.classify() {
                serde_json::error::Category::Data => Err(syntax(
                    origin,
                    error.line() as u64,
                    error.column() as u64,
                    strip_place(&error.to_string()),
                )),
                _ => from_yaml(text, origin),
            })?
        } else {
            from_yaml(text, origin)?
        };
        check::check(&script).map_err(|(place, reason)| ScriptError::Invalid {
            origin: origin.to_owned(),
            place,
            reason,
        })?;
        Ok(script)
    }

    /// Reads a file of YAML or JSON.
    pub fn load(path: &Path) -> Result<Self, ScriptError> {
        let origin = path.display().to_string();
        let unreadable = |reason: String| ScriptError::Unreadable {
            origin: origin.clone(),
            reason,
        };
        let file = std::fs::File::open(path).map_err(|error| unreadable(error.to_string()))?;
        let mut text = String::new();
        let mut limited = std::io::Read::take(file, MAX_SCRIPT + 1);
        std::io::Read::read_to_string(&mut limited, &mut text)
            .map_err(|error| unreadable(error.to_string()))?;
        if text.len() as u64 > MAX_SCRIPT {
            return Err(ScriptError::TooLarge { origin });
        }
        Self::parse(&text, &origin)
    }

    /// Checks what the types do not: templates, limits, actions that make no sense together.
    pub fn check(&self) -> Result<(), ScriptError> {
        check::check(self).map_err(|(place, reason)| ScriptError::Invalid {
            origin: "script".to_owned(),
            place,
            reason,
        })
    }
}

fn from_yaml(text: &str, origin: &str) -> Result<Script, ScriptError> {
    // Only `true` and `false` are booleans: `off` and `No` are texts.
    let options = serde_saphyr::options! { with_snippet: false, strict_booleans: true };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let (line, column) = error
            .location()
            .map_or((1, 1), |place| (place.line(), place.column()));
        syntax(
            origin,
            line,
            column,
            in_our_words(strip_place(&error.to_string())),
        )
    })
}

/// The reader's bounds are its own; what they are about is a script.
fn in_our_words(message: String) -> String {
    if message.contains("recursion limit") || message.contains("budget breached: Depth") {
        return "lists and objects lie too deep in each other; a script needs no more than 64 levels"
            .to_owned();
    }
    if message.contains("budget breached") {
        return "there are more values, or more aliases, than a script can use; write less, or have \
                one action do it several `times`"
            .to_owned();
    }
    message
}

fn syntax(origin: &str, line: u64, column: u64, reason: String) -> ScriptError {
    let suggestion = nearest(&reason);
    ScriptError::Syntax {
        origin: origin.to_owned(),
        line,
        column,
        reason,
        suggestion,
    }
}

/// A message without the place at its end, which is told apart from it.
fn strip_place(message: &str) -> String {
    let message = message.split(" at line ").next().unwrap_or(message);
    message.trim().to_owned()
}

/// The nearest of the names a message offers for one that is unknown.
///
/// Both readers say "unknown field `x`, expected one of …", the one with back quotes around the
/// names, the other without.
fn nearest(message: &str) -> Option<String> {
    let (unknown, offered) = message.split_once(", expected ")?;
    let written = unknown.strip_prefix("unknown ")?.split('`').nth(1)?;
    let offered = offered.strip_prefix("one of ").unwrap_or(offered);
    let names = offered
        .split([',', ' ', '`'])
        .filter(|name| !name.is_empty() && *name != "or");
    let (name, distance) = names
        .map(|name| (name, strsim::damerau_levenshtein(written, name)))
        .min_by_key(|(_, distance)| *distance)?;
    (distance <= 1 + written.chars().count() / 3).then(|| name.to_owned())
}
