//! Checks a nest: everything is declared before its use, and types fit.
//!
//! It shares no code with lowering.

use super::{Arg, Expr, Func, Nest, Slot, Stmt, lanes};
use crate::diag::{Diagnostic, Result};
use crate::ir::Scalar;

/// Verifies all functions of a nest.
///
/// # Errors
/// A bug of this program: what is wrong, and in which function.
pub fn verify(nest: &Nest) -> Result<()> {
    for func in nest.funcs.iter().chain([&nest.entry]) {
        let mut scope =
            Scope { nest, func, vars: vec![false; func.vars.len()], bufs: vec![false; func.bufs.len()], log: vec![] };
        func.params.iter().for_each(|p| scope.declare_slot(*p));
        scope.block(&func.body, false)?;
        func.results.iter().try_for_each(|r| scope.arg(r))?;
    }
    Ok(())
}

enum Declared {
    Var(super::Var),
    Buf(super::Buf),
}

struct Scope<'a> {
    nest: &'a Nest,
    func: &'a Func,
    vars: Vec<bool>,
    bufs: Vec<bool>,
    log: Vec<Declared>,
}

impl Scope<'_> {
    fn wrong<T>(&self, what: &str) -> Result<T> {
        Err(Diagnostic::bug(format!("the loop nest of `{}` {what}", self.func.name)))
    }

    fn declare_slot(&mut self, slot: Slot) {
        match slot {
            Slot::Scalar(v) | Slot::Size(v) => self.declare(v),
            Slot::Data(b) => self.declare_buf(b),
        }
    }

    fn declare(&mut self, v: super::Var) {
        self.vars[v.0 as usize] = true;
        self.log.push(Declared::Var(v));
    }

    fn declare_buf(&mut self, b: super::Buf) {
        self.bufs[b.0 as usize] = true;
        self.log.push(Declared::Buf(b));
    }

    /// Checks statements in order; a nested block's declarations end with it.
    fn block(&mut self, stmts: &[Stmt], nested: bool) -> Result<()> {
        let from = self.log.len();
        for s in stmts {
            self.stmt(s)?;
        }
        if nested {
            for d in self.log.split_off(from) {
                match d {
                    Declared::Var(v) => self.vars[v.0 as usize] = false,
                    Declared::Buf(b) => self.bufs[b.0 as usize] = false,
                }
            }
        }
        Ok(())
    }

    fn stmt(&mut self, s: &Stmt) -> Result<()> {
        match s {
            Stmt::Let(v, e) | Stmt::Mut(v, e) => {
                self.same(e, self.func.vars[v.0 as usize].ty)?;
                self.declare(*v);
                Ok(())
            }
            Stmt::Set(v, e) => {
                self.expr(&Expr::Var(*v))?;
                self.same(e, self.func.vars[v.0 as usize].ty)
            }
            Stmt::Alloc(b, dims) => {
                dims.iter().try_for_each(|n| self.same(n, Scalar::I64))?;
                self.declare_buf(*b);
                Ok(())
            }
            Stmt::Store(b, at, e) => {
                let ty = self.expr(&Expr::Load(*b, Box::new(at.clone())))?;
                self.same(e, ty)
            }
            Stmt::Check(c, site, values) => {
                if site.0 as usize >= self.nest.sites.len() {
                    return self.wrong("names an unknown place");
                }
                values.iter().try_for_each(|v| self.same(v, Scalar::I64))?;
                self.same(c, Scalar::Bool)
            }
            Stmt::For(l) => {
                if l.lanes && lanes::classify(self.func, l).is_none() {
                    return self.wrong("has a loop in lanes that cannot be in lanes");
                }
                self.same(&l.extent, Scalar::I64)?;
                let from = self.log.len();
                self.declare(l.var);
                self.block(&l.body, true)?;
                self.log.truncate(from);
                self.vars[l.var.0 as usize] = false;
                Ok(())
            }
            Stmt::If(c, a, b) => {
                self.same(c, Scalar::Bool)?;
                self.block(a, true)?;
                self.block(b, true)
            }
            Stmt::Mark(_) | Stmt::Reset(_) => Ok(()),
            Stmt::Call(at, args, slots) => {
                args.iter().try_for_each(|a| self.arg(a))?;
                match self.nest.funcs.get(*at) {
                    Some(f) if f.params.len() == args.len() && f.results.len() == slots.len() => {}
                    _ => return self.wrong("calls a function with other parameters"),
                }
                slots.iter().for_each(|s| self.declare_slot(*s));
                Ok(())
            }
        }
    }

    fn arg(&self, a: &Arg) -> Result<()> {
        match a {
            Arg::Scalar(e) => self.expr(e).map(drop),
            Arg::Size(e) => self.same(e, Scalar::I64),
            Arg::Data(b, at) => self.expr(&Expr::Load(*b, Box::new(at.clone()))).map(drop),
        }
    }

    fn same(&self, e: &Expr, ty: Scalar) -> Result<()> {
        if self.expr(e)? == ty { Ok(()) } else { self.wrong(&format!("has {e:?} where {} is meant", ty.name())) }
    }

    fn expr(&self, e: &Expr) -> Result<Scalar> {
        match e {
            Expr::Lit(l) => match l.ty().as_scalar() {
                Some(s) => Ok(s),
                None => self.wrong("has a text"),
            },
            Expr::Var(v) if self.vars.get(v.0 as usize) == Some(&true) => Ok(self.func.vars[v.0 as usize].ty),
            Expr::Var(v) => self.wrong(&format!("uses {v:?} where it is not declared")),
            Expr::Load(b, at) => {
                self.same(at, Scalar::I64)?;
                match self.bufs.get(b.0 as usize) {
                    Some(true) => Ok(self.func.bufs[b.0 as usize].ty),
                    _ => self.wrong(&format!("uses {b:?} where it is not declared")),
                }
            }
            Expr::Op(op, ty, args) => {
                let tys = args.iter().map(|a| self.expr(a)).collect::<Result<Vec<_>>>()?;
                if op.result(&tys) == Some(*ty) {
                    return Ok(*ty);
                }
                self.wrong(&format!("gives `{}` other types", op.name()))
            }
            Expr::Cast(s, e) => self.expr(e).map(|_| *s),
            Expr::Cond(parts) => {
                self.same(&parts[0], Scalar::Bool)?;
                let ty = self.expr(&parts[1])?;
                self.same(&parts[2], ty)?;
                Ok(ty)
            }
        }
    }
}
