//! A body becomes a tree whose variables are numbers, in which a step is a change of pointers; and a term again.
//!
//! In terms a variable is a distance to its binder, so that a let that goes, or a value that moves, renumbers all that
//! stands below: chains of lets would take time that grows with their square. Here nothing is renumbered. A variable
//! knows where it is used, a node what it stands in, and how often a node is evaluated is told by its frame: the body of
//! one loop, or the whole. It must not know what a step is for.

use crate::ir::{Head, Id, Lit, Monoid, Param, Terms, Ty, deep};
use smallvec::SmallVec;
use std::collections::VecDeque;

/// A node's place among the nodes.
pub(super) type At = usize;
/// What the root stands in.
pub(super) const NONE: At = usize::MAX;

/// A node.
pub(super) struct Node {
    pub head: Head,
    pub ty: Ty,
    pub kids: SmallVec<[At; 3]>,
    /// What it stands in, and as which child.
    pub up: (At, usize),
    /// The first variable that it binds or, of a variable, the one that it was made as.
    pub binder: Option<usize>,
    /// Where it stands among the uses of its variable.
    used_as: usize,
    frame: usize,
    /// The term that it was.
    pub from: Option<Id>,
    /// Whether the sizes of a sum over nothing are read off it: such a node stays what it is.
    pub fixed: bool,
    pub live: bool,
    /// Whether it waits to be looked at.
    waits: bool,
}

/// A variable.
pub(super) struct Variable {
    pub ty: Ty,
    /// What binds it; none of a parameter.
    pub node: Option<At>,
    /// Which of the variables that the node binds.
    pub slot: usize,
    /// Where it is used.
    pub uses: Vec<At>,
    /// The variable that it is another name for.
    same: Option<usize>,
    /// Whether something has changed about its uses or its value since the let was looked at.
    pub changed: bool,
    /// How many variables are around it in the new term, once it is written.
    level: usize,
}

/// A body.
pub(super) struct Tree<'p> {
    pub nodes: Vec<Node>,
    pub variables: Vec<Variable>,
    pub root: At,
    /// The parameters, which are the first variables.
    pub params: &'p [Param],
    /// The bodies of loops, and the whole, which is the first; each with the one that it has become.
    frames: Vec<Option<usize>>,
    /// The nodes to be looked at.
    queue: VecDeque<At>,
    /// How many nodes and uses were looked at: what a body takes.
    pub looked: u64,
}

impl<'p> Tree<'p> {
    /// The tree of a body over parameters.
    pub fn new(terms: &Terms, body: Id, params: &'p [Param]) -> Tree<'p> {
        let frames = vec![None];
        let (nodes, queue, variables) = Default::default();
        let mut tree = Tree { nodes, variables, root: NONE, params, frames, queue, looked: 0 };
        let mut scope: Vec<usize> = vec![];
        for (slot, p) in params.iter().enumerate() {
            scope.push(tree.variable(p.ty, None, slot));
        }
        tree.root = tree.read(terms, body, &mut scope, (0, false));
        tree
    }

    /// A variable that nothing binds yet.
    pub fn new_variable(&mut self, ty: Ty) -> usize {
        self.variable(ty, None, 0)
    }

    fn variable(&mut self, ty: Ty, node: Option<At>, slot: usize) -> usize {
        let (uses, same, changed, level) = (vec![], None, true, 0);
        self.variables.push(Variable { ty, node, slot, uses, same, changed, level });
        self.variables.len() - 1
    }

    fn read(&mut self, terms: &Terms, id: Id, scope: &mut Vec<usize>, (frame, zone): (usize, bool)) -> At {
        let (head, kids, ty) = (terms.head(id), terms.kids(id), terms.ty(id));
        let (n, depth) = (kids.len(), scope.len());
        let fixed = zone && ty.has_tensor();
        // What a sum of tensors has over nothing is read off the terms of its elements.
        let zone = zone || ty.has_tensor() && matches!(head, Head::Sum | Head::Reduce(Monoid::Add, _));
        let (mut new, mut binder) = (SmallVec::<[At; 3]>::new(), None);
        for (k, kid) in kids.iter().enumerate() {
            let binds = head.binds(k, n);
            let mut inside = frame;
            if binds > 0 {
                let tys: Vec<Ty> = kids[..k].iter().map(|kid| terms.ty(*kid)).collect();
                binder = Some(self.variables.len());
                for (slot, ty) in head.bound_tys(&tys).into_iter().enumerate() {
                    scope.push(self.variable(ty, None, slot));
                }
                if head.is_loop() {
                    inside = self.frames.len();
                    self.frames.push(None);
                }
            }
            new.push(deep(|| self.read(terms, *kid, scope, (inside, zone))));
            scope.truncate(depth);
        }
        if let Head::Var(i, _) = head {
            let at = self.put(head, ty, new, frame);
            self.use_at(at, scope[depth - 1 - i as usize]);
            return self.mark(at, id, fixed);
        }
        let at = self.put(head, ty, new, frame);
        if let Some(first) = binder {
            self.nodes[at].binder = binder;
            let last = first + head.binds(n - 1, n);
            self.variables[first..last].iter_mut().for_each(|v| v.node = Some(at));
        }
        self.mark(at, id, fixed)
    }

    fn mark(&mut self, at: At, id: Id, fixed: bool) -> At {
        (self.nodes[at].from, self.nodes[at].fixed) = (Some(id), fixed);
        at
    }

    /// Makes a node; it is looked at, once it stands somewhere.
    pub fn put(&mut self, head: Head, ty: Ty, kids: SmallVec<[At; 3]>, frame: usize) -> At {
        let at = self.nodes.len();
        for (k, kid) in kids.iter().enumerate() {
            self.nodes[*kid].up = (at, k);
        }
        let (up, binder, used_as, from) = ((NONE, 0), None, 0, None);
        let (fixed, live, waits) = (false, true, false);
        self.nodes.push(Node { head, ty, kids, up, binder, used_as, frame, from, fixed, live, waits });
        self.wait(at);
        at
    }

    /// Makes a use of a variable.
    pub fn put_use(&mut self, v: usize, frame: usize) -> At {
        let v = self.find(v);
        let ty = self.variables[v].ty;
        let at = self.put(Head::Var(0, ty), ty, SmallVec::new(), frame);
        self.use_at(at, v);
        at
    }

    /// Makes a node a use of a variable.
    fn use_at(&mut self, at: At, v: usize) {
        self.nodes[at].binder = Some(v);
        self.nodes[at].used_as = self.variables[v].uses.len();
        self.variables[v].uses.push(at);
    }

    /// The variable that one is a name for.
    pub fn find(&mut self, v: usize) -> usize {
        let mut root = v;
        while let Some(next) = self.variables[root].same {
            root = next;
        }
        let mut at = v;
        while let Some(next) = self.variables[at].same {
            self.variables[at].same = Some(root);
            at = next;
        }
        root
    }

    /// The variable that a node is a use of.
    pub fn use_of(&mut self, at: At) -> Option<usize> {
        match (self.nodes[at].head, self.nodes[at].binder) {
            (Head::Var(..), Some(v)) => Some(self.find(v)),
            _ => None,
        }
    }

    /// The literal that a node is.
    pub fn lit(&self, at: At) -> Option<Lit> {
        match self.nodes[at].head {
            Head::Const(lit) => Some(lit),
            _ => None,
        }
    }

    /// The value of the let that binds a variable.
    pub fn value_of(&self, v: usize) -> Option<At> {
        let node = self.variables[v].node?;
        (self.nodes[node].head == Head::Let).then(|| self.nodes[node].kids[0])
    }

    /// The frame in which a node is evaluated.
    pub fn frame(&mut self, at: At) -> usize {
        self.find_frame(self.nodes[at].frame)
    }

    fn find_frame(&mut self, frame: usize) -> usize {
        let mut root = frame;
        while let Some(next) = self.frames[root] {
            root = next;
        }
        let mut at = frame;
        while let Some(next) = self.frames[at] {
            self.frames[at] = Some(root);
            at = next;
        }
        root
    }

    /// What is evaluated in the frame of `inner` is evaluated in that of `outer` from now on.
    pub fn join_frames(&mut self, inner: At, outer: At) {
        let (inner, outer) = (self.frame(inner), self.frame(outer));
        if inner != outer {
            self.frames[inner] = Some(outer);
        }
    }

    /// Has a node looked at.
    pub fn wait(&mut self, at: At) {
        if at != NONE && self.nodes[at].live && !self.nodes[at].waits {
            self.nodes[at].waits = true;
            self.queue.push_back(at);
        }
    }

    /// Has what a node stands in looked at, so many nodes up.
    pub fn wait_above(&mut self, at: At, levels: usize) {
        let mut up = self.nodes[at].up.0;
        for _ in 0..levels {
            if up == NONE {
                return;
            }
            self.wait(up);
            up = self.nodes[up].up.0;
        }
    }

    /// Has everything looked at.
    pub fn wake(&mut self) {
        (0..self.nodes.len()).for_each(|at| self.wait(at));
        self.variables.iter_mut().for_each(|v| v.changed = true);
    }

    /// The next node to be looked at.
    pub fn next(&mut self) -> Option<At> {
        while let Some(at) = self.queue.pop_front() {
            self.nodes[at].waits = false;
            if self.nodes[at].live {
                self.looked += 1;
                return Some(at);
            }
        }
        None
    }

    /// Puts a node where another one stands, which is left to itself.
    pub fn replace(&mut self, old: At, new: At) {
        let up = self.nodes[old].up;
        self.nodes[old].up = (NONE, 0);
        self.nodes[new].up = up;
        match up.0 {
            NONE => self.root = new,
            above => self.nodes[above].kids[up.1] = new,
        }
    }

    /// Takes a node out of what it stands in, which is about to go and has a literal there.
    pub fn take_out(&mut self, at: At) {
        let hole = self.put(Head::Const(Lit::int(0)), Ty::int(), SmallVec::new(), self.nodes[at].frame);
        self.replace(at, hole);
    }

    /// Takes a node for itself: it is not used any more, and its children stay.
    pub fn drop_node(&mut self, at: At) {
        self.nodes[at].live = false;
        let Some(v) = self.use_of(at) else { return };
        let place = self.nodes[at].used_as;
        let uses = &mut self.variables[v].uses;
        uses.swap_remove(place);
        if let Some(moved) = uses.get(place).copied() {
            self.nodes[moved].used_as = place;
        }
        self.variables[v].changed = true;
        if self.variables[v].uses.len() <= 1
            && let Some(node) = self.variables[v].node
        {
            self.wait(node);
        }
    }

    /// Takes away a node with all that stands in it.
    pub fn discard(&mut self, at: At) {
        let mut todo = vec![at];
        while let Some(at) = todo.pop() {
            self.looked += 1;
            todo.extend(self.nodes[at].kids.iter().copied());
            self.drop_node(at);
        }
    }

    /// Makes a variable another name for one.
    pub fn rename(&mut self, v: usize, to: usize) {
        let (v, to) = (self.find(v), self.find(to));
        if v == to {
            return;
        }
        // The longer list stays where it is, so that no chain of names takes long.
        let mut moved = std::mem::take(&mut self.variables[v].uses);
        for at in &moved {
            self.wait_above_use(*at);
        }
        if moved.len() > self.variables[to].uses.len() {
            std::mem::swap(&mut moved, &mut self.variables[to].uses);
        }
        for at in moved {
            self.looked += 1;
            self.nodes[at].used_as = self.variables[to].uses.len();
            self.variables[to].uses.push(at);
        }
        self.variables[v].same = Some(to);
        self.variables[to].changed = true;
    }

    fn wait_above_use(&mut self, at: At) {
        self.looked += 1;
        self.wait_above(at, 2);
    }

    /// Makes all uses of a variable a literal.
    pub fn become_literal(&mut self, v: usize, lit: Lit) {
        for at in std::mem::take(&mut self.variables[v].uses) {
            self.nodes[at].head = Head::Const(lit);
            self.nodes[at].binder = None;
            self.wait_above_use(at);
        }
    }

    /// The tree as a term.
    pub fn write(&mut self, terms: &mut Terms) -> Id {
        for k in 0..self.params.len() {
            self.variables[k].level = k;
        }
        self.write_node(terms, self.root, self.params.len())
    }

    fn write_node(&mut self, terms: &mut Terms, at: At, depth: usize) -> Id {
        if let Some(v) = self.use_of(at) {
            let Variable { level, ty, .. } = self.variables[v];
            return terms.var((depth - 1 - level) as u32, ty);
        }
        let Node { head, binder, from, .. } = self.nodes[at];
        let kids = self.nodes[at].kids.clone();
        let (n, mut new) = (kids.len(), SmallVec::<[Id; 3]>::new());
        for (k, kid) in kids.into_iter().enumerate() {
            let binds = head.binds(k, n);
            if let Some(first) = binder.filter(|_| binds > 0) {
                for slot in 0..binds {
                    self.variables[first + slot].level = depth + slot;
                }
            }
            new.push(deep(|| self.write_node(terms, kid, depth + binds)));
        }
        let out = terms.put(head, new);
        if let Some(from) = from {
            terms.keep_hints(from, out);
        }
        out
    }
}
