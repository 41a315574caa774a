//! The example in Python, judged by the suite as anybody's harness is.

use std::path::Path;
use std::process::Command;

use crate::support::EXECUTABLE;

/// Whether there is a Python to run it with. Where there is none it is said so, and in CI that is
/// a failure.
#[expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a test looks at where it runs, and says so where it cannot"
)]
fn python() -> bool {
    let there = Command::new("python3").arg("--version").output();
    let there = there.is_ok_and(|told| told.status.success());
    if !there {
        let ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
        assert!(!ci, "python3 is missing, and CI has to have it");
        eprintln!("SKIPPED: python3 is missing, so the example in Python was not judged");
    }
    there
}

/// It keeps what it claims, and what it does not keep is on its list. All scenarios of what it claims
/// are run on it, which takes a quarter of a minute.
#[test]
fn the_example_is_judged_by_what_it_claims() {
    if !python() {
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let out = tempfile::tempdir().expect("a folder");
    let report = out.path().join("run.txt");
    let run = Command::new(EXECUTABLE)
        .current_dir(root)
        .args([
            "run",
            "--quiet",
            "--subject",
            "scenarios/examples/python/subject.yaml",
        ])
        .arg("--out")
        .arg(&report)
        .output()
        .expect("it runs");
    let told = std::fs::read_to_string(&report).unwrap_or_default();
    let complained = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(0), "{told}\n{complained}");
}
