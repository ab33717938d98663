//! How a value changes where `t` is added to one number that it is made of, over the reals; the algebra of that.
//!
//! A value may be shifted by a multiple of `t`, or have a factor that is the exponential of one. Everything else is
//! [`Change::Other`], which is always right to say. It must not know terms.

use crate::ir::Monoid;

/// The names of the loop variables that say which number it is, where it is one of many: an element of a tensor. What
/// changes with one element does not change with the others.
pub type At = Vec<u32>;

/// How a value changes. A tensor changes as each of its elements does, unless it says how its own ones do.
#[derive(Clone, PartialEq, Debug)]
pub enum Change {
    /// It is 0, whatever the number is.
    Zero,
    /// By a multiple of `t` that is added; not at all, where the multiple is 0.
    Shift(f64, At),
    /// By a factor that is the exponential of a multiple of `t`, which is not 0.
    Scale(f64, At),
    /// Parts of a tuple.
    Parts(Vec<Change>),
    /// Each element of a tensor in its own way: names for its indices, and what an element does by these.
    Own(Vec<u32>, Box<Change>),
    /// In another way, or in one that is not known.
    Other,
}

use Change::{Other, Own, Parts, Scale, Shift, Zero};

/// Not at all.
pub fn still() -> Change {
    Shift(0.0, vec![])
}

/// A factor whose exponent may be 0.
pub fn scale(rate: f64, at: At) -> Change {
    if rate == 0.0 { still() } else { Scale(rate, at) }
}

/// A summand that may be 0.
fn shift(rate: f64, at: At) -> Change {
    if rate == 0.0 { still() } else { Shift(rate, at) }
}

impl Change {
    /// Whether it does not change.
    pub fn is_still(&self) -> bool {
        match self {
            Zero => true,
            Shift(rate, _) => *rate == 0.0,
            Parts(parts) => parts.iter().all(Change::is_still),
            Own(_, each) => each.is_still(),
            Scale(..) | Other => false,
        }
    }

    /// Whether numbers that change so keep their order.
    pub fn is_uniform(&self) -> bool {
        matches!(self, Zero | Shift(..) | Scale(..))
    }

    /// A part of a tuple.
    pub fn part(self, k: usize) -> Change {
        match self {
            Parts(parts) => parts.into_iter().nth(k).unwrap_or(Other),
            change if change.is_still() => still(),
            _ => Other,
        }
    }

    /// An element of a tensor, at indices with these names.
    pub fn at(self, names: Option<&[u32]>) -> Change {
        match (self, names) {
            (Own(own, each), Some(names)) if own.len() == names.len() => each.renamed(&own, names),
            (change @ Own(..), _) if change.is_still() => still(),
            (Own(..), _) => Other,
            (change, _) => change,
        }
    }

    /// Any element of a tensor.
    pub fn of_any(self) -> Change {
        self.at(None)
    }

    /// A tensor of elements that change so, by these indices: elements that are tensors of their own ways stay what an
    /// element is, whether or not they differ.
    pub fn gathered(self, own: Vec<u32>) -> Change {
        if self.has_own() || own.iter().any(|name| self.mentions(*name)) { Own(own, self.into()) } else { self }
    }

    /// Whether it says how elements of a tensor change.
    fn has_own(&self) -> bool {
        match self {
            Own(..) => true,
            Parts(parts) => parts.iter().any(Change::has_own),
            Zero | Shift(..) | Scale(..) | Other => false,
        }
    }

    /// The same where indices are no longer in scope.
    pub fn without(self, own: &[u32]) -> Change {
        if own.iter().any(|name| self.mentions(*name)) { Other } else { self }
    }

    fn mentions(&self, name: u32) -> bool {
        match self {
            Shift(_, at) | Scale(_, at) => at.contains(&name),
            Parts(parts) => parts.iter().any(|p| p.mentions(name)),
            Own(_, each) => each.mentions(name),
            Zero | Other => false,
        }
    }

    fn renamed(&self, from: &[u32], to: &[u32]) -> Change {
        let name = |n: &u32| from.iter().position(|f| f == n).map_or(*n, |k| to[k]);
        match self {
            Shift(rate, at) => Shift(*rate, at.iter().map(name).collect()),
            Scale(rate, at) => Scale(*rate, at.iter().map(name).collect()),
            Parts(parts) => Parts(parts.iter().map(|p| p.renamed(from, to)).collect()),
            Own(own, each) => Own(own.clone(), each.renamed(from, to).into()),
            Zero => Zero,
            Other => Other,
        }
    }

    /// Whether a comparison with another value gives the same however both change.
    pub fn compares(&self, other: &Change) -> bool {
        match (self, other) {
            (a @ (Shift(..) | Scale(..)), b) if a == b => true,
            // A factor is positive.
            (Zero, Scale(..)) | (Scale(..), Zero) => true,
            (a, b) => a.is_still() && b.is_still(),
        }
    }
}

/// How what is one of two values changes.
pub fn either(a: Change, b: Change) -> Change {
    match (a, b) {
        (a, b) if a == b => a,
        (a, b) if a.is_still() && b.is_still() => still(),
        (Zero, c @ Scale(..)) | (c @ Scale(..), Zero) => c,
        (Parts(a), Parts(b)) if a.len() == b.len() => Parts(a.into_iter().zip(b).map(|(a, b)| either(a, b)).collect()),
        (Own(own, a), Own(other, b)) if own.len() == other.len() => {
            let b = b.renamed(&other, &own);
            Own(own, either(*a, b).into())
        }
        (Own(own, a), Zero) | (Zero, Own(own, a)) => Own(own, either(*a, Zero).into()),
        _ => Other,
    }
}

/// How a sum changes.
pub fn sum(a: Change, b: Change) -> Change {
    match (a, b) {
        (Zero, c) | (c, Zero) => c,
        (Shift(0.0, _), c @ Shift(..)) | (c @ Shift(..), Shift(0.0, _)) => c,
        (Shift(a, at), Shift(b, of)) if at == of => shift(a + b, at),
        (Scale(a, at), Scale(b, of)) if a == b && at == of => Scale(a, at),
        _ => Other,
    }
}

/// How the opposite number changes.
pub fn negative(change: Change) -> Change {
    match change {
        Shift(rate, at) => shift(-rate, at),
        Zero | Scale(..) => change,
        Parts(_) | Own(..) | Other => Other,
    }
}

/// How a product changes.
pub fn product(a: Change, b: Change) -> Change {
    match (a, b) {
        (Zero, Zero | Shift(..) | Scale(..)) | (Shift(..) | Scale(..), Zero) => Zero,
        (Shift(0.0, _), Shift(0.0, _)) => still(),
        (Shift(0.0, _), c @ Scale(..)) | (c @ Scale(..), Shift(0.0, _)) => c,
        (Scale(a, at), Scale(b, of)) if at == of => scale(a + b, at),
        _ => Other,
    }
}

/// How a quotient changes.
pub fn quotient(a: Change, b: Change) -> Change {
    match b {
        Shift(0.0, _) => product(a, still()),
        Scale(rate, at) => product(a, Scale(-rate, at)),
        _ => Other,
    }
}

/// A multiple of what is shifted, where the product of the rates is exact.
pub fn multiple(rate: f64, at: &At, factor: Option<f64>) -> Change {
    match factor.map(|by| (by, rate * by)) {
        Some((by, all)) if rate.mul_add(by, -all) == 0.0 && all.is_finite() => shift(all, at.clone()),
        _ => Other,
    }
}

/// How a reduction changes, by how each of its elements does.
pub fn reduced(monoid: Monoid, element: Change) -> Change {
    match (monoid, element) {
        (Monoid::Add, Zero) => Zero,
        (_, c) if c.is_still() => still(),
        (Monoid::Add | Monoid::Min | Monoid::Max, c @ Scale(..)) => c,
        (Monoid::Min | Monoid::Max, c @ Shift(..)) => c,
        _ => Other,
    }
}
