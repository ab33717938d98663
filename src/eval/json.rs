//! Values become JSON and lines of text, and JSON values of a type.

use super::value::{Elements, Value};
use crate::diag::{Diagnostic, Result};
use crate::ir::{Lit, Scalar, Ty, TyKind};
use serde_json::Value as Json;

impl Value {
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
            Value::Tensor(t) => nested(&t.dims, t.elements(), 0),
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
                let elements = flat.into_iter().map(|j| Value::from_json(j, *elem)).collect::<Result<Elements>>()?;
                if !elements.same_shapes() {
                    return Err(ragged());
                }
                Ok(Value::tensor(dims, elements))
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

/// A number, as JSON has it or, as a text, as programs have it with its type (`3u8`, `1.5f32`).
fn scalar(json: &Json, s: Scalar) -> Option<Lit> {
    let ends_in_type = !matches!(s, Scalar::F64 | Scalar::I64);
    let typed = json.as_str().filter(|_| ends_in_type).and_then(|word| Lit::number(word).ok());
    if let Some(typed) = typed.filter(|l| l.ty() == Ty::scalar(s)) {
        return Some(typed);
    }
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

/// The elements from a place on, in rows of the sizes.
fn nested(dims: &[usize], elements: &Elements, from: usize) -> Json {
    match dims.split_first() {
        None if from < elements.len() => elements.get(from).to_json(),
        None => Json::Null,
        Some((n, rest)) => {
            let chunk = rest.iter().product::<usize>();
            (0..*n).map(|k| nested(rest, elements, from + k * chunk)).collect()
        }
    }
}
