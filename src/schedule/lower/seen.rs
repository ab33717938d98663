//! What lowering decides on its way becomes a record: the memory of each stage, and how often each loop runs.
//!
//! Those who show a schedule read it, so that no box is found twice by two rules that might differ. A stage or a loop may
//! be lowered to several texts (whole parts, a last one that is shorter), and has an entry for each that differs. It must not
//! change what is lowered.

use crate::stage::{Body, Graph, StageId};
use rustc_hash::FxHashMap;

/// Memory for the box of a stage.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Memory {
    /// The least index of each dimension.
    pub least: Vec<Body>,
    /// How many indices of each dimension there is room for; nothing where a variable a component is enough.
    pub room: Option<Vec<Body>>,
    /// The dimension of which indices that are a multiple of its room apart share their place.
    pub ring: Option<usize>,
}

/// How often a loop runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trips {
    /// How many iterations it has; of one over parts, how many all parts have.
    pub of: Body,
    /// At least as many, and simpler.
    pub most: Body,
    /// What it runs over, where that is parts.
    pub parts: Option<Parts>,
}

/// The parts of a loop that was split.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parts {
    /// How many iterations one has.
    pub by: i64,
    /// Whether the last part is as long as the others, and so begins earlier where it would end too late.
    pub inwards: bool,
}

/// What was decided.
#[derive(Default, Debug)]
pub struct Seen {
    /// The graph that all bodies here are of, with a dimension for each loop.
    pub graph: Graph,
    /// The boxes of each stage.
    pub memory: FxHashMap<StageId, Vec<Memory>>,
    /// The extents of the tile of accumulators of a stage that has one.
    pub tiles: FxHashMap<StageId, Vec<Vec<Body>>>,
    /// How often each loop of a stage runs.
    pub trips: FxHashMap<(StageId, String), Vec<Trips>>,
}
