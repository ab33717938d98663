//! What a declared derivative says: which derivative of which function, and its parameters.

use super::emit::{Emit, Val};
use super::written::packed;
use crate::diag::{Diagnostic, Result};
use crate::ir::{Def, Program};

/// The error of a derivative that the source both writes and declares.
pub(super) fn twice(declared: &Def) -> Box<Diagnostic> {
    let message = format!("`{}` is defined and declared", declared.name());
    Diagnostic::user(message).at(declared.span, "declared here")
}

/// The word that says which derivative a definition declares.
pub(super) fn kind(declared: &Def) -> &str {
    declared.name().strip_prefix('[').and_then(|n| n.split_once(' ')).map_or("", |(kind, _)| kind)
}

/// The parameters of a declared derivative in scope: the argument, and the tangent or adjoint.
/// `sufrevpass` takes what `suffwdpass` left behind, the argument, last.
pub(super) fn packed_parameters(e: &mut Emit<'_>, declared: &Def) -> (Val, Val) {
    let (first, second) = (e.enter(declared.params[0].ty), e.enter(declared.params[1].ty));
    if kind(declared) == "sufrevpass" { (second, first) } else { (first, second) }
}

/// The function whose derivative a definition declares.
pub(super) fn base<'a>(program: &'a Program, declared: &Def) -> Result<&'a Def> {
    let name = declared.name();
    let of = name.strip_suffix(']').and_then(|n| n.split_once(' ')).map_or("", |(_, of)| of);
    let params = &declared.fun.sig().params;
    let arg = match kind(declared) {
        "CL" => packed(params),
        "sufrevpass" => params[1],
        _ => params[0],
    };
    let fits = |d: &&Def| packed(&d.fun.sig().params) == arg;
    let found = program.named(of).into_iter().find(fits);
    found.ok_or_else(|| Diagnostic::bug(format!("`{name}` is a derivative of nothing")))
}
