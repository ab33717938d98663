//! Definitions lose what need not be there, whatever their size: `rewrite/simplify` for whole programs, with the checks
//! that every pass gets.
//!
//! A definition stays as it is where its text would not be read again, since sizes have to be equal that it names apart,
//! or where a sum over nothing would lose its shape. It must not know what made the program.

use super::{fit, prepare};
use crate::diag::{Diagnostic, Result};
use crate::ir::{Body, Def, Id, Program};
use crate::rewrite::simplify::{Directed, simplify};
use crate::rules::{Level, Library};
use crate::types::shape::has_shapeless;
use crate::types::{sizes, verify};

/// The program with the chosen definitions simplified, by the shipped rules that keep what `level` asks for.
///
/// # Errors
/// A bug: what came out does not check.
pub fn simplified(program: &Program, chosen: &dyn Fn(&Def) -> bool, level: Level) -> Result<Program> {
    let library = Library::shipped()?;
    let mut rules = prepare(&library, level)?;
    fit(program, &mut rules);
    let (mut directed, mut out, printing) = (Directed::new(&rules), program.clone(), program.printing());
    for def in program.defs.values().filter(|def| chosen(def) && !printing.contains(&def.fun)) {
        let Some(body) = def.term() else { continue };
        let (new, _) = simplify(&mut out.terms, body, &def.params, &mut directed);
        if new != body && stands(&mut out, def, (body, new)) {
            out.defs.insert(def.fun, Def { body: Body::Term(new), ..def.clone() });
        }
    }
    match verify::verify(&out) {
        Ok(()) => Ok(out),
        Err(d) => Err(Diagnostic::bug("what was simplified does not check").note(d.render())),
    }
}

/// Whether a body may stand for the one that a definition has.
fn stands(program: &mut Program, def: &Def, (before, after): (Id, Id)) -> bool {
    let loses = has_shapeless(&mut program.terms, after) && !has_shapeless(&mut program.terms, before);
    !loses && sizes::agree(&program.defs, def, &program.terms, after)
}
