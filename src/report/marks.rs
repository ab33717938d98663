//! The text of a definition becomes the list of its lets that share work, or move it out of a loop.
//! Only brackets and names are read: `let` binds, `lam` runs its body more than once.

use crate::diag::{Result, Span};
use crate::ir::deep;
use crate::ir::read::{Form, Tree, read};

/// What a let is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Its value is used more than once.
    Shared,
    /// Its value is used in a loop inside of it, so that it is computed before that loop.
    Hoisted,
    /// Neither: a name for one use.
    Named,
}

/// A name that a let binds.
#[derive(Clone, PartialEq, Debug)]
pub struct Mark {
    /// Where the name is bound.
    pub span: Span,
    /// What for.
    pub kind: Kind,
    /// How often it is used.
    pub uses: usize,
    /// Where it is used.
    pub at: Vec<Span>,
}

struct Walk<'a> {
    tree: &'a Tree,
    marks: Vec<Mark>,
    /// Names in scope, with the loops around their lets and their marks.
    scope: Vec<(String, usize, usize)>,
}

/// The lets of a text, in its order.
///
/// # Errors
/// A text whose brackets do not match.
pub fn marks(text: &str) -> Result<Vec<Mark>> {
    let tree = read(text)?;
    let mut walk = Walk { tree: &tree, marks: vec![], scope: vec![] };
    for id in &tree.top {
        walk.form(*id, 0);
    }
    Ok(walk.marks)
}

impl Walk<'_> {
    fn form(&mut self, id: usize, loops: usize) {
        if let Some(name) = self.tree.name(id) {
            return self.used(name, self.tree.at(id).span, loops);
        }
        if let Some([bindings, body]) = self.tree.headed(id, "let") {
            return self.bind(*bindings, *body, loops);
        }
        let (kids, loops) = match (&self.tree.at(id).form, self.tree.headed(id, "lam")) {
            (_, Some([_, body])) => (vec![*body], loops + 1),
            (Form::List(kids) | Form::Bracket(kids), _) => (kids.clone(), loops),
            (Form::Atom(_), _) => return,
        };
        for kid in kids {
            deep(|| self.form(kid, loops));
        }
    }

    fn bind(&mut self, bindings: usize, body: usize, loops: usize) {
        let depth = self.scope.len();
        let Some(kids) = self.tree.list(bindings) else { return };
        let single = kids.len() == 2 && self.tree.name(kids[0]).is_some();
        // `((a b) (f x))` takes a tuple apart; it is not two bindings.
        let parts = |id: usize| self.tree.list(id).is_some_and(|l| l.iter().all(|k| self.tree.name(*k).is_some()));
        let single = single || kids.len() == 2 && parts(kids[0]);
        let pairs: Vec<usize> = if single { vec![bindings] } else { kids.to_vec() };
        for pair in pairs {
            let Some([pattern, value]) = self.tree.list(pair) else { continue };
            deep(|| self.form(*value, loops));
            let names = self.tree.list(*pattern).map_or_else(|| vec![*pattern], <[usize]>::to_vec);
            for at in names {
                let Some(name) = self.tree.name(at) else { continue };
                self.scope.push((name.to_string(), loops, self.marks.len()));
                self.marks.push(Mark { span: self.tree.at(at).span, kind: Kind::Named, uses: 0, at: vec![] });
            }
        }
        deep(|| self.form(body, loops));
        self.scope.truncate(depth);
    }

    fn used(&mut self, name: &str, span: Span, loops: usize) {
        let Some((_, bound, mark)) = self.scope.iter().rev().find(|(n, _, _)| n == name) else { return };
        let mark = &mut self.marks[*mark];
        mark.uses += 1;
        mark.at.push(span);
        mark.kind = match mark.kind {
            _ if loops > *bound => Kind::Hoisted,
            Kind::Named if mark.uses > 1 => Kind::Shared,
            kind => kind,
        };
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that meets what it does not expect should stop there")]

    use super::*;

    fn kinds(text: &str) -> Vec<(Kind, usize)> {
        marks(text).unwrap().iter().map(|m| (m.kind, m.uses)).collect()
    }

    /// Protects: what the page marks as shared and as moved out of a loop.
    #[test]
    fn lets_are_told_apart() {
        assert_eq!(kinds("(let (a 1) (add a a))"), [(Kind::Shared, 2)]);
        assert_eq!(kinds("(let (a 1) (neg a))"), [(Kind::Named, 1)]);
        assert_eq!(
            kinds("(let ((a 1) (b a)) (build n (lam (i : Integer) (mul b i))))"),
            [(Kind::Named, 1), (Kind::Hoisted, 1)]
        );
        let inner = "(let (a 1) (build a (lam (i : Integer) (let (a i) (add a a)))))";
        assert_eq!(kinds(inner), [(Kind::Named, 1), (Kind::Shared, 2)], "an inner name hides the outer one");
        let pattern = "(let ((a b) (f x)) (add a a b))";
        assert_eq!(kinds(pattern), [(Kind::Shared, 2), (Kind::Named, 1)], "that is one pattern, and its value a call");
    }
}
