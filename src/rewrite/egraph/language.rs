//! The nodes of the e-graph: heads of terms, parameters, and the extents of index variables.
//!
//! A loop's index variable has its extent as its one child, where that is a closed term. So equal
//! variables range over equal sizes, and an index can be proved in range wherever it stands.

use crate::ir::{Head, Ty, TyKind};
use egg::Id;
use smallvec::SmallVec;

/// What labels an e-node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Label {
    /// A node of a term. `Var` has one child: its extent, or [`Label::Unknown`].
    Head(Head),
    /// The k-th parameter of the definition.
    Param(u32, Ty),
    /// The extent of a variable that has none, or one that is not closed.
    Unknown,
}

/// An e-node.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ENode {
    /// The label.
    pub label: Label,
    /// The children.
    pub kids: SmallVec<[Id; 3]>,
}

impl ENode {
    /// A node of a term.
    pub fn new(head: Head, kids: impl IntoIterator<Item = Id>) -> ENode {
        ENode { label: Label::Head(head), kids: kids.into_iter().collect() }
    }

    /// A node without children.
    pub fn leaf(label: Label) -> ENode {
        ENode { label, kids: SmallVec::new() }
    }

    /// The head, where it is a node of a term.
    pub fn head(&self) -> Option<Head> {
        match self.label {
            Label::Head(h) => Some(h),
            Label::Param(..) | Label::Unknown => None,
        }
    }
}

/// Types agree where one of them is a type variable of a rule: its range is checked with the match.
fn types_match(a: Ty, b: Ty) -> bool {
    let var = |t: Ty| matches!(t.kind(), TyKind::Var(..));
    a == b || var(a) || var(b)
}

impl egg::Language for ENode {
    type Discriminant = (std::mem::Discriminant<Label>, Option<std::mem::Discriminant<Head>>, u32);

    fn discriminant(&self) -> Self::Discriminant {
        let detail = match self.label {
            Label::Head(Head::Op(op)) => op as u32,
            Label::Head(Head::Var(i, _)) => i,
            Label::Head(_) | Label::Param(..) | Label::Unknown => 0,
        };
        (std::mem::discriminant(&self.label), self.head().map(|h| std::mem::discriminant(&h)), detail)
    }

    fn matches(&self, other: &Self) -> bool {
        let labels = match (&self.label, &other.label) {
            // Most nodes are operations, and this is asked more often than anything else.
            (Label::Head(Head::Op(a)), Label::Head(Head::Op(b))) => a == b,
            (Label::Head(Head::Op(_)), _) | (_, Label::Head(Head::Op(_))) => false,
            (Label::Head(Head::Var(i, a)), Label::Head(Head::Var(j, b))) => i == j && types_match(*a, *b),
            (a, b) => a == b,
        };
        labels && self.kids.len() == other.kids.len()
    }

    fn children(&self) -> &[Id] {
        &self.kids
    }

    fn children_mut(&mut self) -> &mut [Id] {
        &mut self.kids
    }
}
