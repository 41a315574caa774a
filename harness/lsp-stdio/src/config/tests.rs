use serde_json::json;

use super::*;

fn entry(key: &str, value: Value) -> Value {
    let mut entry = json!({"command": "x-server", "extensionToLanguage": {".x": "x"}});
    entry[key] = value;
    json!({"servers": {"x": entry}})
}

#[track_caller]
fn refused(value: Value) -> ConfigError {
    LspStdioConfig::from_value(value).expect_err("the configuration is wrong")
}

#[track_caller]
fn refused_at(key: &str, value: &Value) -> String {
    let error = refused(entry(key, value.clone()));
    assert!(
        error.key().starts_with(&format!("servers.x.{key}")),
        "{value}: {error}"
    );
    assert_eq!(error.code(), "LSP_CONFIG_INVALID");
    error.to_string()
}

/// CFG-1: everything but command and extensions has its default.
#[test]
fn what_is_left_out_has_its_default() {
    let config = LspStdioConfig::from_value(json!({"servers": {"x": {
        "command": "x-server",
        "extensionToLanguage": {".x": "x"},
    }}}))
    .unwrap();
    let expected = ServerConfig::new("x-server", [(".x", "x")]);
    assert_eq!(config.servers["x"], expected);
    assert_eq!(
        serde_json::to_value(&config).unwrap(),
        json!({"servers": {"x": {
            "command": "x-server",
            "args": [],
            "env": {},
            "extensionToLanguage": {".x": "x"},
            "initializationOptions": null,
            "configuration": null,
            "maxMessageBytes": 16_000_000,
            "maxStderrBytes": 1_000_000,
            "maxDocumentBytes": 4_000_000,
            "shutdownTimeoutMs": 5000,
            "killGraceMs": 2000,
            "retryStale": 0,
            "announceConfiguration": false,
            "versions": "fixed",
        }}})
    );
}

/// CFG-1: every key is read, and what is written out reads back.
#[test]
fn every_key_is_read() {
    let value = json!({"servers": {"x": {
        "command": "x-server",
        "args": ["--stdio"],
        "env": {"A": "b"},
        "extensionToLanguage": {".x": "x", "Y": "why"},
        "initializationOptions": {"a": [1, null]},
        "configuration": [true],
        "maxMessageBytes": 1,
        "maxStderrBytes": 2,
        "maxDocumentBytes": 3,
        "shutdownTimeoutMs": 4,
        "killGraceMs": 2_147_483_647,
        "retryStale": 6,
        "announceConfiguration": true,
        "versions": "rising",
    }}});
    let config: LspStdioConfig = serde_json::from_value(value.clone()).unwrap();
    assert_eq!(serde_json::to_value(&config).unwrap(), value);
    assert_eq!(config.servers["x"].versions, Versions::Rising);
}

/// CFG-1: an unknown key is an error that names it.
#[test]
fn unknown_keys_are_named() {
    let error = refused(entry("killGrace", json!(1)));
    assert_eq!(error.path(), ["servers", "x", "killGrace"]);
    assert_eq!(
        error.to_string(),
        format!("{}: {}", error.key(), error.problem())
    );
    assert!(error.to_string().contains("killGraceMs"), "{error}");
    assert_eq!(
        refused(json!({"servers": {}, "server": {}})).path(),
        ["server"]
    );
}

/// CFG-2: an empty table and a blank id fail.
#[test]
fn an_empty_table_and_a_blank_id_fail() {
    assert!(
        refused(json!({"servers": {}}))
            .to_string()
            .contains("servers: is empty")
    );
    let blank = json!({"servers": {" ": {"command": "x", "extensionToLanguage": {"x": "x"}}}});
    assert!(refused(blank).to_string().contains("blank id"));
    assert!(
        refused(json!({}))
            .to_string()
            .contains("servers: is missing")
    );
    assert!(refused(json!([])).to_string().contains("must be a table"));
}

/// CFG-3: a time budget is a positive integer of at most 2147483647 ms; the key is named.
#[test]
fn budgets_are_positive_and_bounded() {
    for key in ["shutdownTimeoutMs", "killGraceMs"] {
        for (value, reason) in [
            (json!(0), "not positive"),
            (json!(-5), "negative"),
            (json!(-0.5), "negative"),
            (json!(-0.0), "without a fraction"),
            (json!(1.5), "not whole"),
            (json!(5000.0), "without a fraction"),
            (json!(1e300), "too large"),
            (json!(2_147_483_648_u64), "too large"),
            (json!(u64::MAX), "too large"),
            (json!("5000"), "leave out the quotes"),
            (json!("soon"), "the string \"soon\""),
            (json!(null), "null"),
            (json!(true), "true"),
            (json!([1]), "a list"),
        ] {
            let message = refused_at(key, &value);
            assert!(message.contains(reason), "{value}: {message}");
            assert!(message.contains("2147483647"), "{message}");
        }
        assert!(LspStdioConfig::from_value(entry(key, json!(2_147_483_647))).is_ok());
        assert!(LspStdioConfig::from_value(entry(key, json!(1))).is_ok());
    }
}

/// CFG-3: byte caps are positive integers; the key is named.
#[test]
fn byte_caps_are_positive() {
    for key in ["maxMessageBytes", "maxStderrBytes", "maxDocumentBytes"] {
        for value in [
            json!(0),
            json!(-1),
            json!(0.5),
            json!("1"),
            json!(null),
            json!(1e40),
        ] {
            assert!(refused_at(key, &value).contains("positive integer of bytes"));
        }
        assert!(LspStdioConfig::from_value(entry(key, json!(u64::MAX))).is_ok());
    }
}

#[test]
fn values_of_the_wrong_kind_are_named() {
    assert!(refused_at("command", &json!(5)).contains("put it in quotes"));
    assert!(refused_at("command", &json!("  ")).contains("blank"));
    assert!(refused_at("args", &json!("--stdio")).contains("list of strings"));
    assert!(refused_at("args", &json!(["a", 5])).contains("servers.x.args.1"));
    assert!(refused_at("args", &json!(["a", "b\0"])).contains("servers.x.args.1"));
    assert!(refused_at("env", &json!({"PORT": 8080})).contains("servers.x.env.PORT"));
    assert!(refused_at("env", &json!({"A=B": ""})).contains("no environment can hold"));
    assert!(refused_at("env", &json!({"A": "\0"})).contains("NUL"));
    assert!(refused_at("retryStale", &json!(-1)).contains("from 0"));
    assert!(refused_at("retryStale", &json!(2_147_483_648_u64)).contains("too large"));
    assert!(refused_at("announceConfiguration", &json!("yes")).contains("true or false"));
    assert!(LspStdioConfig::from_value(entry("retryStale", json!(2_147_483_647))).is_ok());
    assert!(refused_at("versions", &json!("falling")).contains("fixed or rising"));
    assert!(LspStdioConfig::from_value(entry("versions", json!("fixed"))).is_ok());
    let (short, long) = ("s".repeat(60), "s".repeat(61));
    assert!(refused_at("versions", &json!(short)).ends_with(&format!("the string {short:?}")));
    assert!(refused_at("versions", &json!(long)).ends_with("a long string"));
    assert!(refused_at("extensionToLanguage", &json!([])).contains("table of strings"));
}

/// SEAM-3: what no registration would take fails at once, under the registration's own code.
#[test]
fn extensions_keep_the_rules_of_registration() {
    for extensions in [
        json!({}),
        json!({".d.ts": "x"}),
        json!({".x": " "}),
        json!({".x": "x", "X": "x"}),
    ] {
        let error = refused(entry("extensionToLanguage", extensions));
        assert_eq!(error.code(), "LSP_INVALID_PROVIDER");
        assert_eq!(LspError::from(error.clone()).code(), "LSP_INVALID_PROVIDER");
        assert_eq!(error.key(), "servers.x.extensionToLanguage");
    }
}

/// CFG-2, CFG-3: a configuration that was built in Rust meets the same rules.
#[test]
fn what_was_built_in_rust_meets_the_same_rules() {
    let good = ServerConfig::new("x-server", [("x", "x")]);
    assert_eq!(good.validate("x"), Ok(()));
    let break_it = |change: fn(&mut ServerConfig)| {
        let mut bad = good.clone();
        change(&mut bad);
        bad.validate("x").expect_err("it was broken").key()
    };
    assert_eq!(break_it(|c| c.kill_grace_ms = 0), "servers.x.killGraceMs");
    assert_eq!(
        break_it(|c| c.shutdown_timeout_ms = 1 << 31),
        "servers.x.shutdownTimeoutMs"
    );
    assert_eq!(
        break_it(|c| c.max_message_bytes = 0),
        "servers.x.maxMessageBytes"
    );
    assert_eq!(
        break_it(|c| c.max_stderr_bytes = 0),
        "servers.x.maxStderrBytes"
    );
    assert_eq!(
        break_it(|c| c.max_document_bytes = 0),
        "servers.x.maxDocumentBytes"
    );
    assert_eq!(
        break_it(|c| c.retry_stale = u32::MAX),
        "servers.x.retryStale"
    );
    assert_eq!(break_it(|c| c.command.clear()), "servers.x.command");
    assert!(
        LspStdioConfig {
            servers: BTreeMap::new()
        }
        .validate()
        .is_err()
    );
}

/// The schema describes each key and refuses unknown ones.
#[test]
fn the_schema_documents_every_key() {
    let schema = serde_json::to_value(schemars::schema_for!(LspStdioConfig)).unwrap();
    let server = &schema["$defs"]["ServerConfig"];
    assert_eq!(server["additionalProperties"], json!(false));
    assert_eq!(
        server["required"],
        json!(["command", "extensionToLanguage"])
    );
    let properties = server["properties"].as_object().unwrap();
    assert_eq!(properties.len(), 14);
    for (key, property) in properties {
        assert!(
            property["description"].is_string(),
            "{key} has no description"
        );
    }
    assert_eq!(server["properties"]["killGraceMs"]["default"], json!(2000));
    assert_eq!(
        server["properties"]["killGraceMs"]["maximum"],
        json!(MAX_BUDGET_MS)
    );
}

mod properties {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::any_json;

    proptest! {
        /// Whatever the value, reading it ends in a configuration that keeps the rules, or an error.
        #[test]
        fn any_value_is_read_or_refused(key in 0..14_usize, value in any_json()) {
            const KEYS: [&str; 14] = [
                "command", "args", "env", "extensionToLanguage", "initializationOptions",
                "configuration", "maxMessageBytes", "maxStderrBytes", "maxDocumentBytes",
                "shutdownTimeoutMs", "killGraceMs", "retryStale", "announceConfiguration", "versions",
            ];
            if let Ok(config) = LspStdioConfig::from_value(entry(KEYS[key], value.clone())) {
                prop_assert_eq!(config.validate(), Ok(()));
            }
            if let Ok(config) = LspStdioConfig::from_value(value) {
                prop_assert_eq!(config.validate(), Ok(()));
            }
        }
    }
}
