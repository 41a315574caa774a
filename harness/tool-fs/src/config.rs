//! The keys of the tools' row in a deployment.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most lines that one `read` shows, whatever the configuration (RUN-8).
pub const MAX_LIMIT: u64 = 2000;

/// Caps of the file tools (RUN-8). The model sees `limit` alone, as the most it may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ToolFsConfig {
    /// How many lines a `read` shows: by default, and at most.
    #[schemars(range(min = 1, max = 2000))]
    pub limit: u64,
    /// How many characters of a line are shown.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_line_length: u64,
    /// How many bytes of lines a `read` shows, their numbers included.
    #[schemars(range(min = 1, max = 16_777_216))]
    pub max_bytes: u64,
    /// From which size in bytes on a file is streamed in place of read at once. A file of unknown
    /// size is always streamed.
    #[schemars(range(min = 0, max = 1_073_741_824))]
    pub stream_min_size: u64,
    /// How many bytes a file may have, before and after, to be edited.
    #[schemars(range(min = 1, max = 1_073_741_824))]
    pub max_edit_bytes: u64,
}

impl Default for ToolFsConfig {
    fn default() -> Self {
        Self {
            limit: MAX_LIMIT,
            max_line_length: 2000,
            max_bytes: 50 * 1024,
            stream_min_size: 10 * 1024 * 1024,
            max_edit_bytes: 10 * 1024 * 1024,
        }
    }
}

/// A value that a key does not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} must be an integer from {} to {}, not {got}", .key.least(), .key.most())]
pub struct InvalidConfig {
    /// The key.
    pub key: Key,
    /// What it was given.
    pub got: u64,
}

/// A key of [`ToolFsConfig`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// `limit`
    Limit,
    /// `maxLineLength`
    MaxLineLength,
    /// `maxBytes`
    MaxBytes,
    /// `streamMinSize`
    StreamMinSize,
    /// `maxEditBytes`
    MaxEditBytes,
}

impl Key {
    const fn least(self) -> u64 {
        match self {
            Self::StreamMinSize => 0,
            _ => 1,
        }
    }

    const fn most(self) -> u64 {
        match self {
            Self::Limit => MAX_LIMIT,
            Self::MaxLineLength => 1_000_000,
            Self::MaxBytes => 16 * 1024 * 1024,
            Self::StreamMinSize | Self::MaxEditBytes => 1024 * 1024 * 1024,
        }
    }

    fn check(self, value: u64) -> Result<(), InvalidConfig> {
        if (self.least()..=self.most()).contains(&value) {
            Ok(())
        } else {
            Err(InvalidConfig {
                key: self,
                got: value,
            })
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Limit => "limit",
            Self::MaxLineLength => "maxLineLength",
            Self::MaxBytes => "maxBytes",
            Self::StreamMinSize => "streamMinSize",
            Self::MaxEditBytes => "maxEditBytes",
        })
    }
}

impl ToolFsConfig {
    /// Checks the ranges.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        Key::Limit.check(self.limit)?;
        Key::MaxLineLength.check(self.max_line_length)?;
        Key::MaxBytes.check(self.max_bytes)?;
        Key::StreamMinSize.check(self.stream_min_size)?;
        Key::MaxEditBytes.check(self.max_edit_bytes)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(value: Value) -> Result<ToolFsConfig, String> {
        serde_json::from_value(value).map_err(|error: serde_json::Error| error.to_string())
    }

    /// RUN-8
    #[test]
    fn the_defaults_are_those_of_the_contract() {
        let defaults = json!({
            "limit": 2000, "maxLineLength": 2000, "maxBytes": 51_200,
            "streamMinSize": 10_485_760, "maxEditBytes": 10_485_760,
        });
        assert_eq!(read(json!({})), Ok(ToolFsConfig::default()));
        assert_eq!(read(defaults), Ok(ToolFsConfig::default()));
        assert_eq!(ToolFsConfig::default().validate(), Ok(()));
    }

    /// RUN-3
    #[test]
    fn a_value_out_of_range_names_its_key_and_the_range() {
        for (key, bad, words) in [
            ("limit", 0, "limit must be an integer from 1 to 2000, not 0"),
            (
                "limit",
                2001,
                "limit must be an integer from 1 to 2000, not 2001",
            ),
            (
                "maxLineLength",
                0,
                "maxLineLength must be an integer from 1 to 1000000, not 0",
            ),
            (
                "maxBytes",
                0,
                "maxBytes must be an integer from 1 to 16777216, not 0",
            ),
            (
                "streamMinSize",
                1_073_741_825_u64,
                "streamMinSize must be an integer from 0 to 1073741824, not 1073741825",
            ),
            (
                "maxEditBytes",
                0,
                "maxEditBytes must be an integer from 1 to 1073741824, not 0",
            ),
        ] {
            let config = read(json!({key: bad})).expect("a number");
            assert_eq!(
                config.validate().expect_err("out of range").to_string(),
                words
            );
        }
    }

    /// RUN-3
    #[test]
    fn an_unknown_key_and_a_wrong_type_are_errors() {
        let unknown = read(json!({"maxByte": 5})).expect_err("no such key");
        assert!(
            unknown.contains("maxByte") && unknown.contains("maxBytes"),
            "{unknown}"
        );
        for bad in [json!(-1), json!(1.5), json!("10"), json!(null), json!([1])] {
            assert!(read(json!({"maxBytes": bad})).is_err());
        }
    }
}
