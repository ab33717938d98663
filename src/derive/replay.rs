//! A program and a record become verdicts: every step of every derivation is taken and checked.

use super::bodies::{self, Bodies};
use super::check::{Checker, Rules, kept};
use super::lemma::{Lemmas, Proof};
use super::record::{Record, RuleFile, hash, hash_rules};
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
    /// The arena of the programs.
    pub terms: Terms,
    /// The programs before the first step and after each, flat or bodies with lets; none where the definition is too large to
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
    /// The right side, in an arena of its own.
    pub right: (Terms, Id),
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
    let task = Replayed { program, def, kept: &kept, rules, keeps };
    let (lemmas, proved) = task.lemmas(d, at.1).map_err(|(line, why)| refused(line, &why))?;
    let ended = match d.bodies {
        true => task.bodies(d, lemmas, at.1),
        false if lemmas.is_empty() => task.steps(d, at.1),
        false => Err((at.1, "only steps between bodies take lemmas".into())),
    };
    let Ended { result, terms, programs, ran } = ended.map_err(|(line, why)| refused(line, &why))?;
    let mut whole = program.clone();
    let body = result.1.term().map(|b| whole.terms.import(&result.0.terms, b));
    let line = at.1 + 1 + d.steps.len();
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

/// What is refused, and on which line.
type Wrong = (usize, Refused);

/// Where steps led.
struct Ended {
    result: (Program, Def),
    terms: Terms,
    programs: Vec<Id>,
    ran: usize,
}

/// A definition whose derivation is followed.
struct Replayed<'a> {
    program: &'a Program,
    def: &'a Def,
    kept: &'a FxHashSet<Fun>,
    rules: &'a Rules<'a>,
    keeps: (Level, &'a [Assume]),
}

impl Replayed<'_> {
    /// Proves all lemmas of a derivation whose head stands on a line.
    fn lemmas(&self, d: &Derivation, head: usize) -> std::result::Result<(Lemmas, Vec<Proved>), Wrong> {
        let mut line = head.saturating_sub(d.lemmas.iter().map(|lemma| lemma.steps.len() + 2).sum::<usize>());
        let (mut lemmas, mut proved): (Lemmas, Vec<Proved>) = Default::default();
        for statement in &d.lemmas {
            let name = &statement.name;
            let wrong = |k: usize, why: &str| (line + k, format!("the lemma `{name}`: {why}"));
            let (own, def) = statement.program(self.program).map_err(|why| wrong(0, &why))?;
            let how = statement.proof((&own, &def), self.kept, (self.rules, self.keeps.0));
            let Proof { lemma, terms, programs, right } = how.map_err(|(k, why)| wrong(k, &why))?;
            if name == bodies::LETS || lemmas.insert(name.clone(), lemma).is_some() {
                return Err(wrong(0, "something else has this name"));
            }
            proved.push(Proved { def, program: own, terms, programs, right, line });
            line += statement.steps.len() + 2;
        }
        Ok((lemmas, proved))
    }

    /// Follows steps from one body with lets to the next.
    fn bodies(&self, d: &Derivation, lemmas: Lemmas, head: usize) -> std::result::Result<Ended, Wrong> {
        let Replayed { program, def, kept, .. } = *self;
        let mut checker = Bodies::new(program, def, kept).map_err(|why| (head, why))?;
        lemmas.into_iter().for_each(|(name, lemma)| checker.know(name, lemma));
        let (mut programs, mut ran) = (vec![checker.now], 0);
        let every = d.steps.len().div_ceil(MAX_RUN).max(1);
        for (k, step) in d.steps.iter().enumerate() {
            let line = head + 1 + k;
            checker.step(step).map_err(|why| (line, why))?;
            programs.push(checker.now);
            if k % every == 0 {
                self.run((&checker.terms, checker.now), line)?;
                ran += 1;
            }
        }
        let result = checker.result(&d.result).map_err(|why| (head + 1 + d.steps.len(), why))?;
        Ok(Ended { result, terms: checker.terms, programs, ran })
    }

    /// Follows steps from one flat term to the next.
    fn steps(&self, d: &Derivation, head: usize) -> std::result::Result<Ended, Wrong> {
        let Replayed { program, def, kept, rules, keeps } = *self;
        let last = head + 1 + d.steps.len();
        let mut checker = match Checker::new(program, def, kept, rules, keeps.0) {
            Ok(checker) => checker,
            // What is too large to be unfolded may still be said to stay as it is.
            Err(_) if d.steps.is_empty() => {
                let result = Checker::unchanged(program, def, &d.result).map_err(|why| (last, why))?;
                return Ok(Ended { result, terms: Terms::default(), programs: vec![], ran: 0 });
            }
            Err(why) => return Err((head, why)),
        };
        let (mut programs, mut ran) = (vec![checker.now], 0);
        let every = d.steps.len().div_ceil(MAX_RUN).max(1);
        for (k, step) in d.steps.iter().enumerate() {
            let line = head + 1 + k;
            checker.step(step).map_err(|why| (line, why))?;
            programs.push(checker.now);
            if k % every == 0 && checker.terms.size(checker.now) < MAX_SIZE {
                let body = flat::to_body(&mut checker.terms, checker.now, def.params.len(), 0);
                self.run((&checker.terms, body), line)?;
                ran += 1;
            }
        }
        let result = checker.result(&d.result).map_err(|why| (last, why))?;
        Ok(Ended { result, terms: checker.terms, programs, ran })
    }

    /// Runs a body on the way beside the input.
    fn run(&self, (terms, body): (&Terms, Id), line: usize) -> std::result::Result<(), Wrong> {
        let mut between = Program { source: Arc::clone(&self.program.source), ..self.program.clone() };
        let body = between.terms.import(terms, body);
        if let Some(d) = between.defs.get_mut(&self.def.fun) {
            d.body = Body::Term(body);
        }
        let like = between.defs.get(&self.def.fun).ok_or_else(|| (line, "the definition is gone".to_string()))?;
        spot::agree((self.program, self.def), (&between, like), self.keeps, FEW).map_err(|why| (line, why))?;
        Ok(())
    }
}

/// Programs on the way that are larger as trees are not run.
const MAX_SIZE: u64 = 20_000;
