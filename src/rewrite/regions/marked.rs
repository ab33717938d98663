//! Marks stand for regions in a body: where each stands becomes known, and over which variables.
//!
//! It must not know what regions become.

use crate::derive::lemma::Lemma;
use crate::ir::{Fun, Head, Id, Signature, Terms, Ty, deep};
use crate::rewrite::explain::lemma::Proved;
use std::sync::Arc;

/// A body with the left sides of lemmas, each where it can be taken.
pub struct Marked {
    /// The arena.
    pub terms: Terms,
    /// The body.
    pub id: Id,
    /// Where the left sides stand.
    pub places: Vec<Place>,
}

/// Where a lemma can be taken.
pub struct Place {
    /// The path of child numbers.
    pub path: Vec<usize>,
    /// The levels of the variables that are its parameters.
    pub levels: Vec<usize>,
    /// The lemma.
    pub proof: Arc<Proved>,
}

/// The mark of the `k`th region: a call that no program has, of the lemma's parameters.
pub fn mark(k: usize, lemma: &Lemma) -> (Terms, Id) {
    let (mut terms, n) = (Terms::default(), lemma.params.len());
    let args: Vec<Id> = lemma.params.iter().enumerate().map(|(i, ty)| terms.var((n - 1 - i) as u32, *ty)).collect();
    let ret = lemma.terms.ty(lemma.left);
    let name = format!("{k} region");
    let fun = Fun::new(Signature { name, params: lemma.params.clone(), ret });
    let id = terms.put(Head::Call(fun), args);
    (terms, id)
}

/// Which region a head is the mark of.
fn marks(head: Head) -> Option<usize> {
    match head {
        Head::Call(fun) => fun.sig().name.strip_suffix(" region")?.parse().ok(),
        _ => None,
    }
}

/// A body with the left sides for the marks.
pub fn marked(terms: Terms, id: Id, params: usize, proofs: &[Arc<Proved>]) -> Marked {
    let mut walk = Walk { terms, proofs, depth: params, path: vec![], places: vec![] };
    let id = walk.term(id);
    let Walk { terms, places, .. } = walk;
    Marked { terms, id, places }
}

struct Walk<'a> {
    terms: Terms,
    proofs: &'a [Arc<Proved>],
    /// How many variables are in scope.
    depth: usize,
    path: Vec<usize>,
    places: Vec<Place>,
}

impl Walk<'_> {
    fn term(&mut self, id: Id) -> Id {
        let (head, kids) = (self.terms.head(id), self.terms.kids(id).to_vec());
        if let Some(k) = marks(head) {
            return self.left(k, &kids);
        }
        if self.terms.calls(id).iter().all(|fun| marks(Head::Call(*fun)).is_none()) {
            return id;
        }
        let mut new = vec![];
        for (k, kid) in kids.iter().enumerate() {
            let binds = head.binds(k, kids.len());
            self.depth += binds;
            self.path.push(k);
            new.push(deep(|| self.term(*kid)));
            self.path.pop();
            self.depth -= binds;
        }
        let out = self.terms.put(head, new);
        self.terms.keep_hints(id, out);
        out
    }

    /// The left side of a lemma, in the place of its mark.
    fn left(&mut self, k: usize, args: &[Id]) -> Id {
        let proof = Arc::clone(&self.proofs[k]);
        let index = |id: &Id| match self.terms.head(*id) {
            Head::Var(i, _) => i as usize,
            _ => 0,
        };
        let indices: Vec<usize> = args.iter().map(index).collect();
        let levels = indices.iter().map(|i| self.depth - 1 - i).collect();
        let (n, lemma) = (indices.len(), &proof.lemma);
        let id = self.terms.import(&lemma.terms, lemma.left);
        let at = |t: &mut Terms, i: u32, ty: Ty, under: usize| t.var((indices[n - 1 - i as usize] + under) as u32, ty);
        let out = self.terms.map_free(id, 0, &mut { at });
        self.places.push(Place { path: self.path.clone(), levels, proof });
        out
    }
}
