//! A graph at stated sizes becomes what estimates read of each stage, found once.

use super::reads::{From, Reader, Reads};
use crate::machine::Machine;
use crate::schedule::plan::Schedule;
use crate::schedule::tiling::{Ground, Tiling, tiles};
use crate::schedule::{is_left, worth_inlining};
use crate::stage::{Body, Definition, DimId, Graph, Source, Stage, StageId};
use crate::tune::work::LATENCY;
use std::sync::Arc;

/// A stage of more dimensions is not estimated.
const DIMS: usize = 32;

/// A stage.
pub struct Fixed {
    /// The extents of its dimensions, and then of those it reduces over.
    pub extents: Vec<f64>,
    /// How many of them are its own.
    pub own: usize,
    /// Whether it reduces.
    pub reduces: bool,
    /// Bytes of an element of the widest component, and how many components there are.
    pub bytes: f64,
    /// Components.
    pub components: f64,
    /// What a point takes.
    pub reads: Arc<Reads>,
    /// Cycles that a step waits for the one before.
    pub wait: f64,
    /// The stages that read it.
    pub readers: Vec<usize>,
    /// Whether it may be computed where it is read, and in loops of what reads it.
    pub inlines: bool,
    /// Whether it may be computed in loops of what reads it.
    pub moves: bool,
    /// Whether others may be computed in its loops.
    pub hosts: bool,
    /// Whether it is computed where it is read as long as nobody has decided it.
    pub cheap: bool,
    /// Lanes of its vectors.
    pub lanes: f64,
    /// Whether they are all of its last dimension.
    pub whole: bool,
    /// Whether what it reduces has no loops.
    pub few: bool,
    /// What is packed, with the order of its axes where it is another one.
    pub packs: Vec<(From, Vec<usize>)>,
    /// The tiles of registers that are worth trying.
    pub tiles: Vec<Tiling>,
}

/// All stages, and the inputs.
pub struct Known {
    /// The stages, by their numbers.
    pub stages: Vec<Fixed>,
    /// The extents of inputs.
    pub inputs: Vec<Vec<f64>>,
    /// Bytes that come in and go out.
    pub bytes: f64,
    /// What code is made for.
    pub machine: Machine,
}

impl Known {
    /// What is known of the stages of a schedule whose graph at stated sizes is `special`. Nothing where there are stages of
    /// another kind than plain elements and reductions, or extents that are not known: then the nest has to say.
    pub fn of(start: &Schedule, special: &Graph, machine: Machine) -> Option<Known> {
        let number = |b: &Body| special.bodies.as_int(*b).map(|n| n.max(0) as f64);
        let inputs: Vec<Vec<f64>> =
            special.inputs.iter().map(|i| i.sizes.iter().map(number).collect()).collect::<Option<_>>()?;
        let each = special.ids().map(|s| fixed(start, special, s, &machine)).collect::<Option<Vec<Fixed>>>()?;
        let come = inputs.iter().zip(&special.inputs);
        let come = come.map(|(n, i)| n.iter().product::<f64>() * f64::from(i.ty.bytes())).sum::<f64>();
        let goes = special.handed().into_iter().filter_map(Source::stage);
        let size = |s: &Fixed| s.extents[..s.own].iter().product::<f64>() * s.bytes * s.components;
        let goes = goes.map(|s| size(&each[s.0 as usize])).sum::<f64>();
        Some(Known { stages: each, inputs, bytes: come + goes, machine })
    }
}

fn fixed(start: &Schedule, special: &Graph, id: StageId, machine: &Machine) -> Option<Fixed> {
    let stage = special.stage(id);
    let of = |d: &DimId| special.bodies.as_int(special.dim(*d).extent).map(|n| n.max(0) as f64);
    let extents: Vec<f64> = stage.all_dims().iter().map(of).collect::<Option<_>>()?;
    let (points, chained): (&[Body], &[Body]) = match &stage.def {
        Definition::Pure(each) => (each, &[]),
        Definition::Reduce { next, .. } => (next, next),
        Definition::Scatter { .. } | Definition::Recur { .. } => return None,
    };
    if start.steps_of(id).is_some() || extents.len() > DIMS {
        return None;
    }
    let dims = stage.all_dims().iter().enumerate().map(|(k, d)| (*d, k as u8)).collect();
    let reader = Reader { bodies: &special.bodies, dims, stages: special.stages.len() };
    let free = stage.checks.is_empty() && stage.when.is_none() && !start.is_output(id);
    let first = |s: &StageId| reads_first(special, special.stage(*s), id);
    let readers = start.consumers(id);
    let moves = free && !readers.is_empty() && !readers.iter().any(first);
    let ground = Ground::of(start, id, machine);
    let source = |name: &str| {
        let stage = special.find(name).map(|s| s.0 as usize);
        stage.or_else(|| special.inputs.iter().position(|i| i.name == name).map(|k| special.stages.len() + k))
    };
    Some(Fixed {
        own: stage.dims.len(),
        reduces: !stage.over().is_empty(),
        bytes: stage.tys.iter().map(|ty| f64::from(ty.bytes())).fold(1.0, f64::max),
        components: stage.tys.len().max(1) as f64,
        reads: Arc::new(reader.reads(points)),
        wait: LATENCY * reader.chain(chained),
        readers: readers.iter().map(|r| r.0 as usize).collect(),
        inlines: free && matches!(stage.def, Definition::Pure(_)) && !is_left(start, id),
        moves,
        hosts: stage.when.is_none(),
        cheap: free && worth_inlining(start, id),
        lanes: ground.lanes as f64,
        whole: ground.whole,
        few: ground.few,
        packs: ground.packs.into_iter().filter_map(|(name, axes)| Some((source(&name)?, axes))).collect(),
        tiles: tiles(start, id, machine, machine.threads > 1),
        extents,
    })
}

/// Whether a stage reads another before its points: where it decides whether it is computed, in first values, or in checks.
fn reads_first(g: &Graph, reader: &Stage, s: StageId) -> bool {
    let mut all: Vec<Body> = reader.when.iter().chain(&reader.checks).copied().collect();
    if let Definition::Reduce { init, .. } = &reader.def {
        all.extend(init);
    }
    g.reads(all).into_iter().any(|from| from.stage() == Some(s))
}
