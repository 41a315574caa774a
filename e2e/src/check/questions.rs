//! The questions of a check, as they are put and as they are followed.

use std::time::Duration;

use crate::ask::Question;
use crate::judge::Asked;
use crate::place::At;
use crate::readiness::{Answer, Reply, Track};
use crate::samples::{self, Operation, Reopened};

/// All of these questions of a sample.
pub(super) fn all_of(
    questions: &[samples::Question],
    budget: Duration,
) -> (Vec<Asked>, Vec<Question<'_>>) {
    let mut seen = [0_u32; Operation::ALL.len()];
    questions
        .iter()
        .map(|question| {
            let label = numbered(question.operation, &mut seen);
            (followed(question, label, None, budget), of_sample(question))
        })
        .unzip()
}

/// `hover`, `hover (2)`, …
fn numbered(operation: Operation, seen: &mut [u32; Operation::ALL.len()]) -> String {
    let index = Operation::ALL
        .iter()
        .position(|known| *known == operation)
        .unwrap_or(0);
    seen[index] += 1;
    match seen[index] {
        1 => operation.name().to_owned(),
        number => format!("{} ({number})", operation.name()),
    }
}

pub(super) fn of_sample(question: &samples::Question) -> Question<'_> {
    Question {
        operation: question.operation,
        file: question.at.file.clone(),
        position: question.at.position,
        known: Some(&question.answer),
    }
}

/// The question about a changed text.
pub(super) fn reopened(reopened: &Reopened, budget: Duration) -> (Asked, Question<'_>) {
    let question = &reopened.question;
    let label = question.operation.name().to_owned();
    (
        followed(question, label, Some(&reopened.file), budget),
        of_sample(question),
    )
}

pub(super) fn followed(
    question: &samples::Question,
    label: String,
    reopened: Option<&str>,
    budget: Duration,
) -> Asked {
    Asked {
        operation: question.operation,
        place: question.at.to_string(),
        expected: expected(&question.answer),
        reopened: reopened.map(str::to_owned),
        track: Track::new(label.clone(), budget),
        label,
    }
}

fn expected(answer: &samples::Answer) -> String {
    match answer {
        samples::Answer::Locations(places) => {
            let all: Vec<String> = places.all.iter().map(ToString::to_string).collect();
            all.join(", ")
        }
        samples::Answer::Hover(hover) => {
            let all: Vec<String> = hover
                .contains
                .iter()
                .map(|text| crate::evidence::quote(text))
                .collect();
            format!("a text with {}", all.join(" and "))
        }
    }
}

/// Every operation at every place that was named.
pub(super) fn at_all(places: &[At], budget: Duration) -> (Vec<Asked>, Vec<Question<'static>>) {
    let mut seen = [0_u32; Operation::ALL.len()];
    places
        .iter()
        .flat_map(|place| Operation::ALL.map(|operation| (place, operation)))
        .map(|(place, operation)| {
            let label = numbered(operation, &mut seen);
            let asked = Asked {
                operation,
                place: place.to_string(),
                expected: "any answer of legal shape".to_owned(),
                reopened: None,
                track: Track::new(label.clone(), budget).unknown(),
                label,
            };
            (asked, at(operation, place))
        })
        .unzip()
}

pub(super) fn at(operation: Operation, place: &At) -> Question<'static> {
    Question {
        operation,
        file: place.file.clone(),
        position: place.position,
        known: None,
    }
}

/// What to say about a question that no clause judges: nothing where it was answered.
pub(super) fn remark(operation: Operation, reply: &Reply, budget: Duration) -> Option<String> {
    match &reply.answer {
        Answer::Right => None,
        Answer::Silent => Some(format!(
            "{operation} was not answered within {} s",
            budget.as_secs_f64()
        )),
        Answer::Died(how) => Some(format!("the server died on {operation}: {how}")),
        Answer::Unread(how) => Some(format!(
            "the answer to {operation} could not be read: {how}"
        )),
        Answer::Other(name) => Some(match &reply.detail {
            Some(detail) => format!("{operation} was answered with {name}: {detail}"),
            None => format!("{operation} was answered with {name}"),
        }),
        Answer::Refused(why) => Some(format!("{operation} could not be asked: {why}")),
    }
}
