//! What several test modules share.

use proptest::prelude::*;
use serde_json::{Value, json};

/// Any JSON of moderate size, the words of LSP more often than chance would have it.
pub(crate) fn any_json() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        Just("uri".to_owned()),
        Just("range".to_owned()),
        Just("start".to_owned()),
        Just("end".to_owned()),
        Just("line".to_owned()),
        Just("character".to_owned()),
        Just("targetUri".to_owned()),
        Just("targetSelectionRange".to_owned()),
        Just("contents".to_owned()),
        Just("kind".to_owned()),
        Just("markdown".to_owned()),
        Just("value".to_owned()),
        Just("language".to_owned()),
        "\\PC{0,8}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0..40_u64).prop_map(Value::from),
        any::<f64>().prop_map(|float| json!(float)),
        Just(json!(3.0)),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((word.clone(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}
