//! `list`, `explain`, `completions`, `--help`, `--version`.

use crate::support::Desk;

#[test]
fn the_version_is_this_package_s() {
    let said = Desk::new().run(&["--version"]).ended(0);
    assert_eq!(
        said.out,
        format!("dsh-conform {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn every_command_has_help_with_examples_within_80_columns() {
    let desk = Desk::new();
    for command in [
        &["check"][..],
        &["run"],
        &["report"],
        &["query"],
        &["servers"],
        &["deployment"],
        &["list"],
        &["explain"],
        &["completions"],
    ] {
        let mut args = command.to_vec();
        args.push("--help");
        let said = desk.run(&args).ended(0).out_has("Examples:");
        let wide = said.out.lines().find(|line| line.chars().count() > 80);
        assert_eq!(wide, None, "{command:?}");
    }
    desk.run(&["--help"]).ended(0).out_has("Exit status:");
    desk.run(&[]).ended(2).err_has("Usage");
}

#[test]
fn lists_are_there_as_text_and_as_records() {
    let desk = Desk::new();
    desk.run(&["list", "clauses"]).ended(0).out_has("QUA-6");
    desk.run(&["list", "probes"]).ended(0).out_has("QUA-17");
    desk.run(&["list", "servers"])
        .ended(0)
        .out_has("typescript-language-server");
    desk.run(&["list", "monitors"]).ended(0).out_has("WIRE-7");
    // The whole list, and that nothing fits a filter, are looked at beside the code that lists.
    let some = desk.run(&["list", "scenarios", "cancel/", "--format", "json"]);
    let some = some.ended(0).out_has("cancel/");
    assert!(!some.out.contains("crash/"));
    let records: serde_json::Value = serde_json::from_str(&some.out).unwrap();
    assert!(records.as_array().is_some_and(|all| !all.is_empty()));
    desk.run(&["list", "mutants"])
        .ended(0)
        .out_has("kills-at-once: CAN-4");
    for (what, filter, has, lacks) in [
        ("clauses", "qua-1", "QUA-1", "QUA-10"),
        ("clauses", "QUA-*", "QUA-10", "HST-8"),
        ("probes", "QUA-6", "QUA-6", "QUA-17"),
        (
            "servers",
            "typescript",
            "typescript-language-server",
            "pyright",
        ),
        ("monitors", "respon", "responses", "framing"),
        (
            "mutants",
            "kills-at-once",
            "kills-at-once",
            "does-not-close",
        ),
    ] {
        for form in ["text", "json"] {
            let said = desk.run(&["list", what, filter, "--format", form]).ended(0);
            let said = said.out_has(has);
            assert!(!said.out.contains(lacks), "{what} {filter}: {}", said.out);
        }
        desk.run(&["list", what, "zzz"])
            .ended(5)
            .err_has(&format!("list {what}"));
    }
    // An area is the same here and for `run --mutants`.
    for area in ["runtime/", "instructions/"] {
        let said = desk.run(&["list", "mutants", area, "--format", "json"]);
        let listed: Vec<serde_json::Value> = serde_json::from_str(&said.ended(0).out).unwrap();
        let mut listed: Vec<_> = listed.iter().filter_map(|m| m["name"].as_str()).collect();
        let selected = dsh_scenarios::mutate::select(&[area.to_owned()]);
        let mut selected: Vec<_> = selected.iter().map(|(_, m)| m.name.as_str()).collect();
        listed.sort_unstable();
        selected.sort_unstable();
        assert!(selected.len() > 10);
        assert_eq!(listed, selected);
    }
    desk.run(&["list", "mutants", "runtimes/"])
        .ended(5)
        .err_has("list mutants");
    desk.run(&["list", "clauses", "qau-1"])
        .ended(5)
        .err_has("did you mean QUA-1?");
    for what in ["clauses", "probes", "servers", "monitors", "mutants"] {
        let said = desk.run(&["list", what, "--format", "json"]).ended(0);
        let records: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        assert!(records.as_array().is_some_and(|all| !all.is_empty()));
    }
}

/// What is told of each kind of name is looked at beside the code that tells it.
#[test]
fn a_name_is_explained_and_an_unknown_one_suggests_another() {
    let desk = Desk::new();
    let said = desk.run(&["explain", "qua-6"]).ended(0);
    assert_eq!(said.out_has("QUA-6 MUST").err, "");
    let said = desk
        .run(&["explain", "QUA-60"])
        .ended(2)
        .err_has("did you mean QUA-6?");
    assert_eq!(said.out, "");
}

#[test]
fn completions_name_the_commands() {
    let desk = Desk::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        desk.run(&["completions", shell])
            .ended(0)
            .out_has("deployment");
    }
}

#[test]
fn what_happens_inside_is_shown_on_stderr_and_only_when_asked_for() {
    let desk = Desk::new();
    let check = ["check", "--only", "QUA-1"];
    let said = desk.run(&[&check[..], &["--verbose"]].concat()).ended(0);
    assert!(said.out.starts_with("built-in"), "{}", said.out);
    assert_ne!(said.err, "");
    let quiet = desk.run(&check).ended(0);
    assert_eq!(quiet.err, "");
}
