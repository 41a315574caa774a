//! The rules on a configuration that its types cannot hold (CFG-2, CFG-3, SEAM-3).

use dsh_lsp::normalize_extensions;

use super::{ConfigError, LspStdioConfig, MAX_BUDGET_MS, ServerConfig};

/// What a time budget must be, in words.
pub(super) const BUDGET: &str =
    "a positive integer of milliseconds, at most 2147483647 (about 24 days)";

/// What a number of repetitions must be, in words.
pub(super) const TIMES: &str = "an integer from 0 to 2147483647";

/// Most repetitions.
pub(super) const MAX_TIMES: u32 = 2_147_483_647;

pub(super) fn host(config: &LspStdioConfig) -> Result<(), ConfigError> {
    if config.servers.is_empty() {
        return Err(ConfigError::at(
            &["servers"],
            "is empty; give at least one provider id → command and extensionToLanguage",
        ));
    }
    config
        .servers
        .iter()
        .try_for_each(|(id, entry)| server(id, entry))
}

pub(super) fn server(id: &str, config: &ServerConfig) -> Result<(), ConfigError> {
    if id.trim().is_empty() {
        return Err(ConfigError::at(
            &["servers"],
            format!("has the blank id {id:?}; give the server a name"),
        ));
    }
    let rules = Rules { id };
    rules.command(config)?;
    rules.environment(config)?;
    rules.extensions(config)?;
    rules.positive("maxMessageBytes", config.max_message_bytes)?;
    rules.positive("maxStderrBytes", config.max_stderr_bytes)?;
    rules.positive("maxDocumentBytes", config.max_document_bytes)?;
    rules.budget("shutdownTimeoutMs", config.shutdown_timeout_ms)?;
    rules.budget("killGraceMs", config.kill_grace_ms)?;
    if config.retry_stale > MAX_TIMES {
        return Err(rules.error(
            "retryStale",
            format!("must be {TIMES}, got {}", config.retry_stale),
        ));
    }
    Ok(())
}

struct Rules<'a> {
    id: &'a str,
}

impl Rules<'_> {
    fn error(&self, key: &str, problem: impl Into<String>) -> ConfigError {
        ConfigError::at(&["servers", self.id, key], problem)
    }

    fn command(&self, config: &ServerConfig) -> Result<(), ConfigError> {
        if config.command.trim().is_empty() {
            return Err(self.error(
                "command",
                "is blank; give the absolute path of an executable, or a name on PATH",
            ));
        }
        if config.command.contains('\0') {
            return Err(self.error("command", "contains a NUL character"));
        }
        match config
            .args
            .iter()
            .position(|argument| argument.contains('\0'))
        {
            Some(index) => Err(self.error(&format!("args.{index}"), "contains a NUL character")),
            None => Ok(()),
        }
    }

    fn environment(&self, config: &ServerConfig) -> Result<(), ConfigError> {
        for (name, value) in &config.env {
            let problem = if name.is_empty() {
                "has a variable without a name"
            } else if name.contains(['=', '\0']) {
                "has a name with \"=\" or NUL in it, which no environment can hold"
            } else if value.contains('\0') {
                "contains a NUL character"
            } else {
                continue;
            };
            return Err(ConfigError::at(&["servers", self.id, "env", name], problem));
        }
        Ok(())
    }

    fn extensions(&self, config: &ServerConfig) -> Result<(), ConfigError> {
        normalize_extensions(&config.extension_to_language)
            .map(drop)
            .map_err(|problem| ConfigError {
                code: "LSP_INVALID_PROVIDER",
                ..self.error("extensionToLanguage", problem.to_string())
            })
    }

    fn positive(&self, key: &str, bytes: u64) -> Result<(), ConfigError> {
        if bytes == 0 {
            return Err(self.error(key, "must be a positive integer of bytes, got 0"));
        }
        Ok(())
    }

    fn budget(&self, key: &str, budget: u64) -> Result<(), ConfigError> {
        if budget == 0 || budget > MAX_BUDGET_MS {
            return Err(self.error(key, format!("must be {BUDGET}, got {budget}")));
        }
        Ok(())
    }
}
