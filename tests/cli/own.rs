//! Servers of one's own: without a version, by a command, in files that are none.

use std::process::Command;

use dsh_fake_lsp::FakeServer;

use crate::support::{Desk, program, typed};

/// Writes a program; another process does, since a program that is open for writing somewhere, as
/// in the child of another test, does not start.
fn script(desk: &Desk, name: &str, text: &str) -> String {
    let made = Command::new("sh")
        .current_dir(desk.path())
        .args([
            "-c",
            "printf '%s' \"$2\" > \"$1\"; chmod +x \"$1\"",
            "sh",
            name,
            text,
        ])
        .status();
    assert!(made.unwrap().success());
    desk.path().join(name).display().to_string()
}

/// It does with `--version` what is given, and else is a server that knows nothing of it.
fn server(desk: &Desk, version: &str) -> String {
    let text = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && {{ {version}; }}\nexec {} fake-lsp --rules markers\n",
        program().display()
    );
    script(desk, "server", &text)
}

#[test]
fn a_server_that_tells_no_version_is_usable() {
    for (version, told) in [
        ("echo no such option >&2; exit 2", "failed (exit status: 2)"),
        ("exit 0", ""),
        ("kill -9 $$", "failed (signal: 9"),
    ] {
        let desk = Desk::new();
        let command = server(&desk, version);
        desk.add_mine(&command, ".fake=fake", &[]).ended(0);
        let doctor = desk
            .run(&["servers", "doctor", "mine"])
            .ended(0)
            .out_has("✓ mine unknown");
        let unbroken = doctor.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(unbroken.contains(told), "{unbroken}");
        assert_eq!(unbroken.contains("optional = true"), !told.is_empty());
        desk.run(&["servers", "path", "mine"])
            .ended(0)
            .out_has(&command);
        desk.run(&["check", "--server", "mine", "--only", "QUA-1"])
            .ended(0)
            .out_has("mine unknown");
    }
}

#[test]
fn a_server_that_is_not_asked_for_its_version_is_not_started_for_it() {
    let desk = Desk::new();
    let command = server(&desk, "echo asked > asked; exec tail -f /dev/null");
    desk.add_mine(&command, ".fake=fake", &["--no-version"])
        .ended(0);
    desk.run(&["check", "--server", "mine", "--only", "QUA-1"])
        .ended(0)
        .out_has("mine unknown");
    assert!(!desk.files().contains(&"asked".to_owned()));
}

#[test]
fn what_is_not_there_and_has_no_recipe_is_not_sent_round_in_a_circle() {
    let desk = Desk::new();
    desk.add_mine("not-here-at-all", ".x=x", &[]).ended(0);
    let told = "put not-here-at-all on PATH, or give its entry a recipe";
    let doctor = desk.run(&["servers", "doctor", "mine"]).ended(3);
    let unbroken = doctor.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        unbroken.contains(told) && !unbroken.contains("one of: ;"),
        "{unbroken}"
    );
    for args in [
        &["check", "--server", "mine", "--format", "json"][..],
        &["servers", "install", "mine"],
        &["servers", "path", "mine"],
    ] {
        let said = desk.run(args).ended(3);
        let all = format!("{}{}", said.out, said.err).replace("\n  ", " ");
        assert!(all.contains(told), "{args:?}\n{all}");
        assert!(!all.contains("servers install mine") && !all.contains("servers doctor mine"));
    }
    // An account of all of them is no failure.
    desk.command(&["servers", "doctor", "--quiet"])
        .env("PATH", "/nowhere")
        .assert()
        .code(0);
}

#[test]
fn an_option_is_neither_a_program_nor_a_name() {
    let desk = Desk::new();
    desk.run(&["servers", "add", "--command=-x", "--ext", ".x=x", "mine"])
        .ended(2)
        .err_has("is an option and no program");
    desk.run(&[
        "servers",
        "add",
        "--command",
        "x",
        "--ext",
        ".x=x",
        "--",
        "-x",
    ])
    .ended(2)
    .err_has("begin with a letter or a digit");
    desk.run(&["check", "--command=-x", "--ext", ".x=x"])
        .ended(2)
        .err_has("is an option and no program");
    assert_eq!(desk.files(), Vec::<String>::new());
}

#[test]
fn commands_of_one_program_are_kept_apart() {
    let desk = Desk::new();
    let fake = typed(&FakeServer::new());
    let words = shlex::split(&fake).unwrap();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let line = shlex::try_join(words).unwrap();
    let mut commands = Vec::new();
    for name in ["one.sh", "two.sh"] {
        let file = script(&desk, name, &format!("exec {line}\n"));
        commands.push(format!("sh {file}"));
    }
    let baseline = ["--only", "QUA-1", "--format", "json", "--out"];
    for (command, out) in commands.iter().zip(["one.json", "two.json"]) {
        desk.check(command, &[&baseline[..], &[out]].concat())
            .ended(0);
    }
    let merged = desk
        .run(&["report", "merge", "one.json", "two.json"])
        .ended(0);
    let report = merged.report();
    let names: Vec<&str> = report
        .runs
        .iter()
        .map(|run| run.subject.name.as_str())
        .collect();
    assert_eq!(names, ["sh one.sh", "sh two.sh"]);
    // A name that is given counts, and two commands do not hide behind one.
    for (command, out) in commands.iter().zip(["a.json", "b.json"]) {
        let given = [&["--name", "mine"], &baseline[..], &[out]].concat();
        desk.check(command, &given).ended(0);
    }
    desk.run(&["report", "merge", "a.json", "b.json"])
        .ended(2)
        .err_has("both have a server called mine")
        .err_has("--name");
    let again = [&["--name", "mine"], &baseline[..], &["c.json"]].concat();
    desk.check(&commands[0], &again).ended(0);
    let report = desk
        .run(&["report", "merge", "a.json", "c.json"])
        .ended(0)
        .report();
    assert_eq!(report.runs.len(), 1);
    let reproduce = report.runs[0].reproduce.as_deref().unwrap();
    assert!(reproduce.contains("--name mine"), "{reproduce}");
    desk.check(&commands[0], &["--name", " "])
        .ended(2)
        .err_has("give a name in one line");
    // A baseline holds each under its own name.
    let kept = ["--baseline", "kept.json", "--update-baseline"];
    for command in &commands {
        desk.check(command, &kept).ended(0);
    }
    let kept = std::fs::read_to_string(desk.path().join("kept.json")).unwrap();
    assert!(
        kept.contains("\"sh one.sh\"") && kept.contains("\"sh two.sh\""),
        "{kept}"
    );
}

#[test]
fn what_is_no_file_is_told_and_not_waited_for() {
    let made = |desk: &Desk, line: &str| {
        let mut made = Command::new("sh");
        made.current_dir(desk.path()).args(["-c", line]);
        assert!(made.status().unwrap().success());
    };
    let desk = Desk::new();
    std::fs::create_dir(desk.path().join("own")).unwrap();
    std::fs::write(
        desk.path().join("own/x.yaml"),
        "name: x\nlaunch: {command: x}\nextensions: {.x: x}\n",
    )
    .unwrap();
    // What is not called like an entry is nobody's business.
    made(&desk, "mkfifo own/pipe && mkdir own/folder");
    desk.run(&["list", "servers", "x", "--catalogue", "own"])
        .ended(0);
    for (line, told) in [
        ("mkfifo own/a.yaml", "own/a.yaml: it is a pipe"),
        ("mkdir own/a.yaml", "own/a.yaml: it is a folder"),
        ("ln -s /dev/zero own/a.yaml", "own/a.yaml: it is a device"),
        (
            "ln -s nowhere own/a.yaml",
            "own/a.yaml: it is a link that leads to no file",
        ),
    ] {
        made(&desk, line);
        desk.run(&["list", "servers", "x", "--catalogue", "own"])
            .ended(2)
            .err_has(told);
        made(&desk, "rm -r own/a.yaml");
    }
    for (line, told) in [
        ("mkfifo dsh-conform.toml", "dsh-conform.toml: it is a pipe"),
        ("mkdir dsh-conform.toml", "dsh-conform.toml: it is a folder"),
    ] {
        made(&desk, line);
        for args in [
            &["list", "servers"][..],
            &["check", "--server", "clangd"],
            &["servers", "add", "y", "--command", "y", "--ext", ".y=y"],
        ] {
            desk.run(args).ended(2).err_has(told);
        }
        made(&desk, "rm -r dsh-conform.toml");
    }
    // Nor is one in a sample of one's own.
    made(
        &desk,
        "mkdir -p sample/workspace && mkfifo sample/workspace/a.x && touch sample/sample.yaml",
    );
    std::fs::write(
        desk.path().join("own/x.yaml"),
        "name: x\nlaunch: {command: x}\nextensions: {.x: x}\nsample: ../sample\n",
    )
    .unwrap();
    desk.run(&["list", "servers", "x", "--catalogue", "own"])
        .ended(2)
        .err_has("a.x: it is a pipe");
}

#[test]
fn without_a_measurement_none_is_shown() {
    let said = Desk::new().run(&["check", "--measure", "no"]).ended(0);
    assert!(!said.out.contains("measured"), "{}", said.out);
}

/// What has gone into a session of its own is in no group any more; it is found by what it inherited.
#[cfg(target_os = "linux")]
#[test]
fn an_end_names_what_it_left_in_a_session_of_its_own() {
    let desk = Desk::new();
    let text = format!(
        "#!/bin/sh\nsetsid tail -f /dev/null </dev/null >/dev/null 2>&1 &\n\
         exec {} fake-lsp --rules markers\n",
        program().display()
    );
    let command = script(&desk, "server", &text);
    let args = [
        "check",
        "--command",
        &command,
        "--ext",
        ".x=x",
        "--measure",
        "only",
    ];
    let said = desk.run(&args).ended(0);
    let unbroken = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, ends) = unbroken.split_once(" ends ").unwrap();
    assert!(ends.starts_with("shutdown "), "{ends}");
    assert!(ends.contains("1 process left (tail)"), "{ends}");
}
