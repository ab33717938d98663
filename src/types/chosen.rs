//! Names that people say become definitions of a program: what stands in brackets names functions here as it does in
//! texts, `[f Float]` and `[rev [f Float]]`.

use super::Elab;
use super::named::{Named, argument, packed, with_type};
use crate::diag::Source;
use crate::ir::{Def, Program, Ty, read};

/// The definitions that a name may mean, in the order of the program.
pub fn meant<'a>(program: &'a Program, name: &str) -> Vec<&'a Def> {
    let exactly = program.named(name);
    let Some(said) = structured(name).filter(|_| exactly.is_empty()) else { return exactly };
    let params = |d: &Def| d.fun.sig().params.clone();
    let told = program.defs.values().filter(|d| d.name() == said.name && said.fits(&params(d)));
    let same = |d: &&Def| structured(d.name()).is_some_and(|own| own.name == said.name && said.agrees(own.arg));
    let typed: Vec<&Def> = program.defs.values().filter(same).filter(|d| d.name() != said.name).collect();
    match said.arg.is_some() && !typed.is_empty() {
        true => typed,
        false => told.chain(typed).collect(),
    }
}

/// A definition by a name that may mean no other one, as far as there is one.
pub fn whole_name(def: &Def) -> String {
    let arg = argument(def.name(), packed(&def.fun.sig().params));
    arg.map_or_else(|| def.name().to_string(), |arg| with_type(def.name(), arg))
}

/// A name in brackets.
fn structured(name: &str) -> Option<Named> {
    if !name.starts_with('[') {
        return None;
    }
    let source = Source::new("<name>", name);
    let (tree, errors) = read::recover(name);
    match tree.top.as_slice() {
        [at] if errors.is_empty() => Elab::new(&tree, &source).fun_name(*at).ok(),
        _ => None,
    }
}

impl Named {
    /// Whether the type in another name is not against the one in this.
    fn agrees(&self, other: Option<Ty>) -> bool {
        self.arg.is_none() || self.arg == other
    }
}
