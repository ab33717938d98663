//! Steps as values. What each does and refuses is in `steps/`.

use crate::stage::Order;

/// How a loop runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// One iteration after another.
    Serial,
    /// On several threads.
    Parallel,
    /// As the lanes of one vector.
    Vector,
    /// Each iteration as text of its own.
    Unrolled,
}

/// A step of a schedule. Stages and loops are named as the graph and the steps before name them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// Computes a stage whole, before all that reads it.
    ComputeRoot {
        /// The stage.
        stage: String,
    },
    /// Computes a stage in a loop of a stage that reads it.
    ComputeAt {
        /// The stage.
        stage: String,
        /// The stage that reads it.
        reader: String,
        /// The loop of the reader.
        at: String,
    },
    /// Takes the memory of a stage in an outer loop of the stage that it is computed in, and keeps what earlier iterations
    /// computed.
    StoreAt {
        /// The stage.
        stage: String,
        /// The stage in whose loops it is computed.
        reader: String,
        /// The loop of that.
        at: String,
    },
    /// Computes a stage where its elements are read.
    Inline {
        /// The stage.
        stage: String,
    },
    /// Cuts a loop into parts of so many iterations: `i` becomes `io` and `ii`.
    Split {
        /// The stage.
        stage: String,
        /// The loop.
        of: String,
        /// Iterations of a part.
        factor: i64,
    },
    /// Cuts a dimension of a state into strips, which take all steps of its recurrence each by itself.
    Strip {
        /// The state.
        stage: String,
        /// The loop over its dimension.
        of: String,
        /// Indices of a strip.
        factor: i64,
    },
    /// Makes one loop of two over neighbouring dimensions: `x` and `c` become `xc`.
    Fuse {
        /// The stage.
        stage: String,
        /// The loop over the outer dimension.
        outer: String,
        /// The loop over the inner one, in it.
        inner: String,
    },
    /// Computes a stage in a loop of one that need not read it, and has as many indices of its first dimension.
    FuseStages {
        /// The stage.
        stage: String,
        /// The stage with the loop.
        host: String,
        /// The loop, over parts of the first dimension.
        at: String,
    },
    /// Evaluates both arms of conditions, and selects.
    IfConvert {
        /// The stage.
        stage: String,
    },
    /// Contracts products that are added: they round once.
    Contract {
        /// The stage.
        stage: String,
    },
    /// Combines the terms of a reduction in another order.
    Reassociate {
        /// The stage.
        stage: String,
        /// Which.
        order: Order,
    },
    /// Orders loops: those that are named take the places that they have, in the order that is given.
    Reorder {
        /// The stage.
        stage: String,
        /// The loops, outermost first.
        order: Vec<String>,
    },
    /// Lays the axes of a stage in memory in another order.
    Layout {
        /// The stage.
        stage: String,
        /// Its dimensions, the last of which is that whose indices lie next to each other.
        order: Vec<String>,
    },
    /// Says how a loop runs.
    Run {
        /// The stage.
        stage: String,
        /// The loop.
        of: String,
        /// How.
        kind: Kind,
    },
    /// Copies what a stage reads of a source into memory of its own, in the order in which it is read, at a loop.
    CacheRead {
        /// The stage that reads.
        stage: String,
        /// What is read: an input or a stage.
        source: String,
        /// The loop of the reader where the copy is made.
        at: String,
        /// The name of the copy.
        name: String,
        /// The axes of the source in the order in which the copy has them; none where that is the source's.
        axes: Vec<usize>,
    },
}

impl Step {
    /// The stage that is scheduled.
    pub fn stage(&self) -> &str {
        match self {
            Step::ComputeRoot { stage }
            | Step::ComputeAt { stage, .. }
            | Step::StoreAt { stage, .. }
            | Step::Inline { stage }
            | Step::Split { stage, .. }
            | Step::Strip { stage, .. }
            | Step::Fuse { stage, .. }
            | Step::FuseStages { stage, .. }
            | Step::IfConvert { stage }
            | Step::Contract { stage }
            | Step::Reassociate { stage, .. }
            | Step::Reorder { stage, .. }
            | Step::Layout { stage, .. }
            | Step::Run { stage, .. }
            | Step::CacheRead { stage, .. } => stage,
        }
    }

    /// Whether it may change bits, and so is a change of the program: such steps stand before all others.
    pub fn is_rewrite(&self) -> bool {
        matches!(self, Step::Contract { .. } | Step::Reassociate { .. })
    }
}
