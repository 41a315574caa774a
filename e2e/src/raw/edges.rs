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
use crate::samples::{Operation, Position};
use crate::time::micros;

/// How long an odd request may take.
const ODD: Duration = Duration::from_secs(2);
/// The same of a server that leaves usual ones without an answer.
const SHORT: Duration = Duration::from_millis(250);
/// How long the answer to what needs none is listened for.
const LISTEN: Duration = Duration::from_millis(250);
/// How long a server has to answer the usual question rightly again.
const USUAL: Duration = Duration::from_secs(3);
/// A request that no server knows, and may refuse.
const UNKNOWN: &str = "dsh/unknownRequest";
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

/// Those that are about a place, and so need an operation to ask with.
pub(super) const OF_A_PLACE: [&str; 5] = [ALL[0], ALL[1], ALL[2], ALL[3], ALL[4]];

/// What the usual question gets behind an odd request, of a server that is as it was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Usual {
    /// The right answer.
    Right,
    /// Any answer: the right one never came.
    Answered,
    /// Not even that came: only that the process is there can be seen.
    Alive,
}

/// The edges of one process.
pub(super) struct Edges<'e> {
    pub(super) site: &'e Site<'e>,
    pub(super) initialized: &'e Value,
    /// The usual question; a request that no server knows, where no operation is advertised.
    pub(super) query: Option<&'e Query<'e>>,
    usual: Usual,
}

impl<'e> Edges<'e> {
    /// What there is to ask of a server that said this.
    pub(super) fn of(
        site: &'e Site<'e>,
        initialized: &'e Value,
        right: &std::collections::BTreeSet<Operation>,
    ) -> Self {
        let first = site.first_of_each();
        let advertised = |query: &&&Query<'_>| advertised(initialized, query.operation);
        let is_right = |query: &&&Query<'_>| right.contains(&query.operation);
        let mut usual = first.iter().filter(advertised).filter(is_right);
        let query = usual.next().or_else(|| first.iter().find(advertised));
        let query = query.and_then(|query| site.queries.iter().find(|q| std::ptr::eq(*q, *query)));
        let comes_right = query.is_some_and(|query| right.contains(&query.operation));
        Self {
            site,
            initialized,
            query,
            usual: if comes_right {
                Usual::Right
            } else {
                Usual::Answered
            },
        }
    }

    /// Whether there is what this odd thing needs.
    pub(super) fn can(&self, name: &str) -> bool {
        self.query.is_some() || !OF_A_PLACE.contains(&name)
    }

    /// Sees what the usual question gets before anything odd is done; false if the server is not as
    /// the usual way has shown it, or gone. What came right is waited for so long.
    pub(super) async fn settle(&mut self, client: &mut Client<'_>, within: Duration) -> bool {
        if self.usual == Usual::Right {
            return self.is_alive(client, within).await;
        }
        // Whichever is answered first is the usual one.
        let each = (within / 8).clamp(SHORT / 2, Duration::from_secs(1));
        let all: Vec<Option<&Query<'_>>> = match self.query {
            None => vec![None],
            Some(_) => (self.site.first_of_each().into_iter())
                .filter(|query| advertised(self.initialized, query.operation))
                .map(|query| self.site.queries.iter().find(|q| std::ptr::eq(*q, query)))
                .collect(),
        };
        for query in all {
            let before = std::mem::replace(&mut self.query, query);
            if self.is_alive(client, each).await {
                return true;
            }
            self.query = before;
        }
        self.usual = Usual::Alive;
        !client.is_gone() && !client.is_cancelled()
    }

    /// Whether the usual question is answered with anything.
    pub(super) fn answers(&self) -> bool {
        self.usual != Usual::Alive
    }

    /// How long an odd request may take.
    const fn patience(&self) -> Duration {
        match self.usual {
            Usual::Right | Usual::Answered => ODD,
            Usual::Alive => SHORT,
        }
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
        let patience = self.patience();
        if let Some(query) = self.query.filter(|_| OF_A_PLACE.contains(&name)) {
            let (document, place) = self.odd_place(query, name)?;
            let params = site::params(query.operation, &document.uri, place);
            let method = query.method();
            let reply = client.ask_about(&document, method, params, patience).await;
            return Ok(named(&reply));
        }
        Ok(match name {
            "unknown-request" => {
                let reply = client.ask(UNKNOWN, Some(json!({})), patience).await;
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
                let (usual, method, params) = self.usual_request()?;
                if let Some(usual) = &usual {
                    client.open(usual);
                }
                let id = client.dialogue.request(method, Some(params));
                client.answer(id, patience).await;
                client.dialogue.give_up(id);
                let params = json!({"id": id});
                client.dialogue.notify("$/cancelRequest", Some(params));
                let said = listened(client, &[id.into(), Value::Null]).await;
                if let Some(usual) = &usual {
                    client.close(usual);
                }
                said
            }
            "header-lower-case" => self.spelled(client, Spelling::LowerCase).await?,
            "header-extra-fields" => self.spelled(client, Spelling::ExtraFields).await?,
            other => return Err(format!("{other} is not known")),
        })
    }

    /// The odd place of that name.
    fn odd_place(&self, query: &Query<'_>, name: &str) -> Result<(Document, Position), String> {
        let usual = self.site.document(&query.file)?;
        let at = query.position;
        Ok(match name {
            "position-off-symbol" => {
                let place = off_symbol(&usual.text);
                (usual, place)
            }
            "position-past-end-of-line" => {
                let place = past_line(&usual.text, at);
                (usual, place)
            }
            "position-past-end-of-file" => {
                let place = past_file(&usual.text);
                (usual, place)
            }
            "empty-file" => {
                let start = Position {
                    line: 0,
                    character: 0,
                };
                (self.empty(query)?, start)
            }
            _ => (self.outside(query, usual)?, at),
        })
    }

    /// The usual request, and the document it is about, if it is about any.
    fn usual_request(&self) -> Result<(Option<Document>, &'static str, Value), String> {
        let Some(query) = self.query else {
            return Ok((None, UNKNOWN, json!({})));
        };
        let document = self.site.document(&query.file)?;
        let params = query.params(&document.uri);
        Ok((Some(document), query.method(), params))
    }

    /// The usual question in a frame of another spelling.
    async fn spelled(
        &self,
        client: &mut Client<'_>,
        spelling: Spelling,
    ) -> Result<(String, Option<String>), String> {
        let (usual, method, params) = self.usual_request()?;
        if let Some(usual) = &usual {
            client.open(usual);
        }
        let id = client
            .dialogue
            .request_spelled(method, Some(params), spelling);
        let reply = client.answer(id, self.patience()).await;
        client.dialogue.give_up(id);
        if let Some(usual) = &usual {
            client.close(usual);
        }
        Ok(named(&reply))
    }

    /// A file without a byte: on disk where the workspace is a copy.
    fn empty(&self, query: &Query<'_>) -> Result<Document, String> {
        let name = beside(query, "dsh-empty");
        let path = Path::new(self.site.root).join(&name);
        if self.site.own {
            std::fs::write(&path, "").map_err(|error| format!("{name}: {error}"))?;
        }
        self.site.document_with(&path, String::new())
    }

    /// A copy of the usual file outside the workspace.
    fn outside(&self, query: &Query<'_>, usual: Document) -> Result<Document, String> {
        let name = beside(query, "dsh-outside");
        let path = self.site.outside.join(&name);
        std::fs::write(&path, &usual.text).map_err(|error| format!("{name}: {error}"))?;
        self.site.document_with(&path, usual.text)
    }

    /// Whether the usual question is answered as it was before, now or soon.
    pub(super) async fn is_alive(&self, client: &mut Client<'_>, within: Duration) -> bool {
        if self.usual == Usual::Alive {
            client.rest(SHORT / 2).await;
            return !client.is_gone();
        }
        let until_us = client.now_us() + micros(within);
        let mut pauses = Pauses::default();
        loop {
            let Ok((document, method, params)) = self.usual_request() else {
                return false;
            };
            let reply = match &document {
                Some(document) => client.ask_about(document, method, params, within).await,
                None => client.ask(method, Some(params), within).await,
            };
            let valued = self.query.and_then(|query| {
                let relative = self.site.relative;
                valued(query.operation, &reply, query.known, relative, None)
            });
            let answered = matches!(reply, Reply::Answered(_));
            match valued {
                _ if self.usual == Usual::Answered => return answered,
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

/// A name with the extension of the usual file.
fn beside(query: &Query<'_>, stem: &str) -> String {
    let extension = Path::new(&query.file).extension();
    match extension.and_then(|extension| extension.to_str()) {
        Some(extension) => format!("{stem}.{extension}"),
        None => stem.to_owned(),
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
