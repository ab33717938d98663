//! Checks a nest without running it: everything is declared before its use, types and numbers of lanes fit, and iterations
//! that claim to be independent set no variable of the code around them. [`faults`] looks for examples of sizes and
//! iterations that show an access out of bounds, before its element is written, after its memory was given back, or of a
//! place that another iteration uses. What no example shows and no proof excludes is not refused: [`proofs`] counts it.
//!
//! It shares no code with lowering or with any pass.

use super::access;
use super::{Arg, Expr, Func, Loop, LoopKind, Nest, Slot, Stmt, Var};
use crate::diag::{Diagnostic, Result};
use crate::ir::{Scalar, Ty};

/// Verifies all functions of a nest.
///
/// # Errors
/// A bug of this program: what is wrong, and in which function.
pub fn verify(nest: &Nest) -> Result<()> {
    for func in nest.funcs.iter().chain([&nest.entry]) {
        let mut scope = Scope {
            nest,
            func,
            vars: vec![None; func.vars.len()],
            bufs: vec![false; func.bufs.len()],
            log: vec![],
            loops: vec![],
            marks: vec![],
        };
        for p in &func.params {
            scope.declare_slot(*p)?;
        }
        scope.block(&func.body)?;
        func.results.iter().try_for_each(|r| scope.arg(r).map(drop))?;
    }
    Ok(())
}

/// Looks for examples in which an access of a nest that [`verify`] passes goes wrong.
///
/// # Errors
/// A bug of this program: what an example shows, and in which function.
pub fn faults(nest: &Nest) -> Result<()> {
    for func in nest.funcs.iter().chain([&nest.entry]) {
        if let Some(what) = access::follow(func, params(nest, func), false).wrong {
            return Err(Diagnostic::bug(format!("the loop nest of `{}` {what}", func.name)));
        }
    }
    Ok(())
}

/// What is proved of the accesses of a nest, beyond that none is proved wrong.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Proofs {
    /// Accesses, and loops whose iterations are to be independent.
    pub looked: [usize; 2],
    /// What is not proved, in words.
    pub open: Vec<String>,
}

/// Proves accesses to be in bounds and iterations to be independent, as far as that follows from the nest.
pub fn proofs(nest: &Nest) -> Proofs {
    let mut out = Proofs::default();
    for func in nest.funcs.iter().chain([&nest.entry]) {
        let found = access::follow(func, params(nest, func), true);
        out.looked = [out.looked[0] + found.looked[0], out.looked[1] + found.looked[1]];
        out.open.extend(found.open);
    }
    out
}

/// The types of the parameters of a function, where they are known.
fn params<'a>(nest: &'a Nest, func: &Func) -> Option<&'a [Ty]> {
    std::ptr::eq(func, &nest.entry).then_some(nest.params.as_slice())
}

/// A scalar type, and how many of it.
type Type = (Scalar, u32);

/// What a variable is, and in how many loops it was declared.
#[derive(Clone, Copy)]
struct Known {
    mutable: bool,
    depth: usize,
}

enum Declared {
    Var(Var),
    Buf(super::Buf),
}

struct Scope<'a> {
    nest: &'a Nest,
    func: &'a Func,
    vars: Vec<Option<Known>>,
    bufs: Vec<bool>,
    log: Vec<Declared>,
    /// The loops around, with whether their iterations claim to be independent.
    loops: Vec<(Var, bool)>,
    marks: Vec<u32>,
}

impl Scope<'_> {
    fn wrong<T>(&self, what: &str) -> Result<T> {
        Err(Diagnostic::bug(format!("the loop nest of `{}` {what}", self.func.name)))
    }

    fn declare_slot(&mut self, slot: Slot) -> Result<()> {
        match slot {
            Slot::Scalar(v) | Slot::Size(v) => self.declare(v, false),
            Slot::Data(b) => self.declare_buf(b),
        }
    }

    fn declare(&mut self, v: Var, mutable: bool) -> Result<()> {
        let depth = self.loops.len();
        match self.vars.get_mut(v.0 as usize) {
            Some(known @ None) => *known = Some(Known { mutable, depth }),
            Some(Some(_)) => return self.wrong(&format!("declares {v:?} where it is declared already")),
            None => return self.wrong(&format!("declares the unknown {v:?}")),
        }
        self.log.push(Declared::Var(v));
        Ok(())
    }

    fn declare_buf(&mut self, b: super::Buf) -> Result<()> {
        match self.bufs.get_mut(b.0 as usize) {
            Some(known) => *known = true,
            None => return self.wrong(&format!("declares the unknown {b:?}")),
        }
        self.log.push(Declared::Buf(b));
        Ok(())
    }

    /// Checks statements in order.
    fn block(&mut self, stmts: &[Stmt]) -> Result<()> {
        stmts.iter().try_for_each(|s| self.stmt(s))
    }

    /// A block whose declarations end with it.
    fn nested(&mut self, stmts: &[Stmt]) -> Result<()> {
        let (from, marks) = (self.log.len(), self.marks.len());
        self.block(stmts)?;
        self.end_scope(from);
        self.marks.truncate(marks);
        Ok(())
    }

    fn end_scope(&mut self, from: usize) {
        for d in self.log.split_off(from) {
            match d {
                Declared::Var(v) => self.vars[v.0 as usize] = None,
                Declared::Buf(b) => self.bufs[b.0 as usize] = false,
            }
        }
    }

    fn settable(&self, v: Var) -> Result<Type> {
        let Some(known) = self.vars.get(v.0 as usize).copied().flatten() else {
            return self.wrong(&format!("sets {v:?} where it is not declared"));
        };
        if !known.mutable {
            return self.wrong(&format!("sets {v:?}, which is a constant"));
        }
        if self.loops[known.depth..].iter().any(|(_, independent)| *independent) {
            return self.wrong(&format!("has independent iterations that set {v:?} of the code around them"));
        }
        let info = self.func.var(v);
        Ok((info.ty, info.lanes))
    }

    fn stmt(&mut self, s: &Stmt) -> Result<()> {
        match s {
            Stmt::Let(v, e) | Stmt::Mut(v, e) => {
                let ty = self.expr(e)?;
                self.declare(*v, matches!(s, Stmt::Mut(..)))?;
                let info = self.func.var(*v);
                self.fits(e, ty, (info.ty, info.lanes))
            }
            Stmt::Set(v, e) => {
                let ty = self.settable(*v)?;
                self.same(e, ty)
            }
            Stmt::SetLane(v, lane, e) => {
                let (ty, lanes) = self.settable(*v)?;
                self.same(lane, (Scalar::I64, 1))?;
                if lanes < 2 {
                    return self.wrong("sets a lane of a number");
                }
                self.same(e, (ty, 1))
            }
            Stmt::Alloc(b, dims) => {
                dims.iter().try_for_each(|n| self.same(n, (Scalar::I64, 1)))?;
                self.declare_buf(*b)
            }
            Stmt::Point(b, of, at) => {
                let ty = self.expr(&Expr::Load(*of, Box::new(at.clone())))?;
                self.same(&Expr::Load(*b, Box::new(Expr::int(0))), ty)
            }
            Stmt::Store(b, at, e) => {
                let ty = self.expr(&Expr::Load(*b, Box::new(at.clone())))?;
                self.same(e, ty)
            }
            Stmt::MaskedStore(b, at, e, mask) => {
                let load = Expr::MaskedLoad(*b, Box::new([at.clone(), mask.clone()]));
                let ty = self.expr(&load)?;
                self.same(e, ty)
            }
            Stmt::StoreLane(b, at, lane, e) => {
                self.same(lane, (Scalar::I64, 1))?;
                match self.expr(&Expr::Load(*b, Box::new(at.clone())))? {
                    (_, 1) => self.wrong("writes a lane of a buffer of numbers"),
                    (ty, _) => self.same(e, (ty, 1)),
                }
            }
            Stmt::Check(c, site, values) => {
                if site.0 as usize >= self.nest.sites.len() {
                    return self.wrong("names an unknown place");
                }
                values.iter().try_for_each(|v| self.same(v, (Scalar::I64, 1)))?;
                self.same(c, (Scalar::Bool, 1))
            }
            Stmt::For(l) => self.for_loop(l),
            Stmt::Leave(v, e) => {
                self.same(e, (Scalar::Bool, 1))?;
                match self.loops.iter().any(|(w, _)| v == w) {
                    true => Ok(()),
                    false => self.wrong("leaves a loop that is not around"),
                }
            }
            Stmt::If(c, a, b) => {
                self.same(c, (Scalar::Bool, 1))?;
                self.nested(a)?;
                self.nested(b)
            }
            Stmt::Mark(m) => {
                self.marks.push(*m);
                Ok(())
            }
            Stmt::Reset(m) if self.marks.contains(m) => Ok(()),
            Stmt::Reset(_) => self.wrong("goes back to a mark that was not set"),
            Stmt::Call(at, args, slots) => self.call(*at, args, slots),
            Stmt::Print(at, args, v) => {
                if at.0 as usize >= self.nest.prints.len() {
                    return self.wrong("prints at an unknown place");
                }
                if self.loops.iter().any(|(_, independent)| *independent) {
                    return self.wrong("has independent iterations that print");
                }
                args.iter().try_for_each(|a| self.arg(a).map(drop))?;
                self.declare(*v, false)
            }
        }
    }

    fn for_loop(&mut self, l: &Loop) -> Result<()> {
        self.same(&l.from, (Scalar::I64, 1))?;
        self.same(&l.to, (Scalar::I64, 1))?;
        if let LoopKind::Vector(n) = l.kind
            && n < 2
        {
            return self.wrong("has a vector loop of fewer than two lanes");
        }
        if l.kind == (LoopKind::Parallel { overlap: false }) && !l.independent {
            return self.wrong("has a parallel loop whose iterations are not independent");
        }
        let from = self.log.len();
        self.loops.push((l.var, l.is_judged()));
        self.declare(l.var, false)?;
        self.nested(&l.body)?;
        self.loops.pop();
        self.end_scope(from);
        Ok(())
    }

    fn call(&mut self, at: usize, args: &[Arg], slots: &[Slot]) -> Result<()> {
        let Some(callee) = self.nest.funcs.get(at) else { return self.wrong("calls an unknown function") };
        if callee.params.len() != args.len() || callee.results.len() != slots.len() {
            return self.wrong("calls a function with other parameters");
        }
        for (a, p) in args.iter().zip(&callee.params) {
            let fits = match (a, p) {
                (Arg::Data(..), Slot::Data(b)) => self.arg(a)?.0 == callee.buf(*b).ty,
                (Arg::Scalar(_) | Arg::Size(_), Slot::Scalar(v) | Slot::Size(v)) => {
                    self.arg(a)? == (callee.var(*v).ty, 1)
                }
                _ => false,
            };
            if !fits {
                return self.wrong("calls a function with arguments of other types");
            }
        }
        slots.iter().try_for_each(|s| self.declare_slot(*s))
    }

    fn arg(&self, a: &Arg) -> Result<Type> {
        match a {
            Arg::Scalar(e) => self.expr(e),
            Arg::Size(e) => self.same(e, (Scalar::I64, 1)).map(|()| (Scalar::I64, 1)),
            Arg::Data(b, at) => self.expr(&Expr::Load(*b, Box::new(at.clone()))),
        }
    }

    fn same(&self, e: &Expr, ty: Type) -> Result<()> {
        let have = self.expr(e)?;
        self.fits(e, have, ty)
    }

    fn fits(&self, e: &Expr, have: Type, want: Type) -> Result<()> {
        let name = |(s, n): Type| if n == 1 { s.name().to_string() } else { format!("{n} lanes of {}", s.name()) };
        match have == want {
            true => Ok(()),
            false => self.wrong(&format!("has {e:?}, which is {}, where {} is meant", name(have), name(want))),
        }
    }

    fn expr(&self, e: &Expr) -> Result<Type> {
        match e {
            Expr::Lit(l) => match l.ty().as_scalar() {
                Some(s) => Ok((s, 1)),
                None => self.wrong("has a text"),
            },
            Expr::Var(v) => match self.vars.get(v.0 as usize) {
                Some(Some(_)) => Ok((self.func.var(*v).ty, self.func.var(*v).lanes)),
                Some(None) | None => self.wrong(&format!("uses {v:?} where it is not declared")),
            },
            Expr::Load(b, at) => self.access(*b, at),
            Expr::MaskedLoad(b, parts) => {
                let (ty, lanes) = self.access(*b, &parts[0])?;
                if self.expr(&parts[0])?.1 != lanes {
                    return self.wrong("masks an access that is not one of a vector of indices");
                }
                self.same(&parts[1], (Scalar::Bool, lanes)).map(|()| (ty, lanes))
            }
            Expr::Op(op, ty, args) => {
                let all = args.iter().map(|a| self.expr(a)).collect::<Result<Vec<_>>>()?;
                let lanes = all.first().map_or(1, |t| t.1);
                let tys: Vec<Scalar> = all.iter().map(|t| t.0).collect();
                if op.result(&tys) == Some(*ty) && all.iter().all(|t| t.1 == lanes) {
                    return Ok((*ty, lanes));
                }
                self.wrong(&format!("gives `{}` other types", op.name()))
            }
            Expr::Cast(s, e) => self.expr(e).map(|t| (*s, t.1)),
            Expr::Cond(parts) => {
                self.same(&parts[0], (Scalar::Bool, 1))?;
                let ty = self.expr(&parts[1])?;
                self.same(&parts[2], ty)?;
                Ok(ty)
            }
            Expr::Ramp(parts, n) => {
                parts.iter().try_for_each(|p| self.same(p, (Scalar::I64, 1)))?;
                Ok((Scalar::I64, *n))
            }
            Expr::Broadcast(e, n) => match self.expr(e)? {
                (ty, 1) => Ok((ty, *n)),
                _ => self.wrong("broadcasts a vector"),
            },
            Expr::PrefixMask(e, n) => self.same(e, (Scalar::I64, 1)).map(|()| (Scalar::Bool, *n)),
            Expr::Extract(parts) => {
                self.same(&parts[1], (Scalar::I64, 1))?;
                match self.expr(&parts[0])? {
                    (_, 1) => self.wrong("takes a lane of a number"),
                    (ty, _) => Ok((ty, 1)),
                }
            }
            Expr::All(e) => match self.expr(e)? {
                (Scalar::Bool, n) if n > 1 => Ok((Scalar::Bool, 1)),
                _ => self.wrong("asks whether all lanes hold of what is no mask"),
            },
            Expr::PerLane(v, n, parts) => self.per_lane(*v, *n, parts),
        }
    }

    fn access(&self, b: super::Buf, at: &Expr) -> Result<Type> {
        if self.bufs.get(b.0 as usize) != Some(&true) {
            return self.wrong(&format!("uses {b:?} where it is not declared"));
        }
        let (info, at) = (self.func.buf(b), self.expr(at)?);
        match (at, info.lanes) {
            ((Scalar::I64, 1), n) | ((Scalar::I64, n), 1) => Ok((info.ty, n)),
            _ => self.wrong("has an index that is no integer, or several into a buffer of vectors"),
        }
    }

    fn per_lane(&self, v: Var, n: u32, parts: &[Expr; 2]) -> Result<Type> {
        self.same(&parts[0], (Scalar::I64, 1))?;
        let mut vars = self.vars.clone();
        match vars.get_mut(v.0 as usize) {
            Some(known @ None) => *known = Some(Known { mutable: false, depth: self.loops.len() }),
            _ => return self.wrong(&format!("declares {v:?} where it is declared already")),
        }
        let inner = Scope {
            nest: self.nest,
            func: self.func,
            vars,
            bufs: self.bufs.clone(),
            log: vec![],
            loops: self.loops.clone(),
            marks: vec![],
        };
        match inner.expr(&parts[1])? {
            (ty, 1) => Ok((ty, n)),
            _ => self.wrong("has a vector in each lane of a vector"),
        }
    }
}
