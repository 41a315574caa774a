//! Finished runs as files, so that a check of many servers goes on where it was interrupted.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use dsh_e2e::{Ground, Target};
use dsh_reports::{Conclusion, Run};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::commands::check::Args;
use crate::shell::read_text;

/// The format's name and version.
const FORMAT: &str = "dsh-conform-run/1";

/// The most bytes that a kept run may have.
const MAX_BYTES: u64 = 64 << 20;

/// The folder of kept runs.
#[derive(Clone, Debug)]
pub(super) struct Kept(PathBuf);

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    format: String,
    key: Value,
    run: Run,
}

/// What became of the look for a kept run.
#[derive(Debug)]
pub(super) enum Found {
    /// It is of the same server, and was made in the same way.
    Same(Box<Run>),
    /// There is one that does not count, and why.
    Other(String),
    /// There is none.
    None,
}

impl Kept {
    /// The runs in the folder of the artifacts.
    pub(super) fn below(folder: &Path) -> Self {
        Self(folder.join("runs"))
    }

    pub(super) fn folder(&self) -> &Path {
        &self.0
    }

    /// How many runs are there.
    pub(super) fn count(&self) -> usize {
        let Ok(entries) = std::fs::read_dir(&self.0) else {
            return 0;
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let is_run = |name: &String| {
            Path::new(name)
                .extension()
                .is_some_and(|known| known == "json")
        };
        names.filter(is_run).count()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.json"))
    }

    /// Writes a run that came to its end. In one step: one that is interrupted leaves nothing that
    /// counts.
    pub(super) fn write(&self, name: &str, key: Value, run: &Run) -> io::Result<()> {
        std::fs::create_dir_all(&self.0)?;
        let file = File {
            format: FORMAT.to_owned(),
            key,
            run: run.clone(),
        };
        let text = serde_json::to_string_pretty(&file).map_err(io::Error::other)?;
        let unfinished = self.0.join(format!("{name}.json.new"));
        let written = std::fs::write(&unfinished, text)
            .and_then(|()| std::fs::rename(&unfinished, self.path(name)));
        if written.is_err() {
            let _ = std::fs::remove_file(&unfinished);
        }
        written
    }

    /// Looks for the run of a server that was made in the way of `key`.
    pub(super) fn find(&self, name: &str, key: &Value) -> Found {
        let path = self.path(name);
        if !path.exists() {
            return Found::None;
        }
        let read = read_text(&path, MAX_BYTES, "a run").and_then(|text| {
            serde_json::from_str::<File>(&text).map_err(|error| error.to_string())
        });
        match read {
            Err(why) => Found::Other(format!("{} cannot be read: {why}", path.display())),
            Ok(file) if file.format != FORMAT => Found::Other(format!(
                "{} has the format {:?}",
                path.display(),
                file.format
            )),
            Ok(file) => match difference(&file.key, key) {
                Some(difference) => Found::Other(difference),
                None => Found::Same(Box::new(file.run)),
            },
        }
    }
}

/// Whether the run is worth keeping: it came to an end, and something was judged.
pub(super) fn is_finished(run: &Run) -> bool {
    run.conclusion != Conclusion::Interrupted
        && !run.cases.is_empty()
        && !matches!(run.conclusion, Conclusion::HarnessError { .. })
}

/// Short for all there is to say of something.
fn digest(of: &impl std::fmt::Debug) -> String {
    let digest = Sha256::digest(format!("{of:?}").as_bytes());
    let digest = digest.iter().take(8);
    digest.fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Which build of a program this is. Its version alone says nothing of what its probes came to while
/// they were worked on; its size and when it was written do, and cost nothing to read.
pub(super) fn build(program: &Path) -> String {
    let Ok(about) = std::fs::metadata(program) else {
        return "unknown".to_owned();
    };
    digest(&(about.len(), about.modified().ok()))
}

/// What a run depends on: the tool, the server as it is started, what it is asked about, and how.
pub(super) fn key(args: &Args, build: &str, target: &Target, ground: &Ground) -> Value {
    let ground = match ground {
        // The texts are part of it: a sample of a user's own may have been changed.
        Ground::Sample(sample) => format!("{} {}", sample.name, digest(sample)),
        other => format!("{other:?}"),
    };
    json!({
        "tool": env!("CARGO_PKG_VERSION"),
        "build": build,
        "entry": digest(target),
        "version": target.version,
        "command": target.command,
        "settings": serde_json::from_str::<Value>(&target.deployment()).unwrap_or_default(),
        "sample": ground,
        "options": {
            "budgetMs": u64::try_from(args.budget.as_millis()).unwrap_or(u64::MAX),
            "measure": format!("{:?}", args.measure),
            "bounds": args.scale.bounds(),
            "only": args.only.iter().map(|id| id.to_uppercase()).collect::<Vec<_>>(),
        },
    })
}

/// In which way two keys differ; none if they do not.
fn difference(kept: &Value, wanted: &Value) -> Option<String> {
    let words = [
        ("tool", "dsh-conform"),
        ("version", "the server's version"),
        ("command", "the program"),
        ("settings", "the server's settings"),
        ("sample", "the sample"),
        ("options", "the options"),
        ("entry", "the server's entry"),
        ("build", "the build of dsh-conform"),
    ];
    words.into_iter().find_map(|(key, what)| {
        let (kept, wanted) = (&kept[key], &wanted[key]);
        if kept == wanted {
            return None;
        }
        Some(match (kept.as_str(), wanted.as_str()) {
            (Some(kept), Some(wanted)) if !matches!(key, "build" | "entry") => {
                format!("{what} was {kept}, and is {wanted}")
            }
            _ => format!("{what} changed"),
        })
    })
}

#[cfg(test)]
mod tests {
    use dsh_reports::{Subject, SubjectKind};

    use super::*;

    #[test]
    fn a_run_is_found_again_only_under_its_key() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Kept::below(folder.path());
        let run = Run::new(Subject::named(SubjectKind::Server, "x"));
        let key = json!({"tool": "1", "version": "1.2"});
        assert!(matches!(kept.find("x", &key), Found::None));
        kept.write("x", key.clone(), &run).unwrap();
        assert!(matches!(kept.find("x", &key), Found::Same(same) if *same == run));
        assert_eq!(kept.count(), 1);
        let newer = json!({"tool": "1", "version": "1.3"});
        let Found::Other(why) = kept.find("x", &newer) else {
            panic!("another version counts");
        };
        assert_eq!(why, "the server's version was 1.2, and is 1.3");
        std::fs::write(kept.folder().join("x.json"), "{\"format\":").unwrap();
        let Found::Other(why) = kept.find("x", &key) else {
            panic!("half a file counts");
        };
        assert!(why.contains("cannot be read"), "{why}");
    }
}
