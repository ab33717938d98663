//! Stages that compute the same are one: equal but for the names of their loops, they read the same at the same indices.
//!
//! Derivatives name values of their primal again, in other loops, and so do programs whose functions are inlined.

use super::body::{Body, DimId};
use super::graph::{Definition, Graph, Stage, StageId};
use rustc_hash::FxHashMap;

/// What a stage computes, with dimensions that stand for its own, by their places.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    extents: Vec<Body>,
    bodies: Vec<Body>,
    /// What tells definitions apart whose bodies are equal: how many there are of each kind.
    shape: [usize; 7],
}

/// The stages that there are, by what they compute.
#[derive(Default)]
pub(super) struct Same {
    stages: FxHashMap<Key, StageId>,
    /// Dimensions by place.
    dims: Vec<DimId>,
}

impl Same {
    /// What a stage computes.
    pub fn key(&mut self, g: &mut Graph, stage: &Stage) -> Key {
        let own: Vec<DimId> = stage.dims.iter().chain(stage.over()).copied().collect();
        while self.dims.len() < own.len() {
            let zero = g.bodies.int(0);
            self.dims.push(g.add_dim("place", zero));
        }
        let of: FxHashMap<DimId, Body> =
            own.iter().zip(&self.dims).map(|(d, place)| (*d, g.bodies.index(*place))).collect();
        let extents = own.iter().map(|d| g.bodies.substitute(g.dim(*d).extent, &of)).collect();
        let bodies = stage.bodies().into_iter().map(|b| g.bodies.substitute(b, &of)).collect();
        let (kind, inside, only) = match &stage.def {
            Definition::Pure(_) => (0, 0, 0),
            Definition::Reduce { inside, .. } => (1, *inside, 0),
            Definition::Scatter { only, into, .. } => (2, *into, usize::from(only.is_some())),
        };
        let counts = [stage.dims.len(), stage.checks.len(), usize::from(stage.when.is_some())];
        let shape = [kind, inside, only, stage.tys.len(), counts[0], counts[1], counts[2]];
        Key { extents, bodies, shape }
    }

    /// The stage that computes this.
    pub fn find(&self, key: &Key) -> Option<StageId> {
        self.stages.get(key).copied()
    }

    /// Remembers a stage.
    pub fn insert(&mut self, key: Key, id: StageId) {
        self.stages.insert(key, id);
    }
}
