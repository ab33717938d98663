//! Calls of the library are remembered with what they are spelled out in, so that printing can tell them again.
//!
//! What a call makes of variables is made once more for that, of new ones. It must not know how calls are printed.

use super::Elab;
use super::scope::Val;
use crate::diag::Result;
use crate::ir::calls::shared;
use crate::ir::spelled::{Arg, Spelled};
use crate::ir::{Head, Id, Op, Ty};

/// Names of operations on tensors and tuples that mean the same as those of scalars.
const OTHERS: [(Op, &[&str]); 3] = [(Op::Add, &["ts_add"]), (Op::Mul, &["ts_scale", "mymul"]), (Op::Neg, &["ts_neg"])];

impl Elab<'_> {
    /// Remembers what a call makes of arguments of these types, unless the program has a function of its own of that
    /// name. The arguments `whole` may be any expressions: they are evaluated once, and in order.
    pub(super) fn spell(
        &mut self,
        name: &'static str,
        whole: &'static [usize],
        tys: &[Ty],
        shape: impl FnOnce(&mut Self, &[Val]) -> Result<Id>,
    ) -> Result<()> {
        self.remember_call((name, None), whole, tys, shape)
    }

    /// The same of a call that has a type in front of its arguments.
    pub(super) fn remember_call(
        &mut self,
        (name, of): (&'static str, Option<Ty>),
        whole: &'static [usize],
        tys: &[Ty],
        shape: impl FnOnce(&mut Self, &[Val]) -> Result<Id>,
    ) -> Result<()> {
        if self.by_name.contains_key(name) {
            return Ok(());
        }
        let from = self.depth();
        let fresh = self.stand_ins(tys);
        let term = shape(self, &fresh)?;
        self.scope.truncate(from);
        self.terms.spell(Spelled { name, of, term, args: tys.to_vec(), whole, shared: None });
        Ok(())
    }

    /// What a call makes of its arguments, where that depends on which of their sizes have names; it is remembered.
    pub(super) fn spell_as(
        &mut self,
        name: &'static str,
        args: &[Val],
        shape: impl Fn(&mut Self, &[Val]) -> Result<Id>,
    ) -> Result<Id> {
        if !self.by_name.contains_key(name) {
            let tys: Vec<Ty> = args.iter().map(|v| self.terms.ty(v.id)).collect();
            let (from, before) = (self.depth(), self.borrowed.len());
            for (k, arg) in args.iter().enumerate() {
                let id = self.now(*arg);
                let level = match self.terms.head(id) {
                    Head::Var(i, _) => self.depth().checked_sub(1 + i as usize),
                    _ => None,
                };
                let sizes = level.map(|level| self.sizes_named(level).to_vec()).unwrap_or_default();
                self.borrowed.push((from + k, sizes));
            }
            let fresh = self.stand_ins(&tys);
            let term = shape(self, &fresh)?;
            let n = tys.len();
            let all: Vec<Arg<Id>> = (0..n).map(|k| Arg::Var((n - 1 - k) as u32)).collect();
            let names = |i: u32, axis: usize| {
                let sizes = self.sizes_named(from + n - 1 - i as usize);
                sizes.get(axis).map(|name| (name.as_str(), (i, axis)))
            };
            let shared = Some(shared(&tys, &all, &names));
            self.scope.truncate(from);
            self.borrowed.truncate(before);
            self.terms.spell(Spelled { name, of: None, term, args: tys, whole: &[], shared });
        }
        shape(self, args)
    }

    fn stand_ins(&mut self, tys: &[Ty]) -> Vec<Val> {
        let from = self.depth();
        self.scope.extend_from_slice(tys);
        (from..self.depth())
            .map(|level| {
                let id = self.level(level);
                self.val(id)
            })
            .collect()
    }

    /// Remembers another name of an operation on tensors or tuples, unless the source has the own one for such, too.
    pub(super) fn spell_operation(&mut self, name: &'static str, op: Op, args: &[Id]) -> Result<()> {
        let tys: Vec<Ty> = args.iter().map(|id| self.terms.ty(*id)).collect();
        if self.plain.contains(&op) || tys.iter().all(|ty| ty.as_scalar().is_some()) {
            return Ok(());
        }
        self.spell(name, &[0, 1], &tys, |e, args| {
            let args = e.all_now(args);
            Ok(e.op(op, &args))
        })
    }

    /// Notes that the source applies an operation by its own name, which printing uses for all then.
    pub(super) fn plainly(&mut self, op: Op, args: &[Ty]) {
        let others = OTHERS.iter().find(|(known, _)| *known == op);
        let Some((_, names)) = others.filter(|_| args.iter().any(|ty| ty.as_scalar().is_none())) else { return };
        if !self.plain.contains(&op) {
            self.plain.push(op);
            names.iter().for_each(|name| self.terms.unspell(name));
        }
    }
}
