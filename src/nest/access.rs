//! Follows a function and says which accesses are in the bounds of their buffers, which are not, and what is open.
//!
//! An access is wrong where there is an example of sizes and iterations in which it is reached and out of bounds; nothing
//! but data may decide beside the example whether it is reached, and data may be anything. It must not know how the nest
//! was made.

use super::form::{Atom, Form};
use super::races::{Access, Guard, Race, is_clear};
use super::value::{Facts, Known, UNKNOWN, Values};
use super::{Arg, Buf, Expr, Func, Loop, Slot, Stmt, Var, walk};
use crate::affine::Linear;
use crate::ir::{Scalar, Ty, TyKind};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};

/// Steps of a proof that an access is in bounds, and that it is not.
const FUEL: [u32; 2] = [150, 24];

/// Tensors have fewer elements, about.
const NO_SIZE: i64 = 1 << 26;

/// What following a function found.
#[derive(Default)]
pub(super) struct Found {
    /// The first thing that is proved wrong.
    pub(super) wrong: Option<String>,
    /// What is neither proved right nor wrong.
    pub(super) open: Vec<String>,
    /// Accesses, and loops whose iterations are to be independent, that were looked at.
    pub(super) looked: [usize; 2],
}

/// A buffer, or a part of it.
#[derive(Clone)]
struct Place {
    /// Which one it is of all that the function takes.
    id: usize,
    root: Buf,
    offset: Form,
    /// In numbers, where it is known.
    size: Option<Form>,
    /// Whether it is memory of this function that nothing was written to yet.
    unwritten: bool,
}

struct Around<'a> {
    of: &'a Loop,
    atom: u32,
    places: usize,
}

/// A function that is being followed.
pub(super) struct Walk<'a> {
    pub(super) values: Values<'a>,
    places: FxHashMap<Buf, Place>,
    taken: usize,
    /// The buffers whose memory is gone.
    gone: FxHashSet<usize>,
    alive: Vec<usize>,
    marks: FxHashMap<u32, usize>,
    guards: Vec<Guard>,
    loops: Vec<Around<'a>>,
    accesses: Vec<Access>,
    judged: usize,
    /// Variables some of whose values are not proved to be at least 0.
    negative: FxHashSet<Var>,
    again: bool,
    /// Whether to say what is open.
    thorough: bool,
    pub(super) found: Found,
}

/// Follows a function; the types of the parameters say which sizes are whose, where they are known.
pub(super) fn follow(func: &Func, params: Option<&[Ty]>, thorough: bool) -> Found {
    let mut negative = FxHashSet::default();
    loop {
        let mut walk = Walk::new(func, negative, thorough);
        walk.params(params);
        walk.block(&func.body);
        func.results.iter().for_each(|r| walk.arg(r));
        if !walk.again {
            return walk.found;
        }
        negative = walk.negative;
    }
}

impl<'a> Walk<'a> {
    fn new(func: &'a Func, negative: FxHashSet<Var>, thorough: bool) -> Walk<'a> {
        Walk {
            values: Values::new(func),
            places: FxHashMap::default(),
            taken: 0,
            gone: FxHashSet::default(),
            alive: vec![],
            marks: FxHashMap::default(),
            guards: vec![],
            loops: vec![],
            accesses: vec![],
            judged: 0,
            negative,
            again: false,
            thorough,
            found: Found::default(),
        }
    }

    fn wrong(&mut self, what: impl FnOnce() -> String) {
        if self.found.wrong.is_none() {
            self.found.wrong = Some(what());
        }
    }

    fn params(&mut self, tys: Option<&[Ty]>) {
        let func = self.values.func;
        let mut slots = func.params.iter().copied();
        for ty in tys.unwrap_or_default() {
            self.param(*ty, &Some(Linear::constant(1)), &mut slots);
        }
        let rest: Vec<Slot> = slots.collect();
        self.slots(&rest);
        let mut written = FxHashSet::default();
        walk::visit(&func.body, &mut |s| {
            if let Some(b) = stored(s) {
                written.insert(b);
            }
        });
        let inputs = func.params.iter().filter_map(|s| if let Slot::Data(b) = s { Some(*b) } else { None });
        self.values.inputs = inputs.filter(|b| !written.contains(b)).collect();
    }

    /// A parameter of a type: sizes, then the buffers of what has them.
    fn param(&mut self, ty: Ty, around: &Option<Form>, slots: &mut impl Iterator<Item = Slot>) {
        match ty.kind() {
            TyKind::Tuple(parts) => parts.iter().for_each(|p| self.param(*p, around, slots)),
            TyKind::Tensor(rank, elem) => {
                let mut size = around.clone();
                for _ in 0..*rank {
                    let Some(slot) = slots.next() else { return };
                    self.slots(&[slot]);
                    let (Slot::Size(v) | Slot::Scalar(v)) = slot else { return };
                    let form = self.values.vars[&v].form.clone();
                    size = size.and_then(|s| self.values.forms.times(&s, &form));
                }
                self.param(*elem, &size, slots);
            }
            TyKind::Scalar(_) | TyKind::String | TyKind::Var(..) => {
                let Some(slot) = slots.next() else { return };
                self.slots(&[slot]);
                if let Slot::Data(b) = slot
                    && let Some(p) = self.places.get_mut(&b)
                {
                    p.size.clone_from(around);
                }
            }
        }
    }

    fn slots(&mut self, slots: &[Slot]) {
        for slot in slots {
            match slot {
                Slot::Size(v) => drop(self.values.declare(*v, Atom::Natural)),
                Slot::Scalar(v) => drop(self.values.declare(*v, Atom::Any)),
                Slot::Data(b) => self.place(*b, None, false),
            }
        }
    }

    fn place(&mut self, b: Buf, size: Option<Form>, unwritten: bool) {
        self.taken += 1;
        let place = Place { id: self.taken, root: b, offset: Linear::constant(0), size, unwritten };
        self.places.insert(b, place);
        self.alive.push(self.taken);
    }

    fn block(&mut self, stmts: &'a [Stmt]) {
        stmts.iter().for_each(|s| self.stmt(s));
    }

    /// A block in which something holds, and whose declarations end with it.
    fn under(&mut self, known: Facts, stmts: &'a [Stmt]) {
        let (facts, guards) = (self.values.facts.len(), self.guards.len());
        self.assume(known);
        let inner = (self.values.facts.len(), self.guards.len());
        self.block(stmts);
        let asked = self.asked_since(inner);
        self.values.facts.truncate(facts);
        self.guards.truncate(guards);
        self.guards.extend(asked);
    }

    /// What conditions in a block that ends have asked, each in its iteration or arm: no fact outside, but it may be that
    /// what follows is not reached.
    fn asked_since(&self, (facts, guards): (usize, usize)) -> Option<Guard> {
        let mut about: BTreeSet<u32> = self.guards[guards..].iter().flat_map(|g| g.about.clone()).collect();
        self.values.facts[facts..].iter().for_each(|f| self.values.forms.reach(f, &mut about));
        Some(Guard { about }).filter(|g| !g.about.is_empty())
    }

    fn assume(&mut self, known: Facts) {
        for form in known.forms {
            // What is true of all sizes that there are only makes proofs longer.
            if form.offset() >= NO_SIZE {
                continue;
            }
            self.values.facts.push(form);
        }
        self.guards.extend(known.beyond.map(|b| Guard { about: b.about }));
    }

    fn stmt(&mut self, s: &'a Stmt) {
        s.exprs().into_iter().for_each(|e| self.expr(e));
        match s {
            Stmt::Let(v, e) => self.values.bind(*v, e),
            Stmt::Mut(v, e) | Stmt::Set(v, e) => self.set(*v, Some(e)),
            Stmt::SetLane(v, ..) => self.set(*v, None),
            Stmt::Alloc(b, dims) => self.alloc(*b, dims),
            Stmt::Point(b, of, at) => {
                let at = self.values.form(at);
                if let Some(p) = self.places.get(of).cloned()
                    && let Some(offset) = p.offset.plus(&at, 1)
                {
                    self.places.insert(*b, Place { offset, ..p });
                }
            }
            Stmt::Store(b, at, _) => self.access(*b, at, None, true),
            Stmt::MaskedStore(b, at, _, mask) => self.access(*b, at, Some(mask), true),
            Stmt::StoreLane(b, at, lane, _) => self.lane_store(*b, at, lane),
            Stmt::Check(c, ..) => {
                self.values.pin(c);
                let known = self.values.facts_of(c, true);
                self.assume(known);
            }
            Stmt::Leave(_, c) => {
                let known = self.values.facts_of(c, false);
                self.assume(known);
            }
            Stmt::For(l) => self.run(l),
            Stmt::If(c, a, b) => {
                let known = [self.values.facts_of(c, true), self.values.facts_of(c, false)];
                let [yes, no] = known;
                self.under(yes, a);
                self.forget(a);
                self.under(no, b);
                self.forget(b);
            }
            Stmt::Mark(m) => drop(self.marks.insert(*m, self.alive.len())),
            Stmt::Reset(m) => {
                let from = self.marks.get(m).copied().unwrap_or(self.alive.len());
                self.gone.extend(self.alive.drain(from.min(self.alive.len())..));
            }
            Stmt::Call(_, args, slots) => {
                args.iter().for_each(|a| self.arg(a));
                self.slots(slots);
            }
            Stmt::Print(_, args, v) => {
                args.iter().for_each(|a| self.arg(a));
                self.values.declare(*v, Atom::Natural);
            }
        }
    }

    /// A variable that is set more than once: it is at least 0 where all its values are, taking it to be so.
    fn set(&mut self, v: Var, e: Option<&Expr>) {
        let info = self.values.func.var(v);
        let integer = info.ty == Scalar::I64 && info.lanes == 1;
        let natural = integer && !self.negative.contains(&v);
        if natural && let Some(e) = e {
            let form = self.values.form(e);
            if !self.values.holds(&form, FUEL[1]) {
                self.negative.insert(v);
                self.again = true;
            }
        }
        self.renew(v);
    }

    fn renew(&mut self, v: Var) {
        let info = self.values.func.var(v);
        let natural = info.ty == Scalar::I64 && info.lanes == 1 && !self.negative.contains(&v);
        let form = if natural { self.values.forms.fresh(Atom::Natural) } else { self.values.any(info.ty) };
        self.values.vars.insert(v, Known { form, latest: UNKNOWN, says: None });
    }

    /// Forgets the values of what statements set.
    fn forget(&mut self, stmts: &[Stmt]) {
        let mut set = vec![];
        walk::visit(stmts, &mut |s| {
            if let Stmt::Set(v, _) | Stmt::SetLane(v, ..) = s {
                set.push(*v);
            }
        });
        set.into_iter().for_each(|v| self.renew(v));
    }

    fn alloc(&mut self, b: Buf, dims: &[Expr]) {
        let mut size = Some(Linear::constant(i64::from(self.values.func.buf(b).lanes)));
        for d in dims {
            let form = self.values.form(d);
            let form = match self.values.holds(&form, FUEL[1]) {
                true => form,
                false => self.values.forms.made(Atom::Max(form, Linear::constant(0))),
            };
            size = size.and_then(|s| self.values.forms.times(&s, &form));
        }
        self.place(b, size, true);
    }

    fn run(&mut self, l: &'a Loop) {
        self.forget(&l.body);
        let from = self.values.form(&l.from);
        // One iteration or none, by a condition: where there is one, the condition holds.
        let (to, known) = match &l.to {
            Expr::Cond(p) if l.from == Expr::int(0) && p[2] == Expr::int(0) => {
                (self.values.form(&p[1]), self.values.facts_of(&p[0], true))
            }
            to => (self.values.form(to), Facts::default()),
        };
        let (facts, guards, alive) = (self.values.facts.len(), self.guards.len(), self.alive.len());
        self.assume(known);
        let asked = self.iterate(l, &from, &to);
        self.values.facts.truncate(facts);
        self.guards.truncate(guards);
        self.guards.extend(asked);
        self.alive.truncate(alive);
        self.forget(&l.body);
    }

    /// The iterations of a loop; what they ask.
    fn iterate(&mut self, l: &'a Loop, from: &Form, to: &Form) -> Option<Guard> {
        let (most, some) = (to.plus(&Linear::constant(1), -1)?, to.plus(from, -1)?);
        if self.values.holds(&some.times(-1)?, FUEL[1]) {
            let mut written = vec![];
            walk::visit(&l.body, &mut |s| written.extend(stored(s)));
            written.into_iter().for_each(|b| self.written(b));
            return None;
        }
        self.values.facts.push(some.plus(&Linear::constant(1), -1)?);
        let atom = self.values.declare(l.var, Atom::Range(from.clone(), most));
        let (first, places) = (self.accesses.len(), self.taken);
        self.loops.push(Around { of: l, atom, places });
        self.judged += usize::from(l.is_judged());
        let inner = (self.values.facts.len(), self.guards.len());
        self.block(&l.body);
        let asked = self.asked_since(inner);
        self.judged -= usize::from(l.is_judged());
        self.loops.pop();
        if l.is_judged() {
            self.judge(l, atom, places, first);
        }
        if self.judged == 0 {
            self.accesses.clear();
        }
        asked
    }

    /// Looks at the accesses, from so many on, of a loop whose iterations are to be independent.
    fn judge(&mut self, l: &Loop, atom: u32, places: usize, first: usize) {
        self.found.looked[1] += 1;
        let name = self.values.func.var(l.var).name.clone();
        let mut shared: BTreeMap<usize, Vec<&Access>> = BTreeMap::new();
        for a in self.accesses[first..].iter().filter(|a| a.place <= places) {
            shared.entry(a.place).or_default().push(a);
        }
        let mut judge = Race::new(&mut self.values, l, atom);
        let (mut wrong, mut open) = (None, None);
        for all in shared.values().filter(|all| all.iter().any(|a| a.write)) {
            let of = &judge.values.func.buf(all[0].buf).name;
            let text = format!("`{name}` that are not independent: two may use one place of `{of}`");
            if judge.is_proved(all) {
                wrong = wrong.or(Some(text));
            } else if self.thorough && !judge.is_excluded(all) {
                open = open.or(Some(text));
            }
        }
        self.found.open.extend(open.map(|t| format!("iterations of {t}")));
        if let Some(t) = wrong {
            self.wrong(|| format!("has iterations of {t}"));
        }
    }

    fn expr(&mut self, e: &'a Expr) {
        match e {
            Expr::Cond(p) => {
                self.expr(&p[0]);
                for (arm, holds) in [(&p[1], true), (&p[2], false)] {
                    let known = self.values.facts_of(&p[0], holds);
                    let (facts, guards) = (self.values.facts.len(), self.guards.len());
                    self.assume(known);
                    self.expr(arm);
                    self.values.facts.truncate(facts);
                    self.guards.truncate(guards);
                }
            }
            Expr::PerLane(v, n, p) => {
                self.expr(&p[0]);
                let most = self.values.form(&p[0]);
                let lanes = Linear::constant(i64::from(*n));
                let to = self.values.forms.made(Atom::Min(most, lanes));
                let Some(last) = to.plus(&Linear::constant(1), -1) else { return };
                let facts = self.values.facts.len();
                self.values.facts.push(last.clone());
                self.values.declare(*v, Atom::Range(Linear::constant(0), last));
                self.expr(&p[1]);
                self.values.facts.truncate(facts);
            }
            _ => {
                e.kids().iter().for_each(|k| self.expr(k));
                match e {
                    Expr::Load(b, at) => self.access(*b, at, None, false),
                    Expr::MaskedLoad(b, p) => self.access(*b, &p[0], Some(&p[1]), false),
                    _ => {}
                }
            }
        }
    }

    fn arg(&mut self, a: &Arg) {
        let Arg::Data(b, _) = a else { return };
        if let Some(p) = self.places.get(b).cloned() {
            self.living(&p);
            let at = self.values.any(Scalar::I64);
            self.record(&p, at, false);
        }
    }

    /// One lane of a buffer of vectors is written.
    fn lane_store(&mut self, b: Buf, at: &Expr, lane: &Expr) {
        let lanes = i64::from(self.values.func.buf(b).lanes);
        let text = at;
        let (at, lane) = (self.values.form(at), self.values.form(lane));
        if let Some(at) = at.times(lanes).and_then(|a| a.plus(&lane, 1)) {
            self.access_at(b, at, true, text);
        }
    }

    fn access(&mut self, b: Buf, at: &Expr, mask: Option<&Expr>, write: bool) {
        let (facts, guards) = (self.values.facts.len(), self.guards.len());
        if let Some(mask) = mask {
            let known = self.values.facts_of(mask, true);
            self.assume(known);
        }
        let lanes = self.values.func.buf(b).lanes;
        let mut form = Some(self.values.form(at));
        if lanes > 1 {
            let lane = self.values.lane(lanes);
            form = form.and_then(|f| f.times(i64::from(lanes))).and_then(|f| f.plus(&lane, 1));
        }
        if let Some(form) = form {
            self.access_at(b, form, write, at);
        }
        self.values.facts.truncate(facts);
        self.guards.truncate(guards);
    }

    fn living(&mut self, p: &Place) {
        if self.gone.contains(&p.id) {
            let name = self.values.func.buf(p.root).name.clone();
            self.wrong(|| format!("uses `{name}` after its memory was given back"));
        }
    }

    fn access_at(&mut self, b: Buf, at: Form, write: bool, text: &Expr) {
        let Some(p) = self.places.get(&b).cloned() else { return };
        self.living(&p);
        self.found.looked[0] += 1;
        if write {
            self.written(p.root);
        } else if p.unwritten && !self.later(&p) && self.happens(&Linear::constant(0)) {
            let name = self.values.func.buf(p.root).name.clone();
            self.wrong(|| format!("reads `{name}` before it is written"));
        }
        let Some(at) = at.plus(&p.offset, 1) else { return };
        self.in_bounds(&p, &at, text);
        self.record(&p, at, write);
    }

    fn written(&mut self, root: Buf) {
        self.places.values_mut().filter(|p| p.root == root).for_each(|p| p.unwritten = false);
    }

    /// Whether a loop around, inside of what has a buffer, writes it later.
    fn later(&self, p: &Place) -> bool {
        self.loops.iter().filter(|l| l.places >= p.id).any(|l| {
            let mut writes = false;
            walk::visit(&l.of.body, &mut |s| writes |= stored(s) == Some(p.root));
            writes
        })
    }

    fn record(&mut self, p: &Place, at: Form, write: bool) {
        if self.judged > 0 && self.loops.iter().any(|l| l.of.is_judged() && l.places >= p.id) {
            self.accesses.push(Access {
                place: p.id,
                buf: p.root,
                at,
                write,
                facts: self.values.facts.clone(),
                guards: self.guards.clone(),
                loops: self.loops.iter().map(|l| l.atom).collect(),
            });
        }
    }

    fn in_bounds(&mut self, p: &Place, at: &Form, text: &Expr) {
        let below = at.times(-1).and_then(|f| f.plus(&Linear::constant(1), -1));
        let above = p.size.as_ref().and_then(|n| at.plus(n, -1));
        for end in [below, above.clone()].into_iter().flatten() {
            if self.happens(&end) {
                let name = self.values.func.buf(p.root).name.clone();
                let text = self.values.func.expr(text);
                self.wrong(|| format!("accesses `{name}` out of bounds, at {text}"));
                return;
            }
        }
        if self.thorough {
            let low = self.values.holds(at, FUEL[0]);
            let last = above.and_then(|f| f.times(-1)).and_then(|f| f.plus(&Linear::constant(1), -1));
            let high = last.is_some_and(|f| self.values.holds(&f, FUEL[0]));
            if !(low && high) {
                let side = if high { "below 0" } else { "behind its end" };
                let name = &self.values.func.buf(p.root).name;
                self.found.open.push(format!("an access of `{name}` may be {side}"));
            }
        }
    }

    /// Whether a form is at least 0 in an example in which this place is reached.
    fn happens(&mut self, f: &Form) -> bool {
        self.values.forms.is_witnessed(f, &self.values.facts) && {
            let loops: Vec<u32> = self.loops.iter().map(|l| l.atom).collect();
            is_clear(&mut self.values.forms, &[f], &loops, &self.guards)
        }
    }
}

/// The buffer that a statement writes.
fn stored(s: &Stmt) -> Option<Buf> {
    match s {
        Stmt::Store(b, ..) | Stmt::MaskedStore(b, ..) | Stmt::StoreLane(b, ..) => Some(*b),
        _ => None,
    }
}
