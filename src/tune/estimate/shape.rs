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

/// Where and how a stage is computed.
#[derive(Clone, PartialEq, Debug)]
pub struct Shape {
    /// What was decided.
    pub choice: Choice,
    /// The loops around its points, outermost first.
    pub path: SmallVec<[Ring; 12]>,
    /// How many of them are those of others.
    pub around: usize,
    /// The box that one iteration of each computes, of all its dimensions; first that of all.
    pub boxes: SmallVec<[Extents; 14]>,
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
    pub fn new(
        (number, of): (usize, &Fixed),
        choice: Choice,
        around: &[Ring],
        mut boxes: SmallVec<[Extents; 14]>,
    ) -> Shape {
        let mut path: SmallVec<[Ring; 12]> = around.iter().copied().collect();
        if choice.place != Place::Inline {
            let mut now: Extents = boxes.last().cloned().unwrap_or_default();
            for (k, own) in loops(of, &now.clone(), &choice.tiling).into_iter().enumerate() {
                path.push(Ring { of: (number, k), own });
                now[usize::from(own.dim)] = own.span;
                // Lanes are there at once.
                if own.kind == Kind::Vector {
                    now[usize::from(own.dim)] = of.lanes.min(boxes[around.len()][usize::from(own.dim)]);
                }
                boxes.push(now.clone());
            }
        }
        Shape { choice, around: around.len(), path, boxes }
    }

    /// The box that one iteration of so many loops computes, of those around it at most.
    pub fn at(&self, level: usize) -> &Extents {
        &self.boxes[level.min(self.boxes.len() - 1)]
    }

    /// The box that there is memory for.
    pub fn storage(&self) -> &Extents {
        &self.boxes[self.around]
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
