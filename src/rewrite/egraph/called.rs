//! What classes are called, by numbers: the names of an e-graph, and which of them a class has.

/// What a class is called, by numbers of [`Names`]: the smaller, the earlier in the source.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Called {
    /// The value.
    pub(super) value: Option<u32>,
    /// The variables that its members bind.
    pub(super) bound: Option<u32>,
    /// The variables of the loop that it is the body of.
    pub(super) around: Option<u32>,
}

/// The names of one e-graph.
#[derive(Clone, Default, Debug)]
pub struct Names(pub(super) Vec<Vec<String>>);

impl Called {
    /// Either; the earlier name where both have one.
    pub fn or(self, other: Called) -> Called {
        let first = |a: Option<u32>, b: Option<u32>| a.into_iter().chain(b).min();
        Called {
            value: first(self.value, other.value),
            bound: first(self.bound, other.bound),
            around: first(self.around, other.around),
        }
    }

    /// Whether there are no names.
    pub(super) fn is_nothing(self) -> bool {
        self == Called::default()
    }
}

impl Names {
    /// The number of new names.
    pub(super) fn number(&mut self, each: &[String]) -> u32 {
        self.0.push(each.to_vec());
        self.0.len() as u32 - 1
    }
}
