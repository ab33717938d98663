//! The operations of a point, by class and type of elements.

use super::stage::{Seen, Stage};
use crate::ir::Scalar;
use crate::ir::op::Class;

/// Classes of operations.
const CLASSES: [&str; 5] = ["cheap", "multiply", "divide", "transcendental", "choose"];
/// Types: narrow integers have 8 and 16 bits, truth values among them; integers of 64 bits are those of indices.
const TYPES: [&str; 5] = ["f32", "f64", "narrow", "int32", "int64"];

/// Names, as `divide_f32`: how many of these operations one point takes. Conversions count among choices.
pub fn names() -> impl Iterator<Item = String> {
    CLASSES.iter().flat_map(|c| TYPES.iter().map(move |t| format!("{c}_{t}")))
}

fn class(of: Option<Class>) -> usize {
    match of {
        Some(Class::Cheap) => 0,
        Some(Class::Multiply) => 1,
        Some(Class::Divide) => 2,
        Some(Class::Transcendental) => 3,
        None => 4,
    }
}

fn ty(of: Scalar) -> usize {
    match of {
        Scalar::F32 => 0,
        Scalar::F64 => 1,
        Scalar::I8 | Scalar::U8 | Scalar::I16 | Scalar::U16 | Scalar::Bool => 2,
        Scalar::I32 | Scalar::U32 => 3,
        Scalar::I64 => 4,
    }
}

/// The values, in the order of the names.
pub fn values(seen: &Seen<'_>, stage: &Stage) -> Vec<f64> {
    let mut out = vec![0.0; CLASSES.len() * TYPES.len()];
    for o in seen.facts.operations.iter().filter(|o| o.stage == stage.number) {
        out[class(o.class) * TYPES.len() + ty(o.ty)] += seen.times[o.inside] / stage.points.max(1.0);
    }
    out
}
