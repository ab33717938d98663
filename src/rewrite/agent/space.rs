//! Terms as a search space: a state is a term and how many moves led to it.

use super::rewrites::Rewrites;
use crate::ir::Id;
use crate::search::Space;
use std::cell::RefCell;

/// A term, and the moves that led to it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct State {
    /// The term.
    pub id: Id,
    /// Moves from the root.
    pub depth: usize,
}

/// The terms that rules and bindings lead to from a term.
pub struct TermSpace<'a> {
    /// The rewrites, found as they are asked for.
    pub rewrites: RefCell<Rewrites<'a>>,
    /// Where the search begins.
    pub root: Id,
    /// Moves at most.
    pub depth: usize,
    /// Whether the first half of the moves is by rules of phase 1 alone.
    pub phased: bool,
}

impl Space for TermSpace<'_> {
    type State = State;
    type Move = u32;

    fn root(&self) -> State {
        State { id: self.root, depth: 0 }
    }

    fn moves(&self, at: &State) -> Vec<u32> {
        if at.depth >= self.depth {
            return vec![];
        }
        let mut rewrites = self.rewrites.borrow_mut();
        let all = rewrites.of(at.id);
        match self.phased && 2 * at.depth < self.depth {
            true => (0..all.len() as u32).filter(|k| rewrites.phase(&all[*k as usize]) == 1).collect(),
            false => (0..all.len() as u32).collect(),
        }
    }

    fn apply(&self, at: &State, by: &u32) -> State {
        let to = self.rewrites.borrow_mut().of(at.id)[*by as usize].to;
        State { id: to, depth: at.depth + 1 }
    }

    fn terminal(&self, at: &State) -> bool {
        // Whether a larger term has moves is found out where it is expanded.
        let mut rewrites = self.rewrites.borrow_mut();
        at.depth >= self.depth || rewrites.terms.kids(at.id).is_empty() && rewrites.of(at.id).is_empty()
    }

    fn depth(&self, at: &State) -> usize {
        at.depth
    }

    fn key(&self, at: &State, _: usize) -> u64 {
        at.id.index() as u64
    }

    /// Every term means the same, so every one may be returned.
    fn solution(&self, _: &State) -> bool {
        true
    }
}
