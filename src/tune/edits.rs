//! The steps of a schedule become those of another one: a number is changed, a step left out, loops change places, or a stage
//! is scheduled anew.
//!
//! The new list is taken again from the start. What is refused there is left out, and a stage that loses the loop that it was
//! computed in finds another one; so any edit of any schedule, found, default or by hand, is a schedule. Steps that change
//! bits stay as they are, and so do those that all schedules of the space begin with.

use super::model::Model;
use super::tree::{Choice, Judge, Judged, Place, Tree};
use crate::schedule::Step;
use crate::schedule::plan::{Kind, Schedule, Site};
use crate::schedule::tiling::{Tiling, blocks};
use crate::stage::StageId;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rayon::prelude::*;

/// Edits of one offspring at most.
const EDITS: usize = 3;
/// Lengths of parts that are tried beside half and twice as much.
const FACTORS: [i64; 12] = [2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 64, 128];

/// Schedules that differ from others in a few edits, judged, best first.
pub fn offspring(tree: &Tree<'_>, model: &Model, parents: &[Schedule], count: usize, seed: u64) -> Vec<Judged> {
    let judge = Judge::new(model, count);
    let one = |k: usize| {
        let mut rng = StdRng::seed_from_u64(seed.wrapping_mul(0x9e37_79b9).wrapping_add(k as u64));
        let mut s = parents.choose(&mut rng)?.clone();
        for _ in 0..rng.random_range(1..=EDITS) {
            s = edited(tree, &s, &mut rng)?;
        }
        judge.judged(tree, s)
    };
    let each: Vec<Option<Judged>> = (0..count).into_par_iter().map(one).collect();
    let mut kept = Judge::new(model, count);
    each.into_iter().flatten().for_each(|j| kept.keep(j));
    kept.best()
}

/// A schedule after one edit; nothing where there is nothing to edit.
pub fn edited(tree: &Tree<'_>, s: &Schedule, rng: &mut StdRng) -> Option<Schedule> {
    let free: Vec<usize> = (tree.kept()..s.steps.len()).filter(|k| !s.steps[*k].is_rewrite()).collect();
    let at = *free.choose(rng)?;
    let stage = s.steps[at].stage().to_string();
    if rng.random_bool(0.3) {
        return Some(anew(tree, s, &stage, rng));
    }
    let mut steps = s.steps.clone();
    match &mut steps[at] {
        Step::Split { factor, of, .. } => {
            let lanes = s.graph.find(&stage).is_some_and(|id| {
                let plan = s.plan(id);
                let vector = |name: &str| plan.loops.iter().any(|l| l.kind == Kind::Vector && l.name == name);
                plan.splits.iter().any(|p| p.of == *of && vector(&p.inner))
            });
            *factor = other(*factor, lanes, rng);
        }
        Step::Reorder { order, .. } if order.len() > 1 => {
            let k = rng.random_range(1..order.len());
            order.swap(k - 1, k);
        }
        Step::ComputeAt { .. } | Step::ComputeRoot { .. } | Step::Inline { .. } => {
            return Some(anew(tree, s, &stage, rng));
        }
        _ => drop(steps.remove(at)),
    }
    Some(again(tree, &steps, rng))
}

/// Another length of parts; those of vectors stay powers of two.
fn other(factor: i64, lanes: bool, rng: &mut StdRng) -> i64 {
    let near = [factor / 2, factor * 2];
    let far = FACTORS.iter().copied().filter(|_| !lanes);
    let all: Vec<i64> = near.into_iter().chain(far).filter(|n| *n > 1 && *n != factor).collect();
    all.choose(rng).copied().unwrap_or(2)
}

/// The schedule of a list of steps, without those that are refused.
fn again(tree: &Tree<'_>, steps: &[Step], rng: &mut StdRng) -> Schedule {
    let mut s = tree.empty().clone();
    let mut lost = vec![];
    for step in steps.iter().filter(|step| !step.is_rewrite()) {
        if step.apply(&mut s).is_err() && matches!(step, Step::ComputeAt { .. }) {
            lost.push(step.stage());
        }
    }
    let lost: Vec<StageId> = lost.into_iter().filter_map(|name| s.graph.find(name)).collect();
    for stage in lost {
        let places = tree.places(&s, stage);
        let near: Vec<Place> = places.into_iter().filter(|p| matches!(p, Place::At(..))).collect();
        if let Some(place) = near.choose(rng) {
            tree.place(&mut s, stage, *place);
        }
    }
    s
}

/// The schedule with other loops for a stage, and perhaps another place for it.
fn anew(tree: &Tree<'_>, s: &Schedule, stage: &str, rng: &mut StdRng) -> Schedule {
    let stays = |k: usize, step: &Step| match step {
        Step::Fuse { .. } | Step::IfConvert { .. } => true,
        _ if step.is_rewrite() || k < tree.kept() => true,
        _ => step.stage() != stage,
    };
    let place = |step: &&Step| matches!(step, Step::ComputeAt { .. } | Step::ComputeRoot { .. } | Step::Inline { .. });
    let sited = s.steps.iter().rev().find(|step| step.stage() == stage && place(step)).cloned();
    let left: Vec<Step> =
        s.steps.iter().enumerate().filter(|(k, step)| stays(*k, step)).map(|(_, s)| s.clone()).collect();
    let mut s = again(tree, &left, rng);
    let Some(id) = s.graph.find(stage) else { return s };
    let (free, loops) = tree.is_open(id);
    let placed = match sited {
        _ if !free => true,
        Some(step) if rng.random_bool(0.5) => step.apply(&mut s).is_ok(),
        sited => sited.is_none() && rng.random_bool(0.7),
    };
    if !placed {
        match tree.places(&s, id).choose(rng) {
            Some(Place::Root) | None => drop(Step::ComputeRoot { stage: stage.to_string() }.apply(&mut s)),
            Some(place) => drop(tree.place(&mut s, id, *place)),
        }
    }
    if loops && s.plan(id).site != Site::Inline {
        let tiles = tree.tilings(&s, id);
        let tile = tiles.choose(rng).copied().unwrap_or(Tiling::plain());
        let tiling = match blocks(&s, id, &tile).choose(rng) {
            Some(blocked) if rng.random_bool(0.6) => *blocked,
            _ => tile,
        };
        tree.decide(&mut s, id, &Choice { place: Place::Root, tiling });
    }
    s
}
