//! Where symbols and inputs of a graph are found in the parameters of its definition.

use super::Made;
use super::definition::Maker;
use super::scope::Bound;
use crate::ir::{Head, Id, Op, Param, Ty, TyKind};

/// A way into a parameter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Access {
    param: usize,
    /// From the outside in.
    steps: Vec<Step>,
    /// The axis whose size it is, through nested tensors from where the steps lead.
    axis: Option<usize>,
}

/// A step of a way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// A part of a tuple of so many.
    Get(u32, u32),
    /// An element of a tensor of a rank.
    Index(usize),
}

/// The ways to symbols and to inputs, in the order in which a graph has them.
#[derive(Default)]
pub(super) struct Ways {
    pub symbols: Vec<Access>,
    pub inputs: Vec<Access>,
}

impl Ways {
    pub fn new(params: &[Param]) -> Ways {
        let mut out = Ways::default();
        for (param, p) in params.iter().enumerate() {
            out.walk(p.ty, &Access { param, steps: vec![], axis: None });
        }
        out
    }

    fn walk(&mut self, ty: Ty, to: &Access) {
        let with = |step: Step| {
            let steps = to.steps.iter().copied().chain([step]).collect();
            Access { steps, ..to.clone() }
        };
        match ty.kind() {
            TyKind::Tuple(parts) => {
                for (k, p) in (0..).zip(parts) {
                    self.walk(*p, &with(Step::Get(k, parts.len() as u32)));
                }
            }
            TyKind::Tensor(d, elem) => {
                for axis in 0..*d {
                    self.symbols.push(to.size(axis));
                }
                self.walk(*elem, &with(Step::Index(*d)));
            }
            _ if to.steps.iter().any(|s| matches!(s, Step::Index(_))) => self.inputs.push(to.clone()),
            _ => self.symbols.push(to.clone()),
        }
    }
}

impl Access {
    /// The way to the size of an axis: what was indexed last without a part of a tuple after it is counted through.
    fn size(&self, axis: usize) -> Access {
        let (mut steps, mut axis) = (self.steps.clone(), axis);
        while let Some(Step::Index(d)) = steps.last() {
            axis += d;
            steps.pop();
        }
        Access { param: self.param, steps, axis: Some(axis) }
    }

    /// The size of a parameter's axis, where it is that.
    pub fn own_axis(&self) -> Option<(usize, usize)> {
        self.axis.filter(|_| self.steps.is_empty()).map(|axis| (self.param, axis))
    }
}

impl Maker {
    /// The term of a symbol.
    pub(super) fn symbol(&mut self, k: usize) -> Made<Id> {
        let to = self.ways.symbols.get(k).cloned().ok_or("a symbol without a parameter")?;
        let whole = self.variable(Bound::Param(to.param))?;
        self.entered(whole, &to.steps, to.axis)
    }

    /// A number or size along a way, at the first element of each tensor on it; 0 where one is empty.
    fn entered(&mut self, from: Id, steps: &[Step], axis: Option<usize>) -> Made<Id> {
        let Some((step, rest)) = steps.split_first() else {
            return match axis {
                Some(axis) => self.put(Head::Size(axis), vec![from]),
                None => Ok(from),
            };
        };
        match *step {
            Step::Get(k, n) => {
                let part = self.put(Head::Get(k, n), vec![from])?;
                self.entered(part, rest, axis)
            }
            Step::Index(d) => {
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
                Step::Get(k, n) => self.put(Head::Get(k, n), vec![out])?,
                Step::Index(d) => {
                    let (own, rest) = at.split_at_checked(d).ok_or("too few indices of an input")?;
                    at = rest;
                    self.put(Head::Index(d), own.iter().copied().chain([out]).collect())?
                }
            };
        }
        Ok(out)
    }
}
