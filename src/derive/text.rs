//! Flat terms become text and come back, wherever they stand: loop variables have numbers for names.

use super::Refused;
use super::flat::{as_parameter, replaced_leaves, to_body};
use super::unfold::unfold;
use crate::diag::Source;
use crate::ir::{Body, Def, Fun, Id, Program, Terms, Ty, print};
use crate::types;
use rustc_hash::FxHashSet;

/// So much of the text of a part is named in a refusal.
const MAX_NAMED: usize = 160;
/// One of more nodes as a tree is not written for that: many refusals are never shown.
const MAX_NAMED_SIZE: u64 = 1_000;

/// What text about one definition may name.
#[derive(Clone)]
pub struct Naming<'a> {
    def: &'a Def,
    /// Declarations of the functions whose calls stay.
    outside: String,
    /// Before the number of a loop: no parameter begins like this.
    prefix: String,
}

impl<'a> Naming<'a> {
    /// For a definition of a program.
    pub fn new(program: &Program, kept: &FxHashSet<Fun>, def: &'a Def) -> Naming<'a> {
        let (outside, mut prefix) = Naming::outside(program, kept);
        while def.params.iter().any(|p| p.name.starts_with(&prefix)) {
            prefix.push('_');
        }
        Naming { def, outside, prefix }
    }

    /// Declarations of the functions whose calls stay, and what no name of the program begins with.
    pub fn outside(program: &Program, kept: &FxHashSet<Fun>) -> (String, String) {
        let mut outside = String::new();
        let mut prefix = "_".to_string();
        for d in program.defs.values() {
            if kept.contains(&d.fun) || !matches!(d.body, Body::Term(_)) {
                let sig = d.fun.sig();
                let params: Vec<String> = sig.params.iter().map(ToString::to_string).collect();
                outside += &format!("(edef {} {} ({}))\n", sig.name, sig.ret, params.join(" "));
            }
            while d.name().starts_with(&prefix) || d.params.iter().any(|p| p.name.starts_with(&prefix)) {
                prefix.push('_');
            }
        }
        (outside, prefix)
    }

    /// Declarations of definitions.
    pub fn declared<'d>(defs: impl Iterator<Item = &'d Def>) -> String {
        let mut out = String::new();
        for d in defs {
            let sig = d.fun.sig();
            let params: Vec<String> = sig.params.iter().map(ToString::to_string).collect();
            out += &format!("(edef {} {} ({}))\n", sig.name, sig.ret, params.join(" "));
        }
        out
    }

    /// The name of the variable at a level: those of the parameters first, then what loops and lets bind.
    pub fn variable(&self, level: usize) -> String {
        let param = self.def.params.get(level).map(|p| p.name.clone());
        param.unwrap_or_else(|| format!("{}{}", self.prefix, level + 1 - self.def.params.len()))
    }

    /// The level of the variable of a name.
    pub fn level(&self, name: &str) -> Option<usize> {
        let number = || name.strip_prefix(&self.prefix)?.parse::<usize>().ok()?.checked_sub(1);
        let param = self.def.params.iter().position(|p| p.name == name);
        param.or_else(|| number().map(|k| self.def.params.len() + k))
    }

    /// The text of a flat term under so many loops, the types of whose variables only the term itself says, in short.
    pub fn named(&self, terms: &mut Terms, id: Id, depth: usize) -> String {
        let size = terms.size(id);
        if size > MAX_NAMED_SIZE {
            return format!("a part of {size} nodes");
        }
        let body = to_body(terms, id, self.def.params.len(), depth);
        let text = self.show(terms, body, &vec![Ty::int(); depth]);
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        match words.char_indices().nth(MAX_NAMED) {
            Some((end, _)) => format!("{}…", &words[..end]),
            None => words,
        }
    }

    /// Reads the text of a result: the definition, in a program of its own.
    ///
    /// # Errors
    /// It is not a definition of the same name and parameters.
    pub fn result(&self, program: &Program, text: &str) -> Result<(Program, Def), Refused> {
        let mut source = Naming::declared(program.defs.values().take_while(|d| d.fun != self.def.fun));
        let declared = source.clone();
        source += text;
        let read = types::program(&Source::new("the result", source)).map_err(|d| d.to_string())?;
        let before = types::program(&Source::new("declarations", declared)).map_err(|d| d.to_string())?.defs.len();
        let def = read.defs.get(&self.def.fun).filter(|d| read.defs.len() == before + 1 && d.params == self.def.params);
        let def = def.cloned().ok_or("it is no definition of this name with these parameters")?;
        Ok((read, def))
    }

    fn variables(&self, scope: &[Ty]) -> Vec<String> {
        let params = self.def.params.iter().map(|p| p.name.clone());
        params.chain((1..=scope.len()).map(|k| format!("{}{k}", self.prefix))).collect()
    }

    /// The text of a term over parameters and then the loop variables in scope.
    pub fn show(&self, terms: &Terms, body: Id, scope: &[Ty]) -> String {
        print::term(terms, body, &self.variables(scope))
    }

    /// Reads a text as a flat term that stands in a scope, where a type is expected.
    ///
    /// # Errors
    /// It is no such term.
    pub fn read(&self, text: &str, ty: Ty, scope: &[Ty], terms: &mut Terms) -> Result<Id, Refused> {
        let tys: Vec<Ty> = self.def.params.iter().map(|p| p.ty).chain(scope.iter().copied()).collect();
        let params: Vec<String> =
            self.variables(scope).iter().zip(&tys).map(|(name, ty)| format!("({name} : {ty})")).collect();
        let name = format!("{}read", self.prefix);
        let source = format!("{}(def {name} {ty} ({})\n{text})", self.outside, params.join(" "));
        let program = types::program(&Source::new("a term of the derivation", source)).map_err(|d| d.to_string())?;
        let last = program.defs.values().last().filter(|d| d.name() == name);
        let def = last.cloned().ok_or("it is more than one term")?;
        let body = def.term().ok_or("it has no body")?;
        let kept = FxHashSet::default();
        let flat = unfold(&program, &kept, (&program.terms, body), &tys, terms).ok_or("it is too large")?;
        let (n, depth) = (self.def.params.len(), scope.len());
        Ok(replaced_leaves(terms, flat.id, &mut |t, id, under| {
            let k = as_parameter(t.head(id))?.checked_sub(n)?;
            let ty = t.ty(id);
            Some(t.var((under + depth - 1 - k) as u32, ty))
        }))
    }
}
