//! The floats of a result become the indices of the elements that they read: which columns of the matrix the blocks of
//! its rows are.

use super::component::{Component, Kind, Kinds};
use super::reads::Read;
use super::rows::packed;
use crate::ir::{Head, Id, Terms};

/// The indices for each float of a part of the result, in its structure: for each parameter that is differentiated by the
/// index of the element, a tuple of those of several, or an empty tuple where its block is not of single elements.
/// Nothing where no float has such a block.
pub fn pattern(terms: &mut Terms, part: &Component, kinds: &Kinds) -> Option<Id> {
    let elements = kinds.values().flatten().any(|k| matches!(k, Kind::Elements(_)));
    elements.then(|| indices(terms, part))
}

fn indices(terms: &mut Terms, part: &Component) -> Id {
    match part {
        Component::Still => terms.put(Head::Tuple, []),
        Component::Float { reads, .. } => {
            let each = reads.iter().map(|r| match r {
                Read::Nothing | Read::Whole => terms.put(Head::Tuple, []),
                Read::Elements(places) => {
                    let each = places.iter().map(|p| packed(terms, p.at.clone())).collect();
                    packed(terms, each)
                }
            });
            let each = each.collect();
            packed(terms, each)
        }
        Component::Parts(parts) => {
            let parts: Vec<Id> = parts.iter().map(|p| indices(terms, p)).collect();
            terms.put(Head::Tuple, parts)
        }
        Component::Listed(all) => {
            let all: Vec<Id> = all.iter().map(|p| indices(terms, p)).collect();
            terms.put(Head::VecInit, all)
        }
        Component::Loop { sizes, each } => {
            let each = indices(terms, each);
            terms.put(Head::Build(sizes.len()), sizes.iter().copied().chain([each]))
        }
    }
}
