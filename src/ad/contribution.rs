//! A contribution to an adjoint: for all indices of some loops, where the guards hold, the part of a
//! variable at some place changes by a value.
//!
//! Adjoints stay lists of contributions as long as they can, because a contribution says where it goes: what is read at
//! `(index i v)` in a loop over `i` comes back as an element, not as a tensor of zeros with one
//! other element. It must not know how contributions become tensors.

use super::emit::Emit;
use crate::ir::{Head, Id, Op, Terms};

/// A step from a value to a part of it.
#[derive(Clone, PartialEq, Debug)]
pub enum Step {
    /// Part k of n of a tuple.
    Part(u32, u32),
    /// The element at indices.
    At(Vec<Id>),
}

/// What stands around the value of a contribution.
#[derive(Clone, PartialEq, Debug)]
pub enum Item {
    /// A loop over one index, by its extent.
    Loop(Id),
    /// Nothing happens unless this holds.
    Guard(Id),
}

/// See the module.
#[derive(Clone, PartialEq, Debug)]
pub struct Contribution {
    /// The number of variables in scope around it.
    pub depth: usize,
    /// Loops and guards, the outermost first; each stands under the loops before it.
    pub items: Vec<Item>,
    /// Which part changes; the indices stand under all loops.
    pub steps: Vec<Step>,
    /// By how much; under all loops.
    pub value: Id,
}

impl Contribution {
    /// The number of loops.
    pub fn loops(&self) -> usize {
        self.items.iter().filter(|i| matches!(i, Item::Loop(_))).count()
    }

    /// Rewrites all terms; the function is told under how many of the loops each stands.
    pub fn map(mut self, f: &mut dyn FnMut(Id, usize) -> Id) -> Contribution {
        let mut loops = 0;
        for item in &mut self.items {
            match item {
                Item::Loop(extent) => {
                    *extent = f(*extent, loops);
                    loops += 1;
                }
                Item::Guard(c) => *c = f(*c, loops),
            }
        }
        for step in &mut self.steps {
            if let Step::At(index) = step {
                index.iter_mut().for_each(|i| *i = f(*i, loops));
            }
        }
        self.value = f(self.value, loops);
        self
    }

    /// The contribution where the work stands now.
    pub fn now(self, e: &mut Emit<'_>) -> Contribution {
        let by = e.depth() - self.depth;
        if by == 0 {
            return self;
        }
        let depth = e.depth();
        let terms = &mut *e.terms;
        let mut out = self.map(&mut |id, loops| shift_above(terms, id, loops, by));
        out.depth = depth;
        out
    }

    /// The contribution with its value changed by a function of a term that stood outside of the loops.
    pub fn with(mut self, e: &mut Emit<'_>, outer: Id, f: impl FnOnce(&mut Emit<'_>, Id, Id) -> Id) -> Contribution {
        let by = self.loops();
        let outer = e.terms.shift(outer, by);
        self.value = f(e, outer, self.value);
        self
    }
}

/// Moves a term inside `by` more binders that stand around its innermost `from` variables.
pub fn shift_above(terms: &mut Terms, id: Id, from: usize, by: usize) -> Id {
    if by == 0 {
        return id;
    }
    terms.map_free(id, from, &mut |t, i, ty, under| t.var((i as usize + from + by + under) as u32, ty))
}

/// Puts `by` for variable `at` of the innermost `loops`, which is taken away; `by` stands under the
/// `by_loops` outermost of the others.
pub fn put_for(terms: &mut Terms, id: Id, loops: usize, at: usize, by: Id, by_loops: usize) -> Id {
    if at >= loops {
        return id;
    }
    let gone = loops - 1 - at;
    terms.map_free(id, 0, &mut |t, i, ty, under| {
        let i = i as usize;
        match i.cmp(&gone) {
            std::cmp::Ordering::Less => t.var((i + under) as u32, ty),
            std::cmp::Ordering::Equal => t.shift(by, loops - 1 - by_loops + under),
            std::cmp::Ordering::Greater => t.var((i - 1 + under) as u32, ty),
        }
    })
}

/// The loops whose variables a term mentions, the outermost first.
pub fn mentioned(terms: &Terms, id: Id, loops: usize) -> Vec<usize> {
    let free = terms.free(id);
    (0..loops).filter(|k| free.has(loops - 1 - k)).collect()
}

/// Whether a term of indices cannot fail and is cheap: variables, numbers, sizes, and sums,
/// differences and products of them, divided by numbers.
pub fn simple(terms: &Terms, id: Id) -> bool {
    let number = |id: Id| matches!(terms.head(id), Head::Const(l) if l.as_int().is_some_and(|n| n > 0));
    match terms.head(id) {
        Head::Var(..) | Head::Const(_) => true,
        Head::Size(_) => matches!(terms.head(terms.kids(id)[0]), Head::Var(..)),
        Head::Op(Op::Add | Op::Sub | Op::Mul | Op::Neg | Op::Min | Op::Max) => {
            terms.size(id) < 40 && terms.kids(id).iter().all(|k| simple(terms, *k))
        }
        Head::Op(op) if op.divides() && number(terms.kids(id)[1]) => simple(terms, terms.kids(id)[0]),
        _ => false,
    }
}
