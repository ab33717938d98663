//! What a graph is: symbols, inputs, dimensions, stages and results.

use super::body::{Bodies, Body, DimId, Node, Source, StageId, SymbolId};
use crate::ir::Scalar;
use rustc_hash::FxHashMap;

/// What stands for a load of a source of a type at indices; nothing where the load stays.
pub type Reading<'a> = dyn FnMut(&mut Graph, Source, Scalar, &[Body]) -> Option<Body> + 'a;

/// A number that comes in: a scalar parameter, or the size of an axis of a tensor.
#[derive(Clone, PartialEq, Debug)]
pub struct Symbol {
    /// What the source calls it.
    pub name: String,
    /// Its type.
    pub ty: Scalar,
    /// Whether it is a size, and so not negative.
    pub size: bool,
}

/// A tensor that comes in: row-major, one buffer for each scalar component.
#[derive(Clone, PartialEq, Debug)]
pub struct Input {
    /// What the source calls it.
    pub name: String,
    /// The element type.
    pub ty: Scalar,
    /// The sizes of its axes.
    pub sizes: Vec<Body>,
}

/// What comes in, in the order of the calling form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slot {
    /// A scalar or a size.
    Symbol(SymbolId),
    /// A buffer.
    Input(u32),
}

/// A dimension: its index runs from 0 to below its extent.
#[derive(Clone, PartialEq, Debug)]
pub struct Dim {
    /// What the source calls its index.
    pub name: String,
    /// The extent, over symbols and dimensions to its left.
    pub extent: Body,
}

/// How a stage's elements come about.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Definition {
    /// Each component from its body.
    Pure(Vec<Body>),
    /// Accumulators: first values, and from each point of the dimensions, in lexicographic order, the next ones, over the
    /// accumulators before. Sums, products, least and greatest, `fma` chains and folds over numbers are all of this form.
    Reduce {
        /// The dimensions that are reduced, outermost first.
        over: Vec<DimId>,
        /// First values.
        init: Vec<Body>,
        /// Next values.
        next: Vec<Body>,
        /// How many of the stage's dimensions, the last ones, stand inside of the reduction in the source: elements of
        /// tensors that are summed.
        inside: usize,
    },
    /// Zeros, and at each point of the dimensions, in lexicographic order, values that are added at indices.
    Scatter {
        /// The dimensions that are run through, outermost first.
        over: Vec<DimId>,
        /// Where something is added: everywhere where nothing is said.
        only: Option<Body>,
        /// The indices of the stage's last dimensions.
        at: Vec<Body>,
        /// What is added, for each component.
        value: Vec<Body>,
        /// How many dimensions it has indices of.
        into: usize,
    },
    /// States of a recurrence: at index 0 of a dimension, its steps, first values; at each later one next values, which read
    /// the states at the index before. All states of a recurrence are computed step by step together, after what is
    /// computed for a step, which reads the states before it.
    Recur {
        /// Which of its dimensions are the steps.
        axis: usize,
        /// First values, over the other dimensions.
        init: Vec<Body>,
        /// Next values.
        next: Vec<Body>,
        /// The stage of the recurrence that has the loop over steps: itself, or one that has no dimensions inside of it.
        leader: StageId,
        /// The dimension of what is computed for a step: one less than the index of the state that it makes.
        each: DimId,
    },
}

/// A recurrence: the stage with the loop over its steps, and the dimension of what is computed for a step.
pub type Recurrence = (StageId, DimId);

/// A tensor over dimensions; without any, a number.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Stage {
    /// A name, unique in its graph.
    pub name: String,
    /// Its dimensions, outermost first.
    pub dims: Vec<DimId>,
    /// The element types of its components.
    pub tys: Vec<Scalar>,
    /// Where an element is computed: in an arm of a condition, which also decides where it is read; everywhere where
    /// nothing is said. It is of the dimensions alone, is evaluated before the checks, and has a value at all points.
    pub when: Option<Body>,
    /// What it computes.
    pub def: Definition,
    /// What must hold at every point of its dimensions, and those it reduces over, else the graph is of no use there.
    /// Each is evaluated after those before it, and before the elements; of a reduction, those that come before the
    /// first values ([`Graph::checks`]) before these.
    pub checks: Vec<Body>,
}

/// A part of the result, in the order of the calling form.
#[derive(Clone, PartialEq, Debug)]
pub enum Output {
    /// A number: a stage without dimensions, or what symbols say.
    Scalar(Body),
    /// The size of an axis.
    Size(Body),
    /// The elements of a component of a stage, or an input.
    Data(Source),
}

/// A program as stages.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// What the source calls the function.
    pub name: String,
    /// All bodies.
    pub bodies: Bodies,
    /// Numbers that come in.
    pub symbols: Vec<Symbol>,
    /// Buffers that come in.
    pub inputs: Vec<Input>,
    /// What comes in, in order.
    pub slots: Vec<Slot>,
    /// All dimensions.
    pub dims: Vec<Dim>,
    /// The stages.
    pub stages: Vec<Stage>,
    /// What must hold of the symbols, else the graph is of no use.
    pub entry: Vec<Body>,
    /// The result.
    pub outputs: Vec<Output>,
    /// Whether only values over the reals have to stay: sums may be taken in another order.
    pub real: bool,
}

/// A name that is not taken: itself, or with a number.
pub fn unused(name: &str, between: &str, mut taken: impl FnMut(&str) -> bool) -> String {
    let (mut out, mut k) = (name.to_string(), 2);
    while taken(&out) {
        out = format!("{name}{between}{k}");
        k += 1;
    }
    out
}

impl Stage {
    /// The dimensions that it reduces over, or adds values at.
    pub fn over(&self) -> &[DimId] {
        match &self.def {
            Definition::Pure(_) | Definition::Recur { .. } => &[],
            Definition::Reduce { over, .. } | Definition::Scatter { over, .. } => over,
        }
    }

    /// All its dimensions, those it reduces over last.
    pub fn all_dims(&self) -> Vec<DimId> {
        self.dims.iter().chain(self.over()).copied().collect()
    }

    /// The same stage with other dimensions in place of its own, those it reduces over last.
    #[must_use]
    pub fn over_others(&self, dims: &[DimId]) -> Stage {
        let (own, others) = dims.split_at(self.dims.len());
        let mut out = Stage { dims: own.to_vec(), ..self.clone() };
        if let Definition::Reduce { over, .. } | Definition::Scatter { over, .. } = &mut out.def {
            *over = others.to_vec();
        }
        out
    }

    /// The dimension of its steps, where it is a state.
    pub fn steps(&self) -> Option<DimId> {
        match self.def {
            Definition::Recur { axis, .. } => self.dims.get(axis).copied(),
            _ => None,
        }
    }

    /// The recurrence that it is a state of.
    pub fn recurrence(&self) -> Option<Recurrence> {
        match self.def {
            Definition::Recur { leader, each, .. } => Some((leader, each)),
            _ => None,
        }
    }

    /// Whether it is computed in the steps of a recurrence, as one of its states or for them.
    pub fn is_in(&self, (leader, each): (StageId, DimId)) -> bool {
        self.dims.contains(&each) || self.recurrence() == Some((leader, each))
    }

    /// How many of its dimensions have loops: not those whose indices data decide.
    pub fn looped(&self) -> usize {
        match &self.def {
            Definition::Scatter { into, .. } => self.dims.len() - into,
            Definition::Pure(_) | Definition::Reduce { .. } | Definition::Recur { .. } => self.dims.len(),
        }
    }

    /// All its bodies: where it is computed, checks, first values, elements.
    pub fn bodies(&self) -> Vec<Body> {
        let mut out: Vec<Body> = self.when.iter().chain(&self.checks).copied().collect();
        match &self.def {
            Definition::Pure(each) => out.extend(each),
            Definition::Reduce { init, next, .. } | Definition::Recur { init, next, .. } => {
                out.extend(init.iter().chain(next));
            }
            Definition::Scatter { only, at, value, .. } => out.extend(only.iter().chain(at).chain(value)),
        }
        out
    }

    /// All its bodies, to change.
    pub fn bodies_mut(&mut self) -> impl Iterator<Item = &mut Body> {
        let (only, first, rest): (Option<&mut Body>, &mut [Body], &mut [Body]) = match &mut self.def {
            Definition::Pure(each) => (None, each, &mut []),
            Definition::Reduce { init, next, .. } | Definition::Recur { init, next, .. } => (None, init, next),
            Definition::Scatter { only, at, value, .. } => (only.as_mut(), at, value),
        };
        self.when.iter_mut().chain(&mut self.checks).chain(only).chain(first).chain(rest)
    }
}

impl Graph {
    /// A stage.
    pub fn stage(&self, s: StageId) -> &Stage {
        &self.stages[s.0 as usize]
    }

    /// A dimension.
    pub fn dim(&self, d: DimId) -> &Dim {
        &self.dims[d.0 as usize]
    }

    /// How many points dimensions have together, 1 where there are none; nothing where numbers do not say.
    pub fn points(&self, dims: &[DimId]) -> Option<i64> {
        let mut each = dims.iter().map(|d| self.bodies.as_int(self.dim(*d).extent));
        each.try_fold(1, |n: i64, m| n.checked_mul(m?))
    }

    /// Does something to each stage; whether there was one to which it did.
    pub(super) fn each_stage(&mut self, does: fn(&mut Graph, StageId) -> bool) -> bool {
        let mut any = false;
        for s in self.ids() {
            any |= does(self, s);
        }
        any
    }

    /// All stages by their numbers.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = StageId> + use<> {
        (0..self.stages.len() as u32).map(StageId)
    }

    /// Whether anything is computed in a loop.
    pub fn has_loops(&self) -> bool {
        self.stages.iter().any(|s| !s.dims.is_empty() || !s.over().is_empty())
    }

    /// What a source is called.
    pub fn source_name(&self, from: Source) -> &str {
        match from {
            Source::Input(k) => &self.inputs[k as usize].name,
            Source::Stage(s, _) => &self.stage(s).name,
        }
    }

    /// The extents of a source's axes; of a stage, the inner ones may name its outer dimensions.
    pub fn extents(&self, from: Source) -> Vec<Body> {
        match from {
            Source::Input(k) => self.inputs[k as usize].sizes.clone(),
            Source::Stage(s, _) => self.stage(s).dims.iter().map(|d| self.dim(*d).extent).collect(),
        }
    }

    /// The indices at which a stage is read by another.
    pub fn loads_of(&self, p: StageId, reader: StageId) -> Vec<Vec<Body>> {
        let all = self.bodies.reachable(self.stage(reader).bodies()).into_iter();
        let at = all.filter_map(|b| match self.bodies.node(b) {
            Node::Load(Source::Stage(s, _), _, at) if *s == p => Some(at.to_vec()),
            _ => None,
        });
        at.collect()
    }

    /// The stage of a name.
    pub fn find(&self, name: &str) -> Option<StageId> {
        self.ids().find(|s| self.stage(*s).name == name)
    }

    /// A new dimension.
    pub fn add_dim(&mut self, name: impl Into<String>, extent: Body) -> DimId {
        self.dims.push(Dim { name: name.into(), extent });
        DimId(self.dims.len() as u32 - 1)
    }

    /// Adds a stage.
    pub(super) fn add_stage(&mut self, stage: Stage) -> StageId {
        self.stages.push(stage);
        StageId(self.stages.len() as u32 - 1)
    }

    /// A name that no stage or input has.
    pub(super) fn free_name(&self, name: &str) -> String {
        unused(name, "_", |n| self.find(n).is_some() || self.inputs.iter().any(|i| i.name == n))
    }

    /// The stages and inputs that some bodies read, each once.
    pub fn reads(&self, bodies: impl IntoIterator<Item = Body>) -> Vec<Source> {
        let mut out = vec![];
        for b in self.bodies.reachable(bodies) {
            if let Node::Load(from, ..) = self.bodies.node(b)
                && !out.contains(from)
            {
                out.push(*from);
            }
        }
        out
    }

    /// The checks of a stage: those at each point of its dimensions, and those at each point that it reduces over, or at each
    /// step, which name an index of that, an accumulator, or come after one that does.
    pub fn checks(&self, of: StageId) -> (Vec<Body>, Vec<Body>) {
        let s = self.stage(of);
        let steps = s.steps();
        let inner = |c: &Body| {
            self.bodies.reachable([*c]).into_iter().any(|b| match self.bodies.node(b) {
                Node::Index(d) => s.over().contains(d) || steps == Some(*d),
                Node::Acc(..) => true,
                _ => false,
            })
        };
        let first = s.checks.iter().position(inner).unwrap_or(s.checks.len());
        let (before, at_each) = s.checks.split_at(first);
        (before.to_vec(), at_each.to_vec())
    }

    /// The stages that read a stage.
    pub fn consumers(&self, of: StageId) -> Vec<StageId> {
        let reads = |s: &StageId| self.reads(self.stage(*s).bodies()).iter().any(|from| from.stage() == Some(of));
        self.ids().filter(reads).collect()
    }

    /// Whether a stage is part of the result, or the extent of a dimension asks for it.
    pub fn is_output(&self, of: StageId) -> bool {
        let named = self.reads(self.dims.iter().map(|d| d.extent));
        self.handed().into_iter().chain(named).any(|from| from.stage() == Some(of))
    }

    /// Whether a stage without checks, computed in no arm, is read by one other stage and by nothing else.
    pub(super) fn serves(&self, p: StageId, reader: StageId) -> bool {
        let stage = self.stage(p);
        stage.when.is_none() && stage.checks.is_empty() && !self.is_output(p) && self.consumers(p) == [reader]
    }

    /// What the result reads, or is.
    pub fn handed(&self) -> Vec<Source> {
        let each = self.outputs.iter().flat_map(|o| match o {
            Output::Scalar(b) | Output::Size(b) => self.reads([*b]),
            Output::Data(from) => vec![*from],
        });
        each.collect()
    }

    /// Makes others of the numbers and sizes of the result.
    pub(super) fn map_outputs(&mut self, new: &mut dyn FnMut(&mut Graph, Body) -> Body) {
        let mut outputs = std::mem::take(&mut self.outputs);
        for o in &mut outputs {
            if let Output::Scalar(b) | Output::Size(b) = o {
                *b = new(self, *b);
            }
        }
        self.outputs = outputs;
    }

    /// The recurrence whose loop over steps a stage has, and the dimension of what is computed for its steps.
    pub fn leads(&self, s: StageId) -> Option<(StageId, DimId)> {
        self.stage(s).recurrence().filter(|(leader, _)| *leader == s)
    }

    /// The stage in whose loops a stage is computed: of a state the one with the loop over steps, of others themselves.
    pub fn leader(&self, s: StageId) -> StageId {
        self.stage(s).recurrence().map_or(s, |(leader, _)| leader)
    }
}

impl Graph {
    /// The stages, producers before those that read them, and before all what only checks sizes and indices of loops: a step of a
    /// recurrence may read where such a check says, and have made the stage after its state.
    pub fn order(&self) -> Vec<StageId> {
        self.order_after(&FxHashMap::default()).0
    }

    /// Whether no stage waits for itself.
    pub fn is_ordered(&self) -> bool {
        self.order_after(&FxHashMap::default()).1
    }

    /// The same as [`Graph::order`], where some stages have to come after more than they read; and whether that can be.
    pub fn order_after(&self, more: &FxHashMap<StageId, Vec<StageId>>) -> (Vec<StageId>, bool) {
        let mut can = true;
        let (mut out, mut seen) = (vec![], vec![false; self.stages.len()]);
        let mut made = vec![false; self.stages.len()];
        let (first, others): (Vec<StageId>, Vec<StageId>) = self.ids().partition(|s| self.checks_without_data(*s));
        for s in first.into_iter().chain(others) {
            // Depth first, without recursion: graphs may be deep.
            let mut todo = vec![(s, false)];
            while let Some((s, done)) = todo.pop() {
                if done {
                    made[s.0 as usize] = true;
                    out.push(s);
                    continue;
                }
                if std::mem::replace(&mut seen[s.0 as usize], true) {
                    can &= made[s.0 as usize];
                    continue;
                }
                todo.push((s, true));
                todo.extend(more.get(&s).into_iter().flatten().map(|p| (*p, false)));
                let own = self.stage(s);
                if let Some(of) = self.leads(s) {
                    let each = self.ids().filter(|p| *p != s && self.stage(*p).is_in(of));
                    todo.extend(each.map(|p| (p, false)));
                }
                for from in self.reads(own.bodies()) {
                    let Some(p) = from.stage() else { continue };
                    // The states before a step are there.
                    if self.stage(p).recurrence().is_none_or(|of| !own.is_in(of)) {
                        todo.push((self.leader(p), false));
                    }
                }
            }
        }
        (out, can)
    }

    /// Whether a stage only checks, and neither data nor the step of a recurrence decide what: it can come before all others.
    fn checks_without_data(&self, s: StageId) -> bool {
        let known = self.stage(s);
        let in_steps = || {
            let mut all = self.ids().filter_map(|p| self.stage(p).recurrence());
            all.any(|(leader, each)| known.dims.iter().any(|d| *d == each || self.stage(leader).dims.contains(d)))
        };
        let divides = |b: Body| self.bodies.may_divide_by_zero(self.bodies.node(b));
        let asked = || known.checks.iter().copied().chain(known.dims.iter().map(|d| self.dim(*d).extent));
        !known.checks.is_empty()
            && known.tys.is_empty()
            && known.when.is_none()
            && known.over().is_empty()
            && asked().all(|c| !self.bodies.is_data(c) && !self.bodies.reachable([c]).into_iter().any(divides))
            && !in_steps()
    }

    /// A stage that is a copy of a source, with its axes in an order, and is read by a stage in place of it. Where the
    /// extent of one axis names the index of another, the order is the source's own.
    pub fn copy_for(&mut self, from: Source, reader: StageId, name: &str, axes: &[usize]) -> StageId {
        let extents = self.extents(from);
        let (ty, own) = match from {
            Source::Input(k) => (self.inputs[k as usize].ty, vec![]),
            Source::Stage(s, k) => (self.stage(s).tys[k as usize], self.stage(s).dims.clone()),
        };
        let zero = self.bodies.int(0);
        let (mut dims, mut at): (Vec<DimId>, Vec<Body>) = (vec![], vec![zero; axes.len()]);
        for axis in axes {
            let of = own.iter().copied().zip(at.iter().copied()).collect();
            let n = self.bodies.substitute(extents[*axis], &of);
            let label = own.get(*axis).map_or(format!("{name}{axis}"), |d| self.dim(*d).name.clone());
            dims.push(self.add_dim(label, n));
            at[*axis] = self.bodies.index(dims[dims.len() - 1]);
        }
        let body = self.bodies.load(from, ty, at);
        let copy = StageId(self.stages.len() as u32);
        let def = Definition::Pure(vec![body]);
        self.stages.push(Stage { name: name.to_string(), dims, tys: vec![ty], when: None, def, checks: vec![] });
        self.redirect(reader, &mut |g, source, ty, at| {
            let at = || axes.iter().map(|axis| at[*axis]);
            (source == from).then(|| g.bodies.load(Source::Stage(copy, 0), ty, at()))
        });
        copy
    }

    /// Lets a stage read other bodies in place of loads.
    pub fn redirect(&mut self, stage: StageId, by: &mut Reading<'_>) {
        let mut s = self.stage(stage).clone();
        for b in s.bodies_mut() {
            *b = self.reading(*b, by);
        }
        self.stages[stage.0 as usize] = s;
    }

    /// A body that reads other bodies in place of loads.
    pub fn reading(&mut self, b: Body, by: &mut Reading<'_>) -> Body {
        let mut of = rustc_hash::FxHashMap::default();
        for at in self.bodies.reachable([b]) {
            let new = self.bodies.rebuilt(at, &of);
            let new = match self.bodies.node(new).clone() {
                Node::Load(from, ty, index) => by(self, from, ty, &index).unwrap_or(new),
                _ => new,
            };
            of.insert(at, new);
        }
        of[&b]
    }
}
