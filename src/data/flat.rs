//! Numbers in row-major order become a value of a type, and back.

use crate::diag::{Diagnostic, Result};
use crate::eval::{MAX_ELEMENTS, Numbers, Value, product};
use crate::ir::{Scalar, Ty};

/// The type inside all tensors.
pub fn element(ty: Ty) -> Ty {
    ty.as_tensor().map_or(ty, |(_, e)| element(e))
}

/// The value of a type of tensors with these sizes, of all its axes, and elements; of a type of numbers the one number.
pub fn nest(ty: Ty, dims: &[usize], all: Numbers) -> Value {
    match ty.as_tensor() {
        // Nothing is copied.
        Some((_, elem)) if elem.as_tensor().is_none() => Value::tensor(dims.to_vec(), all.into()),
        _ => part(ty, dims, &all, 0),
    }
}

/// The value whose elements begin at a place.
fn part(ty: Ty, dims: &[usize], all: &Numbers, from: usize) -> Value {
    let Some((rank, elem)) = ty.as_tensor() else { return Value::Scalar(all.get(from)) };
    let (outer, inner) = dims.split_at(rank);
    let (count, chunk): (usize, usize) = (outer.iter().product(), inner.iter().product());
    let elements = match elem.as_tensor() {
        None => all.slice(from..from + count).into(),
        Some(_) => (0..count).map(|k| part(elem, inner, all, from + k * chunk)).collect(),
    };
    Value::tensor(outer.to_vec(), elements)
}

/// Refuses sizes of more elements than a tensor may have.
///
/// # Errors
/// There are more.
pub fn fits(dims: &[usize]) -> Result<()> {
    match product(dims) {
        Some(n) if n <= MAX_ELEMENTS => Ok(()),
        _ => Err(Diagnostic::limit(format!("it has more than {MAX_ELEMENTS} elements, which is the most of a tensor"))),
    }
}

/// The sizes of all axes of a value of a type.
pub fn sizes(value: &Value, ty: Ty) -> Vec<usize> {
    (0..ty.axes()).map(|k| value.size(k).unwrap_or_default()).collect()
}

/// The numbers of a value, in order, all of a type.
///
/// # Errors
/// A bug, where some has another type.
pub fn numbers(value: &Value, of: Scalar) -> Result<Numbers> {
    fn add(value: &Value, out: &mut Numbers) -> bool {
        match value {
            Value::Scalar(l) => out.push(*l),
            Value::Tuple(parts) => parts.iter().all(|p| add(p, out)),
            Value::Tensor(t) => match t.elements().numbers() {
                Some(all) if !all.is_empty() => out.append(all),
                _ => t.iter().all(|v| add(&v, out)),
            },
        }
    }
    let mut out = Numbers::new(of);
    match add(value, &mut out) {
        true => Ok(out),
        false => Err(Diagnostic::bug(format!("a value holds something else than numbers of type {}", of.name()))),
    }
}
