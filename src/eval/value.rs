//! Values, and tensors in typed storage: numbers in their own width, tuples by component, all else as values.
//!
//! Rows of tensors of tensors are values, which are references: to hand one over copies nothing, and equal rows may be
//! one. It must not know how values are written.

use super::numbers::{Number, Numbers};
use crate::ir::{Lit, Ty, TyKind};
use smallvec::SmallVec;
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

/// Sizes, one an axis: few, which are kept beside the tensor.
pub type Dims = SmallVec<[usize; 2]>;

/// The sizes of the outer tensor and its elements in row-major order.
#[derive(Clone, PartialEq, Debug)]
pub struct Tensor {
    /// One size an axis.
    pub dims: Dims,
    /// As many as the product of the sizes, all of one shape.
    elements: Elements,
}

/// The elements of a tensor in order. Whoever asks gets values, however they are stored.
#[derive(Clone, Debug)]
pub struct Elements(Storage);

/// None, of whatever type comes first.
impl Default for Elements {
    fn default() -> Elements {
        Elements(Storage::Values(vec![]))
    }
}

#[derive(Clone, Debug)]
enum Storage {
    /// Numbers or truth values of one type.
    Numbers(Numbers),
    /// Tuples of one length: the elements of each component, and how many tuples there are.
    Tuples(Box<[Elements]>, usize),
    /// Tensors and texts; what differs in type.
    Values(Vec<Value>),
}

impl Value {
    /// A tensor.
    pub fn tensor(dims: impl Into<Dims>, elements: Elements) -> Value {
        Value::Tensor(Arc::new(Tensor { dims: dims.into(), elements }))
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
                None => t.first().map_or(Some(0), |e| e.size(axis - t.dims.len())),
            },
            Value::Scalar(_) | Value::Tuple(_) => None,
        }
    }

    /// Whether two values of one type have equal sizes throughout.
    pub fn same_shape(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Tuple(a), Value::Tuple(b)) => a.iter().zip(b.iter()).all(|(x, y)| x.same_shape(y)),
            (Value::Tensor(a), Value::Tensor(b)) => {
                a.dims == b.dims && a.first().zip(b.first()).is_none_or(|(x, y)| x.same_shape(&y))
            }
            _ => true,
        }
    }

    /// The zero of the same type and shape.
    #[must_use]
    pub fn zero_like(&self) -> Value {
        match self {
            Value::Scalar(l) => Value::Scalar(zero(*l)),
            Value::Tuple(parts) => Value::Tuple(parts.iter().map(Value::zero_like).collect()),
            Value::Tensor(t) => Value::tensor(t.dims.clone(), t.elements.zeros()),
        }
    }
}

/// The zero of a number's type; a text has none but itself.
fn zero(l: Lit) -> Lit {
    l.ty().as_scalar().map_or(l, Lit::zero)
}

impl Tensor {
    /// The elements.
    pub fn elements(&self) -> &Elements {
        &self.elements
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.elements.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first element.
    pub fn first(&self) -> Option<Value> {
        (!self.is_empty()).then(|| self.get(0))
    }

    /// An element by its place in row-major order, which must be there.
    #[inline]
    pub fn get(&self, k: usize) -> Value {
        self.elements.get(k)
    }

    /// The elements in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Value> + '_ {
        self.elements.iter()
    }
}

impl Elements {
    /// None, with room for so many of a type; nothing where the machine has no room.
    pub fn room(of: Ty, n: usize) -> Option<Elements> {
        Some(Elements(match of.kind() {
            TyKind::Scalar(s) => {
                let mut all = Numbers::new(*s);
                all.reserve(n).ok()?;
                Storage::Numbers(all)
            }
            TyKind::Tuple(parts) => {
                Storage::Tuples(parts.iter().map(|p| Elements::room(*p, n)).collect::<Option<_>>()?, 0)
            }
            TyKind::Tensor(..) | TyKind::String | TyKind::Var(..) => {
                let mut all = vec![];
                all.try_reserve_exact(n).ok()?;
                Storage::Values(all)
            }
        }))
    }

    /// The same element so many times; nothing where the machine has no room.
    pub fn filled(with: &Value, n: usize) -> Option<Elements> {
        if let Value::Tuple(parts) = with {
            let parts = parts.iter().map(|p| Elements::filled(p, n)).collect::<Option<_>>()?;
            return Some(Elements(Storage::Tuples(parts, n)));
        }
        if let Value::Scalar(l) = with
            && let Some(s) = l.ty().as_scalar()
        {
            let mut all = Numbers::new(s);
            all.reserve(n).ok()?;
            if all.resize(n, *l) {
                return Some(Elements(Storage::Numbers(all)));
            }
        }
        let mut all = vec![];
        all.try_reserve_exact(n).ok()?;
        all.resize(n, with.clone());
        Some(Elements(Storage::Values(all)))
    }

    /// One element.
    fn single(v: Value) -> Elements {
        match &v {
            Value::Scalar(l) => {
                let mut all = l.ty().as_scalar().map(Numbers::new);
                match all.take_if(|all| all.push(*l)) {
                    Some(all) => Elements(Storage::Numbers(all)),
                    None => Elements(Storage::Values(vec![v])),
                }
            }
            Value::Tuple(parts) => Elements(Storage::Tuples(parts.iter().cloned().map(Elements::single).collect(), 1)),
            Value::Tensor(_) => Elements(Storage::Values(vec![v])),
        }
    }

    /// The zeros of the same types and shapes.
    fn zeros(&self) -> Elements {
        Elements(match &self.0 {
            Storage::Numbers(all) => {
                let mut zeros = Numbers::new(all.scalar());
                match zeros.resize(all.len(), Lit::zero(all.scalar())) {
                    true => Storage::Numbers(zeros),
                    false => Storage::Values(self.iter().map(|v| v.zero_like()).collect()),
                }
            }
            Storage::Tuples(parts, n) => Storage::Tuples(parts.iter().map(Elements::zeros).collect(), *n),
            Storage::Values(all) => Storage::Values(all.iter().map(Value::zero_like).collect()),
        })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match &self.0 {
            Storage::Numbers(all) => all.len(),
            Storage::Tuples(_, n) => *n,
            Storage::Values(all) => all.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One of them, which must be there.
    #[inline]
    pub fn get(&self, k: usize) -> Value {
        match &self.0 {
            Storage::Numbers(all) => Value::Scalar(all.get(k)),
            Storage::Tuples(parts, _) => Value::Tuple(parts.iter().map(|p| p.get(k)).collect()),
            Storage::Values(all) => all[k].clone(),
        }
    }

    /// All in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Value> + '_ {
        (0..self.len()).map(|k| self.get(k))
    }

    /// Numbers or truth values of one type, where all are such.
    pub fn numbers(&self) -> Option<&Numbers> {
        match &self.0 {
            Storage::Numbers(all) => Some(all),
            Storage::Tuples(..) | Storage::Values(_) => None,
        }
    }

    /// The elements of each component, where all are tuples of one length.
    pub fn components(&self) -> Option<&[Elements]> {
        match &self.0 {
            Storage::Tuples(parts, _) => Some(parts),
            Storage::Numbers(_) | Storage::Values(_) => None,
        }
    }

    /// So many tuples, of the elements of each component; nothing where one has not as many.
    pub fn tuples(components: Vec<Elements>, n: usize) -> Option<Elements> {
        let fit = components.iter().all(|c| c.len() == n);
        fit.then(|| Elements(Storage::Tuples(components.into(), n)))
    }

    /// Whether all have one shape.
    pub fn same_shapes(&self) -> bool {
        match &self.0 {
            Storage::Numbers(_) => true,
            Storage::Tuples(parts, _) => parts.iter().all(Elements::same_shapes),
            Storage::Values(all) => all.windows(2).all(|w| w[0].same_shape(&w[1])),
        }
    }

    /// Makes room for more, where the machine has some; where it has none, that shows when they come.
    fn reserve(&mut self, more: usize) {
        match &mut self.0 {
            Storage::Numbers(all) => drop(all.reserve(more)),
            Storage::Tuples(parts, _) => parts.iter_mut().for_each(|p| p.reserve(more)),
            Storage::Values(all) => drop(all.try_reserve_exact(more)),
        }
    }

    /// Adds one at the end.
    #[inline]
    pub fn push(&mut self, v: Value) {
        if !self.stored(&v) {
            self.push_other(v);
        }
    }

    /// Adds one at the end, if it is what these elements are stored as.
    fn stored(&mut self, v: &Value) -> bool {
        match (&mut self.0, v) {
            (Storage::Numbers(all), Value::Scalar(l)) => all.push(*l),
            (Storage::Tuples(parts, n), Value::Tuple(each)) if parts.len() == each.len() => {
                for (part, v) in parts.iter_mut().zip(each.iter()) {
                    if !part.stored(v) {
                        part.push_other(v.clone());
                    }
                }
                *n += 1;
                true
            }
            _ => false,
        }
    }

    /// Adds one that decides how elements are stored, or is stored as a value.
    fn push_other(&mut self, v: Value) {
        match (&mut self.0, &v) {
            (Storage::Values(all), Value::Tensor(_) | Value::Scalar(Lit::Str(_))) => all.push(v),
            _ => match self.is_empty() {
                true => *self = Elements::single(v),
                false => self.mixed(|all| all.push(v)),
            },
        }
    }

    /// Puts another in the place of one, which must be there.
    #[inline]
    pub fn set(&mut self, k: usize, v: Value) {
        let stored = match (&mut self.0, &v) {
            (Storage::Numbers(all), Value::Scalar(l)) => all.set(k, *l),
            (Storage::Tuples(parts, _), Value::Tuple(each)) if parts.len() == each.len() => {
                parts.iter_mut().zip(each.iter()).for_each(|(p, v)| p.set(k, v.clone()));
                true
            }
            _ => false,
        };
        if !stored {
            self.mixed(|all| all[k] = v);
        }
    }

    /// Does something with the elements as values, which may be of any type from here on.
    fn mixed(&mut self, change: impl FnOnce(&mut Vec<Value>)) {
        let mut all = match std::mem::take(self).0 {
            Storage::Values(all) => all,
            others => Elements(others).iter().collect(),
        };
        change(&mut all);
        self.0 = Storage::Values(all);
    }
}

/// Equal values at equal places, compared by bits, however they are stored.
impl PartialEq for Elements {
    fn eq(&self, other: &Elements) -> bool {
        match (&self.0, &other.0) {
            _ if self.is_empty() || other.is_empty() => self.len() == other.len(),
            (Storage::Numbers(a), Storage::Numbers(b)) => a == b,
            (Storage::Tuples(a, n), Storage::Tuples(b, m)) => n == m && a == b,
            (Storage::Values(a), Storage::Values(b)) => a == b,
            _ => self.iter().eq(other.iter()),
        }
    }
}

impl FromIterator<Value> for Elements {
    fn from_iter<I: IntoIterator<Item = Value>>(each: I) -> Elements {
        let mut each = each.into_iter();
        let Some(first) = each.next() else { return Elements::default() };
        let mut out = Elements::single(first);
        out.reserve(each.size_hint().0);
        each.for_each(|v| out.push(v));
        out
    }
}

impl From<Vec<Value>> for Elements {
    fn from(all: Vec<Value>) -> Elements {
        all.into_iter().collect()
    }
}

impl From<Numbers> for Elements {
    fn from(all: Numbers) -> Elements {
        Elements(Storage::Numbers(all))
    }
}

impl<T: Number> From<Vec<T>> for Elements {
    fn from(all: Vec<T>) -> Elements {
        T::list(all).into()
    }
}
