//! The threads of the default schedule: which loops of stages that are computed whole are parallel.
//!
//! Whether threads are worth their start depends on sizes, and is asked when the program runs. So all that is chosen here is
//! where they may be: at the outermost loop over elements, and, around a tile of accumulators, at those inside it as well,
//! of which the program takes one with enough iterations. Batches of points come one after another, since sums over points add
//! them in their order; what is much work for one of them is shared by threads. It must not know how loops become text.

use super::attempt::{name, split, take};
use super::footprint::points;
use super::plan::{Kind, Plan, STRIP, Schedule, Site};
use super::step::Step;
use super::steps::most;
use super::tiling;
use crate::stage::{Definition, DimId, StageId};

/// Loops with fewer iterations are left to one thread where there is another loop in them.
const FEW: i64 = 8;
/// Strips of single elements, each of which is little work.
const LONG_STRIP: i64 = 1024;
/// An iteration that reduces so much is worth a thread by itself.
const LONG_SUM: i64 = 1 << 10;
/// Points of a stage that is computed again in each step, for which threads are asked for.
const MUCH: i64 = 1 << 18;
/// Points of a stage that is computed for a batch, with those of what it computes in turn, for which threads are asked for.
const BATCH: i64 = 1 << 17;
/// What is taken for a length that rows decide.
const SOME: i64 = 16;
/// Parallel loops in each other, each of which asks whether it is to run on threads: one less where little is in them.
const MAX_NESTED: usize = 3;

/// Makes outer loops of all stages parallel.
pub(super) fn choose(s: &mut Schedule) {
    for stage in s.graph.order() {
        if s.plan(stage).site == Site::Root || in_single_steps(s, stage) {
            outermost(s, stage);
        } else if in_batches(s, stage) {
            within_batch(s, stage);
        }
    }
}

/// Whether a stage is computed at once in the steps of a recurrence that no other loop repeats, and is known to be so much
/// work that threads may be worth their start in each step.
fn in_single_steps(s: &Schedule, stage: StageId) -> bool {
    let leader = s.steps_of(stage).map(|of| of.leader).filter(|_| s.is_at_once(stage));
    let own = s.free_dims(stage).into_iter().chain(s.graph.stage(stage).over().iter().copied());
    let points: Option<i64> = own.map(|d| s.graph.bodies.as_int(s.graph.dim(d).extent)).product();
    leader.is_some_and(|l| s.plan(l).site == Site::Root && s.graph.stage(l).dims.len() == 1)
        && points.is_some_and(|n| n >= MUCH)
}

/// Whether a stage is computed for one batch after another of those that a sum adds up, and is so much work for each that
/// threads may be worth their start.
fn in_batches(s: &Schedule, stage: StageId) -> bool {
    let Site::At(host, at) = &s.plan(stage).site else { return false };
    let plan = s.plan(*host);
    let first = plan.loops.first().is_some_and(|l| l.name == *at && l.kind == Kind::Serial && plan.reduces(at));
    if !first || plan.site != Site::Root || s.graph.stage(*host).recurrence().is_some() {
        return false;
    }
    let batches = most(&s.graph, plan, at).filter(|n| *n > 0);
    all_points(s, stage).zip(batches).is_some_and(|(n, batches)| n / batches >= BATCH)
}

/// The points of a stage and of all that is computed in it.
fn all_points(s: &Schedule, stage: StageId) -> Option<i64> {
    let inside = |p: &StageId| matches!(&s.plan(*p).site, Site::At(to, _) if *to == stage);
    let known = s.graph.stage(stage);
    let extent = |d: &DimId| s.graph.bodies.as_int(s.graph.dim(*d).extent).unwrap_or(SOME);
    let own = known.dims.iter().chain(known.over()).try_fold(1_i64, |n, d| n.checked_mul(extent(d)));
    let inner = s.graph.ids().filter(inside).map(|p| all_points(s, p));
    inner.chain([own]).try_fold(0_i64, |sum, n| sum.checked_add(n?))
}

/// The outermost loop over elements of a stage that is computed for a batch, and the next one where that is one over parts,
/// which may be those of the batch, and few.
fn within_batch(s: &mut Schedule, stage: StageId) {
    let plan = s.plan(stage).clone();
    let outer = outer_loops(s, stage, &plan);
    let parts = outer.iter().take_while(|of| plan.splits.iter().any(|p| p.outer == **of)).count();
    for of in outer.iter().take((parts + 1).min(MAX_NESTED - 1)) {
        parallel(s, stage, of);
    }
}

/// The loops over elements of a stage around all its other loops.
fn outer_loops(s: &Schedule, stage: StageId, plan: &Plan) -> Vec<String> {
    let over_elements = |l: &&super::plan::Loop| l.kind == Kind::Serial && !plan.reduces(&l.name);
    // A loop of one iteration, of the step around, is no work to share.
    let (own, free) = (&s.graph.stage(stage).dims, s.free_dims(stage));
    let one = |d: DimId| own.contains(&d) && !free.contains(&d);
    let many = |l: &&super::plan::Loop| !plan.root(&l.name).is_some_and(|k| one(plan.dims[k].1));
    plan.loops.iter().filter(many).take_while(over_elements).map(|l| l.name.clone()).collect()
}

fn outermost(s: &mut Schedule, stage: StageId) {
    let plan = s.plan(stage).clone();
    let mut outer = outer_loops(s, stage, &plan);
    while outer.len() > 1 && most(&s.graph, &plan, &outer[0]).is_some_and(|n| n < FEW) {
        outer.remove(0);
    }
    outer.retain(|of| most(&s.graph, &plan, of) != Some(1));
    if let [only] = outer.as_slice()
        && !plan.splits.iter().any(|p| p.outer == *only)
        && points(s, stage).is_none_or(|n| n < LONG_SUM)
    {
        strips(s, stage, &plan, only);
        return;
    }
    let tiled = plan.over > 0 && plan.loops.iter().any(|l| l.kind == Kind::Vector);
    let nested = match tiled {
        true if points(s, stage).is_some_and(|n| n <= tiling::FEW) => MAX_NESTED - 1,
        true => MAX_NESTED,
        false => 1,
    };
    for of in outer.iter().take(nested) {
        parallel(s, stage, of);
    }
}

fn parallel(s: &mut Schedule, stage: StageId, of: &str) {
    let step = Step::Run { stage: name(s, stage), of: of.to_string(), kind: Kind::Parallel };
    take(s, step);
}

/// The only loop over elements may still become vectors, which take several of its iterations at once: threads take strips.
fn strips(s: &mut Schedule, stage: StageId, plan: &Plan, of: &str) {
    let hosts = s.plans.iter().any(|p| matches!(&p.site, Site::At(to, _) if *to == stage));
    let single = !hosts && matches!(s.graph.stage(stage).def, Definition::Pure(_));
    let strip = if single { LONG_STRIP } else { STRIP };
    if most(&s.graph, plan, of).is_some_and(|n| n < 2 * strip) {
        return;
    }
    if let Some((outer, _)) = split(s, stage, of, strip) {
        parallel(s, stage, &outer);
    }
}
