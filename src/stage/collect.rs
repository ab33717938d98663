//! What loops collect: sums, folds, least and greatest, scatters. Each is a stage over the loops around it.

use super::body::{Body, DimId, Node};
use super::extract::{Extract, READS_STATE, Staged};
use super::graph::Definition;
use super::guards::Guards;
use super::term::parts;
use super::value::Val;
use crate::ir::{Head, Id, Lit, Monoid, Op, Scalar};
use rustc_hash::FxHashMap;

/// A sum of tensors or tuples in the making.
struct Sum {
    id: Id,
    m: Monoid,
    over: Vec<DimId>,
    /// What must hold at each of its points.
    checks: Vec<Body>,
    /// How many loops over elements stand inside.
    inside: usize,
}

impl Extract<'_> {
    /// A reduction to a number.
    pub(super) fn reduce(
        &mut self,
        id: Id,
        m: Monoid,
        sizes: &[Body],
        elem: impl FnOnce(&mut Self, &[Body]) -> Staged<Val>,
    ) -> Staged<Val> {
        let Some((ty, first)) = self.terms.ty(id).as_scalar().and_then(|s| Some((s, m.identity(s)?))) else {
            return self.sum_of_many(id, m, sizes, elem);
        };
        let first = self.g.bodies.lit(first);
        self.steps(id, sizes, &[first], |x, at, acc| match elem(x, at)? {
            Val::Scalar(e) => Ok(vec![x.g.bodies.op(m.combines(ty), ty, &[acc[0], e])]),
            Val::Tuple(_) | Val::Tensor { .. } => x.refuse(id, "a number was expected"),
        })
        .map(|mut out| Val::Scalar(out.swap_remove(0)))
    }

    /// A reduction: first values, and the next ones from those before at each point.
    fn steps(
        &mut self,
        id: Id,
        sizes: &[Body],
        init: &[Body],
        next: impl FnOnce(&mut Self, &[Body], &[Body]) -> Staged<Vec<Body>>,
    ) -> Staged<Vec<Body>> {
        let base = self.accs;
        self.accs += init.len() as u32;
        let acc: Vec<Body> = init
            .iter()
            .zip(base..)
            .map(|(b, k)| {
                let ty = self.g.bodies.ty(*b);
                self.g.bodies.acc(k, ty)
            })
            .collect();
        // The variable of a fold's step is its second one.
        let skip = if self.terms.head(id) == Head::Fold { 1 } else { 0 };
        let names = self.terms.names(id).map_or(vec![], |all| all.iter().skip(skip).cloned().collect::<Vec<_>>());
        let (over, (mut made, mut checks)) = self.in_loops(sizes, &names, |x, over| {
            let at = x.indices(over);
            x.with_checks(|x| next(x, &at, &acc))
        })?;
        let mut memo = FxHashMap::default();
        for b in made.iter_mut().chain(&mut checks) {
            *b = self.g.bodies.map(*b, &mut memo, &mut |s, b| match *s.node(b) {
                Node::Acc(k, ty) if k >= base => Some(s.acc(k - base, ty)),
                _ => None,
            });
        }
        let label = self.terms.labelled(id).unwrap_or("sum").to_string();
        let def = Definition::Reduce { over, init: init.to_vec(), next: made, inside: 0 };
        self.stage(id, &label, def, checks)
    }

    /// A fold: over numbers a reduction whose steps are any function of the state, where no loop of the step reads that.
    pub(super) fn fold(&mut self, id: Id) -> Staged<Val> {
        let kids = self.terms.kids(id);
        let state = self.value(kids[0])?;
        let vector = self.value(kids[1])?;
        let Val::Tensor { sizes, .. } = &vector else { return self.refuse(id, "a vector was expected") };
        let n = sizes[0];
        let (mut init, mut tensors) = (vec![], false);
        parts(&state, &mut init, &mut |_| tensors = true);
        if !tensors && !init.is_empty() {
            let before = self.clone();
            match self.fold_of_numbers(id, &state, &init, &vector) {
                Err(why) if why.reason == READS_STATE => *self = before,
                done => return done,
            }
        }
        let states = self.recurrence(id, state, n, |x, state, at| {
            let elem = x.element(id, &vector, &[at])?;
            x.stepped(kids[2], state, elem)
        })?;
        Ok(states.after(self, n))
    }

    fn fold_of_numbers(&mut self, id: Id, state: &Val, init: &[Body], vector: &Val) -> Staged<Val> {
        let kids = self.terms.kids(id);
        let Val::Tensor { sizes, .. } = vector else { return self.refuse(id, "a vector was expected") };
        let out = self.steps(id, sizes, init, |x, at, acc| {
            let elem = x.element(id, vector, at)?;
            let mut each = acc.iter().copied();
            let state = state.with_scalars(&mut |b| each.next().unwrap_or(b));
            let mut out = vec![];
            parts(&x.stepped(kids[2], state, elem)?, &mut out, &mut |_| {});
            Ok(out)
        })?;
        let mut each = out.into_iter();
        Ok(state.with_scalars(&mut |b| each.next().unwrap_or(b)))
    }

    /// The states after each of a number of steps.
    pub(super) fn scan(&mut self, id: Id) -> Staged<Val> {
        let kids = self.terms.kids(id);
        let init = self.value(kids[0])?;
        let n = self.sizes(id, &kids[1..2], true)?[0];
        let states = self.recurrence(id, init, n, |x, state, at| x.stepped(kids[2], state, Val::Scalar(at)))?;
        let d = self.g.add_dim("i", n);
        let (at, one) = (self.g.bodies.index(d), self.g.bodies.int(1));
        let after = self.g.bodies.ints(Op::Add, at, one);
        Ok(Val::Tensor { dims: vec![d], sizes: vec![n], elem: Box::new(states.after(self, after)) })
    }

    /// The next state, from the one before and what comes in.
    fn stepped(&mut self, step: Id, state: Val, of: Val) -> Staged<Val> {
        self.env.push(state);
        self.env.push(of);
        let next = self.value(step);
        self.env.truncate(self.env.len() - 2);
        next
    }

    /// The first index of the least or greatest key.
    pub(super) fn arg(&mut self, id: Id, m: Monoid) -> Staged<Val> {
        let kids = self.terms.kids(id);
        let sizes = self.sizes(id, &kids[..1], false)?;
        let zero = self.g.bodies.int(0);
        let some = self.g.bodies.op(Op::Gt, Scalar::Bool, &[sizes[0], zero]);
        let Some(ty) = self.terms.ty(kids[1]).as_scalar() else { return self.refuse(id, "a number was expected") };
        let first = self.g.bodies.lit(Lit::zero(ty));
        let (op, negated) = m.prefers(ty);
        let out = self.steps(id, &sizes, &[first, zero], |x, at, acc| {
            let Val::Scalar(key) = x.under(kids[1], 1)? else { return x.refuse(id, "a number was expected") };
            let bodies = &mut x.g.bodies;
            let start = bodies.op(Op::Eq, Scalar::Bool, &[at[0], zero]);
            let sides = [key, acc[0]].map(|b| if negated { bodies.op(Op::Neg, ty, &[b]) } else { b });
            let better = bodies.op(op, Scalar::Bool, &sides);
            let better = bodies.op(Op::Or, Scalar::Bool, &[start, better]);
            Ok(vec![bodies.cond(better, key, acc[0]), bodies.cond(better, at[0], acc[1])])
        })?;
        // Where there is nothing to choose from, nothing may be read at what was chosen.
        let from = self.g.reads([out[1]]);
        self.check(some, Guards::Reads(from.clone()));
        if self.g.bodies.dims(sizes[0]).is_empty() {
            from.into_iter().for_each(|from| self.g.bodies.assume_index(from, sizes[0]));
        }
        Ok(Val::Scalar(out[1]))
    }

    /// A sum of tensors or tuples: numbers of one shape are one reduction, over the elements of that shape.
    fn sum_of_many(
        &mut self,
        id: Id,
        m: Monoid,
        sizes: &[Body],
        elem: impl FnOnce(&mut Self, &[Body]) -> Staged<Val>,
    ) -> Staged<Val> {
        // What is summed says how large the sum is, so the reference is asked where there is nothing.
        let zero = self.g.bodies.int(0);
        for n in sizes {
            if !self.g.bodies.dims(*n).is_empty() {
                return self.refuse(id, "a sum of tensors over a size that depends on a loop");
            }
            let some = self.g.bodies.test(Op::Gt, *n, zero);
            self.check(some, Guards::All);
        }
        let names = self.terms.names(id).map_or(vec![], <[String]>::to_vec);
        let (over, (v, checks)) = self.in_loops(sizes, &names, |x, over| {
            let at = x.indices(over);
            let (v, checks) = x.with_checks(|x| elem(x, &at))?;
            let mut numbers = vec![];
            parts(&v, &mut numbers, &mut |_| {});
            if numbers.is_empty() && !checks.is_empty() {
                // Rows may be empty, and then nothing is summed that would make them.
                x.stage(id, "check", Definition::Pure(vec![]), checks.clone())?;
            }
            Ok((v, checks))
        })?;
        let mut sum = Sum { id, m, over, checks, inside: 0 };
        self.total(&mut sum, &v)
    }

    /// The sum of a value: of its numbers, and of the elements of its tensors.
    fn total(&mut self, sum: &mut Sum, v: &Val) -> Staged<Val> {
        let mut own = vec![];
        parts(v, &mut own, &mut |_| {});
        let mut of: FxHashMap<Body, Body> = FxHashMap::default();
        own.sort_unstable();
        own.dedup();
        if !own.is_empty() {
            let (mut init, mut next) = (vec![], vec![]);
            for (k, e) in (0..).zip(&own) {
                let ty = self.g.bodies.ty(*e);
                let Some(first) = sum.m.identity(ty) else { return self.refuse(sum.id, "a sum of such elements") };
                init.push(self.g.bodies.lit(first));
                let acc = self.g.bodies.acc(k, ty);
                next.push(self.g.bodies.op(sum.m.combines(ty), ty, &[acc, *e]));
            }
            let label = self.terms.labelled(sum.id).unwrap_or("sum").to_string();
            let def = Definition::Reduce { over: sum.over.clone(), init, next, inside: sum.inside };
            let loads = self.stage(sum.id, &label, def, sum.checks.clone())?;
            of = own.into_iter().zip(loads).collect();
        }
        self.totals(sum, v, &of)
    }

    /// The value with the sums of its numbers, which are known, and those of its tensors.
    fn totals(&mut self, sum: &mut Sum, v: &Val, of: &FxHashMap<Body, Body>) -> Staged<Val> {
        match v {
            Val::Scalar(b) => Ok(Val::Scalar(of.get(b).copied().unwrap_or(*b))),
            Val::Tuple(each) => Ok(Val::Tuple(each.iter().map(|p| self.totals(sum, p, of)).collect::<Staged<_>>()?)),
            Val::Tensor { dims, sizes, elem } => {
                if sizes.iter().any(|n| self.g.bodies.dims(*n).iter().any(|d| sum.over.contains(d))) {
                    return self.refuse(sum.id, "rows of different sizes");
                }
                self.reopen(dims, sizes);
                sum.inside += dims.len();
                let elem = self.total(sum, elem);
                sum.inside -= dims.len();
                self.close(dims);
                Ok(Val::Tensor { dims: dims.clone(), sizes: sizes.clone(), elem: Box::new(elem?) })
            }
        }
    }

    /// Zeros, and values that are added at indices in the order of a loop.
    pub(super) fn scatter(&mut self, id: Id, d: usize) -> Staged<Val> {
        let kids = self.terms.kids(id);
        let sizes = self.sizes(id, &kids[..d], true)?;
        let count = self.sizes(id, &kids[d..=d], false)?;
        let names = self.terms.names(id).map_or(vec![], <[String]>::to_vec);
        let (over, ((at, value, like), checks)) = self.in_loops(&count, &names, |x, _| {
            x.with_checks(|x| {
                let pair = x.under(kids[d + 1], 1)?;
                x.scattered(id, &sizes, pair)
            })
        })?;
        let mut all = [at, value, checks];
        let over = self.apart(id, over[0], &mut all)?;
        let [at, value, checks] = all;
        let lengths = self.lengths(&over);
        self.reopen(&over, &lengths);
        let checks: Vec<Body> = checks.into_iter().filter(|c| !self.proved(*c)).collect();
        self.close(&over);
        let (only, at, value) = self.only_where(at, value);
        let dims = self.open(&sizes, &[]);
        let label = self.terms.labelled(id).unwrap_or("scatter").to_string();
        let loads = self.stage(id, &label, Definition::Scatter { over, only, at, value, into: d }, checks);
        self.close(&dims);
        let mut each = loads?.into_iter();
        let elem = Box::new(like.with_scalars(&mut |b| each.next().unwrap_or(b)));
        Ok(Val::Tensor { dims, sizes, elem })
    }

    /// Steps that add 0 need not add: no sum that began with 0 is the negative one. The condition under which a step adds
    /// something, and the indices and values there.
    fn only_where(&mut self, mut at: Vec<Body>, mut value: Vec<Body>) -> (Option<Body>, Vec<Body>, Vec<Body>) {
        let mut conditions: Vec<Body> = vec![];
        loop {
            let bodies = &self.g.bodies;
            let zero =
                |b: Body| bodies.as_lit(b).is_some_and(|l| l.ty().as_scalar().is_some_and(|s| l == Lit::zero(s)));
            let part = |b: &Body| if let Node::If(p) = bodies.node(*b) { Some(*p) } else { None };
            let Some([c, _, _]) = value.first().and_then(part) else { break };
            let all: Option<Vec<Body>> =
                value.iter().map(|v| part(v).filter(|p| p[0] == c && zero(p[2])).map(|p| p[1])).collect();
            let Some(all) = all else { break };
            value = all;
            at = at.iter().map(|i| part(i).filter(|p| p[0] == c).map_or(*i, |p| p[1])).collect();
            conditions.push(c);
        }
        let no = self.g.bodies.bool(false);
        let only = conditions.into_iter().rev().reduce(|inner, c| self.g.bodies.cond(c, inner, no));
        (only, at, value)
    }

    /// Where a step of a scatter adds, and what: numbers, and the value that they are the numbers of.
    fn scattered(&mut self, id: Id, sizes: &[Body], pair: Val) -> Staged<(Vec<Body>, Vec<Body>, Val)> {
        let Val::Tuple(mut pair) = pair else { return self.refuse(id, "a pair was expected") };
        let (Some(value), Some(at)) = (pair.pop(), pair.pop()) else { return self.refuse(id, "a pair was expected") };
        let (at, mut tensors) = (at.scalars(), false);
        let mut each = vec![];
        parts(&value, &mut each, &mut |_| tensors = true);
        if tensors || at.len() != sizes.len() {
            return self.refuse(id, "a scatter of tensors");
        }
        at.iter().zip(sizes).for_each(|(i, n)| self.in_range(*i, *n, &[]));
        Ok((at, each, value))
    }
}
