//! Rules become verdicts: random instances are judged, and what is wrong is shrunk to a small case.
//!
//! An instance puts terms for metavariables and values for their variables (`instance.rs`,
//! `generate.rs`). It is judged by its bits and over the reals (`judge.rs`, `real.rs`, `number.rs`).
//! Equal seeds give equal verdicts on any number of threads.

pub mod distance;
pub mod generate;
pub mod instance;
pub mod judge;
pub mod literals;
pub mod mutate;
pub mod number;
pub mod provable;
pub mod real;
pub mod seek;
pub mod shrink;
pub mod smt;
pub mod value;

use super::{Level, Rule};
use crate::eval::Value;
use generate::{Maker, Shape};
use instance::{Filling, Instance, Types, choices, instance};
use judge::{Judge, Outcome, Trial, Wrong};
use shrink::{Case, shrink};
use std::hash::Hasher;

/// How long to look.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Where randomness starts.
    pub seed: u64,
    /// Terms tried for each rule, spread over the types it applies to.
    pub instances: usize,
    /// Values tried for each of them.
    pub values: usize,
}

impl Effort {
    /// What is done where nothing else is asked for.
    pub fn standard(seed: u64) -> Effort {
        Effort { seed, instances: 600, values: 4 }
    }

    /// So many times the work.
    pub fn times(self, n: usize) -> Effort {
        Effort { instances: self.instances * n, ..self }
    }
}

/// How often each outcome was seen.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Counts {
    /// Judged in all.
    pub judged: usize,
    /// Could not be decided.
    pub skipped: usize,
    /// A condition did not hold.
    pub guarded: usize,
    /// The left side failed.
    pub left_fails: usize,
    /// The rule applied, and kept its promise.
    pub holds: usize,
}

impl Counts {
    fn note(&mut self, outcome: Outcome) {
        self.judged += 1;
        match outcome {
            Outcome::Skipped => self.skipped += 1,
            Outcome::Guarded(_) => self.guarded += 1,
            Outcome::LeftFails => self.left_fails += 1,
            Outcome::Holds => self.holds += 1,
            Outcome::Wrong(_) => {}
        }
    }

    /// The share of instances with a value on the left at which the conditions hold.
    pub fn pass_rate(&self) -> f64 {
        let asked = self.judged - self.skipped - self.left_fails;
        (asked - self.guarded) as f64 / asked.max(1) as f64
    }
}

/// A small case at which a rule breaks its promise.
#[derive(Clone, Debug)]
pub struct Counterexample {
    /// The level at which it was judged.
    pub level: Level,
    /// In which way.
    pub wrong: Wrong,
    /// Terms and values.
    pub case: Case,
    /// The seed of the instance.
    pub seed: u64,
    /// Definitions `lhs` and `rhs`.
    pub program: String,
    /// The values as words of the command line.
    pub words: Vec<String>,
    /// What the interpreter makes of `lhs` and `rhs`.
    pub shown: (String, String),
}

impl Counterexample {
    /// Nodes of the terms put in for metavariables.
    pub fn size(&self) -> usize {
        self.case.filling.size()
    }
}

/// What is known of a rule after looking.
pub struct Verdict {
    /// Counts at the level that the rule claims.
    pub counts: Counts,
    /// A case at which the rule breaks its promise.
    pub counterexample: Option<Counterexample>,
    /// Whether the rule claims less than it seems to keep: a `real` rule that kept the bits.
    pub seems_exact: bool,
    /// How many instances applied at each choice of types.
    pub types: Vec<(Types, usize)>,
    /// Conditions, by position, without which no counterexample was found either, and in how many
    /// instances they alone did not hold.
    pub unneeded: Vec<(usize, usize)>,
}

/// Fewer instances than this say too little.
const LEAST: usize = 20;
/// Conditions that hold in a smaller share of instances are hardly exercised.
const LEAST_RATE: f64 = 0.01;
/// A condition counts as not needed after so many instances without it.
const MANY: usize = 60;

impl Verdict {
    /// Whether the conditions held, and the left side had a value, often enough to say something.
    pub fn exercised(&self) -> bool {
        self.counts.holds >= LEAST && self.counts.pass_rate() >= LEAST_RATE
    }

    /// Whether the rule passes.
    pub fn passes(&self) -> bool {
        self.counterexample.is_none() && self.exercised()
    }
}

fn mixed(seed: u64, name: &str, k: usize) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    hasher.write_u64(seed);
    hasher.write(name.as_bytes());
    hasher.write_usize(k);
    hasher.finish()
}

/// Looks for an instance at which a rule breaks its promise.
pub fn check(rule: &Rule, effort: &Effort) -> Verdict {
    look(rule, effort, &|| false).0
}

/// The same, unless it is stopped on the way: what was seen until then says too little.
pub fn check_unless(rule: &Rule, effort: &Effort, stop: &dyn Fn() -> bool) -> Option<Verdict> {
    let (verdict, stopped) = look(rule, effort, stop);
    (!stopped).then_some(verdict)
}

/// What was found until all was looked at, or it was stopped; whether that was so.
fn look(rule: &Rule, effort: &Effort, stop: &dyn Fn() -> bool) -> (Verdict, bool) {
    let judge = Judge::default();
    let types = choices(rule);
    let mut search = Search {
        rule,
        judge: &judge,
        effort,
        counts: Counts::default(),
        exact: true,
        without: vec![(0, true); rule.when.len()],
        sought: vec![],
    };
    let mut applied = vec![0; types.len()];
    let each = effort.instances.max(types.len() * 60);
    let (mut found, mut stopped) = (None, false);
    for k in 0..each {
        if stop() {
            stopped = true;
            break;
        }
        let t = k % types.len();
        let before = search.counts.holds;
        found = search.one(&types[t], k);
        applied[t] += search.counts.holds - before;
        if found.is_some() {
            break;
        }
    }
    let unneeded = search.without.iter().enumerate().filter(|(_, (n, fine))| *fine && *n >= MANY);
    let verdict = Verdict {
        counts: search.counts,
        seems_exact: rule.level == Level::Real && search.exact && found.is_none(),
        counterexample: found,
        types: types.into_iter().zip(applied).collect(),
        unneeded: unneeded.map(|(k, (n, _))| (k, *n)).collect(),
    };
    (verdict, stopped)
}

struct Search<'a> {
    rule: &'a Rule,
    judge: &'a Judge,
    effort: &'a Effort,
    counts: Counts,
    /// Whether the bits were kept so far.
    exact: bool,
    /// For each condition, instances in which it alone did not hold, and whether all was well there.
    without: Vec<(usize, bool)>,
    /// How often values were looked for, and found, at which what the rule asks is false, and true.
    sought: Vec<[(usize, usize); 2]>,
}

/// Values are looked for so often at most, for each outcome of what a rule asks: some instances have none.
const SOUGHT: usize = 12;
/// So often they have to be found.
const FOUND: usize = 4;
/// Then so many values around those that were found are tried.
const AROUND: usize = 10;

impl Search<'_> {
    fn one(&mut self, types: &Types, k: usize) -> Option<Counterexample> {
        let seed = mixed(self.effort.seed, &self.rule.name, k);
        let mut maker = Maker::new(self.rule, seed);
        let shape = match k % 8 {
            0 | 4 => Shape::Plain,
            6 if self.rule.level == Level::Exact => Shape::Ordered,
            _ => Shape::Rich,
        };
        let filling = maker.filling(types, shape);
        let made = instance(self.rule, &filling)?;
        let trial = Trial::new(self.judge, self.rule, &made);
        for round in 0..self.effort.values {
            // What is exact also holds over the reals, where the other rules are.
            let level = if self.rule.level == Level::Exact && round % 4 != 3 { Level::Exact } else { Level::Real };
            let values = maker.values(&filling.slots, level == Level::Real);
            let outcome = trial.judge(&values, level, 0);
            self.counts.note(outcome);
            self.around(&trial, &values, level, outcome);
            if let Outcome::Wrong(wrong) = outcome {
                let case = Case { filling: filling.clone(), values };
                return Some(self.shrunk(case, level, wrong, seed));
            }
        }
        let found = self.sought(&trial, &made, &mut maker, &filling);
        found.map(|(values, level, wrong)| self.shrunk(Case { filling, values }, level, wrong, seed))
    }

    /// Looks for values at which what the rule asks has each of its outcomes, and judges there: random
    /// values hardly ever meet what is asked for one number alone.
    fn sought(
        &mut self,
        trial: &Trial<'_>,
        made: &Instance,
        maker: &mut Maker<'_>,
        filling: &Filling,
    ) -> Option<(Vec<Value>, Level, Wrong)> {
        self.sought.resize(self.sought.len().max(made.asks.len()), [(0, 0); 2]);
        let levels = if self.rule.level == Level::Exact { vec![Level::Exact, Level::Real] } else { vec![Level::Real] };
        for (k, ask) in made.asks.iter().enumerate() {
            for outcome in [false, true] {
                let (sought, found) = &mut self.sought[k][usize::from(outcome)];
                if *sought >= SOUGHT || *found >= FOUND {
                    continue;
                }
                *sought += 1;
                let mut values = maker.values(&filling.slots, true);
                if !trial.seeker(made, &filling.slots).reach(&mut values, ask, outcome) {
                    continue;
                }
                *found += 1;
                for round in 0..=AROUND {
                    let near = if round == 0 { values.clone() } else { maker.beside(&filling.slots, &values) };
                    for level in &levels {
                        if let Outcome::Wrong(wrong) = trial.judge(&near, *level, 0) {
                            return Some((near, *level, wrong));
                        }
                    }
                }
            }
        }
        None
    }

    /// What lies beside the claim: whether a condition is needed, whether the bits are kept.
    fn around(&mut self, trial: &Trial<'_>, values: &[Value], level: Level, outcome: Outcome) {
        match outcome {
            Outcome::Guarded(failed) if failed.count_ones() == 1 => {
                let slot = &mut self.without[failed.trailing_zeros() as usize];
                match trial.judge(values, level, failed) {
                    Outcome::Holds => slot.0 += 1,
                    Outcome::Wrong(_) => slot.1 = false,
                    _ => {}
                }
            }
            Outcome::Holds if self.rule.level == Level::Real && self.exact => {
                self.exact = !matches!(trial.judge(values, Level::Exact, 0), Outcome::Wrong(_));
            }
            _ => {}
        }
    }

    fn shrunk(&self, case: Case, level: Level, wrong: Wrong, seed: u64) -> Counterexample {
        let judged = |case: &Case, visible: bool| {
            let made = instance(self.rule, &case.filling)?;
            let trial = Trial::new(self.judge, self.rule, &made);
            match trial.judge(&case.values, level, 0) {
                Outcome::Wrong(w) if !visible || trial.visible(&case.values) => Some(w),
                _ => None,
            }
        };
        // A case that the interpreter shows too is worth more than the smallest.
        let visible = level == Level::Real && judged(&case, true).is_some();
        let case = shrink(self.rule, case, &mut |next| judged(next, visible).is_some());
        let wrong = judged(&case, false).unwrap_or(wrong);
        let (program, shown) = match instance(self.rule, &case.filling) {
            Some(made) => (made.text(), Trial::new(self.judge, self.rule, &made).shown(&case.values)),
            None => Default::default(),
        };
        let words = case.values.iter().map(|v| v.to_json().to_string()).collect();
        Counterexample { level, wrong, case, seed, program, words, shown }
    }
}

/// The terms put in for metavariables, as text.
pub fn filled(rule: &Rule, filling: &Filling) -> Vec<(String, String)> {
    let Some(made) = instance(rule, filling) else { return vec![] };
    let known = instance::metas(rule, &filling.types);
    let shown = known.into_iter().zip(&made.defs[2..]).map(|((_, name, args), def)| {
        let names: Vec<String> = def.params.iter().map(|p| p.name.clone()).collect();
        let body = def.term().map(|t| crate::ir::print::term(&made.program.terms, t, &names)).unwrap_or_default();
        match args.len() {
            0 => (name, body),
            n => (format!("({name} {})", names[names.len() - n..].join(" ")), body),
        }
    });
    shown.collect()
}
