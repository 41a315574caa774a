//! What is wrong with a scenario file, and where.

use std::fmt;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The file cannot be used.
    Error,
    /// The file can be used, and probably does not do what it seems to.
    Warning,
}

/// One thing that is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file, as it was named to the loader.
    pub file: String,
    /// From 1.
    pub line: u64,
    /// From 1, in characters.
    pub column: u64,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, with the way out.
    pub reason: String,
    /// The nearest name that exists.
    pub suggestion: Option<String>,
    /// The combination of the matrix it was seen in first, where the file has a matrix.
    pub case: Option<String>,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: ", self.file, self.line, self.column)?;
        if self.severity == Severity::Warning {
            f.write_str("warning: ")?;
        }
        f.write_str(&self.reason)?;
        if let Some(name) = &self.suggestion {
            write!(f, " (did you mean `{name}`?)")?;
        }
        if let Some(case) = &self.case {
            write!(f, " [in #{case}]")?;
        }
        Ok(())
    }
}

/// The nearest of `names` to what was written, if it is near enough to have been meant.
pub(crate) fn nearest<'a>(
    written: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    let (name, distance) = names
        .into_iter()
        .filter(|name| !name.is_empty())
        .map(|name| (name, strsim::damerau_levenshtein(written, name)))
        .min_by_key(|(_, distance)| *distance)?;
    (distance <= 1 + written.chars().count() / 3).then(|| name.to_owned())
}
