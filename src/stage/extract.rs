//! A typed definition becomes a graph.
//!
//! Every tensor that the term makes is a stage over the loops around it that it depends on, and so are reductions and
//! numbers that an inner loop uses again. Copies, constants and arithmetic of indices are read where they are used. Calls
//! are inlined. What can fail leaves a check; one that is proved for all indices goes, and one that sizes decide is
//! made once, at the start.

use super::body::{Body, DimId, Node, Source, StageId};
use super::bounds::Ranges;
use super::graph::{Definition, Graph, Output, Stage, unused};
use super::guards::{Guards, Pending};
use super::same::Same;
use super::value::{Val, incoming};
use crate::diag::Diagnostic;
use crate::ir::{Def, Fun, Id, Op, Program, Scalar, Terms};
use rustc_hash::{FxHashMap, FxHashSet};

/// A graph has at most so many stages.
const MAX_STAGES: usize = 20_000;

/// Integers from this on are not taken for sizes, so that arithmetic of indices cannot wrap.
pub(super) const SMALL: i64 = 1 << 40;

/// Why a definition is no graph, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unstaged {
    /// What stands in the way.
    pub reason: String,
    /// The term.
    pub at: Option<Id>,
}

impl Unstaged {
    /// The reason as a diagnostic, at its place in the source.
    pub fn diagnostic(&self, program: &Program) -> Box<Diagnostic> {
        let d = Diagnostic::limit(format!("no schedule can be made: {}", self.reason));
        let span = self.at.and_then(|id| program.terms.spans(id).first().copied());
        span.map_or(d.clone(), |s| d.at(s, "because of this"))
    }
}

pub(super) type Staged<T> = std::result::Result<T, Unstaged>;

/// The graph of a definition.
///
/// # Errors
/// What cannot be staged: text, recursion, states of folds that are tensors, sizes that depend on data.
pub fn extract(program: &Program, def: &Def) -> Staged<Graph> {
    let mut x = Extract {
        program,
        terms: &program.terms,
        g: Graph { name: def.name().to_string(), ..Graph::default() },
        env: vec![],
        loops: vec![],
        ranges: Ranges::default(),
        path: vec![],
        pending: vec![],
        accs: ACC_BASE,
        names: FxHashSet::default(),
        unnamed: FxHashSet::default(),
        same: Same::default(),
        steps: vec![],
        calls: vec![],
        lets: FxHashMap::default(),
    };
    x.definition(def)?;
    x.g.known_conditions();
    x.g.unswitch();
    x.g.one_hot();
    x.g.picks();
    x.g.products_in_sums(&x.unnamed);
    let mut graph = x.g.without_dead();
    if graph.unify() {
        graph = graph.without_dead();
    }
    if graph.take_windows_once() {
        graph = graph.without_dead();
    }
    if graph.compute_once() {
        graph = graph.without_dead();
    }
    if graph.changed_tables() {
        graph = graph.without_dead();
    }
    graph.reads_to_numbers();
    match graph.is_ordered() {
        true => Ok(graph),
        false => Err(Unstaged { reason: "stages that wait for each other".into(), at: None }),
    }
}

/// Why a fold over numbers is no reduction.
pub(super) const READS_STATE: &str = "a loop inside of a step that reads the state";

/// Accumulators are numbered from here while their step is read, and from 0 in their stage.
pub(super) const ACC_BASE: u32 = 1 << 16;

#[derive(Clone)]
pub(super) struct Extract<'a> {
    pub(super) program: &'a Program,
    pub(super) terms: &'a Terms,
    pub(super) g: Graph,
    pub(super) env: Vec<Val>,
    /// The dimensions around, outermost first.
    pub(super) loops: Vec<DimId>,
    /// Their ranges, where the path has led.
    pub(super) ranges: Ranges,
    /// The conditions of the arms around, with what they are there.
    pub(super) path: Vec<(Body, bool)>,
    /// Checks of the stages in the making, those of the outermost first.
    pub(super) pending: Vec<Pending>,
    pub(super) accs: u32,
    names: FxHashSet<String>,
    /// Stages that the source has no name for.
    unnamed: FxHashSet<StageId>,
    /// The stages by what they compute.
    pub(super) same: Same,
    /// The dimensions of the steps that are being read.
    pub(super) steps: Vec<DimId>,
    pub(super) calls: Vec<Fun>,
    /// Whether a variable of a let is used in a loop inside its body.
    pub(super) lets: FxHashMap<(Id, usize), bool>,
}

impl<'a> Extract<'a> {
    pub(super) fn refuse<T>(&self, at: Id, reason: impl Into<String>) -> Staged<T> {
        Err(Unstaged { reason: reason.into(), at: Some(at) })
    }

    fn definition(&mut self, def: &'a Def) -> Staged<()> {
        let Some(body) = def.term() else {
            return Err(Unstaged { reason: "the function has no body here".into(), at: None });
        };
        for p in &def.params {
            let Some(v) = incoming(&mut self.g, p.ty, &p.name, &[]) else { return self.refuse(body, "text") };
            self.env.push(v);
        }
        for k in 0..self.g.symbols.len() {
            if self.g.symbols[k].size {
                let n = self.g.bodies.symbol(super::SymbolId(k as u32), Scalar::I64);
                self.below(n, SMALL);
            }
        }
        self.equal_sizes(def, 0)?;
        self.calls.push(def.fun);
        let value = self.value(body)?;
        self.outputs(body, &value, &[])?;
        let rest = self.taken(0);
        if rest.iter().any(|c| self.g.bodies.is_data(*c)) {
            self.add_stage("check", vec![], None, Definition::Pure(vec![]), rest)?;
        } else {
            rest.into_iter().for_each(|c| self.at_entry(c));
        }
        Ok(())
    }

    /// Sizes that share a name are equal, and one body from there on.
    pub(super) fn equal_sizes(&mut self, def: &Def, from: usize) -> Staged<()> {
        for ((p, a), (q, b), _) in def.equal_sizes() {
            let (x, y) = (self.env[from + p].clone(), self.env[from + q].clone());
            let (Some(n), Some(m)) = (self.size_of(&x, a), self.size_of(&y, b)) else { continue };
            if n == m {
                continue;
            }
            let same = self.g.bodies.test(Op::Eq, n, m);
            self.check(same, Guards::All);
            // From here on they are one size: the start has compared them, or a check does before all else.
            let of = FxHashMap::from_iter([(m, n)]);
            let one =
                |s: &mut Self, b: Body| s.g.bodies.map(b, &mut FxHashMap::default(), &mut |_, b| of.get(&b).copied());
            if self.calls.is_empty() {
                for k in 0..self.g.inputs.len() {
                    for j in 0..self.g.inputs[k].sizes.len() {
                        self.g.inputs[k].sizes[j] = one(self, self.g.inputs[k].sizes[j]);
                    }
                }
            }
            resize(&mut self.env[from + q], b, n);
        }
        Ok(())
    }

    fn outputs(&mut self, id: Id, v: &Val, outer: &[(DimId, Body)]) -> Staged<()> {
        match v {
            Val::Scalar(b) if outer.is_empty() => self.g.outputs.push(Output::Scalar(*b)),
            Val::Scalar(b) => {
                let from = self.whole(id, *b, outer)?;
                self.g.outputs.push(Output::Data(from));
            }
            Val::Tuple(parts) => parts.iter().try_for_each(|p| self.outputs(id, p, outer))?,
            Val::Tensor { dims, sizes, elem } => {
                for n in sizes {
                    let n = self.first_size(*n, outer);
                    self.g.outputs.push(Output::Size(n));
                }
                let own: Vec<(DimId, Body)> = dims.iter().copied().zip(sizes.iter().copied()).collect();
                self.outputs(id, elem, &[outer, &own].concat())?;
            }
        }
        Ok(())
    }

    /// A size inside tensors: that of their first element, 0 where one of them is empty.
    fn first_size(&mut self, n: Body, outer: &[(DimId, Body)]) -> Body {
        let bodies = &mut self.g.bodies;
        let zero = bodies.int(0);
        let mut some = bodies.bool(true);
        for (_, n) in outer {
            let more = bodies.op(Op::Gt, Scalar::Bool, &[*n, zero]);
            some = bodies.test(Op::And, some, more);
        }
        let n = bodies.substitute(n, &outer.iter().map(|(d, _)| (*d, zero)).collect());
        bodies.cond(some, n, zero)
    }

    /// What holds all elements of a tensor in their order: a stage or an input that has them, or a copy.
    fn whole(&mut self, id: Id, b: Body, dims: &[(DimId, Body)]) -> Staged<Source> {
        let here: Vec<Body> = dims.iter().map(|(d, _)| self.g.bodies.index(*d)).collect();
        if let Node::Load(from, _, at) = self.g.bodies.node(b)
            && at.as_slice() == here.as_slice()
            && self.g.extents(*from).iter().copied().eq(dims.iter().map(|(_, n)| *n))
        {
            return Ok(*from);
        }
        let mut own = vec![];
        let mut of = FxHashMap::default();
        for (d, n) in dims {
            let n = self.g.bodies.substitute(*n, &of);
            if !self.g.bodies.dims(n).is_empty() {
                return self.refuse(id, "rows of different sizes");
            }
            let name = self.g.dim(*d).name.clone();
            let new = self.g.add_dim(name, n);
            of.insert(*d, self.g.bodies.index(new));
            own.push(new);
        }
        let checks = self.guarding(&[b]).into_iter().map(|c| self.g.bodies.substitute(c, &of)).collect();
        let b = self.g.bodies.substitute(b, &of);
        let stage = self.add_stage("result", own, None, Definition::Pure(vec![b]), checks)?;
        Ok(Source::Stage(stage, 0))
    }

    // Stages.

    /// A stage; one that computes the same under other names of its loops is the one that there is.
    fn add_stage(
        &mut self,
        name: &str,
        dims: Vec<DimId>,
        when: Option<Body>,
        def: Definition,
        checks: Vec<Body>,
    ) -> Staged<StageId> {
        if self.g.stages.len() >= MAX_STAGES {
            return Err(Unstaged { reason: format!("more than {MAX_STAGES} stages"), at: None });
        }
        let tys = match &def {
            Definition::Pure(each)
            | Definition::Reduce { init: each, .. }
            | Definition::Recur { init: each, .. }
            | Definition::Scatter { value: each, .. } => each.iter().map(|b| self.g.bodies.ty(*b)).collect(),
        };
        let stage = Stage { name: String::new(), dims, tys, when, def, checks };
        let key = self.same.key(&mut self.g, &stage, &self.steps);
        if let Some(known) = self.same.find(&key) {
            return Ok(known);
        }
        let (name, id) = (self.unique(name), StageId(self.g.stages.len() as u32));
        self.g.stages.push(Stage { name, ..stage });
        self.same.insert(key, id);
        Ok(id)
    }

    /// Remembers stages of terms that the source has no name for.
    pub(super) fn named_after(&mut self, stage: StageId, id: Id) {
        if self.terms.labelled(id).is_none() {
            self.unnamed.insert(stage);
        }
    }

    /// Calls stages by the name of the value whose tensors have their elements, where they have none of their own.
    pub(super) fn name_views(&mut self, name: &str, v: &Val, around: &[DimId]) {
        match v {
            Val::Tuple(each) => each.iter().for_each(|v| self.name_views(name, v, around)),
            Val::Tensor { dims, elem, .. } => self.name_views(name, elem, &[around, dims].concat()),
            Val::Scalar(_) if around.is_empty() => {}
            Val::Scalar(b) => {
                let at = self.indices(around);
                let Node::Load(Source::Stage(s, _), _, own) = self.g.bodies.node(*b) else { return };
                let (s, same) = (*s, own.ends_with(&at));
                if same && self.unnamed.remove(&s) {
                    self.names.remove(&self.g.stage(s).name);
                    self.g.stages[s.0 as usize].name = self.unique(name);
                }
            }
        }
    }

    /// A name that no stage has.
    pub(super) fn unique(&mut self, name: &str) -> String {
        unused(name, "_", |n| !self.names.insert(n.to_string()))
    }

    /// A stage over those of the loops around that it depends on; its components, read at their indices. It has checks of
    /// its own, and those of the loops around that guard what it evaluates. In an arm of a condition it is computed where
    /// the arm is taken.
    pub(super) fn stage(&mut self, id: Id, name: &str, def: Definition, own: Vec<Body>) -> Staged<Vec<Body>> {
        let (each, over): (Vec<Body>, Vec<DimId>) = match &def {
            Definition::Pure(each) => (each.clone(), vec![]),
            Definition::Reduce { over, init, next, .. } => (init.iter().chain(next).copied().collect(), over.clone()),
            Definition::Recur { init, next, .. } => (init.iter().chain(next).copied().collect(), vec![]),
            Definition::Scatter { over, only, at, value, .. } => {
                (only.iter().chain(at).chain(value).copied().collect(), over.clone())
            }
        };
        let (arms, used, checks) = self.surroundings(&each, &over, own);
        for b in self.g.bodies.reachable(each.iter().chain(&checks).chain(&arms).copied()) {
            if matches!(self.g.bodies.node(b), Node::Acc(k, _) if *k >= ACC_BASE || over.is_empty()) {
                return self.refuse(id, READS_STATE);
            }
        }
        let own = if let Definition::Scatter { into, .. } = &def { self.loops.len() - into } else { self.loops.len() };
        let named = |(k, d): &(usize, DimId)| *k >= own || used.contains(d) && !over.contains(d);
        let dims: Vec<DimId> = self.loops.iter().copied().enumerate().filter(named).map(|(_, d)| d).collect();
        let mut def = def;
        if let Definition::Reduce { inside, .. } = &mut def {
            let from = self.loops.len() - *inside;
            *inside = self.loops[from..].iter().filter(|d| dims.contains(d)).count();
        }
        let when = self.all_of(arms);
        let at = self.indices(&dims);
        let known = self.g.stages.len();
        let stage = self.add_stage(name, dims, when, def, checks)?;
        if self.g.stages.len() > known {
            self.named_after(stage, id);
        }
        if let Definition::Pure(each) = &self.g.stages[stage.0 as usize].def {
            for (k, b) in each.iter().enumerate() {
                self.g.bodies.assume_float(Source::Stage(stage, k as u32), *b);
            }
        }
        let tys = self.g.stage(stage).tys.clone();
        let load =
            |(k, ty): (usize, &Scalar)| self.g.bodies.load(Source::Stage(stage, k as u32), *ty, at.iter().copied());
        Ok(tys.iter().enumerate().map(load).collect())
    }

    /// Whether conditions hold, each of which is evaluated only where those before it do.
    pub(super) fn all_of(&mut self, arms: Vec<Body>) -> Option<Body> {
        let no = self.g.bodies.bool(false);
        arms.into_iter().rev().reduce(|inner, c| self.g.bodies.cond(c, inner, no))
    }

    /// What decides where some bodies are evaluated: the conditions of the arms around, outermost first and after what guards
    /// them, the dimensions, and the checks before the bodies. A condition on other dimensions than theirs is none of theirs:
    /// without it they are evaluated once, and not at all its points. One that shares a dimension may be what keeps an index
    /// in range.
    pub(super) fn surroundings(
        &mut self,
        each: &[Body],
        over: &[DimId],
        own: Vec<Body>,
    ) -> (Vec<Body>, FxHashSet<DimId>, Vec<Body>) {
        let path: Vec<Body> = self.path.clone().into_iter().map(|(c, holds)| self.g.holding(c, holds)).collect();
        let mut taken = vec![false; path.len()];
        loop {
            let arms: Vec<Body> = path.iter().zip(&taken).filter(|(_, t)| **t).map(|(c, _)| *c).collect();
            let mut checks = self.guarding(&[each, &own, &arms].concat());
            checks.extend(&own);
            let all = each.iter().chain(&checks).chain(&arms).copied();
            let used = self.dims_of(all.chain(over.iter().map(|d| self.g.dim(*d).extent)));
            let next: Vec<bool> = path
                .iter()
                .map(|c| {
                    let own = self.g.bodies.dims(*c);
                    own.is_empty() || own.iter().any(|d| used.contains(d))
                })
                .collect();
            if next == taken {
                // A condition is evaluated where what guards it holds; where that fails, what stands around says so.
                return ([self.guarding(&arms), arms].concat(), used, checks);
            }
            taken = next;
        }
    }

    /// The dimensions that bodies name, and those that their extents name.
    pub(super) fn dims_of(&self, bodies: impl Iterator<Item = Body>) -> FxHashSet<DimId> {
        let mut used: FxHashSet<DimId> = FxHashSet::default();
        let mut todo: Vec<Body> = bodies.collect();
        while let Some(b) = todo.pop() {
            for d in self.g.bodies.dims(b) {
                if used.insert(d) {
                    todo.push(self.g.dim(d).extent);
                }
            }
        }
        used
    }

    /// Whether a body is read where it is used: a literal, arithmetic of indices and sizes, or an element at such indices.
    pub(super) fn is_view(&self, b: Body) -> bool {
        match self.g.bodies.node(b) {
            Node::Load(_, _, at) => at.iter().all(|a| self.is_plain(*a)),
            _ => self.is_plain(b),
        }
    }

    /// Whether a body is arithmetic of indices and sizes that has a value wherever it is read.
    fn is_plain(&self, b: Body) -> bool {
        let bodies = &self.g.bodies;
        // What sizes decide outside of all arms was asked at the start.
        let asked = self.path.is_empty() && bodies.dims(b).is_empty();
        matches!(bodies.node(b), Node::Lit(_) | Node::Symbol(_)) || bodies.is_arithmetic(b, asked)
    }

    /// Whether a body is made of the state of a fold whose step is being read.
    fn reads_state(&self, b: Body) -> bool {
        self.g.bodies.reachable([b]).into_iter().any(|b| matches!(self.g.bodies.node(b), Node::Acc(..)))
    }

    /// A number that is used again and again: computed once for the loops around that it depends on.
    pub(super) fn once(&mut self, id: Id, b: Body, name: &str) -> Staged<Body> {
        // What floats that come in become may be a size, which no stage is.
        let number = self.g.bodies.ty(b) == Scalar::I64 && self.g.bodies.is_of_symbols(b);
        if number || self.g.bodies.is_converted_size(b) || self.is_view(b) || self.reads_state(b) {
            return Ok(b);
        }
        Ok(self.stage(id, name, Definition::Pure(vec![b]), vec![])?[0])
    }

    /// What is made in loops, and their dimensions.
    pub(super) fn in_loops<T>(
        &mut self,
        sizes: &[Body],
        names: &[String],
        make: impl FnOnce(&mut Self, &[DimId]) -> Staged<T>,
    ) -> Staged<(Vec<DimId>, T)> {
        let dims = self.open(sizes, names);
        let made = make(self, &dims);
        self.close(&dims);
        Ok((dims, made?))
    }

    /// What is made, and the checks that were left pending by that.
    pub(super) fn with_checks<T>(&mut self, make: impl FnOnce(&mut Self) -> Staged<T>) -> Staged<(T, Vec<Body>)> {
        let around = self.pending.len();
        let made = make(self);
        let checks = self.taken(around);
        Ok((made?, checks))
    }

    /// The indices of dimensions.
    pub(super) fn indices(&mut self, dims: &[DimId]) -> Vec<Body> {
        dims.iter().map(|d| self.g.bodies.index(*d)).collect()
    }

    /// Opens loops; gives their dimensions.
    pub(super) fn open(&mut self, sizes: &[Body], names: &[String]) -> Vec<DimId> {
        let mut dims = vec![];
        for (k, n) in sizes.iter().enumerate() {
            let name = names.get(k).map_or("i", String::as_str);
            let d = self.g.add_dim(name, *n);
            self.ranges.push(&mut self.g.bodies, d, *n);
            self.loops.push(d);
            dims.push(d);
        }
        dims
    }

    /// Opens the loops of a tensor again, which its elements name.
    pub(super) fn reopen(&mut self, dims: &[DimId], sizes: &[Body]) {
        for (d, n) in dims.iter().zip(sizes) {
            self.ranges.push(&mut self.g.bodies, *d, *n);
            self.loops.push(*d);
        }
    }

    pub(super) fn close(&mut self, dims: &[DimId]) {
        let n = self.loops.len() - dims.len();
        self.loops.truncate(n);
        self.ranges.truncate(n);
    }

    /// What is made in an arm of a condition.
    pub(super) fn arm<T>(&mut self, c: Body, holds: bool, make: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.ranges.clone();
        self.ranges.refine(&mut self.g.bodies, c, holds);
        self.path.push((c, holds));
        let out = make(self);
        self.path.pop();
        self.ranges = before;
        out
    }
}

/// Gives an axis, counted through nested tensors, another size.
fn resize(v: &mut Val, axis: usize, n: Body) {
    if let Val::Tensor { sizes, elem, .. } = v {
        match axis.checked_sub(sizes.len()) {
            None => sizes[axis] = n,
            Some(inner) => resize(elem, inner, n),
        }
    }
}
