//! What must hold so that a graph is of use: conditions of the start, and checks that guard what stages evaluate.
//!
//! One that is proved for all indices goes, one that sizes decide is made once at the start. A condition of the start may
//! ask for more than is needed, since the reference runs where it does not hold.

use super::body::{Body, DimId, Node, Source};
use super::bounds::{Ranges, at_most, greatest};
use super::extract::{Extract, SMALL, Staged};
use super::guards::{Guards, Pending};
use super::value::Val;
use crate::ir::{Id, Lit, Op, Scalar};
use rustc_hash::FxHashSet;

/// Tensors have fewer elements than this: as many as the interpreter can hold.
const MAX_ELEMENTS: i64 = crate::eval::MAX_ELEMENTS as i64 + 1;

impl Extract<'_> {
    /// A condition of the start: an integer is not negative and below a bound.
    pub(super) fn below(&mut self, n: Body, bound: i64) {
        let (zero, bound) = (self.g.bodies.int(0), self.g.bodies.int(bound));
        let bodies = &mut self.g.bodies;
        let low =
            if bodies.is_nonnegative(n) { bodies.bool(true) } else { bodies.op(Op::Gte, Scalar::Bool, &[n, zero]) };
        let high = bodies.op(Op::Lt, Scalar::Bool, &[n, bound]);
        for c in [low, high] {
            self.at_entry(c);
        }
        self.g.bodies.assume_size(n);
    }

    /// The size of an axis, counted through nested tensors. What stands inside of a tensor that may be empty is asked of
    /// others alone: sizes are simpler so, and little is lost.
    pub(super) fn size_of(&mut self, v: &Val, axis: usize) -> Option<Body> {
        let mut outer = v;
        let mut left = axis;
        while let Val::Tensor { sizes, elem, .. } = outer {
            let Some(inner) = left.checked_sub(sizes.len()) else { break };
            sizes.iter().for_each(|n| self.not_empty(*n));
            (outer, left) = (elem, inner);
        }
        v.size(&mut self.g.bodies, axis)
    }

    /// A condition of the start: a size that comes in is at least 1.
    fn not_empty(&mut self, n: Body) {
        if matches!(self.g.bodies.node(n), Node::Symbol(_)) && self.g.bodies.is_size(n) {
            let zero = self.g.bodies.int(0);
            let some = self.g.bodies.test(Op::Gt, n, zero);
            self.at_entry(some);
            self.g.bodies.assume_positive(n);
        }
    }

    /// A condition as the start decides it: what holds, or does not, of all sizes but 0 is left to the reference there.
    pub(super) fn decided(&mut self, c: Body) -> Option<bool> {
        if let Some((n, holds)) = self.g.bodies.decided_by_a_size(c) {
            self.not_empty(n);
            return Some(holds);
        }
        self.g.bodies.as_bool(c)
    }

    /// A condition of the start, after the one that says that it has a value.
    pub(super) fn at_entry(&mut self, c: Body) {
        let has_value = self.g.bodies.has_value(c);
        for c in [has_value, c] {
            if self.g.bodies.as_bool(c) != Some(true) && !self.g.entry.contains(&c) {
                self.g.entry.push(c);
            }
        }
    }

    /// That two sizes are one: known, or asked at the start.
    pub(super) fn one_size(&mut self, id: Id, n: Body, m: Body, why: &str) -> Staged<()> {
        let same = self.g.bodies.test(Op::Eq, n, m);
        if self.g.bodies.as_bool(same) == Some(false) || !self.g.bodies.is_fixed(same) {
            return self.refuse(id, why);
        }
        self.at_entry(same);
        Ok(())
    }

    /// What must hold here, where the path leads here, before what it guards is evaluated.
    pub(super) fn check(&mut self, c: Body, guards: Guards) {
        let mut c = c;
        if self.g.bodies.as_bool(c) == Some(true) {
            return;
        }
        let decided = self.path.is_empty() && self.g.bodies.is_fixed(c);
        if decided && self.g.bodies.as_bool(c).is_none() {
            return self.at_entry(c);
        }
        let (yes, path) = (self.g.bodies.bool(true), self.path.clone());
        for (p, holds) in path.into_iter().rev() {
            c = if holds { self.g.bodies.cond(p, c, yes) } else { self.g.bodies.cond(p, yes, c) };
        }
        self.pending.push(Pending { check: c, guards });
    }

    /// The checks that were left pending since there were so many of them, each once.
    pub(super) fn taken(&mut self, from: usize) -> Vec<Body> {
        let all: indexmap::IndexSet<Body> = self.pending.drain(from..).map(|p| p.check).collect();
        all.into_iter().collect()
    }

    /// The pending checks that guard something in some bodies, or in each other, in their order.
    pub(super) fn guarding(&self, bodies: &[Body]) -> Vec<Body> {
        if self.pending.is_empty() {
            return vec![];
        }
        let mut read: FxHashSet<Source> = self.g.reads(bodies.iter().copied()).into_iter().collect();
        let mut made: FxHashSet<Body> = self.g.bodies.reachable(bodies.iter().copied()).into_iter().collect();
        let mut out = vec![];
        // What a check is made of is guarded by those before it.
        for p in self.pending.iter().rev() {
            let guards = match &p.guards {
                Guards::Reads(of) => of.iter().any(|from| read.contains(from)),
                Guards::Body(b) => made.contains(b),
                Guards::All => true,
            };
            if guards && !out.contains(&p.check) {
                out.push(p.check);
                read.extend(self.g.reads([p.check]));
                made.extend(self.g.bodies.reachable([p.check]));
            }
        }
        out.reverse();
        out
    }

    /// That an index is in range where an element is read: proved, or asked of the sizes at the start, or of each index.
    pub(super) fn in_range(&mut self, i: Body, n: Body, elem: &[Body]) {
        if let Node::If([c, a, b]) = *self.g.bodies.node(i) {
            self.arm(c, true, |x| x.in_range(a, n, elem));
            self.arm(c, false, |x| x.in_range(b, n, elem));
            return;
        }
        let (zero, one) = (self.g.bodies.int(0), self.g.bodies.int(1));
        let known = self.ranges.bounds(&mut self.g.bodies, i);
        let bodies = &mut self.g.bodies;
        let small = bodies.is_small(n);
        let mut low = bodies.op(Op::Gte, Scalar::Bool, &[i, zero]);
        let mut high = bodies.op(Op::Lt, Scalar::Bool, &[i, n]);
        if let Some(known) = known.filter(|_| small) {
            let end = self.g.bodies.ints(Op::Add, known.hi, one);
            low = self.in_all(low, zero, known.lo, i, elem);
            high = self.in_all(high, end, n, i, elem);
        }
        // What an outer index says of an inner one is lost once the outer may be anything.
        for from in (1..self.ranges.len()).rev() {
            let yes = self.g.bodies.bool(true);
            if (low, high) == (yes, yes) {
                break;
            }
            let Some(known) = self.ranges.bounds_from(&mut self.g.bodies, i, from).filter(|_| small) else { continue };
            let end = self.g.bodies.ints(Op::Add, known.hi, one);
            low = if at_most(&self.g.bodies, zero, known.lo) { yes } else { low };
            high = if at_most(&self.g.bodies, end, n) { yes } else { high };
        }
        let guards = Guards::Reads(self.g.reads(elem.iter().copied()));
        self.check(low, guards.clone());
        self.check(high, guards);
    }

    /// Whether a condition holds at all indices of the loops that are open.
    pub(super) fn proved(&mut self, c: Body) -> bool {
        if let Some(known) = self.g.bodies.as_bool(c) {
            return known;
        }
        match self.g.bodies.node(c).clone() {
            Node::If([p, a, b]) => self.arm(p, true, |x| x.proved(a)) && self.arm(p, false, |x| x.proved(b)),
            // A loop that runs has iterations.
            Node::Op(Op::Ne, _, args) if self.g.bodies.as_int(args[1]) == Some(0) => {
                self.loops.iter().any(|d| self.g.dim(*d).extent == args[0])
            }
            _ => {
                // No extent of a loop that runs is below 1.
                let extents: Vec<Body> = self.loops.iter().map(|d| self.g.dim(*d).extent).collect();
                let one = self.g.bodies.int(1);
                let least: Vec<Body> = extents.into_iter().map(|n| self.g.bodies.ints(Op::Sub, n, one)).collect();
                self.ranges.hold(&mut self.g.bodies, c, &least)
            }
        }
    }

    /// What says that a check of an index holds in all iterations around: nothing where that is proved, sizes where they
    /// decide it, else the check itself.
    fn in_all(&mut self, check: Body, low: Body, high: Body, i: Body, elem: &[Body]) -> Body {
        if at_most(&self.g.bodies, low, high) {
            return self.g.bodies.bool(true);
        }
        let all = self.g.bodies.test(Op::Lte, low, high);
        if self.is_coarse(i)
            || !self.path_is_apart(i)
            || !self.g.bodies.is_fixed(all)
            || self.g.bodies.as_bool(all).is_some()
        {
            return check;
        }
        self.where_run(all, i, elem)
    }

    /// Whether the bounds of an index may be far from it: those of a condition are of both arms, also where only one of them
    /// is taken, those of a quotient by a size of which nothing is known are those of what is divided, and data need
    /// not reach the ends of a clamp.
    fn is_coarse(&self, i: Body) -> bool {
        self.g.bodies.reachable([i]).into_iter().any(|b| match self.g.bodies.node(b) {
            Node::If(_) | Node::Op(Op::Truncate, ..) => true,
            Node::Cast(_, of) => self.g.bodies.ty(*of).is_float(),
            Node::Op(op, _, args) => op.divides() && !self.g.bodies.is_positive_number(args[1]),
            _ => false,
        })
    }

    /// Whether no arm around asks anything of the loops of an index: it is then likely to be in range wherever it is.
    fn path_is_apart(&self, i: Body) -> bool {
        let own = self.g.bodies.dims(i);
        !own.is_empty() && self.path.iter().all(|(c, _)| !self.g.bodies.dims(*c).iter().any(|d| own.contains(d)))
            || self.path.is_empty()
    }

    /// What sizes say of an index need not hold where there are no iterations: of those loops that all that is read names,
    /// since what does not name a loop may be evaluated outside of it.
    fn where_run(&mut self, c: Body, i: Body, elem: &[Body]) -> Body {
        let (zero, yes) = (self.g.bodies.int(0), self.g.bodies.bool(true));
        let loads: Vec<Body> = self.g.bodies.reachable(elem.iter().copied());
        let loads = loads.into_iter().filter(|b| matches!(self.g.bodies.node(*b), Node::Load(..)));
        let named: Vec<Vec<DimId>> = loads.map(|b| self.g.bodies.dims(b)).collect();
        let mut c = c;
        for d in self.g.bodies.dims(i) {
            let n = self.g.dim(d).extent;
            if self.g.bodies.dims(n).is_empty() && named.iter().all(|all| all.contains(&d)) {
                let some = self.g.bodies.op(Op::Gt, Scalar::Bool, &[n, zero]);
                c = self.g.bodies.cond(some, c, yes);
            }
        }
        c
    }

    /// A size: not negative and small, which the start checks; what a loop's index says of it must be proved.
    pub(super) fn size(&mut self, id: Id, n: Body, tensor: bool) -> Staged<()> {
        if self.g.bodies.is_data(n) {
            return self.refuse(id, "a size that depends on data");
        }
        let bound = if tensor { MAX_ELEMENTS } else { SMALL };
        let everywhere = self.all_iterations();
        for (a, _) in self.g.bodies.linear(n).into_iter().flat_map(|f| f.terms().collect::<Vec<_>>()) {
            if !self.g.bodies.is_small(a) {
                if !self.g.bodies.dims(a).is_empty() {
                    if self.greatest_product(a, &everywhere).is_none() {
                        return self.refuse(id, "a size that may be large in a loop");
                    }
                    continue;
                }
                let (low, high) = (self.g.bodies.int(-SMALL), self.g.bodies.int(SMALL));
                let over = self.g.bodies.op(Op::Gt, Scalar::Bool, &[a, low]);
                let under = self.g.bodies.op(Op::Lt, Scalar::Bool, &[a, high]);
                self.at_entry(over);
                self.at_entry(under);
                self.g.bodies.assume_small(a);
            }
        }
        if self.g.bodies.dims(n).is_empty() {
            self.below(n, bound);
            return Ok(());
        }
        let bodies = &self.g.bodies;
        let divides = |b: &Body| match bodies.node(*b) {
            Node::Op(op, _, args) => op.divides() && bodies.as_int(args[1]).is_none_or(|n| n < 1),
            _ => false,
        };
        if bodies.reachable([n]).iter().any(divides) {
            // Loops ask for it before any check.
            return self.refuse(id, "a size that may have no value in a loop");
        }
        let zero = self.g.bodies.int(0);
        match self.ranges.bounds(&mut self.g.bodies, n) {
            Some(known) if at_most(&self.g.bodies, zero, known.lo) && self.g.bodies.dims(known.hi).is_empty() => {
                let most = self.g.bodies.int(bound);
                let c = self.g.bodies.op(Op::Lt, Scalar::Bool, &[known.hi, most]);
                self.at_entry(c);
                Ok(())
            }
            _ => self.refuse(id, "a size that may be negative in a loop"),
        }
    }

    /// The ranges of all iterations of the loops that are open, whatever an arm says of them.
    fn all_iterations(&mut self) -> Ranges {
        let mut out = Ranges::default();
        for d in &self.loops {
            let extent = self.g.dim(*d).extent;
            out.push(&mut self.g.bodies, *d, extent);
        }
        out
    }

    /// What no product of sizes in a loop is greater than, which is small: a condition of the start says so of what the
    /// factors are at most. That is known of the product from then on, so that it has to hold in all iterations.
    fn greatest_product(&mut self, a: Body, ranges: &Ranges) -> Option<Body> {
        if self.g.bodies.is_small(a) {
            let (known, zero) = (ranges.bounds(&mut self.g.bodies, a)?, self.g.bodies.int(0));
            let fits = at_most(&self.g.bodies, zero, known.lo) && self.g.bodies.is_fixed(known.hi);
            return fits.then_some(known.hi);
        }
        match self.g.bodies.node(a).clone() {
            Node::If([_, x, y]) => {
                let (x, y) = (self.greatest_product(x, ranges)?, self.greatest_product(y, ranges)?);
                Some(greatest(&mut self.g.bodies, x, y))
            }
            Node::Op(Op::Mul, ty, args) => {
                let factors = [self.greatest_product(args[0], ranges)?, self.greatest_product(args[1], ranges)?];
                // The product of integers could wrap, that of floats cannot.
                let floats = factors.map(|n| self.g.bodies.op(Op::ToFloat, Scalar::F64, &[n]));
                let product = self.g.bodies.op(Op::Mul, Scalar::F64, &floats);
                let most = self.g.bodies.lit(Lit::float(SMALL as f64));
                let under = self.g.bodies.op(Op::Lt, Scalar::Bool, &[product, most]);
                self.at_entry(under);
                let most = self.g.bodies.op(Op::Mul, ty, &factors);
                self.g.bodies.assume_size(most);
                self.g.bodies.assume_size(a);
                Some(most)
            }
            _ => None,
        }
    }

    /// That a tensor has not too many elements.
    pub(super) fn not_too_large(&mut self, id: Id, sizes: &[Body]) -> Staged<()> {
        if sizes.len() < 2 {
            return Ok(());
        }
        // The product of integers could wrap, that of floats cannot.
        let mut product: Option<Body> = None;
        for n in sizes {
            let Some(known) = self.ranges.bounds(&mut self.g.bodies, *n) else {
                return self.refuse(id, "a size that may be large in a loop");
            };
            let n = self.g.bodies.op(Op::ToFloat, Scalar::F64, &[known.hi]);
            product = Some(product.map_or(n, |p| self.g.bodies.op(Op::Mul, Scalar::F64, &[p, n])));
        }
        let Some(product) = product else { return Ok(()) };
        if !self.g.bodies.dims(product).is_empty() {
            return self.refuse(id, "a size that may be large in a loop");
        }
        let most = self.g.bodies.lit(Lit::float(MAX_ELEMENTS as f64));
        let c = self.g.bodies.op(Op::Lt, Scalar::Bool, &[product, most]);
        self.at_entry(c);
        Ok(())
    }
}
