//! Tiles of accumulators: how many vectors in a row, and how many rows, suit the registers and the sizes of a reduction.
//!
//! It knows numbers alone; `tiling.rs` makes loops of them.

use super::plan::Schedule;
use super::tiling::along_last;
use crate::machine::Machine;
use crate::stage::{DimId, StageId};

/// Vectors in a row of a tile of accumulators, and rows. Six rows of four vectors leave a row of operands its registers, of
/// 32 where vectors have 512 bits; six rows of two vectors do, of 16 otherwise. Where there are no rows, four vectors hide how
/// long an addition takes. Where there are few points, what they read needs registers, too, and two by two is enough.
fn size(machine: &Machine, few: bool, deep: bool) -> (i64, i64) {
    match (few, deep, machine.vector_bytes >= 64) {
        (true, deep, _) => (2, if deep { 2 } else { 1 }),
        (false, true, true) => (4, 6),
        (false, true, false) => (2, 6),
        (false, false, _) => (4, 1),
    }
}

/// Accumulators of a single row, at most: what each of them adds is text of its own.
const IN_A_ROW: i64 = 16;

/// Whether a single row of so many vectors is one tile: memory is read as it lies then, and no addition waits for the one before.
pub(super) fn in_a_row(vectors: i64, machine: &Machine) -> bool {
    vectors <= IN_A_ROW.min(accumulators(machine))
}

/// Registers for accumulators, of 32 where vectors have 512 bits, of 16 otherwise.
pub(super) fn accumulators(machine: &Machine) -> i64 {
    if machine.vector_bytes >= 64 { 24 } else { 12 }
}

/// What a load costs of what a multiplication and addition does, where a tile reads its operands: two of either are begun in
/// a cycle, and half of the loads wait for none.
const LOAD: f64 = 0.5;
/// Rows of a tile at most.
const ROWS: i64 = 12;
/// The usual tile is kept, unless another one costs less than this share of it.
const CLEARLY: f64 = 0.95;

/// As [`size`], for a tile of so many rows and columns in all. Tiles are moved inwards at the end, and compute what they have
/// in common twice; a tile that is wider than its row would compute the rest of it element by element.
fn fitted((vectors, rows): (i64, i64), (whole, high): (i64, i64), lanes: i64, machine: &Machine) -> (i64, i64) {
    let cost = |v: i64, r: i64| {
        let tiles = |all: i64, each: i64| (all + each - 1) / each;
        let computed = tiles(whole, v * lanes) * v * lanes * tiles(high, r) * r;
        computed as f64 * (1.0 + LOAD * (v + r) as f64 / (v * r) as f64)
    };
    let fits = |v: i64| v * lanes <= whole;
    let usual = fits(vectors) && rows <= high;
    let mut best = usual.then(|| (cost(vectors, rows) * CLEARLY, vectors, rows));
    for v in (1..=vectors).rev().filter(|v| fits(*v)) {
        for r in (1..=(accumulators(machine) / v).min(high).min(ROWS)).rev() {
            let tried = cost(v, r);
            if best.is_none_or(|(least, ..)| tried < least) {
                best = Some((tried, v, r));
            }
        }
    }
    best.map_or((vectors, rows), |(_, v, r)| (v, r))
}

/// The vectors and rows of a tile of accumulators of a stage, of few points or of many.
pub(super) fn sized(s: &Schedule, stage: StageId, machine: &Machine, few: bool) -> (i64, i64) {
    let dims = s.free_dims(stage);
    let usual = size(machine, few, dims.len() > 1);
    let extent = |d: &DimId| s.graph.bodies.as_int(s.graph.dim(*d).extent);
    if let [.., row, last] = dims.as_slice()
        && let (false, Some(high), Some(whole)) = (few, extent(row), extent(last))
    {
        return fitted(usual, (whole, high), along_last(s, stage, machine).0, machine);
    }
    usual
}
