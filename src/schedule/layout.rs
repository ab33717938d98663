//! The layout of tables that are computed whole: their axes lie in the order in which they are written and read most.
//!
//! A table over points, parts and coordinates that a product reads part by part is better laid out part by part: what it reads
//! one after another lies in the same pages. Counts of loads, lines and pages decide, for known sizes alone; it changes no loop.

use super::access::coefficient;
use super::attempt::take;
use super::plan::{Kind, Plan, Schedule, Site};
use super::step::Step;
use crate::stage::{Body, Definition, DimId, Node, Source, StageId};

/// Bytes of a line of the cache, and of a page.
const LINE: f64 = 64.0;
const PAGE: f64 = 4096.0;
/// Cycles of a load, of one lane that is put into a vector by itself, of a line that the processor asks for ahead, and of one
/// on a page of its own, which it does not.
const LOAD: f64 = 0.5;
const LANE: f64 = 1.25;
const NEXT: f64 = 4.0;
const FAR: f64 = 16.0;
/// Smaller tables stay in the nearest cache, in any order; and tables of more axes are left alone.
const SMALL: f64 = 4096.0;
const MOST_AXES: usize = 4;
/// Bytes that are still in the nearest cache when a loop comes to them again.
const NEAR: f64 = 24_576.0;
/// A layout is changed where it saves this share of the cost.
const CLEARLY: f64 = 0.9;
/// How long an axis is whose length other dimensions decide.
const SOME: i64 = 8;

/// Lays out the tables of a schedule.
pub(super) fn choose(s: &mut Schedule) {
    for p in s.graph.order() {
        if let Some(order) = better(s, p) {
            let plan = s.plan(p);
            let order = order.iter().map(|k| plan.dims[*k].0.clone()).collect();
            let step = Step::Layout { stage: s.graph.stage(p).name.clone(), order };
            take(s, step);
        }
    }
}

/// An order of axes that is clearly better than that of the program.
fn better(s: &Schedule, p: StageId) -> Option<Vec<usize>> {
    let known = s.graph.stage(p);
    let axes = known.dims.len();
    let stored = s.plan(p).site == Site::Root && !s.is_output(p);
    let plain = matches!(known.def, Definition::Pure(_) | Definition::Reduce { .. });
    if !stored || !plain || !(2..=MOST_AXES).contains(&axes) {
        return None;
    }
    let fixed = |d: &DimId| s.graph.bodies.as_int(s.graph.dim(*d).extent).filter(|n| *n > 0);
    let sizes: Vec<i64> = known.dims.iter().map(fixed).collect::<Option<_>>()?;
    let bytes = f64::from(known.tys.iter().map(|ty| ty.bytes()).max()?);
    if sizes.iter().map(|n| *n as f64).product::<f64>() < SMALL {
        return None;
    }
    let runs = runs(s, p, bytes);
    let cost = |order: &[usize]| runs.iter().map(|r| r.cost(order, &sizes, bytes)).sum::<f64>();
    let now: Vec<usize> = (0..axes).collect();
    let mut best = (cost(&now) * CLEARLY, now.clone());
    for order in orders(axes) {
        let cost = cost(&order);
        if cost < best.0 {
            best = (cost, order);
        }
    }
    (best.1 != now).then_some(best.1)
}

/// All orders of so many axes.
fn orders(axes: usize) -> Vec<Vec<usize>> {
    let mut out = vec![vec![]];
    for _ in 0..axes {
        let longer = |o: &Vec<usize>| {
            let o = o.clone();
            (0..axes).filter(|k| !o.contains(k)).map(|k| o.iter().copied().chain([k]).collect()).collect::<Vec<_>>()
        };
        out = out.iter().flat_map(longer).collect();
    }
    out
}

/// How the loops of a stage run through a table that it writes or reads.
struct Run {
    /// How often the innermost loop runs that is neither text nor a vector.
    times: f64,
    /// How often it comes to the same elements while they are near.
    again: f64,
    /// By how much each axis moves with that loop.
    steps: Vec<f64>,
    /// How many indices of each axis an iteration takes.
    tile: Vec<f64>,
    /// The lanes of a vector, and the axis that moves by one with them, where only that one does; none where all lanes read the
    /// same, or each where data say.
    lanes: Option<(usize, f64)>,
}

/// All that writes or reads a table.
fn runs(s: &Schedule, p: StageId, bytes: f64) -> Vec<Run> {
    let mut out = vec![run(s, p, &[], bytes)];
    for reader in s.consumers(p) {
        if s.plan(*reader).site == Site::Inline {
            continue;
        }
        let all = s.graph.bodies.reachable(s.graph.stage(*reader).bodies());
        for b in all {
            if let Node::Load(Source::Stage(q, _), _, at) = s.graph.bodies.node(b)
                && *q == p
            {
                out.push(run(s, *reader, at, bytes));
            }
        }
    }
    out
}

/// How a stage runs through a table at indices, none where it writes it at its own, of elements of so many bytes.
fn run(s: &Schedule, stage: StageId, at: &[Body], bytes: f64) -> Run {
    let (plan, known, writes) = (s.plan(stage), s.graph.stage(stage), at.is_empty());
    let axes = if writes { known.dims.len() } else { at.len() };
    // By how much an axis moves with a dimension: by about one, where that is not plain.
    let moves = |axis: usize, d: DimId| match writes {
        true => f64::from(u8::from(known.dims[axis] == d)),
        false if !s.graph.bodies.dims(at[axis]).contains(&d) => 0.0,
        false => coefficient(&s.graph, at[axis], d).map_or(1.0, |c| c.unsigned_abs() as f64),
    };
    let mut out = Run { times: 1.0, again: 1.0, steps: vec![0.0; axes], tile: vec![1.0; axes], lanes: None };
    let mut innermost = None;
    for l in &plan.loops {
        // A result is written after what is reduced.
        if writes && plan.reduces(&l.name) {
            continue;
        }
        let Some(k) = plan.root(&l.name) else { continue };
        let n = length(s, plan, &l.name);
        let d = plan.dims[k].1;
        match l.kind {
            Kind::Vector | Kind::Unrolled => {
                let by_data = |axis: usize| !writes && s.graph.bodies.is_data(at[axis]);
                for axis in (0..axes).filter(|axis| !by_data(*axis)) {
                    out.tile[axis] *= if moves(axis, d) == 0.0 { 1.0 } else { n };
                }
                let scattered = (0..axes).any(|axis| by_data(axis) && moves(axis, d) != 0.0);
                if l.kind == Kind::Vector
                    && !scattered
                    && let Some(axis) = (0..axes).find(|axis| moves(*axis, d) == 1.0)
                {
                    out.lanes = Some((axis, n));
                }
            }
            Kind::Serial | Kind::Parallel => {
                out.times *= n;
                innermost = Some((d, part(plan, &l.name)));
            }
        }
    }
    if let Some((d, part)) = innermost {
        (0..axes).for_each(|axis| out.steps[axis] = moves(axis, d) * part);
    }
    let mut near = out.tile.iter().product::<f64>() * bytes;
    for l in plan.loops.iter().rev().filter(|l| matches!(l.kind, Kind::Serial | Kind::Parallel)) {
        let Some(k) = plan.root(&l.name).filter(|_| !(writes && plan.reduces(&l.name))) else { continue };
        match (0..axes).any(|axis| moves(axis, plan.dims[k].1) != 0.0) {
            true => near *= length(s, plan, &l.name),
            false if near <= NEAR => out.again *= length(s, plan, &l.name),
            false => break,
        }
    }
    out
}

/// How often a loop runs.
fn length(s: &Schedule, plan: &Plan, name: &str) -> f64 {
    if let Some(split) = plan.splits.iter().find(|p| p.inner == name) {
        return split.factor as f64;
    }
    if let Some(split) = plan.splits.iter().find(|p| p.outer == name) {
        return (length(s, plan, &split.of) / split.factor as f64).ceil();
    }
    let of = plan.dims.iter().find(|(n, _)| n == name).map(|(_, d)| s.graph.dim(*d).extent);
    of.and_then(|n| s.graph.bodies.as_int(n)).unwrap_or(SOME).max(1) as f64
}

/// How many indices of its dimension a step of a loop takes.
fn part(plan: &Plan, name: &str) -> f64 {
    let outer = plan.splits.iter().find(|p| p.outer == name).map_or(1.0, |p| p.factor as f64);
    let whole = plan.splits.iter().find(|p| p.outer == name || p.inner == name);
    outer * whole.map_or(1.0, |p| part(plan, &p.of))
}

impl Run {
    /// Cycles for lines and elements that are touched, where axes lie in an order.
    fn cost(&self, order: &[usize], sizes: &[i64], bytes: f64) -> f64 {
        let Some(last) = order.last().copied() else { return 0.0 };
        let elements: f64 = self.tile.iter().product();
        let loads = match self.lanes {
            Some((axis, lanes)) if axis == last => LOAD * elements / lanes,
            Some(_) => LANE * elements,
            None => LOAD * elements,
        };
        let mut far = 0.0;
        let mut stride = 1.0;
        for axis in order.iter().rev() {
            far += self.steps[*axis] * stride;
            stride *= sizes[*axis] as f64;
        }
        let far = far * bytes;
        // Runs of neighbours in a tile, each of so many lines.
        let runs = elements / self.tile[last];
        let long = self.tile[last] * bytes;
        let lines = if far == 0.0 {
            0.0
        } else if far < LINE.max(long) {
            runs * far / LINE * NEXT
        } else {
            runs * (long / LINE).max(1.0) * if far >= PAGE { FAR } else { NEXT }
        };
        self.times * (loads + lines / self.again)
    }
}
