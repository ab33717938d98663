//! How fast a definition could be: what it computes and moves at least, and what the machine does at most.
//!
//! Each stage is computed once, and inputs and results are read and written once, from the nearest memory that holds them all.
//! It knows nothing of schedules.

use daedal::ir::{Op, Scalar};
use daedal::machine::Machine;
use daedal::run::roofline::{Ceiling, Kind};
use daedal::stage::{Body, Definition, DimId, Graph, Node, Output, Stage};

/// Operations on floats, two in each `fma`, and whether some are of 64 bits; bytes that come in and go out.
pub struct Least {
    operations: f64,
    wide: bool,
    bytes: f64,
}

impl Least {
    /// What a graph for stated sizes does at least; nothing where that depends on data.
    pub fn of(g: &Graph) -> Option<Least> {
        let mut out = Least { operations: 0.0, wide: false, bytes: 0.0 };
        for stage in &g.stages {
            if stage.when.is_some() {
                return None;
            }
            for (bodies, times) in parts(g, stage)? {
                out.add(g, bodies, times);
            }
        }
        for input in &g.inputs {
            out.bytes += f64::from(input.ty.bytes()) * product(g, input.sizes.iter().copied())?;
        }
        for of in &g.outputs {
            if let Output::Data(from) = of {
                let ty = match from.stage() {
                    Some(s) => g.stage(s).tys[0],
                    None => continue,
                };
                out.bytes += f64::from(ty.bytes()) * product(g, g.extents(*from))?;
            }
        }
        Some(out)
    }

    fn add(&mut self, g: &Graph, bodies: &[Body], times: f64) {
        for b in g.bodies.reachable(bodies.iter().copied()) {
            if let Node::Op(op, ty @ (Scalar::F64 | Scalar::F32), _) = g.bodies.node(b) {
                self.operations += times * if *op == Op::Fma { 2.0 } else { 1.0 };
                self.wide |= *ty == Scalar::F64;
            }
        }
    }

    /// Seconds that it takes at least on one thread.
    pub fn seconds(&self, machine: &Machine, ceilings: &[Ceiling]) -> f64 {
        let level = 1 + machine.caches.iter().take_while(|bytes| self.bytes > **bytes as f64).count() as u64;
        let rate = |wanted: &dyn Fn(&Ceiling) -> bool| {
            ceilings.iter().filter(|c| wanted(c)).map(|c| 1e9 * c.one).fold(0.0, f64::max)
        };
        let computed = rate(&|c| c.kind == Kind::Fma && c.of == if self.wide { 64 } else { 32 });
        let moved = rate(&|c| c.kind != Kind::Fma && c.of == level);
        (self.operations / computed).max(self.bytes / moved)
    }
}

/// The bodies of a stage, and how often they are computed.
fn parts<'a>(g: &Graph, stage: &'a Stage) -> Option<Vec<(&'a [Body], f64)>> {
    let own = points(g, &stage.dims[..stage.looped()])?;
    Some(match &stage.def {
        Definition::Pure(each) => vec![(each, own)],
        Definition::Reduce { over, init, next, .. } => vec![(init, own), (next, own * points(g, over)?)],
        Definition::Scatter { over, value, .. } => vec![(value, own * points(g, over)?)],
        Definition::Recur { next, .. } => vec![(next, own)],
    })
}

fn points(g: &Graph, dims: &[DimId]) -> Option<f64> {
    product(g, dims.iter().map(|d| g.dim(*d).extent))
}

fn product(g: &Graph, of: impl IntoIterator<Item = Body>) -> Option<f64> {
    of.into_iter().map(|b| g.bodies.as_int(b).map(|n| n as f64)).product()
}
