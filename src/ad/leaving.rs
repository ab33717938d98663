//! How contributions come by the lets of a scope that they leave: values that are cheap are made again, others are kept in a table
//! over the indices of the scope, where that is not ragged.
//!
//! What contributions need inside of loops of their own is kept, too, unless it is hardly more than a read: it would be made again
//! in every round, and a product of tables is a contraction to whoever schedules it. It must not know what contributions are for.

use super::adjoint::Reverse;
use super::once::is_selection;
use super::scope::{Place, Plan, Scope};
use crate::ir::op::Class;
use crate::ir::{Head, Id, Op, Scalar, Ty};

/// Terms of at most so much work are made again rather than kept in a table.
const CHEAP: usize = 64;
/// What an operation on floats counts, where one on integers counts 1.
const FLOAT: usize = 4;
/// Terms of at most so much work are hardly more than a read of a table: two operations, say.
const READ: usize = 6 * FLOAT;

impl Reverse<'_, '_> {
    /// Whether a term under loops can do without the lets of the scope.
    pub(super) fn plan_term(&mut self, scope: &mut Scope, id: Id, loops: usize) -> bool {
        let depth = scope.first_let() + scope.plans.len();
        let first = scope.first_let();
        let free = self.w.e.terms.variables(id);
        (first..depth).all(|level| !free.has(depth - 1 - level + loops) || self.plan(scope, level) != Plan::Never)
    }

    fn plan(&mut self, scope: &mut Scope, level: usize) -> Plan {
        let at = level - scope.first_let();
        if scope.plans[at] != Plan::Unknown {
            return scope.plans[at];
        }
        let plan = match self.w.e.let_value(level) {
            Some(value) if scope.may_keep(level) && self.is_part_of_row(scope, value, level) => Plan::Table,
            Some(value)
                if scope.repeated[at] && scope.may_keep(level) && self.is_worth_keeping(scope, value, level) =>
            {
                Plan::Table
            }
            Some(value) if self.again(scope, value, level, &mut 0) => Plan::Again,
            Some(value) if scope.may_keep(level) && self.uniform(scope, value, level) => Plan::Table,
            _ => Plan::Never,
        };
        scope.plans[at] = plan;
        plan
    }

    /// Notes which lets of the scope a term needs inside of loops of its own.
    pub(super) fn note_repeated(&self, scope: &mut Scope, id: Id, loops: usize) {
        if loops == 0 {
            return;
        }
        let (n, free) = (scope.plans.len(), self.w.e.terms.variables(id));
        for (at, repeated) in scope.repeated.iter_mut().enumerate() {
            *repeated |= free.has(n - 1 - at + loops);
        }
    }

    /// Whether a number takes longer to be made again in each round of a loop than to be read.
    fn is_worth_keeping(&mut self, scope: &mut Scope, value: Id, level: usize) -> bool {
        let mut count = 0;
        let number = self.w.e.ty(value).as_scalar().is_some_and(Scalar::is_float);
        number && self.again(scope, value, level, &mut count) && count > READ
    }

    /// Whether a number is a part of what a condition gives, of which a table would have to keep all parts.
    fn is_part_of_row(&mut self, scope: &mut Scope, value: Id, depth: usize) -> bool {
        let terms = &self.w.e.terms;
        let part = matches!(terms.head(value), Head::Get(..)) && !terms.ty(value).has_tensor();
        let of = if part { terms.head(terms.kids(value)[0]) } else { Head::Tuple };
        let Head::Var(i, _) = of else { return false };
        let Some(level) = (depth - 1).checked_sub(i as usize).filter(|l| *l >= scope.first_let()) else { return false };
        let row = self.w.e.let_value(level).is_some_and(|v| self.w.e.terms.head(v) == Head::If);
        row && self.plan(scope, level) == Plan::Table
    }

    /// Whether a term is cheap enough to be made again, with the lets it needs.
    fn again(&mut self, scope: &mut Scope, id: Id, depth: usize, count: &mut usize) -> bool {
        let integer = self.w.e.ty(id) == Ty::int() || self.w.e.ty(id) == Ty::bool();
        *count += if integer { 1 } else { FLOAT };
        if *count > CHEAP {
            return false;
        }
        let (head, kids) = (self.w.e.terms.head(id), self.w.e.terms.kids(id).to_vec());
        let fits = match head {
            Head::Build(_) if is_selection(self.w.e.terms, id) => {
                // An element is read of it at a time.
                let free = self.w.e.terms.variables(id);
                return (scope.first_let()..depth).all(|level| {
                    let var = (depth - 1 - level) as u32;
                    !free.has(var as usize) || {
                        let ty = self.w.e.let_value(level).map_or(Ty::int(), |v| self.w.e.ty(v));
                        let var = self.w.e.terms.var(var, ty);
                        self.again(scope, var, depth, count)
                    }
                });
            }
            Head::Var(i, _) => {
                let level = depth - 1 - i as usize;
                if level < scope.first_let() {
                    return true;
                }
                return match self.plan(scope, level) {
                    Plan::Again => match self.w.e.let_value(level) {
                        Some(value) if level == scope.first_let() && self.is_counted_back(value) => true,
                        Some(value) => self.again(scope, value, level, count),
                        None => false,
                    },
                    Plan::Table => true,
                    Plan::Unknown | Plan::Never => false,
                };
            }
            Head::Const(_) | Head::Get(..) | Head::Tuple | Head::Index(_) | Head::Cast(_) | Head::If => true,
            Head::Size(_) => matches!(self.w.e.terms.head(kids[0]), Head::Var(..)),
            Head::Op(op) => {
                let scalar = self.w.e.ty(id).as_scalar().is_some();
                scalar && (integer || matches!(op.row().class, Class::Cheap | Class::Multiply))
            }
            _ => false,
        };
        fits && kids.into_iter().all(|k| self.again(scope, k, depth, count))
    }

    /// Whether a let is the number of a step, counted from the last one: that is as good as a variable.
    fn is_counted_back(&self, value: Id) -> bool {
        let terms = &self.w.e.terms;
        let parts = |id: Id| match (terms.head(id), terms.kids(id)) {
            (Head::Op(Op::Sub), [a, b]) => Some((*a, *b)),
            _ => None,
        };
        let Some((last, step)) = parts(value) else { return false };
        let one = parts(last).and_then(|(_, one)| terms.as_lit(one)).and_then(|l| l.as_int());
        one == Some(1) && matches!(terms.head(step), Head::Var(..))
    }

    /// Whether the values of a let over all rounds of the loop make a table that is not ragged.
    fn uniform(&mut self, scope: &Scope, value: Id, level: usize) -> bool {
        // Where an arm is not taken, something of the same sizes stands for what it makes.
        let arm = scope.indices == 0;
        let sizes = self.sizes_outside(scope.outer, value, Place::at(level));
        sizes.is_some_and(|all| all.into_iter().all(|s| !arm || self.w.e.is_safe_size(s, scope.outer)))
    }
}
