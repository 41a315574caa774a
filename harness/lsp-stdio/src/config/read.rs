//! Reading a configuration from JSON, with errors that name the key.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{ConfigError, LspStdioConfig, ServerConfig, Versions, rules};

/// The keys of one entry, in the order in which they are documented.
const SERVER_KEYS: [&str; 14] = [
    "command",
    "args",
    "env",
    "extensionToLanguage",
    "initializationOptions",
    "configuration",
    "maxMessageBytes",
    "maxStderrBytes",
    "maxDocumentBytes",
    "shutdownTimeoutMs",
    "killGraceMs",
    "retryStale",
    "announceConfiguration",
    "versions",
];

pub(super) fn host(value: Value) -> Result<LspStdioConfig, ConfigError> {
    let mut table = object(value, &[])?;
    let servers = table.remove("servers");
    if let Some(key) = table.keys().next() {
        return Err(ConfigError::at(
            &[key],
            "unknown key; the only one here is servers",
        ));
    }
    let Some(servers) = servers else {
        return Err(ConfigError::at(
            &["servers"],
            "is missing; give a table of provider id → command and extensionToLanguage",
        ));
    };
    let config = LspStdioConfig {
        servers: object(servers, &["servers"])?
            .into_iter()
            .map(|(id, entry)| server(&id, entry).map(|entry| (id, entry)))
            .collect::<Result<_, _>>()?,
    };
    rules::host(&config)?;
    Ok(config)
}

fn server(id: &str, value: Value) -> Result<ServerConfig, ConfigError> {
    let mut entry = Entry {
        id,
        table: object(value, &["servers", id])?,
    };
    if let Some(key) = entry
        .table
        .keys()
        .find(|key| !SERVER_KEYS.contains(&key.as_str()))
    {
        let known = SERVER_KEYS.join(", ");
        return Err(entry.error(key, format!("unknown key; the keys here are {known}")));
    }
    let command = entry.required("command", Entry::string)?;
    let extensions = entry.required("extensionToLanguage", Entry::strings_by_name)?;
    let mut config = ServerConfig::new(command, extensions);
    entry.read_into("args", Entry::strings, &mut config.args)?;
    entry.read_into("env", Entry::strings_by_name, &mut config.env)?;
    config.initialization_options = entry.take("initializationOptions").unwrap_or_default();
    config.configuration = entry.take("configuration").unwrap_or_default();
    entry.read_into(
        "maxMessageBytes",
        Entry::count,
        &mut config.max_message_bytes,
    )?;
    entry.read_into("maxStderrBytes", Entry::count, &mut config.max_stderr_bytes)?;
    entry.read_into(
        "maxDocumentBytes",
        Entry::count,
        &mut config.max_document_bytes,
    )?;
    entry.read_into(
        "shutdownTimeoutMs",
        Entry::budget,
        &mut config.shutdown_timeout_ms,
    )?;
    entry.read_into("killGraceMs", Entry::budget, &mut config.kill_grace_ms)?;
    entry.read_into("retryStale", Entry::times, &mut config.retry_stale)?;
    entry.read_into(
        "announceConfiguration",
        Entry::flag,
        &mut config.announce_configuration,
    )?;
    entry.read_into("versions", Entry::versions, &mut config.versions)?;
    Ok(config)
}

fn object(value: Value, path: &[&str]) -> Result<Map<String, Value>, ConfigError> {
    match value {
        Value::Object(table) => Ok(table),
        other => Err(ConfigError::at(
            path,
            format!("must be a table, got {}", shown(&other)),
        )),
    }
}

/// One row of the table, from which keys are taken.
struct Entry<'a> {
    id: &'a str,
    table: Map<String, Value>,
}

impl Entry<'_> {
    fn take(&mut self, key: &str) -> Option<Value> {
        self.table.remove(key)
    }

    fn error(&self, key: &str, problem: impl Into<String>) -> ConfigError {
        ConfigError::at(&["servers", self.id, key], problem)
    }

    fn required<T>(
        &mut self,
        key: &str,
        read: impl Fn(&Self, &str, &Value) -> Result<T, ConfigError>,
    ) -> Result<T, ConfigError> {
        match self.take(key) {
            Some(value) => read(self, key, &value),
            None => Err(self.error(key, "is missing; it is required")),
        }
    }

    /// Reads `key` where it is present, else leaves the default that is in `field`.
    fn read_into<T>(
        &mut self,
        key: &str,
        read: impl Fn(&Self, &str, &Value) -> Result<T, ConfigError>,
        field: &mut T,
    ) -> Result<(), ConfigError> {
        if let Some(value) = self.take(key) {
            *field = read(self, key, &value)?;
        }
        Ok(())
    }

    fn string(&self, key: &str, value: &Value) -> Result<String, ConfigError> {
        match value {
            Value::String(text) => Ok(text.clone()),
            other => Err(self.error(key, not_a_string(other))),
        }
    }

    fn strings(&self, key: &str, value: &Value) -> Result<Vec<String>, ConfigError> {
        let Value::Array(items) = value else {
            return Err(self.error(
                key,
                format!("must be a list of strings, got {}", shown(value)),
            ));
        };
        items
            .iter()
            .enumerate()
            .map(|(index, item)| match item {
                Value::String(text) => Ok(text.clone()),
                other => Err(self.error(&format!("{key}.{index}"), not_a_string(other))),
            })
            .collect()
    }

    fn strings_by_name(
        &self,
        key: &str,
        value: &Value,
    ) -> Result<BTreeMap<String, String>, ConfigError> {
        let Value::Object(table) = value else {
            return Err(self.error(
                key,
                format!("must be a table of strings, got {}", shown(value)),
            ));
        };
        table
            .iter()
            .map(|(name, item)| match item {
                Value::String(text) => Ok((name.clone(), text.clone())),
                other => Err(ConfigError::at(
                    &["servers", self.id, key, name],
                    not_a_string(other),
                )),
            })
            .collect()
    }

    fn count(&self, key: &str, value: &Value) -> Result<u64, ConfigError> {
        self.integer(key, value, "a positive integer of bytes", u64::MAX)
    }

    fn budget(&self, key: &str, value: &Value) -> Result<u64, ConfigError> {
        self.integer(key, value, rules::BUDGET, super::MAX_BUDGET_MS)
    }

    fn times(&self, key: &str, value: &Value) -> Result<u32, ConfigError> {
        if value.as_u64() == Some(0) {
            return Ok(0);
        }
        let times = self.integer(key, value, rules::TIMES, rules::MAX_TIMES.into())?;
        Ok(u32::try_from(times).unwrap_or(rules::MAX_TIMES))
    }

    fn flag(&self, key: &str, value: &Value) -> Result<bool, ConfigError> {
        match value {
            Value::Bool(flag) => Ok(*flag),
            other => Err(self.error(key, format!("must be true or false, got {}", shown(other)))),
        }
    }

    fn versions(&self, key: &str, value: &Value) -> Result<Versions, ConfigError> {
        match value.as_str() {
            Some("fixed") => Ok(Versions::Fixed),
            Some("rising") => Ok(Versions::Rising),
            _ => Err(self.error(
                key,
                format!("must be fixed or rising, got {}", shown(value)),
            )),
        }
    }

    /// A positive integer of at most `most`; `wanted` says so in words.
    fn integer(
        &self,
        key: &str,
        value: &Value,
        wanted: &str,
        most: u64,
    ) -> Result<u64, ConfigError> {
        let refusal = |why: &str| {
            Err(self.error(key, format!("must be {wanted}, got {}{why}", shown(value))))
        };
        let Value::Number(number) = value else {
            let quoted = value
                .as_str()
                .is_some_and(|text| text.trim().parse::<f64>().is_ok());
            return refusal(if quoted { "; leave out the quotes" } else { "" });
        };
        match number.as_u64() {
            Some(0) => refusal(", which is not positive"),
            Some(integer) if integer > most => refusal(", which is too large"),
            Some(integer) => Ok(integer),
            None => refusal(match number.as_f64() {
                Some(float) if float < 0.0 => ", which is negative",
                Some(float) if float.fract() != 0.0 => ", which is not whole",
                Some(float) if float >= 2f64.powi(53) => ", which is too large",
                _ => "; write it without a fraction or an exponent",
            }),
        }
    }
}

fn not_a_string(value: &Value) -> String {
    let hint = match value {
        Value::Number(_) | Value::Bool(_) => "; put it in quotes",
        _ => "",
    };
    format!("must be a string, got {}{hint}", shown(value))
}

/// A value in an error: what kind it is, and itself where it is short.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) if text.chars().count() <= 60 => format!("the string {text:?}"),
        Value::String(_) => "a long string".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a table".to_owned(),
    }
}
