//! Checks that no stage has yet, and what may be evaluated only where they hold.

use super::body::{Body, Source};

/// What may be evaluated only where a check holds.
#[derive(Clone, Debug)]
pub(super) enum Guards {
    /// What reads one of these.
    Reads(Vec<Source>),
    /// What is made of this body.
    Body(Body),
    /// All that comes after it.
    All,
}

/// A check that no stage has yet.
#[derive(Clone)]
pub(super) struct Pending {
    pub(super) check: Body,
    pub(super) guards: Guards,
}
