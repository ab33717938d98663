//! The way of a search of terms becomes steps that the checker of derivations has taken.
//!
//! States may have lets and calls, steps are between terms without. What binds and unbinds leaves those as
//! they are. A rule rewrites a part of a state, which stands where it is used, perhaps often: the state
//! with a hole there has holes at all the places.

use super::{Derived, Task, Unproved, finished, lets, running};
use crate::derive::axioms::Axiom;
use crate::derive::check::Checker;
use crate::derive::flat::as_parameter;
use crate::derive::unfold::unfold;
use crate::derive::{Place, Step};
use crate::ir::{Head, Id, Terms, Ty, deep};
use crate::rewrite::agent::optimize::Best;
use crate::rewrite::agent::rewrites::is_hole;
use crate::rewrite::egraph::journal::Candidate;
use crate::types::shape::shape;
use rustc_hash::{FxHashMap, FxHashSet};

/// Why a way is not derived.
pub struct Refused {
    /// The number of the move that the checker refuses; nothing where it is another part of the way.
    pub step: Option<usize>,
    /// Why.
    pub why: String,
}

impl From<String> for Refused {
    fn from(why: String) -> Refused {
        Refused { step: None, why }
    }
}

/// A move that stands for an axiom, by name.
const FOLD: (&str, Axiom) = ("fold-literals", Axiom::Literals);
/// Sizes and parts of tuples that are known where a search begins, at most.
const MAX_SETTLED: usize = 1000;
/// So many places of one part are listed, at most.
const MAX_PLACES: usize = 2000;

/// Derives the first `count` moves of a search that began where the steps before lead; also the same result with
/// lets of which the checker could not prove that they may stand there, where it has some.
///
/// # Errors
/// What the checker refuses.
pub fn derived(
    task: &Task<'_>,
    (best, count): (&Best, usize),
    cost: &mut dyn FnMut(&Terms, Id) -> f64,
) -> Result<(Derived, Option<Unproved>), Refused> {
    let (mut checker, mut programs) = task.there()?;
    let mut steps = task.from.before.clone();
    let start = flat(task, &mut checker, &best.terms, best.start)?;
    settled(&mut checker, start, &mut steps, &mut programs)?;
    for (k, made) in best.steps.iter().take(count).enumerate() {
        if (task.stop)(super::PROOF_SHARE) {
            return Err(Refused { step: None, why: super::linear::LATE.into() });
        }
        let to = flat(task, &mut checker, &best.terms, made.to)?;
        if to == checker.now {
            continue;
        }
        let around = flat(task, &mut checker, &best.terms, made.around)?;
        let refused = |why: String| Refused { step: Some(k), why };
        let (at, place) = holes(&checker.terms, around);
        let by = if made.name == FOLD.0 { FOLD.1.name().to_string() } else { made.name.clone() };
        let step = Step { by, at, place, to: None, cost: 0.0 };
        checker.step(&step).map_err(refused)?;
        if checker.now != to {
            return Err(refused(format!("`{}` leads elsewhere in the derivation", made.name)));
        }
        steps.push(step);
        programs.push(to);
    }
    let (shared, refused) = match count >= best.steps.len() {
        true => lets::allowed(&mut checker, task, &(best.terms.clone(), best.id), cost),
        false => {
            let proved = running::proved(&mut checker, task.def, task.model);
            (proved.ok_or_else(|| "its lets have too many places".to_string())?, None)
        }
    };
    let unproved = refused.map(|why| Unproved { cost: best.cost, why });
    let candidate = Candidate { flat: (checker.terms.clone(), checker.now), shared, cost: best.cost };
    Ok((finished(task, steps, &programs, candidate)?, unproved))
}

/// A state as the checker sees it.
fn flat(task: &Task<'_>, checker: &mut Checker<'_>, terms: &Terms, id: Id) -> Result<Id, String> {
    let params: Vec<Ty> = task.def.params.iter().map(|p| p.ty).collect();
    let unfolded = unfold(task.program, task.kept, (terms, id), &params, &mut checker.terms);
    unfolded.map(|u| u.id).ok_or_else(|| "without lets and calls it is too large".to_string())
}

/// Takes the parts of tuples and the sizes that are known, until the program is `to`; adds the steps, and
/// the programs after them.
fn settled(checker: &mut Checker<'_>, to: Id, steps: &mut Vec<Step>, programs: &mut Vec<Id>) -> Result<(), String> {
    for _ in 0..MAX_SETTLED {
        if checker.now == to {
            return Ok(());
        }
        let (now, mut path) = (checker.now, vec![]);
        let found = known(&mut checker.terms, now, &mut path, &mut FxHashSet::default());
        let axiom = found.ok_or("the search began at another program")?;
        let step = Step { by: axiom.name().to_string(), at: vec![path], place: Place::Everywhere, to: None, cost: 0.0 };
        checker.step(&step)?;
        steps.push(step);
        programs.push(checker.now);
    }
    Err("too many sizes are known".into())
}

/// The innermost part that is known, and by which axiom; the path to it.
fn known(terms: &mut Terms, id: Id, path: &mut Vec<usize>, seen: &mut FxHashSet<Id>) -> Option<Axiom> {
    if !seen.insert(id) {
        return None;
    }
    let kids = terms.kids(id).to_vec();
    for (k, kid) in kids.iter().enumerate() {
        path.push(k);
        if let Some(found) = deep(|| known(terms, *kid, path, seen)) {
            return Some(found);
        }
        path.pop();
    }
    match terms.head(id) {
        Head::Get(..) if terms.head(kids[0]) == Head::Tuple => Some(Axiom::Part),
        Head::Size(axis) if as_parameter(terms.head(kids[0])).is_none() => {
            let (rank, _) = terms.ty(kids[0]).as_tensor()?;
            (axis < rank && shape(terms, kids[0])[axis] != id).then_some(Axiom::Size)
        }
        _ => None,
    }
}

/// The paths to all holes. Of more than can be listed the first, and that the same part is meant wherever it stands.
fn holes(terms: &Terms, id: Id) -> (Vec<Vec<usize>>, Place) {
    let mut out = vec![];
    collect(terms, id, &mut vec![], &mut FxHashMap::default(), &mut out);
    if out.len() <= MAX_PLACES {
        return (out, Place::Here);
    }
    out.truncate(1);
    (out, Place::Everywhere)
}

/// Whether there are holes in a term; their paths.
fn collect(
    terms: &Terms,
    id: Id,
    path: &mut Vec<usize>,
    known: &mut FxHashMap<Id, bool>,
    out: &mut Vec<Vec<usize>>,
) -> bool {
    if is_hole(terms.head(id)) {
        if out.len() <= MAX_PLACES {
            out.push(path.clone());
        }
        return true;
    }
    if known.get(&id) == Some(&false) || out.len() > MAX_PLACES {
        return false;
    }
    let mut any = false;
    for (k, kid) in terms.kids(id).iter().enumerate() {
        path.push(k);
        any |= deep(|| collect(terms, *kid, path, known, out));
        path.pop();
    }
    known.insert(id, any);
    any
}
