//! What the interpreter does becomes counts, where they are asked for.
//!
//! Rows of tensors of tensors are passed by reference: they count where their numbers are read and written.

use super::{Dims, Elements, Interpreter, Tally, Value, What};
use crate::ir::Lit;
use std::cell::RefCell;

impl<'a> Interpreter<'a> {
    /// Counts what runs do, all of them together.
    pub fn counted(self) -> Interpreter<'a> {
        Interpreter { tally: Some(RefCell::default()), ..self }
    }

    /// What was done so far; nothing where it is not counted.
    pub fn tally(&self) -> Tally {
        self.tally.as_ref().map(|t| *t.borrow()).unwrap_or_default()
    }

    pub(super) fn count(&self, f: impl FnOnce(&mut Tally)) {
        if let Some(tally) = &self.tally {
            f(&mut tally.borrow_mut());
        }
    }

    /// Something that was done to scalars.
    pub(super) fn count_event(&self, what: What, args: &[Lit], value: Lit) {
        self.count(|t| match what {
            What::Op(op) => t.operation(op, args, value),
            What::Cast(to) => args.iter().for_each(|from| t.conversion(*from, to)),
        });
    }

    /// An element of a tensor is read.
    pub(super) fn read(&self, element: &Value) {
        self.count(|t| t.read += numbers(element).0);
    }

    /// All elements of a tensor are read.
    pub(super) fn read_all(&self, elements: &Elements) {
        self.count(|t| t.read += all_numbers(elements).0);
    }

    /// An element of a tensor is written again.
    pub(super) fn rewritten(&self, element: &Value) {
        self.count(|t| t.written += numbers(element).0);
    }

    /// A new tensor.
    pub(super) fn made(&self, dims: Dims, elements: Elements) -> Value {
        self.count(|t| {
            let (n, bytes) = all_numbers(&elements);
            (t.written, t.bytes) = (t.written + n, t.bytes + bytes);
        });
        Value::tensor(dims, elements)
    }

    /// New tensors inside a value.
    pub(super) fn made_all(&self, v: Value) -> Value {
        self.count(|t| whole(&v, t));
        v
    }
}

/// How many numbers a value holds itself, and their bytes: tensors in it are references.
fn numbers(v: &Value) -> (u64, u64) {
    match v {
        Value::Scalar(l) => (1, l.ty().as_scalar().map_or(8, |s| s.bytes().into())),
        Value::Tuple(parts) => parts.iter().map(numbers).fold((0, 0), plus),
        Value::Tensor(_) => (0, 0),
    }
}

/// The same of all elements of a tensor.
fn all_numbers(elements: &Elements) -> (u64, u64) {
    match (elements.numbers(), elements.components()) {
        (Some(all), _) => (all.len() as u64, all.bytes().len() as u64),
        (None, Some(components)) => components.iter().map(all_numbers).fold((0, 0), plus),
        (None, None) => elements.iter().map(|v| numbers(&v)).fold((0, 0), plus),
    }
}

fn plus(a: (u64, u64), b: (u64, u64)) -> (u64, u64) {
    (a.0 + b.0, a.1 + b.1)
}

fn whole(v: &Value, t: &mut Tally) {
    match v {
        Value::Scalar(_) => {}
        Value::Tuple(parts) => parts.iter().for_each(|p| whole(p, t)),
        Value::Tensor(of) => {
            let (n, bytes) = all_numbers(of.elements());
            (t.written, t.bytes) = (t.written + n, t.bytes + bytes);
            if of.elements().numbers().is_none() {
                of.iter().for_each(|element| whole(&element, t));
            }
        }
    }
}
