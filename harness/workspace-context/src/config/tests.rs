use serde_json::{Value, json};

use super::*;

fn read(value: Value) -> Result<WorkspaceContextConfig, String> {
    serde_json::from_value(value).map_err(|error: serde_json::Error| error.to_string())
}

fn at_home() -> HomeVariables {
    HomeVariables {
        home: Some("/home/me".to_owned()),
        dsh_home: None,
    }
}

/// INS-17: the keys and their defaults.
#[test]
fn defaults_and_keys() {
    let config = read(json!({"maxBytes": 32000})).unwrap();
    assert_eq!(config, WorkspaceContextConfig::new(32000.0));
    let all = json!({
        "dshHome": "~/x",
        "projectRootMarkers": ["WORKSPACE"],
        "maxBytes": 1.5,
        "maxSourceBytes": 7,
        "instructionFileCandidates": ["A"],
        "localInstructionFileCandidates": [],
    });
    let config = read(all.clone()).unwrap();
    assert_eq!(serde_json::to_value(&config).unwrap(), all);
    let settings = config.settle(&at_home()).unwrap();
    assert_eq!(
        settings,
        Settings {
            home: Some(Home {
                dir: "/home/me/x".into(),
                shown: "$DSH_HOME"
            }),
            markers: vec!["WORKSPACE".to_owned()],
            base: vec!["A".to_owned()],
            local: vec![],
            max_bytes: Some(1),
            max_source_bytes: 7,
        }
    );
}

/// INS-11: budgets that are not finite switch it off; JSON has them as YAML writes them.
#[test]
fn a_budget_that_is_not_finite_switches_it_off() {
    for written in [".nan", ".inf", "-.inf"] {
        let config = read(json!({"maxBytes": written})).unwrap();
        assert_eq!(
            config.settle(&at_home()).unwrap().max_bytes,
            None,
            "{written}"
        );
    }
}

/// INS-11, INS-13, INS-17: what a key does not take is refused by its name.
#[test]
fn a_wrong_value_names_its_key() {
    for (key, values) in [
        (
            "maxBytes",
            vec![json!("1"), json!(null), json!(true), json!([1]), json!({})],
        ),
        (
            "maxSourceBytes",
            vec![
                json!(0),
                json!(-1),
                json!(1.5),
                json!("1"),
                json!(null),
                json!([]),
            ],
        ),
        ("dshHome", vec![json!(1), json!(null), json!(["~"])]),
        (
            "projectRootMarkers",
            vec![json!(".git"), json!([1]), json!(null)],
        ),
        (
            "instructionFileCandidates",
            vec![json!("A"), json!([null]), json!({})],
        ),
        (
            "localInstructionFileCandidates",
            vec![json!(false), json!([[]])],
        ),
    ] {
        for value in values {
            let mut config = json!({"maxBytes": 1000});
            config[key] = value.clone();
            let error = read(config).expect_err("the value is wrong");
            assert!(
                error.starts_with(&format!("{key} must be ")),
                "{value}: {error}"
            );
        }
    }
    assert!(
        read(json!({}))
            .unwrap_err()
            .contains("missing field `maxBytes`")
    );
    let unknown = read(json!({"maxBytes": 1, "maxByte": 2})).unwrap_err();
    assert!(unknown.contains("`maxByte`"), "{unknown}");
}

/// INS-13: a value made in code is checked too.
#[test]
fn a_source_limit_of_zero_fails_at_the_start() {
    let config = WorkspaceContextConfig {
        max_source_bytes: 0,
        ..WorkspaceContextConfig::new(1.0)
    };
    let error = config.settle(&at_home()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "maxSourceBytes must be a positive integer, not 0"
    );
}

/// INS-11.
#[test]
fn a_budget_that_is_no_positive_finite_number_switches_instructions_off() {
    for (max_bytes, expected) in [
        (0.0, None),
        (-0.0, None),
        (-1.0, None),
        (0.9, None),
        (f64::NAN, None),
        (f64::INFINITY, None),
        (f64::NEG_INFINITY, None),
        (1.0, Some(1)),
        (4096.7, Some(4096)),
        (1e300, Some(usize::MAX)),
    ] {
        let settings = WorkspaceContextConfig::new(max_bytes)
            .settle(&at_home())
            .unwrap();
        assert_eq!(settings.max_bytes, expected, "{max_bytes}");
    }
}

/// INS-17: a candidate is a name in its own directory.
#[test]
fn names_that_lead_elsewhere_are_ignored() {
    let given = [
        "",
        ".",
        "..",
        "a/b",
        "a\\b",
        "/etc/passwd",
        "A.md",
        "...",
        " ",
    ];
    let given: Vec<_> = given.map(str::to_owned).into();
    let config = WorkspaceContextConfig {
        instruction_file_candidates: given.clone(),
        local_instruction_file_candidates: given,
        ..WorkspaceContextConfig::new(1.0)
    };
    let settings = config.settle(&at_home()).unwrap();
    assert_eq!(settings.base, ["A.md", "...", " "]);
    assert_eq!(settings.local, settings.base);
}

#[track_caller]
fn check_home(config: Option<&str>, variable: Option<&str>, expected: Result<(&str, &str), &str>) {
    let config = WorkspaceContextConfig {
        dsh_home: config.map(str::to_owned),
        ..WorkspaceContextConfig::new(1.0)
    };
    let environment = HomeVariables {
        dsh_home: variable.map(str::to_owned),
        ..at_home()
    };
    let found = config.settle(&environment).map(|settings| settings.home);
    match (found, expected) {
        (Ok(Some(home)), Ok((dir, shown))) => {
            assert_eq!((home.dir, home.shown), (PathBuf::from(dir), shown));
        }
        (Err(error), Err(key)) => assert_eq!(error.key, key, "{error}"),
        (found, expected) => panic!("{found:?}, not {expected:?}"),
    }
}

/// INS-4, INS-17: the key wins over the variable; `~` stands for the user's home; the default is
/// shown as such, however it is spelled.
#[test]
fn the_home_of_the_users_own_file() {
    check_home(None, None, Ok(("/home/me/.dsh", "~/.dsh")));
    check_home(None, Some(""), Ok(("/home/me/.dsh", "~/.dsh")));
    check_home(None, Some("/v"), Ok(("/v", "$DSH_HOME")));
    check_home(Some("/c"), Some("/v"), Ok(("/c", "$DSH_HOME")));
    check_home(Some("~"), None, Ok(("/home/me", "$DSH_HOME")));
    check_home(Some("~/a/b"), None, Ok(("/home/me/a/b", "$DSH_HOME")));
    check_home(Some("~\\a\\b"), None, Ok(("/home/me/a/b", "$DSH_HOME")));
    check_home(Some("~//etc"), None, Ok(("/home/me/etc", "$DSH_HOME")));
    check_home(Some("~/x/../.dsh/"), None, Ok(("/home/me/.dsh", "~/.dsh")));
    check_home(None, Some("~/v"), Ok(("/home/me/v", "$DSH_HOME")));
    check_home(Some("relative"), None, Err("dshHome"));
    check_home(Some("~other/x"), None, Err("dshHome"));
    check_home(Some(""), None, Err("dshHome"));
    check_home(None, Some("relative"), Err("DSH_HOME"));
}

/// INS-17: nothing stands in for a home that is not known.
#[test]
fn without_a_home_there_is_no_file_of_the_users() {
    let nobody = HomeVariables::default();
    let config = WorkspaceContextConfig::new(1.0);
    assert_eq!(config.settle(&nobody).unwrap().home, None);
    let config = WorkspaceContextConfig {
        dsh_home: Some("~/x".to_owned()),
        ..config
    };
    assert_eq!(config.settle(&nobody).unwrap_err().key, "dshHome");
}
