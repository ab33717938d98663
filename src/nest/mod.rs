//! Loop nests: statements and scalar expressions over flat dense buffers.
//!
//! A function of the language becomes a [`Func`]: sizes and data come in as slots, statements run
//! in order, and slots go out. Tensors are row-major; nested tensors are dense with more axes, and
//! a tensor of tuples is one buffer for each scalar component.
//!
//! - A variable is set once where it is declared ([`Stmt::Let`], loop variables), or any number of
//!   times after [`Stmt::Mut`]. A buffer is a pointer: [`Stmt::Alloc`] takes memory from the arena.
//! - Expressions are pure. Everything that can fail is a [`Stmt::Check`] before the use, so that
//!   failures come in the order of the interpreter.
//! - Memory lives until the end of the loop iteration, or the [`Stmt::Reset`], around it.
//!
//! This layer must not know of C++ or of how values arrive.

mod choose;
mod dead;
pub mod lanes;
mod lower;
mod name;
mod print;
mod share;
mod split;
mod text;
mod verify;

pub use lower::lower;
pub use verify::verify;

use crate::diag::{Diagnostic, Kind, Span};
use crate::ir::{Lit, Op, Scalar, Ty};

/// A scalar variable of a function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Var(pub u32);

/// A buffer of a function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Buf(pub u32);

/// A place in the source that can fail: an index into [`Nest::sites`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct SiteId(pub u32);

/// What the source calls a variable or buffer, and the type of its elements.
#[derive(Clone, PartialEq, Debug)]
pub struct Info {
    /// A name as the source writes it; not unique.
    pub name: String,
    /// The scalar type.
    pub ty: Scalar,
}

/// A pure scalar expression. Its depth is bounded by lowering.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Expr {
    /// A literal.
    Lit(Lit),
    /// A variable.
    Var(Var),
    /// An element of a buffer.
    Load(Buf, Box<Expr>),
    /// An operation of the table, with its result type.
    Op(Op, Scalar, Vec<Expr>),
    /// A conversion.
    Cast(Scalar, Box<Expr>),
    /// One of two values; the other is not evaluated.
    Cond(Box<[Expr; 3]>),
}

/// A statement.
#[derive(Clone, PartialEq, Debug)]
pub enum Stmt {
    /// Declares a constant.
    Let(Var, Expr),
    /// Declares a variable that is set later, with its first value.
    Mut(Var, Expr),
    /// Sets a variable.
    Set(Var, Expr),
    /// Declares a buffer of as many elements as the product of the factors.
    Alloc(Buf, Vec<Expr>),
    /// Writes an element.
    Store(Buf, Expr, Expr),
    /// Fails unless the condition holds; the values go into the message.
    Check(Expr, SiteId, Vec<Expr>),
    /// Runs the body for each value from 0 below the extent.
    For(Box<Loop>),
    /// Runs one of two blocks.
    If(Expr, Vec<Stmt>, Vec<Stmt>),
    /// Remembers the top of the arena.
    Mark(u32),
    /// Gives back all memory taken since the mark.
    Reset(u32),
    /// Calls a function of the nest: arguments in, declared slots out.
    Call(usize, Vec<Arg>, Vec<Slot>),
}

/// A loop.
#[derive(Clone, PartialEq, Debug)]
pub struct Loop {
    /// The loop variable.
    pub var: Var,
    /// One past its last value.
    pub extent: Expr,
    /// The statements.
    pub body: Vec<Stmt>,
    /// Whether an iteration takes memory, which is given back at its end.
    pub takes: bool,
    /// Whether no iteration reads or writes what another writes.
    pub parallel: bool,
    /// Whether [`lanes::LANES`] iterations run at once; only where [`lanes::classify`] says how.
    pub lanes: bool,
}

/// A parameter or a declared result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slot {
    /// A scalar.
    Scalar(Var),
    /// The size of an axis.
    Size(Var),
    /// The elements of a tensor.
    Data(Buf),
}

/// An argument or a result.
#[derive(Clone, PartialEq, Debug)]
pub enum Arg {
    /// A scalar.
    Scalar(Expr),
    /// The size of an axis.
    Size(Expr),
    /// The elements of a tensor, from an offset.
    Data(Buf, Expr),
}

/// A function: slots in, statements, slots out.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Func {
    /// The name in the source.
    pub name: String,
    /// Parameters, flattened: the sizes of a tensor stand before its buffers.
    pub params: Vec<Slot>,
    /// Variables.
    pub vars: Vec<Info>,
    /// Buffers.
    pub bufs: Vec<Info>,
    /// Statements.
    pub body: Vec<Stmt>,
    /// Results, flattened like parameters.
    pub results: Vec<Arg>,
    /// Types of what the results are sent to, in their order.
    pub outs: Vec<Scalar>,
    /// The variable that counts the calls that are open, in functions that call themselves.
    pub depth: Option<Var>,
}

/// What a failure says; values come from the running program.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Failing {
    /// So many indices and as many sizes.
    Index(usize),
    /// A failed `assert`.
    Assertion,
    /// Integer division by 0.
    Division,
    /// A size below 0.
    NegativeSize,
    /// A tensor of so many axes has too many elements.
    TooLarge(usize),
    /// Elements of different shape.
    ElementShape,
    /// Two tensors of so many axes differ.
    Sizes(usize),
    /// A named size differs between two parameters.
    NamedSize(String, String, String),
    /// A fold or scan whose state changes its shape.
    StateShape,
    /// The least or greatest of nothing.
    Nothing,
    /// A sum over nothing whose shape is unknown.
    NoShape,
    /// A function without a body is called.
    NoBody(String),
    /// Calls are nested too deep.
    Recursion(usize),
    /// Sizes that lowering took for equal differ.
    Internal,
}

/// A place that can fail.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Site {
    /// What is wrong there.
    pub failing: Failing,
    /// Where, with a text each.
    pub places: Vec<(Span, &'static str)>,
}

/// The lowered form of a definition.
#[derive(Clone, PartialEq, Debug)]
pub struct Nest {
    /// The definition itself.
    pub entry: Func,
    /// The functions that call themselves, by index of [`Stmt::Call`].
    pub funcs: Vec<Func>,
    /// The places that can fail.
    pub sites: Vec<Site>,
    /// Parameter types.
    pub params: Vec<Ty>,
    /// Result type.
    pub ret: Ty,
}

/// Makes a function faster: the same numbers, computed once and several at a time.
fn improve(func: &mut Func) {
    name::name(func);
    share::share(func);
    split::split(func);
    dead::remove(func);
    choose::choose(func);
}

impl Func {
    /// The scalar type of an expression.
    pub fn ty(&self, e: &Expr) -> Scalar {
        match e {
            Expr::Lit(l) => l.ty().as_scalar().unwrap_or(Scalar::I64),
            Expr::Var(v) => self.vars[v.0 as usize].ty,
            Expr::Load(b, _) => self.bufs[b.0 as usize].ty,
            Expr::Op(_, s, _) | Expr::Cast(s, _) => *s,
            Expr::Cond(parts) => self.ty(&parts[1]),
        }
    }
}

impl Expr {
    /// A 64-bit integer.
    pub fn int(v: i64) -> Expr {
        Expr::Lit(Lit::int(v))
    }

    /// An operation, done at once on integers where that is plain.
    pub fn folded(op: Op, ty: Scalar, args: Vec<Expr>) -> Expr {
        let one = |e: &Expr, v: i64| *e == Expr::int(v);
        match (op, args.as_slice()) {
            (Op::Add, [a, b]) if one(a, 0) => return b.clone(),
            (Op::Mul, [a, b]) if one(a, 1) => return b.clone(),
            (Op::Add | Op::Sub, [a, b]) if one(b, 0) => return a.clone(),
            (Op::Mul, [a, b]) if one(b, 1) => return a.clone(),
            (Op::Mul, [a, b]) if one(a, 0) || one(b, 0) => return Expr::int(0),
            (_, [Expr::Lit(a), Expr::Lit(b)]) if a.as_int().is_some() && b.as_int().is_some() => {
                if let Ok(l) = op.eval(&[*a, *b]) {
                    return Expr::Lit(l);
                }
            }
            _ => {}
        }
        Expr::Op(op, ty, args)
    }

    /// The value of an integer literal.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Expr::Lit(l) => l.as_int(),
            _ => None,
        }
    }

    /// Whether it is a literal or a variable.
    pub fn is_atom(&self) -> bool {
        matches!(self, Expr::Lit(_) | Expr::Var(_))
    }

    /// The sub-expressions.
    pub fn kids(&self) -> &[Expr] {
        match self {
            Expr::Lit(_) | Expr::Var(_) => &[],
            Expr::Load(_, e) | Expr::Cast(_, e) => std::slice::from_ref(e),
            Expr::Op(_, _, args) => args,
            Expr::Cond(parts) => parts.as_slice(),
        }
    }
}

impl Site {
    /// The message of the interpreter, with the values that the running program gave.
    pub fn diagnostic(&self, values: &[i64]) -> Box<Diagnostic> {
        let halves = || values.split_at(values.len() / 2);
        let one = || values.first().copied().unwrap_or_default();
        let (kind, message) = match &self.failing {
            Failing::Index(_) => {
                let (at, size) = halves();
                (Kind::User, format!("index out of range: {}, of size {}", list(at), list(size)))
            }
            Failing::Assertion => (Kind::User, "assertion failed".to_string()),
            Failing::Division => (Kind::User, "division by zero".to_string()),
            Failing::NegativeSize => (Kind::User, format!("negative size {}", one())),
            Failing::TooLarge(_) => (Kind::Limit, format!("a tensor of size {} is too large", list(values))),
            Failing::ElementShape => (Kind::User, "elements differ in shape".to_string()),
            Failing::Sizes(_) => {
                let (a, b) = halves();
                (Kind::User, format!("sizes disagree: {} and {}", list(a), list(b)))
            }
            Failing::NamedSize(name, p, q) => {
                let other = values.get(1).copied().unwrap_or_default();
                (Kind::User, format!("sizes disagree: `{name}` is {} in `{p}` and {other} in `{q}`", one()))
            }
            Failing::StateShape => (Kind::User, "the state changes its shape".to_string()),
            Failing::Nothing => (Kind::User, "no least or greatest of nothing".to_string()),
            Failing::NoShape => (Kind::User, "a sum over nothing has no shape here".to_string()),
            Failing::NoBody(name) => (Kind::User, format!("`{name}` has no definition here")),
            Failing::Recursion(most) => (Kind::Limit, format!("recursion is deeper than {most} calls")),
            Failing::Internal => (Kind::Bug, "compiled code found other sizes than lowering".to_string()),
        };
        let d = match kind {
            Kind::User => Diagnostic::user(message),
            Kind::Limit => Diagnostic::limit(message),
            Kind::Bug => Diagnostic::bug(message),
        };
        self.places.iter().fold(d, |d, (span, label)| d.at(*span, *label))
    }
}

fn list(each: &[i64]) -> String {
    match each {
        [one] => one.to_string(),
        many => format!("({})", many.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")),
    }
}
