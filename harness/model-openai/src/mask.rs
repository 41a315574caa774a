//! Takes the key out of what a model says, before anybody is told or anything is kept of it.
//!
//! A model may repeat a key that it was shown, in a file for instance; from its answer it would get
//! into the session's log and everything that is made of it.

use std::collections::BTreeMap;

use dsh_agent::Delta;
use dsh_session::AssistantMessage;
use serde_json::{Map, Value};

use crate::secret::Secret;

/// Which text of a message a piece belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Text,
    Reasoning,
    /// The arguments of a call.
    Call(usize),
}

/// The pieces of one message, of which none shows the key. What may be its beginning is held back
/// until it is known.
pub(crate) struct Mask<'a> {
    secret: &'a Secret,
    held: BTreeMap<Place, String>,
}

impl<'a> Mask<'a> {
    pub(crate) fn new(secret: &'a Secret) -> Self {
        Self {
            secret,
            held: BTreeMap::new(),
        }
    }

    /// The piece as it may be told.
    pub(crate) fn piece(&mut self, delta: Delta) -> Option<Delta> {
        match delta {
            Delta::Text(text) => told(self.text(Place::Text, &text)).map(Delta::Text),
            Delta::Reasoning(text) => {
                told(self.text(Place::Reasoning, &text)).map(Delta::Reasoning)
            }
            Delta::ToolCall {
                index,
                id,
                name,
                arguments,
            } => {
                let hidden = |text: Option<String>| text.map(|text| self.secret.hide_in(&text));
                let (id, name) = (hidden(id), hidden(name));
                let arguments = self.text(Place::Call(index), &arguments);
                let empty = id.is_none() && name.is_none() && arguments.is_empty();
                (!empty).then_some(Delta::ToolCall {
                    index,
                    id,
                    name,
                    arguments,
                })
            }
        }
    }

    /// What is held back when the message has ended: it was no key.
    pub(crate) fn rest(self) -> impl Iterator<Item = Delta> {
        let held = self.held.into_iter().filter(|(_, text)| !text.is_empty());
        held.map(|(place, text)| match place {
            Place::Text => Delta::Text(text),
            Place::Reasoning => Delta::Reasoning(text),
            Place::Call(index) => Delta::ToolCall {
                index,
                id: None,
                name: None,
                arguments: text,
            },
        })
    }

    fn text(&mut self, place: Place, piece: &str) -> String {
        let held = self.held.entry(place).or_default();
        held.push_str(piece);
        let mut text = self.secret.hide_in(held);
        let begun = self.secret.begun_at_the_end_of(&text);
        *held = text.split_off(text.len() - begun);
        text
    }
}

fn told(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// The message without the key, wherever it stands in there.
pub(crate) fn masked(secret: &Secret, mut message: AssistantMessage) -> AssistantMessage {
    message.text = secret.hide_in(&message.text);
    message.reasoning = message.reasoning.map(|text| secret.hide_in(&text));
    for call in &mut message.tool_calls {
        call.id = secret.hide_in(&call.id);
        call.name = secret.hide_in(&call.name);
        call.arguments = value(secret, std::mem::take(&mut call.arguments));
    }
    message
}

fn value(secret: &Secret, value_: Value) -> Value {
    match value_ {
        Value::String(text) => secret.hide_in(&text).into(),
        Value::Array(items) => items.into_iter().map(|item| value(secret, item)).collect(),
        Value::Object(members) => {
            let hidden =
                |(key, member): (String, Value)| (secret.hide_in(&key), value(secret, member));
            Value::Object(members.into_iter().map(hidden).collect::<Map<_, _>>())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use dsh_session::ToolCall;
    use serde_json::json;

    use super::*;
    use crate::secret::HIDDEN;

    const KEY: &str = "sk-sk-0123456789";

    /// However a text is cut into pieces, together they are the text without the key.
    #[test]
    fn a_key_is_masked_however_it_is_cut() {
        let secret = Secret::new(KEY);
        let text = format!("é sk- {KEY}{KEY} sk-sk-sk-0123456789 and sk-sk-01");
        let expected = text.replace(KEY, HIDDEN);
        let ends: Vec<usize> = (0..text.len())
            .filter(|at| text.is_char_boundary(*at))
            .collect();
        for first in &ends {
            for second in ends.iter().filter(|second| *second >= first) {
                let mut mask = Mask::new(&secret);
                let pieces = [&text[..*first], &text[*first..*second], &text[*second..]];
                let mut all = String::new();
                let mut take = |delta| match delta {
                    Delta::Text(piece) => {
                        assert!(!piece.contains(KEY));
                        all.push_str(&piece);
                    }
                    other => panic!("{other:?}"),
                };
                for piece in pieces {
                    mask.piece(Delta::Text(piece.to_owned()))
                        .into_iter()
                        .for_each(&mut take);
                }
                mask.rest().for_each(take);
                assert_eq!(all, expected, "cut at {first} and {second}");
            }
        }
    }

    #[test]
    fn each_text_of_a_message_is_one_of_its_own() {
        let secret = Secret::new(KEY);
        let mut mask = Mask::new(&secret);
        let call = |index, arguments: &str| Delta::ToolCall {
            index,
            id: None,
            name: None,
            arguments: arguments.to_owned(),
        };
        assert_eq!(mask.piece(call(0, "sk-sk-")), None);
        assert_eq!(
            mask.piece(call(1, "0123456789")),
            Some(call(1, "0123456789"))
        );
        assert_eq!(
            mask.piece(Delta::Reasoning("0123456789".to_owned())),
            Some(Delta::Reasoning("0123456789".to_owned()))
        );
        assert_eq!(mask.piece(call(0, "0123456789")), Some(call(0, HIDDEN)));
        assert_eq!(mask.rest().count(), 0);
    }

    #[test]
    fn a_message_is_masked_in_all_its_parts() {
        let secret = Secret::new(KEY);
        let message = AssistantMessage {
            text: format!("a {KEY}"),
            reasoning: Some(format!("{KEY} b")),
            tool_calls: vec![ToolCall {
                id: KEY.to_owned(),
                name: KEY.to_owned(),
                arguments: json!({KEY: [{"x": format!("c{KEY}")}, 1]}),
            }],
            usage: None,
        };
        let told = serde_json::to_string(&masked(&secret, message)).unwrap();
        assert!(!told.contains(KEY), "{told}");
        assert_eq!(told.matches(HIDDEN).count(), 6, "{told}");
    }
}
