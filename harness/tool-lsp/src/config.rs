//! The keys of the tool's row in a deployment (TOOL-7, TOOL-9).

use std::fmt;

use schemars::JsonSchema;
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};

use crate::render::Caps;

/// The longest budget that every timer can keep, in milliseconds.
pub const MAX_TIMEOUT_MS: u64 = 2_147_483_647;

/// Caps and the budget of the tool. None of them is shown to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ToolLspConfig {
    /// How many locations are shown at most; the others are counted in a last line.
    #[serde(deserialize_with = "keys::max_locations")]
    #[schemars(range(min = 1))]
    pub max_locations: u64,
    /// How long the shown text is at most, in UTF-16 code units, its last line included.
    #[serde(deserialize_with = "keys::max_result_chars")]
    #[schemars(range(min = 1))]
    pub max_result_chars: u64,
    /// The budget of one call in milliseconds, queueing included; the timeout policy enforces it.
    #[serde(deserialize_with = "keys::timeout_ms")]
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub timeout_ms: u64,
}

impl Default for ToolLspConfig {
    fn default() -> Self {
        Self {
            max_locations: 100,
            max_result_chars: 16_000,
            timeout_ms: 60_000,
        }
    }
}

/// A value that a key does not take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} must be {}, not {got}", .key.range())]
pub struct InvalidConfig {
    /// The key.
    pub key: Key,
    /// What it was given.
    pub got: String,
}

/// A key of [`ToolLspConfig`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// `maxLocations`
    MaxLocations,
    /// `maxResultChars`
    MaxResultChars,
    /// `timeoutMs`
    TimeoutMs,
}

impl Key {
    const fn range(self) -> &'static str {
        match self {
            Self::MaxLocations | Self::MaxResultChars => "a positive integer",
            Self::TimeoutMs => "a positive integer of at most 2147483647 (milliseconds)",
        }
    }

    fn check(self, value: u64) -> Result<u64, InvalidConfig> {
        let most = if self == Self::TimeoutMs {
            MAX_TIMEOUT_MS
        } else {
            u64::MAX
        };
        if (1..=most).contains(&value) {
            Ok(value)
        } else {
            Err(InvalidConfig {
                key: self,
                got: value.to_string(),
            })
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MaxLocations => "maxLocations",
            Self::MaxResultChars => "maxResultChars",
            Self::TimeoutMs => "timeoutMs",
        })
    }
}

impl ToolLspConfig {
    /// Checks the ranges of TOOL-9. What was read from a file has passed already; this is for
    /// values that were put together in code.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        Key::MaxLocations.check(self.max_locations)?;
        Key::MaxResultChars.check(self.max_result_chars)?;
        Key::TimeoutMs.check(self.timeout_ms)?;
        Ok(())
    }

    /// How much of an answer is shown.
    pub fn caps(&self) -> Caps {
        let size = |number| usize::try_from(number).unwrap_or(usize::MAX);
        Caps {
            locations: size(self.max_locations),
            characters: size(self.max_result_chars),
        }
    }
}

/// Reads one number each, so that an error names its key whatever the format of the file is.
mod keys {
    use super::{Deserializer, IntegerOf, Key};

    pub(super) fn max_locations<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        from.deserialize_any(IntegerOf(Key::MaxLocations))
    }

    pub(super) fn max_result_chars<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        from.deserialize_any(IntegerOf(Key::MaxResultChars))
    }

    pub(super) fn timeout_ms<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        from.deserialize_any(IntegerOf(Key::TimeoutMs))
    }
}

#[derive(Clone, Copy)]
struct IntegerOf(Key);

impl IntegerOf {
    fn refuse<E: de::Error, T>(self, got: impl fmt::Display) -> Result<T, E> {
        Err(E::custom(InvalidConfig {
            key: self.0,
            got: got.to_string(),
        }))
    }
}

impl<'de> Visitor<'de> for IntegerOf {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to be {}", self.0, self.0.range())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<u64, E> {
        self.0.check(value).map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<u64, E> {
        u64::try_from(value).map_or_else(|_| self.refuse(value), |value| self.visit_u64(value))
    }

    fn visit_i128<E: de::Error>(self, value: i128) -> Result<u64, E> {
        u64::try_from(value).map_or_else(|_| self.refuse(value), |value| self.visit_u64(value))
    }

    fn visit_u128<E: de::Error>(self, value: u128) -> Result<u64, E> {
        u64::try_from(value).map_or_else(|_| self.refuse(value), |value| self.visit_u64(value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<u64, E> {
        self.refuse(value)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<u64, E> {
        self.refuse(value)
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<u64, E> {
        self.refuse(format_args!("{value:?}"))
    }

    fn visit_unit<E: de::Error>(self) -> Result<u64, E> {
        self.refuse("null")
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, _: A) -> Result<u64, A::Error> {
        self.refuse("a list")
    }

    fn visit_map<A: de::MapAccess<'de>>(self, _: A) -> Result<u64, A::Error> {
        self.refuse("a mapping")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(value: Value) -> Result<ToolLspConfig, String> {
        serde_json::from_value(value).map_err(|error: serde_json::Error| error.to_string())
    }

    /// TOOL-7, TOOL-9: the defaults, and each key for itself.
    #[test]
    fn defaults_and_keys() {
        let defaults = json!({"maxLocations": 100, "maxResultChars": 16_000, "timeoutMs": 60_000});
        assert_eq!(read(json!({})), read(defaults));
        assert_eq!(ToolLspConfig::default().validate(), Ok(()));
        let config =
            read(json!({"maxLocations": 1, "maxResultChars": 2, "timeoutMs": 2_147_483_647}))
                .unwrap();
        assert_eq!(
            config,
            ToolLspConfig {
                max_locations: 1,
                max_result_chars: 2,
                timeout_ms: 2_147_483_647
            }
        );
        assert_eq!(
            config.caps(),
            Caps {
                locations: 1,
                characters: 2
            }
        );
    }

    /// TOOL-9: a value out of range fails at load and names the key.
    #[test]
    fn a_value_out_of_range_names_its_key() {
        let values = [
            json!(0),
            json!(-1),
            json!(1.5),
            json!("100"),
            json!(null),
            json!(true),
            json!([1]),
            json!({"a": 1}),
        ];
        for key in ["maxLocations", "maxResultChars", "timeoutMs"] {
            for value in &values {
                let error = read(json!({key: value})).expect_err("this value is bad");
                assert!(
                    error.starts_with(&format!("{key} must be a positive integer")),
                    "{error}"
                );
            }
        }
        let error = read(json!({"timeoutMs": 2_147_483_648_u64})).expect_err("beyond the limit");
        assert_eq!(
            error,
            "timeoutMs must be a positive integer of at most 2147483647 (milliseconds), not 2147483648"
        );
    }

    /// TOOL-9: the same ranges hold for a value made in code.
    #[test]
    fn a_value_made_in_code_is_checked_too() {
        let good = ToolLspConfig::default();
        for (key, bad) in [
            (
                Key::MaxLocations,
                ToolLspConfig {
                    max_locations: 0,
                    ..good
                },
            ),
            (
                Key::MaxResultChars,
                ToolLspConfig {
                    max_result_chars: 0,
                    ..good
                },
            ),
            (
                Key::TimeoutMs,
                ToolLspConfig {
                    timeout_ms: 0,
                    ..good
                },
            ),
            (
                Key::TimeoutMs,
                ToolLspConfig {
                    timeout_ms: MAX_TIMEOUT_MS + 1,
                    ..good
                },
            ),
        ] {
            assert_eq!(bad.validate().map_err(|error| error.key), Err(key));
        }
    }

    /// TOOL-9: an unknown key is an error that names it.
    #[test]
    fn an_unknown_key_is_named() {
        let error = read(json!({"maxLocation": 5})).expect_err("no such key");
        assert!(
            error.contains("maxLocation") && error.contains("maxLocations"),
            "{error}"
        );
    }
}
