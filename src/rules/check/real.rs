//! Terms become values over the real numbers: a second evaluator beside the interpreter.
//!
//! Floats are real numbers and never round; integers wrap, and failures are those of the
//! interpreter. An operation outside its domain has no value, and neither has what is computed from
//! it. It must not know of rules.

use super::distance::Distances;
use super::number::{Arithmetic, Number, Undecided};
use super::value::{Real, literal, same_shape};
use crate::ir::op::{ROWS, Reals, Row, Sig};
use crate::ir::{Head, Id, Lit, Monoid, Op, Scalar, Terms, Ty, TyKind, deep};
use crate::types::{shape, texts};
use num_traits::ToPrimitive;
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::sync::LazyLock;

/// Why evaluation stops.
#[derive(Clone, PartialEq, Debug)]
pub enum Stop {
    /// A failure of the language.
    Fails(String),
    /// The precision does not suffice, or the work is too long.
    Undecided,
}

impl From<Undecided> for Stop {
    fn from(_: Undecided) -> Stop {
        Stop::Undecided
    }
}

type Answer = Result<Real, Stop>;

fn fails<T>(what: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Fails(what.into()))
}

/// Terms ready to be evaluated.
pub struct Prepared {
    terms: Terms,
    /// Sizes of a sum's element where the sum has nothing to take them from.
    empty: FxHashMap<Id, Vec<Id>>,
}

/// What operations are over the real numbers, where other operations say it.
static TEXTS: LazyLock<Vec<Option<(Prepared, Id)>>> = LazyLock::new(|| {
    let read = |row: &Row| {
        let Reals::Text(text) = row.reals else { return None };
        let ret = if row.sig == Sig::Order { Ty::bool() } else { Ty::float() };
        let (terms, body) = texts::read(text, &texts::arguments(row.op), ret).ok()?;
        Some((Prepared::new(&terms, &[body]), body))
    };
    ROWS.iter().map(read).collect()
});

/// What an operation is over the real numbers as a term over its arguments, the last of which is variable 0; nothing where
/// it is computed as it is, or not at all.
pub fn text(op: Op) -> Option<(&'static Terms, Id)> {
    TEXTS[op as usize].as_ref().map(|(p, body)| (&p.terms, *body))
}

impl Prepared {
    /// Prepares the terms below some roots.
    pub fn new(terms: &Terms, roots: &[Id]) -> Prepared {
        let all: Vec<Id> = roots.iter().flat_map(|r| terms.reachable(*r)).collect();
        let (mut terms, mut empty) = (terms.clone(), FxHashMap::default());
        for id in all {
            if let Some(dims) = shape::empty_sum(&mut terms, id) {
                empty.insert(id, dims);
            }
        }
        Prepared { terms, empty }
    }
}

/// Evaluates prepared terms at one precision.
pub struct Evaluator<'a> {
    prepared: &'a Prepared,
    arithmetic: &'a Arithmetic,
    steps: Cell<usize>,
    /// Where distances of comparisons are noted.
    seen: Option<&'a RefCell<Distances>>,
}

/// Evaluations longer than this are given up.
const MAX_STEPS: usize = 200_000;

impl<'a> Evaluator<'a> {
    /// An evaluator.
    pub fn new(prepared: &'a Prepared, arithmetic: &'a Arithmetic) -> Evaluator<'a> {
        Evaluator { prepared, arithmetic, steps: Cell::new(0), seen: None }
    }

    /// The same, noting how far comparisons are from their other outcome.
    pub fn watched(self, seen: &'a RefCell<Distances>) -> Evaluator<'a> {
        Evaluator { seen: Some(seen), ..self }
    }

    /// The value of a term; the last of `env` is variable 0.
    ///
    /// # Errors
    /// The failures of the language; what cannot be decided.
    pub fn eval(&self, id: Id, env: &mut Vec<Real>) -> Answer {
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() > MAX_STEPS {
            return Err(Stop::Undecided);
        }
        deep(|| self.node(id, env))
    }

    fn each(&self, kids: &[Id], env: &mut Vec<Real>) -> Result<Vec<Real>, Stop> {
        kids.iter().map(|k| self.eval(*k, env)).collect()
    }

    /// Integers that steer evaluation; none where one of them has no value.
    fn ints(&self, kids: &[Id], env: &mut Vec<Real>) -> Result<Option<Vec<i64>>, Stop> {
        let each = self.each(kids, env)?;
        Ok(each.iter().map(|v| if let Real::Lit(l) = v { l.as_int() } else { None }).collect())
    }

    fn sizes(&self, kids: &[Id], env: &mut Vec<Real>) -> Result<Option<Vec<usize>>, Stop> {
        let Some(ints) = self.ints(kids, env)? else { return Ok(None) };
        let sizes = ints.iter().map(|n| usize::try_from(*n).or_else(|_| fails(format!("negative size {n}"))));
        let sizes = sizes.collect::<Result<Vec<_>, _>>()?;
        let total = sizes.iter().try_fold(1usize, |a, n| a.checked_mul((*n).max(1)));
        if total.is_none_or(|t| t > MAX_STEPS) { Err(Stop::Undecided) } else { Ok(Some(sizes)) }
    }

    fn node(&self, id: Id, env: &mut Vec<Real>) -> Answer {
        let node = self.prepared.terms.node(id);
        let (head, kids) = (node.head, &node.kids);
        match head {
            Head::Const(l) => Ok(literal(l)),
            Head::Var(i, _) => Ok(env[env.len() - 1 - i as usize].clone()),
            Head::Let => {
                let value = self.eval(kids[0], env)?;
                self.under(kids[1], [value], env)
            }
            Head::If => match self.eval(kids[0], env)? {
                Real::Lit(Lit::Bool(c)) => {
                    self.seen.into_iter().for_each(|seen| seen.borrow_mut().truth(kids[0], c));
                    self.eval(kids[if c { 1 } else { 2 }], env)
                }
                _ => Ok(Real::Nothing),
            },
            Head::Assert => match self.eval(kids[0], env)? {
                Real::Lit(Lit::Bool(true)) => self.eval(kids[1], env),
                Real::Lit(_) => fails("assertion failed"),
                _ => Ok(Real::Nothing),
            },
            Head::Tuple => Ok(Real::Tuple(self.each(kids, env)?)),
            Head::Get(i, _) => match self.eval(kids[0], env)? {
                Real::Tuple(parts) => Ok(parts[i as usize].clone()),
                _ => Ok(Real::Nothing),
            },
            Head::Op(op) => {
                let args = self.each(kids, env)?;
                self.seen.into_iter().for_each(|seen| seen.borrow_mut().note(id, op, kids, &args));
                self.lift(op, &args)
            }
            Head::Cast(s) => self.eval(kids[0], env).and_then(|v| cast(&v, s)),
            Head::Build(d) => {
                let Some(dims) = self.sizes(&kids[..d], env)? else { return Ok(Real::Nothing) };
                let data = self.indices(&dims, env, |me, env| me.eval(kids[d], env))?;
                rectangle(dims, data)
            }
            Head::Reduce(m, d) => self.reduce(id, m, d, env),
            Head::Arg(m) => self.arg(m, kids, env),
            Head::Sum => {
                let Real::Tensor(_, data) = self.eval(kids[0], env)? else { return Ok(Real::Nothing) };
                if data.is_empty() {
                    return self.zero(id, env);
                }
                let first = zero_like(&data[0], self.prepared.terms.ty(id));
                data.iter().try_fold(first, |acc, x| self.lift(Op::Add, &[acc, x.clone()]))
            }
            Head::Index(d) => {
                let index = self.ints(&kids[..d], env)?;
                match (index, self.eval(kids[d], env)?) {
                    (Some(index), Real::Tensor(dims, data)) => match offset(&index, &dims) {
                        Some(at) => Ok(data[at].clone()),
                        None => fails("index out of range"),
                    },
                    _ => Ok(Real::Nothing),
                }
            }
            Head::Size(k) => Ok(match self.eval(kids[0], env)? {
                Real::Nothing => Real::Nothing,
                t => Real::Lit(Lit::int(size(&t, k) as i64)),
            }),
            Head::Fold => {
                let state = self.eval(kids[0], env)?;
                let Real::Tensor(_, data) = self.eval(kids[1], env)? else { return Ok(Real::Nothing) };
                data.into_iter().try_fold(state, |state, x| self.step(kids[2], state, x, env))
            }
            Head::Scan => {
                let mut state = self.eval(kids[0], env)?;
                let Some(dims) = self.sizes(&kids[1..2], env)? else { return Ok(Real::Nothing) };
                let mut data = vec![];
                for k in 0..dims[0] {
                    state = self.step(kids[2], state, Real::Lit(Lit::int(k as i64)), env)?;
                    data.push(state.clone());
                }
                Ok(Real::Tensor(dims, data))
            }
            Head::ConstVec(d) => {
                let dims = self.sizes(&kids[..d], env)?;
                let value = self.eval(kids[d], env)?;
                let Some(dims) = dims else { return Ok(Real::Nothing) };
                let n = dims.iter().product();
                Ok(Real::Tensor(dims, vec![value; n]))
            }
            Head::DeltaVec(d) => {
                let (dims, index) = (self.sizes(&kids[..d], env)?, self.ints(&kids[d..2 * d], env)?);
                let value = self.eval(kids[2 * d], env)?;
                let (Some(dims), Some(index)) = (dims, index) else { return Ok(Real::Nothing) };
                let zero = zero_like(&value, self.prepared.terms.ty(kids[2 * d]));
                let mut data = vec![zero; dims.iter().product()];
                if let Some(at) = offset(&index, &dims) {
                    data[at] = value;
                }
                Ok(Real::Tensor(dims, data))
            }
            Head::VecInit => {
                let data = self.each(kids, env)?;
                rectangle(vec![data.len()], data)
            }
            Head::Scatter(d) => self.scatter(id, d, env),
            Head::Call(_) | Head::Print => Err(Stop::Undecided),
        }
    }

    fn under(&self, body: Id, values: impl IntoIterator<Item = Real>, env: &mut Vec<Real>) -> Answer {
        let depth = env.len();
        env.extend(values);
        let out = self.eval(body, env);
        env.truncate(depth);
        out
    }

    fn step(&self, body: Id, state: Real, x: Real, env: &mut Vec<Real>) -> Answer {
        let new = self.under(body, [state.clone(), x], env)?;
        if same_shape(&state, &new) { Ok(new) } else { fails("the state changes its shape") }
    }

    /// The values of a body at all indices, the last one fastest.
    fn indices<T>(
        &self,
        dims: &[usize],
        env: &mut Vec<Real>,
        mut body: impl FnMut(&Self, &mut Vec<Real>) -> Result<T, Stop>,
    ) -> Result<Vec<T>, Stop> {
        let mut out = vec![];
        for at in 0..dims.iter().product() {
            let (depth, mut rest) = (env.len(), at);
            let mut index = vec![Real::Nothing; dims.len()];
            for (k, n) in dims.iter().enumerate().rev() {
                index[k] = Real::Lit(Lit::int((rest % n) as i64));
                rest /= n;
            }
            env.extend(index);
            let value = body(self, env);
            env.truncate(depth);
            out.push(value?);
        }
        Ok(out)
    }

    fn reduce(&self, id: Id, m: Monoid, d: usize, env: &mut Vec<Real>) -> Answer {
        let kids = &self.prepared.terms.node(id).kids;
        let ty = self.prepared.terms.ty(id);
        let Some(dims) = self.sizes(&kids[..d], env)? else { return Ok(Real::Nothing) };
        let mut acc = match (ty.as_scalar(), m) {
            (Some(s), Monoid::Min | Monoid::Max) if s.is_float() => Some(Real::Infinite(m == Monoid::Min)),
            (Some(s), _) => m.identity(s).map(literal),
            (None, _) if dims.contains(&0) => Some(self.zero(id, env)?),
            (None, _) => None,
        };
        self.indices(&dims, env, |me, env| {
            let x = me.eval(kids[d], env)?;
            let old = acc.take().unwrap_or_else(|| zero_like(&x, ty));
            acc = Some(me.lift(m.op(), &[old, x])?);
            Ok(())
        })?;
        Ok(acc.unwrap_or(Real::Nothing))
    }

    fn arg(&self, m: Monoid, kids: &[Id], env: &mut Vec<Real>) -> Answer {
        let Some(dims) = self.sizes(&kids[..1], env)? else { return Ok(Real::Nothing) };
        let keys = self.indices(&dims, env, |me, env| me.eval(kids[1], env))?;
        let op = if m == Monoid::Min { Op::Lt } else { Op::Gt };
        let mut best: Option<usize> = None;
        for (k, key) in keys.iter().enumerate() {
            let better = match best {
                None => Real::Lit(Lit::Bool(true)),
                Some(b) => self.lift(op, &[key.clone(), keys[b].clone()])?,
            };
            match better {
                Real::Lit(Lit::Bool(true)) => best = Some(k),
                Real::Lit(_) => {}
                _ => return Ok(Real::Nothing),
            }
        }
        match best {
            Some(k) => Ok(Real::Lit(Lit::int(k as i64))),
            None => fails("no least or greatest of nothing"),
        }
    }

    fn scatter(&self, id: Id, d: usize, env: &mut Vec<Real>) -> Answer {
        let kids = &self.prepared.terms.node(id).kids;
        let (dims, n) = (self.sizes(&kids[..d], env)?, self.sizes(&kids[d..d + 1], env)?);
        let (Some(dims), Some(n)) = (dims, n) else { return Ok(Real::Nothing) };
        let Some((_, elem)) = self.prepared.terms.ty(id).as_tensor() else { return Err(Stop::Undecided) };
        let mut data = vec![plain_zero(elem); dims.iter().product()];
        for pair in self.indices(&n, env, |me, env| me.eval(kids[d + 1], env))? {
            let Real::Tuple(pair) = pair else { return Ok(Real::Nothing) };
            let index: Option<Vec<i64>> = match &pair[0] {
                Real::Tuple(each) => each.iter().map(int).collect(),
                one => int(one).map(|i| vec![i]),
            };
            let Some(index) = index else { return Ok(Real::Nothing) };
            let Some(at) = offset(&index, &dims) else { return fails("index out of range") };
            data[at] = self.lift(Op::Add, &[data[at].clone(), pair[1].clone()])?;
        }
        Ok(Real::Tensor(dims, data))
    }

    /// The zero of a sum over nothing.
    fn zero(&self, id: Id, env: &mut Vec<Real>) -> Answer {
        let ty = self.prepared.terms.ty(id);
        if !ty.has_tensor() {
            return Ok(plain_zero(ty));
        }
        match (self.prepared.empty.get(&id), ty.kind()) {
            (Some(sizes), TyKind::Tensor(..)) => match self.sizes(sizes, env)? {
                Some(dims) => Ok(zeros(ty, &dims)),
                None => Ok(Real::Nothing),
            },
            _ => fails("a sum over nothing has no shape here"),
        }
    }

    /// A scalar operation, by element on tensors and tuples.
    fn lift(&self, op: Op, args: &[Real]) -> Answer {
        let first =
            args.iter().find_map(|v| if let Real::Tensor(dims, data) = v { Some((dims, data.len())) } else { None });
        if let Some((dims, n)) = first {
            if args.iter().any(|v| matches!(v, Real::Tensor(d, _) if d != dims)) {
                return fails("sizes disagree");
            }
            let at = |k: usize, v: &Real| if let Real::Tensor(_, data) = v { data[k].clone() } else { v.clone() };
            let each = (0..n).map(|k| self.lift(op, &args.iter().map(|v| at(k, v)).collect::<Vec<_>>()));
            return Ok(Real::Tensor(dims.clone(), each.collect::<Result<_, _>>()?));
        }
        if let Some(n) = args.iter().find_map(|v| if let Real::Tuple(p) = v { Some(p.len()) } else { None }) {
            let at = |k: usize, v: &Real| if let Real::Tuple(p) = v { p[k].clone() } else { v.clone() };
            let each = (0..n).map(|k| self.lift(op, &args.iter().map(|v| at(k, v)).collect::<Vec<_>>()));
            return Ok(Real::Tuple(each.collect::<Result<_, _>>()?));
        }
        self.scalar(op, args)
    }

    fn scalar(&self, op: Op, args: &[Real]) -> Answer {
        if let (Op::Select, [Real::Lit(Lit::Bool(c)), a, b]) = (op, args) {
            return Ok(if *c { a.clone() } else { b.clone() });
        }
        if args.contains(&Real::Nothing) {
            return Ok(Real::Nothing);
        }
        let lits: Option<Vec<Lit>> = args.iter().map(|v| if let Real::Lit(l) = v { Some(*l) } else { None }).collect();
        if let Some(lits) = lits.filter(|_| op != Op::Pi) {
            return match op.eval(&lits) {
                Ok(l) => Ok(literal(l)),
                Err(crate::ir::op::Failure::DivisionByZero) => fails("division by zero"),
                Err(_) => Err(Stop::Undecided),
            };
        }
        if args.iter().any(|v| matches!(v, Real::Infinite(_))) {
            return Ok(infinite(op, args));
        }
        if let (Op::Pow, [Real::Number(a), Real::Lit(Lit::Int(_, n))]) = (op, args) {
            return Ok(self.arithmetic.integer_power(a, *n)?.map_or(Real::Nothing, Real::Number));
        }
        if let Some((prepared, body)) = &TEXTS[op as usize] {
            return Evaluator::new(prepared, self.arithmetic).eval(*body, &mut args.to_vec());
        }
        let numbers: Option<Vec<Number>> =
            args.iter().map(|v| if let Real::Number(n) = v { Some(n.clone()) } else { None }).collect();
        let Some(numbers) = numbers else { return Err(Stop::Undecided) };
        if let [a, b] = numbers.as_slice()
            && let Some(test) = comparison(op)
        {
            return Ok(Real::Lit(Lit::Bool(test(a.order(b)?))));
        }
        if op == Op::Truncate {
            return Ok(Real::Lit(Lit::int(numbers[0].truncate()?)));
        }
        Ok(self.arithmetic.apply(op, &numbers)?.map_or(Real::Nothing, Real::Number))
    }
}

/// What a comparison asks of an order.
fn comparison(op: Op) -> Option<fn(Ordering) -> bool> {
    Some(match op {
        Op::Lt => Ordering::is_lt,
        Op::Gt => Ordering::is_gt,
        Op::Lte => Ordering::is_le,
        Op::Gte => Ordering::is_ge,
        Op::Eq => Ordering::is_eq,
        Op::Ne => Ordering::is_ne,
        _ => return None,
    })
}

/// `min` and `max` with their identities; all else has no value there.
fn infinite(op: Op, args: &[Real]) -> Real {
    match (op, args) {
        (Op::Min | Op::Minimum, [Real::Infinite(true), x] | [x, Real::Infinite(true)]) => x.clone(),
        (Op::Max | Op::Maximum, [Real::Infinite(false), x] | [x, Real::Infinite(false)]) => x.clone(),
        _ => Real::Nothing,
    }
}

fn int(v: &Real) -> Option<i64> {
    if let Real::Lit(l) = v { l.as_int() } else { None }
}

fn cast(v: &Real, to: Scalar) -> Answer {
    Ok(match v {
        Real::Number(n) if to.is_float() => Real::Number(n.clone()),
        Real::Number(n) if to == Scalar::Bool => Real::Lit(Lit::Bool(n.sign()? != Ordering::Equal)),
        Real::Number(n) => {
            let (lo, hi) = to.range();
            Real::Lit(Lit::Int(to, n.truncate()?.clamp(lo, hi)))
        }
        Real::Lit(l) if to.is_float() => {
            let whole = l.as_int().or_else(|| l.as_bool().map(i64::from));
            whole.map_or(Real::Nothing, |v| Real::Number(Number::int(v)))
        }
        Real::Lit(l) => l.cast(to).map_or(Real::Nothing, Real::Lit),
        _ => Real::Nothing,
    })
}

/// The zero of a type without tensors.
fn plain_zero(ty: Ty) -> Real {
    match ty.kind() {
        TyKind::Scalar(s) => literal(Lit::zero(*s)),
        TyKind::Tuple(parts) => Real::Tuple(parts.iter().map(|p| plain_zero(*p)).collect()),
        _ => Real::Nothing,
    }
}

/// The zero of the shape of a value of a type.
fn zero_like(v: &Real, ty: Ty) -> Real {
    match (v, ty.kind()) {
        (_, TyKind::Scalar(s)) => literal(Lit::zero(*s)),
        (Real::Tuple(each), TyKind::Tuple(tys)) => {
            Real::Tuple(each.iter().zip(tys).map(|(v, t)| zero_like(v, *t)).collect())
        }
        (Real::Tensor(dims, data), TyKind::Tensor(_, t)) => {
            Real::Tensor(dims.clone(), data.iter().map(|v| zero_like(v, *t)).collect())
        }
        _ => Real::Nothing,
    }
}

/// Zeros of a tensor type with sizes for all axes.
fn zeros(ty: Ty, dims: &[usize]) -> Real {
    match ty.kind() {
        TyKind::Tensor(rank, elem) => {
            let (outer, inner) = dims.split_at((*rank).min(dims.len()));
            Real::Tensor(outer.to_vec(), vec![zeros(*elem, inner); outer.iter().product()])
        }
        TyKind::Tuple(parts) => Real::Tuple(parts.iter().map(|p| zeros(*p, dims)).collect()),
        _ => plain_zero(ty),
    }
}

fn size(v: &Real, axis: usize) -> usize {
    match v {
        Real::Tensor(dims, data) => match dims.get(axis) {
            Some(n) => *n,
            None => data.first().map_or(0, |e| size(e, axis - dims.len())),
        },
        _ => 0,
    }
}

fn rectangle(dims: Vec<usize>, data: Vec<Real>) -> Answer {
    if data.windows(2).any(|w| !same_shape(&w[0], &w[1])) {
        return fails("elements differ in shape");
    }
    Ok(Real::Tensor(dims, data))
}

fn offset(index: &[i64], dims: &[usize]) -> Option<usize> {
    let mut at = 0;
    for (i, n) in index.iter().zip(dims) {
        at = at * n + i.to_usize().filter(|i| i < n)?;
    }
    Some(at)
}
