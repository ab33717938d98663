//! Floats that are cut to integers: what clamps and other operations of floats say of the integer.
//!
//! Each operation of floats here never falls where its arguments rise, rounding included (IEEE 754-2019, section 4.3: a
//! rounded result is the nearest number, so that order stays). So ends of arguments give ends of the result. What is no
//! number is cut to 0.

use super::body::{Bodies, Body, Node, Source, is_small_number};
use crate::ir::op::Bounds;
use crate::ir::{Lit, Op, Scalar};
use smallvec::{SmallVec, smallvec};

/// Floats are looked into so deep.
const DEPTH: usize = 12;

/// More ends than these are not told.
const ENDS: usize = 6;

/// A number that a float is compared with.
#[derive(Clone, Copy, PartialEq, Debug)]
enum End {
    Number(f64),
    Integer(Body),
}

/// The least of these is at most the float, or the greatest of these at least.
type Ends = SmallVec<[End; 2]>;

/// What a float lies between where it is a number; whether it may be none.
struct Span {
    lo: Option<Ends>,
    hi: Option<Ends>,
    nan: bool,
}

/// Integers: one of them is at most the value of another body, and one at least.
pub(super) struct Cut {
    pub(super) lo: SmallVec<[Body; 2]>,
    pub(super) hi: SmallVec<[Body; 2]>,
}

impl Bodies {
    /// What an integer lies between that is cut from a float; nothing where it is none, or anything may be.
    pub(super) fn cut(&mut self, b: Body) -> Option<Cut> {
        let [lo, hi] = self.cut_ends(b)?;
        let bodies = |s: &mut Self, ends: Ends| {
            let body = |e: End| match e {
                End::Number(x) => s.int(x as i64),
                End::Integer(b) => b,
            };
            ends.into_iter().map(body).collect()
        };
        Some(Cut { lo: bodies(self, lo), hi: bodies(self, hi) })
    }

    /// Whether an integer is cut from a float that is known to be small.
    pub(super) fn is_small_cut(&self, b: Body) -> bool {
        self.cut_ends(b).is_some()
    }

    /// Remembers what float a result of a stage is, where that says what it lies between; it may name the indices of that
    /// stage.
    pub(super) fn assume_float(&mut self, from: Source, b: Body) {
        let span = if self.ty(b).is_float() { self.span(b, DEPTH) } else { return };
        if span.lo.is_some() && span.hi.is_some() {
            self.floats.insert(from, b);
        }
    }

    /// Small integers that a cut float lies between.
    fn cut_ends(&self, b: Body) -> Option<[Ends; 2]> {
        let float = match self.node(b) {
            Node::Op(Op::Truncate, _, args) => args[0],
            Node::Cast(Scalar::I64, of) if self.ty(*of).is_float() => *of,
            _ => return None,
        };
        let span = self.span(float, DEPTH);
        let small = |e: &End| match e {
            End::Number(x) => is_small_number(*x as i64),
            End::Integer(b) => self.is_small(*b),
        };
        let (mut lo, mut hi) = (span.lo?, span.hi?);
        if span.nan {
            lo.push(End::Number(0.0));
            hi.push(End::Number(0.0));
        }
        (lo.iter().chain(&hi).all(small) && lo.len().max(hi.len()) <= ENDS).then_some([lo, hi])
    }

    fn span(&self, b: Body, depth: usize) -> Span {
        let any = Span { lo: None, hi: None, nan: true };
        let Some(below) = depth.checked_sub(1) else { return any };
        let ty = self.ty(b);
        match self.node(b) {
            Node::Lit(l) => l.as_f64().filter(|x| !x.is_nan()).map_or(any, |x| Span::within(x, x, false)),
            Node::Load(from, ..) => self.floats.get(from).map_or(any, |b| self.span(*b, below).at_all_indices(self)),
            Node::Cast(_, of) if self.ty(*of).is_float() => self.span(*of, below).rounded(ty),
            Node::Cast(_, of) => self.whole(*of, ty),
            Node::Op(Op::ToFloat, _, args) => self.whole(args[0], ty),
            Node::Op(Op::Select, _, args) => self.span(args[1], below).or(self.span(args[2], below)),
            Node::If(parts) => self.span(parts[1], below).or(self.span(parts[2], below)),
            Node::Op(Op::Floor | Op::Ceil, _, args) => self.span(args[0], below).map(|x| whole_part(self.node(b), x)),
            Node::Op(op @ (Op::Max | Op::Maximum | Op::Min | Op::Minimum), _, args) => {
                let (x, y) = (self.span(args[0], below), self.span(args[1], below));
                match op {
                    Op::Max | Op::Maximum => Span::greatest(x, y, *op == Op::Maximum),
                    _ => Span::least(x, y, *op == Op::Minimum),
                }
            }
            Node::Op(op @ (Op::Add | Op::Sub | Op::Mul | Op::Div), _, args) => {
                let x = self.span(args[0], below);
                // Of most floats nothing is known: then the other one is not looked at.
                let known = x.numbers().is_some().then(|| self.span(args[1], below));
                known.and_then(|y| Span::computed(*op, ty, &x, &y)).unwrap_or(any)
            }
            Node::Op(op, ..) => match op.row().bounds {
                Bounds::Within(lo, hi) if lo.is_finite() && hi.is_finite() => Span::within(lo, hi, true),
                _ => any,
            },
            _ => any,
        }
    }

    /// An integer as a float: itself where it is small, the nearest of a width that may not have it where it is a number.
    fn whole(&self, b: Body, ty: Scalar) -> Span {
        let from = self.ty(b);
        let exact = ty == Scalar::F64 && self.is_small(b);
        if exact && let Some(n) = self.as_int(b) {
            return Span::within(n as f64, n as f64, false);
        }
        if exact {
            return Span { lo: Some(smallvec![End::Integer(b)]), hi: Some(smallvec![End::Integer(b)]), nan: false };
        }
        match from {
            Scalar::Bool => Span::within(0.0, 1.0, false),
            _ if from.is_int() && from.bits() <= 32 => {
                let (lo, hi) = from.range();
                Span::within(lo as f64, hi as f64, false).rounded(ty)
            }
            _ => Span { lo: None, hi: None, nan: false },
        }
    }
}

impl Span {
    fn within(lo: f64, hi: f64, nan: bool) -> Span {
        Span { lo: Some(smallvec![End::Number(lo)]), hi: Some(smallvec![End::Number(hi)]), nan }
    }

    /// The ends where both are single numbers, and so is all between them.
    fn numbers(&self) -> Option<[f64; 2]> {
        let single = |ends: &Option<Ends>| match ends.as_deref() {
            Some([End::Number(x)]) if x.is_finite() => Some(*x),
            _ => None,
        };
        Some([single(&self.lo)?, single(&self.hi)?])
    }

    /// What never falls, of the ends: of a whole number it is that number.
    fn map(self, f: impl Fn(f64) -> f64) -> Span {
        let each = |ends: Ends| {
            let end = |e: End| if let End::Number(x) = e { End::Number(f(x)) } else { e };
            ends.into_iter().map(end).collect()
        };
        Span { lo: self.lo.map(each), hi: self.hi.map(each), nan: self.nan }
    }

    /// The ends that are the same at all indices.
    fn at_all_indices(self, bodies: &Bodies) -> Span {
        let same = |e: &End| if let End::Integer(b) = e { bodies.dims(*b).is_empty() } else { true };
        let known = |ends: Option<Ends>| ends.filter(|all| all.iter().all(same));
        Span { lo: known(self.lo), hi: known(self.hi), nan: self.nan }
    }

    /// The nearest of a type: a small integer need not be a 32-bit float.
    fn rounded(self, ty: Scalar) -> Span {
        if ty == Scalar::F64 {
            return self;
        }
        let numbers = |ends: Option<Ends>| ends.filter(|all| all.iter().all(|e| matches!(e, End::Number(_))));
        Span { lo: numbers(self.lo), hi: numbers(self.hi), nan: self.nan }.map(|x| f64::from(x as f32))
    }

    /// One of both.
    fn or(self, other: Span) -> Span {
        Span {
            lo: both(self.lo, other.lo, f64::min),
            hi: both(self.hi, other.hi, f64::max),
            nan: self.nan || other.nan,
        }
    }

    /// `a` where it is greater, else `b`: at least `b`, where that is a number. Where `a` is none, nothing else holds; a
    /// strict maximum is none where one of them is.
    fn greatest(a: Span, b: Span, strict: bool) -> Span {
        let lo = if strict || !a.nan { tighter(a.lo, b.lo, f64::max) } else { b.lo };
        Span { lo, hi: both(a.hi, b.hi, f64::max), nan: b.nan || strict && a.nan }
    }

    /// `a` where it is less, else `b`.
    fn least(a: Span, b: Span, strict: bool) -> Span {
        let hi = if strict || !a.nan { tighter(a.hi, b.hi, f64::min) } else { b.hi };
        Span { lo: both(a.lo, b.lo, f64::min), hi, nan: b.nan || strict && a.nan }
    }

    /// Arithmetic on finite ends, rounded as the operation is.
    fn computed(op: Op, ty: Scalar, a: &Span, b: &Span) -> Option<Span> {
        let ([a0, a1], [b0, b1]) = (a.numbers()?, b.numbers()?);
        if op == Op::Div && b0 <= 0.0 && b1 >= 0.0 {
            return None;
        }
        let lit = |x: f64| if ty == Scalar::F32 { Lit::float32(x as f32) } else { Lit::float(x) };
        let at = |x: f64, y: f64| op.eval(&[lit(x), lit(y)]).ok()?.as_f64().filter(|v| v.is_finite());
        let all = [at(a0, b0)?, at(a0, b1)?, at(a1, b0)?, at(a1, b1)?];
        let (lo, hi) =
            (all.into_iter().fold(f64::INFINITY, f64::min), all.into_iter().fold(f64::NEG_INFINITY, f64::max));
        Some(Span::within(lo, hi, a.nan || b.nan))
    }
}

/// Ends of which those of two floats are: what holds of one of both. Of two numbers one says it all.
fn both(a: Option<Ends>, b: Option<Ends>, of: impl Fn(f64, f64) -> f64) -> Option<Ends> {
    let (mut a, b) = (a?, b?);
    for e in b {
        let number = a.iter().position(|known| matches!((known, e), (End::Number(_), End::Number(_))));
        match (number.map(|k| (k, a[k])), e) {
            (Some((k, End::Number(x))), End::Number(y)) => a[k] = End::Number(of(x, y)),
            _ if a.contains(&e) => {}
            _ => a.push(e),
        }
    }
    (a.len() <= ENDS).then_some(a)
}

/// Ends that hold together: of two numbers the tighter one, else those of the second, which clamps are written with.
fn tighter(a: Option<Ends>, b: Option<Ends>, of: impl Fn(f64, f64) -> f64) -> Option<Ends> {
    match (a.as_deref(), b.as_deref()) {
        (Some([End::Number(x)]), Some([End::Number(y)])) => Some(smallvec![End::Number(of(*x, *y))]),
        (_, Some(_)) => b,
        _ => a,
    }
}

fn whole_part(node: &Node, x: f64) -> f64 {
    if matches!(node, Node::Op(Op::Floor, ..)) { x.floor() } else { x.ceil() }
}
