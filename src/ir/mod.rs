//! What a program is: text trees, types, scalar operations, terms, definitions, and printing.
//!
//! Nothing here gives names a meaning (that is `types`) or evaluates terms (that is `eval`).

pub mod calls;
mod compare;
pub mod elementary;
pub mod evaluate;
pub mod head;
mod lambdas;
mod layout;
pub mod lit;
pub mod names;
pub mod op;
pub mod print;
pub mod program;
pub mod read;
pub mod spelled;
pub mod term;
mod told;
pub mod ty;
mod variables;

pub use head::{Fun, Head, Monoid, Signature};
pub use lit::Lit;
pub use op::Op;
pub use program::{Body, Def, Param, Program, named_size};
pub use term::{Free, Id, Node, Terms, deep};
pub use ty::{Range, Scalar, Ty, TyKind};
