//! What is known of each e-class: type, free variables, a small member, value, bounds, totality, sizes.

use super::called::Called;
use super::facts::{node_defined, node_dims, node_divides, node_range, node_total};
use super::graph::{Fact, Facts, Graph, Step, Traced};
use super::language::{ENode, Label};
use super::range::Range;
use super::trace::Tid;
use crate::cost::ASSUMED;
use crate::derive::axioms::Axiom;
use crate::ir::{Free, Head, Lit, Op, Scalar, Ty};
use egg::{Analysis, DidMerge, Id};
use smallvec::SmallVec;

impl Step {
    /// Whether what was matched may fail where what was made has a value.
    pub fn removes_failure(&self, g: &Graph) -> bool {
        if node_total(g, &self.root) && self.root.kids.iter().all(|k| g[*k].data.total) {
            return false;
        }
        let partial = |nodes: &[ENode]| nodes.iter().filter(|n| !node_total(g, n)).count();
        self.lost.iter().any(|id| !g[*id].data.total) || partial(&self.left) > partial(&self.right)
    }
}

/// Bounds are changed so often; then they stay, unless they would be wrong.
const TIGHTEN: u8 = 6;

impl Fact {
    fn of(g: &Graph, node: &ENode) -> Fact {
        let kids: SmallVec<[&Fact; 3]> = node.kids.iter().map(|k| &g[*k].data).collect();
        let tys: SmallVec<[Ty; 3]> = kids.iter().map(|k| k.ty).collect();
        let (ty, mut free) = match node.label {
            Label::Head(Head::Var(i, ty)) => (ty, Free::var(i)),
            Label::Head(head) => (head.result_ty(&tys).unwrap_or_else(|_| Ty::tuple([])), Free::default()),
            Label::Param(_, ty) => (ty, Free::default()),
            Label::Unknown => (Ty::tuple([]), Free::default()),
        };
        let mut size = 1u64;
        if !matches!(node.label, Label::Head(Head::Var(..))) {
            for (k, kid) in kids.iter().enumerate() {
                let binds = node.head().map_or(0, |h| h.binds(k, kids.len()));
                free = free.union(kid.free.outside(binds));
                size = size.saturating_add(kid.size);
            }
        }
        let total = node_total(g, node) && kids.iter().all(|k| k.total);
        Fact {
            ty,
            free,
            size,
            best: node.clone(),
            konst: constant(node, &kids, g.analysis.rounds),
            range: node_range(g, node, ty),
            tightened: 0,
            total,
            strict: false,
            defined: total && node_defined(g, node) && kids.iter().all(|k| k.defined),
            valued: total && (node_divides(node) || node_defined(g, node)) && kids.iter().all(|k| k.valued),
            dims: node_dims(g, node, ty),
            estimate: estimate(node, &kids),
            origin: 0,
            changed: g.analysis.now,
            called: Called::default(),
        }
    }

    fn key(&self) -> (u32, u64) {
        (self.free.0.count_ones(), self.size)
    }
}

/// The value of a scalar operation on known values, exact over the reals unless it may round.
/// Infinities and NaNs have no literal.
fn constant(node: &ENode, kids: &[&Fact], rounds: bool) -> Option<Lit> {
    let args = || kids.iter().map(|k| k.konst).collect::<Option<SmallVec<[Lit; 3]>>>();
    let value = match node.head()? {
        Head::Const(l) => l,
        Head::Op(op) => {
            let args = args()?;
            op.eval(&args).ok().filter(|v| rounds || is_exact(op, &args, *v))?
        }
        Head::Cast(s) => {
            let from = *args()?.first()?;
            from.cast(s)
                .filter(|v| rounds || v.to_f64() == from.to_f64() && (from.as_f64().is_none() || s != Scalar::Bool))?
        }
        _ => return None,
    };
    value.as_f64().is_none_or(f64::is_finite).then_some(value)
}

/// Whether a result over floats has no rounding error. The error of a sum, and the remainder of a
/// product, a quotient or a root, are floats themselves and can be computed.
fn is_exact(op: Op, args: &[Lit], value: Lit) -> bool {
    let floats: Option<Vec<f64>> = args.iter().map(|a| a.as_f64()).collect();
    let Some(r) = value.as_f64() else { return true };
    let Some(x) = floats else { return matches!(op, Op::ToFloat | Op::BoolToFloat | Op::RanHash | Op::Select) };
    match (op, x.as_slice()) {
        (Op::Add, [a, b]) => sum_is_exact(*a, *b, r),
        (Op::Sub, [a, b]) => sum_is_exact(*a, -*b, r),
        (Op::Mul, [a, b]) => a.mul_add(*b, -r) == 0.0 && (r != 0.0 || *a == 0.0 || *b == 0.0),
        (Op::Div, [a, b]) => r.mul_add(*b, -*a) == 0.0 && (r != 0.0 || *a == 0.0),
        (Op::Sqrt, [a]) => r.mul_add(r, -*a) == 0.0,
        (Op::Neg | Op::Abs | Op::Floor | Op::Ceil, _) | (Op::Min | Op::Max | Op::Minimum | Op::Maximum, _) => true,
        _ => false,
    }
}

/// Knuth's two-sum: the error of a rounded sum, exactly.
fn sum_is_exact(a: f64, b: f64, sum: f64) -> bool {
    let part = sum - a;
    (a - (sum - part)) + (b - part) == 0.0
}

fn estimate(node: &ENode, kids: &[&Fact]) -> f64 {
    match node.head() {
        Some(Head::Const(l)) => l.to_f64().unwrap_or(ASSUMED),
        Some(Head::Op(op)) if kids.iter().all(|k| k.ty == Ty::int()) && !kids.is_empty() => {
            let args: Vec<Lit> = kids.iter().map(|k| Lit::float(k.estimate)).collect();
            op.eval(&args).ok().and_then(Lit::as_f64).filter(|v| v.is_finite()).unwrap_or(ASSUMED)
        }
        Some(Head::Var(..)) => kids.first().map_or(ASSUMED, |e| (e.estimate / 2.0).max(1.0)),
        _ => ASSUMED,
    }
}

impl Analysis<ENode> for Facts {
    type Data = Fact;

    fn make(g: &mut Graph, node: &ENode, _: Id) -> Fact {
        let mut fact = Fact::of(g, node);
        fact.origin = g.concrete(node);
        let folded = matches!(node.head(), Some(Head::Op(_) | Head::Cast(_)));
        let Some(lit) = fact.konst.filter(|_| folded) else { return fact };
        let args: Vec<Option<Lit>> = node.kids.iter().map(|k| g[*k].data.konst).collect();
        if let Some(trace) = &mut g.analysis.trace {
            let args: Vec<Tid> =
                args.into_iter().flatten().map(|l| trace.put(Label::Head(Head::Const(l)), [])).collect();
            let (left, right) = (trace.put(node.label, args), trace.put(Label::Head(Head::Const(lit)), []));
            trace.by(left, right, Axiom::Literals.name());
        }
        fact
    }

    /// The facts of a node that is known already: by themselves they do not change its class.
    fn remake(g: &mut Graph, node: &ENode, id: Id) -> Fact {
        Fact { changed: 0, ..Facts::make(g, node, id) }
    }

    fn merge(&mut self, a: &mut Fact, mut b: Fact) -> DidMerge {
        let mut before = a.clone();
        if a.ty != b.ty {
            self.contradiction.get_or_insert_with(|| format!("{} is {}", a.ty, b.ty));
        }
        if let (Some(x), Some(y)) = (a.konst, b.konst)
            && x != y
            && x.as_f64() != y.as_f64().or(Some(f64::NAN))
        {
            self.contradiction.get_or_insert_with(|| format!("{x} is {y}"));
        }
        let (fewer, more) = (b.free.within(a.free), a.free.within(b.free));
        if b.key() < a.key() {
            (a.free, a.size, a.best, a.origin) = (b.free, b.size, b.best.clone(), b.origin);
        }
        // What holds of a member holds where its variables have values, which is nowhere in a loop that
        // does not run. So facts go with the variables of the representative.
        if fewer && more {
            // Bounds of what may fail hold only where it has a value: the size of a tensor is at least 0,
            // but the number that it would have is not.
            let range = match (a.total, b.total) {
                (true, true) => a.range.meet(b.range),
                (true, false) => a.range,
                (false, true) => b.range,
                (false, false) => a.range.hull(b.range),
            };
            let wider = a.range.hull(range) != a.range;
            if a.tightened < TIGHTEN && range != a.range {
                a.range = range;
                a.tightened += 1;
            } else if wider {
                a.range = Range::ALL;
            }
            a.total |= b.total;
            a.strict |= b.strict;
            a.defined |= b.defined;
            a.valued |= b.valued;
        } else if a.free == b.free {
            (a.range, a.total, a.strict, a.defined) = (b.range, b.total, b.strict, b.defined);
            a.valued = b.valued;
        }
        a.konst = a.konst.or(b.konst);
        for (x, y) in a.dims.iter_mut().zip(&b.dims) {
            *x = x.or(*y);
        }
        if a.estimate == ASSUMED {
            a.estimate = b.estimate;
        }
        a.called = a.called.or(b.called);
        (b.tightened, b.origin, b.called) = (a.tightened, a.origin, a.called);
        (before.origin, before.called) = (a.origin, a.called);
        let new = *a != before;
        if new || b.changed > 0 {
            a.changed = self.now;
        }
        b.changed = a.changed;
        DidMerge(new, *a != b)
    }

    fn modify(g: &mut Graph, id: Id) {
        if let Some(lit) = g[id].data.konst {
            let known = g.add(ENode::new(Head::Const(lit), []));
            g.union(id, known);
        }
    }
}
