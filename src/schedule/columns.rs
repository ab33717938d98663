//! Sums over rows, one for each column: all columns are added to side by side, in registers, while the rows are read as they lie;
//! where registers do not hold all columns, a few rows are added to them at once.
//!
//! So are the products of a transposed matrix and a vector that gradients of linear forms are made of. An addition to one vector
//! waits for the one before to that; with a few of them none waits, and the rows are read once. It must not know what is added.

use super::access::packable;
use super::accumulators::in_a_row;
use super::attempt::{name, split, take};
use super::cheap::nodes_of;
use super::footprint::points as terms;
use super::plan::{Kind, Schedule, Site};
use super::step::Step;
use super::tiling::{FEW, along_last};
use crate::machine::Machine;
use crate::stage::StageId;

/// What is added is text for each vector of a row: no more than so many nodes.
const ADDED: usize = 24;

/// Rows that are added at once where registers do not hold all columns, and vectors of accumulators of a tile.
const ROWS: i64 = 8;
const VECTORS: i64 = 4;
/// Bytes of the columns that such rows are added to: with the rows they stay in the nearest cache.
const NEAR: i64 = 8 << 10;
/// Bytes of a row that are worth a thread of their own: fewer are read slower than the whole row.
const NARROWEST: i64 = 512;

/// Runs a reduction with one free dimension, over which memory is near, for all of it at once where registers hold that, else for
/// a few rows at once; whether it runs so.
pub(super) fn choose(s: &mut Schedule, stage: StageId, machine: &Machine) -> bool {
    let [column] = s.free_dims(stage)[..] else { return false };
    let known = s.graph.stage(stage);
    let (lanes, whole) = along_last(s, stage, machine);
    let little = matches!(nodes_of(&s.graph.bodies, known.bodies()), (n, false) if n <= ADDED);
    let many = terms(s, stage).is_none_or(|n| n > FEW);
    let row = s.graph.bodies.as_int(s.graph.dim(column).extent);
    // What lies across is packed for tiles.
    let across = packable(s, stage, column).iter().any(|(_, axes)| !axes.is_empty());
    let suits = known.dims.last() == Some(&column) && !whole && little && many && !across;
    let Some(row) = row.filter(|n| *n > lanes && suits) else { return false };
    let before = s.before();
    let bytes = known.tys.iter().map(|ty| i64::from(ty.bytes())).max().unwrap_or(1);
    let alone = machine.threads == 1 || row * bytes < 2 * NARROWEST;
    let taken = match alone && in_a_row((row + lanes - 1) / lanes, machine) {
        true => side_by_side(s, stage, lanes),
        false => rows_at_once(s, stage, lanes, [row, bytes], machine),
    };
    if taken.is_none() {
        s.back(before);
    }
    taken.is_some()
}

/// Reduces in the outer loops, for all vectors of a row in the inner one.
fn side_by_side(s: &mut Schedule, stage: StageId, lanes: i64) -> Option<()> {
    let column = column_of(s, stage);
    let (vectors, lane) = split(s, stage, &column, lanes)?;
    let mut order: Vec<String> = s.plan(stage).loops.iter().map(|l| l.name.clone()).collect();
    order.retain(|l| *l != vectors && *l != lane);
    order.extend([vectors.clone(), lane.clone()]);
    run(s, stage, order, [vectors], lane)
}

/// Adds a few rows at once to a part of all columns, a few vectors after another: what is added to stays in the nearest cache, and
/// is read and written once for all of these rows. Each sum has its terms in their order.
fn rows_at_once(s: &mut Schedule, stage: StageId, lanes: i64, [row, bytes]: [i64; 2], machine: &Machine) -> Option<()> {
    let plan = s.plan(stage);
    let over = plan.dims.last()?;
    let terms = s.graph.bodies.as_int(s.graph.dim(over.1).extent)?;
    let (over, column) = (over.0.clone(), column_of(s, stage));
    if terms < 2 * ROWS || plan.site != Site::Root {
        return None;
    }
    let wide = VECTORS * lanes;
    let part = part(row, [NARROWEST / bytes, NEAR / bytes], machine.threads as i64, [lanes, wide]);
    let (blocks, columns) = match part < row {
        true => split(s, stage, &column, part).map(|(outer, inner)| (Some(outer), inner))?,
        false => (None, column),
    };
    let (rounds, rows) = split(s, stage, &over, ROWS)?;
    let (tiles, tile) = split(s, stage, &columns, wide)?;
    let (vectors, lane) = split(s, stage, &tile, lanes)?;
    let inside = [rounds, tiles, rows.clone(), vectors.clone(), lane.clone()];
    let others = s.plan(stage).loops.iter().map(|l| l.name.clone());
    let others = others.filter(|l| !inside.contains(l) && Some(l) != blocks.as_ref()).collect::<Vec<_>>();
    run(s, stage, blocks.into_iter().chain(others).chain(inside).collect(), [rows, vectors], lane)
}

/// How many columns are added to at once: no fewer than `least` and no more than `most`, and as many as leave the thread that has
/// most of them least to do. Where the last part begins in the one before, one thread has both.
fn part(row: i64, [least, most]: [i64; 2], threads: i64, [lanes, wide]: [i64; 2]) -> i64 {
    let up = |n: i64, to: i64| (n + to - 1) / to * to;
    let fewest = (row + most - 1) / most;
    let parts = fewest..=(4 * threads).min(row / least).max(fewest);
    let sizes = parts.map(|n| up((row + n - 1) / n, lanes));
    let longest = |part: &i64| {
        let (count, apart) = ((row + part - 1) / part, row % part == 0 || threads == 1);
        ((count + threads - 1) / threads).max(if apart { 1 } else { 2 }) * up(*part, wide)
    };
    sizes.min_by_key(longest).unwrap_or(row)
}

/// The loop over columns.
fn column_of(s: &Schedule, stage: StageId) -> String {
    let plan = s.plan(stage);
    plan.dims[plan.dims.len() - plan.over - 1].0.clone()
}

/// Orders the loops, and runs the innermost one in vectors and some in text.
fn run<const N: usize>(
    s: &mut Schedule,
    of: StageId,
    order: Vec<String>,
    text: [String; N],
    lane: String,
) -> Option<()> {
    let stage = name(s, of);
    take(s, Step::Reorder { stage: stage.clone(), order }).then_some(())?;
    let kinds = std::iter::once((lane, Kind::Vector)).chain(text.map(|l| (l, Kind::Unrolled)));
    kinds.into_iter().all(|(l, kind)| take(s, Step::Run { stage: stage.clone(), of: l, kind })).then_some(())
}
