//! Transformers: what leads from one schedule tree to the next. Split, change of a loop's type, reorder, hoist and lower compute
//! and storage, inline and its opposite, as published; each gives a tree that is well formed, or is not among those offered.
//!
//! The publication does not say into how many parts loops are split. Loops are split into parts of 4, 16 or 64 here, twice a
//! dimension at most, and only the innermost part of a split is a vector.

use super::boxes::{Boxes, counts};
use super::functions::Functions;
use super::tree::{Level, Loop, Plan, Tree};
use crate::stage::StageId;

/// How long the parts of a split are.
const PARTS: [i64; 3] = [4, 16, 64];
/// Loops over one dimension at most.
const LOOPS: usize = 3;

/// A transformer of a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transformer {
    /// Splits a loop of a function into parts of so many iterations.
    Split(StageId, usize, i64),
    /// Makes the innermost loop of a function a vector, or sequential again.
    Kind(StageId),
    /// Switches a loop of a function and the next one inside.
    Reorder(StageId, usize),
    /// Computes a function one loop further out.
    HoistCompute(StageId),
    /// Computes a function one loop further in.
    LowerCompute(StageId),
    /// Takes the memory of a function one loop further out.
    HoistStorage(StageId),
    /// Takes the memory of a function one loop further in.
    LowerStorage(StageId),
    /// Computes a function where it is read.
    Inline(StageId),
    /// Computes a function that was inlined whole.
    Deinline(StageId),
}

/// The transformers of a tree, in a fixed order.
pub fn transformers(functions: &Functions, tree: &Tree) -> Vec<Transformer> {
    let mut all = vec![];
    let mut boxes = Boxes::new(functions, tree);
    for f in functions.ids() {
        let known = functions.get(f);
        let Plan::Own { loops, compute, storage } = tree.plan(f) else {
            all.push(Transformer::Deinline(f));
            continue;
        };
        if known.inlines {
            all.push(Transformer::Inline(f));
        }
        if known.moves {
            all.push(Transformer::LowerCompute(f));
            all.extend(compute.map(|_| Transformer::HoistCompute(f)));
            all.extend((storage != compute).then_some(Transformer::LowerStorage(f)));
            all.extend(storage.map(|_| Transformer::HoistStorage(f)));
        }
        let box_here = boxes.needed(f, *compute);
        let extents: Vec<i64> =
            box_here.iter().map(|r| r.extent()).chain(known.extents[known.own..].to_vec()).collect();
        let trips = counts(&extents, loops);
        all.extend((1..loops.len()).map(|k| Transformer::Reorder(f, k - 1)));
        for (k, l) in loops.iter().enumerate() {
            let few = loops.iter().filter(|o| o.dim == l.dim).count() < LOOPS;
            let parts = PARTS.into_iter().filter(|n| few && (*n as f64) < trips[k]);
            all.extend(parts.map(|n| Transformer::Split(f, k, n)));
        }
        all.extend((!loops.is_empty()).then_some(Transformer::Kind(f)));
    }
    all.retain(|t| t.apply(functions, tree).is_some());
    all
}

impl Transformer {
    /// The tree after it; nothing where that is none.
    pub fn apply(self, functions: &Functions, tree: &Tree) -> Option<Tree> {
        let mut out = tree.clone();
        match self {
            Transformer::Split(f, k, n) => split(functions, &mut out, f, k, n)?,
            Transformer::Kind(f) => {
                let (at, l) = vector(functions, tree, f)?;
                own(&mut out, f)?.0[at] = Loop { vectorized: !l.vectorized, ..l };
            }
            Transformer::Reorder(f, k) => {
                let [a, b] = [*tree.loops(f).get(k)?, *tree.loops(f).get(k + 1)?];
                let reduced = |l: Loop| l.dim >= functions.get(f).own;
                if a.dim == b.dim || reduced(a) && reduced(b) || b.vectorized {
                    return None;
                }
                own(&mut out, f)?.0.swap(k, k + 1);
            }
            Transformer::HoistCompute(f) => *own(&mut out, f)?.1 = tree.around(tree.compute(f)?),
            Transformer::LowerCompute(f) => {
                let level = lower(functions, tree, f)?;
                *own(&mut out, f)?.1 = level;
            }
            Transformer::HoistStorage(f) => *own(&mut out, f)?.2 = tree.around(tree.storage(f)?),
            Transformer::LowerStorage(f) => *own(&mut out, f)?.2 = towards(tree, tree.storage(f)?, tree.compute(f)?)?,
            Transformer::Inline(f) => {
                let hosts = |level: Option<Level>| matches!(level, Some(Some((h, _))) if h == f);
                if functions.ids().any(|p| hosts(tree.compute(p)) || hosts(tree.storage(p))) {
                    return None;
                }
                out.plans[f.0 as usize] = Plan::Inline;
            }
            Transformer::Deinline(f) => out.plans[f.0 as usize] = Tree::whole(functions, f),
        }
        (out != *tree && out.is_well_formed(functions)).then_some(out)
    }
}

/// What a tree says of a function that has nodes of its own.
fn own(tree: &mut Tree, f: StageId) -> Option<(&mut Vec<Loop>, &mut Level, &mut Level)> {
    match &mut tree.plans[f.0 as usize] {
        Plan::Own { loops, compute, storage } => Some((loops, compute, storage)),
        Plan::Inline => None,
    }
}

/// Splits a loop; what stood in it stands in its inner part.
fn split(functions: &Functions, tree: &mut Tree, f: StageId, k: usize, n: i64) -> Option<()> {
    let l = *tree.loops(f).get(k)?;
    if l.vectorized || l.dim >= functions.get(f).own {
        return None;
    }
    own(tree, f)?.0.insert(k, Loop { step: l.step.checked_mul(n)?, ..l });
    for g in functions.ids() {
        let Some((_, compute, storage)) = own(tree, g) else { continue };
        for level in [compute, storage] {
            if let Some((h, at)) = level
                && *h == f
                && *at >= k
            {
                *at += 1;
            }
        }
    }
    Some(())
}

/// The innermost loop of a function, where it may be a vector: a part of a power of two, with nothing in it.
fn vector(functions: &Functions, tree: &Tree, f: StageId) -> Option<(usize, Loop)> {
    let loops = tree.loops(f);
    let at = loops.len().checked_sub(1)?;
    let l = loops[at];
    let parts = loops[..at].iter().rev().find(|o| o.dim == l.dim)?;
    let whole = l.step == 1 && l.dim < functions.get(f).own && parts.step.count_ones() == 1;
    let here = Some(Some((f, at)));
    let free = functions.ids().all(|g| tree.compute(g) != here && tree.storage(g) != here);
    (whole && free).then_some((at, l))
}

/// One loop further in on the way from a place to another inside of it.
fn towards(tree: &Tree, outer: Level, inner: Level) -> Option<Level> {
    let mut at = inner;
    while at != outer {
        let next = tree.around(at);
        if next == outer {
            return Some(at);
        }
        at = next;
    }
    None
}

/// Where a function may be computed one loop further in: in the loop in which all run that read it.
fn lower(functions: &Functions, tree: &Tree, f: StageId) -> Option<Level> {
    let compute = tree.compute(f)?;
    let callers = tree.callers(functions, f);
    let mut found: Option<Level> = None;
    for r in callers {
        let next = towards(tree, compute, tree.body(r))?;
        if found.is_some_and(|known| known != next) {
            return None;
        }
        found = Some(next);
    }
    let (h, k) = found??;
    let l = tree.loops(h).get(k)?;
    (!l.vectorized && l.dim < functions.get(h).own).then_some(Some((h, k)))
}
