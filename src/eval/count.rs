//! What the interpreter does becomes counts, where they are asked for.
//!
//! Rows of tensors of tensors are passed by reference: they count where their numbers are read and written.

use super::{Interpreter, Tally, Tensor, Value, What};
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

    /// Elements of a tensor are read.
    pub(super) fn read(&self, elements: &[Value]) {
        self.count(|t| t.read += elements.iter().map(|v| numbers(v).0).sum::<u64>());
    }

    /// Elements of a tensor are written again.
    pub(super) fn rewritten(&self, elements: &[Value]) {
        self.count(|t| t.written += elements.iter().map(|v| numbers(v).0).sum::<u64>());
    }

    /// A new tensor.
    pub(super) fn made(&self, dims: Vec<usize>, data: Vec<Value>) -> Value {
        self.count(|t| {
            let each = data.iter().map(numbers).fold((0, 0), |(n, bytes), (m, more)| (n + m, bytes + more));
            (t.written, t.bytes) = (t.written + each.0, t.bytes + each.1);
        });
        Value::tensor(dims, data)
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
        Value::Tuple(parts) => parts.iter().map(numbers).fold((0, 0), |(n, b), (m, c)| (n + m, b + c)),
        Value::Tensor(_) => (0, 0),
    }
}

fn whole(v: &Value, t: &mut Tally) {
    match v {
        Value::Scalar(_) => {}
        Value::Tuple(parts) => parts.iter().for_each(|p| whole(p, t)),
        Value::Tensor(of) => {
            let Tensor { data, .. } = &**of;
            for element in data {
                let (n, bytes) = numbers(element);
                (t.written, t.bytes) = (t.written + n, t.bytes + bytes);
                whole(element, t);
            }
        }
    }
}
