//! Flat terms: no lets, no calls but of unknown functions, and parameters as leaves of their own.
//!
//! With parameters as leaves a flat term's free variables are those of the loops around it, so a
//! closed part is one term wherever it stands.

use crate::ir::{Def, Fun, Head, Id, Lit, Signature, Terms, Ty, deep};
use rustc_hash::{FxHashMap, FxHashSet};

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
/// depend on, when a term at a place is. What was `seen` is known to be evaluated, too, and not looked at again.
pub fn certain(terms: &mut Terms, id: Id, scope: &mut Scope, out: &mut FxHashSet<Site>, seen: &mut FxHashSet<Seen>) {
    let (mut left, mut choices) = (MAX_SEEN, vec![]);
    let mut walk = Certain { terms, left: &mut left, seen: vec![std::mem::take(seen), FxHashSet::default()] };
    walk.collect(id, scope, out, &mut choices);
    walk.arms(choices, out);
    let new = walk.seen.pop().unwrap_or_default();
    *seen = walk.seen.pop().unwrap_or_default();
    // What was not looked into for want of room is to be met again, and what led there.
    if left > 0 {
        seen.extend(new);
    }
}

/// So many parts are looked at, at most: to know less is no harm.
const MAX_SEEN: usize = 50_000;
/// What both arms of a condition evaluate is looked for within so many conditions, the term itself counted.
const MAX_ARMS: usize = 17;

/// What a part has to do with the loops around it: the part, what its variables range over, and whether the
/// other loops are certain to run.
pub type Seen = (Id, Scope, bool);

/// Collects what is certain to be evaluated.
struct Certain<'a> {
    terms: &'a mut Terms,
    /// How many parts may be looked at yet.
    left: &'a mut usize,
    /// What was seen, and around that in the conditions around an arm: that is known to be evaluated already.
    seen: Vec<FxHashSet<Seen>>,
}

impl Certain<'_> {
    /// First what does not depend on conditions, then what the arms of each have in common.
    fn all(&mut self, id: Id, scope: &mut Scope, out: &mut FxHashSet<Site>) {
        self.seen.push(FxHashSet::default());
        let mut choices = vec![];
        self.collect(id, scope, out, &mut choices);
        self.arms(choices, out);
        self.seen.pop();
    }

    fn arms(&mut self, choices: Vec<([Id; 2], Scope)>, out: &mut FxHashSet<Site>) {
        if self.seen.len() > MAX_ARMS {
            return;
        }
        for ([a, b], mut scope) in choices {
            let (mut one, mut other) = (FxHashSet::default(), FxHashSet::default());
            deep(|| self.all(a, &mut scope, &mut one));
            deep(|| self.all(b, &mut scope, &mut other));
            out.extend(one.into_iter().filter(|site| other.contains(site)));
        }
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
        if matches!(self.terms.head(id), Head::Var(..) | Head::Const(_)) || *self.left == 0 {
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
        let seen = (id, around.collect(), all);
        if self.seen.iter().any(|s| s.contains(&seen)) {
            return;
        }
        if let Some(innermost) = self.seen.last_mut() {
            innermost.insert(seen);
        }
        *self.left -= 1;
        if all {
            self.valued(id, scope, out);
        }
        let (head, kids) = (self.terms.head(id), self.terms.kids(id).to_vec());
        for (k, kid) in kids.iter().enumerate() {
            if head == Head::If && k > 0 {
                return choices.push(([kids[1], kids[2]], scope.clone()));
            }
            let depth = scope.len();
            if head.binds(k, kids.len()) > 0 {
                let bound = bound(self.terms, head, &kids);
                scope.extend(bound);
            }
            deep(|| self.collect(*kid, scope, out, choices));
            scope.truncate(depth);
        }
    }
}

/// The size that a parameter's axis has in common with the first axis of the same name.
pub fn first_of_name(def: &Def, k: usize, axis: usize) -> Option<(usize, usize)> {
    def.equal_sizes().into_iter().find(|(_, other, _)| *other == (k, axis)).map(|(first, _, _)| first)
}
