//! Names in scope, and lets that a form opens on the way to its result.
//!
//! A term is right at one depth only. A [`Val`] remembers the depth it was made at, and
//! [`Elab::now`] moves it to where it is used. What an error leaves behind is undone by
//! [`Elab::attempt`].

use super::Elab;
use super::meaning::{Meaning, Pending};
use crate::diag::{Diagnostic, Result};
use crate::ir::names::Numbers;
use crate::ir::{Head, Id, Lit, Op, Param, Ty, names};
use smallvec::smallvec;

/// How much there is in scope.
pub struct Mark {
    variables: usize,
    lets: usize,
    names: usize,
    nested: usize,
}

/// A term with the depth at which it was made.
#[derive(Clone, Copy, Debug)]
pub struct Val {
    /// The term.
    pub id: Id,
    /// The number of variables in scope then.
    pub depth: usize,
}

impl Elab<'_> {
    /// Number of variables in scope.
    pub fn depth(&self) -> usize {
        self.scope.len()
    }

    /// The variable bound at a level.
    pub fn level(&mut self, level: usize) -> Id {
        let index = self.depth() - 1 - level;
        self.terms.var(index as u32, self.scope[level])
    }

    /// The term that a name stands for.
    pub fn meaning(&mut self, name: &str) -> Option<Result<Id>> {
        Some(Ok(match self.names.get(name)?.last()?.clone() {
            Meaning::Level(l) => self.level(l),
            Meaning::Size(l, axis) => {
                let of = self.level(l);
                self.terms.put(Head::Size(axis), [of])
            }
            Meaning::Parts(levels) => {
                let parts: Vec<Id> = levels.into_iter().map(|l| self.level(l)).collect();
                self.terms.put(Head::Tuple, parts)
            }
            Meaning::Unknown => return Some(Err(Diagnostic::consequence())),
        }))
    }

    /// Brings a name into scope.
    pub fn define(&mut self, name: &str, meaning: Meaning) {
        self.named.push(name.to_string());
        match self.names.get_mut(name) {
            Some(stack) => stack.push(meaning),
            None => drop(self.names.insert(name.to_string(), smallvec![meaning])),
        }
    }

    /// Takes the names out of scope that came after `mark`.
    pub fn forget(&mut self, mark: &Mark) {
        while self.named.len() > mark.names {
            let Some(name) = self.named.pop() else { return };
            if let Some(stack) = self.names.get_mut(&name) {
                stack.pop();
                if stack.is_empty() {
                    self.names.remove(&name);
                    self.numbers.left(&name);
                }
            }
        }
    }

    /// What is in scope now.
    pub fn mark(&self) -> Mark {
        let (variables, lets, names) = (self.scope.len(), self.pending.len(), self.named.len());
        Mark { variables, lets, names, nested: self.nested }
    }

    /// Takes everything out of scope that came after `mark`.
    pub fn restore(&mut self, mark: &Mark) {
        self.forget(mark);
        self.scope.truncate(mark.variables);
        self.pending.truncate(mark.lets);
        self.nested = mark.nested;
    }

    /// Reads something; where that fails, the scope is as before.
    pub fn attempt<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let mark = self.mark();
        let out = read(self);
        if out.is_err() {
            self.restore(&mark);
        }
        out
    }

    /// A term just made, with its depth.
    pub fn val(&self, id: Id) -> Val {
        Val { id, depth: self.depth() }
    }

    /// The term at the present depth.
    pub fn now(&mut self, v: Val) -> Id {
        self.terms.shift(v.id, self.depth() - v.depth)
    }

    /// Whether a term is no dearer than a name for it: a variable, a literal, or a size that has a name.
    pub fn is_short(&self, id: Id) -> bool {
        matches!(self.terms.head(id), Head::Var(..) | Head::Const(_)) || self.size_name(id).is_some()
    }

    /// Binds a value so that it is evaluated once; what is short stands for itself.
    pub fn bind(&mut self, id: Id) -> Val {
        match self.is_short(id) {
            true => self.val(id),
            false => {
                self.open(id, None);
                let level = self.depth() - 1;
                let id = self.level(level);
                self.val(id)
            }
        }
    }

    /// Opens a let; [`Elab::close`] puts it around a body.
    pub fn open(&mut self, value: Id, name: Option<String>) {
        let ty = self.terms.ty(value);
        let name = name.map(|n| {
            let chosen = self.chosen(Head::Let, std::slice::from_ref(&n));
            (n, chosen)
        });
        self.pending.push(Pending { value, name });
        self.scope.push(ty);
    }

    /// Whether these names, about to come into scope, differ from what printing would make up.
    pub fn chosen(&mut self, head: Head, each: &[String]) -> bool {
        // Most names are like none of those, which is seen without a search.
        let alike = |(k, name): (usize, &String)| names::bases(head, k).contains(&names::base(name));
        if !each.iter().enumerate().all(alike) {
            return true;
        }
        (0..each.len()).any(|k| {
            let free = |n: &str| !self.names.contains_key(n) && !each[..k].iter().any(|m| m == n);
            // Names that are not yet in scope must leave no trace in the numbers.
            let made = match k {
                0 => self.numbers.generated(head, k, free),
                _ => Numbers::default().generated(head, k, free),
            };
            made != each[k]
        })
    }

    /// How many lets are open.
    pub fn opened(&self) -> usize {
        self.pending.len()
    }

    /// Closes the innermost lets of a function that is applied to elements of tensors. What stands once, and in no
    /// loop, needs no name: so it is written wherever elements are read.
    pub fn close_elements(&mut self, mark: usize, mut body: Id) -> Id {
        while self.pending.len() > mark {
            if !self.terms.once(body, 0) {
                body = self.close(self.pending.len() - 1, body);
                continue;
            }
            let Some(Pending { value, name }) = self.pending.pop() else { break };
            self.scope.pop();
            let chosen = name.filter(|(_, chosen)| *chosen).map(|(name, _)| name);
            body = self.terms.map_free(body, 0, &mut |t, i, ty, depth| match i.checked_sub(1) {
                Some(outside) => t.var(outside + depth as u32, ty),
                None => {
                    let here = t.shift(value, depth);
                    if let Some(name) = &chosen {
                        t.label(here, name.clone());
                    }
                    here
                }
            });
        }
        body
    }

    /// Closes all lets opened since `mark` around a body.
    pub fn close(&mut self, mark: usize, mut body: Id) -> Id {
        while self.pending.len() > mark {
            if let Some(p) = self.pending.pop() {
                body = self.terms.put(Head::Let, [p.value, body]);
                if let Some((name, chosen)) = p.name {
                    self.terms.name(body, vec![name], chosen);
                }
                self.scope.pop();
            }
        }
        body
    }

    /// Makes a body under binders of these types; it is given their levels.
    pub fn under(&mut self, tys: &[Ty], body: impl FnOnce(&mut Self, &[usize]) -> Id) -> Id {
        let from = self.depth();
        self.scope.extend_from_slice(tys);
        let levels: Vec<usize> = (from..self.depth()).collect();
        let out = body(self, &levels);
        self.scope.truncate(from);
        out
    }

    /// An `Integer` literal.
    pub fn int(&mut self, v: i64) -> Id {
        self.terms.lit(Lit::int(v))
    }

    /// Component `i` (from 0) of a tuple.
    pub fn part(&mut self, v: Val, i: usize, n: usize) -> Id {
        let of = self.now(v);
        self.terms.put(Head::Get(i as u32, n as u32), [of])
    }

    /// The size of an axis of a value: where a name stands for it, the size of the first parameter that has the name.
    pub fn axis(&mut self, of: Id, axis: usize) -> Id {
        if let Head::Var(i, _) = self.terms.head(of)
            && let Some(level) = self.depth().checked_sub(1 + i as usize)
            && let Some(name) = self.params.get(level).and_then(|p| p.sizes.get(axis))
        {
            let at = |p: &Param| p.sizes.iter().position(|n| n == name);
            if let Some((first, axis)) = self.params.iter().enumerate().find_map(|(p, param)| Some((p, at(param)?))) {
                let of = self.level(first);
                return self.terms.put(Head::Size(axis), [of]);
            }
        }
        self.terms.put(Head::Size(axis), [of])
    }

    /// Sizes of the outer tensor, as the source asks for them.
    pub fn asked_sizes(&mut self, v: Val, rank: usize) -> Vec<Id> {
        let of = self.now(v);
        (0..rank).map(|k| self.terms.put(Head::Size(k), [of])).collect()
    }

    /// Sizes of the outer tensor, as forms have them.
    pub fn sizes(&mut self, v: Val, rank: usize) -> Vec<Id> {
        let of = self.now(v);
        (0..rank).map(|k| self.axis(of, k)).collect()
    }

    /// The name of a term of the present depth, where it is a size of a parameter that has one.
    pub fn size_name(&self, id: Id) -> Option<&str> {
        let (Head::Size(axis), [of]) = (self.terms.head(id), self.terms.kids(id)) else { return None };
        let Head::Var(i, _) = self.terms.head(*of) else { return None };
        let level = self.depth().checked_sub(1 + i as usize)?;
        self.sizes_named(level).get(axis).map(String::as_str)
    }

    /// The names of the sizes of the variable of a level.
    pub fn sizes_named(&self, level: usize) -> &[String] {
        let borrowed = self.borrowed.iter().rev().find(|(at, _)| *at == level);
        let names = borrowed.map(|(_, names)| names).or(self.params.get(level).map(|p| &p.sizes));
        names.map_or(&[], Vec::as_slice)
    }

    /// Whether two terms are sizes of one name, which are equal wherever the definition is called.
    pub fn share_name(&self, a: Id, b: Id) -> bool {
        self.size_name(a).is_some_and(|name| self.size_name(b) == Some(name))
    }

    /// Two terms that are evaluated once each, the first before the second.
    pub fn one_then_other(&mut self, first: Val, second: Id) -> (Val, Val) {
        if self.is_short(second) {
            return (first, self.val(second));
        }
        let (first, second) = (self.now(first), self.val(second));
        let first = self.bind(first);
        let second = self.now(second);
        (first, self.bind(second))
    }

    /// Sizes of the outer tensor that are evaluated once each.
    pub fn bound_sizes(&mut self, v: Val, rank: usize) -> Vec<Val> {
        (0..rank)
            .map(|k| {
                let of = self.now(v);
                let size = self.axis(of, k);
                self.bind(size)
            })
            .collect()
    }

    /// The element at indices.
    pub fn element(&mut self, indices: &[usize], v: Val) -> Id {
        let mut kids: Vec<Id> = indices.iter().map(|l| self.level(*l)).collect();
        kids.push(self.now(v));
        self.terms.put(Head::Index(indices.len()), kids)
    }

    /// A tensor of the size of `like` whose element at each index `body` makes.
    pub fn like(&mut self, like: Val, rank: usize, body: impl FnOnce(&mut Self, &[usize]) -> Id) -> Id {
        let mut kids = self.sizes(like, rank);
        kids.push(self.under(&vec![Ty::int(); rank], body));
        self.terms.put(Head::Build(rank), kids)
    }

    /// A scalar operation on terms of this depth.
    pub fn op(&mut self, op: Op, args: &[Id]) -> Id {
        self.terms.op(op, args.iter().copied())
    }
}
