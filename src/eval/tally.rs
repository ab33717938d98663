//! What a run did becomes counts: scalar operations by class, elements read and written, bytes allocated.
//!
//! One type for all that runs programs, so that counts compare. It must not know who counts.

use crate::ir::op::Class;
use crate::ir::{Lit, Op, Scalar, Ty};

/// Counts of a run.
///
/// An operation that takes and gives `Integer`s is taken for arithmetic of indices, which has a row of its own and no
/// weight: types alone tell, so that a sum means the same however it is written. Comparisons are none, whatever they
/// compare.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Tally {
    /// Additions, multiplications, comparisons, choices, logic and conversions; a fused multiply-add is two.
    pub simple: u64,
    /// Divisions and roots.
    pub divisions: u64,
    /// Transcendental functions.
    pub transcendental: u64,
    /// Arithmetic of indices.
    pub indices: u64,
    /// Numbers read from tensors.
    pub read: u64,
    /// Numbers written to tensors.
    pub written: u64,
    /// Bytes allocated, freed ones included.
    pub bytes: u64,
    /// Bytes allocated at once at most, where memory is managed.
    pub peak_bytes: Option<u64>,
}

/// The weight of a division or a root.
pub const DIVISION: u64 = 8;
/// The weight of a transcendental function.
pub const TRANSCENDENTAL: u64 = 20;

impl Tally {
    /// The operations by their weights.
    pub fn weighted(&self) -> u64 {
        self.simple + DIVISION * self.divisions + TRANSCENDENTAL * self.transcendental
    }

    /// The elements read and written.
    pub fn moved(&self) -> u64 {
        self.read + self.written
    }

    /// The one number that stands for all: weighted operations plus elements moved.
    pub fn work(&self) -> u64 {
        self.weighted() + self.moved()
    }

    /// An operation of the program.
    pub fn operation(&mut self, op: Op, args: &[Lit], value: Lit) {
        // A choice of integers takes a truth value too.
        let whole = |l: &Lit| [Ty::int(), Ty::bool()].contains(&l.ty());
        if value.ty() == Ty::int() && args.iter().all(whole) && !args.is_empty() {
            self.indices += 1;
            return;
        }
        match op.row().class {
            _ if op == Op::Pi => {}
            Class::Multiply if op == Op::Fma => self.simple += 2,
            Class::Cheap | Class::Multiply => self.simple += 1,
            Class::Divide => self.divisions += 1,
            Class::Transcendental => self.transcendental += 1,
        }
    }

    /// A conversion.
    pub fn conversion(&mut self, from: Lit, to: Scalar) {
        match from.as_int() {
            Some(_) if to == Scalar::I64 => self.indices += 1,
            _ => self.simple += 1,
        }
    }

    /// A choice between two arms, one of which is evaluated.
    pub fn branch(&mut self) {
        self.simple += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Protects: what has which weight, and what is arithmetic of indices.
    #[test]
    fn operations_have_their_classes() {
        let (i, f, b) = (Lit::int(3), Lit::float(1.5), Lit::Bool(true));
        let small = Lit::Int(Scalar::I32, 3);
        let weight = |op: Op, args: &[Lit], value: Lit| {
            let mut tally = Tally::default();
            tally.operation(op, args, value);
            (tally.weighted(), tally.indices)
        };
        assert_eq!(weight(Op::Add, &[i, i], i), (0, 1));
        assert_eq!(weight(Op::Div, &[i, i], i), (0, 1));
        assert_eq!(weight(Op::Select, &[b, i, i], i), (0, 1));
        assert_eq!(weight(Op::Lt, &[i, i], b), (1, 0));
        assert_eq!(weight(Op::Mul, &[small, small], small), (1, 0));
        assert_eq!(weight(Op::ToFloat, &[i], f), (1, 0));
        assert_eq!(weight(Op::Truncate, &[f], i), (1, 0));
        assert_eq!(weight(Op::Sqrt, &[f], f), (DIVISION, 0));
        assert_eq!(weight(Op::Exp, &[f], f), (TRANSCENDENTAL, 0));
        assert_eq!(weight(Op::Fma, &[f, f, f], f), (2, 0));
        assert_eq!(weight(Op::Pi, &[], f), (0, 0));
    }
}
