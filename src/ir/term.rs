//! Hash-consed terms: equal up to renaming means equal ids.
//!
//! Children have smaller ids than their parents, so a pass from the leaves up is a loop over ids.
//! Each node caches its type, the free variables and its size as a tree.
//! Names and places are side tables: they never take part in equality.

use super::head::{Fun, Head, Mismatch};
use super::lit::Lit;
use super::op::Op;
use super::spelled::Spelled;
use super::ty::{Scalar, Ty};
use crate::diag::Span;
use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::fmt;

/// A term in its arena.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(u32);

impl Id {
    /// Position in the arena.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t{}", self.0)
    }
}

/// A label and children.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Node {
    /// The label.
    pub head: Head,
    /// The children.
    pub kids: SmallVec<[Id; 3]>,
}

#[derive(Clone, Copy, Debug)]
struct Info {
    ty: Ty,
    free: Free,
    size: u64,
}

/// A set of free variables by index: exact below 63, and one bit for all others.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Free(pub u64);

const MANY: u64 = 1 << 63;

impl Free {
    /// The set of one variable.
    pub fn var(index: u32) -> Free {
        Free(1 << index.min(63))
    }

    /// Whether nothing is free.
    pub fn is_closed(self) -> bool {
        self.0 == 0
    }

    /// Whether a variable may be free.
    pub fn has(self, index: usize) -> bool {
        self.0 >> index.min(63) & 1 == 1
    }

    /// Whether any of the innermost `n` variables may be free.
    pub fn below(self, n: usize) -> bool {
        if n >= 63 { self.0 != 0 } else { self.0 & ((1 << n) - 1) != 0 }
    }

    /// Whether any variable from `n` outwards may be free.
    pub fn above(self, n: usize) -> bool {
        if n >= 63 { self.0 & MANY != 0 } else { self.0 >> n != 0 }
    }

    /// Both.
    pub fn union(self, other: Free) -> Free {
        Free(self.0 | other.0)
    }

    /// Seen from outside a binder of `n` variables.
    pub fn outside(self, n: usize) -> Free {
        if n == 0 {
            return self;
        }
        let low = if n >= 64 { 0 } else { self.0 >> n };
        // A variable that was beyond the exact part may have come into any place it could reach.
        let many = if self.0 & MANY == 0 { 0 } else { MANY | (u64::MAX << (63_usize.saturating_sub(n))) };
        Free(low | many)
    }

    /// Seen from inside `n` more binders.
    pub fn inside(self, n: usize) -> Free {
        let kept = if n >= 63 { 0 } else { (self.0 & !MANY) << n };
        let lost = if n >= 63 { self.0 != 0 } else { self.0 >> (63 - n) != 0 };
        Free(kept | if lost { MANY } else { 0 })
    }

    /// The innermost free variable.
    pub fn innermost(self) -> Option<usize> {
        (self.0 != 0).then_some(self.0.trailing_zeros() as usize)
    }

    /// Whether every variable of this set is in the other.
    pub fn within(self, other: Free) -> bool {
        self.0 & !other.0 == 0
    }
}

/// What the source calls the variables that a node binds.
#[derive(Clone)]
struct Names {
    each: Vec<String>,
    /// Whether the source chose them: they are not those that printing would have made up there.
    chosen: bool,
}

/// The arena of terms.
#[derive(Clone, Default)]
pub struct Terms {
    nodes: IndexSet<Node, FxBuildHasher>,
    info: Vec<Info>,
    names: FxHashMap<Id, Names>,
    /// What the source calls the value of a term.
    labels: FxHashMap<Id, String>,
    /// What the source calls the parameters of the function that a loop was made of.
    parameters: FxHashMap<Id, Vec<String>>,
    spans: FxHashMap<Id, SmallVec<[Span; 1]>>,
    /// The library calls that the source has.
    pub(super) spelled: Vec<Spelled<Id>>,
    /// The forms of functions and arms that it has.
    pub(super) forms: Vec<&'static str>,
}

/// Runs a recursive step with enough stack, however deep the term is.
pub fn deep<R>(step: impl FnOnce() -> R) -> R {
    stacker::maybe_grow(256 * 1024, 8 * 1024 * 1024, step)
}

impl Terms {
    /// Adds a node, or finds it.
    ///
    /// # Errors
    /// The children's types do not fit.
    pub fn add(&mut self, head: Head, kids: impl IntoIterator<Item = Id>) -> Result<Id, Mismatch> {
        let node = Node { head, kids: kids.into_iter().collect() };
        if let Some(found) = self.nodes.get_index_of(&node) {
            return Ok(Id(found as u32));
        }
        let tys: SmallVec<[Ty; 4]> = node.kids.iter().map(|k| self.ty(*k)).collect();
        let ty = head.result_ty(&tys)?;
        Ok(self.insert(node, ty))
    }

    /// A node with another child of the same type.
    pub fn with_kid(&mut self, id: Id, k: usize, kid: Id) -> Id {
        let Node { head, mut kids } = self.node(id).clone();
        debug_assert!(self.ty(kids[k]) == self.ty(kid), "another type");
        kids[k] = kid;
        let ty = self.ty(id);
        let node = Node { head, kids };
        match self.nodes.get_index_of(&node) {
            Some(found) => Id(found as u32),
            None => self.insert(node, ty),
        }
    }

    fn insert(&mut self, node: Node, ty: Ty) -> Id {
        let mut free = match node.head {
            Head::Var(i, _) => Free::var(i),
            _ => Free::default(),
        };
        let mut size = 1u64;
        for (k, kid) in node.kids.iter().enumerate() {
            free = free.union(self.free(*kid).outside(node.head.binds(k, node.kids.len())));
            size = size.saturating_add(self.size(*kid));
        }
        let (at, _) = self.nodes.insert_full(node);
        self.info.push(Info { ty, free, size });
        Id(at as u32)
    }

    /// Adds a node whose types are known to fit.
    ///
    /// # Panics
    /// If they do not: an error of this program.
    #[track_caller]
    pub fn put(&mut self, head: Head, kids: impl IntoIterator<Item = Id>) -> Id {
        match self.add(head, kids) {
            Ok(id) => id,
            Err(m) => panic!("a pass made an ill-typed {head:?}: {m:?}"),
        }
    }

    /// A literal.
    pub fn lit(&mut self, lit: Lit) -> Id {
        self.put(Head::Const(lit), [])
    }

    /// A 64-bit integer literal.
    pub fn int(&mut self, v: i64) -> Id {
        self.lit(Lit::int(v))
    }

    /// A variable.
    pub fn var(&mut self, index: u32, ty: Ty) -> Id {
        self.put(Head::Var(index, ty), [])
    }

    /// A scalar operation.
    #[track_caller]
    pub fn op(&mut self, op: Op, args: impl IntoIterator<Item = Id>) -> Id {
        self.put(Head::Op(op), args)
    }

    /// The node.
    pub fn node(&self, id: Id) -> &Node {
        &self.nodes[id.index()]
    }

    /// The label.
    pub fn head(&self, id: Id) -> Head {
        self.node(id).head
    }

    /// The children.
    pub fn kids(&self, id: Id) -> &[Id] {
        &self.node(id).kids
    }

    /// The type.
    pub fn ty(&self, id: Id) -> Ty {
        self.info[id.index()].ty
    }

    /// The free variables.
    pub fn free(&self, id: Id) -> Free {
        self.info[id.index()].free
    }

    /// The number of nodes as a tree.
    pub fn size(&self, id: Id) -> u64 {
        self.info[id.index()].size
    }

    /// Whether a term has numbers of a type.
    pub fn has_scalar(&self, s: Scalar) -> bool {
        self.info.iter().any(|info| info.ty.has_scalar(s))
    }

    /// The number of terms in the arena.
    pub fn len(&self) -> usize {
        self.info.len()
    }

    /// Whether the arena holds nothing.
    pub fn is_empty(&self) -> bool {
        self.info.is_empty()
    }

    /// The literal, where the term is one.
    pub fn as_lit(&self, id: Id) -> Option<Lit> {
        match self.head(id) {
            Head::Const(l) => Some(l),
            _ => None,
        }
    }

    /// Remembers what the source calls the variables that a node binds, one name each; `chosen`
    /// says that printing would have called them otherwise. The first to choose wins. What a let
    /// calls its variable is what its value is called.
    pub fn name(&mut self, id: Id, each: Vec<String>, chosen: bool) {
        if let (Head::Let, [name], true) = (self.head(id), each.as_slice(), chosen) {
            self.label(self.kids(id)[0], name.clone());
        }
        match self.names.get_mut(&id) {
            Some(known) if known.chosen || !chosen => {}
            Some(known) => *known = Names { each, chosen },
            None => drop(self.names.insert(id, Names { each, chosen })),
        }
    }

    /// What the source calls the variables that a node binds.
    pub fn names(&self, id: Id) -> Option<&[String]> {
        self.names.get(&id).map(|n| n.each.as_slice())
    }

    /// The names of the variables that a node binds, where the source chose them.
    pub fn chosen(&self, id: Id) -> Option<&[String]> {
        self.names.get(&id).filter(|n| n.chosen).map(|n| n.each.as_slice())
    }

    /// Remembers what the source calls the value of a term, which may be bound elsewhere, or never. The
    /// first to choose wins; variables and literals need no name.
    pub fn label(&mut self, id: Id, name: String) {
        if !matches!(self.head(id), Head::Var(..) | Head::Const(_)) {
            self.labels.entry(id).or_insert(name);
        }
    }

    /// What the source calls the value of a term.
    pub fn labelled(&self, id: Id) -> Option<&str> {
        self.labels.get(&id).map(String::as_str)
    }

    /// Remembers what the source calls the parameters of the function that a loop was made of.
    pub fn made_of(&mut self, id: Id, parameters: Vec<String>) {
        self.parameters.entry(id).or_insert(parameters);
    }

    /// What the source calls the parameters of the function that a loop was made of.
    pub fn parameters(&self, id: Id) -> Option<&[String]> {
        self.parameters.get(&id).map(Vec::as_slice)
    }

    /// Lets a term be called what a term of another arena is called, of which it is a copy.
    pub fn called_like(&mut self, id: Id, from: &Terms, other: Id) {
        if let Some(each) = from.chosen(other) {
            self.name(id, each.to_vec(), true);
        }
        if let Some(name) = from.labelled(other) {
            self.label(id, name.to_string());
        }
        if let Some(each) = from.parameters(other) {
            self.made_of(id, each.to_vec());
        }
    }

    /// Lets a term be called what another one is called that has the same value.
    pub fn called_as(&mut self, id: Id, other: Id) {
        if id == other {
            return;
        }
        if let Some(name) = self.labels.get(&other).cloned() {
            self.label(id, name);
        }
        if let Some(each) = self.parameters.get(&other).cloned() {
            self.made_of(id, each);
        }
        self.binds_as(id, other);
    }

    /// Lets the variables that a term binds have the names of those of another, if there are as many.
    fn binds_as(&mut self, id: Id, other: Id) {
        let binds = |t: &Terms, id: Id| (t.head(id) != Head::Let).then(|| t.bound_by(id));
        if let Some(each) = self.chosen(other).map(<[String]>::to_vec)
            && binds(self, id) == binds(self, other)
        {
            self.name(id, each, true);
        }
    }

    /// Lets a term be called the derivative of what another one is called.
    pub fn called_derivative_of(&mut self, id: Id, other: Id) {
        if let Some(name) = self.labels.get(&other).map(|name| format!("d${name}")) {
            self.label(id, name);
        }
        self.binds_as(id, other);
    }

    /// How many variables the last child of a node sees bound.
    fn bound_by(&self, id: Id) -> usize {
        let n = self.kids(id).len();
        if n == 0 { 0 } else { self.head(id).binds(n - 1, n) }
    }

    /// Remembers that a term stands at a place of the source.
    pub fn mark(&mut self, id: Id, span: Span) {
        let spans = self.spans.entry(id).or_default();
        if spans.len() < 4 && !spans.contains(&span) {
            spans.push(span);
        }
    }

    /// Where a term stands in the source; equal terms share their places.
    pub fn spans(&self, id: Id) -> &[Span] {
        self.spans.get(&id).map_or(&[], |s| s.as_slice())
    }

    /// All terms below and including `id`, children before parents, each once.
    pub fn reachable(&self, id: Id) -> Vec<Id> {
        let mut seen = rustc_hash::FxHashSet::default();
        let mut todo = vec![id];
        while let Some(id) = todo.pop() {
            if seen.insert(id) {
                todo.extend(self.kids(id).iter().copied());
            }
        }
        let mut all: Vec<Id> = seen.into_iter().collect();
        all.sort_unstable();
        all
    }

    /// The functions that a term calls, each once, in order.
    pub fn calls(&self, id: Id) -> Vec<Fun> {
        let called = self.reachable(id).into_iter().filter_map(|id| match self.head(id) {
            Head::Call(fun) => Some(fun),
            _ => None,
        });
        called.collect::<BTreeSet<Fun>>().into_iter().collect()
    }

    /// Rewrites every free variable from index `from` outwards: `f` gets the arena, the index counted
    /// from `from`, the type, and how many binders lie between the variable and `id`'s place.
    pub fn map_free(&mut self, id: Id, from: usize, f: &mut dyn FnMut(&mut Terms, u32, Ty, usize) -> Id) -> Id {
        let mut memo = FxHashMap::default();
        self.map_free_at(id, from, 0, f, &mut memo)
    }

    fn map_free_at(
        &mut self,
        id: Id,
        from: usize,
        depth: usize,
        f: &mut dyn FnMut(&mut Terms, u32, Ty, usize) -> Id,
        memo: &mut FxHashMap<(Id, usize), Id>,
    ) -> Id {
        if !self.free(id).above(from + depth) {
            return id;
        }
        if let Head::Var(i, ty) = self.head(id) {
            // The set of free variables is inexact far out, so look again.
            return match (i as usize).checked_sub(from + depth) {
                Some(i) => f(self, i as u32, ty, depth),
                None => id,
            };
        }
        if let Some(done) = memo.get(&(id, depth)) {
            return *done;
        }
        let Node { head, kids } = self.node(id).clone();
        let n = kids.len();
        let mut new = SmallVec::<[Id; 3]>::new();
        for (k, kid) in kids.into_iter().enumerate() {
            let inner = depth + head.binds(k, n);
            new.push(deep(|| self.map_free_at(kid, from, inner, f, memo)));
        }
        let out = self.put(head, new);
        self.keep_hints(id, out);
        memo.insert((id, depth), out);
        out
    }

    /// Lets `to` have the names and places of `from`, of which it is a copy.
    pub fn keep_hints(&mut self, from: Id, to: Id) {
        if from == to {
            return;
        }
        if let Some(names) = self.names.get(&from).cloned() {
            self.name(to, names.each, names.chosen);
        }
        if let Some(label) = self.labels.get(&from).cloned() {
            self.label(to, label);
        }
        if let Some(each) = self.parameters.get(&from).cloned() {
            self.made_of(to, each);
        }
        for span in self.spans.get(&from).cloned().unwrap_or_default() {
            self.mark(to, span);
        }
    }

    /// Moves a term inside `by` more binders.
    pub fn shift(&mut self, id: Id, by: usize) -> Id {
        if by == 0 || self.free(id).is_closed() {
            return id;
        }
        self.map_free(id, 0, &mut |t, i, ty, depth| t.var(i + (by + depth) as u32, ty))
    }

    /// Puts `args` (outermost first) for the innermost variables of `body` and takes their binder away.
    pub fn substitute(&mut self, body: Id, args: &[Id]) -> Id {
        let n = args.len();
        self.map_free(body, 0, &mut |t, i, ty, depth| match (i as usize) < n {
            true => t.shift(args[n - 1 - i as usize], depth),
            false => t.var(i - n as u32 + depth as u32, ty),
        })
    }

    /// Forgets what the source calls variables.
    pub fn forget_names(&mut self) {
        self.names.clear();
        self.labels.clear();
        self.parameters.clear();
    }

    /// Forgets where terms stand in the source, and what it calls variables.
    pub fn forget_hints(&mut self) {
        self.forget_names();
        self.spans.clear();
    }

    /// Copies a term of another arena, its names and places included.
    pub fn import(&mut self, from: &Terms, id: Id) -> Id {
        let mut map: FxHashMap<Id, Id> = FxHashMap::default();
        for old in from.reachable(id) {
            let Node { head, kids } = from.node(old);
            let new = self.put(*head, kids.iter().map(|k| map[k]).collect::<Vec<_>>());
            if let Some(Names { each, chosen }) = from.names.get(&old).cloned() {
                self.name(new, each, chosen);
            }
            if let Some(label) = from.labelled(old) {
                self.label(new, label.to_string());
            }
            if let Some(each) = from.parameters(old) {
                self.made_of(new, each.to_vec());
            }
            for span in from.spans(old) {
                self.mark(new, *span);
            }
            map.insert(old, new);
        }
        map[&id]
    }
}
