//! The JSON Schema of a file of clause records.

use serde_json::Value;

use crate::clause::Section;

/// The schema of one file of `clauses/`; committed as `schema/clauses.schema.json`.
pub fn clauses_schema() -> Value {
    schemars::schema_for!(Section).to_value()
}
