//! What loops ask of their index: whether it is before a place, or at one. In a part of the loop, which is most of it, the
//! answer is always the same, and what was asked is a literal there. It must not know how loops are cut into parts.

use crate::ir::{Lit, Op, Scalar};
use crate::nest::{Expr, Stmt, Var};
use rustc_hash::FxHashMap;

/// The answer to a question, in the iterations where it is always the same one.
pub(super) struct Answer {
    pub(super) holds: bool,
    /// The first of them, where that is not the first of all.
    pub(super) from: Option<Expr>,
    /// The first after them, where that is not the last of all.
    pub(super) to: Option<Expr>,
}

/// A multiple of the index of a loop, and the rest.
pub(super) type Form = (i64, Expr);

fn op(op: Op, a: Expr, b: Expr) -> Expr {
    Expr::index_op(op, a, b)
}

/// The answer to a comparison of two integers, of which one moves with the index, in most of the iterations of a loop: how many it
/// has, and how many are an end; nothing where it is not known which answer is that of most.
pub(super) fn answer(of: Op, (c, a): Form, (d, b): Form, of_loop: (&Expr, i64)) -> Option<Answer> {
    match of {
        Op::Gt => return answer(Op::Lt, (d, b), (c, a), of_loop),
        Op::Gte | Op::Lte | Op::Ne => {
            let other = answer(of.opposite()?, (c, a), (d, b), of_loop)?;
            return Some(Answer { holds: !other.holds, ..other });
        }
        _ => {}
    }
    let c = c.checked_sub(d)?;
    if c.abs() != 1 {
        return None;
    }
    // Where both are equal.
    let even = if c == 1 { op(Op::Sub, b, a) } else { op(Op::Sub, a, b) };
    let after = op(Op::Add, even.clone(), Expr::int(1));
    match of {
        Op::Eq if is_late(&even, of_loop)? => Some(Answer { holds: false, from: None, to: Some(even) }),
        Op::Eq => Some(Answer { holds: false, from: Some(after), to: None }),
        Op::Lt => {
            // Where the answer changes.
            let at = if c == 1 { even } else { after };
            let late = is_late(&at, of_loop)?;
            let (from, to) = if late { (None, Some(at)) } else { (Some(at), None) };
            Some(Answer { holds: late == (c == 1), from, to })
        }
        _ => None,
    }
}

/// Whether a place is at the end of so many iterations, or at their beginning; nothing where it is neither, or not known.
fn is_late(at: &Expr, (n, end): (&Expr, i64)) -> Option<bool> {
    if at.as_int().is_some_and(|at| at <= end) {
        return Some(false);
    }
    let left = op(Op::Sub, n.clone(), at.clone()).as_int()?;
    (left <= end).then_some(true)
}

/// Takes the arms that literals choose, and leaves out checks that hold.
pub(super) fn fold(stmts: &mut Vec<Stmt>) {
    block(stmts, &mut FxHashMap::default());
}

fn block(stmts: &mut Vec<Stmt>, known: &mut FxHashMap<Var, bool>) {
    let mut out = Vec::with_capacity(stmts.len());
    for mut s in stmts.drain(..) {
        s.exprs_mut().into_iter().for_each(|e| e.map(&mut |e| literal(e, known)));
        s.blocks_mut().into_iter().for_each(|b| block(b, known));
        match s {
            Stmt::Let(v, Expr::Lit(Lit::Bool(b))) => drop(known.insert(v, b)),
            Stmt::If(Expr::Lit(Lit::Bool(c)), a, b) => out.extend(if c { a } else { b }),
            Stmt::Check(Expr::Lit(Lit::Bool(true)), ..) => {}
            s => out.push(s),
        }
    }
    *stmts = out;
}

/// An expression whose parts are known.
fn literal(e: &mut Expr, known: &FxHashMap<Var, bool>) {
    let is = |e: &Expr| if let Expr::Lit(Lit::Bool(b)) = e { Some(*b) } else { None };
    let found = match e {
        Expr::Var(v) => known.get(v).map(|b| Expr::bool(*b)),
        Expr::Cond(parts) => is(&parts[0]).map(|c| parts[if c { 1 } else { 2 }].clone()),
        Expr::Op(Op::Not, Scalar::Bool, args) => is(&args[0]).map(|b| Expr::bool(!b)),
        Expr::Op(which @ (Op::And | Op::Or), Scalar::Bool, args) => {
            let decides = *which == Op::Or;
            let one = args.iter().position(|a| is(a).is_some());
            one.map(|k| if is(&args[k]) == Some(decides) { Expr::bool(decides) } else { args[1 - k].clone() })
        }
        _ => None,
    };
    if let Some(found) = found {
        *e = found;
    }
}
