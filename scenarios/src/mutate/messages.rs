//! Changes of the messages that reached the model, as data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::edit::{Edit, Replacement, apply};

/// What begins the part of a message that is about one file.
const HEADINGS: [&str; 4] = [
    "Instructions from: ",
    "Additional instructions from: ",
    "Updated instructions from: ",
    "Instructions removed: ",
];

/// What begins the notice of what is left out.
const NOTICE: &str = "Workspace instruction budget";

/// Some messages of a turn's requests, and what becomes of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Messages {
    /// Only those of this role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Only those whose text contains this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has: Option<String>,
    /// Only those whose source is of this kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Only the nth of a request, from 1, that fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nth: Option<usize>,
    /// From the nth of a request on that fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<usize>,
    /// Only in the nth request of the turn, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<usize>,
    /// What becomes of them.
    pub r#do: MessageAct,
}

/// What becomes of messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageAct {
    /// They are not there.
    Drop,
    /// They are there twice, one directly behind the other.
    Repeat,
    /// They are there once more, at the end of the request.
    RepeatAtTheEnd,
    /// They stand before the results that they stood behind.
    BeforeResults,
    /// They stand before everything else.
    First,
    /// They stand in the opposite order.
    Reverse,
    /// They are said in another role.
    Role(String),
    /// A part of their texts is another.
    Text(Replacement),
    /// Their texts have so many bytes at most, wherever that cuts them.
    Cut(usize),
    /// The parts about files stand in the opposite order.
    ReverseSections,
    /// The parts whose heading contains this are not there.
    DropSection(String),
    /// The parts whose heading contains this are there twice.
    RepeatSection(String),
    /// The notice of what was left out is not there.
    DropNotice,
    /// Their typed source is another.
    Source(Vec<Edit>),
}

impl Messages {
    /// Changes the requests of a turn's outcome.
    pub(crate) fn apply(&self, outcome: &mut Value) {
        let Some(requests) = outcome.get_mut("requests").and_then(Value::as_array_mut) else {
            return;
        };
        for (at, request) in requests.iter_mut().enumerate() {
            if self.request.is_some_and(|only| only != at + 1) {
                continue;
            }
            if let Some(messages) = request.get_mut("messages").and_then(Value::as_array_mut) {
                self.change(messages);
            }
        }
    }

    fn fits(&self, message: &Value) -> bool {
        let text = message["text"].as_str().unwrap_or_default();
        let is = |wanted: &Option<String>, found: &Value| {
            wanted
                .as_ref()
                .is_none_or(|wanted| found == wanted.as_str())
        };
        is(&self.role, &message["role"])
            && is(&self.kind, &message["source"]["kind"])
            && self.has.as_ref().is_none_or(|has| text.contains(has))
    }

    /// The places of the messages that are meant.
    fn meant(&self, messages: &[Value]) -> Vec<usize> {
        let fitting = messages.iter().enumerate();
        let fitting = fitting.filter(|(_, message)| self.fits(message));
        let numbered = fitting.enumerate().filter(|(number, _)| {
            self.nth.is_none_or(|nth| nth == number + 1)
                && self.from.is_none_or(|from| from <= number + 1)
        });
        numbered.map(|(_, (place, _))| place).collect()
    }

    fn change(&self, messages: &mut Vec<Value>) {
        let meant = self.meant(messages);
        match &self.r#do {
            MessageAct::Drop => {
                for place in meant.into_iter().rev() {
                    messages.remove(place);
                }
            }
            MessageAct::Repeat => {
                for place in meant.into_iter().rev() {
                    messages.insert(place, messages[place].clone());
                }
            }
            MessageAct::RepeatAtTheEnd => {
                let again: Vec<Value> =
                    meant.iter().map(|place| messages[*place].clone()).collect();
                messages.extend(again);
            }
            MessageAct::BeforeResults => {
                for place in meant {
                    let results = messages[..place]
                        .iter()
                        .rev()
                        .take_while(|message| message["role"] == "tool")
                        .count();
                    messages[place - results..=place].rotate_right(1);
                }
            }
            MessageAct::First => {
                for (to, place) in meant.into_iter().enumerate() {
                    messages[to..=place].rotate_right(1);
                }
            }
            MessageAct::Reverse => {
                let (mut low, mut high) = (0, meant.len());
                while low + 1 < high {
                    high -= 1;
                    messages.swap(meant[low], meant[high]);
                    low += 1;
                }
            }
            MessageAct::Source(edits) => {
                for place in meant {
                    if let Some(source) = messages[place].get_mut("source") {
                        apply(edits, source);
                    }
                }
            }
            act => {
                for place in meant {
                    alter(act, &mut messages[place]);
                }
            }
        }
    }
}

/// Changes what one message says.
fn alter(act: &MessageAct, message: &mut Value) {
    let Some(text) = message["text"].as_str().map(str::to_owned) else {
        return;
    };
    let new = match act {
        MessageAct::Role(role) => {
            message["role"] = role.clone().into();
            return;
        }
        MessageAct::Text(by) => text.replace(&by.from, &by.to),
        MessageAct::Cut(bytes) => {
            let kept = &text.as_bytes()[..text.len().min(*bytes)];
            String::from_utf8_lossy(kept).into_owned()
        }
        MessageAct::DropNotice => {
            let kept = text.split_inclusive('\n');
            kept.filter(|line| !line.starts_with(NOTICE)).collect()
        }
        MessageAct::ReverseSections => sections(&text, |mut sections| {
            sections.reverse();
            sections
        }),
        MessageAct::DropSection(of) => sections(&text, |mut sections| {
            sections.retain(|section| !heading(section).contains(of.as_str()));
            sections
        }),
        MessageAct::RepeatSection(of) => sections(&text, |sections| {
            let twice = sections.into_iter().flat_map(|section| {
                let times = if heading(&section).contains(of.as_str()) {
                    2
                } else {
                    1
                };
                std::iter::repeat_n(section, times)
            });
            twice.collect()
        }),
        _ => return,
    };
    message["text"] = new.into();
}

fn heading(section: &str) -> &str {
    section.lines().next().unwrap_or_default()
}

/// A text whose parts about files are others.
fn sections(text: &str, change: impl FnOnce(Vec<String>) -> Vec<String>) -> String {
    let (mut before, mut parts, mut behind) = (String::new(), Vec::<String>::new(), String::new());
    for line in text.split_inclusive('\n') {
        let ends = line.starts_with("</") || line.starts_with(NOTICE);
        if HEADINGS.iter().any(|start| line.starts_with(start)) {
            parts.push(line.to_owned());
        } else if ends || !behind.is_empty() {
            behind.push_str(line);
        } else if let Some(part) = parts.last_mut() {
            part.push_str(line);
        } else {
            before.push_str(line);
        }
    }
    format!("{before}{}{behind}", change(parts).concat())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TEXT: &str = "<r>\nRead this.\n\nInstructions from: A\n\na\n\nInstructions from: B\n\nb\n\n\
                        Workspace instruction budget: x\n</r>";

    #[track_caller]
    fn check(edit: &Value, before: &Value, after: &Value) {
        let edit: Messages = serde_json::from_value(edit.clone()).expect("an edit");
        let mut outcome = json!({"requests": [{"messages": before}]});
        edit.apply(&mut outcome);
        assert_eq!(outcome["requests"][0]["messages"], *after);
    }

    fn message(role: &str, text: &str) -> Value {
        json!({"role": role, "text": text})
    }

    #[test]
    fn messages_go_come_and_move() {
        let of = |texts: &[&str]| -> Value {
            let message = |text: &&str| match text.strip_prefix('=') {
                Some(_) => message("tool", text),
                None => message("user", text),
            };
            texts.iter().map(message).collect()
        };
        let before = of(&["a", "=1", "=2", "b", "ab"]);
        for (edit, after) in [
            (json!({"has": "a", "do": "drop"}), of(&["=1", "=2", "b"])),
            (
                json!({"has": "a", "nth": 2, "do": "drop"}),
                of(&["a", "=1", "=2", "b"]),
            ),
            (
                json!({"has": "a", "from": 2, "do": "drop"}),
                of(&["a", "=1", "=2", "b"]),
            ),
            (
                json!({"has": "a", "request": 2, "do": "drop"}),
                before.clone(),
            ),
            (
                json!({"has": "b", "nth": 1, "do": "repeat"}),
                of(&["a", "=1", "=2", "b", "b", "ab"]),
            ),
            (
                json!({"role": "tool", "do": "repeat_at_the_end"}),
                of(&["a", "=1", "=2", "b", "ab", "=1", "=2"]),
            ),
            (
                json!({"has": "b", "nth": 1, "do": "before_results"}),
                of(&["a", "b", "=1", "=2", "ab"]),
            ),
            (
                json!({"has": "b", "do": "first"}),
                of(&["b", "ab", "a", "=1", "=2"]),
            ),
            (
                json!({"role": "tool", "do": "reverse"}),
                of(&["a", "=2", "=1", "b", "ab"]),
            ),
        ] {
            check(&edit, &before, &after);
        }
    }

    #[test]
    fn what_a_message_says_becomes_something_else() {
        let of =
            |text: &str| json!([{"role": "user", "text": text, "source": {"kind": "k", "n": 1}}]);
        for (act, text) in [
            (
                json!({"text": {"from": "a\n", "to": "c\n"}}),
                TEXT.replace("a\n", "c\n"),
            ),
            (json!({"cut": 4}), "<r>\n".to_owned()),
            (
                json!("drop_notice"),
                TEXT.replace("Workspace instruction budget: x\n", ""),
            ),
            (
                json!("reverse_sections"),
                "<r>\nRead this.\n\nInstructions from: B\n\nb\n\nInstructions from: A\n\na\n\n\
                 Workspace instruction budget: x\n</r>"
                    .to_owned(),
            ),
            (
                json!({"drop_section": "from: A"}),
                TEXT.replace("Instructions from: A\n\na\n\n", ""),
            ),
            (
                json!({"repeat_section": "from: A"}),
                TEXT.replace(
                    "Instructions from: A\n\na\n\n",
                    "Instructions from: A\n\na\n\nInstructions from: A\n\na\n\n",
                ),
            ),
        ] {
            check(&json!({"kind": "k", "do": act}), &of(TEXT), &of(&text));
        }
        check(
            &json!({"do": {"role": "system"}}),
            &json!([message("user", "x")]),
            &json!([message("system", "x")]),
        );
        check(
            &json!({"do": {"source": [{"remove": ["/n"]}]}}),
            &of("x"),
            &json!([{"role": "user", "text": "x", "source": {"kind": "k"}}]),
        );
        // A cut within a character is one.
        check(
            &json!({"do": {"cut": 2}}),
            &json!([message("user", "aé")]),
            &json!([message("user", "a\u{fffd}")]),
        );
        check(&json!({"kind": "other", "do": "drop"}), &of("x"), &of("x"));
    }
}
