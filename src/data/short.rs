//! Large values become short texts for a person: of each tensor the first elements and the last.

use crate::eval::{Elements, Value};

/// Values with at most so many numbers are shown whole.
const WHOLE: usize = 200;
/// Of a longer axis, so many elements are shown at its beginning, by how many axes are around it.
const FIRST: [usize; 3] = [12, 6, 3];
/// And so many at its end.
const LAST: usize = 2;

/// A text of a large value with `…` for what is left out, and how many numbers, truth values and texts that are;
/// nothing where the value is short enough to be shown.
pub fn shortened(value: &Value) -> Option<(String, usize)> {
    let all = count(value);
    if all <= WHOLE {
        return None;
    }
    let (mut text, mut shown) = (String::new(), 0);
    write(value, 0, &mut text, &mut shown);
    (shown < all).then_some((text, all - shown))
}

/// How many scalars a value has; the elements of a tensor have equally many.
fn count(value: &Value) -> usize {
    match value {
        Value::Scalar(_) => 1,
        Value::Tuple(parts) => parts.iter().map(count).sum(),
        Value::Tensor(t) => t.first().map_or(0, |v| count(&v)) * t.len(),
    }
}

fn write(value: &Value, depth: usize, out: &mut String, shown: &mut usize) {
    match value {
        Value::Scalar(l) => {
            *shown += 1;
            out.push_str(&Value::Scalar(*l).to_json().to_string());
        }
        Value::Tuple(parts) => {
            let each = parts.iter().enumerate();
            out.push('[');
            each.for_each(|(k, part)| {
                comma(k, out);
                write(part, depth, out, shown);
            });
            out.push(']');
        }
        Value::Tensor(t) => axis((&t.dims, t.elements(), 0), depth, out, shown),
    }
}

/// The elements from a place on, in rows of the sizes.
fn axis((dims, elements, from): (&[usize], &Elements, usize), depth: usize, out: &mut String, shown: &mut usize) {
    let Some((n, rest)) = dims.split_first() else {
        if from < elements.len() {
            write(&elements.get(from), depth, out, shown);
        }
        return;
    };
    let chunk = rest.iter().product::<usize>();
    let first = FIRST[depth.min(FIRST.len() - 1)];
    out.push('[');
    for k in 0..*n {
        if *n > first + LAST + 1 && k >= first && k < *n - LAST {
            if k == first {
                out.push_str(",…");
            }
            continue;
        }
        comma(k, out);
        axis((rest, elements, from + k * chunk), depth + 1, out, shown);
    }
    out.push(']');
}

fn comma(k: usize, out: &mut String) {
    if k > 0 {
        out.push(',');
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that meets what it does not expect should stop there")]

    use super::*;
    use crate::ir::Lit;

    fn vector(n: usize) -> Value {
        Value::tensor(vec![n], (0..n).map(|k| Value::Scalar(Lit::int(k as i64))).collect())
    }

    /// Protects: what is shown and what is left out are all there is, and short values stay whole.
    #[test]
    fn large_values_are_shortened() {
        assert_eq!(shortened(&vector(200)), None);
        let (text, left) = shortened(&vector(1000)).unwrap();
        assert_eq!(text, "[0,1,2,3,4,5,6,7,8,9,10,11,…,998,999]");
        assert_eq!(left, 1000 - 14);
        let matrix = Value::tensor(vec![2, 1000], [vector(1000), vector(1000)].iter().flat_map(elements).collect());
        let (text, left) = shortened(&matrix).unwrap();
        assert_eq!(text, "[[0,1,2,3,4,5,…,998,999],[0,1,2,3,4,5,…,998,999]]");
        assert_eq!(left, 2000 - 16);
        let nested = Value::tensor(vec![300], (0..300).map(|_| vector(2)).collect());
        assert_eq!(shortened(&nested).unwrap().1, 600 - 28);
        let both = Value::tuple(vec![vector(3), vector(1000)]);
        assert!(shortened(&both).unwrap().0.starts_with("[[0,1,2],[0,1,"));
    }

    fn elements(v: &Value) -> Vec<Value> {
        if let Value::Tensor(t) = v { t.iter().collect() } else { vec![] }
    }
}
