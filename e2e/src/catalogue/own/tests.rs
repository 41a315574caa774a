use std::path::Path;

use super::super::{Catalogue, RecipeKind};
use super::OwnFile;

const ENTRY: &str = "\
name: foo-server
launch: {command: foo-server, args: [--stdio]}
extensions: {.foo: foo}
";

fn file(origin: &str, text: &str) -> Result<OwnFile, String> {
    OwnFile::parse(origin, Path::new("/own"), text).map_err(|error| error.to_string())
}

fn layered(layers: &[&[(&str, &str)]]) -> Result<Catalogue, String> {
    let layers: Result<Vec<Vec<OwnFile>>, String> = layers
        .iter()
        .map(|layer| layer.iter().map(|(name, text)| file(name, text)).collect())
        .collect();
    let merged = Catalogue::builtin().with(&layers?);
    merged.map_err(|error| error.to_string())
}

fn read(origin: &str, text: &str) -> Result<Catalogue, String> {
    layered(&[&[(origin, text)]])
}

fn opened(path: &Path) -> std::io::Result<Box<dyn std::io::Read>> {
    Ok(Box::new(std::fs::File::open(path)?))
}

#[track_caller]
fn refused(origin: &str, text: &str) -> String {
    read(origin, text).unwrap_err()
}

#[test]
fn an_entry_needs_a_name_a_command_and_an_extension() {
    let catalogue = read("own.yaml", ENTRY).unwrap();
    let entry = catalogue.entry("foo-server").unwrap();
    assert_eq!(entry.language, "foo-server");
    assert_eq!(entry.version.args, ["--version"]);
    assert_eq!(entry.recipes[0].kind(), RecipeKind::Path);
    assert!(catalogue.sample_of(entry).is_none());
    assert!(catalogue.is_own("foo-server") && !catalogue.is_own("pyright"));
    let built_in = Catalogue::builtin().entries().len();
    assert_eq!(catalogue.entries().len(), built_in + 1);
}

#[test]
fn toml_and_yaml_say_the_same() {
    let toml = "[servers.foo-server]\nlaunch = {command = 'foo-server', args = ['--stdio']}\n\
                extensions = {'.foo' = 'foo'}\n";
    let toml = read("dsh-conform.toml", toml).unwrap();
    let yaml = read("own.yaml", ENTRY).unwrap();
    assert_eq!(toml.entry("foo-server"), yaml.entry("foo-server"));
    assert!(read("dsh-conform.toml", "").is_ok());
}

#[test]
fn what_is_extended_is_kept_but_for_what_is_said() {
    let text = "[servers.pyright]\nextends = 'pyright'\nmemoryMb = 900\n\
                [servers.strict]\nextends = 'pyright'\nlanguage = 'Strict Python'\n";
    let catalogue = read("dsh-conform.toml", text).unwrap();
    let built_in = Catalogue::builtin().entry("pyright").unwrap();
    let own = catalogue.entry("pyright").unwrap();
    assert_eq!(
        (own.memory_mb, &own.recipes),
        (Some(900), &built_in.recipes)
    );
    let strict = catalogue.entry("strict").unwrap();
    assert_eq!(
        (&*strict.language, strict.memory_mb),
        ("Strict Python", Some(900))
    );
    assert_eq!(catalogue.sample_of(strict).unwrap().name, "python");
}

#[test]
fn a_later_layer_counts_more_and_one_layer_has_a_name_once() {
    let other = ENTRY.replace("[--stdio]", "[--other]");
    let catalogue = layered(&[&[("a.yaml", ENTRY)], &[("b.yaml", &other)]]).unwrap();
    assert_eq!(
        catalogue.entry("foo-server").unwrap().launch.args,
        ["--other"]
    );
    assert_eq!(
        layered(&[&[("a.yaml", ENTRY), ("b.yaml", &other)]]).unwrap_err(),
        "b.yaml:1:7: a server named \"foo-server\" is at a.yaml:1:7 already; rename or remove one"
    );
}

#[test]
fn paths_are_meant_from_the_folder_of_the_file() {
    let text = ENTRY.replace("command: foo-server", "command: bin/foo");
    let catalogue = read("own.yaml", &text).unwrap();
    assert_eq!(
        catalogue.entry("foo-server").unwrap().launch.command,
        "/own/bin/foo"
    );
}

#[test]
fn every_fault_is_told_with_its_place_and_the_way_out() {
    let with = |more: &str| refused("own.yaml", &format!("{ENTRY}{more}\n"));
    for (said, expected) in [
        (
            with("sumary: x"),
            "own.yaml:4:1: unknown key \"sumary\"; did you mean \"summary\"?",
        ),
        (
            with("recipes: [{kind: npn, package: x, version: 1.2.3, node: 18}]"),
            "own.yaml:4:18: unknown value \"npn\"; did you mean \"npm\"?",
        ),
        (
            with("recipes: [{kind: npm, package: x, version: latest, node: 18}]"),
            "own.yaml:4:44: recipes: pin x to one exact version, not \"latest\"; 1.2.3 for instance",
        ),
        (
            with("recipes: [{kind: npm, package: x, version: 1.2.3}]"),
            "own.yaml:4:11: the key \"node\" is missing",
        ),
        (
            with("sample: pyton"),
            "own.yaml:4:9: sample: there is no \"pyton\"; did you mean \"python\"?",
        ),
        (
            with("sample: python"),
            "own.yaml:4:9: sample: \"python\" asks about ",
        ),
        (
            with("extends: pyrihgt"),
            "own.yaml:4:10: extends: no server named \"pyrihgt\"; did you mean \"pyright\"?",
        ),
        (
            with("memoryMb: 0"),
            "own.yaml:4:11: memoryMb: give 1 to 1048576 MiB",
        ),
        (with("memoryMb: much"), "own.yaml:4:11: memoryMb: "),
        (
            refused("own.yaml", "launch: {command: x}\n"),
            "own.yaml:1:1: the key \"name\" is missing",
        ),
        (
            refused("own.yaml", "name: x\nextensions: {.x: x}\n"),
            "own.yaml:1:1: the key \"launch\" is missing",
        ),
        (
            refused("own.yaml", &ENTRY.replace("foo-server\n", "Foo\n")),
            "own.yaml:1:7: name: use lowercase letters",
        ),
        (
            refused("own.yaml", &ENTRY.replace(".foo:", "foo:")),
            "own.yaml:3:19: extensions: \"foo\" is no extension",
        ),
        (
            refused("own.yaml", "- 1\n"),
            "own.yaml:1:3: an entry has keys",
        ),
        (refused("own.yaml", "a: b: c\n"), "own.yaml:1:"),
        (
            refused("a.toml", "[servers.x]\nlaunch = 1\n"),
            "a.toml:2:10: launch: ",
        ),
        (
            refused("a.toml", "[server.x]\n"),
            "a.toml:1:2: unknown key \"server\"; servers stand in [servers.NAME]",
        ),
        (
            refused("a.toml", "[servers.x]\nname = 'x'\n"),
            "a.toml:2:1: the name of this server is its table's, \"x\"",
        ),
        (refused("a.toml", "[servers.x\n"), "a.toml:1:"),
    ] {
        assert!(said.starts_with(expected), "{said}");
    }
}

#[test]
fn a_circle_is_told_with_all_of_it() {
    let text = "[servers.a]\nextends = 'b'\n[servers.b]\nextends = 'c'\n\
                [servers.c]\nextends = 'b'\n";
    assert_eq!(
        refused("a.toml", text),
        "a.toml:6:11: extends: this goes round in a circle, a → b → c → b; take it out of one of \
         them"
    );
}

#[test]
fn a_folder_gives_its_yaml_files_and_an_own_sample_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/fake");
    let text = ENTRY.replace(".foo: foo", ".fake: fake");
    let text = format!("{text}sample: {}\n", sample.display());
    std::fs::write(folder.path().join("foo.yaml"), text).unwrap();
    std::fs::write(folder.path().join("notes.txt"), "no entry").unwrap();
    let files = OwnFile::read(folder.path(), "own", &opened).unwrap();
    let catalogue = Catalogue::builtin().with(&[files]).unwrap();
    let entry = catalogue.entry("foo-server").unwrap();
    assert_eq!(catalogue.sample_of(entry).unwrap().name, "fake");
    std::fs::remove_file(folder.path().join("foo.yaml")).unwrap();
    let none = OwnFile::read(folder.path(), "own", &opened)
        .unwrap_err()
        .to_string();
    assert!(
        none.starts_with("own: the folder has no YAML file"),
        "{none}"
    );
    let gone = OwnFile::read(Path::new("/nowhere.yaml"), "nowhere.yaml", &opened).unwrap_err();
    assert!(gone.to_string().contains("servers add"), "{gone}");
}
