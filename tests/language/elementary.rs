//! Elementary functions: how far they are from the true values, their values at the ends, and that compiled code has
//! the same bits in vectors of all lengths.
//!
//! `cargo test --release --test language elementary:: -- --ignored` compares a hundred times as many numbers.

#[path = "../common/reals.rs"]
mod reals;

use daedal::codegen;
use daedal::ir::elementary::{self, narrow, power32, power64, wide};
use daedal::ir::evaluate::ranhash;
use daedal::run::Toolchain;
use reals::Reals;
use std::fmt::Write;
use std::path::PathBuf;

/// A function in both widths, where numbers are taken from, and how far from the true values it may be.
struct Function {
    name: &'static str,
    wide: fn(f64, f64) -> f64,
    narrow: fn(f32, f32) -> f32,
    ranges: &'static [(f64, f64)],
    bound: f64,
}

macro_rules! functions {
    ($($name:ident($($x:ident),*) $bound:literal $ranges:expr;)*) => {
        [$(functions!(entry $name($($x),*) $bound $ranges)),*]
    };
    (entry $name:ident(x) $bound:literal $ranges:expr) => {
        Function {
            name: stringify!($name),
            wide: |x, _| wide::$name(x),
            narrow: |x, _| narrow::$name(x),
            ranges: &$ranges,
            bound: $bound,
        }
    };
    (entry $name:ident(x, y) $bound:literal $ranges:expr) => {
        Function { name: stringify!($name), wide: wide::$name, narrow: narrow::$name, ranges: &$ranges, bound: $bound }
    };
}

fn functions() -> [Function; 16] {
    functions! {
        exp(x) 1.0 [(-750.0, 720.0), (-1.0, 1.0), (-110.0, 95.0)];
        log(x) 1.0 [(0.0, 4.0), (0.9, 1.1), (0.0, 1e30)];
        tanh(x) 2.5 [(-2.0, 2.0), (-0.6, 0.6), (-25.0, 25.0)];
        sinh(x) 2.5 [(-2.0, 2.0), (-0.6, 0.6), (-720.0, 720.0), (-91.0, 91.0)];
        cosh(x) 1.5 [(-2.0, 2.0), (-720.0, 720.0), (-91.0, 91.0)];
        sin(x) 1.2 [(-3.2, 3.2), (-100.0, 100.0), (-1e5, 1e5), (-1e9, 1e9)];
        cos(x) 1.5 [(-3.2, 3.2), (-100.0, 100.0), (-1e5, 1e5), (-1e9, 1e9)];
        tan(x) 2.5 [(-3.2, 3.2), (-100.0, 100.0), (-1e5, 1e5), (-1e9, 1e9)];
        asin(x) 2.5 [(-1.0, 1.0), (0.45, 0.6), (0.99, 1.0)];
        acos(x) 1.3 [(-1.0, 1.0), (0.45, 0.6), (0.99, 1.0)];
        atan(x) 2.5 [(-1.0, 1.0), (0.4, 0.5), (-10.0, 10.0)];
        atan2(x, y) 2.5 [(-1.0, 1.0), (0.0, 1.0)];
        hypot(x, y) 1.0 [(-1.0, 1.0), (0.0, 1e300), (0.0, 1e30), (-4.0, 4.0)];
        pow(x, y) 1.0 [(0.0, 4.0), (-10.0, 10.0), (0.9, 200.0)];
        erf(x) 1.6 [(-1.0, 1.0), (0.7, 0.8), (-6.0, 6.0)];
        lgamma(x) 2.5 [(0.0, 3.0), (0.9, 1.1), (1.9, 2.6), (0.0, 100.0), (0.0, 1e5)];
    }
}

/// Numbers of a range, the same at each run; some tiny, and some of any size where the range reaches below 0.
fn samples((low, high): (f64, f64), count: usize) -> impl Iterator<Item = (f64, f64)> {
    let one = move |n: i64| match n % 16 {
        0 if low < 0.0 && high > 1.5 => f64::from_bits((ranhash(n) * 1.8e19) as u64),
        1 if low <= 0.0 => (ranhash(n) * high.min(1.0)) * (2.0f64).powi(-((n / 16) % 60) as i32),
        _ => low + ranhash(n) * (high - low),
    };
    (0..count as i64).map(move |n| (one(2 * n), one(2 * n + 2_000_001)))
}

/// Whether arguments are ones that a reference takes.
fn fits(name: &str, x: f64, y: f64) -> bool {
    let sized = x.is_finite() && y.is_finite() && x != 0.0 && y != 0.0;
    sized
        && match name {
            "log" | "lgamma" => x > 0.0,
            "asin" | "acos" => x.abs() <= 1.0,
            "pow" => x > 0.0 || y == y.floor(),
            "sin" | "cos" | "tan" => x.abs() < 1e18,
            "exp" | "sinh" | "cosh" | "tanh" => x.abs() < 1e4,
            "erf" => x.abs() < 1e2 && x.abs() > 1e-100,
            _ => true,
        }
}

/// The greatest distance from true values, and where it is. Numbers of 32 bits are compared with those of 64.
fn worst(f: &Function, count: usize) -> [(f64, f64, f64); 2] {
    let mut reals = Reals::new(320);
    let mut out = [(0.0, 0.0, 0.0); 2];
    let mut note = |k: usize, distance: f64, x: f64, y: f64| {
        if distance > out[k].0 || distance.is_nan() {
            out[k] = (distance, x, y);
        }
    };
    for range in f.ranges {
        for (x, y) in samples(*range, count / f.ranges.len()).filter(|(x, y)| fits(f.name, *x, *y)) {
            let want = reals.value(f.name, x, y);
            note(0, reals.distance((f.wide)(x, y), &want, true), x, y);
        }
        for (x, y) in samples(*range, 4 * count / f.ranges.len()) {
            let (x, y) = (f64::from(x as f32), f64::from(y as f32));
            if fits(f.name, x, y) {
                let want = reals.of((f.wide)(x, y));
                note(1, reals.distance(f64::from((f.narrow)(x as f32, y as f32)), &want, false), x, y);
            }
        }
    }
    out
}

fn compare(count: usize) {
    let all: Vec<Function> = functions().into();
    for f in all {
        let [wide, narrow] = worst(&f, count);
        println!("{:8} 64 bits {:.3} at {:?}, 32 bits {:.3} at {:?}", f.name, wide.0, wide.1, narrow.0, narrow.1);
        for (bits, (distance, x, y)) in [(64, wide), (32, narrow)] {
            assert!(distance <= f.bound, "{} of {bits} bits at {x:?}, {y:?}: {distance} units", f.name);
        }
    }
}

/// Protects: the stated bounds of errors, in both widths.
#[test]
fn errors_stay_under_the_stated_bounds() {
    compare(6000);
}

/// The same for a million numbers each.
#[test]
#[ignore = "takes an hour"]
fn errors_of_a_million_numbers_stay_under_the_stated_bounds() {
    compare(1_000_000);
}

/// Protects: the range of all numbers of 32 bits, in steps.
#[test]
#[ignore = "takes minutes"]
fn errors_of_all_narrow_numbers_stay_under_the_stated_bounds() {
    let reals = Reals::new(128);
    for f in functions().iter().filter(|f| !matches!(f.name, "pow" | "atan2" | "hypot")) {
        for bits in (0..u32::MAX).step_by(211) {
            let x = f32::from_bits(bits);
            if fits(f.name, x.into(), 1.0) {
                let want = reals.of((f.wide)(x.into(), 1.0));
                let distance = reals.distance((f.narrow)(x, 1.0).into(), &want, false);
                assert!(distance <= f.bound, "{} at {x:?}: {distance} units", f.name);
            }
        }
    }
}

/// Protects: large arguments of the sine and its kin, next to multiples of pi / 2 above all.
#[test]
fn large_angles_are_right() {
    let mut reals = Reals::new(1600);
    // The double that is nearest to a multiple of pi / 2, for its size, and others that are near.
    let hard = 6381956970095103.0 * (2.0f64).powi(797);
    let mut all = vec![hard, -hard, 5.0e8, 1e22, f64::MAX, 2.0f64.powi(120), 1e300, 6.0e15, 1e6, 1000000.1, 999999.9];
    let near = |k: i64| k as f64 * std::f64::consts::FRAC_PI_2;
    all.extend((1..400).flat_map(|k| [near(k), near(k * k * k), -near(k * 1001)]));
    all.extend((0..300).map(|n| (ranhash(n) - 0.5) * (2.0f64).powi((n * 3 + 20) as i32)));
    for x in all {
        for f in functions().iter().filter(|f| matches!(f.name, "sin" | "cos" | "tan")) {
            let want = reals.value(f.name, x, 0.0);
            let distance = reals.distance((f.wide)(x, 0.0), &want, true);
            assert!(distance <= f.bound, "{} at {x:e}: {distance} units", f.name);
            let x = x as f32;
            if x.is_finite() {
                let want = reals.value(f.name, x.into(), 0.0);
                let distance = reals.distance((f.narrow)(x, 0.0).into(), &want, false);
                assert!(distance <= f.bound, "{} of 32 bits at {x:e}: {distance} units", f.name);
            }
        }
    }
}

/// Protects: what the ranges of values are that the optimizer counts on.
#[test]
fn values_stay_in_their_ranges() {
    for n in 0..200_000i64 {
        let middle = (n % 2000) as f64 * std::f64::consts::FRAC_PI_2;
        let x = middle + (ranhash(n) - 0.5) * (2.0f64).powi(-(n % 40) as i32);
        for y in [wide::sin(x), wide::cos(x), wide::tanh(x), wide::erf(x)] {
            assert!(y.abs() <= 1.0, "{x:?}: {y:?}");
        }
        let x = x as f32;
        for y in [narrow::sin(x), narrow::cos(x), narrow::tanh(x), narrow::erf(x)] {
            assert!(y.abs() <= 1.0, "{x:?}: {y:?}");
        }
        assert!(wide::cosh(f64::from(x)) >= 1.0 && narrow::cosh(x) >= 1.0, "{x:?}");
    }
}

/// Values at zeros, infinities, ends of domains and where results end; NaN for none.
#[rustfmt::skip]
const ENDS: &[(&str, f64, f64, f64)] = {
    use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};
    const I: f64 = f64::INFINITY;
    const N: f64 = f64::NAN;
    &[
        ("exp", 0.0, 0.0, 1.0), ("exp", -0.0, 0.0, 1.0), ("exp", I, 0.0, I), ("exp", -I, 0.0, 0.0), ("exp", N, 0.0, N),
        ("exp", 1e4, 0.0, I), ("exp", -1e4, 0.0, 0.0),
        ("log", 1.0, 0.0, 0.0), ("log", 0.0, 0.0, -I), ("log", -0.0, 0.0, -I), ("log", I, 0.0, I), ("log", -1.0, 0.0, N),
        ("log", -I, 0.0, N), ("log", N, 0.0, N),
        ("tanh", 0.0, 0.0, 0.0), ("tanh", -0.0, 0.0, -0.0), ("tanh", I, 0.0, 1.0), ("tanh", -I, 0.0, -1.0), ("tanh", N, 0.0, N),
        ("sinh", 0.0, 0.0, 0.0), ("sinh", -0.0, 0.0, -0.0), ("sinh", I, 0.0, I), ("sinh", -I, 0.0, -I), ("sinh", N, 0.0, N),
        ("sinh", 1e4, 0.0, I), ("sinh", -1e4, 0.0, -I),
        ("cosh", 0.0, 0.0, 1.0), ("cosh", I, 0.0, I), ("cosh", -I, 0.0, I), ("cosh", -1e4, 0.0, I), ("cosh", N, 0.0, N),
        ("sin", 0.0, 0.0, 0.0), ("sin", -0.0, 0.0, -0.0), ("sin", I, 0.0, N), ("sin", -I, 0.0, N), ("sin", N, 0.0, N),
        ("cos", 0.0, 0.0, 1.0), ("cos", -0.0, 0.0, 1.0), ("cos", I, 0.0, N), ("cos", N, 0.0, N),
        ("tan", 0.0, 0.0, 0.0), ("tan", -0.0, 0.0, -0.0), ("tan", I, 0.0, N), ("tan", N, 0.0, N),
        ("asin", 0.0, 0.0, 0.0), ("asin", -0.0, 0.0, -0.0), ("asin", 1.5, 0.0, N), ("asin", -I, 0.0, N), ("asin", N, 0.0, N),
        ("asin", 1.0, 0.0, FRAC_PI_2), ("asin", -1.0, 0.0, -FRAC_PI_2),
        ("acos", 1.0, 0.0, 0.0), ("acos", -1.0, 0.0, PI), ("acos", 0.0, 0.0, FRAC_PI_2), ("acos", 1.5, 0.0, N), ("acos", N, 0.0, N),
        ("atan", 0.0, 0.0, 0.0), ("atan", -0.0, 0.0, -0.0), ("atan", I, 0.0, FRAC_PI_2), ("atan", -I, 0.0, -FRAC_PI_2),
        ("atan", N, 0.0, N), ("atan", 1.0, 0.0, FRAC_PI_4),
        ("atan2", 0.0, 1.0, 0.0), ("atan2", -0.0, 1.0, -0.0), ("atan2", 0.0, -1.0, PI), ("atan2", -0.0, -1.0, -PI),
        ("atan2", 0.0, 0.0, 0.0), ("atan2", -0.0, 0.0, -0.0), ("atan2", 0.0, -0.0, PI), ("atan2", -0.0, -0.0, -PI),
        ("atan2", 1.0, 0.0, FRAC_PI_2), ("atan2", -1.0, -0.0, -FRAC_PI_2), ("atan2", I, 1.0, FRAC_PI_2),
        ("atan2", I, I, FRAC_PI_4), ("atan2", -I, I, -FRAC_PI_4), ("atan2", I, -I, 3.0 * FRAC_PI_4),
        ("atan2", 1.0, I, 0.0), ("atan2", -1.0, I, -0.0), ("atan2", 1.0, -I, PI), ("atan2", -1.0, -I, -PI),
        ("atan2", N, I, N), ("atan2", I, N, N), ("atan2", N, 0.0, N), ("atan2", 0.0, N, N),
        ("hypot", 0.0, 0.0, 0.0), ("hypot", -0.0, -0.0, 0.0), ("hypot", I, N, I), ("hypot", N, -I, I), ("hypot", N, 1.0, N),
        ("hypot", 1.0, N, N), ("hypot", 3.0, -4.0, 5.0), ("hypot", -I, 2.0, I), ("hypot", 0.0, -2.5, 2.5), ("hypot", 1.5e308, 1.5e308, I),
        ("pow", 0.0, 3.0, 0.0), ("pow", -0.0, 3.0, -0.0), ("pow", -0.0, 2.0, 0.0), ("pow", 0.0, -3.0, I), ("pow", -0.0, -3.0, -I),
        ("pow", -0.0, -2.0, I), ("pow", 0.0, 0.5, 0.0), ("pow", -0.0, 0.5, 0.0), ("pow", -0.0, -0.5, I), ("pow", 0.0, I, 0.0),
        ("pow", 0.0, -I, I), ("pow", N, 0.0, 1.0), ("pow", I, 0.0, 1.0), ("pow", -3.0, -0.0, 1.0), ("pow", 1.0, N, 1.0),
        ("pow", 1.0, -I, 1.0), ("pow", -1.0, I, 1.0), ("pow", -1.0, -I, 1.0), ("pow", -2.0, 0.5, N), ("pow", -I, 0.5, I),
        ("pow", 0.5, -I, I), ("pow", 2.0, -I, 0.0), ("pow", 0.5, I, 0.0), ("pow", -2.0, I, I), ("pow", -I, -3.0, -0.0),
        ("pow", -I, -2.0, 0.0), ("pow", -I, 3.0, -I), ("pow", -I, 4.0, I), ("pow", I, -1.0, 0.0), ("pow", I, 1.0, I),
        ("pow", N, 1.0, N), ("pow", 2.0, N, N), ("pow", N, I, N), ("pow", -2.0, 3.0, -8.0), ("pow", -2.0, -3.0, -0.125),
        ("pow", -1.0, 1e300, 1.0), ("pow", 10.0, 1e5, I), ("pow", 10.0, -1e5, 0.0), ("pow", -10.0, 10001.0, -I),
        ("pow", -10.0, -10001.0, -0.0),
        ("erf", 0.0, 0.0, 0.0), ("erf", -0.0, 0.0, -0.0), ("erf", I, 0.0, 1.0), ("erf", -I, 0.0, -1.0), ("erf", N, 0.0, N),
        ("erf", 10.0, 0.0, 1.0),
        ("lgamma", 1.0, 0.0, 0.0), ("lgamma", 2.0, 0.0, 0.0), ("lgamma", 0.0, 0.0, I), ("lgamma", -0.0, 0.0, I),
        ("lgamma", -1.0, 0.0, I), ("lgamma", -7.0, 0.0, I), ("lgamma", -1e300, 0.0, I), ("lgamma", I, 0.0, I),
        ("lgamma", -I, 0.0, I), ("lgamma", N, 0.0, N), ("lgamma", 1e308, 0.0, I),
    ]
};

/// Protects: the values of C Annex F, with the signs of zeros.
#[test]
fn values_at_the_ends_are_exact() {
    let all = functions();
    for (name, x, y, want) in ENDS {
        let f = all.iter().find(|f| f.name == *name).unwrap();
        let got = (f.wide)(*x, *y);
        assert!(same(got, *want), "{name} of {x:?}, {y:?}: {got:?}, not {want:?}");
        let (got, want) = (f64::from((f.narrow)(*x as f32, *y as f32)), f64::from(*want as f32));
        assert!(same(got, want), "{name} of 32 bits of {x:?}, {y:?}: {got:?}, not {want:?}");
    }
    // Where exponentials end, and what is too small for normal numbers.
    assert!(wide::exp(709.782712893384).is_finite() && wide::exp(709.7827128933841).is_infinite());
    assert_eq!((wide::exp(-745.1332191019411), wide::exp(-745.1332191019412)), (5e-324, 0.0));
    for small in [-746.1, -1e9, -1e300, f64::NEG_INFINITY] {
        assert!(same(wide::exp(small), 0.0) && narrow::exp(small as f32).to_bits() == 0);
    }
    assert!(narrow::exp(-103.97).to_bits() == 1 && narrow::exp(-103.98).to_bits() == 0);
    assert!(narrow::exp(88.72283).is_finite() && narrow::exp(88.72284).is_infinite());
    assert!(wide::sinh(710.4758600739439).is_finite() && wide::sinh(710.475860073944).is_infinite());
    for tiny in [5e-324, -5e-324, 2e-310, f64::MIN_POSITIVE] {
        let kept = [wide::sin, wide::tan, wide::asin, wide::atan, wide::sinh, wide::tanh].map(|f| f(tiny));
        assert!(kept.iter().all(|v| same(*v, tiny)), "{tiny:e}: {kept:?}");
        assert_eq!(wide::atan2(tiny, 1.0), tiny);
    }
    assert_eq!(wide::log(5e-324), -744.4400719213812);
    assert_eq!(wide::atan2(1e308, 1.2e308), wide::atan2(1.0, 1.2));
}

fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

/// Protects: powers that floats hold are exact, and whole exponents keep their last bit whatever their size.
#[test]
fn whole_powers_are_exact() {
    for base in 2..40i64 {
        let mut exact = 1i64;
        for n in 0..60 {
            let want = exact as f64;
            assert_eq!((wide::pow(base as f64, n as f64), power64(-base as f64, n).abs()), (want, want), "{base}^{n}");
            assert_eq!(power64(-base as f64, n) < 0.0, n % 2 == 1);
            if exact < 1 << 24 {
                let narrow = [narrow::pow(base as f32, n as f32), power32(base as f32, n)];
                assert_eq!(narrow, [want as f32; 2], "{base}^{n}");
            }
            exact = match exact.checked_mul(base) {
                Some(next) if next < 1 << 53 => next,
                _ => break,
            };
        }
    }
    assert_eq!((power64(-1.0, i64::MAX), power64(-1.0, i64::MIN), power64(-1.0, (1 << 53) + 1)), (-1.0, 1.0, -1.0));
    assert_eq!((power32(-1.0, i64::MAX), power32(-1.0, 16777217), power32(f32::NAN, 0)), (-1.0, -1.0, 1.0));
    assert_eq!(
        (power64(2.0, -1074), power64(2.0, 1023), power64(0.0, -1)),
        (5e-324, (2.0f64).powi(1023), f64::INFINITY)
    );
}

/// A function of compiled code: from so many numbers, of two arguments, to as many.
type Compiled<T> = unsafe extern "C" fn(*const T, *const T, *mut T, i64);

/// Loops over all functions, with numbers one by one and with vectors.
fn driver(names: &[&str]) -> String {
    let mut out = codegen::runtime(|_| 1);
    let widths = [("double", 8, vec![8, 16, 32, 64]), ("float", 4, vec![4, 16, 32, 64])];
    for (ty, size, lengths) in widths {
        for bytes in lengths {
            let vector = if bytes == size { ty.to_string() } else { format!("{ty}_{bytes}") };
            if bytes != size {
                let _ = writeln!(out, "typedef {ty} {vector} __attribute__((vector_size({bytes})));");
            }
            for name in names {
                let two = matches!(*name, "pow" | "atan2" | "hypot");
                let call = if two { "a, b" } else { "a" };
                let _ = writeln!(
                    out,
                    "extern \"C\" __attribute__((visibility(\"default\"))) void {name}_{ty}_{bytes}\
                     (const {ty}* x, const {ty}* y, {ty}* to, int64_t n) {{\n  \
                     for (int64_t k = 0; k + {lanes} <= n; k += {lanes}) {{\n    {vector} a, b, c;\n    \
                     memcpy(&a, x + k, sizeof a);\n    memcpy(&b, y + k, sizeof b);\n    \
                     c = ks::{name}({call});\n    memcpy(to + k, &c, sizeof c);\n  }}\n}}",
                    lanes = bytes / size
                );
            }
        }
    }
    out
}

/// Protects: one definition gives the same bits to the interpreter and to compiled code, whatever the vectors are and
/// whatever stands in other lanes.
#[test]
fn compiled_code_has_the_same_bits_in_vectors_of_all_lengths() {
    let all = functions();
    let names: Vec<&str> = all.iter().map(|f| f.name).collect();
    assert!(elementary::names().all(|n| n == "power" || names.contains(&n)), "a function is not compared");
    let cache = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("elementary");
    let mut tools = Toolchain::discover(std::env::var("CXX").ok(), Some(cache));
    let plain = if cfg!(target_arch = "x86_64") { " -mno-avx512f" } else { "" };
    for (level, flag) in [(3, ""), (1, plain)] {
        tools.level = level;
        tools.compiler.push_str(flag);
        let object = tools.object(&driver(&names)).unwrap_or_else(|d| panic!("{}", d.render()));
        // SAFETY: the object was made from the text above, and holds these functions.
        let library = unsafe { libloading::Library::new(object).unwrap() };
        for f in &all {
            let mut x: Vec<(f64, f64)> = f.ranges.iter().flat_map(|r| samples(*r, 3000)).collect();
            x.extend(ENDS.iter().filter(|(name, ..)| *name == f.name).map(|(_, x, y, _)| (*x, *y)));
            x.extend(samples((-4.0, 4.0), 500));
            x.extend([(f64::NAN, 1.0); 64]);
            agree::<f64>(&library, f.name, "double", &[8, 16, 32, 64], &x, &|x, y| (f.wide)(x, y));
            let x: Vec<(f32, f32)> = x.iter().map(|(x, y)| (*x as f32, *y as f32)).collect();
            agree::<f32>(&library, f.name, "float", &[4, 16, 32, 64], &x, &|x, y| (f.narrow)(x, y));
        }
    }
}

fn agree<T: Copy + Into<f64> + Default>(
    library: &libloading::Library,
    name: &str,
    ty: &str,
    lengths: &[usize],
    args: &[(T, T)],
    f: &dyn Fn(T, T) -> T,
) {
    let count = args.len() / 16 * 16;
    let (x, y): (Vec<T>, Vec<T>) = args[..count].iter().copied().unzip();
    for bytes in lengths {
        let symbol = format!("{name}_{ty}_{bytes}");
        // SAFETY: the driver defines it with this type.
        let run: libloading::Symbol<'_, Compiled<T>> = unsafe { library.get(symbol.as_bytes()).unwrap() };
        let mut out = vec![T::default(); count];
        // SAFETY: all three hold so many numbers.
        unsafe { run(x.as_ptr(), y.as_ptr(), out.as_mut_ptr(), count as i64) };
        for (k, got) in out.iter().enumerate() {
            let (got, want): (f64, f64) = ((*got).into(), f(x[k], y[k]).into());
            assert!(same(got, want), "{symbol} of {:?}, {:?}: {got:?}, not {want:?}", x[k].into(), y[k].into());
        }
    }
}
