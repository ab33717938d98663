//! What is proved once of a part of a body is taken wherever that part stands, as a rule of one derivation.
//!
//! A lemma is a definition of its own: of parameters, of which its hypotheses are taken for granted, it says that one
//! body with lets may stand for another. It has the steps of a derivation. Its parameters are variables wherever it is
//! taken, so they have values; that these are numbers over the reals has to be a hypothesis where it is needed.
//!
//! It must not know how lemmas are found.

use super::Refused;
pub use super::Statement;
use super::check::{Checker, Rules};
use super::hypotheses::Hypotheses;
use super::text::Naming;
use crate::diag::Source;
use crate::ir::{Body, Def, Fun, Id, Program, Terms, Ty};
use crate::rules::Level;
use crate::types;
use rustc_hash::FxHashSet;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A lemma that was proved.
pub struct Lemma {
    /// The arena of the sides.
    pub terms: Terms,
    /// The types of the parameters.
    pub params: Vec<Ty>,
    /// The left side, over the parameters.
    pub left: Id,
    /// The right side.
    pub right: Id,
    /// The arena of the hypotheses.
    pub flat: Terms,
    /// What has to hold, with parameters as leaves.
    pub hypotheses: Hypotheses,
}

/// A lemma that was proved, and its way.
pub struct Proof {
    /// What it says.
    pub lemma: Arc<Lemma>,
    /// The arena of the flat terms on the way.
    pub terms: Terms,
    /// The left side without lets, and the term after each step.
    pub programs: Vec<Id>,
    /// The right side with lets, in an arena of its own.
    pub right: (Terms, Id),
}

/// Lemmas by name.
pub type Lemmas = BTreeMap<String, Arc<Lemma>>;

impl Statement {
    /// The program with a further definition, whose body is the left side.
    ///
    /// # Errors
    /// The text is no such definition.
    pub fn program(&self, program: &Program) -> Result<(Program, Def), Refused> {
        let (_, prefix) = Naming::outside(program, &FxHashSet::default());
        let name = format!("{prefix}lemma");
        let text = Naming::declared(program.defs.values()) + &self.text(&name, &self.left);
        let read = types::program(&Source::new("a lemma", text)).map_err(|d| d.to_string())?;
        let fits = |d: &&Def| d.name() == name && read.defs.len() == program.defs.len() + 1;
        let def = read.defs.values().last().filter(fits).cloned().ok_or("it is no term")?;
        let mut own = program.clone();
        let body = own.terms.import(&read.terms, def.term().ok_or("it has no body")?);
        let def = Def { body: Body::Term(body), ..def };
        own.defs.insert(def.fun, def.clone());
        Ok((own, def))
    }

    fn text(&self, name: &str, body: &str) -> String {
        let params: Vec<String> = self.params.iter().map(|(name, ty)| format!("({name} : {ty})")).collect();
        format!("(def {name} {} ({})\n{body})", self.ty, params.join(" "))
    }

    /// Takes the steps, in the program with the left side.
    ///
    /// # Errors
    /// What is refused: the statement itself (0), a step by its number, or what follows them.
    pub fn proof(
        &self,
        (own, def): (&Program, &Def),
        kept: &FxHashSet<Fun>,
        (rules, level): (&Rules<'_>, Level),
    ) -> Result<Proof, (usize, Refused)> {
        let here = |why| (0, why);
        let mut checker = Checker::new(own, def, kept, rules, level).map_err(here)?;
        checker.assume(self).map_err(here)?;
        let mut programs = vec![checker.now];
        for (k, step) in self.steps.iter().enumerate() {
            checker.step(step).map_err(|why| (k + 1, why))?;
            programs.push(checker.now);
        }
        let text = self.text(def.name(), &self.right);
        let ended = |why| (self.steps.len() + 1, why);
        let (read, new) = checker.result(&text).map_err(ended)?;
        let (Some(left), Some(right)) = (def.term(), new.term()) else { return Err(here("it has no body".into())) };
        let (mut terms, params) = (Terms::default(), def.params.iter().map(|p| p.ty).collect());
        let (left, right) = (terms.import(&own.terms, left), terms.import(&read.terms, right));
        let hypotheses = checker.granted.clone().unwrap_or_default();
        let lemma = Lemma { terms, params, left, right, flat: checker.terms.clone(), hypotheses };
        let right = (lemma.terms.clone(), right);
        Ok(Proof { lemma: Arc::new(lemma), terms: checker.terms, programs, right })
    }
}

impl Checker<'_> {
    /// Takes the hypotheses of a lemma for granted, with whose left side it began.
    ///
    /// # Errors
    /// They cannot be read, or speak of what may have no value.
    pub fn assume(&mut self, statement: &Statement) -> Result<(), Refused> {
        let place = |name: &String| statement.params.iter().position(|(p, _)| p == name);
        let defined = statement.defined.iter().map(|n| place(n).ok_or(format!("there is no parameter `{n}`")));
        let defined: BTreeSet<usize> = defined.collect::<Result<_, _>>()?;
        let mut pairs = |texts: &[(String, String)]| -> Result<Vec<(Id, Id)>, Refused> {
            let mut read = |text: &str| self.naming.read(text, Ty::int(), &[], &mut self.terms);
            texts.iter().map(|(a, b)| Ok((read(a)?, read(b)?))).collect()
        };
        let (given, below) = (pairs(&statement.given)?, pairs(&statement.below)?);
        // What is given is put in the place of its left side, which must come to an end.
        let lefts: FxHashSet<Id> = given.iter().map(|(a, _)| *a).collect();
        if given.iter().any(|(_, b)| self.terms.reachable(*b).iter().any(|part| lefts.contains(part))) {
            return Err("what is given of one size leads to another that is given".into());
        }
        let all: Vec<Id> = given.iter().chain(&below).flat_map(|(a, b)| [*a, *b]).collect();
        if !self.proving(|p| all.iter().all(|id| p.safe(*id, &vec![]))) {
            return Err("what is given speaks of what may have no value".into());
        }
        self.grant(Hypotheses { given, below, defined });
        Ok(())
    }
}
