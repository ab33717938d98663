//! States without lets: what is shared or independent of a loop is bound where that costs least, and
//! the term with those lets is what a state costs, and what is returned.

use super::oracle::{Scope, used};
use super::params::Params;
use super::rewrites::Rewrites;
use crate::cost::Model;
use crate::ir::{Def, Head, Id, Node, Terms, deep};
use crate::rewrite::egraph::elaborate::elaborate;
use rustc_hash::FxHashMap;

/// A closed let-free term with its bindings, over the parameters of its definition, in an arena of its own.
pub fn placed(rewrites: &mut Rewrites<'_>, params: &Params, def: &Def, id: Id, model: Model) -> (Terms, Id) {
    let (terms, total, memo) = Default::default();
    let mut walk = Walk { rewrites, params, terms, total, memo };
    let root = walk.term(id, 0, &Scope::new());
    let Walk { mut terms, total, .. } = walk;
    let root = elaborate(&mut terms, root, &def.params, &total, model);
    (terms, root)
}

/// Copies a term over its parameters, and notes which of its parts cannot fail.
struct Walk<'a, 'b> {
    rewrites: &'a mut Rewrites<'b>,
    params: &'a Params,
    terms: Terms,
    total: FxHashMap<Id, bool>,
    memo: FxHashMap<(Id, usize, Scope), Id>,
}

impl Walk<'_, '_> {
    fn term(&mut self, id: Id, depth: usize, scope: &Scope) -> Id {
        let from = &self.rewrites.terms;
        let Node { head, kids } = from.node(id).clone();
        let n = kids.len();
        if n == 0 {
            return match head {
                Head::Call(f) => match self.params.number(f) {
                    Some(k) => self.terms.var((depth + self.params.count() - 1 - k) as u32, f.sig().ret),
                    None => self.terms.put(head, []),
                },
                _ => self.terms.put(head, []),
            };
        }
        let key = (id, depth, used(from, id, scope));
        if let Some(done) = self.memo.get(&key) {
            return *done;
        }
        let total = self.rewrites.oracle.total(&self.rewrites.terms, id, scope);
        let mut made = Vec::with_capacity(n);
        for (k, kid) in kids.iter().enumerate() {
            let binds = head.binds(k, n);
            made.push(match binds {
                0 => deep(|| self.term(*kid, depth, scope)),
                _ => {
                    let inner = self.rewrites.oracle.inside(&self.rewrites.terms, id, scope);
                    deep(|| self.term(*kid, depth + binds, &inner))
                }
            });
        }
        let out = self.terms.put(head, made);
        self.terms.called_like(out, &self.rewrites.terms, id);
        *self.total.entry(out).or_insert(true) &= total;
        self.memo.insert(key, out);
        out
    }
}
