//! A loop over a product whose index is taken apart by division becomes one loop for each factor.
//!
//! The loops are nested as the digits of the index, so that its values come in the order that they had. What is computed for
//! each index is computed for each of its digits.

use super::body::{Body, DimId, Node, Source, StageId};
use super::delinearize::Tables;
use super::extract::{Extract, Staged};
use super::graph::{Definition, Stage};
use crate::ir::{Id, Op, Scalar};

/// A loop as two of its digits.
struct Digits {
    /// What the index is divided by.
    by: Body,
    /// How many iterations the loops over quotients and over remainders have.
    extents: [Body; 2],
}

impl Extract<'_> {
    /// The loops in place of one, outermost first, and the bodies that name their indices.
    pub(super) fn apart(&mut self, id: Id, d: DimId, bodies: &mut [Vec<Body>]) -> Staged<Vec<DimId>> {
        let mut out = vec![d];
        while let Some(hosts) = self.hosts(out[0])
            && let Some(found) = self.digits(out[0], &bodies.concat(), &hosts)
        {
            for extent in found.extents {
                self.size(id, extent, false)?;
            }
            let ([rest, by], name) = (found.extents, self.g.dim(out[0]).name.clone());
            let new = [self.g.add_dim(format!("{name}_{}", out.len()), rest), self.g.add_dim(name, by)];
            for b in bodies.iter_mut().flatten() {
                *b = self.g.by_digits(*b, out[0], found.by, new, &hosts);
            }
            for (s, k) in &hosts {
                let mut stage = self.g.stage(*s).clone();
                stage.bodies_mut().for_each(|b| *b = self.g.by_digits(*b, out[0], found.by, new, &hosts));
                stage.dims.splice(k..=k, new);
                self.g.stages[s.0 as usize] = stage;
                self.same.forget(*s);
            }
            out.splice(0..1, new);
        }
        if out.len() > 1 {
            self.proved_of(&out);
        }
        Ok(out)
    }

    /// How long loops are where they run.
    pub(super) fn lengths(&self, dims: &[DimId]) -> Vec<Body> {
        dims.iter().map(|d| self.some_of(self.g.dim(*d).extent, &mut vec![])).collect()
    }

    /// An extent without the conditions under which it is 0, which are put to others.
    fn some_of(&self, mut extent: Body, conditions: &mut Vec<Body>) -> Body {
        while let Node::If([c, some, none]) = *self.g.bodies.node(extent)
            && self.g.bodies.as_int(none) == Some(0)
            && self.g.bodies.is_fixed(c)
        {
            conditions.push(c);
            extent = some;
        }
        extent
    }

    /// Takes the checks away that digits of an index never fail, of what is computed for each of them.
    fn proved_of(&mut self, digits: &[DimId]) {
        let lengths = self.lengths(digits);
        self.reopen(digits, &lengths);
        for s in self.g.ids().filter(|s| digits.iter().all(|d| self.g.stage(*s).dims.contains(d))).collect::<Vec<_>>() {
            let mut checks = self.g.stage(s).checks.clone();
            checks.retain(|c| !self.proved(*c));
            self.g.stages[s.0 as usize].checks = checks;
        }
        self.close(digits);
    }

    /// The stages with an element for each index; nothing where some of them go through all of these, or are as long as one says.
    fn hosts(&self, d: DimId) -> Option<Tables> {
        let named = |n: &Body| self.g.bodies.dims(*n).contains(&d);
        let plain = |s: &Stage| {
            matches!(s.def, Definition::Pure(_) | Definition::Reduce { .. })
                && !s.over().contains(&d)
                && !s.all_dims().iter().any(|e| named(&self.g.dim(*e).extent))
        };
        let own = |s: StageId| Some((s, self.g.stage(s).all_dims().iter().position(|e| *e == d)?));
        let hosts: Tables = self.g.ids().filter_map(own).collect();
        hosts.iter().all(|(s, _)| plain(self.g.stage(*s))).then_some(hosts)
    }

    /// What an index is divided by everywhere, and the other factors of how many there are: both sizes.
    fn digits(&mut self, d: DimId, bodies: &[Body], hosts: &Tables) -> Option<Digits> {
        let index = self.g.bodies.index(d);
        let own = |p: StageId, at: &[Body]| {
            let k = hosts.iter().find(|(s, _)| *s == p).map(|(_, k)| *k);
            k.is_some() && at.iter().enumerate().all(|(i, b)| (*b == index) == (Some(i) == k))
        };
        let mut by: Option<Body> = None;
        let inside = hosts.iter().flat_map(|(s, _)| self.g.stage(*s).bodies());
        for b in self.g.bodies.reachable(bodies.iter().copied().chain(inside)) {
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
                Node::Load(Source::Stage(p, _), _, at) if own(*p, at) => {}
                _ => return None,
            }
        }
        let by = by.filter(|n| self.g.bodies.is_fixed(*n))?;
        let (mut conditions, mut factors) = (vec![], vec![]);
        let all = self.some_of(self.g.dim(d).extent, &mut conditions);
        self.g.bodies.factors(all, &mut factors);
        let at = factors.iter().position(|f| *f == by)?;
        factors.remove(at);
        let rest = factors.into_iter().reduce(|a, b| self.g.bodies.ints(Op::Mul, a, b))?;
        let none = self.g.bodies.int(0);
        let extents = [rest, by].map(|n| conditions.iter().rev().fold(n, |n, c| self.g.bodies.cond(*c, n, none)));
        Some(Digits { by, extents })
    }
}
