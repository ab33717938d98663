//! What is seen of a nest becomes numbers for each stage that is computed: what a model of costs is told.
//!
//! Three groups, as in Adams et al. (2019): operations (`operations.rs`) and accesses (`accesses.rs`) of a point, and how the
//! schedule runs them (`schedule.rs`). A point is an element, of a reduction a step of its accumulators. Stages that are computed
//! where they are read are part of those that read them. It must not know what the numbers are used for.

mod accesses;
mod lowered;
mod operations;
mod schedule;
mod stage;
mod vector;

pub use lowered::Lowered;
pub use schedule::Schedule;
pub use vector::{Features, VERSION, names, of};
