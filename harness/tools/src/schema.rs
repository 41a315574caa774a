//! JSON Schemas: compiled once, and their errors in words that a model can act on.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{ValidationError, Validator};
use serde_json::Value;

/// Most faults that one message names; a model that gets these right sees the next ones then.
const MAX_FAULTS: usize = 8;
/// Most faults that are looked at: many may read the same.
const MAX_EXAMINED: usize = 256;
/// Most characters of a value that a message quotes.
const MAX_QUOTE: usize = 60;
/// Most characters of a path to a value; its keys are the model's.
const MAX_PLACE: usize = 120;
/// Most characters of a message that is not ours.
const MAX_FOREIGN: usize = 200;

/// A compiled schema.
pub(crate) struct Schema {
    validator: Validator,
    properties: Vec<String>,
    /// What the root is called in messages.
    root: &'static str,
}

impl Schema {
    /// Compiles a schema; the error says what is wrong with it.
    pub(crate) fn compile(schema: &Value, root: &'static str) -> Result<Self, String> {
        let validator = jsonschema::draft202012::new(schema).map_err(|error| {
            let at = error.instance_path().to_string();
            let at = if at.is_empty() {
                "its root".to_owned()
            } else {
                at
            };
            format!("at {at}: {}", clip(&error.to_string(), MAX_FOREIGN))
        })?;
        let properties = schema.get("properties").and_then(Value::as_object);
        let properties = properties
            .map(|all| all.keys().cloned().collect())
            .unwrap_or_default();
        Ok(Self {
            validator,
            properties,
            root,
        })
    }

    /// What is wrong with a value, fault by fault; `Ok` if nothing is.
    pub(crate) fn check(&self, value: &Value) -> Result<(), String> {
        if self.validator.is_valid(value) {
            return Ok(());
        }
        let mut faults = Vec::new();
        for error in self.validator.iter_errors(value).take(MAX_EXAMINED) {
            if faults.len() == MAX_FAULTS {
                faults.push("and more".to_owned());
                break;
            }
            let fault = self.describe(&error);
            if !faults.contains(&fault) {
                faults.push(fault);
            }
        }
        Err(faults.join("; "))
    }

    fn describe(&self, error: &ValidationError<'_>) -> String {
        use ValidationErrorKind as Kind;
        let pointer = error.instance_path().to_string();
        let name = place(&pointer, self.root);
        let was = quote(error.instance());
        match error.kind() {
            Kind::Required { property } => {
                let property = property.as_str().unwrap_or_default();
                if pointer.is_empty() {
                    format!("{property:?} is missing")
                } else {
                    format!("{name} lacks {property:?}")
                }
            }
            Kind::Type { kind } => match encoded_twice(kind, error.instance()) {
                Some(what) => format!(
                    "{name} must be {}, and this is {what} inside a string; give it as it is, without \
                     quotes around it and without backslashes",
                    types(kind)
                ),
                None => format!("{name} must be {}, not {was}", types(kind)),
            },
            Kind::AdditionalProperties { unexpected }
            | Kind::UnevaluatedProperties { unexpected } => {
                let known = if pointer.is_empty() {
                    self.properties.as_slice()
                } else {
                    &[]
                };
                let shown = unexpected.iter().take(MAX_FAULTS);
                let unknown: Vec<_> = shown.map(|property| unknown(property, known)).collect();
                let of = if pointer.is_empty() {
                    String::new()
                } else {
                    format!(" in {name}")
                };
                format!("{}{of}", unknown.join(", "))
            }
            Kind::Enum { options } => {
                let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
                let options: Vec<_> = options
                    .iter()
                    .map(|option| clip(&option.to_string(), MAX_QUOTE))
                    .collect();
                format!("{name} must be one of {}, not {was}", options.join(", "))
            }
            Kind::Constant { expected_value } => {
                format!("{name} must be {}, not {was}", quote(expected_value))
            }
            Kind::Minimum { limit } => format!("{name} must be at least {limit}, not {was}"),
            Kind::Maximum { limit } => format!("{name} must be at most {limit}, not {was}"),
            Kind::ExclusiveMinimum { limit } => {
                format!("{name} must be greater than {limit}, not {was}")
            }
            Kind::ExclusiveMaximum { limit } => {
                format!("{name} must be less than {limit}, not {was}")
            }
            Kind::MinLength { limit } => {
                format!("{name} must have at least {limit} characters, not {was}")
            }
            Kind::MaxLength { limit } => format!("{name} must have at most {limit} characters"),
            Kind::MinItems { limit } => format!("{name} must have at least {limit} items"),
            Kind::MaxItems { limit } => format!("{name} must have at most {limit} items"),
            Kind::Pattern { pattern } => format!("{name} must match {pattern}, not {was}"),
            _ => format!("{name}: {}", clip(&error.to_string(), MAX_FOREIGN)),
        }
    }
}

/// A JSON pointer as a path that reads like code: `/a/0/b` is `"a[0].b"`.
fn place(pointer: &str, root: &str) -> String {
    if pointer.is_empty() {
        return root.to_owned();
    }
    let mut path = String::new();
    for token in pointer.split('/').skip(1) {
        if !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_digit()) {
            path.push('[');
            path.push_str(token);
            path.push(']');
        } else {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(&token.replace("~1", "/").replace("~0", "~"));
        }
    }
    format!("{:?}", clip(&path, MAX_PLACE))
}

fn unknown(property: &str, known: &[String]) -> String {
    let shown = format!("{:?} is not known", clip(property, MAX_QUOTE));
    match nearest(property, known.iter().map(String::as_str)) {
        Some(near) => format!("{shown} (did you mean {near:?}?)"),
        None => shown,
    }
}

/// The candidate that a misspelt `name` was probably meant to be. Case does not count; a name that is
/// longer than 128 bytes is near to none.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // The distance costs time in the product of the lengths; no name is that long.
    if name.len() > 128 {
        return None;
    }
    let spelling = name.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| {
            (
                strsim::damerau_levenshtein(&spelling, &candidate.to_lowercase()),
                candidate,
            )
        })
        .filter(|(distance, candidate)| *distance <= 1 + candidate.chars().count() / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

fn types(kind: &TypeKind) -> String {
    let with_article = |name: String| {
        let article = if name.starts_with(['a', 'i', 'o']) {
            "an"
        } else {
            "a"
        };
        if name == "null" {
            name
        } else {
            format!("{article} {name}")
        }
    };
    match kind {
        TypeKind::Single(one) => with_article(one.to_string()),
        TypeKind::Multiple(several) => {
            let names: Vec<_> = several
                .iter()
                .map(|one| with_article(one.to_string()))
                .collect();
            names.join(" or ")
        }
    }
}

/// What a string holds that, written as JSON of its own, would have been right: models put objects
/// and arrays into strings.
fn encoded_twice(kind: &TypeKind, value: &Value) -> Option<&'static str> {
    let text = value.as_str()?.trim();
    let (names, what): (&[&str], _) = match text.as_bytes().first()? {
        b'[' => (&["array"], "an array"),
        b'{' => (&["object"], "an object"),
        b'-' | b'0'..=b'9' if text.contains(['.', 'e', 'E']) => (&["number"], "a number"),
        b'-' | b'0'..=b'9' => (&["integer", "number"], "a number"),
        b't' | b'f' => (&["boolean"], "a boolean"),
        _ => return None,
    };
    // Looked at without being built: it may have any size.
    serde_json::from_str::<serde::de::IgnoredAny>(text).ok()?;
    let fits = |one: String| names.contains(&one.as_str());
    let wanted = match kind {
        TypeKind::Single(one) => fits(one.to_string()),
        TypeKind::Multiple(several) => several.iter().any(|one| fits(one.to_string())),
    };
    wanted.then_some(what)
}

/// A value as the message names it: its kind, and its JSON where that is short.
fn quote(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => {
            let cut = clip(text, MAX_QUOTE);
            format!("the string {cut:?}")
        }
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// At most `max` characters, with a sign that something was left out.
pub(crate) fn clip(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn schema() -> Schema {
        Schema::compile(
            &json!({
                "type": "object",
                "properties": {
                    "operation": {"enum": ["hover", "goToDefinition"]},
                    "file_path": {"type": "string", "minLength": 1},
                    "line": {"type": "integer", "minimum": 1},
                    "nested": {
                        "type": "array",
                        "items": {"type": "object", "required": ["a"], "additionalProperties": false,
                                  "properties": {"a": {"type": ["string", "null"]}}},
                    },
                },
                "required": ["operation", "line"],
                "additionalProperties": false,
            }),
            "the arguments",
        )
        .unwrap()
    }

    #[track_caller]
    fn check(value: &Value, words: &str) {
        assert_eq!(schema().check(value), Err(words.to_owned()));
    }

    /// RUN-4.
    #[test]
    fn faults_are_told_in_words_with_the_argument_s_name() {
        check(
            &json!([]),
            "the arguments must be an object, not an array of 0",
        );
        check(&json!({"operation": "hover"}), "\"line\" is missing");
        check(
            &json!({"operation": "hover", "line": "12"}),
            "\"line\" must be an integer, and this is a number inside a string; give it as it is, \
             without quotes around it and without backslashes",
        );
        check(
            &json!({"operation": "hover", "line": "twelve"}),
            "\"line\" must be an integer, not the string \"twelve\"",
        );
        check(
            &json!({"operation": "hover", "line": 1, "nested": "[{\"a\": \"b\"}]"}),
            "\"nested\" must be an array, and this is an array inside a string; give it as it is, \
             without quotes around it and without backslashes",
        );
        check(
            &json!({"operation": "hover", "line": 1, "nested": "[{\"a\": "}),
            "\"nested\" must be an array, not the string \"[{\\\"a\\\": \"",
        );
        check(
            &json!("{\"operation\": \"hover\", \"line\": 1}"),
            "the arguments must be an object, and this is an object inside a string; give it as it \
             is, without quotes around it and without backslashes",
        );
        check(
            &json!({"operation": "hover", "line": 0}),
            "\"line\" must be at least 1, not 0",
        );
        check(
            &json!({"operation": "rename", "line": 1}),
            "\"operation\" must be one of \"hover\", \"goToDefinition\", not the string \"rename\"",
        );
        check(
            &json!({"operation": "hover", "line": 1, "filepath": "a.ts"}),
            "\"filepath\" is not known (did you mean \"file_path\"?)",
        );
        check(
            &json!({"operation": "hover", "line": 1, "nested": [{"a": 7}, {}]}),
            "\"nested[0].a\" must be null or a string, not 7; \"nested[1]\" lacks \"a\"",
        );
    }

    /// RUN-4.
    #[test]
    fn a_schema_that_is_none_is_an_error_that_says_where() {
        let error = Schema::compile(&json!({"properties": {"a": {"type": "strin"}}}), "x").err();
        let error = error.unwrap();
        assert!(error.contains("/properties/a/type"), "{error}");
    }

    #[test]
    fn a_schema_that_refers_elsewhere_is_refused_and_nothing_is_fetched() {
        let remote = json!({"$ref": "https://example.invalid/schema.json"});
        assert!(Schema::compile(&remote, "x").is_err());
        let file = json!({"$ref": "file:///etc/passwd"});
        assert!(Schema::compile(&file, "x").is_err());
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        let key = prop_oneof![
            Just("operation".to_owned()),
            Just("line".to_owned()),
            Just("nested".to_owned()),
            any::<String>(),
        ];
        leaf.prop_recursive(3, 24, 6, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::vec((key.clone(), inner), 0..5)
                    .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// RUN-4: any JSON may come from a model; the message stays short.
        #[test]
        fn any_arguments_are_judged_without_a_panic_and_in_bounded_words(value in any_json()) {
            if let Err(words) = schema().check(&value) {
                prop_assert!(!words.is_empty());
                prop_assert!(words.chars().count() < 9 * 2000, "{}", words);
            }
        }
    }
}
