//! The tool's arguments: from the model's JSON to a question in the seam's terms (TOOL-1, TOOL-2).
//!
//! The model counts from one, the seam from zero; this is the only place where one becomes the
//! other on the way in. Nothing is queried here and no path is looked at.

use std::fmt;

use dsh_lsp::{Operation, Position};
use serde_json::{Map, Value, json};

use crate::text::excerpt;

/// How positions are counted, in the words that every refusal ends with (TOOL-2).
pub const CONVENTION: &str = "line and character are one-based; character counts UTF-16 code units";

/// The last line or character that can be asked for: LSP's positions are 31 bits wide and start
/// at zero.
const LAST: u64 = 1 << 31;

/// How many unknown arguments a refusal names.
const NAMED: usize = 3;

const KEYS: [&str; 4] = ["operation", "file_path", "line", "character"];

/// Checked arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arguments {
    /// What is asked.
    pub operation: Operation,
    /// The file as the model wrote it: absolute, or relative to the workspace.
    pub file_path: String,
    /// Where in it, zero-based as on the seam.
    pub position: Position,
}

/// Arguments that cannot be asked with; every reason is named, so that one correction is enough.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}. In this tool {CONVENTION}.", Listed(.reasons))]
pub struct InvalidArguments {
    /// What is wrong, at least one.
    pub reasons: Vec<Reason>,
}

/// One thing that is wrong with the arguments.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// The arguments as a whole are no JSON object.
    #[error(
        "the arguments must be an object with operation, file_path, line and character, not {0}"
    )]
    NotAnObject(String),
    /// One of the four is not there.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// There is one that the tool does not have.
    #[error(
        "\"{0}\" is no argument of this tool: it takes operation, file_path, line and character"
    )]
    Unknown(String),
    /// Not one of the four operations.
    #[error(
        "operation must be goToDefinition, findReferences, goToImplementation or hover, not {0}"
    )]
    Operation(String),
    /// Not a path.
    #[error("file_path must be a non-empty string, not {0}")]
    FilePath(String),
    /// A number in quotes.
    #[error("{key} must be a number: write {digits}, not \"{digits}\"")]
    Quoted {
        /// `line` or `character`.
        key: &'static str,
        /// What stood between the quotes.
        digits: String,
    },
    /// Not a positive integer.
    #[error("{key} must be a positive integer, not {got}")]
    NotPositive {
        /// `line` or `character`.
        key: &'static str,
        /// What came instead.
        got: String,
    },
    /// An integer that no document reaches.
    #[error("{key} must be at most {LAST}, not {got}")]
    TooLarge {
        /// `line` or `character`.
        key: &'static str,
        /// What came instead.
        got: String,
    },
}

struct Listed<'a>(&'a [Reason]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, reason) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            reason.fmt(f)?;
        }
        Ok(())
    }
}

impl Arguments {
    /// Checks what the model sent. Integers may come as `3.0`: in JSON that is the same number.
    pub fn parse(value: &Value) -> Result<Self, InvalidArguments> {
        let Some(object) = value.as_object() else {
            return Err(InvalidArguments {
                reasons: vec![Reason::NotAnObject(shown(value))],
            });
        };
        let mut reasons = Vec::new();
        let operation = accept(operation(object), &mut reasons);
        let file_path = accept(file_path(object), &mut reasons);
        let line = accept(zero_based(object, "line"), &mut reasons);
        let character = accept(zero_based(object, "character"), &mut reasons);
        reasons.extend(
            object
                .keys()
                .filter(|key| !KEYS.contains(&key.as_str()))
                .take(NAMED)
                .map(|key| Reason::Unknown(excerpt(key))),
        );
        match (operation, file_path, line, character) {
            (Some(operation), Some(file_path), Some(line), Some(character))
                if reasons.is_empty() =>
            {
                Ok(Self {
                    operation,
                    file_path,
                    position: Position { line, character },
                })
            }
            _ => Err(InvalidArguments { reasons }),
        }
    }
}

/// The JSON Schema of the arguments, which the model sees (TOOL-1).
pub fn parameters_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "operation": {
                "type": "string",
                "enum": Operation::ALL.map(Operation::as_str),
                "description": "What to ask: goToDefinition (where the symbol is defined), \
                    findReferences (where it is used, its declaration included), \
                    goToImplementation (what implements it) or hover (its type and documentation).",
            },
            "file_path": {
                "type": "string",
                "minLength": 1,
                "description": "The file that holds the symbol: relative to the workspace, or \
                    absolute.",
            },
            "line": {
                "type": "integer",
                "minimum": 1,
                "description": "Line of the symbol, one-based.",
            },
            "character": {
                "type": "integer",
                "minimum": 1,
                "description": "Column of the symbol, one-based, in UTF-16 code units.",
            },
        },
        "required": KEYS,
        "additionalProperties": false,
    })
}

fn accept<T>(checked: Result<T, Reason>, reasons: &mut Vec<Reason>) -> Option<T> {
    checked.map_err(|reason| reasons.push(reason)).ok()
}

fn member<'a>(object: &'a Map<String, Value>, key: &'static str) -> Result<&'a Value, Reason> {
    object.get(key).ok_or(Reason::Missing(key))
}

fn operation(object: &Map<String, Value>) -> Result<Operation, Reason> {
    let value = member(object, "operation")?;
    value
        .as_str()
        .and_then(|name| name.parse().ok())
        .ok_or_else(|| Reason::Operation(shown(value)))
}

fn file_path(object: &Map<String, Value>) -> Result<String, Reason> {
    let value = member(object, "file_path")?;
    match value.as_str() {
        Some(path) if !path.trim().is_empty() => Ok(path.to_owned()),
        _ => Err(Reason::FilePath(shown(value))),
    }
}

fn zero_based(object: &Map<String, Value>, key: &'static str) -> Result<u64, Reason> {
    let value = member(object, key)?;
    if let Some(text) = value.as_str() {
        let digits = text.trim();
        if digits.parse::<u32>().is_ok_and(|number| number > 0) {
            return Err(Reason::Quoted {
                key,
                digits: digits.to_owned(),
            });
        }
    }
    match integer(value) {
        Some(one_based @ 1..=LAST) => Ok(one_based - 1),
        Some(one_based) if one_based > LAST => Err(Reason::TooLarge {
            key,
            got: shown(value),
        }),
        _ => Err(Reason::NotPositive {
            key,
            got: shown(value),
        }),
    }
}

/// The value as a non-negative integer; what is larger than `u64` is as good as its maximum here.
fn integer(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number = value
            .as_f64()
            .filter(|number| number.fract() == 0.0 && *number >= 0.0)?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the cast saturates, and the number is neither negative nor fractional"
        )]
        let integer = number as u64;
        Some(integer)
    })
}

/// A value as a message may show it: short, and on one line.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) => format!("\"{}\"", excerpt(text)),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;

    use super::*;

    fn good() -> Value {
        json!({"operation": "hover", "file_path": "src/a.ts", "line": 3, "character": 7})
    }

    #[track_caller]
    fn with(key: &str, value: Value) -> Value {
        let mut arguments = good();
        arguments[key] = value;
        arguments
    }

    #[track_caller]
    fn refused(arguments: &Value) -> String {
        Arguments::parse(arguments)
            .expect_err("these arguments are bad")
            .to_string()
    }

    /// TOOL-1, TOOL-2: the position goes to the seam zero-based, and `3.0` is an integer.
    #[test]
    fn one_based_becomes_zero_based() {
        for line in [json!(3), json!(3.0)] {
            let arguments = Arguments::parse(&with("line", line)).unwrap();
            assert_eq!(arguments.operation, Operation::Hover);
            assert_eq!(arguments.file_path, "src/a.ts");
            assert_eq!(
                arguments.position,
                Position {
                    line: 2,
                    character: 6
                }
            );
        }
    }

    /// TOOL-1: all four operations, and the two ends of the range.
    #[test]
    fn the_four_operations_and_the_ends_of_the_range_are_accepted() {
        for operation in Operation::ALL {
            let arguments =
                Arguments::parse(&with("operation", json!(operation.as_str()))).unwrap();
            assert_eq!(arguments.operation, operation);
        }
        let first = Arguments::parse(&with("character", json!(1))).unwrap();
        assert_eq!(first.position.character, 0);
        let last = Arguments::parse(&with("character", json!(2_147_483_648_u64))).unwrap();
        assert_eq!(last.position.character, 2_147_483_647);
    }

    /// TOOL-1: the model's schema holds the four arguments and nothing else.
    #[test]
    fn the_schema_is_the_four_arguments() {
        insta::assert_json_snapshot!(parameters_schema());
    }

    /// TOOL-2: what is wrong is said, with the convention.
    #[test]
    fn bad_arguments_are_refused_with_what_is_wrong() {
        let cases = [
            json!(null),
            json!("goToDefinition src/a.ts:3:7"),
            json!([1, 2]),
            json!({}),
            with("operation", json!("rename")),
            with("operation", json!("GoToDefinition")),
            with("operation", json!(4)),
            with("file_path", json!("")),
            with("file_path", json!(" \n")),
            with("file_path", json!(["a.ts"])),
            with("file_path", json!(null)),
            with("line", json!(0)),
            with("line", json!(-1)),
            with("line", json!(-0.0)),
            with("line", json!(1.5)),
            with("line", json!("3")),
            with("line", json!("0")),
            with("line", json!("three")),
            with("line", json!(true)),
            with("line", json!(null)),
            with("character", json!(2_147_483_649_u64)),
            with("character", json!(u64::MAX)),
            with("character", json!(1e300)),
            with("character", json!(-1e300)),
            with("column", json!(7)),
            with("workspaceRoot", json!("/")),
            with("a\nb", json!(1)),
            json!({"operation": "definition", "path": "a.ts", "line": 0}),
        ];
        let mut text = String::new();
        for case in &cases {
            writeln!(text, "{case}\n  {}", refused(case)).unwrap();
        }
        insta::assert_snapshot!(text);
    }

    /// TOOL-2: whatever is wrong, the convention is stated.
    #[test]
    fn every_refusal_states_the_convention() {
        for key in KEYS {
            let mut arguments = good();
            arguments.as_object_mut().unwrap().remove(key);
            let message = refused(&arguments);
            assert!(message.contains(key), "{message}");
            assert!(
                message.contains("one-based") && message.contains("UTF-16"),
                "{message}"
            );
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(2, 8, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((any::<String>(), inner), 0..4)
                    .prop_map(|members| Value::from(members.into_iter().collect::<Map<_, _>>())),
            ]
        })
    }

    proptest! {
        /// TOOL-2: no arguments panic, a refusal is one short line, and what is accepted is in range.
        #[test]
        fn any_arguments_are_accepted_or_refused(
            key in prop_oneof![Just("operation"), Just("file_path"), Just("line"), Just("character")],
            value in any_json(),
        ) {
            for arguments in [value.clone(), with(key, value)] {
                match Arguments::parse(&arguments) {
                    Ok(arguments) => {
                        prop_assert!(arguments.position.line < LAST);
                        prop_assert!(arguments.position.character < LAST);
                        prop_assert!(!arguments.file_path.trim().is_empty());
                    }
                    Err(error) => {
                        let message = error.to_string();
                        prop_assert!(!message.contains('\n'));
                        prop_assert!(message.contains(CONVENTION));
                        prop_assert!(message.len() < 4_000, "{}", message.len());
                    }
                }
            }
        }
    }
}
