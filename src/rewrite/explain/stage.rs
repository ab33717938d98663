//! The bodies that a definition became one after the other, by its regions, become the journal of a search.

use super::instance::instances;
use super::lemma::Proved;
use super::linear::LATE;
use super::pace::Pace;
use super::task::{PROOF_SHARE, Task};
use super::terms::Concrete;
use crate::derive::flat::to_body;
use crate::derive::lemma::Lemma;
use crate::derive::unfold::unfold;
use crate::ir::{Id, Terms, Ty};
use crate::rewrite::egraph::journal::{Candidate, Journal};
use crate::rewrite::egraph::trace::{Tid, Trace};
use std::sync::Arc;

/// A body on the way.
pub struct Stage {
    /// With lets.
    pub body: (Terms, Id),
    /// What it costs.
    pub cost: f64,
    /// What was taken to come here from the one before.
    pub lemmas: Vec<Arc<Proved>>,
}

/// The journal of what led from one body to the next.
///
/// # Errors
/// The time is up, or a body is too large without lets.
pub fn journal(task: &Task<'_>, before: &Stage, after: &Stage) -> Result<Journal, String> {
    let stop = || (task.stop)(PROOF_SHARE);
    let (pace, tys) = (Pace::new(&stop), task.def.params.iter().map(|p| p.ty).collect::<Vec<Ty>>());
    let (mut concrete, mut trace) = (Concrete::new(tys.len(), &pace), Trace::default());
    let mut flat = |trace: &mut Trace, (terms, id): &(Terms, Id)| -> Result<((Terms, Id), Tid), String> {
        let mut flat = Terms::default();
        let unfolded = unfold(task.program, task.kept, (terms, *id), &tys, &mut flat);
        let id = unfolded.ok_or("without lets and calls it is too large")?.id;
        let id = to_body(&mut flat, id, tys.len(), 0);
        let here = concrete.of(trace, &flat, id).ok_or(LATE)?;
        Ok(((flat, id), here))
    };
    let (_, from) = flat(&mut trace, &before.body)?;
    let (best, to) = flat(&mut trace, &after.body)?;
    let lemmas: Vec<(&str, &Lemma)> = after.lemmas.iter().map(|p| (p.statement.name.as_str(), &*p.lemma)).collect();
    instances(&mut trace, task.def, (from, to), &lemmas);
    let bests = vec![Candidate { flat: best, shared: after.body.clone(), cost: after.cost }];
    Ok(Journal { trace, starts: vec![], bests })
}
