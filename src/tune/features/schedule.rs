//! How a schedule runs a stage: the 39 features of Adams et al. (2019) by name, as far as nests have them.
//!
//! A *realization* takes memory for elements; a *production* goes through the outermost own loop of a stage; a *task* is one
//! iteration of the outermost loop on threads around a stage, or the whole function where there is none.

use super::accesses::{Steps, steps};
use super::lowered::Lowered;
use super::stage::{Seen, Stage};
use crate::nest::{Buf, Slot};
use crate::schedule::plan::{Kind, Plan};
use crate::stage::{Body, Graph, StageId};
use crate::tune::facts::{LoopId, Touch};
use crate::tune::traffic::{Footprint, footprint};
use std::collections::BTreeSet;

macro_rules! features {
    ($($(#[doc = $doc:literal])* $name:ident,)*) => {
        /// How a schedule runs a stage.
        #[derive(Clone, Copy, PartialEq, Debug, Default)]
        pub struct Schedule {
            $($(#[doc = $doc])* pub $name: f64,)*
        }

        impl Schedule {
            /// The names, in order.
            pub const NAMES: &[&str] = &[$(stringify!($name)),*];

            /// The values, in the order of the names.
            pub fn values(&self) -> Vec<f64> {
                vec![$(self.$name),*]
            }
        }
    };
}

features! {
    /// How often memory is taken for its elements.
    num_realizations,
    /// How often its outermost own loop is entered.
    num_productions,
    /// Points of a realization.
    points_computed_per_realization,
    /// Points of a production.
    points_computed_per_production,
    /// Points in all, those that are computed again included.
    points_computed_total,
    /// Points where each is computed once; no more than in all, where readers do not need them all.
    points_computed_minimum,
    /// Iterations of its innermost loop; 1 where it has none of its own.
    innermost_loop_extent,
    /// Iterations of its innermost loop over elements.
    innermost_pure_loop_extent,
    /// Points that stand in the text of one iteration: the product of its unrolled loops.
    unrolled_loop_extent,
    /// Iterations of its own loops on threads.
    inner_parallelism,
    /// Iterations of the loops on threads around it.
    outer_parallelism,
    /// Bytes of memory of a realization.
    bytes_at_realization,
    /// Distinct bytes of elements that a production writes.
    bytes_at_production,
    /// Bytes of all its elements.
    bytes_at_root,
    /// Bytes of the innermost dimension of that memory.
    innermost_bytes_at_realization,
    /// Bytes that a production writes next to each other.
    innermost_bytes_at_production,
    /// Bytes of its innermost dimension.
    innermost_bytes_at_root,
    /// Elements of other stages that are computed where it reads them, over all points.
    inlined_calls,
    /// Distinct bytes that a realization reads.
    unique_bytes_read_per_realization,
    /// Distinct lines that a realization reads.
    unique_lines_read_per_realization,
    /// Bytes of all memory that it reads of.
    allocation_bytes_read_per_realization,
    /// Bytes that are taken in a production, its own memory included.
    working_set,
    /// Lanes of its vectors; 1 where it has none.
    vector_size,
    /// Lanes of the widest vectors of its narrowest type.
    native_vector_size,
    /// Vectors of points.
    num_vectors,
    /// Points that are computed alone.
    num_scalars,
    /// Loads of one number for a vector: broadcasts, and one for each lane that is gathered.
    scalar_loads_per_vector,
    /// Loads of vectors for a vector: as many as the stride where it is a few elements.
    vector_loads_per_vector,
    /// Loads for a point that is computed alone.
    scalar_loads_per_scalar,
    /// Distinct bytes of elements that a task writes.
    bytes_at_task,
    /// Bytes that a task writes next to each other.
    innermost_bytes_at_task,
    /// Distinct bytes that a vector, or a point alone, reads.
    unique_bytes_read_per_vector,
    /// Distinct lines that a vector, or a point alone, reads.
    unique_lines_read_per_vector,
    /// Distinct bytes that it reads in a task.
    unique_bytes_read_per_task,
    /// Distinct lines that it reads in a task.
    unique_lines_read_per_task,
    /// Distinct bytes that all stages touch in a task.
    working_set_at_task,
    /// Distinct bytes that are touched in a production: its own, and those of stages computed in its loops.
    working_set_at_production,
    /// Distinct bytes that all stages touch while its memory is there.
    working_set_at_realization,
    /// Distinct bytes that the function touches.
    working_set_at_root,
}

/// The features of a stage.
pub fn of(seen: &Seen<'_>, stage: &Stage, lowered: &Lowered<'_>) -> Schedule {
    let mut out = Schedule::default();
    points(&mut out, seen, stage, lowered);
    memory(&mut out, seen, stage, lowered);
    reads(&mut out, seen, stage, lowered);
    loads(&mut out, seen, stage);
    sets(&mut out, seen, stage);
    out
}

/// The number of a body; nothing where data or other indices decide it.
fn number(g: &Graph, b: Body) -> Option<f64> {
    g.bodies.as_int(b).map(|n| n.max(0) as f64)
}

/// Points, and the loops over them.
fn points(out: &mut Schedule, seen: &Seen<'_>, stage: &Stage, lowered: &Lowered<'_>) {
    let g = &lowered.plans.graph;
    let (known, plan) = (&g.stages[stage.number], lowered.plans.plan(StageId(stage.number as u32)));
    let (loops, own) = (&seen.facts.loops, &stage.path[stage.first..]);
    out.num_productions = stage.productions;
    out.points_computed_total = stage.points;
    out.points_computed_per_production = stage.points / stage.productions.max(1.0);
    let extents = known.dims[..known.looped()].iter().chain(known.over()).map(|d| number(g, g.dim(*d).extent));
    let all = extents.collect::<Option<Vec<f64>>>().map(|each| each.iter().product::<f64>());
    out.points_computed_minimum = all.map_or(stage.points, |n| n.min(stage.points));
    out.innermost_loop_extent = own.last().map_or(1.0, |k| loops[*k].trips);
    let name = |k: &LoopId| lowered.func.vars.get(loops[*k].var.0 as usize).map(|v| v.name.as_str());
    let pure = own.iter().rev().find(|k| name(k).is_none_or(|n| !plan.reduces(n)));
    out.innermost_pure_loop_extent = pure.map_or(1.0, |k| loops[*k].trips);
    let unrolled = plan.loops.iter().filter(|l| l.kind == Kind::Unrolled).map(|l| extent(g, plan, &l.name));
    out.unrolled_loop_extent = unrolled.product();
    let threads = |path: &[LoopId]| path.iter().filter(|k| loops[**k].parallel).map(|k| loops[*k].trips).product();
    out.inner_parallelism = threads(own);
    out.outer_parallelism = threads(&stage.path[..stage.first]);
    out.inlined_calls = stage.points * plan.inlined.iter().map(|(_, n)| *n as f64).sum::<f64>();
    let wide = stage.path.iter().map(|k| loops[*k].lanes).fold(1.0, f64::max);
    out.vector_size = wide;
    let narrowest = known.tys.iter().copied().min_by_key(|ty| ty.bytes());
    out.native_vector_size = narrowest.map_or(1.0, |ty| f64::from(lowered.machine.lanes(ty)));
    (out.num_vectors, out.num_scalars) = (stage.vectors, stage.scalars);
}

/// How many iterations a loop of a plan has, in whole parts; 1 where data decide it.
fn extent(g: &Graph, plan: &Plan, name: &str) -> f64 {
    if let Some(split) = plan.splits.iter().find(|s| s.inner == name) {
        return split.factor as f64;
    }
    if let Some(split) = plan.splits.iter().find(|s| s.outer == name) {
        return (extent(g, plan, &split.of) / split.factor as f64).ceil();
    }
    let dim = plan.dims.iter().find(|(n, _)| n == name);
    dim.and_then(|(_, d)| number(g, g.dim(*d).extent)).unwrap_or(1.0)
}

/// Where the memory of a stage is taken: the place on the path of the loops around its points, if it is there.
fn realized(seen: &Seen<'_>, stage: &Stage, path: &[LoopId]) -> usize {
    let at = seen.memory(stage.number).iter().filter_map(|t| path.iter().position(|k| *k == t.inside)).min();
    at.map_or(stage.first, |k| k + 1).min(path.len())
}

/// Where a task begins on a path.
fn task(seen: &Seen<'_>, path: &[LoopId]) -> usize {
    path.iter().position(|k| seen.facts.loops[*k].parallel && seen.facts.loops[*k].trips > 1.0).map_or(0, |k| k + 1)
}

/// Memory that it takes, and elements that it writes.
fn memory(out: &mut Schedule, seen: &Seen<'_>, stage: &Stage, lowered: &Lowered<'_>) {
    let g = &lowered.plans.graph;
    let known = &g.stages[stage.number];
    let takes = seen.memory(stage.number);
    let times: f64 = takes.iter().map(|t| seen.times[t.inside]).sum();
    out.num_realizations = if times > 0.0 { times / stage.components } else { stage.productions };
    out.points_computed_per_realization = stage.points / out.num_realizations.max(1.0);
    let one: f64 = known.tys.iter().map(|ty| f64::from(ty.bytes())).sum();
    let mean = |of: &dyn Fn(&crate::tune::facts::Take) -> f64| {
        let sum: f64 = takes.iter().map(|t| seen.times[t.inside] * of(t)).sum();
        if times > 0.0 { sum / times } else { one / stage.components }
    };
    out.bytes_at_realization = stage.components * mean(&|t| t.bytes);
    out.innermost_bytes_at_realization = mean(&|t| t.row);
    let extents: Option<Vec<f64>> = known.dims.iter().map(|d| number(g, g.dim(*d).extent)).collect();
    out.bytes_at_root = extents.as_ref().map_or(out.bytes_at_realization, |e| one * e.iter().product::<f64>());
    let row = extents.and_then(|e| e.last().copied()).unwrap_or(1.0);
    out.innermost_bytes_at_root = row * one / stage.components;
    // Elements are written in the loops around the last of their writes, which may be others than those of the steps.
    let stores: Vec<&Touch> = seen.stores(stage.number).collect();
    let main = stores.iter().max_by(|a, b| seen.times[a.inside].total_cmp(&seen.times[b.inside]));
    let path = main.map_or(stage.path.clone(), |t| seen.paths[t.inside].clone());
    let first = seen.first(&path, stage.number);
    let written = |from: usize| -> Footprint {
        let variables = Footprint { bytes: one, lines: 1.0, run: one / stage.components };
        if stores.is_empty() { variables } else { within(seen, &stores, &path, from) }
    };
    let (production, whole) = (written(first), written(task(seen, &path)));
    (out.bytes_at_production, out.innermost_bytes_at_production) = (production.bytes, production.run);
    (out.bytes_at_task, out.innermost_bytes_at_task) = (whole.bytes, whole.run);
}

/// What it reads of.
fn reads(out: &mut Schedule, seen: &Seen<'_>, stage: &Stage, lowered: &Lowered<'_>) {
    let loads: Vec<&Touch> = seen.loads(stage.number).collect();
    let path = &stage.path;
    let realization = within(seen, &loads, path, realized(seen, stage, path));
    out.unique_bytes_read_per_realization = realization.bytes;
    out.unique_lines_read_per_realization = realization.lines;
    let task = within(seen, &loads, path, task(seen, path));
    (out.unique_bytes_read_per_task, out.unique_lines_read_per_task) = (task.bytes, task.lines);
    let all = loads.iter().flat_map(|t| &seen.paths[t.inside]).map(|k| &seen.facts.loops[*k]);
    let lanes: Vec<_> = all.filter(|l| l.lanes > 1.0).map(|l| (l.var, l.lanes)).collect();
    let vector = footprint(loads.iter().map(|t| &t.access).collect(), &lanes);
    (out.unique_bytes_read_per_vector, out.unique_lines_read_per_vector) = (vector.bytes, vector.lines);
    let bufs: BTreeSet<Buf> = loads.iter().map(|t| t.access.buf).collect();
    let of = |b: &Buf| {
        seen.facts.takes.iter().find(|t| t.buf == Some(*b)).map_or_else(|| incoming(lowered, *b), |t| t.bytes)
    };
    out.allocation_bytes_read_per_realization = bufs.iter().map(of).sum();
    let own = stage.path.get(stage.first);
    let inside = |t: &&crate::tune::facts::Take| own.is_some_and(|k| seen.paths[t.inside].contains(k));
    let taken: f64 = seen.facts.takes.iter().filter(inside).map(|t| t.bytes).sum();
    out.working_set = taken + out.bytes_at_realization;
}

/// The bytes of an input.
fn incoming(lowered: &Lowered<'_>, b: Buf) -> f64 {
    let g = &lowered.plans.graph;
    let buffers = lowered.func.params.iter().filter_map(|s| if let Slot::Data(b) = s { Some(*b) } else { None });
    let input = buffers.zip(&g.inputs).find(|(own, _)| *own == b).map(|(_, input)| input);
    input.map_or(0.0, |i| {
        f64::from(i.ty.bytes()) * i.sizes.iter().map(|n| number(g, *n).unwrap_or(1.0)).product::<f64>()
    })
}

/// Loads by what they take for a vector or a point.
fn loads(out: &mut Schedule, seen: &Seen<'_>, stage: &Stage) {
    let (mut numbers, mut vectors, mut alone) = (0.0, 0.0, 0.0);
    for t in seen.loads(stage.number) {
        let (wide, rest) = seen.split(t.inside);
        let lanes = seen.paths[t.inside].iter().map(|k| seen.facts.loops[*k].lanes).fold(1.0, f64::max);
        match steps(seen, t) {
            Steps::Broadcast => numbers += wide,
            Steps::Unit => vectors += wide,
            Steps::Strided(n) => vectors += n * wide,
            Steps::Transposed | Steps::Gather => numbers += lanes * wide,
        }
        alone += rest;
    }
    // What is read outside of vectors for vectors is read for them.
    if stage.scalars == 0.0 {
        (numbers, alone) = (numbers + alone, 0.0);
    }
    out.scalar_loads_per_vector = if stage.vectors > 0.0 { numbers / stage.vectors } else { 0.0 };
    out.vector_loads_per_vector = if stage.vectors > 0.0 { vectors / stage.vectors } else { 0.0 };
    out.scalar_loads_per_scalar = if stage.scalars > 0.0 { alone / stage.scalars } else { 0.0 };
}

/// What is touched around it.
fn sets(out: &mut Schedule, seen: &Seen<'_>, stage: &Stage) {
    let path = &stage.path;
    // All that stands in a loop, with the loops in it; of the whole function in all of it.
    let set = |at: Option<LoopId>, own: bool| -> f64 {
        let in_it = |k: LoopId| match at {
            Some(l) => seen.paths[k].contains(&l) && (own || k != l),
            None => k > 0,
        };
        let loops: Vec<LoopId> = (0..seen.paths.len()).filter(|k| in_it(*k)).collect();
        let touched = |t: &&Touch| at.is_none_or(|l| seen.paths[t.inside].contains(&l));
        reach(seen, &seen.facts.touches.iter().filter(touched).collect::<Vec<_>>(), &loops).bytes
    };
    let inside = |from: usize| from.checked_sub(1).filter(|k| *k > 0).map(|k| path[k]);
    out.working_set_at_root = set(None, true);
    out.working_set_at_task = set(inside(task(seen, path)), false);
    out.working_set_at_realization = set(inside(realized(seen, stage, path)), false);
    out.working_set_at_production = match path.get(stage.first) {
        Some(own) => set(Some(*own), true),
        None => set(inside(stage.first), false),
    };
}

/// The footprint of places in what is inside of a path up to some loop: over all loops there, since what is unrolled has loops
/// of its own, and so has what is cut.
fn within(seen: &Seen<'_>, touches: &[&Touch], path: &[LoopId], from: usize) -> Footprint {
    let inside = |t: &&&Touch| seen.paths[t.inside].starts_with(&path[..from]);
    let mut loops: Vec<LoopId> =
        touches.iter().filter(inside).flat_map(|t| seen.paths[t.inside][from..].iter().copied()).collect();
    loops.sort_unstable();
    loops.dedup();
    reach(seen, &touches.iter().filter(inside).copied().collect::<Vec<_>>(), &loops)
}

/// The footprint of places over loops; where data decide, each visit of a place is a line of its own.
fn reach(seen: &Seen<'_>, touches: &[&Touch], loops: &[LoopId]) -> Footprint {
    let known = touches.iter().filter(|t| t.access.at.is_some()).map(|t| &t.access).collect();
    let mut out = footprint(known, &seen.ranges(loops));
    for t in touches.iter().filter(|t| t.access.at.is_none()) {
        let trips = |k: &LoopId| if loops.contains(k) { seen.facts.loops[*k].trips } else { 1.0 };
        let visits: f64 = seen.paths[t.inside].iter().map(trips).product();
        out.bytes += visits * t.access.bytes;
        out.lines += visits;
    }
    out
}
