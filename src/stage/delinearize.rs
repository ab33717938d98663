//! Delinearization: tables over a product of sizes get a dimension for each factor, with the loops that read them.
//!
//! A derivative of what is added for each edge and each channel keeps a table for all pairs of these, by one index that is
//! taken apart by division wherever it is used. Where all who read such a table do so at the index of a loop, in which it is
//! taken apart in the same way, none of them divides. It needs known sizes; `digits.rs` does so to one loop as it is read.

use super::body::{Body, DimId, Node, Source, StageId};
use super::graph::{Definition, Graph};
use crate::ir::{Op, Scalar};
use rustc_hash::FxHashMap;

/// Loops over one index: stages, and which of their dimensions it is.
type Class = Vec<(StageId, DimId)>;

/// Stages with an element for each index, and which of their dimensions that is.
pub(super) type Tables = Vec<(StageId, usize)>;

impl Graph {
    /// Takes scatters apart with the tables that they read, where sizes are known; whether there was one.
    pub(super) fn products_apart(&mut self) -> bool {
        self.each_stage(|g, s| {
            let mut any = false;
            while g.takes_apart(s) {
                any = true;
            }
            any
        })
    }

    fn takes_apart(&mut self, s: StageId) -> bool {
        let Definition::Scatter { over, .. } = self.stage(s).def.clone() else { return false };
        let found = over.iter().find_map(|d| {
            let class = self.one_index(s, *d)?;
            Some((self.divisor(&class)?, class))
        });
        let Some((by, class)) = found else { return false };
        self.split(&class, by);
        true
    }

    /// The loops that have the index of a loop of a scatter: those of the tables that are read at it, and of all who read these.
    fn one_index(&mut self, s: StageId, d: DimId) -> Option<Class> {
        let mut class: Class = vec![(s, d)];
        let mut k = 0;
        while let Some((s, d)) = class.get(k).copied() {
            let mut found = self.tables_at(s, d)?;
            let readers = self.consumers(s).into_iter().filter(|_| self.stage(s).dims.contains(&d));
            for r in readers {
                found.push((r, self.index_of(r, s, d)?));
            }
            for (p, e) in found {
                match class.iter().find(|(q, _)| *q == p) {
                    Some((_, known)) if *known == e => {}
                    Some(_) => return None,
                    None => class.push((p, e)),
                }
            }
            k += 1;
        }
        let steps: Vec<DimId> = self.ids().filter_map(|p| Some(self.stage(p).recurrence()?.1)).collect();
        let extent = self.dim(d).extent;
        let fits = |(s, d): &(StageId, DimId)| {
            let stage = self.stage(*s);
            let plain = match &stage.def {
                Definition::Pure(_) | Definition::Reduce { .. } => !stage.dims.contains(d) || !self.is_output(*s),
                Definition::Scatter { over, .. } => over.contains(d),
                Definition::Recur { .. } => false,
            };
            let named = stage.all_dims().iter().any(|e| self.bodies.dims(self.dim(*e).extent).contains(d));
            plain && !named && !steps.contains(d) && self.dim(*d).extent == extent
        };
        (class.len() > 1 && class.iter().all(fits)).then_some(class)
    }

    /// The stages that one reads at the index of a dimension; nothing where it is part of another index of such.
    fn tables_at(&mut self, s: StageId, d: DimId) -> Option<Class> {
        let (mut out, own) = (vec![], self.bodies.index(d));
        for b in self.bodies.reachable(self.stage(s).bodies()) {
            if let Node::Load(Source::Stage(p, _), _, at) = self.bodies.node(b) {
                let mut here = at.iter().enumerate().filter(|(_, i)| **i == own);
                match (here.next(), here.next()) {
                    (None, _) => {}
                    (Some((k, _)), None) => out.push((*p, self.stage(*p).dims[k])),
                    (Some(_), Some(_)) => return None,
                }
            }
        }
        Some(out)
    }

    /// The dimension of a reader at whose index it reads a table along one of that's; nothing where there is no single one.
    fn index_of(&self, r: StageId, of: StageId, d: DimId) -> Option<DimId> {
        let k = self.stage(of).dims.iter().position(|e| *e == d)?;
        let mut out = None;
        for b in self.bodies.reachable(self.stage(r).bodies()) {
            if let Node::Load(Source::Stage(p, _), _, at) = self.bodies.node(b)
                && *p == of
            {
                let Node::Index(e) = self.bodies.node(at[k]) else { return None };
                if out.is_some_and(|known| known != *e) {
                    return None;
                }
                out = Some(*e);
            }
        }
        out.filter(|e| self.stage(r).all_dims().contains(e))
    }

    /// What the index is divided by wherever it is used but to read tables, if it has that many digits.
    fn divisor(&mut self, class: &Class) -> Option<i64> {
        let mut by = None;
        for (s, d) in class {
            let own = self.bodies.index(*d);
            for b in self.bodies.reachable(self.stage(*s).bodies()) {
                let node = self.bodies.node(b);
                if !node.kids().contains(&own) {
                    continue;
                }
                match node {
                    Node::Op(op, Scalar::I64, args) if op.divides() && args[0] == own && args[1] != own => {
                        if by.is_some_and(|known| known != args[1]) {
                            return None;
                        }
                        by = Some(args[1]);
                    }
                    Node::Load(Source::Stage(p, _), _, _) if class.iter().any(|(q, _)| q == p) => {}
                    _ => return None,
                }
            }
        }
        let (by, all) = (self.bodies.as_int(by?)?, self.bodies.as_int(self.dim(class[0].1).extent)?);
        (by > 1 && all > by && all % by == 0).then_some(by)
    }

    /// Makes two dimensions of that of each member.
    fn split(&mut self, class: &Class, by: i64) {
        let mut new: Vec<(DimId, [DimId; 2])> = vec![];
        for (_, d) in class {
            if new.iter().all(|(old, _)| old != d) {
                let (name, all) = (self.dim(*d).name.clone(), self.bodies.as_int(self.dim(*d).extent).unwrap_or(0));
                let [rest, by] = [all / by, by].map(|n| self.bodies.int(n));
                new.push((*d, [self.add_dim(format!("{name}_1"), rest), self.add_dim(name, by)]));
            }
        }
        let position = |(s, d): &(StageId, DimId)| self.stage(*s).dims.iter().position(|e| e == d);
        let tables: Tables = class.iter().filter_map(|of| Some((of.0, position(of)?))).collect();
        let by = self.bodies.int(by);
        for (s, d) in class {
            let Some((_, digits)) = new.iter().find(|(old, _)| old == d) else { continue };
            let mut stage = self.stage(*s).clone();
            for b in stage.bodies_mut() {
                *b = self.by_digits(*b, *d, by, *digits, &tables);
            }
            let (at, dims) = (stage.dims.iter().position(|e| e == d), stage.dims.len());
            match &mut stage.def {
                Definition::Reduce { over, inside, .. } => {
                    *inside += usize::from(at.is_some_and(|k| k >= dims - *inside));
                    put(over, *d, *digits);
                }
                Definition::Scatter { over, .. } => put(over, *d, *digits),
                Definition::Pure(_) | Definition::Recur { .. } => {}
            }
            put(&mut stage.dims, *d, *digits);
            self.stages[s.0 as usize] = stage;
        }
    }

    /// A body in which the digits of an index are indices, at which tables are read that were read at it.
    pub(super) fn by_digits(&mut self, b: Body, d: DimId, by: Body, new: [DimId; 2], tables: &Tables) -> Body {
        let (old, [high, low]) = (self.bodies.index(d), new.map(|d| self.bodies.index(d)));
        let mut memo: FxHashMap<Body, Body> = FxHashMap::default();
        let b = self.bodies.map(b, &mut memo, &mut |s, b| match s.node(b) {
            Node::Op(op, _, args) if args.as_slice() == [old, by] => match op {
                Op::Div | Op::FloorDiv => Some(high),
                Op::Mod | Op::FloorMod => Some(low),
                _ => None,
            },
            _ => None,
        });
        self.reading(b, &mut |g, from, ty, at| {
            let (_, k) = tables.iter().find(|(p, _)| from.stage() == Some(*p))?;
            let mut at = at.to_vec();
            at.splice(k..=k, [high, low]);
            Some(g.bodies.load(from, ty, at))
        })
    }
}

/// Puts dimensions in the place of one, where it is there.
fn put(dims: &mut Vec<DimId>, d: DimId, digits: [DimId; 2]) {
    if let Some(k) = dims.iter().position(|e| *e == d) {
        dims.splice(k..=k, digits);
    }
}
