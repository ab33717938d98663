//! Equality saturation over let-free terms with de Bruijn binders.
//!
//! Invariant: every member of an e-class has the class's type, and equals the others wherever it has
//! a value. A member that may fail where another does not is marked and never extracted.

pub mod language;
pub mod called;
pub mod range;
pub mod trace;
pub mod graph;
pub mod names;
pub mod context;
pub mod facts;
pub mod analysis;
pub mod types;
pub mod params;
pub mod pattern;
pub mod apply;
pub mod sizes;
pub mod parts;
pub mod fresh;
pub mod fire;
pub mod saturate;
pub mod extract;
pub mod tree;
pub mod dag;
pub mod plan;
pub mod retrace;
pub mod journal;
pub mod relax;
pub mod exact;
mod uses;
pub mod elaborate;
mod memo;
pub mod trial;
pub mod optimize;

pub use graph::Graph;
