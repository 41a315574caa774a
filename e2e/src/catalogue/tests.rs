use std::collections::BTreeSet;
use std::path::Path;

use super::{Catalogue, DataError, Entry, Platform, RecipeKind};

const ENTRY: &str = r"
name: foo-server
language: Foo
summary: A server
launch: {command: foo-server}
version: {args: [--version]}
extensions: {.foo: foo}
sample: foo
recipes:
  - {kind: npm, package: foo-server, version: 1.2.3, node: 18, with: {bar: 4.5.6}}
";

fn parse(text: &str) -> Result<Entry, DataError> {
    Entry::parse("foo-server.yaml", text)
}

#[track_caller]
fn rejects(from: &str, to: &str) -> String {
    assert!(ENTRY.contains(from), "{from} is not in the entry");
    parse(&ENTRY.replacen(from, to, 1)).unwrap_err().to_string()
}

#[test]
fn every_file_of_the_folder_is_an_entry() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("servers");
    let files: BTreeSet<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "schema.json")
        .collect();
    let known = Catalogue::own().unwrap();
    let names = known.entries().iter();
    let names: BTreeSet<_> = names.map(|entry| format!("{}.yaml", entry.name)).collect();
    assert_eq!(names, files);
}

#[test]
fn every_entry_has_its_sample_and_a_recipe_on_every_platform() {
    for entry in Catalogue::builtin().entries() {
        assert!(
            crate::samples::sample(&entry.sample).is_some(),
            "{}",
            entry.name
        );
        for platform in [Platform::Linux, Platform::Macos, Platform::Windows] {
            assert!(
                entry.recipes_on(platform).next().is_some(),
                "{} {platform:?}",
                entry.name
            );
        }
    }
}

#[test]
fn every_entry_serves_the_files_its_sample_asks_about() {
    for entry in Catalogue::builtin().entries() {
        let sample = crate::samples::sample(&entry.sample).unwrap();
        for question in &sample.questions {
            let (_, extension) = question.at.file.rsplit_once('.').unwrap();
            assert!(
                entry.extensions.contains_key(&format!(".{extension}")),
                "{}",
                entry.name
            );
        }
    }
}

#[test]
fn entries_are_known_by_name_and_the_nearest_is_suggested() {
    let catalogue = Catalogue::builtin();
    assert_eq!(catalogue.entry("pyright").unwrap().language, "Python");
    assert_eq!(
        catalogue.entry("rust-analyser").unwrap_err().to_string(),
        "no server named \"rust-analyser\" in the catalogue; did you mean \"rust-analyzer\"?"
    );
    assert_eq!(
        catalogue.entry("zzz").unwrap_err().to_string(),
        "no server named \"zzz\" in the catalogue; see `dsh-conform list servers`"
    );
}

#[test]
fn an_entry_reads_with_its_pins() {
    let entry = parse(ENTRY).unwrap();
    assert_eq!(entry.recipes[0].kind(), RecipeKind::Npm);
    assert_eq!(
        entry.recipes[0].pins(),
        [("foo-server", "1.2.3"), ("bar", "4.5.6")]
    );
    assert!(entry.initialization_options.is_null());
}

#[test]
fn recipes_of_another_platform_are_left_out() {
    let entry = parse(&format!(
        "{ENTRY}  - {{kind: system-package, platforms: [linux], apt: [foo]}}"
    ));
    let entry = entry.unwrap();
    assert_eq!(entry.recipes_on(Platform::Linux).count(), 2);
    assert_eq!(entry.recipes_on(Platform::Macos).count(), 1);
}

#[test]
fn unknown_keys_and_kinds_are_named_with_their_place() {
    assert_eq!(
        rejects("summary:", "sumary:"),
        "foo-server.yaml:4:1: unknown key \"sumary\"; did you mean \"summary\"?"
    );
    assert_eq!(
        rejects("{args: [--version]}", "{argss: [--version]}"),
        "foo-server.yaml:6:11: unknown key \"argss\"; did you mean \"args\"?"
    );
    let kind = rejects("kind: npm", "kind: npn");
    assert!(kind.starts_with("foo-server.yaml:"), "{kind}");
    assert!(
        kind.ends_with("unknown value \"npn\"; did you mean \"npm\"?"),
        "{kind}"
    );
    let key = rejects("node: 18", "nodes: 18");
    assert!(
        key.ends_with("unknown key \"nodes\"; did you mean \"node\"?"),
        "{key}"
    );
}

#[test]
fn faults_of_an_entry_are_errors_that_say_what_to_write() {
    let faults = [
        (
            rejects("name: foo-server", "name: foo"),
            "so the file is foo.yaml",
        ),
        (
            rejects("{command: foo-server}", "{command: bin/foo}"),
            "launch.command: give the bare name",
        ),
        (
            rejects("{.foo: foo}", "{foo: foo}"),
            "\"foo\" is no extension",
        ),
        (
            rejects("{.foo: foo}", "{.d.foo: foo}"),
            "\".d.foo\" is no extension",
        ),
        (
            rejects("{.foo: foo}", "{.FOO: foo}"),
            "\".FOO\" is no extension",
        ),
        (
            rejects("{.foo: foo}", "{.foo: ' '}"),
            ".foo has no language id",
        ),
        (
            rejects("{.foo: foo}", "{}"),
            "extensions: name at least one",
        ),
        (
            rejects("sample: foo", "shutdownTimeoutMs: 60001\nsample: foo"),
            "shutdownTimeoutMs: give 1 to 60000 milliseconds",
        ),
        (
            rejects("version: 1.2.3", "version: ^1.2.3"),
            "pin foo-server to one exact version",
        ),
        (
            rejects("bar: 4.5.6", "bar: latest"),
            "pin bar to one exact version",
        ),
    ];
    for (message, expected) in faults {
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn a_server_that_is_there_twice_is_an_error() {
    let twice = [("foo-server.yaml", ENTRY), ("more/foo-server.yaml", ENTRY)];
    assert_eq!(
        Catalogue::parse(twice).unwrap_err().to_string(),
        "more/foo-server.yaml: a server named \"foo-server\" is there already"
    );
}

#[test]
fn the_committed_schema_is_current() {
    let current = include_str!("../../servers/schema.json") == format!("{:#}\n", super::schema());
    assert!(
        current,
        "write it again: cargo run -p dsh-e2e --example schemas catalogue > e2e/servers/schema.json"
    );
}
