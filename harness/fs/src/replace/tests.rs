use std::cell::{Cell, RefCell};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::target::FileKind;

/// A write of `bytes`, without faults unless told.
fn write(path: &Path, bytes: &[u8], expected: &Expected) -> Result<FsVersion, FsError> {
    write_with(path, bytes, expected, &|_| Ok(()))
}

fn write_with(
    target: &Path,
    bytes: &[u8],
    expected: &Expected,
    before: &dyn Fn(Step) -> io::Result<()>,
) -> Result<FsVersion, FsError> {
    Replacement {
        target,
        bytes,
        expected,
        stop: &|| Ok(()),
        before,
    }
    .run()
}

fn folder() -> TempDir {
    TempDir::new().expect("a folder")
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("there").mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    let mode = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(path, mode).expect("set");
}

/// Everything below a folder: names, and what files hold.
fn tree(folder: &Path) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("listed") {
            let path = entry.expect("listed").path();
            if path.is_dir() {
                folders.push(path.clone());
                found.push((path, None));
            } else {
                let bytes = std::fs::read(&path).expect("read");
                found.push((path, Some(bytes)));
            }
        }
    }
    found.sort();
    found
}

/// RUN-9: the new content is there, nothing else is, and the version is the one that is seen next.
#[test]
fn a_file_is_made_and_replaced_in_one_step() {
    let folder = folder();
    let path = folder.path().join("a/b/file");
    let made = write(&path, b"one", &Expected::Any).expect("written");
    assert_eq!(files::stat(&path).expect("there").version, made);
    let replaced = write(&path, b"two", &Expected::Version(made.clone())).expect("written");
    assert_ne!(replaced, made);
    assert_eq!(files::stat(&path).expect("there").version, replaced);
    assert_eq!(std::fs::read(&path).expect("read"), b"two");
    assert_eq!(tree(folder.path()).len(), 3);
}

/// RUN-9: the mode bits of what is replaced are kept; a new file has those of any new file.
#[test]
fn mode_bits_are_kept() {
    let folder = folder();
    let path = folder.path().join("file");
    for bits in [0o600, 0o640, 0o755, 0o666, 0o4711, 0o2750, 0o1644] {
        std::fs::write(&path, "old").expect("written");
        set_mode(&path, bits);
        write(&path, b"new", &Expected::Any).expect("written");
        assert_eq!(mode(&path), bits, "{bits:o}");
    }
    let (ours, theirs) = (folder.path().join("ours"), folder.path().join("theirs"));
    write(&ours, b"", &Expected::Any).expect("written");
    std::fs::write(&theirs, "").expect("written");
    assert_eq!(mode(&ours), mode(&theirs));
}

/// RUN-9: a link at the end is followed, and stays one; also where it leads to nothing yet.
#[test]
fn a_link_is_written_through() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir(at("d")).expect("made");
    std::fs::write(at("d/real"), "old").expect("written");
    symlink("d/real", at("one")).expect("linked");
    symlink("one", at("two")).expect("linked");
    symlink("d/new", at("dangling")).expect("linked");
    let version = write(&at("two"), b"new", &Expected::Any).expect("written");
    assert_eq!(files::stat(&at("two")).expect("there").version, version);
    assert_eq!(std::fs::read(at("d/real")).expect("read"), b"new");
    write(&at("dangling"), b"made", &Expected::Absent).expect("written");
    assert_eq!(std::fs::read(at("d/new")).expect("read"), b"made");
    for link in ["one", "two", "dangling"] {
        assert!(at(link).is_symlink(), "{link}");
    }
    symlink("loop", at("loop")).expect("linked");
    let error = write(&at("loop"), b"", &Expected::Any).expect_err("refused");
    assert!(error.to_string().contains("its symbolic links form a loop"));
    // No directories are made where a link leads.
    symlink("none/file", at("far")).expect("linked");
    let error = write(&at("far"), b"", &Expected::Any).expect_err("refused");
    assert!(matches!(error, FsError::Missing { .. }), "{error}");
    assert!(!at("none").exists());
}

/// RUN-9
#[test]
fn what_is_no_regular_file_is_not_replaced() {
    let folder = folder();
    let error = write(folder.path(), b"", &Expected::Any).expect_err("refused");
    let kind = FileKind::Directory;
    let path = files::shown(folder.path());
    assert_eq!(error, FsError::NotRegular { path, kind });
    let error = write(Path::new("/dev/null"), b"", &Expected::Any).expect_err("refused");
    assert!(matches!(error, FsError::NotRegular { .. }), "{error}");
    let error = write(Path::new("/"), b"", &Expected::Any).expect_err("refused");
    assert!(matches!(error, FsError::NotRegular { .. }), "{error}");
    std::fs::write(folder.path().join("file"), "x").expect("written");
    let below = folder.path().join("file/below");
    assert!(write(&below, b"", &Expected::Any).is_err());
}

/// RUN-10: what does not fit the expectation is not touched, whenever it came.
#[test]
fn an_expectation_holds_until_the_last_moment() {
    let folder = folder();
    let path = folder.path().join("file");
    let stale = |result: Result<FsVersion, FsError>| match result {
        Err(FsError::Stale { found, .. }) => found,
        other => panic!("{other:?}"),
    };
    let version = write(&path, b"first", &Expected::Absent).expect("written");
    assert_eq!(stale(write(&path, b"x", &Expected::Absent)), Found::Present);
    let wrong = Expected::Version(FsVersion::new("wrong"));
    assert_eq!(stale(write(&path, b"x", &wrong)), Found::Changed);

    let expected = Expected::Version(version);
    let meanwhile = |step: Step, act: &dyn Fn()| {
        write_with(&path, b"mine", &expected, &|now| {
            if now == step {
                act();
            }
            Ok(())
        })
    };
    let theirs = || std::fs::write(&path, "theirs, longer").expect("written");
    assert_eq!(stale(meanwhile(Step::Check, &theirs)), Found::Changed);
    assert_eq!(std::fs::read(&path).expect("read"), b"theirs, longer");
    let gone = || std::fs::remove_file(&path).expect("removed");
    let expected = Expected::Version(files::stat(&path).expect("there").version);
    let result = write_with(&path, b"mine", &expected, &|now| {
        if now == Step::Check {
            gone();
        }
        Ok(())
    });
    assert_eq!(stale(result), Found::Absent);
    assert!(tree(folder.path()).is_empty());

    let appears = |now: Step| {
        if now == Step::Rename {
            std::fs::write(&path, "theirs").expect("written");
        }
        Ok(())
    };
    let result = write_with(&path, b"mine", &Expected::Absent, &appears);
    assert_eq!(stale(result), Found::Present);
    assert_eq!(std::fs::read(&path).expect("read"), b"theirs");
    assert_eq!(tree(folder.path()).len(), 1);
}

/// RUN-9: a file that may not be written is not replaced although its directory would let it be,
/// and a directory that lets nothing be made in it is named.
#[cfg(target_os = "linux")]
#[test]
fn permissions_are_obeyed() {
    let folder = folder();
    let path = folder.path().join("file");
    std::fs::write(&path, "old").expect("written");
    let checks = || {
        crate::testing::obey_permissions();
        set_mode(&path, 0o444);
        let error = write(&path, b"new", &Expected::Any).expect_err("refused");
        assert!(error.to_string().ends_with("permission denied"), "{error}");
        set_mode(&path, 0o644);
        set_mode(folder.path(), 0o555);
        let error = write(&path, b"new", &Expected::Any).expect_err("refused");
        let words = "to write it takes permission to create files in its directory";
        assert!(error.to_string().contains(words), "{error}");
        set_mode(folder.path(), 0o755);
        assert_eq!(std::fs::read(&path).expect("read"), b"old");
        assert_eq!(tree(folder.path()).len(), 1);
    };
    std::thread::scope(|scope| {
        let unprivileged = std::thread::Builder::new().spawn_scoped(scope, checks);
        let unprivileged = unprivileged.expect("a thread");
        unprivileged.join().expect("the checks hold");
    });
}

/// RUN-9: who reads meanwhile sees the old content or the new one, whole.
#[test]
fn readers_never_see_a_part() {
    let folder = folder();
    let path = folder.path().join("file");
    let content = |byte: u8| vec![byte; 300_000];
    write(&path, &content(b'a'), &Expected::Any).expect("written");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reads = || {
            while !done.load(Ordering::Relaxed) {
                let bytes = std::fs::read(&path).expect("always there");
                assert!(bytes == content(bytes[0]), "{} bytes", bytes.len());
            }
        };
        let reader = std::thread::Builder::new().spawn_scoped(scope, reads);
        let reader = reader.expect("a thread");
        for round in 0..30 {
            let byte = b'a' + round % 2;
            write(&path, &content(byte), &Expected::Any).expect("written");
        }
        done.store(true, Ordering::Relaxed);
        reader.join().expect("it saw whole files");
    });
}

const STEPS: [Step; 7] = [
    Step::MakeDirectories,
    Step::CreateTemporary,
    Step::Write,
    Step::KeepMode,
    Step::SyncFile,
    Step::Check,
    Step::Rename,
];

#[derive(Clone, Copy, Debug)]
enum Trouble {
    Fails(Step),
    /// At the so-manieth look.
    Cancelled(u32),
    Panics(Step),
}

fn trouble() -> impl Strategy<Value = Trouble> {
    let step = || proptest::sample::select(&STEPS[..]);
    prop_oneof![
        step().prop_map(Trouble::Fails),
        (0_u32..4).prop_map(Trouble::Cancelled),
        step().prop_map(Trouble::Panics),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// RUN-9: whatever goes wrong at whatever point, everything is as it was, or the write is whole.
    #[test]
    fn trouble_leaves_everything_as_it_was(
        trouble in trouble(),
        old in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..50)),
        linked: bool,
        depth in 0_usize..3,
        large: bool,
    ) {
        let folder = folder();
        let (mut real, link) = (folder.path().join("ws"), folder.path().join("link"));
        std::fs::create_dir(&real).expect("made");
        let depth = if old.is_some() || linked { 0 } else { depth };
        real.extend(std::iter::repeat_n("sub", depth));
        real.push("file");
        if let Some(old) = &old {
            std::fs::write(&real, old).expect("written");
            set_mode(&real, 0o640);
        }
        if linked {
            symlink(&real, &link).expect("linked");
        }
        let before = tree(&folder.path().join("ws"));
        let target = if linked { &link } else { &real };
        let new = if large { vec![b'n'; 2_500_000] } else { b"new".to_vec() };

        let reached = Cell::new(false);
        let looks = Cell::new(0);
        let steps = RefCell::new(Vec::new());
        let replacement = Replacement {
            target,
            bytes: &new,
            expected: &Expected::Any,
            stop: &|| {
                looks.set(looks.get() + 1);
                match trouble {
                    Trouble::Cancelled(at) if looks.get() > at => {
                        reached.set(true);
                        Err(CancelReason::Caller)
                    }
                    _ => Ok(()),
                }
            },
            before: &|step| {
                steps.borrow_mut().push(step);
                match trouble {
                    Trouble::Fails(at) if at == step => {
                        reached.set(true);
                        Err(io::ErrorKind::StorageFull.into())
                    }
                    Trouble::Panics(at) if at == step => {
                        reached.set(true);
                        std::panic::resume_unwind(Box::new("trouble"))
                    }
                    _ => Ok(()),
                }
            },
        };
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| replacement.run()));
        if reached.get() {
            prop_assert!(!matches!(result, Ok(Ok(_))), "{:?}", result);
            prop_assert_eq!(tree(&folder.path().join("ws")), before);
            prop_assert_eq!(old.is_some(), real.exists());
        } else {
            prop_assert!(matches!(result, Ok(Ok(_))), "{:?}", result);
            prop_assert_eq!(std::fs::read(&real).expect("read"), new);
            let last = steps.borrow().last().copied();
            prop_assert_eq!(last, Some(Step::SyncDirectory));
            let files = tree(&folder.path().join("ws"));
            prop_assert_eq!(files.len(), depth + 1, "{:?}", files);
        }
        if old.is_some() {
            prop_assert_eq!(mode(&real), 0o640);
        }
        prop_assert_eq!(link.is_symlink(), linked);
    }
}

/// RUN-9: after the step, a failure does not claim that nothing was written.
#[test]
fn a_directory_that_cannot_be_synced_is_told_as_it_is() {
    let folder = folder();
    let path = folder.path().join("file");
    let fails = |step| match step {
        Step::SyncDirectory => Err(io::Error::other("the disk is gone")),
        _ => Ok(()),
    };
    let error = write_with(&path, b"new", &Expected::Any, &fails).expect_err("told");
    assert!(
        error
            .to_string()
            .contains("it was written, but may not outlast a crash")
    );
    assert_eq!(std::fs::read(&path).expect("read"), b"new");
}

/// RUN-9: a full disk is named, and what was there is there.
#[cfg(target_os = "linux")]
#[test]
fn a_device_that_is_full_is_named() {
    let error = files::failed(
        Path::new("/dev/full"),
        &std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .and_then(|mut full| full.write_all(b"x"))
            .expect_err("it is always full"),
    );
    assert!(matches!(error, FsError::NoSpace { .. }), "{error:?}");
}
