//! What is known of a term in its loops: an e-graph without rules holds it, and its analysis answers.
//!
//! Nothing is known of variables that lets and folds bind, nor of calls and lets in a term.

use crate::ir::{Def, Fun, Head, Id, Terms, deep};
use crate::rewrite::egraph::Graph;
use crate::rewrite::egraph::fire::{extents, holds};
use crate::rewrite::egraph::language::{ENode, Label};
use crate::rewrite::egraph::params::parameters;
use crate::rewrite::egraph::saturate::graph;
use crate::rules::{Condition, Level};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The classes of what the variables around a term range over, outermost first.
pub type Scope = SmallVec<[egg::Id; 6]>;

/// The part of a scope that a term depends on: terms with equal parts have equal answers.
pub fn used(terms: &Terms, id: Id, scope: &Scope) -> Scope {
    let free = terms.free(id);
    if free.is_closed() {
        return Scope::new();
    }
    (0..scope.len()).filter(|i| free.has(*i)).map(|i| scope[scope.len() - 1 - i]).collect()
}

/// Answers, each found once.
pub struct Oracle {
    g: Graph,
    /// The classes of the parameters by the calls that stand for them.
    params: FxHashMap<Fun, egg::Id>,
    /// Classes of terms by the extents of the variables that they depend on.
    known: FxHashMap<(Id, Scope), Option<egg::Id>>,
}

impl Oracle {
    /// For terms over the parameters of a definition, for which `params` stand.
    pub fn new(def: &Def, params: &[Fun], level: Level) -> Oracle {
        let mut g = graph(level);
        let like = def.params.iter().map(|p| (p.ty, p.sizes.clone()));
        let classes = params.iter().copied().zip(parameters(&mut g, like, &[])).collect();
        Oracle { g, params: classes, known: FxHashMap::default() }
    }

    /// Whether evaluating the term cannot fail.
    pub fn total(&mut self, terms: &Terms, id: Id, scope: &Scope) -> bool {
        self.class(terms, id, scope).is_some_and(|c| self.g[c].data.total)
    }

    /// Whether a condition of a rule holds of terms, each so many variables of the rule inside of the scope.
    pub fn holds(
        &mut self,
        terms: &Terms,
        level: Level,
        condition: Condition,
        ids: &[(Id, usize)],
        scope: &Scope,
    ) -> bool {
        let mut classes: SmallVec<[egg::Id; 2]> = SmallVec::new();
        for (id, depth) in ids {
            let class = match *depth {
                0 => self.class(terms, *id, scope),
                n => {
                    let unknown = self.unknown();
                    let inner: Scope = scope.iter().copied().chain(std::iter::repeat_n(unknown, n)).collect();
                    self.class(terms, *id, &inner)
                }
            };
            match class {
                Some(class) => classes.push(class),
                None => return false,
            }
        }
        holds(&self.g, level, condition, &classes)
    }

    /// The scope of the last child of a node.
    pub fn inside(&mut self, terms: &Terms, id: Id, scope: &Scope) -> Scope {
        let (head, kids) = (terms.head(id), terms.kids(id));
        let before: Option<Vec<egg::Id>> = match head {
            Head::Let => None,
            _ => kids[..kids.len() - 1].iter().map(|k| self.class(terms, *k, scope)).collect(),
        };
        let bound = match before {
            Some(made) => extents(&mut self.g, head, &made),
            None => vec![self.unknown(); head.binds(kids.len() - 1, kids.len())],
        };
        scope.iter().copied().chain(bound).collect()
    }

    /// The class of a node. Classes are put in order again where the analysis found two to be one: that takes
    /// as long as there are classes.
    fn add(&mut self, node: ENode) -> egg::Id {
        let one = |g: &Graph| g.total_size() - g.number_of_classes();
        let before = one(&self.g);
        let class = self.g.add(node);
        if one(&self.g) != before {
            self.g.rebuild();
        }
        self.g.find(class)
    }

    fn unknown(&mut self) -> egg::Id {
        self.g.add(ENode::leaf(Label::Unknown))
    }

    /// The class of a term in a scope.
    fn class(&mut self, terms: &Terms, id: Id, scope: &Scope) -> Option<egg::Id> {
        let (head, kids) = (terms.head(id), terms.kids(id));
        match head {
            Head::Var(i, ty) => {
                let known = scope.len().checked_sub(1 + i as usize).map(|k| scope[k]);
                let extent = known.unwrap_or_else(|| self.unknown());
                return Some(self.g.add(ENode::new(Head::Var(i, ty), [extent])));
            }
            Head::Call(f) => return self.params.get(&f).copied(),
            Head::Let | Head::Print => return None,
            _ => {}
        }
        let key = (id, used(terms, id, scope));
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let n = kids.len();
        let mut made: Option<Vec<egg::Id>> = Some(Vec::with_capacity(n));
        for (k, kid) in kids.iter().enumerate() {
            let class = match head.binds(k, n) {
                0 => deep(|| self.class(terms, *kid, scope)),
                _ => {
                    let inner = self.inside(terms, id, scope);
                    deep(|| self.class(terms, *kid, &inner))
                }
            };
            made = made.zip(class).map(|(mut made, class)| {
                made.push(class);
                made
            });
            if made.is_none() {
                break;
            }
        }
        let class = made.map(|made| self.add(ENode::new(head, made)));
        self.known.insert(key, class);
        class
    }
}
