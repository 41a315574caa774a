//! A client's ways: what it announces, how it answers a server's requests, how it says good-bye.
//! Pure.

use serde_json::{Value, json};

/// What becomes of the requests a server sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Requests {
    /// Each is answered so that the server can go on.
    Answered,
    /// Each is refused with -32601.
    Refused,
    /// None is answered.
    Unanswered,
}

/// How `shutdown` and `exit` are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Params {
    /// Without the member.
    Absent,
    /// `"params": null`.
    Null,
    /// `"params": {}`.
    Empty,
}

impl Params {
    pub(super) fn value(self) -> Option<Value> {
        match self {
            Self::Absent => None,
            Self::Null => Some(Value::Null),
            Self::Empty => Some(json!({})),
        }
    }
}

/// A client's way.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Manner {
    pub(super) requests: Requests,
    /// The answer to each item of `workspace/configuration`, and what is announced.
    pub(super) configuration: Value,
    /// Whether `workspace/didChangeConfiguration` follows `initialized`.
    pub(super) announce: bool,
    /// Whether `window.workDoneProgress` and `experimental.serverStatusNotification` are announced.
    pub(super) progress: bool,
    /// Whether the capability `workspace.configuration` is announced.
    pub(super) configurable: bool,
    pub(super) shutdown: Params,
}

impl Manner {
    /// The way of a host that is given this configuration: what it announces, and what it answers.
    pub(super) fn usual(configuration: Value) -> Self {
        Self {
            requests: Requests::Answered,
            configuration,
            announce: false,
            progress: false,
            configurable: true,
            shutdown: Params::Absent,
        }
    }

    /// The params of `initialize`.
    pub(super) fn initialize(&self, root_uri: &str, options: &Value) -> Value {
        let mut workspace = json!({"workspaceFolders": true});
        if self.configurable {
            workspace["configuration"] = true.into();
        }
        let mut capabilities = json!({
            "general": {"positionEncodings": ["utf-16"]},
            "workspace": workspace,
            "textDocument": {
                "hover": {"contentFormat": ["markdown", "plaintext"]},
                "definition": {"linkSupport": true},
                "implementation": {"linkSupport": true},
            },
        });
        if self.progress {
            capabilities["window"] = json!({"workDoneProgress": true});
            capabilities["experimental"] = json!({"serverStatusNotification": true});
        }
        let mut params = json!({
            "processId": null,
            "rootUri": root_uri,
            "workspaceFolders": [folder(root_uri)],
            "capabilities": capabilities,
        });
        if !options.is_null() {
            params["initializationOptions"] = options.clone();
        }
        params
    }

    /// The `result` or `error` member that answers a request of the server; none for silence.
    pub(super) fn answer(&self, method: &str, params: &Value, root_uri: &str) -> Option<Value> {
        let refused = || {
            let message = format!("this client does not know {method}");
            json!({"error": {"code": -32601, "message": message}})
        };
        match self.requests {
            Requests::Unanswered => return None,
            Requests::Refused => return Some(refused()),
            Requests::Answered => {}
        }
        let result = match method {
            "workspace/configuration" => {
                let items = params["items"].as_array().map_or(0, Vec::len);
                vec![self.configuration.clone(); items].into()
            }
            "workspace/workspaceFolders" => json!([folder(root_uri)]),
            "client/registerCapability"
            | "client/unregisterCapability"
            | "window/workDoneProgress/create"
            | "window/showMessageRequest" => Value::Null,
            "workspace/applyEdit" => {
                json!({"applied": false, "failureReason": "this client only reads"})
            }
            _ => return Some(refused()),
        };
        Some(json!({"result": result}))
    }
}

fn folder(uri: &str) -> Value {
    let name = uri.rsplit('/').next().unwrap_or_default();
    json!({"uri": uri, "name": name})
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "file:///tmp/ws";

    fn answer(manner: &Manner, method: &str, params: &Value) -> Option<Value> {
        manner.answer(method, params, ROOT)
    }

    #[test]
    fn every_item_of_a_configuration_gets_the_value() {
        let manner = Manner::usual(json!({"a": 1}));
        let items = json!({"items": [{"section": "x"}, {}]});
        assert_eq!(
            answer(&manner, "workspace/configuration", &items),
            Some(json!({"result": [{"a": 1}, {"a": 1}]}))
        );
        let null = Manner::usual(Value::Null);
        assert_eq!(
            answer(&null, "workspace/configuration", &items),
            Some(json!({"result": [null, null]}))
        );
        // What is no list of items has none.
        assert_eq!(
            answer(&null, "workspace/configuration", &json!(null)),
            Some(json!({"result": []}))
        );
    }

    #[test]
    fn a_client_refuses_or_keeps_silent_to_everything() {
        let usual = Manner::usual(Value::Null);
        let refuses = Manner {
            requests: Requests::Refused,
            ..usual.clone()
        };
        let silent = Manner {
            requests: Requests::Unanswered,
            ..usual.clone()
        };
        for method in ["workspace/configuration", "client/registerCapability", "x"] {
            let refused = answer(&refuses, method, &Value::Null).unwrap();
            assert_eq!(refused["error"]["code"], -32601, "{method}");
            assert_eq!(answer(&silent, method, &Value::Null), None, "{method}");
        }
        let unknown = answer(&usual, "x", &Value::Null).unwrap();
        assert_eq!(unknown["error"]["code"], -32601);
        let applied = answer(&usual, "workspace/applyEdit", &Value::Null).unwrap();
        assert_eq!(applied["result"]["applied"], false);
    }

    #[test]
    fn only_what_a_way_is_about_is_announced_otherwise() {
        let usual = Manner::usual(Value::Null);
        let params = usual.initialize(ROOT, &Value::Null);
        assert_eq!(params["processId"], Value::Null);
        assert_eq!(params["workspaceFolders"][0]["name"], "ws");
        assert!(params.get("initializationOptions").is_none());
        assert!(params["capabilities"].get("window").is_none());
        assert_eq!(params["capabilities"]["workspace"]["configuration"], true);
        let other = Manner {
            progress: true,
            configurable: false,
            ..usual
        };
        let params = other.initialize(ROOT, &json!({"a": 1}));
        assert_eq!(params["initializationOptions"], json!({"a": 1}));
        assert_eq!(params["capabilities"]["window"]["workDoneProgress"], true);
        let workspace = &params["capabilities"]["workspace"];
        assert!(workspace.get("configuration").is_none());
        assert_eq!(workspace["workspaceFolders"], true);
    }

    #[test]
    fn params_are_absent_null_or_empty() {
        assert_eq!(Params::Absent.value(), None);
        assert_eq!(Params::Null.value(), Some(Value::Null));
        assert_eq!(Params::Empty.value(), Some(json!({})));
    }
}
