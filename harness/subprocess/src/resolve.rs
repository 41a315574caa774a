//! Finds the executable of a command, with the environment that the child will get (CFG-4).
//!
//! Blocking: it looks at files.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{MAIN_SEPARATOR, Path, PathBuf};

use dsh_kernel::Cancel;

use crate::environment;
use crate::service::ResolveError;

/// How many directories of the PATH an error names.
const NAMED: usize = 12;

/// Resolves `command` for a child with `environment`: an absolute path, or a name looked for in the
/// directories of the child's PATH in order.
///
/// Of the PATH, empty segments are skipped, and relative ones too: both would mean the working
/// directory, which the child and we do not share. The path is not canonicalized: programs exist
/// that act by the name they were started under. Cancellation is observed before each look.
pub(crate) fn resolve(
    command: &str,
    environment: &BTreeMap<OsString, OsString>,
    cancel: &Cancel,
) -> Result<PathBuf, ResolveError> {
    if command.trim().is_empty() {
        return Err(ResolveError::Blank);
    }
    let path = Path::new(command);
    if path.is_absolute() {
        let look = || look(path, command, cancel);
        return look()?.into_result(command, || {
            "at that path; correct it, or install the program there".to_owned()
        });
    }
    if command.contains(std::path::is_separator) {
        return Err(ResolveError::Relative {
            command: command.to_owned(),
            suggestion: absolute_form(command, environment),
        });
    }
    search(command, environment, cancel)
}

fn search(
    name: &str,
    environment: &BTreeMap<OsString, OsString>,
    cancel: &Cancel,
) -> Result<PathBuf, ResolveError> {
    let path = environment::value(environment, "PATH").unwrap_or_default();
    let directories: Vec<PathBuf> = std::env::split_paths(path)
        .filter(|directory| directory.is_absolute())
        .collect();
    // What bears the name but cannot be run: told only if nothing better comes later.
    let mut unfit = Found::Nothing;
    for directory in &directories {
        for candidate in spellings(&directory.join(name)) {
            match look(&candidate, name, cancel)? {
                Found::Executable(path) => return Ok(path),
                found if matches!(unfit, Found::Nothing) => unfit = found,
                _ => {}
            }
        }
    }
    unfit.into_result(name, || searched(&directories))
}

/// What a path leads to.
enum Found {
    Executable(PathBuf),
    Directory(PathBuf),
    NotExecutable(PathBuf),
    Nothing,
}

impl Found {
    fn into_result(
        self,
        command: &str,
        searched: impl FnOnce() -> String,
    ) -> Result<PathBuf, ResolveError> {
        let command = command.to_owned();
        match self {
            Self::Executable(path) => Ok(path),
            Self::Directory(path) => Err(ResolveError::Directory { command, path }),
            Self::NotExecutable(path) => Err(ResolveError::NotExecutable { command, path }),
            Self::Nothing => Err(ResolveError::Missing {
                command,
                searched: searched(),
            }),
        }
    }
}

fn look(path: &Path, command: &str, cancel: &Cancel) -> Result<Found, ResolveError> {
    if cancel.is_cancelled() {
        return Err(ResolveError::Cancelled {
            command: command.to_owned(),
        });
    }
    Ok(match std::fs::metadata(path) {
        Err(_) => Found::Nothing,
        Ok(metadata) if metadata.is_dir() => Found::Directory(path.to_owned()),
        Ok(metadata) if metadata.is_file() && may_execute(path) => {
            Found::Executable(path.to_owned())
        }
        Ok(_) => Found::NotExecutable(path.to_owned()),
    })
}

#[cfg(unix)]
fn may_execute(path: &Path) -> bool {
    use rustix::fs::{Access, AtFlags, CWD};
    rustix::fs::accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS).is_ok()
}

#[cfg(not(unix))]
fn may_execute(_path: &Path) -> bool {
    true
}

#[cfg(unix)]
fn spellings(path: &Path) -> [PathBuf; 1] {
    [path.to_owned()]
}

/// A name without extension means a program; the script kinds of PATHEXT need a shell.
#[cfg(not(unix))]
fn spellings(path: &Path) -> [PathBuf; 2] {
    [path.with_extension("exe"), path.to_owned()]
}

fn searched(directories: &[PathBuf]) -> String {
    if directories.is_empty() {
        return "(the child's PATH names no directory); set PATH in its env, or use the absolute \
                path"
            .to_owned();
    }
    let named: Vec<String> = directories
        .iter()
        .take(NAMED)
        .map(|directory| directory.to_string_lossy().into_owned())
        .collect();
    let more = match directories.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "on the child's PATH ({}{more}); install it, or use the absolute path",
        named.join(", ")
    )
}

/// The absolute form of a relative path: of the home for `~/…`, else of our working directory.
fn absolute_form(command: &str, environment: &BTreeMap<OsString, OsString>) -> String {
    let home = environment::value(environment, "HOME").filter(|home| !home.is_empty());
    let below_home = command.strip_prefix("~/").zip(home);
    let path = match below_home {
        Some((rest, home)) => Path::new(home).join(rest),
        None => std::path::absolute(command)
            .unwrap_or_else(|_| Path::new(&MAIN_SEPARATOR.to_string()).join(command)),
    };
    path.to_string_lossy().into_owned()
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use dsh_kernel::CancelReason;
    use tempfile::TempDir;

    use super::*;

    struct Fixture(TempDir);

    impl Fixture {
        fn new() -> Self {
            let fixture = Self(TempDir::new().expect("a folder"));
            for directory in ["one", "two", "two/folder"] {
                std::fs::create_dir(fixture.at(directory)).expect("created");
            }
            fixture
        }

        fn at(&self, path: &str) -> PathBuf {
            self.0.path().join(path)
        }

        fn file(&self, path: &str, mode: u32) -> &Self {
            std::fs::write(self.at(path), "").expect("written");
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(self.at(path), permissions).expect("set");
            self
        }

        fn find(&self, command: &str, path: &str) -> Result<PathBuf, ResolveError> {
            let path = path.replace('@', self.0.path().to_str().expect("UTF-8"));
            let environment = [
                ("PATH".into(), path.into()),
                ("HOME".into(), "/home/x".into()),
            ];
            resolve(command, &environment.into(), &Cancel::new())
        }
    }

    /// CFG-4
    #[test]
    fn a_name_is_looked_for_in_order_of_the_childs_path() {
        let fixture = Fixture::new();
        fixture.file("two/tool", 0o755);
        assert_eq!(
            fixture.find("tool", "@/one:@/two"),
            Ok(fixture.at("two/tool"))
        );
        fixture.file("one/tool", 0o755);
        assert_eq!(
            fixture.find("tool", "@/one:@/two"),
            Ok(fixture.at("one/tool"))
        );
        assert_eq!(
            fixture.find("tool", "@/two:@/one"),
            Ok(fixture.at("two/tool"))
        );
        assert_eq!(
            fixture.find("tool", "@/none:::@/one"),
            Ok(fixture.at("one/tool"))
        );
    }

    /// CFG-4: the name a program is started under is kept.
    #[test]
    fn a_link_is_not_followed_in_the_result() {
        let fixture = Fixture::new();
        fixture.file("two/multi", 0o755);
        symlink("../two/multi", fixture.at("one/tool")).expect("link");
        assert_eq!(fixture.find("tool", "@/one"), Ok(fixture.at("one/tool")));
    }

    /// CFG-4: neither empty nor relative segments mean our working directory.
    #[test]
    fn segments_without_a_directory_are_skipped() {
        let fixture = Fixture::new();
        // The tests of a package run in its own directory.
        assert!(Path::new("Cargo.toml").exists() && Path::new("src/lib.rs").exists());
        for (name, path) in [
            ("Cargo.toml", ""),
            ("Cargo.toml", "::"),
            ("lib.rs", "src:./src"),
        ] {
            let error = fixture.find(name, path).expect_err("refused");
            assert_eq!(
                error.to_string(),
                format!(
                    "command {name:?} was not found (the child's PATH names no directory); set \
                     PATH in its env, or use the absolute path"
                )
            );
        }
        let error = resolve("sh", &BTreeMap::new(), &Cancel::new()).expect_err("no PATH at all");
        assert!(matches!(error, ResolveError::Missing { .. }), "{error}");
    }

    /// CFG-4
    #[test]
    fn what_cannot_be_run_is_passed_over_and_told_in_the_end() {
        let fixture = Fixture::new();
        fixture
            .file("one/plain", 0o644)
            .file("one/both", 0o644)
            .file("two/both", 0o755);
        assert_eq!(
            fixture.find("both", "@/one:@/two"),
            Ok(fixture.at("two/both"))
        );
        assert_eq!(
            fixture.find("plain", "@/two:@/one"),
            Err(ResolveError::NotExecutable {
                command: "plain".to_owned(),
                path: fixture.at("one/plain")
            })
        );
        assert_eq!(
            fixture.find("folder", "@/one:@/two"),
            Err(ResolveError::Directory {
                command: "folder".to_owned(),
                path: fixture.at("two/folder")
            })
        );
        let error = fixture.find("none", "@/one:@/two").expect_err("refused");
        let root = fixture.0.path().display();
        assert_eq!(
            error.to_string(),
            format!(
                "command \"none\" was not found on the child's PATH ({root}/one, {root}/two); \
                 install it, or use the absolute path"
            )
        );
    }

    /// CFG-4
    #[test]
    fn an_absolute_path_is_judged_where_it_is() {
        let fixture = Fixture::new();
        fixture.file("one/tool", 0o755).file("one/plain", 0o644);
        symlink("gone", fixture.at("one/dangling")).expect("link");
        let at = |path: &str| fixture.at(path).to_str().expect("UTF-8").to_owned();
        assert_eq!(
            fixture.find(&at("one/tool"), ""),
            Ok(fixture.at("one/tool"))
        );
        let directory = fixture.find(&at("one"), "").expect_err("refused");
        assert!(
            matches!(directory, ResolveError::Directory { .. }),
            "{directory}"
        );
        let plain = fixture.find(&at("one/plain"), "").expect_err("refused");
        assert!(
            matches!(plain, ResolveError::NotExecutable { .. }),
            "{plain}"
        );
        let device = fixture.find("/dev/null", "").expect_err("refused");
        assert!(
            matches!(device, ResolveError::NotExecutable { .. }),
            "{device}"
        );
        for missing in ["one/none", "one/dangling", "one/plain/x"] {
            let error = fixture.find(&at(missing), "").expect_err("refused");
            assert_eq!(
                error.to_string(),
                format!(
                    "command {:?} was not found at that path; correct it, or install the program there",
                    at(missing)
                )
            );
        }
    }

    /// CFG-4
    #[test]
    fn a_relative_path_is_refused_with_its_absolute_form() {
        let fixture = Fixture::new();
        let here = std::path::absolute(".").expect("a working directory");
        for (command, suggestion) in [
            ("./bin/server", here.join("bin/server")),
            ("bin/server", here.join("bin/server")),
            ("../server", here.join("../server")),
            ("~/bin/server", PathBuf::from("/home/x/bin/server")),
        ] {
            assert_eq!(
                fixture.find(command, "/bin"),
                Err(ResolveError::Relative {
                    command: command.to_owned(),
                    suggestion: suggestion.to_str().expect("UTF-8").to_owned(),
                })
            );
        }
        assert_eq!(fixture.find("", "/bin"), Err(ResolveError::Blank));
        assert_eq!(fixture.find(" \t", "/bin"), Err(ResolveError::Blank));
        let dots = fixture.find("..", "@/one").expect_err("refused");
        assert!(matches!(dots, ResolveError::Directory { .. }), "{dots}");
    }

    /// CFG-6
    #[test]
    fn a_cancelled_lookup_looks_no_further() {
        let cancel = Cancel::new();
        cancel.cancel(CancelReason::Disposed);
        let environment = [("PATH".into(), "/bin".into())].into();
        for command in ["sh", "/bin/sh"] {
            assert_eq!(
                resolve(command, &environment, &cancel),
                Err(ResolveError::Cancelled {
                    command: command.to_owned()
                })
            );
        }
    }

    #[test]
    fn a_long_path_is_named_in_part() {
        let directories: Vec<PathBuf> = (0..20).map(|n| PathBuf::from(format!("/d{n}"))).collect();
        let text = searched(&directories);
        assert!(
            text.contains("/d11 and 8 more)") && !text.contains("/d12"),
            "{text}"
        );
    }
}
