//! Rules about the sources that no compiler knows: who may depend on whom, what may be named where,
//! that documents tell the truth, and that each clause has a witness.
//!
//! Everything is read from the tree as it lies there; nothing is built and nothing is fetched.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use dsh_scenarios::{Clauses, Evidence};
use serde_json::Value;

/// Each crate of ours, and the crates of ours that it may depend on, for tests too.
const MAY_DEPEND_ON: [(&str, &[&str]); 21] = [
    ("dsh-kernel", &[]),
    ("dsh-fs", &["dsh-kernel"]),
    ("dsh-subprocess", &["dsh-kernel"]),
    ("dsh-session", &["dsh-kernel"]),
    ("dsh-tools", &["dsh-kernel", "dsh-session"]),
    ("dsh-agent", &["dsh-kernel", "dsh-session", "dsh-tools"]),
    ("dsh-lsp", &["dsh-kernel"]),
    (
        "dsh-lsp-stdio",
        &["dsh-kernel", "dsh-lsp", "dsh-fs", "dsh-subprocess"],
    ),
    (
        "dsh-tool-lsp",
        &[
            "dsh-kernel",
            "dsh-lsp",
            "dsh-tools",
            "dsh-agent",
            "dsh-session",
        ],
    ),
    (
        "dsh-tool-fs",
        &["dsh-kernel", "dsh-fs", "dsh-tools", "dsh-session"],
    ),
    (
        "dsh-workspace-context",
        &[
            "dsh-kernel",
            "dsh-fs",
            "dsh-tools",
            "dsh-session",
            "dsh-agent",
        ],
    ),
    (
        "dsh-model-openai",
        &["dsh-kernel", "dsh-session", "dsh-agent"],
    ),
    (
        "dsh-code-mode",
        &["dsh-kernel", "dsh-session", "dsh-tools", "dsh-agent"],
    ),
    ("dsh-harness", HARNESS),
    ("dsh-profiles", &["dsh-harness"]),
    ("dsh-transcript", &[]),
    ("dsh-fake-lsp", &["dsh-transcript"]),
    ("dsh-reports", &["dsh-transcript"]),
    (
        "dsh-scenarios",
        &[
            "dsh-harness",
            "dsh-fake-lsp",
            "dsh-reports",
            "dsh-transcript",
        ],
    ),
    (
        "dsh-e2e",
        &[
            "dsh-scenarios",
            "dsh-harness",
            "dsh-fake-lsp",
            "dsh-reports",
            "dsh-transcript",
        ],
    ),
    (
        "dsh-conform",
        &[
            "dsh-e2e",
            "dsh-scenarios",
            "dsh-harness",
            "dsh-profiles",
            "dsh-model-openai",
            "dsh-fake-lsp",
            "dsh-reports",
            "dsh-transcript",
        ],
    ),
];

/// The crates under `harness/`, but for the one that mounts them all.
const HARNESS: &[&str] = &[
    "dsh-kernel",
    "dsh-fs",
    "dsh-subprocess",
    "dsh-session",
    "dsh-tools",
    "dsh-agent",
    "dsh-lsp",
    "dsh-lsp-stdio",
    "dsh-tool-lsp",
    "dsh-tool-fs",
    "dsh-workspace-context",
    "dsh-code-mode",
];

/// Language servers that people know, besides those of the catalogue.
const LANGUAGE_SERVERS: [&str; 30] = [
    "basedpyright",
    "bash-language-server",
    "ccls",
    "clangd",
    "cquery",
    "elixir-ls",
    "gopls",
    "haskell-language-server",
    "intelephense",
    "jdtls",
    "jedi-language-server",
    "kotlin-language-server",
    "lua-language-server",
    "marksman",
    "omnisharp",
    "pylsp",
    "pyright",
    "python-lsp-server",
    "rust-analyzer",
    "solargraph",
    "sourcekit-lsp",
    "sumneko",
    "taplo",
    "terraform-ls",
    "texlab",
    "tsserver",
    "typescript-language-server",
    "vscode-json-language-server",
    "vtsls",
    "yaml-language-server",
];

/// Hosts of package registries. What installs from them goes through the package managers, which
/// know where to look and may have been told to look elsewhere.
const REGISTRY_HOSTS: [&str; 9] = [
    "crates.io",
    "docs.rs",
    "static.rust-lang.org",
    "npmjs.org",
    "npmjs.com",
    "pypi.org",
    "pythonhosted.org",
    "deb.debian.org",
    "proxy.golang.org",
];

/// The clauses that the project says are done: section, and up to which number.
const DONE: [(&str, u32); 18] = [
    ("SEAM", 14),
    ("CFG", 9),
    ("ENV", 7),
    ("HST", 9),
    ("INI", 9),
    ("OPN", 13),
    ("FRM", 10),
    ("NAV", 5),
    ("HOV", 5),
    ("SRQ", 7),
    ("ERR", 5),
    ("CAN", 8),
    ("CRS", 5),
    ("DIS", 6),
    ("TOOL", 13),
    ("RUN", 16),
    ("INS", 24),
    ("QUA", 19),
];

/// Clauses among these that nothing witnesses yet. An entry that has a witness fails the test.
const PENDING: [&str; 0] = [];

/// Modules that compute and do nothing else: they can be tested without a process and a clock.
const CORES: [&str; 69] = [
    "harness/kernel/src/plan",
    "harness/lsp/src/extension",
    "harness/profiles/src/acp/translate",
    "harness/profiles/src/profile",
    "harness/profiles/src/sdk/protocol",
    "harness/session/src/content",
    "harness/session/src/event",
    "harness/session/src/limit",
    "harness/session/src/log",
    "harness/session/src/order",
    "harness/session/src/request",
    "harness/session/src/view",
    "harness/session/src/store/decode",
    "harness/lsp-stdio/src/framing",
    "harness/lsp-stdio/src/machine",
    "harness/lsp-stdio/src/message",
    "harness/lsp-stdio/src/outgoing",
    "harness/lsp-stdio/src/translate",
    "harness/tool-fs/src/present",
    "harness/tool-fs/src/render",
    "harness/tool-fs/src/replace",
    "harness/tool-fs/src/window",
    "harness/tool-lsp/src/args",
    "harness/tool-lsp/src/present",
    "harness/tool-lsp/src/render",
    "harness/tool-lsp/src/uri",
    "harness/model-openai/src/assemble",
    "harness/model-openai/src/request",
    "harness/model-openai/src/sse",
    "harness/code-mode/src/names",
    "harness/code-mode/src/text",
    "harness/workspace-context/src/digest",
    "harness/workspace-context/src/escape",
    "harness/workspace-context/src/layout",
    "harness/workspace-context/src/reconcile",
    "harness/workspace-context/src/render",
    "harness/workspace-context/src/round",
    "harness/workspace-context/src/source",
    "harness/workspace-context/src/state",
    "harness/workspace-context/src/tracker",
    "fake-servers/src/engine",
    "fake-servers/src/script/check",
    "fake-servers/src/script/template",
    "reports/transcript/src/strict",
    "reports/transcript/src/view",
    "reports/render/src",
    "scenarios/src/clause",
    "scenarios/src/format",
    "scenarios/src/monitor",
    "scenarios/src/mutate/edit",
    "scenarios/src/mutate/form",
    "scenarios/src/mutate/wire",
    "scenarios/src/run/checks",
    "scenarios/src/run/fill",
    "scenarios/src/run/judge",
    "scenarios/src/run/outcome",
    "scenarios/src/run/place",
    "scenarios/src/run/redact",
    "scenarios/src/run/trace",
    "scenarios/src/suite/snapshots",
    "e2e/src/judge",
    "e2e/src/raw/dialogue",
    "e2e/src/raw/manner",
    "e2e/src/raw/output",
    "e2e/src/raw/persona",
    "e2e/src/sentence",
    "e2e/src/raw/signals",
    "e2e/src/raw/value",
    "e2e/src/raw/ways",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All files of the project: path relative to its root, with slashes, and text. Files that are no
/// text, of which fixtures have some, are left out.
fn files() -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(root().join(&folder)).expect("folders of the project are there");
        for entry in entries {
            let entry = entry.expect("folders of the project can be listed");
            let path = folder.join(entry.file_name());
            let name = path.to_string_lossy().replace('\\', "/");
            let kind = entry.file_type().expect("a listed file has a type");
            if kind.is_dir() {
                if !matches!(name.as_str(), ".git" | "target") {
                    folders.push(path);
                }
            } else if kind.is_file()
                && let Ok(text) = fs::read_to_string(entry.path())
            {
                files.insert(name, text);
            }
        }
    }
    files
}

fn has_extension(name: &str, extension: &str) -> bool {
    Path::new(name)
        .extension()
        .is_some_and(|own| own == extension)
}

/// Sources of ours: what a sample workspace holds is data.
fn rust_sources() -> BTreeMap<String, String> {
    let mut files = files();
    files.retain(|name, _| has_extension(name, "rs") && !name.starts_with("e2e/samples/"));
    assert!(files.len() > 20, "the sources were not found");
    files
}

/// One package of the workspace.
struct Package {
    name: String,
    manifest: PathBuf,
    /// Name and whether it is for tests only.
    dependencies: Vec<(String, bool)>,
}

fn packages() -> Vec<Package> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version=1"])
        .current_dir(root())
        .output()
        .expect("cargo runs this test");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    let text = |value: &Value| value.as_str().expect("it is a string").to_owned();
    let packages = metadata["packages"].as_array().expect("it is a list");
    packages
        .iter()
        .map(|package| Package {
            name: text(&package["name"]),
            manifest: text(&package["manifest_path"]).into(),
            dependencies: package["dependencies"]
                .as_array()
                .expect("it is a list")
                .iter()
                .map(|dependency| (text(&dependency["name"]), dependency["kind"] == "dev"))
                .collect(),
        })
        .collect()
}

fn is_ours(name: &str) -> bool {
    name.starts_with("dsh-")
}

#[track_caller]
fn none_left(rule: &str, offenders: &[String]) {
    assert!(
        offenders.is_empty(),
        "{rule}:\n  {}",
        offenders.join("\n  ")
    );
}

/// Every line that `bad` objects to, as `file:line: text`.
fn lines_where(files: &BTreeMap<String, String>, bad: impl Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for (name, text) in files {
        for (number, line) in text.lines().enumerate() {
            if bad(line) {
                found.push(format!("{name}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    found
}

#[test]
fn crates_depend_only_on_what_the_layout_allows() {
    let allowed = BTreeMap::from(MAY_DEPEND_ON);
    let mut offenders = Vec::new();
    for package in packages() {
        let Some(allowed) = allowed.get(package.name.as_str()) else {
            offenders.push(format!("{} has no place in the layout", package.name));
            continue;
        };
        for (dependency, dev) in &package.dependencies {
            // The root package's tests drive the crates of the harness one by one.
            let from_above = package.name == "dsh-conform" && *dev;
            let fine = allowed.contains(&dependency.as_str())
                || from_above && HARNESS.contains(&dependency.as_str());
            if is_ours(dependency) && !fine {
                offenders.push(format!("{} depends on {dependency}", package.name));
            }
        }
    }
    none_left("the layout allows none of these", &offenders);
}

/// SEAM-13: tool and host depend on the seam, the seam on neither, and neither on the other; for
/// tests too.
#[test]
fn tool_and_host_know_the_seam_and_not_each_other() {
    let packages = packages();
    let depends = |from: &str, on: &str| {
        let package = packages.iter().find(|package| package.name == from);
        let package = package.expect("it is in the workspace");
        package.dependencies.iter().any(|(name, _)| name == on)
    };
    for user in ["dsh-tool-lsp", "dsh-lsp-stdio"] {
        assert!(depends(user, "dsh-lsp"), "{user} uses the seam");
        assert!(!depends("dsh-lsp", user), "the seam does not know {user}");
    }
    assert!(!depends("dsh-tool-lsp", "dsh-lsp-stdio"));
    assert!(!depends("dsh-lsp-stdio", "dsh-tool-lsp"));
}

#[test]
fn the_instrument_shares_no_code_with_the_specimen() {
    let instruments = ["dsh-fake-lsp", "dsh-transcript", "dsh-reports"];
    let specimen: BTreeSet<&str> = HARNESS
        .iter()
        .copied()
        .chain(["dsh-harness", "dsh-profiles", "dsh-model-openai"])
        .collect();
    let mut offenders = Vec::new();
    for package in packages() {
        for (dependency, _) in &package.dependencies {
            let from_instrument = instruments.contains(&package.name.as_str());
            let from_specimen = specimen.contains(package.name.as_str());
            let to_specimen = specimen.contains(dependency.as_str());
            if from_instrument && to_specimen
                || from_specimen && is_ours(dependency) && !to_specimen
            {
                offenders.push(format!("{} depends on {dependency}", package.name));
            }
        }
    }
    none_left("fake, transcript and reports judge the harness", &offenders);
}

/// The suite judges the harness: it knows it where it mounts it, and nowhere else.
#[test]
fn the_suite_knows_the_specimen_only_where_it_is_mounted() {
    const MOUNTED: [&str; 2] = [
        "scenarios/src/subject/built_in",
        "scenarios/src/subject/in_process",
    ];
    let mut files = production_sources();
    files.retain(|name, _| {
        name.starts_with("scenarios/src/")
            && !MOUNTED.iter().any(|module| is_in_module(name, module))
    });
    let offenders = lines_where(&files, |line| {
        !line.trim_start().starts_with("//") && line.contains("dsh_harness")
    });
    none_left("ask through the subject protocol", &offenders);
}

/// The raw driver starts processes as the host does; what they say it reads and writes itself.
#[test]
fn the_raw_driver_speaks_without_the_host() {
    let mut files = production_sources();
    files.retain(|name, _| is_in_module(name, "e2e/src/raw"));
    assert!(files.len() > 10, "the raw driver is not there");
    let allowed = ["dsh_harness::kernel::", "dsh_harness::subprocess::"];
    let offenders = lines_where(&files, |line| {
        !line.trim_start().starts_with("//")
            && line.contains("dsh_harness")
            && !allowed.iter().any(|module| line.contains(module))
    });
    none_left(
        "frame, read and judge with code of the instrument",
        &offenders,
    );
}

/// SEAM-1: no type of LSP can appear on the seam or above it.
#[test]
fn only_the_host_knows_the_types_of_the_protocol() {
    let users: Vec<String> = packages()
        .into_iter()
        .filter(|package| {
            let mut dependencies = package.dependencies.iter();
            dependencies.any(|(name, _)| name.starts_with("lsp-types"))
        })
        .map(|package| package.name)
        .collect();
    assert_eq!(users, ["dsh-lsp-stdio"]);
}

/// HST-9: the host and the other plugins reach files and processes through the services alone.
#[test]
fn plugins_touch_files_and_processes_through_services() {
    let mut files = production_sources();
    files.retain(|name, _| {
        name.starts_with("harness/")
            // A session's own file, and a script in a model's place, are no files of the workspace:
            // no tool and no policy stands before them.
            && ![
                "harness/fs/",
                "harness/subprocess/",
                "harness/session/src/store",
                "harness/agent/src/scripted.rs",
            ]
                .iter()
                .any(|own| name.starts_with(own))
    });
    let offenders = lines_where(&files, |line| {
        [
            "std::fs",
            "tokio::fs",
            "std::process",
            "tokio::process",
            "std::net",
            "tokio::net",
        ]
        .iter()
        .any(|module| line.contains(module))
    });
    none_left("use FileSystem and Subprocess", &offenders);
}

/// HST-5: the host has no means to tell anybody that it read a file, and the file system has none
/// either: what they emit is nothing. It says what an observation is, for those who make them.
#[test]
fn reading_a_source_is_observed_by_nobody() {
    let mut files = production_sources();
    files.retain(|name, _| {
        ["harness/lsp-stdio/", "harness/fs/"]
            .iter()
            .any(|own| name.starts_with(own))
    });
    let definition = "    const NAME: &'static str = \"fs/observed\";";
    let offenders = lines_where(&files, |line| {
        !line.trim_start().starts_with("//")
            && line != definition
            && [".emit(", "EventBus", "fs/observed"]
                .iter()
                .any(|word| line.contains(word))
    });
    none_left("an observation is the read tool's to make", &offenders);
}

#[test]
fn cores_do_no_io_and_read_no_clock() {
    let mut files = production_sources();
    for core in CORES {
        assert!(
            files.keys().any(|name| is_in_module(name, core)),
            "{core} is not there"
        );
    }
    files.retain(|name, _| CORES.iter().any(|core| is_in_module(name, core)));
    let banned = [
        "async fn",
        "async move",
        "async {",
        "tokio::",
        "std::fs",
        "std::env",
        "std::net",
        "std::process",
        "std::thread",
        "Instant::now",
        "SystemTime",
    ];
    let offenders = lines_where(&files, |line| {
        !line.trim_start().starts_with("//") && banned.iter().any(|word| line.contains(word))
    });
    none_left(
        "hand in what they need, and do the rest outside",
        &offenders,
    );
}

fn is_in_module(file: &str, module: &str) -> bool {
    file.strip_prefix(module)
        .is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    let mut offenders = Vec::new();
    for package in packages() {
        let manifest = fs::read_to_string(&package.manifest).expect("cargo has read it");
        if !manifest.contains("[lints]\nworkspace = true\n") {
            offenders.push(package.name);
        }
    }
    none_left("add `[lints]` with `workspace = true`", &offenders);
}

/// CFG-9: nothing under `harness/` names a language server, be it one of the catalogue or another.
#[test]
fn the_harness_names_no_language_server() {
    let mut files = files();
    let catalogue: Vec<String> = files
        .keys()
        .filter_map(|name| name.strip_prefix("e2e/servers/")?.strip_suffix(".yaml"))
        .map(str::to_owned)
        .collect();
    assert!(catalogue.len() >= 5, "the catalogue was not found");
    files.retain(|name, _| name.starts_with("harness/"));
    let named = lines_where(&files, |line| {
        let line = line.to_lowercase();
        let known = LANGUAGE_SERVERS.iter().copied();
        known
            .chain(catalogue.iter().map(String::as_str))
            .any(|server| names(&line, server))
    });
    none_left("the catalogue of servers is data in e2e/", &named);
}

/// Whether `line` has `server` as a word of its own. Up to four letters are a word of programs too
/// (`ty`, `buf`): those count as a text of their own alone.
fn names(line: &str, server: &str) -> bool {
    if server.len() <= 4 {
        return line.contains(&format!("\"{server}\""));
    }
    let inside = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(server).any(|(at, _)| {
        !line[..at].ends_with(inside) && !line[at + server.len()..].starts_with(inside)
    })
}

#[test]
fn a_server_is_named_by_a_word_of_its_own() {
    assert!(names("run(\"pyrefly\")", "pyrefly") && names("// zuban does", "zuban"));
    assert!(names("command: \"ty\",", "ty") && !names("is_empty()", "ty"));
    assert!(!names("tombigbee", "tombi") && !names("let buf = 1;", "buf"));
}

#[test]
fn every_source_opens_with_what_it_is_for() {
    let offenders: Vec<String> = rust_sources()
        .into_iter()
        .filter(|(name, text)| !is_test_module(name) && !text.starts_with("//! "))
        .map(|(name, _)| name)
        .collect();
    none_left("begin each with a `//!` line", &offenders);
}

/// A module of tests, which is about what it stands beside; integration tests are no such thing.
fn is_test_module(name: &str) -> bool {
    match name.split_once("/src/") {
        Some((_, path)) => {
            path.ends_with("tests.rs") || path.split('/').any(|part| part == "tests")
        }
        None => name
            .rsplit_once("tests/")
            .is_some_and(|(_, path)| path.contains('/')),
    }
}

#[test]
fn unwrap_stays_in_tests() {
    let offenders = lines_where(&production_sources(), |line| {
        !line.trim_start().starts_with("//") && line.contains(".unwrap()")
    });
    none_left(
        "say with `expect` which invariant holds, or return an error",
        &offenders,
    );
}

/// What is built into programs: no tests, neither in files of their own nor at the end of others.
fn production_sources() -> BTreeMap<String, String> {
    let mut files = rust_sources();
    let for_tests = test_modules(&files);
    files.retain(|name, _| {
        name.contains("src/")
            && !is_test_module(name)
            && !for_tests.iter().any(|module| name.starts_with(module))
    });
    assert!(files.len() > 20, "the sources were not found");
    for text in files.values_mut() {
        if let Some(tests) = text.find("#[cfg(test)]\nmod tests {") {
            text.truncate(tests);
        }
    }
    files
}

/// Modules in files of their own that exist for tests only: what the names of their files begin
/// with.
fn test_modules(files: &BTreeMap<String, String>) -> Vec<String> {
    let mut modules = Vec::new();
    for (name, text) in files {
        let folder = match name.rsplit_once('/') {
            Some((folder, "lib.rs" | "main.rs" | "mod.rs")) => folder,
            _ => name.trim_end_matches(".rs"),
        };
        for declared in text.split("#[cfg(test)]\n").skip(1) {
            let line = declared.lines().next().unwrap_or_default();
            let line = line.rsplit_once("mod ").map_or("", |(_, rest)| rest);
            if let Some(module) = line.strip_suffix(';') {
                modules.push(format!("{folder}/{module}.rs"));
                modules.push(format!("{folder}/{module}/"));
            }
        }
    }
    modules
}

#[test]
fn no_test_is_switched_off() {
    let ignore = ["#[", "ignore"].concat();
    let offenders = lines_where(&rust_sources(), |line| {
        line.trim_start().starts_with(&ignore)
    });
    none_left("a test runs, or it is not there", &offenders);
}

#[test]
fn nothing_names_a_place_on_somebody_s_machine() {
    let mut files = files();
    files.remove("tests/tidy.rs");
    let here = root().to_string_lossy().into_owned();
    let offenders = lines_where(&files, |line| {
        line.contains("/root/") || line.contains("/tmp/target") || line.contains(&here)
    });
    none_left("paths of one machine mean nothing on another", &offenders);
}

#[test]
fn nothing_names_the_host_of_a_registry() {
    let mut files = files();
    files.remove("tests/tidy.rs");
    files.remove("Cargo.lock");
    let offenders = lines_where(&files, |line| {
        let line = line.to_lowercase();
        REGISTRY_HOSTS.iter().any(|host| line.contains(host))
    });
    none_left("package managers know their registries", &offenders);
}

/// The fenced lines of the project's documents that run this program: document and words.
fn documented_commands() -> Vec<(String, Vec<String>)> {
    let mut commands = Vec::new();
    for (name, text) in files() {
        if !has_extension(&name, "md") || name.starts_with("e2e/samples/") {
            continue;
        }
        let mut fenced = false;
        // A line that ends in a backslash goes on in the next one.
        let text = text.replace("\\\n", " ");
        for line in text.lines() {
            let code = line.trim();
            fenced ^= code.starts_with("```");
            let code = code.strip_prefix("$ ").unwrap_or(code);
            let arguments = code
                .strip_prefix("cargo run --release -- ")
                .or_else(|| code.strip_prefix("dsh-conform "));
            if let Some(arguments) = arguments.filter(|_| fenced) {
                // As a shell would: words in quotes are one, and a comment is none.
                let words = shlex::split(arguments).expect("its quotes are closed");
                commands.push((name.clone(), words));
            }
        }
    }
    commands
}

#[test]
fn documents_name_only_commands_that_exist() {
    let commands = documented_commands();
    assert!(
        commands.len() >= 5,
        "the commands of the README were not found"
    );
    let mut help_of: BTreeMap<Vec<String>, Option<String>> = BTreeMap::new();
    let mut offenders = Vec::new();
    for (document, words) in commands {
        let depth = if words.first().is_some_and(|word| word == "servers") {
            2
        } else {
            1
        };
        let command: Vec<String> = words.iter().take(depth).cloned().collect();
        let help = help_of
            .entry(command.clone())
            .or_insert_with(|| help(&command));
        let Some(help) = help else {
            offenders.push(format!("{document}: there is no `{}`", command.join(" ")));
            continue;
        };
        for flag in words.iter().filter(|word| word.starts_with("--")) {
            let flag = flag.split('=').next().unwrap_or(flag);
            let known = help
                .split(|character: char| character.is_whitespace() || ",=[]<>".contains(character))
                .any(|word| word == flag);
            if !known {
                offenders.push(format!("{document}: `{}` has no {flag}", command.join(" ")));
            }
        }
    }
    none_left("what a document shows can be typed", &offenders);
}

/// What `--help` of a command prints, if there is such a command.
fn help(command: &[String]) -> Option<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_dsh-conform"))
        .args(command)
        .arg("--help")
        .output()
        .expect("the program has been built for this test");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then_some(text)
}

#[test]
fn documents_name_only_files_that_exist() {
    let files = files();
    let folders: BTreeSet<&str> = files
        .keys()
        .filter_map(|name| Some(name.split_once('/')?.0))
        .collect();
    let mut offenders = Vec::new();
    for (name, text) in files.iter().filter(|(name, _)| has_extension(name, "md")) {
        for quoted in text.split('`').skip(1).step_by(2) {
            let path = quoted.trim_end_matches('/');
            let plain = path
                .chars()
                .all(|c| c.is_alphanumeric() || "/._-".contains(c));
            let in_tree = path
                .split('/')
                .next()
                .is_some_and(|first| folders.contains(first));
            let beside = Path::new(name).parent().unwrap_or(Path::new(""));
            let there = [Path::new(""), beside]
                .into_iter()
                .any(|folder| root().join(folder).join(path).exists());
            if plain && in_tree && path.contains('/') && !there {
                offenders.push(format!("{name}: {quoted}"));
            }
        }
    }
    none_left("what a document points at is there", &offenders);
}

#[test]
fn the_map_has_every_crate_on_it() {
    let files = files();
    let map = files.get("ARCHITECTURE.md").expect("there is a map");
    let missing: Vec<String> = packages()
        .into_iter()
        .map(|package| package.name)
        .filter(|name| !map.contains(&format!("`{name}`")))
        .collect();
    none_left("add these to ARCHITECTURE.md", &missing);
}

#[test]
fn the_map_has_every_library_on_it() {
    let files = files();
    let map = files.get("ARCHITECTURE.md").expect("there is a map");
    let libraries: BTreeSet<String> = packages()
        .into_iter()
        .flat_map(|package| package.dependencies)
        .map(|(name, _)| name)
        .filter(|name| !is_ours(name))
        .collect();
    let missing: Vec<String> = libraries
        .into_iter()
        .filter(|name| !map.contains(&format!("`{name}`")))
        .collect();
    none_left("say in ARCHITECTURE.md what these are for", &missing);
}

/// Who witnesses what, as the sources say now.
fn evidence() -> Evidence {
    let mut evidence = Evidence::default();
    for (name, text) in rust_sources() {
        evidence.add(&name, &text);
    }
    evidence
}

#[test]
fn every_clause_that_is_done_has_a_witness() {
    let evidence = evidence();
    let numbered = |(section, last): (&str, u32)| {
        (1..=last)
            .map(|number| format!("{section}-{number}"))
            .collect::<Vec<_>>()
    };
    let done = DONE.into_iter().flat_map(numbered);
    let mut bare = Vec::new();
    for id in done {
        assert!(Clauses::embedded().get(&id).is_some(), "{id} has no record");
        if evidence.of(&id).is_empty() {
            bare.push(id);
        }
    }
    let (witnessed, pending): (Vec<_>, Vec<_>) = PENDING
        .into_iter()
        .map(str::to_owned)
        .partition(|id| !bare.contains(id));
    none_left("these have a witness: take them off PENDING", &witnessed);
    bare.retain(|id| !pending.contains(id));
    none_left("no test and no probe names these clauses", &bare);
}

#[test]
fn tests_name_only_clauses_that_exist() {
    let sections: BTreeSet<&str> = Clauses::embedded()
        .sections()
        .iter()
        .map(|section| section.section.as_str())
        .collect();
    let unknown: Vec<String> = evidence()
        .ids()
        .filter(|id| {
            id.split_once('-')
                .is_some_and(|(section, _)| sections.contains(section))
        })
        .filter(|id| Clauses::embedded().get(id).is_none())
        .map(str::to_owned)
        .collect();
    none_left("there are no such clauses", &unknown);
}

#[test]
fn the_committed_evidence_is_current() {
    let files = files();
    let committed = files
        .get("scenarios/evidence.json")
        .expect("it is committed");
    let current = evidence().to_json(Clauses::embedded());
    assert!(
        *committed == current,
        "write it again: cargo run -p dsh-scenarios --example evidence > target/evidence.json && mv target/evidence.json scenarios/"
    );
}
