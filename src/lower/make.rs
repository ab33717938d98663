//! Producers of tensors become loops over their destination.

use super::value::{Mode, Shape, Val, and, product};
use super::{Expr, Failing, Lower, Slot, Var, compare};
use crate::diag::Result;
use crate::eval::large;
use crate::ir::{Head, Id, Lit, Monoid, Op, Scalar};
use crate::nest::Stmt;

/// Tensors have fewer elements than this: as many as the interpreter can hold.
const MAX_ELEMENTS: i64 = crate::eval::MAX_ELEMENTS as i64 + 1;

pub(super) type Dest<'v> = Option<&'v Val>;

impl Lower<'_> {
    /// Lowers a producer into a destination, or into new memory.
    pub(super) fn make(&mut self, id: Id, dest: Dest, mode: Mode) -> Result<Val> {
        match self.terms.head(id) {
            Head::Build(d) => self.build(id, d, dest, mode),
            Head::Reduce(_, d) => self.reduce_tensor(id, d, dest),
            Head::Scan => self.scan(id, dest),
            Head::ConstVec(d) => self.const_vec(id, d, dest, mode),
            Head::DeltaVec(d) => self.delta_vec(id, d, dest, mode),
            Head::VecInit => self.vec_init(id, dest, mode),
            Head::Scatter(d) => self.scatter(id, d, dest),
            _ => self.bug("a producer of a tensor"),
        }
    }

    /// Sizes, checked not to be negative.
    pub(super) fn sizes(&mut self, at: Id, ids: &[Id]) -> Result<Vec<Expr>> {
        let mut out = vec![];
        for k in ids {
            let e = self.scalar(*k)?;
            let n = self.atom(e, "n");
            self.check_sizes_of(at, std::slice::from_ref(&n));
            out.push(n);
        }
        Ok(out)
    }

    /// Fails where a size is negative.
    pub(super) fn check_sizes_of(&mut self, at: Id, dims: &[Expr]) {
        for n in dims {
            if !self.is_size(n) {
                let ok = compare(Op::Gte, n.clone(), Expr::int(0));
                self.check(ok, Failing::NegativeSize, at, vec![n.clone()]);
            }
        }
    }

    /// Fails where a tensor would have too many elements.
    pub(super) fn check_large(&mut self, id: Id, dims: &[Expr]) -> Result<()> {
        let total = product(dims);
        let bounded = self.f.blocks.iter().any(|b| b.small.contains(&total));
        if bounded || total.as_int().is_some_and(|n| n < MAX_ELEMENTS) {
            return Ok(());
        }
        let ok = match dims {
            [n] => compare(Op::Lt, n.clone(), Expr::int(MAX_ELEMENTS)),
            _ => {
                // The product of integers could wrap, that of floats cannot.
                let floats = dims.iter().map(|n| Expr::Op(Op::ToFloat, Scalar::F64, vec![n.clone()]));
                let product = floats.reduce(|a, b| Expr::Op(Op::Mul, Scalar::F64, vec![a, b]));
                let most = Expr::Lit(Lit::float(MAX_ELEMENTS as f64));
                compare(Op::Lt, product.unwrap_or(most.clone()), most)
            }
        };
        let name = self.terms.labelled(id).map(ToString::to_string);
        self.check(ok, Failing::TooLarge(name, large::each(self.terms.ty(id))), id, dims.to_vec());
        self.block()?.small.insert(total);
        Ok(())
    }

    /// The destination of a producer: the one that is given, or new memory.
    fn place(&mut self, id: Id, dest: Dest, dims: &[Expr], elem: Shape) -> Result<Val> {
        let shape = Shape::Tensor(dims.to_vec(), Box::new(elem));
        match dest {
            Some(d) => {
                let have = self.shape_of(d);
                self.fits_shape(&have, &shape)?;
                Ok(d.clone())
            }
            None => {
                let name = match self.terms.head(id) {
                    Head::Build(_) => "built",
                    Head::Scatter(_) => "scattered",
                    _ => "made",
                };
                self.alloc(&shape, name)
            }
        }
    }

    pub(super) fn parts(&self, v: &Val) -> Result<(Vec<Expr>, Val)> {
        match v {
            Val::Tensor(dims, elem) => Ok((dims.clone(), (**elem).clone())),
            _ => self.bug("a tensor"),
        }
    }

    /// Opens a loop for each size; their variables become the innermost of the environment.
    pub(super) fn open_loops(&mut self, id: Id, dims: &[Expr]) -> Result<Vec<Var>> {
        let mut vars = vec![];
        for (k, n) in dims.iter().enumerate() {
            let name = self.name(id, k);
            let v = self.open_loop(n, &name)?;
            self.f.env.push(Slot::Val(Val::Expr(Expr::Var(v))));
            vars.push(v);
        }
        Ok(vars)
    }

    pub(super) fn close_loops(&mut self, vars: &[Var], dims: &[Expr], independent: bool) {
        self.f.env.truncate(self.f.env.len() - vars.len());
        for (v, n) in vars.iter().zip(dims).rev() {
            self.close_loop(*v, n.clone(), independent);
        }
    }

    fn build(&mut self, id: Id, d: usize, dest: Dest, mode: Mode) -> Result<Val> {
        let kids = self.terms.kids(id);
        let dims = self.sizes(id, &kids[..d])?;
        self.check_large(id, &dims)?;
        let (shape, varies) = self.element_shape(d, product(&dims), kids[d])?;
        // Where only the first element says what the shape is, a destination that is given has
        // that shape already; its own sizes are the ones to compare with.
        let shape = match dest {
            Some(Val::Tensor(_, elem)) if varies => self.shape_of(elem),
            _ => shape,
        };
        let dest = self.place(id, dest, &dims, shape)?;
        let (_, elem) = self.parts(&dest)?;
        let bad = varies.then(|| self.mutable("differ", Expr::Lit(Lit::Bool(false))));
        let vars = self.open_loops(id, &dims)?;
        let indices: Vec<Expr> = vars.iter().map(|v| Expr::Var(*v)).collect();
        let position = self.position(&indices, &dims);
        let place = self.at(&elem, &position);
        match bad {
            Some(bad) => {
                let v = self.value(kids[d])?;
                self.copy_if_same(&v, &place, mode, bad)?;
            }
            None => self.fill(kids[d], &place, mode)?,
        }
        // An element of another shape sets what all iterations share.
        self.close_loops(&vars, &dims, bad.is_none());
        if let Some(bad) = bad {
            let ok = Expr::Op(Op::Not, Scalar::Bool, vec![Expr::Var(bad)]);
            self.check(ok, Failing::ElementShape, id, vec![]);
        }
        Ok(dest)
    }

    /// Copies an element of the right shape; another one is remembered until all are evaluated.
    fn copy_if_same(&mut self, v: &Val, place: &Val, mode: Mode, bad: Var) -> Result<()> {
        let (a, b) = (self.shape_of(v), self.shape_of(place));
        let same = self.same(&a, &b);
        self.open_block()?;
        self.copy(v, place, mode)?;
        let copied = self.close_arm();
        self.push(Stmt::If(same, copied, vec![Stmt::Set(bad, Expr::Lit(Lit::Bool(true)))]));
        Ok(())
    }

    /// A reduction of scalars: the accumulator is a variable.
    pub(super) fn reduce_scalar(&mut self, id: Id, m: Monoid, d: usize) -> Result<Expr> {
        let kids = self.terms.kids(id);
        let dims = self.sizes(id, &kids[..d])?;
        let ty = self.terms.ty(id).as_scalar();
        let Some((ty, identity)) = ty.and_then(|s| Some((s, m.identity(s)?))) else {
            return self.bug("a reduction with an identity");
        };
        let acc = self.mutable("acc", Expr::Lit(identity));
        let vars = self.open_loops(id, &dims)?;
        let x = self.scalar(kids[d])?;
        let next = self.apply(m.combines(ty), ty, vec![Expr::Var(acc), x]);
        self.push(Stmt::Set(acc, next));
        self.close_loops(&vars, &dims, false);
        Ok(Expr::Var(acc))
    }

    /// The index of the first least or greatest key.
    pub(super) fn arg(&mut self, id: Id, m: Monoid) -> Result<Expr> {
        let kids = self.terms.kids(id);
        let dims = self.sizes(id, &kids[..1])?;
        self.check(compare(Op::Gt, dims[0].clone(), Expr::int(0)), Failing::Nothing, id, vec![]);
        let Some(ty) = self.terms.ty(kids[1]).as_scalar() else { return self.bug("a scalar key") };
        let best = self.mutable("best", Expr::Lit(Lit::zero(ty)));
        let at = self.mutable("where", Expr::int(0));
        let vars = self.open_loops(id, &dims)?;
        let k = Expr::Var(vars[0]);
        let key = self.scalar(kids[1])?;
        let key = self.atom(key, "key");
        let (op, negated) = m.prefers(ty);
        let side = |e: Expr| if negated { Expr::Op(Op::Neg, ty, vec![e]) } else { e };
        let first = compare(Op::Eq, k.clone(), Expr::int(0));
        let better = compare(op, side(key.clone()), side(Expr::Var(best)));
        let better = Expr::Op(Op::Or, Scalar::Bool, vec![first, better]);
        self.push(Stmt::If(better, vec![Stmt::Set(best, key), Stmt::Set(at, k)], vec![]));
        self.close_loops(&vars, &dims, false);
        Ok(Expr::Var(at))
    }

    /// A state of its own memory, with a first value.
    fn state(&mut self, init: Id) -> Result<Val> {
        let first = self.value(init)?;
        let state = self.alloc(&self.shape_of(&first), "state")?;
        self.copy(&first, &state, Mode::Store)?;
        Ok(state)
    }

    /// One step of a fold or scan: the state becomes the body's value.
    fn step(&mut self, id: Id, body: Id, state: &Val, x: Val) -> Result<()> {
        self.f.env.push(Slot::Val(state.clone()));
        self.f.env.push(Slot::Val(x));
        let new = self.value(body);
        self.f.env.truncate(self.f.env.len() - 2);
        let mut new = new?;
        let (a, b) = (self.shape_of(state), self.shape_of(&new));
        let same = self.same(&a, &b);
        self.check(same, Failing::StateShape, id, vec![]);
        let (mut from, mut to) = (vec![], vec![]);
        buffers(&new, &mut from);
        buffers(state, &mut to);
        if from.iter().any(|b| to.contains(b) || self.f.pointed.contains(b)) {
            // The new state is in part a view of the old one, which the copy would overwrite.
            let apart = self.alloc(&b, "new")?;
            self.copy(&new, &apart, Mode::Store)?;
            new = apart;
        }
        self.copy(&new, state, Mode::Store)
    }

    /// A left fold over a vector.
    pub(super) fn fold(&mut self, id: Id) -> Result<Val> {
        let kids = self.terms.kids(id);
        let state = self.state(kids[0])?;
        let name = self.name(id, 1);
        if self.counts(kids[1]) {
            // The numbers of the steps are the loop's own: no vector is made of them.
            let dims = self.sizes(kids[1], &self.terms.kids(kids[1])[..1])?;
            self.check_large(kids[1], &dims)?;
            let k = self.open_loop(&dims[0], &name)?;
            self.step(id, kids[2], &state, Val::Expr(Expr::Var(k)))?;
            self.close_loop(k, dims[0].clone(), false);
            return Ok(state);
        }
        let vector = self.value(kids[1])?;
        let (dims, elem) = self.parts(&vector)?;
        let k = self.open_loop(&dims[0], &format!("{name}_at"))?;
        let x = self.at(&elem, &Expr::Var(k));
        let x = self.read(x);
        self.step(id, kids[2], &state, x)?;
        self.close_loop(k, dims[0].clone(), false);
        Ok(state)
    }

    /// Whether a term is the vector of the numbers 0, 1, 2, …
    fn counts(&self, id: Id) -> bool {
        let last = self.terms.kids(id).last().map(|k| self.terms.head(*k));
        self.terms.head(id) == Head::Build(1) && matches!(last, Some(Head::Var(0, _)))
    }

    fn scan(&mut self, id: Id, dest: Dest) -> Result<Val> {
        let kids = self.terms.kids(id);
        let first = self.state(kids[0])?;
        let dims = self.sizes(id, &kids[1..2])?;
        self.check_large(id, &dims)?;
        let shape = self.shape_of(&first);
        let dest = self.place(id, dest, &dims, shape)?;
        let (_, elem) = self.parts(&dest)?;
        let k = self.open_loop(&dims[0], "k")?;
        self.step(id, kids[2], &first, Val::Expr(Expr::Var(k)))?;
        let place = self.at(&elem, &Expr::Var(k));
        self.copy(&first, &place, Mode::Store)?;
        self.close_loop(k, dims[0].clone(), false);
        Ok(dest)
    }

    fn const_vec(&mut self, id: Id, d: usize, dest: Dest, mode: Mode) -> Result<Val> {
        let kids = self.terms.kids(id);
        let dims = self.sizes(id, &kids[..d])?;
        let value = self.value(kids[d])?;
        let value = self.name_val(value, "v");
        self.check_large(id, &dims)?;
        let shape = self.shape_of(&value);
        let dest = self.place(id, dest, &dims, shape)?;
        let (_, elem) = self.parts(&dest)?;
        let total = self.atom(product(&dims), "n");
        let k = self.open_loop(&total, "k")?;
        let place = self.at(&elem, &Expr::Var(k));
        self.copy(&value, &place, mode)?;
        self.close_loop(k, total, true);
        Ok(dest)
    }

    fn delta_vec(&mut self, id: Id, d: usize, dest: Dest, mode: Mode) -> Result<Val> {
        let kids = self.terms.kids(id);
        let dims = self.sizes(id, &kids[..d])?;
        let mut indices = vec![];
        for k in &kids[d..2 * d] {
            let e = self.scalar(*k)?;
            indices.push(self.atom(e, "at"));
        }
        let value = self.value(kids[2 * d])?;
        self.check_large(id, &dims)?;
        let shape = self.shape_of(&value);
        let dest = self.place(id, dest, &dims, shape)?;
        let (_, elem) = self.parts(&dest)?;
        // Adding a zero changes nothing: a sum that starts from 0.0 is never -0.0.
        if mode == Mode::Store {
            self.clear(&dest, &Expr::int(1))?;
        }
        let mut hit = Expr::Lit(Lit::Bool(true));
        for (i, n) in indices.iter().zip(&dims) {
            if !self.in_range(i, n) {
                let each = self.within(i, n);
                hit = and(hit, each);
            }
        }
        self.open_block()?;
        let position = self.position(&indices, &dims);
        let place = self.at(&elem, &position);
        self.copy(&value, &place, mode)?;
        let body = self.close_arm();
        self.push(Stmt::If(hit, body, vec![]));
        Ok(dest)
    }

    fn vec_init(&mut self, id: Id, dest: Dest, mode: Mode) -> Result<Val> {
        let kids = self.terms.kids(id);
        let dims = vec![Expr::int(kids.len() as i64)];
        let first = self.promise(kids[0])?;
        let dest = self.place(id, dest, &dims, first.clone())?;
        let (_, elem) = self.parts(&dest)?;
        let mut bad = None;
        for (k, kid) in kids.iter().enumerate() {
            let place = self.at(&elem, &Expr::int(k as i64));
            let shape = self.promise(*kid)?;
            if self.same(&first, &shape) == Expr::Lit(Lit::Bool(true)) {
                self.fill(*kid, &place, mode)?;
                continue;
            }
            let bad = *bad.get_or_insert_with(|| self.mutable("differ", Expr::Lit(Lit::Bool(false))));
            let v = self.value(*kid)?;
            self.copy_if_same(&v, &place, mode, bad)?;
        }
        if let Some(bad) = bad {
            let ok = Expr::Op(Op::Not, Scalar::Bool, vec![Expr::Var(bad)]);
            self.check(ok, Failing::ElementShape, id, vec![]);
        }
        Ok(dest)
    }

    fn scatter(&mut self, id: Id, d: usize, dest: Dest) -> Result<Val> {
        let kids = self.terms.kids(id);
        let dims = self.sizes(id, &kids[..d])?;
        let count = self.sizes(id, &kids[d..=d])?;
        self.check_large(id, &dims)?;
        let elem = self.plain_elements(self.terms.ty(id))?;
        let dest = self.place(id, dest, &dims, elem)?;
        let (_, elem) = self.parts(&dest)?;
        self.clear(&dest, &Expr::int(1))?;
        let vars = self.open_loops(id, &count)?;
        let Val::Tuple(mut pair) = self.value(kids[d + 1])? else { return self.bug("a pair") };
        let (value, index) = (pair.pop(), pair.pop());
        let (Some(value), Some(index)) = (value, index) else { return self.bug("a pair") };
        let value = self.name_val(value, "v");
        let indices = match self.name_val(index, "at") {
            Val::Expr(e) => vec![e],
            Val::Tuple(parts) => {
                parts.into_iter().filter_map(|p| if let Val::Expr(e) = p { Some(e) } else { None }).collect()
            }
            Val::Place(..) | Val::Tensor(..) => return self.bug("an index"),
        };
        self.check_range(id, &indices, &dims);
        let position = self.position(&indices, &dims);
        let place = self.at(&elem, &position);
        self.copy(&value, &place, Mode::Add)?;
        self.close_loops(&vars, &count, false);
        Ok(dest)
    }
}

fn buffers(v: &Val, out: &mut Vec<crate::nest::Buf>) {
    match v {
        Val::Expr(_) => {}
        Val::Place(b, _) => out.push(*b),
        Val::Tuple(parts) => parts.iter().for_each(|p| buffers(p, out)),
        Val::Tensor(_, elem) => buffers(elem, out),
    }
}
