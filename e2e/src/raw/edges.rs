//! Odd requests, each followed by a usual question.

use std::path::Path;
use std::time::Duration;

use dsh_reports::Edge;
use serde_json::{Value, json};

use super::client::{Client, Reply};
use super::dialogue::Spelling;
use super::site::{self, Document, Query, Site, off_symbol, past_file, past_line};
use super::value::{named, valued};
use crate::judge::advertised;
use crate::readiness::{Answer, Pauses};
use crate::samples::Operation;
use crate::time::micros;

/// How long an odd request may take.
const ODD: Duration = Duration::from_secs(2);
/// How long the answer to what needs none is listened for.
const LISTEN: Duration = Duration::from_millis(250);
/// How long a server has to answer the usual question rightly again.
const USUAL: Duration = Duration::from_secs(3);
/// An id that no request has.
const NO_SUCH_ID: u64 = 4_000_000_000;

/// The odd things, by their names in the report, in the order in which they are done.
pub(super) const ALL: [&str; 11] = [
    "position-off-symbol",
    "position-past-end-of-line",
    "position-past-end-of-file",
    "empty-file",
    "file-outside",
    "unknown-request",
    "unknown-notification",
    "cancel-unknown-id",
    "cancel-finished-id",
    "header-lower-case",
    "header-extra-fields",
];

/// The edges of one process.
pub(super) struct Edges<'e> {
    pub(super) site: &'e Site<'e>,
    pub(super) initialized: &'e Value,
    /// The usual question.
    pub(super) query: &'e Query<'e>,
}

impl<'e> Edges<'e> {
    /// What there is to ask of a server that said this; none if it advertises nothing.
    pub(super) fn of(
        site: &'e Site<'e>,
        initialized: &'e Value,
        right: &std::collections::BTreeSet<Operation>,
    ) -> Option<Self> {
        let first = site.first_of_each();
        let advertised = |query: &&&Query<'_>| advertised(initialized, query.operation);
        let right = |query: &&&Query<'_>| right.contains(&query.operation);
        let mut usual = first.iter().filter(advertised).filter(right);
        let query = usual.next().or_else(|| first.iter().find(advertised))?;
        let query = site.queries.iter().find(|q| std::ptr::eq(*q, *query))?;
        Some(Self {
            site,
            initialized,
            query,
        })
    }

    /// Does the odd thing and asks the usual question; none if it was given up from outside.
    pub(super) async fn one(&self, client: &mut Client<'_>, name: &str) -> Option<Edge> {
        let (answer, detail) = match self.odd(client, name).await {
            Ok(said) => said,
            Err(why) => ("not asked".to_owned(), Some(why)),
        };
        let alive = self.is_alive(client, USUAL).await;
        if client.is_cancelled() {
            return None;
        }
        let (answer, detail) = match client.obituary().await {
            Some(how) if !alive => ("the server died".to_owned(), Some(how)),
            _ => (answer, detail),
        };
        Some(Edge {
            name: name.to_owned(),
            answer,
            detail: detail.map(|text| crate::evidence::quote(&text)),
            alive,
        })
    }

    async fn odd(
        &self,
        client: &mut Client<'_>,
        name: &str,
    ) -> Result<(String, Option<String>), String> {
        let usual = self.site.document(&self.query.file)?;
        let at = self.query.position;
        let operation = self.query.operation;
        let odd_place = match name {
            "position-off-symbol" => Some(off_symbol(&usual.text)),
            "position-past-end-of-line" => Some(past_line(&usual.text, at)),
            "position-past-end-of-file" => Some(past_file(&usual.text)),
            _ => None,
        };
        if let Some(place) = odd_place {
            let params = site::params(operation, &usual.uri, place);
            let reply = client
                .ask_about(&usual, self.query.method(), params, ODD)
                .await;
            return Ok(named(&reply));
        }
        Ok(match name {
            "empty-file" => {
                let document = self.empty()?;
                let start = crate::samples::Position {
                    line: 0,
                    character: 0,
                };
                let params = site::params(operation, &document.uri, start);
                let method = self.query.method();
                let reply = client.ask_about(&document, method, params, ODD).await;
                named(&reply)
            }
            "file-outside" => {
                let document = self.outside(usual)?;
                let params = self.query.params(&document.uri);
                let method = self.query.method();
                let reply = client.ask_about(&document, method, params, ODD).await;
                named(&reply)
            }
            "unknown-request" => {
                let reply = client.ask("dsh/unknownRequest", Some(json!({})), ODD).await;
                named(&reply)
            }
            "unknown-notification" => {
                let method = "dsh/unknownNotification";
                client.dialogue.notify(method, Some(json!({})));
                listened(client, &[Value::Null]).await
            }
            "cancel-unknown-id" => {
                let params = json!({"id": NO_SUCH_ID});
                client.dialogue.notify("$/cancelRequest", Some(params));
                listened(client, &[NO_SUCH_ID.into(), Value::Null]).await
            }
            "cancel-finished-id" => {
                let params = self.query.params(&usual.uri);
                client.open(&usual);
                let id = client.dialogue.request(self.query.method(), Some(params));
                client.answer(id, ODD).await;
                client.dialogue.give_up(id);
                let params = json!({"id": id});
                client.dialogue.notify("$/cancelRequest", Some(params));
                let said = listened(client, &[id.into(), Value::Null]).await;
                client.close(&usual);
                said
            }
            "header-lower-case" => self.spelled(client, &usual, Spelling::LowerCase).await,
            "header-extra-fields" => self.spelled(client, &usual, Spelling::ExtraFields).await,
            other => return Err(format!("{other} is not known")),
        })
    }

    /// The usual question in a frame of another spelling.
    async fn spelled(
        &self,
        client: &mut Client<'_>,
        usual: &Document,
        spelling: Spelling,
    ) -> (String, Option<String>) {
        client.open(usual);
        let params = Some(self.query.params(&usual.uri));
        let method = self.query.method();
        let id = client.dialogue.request_spelled(method, params, spelling);
        let reply = client.answer(id, ODD).await;
        client.dialogue.give_up(id);
        client.close(usual);
        named(&reply)
    }

    /// A file without a byte: on disk where the workspace is a copy.
    fn empty(&self) -> Result<Document, String> {
        let name = self.beside("dsh-empty");
        let path = Path::new(self.site.root).join(&name);
        if self.site.own {
            std::fs::write(&path, "").map_err(|error| format!("{name}: {error}"))?;
        }
        self.site.document_with(&path, String::new())
    }

    /// A copy of the usual file outside the workspace.
    fn outside(&self, usual: Document) -> Result<Document, String> {
        let name = self.beside("dsh-outside");
        let path = self.site.outside.join(&name);
        std::fs::write(&path, &usual.text).map_err(|error| format!("{name}: {error}"))?;
        self.site.document_with(&path, usual.text)
    }

    /// A name with the extension of the usual file.
    fn beside(&self, stem: &str) -> String {
        let extension = Path::new(&self.query.file).extension();
        match extension.and_then(|extension| extension.to_str()) {
            Some(extension) => format!("{stem}.{extension}"),
            None => stem.to_owned(),
        }
    }

    /// Whether the usual question is answered rightly, now or soon.
    pub(super) async fn is_alive(&self, client: &mut Client<'_>, within: Duration) -> bool {
        let until_us = client.now_us() + micros(within);
        let mut pauses = Pauses::default();
        loop {
            let Ok(document) = self.site.document(&self.query.file) else {
                return false;
            };
            let params = self.query.params(&document.uri);
            let method = self.query.method();
            let reply = client.ask_about(&document, method, params, within).await;
            let (relative, known) = (self.site.relative, self.query.known);
            let valued = valued(self.query.operation, &reply, known, relative, None);
            match valued {
                Some((Answer::Right, _)) => return true,
                Some((Answer::Other(_), _)) if client.now_us() < until_us => {}
                _ => return false,
            }
            if !client.rest(pauses.next()).await {
                return false;
            }
        }
    }
}

/// What came to something that needs no answer.
async fn listened(client: &mut Client<'_>, ids: &[Value]) -> (String, Option<String>) {
    client.rest(LISTEN).await;
    if client.is_gone() {
        return named(&Reply::Gone);
    }
    match client.dialogue.take_unasked(ids) {
        Some(answered) => named(&Reply::Answered(answered)),
        None => ("nothing".to_owned(), None),
    }
}
