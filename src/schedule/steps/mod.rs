//! Schedule steps: each changes how loops run, and never a bit of what they compute.
//!
//! `contract` and `reassociate` alone change bits, where that is allowed: they stand before all others. A step is a value: it
//! is listed, replayed and printed. What it may not do it refuses with the reason, and changes nothing. One file a step, or a
//! few that differ in a word.

mod cache_read;
mod contract;
mod fuse;
mod fuse_stages;
mod if_convert;
mod kind;
mod layout;
mod reassociate;
mod reorder;
mod scatter;
mod site;
mod split;
mod store_at;
mod strip;

pub(super) use kind::{MAX_UNROLLED, most};

pub use super::step::Step;

use super::plan::{Refusal, Schedule};

impl Step {
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
            Step::StoreAt { stage, reader, at } => store_at::store_at(s, stage, reader, at),
            Step::Inline { stage } => site::inline(s, stage),
            Step::Split { stage, of, factor } => split::split(s, stage, of, *factor),
            Step::Strip { stage, of, factor } => strip::strip(s, stage, of, *factor),
            Step::Fuse { stage, outer, inner } => fuse::fuse(s, stage, outer, inner),
            Step::FuseStages { stage, host, at } => fuse_stages::fuse_stages(s, stage, host, at),
            Step::IfConvert { stage } => if_convert::if_convert(s, stage),
            Step::Contract { stage } => contract::contract(s, stage),
            Step::Reassociate { stage, order } => reassociate::reassociate(s, stage, *order),
            Step::Layout { stage, order } => layout::layout(s, stage, order),
            Step::Reorder { stage, order } => reorder::reorder(s, stage, order),
            Step::Run { stage, of, kind } => kind::run(s, stage, of, *kind),
            Step::CacheRead { stage, source, at, name, axes } => {
                cache_read::cache_read(s, [stage, source], at, name, axes)
            }
        }
    }
}
