//! Derivatives are compared with differences of values, and both modes with each other.
//!
//! For a change dx of the arguments and an adjoint dy of the result, three numbers have to agree: the
//! inner product of dy with the central difference along dx, with the forward derivative along dx,
//! and that of dx with the reverse derivative of dy. Changes are random, by a fixed hash of a seed.
//! Where the program decides otherwise a small step away (`smooth.rs`), a difference says nothing.
//!
//! Of the product with a Hessian the function is the gradient, and since a Hessian is symmetric, the product stands for
//! both modes.

use super::arguments::{Hash, finite};
use super::inner::{inner, plus};
use super::jacobian::{Jacobian, Layout, jacobian, product};
use super::smooth::Trace;
use super::{Mode, Wanted, derive, hessian};
use crate::diag::Result;
use crate::eval::{Event, Interpreter, Value};
use crate::ir::{Def, Fun, Lit, Program, Scalar, Ty};
use std::cell::RefCell;

/// A program with both derivatives of one function.
pub struct Checked {
    program: Program,
    of: Fun,
    forward: Fun,
    reverse: Fun,
    wrt: Vec<bool>,
    kind: Kind,
}

/// What is compared with the difference.
enum Kind {
    /// Forward and reverse mode.
    Modes,
    /// The products of a Hessian with the change and with the adjoint: the function is a gradient, whose forward derivative
    /// is its reverse one too.
    Hessian,
    /// Forward mode and the product with a whole Jacobian.
    Jacobian(Box<Jacobian>),
}

/// The three numbers at one point, and how far they are apart.
#[derive(Clone, PartialEq, Debug)]
pub struct Point {
    /// From central differences; nothing where the function is not smooth or not defined around.
    pub difference: Option<f64>,
    /// Why there is no difference.
    pub rough: Option<String>,
    /// Why a derivative is no finite number, where it is none.
    pub lost: Option<String>,
    /// From forward mode.
    pub forward: f64,
    /// From reverse mode.
    pub reverse: f64,
    /// The size of the terms of the inner products: what rounding is measured by.
    pub scale: f64,
    /// The error that the difference may have.
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
        Ok(Checked { program, of: def.fun, forward, reverse, wrt: wrt.to_vec(), kind: Kind::Modes })
    }

    /// The product of a Hessian and a vector: its gradient in the place of the function, and the product along the change
    /// and along the adjoint in that of the modes.
    ///
    /// # Errors
    /// The function has none.
    pub fn hessian(program: &Program, def: &Def, wrt: &[bool], checkpoint: bool) -> Result<Checked> {
        let wanted = Wanted { fun: def.fun, mode: Mode::Reverse, wrt: wrt.to_vec(), value: false, checkpoint };
        let made = hessian::product(program, &wanted)?;
        let (of, product) = (made.gradient, made.product);
        let program = made.program;
        Ok(Checked { program, of, forward: product, reverse: product, wrt: wrt.to_vec(), kind: Kind::Hessian })
    }

    /// A whole Jacobian: its product with the change in the place of reverse mode.
    ///
    /// # Errors
    /// The function has none.
    pub fn jacobian(
        program: &Program,
        def: &Def,
        wrt: &[bool],
        (layout, checkpoint): (Layout, bool),
    ) -> Result<Checked> {
        let wanted = |mode| Wanted { fun: def.fun, mode, wrt: wrt.to_vec(), value: false, checkpoint };
        let (program, forward) = derive(program, &Wanted { checkpoint: false, ..wanted(Mode::Forward) })?;
        let made = jacobian(&program, &wanted(Mode::Reverse), layout)?;
        let (program, reverse) = (made.program.clone(), made.fun);
        let kind = Kind::Jacobian(Box::new(made));
        Ok(Checked { program, of: def.fun, forward, reverse, wrt: wrt.to_vec(), kind })
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
        if self.is_single() { SINGLE } else { MODES }
    }

    fn is_single(&self) -> bool {
        let bodies = [self.of, self.reverse].map(|f| self.program.defs[&f].term());
        bodies
            .into_iter()
            .flatten()
            .flat_map(|b| self.program.terms.reachable(b))
            .any(|id| self.program.terms.ty(id) == Ty::scalar(Scalar::F32))
    }

    /// Compares at arguments; nothing where the function has no value there.
    ///
    /// # Errors
    /// A derivative fails where the function has a value.
    pub fn at(&self, args: &[Value], seed: i64) -> Result<Option<Point>> {
        let trace = RefCell::new(Trace::default());
        let watch = |e: &Event<'_>| trace.borrow_mut().note(e);
        let interpreter = Interpreter::new(&self.program).watched(&watch);
        let run = |f: Fun, args: &[Value]| {
            trace.take();
            let value = interpreter.run(&self.program.defs[&f], args);
            value.map(|v| (v, trace.take()))
        };
        let Ok((value, here)) = run(self.of, args) else { return Ok(None) };
        let mut hash = Hash::new(seed);
        let changes: Vec<Option<Value>> =
            args.iter().zip(&self.wrt).map(|(a, w)| w.then(|| tangent(&mut hash, a))).collect();
        let dy = tangent(&mut hash, &value);
        let around = Around { value: &value, here: &here, dy: &dy, args, changes: &changes, single: self.is_single() };
        let (found, magnitude) = around.difference(&self.program, &|args| run(self.of, args), &interpreter);
        let moving: Vec<Value> = changes.iter().flatten().cloned().collect();
        let (forward, on) = run(self.forward, &[args, &moving].concat())?;
        let each = |v: &Value| match (v, moving.len()) {
            (_, 1) => vec![v.clone()],
            (Value::Tuple(parts), _) => parts.to_vec(),
            _ => vec![],
        };
        let (forward, scale) = inner(&forward, &dy);
        let ((reverse, other), back) = match &self.kind {
            Kind::Jacobian(made) => {
                let (matrix, back) = run(made.fun, args)?;
                let pattern = made.pattern.map(|f| run(f, args)).transpose()?.map(|(v, _)| v);
                (product(made, (&matrix, pattern.as_ref()), &moving, &dy), back)
            }
            Kind::Modes | Kind::Hessian => {
                let adjoint = if matches!(self.kind, Kind::Hessian) { each(&dy) } else { vec![dy.clone()] };
                let (gradient, back) = run(self.reverse, &[args, &adjoint].concat())?;
                let products = moving.iter().zip(each(&gradient)).map(|(d, g)| inner(d, &g));
                (products.fold((0.0, 0.0), plus), back)
            }
        };
        // Numbers that cancel leave the rounding errors of those that came before.
        let scale = scale.max(other).max(1e-3 * magnitude.max(interpreter.magnitude()));
        let lost = self.lost((&value, &here), (forward, &on), (reverse, &back));
        let limit = if self.is_single() { ROUGHLY } else { DIFFERENCE };
        let settled = found.and_then(|(d, error)| match error <= limit * d.abs().max(scale).max(1e-12) {
            true => Ok((d, error)),
            false => Err(format!("the differences do not settle: {d:.6e}, give or take {error:.1e}")),
        });
        let (difference, noise, rough) = match settled {
            Ok((d, error)) => (Some(d), error, None),
            Err(why) => (None, 0.0, Some(why)),
        };
        Ok(Some(Point { difference, rough, lost, forward, reverse, scale, noise }))
    }

    /// Why the value or a derivative is not finite.
    fn lost(&self, value: (&Value, &Trace), forward: (f64, &Trace), reverse: (f64, &Trace)) -> Option<String> {
        let [one, other, both] = match self.kind {
            Kind::Modes => ["the forward derivative is", "the reverse derivative is", "both derivatives are"],
            Kind::Hessian => ["the product is", "the transposed product is", "the product and its transposed are"],
            Kind::Jacobian(_) => {
                ["the forward derivative is", "the Jacobian is", "the Jacobian and the derivative are"]
            }
        };
        let which = match (forward.0.is_finite(), reverse.0.is_finite()) {
            (true, true) => return None,
            (false, true) => one,
            (true, false) => other,
            (false, false) => both,
        };
        let no_number = if forward.0.is_nan() || reverse.0.is_nan() { "not a number" } else { "infinite" };
        let p = &self.program;
        if let Some(scene) = value.1.lost.as_ref().filter(|_| !finite(value.0)) {
            return Some(format!("{which} {no_number}, since the value is none: {}", scene.told(p)));
        }
        if let Some(scene) = &value.1.singular {
            return Some(format!("{which} {no_number}: the derivative of {} is not finite there", scene.named(p)));
        }
        let trace = if forward.0.is_finite() { reverse.1 } else { forward.1 };
        Some(match &trace.lost {
            Some(scene) => format!("{which} {no_number}: it comes to {}", scene.told(p)),
            None => format!("{which} {no_number}, and no single operation makes it so"),
        })
    }
}

/// What is known at a point whose surroundings are looked at.
struct Around<'a> {
    value: &'a Value,
    here: &'a Trace,
    dy: &'a Value,
    args: &'a [Value],
    changes: &'a [Option<Value>],
    single: bool,
}

/// A run of the function.
type Run<'a> = dyn Fn(&[Value]) -> Result<(Value, Trace)> + 'a;

/// How far arguments are moved for differences, in turn: where a decision is made otherwise nearby, less.
const STEPS: [f64; 3] = [2e-4, 2e-5, 2e-6];
/// The same for single precision.
const LONG_STEPS: [f64; 2] = [0.05, 0.01];
/// An error of differences that is as good as none.
const FINE: f64 = 1e-8;
/// With single precision differences that are so far off are still worth something.
const ROUGHLY: f64 = 0.03;

impl Around<'_> {
    /// The derivative by differences and the error that it may have, or why there is none; and the greatest
    /// magnitude that was met.
    fn difference(
        &self,
        program: &Program,
        run: &Run<'_>,
        interpreter: &Interpreter<'_>,
    ) -> (std::result::Result<(f64, f64), String>, f64) {
        if let Some(scene) = self.here.lost.as_ref().filter(|_| !finite(self.value)) {
            return (Err(format!("there is no value: {}", scene.told(program))), interpreter.magnitude());
        }
        let mut best: Option<(f64, f64)> = None;
        let mut why = String::new();
        let epsilon = if self.single { f64::from(f32::EPSILON) } else { f64::EPSILON };
        let moves = self.args.iter().zip(self.changes).filter(|(_, d)| d.is_some());
        let far = moves.map(|(a, _)| greatest(a)).fold(0.0, f64::max);
        for h in if self.single { &LONG_STEPS[..] } else { &STEPS } {
            // The share of a step that rounding takes from arguments that are large beside it.
            let lost = 16.0 * epsilon / (h / 4.0) * far;
            if lost >= 1.0 {
                why = format!("a step of {h:e} is lost in the rounding of the arguments");
                continue;
            }
            match self.extrapolated(program, run, *h) {
                Ok((d, error)) => {
                    let weight = magnitudes(self.dy);
                    let sums = inner(self.value, self.dy).1.max(interpreter.magnitude() * weight);
                    let error = error + 16.0 * epsilon / (h / 4.0) * sums + lost * d.abs();
                    // Long steps can agree with each other by chance, as those over whole turns of a sine do: shorter
                    // ones that say otherwise are believed.
                    let (agrees, better) = match best {
                        Some((other, least)) => {
                            let agrees = (d - other).abs() <= 10.0 * (error + least);
                            (agrees, !agrees || error < least)
                        }
                        None => (false, true),
                    };
                    if better {
                        best = Some((d, error));
                    }
                    if agrees && error <= FINE * d.abs() {
                        break;
                    }
                }
                Err(reason) => why = reason,
            }
        }
        (best.ok_or(why), interpreter.magnitude())
    }

    /// Central differences with a step, half and a quarter of it, extrapolated to none (Richardson).
    fn extrapolated(&self, program: &Program, run: &Run<'_>, h: f64) -> std::result::Result<(f64, f64), String> {
        let mut each = [0.0; 3];
        for (d, h) in each.iter_mut().zip([h, h / 2.0, h / 4.0]) {
            *d = (self.moved(program, run, h)? - self.moved(program, run, -h)?) / (2.0 * h);
        }
        let [far, middle, near] = each;
        let (first, second) = ((4.0 * middle - far) / 3.0, (4.0 * near - middle) / 3.0);
        let best = (16.0 * second - first) / 15.0;
        match best.is_finite() {
            true => Ok((best, (second - first).abs())),
            false => Err(format!("the value is not finite a step of {h:e} away")),
        }
    }

    /// How much the value changes by a step, or why that says nothing of the derivative.
    fn moved(&self, program: &Program, run: &Run<'_>, h: f64) -> std::result::Result<f64, String> {
        let each = self.args.iter().zip(self.changes);
        let args: Vec<Value> = each.map(|(a, d)| d.as_ref().map_or_else(|| a.clone(), |d| step(a, d, h))).collect();
        let size = h.abs();
        let (there, trace) = run(&args).map_err(|d| format!("a step of {size:e} away it fails: {}", d.message))?;
        if let Some((a, b)) = self.here.turn(&trace) {
            return Err(format!("{} here, but {} a step of {size:e} away", a.told(program), b.applied_with_value()));
        }
        if let Some(scene) = trace.lost.as_ref().filter(|_| !finite(&there)) {
            return Err(format!("a step of {size:e} away {}", scene.told(program)));
        }
        match there.same_shape(self.value) {
            true => Ok(inner(&between(self.value, &there), self.dy).0),
            false => Err(format!("a step of {size:e} away the result has another shape")),
        }
    }
}

/// The sum of the magnitudes of a tangent.
fn magnitudes(v: &Value) -> f64 {
    match v {
        Value::Scalar(l) => l.as_f64().unwrap_or_default().abs(),
        Value::Tuple(each) => each.iter().map(magnitudes).sum(),
        Value::Tensor(t) => t.iter().map(|v| magnitudes(&v)).sum(),
    }
}

/// The greatest magnitude of a float in a value.
fn greatest(v: &Value) -> f64 {
    match v {
        Value::Scalar(l) => l.as_f64().unwrap_or_default().abs(),
        Value::Tuple(each) => each.iter().map(greatest).fold(0.0, f64::max),
        Value::Tensor(t) => t.iter().map(|v| greatest(&v)).fold(0.0, f64::max),
    }
}

/// A random tangent of a value, in its shape.
fn tangent(hash: &mut Hash, v: &Value) -> Value {
    match v {
        Value::Scalar(l @ (Lit::F64(_) | Lit::F32(_))) => {
            let s = l.ty().as_scalar();
            Value::Scalar(s.map_or(*l, |s| Lit::of(s, hash.number())))
        }
        Value::Scalar(_) => Value::tuple(vec![]),
        Value::Tuple(parts) => Value::tuple(parts.iter().map(|p| tangent(hash, p)).collect()),
        Value::Tensor(t) => Value::tensor(t.dims.clone(), t.iter().map(|p| tangent(hash, &p)).collect()),
    }
}

/// A random tangent of a value, in its shape.
pub fn change(of: &Value, seed: i64) -> Value {
    tangent(&mut Hash::new(seed), of)
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
            Value::tensor(a.dims.clone(), a.iter().zip(b.iter()).map(|(x, y)| step(&x, &y, h)).collect())
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
            Value::tensor(a.dims.clone(), a.iter().zip(b.iter()).map(|(x, y)| between(&x, &y)).collect())
        }
        _ => Value::tuple(vec![]),
    }
}
