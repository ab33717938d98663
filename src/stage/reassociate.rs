//! Reductions in another order: lanes that take every n-th term each, or blocks of neighbouring terms, are reduced on their
//! own and then combined.
//!
//! Sums of floats round otherwise then, so it is a rewrite of the graph and no schedule; it is equal over the reals. What is
//! associative to the bit, integers, minima and maxima, keeps its bits. It must not know what order pays where.

use super::body::{Body, DimId, Node, Source, StageId};
use super::graph::{Definition, Graph, Stage};
use crate::ir::{Monoid, Op, Scalar};
use rustc_hash::FxHashMap;
use std::fmt;

/// More lanes are combined in two stages, the first of which has a quarter of them.
const AT_ONCE: i64 = 8;
/// The most lanes.
const MOST_LANES: i64 = 64;
/// The longest block.
const LONGEST: i64 = 1 << 40;

/// The order in which the terms of a reduction are combined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Lane `l` takes every n-th term of the innermost loop, from the `l`-th on; lanes are combined by halving, and what is
    /// left of the terms is added one by one.
    Strided(i64),
    /// Every n iterations of the outermost loop are a block; blocks are combined in their order, then what is left.
    Blocks(i64),
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Order::Strided(n) => write!(f, "strided {n}"),
            Order::Blocks(n) => write!(f, "blocks {n}"),
        }
    }
}

/// A reduction that may be taken apart.
struct Parts {
    over: Vec<DimId>,
    init: Vec<Body>,
    inside: usize,
    /// What combines two values, of each component.
    by: Vec<Monoid>,
}

impl Graph {
    /// Whether the order of a reduction's terms shows in the bits of its value; nothing where it has none that may change.
    pub fn order_shows(&self, s: StageId) -> Option<bool> {
        let parts = self.reduced(s)?;
        let exact = |(m, ty): (&Monoid, &Scalar)| !ty.is_float() || matches!(m, Monoid::Min | Monoid::Max);
        Some(!parts.by.iter().zip(&self.stage(s).tys).all(exact))
    }

    /// Reduces a stage in another order; the stages that it is then made of are added at the end, and it keeps its name.
    ///
    /// # Errors
    /// Why it may not be: it is no such reduction, or the number is out of range.
    pub fn reassociate(&mut self, s: StageId, order: Order) -> Result<(), String> {
        let name = &self.stage(s).name;
        let Some(parts) = self.reduced(s) else {
            return Err(format!("`{name}` is no sum, product, minimum or maximum of terms that stand by themselves"));
        };
        match order {
            Order::Strided(n) if !(2..=MOST_LANES).contains(&n) || n.count_ones() != 1 => {
                Err(format!("lanes are a power of two from 2 to {MOST_LANES}"))
            }
            Order::Blocks(n) if !(1..=LONGEST).contains(&n) => Err("a block has at least one iteration".into()),
            Order::Strided(n) => self.strided(s, &parts, n),
            Order::Blocks(n) => self.blocks(s, &parts, n),
        }
    }

    fn reduced(&self, s: StageId) -> Option<Parts> {
        let stage = self.stage(s);
        let Definition::Reduce { over, init, next, inside } = &stage.def else { return None };
        let asks = |b: &Body| self.has_acc(*b);
        if stage.checks.iter().any(asks) || over.is_empty() {
            return None;
        }
        let by = next.iter().enumerate().map(|(k, b)| self.combines(*b, k as u32).flatten());
        let by = by.collect::<Option<Vec<Monoid>>>()?;
        Some(Parts { over: over.clone(), init: init.clone(), inside: *inside, by })
    }

    /// Whether a body reads an accumulator.
    fn has_acc(&self, b: Body) -> bool {
        self.bodies.reachable([b]).iter().any(|b| matches!(self.bodies.node(*b), Node::Acc(..)))
    }

    /// What a next value combines an accumulator and a term with; `Some(None)` is the accumulator itself, and `None` what
    /// combines them otherwise.
    fn combines(&self, b: Body, k: u32) -> Option<Option<Monoid>> {
        let free = |b: Body| !self.has_acc(b);
        let with = |m: Monoid, acc: Body| match self.combines(acc, k)? {
            inner if inner.is_none_or(|i| i == m) => Some(Some(m)),
            _ => None,
        };
        match self.bodies.node(b) {
            Node::Acc(j, _) => (*j == k).then_some(None),
            Node::If([c, x, y]) => self.either(*c, [*x, *y], k),
            Node::Op(Op::Select, _, args) => self.either(args[0], [args[1], args[2]], k),
            Node::Op(Op::Fma, _, args) if free(args[0]) && free(args[1]) => with(Monoid::Add, args[2]),
            Node::Op(Op::Sub, _, args) if free(args[1]) => with(Monoid::Add, args[0]),
            Node::Op(op, ty, args) => {
                let m = Monoid::ALL.into_iter().find(|m| m.combines(*ty) == *op)?;
                match args.as_slice() {
                    [acc, term] if free(*term) => with(m, *acc),
                    [term, acc] if free(*term) => with(m, *acc),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn either(&self, c: Body, arms: [Body; 2], k: u32) -> Option<Option<Monoid>> {
        if self.has_acc(c) {
            return None;
        }
        match arms.map(|b| self.combines(b, k)) {
            [Some(x), Some(y)] if x.is_none() || y.is_none() || x == y => Some(x.or(y)),
            _ => None,
        }
    }

    fn strided(&mut self, s: StageId, parts: &Parts, n: i64) -> Result<(), String> {
        let whole = self.stage(s).clone();
        let Some((&k, outer)) = parts.over.split_last() else { return Ok(()) };
        let extent = self.dim(k).extent;
        let lanes = self.bodies.int(n);
        let rounds = self.size(Op::Div, extent, lanes);
        let done = self.size(Op::Mul, rounds, lanes);
        let left = self.size(Op::Sub, extent, done);
        let called = self.dim(k).name.clone();
        let (round, lane) = (self.add_dim(called.clone(), rounds), self.add_dim("lane", lanes));
        let first = self.bodies.index(round);
        let first = self.bodies.ints(Op::Mul, first, lanes);
        let own = self.bodies.index(lane);
        let place = self.bodies.ints(Op::Add, first, own);
        let dims: Vec<DimId> = whole.dims.iter().copied().chain([lane]).collect();
        let over = outer.iter().copied().chain([round]).collect();
        let of = [(k, place)].into_iter().collect();
        let each = self.part(&whole, parts, (dims, over, parts.inside + 1), &of, "lanes");
        let each = self.quarter(&whole, parts, each, n);
        let init = self.halved(&whole, parts, each);
        if self.bodies.as_int(left) == Some(0) {
            self.stages[s.0 as usize] = Stage { def: Definition::Pure(init), checks: vec![], ..whole };
            return Ok(());
        }
        let rest = self.add_dim(called, left);
        let at = self.bodies.index(rest);
        let at = self.bodies.ints(Op::Add, done, at);
        let of = [(k, at)].into_iter().collect();
        let over: Vec<DimId> = outer.iter().copied().chain([rest]).collect();
        self.stages[s.0 as usize] = self.rest(&whole, &over, &of, init);
        Ok(())
    }

    fn blocks(&mut self, s: StageId, parts: &Parts, n: i64) -> Result<(), String> {
        let whole = self.stage(s).clone();
        let Some((&k, inner)) = parts.over.split_first() else { return Ok(()) };
        let (extent, called) = (self.dim(k).extent, self.dim(k).name.clone());
        let long = self.bodies.int(n);
        let count = self.size(Op::Div, extent, long);
        let done = self.size(Op::Mul, count, long);
        let left = self.size(Op::Sub, extent, done);
        let (block, own) = (self.add_dim("block", count), self.add_dim(called.clone(), long));
        let [first, at] = [block, own].map(|d| self.bodies.index(d));
        let first = self.bodies.ints(Op::Mul, first, long);
        let place = self.bodies.ints(Op::Add, first, at);
        let (over, of) = self.instead(k, inner, own, place);
        let mut dims = whole.dims.clone();
        dims.insert(dims.len() - parts.inside, block);
        let each = self.part(&whole, parts, (dims, over, parts.inside), &of, "blocks");
        let at: Vec<Body> = self.stage(each).dims.clone().into_iter().map(|d| self.bodies.index(d)).collect();
        let next = (0..whole.tys.len()).map(|c| {
            let (ty, op) = (whole.tys[c], parts.by[c].combines(whole.tys[c]));
            let term = self.bodies.load(Source::Stage(each, c as u32), ty, at.iter().copied());
            let acc = self.bodies.acc(c as u32, ty);
            self.bodies.op(op, ty, &[acc, term])
        });
        let def = Definition::Reduce {
            over: vec![block],
            next: next.collect(),
            init: parts.init.clone(),
            inside: parts.inside,
        };
        // Without a block, what is asked before the terms is still asked.
        let (checks, _) = self.checks(s);
        let sums = Stage { def, checks, ..whole.clone() };
        if self.bodies.as_int(left) == Some(0) {
            self.stages[s.0 as usize] = sums;
            return Ok(());
        }
        let name = self.free_name(&format!("{}_whole_blocks", whole.name));
        let sums = self.add_stage(Stage { name, ..sums });
        let at: Vec<Body> = whole.dims.iter().map(|d| self.bodies.index(*d)).collect();
        let each = whole.tys.iter().enumerate();
        let init = each.map(|(c, ty)| self.bodies.load(Source::Stage(sums, c as u32), *ty, at.iter().copied()));
        let init = init.collect();
        let rest = self.add_dim(called, left);
        let at = self.bodies.index(rest);
        let place = self.bodies.ints(Op::Add, done, at);
        let (over, of) = self.instead(k, inner, rest, place);
        self.stages[s.0 as usize] = self.rest(&whole, &over, &of, init);
        Ok(())
    }

    /// The loops of a part: another one in place of the outermost, which is at a place there; how long an inner one is may
    /// depend on it.
    fn instead(&mut self, k: DimId, inner: &[DimId], own: DimId, place: Body) -> (Vec<DimId>, FxHashMap<DimId, Body>) {
        let mut of: FxHashMap<DimId, Body> = [(k, place)].into_iter().collect();
        let mut over = vec![own];
        for d in inner {
            let (was, named) = (self.dim(*d).extent, self.dim(*d).name.clone());
            let n = self.bodies.substitute(was, &of);
            let new = if n == was { *d } else { self.add_dim(named, n) };
            let at = self.bodies.index(new);
            of.insert(*d, at);
            over.push(new);
        }
        (over, of)
    }

    /// A stage that reduces what is left of its terms, after first values.
    fn rest(&mut self, whole: &Stage, over: &[DimId], of: &FxHashMap<DimId, Body>, first: Vec<Body>) -> Stage {
        let mut rest = whole.over_others(&[whole.dims.as_slice(), over].concat());
        rest.bodies_mut().for_each(|b| *b = self.bodies.substitute(*b, of));
        if let Definition::Reduce { init, .. } = &mut rest.def {
            *init = first;
        }
        rest
    }

    /// A size that an operation makes of sizes.
    fn size(&mut self, op: Op, a: Body, b: Body) -> Body {
        let out = self.bodies.ints(op, a, b);
        if self.bodies.is_size(a) || self.bodies.as_int(a).is_some() {
            self.bodies.assume_size(out);
        }
        out
    }

    /// The stage that reduces a part of the terms.
    fn part(
        &mut self,
        whole: &Stage,
        parts: &Parts,
        (dims, over, inside): (Vec<DimId>, Vec<DimId>, usize),
        of: &FxHashMap<DimId, Body>,
        what: &str,
    ) -> StageId {
        let mut part = Stage { name: self.free_name(&format!("{}_{what}", whole.name)), ..whole.clone() };
        part.bodies_mut().for_each(|b| *b = self.bodies.substitute(*b, of));
        let zeros = whole.tys.iter().zip(&parts.by).map(|(ty, m)| m.identity(*ty));
        let init: Vec<Body> = zeros.flatten().map(|l| self.bodies.lit(l)).collect();
        if let Definition::Reduce { over: own, init: first, inside: within, .. } = &mut part.def {
            (*own, *first, *within) = (over, init, inside);
        }
        part.dims = dims;
        self.add_stage(part)
    }

    /// Of many lanes a quarter, each of which combines four.
    fn quarter(&mut self, whole: &Stage, parts: &Parts, lanes: StageId, n: i64) -> StageId {
        if n <= AT_ONCE {
            return lanes;
        }
        let quarter = self.bodies.int(n / 4);
        let lane = self.add_dim("lane", quarter);
        let dims: Vec<DimId> = whole.dims.iter().copied().chain([lane]).collect();
        let at: Vec<Body> = dims.iter().map(|d| self.bodies.index(*d)).collect();
        let (own, rank) = (at[at.len() - 1], whole.dims.len());
        let each = (0..whole.tys.len()).map(|c| {
            let ty = whole.tys[c];
            let four: Vec<Body> = (0..4)
                .map(|k| {
                    let more = self.bodies.int(k * (n / 4));
                    let lane = self.bodies.ints(Op::Add, own, more);
                    let at = at[..rank].iter().copied().chain([lane]);
                    self.bodies.load(Source::Stage(lanes, c as u32), ty, at)
                })
                .collect();
            self.halve(&four, parts.by[c].combines(ty), ty)
        });
        let def = Definition::Pure(each.collect());
        let name = self.free_name(&format!("{}_quarter", whole.name));
        self.add_stage(Stage { name, dims, def, checks: vec![], ..whole.clone() })
    }

    /// The first values of a stage, and with them all lanes of another.
    fn halved(&mut self, whole: &Stage, parts: &Parts, lanes: StageId) -> Vec<Body> {
        let lane = self.stage(lanes).dims.last().map(|d| self.dim(*d).extent);
        let n = lane.and_then(|n| self.bodies.as_int(n)).unwrap_or(1);
        let each = (0..whole.tys.len()).map(|c| {
            let (ty, op) = (whole.tys[c], parts.by[c].combines(whole.tys[c]));
            let all: Vec<Body> = (0..n)
                .map(|k| {
                    let lane = self.bodies.int(k);
                    let at: Vec<Body> = whole.dims.iter().map(|d| self.bodies.index(*d)).collect();
                    self.bodies.load(Source::Stage(lanes, c as u32), ty, at.into_iter().chain([lane]))
                })
                .collect();
            let all = self.halve(&all, op, ty);
            let neutral = parts.by[c].identity(ty);
            match self.bodies.as_lit(parts.init[c]) {
                Some(l) if Some(&l) == neutral.as_ref() => all,
                _ => self.bodies.op(op, ty, &[parts.init[c], all]),
            }
        });
        each.collect()
    }

    /// Values combined by halving: the first half with the second, until one is left.
    fn halve(&mut self, values: &[Body], op: Op, ty: Scalar) -> Body {
        let mut values = values.to_vec();
        while values.len() > 1 {
            let (low, high) = values.split_at(values.len() / 2);
            values = low.iter().zip(high).map(|(a, b)| self.bodies.op(op, ty, &[*a, *b])).collect();
        }
        values[0]
    }
}
