//! Stages that compute the same are one: equal but for the names of their loops, they read the same at the same indices.
//!
//! Derivatives name values of their primal again, in other loops, and so do programs whose functions are inlined.

use super::body::{Bodies, Body, DimId, Node, StageId};
use super::graph::{Graph, Stage};
use crate::ir::Op;
use rustc_hash::FxHashMap;

/// A stage without a name, with dimensions that stand for its own by their places, and the extents of these.
pub(super) type Key = (Stage, Vec<Body>);

/// The stages that there are, by what they compute.
#[derive(Clone, Default)]
pub(super) struct Same {
    stages: FxHashMap<Key, StageId>,
    /// Dimensions by place.
    places: Vec<DimId>,
}

impl Same {
    /// What a stage computes. Dimensions of steps stand for themselves: what is computed for a step is computed there.
    pub fn key(&mut self, g: &mut Graph, stage: &Stage, steps: &[DimId]) -> Key {
        let own = stage.all_dims();
        while self.places.len() < own.len() {
            let zero = g.bodies.int(0);
            self.places.push(g.add_dim("place", zero));
        }
        let each = own.iter().zip(&self.places);
        let places: Vec<DimId> = each.map(|(d, place)| if steps.contains(d) { *d } else { *place }).collect();
        let of: FxHashMap<DimId, Body> = own.iter().zip(&places).map(|(d, p)| (*d, g.bodies.index(*p))).collect();
        let extents = own.iter().map(|d| g.bodies.substitute(g.dim(*d).extent, &of)).collect();
        let mut key = Stage { name: String::new(), ..stage.over_others(&places) };
        key.bodies_mut().for_each(|b| *b = g.bodies.substitute(*b, &of));
        key.bodies_mut().for_each(|b| *b = ordered(&mut g.bodies, *b));
        (key, extents)
    }

    /// The stage that computes this.
    pub fn find(&self, key: &Key) -> Option<StageId> {
        self.stages.get(key).copied()
    }

    /// Forgets a stage that has changed.
    pub fn forget(&mut self, changed: StageId) {
        self.stages.retain(|_, s| *s != changed);
    }

    /// Remembers a stage.
    pub fn insert(&mut self, key: Key, id: StageId) {
        self.stages.insert(key, id);
    }
}

/// A body in which sums and products of floats have their operands in one order, which rounds the same.
fn ordered(bodies: &mut Bodies, b: Body) -> Body {
    let mut of: FxHashMap<Body, Body> = FxHashMap::default();
    for at in bodies.reachable([b]) {
        let new = bodies.rebuilt(at, &of);
        let new = match bodies.node(new).clone() {
            Node::Op(op @ (Op::Add | Op::Mul), ty, args) if ty.is_float() && args[1] < args[0] => {
                bodies.op(op, ty, &[args[1], args[0]])
            }
            _ => new,
        };
        of.insert(at, new);
    }
    of[&b]
}
