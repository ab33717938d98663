//! Numbers in row-major order become a value of a type, and back.

use crate::diag::{Diagnostic, Result};
use crate::eval::{MAX_ELEMENTS, Value, product};
use crate::ir::{Lit, Ty};

/// The type inside all tensors.
pub fn element(ty: Ty) -> Ty {
    ty.as_tensor().map_or(ty, |(_, e)| element(e))
}

/// The value of a type with these sizes, of all its axes, and elements.
pub fn nest(ty: Ty, dims: &[usize], data: &[Value]) -> Value {
    let Some((rank, elem)) = ty.as_tensor() else {
        return data.first().cloned().unwrap_or(Value::Scalar(Lit::float(0.0)));
    };
    let (outer, inner) = dims.split_at(rank);
    let chunk: usize = inner.iter().product();
    let count: usize = outer.iter().product();
    let each = (0..count).map(|k| nest(elem, inner, &data[k * chunk..(k + 1) * chunk]));
    Value::tensor(outer.to_vec(), each.collect())
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

/// The numbers of a value.
pub fn numbers(value: &Value) -> Vec<Lit> {
    fn walk(value: &Value, out: &mut Vec<Lit>) {
        match value {
            Value::Scalar(l) => out.push(*l),
            Value::Tuple(parts) => parts.iter().for_each(|p| walk(p, out)),
            Value::Tensor(t) => t.data.iter().for_each(|x| walk(x, out)),
        }
    }
    let mut out = vec![];
    walk(value, &mut out);
    out
}
