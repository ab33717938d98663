//! Reverse mode of what runs in order: folds, scans, products, greatest and least elements.
//!
//! A fold forwards is a scan that keeps all states. Backwards, another scan carries the adjoint of
//! the state from the last step to the first; what the steps give to other variables is then a loop
//! like any other, since state and adjoint of each step are known.

use super::adjoint::{Leaving, Reverse};
use super::emit::Val;
use super::gather::Like;
use super::piece::{Piece, Step};
use super::split::takes_work;
use super::walk::{Active, Entry, Row, has_floats};
use crate::diag::Result;
use crate::ir::{Head, Id, Monoid, Op, Scalar, Terms, Ty};

/// The parts of a fold or scan, and what is known of its result.
struct Sequence {
    n: Val,
    init: Val,
    body: Id,
    /// The elements of a fold.
    elements: Option<Like>,
    states: Val,
    like: Like,
    ty: Ty,
    /// The adjoint of the last state, of a fold; the zero of one, of a scan.
    last: Val,
    /// The adjoints of all states, of a scan.
    each: Option<Val>,
    /// How the loop over the steps is left.
    leaving: fn(Vec<Id>) -> Leaving,
    /// A table over the steps of what their bodies bind.
    table: Option<(Val, Vec<Row>)>,
}

impl Reverse<'_, '_> {
    /// Fold or scan.
    pub(super) fn sequence_back(&mut self, id: Id, pieces: Vec<Piece>) -> Result<()> {
        let (head, kids) = (self.w.e.terms.head(id), self.w.e.terms.kids(id).to_vec());
        if !has_floats(self.w.e.ty(kids[0])) {
            return Ok(());
        }
        let dr = self.dense(id, pieces)?;
        let mut seq = self.sequence(id);
        let (last, each) = match head {
            Head::Fold => (dr, None),
            _ => {
                let (of, sizes) = (self.w.e.now(seq.like.val), seq.like.sizes_now(&mut self.w.e));
                let zero = self.w.zero(of, &sizes);
                (self.w.e.val(zero), Some(dr))
            }
        };
        let last = self.w.e.now(last);
        (seq.last, seq.each) = (self.w.e.bind(last), each);
        if !self.over_parts.contains(&id) {
            seq.table = self.w.table_for(id).or_else(|| self.table_of_steps(&seq));
        } else {
            seq.leaving = Leaving::Parts;
        }
        let chain = self.chain(&seq)?;
        self.steps_back(&seq, chain, (head == Head::Fold).then_some(kids[1]))?;
        if self.w.active(kids[0]) {
            let (n, zero, one) = (self.w.e.now(seq.n), self.w.e.int(0), self.w.e.int(1));
            let (chain, last) = (self.w.e.now(chain), self.w.e.now(seq.last));
            let some = self.w.e.op(Op::Gt, [n, zero]);
            let end = self.w.e.sub(n, one);
            let first = self.w.e.put(Head::Index(1), [end, chain]);
            let d = self.w.e.put(Head::If, [some, first, last]);
            let d = self.w.e.bind(d);
            let piece = self.whole(d);
            self.back(kids[0], vec![piece])?;
        }
        Ok(())
    }

    /// A fold or scan with its states.
    fn sequence(&mut self, id: Id) -> Sequence {
        let (head, kids) = (self.w.e.terms.head(id), self.w.e.terms.kids(id).to_vec());
        let like = self.like(kids[0]);
        let (n, elements, states) = match head {
            Head::Fold => {
                let elements = self.like(kids[1]);
                let n = elements.sizes[0];
                (n, Some(elements.clone()), self.states(n, &like, kids[2], &elements))
            }
            _ => (self.w.value(kids[1]), None, self.w.value(id)),
        };
        let (init, body, ty) = (like.val, kids[2], self.w.e.ty(kids[0]));
        let (last, each, leaving, table) = (init, None, Leaving::Loop as fn(_) -> _, None);
        Sequence { n, init, body, elements, states, like, ty, last, each, leaving, table }
    }

    /// All states of a fold but the initial one.
    fn states(&mut self, n: Val, state: &Like, body: Id, elements: &Like) -> Val {
        let (outer, mark) = (self.w.e.depth(), self.w.mark());
        let (n, init) = (self.w.e.now(n), self.w.e.now(state.val));
        let ty = self.w.e.ty(init);
        let s = self.w.e.enter(ty);
        let i = self.w.e.enter(Ty::int());
        let x = self.row(i, elements.val);
        let x = self.w.e.bind(x);
        self.w.push(s);
        self.w.push(x);
        let next = self.w.translate(body);
        self.w.env.truncate(self.w.env.len() - 2);
        let next = self.w.e.close(outer + 2, next);
        self.w.e.leave(outer);
        self.w.forget(mark);
        let scan = self.w.e.put(Head::Scan, [init, n, next]);
        self.w.e.bind(scan)
    }

    fn row(&mut self, i: Val, of: Val) -> Id {
        let (i, of) = (self.w.e.now(i), self.w.e.now(of));
        self.w.e.put(Head::Index(1), [i, of])
    }

    /// The element at `k - 1`, or another value where `k` is 0.
    fn before(&mut self, k: Val, first: Val, of: Val) -> Id {
        let (k, zero, one) = (self.w.e.now(k), self.w.e.int(0), self.w.e.int(1));
        let at_start = self.w.e.op(Op::Eq, [k, zero]);
        let (first, of) = (self.w.e.now(first), self.w.e.now(of));
        let at = self.w.e.sub(k, one);
        let earlier = self.w.e.put(Head::Index(1), [at, of]);
        self.w.e.put(Head::If, [at_start, first, earlier])
    }

    /// `n - 1 - k`.
    fn mirrored(&mut self, n: Val, k: Val) -> Val {
        let (n, k, one) = (self.w.e.now(n), self.w.e.now(k), self.w.e.int(1));
        let end = self.w.e.sub(n, one);
        let m = self.w.e.op(Op::Sub, [end, k]);
        self.w.e.bind(m)
    }

    /// Brings the state and the element or index of step `k` into the scope of the source.
    fn step_variables(&mut self, seq: &Sequence, k: Val, state: Active, element: Active) -> (Val, Val) {
        let s = self.before(k, seq.init, seq.states);
        let s = self.w.e.bind(s);
        self.w.env.push(Entry { val: s, active: state, sizes: seq.like.sizes.clone() });
        let (x, sizes) = match &seq.elements {
            Some(of) => {
                let x = self.row(k, of.val);
                (self.w.e.bind(x), of.sizes.get(1..).unwrap_or_default().to_vec())
            }
            None => (k, vec![]),
        };
        self.w.env.push(Entry { val: x, active: element, sizes });
        self.know_step(seq, k);
        (s, x)
    }

    /// Says what is known of step `k`: its result, and what the table holds of it.
    fn know_step(&mut self, seq: &Sequence, k: Val) {
        let next = self.row(k, seq.states);
        let next = self.w.e.bind(next);
        // What a let is bound in is what the let is.
        let (mut body, mut number) = (seq.body, 0);
        loop {
            self.w.know_inside(body, number, next);
            if self.w.e.terms.head(body) != Head::Let {
                break;
            }
            (body, number) = (self.w.e.terms.kids(body)[1], number + 1);
        }
        let Some((table, rows)) = &seq.table else { return };
        let row = self.row(k, *table);
        let row = self.w.e.bind(row);
        let (values, end) = lets_of(self.w.e.terms, seq.body);
        for (at, kind) in rows.iter().enumerate() {
            let row = self.w.e.now(row);
            let value = match rows.len() {
                1 => row,
                n => self.w.e.get(at as u32, n as u32, row),
            };
            let value = self.w.e.bind(value);
            match kind {
                Row::Let(number) => self.w.know_inside(values[*number], *number, value),
                Row::Table(number, rows) => {
                    let of = values.get(*number).copied().unwrap_or(end);
                    self.w.know_table(of, *number, (value, rows.clone()));
                }
            }
        }
    }

    /// What the bodies of all steps bind that takes work, and the same for folds and scans among it: both ways
    /// back read it. Only what makes no ragged table.
    fn table_of_steps(&mut self, seq: &Sequence) -> Option<(Val, Vec<Row>)> {
        let (values, end) = lets_of(self.w.e.terms, seq.body);
        if !takes_work(self.w.e.terms, seq.body) {
            return None;
        }
        let (outer, mark, scope) = (self.w.e.depth(), self.w.mark(), self.w.env.len());
        let n = self.w.e.now(seq.n);
        let k = self.w.e.enter(Ty::int());
        self.step_variables(seq, k, Active::No, Active::No);
        let (mut rows, mut levels) = (vec![], vec![]);
        for (number, value) in values.iter().copied().chain([end]).enumerate() {
            if let Some((table, inner)) = self.table_inside(value) {
                let row = Row::Table(number, inner);
                self.keep_row(outer, table, row, (&mut rows, &mut levels));
            }
            if number == values.len() {
                break;
            }
            let entry = self.w.entry(value, Active::No);
            if takes_work(self.w.e.terms, value) && has_floats(self.w.e.ty(entry.val.id)) {
                self.keep_row(outer, entry.val, Row::Let(number), (&mut rows, &mut levels));
            }
            self.w.env.push(entry);
        }
        self.w.env.truncate(scope);
        let table = (!rows.is_empty()).then(|| self.table_of(outer, n, levels));
        self.w.e.leave(outer);
        self.w.forget(mark);
        Some((self.w.e.bind(table?), rows))
    }

    /// The table for a fold or scan in the present scope, if it has one.
    fn table_inside(&mut self, id: Id) -> Option<(Val, Vec<Row>)> {
        let sequence = matches!(self.w.e.terms.head(id), Head::Fold | Head::Scan);
        if !sequence || !has_floats(self.w.e.ty(id)) || self.over_parts.contains(&id) {
            return None;
        }
        let seq = self.sequence(id);
        self.table_of_steps(&seq)
    }

    /// Notes a let that a table can hold.
    fn keep_row(&mut self, outer: usize, v: Val, row: Row, (rows, levels): (&mut Vec<Row>, &mut Vec<usize>)) {
        if let Some(level) = self.row_of_table(outer, v)
            && !levels.contains(&level)
        {
            rows.push(row);
            levels.push(level);
        }
    }

    /// The adjoints of the states before each step, in the order of the steps backwards.
    fn chain(&mut self, seq: &Sequence) -> Result<Val> {
        let (outer, mark) = (self.w.e.depth(), self.w.mark());
        let (n, last) = (self.w.e.now(seq.n), self.w.e.now(seq.last));
        let ds = self.w.e.enter(seq.ty.tangent());
        let j = self.w.e.enter(Ty::int());
        let k = self.mirrored(seq.n, j);
        let total = match seq.each {
            None => ds,
            Some(each) => {
                let own = self.row(k, each);
                let ds = self.w.e.now(ds);
                let sum = self.w.e.add(ds, own);
                self.w.e.bind(sum)
            }
        };
        let env = self.w.env.clone();
        self.w.env.iter_mut().for_each(|e| e.active = Active::No);
        let number = self.likes.len();
        let (s, _) = self.step_variables(seq, k, Active::Adjoint(number), Active::No);
        let like = Like { val: s, sizes: seq.like.sizes.clone() };
        self.adjoint(seq.ty, like.clone());
        self.frames.push(Default::default());
        let piece = self.whole(total);
        self.back(seq.body, vec![piece])?;
        let pieces = self.take(number);
        self.frames.pop();
        self.w.env = env;
        let body = self.w.force(seq.ty, &like, pieces)?;
        let body = self.w.e.close(outer + 2, body);
        self.w.e.leave(outer);
        self.w.forget(mark);
        let scan = self.w.e.put(Head::Scan, [last, n, body]);
        Ok(self.w.e.bind(scan))
    }

    /// What the steps give to other variables than the state.
    fn steps_back(&mut self, seq: &Sequence, chain: Val, vector: Option<Id>) -> Result<()> {
        let vector = vector.filter(|v| self.w.active(*v));
        if vector.is_none() && !self.others_active(seq.body, 2) {
            return Ok(());
        }
        let whole = match (&seq.elements, vector) {
            (Some(like), Some(v)) => Some(self.adjoint(self.w.e.ty(v), like.clone())),
            _ => None,
        };
        self.looped_as(seq.leaving, &[seq.n], |me, vars| {
            let (k, mark) = (vars[0], me.w.mark());
            let total = me.total(seq, k, chain);
            let number = me.likes.len();
            let active = if whole.is_some() { Active::Adjoint(number) } else { Active::No };
            let (_, x) = me.step_variables(seq, k, Active::No, active);
            let sizes = me.w.env.last().map(|e| e.sizes.clone()).unwrap_or_default();
            me.adjoint(me.w.e.ty(x.id), Like { val: x, sizes });
            let piece = me.whole(total);
            let done = me.back(seq.body, vec![piece]);
            me.w.env.truncate(me.w.env.len() - 2);
            me.w.forget(mark);
            done?;
            for p in me.take(number) {
                let mut p = p.now(&mut me.w.e);
                let k = me.w.e.now(k);
                let k = me.w.e.terms.shift(k, p.loops());
                p.steps.insert(0, Step::At(vec![k]));
                if let Some(whole) = whole {
                    me.collect(whole, p);
                }
            }
            Ok(())
        })?;
        match (whole, vector) {
            (Some(whole), Some(v)) => {
                let pieces = self.take(whole);
                self.back(v, pieces)
            }
            _ => Ok(()),
        }
    }

    /// The adjoint of the state after step `k`.
    fn total(&mut self, seq: &Sequence, k: Val, chain: Val) -> Val {
        let m = self.mirrored(seq.n, k);
        let later = self.before(m, seq.last, chain);
        let sum = match seq.each {
            None => later,
            Some(each) => {
                let own = self.row(k, each);
                self.w.e.add(own, later)
            }
        };
        self.w.e.bind(sum)
    }

    /// Products, and greatest and least elements, over one index.
    pub(super) fn reduction_back(&mut self, id: Id, m: Monoid, kids: &[Id], pieces: Vec<Piece>) -> Result<()> {
        let dr = self.dense(id, pieces)?;
        let n = self.w.value(kids[0]);
        if m == Monoid::Mul {
            return self.product_back(kids, n, dr);
        }
        let (count, zero) = (self.w.e.now(n), self.w.e.int(0));
        let some = self.w.e.op(Op::Gt, [count, zero]);
        let some = self.w.e.bind(some);
        self.arm(some, |me| {
            let k = me.last_extreme(m, n, kids[1]);
            let piece = me.whole(dr);
            me.under(&[k], |me| me.back(kids[1], vec![piece]))
        })
    }

    /// The last index with the greatest or least value: `max a b` is `b` where they are equal.
    fn last_extreme(&mut self, m: Monoid, n: Val, body: Id) -> Val {
        let k = self.w.last_extreme(m, n, body);
        self.w.e.bind(k)
    }

    fn product_back(&mut self, kids: &[Id], n: Val, dr: Val) -> Result<()> {
        let scalar = self.w.e.ty(kids[1]).as_scalar().unwrap_or(Scalar::F64);
        let others = self.w.products(n, kids[1], scalar);
        self.looped_over(&[n], |me, vars| {
            let by = me.w.product_of_others(n, vars[0], others, scalar);
            let dr = me.w.e.now(dr);
            let d = me.w.e.mul(dr, by);
            let d = me.w.e.bind(d);
            let piece = me.whole(d);
            me.under(vars, |me| me.back(kids[1], vec![piece]))
        })
    }
}

/// The values of the lets that a body begins with, and what they are bound in.
fn lets_of(terms: &Terms, mut body: Id) -> (Vec<Id>, Id) {
    let mut out = vec![];
    while terms.head(body) == Head::Let {
        let kids = terms.kids(body);
        out.push(kids[0]);
        body = kids[1];
    }
    (out, body)
}
