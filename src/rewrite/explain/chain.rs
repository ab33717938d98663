//! The bodies that a definition becomes one after the other become steps that the checker of bodies has taken.
//!
//! It must not know how bodies are found.

use super::lemma::Proved;
use super::lets::{MAX_ROUNDS, later};
use crate::derive::bodies::{Bodies, LETS};
use crate::derive::{Place, Step};
use crate::ir::{Body, Def, Fun, Id, Program, Terms, print};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// Parts of more nodes are not shown.
const LONG: u64 = 120;

/// Steps from one body to the next.
pub struct Chain<'a> {
    def: &'a Def,
    checker: Bodies<'a>,
    /// The steps; what they cost is to be added.
    pub steps: Vec<Step>,
    /// The body at the start and after each step.
    pub programs: Vec<(Terms, Id)>,
    /// The text of what each step changes, before and after, where it is short.
    pub changes: Vec<(String, String)>,
    /// The lemmas that were taken.
    pub lemmas: Vec<Arc<Proved>>,
}

/// How far a chain had come.
#[derive(Clone, Copy)]
pub struct Mark {
    now: Id,
    steps: usize,
}

impl<'a> Chain<'a> {
    /// Begins with the body of a definition.
    ///
    /// # Errors
    /// It has none.
    pub fn new(program: &'a Program, def: &'a Def, kept: &'a FxHashSet<Fun>) -> Result<Chain<'a>, String> {
        let checker = Bodies::new(program, def, kept)?;
        let (steps, changes, lemmas) = Default::default();
        let programs = vec![(checker.terms.clone(), checker.now)];
        Ok(Chain { def, checker, steps, programs, changes, lemmas })
    }

    /// The present body.
    pub fn body(&self) -> (&Terms, Id) {
        (&self.checker.terms, self.checker.now)
    }

    /// Where it is.
    pub fn mark(&self) -> Mark {
        Mark { now: self.checker.now, steps: self.steps.len() }
    }

    /// Goes back to where it was.
    pub fn back(&mut self, to: Mark) {
        self.checker.now = to.now;
        self.steps.truncate(to.steps);
        self.changes.truncate(to.steps);
        self.programs.truncate(to.steps + 1);
    }

    /// Goes on to a body with other lets; where some of these might fail, to one where they come later, and says why.
    ///
    /// # Errors
    /// Why it does not.
    pub fn lets(&mut self, body: (&Terms, Id), stop: &dyn Fn() -> bool) -> Result<Option<String>, String> {
        let (mut terms, mut id, mut refused) = (body.0.clone(), body.1, None);
        for round in 0..MAX_ROUNDS {
            let early = self.checker.early(&terms, id)?;
            let which: FxHashSet<Id> = early.iter().filter_map(|e| e.from).collect();
            let Some(first) = early.into_iter().next() else { break };
            let why: &mut String = refused.get_or_insert(first.why);
            if which.is_empty() || round + 1 == MAX_ROUNDS || stop() {
                return Err(std::mem::take(why));
            }
            id = later(&mut terms, id, which, round);
        }
        if self.body().1 == self.checker.terms.import(&terms, id) {
            return Ok(refused);
        }
        let text = print::def(&terms, &Def { body: Body::Term(id), ..self.def.clone() });
        self.take(Step { by: LETS.into(), at: vec![vec![]], place: Place::Here, to: Some(text), cost: 0.0 })?;
        self.changes.push(("…".into(), "…".into()));
        Ok(refused)
    }

    /// Takes a lemma at a place, for the variables of these levels.
    ///
    /// # Errors
    /// Why that is refused.
    pub fn lemma(&mut self, path: Vec<usize>, levels: &[usize], proved: &Arc<Proved>) -> Result<(), String> {
        let name = proved.statement.name.clone();
        self.checker.know(name.clone(), Arc::clone(&proved.lemma));
        let names: Vec<String> = levels.iter().map(|level| self.checker.variable(*level)).collect();
        self.take(Step { by: name, at: vec![path], place: Place::Here, to: Some(names.join(" ")), cost: 0.0 })?;
        let short = |id: Id, text: &str| match proved.lemma.terms.size(id) <= LONG {
            true => text.to_string(),
            false => "…".to_string(),
        };
        let (statement, lemma) = (&proved.statement, &proved.lemma);
        self.changes.push((short(lemma.left, &statement.left), short(lemma.right, &statement.right)));
        self.lemmas.push(Arc::clone(proved));
        Ok(())
    }

    fn take(&mut self, step: Step) -> Result<(), String> {
        self.checker.step(&step)?;
        self.steps.push(step);
        let mut own = Terms::default();
        let now = own.import(&self.checker.terms, self.checker.now);
        self.programs.push((own, now));
        Ok(())
    }
}
