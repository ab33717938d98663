//! A graph becomes a program again: what a schedule's rewrites have made of a definition, as text that the interpreter runs.
//!
//! Each stage is a `let` of a tensor or number, in the order of the graph; recurrences are scans. Wherever the checks of the
//! graph hold, the program has the graph's bits; elsewhere it fails, where compiled code goes back to the program as it
//! stood. This knows nothing of schedules.

mod bodies;
mod definition;
mod incoming;
mod maker;
mod recur;
mod scope;
mod stages;
mod ways;
