//! The texts of the table of operations become terms over their arguments.
//!
//! A text speaks of `a`, `b`, `c` (or `c`, `a`, `b` for `select`), and of the result `r` where there is one, all `Float`.

use crate::diag::{Diagnostic, Result, Source};
use crate::ir::op::Sig;
use crate::ir::{Id, Op, Terms, Ty};

/// The names and types of the arguments that the texts of an operation know, in order.
pub fn arguments(op: Op) -> Vec<(&'static str, Ty)> {
    let f = Ty::float();
    match op.row().sig {
        Sig::Choice => vec![("c", Ty::bool()), ("a", f), ("b", f)],
        Sig::FloatInt => vec![("a", f), ("b", Ty::int())],
        Sig::ThreeFloats => vec![("a", f), ("b", f), ("c", f)],
        Sig::Number | Sig::FloatFn => vec![("a", f)],
        _ => vec![("a", f), ("b", f)],
    }
}

/// A text of the table as a term over names, the last of which is variable 0.
///
/// # Errors
/// A bug where the text is wrong.
pub fn read(text: &str, names: &[(&str, Ty)], ret: Ty) -> Result<(Terms, Id)> {
    let params: Vec<String> = names.iter().map(|(n, t)| format!("({n} : {t})")).collect();
    let text = format!("(def d {ret} ({}) {text})", params.join(" "));
    let program = super::program(&Source::new("the table of operations", text))?;
    let body = program.defs.values().next().and_then(|d| d.term());
    let body = body.ok_or_else(|| Diagnostic::bug("a text of the table of operations has no body"))?;
    Ok((program.terms, body))
}
