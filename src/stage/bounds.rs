//! Bounds of integers over ranges of indices, and comparisons that hold of all of them.
//!
//! A bound is a body over what is not ranged over: for a linear form exact, for `min`, `max`, division by a positive
//! number and conditions a box around it. It holds wherever no range is empty.

use super::body::{Bodies, Body, DimId, Node, has_small_parts};
use crate::affine::Linear;
use crate::ir::{Lit, Op, Scalar};

/// Least and greatest value, both included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interval {
    /// The least.
    pub lo: Body,
    /// The greatest.
    pub hi: Body,
}

/// Ranges of indices, outermost first: an inner one may name outer indices.
#[derive(Clone, Default, Debug)]
pub struct Ranges {
    each: Vec<(DimId, Interval)>,
}

impl Ranges {
    /// An index from 0 to below an extent, inside all others.
    pub fn push(&mut self, bodies: &mut Bodies, d: DimId, extent: Body) {
        let (zero, one) = (bodies.int(0), bodies.int(1));
        let hi = bodies.ints(Op::Sub, extent, one);
        self.each.push((d, Interval { lo: zero, hi }));
    }

    /// An index between two bounds, both included, inside all others.
    pub fn push_interval(&mut self, d: DimId, range: Interval) {
        self.each.push((d, range));
    }

    /// Forgets all but the outermost so many.
    pub fn truncate(&mut self, n: usize) {
        self.each.truncate(n);
    }

    /// How many indices have ranges.
    pub fn len(&self) -> usize {
        self.each.len()
    }

    /// Whether no index has a range.
    pub fn is_empty(&self) -> bool {
        self.each.is_empty()
    }

    /// The ranges where a condition holds, or where it does not: comparisons make an index's range smaller.
    pub fn refine(&mut self, bodies: &mut Bodies, c: Body, holds: bool) {
        let Node::Op(op, _, args) = bodies.node(c).clone() else {
            if let Node::If([a, b, e]) = *bodies.node(c)
                && bodies.as_bool(e) == Some(false)
                && holds
            {
                self.refine(bodies, a, true);
                self.refine(bodies, b, true);
            }
            return;
        };
        match (op, holds) {
            (Op::And, true) | (Op::Or, false) => {
                self.refine(bodies, args[0], holds);
                self.refine(bodies, args[1], holds);
            }
            (Op::Not, _) => self.refine(bodies, args[0], !holds),
            (Op::Lt, true) | (Op::Gte, false) => self.below(bodies, args[0], args[1], 1),
            (Op::Lte, true) | (Op::Gt, false) => self.below(bodies, args[0], args[1], 0),
            (Op::Gt, true) | (Op::Lte, false) => self.below(bodies, args[1], args[0], 1),
            (Op::Gte, true) | (Op::Lt, false) => self.below(bodies, args[1], args[0], 0),
            (Op::Eq, true) | (Op::Ne, false) => {
                self.below(bodies, args[0], args[1], 0);
                self.below(bodies, args[1], args[0], 0);
            }
            (Op::Eq, false) | (Op::Ne, true) => self.apart(bodies, args[0], args[1]),
            _ => {}
        }
    }

    /// Takes in that two integers differ: where the innermost index that they do not share cannot be beyond what makes them
    /// equal, its range ends before that.
    fn apart(&mut self, bodies: &mut Bodies, a: Body, b: Body) {
        let Some((k, c, rest)) = self.innermost(bodies, a, b, 0) else { return };
        let (range, one) = (self.each[k].1, bodies.int(1));
        let Some(bound) = rest.times(-c) else { return };
        let bound = bodies.of_linear(&bound);
        if at_most(bodies, range.hi, bound) {
            let before = bodies.ints(Op::Sub, bound, one);
            self.each[k].1.hi = least(bodies, range.hi, before);
        }
        if at_most(bodies, bound, range.lo) {
            let after = bodies.ints(Op::Add, bound, one);
            self.each[k].1.lo = greatest(bodies, range.lo, after);
        }
    }

    /// Of `a - b + by`, the innermost index that has a range, its coefficient, 1 or -1, and the rest, in which nothing is named
    /// that has its range inside of it.
    fn innermost(&self, bodies: &mut Bodies, a: Body, b: Body, by: i64) -> Option<(usize, i64, Linear<Body>)> {
        if !bodies.is_small(a) || !bodies.is_small(b) {
            return None;
        }
        let form = bodies.linear(a)?.plus(&bodies.linear(b)?, -1)?.plus(&Linear::constant(by), 1)?;
        let (k, (rest, c)) = (0..self.each.len()).rev().find_map(|k| {
            let index = bodies.index(self.each[k].0);
            let (rest, c) = form.without(index);
            (c != 0).then_some((k, (rest, c)))
        })?;
        let later: Vec<DimId> = self.each[k..].iter().map(|(d, _)| *d).collect();
        let free = rest.terms().all(|(a, _)| bodies.dims(a).iter().all(|d| !later.contains(d)));
        (free && c.abs() == 1).then_some((k, c, rest))
    }

    /// Takes in that `a + by <= b`, by the innermost index in it whose coefficient is 1 or -1.
    fn below(&mut self, bodies: &mut Bodies, a: Body, b: Body, by: i64) {
        // index * c + rest <= 0
        let Some((k, c, rest)) = self.innermost(bodies, a, b, by) else { return };
        let Some(bound) = rest.times(-c) else { return };
        let (bound, range) = (bodies.of_linear(&bound), self.each[k].1);
        if c == 1 {
            self.each[k].1.hi = least(bodies, range.hi, bound);
        } else {
            self.each[k].1.lo = greatest(bodies, range.lo, bound);
        }
    }

    /// Whether a comparison of integers holds at all indices; some integers are given that are at least 0.
    pub fn hold(&self, bodies: &mut Bodies, c: Body, natural: &[Body]) -> bool {
        let Node::Op(op @ (Op::Lt | Op::Lte | Op::Gt | Op::Gte), _, args) = bodies.node(c).clone() else {
            return false;
        };
        if bodies.ty(args[0]) != Scalar::I64 || !args.iter().all(|b| bodies.is_small(*b)) {
            return false;
        }
        let (less, more) = if matches!(op, Op::Lt | Op::Lte) { (args[0], args[1]) } else { (args[1], args[0]) };
        let by = bodies.int(i64::from(matches!(op, Op::Lt | Op::Gt)));
        let least = bodies.ints(Op::Add, less, by);
        let (d, zero) = (bodies.ints(Op::Sub, more, least), bodies.int(0));
        (0..=self.len()).rev().any(|from| {
            let bounds = self.bounds_from(bodies, d, from);
            let at_most_it = |low: &Body| bounds.is_some_and(|d| at_most(bodies, *low, d.lo));
            at_most_it(&zero) || natural.iter().any(at_most_it)
        })
    }

    /// What a comparison of integers is at all indices, where it is one thing.
    pub fn decide(&self, bodies: &mut Bodies, c: Body) -> Option<bool> {
        if self.hold(bodies, c, &[]) {
            return Some(true);
        }
        let Node::Op(op, _, args) = bodies.node(c).clone() else { return None };
        let not = bodies.op(op.opposite()?, Scalar::Bool, &args);
        self.hold(bodies, not, &[]).then_some(false)
    }

    /// Bounds of an integer over all indices that have ranges; nothing where it may be anything.
    pub fn bounds(&self, bodies: &mut Bodies, b: Body) -> Option<Interval> {
        self.bounds_from(bodies, b, 0)
    }

    /// Bounds over the indices from the k-th range inwards.
    pub fn bounds_from(&self, bodies: &mut Bodies, b: Body, from: usize) -> Option<Interval> {
        if !bodies.is_small(b) {
            return None;
        }
        let form = bodies.linear(b)?;
        let (mut lo, mut hi) = (Linear::constant(form.offset()), Linear::constant(form.offset()));
        for (a, c) in form.terms() {
            let own = match bodies.node(a) {
                Node::Index(_) | Node::Symbol(_) | Node::Lit(_) => Interval { lo: a, hi: a },
                _ => self.of_atom(bodies, a, from)?,
            };
            let (low, high) = if c > 0 { (own.lo, own.hi) } else { (own.hi, own.lo) };
            lo = lo.plus(&bodies.linear(low)?, c)?;
            hi = hi.plus(&bodies.linear(high)?, c)?;
        }
        for (d, range) in self.each[from..].iter().rev() {
            let index = bodies.index(*d);
            for (form, up) in [(&mut lo, false), (&mut hi, true)] {
                let end = if (form.coefficient(index) > 0) == up { range.hi } else { range.lo };
                if form.coefficient(index) != 0 {
                    let end = form.replace(index, &bodies.linear(end)?)?;
                    *form = self.without_atoms(bodies, end, up, from)?;
                }
            }
        }
        Some(Interval { lo: bodies.of_linear(&lo), hi: bodies.of_linear(&hi) })
    }

    /// A form with bounds for what is no linear form and names an index: an end of a range may be so.
    fn without_atoms(
        &self,
        bodies: &mut Bodies,
        mut form: Linear<Body>,
        up: bool,
        from: usize,
    ) -> Option<Linear<Body>> {
        let atoms: Vec<(Body, i64)> = form.terms().filter(|(a, _)| !bodies.is_atom(*a)).collect();
        for (a, c) in atoms {
            let own = self.of_atom(bodies, a, from)?;
            let end = if (c > 0) == up { own.hi } else { own.lo };
            if end != a {
                form = form.replace(a, &bodies.linear(end)?)?;
            }
        }
        Some(form)
    }

    /// Bounds of what is no linear form, over the indices that it names.
    fn of_atom(&self, bodies: &mut Bodies, b: Body, from: usize) -> Option<Interval> {
        if let Node::Load(from, ..) = bodies.node(b) {
            let (n, one) = (bodies.end_of(*from)?, bodies.int(1));
            return Some(Interval { lo: bodies.int(0), hi: bodies.ints(Op::Sub, n, one) });
        }
        let ranged = bodies.dims(b).iter().any(|d| self.each[from..].iter().any(|(e, _)| e == d));
        if !ranged {
            return Some(Interval { lo: b, hi: b });
        }
        let node = bodies.node(b).clone();
        match node {
            Node::Op(op @ (Op::Min | Op::Max), _, args) => {
                let (x, y) = (self.bounds_from(bodies, args[0], from)?, self.bounds_from(bodies, args[1], from)?);
                let of = if op == Op::Min { least } else { greatest };
                Some(Interval { lo: of(bodies, x.lo, y.lo), hi: of(bodies, x.hi, y.hi) })
            }
            Node::Op(Op::Mul, ty, args) => {
                let (x, y) = (self.bounds_from(bodies, args[0], from)?, self.bounds_from(bodies, args[1], from)?);
                let zero = bodies.int(0);
                let hi = bodies.op(Op::Mul, ty, &[x.hi, y.hi]);
                let fits = at_most(bodies, zero, x.lo) && at_most(bodies, zero, y.lo) && bodies.is_small(hi);
                fits.then_some(Interval { lo: zero, hi })
            }
            Node::Op(op @ (Op::Div | Op::FloorDiv | Op::Mod | Op::FloorMod), ty, args) => {
                let x = self.bounds_from(bodies, args[0], from)?;
                let (zero, n) = (bodies.int(0), args[1]);
                let from_zero = at_most(bodies, zero, x.lo);
                let one = bodies.int(1);
                let last = bodies.ints(Op::Sub, n, one);
                match (op, bodies.as_int(n)) {
                    (Op::Div | Op::FloorDiv, Some(_)) => {
                        Some(Interval { lo: bodies.op(op, ty, &[x.lo, n]), hi: bodies.op(op, ty, &[x.hi, n]) })
                    }
                    (Op::FloorMod, Some(_)) => Some(Interval { lo: zero, hi: last }),
                    (Op::Mod, Some(n)) => {
                        let lo = if from_zero { 0 } else { 1 - n };
                        Some(Interval { lo: bodies.int(lo), hi: last })
                    }
                    // Where there is a value the divisor is not 0, and so at least 1.
                    (Op::Div | Op::FloorDiv, None) if from_zero => {
                        let end = bodies.ints(Op::Add, x.hi, one);
                        let hi = bodies.exact_quotient(end, n).map(|q| bodies.ints(Op::Sub, q, one));
                        Some(Interval { lo: zero, hi: hi.unwrap_or(x.hi) })
                    }
                    (Op::Mod | Op::FloorMod, None) if from_zero => Some(Interval { lo: zero, hi: last }),
                    _ => None,
                }
            }
            Node::Op(Op::Truncate, ..) | Node::Cast(..) => self.of_cut(bodies, b, from),
            Node::If([_, x, y]) => {
                let (x, y) = (self.bounds_from(bodies, x, from)?, self.bounds_from(bodies, y, from)?);
                Some(Interval { lo: least(bodies, x.lo, y.lo), hi: greatest(bodies, x.hi, y.hi) })
            }
            _ => None,
        }
    }

    /// Bounds of an integer that is cut from a float.
    fn of_cut(&self, bodies: &mut Bodies, b: Body, from: usize) -> Option<Interval> {
        let cut = bodies.cut(b)?;
        let (mut lo, mut hi) = (None, None);
        for end in cut.lo {
            let low = self.bounds_from(bodies, end, from)?.lo;
            lo = Some(lo.map_or(low, |l| least(bodies, l, low)));
        }
        for end in cut.hi {
            let high = self.bounds_from(bodies, end, from)?.hi;
            hi = Some(hi.map_or(high, |h| greatest(bodies, h, high)));
        }
        Some(Interval { lo: lo?, hi: hi? })
    }
}

/// The least of two integers.
pub fn least(bodies: &mut Bodies, a: Body, b: Body) -> Body {
    match (at_most(bodies, a, b), at_most(bodies, b, a)) {
        (true, _) => a,
        (_, true) => b,
        _ => bodies.ints(Op::Min, a, b),
    }
}

/// The greatest of two integers.
pub fn greatest(bodies: &mut Bodies, a: Body, b: Body) -> Body {
    match (at_most(bodies, a, b), at_most(bodies, b, a)) {
        (true, _) => b,
        (_, true) => a,
        _ => bodies.ints(Op::Max, a, b),
    }
}

impl Bodies {
    /// The indices of a dimension for which a comparison holds, as the first of them and the one after the last, where other
    /// indices and sizes decide these; `None` for an end that it does not decide.
    pub fn ends_of(&mut self, c: Body, d: DimId) -> Option<[Option<Body>; 2]> {
        let Node::Op(op, _, sides) = self.node(c).clone() else { return None };
        let [x, y] = sides[..] else { return None };
        if self.ty(x) != Scalar::I64 || !self.is_arithmetic(c, false) || !self.is_small(x) || !self.is_small(y) {
            return None;
        }
        let index = self.index(d);
        let (rest, by) = self.linear(x)?.plus(&self.linear(y)?, -1)?.without(index);
        let is_other = |(a, _): (Body, i64)| !self.dims(a).contains(&d);
        if by.abs() != 1 || !has_small_parts(&rest) || !rest.terms().all(is_other) {
            return None;
        }
        // The index compares so to `at`.
        let at = rest.times(-by)?;
        let after = at.plus(&Linear::constant(1), 1)?;
        let (at, after) = (self.of_linear(&at), self.of_linear(&after));
        Some(match (op, by > 0) {
            (Op::Lt, true) | (Op::Gt, false) => [None, Some(at)],
            (Op::Lte, true) | (Op::Gte, false) => [None, Some(after)],
            (Op::Gt, true) | (Op::Lt, false) => [Some(after), None],
            (Op::Gte, true) | (Op::Lte, false) => [Some(at), None],
            (Op::Eq, _) => [Some(at), Some(after)],
            _ => return None,
        })
    }
}

/// So many `min` and `max` are taken apart for one comparison.
const DEPTH: usize = 6;

/// Whether one integer is at most another, whatever the indices and symbols are. Sizes are not negative; `min` and `max`
/// are each of their arms.
pub fn at_most(bodies: &Bodies, a: Body, b: Body) -> bool {
    if a == b {
        return true;
    }
    let both = bodies.is_small(a) && bodies.is_small(b);
    let form = || bodies.linear(b)?.plus(&bodies.linear(a)?, -1);
    both && form().is_some_and(|f| has_small_parts(&f) && not_negative(bodies, &f, DEPTH))
}

fn not_negative(bodies: &Bodies, form: &Linear<Body>, depth: usize) -> bool {
    let plain = |(a, c): (Body, i64)| c > 0 && bodies.is_nonnegative(a);
    if form.offset() >= 0 && form.terms().all(plain) {
        return true;
    }
    if depth == 0 {
        return false;
    }
    form.terms().any(|(atom, c)| {
        if let Node::Op(Op::Div | Op::FloorDiv, _, args) = bodies.node(atom) {
            return quotient(bodies, form, (atom, c), (args[0], args[1]), depth);
        }
        let Node::Op(op @ (Op::Min | Op::Max), _, args) = bodies.node(atom) else { return false };
        let with = |k: usize| {
            let other = bodies.linear(args[k]).and_then(|f| form.replace(atom, &f));
            other.is_some_and(|f| not_negative(bodies, &f, depth - 1))
        };
        // Either arm bounds `-min` and `max` from below; `min` and `-max` need both.
        if (c < 0) == (*op == Op::Min) { with(0) || with(1) } else { with(0) && with(1) }
    })
}

/// As [`not_negative`], by `a - n < n * (a / n) <= a`, for an `a` that is not negative and a positive number `n`.
fn quotient(bodies: &Bodies, form: &Linear<Body>, (q, c): (Body, i64), (a, n): (Body, Body), depth: usize) -> bool {
    let bound = || {
        let n = bodies.as_int(n).filter(|n| *n > 0 && c % n == 0)?;
        let a = bodies.linear(a)?;
        let up = if c < 0 { a } else { a.plus(&Linear::constant(n - 1), -1)? };
        form.without(q).0.plus(&up, c / n)
    };
    bodies.is_nonnegative(a) && bound().is_some_and(|f| not_negative(bodies, &f, depth - 1))
}

/// Arithmetic of more nodes is computed once.
const MAX_VIEW: usize = 48;

impl Bodies {
    /// Whether a body is arithmetic of indices and sizes that has a value wherever it is read, and is as cheap to do again as
    /// to read; whether its divisions were asked for before.
    pub fn is_arithmetic(&self, b: Body, asked: bool) -> bool {
        let all = self.reachable([b]);
        all.len() <= MAX_VIEW
            && all.iter().all(|b| match self.node(*b) {
                _ if !matches!(self.ty(*b), Scalar::I64 | Scalar::Bool) => false,
                Node::Load(..) | Node::Acc(..) => false,
                Node::Op(op, _, args) if op.divides() => asked || self.is_positive_number(args[1]),
                _ => true,
            })
    }

    /// Whether a body is a float that a size, or a sum of sizes, is converted to, and perhaps a literal is added: it says where
    /// clamps end.
    pub fn is_converted_size(&self, b: Body) -> bool {
        match self.node(b) {
            Node::Op(Op::ToFloat, _, args) => self.is_of_symbols(args[0]) && self.is_arithmetic(args[0], false),
            Node::Cast(to, of) if to.is_float() && self.ty(*of) == Scalar::I64 => {
                self.is_of_symbols(*of) && self.is_arithmetic(*of, false)
            }
            Node::Op(Op::Add | Op::Sub, ty, args) if ty.is_float() => {
                let lit = |k: usize| self.as_lit(args[k]).is_some();
                (lit(0) || lit(1)) && args.iter().all(|a| self.as_lit(*a).is_some() || self.is_converted_size(*a))
            }
            _ => false,
        }
    }

    /// Whether a body is a literal, by which every integer can be divided.
    pub(super) fn is_positive_number(&self, b: Body) -> bool {
        self.as_int(b).is_some_and(|n| n > 0)
    }

    /// Whether an operation has no value where its divisor is 0, which it may be.
    pub(super) fn may_divide_by_zero(&self, node: &Node) -> bool {
        matches!(node, Node::Op(op, ty, args) if op.divides() && ty.is_int() && !self.is_positive_number(args[1]))
    }

    /// A product without some of its factors, those of another product.
    fn exact_quotient(&mut self, a: Body, by: Body) -> Option<Body> {
        let (mut of, mut out) = (vec![], vec![]);
        self.factors(a, &mut out);
        self.factors(by, &mut of);
        for f in of {
            let at = out.iter().position(|o| *o == f)?;
            out.remove(at);
        }
        let one = self.int(1);
        Some(out.into_iter().fold(one, |q, f| self.ints(Op::Mul, q, f)))
    }

    /// The factors of a product.
    pub fn factors(&self, n: Body, out: &mut Vec<Body>) {
        match self.node(n) {
            Node::Op(Op::Mul, _, args) => args.iter().for_each(|a| self.factors(*a, out)),
            _ => out.push(n),
        }
    }

    /// Whether an integer is at least 0: an index, a size, a literal, or made of such.
    pub fn is_nonnegative(&self, b: Body) -> bool {
        if self.is_size(b) {
            return true;
        }
        match self.node(b) {
            Node::Lit(l) => Lit::as_int(*l).is_some_and(|v| v >= 0),
            Node::Index(_) => true,
            Node::Load(from, ..) => self.end_of(*from).is_some(),
            Node::Op(Op::Min, _, args) => args.iter().all(|a| self.is_nonnegative(*a)),
            Node::Op(Op::Max, _, args) => args.iter().any(|a| self.is_nonnegative(*a)),
            Node::Op(Op::Div | Op::FloorDiv | Op::Mod | Op::FloorMod, _, args) => {
                self.is_nonnegative(args[0]) && self.is_nonnegative(args[1])
            }
            Node::If(parts) => parts[1..].iter().all(|p| self.is_nonnegative(*p)),
            _ => false,
        }
    }
}
