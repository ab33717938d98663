//! A run becomes a trace of its decisions; two traces, or one, become the reason why a function is not
//! smooth at a point, or has no finite derivative there.
//!
//! A decision is what a comparison of floats says, which of two numbers is the greater, on which side of 0
//! a number is, how it is rounded to an integer. Between two points at which all decisions are the same, a
//! function is made of smooth operations alone. It must not know how derivatives are made.

use crate::eval::{Event, What};
use crate::ir::{Id, Lit, Op, Program, Scalar, Ty};
use smallvec::SmallVec;
use std::cmp::Ordering;

/// Decisions that are kept of one run; later ones are not compared.
const MAX_DECISIONS: usize = 200_000;

/// An operation with its arguments and its value.
#[derive(Clone, PartialEq, Debug)]
pub struct Scene {
    at: Id,
    what: What,
    args: SmallVec<[Lit; 3]>,
    value: Lit,
}

/// What a run decided, and where it left the finite numbers.
#[derive(Clone, Default, Debug)]
pub struct Trace {
    decisions: Vec<(i64, Scene)>,
    /// The first operation on finite numbers that gave none.
    pub lost: Option<Scene>,
    /// The first operation at a place where its derivative is infinite.
    pub singular: Option<Scene>,
}

impl Trace {
    /// Takes up what was done.
    pub fn note(&mut self, e: &Event<'_>) {
        let scene = || Scene { at: e.at, what: e.what, args: e.args.into(), value: e.value };
        let finite = |l: &Lit| l.as_f64().is_none_or(f64::is_finite);
        if self.lost.is_none() && !finite(&e.value) && e.args.iter().all(finite) {
            self.lost = Some(scene());
        }
        if self.singular.is_none() && singular(e.what, e.args) {
            self.singular = Some(scene());
        }
        if let Some(outcome) = decision(e).filter(|_| self.decisions.len() < MAX_DECISIONS) {
            self.decisions.push((outcome, scene()));
        }
    }

    /// The first decision that another run made otherwise, here and there.
    pub fn turn<'a>(&'a self, other: &'a Trace) -> Option<(&'a Scene, &'a Scene)> {
        let mut pairs = self.decisions.iter().zip(&other.decisions);
        pairs.find(|(a, b)| a.0 != b.0 || a.1.at != b.1.at).map(|(a, b)| (&a.1, &b.1))
    }
}

/// What was decided, as a number; nothing where the operation is smooth, or has no float to depend on.
fn decision(e: &Event<'_>) -> Option<i64> {
    let floats: Option<SmallVec<[f64; 3]>> = e.args.iter().map(|l| l.as_f64()).collect();
    let x = floats?;
    let order = |a: f64, b: f64| match a.partial_cmp(&b) {
        Some(Ordering::Less) => -1,
        Some(Ordering::Equal) => 0,
        Some(Ordering::Greater) => 1,
        None => 2,
    };
    match (e.what, x.as_slice()) {
        (What::Op(Op::Lt | Op::Gt | Op::Lte | Op::Gte | Op::Eq | Op::Ne), _) => Some(i64::from(e.value.as_bool()?)),
        (What::Op(Op::Abs), [a]) => Some(order(*a, 0.0)),
        (What::Op(Op::Min | Op::Max | Op::Minimum | Op::Maximum), [a, b]) => Some(order(*a, *b)),
        (What::Op(Op::Floor | Op::Ceil), _) => Some(e.value.as_f64()? as i64),
        (What::Op(Op::Truncate), _) => e.value.as_int(),
        (What::Cast(s), _) if !s.is_float() => e.value.as_int().or(e.value.as_bool().map(i64::from)),
        _ => None,
    }
}

/// Whether an operation has a value, but no finite derivative.
fn singular(what: What, args: &[Lit]) -> bool {
    let x: SmallVec<[f64; 3]> = args.iter().filter_map(|l| l.as_f64()).collect();
    match (what, x.as_slice()) {
        (What::Op(Op::Sqrt), [a]) => *a == 0.0,
        (What::Op(Op::Asin | Op::Acos), [a]) => a.abs() == 1.0,
        (What::Op(Op::Atan2 | Op::Hypot), [a, b]) => *a == 0.0 && *b == 0.0,
        // By the exponent the derivative is a logarithm of the base.
        (What::Op(Op::Powf), [a, _]) => *a <= 0.0,
        _ => false,
    }
}

impl Scene {
    /// The operation on its arguments, its value, and the place in the source.
    pub fn told(&self, program: &Program) -> String {
        format!("{} is {}{}", self.applied(), shown(self.value), self.place(program))
    }

    /// The operation on its arguments, and its value.
    pub fn applied_with_value(&self) -> String {
        format!("{} is {}", self.applied(), shown(self.value))
    }

    /// The operation on its arguments, and the place in the source.
    pub fn named(&self, program: &Program) -> String {
        format!("{}{}", self.applied(), self.place(program))
    }

    /// The operation on its arguments.
    pub fn applied(&self) -> String {
        let args: Vec<String> = self.args.iter().map(|l| shown(*l)).collect();
        let name = match self.what {
            What::Op(op) => op.name().to_string(),
            What::Cast(s) => format!("cast {}", Ty::scalar(s)),
        };
        format!("`({name} {})`", args.join(" "))
    }

    fn place(&self, program: &Program) -> String {
        let all: Vec<String> = program.terms.spans(self.at).iter().map(|s| line(program, s.start as usize)).collect();
        if all.is_empty() { String::new() } else { format!(" at {}", all.join(" and ")) }
    }
}

/// The file, line and column of a place.
fn line(program: &Program, at: usize) -> String {
    let before = program.source.text.get(..at).unwrap_or_default();
    let row = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |l| l.chars().count()) + 1;
    format!("{}:{row}:{column}", program.source.name)
}

fn shown(l: Lit) -> String {
    match (l.as_f64(), l.ty().as_scalar()) {
        (Some(v), Some(Scalar::F64)) if v.is_finite() && v != 0.0 && !(1e-4..1e9).contains(&v.abs()) => {
            format!("{v:e}")
        }
        (Some(v), _) => format!("{v:?}"),
        (None, _) => l.to_string(),
    }
}
