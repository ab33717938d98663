//! A body of any size loses what need not be there: directed steps are taken until none is left.
//!
//! The steps that look at binders are code (`nodes.rs`, `lets.rs`); the others are lines of rule files that bear the
//! mark `:simplify` (`rules.rs`). Each makes a measure smaller: the number of nodes or, of as many, how far in the
//! names that are used are bound, or how many lets stand in values of lets. So there are no more steps than nodes. A
//! step changes a bounded number of pointers (`tree.rs`) besides what it takes away, which is taken away once; after it
//! what stands a few levels above is looked at again. So time is linear in the size of the body, written out as a tree.
//! Steps that look at all uses of a let are tried for all lets that have changed, and at the end everything is looked
//! at once more, both a bounded number of times.
//!
//! The value stays the same, to the bit where only rules that keep the bits are given. No failure is added, and one may
//! go together with what is not needed. What sums of tensors have over nothing is read off their elements, so these keep
//! their form. It must not know what a body comes from.

mod lets;
mod nodes;
mod rules;
mod sizes;
mod tree;

pub use rules::Directed;

use crate::ir::{Head, Id, Param, Terms};
use std::collections::BTreeMap;
use tree::Tree;

/// A body that is larger, written out as a tree, stays as it is: it is not a text that anybody could read in.
pub const MAX_NODES: u64 = 20_000_000;
/// So often all lets are tried whose uses have changed.
const MAX_SWEEPS: usize = 32;

/// What was done.
#[derive(Clone, Default, Debug)]
pub struct Report {
    /// How often each step was taken, by its name.
    pub steps: BTreeMap<String, usize>,
    /// How many nodes and uses were looked at.
    pub looked: u64,
}

impl Report {
    fn note(&mut self, step: &str) {
        *self.steps.entry(step.to_string()).or_default() += 1;
    }

    fn note_all(&mut self, step: Option<&str>) {
        step.into_iter().for_each(|step| self.note(step));
    }

    /// How many steps were taken.
    pub fn taken(&self) -> usize {
        self.steps.values().sum()
    }
}

/// The simplified form of a body over parameters, by these rules.
pub fn simplify(terms: &mut Terms, body: Id, params: &[Param], rules: &mut Directed<'_>) -> (Id, Report) {
    let mut report = Report::default();
    if terms.size(body) > MAX_NODES {
        return (body, report);
    }
    let mut tree = Tree::new(terms, body, params);
    // Whether everything is looked at, and nothing was done since.
    let mut all = true;
    for _ in 0..MAX_SWEEPS {
        let before = report.taken();
        settle(&mut tree, rules, &mut report);
        sweep(&mut tree, &mut report);
        if report.taken() != before {
            all = false;
        } else if all {
            break;
        } else {
            // What a step depends on may stand far from what another one changed.
            tree.wake();
            all = true;
        }
    }
    settle(&mut tree, rules, &mut report);
    report.looked = tree.looked;
    match report.steps.is_empty() {
        true => (body, report),
        false => (tree.write(terms), report),
    }
}

/// Tries all lets of which something has changed. Children have smaller numbers, so outer lets come first.
fn sweep(tree: &mut Tree<'_>, report: &mut Report) {
    for at in (0..tree.nodes.len()).rev() {
        if tree.nodes[at].live && tree.nodes[at].head == Head::Let {
            report.note_all(tree.float_step(at));
        }
        if tree.nodes[at].live && tree.nodes[at].head == Head::Let {
            report.note_all(tree.bound_step(at));
        }
    }
}

/// Looks at nodes until none waits.
fn settle(tree: &mut Tree<'_>, rules: &mut Directed<'_>, report: &mut Report) {
    while let Some(at) = tree.next() {
        let step = match tree.nodes[at].head {
            Head::Let => tree.let_step(at).map(str::to_string),
            Head::Const(_) | Head::Var(..) => None,
            _ if tree.nodes[at].fixed => tree.part_step(at).map(str::to_string),
            _ => tree.node_step(at).map(str::to_string).or_else(|| rules.step(tree, at)),
        };
        if let Some(step) = step {
            report.note(&step);
            tree.wait(at);
        }
    }
}
