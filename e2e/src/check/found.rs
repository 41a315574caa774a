//! Asking at places that were found without help.

use super::{Check, Findings, questions};
use crate::ask::{self, Seam};
use crate::found::agreement::{self, Answers};
use crate::place::At;
use crate::readiness::{End, Track};
use crate::samples::Operation;

impl Check<'_> {
    /// Every operation at every place, place by place, until each answer came the same three times
    /// running. What a server does not answer at one place it is not asked at the next.
    pub(super) async fn ask_found(&self, seam: &mut Seam<'_>, at: &[At], findings: &mut Findings) {
        let (mut asked, put) = questions::at_all(at, self.options.budget);
        let each = Operation::ALL.len();
        let mut unanswered: Vec<Operation> = Vec::new();
        let mut answers = Vec::new();
        for ((place, asked), put) in at.iter().zip(asked.chunks_mut(each)).zip(put.chunks(each)) {
            let (mut tracks, mut open): (Vec<(Operation, &mut Track)>, Vec<_>) = asked
                .iter_mut()
                .zip(put)
                .filter(|(asked, _)| !unanswered.contains(&asked.operation))
                .map(|(asked, put)| ((asked.operation, &mut asked.track), put.clone()))
                .unzip();
            seam.take(std::mem::take(&mut open));
            ask::rounds(seam, &mut tracks).await;
            let results = tracks.iter().zip(&seam.last);
            answers.push(Answers {
                at: place.clone(),
                results: results
                    .filter_map(|((operation, _), last)| Some((*operation, last.clone()?)))
                    .collect(),
            });
            for (operation, track) in &tracks {
                if matches!(
                    track.end(),
                    Some(End::Budget | End::Died(_) | End::Unread(_))
                ) {
                    unanswered.push(*operation);
                }
            }
            if self.cancel.is_cancelled() || seam.initialized.is_none() {
                break;
            }
        }
        for asked in &asked {
            let Some(last) = asked.track.last() else {
                continue;
            };
            let settled = asked.track.end() == Some(&End::Stable);
            let remark = questions::remark(asked.operation, last, self.options.budget);
            findings.remarks.extend(
                remark
                    .filter(|_| !settled)
                    .map(|said| format!("At {}: {said}.", asked.place)),
            );
        }
        if answers.iter().any(|answers| !answers.results.is_empty()) {
            findings.remarks.extend(agreement::told(&answers));
            let tracks = asked
                .iter()
                .map(|asked| (asked.operation.name(), asked.place.as_str(), &asked.track));
            findings.remarks.push(agreement::repeatability(tracks));
        }
        findings.questions = asked;
    }
}
