//! Definitions stand behind what they call: a derivative that is written below where it is needed goes up.

use crate::diag::{Diagnostic, Result};
use crate::ir::{Def, Fun, Terms};
use indexmap::IndexMap;

/// Where a definition is on its way into the order.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Waits,
    Begun,
    Done,
}

/// Puts definitions behind what they call, and otherwise as they stood.
///
/// # Errors
/// Two that call each other.
pub fn order(terms: &Terms, defs: &mut IndexMap<Fun, Def>) -> Result<()> {
    let calls: Vec<Vec<usize>> = defs
        .values()
        .enumerate()
        .map(|(own, def)| {
            let called = def.term().map(|body| terms.calls(body)).unwrap_or_default();
            called.iter().filter_map(|f| defs.get_index_of(f)).filter(|k| *k != own).collect()
        })
        .collect();
    if calls.iter().enumerate().all(|(own, called)| called.iter().all(|k| *k < own)) {
        return Ok(());
    }
    let mut ways = vec![Way::Waits; calls.len()];
    let mut places = vec![0; calls.len()];
    let mut next = 0;
    for root in 0..calls.len() {
        let mut open: Vec<(usize, usize)> = vec![(root, 0)];
        while let Some((at, k)) = open.pop() {
            match calls[at].get(k) {
                _ if ways[at] == Way::Done => {}
                Some(called) => {
                    ways[at] = Way::Begun;
                    open.push((at, k + 1));
                    match ways[*called] {
                        Way::Waits => open.push((*called, 0)),
                        Way::Begun => return Err(each_other(&defs[at], &defs[*called])),
                        Way::Done => {}
                    }
                }
                None => {
                    ways[at] = Way::Done;
                    places[at] = next;
                    next += 1;
                }
            }
        }
    }
    let places: Vec<(Fun, usize)> = defs.keys().copied().zip(places).collect();
    let place: rustc_hash::FxHashMap<Fun, usize> = places.into_iter().collect();
    defs.sort_by_key(|f, _| place[f]);
    Ok(())
}

fn each_other(a: &Def, b: &Def) -> Box<Diagnostic> {
    let message = format!("`{}` and `{}` call each other", a.name(), b.name());
    Diagnostic::user(message).at(a.span, "a function may call itself and what stands above it")
}
