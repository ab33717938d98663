//! A rule's left side is matched with a flat term, and its right side made from the match.
//!
//! Nothing is shared with the search: this is the definition of what a rule says.

use super::flat::lowered;
use crate::ir::{Head, Id, Terms, Ty, TyKind, deep};
use crate::rules::{Meta, Rule};
use rustc_hash::FxHashMap;

/// What a rule's variables stand for.
#[derive(Default)]
pub struct Match {
    /// Plain metavariables by terms outside the rule's binders; applied ones by terms whose
    /// innermost variables are the arguments, in order.
    pub metas: FxHashMap<Meta, Id>,
    types: FxHashMap<&'static str, Ty>,
}

struct Side<'a> {
    rule: &'a Rule,
    terms: &'a mut Terms,
    found: Match,
}

/// The match of a rule's left side with a term.
pub fn matched(rule: &Rule, terms: &mut Terms, id: Id) -> Option<Match> {
    let mut side = Side { rule, terms, found: Match::default() };
    side.fits(rule.sides.sides.0, id, 0).then_some(side.found)
}

/// The right side of a rule.
pub fn instance(rule: &Rule, terms: &mut Terms, found: Match) -> Option<Id> {
    Side { rule, terms, found }.make(rule.sides.sides.1, 0)
}

impl Side<'_> {
    /// The metavariable that a node of the pattern is, and its arguments.
    fn meta(&self, pattern: Id, depth: usize) -> Option<(Meta, Vec<Id>)> {
        let terms = &self.rule.sides.terms;
        match terms.head(pattern) {
            Head::Var(i, _) if i as usize >= depth => {
                Some((Meta::Plain(self.rule.sides.params.len() - 1 - (i as usize - depth)), vec![]))
            }
            Head::Call(f) => {
                let k = self.rule.sides.funs.iter().position(|g| *g == f)?;
                Some((Meta::Applied(k), terms.kids(pattern).to_vec()))
            }
            _ => None,
        }
    }

    fn fits(&mut self, pattern: Id, id: Id, depth: usize) -> bool {
        if let Some((meta, args)) = self.meta(pattern, depth) {
            let Some(value) = self.abstracted(&args, id, depth) else { return false };
            let fits = fit(self.rule.meta_ty(meta), self.terms.ty(id), &mut self.found.types);
            return fits && *self.found.metas.entry(meta).or_insert(value) == value;
        }
        let rule = self.rule;
        let (want, have) = (rule.sides.terms.head(pattern), self.terms.head(id));
        let same = match (want, have) {
            (Head::Var(i, a), Head::Var(j, b)) => i == j && fit(a, b, &mut self.found.types),
            _ => want == have,
        };
        let (left, right) = (rule.sides.terms.kids(pattern), self.terms.kids(id).to_vec());
        let n = left.len();
        same && n == right.len() && (0..n).all(|k| deep(|| self.fits(left[k], right[k], depth + want.binds(k, n))))
    }

    /// A term under `depth` binders of the rule as a function of the variables it is applied to. It
    /// must depend on no other of them.
    fn abstracted(&mut self, args: &[Id], id: Id, depth: usize) -> Option<Id> {
        let indices = args.iter().map(|a| match self.rule.sides.terms.head(*a) {
            Head::Var(i, _) => Some(i as usize),
            _ => None,
        });
        let indices: Vec<usize> = indices.collect::<Option<_>>()?;
        let (free, n) = (self.terms.free(id), indices.len());
        if (0..depth).any(|i| free.has(i) && !indices.contains(&i)) {
            return None;
        }
        if n == 0 {
            return lowered(self.terms, id, depth);
        }
        Some(self.terms.map_free(id, 0, &mut |t, i, ty, under| {
            let new = match indices.iter().position(|j| *j == i as usize) {
                Some(p) => n - 1 - p,
                None => i as usize - depth + n,
            };
            t.var((new + under) as u32, ty)
        }))
    }

    fn make(&mut self, pattern: Id, depth: usize) -> Option<Id> {
        if let Some((meta, args)) = self.meta(pattern, depth) {
            let value = *self.found.metas.get(&meta)?;
            let args = args.iter().map(|a| self.make(*a, depth)).collect::<Option<Vec<_>>>()?;
            let n = args.len();
            // Inside the binders of this side, the outer variables are further out.
            let inside = self
                .terms
                .map_free(value, n, &mut |t, i, ty, under| t.var((i as usize + n + depth + under) as u32, ty));
            return Some(if n == 0 { inside } else { self.terms.substitute(inside, &args) });
        }
        let rule = self.rule;
        let head = match rule.sides.terms.head(pattern) {
            Head::Var(i, ty) => Head::Var(i, typed(ty, &self.found.types)?),
            other => other,
        };
        let kids = rule.sides.terms.kids(pattern).to_vec();
        let n = kids.len();
        let kids = kids.iter().enumerate().map(|(k, kid)| deep(|| self.make(*kid, depth + head.binds(k, n))));
        let kids = kids.collect::<Option<Vec<_>>>()?;
        self.terms.add(head, kids).ok()
    }
}

/// Fits a type of a rule to an actual one.
fn fit(pattern: Ty, actual: Ty, types: &mut FxHashMap<&'static str, Ty>) -> bool {
    match (pattern.kind(), actual.kind()) {
        (TyKind::Var(range, name), _) => range.holds(actual) && *types.entry(name).or_insert(actual) == actual,
        (TyKind::Tensor(r, a), TyKind::Tensor(s, b)) => r == s && fit(*a, *b, types),
        (TyKind::Tuple(a), TyKind::Tuple(b)) => a.len() == b.len() && a.iter().zip(b).all(|(x, y)| fit(*x, *y, types)),
        _ => pattern == actual,
    }
}

/// A type of a rule with its variables replaced.
fn typed(ty: Ty, types: &FxHashMap<&'static str, Ty>) -> Option<Ty> {
    Some(match ty.kind() {
        TyKind::Var(_, name) => *types.get(name)?,
        TyKind::Tensor(r, e) => Ty::tensor(*r, typed(*e, types)?),
        TyKind::Tuple(parts) => Ty::tuple(parts.iter().map(|p| typed(*p, types)).collect::<Option<Vec<_>>>()?),
        TyKind::Scalar(_) | TyKind::String => ty,
    })
}
