//! Which text answers while a document is open that differs from the disk, and after it is closed.

use std::path::Path;
use std::time::Duration;

use dsh_reports::{Overlay, TextSource};
use serde_json::Value;

use super::client::{Client, Reply};
use super::dialogue::Answered;
use super::site::{Document, Query, Site};
use super::value::valued;
use crate::judge::{advertised, method};
use crate::readiness::{Answer, Pauses};
use crate::samples::{Operation, Reopened};
use crate::time::micros;

/// How long the text of `didOpen` may take to count.
const PATIENCE: Duration = Duration::from_millis(2_500);

/// Asks about a text that is not on disk; none where there is nothing to ask, or it was given up.
pub(super) async fn probe(
    client: &mut Client<'_>,
    site: &Site<'_>,
    initialized: &Value,
    budget: Duration,
) -> Result<Overlay, String> {
    let Some(reopened) = site.reopened else {
        return Err("no text that differs from the disk is known".to_owned());
    };
    let query = Query {
        operation: reopened.question.operation,
        label: "overlay".to_owned(),
        file: reopened.file.clone(),
        position: reopened.question.at.position,
        known: Some(&reopened.question.answer),
    };
    if !advertised(initialized, query.operation) {
        return Err(format!("{} is not advertised", query.operation));
    }
    let old = site.document(&query.file)?;
    let new = site.document_with(Path::new(&query.file), reopened.text.clone())?;
    let budget = budget.min(PATIENCE);
    let mut asking = Asking {
        client,
        site,
        query: &query,
        budget,
    };
    let disk = asking.opened(&old).await;
    let (open, other) = asking.open_and_elsewhere(&new, reopened).await;
    let closed = asking.closed(&new, &disk, other, reopened).await;
    if asking.client.is_cancelled() {
        return Err("interrupted".to_owned());
    }
    Ok(Overlay {
        open: source(&open, &disk),
        closed,
    })
}

/// An answer, and whether it is the one that only the new text gives.
#[derive(Clone, Debug, PartialEq)]
struct Given {
    reply: Reply,
    of_new: bool,
}

/// Whose answer it is: that of the new text, or the one the old text gave at the same place.
fn source(given: &Given, disk: &Given) -> TextSource {
    match given.reply {
        _ if given.of_new => TextSource::Opened,
        Reply::Answered(_) if given.reply == disk.reply => TextSource::Disk,
        _ => TextSource::Neither,
    }
}

/// Whose text the answer about another file shows, where it can show it: `closed` is the answer
/// after the document was closed, and whether it is that of the disk.
fn elsewhere(while_open: &Given, closed: &Given) -> Option<TextSource> {
    // The same answer before and after is that of the disk only if the open text would have given
    // another one.
    match (while_open.of_new, closed.of_new) {
        (true, true) => Some(TextSource::Opened),
        (true, false) => match closed.reply {
            Reply::Answered(Answered::Result(_)) => Some(TextSource::Disk),
            _ => None,
        },
        (false, _) => None,
    }
}

struct Asking<'x, 'a> {
    client: &'x mut Client<'a>,
    site: &'x Site<'x>,
    query: &'x Query<'x>,
    budget: Duration,
}

impl Asking<'_, '_> {
    fn given(&mut self, reply: Reply) -> Given {
        let relative = self.site.relative;
        let (operation, known) = (self.query.operation, self.query.known);
        let valued = valued(operation, &reply, known, relative, None);
        let of_new = valued.is_some_and(|(answer, _)| answer == Answer::Right);
        Given { reply, of_new }
    }

    async fn opened(&mut self, document: &Document) -> Given {
        let params = self.query.params(&document.uri);
        let method = self.query.method();
        let reply = self
            .client
            .ask_about(document, method, params, self.budget)
            .await;
        self.given(reply)
    }

    /// Opens the new text and asks about it until it counts or patience ends; then, while it is
    /// open, asks another file about it. Closes it.
    async fn open_and_elsewhere(
        &mut self,
        new: &Document,
        reopened: &Reopened,
    ) -> (Given, Option<Given>) {
        let mut pauses = Pauses::default();
        let patient_us = self.client.now_us() + micros(PATIENCE);
        let until_us = patient_us.min(self.client.deadline_us);
        self.client.open(new);
        let last = loop {
            let params = self.query.params(&new.uri);
            let reply = self
                .client
                .ask(self.query.method(), Some(params), self.budget)
                .await;
            let given = self.given(reply);
            let over = given.of_new || self.client.now_us() >= until_us;
            if over || !self.client.rest(pauses.next()).await {
                break given;
            }
        };
        let other = self.other(reopened).await;
        self.client.close(new);
        (last, other)
    }

    /// The answer of another file whose place lies in the text that differs. Of the new text is
    /// what is not the known answer of the disk.
    async fn other(&mut self, reopened: &Reopened) -> Option<Given> {
        let query = self.site.queries.iter().find(|query| {
            query.operation != Operation::Hover
                && query.file != reopened.file
                && points_into(query, &reopened.file)
        })?;
        let document = self.site.document(&query.file).ok()?;
        let params = query.params(&document.uri);
        let reply = self
            .client
            .ask_about(&document, query.method(), params, self.budget)
            .await;
        let relative = self.site.relative;
        let of_disk = valued(query.operation, &reply, query.known, relative, None)
            .is_some_and(|(answer, _)| answer == Answer::Right);
        let answered = matches!(reply, Reply::Answered(Answered::Result(_)));
        Some(Given {
            reply,
            of_new: answered && !of_disk,
        })
    }

    /// Whose text counts after it was closed: by the answer of another file where that can tell,
    /// else by a question about the closed document itself.
    async fn closed(
        &mut self,
        new: &Document,
        disk: &Given,
        while_open: Option<Given>,
        reopened: &Reopened,
    ) -> TextSource {
        if let Some(while_open) = while_open
            && let Some(after) = self.other(reopened).await
            && let Some(source) = elsewhere(&while_open, &after)
        {
            return source;
        }
        let params = self.query.params(&new.uri);
        let reply = self
            .client
            .ask(method(self.query.operation), Some(params), self.budget)
            .await;
        let given = self.given(reply);
        source(&given, disk)
    }
}

fn points_into(query: &Query<'_>, file: &str) -> bool {
    match query.known {
        Some(crate::samples::Answer::Locations(places)) => {
            places.all.iter().any(|place| place.file == file)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn given(result: Value, of_new: bool) -> Given {
        Given {
            reply: Reply::Answered(Answered::Result(result)),
            of_new,
        }
    }

    fn silent() -> Given {
        Given {
            reply: Reply::Silent,
            of_new: false,
        }
    }

    #[test]
    fn an_answer_belongs_to_the_text_that_gives_it() {
        let disk = given(json!([1]), false);
        assert_eq!(source(&given(json!([2]), true), &disk), TextSource::Opened);
        assert_eq!(source(&given(json!([1]), false), &disk), TextSource::Disk);
        assert_eq!(source(&given(json!([]), false), &disk), TextSource::Neither);
        assert_eq!(source(&silent(), &disk), TextSource::Neither);
        // Silence twice is no answer of the disk.
        assert_eq!(source(&silent(), &silent()), TextSource::Neither);
    }

    #[test]
    fn another_file_tells_only_where_it_told_the_texts_apart() {
        let (new, disk) = (given(json!([1]), true), given(json!([2]), false));
        assert_eq!(elsewhere(&new, &new), Some(TextSource::Opened));
        assert_eq!(elsewhere(&new, &disk), Some(TextSource::Disk));
        assert_eq!(elsewhere(&disk, &disk), None);
        assert_eq!(elsewhere(&new, &silent()), None);
    }
}
