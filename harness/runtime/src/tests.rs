//! The deployment file: what is read from it, and what its errors say.

use dsh_tools::TimeoutPolicyConfig;

use super::*;

const SEED: &str = r#"- name: "@deepseek-ai/dsh-fs-local"
- name: deepseek-ai/dsh-subprocess-local
- name: dsh-lsp
- name: "@deepseek-ai/dsh-lsp-stdio"
  id: servers
  config:
    servers:
      toy:
        command: toy-server
        args: [--stdio]
        extensionToLanguage:
          .toy: toy-language
- name: deepseek-ai/dsh-tool-lsp
  config: {timeoutMs: 1000}
- name: dsh-tool-call-timeout-policy
  config:
- name: dsh-tool-fs
  config: {limit: 10}
- name: dsh-read-before-write-policy
- name: dsh-code-mode
  config: {wallMs: 10}
- name: dsh-workspace-context
  config: {maxBytes: 100}
"#;

#[track_caller]
fn parse(text: &str) -> Deployment {
    Deployment::parse(text, "cordis.yml").unwrap_or_else(|error| panic!("{error}"))
}

#[track_caller]
fn wrong(text: &str) -> DeploymentError {
    let error = Deployment::parse(text, "cordis.yml").expect_err("the file is wrong");
    assert_eq!(error.code(), "DEPLOYMENT_INVALID");
    assert_eq!(error.origin(), "cordis.yml");
    assert!(error.line() >= 1 && error.column() >= 1, "{error}");
    error
}

/// Asserts the place and some words of the error.
#[track_caller]
fn wrong_at(text: &str, line: u64, column: u64, words: &[&str]) {
    let error = wrong(text);
    assert_eq!((error.line(), error.column()), (line, column), "{error}");
    assert!(
        error
            .to_string()
            .starts_with(&format!("cordis.yml:{line}:{column}: ")),
        "{error}"
    );
    for word in words {
        assert!(
            error.problem().contains(word),
            "{word:?} is not in: {error}"
        );
    }
}

/// RUN-3: the form of the published example, with the three spellings of a name.
#[test]
fn a_deployment_file_is_read_with_all_three_spellings_of_a_name() {
    let deployment = parse(SEED);
    let plugins: Vec<_> = deployment
        .rows()
        .iter()
        .map(|row| row.config().plugin())
        .collect();
    assert_eq!(plugins, PluginName::ALL);
    let rows = deployment.rows();
    assert_eq!(rows[3].id(), Some("servers"));
    assert_eq!(rows[3].origin(), Some(("cordis.yml", 4)));
    let RowConfig::LspStdio(config) = rows[3].config() else {
        panic!("a host")
    };
    let server = &config.servers["toy"];
    assert_eq!(server.command, "toy-server");
    assert_eq!(server.args, ["--stdio"]);
    assert_eq!(server.extension_to_language[".toy"], "toy-language");
    let RowConfig::ToolLsp(config) = rows[4].config() else {
        panic!("a tool")
    };
    assert_eq!((config.timeout_ms, config.max_locations), (1000, 100));
    assert_eq!(
        *rows[5].config(),
        RowConfig::TimeoutPolicy(TimeoutPolicyConfig::default())
    );
}

/// RUN-3.
#[test]
fn an_unknown_plugin_is_told_with_its_place_and_the_nearest_name() {
    wrong_at(
        "- name: dsh-fs-local\n- name: dsh-lps\n",
        2,
        9,
        &["\"dsh-lps\"", "did you mean dsh-lsp?"],
    );
    wrong_at(
        "- name: '@deepseek-ai/dsh-tool-lps'\n",
        1,
        9,
        &["did you mean dsh-tool-lsp?"],
    );
    wrong_at(
        "- name: something-else\n",
        1,
        9,
        &["there are dsh-fs-local, dsh-subprocess-local"],
    );
    wrong_at("- name: '@dsh-lsp'\n", 1, 9, &["did you mean dsh-lsp?"]);
}

/// What each row is said to provide is what its plugin does.
#[test]
fn the_services_of_rows_are_those_of_their_plugins() {
    let builder = Runtime::builder();
    for row in parse(SEED).rows() {
        let plugin = builder.plugin_of(row);
        let said: Vec<_> = row.config().plugin().provides().into_iter().collect();
        assert_eq!(plugin.provides(), said, "{}", plugin.name());
    }
}

/// A value of another type than expected is told with its key, and what is expected there.
#[test]
fn a_value_of_the_wrong_type_is_told_with_what_is_expected() {
    let row = |name: &str, config: &str| format!("- name: {name}\n  config: {config}\n");
    for (name, config, column, words) in [
        (
            "dsh-tool-fs",
            "{limit: x}",
            19,
            "limit must be integer, 1 to 2000; this is \"x\"",
        ),
        ("dsh-tool-fs", "{limit: -1}", 19, "this is -1"),
        ("dsh-code-mode", "{wallMs: 1.5}", 20, "this is 1.5"),
    ] {
        wrong_at(&row(name, config), 2, column, &[words]);
    }
    wrong_at(
        "- name: dsh-workspace-context\n",
        1,
        3,
        &["maxBytes is missing; add it to `config`"],
    );
    let config = "{maxBytes: 1, projectRootMarkers: [3]}";
    let error = wrong(&row("dsh-workspace-context", config));
    assert!(!error.problem().contains("invalid type"), "{error}");
}

/// RUN-3: what needs no row.
#[test]
fn rows_of_the_base_are_refused() {
    for name in ["dsh-tools", "dsh-agent"] {
        wrong_at(
            &format!("- name: {name}\n"),
            1,
            9,
            &["belongs to the base", "leave it out"],
        );
    }
}

/// RUN-8, INS-11: the keys of the file tools and of the instructions are read, the required one
/// demanded, and a stray one told.
#[test]
fn rows_of_files_and_instructions_are_read_or_refused() {
    let deployment = parse(SEED);
    let config = |plugin: PluginName| {
        let mut rows = deployment.rows().iter();
        let row = rows.find(|row| row.config().plugin() == plugin);
        row.expect("it is there").config().clone()
    };
    let RowConfig::ToolFs(files) = config(PluginName::ToolFs) else {
        panic!("file tools")
    };
    assert_eq!(files.limit, 10);
    let RowConfig::WorkspaceContext(instructions) = config(PluginName::WorkspaceContext) else {
        panic!("instructions")
    };
    assert!((instructions.max_bytes - 100.0).abs() < f64::EPSILON);
    let row = |name: &str, config: &str| format!("- name: {name}\n  config: {config}\n");
    wrong_at(
        &row("dsh-tool-fs", "{limits: 1}"),
        2,
        12,
        &["did you mean limit?"],
    );
    // What no plugin would take is refused when it is read, and not when the plugin starts.
    wrong_at(&row("dsh-tool-fs", "{limit: 0}"), 2, 19, &["limit must be"]);
    wrong_at(
        &row("dsh-code-mode", "{wallMs: 0}"),
        2,
        20,
        &["wallMs must be"],
    );
    wrong_at(
        &row("dsh-read-before-write-policy", "{strict: true}"),
        2,
        12,
        &["takes no configuration"],
    );
    let error = wrong(&row("dsh-workspace-context", "{maxBytes: x}"));
    assert!(error.problem().contains("maxBytes"), "{error}");
    let error = wrong(&row("dsh-workspace-context", "{dshHome: ~/x, maxBytes: x}"));
    assert!(error.problem().contains("maxBytes must be"), "{error}");
    let error = wrong("- name: dsh-workspace-context\n");
    assert!(error.problem().contains("maxBytes"), "{error}");
}

/// RUN-3, CFG-1.
#[test]
fn an_unknown_key_is_told_with_its_place_and_the_nearest_key() {
    let file = |line: &str| {
        format!(
            "- name: dsh-lsp-stdio\n  config:\n    servers:\n      ts:\n        command: x\n        \
             extensionToLanguage: {{.ts: ts}}\n{line}\n"
        )
    };
    wrong_at(
        &file("        killGraceMS: 5"),
        7,
        9,
        &[
            "dsh-lsp-stdio",
            "\"servers.ts.killGraceMS\"",
            "did you mean killGraceMs?",
        ],
    );
    wrong_at(
        &file("    sewers: {}"),
        7,
        5,
        &["\"sewers\"", "did you mean servers?"],
    );
    wrong_at(
        &file("  confg: {}"),
        7,
        3,
        &["\"confg\"", "did you mean config?"],
    );
    wrong_at(
        &file("        zzz: 5"),
        7,
        9,
        &["the keys here are command, args, env"],
    );
    wrong_at(
        "- name: dsh-tool-lsp\n  config: {maxLocation: 5}\n",
        2,
        12,
        &["\"maxLocation\"", "did you mean maxLocations?"],
    );
    wrong_at(
        "- name: dsh-tool-lsp\n  timeoutMs: 5\n",
        2,
        3,
        &["a key of dsh-tool-lsp's `config`", "indent it"],
    );
    wrong_at(
        "- name: dsh-lsp\n  config: {a: 1}\n",
        2,
        12,
        &["dsh-lsp takes no configuration"],
    );
    // Free tables stay free.
    parse(&file(
        "        initializationOptions: {anything: {goes: [here]}}",
    ));
}

/// CFG-3, RUN-3.
#[test]
fn a_wrong_value_is_told_with_its_place_and_the_whole_key() {
    let file = |line: &str| {
        format!(
            "- name: dsh-lsp-stdio\n  config:\n    servers:\n      ts:\n        command: x\n        \
             extensionToLanguage: {{.ts: ts}}\n        {line}\n"
        )
    };
    wrong_at(
        &file("killGraceMs: fast"),
        7,
        22,
        &["servers.ts.killGraceMs", "\"fast\""],
    );
    wrong_at(
        &file("killGraceMs: 0"),
        7,
        22,
        &["servers.ts.killGraceMs", "positive"],
    );
    wrong_at(
        &file("killGraceMs: 2147483648"),
        7,
        22,
        &["servers.ts.killGraceMs", "2147483647"],
    );
    wrong_at(
        &file("maxMessageBytes: 1.5"),
        7,
        26,
        &["servers.ts.maxMessageBytes"],
    );
    wrong_at(
        &file("args: [a, 1]"),
        7,
        19,
        &["servers.ts.args.1", "put it in quotes"],
    );
    wrong_at(
        &file("announceConfiguration: yes"),
        7,
        32,
        &["true or false", "\"yes\""],
    );
    wrong_at(
        "- name: dsh-lsp-stdio\n  config: {servers: {}}\n",
        2,
        21,
        &["servers: is empty"],
    );
    wrong_at(
        "- name: dsh-lsp-stdio\n  config: {servers: {a: {command: x}}}\n",
        2,
        25,
        &["servers.a.extensionToLanguage", "is missing"],
    );
    wrong_at("- name: dsh-lsp-stdio\n", 1, 3, &["servers", "is missing"]);
    wrong_at(
        "- name: dsh-tool-lsp\n  config:\n    maxLocations: 3\n    timeoutMs: -1\n",
        4,
        16,
        &["timeoutMs must be a positive integer"],
    );
    wrong_at(
        "- name: dsh-tool-call-timeout-policy\n  config:\n    settleMs: soon\n",
        3,
        15,
        &["settleMs", "\"soon\""],
    );
}

/// RUN-3: YAML's own traps.
#[test]
fn tabs_missing_quotes_and_double_keys_are_told_as_what_they_are() {
    wrong_at(
        "- name: dsh-lsp\n  config:\n\ta: 1\n",
        3,
        1,
        &["a tab", "use spaces"],
    );
    wrong_at(
        "- name: @deepseek-ai/dsh-lsp\n",
        1,
        9,
        &["must be quoted", "\"@deepseek-ai/dsh-lsp\""],
    );
    wrong_at(
        "- name: dsh-lsp\n  name: dsh-lsp\n",
        2,
        3,
        &["\"name\"", "a second time"],
    );
}

/// RUN-3.
#[test]
fn words_like_off_and_no_stay_strings_where_a_string_is_due() {
    let text = "- name: dsh-lsp-stdio\n  config:\n    servers:\n      no:\n        command: off\n        \
                extensionToLanguage: {.n: No}\n";
    let deployment = parse(text);
    let RowConfig::LspStdio(config) = deployment.rows()[0].config() else {
        panic!("a host")
    };
    assert_eq!(config.servers["no"].command, "off");
    assert_eq!(config.servers["no"].extension_to_language[".n"], "No");
}

/// RUN-3.
#[test]
fn two_rows_with_one_id_or_of_one_plugin_are_refused() {
    let host = |id: &str, extension: &str| {
        format!(
            "- name: dsh-lsp-stdio\n  {id}\n  config: {{servers: {{a: {{command: x, \
             extensionToLanguage: {{{extension}: a}}}}}}}}\n"
        )
    };
    parse(&(host("id: one", ".a") + &host("id: two", ".b")));
    let twice = host("id: one", ".a") + &host("id: one", ".b");
    wrong_at(&twice, 5, 7, &["the row id \"one\" is taken by line 2"]);
    wrong_at(
        "- name: dsh-lsp\n- name: deepseek-ai/dsh-lsp\n",
        2,
        9,
        &["named by line 1 already"],
    );
}

/// RUN-3.
#[test]
fn a_file_of_another_shape_is_told_what_is_expected() {
    wrong_at("", 1, 1, &["a list of rows", "nothing"]);
    wrong_at("servers: {}\n", 1, 1, &["a list of rows", "a table"]);
    wrong_at("- dsh-lsp\n", 1, 3, &["`- name: …`", "a string"]);
    wrong_at("- id: x\n", 1, 3, &["no `name`"]);
    wrong_at(
        "- name: 7\n",
        1,
        9,
        &["`name` must be a string", "a number"],
    );
    wrong_at("- name: ''\n", 1, 9, &["blank"]);
    wrong_at(
        "- name: dsh-lsp\n  id: [a]\n",
        2,
        7,
        &["`id` must be a string", "a list"],
    );
    wrong_at(
        "- name: dsh-lsp\n  config: 3\n",
        2,
        11,
        &["`config` of dsh-lsp", "a number"],
    );
    assert_eq!(parse("[]\n").rows(), []);
}

#[test]
fn a_name_of_any_length_makes_a_short_error() {
    let error = wrong(&format!("- name: {}\n", "x".repeat(1_000_000)));
    assert!(
        error.to_string().len() < 400,
        "{} bytes",
        error.to_string().len()
    );
}

/// RUN-3: a deployment made in code and one read from a file are the same thing.
#[test]
fn a_deployment_can_be_put_together_in_code() {
    let read = parse(SEED);
    let RowConfig::LspStdio(config) = read.rows()[3].config() else {
        panic!("a host")
    };
    let RowConfig::ToolLsp(tool) = read.rows()[4].config() else {
        panic!("a tool")
    };
    let made = Deployment::language_servers(config.clone()).with_tool(*tool);
    let configs = |deployment: &Deployment| -> Vec<_> {
        deployment
            .rows()
            .iter()
            .map(|row| row.config().clone())
            .collect()
    };
    assert_eq!(configs(&made), configs(&read)[..5]);
}

/// INS-11: a budget that is not finite is one; every other key takes finite numbers alone.
#[test]
fn a_number_that_is_not_finite_switches_instructions_off_and_is_nothing_else() {
    for written in [".nan", ".NaN", ".inf", "-.inf"] {
        let text = format!("- name: dsh-workspace-context\n  config: {{maxBytes: {written}}}\n");
        let RowConfig::WorkspaceContext(config) = parse(&text).rows()[0].config().clone() else {
            panic!("it is that row")
        };
        assert!(
            !config.max_bytes.is_finite(),
            "{written}: {}",
            config.max_bytes
        );
    }
    wrong_at(
        "- name: dsh-workspace-context\n  config: {maxBytes: 1, maxSourceBytes: .inf}\n",
        2,
        41,
        &["maxSourceBytes", "finite", ".inf"],
    );
    wrong_at(
        "- name: dsh-workspace-context\n  config: {maxBytes: 1, dshHome: .nan}\n",
        2,
        34,
        &["dshHome", "finite"],
    );
    wrong_at(
        "- name: dsh-tool-fs\n  config: {limit: .nan}\n",
        2,
        19,
        &["limit", "finite", ".nan"],
    );
    let server = "- name: dsh-lsp-stdio\n  config:\n    servers:\n      toy:\n        command: t\n        \
                  extensionToLanguage: {.toy: toy}\n        initializationOptions: {a: [1, .nan]}\n";
    let error = wrong(server);
    assert_eq!(error.line(), 7, "{error}");
    assert!(
        error.problem().contains("initializationOptions.a.1"),
        "{error}"
    );
    let error = wrong("- name: .nan\n");
    assert!(error.problem().contains("a number"), "{error}");
}

/// The committed reference is what the types say.
#[test]
fn the_reference_of_the_configuration_is_current() {
    let committed = include_str!("../CONFIG.md");
    assert!(
        committed == config_reference(),
        "harness/runtime/CONFIG.md is stale; write it anew with\n\
         cargo run -p dsh-harness --example config-reference > harness/runtime/CONFIG.md"
    );
    for key in [
        "`servers.<id>.command`",
        "`servers.<id>.killGraceMs`",
        "`timeoutMs`",
        "`settleMs`",
    ] {
        assert!(committed.contains(key), "{key} is missing");
    }
}
