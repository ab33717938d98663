//! The values of a Jacobian and of its pattern become its product with a change of the parameters and weights of the
//! result, as both modes give it.

use super::component::Kind;
use super::make::{Jacobian, Layout};
use crate::ad::inner::{inner, plus};
use crate::eval::Value;

/// The sum over all floats of the result of their weights times the derivatives times the changes, one for each parameter
/// that is differentiated by; and the sum of the magnitudes of its terms.
pub fn product(of: &Jacobian, values: (&Value, Option<&Value>), changes: &[Value], weights: &Value) -> (f64, f64) {
    let (matrix, pattern) = values;
    let mut sum = Sum { of, changes, total: (0.0, 0.0) };
    match of.layout {
        Layout::Rows => sum.rows(matrix, pattern, weights, &mut vec![]),
        Layout::Columns => {
            for (k, part) in parts(matrix, changes.len()).into_iter().enumerate() {
                match of.kinds.values().any(|kinds| matches!(kinds[k], Kind::Elements(_))) {
                    true => sum.compressed(k, (&part, pattern), weights),
                    false => sum.columns(&part, &changes[k], weights),
                }
            }
        }
    }
    sum.total
}

struct Sum<'a> {
    of: &'a Jacobian,
    changes: &'a [Value],
    total: (f64, f64),
}

impl Sum<'_> {
    fn add(&mut self, each: (f64, f64)) {
        self.total = plus(self.total, each);
    }

    /// Rows of a part of the result with these weights.
    fn rows(&mut self, matrix: &Value, pattern: Option<&Value>, weights: &Value, path: &mut Vec<usize>) {
        match weights {
            Value::Scalar(w) => self.row(matrix, pattern, w.as_f64().unwrap_or_default(), path),
            Value::Tuple(each) => {
                for (k, w) in each.iter().enumerate() {
                    path.push(k);
                    if let Some(part) = child(matrix, k) {
                        self.rows(&part, pattern.and_then(|p| child(p, k)).as_ref(), w, path);
                    }
                    path.pop();
                }
            }
            Value::Tensor(each) => {
                for (k, w) in each.iter().enumerate() {
                    if let Some(part) = child(matrix, k) {
                        self.rows(&part, pattern.and_then(|p| child(p, k)).as_ref(), &w, path);
                    }
                }
            }
        }
    }

    fn row(&mut self, matrix: &Value, pattern: Option<&Value>, weight: f64, path: &[usize]) {
        let Some(kinds) = self.of.kinds.get(path) else { return };
        let n = kinds.len();
        let places = pattern.map_or_else(Vec::new, |p| parts(p, n));
        for (k, (kind, part)) in kinds.iter().zip(parts(matrix, n)).enumerate() {
            match kind {
                Kind::Nothing => {}
                Kind::Whole => self.add(scaled(weight, inner(&part, &self.changes[k]))),
                Kind::Elements(count) => {
                    let at = places.get(k).map_or_else(Vec::new, |p| parts(p, *count));
                    for (block, at) in parts(&part, *count).iter().zip(&at) {
                        if let Some(change) = element(&self.changes[k], at) {
                            self.add(scaled(weight, inner(block, &change)));
                        }
                    }
                }
            }
        }
    }

    /// The derivatives by a part of a parameter, which changes so.
    fn columns(&mut self, matrix: &Value, change: &Value, weights: &Value) {
        match change {
            Value::Scalar(d) => self.add(scaled(d.as_f64().unwrap_or_default(), inner(matrix, weights))),
            Value::Tuple(each) => each.iter().enumerate().for_each(|(k, d)| {
                child(matrix, k).iter().for_each(|part| self.columns(part, d, weights));
            }),
            Value::Tensor(each) => each.iter().enumerate().for_each(|(k, d)| {
                child(matrix, k).iter().for_each(|part| self.columns(part, &d, weights));
            }),
        }
    }

    /// The derivatives by all elements of a parameter at once.
    fn compressed(&mut self, k: usize, (matrix, pattern): (&Value, Option<&Value>), weights: &Value) {
        let Some(first) = child(&self.changes[k], 0) else { return };
        let mut floats = vec![];
        ways(&first, &mut vec![], &mut floats);
        for way in floats {
            let part = way.iter().try_fold(matrix.clone(), |v, k| child(&v, *k));
            if let Some(part) = part {
                self.along(k, (&part, pattern), weights, &way);
            }
        }
    }

    /// The derivatives of a part of the result by one float of the elements, to which this way leads.
    fn along(&mut self, k: usize, (matrix, pattern): (&Value, Option<&Value>), weights: &Value, way: &[usize]) {
        let count = match weights {
            Value::Scalar(w) => {
                let at = pattern.map(|p| parts(p, self.changes.len())).and_then(|all| all.into_iter().nth(k));
                let element = at.and_then(|at| element(&self.changes[k], &at));
                if let Some(change) = element.and_then(|e| way.iter().try_fold(e, |v, k| child(&v, *k))) {
                    self.add(scaled(w.as_f64().unwrap_or_default(), inner(matrix, &change)));
                }
                return;
            }
            Value::Tuple(each) => each.len(),
            Value::Tensor(each) => each.len(),
        };
        for j in 0..count {
            if let (Some(part), Some(w)) = (child(matrix, j), child(weights, j)) {
                let pattern = pattern.and_then(|p| child(p, j));
                self.along(k, (&part, pattern.as_ref()), &w, way);
            }
        }
    }
}

/// A part of a tuple or an element of a tensor.
fn child(v: &Value, k: usize) -> Option<Value> {
    match v {
        Value::Scalar(_) => None,
        Value::Tuple(parts) => parts.get(k).cloned(),
        Value::Tensor(t) => (k < t.len()).then(|| t.get(k)),
    }
}

/// What was packed into a tuple, if it was more than one.
fn parts(v: &Value, n: usize) -> Vec<Value> {
    match v {
        Value::Tuple(parts) if n != 1 => parts.to_vec(),
        _ => vec![v.clone()],
    }
}

/// The element of a tensor at an index, if it has one.
fn element(tensor: &Value, at: &Value) -> Option<Value> {
    let Value::Tensor(t) = tensor else { return None };
    let at = parts(at, t.dims.len());
    let mut flat = 0;
    for (i, n) in at.iter().zip(t.dims.iter()) {
        let Value::Scalar(i) = i else { return None };
        let i = usize::try_from(i.as_int()?).ok().filter(|i| i < n)?;
        flat = flat * n + i;
    }
    child(tensor, flat)
}

/// The ways to the floats of a tangent.
fn ways(v: &Value, way: &mut Vec<usize>, out: &mut Vec<Vec<usize>>) {
    let mut each = |k: usize, v: &Value| {
        way.push(k);
        ways(v, way, out);
        way.pop();
    };
    match v {
        Value::Scalar(_) => out.push(way.clone()),
        Value::Tuple(parts) => parts.iter().enumerate().for_each(|(k, v)| each(k, v)),
        Value::Tensor(t) => t.iter().enumerate().for_each(|(k, v)| each(k, &v)),
    }
}

fn scaled(by: f64, (sum, magnitude): (f64, f64)) -> (f64, f64) {
    (by * sum, by.abs() * magnitude)
}
