//! Nests of lets and conditions lose what nobody uses, in one pass over the whole nest.
//!
//! A scope that closes within others can be swept by itself (`emit.rs`), but each time all that stands in
//! it is moved, so that in deep nests work would grow with the square of the depth. Here a nest becomes a
//! tree of nodes whose variables are numbers; uses are counted from the results inwards, and the tree is
//! written down again. A part of a tuple that nobody takes is not made. It must not know what a derivative is.

use crate::ir::{Head, Id, Terms, Ty, deep};
use smallvec::SmallVec;

/// A node of the tree.
struct Node {
    id: Id,
    head: Head,
    kids: SmallVec<[usize; 3]>,
    /// The first variable that it binds or, of a variable, the one that it is; none of one from outside.
    binder: Option<usize>,
    /// How many variables of the tree are in scope.
    depth: usize,
}

/// A variable.
#[derive(Default)]
struct Binder {
    /// The value of a let.
    value: Option<usize>,
    /// How many loops stand around its let.
    loops: usize,
    /// How often it is used: in a loop counts as often.
    uses: usize,
    /// Whether it is used otherwise than by parts.
    whole: bool,
    /// The parts of it that are used.
    parts: Vec<bool>,
    /// Whether only those are made.
    narrow: bool,
    place: Place,
}

/// What stands for a variable in the new text.
#[derive(Clone, Copy, Default)]
enum Place {
    #[default]
    Unknown,
    /// The variable of this level.
    Level(usize, Ty),
    /// Its value.
    Value,
}

struct Sweep<'t> {
    terms: &'t mut Terms,
    nodes: Vec<Node>,
    binders: Vec<Binder>,
    /// Whether a let that is used once goes where it is used.
    inlines: bool,
}

/// A term without what nobody uses in it, its result apart. A let that is used once goes where it is used, if
/// `inlines`.
pub fn sweep(terms: &mut Terms, id: Id, inlines: bool) -> Id {
    let mut s = Sweep { terms, nodes: vec![], binders: vec![], inlines };
    let root = s.read(id, &mut vec![]);
    s.used(root, &[], 0);
    s.write(root, &[], 0)
}

impl Sweep<'_> {
    fn read(&mut self, id: Id, scope: &mut Vec<usize>) -> usize {
        let (head, kids) = (self.terms.head(id), SmallVec::<[Id; 3]>::from_slice(self.terms.kids(id)));
        let (n, depth) = (kids.len(), scope.len());
        let mut binder = match head {
            Head::Var(i, _) => depth.checked_sub(1 + i as usize).map(|at| scope[at]),
            _ => None,
        };
        let mut nodes = SmallVec::new();
        for (k, kid) in kids.into_iter().enumerate() {
            let binds = head.binds(k, n);
            let first = self.binders.len();
            for _ in 0..binds {
                scope.push(self.binders.len());
                self.binders.push(Binder::default());
            }
            if binds > 0 {
                binder = Some(first);
            }
            nodes.push(deep(|| self.read(kid, scope)));
            scope.truncate(depth);
        }
        if let (Head::Let, Some(b)) = (head, binder) {
            self.binders[b].value = Some(nodes[0]);
        }
        self.nodes.push(Node { id, head, kids: nodes, binder, depth });
        self.nodes.len() - 1
    }

    /// Counts the uses in a node of which these parts are needed, all where there are none; what is used comes
    /// before its value.
    fn used(&mut self, at: usize, wanted: &[bool], loops: usize) {
        let (head, kids, binder) = (self.nodes[at].head, self.nodes[at].kids.clone(), self.nodes[at].binder);
        match (head, binder) {
            (Head::Var(..), Some(b)) => {
                self.use_of(b, loops);
                self.binders[b].whole = true;
            }
            (Head::Get(k, n), _) if let Some(b) = self.let_of(kids[0]) => {
                self.use_of(b, loops);
                let parts = &mut self.binders[b].parts;
                parts.resize(n as usize, false);
                parts[k as usize] = true;
            }
            (Head::Let, Some(b)) => {
                self.binders[b].loops = loops;
                deep(|| self.used(kids[1], wanted, loops));
                let of = &self.binders[b];
                if of.uses == 0 {
                    return;
                }
                let narrow = !of.whole && of.parts.contains(&false) && self.is_tuple(kids[0]);
                self.binders[b].narrow = narrow;
                let parts = if narrow { self.binders[b].parts.clone() } else { vec![] };
                deep(|| self.used(kids[0], &parts, loops));
            }
            (Head::If, _) => {
                deep(|| self.used(kids[0], &[], loops));
                kids[1..].iter().for_each(|k| deep(|| self.used(*k, wanted, loops)));
            }
            (Head::Tuple, _) => {
                let needed = kids.iter().enumerate().filter(|(k, _)| wanted.get(*k).is_none_or(|w| *w));
                needed.for_each(|(_, k)| deep(|| self.used(*k, &[], loops)));
            }
            _ => {
                for (k, kid) in kids.iter().enumerate() {
                    let inside = loops + usize::from(head.is_loop() && head.binds(k, kids.len()) > 0);
                    deep(|| self.used(*kid, &[], inside));
                }
            }
        }
    }

    fn use_of(&mut self, b: usize, loops: usize) {
        let of = &mut self.binders[b];
        of.uses += if loops > of.loops { 2 } else { 1 };
    }

    /// The let whose variable a node is.
    fn let_of(&self, at: usize) -> Option<usize> {
        let node = &self.nodes[at];
        node.binder.filter(|b| matches!(node.head, Head::Var(..)) && self.binders[*b].value.is_some())
    }

    /// Whether a node comes to a tuple that is written out, whatever arm is taken.
    fn is_tuple(&self, at: usize) -> bool {
        let node = &self.nodes[at];
        match node.head {
            Head::Tuple => true,
            Head::Let => deep(|| self.is_tuple(node.kids[1])),
            Head::If => node.kids[1..].iter().all(|k| deep(|| self.is_tuple(*k))),
            _ => false,
        }
    }

    /// A node as a term where `depth` variables are in scope, of which these parts are needed, all where there
    /// are none.
    fn write(&mut self, at: usize, wanted: &[bool], depth: usize) -> Id {
        let Node { id, head, ref kids, binder, depth: was } = self.nodes[at];
        let kids = kids.clone();
        let out = match (head, binder) {
            (Head::Var(..), Some(b)) => self.variable(b, depth),
            (Head::Var(i, ty), None) => self.terms.var((i as usize - was + depth) as u32, ty),
            (Head::Get(k, n), _) if let Some(b) = self.let_of(kids[0]) => {
                let of = self.variable(b, depth);
                match self.binders[b].narrow {
                    false => self.part(k, n, of),
                    true => {
                        let parts = &self.binders[b].parts;
                        let before = parts[..k as usize].iter().filter(|p| **p).count();
                        match parts.iter().filter(|p| **p).count() {
                            1 => of,
                            n => self.part(before as u32, n as u32, of),
                        }
                    }
                }
            }
            (Head::Let, Some(b)) => return self.write_let(at, b, wanted, depth),
            (Head::If, _) => {
                let c = deep(|| self.write(kids[0], &[], depth));
                let arms = [kids[1], kids[2]].map(|k| deep(|| self.write(k, wanted, depth)));
                self.terms.put(head, [c, arms[0], arms[1]])
            }
            (Head::Tuple, _) => {
                let needed = kids.into_iter().enumerate().filter(|(k, _)| wanted.get(*k).is_none_or(|w| *w));
                let parts: Vec<Id> = needed.map(|(_, k)| deep(|| self.write(k, &[], depth))).collect();
                match parts.as_slice() {
                    [one] if !wanted.is_empty() => *one,
                    _ => self.terms.put(head, parts),
                }
            }
            _ => {
                let n = kids.len();
                let mut new = SmallVec::<[Id; 3]>::new();
                for (k, kid) in kids.into_iter().enumerate() {
                    let binds = head.binds(k, n);
                    if let Some(first) = binder.filter(|_| binds > 0) {
                        let tys: Vec<Ty> = new.iter().map(|k| self.terms.ty(*k)).collect();
                        for (j, ty) in head.bound_tys(&tys).into_iter().enumerate() {
                            self.binders[first + j].place = Place::Level(depth + j, ty);
                        }
                    }
                    new.push(deep(|| self.write(kid, &[], depth + binds)));
                }
                self.terms.put(head, new)
            }
        };
        self.terms.keep_hints(id, out);
        out
    }

    fn write_let(&mut self, at: usize, b: usize, wanted: &[bool], depth: usize) -> Id {
        let (id, value, body) = (self.nodes[at].id, self.nodes[at].kids[0], self.nodes[at].kids[1]);
        let of = &self.binders[b];
        let alias = matches!(self.nodes[value].head, Head::Var(..) | Head::Const(_));
        let moves = of.uses == 1 && (self.inlines || of.narrow) || alias;
        if of.uses == 0 || moves {
            self.binders[b].place = Place::Value;
            return deep(|| self.write(body, wanted, depth));
        }
        let value = self.value_of(b, depth);
        self.binders[b].place = Place::Level(depth, self.terms.ty(value));
        let body = deep(|| self.write(body, wanted, depth + 1));
        let out = self.terms.put(Head::Let, [value, body]);
        self.terms.keep_hints(id, out);
        out
    }

    /// The value of a let, of which only those parts are made that are used.
    fn value_of(&mut self, b: usize, depth: usize) -> Id {
        let of = &self.binders[b];
        let parts = if of.narrow { of.parts.clone() } else { vec![] };
        match of.value {
            Some(value) => deep(|| self.write(value, &parts, depth)),
            None => self.terms.int(0),
        }
    }

    fn variable(&mut self, b: usize, depth: usize) -> Id {
        match self.binders[b].place {
            Place::Level(level, ty) => self.terms.var((depth - 1 - level) as u32, ty),
            Place::Value | Place::Unknown => self.value_of(b, depth),
        }
    }

    fn part(&mut self, k: u32, n: u32, of: Id) -> Id {
        match self.terms.head(of) {
            Head::Tuple => self.terms.kids(of)[k as usize],
            _ => self.terms.put(Head::Get(k, n), [of]),
        }
    }
}
