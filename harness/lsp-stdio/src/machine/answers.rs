//! Requests of the server (SRQ-1…5, SRQ-7).

use serde::de::{MapAccess, SeqAccess};

use super::{Core, Phase};
use crate::json::{self, Shape};
use crate::outgoing::{self, Folder, put};

/// JSON-RPC's `MethodNotFound`.
const METHOD_NOT_FOUND: i64 = -32601;

/// JSON-RPC's `InvalidParams`.
const INVALID_PARAMS: i64 = -32602;

/// How much of an unknown method's name is repeated.
const SHOWN_CHARS: usize = 100;

impl Core {
    /// Answers with the same raw id, at once (SRQ-1). After `exit` nothing is said any more.
    pub(super) fn answer(&mut self, id: &str, method: &str, params: Option<&str>) {
        if matches!(self.phase, Phase::Ended) || self.signs.input_closed {
            return;
        }
        match method {
            "workspace/configuration" => self.answer_configuration(id, params),
            "workspace/workspaceFolders" => {
                let folder = &self.policy.folder;
                self.outbox.push_answer(|out| {
                    outgoing::answer(out, id, |out| put_folders(out, folder));
                });
            }
            "client/registerCapability"
            | "client/unregisterCapability"
            | "window/workDoneProgress/create" => {
                self.outbox.push_answer(|out| outgoing::answer(out, id, |out| put(out, "null")));
            }
            "workspace/applyEdit" => self.outbox.push_answer(|out| {
                outgoing::answer(out, id, |out| {
                    put(
                        out,
                        r#"{"applied":false,"failureReason":"this client only reads, it applies no edits"}"#,
                    );
                });
            }),
            other => {
                let shown: String = other.chars().take(SHOWN_CHARS).collect();
                self.refuse(id, METHOD_NOT_FOUND, &format!("this client has no method {shown:?}"));
            }
        }
    }

    /// The configured value, once for each item (SRQ-2).
    fn answer_configuration(&mut self, id: &str, params: Option<&str>) {
        let items = params.and_then(|params| json::read(params, ItemsShape).ok().flatten());
        let Some(items) = items else {
            return self.refuse(id, INVALID_PARAMS, "params.items is not an array");
        };
        let value = &self.policy.configuration;
        let size = (value.len() as u64 + 1).saturating_mul(items);
        if size > self.policy.max_message_bytes {
            return self.refuse(id, INVALID_PARAMS, "params.items has too many entries");
        }
        self.outbox.push_answer(|out| {
            outgoing::answer(out, id, |out| {
                put(out, "[");
                for index in 0..items {
                    put(out, if index == 0 { "" } else { "," });
                    put(out, value);
                }
                put(out, "]");
            });
        });
    }

    fn refuse(&mut self, id: &str, code: i64, message: &str) {
        self.outbox
            .push_answer(|out| outgoing::answer_error(out, id, code, message));
    }
}

/// The one folder there is (SRQ-7).
fn put_folders(out: &mut Vec<u8>, folder: &Folder) {
    put(out, r#"[{"uri":"#);
    outgoing::put_json(out, folder.uri.as_str());
    put(out, r#","name":"#);
    outgoing::put_json(out, folder.name.as_str());
    put(out, "}]");
}

/// How many items `params.items` has, if it is an array.
struct ItemsShape;

impl<'de> Shape<'de> for ItemsShape {
    type Out = Option<u64>;

    fn other(self) -> Self::Out {
        None
    }

    fn object<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Out, A::Error> {
        let mut items = None;
        while let Some(name) = json::name(&mut members)? {
            match &*name {
                "items" => items = json::value(CountShape, &mut members)?,
                _ => json::skip(&mut members)?,
            }
        }
        Ok(items)
    }
}

/// How many entries an array has.
struct CountShape;

impl<'de> Shape<'de> for CountShape {
    type Out = Option<u64>;

    fn other(self) -> Self::Out {
        None
    }

    fn array<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Out, A::Error> {
        let mut count = 0;
        while items.next_element::<serde::de::IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok(Some(count))
    }
}
