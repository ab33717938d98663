//! Hessians times vectors, forward over reverse: a definition becomes its gradient, and that its tangent.
//!
//! Such a product costs a constant times the work of the function, whatever the number of parameters. It must not know how
//! either derivative is made.

use super::keeping::{Decisions, Keeping};
use super::{Made, Mode, Wanted, derive, derive_keeping};
use crate::diag::{Diagnostic, Result};
use crate::ir::{Body, Def, Fun, Head, Lit, Program, Signature, Ty};

/// The product of a Hessian and a vector, to be made beside the definitions of a program.
pub struct Product {
    /// The program with both functions.
    pub program: Program,
    /// The gradient, of the arguments alone.
    pub gradient: Fun,
    /// Its tangent: it takes the arguments one by one, then a tangent for each by which the function is differentiated. Where
    /// the value is wanted, the gradient stands before it.
    pub product: Fun,
    /// What there was to decide of the gradient.
    pub decisions: Decisions,
}

/// Makes the product for a function that gives one float. What is asked for of reverse mode is asked of its gradient;
/// [`Wanted::mode`] is not looked at.
///
/// # Errors
/// What has no derivative, with its place; a function that gives anything but one float.
pub fn product(program: &Program, wanted: &Wanted) -> Result<Product> {
    let keeping = if wanted.checkpoint { Keeping::few() } else { Keeping::everything() };
    product_keeping(program, wanted, &keeping)
}

/// As [`product`], where it is said what the gradient keeps for its way back; [`Wanted::checkpoint`] is not looked at.
///
/// # Errors
/// As [`product`].
pub fn product_keeping(program: &Program, wanted: &Wanted, keeping: &Keeping) -> Result<Product> {
    let def = &program.defs[&wanted.fun];
    let Some(one) = def.fun.sig().ret.as_scalar().filter(|s| s.is_float()) else {
        let message = format!("`{}` gives {}, so it has no Hessian", def.name(), def.fun.sig().ret);
        let d = Diagnostic::user(message).at(def.span, "this function").within(&program.source);
        return Err(d.note("a Hessian is of a function that gives one float; `--mode rev` takes any result"));
    };
    let back = Wanted { mode: Mode::Reverse, value: false, ..wanted.clone() };
    let Made { mut program, fun, decisions } = derive_keeping(program, &back, keeping)?;
    let reverse = program.defs[&fun].clone();
    let gradient = gradient(&mut program, &reverse, Lit::of(one, 1.0))?;
    let wrt = wanted.wrt.clone();
    let ahead = Wanted { fun: gradient, mode: Mode::Forward, wrt, value: wanted.value, checkpoint: false };
    let (program, made) = derive(&program, &ahead)?;
    let suffix = reverse.name().strip_prefix("rev").unwrap_or_default();
    let name = if wanted.value { format!("value$hvp{suffix}") } else { format!("hvp{suffix}") };
    let (program, product) = renamed(program, made, &name);
    Ok(Product { program, gradient, product, decisions })
}

/// The gradient as a function of the arguments alone: the adjoint of the result is 1.
fn gradient(program: &mut Program, reverse: &Def, one: Lit) -> Result<Fun> {
    let Some(body) = reverse.term() else { return Err(Diagnostic::bug("a derivative without a body")) };
    // The adjoint is the last parameter, so the innermost variable.
    let one = program.terms.lit(one);
    let body = program.terms.put(Head::Let, [one, body]);
    let name = format!("grad{}", reverse.name().strip_prefix("rev").unwrap_or_default());
    let params = reverse.params[..reverse.params.len() - 1].to_vec();
    let tys: Vec<Ty> = params.iter().map(|p| p.ty).collect();
    let fun = Fun::new(Signature { name: program.unused_name(&name), params: tys, ret: reverse.fun.sig().ret });
    program.defs.insert(fun, Def { fun, params, body: Body::Term(body), span: reverse.span });
    Ok(fun)
}

/// The same definition under another name; nothing else calls it.
fn renamed(mut program: Program, fun: Fun, name: &str) -> (Program, Fun) {
    let sig = Signature { name: program.unused_name(name), ..fun.sig().clone() };
    let to = Fun::new(sig);
    if let Some(def) = program.defs.shift_remove(&fun) {
        program.defs.insert(to, Def { fun: to, ..def });
    }
    (program, to)
}
