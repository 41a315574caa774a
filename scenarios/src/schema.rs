//! The JSON Schemas of what is written by hand: clause records and scenarios.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{Schema, json_schema};
use serde_json::{Value, json};

use crate::clause::Section;
use crate::format::Scenario;

/// The schema of one file of `clauses/`; committed as `schema/clauses.schema.json`.
pub fn clauses_schema() -> Value {
    schemars::schema_for!(Section).to_value()
}

/// The schema of a scenario file; committed as `schema/scenario.schema.json`.
///
/// It is about the file as it is written: wherever a value is no text, `$(axis)` may stand for it.
pub fn scenario_schema() -> Value {
    let generator = SchemaSettings::draft2020_12()
        .with_transform(RecursiveTransform(or_from_the_matrix))
        .into_generator();
    let mut schema = generator.into_root_schema_for::<Scenario>();
    if let Some(Value::Object(definitions)) = schema.get_mut("$defs") {
        let reference = json!({
            "description": "A value of the matrix, of whatever type it is.",
            "type": "string",
            "pattern": r"^\$\([^()]+\)$",
        });
        definitions.insert(FROM_THE_MATRIX.to_owned(), reference);
    }
    schema.to_value()
}

const FROM_THE_MATRIX: &str = "FromTheMatrix";

/// Has `$(axis)` stand where a member, an entry of a list or a value of an object stands that is no
/// text.
fn or_from_the_matrix(schema: &mut Schema) {
    let Some(members) = schema.as_object_mut() else {
        return;
    };
    if let Some(Value::Object(properties)) = members.get_mut("properties") {
        properties.values_mut().for_each(allow);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(value) = members.get_mut(key) {
            allow(value);
        }
    }
    if let Some(Value::Object(patterns)) = members.get_mut("patternProperties") {
        patterns.values_mut().for_each(allow);
    }
}

fn allow(value: &mut Value) {
    let Value::Object(members) = &*value else {
        return;
    };
    let is_text = |kind: &Value| kind == "string";
    let takes_text = match members.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(is_text),
        Some(kind) => is_text(kind),
        None => !members
            .keys()
            .any(|key| key == "$ref" || key == "anyOf" || key == "oneOf"),
    };
    let constrained = ["pattern", "enum", "const"];
    if takes_text && !constrained.iter().any(|key| members.contains_key(*key)) {
        return;
    }
    let mut inner = std::mem::take(value);
    // What is said about the member stays in front, where editors show it.
    let description = inner
        .as_object_mut()
        .and_then(|members| members.shift_remove("description"));
    let reference = json!({"$ref": format!("#/$defs/{FROM_THE_MATRIX}")});
    let mut outer = json_schema!({"anyOf": [inner, reference]});
    if let Some(description) = description {
        outer.insert("description".to_owned(), description);
    }
    *value = outer.to_value();
}
