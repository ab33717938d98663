//! Forms become typed terms: names are resolved, types checked, convenience forms spelled out.
//!
//! Invariant: what leaves this layer is well typed, and every definition's body has no free
//! variables but its parameters. [`verify`] checks that again after any pass.

mod array;
mod call;
mod check;
mod chosen;
mod contracted;
mod declare;
mod derived;
mod expr;
mod foreign;
mod hints;
mod lambda;
mod linear;
mod meaning;
mod named;
mod outside;
mod own;
pub mod scope;
pub mod rows;
pub mod shape;
pub mod sizes;
mod slices;
mod sparse;
mod spell;
pub mod texts;
#[expect(clippy::module_inception, reason = "the reader of types")]
mod types;
pub mod verify;

pub use chosen::{meant, whole_name};
pub use named::KINDS;

use crate::diag::{Diagnostic, Result, Source};
use crate::ir::names::Numbers;
use crate::ir::read::Tree;
use crate::ir::{Def, Fun, Id, Op, Param, Program, Terms, Ty, read};
use indexmap::IndexMap;
use meaning::{Meaning, Pending};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::sync::Arc;

/// Types and structured names may nest so deep: what looks at them recurses without asking for
/// more stack.
pub const MAX_NESTING: usize = 200;

/// The state of reading one text.
pub struct Elab<'a> {
    tree: &'a Tree,
    /// The text, for hints that say how something is spelled.
    text: &'a str,
    terms: Terms,
    defs: IndexMap<Fun, Def>,
    by_name: FxHashMap<String, Vec<Fun>>,
    /// The types in the names of functions whose parameters do not tell of what they are made.
    said: FxHashMap<Fun, Ty>,
    /// Derivatives that calls ask for.
    asked: FxHashSet<Fun>,
    /// Built-in functions that are functions of the program, with the names that sources call them by.
    wrappers: Vec<(String, Fun)>,
    scope: Vec<Ty>,
    /// The parameters of the definition that is being read: the outermost variables in scope.
    params: Vec<Param>,
    /// Names of the sizes of variables at these levels that stand for arguments of a call.
    borrowed: Vec<(usize, Vec<String>)>,
    /// Operations that the source applies to tensors or tuples by their own names.
    plain: Vec<Op>,
    names: FxHashMap<String, SmallVec<[Meaning; 1]>>,
    /// The names in scope in the order in which they came.
    named: Vec<String>,
    numbers: Numbers,
    /// How deep the type or structured name that is being read is nested.
    nested: usize,
    pending: Vec<Pending>,
    /// Whether type variables are allowed: in rules.
    generic: bool,
    /// Types of functions and linear maps: where they may stand, and whether one did.
    foreign: Foreign,
    /// Functions from outside that take functions, by where those stand among the arguments.
    higher: FxHashMap<Fun, Functions>,
    /// Where the parameters of all definitions of a name stand; found when a declaration first asks.
    written: Option<FxHashMap<String, Vec<usize>>>,
    /// Names of functions that are never called, and what they are about: linear maps, functions as values.
    linear: FxHashMap<String, &'static str>,
    /// What is wrong so far.
    errors: Vec<Diagnostic>,
    /// Functions whose declarations have errors: nothing is said of their calls.
    doubtful: FxHashSet<String>,
    /// What nodes need of sizes because of the form that made them.
    fits: sizes::Fits,
    /// Unknown names of this definition that have been reported.
    missed: FxHashSet<String>,
}

/// Whether types of functions may stand in what is being read, and whether one did.
#[derive(Default)]
struct Foreign {
    allowed: bool,
    /// What the type is about.
    met: Option<&'static str>,
}

/// What a function from outside takes, in order: the types of a function argument, or nothing where a
/// value stands.
type Functions = Vec<Option<(Ty, Ty)>>;

/// Reads and checks a program.
///
/// # Errors
/// Everything that is wrong with the text, with its place.
pub fn program(source: &Arc<Source>) -> Result<Program> {
    let (tree, errors) = read::recover(&source.text);
    let mut elab = Elab::new(&tree, source);
    elab.errors = errors;
    for at in &tree.top {
        match tree.broken.contains(at) {
            true => elab.broken(*at),
            false => elab.top(*at),
        }
    }
    match Diagnostic::all(elab.errors) {
        None => Ok(Program { terms: elab.terms, defs: elab.defs, source: source.clone() }),
        Some(d) => Err(d.within(source)),
    }
}

/// Two sides of a rule as typed terms over the metavariables as parameters. A metavariable that
/// takes arguments is a function without a body.
#[derive(Clone)]
pub struct RuleSides {
    /// The arena of both.
    pub terms: Terms,
    /// Metavariables that stand for terms: the free variables of both sides.
    pub params: Vec<Param>,
    /// Metavariables that are applied to bound variables.
    pub funs: Vec<Fun>,
    /// Left and right side.
    pub sides: (Id, Id),
}

/// Checks the two sides of a rule: `params` is the form of its parameter list.
///
/// # Errors
/// As [`program`]; also where the sides have different types.
pub fn rule(tree: &Tree, source: &Arc<Source>, params: usize, sides: (usize, usize)) -> Result<RuleSides> {
    let mut elab = Elab::new(tree, source);
    elab.generic = true;
    elab.rule(params, sides).map_err(|d| {
        elab.errors.push((*d).clone());
        Diagnostic::all(elab.errors).unwrap_or(d).within(source)
    })
}

impl<'a> Elab<'a> {
    fn new(tree: &'a Tree, source: &'a Source) -> Elab<'a> {
        Elab {
            tree,
            text: &source.text,
            terms: Terms::default(),
            defs: IndexMap::default(),
            by_name: FxHashMap::default(),
            said: FxHashMap::default(),
            asked: FxHashSet::default(),
            wrappers: vec![],
            scope: vec![],
            params: vec![],
            borrowed: vec![],
            plain: vec![],
            names: FxHashMap::default(),
            named: vec![],
            numbers: Numbers::default(),
            nested: 0,
            pending: vec![],
            generic: false,
            foreign: Foreign::default(),
            higher: FxHashMap::default(),
            written: None,
            linear: FxHashMap::default(),
            errors: vec![],
            doubtful: FxHashSet::default(),
            fits: sizes::Fits::default(),
            missed: FxHashSet::default(),
        }
    }

    /// Reads a part of a type or of a structured name, unless that is nested too deep.
    fn nest<R>(&mut self, at: usize, read: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        if self.nested >= MAX_NESTING {
            return Err(self.too_deep(at));
        }
        self.nested += 1;
        let out = read(self);
        self.nested -= 1;
        out
    }

    /// Reads each of several forms that do not depend on each other: an error in one does not hide
    /// those in the next.
    fn each<T>(&mut self, places: &[usize], mut read: impl FnMut(&mut Self, usize) -> Result<T>) -> Result<Vec<T>> {
        let found = self.errors.len();
        let mut out = Vec::with_capacity(places.len());
        let mut wrong = false;
        for at in places {
            match self.attempt(|e| read(e, *at)) {
                Ok(v) => out.push(v),
                Err(d) => {
                    wrong = true;
                    self.errors.push(*d);
                }
            }
        }
        match (wrong, self.errors.len() - found) {
            (false, _) => Ok(out),
            // The only error may still be told apart by whoever asked.
            (true, 1) => Err(self.errors.pop().map_or_else(Diagnostic::consequence, Box::new)),
            (true, _) => Err(Diagnostic::consequence()),
        }
    }

    fn too_deep(&self, at: usize) -> Box<Diagnostic> {
        let message = format!("types and names are nested at most {MAX_NESTING} deep");
        Diagnostic::limit(message).at(self.tree.at(at).span, "this is deeper")
    }

    fn error(&self, at: usize, message: &str, label: &str) -> Box<Diagnostic> {
        Diagnostic::user(message).at(self.tree.at(at).span, label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Protects: reading, typing, printing, and that printing is stable and reads back the same.
    #[test]
    fn printing_reads_back_to_the_same_terms() {
        let text = r#"
(def f Float ((x : (Vec Float) n) (y : (Vec Float) n) (k : Integer))
  (let ((a b) (tuple (sumbuild n (lam (i : Integer) (mul (index i x) (index i y)))) 2.5))
    (if (gt k 0) (add a b) (let (c (sum (map (lam (v : Float) (exp v)) x))) (sub c a)))))
(def g (Tensor 2 Float) (m : Tensor 2 Float)
  (build (size m) (lam (ij : (Tuple Integer Integer)) (add (to_float (get$1$2 ij)) (index ij m)))))
(def h Float (x : Vec Float) (fold (lam (p : (Tuple Float Float)) (add (get$1$2 p) (get$2$2 p))) 0.0 x))
"#;
        let read = |text: &str| program(&Source::new("t", text)).map_err(|d| panic!("{}\n{text}", d.render())).ok();
        let first = read(text).unwrap();
        verify::verify(&first).unwrap();
        let printed = crate::ir::print::program(&first);
        let second = read(&printed).unwrap();
        assert_eq!(printed, crate::ir::print::program(&second));
        let mut terms = first.terms.clone();
        for (a, b) in first.defs.values().zip(second.defs.values()) {
            let same = terms.import(&second.terms, b.term().unwrap());
            assert_eq!(a.term().unwrap(), same, "{printed}");
        }
    }
}
