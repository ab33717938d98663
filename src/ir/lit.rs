//! Literal scalars: compared by bits, so that -0.0 and 0.0 differ and NaNs can be hashed. Their text.
//!
//! A number of a small type ends in the name of its type (`3u8`), so that every finite literal reads back
//! as itself. Infinities and NaNs have no text: no pass makes a literal of them.

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

/// How numbers end that are no `Float` and no `Integer`.
const SUFFIXES: [(Scalar, &str); 7] = [
    (Scalar::F32, "f32"),
    (Scalar::I32, "i32"),
    (Scalar::I16, "i16"),
    (Scalar::I8, "i8"),
    (Scalar::U32, "u32"),
    (Scalar::U16, "u16"),
    (Scalar::U8, "u8"),
];

/// Why a word is no number: what is wrong with it, and what would be right.
#[derive(Clone, PartialEq, Debug)]
pub struct NoNumber {
    /// What is wrong.
    pub what: String,
    /// What would be right.
    pub notes: Vec<String>,
}

impl NoNumber {
    fn new(what: impl Into<String>) -> NoNumber {
        NoNumber { what: what.into(), notes: vec![] }
    }

    fn note(mut self, note: impl Into<String>) -> NoNumber {
        self.notes.push(note.into());
        self
    }
}

impl Lit {
    /// The number that a word is which begins with a digit, or with a sign and a digit.
    ///
    /// # Errors
    /// It is none, or one that its type does not have.
    pub fn number(word: &str) -> Result<Lit, NoNumber> {
        let typed = SUFFIXES.iter().find_map(|(s, end)| Some((*s, word.strip_suffix(end)?)));
        let (scalar, text) = typed.map_or((None, word), |(s, text)| (Some(s), text));
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        let whole = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        match scalar.unwrap_or(if whole { Scalar::I64 } else { Scalar::F64 }) {
            s if s.is_int() && whole => integer(s, text),
            s if s.is_int() && is_float(digits) => {
                Err(no_number().note(format!("{} has no point and no exponent", s.name())))
            }
            s if s.is_float() && (whole || is_float(digits)) => float(s, text),
            _ => Err(no_number().note(meant(word, scalar.is_some()))),
        }
    }
}

fn no_number() -> NoNumber {
    NoNumber::new("this is no number and no name")
}

/// What a word that begins with a digit might have been meant for.
fn meant(word: &str, typed: bool) -> String {
    match !typed && word.contains(|c: char| c.is_alphabetic() && !matches!(c, 'e' | 'E')) {
        true => {
            let ends: Vec<&str> = SUFFIXES.iter().map(|(_, end)| *end).collect();
            format!("a name starts with a letter, and a number may end in its type: {}", ends.join(", "))
        }
        false => "a Float has digits on both sides of its point, or an exponent: `1.0`, `2.5e-3`".into(),
    }
}

fn integer(s: Scalar, text: &str) -> Result<Lit, NoNumber> {
    let (lo, hi) = s.range();
    let value = text.parse::<i64>().ok().filter(|v| (lo..=hi).contains(v));
    value.map(|v| Lit::Int(s, v)).ok_or_else(|| {
        let what = format!("this number is out of the range of {}", s.name());
        NoNumber::new(what).note(format!("{} goes from {lo} to {hi}", s.name()))
    })
}

/// Read at its own width: rounded twice it might be another number.
fn float(s: Scalar, text: &str) -> Result<Lit, NoNumber> {
    let (value, most) = match s {
        Scalar::F32 => (text.parse().ok().filter(|v: &f32| v.is_finite()).map(Lit::float32), f32::MAX.into()),
        _ => (text.parse().ok().filter(|v: &f64| v.is_finite()).map(Lit::float), f64::MAX),
    };
    value.ok_or_else(|| {
        let what = format!("this number is out of the range of {}", s.name());
        NoNumber::new(what).note(format!("{} goes from {:e} to {most:e}", s.name(), -most))
    })
}

/// `12.5`, `1e5`, `4.4e-2`, the sign left out.
fn is_float(word: &str) -> bool {
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let (mantissa, exponent) = match word.split_once(['e', 'E']) {
        Some((m, e)) => (m, Some(e.strip_prefix(['-', '+']).unwrap_or(e))),
        None => (word, None),
    };
    let mantissa_good = match mantissa.split_once('.') {
        Some((a, b)) => digits(a) && digits(b),
        None => digits(mantissa) && exponent.is_some(),
    };
    mantissa_good && exponent.is_none_or(digits)
}

/// Text that reads back to the same literal, for every finite one.
impl fmt::Display for Lit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Lit::F64(b) => write!(f, "{:?}", f64::from_bits(b)),
            Lit::F32(b) => write!(f, "{:?}{}", f32::from_bits(b), suffix(Scalar::F32)),
            Lit::Int(s, v) => write!(f, "{v}{}", suffix(s)),
            Lit::Bool(b) => write!(f, "{b}"),
            Lit::Str(s) => quoted(s, f),
        }
    }
}

/// What a number of a type ends in.
fn suffix(s: Scalar) -> &'static str {
    SUFFIXES.iter().find(|(of, _)| *of == s).map_or("", |(_, end)| end)
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
