//! Two programs are run on random inputs: a spot check beside the proof, by the interpreter alone.

use super::Refused;
use crate::diag::Kind;
use crate::eval::{Event, Interpreter, Value, What};
use crate::ir::{Def, Lit, Op, Program, Scalar, Ty, TyKind};
use crate::rules::Level;
use crate::rules::assume::Assume;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::cell::Cell;
use std::collections::BTreeMap;

/// Inputs that are tried; those on which the original fails show nothing.
pub const TRIALS: u64 = 12;
/// Terms that the original evaluates at most on an input; one that takes more shows nothing.
const WORK: u64 = 100_000;
/// A program on the way may take so many times as much: nothing is shared in it.
const SLOWER: u64 = 4;
/// Relative tolerance where rules hold over the reals.
const TOLERANCE: f64 = 1e-9;

/// Compares two definitions of one type on random inputs; how many inputs showed something. One at which an
/// assumption does not hold shows nothing.
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
    for seed in 0..trials {
        let args = arguments(before.1, seed);
        let divided = Cell::new(false);
        let watch = |e: &Event<'_>| {
            let zero = e.what == What::Op(Op::Div) && e.args[1].as_f64() == Some(0.0);
            divided.set(divided.get() || zero);
        };
        let one = Interpreter::new(before.0).with_work(WORK).watched(&watch);
        let Ok(want) = one.run(before.1, &args) else { continue };
        if divided.get() && assume.contains(&Assume::Nonzero) {
            continue;
        }
        let two = Interpreter::new(after.0).with_work(WORK * SLOWER);
        let input = || args.iter().map(|a| a.to_json().to_string()).collect::<Vec<_>>().join(" ");
        let have = match two.run(after.1, &args) {
            Ok(have) => have,
            Err(d) if d.kind == Kind::Limit => continue,
            Err(d) => return Err(format!("on {} the result fails: {}", input(), d.message)),
        };
        let scale = one.magnitude().max(two.magnitude()).max(1.0);
        if !near(&want, &have, level, scale) {
            return Err(format!("on {} it was {}, and is {}", input(), want.to_json(), have.to_json()));
        }
        shown += 1;
    }
    Ok(shown)
}

/// Whether values are equal at a level. Where the reals have no value, `real` promises none.
fn near(a: &Value, b: &Value, level: Level, scale: f64) -> bool {
    match (a, b) {
        (Value::Scalar(x), Value::Scalar(y)) => match (x.as_f64(), y.as_f64()) {
            (Some(p), Some(q)) if p.is_nan() && q.is_nan() => true,
            (Some(p), Some(q)) if level == Level::Real => {
                !p.is_finite() || (p - q).abs() <= TOLERANCE * p.abs().max(q.abs()).max(scale)
            }
            _ => x == y,
        },
        (Value::Tuple(x), Value::Tuple(y)) => x.iter().zip(y.iter()).all(|(p, q)| near(p, q, level, scale)),
        (Value::Tensor(x), Value::Tensor(y)) => {
            x.dims == y.dims && x.iter().zip(y.iter()).all(|(p, q)| near(&p, &q, level, scale))
        }
        _ => false,
    }
}

/// Random arguments; sizes that share a name are equal.
fn arguments(def: &Def, seed: u64) -> Vec<Value> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut sizes: BTreeMap<&str, usize> = BTreeMap::new();
    let mut out = vec![];
    for p in &def.params {
        let dims: Vec<usize> = (0..p.ty.axes())
            .map(|axis| match p.sizes.get(axis) {
                Some(name) => *sizes.entry(name).or_insert_with(|| rng.random_range(0..5)),
                None => rng.random_range(0..5),
            })
            .collect();
        out.push(value(&mut rng, p.ty, &dims));
    }
    out
}

fn value(rng: &mut StdRng, ty: Ty, dims: &[usize]) -> Value {
    match ty.kind() {
        TyKind::Tuple(parts) => {
            let mut part = |p: &Ty| {
                let dims: Vec<usize> = (0..p.axes()).map(|_| rng.random_range(0..4)).collect();
                value(rng, *p, &dims)
            };
            Value::tuple(parts.iter().map(&mut part).collect())
        }
        TyKind::Tensor(rank, elem) => {
            let (own, inner) = dims.split_at((*rank).min(dims.len()));
            let data = (0..own.iter().product::<usize>()).map(|_| value(rng, *elem, inner)).collect();
            Value::tensor(own.to_vec(), data)
        }
        TyKind::Scalar(Scalar::Bool) => Value::Scalar(Lit::Bool(rng.random())),
        TyKind::Scalar(s) if s.is_float() => Value::Scalar(Lit::of(*s, f64::from(rng.random_range(-16..=16)) / 4.0)),
        TyKind::Scalar(s) => Value::Scalar(Lit::Int(*s, rng.random_range(0..6))),
        TyKind::String | TyKind::Var(..) => Value::Scalar(Lit::Str("text")),
    }
}
