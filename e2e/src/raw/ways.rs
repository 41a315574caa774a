//! The ways of a client that are tried: pure.

use serde_json::{Value, json};

use super::manner::{Manner, Params, Requests};
use super::persona::About;

/// One way of a client: its name, what it does, what it is about.
pub(super) struct Step {
    pub(super) name: &'static str,
    pub(super) summary: &'static str,
    pub(super) about: About,
    /// Whether it may be answered rightly where the usual way is not.
    pub(super) may_help: bool,
    pub(super) manner: Manner,
}

/// The ways that are tried first: those that a setting of the host may stand for.
pub(super) fn first(usual: &Manner, fine: bool) -> Vec<Step> {
    let mut steps = vec![
        Step {
            name: "requests-refused",
            summary: "refuses every request of the server with -32601",
            about: About::Requests,
            may_help: false,
            manner: Manner {
                requests: Requests::Refused,
                ..usual.clone()
            },
        },
        Step {
            name: "configuration-empty",
            summary: "answers workspace/configuration with {}",
            about: About::Configuration,
            may_help: true,
            manner: Manner {
                configuration: json!({}),
                ..usual.clone()
            },
        },
        Step {
            name: "configuration-announced",
            summary: "sends workspace/didChangeConfiguration right after initialized",
            about: About::Everything,
            may_help: true,
            manner: Manner {
                announce: true,
                ..usual.clone()
            },
        },
    ];
    if usual.configuration == json!({}) {
        steps.remove(1);
    }
    if !fine && usual.configuration.is_null() {
        steps.push(Step {
            name: "configuration-empty-announced",
            summary: "answers workspace/configuration with {}, and announces it after initialized",
            about: About::Everything,
            may_help: true,
            manner: Manner {
                configuration: json!({}),
                announce: true,
                ..usual.clone()
            },
        });
    }
    if !fine {
        // What may help comes before what may hurt.
        steps.rotate_left(1);
    }
    steps
}

/// The ways that follow when there is time.
pub(super) fn later(usual: &Manner) -> Vec<Step> {
    let mut steps = vec![
        Step {
            name: "shutdown-params-null",
            summary: "writes shutdown and exit with params null",
            about: About::End,
            may_help: false,
            manner: Manner {
                shutdown: Params::Null,
                ..usual.clone()
            },
        },
        Step {
            name: "shutdown-params-empty",
            summary: "writes shutdown and exit with params {}",
            about: About::End,
            may_help: false,
            manner: Manner {
                shutdown: Params::Empty,
                ..usual.clone()
            },
        },
        Step {
            name: "configuration-unsupported",
            summary: "does not announce the capability workspace.configuration",
            about: About::Everything,
            may_help: false,
            manner: Manner {
                configurable: false,
                ..usual.clone()
            },
        },
        Step {
            name: "requests-unanswered",
            summary: "answers no request of the server",
            about: About::Requests,
            may_help: false,
            manner: Manner {
                requests: Requests::Unanswered,
                ..usual.clone()
            },
        },
    ];
    if !usual.configuration.is_null() {
        steps.push(Step {
            name: "configuration-null",
            summary: "answers workspace/configuration with null",
            about: About::Configuration,
            may_help: false,
            manner: Manner {
                configuration: Value::Null,
                ..usual.clone()
            },
        });
    }
    steps
}
