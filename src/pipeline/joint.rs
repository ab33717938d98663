//! Equivalent programs become the fastest of them, with its schedule: each is scheduled, and model and measurements choose.
//!
//! A few schedules of each are measured, then more of those that may still win. It knows no process and no clock.

use super::tuning::{self, Mode, Options as Each, Tuned};
use crate::diag::{Diagnostic, Result};
use crate::eval::Value;
use crate::ir::Def;
use crate::machine::Machine;
use crate::stage::Graph;
use crate::tune::Model;
use crate::tune::explore::Settings;
use crate::tune::record::{Known, Outcome};

/// Of each program so many schedules are measured at first, at least and at most.
const FIRST: [usize; 2] = [2, 8];
/// So many programs are measured to the end, if they are at most so many times as slow as the fastest.
const LAST: usize = 2;
const CLOSE: f64 = 1.25;

/// A program that may be the fastest.
pub struct Contender<'a> {
    /// Its definition.
    pub def: &'a Def,
    /// The stages of that.
    pub graph: Graph,
    /// What was measured of it before.
    pub known: Known,
}

/// What measures contenders, by their numbers.
pub trait Bench {
    /// Why a program is of no use: it cannot be measured, or does not give what the first one gives.
    ///
    /// # Errors
    /// Nothing can be measured at all.
    fn refused(&mut self, k: usize) -> Result<Option<String>>;
    /// An outcome of each schedule, given by its steps; fewer where the work has to end.
    ///
    /// # Errors
    /// Nothing can be measured at all, or kept.
    fn measure(&mut self, k: usize, steps: &[String]) -> Result<Vec<Outcome>>;
}

/// What is asked for.
pub struct Options<'a> {
    /// The model.
    pub model: Model,
    /// The search by model.
    pub search: Settings,
    /// Schedules measured at most, of all programs together.
    pub measurements: usize,
    /// Whether the work has to end.
    pub stop: &'a dyn Fn() -> bool,
}

/// What became of a contender.
pub struct Played {
    /// The best schedule so far.
    pub tuned: Tuned,
    /// Why it is of no use.
    pub refused: Option<String>,
}

impl Played {
    /// Schedules of it that were measured.
    pub fn measured(&self) -> usize {
        self.tuned.tried.iter().filter(|t| t.outcome.is_some()).count()
    }

    /// Seconds of its best schedule; infinitely many where none was measured.
    pub fn seconds(&self) -> f64 {
        match &self.refused {
            Some(_) => f64::INFINITY,
            None => self.tuned.outcome.as_ref().map_or(f64::INFINITY, Outcome::seconds),
        }
    }
}

/// The number of the fastest program, and what became of each. The first one is the source, and wins where nothing was
/// measured.
///
/// # Errors
/// The source cannot be measured; those of measuring.
pub fn choose(
    mut all: Vec<Contender<'_>>,
    (args, machine): (&[Value], &Machine),
    options: &Options<'_>,
    bench: &mut dyn Bench,
) -> Result<(usize, Vec<Played>)> {
    let run = |c: &mut Contender<'_>, k: usize, (mode, measurements): (Mode, usize), bench: &mut dyn Bench| {
        let (model, search, stop, known) = (options.model.clone(), options.search, options.stop, c.known.clone());
        let each = Each { mode, model, search, measurements, stop, known };
        let tuned = tuning::tune(c.def, c.graph.clone(), args, machine, &each, &mut |s| bench.measure(k, s))?;
        for t in &tuned.tried {
            t.outcome.iter().for_each(|o| drop(c.known.outcomes.insert(t.steps.clone(), o.clone())));
        }
        Ok::<_, Box<Diagnostic>>(tuned)
    };
    let mut played = vec![];
    for (k, c) in all.iter_mut().enumerate() {
        played.push(Played { tuned: run(c, k, (Mode::OneShot, 0), bench)?, refused: None });
    }
    let mut order: Vec<usize> = (0..all.len()).collect();
    let expected = |k: usize| if k == 0 { 0.0 } else { played[k].tuned.expected };
    order.sort_by(|a, b| expected(*a).total_cmp(&expected(*b)));
    let share = (options.measurements / (2 * all.len().max(1))).clamp(FIRST[0], FIRST[1]);
    let mut left = options.measurements;
    for k in order {
        let some = share.min(left);
        if some == 0 || (options.stop)() {
            break;
        }
        played[k].refused = bench.refused(k)?;
        if let (0, Some(why)) = (k, &played[k].refused) {
            return Err(Diagnostic::user("the program cannot be measured at these arguments").note(why.clone()));
        }
        if played[k].refused.is_none() {
            played[k].tuned = run(&mut all[k], k, (Mode::TopK, some), bench)?;
            left = left.saturating_sub(played[k].measured());
        }
    }
    let mut last: Vec<usize> = (0..all.len()).filter(|k| played[*k].seconds().is_finite()).collect();
    last.sort_by(|a, b| played[*a].seconds().total_cmp(&played[*b].seconds()));
    let least = last.first().map_or(0.0, |k| played[*k].seconds());
    last.retain(|k| played[*k].seconds() <= CLOSE * least);
    last.truncate(LAST);
    for (i, k) in last.iter().copied().enumerate() {
        let (before, share) = (played[k].measured(), left / (last.len().min(LAST) - i));
        if share > 0 && !(options.stop)() {
            played[k].tuned = run(&mut all[k], k, (Mode::Autotune, before + share), bench)?;
            left = left.saturating_sub(played[k].measured().saturating_sub(before));
        }
    }
    let best = (0..all.len()).min_by(|a, b| played[*a].seconds().total_cmp(&played[*b].seconds())).unwrap_or(0);
    Ok((best, played))
}
