//! The places at which a part is used become a tree of the scopes around them.
//!
//! It must not know what the part is, or where it will stand.

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

/// The uses of a part, by scope: of each that is around one. It is made for one part after the other.
#[derive(Default)]
pub(super) struct Uses {
    within: Vec<Within>,
    /// The scopes around a use, in the order in which they were met.
    around: Vec<Place>,
    met: Vec<bool>,
}

impl Uses {
    /// Goes on to uses at some places among scopes.
    pub(super) fn of(&mut self, scopes: &[Scope], sites: &[Place]) {
        for place in self.around.drain(..) {
            let within = &mut self.within[place];
            within.inner.clear();
            (within.direct, within.count, within.certain) = (0, 0, false);
            self.met[place] = false;
        }
        self.within.resize_with(scopes.len(), Within::default);
        self.met.resize(scopes.len(), false);
        for site in sites {
            let (mut at, first) = (Some(*site), self.around.len());
            while let Some(place) = at.filter(|p| !self.met[*p]) {
                self.met[place] = true;
                self.around.push(place);
                at = scopes[place].parent;
            }
            for k in first..self.around.len() {
                let inner = self.around[k];
                if let Some(around) = scopes[inner].parent {
                    self.within[around].inner.push(inner);
                }
            }
            self.within[*site].direct += 1;
        }
        self.sum_up(scopes);
    }

    /// Says of each scope how many uses are in it and all inner ones, and whether one is certain to run.
    fn sum_up(&mut self, scopes: &[Scope]) {
        // Each scope comes behind the one around it, so from the last to the first all inner ones are known.
        let mut order: Vec<Place> = self.around.iter().copied().filter(|at| scopes[*at].parent.is_none()).collect();
        let mut next = 0;
        while let Some(at) = order.get(next) {
            order.extend_from_slice(&self.within[*at].inner);
            next += 1;
        }
        let mut arms: Vec<Kind> = vec![];
        for at in order.into_iter().rev() {
            arms.clear();
            let Within { direct, inner, .. } = &self.within[at];
            let mut count = *direct;
            for place in inner {
                count += self.within[*place].count;
                if self.within[*place].certain && matches!(scopes[*place].kind, Kind::Arm(..)) {
                    arms.push(scopes[*place].kind);
                }
            }
            let both = |kind: &Kind| matches!(kind, Kind::Arm(part, 1) if arms.contains(&Kind::Arm(*part, 2)));
            let certain = *direct > 0 || arms.iter().any(both);
            let within = &mut self.within[at];
            (within.count, within.certain) = (count, certain);
        }
    }

    /// The uses in a scope.
    pub(super) fn in_scope(&self, at: Place) -> &Within {
        const NONE: &Within = &Within { direct: 0, count: 0, certain: false, inner: vec![] };
        self.within.get(at).unwrap_or(NONE)
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
