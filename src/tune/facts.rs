//! What is seen of a nest while its work is counted: loops, accesses, writes, memory and operations, each with its stage.
//!
//! Features are computed of it. It must not know what they are.

use super::parts::Work;
use super::traffic::Access;
use crate::ir::Scalar;
use crate::ir::op::Class;
use crate::nest::{Buf, Var};

/// A loop, by its number in [`Facts::loops`]; the first one is the whole function.
pub type LoopId = usize;

/// A loop of a nest.
#[derive(Clone, Debug)]
pub struct Loop {
    /// The loop around.
    pub around: Option<LoopId>,
    /// Its stage; as many as there are stages, where it has none.
    pub stage: usize,
    /// Its variable.
    pub var: Var,
    /// Its iterations.
    pub trips: f64,
    /// How many of them run at once in a vector: 1 where it has none.
    pub lanes: f64,
    /// Whether its iterations run on threads.
    pub parallel: bool,
}

/// A place that reads or writes memory.
#[derive(Clone, Debug)]
pub struct Touch {
    /// What, and where.
    pub access: Access,
    /// Whether lanes are found one by one.
    pub wild: bool,
    /// The loop it stands in.
    pub inside: LoopId,
}

/// A place where a stage writes an element or an accumulator.
#[derive(Clone, Copy, Debug)]
pub struct Write {
    /// The stage.
    pub stage: usize,
    /// The loop it stands in.
    pub inside: LoopId,
    /// Whether it is computed from what was there before.
    pub step: bool,
    /// Whether it is memory that others read, and no accumulator.
    pub element: bool,
}

/// A place where a stage takes memory, or a variable for its one element.
#[derive(Clone, Copy, Debug)]
pub struct Take {
    /// The stage.
    pub stage: usize,
    /// The loop it stands in.
    pub inside: LoopId,
    /// The memory; nothing for variables.
    pub buf: Option<Buf>,
    /// Bytes, and those of its innermost dimension.
    pub bytes: f64,
    /// Those of its innermost dimension.
    pub row: f64,
    /// Whether it is for accumulators.
    pub accumulators: bool,
}

/// An operation.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// The stage that it is part of.
    pub stage: usize,
    /// The loop it stands in.
    pub inside: LoopId,
    /// How costly it is; nothing for choices and conversions.
    pub class: Option<Class>,
    /// What it gives.
    pub ty: Scalar,
}

/// All of that.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Loops, outer ones first.
    pub loops: Vec<Loop>,
    /// Reads and writes of memory.
    pub touches: Vec<Touch>,
    /// Writes of stages.
    pub writes: Vec<Write>,
    /// Memory.
    pub takes: Vec<Take>,
    /// Operations.
    pub operations: Vec<Operation>,
    /// The work of each stage, and of what belongs to none.
    pub by_stage: Vec<Work>,
    /// Bytes that move between the last cache and memory for each of them, on all threads.
    pub bytes: Vec<f64>,
}

impl Facts {
    /// The loops around a place, outermost first, the whole function included.
    pub fn path(&self, inside: LoopId) -> Vec<LoopId> {
        let mut out = vec![];
        let mut at = Some(inside);
        while let Some(k) = at {
            out.push(k);
            at = self.loops[k].around;
        }
        out.reverse();
        out
    }

    /// Operations of a stage, where two of 32 bits count as one of 64.
    pub fn done(&self, stage: usize) -> f64 {
        let own = self.operations.iter().filter(|o| o.stage == stage);
        own.map(|o| self.times(o.inside) * f64::from(o.ty.bytes()) / 8.0).sum()
    }

    /// How often a place is reached, each lane counted.
    pub fn times(&self, inside: LoopId) -> f64 {
        self.path(inside).into_iter().map(|k| self.loops[k].trips).product()
    }
}
