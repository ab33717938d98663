//! Bodies: the scalar expressions of a graph, hash-consed, so that equal ones are one.
//!
//! A body is a directed acyclic graph over indices of dimensions, symbols and loads. `If` is lazy: what its other arm
//! would load or divide is not evaluated. All else is strict. A body says nothing of where it is computed.

use crate::affine::Linear;
use crate::ir::{Lit, Op, Scalar};
use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// A dimension of a graph: one loop of the source, shared by all stages that stand in it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct DimId(pub u32);

/// A scalar or a size that comes in: an index into the symbols of a graph.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct SymbolId(pub u32);

/// A stage of a graph. Stages read each other without a circle ([`super::Graph::order`]).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct StageId(pub u32);

/// A body in its arena.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Body(u32);

/// Where a load reads: a buffer of an input, or a result of a stage.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Source {
    /// One of the buffers that come in.
    Input(u32),
    /// A result of a stage.
    Stage(StageId, u32),
}

impl Source {
    /// The stage whose result it is.
    pub fn stage(self) -> Option<StageId> {
        match self {
            Source::Stage(s, _) => Some(s),
            Source::Input(_) => None,
        }
    }
}

/// What a body is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Node {
    /// A literal.
    Lit(Lit),
    /// A symbol.
    Symbol(SymbolId),
    /// The index of a dimension.
    Index(DimId),
    /// An accumulator of the reduction that the body belongs to.
    Acc(u32, Scalar),
    /// An element.
    Load(Source, Scalar, SmallVec<[Body; 3]>),
    /// An operation of the table, with its result type.
    Op(Op, Scalar, SmallVec<[Body; 3]>),
    /// A conversion.
    Cast(Scalar, Body),
    /// One of two values; the other is not evaluated.
    If([Body; 3]),
}

impl Node {
    /// The bodies that it is made of.
    pub fn kids(&self) -> &[Body] {
        match self {
            Node::Lit(_) | Node::Symbol(_) | Node::Index(_) | Node::Acc(..) => &[],
            Node::Load(_, _, at) => at,
            Node::Op(_, _, args) => args,
            Node::Cast(_, b) => std::slice::from_ref(b),
            Node::If(parts) => parts,
        }
    }
}

/// The arena of bodies.
#[derive(Clone, Default, Debug)]
pub struct Bodies {
    nodes: IndexSet<Node, FxBuildHasher>,
    tys: Vec<Scalar>,
    names: FxHashMap<Body, String>,
    /// What a condition of the start says to be small.
    small: FxHashSet<Body>,
    /// What is small and not negative.
    sizes: FxHashSet<Body>,
    /// What is small and at least 1.
    positive: FxHashSet<Body>,
    /// Results of stages that are at least 0 and below an integer.
    ends: FxHashMap<Source, Body>,
    /// Floats that results of stages are, of which bounds are known.
    pub(super) floats: FxHashMap<Source, Body>,
}

impl Bodies {
    /// Takes an integer for small from now on: its absolute value is below 2^40, or the graph does not run.
    pub fn assume_small(&mut self, b: Body) {
        self.small.insert(b);
    }

    /// Takes an integer for a size from now on: small, and not negative.
    pub fn assume_size(&mut self, b: Body) {
        self.small.insert(b);
        self.sizes.insert(b);
    }

    /// Takes the elements of a result for indices from now on: at least 0 and below an integer.
    pub fn assume_index(&mut self, from: Source, n: Body) {
        self.ends.insert(from, n);
    }

    /// Takes stages for others from now on; those without one are gone.
    pub(super) fn renumber(&mut self, to: &dyn Fn(StageId) -> Option<StageId>) {
        for known in [&mut self.ends, &mut self.floats] {
            let moved = std::mem::take(known).into_iter().filter_map(|(from, n)| match from {
                Source::Stage(s, k) => Some((Source::Stage(to(s)?, k), n)),
                Source::Input(_) => Some((from, n)),
            });
            *known = moved.collect();
        }
    }

    /// What the elements of a result are below, where they are indices.
    pub fn end_of(&self, from: Source) -> Option<Body> {
        self.ends.get(&from).copied()
    }

    /// Takes a size for one of at least 1 from now on.
    pub fn assume_positive(&mut self, b: Body) {
        self.assume_size(b);
        self.positive.insert(b);
    }

    /// The least that an integer is, whatever sizes and indices are; nothing where it may be anything.
    fn lowest(&self, form: &Linear<Body>) -> Option<i64> {
        if !has_small_parts(form) {
            return None;
        }
        let each = form.terms().map(|(a, c)| match self.positive.contains(&a) {
            true if c > 0 => Some(c),
            false if c > 0 && self.is_nonnegative(a) => Some(0),
            _ => None,
        });
        let sum: Option<i64> = each.sum();
        Some(sum? + form.offset())
    }

    /// Whether an integer was taken for a size.
    pub fn is_size(&self, b: Body) -> bool {
        self.sizes.contains(&b)
    }

    /// The node of a body.
    pub fn node(&self, b: Body) -> &Node {
        &self.nodes[b.0 as usize]
    }

    /// The type of its value.
    pub fn ty(&self, b: Body) -> Scalar {
        self.tys[b.0 as usize]
    }

    /// Remembers what the source calls a value; the first to choose wins.
    pub fn name(&mut self, b: Body, name: &str) {
        if !self.node(b).kids().is_empty() {
            self.names.entry(b).or_insert_with(|| name.to_string());
        }
    }

    /// What the source calls a value.
    pub fn named(&self, b: Body) -> Option<&str> {
        self.names.get(&b).map(String::as_str)
    }

    fn put(&mut self, node: Node, ty: Scalar) -> Body {
        let (at, new) = self.nodes.insert_full(node);
        if new {
            self.tys.push(ty);
        }
        Body(at as u32)
    }

    /// A literal of a number or truth value.
    pub fn lit(&mut self, l: Lit) -> Body {
        let ty = l.ty().as_scalar().unwrap_or(Scalar::I64);
        self.put(Node::Lit(l), ty)
    }

    /// A 64-bit integer.
    pub fn int(&mut self, v: i64) -> Body {
        self.lit(Lit::int(v))
    }

    /// A truth value.
    pub fn bool(&mut self, v: bool) -> Body {
        self.lit(Lit::Bool(v))
    }

    /// A symbol of a type.
    pub fn symbol(&mut self, s: SymbolId, ty: Scalar) -> Body {
        self.put(Node::Symbol(s), ty)
    }

    /// The index of a dimension.
    pub fn index(&mut self, d: DimId) -> Body {
        self.put(Node::Index(d), Scalar::I64)
    }

    /// An accumulator.
    pub fn acc(&mut self, k: u32, ty: Scalar) -> Body {
        self.put(Node::Acc(k, ty), ty)
    }

    /// An element.
    pub fn load(&mut self, from: Source, ty: Scalar, at: impl IntoIterator<Item = Body>) -> Body {
        self.put(Node::Load(from, ty, at.into_iter().collect()), ty)
    }

    /// A conversion.
    pub fn cast(&mut self, to: Scalar, b: Body) -> Body {
        match self.node(b) {
            _ if self.ty(b) == to => b,
            Node::Lit(l) => match l.cast(to) {
                Some(l) => self.lit(l),
                None => self.put(Node::Cast(to, b), to),
            },
            _ => self.put(Node::Cast(to, b), to),
        }
    }

    /// One of two values.
    pub fn cond(&mut self, c: Body, a: Body, b: Body) -> Body {
        match self.as_bool(c) {
            Some(true) => a,
            Some(false) => b,
            None if a == b => a,
            None if self.as_bool(a) == Some(true) && self.as_bool(b) == Some(false) => c,
            None => self.put(Node::If([c, a, b]), self.ty(a)),
        }
    }

    /// An operation; on literals it is done at once, and integers are brought to a form in which equal sums are equal.
    pub fn op(&mut self, op: Op, ty: Scalar, args: &[Body]) -> Body {
        let lits: Option<Vec<Lit>> = args.iter().map(|b| self.as_lit(*b)).collect();
        if let Some(l) = lits.and_then(|l| op.eval(&l).ok()) {
            return self.lit(l);
        }
        let is = |s: &Self, k: usize, v: bool| s.as_bool(args[k]) == Some(v);
        match op {
            Op::Add | Op::Sub | Op::Mul if ty == Scalar::I64 => {
                let plain = self.put(Node::Op(op, ty, args.into()), ty);
                match self.linear(plain) {
                    Some(form) if !matches!(form.terms().next(), Some((a, 1)) if a == plain) => self.regrouped(&form),
                    _ => plain,
                }
            }
            Op::And if is(self, 0, true) => args[1],
            Op::And if is(self, 1, true) => args[0],
            Op::And | Op::Or if args[0] == args[1] => args[0],
            Op::Or if is(self, 0, false) => args[1],
            Op::Or if is(self, 1, false) => args[0],
            Op::And if is(self, 0, false) || is(self, 1, false) => self.bool(false),
            Op::Or if is(self, 0, true) || is(self, 1, true) => self.bool(true),
            Op::Not => self.opposite(args[0]),
            Op::Select if is(self, 0, true) || args[1] == args[2] => args[1],
            Op::Select if is(self, 0, false) => args[2],
            Op::Min | Op::Max if ty == Scalar::I64 && args[0] == args[1] => args[0],
            Op::Div | Op::FloorDiv if ty == Scalar::I64 && self.as_int(args[1]) == Some(1) => args[0],
            Op::Mod | Op::FloorMod if ty == Scalar::I64 && self.as_int(args[1]) == Some(1) => self.int(0),
            _ => self.put(Node::Op(op, ty, args.into()), ty),
        }
    }

    /// What holds where a truth value does not.
    fn opposite(&mut self, c: Body) -> Body {
        if let Node::Op(op, _, args) = self.node(c).clone() {
            let other = match op {
                Op::Not => return args[0],
                Op::Lt => Some(Op::Gte),
                Op::Gte => Some(Op::Lt),
                Op::Gt => Some(Op::Lte),
                Op::Lte => Some(Op::Gt),
                Op::Eq => Some(Op::Ne),
                Op::Ne => Some(Op::Eq),
                _ => None,
            };
            // Of numbers that are none, no order holds, nor its opposite.
            if let Some(other) = other.filter(|_| self.ty(args[0]).is_int()) {
                return self.test(other, args[0], args[1]);
            }
        }
        self.put(Node::Op(Op::Not, Scalar::Bool, [c].into_iter().collect()), Scalar::Bool)
    }

    /// An operation on 64-bit integers.
    pub fn ints(&mut self, op: Op, a: Body, b: Body) -> Body {
        self.op(op, Scalar::I64, &[a, b])
    }

    /// A comparison, or a connective of truth values.
    pub fn test(&mut self, op: Op, a: Body, b: Body) -> Body {
        if self.ty(a) == Scalar::I64
            && matches!(op, Op::Lt | Op::Lte | Op::Gt | Op::Gte | Op::Eq | Op::Ne)
            && let (Some(x), Some(y)) = (self.linear(a), self.linear(b))
            && let Some(d) = x.plus(&y, -1)
            && self.is_small(a)
            && self.is_small(b)
            && let Some(holds) = self.compared(op, &d)
        {
            return self.bool(holds);
        }
        if let Some(holds) = self.decided_by_clamps(op, a, b) {
            return self.bool(holds);
        }
        self.op(op, Scalar::Bool, &[a, b])
    }

    /// Whether a difference compares so with 0, whatever sizes and indices are; nothing where they decide it.
    fn compared(&self, op: Op, d: &Linear<Body>) -> Option<bool> {
        let least = self.lowest(d);
        let most = d.times(-1).and_then(|f| self.lowest(&f)).and_then(i64::checked_neg);
        let above = |n: i64| least.is_some_and(|v| v > n);
        let below = |n: i64| most.is_some_and(|v| v < n);
        let (yes, no) = match op {
            Op::Lt => (below(0), above(-1)),
            Op::Lte => (below(1), above(0)),
            Op::Gt => (above(0), below(1)),
            Op::Gte => (above(-1), below(0)),
            Op::Eq => (d.as_constant() == Some(0), above(0) || below(0)),
            _ => (above(0) || below(0), d.as_constant() == Some(0)),
        };
        (yes || no).then_some(yes)
    }

    /// A size of which a comparison holds, or does not, wherever it is at least 1; and which of both.
    pub fn decided_by_a_size(&self, c: Body) -> Option<(Body, bool)> {
        let Node::Op(op @ (Op::Lt | Op::Lte | Op::Gt | Op::Gte | Op::Eq | Op::Ne), _, args) = self.node(c) else {
            return None;
        };
        if !args.iter().all(|a| self.is_small(*a)) {
            return None;
        }
        let form = self.linear(args[0])?.plus(&self.linear(args[1])?, -1)?;
        let mut terms = form.terms();
        let (Some((n, by)), None) = (terms.next(), terms.next()) else { return None };
        if !self.is_size(n) || !self.is_fixed(n) || !matches!(self.node(n), Node::Symbol(_)) {
            return None;
        }
        // With 1 + m for the size, where m is at least 0.
        let more = form.plus(&Linear::constant(by), 1)?;
        self.compared(*op, &more).map(|holds| (n, holds))
    }

    /// The literal, where the body is one.
    pub fn as_lit(&self, b: Body) -> Option<Lit> {
        match self.node(b) {
            Node::Lit(l) => Some(*l),
            _ => None,
        }
    }

    /// The value of an integer literal.
    pub fn as_int(&self, b: Body) -> Option<i64> {
        self.as_lit(b).and_then(Lit::as_int)
    }

    /// The value of a literal truth value.
    pub fn as_bool(&self, b: Body) -> Option<bool> {
        self.as_lit(b).and_then(Lit::as_bool)
    }

    /// Whether a body is a literal, a symbol or an index.
    pub fn is_atom(&self, b: Body) -> bool {
        self.node(b).kids().is_empty()
    }

    /// A 64-bit integer as a linear form over other bodies. The form is congruent to the value modulo 2^64; it is the
    /// value where the atoms are small ([`Bodies::is_small`]) and the coefficients are.
    pub fn linear(&self, b: Body) -> Option<Linear<Body>> {
        if self.ty(b) != Scalar::I64 {
            return None;
        }
        Some(match self.node(b) {
            Node::Lit(l) => Linear::constant(l.as_int()?),
            Node::Op(op @ (Op::Add | Op::Sub), _, args) => {
                let (x, y) = (self.linear(args[0])?, self.linear(args[1])?);
                x.plus(&y, if *op == Op::Add { 1 } else { -1 })?
            }
            Node::Op(Op::Mul, _, args) => {
                let (x, y) = (self.linear(args[0])?, self.linear(args[1])?);
                match (x.as_constant(), y.as_constant()) {
                    (Some(c), _) => y.times(c)?,
                    (_, Some(c)) => x.times(c)?,
                    _ => Linear::atom(b),
                }
            }
            _ => Linear::atom(b),
        })
    }

    /// The body of a linear form, the same for equal forms.
    pub fn of_linear(&mut self, form: &Linear<Body>) -> Body {
        let mut out: Option<Body> = None;
        for (a, c) in form.terms() {
            let times = match c.unsigned_abs() {
                1 => a,
                _ => {
                    let c = self.int(c.wrapping_abs());
                    self.put(Node::Op(Op::Mul, Scalar::I64, [a, c].into_iter().collect()), Scalar::I64)
                }
            };
            out = Some(match (out, c < 0) {
                (None, false) => times,
                (None, true) => {
                    let zero = self.int(0);
                    self.put(Node::Op(Op::Sub, Scalar::I64, [zero, times].into_iter().collect()), Scalar::I64)
                }
                (Some(o), false) => {
                    self.put(Node::Op(Op::Add, Scalar::I64, [o, times].into_iter().collect()), Scalar::I64)
                }
                (Some(o), true) => {
                    self.put(Node::Op(Op::Sub, Scalar::I64, [o, times].into_iter().collect()), Scalar::I64)
                }
            });
        }
        match (out, form.offset()) {
            (None, c) => self.int(c),
            (Some(o), 0) => o,
            (Some(o), c) => {
                let (op, c) = if c < 0 && c != i64::MIN { (Op::Sub, -c) } else { (Op::Add, c) };
                let c = self.int(c);
                self.put(Node::Op(op, Scalar::I64, [o, c].into_iter().collect()), Scalar::I64)
            }
        }
    }

    /// Whether an integer is known to be so small that sums of a few multiples of it do not wrap: made of indices,
    /// sizes and literals. Symbols are small where a condition at the start says so ([`Bodies::assume_small`]).
    pub fn is_small(&self, b: Body) -> bool {
        if self.small.contains(&b) {
            return true;
        }
        match self.node(b) {
            Node::Lit(l) => l.as_int().is_some_and(is_small_number),
            Node::Index(_) => true,
            Node::Load(from, ..) => self.end_of(*from).is_some(),
            Node::Op(Op::Add | Op::Sub | Op::Mul, _, _) => match self.linear(b) {
                Some(f) => {
                    let own = f.terms().next().is_some_and(|(a, _)| a == b);
                    !own && has_small_parts(&f) && f.terms().all(|(a, _)| self.is_small(a))
                }
                None => false,
            },
            Node::Op(Op::Min | Op::Max, _, args) => args.iter().all(|a| self.is_small(*a)),
            Node::Op(Op::Div | Op::FloorDiv | Op::Mod | Op::FloorMod, _, args) => {
                // The divisor is not 0 where there is a value.
                self.is_small(args[0]) && self.is_small(args[1]) && self.is_nonnegative(args[1])
            }
            Node::If(parts) => self.ty(b) == Scalar::I64 && parts[1..].iter().all(|p| self.is_small(*p)),
            Node::Op(Op::Truncate, ..) | Node::Cast(..) => self.is_small_cut(b),
            _ => false,
        }
    }

    /// Where a body has a value: no integer is divided by zero in it. What it loads is taken to be there.
    pub fn has_value(&mut self, b: Body) -> Body {
        let (yes, no) = (self.bool(true), self.bool(false));
        let mut of: FxHashMap<Body, Body> = FxHashMap::default();
        for at in self.reachable([b]) {
            let node = self.node(at).clone();
            let both = |s: &mut Self, a: Body, b: Body| if a == yes { b } else { s.cond(a, b, no) };
            let own = if let Node::If([c, x, y]) = node {
                let arms = self.cond(c, of[&x], of[&y]);
                both(self, of[&c], arms)
            } else {
                let mut own = yes;
                for k in node.kids() {
                    own = both(self, own, of[k]);
                }
                match node {
                    Node::Op(op, ty, args) if op.divides() && ty.is_int() => {
                        let zero = self.lit(Lit::zero(ty));
                        let some = self.test(Op::Ne, args[1], zero);
                        both(self, own, some)
                    }
                    _ => own,
                }
            };
            of.insert(at, own);
        }
        of[&b]
    }

    /// All bodies below and including some, children before parents, each once.
    pub fn reachable(&self, roots: impl IntoIterator<Item = Body>) -> Vec<Body> {
        let (mut seen, mut todo) = (FxHashSet::default(), roots.into_iter().collect::<Vec<_>>());
        while let Some(b) = todo.pop() {
            if seen.insert(b) {
                todo.extend(self.node(b).kids());
            }
        }
        let mut all: Vec<Body> = seen.into_iter().collect();
        // A body is made after what it is made of.
        all.sort_unstable();
        all
    }

    /// Whether a body depends on elements, or on the state of a reduction.
    pub fn is_data(&self, b: Body) -> bool {
        self.reachable([b]).into_iter().any(|b| matches!(self.node(b), Node::Load(..) | Node::Acc(..)))
    }

    /// Whether symbols alone decide a body.
    pub fn is_fixed(&self, b: Body) -> bool {
        !self.is_data(b) && self.dims(b).is_empty()
    }

    /// The dimensions whose indices a body names.
    pub fn dims(&self, b: Body) -> Vec<DimId> {
        let all = self.reachable([b]).into_iter();
        let mut out: Vec<DimId> =
            all.filter_map(|b| if let Node::Index(d) = self.node(b) { Some(*d) } else { None }).collect();
        out.sort_unstable();
        out
    }

    /// A body with others in place of some; `by` says what stands for a node, before its parts are looked at.
    pub fn map(
        &mut self,
        b: Body,
        memo: &mut FxHashMap<Body, Body>,
        by: &mut dyn FnMut(&mut Bodies, Body) -> Option<Body>,
    ) -> Body {
        for at in self.reachable([b]) {
            if memo.contains_key(&at) {
                continue;
            }
            let new = match by(self, at) {
                Some(new) => new,
                None => self.with_kids(at, &|k| memo.get(&k).copied().unwrap_or(k)),
            };
            memo.insert(at, new);
        }
        memo[&b]
    }

    /// A body made of others in place of what it is made of.
    pub fn rebuilt(&mut self, b: Body, of: &FxHashMap<Body, Body>) -> Body {
        self.with_kids(b, &|k| of.get(&k).copied().unwrap_or(k))
    }

    fn with_kids(&mut self, b: Body, of: &dyn Fn(Body) -> Body) -> Body {
        let node = self.node(b).clone();
        let kids: SmallVec<[Body; 3]> = node.kids().iter().map(|k| of(*k)).collect();
        if kids.as_slice() == node.kids() {
            return b;
        }
        let out = match node {
            Node::Lit(_) | Node::Symbol(_) | Node::Index(_) | Node::Acc(..) => b,
            Node::Load(from, ty, _) => self.load(from, ty, kids),
            Node::Op(op, ty, _) if ty == Scalar::Bool && kids.len() == 2 => self.test(op, kids[0], kids[1]),
            Node::Op(op, ty, _) => self.op(op, ty, &kids),
            Node::Cast(ty, _) => self.cast(ty, kids[0]),
            Node::If(_) => self.cond(kids[0], kids[1], kids[2]),
        };
        if let Some(name) = self.names.get(&b).cloned() {
            self.name(out, &name);
        }
        out
    }

    /// A body with other bodies for the indices of dimensions.
    pub fn substitute(&mut self, b: Body, of: &FxHashMap<DimId, Body>) -> Body {
        self.map(b, &mut FxHashMap::default(), &mut |s, b| match s.node(b) {
            Node::Index(d) => Some(of.get(d).copied().unwrap_or(b)),
            _ => None,
        })
    }
}

/// Whether sums of a few such numbers cannot wrap.
pub(super) fn is_small_number(v: i64) -> bool {
    v.unsigned_abs() < 1 << 40
}

/// Whether a form over small atoms is the value itself, and not only congruent to it: its coefficients are small, and what
/// is added.
pub(super) fn has_small_parts(form: &Linear<Body>) -> bool {
    let weight = form.terms().try_fold(0_i64, |w, (_, c)| w.checked_add(c.checked_abs()?));
    weight.is_some_and(|w| w < 1 << 20) && is_small_number(form.offset())
}
