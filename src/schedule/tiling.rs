//! Numbers say how the loops of one stage run: blocks for caches, tiles of accumulators for registers, vectors, threads.
//!
//! They become steps, each of which may be refused; whoever asks for a tiling learns of it.

use super::access::{packable, strides};
use super::plan::{self, Kind, Refusal, Schedule, Site};
use super::step::Step;
use crate::ir::Scalar;
use crate::machine::{Machine, NARROW, fitting};
use crate::stage::{Node, Source, StageId};

/// How the loops of one stage run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Tiling {
    /// Rows and columns of a block, of the last two dimensions; 0 is no block.
    pub block: [i64; 2],
    /// Rows of a tile of registers.
    pub rows: i64,
    /// Vectors in a row of it; 0 is no vectors at all.
    pub vectors: i64,
    /// Whether operands that all rows share are packed.
    pub pack: bool,
    /// Whether the outermost loop runs on several threads.
    pub parallel: bool,
}

/// Reductions of at most so many points are text without loops.
pub(super) const FEW: i64 = 25;
/// Rows and columns of blocks that are tried.
const ROWS: [i64; 7] = [0, 4, 8, 16, 32, 64, 128];
const COLUMNS: [i64; 6] = [0, 16, 64, 128, 256, 512];

impl Tiling {
    /// One vector after another, without blocks.
    pub fn plain() -> Tiling {
        Tiling { rows: 1, vectors: 1, ..Tiling::default() }
    }

    /// Takes the steps for a stage whose loops are as they were at the start.
    ///
    /// # Errors
    /// The first step that is refused; the schedule is then of no use.
    pub fn apply(&self, s: &mut Schedule, stage: StageId, machine: &Machine) -> Result<(), Refusal> {
        let plan = s.plan(stage).clone();
        let pure = plan.dims.len() - plan.over;
        if pure == 0 {
            return Ok(());
        }
        let (lanes, whole) = along_last(s, stage, machine);
        let vectors = match whole {
            true if self.block[1] == 0 => self.vectors.min(1),
            _ => columns_of(s, stage).map_or(self.vectors, |n| no_wider(self.vectors, lanes, n)),
        };
        let mut loops = Loops::new(s, stage);
        loops.outer = plan.dims[..pure.saturating_sub(2)].iter().map(|(n, _)| n.clone()).collect();
        let mut x = plan.dims[pure - 1].0.clone();
        let mut y = (pure > 1).then(|| plan.dims[pure - 2].0.clone());
        let over: Vec<String> = plan.dims[pure..].iter().map(|(n, _)| n.clone()).collect();
        if self.block[0] > 0
            && let Some(whole) = y.take()
        {
            y = Some(loops.block(&whole, self.block[0])?);
        }
        if self.block[1] > 0 {
            x = loops.block(&x, self.block[1])?;
        }
        let (columns, mut unrolled, vector) = columns(&mut loops, x, vectors, lanes)?;
        if self.rows > 1 {
            let Some(whole) = y.take() else { return plan::refuse("there are no rows") };
            let (outer, inner) = loops.split(whole, self.rows)?;
            y = Some(outer);
            unrolled.insert(0, inner);
        }
        let panel = columns.clone();
        let columns = Some(columns);
        // What is packed serves all rows; else rows are read one after another.
        let (first, second) = if self.pack { (columns, y) } else { (y, columns) };
        let elements: Vec<String> = unrolled.iter().cloned().chain(vector.clone()).collect();
        let order: Vec<String> =
            loops.outer.iter().cloned().chain(first).chain(second).chain(over.clone()).chain(elements).collect();
        loops.order(order.clone())?;
        loops.run(vector.iter(), Kind::Vector)?;
        loops.run(unrolled.iter(), Kind::Unrolled)?;
        loops.few(&over)?;
        if self.parallel {
            loops.run(order.first().into_iter(), Kind::Parallel)?;
        }
        match s.graph.stage(stage).dims.last().copied() {
            // All rows share it.
            Some(last) if self.pack => pack(s, stage, &panel, &packable(s, stage, last), machine),
            _ => Ok(()),
        }
    }
}

/// As many vectors, but where a tile of them would be wider than its row, which would compute the rest of it element by element:
/// then as many as compute least twice.
fn no_wider(vectors: i64, lanes: i64, row: i64) -> i64 {
    let computed = |v: i64| (row + v * lanes - 1) / (v * lanes) * v * lanes;
    match vectors * lanes > row {
        true => (1..=(row / lanes).max(1)).rev().min_by_key(|v| computed(*v)).unwrap_or(1).min(vectors),
        false => vectors,
    }
}

/// Names of loops: over rows of vectors, over the vectors of a row, and over lanes.
type Columns = (String, Vec<String>, Option<String>);

/// Cuts the last dimension into vectors: the loop over what is one row of a tile, the vectors in it, and the lanes.
fn columns(loops: &mut Loops<'_>, x: String, vectors: i64, lanes: i64) -> Result<Columns, Refusal> {
    match vectors {
        0 => Ok((x, vec![], None)),
        1 => loops.split(x, lanes).map(|(outer, lane)| (outer, vec![], Some(lane))),
        n => {
            let (outer, inner) = loops.split(x, n * lanes)?;
            let (row, lane) = loops.split(inner, lanes)?;
            Ok((outer, vec![row], Some(lane)))
        }
    }
}

/// What decides which loops a tiling makes of a stage.
pub struct Ground {
    /// Lanes of its vectors along the last dimension.
    pub lanes: i64,
    /// Whether they are all of that dimension, so that there is no row of vectors.
    pub whole: bool,
    /// Whether what it reduces is so little that it is text without loops.
    pub few: bool,
    /// What is packed: the name of the source, and the order of its axes where it is another one than its own.
    pub packs: Vec<(String, Vec<usize>)>,
}

impl Ground {
    /// That of a stage.
    pub fn of(s: &Schedule, stage: StageId, machine: &Machine) -> Ground {
        let known = s.graph.stage(stage);
        let over = known.over();
        let (lanes, whole) = along_last(s, stage, machine);
        let few = !over.is_empty() && s.graph.points(over).is_some_and(|n| n <= FEW);
        let packs = known.dims.last().map_or(vec![], |last| packable(s, stage, *last));
        Ground { lanes, whole, few, packs }
    }
}

/// How many lanes a stage's vectors have along its last dimension, and whether that is all of it: channels of pixels may be half
/// a vector, and rows that are shorter than one are two halves, of which the second begins in the first.
pub(super) fn along_last(s: &Schedule, stage: StageId, machine: &Machine) -> (i64, bool) {
    let full = i64::from(lanes(s, stage, machine));
    let widest = i64::from(machine.vector_bytes) / full;
    let whole = |n: i64| (NARROW / widest..full).contains(&n) && n > 1 && n.count_ones() == 1;
    match columns_of(s, stage) {
        Some(n) if whole(n) => (n, true),
        Some(n) => (fitting(full, widest, n), false),
        None => (full, false),
    }
}

/// How many elements a row of a stage has, where that is known.
fn columns_of(s: &Schedule, stage: StageId) -> Option<i64> {
    s.graph.stage(stage).dims.last().and_then(|d| s.graph.bodies.as_int(s.graph.dim(*d).extent))
}

/// How many lanes a stage's vectors have: as many as one register has of its results, and of the floats that its elements are
/// made of. Integers may take several registers; floats of which vectors do are compared and chosen from piece by piece.
pub fn lanes(s: &Schedule, stage: StageId, machine: &Machine) -> u32 {
    let results = s.graph.stage(stage).tys.iter().map(|ty| machine.lanes(*ty)).min().unwrap_or(2);
    let floats = match results > machine.lanes(Scalar::F64) {
        true => widest_float(s, stage).map_or(results, |ty| machine.lanes(ty)),
        false => results,
    };
    results.min(floats).clamp(2, 64)
}

/// The widest float of which the elements of a stage are made, in it or in stages that are computed where it reads them.
fn widest_float(s: &Schedule, stage: StageId) -> Option<Scalar> {
    let (g, mut open, mut seen, mut widest) = (&s.graph, vec![stage], vec![stage], None);
    while let Some(stage) = open.pop() {
        for b in g.bodies.reachable(g.stage(stage).bodies()) {
            match g.bodies.node(b) {
                Node::Lit(_) | Node::Symbol(_) => continue,
                Node::Load(Source::Stage(p, _), ..) if s.plan(*p).site == Site::Inline && !seen.contains(p) => {
                    seen.push(*p);
                    open.push(*p);
                }
                _ => {}
            }
            let ty = g.bodies.ty(b);
            if ty.is_float() && widest.is_none_or(|w: Scalar| w.bytes() < ty.bytes()) {
                widest = Some(ty);
            }
        }
    }
    widest
}

/// The loops of a stage in the making.
struct Loops<'a> {
    s: &'a mut Schedule,
    stage: StageId,
    name: String,
    /// Loops around all others, outermost first.
    outer: Vec<String>,
}

impl Loops<'_> {
    fn new(s: &mut Schedule, stage: StageId) -> Loops<'_> {
        let name = s.graph.stage(stage).name.clone();
        Loops { s, stage, name, outer: vec![] }
    }

    fn split(&mut self, of: String, factor: i64) -> Result<(String, String), Refusal> {
        Step::Split { stage: self.name.clone(), of, factor }.apply(self.s)?;
        let made = self.s.plan(self.stage).splits.last();
        made.map_or_else(|| plan::refuse("nothing was split"), |p| Ok((p.outer.clone(), p.inner.clone())))
    }

    /// Splits off a loop over blocks; the loop in a block.
    fn block(&mut self, of: &str, factor: i64) -> Result<String, Refusal> {
        let (outer, inner) = self.split(of.to_string(), factor)?;
        self.outer.push(outer);
        Ok(inner)
    }

    fn order(&mut self, order: Vec<String>) -> Result<(), Refusal> {
        let now = self.s.plan(self.stage).loops.iter().map(|l| &l.name);
        if order.len() < 2 || now.eq(order.iter()) {
            return Ok(());
        }
        Step::Reorder { stage: self.name.clone(), order }.apply(self.s)
    }

    fn run<'n>(&mut self, mut of: impl Iterator<Item = &'n String>, kind: Kind) -> Result<(), Refusal> {
        of.try_for_each(|n| Step::Run { stage: self.name.clone(), of: n.clone(), kind }.apply(self.s))
    }

    /// Unrolls what is reduced, where that is little.
    fn few(&mut self, over: &[String]) -> Result<(), Refusal> {
        let g = &self.s.graph;
        match g.points(g.stage(self.stage).over()) {
            Some(n) if n <= FEW && !over.is_empty() => self.run(over.iter(), Kind::Unrolled),
            _ => Ok(()),
        }
    }
}

/// Copies what a stage reads, at one of its loops, with axes in the order that stands beside each source; none is its own.
pub(super) fn pack(
    s: &mut Schedule,
    stage: StageId,
    at: &str,
    of: &[(String, Vec<usize>)],
    machine: &Machine,
) -> Result<(), Refusal> {
    let in_steps = s.steps_of(stage).is_some() && s.plan(stage).site != Site::Root;
    for (source, axes) in of.iter().cloned() {
        if in_steps && axes.is_empty() {
            continue;
        }
        let copy = plan::unique("packed", |n| s.graph.find(n).is_some());
        let (name, moved) = (s.graph.stage(stage).name.clone(), !axes.is_empty());
        Step::CacheRead { stage: name, source, at: at.to_string(), name: copy.clone(), axes }.apply(s)?;
        let id = s.stage(&copy)?;
        if in_steps {
            // What no step changes is packed before all of them.
            let _ = Step::ComputeRoot { stage: copy.clone() }.apply(s);
        }
        let mut order: Vec<String> = s.plan(id).loops.iter().map(|l| l.name.clone()).collect();
        match order.pop() {
            // Of the source a few rows are read side by side, so that what is written are whole vectors.
            Some(last) if moved => {
                let lanes = i64::from(lanes(s, id, machine));
                let (outer, lane) = Loops::new(s, id).split(last, lanes)?;
                order.insert(0, outer);
                order.push(lane.clone());
                Loops::new(s, id).order(order)?;
                Loops::new(s, id).run([&lane].into_iter(), Kind::Vector)?;
            }
            Some(last) => {
                let lanes = i64::from(lanes(s, id, machine));
                let (_, lane) = Loops::new(s, id).split(last, lanes)?;
                Loops::new(s, id).run([&lane].into_iter(), Kind::Vector)?;
            }
            None => {}
        }
    }
    Ok(())
}

/// The tiles of registers that are worth trying for a stage.
pub fn tiles(s: &Schedule, stage: StageId, machine: &Machine, parallel: bool) -> Vec<Tiling> {
    let known = s.graph.stage(stage);
    let Some(last) = known.dims.last().copied() else { return vec![Tiling::plain()] };
    let (reduces, deep) = (!known.over().is_empty(), known.dims.len() > 1);
    let packs = reduces && deep && !packable(s, stage, last).is_empty();
    let registers = if machine.vector_bytes >= 64 { 28 } else { 12 };
    let rows: &[i64] = if deep && reduces { &[1, 2, 3, 4, 6, 8] } else { &[1] };
    let vectors: &[i64] = match (strides(&s.graph, known, last), reduces) {
        (false, _) => &[0, 1],
        (true, true) => &[1, 2, 3, 4],
        (true, false) => &[1, 2, 4],
    };
    let mut out = vec![];
    for (rows, vectors) in rows.iter().flat_map(|r| vectors.iter().map(move |v| (*r, *v))) {
        if rows * vectors <= registers {
            out.push(Tiling { rows, vectors, parallel, ..Tiling::default() });
            out.extend((packs && vectors > 0).then(|| Tiling {
                rows,
                vectors,
                pack: true,
                parallel,
                ..Tiling::default()
            }));
        }
    }
    out
}

/// The same tiling with the blocks that are worth trying, the first of which is none.
pub fn blocks(s: &Schedule, stage: StageId, of: &Tiling) -> Vec<Tiling> {
    if s.graph.stage(stage).dims.len() < 2 {
        return vec![*of];
    }
    let sizes = ROWS.iter().flat_map(|a| COLUMNS.iter().map(move |b| [*a, *b]));
    sizes.map(|block| Tiling { block, ..*of }).collect()
}
