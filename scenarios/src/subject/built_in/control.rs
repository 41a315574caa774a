//! The operations of `control`. What each is for stands in the table of the module `subject`.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use dsh_harness::kernel::Cancel;
use dsh_harness::tools::{Decision, Invocation, PreExecute, ToolCall, ToolError, ToolRegistry};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::{CallError, UNSUPPORTED};
use super::arranged::{Fault, FaultKind, Look, lock};
use super::looped;
use super::mounted::{Harness, failed};
use super::rows;
use super::stubs::{Register, Stub};
use super::{INVALID_PARAMS, Outcome, nothing, params, refused};

/// All of them.
pub(super) const NAMES: [&str; 16] = [
    "register",
    "unregister",
    "release_provider",
    "wait_provider",
    "provider_log",
    "hold_files",
    "release_files",
    "wait_files",
    "file_looks",
    "file_fault",
    "other_world",
    "load_host",
    "unload_host",
    "deployment",
    "describe_tools",
    "drop",
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unregister {
    id: String,
    #[serde(default)]
    nth: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfProvider {
    id: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WaitProvider {
    id: String,
    #[serde(default = "once")]
    times: usize,
    #[serde(default)]
    ended: usize,
}

/// `hold_files`, and `hold`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Hold {
    pub(super) what: Look,
    #[serde(default)]
    pub(super) next: Option<u64>,
}

/// `release_files`, and `release_held`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Release {
    #[serde(default)]
    pub(super) what: Option<Look>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WaitFiles {
    what: WaitFor,
    #[serde(default = "once_more")]
    times: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum WaitFor {
    Workspace,
    Source,
    Executable,
    Spawn,
    Cancelled,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileFault {
    #[serde(default = "source")]
    what: Look,
    #[serde(default)]
    path: Option<String>,
    kind: FaultKind,
    #[serde(default)]
    times: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LoadHost {
    name: String,
    host: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UnloadHost {
    name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DropRuntime {
    #[serde(default)]
    panic: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoParams {}

const fn once() -> usize {
    1
}

const fn once_more() -> u64 {
    1
}

const fn source() -> Look {
    Look::Source
}

/// Does what `op` says.
pub(super) async fn control(harness: &Harness, params: Value, cancel: Cancel) -> Outcome {
    let Value::Object(mut params) = params else {
        return Err(refused(INVALID_PARAMS, "the params of control are {op, …}"));
    };
    let Some(Value::String(op)) = params.shift_remove("op") else {
        return Err(refused(INVALID_PARAMS, "control needs `op`, a string"));
    };
    let params = Value::Object(params);
    match op.as_str() {
        "register" | "unregister" | "release_provider" | "wait_provider" | "provider_log" => {
            providers(harness, &op, params, &cancel).await
        }
        "hold_files" | "release_files" | "wait_files" | "file_looks" | "file_fault"
        | "other_world" => arrange(harness, &op, params, &cancel).await,
        "load_host" => {
            let LoadHost { name, host } = params::read("load_host", params)?;
            let config = params::host(host)?;
            harness.mounted()?.load_host(name, config, &cancel).await
        }
        "unload_host" => {
            let UnloadHost { name } = params::read("unload_host", params)?;
            harness.mounted()?.unload_host(&name).await
        }
        "deployment" => rows::deployment(params, &cancel).await,
        "describe_tools" => {
            let NoParams {} = params::read("describe_tools", params)?;
            describe_tools(harness).await
        }
        "drop" => {
            let DropRuntime { panic } = params::read("drop", params)?;
            harness.drop_runtime(panic).await
        }
        op if looped::NAMES.contains(&op) => looped::control(harness, op, params, &cancel).await,
        other => {
            let told = format!("this harness has no control {other:?}");
            Err(refused(UNSUPPORTED, told))
        }
    }
}

async fn providers(harness: &Harness, op: &str, params: Value, cancel: &Cancel) -> Outcome {
    let mounted = harness.mounted()?;
    let find = |id: &str| {
        mounted.stubs.latest(id).ok_or_else(|| {
            let told = format!("no provider {id:?} was registered by `register`");
            refused(INVALID_PARAMS, told)
        })
    };
    match op {
        "register" => {
            let told: Register = params::read("register", params)?;
            let stub = Arc::new(Stub::new(told).map_err(|why| refused(UNSUPPORTED, why))?);
            let registration = mounted
                .seam
                .register_provider(Arc::clone(&stub) as _)
                .map_err(|error| failed(&error))?;
            mounted.stubs.add(stub, registration);
        }
        "unregister" => {
            let Unregister { id, nth } = params::read("unregister", params)?;
            if !mounted.stubs.unregister(&id, nth) {
                let told = format!("no such provider {id:?} was registered by `register`");
                return Err(refused(INVALID_PARAMS, told));
            }
        }
        "release_provider" => {
            let OfProvider { id } = params::read("release_provider", params)?;
            find(&id)?.release();
        }
        "wait_provider" => {
            let WaitProvider { id, times, ended } = params::read("wait_provider", params)?;
            let stub = find(&id)?;
            given_up(cancel, stub.asked(times, ended)).await?;
            return Ok(stub.log());
        }
        _ => {
            let OfProvider { id } = params::read("provider_log", params)?;
            return Ok(find(&id)?.log());
        }
    }
    Ok(nothing())
}

async fn arrange(harness: &Harness, op: &str, params: Value, cancel: &Cancel) -> Outcome {
    let arranged = harness.arranged();
    match op {
        "hold_files" => {
            let Hold { what, next } = params::read("hold_files", params)?;
            arranged.hold(what, next);
        }
        "release_files" => {
            let Release { what } = params::read("release_files", params)?;
            arranged.release(what);
        }
        "wait_files" => {
            let WaitFiles { what, times } = params::read("wait_files", params)?;
            let seen = |looks: &super::arranged::Looks| match what {
                WaitFor::Workspace => looks.count(Look::Workspace),
                WaitFor::Source => looks.count(Look::Source),
                WaitFor::Executable => looks.count(Look::Executable),
                WaitFor::Spawn => looks.count(Look::Spawn),
                WaitFor::Cancelled => looks.given_up(),
            };
            let looks = given_up(cancel, arranged.looked(|looks| seen(looks) >= times)).await?;
            return Ok(looks.told());
        }
        "file_looks" => {
            let NoParams {} = params::read("file_looks", params)?;
            return Ok(arranged.looks().told());
        }
        "file_fault" => {
            let FileFault {
                what,
                path,
                kind,
                times,
            } = params::read("file_fault", params)?;
            arranged.fail(Fault {
                what,
                path,
                kind,
                times,
            });
        }
        _ => {
            let NoParams {} = params::read("other_world", params)?;
            arranged.separate_worlds();
        }
    }
    Ok(nothing())
}

/// Waits for something, unless the caller gives up.
async fn given_up<T>(cancel: &Cancel, wait: impl Future<Output = T>) -> Result<T, CallError> {
    tokio::select! {
        biased;
        waited = wait => Ok(waited),
        reason = cancel.cancelled() => Err(refused("CANCELLED", reason.to_string())),
    }
}

/// What the model sees of the tools, and what it does not: the budget, as the pipeline knows it.
async fn describe_tools(harness: &Harness) -> Outcome {
    let tools = harness.tools()?;
    let system_prompt = harness.mounted()?.system_prompt();
    let mut described = Vec::new();
    for schema in tools.list() {
        let budget = budget(&tools, &schema.name).await;
        let mut tool = json!(schema);
        if let (Some(tool), Some(budget)) = (tool.as_object_mut(), budget) {
            tool.insert("timeoutMs".to_owned(), budget.into());
        }
        described.push(tool);
    }
    Ok(json!({"tools": described, "systemPrompt": system_prompt}))
}

/// The budget of a tool. The registry tells it only to the stages of a call, so a call is made that
/// a stage before execution denies.
async fn budget(tools: &ToolRegistry, name: &str) -> Option<u64> {
    const ID: &str = "describe_tools";
    let seen = Arc::new(Seen(Mutex::default()));
    let stage = tools.before_execute(i32::MIN, Arc::clone(&seen) as Arc<dyn PreExecute>);
    let arguments = json!({"operation": "hover", "file_path": "a", "line": 1, "character": 1});
    let call = ToolCall {
        id: ID.to_owned(),
        name: name.to_owned(),
        arguments,
    };
    tools.call(call, None, Cancel::new()).await;
    drop(stage);
    *lock(&seen.0)
}

struct Seen(Mutex<Option<u64>>);

#[async_trait]
impl PreExecute for Seen {
    async fn decide(&self, invocation: &Invocation) -> Result<Decision, ToolError> {
        if invocation.call.id != "describe_tools" {
            return Ok(Decision::Allow);
        }
        *lock(&self.0) = invocation.timeout_ms;
        Ok(Decision::Deny("it is only described".to_owned()))
    }
}
