//! A file and a name become a definition, and words become its arguments.

use crate::data;
use crate::diag::{Diagnostic, Result, nearest};
use crate::eval::Value;
use crate::ir::{Def, Param, Program};
use crate::types;
use std::path::Path;

/// Hints name so many definitions at most.
const NAMED: usize = 12;

/// Reads and checks a program that has definitions.
pub fn program(path: &Path) -> Result<Program> {
    let source = data::source(path)?;
    let program = types::program(&source)?;
    if program.defs.is_empty() {
        return Err(Diagnostic::user(format!("`{}` has no definitions", source.name)));
    }
    Ok(program)
}

/// The one definition of a name.
pub fn definition<'a>(program: &'a Program, name: &str) -> Result<&'a Def> {
    match program.named(name).as_slice() {
        [def] => Ok(def),
        [] => Err(unknown(program, name)),
        many => {
            let message = format!("`{name}` has {} definitions in `{}`", many.len(), program.source.name);
            let d = Diagnostic::user(message).note("a name that stands for one is needed; rename the one meant");
            Err(many.iter().fold(d, |d, def| d.note(format!("candidate: {}", signature(def)))))
        }
    }
}

fn unknown(program: &Program, name: &str) -> Box<Diagnostic> {
    let names = || program.defs.values().map(Def::name);
    let d = Diagnostic::user(format!("`{}` does not define `{name}`", program.source.name));
    match nearest(name, names()) {
        Some(hint) => d.hint(Some(hint)),
        None => {
            let mut known: Vec<String> = names().take(NAMED).map(|n| format!("`{n}`")).collect();
            if program.defs.len() > NAMED {
                known.push("…".into());
            }
            d.note(format!("it defines {}", known.join(", ")))
        }
    }
}

/// `(name (x : T) …) -> T`, as messages and `check` show a definition.
pub fn signature(def: &Def) -> String {
    let mut out = format!("({}", def.name());
    for p in &def.params {
        out += &format!(" ({})", parameter(p));
    }
    out + &format!(") -> {}", def.fun.sig().ret)
}

fn parameter(p: &Param) -> String {
    match p.sizes.as_slice() {
        [] => format!("{} : {}", p.name, p.ty),
        [one] => format!("{} : {} {one}", p.name, p.ty),
        many => format!("{} : {} ({})", p.name, p.ty, many.join(" ")),
    }
}

/// The arguments of a definition from words.
pub fn arguments(def: &Def, words: &[String]) -> Result<Vec<Value>> {
    if words.len() != def.params.len() {
        let (n, found) = (def.params.len(), words.len());
        let plural = if n == 1 { "" } else { "s" };
        return Err(Diagnostic::user(format!("`{}` takes {n} argument{plural}, found {found}", def.name()))
            .note(format!("it is {}", signature(def))));
    }
    let each = def.params.iter().zip(words).enumerate();
    each.map(|(k, (p, word))| {
        data::argument(word, p.ty).map_err(|d| d.note(format!("argument {} is {}", k + 1, parameter(p))))
    })
    .collect()
}
