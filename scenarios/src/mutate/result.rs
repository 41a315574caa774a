//! What becomes of requests to the harness and of its answers, and of the command of its servers.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dsh_fake_lsp::contains;
use serde_json::{Value, json};

use super::edit::apply;
use super::form::{Failure, Got, Life, Mutant, ResultRule, Spec};
use crate::run::Tampering;
use crate::subject::CallError;

/// A mutant in one case.
#[derive(Debug)]
pub(crate) struct Mutation<'a> {
    mutant: &'a Mutant,
    executable: &'a Path,
    /// Where the processes that tamper tell that they did.
    report: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    applied: bool,
    /// Rule → how many requests, and how many answers, matched it.
    requests: HashMap<usize, u32>,
    answers: HashMap<usize, u32>,
    /// Rule → the first answer.
    firsts: HashMap<usize, Result<Value, CallError>>,
    /// Servers that were started at load.
    started: Vec<Child>,
}

impl<'a> Mutation<'a> {
    /// `folder` is the case's own, for what tells that something was applied.
    pub(crate) fn new(mutant: &'a Mutant, executable: &'a Path, folder: &Path) -> Self {
        Self {
            mutant,
            executable,
            report: folder.join("applied"),
            state: Mutex::default(),
        }
    }

    /// Whether something was tampered with.
    pub(crate) fn applied(&self) -> bool {
        self.state().applied || std::fs::metadata(&self.report).is_ok_and(|report| report.len() > 0)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lives(&self, life: Life) -> bool {
        self.mutant.life.contains(&life)
    }

    /// Starts a server nobody asked for.
    fn start(&self, argv: &[String]) {
        let Some((program, arguments)) = argv.split_first() else {
            return;
        };
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        if let Ok(child) = child {
            let mut state = self.state();
            state.started.push(child);
            state.applied = true;
        }
    }
}

/// Whether it takes a process between harness and server.
fn between(life: Life) -> bool {
    !matches!(life, Life::AtLoad | Life::Shell | Life::CancelSwallowed)
}

/// Whether a process stands between harness and server in a run of this mutant.
pub(super) fn stands_between(mutant: &Mutant) -> bool {
    !mutant.wire.is_empty() || mutant.life.iter().copied().any(between)
}

impl Drop for Mutation<'_> {
    fn drop(&mut self) {
        for mut child in self.state().started.drain(..) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Tampering for Mutation<'_> {
    fn command(&self, argv: Vec<String>) -> Vec<String> {
        if self.lives(Life::AtLoad) {
            self.start(&argv);
        }
        if self.lives(Life::Shell) {
            self.state().applied = true;
            let words: Vec<String> = argv.iter().map(|word| shell_word(word)).collect();
            return vec!["/bin/sh".to_owned(), "-c".to_owned(), words.join(" ")];
        }
        if !stands_between(self.mutant) {
            return argv;
        }
        let life = self
            .mutant
            .life
            .iter()
            .copied()
            .filter(|life| between(*life))
            .collect();
        let spec = Spec {
            wire: self.mutant.wire.clone(),
            life,
            report: self.report.clone(),
        };
        through(self.executable, &spec, argv)
    }

    fn request(&self, method: &str, mut params: Value) -> Option<Value> {
        let mut state = self.state();
        for (at, rule) in self.mutant.result.iter().enumerate() {
            if (rule.request.is_empty() && !rule.swallow) || !asks(rule, method, &params) {
                continue;
            }
            let count = state.requests.entry(at).or_default();
            *count += 1;
            if !wanted(rule, *count) {
                continue;
            }
            if rule.swallow {
                state.applied = true;
                return None;
            }
            state.applied |= apply(&rule.request, &mut params);
        }
        Some(params)
    }

    fn outcome(
        &self,
        method: &str,
        params: &Value,
        outcome: Result<Value, CallError>,
    ) -> Result<Value, CallError> {
        let mut outcome = outcome;
        let mut state = self.state();
        for (at, rule) in self.mutant.result.iter().enumerate() {
            let changes = !rule.answer.is_empty()
                || rule.succeed.is_some()
                || rule.fail.is_some()
                || rule.as_the_first;
            if !changes || !asks(rule, method, params) || !came(&rule.got, &outcome) {
                continue;
            }
            let count = state.answers.entry(at).or_default();
            *count += 1;
            let count = *count;
            if count == 1 {
                state.firsts.insert(at, outcome.clone());
            }
            if !wanted(rule, count) {
                continue;
            }
            let before = outcome.clone();
            let first = state.firsts.get(&at).cloned();
            outcome = changed(rule, outcome, first);
            state.applied |= before != outcome;
        }
        outcome
    }

    fn cancels(&self) -> bool {
        let swallowed = self.lives(Life::CancelSwallowed);
        self.state().applied |= swallowed;
        !swallowed
    }
}

/// The command that has the server's pass through a process that tampers.
pub(crate) fn through(executable: &Path, spec: &Spec, argv: Vec<String>) -> Vec<String> {
    // It is plain data: nothing in it cannot be written as JSON.
    let spec = serde_json::to_string(spec).unwrap_or_default();
    let executable = executable.display().to_string();
    let front = [executable, "tamper".to_owned(), spec, "--".to_owned()];
    front.into_iter().chain(argv).collect()
}

/// As a careless hand quotes it: what is in a word still means something to the shell, but for the
/// script of the fake server, without which there would be no case.
fn shell_word(word: &str) -> String {
    if word.contains('{') || word.contains('\n') {
        format!("'{}'", word.replace('\'', "'\\''"))
    } else {
        word.to_owned()
    }
}

fn wanted(rule: &ResultRule, count: u32) -> bool {
    rule.nth.is_none_or(|nth| nth == count) && rule.from.is_none_or(|from| count >= from)
}

/// Whether a request is of the kind.
fn asks(rule: &ResultRule, method: &str, params: &Value) -> bool {
    rule.on == method
        && rule.when.as_ref().is_none_or(|part| contains(params, part))
        && rule.like.iter().all(|(pointer, pattern)| {
            let text = params.pointer(pointer).and_then(Value::as_str);
            text.is_some_and(|text| {
                glob::Pattern::new(pattern).is_ok_and(|pattern| pattern.matches(text))
            })
        })
        && rule
            .exactly
            .iter()
            .all(|(pointer, value)| params.pointer(pointer) == Some(value))
}

/// Whether an answer is of the kind.
fn came(got: &Got, outcome: &Result<Value, CallError>) -> bool {
    match (got, outcome) {
        (Got::Anything, _) => true,
        (Got::Success(part), Ok(value)) => contains(value, part),
        (Got::Failure(wanted), Err(CallError::Refused { code, .. })) => {
            wanted == "*" || code.as_ref() == Some(wanted)
        }
        (Got::FailureSays(part), Err(CallError::Refused { message, .. })) => message.contains(part),
        _ => false,
    }
}

fn changed(
    rule: &ResultRule,
    outcome: Result<Value, CallError>,
    first: Option<Result<Value, CallError>>,
) -> Result<Value, CallError> {
    if rule.as_the_first {
        return first.unwrap_or(outcome);
    }
    if let Some(value) = &rule.succeed {
        return Ok(value.clone());
    }
    if let Some(failure) = &rule.fail {
        return Err(failed(failure, &outcome));
    }
    match outcome {
        Ok(mut value) => {
            apply(&rule.answer, &mut value);
            Ok(value)
        }
        Err(CallError::Refused {
            code,
            message,
            data,
        }) => {
            let mut error = json!({"message": message});
            if let Some(code) = code {
                error["code"] = code.into();
            }
            if let Some(server) = data.get("serverCode") {
                error["serverCode"] = server.clone();
            }
            apply(&rule.answer, &mut error);
            let code = error.get("code").and_then(Value::as_str).map(str::to_owned);
            let message = error["message"].as_str().unwrap_or_default().to_owned();
            let mut data = data;
            if data.is_object() {
                for name in ["code", "serverCode"] {
                    match error.get(name) {
                        Some(value) => data[name] = value.clone(),
                        None => {
                            data.as_object_mut().map(|data| data.shift_remove(name));
                        }
                    }
                }
            }
            Err(CallError::Refused {
                code,
                message,
                data,
            })
        }
        other => other,
    }
}

fn failed(failure: &Failure, outcome: &Result<Value, CallError>) -> CallError {
    let message = match (&failure.message, outcome) {
        (Some(message), _) | (None, Err(CallError::Refused { message, .. })) => message.clone(),
        _ => "it did not work".to_owned(),
    };
    CallError::Refused {
        code: Some(failure.code.clone()),
        message,
        data: json!({"code": failure.code}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutant(body: &Value) -> Mutant {
        let mut all = json!({"name": "x", "title": "X", "breaks": ["NAV-1"]});
        all.as_object_mut()
            .unwrap()
            .extend(body.as_object().unwrap().clone());
        serde_json::from_value(all).unwrap()
    }

    fn refused(code: &str) -> Result<Value, CallError> {
        Err(CallError::Refused {
            code: Some(code.to_owned()),
            message: "no".to_owned(),
            data: json!({"code": code, "serverCode": -1}),
        })
    }

    #[test]
    fn answers_are_changed_and_what_is_not_meant_is_not() {
        let mutant = mutant(&json!({"result": [
            {"on": "query", "got": {"failure": "LSP_CONFLICT"}, "succeed": {}},
            {"on": "query", "when": {"operation": "hover"}, "nth": 2,
             "answer": [{"set": {"/hover": null}}]},
        ]}));
        let folder = tempfile::tempdir().unwrap();
        let mutation = Mutation::new(&mutant, Path::new("x"), folder.path());
        let hover = json!({"operation": "hover"});
        let value = || Ok(json!({"hover": {"contents": "x"}}));
        assert_eq!(mutation.outcome("query", &hover, value()), value());
        assert_eq!(mutation.outcome("tool", &hover, value()), value());
        assert!(!mutation.applied());
        assert_eq!(
            mutation.outcome("query", &hover, value()),
            Ok(json!({"hover": null}))
        );
        assert!(mutation.applied());
        assert_eq!(
            mutation.outcome("query", &json!({}), refused("LSP_CONFLICT")),
            Ok(json!({}))
        );
        assert_eq!(
            mutation.outcome("query", &json!({}), refused("LSP_STALE")),
            refused("LSP_STALE")
        );
        assert_eq!(mutation.command(vec!["server".into()]), ["server"]);
    }

    #[test]
    fn errors_keep_what_is_not_changed() {
        let mutant = mutant(&json!({"result": [
            {"on": "query", "got": {"failure": "*"}, "answer": [{"set": {"/code": "OTHER"}}]},
        ]}));
        let folder = tempfile::tempdir().unwrap();
        let mutation = Mutation::new(&mutant, Path::new("x"), folder.path());
        let Err(CallError::Refused {
            code,
            data,
            message,
        }) = mutation.outcome("query", &json!({}), refused("LSP_STALE"))
        else {
            panic!("it fails");
        };
        assert_eq!((code.as_deref(), message.as_str()), (Some("OTHER"), "no"));
        assert_eq!(data, json!({"code": "OTHER", "serverCode": -1}));
    }

    #[test]
    fn requests_are_changed_swallowed_and_cancellations_not_passed() {
        let mutant = mutant(&json!({
            "life": ["cancel_swallowed"],
            "result": [
                {"on": "unmount", "swallow": true},
                {"on": "query", "like": {"/filePath": "*.TS"}, "request": [{"set": {"/x": 1}}]},
            ],
        }));
        let folder = tempfile::tempdir().unwrap();
        let mutation = Mutation::new(&mutant, Path::new("x"), folder.path());
        assert_eq!(mutation.request("unmount", json!({})), None);
        let upper = json!({"filePath": "A.TS"});
        assert_eq!(
            mutation.request("query", upper),
            Some(json!({"filePath": "A.TS", "x": 1}))
        );
        let lower = json!({"filePath": "a.ts"});
        assert_eq!(mutation.request("query", lower.clone()), Some(lower));
        assert!(!mutation.cancels());
    }

    #[test]
    fn the_servers_command_is_told_what_to_do() {
        let mutant = mutant(&json!({"wire": [{"client": "didClose", "do": ["drop"]}]}));
        let folder = tempfile::tempdir().unwrap();
        let mutation = Mutation::new(&mutant, Path::new("dsh"), folder.path());
        let argv = mutation.command(vec!["server".into(), "--stdio".into()]);
        assert_eq!((argv[0].as_str(), argv[1].as_str()), ("dsh", "tamper"));
        assert_eq!(argv[3..], ["--", "server", "--stdio"]);
        let spec: Spec = serde_json::from_str(&argv[2]).unwrap();
        assert_eq!(spec.wire, mutant.wire);
        assert!(!mutation.applied());
        std::fs::write(spec.report, "wire\n").unwrap();
        assert!(mutation.applied());
    }
}
