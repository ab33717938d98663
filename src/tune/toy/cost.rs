//! The published cost of a tree: how much memory it takes, how many intermediate results it loads and stores, and how many
//! operations it does, weighted.
//!
//! The weights are the published ones. What the publication leaves open is settled so that what it found for its benchmarks is
//! within a thousandth of the cheapest here, too, and is written down in `docs/schedules.md`. How loops run costs nothing, nor
//! does locality.

use super::boxes::{Boxes, counts};
use super::counts::Counts;
use super::functions::{Function, Functions, Reading};
use super::tree::{Plan, Tree};
use crate::stage::StageId;

/// What trees cost.
pub struct Costs<'a> {
    functions: &'a Functions,
}

/// What is computed at each point of a function, and once for each of its elements, with all that is inlined in it.
#[derive(Clone, Copy, Default)]
struct Point {
    each: Counts,
    first: Counts,
}

impl<'a> Costs<'a> {
    /// Of functions.
    pub fn new(functions: &'a Functions) -> Costs<'a> {
        Costs { functions }
    }

    /// What a tree takes.
    pub fn of(&self, tree: &Tree) -> Counts {
        let points = self.points(tree);
        let mut boxes = Boxes::new(self.functions, tree);
        let mut out = Counts::default();
        for f in self.functions.ids() {
            if let Plan::Own { .. } = tree.plan(f) {
                self.add(tree, f, &points[f.0 as usize], &mut boxes, &mut out);
            }
        }
        out
    }

    /// The most operations of a point of a function, with all that is inlined in it.
    pub fn largest(&self, tree: &Tree) -> f64 {
        let own = |f: &StageId| *tree.plan(*f) != Plan::Inline;
        let points = self.points(tree);
        self.functions.ids().filter(own).map(|f| points[f.0 as usize].each.operations()).fold(0.0, f64::max)
    }

    /// What each function does at a point, with all that is inlined in it: at each place where that is read, anew.
    fn points(&self, tree: &Tree) -> Vec<Point> {
        let mut out = vec![Point::default(); self.functions.all.len()];
        for f in &self.functions.order {
            let known = self.functions.get(*f);
            let mut point = Point { each: known.each, first: known.first };
            for read in &known.reads {
                if *tree.plan(read.from) != Plan::Inline {
                    continue;
                }
                let inner = out[read.from.0 as usize].each;
                let into = match read.when {
                    Reading::Each => &mut point.each,
                    Reading::First => &mut point.first,
                    Reading::Beside => continue,
                };
                into.add(&inner, 1.0);
                // What is inlined is not loaded.
                into.loads -= 1.0;
            }
            out[f.0 as usize] = point;
        }
        out
    }

    fn add(&self, tree: &Tree, f: StageId, point: &Point, boxes: &mut Boxes<'_>, out: &mut Counts) {
        let known = self.functions.get(f);
        let (elements, memory) = self.elements(tree, f, boxes);
        let over: f64 = known.extents[known.own..].iter().map(|n| *n as f64).product();
        out.add(&point.each, elements * over);
        out.add(&point.first, elements);
        if !known.output {
            out.stores += elements * known.components;
            out.memory += memory * known.components;
        }
    }

    /// How many elements of a function are computed in all, and for how many there is memory.
    fn elements(&self, tree: &Tree, f: StageId, boxes: &mut Boxes<'_>) -> (f64, f64) {
        let known = self.functions.get(f);
        let (compute, storage) = (tree.compute(f).flatten(), tree.storage(f).flatten());
        let here: Vec<i64> = boxes.needed(f, compute).iter().map(|r| r.extent()).collect();
        let kept: Vec<i64> = boxes.needed(f, storage).iter().map(|r| r.extent()).collect();
        let room = product(&kept);
        if storage == compute {
            return (self.rounds(tree, compute, boxes) * self.points_of(known, tree, f, &here), room);
        }
        // What earlier iterations of the loop computed is there: in all of them together each element once.
        let around = tree.around(compute);
        let there: Vec<i64> = boxes.needed(f, around).iter().map(|r| r.extent()).collect();
        let elements = self.rounds(tree, around, boxes) * product(&there);
        (elements, room)
    }

    /// The elements that the loops of a function go through for a box, those that parts compute twice included.
    fn points_of(&self, known: &Function, tree: &Tree, f: StageId, extents: &[i64]) -> f64 {
        let loops = tree.loops(f);
        if loops.is_empty() {
            return product(extents);
        }
        let all: Vec<i64> = extents.iter().chain(&known.extents[known.own..]).copied().collect();
        let each = counts(&all, loops);
        loops.iter().zip(each).filter(|(l, _)| l.dim < known.own).map(|(_, n)| n).product()
    }

    /// How often a place is reached.
    fn rounds(&self, tree: &Tree, level: super::tree::Level, boxes: &mut Boxes<'_>) -> f64 {
        let (mut at, mut out) = (level, 1.0);
        while let Some((h, k)) = at {
            let known = self.functions.get(h);
            let compute = tree.compute(h).flatten();
            let own = boxes.needed(h, compute);
            let all: Vec<i64> = own.iter().map(|r| r.extent()).chain(known.extents[known.own..].to_vec()).collect();
            out *= counts(&all, tree.loops(h))[..=k].iter().product::<f64>();
            at = compute;
        }
        out
    }
}

fn product(extents: &[i64]) -> f64 {
    extents.iter().map(|n| *n as f64).product()
}
