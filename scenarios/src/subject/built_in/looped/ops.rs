//! The operations of `control` that are about the loop.

use dsh_harness::agent::PromptSection;
use dsh_harness::kernel::Cancel;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::super::CallError;
use super::super::arranged::{Fault, FaultKind, Look, lock};
use super::super::control::{Hold, Release};
use super::super::mounted::{Harness, Mounted};
use super::super::{INVALID_PARAMS, Outcome, nothing, params, refused};
use super::MAIN;
use super::stages::{CallRule, StepRule};
use super::tool::ScriptedTool;

/// All of them.
pub(in super::super) const NAMES: [&str; 17] = [
    "compact",
    "resume",
    "remount",
    "filesystem",
    "provider_fault",
    "reject_step",
    "block_tool",
    "hold",
    "release_held",
    "wait_held",
    "register_tool",
    "unregister_tool",
    "add_section",
    "remove_section",
    "log",
    "inbox",
    "observations",
];

fn main() -> String {
    MAIN.to_owned()
}

const fn once() -> u64 {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfSession {
    #[serde(default = "main")]
    session: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Compact {
    #[serde(default = "main")]
    session: String,
    #[serde(default = "summarized")]
    summary: String,
    #[serde(default)]
    keep: usize,
}

fn summarized() -> String {
    "What was said so far is left out.".to_owned()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Resume {
    #[serde(default = "main")]
    session: String,
    #[serde(default)]
    cwd: Option<String>,
    #[serde(default)]
    torn: bool,
    #[serde(default)]
    instructions: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Remount {
    #[serde(default)]
    instructions: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Files {
    state: Presence,
}

#[derive(Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Presence {
    Absent,
    Present,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProviderFault {
    what: Look,
    #[serde(default)]
    path: Option<String>,
    #[serde(default = "inaccessible")]
    kind: FaultKind,
    #[serde(default)]
    times: Option<u64>,
}

const fn inaccessible() -> FaultKind {
    FaultKind::Inaccessible
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WaitHeld {
    what: Look,
    #[serde(default = "once")]
    times: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    name: String,
    #[serde(default)]
    order: i32,
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoParams {}

/// Does what `op` says, if it is one of these.
pub(in super::super) async fn control(
    harness: &Harness,
    op: &str,
    params: Value,
    cancel: &Cancel,
) -> Outcome {
    match op {
        "filesystem" => {
            let Files { state } = params::read(op, params)?;
            let present = state == Presence::Present;
            if let Ok(mounted) = harness.mounted() {
                return mounted.plugins.files(present).await;
            }
            // It holds for the next mount.
            harness.arranged().without_files(!present);
            return Ok(nothing());
        }
        "provider_fault" => {
            let ProviderFault {
                what,
                path,
                kind,
                times,
            } = params::read(op, params)?;
            harness.arranged().fail(Fault {
                what,
                path,
                kind,
                times,
            });
            return Ok(nothing());
        }
        "hold" => {
            let Hold { what, next } = params::read(op, params)?;
            harness.arranged().hold(what, next);
            return Ok(nothing());
        }
        "release_held" => {
            let Release { what } = params::read(op, params)?;
            harness.arranged().release(what);
            return Ok(nothing());
        }
        "wait_held" => {
            let WaitHeld { what, times } = params::read(op, params)?;
            let arranged = harness.arranged();
            let held = arranged.looked(|looks| looks.held(what) >= times);
            return tokio::select! {
                biased;
                looks = held => Ok(looks.told()),
                reason = cancel.cancelled() => Err(refused("CANCELLED", reason.to_string())),
            };
        }
        _ => {}
    }
    of_the_mount(&*harness.mounted()?, op, params).await
}

async fn of_the_mount(mounted: &Mounted, op: &str, params: Value) -> Outcome {
    let loops = &mounted.loops;
    match op {
        "compact" => {
            let Compact {
                session,
                summary,
                keep,
            } = params::read(op, params)?;
            loops.compact(&session, &summary, keep).await
        }
        "resume" => {
            let Resume {
                session,
                cwd,
                torn,
                instructions,
            } = params::read(op, params)?;
            let between = async {
                match instructions {
                    Some(config) => mounted.plugins.remount(Some(config)).await.map(drop),
                    None => Ok::<_, CallError>(()),
                }
            };
            loops.resume(&session, cwd, torn, between).await
        }
        "remount" => {
            let Remount { instructions } = params::read(op, params)?;
            mounted.plugins.remount(instructions).await
        }
        "reject_step" => {
            let rule: StepRule = params::read(op, params)?;
            loops.stages.on_step(rule);
            Ok(nothing())
        }
        "block_tool" => {
            let rule: CallRule = params::read(op, params)?;
            loops.stages.on_call(rule);
            Ok(nothing())
        }
        "register_tool" => {
            let tool: ScriptedTool = params::read(op, params)?;
            let name = tool.name.clone();
            let handle = loops.tools.register(std::sync::Arc::new(tool));
            let handle = handle.map_err(|error| refused("TOOL_REFUSED", error.to_string()))?;
            lock(&loops.scripted).insert(name, handle);
            Ok(nothing())
        }
        "unregister_tool" => {
            let Named { name } = params::read(op, params)?;
            gone(lock(&loops.scripted).remove(&name).is_some(), &name)
        }
        "add_section" => {
            let Section { name, order, text } = params::read(op, params)?;
            loops.add_section(PromptSection { name, order, text });
            Ok(nothing())
        }
        "remove_section" => {
            let Named { name } = params::read(op, params)?;
            gone(lock(&loops.sections).remove(&name).is_some(), &name)
        }
        "log" => {
            let OfSession { session } = params::read(op, params)?;
            loops.log(&session)
        }
        "inbox" => {
            let OfSession { session } = params::read(op, params)?;
            loops.inbox(&session)
        }
        _ => {
            let NoParams {} = params::read(op, params)?;
            Ok(json!({"observed": *lock(&loops.observed)}))
        }
    }
}

/// Whether something of a name was taken away.
fn gone(was_there: bool, name: &str) -> Outcome {
    if was_there {
        return Ok(nothing());
    }
    let told = format!("nothing of the name {name:?} was added by a control before");
    Err(refused(INVALID_PARAMS, told))
}
