//! What both modes need of reductions: which element decides, and the product of all others.
//!
//! Products of others come from products of what stands before and after, so that a factor may be 0.

use super::emit::Val;
use super::walk::Walk;
use crate::ir::{Head, Id, Monoid, Op, Scalar, Ty};

impl Walk<'_, '_> {
    /// A body of the source at an index that is given in the text.
    fn body_at(&mut self, body: Id, i: Val) -> Id {
        self.push(i);
        let out = self.translate(body);
        self.env.pop();
        out
    }

    /// `n - 1 - i`.
    fn mirror(&mut self, n: Val, i: Val) -> Id {
        let (n, i, one) = (self.e.now(n), self.e.now(i), self.e.int(1));
        let end = self.e.sub(n, one);
        self.e.op(Op::Sub, [end, i])
    }

    /// The last index with the greatest or least value: `max a b` is `b` where they are equal.
    pub fn last_extreme(&mut self, m: Monoid, n: Val, body: Id) -> Id {
        let outer = self.e.depth();
        let i = self.e.enter(Ty::int());
        let mirrored = self.mirror(n, i);
        let at = self.e.bind(mirrored);
        let key = self.body_at(body, at);
        let key = self.e.close(outer + 1, key);
        self.e.leave(outer);
        let count = self.e.now(n);
        let first = self.e.put(Head::Arg(m), [count, key]);
        let first = self.e.bind(first);
        self.mirror(n, first)
    }

    /// Products of all factors up to each, from the front and from the back.
    pub fn products(&mut self, n: Val, body: Id, s: Scalar) -> (Val, Val) {
        let outer = self.e.depth();
        let i = self.e.enter(Ty::int());
        let factor = self.body_at(body, i);
        self.e.leave(outer);
        let count = self.e.now(n);
        let factors = self.e.put(Head::Build(1), [count, factor]);
        let factors = self.e.bind(factors);
        let mut scan = |backwards: bool| {
            let (count, one) = (self.e.now(n), self.e.float(s, 1.0));
            let outer = self.e.depth();
            let product = self.e.enter(Ty::scalar(s));
            let i = self.e.enter(Ty::int());
            let at = if backwards { self.mirror(n, i) } else { self.e.now(i) };
            let (of, product) = (self.e.now(factors), self.e.now(product));
            let factor = self.e.put(Head::Index(1), [at, of]);
            let next = self.e.op(Op::Mul, [product, factor]);
            self.e.leave(outer);
            let scan = self.e.put(Head::Scan, [one, count, next]);
            self.e.bind(scan)
        };
        (scan(false), scan(true))
    }

    /// The product of all factors but factor `k`.
    pub fn product_of_others(&mut self, n: Val, k: Val, (front, back): (Val, Val), s: Scalar) -> Id {
        let after = self.mirror(n, k);
        let after = self.e.bind(after);
        let before = self.earlier(k, front, s);
        let behind = self.earlier(after, back, s);
        self.e.mul(before, behind)
    }

    /// The element at `k - 1`, or 1.
    fn earlier(&mut self, k: Val, of: Val, s: Scalar) -> Id {
        let (k, zero, one) = (self.e.now(k), self.e.int(0), self.e.int(1));
        let at_start = self.e.op(Op::Eq, [k, zero]);
        let at = self.e.sub(k, one);
        let of = self.e.now(of);
        let element = self.e.put(Head::Index(1), [at, of]);
        let unit = self.e.float(s, 1.0);
        self.e.put(Head::If, [at_start, unit, element])
    }
}
