//! Literals of all types: what is printed reads back as itself, what has no value in its type is refused.

use crate::common;
use crate::common::{Runner, agree, interpreted, value};
use daedal::eval::Value;
use daedal::ir::{Lit, Program, Scalar, print};
use proptest::prelude::*;

/// The literal that a text is read as, in a definition that gives it.
fn read(ty: &str, text: &str) -> Lit {
    let program = program(&format!("(def f {ty} () {text})"));
    let def = program.named("f")[0];
    program.terms.as_lit(def.term().unwrap()).unwrap_or_else(|| panic!("`{text}` is no literal"))
}

fn program(text: &str) -> Program {
    common::read("literals.ks", text).unwrap_or_else(|d| panic!("{d}"))
}

/// Protects: what is printed of a literal is that literal again, in its type and to the bit.
fn comes_back(lit: Lit) {
    let text = lit.to_string();
    assert_eq!(read(&lit.ty().to_string(), &text), lit, "`{text}`");
    assert_eq!(Lit::number(&text).ok(), Some(lit), "`{text}`");
}

const INTEGERS: [Scalar; 7] = [Scalar::I64, Scalar::I32, Scalar::I16, Scalar::I8, Scalar::U32, Scalar::U16, Scalar::U8];

/// Protects: the ends of all types, and the numbers beside them.
#[test]
fn ends_of_types_come_back() {
    for s in INTEGERS {
        let (lo, hi) = s.range();
        for v in [lo, lo + 1, -1, 0, 1, hi - 1, hi].into_iter().filter(|v| (lo..=hi).contains(v)) {
            comes_back(Lit::Int(s, v));
        }
        for v in [i128::from(lo) - 1, i128::from(hi) + 1] {
            let text = Lit::Int(s, 0).to_string().replacen('0', &v.to_string(), 1);
            let why = Lit::number(&text).unwrap_err();
            assert!(why.what.ends_with(&format!("range of {}", s.name())), "`{text}`: {why:?}");
        }
    }
    let singles = [0.0, -0.0, 1.0, 0.1, 1.0 / 3.0, f32::MAX, f32::MIN, f32::MIN_POSITIVE, f32::EPSILON, 1e-45, 1e16];
    singles.into_iter().for_each(|v| comes_back(Lit::float32(v)));
    let doubles = [0.0, -0.0, 1.0, 0.1, 1.0 / 3.0, f64::MAX, f64::MIN, f64::MIN_POSITIVE, 5e-324, 1e16, 1e300];
    doubles.into_iter().for_each(|v| comes_back(Lit::float(v)));
}

proptest! {
    /// Protects: numbers in between.
    #[test]
    fn any_literal_comes_back(bits in any::<u64>(), which in 0usize..9) {
        match which {
            7 => Some(f32::from_bits(bits as u32)).filter(|v| v.is_finite()).into_iter().for_each(|v| comes_back(Lit::float32(v))),
            8 => Some(f64::from_bits(bits)).filter(|v| v.is_finite()).into_iter().for_each(|v| comes_back(Lit::float(v))),
            k => comes_back(Lit::Int(INTEGERS[k], INTEGERS[k].wrap(bits as i64))),
        }
    }
}

/// Protects: a text is rounded once, at the width of its type.
#[test]
fn singles_are_rounded_once() {
    // Between two singles, just above the middle: as a Float it is the middle, which rounds to the even one.
    let text = "1.00000005960464477540000001";
    assert_eq!(read("Float32", &format!("{text}f32")), Lit::float32(1.0 + f32::EPSILON));
    assert_eq!(text.parse::<f64>().unwrap() as f32, 1.0);
    assert_eq!(read("Float32", "3f32"), Lit::float32(3.0));
}

/// Protects: a cast of a literal stays the operation that it is, and print tells the two apart.
#[test]
fn a_cast_of_a_literal_is_no_literal() {
    for text in ["(cast UInt8 3)", "(cast Float32 0.5)", "(cast Int16 7u8)", "(cast Integer 7u8)"] {
        let program = program(&format!("(def f {} () {text})", &text[6..text.rfind(' ').unwrap()]));
        let def = program.named("f")[0];
        assert!(program.terms.as_lit(def.term().unwrap()).is_none(), "{text}");
        assert!(print::def(&program.terms, def).contains(text), "{}", print::def(&program.terms, def));
    }
}

fn runs(text: &str, want: &str) {
    let program = program(text);
    let def = program.named("f")[0];
    let run: Runner<'_> = interpreted(&program).unwrap();
    let (found, want): (Value, Value) = (run(def, &[]).unwrap(), value(want, def.fun.sig().ret));
    assert!(agree(&found, &want, 0.0), "{text}: {} is not {}", found.to_json(), want.to_json());
    let printed = common::read("printed.ks", &print::program(&program)).unwrap_or_else(|d| panic!("{d}"));
    assert_eq!(print::program(&printed), print::program(&program));
}

/// Protects: tensors, tuples and arithmetic of typed literals, also in what was printed.
#[test]
fn typed_literals_stand_where_values_do() {
    runs("(def f (Vec UInt8) () (Vec_init 1u8 255u8))", "[1, 255]");
    runs("(def f (Vec (Vec Float32)) () (Vec_init (Vec_init 0.5f32 -1e-3f32)))", "[[0.5, -0.0010000000474974513]]");
    runs("(def f (Tensor 2 Int16) () (constVec (tuple 1 2) -5i16))", "[[-5, -5]]");
    runs("(def f (Tuple Int8 UInt32) () (tuple (add 127i8 1i8) (sub 0u32 1u32)))", "[-128, 4294967295]");
    runs("(def f Bool () (eq 3u8 (cast UInt8 259)))", "true");
}
