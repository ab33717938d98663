//! A schedule: a graph, and for each stage where it is computed and how its loops run.
//!
//! The list of steps is the truth; what is here is its fold. A plan names loops; each is a dimension of its stage, or
//! a part of one that was split. The order of the parts of what is reduced never changes, so no schedule changes a bit.

use super::readings::{Readings, Steps};
use super::step::Step;
use crate::stage::{Definition, DimId, Graph, Order, Source, Stage, StageId, unused};
use std::fmt;
use std::sync::Arc;

pub use super::step::Kind;

/// Why a step is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal(pub String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Refuses a step.
///
/// # Errors
/// Always.
pub fn refuse<T>(reason: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal(reason.into()))
}

/// Parts of at least so many iterations lose nothing where their number is not known to the compiler.
pub const STRIP: i64 = 32;

/// Where a stage is computed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Site {
    /// Whole, before all that reads it.
    Root,
    /// Where its elements are read.
    Inline,
    /// In a loop of a stage that reads it: what one iteration needs.
    At(StageId, String),
}

/// A loop of a stage.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loop {
    /// Its name, unique in its stage.
    pub name: String,
    /// How it runs.
    pub kind: Kind,
}

/// A loop that became two: `of = outer * factor + inner`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Split {
    /// The loop that was split.
    pub of: String,
    /// Which part a step of the outer loop is.
    pub outer: String,
    /// The step inside of the part.
    pub inner: String,
    /// How long a part is.
    pub factor: i64,
}

/// A loop over strips of a dimension of a state, around the loop over the steps of its recurrence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Strip {
    /// The loop over strips.
    pub name: String,
    /// The state.
    pub state: StageId,
    /// Which dimension of that.
    pub axis: usize,
    /// How many indices a strip has.
    pub factor: i64,
}

/// How one stage is computed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Where.
    pub site: Site,
    /// The loop of the same host, around that of its site, in each iteration of which its memory is taken: what an iteration
    /// inside of it computed is there for later ones. Nothing where memory is taken where it is computed.
    pub store: Option<String>,
    /// Whether it is computed in that loop beside the host, which need not read it: its memory is that of all elements.
    pub beside: bool,
    /// The order of its axes in memory, that of the graph where nothing is said.
    pub layout: Vec<usize>,
    /// Its dimensions by the names of their loops, those it reduces over last.
    pub dims: Vec<(String, DimId)>,
    /// How many of the dimensions it reduces over.
    pub over: usize,
    /// Which of the dimensions are the steps of a recurrence, of which each needs the one before.
    pub steps: Option<usize>,
    /// Its loops, outermost first; a scatter has none over the dimensions whose indices data decide.
    pub loops: Vec<Loop>,
    /// What was split, in order.
    pub splits: Vec<Split>,
    /// Strips of the states whose steps its loop takes.
    pub strip: Option<Strip>,
    /// The stages whose elements are computed where it reads them, each with the number of places.
    pub inlined: Vec<(StageId, usize)>,
}

/// A graph with a plan for each stage.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// The graph, which schedules share; steps that copy operands add stages to their own.
    pub graph: Arc<Graph>,
    /// The plans, by stage; schedules share those that no step has changed.
    pub plans: Vec<Arc<Plan>>,
    /// The steps that were taken, in order.
    pub steps: Vec<Step>,
    /// Who reads what in the graph.
    pub readings: Arc<Readings>,
}

/// A schedule before steps, to go back to.
pub struct Before {
    graph: Arc<Graph>,
    plans: Vec<Arc<Plan>>,
    readings: Arc<Readings>,
    steps: usize,
}

impl Schedule {
    /// The empty schedule: each stage is computed in those loops of its only reader that it shares with it, or else
    /// whole.
    pub fn new(graph: Graph) -> Schedule {
        let plans = graph.ids().map(|s| Arc::new(Plan::new(&graph, s))).collect();
        let readings = Arc::new(Readings::of(&graph));
        let mut out = Schedule { graph: Arc::new(graph), plans, steps: vec![], readings };
        // Readers come after what they read, and first here.
        for s in out.graph.order().into_iter().rev() {
            out.plan_mut(s).site = out.natural_site(s);
            let partly = out.may_fail(s) && !out.whole(s);
            if partly || out.decides_its_host(s) {
                out.plan_mut(s).site = out.step_site(s).unwrap_or(Site::Root);
            }
        }
        out
    }

    /// The steps of a recurrence that a stage is computed in.
    pub fn steps_of(&self, s: StageId) -> Option<Steps> {
        self.readings.steps(s)
    }

    /// The loop over the steps of a recurrence.
    pub fn loop_of(&self, leader: StageId) -> Option<&str> {
        let plan = self.plan(leader);
        plan.steps.map(|k| plan.dims[k].0.as_str())
    }

    /// Whether all elements of a stage are computed at once: at the start, or in a step that is computed at once.
    pub fn is_at_once(&self, s: StageId) -> bool {
        self.plan(s).site == self.step_site(s).unwrap_or(Site::Root)
    }

    /// The dimensions of a stage that are free where it is computed.
    pub fn free_dims(&self, s: StageId) -> Vec<DimId> {
        let fixed = if self.plan(s).site == Site::Root { vec![] } else { self.fixed_dims(s) };
        self.graph.stage(s).dims.iter().copied().filter(|d| !fixed.contains(d)).collect()
    }

    /// The dimensions that have one index in the steps that a stage is computed in.
    fn fixed_dims(&self, s: StageId) -> Vec<DimId> {
        let leader = self.steps_of(s).map(|of| self.graph.stage(of.leader));
        let each = leader.and_then(Stage::recurrence).map(|(_, each)| each);
        leader.into_iter().flat_map(|l| l.dims.iter().copied()).chain(each).collect()
    }

    /// In the loop over the steps that a stage is computed in.
    fn step_site(&self, s: StageId) -> Option<Site> {
        let leader = self.steps_of(s)?.leader;
        Some(Site::At(leader, self.loop_of(leader)?.to_string()))
    }

    /// Whether a stage may fail, or, of a recurrence, what is computed in its steps.
    pub fn may_fail(&self, s: StageId) -> bool {
        let fails = |s: StageId| !self.graph.stage(s).checks.is_empty();
        let leads = |p: &StageId| self.steps_of(*p).is_some_and(|of| of.leader == s);
        fails(s) || self.plan(s).steps.is_some() && self.graph.ids().any(|p| leads(&p) && self.may_fail(p))
    }

    fn natural_site(&self, s: StageId) -> Site {
        let whole = self.step_site(s).unwrap_or(Site::Root);
        let ([reader], false) = (self.consumers(s), self.is_output(s)) else { return whole };
        if self.steps_of(s).is_some_and(|of| of.state) || self.plan(*reader).steps.is_some() {
            return whole;
        }
        let own = &self.graph.stage(s).dims;
        let theirs = self.plan(*reader);
        let dim = |l: &Loop| theirs.root(&l.name).map(|k| theirs.dims[k].1);
        let shared = theirs.loops.iter().take_while(|l| dim(l).is_some_and(|d| own.contains(&d))).last();
        // A step around both has one iteration of its dimension.
        let fixed = self.fixed_dims(s);
        let shared = shared.filter(|l| dim(l).is_some_and(|d| !fixed.contains(&d)));
        shared.map_or(whole, |l| Site::At(*reader, l.name.clone()))
    }

    /// Whether a stage is computed in the loops of one for which it decides where that is computed at all.
    fn decides_its_host(&self, s: StageId) -> bool {
        let Site::At(host, _) = self.plan(s).site else { return false };
        self.leads_to(self.graph.stage(host).when.into_iter().collect(), s)
    }

    /// The same schedule for stated sizes alone, whose code is shorter and faster; see [`Graph::specialized`].
    #[must_use]
    pub fn specialized(&self, incoming: &[f64]) -> Schedule {
        Schedule { graph: Arc::new(self.graph.specialized(incoming)), ..self.clone() }
    }

    /// The same for stated sizes alone, as [`Graph::only_for`], before any step but such that contract.
    #[must_use]
    pub fn only_for(&self, incoming: &[f64]) -> Schedule {
        Schedule { steps: self.steps.clone(), ..Schedule::new(self.graph.only_for(incoming)) }
    }

    /// What to go back to, should the steps that follow be of no use.
    pub fn before(&self) -> Before {
        let (graph, plans, readings) = (self.graph.clone(), self.plans.clone(), self.readings.clone());
        Before { graph, plans, readings, steps: self.steps.len() }
    }

    /// Forgets all steps since then.
    pub fn back(&mut self, to: Before) {
        self.steps.truncate(to.steps);
        (self.graph, self.plans, self.readings) = (to.graph, to.plans, to.readings);
    }

    /// The stages that read a stage, in order.
    pub fn consumers(&self, of: StageId) -> &[StageId] {
        self.readings.consumers(of)
    }

    /// Whether a stage is part of the result, or a size.
    pub fn is_output(&self, of: StageId) -> bool {
        self.readings.is_output(of)
    }

    /// The plan of a stage.
    pub fn plan(&self, s: StageId) -> &Plan {
        &self.plans[s.0 as usize]
    }

    /// The plan of a stage, to change.
    pub fn plan_mut(&mut self, s: StageId) -> &mut Plan {
        Arc::make_mut(&mut self.plans[s.0 as usize])
    }

    /// The stage of a name.
    ///
    /// # Errors
    /// No stage has it.
    pub fn stage(&self, name: &str) -> Result<StageId, Refusal> {
        let known = || self.graph.stages.iter().map(|s| format!("`{}`", s.name)).collect::<Vec<_>>().join(", ");
        self.graph.find(name).map_or_else(|| refuse(format!("no stage `{name}`; there are {}", known())), Ok)
    }

    /// Whether a stage is computed inside of a loop of another, directly or by way of others; the loops of that one
    /// that are around it.
    pub fn inside(&self, mut s: StageId, of: StageId) -> Option<&str> {
        loop {
            match &self.plan(s).site {
                Site::At(c, name) if *c == of => return Some(name),
                Site::At(c, _) => s = *c,
                Site::Root | Site::Inline => return None,
            }
        }
    }

    /// Computes the elements of a pure stage where they are read: its readers read what it reads.
    pub fn inline(&mut self, p: StageId) {
        let inner = self.plan(p).inlined.clone();
        for (reader, places) in Arc::make_mut(&mut self.graph).inline(p) {
            for (q, n) in std::iter::once((p, places)).chain(inner.iter().map(|(q, n)| (*q, n * places))) {
                let all = &mut self.plan_mut(reader).inlined;
                match all.iter_mut().find(|(known, _)| *known == q) {
                    Some((_, known)) => *known += n,
                    None => all.push((q, n)),
                }
            }
        }
        self.readings = Arc::new(Readings::of(&self.graph));
        self.plan_mut(p).move_to(Site::Inline, false);
    }

    /// Makes one dimension of the k-th of a stage and the next, of so many indices, for a plan that does so.
    pub fn join(&mut self, s: StageId, k: usize, n: i64, name: &str) {
        Arc::make_mut(&mut self.graph).join(s, k, n, name);
        self.readings = Arc::new(Readings::of(&self.graph));
    }

    /// Selects in place of the conditions of a stage that can be evaluated whole, that of its arm included; whether there is
    /// one.
    pub fn if_convert(&mut self, s: StageId) -> bool {
        let graph = Arc::make_mut(&mut self.graph);
        let all = graph.convertible(s);
        graph.if_convert(s, &all);
        let left = graph.leave_arm(s);
        if left {
            self.readings = Arc::new(Readings::of(&self.graph));
        }
        left || !all.is_empty()
    }

    /// Contracts products that a stage adds; whether there is one.
    pub fn contract(&mut self, s: StageId) -> bool {
        Arc::make_mut(&mut self.graph).contract(s)
    }

    /// Combines the terms of a reduction in another order, before any step but rewrites.
    pub fn reassociate(&mut self, s: StageId, order: Order) -> Result<(), String> {
        let mut graph = Graph::clone(&self.graph);
        graph.reassociate(s, order)?;
        *self = Schedule { steps: std::mem::take(&mut self.steps), ..Schedule::new(graph) };
        Ok(())
    }

    /// Adds a stage that copies a source for one of its readers, with its axes in an order, and a plan for it.
    pub fn copy(&mut self, from: Source, reader: StageId, name: &str, axes: &[usize]) -> StageId {
        let copy = Arc::make_mut(&mut self.graph).copy_for(from, reader, name, axes);
        self.plans.push(Arc::new(Plan::new(&self.graph, copy)));
        self.readings = Arc::new(Readings::of(&self.graph));
        copy
    }
}

impl Plan {
    fn new(graph: &Graph, s: StageId) -> Plan {
        let stage = graph.stage(s);
        let mut dims: Vec<(String, DimId)> = vec![];
        for d in stage.dims.iter().chain(stage.over()) {
            let name = unique(&graph.dim(*d).name, |n| dims.iter().any(|(m, _)| m == n));
            dims.push((name, *d));
        }
        let over = stage.over().len();
        let own = dims.len() - over;
        let (outer, inside) = match stage.def {
            Definition::Reduce { inside, .. } => (own - inside, own),
            _ => (stage.looped(), stage.looped()),
        };
        // In the order of the source; what data decide has no loops.
        let each = dims[..outer].iter().chain(&dims[own..]).chain(&dims[outer..inside]);
        let loops = each.map(|(name, _)| Loop { name: name.clone(), kind: Kind::Serial }).collect();
        let steps = stage.steps().and_then(|d| stage.dims.iter().position(|own| *own == d));
        Plan {
            site: Site::Root,
            store: None,
            beside: false,
            layout: vec![],
            dims,
            over,
            steps,
            loops,
            splits: vec![],
            strip: None,
            inlined: vec![],
        }
    }

    /// Computes it elsewhere, in memory that is taken there.
    pub fn move_to(&mut self, site: Site, beside: bool) {
        (self.site, self.beside, self.store) = (site, beside, None);
    }

    /// The position of a loop.
    ///
    /// # Errors
    /// No loop has the name.
    pub fn find(&self, name: &str) -> Result<usize, Refusal> {
        let known = || self.loops.iter().map(|l| format!("`{}`", l.name)).collect::<Vec<_>>().join(", ");
        let at = self.loops.iter().position(|l| l.name == name);
        at.map_or_else(|| refuse(format!("no loop `{name}`; there are {}", known())), Ok)
    }

    /// The dimension that a loop is a part of, by its position.
    pub fn root(&self, name: &str) -> Option<usize> {
        let mut name = name;
        while let Some(s) = self.splits.iter().rev().find(|s| s.outer == name || s.inner == name) {
            name = &s.of;
        }
        self.dims.iter().position(|(n, _)| n == name)
    }

    /// Whether a loop runs over what is reduced, or over steps: each iteration needs the one before.
    pub fn reduces(&self, name: &str) -> bool {
        self.root(name).is_some_and(|k| k >= self.dims.len() - self.over || Some(k) == self.steps)
    }

    /// How many outermost loops of a reduction are over parts of what is reduced, around loops over elements each of which takes all
    /// of a part, so that these are no tile in registers; all of its loops where there are no such elements.
    pub fn parts(&self) -> usize {
        let elements = self.loops.iter().position(|l| !self.reduces(&l.name)).unwrap_or(0);
        let again = self.loops[elements..].iter().any(|l| self.reduces(&l.name));
        if self.steps.is_none() && again && elements > 0 { elements } else { self.loops.len() }
    }

    /// Whether parts of a loop are strips: long, and nothing in them needs to know how long, so that the last one may
    /// just be shorter.
    pub fn is_strip(&self, split: &Split) -> bool {
        let inside = |l: &Loop| self.part_of(&l.name, &split.inner);
        let whole = |l: &Loop| l.kind == Kind::Unrolled || l.kind == Kind::Vector && l.name == split.inner;
        split.factor >= STRIP && !self.loops.iter().any(|l| inside(l) && whole(l))
    }

    /// Whether a loop is another one, or a part of it.
    pub(super) fn part_of(&self, name: &str, of: &str) -> bool {
        let mut name = name;
        while name != of {
            let Some(s) = self.splits.iter().rev().find(|s| s.outer == name || s.inner == name) else { return false };
            name = &s.of;
        }
        true
    }

    /// A name that no loop and no split has.
    pub fn fresh(&self, name: &str) -> String {
        unique(name, |n| {
            self.loops.iter().any(|l| l.name == n)
                || self.dims.iter().any(|(m, _)| m == n)
                || self.splits.iter().any(|s| s.outer == n || s.inner == n)
        })
    }
}

/// A name that is not taken: itself, or with a number.
pub fn unique(name: &str, taken: impl Fn(&str) -> bool) -> String {
    unused(name, "", taken)
}
