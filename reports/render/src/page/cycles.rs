//! What many rounds of opening, asking and closing did: latency and memory.

use std::fmt::Write as _;

use super::readiness;
use super::text::{percent, shown};
use crate::measured::{Cycles, CyclesKind};
use crate::size::bytes;
use crate::text::duration;

/// The most points of a picture; of more rounds, the longest of neighbours is shown.
const MOST: usize = 400;

/// The height of a picture.
const HEIGHT: f64 = 100.0;

pub(super) struct CyclesView {
    pub(super) kind: &'static str,
    pub(super) operation: String,
    pub(super) rounds: u64,
    pub(super) wrong: u64,
    pub(super) p50: String,
    pub(super) p95: String,
    pub(super) max: String,
    pub(super) plot: Option<Plot>,
    pub(super) memory: Option<Memory>,
    pub(super) left_open: u64,
    /// What came instead of the right answer.
    pub(super) heard: Vec<String>,
}

/// Each round as a point, on a logarithmic scale.
pub(super) struct Plot {
    pub(super) points: String,
    pub(super) rounds: usize,
    pub(super) p50: String,
    pub(super) p95: String,
    pub(super) low: String,
    pub(super) high: String,
}

pub(super) struct Memory {
    pub(super) before: String,
    pub(super) after: String,
    pub(super) change: String,
    /// Widths in per cent of the larger one.
    pub(super) before_width: String,
    pub(super) after_width: String,
}

pub(super) fn cycles(of: &Cycles) -> CyclesView {
    CyclesView {
        kind: match of.kind {
            CyclesKind::SameText => "One file, the same text",
            CyclesKind::ChangedText => "One file, another text each time",
            CyclesKind::ManyFiles => "Many files",
        },
        operation: shown(&of.operation),
        rounds: of.rounds,
        wrong: of.wrong,
        p50: duration(of.p50_us),
        p95: duration(of.p95_us),
        max: duration(of.max_us),
        plot: plot(of),
        memory: of.memory_before.zip(of.memory_after).map(memory),
        left_open: of.left_open,
        heard: of
            .heard
            .iter()
            .filter(|heard| readiness::class(heard) != "right")
            .take(20)
            .map(|heard| {
                let detail = heard.detail.as_ref().map(|of| format!(" ({of})"));
                shown(&format!(
                    "{} × {}{}",
                    heard.times,
                    heard.answer,
                    detail.unwrap_or_default()
                ))
            })
            .collect(),
    }
}

fn memory((before, after): (u64, u64)) -> Memory {
    let most = before.max(after);
    let change = if after >= before {
        format!("+{}", bytes(after - before))
    } else {
        format!("−{}", bytes(before - after))
    };
    Memory {
        before: bytes(before),
        after: bytes(after),
        change,
        before_width: percent(before, most),
        after_width: percent(after, most),
    }
}

fn plot(of: &Cycles) -> Option<Plot> {
    if of.each_us.len() < 2 {
        return None;
    }
    let size = of.each_us.len().div_ceil(MOST);
    let points: Vec<u64> = of
        .each_us
        .chunks(size)
        .map(|part| part.iter().copied().max().unwrap_or(0))
        .collect();
    let low = of.each_us.iter().copied().min().unwrap_or(0);
    let low = low.clamp(1, u64::MAX - 1);
    let high = of.each_us.iter().copied().max().unwrap_or(0).max(low + 1);
    let place = |us: u64| {
        #[expect(clippy::cast_precision_loss, reason = "it is a place in a picture")]
        let (us, low, high) = (us.clamp(low, high) as f64, low as f64, high as f64);
        // A margin, so that no point is cut.
        4.0 + (HEIGHT - 8.0) * (1.0 - (us / low).ln() / (high / low).ln().max(f64::MIN_POSITIVE))
    };
    let mut path = String::new();
    for (index, us) in points.iter().enumerate() {
        let x = percent(2 * index as u64 + 1, 2 * points.len() as u64);
        let _ = write!(path, "M{x} {:.1}h0", place(*us));
    }
    Some(Plot {
        points: path,
        rounds: of.each_us.len(),
        p50: format!("{:.1}", place(of.p50_us)),
        p95: format!("{:.1}", place(of.p95_us)),
        low: duration(low),
        high: duration(high),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(each_us: Vec<u64>) -> Cycles {
        Cycles {
            kind: CyclesKind::SameText,
            operation: "hover".to_owned(),
            rounds: each_us.len() as u64,
            wrong: 0,
            heard: Vec::new(),
            p50_us: 10,
            p95_us: 20,
            max_us: 20,
            each_us,
            memory_before: Some(200),
            memory_after: Some(100),
            left_open: 0,
        }
    }

    #[test]
    fn a_picture_has_a_bounded_number_of_points_within_it() {
        for each in [
            vec![0, 0],
            vec![5; 10_000],
            vec![1, u64::MAX],
            vec![u64::MAX, u64::MAX],
            (0..401).collect(),
        ] {
            let plot = plot(&rounds(each)).unwrap();
            let points: Vec<&str> = plot.points.split('M').skip(1).collect();
            assert!(points.len() <= MOST, "{}", points.len());
            for point in points {
                let (x, y) = point.trim_end_matches("h0").split_once(' ').unwrap();
                let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
                assert!(
                    (0.0..=100.0).contains(&x) && (0.0..=HEIGHT).contains(&y),
                    "{point}"
                );
            }
        }
        assert!(plot(&rounds(vec![1])).is_none());
    }

    #[test]
    fn memory_may_shrink() {
        let view = cycles(&rounds(vec![1, 2]));
        let memory = view.memory.unwrap();
        assert_eq!((&*memory.change, &*memory.after_width), ("−100 B", "50.00"));
    }
}
