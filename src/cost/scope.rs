//! What is guessed of the variables in scope at a place inside of a body, in every setting of sizes.

use super::estimate::{self, Est};
use super::setting::Setting;
use crate::ir::{Def, Head, Id, Terms, deep};

/// Guesses of variables, outermost first, in each setting: what was told, then the further ones.
#[derive(Clone, PartialEq, Debug)]
pub struct Scope {
    settings: Vec<Vec<Est>>,
}

impl Scope {
    /// The parameters of a definition.
    pub fn new(def: &Def, told: &[(String, u64)]) -> Scope {
        let settings = [Setting::TOLD].into_iter().chain(Setting::FURTHER);
        Scope { settings: settings.map(|s| s.params(def, told)).collect() }
    }

    /// The guesses in the setting of what was told.
    pub fn told(&self) -> &[Est] {
        &self.settings[0]
    }

    /// The guesses in the further settings, in their order.
    pub fn further(&self) -> &[Vec<Est>] {
        &self.settings[1..]
    }

    /// Adds the variables that a node binds in its last child.
    pub fn bind(&mut self, terms: &Terms, id: Id) {
        let (head, kids) = (terms.head(id), terms.kids(id));
        let Some((_, outside)) = kids.split_last() else { return };
        let tys = head.bound_tys(&kids.iter().map(|k| terms.ty(*k)).collect::<Vec<_>>());
        for env in &mut self.settings {
            let ests: Vec<Est> = outside.iter().map(|k| guess(terms, *k, env)).collect();
            let bound = estimate::bound(head, &ests).into_iter().zip(&tys);
            // Nothing depends on the guess of a float, which would tell equal regions apart.
            env.extend(bound.map(|(est, ty)| est.of_integers(*ty)));
        }
    }

    /// Forgets all variables but the first so many.
    pub fn truncate(&mut self, depth: usize) {
        self.settings.iter_mut().for_each(|env| env.truncate(depth));
    }

    /// What is guessed of each variable at the sizes that were told: its sizes by axis, so many as its type has, and
    /// the number that it is.
    pub fn numbers(&self, level: usize, axes: usize) -> (Vec<f64>, f64) {
        let est = &self.settings[0][level];
        ((0..axes).map(|k| est.axis(k).value).collect(), est.num().value)
    }

    /// Some of the variables, by level.
    pub fn of(&self, levels: &[usize]) -> Scope {
        let some = |env: &Vec<Est>| levels.iter().map(|l| env[*l].clone()).collect();
        Scope { settings: self.settings.iter().map(some).collect() }
    }

    /// Numbers that are equal for equal guesses.
    pub fn key(&self) -> Vec<u64> {
        let mut out = vec![];
        self.settings.iter().flatten().for_each(|e| e.key(&mut out));
        out
    }
}

/// The guess of a term from those of the variables in scope. Of what functions give, nothing is guessed.
fn guess(terms: &Terms, id: Id, env: &mut Vec<Est>) -> Est {
    let (head, kids) = (terms.head(id), terms.kids(id));
    if let Head::Var(i, ty) = head {
        let known = env.len().checked_sub(1 + i as usize).map(|l| env[l].clone());
        return known.unwrap_or_else(|| Est::unknown(ty));
    }
    let mut ests: Vec<Est> = Vec::with_capacity(kids.len());
    for (k, kid) in kids.iter().enumerate() {
        let depth = env.len();
        if head.binds(k, kids.len()) > 0 {
            env.extend(estimate::bound(head, &ests));
        }
        ests.push(deep(|| guess(terms, *kid, env)));
        env.truncate(depth);
    }
    estimate::node(head, terms.ty(id), &ests)
}
