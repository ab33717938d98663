//! Statements that compute sizes become ones that never fail: where a check does not hold, the rest is left out.
//!
//! It must not know what the statements compute.

use super::{Expr, Stmt, Var};
use crate::ir::Lit;

/// So many checks are masked at most: every one nests what follows it.
const MOST: usize = 16;

/// Whether statements may fail: by a check, or in a function.
pub(super) fn can_fail(stmts: &[Stmt]) -> bool {
    checks(stmts) > 0 || calls(stmts)
}

/// Whether all failures of statements are checks that can be masked: those of functions cannot.
pub(super) fn is_maskable(stmts: &[Stmt]) -> bool {
    checks(stmts) <= MOST && !calls(stmts)
}

fn checks(stmts: &[Stmt]) -> usize {
    let each = |s: &Stmt| match s {
        Stmt::Check(..) => 1,
        Stmt::For(l) => checks(&l.body),
        Stmt::If(_, a, b) => checks(a) + checks(b),
        _ => 0,
    };
    stmts.iter().map(each).sum()
}

fn calls(stmts: &[Stmt]) -> bool {
    stmts.iter().any(|s| match s {
        Stmt::Call(..) => true,
        Stmt::For(l) => calls(&l.body),
        Stmt::If(_, a, b) => calls(a) || calls(b),
        _ => false,
    })
}

/// The statements up to the first check that does not hold, which sets `goes` to false.
pub(super) fn masked(stmts: Vec<Stmt>, goes: Var) -> Vec<Stmt> {
    let mut out = vec![];
    let mut rest = stmts.into_iter();
    while let Some(s) = rest.next() {
        let done = |rest: std::vec::IntoIter<Stmt>| masked(rest.collect(), goes);
        match s {
            Stmt::Check(holds, ..) => {
                out.push(Stmt::If(holds, done(rest), vec![Stmt::Set(goes, Expr::Lit(Lit::Bool(false)))]));
                return out;
            }
            Stmt::For(mut l) if can_fail(&l.body) => {
                let body = masked(std::mem::take(&mut l.body), goes);
                l.body = vec![Stmt::If(Expr::Var(goes), body, vec![])];
                l.independent = false;
                out.push(Stmt::For(l));
                out.push(Stmt::If(Expr::Var(goes), done(rest), vec![]));
                return out;
            }
            Stmt::If(c, a, b) if can_fail(&a) || can_fail(&b) => {
                out.push(Stmt::If(c, masked(a, goes), masked(b, goes)));
                out.push(Stmt::If(Expr::Var(goes), done(rest), vec![]));
                return out;
            }
            other => out.push(other),
        }
    }
    out
}
