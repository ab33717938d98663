//! The steps of a fold or scan backwards: a scan carries the adjoint of the state from the last step to the first, and what
//! the steps give to other variables is a loop over them.
//!
//! Both are of one walk through a step. What the scan makes anyway, and takes work, is kept in tables beside its states,
//! and the loop reads it; all else the loop makes for itself, side by side, since nothing there waits for the step before.

use super::adjoint::Reverse;
use super::contribution::{Contribution, Step};
use super::emit::Val;
use super::env::Active;
use super::like::Like;
use super::once::is_selection;
use super::ragged::Span;
use super::recurrence::{Extra, Table};
use super::scope::Place;
use super::sequence::Sequence;
use crate::diag::Result;
use crate::ir::op::Class;
use crate::ir::{Head, Id, Ty};

/// Numbers that take at most so many operations and reads, in terms of so many nodes, are made again rather than kept.
const CHEAP: Cost = Cost { reads: 6, nodes: 64 };

/// What it takes to make a number again.
#[derive(Default)]
struct Cost {
    /// Operations on floats, and reads.
    reads: usize,
    /// Nodes of terms, as often as they stand there.
    nodes: usize,
}

/// A step backwards, where it stands: under the adjoint of its state, and its index counted from the last one.
struct Walked {
    /// The number of variables around it.
    outer: usize,
    /// The number of the step.
    k: Val,
    /// The lets of the step, from the outermost; each stands right below those before.
    lets: Vec<Id>,
    /// The adjoint of the state before the step.
    next: Id,
    /// What it gives to other variables, and to which.
    contributions: Vec<(usize, Contribution)>,
}

impl Walked {
    /// The level of the first let.
    fn first(&self) -> usize {
        self.outer + 2
    }
}

impl Reverse<'_, '_> {
    /// The adjoints of the states before each step, in the order of the steps backwards; what the steps give to other
    /// variables is collected.
    pub(super) fn chain(&mut self, seq: &Sequence) -> Result<Table> {
        let vector = seq.vector.filter(|v| self.w.active(*v));
        let whole = match (&seq.steps.elements, vector) {
            (Some(like), Some(v)) => Some(self.adjoint(self.w.e.ty(v), like.clone())),
            _ => None,
        };
        let mark = self.w.mark();
        let walked = self.walked(seq, whole)?;
        let (outer, first) = (walked.outer, walked.first());
        let (n, last) = self.bounds(outer, seq);
        let (span, next) = (self.span(outer + 1, n), self.w.e.val(walked.next));
        let mut kept = self.kept_by_chain(seq, &walked);
        let mut extras = vec![];
        kept.retain(|level| {
            let Some(extra) = self.extra(outer, span, *level) else { return false };
            extras.push(extra);
            true
        });
        let next = self.w.e.now(next);
        let (chain, tables) = self.w.scan(outer, (last, n), next, extras);
        self.w.forget(mark);
        let tables = self.apart(seq.steps.n, tables);
        let tables: Vec<(usize, Table)> = kept.into_iter().map(|l| l - first).zip(tables).collect();
        self.others(seq, walked, chain, &tables)?;
        if let (Some(whole), Some(v)) = (whole, vector) {
            let contributions = self.take(whole);
            self.back(v, contributions)?;
        }
        Ok(chain)
    }

    /// Tables of a scan within a step, as vectors of their own where other steps have other numbers of elements: each may be
    /// kept without the rest.
    fn apart(&mut self, n: Val, tables: Vec<Table>) -> Vec<Table> {
        let (count, depth) = (self.w.e.now(n), self.w.e.depth());
        let Some(outer) = self.step.filter(|_| !tables.is_empty()) else { return tables };
        if self.fixed_outside(outer, count, Place::at(depth)).is_some() {
            return tables;
        }
        let mut each = |table| {
            let column = self.w.column(&[n], table);
            Table::whole(self.w.e.bind_always(column))
        };
        tables.into_iter().map(&mut each).collect()
    }

    /// The number of steps and the adjoint of the last state, in the scope of `outer` variables.
    fn bounds(&mut self, outer: usize, seq: &Sequence) -> (Id, Id) {
        let terms = &mut self.w.e.terms;
        let mut out = |v: Val| terms.shift(v.id, outer - v.depth);
        (out(seq.steps.n), out(seq.last))
    }

    /// One walk through a step; its scope stays open.
    fn walked(&mut self, seq: &Sequence, whole: Option<usize>) -> Result<Walked> {
        let (outer, scope) = (self.w.e.depth(), self.w.env.len());
        let ds = self.w.e.enter(seq.ty.tangent());
        let j = self.w.e.enter(Ty::int());
        let k = self.mirrored(seq.steps.n, j);
        let total = match seq.each {
            None => ds,
            Some(each) => {
                let own = self.element(k, each);
                let ds = self.w.e.now(ds);
                let sum = self.w.e.add(ds, own);
                self.w.e.bind(sum)
            }
        };
        let number = self.likes.len();
        let of_element = if whole.is_some() { Active::Adjoint(number + 1) } else { Active::No };
        let (s, x) = self.step_variables(&seq.steps, k, Active::Adjoint(number), of_element);
        let like = Like { val: s, sizes: seq.steps.like.sizes.clone() };
        self.adjoint(seq.ty, like.clone());
        let sizes = self.w.env.last().map(|e| e.sizes.clone()).unwrap_or_default();
        self.adjoint(self.w.e.ty(x.id), Like { val: x, sizes });
        self.frames.push(Default::default());
        let contribution = self.whole(total);
        let around = self.step.replace(outer);
        let done = self.step_back(&seq.steps, &seq.kept, k, contribution);
        self.step = around;
        self.w.env.truncate(scope);
        done?;
        let own = self.take(number);
        if let Some(whole) = whole {
            for p in self.take(number + 1) {
                let mut p = p.now(&mut self.w.e);
                let at = self.w.e.now(k);
                p.steps.insert(0, Step::At(vec![self.w.e.terms.shift(at, p.loops())]));
                self.collect(whole, p);
            }
        }
        self.w.carried = Some(0..0);
        let next = self.w.force(seq.ty, &like, own);
        self.w.carried = None;
        let next = next?;
        let frame = self.frames.pop().unwrap_or_default();
        let mut contributions = vec![];
        for (adjoint, list) in frame {
            contributions.extend(list.into_iter().map(|p| (adjoint, p.now(&mut self.w.e))));
        }
        let lets = (outer + 2..self.w.e.depth()).filter_map(|l| self.w.e.let_value(l)).collect();
        Ok(Walked { outer, k, lets, next, contributions })
    }

    /// Levels of the lets that the chain makes, takes work for, and other variables ask for.
    fn kept_by_chain(&self, seq: &Sequence, walked: &Walked) -> Vec<usize> {
        let (first, top) = (walked.first(), self.w.e.depth());
        if !seq.keeps {
            return vec![];
        }
        let mut chain = vec![false; top - first];
        self.mark(walked.next, top, 0, first, &mut chain);
        for level in (first..top).rev() {
            if chain[level - first] {
                self.mark(walked.lets[level - first], level, 0, first, &mut chain);
            }
        }
        for level in first..top {
            chain[level - first] |= self.is_column(walked.lets[level - first], level, first, &chain);
        }
        let changes = self.changes(walked);
        let mut wanted = vec![false; top - first];
        for (_, p) in &walked.contributions {
            p.clone().map(&mut |id, loops| {
                self.mark(id, top, loops, first, &mut wanted);
                id
            });
        }
        let mut kept = vec![];
        for level in (first..top).rev() {
            if !wanted[level - first] {
                continue;
            }
            let worth = chain[level - first] && changes[level - first];
            if worth && !self.is_cheap(walked.lets[level - first], level, first, &mut Cost::default()) {
                kept.push(level);
            } else {
                self.mark(walked.lets[level - first], level, 0, first, &mut wanted);
            }
        }
        kept.reverse();
        kept
    }

    /// Whether a let of a step is a table of a scan that the chain runs (see [`Reverse::apart`]).
    fn is_column(&self, id: Id, depth: usize, first: usize, chain: &[bool]) -> bool {
        let terms = &self.w.e.terms;
        let Head::Build(1) = terms.head(id) else { return false };
        let mut of = terms.kids(id)[1];
        while let Head::Get(..) = terms.head(of) {
            of = terms.kids(of)[0];
        }
        let (Head::Index(1), [_, scan]) = (terms.head(of), terms.kids(of)) else { return false };
        let Head::Var(i, _) = terms.head(*scan) else { return false };
        let level = depth.checked_sub(i as usize);
        level
            .and_then(|l| l.checked_sub(first))
            .is_some_and(|l| chain[l] && self.w.e.let_value(l + first).is_some_and(|v| terms.head(v) == Head::Scan))
    }

    /// Which lets differ from step to step.
    fn changes(&self, walked: &Walked) -> Vec<bool> {
        let (outer, first) = (walked.outer, walked.first());
        let mut out: Vec<bool> = vec![];
        for (at, value) in walked.lets.iter().enumerate() {
            let (level, free) = (first + at, self.w.e.terms.variables(*value));
            let own = (outer..first).any(|l| free.has(level - 1 - l));
            out.push(own || (0..at).any(|l| out[l] && free.has(at - 1 - l)));
        }
        out
    }

    /// Marks the lets that a term where `depth` variables are in scope reads, the term under loops.
    fn mark(&self, id: Id, depth: usize, loops: usize, first: usize, marks: &mut [bool]) {
        let free = self.w.e.terms.variables(id);
        for level in first..depth {
            marks[level - first] |= free.has(depth - 1 - level + loops);
        }
    }

    /// Whether a term of a step is hardly more than a read, with the lets that it needs.
    fn is_cheap(&self, id: Id, depth: usize, first: usize, cost: &mut Cost) -> bool {
        let terms = &self.w.e.terms;
        cost.nodes += 1;
        let integer = terms.ty(id) == Ty::int() || terms.ty(id) == Ty::bool();
        let fits = match terms.head(id) {
            Head::Var(i, _) => return self.is_cheap_level(depth - 1 - i as usize, first, cost),
            Head::Build(_) if is_selection(terms, id) => {
                let free = terms.variables(id);
                return (first..depth).all(|l| !free.has(depth - 1 - l) || self.is_cheap_level(l, first, cost));
            }
            Head::Const(_) | Head::Get(..) | Head::Tuple | Head::If => true,
            Head::Index(_) => {
                cost.reads += 1;
                true
            }
            Head::Size(_) => matches!(terms.head(terms.kids(id)[0]), Head::Var(..)),
            Head::Op(op) => {
                cost.reads += usize::from(!integer);
                integer || matches!(op.row().class, Class::Cheap | Class::Multiply)
            }
            _ => false,
        };
        let within = cost.reads <= CHEAP.reads && cost.nodes <= CHEAP.nodes;
        fits && within && terms.kids(id).iter().all(|k| self.is_cheap(*k, depth, first, cost))
    }

    fn is_cheap_level(&self, level: usize, first: usize, cost: &mut Cost) -> bool {
        match level.checked_sub(first).and_then(|_| self.w.e.let_value(level)) {
            Some(value) => self.is_cheap(value, level, first, cost),
            None => true,
        }
    }

    /// A let of a step as something that its scan gives, where its sizes are known around it.
    fn extra(&mut self, outer: usize, span: Span, level: usize) -> Option<Extra> {
        let value = self.w.e.let_value(level)?;
        let id = self.w.e.level(level);
        let of = self.w.e.val(id);
        let (made, sizes) = match self.sizes_outside(outer, value, Place::at(level)) {
            Some(sizes) => (of, sizes),
            None => {
                let Head::Build(1) = self.w.e.terms.head(value) else { return None };
                let [n, each] = *self.w.e.terms.kids(value) else { return None };
                let sizes = self.sizes_outside(outer, each, Place { depth: level, under: 1 })?;
                let n = self.w.e.terms.shift(n, self.w.e.depth() - level);
                let (most, made) = self.padded(outer, span, (of, n), &sizes)?;
                (made, [vec![most], sizes].concat())
            }
        };
        let start = self.w.stand_in_of(self.w.e.ty(value), &mut sizes.into_iter())?;
        Some(Extra { value: made, start })
    }

    /// What the steps give to other variables than the state, as a loop over them, in the order in which the chain takes
    /// them: what it adds up may be added up as the chain goes, and what the chain keeps for it need not be a table.
    fn others(&mut self, seq: &Sequence, walked: Walked, chain: Table, tables: &[(usize, Table)]) -> Result<()> {
        if walked.contributions.is_empty() {
            return Ok(());
        }
        self.looped_as(seq.leaving, &[seq.steps.n], |me, vars| {
            let j = vars[0];
            let k = me.mirrored(seq.steps.n, j);
            let ds = me.before(j, seq.last, chain);
            let ds = me.w.e.bind(ds);
            let (outer, first) = (walked.outer, walked.first());
            let mut stands = vec![ds, j];
            for (at, value) in walked.lets.iter().enumerate() {
                let table = tables.iter().find(|(l, _)| *l == at);
                let here = match table {
                    _ if me.is_level(walked.k, first + at) => k,
                    Some((_, table)) => {
                        let row = me.w.row(&[j], *table);
                        me.w.e.bind(row)
                    }
                    None => {
                        let again = me.elsewhere(*value, (first + at, 0), outer, &stands);
                        me.w.e.bind(again)
                    }
                };
                stands.push(here);
            }
            let top = first + walked.lets.len();
            for (adjoint, p) in walked.contributions {
                let p = p.map(&mut |id, loops| me.elsewhere(id, (top, loops), outer, &stands));
                me.collect(adjoint, Contribution { depth: me.w.e.depth(), ..p });
            }
            Ok(())
        })
    }

    /// Whether a value is the variable of a level.
    fn is_level(&self, v: Val, level: usize) -> bool {
        matches!(self.w.e.terms.head(v.id), Head::Var(i, _) if v.depth - 1 - i as usize == level)
    }

    /// A term that stood where `depth` variables were in scope, under loops, where the work stands now: the variables
    /// from `outer` on are what stands for them.
    fn elsewhere(&mut self, id: Id, (depth, loops): (usize, usize), outer: usize, stands: &[Val]) -> Id {
        let now = self.w.e.depth();
        self.w.e.terms.map_free(id, loops, &mut |t, i, ty, under| {
            let level = depth - 1 - i as usize;
            match level.checked_sub(outer) {
                Some(at) => t.shift(stands[at].id, now - stands[at].depth + loops + under),
                None => t.var((now - 1 - level + loops + under) as u32, ty),
            }
        })
    }
}
