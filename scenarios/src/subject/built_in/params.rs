//! Reading the params of requests.

use std::collections::BTreeMap;
use std::ffi::OsString;

use dsh_harness::lsp_stdio::LspStdioConfig;
use dsh_harness::session::{Session, SessionHeader};
use dsh_harness::tool_lsp::ToolLspConfig;
use dsh_harness::{Deployment, RowConfig};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::super::{CallError, MountParams};
use super::plugins::Asked;
use super::{INVALID_PARAMS, refused};

/// The params of a request as what they should be.
pub(super) fn read<T: DeserializeOwned>(method: &str, params: Value) -> Result<T, CallError> {
    serde_json::from_value(params)
        .map_err(|error| refused(INVALID_PARAMS, format!("the params of {method}: {error}")))
}

/// The rows that `mount` asks for. Without a host the files are no row: they may come and go.
pub(super) fn deployment(params: &MountParams) -> Result<Deployment, CallError> {
    let mut rows = vec![RowConfig::SubprocessLocal, RowConfig::Lsp];
    if !params.host.is_null() {
        rows.insert(0, RowConfig::FsLocal);
        rows.push(RowConfig::LspStdio(host(params.host.clone())?));
    }
    if !params.tool.is_null() {
        let tool: ToolLspConfig = serde_json::from_value(params.tool.clone())
            .map_err(|error| refused("LSP_CONFIG_INVALID", error.to_string()))?;
        rows.push(RowConfig::ToolLsp(tool));
    }
    Ok(rows
        .into_iter()
        .fold(Deployment::default(), Deployment::with_row))
}

/// What `mount` asks for besides.
pub(super) fn tools(value: Value) -> Result<Asked, CallError> {
    match value {
        Value::Null => Ok(Asked::default()),
        value => read("mount", value),
    }
}

/// The configuration of a host.
pub(super) fn host(value: Value) -> Result<LspStdioConfig, CallError> {
    LspStdioConfig::from_value(value).map_err(|error| {
        let error = dsh_harness::lsp::LspError::from(error);
        refused(error.code(), error.to_string())
    })
}

/// The environment the harness takes for its own.
pub(super) fn environment(
    variables: Map<String, Value>,
) -> Result<BTreeMap<OsString, OsString>, CallError> {
    variables
        .into_iter()
        .map(|(name, value)| match value {
            Value::String(value) => Ok((name.into(), value.into())),
            other => Err(refused(
                INVALID_PARAMS,
                format!("environment.{name} must be a string, not {other}"),
            )),
        })
        .collect()
}

/// A session `{cwd}`; null for none at all.
pub(super) fn session(id: &str, value: &Value) -> Result<Option<Session>, CallError> {
    let cwd = match value {
        Value::Null => return Ok(None),
        Value::Object(members) => members.get("cwd").unwrap_or(&Value::Null),
        other => {
            let told = format!("a session is {{cwd}} or null, not {other}");
            return Err(refused(INVALID_PARAMS, told));
        }
    };
    let cwd = match cwd {
        Value::Null => None,
        Value::String(cwd) => Some(cwd.clone()),
        other => {
            let told = format!("a session's cwd is a string or null, not {other}");
            return Err(refused(INVALID_PARAMS, told));
        }
    };
    Ok(Some(Session::new(SessionHeader {
        id: id.to_owned(),
        cwd,
    })))
}
