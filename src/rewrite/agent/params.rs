//! Parameters of a definition as closed terms, so that equal subterms are one term wherever they stand.

use crate::ir::{Def, Fun, Head, Id, Param, Signature, Terms, deep};
use rustc_hash::FxHashMap;

/// Closed terms that stand for the parameters of a definition: calls of functions that nothing else
/// names, so that equal subterms are one term at whatever depth they stand.
pub struct Params {
    pub(super) funs: Vec<Fun>,
}

impl Params {
    /// Of a definition.
    pub fn of(def: &Def) -> Params {
        let fun =
            |(k, p): (usize, &Param)| Fun::new(Signature { name: format!("parameter {k}"), params: vec![], ret: p.ty });
        Params { funs: def.params.iter().enumerate().map(fun).collect() }
    }

    /// Whether a function stands for a parameter.
    pub fn is_param(&self, fun: Fun) -> bool {
        self.funs.contains(&fun)
    }

    /// The number of the parameter that a function stands for.
    pub fn number(&self, fun: Fun) -> Option<usize> {
        self.funs.iter().position(|g| *g == fun)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.funs.len()
    }

    /// The term with calls in place of the parameters.
    pub fn closed(&self, terms: &mut Terms, id: Id) -> Id {
        let n = self.funs.len();
        terms.map_free(id, 0, &mut |t, i, _, _| t.put(Head::Call(self.funs[n - 1 - i as usize]), []))
    }

    /// The term over the parameters again.
    pub fn restored(&self, terms: &mut Terms, id: Id) -> Id {
        self.restored_at(terms, id, 0, &mut FxHashMap::default())
    }

    fn restored_at(&self, terms: &mut Terms, id: Id, depth: usize, memo: &mut FxHashMap<(Id, usize), Id>) -> Id {
        if let Head::Call(f) = terms.head(id)
            && let Some(k) = self.number(f)
        {
            return terms.var((depth + self.funs.len() - 1 - k) as u32, f.sig().ret);
        }
        if terms.kids(id).is_empty() {
            return id;
        }
        if let Some(done) = memo.get(&(id, depth)) {
            return *done;
        }
        let node = terms.node(id).clone();
        let n = node.kids.len();
        let mut kids = vec![];
        for (k, kid) in node.kids.iter().enumerate() {
            let under = depth + node.head.binds(k, n);
            kids.push(deep(|| self.restored_at(terms, *kid, under, memo)));
        }
        let out = terms.put(node.head, kids);
        terms.called_as(out, id);
        memo.insert((id, depth), out);
        out
    }
}
