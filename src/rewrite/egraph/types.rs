//! Types of rules, which may hold type variables, are fitted to types of programs.

use crate::ir::{Ty, TyKind};
use rustc_hash::FxHashMap;

/// Fits a type of a rule to an actual one; whether that goes.
pub fn bind(pattern: Ty, actual: Ty, types: &mut FxHashMap<&'static str, Ty>) -> bool {
    match (pattern.kind(), actual.kind()) {
        (TyKind::Var(range, name), _) => range.holds(actual) && *types.entry(name).or_insert(actual) == actual,
        (TyKind::Tensor(r, a), TyKind::Tensor(s, b)) => r == s && bind(*a, *b, types),
        (TyKind::Tuple(a), TyKind::Tuple(b)) => a.len() == b.len() && a.iter().zip(b).all(|(x, y)| bind(*x, *y, types)),
        _ => pattern == actual,
    }
}

/// Whether a type of a rule may fit an actual one; whether it does is known once all its types are.
pub fn fits(pattern: Ty, actual: Ty) -> bool {
    match (pattern.kind(), actual.kind()) {
        (TyKind::Var(range, _), _) => range.holds(actual),
        (TyKind::Tensor(r, a), TyKind::Tensor(s, b)) => r == s && fits(*a, *b),
        (TyKind::Tuple(a), TyKind::Tuple(b)) => a.len() == b.len() && a.iter().zip(b).all(|(x, y)| fits(*x, *y)),
        _ => pattern == actual,
    }
}

/// The type that a type of a rule stands for in a match.
pub fn instance(ty: Ty, types: &FxHashMap<&'static str, Ty>) -> Option<Ty> {
    match ty.kind() {
        TyKind::Var(_, name) => types.get(name).copied(),
        TyKind::Tensor(r, e) => Some(Ty::tensor(*r, instance(*e, types)?)),
        TyKind::Tuple(parts) => Some(Ty::tuple(parts.iter().map(|p| instance(*p, types)).collect::<Option<Vec<_>>>()?)),
        TyKind::Scalar(_) | TyKind::String => Some(ty),
    }
}
