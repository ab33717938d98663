//! A body with lets is cut into regions, and put together again from what becomes of them.
//!
//! A part of the body that is small enough is a region. Of what is larger, neighbouring lets are one together: a tuple
//! of those that are read later. In a long row of lets these end behind lets of one kind, so that what repeats itself
//! is cut into equal regions. What is left between regions stays as it is. A region is evaluated whenever the part
//! was, so what it stands for may be anything that equals the part.

use super::chain::{Chain, Link, Reads};
use super::scope::Scope;
use crate::ir::{Def, Head, Id, Terms, Ty, deep};
use std::ops::Range;

/// So small a part stays as it is.
const LEAST: u64 = 6;
/// Neighbouring lets of so many times the nodes of a region are a long row.
const LONG: u64 = 10;
/// The last one in so many of a region of a long row is chosen by its kind.
const CHOSEN: u64 = 4;

/// What stands for a region: a term of an arena, over the variables of these levels, the last of which is variable 0.
pub struct New {
    /// The arena.
    pub terms: Terms,
    /// The term.
    pub id: Id,
    /// The variables in scope that are its parameters.
    pub levels: Vec<usize>,
}

/// What becomes of a region.
pub enum Said {
    /// It stays as it is.
    Stays,
    /// Its parts are regions of their own.
    Split,
    /// Something else stands for it.
    Becomes(Box<New>),
}

/// Told of each region, in order: the variables in scope, and the region, a term over them.
pub type Act<'a> = dyn FnMut(&Scope, &Terms, Id) -> Said + 'a;

/// A definition, and the sizes that were told.
pub type Told<'a> = (&'a Def, &'a [(String, u64)]);

/// The body with other regions, of so many nodes at most, and the first of neighbouring lets of as many.
pub fn cut(terms: &mut Terms, body: Id, (def, told): Told<'_>, (most, first): (u64, u64), act: &mut Act<'_>) -> Id {
    let scope = Scope::new(def, told);
    let levels = (0..scope.depth()).collect();
    let depth = scope.depth();
    let reads = Reads::default();
    Cut { terms, scope, levels, depth, reads, most, first, act }.part(body)
}

struct Cut<'a, 'b> {
    terms: &'a mut Terms,
    scope: Scope,
    /// The new level of each variable in scope; none of those that are not read any more.
    levels: Vec<usize>,
    /// How many variables are in scope in the new body.
    depth: usize,
    reads: Reads,
    /// Nodes of a region at most.
    most: u64,
    /// The same of the first of neighbouring lets.
    first: u64,
    act: &'a mut Act<'b>,
}

/// A variable that is not read.
const UNREAD: usize = usize::MAX;

/// What a part became.
enum Made {
    Is(Id),
    Split,
}

/// A let of the new body: its value, and the term whose names it has.
struct Bound {
    value: Id,
    like: Id,
}

impl Cut<'_, '_> {
    fn part(&mut self, id: Id) -> Id {
        if self.terms.size(id) < LEAST {
            return self.same(id);
        }
        let said = if self.terms.size(id) <= self.most { self.ask(id) } else { Made::Split };
        match said {
            Made::Is(new) => new,
            Made::Split if self.terms.head(id) == Head::Let => self.lets(id),
            Made::Split => self.kids(id),
        }
    }

    /// What becomes of a region, in the new body.
    fn ask(&mut self, id: Id) -> Made {
        match (self.act)(&self.scope, self.terms, id) {
            Said::Stays => Made::Is(self.same(id)),
            Said::Split => Made::Split,
            Said::Becomes(new) => {
                let New { terms, id, levels } = *new;
                let id = self.terms.import(&terms, id);
                let at = |i: u32| self.levels[levels[levels.len() - 1 - i as usize]];
                let depth = self.depth;
                let place = &mut |t: &mut Terms, i: u32, ty, under| t.var((depth - 1 - at(i) + under) as u32, ty);
                Made::Is(self.terms.map_free(id, 0, place))
            }
        }
    }

    /// A node as it is, whose children are parts.
    fn kids(&mut self, id: Id) -> Id {
        let (head, kids) = (self.terms.head(id), self.terms.kids(id).to_vec());
        let mut new = vec![];
        for (k, kid) in kids.iter().enumerate() {
            let (depth, binds) = (self.scope.depth(), head.binds(k, kids.len()));
            if binds > 0 {
                self.scope.bind(self.terms, id);
                self.levels.extend(self.depth..self.depth + binds);
                self.depth += binds;
            }
            new.push(deep(|| self.part(*kid)));
            self.depth -= binds;
            self.levels.truncate(depth);
            self.scope.truncate(depth);
        }
        let out = self.terms.put(head, new);
        self.terms.keep_hints(id, out);
        out
    }

    /// A part as it is, in the new body.
    fn same(&mut self, id: Id) -> Id {
        let (old, depth, levels) = (self.scope.depth(), self.depth, &self.levels);
        if old == depth && levels.iter().enumerate().all(|(k, l)| k == *l) {
            return id;
        }
        self.terms.map_free(id, 0, &mut |t, i, ty, under| {
            let level = levels[old - 1 - i as usize];
            t.var((depth - 1 - level + under) as u32, ty)
        })
    }

    /// Neighbouring lets, which are no region together with what they stand around.
    fn lets(&mut self, id: Id) -> Id {
        let (before, outer) = (self.scope.depth(), self.depth);
        let chain = Chain::new(self.terms, id, &mut self.reads);
        let sizes: Vec<u64> = chain.links.iter().map(|link| self.terms.size(link.value)).collect();
        let long = sizes.iter().sum::<u64>() / LONG > self.most;
        let (mut from, mut size, mut most) = (0, 0, self.first);
        let mut out: Vec<Bound> = vec![];
        for (k, own) in sizes.iter().enumerate() {
            let unread = chain.is_unread(k);
            if unread || *own > self.most {
                self.flush(&chain, from..k, &mut out);
                self.alone(&chain.links[k], unread, &mut out);
                (from, size) = (k + 1, 0);
                continue;
            }
            while size + own > most {
                let to = if long && from < k { self.end(&chain, from..k, &sizes) } else { k };
                self.flush(&chain, from..to, &mut out);
                size -= sizes[from..to].iter().sum::<u64>();
                (from, most) = (to, self.most);
            }
            size += own;
        }
        self.flush(&chain, from..chain.links.len(), &mut out);
        let inner = deep(|| self.part(chain.tail));
        self.scope.truncate(before);
        self.levels.truncate(before);
        self.depth = outer;
        out.into_iter().rev().fold(inner, |body, Bound { value, like }| {
            let out = self.terms.put(Head::Let, [value, body]);
            if self.terms.head(like) == Head::Let {
                self.terms.keep_hints(like, out);
            }
            out
        })
    }

    /// Where a region of a long row of lets ends: behind the last of the largest in its last part.
    fn end(&self, chain: &Chain, links: Range<usize>, sizes: &[u64]) -> usize {
        let (mut left, end) = (sizes[links.clone()].iter().sum::<u64>() / CHOSEN, links.end);
        let (mut best, mut to) = (None, end);
        for k in links.rev() {
            let kind = Some((sizes[k], self.terms.head(chain.links[k].value)));
            if kind > best {
                (best, to) = (kind, k + 1);
            }
            left = left.saturating_sub(sizes[k]);
            if left == 0 {
                break;
            }
        }
        to
    }

    /// A let whose value is no part of a region of several.
    fn alone(&mut self, link: &Link, unread: bool, out: &mut Vec<Bound>) {
        if unread {
            self.scope.bind(self.terms, link.id);
            self.levels.push(UNREAD);
            return;
        }
        let value = deep(|| self.part(link.value));
        self.bind(link, value, out);
    }

    /// Adds a let whose variable is that of an old one.
    fn bind(&mut self, link: &Link, value: Id, out: &mut Vec<Bound>) {
        out.push(Bound { value, like: link.id });
        self.scope.bind(self.terms, link.id);
        self.levels.push(self.depth);
        self.depth += 1;
    }

    /// Makes a region of neighbouring lets, or of halves of them.
    fn flush(&mut self, chain: &Chain, range: Range<usize>, out: &mut Vec<Bound>) {
        let links = &chain.links[range.clone()];
        match links {
            [] => return,
            [one] => return self.alone(one, false, out),
            _ => {}
        }
        let read: Vec<usize> = (0..links.len()).filter(|k| chain.is_read_from(range.start + k, range.end)).collect();
        let made = self.tuple(links, &read).map_or(Made::Split, |region| self.ask(region));
        let Made::Is(new) = made else {
            let middle = range.start + links.len() / 2;
            self.flush(chain, range.start..middle, out);
            self.flush(chain, middle..range.end, out);
            return;
        };
        let tuple = self.terms.ty(new);
        let first = self.depth;
        if read.len() > 1 {
            out.push(Bound { value: new, like: new });
            self.depth += 1;
        }
        for (k, link) in links.iter().enumerate() {
            self.scope.bind(self.terms, link.id);
            let Some(part) = read.iter().position(|r| *r == k) else {
                self.levels.push(UNREAD);
                continue;
            };
            let value = match read.len() {
                1 => new,
                parts => {
                    let whole = self.terms.var((self.depth - 1 - first) as u32, tuple);
                    self.terms.put(Head::Get(part as u32, parts as u32), [whole])
                }
            };
            out.push(Bound { value, like: link.id });
            self.levels.push(self.depth);
            self.depth += 1;
        }
    }

    /// Lets around those of their variables that are read later; nothing where none is.
    fn tuple(&mut self, links: &[Link], read: &[usize]) -> Option<Id> {
        let n = links.len();
        let tys: Vec<Ty> = links.iter().map(|l| self.terms.ty(l.value)).collect();
        let vars: Vec<Id> = read.iter().map(|k| self.terms.var((n - 1 - k) as u32, tys[*k])).collect();
        let inner = match vars.as_slice() {
            [] => return None,
            [one] => *one,
            _ => self.terms.put(Head::Tuple, vars),
        };
        Some(links.iter().rev().fold(inner, |body, link| {
            let out = self.terms.put(Head::Let, [link.value, body]);
            self.terms.keep_hints(link.id, out);
            out
        }))
    }
}
