//! What a nest came from, for those who ask what its loops stand for.

use crate::machine::Machine;
use crate::nest::Func;
use crate::schedule::Schedule as Plans;

/// What a nest came from.
pub struct Lowered<'a> {
    /// The function, as passes have left it.
    pub func: &'a Func,
    /// The schedule that was lowered, with a graph at stated sizes.
    pub plans: &'a Plans,
    /// What code is made for.
    pub machine: &'a Machine,
}
