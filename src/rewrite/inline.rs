//! Calls and lets become substitutions: what is left is a let-free graph with shared subterms.

use crate::ir::{Fun, Head, Id, Node, Program, Terms, deep};
use rustc_hash::{FxHashMap, FxHashSet};

/// The functions that call themselves; only direct recursion exists in the language.
pub fn recursive(program: &Program) -> FxHashSet<Fun> {
    let calls_itself = |fun: &Fun, body: Id| {
        program.terms.reachable(body).iter().any(|id| program.terms.head(*id) == Head::Call(*fun))
    };
    program.defs.iter().filter(|(f, d)| d.term().is_some_and(|b| calls_itself(f, b))).map(|(f, _)| *f).collect()
}

/// A copy of a program's terms in which bodies are asked for without lets and calls.
pub struct Inliner<'a> {
    program: &'a Program,
    recursive: FxHashSet<Fun>,
    /// The arena of all results.
    pub terms: Terms,
    bodies: FxHashMap<Fun, Option<Id>>,
}

impl<'a> Inliner<'a> {
    /// Prepares a program.
    pub fn new(program: &'a Program) -> Inliner<'a> {
        Inliner { program, recursive: recursive(program), terms: program.terms.clone(), bodies: FxHashMap::default() }
    }

    /// The body of a function without lets and without calls, but for those of recursive and
    /// external functions. Nothing where it has no body.
    pub fn body(&mut self, fun: Fun) -> Option<Id> {
        if let Some(known) = self.bodies.get(&fun) {
            return *known;
        }
        let body = self.program.defs.get(&fun)?.term();
        let out = body.map(|b| self.flat(b, &mut FxHashMap::default()));
        self.bodies.insert(fun, out);
        out
    }

    fn flat(&mut self, id: Id, memo: &mut FxHashMap<Id, Id>) -> Id {
        if let Some(done) = memo.get(&id) {
            return *done;
        }
        let Node { head, kids } = self.terms.node(id).clone();
        let kids: Vec<Id> = kids.iter().map(|k| deep(|| self.flat(*k, memo))).collect();
        let out = match head {
            Head::Let => self.terms.substitute(kids[1], &kids[..1]),
            Head::Call(f) if !self.recursive.contains(&f) => match deep(|| self.body(f)) {
                Some(body) => self.terms.substitute(body, &kids),
                None => self.terms.put(head, kids),
            },
            Head::Get(i, _) if self.terms.head(kids[0]) == Head::Tuple => self.terms.kids(kids[0])[i as usize],
            _ => self.terms.put(head, kids),
        };
        memo.insert(id, out);
        out
    }
}
