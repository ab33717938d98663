//! Why a tensor has the size that is known of its class, for the trace.

use super::Graph;
use super::graph::Traced;
use super::language::{ENode, Label};
use super::trace::Tid;
use crate::derive::axioms::Axiom;
use crate::ir::Head;
use egg::Id;

/// Records why the size of an axis is what the class's facts say.
pub fn size_of(g: &mut Graph, tensor: Id, axis: usize) {
    if g.analysis.trace.is_none() {
        return;
    }
    let Some(want) = g[tensor].data.dims.get(axis).copied().flatten() else { return };
    if let Some((term, size)) = found(g, tensor, axis, want, &mut vec![]) {
        let left = g.concrete_of(Label::Head(Head::Size(axis)), &[term]);
        if let Some(trace) = &mut g.analysis.trace {
            trace.by(left, size, Axiom::Size.name());
        }
    }
}

/// A member of a class that shows its size, and the size.
fn found(g: &mut Graph, id: Id, axis: usize, want: Id, open: &mut Vec<(Id, usize)>) -> Option<(Tid, Tid)> {
    let id = g.find(id);
    if open.contains(&(id, axis)) {
        return None;
    }
    open.push((id, axis));
    let nodes = g[id].nodes.clone();
    let out = nodes.iter().find_map(|n| of_node(g, n, axis, want, open));
    open.pop();
    out
}

/// Where the size of a node's axis comes from: a child that is the size, or a child's axis.
enum From {
    Kid(usize),
    Axis(usize, usize),
    /// Both arms of an `if`.
    Arms,
    Itself,
}

fn from(g: &Graph, node: &ENode, axis: usize) -> Option<From> {
    let Label::Head(head) = node.label else {
        return matches!(node.label, Label::Param(..)).then_some(From::Itself);
    };
    let ty = |k: usize| g[node.kids[k]].data.ty;
    let made = |d: usize, element: usize| if axis < d { From::Kid(axis) } else { From::Axis(element, axis - d) };
    Some(match head {
        Head::Build(d) | Head::ConstVec(d) => made(d, d),
        Head::DeltaVec(d) => made(d, 2 * d),
        Head::Scatter(_) => From::Kid(axis),
        Head::Index(d) => From::Axis(d, axis + d),
        Head::Sum => From::Axis(0, axis + ty(0).as_tensor()?.0),
        Head::Reduce(_, d) => From::Axis(d, axis),
        Head::If => From::Arms,
        Head::Assert => From::Axis(1, axis),
        Head::Fold => From::Axis(0, axis),
        Head::Scan if axis == 0 => From::Kid(1),
        Head::Scan => From::Axis(0, axis - 1),
        Head::VecInit if axis > 0 => From::Axis(0, axis - 1),
        Head::Op(_) => From::Axis((0..node.kids.len()).find(|k| ty(*k).axes() > 0)?, axis),
        _ => return None,
    })
}

fn of_node(g: &mut Graph, node: &ENode, axis: usize, want: Id, open: &mut Vec<(Id, usize)>) -> Option<(Tid, Tid)> {
    match from(g, node, axis)? {
        From::Itself => {
            let term = g.concrete(node);
            Some((term, g.concrete_of(Label::Head(Head::Size(axis)), &[term])))
        }
        From::Kid(k) => {
            let size = g[node.kids[k]].data.origin;
            (g.find(node.kids[k]) == g.find(want)).then(|| (g.concrete(node), size))
        }
        From::Arms => {
            let (a, size) = found(g, node.kids[1], axis, want, open)?;
            let (b, other) = found(g, node.kids[2], axis, want, open)?;
            let condition = g[node.kids[0]].data.origin;
            (size == other).then(|| (g.concrete_of(node.label, &[condition, a, b]), size))
        }
        From::Axis(k, inner) => {
            let (kid, size) = found(g, node.kids[k], inner, want, open)?;
            let mut kids: Vec<Tid> = node.kids.iter().map(|k| g[*k].data.origin).collect();
            kids[k] = kid;
            Some((g.concrete_of(node.label, &kids), size))
        }
    }
}
