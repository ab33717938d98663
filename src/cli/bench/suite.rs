//! What a suite finds, and who watches it.

use crate::run::{Interrupt, Progress};
use serde_json::Value as Json;

/// What a suite found.
pub struct Table {
    /// As Markdown.
    pub(super) lines: Vec<String>,
    /// As objects.
    pub(super) rows: Vec<Json>,
}

/// Who watches a suite: how far it is, and whether it is to end with what is finished.
pub struct Watching<'a> {
    /// How far it is.
    pub(super) line: Progress,
    /// Whether it is to end.
    pub(super) interrupt: &'a Interrupt,
}
