//! Functions from outside that take functions, or are about linear maps.
//!
//! Nothing here can run them, so what is read of a function argument is only whether it fits: a call
//! fails before it would be used. Linear maps have no values at all; a program may declare functions
//! of them, but not call any.

use super::Elab;
use super::named::Named;
use crate::diag::Result;
use crate::ir::{Fun, Head, Id, Ty};

/// Whether types of functions may stand in what is being read, and whether one did.
#[derive(Default)]
pub(super) struct Foreign {
    pub allowed: bool,
    /// What the type is about.
    pub met: Option<&'static str>,
}

/// What a function from outside takes, in order: the types of a function argument, or nothing where a
/// value stands.
pub(super) type Functions = Vec<Option<(Ty, Ty)>>;

/// The types of an `edef` without those of functions.
pub(super) struct Declared {
    /// The types of the values it takes.
    pub params: Vec<Ty>,
    /// The functions among its arguments; empty where there are none.
    pub functions: Functions,
    /// What it gives.
    pub ret: Ty,
}

impl Elab<'_> {
    /// The types of an `edef`; nothing where it is about linear maps.
    pub(super) fn outside(&mut self, name: &str, kids: &[usize]) -> Result<Option<Declared>> {
        self.foreign = Foreign { allowed: true, met: None };
        let read = self.outside_types(kids);
        let met = std::mem::take(&mut self.foreign).met;
        let declared = read?;
        if let Some(what) = met {
            self.linear.insert(name.to_string(), what);
            return Ok(None);
        }
        Ok(Some(declared))
    }

    fn outside_types(&mut self, kids: &[usize]) -> Result<Declared> {
        let ret = self.ty(kids[2])?;
        let (mut params, mut functions, mut any) = (vec![], vec![], false);
        let parts = match self.is_one_type(kids[3]) {
            true => vec![kids[3]],
            false => self.tree.list(kids[3]).unwrap_or_default().to_vec(),
        };
        for at in &parts {
            let function = self.tree.headed(*at, "Lam").map(<[usize]>::to_vec);
            match function.as_deref() {
                Some([from, to]) => {
                    functions.push(Some((self.ty(*from)?, self.ty(*to)?)));
                    any = true;
                }
                _ => {
                    params.push(self.ty(*at)?);
                    functions.push(None);
                }
            }
        }
        // One type that is a tuple stands for several.
        if let ([one], false, true) = (params.as_slice(), any, self.is_one_type(kids[3]))
            && let Some(each) = one.as_tuple()
        {
            params = each.to_vec();
        }
        Ok(Declared { params, functions: if any { functions } else { vec![] }, ret })
    }

    /// A call of a function from outside that takes functions; refuses those about linear maps.
    pub(super) fn call_outside(&mut self, at: usize, head: usize, named: &Named, args: &[usize]) -> Result<Option<Id>> {
        let funs = self.by_name.get(&named.name).cloned().unwrap_or_default();
        let Some(fun) = funs.iter().copied().find(|f| self.higher.contains_key(f)) else {
            if let (Some(what), []) = (self.linear.get(&named.name), funs.as_slice()) {
                let message = format!("`{}` is about {what}, which are not supported", named.name);
                return Err(self.error(head, &message, "it may be declared, but not called"));
            }
            return Ok(None);
        };
        let functions = self.higher[&fun].clone();
        if functions.len() != args.len() {
            let label = format!("expected {}, found {}", functions.len(), args.len());
            return Err(self.error(at, &format!("wrong number of arguments of `{}`", named.name), &label));
        }
        self.with_functions(at, fun, &functions, args).map(Some)
    }

    fn with_functions(&mut self, at: usize, fun: Fun, functions: &Functions, args: &[usize]) -> Result<Id> {
        let (mut ids, mut places) = (vec![], vec![]);
        for (function, arg) in functions.iter().zip(args) {
            match function {
                Some((from, to)) => {
                    let lam = self.lambda(*arg)?;
                    let body = self.binder(&lam, &[*from])?;
                    if self.terms.ty(body) != *to {
                        let label = format!("expected {to}, found {}", self.terms.ty(body));
                        return Err(self.error(lam.body, "type mismatch", &label));
                    }
                }
                None => {
                    ids.push(self.expr(*arg)?);
                    places.push(*arg);
                }
            }
        }
        self.node(at, Head::Call(fun), &ids, &places)
    }
}
