//! The whole run to scale, on one strip.

use super::Source;
use crate::trajectory::run::{Item, Kind, Lane};
use crate::trajectory::text::{duration, moment};

/// How many places the strip has. Whatever is shorter is drawn as one.
const PLACES: usize = 1000;

/// The strip.
pub(super) struct Overview {
    pub(super) bars: Vec<Bar>,
    /// Where turns begin.
    pub(super) turns: Vec<usize>,
    pub(super) ticks: Vec<TickView>,
    /// The strip in words.
    pub(super) words: String,
}

pub(super) struct Bar {
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) width: usize,
    pub(super) class: &'static str,
}

pub(super) struct TickView {
    pub(super) percent: usize,
    pub(super) text: String,
}

/// What has a row on the strip, or a colour of its own on it.
const LAYERS: [(Lane, bool, usize, &str); 4] = [
    (Lane::Input, false, 0, "input"),
    (Lane::Model, false, 20, "model"),
    (Lane::Tools, false, 40, "tools"),
    (Lane::Tools, true, 40, "bad"),
];

/// The strip; none for a log without items.
pub(super) fn overview(source: &Source<'_>) -> Option<Overview> {
    let items = &source.run.items;
    let total = source.events.last()?.at_us.max(1);
    if items.is_empty() {
        return None;
    }
    let place = |us: u64| {
        let scaled = u128::from(us) * PLACES as u128 / u128::from(total);
        usize::try_from(scaled).unwrap_or(PLACES).min(PLACES - 1)
    };
    let span = |item: &Item| {
        let from = place(source.event(item).at_us);
        let end = item.end.map_or(total, |end| source.events[end].at_us);
        // Three places are seen on a narrow screen too.
        (from, place(end).max(from + 2).min(PLACES - 1))
    };
    let mut bars = Vec::new();
    for (lane, bad, y, class) in LAYERS {
        let mut change = vec![0_isize; PLACES + 1];
        for item in items {
            if item.lane == lane && (!bad || source.is_bad(item)) {
                let (from, to) = span(item);
                change[from] += 1;
                change[to + 1] -= 1;
            }
        }
        let mut depth = 0;
        let mut since = None;
        for (x, change) in change.into_iter().enumerate() {
            depth += change;
            match (since, depth > 0) {
                (None, true) => since = Some(x),
                (Some(from), false) => {
                    since = None;
                    bars.push(Bar {
                        x: from,
                        y,
                        width: x - from,
                        class,
                    });
                }
                _ => {}
            }
        }
    }
    let sections = source.run.sections.iter();
    let mut turns: Vec<usize> = sections
        .filter(|section| section.turn.is_some())
        .map(|section| place(source.events[section.from].at_us))
        .collect();
    turns.dedup();
    let ticks = [0, 25, 50, 75, 100].map(|percent| TickView {
        percent,
        text: moment(total / 100 * percent as u64),
    });
    Some(Overview {
        bars,
        turns,
        ticks: ticks.into(),
        words: words(source, total),
    })
}

/// How long the model and the tools were at work, and neither.
fn words(source: &Source<'_>, total: u64) -> String {
    let union = |of: &dyn Fn(&Item) -> bool| {
        // Items begin in the order of time.
        let (mut sum, mut until) = (0_u64, 0_u64);
        for item in source.run.items.iter().filter(|item| of(item)) {
            let from = source.event(item).at_us.max(until);
            let to = item.end.map_or(total, |end| source.events[end].at_us);
            sum = sum.saturating_add(to.saturating_sub(from));
            until = until.max(to);
        }
        sum
    };
    let model = union(&|item| matches!(item.kind, Kind::Model { .. }));
    let tools = union(&|item| matches!(item.kind, Kind::Call { .. }));
    let either = union(&|item| matches!(item.kind, Kind::Model { .. } | Kind::Call { .. }));
    format!(
        "The whole run to scale: the model was at work for {}, tools for {}, neither for {}.",
        duration(model),
        duration(tools),
        duration(total.saturating_sub(either))
    )
}
