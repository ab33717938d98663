//! One instance and values for its variables become a verdict: does the rule keep what it claims?
//!
//! Bits are judged by the interpreter, real numbers by `real.rs`, conditions by their meaning. It
//! must not know how instances are made.

use super::instance::{Instance, Place, Slot, position};
use super::number::Arithmetic;
use super::real::{Evaluator, Prepared, Stop};
use super::seek::Seeker;
use super::value::{Agreement, Real, compare, has_value, real};
use crate::diag::Kind;
use crate::eval::{Interpreter, Value};
use crate::ir::{Head, Id, Lit};
use crate::rules::{Condition, Level, Meta, Rule};
use std::cmp::Ordering;

/// In which way a rule breaks its promise.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Wrong {
    /// Both sides have values, and they differ.
    Value,
    /// The left side has a value or none over the reals, and the right side fails.
    Failure,
    /// The right side has a value where the left has none over the reals.
    Invented,
    /// The left side has a value over the reals where the right has none.
    Lost,
}

impl Wrong {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Wrong::Value => "the sides have different values",
            Wrong::Failure => "the right side fails where the left does not",
            Wrong::Invented => "the right side has a value where the left has none over the reals",
            Wrong::Lost => "the right side has no value over the reals where the left has one",
        }
    }
}

/// What one instance says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Nothing: it cannot be decided, or is too large.
    Skipped,
    /// These conditions, by position, do not hold, and the rule does not apply.
    Guarded(u32),
    /// The left side fails, so anything may stand there.
    LeftFails,
    /// The rule keeps its promise.
    Holds,
    /// It does not.
    Wrong(Wrong),
}

/// Precisions that are tried one after the other, in bits.
const PRECISIONS: [usize; 2] = [160, 512];

/// Judges instances; the constants of its arithmetic are computed once.
pub struct Judge {
    arithmetic: Vec<Arithmetic>,
}

impl Default for Judge {
    fn default() -> Judge {
        Judge { arithmetic: PRECISIONS.into_iter().map(Arithmetic::new).collect() }
    }
}

/// An instance with its evaluators.
pub struct Trial<'a> {
    rule: &'a Rule,
    instance: &'a Instance,
    interpreter: Interpreter<'a>,
    prepared: Prepared,
    judge: &'a Judge,
}

/// Whether two values have the same bits; NaNs are not told apart.
pub fn same_bits(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Scalar(a), Value::Scalar(b)) => {
            a == b || a.ty() == b.ty() && a.as_f64().zip(b.as_f64()).is_some_and(|(x, y)| x.is_nan() && y.is_nan())
        }
        (Value::Tuple(a), Value::Tuple(b)) => a.iter().zip(b.iter()).all(|(x, y)| same_bits(x, y)),
        (Value::Tensor(a), Value::Tensor(b)) => {
            a.dims == b.dims && a.iter().zip(b.iter()).all(|(x, y)| same_bits(&x, &y))
        }
        _ => false,
    }
}

/// An instance that takes more evaluations is skipped: a wrong rule may run a loop for ever.
const WORK: u64 = 200_000;

impl<'a> Trial<'a> {
    /// Prepares an instance.
    pub fn new(judge: &'a Judge, rule: &'a Rule, instance: &'a Instance) -> Trial<'a> {
        let roots: Vec<Id> = instance.defs.iter().filter_map(|d| d.term()).collect();
        let prepared = Prepared::new(&instance.program.terms, &roots);
        let interpreter = Interpreter::new(&instance.program).with_work(WORK);
        Trial { rule, instance, interpreter, prepared, judge }
    }

    /// What looks for values at which a comparison turns out as is asked.
    pub fn seeker<'s>(&'s self, instance: &'s Instance, slots: &'s [Slot]) -> Seeker<'s> {
        Seeker::new(instance, &self.prepared, &self.judge.arithmetic[0], slots)
    }

    /// Judges at values; `without` leaves out the conditions of a bit set.
    pub fn judge(&self, values: &[Value], level: Level, without: u32) -> Outcome {
        // The left side first: where it fails, nothing else need be known.
        match level {
            Level::Exact => self.exact(values, without),
            Level::Real => self.reals(values, without),
        }
    }

    fn exact(&self, values: &[Value], without: u32) -> Outcome {
        let defs = &self.instance.defs;
        let left = match self.interpreter.run(&defs[0], values) {
            Ok(v) => v,
            Err(d) if d.kind == Kind::User => return Outcome::LeftFails,
            Err(_) => return Outcome::Skipped,
        };
        match self.guards(values, Level::Exact) {
            Ok(failed) if failed & !without == 0 => {}
            Ok(failed) => return Outcome::Guarded(failed),
            Err(_) => return Outcome::Skipped,
        }
        match self.interpreter.run(&defs[1], values) {
            Ok(right) if same_bits(&left, &right) => Outcome::Holds,
            Ok(_) => Outcome::Wrong(Wrong::Value),
            Err(d) if d.kind == Kind::User => Outcome::Wrong(Wrong::Failure),
            Err(_) => Outcome::Skipped,
        }
    }

    fn reals(&self, values: &[Value], without: u32) -> Outcome {
        let env: Vec<Real> = values.iter().map(real).collect();
        let mut guarded = false;
        for arithmetic in &self.judge.arithmetic {
            let eval = |id: Id| Evaluator::new(&self.prepared, arithmetic).eval(id, &mut env.clone());
            let left = match eval(self.instance.sides.0) {
                Ok(v) => v,
                Err(Stop::Fails(_)) => return Outcome::LeftFails,
                Err(Stop::Undecided) => continue,
            };
            if !guarded {
                match self.guards(values, Level::Real) {
                    Ok(failed) if failed & !without == 0 => guarded = true,
                    Ok(failed) => return Outcome::Guarded(failed),
                    Err(_) => return Outcome::Skipped,
                }
            }
            let right = match eval(self.instance.sides.1) {
                Ok(v) => v,
                // Bits decide what an exact rule does where there is no value.
                Err(Stop::Fails(_)) if self.rule.level == Level::Exact && !has_value(&left) => return Outcome::Holds,
                Err(Stop::Fails(_)) => return Outcome::Wrong(Wrong::Failure),
                Err(Stop::Undecided) => continue,
            };
            match compare(&left, &right) {
                Agreement::Same => return Outcome::Holds,
                Agreement::Undecided => {}
                Agreement::Invented | Agreement::Lost if self.rule.level == Level::Exact => return Outcome::Holds,
                Agreement::Invented => return Outcome::Wrong(Wrong::Invented),
                Agreement::Lost => return Outcome::Wrong(Wrong::Lost),
                Agreement::Differ => return Outcome::Wrong(Wrong::Value),
            }
        }
        Outcome::Skipped
    }

    /// The conditions that do not hold, as a bit set by position.
    fn guards(&self, values: &[Value], level: Level) -> Result<u32, Stop> {
        let mut failed = 0;
        for (k, (condition, metas)) in self.rule.when.iter().enumerate() {
            if !self.everywhere(*condition, metas, values, level)? {
                failed |= 1 << k.min(31);
            }
        }
        Ok(failed)
    }

    /// Whether a condition holds for all values of the variables that its metavariables depend on.
    fn everywhere(&self, c: Condition, metas: &[Meta], values: &[Value], level: Level) -> Result<bool, Stop> {
        let applied = metas.iter().find(|m| matches!(m, Meta::Applied(_)));
        let Some(applied) = applied else { return self.holds(c, metas, values, &[], level) };
        let at = position(self.rule, *applied);
        for place in self.instance.places.iter().filter(|p| p.meta == at) {
            let Some(all) = self.indices(place, values)? else { return Ok(false) };
            for args in all {
                if !self.holds(c, metas, values, &args, level)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// All values that a metavariable is applied to at a place; nothing where they are not indices.
    fn indices(&self, place: &Place, values: &[Value]) -> Result<Option<Vec<Vec<Value>>>, Stop> {
        let mut scopes: Vec<Vec<i64>> = vec![vec![]];
        for (head, kids) in &place.binders {
            let sizes: &[Id] = match head {
                Head::Build(d) | Head::Reduce(_, d) => &kids[..*d],
                Head::Arg(_) => &kids[..1],
                Head::Scatter(d) => &kids[*d..],
                _ => return Ok(None),
            };
            let mut next = vec![];
            for scope in scopes {
                let mut env: Vec<Real> = values.iter().map(real).collect();
                env.extend(scope.iter().map(|i| Real::Lit(Lit::int(*i))));
                let mut inner = vec![scope];
                for id in sizes {
                    let n = match Evaluator::new(&self.prepared, &self.judge.arithmetic[0]).eval(*id, &mut env) {
                        Ok(Real::Lit(l)) => l.as_int().unwrap_or_default(),
                        _ => return Ok(None),
                    };
                    let extend = |s: Vec<i64>| (0..n).map(move |i| s.iter().copied().chain([i]).collect());
                    inner = inner.into_iter().flat_map(extend).collect();
                }
                next.extend(inner);
            }
            if next.len() > 2_000 {
                return Err(Stop::Undecided);
            }
            scopes = next;
        }
        let value = |scope: &Vec<i64>, index: &usize| Value::Scalar(Lit::int(scope[scope.len() - 1 - index]));
        Ok(Some(scopes.iter().map(|s| place.args.iter().map(|i| value(s, i)).collect()).collect()))
    }

    fn holds(
        &self,
        c: Condition,
        metas: &[Meta],
        values: &[Value],
        args: &[Value],
        level: Level,
    ) -> Result<bool, Stop> {
        let all = |m: &Meta| match m {
            Meta::Plain(_) => values.to_vec(),
            Meta::Applied(_) => [values, args].concat(),
        };
        let value = |m: &Meta| self.meta(position(self.rule, *m), &all(m), level);
        let first = value(&metas[0])?;
        if matches!(c, Condition::Total | Condition::Defined | Condition::Valued) {
            let total = first.is_some();
            return Ok(
                total && (c == Condition::Total || level == Level::Exact || first.as_ref().is_some_and(has_value))
            );
        }
        if self.unknown_sign(c, metas[0]) {
            return Ok(false);
        }
        // Bounds hold wherever there is a value.
        let Some(first) = first.filter(|v| *v != Real::Nothing) else {
            return match metas.get(1).map(value).transpose()?.flatten() {
                Some(Real::Lit(n)) if c == Condition::InRange => Ok(n.as_int() > Some(0)),
                _ => Ok(c != Condition::InRange),
            };
        };
        let sign = match &first {
            Real::Number(n) => n.sign()?,
            Real::Lit(l) => l.as_int().unwrap_or_default().cmp(&0),
            _ => Ordering::Equal,
        };
        Ok(match c {
            Condition::Nonzero | Condition::Divisor => sign.is_ne(),
            Condition::Positive => sign.is_gt(),
            Condition::Nonnegative => sign.is_ge(),
            Condition::InRange => match (&first, value(&metas[1])?) {
                (Real::Lit(i), Some(Real::Lit(n))) => sign.is_ge() && i.as_int() < n.as_int(),
                (_, None) => true,
                _ => false,
            },
            Condition::SameSize => value(&metas[1])?.is_none_or(|other| super::value::same_shape(&first, &other)),
            Condition::Total | Condition::Defined | Condition::Valued => true,
        })
    }

    /// In an exact rule the sign of a float is known of literals only.
    fn unknown_sign(&self, c: Condition, meta: Meta) -> bool {
        let sign = matches!(c, Condition::Nonzero | Condition::Positive | Condition::Nonnegative);
        let def = &self.instance.defs[2 + position(self.rule, meta)];
        let literal = def.term().and_then(|t| self.instance.program.terms.as_lit(t)).is_some();
        sign && self.rule.level == Level::Exact && def.fun.sig().ret.is_linear() && !literal
    }

    /// The value of a metavariable's term; nothing where it fails.
    fn meta(&self, k: usize, values: &[Value], level: Level) -> Result<Option<Real>, Stop> {
        let def = &self.instance.defs[2 + k];
        if level == Level::Exact {
            return match self.interpreter.run(def, values) {
                Ok(v) => Ok(Some(real(&v))),
                Err(d) if d.kind == Kind::User => Ok(None),
                Err(_) => Err(Stop::Undecided),
            };
        }
        let Some(body) = def.term() else { return Ok(None) };
        let mut env: Vec<Real> = values.iter().map(real).collect();
        let mut last = Stop::Undecided;
        for arithmetic in &self.judge.arithmetic {
            match Evaluator::new(&self.prepared, arithmetic).eval(body, &mut env) {
                Ok(v) => return Ok(Some(v)),
                Err(Stop::Fails(_)) => return Ok(None),
                Err(stop) => last = stop,
            }
        }
        Err(last)
    }

    /// What the interpreter makes of the two sides, as text.
    pub fn shown(&self, values: &[Value]) -> (String, String) {
        let run = |k: usize| match self.interpreter.run(&self.instance.defs[k], values) {
            Ok(v) => v.to_json().to_string(),
            Err(d) => format!("error: {}", d.message),
        };
        (run(0), run(1))
    }

    /// Whether the interpreter tells the two sides apart by more than rounding.
    pub fn visible(&self, values: &[Value]) -> bool {
        let run = |k: usize| self.interpreter.run(&self.instance.defs[k], values).ok();
        match (run(0), run(1)) {
            (Some(a), Some(b)) => !near(&a, &b),
            (a, b) => a.is_some() != b.is_some(),
        }
    }
}

fn near(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Scalar(x), Value::Scalar(y)) => match (x.as_f64(), y.as_f64()) {
            (Some(x), Some(y)) => {
                x == y || x.is_nan() && y.is_nan() || (x - y).abs() <= 1e-6 * x.abs().max(y.abs()).max(1e-300)
            }
            _ => x == y,
        },
        (Value::Tuple(a), Value::Tuple(b)) => a.iter().zip(b.iter()).all(|(x, y)| near(x, y)),
        (Value::Tensor(a), Value::Tensor(b)) => a.dims == b.dims && a.iter().zip(b.iter()).all(|(x, y)| near(&x, &y)),
        _ => false,
    }
}
