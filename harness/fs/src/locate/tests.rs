#[cfg(unix)]
use std::os::unix::fs::{PermissionsExt, symlink};

use tempfile::TempDir;

use super::*;

type Way = fn(&SourceRequest) -> Result<Located, SourceError>;

/// What the provider does, and the way by names alone, are held to the same answers.
fn each_way(test: impl Fn(Way)) {
    test(super::source);
    test(|request| {
        let (workspace, path) = paths::resolve(request)?;
        paths::open(workspace, path, &request.file_path)
    });
}

/// A temporary folder whose own path is canonical, with `ws/` and `ws2/` in it.
struct Fixture {
    _folder: TempDir,
    base: PathBuf,
}

impl Fixture {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let base = folder.path().canonicalize().expect("canonical");
        std::fs::create_dir_all(base.join("ws/sub")).expect("ws");
        std::fs::create_dir(base.join("ws2")).expect("ws2");
        Self {
            _folder: folder,
            base,
        }
    }

    fn write(&self, path: &str, text: &str) {
        std::fs::write(self.base.join(path), text).expect("written");
    }

    fn path(&self, path: &str) -> String {
        self.base.join(path).to_str().expect("UTF-8").to_owned()
    }

    fn request(&self, file: &str) -> SourceRequest {
        SourceRequest {
            workspace_root: self.path("ws"),
            file_path: file.to_owned(),
            max_bytes: 100,
        }
    }
}

/// HST-1
#[cfg(unix)]
#[test]
fn aliases_of_a_workspace_have_one_canonical_form() {
    let fixture = Fixture::new();
    symlink("ws", fixture.base.join("alias")).expect("link");
    symlink(fixture.base.join("alias/sub"), fixture.base.join("deep")).expect("link");
    for alias in ["ws", "alias", "alias/", "ws/../ws", "ws/sub/.."] {
        let path = super::workspace(&fixture.path(alias)).expect("a workspace");
        assert_eq!(path, fixture.base.join("ws"), "{alias}");
    }
    let deep = super::workspace(&fixture.path("deep")).expect("a workspace");
    assert_eq!(deep, fixture.base.join("ws/sub"));
    assert_eq!(super::workspace("/").expect("a workspace"), Path::new("/"));
}

/// HST-1
#[cfg(unix)]
#[test]
fn what_cannot_be_a_workspace_says_why() {
    let fixture = Fixture::new();
    fixture.write("file", "");
    symlink("loop", fixture.base.join("loop")).expect("link");
    symlink("nowhere", fixture.base.join("dangling")).expect("link");
    let error = |path: &str| super::workspace(&fixture.path(path)).expect_err("refused");
    let root = |path: &str| fixture.path(path);
    assert_eq!(
        error("none"),
        WorkspaceError::Missing { root: root("none") }
    );
    assert_eq!(
        error("dangling"),
        WorkspaceError::Missing {
            root: root("dangling")
        }
    );
    assert_eq!(
        error("file"),
        WorkspaceError::NotDirectory { root: root("file") }
    );
    assert_eq!(
        error("file/x"),
        WorkspaceError::NotDirectory {
            root: root("file/x")
        }
    );
    assert_eq!(
        error("loop"),
        WorkspaceError::Inaccessible {
            root: root("loop"),
            reason: "its symbolic links form a loop".to_owned(),
        }
    );
    assert_eq!(
        error("a\0b"),
        WorkspaceError::Inaccessible {
            root: root("a\0b"),
            reason: "the path holds a NUL byte".to_owned(),
        }
    );
    for relative in ["ws", "./ws", "", "~/ws"] {
        let error = super::workspace(relative).expect_err("refused");
        assert_eq!(
            error,
            WorkspaceError::NotAbsolute {
                root: relative.to_owned()
            }
        );
        let request = SourceRequest {
            workspace_root: relative.to_owned(),
            ..fixture.request("f")
        };
        assert_eq!(
            super::source(&request).expect_err("refused"),
            SourceError::Workspace(error)
        );
    }
}

/// HST-2
#[cfg(unix)]
#[test]
fn files_are_found_by_relative_and_absolute_names() {
    let fixture = Fixture::new();
    fixture.write("ws/a.rs", "a");
    fixture.write("ws/sub/..name", "bc");
    fixture.write("ws/..b", "b");
    symlink("../a.rs", fixture.base.join("ws/sub/link.rs")).expect("link");
    symlink("ws", fixture.base.join("alias")).expect("link");
    each_way(|way: Way| {
        let found = |file: &str| way(&fixture.request(file)).expect("found");
        for (file, path) in [
            ("a.rs", "ws/a.rs"),
            ("./sub/../a.rs", "ws/a.rs"),
            ("../ws/a.rs", "ws/a.rs"),
            ("sub/link.rs", "ws/a.rs"),
            ("sub/..name", "ws/sub/..name"),
            ("..b", "ws/..b"),
            (fixture.path("ws/a.rs").as_str(), "ws/a.rs"),
            (fixture.path("alias/a.rs").as_str(), "ws/a.rs"),
        ] {
            let located = found(file);
            assert_eq!(located.path, fixture.base.join(path), "{file}");
            assert_eq!(located.workspace, fixture.base.join("ws"));
        }
        assert_eq!(found("sub/..name").size, 2);
        let alias = SourceRequest {
            workspace_root: fixture.path("alias"),
            ..fixture.request(&fixture.path("ws/a.rs"))
        };
        let located = way(&alias).expect("found");
        assert_eq!(located.workspace, fixture.base.join("ws"));
        let root = SourceRequest {
            workspace_root: "/".to_owned(),
            ..alias
        };
        assert_eq!(
            way(&root).expect("found").path,
            fixture.base.join("ws/a.rs")
        );
    });
}

/// HST-2
#[cfg(unix)]
#[test]
fn a_file_outside_the_workspace_is_refused_after_its_links_are_resolved() {
    let fixture = Fixture::new();
    fixture.write("ws2/secret", "s");
    fixture.write("wsx", "s");
    symlink("../ws2/secret", fixture.base.join("ws/link")).expect("link");
    symlink("../ws2", fixture.base.join("ws/dir")).expect("link");
    each_way(|way: Way| {
        for (file, resolved) in [
            ("../ws2/secret", "ws2/secret"),
            ("link", "ws2/secret"),
            ("dir/secret", "ws2/secret"),
            (fixture.path("ws2/secret").as_str(), "ws2/secret"),
            ("../wsx", "wsx"),
            ("..", ""),
        ] {
            let error = way(&fixture.request(file)).expect_err("refused");
            let expected = SourceError::OutsideWorkspace {
                path: file.to_owned(),
                workspace: fixture.path("ws"),
                resolved: fixture.path(resolved).trim_end_matches('/').to_owned(),
            };
            assert_eq!(error, expected);
        }
    });
}

/// HST-3
#[cfg(unix)]
#[test]
fn what_cannot_be_a_source_says_why() {
    let fixture = Fixture::new();
    fixture.write("ws/a.rs", "a");
    symlink("loop", fixture.base.join("ws/loop")).expect("link");
    symlink("gone", fixture.base.join("ws/dangling")).expect("link");
    each_way(|way: Way| {
        let error = |file: &str| way(&fixture.request(file)).expect_err("refused");
        let missing = |file: &str| SourceError::Missing {
            path: file.to_owned(),
        };
        for file in ["none", "no/parent", "a.rs/x", "a.rs/", "dangling"] {
            assert_eq!(error(file), missing(file));
        }
        let inaccessible = |file: &str, reason: &str| SourceError::Inaccessible {
            path: file.to_owned(),
            reason: reason.to_owned(),
        };
        assert_eq!(
            error("loop"),
            inaccessible("loop", "its symbolic links form a loop")
        );
        assert_eq!(
            error("a\0"),
            inaccessible("a\0", "the path holds a NUL byte")
        );
        let long = "x".repeat(300);
        assert!(matches!(error(&long), SourceError::Inaccessible { path, .. } if path == long));
    });
    let error = super::source(&fixture.request("")).expect_err("refused");
    assert_eq!(
        error.to_string(),
        "source file \"\" cannot be read: the path is empty; name a file"
    );
}

/// HST-3: what is no regular file is not even opened, since opening a device may have effects.
#[cfg(target_os = "linux")]
#[test]
fn a_fifo_is_judged_without_opening_it() {
    use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let fixture = Fixture::new();
    mknodat(CWD, fixture.path("ws/fifo"), FileType::Fifo, Mode::RUSR, 0).expect("FIFO");
    fixture.write("ws/a.rs", "a");
    let opens = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).expect("events");
    for file in ["ws/fifo", "ws/a.rs"] {
        inotify::add_watch(&opens, fixture.path(file), WatchFlags::OPEN).expect("watched");
    }
    let opened = || rustix::io::read(&opens, &mut [0; 1024][..]).is_ok();
    each_way(|way: Way| {
        way(&fixture.request("fifo")).expect_err("refused");
        assert!(!opened(), "the FIFO was opened");
        way(&fixture.request("a.rs")).expect("found");
        assert!(opened(), "opening is seen");
    });
}

/// HST-3: a FIFO without a writer does not block.
#[cfg(target_os = "linux")]
#[test]
fn only_regular_files_are_opened() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let fixture = Fixture::new();
    mknodat(CWD, fixture.path("ws/fifo"), FileType::Fifo, Mode::RUSR, 0).expect("FIFO");
    let _socket =
        std::os::unix::net::UnixListener::bind(fixture.path("ws/socket")).expect("socket");
    symlink("fifo", fixture.base.join("ws/link")).expect("link");
    each_way(|way: Way| {
        for (file, kind) in [
            ("sub", "directory"),
            (".", "directory"),
            ("fifo", "FIFO"),
            ("link", "FIFO"),
            ("socket", "socket"),
        ] {
            let error = way(&fixture.request(file)).expect_err("refused");
            assert_eq!(
                error,
                SourceError::NotRegular {
                    path: file.to_owned(),
                    kind
                }
            );
        }
        let device = SourceRequest {
            workspace_root: "/dev".to_owned(),
            file_path: "zero".to_owned(),
            max_bytes: 1,
        };
        let error = way(&device).expect_err("refused");
        let kind = "character device";
        assert_eq!(
            error,
            SourceError::NotRegular {
                path: "zero".to_owned(),
                kind
            }
        );
    });
}

/// A path of 200 components within the system's limit works.
#[cfg(unix)]
#[test]
fn deep_paths_are_found() {
    let fixture = Fixture::new();
    let deep = "component/".repeat(200);
    std::fs::create_dir_all(fixture.base.join("ws").join(&deep)).expect("created");
    let file = format!("{deep}a \"b\"\n#%'𝕏.rs");
    fixture.write(&format!("ws/{file}"), "x");
    each_way(|way: Way| {
        let located = way(&fixture.request(&file)).expect("found");
        assert_eq!(located.path, fixture.base.join("ws").join(&file));
    });
}

/// HST-1, HST-3: run on a thread without the privilege to pass over permissions.
#[cfg(target_os = "linux")]
#[test]
fn what_may_not_be_read_is_told_from_what_is_missing() {
    let fixture = Fixture::new();
    fixture.write("ws/a.rs", "a");
    let mode = |path: &str, bits| {
        let path = fixture.base.join(path);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(bits)).expect("mode");
    };
    std::thread::scope(|scope| {
        let unprivileged = std::thread::Builder::new()
            .spawn_scoped(scope, || {
                crate::testing::obey_permissions();
                mode("ws/a.rs", 0o000);
                each_way(|way: Way| {
                    let error = way(&fixture.request("a.rs")).expect_err("refused");
                    assert_eq!(
                        error.to_string(),
                        "source file \"a.rs\" cannot be read: permission denied"
                    );
                });
                for bits in [0o000, 0o600, 0o100] {
                    mode("ws", bits);
                    each_way(|way: Way| {
                        let refused = WorkspaceError::Inaccessible {
                            root: fixture.path("ws"),
                            reason: "permission denied".to_owned(),
                        };
                        let error = super::workspace(&fixture.path("ws")).expect_err("refused");
                        assert_eq!(error, refused);
                        if bits != 0o100 {
                            let error = way(&fixture.request("a.rs")).expect_err("refused");
                            assert_eq!(error, SourceError::Workspace(refused));
                        }
                    });
                    mode("ws", 0o700);
                }
            })
            .expect("a thread");
        unprivileged.join().expect("the checks hold");
    });
}

#[test]
fn verbatim_prefixes_are_taken_off() {
    assert_eq!(without_verbatim(r"\\?\C:\a"), r"C:\a");
    assert_eq!(without_verbatim(r"\\?\UNC\server\share"), r"\\server\share");
    assert_eq!(without_verbatim(r"C:\a"), r"C:\a");
    assert_eq!(without_verbatim(r"\\server\share"), r"\\server\share");
}
