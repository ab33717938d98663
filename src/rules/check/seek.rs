//! Values at which a comparison of a rule turns out otherwise than it does at random ones.
//!
//! A comparison with one number among all is true at random for almost nothing. But how far it is from
//! true can be measured, and made less by changing one variable at a time, by larger and larger steps
//! (the alternating variable method of search-based testing). It must not judge.

use super::distance::Distances;
use super::instance::{Ask, Instance, Role, Slot};
use super::number::Arithmetic;
use super::real::{Evaluator, Prepared};
use super::value::real;
use crate::eval::Value;
use crate::ir::Lit;
use std::cell::RefCell;

/// Evaluations for one outcome of one comparison.
const BUDGET: usize = 300;
/// Variables, and elements of tensors, that are changed at most.
const MAX_PLACES: usize = 16;
/// Integers beyond this are far from all others.
const FAR: u64 = 1_000_000;
/// No size becomes larger.
const MAX_SIZE: i64 = 300;
/// The first of the growing steps; where the distance is a plateau, only a large one leaves it.
const WHOLE: [f64; 5] = [1.0, 8.0, 64.0, 4096.0, 16_777_216.0];
const BROKEN: [f64; 5] = [1.0, 0.0625, 0.000_976_562_5, 64.0, 4096.0];

/// How far values are from an outcome: conditions on the way to the comparison that do not hold, and
/// how far the first of them is from holding.
type Fitness = (usize, f64);

/// What is changed: a variable, and which of the scalars in it.
type Place = (usize, usize);

/// Looks for values at which a comparison has an outcome.
pub struct Seeker<'a> {
    instance: &'a Instance,
    prepared: &'a Prepared,
    arithmetic: &'a Arithmetic,
    slots: &'a [Slot],
    left: usize,
}

impl<'a> Seeker<'a> {
    /// For one instance.
    pub fn new(
        instance: &'a Instance,
        prepared: &'a Prepared,
        arithmetic: &'a Arithmetic,
        slots: &'a [Slot],
    ) -> Seeker<'a> {
        Seeker { instance, prepared, arithmetic, slots, left: 0 }
    }

    /// Changes values until the comparison has the outcome; whether that was reached.
    pub fn reach(&mut self, values: &mut Vec<Value>, ask: &Ask, outcome: bool) -> bool {
        self.left = BUDGET;
        self.begin_small(values);
        let mut best = self.fitness(values, ask, outcome);
        let places: Vec<Place> = self.places(values);
        loop {
            let before = best;
            for place in &places {
                if best == (0, 0.0) || self.left == 0 {
                    return best == (0, 0.0);
                }
                self.along(values, *place, ask, outcome, &mut best);
            }
            if best >= before {
                return best == (0, 0.0);
            }
        }
    }

    /// Large integers become small ones: from there all others are near.
    fn begin_small(&self, values: &mut [Value]) {
        for (k, j) in self.places(values) {
            if let Some(Lit::Int(s, v)) = leaf(&values[k], j)
                && v.unsigned_abs() > FAR
            {
                values[k] = replaced(&values[k], &mut { j }, Lit::Int(s, s.wrap(v % 101)));
            }
        }
    }

    /// Changes one scalar for as long as that helps.
    fn along(&mut self, values: &mut Vec<Value>, place: Place, ask: &Ask, outcome: bool, best: &mut Fitness) {
        let steps = match leaf(&values[place.0], place.1) {
            Some(Lit::Bool(_)) => [1.0; 5],
            Some(Lit::Int(..)) => WHOLE,
            Some(_) => BROKEN,
            None => return,
        };
        'first: for first in steps {
            for sign in [1.0, -1.0] {
                let mut step = sign * first;
                let mut helped = false;
                while self.left > 0 && *best != (0, 0.0) {
                    let mut next = values.clone();
                    if !self.moved(&mut next, place, step) {
                        break;
                    }
                    let fitness = self.fitness(&next, ask, outcome);
                    if fitness >= *best {
                        break;
                    }
                    (*best, *values, helped) = (fitness, next, true);
                    step *= 2.0;
                }
                if helped && self.left > 0 && *best != (0, 0.0) {
                    // Beyond the best place the steps begin small again.
                    self.along(values, place, ask, outcome, best);
                    break 'first;
                }
            }
        }
    }

    fn fitness(&mut self, values: &[Value], ask: &Ask, outcome: bool) -> Fitness {
        self.left = self.left.saturating_sub(1);
        let seen = RefCell::new(Distances::default());
        for root in [self.instance.sides.0, self.instance.sides.1] {
            let mut env = values.iter().map(real).collect();
            // What stops early was seen as far as it came.
            let _ = Evaluator::new(self.prepared, self.arithmetic).watched(&seen).eval(root, &mut env);
        }
        let seen = seen.into_inner();
        let way = ask.under.iter().copied().chain([(ask.at, outcome)]);
        let n = ask.under.len() + 1;
        for (k, (id, wanted)) in way.enumerate() {
            match seen.to(id, wanted) {
                Some(0.0) => {}
                far => return (n - k, far.unwrap_or(f64::INFINITY)),
            }
        }
        (0, 0.0)
    }

    fn places(&self, values: &[Value]) -> Vec<Place> {
        let each = values.iter().enumerate().flat_map(|(k, v)| (0..leaves(v)).map(move |j| (k, j)));
        each.take(MAX_PLACES).collect()
    }

    /// Adds a step to a scalar; whether it may be so.
    fn moved(&self, values: &mut [Value], (k, j): Place, step: f64) -> bool {
        let most = if self.slots[k].role == Role::Size { MAX_SIZE } else { i64::MAX };
        let Some(old) = leaf(&values[k], j) else { return false };
        let new = match old {
            Lit::Bool(b) => Lit::Bool(!b),
            Lit::Int(s, v) => match v.checked_add(step as i64).filter(|w| s.wrap(*w) == *w && *w <= most) {
                Some(v) => Lit::Int(s, v),
                None => return false,
            },
            l => match (l.as_f64(), l.ty().as_scalar()) {
                (Some(v), Some(s)) if (v + step).is_finite() => Lit::of(s, v + step),
                _ => return false,
            },
        };
        values[k] = replaced(&values[k], &mut { j }, new);
        new != old
    }
}

/// How many scalars a value has.
pub fn leaves(v: &Value) -> usize {
    match v {
        Value::Scalar(_) => 1,
        Value::Tuple(parts) => parts.iter().map(leaves).sum(),
        Value::Tensor(t) => t.iter().map(|v| leaves(&v)).sum(),
    }
}

/// One of the scalars of a value.
fn leaf(v: &Value, k: usize) -> Option<Lit> {
    match v {
        Value::Scalar(l) => (k == 0).then_some(*l),
        Value::Tuple(parts) => inside(parts.iter().cloned(), k),
        Value::Tensor(t) => inside(t.iter(), k),
    }
}

fn inside(each: impl Iterator<Item = Value>, mut k: usize) -> Option<Lit> {
    for v in each {
        let n = leaves(&v);
        if k < n {
            return leaf(&v, k);
        }
        k -= n;
    }
    None
}

/// A value with another scalar in the place of one, which is counted down to.
pub fn replaced(v: &Value, k: &mut usize, new: Lit) -> Value {
    let n = leaves(v);
    if *k >= n {
        *k -= n;
        return v.clone();
    }
    let out = match v {
        Value::Scalar(_) => Value::Scalar(new),
        Value::Tuple(parts) => Value::tuple(parts.iter().map(|p| replaced(p, k, new)).collect()),
        Value::Tensor(t) => Value::tensor(t.dims.clone(), t.iter().map(|p| replaced(&p, k, new)).collect()),
    };
    *k = usize::MAX;
    out
}
