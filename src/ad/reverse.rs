//! Reverse mode: a body is walked backwards, and what its value changes by is traced to its variables.
//!
//! `back(e, contributions)` says: these contributions of the adjoint of `e` are known; collect what follows for the
//! variables in `e`. Adjoints that are zero are never made. Loops, folds and scans are in
//! `sequence.rs` and here; how contributions leave a loop is in `adjoint.rs`.

use super::adjoint::{Leaving, Reverse};
use super::contribution::{Contribution, Item, Step};
use super::emit::Val;
use super::env::Active;
use super::gather::part_of;
use super::like::Like;
use super::{Mode, Request};
use crate::diag::{Diagnostic, Result};
use crate::ir::{Fun, Head, Id, Monoid, Op, Ty, deep};

/// Chains of conditions with more arms than this are taken at once.
const CHAIN: usize = 8;

impl Reverse<'_, '_> {
    /// A whole value as a contribution.
    pub fn whole(&mut self, v: Val) -> Contribution {
        Contribution { depth: v.depth, items: vec![], steps: vec![], value: v.id }
    }

    /// What a term of the source has the shape of.
    pub fn like(&mut self, id: Id) -> Like {
        let val = self.w.value(id);
        let sizes = self.w.sizes(id);
        Like { val, sizes }
    }

    /// Contributions of the adjoint of a term as one value, bound by a let.
    pub fn dense(&mut self, id: Id, contributions: Vec<Contribution>) -> Result<Val> {
        self.prepare(id);
        let like = self.like(id);
        let ty = self.w.e.ty(id);
        let made = self.w.force(ty, &like, contributions)?;
        self.w.e.terms.called_derivative_of(made, id);
        Ok(self.w.e.bind(made))
    }

    /// Collects what contributions of the adjoint of a term mean for its variables.
    ///
    /// # Errors
    /// An operation without derivative, a call of a function that has none.
    pub fn back(&mut self, id: Id, contributions: Vec<Contribution>) -> Result<()> {
        // Of a let it is asked where its body ends: a chain of lets would be looked through at each.
        if contributions.is_empty() || self.w.e.terms.head(id) != Head::Let && !self.w.active(id) {
            return Ok(());
        }
        deep(|| self.head(id, contributions))
    }

    fn head(&mut self, id: Id, contributions: Vec<Contribution>) -> Result<()> {
        let (head, kids) = (self.w.e.terms.head(id), self.w.e.terms.kids(id).to_vec());
        match head {
            Head::Var(i, _) => {
                if let Active::Adjoint(k) = self.w.env[self.w.env.len() - 1 - i as usize].active {
                    contributions.into_iter().for_each(|p| self.collect(k, p));
                }
                Ok(())
            }
            Head::Let => {
                let known = self.kept_value(id);
                self.let_back(id, contributions, |me, contributions| {
                    me.w.remember(kids[1], known);
                    me.back(kids[1], contributions)
                })
            }
            Head::If => match self.slopes(id) {
                Some(slopes) => self.slopes_back(id, &slopes, contributions),
                None => self.if_back(id, &kids, &contributions),
            },
            Head::Assert => {
                let c = self.w.value(kids[0]);
                let contributions = contributions.into_iter().map(|p| self.asserted(c, p)).collect();
                self.back(kids[1], contributions)
            }
            Head::Tuple => {
                let n = kids.len();
                let known = self.kept_value(id);
                for (k, kid) in kids.into_iter().enumerate() {
                    if let Some(all) = known {
                        let all = self.w.e.now(all);
                        let part = self.w.e.get(k as u32, n as u32, all);
                        let part = self.w.e.bind(part);
                        self.w.remember(kid, Some(part));
                    }
                    let own = contributions.iter().filter_map(|p| part_of(&mut self.w.e, p, k, n)).collect();
                    self.back(kid, own)?;
                }
                Ok(())
            }
            Head::Get(k, n) => {
                let step = |mut p: Contribution| {
                    p.steps.insert(0, Step::Part(k, n));
                    p
                };
                self.back(kids[0], contributions.into_iter().map(step).collect())
            }
            Head::Index(d) => {
                let at: Vec<Val> = kids[..d].iter().map(|k| self.w.value(*k)).collect();
                let contributions = contributions.into_iter().map(|p| self.at(&at, p)).collect();
                self.back(kids[d], contributions)
            }
            Head::Op(_) => self.op_back(id, &kids, contributions),
            Head::Cast(_) => self.cast_back(id, kids[0], contributions),
            Head::VecInit => self.elements_back(id, &kids, contributions),
            Head::Build(d) => self.build_back(id, d, &kids, contributions),
            Head::Reduce(Monoid::Add, d) => self.sum_back(id, d, &kids, contributions),
            Head::Reduce(m, _) => self.reduction_back(id, m, &kids, contributions),
            Head::DeltaVec(d) => self.delta_back(id, d, &kids, contributions),
            Head::Scatter(d) => self.scatter_back(id, d, &kids, contributions),
            Head::Fold | Head::Scan => self.sequence_back(id, contributions),
            Head::Call(f) => self.call_back(id, f, &kids, contributions),
            Head::Const(_) | Head::Arg(_) | Head::Size(_) | Head::Print => Ok(()),
            Head::Sum | Head::ConstVec(_) => Err(Diagnostic::bug("a form that is no loop was left")),
        }
    }

    fn cast_back(&mut self, id: Id, value: Id, contributions: Vec<Contribution>) -> Result<()> {
        let Some(from) = self.w.e.ty(value).as_scalar() else { return Ok(()) };
        let dr = self.dense(id, contributions)?;
        let dr = self.w.e.now(dr);
        let back = self.w.e.put(Head::Cast(from), [dr]);
        let back = self.w.e.bind(back);
        let contribution = self.whole(back);
        self.back(value, vec![contribution])
    }

    fn sum_back(&mut self, id: Id, d: usize, kids: &[Id], contributions: Vec<Contribution>) -> Result<()> {
        let dr = self.dense(id, contributions)?;
        self.looped(&kids[..d], |me, vars| {
            let contribution = me.whole(dr);
            me.under(vars, |me| me.back(kids[d], vec![contribution]))
        })
    }

    /// As [`Reverse::back`], and gives the value: what the outermost lets bind serves both.
    pub fn with_value(&mut self, id: Id, contributions: Vec<Contribution>) -> Result<Val> {
        let (Head::Let, [_, rest]) = (self.w.e.terms.head(id), self.w.e.terms.kids(id)) else {
            self.prepare(id);
            self.run(id);
            let made = self.w.value(id);
            self.back(id, contributions)?;
            return Ok(made);
        };
        let rest = *rest;
        let mut made = None;
        self.let_back(id, contributions, |me, contributions| {
            made = Some(deep(|| me.with_value(rest, contributions))?);
            Ok(())
        })?;
        made.ok_or_else(|| Diagnostic::bug("a let without a body"))
    }

    /// A let, by what goes back through its body.
    pub(super) fn let_back(
        &mut self,
        id: Id,
        contributions: Vec<Contribution>,
        body: impl FnOnce(&mut Self, Vec<Contribution>) -> Result<()>,
    ) -> Result<()> {
        let value = self.w.e.terms.kids(id)[0];
        self.prepare(value);
        let active = self.w.active_let(id);
        if active {
            self.run(value);
        }
        let mut entry = self.w.entry(value, Active::No);
        let mut number = None;
        if active {
            let like = Like { val: entry.val, sizes: entry.sizes.clone() };
            let k = self.adjoint(self.w.e.ty(value), like);
            entry.active = Active::Adjoint(k);
            number = Some(k);
        }
        let mark = self.w.mark();
        self.w.env.push(entry);
        let done = body(self, contributions);
        self.w.env.pop();
        self.w.forget(mark);
        let depth = self.w.env.len();
        self.kept.retain(|(_, at), _| *at <= depth);
        done?;
        let contributions = number.map(|k| self.take(k)).unwrap_or_default();
        self.back(value, contributions)
    }

    fn if_back(&mut self, id: Id, kids: &[Id], contributions: &[Contribution]) -> Result<()> {
        let mut leaves = vec![];
        let which = self.arm_taken(id, &mut leaves);
        if leaves.len() > CHAIN {
            return self.leaves_back(which, &leaves, contributions);
        }
        let c = self.w.value(kids[0]);
        let holds = self.w.e.now(c);
        let not = self.w.e.op(Op::Not, [holds]);
        let not = self.w.e.bind(not);
        for (c, arm) in [(c, kids[1]), (not, kids[2])] {
            if self.w.active(arm) {
                self.arm(c, |me| me.back(arm, contributions.to_vec()))?;
            }
        }
        Ok(())
    }

    /// The number of the arm that is taken, of a tree of conditions whose arms follow those in `leaves`.
    fn arm_taken(&mut self, id: Id, leaves: &mut Vec<Id>) -> Id {
        if self.w.e.terms.head(id) != Head::If {
            leaves.push(id);
            return self.w.e.int(leaves.len() as i64 - 1);
        }
        let kids = self.w.e.terms.kids(id).to_vec();
        let first = deep(|| self.arm_taken(kids[1], leaves));
        let second = deep(|| self.arm_taken(kids[2], leaves));
        self.w.e.put(Head::If, [kids[0], first, second])
    }

    /// A long chain of conditions: each arm has one guard, not one for each condition before it.
    fn leaves_back(&mut self, which: Id, leaves: &[Id], contributions: &[Contribution]) -> Result<()> {
        let which = self.w.value(which);
        for (k, leaf) in leaves.iter().enumerate() {
            if self.w.active(*leaf) {
                let (taken, k) = (self.w.e.now(which), self.w.e.int(k as i64));
                let here = self.w.e.op(Op::Eq, [taken, k]);
                let here = self.w.e.bind(here);
                self.arm(here, |me| me.back(*leaf, contributions.to_vec()))?;
            }
        }
        Ok(())
    }

    /// Work that is done only where a condition holds.
    pub fn arm(&mut self, c: Val, inside: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let (outer, mark, kept) = (self.w.e.depth(), self.w.mark(), self.kept.clone());
        let holds = self.w.e.now(c);
        self.frames.push(Default::default());
        self.arms += 1;
        inside(self)?;
        self.leave(outer, &Leaving::Arm(holds))?;
        self.arms -= 1;
        self.kept = kept;
        self.w.forget(mark);
        Ok(())
    }

    fn asserted(&mut self, c: Val, p: Contribution) -> Contribution {
        let p = p.now(&mut self.w.e);
        let c = self.w.e.now(c);
        p.with(&mut self.w.e, c, |e, c, value| e.put(Head::Assert, [c, value]))
    }

    fn at(&mut self, index: &[Val], p: Contribution) -> Contribution {
        let mut p = p.now(&mut self.w.e);
        let loops = p.loops();
        let at = index.iter().map(|v| {
            let here = self.w.e.now(*v);
            self.w.e.terms.shift(here, loops)
        });
        let at = at.collect();
        p.steps.insert(0, Step::At(at));
        p
    }

    fn op_back(&mut self, id: Id, kids: &[Id], contributions: Vec<Contribution>) -> Result<()> {
        let dr = self.dense(id, contributions)?;
        for (k, kid) in kids.iter().enumerate() {
            if self.w.active(*kid) {
                let d = self.w.scaled_partial(id, k, dr)?;
                let d = self.w.e.bind(d);
                let contribution = self.whole(d);
                self.back(*kid, vec![contribution])?;
            }
        }
        Ok(())
    }

    fn elements_back(&mut self, id: Id, kids: &[Id], contributions: Vec<Contribution>) -> Result<()> {
        // Contributions of an element that is known go to it alone.
        let (mut own, mut rest) = (vec![vec![]; kids.len()], vec![]);
        for mut p in contributions {
            let at = match p.steps.first() {
                Some(Step::At(at)) => self.w.e.terms.as_lit(at[0]).and_then(|l| l.as_int()),
                _ => None,
            };
            match at.and_then(|i| usize::try_from(i).ok()).filter(|i| *i < kids.len()) {
                Some(i) => {
                    p.steps.remove(0);
                    own[i].push(p);
                }
                None => rest.push(p),
            }
        }
        if !rest.is_empty() {
            let dr = self.dense(id, rest)?;
            for (k, own) in own.iter_mut().enumerate() {
                let (i, dr) = (self.w.e.int(k as i64), self.w.e.now(dr));
                let element = self.w.e.put(Head::Index(1), [i, dr]);
                let element = self.w.e.bind(element);
                own.push(self.whole(element));
            }
        }
        kids.iter().zip(own).try_for_each(|(kid, own)| self.back(*kid, own))
    }

    fn build_back(&mut self, id: Id, d: usize, kids: &[Id], contributions: Vec<Contribution>) -> Result<()> {
        if let [p] = contributions.as_slice()
            && p.items.is_empty()
            && matches!(p.steps.first(), Some(Step::At(_)))
        {
            // One element is all that matters.
            let mut p = p.clone().now(&mut self.w.e);
            let Step::At(at) = p.steps.remove(0) else { return Ok(()) };
            let at: Vec<Val> = at.into_iter().map(|i| self.w.e.bind(i)).collect();
            return self.under(&at, |me| me.back(kids[d], vec![p]));
        }
        let dr = self.dense(id, contributions)?;
        let known = self.kept_value(id);
        let whole = self.w.known(id);
        self.looped(&kids[..d], |me, vars| {
            let element = me.element_at(vars, dr);
            let contribution = me.whole(element);
            let ran = me.recall_loop(id, kids[d], vars);
            let known = known.or(whole.filter(|_| ran)).map(|all| me.element_at(vars, all));
            me.under(vars, |me| {
                me.w.remember(kids[d], known);
                me.back(kids[d], vec![contribution])
            })
        })
    }

    /// The value of a term of a step, where it was made already. Elsewhere rewriting finds what is equal.
    fn kept_value(&self, id: Id) -> Option<Val> {
        self.w.known(id).filter(|_| self.sequences > 0)
    }

    /// An element of a tensor, bound by a let.
    pub(super) fn element_at(&mut self, at: &[Val], of: Val) -> Val {
        let at: Vec<Id> = at.iter().map(|v| self.w.e.now(*v)).collect();
        let of = self.w.e.now(of);
        let element = self.w.e.put(Head::Index(at.len()), at.into_iter().chain([of]));
        self.w.e.bind(element)
    }

    /// Work under variables of the source without derivative.
    pub fn under(&mut self, vars: &[Val], inside: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let mark = self.w.mark();
        vars.iter().for_each(|v| self.w.push(*v));
        let done = inside(self);
        self.w.env.truncate(self.w.env.len() - vars.len());
        self.w.forget(mark);
        done
    }

    /// Work in a loop with extents of the source.
    pub fn looped(&mut self, extents: &[Id], inside: impl FnOnce(&mut Self, &[Val]) -> Result<()>) -> Result<()> {
        let extents: Vec<Val> = extents.iter().map(|n| self.w.value(*n)).collect();
        self.looped_over(&extents, inside)
    }

    /// Work in a loop.
    pub fn looped_over(&mut self, extents: &[Val], inside: impl FnOnce(&mut Self, &[Val]) -> Result<()>) -> Result<()> {
        self.looped_as(Leaving::Loop, extents, inside)
    }

    /// Work in a loop that is left in some way.
    pub fn looped_as(
        &mut self,
        how: fn(Vec<Id>) -> Leaving,
        extents: &[Val],
        inside: impl FnOnce(&mut Self, &[Val]) -> Result<()>,
    ) -> Result<()> {
        let extents: Vec<Id> = extents.iter().map(|n| self.w.e.now(*n)).collect();
        let (outer, mark, kept) = (self.w.e.depth(), self.w.mark(), self.kept.clone());
        self.frames.push(Default::default());
        let vars: Vec<Val> = extents.iter().map(|_| self.w.e.enter(Ty::int())).collect();
        inside(self, &vars)?;
        self.leave(outer, &how(extents))?;
        self.kept = kept;
        self.w.forget(mark);
        Ok(())
    }

    fn delta_back(&mut self, id: Id, d: usize, kids: &[Id], contributions: Vec<Contribution>) -> Result<()> {
        let dr = self.dense(id, contributions)?;
        let at: Vec<Val> = kids[d..2 * d].iter().map(|k| self.w.value(*k)).collect();
        let sizes: Vec<Val> = kids[..d].iter().map(|k| self.w.value(*k)).collect();
        let mut items = vec![];
        for (i, n) in at.iter().zip(sizes) {
            let (i, n, zero) = (self.w.e.now(*i), self.w.e.now(n), self.w.e.int(0));
            items.push(Item::Guard(self.w.e.op(Op::Gte, [i, zero])));
            items.push(Item::Guard(self.w.e.op(Op::Lt, [i, n])));
        }
        let at: Vec<Id> = at.into_iter().map(|v| self.w.e.now(v)).collect();
        let of = self.w.e.now(dr);
        let value = self.w.e.put(Head::Index(d), at.into_iter().chain([of]));
        let contribution = Contribution { depth: self.w.e.depth(), items, steps: vec![], value };
        self.back(kids[2 * d], vec![contribution])
    }

    fn scatter_back(&mut self, id: Id, d: usize, kids: &[Id], contributions: Vec<Contribution>) -> Result<()> {
        let dr = self.dense(id, contributions)?;
        self.looped(&kids[d..=d], |me, vars| {
            me.under(vars, |me| {
                let pair = me.w.value_now(kids[d + 1]);
                let at = me.w.e.get(0, 2, pair);
                let at: Vec<Id> = match d {
                    1 => vec![at],
                    _ => (0..d).map(|k| me.w.e.get(k as u32, d as u32, at)).collect(),
                };
                let of = me.w.e.now(dr);
                let value = me.w.e.put(Head::Index(d), at.into_iter().chain([of]));
                let value = me.w.e.bind(value);
                let mut contribution = me.whole(value);
                contribution.steps.push(Step::Part(1, 2));
                me.back(kids[d + 1], vec![contribution])
            })
        })
    }

    fn call_back(&mut self, id: Id, f: Fun, kids: &[Id], contributions: Vec<Contribution>) -> Result<()> {
        let active: Vec<bool> = kids.iter().map(|k| self.w.active(*k)).collect();
        let wrt = self.w.requests.by(self.w.e.terms, f, &active);
        let dr = self.dense(id, contributions)?;
        let args: Vec<Val> = kids.iter().map(|k| self.w.value(*k)).collect();
        let mut args: Vec<Id> = args.into_iter().map(|v| self.w.e.now(v)).collect();
        let dr = self.w.e.now(dr);
        let places = self.w.e.terms.spans(id).first().copied();
        let (derivative, packed) = match self.w.requests.get(f, Mode::Reverse, &wrt, places)? {
            Request::Written(g) => (g, true),
            Request::Made(g) => (g, false),
        };
        if packed && kids.len() != 1 {
            args = vec![self.w.e.put(Head::Tuple, args)];
        }
        args.push(dr);
        let all = self.w.e.put(Head::Call(derivative), args);
        let all = self.w.e.bind(all);
        // What is written by hand gives all parts; what is made gives those that are asked for.
        let places: Vec<usize> = (0..kids.len()).filter(|k| packed || wrt[*k]).collect();
        for (at, k) in places.iter().enumerate() {
            if active[*k] {
                let of = self.w.e.now(all);
                let part = match places.len() {
                    1 => of,
                    n => self.w.e.get(at as u32, n as u32, of),
                };
                let part = self.w.e.bind(part);
                let contribution = self.whole(part);
                self.back(kids[*k], vec![contribution])?;
            }
        }
        Ok(())
    }
}
