//! A loop that does something in one iteration only becomes that iteration: `for i < n: if i = e …` asks once whether `e` is
//! in range.
//!
//! It must not know what is done there.

use crate::ir::{Op, Scalar};
use crate::nest::{Buf, Expr, Info, Loop, Stmt, Var, walk};
use rustc_hash::FxHashSet;

/// An index of more nodes is not looked through.
const MAX_NODES: usize = 32;

/// The same statements with such loops as their only iteration, inner ones first; new variables are added to those there are,
/// and what constants of them are is told.
pub(super) fn once(stmts: &mut [Stmt], vars: &mut Vec<Info>, tell: &mut dyn FnMut(Var, Expr)) {
    for s in stmts {
        s.blocks_mut().into_iter().for_each(|b| once(b, vars, tell));
        if let Stmt::For(l) = s
            && let Some(e) = only(l)
        {
            *s = iteration(l, e, vars, tell);
        }
    }
}

/// The iteration of an index, where there is one; what the index is is told.
fn iteration(l: &Loop, e: Expr, vars: &mut Vec<Info>, tell: &mut dyn FnMut(Var, Expr)) -> Stmt {
    let test = |op: Op, a: Expr, b: Expr| Expr::Op(op, Scalar::Bool, vec![a, b]);
    let there = |at: &Expr| {
        let (from, to) = (test(Op::Gte, at.clone(), Expr::int(0)), test(Op::Lt, at.clone(), l.to.clone()));
        let own = Stmt::Let(l.var, at.clone());
        Stmt::If(test(Op::And, from, to), std::iter::once(own).chain(l.body.iter().cloned()).collect(), vec![])
    };
    if is_total(&e) {
        tell(l.var, e.clone());
        return there(&e);
    }
    let at = Var(vars.len() as u32);
    vars.push(Info::scalar("only", Scalar::I64));
    tell(at, e.clone());
    tell(l.var, Expr::Var(at));
    // Without an iteration nothing asks for the index.
    let some = test(Op::Gt, l.to.clone(), Expr::int(0));
    Stmt::If(some, vec![Stmt::Let(at, e), there(&Expr::Var(at))], vec![])
}

/// The only index at which the body of a loop does something, which is the same in all iterations.
fn only(l: &Loop) -> Option<Expr> {
    l.extent()?;
    let (mut body, mut first) = (l.body.as_slice(), true);
    let inner = Inner::of(l);
    if inner.calls {
        return None;
    }
    loop {
        let (last, before) = body.split_last()?;
        if !before.iter().all(|s| matches!(s, Stmt::Let(..))) {
            return None;
        }
        let Stmt::If(c, then, other) = last else { return None };
        if !other.is_empty() {
            return None;
        }
        let mut found = None;
        conjuncts(c, &mut |c| {
            if let Expr::Op(Op::Eq, _, sides) = c
                && let [a, b] = sides.as_slice()
            {
                let each = [(a, b), (b, a)].into_iter().filter(|(v, _)| **v == Expr::Var(l.var));
                // What is asked behind another condition is evaluated before it.
                let mut good = each.filter_map(|(_, e)| inner.unchanged(e)).filter(|e| first || is_total(e));
                found = found.take().or(good.next());
            }
        });
        if found.is_some() {
            return found;
        }
        (body, first) = (then, false);
    }
}

/// The conditions that all hold where one does.
fn conjuncts(c: &Expr, f: &mut dyn FnMut(&Expr)) {
    match c {
        Expr::Op(Op::And, _, args) => args.iter().for_each(|a| conjuncts(a, f)),
        _ => f(c),
    }
}

/// Whether an integer has a value wherever it stands.
fn is_total(e: &Expr) -> bool {
    !e.any(&mut |e| !matches!(e, Expr::Lit(_) | Expr::Var(_) | Expr::Op(Op::Add | Op::Sub | Op::Mul, ..)))
}

/// What a loop declares, sets and stores.
struct Inner {
    vars: FxHashSet<Var>,
    lets: Vec<(Var, Expr)>,
    bufs: FxHashSet<Buf>,
    /// Whether it takes memory, or does what is not followed.
    calls: bool,
}

impl Inner {
    fn of(l: &Loop) -> Inner {
        let mut out =
            Inner { vars: FxHashSet::from_iter([l.var]), lets: vec![], bufs: FxHashSet::default(), calls: false };
        walk::visit(&l.body, &mut |s| match s {
            Stmt::Let(v, e) => {
                out.vars.insert(*v);
                out.lets.push((*v, e.clone()));
            }
            Stmt::Mut(v, _) | Stmt::Set(v, _) | Stmt::SetLane(v, ..) => drop(out.vars.insert(*v)),
            Stmt::For(l) => drop(out.vars.insert(l.var)),
            Stmt::Store(b, ..) | Stmt::MaskedStore(b, ..) | Stmt::StoreLane(b, ..) => drop(out.bufs.insert(*b)),
            Stmt::If(..) | Stmt::Check(..) => {}
            // Memory of an iteration is given back at its end.
            _ => out.calls = true,
        });
        out
    }

    /// An expression that is the same in all iterations, by what is known before the loop.
    fn unchanged(&self, e: &Expr) -> Option<Expr> {
        let mut e = e.clone();
        // Constants of the body that are the same in all iterations are looked through.
        for (v, def) in self.lets.iter().rev() {
            if e.weight() > MAX_NODES {
                return None;
            }
            e.map(&mut |part| {
                if *part == Expr::Var(*v) {
                    *part = def.clone();
                }
            });
        }
        let varies = |e: &Expr| match e {
            Expr::Var(v) => self.vars.contains(v),
            Expr::Load(b, _) | Expr::MaskedLoad(b, _) => self.bufs.contains(b),
            _ => false,
        };
        (e.weight() <= MAX_NODES && !e.any(&mut |e| varies(e))).then_some(e)
    }
}
