//! Conditions that always hold: an assertion of one cannot fail.
//!
//! It knows sizes that are equal, and what else a prover is asked. That parts of a condition may fail is not its matter.

use super::flat::Scope;
use super::guard::Guard;
use super::prove::{MAX_INNER, Prover};
use crate::ir::{Head, Id, Lit, Op, Ty};

impl Prover<'_> {
    /// Whether a condition holds at a place.
    pub(super) fn holds(&mut self, cond: Id, scope: &Scope) -> bool {
        let kids = self.terms.kids(cond).to_vec();
        match (self.terms.head(cond), kids.as_slice()) {
            (Head::Const(lit), _) => lit == Lit::Bool(true),
            (Head::Op(Op::And), _) => kids.iter().all(|k| self.holds(*k, scope)),
            // Of two conditions one may be proved where the other one does not hold.
            (Head::Op(Op::Or), [a, b]) => {
                self.holds(*a, scope)
                    || self.holds(*b, scope)
                    || self.holds_unless(*b, *a, scope)
                    || self.holds_unless(*a, *b, scope)
            }
            (Head::Op(Op::Eq), [a, b]) if self.terms.ty(*a) == Ty::int() => self.same_size(*a, *b, scope),
            _ => false,
        }
    }

    fn holds_unless(&mut self, cond: Id, other: Id, scope: &Scope) -> bool {
        if self.guards.len() >= self.outer + MAX_INNER {
            return false;
        }
        let not = Guard { cond: other, depth: scope.len(), holds: false };
        self.given(Some(not), None, |p| p.holds(cond, scope))
    }
}
