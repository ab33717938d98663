//! Names that printing makes up, and how both printing and reading find the same ones.
//!
//! What is in scope decides a made-up name, so equal terms get other names elsewhere. The reader
//! asks here which names are no choice of the source, and printing ignores those. So text that was
//! printed and read again prints as before.

use super::head::Head;
use rustc_hash::FxHashMap;

/// Variables of loops, in this order.
const INDICES: [&str; 7] = ["i", "j", "k", "l", "m", "p", "q"];

/// The names that variable `k` of a binder may get where the source chose none.
pub fn bases(head: Head, k: usize) -> &'static [&'static str] {
    match (head, k) {
        (Head::Let, _) => &["v"],
        (Head::Fold | Head::Scan, 0) => &["s"],
        (Head::Fold, _) => &["x"],
        (Head::Scan, _) => &["i"],
        _ => &INDICES,
    }
}

/// A name without the numbers that printing may have put behind it, however often.
pub fn base(mut name: &str) -> &str {
    while let Some((base, n)) = name.rsplit_once('_')
        && !base.is_empty()
        && n.bytes().all(|b| b.is_ascii_digit())
    {
        name = base;
    }
    name
}

/// The numbers behind names in scope: it knows from where on a search for a free one must begin,
/// so that a chain of binders with one base is named in linear time.
#[derive(Default)]
pub struct Numbers {
    /// All smaller numbers are taken.
    least: FxHashMap<String, usize>,
}

impl Numbers {
    /// The base, or the base with the first number that makes it free.
    pub fn free(&mut self, base: &str, free: impl Fn(&str) -> bool) -> String {
        if free(base) {
            return base.to_string();
        }
        let mut n = self.least.get(base).copied().unwrap_or(1);
        let mut name = format!("{base}_{n}");
        while !free(&name) {
            n += 1;
            name = format!("{base}_{n}");
        }
        self.least.insert(base.to_string(), n);
        name
    }

    /// The name of variable `k` of a binder where the source chose none.
    pub fn generated(&mut self, head: Head, k: usize, free: impl Fn(&str) -> bool) -> String {
        let bases = bases(head, k);
        let base = bases.iter().find(|n| free(n)).unwrap_or(&bases[0]);
        self.free(base, free)
    }

    /// Says that a name has left the scope.
    pub fn left(&mut self, name: &str) {
        if let Some((base, n)) = name.rsplit_once('_')
            && let Some(least) = self.least.get_mut(base)
            && let Ok(n) = n.parse::<usize>()
        {
            // Not from below 1: `x_0` is nothing that a search begins with.
            *least = (*least).min(n.max(1));
        }
    }

    /// Says that every name has left the scope.
    pub fn clear(&mut self) {
        self.least.clear();
    }
}
