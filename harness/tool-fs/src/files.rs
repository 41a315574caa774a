//! What the tools have in common: paths, absences, observations.

use std::path::PathBuf;
use std::sync::Arc;

use dsh_fs::{FileSystem, FsError, FsObserved, FsTarget, FsVersion, Observation};
use dsh_kernel::{EventBus, Watched};
use dsh_tools::{ExecContext, ToolError};

use crate::failure::{code, failure, quoted};
use crate::guard::{Known, WriteGuard};

/// Most names of a directory that are compared with one that is missing.
const MAX_NAMES: usize = 10_000;

/// Most names that are suggested.
const MAX_SUGGESTED: usize = 3;

/// The services behind the tools.
#[derive(Clone)]
pub(crate) struct Files {
    pub(crate) fs: Arc<dyn FileSystem>,
    pub(crate) events: EventBus,
    pub(crate) guard: Watched<dyn WriteGuard>,
}

/// A file that a call names.
pub(crate) struct Located {
    pub(crate) target: FsTarget,
    /// The path that stands for it, behind all links.
    pub(crate) identity: PathBuf,
}

impl Files {
    /// The target that a call names, relative to its session's directory.
    async fn resolve(&self, path: &str, context: &ExecContext) -> Result<FsTarget, ToolError> {
        let session = context.session.as_ref();
        let cwd = session.and_then(|session| session.header().cwd.as_deref());
        let resolved = self.fs.resolve(cwd, path, &context.cancel).await;
        resolved.map_err(|error| failure(&error))
    }

    /// The target that a call names, and the path that stands for it.
    pub(crate) async fn located(
        &self,
        path: &str,
        context: &ExecContext,
    ) -> Result<Located, ToolError> {
        let target = self.resolve(path, context).await?;
        let identity = self.fs.identity(&target, &context.cancel).await;
        let identity = identity.map_err(|error| failure(&error))?;
        Ok(Located { target, identity })
    }

    /// What the call's session knows of the file; none if nobody wants to know.
    pub(crate) fn known(&self, at: &Located, context: &ExecContext) -> Option<Known> {
        let guard = self.guard.current()?;
        Some(guard.known(session_id(context).as_deref(), &at.identity))
    }

    /// Tells that the file was read or written in this version (RUN-10).
    pub(crate) fn present(
        &self,
        tool: &str,
        write: bool,
        at: &Located,
        version: FsVersion,
        context: &ExecContext,
    ) {
        self.observed(tool, write, at, Observation::Present { version }, context);
    }

    /// Tells that there is no file (RUN-10).
    pub(crate) fn absent(&self, tool: &str, at: &Located, context: &ExecContext) {
        self.observed(tool, false, at, Observation::Absent, context);
    }

    fn observed(
        &self,
        tool: &str,
        write: bool,
        at: &Located,
        observation: Observation,
        context: &ExecContext,
    ) {
        self.events.emit(&FsObserved {
            target: at.target.clone(),
            identity: at.identity.clone(),
            observation,
            write,
            tool: tool.to_owned(),
            call_id: context.call_id.clone(),
            token: context.token.number(),
            session: session_id(context),
        });
    }

    /// A failure as the tool's; where the file is missing, with names that may have been meant.
    pub(crate) async fn explained(
        &self,
        error: &FsError,
        given: &str,
        target: &FsTarget,
        context: &ExecContext,
    ) -> ToolError {
        if !matches!(error, FsError::Missing { .. }) {
            return failure(error);
        }
        let path = quoted(&target.display_path);
        let advice = self.advice(given, target, context).await;
        ToolError::new(code::MISSING, format!("{path} does not exist; {advice}"))
    }

    async fn advice(&self, given: &str, target: &FsTarget, context: &ExecContext) -> String {
        if given.starts_with('~') {
            return "~ is not the home directory here, give the whole path".to_owned();
        }
        let (Some(directory), Some(name)) = (target.path.parent(), target.path.file_name()) else {
            return "check the path".to_owned();
        };
        let names = match self.fs.names(directory, MAX_NAMES, &context.cancel).await {
            Ok(names) => names,
            Err(FsError::Missing { .. }) => {
                let directory = quoted(&directory.to_string_lossy());
                return format!("nor does the directory {directory}, check the path");
            }
            Err(_) => return "check the path".to_owned(),
        };
        // A name that is no text could not be asked for.
        let names = names.iter().filter_map(|name| name.to_str());
        let near = nearest(&name.to_string_lossy(), names);
        if near.is_empty() {
            return "check the path".to_owned();
        }
        let near: Vec<_> = near.iter().map(|name| format!("{name:?}")).collect();
        format!(
            "its directory has {}, perhaps one of these was meant",
            near.join(", ")
        )
    }
}

fn session_id(context: &ExecContext) -> Option<String> {
    let session = context.session.as_ref();
    session.map(|session| session.header().id.clone())
}

/// Names that a misspelt one was probably meant to be, the nearest first.
fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let spelling = name.to_lowercase();
    let length = spelling.chars().count();
    let most = 1 + length / 4;
    let stem = stem(&spelling);
    let mut near: Vec<_> = names
        .filter_map(|candidate| {
            let other = candidate.to_lowercase();
            // The distance is at least the difference of the lengths, and costs their product.
            let apart = other.chars().count().abs_diff(length);
            let distance = (apart <= most && length <= 255)
                .then(|| strsim::damerau_levenshtein(&spelling, &other))
                .filter(|distance| *distance <= most)
                .or_else(|| (self::stem(&other) == stem).then_some(most + 1))?;
            Some((distance, candidate))
        })
        .collect();
    near.sort_unstable();
    near.truncate(MAX_SUGGESTED);
    near.into_iter().map(|(_, candidate)| candidate).collect()
}

/// A name up to its first dot; a dot in front belongs to it.
fn stem(name: &str) -> &str {
    let dot = name.char_indices().skip(1).find(|(_, char)| *char == '.');
    dot.map_or(name, |(at, _)| &name[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, names: &[&str], expected: &[&str]) {
        assert_eq!(nearest(name, names.iter().copied()), expected);
    }

    #[test]
    fn near_names_come_nearest_first() {
        check(
            "mian.rs",
            &["lib.rs", "main.rs", "Main.rs"],
            &["Main.rs", "main.rs"],
        );
        check(
            "readme.md",
            &["README.md", "README.zh.md"],
            &["README.md", "README.zh.md"],
        );
        check(
            "index.js",
            &["index.ts", "index.d.ts", "other.js"],
            &["index.ts", "index.d.ts"],
        );
        check("a", &["zebra", "quux"], &[]);
        check("x", &[], &[]);
    }
}
