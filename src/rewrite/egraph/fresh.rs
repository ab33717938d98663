//! Where rules may match what they did not match before: at classes of their operation and type that
//! changed, or have a changed class below them, since they were looked for last.

use super::Graph;
use super::language::ENode;
use super::pattern::Compiled;
use super::types::fits;
use egg::{Id, Language, SearchMatches, Searcher};
use rustc_hash::FxHashSet;

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
