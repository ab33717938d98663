//! Where a stage is computed and how its loops run become the loops around its points, and the box of it that one iteration of
//! each of them computes.

use super::known::Fixed;
use super::loops::{Own, loops};
use super::reads::Reads;
use super::sequence::Weighs;
use crate::schedule::plan::Kind;
use crate::tune::parts::Work;
use crate::tune::tree::{Choice, Place};
use smallvec::SmallVec;
use std::sync::Arc;

/// A loop around the points of a stage.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ring {
    /// The stage whose loop it is, and which of its loops.
    pub of: (usize, usize),
    /// The loop.
    pub own: Own,
}

/// The extents of a box, by dimension.
pub type Extents = SmallVec<[f64; 6]>;

/// What one iteration of a loop computes, in the middle of all.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Part {
    /// The first index, by dimension.
    pub from: Extents,
    /// How many there are.
    pub extents: Extents,
    /// Bytes that other stages keep there.
    pub held: f64,
}

/// The parts of the loops around a stage, first that of all.
pub type Parts = SmallVec<[Part; 14]>;

/// Where and how a stage is computed.
#[derive(Clone, PartialEq, Debug)]
pub struct Shape {
    /// What was decided.
    pub choice: Choice,
    /// The loops around its points, outermost first.
    pub path: SmallVec<[Ring; 12]>,
    /// How many of them are those of others.
    pub around: usize,
    /// What one iteration of each computes, of all its dimensions; first all.
    pub boxes: Parts,
}

/// A stage in a schedule.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// Where and how.
    pub shape: Arc<Shape>,
    /// What a point takes, with what is computed where it is read.
    pub reads: Arc<Reads>,
    /// What all of it takes.
    pub work: Work,
}

impl Weighs for Entry {
    fn work(&self) -> Work {
        self.work
    }
}

impl Entry {
    /// Whether it is computed where it is read.
    pub fn is_inlined(&self) -> bool {
        self.shape.choice.place == Place::Inline
    }
}

impl Shape {
    /// The shape of a stage whose box in each iteration of the loops around it is known, the one of all first.
    pub fn new((number, of): (usize, &Fixed), choice: Choice, around: &[Ring], mut boxes: Parts) -> Shape {
        let mut path: SmallVec<[Ring; 12]> = around.iter().copied().collect();
        if choice.place != Place::Inline {
            let mut now = Part { held: 0.0, ..boxes.last().cloned().unwrap_or_default() };
            for (k, own) in loops(of, &now.extents.clone(), &choice.tiling).into_iter().enumerate() {
                path.push(Ring { of: (number, k), own });
                let d = usize::from(own.dim);
                now.from[d] += ((own.trips - 1.0) / 2.0).floor().max(0.0) * own.span;
                // Lanes are there at once.
                let lanes = of.lanes.min(boxes[around.len()].extents[d]);
                now.extents[d] = if own.kind == Kind::Vector { lanes } else { own.span };
                boxes.push(now.clone());
            }
        }
        Shape { choice, around: around.len(), path, boxes }
    }

    /// What one iteration of so many loops computes, of those around it at most.
    pub fn part(&self, level: usize) -> &Part {
        &self.boxes[level.min(self.boxes.len() - 1)]
    }

    /// The box of that.
    pub fn at(&self, level: usize) -> &Extents {
        &self.part(level).extents
    }

    /// The box that there is memory for.
    pub fn storage(&self) -> &Extents {
        &self.boxes[self.around].extents
    }

    /// Its own loops, of which others may be computed in those that are no vectors and not unrolled.
    pub fn own(&self) -> &[Ring] {
        &self.path[self.around..]
    }

    /// Whether it is computed in a loop, given by the loops around it and itself.
    pub fn is_in(&self, path: &[Ring]) -> bool {
        path.len() <= self.path.len() && path.iter().zip(&self.path).all(|(a, b)| a.of == b.of)
    }
}
