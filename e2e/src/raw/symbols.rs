//! The symbols a server lists, which the host does not ask for.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dsh_harness::kernel::Cancel;
use dsh_harness::subprocess::Subprocess as _;
use serde_json::{Value, json};

use super::client::{Client, Reply, Stable};
use super::dialogue::Answered;
use super::manner::Manner;
use super::site::Document;
use crate::RecordingSubprocess;
use crate::target::{Limits, Target};

/// The longest that a server is asked for symbols, its start included.
const LONGEST: Duration = Duration::from_secs(20);
/// A server may still be loading when it is asked first.
const PAUSE: Duration = Duration::from_millis(300);
/// How often an empty answer about the first document is asked for again.
const AGAIN: u32 = 6;

/// Asks a process of its own for the symbols of some files (path in the workspace, text), and gives
/// the answers; none where the server lists no symbols. It takes 20 s or the budget at most, then
/// the end of the process.
pub(crate) async fn symbols(
    recording: Arc<RecordingSubprocess>,
    cancel: &Cancel,
    target: &Target,
    root: &str,
    files: &[(&str, &str)],
    budget: Duration,
) -> Vec<(String, Value)> {
    let resolved = recording
        .resolve_executable(&target.command, &target.env, cancel)
        .await;
    let (Ok(executable), Ok(root_uri)) = (resolved, url::Url::from_file_path(root)) else {
        return Vec::new();
    };
    let limits = target.limits.unwrap_or_default().within(budget);
    let stable = Stable {
        recording,
        cancel,
        target,
        executable,
        root,
        root_uri: root_uri.into(),
        grace: Duration::from_millis(limits.kill_grace_ms),
    };
    ask(&stable, files, budget.min(LONGEST), limits).await
}

async fn ask(
    stable: &Stable<'_>,
    files: &[(&str, &str)],
    within: Duration,
    limits: Limits,
) -> Vec<(String, Value)> {
    let mut answers = Vec::new();
    let manner = Manner {
        announce: stable.target.announce_configuration,
        ..Manner::usual(stable.target.configuration.clone())
    };
    let Ok(mut client) = Client::start(stable, manner, "symbols", within).await else {
        return answers;
    };
    let lists = match client.initialize(within).await {
        Reply::Answered(Answered::Result(result)) => is_listing(&result),
        _ => false,
    };
    if lists {
        for (file, text) in files {
            let Some(document) = document(stable, file, text) else {
                continue;
            };
            let again = if answers.is_empty() { AGAIN } else { 0 };
            match of(&mut client, &document, within, again).await {
                Some(result) => answers.push(((*file).to_owned(), result)),
                None => break,
            }
        }
    }
    if !client.is_gone() {
        client
            .shut_down(Duration::from_millis(limits.shutdown_ms))
            .await;
    }
    answers
}

/// Whether the result of `initialize` advertises symbols.
fn is_listing(result: &Value) -> bool {
    let provider = &result["capabilities"]["documentSymbolProvider"];
    provider == &Value::Bool(true) || provider.is_object()
}

async fn of(
    client: &mut Client<'_>,
    document: &Document,
    within: Duration,
    again: u32,
) -> Option<Value> {
    let params = json!({"textDocument": {"uri": document.uri}});
    client.open(document);
    let mut answer = None;
    for round in 0..=again {
        if round > 0 && !client.rest(PAUSE).await {
            break;
        }
        let method = "textDocument/documentSymbol";
        match client.ask(method, Some(params.clone()), within).await {
            Reply::Answered(Answered::Result(result)) => {
                let is_empty = result.as_array().is_none_or(Vec::is_empty);
                answer = Some(result);
                if !is_empty {
                    break;
                }
            }
            // An error while it is loading may give way to an answer.
            Reply::Answered(Answered::Error(..)) => {}
            _ => return None,
        }
    }
    client.close(document);
    answer
}

fn document(stable: &Stable<'_>, file: &str, text: &str) -> Option<Document> {
    let path = Path::new(stable.root).join(file);
    let uri = url::Url::from_file_path(&path).ok()?;
    let file = file.to_lowercase();
    let languages = &stable.target.extensions;
    let language = languages
        .iter()
        .find(|(extension, _)| file.ends_with(extension.as_str()));
    Some(Document {
        uri: uri.into(),
        language: language.map_or_else(String::new, |(_, language)| language.clone()),
        text: text.strip_prefix('\u{feff}').unwrap_or(text).to_owned(),
    })
}
