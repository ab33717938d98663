//! Loops that a form of the source makes of a function: `map`, `map2`, `diag` and `iterate`, told again.
//!
//! What is found here reads back as the same term, so that a loop that somebody wrote in the same words is told as the form,
//! too, unless its indices have names of their own. It must not know how text is laid out.

use super::calls::REACH;
use super::head::Head;
use super::op::Op;
use super::spelled::Names;
use super::term::{Id, Terms, deep};
use smallvec::SmallVec;

/// An element of a tensor in the body of a function that is applied to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Element {
    /// This let binds it.
    Bound(Id),
    /// It stands here, the only time.
    Once(Id),
}

/// Elements of tensors, by the variables that these are.
type Elements = SmallVec<[(u32, Element); 2]>;

/// A form of a function, by the term that it makes.
pub enum Looped {
    /// `(map f t)` or `(map2 f t u)`.
    Map {
        /// The loop.
        build: Id,
        /// The variables of the tensors, and their elements.
        of: SmallVec<[(u32, Element); 2]>,
        /// How many lets stand around the loop.
        lets: usize,
        /// How many indices it has.
        rank: usize,
        /// The body of the function.
        body: Id,
    },
    /// `(diag n m f)`, where `m` stands in the loop.
    Diag {
        /// `n`.
        rows: Id,
        /// `m`.
        columns: Id,
        /// The body of the function.
        body: Id,
    },
    /// `(iterate n f x)`.
    Iterate {
        /// `n`.
        count: Id,
        /// Whether the function takes the number of the step.
        numbered: bool,
    },
}

/// The elements of tensors at the indices of a loop.
#[derive(Default)]
struct Found {
    /// Variables of tensors as seen from outside of the loop, and where an element stands.
    elements: SmallVec<[(u32, Id); 2]>,
    left: usize,
}

/// So many nodes of a body are looked at: a longer one is told as a loop.
const MOST: usize = 2000;

/// The most tensors of one `map`.
const TENSORS: usize = 2;

impl Terms {
    /// The form of a function that makes a term, where the source has that form.
    pub fn looped(&self, id: Id, names: Names<'_>) -> Option<(&'static str, Looped)> {
        match self.head(id) {
            Head::Build(_) => {
                let diag = || Some((self.said(&["diag"])?, self.diagonal(id, names)?));
                diag().or_else(|| self.mapped(id, names))
            }
            Head::Let | Head::Assert => {
                let name = self.said(&["map2"])?;
                Some((name, self.checked(id, names)?))
            }
            Head::Fold => {
                let name = self.said(&["iterate", "ifold"])?;
                let [_, steps, body] = *self.kids(id) else { return None };
                let (Head::Build(1), [count, number]) = (self.head(steps), self.kids(steps)) else { return None };
                let numbered = self.free(body).has(0);
                let found = Looped::Iterate { count: *count, numbered };
                (self.variable(*number, 0) == Some(0)).then_some((name, found))
            }
            _ => None,
        }
    }

    fn diagonal(&self, id: Id, names: Names<'_>) -> Option<Looped> {
        let [rows, row] = *self.kids(id) else { return None };
        let (Head::DeltaVec(1), [columns, place, body]) = (self.head(row), self.kids(row)) else { return None };
        self.argument(*columns, 1, names)?;
        let fits = self.variable(*place, 0) == Some(0);
        fits.then_some(Looped::Diag { rows, columns: *columns, body: *body })
    }

    /// A loop over the elements of one tensor, or of two whose sizes have the same names.
    fn mapped(&self, id: Id, names: Names<'_>) -> Option<(&'static str, Looped)> {
        let said = ["map", "map2"].map(|form| self.said(&[form]));
        if said == [None, None] {
            return None;
        }
        let Head::Build(rank) = self.head(id) else { return None };
        let (of, body) = self.elements(id, rank)?;
        let own = |k: usize, t: u32| self.is_axis(self.kids(id)[k], (t, k), 0, names);
        let all = |t: u32| (0..rank).all(|k| own(k, t));
        let name = match of.as_slice() {
            [(t, _)] => said[0].filter(|_| all(*t)),
            [(t, _), (u, _)] => {
                let named = (0..rank).all(|k| names(*t, k).is_some() && names(*t, k) == names(*u, k));
                said[1].filter(|_| named && all(*t))
            }
            _ => None,
        }?;
        Some((name, Looped::Map { build: id, of, lets: 0, rank, body }))
    }

    /// A loop over the elements of two tensors whose sizes are compared before: the sizes of the first that have no
    /// names are bound in front of that.
    fn checked(&self, id: Id, names: Names<'_>) -> Option<Looped> {
        let (mut bound, mut at) = (SmallVec::<[Id; 3]>::new(), id);
        while let (Head::Let, [value, body]) = (self.head(at), self.kids(at)) {
            if !matches!(self.head(*value), Head::Size(_)) || bound.len() > 3 {
                return None;
            }
            bound.push(*value);
            at = *body;
        }
        let lets = bound.len() as u32;
        let (Head::Assert, [fits, build]) = (self.head(at), self.kids(at)) else { return None };
        let Head::Build(rank) = self.head(*build) else { return None };
        let (mut of, body) = self.elements(*build, rank)?;
        of.iter_mut().try_for_each(|(t, _)| t.checked_sub(lets).map(|outside| *t = outside))?;
        if of.len() != TENSORS {
            return None;
        }
        // The two have an order, which the sizes of the loop show.
        let kept = of.iter().filter(|(_, e)| matches!(e, Element::Bound(_))).count() == TENSORS;
        let swapped: SmallVec<[_; 2]> = of.iter().rev().copied().collect();
        let orders = [Some(of), Some(swapped).filter(|_| !kept)];
        let checks = |of: &[(u32, Element)]| {
            let pair = (of[0].0, of[1].0);
            self.compares((*fits, *build), (pair.0, pair.1), (&bound, rank), names)
        };
        let of = orders.into_iter().flatten().find(|of| checks(of))?;
        Some(Looped::Map { build: *build, of, lets: bound.len(), rank, body })
    }

    /// Whether a condition says that all sizes of two tensors are equal that do not share a name, and a loop has those
    /// of the first: the lets around both bind the ones that have no names, in order.
    fn compares(
        &self,
        (fits, build): (Id, Id),
        (t, u): (u32, u32),
        (bound, rank): (&[Id], usize),
        names: Names<'_>,
    ) -> bool {
        let lets = bound.len() as u32;
        let is = |id: Id, of: u32, axis: usize, depth: u32| self.is_axis(id, (of, axis), depth, names);
        let (mut next, mut pairs) = (0, vec![]);
        for k in 0..rank {
            let size = self.kids(build)[k];
            let fine = match names(t, k) {
                Some(_) => is(size, t, k, lets),
                None => {
                    next += 1;
                    let at = next as u32 - 1;
                    next <= bound.len()
                        && is(bound[at as usize], t, k, at)
                        && matches!(self.head(size), Head::Var(i, _) if i == lets - 1 - at)
                }
            };
            if !fine {
                return false;
            }
            if names(t, k).is_none() || names(t, k) != names(u, k) {
                pairs.push((size, k));
            }
        }
        let mut all = vec![fits];
        while all.len() < pairs.len() {
            let (Head::Op(Op::And), [rest, last]) = (self.head(all[0]), self.kids(all[0])) else { return false };
            all.splice(0..1, [*rest, *last]);
        }
        next == bound.len()
            && !pairs.is_empty()
            && all.iter().zip(&pairs).all(|(fits, (size, k))| match (self.head(*fits), self.kids(*fits)) {
                (Head::Op(Op::Eq), [a, b]) => a == size && is(*b, u, *k, lets),
                _ => false,
            })
    }

    /// Whether a term inside of so many binders is what a form has for the size of an axis of a variable.
    fn is_axis(&self, id: Id, (of, axis): (u32, usize), depth: u32, names: Names<'_>) -> bool {
        let first = names(of, axis).map_or((of, axis), |(_, first)| first);
        self.head(id) == Head::Size(first.1) && self.variable(self.kids(id)[0], depth) == Some(first.0)
    }

    /// The tensors whose elements a loop reads at its own indices, where it reads nothing else of these, each element
    /// bound once in front or read once; and its body behind those lets. A loop of indices whose names the source chose
    /// stays one.
    fn elements(&self, id: Id, rank: usize) -> Option<(Elements, Id)> {
        if self.chosen(id).is_some() {
            return None;
        }
        let (mut body, mut of) = (*self.kids(id).last()?, Elements::new());
        while of.len() < TENSORS
            && let (Head::Let, [value, rest]) = (self.head(body), self.kids(body))
            && let Some(t) = self.element(*value, rank, of.len())
            && !self.once(*rest, 0)
        {
            of.push((t, Element::Bound(body)));
            body = *rest;
        }
        let mut found = Found { left: MOST, ..Found::default() };
        if !self.reads(body, (rank, of.len()), false, &mut found) {
            return None;
        }
        let bound = of.len();
        of.extend(found.elements.iter().map(|(t, at)| (*t, Element::Once(*at))));
        let distinct = (0..of.len()).all(|k| of[..k].iter().all(|(t, _)| *t != of[k].0));
        if bound < TENSORS {
            of.sort_by_key(|(t, _)| std::cmp::Reverse(*t));
        }
        (distinct && !of.is_empty() && of.len() <= TENSORS).then_some((of, body))
    }

    /// The variable, as seen from outside of a loop, of which a term inside of so many more binders is the element at
    /// the indices of the loop.
    fn element(&self, id: Id, rank: usize, depth: usize) -> Option<u32> {
        let (Head::Index(d), [indices @ .., of]) = (self.head(id), self.kids(id)) else { return None };
        let own = |(k, i): (usize, &Id)| self.variable(*i, depth as u32) == Some((rank - 1 - k) as u32);
        if d != rank || !indices.iter().enumerate().all(own) {
            return None;
        }
        self.variable(*of, (depth + rank) as u32)
    }

    /// Whether a term uses the indices of a loop only for elements, outside of further loops; which ones is noted.
    fn reads(&self, id: Id, (rank, depth): (usize, usize), repeated: bool, found: &mut Found) -> bool {
        let free = self.free(id);
        if !(depth..depth + rank).any(|i| free.has(i)) {
            return true;
        }
        if found.left == 0 || depth + rank + TENSORS > REACH {
            return false;
        }
        found.left -= 1;
        if let Some(t) = self.element(id, rank, depth) {
            found.elements.push((t, id));
            return !repeated && found.elements.len() <= TENSORS;
        }
        let (head, kids) = (self.head(id), self.kids(id));
        if matches!(head, Head::Var(..)) {
            return false;
        }
        (0..kids.len()).all(|k| {
            let binds = head.binds(k, kids.len());
            let repeated = repeated || head.is_loop() && k + 1 == kids.len();
            deep(|| self.reads(kids[k], (rank, depth + binds), repeated, found))
        })
    }

    /// The arms of a chain of conditions, where the source has such forms: there are two conditions or more.
    pub fn arms(&self, id: Id) -> Option<(Vec<(Id, Id)>, Id)> {
        self.said(&["cond"])?;
        let (mut arms, mut at) = (vec![], id);
        while let (Head::If, [c, a, b]) = (self.head(at), self.kids(at)) {
            arms.push((*c, *a));
            at = *b;
        }
        (arms.len() > 1).then_some((arms, at))
    }
}
