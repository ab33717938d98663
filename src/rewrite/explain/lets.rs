//! Lets that stand too early come later: into the arms and loops where their value is certain to be evaluated, or to
//! every use.
//!
//! It must not know what is certain, only where a term uses a variable whatever is chosen and however often loops
//! run: whether a let may stand somewhere is asked of the checker.

use super::running;
use super::task::{PROOF_SHARE, Task};
use crate::derive::check::Checker;
use crate::ir::{Head, Id, Terms, deep};
use rustc_hash::{FxHashMap, FxHashSet};

/// So often the lets that are refused are moved; the first times into arms and loops, then to their uses.
pub(super) const MAX_ROUNDS: usize = 8;
const SUNK_ROUNDS: usize = 4;

/// The present term of a checker with lets that the checker takes: those of a body that has it for its meaning, but
/// for some that come later, or those of which the checker itself can prove that they may stand there; whichever is
/// cheaper. Also why the body is refused, where it is.
pub fn allowed(
    checker: &mut Checker<'_>,
    task: &Task<'_>,
    shared: &(Terms, Id),
    cost: &mut dyn FnMut(&Terms, Id) -> f64,
) -> ((Terms, Id), Option<String>) {
    let (mut terms, mut body) = shared.clone();
    let (mut refused, mut taken) = (None, None);
    for round in 0..MAX_ROUNDS {
        let early = match checker.early(&terms, body) {
            Ok(early) if early.is_empty() => {
                taken = Some((terms, body));
                break;
            }
            Ok(early) => early,
            Err(why) => {
                refused.get_or_insert(why);
                break;
            }
        };
        let which: FxHashSet<Id> = early.iter().filter_map(|e| e.from).collect();
        refused.get_or_insert_with(|| early.into_iter().next().map(|e| e.why).unwrap_or_default());
        if which.is_empty() || (task.stop)(PROOF_SHARE) {
            break;
        }
        body = later(&mut terms, body, which, round);
    }
    if refused.is_none() {
        return (shared.clone(), None);
    }
    // What the search thought certain may be less so for the checker.
    let proved = running::proved(checker, task.def, task.model);
    match (taken, proved) {
        (Some(taken), Some(proved)) => {
            let cheaper = cost(&taken.0, taken.1) < cost(&proved.0, proved.1);
            (if cheaper { taken } else { proved }, refused)
        }
        (Some(one), None) | (None, Some(one)) => (one, refused),
        // What is refused here is refused once more, and for the same reason.
        (None, None) => (shared.clone(), refused),
    }
}

/// A body with some of its lets later: the first times in arms and loops, then at their uses.
pub(super) fn later(terms: &mut Terms, body: Id, which: FxHashSet<Id>, round: usize) -> Id {
    Later { terms, which, sunk: round < SUNK_ROUNDS, memo: FxHashMap::default() }.term(body)
}

struct Later<'a> {
    terms: &'a mut Terms,
    /// The lets that come later.
    which: FxHashSet<Id>,
    /// Whether they stay lets.
    sunk: bool,
    memo: FxHashMap<Id, Id>,
}

impl Later<'_> {
    fn term(&mut self, id: Id) -> Id {
        if let Some(done) = self.memo.get(&id) {
            return *done;
        }
        let kids: Vec<Id> = self.terms.kids(id).to_vec().iter().map(|k| deep(|| self.term(*k))).collect();
        let out = match self.which.contains(&id) {
            true if self.sunk => self.sink(kids[0], kids[1]),
            true => self.terms.substitute(kids[1], &kids[..1]),
            false => self.rebuilt(id, kids),
        };
        self.memo.insert(id, out);
        out
    }

    fn rebuilt(&mut self, id: Id, kids: Vec<Id>) -> Id {
        if self.terms.kids(id) == kids.as_slice() {
            return id;
        }
        let out = self.terms.put(self.terms.head(id), kids);
        self.terms.keep_hints(id, out);
        out
    }

    /// A let of a value, as far inside its body as it has to be for the body to use it for certain.
    fn sink(&mut self, value: Id, body: Id) -> Id {
        if !self.terms.free(body).has(0) {
            return self.terms.substitute(body, &[value]);
        }
        if self.uses(body, 0) {
            return self.terms.put(Head::Let, [value, body]);
        }
        let (head, kids) = (self.terms.head(body), self.terms.kids(body).to_vec());
        let mut new = vec![];
        for (k, kid) in kids.iter().enumerate() {
            let binds = head.binds(k, kids.len());
            // The variable comes inside of those that the node binds.
            let inner = self.terms.map_free(*kid, 0, &mut |t, i, ty, under| {
                let i = i as usize;
                let place = if i < binds {
                    i + 1
                } else if i == binds {
                    0
                } else {
                    i
                };
                t.var((place + under) as u32, ty)
            });
            let value = self.terms.shift(value, binds);
            new.push(deep(|| self.sink(value, inner)));
        }
        let out = self.terms.put(head, new);
        self.terms.keep_hints(body, out);
        out
    }

    /// Whether a term uses a variable whatever is chosen in it, and however often its loops run.
    fn uses(&self, id: Id, variable: usize) -> bool {
        if !self.terms.free(id).has(variable) {
            return false;
        }
        let (head, kids) = (self.terms.head(id), self.terms.kids(id));
        match head {
            Head::Var(i, _) => i as usize == variable,
            Head::Let => deep(|| self.uses(kids[0], variable) || self.uses(kids[1], variable + 1)),
            Head::If => deep(|| self.uses(kids[0], variable)),
            _ => (0..kids.len()).any(|k| head.binds(k, kids.len()) == 0 && deep(|| self.uses(kids[k], variable))),
        }
    }
}
