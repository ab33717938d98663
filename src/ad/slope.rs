//! A slope: what the value of a condition changes by with something that its arms read.

use super::contribution::Step;
use super::emit::Val;

/// See the module.
#[derive(Clone)]
pub struct Slope {
    /// The adjoint of what is read.
    pub adjoint: usize,
    /// Which part of it is read; the indices stand where `depth` variables are in scope.
    pub steps: Vec<Step>,
    /// The number of variables in scope around the steps.
    pub depth: usize,
    /// The derivative of the value by that part.
    pub by: Val,
    /// Whether the part is read at all, where it need not be.
    pub here: Option<Val>,
}
