//! Schedule steps: each changes how loops run, and never a bit of what they compute.
//!
//! `reassociate` alone changes bits, where that is allowed: it stands before all others. A step is a value: it is listed,
//! replayed and printed. What it may not do it refuses with the reason, and changes nothing. One file a step, or a few that
//! differ in a word.

mod cache_read;
mod fuse;
mod fuse_stages;
mod if_convert;
mod kind;
mod reassociate;
mod reorder;
mod site;
mod split;

pub(super) use kind::{MAX_UNROLLED, most};

use super::plan::{Kind, Refusal, Schedule, refuse};
use crate::stage::{Definition, Order, StageId};

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
            | Step::Inline { stage }
            | Step::Split { stage, .. }
            | Step::Fuse { stage, .. }
            | Step::FuseStages { stage, .. }
            | Step::IfConvert { stage }
            | Step::Reassociate { stage, .. }
            | Step::Reorder { stage, .. }
            | Step::Run { stage, .. }
            | Step::CacheRead { stage, .. } => stage,
        }
    }

    /// The schedule after the step.
    ///
    /// # Errors
    /// The reason why the step is refused; the schedule is as before.
    pub fn apply(&self, s: &mut Schedule) -> Result<(), Refusal> {
        let before = s.before();
        let done = self.taken(s).and_then(|()| s.legal());
        match done {
            Ok(()) => s.steps.push(self.clone()),
            Err(_) => s.back(before),
        }
        done
    }

    fn taken(&self, s: &mut Schedule) -> Result<(), Refusal> {
        match self {
            Step::ComputeRoot { stage } => site::root(s, stage),
            Step::ComputeAt { stage, reader, at } => site::at(s, stage, reader, at),
            Step::Inline { stage } => site::inline(s, stage),
            Step::Split { stage, of, factor } => split::split(s, stage, of, *factor),
            Step::Fuse { stage, outer, inner } => fuse::fuse(s, stage, outer, inner),
            Step::FuseStages { stage, host, at } => fuse_stages::fuse_stages(s, stage, host, at),
            Step::IfConvert { stage } => if_convert::if_convert(s, stage),
            Step::Reassociate { stage, order } => reassociate::reassociate(s, stage, *order),
            Step::Reorder { stage, order } => reorder::reorder(s, stage, order),
            Step::Run { stage, of, kind } => kind::run(s, stage, of, *kind),
            Step::CacheRead { stage, source, at, name, axes } => {
                cache_read::cache_read(s, [stage, source], at, name, axes)
            }
        }
    }
}

/// Refuses a step for a scatter, whose values are added in the order of the source.
fn no_scatter(s: &Schedule, id: StageId) -> Result<(), Refusal> {
    let known = s.graph.stage(id);
    if let Definition::Scatter { .. } = known.def {
        return refuse(format!(
            "`{}` is a scatter: its loops run as they are, but for the parallel ones around it",
            known.name
        ));
    }
    Ok(())
}
