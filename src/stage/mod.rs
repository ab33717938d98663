//! The stage graph: what a program computes, flat, with multi-dimensional indices, and nothing of how.
//!
//! A typed definition becomes stages ([`extract()`]), each a tensor or number over the dimensions that it depends on:
//! pure elements, or reductions in a fixed order. How they run is the schedule's matter. What cannot be staged stays with
//! reference lowering, and the reason is told.
//!
//! A graph computes what the interpreter does, to the bit, *wherever its checks hold*. Where one fails, what the graph
//! gives is of no use, and the reference runs instead: it finds the value, or the first failure. So a stage may be
//! computed earlier or more often than the source says, and one without checks in part; the order of failures is never the
//! graph's matter.
//!
//! This layer must not know of loops, memory or machines.

mod ahead;
mod asked;
mod body;
mod bounds;
mod changed;
mod checked;
mod checks;
mod clamps;
mod collect;
mod contract;
mod cut;
mod dead;
mod delinearize;
mod digits;
mod enumerate;
mod extract;
mod functions;
mod gather;
mod graph;
mod guards;
mod if_convert;
mod indirect;
mod inline;
mod join;
mod kept;
mod known;
mod one_hot;
mod picks;
mod print;
mod products;
mod program;
mod quotient;
mod reassociate;
mod recur;
mod same;
mod sliding;
mod special;
mod states;
mod term;
mod trend;
mod unify;
mod unswitch;
mod update;
mod value;
mod wanted;
mod wrapped;

pub use body::{Bodies, Body, DimId, Node, Source, StageId, SymbolId};
pub use bounds::{Interval, Ranges, at_most, greatest, least};
pub use extract::{Unstaged, extract};
pub use graph::{Definition, Dim, Graph, Input, Output, Slot, Stage, Symbol, unused};
pub use reassociate::Order;
pub use trend::{Trend, trend};
pub use update::Update;
