//! An index of a load at stated sizes becomes a short program that says which indices it runs through where those of the
//! reader run through ranges.
//!
//! As published, boxes are rectangles: the least and the greatest index of each axis. It must not know of schedules.

use super::range::Range;
use crate::ir::{Op, Scalar};
use crate::stage::{Bodies, Body, DimId, Node};
use rustc_hash::FxHashMap;

/// One value of the program, of those before.
#[derive(Clone, PartialEq, Debug)]
enum Value {
    /// A number.
    Number(i64),
    /// The index of a dimension of the reader, by its position.
    Index(usize),
    /// A sum of products.
    Sum(Vec<(usize, i64)>, i64),
    /// The least or the greatest of two.
    Least(usize, usize),
    /// The greatest of two.
    Greatest(usize, usize),
    /// Divided by a positive number, rounded towards minus infinity or towards zero.
    Divided(usize, i64, bool),
    /// What is left of a division by a positive number.
    Left(usize, i64),
    /// One of two.
    Either(usize, usize),
}

/// Which indices of a source a load reads.
#[derive(Clone, PartialEq, Debug)]
pub struct Index {
    values: Vec<Value>,
}

impl Index {
    /// The index of a load in a reader with these dimensions; nothing where data decide it, or what nobody looks into.
    pub fn of(bodies: &Bodies, index: Body, dims: &[DimId]) -> Option<Index> {
        let mut made = Maker { bodies, dims, values: vec![], at: FxHashMap::default() };
        // What a body is made of comes before it.
        for b in bodies.reachable([index]) {
            made.add(b);
        }
        made.known(index)?;
        Some(Index { values: made.values })
    }

    /// The least and the greatest index, where the reader's indices run through ranges.
    pub fn over(&self, ranges: &[Range], scratch: &mut Vec<Range>) -> Range {
        scratch.clear();
        for v in &self.values {
            let known = |k: usize| scratch[k];
            let next = match v {
                Value::Number(n) => Range { lo: *n, hi: *n },
                Value::Index(k) => ranges[*k],
                Value::Sum(terms, offset) => {
                    terms.iter().fold(Range { lo: *offset, hi: *offset }, |sum, (k, c)| sum.plus(known(*k), *c))
                }
                Value::Least(a, b) => known(*a).each(known(*b), i64::min),
                Value::Greatest(a, b) => known(*a).each(known(*b), i64::max),
                Value::Divided(a, n, floor) => known(*a).map(|i| if *floor { i.div_euclid(*n) } else { i / n }),
                Value::Left(a, n) => known(*a).left(*n),
                Value::Either(a, b) => known(*a).with(known(*b)),
            };
            scratch.push(next);
        }
        scratch.last().copied().unwrap_or(Range { lo: 0, hi: 0 })
    }
}

struct Maker<'a> {
    bodies: &'a Bodies,
    dims: &'a [DimId],
    values: Vec<Value>,
    at: FxHashMap<Body, usize>,
}

impl Maker<'_> {
    /// Adds a body, where it can be looked into.
    fn add(&mut self, b: Body) {
        if let Some(value) = self.value(b) {
            self.values.push(value);
            self.at.insert(b, self.values.len() - 1);
        }
    }

    /// What a body is. Conditions decide nothing here: either arm may be the one.
    fn value(&self, b: Body) -> Option<Value> {
        Some(match self.bodies.node(b) {
            Node::Lit(_) => Value::Number(self.bodies.as_int(b)?),
            Node::Index(d) => Value::Index(self.dims.iter().position(|own| own == d)?),
            Node::If([_, x, y]) => Value::Either(self.known(*x)?, self.known(*y)?),
            Node::Cast(_, x) if self.bodies.ty(*x).is_int() && self.bodies.ty(b) == Scalar::I64 => {
                Value::Sum(vec![(self.known(*x)?, 1)], 0)
            }
            Node::Op(op, ty, args) if *ty == Scalar::I64 => self.operation(*op, b, args)?,
            Node::Op(..) | Node::Cast(..) | Node::Load(..) | Node::Acc(..) | Node::Symbol(_) => return None,
        })
    }

    fn known(&self, b: Body) -> Option<usize> {
        self.at.get(&b).copied()
    }

    fn operation(&self, op: Op, b: Body, args: &[Body]) -> Option<Value> {
        let known = |k: usize| self.known(args[k]);
        let positive = || self.bodies.as_int(args[1]).filter(|n| *n > 0);
        Some(match op {
            Op::Add | Op::Sub | Op::Mul | Op::Neg => {
                // One sum in all, so that what cancels out does.
                let form = self.bodies.linear(b)?;
                let terms = form.terms().map(|(atom, c)| (atom != b).then(|| Some((self.known(atom)?, c))).flatten());
                Value::Sum(terms.collect::<Option<_>>()?, form.offset())
            }
            Op::Min => Value::Least(known(0)?, known(1)?),
            Op::Max => Value::Greatest(known(0)?, known(1)?),
            Op::FloorDiv => Value::Divided(known(0)?, positive()?, true),
            Op::Div => Value::Divided(known(0)?, positive()?, false),
            Op::Mod | Op::FloorMod => Value::Left(known(0)?, positive()?),
            Op::Select => Value::Either(known(1)?, known(2)?),
            _ => return None,
        })
    }
}
