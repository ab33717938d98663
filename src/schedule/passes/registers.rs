//! Small buffers of which every access is at a known place become variables: a compiler keeps them in registers.
//!
//! A place is a number, or so many numbers in a row; each place is one variable, so places must not overlap. Where lanes of it are
//! read under a mask, the others are chosen to be 0. A variable is declared where the buffer was taken, with a value that nobody
//! reads: the nest reads nothing that was not written.

use crate::ir::{Lit, Op, Scalar};
use crate::nest::{Arg, Buf, Expr, Func, Info, LoopKind, Stmt, Var, walk};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Buffers with more places stay in memory: there are not so many registers, and a stack is memory.
const MAX_PLACES: usize = 64;

/// First number and how many.
type Place = (i64, u32);

/// Makes variables of the buffers of a function that allow it.
pub fn promote(func: &mut Func) {
    let of = places(func);
    if of.is_empty() {
        return;
    }
    let mut vars: FxHashMap<Buf, BTreeMap<Place, Var>> = FxHashMap::default();
    for (b, all) in of {
        let Info { name, ty, .. } = func.buf(b).clone();
        let each = all.into_iter().map(|p| (p, func.fresh_var(Info { name: name.clone(), ty, lanes: p.1 })));
        vars.insert(b, each.collect());
    }
    let mut body = std::mem::take(&mut func.body);
    block(func, &vars, &mut body);
    func.body = body;
}

/// The buffers all of whose accesses are at known places that do not overlap, with those places.
fn places(func: &Func) -> BTreeMap<Buf, Vec<Place>> {
    let mut found: BTreeMap<Buf, BTreeMap<Place, ()>> = BTreeMap::new();
    let mut taken: FxHashSet<Buf> = FxHashSet::default();
    let mut bad: FxHashSet<Buf> = FxHashSet::default();
    // What is handed out is memory, and results are read where the nest's own variables may be gone.
    for r in &func.results {
        bad.extend(if let Arg::Data(b, _) = r { Some(*b) } else { None });
        r.expr().visit(&mut |e| {
            if let Expr::Load(b, _) | Expr::MaskedLoad(b, _) = e {
                bad.insert(*b);
            }
        });
    }
    set_in_independent(&func.body, 0, &mut FxHashMap::default(), &mut bad);
    let mut access = |b: Buf, at: &Expr, bad: &mut FxHashSet<Buf>| match place(at) {
        Some(p) => drop(found.entry(b).or_default().insert(p, ())),
        None => drop(bad.insert(b)),
    };
    walk::visit(&func.body, &mut |s| {
        match s {
            Stmt::Alloc(b, _) => bad.extend((!taken.insert(*b)).then_some(*b)),
            Stmt::Store(b, at, _) => access(*b, at, &mut bad),
            Stmt::MaskedStore(b, ..) | Stmt::StoreLane(b, ..) => drop(bad.insert(*b)),
            Stmt::Point(b, of, _) => bad.extend([*b, *of]),
            Stmt::Call(_, args, _) | Stmt::Print(_, args, _) => {
                bad.extend(args.iter().filter_map(|a| if let Arg::Data(b, _) = a { Some(*b) } else { None }));
            }
            _ => {}
        }
        for e in s.exprs() {
            e.visit(&mut |e| match e {
                Expr::Load(b, at) => access(*b, at, &mut bad),
                Expr::MaskedLoad(b, parts) => access(*b, &parts[0], &mut bad),
                _ => {}
            });
        }
    });
    let apart = |all: &BTreeMap<Place, ()>| {
        let ends: Vec<Place> = all.keys().copied().collect();
        ends.len() <= MAX_PLACES && ends.windows(2).all(|w| w[0].0 + i64::from(w[0].1) <= w[1].0)
    };
    let good = |(b, all): &(Buf, BTreeMap<Place, ()>)| {
        taken.contains(b) && !bad.contains(b) && func.buf(*b).lanes == 1 && apart(all)
    };
    found.into_iter().filter(good).map(|(b, all)| (b, all.into_keys().collect())).collect()
}

/// Buffers that are taken outside of a loop and set in it, where its iterations are independent: each has its own use of the
/// memory, but a variable would be that of all.
fn set_in_independent(stmts: &[Stmt], loops: usize, taken: &mut FxHashMap<Buf, usize>, out: &mut FxHashSet<Buf>) {
    for s in stmts {
        match s {
            Stmt::Alloc(b, _) => drop(taken.insert(*b, loops)),
            Stmt::Store(b, ..) if taken.get(b).is_some_and(|at| *at != loops) => drop(out.insert(*b)),
            _ => {}
        }
        let own = matches!(s, Stmt::For(l) if l.independent || l.kind != LoopKind::Serial);
        s.blocks().into_iter().for_each(|b| set_in_independent(b, loops + usize::from(own), taken, out));
    }
}

/// The place of an access, where it is known.
fn place(at: &Expr) -> Option<Place> {
    match at {
        Expr::Lit(_) => at.as_int().map(|k| (k, 1)),
        Expr::Ramp(parts, n) => match (parts[0].as_int(), parts[1].as_int()) {
            (Some(first), Some(1)) => Some((first, *n)),
            _ => None,
        },
        _ => None,
    }
}

fn block(func: &Func, vars: &FxHashMap<Buf, BTreeMap<Place, Var>>, stmts: &mut Vec<Stmt>) {
    let mut out = Vec::with_capacity(stmts.len());
    let var = |b: &Buf, at: &Expr| vars.get(b).and_then(|all| all.get(&place(at)?)).copied();
    for mut s in stmts.drain(..) {
        for e in s.exprs_mut() {
            e.map(&mut |e| match e {
                Expr::Load(b, at) => {
                    if let Some(v) = var(b, at) {
                        *e = Expr::Var(v);
                    }
                }
                Expr::MaskedLoad(b, parts) => {
                    if let Some(v) = var(b, &parts[0]) {
                        let Info { ty, lanes, .. } = *func.var(v);
                        *e = Expr::Op(Op::Select, ty, vec![parts[1].clone(), Expr::Var(v), zero(ty, lanes)]);
                    }
                }
                _ => {}
            });
        }
        s.blocks_mut().into_iter().for_each(|b| block(func, vars, b));
        match s {
            Stmt::Alloc(b, _) if vars.contains_key(&b) => {
                let all = vars[&b].values();
                out.extend(all.map(|v| Stmt::Mut(*v, zero(func.var(*v).ty, func.var(*v).lanes))));
            }
            Stmt::Store(b, at, e) => match var(&b, &at) {
                Some(v) => out.push(Stmt::Set(v, e)),
                None => out.push(Stmt::Store(b, at, e)),
            },
            s => out.push(s),
        }
    }
    *stmts = out;
}

/// Zero: where a variable is declared, nobody reads it; where a mask does not hold, it stands for what is not read.
fn zero(ty: Scalar, lanes: u32) -> Expr {
    let zero = Expr::Lit(Lit::zero(ty));
    if lanes == 1 { zero } else { Expr::Broadcast(Box::new(zero), lanes) }
}
