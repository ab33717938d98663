//! Preaccumulation: a condition that stands in a deep nest gives its value and its derivatives by what its arms
//! read, at once. The way back is then a product for each of them.
//!
//! The value of each level of a nest needs that of the level within. If the way back made those again, as it
//! does of shallow conditions, each level would make all that is below it; so it is made once, going in, with
//! the derivatives for an adjoint of 1. That takes numbers: by a tensor it would be a Jacobian. What is read in
//! one arm only, or in a part of one, says whether it was, since an infinite adjoint times 0 is no 0.

use super::adjoint::{Frame, Reverse};
use super::contribution::{Contribution, Item, Step, simple};
use super::emit::{Aside, Val};
use super::slope::Slope;
use super::sweep::sweep;
use crate::diag::{Diagnostic, Result};
use crate::ir::{Head, Id, Lit, Op, deep};
use crate::types::shape::lowered;
use std::rc::Rc;

/// Indices of so many nodes at most are made again outside of an arm.
const INDEX: usize = 40;

/// What an arm gives to something that it reads.
#[derive(Clone)]
struct Part {
    adjoint: usize,
    /// Which part of it; the indices stand right outside of the arm, unless they are given.
    steps: Vec<Step>,
    /// The indices in the order of the steps, where they are known in the arm alone.
    at: Option<Vec<Val>>,
    by: Val,
    here: Option<Val>,
}

impl Part {
    fn indices(&self) -> usize {
        self.at.as_ref().map_or(0, Vec::len)
    }
}

/// An arm that is not closed yet.
struct Arm {
    lets: Aside,
    value: Val,
    parts: Vec<Part>,
}

/// A slope of a condition: what its arms have of it.
struct Slot([Option<Part>; 2]);

impl Slot {
    /// What one arm has of it.
    fn any(&self) -> Option<&Part> {
        self.0.iter().flatten().next()
    }

    /// Whether both arms read this whatever is taken in them.
    fn is_certain(&self) -> bool {
        self.0.iter().all(|p| p.as_ref().is_some_and(|p| p.here.is_none()))
    }
}

impl Reverse<'_, '_> {
    /// Whether a condition is made at once with its derivatives.
    fn is_joint(&mut self, id: Id) -> bool {
        !self.separate.contains(&id) && self.w.nested.is_joint(self.w.e.terms, id)
    }

    /// Makes the conditions in a term that are made at once with their derivatives. Comes before its value.
    pub(super) fn prepare(&mut self, id: Id) {
        if !self.w.nested.is_deep(self.w.e.terms, id) || self.w.known(id).is_some() || !self.w.active(id) {
            return;
        }
        match self.w.e.terms.head(id) {
            Head::If => drop(self.slopes(id)),
            // What binds variables has a scope of its own.
            Head::Let => {}
            head if head.is_loop() => {}
            _ => self.w.e.terms.kids(id).to_vec().into_iter().for_each(|k| deep(|| self.prepare(k))),
        }
    }

    /// The slopes of a condition, which are made with its value unless they are there; nothing where it is not
    /// made at once with its derivatives.
    pub(super) fn slopes(&mut self, id: Id) -> Option<Rc<Vec<Slope>>> {
        if let Some(known) = self.w.slopes(id) {
            return Some(known);
        }
        if !self.is_joint(id) {
            return None;
        }
        let (outer, mark, scope, frames) = (self.w.e.depth(), self.w.mark(), self.w.env.len(), self.frames.len());
        let arms = self.arms;
        self.w.joint += 1;
        let made = deep(|| self.made_at_once(id));
        self.w.joint -= 1;
        if made.is_err() {
            // The other way takes more, and says what is wrong where its derivative is needed.
            self.separate.insert(id);
            self.frames.truncate(frames);
            self.w.env.truncate(scope);
            self.w.forget(mark);
            self.w.e.leave(outer);
            self.arms = arms;
        }
        self.w.slopes(id)
    }

    /// What contributions of the adjoint of a condition mean for what it reads.
    pub(super) fn slopes_back(&mut self, id: Id, slopes: &[Slope], contributions: Vec<Contribution>) -> Result<()> {
        let dr = self.dense(id, contributions)?;
        for slope in slopes {
            let (dr, by) = (self.w.e.now(dr), self.w.e.now(slope.by));
            let value = self.w.e.mul(dr, by);
            let value = self.w.e.bind(value);
            let none = self.w.e.int(0);
            let steps = Contribution { depth: slope.depth, items: vec![], steps: slope.steps.clone(), value: none };
            let mut contribution = steps.now(&mut self.w.e);
            contribution.value = self.w.e.now(value);
            contribution.items.extend(slope.here.map(|here| Item::Guard(self.w.e.now(here))));
            self.collect(slope.adjoint, contribution);
        }
        Ok(())
    }

    fn made_at_once(&mut self, id: Id) -> Result<()> {
        let kids = self.w.e.terms.kids(id).to_vec();
        let c = self.w.value(kids[0]);
        let outer = self.w.e.depth();
        let arms = [self.open_arm(kids[1])?, self.open_arm(kids[2])?];
        let slots = slots(&arms);
        let mut rows = vec![];
        for (which, arm) in arms.into_iter().enumerate() {
            self.w.e.reopen(arm.lets);
            let mut row = vec![self.w.e.now(arm.value)];
            for slot in &slots {
                self.entries(slot, which, id, &mut row);
            }
            let row = self.w.e.put(Head::Tuple, row);
            rows.push(self.w.e.as_nested(outer, row));
            self.w.e.leave(outer);
        }
        let c = self.w.e.now(c);
        let mut both = self.w.e.put(Head::If, [c, rows[0], rows[1]]);
        if self.w.joint == 1 {
            both = sweep(self.w.e.terms, both, true);
        }
        self.taken_apart(id, both, &slots);
        Ok(())
    }

    /// What an arm has of a slope, as parts of its row, or what stands for that where it has nothing.
    fn entries(&mut self, slot: &Slot, which: usize, id: Id, row: &mut Vec<Id>) {
        let part = slot.0[which].as_ref();
        row.push(match part {
            Some(part) => self.w.e.now(part.by),
            None => self.number(id, 0.0),
        });
        if !slot.is_certain() {
            row.push(match part.map(|p| p.here) {
                Some(Some(here)) => self.w.e.now(here),
                read => self.w.e.terms.lit(Lit::Bool(read.is_some())),
            });
        }
        match part {
            Some(part) => row.extend(part.at.iter().flatten().map(|i| self.w.e.now(*i))),
            None => row.extend((0..slot.any().map_or(0, Part::indices)).map(|_| self.w.e.int(0))),
        }
    }

    /// A literal of the type of a number.
    fn number(&mut self, id: Id, v: f64) -> Id {
        match self.w.e.ty(id).as_scalar() {
            Some(s) => self.w.e.float(s, v),
            None => self.w.e.int(0),
        }
    }

    /// The value and the slopes are the parts of what the condition gives.
    fn taken_apart(&mut self, id: Id, both: Id, slots: &[Slot]) {
        let (outer, n) = (self.w.e.depth(), self.w.e.ty(both).as_tuple().map_or(1, <[_]>::len) as u32);
        let all = self.w.e.bind(both);
        let mut next = 0;
        let mut take = |me: &mut Self| {
            let of = me.w.e.now(all);
            let part = me.w.e.get(next, n, of);
            next += 1;
            me.w.e.bind(part)
        };
        let (value, mut out) = (take(self), vec![]);
        for slot in slots {
            let Some(Part { adjoint, steps, at, .. }) = slot.any() else { continue };
            let by = take(self);
            let here = (!slot.is_certain()).then(|| take(self));
            let at: Option<Vec<Val>> = at.as_ref().map(|at| at.iter().map(|_| take(self)).collect());
            let depth = if at.is_some() { self.w.e.depth() } else { outer };
            let mut at = at.into_iter().flatten().map(|i| self.w.e.now(i)).collect::<Vec<_>>().into_iter();
            let step = |s: &Step| match s {
                Step::At(index) if at.len() > 0 => Step::At(at.by_ref().take(index.len()).collect()),
                _ => s.clone(),
            };
            out.push(Slope { adjoint: *adjoint, steps: steps.iter().map(step).collect(), depth, by, here });
        }
        self.w.remember(id, Some(value));
        self.w.remember_slopes(id, out);
    }

    /// An arm's value, and what it gives to what it reads for an adjoint of 1; its lets are set aside.
    fn open_arm(&mut self, arm: Id) -> Result<Arm> {
        let (outer, mark) = (self.w.e.depth(), self.w.mark());
        self.frames.push(Frame::default());
        let one = self.number(arm, 1.0);
        let one = self.w.e.val(one);
        let contribution = self.whole(one);
        let value = self.with_value(arm, vec![contribution])?;
        let frame = self.frames.pop().unwrap_or_default();
        let mut parts = vec![];
        for (adjoint, contributions) in frame {
            self.parts(adjoint, contributions, outer, &mut parts)?;
        }
        self.w.forget(mark);
        Ok(Arm { lets: self.w.e.set_aside(outer), value, parts })
    }

    /// Contributions of one adjoint, those of one part as one.
    fn parts(
        &mut self,
        adjoint: usize,
        contributions: Vec<Contribution>,
        outer: usize,
        out: &mut Vec<Part>,
    ) -> Result<()> {
        let mut groups: Vec<(Vec<Step>, Vec<Contribution>)> = vec![];
        let depth = self.w.e.depth();
        for p in contributions {
            let mut p = p.now(&mut self.w.e);
            if p.loops() > 0 || self.w.e.ty(p.value).as_scalar().is_none() {
                return Err(Diagnostic::limit("an arm of numbers gives more than numbers"));
            }
            let steps = std::mem::take(&mut p.steps);
            match groups.iter_mut().find(|g| g.0 == steps) {
                Some(group) => group.1.push(p),
                None => groups.push((steps, vec![p])),
            }
        }
        for (steps, contributions) in groups {
            let (by, here) = self.sum_of(contributions);
            let index = |s: &Step| if let Step::At(at) = s { at.clone() } else { vec![] };
            let at: Vec<Id> = steps.iter().flat_map(index).collect();
            let mut outside = steps.clone();
            let known = outside.iter_mut().all(|step| match step {
                Step::At(at) => at.iter_mut().all(|i| {
                    let found = self.index_outside(*i, depth, outer, &mut 0);
                    *i = found.unwrap_or(*i);
                    found.is_some()
                }),
                Step::Part(..) => true,
            });
            let at = (!known).then(|| at.into_iter().map(|id| Val { id, depth }).collect());
            out.push(Part { adjoint, steps: if known { outside } else { steps }, at, by, here });
        }
        Ok(())
    }

    /// The sum of contributions of a number, and whether there is any, where that is not certain.
    fn sum_of(&mut self, contributions: Vec<Contribution>) -> (Val, Option<Val>) {
        let (mut sum, mut here, mut certain) = (None, None, false);
        for p in contributions {
            let p = p.now(&mut self.w.e);
            let guards = p.items.iter().filter_map(|i| if let Item::Guard(c) = i { Some(*c) } else { None });
            let guard = guards.reduce(|a, b| self.w.e.op(Op::And, [a, b]));
            let mut value = p.value;
            if let Some(guard) = guard {
                let zero = self.number(value, 0.0);
                value = self.w.e.put(Head::If, [guard, value, zero]);
                here = Some(here.map_or(guard, |before| self.w.e.op(Op::Or, [before, guard])));
            }
            certain |= guard.is_none();
            sum = Some(sum.map_or(value, |before| self.w.e.add(before, value)));
        }
        let sum = sum.unwrap_or_else(|| self.w.e.int(0));
        let here = here.filter(|_| !certain).map(|h| self.w.e.val(h));
        let sum = self.w.e.bind(sum);
        let here = here.map(|h| {
            let here = self.w.e.now(h);
            self.w.e.bind(here)
        });
        (sum, here)
    }

    /// An index as it is known where `outer` of the `depth` variables are in scope, if it is, and simple.
    fn index_outside(&mut self, id: Id, depth: usize, outer: usize, nodes: &mut usize) -> Option<Id> {
        *nodes += 1;
        if let Some(out) = lowered(self.w.e.terms, id, depth - outer) {
            return Some(out);
        }
        if *nodes > INDEX || !simple(self.w.e.terms, id) {
            return None;
        }
        let (head, kids) = (self.w.e.terms.head(id), self.w.e.terms.kids(id).to_vec());
        match head {
            Head::Var(i, _) => {
                let level = depth - 1 - i as usize;
                let value = self.w.e.let_value(level)?;
                self.index_outside(value, level, outer, nodes)
            }
            Head::Op(_) => {
                let kids: Option<Vec<Id>> =
                    kids.into_iter().map(|k| self.index_outside(k, depth, outer, nodes)).collect();
                Some(self.w.e.put(head, kids?))
            }
            _ => None,
        }
    }
}

/// What the arms read: the same part of the same variable is one slope.
fn slots(arms: &[Arm; 2]) -> Vec<Slot> {
    let mut out: Vec<Slot> = arms[0].parts.iter().map(|p| Slot([Some(p.clone()), None])).collect();
    for part in &arms[1].parts {
        let key = |p: &Part| (p.adjoint, p.at.is_none(), p.steps.clone());
        let same = |s: &&mut Slot| part.at.is_none() && s.any().is_some_and(|p| key(p) == key(part));
        match out.iter_mut().take(arms[0].parts.len()).find(same) {
            Some(slot) => slot.0[1] = Some(part.clone()),
            None => out.push(Slot([None, Some(part.clone())])),
        }
    }
    out
}
