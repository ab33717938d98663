//! Whether all that a search did to a body is to put the bodies of what it calls in their places.
//!
//! People read what is printed: a call of a library function that was not changed stays a call, where all that it
//! costs is the call, once. In a loop it would be paid in each round.

use crate::cost::{Model, Shape};
use crate::ir::{Def, Fun, Head, Id, Program, Terms, Ty, deep};
use crate::rewrite::inline::{MAX_FLAT, flatten};
use rustc_hash::{FxHashMap, FxHashSet};

/// Calls stay where the term without them has so many nodes more for each: `(square x)` is no easier to read than
/// `(mul x x)`.
const LONGER: u64 = 4;

/// Whether what was found for the body of a definition is `gain` cheaper for its calls alone, none of which stands
/// in a loop, and much longer: without calls and lets both are the same.
pub fn only_inlined(
    program: &Program,
    (kept, model): (&FxHashSet<Fun>, Model),
    def: &Def,
    (terms, found): (&Terms, Id),
    gain: f64,
) -> bool {
    let Some(body) = def.term() else { return false };
    let is_call = |id: &Id| matches!(program.terms.head(*id), Head::Call(fun) if !kept.contains(&fun));
    let calls = program.terms.reachable(body).iter().filter(|id| is_call(id)).count() as u64;
    if terms.size(found) < program.terms.size(body) + LONGER * calls {
        return false;
    }
    let mut calls = Calls { program, kept, model, known: FxHashMap::default() };
    if gain > calls.cost(body).unwrap_or_default() + 1e-9 {
        return false;
    }
    let params: Vec<Ty> = def.params.iter().map(|p| p.ty).collect();
    let flat = |terms: &Terms, id: Id| flatten(program, kept, (terms, id), &params, MAX_FLAT);
    let (Some(mut old), Some(new)) = (flat(&program.terms, body), flat(terms, found)) else { return false };
    old.terms.import(&new.terms, new.id) == old.id
}

/// What calls cost that could be inlined, beyond what is computed in them.
struct Calls<'a> {
    program: &'a Program,
    /// The functions whose calls stay.
    kept: &'a FxHashSet<Fun>,
    model: Model,
    /// What the calls in a function cost.
    known: FxHashMap<Fun, Option<f64>>,
}

impl Calls<'_> {
    /// The calls in a body, and in what it calls. None where there are some in a loop.
    fn cost(&mut self, body: Id) -> Option<f64> {
        let (terms, kept) = (&self.program.terms, self.kept);
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
                cost += self.call(id, fun)?;
            }
        }
        Some(cost)
    }

    /// A call, with the calls in what is called.
    fn call(&mut self, id: Id, fun: Fun) -> Option<f64> {
        let (terms, model) = (&self.program.terms, self.model);
        let kids = terms.kids(id);
        let tys: Vec<Ty> = kids.iter().map(|k| terms.ty(*k)).collect();
        let shape = Shape { ty: terms.ty(id), kids: &tys, elements: 1.0, inner: 1.0, trips: 1.0 };
        // The function is bound once, and each of several arguments; sizes that it names are computed again.
        let callee = self.program.defs.get(&fun);
        let sizes: usize = callee.map_or(0, |def| def.params.iter().map(|p| p.sizes.len()).sum());
        let own = model.own(Head::Call(fun), &shape) + model.definition() * (1 + kids.len()) as f64;
        let own = own + model.own(Head::Size(0), &shape) * sizes as f64;
        let inner = match self.known.get(&fun) {
            Some(known) => *known,
            None => {
                let inner = callee.and_then(Def::term).map_or(Some(0.0), |body| deep(|| self.cost(body)));
                self.known.insert(fun, inner);
                inner
            }
        };
        Some(own + inner?)
    }
}
