//! Calls: inlined while lowering, but for functions that call themselves.

use super::value::{Mode, Shape, Val, compare, int_op};
use super::{Expr, Failing, Frame, Func, Lower, Slot};
use crate::diag::Result;
use crate::eval::MAX_CALLS;
use crate::ir::{Def, Fun, Id, Lit, Op, Scalar, Ty, TyKind};
use crate::nest::{Arg, Slot as Passed, Stmt};

impl<'a> Lower<'a> {
    /// Lowers a definition as a function of its own: the entry, or one that calls itself.
    pub(super) fn function(&mut self, def: &'a Def, inner: bool) -> Result<Func> {
        let outer = std::mem::take(&mut self.f);
        let touched = std::mem::take(&mut self.touched);
        self.open_block()?;
        let mut slots = vec![];
        if inner {
            let depth = self.fresh("depth", Scalar::I64);
            self.f.depth = Some(depth);
            slots.push(Passed::Scalar(depth));
        }
        let mut args = vec![];
        for p in &def.params {
            args.push(self.incoming(p.ty, &p.name, &[], &mut slots)?);
        }
        let takes = (!def.fun.sig().ret.has_tensor()).then(|| self.mark());
        let value = if inner {
            self.deep_check(def);
            self.body(def, args, None)?
        } else {
            self.equal_sizes(def, &mut args, None)?;
            if self.recursive.contains(&def.fun) {
                self.call_function(def, &args, Expr::int(0))?
            } else {
                self.body(def, args, None)?
            }
        };
        let value = value.unwrap_or(Val::Tuple(vec![]));
        let value = self.name_val(value, "result");
        let mut results = vec![];
        self.flat(&value, &mut vec![], &mut results)?;
        if let Some(mark) = takes {
            self.release(mark);
        }
        let outs = results.iter().map(|r| self.arg_ty(r)).collect();
        let body = self.close_block().stmts;
        let f: Frame = std::mem::replace(&mut self.f, outer);
        self.touched = touched;
        let name = def.name().to_string();
        Ok(Func { name, params: slots, vars: f.vars, bufs: f.bufs, body, results, outs, depth: f.depth })
    }

    fn arg_ty(&self, a: &Arg) -> Scalar {
        match a {
            Arg::Scalar(e) => self.expr_ty(e),
            Arg::Size(_) => Scalar::I64,
            Arg::Data(b, _) => self.f.bufs[b.0 as usize].ty,
        }
    }

    /// A value flattened as it is passed: sizes inside an empty tensor are 0.
    pub(super) fn flat(&mut self, v: &Val, outer: &mut Vec<Expr>, out: &mut Vec<Arg>) -> Result<()> {
        match v {
            Val::Expr(e) => out.push(Arg::Scalar(e.clone())),
            Val::Place(b, at) => out.push(Arg::Data(*b, at.clone())),
            Val::Tuple(parts) => {
                for p in parts {
                    self.flat(p, outer, out)?;
                }
            }
            Val::Tensor(dims, elem) => {
                let n = outer.len();
                let inside = Shape::Tensor(dims.clone(), Box::new(Shape::Tuple(vec![])));
                let whole = if n == 0 { inside } else { Shape::Tensor(outer.clone(), Box::new(inside)) };
                for k in 0..dims.len() {
                    let size = self.size_in(&whole, n + k)?;
                    out.push(Arg::Size(size));
                }
                outer.extend(dims.iter().cloned());
                self.flat(elem, outer, out)?;
                outer.truncate(n);
            }
        }
        Ok(())
    }

    fn deep_check(&mut self, def: &Def) {
        let Some(depth) = self.f.depth else { return };
        let level = int_op(Op::Add, Expr::Var(depth), Expr::int(self.f.open));
        let ok = compare(Op::Lt, level, Expr::int(MAX_CALLS as i64));
        let site = self.site(Failing::Recursion(MAX_CALLS), vec![(def.span, "in this function")]);
        self.push(Stmt::Check(ok, site, vec![]));
    }

    /// Checks the sizes that share a name; from there on they are one size.
    fn equal_sizes(&mut self, def: &Def, args: &mut [Val], at: Option<Id>) -> Result<()> {
        for ((p, a), (q, b), name) in def.equal_sizes() {
            let (n, m) = (self.size_of(&args[p], a)?, self.size_of(&args[q], b)?);
            if !self.equal(&n, &m) {
                let failing =
                    Failing::NamedSize(name.to_string(), def.params[p].name.clone(), def.params[q].name.clone());
                let ok = compare(Op::Eq, n.clone(), m.clone());
                match at {
                    Some(at) => self.check(ok, failing, at, vec![n.clone(), m]),
                    None => {
                        let site = self.site(failing, vec![(def.span, "at the call of this function")]);
                        self.push(Stmt::Check(ok, site, vec![n.clone(), m]));
                    }
                }
            }
            set_size(&mut args[q], b, n);
        }
        Ok(())
    }

    /// Evaluates a body over arguments in an environment of its own.
    fn body(&mut self, def: &'a Def, args: Vec<Val>, dest: Option<(&Val, Mode)>) -> Result<Option<Val>> {
        let Some(body) = def.term() else {
            let site = self.site(Failing::NoBody(def.name().to_string()), vec![(def.span, "only declared")]);
            self.push(Stmt::Check(Expr::Lit(Lit::Bool(false)), site, vec![]));
            return self.dummy(def.fun.sig().ret).map(Some);
        };
        let n = args.len();
        self.f.env.extend(args.into_iter().map(Slot::Val));
        let out = match dest {
            Some((dest, mode)) => self.fill(body, dest, mode).map(|()| None),
            None => self.value(body).map(Some),
        };
        self.f.env.truncate(self.f.env.len() - n);
        out
    }

    /// A call: its value, or statements that fill the destination.
    pub(super) fn call(&mut self, id: Id, f: Fun, dest: Option<(&Val, Mode)>) -> Result<Val> {
        let mark = dest.is_some().then(|| self.mark());
        let mut args = vec![];
        let def = self.program.defs.get(&f);
        for (k, kid) in self.terms.kids(id).iter().enumerate() {
            let v = self.value(*kid)?;
            let name = def.and_then(|d| d.params.get(k)).map_or("v", |p| p.name.as_str());
            args.push(self.name_val(v, name));
        }
        let value = self.apply_call(id, f, args, dest)?;
        let value = match (value, dest) {
            (Some(v), Some((dest, mode))) => {
                self.fits(dest, &v)?;
                self.copy(&v, dest, mode)?;
                v
            }
            (Some(v), None) => v,
            (None, _) => Val::Tuple(vec![]),
        };
        if let Some(mark) = mark {
            self.release(mark);
        }
        Ok(value)
    }

    fn apply_call(&mut self, id: Id, f: Fun, mut args: Vec<Val>, dest: Option<(&Val, Mode)>) -> Result<Option<Val>> {
        let Some(def) = self.program.defs.get(&f) else {
            self.no_body(id, f.sig().name.clone());
            return self.dummy(f.sig().ret).map(Some);
        };
        self.equal_sizes(def, &mut args, Some(id))?;
        if def.term().is_none() {
            self.no_body(id, def.name().to_string());
            return self.dummy(f.sig().ret).map(Some);
        }
        if self.recursive.contains(&f) {
            let level = self.f.depth.map_or(Expr::int(0), Expr::Var);
            let level = int_op(Op::Add, level, Expr::int(self.f.open + 1));
            return self.call_function(def, &args, level);
        }
        self.f.open += 1;
        self.deep_check(def);
        let out = self.body(def, args, dest);
        self.f.open -= 1;
        out
    }

    fn no_body(&mut self, id: Id, name: String) {
        self.check(Expr::Lit(Lit::Bool(false)), Failing::NoBody(name), id, vec![]);
    }

    fn call_function(&mut self, def: &'a Def, args: &[Val], level: Expr) -> Result<Option<Val>> {
        let at = match self.made.get(&def.fun) {
            Some(at) => *at,
            None => {
                let at = self.funcs.len();
                self.funcs.push(None);
                self.made.insert(def.fun, at);
                let func = self.function(def, true)?;
                self.funcs[at] = Some(func);
                at
            }
        };
        let mut passed = vec![Arg::Scalar(level)];
        for a in args {
            self.flat(a, &mut vec![], &mut passed)?;
        }
        let (ret, mut slots) = (def.fun.sig().ret, vec![]);
        let value = self.incoming(ret, "got", &[], &mut slots)?;
        self.push(Stmt::Call(at, passed, slots));
        if ret.has_tensor() {
            self.block()?.takes = true;
        }
        Ok(Some(value))
    }

    /// The shape of a call's value.
    pub(super) fn call_shape(&mut self, id: Id, f: Fun) -> Result<Shape> {
        if self.recursive.contains(&f) {
            let v = self.call(id, f, None)?;
            return Ok(self.shape_of(&v));
        }
        let Some(body) = self.program.defs.get(&f).and_then(Def::term) else {
            // Making the value fails.
            return self.empty_shape(f.sig().ret);
        };
        let (from, kids) = (self.f.env.len(), self.terms.kids(id));
        self.f.env.extend(kids.iter().map(|k| Slot::Lazy(*k, from, None)));
        let out = self.shape(body);
        self.f.env.truncate(from);
        out
    }

    /// The shape of the elements of a tensor type without inner tensors.
    pub(super) fn plain_elements(&self, tensor: Ty) -> Result<Shape> {
        match tensor.kind() {
            TyKind::Tensor(_, elem) => self.empty_shape(*elem),
            _ => self.bug("a tensor type"),
        }
    }
}

fn set_size(v: &mut Val, axis: usize, size: Expr) {
    if let Val::Tensor(dims, elem) = v {
        match dims.get_mut(axis) {
            Some(d) => *d = size,
            None => set_size(elem, axis - dims.len(), size),
        }
    }
}
