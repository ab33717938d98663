//! A counterexample becomes a smaller one: fewer nodes, fewer variables, plainer values.
//!
//! Every step is judged again, so what comes out is a counterexample too. It must not know rules.

use super::generate::number;
use super::instance::{Filling, Role, Slot, Tm, metas};
use super::literals::Pool;
use crate::eval::{Elements, Value};
use crate::ir::{Head, Lit, Op, Scalar, Ty, TyKind};
use crate::rules::Rule;
use std::collections::{BTreeMap, BTreeSet};

/// A filling and values at which a rule breaks its promise.
#[derive(Clone, Debug)]
pub struct Case {
    /// The terms.
    pub filling: Filling,
    /// Values of their free variables.
    pub values: Vec<Value>,
}

/// Steps that are judged at most.
const MAX_TRIES: usize = 4_000;

/// Shrinks a case for as long as `fails` says that it still is one.
pub fn shrink(rule: &Rule, mut case: Case, fails: &mut dyn FnMut(&Case) -> bool) -> Case {
    let mut tries = 0;
    'again: loop {
        for next in terms(rule, &case).into_iter().chain(plainer(&case)) {
            tries += 1;
            if tries > MAX_TRIES {
                return case;
            }
            if weight(&next) < weight(&case) && fails(&next) {
                case = next;
                continue 'again;
            }
        }
        return case;
    }
}

/// What shrinking makes less of: nodes, variables, then the weight of values.
fn weight(case: &Case) -> (usize, usize, u64) {
    let values = case.values.iter().map(value_weight).sum();
    (case.filling.size(), case.filling.slots.len(), values)
}

fn value_weight(v: &Value) -> u64 {
    match v {
        Value::Scalar(l) => 1 + simple(*l),
        Value::Tuple(parts) => parts.iter().map(value_weight).sum::<u64>(),
        Value::Tensor(t) => {
            t.dims.iter().map(|n| 40 * *n as u64).sum::<u64>() + t.iter().map(|v| value_weight(&v)).sum::<u64>()
        }
    }
}

/// The plainer a literal, the smaller.
fn simple(l: Lit) -> u64 {
    match l {
        Lit::Bool(b) => u64::from(b),
        Lit::Int(_, v) => match v {
            0 => 0,
            1 => 1,
            -1 => 2,
            v => 3 + 64 - u64::from(v.unsigned_abs().leading_zeros()),
        },
        l => match l.as_f64() {
            Some(v) => {
                let plain: [f64; 10] = [1.0, 2.0, -1.0, 3.0, 0.5, -2.0, 0.0, -0.0, 1e-300, 1e300];
                let at = plain.iter().position(|p| p.to_bits() == v.to_bits());
                at.map_or(if v.is_finite() { 20 } else { 12 }, |k| k as u64)
            }
            None => 0,
        },
    }
}

/// Cases with a smaller term for one metavariable.
fn terms(rule: &Rule, case: &Case) -> Vec<Case> {
    let known = metas(rule, &case.filling.types);
    let pool = Pool::of(rule);
    let mut out = vec![];
    for (k, (ty, _, args)) in known.iter().enumerate() {
        let old = &case.filling.metas[k];
        let mut all: Vec<Tm> = vec![];
        reduced(old, &mut all);
        all.extend((0..args.len()).filter(|j| args[*j] == *ty).map(Tm::Arg));
        all.extend((0..case.filling.slots.len()).filter(|s| case.filling.slots[*s].ty == *ty).map(Tm::Param));
        all.retain(|t| t != old && t.size() <= old.size());
        all.sort_by_key(Tm::size);
        for term in all {
            let mut next = case.clone();
            next.filling.metas[k] = term;
            out.extend(compact(next));
        }
        if let Some(j) = args.iter().position(|t| *t == Ty::int()).filter(|_| old.size() > 3) {
            out.extend(tables(*ty).into_iter().filter_map(|table| {
                let mut next = case.clone();
                next.filling.slots.push(Slot { ty: Ty::tensor(1, *ty), role: Role::Free });
                next.values.push(table);
                let read = vec![Tm::Arg(j), Tm::Param(next.filling.slots.len() - 1)];
                next.filling.metas[k] = Tm::Node(Head::Index(1), read);
                compact(next)
            }));
        }
        if old.size() > 1 {
            out.extend(simple_values(*ty, &pool).into_iter().filter_map(|value| {
                let mut next = case.clone();
                next.filling.slots.push(Slot { ty: *ty, role: Role::Free });
                next.values.push(value);
                next.filling.metas[k] = Tm::Param(next.filling.slots.len() - 1);
                compact(next)
            }));
        }
    }
    out
}

/// Terms with one node less or more: a child for its parent, anywhere in the term.
fn reduced(tm: &Tm, out: &mut Vec<Tm>) {
    let Tm::Node(head, kids) = tm else { return };
    for (k, kid) in kids.iter().enumerate() {
        if head.binds(k, kids.len()) == 0 {
            out.push(kid.clone());
            // What has no value has none for a smaller reason.
            if kids.len() > 1 {
                out.extend([Op::Log, Op::Sqrt].map(|op| Tm::Node(Head::Op(op), vec![kid.clone()])));
            }
        }
        let mut inner = vec![];
        reduced(kid, &mut inner);
        if head.binds(k, kids.len()) == 0 {
            out.extend(inner.iter().cloned());
        }
        out.extend(inner.into_iter().map(|t| {
            let mut kids = kids.clone();
            kids[k] = t;
            Tm::Node(*head, kids)
        }));
    }
}

/// Elements whose sum, or least and greatest, depends on the order, or that differ at least.
fn tables(ty: Ty) -> Vec<Value> {
    let Some(s) = ty.as_scalar().filter(|s| *s != Scalar::Bool) else { return vec![] };
    let table =
        |each: &[f64]| Value::tensor(vec![each.len()], each.iter().map(|v| Value::Scalar(number(s, *v))).collect());
    match s.is_float() {
        true => vec![
            table(&[-0.0, 0.0]),
            table(&[1.0, 1e16, -1e16]),
            table(&[0.1, 0.2, 0.3, 0.4]),
            table(&[1e16, 1.0, 1.0, 1.0, -1e16]),
        ],
        false => vec![table(&[1.0, 0.0]), table(&[2.0, 1.0, 0.0])],
    }
}

fn simple_values(ty: Ty, pool: &Pool) -> Vec<Value> {
    match ty.kind() {
        TyKind::Scalar(Scalar::Bool) => [false, true].map(|b| Value::Scalar(Lit::Bool(b))).to_vec(),
        TyKind::Scalar(s) => {
            let usual = [1.0, 2.0, -1.0, 0.0].map(|v| number(*s, v));
            usual.into_iter().chain(pool.literals(*s)).map(Value::Scalar).collect()
        }
        _ => vec![],
    }
}

/// Without variables that no term uses. Nothing where the terms use none of a kind that they must.
fn compact(mut case: Case) -> Option<Case> {
    let mut used = BTreeSet::new();
    case.filling.metas.iter().for_each(|t| t.params(&mut used));
    let map: BTreeMap<usize, usize> = used.iter().enumerate().map(|(new, old)| (*old, new)).collect();
    case.filling.metas = case.filling.metas.iter().map(|t| t.renumbered(&map)).collect();
    case.filling.slots = used.iter().map(|k| case.filling.slots.get(*k).cloned()).collect::<Option<_>>()?;
    case.values = used.iter().map(|k| case.values.get(*k).cloned()).collect::<Option<_>>()?;
    Some(case)
}

/// Cases with a plainer value for one variable, or smaller sizes for all.
fn plainer(case: &Case) -> Vec<Case> {
    let mut out = vec![];
    for n in [0, 1, 2] {
        let mut next = case.clone();
        for (v, slot) in next.values.iter_mut().zip(&case.filling.slots) {
            match (&*v, slot.role) {
                (Value::Tensor(_), _) => *v = cut(v, n),
                (Value::Scalar(Lit::Int(s, m)), Role::Size) if *m > n as i64 => {
                    *v = Value::Scalar(Lit::Int(*s, n as i64));
                }
                _ => {}
            }
        }
        out.push(next);
    }
    for k in 0..case.values.len() {
        for v in smaller(&case.values[k]) {
            let mut next = case.clone();
            next.values[k] = v;
            out.push(next);
        }
    }
    out
}

/// A tensor with sizes of at most `n`.
fn cut(v: &Value, n: usize) -> Value {
    let Value::Tensor(t) = v else { return v.clone() };
    let dims: Vec<usize> = t.dims.iter().map(|d| (*d).min(n)).collect();
    let total: usize = dims.iter().product();
    let mut elements = Elements::default();
    for at in 0..total {
        let (mut rest, mut index) = (at, vec![0; dims.len()]);
        for k in (0..dims.len()).rev() {
            index[k] = rest % dims[k];
            rest /= dims[k];
        }
        let old = index.iter().zip(&t.dims).fold(0, |a, (i, d)| a * d + i);
        elements.push(cut(&t.get(old), n));
    }
    Value::tensor(dims, elements)
}

fn smaller(v: &Value) -> Vec<Value> {
    match v {
        Value::Scalar(l) => literals(*l).into_iter().map(Value::Scalar).collect(),
        Value::Tuple(parts) => replaced(parts).into_iter().map(Value::tuple).collect(),
        Value::Tensor(t) => {
            let cuts = (0..t.dims.iter().copied().max().unwrap_or(0)).take(4).map(|n| cut(v, n));
            let uniform = t.first().map(|x| Value::tensor(t.dims.clone(), vec![x; t.len()].into()));
            let each = if t.len() <= 8 { replaced(&t.iter().collect::<Vec<_>>()) } else { vec![] };
            cuts.chain(uniform).chain(each.into_iter().map(|d| Value::tensor(t.dims.clone(), d.into()))).collect()
        }
    }
}

fn replaced(each: &[Value]) -> Vec<Vec<Value>> {
    let one = |k: usize| {
        smaller(&each[k]).into_iter().map(move |v| {
            let mut all = each.to_vec();
            all[k] = v;
            all
        })
    };
    (0..each.len()).flat_map(one).collect()
}

fn literals(l: Lit) -> Vec<Lit> {
    let all = match l {
        Lit::Bool(_) => vec![Lit::Bool(false)],
        Lit::Int(s, v) => [0, 1, -1, 2, 3, v / 2].map(|v| Lit::Int(s, s.wrap(v))).to_vec(),
        l => match l.ty().as_scalar() {
            Some(s) => {
                let whole = l.as_f64().unwrap_or_default().round();
                [1.0, 2.0, -1.0, 3.0, 0.5, -2.0, 0.0, -0.0, 1e300, whole].map(|v| Lit::of(s, v)).to_vec()
            }
            None => vec![],
        },
    };
    all.into_iter().filter(|n| *n != l && simple(*n) < simple(l)).collect()
}
