//! Which indices grow by one every few lanes, so that what is read there are runs of neighbours whose lanes are woven.
//! It must not know how vectors become text.

use super::divergence::{Class, Divergence};
use crate::ir::{Op, Scalar};
use crate::nest::Expr;
use crate::nest::stretch::{SHARED, Stretch};

impl Divergence {
    /// How an index stretches over the lanes, if it does so.
    pub fn stretch(&self, at: &Expr) -> Option<Stretch> {
        match at {
            Expr::Var(v) => self.stretched(*v).cloned(),
            Expr::Op(Op::Div, Scalar::I64, args) => {
                let by = args[1].as_int().filter(|by| SHARED.contains(by))?;
                let first = args[0].clone();
                let steps = self.class(&first) == Class::Affine(Expr::int(1)) && self.steady(&first);
                steps.then_some(Stretch { base: Expr::int(0), first, by })
            }
            Expr::Op(op @ (Op::Add | Op::Sub), Scalar::I64, args) => {
                let (own, other) = match op {
                    Op::Add if self.is_uniform(&args[0]) => (&args[1], &args[0]),
                    _ => (&args[0], &args[1]),
                };
                let of = self.stretch(own).filter(|_| self.is_uniform(other) && self.steady(other))?;
                Some(Stretch { base: Expr::index_op(*op, of.base, other.clone()), ..of })
            }
            _ => None,
        }
    }
}
