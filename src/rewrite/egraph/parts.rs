//! What holds for any number of parts, and so is no line of a rule file: a part of a tuple, tuples
//! added and summed by part, and sizes that are known.

use super::Graph;
use super::graph::{Step, Traced};
use super::language::{ENode, Label};
use super::sizes::size_of;
use super::trace::Tid;
use crate::derive::axioms::Axiom;
use crate::ir::Head;
use egg::Id;

/// Applies what is known to every node, while there are fewer nodes than `most`; whether anything changed.
pub fn simplify(g: &mut Graph, most: usize) -> bool {
    let mut found: Vec<(Id, ENode, Simpler)> = vec![];
    for class in g.classes() {
        for node in &class.nodes {
            if let Some(made) = simpler(g, node) {
                found.push((class.id, node.clone(), made));
            }
        }
    }
    let mut changed = false;
    for (class, node, made) in found {
        if g.total_size() >= most {
            break;
        }
        let lost = match &made {
            Simpler::Class(_) => node.kids.to_vec(),
            Simpler::Parts(_) => vec![],
        };
        record(g, &node, &made);
        let to = match made {
            Simpler::Class(to) => to,
            Simpler::Parts(parts) => {
                let ids: Vec<Id> = parts.into_iter().map(|p| g.add(p)).collect();
                g.add(ENode::new(Head::Tuple, ids))
            }
        };
        if g.union(class, to) {
            changed = true;
            g.analysis.steps.push(Step { root: node, left: vec![], right: vec![], lost });
        }
    }
    g.rebuild();
    changed
}

/// Records why a node equals what is simpler.
fn record(g: &mut Graph, node: &ENode, made: &Simpler) {
    if g.analysis.trace.is_none() {
        return;
    }
    if let Label::Head(Head::Size(axis)) = node.label {
        return size_of(g, node.kids[0], axis);
    }
    let by_part = |g: &mut Graph, id: Id| match tuple_of(g, id) {
        Some(parts) => g.concrete(&ENode::new(Head::Tuple, parts)),
        None => g[id].data.origin,
    };
    let kids: Vec<Tid> = node.kids.iter().map(|k| by_part(g, *k)).collect();
    let left = g.concrete_of(node.label, &kids);
    let (right, axiom) = match made {
        Simpler::Class(to) => (g[*to].data.origin, Axiom::Part),
        Simpler::Parts(parts) => {
            let parts: Vec<Tid> = parts.iter().map(|p| g.concrete(p)).collect();
            (g.concrete_of(Label::Head(Head::Tuple), &parts), Axiom::Parts)
        }
    };
    if let Some(trace) = &mut g.analysis.trace {
        trace.by(left, right, axiom.name());
    }
}

enum Simpler {
    Class(Id),
    Parts(Vec<ENode>),
}

/// The size of an axis of the outer tensor. Sizes inside of it are 0 where it is empty, whatever its
/// elements would have.
pub fn size(g: &Graph, tensor: Id, axis: usize) -> Option<Id> {
    let fact = &g[tensor].data;
    let (rank, _) = fact.ty.as_tensor()?;
    fact.dims.get(axis).copied().flatten().filter(|_| axis < rank)
}

fn tuple_of(g: &Graph, id: Id) -> Option<Vec<Id>> {
    g[id].nodes.iter().find(|n| n.label == Label::Head(Head::Tuple)).map(|n| n.kids.to_vec())
}

fn simpler(g: &Graph, node: &ENode) -> Option<Simpler> {
    let head = node.head()?;
    let kids = &node.kids;
    match head {
        Head::Get(i, _) => tuple_of(g, kids[0]).map(|parts| Simpler::Class(parts[i as usize])),
        Head::Size(k) => size(g, kids[0], k).map(Simpler::Class),
        Head::Op(op) if kids.iter().any(|k| g[*k].data.ty.as_tuple().is_some_and(|p| !p.is_empty())) => {
            let parts: Vec<Option<Vec<Id>>> = kids.iter().map(|k| tuple_of(g, *k)).collect();
            let n = parts.iter().flatten().map(Vec::len).next()?;
            let whole = |k: usize| g[kids[k]].data.ty.as_tuple().is_none();
            if (0..kids.len()).any(|k| parts[k].is_none() && !whole(k)) {
                return None;
            }
            let at = |i: usize| kids.iter().zip(&parts).map(move |(k, p)| p.as_ref().map_or(*k, |p| p[i]));
            Some(Simpler::Parts((0..n).map(|i| ENode::new(Head::Op(op), at(i))).collect()))
        }
        Head::Reduce(m, d) => {
            let parts = tuple_of(g, kids[d]).filter(|p| !p.is_empty())?;
            let with = |p: &Id| ENode::new(Head::Reduce(m, d), kids[..d].iter().copied().chain([*p]));
            Some(Simpler::Parts(parts.iter().map(with).collect()))
        }
        _ => None,
    }
}
