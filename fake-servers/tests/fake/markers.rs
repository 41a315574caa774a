//! The built-in rules over a real workspace.

use serde_json::{Value, json};

use crate::client::{Client, open};

fn workspace() -> tempfile::TempDir {
    let folder = tempfile::Builder::new().prefix("a b ").tempdir().unwrap();
    std::fs::create_dir(folder.path().join("größe")).unwrap();
    std::fs::write(
        folder.path().join("größe/shapes.fake"),
        "doc Shape: Something with an area.\ndef Shape area\ndef area\nimpl Shape circle\n",
    )
    .unwrap();
    std::fs::write(folder.path().join("main.fake"), "def main\n  use Shape\n").unwrap();
    std::fs::write(folder.path().join("notes.txt"), "def Shape\n").unwrap();
    folder
}

fn uri(folder: &tempfile::TempDir, file: &str) -> String {
    let path = folder.path().to_str().unwrap().replace(' ', "%20");
    format!("file://{path}{file}")
}

fn start(folder: &tempfile::TempDir) -> Client {
    let mut client = Client::with_args(&["--rules", "markers"]);
    let root = uri(folder, "");
    let params = json!({
        "processId": null,
        "rootUri": root,
        "workspaceFolders": [{"uri": root, "name": "w"}],
        "capabilities": {"textDocument": {"definition": {"linkSupport": true}}},
    });
    client.call("initialize", &params);
    client.tell("initialized", &json!({}));
    client
}

fn ask(client: &mut Client, method: &str, uri: &str, at: (u64, u64)) -> Value {
    let params = json!({
        "textDocument": {"uri": uri},
        "position": {"line": at.0, "character": at.1},
        "context": {"includeDeclaration": true},
    });
    client.call(&format!("textDocument/{method}"), &params)["result"].clone()
}

#[test]
fn answers_are_computed_from_the_files() {
    let folder = workspace();
    let mut client = start(&folder);
    let main = uri(&folder, "/main.fake");
    let shapes = uri(&folder, "/gr%C3%B6%C3%9Fe/shapes.fake");
    client.tell(
        "textDocument/didOpen",
        &open(&main, "def main\n  use Shape\n"),
    );
    let links = ask(&mut client, "definition", &main, (1, 6));
    assert_eq!(links[0]["targetUri"], shapes.as_str());
    assert_eq!(
        links[0]["targetSelectionRange"]["start"],
        json!({"line": 1, "character": 4})
    );
    let places = ask(&mut client, "implementation", &main, (1, 6));
    assert_eq!(
        (&places[0]["uri"], places.as_array().unwrap().len()),
        (&json!(shapes), 1)
    );
    let references = ask(&mut client, "references", &main, (1, 6));
    assert_eq!(references.as_array().unwrap().len(), 3);
    let hover = ask(&mut client, "hover", &main, (1, 6));
    assert_eq!(
        hover["contents"]["value"],
        "```fake\ndef Shape area\n```\n\nSomething with an area."
    );
    assert_eq!(client.shut_down().code(), Some(0));
}

#[test]
fn a_reopened_document_is_answered_from_its_new_text_and_a_closed_one_from_disk() {
    let folder = workspace();
    let mut client = start(&folder);
    let main = uri(&folder, "/main.fake");
    let line = |client: &mut Client, at| {
        ask(client, "definition", &main, at)[0]["targetRange"]["start"]["line"].clone()
    };
    client.tell("textDocument/didOpen", &open(&main, "main\ndef main"));
    assert_eq!(line(&mut client, (0, 0)), 1);
    client.tell(
        "textDocument/didClose",
        &json!({"textDocument": {"uri": main}}),
    );
    client.tell("textDocument/didOpen", &open(&main, "main\n\n\ndef main"));
    assert_eq!(line(&mut client, (0, 0)), 3);
    client.tell(
        "textDocument/didClose",
        &json!({"textDocument": {"uri": main}}),
    );
    assert_eq!(line(&mut client, (0, 5)), 0);
    std::fs::write(folder.path().join("main.fake"), "\n\ndef main").unwrap();
    assert_eq!(line(&mut client, (2, 5)), 2);
}
