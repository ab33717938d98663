//! Calls and lets become substitutions: what is left is a let-free graph with shared subterms.
//!
//! Strictness would be lost on the way: a value that a let computes before a loop stands inside the
//! loop afterwards, which may never run. So the terms that are certain to be evaluated are noted.

use crate::ir::{Fun, Head, Id, Program, Terms, Ty, deep};
use rustc_hash::FxHashSet;

/// The functions that call themselves; only direct recursion exists in the language.
pub fn recursive(program: &Program) -> FxHashSet<Fun> {
    let calls_itself = |fun: &Fun, body: Id| {
        program.terms.reachable(body).iter().any(|id| program.terms.head(*id) == Head::Call(*fun))
    };
    program.defs.iter().filter(|(f, d)| d.term().is_some_and(|b| calls_itself(f, b))).map(|(f, _)| *f).collect()
}

/// The extents of the variables that a node binds, outermost first, where they have one.
pub fn bound_extents(head: Head, kids: &[Id]) -> Vec<Option<Id>> {
    match head {
        Head::Build(d) | Head::Reduce(_, d) => kids[..d].iter().map(|k| Some(*k)).collect(),
        Head::Arg(_) => vec![Some(kids[0])],
        Head::Scatter(d) => vec![Some(kids[d])],
        Head::Scan => vec![None, Some(kids[1])],
        Head::Fold => vec![None, None],
        _ => vec![],
    }
}

/// A term with the extents of the variables in scope: what tells equal terms in different loops apart.
pub type Site = (Id, Vec<Option<Id>>);

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

/// So many nodes are visited at most: calls within calls multiply.
const MAX_STEPS: usize = 1_000_000;

/// Makes a term over parameters let-free, and free of calls but for those of recursive and external
/// functions. Nothing where that would be too large.
pub fn flatten(program: &Program, recursive: &FxHashSet<Fun>, terms: &Terms, body: Id, params: &[Ty]) -> Option<Flat> {
    let env = (0..params.len()).map(Entry::Param).collect();
    let out = Terms::default();
    let strict = FxHashSet::default();
    let mut walk = Walk { program, recursive, params, out, strict, extents: vec![], steps: 0 };
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
}

impl Walk<'_> {
    fn flat(&mut self, terms: &Terms, id: Id, env: &mut Vec<Entry>, strict: bool) -> Option<Id> {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return None;
        }
        let (head, kids) = (terms.head(id), terms.kids(id));
        let out = match head {
            Head::Var(i, ty) => return Some(self.variable(env[env.len() - 1 - i as usize], ty)),
            Head::Let => {
                let value = deep(|| self.flat(terms, kids[0], env, strict))?;
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
        if strict && self.certain(out) {
            self.strict.insert((out, self.extents.clone()));
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
                self.extents.extend(bound_extents(head, &ids));
            }
            let strict = strict && !(head == Head::If && k > 0);
            let made = deep(|| self.flat(terms, *kid, env, strict));
            env.truncate(env.len() - binds);
            self.extents.truncate(depth);
            ids.push(made?);
        }
        Some(match head {
            Head::Get(i, _) if self.out.head(ids[0]) == Head::Tuple => self.out.kids(ids[0])[i as usize],
            _ => self.out.put(head, ids),
        })
    }

    fn variable(&mut self, entry: Entry, ty: Ty) -> Id {
        let depth = self.extents.len();
        match entry {
            Entry::Param(p) => self.out.var((depth + self.params.len() - 1 - p) as u32, ty),
            Entry::Bound(level) => self.out.var((depth - 1 - level) as u32, ty),
            Entry::Value(id, made) => {
                let moved = self.out.shift(id, depth - made);
                // What was certain to be evaluated outside is harmless inside.
                if self.strict.contains(&(id, self.extents[..made].to_vec())) {
                    self.strict.insert((moved, self.extents.clone()));
                }
                moved
            }
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
