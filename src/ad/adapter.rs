//! A derivative that somebody wrote becomes one that is called like those that are made: with arguments one by
//! one, then tangents of some of them or the adjoint, for the parts that are asked for.
//!
//! It must not know of bodies.

use super::emit::{Emit, Val};
use super::flow::has_floats;
use super::mode::Mode;
use super::walk::Walk;
use super::written::{ByHand, packed};
use crate::ir::{Fun, Head, Id, Ty};

/// The body of such a derivative by the parameters `wrt`, whose parameters, in scope, are the arguments and the rest.
pub fn body(w: &mut Walk<'_, '_>, own: ByHand, (mode, wrt): (Mode, &[bool]), (args, rest): (&[Val], &[Val])) -> Id {
    match mode {
        Mode::Forward => forward(w, own, wrt, args, rest),
        Mode::Reverse => {
            let mark = w.e.depth();
            let (all, whole) = reverse(w, own, args, rest[0]);
            let floats: Vec<bool> = args.iter().map(|a| has_floats(w.e.ty(a.id))).collect();
            let given: Vec<usize> = (0..args.len()).filter(|k| whole || floats[*k]).collect();
            let n = given.len();
            if n == 1 {
                let all = w.e.now(all);
                return w.e.close(mark, all);
            }
            let all = w.e.now(all);
            let all = w.e.bind(all);
            let of = w.e.now(all);
            let chosen = given.iter().enumerate().filter(|(_, k)| wrt[**k]);
            let parts: Vec<Id> = chosen.map(|(at, _)| w.e.get(at as u32, n as u32, of)).collect();
            let parts = pack(&mut w.e, parts);
            w.e.close(mark, parts)
        }
    }
}

fn forward(w: &mut Walk<'_, '_>, own: ByHand, wrt: &[bool], args: &[Val], rest: &[Val]) -> Id {
    let args: Vec<Id> = args.iter().map(|v| w.e.now(*v)).collect();
    let mut given = rest.iter();
    let mut changes = vec![];
    for (by, arg) in wrt.iter().zip(&args) {
        let change = if *by { given.next() } else { None };
        changes.push(match change {
            Some(change) => w.e.now(*change),
            None => w.zero(*arg, &[]),
        });
    }
    match own {
        // Passes are about the way back alone.
        ByHand::Packed(g) | ByHand::Passes(g, _) => {
            let both = [pack(&mut w.e, args), pack(&mut w.e, changes)];
            call(&mut w.e, g, &both)
        }
        ByHand::Flat(g, whole) => {
            let moving: Vec<Id> =
                args.iter().zip(changes).filter(|(a, _)| whole || has_floats(w.e.ty(**a))).map(|(_, c)| c).collect();
            call(&mut w.e, g, &[args, moving].concat())
        }
    }
}

/// The adjoints of arguments, and whether those without floats are among them.
fn reverse(w: &mut Walk<'_, '_>, own: ByHand, args: &[Val], dr: Val) -> (Val, bool) {
    let e = &mut w.e;
    let args: Vec<Id> = args.iter().map(|v| e.now(*v)).collect();
    let (all, whole) = match own {
        ByHand::Packed(g) => {
            let both = [pack(e, args), e.now(dr)];
            (call(e, g, &both), true)
        }
        ByHand::Flat(g, whole) => {
            let all = [args, vec![e.now(dr)]].concat();
            (call(e, g, &all), whole)
        }
        ByHand::Passes(there, back) => {
            let both = call(e, there, &args);
            let both = e.bind(both);
            let both = e.now(both);
            let left = e.get(1, 2, both);
            let both = [e.now(dr), left];
            (call(e, back, &both), true)
        }
    };
    (e.val(all), whole)
}

fn pack(e: &mut Emit<'_>, each: Vec<Id>) -> Id {
    match each.as_slice() {
        [one] => *one,
        _ => e.put(Head::Tuple, each),
    }
}

/// A call: several arguments and one tuple of them are the same.
fn call(e: &mut Emit<'_>, g: Fun, args: &[Id]) -> Id {
    let takes = &g.sig().params;
    let tys: Vec<Ty> = args.iter().map(|a| e.ty(*a)).collect();
    if *takes == tys {
        return e.put(Head::Call(g), args.iter().copied());
    }
    if *takes == [packed(&tys)] {
        let one = e.put(Head::Tuple, args.iter().copied());
        return e.put(Head::Call(g), [one]);
    }
    let n = takes.len() as u32;
    let parts: Vec<Id> = (0..n).map(|k| e.get(k, n, args[0])).collect();
    e.put(Head::Call(g), parts)
}
