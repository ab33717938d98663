//! `daedal grad --max-memory`: a bound of memory becomes a derivative that fits in it, and what that keeps becomes
//! words.

use crate::ad::Made;
use crate::ad::keeping::Keeping;
use crate::cost::Model;
use crate::diag::{Diagnostic, Result, Source};
use crate::eval::large::{is_too_large, sized};
use crate::ir::{Def, Fun, Program};
use crate::machine::Machine;
use crate::nest::Held;
use crate::pipeline::bounded::{Bound, Candidate, MEGABYTE, choose, megabytes, told};
use crate::pipeline::needs::{self, Incoming, Known};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use std::io::{self, Write};

/// A derivative that fits.
pub struct Bounded {
    /// The derivative.
    pub best: Candidate,
    /// The bytes that it may take.
    pub bytes: u64,
    /// How many were made.
    tried: usize,
    incoming: Incoming,
    machine: Machine,
}

/// The cheapest derivative that takes so many megabytes at most, by what is known of the arguments, and with tangents
/// of so many parameters behind them.
pub fn chosen(
    source: (&Program, &Def),
    most: f64,
    (known, tangents): (Known<'_>, &[usize]),
    make: &(dyn Fn(&Keeping) -> Result<Made> + Sync),
) -> Result<Bounded> {
    let (bytes, machine) = ((most * MEGABYTE) as u64, Machine::host());
    let choice = choose(source, &Bound { bytes, known, tangents, model: Model::Analytic, machine }, make)?;
    Ok(Bounded { best: choice.best, bytes, tried: choice.tried, incoming: choice.incoming, machine })
}

impl Bounded {
    /// The memory that another program for the same derivative takes.
    pub fn held(&self, program: &Program, def: &Def) -> Result<Held> {
        needs::held(program, def, &self.incoming, &self.machine)
    }

    /// Says on the standard error what was chosen.
    pub fn tell(&self, source: &Source, shown: bool) {
        if !shown {
            return;
        }
        let [kept, again] = told(&self.best, source);
        let list = |all: &[String]| if all.is_empty() { "nothing".to_string() } else { all.join(", ") };
        let (takes, most) = (megabytes(self.best.held.bytes), megabytes(self.bytes));
        let name = &self.best.made.fun.sig().name;
        // A note that cannot be shown is not worth an error.
        let _ = writeln!(io::stderr(), "note: `{name}` takes {takes} of {most}");
        let _ = writeln!(io::stderr(), "note: it keeps {}; makes again {}", list(&kept), list(&again));
    }

    /// The same for machines.
    pub fn object(&self, source: &Source) -> Json {
        let [kept, again] = told(&self.best, source);
        let held = &self.best.held;
        json!({
            "bytes": held.bytes,
            "bound": self.bytes,
            "keeps": kept,
            "again": again,
            "largest": held.parts.first().map(|p| json!({ "name": p.name, "sizes": p.sizes, "bytes": p.bytes })),
            "cost": self.best.cost,
            "tried": self.tried,
        })
    }
}

/// Says that a derivative stays as it was made, since what the optimizer makes of it takes more than it may, or nobody
/// knows how much.
pub fn stays(fun: Fun, held: Option<&Held>, bound: &Bounded, shown: bool) {
    let most = megabytes(bound.bytes);
    let why = match held {
        None => "data would decide how much memory that takes".to_string(),
        Some(Held { bytes, parts, .. }) => {
            let largest = parts.first().map(|p| format!(", for {} above all", sized(&p.name, &p.sizes)));
            format!("that would take {} of {most}{}", megabytes(*bytes), largest.unwrap_or_default())
        }
    };
    if shown {
        // A note that cannot be shown is not worth an error.
        let _ = writeln!(io::stderr(), "note: `{}` is not optimized: {why}", fun.sig().name);
    }
}

/// An error of a run, which says of derivatives that do not fit in memory how to make one that needs less.
pub fn hinted(d: Box<Diagnostic>, program: &Program, def: &Def) -> Box<Diagnostic> {
    let back = |fun: &Fun| {
        let words =
            ["rev$", "hvp$", "grad$", "jacobian$", "value$rev$", "value$hvp$", "value$jacobian$", "[rev ", "[sufrev"];
        words.iter().any(|word| fun.sig().name.starts_with(word))
    };
    let (mut open, mut seen) = (vec![def.fun], BTreeSet::new());
    while let Some(fun) = open.pop() {
        if seen.insert(fun)
            && let Some(body) = program.defs.get(&fun).and_then(Def::term)
        {
            open.extend(program.terms.calls(body));
        }
    }
    match is_too_large(&d) && seen.iter().any(back) {
        true => d.note("hint: `daedal grad` makes derivatives that take less, by `--max-memory` or `--checkpoint`"),
        false => d,
    }
}
