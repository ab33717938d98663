//! The parameters of a definition become classes, with sizes as their dimensions.

use super::Graph;
use super::language::{ENode, Label};
use crate::ir::{Head, Ty};
use rustc_hash::FxHashMap;

/// Adds parameters, each of a type and with names of sizes, as far as it has any; sizes of one name are
/// one class. `estimates` gives sizes that are known by name.
pub fn parameters(
    g: &mut Graph,
    params: impl IntoIterator<Item = (Ty, Vec<String>)>,
    estimates: &[(String, u64)],
) -> Vec<egg::Id> {
    let mut named: FxHashMap<String, egg::Id> = FxHashMap::default();
    let mut classes = vec![];
    for (k, (ty, names)) in params.into_iter().enumerate() {
        let id = g.add(ENode::leaf(Label::Param(k as u32, ty)));
        let mut dims = vec![];
        for axis in 0..ty.axes() {
            let size = g.add(ENode::new(Head::Size(axis), [id]));
            if let Some(name) = names.get(axis) {
                if let Some((_, n)) = estimates.iter().find(|(m, _)| m == name) {
                    let mut fact = g[size].data.clone();
                    fact.estimate = *n as f64;
                    g.set_analysis_data(size, fact);
                }
                let first = *named.entry(name.clone()).or_insert(size);
                g.union(first, size);
            }
            dims.push(Some(size));
        }
        g.rebuild();
        let mut fact = g[id].data.clone();
        fact.dims = dims;
        g.set_analysis_data(id, fact);
        classes.push(id);
    }
    g.rebuild();
    classes
}
