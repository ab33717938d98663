//! What searches found becomes a program again: better bodies replace the old ones, and the text is read
//! back and checked.

use super::inlined::only_inlined;
use super::only::chosen;
use super::options::Options;
use super::outcome::{Derived, Outcome, Row};
use super::search::{Better, Tried, WORSE};
use crate::cost::{Costing, Sweep};
use crate::derive::Derivation;
use crate::diag::{Diagnostic, Result, Source};
use crate::ir::{Body, Def, Fun, Id, Program, print};
use crate::rewrite::egraph::optimize::Found;
use crate::rewrite::inline::recursive;
use crate::types;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// What the search made of a definition.
pub struct Searched<'a> {
    /// The better body, if there is one, and what has no derivation.
    pub found: Tried,
    /// The definition.
    pub def: &'a Def,
    /// How long it took.
    pub seconds: f64,
    /// What was spent before the search was done.
    pub stopped: Option<&'static str>,
}

impl<'a> Searched<'a> {
    /// The same for a definition that is the same function.
    pub fn again(&self, def: &'a Def) -> Searched<'a> {
        Searched { found: self.found.again(), def, seconds: 0.0, stopped: self.stopped }
    }
}

/// The better bodies that are taken.
#[derive(Default)]
struct Taken {
    bodies: FxHashMap<Fun, Found>,
    derived: FxHashMap<Fun, Derived>,
}

/// Such a share of its cost is no reason to write a definition anew: people know it as it is.
const TRIFLE: f64 = 1e-6;

/// Puts the better bodies into the program, checks it, and reads it again from its text. Names of the
/// source stay where values do.
pub fn assemble(program: &Program, results: Vec<Searched<'_>>, options: &Options<'_>) -> Result<Outcome> {
    let mut old = Costing::new(program, options.cost, &options.sizes);
    // Definitions come after what they call, so a call may be better than what was found without it.
    let mut work = program.clone();
    let kept = recursive(program);
    let (mut rows, mut defs, mut taken) = (vec![], vec![], Taken::default());
    for Searched { found, def, seconds, stopped } in results {
        let Tried { better, mut unproved, mut skipped, .. } = found;
        let cost_before = old.def(def)?;
        let mut row = Row::new(def.name(), options.engine.name(), cost_before);
        (row.seconds, row.stopped) = (seconds, stopped);
        if let Some(s) = &better {
            row.searched(&s.found);
            skipped = refused(&work, def, &s.found, options)?;
        }
        if let Some(Better { found, derived: how }) = better.filter(|_| skipped.is_none()) {
            let before = Costing::new(&work, options.cost, &options.sizes).def(def)?;
            let (gain, how_called) = (before - found.cost, (&kept, options.cost));
            if gain > before * TRIFLE && !only_inlined(&work, how_called, def, (&found.terms, found.id), gain) {
                taken.derived.extend(how.map(|d| (def.fun, d)));
                let body = work.terms.import(&found.terms, found.id);
                if let Some(d) = work.defs.get_mut(&def.fun) {
                    d.body = Body::Term(body);
                }
                taken.bodies.insert(def.fun, found);
            }
        }
        unproved.sort_by(|a, b| a.cost.total_cmp(&b.cost));
        (row.unproved, row.skipped) = (unproved.into_iter().next(), skipped);
        rows.push(row);
        defs.push(def);
    }
    settle(program, &mut work, (&mut rows, &defs), &mut taken, options)?;
    taken.bodies.values_mut().for_each(|found| found.terms.spell_like(&program.terms));
    let program = reread(program, &taken)?;
    let mut new = Costing::new(&program, options.cost, &options.sizes);
    for (row, def) in rows.iter_mut().zip(chosen(&program, &options.defs)?) {
        row.cost_after = new.def(def)?;
        row.unproved = row.unproved.take().filter(|u| u.cost < row.cost_after - 1e-6);
        if row.cost_after > row.cost_before + 1e-6 {
            let message = format!("`{}` came out costlier: {} after {}", row.name, row.cost_after, row.cost_before);
            return Err(Diagnostic::bug(message));
        }
        match taken.bodies.get(&def.fun) {
            Some(found) => row.taken(found),
            None => row.steps = 0,
        }
    }
    let mut derivations = vec![];
    for (row, def) in rows.iter().zip(chosen(&program, &options.defs)?).filter(|_| options.derive) {
        let mut how = taken.derived.remove(&def.fun).unwrap_or_else(|| unchanged(&program, def, row));
        how.derivation.result = print::def(&program.terms, def);
        (how.derivation.cost_before, how.derivation.cost_after) = (row.cost_before, row.cost_after);
        if how.derivation.steps.is_empty() {
            how.derivation.start = row.cost_before;
        }
        derivations.push(how);
    }
    Ok(Outcome { program, rows, derivations, seconds: 0.0 })
}

/// Why a cheaper body is not taken, in a program where what it calls is better already.
fn refused(work: &Program, def: &Def, found: &Found, options: &Options<'_>) -> Result<Option<String>> {
    let mut costing = Costing::new(work, options.cost, &options.sizes);
    if costing.term(found.id, def, &found.terms) >= costing.def(def)? - 1e-9 {
        return Ok(None);
    }
    // Where a body needs equal sizes without a sign of it in its text, a reader would refuse that.
    if !types::sizes::agree(&work.defs, def, &found.terms, found.id) {
        return Ok(Some("what was found needs sizes to be equal that have two names".into()));
    }
    let worse = Sweep::new(work, def, options.cost, &options.sizes)?.worse(found.id, &found.terms) > 1.0;
    Ok(worse.then(|| WORSE.to_string()))
}

/// What is called may be cheaper at the sizes that it names and dearer at those of a caller. Where a caller comes
/// out costlier for that, what it calls stays as it was.
fn settle(
    program: &Program,
    work: &mut Program,
    (rows, defs): (&mut [Row], &[&Def]),
    taken: &mut Taken,
    options: &Options<'_>,
) -> Result<()> {
    loop {
        let mut new = Costing::new(work, options.cost, &options.sizes);
        let mut called = vec![];
        for (row, def) in rows.iter().zip(defs) {
            let Some(now) = work.defs.get(&def.fun) else { continue };
            if new.def(now)? > row.cost_before + 1e-6 {
                called = now.term().map_or(vec![], |body| callees(work, body));
                break;
            }
        }
        called.retain(|fun| taken.bodies.contains_key(fun));
        if called.is_empty() {
            return Ok(());
        }
        for fun in called {
            taken.bodies.remove(&fun);
            taken.derived.remove(&fun);
            if let (Some(new), Some(old)) = (work.defs.get_mut(&fun), program.defs.get(&fun)) {
                new.body = old.body;
            }
            if let Some(k) = defs.iter().position(|d| d.fun == fun) {
                rows[k].skipped = Some("what was found costs more where it is called".into());
            }
        }
    }
}

/// The functions that a body calls, and those that they call.
fn callees(program: &Program, body: Id) -> Vec<Fun> {
    let mut open = program.terms.calls(body);
    let mut out = vec![];
    while let Some(fun) = open.pop() {
        if !out.contains(&fun) {
            out.push(fun);
            let body = program.defs.get(&fun).and_then(Def::term);
            open.extend(body.map_or(vec![], |body| program.terms.calls(body)));
        }
    }
    out
}

/// The program with the better bodies, as its text says it.
fn reread(program: &Program, taken: &Taken) -> Result<Program> {
    let text: Vec<String> = program
        .defs
        .values()
        .map(|d| match taken.bodies.get(&d.fun) {
            Some(f) => print::def(&f.terms, &Def { body: Body::Term(f.id), ..d.clone() }) + "\n",
            None => print::def(&program.terms, d) + "\n",
        })
        .collect();
    let source = Source::new(format!("{} (optimized)", program.source.name), text.join("\n"));
    let program = types::program(&source)
        .map_err(|d| Diagnostic::bug("the optimized program does not read back").note(d.render()))?;
    types::verify::verify(&program)?;
    Ok(program)
}

impl Row {
    fn new(name: &str, engine: &'static str, cost: f64) -> Row {
        let (steps, looked, seconds, proved) = Default::default();
        let (fired, growth, stopped, unproved, skipped) = Default::default();
        let (name, cost_before, cost_after) = (name.to_string(), cost, cost);
        Row {
            name,
            cost_before,
            cost_after,
            engine,
            steps,
            seconds,
            fired,
            looked,
            growth,
            proved,
            stopped,
            unproved,
            skipped,
        }
    }

    /// Notes what a search did.
    fn searched(&mut self, found: &Found) {
        let mut fired: BTreeMap<String, usize> = BTreeMap::new();
        for (name, n) in found.reports.iter().flat_map(|r| &r.fired) {
            *fired.entry(name.clone()).or_default() += n;
        }
        self.fired = fired.into_iter().collect();
        self.looked = found.reports.iter().map(|r| r.looked).sum();
        self.proved = found.proved;
    }

    /// Notes that what it found is taken.
    fn taken(&mut self, found: &Found) {
        self.steps = self.fired.iter().map(|(_, n)| n).sum();
        self.growth = found.reports.iter().map(|r| r.growth.clone()).filter(|g| !g.is_empty()).collect();
    }
}

/// The derivation of what stays as it is.
fn unchanged(program: &Program, def: &Def, row: &Row) -> Derived {
    let derivation = Derivation {
        lemmas: vec![],
        bodies: false,
        name: def.name().to_string(),
        params: def.fun.sig().params.iter().map(ToString::to_string).collect(),
        steps: vec![],
        start: row.cost_before,
        result: String::new(),
        cost_before: row.cost_before,
        cost_after: row.cost_after,
    };
    let programs = vec![def.term().map(|body| (program.terms.clone(), body))];
    Derived { derivation, programs, changes: vec![] }
}
