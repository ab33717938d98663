//! A typed definition becomes a graph.
//!
//! Every tensor that the term makes is a stage over the loops around it that it depends on, and so are reductions and
//! numbers that an inner loop uses again. Copies, constants and arithmetic of indices are read where they are used. Calls
//! are inlined. What can fail leaves a check; one that is proved for all indices goes, and one that sizes decide is
//! made once, at the start.

use super::body::{Body, DimId, Node, Source};
use super::bounds::{Ranges, at_most};
use super::graph::{Definition, Graph, Output, Stage, StageId};
use super::value::{Val, incoming};
use crate::diag::Diagnostic;
use crate::ir::{Def, Fun, Id, Lit, Op, Program, Scalar, Terms};
use rustc_hash::{FxHashMap, FxHashSet};

/// Integers from this on are not taken for sizes, so that arithmetic of indices cannot wrap.
const SMALL: i64 = 1 << 40;
/// Tensors have fewer elements than this: as many as the interpreter can hold.
const MAX_ELEMENTS: i64 = (crate::eval::MAX_TENSOR / size_of::<crate::eval::Value>()) as i64 + 1;
/// Arithmetic of more nodes is computed once.
const MAX_VIEW: usize = 48;
/// A graph has at most so many stages.
const MAX_STAGES: usize = 20_000;

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
        calls: vec![],
        lets: FxHashMap::default(),
    };
    x.definition(def)?;
    Ok(x.g)
}

/// Accumulators are numbered from here while their step is read, and from 0 in their stage.
const ACC_BASE: u32 = 1 << 16;

/// What may be evaluated only where a check holds.
#[derive(Clone, Debug)]
pub(super) enum Guards {
    /// What reads one of these.
    Reads(Vec<Source>),
    /// What is made of this body.
    Body(Body),
    /// All that comes after it.
    All,
}

/// A check that no stage has yet.
pub(super) struct Pending {
    check: Body,
    guards: Guards,
}

pub(super) struct Extract<'a> {
    pub(super) program: &'a Program,
    pub(super) terms: &'a Terms,
    pub(super) g: Graph,
    pub(super) env: Vec<Val>,
    /// The dimensions around, outermost first.
    pub(super) loops: Vec<DimId>,
    /// Their ranges, where the path has led.
    ranges: Ranges,
    /// The conditions of the arms around, with what they are there.
    path: Vec<(Body, bool)>,
    /// Checks of the stages in the making, those of the outermost first.
    pub(super) pending: Vec<Pending>,
    pub(super) accs: u32,
    names: FxHashSet<String>,
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

    /// A condition of the start: an integer is not negative and below a bound.
    fn below(&mut self, n: Body, bound: i64) {
        let (zero, bound) = (self.g.bodies.int(0), self.g.bodies.int(bound));
        let bodies = &mut self.g.bodies;
        let low =
            if bodies.is_nonnegative(n) { bodies.bool(true) } else { bodies.op(Op::Gte, Scalar::Bool, &[n, zero]) };
        let high = bodies.op(Op::Lt, Scalar::Bool, &[n, bound]);
        for c in [low, high] {
            self.at_entry(c);
        }
        self.g.bodies.assume_size(n);
    }

    /// The size of an axis, counted through nested tensors. What stands inside of a tensor that may be empty is asked of
    /// others alone: sizes are simpler so, and little is lost.
    pub(super) fn size_of(&mut self, v: &Val, axis: usize) -> Option<Body> {
        let mut outer = v;
        let mut left = axis;
        while let Val::Tensor { sizes, elem, .. } = outer {
            let Some(inner) = left.checked_sub(sizes.len()) else { break };
            sizes.iter().for_each(|n| self.not_empty(*n));
            (outer, left) = (elem, inner);
        }
        v.size(&mut self.g.bodies, axis)
    }

    /// A condition of the start: a size that comes in is at least 1.
    fn not_empty(&mut self, n: Body) {
        if matches!(self.g.bodies.node(n), Node::Symbol(_)) && self.g.bodies.is_size(n) {
            let zero = self.g.bodies.int(0);
            let some = self.g.bodies.test(Op::Gt, n, zero);
            self.at_entry(some);
            self.g.bodies.assume_positive(n);
        }
    }

    /// A condition as the start decides it: what holds, or does not, of all sizes but 0 is left to the reference there.
    pub(super) fn decided(&mut self, c: Body) -> Option<bool> {
        if let Some((n, holds)) = self.g.bodies.decided_by_a_size(c) {
            self.not_empty(n);
            return Some(holds);
        }
        self.g.bodies.as_bool(c)
    }

    /// A condition of the start, after the one that says that it has a value.
    fn at_entry(&mut self, c: Body) {
        let has_value = self.g.bodies.has_value(c);
        for c in [has_value, c] {
            if self.g.bodies.as_bool(c) != Some(true) && !self.g.entry.contains(&c) {
                self.g.entry.push(c);
            }
        }
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
            if let Val::Tensor { sizes, .. } = &mut self.env[from + q]
                && b < sizes.len()
            {
                sizes[b] = n;
            }
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
        let mut unique = name.to_string();
        let mut k = 2;
        while !self.names.insert(unique.clone()) {
            unique = format!("{name}_{k}");
            k += 1;
        }
        let tys = match &def {
            Definition::Pure(each) | Definition::Reduce { init: each, .. } | Definition::Scatter { value: each, .. } => {
                each.iter().map(|b| self.g.bodies.ty(*b)).collect()
            }
        };
        self.g.stages.push(Stage { name: unique, dims, tys, when, def, checks });
        Ok(StageId(self.g.stages.len() as u32 - 1))
    }

    /// A stage over those of the loops around that it depends on; its components, read at their indices. It has checks of
    /// its own, and those of the loops around that guard what it evaluates. In an arm of a condition it is computed where
    /// the arm is taken.
    pub(super) fn stage(&mut self, id: Id, name: &str, def: Definition, own: Vec<Body>) -> Staged<Vec<Body>> {
        let (each, over): (Vec<Body>, Vec<DimId>) = match &def {
            Definition::Pure(each) => (each.clone(), vec![]),
            Definition::Reduce { over, init, next, .. } => (init.iter().chain(next).copied().collect(), over.clone()),
            Definition::Scatter { over, at, value, .. } => (at.iter().chain(value).copied().collect(), over.clone()),
        };
        let (arms, used, checks) = self.surroundings(&each, &over, own);
        for b in self.g.bodies.reachable(each.iter().chain(&checks).chain(&arms).copied()) {
            if matches!(self.g.bodies.node(b), Node::Acc(k, _) if *k >= ACC_BASE || over.is_empty()) {
                return self.refuse(id, "a loop inside of a step that reads the state");
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
        let no = self.g.bodies.bool(false);
        let when = arms.into_iter().rev().reduce(|inner, c| self.g.bodies.cond(c, inner, no));
        let at: Vec<Body> = dims.iter().map(|d| self.g.bodies.index(*d)).collect();
        let stage = self.add_stage(name, dims, when, def, checks)?;
        let tys = self.g.stage(stage).tys.clone();
        let load =
            |(k, ty): (usize, &Scalar)| self.g.bodies.load(Source::Stage(stage, k as u32), *ty, at.iter().copied());
        Ok(tys.iter().enumerate().map(load).collect())
    }

    /// What decides where some bodies are evaluated: the conditions of the arms around, outermost first, the dimensions,
    /// and the checks before them. A condition on other dimensions than theirs is none of theirs: without it they are
    /// evaluated once, and not at all its points. One that shares a dimension may be what keeps an index in range.
    fn surroundings(&mut self, each: &[Body], over: &[DimId], own: Vec<Body>) -> (Vec<Body>, FxHashSet<DimId>, Vec<Body>) {
        let path: Vec<Body> = self.path.clone().into_iter().map(|(c, holds)| self.as_arm(c, holds)).collect();
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
                return (arms, used, checks);
            }
            taken = next;
        }
    }

    /// A condition, or its opposite.
    fn as_arm(&mut self, c: Body, holds: bool) -> Body {
        if holds { c } else { self.g.bodies.op(Op::Not, Scalar::Bool, &[c]) }
    }

    /// The dimensions that bodies name, and those that their extents name.
    fn dims_of(&self, bodies: impl Iterator<Item = Body>) -> FxHashSet<DimId> {
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
        if matches!(bodies.node(b), Node::Lit(_) | Node::Symbol(_)) {
            return true;
        }
        let all = bodies.reachable([b]);
        // What sizes decide outside of all arms was asked at the start.
        let asked = self.path.is_empty() && bodies.dims(b).is_empty();
        matches!(bodies.ty(b), Scalar::I64 | Scalar::Bool)
            && all.len() <= MAX_VIEW
            && all.iter().all(|b| match bodies.node(*b) {
                Node::Load(..) | Node::Acc(..) => false,
                Node::Op(op, _, args) if op.divides() => asked || bodies.as_int(args[1]).is_some_and(|n| n > 0),
                _ => true,
            })
    }

    /// Whether a body is made of the state of a fold whose step is being read.
    fn reads_state(&self, b: Body) -> bool {
        self.g.bodies.reachable([b]).into_iter().any(|b| matches!(self.g.bodies.node(b), Node::Acc(..)))
    }

    /// A number that is used again and again: computed once for the loops around that it depends on.
    pub(super) fn once(&mut self, id: Id, b: Body, name: &str) -> Staged<Body> {
        if self.is_view(b) || self.reads_state(b) {
            return Ok(b);
        }
        Ok(self.stage(id, name, Definition::Pure(vec![b]), vec![])?[0])
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

    /// The value of an arm of a condition.
    pub(super) fn arm(&mut self, c: Body, holds: bool, id: Id) -> Staged<Val> {
        let before = self.ranges.clone();
        self.ranges.refine(&mut self.g.bodies, c, holds);
        self.path.push((c, holds));
        let out = self.value(id);
        self.path.pop();
        self.ranges = before;
        out
    }

    // Checks.

    /// What must hold here, where the path leads here, before what it guards is evaluated.
    pub(super) fn check(&mut self, c: Body, guards: Guards) {
        let mut c = c;
        if self.g.bodies.as_bool(c) == Some(true) {
            return;
        }
        let decided = self.path.is_empty() && self.g.bodies.is_fixed(c);
        if decided && self.g.bodies.as_bool(c).is_none() {
            return self.at_entry(c);
        }
        let (yes, path) = (self.g.bodies.bool(true), self.path.clone());
        for (p, holds) in path.into_iter().rev() {
            c = if holds { self.g.bodies.cond(p, c, yes) } else { self.g.bodies.cond(p, yes, c) };
        }
        self.pending.push(Pending { check: c, guards });
    }

    /// The checks that were left pending since there were so many of them, each once.
    pub(super) fn taken(&mut self, from: usize) -> Vec<Body> {
        let all: indexmap::IndexSet<Body> = self.pending.drain(from..).map(|p| p.check).collect();
        all.into_iter().collect()
    }

    /// The pending checks that guard something in some bodies, or in each other, in their order.
    fn guarding(&self, bodies: &[Body]) -> Vec<Body> {
        if self.pending.is_empty() {
            return vec![];
        }
        let mut read: FxHashSet<Source> = self.g.reads(bodies.iter().copied()).into_iter().collect();
        let mut made: FxHashSet<Body> = self.g.bodies.reachable(bodies.iter().copied()).into_iter().collect();
        let mut out = vec![];
        // What a check is made of is guarded by those before it.
        for p in self.pending.iter().rev() {
            let guards = match &p.guards {
                Guards::Reads(of) => of.iter().any(|from| read.contains(from)),
                Guards::Body(b) => made.contains(b),
                Guards::All => true,
            };
            if guards && !out.contains(&p.check) {
                out.push(p.check);
                read.extend(self.g.reads([p.check]));
                made.extend(self.g.bodies.reachable([p.check]));
            }
        }
        out.reverse();
        out
    }

    /// That an index is in range where an element is read: proved, or asked of the sizes at the start, or of each index.
    pub(super) fn in_range(&mut self, i: Body, n: Body, elem: &[Body]) {
        let (zero, one) = (self.g.bodies.int(0), self.g.bodies.int(1));
        let known = self.ranges.bounds(&mut self.g.bodies, i);
        let bodies = &mut self.g.bodies;
        let small = bodies.is_small(n);
        let mut low = bodies.op(Op::Gte, Scalar::Bool, &[i, zero]);
        let mut high = bodies.op(Op::Lt, Scalar::Bool, &[i, n]);
        if let Some(known) = known.filter(|_| small) {
            let end = self.g.bodies.ints(Op::Add, known.hi, one);
            low = self.in_all(low, zero, known.lo, i, elem);
            high = self.in_all(high, end, n, i, elem);
        }
        // What an outer index says of an inner one is lost once the outer may be anything.
        for from in (1..self.ranges.len()).rev() {
            let yes = self.g.bodies.bool(true);
            if (low, high) == (yes, yes) {
                break;
            }
            let Some(known) = self.ranges.bounds_from(&mut self.g.bodies, i, from).filter(|_| small) else { continue };
            let end = self.g.bodies.ints(Op::Add, known.hi, one);
            low = if at_most(&self.g.bodies, zero, known.lo) { yes } else { low };
            high = if at_most(&self.g.bodies, end, n) { yes } else { high };
        }
        let guards = Guards::Reads(self.g.reads(elem.iter().copied()));
        self.check(low, guards.clone());
        self.check(high, guards);
    }

    /// What says that a check of an index holds in all iterations around: nothing where that is proved, sizes where they
    /// decide it, else the check itself.
    fn in_all(&mut self, check: Body, low: Body, high: Body, i: Body, elem: &[Body]) -> Body {
        if at_most(&self.g.bodies, low, high) {
            return self.g.bodies.bool(true);
        }
        let all = self.g.bodies.test(Op::Lte, low, high);
        if !self.path.is_empty() || !self.g.bodies.is_fixed(all) || self.g.bodies.as_bool(all).is_some() {
            return check;
        }
        self.where_run(all, i, elem)
    }

    /// What sizes say of an index need not hold where there are no iterations: of those loops that all that is read names,
    /// since what does not name a loop may be evaluated outside of it.
    fn where_run(&mut self, c: Body, i: Body, elem: &[Body]) -> Body {
        let (zero, yes) = (self.g.bodies.int(0), self.g.bodies.bool(true));
        let loads: Vec<Body> = self.g.bodies.reachable(elem.iter().copied());
        let loads = loads.into_iter().filter(|b| matches!(self.g.bodies.node(*b), Node::Load(..)));
        let named: Vec<Vec<DimId>> = loads.map(|b| self.g.bodies.dims(b)).collect();
        let mut c = c;
        for d in self.g.bodies.dims(i) {
            let n = self.g.dim(d).extent;
            if self.g.bodies.dims(n).is_empty() && named.iter().all(|all| all.contains(&d)) {
                let some = self.g.bodies.op(Op::Gt, Scalar::Bool, &[n, zero]);
                c = self.g.bodies.cond(some, c, yes);
            }
        }
        c
    }

    /// A size: not negative and small, which the start checks; what a loop's index says of it must be proved.
    pub(super) fn size(&mut self, id: Id, n: Body, tensor: bool) -> Staged<()> {
        if self.g.bodies.is_data(n) {
            return self.refuse(id, "a size that depends on data");
        }
        let bound = if tensor { MAX_ELEMENTS } else { SMALL };
        for (a, _) in self.g.bodies.linear(n).into_iter().flat_map(|f| f.terms().collect::<Vec<_>>()) {
            if !self.g.bodies.is_small(a) {
                if !self.g.bodies.dims(a).is_empty() {
                    return self.refuse(id, "a size that may be large in a loop");
                }
                let (low, high) = (self.g.bodies.int(-SMALL), self.g.bodies.int(SMALL));
                let over = self.g.bodies.op(Op::Gt, Scalar::Bool, &[a, low]);
                let under = self.g.bodies.op(Op::Lt, Scalar::Bool, &[a, high]);
                self.at_entry(over);
                self.at_entry(under);
                self.g.bodies.assume_small(a);
            }
        }
        if self.g.bodies.dims(n).is_empty() {
            self.below(n, bound);
            return Ok(());
        }
        let zero = self.g.bodies.int(0);
        match self.ranges.bounds(&mut self.g.bodies, n) {
            Some(known) if at_most(&self.g.bodies, zero, known.lo) && self.g.bodies.dims(known.hi).is_empty() => {
                let most = self.g.bodies.int(bound);
                let c = self.g.bodies.op(Op::Lt, Scalar::Bool, &[known.hi, most]);
                self.at_entry(c);
                Ok(())
            }
            _ => self.refuse(id, "a size that may be negative in a loop"),
        }
    }

    /// That a tensor has not too many elements.
    pub(super) fn not_too_large(&mut self, id: Id, sizes: &[Body]) -> Staged<()> {
        if sizes.len() < 2 {
            return Ok(());
        }
        // The product of integers could wrap, that of floats cannot.
        let mut product: Option<Body> = None;
        for n in sizes {
            let Some(known) = self.ranges.bounds(&mut self.g.bodies, *n) else {
                return self.refuse(id, "a size that may be large in a loop");
            };
            let n = self.g.bodies.op(Op::ToFloat, Scalar::F64, &[known.hi]);
            product = Some(product.map_or(n, |p| self.g.bodies.op(Op::Mul, Scalar::F64, &[p, n])));
        }
        let Some(product) = product else { return Ok(()) };
        if !self.g.bodies.dims(product).is_empty() {
            return self.refuse(id, "a size that may be large in a loop");
        }
        let most = self.g.bodies.lit(Lit::float(MAX_ELEMENTS as f64));
        let c = self.g.bodies.op(Op::Lt, Scalar::Bool, &[product, most]);
        self.at_entry(c);
        Ok(())
    }
}
