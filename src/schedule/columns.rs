//! Sums over rows, one for each column: all columns are added to side by side, in registers, while the rows are read as they lie.
//!
//! So are the products of a transposed matrix and a vector that gradients of linear forms are made of. An addition to one vector
//! waits for the one before to that; with a few of them none waits, and the rows are read once. It must not know what is added.

use super::access::packable;
use super::accumulators::in_a_row;
use super::attempt::{name, split, take};
use super::cheap::nodes_of;
use super::footprint::points as terms;
use super::plan::{Kind, Schedule};
use super::step::Step;
use super::tiling::{FEW, along_last};
use crate::machine::Machine;
use crate::stage::StageId;

/// What is added is text for each vector of a row: no more than so many nodes.
const ADDED: usize = 24;

/// Runs a reduction with one free dimension, over which memory is near, for all of it at once, where registers hold that; whether
/// they do.
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
    let taken = in_a_row((row + lanes - 1) / lanes, machine) && side_by_side(s, stage, lanes).is_some();
    if !taken {
        s.back(before);
    }
    taken
}

/// Reduces in the outer loops, for all vectors of a row in the inner one.
fn side_by_side(s: &mut Schedule, stage: StageId, lanes: i64) -> Option<()> {
    let plan = s.plan(stage);
    let (pure, of) = (plan.dims.len() - plan.over, name(s, stage));
    let column = plan.dims[pure - 1].0.clone();
    let (vectors, lane) = split(s, stage, &column, lanes)?;
    let mut order: Vec<String> = s.plan(stage).loops.iter().map(|l| l.name.clone()).collect();
    order.retain(|l| *l != vectors && *l != lane);
    order.extend([vectors.clone(), lane.clone()]);
    let run = |of: &str, loops: String, kind| Step::Run { stage: of.into(), of: loops, kind };
    let steps =
        [Step::Reorder { stage: of.clone(), order }, run(&of, lane, Kind::Vector), run(&of, vectors, Kind::Unrolled)];
    steps.into_iter().all(|step| take(s, step)).then_some(())
}
