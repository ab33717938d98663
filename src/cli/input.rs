//! A file and a name become a definition, and words become its arguments.

use crate::ad;
use crate::data;
use crate::diag::{Diagnostic, Result, Source, nearest};
use crate::eval::Value;
use crate::ir::{Def, Param, Program, Ty};
use crate::types;
use std::path::Path;

/// Hints name so many definitions at most.
const NAMED: usize = 12;

/// Reads and checks a program that has definitions, and makes the derivatives that it asks for.
pub fn program(path: &Path) -> Result<Program> {
    let source = data::source(path)?;
    let program = types::program(&source)?;
    if program.defs.is_empty() {
        return Err(Diagnostic::user(format!("`{}` has no definitions", source.name)));
    }
    ad::complete(&program)
}

/// As [`program`], where `name` may be a derivative that the program does not ask for.
pub fn program_for(path: &Path, name: &str) -> Result<Program> {
    let program = program(path)?;
    if !types::meant(&program, name).is_empty() {
        return Ok(program);
    }
    let mut text = program.source.text.clone();
    if !ask(&program, name, &mut text)? {
        return Ok(program);
    }
    let source = Source::new(program.source.name.clone(), text);
    ad::complete(&types::program(&source)?)
}

/// Adds to a text what asks for a derivative, by its name; not so where the name is of another kind.
fn ask(program: &Program, name: &str, text: &mut String) -> Result<bool> {
    let inner = name.strip_prefix('[').and_then(|n| n.strip_suffix(']')).and_then(|n| n.split_once(' '));
    let Some((kind, of)) = inner.or_else(|| name.split_once('$')) else { return Ok(false) };
    let older = inner.is_none() && types::meant(program, of).is_empty();
    if older || !types::KINDS.contains(&kind) {
        return Ok(false);
    }
    let def = definition(program, of.trim())?;
    let tys: Vec<Ty> = def.params.iter().map(|p| p.ty).collect();
    let arg = if tys.len() == 1 { tys[0] } else { Ty::tuple(tys) };
    text.push_str(&format!("\n(gdef {kind} [{} {arg}])\n", def.name()));
    Ok(true)
}

/// The one definition of a name.
pub fn definition<'a>(program: &'a Program, name: &str) -> Result<&'a Def> {
    match types::meant(program, name).as_slice() {
        [def] => Ok(def),
        [] => Err(unknown(program, name)),
        many => {
            let message = format!("`{name}` has {} definitions in `{}`", many.len(), program.source.name);
            let one = types::whole_name(many[0]);
            let d = Diagnostic::user(message).note(format!("hint: say which one by its type, as in `{one}`"));
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
