//! What a node is, seen from its children: parts of tuples, sizes, elements and copies of tensors that are made on the
//! spot or bound by a let.
//!
//! | step | from | to | fewer |
//! |---|---|---|---|
//! | `part` | a part of a tuple that is made there | the part | nodes |
//! | `size` | a size of what is made there, or bound to a name | the size that it is made with | nodes, or uses of names further in |
//! | `element` | an element of what is made there | its body, the index bound by a let | nodes |
//! | `read-copy` | an element of a bound tensor whose elements are literals, names, indices or elements of another one | that | nodes, or uses of names further in |
//! | `copy` | a tensor copied element by element | that tensor | nodes |
//! | `sum` | the sum of a tensor of numbers that is made there | a loop without the tensor | nodes |
//! | `literals` | an operation on literals | its value | nodes |
//!
//! A failure may go on the way, and none comes: a copy is taken only where the tensor has a value anyway. It must not
//! know of rules that are text.

use super::sizes::Key;
use super::tree::{At, NONE, Tree};
use crate::ir::{Head, Lit, Monoid, Ty};
use smallvec::{SmallVec, smallvec};

impl Tree<'_> {
    /// Does one step at a node; its name, or nothing where there is none.
    pub fn node_step(&mut self, at: At) -> Option<&'static str> {
        let (head, kids) = (self.nodes[at].head, self.nodes[at].kids.clone());
        match head {
            Head::Get(..) => self.part_step(at),
            Head::Size(k) => self.size_step(at, k, kids[0]).then_some("size"),
            Head::Index(d) => self.index_step(at, d),
            Head::Build(d) => self.copy_step(at, d).then_some("copy"),
            Head::Sum => self.sum_step(at, kids[0]).then_some("sum"),
            Head::Op(_) | Head::Cast(_) => self.literal_step(at).then_some("literals"),
            _ => None,
        }
    }

    /// A part of a tuple that is made there: its sizes are read off the part, whatever is around it.
    pub fn part_step(&mut self, at: At) -> Option<&'static str> {
        let Head::Get(i, _) = self.nodes[at].head else { return None };
        let tuple = self.nodes[at].kids[0];
        if self.nodes[tuple].head != Head::Tuple {
            return None;
        }
        let part = self.nodes[tuple].kids[i as usize];
        self.keep_only(at, part);
        Some("part")
    }

    /// Puts a part of a node in its place; all else that stands in it goes.
    pub(super) fn keep_only(&mut self, at: At, part: At) {
        self.replace(at, part);
        let mut todo = vec![at];
        while let Some(old) = todo.pop() {
            self.looked += 1;
            todo.extend(self.nodes[old].kids.iter().copied().filter(|kid| *kid != part));
            self.drop_node(old);
        }
        self.settled(part);
    }

    /// Puts a new node in the place of one, whose other parts go.
    pub(super) fn becomes(&mut self, at: At, new: At) {
        self.replace(at, new);
        self.discard(at);
        self.settled(new);
    }

    /// What has come to stand somewhere is looked at, and what it stands in.
    pub(super) fn settled(&mut self, new: At) {
        self.wait(new);
        self.wait_above(new, 3);
        // It may be the value of a let.
        let up = self.nodes[new].up.0;
        if up != NONE
            && let Some(v) = self.nodes[up].binder
        {
            self.variables[v].changed = true;
        }
    }

    /// Another one of a short node.
    fn copied(&mut self, at: At, frame: usize) -> At {
        self.looked += 1;
        if let Some(v) = self.use_of(at) {
            return self.put_use(v, frame);
        }
        let (head, ty) = (self.nodes[at].head, self.nodes[at].ty);
        let kids = self.nodes[at].kids.clone();
        let kids: SmallVec<[At; 3]> = kids.into_iter().map(|kid| self.copied(kid, frame)).collect();
        self.put(head, ty, kids, frame)
    }

    /// The sizes that a node is made with, where it makes a tensor: the first so many of its children.
    fn made_with(&self, at: At) -> usize {
        match self.nodes[at].head {
            Head::Build(d) | Head::ConstVec(d) | Head::DeltaVec(d) | Head::Scatter(d) => d,
            _ => 0,
        }
    }

    fn size_step(&mut self, at: At, k: usize, of: At) -> bool {
        if k < self.made_with(of) {
            let size = self.nodes[of].kids[k];
            self.keep_only(at, size);
            return true;
        }
        let count = match self.nodes[of].head {
            Head::VecInit if k == 0 => Some(self.nodes[of].kids.len() as i64),
            _ => None,
        };
        let bound = self.use_of(of).and_then(|v| self.value_of(v));
        let frame = self.frame(at);
        let new = match (count, bound) {
            (Some(n), _) => self.put(Head::Const(Lit::int(n)), Ty::int(), smallvec![], frame),
            (None, Some(value)) if k < self.made_with(value) => {
                let size = self.nodes[value].kids[k];
                if !self.is_short(size) {
                    return false;
                }
                self.copied(size, frame)
            }
            _ => return false,
        };
        self.becomes(at, new);
        true
    }

    fn index_step(&mut self, at: At, d: usize) -> Option<&'static str> {
        let (kids, frame) = (self.nodes[at].kids.clone(), self.frame(at));
        let of = kids[d];
        match self.nodes[of].head {
            Head::Build(e) if e == d => {
                self.element(at, of, d);
                Some("element")
            }
            Head::ConstVec(e) if e == d => {
                let value = self.nodes[of].kids[d];
                self.keep_only(at, value);
                Some("element")
            }
            Head::VecInit => {
                let k = self.lit(kids[0]).and_then(|l| l.as_int()).and_then(|k| usize::try_from(k).ok())?;
                let element = self.nodes[of].kids.get(k).copied()?;
                self.keep_only(at, element);
                Some("element")
            }
            Head::Var(..) => {
                let value = self.use_of(of).and_then(|v| self.value_of(v))?;
                let new = match self.nodes[value].head {
                    Head::ConstVec(e) if e == d => {
                        let element = self.nodes[value].kids[d];
                        self.is_atom(element).then(|| self.copied(element, frame))?
                    }
                    Head::Build(e) if e == d => self.copied_element(value, &kids[..d], frame)?,
                    _ => return None,
                };
                self.becomes(at, new);
                Some("read-copy")
            }
            _ => None,
        }
    }

    fn is_atom(&self, at: At) -> bool {
        matches!(self.nodes[at].head, Head::Const(_) | Head::Var(..))
    }

    /// An element of a tensor made on the spot: its body in lets of the indices.
    fn element(&mut self, at: At, build: At, d: usize) {
        let Some(first) = self.nodes[build].binder else { return };
        let (kids, frame) = (self.nodes[at].kids.clone(), self.frame(at));
        let mut inner = self.nodes[build].kids[d];
        self.join_frames(inner, at);
        let body = inner;
        let ty = self.nodes[inner].ty;
        for k in (0..d).rev() {
            let new = self.put(Head::Let, ty, smallvec![kids[k], inner], frame);
            self.nodes[new].binder = Some(first + k);
            let variable = &mut self.variables[first + k];
            (variable.node, variable.slot, variable.changed) = (Some(new), 0, true);
            inner = new;
        }
        self.replace(at, inner);
        for kid in self.nodes[build].kids.clone().into_iter().filter(|kid| *kid != body) {
            self.discard(kid);
        }
        self.drop_node(build);
        self.drop_node(at);
        self.settled(inner);
    }

    /// What an element of a bound tensor at some indices is, where that is no dearer than reading it: a literal, a name,
    /// an index, or an element of another tensor that has a name.
    fn copied_element(&mut self, build: At, indices: &[At], frame: usize) -> Option<At> {
        let (first, d) = (self.nodes[build].binder?, indices.len());
        let body = self.nodes[build].kids[d];
        if self.is_atom(body) {
            return self.at_indices(body, (first, indices), frame);
        }
        let Head::Index(e) = self.nodes[body].head else { return None };
        let read = self.nodes[body].kids.clone();
        if e > d || !read.iter().all(|kid| self.is_atom(*kid)) || self.use_of(read[e]).is_none() {
            return None;
        }
        // An index moves to where its variable stands, or is copied where it is a literal or a name.
        let fits = |tree: &mut Self, kid: At| match tree.use_of(kid).and_then(|v| v.checked_sub(first)) {
            Some(slot) if slot < d => tree.is_atom(indices[slot]) || tree.variables[first + slot].uses.len() == 1,
            _ => true,
        };
        if !read.iter().all(|kid| fits(self, *kid)) {
            return None;
        }
        let mut new = SmallVec::<[At; 3]>::new();
        for kid in read {
            new.push(self.at_indices(kid, (first, indices), frame)?);
        }
        let (head, ty) = (self.nodes[body].head, self.nodes[body].ty);
        Some(self.put(head, ty, new, frame))
    }

    /// A literal or name of the body of a loop, at indices; an index that is no literal or name is used where no other
    /// one is.
    fn at_indices(&mut self, atom: At, (first, indices): (usize, &[At]), frame: usize) -> Option<At> {
        let own = self.use_of(atom).filter(|v| (first..first + indices.len()).contains(v));
        match own {
            Some(v) if self.is_atom(indices[v - first]) => Some(self.copied(indices[v - first], frame)),
            Some(v) if self.variables[v].uses.len() == 1 => {
                let index = indices[v - first];
                self.take_out(index);
                Some(index)
            }
            Some(_) => None,
            None => Some(self.copied(atom, frame)),
        }
    }

    fn copy_step(&mut self, at: At, d: usize) -> bool {
        let kids = self.nodes[at].kids.clone();
        let (body, Some(first)) = (kids[d], self.nodes[at].binder) else { return false };
        if self.nodes[body].head != Head::Index(d) {
            return false;
        }
        let read = self.nodes[body].kids.clone();
        let in_order = (0..d).all(|k| self.use_of(read[k]) == Some(first + k));
        let of = read[d];
        if !in_order || !self.is_path(of) || self.may_use(of, first, d) {
            return false;
        }
        let sizes: Vec<Key> = kids[..d].iter().map(|size| self.key(*size)).collect();
        for (k, size) in sizes.into_iter().enumerate() {
            let Some(axis) = self.axis(of, k) else { return false };
            if !self.same_size(size, axis) {
                return false;
            }
        }
        if !self.is_certain(of) && !kids[..d].iter().any(|size| self.asks(*size, of)) {
            return false;
        }
        self.join_frames(of, at);
        self.keep_only(at, of);
        true
    }

    /// Whether an integer is a size of this very tensor, which has a value then.
    fn asks(&mut self, size: At, of: At) -> bool {
        matches!(self.nodes[size].head, Head::Size(_)) && {
            let asked = self.nodes[size].kids[0];
            self.same(asked, of)
        }
    }

    fn sum_step(&mut self, at: At, of: At) -> bool {
        let Head::Build(d) = self.nodes[of].head else { return false };
        if self.nodes[at].ty.has_tensor() {
            return false;
        }
        self.nodes[of].up = (NONE, 0);
        self.nodes[of].head = Head::Reduce(Monoid::Add, d);
        self.nodes[of].ty = self.nodes[at].ty;
        self.replace(at, of);
        self.drop_node(at);
        self.settled(of);
        true
    }

    fn literal_step(&mut self, at: At) -> bool {
        let (head, kids) = (self.nodes[at].head, &self.nodes[at].kids);
        let args: Option<SmallVec<[Lit; 3]>> = kids.iter().map(|kid| self.lit(*kid)).collect();
        let Some(args) = args else { return false };
        let value = match head {
            Head::Op(op) => op.eval(&args).ok(),
            Head::Cast(s) => args.first().and_then(|arg| arg.cast(s)),
            _ => None,
        };
        // What is no number, or infinite, has no literal.
        let Some(value) = value.filter(|v| v.as_f64().is_none_or(f64::is_finite)) else { return false };
        let (ty, frame) = (self.nodes[at].ty, self.frame(at));
        let new = self.put(Head::Const(value), ty, smallvec![], frame);
        self.becomes(at, new);
        true
    }
}
