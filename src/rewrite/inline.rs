//! Calls and lets become substitutions: what is left is a let-free graph with shared subterms.
//!
//! Strictness would be lost on the way: a value that a let computes before a loop stands inside the
//! loop afterwards, which may never run. So the terms that are certain to be evaluated are noted.

use crate::ir::{Fun, Head, Id, Program, Terms, Ty, deep};
use crate::types::shape::{lowered, shape};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// The functions that call themselves; only direct recursion exists in the language.
pub fn recursive(program: &Program) -> FxHashSet<Fun> {
    let calls_itself = |fun: &Fun, body: Id| {
        program.terms.reachable(body).iter().any(|id| program.terms.head(*id) == Head::Call(*fun))
    };
    program.defs.iter().filter(|(f, d)| d.term().is_some_and(|b| calls_itself(f, b))).map(|(f, _)| *f).collect()
}

/// The extents of the variables that a node binds, outermost first, where they have one; each is a
/// term right where its variable is bound.
pub fn bound_extents(terms: &mut Terms, head: Head, kids: &[Id]) -> Vec<Option<Id>> {
    let extents = match head {
        Head::Build(d) | Head::Reduce(_, d) => kids[..d].iter().map(|k| Some(*k)).collect(),
        Head::Arg(_) => vec![Some(kids[0])],
        Head::Scatter(d) => vec![Some(kids[d])],
        Head::Scan => vec![None, Some(kids[1])],
        Head::Fold => vec![None, None],
        _ => vec![],
    };
    extents.into_iter().enumerate().map(|(slot, e)| e.map(|e| terms.shift(e, slot))).collect()
}

/// A term in its loops, wherever it stands: its variables renumbered, and what they range over.
pub type Site = (Id, Vec<Id>);

/// The site of a term, from the extents of the variables in scope. Nothing where a variable that it
/// depends on has no extent, or one that itself depends on loops.
pub fn site(terms: &mut Terms, id: Id, extents: &[Option<Id>]) -> Option<Site> {
    let (free, depth) = (terms.free(id), extents.len());
    if depth >= 60 {
        return None;
    }
    let used: Vec<usize> = (0..depth).filter(|i| free.has(*i)).collect();
    let mut ranges = vec![];
    for i in &used {
        let level = depth - 1 - i;
        ranges.push(lowered(terms, extents[level]?, level)?);
    }
    let place = |i: usize| used.iter().position(|u| *u == i).unwrap_or_else(|| i + used.len() - depth);
    let term = match used.len() == depth {
        true => id,
        false => terms.map_free(id, 0, &mut |t, i, ty, under| t.var((place(i as usize) + under) as u32, ty)),
    };
    Some((term, ranges))
}

/// A let-free term.
#[derive(Clone)]
pub struct Flat {
    /// Its arena.
    pub terms: Terms,
    /// The term, over the definition's parameters.
    pub id: Id,
    /// Terms that are evaluated for every value of the index variables they depend on, whatever
    /// else happens: if one fails, the whole fails.
    pub strict: FxHashSet<Site>,
}

/// Loops in each other of a let-free term at most: beyond some sixty, which variables a term depends on is not known
/// exactly, and what is kept for each binder would be kept for each way to it.
const MAX_NESTING: usize = 48;

impl Flat {
    /// How many nodes it has; nothing where loops stand too deep in each other to be searched as one.
    pub fn nodes(&self) -> Option<usize> {
        // Children stand before what they are children of.
        let mut nesting: FxHashMap<Id, usize> = FxHashMap::default();
        let all = self.terms.reachable(self.id);
        for id in &all {
            let (head, kids) = (self.terms.head(*id), self.terms.kids(*id));
            let inner = kids.iter().enumerate().map(|(k, kid)| nesting[kid] + head.binds(k, kids.len()));
            nesting.insert(*id, inner.max().unwrap_or(0));
        }
        (nesting[&self.id] <= MAX_NESTING).then_some(all.len())
    }

    /// What tells it apart: its term, and what is certain to be evaluated, in order, without names in an arena where
    /// others are looked up, too.
    pub fn key(&self, arena: &mut Terms) -> (Id, Vec<Site>) {
        let (mut seen, mut open) = (FxHashSet::default(), vec![self.id]);
        open.extend(self.strict.iter().flat_map(|(id, ranges)| ranges.iter().chain([id])));
        while let Some(id) = open.pop() {
            if seen.insert(id) {
                open.extend(self.terms.kids(id));
            }
        }
        // Children stand before what they are children of.
        let mut all: Vec<Id> = seen.into_iter().collect();
        all.sort_unstable();
        let mut map: FxHashMap<Id, Id> = FxHashMap::default();
        for id in all {
            let kids: SmallVec<[Id; 3]> = self.terms.kids(id).iter().map(|kid| map[kid]).collect();
            map.insert(id, arena.put(self.terms.head(id), kids));
        }
        let site = |(id, ranges): &Site| (map[id], ranges.iter().map(|r| map[r]).collect());
        let mut strict: Vec<Site> = self.strict.iter().map(site).collect();
        strict.sort_unstable();
        (map[&self.id], strict)
    }
}

/// So many nodes are visited and made at most: calls within calls multiply, and what a let binds is made
/// again in each loop that uses it.
pub const MAX_FLAT: usize = 1_000_000;

/// Makes a term over parameters let-free, and free of calls but for those of recursive and external
/// functions. Nothing where that would be too large: where more than `most` nodes are made on the way.
pub fn flatten(
    program: &Program,
    recursive: &FxHashSet<Fun>,
    (terms, body): (&Terms, Id),
    params: &[Ty],
    most: usize,
) -> Option<Flat> {
    let env = (0..params.len()).map(Entry::Param).collect();
    let out = Terms::default();
    let strict = FxHashSet::default();
    let mut walk = Walk { program, recursive, params, out, strict, extents: vec![], steps: 0, most };
    let id = walk.flat(terms, body, &mut { env }, true)?;
    Some(Flat { terms: walk.out, id, strict: walk.strict })
}

/// What a variable stands for.
#[derive(Clone, Copy)]
enum Entry {
    /// A parameter of the definition.
    Param(usize),
    /// The variable bound at a level, lets not counted.
    Bound(usize),
    /// A let-free term made at a depth.
    Value(Id, usize),
}

struct Walk<'a> {
    program: &'a Program,
    recursive: &'a FxHashSet<Fun>,
    params: &'a [Ty],
    out: Terms,
    strict: FxHashSet<Site>,
    /// Extents of the variables in scope.
    extents: Vec<Option<Id>>,
    steps: usize,
    most: usize,
}

impl Walk<'_> {
    fn flat(&mut self, terms: &Terms, id: Id, env: &mut Vec<Entry>, strict: bool) -> Option<Id> {
        self.steps += 1;
        if self.steps > MAX_FLAT || self.out.len() > self.most {
            return None;
        }
        let (head, kids) = (terms.head(id), terms.kids(id));
        let out = match head {
            Head::Var(i, ty) => return Some(self.variable(env[env.len() - 1 - i as usize], ty)),
            Head::Let => {
                let value = deep(|| self.flat(terms, kids[0], env, strict))?;
                if strict {
                    self.note(value);
                }
                if let Some([name]) = terms.chosen(id) {
                    self.out.label(value, name.clone());
                }
                env.push(Entry::Value(value, self.extents.len()));
                let body = deep(|| self.flat(terms, kids[1], env, strict));
                env.pop();
                return body;
            }
            Head::Call(f) if !self.recursive.contains(&f) => {
                let args = kids.iter().map(|k| deep(|| self.flat(terms, *k, env, strict)));
                let args = args.collect::<Option<Vec<_>>>()?;
                match self.program.defs.get(&f).and_then(|d| d.term()) {
                    Some(body) => {
                        let depth = self.extents.len();
                        let mut inner = args.iter().map(|a| Entry::Value(*a, depth)).collect();
                        let program = self.program;
                        return deep(|| self.flat(&program.terms, body, &mut inner, strict));
                    }
                    None => self.out.put(head, args),
                }
            }
            _ => self.node(terms, id, env, strict)?,
        };
        if strict && self.out.ty(out).has_tensor() {
            self.note(out);
        }
        Some(out)
    }

    fn node(&mut self, terms: &Terms, id: Id, env: &mut Vec<Entry>, strict: bool) -> Option<Id> {
        let (head, kids) = (terms.head(id), terms.kids(id));
        let n = kids.len();
        let mut ids: Vec<Id> = Vec::with_capacity(n);
        for (k, kid) in kids.iter().enumerate() {
            let (depth, binds) = (self.extents.len(), head.binds(k, n));
            if binds > 0 {
                env.extend((depth..depth + binds).map(Entry::Bound));
                let extents = bound_extents(&mut self.out, head, &ids);
                self.extents.extend(extents);
            }
            let strict = strict && !(head == Head::If && k > 0);
            let made = deep(|| self.flat(terms, *kid, env, strict));
            env.truncate(env.len() - binds);
            self.extents.truncate(depth);
            ids.push(made?);
        }
        Some(match head {
            Head::Get(i, _) if self.out.head(ids[0]) == Head::Tuple => self.out.kids(ids[0])[i as usize],
            // Sizes are known from what makes a tensor, and bounds of loops have to be closed terms. Inside
            // an empty tensor sizes are 0, whatever its elements would be, so those stay.
            Head::Size(k) if self.out.ty(ids[0]).as_tensor().is_some_and(|(rank, _)| k < rank) => {
                shape(&mut self.out, ids[0])[k]
            }
            _ => {
                let out = self.out.put(head, ids);
                self.out.called_like(out, terms, id);
                out
            }
        })
    }

    fn variable(&mut self, entry: Entry, ty: Ty) -> Id {
        let depth = self.extents.len();
        match entry {
            Entry::Param(p) => self.out.var((depth + self.params.len() - 1 - p) as u32, ty),
            Entry::Bound(level) => self.out.var((depth - 1 - level) as u32, ty),
            Entry::Value(id, made) => self.out.shift(id, depth - made),
        }
    }

    /// Notes a term that is evaluated here, if that is certain.
    fn note(&mut self, id: Id) {
        if self.certain(id)
            && let Some(site) = site(&mut self.out, id, &self.extents)
        {
            self.strict.insert(site);
        }
    }

    /// Whether the loops around this place are those whose variables the term depends on, or run at
    /// least once anyway.
    fn certain(&self, id: Id) -> bool {
        let free = self.out.free(id);
        let n = self.extents.len();
        n < 63
            && (0..n).all(|i| {
                let extent = self.extents[n - 1 - i].and_then(|e| self.out.as_lit(e));
                free.has(i) || extent.and_then(|l| l.as_int()).is_some_and(|l| l >= 1)
            })
    }
}
