//! Ways to symbols and inputs of a graph in the parameters of its definition.

use crate::ir::{Param, Ty, TyKind};

/// A way into a parameter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Access {
    pub param: usize,
    /// From the outside in.
    pub steps: Vec<Part>,
    /// The axis whose size it is, through nested tensors from where the steps lead.
    pub axis: Option<usize>,
}

/// A step of a way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
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
        let with = |step: Part| {
            let steps = to.steps.iter().copied().chain([step]).collect();
            Access { steps, ..to.clone() }
        };
        match ty.kind() {
            TyKind::Tuple(parts) => {
                for (k, p) in (0..).zip(parts) {
                    self.walk(*p, &with(Part::Get(k, parts.len() as u32)));
                }
            }
            TyKind::Tensor(d, elem) => {
                for axis in 0..*d {
                    self.symbols.push(to.size(axis));
                }
                self.walk(*elem, &with(Part::Index(*d)));
            }
            _ if to.steps.iter().any(|s| matches!(s, Part::Index(_))) => self.inputs.push(to.clone()),
            _ => self.symbols.push(to.clone()),
        }
    }
}

impl Access {
    /// The way to the size of an axis: what was indexed last without a part of a tuple after it is counted through.
    fn size(&self, axis: usize) -> Access {
        let (mut steps, mut axis) = (self.steps.clone(), axis);
        while let Some(Part::Index(d)) = steps.last() {
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
