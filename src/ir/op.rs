//! The table of scalar operations: one row says everything that any layer needs to know of one.
//!
//! Evaluation (`evaluate.rs`) is the meaning; the C++ text must agree with it bit for bit (`-ffp-contract=off`, `-fwrapv`; the
//! functions of floats are the language's own, in `elementary/`). Derivatives are source text over `a`, `b`, `c` and the
//! result `r`.

use super::elementary;
use super::ty::{Range, Scalar, Ty, TyKind};

/// A scalar operation; its facts are in its [`Row`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[expect(missing_docs, reason = "the table names them")]
pub enum Op {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    FloorDiv,
    FloorMod,
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
    BitAnd,
    BitOr,
    BitXor,
    BitNot,
    Shl,
    Shr,
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
    Fma,
    Minimum,
    Maximum,
    Precedes,
    Hypot,
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
    /// One integer to the same type.
    Int,
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
    /// Three floats of one type to the same.
    ThreeFloats,
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

/// Who says what an operation gives.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// `evaluate.rs`, by the operation.
    Own,
    /// A function of one float, in both widths.
    One(fn(f64) -> f64, fn(f32) -> f32),
    /// A function of two floats, in both widths.
    Two(fn(f64, f64) -> f64, fn(f32, f32) -> f32),
}

/// What an operation on floats is over the real numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reals {
    /// What its name says: `rules/check/number.rs` computes it.
    Basic,
    /// What other operations say, as source text over `a`, `b`, `c`.
    Text(&'static str),
    /// Nothing computes it: rules that need its values stay undecided.
    Unknown,
}

/// Where the values of an operation lie over the real numbers, and for integers that do not overflow.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Bounds {
    /// Anywhere, as far as is known.
    Any,
    /// Where the bounds of its arguments say: who asks has arithmetic of bounds.
    Own,
    /// Between two numbers, both included.
    Within(f64, f64),
    /// Above 0.
    Positive,
    /// At least 0, and 0 only where the argument is.
    Root,
}

/// Where an operation has a value over the real numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Domain {
    /// Everywhere.
    All,
    /// Where the second argument is not 0.
    Divisor,
    /// Above 0.
    Positive,
    /// From 0 on.
    Natural,
    /// From -1 to 1.
    Unit,
    /// Above 0, or with an integer exponent that is not negative.
    Power,
    /// Nowhere for certain: bounds do not tell.
    Unknown,
}

/// How an operation works on vectors, lane by lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lanes {
    /// By a sign of C++ between its arguments, or before it.
    Infix(&'static str),
    /// As a comparison by a sign of C++.
    Compare(&'static str),
    /// By a function of its name in the runtime.
    Call,
    /// By text of its own in `codegen/vector.rs`, wherever `divergence.rs` says.
    Own,
    /// Number by number only.
    No,
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
    /// C++ text: `{0}`, `{1}`, `{2}` are the arguments, `{T}` the result type. Functions of floats take vectors too.
    pub cpp: &'static str,
    /// Partial derivatives with respect to each float argument, as source text; `None` where the
    /// operation has none and differentiation must refuse.
    pub derivative: Option<&'static [&'static str]>,
    /// How it works on vectors.
    pub lanes: Lanes,
    /// Who says what it gives.
    pub value: Value,
    /// What it is over the real numbers.
    pub reals: Reals,
    /// Where its values lie.
    pub bounds: Bounds,
    /// Where it has a value over the real numbers.
    pub domain: Domain,
}

macro_rules! rows {
    ($($op:ident $name:literal $sig:expr, $class:ident, $cpp:literal, $lanes:expr, $d:expr $(, $field:ident: $v:expr)*;)*) => {
        /// All operations, in the order of [`Op`].
        pub static ROWS: &[Row] = &[$(Row {
            $($field: $v,)*
            ..plain(Op::$op, $name, $sig, Class::$class, ($cpp, $lanes), $d)
        }),*];
    };
}

/// A row of which the rest is what holds of most operations.
const fn plain(
    op: Op,
    name: &'static str,
    sig: Sig,
    class: Class,
    (cpp, lanes): (&'static str, Lanes),
    derivative: Option<&'static [&'static str]>,
) -> Row {
    let (value, reals, bounds, domain) = (Value::Own, Reals::Basic, Bounds::Any, Domain::All);
    Row { op, name, sig, class, cpp, derivative, lanes, value, reals, bounds, domain }
}

/// A function of the elementary ones, in both widths.
macro_rules! function {
    ($kind:ident, $name:ident) => {
        Value::$kind(elementary::wide::$name, elementary::narrow::$name)
    };
}

/// The derivative of `lgamma`, at 0.5 and above by its recurrence over eight steps and the asymptotic series beyond,
/// below by reflection: about 15 digits.
macro_rules! digamma {
    ($y:literal, $z:literal, $w:literal) => {
        concat!(
            "(sub (sub (sub (sub (log ",
            $z,
            ") (div 0.5 ",
            $z,
            ")) (mul ",
            $w,
            " (sub 0.08333333333333333 (mul ",
            $w,
            " (sub 0.008333333333333333 (mul ",
            $w,
            " (sub 0.003968253968253968 (mul ",
            $w,
            " (sub 0.004166666666666667 (mul ",
            $w,
            " (sub 0.007575757575757576 (mul ",
            $w,
            " (sub 0.021092796092796094 (mul ",
            $w,
            " 0.08333333333333333)))))))))))))) (add (add (add (div 1.0 ",
            $y,
            ") (div 1.0 (add 1.0 ",
            $y,
            "))) (add (div 1.0 (add 2.0 ",
            $y,
            ")) (div 1.0 (add 3.0 ",
            $y,
            ")))) (add (add (div 1.0 (add 4.0 ",
            $y,
            ")) (div 1.0 (add 5.0 ",
            $y,
            "))) (add (div 1.0 (add 6.0 ",
            $y,
            ")) (div 1.0 (add 7.0 ",
            $y,
            ")))))) (select (lt a 0.5) (div 3.141592653589793 (tan (mul 3.141592653589793 a))) 0.0))"
        )
    };
}

#[rustfmt::skip]
const DIGAMMA: &str = digamma!(
    "(select (lt a 0.5) (sub 1.0 a) a)",
    "(add 8.0 (select (lt a 0.5) (sub 1.0 a) a))",
    "(div 1.0 (mul (add 8.0 (select (lt a 0.5) (sub 1.0 a) a)) (add 8.0 (select (lt a 0.5) (sub 1.0 a) a))))"
);

use Lanes::{Call, Compare, Infix, No, Own};
use Scalar::{Bool as B, F64 as F, I64 as I};
use Sig::*;

#[rustfmt::skip]
rows! {
    Add "add" Numbers, Cheap, "({T})({0} + {1})", Infix("+"), Some(&["1.0", "1.0"]),
        bounds: Bounds::Own;
    Sub "sub" Numbers, Cheap, "({T})({0} - {1})", Infix("-"), Some(&["1.0", "-1.0"]),
        bounds: Bounds::Own;
    Mul "mul" Numbers, Multiply, "({T})({0} * {1})", Infix("*"), Some(&["b", "a"]),
        bounds: Bounds::Own;
    Div "div" Numbers, Divide, "ks::div<{T}>({0}, {1})", Own, Some(&["(div 1.0 b)", "(neg (div r b))"]),
        bounds: Bounds::Own, domain: Domain::Divisor;
    Mod "mod" Ints, Divide, "ks::mod<{T}>({0}, {1})", Own, None,
        bounds: Bounds::Own, domain: Domain::Divisor;
    FloorDiv "floordiv" Ints, Divide, "ks::floordiv<{T}>({0}, {1})", No, None,
        bounds: Bounds::Own, domain: Domain::Divisor;
    FloorMod "floormod" Ints, Divide, "ks::floormod<{T}>({0}, {1})", No, None,
        bounds: Bounds::Own, domain: Domain::Divisor;
    Neg "neg" Number, Cheap, "ks::neg<{T}>({0})", Own, Some(&["-1.0"]),
        bounds: Bounds::Own;
    Abs "abs" Number, Cheap, "ks::abs<{T}>({0})", Own, Some(&["(if (gt a 0.0) 1.0 -1.0)"]),
        bounds: Bounds::Own;
    Min "min" Numbers, Cheap, "({0} < {1} ? {0} : {1})", Own, Some(&["(if (lt a b) 1.0 0.0)", "(if (lt a b) 0.0 1.0)"]),
        bounds: Bounds::Own;
    Max "max" Numbers, Cheap, "({0} > {1} ? {0} : {1})", Own, Some(&["(if (gt a b) 1.0 0.0)", "(if (gt a b) 0.0 1.0)"]),
        bounds: Bounds::Own;
    Lt "lt" Order, Cheap, "({0} < {1})", Compare("<"), None;
    Gt "gt" Order, Cheap, "({0} > {1})", Compare(">"), None;
    Lte "lte" Order, Cheap, "({0} <= {1})", Compare("<="), None;
    Gte "gte" Order, Cheap, "({0} >= {1})", Compare(">="), None;
    Eq "eq" Equality, Cheap, "({0} == {1})", Compare("=="), None;
    Ne "ne" Equality, Cheap, "({0} != {1})", Compare("!="), None;
    And "and" Bools(2), Cheap, "({0} & {1})", Infix("&"), None;
    Or "or" Bools(2), Cheap, "({0} | {1})", Infix("|"), None;
    Not "not" Bools(1), Cheap, "(!{0})", Own, None;
    BitAnd "bitand" Ints, Cheap, "({T})({0} & {1})", Infix("&"), None,
        bounds: Bounds::Own;
    BitOr "bitor" Ints, Cheap, "({T})({0} | {1})", Infix("|"), None;
    BitXor "bitxor" Ints, Cheap, "({T})({0} ^ {1})", Infix("^"), None;
    BitNot "bitnot" Int, Cheap, "({T})(~{0})", Own, None;
    Shl "shl" Ints, Cheap, "ks::shl<{T}>({0}, {1})", Own, None;
    Shr "shr" Ints, Cheap, "ks::shr<{T}>({0}, {1})", Own, None,
        bounds: Bounds::Own;
    Select "select" Choice, Cheap, "({0} ? {1} : {2})", Own, Some(&["(if c 1.0 0.0)", "(if c 0.0 1.0)"]),
        bounds: Bounds::Own;
    Exp "exp" FloatFn, Transcendental, "ks::exp({0})", Call, Some(&["r"]),
        value: function!(One, exp), bounds: Bounds::Positive;
    Log "log" FloatFn, Transcendental, "ks::log({0})", Call, Some(&["(div 1.0 a)"]),
        value: function!(One, log), domain: Domain::Positive;
    Sin "sin" FloatFn, Transcendental, "ks::sin({0})", Call, Some(&["(cos a)"]),
        value: function!(One, sin), bounds: Bounds::Within(-1.0, 1.0);
    Cos "cos" FloatFn, Transcendental, "ks::cos({0})", Call, Some(&["(neg (sin a))"]),
        value: function!(One, cos), bounds: Bounds::Within(-1.0, 1.0);
    Tan "tan" FloatFn, Transcendental, "ks::tan({0})", Call, Some(&["(add 1.0 (mul r r))"]),
        value: function!(One, tan), domain: Domain::Unknown, reals: Reals::Text("(div (sin a) (cos a))");
    Tanh "tanh" FloatFn, Transcendental, "ks::tanh({0})", Call, Some(&["(sub 1.0 (mul r r))"]),
        value: function!(One, tanh), bounds: Bounds::Within(-1.0, 1.0);
    Sinh "sinh" FloatFn, Transcendental, "ks::sinh({0})", Call, Some(&["(cosh a)"]),
        value: function!(One, sinh);
    Cosh "cosh" FloatFn, Transcendental, "ks::cosh({0})", Call, Some(&["(sinh a)"]),
        value: function!(One, cosh), bounds: Bounds::Within(1.0, f64::INFINITY), reals: Reals::Text("(mul 0.5 (add (exp a) (exp (neg a))))");
    Asin "asin" FloatFn, Transcendental, "ks::asin({0})", Call, Some(&["(div 1.0 (sqrt (sub 1.0 (mul a a))))"]),
        value: function!(One, asin), domain: Domain::Unit;
    Acos "acos" FloatFn, Transcendental, "ks::acos({0})", Call, Some(&["(div -1.0 (sqrt (sub 1.0 (mul a a))))"]),
        value: function!(One, acos), domain: Domain::Unit;
    Atan "atan" FloatFn, Transcendental, "ks::atan({0})", Call, Some(&["(div 1.0 (add 1.0 (mul a a)))"]),
        value: function!(One, atan);
    Sqrt "sqrt" FloatFn, Divide, "ks::sqrt({0})", Call, Some(&["(div 0.5 r)"]),
        value: Value::One(f64::sqrt, f32::sqrt), bounds: Bounds::Root, domain: Domain::Natural;
    Erf "erf" FloatFn, Transcendental, "ks::erf({0})", Call, Some(&["(mul 1.1283791670955126 (exp (neg (mul a a))))"]),
        value: function!(One, erf), bounds: Bounds::Within(-1.0, 1.0);
    Lgamma "lgamma" FloatFn, Transcendental, "ks::lgamma({0})", Call, Some(&[DIGAMMA]),
        value: function!(One, lgamma), domain: Domain::Unknown, reals: Reals::Unknown;
    Floor "floor" FloatFn, Cheap, "ks::floor({0})", Call, None,
        value: Value::One(f64::floor, f32::floor);
    Ceil "ceil" FloatFn, Cheap, "ks::ceil({0})", Call, None,
        value: Value::One(f64::ceil, f32::ceil), reals: Reals::Text("(neg (floor (neg a)))");
    Pow "pow" FloatInt, Transcendental, "ks::power({0}, {1})", Own, Some(&["(mul (to_float b) (pow a (sub b 1)))"]),
        domain: Domain::Power;
    Powf "pow" Floats, Transcendental, "ks::pow({0}, {1})", Call, Some(&["(mul b (pow a (sub b 1.0)))", "(mul r (log a))"]),
        value: function!(Two, pow), domain: Domain::Power;
    Atan2 "atan2" Floats, Transcendental, "ks::atan2({0}, {1})", Call, Some(&["(div b (add (mul a a) (mul b b)))", "(neg (div a (add (mul a a) (mul b b))))"]),
        value: function!(Two, atan2), domain: Domain::Unknown;
    ToFloat "to_float" Fixed(&[I], F), Cheap, "(double){0}", Own, None,
        bounds: Bounds::Own;
    BoolToFloat "bool_to_float" Fixed(&[B], F), Cheap, "(double){0}", Own, None,
        bounds: Bounds::Within(0.0, 1.0);
    Truncate "truncate" Fixed(&[F], I), Cheap, "ks::cast<int64_t>({0})", Own, None;
    RanHash "$ranhashdoub" Fixed(&[I], F), Multiply, "ks::ranhash({0})", No, None,
        bounds: Bounds::Within(0.0, 1.0);
    Pi "pi" Fixed(&[], F), Cheap, "3.141592653589793", No, None;
    Fma "fma" ThreeFloats, Multiply, "ks::fma({0}, {1}, {2})", Call, Some(&["b", "a", "1.0"]),
        reals: Reals::Text("(add (mul a b) c)");
    Minimum "minimum" Numbers, Cheap, "ks::minimum<{T}>({0}, {1})", Call, Some(&["(if (lt a b) 1.0 0.0)", "(if (lt a b) 0.0 1.0)"]),
        bounds: Bounds::Own, reals: Reals::Text("(min a b)");
    Maximum "maximum" Numbers, Cheap, "ks::maximum<{T}>({0}, {1})", Call, Some(&["(if (gt a b) 1.0 0.0)", "(if (gt a b) 0.0 1.0)"]),
        bounds: Bounds::Own, reals: Reals::Text("(max a b)");
    Precedes "precedes" Order, Cheap, "ks::precedes({0}, {1})", Own, None,
        reals: Reals::Text("(lt a b)");
    Hypot "hypot" Floats, Transcendental, "ks::hypot({0}, {1})", Call, Some(&["(div a r)", "(div b r)"]),
        value: function!(Two, hypot), reals: Reals::Text("(sqrt (add (mul a a) (mul b b)))"),
        bounds: Bounds::Within(0.0, f64::INFINITY);
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
            Int => (same(1) && args[0].is_int()).then(|| args[0]),
            Order => (same(2) && args[0] != B).then_some(B),
            Equality => same(2).then_some(B),
            Bools(n) => (same(n) && args[0] == B).then_some(B),
            Choice => (args.len() == 3 && args[0] == B && args[1] == args[2]).then(|| args[1]),
            FloatFn => (same(1) && args[0].is_float()).then(|| args[0]),
            Floats => (same(2) && args[0].is_float()).then(|| args[0]),
            ThreeFloats => (same(3) && args[0].is_float()).then(|| args[0]),
            FloatInt => (args.len() == 2 && args[0].is_float() && args[1] == I).then(|| args[0]),
            Fixed(want, to) => (args == want).then_some(to),
        }
    }

    /// The result type, with lifting over tensors and tuples.
    pub fn result_ty(self, args: &[Ty]) -> Option<Ty> {
        if let Some(scalars) = args.iter().map(|t| t.as_scalar()).collect::<Option<Vec<_>>>() {
            return self.result(&scalars).map(Ty::scalar);
        }
        if let (Equality, [a, b]) = (self.row().sig, args)
            && *a == Ty::string()
            && a == b
        {
            return Some(Ty::bool());
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
            Int if n == 1 && range == Range::Int => Some(ty),
            Order if all && n == 2 && scalar => Some(Ty::bool()),
            Equality if all && n == 2 && scalar => Some(Ty::bool()),
            Choice if n == 3 && args[0] == Ty::bool() && args[1] == ty && args[2] == ty && scalar => Some(ty),
            FloatInt if n == 2 && args[0] == ty && args[1] == Ty::int() && range == Range::Float => Some(ty),
            FloatFn if n == 1 && range == Range::Float => Some(ty),
            Floats if all && n == 2 && range == Range::Float => Some(ty),
            ThreeFloats if all && n == 3 && range == Range::Float => Some(ty),
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

    /// Whether it divides by its second argument: integers fail at 0.
    pub fn divides(self) -> bool {
        matches!(self, Op::Div | Op::Mod | Op::FloorDiv | Op::FloorMod)
    }

    /// Whether it can fail on scalars of some type.
    pub fn is_partial(self, arg: Ty) -> bool {
        self.divides() && arg.as_scalar().is_some_and(|s| s.is_int())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Lit;
    use crate::ir::evaluate::ranhash;

    /// Protects: the table is indexed by the enum; floor division and its remainder belong together;
    /// shifts take their amounts modulo the width; and the random hash is the reference's.
    #[test]
    fn rows_stand_in_the_order_of_the_enum_and_values_are_known() {
        for (k, row) in ROWS.iter().enumerate() {
            assert_eq!(row.op as usize, k, "{}", row.name);
        }
        let int2 = |op: Op, s: Scalar, a: i64, b: i64| op.eval(&[Lit::Int(s, a), Lit::Int(s, b)]).unwrap().as_int();
        for (a, b) in [(7, 2), (-7, 2), (7, -2), (-7, -2), (6, 3), (-6, 3), (0, -5), (i64::MIN, -1), (i64::MIN, 3)] {
            let (q, r) = (int2(Op::FloorDiv, I, a, b).unwrap(), int2(Op::FloorMod, I, a, b).unwrap());
            assert_eq!(q.wrapping_mul(b).wrapping_add(r), a, "{a} {b}");
            assert!(r == 0 || (r < 0) == (b < 0) && r.unsigned_abs() < b.unsigned_abs(), "{a} {b}");
        }
        assert_eq!(int2(Op::Shl, Scalar::U8, 0x81, 1), Some(2));
        assert_eq!(int2(Op::Shl, Scalar::I8, 64, 1), Some(-128));
        assert_eq!(int2(Op::Shr, Scalar::I8, -128, 7), Some(-1));
        assert_eq!(int2(Op::Shr, Scalar::U8, 0x80, 7), Some(1));
        for amount in [64, -64, 128] {
            assert_eq!(int2(Op::Shl, I, 5, amount), Some(5));
        }
        assert_eq!(int2(Op::Shr, I, -8, -63), Some(-4));
        assert_eq!(Op::BitNot.eval(&[Lit::Int(Scalar::U8, 1)]), Ok(Lit::Int(Scalar::U8, 254)));
        assert_eq!(ranhash(0), 0.4815004496193184);
        assert_eq!(ranhash(1), 0.7447711623842486);
    }
}
