//! Lemmas become equations of a trace: one for each place where a lemma leads from one program to the next.
//!
//! It must not know whether a lemma may be taken there: that is asked of the checker.

use super::terms::{extents, lowered};
use crate::derive::flat::as_parameter;
use crate::derive::lemma::Lemma;
use crate::ir::{Def, Head, Id, deep};
use crate::rewrite::egraph::language::Label;
use crate::rewrite::egraph::trace::{Tid, Trace};
use rustc_hash::{FxHashMap, FxHashSet};

/// Records where lemmas lead from a part of one term to a part of another.
pub fn instances(trace: &mut Trace, def: &Def, (from, to): (Tid, Tid), lemmas: &[(&str, &Lemma)]) {
    let (parts, goals) = (parts(trace, from), parts(trace, to).into_iter().collect::<FxHashSet<Tid>>());
    for id in parts {
        for (name, lemma) in lemmas {
            if trace.node(id).0 != Label::Head(lemma.terms.head(lemma.left)) {
                continue;
            }
            let (found, seen) = (vec![None; lemma.params.len()], FxHashSet::default());
            let mut walk = Match { lemma, found, seen };
            if walk.fits(trace, lemma.left, id, 0) {
                let found = walk.found;
                // What stands for the parameters may become another one, too: then what is made here stands nowhere.
                let news = made(trace, def, lemma, found);
                if let Some(new) = news.iter().find(|new| goals.contains(new)).or(news.first()) {
                    trace.by(id, *new, name);
                }
            }
        }
    }
}

/// The parts of a term, but for what variables range over.
fn parts(trace: &Trace, root: Tid) -> Vec<Tid> {
    let (mut todo, mut seen, mut out) = (vec![root], FxHashSet::default(), vec![]);
    while let Some(id) = todo.pop() {
        let (label, kids) = trace.node(id);
        if seen.insert(id) && !matches!(label, Label::Head(Head::Var(..))) {
            out.push(id);
            todo.extend(kids);
        }
    }
    out
}

/// What a lemma may make where its left side was found: parameters of which that does not speak are those of the
/// definition.
fn made(trace: &mut Trace, def: &Def, lemma: &Lemma, found: Vec<Option<Tid>>) -> Vec<Tid> {
    let right = lemma.terms.reachable(lemma.right);
    let speaks = |k: usize| right.iter().any(|id| as_parameter(lemma.terms.head(*id)) == Some(k));
    let mut all: Vec<Vec<Tid>> = vec![vec![]];
    for (k, known) in found.iter().enumerate() {
        let of = def.params.iter().enumerate().filter(|(_, p)| p.ty == lemma.params[k]);
        let tried: Vec<Tid> = match known {
            Some(known) => vec![*known],
            None if speaks(k) => of.map(|(k, p)| trace.put(Label::Param(k as u32, p.ty), [])).collect(),
            None => vec![trace.put(Label::Unknown, [])],
        };
        all = all.iter().flat_map(|some| tried.iter().map(|id| some.iter().copied().chain([*id]).collect())).collect();
        all.truncate(MAX_TRIED);
    }
    let make = |found: Vec<Tid>| {
        let (scope, memo, sizes) = Default::default();
        Made { lemma, found, scope, memo, sizes }.term(trace, lemma.right)
    };
    all.into_iter().map(make).collect()
}

/// So many ways to complete what was found are tried at most.
const MAX_TRIED: usize = 32;

/// Where the left side of a lemma fits a concrete term.
struct Match<'a> {
    lemma: &'a Lemma,
    found: Vec<Option<Tid>>,
    seen: FxHashSet<(Id, Tid, usize)>,
}

impl Match<'_> {
    fn fits(&mut self, trace: &mut Trace, pattern: Id, id: Tid, depth: usize) -> bool {
        let want = self.lemma.terms.head(pattern);
        if let Some(k) = as_parameter(want) {
            let Some(value) = lowered(trace, id, depth) else { return false };
            let known = *self.found[k].get_or_insert(value);
            return known == value && trace.ty(id) == self.lemma.params[k];
        }
        if trace.node(id).0 != Label::Head(want) {
            return false;
        }
        if matches!(want, Head::Var(..)) || !self.seen.insert((pattern, id, depth)) {
            return true;
        }
        let (left, right) = (self.lemma.terms.kids(pattern), trace.node(id).1.clone());
        let n = left.len();
        n == right.len() && (0..n).all(|k| deep(|| self.fits(trace, left[k], right[k], depth + want.binds(k, n))))
    }
}

/// A term of a lemma as a concrete term.
struct Made<'a> {
    lemma: &'a Lemma,
    found: Vec<Tid>,
    scope: Vec<Tid>,
    memo: FxHashMap<(Id, Vec<Tid>), Tid>,
    sizes: FxHashMap<Tid, Tid>,
}

impl Made<'_> {
    fn term(&mut self, trace: &mut Trace, id: Id) -> Tid {
        let (head, depth) = (self.lemma.terms.head(id), self.scope.len());
        if let Some(k) = as_parameter(head) {
            return trace.shifted(self.found[k], depth);
        }
        if let Head::Var(i, _) = head {
            return trace.put(Label::Head(head), [self.scope[depth - 1 - i as usize]]);
        }
        let key = (id, self.scope.clone());
        if let Some(done) = self.memo.get(&key) {
            return *done;
        }
        let kids = self.lemma.terms.kids(id);
        let mut new: Vec<Tid> = vec![];
        for (k, kid) in kids.iter().enumerate() {
            if head.binds(k, kids.len()) > 0 {
                let over = extents(trace, head, &new, &mut self.sizes);
                self.scope.extend(over);
            }
            new.push(deep(|| self.term(trace, *kid)));
            self.scope.truncate(depth);
        }
        let out = trace.put(Label::Head(head), new);
        self.memo.insert(key, out);
        out
    }
}
