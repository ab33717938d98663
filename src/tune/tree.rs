//! The space of schedules: from the results backwards, each stage is given a place, a tile of registers, and blocks.
//!
//! After Adams et al. (2019), with tiles of accumulators and packed operands as options, which reductions need. Each state is
//! a whole schedule: what is not decided yet is completed plainly, so that any state can be lowered, judged and run.

use super::features::{self, Features, Lowered};
use super::model::Model;
use super::work::{self, PARTS, Work};
use crate::ir::Def;
use crate::machine::Machine;
use crate::nest::Func;
use crate::schedule::Step;
use crate::schedule::passes::{choose, clamp, dead, name, share};
use crate::schedule::plan::{Kind, Schedule, Site};
use crate::schedule::tiling::{Tiling, blocks, tiles};
use crate::schedule::{is_left, lower, worth_inlining};
use crate::search::{Cost, Space};
use crate::stage::{Definition, Graph, StageId};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Where a stage is computed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Place {
    /// Whole, before all that reads it.
    Root,
    /// Where its elements are read.
    Inline,
    /// In a loop of a stage that reads it, counted from the outermost.
    At(StageId, usize),
}

/// What is decided of a stage.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Choice {
    /// Where.
    pub place: Place,
    /// How its loops run.
    pub tiling: Tiling,
}

/// What is to be decided of a stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Open {
    place: bool,
    loops: bool,
}

/// The schedules of one graph for stated sizes.
pub struct Tree<'a> {
    /// The definition.
    pub def: &'a Def,
    /// The schedule that all begin with.
    empty: Schedule,
    /// The same with every stage computed whole.
    start: Schedule,
    /// The stages of which something is to be decided, readers first.
    order: Vec<StageId>,
    /// What that is, by the numbers of all stages.
    open: Vec<Open>,
    /// Steps that all schedules begin with.
    kept: usize,
    /// Its graph at the stated sizes.
    special: Arc<Graph>,
    /// Sizes and scalars, in the order of the calling form.
    incoming: Vec<f64>,
    /// What code is made for.
    pub machine: Machine,
}

/// What a stage takes.
#[derive(Clone, PartialEq, Debug)]
pub struct Share {
    /// Its name; nothing for what belongs to none.
    pub name: String,
    /// Its work.
    pub work: Work,
    /// Its operations, of which two of 32 bits count as one of 64.
    pub operations: f64,
    /// Bytes that move for it between the last cache and memory.
    pub bytes: f64,
}

/// Decisions so far, and the schedule of the stages that are decided.
#[derive(Clone)]
pub struct State {
    /// Of each stage in order.
    pub choices: Vec<Choice>,
    /// Decisions made: three a stage.
    made: usize,
    /// Before the last stage that is decided, or in part, and with it.
    before: Arc<Schedule>,
    schedule: Arc<Schedule>,
}

/// A decision.
#[derive(Clone, Copy, Debug)]
pub enum Move {
    /// Where the next stage is computed.
    Place(Place),
    /// How its loops run.
    Tiling(Tiling),
}

/// Decisions of a stage: its place, its tile, its blocks.
pub const DECISIONS: usize = 3;

impl<'a> Tree<'a> {
    /// The schedules that begin with one, which has no steps but such that change bits. `incoming` are the sizes and scalars
    /// in the order of the calling form, nothing for buffers.
    pub fn new(def: &'a Def, empty: Schedule, incoming: Vec<f64>, machine: Machine) -> Tree<'a> {
        let begun = empty.clone();
        Tree::completing(def, empty, begun, (incoming, machine))
    }

    /// The same where some steps are taken already, and stay: what they say of a stage, of its place or of its loops, is not
    /// decided again. `empty` has the steps among them that change bits.
    pub fn completing(
        def: &'a Def,
        empty: Schedule,
        begun: Schedule,
        (incoming, machine): (Vec<f64>, Machine),
    ) -> Tree<'a> {
        let (kept, open, mut start) = (begun.steps.len(), open(&begun), begun);
        let mut order = start.graph.order();
        order.reverse();
        order.retain(|s| open[s.0 as usize].place || open[s.0 as usize].loops);
        for s in &order {
            if open[s.0 as usize].place && start.plan(*s).site != Site::Root {
                let step = Step::ComputeRoot { stage: start.graph.stage(*s).name.clone() };
                // Computing a stage whole is always legal.
                let _ = step.apply(&mut start);
            }
        }
        let special = Arc::new(start.graph.specialized(&incoming));
        Tree { def, empty, start, order, open, kept, special, incoming, machine }
    }

    /// How many steps all schedules begin with, those that change bits included.
    pub fn kept(&self) -> usize {
        self.kept
    }

    /// Whether the place and the loops of a stage are to be decided; those of a copy that a search makes are.
    pub fn is_open(&self, stage: StageId) -> (bool, bool) {
        self.open.get(stage.0 as usize).map_or((true, true), |o| (o.place, o.loops))
    }

    /// Where a stage is computed so far.
    fn given(&self, s: &Schedule, stage: StageId) -> Place {
        match &s.plan(stage).site {
            Site::Root => Place::Root,
            Site::Inline => Place::Inline,
            Site::At(host, name) => Place::At(*host, s.plan(*host).find(name).unwrap_or_default()),
        }
    }

    /// How many decisions lead to the end.
    pub fn depth(&self) -> usize {
        DECISIONS * self.order.len()
    }

    /// The stages in the order in which they are decided.
    pub fn stages(&self) -> &[StageId] {
        &self.order
    }

    /// The schedule that all begin with, in which nothing is decided.
    pub fn empty(&self) -> &Schedule {
        &self.empty
    }

    /// The same with every stage computed whole.
    pub fn start(&self) -> &Schedule {
        &self.start
    }

    /// Its graph at the stated sizes.
    pub fn special(&self) -> &Graph {
        &self.special
    }

    /// Sizes and scalars, in the order of the calling form.
    pub fn incoming(&self) -> &[f64] {
        &self.incoming
    }

    /// The work of a schedule; nothing where it cannot be lowered.
    pub fn work(&self, s: &Schedule) -> Option<Work> {
        let (_, func) = self.foreseen(s)?;
        Some(work::count(&func, &self.incoming, &self.machine))
    }

    /// The stages of a schedule with what each takes, and what belongs to none, under no name; nothing where it cannot be
    /// lowered.
    pub fn by_stage(&self, s: &Schedule) -> Option<Vec<Share>> {
        let (plans, func) = self.foreseen(s)?;
        let (facts, _) = work::facts(&func, &plans.graph, &self.incoming, &self.machine);
        let names = plans.graph.stages.iter().map(|s| s.name.clone()).chain([String::new()]);
        let share = |(k, (name, work)): (usize, (String, Work))| Share {
            name,
            work,
            operations: facts.done(k),
            bytes: facts.bytes.get(k).copied().unwrap_or(0.0),
        };
        Some(names.zip(facts.by_stage.iter().copied()).enumerate().map(share).collect())
    }

    /// The work of a schedule, and the terms of a model; nothing where it cannot be lowered.
    pub fn counted(&self, model: &Model, s: &Schedule) -> Option<(Work, Vec<f64>)> {
        let (features, work) = match model.reads_features() {
            true => self.features(s)?,
            false => (vec![], self.work(s)?),
        };
        let terms = model.terms(&work, &features);
        Some((work, terms))
    }

    /// The features of the stages of a schedule, and its work; nothing where it cannot be lowered.
    pub fn features(&self, s: &Schedule) -> Option<(Vec<Features>, Work)> {
        let (plans, func) = self.foreseen(s)?;
        let (facts, work) = work::facts(&func, &plans.graph, &self.incoming, &self.machine);
        let lowered = Lowered { func: &func, plans: &plans, machine: &self.machine };
        Some((features::of(&facts, &lowered), work))
    }

    /// The function that a schedule is lowered to at the stated sizes, as later passes leave its loops.
    fn foreseen(&self, s: &Schedule) -> Option<(Schedule, Func)> {
        // Loops of known extents have no text for other ones.
        let graph = match Arc::ptr_eq(&s.graph, &self.start.graph) {
            true => self.special.clone(),
            false => Arc::new(s.graph.specialized(&self.incoming)),
        };
        let plans = Schedule { graph, ..s.clone() };
        let mut nest = lower(&plans, self.def).ok()?;
        foresee(&mut nest.entry, &self.machine);
        Some((plans, nest.entry))
    }

    /// The whole schedule of a state.
    pub fn complete(&self, state: &State) -> Schedule {
        let mut s = (*state.schedule).clone();
        for stage in &self.order[state.choices.len()..] {
            let choice = self.plain(&s, *stage);
            self.decide(&mut s, *stage, &choice);
        }
        s
    }

    /// What is done with a stage as long as nobody has decided it.
    pub fn plain(&self, s: &Schedule, stage: StageId) -> Choice {
        Choice { place: self.plain_place(s, stage), tiling: self.plain_tiling() }
    }

    /// A state with a choice for the next stage.
    fn with(&self, state: &State, choice: &Choice) -> State {
        let Some(stage) = self.order.get(state.choices.len()) else { return state.clone() };
        let (mut s, mut choices) = (Schedule::clone(&state.schedule), state.choices.clone());
        choices.push(self.decide(&mut s, *stage, choice));
        State { made: DECISIONS * choices.len(), choices, before: state.schedule.clone(), schedule: Arc::new(s) }
    }

    fn plain_tiling(&self) -> Tiling {
        Tiling { parallel: self.machine.threads > 1, ..Tiling::plain() }
    }

    /// Makes a choice, or what is left of it where parts are refused.
    pub fn decide(&self, s: &mut Schedule, stage: StageId, choice: &Choice) -> Choice {
        let (free, loops) = self.is_open(stage);
        // What is nothing at these sizes has other loops at others.
        let nothing = is_left(s, stage) && matches!(s.graph.stage(stage).def, Definition::Pure(_));
        let loops = loops && !nothing;
        let placed = free && self.place(s, stage, choice.place);
        let place = if placed { choice.place } else { self.given(s, stage) };
        if place == Place::Inline || !loops {
            return Choice { place, tiling: Tiling::plain() };
        }
        let parallel = choice.tiling.parallel && place == Place::Root;
        let wanted = Tiling { parallel, ..choice.tiling };
        let plain = Tiling { parallel, ..Tiling::plain() };
        for tiling in [wanted, plain, Tiling { vectors: 0, ..plain }] {
            let before = s.before();
            if tiling.apply(s, stage, &self.machine).is_ok() {
                return Choice { place, tiling };
            }
            s.back(before);
        }
        Choice { place, tiling: Tiling { vectors: 0, rows: 0, ..Tiling::default() } }
    }

    /// Computes a stage somewhere, where that is legal.
    pub fn place(&self, s: &mut Schedule, stage: StageId, place: Place) -> bool {
        let name = s.graph.stage(stage).name.clone();
        let step = match place {
            Place::Root => return true,
            Place::Inline => Step::Inline { stage: name },
            Place::At(host, level) => {
                let Some(l) = s.plan(host).loops.get(level) else { return false };
                Step::ComputeAt { stage: name, reader: s.graph.stage(host).name.clone(), at: l.name.clone() }
            }
        };
        step.apply(s).is_ok()
    }

    /// Where a stage is computed as long as nobody has decided it: cheap ones where they are read, others in the blocks of
    /// what reads them.
    fn plain_place(&self, s: &Schedule, stage: StageId) -> Place {
        let (free, loops) = self.is_open(stage);
        if !free {
            return self.given(s, stage);
        }
        if loops && worth_inlining(s, stage) {
            return Place::Inline;
        }
        let mut tried = s.clone();
        let blocks = |host: &StageId| {
            let plan = s.plan(*host);
            let split = |name: &str| plan.splits.iter().any(|p| p.outer == name && p.factor >= 4);
            plan.loops.iter().take_while(|l| l.kind != Kind::Vector && split(&l.name)).count()
        };
        let hosts = self.hosts(s, stage);
        let at = hosts.iter().filter_map(|h| Some(Place::At(*h, blocks(h).checked_sub(1)?)));
        at.into_iter().find(|p| self.place(&mut tried, stage, *p)).unwrap_or(Place::Root)
    }

    /// The stages in whose loops a stage might be computed: its readers, and those in which they are computed.
    fn hosts(&self, s: &Schedule, stage: StageId) -> Vec<StageId> {
        let mut out = s.consumers(stage).to_vec();
        for r in out.clone() {
            let mut at = r;
            while let Site::At(host, _) = s.plan(at).site {
                if !out.contains(&host) {
                    out.push(host);
                }
                at = host;
            }
        }
        out.sort_unstable();
        out
    }

    /// The places that are legal for a stage.
    pub fn places(&self, s: &Schedule, stage: StageId) -> Vec<Place> {
        let (free, loops) = self.is_open(stage);
        if !free {
            return vec![self.given(s, stage)];
        }
        let mut out = vec![Place::Root];
        if loops && matches!(s.graph.stage(stage).def, Definition::Pure(_)) && !is_left(s, stage) {
            out.push(Place::Inline);
        }
        for host in self.hosts(s, stage) {
            let plan = s.plan(host);
            let open = plan.loops.iter().take_while(|l| !matches!(l.kind, Kind::Vector | Kind::Unrolled));
            out.extend((0..open.filter(|l| !plan.reduces(&l.name)).count()).map(|level| Place::At(host, level)));
        }
        out.retain(|place| self.place(&mut s.clone(), stage, *place));
        out
    }

    /// The tiles of registers that are worth trying for a stage whose place is decided, without blocks.
    pub fn tilings(&self, s: &Schedule, stage: StageId) -> Vec<Tiling> {
        if !self.is_open(stage).1 {
            return vec![Tiling::plain()];
        }
        let parallel = self.machine.threads > 1 && s.plan(stage).site == Site::Root;
        tiles(s, stage, &self.machine, parallel)
    }
}

impl Space for Tree<'_> {
    type State = State;
    type Move = Move;

    fn root(&self) -> State {
        let start = Arc::new(self.start.clone());
        State { choices: vec![], made: 0, before: start.clone(), schedule: start }
    }

    fn moves(&self, state: &State) -> Vec<Move> {
        let Some(stage) = self.order.get(state.made / DECISIONS).copied() else { return vec![] };
        let decided = state.choices.get(state.made / DECISIONS);
        match (state.made % DECISIONS, decided) {
            (0, _) => self.places(&state.schedule, stage).into_iter().map(Move::Place).collect(),
            (_, Some(Choice { place: Place::Inline, tiling })) => vec![Move::Tiling(*tiling)],
            (_, Some(Choice { tiling, .. })) if !self.is_open(stage).1 => vec![Move::Tiling(*tiling)],
            (1, Some(choice)) => {
                let mut s = Schedule::clone(&state.before);
                if self.is_open(stage).0 {
                    self.place(&mut s, stage, choice.place);
                }
                self.tilings(&s, stage).into_iter().map(Move::Tiling).collect()
            }
            (_, Some(choice)) => blocks(&state.before, stage, &choice.tiling).into_iter().map(Move::Tiling).collect(),
            (_, None) => vec![],
        }
    }

    fn apply(&self, state: &State, by: &Move) -> State {
        let (before, choice) = match (by, state.choices.split_last()) {
            (Move::Tiling(tiling), Some((last, before))) => {
                let schedule = state.before.clone();
                let choices = before.to_vec();
                (State { choices, schedule, ..state.clone() }, Choice { tiling: *tiling, ..*last })
            }
            (Move::Tiling(tiling), None) => (state.clone(), Choice { place: Place::Root, tiling: *tiling }),
            (Move::Place(place), _) => (state.clone(), Choice { place: *place, tiling: self.plain_tiling() }),
        };
        State { made: state.made + 1, ..self.with(&before, &choice) }
    }

    fn terminal(&self, state: &State) -> bool {
        state.made >= self.depth()
    }

    fn depth(&self, state: &State) -> usize {
        state.made
    }

    fn key(&self, state: &State, level: usize) -> u64 {
        let mut hash = rustc_hash::FxHasher::default();
        state.made.hash(&mut hash);
        for c in &state.choices {
            // Coarsest is where stages are computed, then which loops are cut, then the numbers.
            c.place.hash(&mut hash);
            match level {
                0 => {}
                1 => (c.tiling.block.map(|n| n > 0), c.tiling.pack, c.tiling.vectors > 0).hash(&mut hash),
                _ => c.tiling.hash(&mut hash),
            }
        }
        hash.finish()
    }

    /// A state is a whole schedule at any time.
    fn solution(&self, _: &State) -> bool {
        true
    }
}

/// What steps leave open, by the numbers of stages.
fn open(begun: &Schedule) -> Vec<Open> {
    let mut out = vec![Open { place: true, loops: true }; begun.graph.stages.len()];
    for step in begun.steps.iter().filter(|step| !step.is_rewrite()) {
        let Some(stage) = begun.graph.find(step.stage()) else { continue };
        let own = &mut out[stage.0 as usize];
        match step {
            Step::Inline { .. } => *own = Open { place: false, loops: false },
            Step::ComputeRoot { .. } | Step::ComputeAt { .. } | Step::StoreAt { .. } | Step::FuseStages { .. } => {
                own.place = false
            }
            Step::IfConvert { .. } | Step::Contract { .. } | Step::Reassociate { .. } | Step::Layout { .. } => {}
            Step::Split { .. } | Step::Strip { .. } | Step::Fuse { .. } | Step::Reorder { .. } | Step::Run { .. } => {
                own.loops = false
            }
            Step::CacheRead { name, .. } => {
                own.loops = false;
                begun.graph.find(name).into_iter().for_each(|copy| out[copy.0 as usize].place = false);
            }
        }
    }
    out
}

/// A schedule that was judged.
#[derive(Clone)]
pub struct Judged {
    /// The schedule.
    pub schedule: Schedule,
    /// Its work.
    pub work: Work,
    /// The terms of the model.
    pub terms: Vec<f64>,
    /// The seconds that it is expected to take.
    pub expected: f64,
}

/// Judges states by a model, and keeps the best schedules of all.
pub struct Judge<'a> {
    /// What judges.
    pub model: &'a Model,
    /// How many are kept.
    keep: usize,
    /// The best, by the bits of their work.
    best: BTreeMap<[u64; PARTS.len()], Judged>,
}

impl<'a> Judge<'a> {
    /// Keeps so many schedules.
    pub fn new(model: &'a Model, keep: usize) -> Judge<'a> {
        Judge { model, keep, best: BTreeMap::new() }
    }

    /// A schedule, judged; nothing where it cannot be lowered.
    pub fn judged(&self, tree: &Tree<'_>, schedule: Schedule) -> Option<Judged> {
        let (work, terms) = tree.counted(self.model, &schedule)?;
        let expected = self.model.seconds(&terms);
        Some(Judged { schedule, work, terms, expected })
    }

    /// Keeps a schedule, if it is among the best.
    pub fn keep(&mut self, judged: Judged) {
        let worst = self.best.iter().max_by(|a, b| a.1.expected.total_cmp(&b.1.expected));
        let worst = worst.map(|(k, j)| (*k, j.expected)).filter(|_| self.best.len() >= self.keep);
        // What does the same work is the same to a model: one of them is enough.
        let work = judged.work.0.map(f64::to_bits);
        if worst.as_ref().is_none_or(|(_, w)| judged.expected < *w) && !self.best.contains_key(&work) {
            worst.and_then(|(k, _)| self.best.remove(&k));
            self.best.insert(work, judged);
        }
    }

    /// The best schedules that were judged, best first.
    pub fn best(self) -> Vec<Judged> {
        let mut out: Vec<Judged> = self.best.into_values().collect();
        out.sort_by(|a, b| a.expected.total_cmp(&b.expected));
        out
    }
}

impl Cost<Tree<'_>> for Judge<'_> {
    fn costs(&mut self, tree: &Tree<'_>, states: &[State]) -> Vec<f64> {
        let each: Vec<Option<Judged>> = states.par_iter().map(|s| self.judged(tree, tree.complete(s))).collect();
        let cost = |j: &Option<Judged>| j.as_ref().map_or(f64::INFINITY, |j| j.expected);
        let costs = each.iter().map(cost).collect();
        each.into_iter().flatten().for_each(|j| self.keep(j));
        costs
    }
}

/// What later passes make of a function that decides what its loops cost: they share values, leave out clamps, and choose
/// which loops run in vectors.
fn foresee(f: &mut Func, machine: &Machine) {
    name::name(f);
    share::share(f);
    dead::remove(f);
    clamp::clamp(f);
    choose::foresee(f, machine.vector_bytes);
}

/// The steps of a schedule as text.
pub fn steps(s: &Schedule) -> String {
    s.steps.iter().map(|step| format!("{step}\n")).collect()
}
