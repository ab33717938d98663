//! Literal scalars: compared by bits, so that -0.0 and 0.0 differ and NaNs can be hashed.

use super::ty::{Scalar, Ty};
use std::collections::HashSet;
use std::fmt::{self, Write};
use std::sync::{LazyLock, Mutex};

/// A scalar value or a text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Lit {
    /// Bits of a 64-bit float.
    F64(u64),
    /// Bits of a 32-bit float.
    F32(u32),
    /// An integer of any width, sign-extended or zero-extended to 64 bits.
    Int(Scalar, i64),
    /// A truth value.
    Bool(bool),
    /// Text.
    Str(&'static str),
}

static TEXTS: LazyLock<Mutex<HashSet<&'static str>>> = LazyLock::new(Mutex::default);

/// A text that lives as long as the program; equal texts are one.
pub fn intern(text: &str) -> &'static str {
    let mut texts = TEXTS.lock().unwrap_or_else(|e| e.into_inner());
    if let Some(found) = texts.get(text) {
        return found;
    }
    let leaked: &'static str = Box::leak(text.to_string().into_boxed_str());
    texts.insert(leaked);
    leaked
}

impl Lit {
    /// A 64-bit float.
    pub fn float(v: f64) -> Lit {
        Lit::F64(v.to_bits())
    }

    /// A 32-bit float.
    pub fn float32(v: f32) -> Lit {
        Lit::F32(v.to_bits())
    }

    /// A 64-bit integer.
    pub fn int(v: i64) -> Lit {
        Lit::Int(Scalar::I64, v)
    }

    /// Its type.
    pub fn ty(self) -> Ty {
        match self {
            Lit::F64(_) => Ty::float(),
            Lit::F32(_) => Ty::scalar(Scalar::F32),
            Lit::Int(s, _) => Ty::scalar(s),
            Lit::Bool(_) => Ty::bool(),
            Lit::Str(_) => Ty::string(),
        }
    }

    /// The value of a float of either width.
    pub fn as_f64(self) -> Option<f64> {
        match self {
            Lit::F64(b) => Some(f64::from_bits(b)),
            Lit::F32(b) => Some(f32::from_bits(b).into()),
            Lit::Int(..) | Lit::Bool(_) | Lit::Str(_) => None,
        }
    }

    /// The value of an integer of any width.
    pub fn as_int(self) -> Option<i64> {
        match self {
            Lit::Int(_, v) => Some(v),
            Lit::F64(_) | Lit::F32(_) | Lit::Bool(_) | Lit::Str(_) => None,
        }
    }

    /// The truth value.
    pub fn as_bool(self) -> Option<bool> {
        match self {
            Lit::Bool(b) => Some(b),
            Lit::F64(_) | Lit::F32(_) | Lit::Int(..) | Lit::Str(_) => None,
        }
    }

    /// The number as a float, whatever its type; truth values are 0 and 1.
    pub fn to_f64(self) -> Option<f64> {
        match self {
            Lit::Int(_, v) => Some(v as f64),
            Lit::Bool(b) => Some(f64::from(u8::from(b))),
            Lit::F64(_) | Lit::F32(_) => self.as_f64(),
            Lit::Str(_) => None,
        }
    }

    /// The additive identity of a numeric type.
    pub fn zero(s: Scalar) -> Lit {
        Lit::of(s, 0.0)
    }

    /// A small number in a numeric type.
    pub fn of(s: Scalar, v: f64) -> Lit {
        match s {
            Scalar::F64 => Lit::float(v),
            Scalar::F32 => Lit::float32(v as f32),
            Scalar::Bool => Lit::Bool(v != 0.0),
            _ => Lit::Int(s, v as i64),
        }
    }

    /// `cast`: floats to integers saturate (NaN gives 0), integers wrap, anything but 0 is true.
    pub fn cast(self, to: Scalar) -> Option<Lit> {
        Some(match (self, to) {
            (Lit::Str(_), _) => return None,
            (_, Scalar::Bool) => Lit::Bool(self.to_f64()? != 0.0),
            (Lit::F32(b), Scalar::F32) => Lit::F32(b),
            (Lit::Int(_, v), Scalar::F32) => Lit::float32(v as f32),
            (_, Scalar::F32) => Lit::float32(self.to_f64()? as f32),
            (_, Scalar::F64) => Lit::float(self.to_f64()?),
            (Lit::Int(_, v), _) => Lit::Int(to, to.wrap(v)),
            (Lit::Bool(b), _) => Lit::Int(to, b.into()),
            (Lit::F64(_) | Lit::F32(_), _) => {
                let (lo, hi) = to.range();
                Lit::Int(to, (self.as_f64()? as i64).clamp(lo, hi))
            }
        })
    }
}

/// Text that reads back to the same bits, for every finite literal.
impl fmt::Display for Lit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Lit::F64(b) => write!(f, "{:?}", f64::from_bits(b)),
            Lit::F32(b) => write!(f, "(cast Float32 {:?})", f32::from_bits(b)),
            Lit::Int(Scalar::I64, v) => write!(f, "{v}"),
            Lit::Int(s, v) => write!(f, "(cast {} {v})", s.name()),
            Lit::Bool(b) => write!(f, "{b}"),
            Lit::Str(s) => quoted(s, f),
        }
    }
}

/// A text in the escapes that the reader knows: other characters stand for themselves.
fn quoted(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            '\n' => f.write_str("\\n")?,
            '\t' => f.write_str("\\t")?,
            '\r' => f.write_str("\\r")?,
            // `\u{…}` has an end of its own; `\0` would take the digits after it.
            c if c.is_control() => write!(f, "\\u{{{:x}}}", u32::from(c))?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}
