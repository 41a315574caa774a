//! Deployments in a file's own words.

use dsh_harness::kernel::Cancel;
use dsh_harness::{Deployment, Runtime};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Outcome, params, refused};

/// The file that errors name.
const FILE: &str = "cordis.yml";

/// `deployment`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Told {
    text: String,
}

/// Mounts what a deployment file says beside whatever is mounted, tells what that gives, and
/// disposes of it.
pub(super) async fn deployment(params: Value, cancel: &Cancel) -> Outcome {
    let Told { text } = params::read("deployment", params)?;
    let deployment =
        Deployment::parse(&text, FILE).map_err(|error| refused(error.code(), error.to_string()))?;
    let mounted = Runtime::builder()
        .deployment(deployment)
        .mount(cancel)
        .await;
    let runtime = mounted.map_err(|error| refused(error.code(), error.to_string()))?;
    let tools = runtime.tools().list();
    let tools: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let told = json!({"plugins": runtime.plugins(), "tools": tools});
    let ended = runtime.dispose().await;
    ended.map_err(|errors| refused("UNMOUNT_FAILED", errors.to_string()))?;
    Ok(told)
}
