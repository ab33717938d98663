//! A definition that is too large for one e-graph becomes better by pieces.

use super::search::{START_SHARE, Search};
use crate::cost::Costing;
use crate::ir::{Id, Terms, Ty};
use crate::rewrite::cut::{Piece, cut, joined};
use crate::rewrite::egraph::optimize::{Found, optimize as saturate};
use crate::rewrite::egraph::saturate::Report;
use crate::rewrite::inline::flatten;
use rayon::prelude::*;

impl Search<'_> {
    /// The body with its pieces optimized one by one.
    pub(super) fn by_pieces(&self) -> Option<Found> {
        let Search { program, def, kept, options, .. } = *self;
        let mut costing = Costing::new(program, options.cost, &options.sizes);
        let input = (&program.terms, def.term()?);
        let most = options.max_nodes / START_SHARE;
        let pieces = cut(program, kept, def, input, &mut costing, most);
        let found: Vec<Option<Found>> = pieces.pieces.par_iter().map(|p| self.piece(p)).collect();
        let better: Vec<Option<(Terms, Id)>> =
            found.iter().map(|f| f.as_ref().map(|f| (f.terms.clone(), f.id))).collect();
        let reports: Vec<Report> = found.into_iter().flatten().flat_map(|f| f.reports).collect();
        let (terms, id) = joined(&pieces, &better);
        let cost = costing.term(id, def, &terms);
        Some(Found { terms, id, cost, reports, journal: None, proved: false })
    }

    /// A better body of a piece.
    fn piece(&self, piece: &Piece) -> Option<Found> {
        let Search { program, kept, options, .. } = *self;
        let params: Vec<Ty> = piece.def.params.iter().map(|p| p.ty).collect();
        let flatten = |terms: &Terms, id: Id| flatten(program, kept, terms, id, &params);
        let stop = |share: f64| (options.stop)(share).is_some();
        let sizes: Vec<(String, u64)> = options.sizes.iter().chain(&piece.sizes).cloned().collect();
        let settings = self.settings(&sizes, (&piece.terms, &piece.facts), &flatten, &stop);
        let mut costing = Costing::new(program, options.cost, &sizes);
        let before = costing.term(piece.body, &piece.def, &piece.terms);
        let start = flatten(&piece.terms, piece.body)?;
        let found = saturate(&piece.def, start, &mut costing, &settings)?;
        (found.cost < before - 1e-9).then_some(found)
    }
}
