//! Calls of the language's library, as data beside the terms that they make: by which name, and of what.

use super::lit::Lit;
use super::ty::Ty;
use smallvec::SmallVec;

/// What stands in a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arg<Id> {
    /// The variable of an index.
    Var(u32),
    /// A literal.
    Lit(Lit),
    /// A size of the variable of an index, which has a name.
    Size(u32, usize),
    /// Any other expression.
    Term(Id),
}

/// The arguments of a call.
pub type Args<Id> = SmallVec<[Arg<Id>; 3]>;

/// Says what a program calls the size of an axis of the variable of an index, where it has a name, and of which variable
/// and axis that name is the size: of the first parameter that has it.
pub type Names<'a> = &'a dyn Fn(u32, usize) -> Option<(&'a str, (u32, usize))>;

/// Which sizes of its arguments have names, and which of those are one: it decides how a call is spelled out that
/// compares sizes or counts them once. One number a size, those without a name left out.
pub type Shared = Vec<(usize, usize, usize)>;

/// A call, and the term that it stands for: its arguments are the innermost variables there, the first outermost.
#[derive(Clone, PartialEq, Eq)]
pub struct Spelled<Id> {
    /// What is called.
    pub name: &'static str,
    /// A type in front of the arguments.
    pub of: Option<Ty>,
    /// What it stands for.
    pub term: Id,
    /// The types of its arguments.
    pub args: Vec<Ty>,
    /// Those that may be any expressions: they are evaluated once, where the call is, and in order. The others are
    /// bound before the call unless they are variables, literals or sizes that have names.
    pub whole: &'static [usize],
    /// The named sizes of the arguments, where the term depends on them.
    pub shared: Option<Shared>,
}
