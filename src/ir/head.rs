//! What a node is, apart from its children. The same heads label terms and e-nodes.
//!
//! | head | children | value |
//! |---|---|---|
//! | `Const` | | the literal |
//! | `Var(i, T)` | | the variable of the i-th binder outwards, 0 the innermost |
//! | `Let` | value, *body* | body with variable 0 bound to the value |
//! | `If` | condition, then, else | one arm, the other is not evaluated |
//! | `Assert` | condition, value | fails unless the condition holds |
//! | `Tuple` | parts | |
//! | `Get(i, n)` | tuple of n parts | part i, from 0 |
//! | `Call(f)` | arguments | |
//! | `Op(op)` | arguments | by element on tensors and tuples where the table lifts it |
//! | `Cast(S)` | scalar | |
//! | `Build(d)` | d sizes, *element* | tensor of rank d |
//! | `Reduce(m, d)` | d sizes, *element* | from the identity of m, last index fastest |
//! | `Arg(m)` | size, *key* | first index with the least or greatest key |
//! | `Sum` | tensor | sum over the outer tensor |
//! | `Index(d)` | d indices, tensor | |
//! | `Size(k)` | tensor | size of axis k, counted through nested tensors; 0 inside an empty one |
//! | `Fold` | initial state, vector, *step(state, element)* | last state |
//! | `Scan` | initial state, count, *step(state, index)* | all states but the initial one |
//! | `ConstVec(d)` | d sizes, value | |
//! | `DeltaVec(d)` | d sizes, d indices, value | zeros but for one place, if that is in range |
//! | `VecInit` | elements | vector of them |
//! | `Scatter(d)` | d sizes, count, *(index, value)* | zeros, each value added at its index |
//! | `Print` | values | characters written |
//!
//! Children in *italics* stand under binders; [`Head::binds`] says how many. A binder of several
//! variables binds them at once, the last one innermost (index 0).

use super::lit::Lit;
use super::op::Op;
use super::ty::{Scalar, Ty};
use std::cmp::Ordering;
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::sync::{LazyLock, Mutex};

/// The operation of a reduction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Monoid {
    Add,
    Mul,
    Min,
    Max,
    And,
    Or,
}

impl Monoid {
    /// All of them.
    pub const ALL: [Monoid; 6] = [Monoid::Add, Monoid::Mul, Monoid::Min, Monoid::Max, Monoid::And, Monoid::Or];

    /// The scalar operation that combines two values of a type: of floats the least and the greatest in which no order
    /// shows, where some are no numbers or zeros of either sign.
    pub fn combines(self, s: Scalar) -> Op {
        match self {
            Monoid::Min if s.is_float() => Op::Minimum,
            Monoid::Max if s.is_float() => Op::Maximum,
            _ => self.op(),
        }
    }

    /// What says that a key is taken rather than one that stands before it, where the least or the greatest is looked for;
    /// and whether both are negated before that. What is no number comes first.
    pub fn prefers(self, s: Scalar) -> (Op, bool) {
        match self {
            Monoid::Min if s.is_float() => (Op::Precedes, false),
            _ if s.is_float() => (Op::Precedes, true),
            Monoid::Min => (Op::Lt, false),
            _ => (Op::Gt, false),
        }
    }

    /// The scalar operation that combines two values over the reals.
    pub fn op(self) -> Op {
        match self {
            Monoid::Add => Op::Add,
            Monoid::Mul => Op::Mul,
            Monoid::Min => Op::Min,
            Monoid::Max => Op::Max,
            Monoid::And => Op::And,
            Monoid::Or => Op::Or,
        }
    }

    /// The name in source text.
    pub fn name(self) -> &'static str {
        self.op().name()
    }

    /// The value of a reduction over nothing.
    pub fn identity(self, s: Scalar) -> Option<Lit> {
        let (lo, hi) = s.range();
        Some(match (self, s) {
            (Monoid::And, Scalar::Bool) => Lit::Bool(true),
            (Monoid::Or, Scalar::Bool) => Lit::Bool(false),
            (Monoid::And | Monoid::Or, _) | (_, Scalar::Bool) => return None,
            (Monoid::Add, s) => Lit::of(s, 0.0),
            (Monoid::Mul, s) => Lit::of(s, 1.0),
            (Monoid::Min, s) if s.is_float() => Lit::of(s, f64::INFINITY),
            (Monoid::Max, s) if s.is_float() => Lit::of(s, f64::NEG_INFINITY),
            (Monoid::Min, s) => Lit::Int(s, hi),
            (Monoid::Max, s) => Lit::Int(s, lo),
        })
    }
}

/// Name and types of a function.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Signature {
    /// The name in source text, brackets of structured names included.
    pub name: String,
    /// Parameter types.
    pub params: Vec<Ty>,
    /// Result type.
    pub ret: Ty,
}

/// An interned signature: what a call names. A program maps it to a definition.
#[derive(Clone, Copy, Debug)]
pub struct Fun(&'static Signature);

static FUNS: LazyLock<Mutex<HashSet<&'static Signature>>> = LazyLock::new(Mutex::default);

impl Fun {
    /// Interns a signature.
    pub fn new(sig: Signature) -> Fun {
        let mut funs = FUNS.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(found) = funs.get(&sig) {
            return Fun(found);
        }
        let leaked: &'static Signature = Box::leak(Box::new(sig));
        funs.insert(leaked);
        Fun(leaked)
    }

    /// The signature.
    pub fn sig(self) -> &'static Signature {
        self.0
    }
}

impl PartialEq for Fun {
    fn eq(&self, other: &Fun) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Fun {}

impl Hash for Fun {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::ptr::from_ref(self.0).hash(state);
    }
}

impl PartialOrd for Fun {
    fn partial_cmp(&self, other: &Fun) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

// Addresses differ from run to run, so the order is the order of the contents.
impl Ord for Fun {
    fn cmp(&self, other: &Fun) -> Ordering {
        if self == other { Ordering::Equal } else { self.0.cmp(other.0) }
    }
}

/// The label of a node. See the module's table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[expect(missing_docs, reason = "the module's table says it")]
pub enum Head {
    Const(Lit),
    Var(u32, Ty),
    Let,
    If,
    Assert,
    Tuple,
    Get(u32, u32),
    Call(Fun),
    Op(Op),
    Cast(Scalar),
    Build(usize),
    Reduce(Monoid, usize),
    Arg(Monoid),
    Sum,
    Index(usize),
    Size(usize),
    Fold,
    Scan,
    ConstVec(usize),
    DeltaVec(usize),
    VecInit,
    Scatter(usize),
    Print,
}

impl Head {
    /// How many variables are bound in child `k` of a node with `arity` children.
    pub fn binds(self, k: usize, arity: usize) -> usize {
        if k + 1 != arity {
            return 0;
        }
        match self {
            Head::Let | Head::Arg(_) | Head::Scatter(_) => 1,
            Head::Fold | Head::Scan => 2,
            Head::Build(d) | Head::Reduce(_, d) => d,
            Head::Const(_) | Head::Var(..) | Head::If | Head::Assert | Head::Tuple | Head::Get(..) => 0,
            Head::Call(_) | Head::Op(_) | Head::Cast(_) | Head::Sum | Head::Index(_) | Head::Size(_) => 0,
            Head::ConstVec(_) | Head::DeltaVec(_) | Head::VecInit | Head::Print => 0,
        }
    }

    /// Whether the last child runs any number of times, 0 included.
    pub fn is_loop(self) -> bool {
        matches!(self, Head::Build(_) | Head::Reduce(..) | Head::Arg(_) | Head::Fold | Head::Scan | Head::Scatter(_))
    }

    /// The types of the variables bound in the last child, outermost first.
    pub fn bound_tys(self, kids: &[Ty]) -> Vec<Ty> {
        match self {
            Head::Let => vec![kids[0]],
            Head::Arg(_) | Head::Scatter(_) => vec![Ty::int()],
            Head::Fold => {
                let elem = kids[1].as_tensor().map_or(kids[1], |(_, e)| e);
                vec![kids[0], elem]
            }
            Head::Scan => vec![kids[0], Ty::int()],
            Head::Build(d) | Head::Reduce(_, d) => vec![Ty::int(); d],
            Head::Const(_) | Head::Var(..) | Head::If | Head::Assert | Head::Tuple | Head::Get(..) => vec![],
            Head::Call(_) | Head::Op(_) | Head::Cast(_) | Head::Sum | Head::Index(_) | Head::Size(_) => vec![],
            Head::ConstVec(_) | Head::DeltaVec(_) | Head::VecInit | Head::Print => vec![],
        }
    }

    /// Whether evaluating the node itself can fail although its children have values. What stands
    /// in the node's place may still be proved harmless (an index in range, say).
    pub fn is_partial(self, kids: &[Ty]) -> bool {
        match self {
            Head::Op(op) => match kids.first() {
                Some(t) => op.is_partial(*t) || kids.iter().filter(|t| t.has_tensor()).count() > 1,
                None => false,
            },
            Head::Assert | Head::Call(_) | Head::Index(_) | Head::Scatter(_) | Head::Print => true,
            Head::Build(_) | Head::Reduce(..) | Head::Arg(_) | Head::Fold | Head::Scan => true,
            Head::ConstVec(_) | Head::DeltaVec(_) => true,
            Head::VecInit | Head::Sum => kids.iter().any(|t| t.has_tensor()),
            Head::Const(_) | Head::Var(..) | Head::Let | Head::If | Head::Tuple | Head::Get(..) => false,
            Head::Cast(_) | Head::Size(_) => false,
        }
    }
}

/// What a node's type would have to be made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// Which child is wrong, where one can be told.
    pub child: Option<usize>,
    /// What was expected there.
    pub expected: String,
}

impl Mismatch {
    fn at<T>(child: usize, expected: impl Into<String>) -> Result<T, Mismatch> {
        Err(Mismatch { child: Some(child), expected: expected.into() })
    }

    fn whole<T>(expected: impl Into<String>) -> Result<T, Mismatch> {
        Err(Mismatch { child: None, expected: expected.into() })
    }
}

fn want(kids: &[Ty], k: usize, ty: Ty) -> Result<(), Mismatch> {
    if kids[k] == ty { Ok(()) } else { Mismatch::at(k, ty.to_string()) }
}

fn ints(kids: &[Ty], range: std::ops::Range<usize>) -> Result<(), Mismatch> {
    range.into_iter().try_for_each(|k| want(kids, k, Ty::int()))
}

fn tensor_at(kids: &[Ty], k: usize) -> Result<(usize, Ty), Mismatch> {
    match kids[k].as_tensor() {
        Some(t) => Ok(t),
        None => Mismatch::at(k, "a tensor"),
    }
}

impl Head {
    /// The type of a node from the types of its children.
    ///
    /// # Errors
    /// Says which child does not fit and what would.
    #[expect(clippy::too_many_lines, reason = "one arm a head")]
    pub fn result_ty(self, kids: &[Ty]) -> Result<Ty, Mismatch> {
        let arity = |n: usize| {
            if kids.len() == n { Ok(()) } else { Mismatch::whole(format!("{n} children")) }
        };
        match self {
            Head::Const(l) => arity(0).map(|()| l.ty()),
            Head::Var(_, ty) => arity(0).map(|()| ty),
            Head::Let => arity(2).map(|()| kids[1]),
            Head::If => {
                arity(3)?;
                want(kids, 0, Ty::bool())?;
                want(kids, 2, kids[1])?;
                Ok(kids[1])
            }
            Head::Assert => {
                arity(2)?;
                want(kids, 0, Ty::bool())?;
                Ok(kids[1])
            }
            Head::Tuple => Ok(Ty::tuple(kids.to_vec())),
            Head::Get(i, n) => {
                arity(1)?;
                match kids[0].as_tuple() {
                    Some(parts) if parts.len() == n as usize && i < n => Ok(parts[i as usize]),
                    _ => Mismatch::at(0, format!("a tuple of {n}")),
                }
            }
            Head::Call(f) => {
                arity(f.sig().params.len())?;
                (0..kids.len()).try_for_each(|k| want(kids, k, f.sig().params[k]))?;
                Ok(f.sig().ret)
            }
            Head::Op(op) => op.result_ty(kids).map_or_else(|| Mismatch::whole("other types"), Ok),
            Head::Cast(s) => {
                arity(1)?;
                if kids[0].as_scalar().is_some() { Ok(Ty::scalar(s)) } else { Mismatch::at(0, "a number") }
            }
            Head::Build(d) => {
                arity(d + 1)?;
                ints(kids, 0..d)?;
                Ok(Ty::tensor(d, kids[d]))
            }
            Head::Reduce(m, d) => {
                arity(d + 1)?;
                ints(kids, 0..d)?;
                match (m, kids[d].as_scalar()) {
                    (Monoid::Add, _) if kids[d].is_additive() => Ok(kids[d]),
                    (_, Some(s)) if m.identity(s).is_some() => Ok(kids[d]),
                    (Monoid::Mul | Monoid::Min | Monoid::Max, None) if kids[d].is_number_variable() => Ok(kids[d]),
                    (Monoid::And | Monoid::Or, _) => Mismatch::at(d, "Bool"),
                    (Monoid::Add, _) => Mismatch::at(d, "numbers, or tuples and tensors of them"),
                    (Monoid::Mul | Monoid::Min | Monoid::Max, _) => Mismatch::at(d, "a number"),
                }
            }
            Head::Arg(_) => {
                arity(2)?;
                ints(kids, 0..1)?;
                match kids[1].as_scalar() {
                    Some(s) if s != Scalar::Bool => Ok(Ty::int()),
                    _ => Mismatch::at(1, "a number"),
                }
            }
            Head::Sum => {
                arity(1)?;
                let (_, e) = tensor_at(kids, 0)?;
                if e.is_additive() { Ok(e) } else { Mismatch::at(0, "a tensor of numbers") }
            }
            Head::Index(d) => {
                arity(d + 1)?;
                ints(kids, 0..d)?;
                match tensor_at(kids, d)? {
                    (r, e) if r == d => Ok(e),
                    _ => Mismatch::at(d, format!("a tensor of rank {d}")),
                }
            }
            Head::Size(k) => {
                arity(1)?;
                if k < kids[0].axes() { Ok(Ty::int()) } else { Mismatch::at(0, format!("a tensor of {} axes", k + 1)) }
            }
            Head::Fold => {
                arity(3)?;
                match tensor_at(kids, 1)? {
                    (1, _) => {}
                    _ => return Mismatch::at(1, "a vector"),
                }
                want(kids, 2, kids[0])?;
                Ok(kids[0])
            }
            Head::Scan => {
                arity(3)?;
                ints(kids, 1..2)?;
                want(kids, 2, kids[0])?;
                Ok(Ty::tensor(1, kids[0]))
            }
            Head::ConstVec(d) => {
                arity(d + 1)?;
                ints(kids, 0..d)?;
                Ok(Ty::tensor(d, kids[d]))
            }
            Head::DeltaVec(d) => {
                arity(2 * d + 1)?;
                ints(kids, 0..2 * d)?;
                if kids[2 * d].is_additive() {
                    Ok(Ty::tensor(d, kids[2 * d]))
                } else {
                    Mismatch::at(2 * d, "numbers, or tuples and tensors of them")
                }
            }
            Head::VecInit => {
                if kids.is_empty() {
                    return Mismatch::whole("at least one element");
                }
                (1..kids.len()).try_for_each(|k| want(kids, k, kids[0]))?;
                Ok(Ty::tensor(1, kids[0]))
            }
            Head::Scatter(d) => {
                arity(d + 2)?;
                ints(kids, 0..d + 1)?;
                match kids[d + 1].as_tuple() {
                    Some([i, e]) if *i == Ty::index(d) && e.is_additive() && !e.has_tensor() => Ok(Ty::tensor(d, *e)),
                    _ => Mismatch::at(
                        d + 1,
                        format!("(Tuple {} E) with E of numbers, or tuples and tensors of them", Ty::index(d)),
                    ),
                }
            }
            Head::Print => Ok(Ty::int()),
        }
    }
}
