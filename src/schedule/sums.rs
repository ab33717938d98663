//! Sums whose accumulators stay in registers until all that is made of them is done: a bias and a `max` after a convolution,
//! say. The stage that reads them has the loops over tiles, and the tile of accumulators is computed in them.
//!
//! It must not know what kernels there are, nor how loops become text.

use super::access::{packable, strides};
use super::accumulators::sized;
use super::attempt::{name, take};
use super::plan::{Kind, Schedule};
use super::product::is_product;
use super::step::Step;
use super::tiling::{Tiling, lanes, pack};
use crate::ir::op::Class;
use crate::machine::Machine;
use crate::stage::{Body, Definition, DimId, Node, Source, StageId};

/// What is made of a sum is text for each vector of a tile: no more than so many nodes.
const MADE: usize = 24;

/// Whether a stage is a product, and what reads it alone reads it at its own indices and is little work, so that both can have
/// one tile.
pub(super) fn stay(s: &Schedule, product: StageId, head: StageId, machine: &Machine) -> bool {
    let (g, known, reader) = (&s.graph, s.graph.stage(product), s.graph.stage(head));
    let alone = s.consumers(product) == [head]
        && !s.is_output(product)
        && known.checks.is_empty()
        && [product, head].iter().all(|p| s.steps_of(*p).is_none() && g.stage(*p).when.is_none());
    let near = |p: StageId| g.stage(p).dims.last().is_some_and(|d| strides(g, g.stage(p), *d));
    alone
        && matches!(reader.def, Definition::Pure(_))
        && is_product(s, product, machine)
        && near(product)
        && near(head)
        && lanes(s, product, machine) == lanes(s, head, machine)
        && reads_own(s, head, product)
        && is_little(s, head)
        && fits(s, product, machine)
}

/// Whether a stage reads another at its own indices alone.
fn reads_own(s: &Schedule, reader: StageId, of: StageId) -> bool {
    let (g, dims) = (&s.graph, &s.graph.stage(reader).dims);
    let extents = |all: &[DimId]| all.iter().map(|d| g.dim(*d).extent).collect::<Vec<_>>();
    let all = g.bodies.reachable(g.stage(reader).bodies());
    extents(dims) == extents(&g.stage(of).dims)
        && all.into_iter().all(|b| match g.bodies.node(b) {
            Node::Load(Source::Stage(p, _), _, at) if *p == of => {
                at.iter().zip(dims).all(|(i, d)| *g.bodies.node(*i) == Node::Index(*d))
            }
            _ => true,
        })
}

fn is_little(s: &Schedule, head: StageId) -> bool {
    let bodies = &s.graph.bodies;
    let all = bodies.reachable(s.graph.stage(head).bodies());
    let costly = |b: &Body| matches!(bodies.node(*b), Node::Op(op, ..) if op.row().class == Class::Transcendental);
    all.len() <= MADE && !all.iter().any(costly)
}

/// Whether there is a whole tile.
fn fits(s: &Schedule, product: StageId, machine: &Machine) -> bool {
    let (g, dims) = (&s.graph, &s.graph.stage(product).dims);
    let [.., row, last] = dims.as_slice() else { return false };
    let [high, whole] = [row, last].map(|d| g.bodies.as_int(g.dim(*d).extent));
    let Tiling { rows, vectors, .. } = tiling(s, product, machine);
    let columns = vectors * i64::from(lanes(s, product, machine));
    high.is_some_and(|n| n >= rows) && whole.is_some_and(|n| n >= columns)
}

/// The tile of a product and of what is made of it.
pub(super) fn tiling(s: &Schedule, product: StageId, machine: &Machine) -> Tiling {
    let (vectors, rows) = sized(s, product, machine, false);
    let pack = s.graph.stage(product).dims.last().is_some_and(|d| !packable(s, product, *d).is_empty());
    Tiling { vectors, rows, pack, ..Tiling::default() }
}

/// Computes a product in the loop over tiles of its reader, whose loops run so already, and packs in the loop around that what
/// all rows share; gives what was packed.
pub(super) fn run(
    s: &mut Schedule,
    product: StageId,
    head: StageId,
    tiling: Tiling,
    machine: &Machine,
) -> Option<Vec<StageId>> {
    let loops = &s.plan(head).loops;
    let inner = loops.iter().position(|l| l.kind != Kind::Serial)?.checked_sub(1)?;
    let (at, around) = (loops[inner].name.clone(), inner.checked_sub(1).map(|k| loops[k].name.clone()));
    let step = Step::ComputeAt { stage: name(s, product), reader: name(s, head), at };
    take(s, step).then_some(())?;
    Tiling { pack: false, ..tiling }.apply(s, product, machine).ok()?;
    let last = *s.graph.stage(product).dims.last()?;
    let mut out = vec![];
    let (Some(around), true) = (around, tiling.pack) else { return Some(out) };
    let outermost = s.plan(product).loops.first()?.name.clone();
    for packed in packable(s, product, last) {
        let made = s.graph.stages.len();
        pack(s, product, &outermost, &[packed], machine).ok()?;
        let copy = s.graph.ids().nth(made)?;
        let step = Step::ComputeAt { stage: name(s, copy), reader: name(s, head), at: around.clone() };
        take(s, step).then_some(())?;
        out.push(copy);
    }
    Some(out)
}
