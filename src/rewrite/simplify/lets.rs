//! Lets that go: nobody uses them, they are names of names, or what they bind is used part by part, at the place where
//! it is made, or element by element in one loop.
//!
//! | step | of a let of | where | fewer |
//! |---|---|---|---|
//! | `dead-let` | anything | nobody uses it | nodes |
//! | `name` | a literal or a name | | nodes |
//! | `float-let` | a let | always: the inner one comes to stand around it | lets in values of lets |
//! | `split` | a tuple | only its parts are used: each gets a let | nodes |
//! | `repeated` | equal elements | only elements are used: the let binds one | nodes |
//! | `moved-build` | a tensor that is made element by element | one element is used, as often as the let is reached | nodes |
//! | `fused` | the same | its elements are used in one loop over equal indices, each in its own round | nodes |
//!
//! Nothing is evaluated more often than before, and nothing that might fail where nothing was evaluated. What is bound
//! otherwise stays bound, though it is used once: it has a name, and takes no more than it would without.

use super::tree::{At, NONE, Tree};
use crate::ir::{Head, Ty};
use smallvec::{SmallVec, smallvec};

impl Tree<'_> {
    /// Does one step at a let, of those that take no longer however often it is used; its name.
    pub fn let_step(&mut self, at: At) -> Option<&'static str> {
        let v = self.nodes[at].binder?;
        let value = self.nodes[at].kids[0];
        if self.variables[v].uses.is_empty() {
            self.without(at);
            return Some("dead-let");
        }
        if let Some(lit) = self.lit(value) {
            self.become_literal(v, lit);
            self.without(at);
            return Some("name");
        }
        if let Some(other) = self.use_of(value) {
            self.rename(v, other);
            self.without(at);
            return Some("name");
        }
        match self.variables[v].uses.len() {
            1 => self.bound_step(at),
            _ => None,
        }
    }

    /// Puts the body of a let in its place. The value goes.
    fn without(&mut self, at: At) {
        let (value, body) = (self.nodes[at].kids[0], self.nodes[at].kids[1]);
        self.discard(value);
        self.unwrap_let(at, body);
    }

    /// Puts the lets in the value of a let around it. Where outer lets come first, each is moved once.
    pub fn float_step(&mut self, at: At) -> Option<&'static str> {
        let v = self.nodes[at].binder?;
        let mut moved = None;
        while !self.nodes[at].fixed {
            let inner = self.nodes[at].kids[0];
            if self.nodes[inner].head != Head::Let || self.nodes[inner].fixed {
                break;
            }
            let value = self.nodes[inner].kids[1];
            self.replace(at, inner);
            (self.nodes[inner].kids[1], self.nodes[inner].ty) = (at, self.nodes[at].ty);
            (self.nodes[at].up, self.nodes[at].kids[0]) = ((inner, 1), value);
            self.nodes[value].up = (at, 0);
            self.variables[v].changed = true;
            self.looked += 1;
            self.wait(at);
            moved = Some("float-let");
        }
        moved
    }

    fn unwrap_let(&mut self, at: At, body: At) {
        self.replace(at, body);
        self.drop_node(at);
        self.settled(body);
    }

    /// Does one step at a let, of those that look at all its uses; its name.
    pub fn bound_step(&mut self, at: At) -> Option<&'static str> {
        let v = self.nodes[at].binder?;
        if !std::mem::take(&mut self.variables[v].changed) || self.nodes[at].fixed {
            return None;
        }
        let value = self.nodes[at].kids[0];
        self.looked += self.variables[v].uses.len() as u64;
        match self.nodes[value].head {
            Head::Tuple => self.split(at, v, value).then_some("split"),
            Head::ConstVec(d) => self.repeated(v, value, d).then_some("repeated"),
            Head::Build(d) => {
                let reads = self.reads(v, d)?;
                if self.moved(at, v, value, &reads) {
                    return Some("moved-build");
                }
                self.fused(at, value, &reads).then_some("fused")
            }
            _ => None,
        }
    }

    /// The nodes in which a variable is used, where all of them read elements of it.
    fn reads(&self, v: usize, d: usize) -> Option<Vec<At>> {
        let read = |at: &At| {
            let (up, slot) = self.nodes[*at].up;
            let reads = up != NONE && self.nodes[up].head == Head::Index(d) && slot == d && !self.nodes[up].fixed;
            reads.then_some(up)
        };
        self.variables[v].uses.iter().map(read).collect()
    }

    /// Makes a node a use of a variable; what stood in it goes.
    fn becomes_use(&mut self, at: At, v: usize) {
        let frame = self.frame(at);
        let new = self.put_use(v, frame);
        self.becomes(at, new);
    }

    fn split(&mut self, at: At, v: usize, value: At) -> bool {
        let n = self.nodes[value].kids.len();
        let part = |at: &At| {
            let up = self.nodes[*at].up.0;
            match self.nodes.get(up).map(|node| (node.head, node.fixed)) {
                Some((Head::Get(k, _), false)) => Some((up, k as usize)),
                _ => None,
            }
        };
        let Some(uses) = self.variables[v].uses.iter().map(part).collect::<Option<Vec<(At, usize)>>>() else {
            return false;
        };
        let (parts, frame) = (self.nodes[value].kids.clone(), self.frame(at));
        let mut own: Vec<Option<usize>> = vec![None; n];
        for (get, k) in uses {
            let ty = self.nodes[parts[k]].ty;
            let variable = *own[k].get_or_insert_with(|| self.new_variable(ty));
            self.becomes_use(get, variable);
        }
        let mut inner = self.nodes[at].kids[1];
        let ty = self.nodes[at].ty;
        for (part, own) in parts.into_iter().zip(own).rev() {
            match own {
                Some(variable) => inner = self.put_let(variable, (part, inner), ty, frame),
                None => self.discard(part),
            }
        }
        self.drop_node(value);
        self.unwrap_let(at, inner);
        true
    }

    /// Makes a let.
    fn put_let(&mut self, v: usize, (value, body): (At, At), ty: Ty, frame: usize) -> At {
        let new = self.put(Head::Let, ty, smallvec![value, body], frame);
        self.nodes[new].binder = Some(v);
        (self.variables[v].node, self.variables[v].slot) = (Some(new), 0);
        new
    }

    fn repeated(&mut self, v: usize, value: At, d: usize) -> bool {
        let Some(reads) = self.reads(v, d) else { return false };
        let element = self.nodes[value].kids[d];
        let ty = self.nodes[element].ty;
        let new = self.new_variable(ty);
        for read in reads {
            self.becomes_use(read, new);
        }
        let Some(at) = self.variables[v].node else { return false };
        self.keep_only(value, element);
        self.nodes[at].binder = Some(new);
        (self.variables[new].node, self.variables[v].node) = (Some(at), None);
        self.wait(at);
        true
    }

    fn moved(&mut self, at: At, v: usize, value: At, reads: &[At]) -> bool {
        let [read] = *reads else { return false };
        if self.frame(read) != self.frame(at) {
            return false;
        }
        let (use_of, body) = (self.variables[v].uses[0], self.nodes[at].kids[1]);
        self.replace(use_of, value);
        self.drop_node(use_of);
        self.unwrap_let(at, body);
        self.settled(value);
        true
    }

    /// The loop in whose rounds all of the reads are, each at the indices of its round; and which of its variables each
    /// index is.
    fn one_loop(&mut self, reads: &[At], d: usize) -> Option<(At, SmallVec<[usize; 3]>)> {
        let mut found: Option<(At, SmallVec<[usize; 3]>)> = None;
        for read in reads {
            let indices = self.nodes[*read].kids.clone();
            let mut slots = SmallVec::<[usize; 3]>::new();
            let mut around = None;
            for index in &indices[..d] {
                let v = self.use_of(*index)?;
                let (node, slot) = (self.variables[v].node?, self.variables[v].slot);
                if *around.get_or_insert(node) != node || slots.contains(&slot) {
                    return None;
                }
                slots.push(slot);
            }
            let this = (around?, slots);
            if *found.get_or_insert_with(|| this.clone()) != this {
                return None;
            }
        }
        let fits = |node: At| matches!(self.nodes[node].head, Head::Build(e) | Head::Reduce(_, e) if e == d);
        found.filter(|(node, _)| fits(*node))
    }

    fn fused(&mut self, at: At, value: At, reads: &[At]) -> bool {
        let Head::Build(d) = self.nodes[value].head else { return false };
        let Some((around, slots)) = self.one_loop(reads, d) else { return false };
        let (body, ty) = (self.nodes[around].kids[d], self.nodes[around].ty);
        let direct = matches!(*reads, [read] if self.frame(read) == self.frame(body));
        if self.frame(around) != self.frame(at)
            || self.nodes[body].fixed && !direct
            || ty.has_tensor() && self.is_sum(around)
        {
            return false;
        }
        for (k, slot) in slots.iter().enumerate() {
            let (made, run) = (self.nodes[value].kids[k], self.nodes[around].kids[*slot]);
            let (made, run) = (self.key(made), self.key(run));
            if !self.same_size(made, run) {
                return false;
            }
        }
        let (Some(own), Some(others)) = (self.nodes[value].binder, self.nodes[around].binder) else { return false };
        let element = self.nodes[value].kids[d];
        self.join_frames(element, body);
        slots.iter().enumerate().for_each(|(k, slot)| self.rename(own + k, others + slot));
        if direct {
            self.becomes(reads[0], element);
        } else {
            let (ty, frame) = (self.nodes[element].ty, self.frame(body));
            let new = self.new_variable(ty);
            reads.iter().for_each(|read| self.becomes_use(*read, new));
            // A read may have been the whole body.
            let (body, from) = (self.nodes[around].kids[d], self.nodes[at].from);
            let ty = self.nodes[body].ty;
            let bound = self.put_let(new, (element, body), ty, frame);
            (self.nodes[bound].from, self.nodes[bound].up) = (from, (around, d));
            self.nodes[around].kids[d] = bound;
        }
        for size in self.nodes[value].kids.clone().into_iter().take(d) {
            self.discard(size);
        }
        self.drop_node(value);
        let body = self.nodes[at].kids[1];
        self.unwrap_let(at, body);
        self.wait(around);
        true
    }

    fn is_sum(&self, at: At) -> bool {
        matches!(self.nodes[at].head, Head::Reduce(..))
    }
}
