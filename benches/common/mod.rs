//! What benches that compare with libraries have in common: words of the command line, commands, and data for them.

pub mod command;
pub mod compare;
pub mod npy;
pub mod numbers;
