//! Two programs are run on random inputs: a spot check beside the proof, by the interpreter alone.

use super::Refused;
use crate::diag::Kind;
use crate::eval::{Event, Interpreter, Value, What};
use crate::ir::op::Domain;
use crate::ir::{Def, Lit, Op, Program, Scalar, Ty, TyKind};
use crate::rules::Level;
use crate::rules::assume::Assume;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

/// Inputs that are tried; those on which the original fails show nothing.
pub const TRIALS: u64 = 12;
/// Terms that the original evaluates at most on an input; one that takes more shows nothing.
const WORK: u64 = 100_000;
/// A program on the way may take so many times as much: nothing is shared in it.
const SLOWER: u64 = 4;
/// Relative tolerance where rules hold over the reals, and that where floats of 32 bits are among the values.
const TOLERANCE: f64 = 1e-9;
const NARROW: f64 = 1e-4;

/// Compares two definitions of one type on random inputs; how many inputs showed something. One at which an
/// assumption does not hold shows nothing, and over the reals one at which rounding may have decided.
///
/// # Errors
/// They differ: the input, and both results.
pub fn agree(
    before: (&Program, &Def),
    after: (&Program, &Def),
    (level, assume): (Level, &[Assume]),
    trials: u64,
) -> Result<usize, Refused> {
    let mut shown = 0;
    // Without parameters every run is the same.
    let trials = if before.1.params.is_empty() { 1 } else { trials };
    let tolerance = if is_narrow(before) || is_narrow(after) { NARROW } else { TOLERANCE };
    for seed in 0..trials {
        let args = arguments(before.1, seed);
        let (divided, near) = (Cell::new(false), Near::new(tolerance));
        let watch = |e: &Event<'_>| {
            let zero = e.what == What::Op(Op::Div) && e.args[1].as_f64() == Some(0.0);
            divided.set(divided.get() || zero);
            near.note(e);
        };
        let one = Interpreter::new(before.0).with_work(WORK).watched(&watch);
        let Ok(want) = one.run(before.1, &args) else { continue };
        if divided.get() && assume.contains(&Assume::Nonzero) {
            continue;
        }
        let watch = |e: &Event<'_>| near.note(e);
        let two = Interpreter::new(after.0).with_work(WORK * SLOWER).watched(&watch);
        let input = || args.iter().map(|a| a.to_json().to_string()).collect::<Vec<_>>().join(" ");
        let have = two.run(after.1, &args);
        let scale = one.magnitude().max(two.magnitude()).max(1.0);
        let why = match have {
            Ok(have) if near_at(&want, &have, level, tolerance * scale, tolerance) => {
                shown += 1;
                continue;
            }
            Ok(have) => format!("on {} it was {}, and is {}", input(), want.to_json(), have.to_json()),
            Err(d) if d.kind == Kind::Limit => continue,
            Err(d) => format!("on {} the result fails: {}", input(), d.message),
        };
        // Where a number is within rounding of a jump, either side of it may be right.
        if level == Level::Exact || !near.jumps(scale) {
            return Err(why);
        }
    }
    Ok(shown)
}

/// Whether a definition, or what it calls, computes with floats of 32 bits.
fn is_narrow((program, def): (&Program, &Def)) -> bool {
    let (mut open, mut seen) = (vec![def], BTreeSet::new());
    while let Some(def) = open.pop() {
        let Some(body) = def.term().filter(|_| seen.insert(def.fun)) else { continue };
        if program.terms.reachable(body).into_iter().any(|id| has_narrow(program.terms.ty(id))) {
            return true;
        }
        open.extend(program.terms.calls(body).iter().filter_map(|fun| program.defs.get(fun)));
    }
    false
}

fn has_narrow(ty: Ty) -> bool {
    match ty.kind() {
        TyKind::Scalar(s) => *s == Scalar::F32,
        TyKind::Tensor(_, elem) => has_narrow(*elem),
        TyKind::Tuple(parts) => parts.iter().any(|part| has_narrow(*part)),
        TyKind::String | TyKind::Var(..) => false,
    }
}

/// How near the numbers of runs came to where what is made of them jumps, or ends: there other rounding makes another
/// value of it.
struct Near {
    tolerance: f64,
    /// Whether one was within that of a jump, relative to its own size.
    relative: Cell<bool>,
    /// The least distance from a jump.
    absolute: Cell<f64>,
}

impl Near {
    fn new(tolerance: f64) -> Near {
        Near { tolerance, relative: Cell::new(false), absolute: Cell::new(f64::INFINITY) }
    }

    fn note(&self, e: &Event<'_>) {
        let Some(x) = e.args.first().and_then(|x| x.as_f64()) else { return };
        let y = e.args.get(1).and_then(|y| y.as_f64());
        match e.what {
            What::Op(Op::Floor | Op::Ceil | Op::Truncate) => self.met((x - x.round()).abs(), x.abs()),
            What::Cast(s) if s.is_int() => self.met((x - x.round()).abs(), x.abs()),
            What::Op(Op::Mod | Op::FloorMod | Op::FloorDiv) => {
                let q = x / y.unwrap_or_default();
                self.met((q - q.round()).abs(), q.abs());
            }
            What::Op(Op::Lt | Op::Gt | Op::Lte | Op::Gte | Op::Eq | Op::Ne | Op::Precedes) => {
                let y = y.unwrap_or_default();
                self.met((x - y).abs(), x.abs().max(y.abs()));
            }
            What::Op(op) => match op.row().domain {
                Domain::All => {}
                Domain::Divisor => self.met(y.unwrap_or_default().abs(), 0.0),
                Domain::Positive | Domain::Natural | Domain::Power | Domain::Unknown => self.met(x.abs(), 0.0),
                Domain::Unit => self.met((x.abs() - 1.0).abs(), 1.0),
            },
            What::Cast(_) => {}
        }
    }

    /// Numbers of a size came so near.
    fn met(&self, distance: f64, size: f64) {
        // What is no number was none on both sides of a jump.
        if distance <= self.tolerance * size {
            self.relative.set(true);
        }
        self.absolute.set(self.absolute.get().min(distance));
    }

    /// Whether the runs, whose numbers were as large as this, came within rounding of a jump.
    fn jumps(&self, scale: f64) -> bool {
        self.relative.get() || self.absolute.get() <= self.tolerance * scale
    }
}

/// Whether values are equal at a level, or as near as this, or relatively as near as that. Where the reals have no
/// value, `real` promises none.
fn near_at(a: &Value, b: &Value, level: Level, absolute: f64, relative: f64) -> bool {
    match (a, b) {
        (Value::Scalar(x), Value::Scalar(y)) => match (x.as_f64(), y.as_f64()) {
            (Some(p), Some(q)) if p.is_nan() && q.is_nan() => true,
            (Some(p), Some(q)) if level == Level::Real => {
                !p.is_finite() || (p - q).abs() <= absolute.max(relative * p.abs().max(q.abs()))
            }
            _ => x == y,
        },
        (Value::Tuple(x), Value::Tuple(y)) => {
            x.iter().zip(y.iter()).all(|(p, q)| near_at(p, q, level, absolute, relative))
        }
        (Value::Tensor(x), Value::Tensor(y)) => {
            x.dims == y.dims && x.iter().zip(y.iter()).all(|(p, q)| near_at(&p, &q, level, absolute, relative))
        }
        _ => false,
    }
}

/// Random arguments; sizes that share a name are equal. Every other time floats are such that sums and products of
/// them round.
fn arguments(def: &Def, seed: u64) -> Vec<Value> {
    let mut rng = Random { rng: StdRng::seed_from_u64(seed), rounds: seed % 2 == 1 };
    let mut sizes: BTreeMap<&str, usize> = BTreeMap::new();
    let mut out = vec![];
    for p in &def.params {
        let dims: Vec<usize> = (0..p.ty.axes())
            .map(|axis| match p.sizes.get(axis) {
                Some(name) => *sizes.entry(name).or_insert_with(|| rng.rng.random_range(0..5)),
                None => rng.rng.random_range(0..5),
            })
            .collect();
        out.push(value(&mut rng, p.ty, &dims));
    }
    out
}

struct Random {
    rng: StdRng,
    rounds: bool,
}

impl Random {
    fn float(&mut self) -> f64 {
        match self.rounds {
            true => self.rng.random_range(-4.0..4.0),
            false => f64::from(self.rng.random_range(-16..=16)) / 4.0,
        }
    }
}

fn value(rng: &mut Random, ty: Ty, dims: &[usize]) -> Value {
    match ty.kind() {
        TyKind::Tuple(parts) => {
            let mut part = |p: &Ty| {
                let dims: Vec<usize> = (0..p.axes()).map(|_| rng.rng.random_range(0..4)).collect();
                value(rng, *p, &dims)
            };
            Value::tuple(parts.iter().map(&mut part).collect())
        }
        TyKind::Tensor(rank, elem) => {
            let (own, inner) = dims.split_at((*rank).min(dims.len()));
            let data = (0..own.iter().product::<usize>()).map(|_| value(rng, *elem, inner)).collect();
            Value::tensor(own.to_vec(), data)
        }
        TyKind::Scalar(Scalar::Bool) => Value::Scalar(Lit::Bool(rng.rng.random())),
        TyKind::Scalar(s) if s.is_float() => Value::Scalar(Lit::of(*s, rng.float())),
        TyKind::Scalar(s) => Value::Scalar(Lit::Int(*s, rng.rng.random_range(0..6))),
        TyKind::String | TyKind::Var(..) => Value::Scalar(Lit::Str("text")),
    }
}
