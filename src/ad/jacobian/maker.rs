//! Functions become derivatives, and bodies definitions, beside those of a program.

use crate::ad::keeping::{Decisions, Keeping};
use crate::ad::make::derive_keeping;
use crate::ad::parameters::readable;
use crate::ad::{Mode, Wanted};
use crate::diag::{Diagnostic, Result};
use crate::ir::{Body, Def, Fun, Id, Program, Signature, Ty};

/// What the functions are made of.
pub struct Maker<'a> {
    /// The program so far.
    pub program: Program,
    /// The definition.
    pub def: &'a Def,
    /// The parameters that are differentiated by, from the first.
    pub by: Vec<usize>,
    /// What there was to decide about what the derivatives keep.
    pub decisions: Decisions,
    keeping: &'a Keeping,
}

impl<'a> Maker<'a> {
    /// By these parameters; reverse mode keeps so much.
    pub fn new(program: Program, def: &'a Def, by: Vec<usize>, keeping: &'a Keeping) -> Maker<'a> {
        Maker { program, def, by, decisions: Decisions::default(), keeping }
    }

    /// The body of a derivative of a function of the program, over its parameters and what the mode adds to them. If the
    /// function is not the definition, it was made for this, and goes.
    ///
    /// # Errors
    /// What has no derivative.
    pub fn derivative(&mut self, fun: Fun, mode: Mode, wrt: Vec<bool>) -> Result<Id> {
        let wanted = Wanted { fun, mode, wrt, value: false, checkpoint: false };
        let made = derive_keeping(&self.program, &wanted, self.keeping)?;
        self.decisions.sequences.extend(made.decisions.sequences);
        self.decisions.functions.extend(made.decisions.functions);
        let body = made.program.defs[&made.fun].term();
        let body = body.ok_or_else(|| Diagnostic::bug("a derivative without a body"))?;
        let known = self.program.defs.contains_key(&made.fun);
        self.program = made.program;
        if !known {
            self.program.defs.shift_remove(&made.fun);
        }
        if fun != self.def.fun {
            self.program.defs.shift_remove(&fun);
        }
        Ok(body)
    }

    /// Whether two axes of parameters have one name.
    pub fn same_size(&self, a: (usize, usize), b: (usize, usize)) -> bool {
        let name = |(k, axis): (usize, usize)| self.def.params.get(k)?.sizes.get(axis);
        name(a).is_some() && name(a) == name(b)
    }

    /// A new definition over the same parameters.
    pub fn define(&mut self, name: &str, body: Id) -> Fun {
        let params: Vec<Ty> = self.def.params.iter().map(|p| p.ty).collect();
        let ret = self.program.terms.ty(body);
        let fun = Fun::new(Signature { name: self.program.unused_name(name), params, ret });
        let def = Def { fun, params: self.def.params.clone(), body: Body::Term(body), span: self.def.span };
        let def = readable(&self.program.defs, &self.program.terms, def);
        self.program.defs.insert(fun, def);
        fun
    }
}
