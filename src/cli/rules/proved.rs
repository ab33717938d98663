//! `daedal rules check --prove`: rules over scalars become theorems, or stay unknown.

use crate::cli::World;
use crate::diag::{Diagnostic, Result};
use crate::rules::check::instance::choices;
use crate::rules::check::smt::formula;
use crate::rules::{Library, Rule};
use crate::run::solver::{Answer, ask, installed};
use rayon::prelude::*;
use serde_json::json;

/// The solver gives up on a formula after so many seconds.
const SECONDS: u32 = 5;

/// What is known of a rule.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// True at every type that was asked for.
    Proved,
    /// Wrong at some type.
    Refuted,
    /// The solver gave up.
    Unknown,
    /// No formula says it: it has loops, tensors or library functions.
    Unsaid,
}

impl Proof {
    fn word(self) -> &'static str {
        match self {
            Proof::Proved => "proved",
            Proof::Refuted => "refuted",
            Proof::Unknown => "unknown",
            Proof::Unsaid => "unknown (no formula)",
        }
    }
}

/// Asks the solver for a rule at all its types; nothing where it was ended from outside.
pub fn proof(rule: &Rule) -> Result<Option<Proof>> {
    let mut least = Proof::Proved;
    for types in choices(rule) {
        let Some(text) = formula(rule, &types) else { return Ok(Some(Proof::Unsaid)) };
        match ask(&text, SECONDS)? {
            Answer::Unsatisfiable => {}
            Answer::Satisfiable => return Ok(Some(Proof::Refuted)),
            Answer::Ended => return Ok(None),
            Answer::Unknown => least = Proof::Unknown,
        }
    }
    Ok(Some(least))
}

/// Proves what can be proved.
pub fn proved(library: &Library, as_json: bool, world: &mut World<'_>) -> Result<()> {
    if !installed() {
        return match as_json {
            true => world.say(&json!({ "solver": null, "rules": [] }).to_string()),
            false => world.say("z3 is not installed: nothing is proved"),
        };
    }
    let interrupt = world.interrupt;
    let wanted = |rule| (!interrupt.raised()).then_some(rule);
    // A terminal interrupts the solver, too, which may end before anything is said here: what it did not come to say is no
    // answer.
    let one = |rule| match proof(rule) {
        Ok(Some(Proof::Unknown)) | Err(_) if interrupt.raised() => Ok(None),
        found => found.map(|proof| Some((rule, proof?))),
    };
    let each = || library.rules.par_iter().filter_map(wanted).map(one).collect::<Result<Vec<_>>>();
    let proofs: Vec<(&Rule, Proof)> = interrupt.during(each)?.into_iter().flatten().collect();
    let each = || proofs.iter();
    if as_json {
        let rules: Vec<_> = each().map(|(r, p)| json!({ "name": r.name, "proof": p.word() })).collect();
        world.say(&json!({ "solver": "z3", "rules": rules }).to_string())?;
    } else {
        for (rule, proof) in each() {
            world.say(&format!("{}: {}", rule.name, proof.word()))?;
        }
        let count = |p: Proof| proofs.iter().filter(|(_, q)| *q == p).count();
        world.say(&format!(
            "{} rules: {} proved, {} refuted, {} unknown, {} without a formula",
            proofs.len(),
            count(Proof::Proved),
            count(Proof::Refuted),
            count(Proof::Unknown),
            count(Proof::Unsaid)
        ))?;
    }
    let (done, all) = (proofs.len(), library.rules.len());
    match proofs.iter().filter(|(_, p)| *p == Proof::Refuted).count() {
        0 if done < all => Err(Diagnostic::limit(format!("interrupted: {done} of {all} rules were given to z3"))),
        0 => Ok(()),
        n => Err(Diagnostic::user(format!("{n} rules are refuted"))),
    }
}
