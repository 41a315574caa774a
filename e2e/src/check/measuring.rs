//! Measuring a server without the host: where, and what becomes of it in the report.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dsh_reports::{Conclusion, Measured, Run, StartKind};

use super::workspace::Place;
use super::{Check, Ground, Measuring, Step, questions};
use crate::RecordingSubprocess;
use crate::raw::{self, Bench, Query, Site};

impl Check<'_> {
    /// Measures in a workspace of its own, and puts what was found into `run`.
    pub(super) async fn measure(
        &self,
        recording: &Arc<RecordingSubprocess>,
        ground: &Ground,
        scratch: &Path,
        run: &mut Run,
    ) {
        let place = match Place::make(ground, self.target, self.options) {
            Ok(place) => place,
            Err(error) => {
                run.remarks.push(format!("nothing was measured: {error}"));
                return;
            }
        };
        let relative = |uri: &str| place.relative(uri);
        let watch = |what| (self.watch)(Step::Measuring(what));
        let cold = |measured: &Measured| {
            let mut starts = measured.starts.iter();
            starts.any(|start| start.kind == StartKind::Cold)
        };
        let bench = Bench {
            recording: Arc::clone(recording),
            cancel: self.cancel,
            target: self.target,
            site: Site {
                root: place.root(),
                relative: &relative,
                queries: queries(&place),
                reopened: match &place {
                    Place::Sample { sample, .. } => sample.reopened.first(),
                    _ => None,
                },
                languages: &self.target.extensions,
                outside: scratch,
                own: !matches!(place, Place::Given { .. } | Place::Found { .. }),
            },
            limits: self.limits(),
            budget: self.options.budget,
            cold_is_known: run.measured.as_ref().is_some_and(cold),
            in_vain: !run.operations.is_empty()
                && (run.operations.iter()).all(|known| known.first_right_us.is_none()),
            watch: &watch,
        };
        let part = raw::measure(bench).await;
        merge(run.measured.get_or_insert_default(), part.measured);
        run.remarks.extend(part.remarks);
        if self.options.measure == Measuring::Only {
            conclude(run, self.cancel.is_cancelled());
        }
        if let Err(left) = place.end(false) {
            run.remarks.push(left);
        }
    }
}

/// What follows where nothing was judged.
fn conclude(run: &mut Run, interrupted: bool) {
    let seen = run.measured.as_ref().is_some_and(|m| !m.starts.is_empty());
    if interrupted {
        run.conclusion = Conclusion::Interrupted;
    } else if seen {
        let said = "Nothing was judged: the server was only measured.";
        run.remarks.push(said.to_owned());
    } else {
        let reason = run.remarks.pop();
        run.conclusion = Conclusion::Untestable {
            reason: reason.unwrap_or_else(|| "nothing could be measured".to_owned()),
            musts: Vec::new(),
        };
    }
}

/// The questions of a place: those of the sample, each operation at each place of the user's, or
/// each operation somewhere.
fn queries<'p>(place: &'p Place<'_>) -> Vec<Query<'p>> {
    // The driver follows its answers in a way of its own, and has its own patience.
    let (asked, put) = match place {
        Place::Sample { sample, .. } => questions::all_of(&sample.questions, Duration::ZERO),
        Place::Given { at, .. } if !at.is_empty() => questions::at_all(at, Duration::ZERO),
        // One place is enough to measure at.
        Place::Found { found, .. } => {
            questions::at_all(found.at.get(..1).unwrap_or_default(), Duration::ZERO)
        }
        Place::Given { somewhere, .. } | Place::Bare { somewhere, .. } => {
            questions::at_all(std::slice::from_ref(somewhere), Duration::ZERO)
        }
    };
    let labels = asked.into_iter().map(|asked| asked.label);
    labels
        .zip(put)
        .map(|(label, put)| Query {
            operation: put.operation,
            label,
            file: put.file,
            position: put.position,
            known: put.known,
        })
        .collect()
}

/// Adds what was measured without the host to what was measured through it.
fn merge(into: &mut Measured, from: Measured) {
    into.starts.extend(from.starts);
    into.cycles.extend(from.cycles);
    into.personas.extend(from.personas);
    into.overlay = from.overlay.or(into.overlay.take());
    into.output.extend(from.output);
    into.ends.extend(from.ends);
    into.edges.extend(from.edges);
    into.written.extend(from.written);
}

#[cfg(test)]
mod tests {
    use super::*;
    use dsh_reports::{Ending, Overlay, TextSource};

    #[test]
    fn what_was_measured_through_the_host_stays() {
        let end = |way: &str| Ending {
            way: way.to_owned(),
            took_us: None,
            code: None,
            signal: None,
            left: 0,
            left_names: Vec::new(),
            replaced_us: None,
        };
        let overlay = Overlay {
            open: TextSource::Opened,
            closed: TextSource::Disk,
        };
        let mut into = Measured {
            ends: vec![end("sigkill")],
            overlay: Some(overlay.clone()),
            ..Measured::default()
        };
        let from = Measured {
            ends: vec![end("sigterm")],
            ..Measured::default()
        };
        merge(&mut into, from);
        let ways: Vec<&str> = into.ends.iter().map(|end| end.way.as_str()).collect();
        assert_eq!(ways, ["sigkill", "sigterm"]);
        assert_eq!(into.overlay, Some(overlay));
    }
}
