//! Flat terms: no lets, no calls but of unknown functions, and parameters as leaves of their own.
//!
//! With parameters as leaves a flat term's free variables are those of the loops around it, so a
//! closed part is one term wherever it stands.

use crate::ir::{Def, Fun, Head, Id, Lit, Signature, Terms, Ty, deep};
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// The extents of the loop variables in scope, outermost first: what each ranges over, a term right
/// outside its variable. Nothing for the state of a fold, say.
pub type Scope = Vec<Option<Id>>;

/// The leaf of the k-th parameter. No function has a number for its name.
pub fn parameter(k: usize, ty: Ty) -> Head {
    Head::Call(Fun::new(Signature { name: k.to_string(), params: vec![], ret: ty }))
}

/// Which parameter a head is the leaf of.
pub fn as_parameter(head: Head) -> Option<usize> {
    match head {
        Head::Call(f) if f.sig().params.is_empty() => f.sig().name.parse().ok(),
        _ => None,
    }
}

/// The extents of the variables that a node binds, each right outside its variable.
pub fn bound(terms: &mut Terms, head: Head, kids: &[Id]) -> Scope {
    let extents: Scope = match head {
        Head::Build(d) | Head::Reduce(_, d) => kids[..d].iter().map(|k| Some(*k)).collect(),
        Head::Arg(_) => vec![Some(kids[0])],
        Head::Scatter(d) => vec![Some(kids[d])],
        Head::Scan => vec![None, Some(kids[1])],
        Head::Fold => vec![None, None],
        _ => vec![],
    };
    extents.into_iter().enumerate().map(|(slot, e)| e.map(|e| terms.shift(e, slot))).collect()
}

/// A term moved out of the `n` innermost loops, where it does not depend on them.
pub fn lowered(terms: &mut Terms, id: Id, n: usize) -> Option<Id> {
    if terms.free(id).below(n) {
        return None;
    }
    Some(terms.map_free(id, n, &mut |t, i, ty, depth| t.var(i + depth as u32, ty)))
}

/// A flat term in a scope of `depth` loops as a term over parameters and loop variables.
pub fn to_body(terms: &mut Terms, id: Id, params: usize, depth: usize) -> Id {
    replaced_leaves(terms, id, &mut |t, id, under| {
        let k = as_parameter(t.head(id))?;
        let ty = t.ty(id);
        Some(t.var((under + depth + params - 1 - k) as u32, ty))
    })
}

/// A term over so many parameters, in a scope of `depth` loops, as a flat term: with leaves for parameters.
pub fn with_leaves(terms: &mut Terms, id: Id, depth: usize, params: usize) -> Id {
    terms.map_free(id, depth, &mut |t, i, ty, _| t.put(parameter(params - 1 - i as usize, ty), []))
}

/// What takes the place of a term without children, under so many binders.
type Leaf<'a> = &'a mut dyn FnMut(&mut Terms, Id, usize) -> Option<Id>;

/// A term with other leaves, where `f` gives some.
pub fn replaced_leaves(terms: &mut Terms, id: Id, f: Leaf<'_>) -> Id {
    replace(terms, id, 0, f, &mut FxHashMap::default())
}

fn replace(terms: &mut Terms, id: Id, depth: usize, f: Leaf<'_>, memo: &mut FxHashMap<(Id, usize), Id>) -> Id {
    let (head, kids) = (terms.head(id), terms.kids(id).to_vec());
    let n = kids.len();
    if n == 0 {
        return f(terms, id, depth).unwrap_or(id);
    }
    if let Some(done) = memo.get(&(id, depth)) {
        return *done;
    }
    let mut new = vec![];
    for (k, kid) in kids.iter().enumerate() {
        new.push(deep(|| replace(terms, *kid, depth + head.binds(k, n), f, memo)));
    }
    let out = terms.put(head, new);
    memo.insert((id, depth), out);
    out
}

/// A part in its loops, wherever it stands: its variables renumbered, and what they range over.
pub type Site = (Id, Vec<Id>);

/// The site of a part. Nothing where it depends on a variable without extent, or with one that
/// itself depends on loops.
pub fn site(terms: &mut Terms, id: Id, scope: &Scope) -> Option<Site> {
    let (free, depth) = (terms.free(id), scope.len());
    if depth >= 60 {
        return None;
    }
    let used: Vec<usize> = (0..depth).filter(|i| free.has(*i)).collect();
    let ranges = used.iter().map(|i| scope[depth - 1 - i].filter(|e| terms.free(*e).is_closed()));
    let ranges = ranges.collect::<Option<Vec<Id>>>()?;
    let place = |i: usize| used.iter().position(|u| *u == i).unwrap_or(i);
    let term = terms.map_free(id, 0, &mut |t, i, ty, under| t.var((place(i as usize) + under) as u32, ty));
    Some((term, ranges))
}

/// The sites of all parts that are certain to be evaluated, for every value of the variables they
/// depend on, when a term at a place is. What was looked at is known to be evaluated, too, and not looked at again.
pub fn certain(terms: &mut Terms, id: Id, scope: &mut Scope, out: &mut FxHashSet<Site>, looked: &mut Looked) {
    let mut choices = vec![];
    let mut walk = Certain { terms, left: MAX_SEEN, looked, arm: None };
    walk.collect(id, scope, out, &mut choices);
    walk.choices(choices, out);
}

/// So many parts are looked at, at most: to know less is no harm.
const MAX_SEEN: usize = 50_000;
/// So many sites are kept of arms, at most.
const MAX_KEPT: usize = 1_000_000;

/// What a part has to do with the loops around it: the part, what its variables range over, and whether the
/// other loops are certain to run.
type Seen = (Id, Scope, bool);

/// What was looked at: parts that are evaluated, and what is evaluated with each arm of a condition.
#[derive(Clone, Default)]
pub struct Looked {
    seen: FxHashSet<Seen>,
    arms: FxHashMap<(Id, Scope), Rc<FxHashSet<Site>>>,
    /// How many sites these are.
    kept: usize,
}

/// Collects what is certain to be evaluated.
struct Certain<'a> {
    terms: &'a mut Terms,
    /// How many parts may be looked at yet.
    left: usize,
    looked: &'a mut Looked,
    /// What was looked at of the arm that is looked at, if one is.
    arm: Option<FxHashSet<Seen>>,
}

impl Certain<'_> {
    /// Adds what both arms of each condition evaluate.
    fn choices(&mut self, choices: Vec<([Id; 2], Scope)>, out: &mut FxHashSet<Site>) {
        for ([a, b], scope) in choices {
            let one = deep(|| self.arm(a, &scope));
            let other = deep(|| self.arm(b, &scope));
            out.extend(one.iter().filter(|site| other.contains(*site)).cloned());
        }
    }

    /// What is certain to be evaluated with an arm, beside what is known to be evaluated already. An arm may stand in
    /// many others, so this is found out once.
    fn arm(&mut self, id: Id, scope: &Scope) -> Rc<FxHashSet<Site>> {
        let key = (id, scope.clone());
        if let Some(known) = self.looked.arms.get(&key) {
            return known.clone();
        }
        let around = self.arm.replace(FxHashSet::default());
        let (mut found, mut choices) = (FxHashSet::default(), vec![]);
        self.collect(id, &mut scope.clone(), &mut found, &mut choices);
        self.choices(choices, &mut found);
        self.arm = around;
        let found = Rc::new(found);
        if self.left > 0 {
            self.looked.kept += found.len();
            if self.looked.kept > MAX_KEPT {
                (self.looked.arms, self.looked.kept) = (FxHashMap::default(), found.len());
            }
            self.looked.arms.insert(key, found.clone());
        }
        found
    }

    /// A part has a value; an element of an element-wise result has one only where those of the operands do.
    fn valued(&mut self, id: Id, scope: &Scope, out: &mut FxHashSet<Site>) {
        out.extend(site(self.terms, id, scope));
        let (head, kids) = (self.terms.head(id), self.terms.kids(id).to_vec());
        let Head::Index(d) = head else { return };
        if let Head::Op(_) = self.terms.head(kids[d]) {
            for operand in self.terms.kids(kids[d]).to_vec() {
                if self.terms.ty(operand).as_tensor().is_some_and(|(rank, _)| rank == d) {
                    let element = self.terms.put(head, kids[..d].iter().copied().chain([operand]));
                    deep(|| self.valued(element, scope, out));
                }
            }
        }
    }

    fn collect(&mut self, id: Id, scope: &mut Scope, out: &mut FxHashSet<Site>, choices: &mut Vec<([Id; 2], Scope)>) {
        if matches!(self.terms.head(id), Head::Var(..) | Head::Const(_)) || self.left == 0 {
            return;
        }
        let free = self.terms.free(id);
        let needed = |(i, e): (usize, &Option<Id>)| e.filter(|e| free.has(i) && self.terms.free(*e).is_closed());
        let running: Vec<Id> = scope.iter().rev().enumerate().filter_map(needed).collect();
        // A loop runs where its extent is known, or where that of another one is the same, which has a variable.
        let runs = |e: Option<Id>| {
            let known = e.and_then(|e| self.terms.as_lit(e)).and_then(Lit::as_int).is_some_and(|n| n >= 1);
            known || e.is_some_and(|e| running.contains(&e))
        };
        let all = scope.iter().rev().enumerate().all(|(i, e)| free.has(i) || runs(*e));
        // Loops that a part does not depend on are alike, which is what keeps this from growing without bound.
        let around = scope.iter().rev().enumerate().map(|(i, e)| e.filter(|_| free.has(i)));
        let seen: Seen = (id, around.collect(), all);
        if self.looked.seen.contains(&seen) || self.arm.as_ref().is_some_and(|arm| arm.contains(&seen)) {
            return;
        }
        self.left -= 1;
        if all {
            self.valued(id, scope, out);
        }
        let (head, kids) = (self.terms.head(id), self.terms.kids(id).to_vec());
        for (k, kid) in kids.iter().enumerate() {
            if head == Head::If && k > 0 {
                choices.push(([kids[1], kids[2]], scope.clone()));
                break;
            }
            let depth = scope.len();
            if head.binds(k, kids.len()) > 0 {
                let bound = bound(self.terms, head, &kids);
                scope.extend(bound);
            }
            deep(|| self.collect(*kid, scope, out, choices));
            scope.truncate(depth);
        }
        // What was not looked into for want of room is to be met again, and what led there.
        if self.left > 0 {
            self.arm.as_mut().unwrap_or(&mut self.looked.seen).insert(seen);
        }
    }
}

/// The size that a parameter's axis has in common with the first axis of the same name.
pub fn first_of_name(def: &Def, k: usize, axis: usize) -> Option<(usize, usize)> {
    let name = def.params.get(k)?.sizes.get(axis)?;
    let mut sizes = def.params.iter().enumerate().flat_map(|(p, of)| of.sizes.iter().enumerate().map(move |s| (p, s)));
    let (p, (first, _)) = sizes.find(|(_, (_, other))| *other == name)?;
    ((p, first) != (k, axis)).then_some((p, first))
}
