//! The table of scalar operations: one row says everything that any layer needs to know of one.
//!
//! Evaluation is the meaning; the C++ text must agree with it bit for bit (`-ffp-contract=off`,
//! `-fwrapv`, the same libm; `exp`, `log` and `tanh` are the language's own). Derivatives are source text over `a`, `b` and the result `r`.

use super::elementary;
use super::lit::Lit;
use super::ty::{Range, Scalar, Ty, TyKind};

unsafe extern "C" {
    #[link_name = "lgamma"]
    fn c_lgamma(x: f64) -> f64;
    #[link_name = "erf"]
    fn c_erf(x: f64) -> f64;
    #[link_name = "lgammaf"]
    fn c_lgammaf(x: f32) -> f32;
    #[link_name = "erff"]
    fn c_erff(x: f32) -> f32;
}

/// A scalar operation; its facts are in its [`Row`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[expect(missing_docs, reason = "the table names them")]
pub enum Op {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    Neg,
    Abs,
    Min,
    Max,
    Lt,
    Gt,
    Lte,
    Gte,
    Eq,
    Ne,
    And,
    Or,
    Not,
    Select,
    Exp,
    Log,
    Sin,
    Cos,
    Tan,
    Tanh,
    Sinh,
    Cosh,
    Asin,
    Acos,
    Atan,
    Sqrt,
    Erf,
    Lgamma,
    Floor,
    Ceil,
    Pow,
    Powf,
    Atan2,
    ToFloat,
    BoolToFloat,
    Truncate,
    RanHash,
    Pi,
}

/// Which argument types an operation takes, and what it gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sig {
    /// One number to the same type.
    Number,
    /// Two of one numeric type to the same.
    Numbers,
    /// Two of one integer type to the same.
    Ints,
    /// Two of one numeric type to Bool.
    Order,
    /// Two of one scalar type to Bool.
    Equality,
    /// Bools to Bool, so many.
    Bools(usize),
    /// Bool and two scalars of one type.
    Choice,
    /// One float to the same type.
    FloatFn,
    /// Two floats of one type to the same.
    Floats,
    /// A float and an Integer to the float type.
    FloatInt,
    /// A fixed list to a fixed result.
    Fixed(&'static [Scalar], Scalar),
}

/// How much one application costs, coarsely; cost models give the numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Additions, comparisons, logic.
    Cheap,
    /// Multiplications.
    Multiply,
    /// Divisions and roots.
    Divide,
    /// Library functions.
    Transcendental,
}

/// Why an operation gives no value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// Integer division by 0.
    DivisionByZero,
    /// Arguments of other types than the checker lets through.
    Types,
}

/// One row of the table.
pub struct Row {
    /// The operation.
    pub op: Op,
    /// Its name in source text.
    pub name: &'static str,
    /// Its types.
    pub sig: Sig,
    /// Its cost class.
    pub class: Class,
    /// C++ text: `{0}`, `{1}` are the arguments, `{T}` the result type, `{f}` the suffix of the
    /// float function (empty or `f`).
    pub cpp: &'static str,
    /// Partial derivatives with respect to each float argument, as source text; `None` where the
    /// operation has none and differentiation must refuse.
    pub derivative: Option<&'static [&'static str]>,
}

macro_rules! rows {
    ($($op:ident $name:literal $sig:expr, $class:ident, $cpp:literal, $d:expr;)*) => {
        /// All operations, in the order of [`Op`].
        pub static ROWS: &[Row] =
            &[$(Row { op: Op::$op, name: $name, sig: $sig, class: Class::$class, cpp: $cpp, derivative: $d }),*];
    };
}

use Scalar::{Bool as B, F64 as F, I64 as I};
use Sig::*;

#[rustfmt::skip]
rows! {
    Add "add" Numbers, Cheap, "({T})({0} + {1})", Some(&["1.0", "1.0"]);
    Sub "sub" Numbers, Cheap, "({T})({0} - {1})", Some(&["1.0", "-1.0"]);
    Mul "mul" Numbers, Multiply, "({T})({0} * {1})", Some(&["b", "a"]);
    Div "div" Numbers, Divide, "ks::div<{T}>({0}, {1})", Some(&["(div 1.0 b)", "(neg (div r b))"]);
    Mod "mod" Ints, Divide, "ks::mod<{T}>({0}, {1})", None;
    Neg "neg" Number, Cheap, "({T})(-{0})", Some(&["-1.0"]);
    Abs "abs" Number, Cheap, "ks::abs<{T}>({0})", Some(&["(if (gt a 0.0) 1.0 -1.0)"]);
    Min "min" Numbers, Cheap, "({0} < {1} ? {0} : {1})", Some(&["(if (lt a b) 1.0 0.0)", "(if (lt a b) 0.0 1.0)"]);
    Max "max" Numbers, Cheap, "({0} > {1} ? {0} : {1})", Some(&["(if (gt a b) 1.0 0.0)", "(if (gt a b) 0.0 1.0)"]);
    Lt "lt" Order, Cheap, "({0} < {1})", None;
    Gt "gt" Order, Cheap, "({0} > {1})", None;
    Lte "lte" Order, Cheap, "({0} <= {1})", None;
    Gte "gte" Order, Cheap, "({0} >= {1})", None;
    Eq "eq" Equality, Cheap, "({0} == {1})", None;
    Ne "ne" Equality, Cheap, "({0} != {1})", None;
    And "and" Bools(2), Cheap, "({0} & {1})", None;
    Or "or" Bools(2), Cheap, "({0} | {1})", None;
    Not "not" Bools(1), Cheap, "(!{0})", None;
    Select "select" Choice, Cheap, "({0} ? {1} : {2})", Some(&["(if c 1.0 0.0)", "(if c 0.0 1.0)"]);
    Exp "exp" FloatFn, Transcendental, "ks::exp({0})", Some(&["r"]);
    Log "log" FloatFn, Transcendental, "ks::log({0})", Some(&["(div 1.0 a)"]);
    Sin "sin" FloatFn, Transcendental, "::sin{f}({0})", Some(&["(cos a)"]);
    Cos "cos" FloatFn, Transcendental, "::cos{f}({0})", Some(&["(neg (sin a))"]);
    Tan "tan" FloatFn, Transcendental, "::tan{f}({0})", Some(&["(add 1.0 (mul r r))"]);
    Tanh "tanh" FloatFn, Transcendental, "ks::tanh({0})", Some(&["(sub 1.0 (mul r r))"]);
    Sinh "sinh" FloatFn, Transcendental, "::sinh{f}({0})", Some(&["(cosh a)"]);
    Cosh "cosh" FloatFn, Transcendental, "::cosh{f}({0})", Some(&["(sinh a)"]);
    Asin "asin" FloatFn, Transcendental, "::asin{f}({0})", Some(&["(div 1.0 (sqrt (sub 1.0 (mul a a))))"]);
    Acos "acos" FloatFn, Transcendental, "::acos{f}({0})", Some(&["(div -1.0 (sqrt (sub 1.0 (mul a a))))"]);
    Atan "atan" FloatFn, Transcendental, "::atan{f}({0})", Some(&["(div 1.0 (add 1.0 (mul a a)))"]);
    Sqrt "sqrt" FloatFn, Divide, "::sqrt{f}({0})", Some(&["(div 0.5 r)"]);
    Erf "erf" FloatFn, Transcendental, "::erf{f}({0})", Some(&["(mul 1.1283791670955126 (exp (neg (mul a a))))"]);
    Lgamma "lgamma" FloatFn, Transcendental, "::lgamma{f}({0})", None;
    Floor "floor" FloatFn, Cheap, "::floor{f}({0})", None;
    Ceil "ceil" FloatFn, Cheap, "::ceil{f}({0})", None;
    Pow "pow" FloatInt, Transcendental, "::pow{f}({0}, ({T}){1})", Some(&["(mul (to_float b) (pow a (sub b 1)))"]);
    Powf "pow" Floats, Transcendental, "::pow{f}({0}, {1})", Some(&["(mul b (pow a (sub b 1.0)))", "(mul r (log a))"]);
    Atan2 "atan2" Floats, Transcendental, "::atan2{f}({0}, {1})",
        Some(&["(div b (add (mul a a) (mul b b)))", "(neg (div a (add (mul a a) (mul b b))))"]);
    ToFloat "to_float" Fixed(&[I], F), Cheap, "(double){0}", None;
    BoolToFloat "bool_to_float" Fixed(&[B], F), Cheap, "(double){0}", None;
    Truncate "truncate" Fixed(&[F], I), Cheap, "ks::cast<int64_t>({0})", None;
    RanHash "$ranhashdoub" Fixed(&[I], F), Multiply, "ks::ranhash({0})", None;
    Pi "pi" Fixed(&[], F), Cheap, "3.141592653589793", None;
}

impl Op {
    /// The row of the operation.
    pub fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// Its name in source text.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// All operations of a name: overloads that take different types.
    pub fn named(name: &str) -> impl Iterator<Item = Op> {
        ROWS.iter().filter(move |r| r.name == name).map(|r| r.op)
    }

    /// Whether it works by element on tensors of floats or numbers.
    pub fn lifts(self) -> bool {
        matches!(self.row().sig, FloatFn) || self.lifts_to_tuples() || self == Op::Div
    }

    /// Whether it works by component on tuples: the operations of a vector space.
    pub fn lifts_to_tuples(self) -> bool {
        matches!(self, Op::Add | Op::Sub | Op::Neg | Op::Mul)
    }

    /// The result type on scalars; `None` where the operation does not take them.
    pub fn result(self, args: &[Scalar]) -> Option<Scalar> {
        let same = |n: usize| args.len() == n && args.windows(2).all(|w| w[0] == w[1]);
        match self.row().sig {
            Number => (same(1) && args[0] != B).then(|| args[0]),
            Numbers => (same(2) && args[0] != B).then(|| args[0]),
            Ints => (same(2) && args[0].is_int()).then(|| args[0]),
            Order => (same(2) && args[0] != B).then_some(B),
            Equality => same(2).then_some(B),
            Bools(n) => (same(n) && args[0] == B).then_some(B),
            Choice => (args.len() == 3 && args[0] == B && args[1] == args[2]).then(|| args[1]),
            FloatFn => (same(1) && args[0].is_float()).then(|| args[0]),
            Floats => (same(2) && args[0].is_float()).then(|| args[0]),
            FloatInt => (args.len() == 2 && args[0].is_float() && args[1] == I).then(|| args[0]),
            Fixed(want, to) => (args == want).then_some(to),
        }
    }

    /// The result type, with lifting over tensors and tuples.
    pub fn result_ty(self, args: &[Ty]) -> Option<Ty> {
        if let Some(scalars) = args.iter().map(|t| t.as_scalar()).collect::<Option<Vec<_>>>() {
            return self.result(&scalars).map(Ty::scalar);
        }
        if let Some((ty, range)) = args.iter().find_map(|t| match t.kind() {
            TyKind::Var(range, _) => Some((*t, *range)),
            _ => None,
        }) {
            return self.generic_ty(args, ty, range);
        }
        let binary = args.len() == 2 && matches!(self, Op::Add | Op::Sub | Op::Mul | Op::Div);
        let unary = args.len() == 1 && (self == Op::Neg || self.row().sig == FloatFn);
        if !(binary || unary) || !self.lifts() {
            return None;
        }
        if args.iter().any(|t| t.as_tensor().is_some()) {
            return self.tensor_ty(args);
        }
        let parts = args.iter().find_map(|t| t.as_tuple())?;
        if !self.lifts_to_tuples() {
            return None;
        }
        let component = |k: usize| -> Option<Ty> {
            let at: Option<Vec<Ty>> = args
                .iter()
                .map(|t| match t.as_tuple() {
                    Some(p) => (p.len() == parts.len()).then(|| p[k]),
                    None => (self == Op::Mul && t.as_scalar().is_some()).then_some(*t),
                })
                .collect();
            self.result_ty(&at?)
        };
        if self == Op::Mul && args.iter().all(|t| t.as_tuple().is_some()) {
            return None;
        }
        (0..parts.len()).map(component).collect::<Option<Vec<_>>>().map(Ty::tuple)
    }

    /// The result on type variables of rewrite rules.
    fn generic_ty(self, args: &[Ty], ty: Ty, range: Range) -> Option<Ty> {
        let n = args.len();
        let all = args.iter().all(|a| *a == ty);
        let scalar = matches!(range, Range::Number | Range::Int | Range::Float);
        match self.row().sig {
            Number if n == 1 && (scalar || self == Op::Neg && range == Range::Additive) => Some(ty),
            Numbers if all && n == 2 && (scalar || self.lifts_to_tuples() && range == Range::Additive) => Some(ty),
            Ints if all && n == 2 && range == Range::Int => Some(ty),
            Order if all && n == 2 && scalar => Some(Ty::bool()),
            Equality if all && n == 2 && scalar => Some(Ty::bool()),
            Choice if n == 3 && args[0] == Ty::bool() && args[1] == ty && args[2] == ty && scalar => Some(ty),
            FloatInt if n == 2 && args[0] == ty && args[1] == Ty::int() && range == Range::Float => Some(ty),
            FloatFn if n == 1 && range == Range::Float => Some(ty),
            Floats if all && n == 2 && range == Range::Float => Some(ty),
            _ => None,
        }
    }

    fn tensor_ty(self, args: &[Ty]) -> Option<Ty> {
        let tensors: Vec<Ty> = args.iter().copied().filter(|t| t.as_tensor().is_some()).collect();
        if tensors.windows(2).any(|w| w[0] != w[1]) {
            return None;
        }
        let (rank, _) = tensors[0].as_tensor()?;
        let elems: Option<Vec<Ty>> = args
            .iter()
            .map(|t| match t.as_tensor() {
                Some((_, e)) => Some(e),
                None => t.as_scalar().map(|_| *t),
            })
            .collect();
        Some(Ty::tensor(rank, self.result_ty(&elems?)?))
    }

    /// Whether it can fail on scalars of some type.
    pub fn is_partial(self, arg: Ty) -> bool {
        matches!(self, Op::Div | Op::Mod) && arg.as_scalar().is_some_and(|s| s.is_int())
    }

    /// Its value.
    ///
    /// # Errors
    /// Integer division by 0; types that [`Op::result`] refuses.
    pub fn eval(self, args: &[Lit]) -> Result<Lit, Failure> {
        match (self, args) {
            (Op::Eq, [a, b]) => Ok(Lit::Bool(same(*a, *b))),
            (Op::Ne, [a, b]) => Ok(Lit::Bool(!same(*a, *b))),
            (Op::Select, [Lit::Bool(c), a, b]) => Ok(if *c { *a } else { *b }),
            (_, [Lit::F64(a), Lit::F64(b)]) => float2(self, f64::from_bits(*a), f64::from_bits(*b)),
            (_, [Lit::F64(a)]) => float1(self, f64::from_bits(*a)),
            (_, [Lit::F64(a), Lit::Int(_, n)]) if self == Op::Pow => Ok(Lit::float(f64::from_bits(*a).powf(*n as f64))),
            (_, [Lit::F32(a), Lit::F32(b)]) => single2(self, f32::from_bits(*a), f32::from_bits(*b)),
            (_, [Lit::F32(a)]) => single1(self, f32::from_bits(*a)),
            (_, [Lit::F32(a), Lit::Int(_, n)]) if self == Op::Pow => {
                Ok(Lit::float32(f32::from_bits(*a).powf(*n as f32)))
            }
            (_, [Lit::Int(s, a), Lit::Int(_, b)]) => int2(self, *s, *a, *b),
            (Op::Neg, [Lit::Int(s, a)]) => Ok(Lit::Int(*s, s.wrap(a.wrapping_neg()))),
            (Op::Abs, [Lit::Int(s, a)]) => Ok(Lit::Int(*s, s.wrap(a.wrapping_abs()))),
            (Op::ToFloat, [Lit::Int(_, a)]) => Ok(Lit::float(*a as f64)),
            (Op::RanHash, [Lit::Int(_, a)]) => Ok(Lit::float(ranhash(*a))),
            (Op::And, [Lit::Bool(a), Lit::Bool(b)]) => Ok(Lit::Bool(*a & *b)),
            (Op::Or, [Lit::Bool(a), Lit::Bool(b)]) => Ok(Lit::Bool(*a | *b)),
            (Op::Not, [Lit::Bool(a)]) => Ok(Lit::Bool(!*a)),
            (Op::BoolToFloat, [Lit::Bool(a)]) => Ok(Lit::float(f64::from(u8::from(*a)))),
            (Op::Pi, []) => Ok(Lit::float(std::f64::consts::PI)),
            _ => Err(Failure::Types),
        }
    }
}

/// `eq`: floats by value (NaN equals nothing, 0.0 equals -0.0), the rest by identity.
fn same(a: Lit, b: Lit) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(x), Some(y)) => x == y,
        _ => a == b,
    }
}

macro_rules! float_ops {
    ($one:ident, $two:ident, $t:ty, $lit:path, $lgamma:ident, $erf:ident) => {
        fn $one(op: Op, a: $t) -> Result<Lit, Failure> {
            // SAFETY: pure functions of the C library that take any float.
            let special = |f: unsafe extern "C" fn($t) -> $t| unsafe { f(a) };
            Ok($lit(match op {
                Op::Neg => -a,
                Op::Abs => a.abs(),
                Op::Exp => elementary::exp(a as f64) as $t,
                Op::Log => elementary::log(a as f64) as $t,
                Op::Sin => a.sin(),
                Op::Cos => a.cos(),
                Op::Tan => a.tan(),
                Op::Tanh => elementary::tanh(a as f64) as $t,
                Op::Sinh => a.sinh(),
                Op::Cosh => a.cosh(),
                Op::Asin => a.asin(),
                Op::Acos => a.acos(),
                Op::Atan => a.atan(),
                Op::Sqrt => a.sqrt(),
                Op::Erf => special($erf),
                Op::Lgamma => special($lgamma),
                Op::Floor => a.floor(),
                Op::Ceil => a.ceil(),
                Op::Truncate => return Ok(Lit::int(a as i64)),
                _ => return Err(Failure::Types),
            }))
        }

        fn $two(op: Op, a: $t, b: $t) -> Result<Lit, Failure> {
            Ok($lit(match op {
                Op::Add => a + b,
                Op::Sub => a - b,
                Op::Mul => a * b,
                Op::Div => a / b,
                Op::Min => {
                    if a < b {
                        a
                    } else {
                        b
                    }
                }
                Op::Max => {
                    if a > b {
                        a
                    } else {
                        b
                    }
                }
                Op::Powf => a.powf(b),
                Op::Atan2 => a.atan2(b),
                Op::Lt => return Ok(Lit::Bool(a < b)),
                Op::Gt => return Ok(Lit::Bool(a > b)),
                Op::Lte => return Ok(Lit::Bool(a <= b)),
                Op::Gte => return Ok(Lit::Bool(a >= b)),
                _ => return Err(Failure::Types),
            }))
        }
    };
}

float_ops!(float1, float2, f64, Lit::float, c_lgamma, c_erf);
float_ops!(single1, single2, f32, Lit::float32, c_lgammaf, c_erff);

fn int2(op: Op, s: Scalar, a: i64, b: i64) -> Result<Lit, Failure> {
    let int = |v: i64| Ok(Lit::Int(s, s.wrap(v)));
    match op {
        Op::Add => int(a.wrapping_add(b)),
        Op::Sub => int(a.wrapping_sub(b)),
        Op::Mul => int(a.wrapping_mul(b)),
        Op::Div | Op::Mod if b == 0 => Err(Failure::DivisionByZero),
        Op::Div => int(a.wrapping_div(b)),
        Op::Mod => int(a.wrapping_rem(b)),
        Op::Min => int(a.min(b)),
        Op::Max => int(a.max(b)),
        Op::Lt => Ok(Lit::Bool(a < b)),
        Op::Gt => Ok(Lit::Bool(a > b)),
        Op::Lte => Ok(Lit::Bool(a <= b)),
        Op::Gte => Ok(Lit::Bool(a >= b)),
        _ => Err(Failure::Types),
    }
}

/// The reference language's hash of an integer to [0, 1): the `Ranhash` of Numerical Recipes.
pub fn ranhash(x: i64) -> f64 {
    let mut v = (x as u64).wrapping_mul(3935559000370003845).wrapping_add(2691343689449507681);
    v ^= v >> 21;
    v ^= v << 37;
    v ^= v >> 4;
    v = v.wrapping_mul(4768777513237032717);
    v ^= v << 20;
    v ^= v >> 41;
    v ^= v << 5;
    5.421_010_862_427_522e-20 * (v as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Protects: the table is indexed by the enum, and the random hash is the reference's.
    #[test]
    fn rows_stand_in_the_order_of_the_enum_and_the_hash_is_known() {
        for (k, row) in ROWS.iter().enumerate() {
            assert_eq!(row.op as usize, k, "{}", row.name);
        }
        assert_eq!(ranhash(0), 0.4815004496193184);
        assert_eq!(ranhash(1), 0.7447711623842486);
    }
}
