//! Where a stage is computed: the loops around its points, which of them are its own, and how many points there are.

use super::lowered::Lowered;
use crate::nest::Var;
use crate::stage::Definition;
use crate::tune::facts::{Facts, LoopId, Take, Touch, Write};

/// What is seen of a nest, with the loops around each loop.
pub struct Seen<'a> {
    /// All of it.
    pub facts: &'a Facts,
    /// The loops around a loop and itself, outermost first.
    pub paths: Vec<Vec<LoopId>>,
    /// How often the body of a loop runs, each lane counted.
    pub times: Vec<f64>,
}

/// A stage that is computed.
pub struct Stage {
    /// Its number.
    pub number: usize,
    /// Its points: elements, or steps of accumulators.
    pub points: f64,
    /// Vectors of points, and points alone.
    pub vectors: f64,
    /// Points alone.
    pub scalars: f64,
    /// The loops around most of its points.
    pub path: Vec<LoopId>,
    /// Which of them is its first own one: as many as there are where none is.
    pub first: usize,
    /// How often its first own loop is entered.
    pub productions: f64,
    /// Components of an element.
    pub components: f64,
}

impl<'a> Seen<'a> {
    /// What is seen.
    pub fn all(facts: &'a Facts) -> Seen<'a> {
        let paths: Vec<Vec<LoopId>> = (0..facts.loops.len()).map(|k| facts.path(k)).collect();
        let times = paths.iter().map(|p| p.iter().map(|k| facts.loops[*k].trips).product()).collect();
        Seen { facts, paths, times }
    }

    /// A stage, if it is computed.
    pub fn stage(&self, number: usize, lowered: &Lowered<'_>) -> Option<Stage> {
        let known = lowered.plans.graph.stages.get(number)?;
        let own: Vec<&Write> = self.facts.writes.iter().filter(|w| w.stage == number).collect();
        let points = |w: &&&Write| match known.def {
            Definition::Pure(_) | Definition::Recur { .. } => w.element,
            Definition::Reduce { .. } | Definition::Scatter { .. } => w.step,
        };
        let mut counted: Vec<&Write> = own.iter().filter(points).copied().collect();
        if counted.is_empty() {
            counted = own;
        }
        let times = |w: &Write| self.times[w.inside];
        let main = counted.iter().copied().max_by(|a, b| times(a).total_cmp(&times(b)))?;
        let path = self.paths[main.inside].clone();
        let components = known.tys.len().max(1) as f64;
        let lanes = |inside: LoopId| self.paths[inside].iter().map(|k| self.facts.loops[*k].lanes).fold(1.0, f64::max);
        // Vectors of another length, as in a last part, count as so many of the main ones.
        let wide = lanes(main.inside);
        let (mut vectors, mut scalars) = (0.0, 0.0);
        for w in &counted {
            let (v, s) = self.split(w.inside);
            let within = v * lanes(w.inside) / components;
            scalars += s / components + if wide > 1.0 { 0.0 } else { within };
            vectors += if wide > 1.0 { within / wide } else { 0.0 };
        }
        let mut around: Vec<LoopId> =
            counted.iter().filter_map(|w| self.around(&self.paths[w.inside], number)).collect();
        around.sort_unstable();
        around.dedup();
        let productions = around.iter().map(|k| self.times[*k]).sum();
        let points = counted.iter().map(|w| times(w) / components).sum();
        let first = self.first(&path, number);
        Some(Stage { number, points, vectors, scalars, path, first, productions, components })
    }

    /// How many vectors, and how many iterations beside them, there are of what stands in a loop.
    pub fn split(&self, inside: LoopId) -> (f64, f64) {
        let times = self.times[inside];
        let wide = self.paths[inside].iter().map(|k| &self.facts.loops[*k]).find(|l| l.lanes > 1.0);
        match wide.filter(|l| l.trips > 0.0) {
            Some(l) => {
                let whole = (l.trips / l.lanes).floor();
                (times / l.trips * whole, times / l.trips * (l.trips - whole * l.lanes))
            }
            None => (0.0, times),
        }
    }

    /// Where the own loops of a stage begin.
    pub fn first(&self, path: &[LoopId], stage: usize) -> usize {
        path.iter().rposition(|k| self.facts.loops[*k].stage != stage).map_or(0, |k| k + 1)
    }

    /// The loop around the own ones of a stage.
    fn around(&self, path: &[LoopId], stage: usize) -> Option<LoopId> {
        path.get(self.first(path, stage).checked_sub(1)?).copied()
    }

    /// The variables of loops, with their iterations.
    pub fn ranges(&self, loops: &[LoopId]) -> Vec<(Var, f64)> {
        loops.iter().map(|k| (self.facts.loops[*k].var, self.facts.loops[*k].trips)).collect()
    }

    /// What a stage reads from memory, but for accumulators.
    pub fn loads(&self, stage: usize) -> impl Iterator<Item = &'a Touch> + '_ {
        let own = move |t: &&Touch| t.access.stage == stage && !t.access.store;
        self.facts.touches.iter().filter(own).filter(|t| !self.accumulates(t))
    }

    /// The elements that a stage writes to memory.
    pub fn stores(&self, stage: usize) -> impl Iterator<Item = &'a Touch> + '_ {
        let own = move |t: &&Touch| t.access.stage == stage && t.access.store;
        self.facts.touches.iter().filter(own).filter(|t| !self.accumulates(t))
    }

    /// Whether memory is for accumulators.
    fn accumulates(&self, t: &Touch) -> bool {
        self.facts.takes.iter().any(|take| take.accumulators && take.buf == Some(t.access.buf))
    }

    /// The memory that a stage takes for its elements: buffers, or variables where it has no buffer.
    pub fn memory(&self, stage: usize) -> Vec<&'a Take> {
        let own = || self.facts.takes.iter().filter(move |t| t.stage == stage && !t.accumulators);
        let buffers: Vec<&Take> = own().filter(|t| t.buf.is_some()).collect();
        if buffers.is_empty() { own().collect() } else { buffers }
    }
}
