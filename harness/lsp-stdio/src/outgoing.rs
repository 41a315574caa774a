//! The messages that are sent (INI-1…4, OPN-1, OPN-9, OPN-13, CAN-3, DIS-2). Pure: each appends one
//! JSON body.
//!
//! `initialize` goes through LSP's types; what a query needs is written down directly, without a tree.

use std::io::Write as _;
use std::str::FromStr as _;

use dsh_lsp::{Operation, Position};
use lsp_types::{
    ClientCapabilities, ClientInfo, GeneralClientCapabilities, GotoCapability,
    HoverClientCapabilities, InitializeParams, MarkupKind, PositionEncodingKind,
    TextDocumentClientCapabilities, Uri, WorkspaceClientCapabilities, WorkspaceFolder,
};
use serde::Serialize;
use serde_json::Value;

use crate::translate::method;

/// The only workspace folder there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Folder {
    /// Canonical `file:` URI.
    pub(crate) uri: String,
    /// For people: the directory's own name.
    pub(crate) name: String,
}

/// The parameters of `initialize`, or `None` if the folder's URI is none.
pub(crate) fn initialize_params(folder: &Folder, options: &Value) -> Option<InitializeParams> {
    let uri = Uri::from_str(&folder.uri).ok()?;
    #[expect(
        deprecated,
        reason = "servers that know no folders go by rootUri (INI-2)"
    )]
    Some(InitializeParams {
        process_id: None,
        root_uri: Some(uri.clone()),
        initialization_options: (!options.is_null()).then(|| options.clone()),
        capabilities: capabilities(),
        workspace_folders: Some(vec![WorkspaceFolder {
            uri,
            name: folder.name.clone(),
        }]),
        client_info: Some(ClientInfo {
            name: "dsh".to_owned(),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        }),
        ..InitializeParams::default()
    })
}

/// Exactly what INI-3 lists.
fn capabilities() -> ClientCapabilities {
    let links = || {
        Some(GotoCapability {
            dynamic_registration: None,
            link_support: Some(true),
        })
    };
    ClientCapabilities {
        general: Some(GeneralClientCapabilities {
            position_encodings: Some(vec![PositionEncodingKind::UTF16]),
            ..GeneralClientCapabilities::default()
        }),
        workspace: Some(WorkspaceClientCapabilities {
            workspace_folders: Some(true),
            configuration: Some(true),
            ..WorkspaceClientCapabilities::default()
        }),
        text_document: Some(TextDocumentClientCapabilities {
            hover: Some(HoverClientCapabilities {
                dynamic_registration: None,
                content_format: Some(vec![MarkupKind::Markdown, MarkupKind::PlainText]),
            }),
            definition: links(),
            implementation: links(),
            ..TextDocumentClientCapabilities::default()
        }),
        ..ClientCapabilities::default()
    }
}

pub(crate) fn initialize(out: &mut Vec<u8>, id: u64, params: &InitializeParams) {
    put(out, r#"{"jsonrpc":"2.0","id":"#);
    put_number(out, id);
    put(out, r#","method":"initialize","params":"#);
    put_json(out, params);
    put(out, "}");
}

pub(crate) fn initialized(out: &mut Vec<u8>) {
    put(
        out,
        r#"{"jsonrpc":"2.0","method":"initialized","params":{}}"#,
    );
}

pub(crate) fn did_change_configuration(out: &mut Vec<u8>, settings: &str) {
    put(
        out,
        r#"{"jsonrpc":"2.0","method":"workspace/didChangeConfiguration","params":{"settings":"#,
    );
    put(out, settings);
    put(out, "}}");
}

pub(crate) fn did_open(out: &mut Vec<u8>, uri: &str, language_id: &str, version: u64, text: &str) {
    put(
        out,
        r#"{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":"#,
    );
    put_json(out, uri);
    put(out, r#","languageId":"#);
    put_json(out, language_id);
    put(out, r#","version":"#);
    put_number(out, version);
    put(out, r#","text":"#);
    put_json(out, text);
    put(out, "}}}");
}

/// The question itself. References include the declaration (OPN-9).
pub(crate) fn request(
    out: &mut Vec<u8>,
    id: u64,
    operation: Operation,
    uri: &str,
    position: Position,
) {
    put(out, r#"{"jsonrpc":"2.0","id":"#);
    put_number(out, id);
    put(out, r#","method":""#);
    put(out, method(operation));
    put(out, r#"","params":{"textDocument":{"uri":"#);
    put_json(out, uri);
    put(out, r#"},"position":{"line":"#);
    put_number(out, position.line);
    put(out, r#","character":"#);
    put_number(out, position.character);
    put(
        out,
        match operation {
            Operation::FindReferences => r#"},"context":{"includeDeclaration":true}}}"#,
            _ => "}}}",
        },
    );
}

pub(crate) fn cancel_request(out: &mut Vec<u8>, id: u64) {
    put(
        out,
        r#"{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":"#,
    );
    put_number(out, id);
    put(out, "}}");
}

pub(crate) fn did_close(out: &mut Vec<u8>, uri: &str) {
    put(
        out,
        r#"{"jsonrpc":"2.0","method":"textDocument/didClose","params":{"textDocument":{"uri":"#,
    );
    put_json(out, uri);
    put(out, "}}}");
}

/// Without `params`: servers differ on null and on `{}` (DIS-2).
pub(crate) fn shutdown(out: &mut Vec<u8>, id: u64) {
    put(out, r#"{"jsonrpc":"2.0","id":"#);
    put_number(out, id);
    put(out, r#","method":"shutdown"}"#);
}

/// Without `params` too.
pub(crate) fn exit(out: &mut Vec<u8>) {
    put(out, r#"{"jsonrpc":"2.0","method":"exit"}"#);
}

/// An answer to the request with the raw id `id`, as it came (SRQ-1).
pub(crate) fn answer(out: &mut Vec<u8>, id: &str, result: impl FnOnce(&mut Vec<u8>)) {
    put(out, r#"{"jsonrpc":"2.0","id":"#);
    put(out, id);
    put(out, r#","result":"#);
    result(out);
    put(out, "}");
}

pub(crate) fn answer_error(out: &mut Vec<u8>, id: &str, code: i64, message: &str) {
    put(out, r#"{"jsonrpc":"2.0","id":"#);
    put(out, id);
    put(out, r#","error":{"code":"#);
    put(out, &code.to_string());
    put(out, r#","message":"#);
    put_json(out, message);
    put(out, "}}");
}

pub(crate) fn put(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

fn put_number(out: &mut Vec<u8>, number: u64) {
    write!(out, "{number}").expect("writing to memory does not fail");
}

pub(crate) fn put_json<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(out, value).expect("strings and LSP's types always have a JSON form");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn body(write: impl FnOnce(&mut Vec<u8>)) -> Value {
        let mut out = Vec::new();
        write(&mut out);
        serde_json::from_slice(&out).expect("every message is JSON")
    }

    fn folder() -> Folder {
        Folder {
            uri: "file:///w/a%20%C3%A9".to_owned(),
            name: "a é".to_owned(),
        }
    }

    /// INI-2, INI-3, INI-4: exactly these members, and no options where none are configured.
    #[test]
    fn initialize_says_exactly_this() {
        let with = |options: Value| {
            let params = initialize_params(&folder(), &options).unwrap();
            body(|out| initialize(out, 1, &params))
        };
        let capabilities = json!({
            "general": {"positionEncodings": ["utf-16"]},
            "workspace": {"workspaceFolders": true, "configuration": true},
            "textDocument": {
                "hover": {"contentFormat": ["markdown", "plaintext"]},
                "definition": {"linkSupport": true},
                "implementation": {"linkSupport": true},
            },
        });
        let expected = json!({
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "processId": null,
                "clientInfo": {"name": "dsh", "version": env!("CARGO_PKG_VERSION")},
                "rootUri": "file:///w/a%20%C3%A9",
                "workspaceFolders": [{"uri": "file:///w/a%20%C3%A9", "name": "a é"}],
                "capabilities": capabilities,
            },
        });
        assert_eq!(with(Value::Null), expected);
        let options = json!({"a": [null, {"b": "c"}], "z": 0, "y": 1.0});
        assert_eq!(
            with(options.clone())["params"]["initializationOptions"],
            options
        );
        assert_eq!(
            with(json!(false))["params"]["initializationOptions"],
            json!(false)
        );
    }

    /// OPN-1, OPN-9, OPN-13: what is asked, with a context for references only.
    #[test]
    fn requests_have_exactly_these_params() {
        for operation in Operation::ALL {
            let position = Position {
                line: 3,
                character: 14,
            };
            let sent = body(|out| request(out, 7, operation, "file:///a%22", position));
            let mut params = json!({
                "textDocument": {"uri": "file:///a%22"},
                "position": {"line": 3, "character": 14},
            });
            if operation == Operation::FindReferences {
                params["context"] = json!({"includeDeclaration": true});
            }
            assert_eq!(
                sent,
                json!({"jsonrpc": "2.0", "id": 7, "method": method(operation), "params": params})
            );
        }
    }

    /// OPN-1: the whole text arrives as it is.
    #[test]
    fn documents_are_sent_whole() {
        let text = "\u{fffd}\r\n\"\\\u{1}\u{7f}\u{2028}🦀\n";
        let sent = body(|out| did_open(out, "file:///a", "x\"y", 1, text));
        assert_eq!(
            sent,
            json!({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": {
                "uri": "file:///a", "languageId": "x\"y", "version": 1, "text": text,
            }}})
        );
    }

    /// CAN-3, DIS-2, INI-9: the small ones; `shutdown` and `exit` have no `params`.
    #[test]
    fn the_small_messages() {
        assert_eq!(
            body(|out| cancel_request(out, 9)),
            json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 9}})
        );
        assert_eq!(
            body(|out| did_close(out, "file:///a")),
            json!({"jsonrpc": "2.0", "method": "textDocument/didClose",
                "params": {"textDocument": {"uri": "file:///a"}}})
        );
        assert_eq!(
            body(|out| shutdown(out, 4)),
            json!({"jsonrpc": "2.0", "id": 4, "method": "shutdown"})
        );
        assert_eq!(body(exit), json!({"jsonrpc": "2.0", "method": "exit"}));
        assert_eq!(
            body(initialized),
            json!({"jsonrpc": "2.0", "method": "initialized", "params": {}})
        );
        assert_eq!(
            body(|out| did_change_configuration(out, "{\"a\":1}")),
            json!({"jsonrpc": "2.0", "method": "workspace/didChangeConfiguration", "params": {"settings": {"a": 1}}})
        );
    }
}
