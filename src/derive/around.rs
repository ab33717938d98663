//! What is evaluated whenever a term at a place is, and what is beside it.
//!
//! It must not know what that is to prove.

use super::check::Checker;
use super::flat::{Scope, bound, lowered};
use super::guard::{Guard, Guards, guard};
use super::pace::Pace;
use super::prove::{Local, MAX_INNER};
use crate::ir::{Head, Id, Lit, deep};

/// So many parts are noted that are evaluated whenever a term is, at most: to know less is no harm.
const MAX_EVALUATED: usize = 20_000;

impl Checker<'_> {
    /// The parts that are evaluated whenever a term at a place is, and in its arms those that are where the
    /// conditions say so.
    pub(super) fn evaluated(
        &mut self,
        id: Id,
        (scope, guards): (&mut Scope, &mut Guards),
        base: usize,
        out: &mut Local,
    ) {
        if matches!(self.terms.head(id), Head::Const(_))
            || out.len() >= MAX_EVALUATED
            || self.pace.is_some_and(Pace::late)
            || self.noted_outside(id, scope, (guards, base), out)
            || !out.insert((id, scope.clone(), guards.clone()))
        {
            return;
        }
        let outer = self.guards.len();
        let runs = |e: &Option<Id>| e.and_then(|e| self.terms.as_lit(e)).and_then(Lit::as_int).is_some_and(|n| n >= 1);
        if scope.len() > base
            && guards.len() == outer
            && scope[base..].iter().all(runs)
            && let Some(outside) = lowered(&mut self.terms, id, scope.len() - base)
        {
            out.insert((outside, scope[..base].to_vec(), guards.clone()));
        }
        let (head, kids) = (self.terms.head(id), self.terms.kids(id).to_vec());
        let mut arms: Vec<Local> = vec![];
        for (k, kid) in kids.iter().enumerate() {
            let (depth, around) = (scope.len(), guards.len());
            if head == Head::If && k > 0 {
                if around >= outer + MAX_INNER {
                    break;
                }
                guards.extend(guard(head, &kids, k, depth));
                let mut arm = Local::default();
                deep(|| self.evaluated(*kid, (scope, guards), base, &mut arm));
                guards.truncate(around);
                arms.push(arm);
                continue;
            }
            if head.binds(k, kids.len()) > 0 {
                scope.extend(bound(&mut self.terms, head, &kids));
            }
            deep(|| self.evaluated(*kid, (scope, guards), base, out));
            scope.truncate(depth);
        }
        if let [a, b] = arms.as_slice() {
            // What both arms evaluate is evaluated.
            let around = guards.len();
            let other = |(id, scope, under): &(Id, Scope, Guards)| {
                let no = under.last().filter(|_| under.len() == around + 1)?;
                let no = Guard { holds: !no.holds, ..*no };
                let under = guards.iter().copied().chain([no]).collect();
                b.contains(&(*id, scope.clone(), under)).then(|| (*id, scope.clone(), guards.clone()))
            };
            out.extend(a.iter().filter_map(other));
        }
        arms.into_iter().for_each(|arm| out.extend(arm));
    }

    /// Whether a part is noted around the innermost loops, under the same conditions, where it does not depend on them:
    /// else what stands in many loops would be noted for each choice of them.
    fn noted_outside(&mut self, id: Id, scope: &Scope, (guards, base): (&Guards, usize), out: &Local) -> bool {
        let free = self.terms.free(id);
        let independent = (0..scope.len().saturating_sub(base)).take_while(|i| !free.has(*i)).count();
        (1..=independent).any(|n| {
            let outside = scope.len() - n;
            let met = guards.iter().all(|g| g.depth <= outside);
            met && lowered(&mut self.terms, id, n)
                .is_some_and(|part| out.contains(&(part, scope[..outside].to_vec(), guards.clone())))
        })
    }

    /// What is evaluated whenever a place is, because what it stands in evaluates that, too: all that is outside of
    /// loops and arms around it.
    pub(super) fn beside(&mut self, root: Id, path: &[usize]) -> Local {
        let mut out = Local::default();
        let here = std::mem::replace(&mut self.guards, self.always.clone());
        let (mut id, mut scope): (Id, Scope) = (root, vec![]);
        for k in path {
            let (head, kids) = (self.terms.head(id), self.terms.kids(id).to_vec());
            for (other, kid) in kids.iter().enumerate() {
                let sure = head.binds(other, kids.len()) == 0 && (head != Head::If || other == 0);
                if sure && other != *k {
                    let mut guards = self.guards.clone();
                    self.evaluated(*kid, (&mut scope.clone(), &mut guards), scope.len(), &mut out);
                }
            }
            let Some(kid) = kids.get(*k) else { break };
            self.guards.extend(guard(head, &kids, *k, scope.len()));
            if head.binds(*k, kids.len()) > 0 {
                scope.extend(bound(&mut self.terms, head, &kids));
            }
            id = *kid;
        }
        self.guards = here;
        out
    }
}
