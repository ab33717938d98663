//! A checker proves a lemma under its hypotheses, and takes one where they are proved.
//!
//! It must not know how lemmas are found.

use super::Refused;
use super::check::Checker;
use super::flat::{Scope, parameter};
use super::hypotheses::Hypotheses;
use super::lemma::{Lemma, Statement};
use super::prove::{Asked, Local};
use crate::ir::{Head, Id, Ty};
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

impl Checker<'_> {
    /// Takes the hypotheses of a lemma for granted, with whose left side it began: what lets of that text bind early
    /// is not known to have a value.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn assume(&mut self, statement: &Statement) -> Result<(), Refused> {
        let hypotheses = statement.hypotheses(self)?;
        self.grant(hypotheses);
        Ok(())
    }

    /// What was proved since it began with a left side.
    pub fn lemma(&self, left: Id) -> Lemma {
        let params = self.def().params.iter().map(|p| p.ty).collect();
        let hypotheses = self.granted.clone().unwrap_or_default();
        Lemma { terms: self.terms.clone(), params, left, right: self.now, hypotheses }
    }

    /// What a lemma makes of a part, where its left side is that part and its hypotheses are proved there.
    pub(super) fn by_lemma(&mut self, lemma: &Lemma, old: Id, scope: &Scope) -> Result<Id, Refused> {
        let found = lemma.matched(&mut self.terms, old).ok_or("the left side of the lemma does not match here")?;
        let (mut local, mut guards) = (Local::default(), self.guards.clone());
        self.evaluated(old, (&mut scope.clone(), &mut guards), scope.len(), &mut local);
        // What earlier programs evaluate is looked at where that is needed: it takes long.
        let out = self.completed(lemma, &found, (scope, &local), &mut vec![]);
        out.or_else(|_| {
            self.learn();
            self.completed(lemma, &found, (scope, &local), &mut vec![])
        })
    }

    /// Parameters of which the left side does not speak are those of the definition: the first for which all
    /// hypotheses hold.
    fn completed(
        &mut self,
        lemma: &Lemma,
        found: &[Option<Id>],
        at: (&Scope, &Local),
        all: &mut Vec<Id>,
    ) -> Result<Id, Refused> {
        let k = all.len();
        let Some(known) = found.get(k) else {
            self.granted(lemma, all, at)?;
            return Ok(lemma.instance(lemma.right, &mut self.terms, all));
        };
        let ty = lemma.params[k];
        let tried: Vec<Id> = match known {
            Some(known) => vec![*known],
            None if !lemma.speaks_of(k) => vec![self.terms.put(parameter(0, ty), [])],
            None => {
                let of = self.def().params.iter().enumerate().filter(|(_, p)| p.ty == ty);
                let heads: Vec<Head> = of.map(|(k, _)| parameter(k, ty)).collect();
                heads.into_iter().map(|head| self.terms.put(head, [])).collect()
            }
        };
        let mut refused = Err("nothing stands for a parameter of the lemma".into());
        for id in tried {
            all.push(id);
            let out = self.completed(lemma, found, at, all);
            all.pop();
            match out {
                Ok(out) => return Ok(out),
                Err(why) => refused = Err(why),
            }
        }
        refused
    }

    /// Whether all hypotheses of a lemma hold of what stands for its parameters.
    fn granted(&mut self, lemma: &Lemma, all: &[Id], (scope, local): (&Scope, &Local)) -> Result<(), Refused> {
        let Hypotheses { given, below, total, defined } = &lemma.hypotheses;
        let mut of = |id: Id| lemma.instance(id, &mut self.terms, all);
        let given: Vec<(Id, Id)> = given.iter().map(|(a, b)| (of(*a), of(*b))).collect();
        let below: Vec<(Id, Id)> = below.iter().map(|(a, b)| (of(*a), of(*b))).collect();
        let mut p = self.prover(local, Asked::Total);
        let equal = given.iter().all(|(a, b)| p.same_number(*a, *b, scope));
        let inside = below.iter().all(|(i, n)| p.in_range(*i, *n, scope));
        let valued = total.iter().all(|k| p.safe(all[*k], scope));
        let mut p = self.prover(local, Asked::Defined);
        let defined = defined.iter().all(|k| p.safe(all[*k], scope));
        let failed = [(equal, "sizes are equal"), (inside, "an index is in range"), (valued, "a part has a value")];
        let failed = failed.into_iter().chain([(defined, "a part has a value over the reals")]);
        match failed.into_iter().find(|(holds, _)| !holds) {
            Some((_, what)) => Err(format!("the lemma needs that {what}, which is not proved here")),
            None => Ok(()),
        }
    }
}

impl Statement {
/// The hypotheses, as terms over the parameters in the arena of a checker.
    fn hypotheses(&self, checker: &mut Checker<'_>) -> Result<Hypotheses, Refused> {
        let place = |name: &String| self.params.iter().position(|(p, _)| p == name);
        let places = |names: &[String]| -> Result<BTreeSet<usize>, Refused> {
            names.iter().map(|n| place(n).ok_or(format!("there is no parameter `{n}`"))).collect()
        };
        let (total, defined) = (places(&self.total)?, places(&self.defined)?);
        let mut pairs = |texts: &[(String, String)]| -> Result<Vec<(Id, Id)>, Refused> {
            let mut read = |text: &str| checker.naming.read(text, Ty::int(), &[], &mut checker.terms);
            texts.iter().map(|(a, b)| Ok((read(a)?, read(b)?))).collect()
        };
        let (given, below) = (pairs(&self.given)?, pairs(&self.below)?);
        // What is given is put in the place of its left side, which must come to an end.
        let lefts: FxHashSet<Id> = given.iter().map(|(a, _)| *a).collect();
        if given.iter().any(|(_, b)| checker.terms.reachable(*b).iter().any(|part| lefts.contains(part))) {
            return Err("what is given of one size leads to another that is given".into());
        }
        Ok(Hypotheses { given, below, total, defined })
    }

}
