//! Which scenarios were asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dsh_reports::{SkipReason, Skipped};
use dsh_scenarios::Profile;
use dsh_scenarios::format::{Case, Severity};
use dsh_scenarios::suite::{Shard, Snapshots, Suite, SuiteError};

use crate::exit::Exit;
use crate::output::complain;

/// What was asked for.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    pub(super) filters: &'a [String],
    pub(super) suite: Option<&'a Path>,
    pub(super) profiles: &'a [Profile],
    pub(super) shard: Option<Shard>,
}

/// What is run of it, and what is not.
#[derive(Debug)]
pub(super) struct Chosen {
    /// By their ids, in that order.
    pub(super) cases: Vec<Arc<Case>>,
    pub(super) skipped: Vec<Skipped>,
    /// Everything there is.
    pub(super) all: Vec<Arc<Case>>,
    /// The texts that rendered texts are held against.
    pub(super) texts: Snapshots,
    /// The file or folder that a case was read from, by its id, for those of files and folders
    /// that were named.
    pub(super) read_from: BTreeMap<String, PathBuf>,
}

/// Why nothing is run.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) message: String,
    pub(super) exit: Exit,
}

impl Refused {
    pub(super) fn usage(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            exit: Exit::Usage,
        }
    }

    pub(super) fn nothing(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            exit: Exit::NothingSelected,
        }
    }
}

impl From<SuiteError> for Refused {
    fn from(error: SuiteError) -> Self {
        match error {
            SuiteError::NothingFits { .. } | SuiteError::NoFiles { .. } => {
                Self::nothing(error.to_string())
            }
            error => Self::usage(error.to_string()),
        }
    }
}

impl Chosen {
    pub(super) fn read(wanted: &Wanted<'_>) -> Result<Self, Refused> {
        let main = match wanted.suite {
            Some(folder) => Suite::read(folder)?,
            None => Suite::embedded()?,
        };
        let mut selected: Vec<Arc<Case>> = Vec::new();
        let mut within: Vec<&String> = Vec::new();
        let mut refused = 0;
        let mut read_from = BTreeMap::new();
        let mut texts = main.texts().clone();
        for filter in wanted.filters {
            match on_disk(filter) {
                Some(place) => {
                    let suite = Suite::read(&place.root)?;
                    refused += tell(&suite, place.below.as_deref());
                    texts.extend(suite.texts().clone());
                    let below: Vec<String> = place.below.into_iter().collect();
                    let cases = suite.select(&below)?;
                    read_from.extend(
                        cases
                            .iter()
                            .map(|case| (case.id.clone(), place.root.clone())),
                    );
                    selected.extend(cases.into_iter().cloned().map(Arc::new));
                }
                None => within.push(filter),
            }
        }
        if wanted.filters.is_empty() {
            refused += tell(&main, None);
            selected.extend(main.cases().iter().cloned().map(Arc::new));
        }
        for filter in within {
            refused += tell(&main, Some(filter));
            match main.select(std::slice::from_ref(filter)) {
                Ok(cases) => selected.extend(cases.into_iter().cloned().map(Arc::new)),
                // What cannot be read was told.
                Err(SuiteError::NothingFits { .. }) if refused > 0 => {}
                Err(error) => return Err(error.into()),
            }
        }
        if refused > 0 {
            return Err(Refused::usage("scenario files cannot be used; see above"));
        }
        let chosen = Self::narrowed(selected, &main, texts, wanted)?;
        Ok(Self {
            read_from,
            ..chosen
        })
    }

    /// Takes of what the filters select what the profiles and the shard leave of it.
    fn narrowed(
        mut selected: Vec<Arc<Case>>,
        main: &Suite,
        texts: Snapshots,
        wanted: &Wanted<'_>,
    ) -> Result<Self, Refused> {
        selected.sort_by(|a, b| a.id.cmp(&b.id));
        if let Some([one, other]) = selected
            .array_windows()
            .find(|[one, other]| one.id == other.id && one.scenario != other.scenario)
        {
            return Err(Refused::usage(format!(
                "{} and {} are both called {}; run them one after the other, or name the folder \
                 both are in",
                one.file, other.file, one.id
            )));
        }
        selected.dedup_by(|a, b| a.id == b.id);
        let mut all = selected.clone();
        all.extend(main.cases().iter().cloned().map(Arc::new));
        all.sort_by(|a, b| a.id.cmp(&b.id));
        all.dedup_by(|a, b| a.id == b.id);
        let filtered = selected.len();
        if !wanted.profiles.is_empty() {
            selected.retain(|case| wanted.profiles.contains(&case.scenario.profile));
        }
        let of_profiles = selected.len();
        let mine: BTreeSet<String> = selected.iter().map(|case| case.id.clone()).collect();
        if let Some(shard) = wanted.shard {
            selected.retain(|case| shard.has(&case.id));
        }
        if selected.is_empty() {
            return Err(Refused::nothing(match (filtered, of_profiles) {
                (0, _) => "nothing is selected: there are no scenarios".to_owned(),
                (_, 0) => {
                    let names: Vec<String> =
                        wanted.profiles.iter().map(ToString::to_string).collect();
                    format!(
                        "nothing is selected: none of {filtered} cases is of the profile {}",
                        names.join(" or ")
                    )
                }
                (_, count) => format!(
                    "nothing is selected: the shard has none of {count} cases; take fewer shards"
                ),
            }));
        }
        let runs: BTreeSet<&str> = selected.iter().map(|case| case.id.as_str()).collect();
        let left = |reason, wanted: &dyn Fn(&str) -> bool| Skipped {
            reason,
            cases: all
                .iter()
                .map(|case| case.id.clone())
                .filter(|id| wanted(id))
                .collect(),
        };
        let skipped = [
            left(SkipReason::NotSelected, &|id| !mine.contains(id)),
            left(SkipReason::OtherShard, &|id| {
                mine.contains(id) && !runs.contains(id)
            }),
        ];
        Ok(Self {
            skipped: skipped
                .into_iter()
                .filter(|skipped| !skipped.cases.is_empty())
                .collect(),
            cases: selected,
            texts,
            all,
            read_from: BTreeMap::new(),
        })
    }
}

/// Tells what is wrong with the files that a filter may mean, all of them without one; gives the
/// number of errors.
fn tell(suite: &Suite, filter: Option<&str>) -> usize {
    let stem = filter.map(|filter| {
        let plain = filter.split(['*', '?', '[', '#']).next().unwrap_or(filter);
        plain.trim_end_matches(".yaml").to_owned()
    });
    let mut errors = 0;
    for diagnostic in suite.diagnostics() {
        let meant = stem
            .as_ref()
            .is_none_or(|stem| diagnostic.file.contains(stem.as_str()));
        if meant {
            errors += usize::from(diagnostic.severity == Severity::Error);
            complain(&diagnostic.to_string());
        }
    }
    errors
}

/// A file or folder of scenarios outside of what is built in.
struct OnDisk {
    root: PathBuf,
    /// What of it, as a filter.
    below: Option<String>,
}

/// The path that a filter is, if it is one: a `.yaml` file or a folder that is there. A place in
/// this project's suite is read from the suite's folder, so that ids are what they always are.
fn on_disk(filter: &str) -> Option<OnDisk> {
    // It stays relative where it is: so it is shown.
    let path = PathBuf::from(filter);
    let is_file = path.extension().is_some_and(|end| end == "yaml") && path.is_file();
    let is_folder = filter.contains('/') && path.is_dir();
    if !is_file && !is_folder {
        return None;
    }
    let root = path
        .ancestors()
        .find(|folder| folder.ends_with("scenarios/suite"));
    Some(match root {
        Some(root) => OnDisk {
            root: root.to_path_buf(),
            below: path.strip_prefix(root).ok().and_then(|below| {
                let below = below.to_str()?.trim_end_matches(".yaml");
                let slash = if is_file || below.is_empty() { "" } else { "/" };
                (!below.is_empty()).then(|| format!("{below}{slash}"))
            }),
        },
        None => OnDisk {
            root: path,
            below: None,
        },
    })
}

/// The name that is most like what was typed.
pub(super) fn nearest<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> &'a str {
    names
        .min_by_key(|name| strsim::damerau_levenshtein(name, typed))
        .unwrap_or_default()
}
