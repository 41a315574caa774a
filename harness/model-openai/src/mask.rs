//! Takes the key out of what a model says to people, before anybody is told or anything is kept of
//! it: a model may repeat a key that it was shown.
//!
//! Calls stay as they are. They are carried out, and a file would be written with something else
//! than the model asked for; what a tool has read of a key is in the session's log as it is.

use std::collections::BTreeMap;

use dsh_agent::Delta;
use dsh_session::AssistantMessage;

use crate::secret::Secret;

/// Which text of a message a piece belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Text,
    Reasoning,
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
            call @ Delta::ToolCall { .. } => Some(call),
        }
    }

    /// What is held back when the message has ended: it was no key.
    pub(crate) fn rest(self) -> impl Iterator<Item = Delta> {
        let held = self.held.into_iter().filter(|(_, text)| !text.is_empty());
        held.map(|(place, text)| match place {
            Place::Text => Delta::Text(text),
            Place::Reasoning => Delta::Reasoning(text),
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

/// The message without the key in what it says; its calls are as they were.
pub(crate) fn masked(secret: &Secret, mut message: AssistantMessage) -> AssistantMessage {
    message.text = secret.hide_in(&message.text);
    message.reasoning = message.reasoning.map(|text| secret.hide_in(&text));
    message
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
    fn each_text_of_a_message_is_one_of_its_own_and_calls_are_passed_on() {
        let secret = Secret::new(KEY);
        let mut mask = Mask::new(&secret);
        let call = Delta::ToolCall {
            index: 0,
            id: None,
            name: None,
            arguments: KEY.to_owned(),
        };
        assert_eq!(mask.piece(Delta::Text("sk-sk-".to_owned())), None);
        assert_eq!(
            mask.piece(Delta::Reasoning("0123456789".to_owned())),
            Some(Delta::Reasoning("0123456789".to_owned()))
        );
        assert_eq!(mask.piece(call.clone()), Some(call));
        let rest = Delta::Text("0123456789".to_owned());
        assert_eq!(mask.piece(rest), Some(Delta::Text(HIDDEN.to_owned())));
        assert_eq!(mask.rest().count(), 0);
    }

    /// A call is carried out as it was said: with the key written otherwise, a file would be
    /// written otherwise.
    #[test]
    fn what_is_said_is_masked_and_what_is_asked_for_is_not() {
        let secret = Secret::new(KEY);
        let call = ToolCall {
            id: "1".to_owned(),
            name: "write".to_owned(),
            arguments: json!({"content": format!("KEY={KEY}")}),
        };
        let message = AssistantMessage {
            text: format!("a {KEY}"),
            reasoning: Some(format!("{KEY} b")),
            tool_calls: vec![call.clone()],
            usage: None,
        };
        let told = masked(&secret, message);
        assert_eq!(told.tool_calls, [call]);
        assert_eq!(told.text, format!("a {HIDDEN}"));
        assert_eq!(told.reasoning, Some(format!("{HIDDEN} b")));
    }
}
