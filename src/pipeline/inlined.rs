//! Whether all that a search did to a body is to put the bodies of what it calls in their places.
//!
//! People read what is printed: a call of a library function that was not changed stays a call, where all that it
//! costs is the call, once. In a loop it would be paid in each round.

use crate::cost::{Model, Shape};
use crate::ir::{Def, Fun, Head, Id, Program, Terms, Ty};
use crate::rewrite::inline::{MAX_FLAT, flatten};
use rustc_hash::FxHashSet;

/// Whether what was found for the body of a definition is `gain` cheaper for its calls alone, none of which stands
/// in a loop: without calls and lets both are the same.
pub fn only_inlined(
    program: &Program,
    (kept, model): (&FxHashSet<Fun>, Model),
    def: &Def,
    (terms, found): (&Terms, Id),
    gain: f64,
) -> bool {
    let Some(body) = def.term() else { return false };
    if gain > calls(&program.terms, body, kept, model).unwrap_or_default() + 1e-9 {
        return false;
    }
    let params: Vec<Ty> = def.params.iter().map(|p| p.ty).collect();
    let flat = |terms: &Terms, id: Id| flatten(program, kept, (terms, id), &params, MAX_FLAT);
    let (Some(mut old), Some(new)) = (flat(&program.terms, body), flat(terms, found)) else { return false };
    old.terms.import(&new.terms, new.id) == old.id
}

/// What the calls of a body cost that could be inlined, beyond what is called. None where there are some in a loop.
fn calls(terms: &Terms, body: Id, kept: &FxHashSet<Fun>, model: Model) -> Option<f64> {
    let could = |fun: &Fun| !kept.contains(fun);
    let mut cost = 0.0;
    for id in terms.reachable(body) {
        let (head, kids) = (terms.head(id), terms.kids(id));
        if head.is_loop() && kids.last().is_some_and(|last| terms.calls(*last).iter().any(could)) {
            return None;
        }
        if let Head::Call(fun) = head
            && could(&fun)
        {
            let tys: Vec<Ty> = kids.iter().map(|k| terms.ty(*k)).collect();
            let shape = Shape { ty: terms.ty(id), kids: &tys, elements: 1.0, inner: 1.0, trips: 1.0 };
            // The function is bound once, and each of several arguments.
            cost += model.own(head, &shape) + model.definition() * (1 + kids.len()) as f64;
        }
    }
    Some(cost)
}
