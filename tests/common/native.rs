//! Outcomes of the interpreter and of compiled code are compared to the bit, failures and their places included.

use daedal::codegen::Unit;
use daedal::diag::Result;
use daedal::eval::Value;
use daedal::ir::Lit;
use daedal::run::Toolchain;
use std::path::PathBuf;

/// A compiler of many functions: with little optimization it takes a fraction of the time, and gives the same bits.
pub fn quick(name: &str) -> Toolchain {
    let cache = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    Toolchain { level: 1, ..Toolchain::discover(std::env::var("CXX").ok(), Some(cache)) }
}

/// A unit whose parallel loops start threads however little there is to do.
pub fn eager(unit: Unit) -> Unit {
    let text = unit.text.replace("constexpr double worth = ", "constexpr double worth = 0 * ");
    assert!(text != unit.text || !text.contains("ks::parallel<"), "the bound of threads is not found");
    Unit { text, ..unit }
}

/// Equal bits, but for NaNs.
pub fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Scalar(x), Value::Scalar(y)) => {
            let nan = |l: &Lit| l.as_f64().is_some_and(f64::is_nan);
            x == y || nan(x) && nan(y) && x.ty() == y.ty()
        }
        (Value::Tuple(x), Value::Tuple(y)) => x.len() == y.len() && x.iter().zip(y.iter()).all(|(a, b)| same(a, b)),
        (Value::Tensor(x), Value::Tensor(y)) => {
            x.dims == y.dims && x.len() == y.len() && x.iter().zip(y.iter()).all(|(a, b)| same(&a, &b))
        }
        _ => false,
    }
}

/// Says how two outcomes differ.
pub fn difference(want: &Result<Value>, have: &Result<Value>) -> Option<String> {
    match (want, have) {
        (Ok(a), Ok(b)) if same(a, b) => None,
        (Err(a), Err(b)) if a.message == b.message && a.places == b.places && a.kind == b.kind => None,
        _ => {
            let show = |r: &Result<Value>| match r {
                Ok(v) => v.to_json().to_string(),
                Err(d) => d.render(),
            };
            Some(format!("the interpreter gives\n{}\nand compiled code\n{}", show(want), show(have)))
        }
    }
}
