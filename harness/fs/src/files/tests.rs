use std::os::unix::fs::symlink;

use rustix::io::Errno;
use tempfile::TempDir;

use super::*;

#[track_caller]
fn check(base: Option<&str>, given: &str, path: &str) {
    let target = resolve(base, given).expect("resolved");
    assert_eq!(target.path, Path::new(path));
    assert_eq!(target.display_path, path);
}

/// RUN-8: relative paths go from the base, and paths are normal by their letters.
#[test]
fn paths_are_made_absolute_and_normal() {
    check(Some("/w"), "a/b", "/w/a/b");
    check(Some("/w"), "./a//b/", "/w/a/b");
    check(Some("/w/x"), "../a", "/w/a");
    check(Some("/w"), "/etc/../b", "/b");
    check(None, "/a/./b", "/a/b");
    check(Some("/w"), "../../..", "/");
    check(Some("/w"), "~/a", "/w/~/a");
    check(Some("/w"), " a\n", "/w/ a\n");
}

/// RUN-10: one file has one identity by every path, before it is made and after.
#[test]
fn an_identity_is_behind_all_links() {
    let folder = TempDir::new().expect("made");
    let root = folder.path().canonicalize().expect("there");
    std::fs::create_dir(root.join("real")).expect("made");
    std::fs::write(root.join("real/a"), "a").expect("written");
    for (link, to) in [
        ("folder", "real"),
        ("file", "folder/a"),
        ("dangling", "folder/../real/new"),
        ("loop", "loop"),
        ("deep", "nowhere/x/y"),
    ] {
        symlink(to, root.join(link)).expect("linked");
    }
    for (path, whole) in [
        ("real/a", "real/a"),
        ("folder/a", "real/a"),
        ("file", "real/a"),
        ("folder/new", "real/new"),
        ("folder/x/y", "real/x/y"),
        ("dangling", "real/new"),
        ("deep", "nowhere/x/y"),
    ] {
        assert_eq!(identity(&root.join(path)), root.join(whole), "{path}");
    }
    // A circle has no end; what matters is that it ends here.
    assert_eq!(identity(&root.join("loop")), root.join("loop"));
    std::fs::write(root.join("dangling"), "b").expect("written");
    assert_eq!(identity(&root.join("dangling")), root.join("real/new"));
}

/// RUN-8
#[test]
fn a_path_that_leads_nowhere_says_why() {
    for (base, given, words) in [
        (
            None,
            "a",
            "\"a\" is a relative path, and there is no working directory to resolve it against; \
             give an absolute path",
        ),
        (
            Some("rel"),
            "a",
            "\"a\" is a relative path, and there is no working directory to resolve it against; \
             give an absolute path",
        ),
        (
            Some("/w"),
            "",
            "\"\" cannot be used: the path is empty; name a file",
        ),
        (
            Some("/w"),
            "a\0b",
            "\"a\\0b\" cannot be used: the path holds a NUL byte",
        ),
    ] {
        assert_eq!(
            resolve(base, given).expect_err("refused").to_string(),
            words
        );
    }
}

/// INS-9: links are followed; what is missing is told from what cannot be looked at.
#[test]
fn what_is_there_is_told_behind_links() {
    let folder = TempDir::new().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("file"), "12345").expect("written");
    symlink("file", at("link")).expect("linked");
    symlink("none", at("dangling")).expect("linked");
    symlink("loop", at("loop")).expect("linked");
    symlink(".", at("here")).expect("linked");
    let file = stat(&at("file")).expect("there");
    assert_eq!((file.kind, file.size), (FileKind::File, Some(5)));
    assert_eq!(stat(&at("link")), Ok(file));
    let here = stat(&at("here")).expect("there");
    assert_eq!((here.kind, here.size), (FileKind::Directory, None));
    for missing in ["none", "dangling", "file/x"] {
        let error = stat(&at(missing)).expect_err("missing");
        assert!(matches!(error, FsError::Missing { .. }), "{error}");
        assert!(error.confirms_absence());
    }
    let long = "x".repeat(5000);
    for (broken, words) in [
        ("loop", "its symbolic links form a loop"),
        (long.as_str(), "name too long"),
    ] {
        let error = stat(&at(broken)).expect_err("broken");
        assert!(!error.confirms_absence());
        assert!(error.to_string().contains(words), "{error}");
    }
}

/// Keys are in the environment: it is not read, straight or through a link.
#[test]
#[cfg(target_os = "linux")]
fn the_environment_of_a_process_is_not_read() {
    let folder = TempDir::new().expect("a folder");
    let link = folder.path().join("AGENTS.md");
    symlink("/proc/self/environ", &link).expect("linked");
    let own = format!("/proc/{}/environ", std::process::id());
    let thread = format!("/proc/self/task/{}/environ", std::process::id());
    for path in [
        Path::new("/proc/self/environ"),
        Path::new(&own),
        Path::new(&thread),
        &link,
    ] {
        let error = open_without_blocking(path, Links::Followed).expect_err("not read");
        assert_eq!(
            error.kind(),
            std::io::ErrorKind::PermissionDenied,
            "{path:?}"
        );
    }
    open_without_blocking(Path::new("/proc/self/status"), Links::Followed).expect("read");
}

/// RUN-8: nothing but a regular file is opened, and nothing is waited for.
#[test]
fn what_is_no_regular_file_is_not_opened() {
    let folder = TempDir::new().expect("a folder");
    let fifo = folder.path().join("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .expect("made");
    let socket = folder.path().join("socket");
    let _bound = std::os::unix::net::UnixListener::bind(&socket).expect("bound");
    for (path, kind) in [
        (folder.path(), "directory"),
        (&fifo, "FIFO"),
        (&socket, "socket"),
        (Path::new("/dev/null"), "character device"),
    ] {
        let error = open(path).expect_err("refused");
        let words = format!("{:?} is not a regular file but a {kind}", shown(path));
        assert_eq!(error.to_string(), words);
        assert!(error.confirms_absence());
    }
}

/// RUN-10: a version stays while nothing is written, and changes with what is.
#[test]
fn a_version_changes_with_the_content() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("file");
    let version = || stat(&path).expect("there").version;
    std::fs::write(&path, "one").expect("written");
    let first = version();
    assert_eq!(version(), first);
    std::fs::write(&path, "longer").expect("written");
    let second = version();
    assert_ne!(second, first);
    // Another file of the same size in its place is another version, whatever its times.
    let other = folder.path().join("other");
    std::fs::write(&other, "LONGER").expect("written");
    std::fs::rename(&other, &path).expect("renamed");
    assert_ne!(version(), second);
}

/// RUN-9: what the system says has a reason to go by.
#[test]
fn failures_are_named() {
    let named = |errno: Errno| failed(Path::new("/f"), &io::Error::from(errno));
    let path = || "/f".to_owned();
    assert_eq!(named(Errno::NOENT), FsError::Missing { path: path() });
    assert_eq!(named(Errno::NOTDIR), FsError::Missing { path: path() });
    assert_eq!(named(Errno::ROFS), FsError::ReadOnly { path: path() });
    assert_eq!(named(Errno::XDEV), FsError::OtherDevice { path: path() });
    for denied in [Errno::ACCESS, Errno::PERM] {
        let expected = FsError::Denied {
            path: path(),
            detail: "",
        };
        assert_eq!(named(denied), expected);
    }
    for full in [Errno::NOSPC, Errno::DQUOT] {
        let error = named(full);
        assert!(matches!(error, FsError::NoSpace { .. }), "{error:?}");
    }
    for other in [Errno::IO, Errno::BUSY, Errno::MFILE] {
        let error = named(other);
        assert!(matches!(error, FsError::Inaccessible { .. }), "{error:?}");
    }
}

/// A directory of any size is listed in bounds, and names need not be text.
#[test]
fn names_are_listed_in_bounds() {
    use std::os::unix::ffi::OsStringExt as _;
    let folder = TempDir::new().expect("a folder");
    let odd = OsString::from_vec(b"a\xFF\n".to_vec());
    std::fs::write(folder.path().join(&odd), "").expect("written");
    assert_eq!(names(folder.path(), 10), Ok(vec![odd]));
    for name in 0..20 {
        std::fs::write(folder.path().join(name.to_string()), "").expect("written");
    }
    assert_eq!(names(folder.path(), 10).expect("listed").len(), 10);
    let error = names(&folder.path().join("none"), 10).expect_err("missing");
    assert!(matches!(error, FsError::Missing { .. }));
}
