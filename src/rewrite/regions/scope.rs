//! The variables in scope at a place of a body, and what is known of each: sizes, integers, extents of loops.
//!
//! What is known is a closed term: integers of literals and of the function's parameters alone. So it means the same
//! at any place.

use crate::cost;
use crate::ir::op::Domain;
use crate::ir::{Def, Head, Id, Lit, Op, Param, Terms, Ty};
use crate::rewrite::egraph::context::{Context, Known};
use crate::types::shape::shape;
use rustc_hash::FxHashMap;

/// A closed term has so many nodes at most.
const CLOSED: u64 = 24;
/// Whether something has a value over the reals is asked of so many nodes at most.
const ASKED: u64 = 400;

/// The variables in scope.
pub struct Scope {
    /// By level, the function's parameters first. Terms are in `closed`.
    entries: Vec<Entry>,
    /// Over the function's parameters.
    closed: Terms,
    /// How many parameters there are.
    params: usize,
    /// What is guessed of them.
    guesses: cost::Scope,
    /// The axis that is meant by a named size.
    named: FxHashMap<String, Id>,
}

/// A variable.
#[derive(Clone)]
struct Entry {
    ty: Ty,
    known: Known,
}

/// Some of the variables, as parameters of a region.
pub struct Region {
    /// Their levels, in order.
    pub levels: Vec<usize>,
    /// As parameters.
    pub params: Vec<Param>,
    /// What is known of them.
    pub context: Context,
    /// What is guessed of them.
    pub guesses: cost::Scope,
}

impl Scope {
    /// The parameters of a definition.
    pub fn new(def: &Def, told: &[(String, u64)]) -> Scope {
        let (closed, named) = (Terms::default(), FxHashMap::default());
        let guesses = cost::Scope::new(def, told);
        let mut scope = Scope { entries: vec![], closed, params: def.params.len(), guesses, named };
        for (k, p) in def.params.iter().enumerate() {
            let known = scope.parameter(k, p);
            scope.entries.push(Entry { ty: p.ty, known });
        }
        scope
    }

    fn parameter(&mut self, k: usize, p: &Param) -> Known {
        let var = self.closed.var((self.params - 1 - k) as u32, p.ty);
        let rank = p.ty.as_tensor().map_or(0, |(rank, _)| rank);
        let mut dims = vec![];
        for axis in 0..p.ty.axes() {
            let size = self.closed.put(Head::Size(axis), [var]);
            dims.push(Some(match p.sizes.get(axis) {
                Some(name) => *self.named.entry(name.clone()).or_insert(size),
                None => size,
            }));
        }
        Known { dims, rank, value: (p.ty == Ty::int()).then_some(var), below: None, undefined: false }
    }

    /// How many variables there are.
    pub fn depth(&self) -> usize {
        self.entries.len()
    }

    /// Forgets all variables but the first so many.
    pub fn truncate(&mut self, depth: usize) {
        self.entries.truncate(depth);
        self.guesses.truncate(depth);
    }

    /// Adds the variables that a node binds in its last child.
    pub fn bind(&mut self, terms: &mut Terms, id: Id) {
        let (head, kids) = (terms.head(id), terms.kids(id).to_vec());
        let tys: Vec<Ty> = kids.iter().map(|k| terms.ty(*k)).collect();
        let new = match head {
            Head::Let => vec![self.value(terms, kids[0])],
            Head::Build(d) | Head::Reduce(_, d) => kids[..d].iter().map(|k| self.index(terms, *k)).collect(),
            Head::Arg(_) => vec![self.index(terms, kids[0])],
            Head::Scatter(d) => vec![self.index(terms, kids[d])],
            Head::Scan => vec![state(tys[0]), self.index(terms, kids[1])],
            Head::Fold => {
                let element = tys[1].as_tensor().map_or(tys[1], |(_, element)| element);
                vec![state(tys[0]), state(element)]
            }
            _ => vec![],
        };
        self.guesses.bind(terms, id);
        self.entries.extend(new);
    }

    /// A variable that a let binds.
    fn value(&mut self, terms: &mut Terms, value: Id) -> Entry {
        let ty = terms.ty(value);
        let rank = ty.as_tensor().map_or(0, |(rank, _)| rank);
        let dims = shape(terms, value).into_iter().map(|d| self.close(terms, d)).collect();
        let integer = if ty == Ty::int() { self.close(terms, value) } else { None };
        let undefined = !self.defined(terms, value);
        Entry { ty, known: Known { dims, rank, value: integer, below: None, undefined } }
    }

    /// The index of a loop.
    fn index(&mut self, terms: &Terms, extent: Id) -> Entry {
        let below = self.close(terms, extent);
        Entry { ty: Ty::int(), known: Known { below, ..Known::default() } }
    }

    /// The closed term that an integer is.
    fn close(&mut self, terms: &Terms, id: Id) -> Option<Id> {
        if terms.size(id) > CLOSED {
            return None;
        }
        let entry = |i: u32| self.entries.len().checked_sub(1 + i as usize).map(|level| &self.entries[level].known);
        let (head, kids) = (terms.head(id), terms.kids(id));
        match head {
            Head::Const(Lit::Int(..)) if terms.ty(id) == Ty::int() => Some(self.closed.put(head, [])),
            Head::Var(i, ty) if ty == Ty::int() => entry(i)?.value,
            Head::Size(axis) => match terms.head(kids[0]) {
                // Sizes of what an empty tensor holds are 0.
                Head::Var(i, _) if axis < entry(i)?.rank => *entry(i)?.dims.get(axis)?,
                _ => None,
            },
            Head::Op(Op::Add | Op::Sub | Op::Mul | Op::Min | Op::Max) => {
                let kids: Option<Vec<Id>> = kids.iter().map(|k| self.close(terms, *k)).collect();
                let kids = kids.filter(|_| terms.ty(id) == Ty::int())?;
                Some(self.closed.put(head, kids))
            }
            _ => None,
        }
    }

    /// Whether a value is known to have one over the reals, and so to be finite but for rounding.
    fn defined(&self, terms: &Terms, id: Id) -> bool {
        let ty = terms.ty(id);
        if ty.as_scalar().is_some_and(|s| !s.is_float()) {
            return true;
        }
        terms.size(id) <= ASKED && self.defined_at(terms, id, 0)
    }

    /// The same of a part that stands under so many binders of its own.
    fn defined_at(&self, terms: &Terms, id: Id, under: usize) -> bool {
        let (head, kids) = (terms.head(id), terms.kids(id));
        match head {
            Head::Var(i, _) => match (i as usize).checked_sub(under) {
                Some(i) => self.entries.len().checked_sub(1 + i).is_some_and(|l| !self.entries[l].known.undefined),
                None => true,
            },
            Head::Op(op) if !always_defined(op) => false,
            Head::Fold | Head::Scan | Head::Call(_) | Head::Print | Head::Let => false,
            _ => kids.iter().enumerate().all(|(k, kid)| {
                let under = under + head.binds(k, kids.len());
                crate::ir::deep(|| self.defined_at(terms, *kid, under))
            }),
        }
    }

    /// The variables of these levels, and those of the function that what is known of them speaks of, as parameters.
    pub fn region(&self, mut levels: Vec<usize>) -> Region {
        let known = |l: usize| &self.entries[l].known;
        // What is known of these speaks of others, too: a size that has a name is that of the first parameter with it.
        let mut next = 0;
        while let Some(l) = levels.get(next).copied() {
            next += 1;
            let all = known(l).dims.iter().chain([&known(l).value, &known(l).below]);
            for id in all.flatten().flat_map(|id| self.closed.reachable(*id)) {
                if let Head::Var(i, _) = self.closed.head(id)
                    && let level = self.params - 1 - i as usize
                    && !levels.contains(&level)
                {
                    levels.push(level);
                }
            }
        }
        levels.sort_unstable();
        levels.dedup();
        let mut terms = self.closed.clone();
        let place: FxHashMap<usize, usize> = levels.iter().enumerate().map(|(k, l)| (*l, k)).collect();
        let mut over = |id: Option<Id>| {
            id.map(|id| {
                terms.map_free(id, 0, &mut |t, i, ty, _| {
                    let at = place[&(self.params - 1 - i as usize)];
                    t.var((levels.len() - 1 - at) as u32, ty)
                })
            })
        };
        let mut moved = |k: &Known| Known {
            dims: k.dims.iter().map(|d| over(*d)).collect(),
            value: over(k.value),
            below: over(k.below),
            ..k.clone()
        };
        let each: Vec<Known> = levels.iter().map(|l| moved(known(*l))).collect();
        let param = |l: &usize| Param { name: format!("v{l}"), ty: self.entries[*l].ty, sizes: vec![] };
        let params = levels.iter().map(param).collect();
        let guesses = self.guesses.of(&levels);
        let axes = |(k, l): (usize, &usize)| guesses.numbers(k, self.entries[*l].ty.axes());
        let guessed = levels.iter().enumerate().map(axes).collect();
        Region { params, context: Context { terms, known: each, guessed }, guesses, levels }
    }
}

/// A variable of which nothing is known but its type.
fn state(ty: Ty) -> Entry {
    let known = Known { dims: vec![None; ty.axes()], undefined: ty != Ty::int(), ..Known::default() };
    Entry { ty, known }
}

/// Whether an operation has a value over the reals wherever its operands have.
fn always_defined(op: Op) -> bool {
    op.row().domain == Domain::All
}
