//! The places at which a part is used become a tree of the scopes around them.
//!
//! It must not know what the part is, or where it will stand.

use crate::ir::deep;
use rustc_hash::FxHashMap;

/// A part of a term, by number.
pub(super) type Part = usize;
/// A scope, by number; the first is the definition's body.
pub(super) type Place = usize;

/// Where code runs: the definition's body, one run of a loop body, or an arm.
pub(super) struct Scope {
    pub parent: Option<Place>,
    pub depth: usize,
    pub kind: Kind,
}

/// Kinds of scopes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Kind {
    Top,
    Loop(usize),
    /// Arm of an `if` part.
    Arm(Part, usize),
}

/// The uses in a scope.
#[derive(Default)]
pub(super) struct Within {
    /// How many stand directly in it.
    direct: usize,
    /// How many they are, those in inner scopes included.
    pub count: usize,
    /// Whether one runs whenever the scope does: one directly in it, or one in both arms of a condition.
    pub certain: bool,
    /// The inner scopes that have uses, in the order of the first use of each.
    pub inner: Vec<Place>,
}

/// The uses of a part, by scope: of each that is around one.
pub(super) struct Uses {
    within: FxHashMap<Place, Within>,
}

impl Uses {
    /// Uses at some places among scopes.
    pub(super) fn new(scopes: &[Scope], sites: &[Place]) -> Uses {
        let mut within: FxHashMap<Place, Within> = FxHashMap::default();
        let mut way = vec![];
        for site in sites {
            let mut at = Some(*site);
            while let Some(place) = at.filter(|p| !within.contains_key(p)) {
                way.push(place);
                within.insert(place, Within::default());
                at = scopes[place].parent;
            }
            for inner in way.drain(..).rev() {
                if let Some(around) = scopes[inner].parent {
                    within.entry(around).or_default().inner.push(inner);
                }
            }
            within.entry(*site).or_default().direct += 1;
        }
        let mut uses = Uses { within };
        uses.sum_up(scopes, 0);
        uses
    }

    /// Says of a scope and all inner ones how many uses they have, and whether one is certain to run.
    fn sum_up(&mut self, scopes: &[Scope], at: Place) -> (usize, bool) {
        let Within { direct, inner, .. } = self.in_scope(at);
        let (direct, inner) = (*direct, inner.clone());
        let each: Vec<(Place, (usize, bool))> =
            inner.into_iter().map(|place| (place, deep(|| self.sum_up(scopes, place)))).collect();
        let count = direct + each.iter().map(|(_, (count, _))| count).sum::<usize>();
        let arms = each.iter().filter(|(_, (_, certain))| *certain).map(|(place, _)| scopes[*place].kind);
        let arms: Vec<Kind> = arms.collect();
        let both = |kind: &Kind| matches!(kind, Kind::Arm(part, 1) if arms.contains(&Kind::Arm(*part, 2)));
        let certain = direct > 0 || arms.iter().any(both);
        if let Some(within) = self.within.get_mut(&at) {
            (within.count, within.certain) = (count, certain);
        }
        (count, certain)
    }

    /// The uses in a scope.
    pub(super) fn in_scope(&self, at: Place) -> &Within {
        const NONE: &Within = &Within { direct: 0, count: 0, certain: false, inner: vec![] };
        self.within.get(&at).unwrap_or(NONE)
    }

    /// The innermost scope in a scope that is around all uses in that.
    pub(super) fn common(&self, mut at: Place) -> Place {
        while let Within { direct: 0, inner, .. } = self.in_scope(at)
            && let [only] = inner.as_slice()
        {
            at = *only;
        }
        at
    }
}
