//! The operations of elementary functions as C++ text: a template over numbers and vectors of numbers.
//!
//! Every operation is one constant with a name; the operations themselves stand in `codegen/runtime/`, where vectors
//! of any length have them. The text is the same at each run.

use super::arith::{Mask, Real};
use std::cell::RefCell;
use std::fmt::{self, Write};
use std::ops::{Add, BitAnd, BitOr, Div, Mul, Neg, Not, Sub};

/// The text of a function as far as it is made.
#[derive(Default)]
pub struct Tape {
    made: RefCell<Made>,
}

#[derive(Default)]
struct Made {
    literals: Vec<u64>,
    tables: Vec<&'static [f64]>,
    steps: String,
    count: usize,
    depth: usize,
}

/// A named value in the text of a function; F is the number's type there.
#[derive(Clone, Copy)]
pub struct Value<'t, const WIDE: bool> {
    tape: &'t Tape,
    name: Name,
}

/// A named condition.
#[derive(Clone, Copy)]
pub struct Condition<'t> {
    tape: &'t Tape,
    name: Name,
}

#[derive(Clone, Copy)]
enum Name {
    Argument(usize),
    Literal(usize),
    Step(usize),
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Argument(k) => write!(f, "x{k}"),
            Name::Literal(k) => write!(f, "c{k}"),
            Name::Step(k) => write!(f, "v{k}"),
        }
    }
}

/// The exact text of a number.
fn exact(v: f64, wide: bool) -> String {
    let suffix = if wide { "" } else { "f" };
    if v.is_nan() {
        return format!("__builtin_nan{suffix}(\"\")");
    }
    let sign = if v.is_sign_negative() { "-" } else { "" };
    if v.is_infinite() {
        return format!("{sign}__builtin_inf{suffix}()");
    }
    let bits = v.abs().to_bits();
    let (exponent, fraction) = ((bits >> 52) as i64, bits & ((1 << 52) - 1));
    match exponent {
        0 => format!("{sign}0x0.{fraction:013x}p-1022{suffix}"),
        _ => format!("{sign}0x1.{fraction:013x}p{}{suffix}", exponent - 1023),
    }
}

impl Tape {
    /// The arguments of a function.
    pub fn arguments<const WIDE: bool, const N: usize>(&self) -> [Value<'_, WIDE>; N] {
        std::array::from_fn(|k| Value { tape: self, name: Name::Argument(k) })
    }

    /// The body of a function that returns a value.
    pub fn body<const WIDE: bool>(&self, result: Value<'_, WIDE>) -> String {
        let made = self.made.borrow();
        let mut out = String::new();
        for (k, table) in made.tables.iter().enumerate() {
            let each: Vec<String> = table.iter().map(|v| exact(*v, WIDE)).collect();
            let _ = writeln!(out, "  static constexpr Number<F> t{k}[] = {{{}}};", each.join(", "));
        }
        for (k, bits) in made.literals.iter().enumerate() {
            let _ = writeln!(out, "  const F c{k} = spread<F>({});", exact(f64::from_bits(*bits), WIDE));
        }
        let _ = writeln!(out, "{}  return {};", made.steps, result.name);
        out
    }

    fn line(&self, text: &str) {
        let mut made = self.made.borrow_mut();
        let pad = "  ".repeat(made.depth + 1);
        let _ = writeln!(made.steps, "{pad}{text}");
    }

    fn step(&self, ty: &str, text: fmt::Arguments<'_>) -> Name {
        let k = self.made.borrow().count;
        self.line(&format!("{ty} v{k} = {text};"));
        self.made.borrow_mut().count = k + 1;
        Name::Step(k)
    }

    fn literal(&self, v: f64) -> Name {
        let mut made = self.made.borrow_mut();
        let bits = v.to_bits();
        let k = made.literals.iter().position(|b| *b == bits).unwrap_or_else(|| {
            made.literals.push(bits);
            made.literals.len() - 1
        });
        Name::Literal(k)
    }

    fn table(&self, table: &'static [f64]) -> usize {
        let mut made = self.made.borrow_mut();
        made.tables.iter().position(|t| std::ptr::eq(*t, table)).unwrap_or_else(|| {
            made.tables.push(table);
            made.tables.len() - 1
        })
    }
}

impl<'t> Condition<'t> {
    fn of(tape: &'t Tape, text: fmt::Arguments<'_>) -> Self {
        Condition { tape, name: tape.step("const Truth<F>", text) }
    }
}

impl Mask for Condition<'_> {}

impl BitAnd for Condition<'_> {
    type Output = Self;
    fn bitand(self, b: Self) -> Self {
        Self::of(self.tape, format_args!("{} & {}", self.name, b.name))
    }
}

impl BitOr for Condition<'_> {
    type Output = Self;
    fn bitor(self, b: Self) -> Self {
        Self::of(self.tape, format_args!("{} | {}", self.name, b.name))
    }
}

impl Not for Condition<'_> {
    type Output = Self;
    fn not(self) -> Self {
        Self::of(self.tape, format_args!("negate({})", self.name))
    }
}

impl<const WIDE: bool> Value<'_, WIDE> {
    fn made(self, text: fmt::Arguments<'_>) -> Self {
        Value { tape: self.tape, name: self.tape.step("const F", text) }
    }

    fn call(self, f: &str) -> Self {
        self.made(format_args!("{f}({})", self.name))
    }
}

macro_rules! operators {
    ($($trait:ident $f:ident $sign:literal),*) => {
        $(impl<const WIDE: bool> $trait for Value<'_, WIDE> {
            type Output = Self;
            fn $f(self, b: Self) -> Self {
                self.made(format_args!(concat!("{} ", $sign, " {}"), self.name, b.name))
            }
        })*
    };
}

macro_rules! operators_with_literals {
    ($($trait:ident $f:ident),*) => {
        $(impl<const WIDE: bool> $trait<f64> for Value<'_, WIDE> {
            type Output = Self;
            fn $f(self, b: f64) -> Self {
                $trait::$f(self, self.lit(b))
            }
        })*
    };
}

operators!(Add add "+", Sub sub "-", Mul mul "*", Div div "/");
operators_with_literals!(Add add, Sub sub, Mul mul);

impl<const WIDE: bool> Neg for Value<'_, WIDE> {
    type Output = Self;
    fn neg(self) -> Self {
        self.call("-")
    }
}

impl<'t, const WIDE: bool> Real for Value<'t, WIDE> {
    type Mask = Condition<'t>;
    const WIDE: bool = WIDE;

    fn lit(self, v: f64) -> Self {
        let v = if WIDE { v } else { f64::from(v as f32) };
        Value { tape: self.tape, name: self.tape.literal(v) }
    }
    fn fma(self, b: Self, c: Self) -> Self {
        self.made(format_args!("fma({}, {}, {})", self.name, b.name, c.name))
    }
    fn sqrt(self) -> Self {
        self.call("sqrt")
    }
    fn floor(self) -> Self {
        self.call("floor")
    }
    fn abs(self) -> Self {
        self.call("magnitude")
    }
    fn with_sign(self, sign: Self) -> Self {
        self.made(format_args!("with_sign({}, {})", self.name, sign.name))
    }
    fn negated_by(self, t: Self) -> Self {
        self.made(format_args!("negated_by({}, {})", self.name, t.name))
    }
    fn last_bit(self) -> Condition<'t> {
        Condition::of(self.tape, format_args!("last_bit({})", self.name))
    }
    fn power_of_two(self) -> Self {
        self.call("power_of_two")
    }
    fn scale(self, t: Self) -> Self {
        self.made(format_args!("scale({}, {})", self.name, t.name))
    }
    fn scaled_sum(self, q: Self, t: Self, zero: Condition<'t>) -> Self {
        self.made(format_args!("scaled_sum({}, {}, {}, {})", self.name, q.name, t.name, zero.name))
    }
    fn split(self) -> (Self, Self) {
        let parts = self.tape.step("const Parts<F>", format_args!("split({})", self.name));
        (self.made(format_args!("{parts}.k")), self.made(format_args!("{parts}.m")))
    }
    fn lookup(self, table: &'static [f64]) -> Self {
        let k = self.tape.table(table);
        self.made(format_args!("lookup({}, t{k})", self.name))
    }
    fn lt(self, b: Self) -> Condition<'t> {
        Condition::of(self.tape, format_args!("{} < {}", self.name, b.name))
    }
    fn le(self, b: Self) -> Condition<'t> {
        Condition::of(self.tape, format_args!("{} <= {}", self.name, b.name))
    }
    fn eq(self, b: Self) -> Condition<'t> {
        Condition::of(self.tape, format_args!("{} == {}", self.name, b.name))
    }
    fn select(c: Condition<'t>, a: Self, b: Self) -> Self {
        a.made(format_args!("{} ? {} : {}", c.name, a.name, b.name))
    }
    fn at_least(self, v: f64) -> Self {
        self.made(format_args!("at_least({}, {})", self.name, self.lit(v).name))
    }
    fn settled(self, v: f64, below: Condition<'t>) -> Self {
        self.made(format_args!("settled({}, {}, {})", self.name, self.lit(v).name, below.name))
    }
    fn at_most(self, v: f64) -> Self {
        self.made(format_args!("at_most({}, {})", self.name, self.lit(v).name))
    }
    fn rarely<const N: usize>(c: Condition<'t>, common: [Self; N], rare: impl FnOnce() -> [Self; N]) -> [Self; N] {
        let tape = c.tape;
        let out = common.map(|v| Value { tape, name: tape.step("F", format_args!("{}", v.name)) });
        tape.line(&format!("if (any({})) {{", c.name));
        tape.made.borrow_mut().depth += 1;
        let made = rare();
        for (to, from) in out.iter().zip(made) {
            tape.line(&format!("{0} = {1} ? {2} : {0};", to.name, c.name, from.name));
        }
        tape.made.borrow_mut().depth -= 1;
        tape.line("}");
        out
    }
}
