//! Numbers and truth values of one type, each in its own width: the typed storage under tensors.
//!
//! Literals go in and come out with the same bits, signed zeros and the payloads of NaNs included. It must not know
//! of values.

use crate::ir::{Lit, Scalar};
use std::collections::TryReserveError;
use std::ops::Range;

/// A list of scalars of one type.
#[derive(Clone, Debug)]
pub struct Numbers(Lists);

#[derive(Clone, Debug)]
enum Lists {
    F64(Vec<f64>),
    F32(Vec<f32>),
    I64(Vec<i64>),
    I32(Vec<i32>),
    I16(Vec<i16>),
    I8(Vec<i8>),
    U32(Vec<u32>),
    U16(Vec<u16>),
    U8(Vec<u8>),
    Bool(Vec<bool>),
}

/// One expression for the list of whatever type.
macro_rules! list {
    ($of:expr, $all:ident => $out:expr) => {
        match $of {
            Lists::F64($all) => $out,
            Lists::F32($all) => $out,
            Lists::I64($all) => $out,
            Lists::I32($all) => $out,
            Lists::I16($all) => $out,
            Lists::I8($all) => $out,
            Lists::U32($all) => $out,
            Lists::U16($all) => $out,
            Lists::U8($all) => $out,
            Lists::Bool($all) => $out,
        }
    };
}

/// One expression with the Rust type of a scalar type.
macro_rules! typed {
    ($scalar:expr, $number:ident => $out:expr) => {
        match $scalar {
            Scalar::F64 => typed!(f64, $number, $out),
            Scalar::F32 => typed!(f32, $number, $out),
            Scalar::I64 => typed!(i64, $number, $out),
            Scalar::I32 => typed!(i32, $number, $out),
            Scalar::I16 => typed!(i16, $number, $out),
            Scalar::I8 => typed!(i8, $number, $out),
            Scalar::U32 => typed!(u32, $number, $out),
            Scalar::U16 => typed!(u16, $number, $out),
            Scalar::U8 => typed!(u8, $number, $out),
            Scalar::Bool => typed!(bool, $number, $out),
        }
    };
    ($rust:ty, $number:ident, $out:expr) => {{
        type $number = $rust;
        $out
    }};
}

/// A Rust type that holds a scalar of the language.
pub trait Number: Copy + Default + 'static {
    /// The scalar.
    const SCALAR: Scalar;

    /// A literal of exactly this type; nothing for others.
    fn of(lit: Lit) -> Option<Self>;

    /// The literal with the same bits.
    fn lit(self) -> Lit;

    /// Numbers in the order of the machine's bytes; of truth values the lowest bit tells.
    fn all(bytes: &[u8]) -> Vec<Self>;

    /// A list of this type.
    fn list(all: Vec<Self>) -> Numbers;

    /// The elements of a list of this type; nothing of others.
    fn slice(of: &Numbers) -> Option<&[Self]>;
}

macro_rules! number {
    ($rust:ty, $kind:ident, $bytes:ident => $from:expr, $lit:pat => $of:expr, $v:ident => $into:expr) => {
        impl Number for $rust {
            const SCALAR: Scalar = Scalar::$kind;

            fn of(lit: Lit) -> Option<$rust> {
                match lit {
                    $lit => $of,
                    _ => None,
                }
            }

            fn lit(self) -> Lit {
                let $v = self;
                $into
            }

            fn all(bytes: &[u8]) -> Vec<$rust> {
                let (each, _) = bytes.as_chunks::<{ size_of::<$rust>() }>();
                each.iter().map(|$bytes| $from).collect()
            }

            fn list(all: Vec<$rust>) -> Numbers {
                Numbers(Lists::$kind(all))
            }

            fn slice(of: &Numbers) -> Option<&[$rust]> {
                if let Lists::$kind(all) = &of.0 { Some(all) } else { None }
            }
        }
    };
    ($rust:ty, $kind:ident) => {
        number!($rust, $kind, b => <$rust>::from_ne_bytes(*b),
            Lit::Int(Scalar::$kind, v) => <$rust>::try_from(v).ok(), v => Lit::Int(Scalar::$kind, v.into()));
    };
}

number!(f64, F64, b => f64::from_ne_bytes(*b),
    Lit::F64(bits) => Some(f64::from_bits(bits)), v => Lit::F64(v.to_bits()));
number!(f32, F32, b => f32::from_ne_bytes(*b),
    Lit::F32(bits) => Some(f32::from_bits(bits)), v => Lit::F32(v.to_bits()));
number!(bool, Bool, b => b[0] & 1 == 1, Lit::Bool(b) => Some(b), v => Lit::Bool(v));
number!(i64, I64);
number!(i32, I32);
number!(i16, I16);
number!(i8, I8);
number!(u32, U32);
number!(u16, U16);
number!(u8, U8);

impl Numbers {
    /// None of a type.
    pub fn new(of: Scalar) -> Numbers {
        typed!(of, T => T::list(vec![]))
    }

    /// Those that stand in memory one after another, each in the order of the machine's bytes.
    pub fn from_bytes(of: Scalar, bytes: &[u8]) -> Numbers {
        typed!(of, T => T::list(T::all(bytes)))
    }

    /// As they stand in memory.
    pub fn bytes(&self) -> &[u8] {
        fn seen<T: Number>(all: &[T]) -> &[u8] {
            // SAFETY: the types of the lists are numbers and truth values, which have no padding.
            unsafe { std::slice::from_raw_parts(all.as_ptr().cast(), size_of_val(all)) }
        }
        list!(&self.0, all => seen(all))
    }

    /// Their type.
    pub fn scalar(&self) -> Scalar {
        fn of<T: Number>(_: &[T]) -> Scalar {
            T::SCALAR
        }
        list!(&self.0, all => of(all))
    }

    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        list!(&self.0, all => all.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One of them, which must be there.
    #[inline]
    pub fn get(&self, k: usize) -> Lit {
        list!(&self.0, all => all[k].lit())
    }

    /// All in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Lit> + '_ {
        (0..self.len()).map(|k| self.get(k))
    }

    /// Those in a range, which must be there.
    pub fn slice(&self, range: Range<usize>) -> Numbers {
        list!(&self.0, all => Number::list(all[range].to_vec()))
    }

    /// Makes room for so many more.
    ///
    /// # Errors
    /// The machine has none.
    pub fn reserve(&mut self, n: usize) -> Result<(), TryReserveError> {
        list!(&mut self.0, all => all.try_reserve_exact(n))
    }

    /// Adds one at the end; whether it is of the type.
    #[inline]
    #[must_use]
    pub fn push(&mut self, lit: Lit) -> bool {
        list!(&mut self.0, all => Number::of(lit).map(|v| all.push(v)).is_some())
    }

    /// Puts another in the place of one, which must be there; whether it is of the type.
    #[inline]
    #[must_use]
    pub fn set(&mut self, k: usize, lit: Lit) -> bool {
        list!(&mut self.0, all => Number::of(lit).map(|v| all[k] = v).is_some())
    }

    /// Adds one so often at the end that there are so many; whether it is of the type.
    #[must_use]
    pub fn resize(&mut self, n: usize, lit: Lit) -> bool {
        list!(&mut self.0, all => Number::of(lit).map(|v| all.resize(n, v)).is_some())
    }

    /// Adds others at the end; whether they are of the type.
    #[must_use]
    pub fn append(&mut self, more: &Numbers) -> bool {
        list!(&mut self.0, all => Number::slice(more).map(|more| all.extend_from_slice(more)).is_some())
    }
}

/// Of one type, and equal in all bits.
impl PartialEq for Numbers {
    fn eq(&self, other: &Numbers) -> bool {
        self.scalar() == other.scalar() && self.bytes() == other.bytes()
    }
}
