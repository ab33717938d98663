//! Stages that are computed together in the default schedule: in each tile of one stage, the head, what it needs of others.
//!
//! After Mullapudi et al. (2016), but decided greedily and by footprints alone, since sizes are symbols: from each stage that
//! is computed whole, what it reads joins it one by one, as long as computing the edges of tiles again costs less than
//! writing all elements to memory and reading them back. What is read only where it is computed is kept in registers, a few
//! vectors at a time. It must not know what kernels there are, nor how loops become text.

mod choose;
mod cost;
mod members;
mod steps;

pub(super) use choose::choose;
