//! The variables of the body that is differentiated, with what stands for them in the text that is made.

use super::emit::Val;
use super::flow::Known;
use std::cell::{Ref, RefCell};
use std::ops::{Deref, DerefMut};

/// What a derivative is carried by.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Active {
    /// No derivative flows.
    No,
    /// Forward: the tangent.
    Tangent(Val),
    /// Reverse: the number of the adjoint.
    Adjoint(usize),
}

/// What a variable of the source stands for.
#[derive(Clone)]
pub struct Entry {
    /// Its value.
    pub val: Val,
    /// The number under which its adjoint is collected, or its tangent; nothing where neither is wanted.
    pub active: Active,
    /// The sizes of its axes, where it is a tensor, and of all tensors in it where these are known.
    pub sizes: Vec<Val>,
}

/// The variables, outermost first.
#[derive(Clone, Default)]
pub struct Env {
    entries: Vec<Entry>,
    /// For as many variables as it was asked: which of those up to each carry derivatives, as a number.
    prefixes: RefCell<Vec<u32>>,
}

impl Env {
    /// One more.
    pub fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    /// One less.
    pub fn pop(&mut self) {
        self.truncate(self.entries.len() - 1);
    }

    /// Only so many are left.
    pub fn truncate(&mut self, n: usize) {
        self.entries.truncate(n);
        self.prefixes.get_mut().truncate(n);
    }

    /// For each variable, which of those up to it carry derivatives, as a number.
    pub fn prefixes(&self, known: &mut Known) -> Ref<'_, Vec<u32>> {
        let mut all = self.prefixes.borrow_mut();
        for entry in &self.entries[all.len()..] {
            let before = all.last().copied().unwrap_or_default();
            all.push(known.longer(before, entry.active != Active::No));
        }
        drop(all);
        self.prefixes.borrow()
    }
}

impl Deref for Env {
    type Target = [Entry];

    fn deref(&self) -> &[Entry] {
        &self.entries
    }
}

impl DerefMut for Env {
    fn deref_mut(&mut self) -> &mut [Entry] {
        self.prefixes.get_mut().clear();
        &mut self.entries
    }
}
