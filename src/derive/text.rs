//! Flat terms become text and come back, wherever they stand: loop variables have numbers for names.

use super::Refused;
use super::flat::{as_parameter, replaced_leaves};
use super::unfold::unfold;
use crate::diag::Source;
use crate::ir::{Body, Def, Fun, Id, Program, Terms, Ty, print};
use crate::types;
use rustc_hash::FxHashSet;

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

    /// Reads the text of a result: the definition, in a program of its own.
    ///
    /// # Errors
    /// It is not a definition of the same name and parameters.
    pub fn result(&self, program: &Program, text: &str) -> Result<(Program, Def), Refused> {
        let mut source = String::new();
        for d in program.defs.values().take_while(|d| d.fun != self.def.fun) {
            let sig = d.fun.sig();
            let params: Vec<String> = sig.params.iter().map(ToString::to_string).collect();
            source += &format!("(edef {} {} ({}))\n", sig.name, sig.ret, params.join(" "));
        }
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
