//! Terms become values over bodies: one function for each kind of term.

use super::body::{Body, DimId};
use super::extract::{Extract, Staged};
use super::graph::Definition;
use super::guards::Guards;
use super::value::Val;
use crate::ir::{Fun, Head, Id, Lit, Monoid, Op, Scalar, deep};
use rustc_hash::FxHashMap;

/// Longer lists of elements are not chosen from by conditions.
const LISTED: usize = 16;

impl Extract<'_> {
    /// The value of a term.
    pub(super) fn value(&mut self, id: Id) -> Staged<Val> {
        let v = deep(|| self.node(id))?;
        if let Some(name) = self.terms.labelled(id) {
            self.name_views(name, &v, &[]);
        }
        Ok(v)
    }

    /// A number or truth value.
    pub(super) fn scalar(&mut self, id: Id) -> Staged<Body> {
        match self.value(id)? {
            Val::Scalar(b) => Ok(b),
            Val::Tuple(_) | Val::Tensor { .. } => self.refuse(id, "a number was expected"),
        }
    }

    fn scalars(&mut self, ids: &[Id]) -> Staged<Vec<Body>> {
        ids.iter().map(|k| self.scalar(*k)).collect()
    }

    fn node(&mut self, id: Id) -> Staged<Val> {
        let terms = self.terms;
        let kids = terms.kids(id);
        match terms.head(id) {
            Head::Const(Lit::Str(_)) | Head::Print => self.refuse(id, "text"),
            Head::Const(l) => Ok(Val::Scalar(self.g.bodies.lit(l))),
            Head::Var(k, _) => match self.env.len().checked_sub(1 + k as usize) {
                Some(at) => Ok(self.env[at].clone()),
                None => self.refuse(id, "a variable without a value"),
            },
            Head::Let => self.let_in(id),
            Head::If => self.choice(id, kids),
            Head::Assert => {
                let c = self.scalar(kids[0])?;
                self.check(c, Guards::Reads(vec![]));
                self.value(kids[1])
            }
            Head::Tuple => Ok(Val::Tuple(kids.iter().map(|k| self.value(*k)).collect::<Staged<_>>()?)),
            Head::Get(k, _) => match self.value(kids[0])? {
                Val::Tuple(mut parts) => Ok(parts.swap_remove(k as usize)),
                Val::Scalar(_) | Val::Tensor { .. } => self.refuse(id, "a tuple was expected"),
            },
            Head::Call(f) => self.call(id, f),
            Head::Op(op) => {
                let args = kids.iter().map(|k| self.value(*k)).collect::<Staged<Vec<_>>>()?;
                self.lift(id, op, &args)
            }
            Head::Cast(s) => {
                let b = self.scalar(kids[0])?;
                Ok(Val::Scalar(self.g.bodies.cast(s, b)))
            }
            Head::Build(d) => {
                let sizes = self.sizes(id, &kids[..d], true)?;
                self.build(id, &sizes, |x, _| x.under(kids[d], d))
            }
            Head::Reduce(m, d) => {
                let sizes = self.sizes(id, &kids[..d], false)?;
                self.reduce(id, m, &sizes, |x, _| x.under(kids[d], d))
            }
            Head::Arg(m) => self.arg(id, m),
            Head::Sum => {
                let v = self.value(kids[0])?;
                let Val::Tensor { sizes, .. } = &v else { return self.refuse(id, "a tensor was expected") };
                self.reduce(id, Monoid::Add, sizes, |x, at| x.element(id, &v, at))
            }
            Head::Index(d) => {
                let at = self.scalars(&kids[..d])?;
                let v = self.value(kids[d])?;
                let elem = self.element(id, &v, &at)?;
                if let Val::Tensor { sizes, .. } = &v {
                    let each = elem.scalars();
                    at.iter().zip(sizes).for_each(|(i, n)| self.in_range(*i, *n, &each));
                }
                Ok(elem)
            }
            Head::Size(k) => {
                let v = self.value(kids[0])?;
                match self.size_of(&v, k) {
                    Some(n) => Ok(Val::Scalar(n)),
                    None => self.refuse(id, "a tensor was expected"),
                }
            }
            Head::Fold => self.fold(id),
            Head::ConstVec(d) => {
                let sizes = self.sizes(id, &kids[..d], true)?;
                let v = self.value(kids[d])?;
                let v = self.kept(kids[d], v, "v")?;
                self.build(id, &sizes, |_, _| Ok(v))
            }
            Head::DeltaVec(d) => {
                let sizes = self.sizes(id, &kids[..d], true)?;
                let hit = self.scalars(&kids[d..2 * d])?;
                let v = self.value(kids[2 * d])?;
                let v = self.kept(kids[2 * d], v, "v")?;
                let zero = v.with_scalars(&mut |b| {
                    let zero = Lit::zero(self.g.bodies.ty(b));
                    self.g.bodies.lit(zero)
                });
                self.build(id, &sizes, |x, at| {
                    let bodies = &mut x.g.bodies;
                    let mut here = bodies.bool(true);
                    for (i, k) in at.iter().zip(&hit) {
                        let same = bodies.test(Op::Eq, *i, *k);
                        here = bodies.test(Op::And, here, same);
                    }
                    x.either(id, here, &v, &zero)
                })
            }
            Head::VecInit => self.vec_init(id),
            Head::Scan => self.scan(id),
            Head::Scatter(d) => self.scatter(id, d),
        }
    }

    pub(super) fn sizes(&mut self, id: Id, ids: &[Id], tensor: bool) -> Staged<Vec<Body>> {
        let sizes = self.scalars(ids)?;
        for n in &sizes {
            self.size(id, *n, tensor)?;
        }
        if tensor {
            self.not_too_large(id, &sizes)?;
        }
        Ok(sizes)
    }

    fn let_in(&mut self, id: Id) -> Staged<Val> {
        let kids = self.terms.kids(id);
        let name = self.terms.names(id).and_then(|n| n.first()).map_or("v", String::as_str);
        let mut v = self.value(kids[0])?;
        if let Val::Scalar(b) = &v {
            self.g.bodies.name(*b, name);
        }
        if self.in_a_loop(kids[1], 0) {
            v = self.kept(kids[0], v, name)?;
        }
        self.env.push(v);
        let out = self.value(kids[1]);
        self.env.pop();
        out
    }

    /// A value of which no number is computed again in loops that are opened from here on.
    fn kept(&mut self, id: Id, v: Val, name: &str) -> Staged<Val> {
        Ok(match v {
            Val::Scalar(b) => Val::Scalar(self.once(id, b, name)?),
            Val::Tuple(parts) => Val::Tuple(parts.into_iter().map(|p| self.kept(id, p, name)).collect::<Staged<_>>()?),
            Val::Tensor { .. } => v,
        })
    }

    /// Whether a variable is used in a loop inside a term.
    fn in_a_loop(&mut self, id: Id, var: usize) -> bool {
        let terms = self.terms;
        if !terms.free(id).has(var) {
            return false;
        }
        if let Some(known) = self.lets.get(&(id, var)) {
            return *known;
        }
        let (head, n) = (terms.head(id), terms.kids(id).len());
        let found = terms.kids(id).iter().enumerate().any(|(k, kid)| {
            let inner = var + head.binds(k, n);
            let looped = head.is_loop() && k + 1 == n && terms.free(*kid).has(inner);
            looped || deep(|| self.in_a_loop(*kid, inner))
        });
        self.lets.insert((id, var), found);
        found
    }

    fn choice(&mut self, id: Id, kids: &[Id]) -> Staged<Val> {
        let c = self.scalar(kids[0])?;
        if let Some(known) = self.decided(c) {
            return self.value(kids[if known { 1 } else { 2 }]);
        }
        let a = self.arm(c, true, |x| x.value(kids[1]))?;
        let b = self.arm(c, false, |x| x.value(kids[2]))?;
        self.either(id, c, &a, &b)
    }

    fn either(&mut self, id: Id, c: Body, a: &Val, b: &Val) -> Staged<Val> {
        match (a, b) {
            (Val::Scalar(x), Val::Scalar(y)) => {
                let state = self.state_after(c, *x, *y);
                Ok(Val::Scalar(state.unwrap_or_else(|| self.g.bodies.cond(c, *x, *y))))
            }
            (Val::Tuple(x), Val::Tuple(y)) => {
                let parts = x.iter().zip(y).map(|(x, y)| self.either(id, c, x, y));
                Ok(Val::Tuple(parts.collect::<Staged<_>>()?))
            }
            (Val::Tensor { dims, sizes: m, elem }, Val::Tensor { sizes: n, .. }) => {
                for (m, n) in m.iter().zip(n) {
                    self.one_size(id, *m, *n, "arms of different sizes")?;
                }
                // One element is chosen where it is read; the other tensor is not asked.
                let at: Vec<Body> = dims.iter().map(|d| self.g.bodies.index(*d)).collect();
                let other = self.element(id, b, &at)?;
                let elem = Box::new(self.either(id, c, elem, &other)?);
                Ok(Val::Tensor { dims: dims.clone(), sizes: m.clone(), elem })
            }
            _ => self.refuse(id, "arms of different sizes"),
        }
    }

    fn call(&mut self, id: Id, f: Fun) -> Staged<Val> {
        let Some(def) = self.program.defs.get(&f) else { return self.refuse(id, "a function without a body") };
        let Some(body) = def.term() else { return self.refuse(id, "a function without a body") };
        if self.calls.contains(&f) {
            return self.refuse(id, "recursion");
        }
        let mut args = vec![];
        for k in self.terms.kids(id) {
            let v = self.value(*k)?;
            args.push(self.kept(*k, v, "v")?);
        }
        let outer = std::mem::take(&mut self.env);
        self.env = args;
        self.calls.push(f);
        let out = self.equal_sizes(def, 0).and_then(|()| self.value(body));
        self.calls.pop();
        self.env = outer;
        out
    }

    /// A body under the loops that were opened last.
    pub(super) fn under(&mut self, body: Id, d: usize) -> Staged<Val> {
        for dim in &self.loops[self.loops.len() - d..] {
            let i = self.g.bodies.index(*dim);
            self.env.push(Val::Scalar(i));
        }
        let out = self.value(body);
        self.env.truncate(self.env.len() - d);
        out
    }

    pub(super) fn element(&mut self, id: Id, v: &Val, at: &[Body]) -> Staged<Val> {
        match v.at(&mut self.g.bodies, at) {
            Some(v) => Ok(v),
            None => self.refuse(id, "a tensor was expected"),
        }
    }

    /// A tensor: what is no view is a stage.
    fn build(&mut self, id: Id, sizes: &[Body], elem: impl FnOnce(&mut Self, &[Body]) -> Staged<Val>) -> Staged<Val> {
        let names = self.terms.names(id).map_or(vec![], <[String]>::to_vec);
        let (dims, v) = self.in_loops(sizes, &names, |x, dims| {
            let at = x.indices(dims);
            let (v, checks) = x.with_checks(|x| elem(x, &at))?;
            x.stored(id, v, checks, dims)
        })?;
        Ok(Val::Tensor { dims, sizes: sizes.to_vec(), elem: Box::new(v) })
    }

    /// The value with stages for its numbers, and the checks that come before them.
    fn stored(&mut self, id: Id, v: Val, checks: Vec<Body>, dims: &[DimId]) -> Staged<Val> {
        let (mut own, mut fixed) = (vec![], true);
        parts(&v, &mut own, &mut |n| fixed &= dims.iter().all(|d| !self.g.bodies.dims(n).contains(d)));
        if !fixed {
            return self.refuse(id, "rows of different sizes");
        }
        let keep: Vec<Body> = own.into_iter().filter(|b| !self.is_view(*b)).collect();
        if keep.is_empty() && checks.is_empty() {
            return Ok(v);
        }
        let label = self.terms.labelled(id).unwrap_or("tensor").to_string();
        let loads = self.stage(id, &label, Definition::Pure(keep.clone()), checks)?;
        let of: FxHashMap<Body, Body> = keep.into_iter().zip(loads).collect();
        Ok(replace(&v, &of))
    }

    /// A vector of listed elements: each read chooses one by its index.
    fn vec_init(&mut self, id: Id) -> Staged<Val> {
        let kids = self.terms.kids(id);
        if kids.len() > LISTED {
            return self.refuse(id, "a long list of elements");
        }
        let mut each = vec![];
        for k in kids {
            let v = self.value(*k)?;
            each.push(self.kept(*k, v, "element")?);
        }
        let n = self.g.bodies.int(kids.len() as i64);
        self.build(id, &[n], |x, at| {
            let mut out = each[each.len() - 1].clone();
            for (k, v) in each.iter().enumerate().rev().skip(1) {
                let k = x.g.bodies.int(k as i64);
                let here = x.g.bodies.test(Op::Eq, at[0], k);
                out = x.either(id, here, v, &out)?;
            }
            Ok(out)
        })
    }

    /// An operation, by element on tensors and tuples.
    fn lift(&mut self, id: Id, op: Op, args: &[Val]) -> Staged<Val> {
        let plain: Option<Vec<Body>> =
            args.iter().map(|v| if let Val::Scalar(b) = v { Some(*b) } else { None }).collect();
        if let Some(args) = plain {
            return self.apply(id, op, &args).map(Val::Scalar);
        }
        let sizes =
            args.iter().find_map(|v| if let Val::Tensor { sizes, .. } = v { Some(sizes.clone()) } else { None });
        if let Some(sizes) = sizes {
            for v in args {
                if let Val::Tensor { sizes: own, .. } = v {
                    for (n, m) in sizes.iter().zip(own) {
                        let same = self.g.bodies.test(Op::Eq, *n, *m);
                        self.check(same, Guards::All);
                    }
                }
            }
            let args = args.iter().map(|v| self.kept(id, v.clone(), "v")).collect::<Staged<Vec<_>>>()?;
            return self.build(id, &sizes, |x, at| {
                let each: Vec<Val> = args
                    .iter()
                    .map(|v| if let Val::Tensor { .. } = v { x.element(id, v, at) } else { Ok(v.clone()) })
                    .collect::<Staged<_>>()?;
                x.lift(id, op, &each)
            });
        }
        let n = args.iter().find_map(|v| if let Val::Tuple(p) = v { Some(p.len()) } else { None }).unwrap_or(0);
        let at = |k: usize, v: &Val| if let Val::Tuple(p) = v { p[k].clone() } else { v.clone() };
        let parts = (0..n).map(|k| self.lift(id, op, &args.iter().map(|v| at(k, v)).collect::<Vec<_>>()));
        Ok(Val::Tuple(parts.collect::<Staged<_>>()?))
    }

    /// An operation on numbers, and the check that it has a value.
    fn apply(&mut self, id: Id, op: Op, args: &[Body]) -> Staged<Body> {
        let tys: Vec<Scalar> = args.iter().map(|b| self.g.bodies.ty(*b)).collect();
        let Some(ty) = op.result(&tys) else { return self.refuse(id, "an operation on text") };
        let comparison = matches!(op, Op::Lt | Op::Lte | Op::Gt | Op::Gte | Op::Eq | Op::Ne);
        if comparison && tys[0] == Scalar::I64 {
            return Ok(self.g.bodies.test(op, args[0], args[1]));
        }
        if matches!(op, Op::Min | Op::Max) && ty == Scalar::I64 {
            for [a, b] in [[args[0], args[1]], [args[1], args[0]]] {
                let ordered = self.g.bodies.test(Op::Lte, a, b);
                if self.proved(ordered) {
                    return Ok(if op == Op::Min { a } else { b });
                }
            }
        }
        let out = self.g.bodies.op(op, ty, args);
        if op.divides() && ty.is_int() {
            let zero = self.g.bodies.lit(Lit::zero(ty));
            let some = self.g.bodies.test(Op::Ne, args[1], zero);
            self.check(some, Guards::Body(out));
        }
        Ok(out)
    }
}

/// The numbers of a value that stand in no tensor of it, and the sizes of its tensors.
pub(super) fn parts(v: &Val, out: &mut Vec<Body>, size: &mut dyn FnMut(Body)) {
    match v {
        Val::Scalar(b) => out.push(*b),
        Val::Tuple(each) => each.iter().for_each(|p| parts(p, out, size)),
        Val::Tensor { sizes, elem, .. } => {
            sizes.iter().for_each(|n| size(*n));
            parts(elem, &mut vec![], size);
        }
    }
}

/// The value with other numbers for those that stand in no tensor of it.
fn replace(v: &Val, of: &FxHashMap<Body, Body>) -> Val {
    match v {
        Val::Scalar(b) => Val::Scalar(of.get(b).copied().unwrap_or(*b)),
        Val::Tuple(each) => Val::Tuple(each.iter().map(|p| replace(p, of)).collect()),
        Val::Tensor { .. } => v.clone(),
    }
}
