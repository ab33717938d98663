//! What goes around differentiation: passes over a program before it is differentiated, and over its derivative after. The
//! order of both stands here; it must not know how derivatives are made.

use super::{accumulated::accumulated, factored::factored, simplify::simplified, tabulated::tabulated};
use crate::diag::Result;
use crate::ir::{Def, Program};
use crate::rules::Level;

/// The program as it is differentiated: with running sums, and with tables of what loops compute again.
///
/// # Errors
/// A bug: what came out does not check.
pub fn before(program: &Program) -> Result<Program> {
    tabulated(&accumulated(program)?)
}

/// The derivative as it is printed and optimized: simplified, with factors outside of its sums. `by_itself` are the
/// definitions that differentiation made.
///
/// # Errors
/// A bug: what came out does not check.
pub fn after(derivative: &Program, by_itself: &dyn Fn(&Def) -> bool) -> Result<Program> {
    factored(&simplified(derivative, by_itself, Level::Exact)?, by_itself)
}
