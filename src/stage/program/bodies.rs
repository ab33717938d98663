//! Bodies become terms: what is evaluated anyway and used more than once is bound by a `let`, where it is evaluated first.

use super::maker::{Made, Maker};
use super::scope::Bound;
use crate::ir::{Head, Id, Lit, Scalar, Ty, deep};
use crate::stage::{Body, Node, Source};
use rustc_hash::{FxHashMap, FxHashSet};

impl Maker {
    /// A term over bodies, with lets around it for what they share.
    pub(super) fn sharing(&mut self, roots: &[Body], finish: &mut dyn FnMut(&mut Self, &[Id]) -> Made<Id>) -> Made<Id> {
        let mut values = vec![];
        for b in self.shared(roots) {
            values.push((self.body(b)?, b));
            self.scope.push(Bound::Body(b), Ty::scalar(self.g.bodies.ty(b)));
        }
        let ids = roots.iter().map(|b| self.body(*b)).collect::<Made<Vec<Id>>>()?;
        let mut out = finish(self, &ids)?;
        for (value, b) in values.into_iter().rev() {
            self.scope.pop(1);
            out = self.put(Head::Let, vec![value, out])?;
            let name = self.g.bodies.named(b).unwrap_or("v").to_string();
            self.terms.name(out, vec![name], false);
        }
        Ok(out)
    }

    /// A number.
    pub(super) fn number(&mut self, b: Body) -> Made<Id> {
        self.sharing(&[b], &mut |_, ids| Ok(ids[0]))
    }

    /// The components of an element: one is itself, several are a tuple, and none a number that nobody reads.
    pub(super) fn components(&mut self, each: &[Body]) -> Made<Id> {
        if each.is_empty() {
            return Ok(self.terms.int(0));
        }
        self.sharing(each, &mut |m, ids| if let [one] = ids { Ok(*one) } else { m.put(Head::Tuple, ids.to_vec()) })
    }

    /// Zeros of the types of components.
    pub(super) fn zeros(&mut self, tys: &[Scalar]) -> Made<Id> {
        let each: Vec<Id> = tys.iter().map(|s| self.terms.lit(Lit::zero(*s))).collect();
        match each.as_slice() {
            [] => Ok(self.terms.int(0)),
            [one] => Ok(*one),
            _ => self.put(Head::Tuple, each),
        }
    }

    /// A value after checks, each evaluated after those before it.
    pub(super) fn after(&mut self, checks: &[Body], value: &mut dyn FnMut(&mut Self) -> Made<Id>) -> Made<Id> {
        let conditions = checks.iter().map(|c| self.number(*c)).collect::<Made<Vec<Id>>>()?;
        let mut out = value(self)?;
        for c in conditions.into_iter().rev() {
            out = self.put(Head::Assert, vec![c, out])?;
        }
        Ok(out)
    }

    /// What some bodies are to be bound for before them, in the order of evaluation: what is evaluated in any case, or cannot
    /// fail and is asked for by several arms.
    fn shared(&self, roots: &[Body]) -> Vec<Body> {
        let bodies = &self.g.bodies;
        let is_leaf = |b: Body| bodies.is_atom(b) || self.scope.find(Bound::Body(b)).is_some();
        let mut uses: FxHashMap<Body, usize> = FxHashMap::default();
        let (mut certain, mut todo) = (FxHashSet::default(), roots.to_vec());
        roots.iter().for_each(|b| *uses.entry(*b).or_default() += 1);
        let mut arms: Vec<Body> = vec![];
        while let Some(b) = todo.pop() {
            if is_leaf(b) || !certain.insert(b) {
                continue;
            }
            let kids = match bodies.node(b) {
                Node::If([c, x, y]) => {
                    arms.extend([*x, *y]);
                    std::slice::from_ref(c)
                }
                node => node.kids(),
            };
            kids.iter().for_each(|k| *uses.entry(*k).or_default() += 1);
            todo.extend(kids);
        }
        // Each arm asks once for what it may evaluate.
        for arm in arms {
            let (mut seen, mut todo) = (FxHashSet::default(), vec![arm]);
            while let Some(b) = todo.pop() {
                if is_leaf(b) || !seen.insert(b) {
                    continue;
                }
                *uses.entry(b).or_default() += 1;
                if !certain.contains(&b) {
                    todo.extend(bodies.node(b).kids());
                }
            }
        }
        let mut out: Vec<Body> = uses.iter().filter(|(b, n)| **n > 1 && !is_leaf(**b)).map(|(b, _)| *b).collect();
        let mut total = FxHashMap::default();
        out.retain(|b| certain.contains(b) || self.is_total(*b, &mut total));
        // A body is made after what it is made of.
        out.sort_unstable();
        out
    }

    /// Whether a body has a value wherever it stands.
    fn is_total(&self, b: Body, known: &mut FxHashMap<Body, bool>) -> bool {
        for at in self.g.bodies.reachable([b]) {
            if !known.contains_key(&at) {
                let node = self.g.bodies.node(at);
                let own = match node {
                    Node::Load(..) | Node::Acc(..) => false,
                    Node::Op(op, ty, _) => !(op.divides() && ty.is_int()),
                    _ => true,
                };
                let all = own && node.kids().iter().all(|k| known.get(k).copied().unwrap_or(false));
                known.insert(at, all);
            }
        }
        known.get(&b).copied().unwrap_or(false)
    }

    /// The term of a body in the present scope.
    fn body(&mut self, b: Body) -> Made<Id> {
        if let Some(known) = self.scope.known(b) {
            return Ok(known);
        }
        let id = match self.scope.find(Bound::Body(b)) {
            Some((k, ty)) => self.terms.var(k, ty),
            None => deep(|| self.node(b))?,
        };
        self.scope.remember(b, id);
        Ok(id)
    }

    fn node(&mut self, b: Body) -> Made<Id> {
        match self.g.bodies.node(b).clone() {
            Node::Lit(l) => Ok(self.terms.lit(l)),
            Node::Symbol(s) => self.symbol(s.0 as usize),
            Node::Index(d) => self.variable(Bound::Dim(d)),
            Node::Acc(k, _) => {
                let state = self.variable(Bound::State)?;
                self.part(state, k)
            }
            Node::Load(from, _, at) => match from {
                Source::Input(k) => {
                    let at = at.iter().map(|b| self.body(*b)).collect::<Made<Vec<Id>>>()?;
                    self.input(k as usize, &at)
                }
                Source::Stage(s, k) => self.read(s, k, &at),
            },
            Node::Op(op, _, args) => {
                let args = args.iter().map(|b| self.body(*b)).collect::<Made<Vec<Id>>>()?;
                self.put(Head::Op(op), args)
            }
            Node::Cast(to, b) => {
                let b = self.body(b)?;
                self.put(Head::Cast(to), vec![b])
            }
            Node::If([c, x, y]) => {
                let parts = vec![self.body(c)?, self.number(x)?, self.number(y)?];
                self.put(Head::If, parts)
            }
        }
    }

    /// Terms of several bodies in the present scope.
    pub(super) fn each(&mut self, of: &[Body]) -> Made<Vec<Id>> {
        of.iter().map(|b| self.body(*b)).collect()
    }

    /// A part of a tuple; a value of one component is that.
    pub(super) fn part(&mut self, value: Id, k: u32) -> Made<Id> {
        match self.terms.ty(value).as_tuple().map(<[Ty]>::len) {
            Some(n) => self.put(Head::Get(k, n as u32), vec![value]),
            None => Ok(value),
        }
    }
}
