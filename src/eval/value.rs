//! Values, and how they are written as JSON.

use crate::diag::{Diagnostic, Result};
use crate::ir::{Lit, Scalar, Ty, TyKind};
use serde_json::Value as Json;
use std::sync::Arc;

/// What a term means.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// A number, a truth value or a text.
    Scalar(Lit),
    /// Components.
    Tuple(Arc<[Value]>),
    /// A rectangular tensor.
    Tensor(Arc<Tensor>),
}

/// The sizes of the outer tensor and its elements in row-major order.
#[derive(Clone, PartialEq, Debug)]
pub struct Tensor {
    /// One size an axis.
    pub dims: Vec<usize>,
    /// As many as the product of the sizes, all of one shape.
    pub data: Vec<Value>,
}

impl Value {
    /// A tensor.
    pub fn tensor(dims: Vec<usize>, data: Vec<Value>) -> Value {
        Value::Tensor(Arc::new(Tensor { dims, data }))
    }

    /// A tuple.
    pub fn tuple(parts: Vec<Value>) -> Value {
        Value::Tuple(parts.into())
    }

    /// The literal of a scalar.
    pub fn lit(&self) -> Option<Lit> {
        match self {
            Value::Scalar(l) => Some(*l),
            Value::Tuple(_) | Value::Tensor(_) => None,
        }
    }

    /// The size of an axis, counted through nested tensors; 0 inside an empty one.
    pub fn size(&self, axis: usize) -> Option<usize> {
        match self {
            Value::Tensor(t) => match t.dims.get(axis) {
                Some(n) => Some(*n),
                None => t.data.first().map_or(Some(0), |e| e.size(axis - t.dims.len())),
            },
            Value::Scalar(_) | Value::Tuple(_) => None,
        }
    }

    /// Whether two values of one type have equal sizes throughout.
    pub fn same_shape(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Tuple(a), Value::Tuple(b)) => a.iter().zip(b.iter()).all(|(x, y)| x.same_shape(y)),
            (Value::Tensor(a), Value::Tensor(b)) => {
                a.dims == b.dims && a.data.first().zip(b.data.first()).is_none_or(|(x, y)| x.same_shape(y))
            }
            _ => true,
        }
    }

    /// The value as JSON: tuples and tensors are arrays; floats that JSON lacks are texts.
    pub fn to_json(&self) -> Json {
        match self {
            Value::Scalar(Lit::Bool(b)) => Json::from(*b),
            Value::Scalar(Lit::Int(_, v)) => Json::from(*v),
            Value::Scalar(Lit::Str(s)) => Json::from(*s),
            Value::Scalar(l) => {
                let v = l.as_f64().unwrap_or_default();
                if v.is_finite() { Json::from(v) } else { Json::from(v.to_string()) }
            }
            Value::Tuple(parts) => parts.iter().map(Value::to_json).collect(),
            Value::Tensor(t) => nested(&t.dims, &t.data),
        }
    }

    /// A value of a type from JSON.
    ///
    /// # Errors
    /// Says what was expected and what stands there; ragged arrays.
    pub fn from_json(json: &Json, ty: Ty) -> Result<Value> {
        let bad = || {
            let text = json.to_string();
            let text: String =
                if text.len() > 60 { text.chars().take(57).chain("...".chars()).collect() } else { text };
            Diagnostic::user("the argument does not fit its type").note(format!("expected {ty}, found {text}"))
        };
        match ty.kind() {
            TyKind::Scalar(s) => scalar(json, *s).map(Value::Scalar).ok_or_else(bad),
            TyKind::String => json.as_str().map(|s| Value::Scalar(Lit::Str(crate::ir::lit::intern(s)))).ok_or_else(bad),
            TyKind::Tuple(parts) => match json.as_array() {
                Some(each) if each.len() == parts.len() => {
                    let each = each.iter().zip(parts).map(|(j, t)| Value::from_json(j, *t));
                    Ok(Value::tuple(each.collect::<Result<_>>()?))
                }
                _ => Err(bad()),
            },
            TyKind::Tensor(rank, elem) => {
                let (mut dims, mut flat) = (vec![], vec![json]);
                for _ in 0..*rank {
                    let rows: Vec<&Vec<Json>> =
                        flat.iter().map(|j| j.as_array()).collect::<Option<_>>().ok_or_else(bad)?;
                    let n = rows.first().map_or(0, |r| r.len());
                    if rows.iter().any(|r| r.len() != n) {
                        return Err(ragged());
                    }
                    dims.push(n);
                    flat = rows.into_iter().flatten().collect();
                }
                let data = flat.into_iter().map(|j| Value::from_json(j, *elem)).collect::<Result<Vec<_>>>()?;
                if data.windows(2).any(|w| !w[0].same_shape(&w[1])) {
                    return Err(ragged());
                }
                Ok(Value::tensor(dims, data))
            }
            TyKind::Var(..) => Err(bad()),
        }
    }
}

/// Writes values in a line, texts as they are; gives the number of its characters.
pub fn print(values: &[Value], out: &mut String) -> usize {
    let from = out.len();
    for v in values {
        match v {
            Value::Scalar(Lit::Str(s)) => out.push_str(s),
            v => out.push_str(&v.to_json().to_string()),
        }
    }
    out.push('\n');
    out[from..].chars().count()
}

fn ragged() -> Box<Diagnostic> {
    Diagnostic::user("the argument is ragged").note("expected rows of equal length at every level")
}

fn scalar(json: &Json, s: Scalar) -> Option<Lit> {
    if s == Scalar::Bool {
        return json.as_bool().map(Lit::Bool);
    }
    if s.is_float() {
        let v = match json.as_str() {
            Some(word) => word.parse::<f64>().ok().filter(|v| !v.is_finite())?,
            None => json.as_f64()?,
        };
        return Lit::float(v).cast(s);
    }
    let v = json.as_i64()?;
    (s.wrap(v) == v).then_some(Lit::Int(s, v))
}

fn nested(dims: &[usize], data: &[Value]) -> Json {
    match dims.split_first() {
        None => data.first().map_or(Json::Null, Value::to_json),
        Some((n, rest)) => {
            let chunk = rest.iter().product::<usize>();
            (0..*n).map(|k| nested(rest, &data[(k * chunk).min(data.len())..])).collect()
        }
    }
}
