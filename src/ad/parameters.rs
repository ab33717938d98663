//! Functions become the parameters of their derivatives, with names and sizes.

use super::mode::Mode;
use super::requests::Key;
use super::walk::Walk;
use crate::ir::{Def, Fun, Head, Param, Terms, Ty};
use crate::types::sizes;
use indexmap::IndexMap;
use rustc_hash::FxHashMap;

/// Sizes of parameters: equal ones become the same term.
pub fn known_sizes(w: &mut Walk<'_, '_>, def: &Def) {
    let mut first: FxHashMap<&str, (usize, usize)> = FxHashMap::default();
    for (k, p) in def.params.iter().enumerate() {
        let mut sizes = vec![];
        for axis in 0..p.ty.axes() {
            let (of, axis) = match p.sizes.get(axis) {
                Some(name) => *first.entry(name).or_insert((k, axis)),
                None => (k, axis),
            };
            let var = w.e.level(of);
            let size = w.e.put(Head::Size(axis), [var]);
            sizes.push(w.e.val(size));
        }
        w.env[k].sizes = sizes;
    }
}

/// The parameters of a derivative.
pub fn parameters(of: &Def, key: &Key) -> Vec<Param> {
    let mut params = of.params.clone();
    match key.mode {
        Mode::Forward => {
            for (p, _) in of.params.iter().zip(&key.wrt).filter(|(_, w)| **w) {
                add(&mut params, format!("d{}", p.name), p.ty.tangent(), p.sizes.clone());
            }
        }
        Mode::Reverse => add(&mut params, "dr".into(), of.fun.sig().ret.tangent(), vec![]),
    }
    params
}

/// One more parameter, under a name that no other and no size has.
pub fn add(params: &mut Vec<Param>, name: String, ty: Ty, sizes: Vec<String>) {
    let taken = |name: &str| params.iter().any(|p| p.name == name || p.sizes.iter().any(|s| s == name));
    let mut name = name;
    while taken(&name) {
        name += "'";
    }
    params.push(Param { name, ty, sizes });
}

/// The names of sizes that the argument of a declared derivative has, and a tangent of its type: those of a
/// function of one parameter. Arguments that are packed into a tuple have none.
pub fn sizes_of(of: &Def, ty: Ty, names: [&str; 2]) -> Vec<String> {
    match of.params.as_slice() {
        [p] if ty == p.ty && !p.sizes.iter().any(|s| names.contains(&s.as_str())) => p.sizes.clone(),
        _ => vec![],
    }
}

/// A derivative shows what calls hide: sizes that its source names as two and that are one wherever it has a
/// value. A reader of its text would refuse such names, so they go.
pub fn readable(defs: &IndexMap<Fun, Def>, terms: &Terms, def: Def) -> Def {
    let Some(body) = def.term() else { return def };
    let without = |gone: &[usize]| {
        let mut def = def.clone();
        gone.iter().for_each(|k| def.params[*k].sizes.clear());
        def
    };
    let named: Vec<usize> = (0..def.params.len()).rev().filter(|k| !def.params[*k].sizes.is_empty()).collect();
    let one = named.chunks(1);
    let several = (2..=named.len()).map(|n| &named[..n]);
    let tries = std::iter::once(&named[..0]).chain(one).chain(several).map(without);
    let found = { tries }.find(|d| sizes::agree(defs, d, terms, body));
    found.unwrap_or(def)
}
