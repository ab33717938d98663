//! A program and a record become verdicts: every step of every derivation is taken and checked.

use super::check::{Checker, Rules, kept};
use super::record::{Record, hash, hash_rules};
use super::{Derivation, flat, spot};
use crate::diag::{Diagnostic, Result, nearest};
use crate::ir::{Body, Def, Program};
use crate::rules::{Level, Library};
use std::sync::Arc;

/// A derivation that holds.
pub struct Verdict {
    /// The definition.
    pub name: String,
    /// Its parameter types.
    pub params: Vec<String>,
    /// How many steps were checked.
    pub steps: usize,
    /// How many programs on the way were run beside the input.
    pub ran: usize,
    /// How many inputs showed that the result agrees with the input.
    pub inputs: usize,
    /// The result.
    pub result: (Program, Def),
    /// The line on which the derivation's result stands.
    pub line: usize,
}

/// So many programs on the way are run beside the input, evenly spread.
const MAX_RUN: usize = 6;
/// Each on so many inputs.
const FEW: u64 = 3;

/// Checks that a record is about a program and a library.
///
/// # Errors
/// It was made for others.
pub fn about(program: &Program, record: &Record, library: &Library, name: &str) -> Result<()> {
    if record.header.program != hash(&program.source.text) {
        let message = format!("`{name}` was made for another text than `{}` has now", program.source.name);
        return Err(Diagnostic::user(message).note("derive it again with `daedal optimize --derivation`"));
    }
    if record.header.rules != hash_rules(library) {
        let files = record.header.rule_files.iter().map(|f| format!(" --rules {f}")).collect::<String>();
        let note = match files.is_empty() {
            true => "it was made with the shipped rules alone, perhaps of another version".to_string(),
            false => format!("it was made with{files}"),
        };
        return Err(Diagnostic::user(format!("`{name}` was made with other rules than these")).note(note));
    }
    Ok(())
}

/// Takes all steps of a record.
///
/// # Errors
/// The first line that is refused, and why.
pub fn replay(program: &Program, record: &Record, library: &Library, name: &str) -> Result<Vec<Verdict>> {
    about(program, record, library, name)?;
    let rules: Rules<'_> = library.rules.iter().map(|r| (r.name.as_str(), r)).collect();
    record.derivations.iter().map(|(d, line)| one(program, d, (name, *line), &rules, record.header.level)).collect()
}

fn one(program: &Program, d: &Derivation, at: (&str, usize), rules: &Rules<'_>, level: Level) -> Result<Verdict> {
    let refused = |line: usize, why: &str| Diagnostic::user(format!("{}:{line}: `{}`: {why}", at.0, d.name));
    let same = |def: &&Def| {
        def.name() == d.name && def.fun.sig().params.iter().map(ToString::to_string).eq(d.params.iter().cloned())
    };
    let Some(def) = program.defs.values().find(same) else {
        let message = format!("the program has no such definition of ({})", d.params.join(" "));
        return Err(refused(at.1, &message).hint(nearest(&d.name, program.defs.values().map(Def::name))));
    };
    let kept = kept(program);
    // What is too large to be unfolded may still be said to stay as it is.
    let mut checker = Checker::new(program, def, &kept, rules, level)
        .map_err(|why| (!d.steps.is_empty()).then(|| refused(at.1, &why)));
    let mut ran = 0;
    if let Ok(checker) = &mut checker {
        let every = d.steps.len().div_ceil(MAX_RUN).max(1);
        for (k, step) in d.steps.iter().enumerate() {
            let line = at.1 + 1 + k;
            checker.step(step).map_err(|why| refused(line, &why))?;
            if k % every == 0 && checker.terms.size(checker.now) < MAX_SIZE {
                let between = between(program, def, checker);
                let like = between.defs.get(&def.fun).ok_or_else(|| refused(line, "the definition is gone"))?;
                spot::agree((program, def), (&between, like), level, FEW).map_err(|why| refused(line, &why))?;
                ran += 1;
            }
        }
    }
    let line = at.1 + 1 + d.steps.len();
    let result = match checker {
        Ok(mut checker) => checker.result(&d.result),
        Err(None) => Checker::unchanged(program, def, &d.result),
        Err(Some(e)) => return Err(e),
    };
    let result = result.map_err(|why| refused(line, &why))?;
    let mut whole = program.clone();
    let body = result.1.term().map(|b| whole.terms.import(&result.0.terms, b));
    let inputs = match (body, whole.defs.get_mut(&def.fun)) {
        (Some(body), Some(new)) => {
            new.body = Body::Term(body);
            let new = new.clone();
            spot::agree((program, def), (&whole, &new), level, spot::TRIALS).map_err(|why| refused(line, &why))?
        }
        _ => 0,
    };
    Ok(Verdict { name: d.name.clone(), params: d.params.clone(), steps: d.steps.len(), ran, inputs, result, line })
}

/// Programs on the way that are larger as trees are not run.
const MAX_SIZE: u64 = 20_000;

/// The program with the present term for a body.
fn between(program: &Program, def: &Def, checker: &mut Checker<'_>) -> Program {
    let body = flat::to_body(&mut checker.terms, checker.now, def.params.len(), 0);
    let mut out = Program { source: Arc::clone(&program.source), ..program.clone() };
    let body = out.terms.import(&checker.terms, body);
    if let Some(d) = out.defs.get_mut(&def.fun) {
        d.body = Body::Term(body);
    }
    out
}
