//! Elementary functions, as numbers of 64 or 32 bits become numbers of the same width.
//!
//! The language defines these functions as sequences of basic operations (additions, multiplications, divisions,
//! roots, fused multiply-adds, choices, rounding to whole numbers, scaling by powers of two), each rounded once. So
//! their bits depend on no library and no compiler. A function is written once, over `arith.rs`; the interpreter
//! evaluates it (`number.rs`), and compiled code does the same to many numbers at once (`text.rs`). Each file says how
//! far its functions are from the true values, in units in the last place. The folder knows nothing of terms.

mod arith;
mod distance;
mod error;
mod exponential;
mod gamma;
mod inverse;
mod logarithm;
mod number;
mod power;
mod text;
mod trigonometric;

/// A function in both widths, and as text.
struct Entry {
    name: &'static str,
    text: fn() -> String,
}

macro_rules! functions {
    ($($name:ident($($x:ident),*) $path:path;)*) => {
        /// The functions of 64-bit numbers.
        pub mod wide {
            use super::*;
            $(#[doc = concat!("`", stringify!($name), "` of 64-bit numbers.")]
            pub fn $name($($x: f64),*) -> f64 {
                functions!(run number::Wide, f64, $path, $($x),*)
            })*
        }

        /// The functions of 32-bit numbers.
        pub mod narrow {
            use super::*;
            $(#[doc = concat!("`", stringify!($name), "` of 32-bit numbers.")]
            pub fn $name($($x: f32),*) -> f32 {
                functions!(run number::Narrow, f32, $path, $($x),*)
            })*
        }

        static ENTRIES: &[Entry] = &[$(Entry {
            name: stringify!($name),
            text: || {
                let (wide, narrow) = (text::Tape::default(), text::Tape::default());
                let [$($x),*] = wide.arguments::<true, _>();
                let wide = wide.body($path($($x),*));
                let [$($x),*] = narrow.arguments::<false, _>();
                let narrow = narrow.body($path($($x),*));
                template(stringify!($name), [$(stringify!($x)),*].len(), &wide, &narrow)
            },
        }),*];
    };
    (run $number:path, $t:ty, $path:path, $($x:ident),*) => {{
        // The fused multiply-add is the processor's where there is one; the bits are the same.
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "fma")]
            fn fast($($x: $t),*) -> $t {
                $path($($number($x)),*).0
            }
            if std::is_x86_feature_detected!("fma") {
                // SAFETY: the processor has what the function is compiled for.
                return unsafe { fast($($x),*) };
            }
        }
        $path($($number($x)),*).0
    }};
}

functions! {
    exp(x) exponential::exp;
    tanh(x) exponential::tanh;
    sinh(x) exponential::sinh;
    cosh(x) exponential::cosh;
    sin(x) trigonometric::sin;
    cos(x) trigonometric::cos;
    tan(x) trigonometric::tan;
    asin(x) inverse::asin;
    acos(x) inverse::acos;
    atan(x) inverse::atan;
    atan2(y, x) inverse::atan2;
    pow(x, y) power::pow;
    power(x, y, low, odd) power::power;
    erf(x) error::erf;
    lgamma(x) gamma::lgamma;
    log(x) logarithm::log;
    hypot(x, y) distance::hypot;
}

/// A function as a C++ template over numbers and vectors, by the texts of both widths.
fn template(name: &str, arguments: usize, wide: &str, narrow: &str) -> String {
    let list = |each: &dyn Fn(usize) -> String| (0..arguments).map(each).collect::<Vec<_>>().join(", ");
    let params = list(&|k| format!("F x{k}"));
    let args = list(&|k| format!("x{k}"));
    format!(
        "template <class F> KS_INLINE F {name}_of({params}) {{\n  if constexpr (is_wide<F>) {{\n{wide}  }} else {{\n{narrow}  }}\n}}\n\
         template <class F> static F {name}_alone({params}) {{ return {name}_of({args}); }}\n\
         template <class F> KS_INLINE F {name}({params}) {{\n  if constexpr (is_vector<F> && !many_calls) return {name}_of({args});\n  else return {name}_alone({args});\n}}\n\n"
    )
}

/// In texts with more calls than this functions of vectors are called: the time that compilers take grows with the
/// square of what they inline into one function.
const INLINED: usize = 48;

/// The C++ text of the functions that are called, each a template over numbers and vectors; `calls` says how often.
/// It stands on the operations in `codegen/runtime/elementary.hpp`.
pub fn cpp(calls: impl Fn(&str) -> usize) -> String {
    let many = names().map(&calls).sum::<usize>() > INLINED;
    let mut out = format!("namespace ks {{\n\nconstexpr bool many_calls = {many};\n\n");
    for entry in ENTRIES.iter().filter(|e| calls(e.name) > 0) {
        out.push_str(&(entry.text)());
        if entry.name == "power" {
            out.push_str(POWER);
        }
    }
    out + "}  // namespace ks\n"
}

/// The names of all functions.
pub fn names() -> impl Iterator<Item = &'static str> {
    ENTRIES.iter().map(|e| e.name)
}

/// As [`power64`] and [`power32`].
const POWER: &str = "\
template <class F, class N> KS_INLINE F power(F x, N n) {
  const auto real = [](N n) {
    if constexpr (is_vector<N>) return __builtin_convertvector(n, F);
    else return (double)n;
  };
  const auto high = real(n >> 32) * 4294967296.0, low = real(n & 0xffffffff), y = high + low, rest = low - (y - high);
  if constexpr (is_wide<F>) return power(x, y, rest, (F)real(n & 1));
  else return power(x, (F)y, (F)((y - (double)(F)y) + rest), (F)real(n & 1));
}

";

/// A whole number as the sum of two numbers, the first of which is the nearest one.
fn parts(n: i64) -> (f64, f64) {
    let (high, low) = ((n >> 32) as f64 * 4294967296.0, (n & 0xffffffff) as f64);
    let sum = high + low;
    (sum, low - (sum - high))
}

/// A 64-bit number to the power of a whole number.
pub fn power64(x: f64, n: i64) -> f64 {
    let (y, rest) = parts(n);
    wide::power(x, y, rest, (n & 1) as f64)
}

/// A 32-bit number to the power of a whole number.
pub fn power32(x: f32, n: i64) -> f32 {
    let (y, rest) = parts(n);
    let near = y as f32;
    narrow::power(x, near, ((y - f64::from(near)) + rest) as f32, (n & 1) as f32)
}
