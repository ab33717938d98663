//! Boxes of a tree: which indices of a function one iteration of a loop needs, at stated sizes.
//!
//! As published, extents are rectangles: the indices that a caller reads at, at the least and the greatest index that it is
//! computed at. One iteration stands for all: the one in the middle, which meets no border.

use super::functions::{Functions, Reading};
use super::range::Range;
use super::tree::{Level, Loop, Plan, Tree};
use crate::ir::deep;
use crate::stage::StageId;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// The boxes of one tree, found where they are asked for.
pub struct Boxes<'a> {
    functions: &'a Functions,
    tree: &'a Tree,
    known: FxHashMap<(StageId, Level), Rc<Vec<Range>>>,
    scratch: Vec<Range>,
}

impl<'a> Boxes<'a> {
    /// Those of a tree.
    pub fn new(functions: &'a Functions, tree: &'a Tree) -> Boxes<'a> {
        Boxes { functions, tree, known: FxHashMap::default(), scratch: vec![] }
    }

    /// The box of a function that all below a place needs in one iteration; of the output, and of what is left alone, all of it.
    pub fn needed(&mut self, f: StageId, level: Level) -> Rc<Vec<Range>> {
        if let Some(known) = self.known.get(&(f, level)) {
            return known.clone();
        }
        let found = Rc::new(deep(|| self.found(f, level)));
        self.known.insert((f, level), found.clone());
        found
    }

    fn found(&mut self, f: StageId, level: Level) -> Vec<Range> {
        let (functions, known) = (self.functions, self.functions.get(f));
        let whole: Vec<Range> = known.extents[..known.own].iter().map(|n| Range::all(*n)).collect();
        if known.output || !known.moves {
            return whole;
        }
        let mut out: Option<Vec<Range>> = None;
        for (reader, k) in &functions.readers[f.0 as usize] {
            let read = &functions.get(*reader).reads[*k];
            let Some(ranges) = self.ranges(*reader, level, read.when) else { continue };
            let each = read.at.iter().zip(&whole).map(|(index, all)| match index {
                // What data decide may be any index.
                None => *all,
                Some(index) => {
                    let Range { lo, hi } = index.over(&ranges, &mut self.scratch);
                    Range { lo: lo.clamp(0, all.hi.max(0)), hi: hi.clamp(0, all.hi.max(0)) }
                }
            });
            let each: Vec<Range> = each.collect();
            out = Some(match out {
                None => each,
                Some(known) => known.iter().zip(&each).map(|(a, b)| a.with(*b)).collect(),
            });
        }
        out.unwrap_or(whole)
    }

    /// The ranges of all dimensions of a reader in one iteration of a place; nothing where it does not run there.
    fn ranges(&mut self, reader: StageId, level: Level, when: Reading) -> Option<Vec<Range>> {
        let known = self.functions.get(reader);
        let mut out = match (self.tree.plan(reader), level) {
            (Plan::Own { loops, compute, .. }, Some((host, k))) if host == reader => {
                let own = self.needed(reader, *compute);
                let all: Vec<Range> = own.iter().copied().chain(over(&known.extents, known.own)).collect();
                let first = when == Reading::First;
                return Some(iteration(&all, loops, k, if first { known.own } else { usize::MAX }));
            }
            (Plan::Own { .. }, _) if !self.tree.is_around(level, self.tree.body(reader)) => return None,
            _ => self.needed(reader, level).to_vec(),
        };
        out.extend(over(&known.extents, known.own));
        Some(out)
    }
}

/// All indices that are reduced over.
fn over(extents: &[i64], own: usize) -> impl Iterator<Item = Range> + '_ {
    extents[own..].iter().map(|n| Range::all(*n))
}

/// The ranges of dimensions in the middle iteration of the loops up to the k-th.
fn iteration(all: &[Range], loops: &[Loop], k: usize, own: usize) -> Vec<Range> {
    let mut out = all.to_vec();
    for l in &loops[..=k] {
        let range = out[l.dim];
        // What comes before all that is reduced is needed whatever the iteration.
        if l.dim >= own {
            continue;
        }
        let trips = trips(range.extent(), l.step);
        let lo = (range.lo + (trips - 1) / 2 * l.step).max(range.lo);
        out[l.dim] = Range { lo, hi: (lo + l.step - 1).min(range.hi) };
    }
    out
}

/// How often a loop runs that goes through so many indices.
fn trips(extent: i64, step: i64) -> i64 {
    (extent + step - 1) / step.max(1)
}

/// How often each loop of a function runs, where it is computed for a box.
pub fn counts(all: &[i64], loops: &[Loop]) -> Vec<f64> {
    let mut left = all.to_vec();
    let one = |l: &Loop| {
        let trips = trips(left[l.dim], l.step);
        left[l.dim] = left[l.dim].min(l.step);
        trips as f64
    };
    loops.iter().map(one).collect()
}
