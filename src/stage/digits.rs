//! A loop over a product whose index is taken apart by division becomes one loop for each factor.
//!
//! The loops are nested as the digits of the index, so that its values come in the order that they had.

use super::body::{Body, DimId, Node};
use super::extract::{Extract, Staged};
use crate::ir::{Id, Op, Scalar};
use rustc_hash::FxHashMap;

impl Extract<'_> {
    /// The loops in place of one, outermost first, and the bodies that name their indices. No stage may name the old one.
    pub(super) fn apart(&mut self, id: Id, d: DimId, bodies: &mut [Vec<Body>]) -> Staged<Vec<DimId>> {
        let mut out = vec![d];
        if self.g.stages.iter().any(|s| s.dims.contains(&d)) {
            return Ok(out);
        }
        while let Some((by, rest)) = self.divisor(out[0], &bodies.concat()) {
            self.size(id, rest, false)?;
            self.size(id, by, false)?;
            let name = self.g.dim(out[0]).name.clone();
            let old = self.g.bodies.index(out[0]);
            let (outer, inner) = (self.g.add_dim(format!("{name}_{}", out.len()), rest), self.g.add_dim(name, by));
            let (o, i) = (self.g.bodies.index(outer), self.g.bodies.index(inner));
            let mut memo: FxHashMap<Body, Body> = FxHashMap::default();
            for b in bodies.iter_mut().flatten() {
                *b = self.g.bodies.map(*b, &mut memo, &mut |s, b| match s.node(b) {
                    Node::Op(op, _, args) if args.as_slice() == [old, by] => match op {
                        Op::Div | Op::FloorDiv => Some(o),
                        Op::Mod | Op::FloorMod => Some(i),
                        _ => None,
                    },
                    _ => None,
                });
            }
            out.splice(0..1, [outer, inner]);
        }
        Ok(out)
    }

    /// What an index is divided by everywhere, and the other factors of how many there are: both sizes.
    fn divisor(&mut self, d: DimId, bodies: &[Body]) -> Option<(Body, Body)> {
        let index = self.g.bodies.index(d);
        let mut by: Option<Body> = None;
        for b in self.g.bodies.reachable(bodies.iter().copied()) {
            let node = self.g.bodies.node(b);
            if !node.kids().contains(&index) {
                continue;
            }
            match node {
                Node::Op(op, Scalar::I64, args)
                    if op.divides() && args[0] == index && args[1] != index && by.is_none_or(|n| n == args[1]) =>
                {
                    by = Some(args[1]);
                }
                _ => return None,
            }
        }
        let by = by.filter(|n| self.g.bodies.is_fixed(*n))?;
        let mut factors = vec![];
        self.g.bodies.factors(self.g.dim(d).extent, &mut factors);
        let at = factors.iter().position(|f| *f == by)?;
        factors.remove(at);
        let rest = factors.into_iter().reduce(|a, b| self.g.bodies.ints(Op::Mul, a, b))?;
        Some((by, rest))
    }
}
