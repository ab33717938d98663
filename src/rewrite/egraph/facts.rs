//! What is known of one e-node from what is known of its children: pure functions of facts.

use super::Graph;
use super::context;
use super::language::{ENode, Label};
use super::range::Range;
use crate::ir::op::{Bounds, Domain};
use crate::ir::{Head, Lit, Monoid, Op, Ty};
use egg::Id;
use smallvec::SmallVec;

fn range(g: &Graph, id: Id) -> Range {
    g[id].data.range
}

/// Whether an index is proved to lie in `0..n`.
pub fn in_range(g: &Graph, index: Id, n: Id) -> bool {
    let (i, size) = (range(g, index), range(g, n));
    runs_below(g, index, n) || mirrored(g, index, n) || (i.lo >= 0.0 && i.hi < size.lo)
}

/// Whether an index is that of a loop of so many rounds.
fn runs_below(g: &Graph, index: Id, n: Id) -> bool {
    let extent = |e: &ENode| e.kids.first().is_some_and(|extent| g.find(*extent) == g.find(n));
    let bound = |e: &ENode| matches!(e.label, Label::Head(Head::Var(..))) && extent(e);
    g[index].nodes.iter().any(|e| bound(e) || context::runs_below(g, e, n))
}

/// Whether an index is `n - 1 - i`, where `i` is that of a loop of `n` rounds: it goes by the same elements,
/// last one first.
fn mirrored(g: &Graph, index: Id, n: Id) -> bool {
    let differences = |id: Id| g[id].nodes.iter().filter(|e| e.label == Label::Head(Head::Op(Op::Sub)));
    let last = |id: Id| {
        differences(id).any(|e| g.find(e.kids[0]) == g.find(n) && g[e.kids[1]].data.konst == Some(Lit::int(1)))
    };
    differences(index).any(|e| g[index].data.ty == Ty::int() && runs_below(g, e.kids[1], n) && last(e.kids[0]))
}

/// Whether two tensors are known to have equal sizes on all axes.
pub fn same_dims(g: &Graph, a: Id, b: Id) -> bool {
    let (x, y) = (&g[a].data.dims, &g[b].data.dims);
    !x.is_empty()
        && x.len() == y.len()
        && x.iter().zip(y).all(|(p, q)| p.zip(*q).is_some_and(|(p, q)| g.find(p) == g.find(q)))
}

fn sizes_known(g: &Graph, id: Id) -> bool {
    let d = &g[id].data;
    d.dims.iter().all(Option::is_some) && (d.ty.axes() > 0 || !d.ty.has_tensor())
}

fn natural(g: &Graph, ids: &[Id]) -> bool {
    ids.iter().all(|n| range(g, *n).lo >= 0.0)
}

/// Whether the node itself cannot fail where its children have values.
pub fn node_total(g: &Graph, node: &ENode) -> bool {
    let Label::Head(head) = node.label else { return true };
    let kids = &node.kids;
    let ty = |k: usize| g[kids[k]].data.ty;
    match head {
        Head::Const(_) | Head::Var(..) | Head::Let | Head::If | Head::Tuple | Head::Get(..) => true,
        Head::Cast(_) | Head::Size(_) => true,
        Head::Op(op) => {
            let tensors: Vec<Id> = kids.iter().copied().filter(|k| g[*k].data.ty.has_tensor()).collect();
            let divisor = |k: usize| !op.is_partial(ty(0)) || range(g, kids[k]).nonzero;
            match tensors.as_slice() {
                [] => kids.len() < 2 || divisor(1),
                [_] => true,
                [a, b, ..] => same_dims(g, *a, *b),
            }
        }
        Head::Assert => g[kids[0]].data.konst == Some(Lit::Bool(true)),
        Head::Build(d) => natural(g, &kids[..d]) && sizes_known(g, kids[d]),
        Head::Reduce(_, d) => natural(g, &kids[..d]) && sizes_known(g, kids[d]),
        Head::ConstVec(d) => natural(g, &kids[..d]),
        Head::DeltaVec(d) => natural(g, &kids[..d]),
        Head::Arg(_) => range(g, kids[0]).lo >= 1.0,
        Head::Sum => !g[kids[0]].data.ty.as_tensor().is_some_and(|(_, e)| e.has_tensor()) || sizes_known(g, kids[0]),
        Head::Index(d) => {
            let dims = &g[kids[d]].data.dims;
            (0..d).all(|k| dims.get(k).copied().flatten().is_some_and(|n| in_range(g, kids[k], n)))
        }
        Head::Fold | Head::Scan => {
            (head == Head::Fold || natural(g, &kids[1..2])) && (!ty(0).has_tensor() || same_dims(g, kids[0], kids[2]))
        }
        Head::VecInit => !ty(0).has_tensor() || kids[1..].iter().all(|k| same_dims(g, kids[0], *k)),
        Head::Call(_) | Head::Scatter(_) | Head::Print => false,
    }
}

/// Whether the node has a value over the real numbers where its children have: no division by 0, no
/// logarithm or root outside its domain.
pub fn node_defined(g: &Graph, node: &ENode) -> bool {
    let head = match node.label {
        Label::Head(head) => head,
        Label::Param(k, _) => return !g.analysis.params.undefined.contains(&k),
        Label::Unknown => return true,
    };
    let r = |k: usize| range(g, node.kids[k]);
    match head {
        // The state of a fold starts from what may be infinite, and so may the elements be.
        Head::Var(_, ty) => ty.as_scalar().is_some_and(|s| !s.is_float()),
        Head::Op(op) => match op.row().domain {
            Domain::All => true,
            Domain::Divisor => r(1).nonzero,
            Domain::Positive => r(0).lo > 0.0 || (r(0).lo >= 0.0 && r(0).nonzero),
            Domain::Natural => r(0).lo >= 0.0,
            Domain::Unit => r(0).lo >= -1.0 && r(0).hi <= 1.0,
            Domain::Power => r(0).lo > 0.0 || r(1).lo >= 0.0 && op == Op::Pow,
            Domain::Unknown => false,
        },
        Head::Reduce(m, _) => m == Monoid::Add || m == Monoid::Mul || node.kids.len() < 2,
        Head::Call(_) => false,
        _ => true,
    }
}

/// Whether the node divides: then it has a value where its children have and the divisor is not 0.
pub fn node_divides(node: &ENode) -> bool {
    node.label == Label::Head(Head::Op(Op::Div))
}

/// The sizes of a tensor by axis: classes of closed terms.
pub fn node_dims(g: &Graph, node: &ENode, ty: Ty) -> Vec<Option<Id>> {
    let axes = ty.axes();
    if axes == 0 {
        return vec![];
    }
    let Label::Head(head) = node.label else { return vec![None; axes] };
    let kids = &node.kids;
    let closed = |id: Id| g[id].data.free.is_closed().then_some(id);
    let of = |id: Id| -> Vec<Option<Id>> { g[id].data.dims.iter().map(|d| d.and_then(closed)).collect() };
    let with = |sizes: &[Id], inner: Vec<Option<Id>>| -> Vec<Option<Id>> {
        sizes.iter().map(|s| closed(*s)).chain(inner).collect()
    };
    let dims = match head {
        Head::Build(d) | Head::ConstVec(d) => with(&kids[..d], of(kids[d])),
        Head::DeltaVec(d) => with(&kids[..d], of(kids[2 * d])),
        Head::Scatter(d) => with(&kids[..d], vec![]),
        Head::Index(d) => g[kids[d]].data.dims.iter().skip(d).copied().collect(),
        Head::Sum => {
            let rank = g[kids[0]].data.ty.as_tensor().map_or(0, |(r, _)| r);
            g[kids[0]].data.dims.iter().skip(rank).copied().collect()
        }
        Head::Reduce(_, d) => of(kids[d]),
        Head::Assert => of(kids[1]),
        Head::Fold => of(kids[0]),
        Head::Scan => with(&kids[1..2], of(kids[0])),
        Head::If if same_dims(g, kids[1], kids[2]) => of(kids[1]),
        Head::Op(_) => kids.iter().find(|k| g[**k].data.ty.axes() == axes).map_or(vec![], |k| of(*k)),
        Head::VecInit => {
            let mut dims = vec![None];
            dims.extend(of(kids[0]));
            dims
        }
        _ => vec![],
    };
    if dims.len() == axes { dims } else { vec![None; axes] }
}

/// Bounds of a number, over the reals: rounding is ignored, so they serve `real` rules on floats,
/// and every rule on integers, where overflow gives no bounds.
pub fn node_range(g: &Graph, node: &ENode, ty: Ty) -> Range {
    let Some(scalar) = ty.as_scalar() else { return Range::ALL };
    let Label::Head(head) = node.label else { return Range::ALL };
    let r = |k: usize| range(g, node.kids[k]);
    let out = match head {
        Head::Const(l) => l.to_f64().map_or(Range::ALL, Range::point),
        Head::Size(_) => Range::new(0.0, Range::SIZE),
        Head::Arg(_) => Range::new(0.0, Range::SIZE),
        Head::Var(..) => {
            // An index variable exists only where its loop runs, so its extent is at least 1.
            match node.kids.first().map(|k| &g[*k]) {
                Some(ext) if ext.data.ty == Ty::int() => Range::new(0.0, (ext.data.range.hi - 1.0).max(0.0)),
                _ => Range::ALL,
            }
        }
        Head::If => r(1).hull(r(2)),
        Head::Assert => r(1),
        Head::Op(op) => {
            operation(op, &(0..node.kids.len()).map(r).collect::<SmallVec<[Range; 3]>>(), node, scalar.is_float())
        }
        Head::Reduce(Monoid::Add, d) if r(d).lo >= 0.0 && scalar.is_float() => Range::new(0.0, f64::INFINITY),
        Head::Sum => match g[node.kids[0]].data.range.lo >= 0.0 {
            true => Range::new(0.0, f64::INFINITY),
            false => Range::ALL,
        },
        _ => Range::ALL,
    };
    let (lo, hi) = scalar.range();
    let inside = scalar.is_float()
        || (out.lo >= lo as f64 && out.hi <= hi as f64 && out.hi < Range::EXACT && out.lo > -Range::EXACT);
    if inside { out } else { Range::ALL }
}

/// `float` says that the operands are floats: a quotient of integers truncates, and may be 0.
fn operation(op: Op, r: &[Range], node: &ENode, float: bool) -> Range {
    let same = |a: usize, b: usize| node.kids[a] == node.kids[b];
    match op {
        Op::Add => r[0].plus(r[1]),
        Op::Sub => r[0].plus(r[1].negated()),
        Op::Mul if same(0, 1) => {
            let top = r[0].lo.abs().max(r[0].hi.abs());
            Range { lo: 0.0, hi: top * top, nonzero: r[0].nonzero }
        }
        Op::Mul => r[0].times(r[1]),
        Op::Neg => r[0].negated(),
        Op::Div if r[0].lo >= 0.0 && r[1].lo >= 0.0 && r[1].nonzero => {
            Range { lo: 0.0, hi: f64::INFINITY, nonzero: r[0].nonzero && float }
        }
        Op::Div if float => Range { nonzero: r[0].nonzero && r[1].nonzero, ..Range::ALL },
        Op::Min | Op::Minimum => {
            Range { lo: r[0].lo.min(r[1].lo), hi: r[0].hi.min(r[1].hi), nonzero: r[0].nonzero && r[1].nonzero }
        }
        Op::Max | Op::Maximum => {
            Range { lo: r[0].lo.max(r[1].lo), hi: r[0].hi.max(r[1].hi), nonzero: r[0].nonzero && r[1].nonzero }.tidy()
        }
        Op::Abs => {
            Range { lo: r[0].lo.max(-r[0].hi).max(0.0), hi: r[0].lo.abs().max(r[0].hi.abs()), nonzero: r[0].nonzero }
        }
        Op::ToFloat => r[0],
        Op::Select => r[1].hull(r[2]),
        Op::Mod | Op::FloorMod if r[0].lo >= 0.0 && r[1].lo > 0.0 => Range::new(0.0, r[0].hi.min(r[1].hi - 1.0)),
        Op::FloorMod if r[1].lo > 0.0 => Range::new(0.0, r[1].hi - 1.0),
        Op::FloorDiv if r[0].lo >= 0.0 && r[1].lo > 0.0 => Range::new(0.0, r[0].hi),
        Op::BitAnd if r[0].lo >= 0.0 && r[1].lo >= 0.0 => Range::new(0.0, r[0].hi.min(r[1].hi)),
        Op::Shr if r[0].lo >= 0.0 => Range::new(0.0, r[0].hi),
        _ => match op.row().bounds {
            Bounds::Any | Bounds::Own => Range::ALL,
            Bounds::Within(lo, hi) => Range::new(lo, hi),
            Bounds::Positive => Range { lo: 0.0, hi: f64::INFINITY, nonzero: true },
            Bounds::Root => Range { lo: 0.0, hi: f64::INFINITY, nonzero: r[0].nonzero },
        },
    }
}
