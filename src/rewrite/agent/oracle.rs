//! What is known of a term on its own: an e-graph without rules holds it, and its analysis answers.
//!
//! Nothing is known of the extents of variables bound outside of the term, nor of calls and lets in it.

use crate::ir::{Def, Fun, Head, Id, Terms, deep};
use crate::rewrite::egraph::Graph;
use crate::rewrite::egraph::language::{ENode, Label};
use crate::rewrite::egraph::params::parameters;
use crate::rewrite::egraph::saturate::{extents, graph, holds};
use crate::rules::{Condition, Level};
use rustc_hash::FxHashMap;

/// Answers, each found once.
pub struct Oracle {
    g: Graph,
    /// The classes of the parameters by the calls that stand for them.
    params: FxHashMap<Fun, egg::Id>,
    /// Classes of terms by the extents of the variables around them.
    known: FxHashMap<(Id, Vec<egg::Id>), Option<egg::Id>>,
}

impl Oracle {
    /// For terms over the parameters of a definition, for which `params` stand.
    pub fn new(def: &Def, params: &[Fun], level: Level) -> Oracle {
        let mut g = graph(level);
        let like = def.params.iter().map(|p| (p.ty, p.sizes.as_slice()));
        let classes = params.iter().copied().zip(parameters(&mut g, like, &[])).collect();
        Oracle { g, params: classes, known: FxHashMap::default() }
    }

    /// Whether evaluating the term cannot fail.
    pub fn total(&mut self, terms: &Terms, id: Id) -> bool {
        self.class(terms, id).is_some_and(|c| self.g[c].data.total)
    }

    /// Whether a condition of a rule holds of terms.
    pub fn holds(&mut self, terms: &Terms, level: Level, condition: Condition, ids: &[Id]) -> bool {
        let classes: Option<Vec<egg::Id>> = ids.iter().map(|id| self.class(terms, *id)).collect();
        classes.is_some_and(|classes| holds(&self.g, level, condition, &classes))
    }

    fn class(&mut self, terms: &Terms, id: Id) -> Option<egg::Id> {
        self.at(terms, id, &mut vec![])
    }

    /// The class of a term under variables of these extents, and others of which nothing is known.
    fn at(&mut self, terms: &Terms, id: Id, scope: &mut Vec<egg::Id>) -> Option<egg::Id> {
        let (head, kids) = (terms.head(id), terms.kids(id));
        match head {
            Head::Var(i, ty) => {
                let known = scope.len().checked_sub(1 + i as usize).map(|k| scope[k]);
                let extent = known.unwrap_or_else(|| self.g.add(ENode::leaf(Label::Unknown)));
                return Some(self.g.add(ENode::new(Head::Var(i, ty), [extent])));
            }
            Head::Call(f) => return self.params.get(&f).copied(),
            Head::Let | Head::Print => return None,
            _ => {}
        }
        let key = (id, if terms.free(id).is_closed() { vec![] } else { scope.clone() });
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let mut made: Vec<egg::Id> = vec![];
        let mut out = Some(());
        for (k, kid) in kids.iter().enumerate() {
            let depth = scope.len();
            if head.binds(k, kids.len()) > 0 {
                let bound = extents(&mut self.g, head, &made);
                scope.extend(bound);
            }
            let class = deep(|| self.at(terms, *kid, scope));
            scope.truncate(depth);
            match class {
                Some(class) => made.push(class),
                None => {
                    out = None;
                    break;
                }
            }
        }
        let class = out.map(|()| self.g.add(ENode::new(head, made)));
        self.g.rebuild();
        self.known.insert(key, class);
        class
    }
}
