//! A suite of files: which there are, which are selected, and into which parts they fall.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use dsh_scenarios::suite::{Shard, Suite, SuiteError, SuiteFile};

const PLAIN: &str = "title: A title\nclauses: [CAN-1]\nprofile: transient\nprocesses: 0\n";
const MATRIX: &str = "title: $(one)\nclauses: [CAN-1]\nprofile: transient\nprocesses: 0\n\
                      matrix: {one: {a: 1st, b: 2nd}}\n";

fn suite(files: &[(&str, &str)]) -> Suite {
    Suite::from_files(files.iter().map(|(path, text)| SuiteFile {
        path: (*path).to_owned(),
        shown: format!("suite/{path}"),
        bytes: text.as_bytes().to_vec(),
    }))
}

fn usual() -> Suite {
    suite(&[
        ("cancel/ignored.yaml", PLAIN),
        ("cancel/ignored-twice.yaml", PLAIN),
        ("results/shapes.yaml", MATRIX),
    ])
}

fn selected(filters: &[&str]) -> Result<String, String> {
    let suite = usual();
    let filters: Vec<String> = filters.iter().map(|filter| (*filter).to_owned()).collect();
    let cases = suite.select(&filters).map_err(|error| error.to_string())?;
    let ids: Vec<&str> = cases.iter().map(|case| case.id.as_str()).collect();
    Ok(ids.join(" "))
}

#[test]
fn filters_select_by_id() {
    for (filters, ids) in [
        (
            &[][..],
            "cancel/ignored cancel/ignored-twice results/shapes#a results/shapes#b",
        ),
        // What is an id selects that only, though other ids begin with it.
        (&["cancel/ignored"], "cancel/ignored"),
        (&["cancel/ignored.yaml"], "cancel/ignored"),
        (
            &["./scenarios/suite/results/shapes.yaml"],
            "results/shapes#a results/shapes#b",
        ),
        (&["results/shapes#b"], "results/shapes#b"),
        (&["cancel/"], "cancel/ignored cancel/ignored-twice"),
        (&["twice", "#a"], "cancel/ignored-twice results/shapes#a"),
        (&["*s/*#b"], "results/shapes#b"),
        (&["cancel/*"], "cancel/ignored cancel/ignored-twice"),
        (
            &["results/shapes#?", "twice"],
            "cancel/ignored-twice results/shapes#a results/shapes#b",
        ),
    ] {
        assert_eq!(selected(filters).as_deref(), Ok(ids), "{filters:?}");
    }
}

#[test]
fn a_filter_that_selects_nothing_is_an_error_with_the_nearest_id() {
    for (filter, said) in [
        (
            "cancel/ignord",
            "no scenario fits \"cancel/ignord\"; did you mean cancel/ignored?",
        ),
        (
            "results/shapes#c",
            "no scenario fits \"results/shapes#c\"; did you mean results/shapes#a?",
        ),
        (
            "nowhere-near-anything",
            "no scenario fits \"nowhere-near-anything\"; `dsh-conform list scenarios` shows them all",
        ),
    ] {
        assert_eq!(selected(&[filter]), Err(said.to_owned()));
    }
    // One of several that selects nothing is an error too: it is a slip of the pen.
    assert!(selected(&["cancel/", "nowhere*"]).is_err());
    let malformed = selected(&["cancel/[a"]).expect_err("the bracket is open");
    assert!(
        malformed.starts_with("\"cancel/[a\" is no pattern: "),
        "{malformed}"
    );
}

#[test]
fn two_files_of_one_id_and_other_names_are_told() {
    let suite = suite(&[
        ("a/b.yaml", PLAIN),
        ("a/b.yaml", PLAIN),
        ("a/c.yml", PLAIN),
        ("a/notes.txt", "?"),
        ("a/d.yaml", "title: 1\n"),
    ]);
    let said: Vec<String> = suite.errors().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "suite/a/b.yaml:1:1: there are two scenario files `a/b`",
            "suite/a/c.yml:1:1: name it a/c.yaml, as all others are",
            "suite/a/d.yaml:1:1: `clauses` is missing",
            "suite/a/d.yaml:1:1: `profile` is missing",
            "suite/a/d.yaml:1:8: invalid type: integer `1`, expected a string; put it in quotes",
        ]
    );
    assert_eq!(suite.cases().len(), 1);
    assert_eq!(suite.files(), ["a/b", "a/d"]);
}

#[test]
fn a_suite_is_read_from_a_folder_and_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let below = folder.path().join("area");
    fs::create_dir(&below).unwrap();
    fs::write(below.join("one.yaml"), MATRIX).unwrap();
    fs::write(
        below.join("one#a.snap"),
        "---\nsource: x\n---\n── t\ntext\n──\n",
    )
    .unwrap();
    fs::write(below.join("one-more.snap"), "not of this file").unwrap();
    fs::write(below.join("two.yaml"), PLAIN).unwrap();
    fs::write(below.join("README.md"), "no scenario").unwrap();
    let whole = Suite::read(folder.path()).unwrap();
    assert_eq!(whole.files(), ["area/one", "area/two"]);
    assert_eq!(whole.cases().len(), 3);
    assert_eq!(whole.snapshot("area/one#a"), Some("── t\ntext\n──"));
    assert_eq!(whole.snapshot("area/one#b"), None);
    let one = Suite::read(&below.join("one.yaml")).unwrap();
    assert_eq!(one.cases()[1].id, "one#b");
    assert_eq!(one.snapshots().collect::<Vec<_>>(), ["one#a"]);
    let of_folder = Suite::read_file_of(folder.path(), "area/one").unwrap();
    assert_eq!(of_folder.cases(), &whole.cases()[..2]);
    assert_eq!(
        of_folder.snapshot("area/one#a"),
        whole.snapshot("area/one#a")
    );
}

#[test]
fn what_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.yaml");
    let error = Suite::read(&missing).expect_err("it is not there");
    assert!(
        error
            .to_string()
            .starts_with(&missing.display().to_string()),
        "{error}"
    );
    let error = Suite::read(folder.path()).expect_err("it is empty");
    assert!(matches!(error, SuiteError::NoFiles { .. }), "{error}");
}

/// The suite of a development build is the folder's, that of an optimized one is built in; both are
/// whole.
#[test]
fn the_own_suite_is_the_one_in_the_sources() {
    let own = Suite::embedded().unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("suite");
    let read = Suite::read(&folder).unwrap();
    assert!(own.files().len() >= 220, "{} files", own.files().len());
    assert_eq!(own.files(), read.files());
    let ids = |suite: &Suite| -> Vec<String> {
        suite.cases().iter().map(|case| case.id.clone()).collect()
    };
    assert_eq!(ids(&own), ids(&read));
    assert!(own.snapshots().eq(read.snapshots()));
}

#[test]
fn parts_are_disjoint_whole_and_the_same_for_ever() {
    let shard = |text: &str| text.parse::<Shard>().unwrap();
    let ids: Vec<String> = (0..2000).map(|at| format!("area/case-{at}#x")).collect();
    for of in [1, 2, 3, 4, 7] {
        let parts: Vec<Shard> = (1..=of).map(|at| shard(&format!("{at}/{of}"))).collect();
        let mut sizes: BTreeMap<usize, usize> = BTreeMap::new();
        for id in &ids {
            let holders: Vec<usize> = (0..of).filter(|at| parts[*at].has(id)).collect();
            let [holder] = holders.as_slice() else {
                panic!("{id} is in {holders:?}")
            };
            *sizes.entry(*holder).or_default() += 1;
        }
        let fair = ids.len() / of;
        assert!(
            sizes.len() == of && sizes.values().all(|size| size.abs_diff(fair) < fair / 4),
            "{sizes:?}"
        );
    }
    // Another machine, another version: the same part.
    for (id, part) in [
        ("cancel/ignored", "95/100"),
        ("results/shapes#link-hover", "87/100"),
        ("", "1/100"),
    ] {
        assert!(shard(part).has(id), "{id}");
    }
    for text in [
        "5/4", "0/4", "1/0", "0/0", "1", "1/", "/4", "a/b", "+1/4", "1/4/2", " 1/4", "-1/4",
    ] {
        let error = text.parse::<Shard>().expect_err(text);
        assert_eq!(
            error.to_string(),
            format!("{text:?} is no shard: write I/N with I from 1 to N, for instance 2/4")
        );
    }
    assert_eq!(shard("2/4").to_string(), "2/4");
}
