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

/// What is known of the sizes that two factors of a product of matrices have in common, which decides how the product
/// is spelled out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Inner {
    /// The declaration gives both one name.
    Same,
    /// It gives that of the second one a name.
    Named,
    /// Nothing.
    Unknown,
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
