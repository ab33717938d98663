//! A body that is too large for one e-graph is cut at its lets and loops into pieces that fit.
//!
//! A piece is a part of the body, or some lets in a row with a tuple of what comes later reads of them. It
//! becomes a definition of its own whose parameters are the variables in scope, with what is known of them
//! there: sizes of tensors, what indices stay below, values of integers (`scope.rs`). What stands around pieces stays as it is,
//! and `join.rs` puts better pieces back.

mod join;
mod scope;

pub use join::joined;

use super::inline::flatten;
use crate::cost::{Costing, estimate};
use crate::ir::{Body, Def, Fun, Head, Id, Param, Program, Signature, Terms, Ty, deep};
use rustc_hash::FxHashSet;
use scope::Scope;

/// What is known of the parameters of a piece.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Fact {
    /// An axis of a parameter has this size.
    Size(usize, usize, Id),
    /// An index stays below this, and is not negative.
    Below(usize, Id),
    /// A parameter has this value.
    Is(usize, Id),
}

/// A part of a body as a definition.
pub struct Piece {
    /// Its parameters are the variables that it reads; its body is in `terms`.
    pub def: Def,
    /// The arena of the body and of the facts.
    pub terms: Terms,
    /// The body, over the parameters.
    pub body: Id,
    /// What is known of the parameters, in terms over them.
    pub facts: Vec<Fact>,
    /// Guesses of sizes and integers by the names that the parameters give them.
    pub sizes: Vec<(String, u64)>,
    /// The variables of the body that the parameters are, counted from the outermost.
    levels: Vec<usize>,
}

/// Where a term is cut.
enum Cut {
    /// Nowhere: it is not worth it.
    Whole,
    /// It is this piece.
    Piece(usize),
    /// Its children are cut.
    Kids(Vec<Cut>),
    /// It is lets in a row, and what they are bound in.
    Chain(Vec<Link>),
}

/// A part of lets in a row.
enum Link {
    /// One let, whose value is cut.
    Let(Cut),
    /// So many lets are a piece, which gives those of these numbers to what follows.
    Lets(usize, Vec<usize>, usize),
    /// What the lets are bound in, cut. Comes last, unless the last lets are a piece together with it.
    End(Cut),
    /// All lets that are left and what they are bound in.
    Rest(usize),
}

/// A body that is cut.
pub struct Pieces {
    /// The pieces.
    pub pieces: Vec<Piece>,
    terms: Terms,
    root: Id,
    params: usize,
    cut: Cut,
}

/// Terms with fewer nodes stay as they are.
const SMALL: u64 = 6;

/// Cuts a body over the parameters of a definition into pieces of at most `most` nodes without lets and
/// calls. `kept` are the functions whose calls stay.
pub fn cut(
    program: &Program,
    kept: &FxHashSet<Fun>,
    def: &Def,
    (terms, root): (&Terms, Id),
    costing: &mut Costing<'_>,
    most: usize,
) -> Pieces {
    let scope = Scope::new(def, costing);
    let mut cutter = Cutter { program, kept, costing, terms: Terms::default(), scope, pieces: vec![], most };
    let root = cutter.terms.import(terms, root);
    cutter.terms.forget_hints();
    let cut = cutter.cut(root);
    Pieces { pieces: cutter.pieces, terms: cutter.terms, root, params: def.params.len(), cut }
}

struct Cutter<'a, 'c> {
    program: &'a Program,
    kept: &'a FxHashSet<Fun>,
    costing: &'a mut Costing<'c>,
    terms: Terms,
    scope: Scope,
    pieces: Vec<Piece>,
    most: usize,
}

impl Cutter<'_, '_> {
    fn cut(&mut self, id: Id) -> Cut {
        if self.terms.size(id) < SMALL {
            return Cut::Whole;
        }
        if let Some(piece) = self.fitting(id) {
            return Cut::Piece(self.found(piece));
        }
        deep(|| match self.terms.head(id) {
            Head::Let => self.chain(id),
            head => self.kids(id, head),
        })
    }

    fn found(&mut self, piece: Piece) -> usize {
        self.pieces.push(piece);
        self.pieces.len() - 1
    }

    fn kids(&mut self, id: Id, head: Head) -> Cut {
        let kids = self.terms.kids(id).to_vec();
        let mut ests = vec![];
        let cuts = kids.iter().enumerate().map(|(k, kid)| {
            let depth = self.scope.len();
            if head.binds(k, kids.len()) > 0 {
                let tys: Vec<Ty> = kids.iter().map(|k| self.terms.ty(*k)).collect();
                let bound = estimate::bound(head, &ests);
                self.scope.enter(&mut self.terms, head, &kids, &tys, bound);
            }
            let cut = self.cut(*kid);
            if k + 1 < kids.len() {
                ests.push(self.scope.guess(self.costing, &self.terms, *kid));
            }
            self.scope.truncate(depth);
            cut
        });
        Cut::Kids(cuts.collect())
    }

    /// Lets in a row: as many of them as fit are a piece.
    fn chain(&mut self, id: Id) -> Cut {
        let depth = self.scope.len();
        let mut lets = vec![];
        let mut end = id;
        while self.terms.head(end) == Head::Let {
            lets.push(end);
            end = self.terms.kids(end)[1];
        }
        lets.push(end);
        let (mut links, mut at) = (vec![], 0);
        while at + 1 < lets.len() {
            if let Some(piece) = self.fitting(lets[at]) {
                links.push(Link::Rest(self.found(piece)));
                break;
            }
            match self.most_lets(&lets[at..]) {
                Some((count, given, piece)) => {
                    let piece = self.found(piece);
                    links.push(Link::Lets(count, given, piece));
                    lets[at..at + count].iter().for_each(|l| self.bind(*l));
                    at += count;
                }
                None => {
                    let cut = self.cut(self.terms.kids(lets[at])[0]);
                    links.push(Link::Let(cut));
                    self.bind(lets[at]);
                    at += 1;
                }
            }
        }
        if at + 1 == lets.len() {
            links.push(Link::End(self.cut(end)));
        }
        self.scope.truncate(depth);
        Cut::Chain(links)
    }

    /// Brings the variable of a let into scope.
    fn bind(&mut self, id: Id) {
        let value = self.terms.kids(id)[0];
        self.scope.bind(&mut self.terms, self.costing, value);
    }

    /// The piece with the most lets in a row that fits: how many, and which of them are read later.
    fn most_lets(&mut self, lets: &[Id]) -> Option<(usize, Vec<usize>, Piece)> {
        let (mut fits, mut too_many) = (None, lets.len());
        let mut next = 1;
        while next < too_many {
            let (body, given) = self.lets(lets, next);
            match self.fitting(body) {
                Some(piece) => {
                    fits = Some((next, given, piece));
                    next = (2 * next).min(next.midpoint(too_many)).max(next + 1);
                }
                None => {
                    too_many = next;
                    next = fits.as_ref().map_or(too_many, |(n, ..)| (n + 1).max(n.midpoint(too_many)));
                }
            }
        }
        fits
    }

    /// The first `count` lets around a tuple of those that what follows reads, and their numbers.
    fn lets(&mut self, lets: &[Id], count: usize) -> (Id, Vec<usize>) {
        let free = self.terms.free(lets[count]);
        let given: Vec<usize> = (0..count).filter(|k| free.has(count - 1 - k)).collect();
        let each: Vec<Id> = given
            .iter()
            .map(|k| {
                let ty = self.terms.ty(self.terms.kids(lets[*k])[0]);
                self.terms.var((count - 1 - k) as u32, ty)
            })
            .collect();
        let mut out = match each.as_slice() {
            [one] => *one,
            _ => self.terms.put(Head::Tuple, each),
        };
        for l in lets[..count].iter().rev() {
            let value = self.terms.kids(*l)[0];
            out = self.terms.put(Head::Let, [value, out]);
        }
        (out, given)
    }

    /// A term as a piece, if it is small enough.
    fn fitting(&mut self, id: Id) -> Option<Piece> {
        // What is larger as it stands than anything that fits could be need not be tried.
        if self.terms.size(id) > 40 * self.most as u64 {
            return None;
        }
        let piece = self.piece(id);
        let tys: Vec<Ty> = piece.def.params.iter().map(|p| p.ty).collect();
        let flat = flatten(self.program, self.kept, &piece.terms, piece.body, &tys)?;
        (flat.terms.reachable(flat.id).len() <= self.most).then_some(piece)
    }

    fn piece(&mut self, id: Id) -> Piece {
        let levels = self.scope.read_by(&mut self.terms, id);
        let names = |at: usize, ty: Ty| (0..ty.axes()).map(|axis| format!("{at}.{axis}")).collect();
        let params: Vec<Param> = levels
            .iter()
            .enumerate()
            .map(|(at, level)| {
                let ty = self.scope.ty(*level);
                Param { name: at.to_string(), ty, sizes: names(at, ty) }
            })
            .collect();
        let body = self.scope.over(&mut self.terms, id, &levels);
        let facts = self.scope.facts(&mut self.terms, &levels);
        let sizes = self.scope.guesses(&levels);
        let mut terms = Terms::default();
        let new = terms.import(&self.terms, body);
        let facts = facts
            .into_iter()
            .map(|fact| match fact {
                Fact::Size(k, axis, id) => Fact::Size(k, axis, terms.import(&self.terms, id)),
                Fact::Below(k, id) => Fact::Below(k, terms.import(&self.terms, id)),
                Fact::Is(k, id) => Fact::Is(k, terms.import(&self.terms, id)),
            })
            .collect();
        let ret = self.terms.ty(id);
        let fun = Fun::new(Signature { name: String::new(), params: params.iter().map(|p| p.ty).collect(), ret });
        let def = Def { fun, params, body: Body::Term(new), span: Default::default() };
        Piece { def, terms, body: new, facts, sizes, levels }
    }
}
