//! What is known of the parameters of a region: a part of a body, whose variables in scope stand as parameters.

use super::Graph;
use super::language::{ENode, Label};
use super::range::Range;
use super::trace::{Tid, Trace};
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
        let own: Vec<Tid> = params.iter().map(|p| g[*p].data.origin).collect();
        for (k, known) in self.known.iter().enumerate() {
            let (sizes, number) = &self.guessed[k];
            estimate(g, params[k], *number);
            for (axis, guess) in sizes.iter().enumerate() {
                let size = g.add(ENode::new(Head::Size(axis), [params[k]]));
                estimate(g, size, *guess);
            }
            let mut fact = g[params[k]].data.clone();
            for (axis, dim) in known.dims.iter().enumerate() {
                let Some(term) = *dim else { continue };
                let dim = self.class(g, params, term);
                fact.dims[axis] = Some(dim);
                if axis < known.rank {
                    let size = g.add(ENode::new(Head::Size(axis), [params[k]]));
                    self.given(g, &own, (Some(axis), k, term));
                    g.union(size, dim);
                }
            }
            if let Some(extent) = known.below.map(|e| self.class(g, params, e)) {
                g.analysis.params.below.insert(k as u32, extent);
                let most = g[extent].data.range.hi;
                fact.range = fact.range.meet(Range::new(0.0, (most - 1.0).max(0.0)));
            }
            g.set_analysis_data(params[k], fact);
            if let Some(term) = known.value {
                let value = self.class(g, params, term);
                self.given(g, &own, (None, k, term));
                g.union(params[k], value);
            }
        }
        g.rebuild();
    }

    /// Notes that a size of a parameter, or the parameter itself, is an integer, to the letter.
    fn given(&self, g: &mut Graph, own: &[Tid], (axis, k, term): (Option<usize>, usize, TermId)) {
        let Some(trace) = &mut g.analysis.trace else { return };
        let right = self.concrete(trace, own, term);
        let left = match axis {
            Some(axis) => trace.put(Label::Head(Head::Size(axis)), [own[k]]),
            None => own[k],
        };
        if left != right {
            trace.by(left, right, Axiom::Given.name());
        }
    }

    fn concrete(&self, trace: &mut Trace, own: &[Tid], id: TermId) -> Tid {
        match self.terms.head(id) {
            Head::Var(i, _) => own[own.len() - 1 - i as usize],
            head => {
                let kids: Vec<Tid> = self.terms.kids(id).iter().map(|k| self.concrete(trace, own, *k)).collect();
                trace.put(Label::Head(head), kids)
            }
        }
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
