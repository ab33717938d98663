//! What the source calls values and the variables of loops, kept beside classes.
//!
//! A class is called what any of its members was called, the first in the source where there are several.
//! It must not matter to any search: only printing asks.

use super::Graph;
use super::called::Called;
use super::language::ENode;
use crate::ir::{Id as TermId, Terms};
use egg::Id;

/// Lets a class be called what a term is called that it was made of; `body` is the class of its last child.
pub fn called_like(g: &mut Graph, class: Id, body: Option<Id>, terms: &Terms, id: TermId) {
    if let Some(name) = terms.labelled(id) {
        let value = Some(g.analysis.names.number(&[name.to_string()]));
        add(g, class, Called { value, ..Called::default() });
    }
    if let Some(each) = terms.chosen(id) {
        let bound = Some(g.analysis.names.number(each));
        add(g, class, Called { bound, ..Called::default() });
        if let Some(body) = body {
            add(g, body, Called { around: bound, ..Called::default() });
        }
    }
}

/// Lets a class be called what another one is called, of which it is a copy.
pub fn called_as(g: &mut Graph, class: Id, other: Id) {
    let called = g[other].data.called;
    add(g, class, called);
}

fn add(g: &mut Graph, class: Id, more: Called) {
    if !more.is_nothing() {
        // Not as an analysis would: nothing follows from a name.
        let called = &mut g[class].data.called;
        *called = called.or(more);
    }
}

/// Lets a term that was extracted be called what its class is called.
pub fn tell(g: &Graph, class: Id, node: &ENode, terms: &mut Terms, id: TermId) {
    let (names, called) = (&g.analysis.names.0, g[class].data.called);
    if let Some([name]) = called.value.map(|k| names[k as usize].as_slice()) {
        terms.label(id, name.clone());
    }
    let n = node.kids.len();
    let Some(binds) = node.head().map(|h| if n == 0 { 0 } else { h.binds(n - 1, n) }).filter(|b| *b > 0) else {
        return;
    };
    let around = || node.kids.last().and_then(|body| g[*body].data.called.around);
    let mut bound = [called.bound, around()].into_iter().flatten().map(|k| &names[k as usize]);
    if let Some(each) = bound.find(|each| each.len() == binds) {
        terms.name(id, each.clone(), true);
    }
}
