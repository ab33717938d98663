//! Peak memory: how much a nest takes at a time at most where the sizes that come in are stated, without running it.
//!
//! Every number lies in a range that holds in every run with these sizes, so no run takes more. What of memory data
//! decide has no bound, and is told. What is stored, and what variables are set to, lies in the union of the ranges of
//! all that is ever stored or set there; walking again with these unions makes them no larger. It must not know of
//! values of the language.

use super::bounds::{Range, range};
use super::{Arg, Buf, Expr, Func, Loop, LoopKind, Nest, Slot, Stmt, Var, walk};
use crate::ir::deep;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;

/// Memory is taken in lines of so many bytes.
const LINE: u64 = 64;
/// So often a nest is walked at most.
const WALKS: usize = 3;

/// What is stored in buffers, and what variables are set to, that are set more than once.
#[derive(Default)]
struct Ranges {
    bufs: FxHashMap<Buf, Range>,
    vars: FxHashMap<Var, Range>,
}

/// A buffer that is held.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// What the source calls it.
    pub name: String,
    /// Its sizes, outermost first.
    pub sizes: Vec<u64>,
    /// Its bytes.
    pub bytes: u64,
}

/// The memory that a nest takes.
#[derive(Clone, PartialEq, Debug)]
pub struct Held {
    /// Bytes that are taken at once at most, arguments not counted.
    pub bytes: u64,
    /// What is held when it is most, the largest first; of what threads hold, the share of one.
    pub parts: Vec<Part>,
    /// The sizes in the result, in the order of the calling form; nothing where data decide them.
    pub sizes: Vec<Option<u64>>,
}

/// The memory that a nest takes, by numbers that come in: sizes and scalars in the order of the calling form, nothing
/// where they are not known. Parallel loops run on so many threads.
///
/// # Errors
/// The name of a buffer whose size data decide, or of a function that calls itself and takes memory.
pub fn held(nest: &Nest, incoming: &[Option<f64>], threads: usize) -> Result<Held, String> {
    let func = &nest.entry;
    let mut vars: Vec<Range> = func.vars.iter().map(|v| Range::of_type(v.ty)).collect();
    for (slot, value) in func.params.iter().zip(incoming) {
        match (slot, value) {
            (Slot::Size(v) | Slot::Scalar(v), Some(value)) => vars[v.0 as usize] = Range::of(*value),
            (Slot::Size(v), None) => vars[v.0 as usize] = Range::new(0.0, f64::INFINITY),
            _ => {}
        }
    }
    let mut set = FxHashSet::default();
    walk::visit(&func.body, &mut |s| {
        if let Stmt::Set(v, _) | Stmt::SetLane(v, ..) = s {
            set.insert(*v);
        }
    });
    let mut w = Walk::new((nest, vars.clone()), &set, Ranges::default(), threads);
    w.block(&func.body);
    for _ in 1..WALKS {
        if w.unknown.is_some() {
            w = Walk::new((nest, vars.clone()), &set, w.found, threads);
            w.block(&func.body);
        }
    }
    if let Some(name) = w.unknown {
        return Err(name);
    }
    let mut sizes = vec![];
    for result in &func.results {
        if let Arg::Size(e) = result {
            let found = w.range(e);
            sizes.push(found.high.is_finite().then_some(found.high.max(0.0) as u64));
        }
    }
    w.most.sort_by_key(|part| Reverse(part.bytes));
    Ok(Held { bytes: w.peak, parts: w.most, sizes })
}

struct Walk<'a> {
    nest: &'a Nest,
    func: &'a Func,
    vars: Vec<Range>,
    /// Variables that are set again.
    set: &'a FxHashSet<Var>,
    /// What holds of what is stored and set, by the walk before; of what is not there, its type says all.
    known: Ranges,
    /// The same by this walk.
    found: Ranges,
    /// The first buffer without a bound.
    unknown: Option<String>,
    marks: FxHashMap<u32, (u64, usize)>,
    /// What is held, in the order in which it was taken.
    live: Vec<Part>,
    /// What was held when it was most.
    most: Vec<Part>,
    top: u64,
    peak: u64,
    /// How many threads a parallel loop has here.
    threads: u64,
}

impl<'a> Walk<'a> {
    fn new((nest, vars): (&'a Nest, Vec<Range>), set: &'a FxHashSet<Var>, known: Ranges, threads: usize) -> Walk<'a> {
        let (found, unknown, marks, live, most) = Default::default();
        let (func, threads) = (&nest.entry, threads.max(1) as u64);
        Walk { nest, func, vars, set, known, found, unknown, marks, live, most, top: 0, peak: 0, threads }
    }

    fn range(&self, e: &Expr) -> Range {
        let buf = |b: Buf| {
            let known = self.known.bufs.get(&b).copied();
            known.unwrap_or_else(|| Range::of_type(self.func.buf(b).ty))
        };
        range(self.func, &|v| self.vars[v.0 as usize], &buf, e)
    }

    fn block(&mut self, stmts: &[Stmt]) {
        stmts.iter().for_each(|s| self.stmt(s));
    }

    fn stmt(&mut self, s: &Stmt) {
        match s {
            Stmt::Let(v, e) => self.vars[v.0 as usize] = self.range(e),
            Stmt::Mut(v, e) | Stmt::Set(v, e) | Stmt::SetLane(v, _, e) => self.set(*v, e),
            Stmt::Store(b, _, e) | Stmt::MaskedStore(b, _, e, _) | Stmt::StoreLane(b, _, _, e) => {
                let stored = self.range(e);
                let all = self.found.bufs.entry(*b).or_insert(stored);
                *all = all.or(stored);
            }
            Stmt::Alloc(b, dims) => self.take(*b, dims),
            Stmt::For(l) => deep(|| self.run(l)),
            Stmt::If(c, yes, no) => match self.range(c).point() {
                Some(c) => self.block(if c != 0.0 { yes } else { no }),
                None => self.either(yes, no),
            },
            Stmt::Mark(m) => drop(self.marks.insert(*m, (self.top, self.live.len()))),
            Stmt::Reset(m) => {
                if let Some(mark) = self.marks.get(m) {
                    self.back(*mark);
                }
            }
            Stmt::Call(at, ..) => self.call(*at),
            Stmt::Point(..) | Stmt::Check(..) | Stmt::Leave(..) | Stmt::Print(..) => {}
        }
    }

    /// A variable that may be set again is all that it is ever set to.
    fn set(&mut self, v: Var, e: &Expr) {
        let now = self.range(e);
        if !self.set.contains(&v) {
            self.vars[v.0 as usize] = now;
            return;
        }
        let all = self.found.vars.entry(v).or_insert(now);
        *all = all.or(now);
        let known = self.known.vars.get(&v).copied();
        self.vars[v.0 as usize] = known.unwrap_or_else(|| Range::of_type(self.func.var(v).ty));
    }

    /// One of two blocks, of which the one counts that leaves more behind.
    fn either(&mut self, yes: &[Stmt], no: &[Stmt]) {
        let before = (self.top, self.live.len());
        self.block(yes);
        let (after, live) = (self.top, self.live.clone());
        self.back(before);
        self.block(no);
        if after > self.top {
            (self.top, self.live) = (after, live);
        }
    }

    fn back(&mut self, (top, held): (u64, usize)) {
        self.top = top;
        self.live.truncate(held);
    }

    fn take(&mut self, b: Buf, dims: &[Expr]) {
        let info = self.func.buf(b);
        let sizes: Vec<f64> = dims.iter().map(|d| self.range(d).high.max(0.0)).collect();
        // Nothing of unbounded size is nothing.
        let count = if sizes.contains(&0.0) { 0.0 } else { sizes.iter().product::<f64>() };
        let bytes = count * f64::from(info.lanes) * f64::from(info.ty.bytes());
        if !bytes.is_finite() {
            self.unknown.get_or_insert_with(|| info.name.clone());
            return;
        }
        let bytes = bytes as u64;
        self.top = self.top.saturating_add(bytes.div_ceil(LINE).saturating_mul(LINE));
        let sizes = sizes.into_iter().map(|n| n as u64).collect();
        self.live.push(Part { name: info.name.clone(), sizes, bytes });
        if self.top > self.peak {
            (self.peak, self.most) = (self.top, self.live.clone());
        }
    }

    fn run(&mut self, l: &Loop) {
        let (from, to) = (self.range(&l.from), self.range(&l.to));
        let rounds = to.high - from.low;
        if rounds <= 0.0 {
            return;
        }
        self.vars[l.var.0 as usize] = Range::new(from.low, to.high - 1.0);
        let mark = (self.top, self.live.len());
        if !matches!(l.kind, LoopKind::Parallel { .. }) {
            self.block(&l.body);
            self.back(mark);
            return;
        }
        // Each thread has memory for an iteration of its own, and runs loops in it alone.
        let threads = self.threads.min(if rounds.is_finite() { rounds as u64 } else { u64::MAX });
        let (peak, most, all) = (self.peak, std::mem::take(&mut self.most), self.threads);
        (self.peak, self.threads) = (self.top, 1);
        self.block(&l.body);
        let whole = mark.0.saturating_add(threads.max(1).saturating_mul(self.peak - mark.0));
        self.threads = all;
        self.back(mark);
        match whole > peak {
            true => self.peak = whole,
            false => (self.peak, self.most) = (peak, most),
        }
    }

    /// Functions that call themselves take memory for each open call; nobody knows how many there are.
    fn call(&mut self, at: usize) {
        let mut takes = false;
        for f in &self.nest.funcs {
            walk::visit(&f.body, &mut |s| takes |= matches!(s, Stmt::Alloc(..)));
        }
        if let Some(f) = self.nest.funcs.get(at).filter(|_| takes) {
            self.unknown.get_or_insert_with(|| f.name.clone());
        }
    }
}
