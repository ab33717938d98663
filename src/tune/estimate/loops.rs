//! A tiling of a stage whose box is known becomes its loops, as [`Tiling::apply`] makes them.

use super::known::Fixed;
use crate::schedule::plan::{Kind, Plan, Schedule};
use crate::schedule::tiling::Tiling;
use crate::stage::StageId;
use smallvec::SmallVec;

/// A loop of a stage.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Own {
    /// The dimension that it runs over, or over a part of, by its place.
    pub dim: u8,
    /// Its iterations; lanes of a vector are one.
    pub trips: f64,
    /// How much of the dimension one iteration is.
    pub span: f64,
    /// How it runs.
    pub kind: Kind,
    /// Whether it runs over parts of at least four.
    pub parts: bool,
}

/// The loops of a stage, outermost first.
pub type Loops = SmallVec<[Own; 10]>;

/// A dimension while it is cut: what is left of it in one iteration.
#[derive(Clone, Copy)]
struct Cut {
    dim: u8,
    left: f64,
}

impl Cut {
    /// A loop over parts of it; what is left is a part.
    fn parts(&mut self, factor: f64) -> Own {
        let span = factor.min(self.left.max(1.0));
        let own =
            Own { dim: self.dim, trips: (self.left / factor).ceil(), span, kind: Kind::Serial, parts: factor >= 4.0 };
        self.left = span;
        own
    }

    /// A loop over all that is left.
    fn rest(&self, kind: Kind) -> Own {
        Own { dim: self.dim, trips: self.left, span: 1.0, kind, parts: false }
    }
}

/// The loops of a stage of which a box is computed.
pub fn loops(of: &Fixed, extents: &[f64], tiling: &Tiling) -> Loops {
    let own = of.own;
    let cut = |k: usize| Cut { dim: k as u8, left: extents[k] };
    let mut out: Loops = SmallVec::new();
    let over = (own..extents.len()).map(|k| cut(k).rest(if of.few && own > 0 { Kind::Unrolled } else { Kind::Serial }));
    if own == 0 {
        out.extend(over);
        return out;
    }
    let mut x = cut(own - 1);
    let mut y = (own > 1).then(|| cut(own - 2));
    out.extend((0..own.saturating_sub(2)).map(|k| cut(k).rest(Kind::Serial)));
    if let Some(y) = y.as_mut().filter(|_| tiling.block[0] > 0) {
        out.push(y.parts(tiling.block[0] as f64));
    }
    if tiling.block[1] > 0 {
        out.push(x.parts(tiling.block[1] as f64));
    }
    let vectors = if of.whole && tiling.block[1] == 0 { tiling.vectors.min(1) } else { tiling.vectors };
    let mut inner: SmallVec<[Own; 4]> = SmallVec::new();
    let mut rows = None;
    if let Some(y) = y.as_mut() {
        let columns = if tiling.rows > 1 { y.parts(tiling.rows as f64) } else { y.rest(Kind::Serial) };
        inner.extend((tiling.rows > 1).then(|| Own { kind: Kind::Unrolled, ..y.rest(Kind::Unrolled) }));
        rows = Some(columns);
    }
    let columns = match vectors {
        0 => x.rest(Kind::Serial),
        n => {
            let columns = x.parts(n as f64 * of.lanes);
            if n > 1 {
                inner.push(Own { kind: Kind::Unrolled, ..x.parts(of.lanes) });
            }
            inner.push(Own { dim: x.dim, trips: 1.0, span: 1.0, kind: Kind::Vector, parts: false });
            columns
        }
    };
    let (first, second) = if tiling.pack { (Some(columns), rows) } else { (rows, Some(columns)) };
    out.extend(first.into_iter().chain(second));
    out.extend(over);
    out.extend(inner);
    if let Some(l) = out.first_mut().filter(|_| tiling.parallel) {
        l.kind = Kind::Parallel;
    }
    out
}

/// The loops that a schedule has for a stage, all of whose elements are computed.
pub fn planned(s: &Schedule, stage: StageId, extents: &[f64]) -> Loops {
    let plan = s.plan(stage);
    let one = |l: &crate::schedule::plan::Loop| {
        let (trips, span) = numbers(plan, &l.name, extents);
        let vector = l.kind == Kind::Vector;
        let parts = plan.splits.iter().any(|p| p.outer == l.name && p.factor >= 4);
        let trips = if vector { 1.0 } else { trips };
        Own { dim: plan.root(&l.name).unwrap_or_default() as u8, trips, span, kind: l.kind, parts }
    };
    plan.loops.iter().map(one).collect()
}

/// The iterations of a loop, and how much of its dimension each is.
fn numbers(plan: &Plan, name: &str, extents: &[f64]) -> (f64, f64) {
    let whole = |name: &str| {
        let (trips, span) = numbers(plan, name, extents);
        (trips * span, span)
    };
    if let Some(p) = plan.splits.iter().find(|p| p.outer == name) {
        let (left, span) = whole(&p.of);
        let (left, factor) = (left / span, p.factor as f64);
        return ((left / factor).ceil(), factor.min(left.max(1.0)) * span);
    }
    if let Some(p) = plan.splits.iter().find(|p| p.inner == name) {
        let (left, span) = whole(&p.of);
        return ((p.factor as f64).min((left / span).max(1.0)), span);
    }
    let k = plan.dims.iter().position(|(n, _)| n == name).unwrap_or_default();
    (extents.get(k).copied().unwrap_or(1.0), 1.0)
}
