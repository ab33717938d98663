//! Steps that lead away and back are left out, where the others still lead to the result.
//!
//! A proof takes each equation from where it stands, so one part of it may undo what another did. It
//! must not know how steps are checked: whether a shorter list is good is asked.

use crate::derive::Step;
use crate::ir::Id;
use rustc_hash::FxHashMap;

/// Pairs of steps that undo each other are left out so often at most, and so many steps are taken for that in all.
const MAX_TRIES: usize = 20;
const MAX_TAKEN: usize = 2000;
/// Steps between two that undo each other, at most.
const REACH: usize = 12;

/// The shortest list that was found and is `good`, which `steps` are. `programs` stand before the first
/// step and after each.
pub fn shorten(steps: Vec<Step>, programs: &[Id], good: &mut dyn FnMut(&[Step]) -> bool) -> Vec<Step> {
    let straight = without_returns(&steps, programs);
    let mut steps = if straight.len() < steps.len() && good(&straight) { straight } else { steps };
    let (mut tries, mut taken, mut first) = (0, 0, 0);
    while first < steps.len() && tries < MAX_TRIES && taken < MAX_TAKEN {
        let undone = (first + 1..steps.len().min(first + REACH)).find(|k| undoes(&steps[first], &steps[*k]));
        let shorter = undone.map(|second| {
            let kept = steps.iter().enumerate().filter(|(k, _)| *k != first && *k != second);
            kept.map(|(_, step)| step.clone()).collect::<Vec<_>>()
        });
        tries += usize::from(shorter.is_some());
        taken += shorter.as_ref().map_or(0, Vec::len);
        match shorter.filter(|s| good(s)) {
            // What stood around them may undo each other now.
            Some(shorter) => (steps, first) = (shorter, first.saturating_sub(REACH)),
            None => first += 1,
        }
    }
    steps
}

/// The steps without those between two equal programs.
fn without_returns(steps: &[Step], programs: &[Id]) -> Vec<Step> {
    let last: FxHashMap<Id, usize> = programs.iter().enumerate().map(|(k, id)| (*id, k)).collect();
    let (mut out, mut at) = (vec![], last.get(&programs[0]).copied().unwrap_or(0));
    while at < steps.len() {
        out.push(steps[at].clone());
        at = last.get(&programs[at + 1]).copied().unwrap_or(at + 1);
    }
    out
}

/// Whether a step could be another one in the other direction.
fn undoes(one: &Step, other: &Step) -> bool {
    one.by == other.by && one.at == other.at && one.to.is_some() != other.to.is_some()
}
