//! Which sizes are equal: each becomes a key, and equal keys are equal sizes wherever both have a value.
//!
//! A key looks through names, to what makes a tensor that a let binds, to the parameter that a size is named after. What
//! it does not see is told apart from all else. It must not know who asks.

use super::tree::{At, Tree};
use crate::ir::{Head, named_size};
use smallvec::SmallVec;

/// So many names are looked through, and so many nodes of a term looked at or compared.
const FUEL: usize = 24;

/// What tells sizes apart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Key {
    /// This number.
    Literal(i64),
    /// This variable.
    Variable(usize),
    /// An axis of a variable, or of a part of it, through nested tensors.
    Axis(usize, SmallVec<[u32; 2]>, usize),
    /// What this node makes.
    Node(At),
}

impl Tree<'_> {
    /// Whether two integers are seen to be equal.
    pub fn same_size(&mut self, a: Key, b: Key) -> bool {
        match (a, b) {
            (Key::Node(a), Key::Node(b)) => self.same(a, b),
            (a, b) => a == b,
        }
    }

    /// The key of an integer.
    pub fn key(&mut self, at: At) -> Key {
        self.key_within(at, FUEL)
    }

    fn key_within(&mut self, at: At, left: usize) -> Key {
        self.looked += 1;
        if let Some(n) = self.lit(at).and_then(|l| l.as_int()) {
            return Key::Literal(n);
        }
        if left == 0 {
            return Key::Node(at);
        }
        if let Some(v) = self.use_of(at) {
            return match self.value_of(v) {
                Some(value) if self.is_short(value) => self.key_within(value, left - 1),
                _ => Key::Variable(v),
            };
        }
        match self.nodes[at].head {
            Head::Size(k) => {
                let of = self.nodes[at].kids[0];
                // Inside an empty tensor sizes are 0, whatever made its elements.
                let outer = self.nodes[of].ty.as_tensor().is_some_and(|(rank, _)| k < rank);
                self.axis_within(of, k, outer, left - 1).unwrap_or(Key::Node(at))
            }
            _ => Key::Node(at),
        }
    }

    /// The key of an axis of a tensor that has elements, or of an axis of its own.
    pub fn axis(&mut self, tensor: At, k: usize) -> Option<Key> {
        self.axis_within(tensor, k, true, FUEL)
    }

    /// `made` says that the axis is what the maker of the tensor says.
    fn axis_within(&mut self, tensor: At, k: usize, made: bool, left: usize) -> Option<Key> {
        self.looked += 1;
        if left == 0 {
            return None;
        }
        let head = self.nodes[tensor].head;
        if let Some(v) = self.use_of(tensor) {
            if let Some(value) = self.value_of(v).filter(|value| made || self.is_path(*value))
                && let Some(key) = self.axis_within(value, k, made, left - 1)
            {
                return Some(key);
            }
            return Some(self.axis_of(v, SmallVec::new(), k));
        }
        let kid = |tree: &Self, n: usize| tree.nodes[tensor].kids[n];
        match head {
            Head::Build(d) | Head::ConstVec(d) | Head::DeltaVec(d) | Head::Scatter(d) if made && k < d => {
                let size = kid(self, k);
                Some(self.key_within(size, left - 1))
            }
            Head::Index(d) => {
                let of = kid(self, d);
                self.axis_within(of, k + d, true, left - 1)
            }
            Head::Get(..) => {
                let (v, path) = self.path(tensor)?;
                Some(self.axis_of(v, path, k))
            }
            _ => None,
        }
    }

    /// The axis of a variable: of parameters the first one that has its name.
    fn axis_of(&mut self, v: usize, path: SmallVec<[u32; 2]>, k: usize) -> Key {
        let name = self.params.get(v).filter(|_| path.is_empty()).and_then(|p| p.sizes.get(k));
        let first = name.and_then(|name| {
            let axes =
                self.params.iter().enumerate().flat_map(|(p, param)| (0..param.sizes.len()).map(move |a| (p, a)));
            { axes }.find(|axis| named_size(self.params, *axis) == Some(name.as_str()))
        });
        match first {
            Some((p, axis)) => Key::Axis(p, SmallVec::new(), axis),
            None => Key::Axis(v, path, k),
        }
    }

    /// The variable of which a node is a part, and which: the numbers of parts of tuples, from the outside in.
    fn path(&mut self, at: At) -> Option<(usize, SmallVec<[u32; 2]>)> {
        let (mut path, mut of) = (SmallVec::<[u32; 2]>::new(), at);
        while let Head::Get(i, _) = self.nodes[of].head {
            if path.len() >= FUEL {
                return None;
            }
            path.push(i);
            of = self.nodes[of].kids[0];
        }
        path.reverse();
        Some((self.use_of(of)?, path))
    }

    /// Whether a node is no dearer than a name for it: a literal, a variable, or a size of one.
    pub fn is_short(&self, at: At) -> bool {
        match self.nodes[at].head {
            Head::Const(_) | Head::Var(..) => true,
            Head::Size(_) => matches!(self.nodes[self.nodes[at].kids[0]].head, Head::Var(..)),
            _ => false,
        }
    }

    /// Whether a node is a variable, or a row or part of one, at indices that are short.
    pub fn is_path(&self, at: At) -> bool {
        let mut of = at;
        for _ in 0..FUEL {
            let kids = &self.nodes[of].kids;
            match self.nodes[of].head {
                Head::Var(..) => return true,
                Head::Get(..) => of = kids[0],
                Head::Index(d) if kids[..d].iter().all(|i| self.is_short(*i)) => of = kids[d],
                _ => return false,
            }
        }
        false
    }

    /// Whether two nodes are the same term, of few nodes.
    pub fn same(&mut self, a: At, b: At) -> bool {
        let mut left = FUEL;
        self.same_within(a, b, &mut left)
    }

    fn same_within(&mut self, a: At, b: At, left: &mut usize) -> bool {
        self.looked += 1;
        if *left == 0 {
            return false;
        }
        *left -= 1;
        match (self.use_of(a), self.use_of(b)) {
            (Some(v), Some(w)) => return v == w,
            (None, None) => {}
            _ => return false,
        }
        let (one, other) = (&self.nodes[a], &self.nodes[b]);
        // What binds variables is told apart: those of one are not those of the other.
        if one.head != other.head || one.binder.is_some() || one.kids.len() != other.kids.len() {
            return false;
        }
        let pairs: SmallVec<[(At, At); 3]> = one.kids.iter().copied().zip(other.kids.iter().copied()).collect();
        pairs.into_iter().all(|(a, b)| self.same_within(a, b, left))
    }

    /// Whether one of so many variables stands somewhere in a node, of few nodes; also where that is not known.
    pub fn may_use(&mut self, at: At, first: usize, count: usize) -> bool {
        let (mut todo, mut left) = (vec![at], FUEL);
        while let Some(at) = todo.pop() {
            if left == 0 || self.use_of(at).is_some_and(|v| (first..first + count).contains(&v)) {
                return true;
            }
            left -= 1;
            self.looked += 1;
            todo.extend(self.nodes[at].kids.iter().copied());
        }
        false
    }

    /// What a variable of a loop ranges over: it is at least 0 and below that.
    pub fn extent(&self, v: usize) -> Option<At> {
        let node = self.variables[v].node?;
        let kids = &self.nodes[node].kids;
        match self.nodes[node].head {
            Head::Build(_) | Head::Reduce(..) => Some(kids[self.variables[v].slot]),
            Head::Arg(_) => Some(kids[0]),
            Head::Scan if self.variables[v].slot == 1 => Some(kids[1]),
            Head::Scatter(d) => Some(kids[d]),
            _ => None,
        }
    }

    /// Whether a path has a value wherever it stands: each index runs over the axis that it is an index of.
    pub fn is_certain(&mut self, at: At) -> bool {
        match self.nodes[at].head {
            Head::Var(..) => true,
            Head::Get(..) => self.is_certain(self.nodes[at].kids[0]),
            Head::Index(d) => {
                let kids = self.nodes[at].kids.clone();
                let inside = (0..d).all(|k| {
                    let extent = self.use_of(kids[k]).and_then(|v| self.extent(v));
                    let Some(axis) = self.axis(kids[d], k) else { return false };
                    extent.is_some_and(|extent| {
                        let extent = self.key(extent);
                        self.same_size(extent, axis)
                    })
                });
                inside && self.is_certain(kids[d])
            }
            _ => false,
        }
    }
}
