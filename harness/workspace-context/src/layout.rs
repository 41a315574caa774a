//! Which files may hold instructions: the chain of directories of a session, and those below it
//! (INS-1, INS-3, INS-5).

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use dsh_fs::normal;

use crate::config::Settings;
use crate::digest::sha1_hex;

/// The name of the user's own file.
const GLOBAL: &str = "AGENTS.md";

/// One place where instructions may lie: a directory and a candidate name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scope {
    /// The absolute path, before the final link.
    pub(crate) path: PathBuf,
    /// The directory as the model is told of it: relative to the root, `.` for the root itself.
    pub(crate) area: String,
    /// The file, likewise.
    pub(crate) shown: String,
    /// Broad before specific, and the candidates of a directory in their order.
    pub(crate) rank: Rank,
}

/// Depth (the user's own directory has none), directory, place among the candidates.
pub(crate) type Rank = (Option<usize>, PathBuf, usize);

impl Scope {
    /// The scope as the log names it.
    pub(crate) fn key(&self) -> String {
        if self.area == "." && self.rank.0.is_some() {
            format!("./{}", self.shown)
        } else {
            self.shown.clone()
        }
    }

    /// The directory: candidates of one are compared with one another.
    pub(crate) fn dir(&self) -> &Path {
        &self.rank.1
    }
}

/// How a file is shown whose scope is only known from the log.
pub(crate) fn shown_of_key(key: &str) -> &str {
    key.strip_prefix("./").unwrap_or(key)
}

/// Where a session's instructions may lie.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    cwd: PathBuf,
    root: PathBuf,
    names: Vec<String>,
    /// The user's own file and the candidates from the root to the working directory, in order; no
    /// path twice (INS-3).
    pub(crate) chain: Vec<Scope>,
    /// A sum of all that the chain and its rendering follow from (INS-15).
    pub(crate) fingerprint: String,
}

impl Layout {
    /// The layout of a working directory and its project root, an ancestor of it or itself.
    pub(crate) fn new(settings: &Settings, cwd: &Path, root: &Path) -> Self {
        let mut names: Vec<String> = Vec::new();
        for name in settings.base.iter().chain(&settings.local) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        let mut layout = Self {
            cwd: cwd.to_path_buf(),
            root: root.to_path_buf(),
            names,
            chain: Vec::new(),
            fingerprint: fingerprint(settings, cwd, root),
        };
        if let Some(home) = &settings.home {
            layout.chain.push(Scope {
                path: home.dir.join(GLOBAL),
                // It applies everywhere.
                area: ".".to_owned(),
                shown: format!("{}/{GLOBAL}", home.shown),
                rank: (None, home.dir.clone(), 0),
            });
        }
        let mut dirs: Vec<&Path> = cwd
            .ancestors()
            .take_while(|dir| dir.starts_with(root))
            .collect();
        dirs.reverse();
        for dir in dirs {
            layout.push_dir(dir);
        }
        layout
    }

    fn push_dir(&mut self, dir: &Path) {
        for scope in self.scopes_in(dir) {
            if self.chain.iter().all(|other| other.path != scope.path) {
                self.chain.push(scope);
            }
        }
    }

    fn scopes_in(&self, dir: &Path) -> Vec<Scope> {
        (0..self.names.len())
            .map(|index| self.scope(dir, index))
            .collect()
    }

    fn scope(&self, dir: &Path, index: usize) -> Scope {
        let name = &self.names[index];
        let relative = relative(dir, &self.root);
        let shown = if relative == "." {
            name.clone()
        } else {
            format!("{relative}/{name}")
        };
        Scope {
            path: dir.join(name),
            area: relative,
            shown,
            rank: (Some(dir.components().count()), dir.to_path_buf(), index + 1),
        }
    }

    /// The working directory.
    pub(crate) fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// Whether a touch of this file may discover anything (INS-5).
    pub(crate) fn is_inside(&self, file: &Path) -> bool {
        file.parent().is_some_and(|dir| dir.starts_with(&self.cwd))
    }

    /// The candidates in the directories between the working directory and a file below it, the
    /// file's own included (INS-5).
    pub(crate) fn below(&self, file: &Path) -> Vec<Scope> {
        if !self.is_inside(file) {
            return Vec::new();
        }
        let mut dirs: Vec<&Path> = file
            .ancestors()
            .skip(1)
            .take_while(|dir| *dir != self.cwd)
            // The log is text, and could not say which directory it was.
            .filter(|dir| dir.to_str().is_some())
            .collect();
        dirs.reverse();
        dirs.iter().flat_map(|dir| self.scopes_in(dir)).collect()
    }

    /// The scope of a path that was loaded; none if nothing may be loaded from there any more.
    pub(crate) fn scope_at(&self, path: &Path) -> Option<Scope> {
        if let Some(scope) = self.chain.iter().find(|scope| scope.path == path) {
            return Some(scope.clone());
        }
        let dir = path.parent()?;
        let name = path.file_name()?.to_str()?;
        let index = self.names.iter().position(|own| own == name)?;
        let below = dir != self.cwd && dir.starts_with(&self.cwd);
        below.then(|| self.scope(dir, index))
    }
}

/// Drops the scopes whose path is there already, and puts the rest in order.
pub(crate) fn in_order(mut scopes: Vec<Scope>) -> Vec<Scope> {
    let mut seen = HashSet::new();
    scopes.retain(|scope| seen.insert(scope.path.clone()));
    scopes.sort_by(|a, b| a.rank.cmp(&b.rank));
    scopes
}

/// A directory relative to the root, with slashes.
fn relative(dir: &Path, root: &Path) -> String {
    let rest = dir.strip_prefix(root).unwrap_or(dir);
    let parts: Vec<_> = rest
        .components()
        .map(|part| part.as_os_str().to_string_lossy())
        .collect();
    if parts.is_empty() {
        ".".to_owned()
    } else {
        parts.join("/")
    }
}

fn fingerprint(settings: &Settings, cwd: &Path, root: &Path) -> String {
    let home = settings
        .home
        .as_ref()
        .map(|home| home.dir.to_string_lossy());
    let text = serde_json::json!([
        cwd.to_string_lossy(),
        root.to_string_lossy(),
        home,
        settings.base,
        settings.local,
        settings.max_bytes,
    ])
    .to_string();
    sha1_hex(text.as_bytes())
}

/// The working directory by its letters; none if it is not absolute.
pub(crate) fn working_directory(cwd: &str) -> Option<PathBuf> {
    let path = Path::new(cwd);
    path.is_absolute().then(|| normal(path))
}

/// The paths at which a marker of a root may be, the nearest directory first.
pub(crate) fn marker_paths(settings: &Settings, cwd: &Path) -> Vec<PathBuf> {
    let join = |dir: &Path| -> Vec<PathBuf> {
        let join = |marker: &String| dir.join(marker);
        settings.markers.iter().map(join).collect()
    };
    cwd.ancestors().flat_map(join).collect()
}

/// What is known about one path where a marker may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marker {
    Found,
    NotThere,
    /// The provider could not tell.
    Unknown,
}

/// The layout that follows from the markers, looked for at [`marker_paths`] (INS-1).
///
/// A directory that could not be looked at counts as one without a marker, unless what is loaded
/// (`logged`, its fingerprint) says that it was the root before: a provider that fails for a moment
/// changes nothing (INS-9).
pub(crate) fn laid_out(
    settings: &Settings,
    cwd: &Path,
    markers: &[Marker],
    logged: Option<&str>,
) -> Layout {
    let each = settings.markers.len().max(1);
    let by_dir: Vec<(&Path, &[Marker])> = cwd.ancestors().zip(markers.chunks(each)).collect();
    let found = by_dir
        .iter()
        .position(|(_, markers)| markers.contains(&Marker::Found));
    let nearer = &by_dir[..found.unwrap_or(by_dir.len())];
    let unknown = nearer
        .iter()
        .filter(|(_, markers)| markers.contains(&Marker::Unknown));
    for (dir, _) in unknown {
        let layout = Layout::new(settings, cwd, dir);
        if logged == Some(&layout.fingerprint) {
            return layout;
        }
    }
    let root = found.map_or(cwd, |index| by_dir[index].0);
    Layout::new(settings, cwd, root)
}

#[cfg(test)]
mod tests;
