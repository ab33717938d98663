//! How loops run: schedules of stage graphs, and passes from nest to nest.
//!
//! A schedule is a list of steps over a graph ([`steps`]), whose fold is a plan for each stage ([`plan`]); [`lower()`] makes
//! a nest of both. No step changes a bit of what is computed, but for those that say so and stand first.

mod access;
mod accumulators;
mod along;
mod attempt;
mod batch;
mod beside;
mod chains;
mod channels;
mod cheap;
mod columns;
mod default;
mod ends;
mod footprint;
mod group;
mod instances;
mod latency;
mod layout;
mod legal;
mod lower;
mod microbatch;
mod nested;
mod orders;
pub mod outline;
pub mod passes;
mod places;
pub mod plan;
mod points;
mod product;
mod readings;
mod row_sums;
mod step;
pub mod steps;
mod streams;
mod strips;
mod sums;
pub mod text;
mod threads;
pub mod tiling;
mod tree;
mod triangle;
mod unit_dims;
mod unread;

pub use cheap::{is_left, worth_inlining};
pub use default::{default, default_for};
pub use lower::lower;
pub use outline::Outline;
pub use plan::Schedule;
pub use step::Step;
