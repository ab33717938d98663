//! Loop nests: statements and expressions over dense buffers. This page is what they mean.
//!
//! A function of the language becomes a [`Func`]: sizes and data come in as slots, statements run in order, and
//! slots go out. Tensors are row-major; nested tensors are dense with more axes, and a tensor of tuples is one
//! buffer for each scalar component.
//!
//! - A variable is set once where it is declared ([`Stmt::Let`], loop variables), or any number of times after
//!   [`Stmt::Mut`]. A buffer is a pointer: [`Stmt::Alloc`] takes memory from the arena.
//! - Expressions are pure. Everything that can fail is a [`Stmt::Check`] before the use, so that failures come in
//!   the order of the interpreter.
//! - Memory lives until the end of the loop iteration, or the [`Stmt::Reset`], around it.
//! - A variable or an expression may be a vector: so many numbers, one in each lane. An operation works lane by
//!   lane, with the bits that each number would have by itself.
//!
//! [`verify()`] checks types and scopes; [`faults`] finds accesses out of bounds and iterations that are not independent
//! where an example shows them, and [`proofs`] says which of them are proved right. [`interpret`] runs a nest and finds
//! accesses out of bounds, reads of what was not written, uses of memory that was given back, and iterations that are
//! not independent. [`held()`] says how much memory a run takes at most.
//!
//! This layer must not know of C++ or of how values arrive.

mod access;
mod bounds;
mod example;
mod expr;
mod form;
mod func;
mod interp;
mod memory;
mod peak;
mod print;
mod prove;
mod races;
mod site;
mod stmt;
pub mod stretch;
mod value;
mod verify;
pub mod walk;

pub use expr::{Buf, Expr, Var};
pub use func::{Func, Info, Nest};
pub use interp::{count, interpret};
pub use peak::{Held, Part, held};
pub use site::{Failing, PrintId, Site, SiteId};
pub use stmt::{Arg, Loop, LoopKind, Slot, Stmt};
pub use verify::{Proofs, faults, proofs, verify};
