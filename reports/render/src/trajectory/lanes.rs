//! Where the items of a step stand: rows in the order of time, calls that overlap side by side.

use super::log::{Body, Logged};
use super::run::{Block, Item, Kind, Lane};

/// Calls that overlap have at most this many columns; the others share one more.
pub(super) const MOST_COLUMNS: usize = 6;

/// Microseconds in which nothing is going on that are worth a row.
const WAIT: u64 = 5000;

/// The grid of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Grid {
    /// The least height of each row, in hundredths of a rem.
    pub(super) rows: Vec<u32>,
    /// How many columns the calls have.
    pub(super) columns: usize,
    pub(super) cells: Vec<Cell>,
    pub(super) waits: Vec<Wait>,
    /// The moments that are written beside the rows: row, and event.
    pub(super) moments: Vec<(usize, usize)>,
}

/// The place of one item. Rows and columns count from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    /// The item's place among all items.
    pub(super) item: usize,
    pub(super) from: usize,
    /// The first row behind it.
    pub(super) to: usize,
    /// Among the columns of its lane. [`MOST_COLUMNS`] stands for the shared one.
    pub(super) column: usize,
}

/// A row in which neither the model nor a tool was at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) row: usize,
    pub(super) us: u64,
}

/// A moment of the log, which begins a row, and what follows it.
#[derive(Clone, Copy, Debug)]
struct Tick {
    event: usize,
    /// Microseconds until the next one.
    us: u64,
    starts: bool,
    /// How many items are at work until the next one.
    busy: usize,
    row: usize,
}

/// Lays out the items of a block: those whose events are in it, in order; `first` is the place of
/// the first of them.
pub(super) fn grid(events: &[Logged], block: &Block, items: &[Item], first: usize) -> Grid {
    let (mut ticks, tick_of) = ticks(events, block);
    let tick = |event: usize| {
        let within = event.checked_sub(block.from);
        within.and_then(|at| tick_of.get(at)).copied()
    };
    let spans: Vec<(usize, usize)> = items
        .iter()
        .map(|item| {
            let from = tick(item.event).unwrap_or(0);
            let to = match item.end {
                Some(end) => tick(end).unwrap_or(ticks.len()),
                None => ticks.len(),
            };
            (from, to.max(from + 1))
        })
        .collect();
    occupy(&mut ticks, items, &spans);
    let mut grid = Grid::default();
    for tick in &mut ticks {
        tick.row = grid.rows.len();
        let idle = tick.busy == 0 && tick.us >= WAIT;
        if tick.starts {
            grid.moments.push((tick.row, tick.event));
        }
        if tick.starts || tick.busy > 0 {
            let least = if tick.starts { 260 } else { 40 };
            let us = if tick.busy > 0 { tick.us } else { 0 };
            grid.rows.push(least + stretch(us));
        }
        if idle {
            let row = grid.rows.len();
            grid.waits.push(Wait { row, us: tick.us });
            grid.rows.push(120 + stretch(tick.us));
        }
    }
    let row = |tick: usize| ticks.get(tick).map_or(grid.rows.len(), |tick| tick.row);
    let mut columns: Vec<usize> = Vec::new();
    for (at, (item, (from, to))) in items.iter().zip(&spans).enumerate() {
        // What takes no time ends with the row it begins.
        let point = item.end == Some(item.event);
        let from_row = row(*from);
        let to_row = if point { from_row + 1 } else { row(*to) };
        let column = match item.lane {
            Lane::Tools => free_column(&mut columns, from_row, to_row),
            Lane::Input | Lane::Model => 0,
        };
        grid.cells.push(Cell {
            item: first + at,
            from: from_row,
            to: to_row.max(from_row + 1),
            column,
        });
    }
    grid.columns = columns.len().max(1);
    grid
}

/// The moments of a block, and for each of its events the moment it belongs to. Calls that were
/// logged together share one, and so do results.
fn ticks(events: &[Logged], block: &Block) -> (Vec<Tick>, Vec<usize>) {
    let mut ticks: Vec<Tick> = Vec::new();
    let mut tick_of = Vec::new();
    let within = &events[block.from..block.to];
    for (at, event) in within.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| &within[before]);
        let together = before.is_some_and(|before| {
            let same = matches!(
                (&before.body, &event.body),
                (Body::Call { .. }, Body::Call { .. }) | (Body::Result(_), Body::Result(_))
            );
            same && before.at_us == event.at_us
        });
        if !together {
            ticks.push(Tick {
                event: block.from + at,
                us: 0,
                starts: false,
                busy: 0,
                row: 0,
            });
        }
        tick_of.push(ticks.len() - 1);
    }
    for at in 1..ticks.len() {
        let us = events[ticks[at].event].at_us - events[ticks[at - 1].event].at_us;
        ticks[at - 1].us = us;
    }
    (ticks, tick_of)
}

/// Counts what is at work from each moment to the next.
fn occupy(ticks: &mut [Tick], items: &[Item], spans: &[(usize, usize)]) {
    let mut change = vec![0_isize; ticks.len() + 1];
    for (item, (from, to)) in items.iter().zip(spans) {
        if let Some(tick) = ticks.get_mut(*from) {
            tick.starts = true;
        }
        if matches!(item.kind, Kind::Model { .. } | Kind::Call { .. }) {
            change[*from] += 1;
            change[(*to).min(ticks.len())] -= 1;
        }
    }
    let mut busy = 0_isize;
    for (tick, change) in ticks.iter_mut().zip(change) {
        busy += change;
        tick.busy = usize::try_from(busy).unwrap_or(0);
    }
}

/// The first column that is free from `from` on; it is taken until `to`.
fn free_column(columns: &mut Vec<usize>, from: usize, to: usize) -> usize {
    if let Some(free) = columns.iter().position(|until| *until <= from) {
        columns[free] = to;
        return free;
    }
    if columns.len() <= MOST_COLUMNS {
        columns.push(to);
        return columns.len() - 1;
    }
    columns[MOST_COLUMNS] = columns[MOST_COLUMNS].max(to);
    MOST_COLUMNS
}

/// How much higher a row is for the time it stands for: it grows with the logarithm, so that a
/// pause of an hour and a call of a second fit on one page. In hundredths of a rem.
fn stretch(us: u64) -> u32 {
    28 * (us / 1000 + 1).ilog2()
}
