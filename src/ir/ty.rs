//! Types as interned values: equal types are the same pointer.
//!
//! Sizes are no part of a type; they are terms (see `types/shape.rs`).

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{LazyLock, Mutex};

/// An element type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Scalar {
    F64,
    F32,
    I64,
    I32,
    I16,
    I8,
    U32,
    U16,
    U8,
    Bool,
}

use Scalar::*;

impl Scalar {
    /// All of them with their source names.
    pub const NAMES: [(Scalar, &'static str); 10] = [
        (F64, "Float"),
        (F32, "Float32"),
        (I64, "Integer"),
        (I32, "Int32"),
        (I16, "Int16"),
        (I8, "Int8"),
        (U32, "UInt32"),
        (U16, "UInt16"),
        (U8, "UInt8"),
        (Bool, "Bool"),
    ];

    /// The name in source text.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(s, _)| *s == self).map_or("?", |(_, n)| n)
    }

    /// The bytes of one number.
    pub fn bytes(self) -> u32 {
        match self {
            F64 | I64 => 8,
            F32 | I32 | U32 => 4,
            I16 | U16 => 2,
            I8 | U8 | Bool => 1,
        }
    }

    /// `Float` or `Float32`.
    pub fn is_float(self) -> bool {
        matches!(self, F64 | F32)
    }

    /// Any integer type; `Bool` is none.
    pub fn is_int(self) -> bool {
        !matches!(self, F64 | F32 | Bool)
    }

    /// How many bits it has; a truth value has one.
    pub fn bits(self) -> u32 {
        match self {
            I64 | F64 => 64,
            I32 | U32 | F32 => 32,
            I16 | U16 => 16,
            I8 | U8 => 8,
            Bool => 1,
        }
    }

    /// Wraps a 64-bit integer to this integer type.
    pub fn wrap(self, v: i64) -> i64 {
        match self {
            I32 => v as i32 as i64,
            I16 => v as i16 as i64,
            I8 => v as i8 as i64,
            U32 => v as u32 as i64,
            U16 => v as u16 as i64,
            U8 => v as u8 as i64,
            I64 | F64 | F32 | Bool => v,
        }
    }

    /// Least and greatest value of an integer type.
    pub fn range(self) -> (i64, i64) {
        match self {
            I32 => (i32::MIN.into(), i32::MAX.into()),
            I16 => (i16::MIN.into(), i16::MAX.into()),
            I8 => (i8::MIN.into(), i8::MAX.into()),
            U32 => (0, u32::MAX.into()),
            U16 => (0, u16::MAX.into()),
            U8 => (0, u8::MAX.into()),
            I64 | F64 | F32 | Bool => (i64::MIN, i64::MAX),
        }
    }
}

/// What a type is made of.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum TyKind {
    /// One number or truth value.
    Scalar(Scalar),
    /// Text; only printed and compared.
    String,
    /// Components in order; `(Tuple)` is the unit type.
    Tuple(Vec<Ty>),
    /// Rank and element type.
    Tensor(usize, Ty),
    /// A type variable of a rewrite rule, with what it ranges over.
    Var(Range, &'static str),
}

/// What a type variable ranges over; its first letter says so (`?T`, `?A`, `?N`, `?I`, `?F`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Range {
    /// Every type.
    Any,
    /// Types with a zero: numbers, and tuples and tensors of them.
    Additive,
    /// Scalar numbers.
    Number,
    /// Integer types.
    Int,
    /// `Float` and `Float32`.
    Float,
}

impl Range {
    /// The range of a type variable's name.
    pub fn of(name: &str) -> Option<Range> {
        Some(match name.strip_prefix('?')?.chars().next()? {
            'T' => Range::Any,
            'A' => Range::Additive,
            'N' => Range::Number,
            'I' => Range::Int,
            'F' => Range::Float,
            _ => return None,
        })
    }

    /// Whether a type without variables is in the range.
    pub fn holds(self, ty: Ty) -> bool {
        match self {
            Range::Any => true,
            Range::Additive => ty.is_additive(),
            Range::Number => ty.as_scalar().is_some_and(|s| s != Bool),
            Range::Int => ty.as_scalar().is_some_and(Scalar::is_int),
            Range::Float => ty.as_scalar().is_some_and(Scalar::is_float),
        }
    }
}

/// An interned type.
#[derive(Clone, Copy)]
pub struct Ty(&'static Known);

/// What is known of a type.
struct Known {
    kind: TyKind,
    depth: usize,
}

static TYPES: LazyLock<Mutex<HashMap<&'static TyKind, Ty>>> = LazyLock::new(Mutex::default);

impl Ty {
    /// Interns a type. Types live as long as the program runs; there are few.
    pub fn new(kind: TyKind) -> Ty {
        let mut types = TYPES.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(found) = types.get(&kind) {
            return *found;
        }
        let depth = match &kind {
            TyKind::Scalar(_) | TyKind::String | TyKind::Var(..) => 0,
            TyKind::Tuple(parts) => 1 + parts.iter().map(|p| p.depth()).max().unwrap_or(0),
            TyKind::Tensor(_, elem) => 1 + elem.depth(),
        };
        let leaked: &'static Known = Box::leak(Box::new(Known { kind, depth }));
        types.insert(&leaked.kind, Ty(leaked));
        Ty(leaked)
    }

    /// What it is made of.
    pub fn kind(self) -> &'static TyKind {
        &self.0.kind
    }

    /// How deep tuples and tensors are nested in it.
    pub fn depth(self) -> usize {
        self.0.depth
    }

    /// A scalar type.
    pub fn scalar(s: Scalar) -> Ty {
        static SCALARS: LazyLock<Vec<Ty>> =
            LazyLock::new(|| Scalar::NAMES.iter().map(|(s, _)| Ty::new(TyKind::Scalar(*s))).collect());
        SCALARS[s as usize]
    }

    /// 64-bit float.
    pub fn float() -> Ty {
        Ty::scalar(F64)
    }

    /// 64-bit integer.
    pub fn int() -> Ty {
        Ty::scalar(I64)
    }

    /// Truth values.
    pub fn bool() -> Ty {
        Ty::scalar(Bool)
    }

    /// Text.
    pub fn string() -> Ty {
        Ty::new(TyKind::String)
    }

    /// A tuple type.
    pub fn tuple(parts: impl Into<Vec<Ty>>) -> Ty {
        Ty::new(TyKind::Tuple(parts.into()))
    }

    /// A tensor type.
    pub fn tensor(rank: usize, elem: Ty) -> Ty {
        Ty::new(TyKind::Tensor(rank, elem))
    }

    /// The index and size type at a rank.
    pub fn index(rank: usize) -> Ty {
        if rank == 1 { Ty::int() } else { Ty::tuple(vec![Ty::int(); rank]) }
    }

    /// The scalar type, where it is one.
    pub fn as_scalar(self) -> Option<Scalar> {
        match self.kind() {
            TyKind::Scalar(s) => Some(*s),
            TyKind::String | TyKind::Tuple(_) | TyKind::Tensor(..) | TyKind::Var(..) => None,
        }
    }

    /// Rank and element type, where it is a tensor.
    pub fn as_tensor(self) -> Option<(usize, Ty)> {
        match self.kind() {
            TyKind::Tensor(r, e) => Some((*r, *e)),
            TyKind::Scalar(_) | TyKind::String | TyKind::Tuple(_) | TyKind::Var(..) => None,
        }
    }

    /// The components, where it is a tuple.
    pub fn as_tuple(self) -> Option<&'static [Ty]> {
        match self.kind() {
            TyKind::Tuple(parts) => Some(parts),
            TyKind::Scalar(_) | TyKind::String | TyKind::Tensor(..) | TyKind::Var(..) => None,
        }
    }

    /// The number of axes of the outer tensor and of all tensors directly inside it.
    pub fn axes(self) -> usize {
        self.as_tensor().map_or(0, |(r, e)| r + e.axes())
    }

    /// The number of axes of all tensors in values of the type, those in tuples included.
    pub fn all_axes(self) -> usize {
        match self.kind() {
            TyKind::Tensor(rank, e) => rank + e.all_axes(),
            TyKind::Tuple(parts) => parts.iter().map(|p| p.all_axes()).sum(),
            TyKind::Scalar(_) | TyKind::String | TyKind::Var(..) => 0,
        }
    }

    /// Whether values of the type form a vector space: floats, and tuples and tensors of them.
    pub fn is_linear(self) -> bool {
        match self.kind() {
            TyKind::Scalar(s) => s.is_float(),
            TyKind::String => false,
            TyKind::Tuple(parts) => parts.iter().all(|p| p.is_linear()),
            TyKind::Tensor(_, e) => e.is_linear(),
            TyKind::Var(r, _) => *r == Range::Float,
        }
    }

    /// Whether the type has an element that adds nothing: numbers, and tuples and tensors of them.
    pub fn is_additive(self) -> bool {
        match self.kind() {
            TyKind::Scalar(s) => *s != Bool,
            TyKind::String => false,
            TyKind::Tuple(parts) => parts.iter().all(|p| p.is_additive()),
            TyKind::Tensor(_, e) => e.is_additive(),
            TyKind::Var(r, _) => *r != Range::Any,
        }
    }

    /// Whether it is a type variable that ranges over scalar numbers.
    pub fn is_number_variable(self) -> bool {
        matches!(self.kind(), TyKind::Var(Range::Number | Range::Int | Range::Float, _))
    }

    /// Whether a scalar type stands anywhere in the type.
    pub fn has_scalar(self, s: Scalar) -> bool {
        match self.kind() {
            TyKind::Scalar(own) => *own == s,
            TyKind::Tuple(parts) => parts.iter().any(|p| p.has_scalar(s)),
            TyKind::Tensor(_, elem) => elem.has_scalar(s),
            TyKind::String | TyKind::Var(..) => false,
        }
    }

    /// Whether a tensor stands anywhere in the type.
    pub fn has_tensor(self) -> bool {
        match self.kind() {
            TyKind::Scalar(_) | TyKind::String => false,
            TyKind::Tuple(parts) => parts.iter().any(|p| p.has_tensor()),
            TyKind::Tensor(..) => true,
            TyKind::Var(r, _) => matches!(r, Range::Any | Range::Additive),
        }
    }

    /// The type of tangents: floats stay, integers, truth values and text become the unit.
    pub fn tangent(self) -> Ty {
        match self.kind() {
            TyKind::Scalar(s) if s.is_float() => self,
            TyKind::Scalar(_) | TyKind::String => Ty::tuple([]),
            TyKind::Tuple(parts) => Ty::tuple(parts.iter().map(|p| p.tangent()).collect::<Vec<_>>()),
            TyKind::Tensor(r, e) => Ty::tensor(*r, e.tangent()),
            TyKind::Var(..) => self,
        }
    }
}

impl PartialEq for Ty {
    fn eq(&self, other: &Ty) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Ty {}

impl Hash for Ty {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::ptr::from_ref(self.0).hash(state);
    }
}

impl PartialOrd for Ty {
    fn partial_cmp(&self, other: &Ty) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

// Addresses differ from run to run, so the order is the order of the contents.
impl Ord for Ty {
    fn cmp(&self, other: &Ty) -> Ordering {
        if self == other { Ordering::Equal } else { self.kind().cmp(other.kind()) }
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind() {
            TyKind::Scalar(s) => f.write_str(s.name()),
            TyKind::String => f.write_str("String"),
            TyKind::Tuple(parts) => {
                f.write_str("(Tuple")?;
                for p in parts {
                    write!(f, " {p}")?;
                }
                f.write_str(")")
            }
            TyKind::Tensor(1, e) => write!(f, "(Vec {e})"),
            TyKind::Tensor(r, e) => write!(f, "(Tensor {r} {e})"),
            TyKind::Var(_, name) => f.write_str(name),
        }
    }
}

impl fmt::Debug for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
