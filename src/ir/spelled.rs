//! Calls of the language's library, as data beside the terms that they make: by which name, and of what.

use super::lit::Lit;
use smallvec::SmallVec;

/// What stands in a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Arg {
    /// The variable of an index.
    Var(u32),
    /// A literal.
    Lit(Lit),
}

/// Where a product of matrices has the size that its factors must have in common, which decides how it is spelled out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Inner {
    /// The columns of the first factor, to which the declaration gives a name.
    Columns,
    /// The rows of the second one, to which it does.
    Rows,
    /// There is no name: they are counted once.
    Unnamed,
}

/// A call, and the term that it stands for.
#[derive(Clone)]
pub(super) struct Spelled<Id> {
    pub name: &'static str,
    pub term: Id,
    pub args: Args,
    /// Of products of matrices.
    pub inner: Option<Inner>,
}

/// The arguments of a call.
pub type Args = SmallVec<[Arg; 2]>;
