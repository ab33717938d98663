//! What a prover found out already, so that it is not found out again.
//!
//! It must not know how anything is found out.

use super::bounds::Bounds;
use super::flat::Scope;
use super::form::Form;
use super::guard::{Fact, Guard, State};
use crate::ir::Id;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// What was found out under some conditions.
#[derive(Default)]
pub struct Found {
    /// Whether parts are safe.
    pub(super) safe: FxHashMap<(Id, Scope), bool>,
    /// Bounds, and whether over the reals.
    pub(super) bounds: FxHashMap<(Id, Scope, bool), Bounds>,
    /// Bounds that rest on no conditions, whatever is around.
    pub(super) anywhere: FxHashMap<(Id, Scope, bool), Bounds>,
    /// What conditions and loops say, and whether over the reals.
    pub(super) told: FxHashMap<(Scope, bool), Rc<Vec<Fact>>>,
    /// The linear forms that are at least 0 by that.
    pub(super) linear: FxHashMap<Scope, Rc<Vec<Form>>>,
    /// What was found out under one more condition, or in one more fold.
    inner: FxHashMap<(Option<Guard>, Option<State>), Found>,
}

impl Found {
    /// What was found out under one more condition, or in one more fold.
    pub(super) fn enter(&mut self, more: Option<Guard>, state: Option<State>) -> Found {
        let mut inner = self.inner.remove(&(more, state)).unwrap_or_default();
        // What is said of a state counts wherever bounds are asked for.
        if state.is_none() {
            inner.anywhere = std::mem::take(&mut self.anywhere);
        }
        inner
    }

    /// Keeps that for the next time.
    pub(super) fn leave(&mut self, more: Option<Guard>, state: Option<State>, mut inner: Found) {
        if state.is_none() {
            self.anywhere = std::mem::take(&mut inner.anywhere);
        }
        self.inner.insert((more, state), inner);
    }
}
