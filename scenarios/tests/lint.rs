//! The suite itself: every file can be read.

use std::path::Path;

use dsh_scenarios::suite::Suite;

fn suite() -> Suite {
    Suite::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("suite")).expect("the suite is there")
}

#[test]
fn every_scenario_can_be_read_without_a_word() {
    let suite = suite();
    let said: Vec<String> = suite
        .diagnostics()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert!(
        said.is_empty(),
        "{} of {} files:\n{}",
        said.len(),
        suite.files().len(),
        said.join("\n")
    );
}
