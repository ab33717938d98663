//! A proof becomes steps: replacements one after the other, each checked as it is made.
//!
//! Places are kept as a term with a hole. Equal obligations under one node are done at once, so that
//! what is shared is not proved again and again.

use super::closure::Closure;
use super::shortest::Why;
use super::terms::Stripped;
use crate::cost::Model;
use crate::derive::check::Checker;
use crate::derive::flat::parameter;
use crate::derive::{Place, Step};
use crate::ir::{Head, Id, Param, Terms, Ty, deep};
use crate::rewrite::egraph::elaborate::elaborate_within;
use crate::rewrite::egraph::language::Label;
use crate::rewrite::egraph::trace::{Equation, Reason, Theta, Tid, Trace};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Why there is no proof where there might be one.
pub use crate::derive::check::LATE;

/// Why there are no steps.
pub enum Failed {
    /// The checker refuses the use of an equation.
    Equation(usize, String),
    /// The terms are not proved equal, or the steps are too many.
    Hopeless(String),
}

/// Derivations have no more steps than this.
const MAX_STEPS: usize = 4000;
/// Proofs within proofs are looked up so often at most.
const MAX_WORK: usize = 40_000;
/// Places that are listed one by one: where there are few at once, else where there is no other way.
const FEW_PLACES: usize = 20;
const MAX_PLACES: usize = 2000;
/// A step is taken in so many kinds of parts one after the other at most, and so many parts are looked at for that
/// in all.
const MAX_PARTS: usize = 20;
const MAX_LOOKED: usize = 400;
/// A term brought back has at most so many nodes, those that are shared counted once.
const MAX_TEXT: usize = 4000;
/// With names for what is shared it has so many parts and nodes at most.
const MAX_NAMED: usize = 20_000;
/// In one of more as a tree, what is shared gets a name.
const LONG: u64 = 400;

/// Variables of a lemma are moved where it is used: by the last of these first.
type Maps = Vec<(Arc<Theta>, usize)>;

/// Makes steps from a proof.
pub struct Linear<'a, 'b> {
    /// The terms.
    pub trace: &'a mut Trace,
    /// The equations.
    pub equations: &'a [Equation],
    /// The proofs.
    pub closure: &'a Closure,
    /// Follows the steps.
    pub checker: &'a mut Checker<'b>,
    /// The steps so far.
    pub steps: Vec<Step>,
    /// The program after each step.
    pub programs: Vec<Id>,
    /// The present program.
    pub at: Tid,
    /// What was used, where it was used: the terms with their variables moved.
    pub used: Vec<Equation>,
    holes: u32,
    /// How many proofs were looked up.
    work: usize,
    /// How many parts may be looked at yet.
    left: usize,
    stripped: Stripped,
    /// Whether to give up.
    stop: &'a dyn Fn() -> bool,
}

impl<'a, 'b> Linear<'a, 'b> {
    /// For a checker whose program is `at`.
    pub fn new(
        trace: &'a mut Trace,
        equations: &'a [Equation],
        closure: &'a Closure,
        checker: &'a mut Checker<'b>,
        at: Tid,
        stop: &'a dyn Fn() -> bool,
    ) -> Linear<'a, 'b> {
        let (steps, programs, used) = Default::default();
        let stripped = Stripped::new();
        let (holes, work, left) = (0, 0, MAX_LOOKED);
        Linear { trace, equations, closure, checker, steps, programs, at, used, holes, work, left, stripped, stop }
    }

    /// Takes the checker to another term.
    pub fn run(&mut self, to: Tid) -> Result<(), Failed> {
        let hole = self.hole();
        self.transform(hole, hole, self.at, to, &vec![])
    }

    fn hole(&mut self) -> Tid {
        self.holes += 1;
        self.trace.put(Label::Param(u32::MAX - self.holes, Ty::tuple([])), [])
    }

    /// Steps from `context` with `x` in its hole to the same with `y`.
    fn transform(&mut self, context: Tid, hole: Tid, x: Tid, y: Tid, maps: &Maps) -> Result<(), Failed> {
        self.work += 1;
        if self.work > MAX_WORK {
            return Err(Failed::Hopeless("the proof is too long".into()));
        }
        if (self.stop)() {
            return Err(Failed::Hopeless(LATE.into()));
        }
        let Some(path) = self.closure.path(self.trace, x, y) else {
            return Err(Failed::Hopeless("no chain of equations leads there".into()));
        };
        let mut now = x;
        for (next, why) in path {
            match why {
                Why::Congruence => deep(|| self.parts(context, hole, now, next, maps))?,
                Why::Equation(k) => match &self.equations[k].reason {
                    Reason::By(name) => self.step(context, hole, (now, next), maps, k, name.clone())?,
                    Reason::Mapped(a, b, theta) => {
                        let mut inner = maps.clone();
                        inner.push((theta.clone(), 0));
                        let forward = now == self.equations[k].left;
                        let (a, b) = if forward { (*a, *b) } else { (*b, *a) };
                        deep(|| self.transform(context, hole, a, b, &inner))?;
                    }
                },
            }
            now = next;
        }
        Ok(())
    }

    /// Steps from a node to one with other, equal children.
    fn parts(&mut self, context: Tid, hole: Tid, x: Tid, y: Tid, maps: &Maps) -> Result<(), Failed> {
        let mut pairs = vec![];
        self.different(x, y, 0, &mut pairs, &mut FxHashSet::default());
        let mut done: FxHashSet<(Tid, Tid, usize)> = FxHashSet::default();
        for pair in &pairs {
            let inner = self.hole();
            let mut memo = FxHashMap::default();
            let with_hole = self.partly(x, y, 0, &done, (*pair, inner), &mut memo);
            let with_hole = self.mapped(with_hole, maps, 0);
            let whole = self.plugged(context, hole, with_hole);
            let lifted: Maps = maps.iter().map(|(t, under)| (t.clone(), under + pair.2)).collect();
            self.transform(whole, inner, pair.0, pair.1, &lifted)?;
            done.insert(*pair);
        }
        Ok(())
    }

    /// Whether two terms differ in their children only.
    fn congruent(&self, x: Tid, y: Tid) -> bool {
        let (a, b) = (self.trace.node(x), self.trace.node(y));
        a.0 == b.0
            && a.1.len() == b.1.len()
            && matches!(self.closure.path(self.trace, x, y).as_deref(), Some([(_, Why::Congruence)]))
    }

    /// The pairs of different parts that are equal for other reasons than equal children, with the
    /// number of binders they stand under.
    fn different(
        &self,
        x: Tid,
        y: Tid,
        under: usize,
        out: &mut Vec<(Tid, Tid, usize)>,
        seen: &mut FxHashSet<(Tid, Tid, usize)>,
    ) {
        if x == y || !seen.insert((x, y, under)) {
            return;
        }
        if !self.congruent(x, y) {
            return out.push((x, y, under));
        }
        let (label, kids) = self.trace.node(x);
        let other = &self.trace.node(y).1;
        for k in 0..kids.len() {
            let binds = if let Label::Head(h) = label { h.binds(k, kids.len()) } else { 0 };
            // What a variable ranges over is no part of the program.
            if !matches!(label, Label::Head(Head::Var(..))) {
                deep(|| self.different(kids[k], other[k], under + binds, out, seen));
            }
        }
    }

    /// The term between `x` and `y`: of `y` what is done, a hole at one pair, the rest of `x`.
    fn partly(
        &mut self,
        x: Tid,
        y: Tid,
        under: usize,
        done: &FxHashSet<(Tid, Tid, usize)>,
        at: ((Tid, Tid, usize), Tid),
        memo: &mut FxHashMap<(Tid, Tid, usize), Tid>,
    ) -> Tid {
        let key = (x, y, under);
        if x == y {
            return x;
        }
        if key == at.0 {
            return at.1;
        }
        if done.contains(&key) {
            return y;
        }
        if let Some(known) = memo.get(&key) {
            return *known;
        }
        let out = match self.congruent(x, y) {
            false => x,
            true => {
                let (label, kids) = self.trace.node(x).clone();
                let other = self.trace.node(y).1.clone();
                let n = kids.len();
                let mut new = vec![];
                for k in 0..n {
                    let binds = if let Label::Head(h) = label { h.binds(k, n) } else { 0 };
                    new.push(deep(|| self.partly(kids[k], other[k], under + binds, done, at, memo)));
                }
                self.trace.put(label, new)
            }
        };
        memo.insert(key, out);
        out
    }

    fn mapped(&mut self, id: Tid, maps: &Maps, under: usize) -> Tid {
        maps.iter().rev().fold(id, |id, (theta, lift)| self.trace.mapped(id, theta, lift + under))
    }

    /// A context with a term in its hole.
    fn plugged(&mut self, context: Tid, hole: Tid, term: Tid) -> Tid {
        let mut memo = FxHashMap::default();
        memo.insert(hole, term);
        self.replaced(context, &mut memo)
    }

    fn replaced(&mut self, id: Tid, memo: &mut FxHashMap<Tid, Tid>) -> Tid {
        if let Some(done) = memo.get(&id) {
            return *done;
        }
        let (label, kids) = self.trace.node(id).clone();
        let new: Vec<Tid> = kids.iter().map(|k| deep(|| self.replaced(*k, memo))).collect();
        let out = if new[..] == kids[..] { id } else { self.trace.put(label, new) };
        memo.insert(id, out);
        out
    }

    fn strip(&mut self, id: Tid) -> Result<Id, Failed> {
        let out = self.stripped.term(self.trace, &mut self.checker.terms, id);
        out.ok_or_else(|| Failed::Hopeless("a term on the way has no type".into()))
    }

    fn step(
        &mut self,
        context: Tid,
        hole: Tid,
        (from, to): (Tid, Tid),
        maps: &Maps,
        k: usize,
        name: Arc<str>,
    ) -> Result<(), Failed> {
        let forward = from == self.equations[k].left;
        let (a, b) = (self.mapped(from, maps, 0), self.mapped(to, maps, 0));
        let (before, after) = (self.plugged(context, hole, a), self.plugged(context, hole, b));
        let (p, q, y) = (self.strip(before)?, self.strip(after)?, self.strip(b)?);
        let use_of = |left: Tid, right: Tid| Equation { left, right, reason: Reason::By(name.clone()) };
        let used = if forward { use_of(a, b) } else { use_of(b, a) };
        if p == q {
            self.used.push(used);
            self.at = after;
            return Ok(());
        }
        if p != self.checker.now {
            return Err(Failed::Equation(k, "the steps went astray".into()));
        }
        if self.steps.len() >= MAX_STEPS {
            return Err(Failed::Hopeless("too many steps".into()));
        }
        const TOO_LARGE: &str = "the term brought back is too large";
        if !forward && self.checker.terms.reachable(y).len() > MAX_TEXT {
            return Err(Failed::Equation(k, TOO_LARGE.into()));
        }
        // The hole as a leaf of the type that belongs there.
        let leaf = self.checker.terms.put(parameter(usize::MAX, self.checker.terms.ty(y)), []);
        let mark = self.trace.put(Label::Param(u32::MAX, self.checker.terms.ty(y)), []);
        let marked = self.plugged(context, hole, mark);
        let mut with_leaf = Stripped::with(mark, leaf);
        let shape = with_leaf.term(self.trace, &mut self.checker.terms, marked);
        let shape = shape.ok_or_else(|| Failed::Hopeless("a term on the way has no type".into()))?;
        let mut at = vec![];
        places(self.checker, shape, leaf, &mut vec![], &mut at, &mut FxHashMap::default());
        let Some(path) = at.first().cloned() else { return Err(Failed::Hopeless("a place is lost".into())) };
        let text = match forward {
            true => None,
            false => Some(self.text(y, &path).ok_or_else(|| Failed::Equation(k, TOO_LARGE.into()))?),
        };
        let step = Step { by: name.to_string(), at: vec![path], place: Place::Here, to: text, cost: 0.0 };
        let old = self.strip(a)?;
        // Where it is late another equation is refused as this one.
        let failed = |why: String| if why == LATE { Failed::Hopeless(why) } else { Failed::Equation(k, why) };
        self.whatever_it_needs(step, at, (old, y), q).map_err(failed)?;
        self.used.push(used);
        self.at = after;
        Ok(())
    }
}

impl Linear<'_, '_> {
    /// The text of a term that is brought back at a place; nothing where that is too long.
    fn text(&mut self, id: Id, path: &[usize]) -> Option<String> {
        let params = self.checker.def().params.clone();
        let long = self.checker.terms.size(id) > LONG;
        let mut short = true;
        let text = self.checker.show_with(id, path, &mut |terms, body, tys| {
            if !long {
                return body;
            }
            let loops = tys.iter().map(|ty| Param { name: String::new(), ty: *ty, sizes: vec![] });
            let params: Vec<Param> = params.iter().cloned().chain(loops).collect();
            // Only what the text means matters, not when a part of it would be evaluated.
            let total = terms.reachable(body).into_iter().map(|id| (id, true)).collect();
            let named = elaborate_within(terms, body, &params, &total, (Model::Knossos, MAX_NAMED));
            let named = named.filter(|id| terms.size(*id) <= MAX_NAMED as u64);
            short = named.is_some();
            // Nobody reads the text of what stands here instead.
            named.unwrap_or_else(|| terms.int(0))
        });
        short.then_some(text)
    }

    /// Takes a step without a look at what earlier programs are certain to evaluate, and else with one.
    fn whatever_it_needs(&mut self, step: Step, at: Vec<Vec<usize>>, part: (Id, Id), to: Id) -> Result<(), String> {
        if step.to.is_some() {
            self.checker.looks_back = false;
            let taken = self.taken(step.clone(), at.clone(), part, to);
            self.checker.looks_back = true;
            if taken.is_ok() {
                return taken;
            }
            while self.checker.learn_next() {
                if (self.stop)() {
                    return Err(LATE.into());
                }
            }
        }
        self.taken(step, at, part, to)
    }

    /// Takes a step that leads from `old` to `new` at one place also at all other places at which it is to be taken:
    /// wherever the part stands, or at each of the places by itself, or wherever it stands in some larger parts.
    fn taken(&mut self, step: Step, at: Vec<Vec<usize>>, part: (Id, Id), to: Id) -> Result<(), String> {
        let before = self.checker.now;
        let mut ways = vec![];
        if at.len() > 1 {
            ways.push(Step { place: Place::Everywhere, ..step.clone() });
        }
        if at.len() <= FEW_PLACES {
            ways.push(Step { at: at.clone(), ..step.clone() });
        }
        let mut refused = vec![];
        for way in ways {
            if self.leads(way, to, &mut refused) {
                return Ok(());
            }
        }
        if at.len() > 1 {
            let steps = (self.steps.len(), self.programs.len());
            match self.within(&step, part, to) {
                Ok(()) => return Ok(()),
                Err(why) => refused.push(why),
            }
            self.steps.truncate(steps.0);
            self.programs.truncate(steps.1);
            self.checker.now = before;
        }
        if (FEW_PLACES + 1..=MAX_PLACES).contains(&at.len()) && self.leads(Step { at, ..step }, to, &mut refused) {
            return Ok(());
        }
        Err(refused.pop().unwrap_or_else(|| "the step leads elsewhere".into()))
    }

    /// Takes a step, if it leads to a term; else the program stays, and why it is refused is noted, where it is.
    fn leads(&mut self, step: Step, to: Id, refused: &mut Vec<String>) -> bool {
        let before = self.checker.now;
        match self.checker.step(&step) {
            Ok(()) if self.checker.now == to => {
                self.note(step);
                return true;
            }
            Ok(()) => self.checker.now = before,
            Err(why) => refused.push(why),
        }
        false
    }

    fn note(&mut self, step: Step) {
        self.steps.push(step);
        self.programs.push(self.checker.now);
    }

    /// Takes a step in the largest parts of the present program in which it is to be taken wherever it can be, one
    /// after the other.
    fn within(&mut self, step: &Step, part: (Id, Id), to: Id) -> Result<(), String> {
        for _ in 0..MAX_PARTS {
            let now = self.checker.now;
            if now == to {
                return Ok(());
            }
            if (self.stop)() {
                return Err(LATE.into());
            }
            if self.left == 0 {
                break;
            }
            let (mut parts, mut path) = (Parts::new(&mut self.checker.terms, part), vec![]);
            if !parts.first(now, to, &mut path) {
                return Err("the step leads elsewhere".into());
            }
            let looked = (1..path.len()).take(self.left);
            self.left -= looked.len();
            let length = looked.clone().find(|length| parts.all_within(now, &path[..*length], to));
            let (at, place) = (vec![path], length.map_or(Place::Here, Place::Within));
            let step = Step { at, place, ..step.clone() };
            self.checker.step(&step)?;
            self.note(step);
        }
        Err("the same part stays at some places, and goes in too many kinds of parts".into())
    }
}

/// A part that is replaced in parts of a term.
struct Parts<'a> {
    terms: &'a mut Terms,
    old: Id,
    new: Id,
}

impl Parts<'_> {
    fn new(terms: &mut Terms, (old, new): (Id, Id)) -> Parts<'_> {
        Parts { terms, old, new }
    }

    /// The path to the first place at which two terms differ by the part.
    fn first(&self, from: Id, to: Id, path: &mut Vec<usize>) -> bool {
        if from == to {
            return false;
        }
        if (from, to) == (self.old, self.new) {
            return true;
        }
        let (kids, others) = (self.terms.kids(from), self.terms.kids(to));
        // Where one child does not lead there no other does: all that differs is the part.
        let Some(k) = (0..kids.len().min(others.len())).find(|k| kids[*k] != others[*k]) else { return false };
        path.push(k);
        deep(|| self.first(kids[k], others[k], path))
    }

    /// Whether the part may be replaced wherever it stands in the one at a path, wherever that stands, on the way to
    /// a term.
    fn all_within(&mut self, from: Id, path: &[usize], to: Id) -> bool {
        let within = path.iter().fold(from, |id, k| self.terms.kids(id)[*k]);
        let replaced = self.replaced(from, within, false, &mut FxHashMap::default());
        self.between(from, replaced, to, &mut FxHashSet::default())
    }

    fn replaced(&mut self, id: Id, within: Id, inside: bool, done: &mut FxHashMap<(Id, bool), Id>) -> Id {
        let inside = inside || id == within;
        if inside && id == self.old {
            return self.new;
        }
        // Children have smaller ids than their parents.
        if id <= self.old {
            return id;
        }
        if let Some(done) = done.get(&(id, inside)) {
            return *done;
        }
        let kids = self.terms.kids(id).to_vec();
        let new: Vec<Id> = kids.iter().map(|k| deep(|| self.replaced(*k, within, inside, done))).collect();
        let out = if new == kids { id } else { self.terms.put(self.terms.head(id), new) };
        done.insert((id, inside), out);
        out
    }

    /// Whether a term has at each place what one of two others has there.
    fn between(&self, from: Id, id: Id, to: Id, seen: &mut FxHashSet<(Id, Id, Id)>) -> bool {
        if id == from || id == to || !seen.insert((from, id, to)) {
            return true;
        }
        let [a, b, c] = [from, id, to].map(|id| (self.terms.head(id), self.terms.kids(id)));
        a.0 == b.0
            && b.0 == c.0
            && a.1.len() == b.1.len()
            && b.1.len() == c.1.len()
            && (0..b.1.len()).all(|k| deep(|| self.between(a.1[k], b.1[k], c.1[k], seen)))
    }
}

/// The paths to a leaf; no more than can be listed, and one.
fn places(
    checker: &Checker<'_>,
    id: Id,
    leaf: Id,
    path: &mut Vec<usize>,
    out: &mut Vec<Vec<usize>>,
    without: &mut FxHashMap<Id, bool>,
) -> bool {
    if id == leaf {
        out.push(path.clone());
        return true;
    }
    if without.get(&id) == Some(&false) || out.len() > MAX_PLACES {
        return false;
    }
    let mut found = false;
    for k in 0..checker.terms.kids(id).len() {
        let kid = checker.terms.kids(id)[k];
        path.push(k);
        found |= deep(|| places(checker, kid, leaf, path, out, without));
        path.pop();
    }
    without.insert(id, found);
    found
}
