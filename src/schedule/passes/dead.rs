//! Removes what nobody reads: variables, buffers, and the loops that only fill them. Checks stay.

use crate::nest::{Arg, Buf, Expr, Func, Stmt, Var};
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
        e.visit(&mut |e| match e {
            Expr::Var(v) => drop(self.vars.insert(*v)),
            Expr::Load(b, _) | Expr::MaskedLoad(b, _) => drop(self.bufs.insert(*b)),
            _ => {}
        });
    }

    fn arg(&mut self, a: &Arg) {
        if let Arg::Data(b, _) = a {
            self.bufs.insert(*b);
        }
        self.expr(a.expr());
    }

    fn block(&mut self, stmts: &[Stmt]) {
        for s in stmts {
            // Who is read for its own next value alone is not used.
            let unread = match s {
                Stmt::Set(v, _) | Stmt::SetLane(v, ..) => (!self.vars.contains(v)).then_some(Err(*v)),
                Stmt::Store(b, ..) | Stmt::MaskedStore(b, ..) | Stmt::StoreLane(b, ..) => {
                    (!self.bufs.contains(b)).then_some(Ok(*b))
                }
                _ => None,
            };
            match s {
                Stmt::Call(_, args, _) | Stmt::Print(_, args, _) => args.iter().for_each(|a| self.arg(a)),
                Stmt::Point(_, of, at) => {
                    self.bufs.insert(*of);
                    self.expr(at);
                }
                _ => s.exprs().into_iter().for_each(|e| self.expr(e)),
            }
            match unread {
                Some(Ok(b)) => drop(self.bufs.remove(&b)),
                Some(Err(v)) => drop(self.vars.remove(&v)),
                None => {}
            }
            s.blocks().into_iter().for_each(|b| self.block(b));
        }
    }

    fn clean(&self, stmts: &mut Vec<Stmt>, removed: &mut bool) {
        stmts.retain_mut(|s| {
            let stays = match s {
                Stmt::Let(v, _) | Stmt::Mut(v, _) | Stmt::Set(v, _) | Stmt::SetLane(v, ..) => self.vars.contains(v),
                Stmt::Alloc(b, _)
                | Stmt::Point(b, ..)
                | Stmt::Store(b, ..)
                | Stmt::MaskedStore(b, ..)
                | Stmt::StoreLane(b, ..) => self.bufs.contains(b),
                Stmt::For(l) => {
                    self.clean(&mut l.body, removed);
                    !idle(&l.body)
                }
                Stmt::If(_, a, b) => {
                    self.clean(a, removed);
                    self.clean(b, removed);
                    !idle(a) || !idle(b)
                }
                Stmt::Check(..)
                | Stmt::Leave(..)
                | Stmt::Mark(_)
                | Stmt::Reset(_)
                | Stmt::Call(..)
                | Stmt::Print(..) => true,
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
