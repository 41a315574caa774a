//! `query` and `deployment`.

use dsh_fake_lsp::{FakeServer, Rule, reply};
use serde_json::{Value, json};

use crate::support::{Desk, typed};

#[test]
fn an_answer_reads_as_the_model_would_see_it() {
    let desk = Desk::new();
    let (workspace, at) = desk.sample("main.fake", "use-area");
    let command = typed(&FakeServer::markers());
    let at = format!("{}/{at}", workspace.display());
    let root = workspace.display().to_string();
    let said = desk.run(&[
        "query",
        "--command",
        &command,
        "--ext",
        ".fake=fake",
        "--workspace",
        &root,
        "goToDefinition",
        &at,
    ]);
    let said = said.ended(0).err_has("workspace: ");
    let area = dsh_e2e::samples::sample("fake")
        .unwrap()
        .file("shapes.fake")
        .unwrap()
        .markers["area"];
    assert_eq!(said.out, format!("shapes.fake:{area}\n"));
}

#[test]
fn the_workspace_is_the_nearest_project_and_said_to_be() {
    let desk = Desk::new();
    let (workspace, at) = desk.sample("main.fake", "use-area");
    std::fs::write(workspace.join("package.json"), "{}").unwrap();
    let command = typed(&FakeServer::markers());
    let at = format!("workspace/{at}");
    desk.run(&[
        "query",
        "--command",
        &command,
        "--ext",
        ".fake=fake",
        "hover",
        &at,
    ])
    .ended(0)
    .out_has("area")
    .err_has("nearest folder with package.json");
}

#[test]
fn settle_asks_until_the_answer_stays() {
    let desk = Desk::new();
    let (workspace, at) = desk.sample("main.fake", "use-area");
    // What servers say while they load: nothing, then the line that was asked about, each oftener
    // than an answer has to come to be believed.
    let here = json!({"uri": "${uri:main.fake}", "range": {
        "start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}});
    let early = |answer: Value| {
        Rule::on("textDocument/definition")
            .times(4)
            .run([reply(answer)])
    };
    let server = FakeServer::markers()
        .rule(early(Value::Null))
        .rule(early(json!([here])));
    let command = typed(&server);
    let root = workspace.display().to_string();
    let query = |more: &[&str]| {
        let mut args = vec![
            "query",
            "--command",
            &command,
            "--ext",
            ".fake=fake",
            "--workspace",
            &root,
        ];
        args.extend(more);
        args.extend(["goToDefinition", &at]);
        let mut command = desk.command(&args);
        command.current_dir(&workspace);
        String::from_utf8(command.assert().code(0).get_output().stdout.clone()).unwrap()
    };
    assert!(!query(&[]).contains("shapes.fake"));
    let settled = query(&["--settle", "60"]);
    assert!(settled.contains("shapes.fake"), "{settled}");
    assert!(!settled.contains("main.fake"), "{settled}");
}

#[test]
fn failures_are_told_with_their_code() {
    let desk = Desk::new();
    let (workspace, _) = desk.sample("main.fake", "use-area");
    let command = typed(&FakeServer::markers());
    let query = |at: &str| {
        desk.run(&[
            "query",
            "--command",
            &command,
            "--ext",
            ".fake=fake",
            "hover",
            at,
        ])
    };
    query(&format!("{}/nope.fake:1:1", workspace.display()))
        .ended(1)
        .err_has("LSP_SOURCE_REJECTED");
    query(&format!("{}/x.other:1:1", workspace.display()))
        .ended(1)
        .err_has("LSP_UNAVAILABLE");
    query("x.fake:0:1").ended(2).err_has("one-based");
    desk.run(&["query", "hover", "x.fake:1:1"])
        .ended(2)
        .err_has("--server");
    desk.run(&["query", "--server", "pyright", "hovr", "x:1:1"])
        .ended(2)
        .err_has("hover");
}

#[test]
fn a_deployment_file_is_mounted_listed_and_disposed() {
    let desk = Desk::new();
    let (workspace, at) = desk.sample("main.fake", "use-area");
    let command = FakeServer::markers()
        .subcommand("fake-lsp")
        .command(crate::support::program())
        .unwrap();
    let args = &command.args;
    let rows = json!([
        {"name": "@deepseek-ai/dsh-fs-local"},
        {"name": "@deepseek-ai/dsh-subprocess-local"},
        {"name": "@deepseek-ai/dsh-lsp"},
        {"name": "@deepseek-ai/dsh-lsp-stdio", "config": {"servers": {"toy": {
            "command": command.program, "args": args, "extensionToLanguage": {".fake": "fake"},
        }}}},
        {"name": "@deepseek-ai/dsh-tool-lsp"},
    ]);
    std::fs::write(desk.path().join("cordis.yml"), rows.to_string()).unwrap();
    let said = desk.run(&["deployment", "check", "cordis.yml"]).ended(0);
    let said = said
        .out_has("dsh-lsp-stdio (cordis.yml:")
        .out_has("toy: ")
        .out_has("tool lsp");
    said.out_has("disposed");
    let at = format!("{}/{at}", workspace.display());
    desk.run(&["query", "--deployment", "cordis.yml", "goToDefinition", &at])
        .ended(0)
        .out_has("shapes.fake:");
}

#[test]
fn a_deployment_that_is_wrong_is_told_with_its_place() {
    let desk = Desk::new();
    std::fs::write(
        desk.path().join("a.yml"),
        "- name: dsh-lsp\n- name: dsh-lsp-stdoi\n",
    )
    .unwrap();
    desk.run(&["deployment", "check", "a.yml"])
        .ended(2)
        .err_has("a.yml:2:")
        .err_has("dsh-lsp-stdio");
    desk.run(&["deployment", "check", "b.yml"])
        .ended(2)
        .err_has("cannot read b.yml");
    std::fs::write(desk.path().join("c.yml"), "- name: dsh-tool-lsp\n").unwrap();
    desk.run(&["deployment", "check", "c.yml"])
        .ended(1)
        .out_has("not started: c.yml:1: dsh-tool-lsp");
}

/// A file is taken as it is typed here, or else as the tool takes it, below the workspace.
#[test]
fn a_file_may_be_named_from_the_workspace() {
    let desk = Desk::new();
    let (_, at) = desk.sample("main.fake", "use-area");
    let command = typed(&FakeServer::markers());
    let server = ["query", "--command", &command, "--ext", ".fake=fake"];
    let asked = ["--workspace", "workspace", "goToDefinition", &at];
    let said = desk.run(&[&server[..], &asked[..]].concat()).ended(0);
    assert!(said.out.starts_with("shapes.fake:"), "{}", said.out);
}
