//! What sizes are taken to be: those that were told, or larger ones, and unequal ones where nothing is told.
//!
//! Where all that is not told is assumed alike, differences and quotients of sizes are degenerate: a term that
//! runs `n - k` times seems to run never. A setting that tells them apart shows what it costs.

use super::ASSUMED;
use super::estimate::{Est, Guess};
use crate::ir::Def;
use rustc_hash::FxHashMap;

/// How what is not told is assumed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Spread {
    /// Everything alike.
    Even,
    /// Each larger than the one before it, in the order of the parameters.
    Rising,
    /// Each smaller than the one before it.
    Falling,
}

/// A setting of sizes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Setting {
    /// What all sizes are multiplied with.
    pub scale: f64,
    /// How those that are not told differ.
    pub spread: Spread,
}

/// By so much of the assumed size each one differs from the next.
const APART: f64 = 0.5;

impl Setting {
    /// What was told, and all else alike: what costs are printed for.
    pub const TOLD: Setting = Setting { scale: 1.0, spread: Spread::Even };

    /// The others, under which a result may not be worse.
    pub const FURTHER: [Setting; 5] = [
        Setting { scale: 1.0, spread: Spread::Rising },
        Setting { scale: 1.0, spread: Spread::Falling },
        Setting { scale: 10.0, spread: Spread::Even },
        Setting { scale: 10.0, spread: Spread::Rising },
        Setting { scale: 10.0, spread: Spread::Falling },
    ];

    /// The guesses of a definition's parameters.
    pub fn params(self, def: &Def, told: &[(String, u64)]) -> Vec<Est> {
        let mut slots = Slots { told, setting: self, names: FxHashMap::default(), next: 0, of: 0 };
        if self.spread == Spread::Falling {
            // How many there are has to be known first.
            slots.all(def);
            slots = Slots { of: slots.next, next: 0, names: FxHashMap::default(), ..slots };
        }
        slots.all(def)
    }

    /// The guess of the size number `k` of so many that are not told.
    fn assumed(self, k: usize, of: usize) -> Guess {
        let steps = match self.spread {
            Spread::Even => 0,
            Spread::Rising => k,
            Spread::Falling => of.saturating_sub(k + 1),
        };
        let assumed = Guess::assumed(ASSUMED * self.scale * (1.0 + APART * steps as f64));
        Guess { least: assumed.least * self.scale, ..assumed }
    }
}

/// The sizes and numbers of a definition's parameters, one after the other.
struct Slots<'a> {
    told: &'a [(String, u64)],
    setting: Setting,
    /// The numbers of the named ones that are not told: sizes of one name are equal.
    names: FxHashMap<&'a str, usize>,
    next: usize,
    of: usize,
}

impl<'a> Slots<'a> {
    fn all(&mut self, def: &'a Def) -> Vec<Est> {
        let each = def.params.iter().enumerate().map(|(k, p)| {
            let axes = p.ty.axes();
            let scalar = p.ty.as_scalar().is_some();
            let mut at = 0;
            Est::of(p.ty, &mut || {
                at += 1;
                match scalar {
                    true => self.guess(Some(&p.name)),
                    false if at > axes => self.guess(None),
                    false => self.axis(def, k, at - 1),
                }
            })
        });
        each.collect()
    }

    /// The size of an axis, which need not have a name.
    fn axis(&mut self, def: &'a Def, param: usize, axis: usize) -> Guess {
        match def.params[param].sizes.get(axis) {
            Some(name) => self.guess(Some(name)),
            None => self.known(&def.params[param].size(axis)).unwrap_or_else(|| self.guess(None)),
        }
    }

    fn known(&self, name: &str) -> Option<Guess> {
        let told = self.told.iter().find(|(n, _)| n == name);
        told.map(|(_, value)| Guess::told(*value as f64 * self.setting.scale))
    }

    fn guess(&mut self, name: Option<&'a String>) -> Guess {
        if let Some(told) = name.and_then(|name| self.known(name)) {
            return told;
        }
        let new = self.next;
        let slot = match name {
            Some(name) => *self.names.entry(name).or_insert(new),
            None => new,
        };
        self.next += usize::from(slot == new);
        self.setting.assumed(slot, self.of)
    }
}
