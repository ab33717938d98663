//! Terms become values, scalars, or statements that fill a destination.

use super::value::{Mode, Shape, Val, compare, stored};
use super::{Expr, Failing, Lower, Slot, weight};
use crate::diag::Result;
use crate::ir::{Head, Id, Lit, Op, Scalar, deep};
use crate::nest::Stmt;
use rustc_hash::FxHashSet;

impl Lower<'_> {
    /// What the source calls a binder's variable.
    pub(super) fn name(&self, id: Id, k: usize) -> String {
        self.terms.names(id).and_then(|n| n.get(k)).cloned().unwrap_or_else(|| "i".to_string())
    }

    /// Gives the scalars of a value a name, so that they are computed once.
    pub(super) fn name_val(&mut self, v: Val, name: &str) -> Val {
        match v {
            Val::Expr(e) => Val::Expr(self.atom(e, name)),
            Val::Tuple(parts) => Val::Tuple(parts.into_iter().map(|p| self.name_val(p, name)).collect()),
            Val::Place(..) | Val::Tensor(..) => v,
        }
    }

    /// A scalar term as an expression; what can fail or loops stands before it as statements.
    pub(super) fn scalar(&mut self, id: Id) -> Result<Expr> {
        match self.terms.head(id) {
            Head::Const(Lit::Str(text)) => Ok(Expr::int(self.texts.insert_full(text).0 as i64)),
            Head::Const(l) => Ok(Expr::Lit(l)),
            Head::Op(op) => deep(|| {
                let mut args = vec![];
                for k in self.terms.kids(id) {
                    args.push(self.scalar(*k)?);
                }
                self.operate(id, op, args)
            }),
            Head::Var(i, _) => match self.variable(i)? {
                Val::Expr(e) => Ok(e),
                _ => self.bug("a scalar variable"),
            },
            _ => deep(|| {
                let mark = self.mark();
                let mut out = self.scalar_node(id)?;
                if self.block()?.takes {
                    out = self.atom(out, "v");
                }
                self.release(mark);
                Ok(out)
            }),
        }
    }

    fn scalar_node(&mut self, id: Id) -> Result<Expr> {
        let kids = self.terms.kids(id);
        match self.terms.head(id) {
            Head::Let => {
                self.bind(id)?;
                let out = self.scalar(kids[1]);
                self.f.env.pop();
                out
            }
            Head::If => self.if_scalar(kids),
            Head::Assert => {
                self.assertion(id)?;
                self.scalar(kids[1])
            }
            Head::Cast(s) => {
                let e = self.scalar(kids[0])?;
                Ok(if self.expr_ty(&e) == s { e } else { Expr::Cast(s, Box::new(e)) })
            }
            Head::Size(k) => self.size(kids[0], k),
            Head::Reduce(m, d) => self.reduce_scalar(id, m, d),
            Head::Arg(m) => self.arg(id, m),
            Head::Print => self.print(kids),
            Head::Get(..) | Head::Call(_) | Head::Index(_) | Head::Sum | Head::Fold => match self.aggregate(id)? {
                Val::Expr(e) => Ok(e),
                _ => self.bug("a scalar"),
            },
            _ => self.bug("a scalar term"),
        }
    }

    /// The size of an axis of a term's value. The value is made only where making it might fail: then
    /// the size has to fail, too. While a shape is taken, that is left to making the value itself.
    fn size(&mut self, id: Id, axis: usize) -> Result<Expr> {
        let shaping = self.f.env.iter().any(|s| !matches!(s, Slot::Val(_)));
        if shaping || !self.is_view(id) && self.is_total(id) {
            let shape = self.shape(id)?;
            if let (Head::Build(_), Shape::Tensor(dims, _)) = (self.terms.head(id), &shape)
                && !shaping
            {
                self.check_sizes_of(id, dims);
                self.check_large(id, dims)?;
            }
            return self.size_in(&shape, axis);
        }
        let v = self.value(id)?;
        self.size_of(&v, axis)
    }

    /// Whether a term's value is part of one that exists.
    pub(super) fn is_view(&self, id: Id) -> bool {
        let kids = self.terms.kids(id);
        match self.terms.head(id) {
            Head::Var(..) => true,
            Head::Get(..) | Head::Index(_) => self.is_view(kids[kids.len() - 1]),
            _ => false,
        }
    }

    /// Whether nothing in a term can fail, but for the sizes of the term itself.
    fn is_total(&mut self, id: Id) -> bool {
        if let Some(known) = self.total.get(&id) {
            return *known;
        }
        let terms = self.terms;
        let sound = |t: Id| {
            let kids: Vec<_> = terms.kids(t).iter().map(|k| terms.ty(*k)).collect();
            t == id && matches!(terms.head(t), Head::Build(_)) || !terms.head(t).is_partial(&kids)
        };
        let total = terms.reachable(id).into_iter().all(sound);
        self.total.insert(id, total);
        total
    }

    /// A scalar operation, with its check.
    pub(super) fn operate(&mut self, id: Id, op: Op, mut args: Vec<Expr>) -> Result<Expr> {
        let tys: Vec<Scalar> = args.iter().map(|a| self.expr_ty(a)).collect();
        let Some(ty) = op.result(&tys) else { return self.bug("scalars that an operation takes") };
        if op.divides() && ty.is_int() {
            let by = args.remove(1);
            let by = self.atom(by, "by");
            let ok = match by.as_int() {
                Some(v) => Expr::Lit(Lit::Bool(v != 0)),
                None => Expr::Op(Op::Ne, Scalar::Bool, vec![by.clone(), Expr::Lit(Lit::zero(ty))]),
            };
            self.check(ok, Failing::Division, id, vec![]);
            args.push(by);
        }
        Ok(self.apply(op, ty, args))
    }

    fn assertion(&mut self, id: Id) -> Result<()> {
        let c = self.scalar(self.terms.kids(id)[0])?;
        self.check(c, Failing::Assertion, id, vec![]);
        Ok(())
    }

    /// Pushes the variable of a let.
    fn bind(&mut self, id: Id) -> Result<()> {
        let value = self.value(self.terms.kids(id)[0])?;
        let name = self.name(id, 0);
        let value = self.name_val(value, &name);
        let value = if self.is_reread_row(id, &value) { self.row(&value, &name)? } else { value };
        self.f.env.push(Slot::Val(value));
        Ok(())
    }

    /// A row of its own memory: loops that run several rows at once read neighbours then.
    fn row(&mut self, v: &Val, name: &str) -> Result<Val> {
        let own = self.alloc(&self.shape_of(v), name)?;
        self.copy(v, &own, Mode::Store)?;
        Ok(own)
    }

    /// Whether a let binds a row of a larger tensor of floats, which loops in loops over as many elements read.
    fn is_reread_row(&self, id: Id, v: &Val) -> bool {
        let Val::Tensor(dims, elem) = v else { return false };
        let (Val::Place(b, from), [size]) = (&**elem, dims.as_slice()) else { return false };
        let in_loops = self.f.blocks.len() > 2;
        let part = *from != Expr::int(0) && self.f.bufs[b.0 as usize].ty == Scalar::F64;
        in_loops && part && self.rereads(self.terms.kids(id)[1], 0, size, 0, &mut FxHashSet::default())
    }

    /// Whether a term reads variable `var` in a loop that is in one of `size` rounds. `loops`: how many such loops
    /// are open, with all in them.
    fn rereads(&self, id: Id, var: u32, size: &Expr, loops: usize, seen: &mut FxHashSet<(Id, u32, usize)>) -> bool {
        if !seen.insert((id, var, loops)) {
            return false;
        }
        let (kids, head) = (self.terms.kids(id), self.terms.head(id));
        match head {
            Head::Var(i, _) => i == var && loops >= 2,
            Head::Let => {
                deep(|| self.rereads(kids[0], var, size, loops, seen))
                    || deep(|| self.rereads(kids[1], var + 1, size, loops, seen))
            }
            Head::Build(d) | Head::Reduce(_, d) => {
                let again = loops > 0 || kids[..d].iter().any(|k| self.outer_size(*k, var).as_ref() == Some(size));
                deep(|| self.rereads(kids[d], var + d as u32, size, if again { loops + 1 } else { 0 }, seen))
            }
            // Other loops are not looked into.
            Head::Fold | Head::Scan | Head::Arg(_) | Head::Scatter(_) => false,
            _ => kids.iter().any(|k| deep(|| self.rereads(*k, var, size, loops, seen))),
        }
    }

    /// The size that a term names, where that stands outside of a let whose variable is `var`.
    fn outer_size(&self, id: Id, var: u32) -> Option<Expr> {
        let outer = |id: Id| match self.terms.head(id) {
            Head::Var(i, _) if i > var => {
                let at = self.f.env.len().checked_sub((i - var) as usize)?;
                if let Slot::Val(v) = &self.f.env[at] { Some(v) } else { None }
            }
            _ => None,
        };
        match (self.terms.head(id), self.terms.kids(id)) {
            (Head::Size(k), [t]) => {
                let (mut v, mut axis) = (outer(*t)?, k);
                while let Val::Tensor(dims, elem) = v {
                    match dims.get(axis) {
                        Some(n) => return Some(n.clone()),
                        None => (v, axis) = (&**elem, axis - dims.len()),
                    }
                }
                None
            }
            _ => match outer(id)? {
                Val::Expr(e) => Some(e.clone()),
                _ => None,
            },
        }
    }

    fn if_scalar(&mut self, kids: &[Id]) -> Result<Expr> {
        let c = self.scalar(kids[0])?;
        let c = self.atom(c, "which");
        self.open_block()?;
        let a = self.scalar(kids[1]);
        let first = self.close_arm();
        let a = a?;
        self.open_block()?;
        let b = self.scalar(kids[2]);
        let second = self.close_arm();
        let b = b?;
        if first.is_empty() && second.is_empty() && weight(&a) + weight(&b) <= super::MAX_EXPR {
            return Ok(Expr::Cond(Box::new([c, a, b])));
        }
        let Some(ty) = stored(self.terms.ty(kids[1])) else { return self.bug("a scalar") };
        let out = self.mutable("v", Expr::Lit(Lit::zero(ty)));
        let set = |mut stmts: Vec<Stmt>, e: Expr| {
            stmts.push(Stmt::Set(out, e));
            stmts
        };
        self.push(Stmt::If(c, set(first, a), set(second, b)));
        Ok(Expr::Var(out))
    }

    /// A term's value; a tensor is a view where the term names one, else new memory.
    pub(super) fn value(&mut self, id: Id) -> Result<Val> {
        if stored(self.terms.ty(id)).is_some() {
            return Ok(Val::Expr(self.scalar(id)?));
        }
        deep(|| self.aggregate(id))
    }

    fn aggregate(&mut self, id: Id) -> Result<Val> {
        let kids = self.terms.kids(id);
        match self.terms.head(id) {
            Head::Var(i, _) => self.variable(i),
            Head::Let => {
                self.bind(id)?;
                let out = self.value(kids[1]);
                self.f.env.pop();
                out
            }
            Head::If if self.calls_itself(id) => self.choose_value(kids),
            Head::If => {
                let shape = self.shape(id)?;
                let dest = self.alloc(&shape, "v")?;
                self.fill(id, &dest, Mode::Store)?;
                Ok(dest)
            }
            Head::Assert => {
                self.assertion(id)?;
                self.value(kids[1])
            }
            Head::Tuple => {
                let mut parts = vec![];
                for k in kids {
                    parts.push(self.value(*k)?);
                }
                Ok(Val::Tuple(parts))
            }
            Head::Get(i, _) => match self.value(kids[0])? {
                Val::Tuple(mut parts) => Ok(parts.swap_remove(i as usize)),
                _ => self.bug("a tuple"),
            },
            Head::Call(f) => self.call(id, f, None),
            Head::Index(d) => self.index(id, d),
            Head::Op(op) => {
                let args = kids.iter().map(|k| self.value(*k)).collect::<Result<Vec<_>>>()?;
                self.lift(id, op, &args, None)
            }
            Head::Sum => self.sum(id),
            Head::Fold => self.fold(id),
            _ => self.make(id, None, Mode::Store),
        }
    }

    fn index(&mut self, id: Id, d: usize) -> Result<Val> {
        let kids = self.terms.kids(id);
        let mut indices = vec![];
        for k in &kids[..d] {
            let e = self.scalar(*k)?;
            indices.push(self.atom(e, "at"));
        }
        let Val::Tensor(dims, elem) = self.value(kids[d])? else { return self.bug("a tensor") };
        self.check_range(id, &indices, &dims);
        let at = self.position(&indices, &dims);
        let place = self.at(&elem, &at);
        Ok(self.read(place))
    }

    /// Fails unless every index is in range.
    pub(super) fn check_range(&mut self, id: Id, indices: &[Expr], dims: &[Expr]) {
        let mut ok = Expr::Lit(Lit::Bool(true));
        for (i, n) in indices.iter().zip(dims) {
            if !self.in_range(i, n) {
                let each = self.within(i, n);
                ok = super::value::and(ok, each);
            }
        }
        let values = [indices, dims].concat();
        self.check(ok, Failing::Index(indices.len()), id, values);
    }

    /// Whether an index is in range, as a condition.
    pub(super) fn within(&mut self, i: &Expr, n: &Expr) -> Expr {
        let low = compare(Op::Gte, i.clone(), Expr::int(0));
        super::value::and(low, compare(Op::Lt, i.clone(), n.clone()))
    }

    /// Fills a destination of the term's shape with its value.
    pub(super) fn fill(&mut self, id: Id, dest: &Val, mode: Mode) -> Result<()> {
        deep(|| self.fill_node(id, dest, mode))
    }

    fn fill_node(&mut self, id: Id, dest: &Val, mode: Mode) -> Result<()> {
        let kids = self.terms.kids(id);
        let ty = self.terms.ty(id);
        match self.terms.head(id) {
            Head::Let => {
                let mark = self.mark();
                self.bind(id)?;
                let out = self.fill(kids[1], dest, mode);
                self.f.env.pop();
                self.release(mark);
                out
            }
            Head::If => self.fill_if(kids, dest, mode),
            Head::Assert => {
                self.assertion(id)?;
                self.fill(kids[1], dest, mode)
            }
            Head::Tuple => match dest {
                Val::Tuple(parts) => kids.iter().zip(parts).try_for_each(|(k, p)| self.fill(*k, p, mode)),
                _ => self.bug("a tuple as destination"),
            },
            Head::Call(f) => self.call(id, f, Some((dest, mode))).map(drop),
            Head::Op(op) if stored(ty).is_none() => {
                let mark = self.mark();
                let args = kids.iter().map(|k| self.value(*k)).collect::<Result<Vec<_>>>()?;
                self.lift(id, op, &args, Some((dest, mode)))?;
                self.release(mark);
                Ok(())
            }
            Head::Build(_) | Head::ConstVec(_) | Head::DeltaVec(_) | Head::VecInit => {
                self.make(id, Some(dest), mode).map(drop)
            }
            Head::Reduce(..) | Head::Scan | Head::Scatter(_) if mode == Mode::Store && stored(ty).is_none() => {
                self.make(id, Some(dest), mode).map(drop)
            }
            _ => {
                let mark = self.mark();
                let v = self.value(id)?;
                self.fits(dest, &v)?;
                self.copy(&v, dest, mode)?;
                self.release(mark);
                Ok(())
            }
        }
    }

    fn fill_if(&mut self, kids: &[Id], dest: &Val, mode: Mode) -> Result<()> {
        let c = self.scalar(kids[0])?;
        let mut arms = vec![];
        for arm in &kids[1..] {
            self.open_block()?;
            let mark = self.mark();
            let done = self.fill(*arm, dest, mode);
            self.release(mark);
            arms.push(self.close_arm());
            done?;
        }
        let second = arms.pop().unwrap_or_default();
        let first = arms.pop().unwrap_or_default();
        self.push(Stmt::If(c, first, second));
        Ok(())
    }

    /// Fails unless a destination has the shape of a value: lowering has promised that.
    pub(super) fn fits(&mut self, dest: &Val, v: &Val) -> Result<()> {
        let (a, b) = (self.shape_of(dest), self.shape_of(v));
        self.fits_shape(&a, &b)
    }

    /// As [`Lower::fits`], for shapes.
    pub(super) fn fits_shape(&mut self, a: &Shape, b: &Shape) -> Result<()> {
        let same = self.same(a, b);
        if same != Expr::Lit(Lit::Bool(true)) {
            let site = self.site(Failing::Internal, vec![]);
            self.push(Stmt::Check(same, site, vec![]));
        }
        Ok(())
    }
}
