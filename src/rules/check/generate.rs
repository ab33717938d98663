//! A seed becomes terms for the metavariables of a rule, and values for their free variables.
//!
//! Small terms come first; edge values are mixed with random ones. It must not know what the terms
//! mean: whether an instance says anything is for the judge.

use super::instance::{Filling, Role, Slot, Tm, Types, metas, position};
use super::literals::Pool;
use crate::eval::Value;
use crate::ir::{Head, Id, Lit, Op, Scalar, Ty, TyKind};
use crate::rules::{Condition, Level, Meta, Rule};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

/// Sizes that a rule speaks of are tried up to this one.
const LARGE: i64 = 100;
/// Tensors whose sizes are such numbers have so many elements at most.
const MAX_ELEMENTS: usize = 2_000;

/// What the integers among a rule's metavariables are used for.
pub fn roles(rule: &Rule) -> Vec<Role> {
    let n = rule.sides.params.len() + rule.sides.funs.len();
    let mut out = vec![Role::Free; n];
    for root in [rule.sides.sides.0, rule.sides.sides.1] {
        mark(rule, root, 0, Role::Free, &mut out);
    }
    for (condition, metas) in &rule.when {
        if *condition == Condition::InRange {
            raise(&mut out, position(rule, metas[0]), Role::Index);
            raise(&mut out, position(rule, metas[1]), Role::Size);
        }
    }
    if out.contains(&Role::Size) {
        let integer = |k: usize| rule.sides.params.get(k).is_none_or(|p| p.ty == Ty::int());
        (0..n).filter(|k| integer(*k)).for_each(|k| raise(&mut out, k, Role::Index));
    }
    out
}

fn raise(out: &mut [Role], k: usize, role: Role) {
    out[k] = match (out[k], role) {
        (Role::Size, _) | (_, Role::Size) => Role::Size,
        (Role::Index, _) | (_, Role::Index) => Role::Index,
        _ => Role::Free,
    };
}

fn mark(rule: &Rule, id: Id, depth: usize, role: Role, out: &mut [Role]) {
    let (head, kids) = (rule.sides.terms.head(id), rule.sides.terms.kids(id));
    match head {
        Head::Var(i, _) if i as usize >= depth => {
            raise(out, rule.sides.params.len() - 1 - (i as usize - depth), role);
        }
        Head::Call(f) => {
            if let Some(k) = rule.sides.funs.iter().position(|g| *g == f) {
                raise(out, rule.sides.params.len() + k, role);
            }
        }
        _ => {}
    }
    for (k, kid) in kids.iter().enumerate() {
        let inner = match head {
            Head::Build(d) | Head::Reduce(_, d) | Head::ConstVec(d) if k < d => Role::Size,
            Head::DeltaVec(d) if k < d => Role::Size,
            Head::DeltaVec(d) if k < 2 * d => Role::Index,
            Head::Scatter(d) if k <= d => Role::Size,
            Head::Arg(_) if k == 0 => Role::Size,
            Head::Scan if k == 1 => Role::Size,
            Head::Index(d) if k < d => Role::Index,
            Head::Call(_) => Role::Index,
            _ if k + 1 == kids.len() && head.is_loop() => Role::Free,
            _ => role,
        };
        mark(rule, *kid, depth + head.binds(k, kids.len()), inner, out);
    }
}

/// A small number in a numeric type; integers wrap.
pub fn number(s: Scalar, v: f64) -> Lit {
    if s.is_int() { Lit::Int(s, s.wrap(v as i64)) } else { Lit::of(s, v) }
}

/// One of several ways to change the indices of a loop of three rounds, the short ones first.
fn reordered(index: Tm, way: usize) -> Tm {
    let lit = |v: i64| Tm::Lit(Lit::int(v));
    let node = |op: Op, a: Tm, b: Tm| Tm::Node(Head::Op(op), vec![a, b]);
    match way {
        0 => node(Op::Sub, lit(2), index),
        1 => node(Op::Mod, index, lit(2)),
        _ => node(Op::Mod, node(Op::Add, index, lit(1)), lit(3)),
    }
}

/// Makes fillings of one rule.
pub struct Maker<'a> {
    rule: &'a Rule,
    roles: Vec<Role>,
    rng: StdRng,
    slots: Vec<Slot>,
    /// What the rule itself speaks of.
    pool: Pool,
    /// What the terms of the last filling were like.
    shape: Shape,
}

/// What terms are put for metavariables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// Variables.
    Plain,
    /// Also other terms.
    Rich,
    /// Elements of tensors, and indices in another order: what depends on the order of a loop is seen. A rule that
    /// adds in another order than before is wrong only where a loop runs three times, nothing in it fails, and its
    /// numbers round, which meets at random too seldom.
    Ordered,
}

/// Which numbers are put for floats.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Finite ones, for the reals.
    Finite,
    /// Also infinities, NaNs and what is near the ends of the range.
    Edges,
    /// Those whose sums round, so that the order of additions shows.
    Rounding,
}

impl<'a> Maker<'a> {
    /// Equal seeds make equal fillings and values.
    pub fn new(rule: &'a Rule, seed: u64) -> Maker<'a> {
        let (roles, rng, shape) = (roles(rule), StdRng::seed_from_u64(seed), Shape::Plain);
        Maker { rule, roles, rng, slots: vec![], pool: Pool::of(rule), shape }
    }

    fn chance(&mut self, p: f64) -> bool {
        self.rng.random_bool(p)
    }

    fn pick<T: Copy>(&mut self, each: &[T]) -> T {
        each.choose(&mut self.rng).copied().unwrap_or(each[0])
    }

    /// Terms for all metavariables.
    pub fn filling(&mut self, types: &Types, shape: Shape) -> Filling {
        self.slots.clear();
        self.shape = shape;
        let mut terms: Vec<Tm> = vec![];
        let known = metas(self.rule, types);
        for (k, (ty, _, args)) in known.iter().enumerate() {
            let role = self.roles[k];
            let literal = self.rule.level == Level::Exact && ty.is_linear() && self.needs_literal(k);
            let before = (0..k).filter(|j| known[*j].0 == *ty && known[*j].2 == *args).collect::<Vec<_>>();
            let term = if literal && self.chance(0.7) {
                self.leaf_literal(*ty)
            } else if shape == Shape::Ordered {
                self.ordered(*ty, role, args)
            } else if !before.is_empty() && shape == Shape::Rich && self.chance(0.08) {
                let j = self.pick(&before);
                terms[j].clone()
            } else {
                let fuel = if shape == Shape::Plain { 0 } else { self.pick(&[0, 0, 1, 1, 2, 3]) };
                self.term(*ty, role, args, fuel)
            };
            terms.push(term);
        }
        Filling { types: types.clone(), metas: terms, slots: self.slots.clone() }
    }

    /// In an exact rule the engine knows the sign of float literals only.
    fn needs_literal(&self, k: usize) -> bool {
        let sign = |c: Condition| matches!(c, Condition::Nonzero | Condition::Positive | Condition::Nonnegative);
        self.rule.when.iter().any(|(c, m)| sign(*c) && m.iter().any(|m: &Meta| position(self.rule, *m) == k))
    }

    fn variable(&mut self, ty: Ty, role: Role) -> Tm {
        let slot = Slot { ty, role };
        let same: Vec<usize> = (0..self.slots.len()).filter(|k| self.slots[*k] == slot).collect();
        if !same.is_empty() && self.chance(0.15) {
            return Tm::Param(self.pick(&same));
        }
        self.slots.push(slot);
        Tm::Param(self.slots.len() - 1)
    }

    /// One of the numbers that the rule speaks of.
    fn spoken(&mut self, s: Scalar) -> Option<Lit> {
        let all = self.pool.literals(s);
        (!all.is_empty() && self.chance(0.25)).then(|| self.pick(&all))
    }

    fn leaf_literal(&mut self, ty: Ty) -> Tm {
        if let Some(lit) = ty.as_scalar().and_then(|s| self.spoken(s)) {
            return Tm::Lit(lit);
        }
        let small = self.pick(&[0.0, 1.0, -1.0, 2.0, 0.5, -0.0, 3.0]);
        match ty.kind() {
            TyKind::Scalar(Scalar::Bool) => Tm::Lit(Lit::Bool(self.chance(0.5))),
            TyKind::Scalar(s) => Tm::Lit(number(*s, small)),
            TyKind::Tuple(parts) => Tm::Node(Head::Tuple, parts.iter().map(|p| self.leaf_literal(*p)).collect()),
            TyKind::String => Tm::Lit(Lit::Str(self.text())),
            _ => self.variable(ty, Role::Free),
        }
    }

    fn leaf(&mut self, ty: Ty, role: Role, args: &[Ty]) -> Tm {
        let bound: Vec<usize> = (0..args.len()).filter(|j| args[*j] == ty).collect();
        if !bound.is_empty() && role != Role::Size && self.chance(0.6) {
            let arg = Tm::Arg(self.pick(&bound));
            return if ty == Ty::int() && self.chance(0.3) { self.permuted(arg) } else { arg };
        }
        if role != Role::Size && ty.as_scalar().is_some() && self.chance(0.15) {
            return self.leaf_literal(ty);
        }
        self.variable(ty, role)
    }

    fn term(&mut self, ty: Ty, role: Role, args: &[Ty], fuel: usize) -> Tm {
        let indexed = args.contains(&Ty::int());
        if fuel == 0 && indexed && ty != Ty::int() && self.chance(0.7) {
            return self.element(ty, args);
        }
        if fuel == 0 || role == Role::Size && self.chance(0.6) {
            return self.leaf(ty, role, args);
        }
        if indexed && self.chance(0.3) {
            return self.element(ty, args);
        }
        if self.chance(0.2) {
            let test = self.test(args);
            let value = self.term(ty, role, args, fuel - 1);
            return Tm::Node(Head::Assert, vec![test, value]);
        }
        if self.chance(0.12) {
            let test = self.test(args);
            let (a, b) = (self.leaf(ty, role, args), self.term(ty, role, args, fuel - 1));
            return Tm::Node(Head::If, vec![test, a, b]);
        }
        match ty.kind() {
            TyKind::Scalar(Scalar::Bool) => self.comparison(args, fuel),
            TyKind::Scalar(s) if s.is_float() => self.float(ty, args, fuel),
            TyKind::Scalar(_) => self.integer(ty, role, args, fuel),
            TyKind::Tuple(parts) => {
                Tm::Node(Head::Tuple, parts.iter().map(|p| self.term(*p, Role::Free, args, fuel - 1)).collect())
            }
            TyKind::Tensor(1, elem) => {
                let n = self.pick(&[1, 2]);
                Tm::Node(Head::VecInit, (0..n).map(|_| self.term(*elem, Role::Free, args, fuel - 1)).collect())
            }
            _ => self.leaf(ty, role, args),
        }
    }

    /// A term that depends on an index.
    fn element(&mut self, ty: Ty, args: &[Ty]) -> Tm {
        let indices: Vec<usize> = (0..args.len()).filter(|j| args[*j] == Ty::int()).collect();
        let index = Tm::Arg(self.pick(&indices));
        match self.pick(&[0, 0, 1, 2, 3]) {
            0 if ty == Ty::float() => Tm::Node(Head::Op(Op::ToFloat), vec![index]),
            1 => {
                let vector = self.variable(Ty::tensor(1, ty), Role::Free);
                Tm::Node(Head::Index(1), vec![index, vector])
            }
            2 => {
                let (at, a, b) =
                    (self.bound_literal(), self.leaf(ty, Role::Free, args), self.leaf(ty, Role::Free, args));
                Tm::Node(Head::If, vec![Tm::Node(Head::Op(Op::Eq), vec![index, at]), a, b])
            }
            3 => {
                let (at, a) = (self.bound_literal(), self.leaf(ty, Role::Free, args));
                Tm::Node(Head::Assert, vec![Tm::Node(Head::Op(Op::Lt), vec![index, at]), a])
            }
            _ => match ty.as_scalar() {
                Some(Scalar::Bool) => Tm::Node(Head::Op(Op::Lt), vec![index, self.bound_literal()]),
                Some(s) => Tm::Node(Head::Cast(s), vec![index]),
                None => self.leaf(ty, Role::Free, args),
            },
        }
    }

    /// An element of a tensor at an index, or an index.
    fn ordered(&mut self, ty: Ty, role: Role, args: &[Ty]) -> Tm {
        let Some(j) = args.iter().position(|t| *t == Ty::int()) else { return self.variable(ty, role) };
        if ty == Ty::int() {
            let k = self.pick(&[0, 1]);
            return if self.chance(0.6) { reordered(Tm::Arg(j), k) } else { Tm::Arg(j) };
        }
        let vector = self.variable(Ty::tensor(1, ty), Role::Free);
        Tm::Node(Head::Index(1), vec![Tm::Arg(j), vector])
    }

    /// The indices of a short loop in another order, or some of them several times.
    fn permuted(&mut self, index: Tm) -> Tm {
        let k = self.pick(&[0, 0, 1, 2]);
        reordered(index, k)
    }

    fn bound_literal(&mut self) -> Tm {
        if let Some(lit) = self.spoken(Scalar::I64) {
            return Tm::Lit(lit);
        }
        Tm::Lit(Lit::int(self.pick(&[0, 1, 2, 1, 16])))
    }

    fn test(&mut self, args: &[Ty]) -> Tm {
        match self.pick(&[0, 0, 1, 2]) {
            0 => Tm::Lit(Lit::Bool(false)),
            1 if args.contains(&Ty::int()) => {
                let j = args.iter().position(|t| *t == Ty::int()).unwrap_or(0);
                Tm::Node(Head::Op(Op::Lt), vec![Tm::Arg(j), self.bound_literal()])
            }
            _ => self.variable(Ty::bool(), Role::Free),
        }
    }

    fn comparison(&mut self, args: &[Ty], fuel: usize) -> Tm {
        if self.chance(0.3) {
            return Tm::Node(Head::Op(Op::Not), vec![self.term(Ty::bool(), Role::Free, args, fuel - 1)]);
        }
        let (op, ty) = (self.pick(&[Op::Lt, Op::Eq, Op::Gte]), self.pick(&[Ty::float(), Ty::int()]));
        let (a, b) = (self.term(ty, Role::Index, args, fuel - 1), self.leaf(ty, Role::Index, args));
        Tm::Node(Head::Op(op), vec![a, b])
    }

    fn float(&mut self, ty: Ty, args: &[Ty], fuel: usize) -> Tm {
        let x = self.term(ty, Role::Free, args, fuel - 1);
        let one = [Op::Log, Op::Sqrt, Op::Neg, Op::Exp, Op::Log, Op::Sqrt, Op::Floor];
        let two = [Op::Div, Op::Div, Op::Add, Op::Sub, Op::Mul, Op::Max];
        if self.chance(0.5) {
            return Tm::Node(Head::Op(self.pick(&one)), vec![x]);
        }
        let y = self.leaf(ty, Role::Free, args);
        let pair = if self.chance(0.5) { vec![x, y] } else { vec![y, x] };
        Tm::Node(Head::Op(self.pick(&two)), pair)
    }

    fn integer(&mut self, ty: Ty, role: Role, args: &[Ty], fuel: usize) -> Tm {
        let x = self.term(ty, role, args, fuel - 1);
        let y = self.leaf(ty, role, args);
        if role == Role::Size {
            return Tm::Node(Head::Op(self.pick(&[Op::Add, Op::Min, Op::Max, Op::Sub])), vec![x, y]);
        }
        if ty == Ty::int() && self.chance(0.2) {
            return Tm::Node(Head::Size(0), vec![self.variable(Ty::tensor(1, Ty::float()), Role::Free)]);
        }
        if self.chance(0.2) {
            return Tm::Node(Head::Op(Op::Neg), vec![x]);
        }
        Tm::Node(Head::Op(self.pick(&[Op::Div, Op::Mod, Op::Add, Op::Sub, Op::Mul, Op::Div])), vec![x, y])
    }

    /// Values for free variables; over the reals all floats are finite.
    pub fn values(&mut self, slots: &[Slot], real: bool) -> Vec<Value> {
        let kind = match real {
            true => Kind::Finite,
            false if self.shape == Shape::Ordered => Kind::Rounding,
            false if self.chance(0.4) => Kind::Rounding,
            false => Kind::Edges,
        };
        let base = match kind {
            // Two additions are the fewest whose order shows.
            Kind::Rounding if self.shape == Shape::Ordered => self.pick(&[3, 3, 3, 4]),
            Kind::Rounding => self.pick(&[3, 3, 3, 3, 2, 4, 5, 17]),
            Kind::Finite | Kind::Edges => self.pick(&[0, 0, 1, 1, 2, 2, 2, 2, 3, 17]),
        };
        let base = self.spoken_size().unwrap_or(base);
        slots.iter().map(|s| self.value(s.ty, s.role, base, kind)).collect()
    }

    /// Values like some others: numbers are those that the rule speaks of, or neighbours of the old ones.
    pub fn beside(&mut self, slots: &[Slot], values: &[Value]) -> Vec<Value> {
        let each = slots.iter().zip(values).map(|(slot, old)| {
            let Some(Lit::Int(s, v)) = old.lit().filter(|_| self.chance(0.6)) else {
                return match old.lit().and_then(|l| l.ty().as_scalar()).and_then(|s| self.spoken(s)) {
                    Some(lit) => Value::Scalar(lit),
                    None => old.clone(),
                };
            };
            let near = [v.wrapping_add(1), v.wrapping_sub(1)].map(|v| Lit::Int(s, s.wrap(v)));
            let known: Vec<Lit> = self.pool.literals(s).into_iter().chain(near).collect();
            let fits = |l: &Lit| slot.role != Role::Size || l.as_int().is_some_and(|n| n <= LARGE);
            let known: Vec<Lit> = known.into_iter().filter(fits).collect();
            if known.is_empty() { old.clone() } else { Value::Scalar(self.pick(&known)) }
        });
        each.collect()
    }

    /// A size that the rule speaks of.
    fn spoken_size(&mut self) -> Option<usize> {
        let sizes: Vec<i64> = self.pool.ints.iter().copied().filter(|n| (0..=LARGE).contains(n)).collect();
        (!sizes.is_empty() && self.chance(0.2)).then(|| self.pick(&sizes) as usize)
    }

    /// Sizes of which the rule speaks, for the axes of one tensor: with one size for all, what is asked of two at once
    /// is never met.
    fn spoken_sizes(&mut self, rank: usize) -> Option<Vec<usize>> {
        let sizes: Vec<i64> = self.pool.sizes.iter().copied().filter(|n| (0..=LARGE).contains(n)).collect();
        if rank < 2 || sizes.is_empty() || !self.chance(0.3) {
            return None;
        }
        let dims: Vec<usize> = (0..rank).map(|_| self.pick(&sizes) as usize).collect();
        (dims.iter().product::<usize>() <= MAX_ELEMENTS).then_some(dims)
    }

    /// A string of which the rule speaks, or a short one.
    fn text(&mut self) -> &'static str {
        let all = self.pool.texts.clone();
        self.pick(&all)
    }

    fn value(&mut self, ty: Ty, role: Role, base: usize, kind: Kind) -> Value {
        match ty.kind() {
            TyKind::Scalar(s) => Value::Scalar(self.scalar(*s, role, base, kind)),
            TyKind::Tuple(parts) => {
                Value::tuple(parts.iter().map(|p| self.value(*p, Role::Free, base, kind)).collect())
            }
            TyKind::Tensor(rank, elem) => {
                let dims = self.spoken_sizes(*rank);
                let dims: Vec<usize> = dims.unwrap_or_else(|| (0..*rank).map(|_| self.size(base)).collect());
                // All elements have one shape, so all are made with one size.
                let inner = self.size(base);
                let n = dims.iter().product();
                let data = (0..n).map(|_| self.element_value(*elem, inner, kind)).collect();
                Value::tensor(dims, data)
            }
            TyKind::String => Value::Scalar(Lit::Str(self.text())),
            TyKind::Var(..) => Value::tuple(vec![]),
        }
    }

    /// An element of a tensor: tensors inside it have exactly the sizes that are asked for.
    fn element_value(&mut self, ty: Ty, inner: usize, kind: Kind) -> Value {
        match ty.kind() {
            TyKind::Tensor(rank, elem) => {
                let n = inner.pow(*rank as u32);
                Value::tensor(vec![inner; *rank], (0..n).map(|_| self.element_value(*elem, inner, kind)).collect())
            }
            TyKind::Tuple(parts) => Value::tuple(parts.iter().map(|p| self.element_value(*p, inner, kind)).collect()),
            _ => self.value(ty, Role::Index, inner, kind),
        }
    }

    fn size(&mut self, base: usize) -> usize {
        let same = self.shape == Shape::Ordered || self.chance(0.8);
        if same { base } else { self.pick(&[0, 1, 2, 3]) }
    }

    fn scalar(&mut self, s: Scalar, role: Role, base: usize, kind: Kind) -> Lit {
        let spoken = if role == Role::Size { None } else { self.spoken(s) };
        match s {
            Scalar::Bool => Lit::Bool(self.chance(0.5)),
            s if s.is_float() => match spoken.filter(|_| kind != Kind::Rounding) {
                Some(lit) => lit,
                None => self.float_value(s, kind),
            },
            s if spoken.is_some() => spoken.unwrap_or(Lit::Int(s, 0)),
            s => {
                let v = match role {
                    Role::Size if self.shape != Shape::Ordered && self.chance(0.05) => -1,
                    Role::Size => self.size(base) as i64,
                    Role::Index => self.pick(&[0, 1, -1, 2, base as i64 - 1, base as i64, 3, 16, 17]),
                    Role::Free => {
                        let (lo, hi) = s.range();
                        let any = self.rng.random::<i64>();
                        let small = self.rng.random_range(-9..=9);
                        self.pick(&[0, 1, -1, 2, 3, small, small, lo, hi, hi - 1, hi / 2 + 1, any, any])
                    }
                };
                Lit::Int(s, s.wrap(v))
            }
        }
    }

    fn float_value(&mut self, s: Scalar, kind: Kind) -> Lit {
        let eighth = f64::from(self.rng.random_range(-32..=32)) / 8.0;
        let normal = self.rng.random_range(-10.0..10.0);
        let easy = [0.0, 1.0, -1.0, 2.0, 0.5, 3.0, eighth, eighth, normal, normal];
        let v = match kind {
            Kind::Rounding => self.pick(&[0.1, 0.3, 1e16, -1e16, 1.0, 1.0, normal, normal, normal, 1e-3 * normal]),
            Kind::Finite if self.chance(0.06) => self.pick(&[1e10, -1e10, 1e-9, 1e300]),
            Kind::Edges if self.chance(0.45) => {
                let bits = f64::from_bits(self.rng.random());
                let tiny = if s == Scalar::F32 { 1e-45 } else { 5e-324 };
                let huge = if s == Scalar::F32 { 3e38 } else { 1e308 };
                let inf = f64::INFINITY;
                self.pick(&[0.0, -0.0, inf, -inf, f64::NAN, tiny, -tiny, huge, -huge, 1.0 / huge, bits, 1e16])
            }
            Kind::Finite | Kind::Edges => self.pick(&easy),
        };
        let v = if s == Scalar::F32 && kind == Kind::Finite { f64::from(v as f32).clamp(-3e38, 3e38) } else { v };
        Lit::of(s, v)
    }
}
