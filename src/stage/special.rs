//! A graph for all sizes becomes one for stated sizes: whole numbers that come in are known, and with them extents, and what
//! they make arithmetic of indices.

use super::body::{Body, DimId, Node, Source, SymbolId};
use super::bounds::Ranges;
use super::graph::{Definition, Graph, Output, Slot, StageId};
use crate::ir::{Lit, Op, Scalar};
use rustc_hash::FxHashMap;

impl Graph {
    /// The graph where whole numbers that come in are known, in the order of the calling form; other values there are not
    /// looked at. That they are these is checked first, so that it is of no use where they are others. Stages, dimensions
    /// and inputs have the numbers and names that they had.
    #[must_use]
    pub fn specialized(&self, incoming: &[f64]) -> Graph {
        let mut out = self.clone();
        let mut memo: FxHashMap<Body, Body> = FxHashMap::default();
        let mut known: FxHashMap<u32, i64> = FxHashMap::default();
        for (slot, value) in self.slots.iter().zip(incoming) {
            if let Slot::Symbol(k) = slot
                && self.symbols[k.0 as usize].ty == Scalar::I64
            {
                known.insert(k.0, *value as i64);
            }
        }
        let bodies = &mut out.bodies;
        let mut of = |b: &mut Body| {
            *b = bodies.map(*b, &mut memo, &mut |s, at| match s.node(at) {
                Node::Symbol(k) => known.get(&k.0).copied().map(|n| s.lit(Lit::int(n))),
                _ => None,
            });
        };
        out.inputs.iter_mut().flat_map(|i| &mut i.sizes).for_each(&mut of);
        out.dims.iter_mut().for_each(|d| of(&mut d.extent));
        out.entry.iter_mut().for_each(&mut of);
        out.stages.iter_mut().flat_map(super::Stage::bodies_mut).for_each(&mut of);
        for o in &mut out.outputs {
            match o {
                Output::Scalar(b) | Output::Size(b) => of(b),
                Output::Data(_) => {}
            }
        }
        out.decide();
        let mut symbols: Vec<(u32, i64)> = known.into_iter().collect();
        symbols.sort_unstable();
        let is = symbols.into_iter().map(|(k, n)| {
            let (symbol, n) = (out.bodies.symbol(SymbolId(k), Scalar::I64), out.bodies.int(n));
            out.bodies.test(Op::Eq, symbol, n)
        });
        let is: Vec<Body> = is.collect();
        out.entry.splice(0..0, is);
        out
    }

    /// The graph for these whole numbers alone, as [`Graph::specialized`]; what they make plain arithmetic of indices is
    /// read where it is used, and no stage any more.
    #[must_use]
    pub fn only_for(&self, incoming: &[f64]) -> Graph {
        let mut out = self.specialized(incoming);
        let mut plain: FxHashMap<StageId, (Vec<DimId>, Body)> = FxHashMap::default();
        for s in out.order() {
            out.redirect(s, &mut |g, from, _, at| g.in_place(&plain, from, at));
            if let Some(b) = out.arithmetic(s) {
                plain.insert(s, (out.stage(s).dims.clone(), b));
            }
        }
        if plain.is_empty() {
            return out;
        }
        out.decide();
        out.without_dead()
    }

    /// The body of a stage of plain arithmetic, at indices.
    fn in_place(&mut self, plain: &FxHashMap<StageId, (Vec<DimId>, Body)>, from: Source, at: &[Body]) -> Option<Body> {
        let (dims, b) = plain.get(&from.stage()?)?;
        let of: FxHashMap<DimId, Body> = dims.iter().copied().zip(at.iter().copied()).collect();
        Some(self.bodies.substitute(*b, &of))
    }

    /// The body of a stage that is arithmetic of indices, and no part of a result or size.
    fn arithmetic(&self, s: StageId) -> Option<Body> {
        let stage = self.stage(s);
        let Definition::Pure(each) = &stage.def else { return None };
        let [b] = each.as_slice() else { return None };
        let free = stage.when.is_none() && stage.checks.is_empty() && !self.is_output(s);
        (free && self.bodies.is_arithmetic(*b, false)).then_some(*b)
    }

    /// Decides what is one thing at all indices of a stage.
    fn decide(&mut self) {
        for k in 0..self.stages.len() {
            let mut stage = self.stages[k].clone();
            let mut ranges = Ranges::default();
            for d in stage.dims.iter().chain(stage.over()) {
                ranges.push(&mut self.bodies, *d, self.dims[d.0 as usize].extent);
            }
            let mut of: FxHashMap<Body, Body> = FxHashMap::default();
            for b in stage.bodies_mut() {
                for at in self.bodies.reachable([*b]) {
                    if !of.contains_key(&at) {
                        let new = self.bodies.rebuilt(at, &of);
                        let known = ranges.decide(&mut self.bodies, new);
                        of.insert(at, known.map_or(new, |c| self.bodies.bool(c)));
                    }
                }
                *b = of.get(b).copied().unwrap_or(*b);
            }
            let holds = |b: &Body| self.bodies.as_bool(*b) == Some(true);
            stage.checks.retain(|c| !holds(c));
            stage.when = stage.when.filter(|c| !holds(c));
            self.stages[k] = stage;
        }
    }
}
