//! A graph for all sizes becomes one for stated sizes: whole numbers that come in are known, and those that floats become, and
//! with them extents, and what they make arithmetic of indices.

use super::body::{Bodies, Body, DimId, Node, Source, StageId, SymbolId};
use super::bounds::Ranges;
use super::graph::{Definition, Graph, Output, Slot, Stage};
use crate::ir::{Lit, Op, Scalar};
use rustc_hash::FxHashMap;

impl Graph {
    /// The graph where whole numbers that come in are known, in the order of the calling form, and those that floats that come
    /// in become. That they are these is checked first, so that it is of no use where they are others. Stages, dimensions and
    /// inputs have the numbers and names that they had.
    #[must_use]
    pub fn specialized(&self, incoming: &[f64]) -> Graph {
        let mut out = self.clone();
        let mut known = Known::new(self, incoming);
        let bodies = &mut out.bodies;
        let mut of = |b: &mut Body| *b = known.of(bodies, *b);
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
        let mut floats: Vec<(Source, Body)> = out.bodies.floats.iter().map(|(from, b)| (*from, *b)).collect();
        floats.sort_unstable();
        for (from, b) in floats {
            let b = known.of(&mut out.bodies, b);
            out.bodies.floats.insert(from, b);
        }
        out.decide();
        let is = known.checks(&mut out.bodies);
        out.entry.splice(0..0, is);
        out
    }

    /// The graph for these whole numbers alone, as [`Graph::specialized`]; what they make plain arithmetic of indices is
    /// read where it is used, and no stage any more; scatters whose targets say what is added to them are reductions, sums that
    /// add to one of many elements at a time are scatters, and sums over the steps of a recurrence are states of it; what is read
    /// again and again where data say is gathered once, and functions of what lies in windows are taken once; what nothing needs for these numbers is no stage, and what stages
    /// in arms check, and others check anyway, is checked first, as what large tables check at few of their points is before
    /// them.
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
        let apart = out.products_apart();
        if apart {
            out.decide();
        }
        let gathered = out.gather_scatters();
        if out.unwrapped() || apart || !plain.is_empty() || gathered {
            out.decide();
        }
        out.one_hot();
        out.picks();
        out.sums_to_scatters();
        out.without_asked();
        out.sums_to_states();
        out.gathered_once();
        if out.take_windows_once() {
            out.compute_once();
        }
        // Checks that are proved for these numbers need no stage any more.
        out.without_dead().checked_ahead().checked_first()
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

    /// Puts others for bodies of a stage, by the ranges of its indices, inner ones first; whether there was one.
    pub(super) fn in_ranges(
        &mut self,
        stage: &mut Stage,
        other: impl Fn(&mut Graph, &Ranges, Body) -> Option<Body>,
    ) -> bool {
        let mut ranges = Ranges::default();
        for d in stage.all_dims() {
            ranges.push(&mut self.bodies, d, self.dims[d.0 as usize].extent);
        }
        let (mut of, mut any): (FxHashMap<Body, Body>, bool) = (FxHashMap::default(), false);
        for b in stage.bodies_mut() {
            for at in self.bodies.reachable([*b]) {
                if !of.contains_key(&at) {
                    let new = self.bodies.rebuilt(at, &of);
                    let found = other(self, &ranges, new);
                    any |= found.is_some();
                    of.insert(at, found.unwrap_or(new));
                }
            }
            *b = of[b];
        }
        any
    }

    /// Decides what is one thing at all indices of a stage.
    fn decide(&mut self) {
        for k in 0..self.stages.len() {
            let mut stage = self.stages[k].clone();
            self.in_ranges(&mut stage, |g, ranges, b| {
                let known = ranges.decide(&mut g.bodies, b)?;
                Some(g.bodies.bool(known))
            });
            let holds = |b: &Body| self.bodies.as_bool(*b) == Some(true);
            let points = stage.all_dims();
            stage.checks.retain(|c| !holds(c) && !self.holds_at_each(&points, stage.when, *c));
            stage.when = stage.when.filter(|c| !holds(c));
            self.stages[k] = stage;
        }
    }
}

/// What is known of the numbers that come in.
struct Known {
    /// All of them.
    all: FxHashMap<SymbolId, Lit>,
    /// Bodies where the whole ones are known, and where all are.
    whole: FxHashMap<Body, Body>,
    each: FxHashMap<Body, Body>,
    /// What floats become, in order.
    made: Vec<(Body, Body)>,
}

impl Known {
    fn new(graph: &Graph, incoming: &[f64]) -> Known {
        let each = graph.slots.iter().zip(incoming).filter_map(|(slot, value)| match slot {
            Slot::Symbol(k) => Some((*k, Lit::of(graph.symbols[k.0 as usize].ty, *value))),
            Slot::Input(_) => None,
        });
        Known { all: each.collect(), whole: FxHashMap::default(), each: FxHashMap::default(), made: vec![] }
    }

    fn of(&mut self, bodies: &mut Bodies, b: Body) -> Body {
        let Known { all, whole, each, made } = self;
        bodies.map(b, whole, &mut |s, at| match s.node(at) {
            Node::Symbol(k) if s.ty(at) == Scalar::I64 => all.get(k).map(|l| s.lit(*l)),
            Node::Cast(Scalar::I64, from) if s.ty(*from).is_float() && s.is_of_symbols(at) => {
                let known = s.map(at, each, &mut |s, at| match s.node(at) {
                    Node::Symbol(k) => all.get(k).map(|l| s.lit(*l)),
                    _ => None,
                });
                s.as_int(known)?;
                made.push((at, known));
                Some(known)
            }
            _ => None,
        })
    }

    /// That the numbers are these.
    fn checks(self, bodies: &mut Bodies) -> Vec<Body> {
        let mut whole: Vec<(SymbolId, Lit)> =
            self.all.into_iter().filter(|(_, l)| matches!(l, Lit::Int(Scalar::I64, _))).collect();
        whole.sort_unstable_by_key(|(k, _)| k.0);
        let whole = whole.into_iter().map(|(k, l)| (bodies.symbol(k, Scalar::I64), bodies.lit(l))).collect::<Vec<_>>();
        let all = whole.into_iter().chain(self.made);
        all.map(|(b, n)| bodies.test(Op::Eq, b, n)).collect()
    }
}

impl Bodies {
    /// Whether nothing but numbers that come in decides a body, which has a value whatever they are.
    pub(super) fn is_of_symbols(&self, b: Body) -> bool {
        self.reachable([b]).into_iter().all(|b| match self.node(b) {
            Node::Load(..) | Node::Acc(..) | Node::Index(_) => false,
            Node::Op(op, ty, args) if op.divides() && ty.is_int() => self.is_positive_number(args[1]),
            _ => true,
        })
    }
}
