//! The e-graph of terms: what is kept of each class and of the whole. How it comes to be known is in `analysis.rs`.

use super::called::{Called, Names};
use super::language::{ENode, Label};
use super::range::Range;
use super::trace::{Tid, Trace};
use crate::ir::{Free, Lit, Ty};
use egg::Id;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// An e-graph of terms.
pub type Graph = egg::EGraph<ENode, Facts>;

/// The facts of one e-class.
#[derive(Clone, PartialEq, Debug)]
pub struct Fact {
    /// The type of all members.
    pub ty: Ty,
    /// The free index variables of the representative.
    pub free: Free,
    /// The size of the representative as a tree.
    pub size: u64,
    /// The root of the representative: fewest free variables first, then smallest.
    pub best: ENode,
    /// The value, where it is a known scalar.
    pub konst: Option<Lit>,
    /// Bounds of a number; of a tensor's elements where the class is one.
    pub range: Range,
    /// How often the bounds were changed: a class that is part of itself could go on for ever.
    pub tightened: u8,
    /// Some member cannot fail, or evaluation is certain anyway.
    pub total: bool,
    /// If this fails, everything fails: the input evaluates it for all it depends on.
    pub strict: bool,
    /// Some member cannot fail and has a value over the reals.
    pub defined: bool,
    /// The same where no divisor is 0.
    pub valued: bool,
    /// Sizes of a tensor by axis.
    pub dims: Vec<Option<Id>>,
    /// An estimate of an integer, for costs.
    pub estimate: f64,
    /// The concrete term of the representative, where a trace is kept.
    pub origin: Tid,
    /// The round in which its members or facts changed last.
    pub changed: u32,
    /// What the source calls it. Nothing but the printed text depends on it.
    pub called: Called,
}

/// One rewrite. Whether it removed a failure is judged at the end, when most is known.
#[derive(Clone, Debug)]
pub struct Step {
    /// The root of what was matched.
    pub root: ENode,
    /// All nodes that were matched.
    pub left: Vec<ENode>,
    /// All nodes that were made.
    pub right: Vec<ENode>,
    /// Classes that what was made does not always evaluate.
    pub lost: Vec<Id>,
}

/// What is known of the parameters of a region, and their nodes do not show.
#[derive(Clone, Default)]
pub struct Params {
    /// How often the loops run that indices belong to.
    pub below: FxHashMap<u32, Id>,
    /// Those that may have no value over the reals.
    pub undefined: FxHashSet<u32>,
}

/// The analysis of an e-graph.
#[derive(Clone, Default)]
pub struct Facts {
    /// The rewrites that were done: what was matched may fail where what was made does not.
    pub steps: Vec<Step>,
    /// Whether rules keep the bits, so that operations on literals may round as they do at run time.
    /// Where rules hold over the reals, a rounded literal would equal another one that it is not, and
    /// soon everything would equal everything.
    pub rounds: bool,
    /// Set where classes of different types or values were united: what follows is worth nothing.
    pub contradiction: Option<String>,
    /// What was done, where a derivation is asked for.
    pub trace: Option<Trace>,
    /// The round, counted from 1.
    pub now: u32,
    /// The names that classes are called by.
    pub names: Names,
    /// What is known of the parameters of a region.
    pub params: Params,
}

/// Concrete terms of nodes and classes; all of them are 0 where no trace is kept.
pub trait Traced {
    /// A node over the origins of its children.
    fn concrete(&mut self, node: &ENode) -> Tid;
    /// A node over concrete children.
    fn concrete_of(&mut self, label: Label, kids: &[Tid]) -> Tid;
}

impl Traced for Graph {
    fn concrete(&mut self, node: &ENode) -> Tid {
        if self.analysis.trace.is_none() {
            return 0;
        }
        let kids: SmallVec<[Tid; 3]> = node.kids.iter().map(|k| self[*k].data.origin).collect();
        self.concrete_of(node.label, &kids)
    }

    fn concrete_of(&mut self, label: Label, kids: &[Tid]) -> Tid {
        self.analysis.trace.as_mut().map_or(0, |t| t.put(label, kids.iter().copied()))
    }
}
