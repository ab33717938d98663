//! The fastest derivative whose tables fit in so much memory: candidates keep less and less for the way back, and each
//! says by its nest how much it takes at the sizes that are told.
//!
//! Where everything fits, everything is kept. Else, of all ways to keep less of one thing, the one that takes the least
//! memory is gone on from, until one fits; the cheapest of all that were seen and fit is taken. What keeps less so that
//! data decide how much it takes is no candidate. It must not know how derivatives keep what they keep.

use super::needs::{self, Incoming, Known};
use crate::ad::Made;
use crate::ad::keeping::{Decisions, Keep, Keeping};
use crate::cost::{Costing, Model};
use crate::diag::{Diagnostic, Result, Source};
use crate::eval::large::sized;
use crate::ir::{Def, Fun, Program};
use crate::machine::Machine;
use crate::nest::Held;
use rayon::prelude::*;

/// Candidates that are made at most before the last resorts.
const MANY: usize = 40;
/// Bytes of a megabyte.
pub const MEGABYTE: f64 = 1_048_576.0;

/// What is asked for.
#[derive(Clone, Copy)]
pub struct Bound<'a> {
    /// So many bytes are taken at most.
    pub bytes: u64,
    /// What is known of the arguments of the source.
    pub known: Known<'a>,
    /// Which parameters have tangents behind the arguments; none of them where an adjoint of the result stands there.
    pub tangents: &'a [usize],
    /// What tells costs.
    pub model: Model,
    /// What runs it.
    pub machine: Machine,
}

/// A derivative that was made.
#[derive(Clone)]
pub struct Candidate {
    /// The program with the derivative, and what there was to decide.
    pub made: Made,
    /// What it keeps.
    pub keeping: Keeping,
    /// The memory that it takes.
    pub held: Held,
    /// What it costs by the model.
    pub cost: f64,
}

/// What was chosen.
pub struct Choice {
    /// The derivative.
    pub best: Candidate,
    /// How many were made.
    pub tried: usize,
    /// What comes into it.
    pub incoming: Incoming,
}

/// The cheapest derivative that fits; `make` makes one that keeps so much.
///
/// # Errors
/// What has no derivative; sizes that are not told, or that data decide; that none fits.
pub fn choose(
    source: (&Program, &Def),
    bound: &Bound<'_>,
    make: &(dyn Fn(&Keeping) -> Result<Made> + Sync),
) -> Result<Choice> {
    let search = Search::new(source, bound, make)?;
    let first = search.candidate(&Keeping::everything())??;
    let (incoming, mut all) = (search.incoming(&first.made), vec![first]);
    let fits = |all: &[Candidate]| all.iter().any(|c| c.held.bytes <= bound.bytes);
    let mut at = 0;
    while !fits(&all) && all.len() < MANY {
        let from = all.len();
        all.extend(search.each(&less(&all[at]))?);
        let least = (from..all.len()).min_by_key(|k| all[*k].held.bytes);
        match least.filter(|k| all[*k].held.bytes < all[at].held.bytes) {
            Some(k) => at = k,
            None => break,
        }
    }
    if !fits(&all) {
        all.extend(search.each(&[Keeping::states(), Keeping::few()])?);
    }
    let tried = all.len();
    let least = all.iter().min_by_key(|c| c.held.bytes).map(|c| c.held.clone());
    let fitting = all.into_iter().filter(|c| c.held.bytes <= bound.bytes);
    match (fitting.min_by(|a, b| a.cost.total_cmp(&b.cost)), least) {
        (Some(best), _) => Ok(Choice { best, tried, incoming }),
        (None, Some(least)) => Err(none_fits(search.def, bound.bytes, &least)),
        (None, None) => Err(Diagnostic::bug("no derivative was made")),
    }
}

/// All ways to keep less of one thing.
fn less(of: &Candidate) -> Vec<Keeping> {
    let Decisions { sequences, functions } = &of.made.decisions;
    let mut out = vec![];
    for (place, sequence) in sequences {
        let last = if sequence.fold { Keep::Few } else { Keep::States };
        let below = [Keep::States, Keep::Few].into_iter().filter(|k| *k > of.keeping.of(*place) && *k <= last);
        out.extend(below.map(|keep| of.keeping.with(*place, keep)));
    }
    out.extend(functions.iter().filter(|f| of.keeping.tables(**f)).map(|f| of.keeping.without_tables(*f)));
    out
}

fn none_fits(def: &Def, bound: u64, least: &Held) -> Box<Diagnostic> {
    let (needs, bound) = (megabytes(least.bytes), megabytes(bound));
    let message = format!("no derivative of `{}` fits in {bound}: {needs} is the least", def.name());
    let d = Diagnostic::user(message);
    match least.parts.first() {
        Some(part) => {
            let tensor = sized(&part.name, &part.sizes);
            d.note(format!("of that, {tensor} takes {} bytes", part.bytes))
        }
        None => d,
    }
}

/// Bytes as messages speak of them.
pub fn megabytes(bytes: u64) -> String {
    let of = bytes as f64 / MEGABYTE;
    if of >= 0.1 { format!("{of:.2} MB") } else { format!("{bytes} bytes") }
}

struct Search<'a> {
    def: &'a Def,
    bound: &'a Bound<'a>,
    make: &'a (dyn Fn(&Keeping) -> Result<Made> + Sync),
    /// The numbers that come into the source.
    own: Incoming,
    /// The sizes of its result.
    result: Vec<Option<f64>>,
    /// Sizes by name.
    named: Vec<(String, u64)>,
}

impl<'a> Search<'a> {
    fn new(
        (program, def): (&'a Program, &'a Def),
        bound: &'a Bound<'a>,
        make: &'a (dyn Fn(&Keeping) -> Result<Made> + Sync),
    ) -> Result<Search<'a>> {
        let (own, named) = (bound.known.incoming(def)?, bound.known.named(def)?);
        let result = match def.fun.sig().ret.has_tensor() && bound.tangents.is_empty() {
            true => needs::held(program, def, &own, &bound.machine)?.sizes,
            false => vec![],
        };
        let result = result.into_iter().map(|n| n.map(|n| n as f64)).collect();
        Ok(Search { def, bound, make, own, result, named })
    }

    /// The numbers that come into a derivative.
    fn incoming(&self, made: &Made) -> Incoming {
        let derived = &made.program.defs[&made.fun];
        needs::after_arguments((self.def, &self.own), &self.result, derived, self.bound.tangents)
    }

    fn candidate(&self, keeping: &Keeping) -> Result<Result<Candidate>> {
        let made = (self.make)(keeping)?;
        let (incoming, def) = (self.incoming(&made), &made.program.defs[&made.fun]);
        let held = match needs::held(&made.program, def, &incoming, &self.bound.machine) {
            Ok(held) => held,
            Err(why) => return Ok(Err(why)),
        };
        let cost = Costing::new(&made.program, self.bound.model, &self.named).def(def)?;
        Ok(Ok(Candidate { held, cost, keeping: keeping.clone(), made }))
    }

    fn each(&self, all: &[Keeping]) -> Result<Vec<Candidate>> {
        let made: Result<Vec<Result<Candidate>>> = all.par_iter().map(|keeping| self.candidate(keeping)).collect();
        Ok(made?.into_iter().flatten().collect())
    }
}

/// What a derivative keeps, and what it makes again, for people.
pub fn told(of: &Candidate, source: &Source) -> [Vec<String>; 2] {
    let [mut kept, mut again] = <[Vec<String>; 2]>::default();
    let Decisions { sequences, functions } = &of.made.decisions;
    let several = |fun: &Fun| sequences.keys().filter(|(f, _)| f == fun).count() > 1;
    for (place, sequence) in sequences {
        let word = if sequence.fold { "fold" } else { "scan" };
        let what = match sequence.span {
            Some(span) => format!("the {word} at {}", source.place(span.start)),
            None if several(&place.0) => format!("{word} {} of `{}`", place.1 + 1, place.0.sig().name),
            None => format!("the {word} of `{}`", place.0.sig().name),
        };
        match of.keeping.of(*place) {
            Keep::Values => kept.push(format!("the states of {what} and what its steps bind")),
            Keep::Few if sequence.fold => {
                kept.push(format!("√n states of {what}"));
                again.push(format!("the other states of {what}"));
            }
            Keep::States | Keep::Few => {
                kept.push(format!("the states of {what}"));
                again.push(format!("what the steps of {what} bind"));
            }
        }
    }
    // Loops may have nothing to keep.
    let without = functions.iter().filter(|fun| !of.keeping.tables(**fun));
    again.extend(without.map(|fun| format!("what the loops of `{}` bind", fun.sig().name)));
    [kept, again]
}
