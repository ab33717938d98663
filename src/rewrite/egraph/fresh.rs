//! Where rules may match what they did not match before: at classes of their operation and type that
//! changed, or have a changed class below them, since they were looked for last.

use super::Graph;
use super::language::ENode;
use super::pattern::Compiled;
use super::types::fits;
use egg::{Id, Language, SearchMatches, Searcher};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// When the classes of an e-graph changed.
pub struct Fresh {
    /// For each class, by how many levels below it are counted.
    changed: Vec<Vec<u32>>,
    /// The classes at which rules are looked for, where it is not all.
    part: Option<FxHashSet<Id>>,
}

/// A part of an e-graph: what stood below a class at the start, and all that was made since.
pub struct Part {
    below: Vec<Id>,
    made: usize,
}

impl Part {
    /// The part of a class.
    pub fn below(g: &Graph, root: Id) -> Part {
        let made = g.classes().map(|c| usize::from(c.id) + 1).max().unwrap_or(0);
        Part { below: below(g, root), made }
    }
}

/// A class and those below it.
pub fn below(g: &Graph, root: Id) -> Vec<Id> {
    let (mut seen, mut open) = (FxHashSet::default(), vec![g.find(root)]);
    while let Some(id) = open.pop() {
        if seen.insert(id) {
            open.extend(g[id].nodes.iter().flat_map(|n| &n.kids).map(|k| g.find(*k)));
        }
    }
    let mut all: Vec<Id> = seen.into_iter().collect();
    all.sort_unstable();
    all
}

/// How many classes there are below each of these, itself counted, which are all below one of them.
pub fn count_below(g: &Graph, all: &[Id]) -> Vec<usize> {
    let places: FxHashMap<Id, usize> = all.iter().enumerate().map(|(at, id)| (*id, at)).collect();
    let kids = |id: &Id| g[*id].nodes.iter().flat_map(|n| &n.kids).map(|kid| places[&g.find(*kid)]).collect();
    let kids: Vec<BTreeSet<usize>> = all.iter().map(kids).collect();
    let order = children_first(&kids);
    let mut counts = vec![0; all.len()];
    // A bit a class, as many at a time as a number has: that needs no more room than the classes themselves.
    for first in (0..all.len()).step_by(u64::BITS as usize) {
        let own = |at: usize| at.checked_sub(first).and_then(|bit| 1u64.checked_shl(bit as u32)).unwrap_or(0);
        let mut below: Vec<u64> = (0..all.len()).map(own).collect();
        // Once more wherever classes are parts of themselves.
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for at in &order {
                let found = kids[*at].iter().fold(below[*at], |found, kid| found | below[*kid]);
                changed |= std::mem::replace(&mut below[*at], found) != found;
            }
        }
        counts.iter_mut().zip(below).for_each(|(count, below)| *count += below.count_ones() as usize);
    }
    counts
}

/// Places such that the children of each stand before it, but for those that it is itself a part of.
fn children_first(kids: &[BTreeSet<usize>]) -> Vec<usize> {
    let (mut seen, mut out) = (vec![false; kids.len()], vec![]);
    for at in 0..kids.len() {
        let mut path = vec![(at, false)];
        while let Some((at, done)) = path.pop() {
            if done {
                out.push(at);
            } else if !std::mem::replace(&mut seen[at], true) {
                path.push((at, true));
                path.extend(kids[at].iter().map(|kid| (*kid, false)));
            }
        }
    }
    out
}

impl Fresh {
    /// Looks at so many levels below each class, of a part only where there is one.
    pub fn new(g: &Graph, levels: usize, part: Option<&Part>) -> Fresh {
        let most = g.classes().map(|c| usize::from(c.id) + 1).max().unwrap_or(0);
        let mut first = vec![0; most];
        g.classes().for_each(|c| first[usize::from(c.id)] = c.data.changed);
        let mut changed = vec![first];
        for level in 0..levels {
            let above = &changed[level];
            let mut next = above.clone();
            for class in g.classes() {
                let kids = class.nodes.iter().flat_map(|n| &n.kids);
                let latest = kids.map(|k| above[usize::from(g.find(*k))]).max().unwrap_or(0);
                let at = &mut next[usize::from(class.id)];
                *at = latest.max(*at);
            }
            changed.push(next);
        }
        let part = part.map(|r| {
            let made = g.classes().map(|c| c.id).filter(|id| usize::from(*id) >= r.made);
            r.below.iter().map(|id| g.find(*id)).chain(made).collect()
        });
        Fresh { changed, part }
    }

    /// The matches of a rule that may be new since it was looked for last, `most` at most, and at how many
    /// classes it was looked for.
    pub fn matches<'r>(
        &self,
        g: &Graph,
        rule: &'r Compiled<'r>,
        since: u32,
        most: usize,
    ) -> (Vec<SearchMatches<'r, ENode>>, usize) {
        let (mut out, mut looked, mut left) = (vec![], 0, most);
        let Some(root) = rule.root() else { return (out, looked) };
        let Some(classes) = g.classes_for_op(&ENode::new(root, []).discriminant()) else { return (out, looked) };
        for id in classes.filter(|id| self.is_new(rule, *id, since) && fits(rule.ty, g[*id].data.ty)) {
            if left == 0 {
                break;
            }
            looked += 1;
            if let Some(matches) = rule.pattern.search_eclass_with_limit(g, id, left) {
                left = left.saturating_sub(matches.substs.len());
                out.push(matches);
            }
        }
        (out, looked)
    }

    fn is_new(&self, rule: &Compiled<'_>, id: Id, since: u32) -> bool {
        if self.part.as_ref().is_some_and(|r| !r.contains(&id)) {
            return false;
        }
        !rule.local || self.changed[rule.reach][usize::from(id)] >= since
    }
}

#[cfg(test)]
mod tests {
    use super::super::language::Label;
    use super::super::saturate::graph;
    use super::*;
    use crate::ir::{Head, Op, Ty};
    use crate::rules::Level;

    /// Protects: classes below each class are counted as if each were walked through, also where one is part of itself.
    #[test]
    fn classes_below_are_counted_together() {
        for cycles in [vec![], vec![(30, 60), (100, 170)]] {
            let mut g = graph(Level::Real);
            let mut all = vec![g.add(ENode::leaf(Label::Param(0, Ty::float())))];
            for k in 0..200 {
                let kids = [all[k], all[k - k.min(k % 7)]];
                all.push(g.add(ENode::new(Head::Op(if k % 3 == 0 { Op::Mul } else { Op::Sub }), kids)));
            }
            for (a, b) in cycles {
                g.union(all[a], all[b]);
            }
            g.rebuild();
            let each = below(&g, all[200]);
            let counts: Vec<usize> = each.iter().map(|id| below(&g, *id).len()).collect();
            assert!(each.len() > 100, "{}", each.len());
            assert_eq!(count_below(&g, &each), counts);
        }
    }
}
