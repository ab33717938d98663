//! The levels of `daedal emit` below the language: a definition becomes loops or C++ text.

use crate::codegen;
use crate::diag::{Diagnostic, Result};
use crate::ir::{Def, Program};
use crate::nest;
use crate::pipeline;

/// The loop nest of a definition.
pub fn nest(program: &Program, def: &Def) -> Result<String> {
    Ok(nest::lower(program, def)?.to_string())
}

/// The C++ text of a definition.
pub fn cpp(program: &Program, def: &Def) -> Result<String> {
    Ok(codegen::cpp(&nest::lower(program, def)?))
}

/// The program after optimization with the choices that `optimize` makes by itself.
pub fn optimized(program: &Program) -> Result<Program> {
    Ok(pipeline::optimize(program, &pipeline::Options::standard())?.program)
}

/// Refuses a level that has a text for one definition only.
pub fn one_only(target: &str) -> Box<Diagnostic> {
    Diagnostic::user(format!("`--target {target}` shows one definition")).note("name it after the file")
}
