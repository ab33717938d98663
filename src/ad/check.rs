//! Derivatives are compared with differences of values, and both modes with each other.
//!
//! For a change dx of the arguments and an adjoint dy of the result, three numbers have to agree: the
//! inner product of dy with the central difference along dx, with the forward derivative along dx,
//! and that of dx with the reverse derivative of dy. Changes are random, by a fixed hash of a seed.

use super::{Mode, Wanted, derive};
use crate::diag::Result;
use crate::eval::{Interpreter, Value};
use crate::ir::op::ranhash;
use crate::ir::{Def, Fun, Lit, Program, Scalar, Ty, TyKind};

/// A program with both derivatives of one function.
pub struct Checked {
    program: Program,
    of: Fun,
    forward: Fun,
    reverse: Fun,
    wrt: Vec<bool>,
}

/// The three numbers at one point, and how far they are apart.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    /// From a central difference; nothing where the function is not smooth or not defined around.
    pub difference: Option<f64>,
    /// From forward mode.
    pub forward: f64,
    /// From reverse mode.
    pub reverse: f64,
    /// The size of the terms of the inner products: what rounding is measured by.
    pub scale: f64,
    /// The rounding error that the difference may have, since large values are subtracted.
    pub noise: f64,
}

impl Point {
    /// Disagreement of forward mode with the difference, relative.
    pub fn off_difference(&self) -> Option<f64> {
        let d = self.difference?;
        let off = ((d - self.forward).abs() - self.noise).max(0.0);
        Some(off / d.abs().max(self.forward.abs()).max(self.scale).max(1e-300))
    }

    /// Disagreement of the modes with each other, relative.
    pub fn off_modes(&self) -> f64 {
        if self.forward == self.reverse {
            return 0.0;
        }
        let most = self.forward.abs().max(self.reverse.abs()).max(self.scale);
        (self.forward - self.reverse).abs() / most.max(1e-300)
    }
}

/// Disagreement with differences up to this is rounding.
pub const DIFFERENCE: f64 = 1e-5;
/// Disagreement of the modes up to this is rounding in single precision.
pub const SINGLE: f64 = 1e-5;
/// Disagreement of the modes up to this is rounding.
pub const MODES: f64 = 1e-10;

impl Checked {
    /// Makes both derivatives of a function by some parameters.
    ///
    /// # Errors
    /// The function has none.
    pub fn new(program: &Program, def: &Def, wrt: &[bool]) -> Result<Checked> {
        Checked::with(program, def, wrt, false)
    }

    /// As [`Checked::new`]; reverse mode may keep few states of folds.
    ///
    /// # Errors
    /// The function has no derivative.
    pub fn with(program: &Program, def: &Def, wrt: &[bool], checkpoint: bool) -> Result<Checked> {
        let wanted = |mode| {
            let checkpoint = checkpoint && mode == Mode::Reverse;
            Wanted { fun: def.fun, mode, wrt: wrt.to_vec(), value: false, checkpoint }
        };
        let (program, forward) = derive(program, &wanted(Mode::Forward))?;
        let (program, reverse) = derive(&program, &wanted(Mode::Reverse))?;
        Ok(Checked { program, of: def.fun, forward, reverse, wrt: wrt.to_vec() })
    }

    /// The program with both derivatives.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The forward and the reverse derivative.
    pub fn derivatives(&self) -> (Fun, Fun) {
        (self.forward, self.reverse)
    }

    /// The disagreement of the modes that rounding explains: more with single precision.
    pub fn tolerance(&self) -> f64 {
        let single = |f: &Fun| {
            let body = self.program.defs[f].term();
            body.into_iter()
                .flat_map(|b| self.program.terms.reachable(b))
                .any(|id| self.program.terms.ty(id) == Ty::scalar(Scalar::F32))
        };
        if single(&self.reverse) { SINGLE } else { MODES }
    }

    /// Compares at arguments.
    ///
    /// # Errors
    /// A derivative fails where the function has a value.
    pub fn at(&self, args: &[Value], seed: i64) -> Result<Option<Point>> {
        let interpreter = Interpreter::new(&self.program);
        let run = |f: Fun, args: &[Value]| interpreter.run(&self.program.defs[&f], args);
        let Ok(value) = run(self.of, args) else { return Ok(None) };
        let mut hash = Hash { seed, next: 0 };
        let changes: Vec<Option<Value>> = args.iter().zip(&self.wrt).map(|(a, w)| w.then(|| hash.tangent(a))).collect();
        let dy = hash.tangent(&value);
        let moving: Vec<Value> = changes.iter().flatten().cloned().collect();
        let forward = run(self.forward, &[args, &moving].concat())?;
        let gradient = run(self.reverse, &[args, std::slice::from_ref(&dy)].concat())?;
        let gradient = match (&gradient, moving.len()) {
            (_, 1) => vec![gradient],
            (Value::Tuple(parts), _) => parts.to_vec(),
            _ => vec![],
        };
        let moved = |h: f64| -> Option<f64> {
            let args: Vec<Value> = args
                .iter()
                .zip(&changes)
                .map(|(a, d)| d.as_ref().map_or_else(|| a.clone(), |d| step(a, d, h)))
                .collect();
            let there = run(self.of, &args).ok()?;
            let change = there.same_shape(&value).then(|| between(&value, &there))?;
            Some(products(&change, &dy).0)
        };
        let (forward, scale) = products(&forward, &dy);
        let (reverse, other) = moving.iter().zip(&gradient).map(|(d, g)| products(d, g)).fold((0.0, 0.0), plus);
        let difference = smooth_difference(moved);
        // Numbers that cancel leave the rounding errors of those that came before.
        let scale = scale.max(other).max(1e-3 * interpreter.magnitude());
        let noise = 16.0 * f64::EPSILON / STEP * products_size(&value, &dy);
        Ok(Some(Point { difference, forward, reverse, scale, noise }))
    }
}

fn plus(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
    (a.0 + b.0, a.1 + b.1)
}

/// How far arguments are moved for a difference.
const STEP: f64 = 2e-4;

/// The sum of the magnitudes of the terms of the inner product of a value and a tangent of it.
fn products_size(v: &Value, d: &Value) -> f64 {
    products(v, d).1
}

/// The central difference, where differences on both sides and with two steps agree.
fn smooth_difference(moved: impl Fn(f64) -> Option<f64>) -> Option<f64> {
    let (right, left) = (moved(STEP)? / STEP, moved(-STEP)? / -STEP);
    let half = STEP / 2.0;
    let (near_right, near_left) = (moved(half)? / half, moved(-half)? / -half);
    let (far, near) = ((right + left) / 2.0, (near_right + near_left) / 2.0);
    let size = right.abs().max(left.abs()).max(near.abs()).max(1e-6);
    // Where the function is smooth, the sides differ by about the step, and halving it halves that.
    let sides = (right - left).abs() <= 0.02 * size;
    let halved = (near_right - near_left).abs() <= 0.6 * (right - left).abs() + 1e-6 * size;
    let steps = (far - near).abs() <= 1e-5 * size;
    let best = (4.0 * near - far) / 3.0;
    (sides && halved && steps && best.is_finite()).then_some(best)
}

/// A fixed sequence of random numbers.
struct Hash {
    seed: i64,
    next: i64,
}

impl Hash {
    fn number(&mut self) -> f64 {
        self.next += 1;
        2.0 * ranhash(self.seed.wrapping_mul(1_000_003).wrapping_add(self.next)) - 1.0
    }

    /// A random tangent of a value, in its shape.
    fn tangent(&mut self, v: &Value) -> Value {
        match v {
            Value::Scalar(l @ (Lit::F64(_) | Lit::F32(_))) => {
                let s = l.ty().as_scalar();
                Value::Scalar(s.map_or(*l, |s| Lit::of(s, self.number())))
            }
            Value::Scalar(_) => Value::tuple(vec![]),
            Value::Tuple(parts) => Value::tuple(parts.iter().map(|p| self.tangent(p)).collect()),
            Value::Tensor(t) => Value::tensor(t.dims.clone(), t.data.iter().map(|p| self.tangent(p)).collect()),
        }
    }

    /// A random value of a type whose tensors have the given size along every axis.
    fn value(&mut self, ty: Ty, size: usize) -> Value {
        match ty.kind() {
            TyKind::Scalar(s) if s.is_float() => Value::Scalar(Lit::of(*s, self.number())),
            TyKind::Scalar(s) => Value::Scalar(Lit::of(*s, (self.number().abs() * size as f64).floor())),
            TyKind::String | TyKind::Var(..) => Value::Scalar(Lit::Str("")),
            TyKind::Tuple(parts) => Value::tuple(parts.iter().map(|p| self.value(*p, size)).collect()),
            TyKind::Tensor(rank, elem) => {
                let n = size.pow(*rank as u32);
                Value::tensor(vec![size; *rank], (0..n).map(|_| self.value(*elem, size)).collect())
            }
        }
    }
}

/// A random tangent of a value, in its shape.
pub fn change(of: &Value, seed: i64) -> Value {
    Hash { seed, next: 0 }.tangent(of)
}

/// Random arguments: floats between -1 and 1, all sizes equal, integers below that size.
pub fn arguments(def: &Def, size: usize, seed: i64) -> Vec<Value> {
    let mut hash = Hash { seed: seed ^ 0x5eed, next: 0 };
    def.params.iter().map(|p| hash.value(p.ty, size)).collect()
}

/// A value moved along a tangent.
fn step(v: &Value, d: &Value, h: f64) -> Value {
    match (v, d) {
        (Value::Scalar(a), Value::Scalar(b)) => match (a.as_f64(), b.as_f64(), a.ty().as_scalar()) {
            (Some(x), Some(y), Some(s)) => Value::Scalar(Lit::of(s, x + h * y)),
            _ => v.clone(),
        },
        (Value::Tuple(a), Value::Tuple(b)) if a.len() == b.len() => {
            Value::tuple(a.iter().zip(b.iter()).map(|(x, y)| step(x, y, h)).collect())
        }
        (Value::Tensor(a), Value::Tensor(b)) => {
            Value::tensor(a.dims.clone(), a.data.iter().zip(&b.data).map(|(x, y)| step(x, y, h)).collect())
        }
        _ => v.clone(),
    }
}

/// The tangent from one value to another.
fn between(from: &Value, to: &Value) -> Value {
    match (from, to) {
        (Value::Scalar(a), Value::Scalar(b)) => match (a.as_f64(), b.as_f64()) {
            (Some(x), Some(y)) => Value::Scalar(Lit::float(y - x)),
            _ => Value::tuple(vec![]),
        },
        (Value::Tuple(a), Value::Tuple(b)) => {
            Value::tuple(a.iter().zip(b.iter()).map(|(x, y)| between(x, y)).collect())
        }
        (Value::Tensor(a), Value::Tensor(b)) => {
            Value::tensor(a.dims.clone(), a.data.iter().zip(&b.data).map(|(x, y)| between(x, y)).collect())
        }
        _ => Value::tuple(vec![]),
    }
}

/// The inner product of two tangents, and the sum of the magnitudes of its terms.
fn products(a: &Value, b: &Value) -> (f64, f64) {
    match (a, b) {
        (Value::Scalar(a), Value::Scalar(b)) => {
            let p = a.as_f64().unwrap_or_default() * b.as_f64().unwrap_or_default();
            (p, p.abs())
        }
        (Value::Tuple(a), Value::Tuple(b)) => {
            a.iter().zip(b.iter()).map(|(x, y)| products(x, y)).fold((0.0, 0.0), plus)
        }
        (Value::Tensor(a), Value::Tensor(b)) => {
            a.data.iter().zip(&b.data).map(|(x, y)| products(x, y)).fold((0.0, 0.0), plus)
        }
        _ => (0.0, 0.0),
    }
}
