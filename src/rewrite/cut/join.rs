//! Better pieces become a body again.

use super::{Cut, Link, Pieces};
use crate::ir::{Head, Id, Terms, deep};

/// A term in the new arena, and the number of variables that were in scope when it was made.
type Made = (Id, usize);

/// The body with other bodies for its pieces; a piece without one stays as it was.
pub fn joined(pieces: &Pieces, better: &[Option<(Terms, Id)>]) -> (Terms, Id) {
    let mut join = Join { pieces, better, out: Terms::default(), env: vec![], depth: pieces.params };
    for level in 0..pieces.params {
        // The parameters keep their places; their types are those of the variables that are met.
        join.env.push(Value::Level(level));
    }
    let id = join.term(pieces.root, &pieces.cut);
    (join.out, id)
}

/// What a variable of the old body is in the new one.
#[derive(Clone, Copy)]
enum Value {
    /// The variable of this level.
    Level(usize),
    /// A term.
    Term(Made),
}

struct Join<'a> {
    pieces: &'a Pieces,
    better: &'a [Option<(Terms, Id)>],
    out: Terms,
    env: Vec<Value>,
    /// The number of variables in scope in the new body.
    depth: usize,
}

impl Join<'_> {
    fn term(&mut self, id: Id, cut: &Cut) -> Id {
        match cut {
            Cut::Whole => self.copied(id),
            Cut::Piece(k) => self.piece(*k),
            Cut::Kids(cuts) => self.kids(id, cuts),
            Cut::Chain(links) => deep(|| self.chain(id, links)),
        }
    }

    /// A part of the old body as it is.
    fn copied(&mut self, id: Id) -> Id {
        let id = self.out.import(&self.pieces.terms, id);
        let env = self.env.clone();
        self.over(id, &env)
    }

    /// A term of this arena over the values of an environment.
    fn over(&mut self, id: Id, env: &[Value]) -> Id {
        let depth = self.depth;
        self.out.map_free(id, 0, &mut |t, i, ty, under| match env[env.len() - 1 - i as usize] {
            Value::Level(level) => t.var((depth - 1 - level + under) as u32, ty),
            Value::Term((id, made)) => t.shift(id, depth - made + under),
        })
    }

    fn piece(&mut self, k: usize) -> Id {
        let piece = &self.pieces.pieces[k];
        let (terms, body) = match &self.better[k] {
            Some((terms, body)) => (terms, *body),
            None => (&piece.terms, piece.body),
        };
        let id = self.out.import(terms, body);
        let env: Vec<Value> = piece.levels.iter().map(|level| self.env[*level]).collect();
        self.over(id, &env)
    }

    fn kids(&mut self, id: Id, cuts: &[Cut]) -> Id {
        let (head, kids) = (self.pieces.terms.head(id), self.pieces.terms.kids(id).to_vec());
        let mut new = vec![];
        for (k, (kid, cut)) in kids.iter().zip(cuts).enumerate() {
            let binds = head.binds(k, kids.len());
            for _ in 0..binds {
                self.env.push(Value::Level(self.depth));
                self.depth += 1;
            }
            new.push(self.term(*kid, cut));
            self.env.truncate(self.env.len() - binds);
            self.depth -= binds;
        }
        self.out.put(head, new)
    }

    /// Lets in a row, from the first of the links on.
    fn chain(&mut self, id: Id, links: &[Link]) -> Id {
        let Some((link, rest)) = links.split_first() else { return self.copied(id) };
        match link {
            Link::Rest(k) => self.piece(*k),
            Link::End(cut) => self.term(id, cut),
            Link::Let(cut) => {
                let kids = self.pieces.terms.kids(id).to_vec();
                let value = self.term(kids[0], cut);
                self.env.push(Value::Level(self.depth));
                self.depth += 1;
                let body = deep(|| self.chain(kids[1], rest));
                self.depth -= 1;
                self.env.pop();
                self.out.put(Head::Let, [value, body])
            }
            Link::Lets(count, given, k) => {
                let mut after = id;
                for _ in 0..*count {
                    after = self.pieces.terms.kids(after)[1];
                }
                let made = self.piece(*k);
                self.after_lets(made, (*count, given), after, rest)
            }
        }
    }

    /// What follows lets that are a piece: the piece's own lets go around it.
    fn after_lets(&mut self, mut made: Id, (count, given): (usize, &[usize]), after: Id, rest: &[Link]) -> Id {
        let (outer, mut values) = (self.depth, vec![]);
        while self.out.head(made) == Head::Let {
            let kids = self.out.kids(made).to_vec();
            values.push(kids[0]);
            self.depth += 1;
            made = kids[1];
        }
        let each: Vec<Made> = match (given.len(), self.out.head(made)) {
            (1, _) => vec![(made, self.depth)],
            (_, Head::Tuple) => self.out.kids(made).iter().map(|k| (*k, self.depth)).collect(),
            (n, _) => {
                values.push(made);
                self.depth += 1;
                let all = self.out.var(0, self.out.ty(made));
                (0..n).map(|k| (self.out.put(Head::Get(k as u32, n as u32), [all]), self.depth)).collect()
            }
        };
        let mut terms = vec![];
        for (id, made) in each {
            let here = self.out.shift(id, self.depth - made);
            if matches!(self.out.head(here), Head::Var(..) | Head::Const(_)) {
                terms.push((here, self.depth));
                continue;
            }
            values.push(here);
            let ty = self.out.ty(here);
            self.depth += 1;
            terms.push((self.out.var(0, ty), self.depth));
        }
        let from = self.env.len();
        for k in 0..count {
            // What nobody reads later is never looked up.
            let value = given.iter().position(|g| *g == k).map_or(Value::Level(0), |at| Value::Term(terms[at]));
            self.env.push(value);
        }
        let mut out = deep(|| self.chain(after, rest));
        self.env.truncate(from);
        for value in values.into_iter().rev() {
            out = self.out.put(Head::Let, [value, out]);
        }
        self.depth = outer;
        out
    }
}
