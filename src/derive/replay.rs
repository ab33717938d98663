//! A program and a record become verdicts: every step of every derivation is taken and checked.

use super::check::{Checker, Rules, kept};
use super::lemma::{Lemma, Lemmas, Statement};
use super::record::{Record, RuleFile, hash, hash_rules};
use super::axioms::Axiom;
use super::{Derivation, Refused, flat, spot};
use crate::diag::{Diagnostic, Result, nearest};
use crate::ir::{Body, Def, Fun, Id, Program, Terms};
use crate::rules::assume::Assume;
use crate::rules::{Level, Library};
use rustc_hash::FxHashSet;
use std::collections::HashSet;
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
    /// The arena of the flat programs.
    pub terms: Terms,
    /// The flat programs before the first step and after each; none where the definition is too large to
    /// be unfolded.
    pub programs: Vec<Id>,
    /// The lemmas that were proved, with the programs on the way, as those of the definition.
    pub lemmas: Vec<Proved>,
    /// The line on which the derivation's head stands; its steps and its result follow.
    pub line: usize,
}

/// A lemma that was proved.
pub struct Proved {
    /// Its parameters, as those of a definition.
    pub def: Def,
    /// The program that its text was read as.
    pub program: Program,
    /// The arena of the flat terms.
    pub terms: Terms,
    /// The left side and the term after each step.
    pub programs: Vec<Id>,
    /// The line on which it stands.
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
    let files: Vec<RuleFile> = library.files.iter().map(|f| RuleFile::of(f)).collect();
    if record.header.rules != hash_rules(library) || record.header.rule_files != files {
        let files = record.header.rule_files.iter().map(|f| format!(" --rules {}", f.name)).collect::<String>();
        let note = match files.is_empty() {
            true => "it was made with the shipped rules alone, perhaps of another version".to_string(),
            false => format!("it was made with{files}"),
        };
        return Err(Diagnostic::user(format!("`{name}` was made with other rules than these")).note(note));
    }
    if record.derivations.is_empty() && program.defs.values().any(|d| d.term().is_some()) {
        return Err(Diagnostic::user(format!("`{name}` derives nothing: it has a header alone")));
    }
    Ok(())
}

/// Takes all steps of a record.
///
/// # Errors
/// The first line that is refused, and why.
pub fn replay(program: &Program, record: &Record, library: &Library, name: &str) -> Result<Vec<Verdict>> {
    replay_while(program, record, library, name, |_| true)
}

/// As [`replay`], for as long as the next definition is wanted, which is told its name.
///
/// # Errors
/// As [`replay`].
pub fn replay_while(
    program: &Program,
    record: &Record,
    library: &Library,
    name: &str,
    mut wanted: impl FnMut(&str) -> bool,
) -> Result<Vec<Verdict>> {
    about(program, record, library, name)?;
    let library = library.assuming(&record.header.assume);
    let rules: Rules<'_> = library.rules.iter().map(|r| (r.name.as_str(), r)).collect();
    let keeps = (record.header.level, record.header.assume.as_slice());
    let mut seen = HashSet::new();
    let each = record.derivations.iter().take_while(|(d, _)| wanted(&d.name));
    each.map(|(d, line)| {
        if !seen.insert((&d.name, &d.params)) {
            return Err(Diagnostic::user(format!("{name}:{line}: `{}` was derived before", d.name)));
        }
        one(program, d, (name, *line), &rules, keeps)
    })
    .collect()
}

fn one(
    program: &Program,
    d: &Derivation,
    at: (&str, usize),
    rules: &Rules<'_>,
    keeps: (Level, &[Assume]),
) -> Result<Verdict> {
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
    let mut line = at.1 - d.lemmas.iter().map(|lemma| lemma.steps.len() + 1).sum::<usize>();
    let (mut lemmas, mut proved): (Lemmas, Vec<Proved>) = Default::default();
    for statement in &d.lemmas {
        let (lemma, how) = statement_of((program, &kept), statement, (rules, keeps.0), line)
            .map_err(|(line, why)| refused(line, &format!("the lemma `{}`: {why}", statement.name)))?;
        let unknown = rules.contains_key(statement.name.as_str()) || Axiom::TABLE.iter().any(|a| a.0 == statement.name);
        if unknown || lemmas.insert(statement.name.clone(), Arc::new(lemma)).is_some() {
            return Err(refused(line, &format!("there are two rules or lemmas `{}`", statement.name)));
        }
        line += statement.steps.len() + 1;
        proved.push(how);
    }
    let mut checker = Checker::new(program, def, &kept, rules, keeps.0)
        .map(|checker| checker.with(lemmas))
        .map_err(|why| (!d.steps.is_empty()).then(|| refused(at.1, &why)));
    let (mut ran, mut programs) = (0, vec![]);
    if let Ok(checker) = &mut checker {
        programs.push(checker.now);
        let every = d.steps.len().div_ceil(MAX_RUN).max(1);
        for (k, step) in d.steps.iter().enumerate() {
            let line = at.1 + 1 + k;
            checker.step(step).map_err(|why| refused(line, &why))?;
            programs.push(checker.now);
            if k % every == 0 && checker.terms.size(checker.now) < MAX_SIZE {
                let between = between(program, def, checker);
                let like = between.defs.get(&def.fun).ok_or_else(|| refused(line, "the definition is gone"))?;
                spot::agree((program, def), (&between, like), keeps, FEW).map_err(|why| refused(line, &why))?;
                ran += 1;
            }
        }
    }
    let line = at.1 + 1 + d.steps.len();
    let (result, terms) = match checker {
        Ok(mut checker) => (checker.result(&d.result), checker.terms),
        Err(None) => (Checker::unchanged(program, def, &d.result), Terms::default()),
        Err(Some(e)) => return Err(e),
    };
    let result = result.map_err(|why| refused(line, &why))?;
    let mut whole = program.clone();
    let body = result.1.term().map(|b| whole.terms.import(&result.0.terms, b));
    let inputs = match (body, whole.defs.get_mut(&def.fun)) {
        (Some(body), Some(new)) => {
            new.body = Body::Term(body);
            let new = new.clone();
            spot::agree((program, def), (&whole, &new), keeps, spot::TRIALS).map_err(|why| refused(line, &why))?
        }
        _ => 0,
    };
    let (name, params, steps, line) = (d.name.clone(), d.params.clone(), d.steps.len(), at.1);
    Ok(Verdict { name, params, steps, ran, inputs, result, terms, programs, lemmas: proved, line })
}

/// Takes the steps of a lemma.
///
/// # Errors
/// The line that is refused, and why.
fn statement_of(
    (program, kept): (&Program, &FxHashSet<Fun>),
    statement: &Statement,
    (rules, level): (&Rules<'_>, Level),
    line: usize,
) -> std::result::Result<(Lemma, Proved), (usize, Refused)> {
    let here = |why| (line, why);
    let (own, def) = statement.program(program, kept).map_err(here)?;
    let mut checker = Checker::new(&own, &def, kept, rules, level).map_err(here)?;
    checker.assume(statement).map_err(here)?;
    let mut programs = vec![checker.now];
    for (k, step) in statement.steps.iter().enumerate() {
        checker.step(step).map_err(|why| (line + 1 + k, why))?;
        programs.push(checker.now);
    }
    let (lemma, terms) = (checker.lemma(programs[0]), checker.terms);
    Ok((lemma, Proved { def, program: own, terms, programs, line }))
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
