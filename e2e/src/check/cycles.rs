//! Many rounds of open, question and close.

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use dsh_harness::lsp::QueryResult;
use dsh_reports::CyclesKind;

use super::second::{Second, Subject};
use crate::ask::{Field as _, Question};
use crate::life::{BOUND, Memory, Round, Rounds};
use crate::readiness::Answer;
use crate::samples::{self, ExpectedLocations, Place};
use crate::snapshot::Snapshot;
use crate::time::micros;
use crate::tree;

/// What a round may take at least, as a part of the bound: one that begins late is not cut short.
const PATIENCE: u32 = 4;
/// Memory is looked at behind so many rounds each.
const LOOK: usize = 10;
/// So many rounds running without an answer end the rest.
const UNANSWERED: usize = 3;

/// How long the rounds of one kind may take.
pub(super) fn bound(budget: Duration) -> Duration {
    BOUND.min(budget)
}

/// The same text each time.
pub(super) async fn same_text(second: &Second<'_>, subject: &Subject<'_>) -> Rounds {
    let question = subject.question();
    let mut rounds = begin(second, subject, CyclesKind::SameText, second.rounds);
    drive(second, &mut rounds, subject.reference(), |_| {
        Some((question.clone(), None))
    })
    .await;
    rounds
}

/// Another text each time: one more empty line at the end, which means nothing in any language.
pub(super) async fn changed_text(
    second: &Second<'_>,
    subject: &Subject<'_>,
    allowed: &mut Snapshot,
) -> Result<Rounds, std::io::Error> {
    let question = subject.question();
    let file = question.file.clone();
    let path = Path::new(second.root).join(&file);
    let original = std::fs::read_to_string(&path)?;
    let end = if original.contains("\r\n") {
        "\r\n"
    } else {
        "\n"
    };
    let mut rounds = begin(second, subject, CyclesKind::ChangedText, second.rounds);
    drive(second, &mut rounds, None, |round| {
        let text = format!("{original}{}", end.repeat(round + 1));
        rewrite(&path, &text).ok()?;
        Some((question.clone(), Some(file.clone())))
    })
    .await;
    rewrite(&path, &original)?;
    second.wrote(&file, "written");
    allowed.allow(&file);
    Ok(rounds)
}

/// Gives a file another text. It is not emptied first: that costs far more than the text where the
/// file system brings to the disk what replaced something.
fn rewrite(path: &Path, text: &str) -> Result<(), std::io::Error> {
    let mut file = std::fs::OpenOptions::new().write(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)
}

/// Another file each time: copies of the one that is asked about, beside it. Where the server
/// answers in the first copy as it does in the file, it has to in the others; where a copy is no
/// part of the program, any answer will do.
pub(super) async fn many_files(
    second: &Second<'_>,
    subject: &Subject<'_>,
    allowed: &mut Snapshot,
) -> Result<Rounds, std::io::Error> {
    let question = subject.question();
    let text = std::fs::read(Path::new(second.root).join(&question.file))?;
    let copies: Vec<String> = (1..=(second.rounds / 2).max(1))
        .map(|number| copy_name(&question.file, number))
        .collect();
    for copy in &copies {
        std::fs::write(Path::new(second.root).join(copy), &text)?;
        second.wrote(copy, "written");
    }
    let answers: Vec<Option<samples::Answer>> = copies
        .iter()
        .map(|copy| Some(moved(question.known?, &question.file, copy)))
        .collect();
    let kept = keeps(second, &question, &copies[0], answers[0].as_ref()).await;
    let mut rounds = begin(second, subject, CyclesKind::ManyFiles, copies.len());
    drive(second, &mut rounds, None, |round| {
        let question = Question {
            file: copies[round].clone(),
            known: answers[round].as_ref().filter(|_| kept),
            ..question.clone()
        };
        Some((question, None))
    })
    .await;
    for copy in &copies {
        std::fs::remove_file(Path::new(second.root).join(copy))?;
        second.wrote(copy, "removed");
        allowed.allow(copy);
    }
    Ok(rounds)
}

/// Whether the answer in a copy is the known one, at once or a moment later.
async fn keeps(
    second: &Second<'_>,
    question: &Question<'_>,
    copy: &str,
    answer: Option<&samples::Answer>,
) -> bool {
    let Some(answer) = answer else {
        return false;
    };
    let mut seam = second.seam();
    seam.take(vec![Question {
        file: copy.to_owned(),
        known: Some(answer),
        ..question.clone()
    }]);
    for pause in [0, 100, 400, 1_000].map(Duration::from_millis) {
        if !pause.is_zero() && !seam.pause(pause).await {
            return false;
        }
        match seam.ask(0, bound(second.budget)).await {
            Some(reply) if reply.answer == Answer::Right => return true,
            Some(reply) if matches!(reply.answer, Answer::Other(_)) => {}
            _ => return false,
        }
    }
    false
}

/// `main.x` → `main_001.x`.
fn copy_name(file: &str, number: usize) -> String {
    let name_at = file.rfind('/').map_or(0, |at| at + 1);
    match file[name_at..].rfind('.') {
        Some(dot) if dot > 0 => {
            let (stem, extension) = file.split_at(name_at + dot);
            format!("{stem}_{number:03}{extension}")
        }
        _ => format!("{file}_{number:03}"),
    }
}

/// The answer in a copy of `file`: what lay in it lies in the copy.
fn moved(answer: &samples::Answer, file: &str, copy: &str) -> samples::Answer {
    let places = |places: &[Place]| -> Vec<Place> {
        let mut places = places.to_vec();
        for place in places.iter_mut().filter(|place| place.file == file) {
            copy.clone_into(&mut place.file);
        }
        places
    };
    match answer {
        samples::Answer::Locations(known) => samples::Answer::Locations(ExpectedLocations {
            all: places(&known.all),
            may: places(&known.may),
            matching: known.matching,
        }),
        hover @ samples::Answer::Hover(_) => hover.clone(),
    }
}

fn begin(second: &Second<'_>, subject: &Subject<'_>, kind: CyclesKind, planned: usize) -> Rounds {
    Rounds {
        kind,
        operation: subject.question().operation,
        place: subject.place(),
        known: subject.question().known.is_some(),
        planned,
        bound: bound(second.budget),
        made: Vec::new(),
        memory: Vec::new(),
        seqs: second.recorder.len()..second.recorder.len(),
        interrupted: false,
    }
}

/// Makes the rounds: `next` prepares the workspace for the round of that number and gives its
/// question, with the file that was written for it, or none where that failed. `reference` is what
/// has to be answered where no answer is known.
async fn drive<'b>(
    second: &'b Second<'b>,
    rounds: &mut Rounds,
    reference: Option<QueryResult>,
    mut next: impl FnMut(usize) -> Option<(Question<'b>, Option<String>)>,
) {
    (second.watch)(super::Step::Cycling(rounds.kind));
    let mut seam = second.seam();
    seam.reference = reference;
    let began = seam.now_us();
    let bound_us = micros(rounds.bound);
    let mut resident = tree::Resident::default();
    let mut look = |made: usize, memory: &mut Vec<Memory>| {
        if let Some(bytes) = second.leader().and_then(|(_, pid)| resident.look(pid)) {
            memory.push(Memory {
                rounds: made,
                bytes,
            });
        }
    };
    look(0, &mut rounds.memory);
    let mut unanswered = 0;
    for round in 0..rounds.planned {
        let spent = seam.now_us().saturating_sub(began);
        let left = bound_us.saturating_sub(spent);
        if left == 0 || unanswered == UNANSWERED {
            break;
        }
        let Some((question, written)) = next(round) else {
            break;
        };
        if let Some(file) = written {
            second.wrote(&file, "written");
        }
        seam.take(vec![question]);
        let patience = Duration::from_micros(left).max(rounds.bound / PATIENCE);
        let Some(reply) = seam.ask(0, patience).await else {
            rounds.interrupted = true;
            break;
        };
        let answered = matches!(reply.answer, Answer::Right | Answer::Other(_));
        unanswered = if answered { 0 } else { unanswered + 1 };
        let at_us = seam.now_us().saturating_sub(began);
        rounds.made.push(Round { at_us, reply });
        if rounds.made.len().is_multiple_of(LOOK) {
            look(rounds.made.len(), &mut rounds.memory);
        }
    }
    if !rounds.made.len().is_multiple_of(LOOK) {
        look(rounds.made.len(), &mut rounds.memory);
    }
    // The close of the last document may still be on its way: it goes out before the next open.
    rounds.seqs.end = second.closed(&rounds.seqs).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_keep_folder_and_extension() {
        assert_eq!(copy_name("main.x", 1), "main_001.x");
        assert_eq!(copy_name("a.b/main.d.ts", 20), "a.b/main.d_020.ts");
        assert_eq!(copy_name("a.b/Makefile", 100), "a.b/Makefile_100");
        assert_eq!(copy_name("a/.x", 1), "a/.x_001");
    }

    #[test]
    fn places_in_the_file_move_into_the_copy() {
        let place = |file: &str| Place {
            file: file.to_owned(),
            marker: "m".to_owned(),
            position: samples::Position {
                line: 1,
                character: 2,
            },
        };
        let answer = samples::Answer::Locations(ExpectedLocations {
            all: vec![place("main.x"), place("lib.x")],
            may: vec![place("main.x")],
            matching: samples::Matching::Start,
        });
        let samples::Answer::Locations(moved) = moved(&answer, "main.x", "main_001.x") else {
            panic!("another kind");
        };
        assert_eq!(moved.all, [place("main_001.x"), place("lib.x")]);
        assert_eq!(moved.may, [place("main_001.x")]);
    }

    #[test]
    fn a_small_budget_bounds_the_rounds() {
        assert_eq!(bound(Duration::from_mins(1)), Duration::from_secs(20));
        assert_eq!(
            bound(Duration::from_millis(1500)),
            Duration::from_millis(1500)
        );
    }
}
