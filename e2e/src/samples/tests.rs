use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{Answer, DataError, Operation, Part, Position, Sample, builtin, sample};

const DATA: &str = r"
language: Foo
summary: A sample
questions:
  - operation: goToDefinition
    at: main.foo@use
    answer: {locations: {all: [lib.foo@def]}}
reopened:
  - file: main.foo
    text: main.foo
    operation: goToDefinition
    at: main.foo@use
    answer: {locations: {all: [main.foo@new, lib.foo@def]}}
";

fn parse(data: &str, main: &str) -> Result<Sample, DataError> {
    Sample::parse(
        "foo",
        [
            ("sample.yaml", data),
            ("workspace/main.foo", main),
            ("workspace/lib.foo", "def ⟦def⟧x\n"),
            ("reopened/main.foo", "\n⟦new⟧y\n⟦use⟧x"),
        ],
    )
}

#[track_caller]
fn rejects(from: &str, to: &str) -> String {
    assert!(DATA.contains(from), "{from} is not in the data");
    parse(&DATA.replacen(from, to, 1), "use ⟦use⟧x\n")
        .unwrap_err()
        .to_string()
}

/// The files below `folder`, relative and with `/`.
fn files(folder: &Path) -> BTreeSet<String> {
    fn walk(root: &Path, folder: PathBuf, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(root, path, found);
            } else {
                let relative = path.strip_prefix(root).unwrap().to_str().unwrap();
                found.insert(relative.replace('\\', "/"));
            }
        }
    }
    let mut found = BTreeSet::new();
    walk(folder, folder.to_owned(), &mut found);
    found
}

#[test]
fn every_folder_is_a_sample_that_reads() {
    let on_disk = files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("samples"));
    let folders = on_disk.iter().filter_map(|file| file.split_once('/'));
    let folders: BTreeSet<_> = folders.map(|(folder, _)| folder.to_owned()).collect();
    let known: Vec<Sample> = super::own().unwrap();
    let known: BTreeSet<_> = known.into_iter().map(|sample| sample.name).collect();
    assert_eq!(known, folders);
}

#[test]
fn every_sample_has_several_files_and_is_asked_across_them_where_names_reach_that_far() {
    for sample in builtin() {
        let name = &sample.name;
        assert!(sample.files.len() >= 3, "{name}");
        assert!(!sample.reopened.is_empty(), "{name}");
        let across = |operation: Operation, at_least: usize| {
            sample
                .questions
                .iter()
                .filter(move |asked| asked.operation == operation)
                .any(|asked| {
                    let Answer::Locations(expected) = &asked.answer else {
                        return false;
                    };
                    let elsewhere = expected.all.iter().any(|place| place.file != asked.at.file);
                    expected.all.len() >= at_least
                        && (elsewhere || sample.within_one_file.is_some())
                })
        };
        for operation in Operation::ALL {
            let asked = match operation {
                Operation::GoToDefinition => across(operation, 1),
                Operation::FindReferences => across(operation, 3),
                _ => continue,
            };
            let asks = sample
                .questions
                .iter()
                .any(|asked| asked.operation == operation);
            assert_eq!(asked, asks, "{name}: {operation}");
        }
    }
}

/// The four operations, columns, paths, changes on disk and line ends: each is there, or the reason
/// why it cannot be, and never both.
#[test]
fn every_sample_has_each_part_or_gives_the_reason() {
    for sample in builtin() {
        let name = &sample.name;
        for part in Part::ALL {
            let given = sample.without.get(&part);
            assert!(
                !sample.has(part) || given.is_none(),
                "{name}: {part} is there, and a reason why not"
            );
            let reason = sample.reason(part).unwrap_or_default();
            assert!(
                sample.has(part) || reason.trim().len() > 20,
                "{name}: {part} is missing, without a reason"
            );
        }
    }
}

#[test]
fn a_part_that_is_missing_has_the_reason_that_is_given() {
    let bare = parse(DATA, "use ⟦use⟧x\n").unwrap();
    assert!(bare.has(Part::GoToDefinition));
    for part in [
        Part::Hover,
        Part::Columns,
        Part::Paths,
        Part::Changed,
        Part::Crlf,
    ] {
        assert!(!bare.has(part), "{part}");
        assert_eq!(bare.reason(part), None, "{part}");
    }
    let given = "crlf: [main.foo]\nwithinOneFile: alone\nwithout: {columns: none, changed: still}";
    let told = parse(&format!("{DATA}{given}"), "use ⟦use⟧x\n").unwrap();
    assert!(told.has(Part::Crlf));
    assert_eq!(told.reason(Part::Crlf), None);
    assert_eq!(told.reason(Part::Columns), Some("none"));
    assert_eq!(told.reason(Part::Changed), Some("still"));
    assert_eq!(told.reason(Part::Paths), None);
    let within = parse(&format!("{DATA}withinOneFile: alone"), "use ⟦use⟧x\n").unwrap();
    assert_eq!(within.reason(Part::Changed), Some("alone"));
    assert!(rejects("summary:", "without: {column: x}\nsummary:").contains("did you mean"));
}

/// A question behind characters outside the basic plane stands behind as many as the name is long: a
/// server that counts code points then looks behind the name, and not at another letter of it. A
/// path with a space and letters outside ASCII has them, at the question or at the answer.
#[test]
fn columns_and_paths_are_what_they_are_named() {
    for sample in builtin() {
        for question in &sample.columns {
            let file = sample.file(&question.at.file).unwrap();
            let at = question.at.position;
            let line = file.text.lines().nth(at.line as usize).unwrap();
            let mut column = 0;
            let before = line.chars().take_while(|c| {
                column += c.len_utf16();
                column <= at.character as usize
            });
            let astral = before.filter(|c| c.len_utf16() == 2).count();
            let name = name_at(&file.text, at);
            assert!(
                astral > 0 && astral >= name.chars().count(),
                "{}: {}: {astral} characters outside the basic plane before \"{name}\"",
                sample.name,
                question.at
            );
        }
        for question in &sample.paths {
            let odd = |file: &str| file.contains(' ') && !file.is_ascii();
            let answered = match &question.answer {
                Answer::Locations(expected) => expected.all.iter().any(|place| odd(&place.file)),
                Answer::Hover(_) => false,
            };
            assert!(
                odd(&question.at.file) || answered,
                "{}: {}",
                sample.name,
                question.at
            );
        }
    }
}

/// Every marked name of a built-in sample starts a word, or the sign a language writes in front of
/// one: a marker that slipped would not.
#[test]
fn every_marker_stands_before_a_name() {
    for sample in builtin() {
        for file in &sample.files {
            for (marker, at) in &file.markers {
                let line = file.text.lines().nth(at.line as usize).unwrap();
                let units: Vec<u16> = line.encode_utf16().skip(at.character as usize).collect();
                let rest = String::from_utf16(&units).unwrap();
                assert!(
                    rest.trim_start_matches(['$', '-', '@', '%', '#'])
                        .starts_with(char::is_alphabetic),
                    "{}/{}@{marker}",
                    sample.name,
                    file.path
                );
            }
        }
    }
}

#[test]
fn every_marker_is_asked_about_or_part_of_an_answer() {
    for sample in builtin() {
        let reopened = sample.reopened.iter().map(|reopened| &reopened.question);
        let changed = sample.changed.iter().map(|changed| &changed.question);
        let questions = reopened
            .chain(changed)
            .chain(&sample.columns)
            .chain(&sample.paths);
        let used: BTreeSet<_> = sample
            .questions
            .iter()
            .chain(questions)
            .flat_map(|question| {
                let places = match &question.answer {
                    Answer::Locations(expected) => [&expected.all[..], &expected.may[..]],
                    Answer::Hover(_) => [&[][..], &[][..]],
                };
                places.into_iter().flatten().chain([&question.at])
            })
            .map(|place| (place.file.as_str(), place.marker.as_str()))
            .collect();
        for file in &sample.files {
            for marker in file.markers.keys() {
                let is_used = used.contains(&(file.path.as_str(), marker.as_str()));
                assert!(is_used, "{}/{}@{marker}", sample.name, file.path);
            }
        }
    }
}

/// QUA-5: only the new text answers the reopened question, since the old one does not have the name
/// that is asked about.
#[test]
fn the_old_text_does_not_answer_a_reopened_question() {
    for sample in builtin() {
        for reopened in &sample.reopened {
            let old = sample.file(&reopened.file).unwrap();
            let question = &reopened.question;
            let name = name_at(&reopened.text, question.at.position);
            assert!(!name.is_empty(), "{}: {}", sample.name, question.at);
            assert!(!old.text.contains(&name), "{}: {name}", sample.name);
        }
    }
}

/// The name that stands at `at`, with the sign in front of it.
fn name_at(text: &str, at: Position) -> String {
    let line = text.lines().nth(at.line as usize).unwrap();
    let units: Vec<u16> = line.encode_utf16().skip(at.character as usize).collect();
    let rest = String::from_utf16(&units).unwrap();
    let signs = rest.len()
        - rest
            .trim_start_matches(|c: char| !c.is_alphanumeric())
            .len();
    let name = rest[signs..]
        .chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_');
    rest[..signs].chars().chain(name).collect()
}

/// What is true once a file has changed on disk was not true before.
#[test]
fn the_old_text_does_not_answer_a_question_about_a_change() {
    for sample in builtin() {
        for changed in &sample.changed {
            let question = &changed.question;
            let before = sample.questions.iter().find(|asked| {
                asked.operation == question.operation && asked.at.marker == question.at.marker
            });
            let name = &sample.name;
            let before =
                before.unwrap_or_else(|| panic!("{name}: {} is asked before", question.at));
            assert_ne!(before.answer, question.answer, "{name}: {}", question.at);
        }
    }
}

#[test]
fn markers_of_the_reopened_text_are_those_of_the_new_text() {
    let sample = parse(DATA, "use ⟦use⟧x\n").unwrap();
    let at = |line, character| Position { line, character };
    assert_eq!(sample.questions[0].at.position, at(0, 4));
    let reopened = &sample.reopened[0];
    assert_eq!(reopened.text, "\ny\nx");
    assert_eq!(reopened.question.at.position, at(2, 0));
    let Answer::Locations(expected) = &reopened.question.answer else {
        panic!()
    };
    let places: Vec<_> = expected.all.iter().map(ToString::to_string).collect();
    assert_eq!(places, ["main.foo:2:1", "lib.foo:1:5"]);
}

#[test]
fn faults_of_a_sample_are_errors_that_name_the_file() {
    let faults = [
        (
            rejects("at: main.foo@use", "at: main.foo"),
            "\"main.foo\" is no place: write file@marker",
        ),
        (
            rejects("at: main.foo@use", "at: man.foo@use"),
            "did you mean \"main.foo\"?",
        ),
        (
            rejects("lib.foo@def", "lib.foo@deff"),
            "lib.foo has no marker \"deff\"; did you mean \"def\"?",
        ),
        (
            rejects("summary:", "sumary:"),
            "samples/foo/sample.yaml:3:1: unknown key \"sumary\"",
        ),
        (
            rejects("operation: goToDefinition", "operation: hover"),
            "a hover is answered by text",
        ),
        (
            rejects(
                "{locations: {all: [lib.foo@def]}}",
                "{hover: {contains: [x]}}",
            ),
            "goToDefinition is answered by places",
        ),
        (
            rejects("all: [lib.foo@def]", "all: []"),
            "goToDefinition is answered by places",
        ),
        (
            rejects("text: main.foo", "text: other.foo"),
            "there is no reopened/other.foo",
        ),
        (
            rejects("file: main.foo", "file: other.foo"),
            "there is no workspace/other.foo that could change",
        ),
        (
            rejects("file: main.foo", "file: lib.foo"),
            "is asked elsewhere",
        ),
        (
            rejects("goToDefinition", "gotoDefinition"),
            "did you mean \"goToDefinition\"?",
        ),
    ];
    for (message, expected) in faults {
        assert!(message.starts_with("samples/foo/sample.yaml"), "{message}");
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn faults_of_a_source_are_errors_with_their_place() {
    assert_eq!(
        parse(DATA, "1\nuse ⟦use x\n").unwrap_err().to_string(),
        "samples/foo/workspace/main.foo:2:5: \"⟦\" without \"⟧\" behind it on the same line"
    );
    let message = parse(DATA, "${workspace} ⟦use⟧x").unwrap_err().to_string();
    assert!(
        message.contains("has both ${workspace} and markers"),
        "{message}"
    );
    let stray = Sample::parse("foo", [("sample.yaml", DATA), ("notes.txt", "")]).unwrap_err();
    assert!(
        stray
            .to_string()
            .starts_with("samples/foo/notes.txt: belongs to nothing"),
        "{stray}"
    );
    let none = Sample::parse("foo", [("workspace/a.foo", "")]).unwrap_err();
    assert_eq!(none.to_string(), "samples/foo/sample.yaml: is missing");
}

#[test]
fn laying_out_writes_every_file_and_fills_in_the_folder() {
    let folder = tempfile::Builder::new()
        .prefix("a \"b\" c")
        .tempdir()
        .unwrap();
    let root = folder.path().canonicalize().unwrap();
    let sample = sample("cpp").unwrap();
    let laid_out = sample.lay_out(&root).unwrap();
    let paths: BTreeSet<_> = sample.files.iter().map(|file| file.path.clone()).collect();
    assert_eq!(files(&root), paths);
    let database = std::fs::read_to_string(laid_out.path("compile_commands.json")).unwrap();
    let database: serde_json::Value = serde_json::from_str(&database).unwrap();
    assert_eq!(database[0]["directory"], root.to_str().unwrap());
    let main = std::fs::read_to_string(laid_out.path("main.cpp")).unwrap();
    assert!(!main.contains(['⟦', '⟧']));
}

#[test]
fn reopening_writes_the_new_text_and_restoring_the_old_one() {
    let folder = tempfile::tempdir().unwrap();
    let sample = sample("bash").unwrap();
    let laid_out = sample.lay_out(folder.path()).unwrap();
    let main = || std::fs::read_to_string(laid_out.path("main.sh")).unwrap();
    let before = main();
    laid_out.write_reopened(&sample.reopened[0]).unwrap();
    assert_eq!(main(), sample.reopened[0].text);
    laid_out.restore().unwrap();
    assert_eq!(main(), before);
}

#[test]
fn uris_in_any_spelling_are_files_of_the_workspace() {
    let folder = tempfile::Builder::new().prefix("a b[é").tempdir().unwrap();
    let laid_out = sample("bash").unwrap().lay_out(folder.path()).unwrap();
    let uri = url::Url::from_file_path(laid_out.path("lib/area.sh"))
        .unwrap()
        .to_string();
    let lib = Some("lib/area.sh".to_owned());
    assert_eq!(laid_out.relative(&uri), lib);
    assert_eq!(laid_out.relative(&uri.replace('[', "%5B")), lib);
    assert_eq!(laid_out.relative(&uri.replace("%C3%A9", "é")), lib);
    assert_eq!(laid_out.relative(&uri.replace("%C3%A9", "%c3%a9")), lib);
    assert_eq!(laid_out.relative("file:///elsewhere/area.sh"), None);
    assert_eq!(laid_out.relative("untitled:1"), None);
}

#[test]
fn a_folder_that_is_a_file_is_an_error_that_names_it() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = sample("bash")
        .unwrap()
        .lay_out(file.path())
        .unwrap_err()
        .to_string();
    assert!(error.contains(file.path().to_str().unwrap()), "{error}");
}

#[test]
fn the_committed_schema_is_current() {
    let current = include_str!("../../samples/schema.json") == format!("{:#}\n", super::schema());
    assert!(
        current,
        "write it again: cargo run -p dsh-e2e --example schemas sample > e2e/samples/schema.json"
    );
}
