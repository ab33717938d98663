//! Sizes become made-up arguments, and arguments become what compiled code takes in: numbers of sizes and scalars.

use crate::diag::{Diagnostic, Result};
use crate::eval::Value;
use crate::ir::evaluate::ranhash;
use crate::ir::{Def, Lit, Scalar, Ty, TyKind};
use indexmap::IndexSet;

/// Sizes for which nobody gives an estimate.
pub const ASSUMED: u64 = 256;
/// Elements of made-up arguments at most.
const MAX_ELEMENTS: u64 = 1 << 26;

/// Arguments of estimated sizes, the same for the same seed: floats between -1 and 1, integers between 0 and 7 that are no
/// larger than any size. Parameters that are integers have the estimates of their names.
///
/// # Errors
/// The arguments would be too large, or are of a type of which nothing can be made up.
pub fn arguments(def: &Def, sizes: &[(String, u64)], seed: u64) -> Result<Vec<Value>> {
    let named = |name: &str| sizes.iter().rev().find(|(n, _)| n == name).map(|(_, n)| *n);
    let mut made = Made { next: 0, seed: seed as i64, below: 8 };
    let axes = |k: usize| -> Vec<u64> {
        let p = &def.params[k];
        (0..p.ty.axes()).map(|a| named(&p.size(a)).unwrap_or(ASSUMED)).collect()
    };
    let all: Vec<Vec<u64>> = (0..def.params.len()).map(axes).collect();
    let elements = |dims: &Vec<u64>| dims.iter().try_fold(1u64, |n, d| n.checked_mul(*d));
    let total = all.iter().map(elements).try_fold(0u64, |n, e| n.checked_add(e?)).filter(|n| *n <= MAX_ELEMENTS);
    if total.is_none() {
        let d = Diagnostic::limit(format!("arguments of these sizes have more than {MAX_ELEMENTS} elements"));
        return Err(match unsaid(def, sizes) {
            Some(which) => d.note(which),
            None => d.note("smaller sizes do for a search; a schedule is right for all sizes"),
        });
    }
    made.below = all.iter().flatten().copied().min().unwrap_or(8).clamp(1, 8) as i64;
    let one = |(k, p): (usize, &crate::ir::Param)| match (p.ty == Ty::int(), named(&p.name)) {
        (true, value) => Ok(Value::Scalar(Lit::int(value.unwrap_or(ASSUMED).try_into().unwrap_or(i64::MAX)))),
        _ => made.value(p.ty, &all[k]),
    };
    def.params.iter().enumerate().map(one).collect()
}

/// Which sizes of parameters nobody gives an estimate for, and how to give one.
fn unsaid(def: &Def, sizes: &[(String, u64)]) -> Option<String> {
    let all = def.params.iter().flat_map(|p| (0..p.ty.axes()).map(|a| p.size(a)));
    let names: IndexSet<String> = all.filter(|n| !sizes.iter().any(|(known, _)| known == n)).collect();
    let first = names.first()?;
    let all = names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
    Some(format!("{ASSUMED} was assumed for {all}, of which nothing was said: say `--size {first}=N`"))
}

struct Made {
    next: i64,
    seed: i64,
    below: i64,
}

impl Made {
    fn value(&mut self, ty: Ty, dims: &[u64]) -> Result<Value> {
        Ok(match ty.kind() {
            TyKind::Scalar(s) => Value::Scalar(self.scalar(*s)),
            TyKind::Tuple(parts) => {
                Value::tuple(parts.iter().map(|p| self.value(*p, &assumed(*p))).collect::<Result<_>>()?)
            }
            TyKind::Tensor(rank, elem) => {
                let (own, inner) = dims.split_at((*rank).min(dims.len()));
                let own: Vec<usize> = own.iter().map(|n| *n as usize).collect();
                let inner = if inner.is_empty() { assumed(*elem) } else { inner.to_vec() };
                let each = (0..own.iter().product::<usize>()).map(|_| self.value(*elem, &inner));
                let each = each.collect::<Result<_>>()?;
                Value::tensor(own, each)
            }
            TyKind::String | TyKind::Var(..) => {
                return Err(
                    Diagnostic::user(format!("no argument of the type {ty} can be made up")).note("give arguments")
                );
            }
        })
    }

    fn scalar(&mut self, ty: Scalar) -> Lit {
        self.next += 1;
        let unit = ranhash(self.seed.wrapping_mul(1_000_003).wrapping_add(self.next));
        match ty {
            Scalar::Bool => Lit::Bool(unit < 0.5),
            _ if ty.is_float() => Lit::of(ty, 2.0 * unit - 1.0),
            _ => Lit::of(ty, (unit * self.below as f64).floor()),
        }
    }
}

fn assumed(ty: Ty) -> Vec<u64> {
    vec![ASSUMED; ty.axes()]
}

/// The sizes and scalars of arguments in the order of the calling form, 0 where it has a buffer.
pub fn incoming(def: &Def, args: &[Value]) -> Vec<f64> {
    let mut out = vec![];
    def.params.iter().zip(args).for_each(|(p, v)| words(p.ty, Some(v), false, &mut out));
    out
}

fn words(ty: Ty, v: Option<&Value>, inside: bool, out: &mut Vec<f64>) {
    match (ty.kind(), v) {
        (TyKind::Tuple(parts), v) => {
            for (k, p) in parts.iter().enumerate() {
                let part = match v {
                    Some(Value::Tuple(each)) => each.get(k),
                    _ => None,
                };
                words(*p, part, inside, out);
            }
        }
        (TyKind::Tensor(rank, elem), v) => {
            let tensor = match v {
                Some(Value::Tensor(t)) => Some(t),
                _ => None,
            };
            out.extend((0..*rank).map(|k| tensor.and_then(|t| t.dims.get(k)).map_or(0.0, |n| *n as f64)));
            words(*elem, tensor.and_then(|t| t.first()).as_ref(), true, out);
        }
        (_, Some(Value::Scalar(l))) if !inside => out.push(l.to_f64().unwrap_or(0.0)),
        _ => out.push(0.0),
    }
}
