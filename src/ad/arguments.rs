//! A function becomes arguments at which it has a value: floats by chance, sizes and integers by trying.
//!
//! Sizes that share a name are equal. Those that depend on each other otherwise, as in a matrix that is
//! given as one vector, are found by trying small ones. It must not know what the arguments are for.

use crate::diag::{Diagnostic, Result};
use crate::eval::{Interpreter, Value};
use crate::ir::evaluate::ranhash;
use crate::ir::{Def, Lit, Program, Ty, TyKind};
use std::collections::BTreeMap;

/// A fixed sequence of random numbers.
pub(super) struct Hash {
    seed: i64,
    next: i64,
}

impl Hash {
    /// Begins at a seed.
    pub(super) fn new(seed: i64) -> Hash {
        Hash { seed, next: 0 }
    }

    /// Between -1 and 1.
    pub(super) fn number(&mut self) -> f64 {
        self.next += 1;
        2.0 * ranhash(self.seed.wrapping_mul(1_000_003).wrapping_add(self.next)) - 1.0
    }

    /// Below a number.
    fn below(&mut self, n: usize) -> usize {
        (self.number().abs() * n as f64) as usize
    }
}

/// Values of the sizes and integers of a function.
#[derive(Clone, Debug)]
struct Shape {
    /// Sizes: one for each name, and one for each axis without.
    sizes: Vec<usize>,
    /// Integer parameters; random below the least size where there is no choice.
    integers: Option<Vec<i64>>,
    /// Whether floats are between 0 and 1 only.
    positive: bool,
}

/// Finds arguments of one function, and keeps the sizes that worked.
pub struct Arguments<'a> {
    program: &'a Program,
    def: &'a Def,
    extent: usize,
    worked: Option<Shape>,
    /// Whether the value was finite there: else none that is finite was found.
    finite: bool,
}

/// Sizes and integers that are tried.
const SMALL: [usize; 12] = [1, 2, 3, 4, 6, 8, 9, 12, 16, 5, 7, 0];
/// Choices of them, beside the plain ones.
const TRIES: i64 = 3000;
/// Terms that are evaluated in one try with unequal sizes.
const WORK: u64 = 50_000;
/// The same with equal ones.
const PATIENT: u64 = 20_000_000;

impl<'a> Arguments<'a> {
    /// For a function; sizes are `extent` where that works.
    pub fn new(program: &'a Program, def: &'a Def, extent: usize) -> Arguments<'a> {
        Arguments { program, def, extent, worked: None, finite: true }
    }

    /// Arguments at which the function has a value, and a finite one where there are such.
    ///
    /// # Errors
    /// It fails at all that were tried: how, at the last ones.
    pub fn find(&mut self, seed: i64) -> Result<Vec<Value>> {
        let (args, shape, finite) = self.search(seed)?;
        (self.worked, self.finite) = (Some(shape), finite);
        Ok(args)
    }

    /// Arguments, what they are like, and whether the value is finite or need not be.
    fn search(&self, seed: i64) -> Result<(Vec<Value>, Shape, bool)> {
        let [patient, quick] = [PATIENT, WORK].map(|work| Interpreter::new(self.program).with_work(work));
        let (mut second, mut last) = (None, None);
        let plain: Vec<Shape> = self.worked.clone().into_iter().chain(self.plain()).collect();
        let n = plain.len();
        for (k, shape) in plain.into_iter().chain((0..TRIES).map(|k| self.mixed(k))).enumerate() {
            let interpreter = if k < n { &patient } else { &quick };
            let args = self.made(&shape, seed);
            let settled = shape.positive && shape.sizes.iter().all(|n| *n == self.extent);
            match interpreter.run(self.def, &args) {
                Ok(value) if finite(&value) || !self.finite => return Ok((args, shape, self.finite)),
                Ok(_) if second.is_none() => second = Some((args, shape, false)),
                Ok(_) => {}
                Err(d) => last = Some(d),
            }
            // What is not finite anywhere near need not be looked for for long.
            if settled && second.is_some() && last.is_none() {
                break;
            }
        }
        second.ok_or_else(|| self.none(last))
    }

    fn none(&self, last: Option<Box<Diagnostic>>) -> Box<Diagnostic> {
        let name = self.def.name();
        let d = last.unwrap_or_else(|| Diagnostic::user("nothing was tried"));
        let tried = "equal sizes and many unequal ones up to 16 were tried, and integers up to 16";
        let message = format!("`{name}` fails at all random arguments that were tried: {}", d.message);
        let advice = format!(
            "give arguments at which it has a value: `--check ARG…` with one ARG for each parameter of `{name}`; \
             `daedal eval` with the same ARGs shows the value"
        );
        Box::new(Diagnostic { message, ..*d }).note(tried).note(advice)
    }

    /// The numbers of the sizes of each parameter, by axis; and how many sizes there are.
    fn axes(&self) -> (Vec<Vec<usize>>, usize) {
        let (mut names, mut count, mut out): (BTreeMap<&str, usize>, usize, Vec<Vec<usize>>) = Default::default();
        for p in &self.def.params {
            let mut each = vec![];
            for k in 0..p.ty.axes().max(1) {
                let name = p.sizes.get(k).map(String::as_str);
                let number = name.and_then(|name| names.get(name).copied()).unwrap_or(count);
                each.push(number);
                if let Some(name) = name {
                    names.insert(name, number);
                }
                count = count.max(number + 1);
            }
            out.push(each);
        }
        (out, count)
    }

    fn integers(&self) -> usize {
        self.def.params.iter().filter(|p| is_integer(p.ty)).count()
    }

    /// Equal sizes; integers below them, equal to them, or very small.
    fn plain(&self) -> Vec<Shape> {
        let (n, m) = (self.axes().1, self.integers());
        let mut out = vec![];
        for positive in [false, true] {
            for size in [self.extent, 2, 1, 4] {
                let like = |integers| Shape { sizes: vec![size; n], integers, positive };
                out.push(like(None));
                if m > 0 {
                    let s = size as i64;
                    out.extend([s, s - 1, 1, 0, 2].map(|v| like(Some(vec![v; m]))));
                }
            }
        }
        out
    }

    fn mixed(&self, k: i64) -> Shape {
        let mut hash = Hash::new(k ^ 0x517e);
        let mut pick = || SMALL[hash.below(SMALL.len()).min(SMALL.len() - 1)];
        let sizes = (0..self.axes().1).map(|_| pick()).collect();
        let integers = (0..self.integers()).map(|_| pick() as i64).collect();
        Shape { sizes, integers: Some(integers), positive: k % 3 == 2 }
    }

    fn made(&self, shape: &Shape, seed: i64) -> Vec<Value> {
        let mut hash = Hash::new(seed ^ 0x5eed);
        let (axes, _) = self.axes();
        let least = shape.sizes.iter().copied().min().unwrap_or(self.extent);
        let mut integers = shape.integers.iter().flatten();
        let each = self.def.params.iter().zip(axes).map(|(p, axes)| match is_integer(p.ty) {
            true => {
                let known = integers.next().copied();
                let v = known.unwrap_or_else(|| hash.below(least) as i64);
                Value::Scalar(p.ty.as_scalar().map_or(Lit::int(v), |s| Lit::Int(s, s.wrap(v))))
            }
            false => {
                let sizes: Vec<usize> = axes.iter().map(|k| shape.sizes[*k]).collect();
                value(&mut hash, p.ty, &sizes, least, shape.positive)
            }
        });
        each.collect()
    }
}

fn is_integer(ty: Ty) -> bool {
    ty.as_scalar().is_some_and(|s| s.is_int())
}

/// Whether all floats of a value are finite.
pub(super) fn finite(v: &Value) -> bool {
    match v {
        Value::Scalar(l) => l.as_f64().is_none_or(f64::is_finite),
        Value::Tuple(each) => each.iter().all(finite),
        Value::Tensor(t) => t.iter().all(|v| finite(&v)),
    }
}

/// A random value of a type; the sizes are those of its axes, from the outside in, and integers are below
/// `least`.
fn value(hash: &mut Hash, ty: Ty, sizes: &[usize], least: usize, positive: bool) -> Value {
    match ty.kind() {
        TyKind::Scalar(s) if s.is_float() => {
            let v = hash.number();
            Value::Scalar(Lit::of(*s, if positive { v.abs() } else { v }))
        }
        TyKind::Scalar(s) => Value::Scalar(Lit::of(*s, hash.below(least.max(1)) as f64)),
        TyKind::String | TyKind::Var(..) => Value::Scalar(Lit::Str("")),
        TyKind::Tuple(parts) => Value::tuple(parts.iter().map(|p| value(hash, *p, sizes, least, positive)).collect()),
        TyKind::Tensor(rank, elem) => {
            let size = |k: usize| sizes.get(k).or(sizes.last()).copied().unwrap_or(least);
            let dims: Vec<usize> = (0..*rank).map(size).collect();
            let inner = if sizes.len() > *rank { &sizes[*rank..] } else { &sizes[sizes.len().saturating_sub(1)..] };
            let n = dims.iter().product();
            Value::tensor(dims, (0..n).map(|_| value(hash, *elem, inner, least, positive)).collect())
        }
    }
}
