//! `print`: values are flattened as they are passed, and whoever calls the function writes them.

use super::{Expr, Lower, Scalar};
use crate::diag::Result;
use crate::ir::{Head, Id};
use crate::nest::{PrintId, Stmt};

impl Lower<'_> {
    /// Whether making the value of a term prints.
    pub(super) fn prints(&mut self, id: Id) -> bool {
        if self.printing.is_empty() {
            return false;
        }
        if let Some(known) = self.printed.get(&id) {
            return *known;
        }
        let found = self.terms.reachable(id).into_iter().any(|t| match self.terms.head(t) {
            Head::Print => true,
            Head::Call(f) => self.printing.contains(&f),
            _ => false,
        });
        self.printed.insert(id, found);
        found
    }

    /// Writes values once all of them are made; gives the number of characters.
    pub(super) fn print(&mut self, kids: &[Id]) -> Result<Expr> {
        let mut values = vec![];
        for k in kids {
            let v = self.value(*k)?;
            values.push(self.name_val(v, "shown"));
        }
        let mut args = vec![];
        for v in &values {
            self.flat(v, &mut vec![], &mut args)?;
        }
        let at = PrintId(self.prints.len() as u32);
        self.prints.push(kids.iter().map(|k| self.terms.ty(*k)).collect());
        let count = self.fresh("written", Scalar::I64);
        self.push(Stmt::Print(at, args, count));
        Ok(Expr::Var(count))
    }
}
