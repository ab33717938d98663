//! What named sizes cost: a name of a parameter's size is a value that the definition has once, wherever
//! it is used, as if a let bound it in front.

use super::model::{Model, Shape};
use crate::ir::program::Axis;
use crate::ir::{Def, Head, Ty};
use std::collections::BTreeMap;

/// The named sizes of one definition, and how often its body uses each; in a loop counts as often.
#[derive(Default)]
pub struct Named {
    uses: BTreeMap<Axis, usize>,
    /// How many loops are open.
    pub loops: usize,
}

impl Named {
    /// Nothing is used yet.
    pub fn of(def: &Def) -> Named {
        let axes = def.params.iter().enumerate().flat_map(|(p, param)| (0..param.sizes.len()).map(move |k| (p, k)));
        Named { uses: axes.filter(|at| def.named_size(*at).is_some()).map(|at| (at, 0)).collect(), loops: 0 }
    }

    /// Notes a use of the size of an axis; whether it has a name.
    pub fn uses(&mut self, axis: Axis) -> bool {
        let often = if self.loops > 0 { 2 } else { 1 };
        self.uses.get_mut(&axis).map(|n| *n += often).is_some()
    }

    /// What they cost together: each where it is used, or once and a let.
    pub fn cost(&self, model: Model) -> f64 {
        self.uses.values().map(|n| named(model, *n)).sum()
    }
}

/// What a named size costs that is used so often.
pub fn named(model: Model, uses: usize) -> f64 {
    let shape = Shape { ty: Ty::int(), kids: &[Ty::int()], elements: 1.0, inner: 1.0, trips: 1.0 };
    let own = model.own(Head::Size(0), &shape);
    if uses == 0 { 0.0 } else { (uses as f64 * own).min(own + model.binding()) }
}
