//! Arms of conditions that differ between lanes: all lanes run both, memory is read where a mask says, and what an arm sets
//! changes in the lanes that take it.
//!
//! What could fail for lanes that do not take an arm stays in them: an index out of bounds is read under the mask, and what
//! is one number for all lanes only where some lane asks for it. Loops, checks, stores and divisions by what may be 0 are not
//! for masks; lanes run these one after another.

use super::common_calls::{calls, merged_arms};
use super::divergence::is_safe;
use super::vectorize::{Maker, not};
use crate::ir::{Lit, Op, Scalar};
use crate::nest::{Expr, Info, Stmt, Var};

impl Maker<'_> {
    /// Each arm sets variables in the lanes that take it.
    pub(super) fn masked(&mut self, c: &Expr, a: &[Stmt], b: &[Stmt]) -> Vec<Stmt> {
        let (outer, wanted) = (self.mask, self.vector(c));
        let mut out = std::mem::take(&mut self.before);
        let taken = self.only(wanted, &mut out);
        let a = self.block(a);
        self.mask = outer;
        let mut other = vec![];
        if !b.is_empty() {
            self.only(not(taken.clone()), &mut out);
            other = self.block(b);
            self.mask = outer;
        }
        out.extend(merged_arms(self.func, &taken, a, other));
        out
    }

    /// One of two values in each lane.
    pub(super) fn chosen(&mut self, [c, a, b]: &[Expr; 3]) -> Expr {
        let (outer, ty, wanted) = (self.mask, self.func.ty(a), self.vector(c));
        let mut before = std::mem::take(&mut self.before);
        let taken = self.only(wanted, &mut before);
        let a = self.named_arm(a);
        self.mask = outer;
        self.only(not(taken.clone()), &mut before);
        let b = self.named_arm(b);
        self.mask = outer;
        before.extend(merged_arms(self.func, &taken, a.1, b.1));
        self.before = before;
        Expr::Op(Op::Select, ty, vec![taken, a.0, b.0])
    }

    /// One of two values in each lane, both of which have a value there.
    pub(super) fn selected(&mut self, [c, a, b]: &[Expr; 3]) -> Expr {
        let (ty, mut taken) = (self.func.ty(a), self.vector(c));
        let mut before = std::mem::take(&mut self.before);
        let (a, b) = (self.named_arm(a), self.named_arm(b));
        if !a.1.is_empty() && !b.1.is_empty() {
            let info = Info { name: "taken".into(), ty: Scalar::Bool, lanes: self.how.lanes };
            let mask = self.func.fresh_var(info);
            before.push(Stmt::Let(mask, std::mem::replace(&mut taken, Expr::Var(mask))));
        }
        before.extend(merged_arms(self.func, &taken, a.1, b.1));
        self.before = before;
        Expr::Op(Op::Select, ty, vec![taken, a.0, b.0])
    }

    /// The value of an arm, and what has to stand before it: the value itself, too, where it calls library functions.
    fn named_arm(&mut self, e: &Expr) -> (Expr, Vec<Stmt>) {
        let value = self.vector(e);
        let mut before = std::mem::take(&mut self.before);
        if !calls(self.func, &value) {
            return (value, before);
        }
        let info = Info { name: "arm".into(), ty: self.func.ty(e), lanes: self.how.lanes };
        let v = self.func.fresh_var(info);
        before.push(Stmt::Let(v, value));
        (Expr::Var(v), before)
    }

    /// One of two values, where all lanes ask the same: no lane reads what another one needs.
    pub(super) fn branched(&mut self, [c, a, b]: &[Expr; 3]) -> Expr {
        let (c, ty) = (self.first(c), self.func.ty(a));
        let v = self.func.fresh_var(Info { name: "chosen".into(), ty, lanes: self.how.lanes });
        let outer = std::mem::take(&mut self.before);
        let mut arm = |e: &Expr| {
            let value = self.vector(e);
            let mut stmts = std::mem::take(&mut self.before);
            stmts.push(Stmt::Set(v, value));
            stmts
        };
        let (a, b) = (arm(a), arm(b));
        self.before = outer;
        let zero = Expr::Broadcast(Box::new(Expr::Lit(Lit::zero(ty))), self.how.lanes);
        self.before.extend([Stmt::Mut(v, zero), Stmt::If(c, a, b)]);
        Expr::Var(v)
    }

    /// From here on, only those lanes run for which a condition holds; declares that mask, and gives it.
    fn only(&mut self, wanted: Expr, out: &mut Vec<Stmt>) -> Expr {
        let wanted = match self.mask {
            Some(outer) => Expr::Op(Op::And, Scalar::Bool, vec![Expr::Var(outer), wanted]),
            None => wanted,
        };
        let mask = self.func.fresh_var(Info { name: "taken".into(), ty: Scalar::Bool, lanes: self.how.lanes });
        self.mask = Some(mask);
        out.push(Stmt::Let(mask, wanted));
        Expr::Var(mask)
    }

    /// A new value of a variable, in the lanes that run this.
    pub(super) fn set(&mut self, v: Var, e: &Expr) -> Vec<Stmt> {
        let (value, ty) = (self.vector(e), self.func.var(v).ty);
        let v = self.var(v);
        let value = match self.mask {
            Some(mask) => Expr::Op(Op::Select, ty, vec![Expr::Var(mask), value, Expr::Var(v)]),
            None => value,
        };
        vec![Stmt::Set(v, value)]
    }

    /// The one number of all lanes, or that of lane 0; where memory is read for it, only if some lane asks for it.
    pub(super) fn first(&mut self, e: &Expr) -> Expr {
        let (value, ty) = (self.number(e), self.func.ty(e));
        match (self.mask, self.lane) {
            (Some(mask), None) if !is_safe(e) => {
                let some = not(Expr::All(Box::new(not(Expr::Var(mask)))));
                Expr::Cond(Box::new([some, value, Expr::Lit(Lit::of(ty, 0.0))]))
            }
            _ => value,
        }
    }

    /// Which lanes read memory, where that is not all of them.
    pub(super) fn reading(&self) -> Option<Expr> {
        let live = self.how.live.clone().map(|live| Expr::PrefixMask(Box::new(live), self.how.lanes));
        match (live, self.mask.map(Expr::Var)) {
            (Some(live), Some(mask)) => Some(Expr::Op(Op::And, Scalar::Bool, vec![mask, live])),
            (live, mask) => live.or(mask),
        }
    }
}
