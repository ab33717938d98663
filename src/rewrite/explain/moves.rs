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
/// Parts of tuples, at most, where nothing else is taken.
const MAX_PARTS: usize = 10_000;
/// Places of one part, at most.
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
        let at = holes(&checker.terms, around).ok_or_else(|| refused("it changes too many places".into()))?;
        let by = if made.name == FOLD.0 { FOLD.1.name().to_string() } else { made.name.clone() };
        let step = Step { by, at, place: Place::Here, to: None, cost: 0.0 };
        checker.step(&step).map_err(refused)?;
        if checker.now != to {
            return Err(refused(format!("`{}` leads elsewhere in the derivation", made.name)));
        }
        steps.push(step);
        programs.push(to);
    }
    let (shared, refused) = match count >= best.steps.len() {
        true => lets::allowed(&mut checker, task, &(best.terms.clone(), best.id), cost),
        false => (running::proved(&mut checker, task.def, task.model), None),
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

/// Takes parts of tuples that are known where another body has none; the steps to where a derivation goes on, and these.
///
/// # Errors
/// They are too many.
pub fn parts_taken(task: &Task<'_>, to: &(Terms, Id)) -> Result<Vec<Step>, String> {
    let (mut checker, _) = task.there()?;
    let to = flat(task, &mut checker, &to.0, to.1)?;
    let mut steps = task.from.before.clone();
    for _ in 0..MAX_PARTS {
        let mut path = vec![];
        if !part_of(&checker.terms, (checker.now, to), &mut path, &mut FxHashSet::default()) {
            return Ok(steps);
        }
        let by = Axiom::Part.name().to_string();
        let step = Step { by, at: vec![path], place: Place::Everywhere, to: None, cost: 0.0 };
        checker.step(&step)?;
        steps.push(step);
    }
    Err("too many parts of tuples are known".into())
}

/// The path to the first part of a tuple that is made on the spot, where another term has something else.
fn part_of(terms: &Terms, (a, b): (Id, Id), path: &mut Vec<usize>, seen: &mut FxHashSet<(Id, Id)>) -> bool {
    if a == b || !seen.insert((a, b)) {
        return false;
    }
    let (kids, others) = (terms.kids(a), terms.kids(b));
    let same = terms.head(a) == terms.head(b) && kids.len() == others.len();
    let made = |id: Id| matches!(terms.head(id), Head::Get(..)) && terms.head(terms.kids(id)[0]) == Head::Tuple;
    if made(a) && !(same && made(b)) {
        return true;
    }
    same && (0..kids.len()).any(|k| {
        path.push(k);
        let found = deep(|| part_of(terms, (kids[k], others[k]), path, seen));
        if !found {
            path.pop();
        }
        found
    })
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

/// The paths to all holes; nothing where there are too many.
fn holes(terms: &Terms, id: Id) -> Option<Vec<Vec<usize>>> {
    let mut out = vec![];
    collect(terms, id, &mut vec![], &mut FxHashMap::default(), &mut out);
    (out.len() <= MAX_PLACES).then_some(out)
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

/// DEBUG
pub fn differ(task: &Task<'_>, to: &(Terms, Id)) {
    let Ok((mut checker, _)) = task.there() else { return };
    let Ok(b) = flat(task, &mut checker, &to.0, to.1) else { return };
    let (mut a, mut b) = (checker.now, b);
    let mut depth = 0;
    while a != b {
        let t = &checker.terms;
        let (p, q) = (t.kids(a).to_vec(), t.kids(b).to_vec());
        if t.head(a) != t.head(b) || p.len() != q.len() {
            break;
        }
        let Some(k) = (0..p.len()).find(|k| p[*k] != q[*k]) else { break };
        depth += t.head(a).binds(k, p.len());
        (a, b) = (p[k], q[k]);
    }
    for id in [a, b] {
        let body = crate::derive::flat::to_body(&mut checker.terms, id, task.def.params.len(), depth);
        let names: Vec<String> = task.def.params.iter().map(|p| p.name.clone()).chain((0..depth).map(|k| format!("_{k}"))).collect();
        let text = if checker.terms.size(body) > 20000 { format!("{:?} {}", checker.terms.head(body), checker.terms.size(body)) } else { crate::ir::print::term(&checker.terms, body, &names) };
        eprintln!("   DIFF {}", text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(900).collect::<String>());
    }
}
