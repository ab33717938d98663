//! Removes what nobody reads: variables, buffers, and the loops that only fill them. Checks stay.

use super::{Arg, Buf, Expr, Func, Stmt, Var};
use rustc_hash::FxHashSet;

/// Removing makes more things useless; after so many rounds the rest stays.
const ROUNDS: usize = 20;

/// Removes what is useless.
pub fn remove(func: &mut Func) {
    for _ in 0..ROUNDS {
        let mut used = Used::default();
        used.block(&func.body);
        func.results.iter().for_each(|r| used.arg(r));
        let mut removed = false;
        used.clean(&mut func.body, &mut removed);
        if !removed {
            return;
        }
    }
}

#[derive(Default)]
struct Used {
    vars: FxHashSet<Var>,
    bufs: FxHashSet<Buf>,
}

impl Used {
    fn expr(&mut self, e: &Expr) {
        match e {
            Expr::Var(v) => drop(self.vars.insert(*v)),
            Expr::Load(b, _) => drop(self.bufs.insert(*b)),
            _ => {}
        }
        e.kids().iter().for_each(|k| self.expr(k));
    }

    fn arg(&mut self, a: &Arg) {
        match a {
            Arg::Scalar(e) | Arg::Size(e) => self.expr(e),
            Arg::Data(b, at) => {
                self.bufs.insert(*b);
                self.expr(at);
            }
        }
    }

    fn block(&mut self, stmts: &[Stmt]) {
        for s in stmts {
            match s {
                Stmt::Let(_, e) | Stmt::Mut(_, e) => self.expr(e),
                // Who is read for its own next value alone is not used.
                Stmt::Set(v, e) => {
                    let known = self.vars.contains(v);
                    self.expr(e);
                    if !known {
                        self.vars.remove(v);
                    }
                }
                Stmt::Alloc(_, dims) => dims.iter().for_each(|e| self.expr(e)),
                Stmt::Store(b, at, e) => {
                    let known = self.bufs.contains(b);
                    self.expr(at);
                    self.expr(e);
                    if !known {
                        self.bufs.remove(b);
                    }
                }
                Stmt::Check(ok, _, values) => {
                    self.expr(ok);
                    values.iter().for_each(|e| self.expr(e));
                }
                Stmt::For(l) => {
                    self.expr(&l.extent);
                    self.block(&l.body);
                }
                Stmt::If(c, a, b) => {
                    self.expr(c);
                    self.block(a);
                    self.block(b);
                }
                Stmt::Mark(_) | Stmt::Reset(_) => {}
                Stmt::Call(_, args, _) => args.iter().for_each(|a| self.arg(a)),
            }
        }
    }

    fn clean(&self, stmts: &mut Vec<Stmt>, removed: &mut bool) {
        stmts.retain_mut(|s| {
            let stays = match s {
                Stmt::Let(v, _) | Stmt::Mut(v, _) | Stmt::Set(v, _) => self.vars.contains(v),
                Stmt::Alloc(b, _) | Stmt::Store(b, ..) => self.bufs.contains(b),
                Stmt::For(l) => {
                    self.clean(&mut l.body, removed);
                    !idle(&l.body)
                }
                Stmt::If(_, a, b) => {
                    self.clean(a, removed);
                    self.clean(b, removed);
                    !idle(a) || !idle(b)
                }
                Stmt::Check(..) | Stmt::Mark(_) | Stmt::Reset(_) | Stmt::Call(..) => true,
            };
            *removed |= !stays;
            stays
        });
    }
}

/// Whether a block does nothing.
fn idle(stmts: &[Stmt]) -> bool {
    stmts.iter().all(|s| matches!(s, Stmt::Mark(_) | Stmt::Reset(_)))
}
