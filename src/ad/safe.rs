//! Whether sizes can fail: what may is computed only where there is something of that size.
//!
//! It must not know what a derivative is.

use super::emit::{Emit, Val};
use crate::ir::{Head, Id, Op, Ty, deep};

/// Of so many terms it is looked for whether a size can fail.
const SEEN: usize = 200;

impl Emit<'_> {
    /// Of the sizes of a tensor those that may stand wherever it does. The sizes of elements may fail, and are to do so
    /// only where there are elements.
    pub fn only_safe(&self, ty: Ty, sizes: &mut Vec<Val>) {
        let rank = ty.as_tensor().map_or(0, |(rank, _)| rank);
        if sizes.iter().skip(rank).any(|s| !self.is_safe_size(s.id, s.depth)) {
            sizes.truncate(rank);
        }
    }

    /// Whether a term is made of variables and parts of tuples alone.
    fn is_part_of_variables(&self, id: Id) -> bool {
        match self.terms.head(id) {
            Head::Var(..) => true,
            Head::Get(..) | Head::Tuple => self.terms.kids(id).iter().all(|k| deep(|| self.is_part_of_variables(*k))),
            _ => false,
        }
    }

    /// Whether an integer where `depth` variables are in scope cannot fail, its lets included, as can be seen of
    /// few terms.
    pub fn is_safe_size(&self, size: Id, depth: usize) -> bool {
        self.is_safe(size, depth, &mut 0)
    }

    fn is_safe(&self, size: Id, depth: usize, seen: &mut usize) -> bool {
        *seen += 1;
        if *seen > SEEN {
            return false;
        }
        let kids = self.terms.kids(size);
        match self.terms.head(size) {
            Head::Var(i, _) => {
                let level = depth - 1 - i as usize;
                let value = if level < self.depth() { self.let_value(level) } else { None };
                value.is_none_or(|v| self.is_safe(v, level, seen))
            }
            Head::Const(_) => true,
            Head::Size(_) => self.is_part_of_variables(kids[0]),
            Head::Op(Op::Div | Op::Mod | Op::FloorDiv | Op::FloorMod) => {
                let by = self.terms.as_lit(kids[1]).and_then(|l| l.as_int());
                by.is_some_and(|by| by != 0) && self.is_safe(kids[0], depth, seen)
            }
            Head::Op(Op::Add | Op::Sub | Op::Mul | Op::Neg | Op::Min | Op::Max)
            | Head::Op(Op::Lt | Op::Gt | Op::Lte | Op::Gte | Op::Eq | Op::Ne | Op::And | Op::Or | Op::Not)
            | Head::If => kids.iter().all(|k| self.is_safe(*k, depth, seen)),
            _ => false,
        }
    }
}
