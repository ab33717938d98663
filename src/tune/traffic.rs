//! Loops and what they access become lines moved between the levels of memory.
//!
//! A loop whose single iteration fits into a cache moves each line that it touches once: what one iteration leaves there the
//! next one finds. One whose iteration does not fit moves the lines of each iteration again.

use super::form::Form;
use crate::nest::{Buf, Var};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Bytes of a line.
pub const LINE: f64 = 64.0;
/// Lines of a cache that have one place together.
const WAYS: f64 = 8.0;

/// A place of a nest that reads or writes memory.
#[derive(Clone, Debug)]
pub struct Access {
    /// What is accessed.
    pub buf: Buf,
    /// Bytes of an element.
    pub bytes: f64,
    /// Where, in elements; nothing where data decides it.
    pub at: Option<Form>,
    /// Whether it writes.
    pub store: bool,
    /// The stage that it is part of, by its number.
    pub stage: usize,
}

/// A loop, with what stands directly in it. The outermost one stands for the whole function, and runs once.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// Iterations.
    pub trips: f64,
    /// Its variable, and those of the vector loops directly in it, with their iterations.
    pub vars: Vec<(Var, f64)>,
    /// How many iterations run at once.
    pub threads: f64,
    /// What stands directly in it.
    pub accesses: Vec<Access>,
    /// The loops directly in it.
    pub kids: Vec<Node>,
}

/// What moves from a level of memory: lines over all threads, and on the busiest one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moved {
    /// All lines.
    pub all: f64,
    /// Lines that one thread waits for.
    pub one: f64,
}

impl Moved {
    /// Both together.
    pub fn plus(self, other: Moved) -> Moved {
        Moved { all: self.all + other.all, one: self.one + other.one }
    }

    fn times(self, all: f64, one: f64) -> Moved {
        Moved { all: self.all * all, one: self.one * one }
    }
}

impl Node {
    /// What moves into a cache of so many bytes for each of so many stages. What the whole function touches is there before,
    /// if it fits.
    pub fn moved(&self, cache: f64, stages: usize) -> Vec<Moved> {
        let mut out = vec![Moved::default(); stages];
        if lines(self.below(), &self.ranges(), Some(cache)).1 * LINE > cache {
            for (stage, moved) in self.each(cache) {
                out[stage] = out[stage].plus(moved);
            }
        }
        out
    }

    /// What moves in all iterations, for each stage.
    fn each(&self, cache: f64) -> BTreeMap<usize, Moved> {
        let (below, ranges) = (self.below(), self.ranges());
        let inside: Vec<(Var, f64)> =
            self.kids.iter().flat_map(Node::ranges).chain(self.vars.iter().skip(1).copied()).collect();
        let shared = 1.0 / self.threads.max(1.0).min(self.trips.max(1.0));
        let plain = |by: BTreeMap<usize, f64>| -> BTreeMap<usize, Moved> {
            by.into_iter().map(|(stage, n)| (stage, Moved { all: n, one: n })).collect()
        };
        let scaled = |by: BTreeMap<usize, Moved>, all: f64, one: f64| -> BTreeMap<usize, Moved> {
            by.into_iter().map(|(stage, m)| (stage, m.times(all, one))).collect()
        };
        if lines(below.clone(), &inside, Some(cache)).1 * LINE <= cache {
            return scaled(plain(lines(below, &ranges, None).0), 1.0, shared);
        }
        let mut out = plain(lines(self.accesses.iter().collect(), &inside, None).0);
        for kid in &self.kids {
            for (stage, moved) in kid.each(cache) {
                let sum = out.entry(stage).or_default();
                *sum = sum.plus(moved);
            }
        }
        scaled(out, self.trips, self.trips * shared)
    }

    /// All accesses in it.
    fn below(&self) -> Vec<&Access> {
        let mut out: Vec<&Access> = self.accesses.iter().collect();
        self.kids.iter().for_each(|k| out.extend(k.below()));
        out
    }

    /// All variables of loops in it, with their iterations.
    fn ranges(&self) -> Vec<(Var, f64)> {
        self.vars.iter().copied().chain(self.kids.iter().flat_map(Node::ranges)).collect()
    }
}

/// The distinct lines that accesses touch while variables run over their ranges, by stage and in all: those that move, where
/// what is written counts twice, since it is fetched and written back; or those that stay in a cache of so many bytes, endless
/// where they do not. Lines that several stages touch are shared by their accesses.
fn lines(accesses: Vec<&Access>, ranges: &[(Var, f64)], within: Option<f64>) -> (BTreeMap<usize, f64>, f64) {
    let (mut by, mut all) = (BTreeMap::new(), 0.0);
    for g in groups(accesses, ranges) {
        let n = match within {
            Some(cache) if g.crowding(cache) > 1.0 => f64::INFINITY,
            Some(_) => g.lines(),
            None => g.lines() * if g.stored { 2.0 } else { 1.0 },
        };
        all += n;
        for stage in &g.stages {
            *by.entry(*stage).or_insert(0.0) += n / g.stages.len() as f64;
        }
    }
    (by, all)
}

/// What accesses touch of memory while variables run over their ranges.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Footprint {
    /// Distinct bytes.
    pub bytes: f64,
    /// Distinct lines.
    pub lines: f64,
    /// Bytes of the longest run of them that lie next to each other.
    pub run: f64,
}

/// The footprint of accesses.
pub fn footprint(accesses: Vec<&Access>, ranges: &[(Var, f64)]) -> Footprint {
    let mut out = Footprint::default();
    for g in groups(accesses, ranges) {
        let bytes = g.elements() * g.bytes;
        out.bytes += bytes;
        // A line that is touched holds a byte that is.
        out.lines += g.lines().min(bytes);
        out.run = out.run.max(g.run() * g.bytes);
    }
    out
}

/// Accesses that step alike overlap: only how far they are from each other counts.
fn groups(accesses: Vec<&Access>, ranges: &[(Var, f64)]) -> Vec<Group> {
    let trips: FxHashMap<Var, f64> = ranges.iter().copied().collect();
    let mut alike: BTreeMap<(Buf, Vec<(u64, u64)>), Group> = BTreeMap::new();
    for a in accesses {
        let mut steps: Vec<(f64, f64)> = vec![];
        for (v, c) in a.at.iter().flat_map(|f| &f.terms) {
            if let Some(n) = trips.get(v).filter(|n| **n > 1.0) {
                match steps.iter_mut().find(|(step, _)| *step == c.abs()) {
                    Some((_, times)) => *times += n - 1.0,
                    None => steps.push((c.abs(), *n)),
                }
            }
        }
        // Where data decides, each access is a line of its own.
        if a.at.is_none() {
            steps = ranges.iter().map(|(_, n)| (LINE, *n)).collect();
        }
        steps.sort_by(|x, y| x.0.total_cmp(&y.0));
        let key = steps.iter().map(|(step, n)| (step.to_bits(), n.to_bits())).collect();
        let constant = a.at.as_ref().map_or(0.0, |f| f.constant);
        let new = || Group { steps, bytes: a.bytes, at: vec![], stored: false, stages: vec![] };
        let group = alike.entry((a.buf, key)).or_insert_with(new);
        group.at.push(constant);
        group.stages.push(a.stage);
        group.stored |= a.store;
    }
    alike.into_values().collect()
}

/// Accesses of one buffer that step alike.
struct Group {
    /// How far each loop steps, in elements, and how often; small steps first.
    steps: Vec<(f64, f64)>,
    bytes: f64,
    /// Where each access begins.
    at: Vec<f64>,
    stored: bool,
    /// The stage of each access.
    stages: Vec<usize>,
}

impl Group {
    /// How far a step goes that stays in the lines of a run.
    fn near(&self, run: f64) -> f64 {
        run.max(LINE / self.bytes)
    }

    /// Elements next to each other, or in one line, are runs. Accesses that begin a step of some loop further are in its next runs; those
    /// that begin less than that further make runs longer.
    fn lines(&self) -> f64 {
        let (mut run, mut apart) = (1.0, vec![]);
        for (step, n) in &self.steps {
            match *step <= self.near(run) {
                true => run += step * (n - 1.0),
                false => apart.push((*step, *n)),
            }
        }
        let least = self.at.iter().copied().fold(f64::INFINITY, f64::min);
        let mut further = vec![0.0; apart.len()];
        let mut begins: Vec<f64> = vec![];
        for at in &self.at {
            let mut left = at - least;
            for ((step, _), most) in apart.iter().zip(&mut further).rev() {
                let whole = (left / step).floor();
                left -= whole * step;
                *most = whole.max(*most);
            }
            begins.push(left);
        }
        begins.sort_by(f64::total_cmp);
        let more: f64 = begins.windows(2).map(|w| (w[1] - w[0]).min(run)).sum();
        let count: f64 = apart.iter().zip(&further).map(|((_, n), more)| n + more).product();
        count * ((run + more) * self.bytes / LINE).max(1.0)
    }

    /// The distinct elements. Accesses that begin whole steps further share elements with the others; what is left of a
    /// distance after whole steps tells those apart that share none.
    fn elements(&self) -> f64 {
        let mut at: Vec<f64> = self.at.clone();
        at.sort_by(f64::total_cmp);
        at.dedup();
        let steps: Vec<(f64, f64)> = self.steps.iter().copied().filter(|(step, _)| *step > 0.0).collect();
        let mut further = vec![0.0; steps.len()];
        let mut left_over: Vec<u64> = vec![];
        for begin in &at {
            let mut left = begin - at[0];
            for ((step, _), most) in steps.iter().zip(&mut further).rev() {
                let whole = (left / step).floor();
                left -= whole * step;
                *most = whole.max(*most);
            }
            left_over.push(left.to_bits());
        }
        left_over.sort_unstable();
        left_over.dedup();
        let together: f64 = steps.iter().zip(&further).map(|((_, n), more)| n + more).product();
        let apart: f64 = steps.iter().map(|(_, n)| n).product();
        (together * left_over.len() as f64).min(apart * at.len() as f64)
    }

    /// The elements that lie next to each other, or in one line with those: of the steps that stay near.
    fn run(&self) -> f64 {
        let mut run = 1.0;
        for (step, n) in self.steps.iter().filter(|(step, _)| *step > 0.0) {
            if *step <= self.near(run) {
                run += step * (n - 1.0);
            }
        }
        run
    }

    /// How many ways of a cache its lines need where they share places: those that are multiples of a way's size apart do, and
    /// drive each other out once they are more than there are ways.
    fn crowding(&self, cache: f64) -> f64 {
        let way = cache / WAYS;
        let mut run = 1.0;
        let (mut lines, mut places) = (1.0f64, 1.0f64);
        for (step, n) in &self.steps {
            if *step <= self.near(run) {
                run += step * (n - 1.0);
                (lines, places) = ((run * self.bytes / LINE).max(1.0), (run * self.bytes / LINE).max(1.0));
                continue;
            }
            // Every so many steps the places are the same again.
            let (stride, mut period) = (step * self.bytes, 1.0);
            while period < n.min(way / LINE) && (stride * period) % way != 0.0 {
                period += 1.0;
            }
            (lines, places) = (lines * n, (places * period).min(way / LINE));
        }
        lines / places / WAYS
    }
}
