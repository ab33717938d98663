//! Lets are checked: what they evaluate early cannot fail, or is evaluated anyway; and sums over nothing keep their
//! shapes.
//!
//! It must not know who placed them.

use super::Refused;
use super::check::Checker;
use super::flat::{Looked, Scope, certain};
use super::prove::{Asked, Local, Prover};
use super::unfold::{Binding, Sum, unfold};
use crate::ir::{Head, Id, Terms, Ty};
use crate::types::shape::empty_sum;
use std::cell::RefCell;
use std::rc::Rc;

/// Why lets do not stand in a sum.
pub(super) const SHAPELESS: &str = "with the lets of the result a sum over nothing has no shape";

/// A let that might fail where the program does not.
pub struct Early {
    /// The let; none where it stands in a function that is called.
    pub from: Option<Id>,
    /// What might fail.
    pub why: Refused,
}

impl Checker<'_> {
    /// Checks that a body, with lets where the flat term has none, is the present term: unfolded it
    /// is the same, and what its lets evaluate early cannot fail or is evaluated anyway.
    ///
    /// # Errors
    /// It is another term, or a let that might fail where the program does not.
    pub fn shared(&mut self, terms: &Terms, body: Id) -> Result<(), Refused> {
        self.early(terms, body)?.into_iter().next().map_or(Ok(()), |early| Err(early.why))
    }

    /// The lets of a body that might fail where the program does not, inner ones first; else it is the present term.
    ///
    /// # Errors
    /// It is another term.
    pub fn early(&mut self, terms: &Terms, body: Id) -> Result<Vec<Early>, Refused> {
        let params: Vec<Ty> = self.def.params.iter().map(|p| p.ty).collect();
        let unfolded = unfold(self.program, self.kept, (terms, body), &params, &mut self.terms);
        let unfolded = unfolded.ok_or("without lets it is too large")?;
        if unfolded.id != self.now {
            return Err("without its lets the result is not the term that the steps lead to".into());
        }
        self.guards.clone_from(&self.always);
        let mut out = vec![];
        for Binding { value, body, scope, from } in unfolded.lets {
            self.in_time()?;
            let mut local = Local::default();
            self.evaluated(body, (&mut scope.clone(), &mut self.always.clone()), scope.len(), &mut local);
            let mut safe = self.prover(&local, Asked::Total).safe(value, &scope);
            if !safe && !self.unread.is_empty() {
                self.learn();
                safe = self.prover(&local, Asked::Total).safe(value, &scope);
            }
            if !safe && !self.always(body, value, &scope) {
                self.in_time()?;
                let around = scope.is_empty().then_some(body);
                let found = self.unsafe_alike(value, (&local, around), &scope, Asked::Total);
                let Some((id, depth)) = found else { continue };
                let why = format!("a let of the result evaluates early what might fail: `{}`", self.named(id, depth));
                out.push(Early { from, why });
            }
        }
        let mut own = terms.clone();
        for Sum { from, flat, scope } in unfolded.sums {
            if empty_sum(&mut own, from).is_none() && empty_sum(&mut self.terms, flat).is_some() {
                let kids = self.terms.kids(flat).to_vec();
                let (local, n) = (Local::default(), kids.len() - 1);
                let mut prover = self.prover(&local, Asked::Total);
                if !kids[..n].iter().all(|n| prover.at_least_one(*n, &scope)) {
                    let last = own.kids(from)[n];
                    let from = (own.head(last) == Head::Let).then_some(last);
                    let part = self.named(flat, scope.len());
                    out.push(Early { from, why: format!("{SHAPELESS}: `{part}`") });
                }
            }
        }
        Ok(out)
    }

    /// Whether a let outside of loops binds what its body is certain to evaluate, whatever is chosen there.
    fn always(&mut self, body: Id, value: Id, scope: &Scope) -> bool {
        if !scope.is_empty() {
            return false;
        }
        let mut known = self.known.clone();
        certain(&mut self.terms, body, &mut vec![], &mut known, &mut Looked::default());
        let (local, asked) = (Local::default(), Asked::Total);
        Prover::new(&mut self.terms, self.def, (&known, &local), asked, self.always.clone())
            .granting(self.granted.as_ref())
            .until(self.pace)
            .safe(value, scope)
    }

    /// A part of a term that might fail, and how many loops are around it: none where all that is evaluated anyway, in
    /// whatever spelling, proves that nothing does. What `around` is certain to evaluate is, too.
    pub(super) fn unsafe_alike(
        &mut self,
        id: Id,
        (local, around): (&Local, Option<Id>),
        scope: &Scope,
        asked: Asked,
    ) -> Option<(Id, usize)> {
        if self.spelled.0 != self.known.len() {
            self.spelled = (self.known.len(), Rc::new(self.alike.sites(&mut self.terms, &self.known)));
        }
        let (mut known, mut local) = (Rc::clone(&self.spelled.1), self.alike.locals(&mut self.terms, local));
        local.extend(self.alike.locals(&mut self.terms, &self.also));
        if let Some(around) = around {
            let (mut more, mut looked) = Default::default();
            certain(&mut self.terms, around, &mut vec![], &mut more, &mut looked);
            Rc::make_mut(&mut known).extend(self.alike.sites(&mut self.terms, &more));
        }
        let alike = RefCell::new(std::mem::take(&mut self.alike));
        let mut prover = Prover::new(&mut self.terms, self.def, (&known, &local), asked, self.guards.clone())
            .granting(self.granted.as_ref())
            .until(self.pace)
            .spelled(&alike);
        let found = (!prover.safe(id, scope)).then(|| prover.unsafe_part(id, scope));
        self.alike = alike.into_inner();
        found
    }
}
