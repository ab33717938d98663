//! What is known of the integers and conditions of a nest where a statement runs: forms of expressions, and facts.
//!
//! It must not know of statements or of buffers' memory.

use super::form::{Atom, Form, Forms};
use super::prove::Proof;
use super::{Buf, Expr, Func, Var};
use crate::affine::Linear;
use crate::ir::{Op, Scalar};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// Steps of a proof about a divisor.
const FUEL: u32 = 24;
/// Later than all atoms: what a condition depends on where that is not followed.
pub(super) const UNKNOWN: u32 = u32::MAX;

/// What holds where a condition does, or does not.
#[derive(Clone, Default)]
pub(super) struct Facts {
    /// Forms that are at least 0.
    pub(super) forms: Vec<Form>,
    /// What the forms do not say; nothing where they say all.
    pub(super) beyond: Option<Beyond>,
}

/// A condition, or a part of it, that no form says.
#[derive(Clone, Default)]
pub(super) struct Beyond {
    /// The latest atom that it depends on.
    pub(super) latest: u32,
    /// The integers that it compares. What it asks of floats is either about data, or about sizes that are too large.
    pub(super) about: BTreeSet<u32>,
}

impl Facts {
    fn and(mut self, other: Facts) -> Facts {
        self.forms.extend(other.forms);
        let beyond = match (self.beyond, other.beyond) {
            (Some(mut a), Some(b)) => {
                a.about.extend(b.about);
                Some(Beyond { latest: a.latest.max(b.latest), ..a })
            }
            (a, b) => a.or(b),
        };
        Facts { forms: self.forms, beyond }
    }
}

/// What is known of a variable.
#[derive(Clone)]
pub(super) struct Known {
    pub(super) form: Form,
    /// The latest atom that it depends on.
    pub(super) latest: u32,
    /// What follows from it, and from its opposite, where it is a condition.
    pub(super) says: Option<Box<[Facts; 2]>>,
}

/// What is known where a statement runs.
pub(super) struct Values<'a> {
    pub(super) func: &'a Func,
    pub(super) forms: Forms,
    pub(super) vars: FxHashMap<Var, Known>,
    /// All that holds there, outermost first.
    pub(super) facts: Vec<Form>,
    /// Buffers that nobody writes.
    pub(super) inputs: FxHashSet<Buf>,
    /// Their elements, by their indices.
    elements: FxHashMap<(Buf, Form), Form>,
    lanes: FxHashMap<u32, Form>,
}

/// The range of a type of integers below 64 bits.
fn of_type(s: Scalar) -> Option<(i64, i64)> {
    let bits = s.bits();
    match s {
        _ if !s.is_int() || bits >= 64 => None,
        Scalar::U8 | Scalar::U16 | Scalar::U32 => Some((0, (1 << bits) - 1)),
        _ => Some((-(1 << (bits - 1)), (1 << (bits - 1)) - 1)),
    }
}

impl<'a> Values<'a> {
    pub(super) fn new(func: &'a Func) -> Values<'a> {
        Values {
            func,
            forms: Forms::default(),
            vars: FxHashMap::default(),
            facts: vec![],
            inputs: FxHashSet::default(),
            elements: FxHashMap::default(),
            lanes: FxHashMap::default(),
        }
    }

    /// Whether a form is proved to be at least 0 here, in so many steps.
    pub(super) fn holds(&mut self, f: &Form, fuel: u32) -> bool {
        if self.forms.is_natural(f) {
            return true;
        }
        if self.forms.is_refuted(f, &self.facts) {
            return false;
        }
        let mark = self.forms.mark();
        let out = Proof { forms: &mut self.forms, fuel }.holds(f, &self.facts);
        self.forms.back(mark);
        out
    }

    /// Declares an integer.
    pub(super) fn declare(&mut self, v: Var, atom: Atom) -> u32 {
        let form = self.forms.choose(atom);
        let latest = self.forms.next() - 1;
        self.vars.insert(v, Known { form, latest, says: None });
        latest
    }

    /// Declares the value of an expression.
    pub(super) fn bind(&mut self, v: Var, e: &Expr) {
        let info = self.func.var(v);
        let form = self.form(e);
        let says = (info.ty == Scalar::Bool).then(|| Box::new([self.facts_of(e, true), self.facts_of(e, false)]));
        let latest = self.latest(e);
        self.vars.insert(v, Known { form, latest, says });
    }

    /// The lane of vectors of so many.
    pub(super) fn lane(&mut self, n: u32) -> Form {
        if let Some(f) = self.lanes.get(&n) {
            return f.clone();
        }
        let f = self.forms.choose(Atom::Range(Linear::constant(0), Linear::constant(i64::from(n) - 1)));
        self.lanes.insert(n, f.clone());
        f
    }

    /// The atoms of lanes.
    pub(super) fn lane_atoms(&self) -> Vec<u32> {
        let mut all: Vec<u32> = self.lanes.values().filter_map(|f| self.forms.latest(f)).collect();
        all.sort_unstable();
        all
    }

    /// An integer of a type of which nothing else is known.
    pub(super) fn any(&mut self, s: Scalar) -> Form {
        match of_type(s) {
            Some((lo, hi)) => self.forms.fresh(Atom::Range(Linear::constant(lo), Linear::constant(hi))),
            None => self.forms.fresh(Atom::Any),
        }
    }

    /// The latest atom that an expression depends on.
    pub(super) fn latest(&self, e: &Expr) -> u32 {
        let own = match e {
            Expr::Load(..) | Expr::MaskedLoad(..) | Expr::PerLane(..) => return UNKNOWN,
            Expr::Var(v) => self.vars.get(v).map_or(UNKNOWN, |k| k.latest),
            Expr::Ramp(..) | Expr::PrefixMask(..) => return UNKNOWN,
            _ => 0,
        };
        e.kids().iter().map(|k| self.latest(k)).max().unwrap_or(0).max(own)
    }

    /// An integer expression, of a vector the one in [`Values::lane`].
    pub(super) fn form(&mut self, e: &Expr) -> Form {
        let ty = self.func.ty(e);
        match e {
            Expr::Lit(l) => l.as_int().map_or_else(|| self.any(ty), Linear::constant),
            Expr::Var(v) => match self.vars.get(v) {
                Some(k) => k.form.clone(),
                None => self.any(ty),
            },
            Expr::Load(b, at) if self.inputs.contains(b) => {
                let at = self.form(at);
                match self.elements.get(&(*b, at.clone())) {
                    Some(f) => f.clone(),
                    None => {
                        let f = self.any(ty);
                        self.elements.insert((*b, at), f.clone());
                        f
                    }
                }
            }
            Expr::Op(op, Scalar::I64, args) if self.func.ty(&args[0]) == Scalar::I64 || *op == Op::Select => {
                self.operation(*op, args).unwrap_or_else(|| self.any(ty))
            }
            Expr::Cast(Scalar::I64, inner) if self.func.ty(inner).is_int() => self.form(inner),
            Expr::Cond(p) if ty == Scalar::I64 => self.choice(&p[0], &p[1], &p[2]),
            Expr::Ramp(p, n) => {
                let (first, step, lane) = (self.form(&p[0]), self.form(&p[1]), self.lane(*n));
                let moved = self.forms.times(&lane, &step).and_then(|m| m.plus(&first, 1));
                moved.unwrap_or_else(|| self.any(ty))
            }
            Expr::Broadcast(e, _) => self.form(e),
            _ => self.any(ty),
        }
    }

    fn choice(&mut self, c: &Expr, a: &Expr, b: &Expr) -> Form {
        let facts = [self.facts_of(c, true), self.facts_of(c, false)];
        // Two conditions of which the facts do not say all are not one.
        let whole = facts.iter().any(|f| f.beyond.is_none() && !f.forms.is_empty());
        let (a, b) = (self.form(a), self.form(b));
        let atom = Atom::Cond(Box::new(facts.map(|f| f.forms)), a, b);
        if whole { self.forms.made(atom) } else { self.forms.fresh(atom) }
    }

    fn operation(&mut self, op: Op, args: &[Expr]) -> Option<Form> {
        if let (Op::Select, [c, a, b]) = (op, args) {
            return Some(self.choice(c, a, b));
        }
        let each: Vec<Form> = args.iter().map(|a| self.form(a)).collect();
        match (op, each.as_slice()) {
            (Op::Add, [a, b]) => a.plus(b, 1),
            (Op::Sub, [a, b]) => a.plus(b, -1),
            (Op::Mul, [a, b]) => self.forms.times(a, b),
            (Op::Neg, [a]) => a.times(-1),
            (Op::Min | Op::Minimum, [a, b]) => Some(self.forms.made(Atom::Min(a.clone(), b.clone()))),
            (Op::Max | Op::Maximum, [a, b]) => Some(self.forms.made(Atom::Max(a.clone(), b.clone()))),
            (Op::Shl, [a, b]) => a.times(1i64.checked_shl(u32::try_from(b.as_constant()?).ok()?)?),
            (Op::Div | Op::FloorDiv | Op::Mod | Op::FloorMod, [n, k]) => self.quotient(op, n, k),
            _ => None,
        }
    }

    fn quotient(&mut self, op: Op, n: &Form, k: &Form) -> Option<Form> {
        let one = Linear::constant(-1);
        let below = k.plus(&one, 1)?;
        if !self.holds(&below, FUEL) {
            return None;
        }
        let quotient = matches!(op, Op::Div | Op::FloorDiv);
        if self.holds(n, FUEL) {
            let q = self.forms.made(Atom::Div(n.clone(), k.clone()));
            return if quotient { Some(q) } else { n.plus(&self.forms.times(&q, k)?, -1) };
        }
        match op {
            Op::FloorMod => Some(self.forms.fresh(Atom::Range(Linear::constant(0), below))),
            Op::Mod => Some(self.forms.fresh(Atom::Range(below.times(-1)?, below))),
            _ => None,
        }
    }

    /// What follows from a condition, or from its opposite; of a mask, in [`Values::lane`].
    pub(super) fn facts_of(&mut self, c: &Expr, holds: bool) -> Facts {
        let mut about = BTreeSet::new();
        self.compared(c, &mut about);
        let unknown = Facts { forms: vec![], beyond: Some(Beyond { latest: self.latest(c), about }) };
        match (c, holds) {
            (Expr::Lit(l), _) => match l.as_bool() {
                Some(v) if v != holds => Facts { forms: vec![Linear::constant(-1)], beyond: None },
                _ => Facts::default(),
            },
            (Expr::Var(v), _) => match self.vars.get(v).and_then(|k| k.says.as_ref()) {
                Some(says) => says[usize::from(!holds)].clone(),
                None => unknown,
            },
            (Expr::All(e), true) | (Expr::Broadcast(e, _), _) => self.facts_of(e, holds),
            (Expr::PrefixMask(n, lanes), true) => {
                let (n, lane) = (self.form(n), self.lane(*lanes));
                self.at_most(&lane, &n, 1).unwrap_or(unknown)
            }
            (Expr::Op(Op::Not, _, args), _) => self.facts_of(&args[0], !holds),
            (Expr::Op(Op::And, _, args), true) | (Expr::Op(Op::Or, _, args), false) => {
                let first = self.facts_of(&args[0], holds);
                first.and(self.facts_of(&args[1], holds))
            }
            (Expr::Cond(p), true) if p[2] == Expr::bool(true) && self.is_known(&p[0]) => self.facts_of(&p[1], true),
            (Expr::Cond(p), true) if p[2] == Expr::bool(false) => {
                let first = self.facts_of(&p[0], true);
                first.and(self.facts_of(&p[1], true))
            }
            (Expr::Cond(p), false) if p[1] == Expr::bool(true) => {
                let first = self.facts_of(&p[0], false);
                first.and(self.facts_of(&p[2], false))
            }
            (Expr::Op(op, _, args), _) if args.len() == 2 && self.func.ty(&args[0]).is_int() => {
                let (a, b) = (self.form(&args[0]), self.form(&args[1]));
                let known = match (op, holds) {
                    (Op::Lt, true) | (Op::Gte, false) => self.at_most(&a, &b, 1),
                    (Op::Lte, true) | (Op::Gt, false) => self.at_most(&a, &b, 0),
                    (Op::Gt, true) | (Op::Lte, false) => self.at_most(&b, &a, 1),
                    (Op::Gte, true) | (Op::Lt, false) => self.at_most(&b, &a, 0),
                    (Op::Eq, true) | (Op::Ne, false) => {
                        let both = (self.at_most(&a, &b, 0), self.at_most(&b, &a, 0));
                        both.0.zip(both.1).map(|(x, y)| x.and(y))
                    }
                    _ => None,
                };
                known.unwrap_or(unknown)
            }
            _ => unknown,
        }
    }

    /// Takes in that a parameter is a number, where a condition says that.
    pub(super) fn pin(&mut self, c: &Expr) {
        let Expr::Op(Op::Eq, _, args) = c else { return };
        for (a, b) in [(0, 1), (1, 0)] {
            if let (Expr::Var(v), Some(n)) = (&args[a], args[b].as_int())
                && let Some(k) = self.vars.get(v)
            {
                self.forms.pin(k.latest, n);
            }
        }
    }

    /// Whether a condition is proved to hold.
    fn is_known(&mut self, c: &Expr) -> bool {
        let facts = self.facts_of(c, true);
        facts.beyond.is_none() && facts.forms.iter().all(|f| self.holds(f, FUEL))
    }

    /// Adds the atoms of integers that a condition compares.
    fn compared(&self, c: &Expr, about: &mut BTreeSet<u32>) {
        match c {
            Expr::Op(_, _, args) if args.iter().any(|a| self.func.ty(a).is_float()) => {}
            Expr::Var(v) => {
                if let Some(k) = self.vars.get(v) {
                    self.forms.reach(&k.form, about);
                    let says = k.says.iter().flat_map(|s| s.iter()).filter_map(|f| f.beyond.as_ref());
                    says.for_each(|b| about.extend(&b.about));
                    if k.says.is_none() && self.func.var(*v).ty == Scalar::Bool {
                        about.insert(UNKNOWN);
                    }
                }
            }
            _ => c.kids().iter().for_each(|k| self.compared(k, about)),
        }
    }

    /// `a + by <= b`.
    fn at_most(&self, a: &Form, b: &Form, by: i64) -> Option<Facts> {
        let form = b.plus(a, -1)?.plus(&Linear::constant(by), -1)?;
        Some(Facts { forms: vec![form], beyond: None })
    }
}
