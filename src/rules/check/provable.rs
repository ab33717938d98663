//! Terms for metavariables of which the conditions of a rule are plain to see.
//!
//! An engine applies a rule where it can prove the conditions, which it can of few random terms. It must
//! not know how the proofs are found.

use super::generate::number;
use super::instance::{Filling, Tm, metas, position};
use crate::ir::{Head, Lit, Op, Ty, TyKind};
use crate::rules::{Condition, Level, Rule};

/// A filling in which all conditions hold for reasons that anyone sees.
pub fn provable(rule: &Rule, mut filling: Filling) -> Filling {
    let known = metas(rule, &filling.types);
    let total = |c: Condition| matches!(c, Condition::Total | Condition::Defined | Condition::Valued);
    let (first, last): (Vec<_>, Vec<_>) = rule.when.iter().partition(|(c, _)| total(*c));
    for (condition, of) in first.into_iter().chain(last) {
        let at = position(rule, of[0]);
        let (ty, _, args) = &known[at];
        let old = filling.metas[at].clone();
        filling.metas[at] = match condition {
            Condition::Total | Condition::Defined | Condition::Valued => safe(*ty, args, old),
            Condition::Nonzero | Condition::Divisor | Condition::Positive | Condition::Nonnegative => match old {
                // Bits are known of literals only.
                Tm::Param(_) if rule.level == Level::Real && ty.is_linear() && ty.as_scalar().is_some() => {
                    Tm::Node(Head::Op(Op::Exp), vec![old])
                }
                _ => literal(*ty, 2.0).unwrap_or(old),
            },
            Condition::InRange => {
                filling.metas[position(rule, of[1])] = Tm::Lit(Lit::int(3));
                Tm::Lit(Lit::int(1))
            }
            Condition::SameSize => {
                let other = position(rule, of[1]);
                let (like, _, _) = &known[other];
                if like == ty {
                    filling.metas[other] = old.clone();
                    old
                } else {
                    filling.metas[other] = constant(*like).unwrap_or_else(|| filling.metas[other].clone());
                    constant(*ty).unwrap_or(old)
                }
            }
        };
    }
    filling
}

fn literal(ty: Ty, v: f64) -> Option<Tm> {
    ty.as_scalar().map(|s| Tm::Lit(number(s, v)))
}

/// A tensor of three equal elements along every axis.
fn constant(ty: Ty) -> Option<Tm> {
    match ty.kind() {
        TyKind::Tensor(rank, elem) => {
            let sizes = (0..*rank).map(|_| Tm::Lit(Lit::int(3)));
            Some(Tm::Node(Head::ConstVec(*rank), sizes.chain([constant(*elem)?]).collect()))
        }
        _ => literal(ty, 2.0),
    }
}

/// A term that cannot fail and has a value.
fn safe(ty: Ty, args: &[Ty], old: Tm) -> Tm {
    if let Tm::Param(_) | Tm::Lit(_) | Tm::Arg(_) = old {
        return old;
    }
    let index = args.iter().position(|t| *t == Ty::int());
    match (args.iter().position(|t| *t == ty), index) {
        (Some(j), _) => Tm::Arg(j),
        (None, Some(j)) if ty == Ty::float() => Tm::Node(Head::Op(Op::ToFloat), vec![Tm::Arg(j)]),
        _ => literal(ty, 2.0).unwrap_or(old),
    }
}
