//! Interleaves independent dependence chains of library functions in vector code, as unrolled loops have them: all first calls, then
//! all second ones, so that their latencies overlap. The reorder buffer of a processor holds a few hundred instructions, which is
//! one such chain. It must not know what unrolled the loops.

use super::name::call;
use crate::nest::{Buf, Expr, Func, Stmt, Var};
use rustc_hash::FxHashMap;

/// So many chains are interleaved: more values would not fit in registers.
pub const CHAINS: usize = 4;

/// Interleaves the chains of every block.
pub fn interleave(func: &mut Func) {
    let mut body = std::mem::take(&mut func.body);
    block(func, &mut body);
    func.body = body;
}

fn block(func: &Func, stmts: &mut [Stmt]) {
    for s in stmts.iter_mut() {
        s.blocks_mut().into_iter().for_each(|b| block(func, b));
    }
    let is_plain = |s: &Stmt| writes(s).is_some();
    stmts.chunk_by_mut(|a, b| is_plain(a) && is_plain(b)).for_each(|run| reorder(func, run));
}

/// When a statement is taken: with which chains, and after how many calls of each.
type Turn = (usize, usize);

/// What a statement sets.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    Var(Var),
    Buf(Buf),
}

/// What a statement sets that does nothing else; nothing for other statements.
fn writes(s: &Stmt) -> Option<Place> {
    match s {
        Stmt::Let(v, _) | Stmt::Mut(v, _) | Stmt::Set(v, _) => Some(Place::Var(*v)),
        Stmt::Store(b, ..) | Stmt::MaskedStore(b, ..) => Some(Place::Buf(*b)),
        _ => None,
    }
}

/// Takes statements in the order of their turns.
fn reorder(func: &Func, run: &mut [Stmt]) {
    let calls: Vec<bool> = run.iter().map(|s| is_call(func, s)).collect();
    if calls.iter().filter(|c| **c).count() <= 2 {
        return;
    }
    let turns = turns(&calls, &dependences(run));
    if !turns.iter().zip(&calls).any(|((_, before), call)| *call && *before > 0) {
        return;
    }
    let mut order: Vec<usize> = (0..run.len()).collect();
    order.sort_by_key(|k| (turns[*k], *k));
    let sorted: Vec<Stmt> = order.into_iter().map(|k| run[k].clone()).collect();
    run.clone_from_slice(&sorted);
}

/// Whether a statement names what a library function gives for all lanes.
fn is_call(func: &Func, s: &Stmt) -> bool {
    matches!(s, Stmt::Let(_, e) if call(func, e).is_some())
}

/// What has to come before each statement: what sets what it reads or sets, and what reads what it sets.
fn dependences(run: &[Stmt]) -> Vec<Vec<usize>> {
    let mut set: FxHashMap<Place, usize> = FxHashMap::default();
    let mut read: FxHashMap<Place, Vec<usize>> = FxHashMap::default();
    let mut out = Vec::with_capacity(run.len());
    for (k, s) in run.iter().enumerate() {
        let mut before = vec![];
        for e in s.exprs() {
            e.visit(&mut |e| {
                let place = match e {
                    Expr::Var(v) => Place::Var(*v),
                    Expr::Load(b, _) | Expr::MaskedLoad(b, _) => Place::Buf(*b),
                    _ => return,
                };
                before.extend(set.get(&place));
                read.entry(place).or_default().push(k);
            });
        }
        if let Some(place) = writes(s) {
            before.extend(set.insert(place, k));
            before.extend(read.remove(&place).unwrap_or_default().into_iter().filter(|r| *r != k));
        }
        out.push(before);
    }
    out
}

/// The turn of each statement, none earlier than those of what has to come before it.
fn turns(calls: &[bool], before: &[Vec<usize>]) -> Vec<Turn> {
    let mut known: Vec<Option<Turn>> = Vec::with_capacity(calls.len());
    let mut chains = 0;
    for (k, call) in calls.iter().enumerate() {
        let after = |p: &usize| known[*p].map(|(group, n)| (group, n + usize::from(calls[*p])));
        let mut turn = before[k].iter().filter_map(after).max();
        if turn.is_none() && *call {
            turn = Some((chains / CHAINS, 0));
            chains += 1;
        }
        known.push(turn);
    }
    // What waits for no call comes right before what needs it.
    let last = known.iter().flatten().max().copied().unwrap_or_default();
    let mut out: Vec<Turn> = known.iter().map(|t| t.unwrap_or(last)).collect();
    for k in (0..calls.len()).rev() {
        for p in before[k].iter().filter(|p| known[**p].is_none()) {
            out[*p] = out[*p].min(out[k]);
        }
    }
    out
}
