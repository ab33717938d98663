//! What schedules ask of a graph again and again: which stages read a stage, how often, and in the steps of which
//! recurrence one is computed. It knows nothing of where stages are computed.

use crate::stage::{Body, DimId, Graph, Node, Source, StageId};
use std::collections::BTreeSet;

/// Who reads what, found once for a graph: every step asks.
#[derive(Clone, Debug)]
pub struct Readings {
    /// The stages that read a stage, by its number.
    consumers: Vec<Vec<StageId>>,
    /// Whether a stage is part of the result, or a size.
    outputs: Vec<bool>,
    /// The recurrence in whose steps a stage is computed, by its number.
    steps: Vec<Option<Steps>>,
}

/// The steps of a recurrence that a stage is computed in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Steps {
    /// The stage with the loop over them.
    pub leader: StageId,
    /// Whether what is computed reads a state, so that it waits for the steps before.
    pub waits: bool,
    /// Whether it is a state itself.
    pub state: bool,
}

impl Readings {
    /// What a graph says.
    pub fn of(graph: &Graph) -> Readings {
        let n = graph.stages.len();
        let mut out = Readings { consumers: vec![vec![]; n], outputs: vec![false; n], steps: vec![None; n] };
        for s in graph.ids() {
            for p in graph.reads(graph.stage(s).bodies()).into_iter().filter_map(Source::stage) {
                if graph.stage(p).recurrence().is_some_and(|of| graph.stage(s).is_in(of)) {
                    continue;
                }
                // What reads states after their recurrence reads what the recurrence computes.
                let known = &mut out.consumers[graph.leader(p).0 as usize];
                if known.last() != Some(&s) {
                    known.push(s);
                }
            }
        }
        out.states(graph);
        let named = graph.reads(graph.dims.iter().map(|d| d.extent));
        for p in graph.handed().into_iter().chain(named).filter_map(Source::stage) {
            out.outputs[p.0 as usize] = true;
            out.outputs[graph.leader(p).0 as usize] = true;
        }
        out
    }

    /// The stages that read a stage; of a state, the stage with the loop over its steps.
    pub fn consumers(&self, of: StageId) -> &[StageId] {
        &self.consumers[of.0 as usize]
    }

    /// Whether a stage is part of the result, or a size.
    pub fn is_output(&self, of: StageId) -> bool {
        self.outputs[of.0 as usize]
    }

    /// The steps of a recurrence that a stage is computed in.
    pub fn steps(&self, of: StageId) -> Option<Steps> {
        self.steps[of.0 as usize]
    }

    /// The stages that are computed in steps of recurrences.
    fn states(&mut self, graph: &Graph) {
        let of: Vec<(StageId, DimId)> = graph.ids().filter_map(|s| graph.stage(s).recurrence()).collect();
        if of.is_empty() {
            return;
        }
        let waits = waits(graph, &of);
        for s in graph.ids() {
            let own = graph.stage(s);
            self.steps[s.0 as usize] = match own.recurrence() {
                Some((leader, _)) if leader != s => {
                    self.consumers[s.0 as usize] = vec![leader];
                    Some(Steps { leader, waits: true, state: true })
                }
                // The innermost one.
                _ => own
                    .dims
                    .iter()
                    .rev()
                    .find_map(|d| of.iter().find(|(_, each)| each == d))
                    .map(|(leader, _)| Steps { leader: *leader, waits: !waits[s.0 as usize].is_empty(), state: false }),
            };
        }
    }
}

/// The recurrences whose states a stage, or what is computed in its steps, reads for a step.
fn waits(graph: &Graph, of: &[(StageId, DimId)]) -> Vec<BTreeSet<StageId>> {
    let mut out: Vec<BTreeSet<StageId>> = vec![BTreeSet::new(); graph.stages.len()];
    let order = graph.order();
    loop {
        let before = out.clone();
        for s in &order {
            let own = graph.stage(*s);
            let mut all = std::mem::take(&mut out[s.0 as usize]);
            for from in graph.reads(own.bodies()) {
                let Some(p) = from.stage() else { continue };
                match graph.stage(p).recurrence() {
                    Some(of) if own.is_in(of) => drop(all.insert(of.0)),
                    _ => all.extend(&out[graph.leader(p).0 as usize]),
                }
            }
            let around = of.iter().filter(|of| own.is_in(**of)).map(|(leader, _)| *leader);
            for leader in around.filter(|l| l != s) {
                out[leader.0 as usize].extend(all.iter().filter(|l| **l != leader));
            }
            // Its own states are no others.
            all.remove(s);
            out[s.0 as usize].extend(all);
        }
        if out == before {
            return out;
        }
    }
}

/// At how many places a stage reads another.
pub(super) fn places(g: &Graph, reader: StageId, of: StageId) -> i64 {
    let bodies = &g.bodies;
    let is_read = |b: &Body| matches!(bodies.node(*b), Node::Load(Source::Stage(p, _), _, _) if *p == of);
    bodies.reachable(g.stage(reader).bodies()).iter().filter(|b| is_read(b)).count() as i64
}

/// How often a stage reads elements of another.
pub(super) fn reads(g: &Graph, reader: StageId, of: StageId) -> Option<i64> {
    let known = g.stage(reader);
    let loops: Vec<DimId> = known.dims[..known.looped()].iter().chain(known.over()).copied().collect();
    g.points(&loops)?.checked_mul(places(g, reader, of))
}
