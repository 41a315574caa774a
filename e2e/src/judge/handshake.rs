//! QUA-1, QUA-2, QUA-3, QUA-11: what the answer to `initialize` says.

use dsh_reports::{Case, Verdict};
use dsh_transcript::{Direction, Event, EventBody, View};
use serde_json::{Value, json};

use super::answers::MESSAGE_BOUND;
use super::{Observed, obituary};
use crate::evidence;
use crate::probes::Probe;
use crate::samples::Operation;

/// The `initialize` exchange of one process.
#[derive(Clone, Debug)]
pub(crate) struct Handshake<'a> {
    pub(crate) process: u32,
    pub(crate) request: &'a Event,
    pub(crate) answer: Option<&'a Event>,
    pub(crate) latency_us: Option<u64>,
    pub(crate) result: Option<Value>,
    pub(crate) error: Option<Value>,
}

/// The handshake of the first process that was asked to initialize.
pub(super) fn first(view: View<'_>) -> Option<Handshake<'_>> {
    view.processes().into_iter().find_map(|process| {
        view.exchanges(process, Direction::ToServer)
            .into_iter()
            .find(|exchange| exchange.method() == "initialize")
            .map(|exchange| Handshake {
                process,
                request: exchange.request,
                answer: exchange.answer,
                latency_us: exchange.latency_us(),
                result: exchange.result(),
                error: exchange.error(),
            })
    })
}

/// QUA-1.
pub(super) fn answered(probe: &Probe, seen: &Observed<'_>) -> Case {
    let Some(handshake) = seen.handshake() else {
        return not_asked(probe, seen);
    };
    if let Some(fault) = our_request(&handshake) {
        return probe.case(Verdict::HarnessError, fault);
    }
    let expected = "an initialize result with capabilities";
    let mut case = match (&handshake.result, &handshake.error) {
        (Some(result), _) if result["capabilities"].is_object() => {
            let mut case = probe.case(Verdict::Pass, "initialize answered");
            case.duration_us = handshake.latency_us;
            return case;
        }
        (Some(_), _) => probe.missed("the initialize result has no capabilities object", expected),
        (None, Some(error)) => {
            let message = error["message"].as_str().unwrap_or("no message");
            let said = format!("initialize refused with error {}: {message}", error["code"]);
            probe.missed(said, expected)
        }
        (None, None) => {
            return match seen.too_long() {
                Some(said) => probe.case(Verdict::Untestable, said),
                None => unanswered(probe, seen, &handshake, expected),
            };
        }
    };
    if let Some(answer) = handshake.answer {
        case.evidence = seen.around(answer.seq);
    }
    case
}

/// Nothing was asked: the process could not be started, or its stdin took nothing.
fn not_asked(probe: &Probe, seen: &Observed<'_>) -> Case {
    let view = seen.view();
    let Some(process) = view.processes().first().copied() else {
        return probe.case(Verdict::Untestable, "no process was started");
    };
    let mut case = match obituary(seen.events, process) {
        Some((seq, how)) => {
            let mut case = probe.case(
                Verdict::Crash,
                format!("ended before it took initialize: {how}"),
            );
            case.evidence = seen.around(seq);
            case
        }
        None => probe.case(Verdict::Timeout, "did not take initialize"),
    };
    case.expected = Some("an initialize result".to_owned());
    case
}

/// No answer came: the process died, wrote something else, or said nothing.
fn unanswered(
    probe: &Probe,
    seen: &Observed<'_>,
    handshake: &Handshake<'_>,
    expected: &str,
) -> Case {
    let view = seen.view();
    let stray = view
        .stray(handshake.process, Direction::ToClient)
        .find(|stray| !evidence::is_cut_by_us(seen.events, stray));
    let ours = seen
        .first_failure()
        .is_some_and(|said| said.contains(MESSAGE_BOUND));
    let (mut case, seq) = if ours {
        let said = format!(
            "the answer to initialize is longer than the host takes, whose bound is {MESSAGE_BOUND}"
        );
        (probe.missed(said, expected), handshake.request.seq)
    } else if let Some(stray) = stray {
        let said = "no answer to initialize: stdout could not be read as frames";
        (probe.missed(said, expected), stray.seq)
    } else if let Some((seq, how)) =
        obituary(seen.events, handshake.process).filter(|_| died(view, handshake.process))
    {
        let said = format!("ended before it answered initialize: {how}");
        (probe.case(Verdict::Crash, said), seq)
    } else {
        let said = format!("initialize not answered within {}", seen.limit());
        (probe.case(Verdict::Timeout, said), handshake.request.seq)
    };
    case.expected = Some(expected.to_owned());
    // The host names what it could not read or wait for, and any limit that was passed.
    case.got = seen.first_failure();
    case.evidence = seen.around(seq);
    case
}

/// Whether a process ended, or closed its stdout, before the host began to end it.
fn died(view: View<'_>, process: u32) -> bool {
    view.of(process)
        .take_while(|event| {
            !matches!(
                &event.body,
                EventBody::Note { kind, .. }
                    if kind == evidence::TERMINATE || kind == evidence::UNREAD
            )
        })
        .any(|event| {
            matches!(
                event.body,
                EventBody::ProcessEnded { .. }
                    | EventBody::Closed {
                        direction: Direction::ToClient,
                        ..
                    }
            )
        })
}

/// What our own `initialize` has to look like for the clause to be judged at all (INI-2, INI-3).
fn our_request(handshake: &Handshake<'_>) -> Option<String> {
    let params = handshake.request.frame()?.at("/params")?;
    let wanted = json!({
        "general": {"positionEncodings": ["utf-16"]},
        "workspace": {"workspaceFolders": true, "configuration": true},
        "textDocument": {
            "hover": {"contentFormat": ["markdown", "plaintext"]},
            "definition": {"linkSupport": true},
            "implementation": {"linkSupport": true},
        },
    });
    let capabilities = without_false(&params["capabilities"]);
    if !params["processId"].is_null() {
        Some(format!(
            "our initialize has processId {}",
            params["processId"]
        ))
    } else if !params["rootUri"].is_string() {
        Some(format!("our initialize has rootUri {}", params["rootUri"]))
    } else if capabilities != wanted {
        Some(format!(
            "our initialize announces other capabilities than INI-3: {capabilities}"
        ))
    } else {
        None
    }
}

/// The value without members that are false, and without objects that are empty then: for a
/// capability, absent says the same.
fn without_false(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), without_false(value)))
            .filter(|(_, value)| *value != Value::Bool(false) && *value != json!({}))
            .collect(),
        other => other.clone(),
    }
}

/// QUA-2.
pub(super) fn encoding(probe: &Probe, seen: &Observed<'_>) -> Case {
    let result = match seen.initialized(probe) {
        Ok(result) => result,
        Err(case) => return *case,
    };
    match result.pointer("/capabilities/positionEncoding") {
        None => probe.case(Verdict::Pass, "position encoding omitted, so utf-16"),
        Some(Value::String(name)) if name == "utf-16" => {
            probe.case(Verdict::Pass, "position encoding utf-16")
        }
        Some(other) => with_answer(
            seen,
            probe.missed(
                format!("position encoding {other}"),
                "utf-16, or no positionEncoding",
            ),
        ),
    }
}

/// QUA-3.
pub(super) fn synchronization(probe: &Probe, seen: &Observed<'_>) -> Case {
    let result = match seen.initialized(probe) {
        Ok(result) => result,
        Err(case) => return *case,
    };
    let shown = match result.pointer("/capabilities/textDocumentSync") {
        None => "textDocumentSync is absent".to_owned(),
        Some(Value::Object(members)) => {
            let told = ["openClose", "change"]
                .into_iter()
                .filter_map(|name| Some(format!("{name}: {}", members.get(name)?)));
            format!(
                "textDocumentSync {{{}}}",
                told.collect::<Vec<_>>().join(", ")
            )
        }
        Some(other) => format!("textDocumentSync {other}"),
    };
    if sync_is_compatible(&result) {
        probe.case(Verdict::Pass, shown)
    } else {
        let expected = "textDocumentSync 1 or 2, or an object with openClose true";
        with_answer(seen, probe.missed(shown, expected))
    }
}

/// Whether documents can be opened and closed (OPN-2).
pub(crate) fn sync_is_compatible(initialize_result: &Value) -> bool {
    match initialize_result.pointer("/capabilities/textDocumentSync") {
        Some(Value::Number(kind)) => kind.as_f64().is_some_and(|kind| [1.0, 2.0].contains(&kind)),
        Some(Value::Object(members)) => members.get("openClose") == Some(&Value::Bool(true)),
        _ => false,
    }
}

/// QUA-11.
pub(super) fn operations(probe: &Probe, seen: &Observed<'_>) -> Case {
    let result = match seen.initialized(probe) {
        Ok(result) => result,
        Err(case) => return *case,
    };
    let missing: Vec<&str> = Operation::ALL
        .into_iter()
        .filter(|operation| !advertised(&result, *operation))
        .map(Operation::name)
        .collect();
    if missing.is_empty() {
        probe.case(Verdict::Pass, "all four operations advertised")
    } else {
        let said = format!("not advertised: {}", missing.join(", "));
        with_answer(seen, probe.missed(said, "all four operations"))
    }
}

/// Whether an operation is advertised: `true`, or an object with options (INI-6).
pub(crate) fn advertised(initialize_result: &Value, operation: Operation) -> bool {
    let provider = initialize_result.pointer(&format!("/capabilities/{}", provider(operation)));
    matches!(provider, Some(Value::Bool(true) | Value::Object(_)))
}

/// The capability that advertises an operation (OPN-13).
pub(super) const fn provider(operation: Operation) -> &'static str {
    match operation {
        Operation::GoToDefinition => "definitionProvider",
        Operation::FindReferences => "referencesProvider",
        Operation::GoToImplementation => "implementationProvider",
        Operation::Hover => "hoverProvider",
    }
}

/// The method an operation is asked by (OPN-13).
pub(crate) const fn method(operation: Operation) -> &'static str {
    match operation {
        Operation::GoToDefinition => "textDocument/definition",
        Operation::FindReferences => "textDocument/references",
        Operation::GoToImplementation => "textDocument/implementation",
        Operation::Hover => "textDocument/hover",
    }
}

/// Adds what passed around the answer to `initialize` as the evidence.
pub(super) fn with_answer(seen: &Observed<'_>, mut case: Case) -> Case {
    if let Some(answer) = seen.handshake().and_then(|handshake| handshake.answer) {
        case.evidence = seen.around(answer.seq);
    }
    case
}
