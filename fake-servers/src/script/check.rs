//! What the types of a script do not say.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::template::{MAX_VALUE, check_text, check_value};
use super::{Action, Helper, Length, Payload, Rule, Script, Spelling, Stderr};

/// The longest pause a rule may make, in milliseconds: ten minutes.
const MAX_PAUSE_MS: u64 = 600_000;

/// The place and the reason of the first thing wrong.
type Wrong = (String, String);

pub(super) fn check(script: &Script) -> Result<(), Wrong> {
    let capabilities = script
        .capabilities
        .values()
        .chain(&script.replace_capabilities);
    for value in capabilities {
        check_value(value).map_err(|reason| ("capabilities".to_owned(), reason))?;
    }
    if !script.capabilities.is_empty() && script.replace_capabilities.is_some() {
        let reason =
            "`capabilities` are merged over what `replace_capabilities` replaces; give one";
        return Err(("capabilities".to_owned(), reason.to_owned()));
    }
    for (at, rule) in script.rules.iter().enumerate() {
        check_rule(rule).map_err(|reason| (format!("rule {} (on {})", at + 1, rule.on), reason))?;
    }
    Ok(())
}

fn check_rule(rule: &Rule) -> Result<(), String> {
    if rule.on.trim().is_empty() {
        return Err(
            "`on` is empty; it names a method, `start`, `response`, `eof` or `SIGTERM`".to_owned(),
        );
    }
    for (name, value) in [("process", rule.process.map(u64::from)), ("nth", rule.nth)] {
        if value == Some(0) {
            return Err(format!("`{name}` counts from 1"));
        }
    }
    if rule.set.as_deref() == Some("") {
        return Err("`set` is empty; a rule for every set leaves it out".to_owned());
    }
    if let Some(when) = &rule.when {
        check_value(when)?;
    }
    rule.r#do
        .iter()
        .try_for_each(|action| check_action(action, rule))
}

fn check_action(action: &Action, rule: &Rule) -> Result<(), String> {
    let silent = ["start", "response", "eof", "SIGTERM"].contains(&rule.on.as_str());
    match action {
        Action::Reply(_) | Action::ReplyRaw(_) | Action::Capabilities(_) if silent => Err(format!(
            "`{}` asks for no answer; use `notify`, `request` or `raw`",
            rule.on
        )),
        Action::Reply(value) => check_value(value),
        Action::Capabilities(members) => members.values().try_for_each(check_value),
        Action::ReplyRaw(payload)
        | Action::Raw(payload)
        | Action::Stderr(Stderr::Payload(payload)) => check_payload(payload),
        Action::Stderr(Stderr::Text(text)) => check_text(text),
        Action::Hold(name) if name.is_empty() => {
            Err("`hold` needs a name, by which the runner releases it".to_owned())
        }
        Action::DelayMs(ms) => at_most("delay_ms", *ms, MAX_PAUSE_MS),
        Action::SpawnHelper(Helper { life_ms, .. }) => at_most("life_ms", *life_ms, MAX_PAUSE_MS),
        Action::Notify(notify) => {
            at_most("times", u64::from(notify.times), 1_000_000)?;
            notify.params.iter().try_for_each(check_value)
        }
        Action::Request(request) => {
            at_most("times", u64::from(request.times), 1_000_000)?;
            request
                .params
                .iter()
                .chain(&request.id)
                .try_for_each(check_value)
        }
        Action::Frame(spelling) => check_spelling(spelling),
        Action::Chunk(super::Chunk::Sizes(sizes)) if sizes.contains(&0) => {
            Err("a size of 0 in `chunk` is no piece".to_owned())
        }
        Action::Note(note) => check_text(&note.message).and_then(|()| check_value(&note.data)),
        _ => Ok(()),
    }
}

fn at_most(key: &str, value: u64, limit: u64) -> Result<(), String> {
    if value <= limit {
        Ok(())
    } else {
        Err(format!("`{key}` is {value}; the limit is {limit}"))
    }
}

fn check_payload(payload: &Payload) -> Result<(), String> {
    match payload {
        Payload::Text(text) => check_text(text),
        Payload::Repeated(repeated) => {
            if repeated.text.len().saturating_mul(repeated.times as usize) > MAX_VALUE {
                return Err(format!("the repeated text is more than {MAX_VALUE} bytes"));
            }
            check_text(&repeated.text)
        }
        Payload::Bytes(bytes) => match STANDARD.decode(&bytes.base64) {
            Ok(_) => Ok(()),
            Err(error) => Err(format!("base64: {error}")),
        },
    }
}

fn check_spelling(spelling: &Spelling) -> Result<(), String> {
    for length in [&spelling.length, &spelling.second_length]
        .into_iter()
        .flatten()
    {
        if let Length::Text(text) = length {
            check_text(text)?;
        }
    }
    if spelling.length.is_some() && spelling.length_by.is_some() {
        return Err("`length` and `length_by` both say the length; give one".to_owned());
    }
    if spelling.no_length && (spelling.length.is_some() || spelling.length_by.is_some()) {
        return Err("`no_length` leaves out what `length` or `length_by` says".to_owned());
    }
    Ok(())
}
