//! A body with lets and calls becomes a flat term: lets are substituted, calls inlined.
//!
//! Strictness would be lost on the way: a value that a let computes for nothing may fail all the
//! same. So what is certain to be evaluated is noted, and every let with its place.

use super::flat::{Looked, Scope, Site, bound, certain, parameter};
use crate::ir::{Fun, Head, Id, Program, Terms, Ty, deep};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// A let of the body: its value and what follows, flat, where it stands.
pub struct Binding {
    /// The value.
    pub value: Id,
    /// What the value is bound in.
    pub body: Id,
    /// The loops around it.
    pub scope: Scope,
    /// The let in the arena of the body; none where it stands in a function that is called.
    pub from: Option<Id>,
}

/// A sum whose elements are tensors.
pub struct Sum {
    /// In the body.
    pub from: Id,
    /// Without lets and calls.
    pub flat: Id,
    /// The loops around it.
    pub scope: Scope,
}

/// A body without lets and calls.
pub struct Unfolded {
    /// The flat term.
    pub id: Id,
    /// What is certain to be evaluated.
    pub certain: FxHashSet<Site>,
    /// Where that was looked for.
    pub looked: Looked,
    /// The values of lets and the arguments of calls that are evaluated whenever the loops around them run.
    pub strict: Vec<(Id, Scope)>,
    /// The lets that stood in the body, and the arguments of calls.
    pub lets: Vec<Binding>,
    /// The sums of tensors that stood in the body.
    pub sums: Vec<Sum>,
}

/// So many nodes are visited at most: calls within calls multiply.
const MAX_STEPS: usize = 1_000_000;

/// Unfolds a term over parameters into `out`. Calls of functions in `kept`, and of those without a
/// body, stay. Nothing where the result would be too large.
pub fn unfold(
    program: &Program,
    kept: &FxHashSet<Fun>,
    (terms, body): (&Terms, Id),
    params: &[Ty],
    out: &mut Terms,
) -> Option<Unfolded> {
    let mut env: Vec<Entry> = vec![];
    for (k, ty) in params.iter().enumerate() {
        env.push(Entry::Value(out.put(parameter(k, *ty), []), 0));
    }
    let (scope, certain, looked, strict, lets, sums, plain) = Default::default();
    let mut walk = Walk { program, kept, out, scope, certain, looked, strict, lets, sums, steps: 0, calls: 0, plain };
    let id = walk.flat(terms, body, &mut env, true)?;
    walk.note(id, true);
    let Walk { certain, looked, strict, lets, sums, .. } = walk;
    Some(Unfolded { id, certain, looked, strict: strict.into_iter().collect(), lets, sums })
}

/// What a variable stands for.
#[derive(Clone, Copy)]
enum Entry {
    /// The variable bound at a level, lets not counted.
    Bound(usize),
    /// A flat term made at a depth.
    Value(Id, usize),
}

struct Walk<'a> {
    program: &'a Program,
    kept: &'a FxHashSet<Fun>,
    out: &'a mut Terms,
    scope: Scope,
    certain: FxHashSet<Site>,
    looked: Looked,
    strict: BTreeSet<(Id, Scope)>,
    lets: Vec<Binding>,
    sums: Vec<Sum>,
    steps: usize,
    /// How many calls are being unfolded.
    calls: usize,
    /// Which terms are plain, in the arena of the body and in that of the program.
    plain: [FxHashMap<Id, bool>; 2],
}

/// Parts of a plain term that were copied, each under so many binders of that term.
type Copies = FxHashMap<(Id, usize), Id>;

impl Walk<'_> {
    /// `strict` says that the place is evaluated whenever the loops around it run.
    fn flat(&mut self, terms: &Terms, id: Id, env: &mut Vec<Entry>, strict: bool) -> Option<Id> {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return None;
        }
        if self.is_plain(terms, id) {
            return self.copied(terms, id, 0, env, &mut Copies::default());
        }
        let (head, kids) = (terms.head(id), terms.kids(id));
        match head {
            Head::Let => {
                let value = deep(|| self.flat(terms, kids[0], env, strict))?;
                self.note(value, strict);
                env.push(Entry::Value(value, self.scope.len()));
                let body = deep(|| self.flat(terms, kids[1], env, strict));
                env.pop();
                let body = body?;
                let from = (self.calls == 0).then_some(id);
                self.lets.push(Binding { value, body, scope: self.scope.clone(), from });
                Some(body)
            }
            Head::Call(f) if !self.kept.contains(&f) => {
                let args = kids.iter().map(|k| deep(|| self.flat(terms, *k, env, strict)));
                let args = args.collect::<Option<Vec<_>>>()?;
                let Some(body) = self.program.defs.get(&f).and_then(|d| d.term()) else {
                    return Some(self.out.put(head, args));
                };
                args.iter().for_each(|a| self.note(*a, strict));
                let mut inner = args.iter().map(|a| Entry::Value(*a, self.scope.len())).collect();
                let program = self.program;
                self.calls += 1;
                let out = deep(|| self.flat(&program.terms, body, &mut inner, strict));
                self.calls -= 1;
                let (body, scope) = (out?, &self.scope);
                let bound = args.into_iter().map(|value| Binding { value, body, scope: scope.clone(), from: None });
                self.lets.extend(bound);
                Some(body)
            }
            _ => self.node(terms, id, env, strict),
        }
    }

    /// Whether nothing in a term has to be noted: it has no lets and calls that would go, and no sums of tensors.
    fn is_plain(&mut self, terms: &Terms, id: Id) -> bool {
        let arena = usize::from(self.calls > 0);
        if let Some(known) = self.plain[arena].get(&id) {
            return *known;
        }
        let out = match terms.head(id) {
            Head::Let => false,
            Head::Call(f) if !self.kept.contains(&f) => false,
            Head::Reduce(..) if terms.ty(id).has_tensor() => false,
            _ => terms.kids(id).iter().all(|kid| deep(|| self.is_plain(terms, *kid))),
        };
        self.plain[arena].insert(id, out);
        out
    }

    /// A plain term: what stands in it more than once is copied once.
    fn copied(&mut self, terms: &Terms, id: Id, under: usize, env: &[Entry], copies: &mut Copies) -> Option<Id> {
        if let Some(done) = copies.get(&(id, under)) {
            return Some(*done);
        }
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return None;
        }
        let (head, kids) = (terms.head(id), terms.kids(id));
        let n = kids.len();
        let out = match head {
            Head::Var(i, ty) => match (i as usize).checked_sub(under).map(|i| env[env.len() - 1 - i]) {
                None => self.out.var(i, ty),
                Some(Entry::Bound(level)) => self.out.var((self.scope.len() + under - 1 - level) as u32, ty),
                Some(Entry::Value(id, made)) => self.out.shift(id, self.scope.len() + under - made),
            },
            _ => {
                let mut new = Vec::with_capacity(n);
                for (k, kid) in kids.iter().enumerate() {
                    new.push(deep(|| self.copied(terms, *kid, under + head.binds(k, n), env, copies))?);
                }
                self.out.put(head, new)
            }
        };
        copies.insert((id, under), out);
        Some(out)
    }

    fn node(&mut self, terms: &Terms, id: Id, env: &mut Vec<Entry>, strict: bool) -> Option<Id> {
        let (head, kids) = (terms.head(id), terms.kids(id));
        let n = kids.len();
        let mut ids: Vec<Id> = Vec::with_capacity(n);
        for (k, kid) in kids.iter().enumerate() {
            let (depth, binds) = (self.scope.len(), head.binds(k, n));
            if binds > 0 {
                env.extend((depth..depth + binds).map(Entry::Bound));
                let bound = bound(self.out, head, &ids);
                self.scope.extend(bound);
            }
            let strict = strict && !(head == Head::If && k > 0);
            let made = deep(|| self.flat(terms, *kid, env, strict));
            env.truncate(env.len() - binds);
            self.scope.truncate(depth);
            ids.push(made?);
        }
        let out = self.out.put(head, ids);
        if self.calls == 0 && matches!(head, Head::Reduce(..)) && self.out.ty(out).has_tensor() {
            self.sums.push(Sum { from: id, flat: out, scope: self.scope.clone() });
        }
        Some(out)
    }

    fn note(&mut self, id: Id, strict: bool) {
        if strict {
            certain(self.out, id, &mut self.scope, &mut self.certain, &mut self.looked);
            self.strict.insert((id, self.scope.clone()));
        }
    }
}
