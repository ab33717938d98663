//! A priority queue that holds a bounded number of entries; of equal ones the first goes first.

use std::collections::BTreeMap;

/// A priority that is ordered as numbers are; the greatest goes first, what is no number last.
#[derive(Clone, Copy, PartialEq)]
struct First(f64);

impl Eq for First {}

impl PartialOrd for First {
    fn partial_cmp(&self, other: &First) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for First {
    fn cmp(&self, other: &First) -> std::cmp::Ordering {
        other.0.total_cmp(&self.0)
    }
}

/// Entries by priority, greatest first.
pub struct Frontier<T> {
    entries: BTreeMap<(First, u64), T>,
    most: usize,
    count: u64,
}

impl<T> Frontier<T> {
    /// An empty queue of at most so many entries.
    pub fn new(most: usize) -> Frontier<T> {
        Frontier { entries: BTreeMap::new(), most, count: 0 }
    }

    /// Puts an entry in. Where there are too many then, the worst is dropped.
    pub fn push(&mut self, priority: f64, entry: T) {
        let priority = if priority.is_nan() { f64::NEG_INFINITY } else { priority };
        self.entries.insert((First(priority), self.count), entry);
        self.count += 1;
        if self.entries.len() > self.most {
            self.entries.pop_last();
        }
    }

    /// Takes the best entry out.
    pub fn pop(&mut self) -> Option<T> {
        self.entries.pop_first().map(|(_, entry)| entry)
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
