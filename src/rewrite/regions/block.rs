//! A body with lets becomes one whose lets stand in blocks: in a definition's body, in those of loops, and in arms.
//!
//! A let inside of a let's value stands before it, names of names, literals and tuples are replaced by what they name,
//! parts of tuples are read from them, and calls of small functions become their bodies. What nothing reads is left out.
//! Nothing is computed more often than before, or where it was not.

use super::chain::{Reads, last_readers};
use crate::ir::{Fun, Head, Id, Program, Terms, Ty, deep};
use rustc_hash::FxHashSet;

/// A function whose body has so many nodes at most is written where it is called.
const CALLED: u64 = 250;

/// The body of a definition with such parameters in blocks, in an arena of its own. Nothing where more than `most` terms
/// would be made.
pub fn blocks(
    program: &Program,
    kept: &FxHashSet<Fun>,
    (terms, body): (&Terms, Id),
    params: &[Ty],
    most: usize,
) -> Option<(Terms, Id)> {
    let (out, lets, reads) = Default::default();
    let mut walk = Blocks { program, kept, out, lets, reads, depth: params.len(), most };
    let count = params.len();
    let param = |(k, ty): (usize, &Ty)| Named { id: walk.out.var((count - 1 - k) as u32, *ty), depth: count };
    let mut env: Vec<Named> = params.iter().enumerate().map(param).collect();
    let id = walk.block(terms, body, &mut env)?;
    Some((walk.out, id))
}

struct Blocks<'a> {
    program: &'a Program,
    kept: &'a FxHashSet<Fun>,
    out: Terms,
    /// The lets of the block that is open.
    lets: Vec<Bound>,
    reads: Reads,
    /// How many variables are in scope.
    depth: usize,
    most: usize,
}

/// A let of a block.
struct Bound {
    value: Id,
    name: Option<String>,
}

/// What a variable stands for: a term made where so many variables were in scope.
#[derive(Clone, Copy)]
struct Named {
    id: Id,
    depth: usize,
}

impl Blocks<'_> {
    fn block(&mut self, terms: &Terms, id: Id, env: &mut Vec<Named>) -> Option<Id> {
        let (outer, depth) = (std::mem::take(&mut self.lets), self.depth);
        let tail = self.value(terms, id, env);
        let mut lets = std::mem::replace(&mut self.lets, outer);
        self.depth = depth;
        let mut tail = tail?;
        if let (Some(last), Head::Var(0, _)) = (lets.last(), self.out.head(tail)) {
            tail = last.value;
            lets.pop();
        }
        let (lets, tail) = self.read(lets, tail);
        Some(lets.into_iter().rev().fold(tail, |body, Bound { value, name }| {
            let out = self.out.put(Head::Let, [value, body]);
            if let Some(name) = name {
                self.out.name(out, vec![name], true);
            }
            out
        }))
    }

    /// The lets of a block that are read, and its tail.
    fn read(&mut self, lets: Vec<Bound>, tail: Id) -> (Vec<Bound>, Id) {
        let values: Vec<Id> = lets.iter().map(|l| l.value).collect();
        let last = last_readers(&self.out, &values, tail, &mut self.reads);
        if last.iter().all(Option::is_some) {
            return (lets, tail);
        }
        // How many of the first so many lets are read.
        let mut read = vec![0];
        for reader in &last {
            read.push(read[read.len() - 1] + usize::from(reader.is_some()));
        }
        let mut moved = |id: Id, k: usize| {
            self.out.map_free(id, 0, &mut |t, i, ty, under| {
                let i = i as usize;
                let new = if i < k { read[k] - 1 - read[k - 1 - i] } else { i - k + read[k] };
                t.var((new + under) as u32, ty)
            })
        };
        let mut out = vec![];
        for (k, Bound { value, name }) in lets.into_iter().enumerate().filter(|(k, _)| last[*k].is_some()) {
            out.push(Bound { value: moved(value, k), name });
        }
        (out, moved(tail, last.len()))
    }

    /// A term in the open block.
    fn value(&mut self, terms: &Terms, id: Id, env: &mut Vec<Named>) -> Option<Id> {
        let (before, mut id) = (env.len(), id);
        while let (Head::Let, [value, rest]) = (terms.head(id), terms.kids(id)) {
            let made = deep(|| self.value(terms, *value, env))?;
            let name = terms.chosen(id).and_then(|names| names.first().cloned());
            let named = self.named(made, name);
            env.push(named);
            id = *rest;
        }
        let out = self.node(terms, id, env);
        env.truncate(before);
        out
    }

    fn node(&mut self, terms: &Terms, id: Id, env: &mut Vec<Named>) -> Option<Id> {
        if self.out.len() > self.most {
            return None;
        }
        let (head, kids) = (terms.head(id), terms.kids(id));
        let n = kids.len();
        if let Head::Var(i, _) = head {
            return Some(self.here(env[env.len() - 1 - i as usize]));
        }
        let mut made: Vec<Named> = vec![];
        for (k, kid) in kids.iter().enumerate() {
            let (binds, scope) = (head.binds(k, n), env.len());
            let id = match binds > 0 || head == Head::If && k > 0 {
                true => {
                    self.depth += binds;
                    let depth = self.depth;
                    let tys: Vec<Ty> = made.iter().map(|m| self.out.ty(m.id)).collect();
                    let bound = head.bound_tys(&tys);
                    env.extend(bound.into_iter().enumerate().map(|(slot, ty)| {
                        let id = self.out.var((binds - 1 - slot) as u32, ty);
                        Named { id, depth }
                    }));
                    let out = deep(|| self.block(terms, *kid, env));
                    env.truncate(scope);
                    self.depth -= binds;
                    out?
                }
                false => deep(|| self.value(terms, *kid, env))?,
            };
            made.push(Named { id, depth: self.depth });
        }
        if let Head::Call(f) = head
            && let Some(body) = self.written(f)
        {
            let mut args = vec![];
            for arg in made {
                let id = self.here(arg);
                args.push(self.named(id, None));
            }
            let program = self.program;
            return deep(|| self.value(&program.terms, body, &mut args));
        }
        let ids: Vec<Id> = made.into_iter().map(|m| self.here(m)).collect();
        if let (Head::Get(i, _), Head::Tuple) = (head, ids.first().map_or(head, |id| self.out.head(*id))) {
            return Some(self.out.kids(ids[0])[i as usize]);
        }
        let out = self.out.put(head, ids);
        self.out.called_like(out, terms, id);
        Some(out)
    }

    /// The body of a function that is written where it is called.
    fn written(&self, fun: Fun) -> Option<Id> {
        let body = self.program.defs.get(&fun).filter(|_| !self.kept.contains(&fun))?.term()?;
        (self.program.terms.size(body) <= CALLED).then_some(body)
    }

    /// What a variable stands for, where as many variables are in scope as are now.
    fn here(&mut self, named: Named) -> Id {
        self.out.shift(named.id, self.depth - named.depth)
    }

    /// Names a value in the open block, unless it is a name itself.
    fn named(&mut self, id: Id, name: Option<String>) -> Named {
        match self.out.head(id) {
            Head::Var(..) | Head::Const(_) => {}
            Head::Tuple => {
                let before = self.depth;
                let parts = self.out.kids(id).to_vec();
                let each: Vec<Named> = parts
                    .into_iter()
                    .map(|part| {
                        let part = self.out.shift(part, self.depth - before);
                        self.named(part, None)
                    })
                    .collect();
                let parts: Vec<Id> = each.into_iter().map(|part| self.here(part)).collect();
                return Named { id: self.out.put(Head::Tuple, parts), depth: self.depth };
            }
            _ => {
                let ty = self.out.ty(id);
                self.lets.push(Bound { value: id, name });
                self.depth += 1;
                return Named { id: self.out.var(0, ty), depth: self.depth };
            }
        }
        Named { id, depth: self.depth }
    }
}
