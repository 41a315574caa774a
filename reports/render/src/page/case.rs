//! One case, with everything that shows what happened.

use std::collections::BTreeMap;

use super::ids::Ids;
use super::look;
use super::sequence::{Sequence, sequence};
use super::text::shown;
use crate::model::{Case, ClauseCoverage, Run};
use crate::text::duration;
use crate::trajectory::text::clipped;
use crate::verdict::Verdict;
use crate::words;

/// The most characters of what came that stand in the line of a case which tells it in full below.
const LINE: usize = 200;

/// What is shown of a case.
pub(super) struct CaseView {
    /// Empty where it stands elsewhere in full.
    pub(super) id: String,
    /// Where it stands in full.
    pub(super) href: Option<String>,
    /// Its own name.
    pub(super) name: String,
    pub(super) class: &'static str,
    pub(super) mark: &'static str,
    pub(super) verdict: &'static str,
    pub(super) level: String,
    pub(super) clauses: String,
    pub(super) label: Option<String>,
    pub(super) message: String,
    pub(super) took: Option<String>,
    pub(super) detail: Option<Detail>,
}

/// What shows why a case came out as it did.
pub(super) struct Detail {
    /// Whether it is to be seen at once.
    pub(super) open: bool,
    pub(super) title: Option<String>,
    /// The clauses it is about, with what they state.
    pub(super) statements: Vec<(String, String)>,
    pub(super) expected: Option<String>,
    pub(super) got: Option<String>,
    pub(super) sequence: Option<Sequence>,
    /// Why there is no picture, where somebody looks for one.
    pub(super) no_sequence: Option<&'static str>,
    /// What the lane of the client side is called.
    pub(super) client: &'static str,
    pub(super) transcript: Option<String>,
    pub(super) source: Option<String>,
    pub(super) reproduce: Option<String>,
}

/// Shows the cases of one run.
pub(super) struct Cases<'a> {
    run: &'a Run,
    id: &'a str,
    coverage: BTreeMap<&'a str, &'a ClauseCoverage>,
}

impl<'a> Cases<'a> {
    /// Of a run whose part of the page has that id.
    pub(super) fn of(run: &'a Run, id: &'a str) -> Self {
        let coverage = run.coverage.iter();
        Self {
            run,
            id,
            coverage: coverage.map(|of| (of.clause.as_str(), of)).collect(),
        }
    }

    /// The case in one line.
    pub(super) fn short(&self, case: &Case, ids: &mut Ids) -> CaseView {
        CaseView {
            id: ids.take(self.id, &case.id),
            ..self.line(case)
        }
    }

    fn line(&self, case: &Case) -> CaseView {
        let (class, mark) = look(case.verdict);
        CaseView {
            id: String::new(),
            href: None,
            name: shown(&case.id),
            class,
            mark,
            verdict: words::verdict(self.run.kind, case.verdict),
            level: case.level.to_string(),
            clauses: shown(&words::clauses(case.about())),
            label: case.label.as_deref().map(shown),
            message: shown(&case.message),
            took: case.duration_us.map(duration),
            detail: None,
        }
    }

    /// The case in one line that refers to where it stands in full.
    pub(super) fn refer(&self, case: &Case, to: &str) -> CaseView {
        CaseView {
            href: Some(to.to_owned()),
            id: String::new(),
            ..self.line(case)
        }
    }

    /// An id for an area of cases.
    pub(super) fn area(&self, name: &str, ids: &mut Ids) -> String {
        ids.take(self.id, name)
    }

    /// The case with all that there is.
    pub(super) fn full(&self, case: &Case, ids: &mut Ids) -> CaseView {
        let short = self.short(case, ids);
        CaseView {
            detail: self.detail(case),
            // What came is told in full below, so the line needs no more than its beginning.
            message: match &case.got {
                Some(_) => clipped(&short.message, LINE),
                None => short.message.clone(),
            },
            ..short
        }
    }

    fn detail(&self, case: &Case) -> Option<Detail> {
        let open = wants_attention(case.verdict);
        let named = |text: &Option<String>| text.as_deref().map(shown);
        let worth = open
            || case.expected.is_some()
            || case.got.is_some()
            || !case.evidence.is_empty()
            || case.transcript.is_some()
            || case.reproduce.is_some();
        // A fault of ours says nothing about any clause.
        let of_subject = case.verdict != Verdict::HarnessError;
        let about = case.about().iter().filter(|_| of_subject);
        worth.then(|| Detail {
            open,
            title: named(&case.title),
            statements: about
                .filter_map(|id| self.coverage.get(id.as_str()))
                .map(|of| (shown(&of.clause), shown(&of.statement)))
                .collect(),
            expected: named(&case.expected),
            got: named(&case.got),
            sequence: sequence(&case.evidence),
            no_sequence: (open && case.evidence.is_empty()).then(|| no_sequence(case.verdict)),
            client: if self.run.subject.kind.is_harness() {
                "subject"
            } else {
                "client"
            },
            transcript: case.transcript.as_ref().map(|of| match of.seq {
                Some(seq) => format!("{}, event {seq}", shown(&of.path)),
                None => shown(&of.path),
            }),
            source: case.source.as_ref().map(|of| shown(&words::place(of))),
            reproduce: named(&case.reproduce),
        })
    }
}

/// What stands in the place of a picture.
const fn no_sequence(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Untestable => {
            "No picture: what has to come first did not come, so nothing was sent for this."
        }
        Verdict::HarnessError => "No picture: this is about the instrument, not about what passed.",
        _ => "No picture: no single message decides this, and none was recorded for it.",
    }
}

/// Whether a person has to look at it.
pub(super) const fn wants_attention(verdict: Verdict) -> bool {
    verdict.is_red() || matches!(verdict, Verdict::Note | Verdict::Known)
}
