//! The keys of the plugin's row in a deployment, and their ranges.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a script may use up. None of it is shown to the model before it is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct CodeModeConfig {
    /// The longest a script runs, the calls it waits for included, in milliseconds: 1 to 2147483647.
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub wall_ms: u64,
    /// The most memory of a script's values, in bytes: 2097152 (2 MiB) to 4294967296 (4 GiB).
    #[schemars(range(min = 2_097_152, max = 4_294_967_296_u64))]
    pub memory_bytes: u64,
    /// The most stack of a script, in bytes: 65536 (64 KiB) to 67108864 (64 MiB).
    #[schemars(range(min = 65_536, max = 67_108_864))]
    pub stack_bytes: u64,
    /// The most calls of tools: 0 to 1000000.
    #[schemars(range(max = 1_000_000))]
    pub max_calls: u32,
    /// How much of the console is kept, in bytes: 0 to 16777216 (16 MiB).
    #[schemars(range(max = 16_777_216))]
    pub max_console_bytes: u64,
    /// How long the JSON text of a result is at most, in bytes: 1 to 16777216 (16 MiB).
    #[schemars(range(min = 1, max = 16_777_216))]
    pub max_result_bytes: u64,
    /// How long the code of a script is at most, in bytes: 1 to 16777216 (16 MiB).
    #[schemars(range(min = 1, max = 16_777_216))]
    pub max_code_bytes: u64,
}

impl Default for CodeModeConfig {
    fn default() -> Self {
        Self {
            wall_ms: 60_000,
            memory_bytes: 64 << 20,
            stack_bytes: 1 << 20,
            max_calls: 1000,
            max_console_bytes: 32 << 10,
            max_result_bytes: 50 << 10,
            max_code_bytes: 1 << 20,
        }
    }
}

/// A key that was given a value out of its range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} must be {least} to {most}, not {got}")]
pub struct InvalidConfig {
    key: &'static str,
    least: u64,
    most: u64,
    got: u64,
}

impl InvalidConfig {
    /// The key, as it is written.
    pub const fn key(&self) -> &'static str {
        self.key
    }
}

impl CodeModeConfig {
    /// Whether every value is in its range; the first that is not is told.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        const MIB: u64 = 1 << 20;
        for (key, least, most, got) in [
            ("wallMs", 1, 2_147_483_647, self.wall_ms),
            ("memoryBytes", 2 * MIB, 4096 * MIB, self.memory_bytes),
            ("stackBytes", 64 << 10, 64 * MIB, self.stack_bytes),
            ("maxCalls", 0, 1_000_000, u64::from(self.max_calls)),
            ("maxConsoleBytes", 0, 16 * MIB, self.max_console_bytes),
            ("maxResultBytes", 1, 16 * MIB, self.max_result_bytes),
            ("maxCodeBytes", 1, 16 * MIB, self.max_code_bytes),
        ] {
            if !(least..=most).contains(&got) {
                return Err(InvalidConfig {
                    key,
                    least,
                    most,
                    got,
                });
            }
        }
        Ok(())
    }

    pub(crate) const fn wall(&self) -> Duration {
        Duration::from_millis(self.wall_ms)
    }
}

/// A size whose range was checked, as the platform counts.
pub(crate) fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Change = fn(&mut CodeModeConfig);

    #[test]
    fn each_key_has_a_range() {
        assert_eq!(CodeModeConfig::default().validate(), Ok(()));
        let change: [(&str, Change); 7] = [
            ("wallMs", |c| c.wall_ms = 0),
            ("memoryBytes", |c| c.memory_bytes = 1),
            ("stackBytes", |c| c.stack_bytes = u64::MAX),
            ("maxCalls", |c| c.max_calls = u32::MAX),
            ("maxConsoleBytes", |c| c.max_console_bytes = u64::MAX),
            ("maxResultBytes", |c| c.max_result_bytes = 0),
            ("maxCodeBytes", |c| c.max_code_bytes = 0),
        ];
        for (key, change) in change {
            let mut config = CodeModeConfig::default();
            change(&mut config);
            let error = config.validate().unwrap_err().to_string();
            assert!(error.starts_with(key), "{error}");
        }
    }
}
