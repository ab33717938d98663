//! Symbols and inputs of a graph become terms of the parameters of its definition.

use super::maker::{Made, Maker};
use super::scope::Bound;
use super::ways::Part;
use crate::ir::{Head, Id, Op};

impl Maker {
    /// The term of a symbol.
    pub(super) fn symbol(&mut self, k: usize) -> Made<Id> {
        let to = self.ways.symbols.get(k).cloned().ok_or("a symbol without a parameter")?;
        let whole = self.variable(Bound::Param(to.param))?;
        self.entered(whole, &to.steps, to.axis)
    }

    /// A number or size along a way, at the first element of each tensor on it; 0 where one is empty.
    fn entered(&mut self, from: Id, steps: &[Part], axis: Option<usize>) -> Made<Id> {
        let Some((step, rest)) = steps.split_first() else {
            return match axis {
                Some(axis) => self.put(Head::Size(axis), vec![from]),
                None => Ok(from),
            };
        };
        match *step {
            Part::Get(k, n) => {
                let part = self.put(Head::Get(k, n), vec![from])?;
                self.entered(part, rest, axis)
            }
            Part::Index(d) => {
                let zero = self.terms.int(0);
                let first = self.put(Head::Index(d), std::iter::repeat_n(zero, d).chain([from]).collect())?;
                let inner = self.entered(first, rest, axis)?;
                let mut out = inner;
                for k in (0..d).rev() {
                    let size = self.put(Head::Size(k), vec![from])?;
                    let some = self.put(Head::Op(Op::Gt), vec![size, zero])?;
                    out = self.put(Head::If, vec![some, out, zero])?;
                }
                Ok(out)
            }
        }
    }

    /// An element of an input at indices.
    pub(super) fn input(&mut self, k: usize, at: &[Id]) -> Made<Id> {
        let to = self.ways.inputs.get(k).cloned().ok_or("an input without a parameter")?;
        let (mut out, mut at) = (self.variable(Bound::Param(to.param))?, at);
        for step in to.steps {
            out = match step {
                Part::Get(k, n) => self.put(Head::Get(k, n), vec![out])?,
                Part::Index(d) => {
                    let (own, rest) = at.split_at_checked(d).ok_or("too few indices of an input")?;
                    at = rest;
                    self.put(Head::Index(d), own.iter().copied().chain([out]).collect())?
                }
            };
        }
        Ok(out)
    }
}
