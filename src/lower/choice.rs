//! A tensor that one of two arms makes, where an arm calls a function that calls itself.
//!
//! The sizes of what such a call gives are known only when it has been made, so an arm is not asked for its shape
//! beforehand: that would call once more at every level. Each arm makes its value, and variables and buffers become
//! names of the one that was made.

use super::value::Val;
use super::{Expr, Lower};
use crate::diag::Result;
use crate::ir::{Def, Id, Lit, deep};
use crate::nest::Stmt;

impl Lower<'_> {
    /// Whether a term calls a function that calls itself, or one that calls such a function.
    pub(super) fn calls_itself(&mut self, id: Id) -> bool {
        if self.recursive.is_empty() {
            return false;
        }
        if let Some(known) = self.calling.get(&id) {
            return *known;
        }
        let terms = self.terms;
        let found = terms.calls(id).into_iter().any(|f| {
            let body = self.program.defs.get(&f).and_then(Def::term);
            self.recursive.contains(&f) || body.is_some_and(|b| deep(|| self.calls_itself(b)))
        });
        self.calling.insert(id, found);
        found
    }

    /// The value of a condition, by those of its arms.
    pub(super) fn choose_value(&mut self, kids: &[Id]) -> Result<Val> {
        let c = self.scalar(kids[0])?;
        let c = self.atom(c, "which");
        let mut made = vec![];
        for arm in &kids[1..] {
            self.open_block()?;
            let value = self.value(*arm);
            made.push((self.close_arm(), value?));
        }
        let Some((_, first)) = made.first() else { return self.bug("an arm") };
        let out = self.named_later(&first.clone())?;
        let mut arms = vec![];
        for (mut stmts, value) in made {
            name_as(&out, value, &mut stmts);
            arms.push(stmts);
        }
        let second = arms.pop().unwrap_or_default();
        let first = arms.pop().unwrap_or_default();
        self.push(Stmt::If(c, first, second));
        Ok(out)
    }

    /// Variables and buffers for a value of this structure.
    fn named_later(&mut self, v: &Val) -> Result<Val> {
        Ok(match v {
            Val::Expr(e) => {
                let zero = Lit::zero(self.expr_ty(e));
                Val::Expr(Expr::Var(self.mutable("v", Expr::Lit(zero))))
            }
            Val::Place(b, _) => {
                let ty = self.f.bufs[b.0 as usize].ty;
                let buf = self.fresh_buf("chosen", ty);
                self.push(Stmt::Alloc(buf, vec![Expr::int(0)]));
                self.f.pointed.insert(buf);
                Val::Place(buf, Expr::int(0))
            }
            Val::Tuple(parts) => Val::Tuple(parts.iter().map(|p| self.named_later(p)).collect::<Result<_>>()?),
            Val::Tensor(dims, elem) => {
                let mut sizes = vec![];
                for _ in dims {
                    let n = self.mutable("n", Expr::int(0));
                    self.f.sizes.insert(n);
                    sizes.push(Expr::Var(n));
                }
                Val::Tensor(sizes, Box::new(self.named_later(elem)?))
            }
        })
    }
}

/// Statements that make a value what variables and buffers are.
fn name_as(out: &Val, value: Val, stmts: &mut Vec<Stmt>) {
    match (out, value) {
        (Val::Expr(Expr::Var(v)), Val::Expr(e)) => stmts.push(Stmt::Set(*v, e)),
        (Val::Place(b, _), Val::Place(of, at)) => stmts.push(Stmt::Point(*b, of, at)),
        (Val::Tuple(out), Val::Tuple(parts)) => out.iter().zip(parts).for_each(|(o, p)| name_as(o, p, stmts)),
        (Val::Tensor(sizes, out), Val::Tensor(dims, elem)) => {
            for (n, d) in sizes.iter().zip(dims) {
                if let Expr::Var(n) = n {
                    stmts.push(Stmt::Set(*n, d));
                }
            }
            name_as(out, *elem, stmts);
        }
        // Values of one type have one structure.
        _ => {}
    }
}
