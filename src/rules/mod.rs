//! Rewrite rules: text files become typed rules. What matches and applies them is in `rewrite`.
//!
//! Invariant: both sides of a rule have one type, the right side uses no metavariable that the
//! left does not bind, and every condition is in the table.

pub mod assume;
pub mod check;
mod library;
pub mod measure;
pub mod narrow;
mod read;
mod rule;

pub use library::Library;
pub use rule::{Condition, Level, Meta, Rule};
