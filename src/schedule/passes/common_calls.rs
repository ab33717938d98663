//! Common calls of both arms of a divergent condition are merged: the function is called once, and each lane gives it what its own
//! arm gives it. All lanes run both arms, under masks. It must not know what the arms compute.

use super::name::{call, name_calls};
use crate::ir::{Op, Scalar};
use crate::nest::{Expr, Func, Stmt};
use std::collections::VecDeque;

/// The statements of both arms, of which no lane takes both: those where `taken` holds, and the others. Both are vector code.
pub(super) fn merged_arms(func: &mut Func, taken: &Expr, mut a: Vec<Stmt>, mut b: Vec<Stmt>) -> Vec<Stmt> {
    let is_plain = |s: &Stmt| matches!(s, Stmt::Let(..) | Stmt::Mut(..) | Stmt::Set(..));
    let any = |arm: &[Stmt]| arm.iter().flat_map(Stmt::exprs).any(|e| calls(func, e));
    if a.iter().chain(&b).all(is_plain) && any(&a) && any(&b) {
        name_calls(func, &mut a);
        name_calls(func, &mut b);
        return merged(func, taken, a, b);
    }
    a.append(&mut b);
    a
}

/// Whether an expression has a call of a library function for several lanes.
pub(super) fn calls(func: &Func, e: &Expr) -> bool {
    e.any(&mut |e| call(func, e).is_some())
}

/// The function that a statement gives a name to.
fn named(func: &Func, s: &Stmt) -> Option<(Op, Scalar)> {
    if let Stmt::Let(_, e) = s { call(func, e) } else { None }
}

/// Both lists, one call of the one after the other with the next one of the same function in the other.
fn merged(func: &mut Func, taken: &Expr, a: Vec<Stmt>, b: Vec<Stmt>) -> Vec<Stmt> {
    let mut out = Vec::with_capacity(a.len() + b.len());
    let mut other = VecDeque::from(b);
    for s in a {
        let place = named(func, &s).and_then(|f| other.iter().position(|t| named(func, t) == Some(f)));
        let Some(place) = place else {
            out.push(s);
            continue;
        };
        out.extend(other.drain(..place));
        match (s, other.pop_front()) {
            (Stmt::Let(v, Expr::Op(op, ty, x)), Some(Stmt::Let(w, Expr::Op(_, _, y)))) => {
                let own = |(x, y): (Expr, Expr)| {
                    let of = func.ty(&x);
                    if x == y { x } else { Expr::Op(Op::Select, of, vec![taken.clone(), x, y]) }
                };
                let args = x.into_iter().zip(y).map(own).collect();
                out.extend([Stmt::Let(v, Expr::Op(op, ty, args)), Stmt::Let(w, Expr::Var(v))]);
            }
            (s, t) => out.extend([Some(s), t].into_iter().flatten()),
        }
    }
    out.extend(other);
    out
}
