//! What reverse mode keeps for the way back, and what it makes again: a decision for each fold and scan, and one for
//! the tables of a function's loops.
//!
//! A fold or scan is said by the function that it stands in and its place among those of that function. It must not
//! know what anything costs.

use crate::diag::Span;
use crate::ir::Fun;
use std::collections::{BTreeMap, BTreeSet};

/// How much of a fold or scan is kept, from most to least.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Keep {
    /// All states, and what the steps bind.
    Values,
    /// All states; what the steps bind is made again.
    States,
    /// About √n of the n states; the others are made again, too. A scan gives all its states, and keeps them.
    Few,
}

/// A fold or scan of a function that is differentiated: the function, and which one of it.
pub type Place = (Fun, usize);

/// What is known of a fold or scan.
#[derive(Clone, PartialEq, Debug)]
pub struct Sequence {
    /// Where it stands in the source, if it does.
    pub span: Option<Span>,
    /// Whether it is a fold, of which few states can be kept.
    pub fold: bool,
}

/// What there is to decide of a derivative.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Decisions {
    /// Its folds and scans.
    pub sequences: BTreeMap<Place, Sequence>,
    /// The functions that are differentiated, whose loops may keep tables.
    pub functions: BTreeSet<Fun>,
}

/// What is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Keeping {
    /// What holds for folds and scans of which nothing is said.
    all: Keep,
    /// Whether tables are kept by the loops of functions of which nothing is said.
    tables: bool,
    /// Folds and scans of which less is kept.
    less: BTreeMap<Place, Keep>,
    /// Functions whose loops keep no tables of what both ways need.
    without: BTreeSet<Fun>,
}

impl Keeping {
    /// Everything is kept: the fastest derivative.
    pub fn everything() -> Keeping {
        Keeping { all: Keep::Values, tables: true, less: BTreeMap::new(), without: BTreeSet::new() }
    }

    /// The states of all folds and scans are kept, and nothing else.
    pub fn states() -> Keeping {
        Keeping { all: Keep::States, tables: false, ..Keeping::everything() }
    }

    /// Few states of every fold are kept, and no tables.
    pub fn few() -> Keeping {
        Keeping { all: Keep::Few, tables: false, ..Keeping::everything() }
    }

    /// The same, with so much of one fold or scan.
    #[must_use]
    pub fn with(&self, place: Place, keep: Keep) -> Keeping {
        let mut out = self.clone();
        out.less.insert(place, keep);
        out
    }

    /// The same without tables of the loops of a function.
    #[must_use]
    pub fn without_tables(&self, fun: Fun) -> Keeping {
        let mut out = self.clone();
        out.without.insert(fun);
        out
    }

    /// How much of a fold or scan is kept.
    pub fn of(&self, place: Place) -> Keep {
        self.less.get(&place).copied().unwrap_or(self.all)
    }

    /// Whether the loops of a function keep tables of what both ways need.
    pub fn tables(&self, fun: Fun) -> bool {
        self.tables && !self.without.contains(&fun)
    }
}
