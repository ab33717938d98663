//! What is derived from what: the definition, the rules, the time, and checkers that steps begin with.

use crate::cost::Model;
use crate::derive::Step;
use crate::derive::check::{Checker, Rules};
use crate::derive::lemma::Statement;
use crate::derive::pace::Pace;
use crate::ir::{Def, Fun, Id, Program};
use crate::rules::Level;
use rustc_hash::FxHashSet;
use std::cell::OnceCell;

/// The share of the time that a proof may take it to, and how much more the last one gets: it is that of the input,
/// which is short. The best result does not get all of it, and the next ones less and less: it is better to have a
/// proof of one of them than none.
pub(super) const PROOF_SHARE: f64 = 0.8;
pub(super) const RESULT_SHARES: [f64; 4] = [0.65, 0.73, 0.77, PROOF_SHARE];
pub(super) const NEXT_SHARE: f64 = 0.02;
/// The share of the time after which checkers give up.
pub const CHECKED_SHARE: f64 = 0.9;

/// What is derived from what, and how that is checked.
pub struct Task<'a> {
    /// The program.
    pub program: &'a Program,
    /// Its definition.
    pub def: &'a Def,
    /// The functions whose calls stay.
    pub kept: &'a FxHashSet<Fun>,
    /// The rules.
    pub rules: &'a Rules<'a>,
    /// What they have to keep.
    pub level: Level,
    /// What decides which parts are worth a name.
    pub model: Model,
    /// Whether a share of what may be spent is spent: then what has no proof yet is given up.
    pub stop: &'a dyn Fn(f64) -> bool,
    /// When checkers are to give up, whatever is being proved.
    pub pace: &'a Pace<'a>,
    /// The steps before it, and checkers.
    pub from: From<'a>,
    /// What is taken for granted, where it is a lemma.
    pub assumed: Option<&'a Statement>,
}

/// Where a derivation goes on: after steps that were taken before.
#[derive(Default)]
pub struct From<'a> {
    pub(super) before: Vec<Step>,
    /// A checker that has taken no step yet, once somebody asked for it.
    first: OnceCell<Result<Checker<'a>, String>>,
    /// One that has taken the steps before, and the programs on its way.
    there: OnceCell<Result<(Checker<'a>, Vec<Id>), String>>,
}

impl<'a> From<'a> {
    /// After some steps.
    pub fn after(before: &[Step]) -> From<'a> {
        From { before: before.to_vec(), ..From::default() }
    }
}

impl<'a> Task<'a> {
    /// A checker that has taken no step yet.
    pub(super) fn checker(&self) -> Result<Checker<'a>, String> {
        let new = || {
            let mut checker = Checker::new(self.program, self.def, self.kept, self.rules, self.level)?;
            checker.until(Some(self.pace));
            self.assumed.map_or(Ok(()), |statement| checker.assume(statement))?;
            Ok(checker)
        };
        self.from.first.get_or_init(new).clone()
    }

    /// A checker that has taken the steps before, and the programs on its way.
    pub(super) fn there(&self) -> Result<(Checker<'a>, Vec<Id>), String> {
        let go = || {
            let mut checker = self.checker()?;
            let mut programs = vec![checker.now];
            for step in &self.from.before {
                checker.step(step)?;
                programs.push(checker.now);
            }
            Ok((checker, programs))
        };
        self.from.there.get_or_init(go).clone()
    }
}
