//! The scope that contributions of adjoints leave, how they come by its lets, and where in it a term stands. It must not know who
//! decides that.

use crate::ir::{Head, Id, Terms};

/// How a contribution comes by a let of the scope it leaves.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Plan {
    /// It is not decided.
    Unknown,
    /// Its value is made again.
    Again,
    /// It is kept in a table over the indices of the scope.
    Table,
    /// Not at all.
    Never,
}

/// What is known of the scope that contributions leave.
pub(super) struct Scope {
    /// The number of variables around it.
    pub outer: usize,
    /// The number of its own indices.
    pub indices: usize,
    /// How contributions come by each let.
    pub plans: Vec<Plan>,
    /// Lets that contributions need inside of loops of their own.
    pub repeated: Vec<bool>,
    /// Places of what is kept in the table, by level.
    pub kept: Vec<usize>,
    /// Places of all that may be kept, where not everything may.
    pub only: Option<Vec<usize>>,
}

impl Scope {
    /// A scope that is left, with so many lets.
    pub fn new((outer, indices): (usize, usize), lets: usize, only: Option<Vec<usize>>) -> Scope {
        Scope { outer, indices, plans: vec![Plan::Unknown; lets], repeated: vec![false; lets], kept: vec![], only }
    }

    /// The level of the first let.
    pub fn first_let(&self) -> usize {
        self.outer + self.indices
    }

    /// Whether a let may be kept in the table.
    pub fn may_keep(&self, level: usize) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(&level))
    }
}

/// The place of a term: so many variables of the text under construction are in scope, and within these so many that
/// the term around it binds.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub depth: usize,
    pub under: usize,
}

impl Place {
    /// Where so many variables are in scope.
    pub fn at(depth: usize) -> Place {
        Place { depth, under: 0 }
    }

    /// The level of a variable that is not bound by the term around.
    pub fn level(self, terms: &Terms, id: Id) -> Option<usize> {
        let Head::Var(i, _) = terms.head(id) else { return None };
        (i as usize).checked_sub(self.under).map(|i| self.depth - 1 - i)
    }
}
