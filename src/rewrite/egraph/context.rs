//! What is known of the parameters of a region: a part of a body, whose variables in scope stand as parameters.

use super::Graph;
use super::language::{ENode, Label};
use super::range::Range;
use crate::derive::axioms::Axiom;
use crate::ir::{Head, Id as TermId, Terms};

/// What is known of parameters, one entry each: terms over the parameters themselves, of integers alone.
#[derive(Clone, Default)]
pub struct Context {
    /// The arena.
    pub terms: Terms,
    /// Of each parameter; nothing where it is one of a definition.
    pub known: Vec<Known>,
    /// What is guessed of each: its sizes by axis, and the number that it is.
    pub guessed: Vec<(Vec<f64>, f64)>,
}

/// What is known of a parameter.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub struct Known {
    /// Its sizes, one an axis through nested tensors.
    pub dims: Vec<Option<TermId>>,
    /// The axes of the outer tensor: inner sizes are 0 where that is empty.
    pub rank: usize,
    /// The integer that it is.
    pub value: Option<TermId>,
    /// It is the index of a loop that runs so often.
    pub below: Option<TermId>,
    /// It may have no value over the reals, as what is computed from parameters may.
    pub undefined: bool,
}

impl Context {
    /// Says, before parameters are added, which of them may have no value over the reals.
    pub fn announce(&self, g: &mut Graph) {
        let undefined = (0u32..).zip(&self.known).filter(|(_, known)| known.undefined);
        g.analysis.params.undefined = undefined.map(|(k, _)| k).collect();
    }

    /// Tells an e-graph what is known of its parameters.
    pub fn tell(&self, g: &mut Graph, params: &[egg::Id]) {
        for (k, known) in self.known.iter().enumerate() {
            let (sizes, number) = &self.guessed[k];
            estimate(g, params[k], *number);
            for (axis, guess) in sizes.iter().enumerate() {
                let size = g.add(ENode::new(Head::Size(axis), [params[k]]));
                estimate(g, size, *guess);
            }
            let mut fact = g[params[k]].data.clone();
            for (axis, dim) in known.dims.iter().enumerate() {
                let Some(dim) = dim.map(|d| self.class(g, params, d)) else { continue };
                fact.dims[axis] = Some(dim);
                if axis < known.rank {
                    let size = g.add(ENode::new(Head::Size(axis), [params[k]]));
                    given(g, size, dim);
                }
            }
            if let Some(extent) = known.below.map(|e| self.class(g, params, e)) {
                g.analysis.params.below.insert(k as u32, extent);
                let most = g[extent].data.range.hi;
                fact.range = fact.range.meet(Range::new(0.0, (most - 1.0).max(0.0)));
            }
            g.set_analysis_data(params[k], fact);
            if let Some(value) = known.value.map(|v| self.class(g, params, v)) {
                given(g, params[k], value);
            }
        }
        g.rebuild();
    }

    fn class(&self, g: &mut Graph, params: &[egg::Id], id: TermId) -> egg::Id {
        match self.terms.head(id) {
            Head::Var(i, _) => params[params.len() - 1 - i as usize],
            head => {
                let kids: Vec<egg::Id> = self.terms.kids(id).iter().map(|k| self.class(g, params, *k)).collect();
                g.add(ENode::new(head, kids))
            }
        }
    }
}

/// Says that two classes are equal, as is known.
fn given(g: &mut Graph, a: egg::Id, b: egg::Id) {
    let (left, right) = (g[a].data.origin, g[b].data.origin);
    if let Some(trace) = &mut g.analysis.trace {
        trace.by(left, right, Axiom::Given.name());
    }
    g.union(a, b);
}

fn estimate(g: &mut Graph, id: egg::Id, guess: f64) {
    let mut fact = g[id].data.clone();
    fact.estimate = guess;
    g.set_analysis_data(id, fact);
}

/// Whether a node is the index of a loop of so many rounds that runs around the region.
pub fn runs_below(g: &Graph, node: &ENode, n: egg::Id) -> bool {
    let Label::Param(k, _) = node.label else { return false };
    g.analysis.params.below.get(&k).is_some_and(|extent| g.find(*extent) == g.find(n))
}
