//! What is proved once of a part of a program is taken wherever that part stands, as a rule of one derivation.
//!
//! A lemma says that one flat term has the value of another, for all values of its parameters of which its
//! hypotheses hold. Its steps are checked as those of a definition whose body is the left side. But what stands for a
//! parameter is no input: it may fail, or have no value over the reals, where a hypothesis does not say that it has
//! one. Whoever takes a lemma proves the hypotheses of the parts that stand for the parameters.
//!
//! It must not know how lemmas are found.

use super::flat::{as_parameter, lowered, replaced_leaves};
use super::hypotheses::Hypotheses;
use super::text::Naming;
use super::{Refused, Step};
use crate::diag::Source;
use crate::ir::{Def, Fun, Id, Program, Terms, Ty, deep};
use crate::types;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A lemma as text, and the steps that prove it.
#[derive(Clone, PartialEq, Debug)]
pub struct Statement {
    /// Its name, by which steps take it: no rule has a name with a space.
    pub name: String,
    /// The names and types of its parameters.
    pub params: Vec<(String, String)>,
    /// The type of either side.
    pub ty: String,
    /// The left side.
    pub left: String,
    /// Integers that are equal. What stands on a left side stands on no right side.
    pub given: Vec<(String, String)>,
    /// Integers that are at least 0 and below another one.
    pub below: Vec<(String, String)>,
    /// The parameters that have a value.
    pub total: Vec<String>,
    /// The parameters that have one over the reals, too.
    pub defined: Vec<String>,
    /// The steps from the left side to the right one.
    pub steps: Vec<Step>,
    /// The cost of the left side, with what is shared counted once.
    pub start: f64,
}

/// A lemma that was proved.
#[derive(Clone)]
pub struct Lemma {
    /// The arena.
    pub terms: Terms,
    /// The types of the parameters, which are leaves of the terms.
    pub params: Vec<Ty>,
    /// The left side.
    pub left: Id,
    /// The right side.
    pub right: Id,
    /// What has to hold.
    pub hypotheses: Hypotheses,
}

impl Statement {
    /// A program of the left side alone, as a definition, where calls stay that stay in another program.
    ///
    /// # Errors
    /// The text is no such definition.
    pub fn program(&self, program: &Program, kept: &FxHashSet<Fun>) -> Result<(Program, Def), Refused> {
        let (outside, prefix) = Naming::outside(program, kept);
        let params: Vec<String> = self.params.iter().map(|(name, ty)| format!("({name} : {ty})")).collect();
        let name = format!("{prefix}lemma");
        let text = format!("{outside}(def {name} {} ({})\n{})", self.ty, params.join(" "), self.left);
        let read = types::program(&Source::new("a lemma", text)).map_err(|d| d.to_string())?;
        let def = read.defs.values().last().filter(|d| d.name() == name).cloned().ok_or("it is no term")?;
        Ok((read, def))
    }
}

impl Lemma {
    /// What stands for the parameters where the left side is a term; nothing for those that it does not speak of.
    pub fn matched(&self, terms: &mut Terms, id: Id) -> Option<Vec<Option<Id>>> {
        let (found, seen) = (vec![None; self.params.len()], FxHashSet::default());
        let mut walk = Match { lemma: self, terms, found, seen };
        walk.fits(self.left, id, 0).then_some(walk.found)
    }

    /// A term of the lemma with other terms for its parameters, in their arena.
    pub fn instance(&self, id: Id, terms: &mut Terms, found: &[Id]) -> Id {
        let id = terms.import(&self.terms, id);
        replaced_leaves(terms, id, &mut |t, id, under| {
            let k = as_parameter(t.head(id))?;
            found.get(k).map(|to| t.shift(*to, under))
        })
    }

    /// Whether a term of the lemma speaks of a parameter.
    pub(super) fn speaks_of(&self, k: usize) -> bool {
        let Hypotheses { given, below, total, defined } = &self.hypotheses;
        let pairs = given.iter().chain(below).flat_map(|(a, b)| [*a, *b]);
        let speaks = |id: Id| self.terms.reachable(id).iter().any(|p| as_parameter(self.terms.head(*p)) == Some(k));
        total.contains(&k) || defined.contains(&k) || speaks(self.right) || pairs.into_iter().any(speaks)
    }
}

struct Match<'a> {
    lemma: &'a Lemma,
    terms: &'a mut Terms,
    found: Vec<Option<Id>>,
    seen: FxHashSet<(Id, Id, usize)>,
}

impl Match<'_> {
    fn fits(&mut self, pattern: Id, id: Id, depth: usize) -> bool {
        let (want, have) = (self.lemma.terms.head(pattern), self.terms.head(id));
        if let Some(k) = as_parameter(want) {
            let Some(value) = lowered(self.terms, id, depth) else { return false };
            let known = self.found[k].get_or_insert(value);
            return *known == value && self.terms.ty(id) == self.lemma.params[k];
        }
        if want != have || !self.seen.insert((pattern, id, depth)) {
            return want == have;
        }
        let (left, right) = (self.lemma.terms.kids(pattern), self.terms.kids(id).to_vec());
        let n = left.len();
        n == right.len() && (0..n).all(|k| deep(|| self.fits(left[k], right[k], depth + want.binds(k, n))))
    }
}

/// Lemmas by name.
pub type Lemmas = BTreeMap<String, Arc<Lemma>>;
