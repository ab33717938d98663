//! Folds become folds of folds: n elements are cut into parts of about √n, and an outer fold goes over
//! the parts. Reverse mode then keeps the states between parts, and makes those within a part again
//! when it comes to that part: about 4√n states and adjoints in place of 2n, for one more run forwards.
//!
//! The elements that fill no part are folded after. The values stay the same to the bit. Which folds and scans keep nothing
//! of what their steps bind is noted beside. It must not know what a derivative is.

use super::contribution::shift_above;
use super::flow::has_floats;
use super::keeping::{Decisions, Keep, Keeping, Sequence};
use crate::ir::{Fun, Head, Id, Op, Terms, Ty, deep};
use crate::types::shape::shape;
use rustc_hash::{FxHashMap, FxHashSet};

/// Rewrites the folds and scans of one body, the innermost first.
struct Checkpoint<'a> {
    terms: &'a mut Terms,
    levels: &'a FxHashMap<Id, Keep>,
    memo: FxHashMap<Id, Id>,
    less: Less,
}

/// How much is kept of each fold and scan of a function's body through which derivatives may flow; that there is this
/// to decide is noted. They are numbered as they stand, the innermost first.
pub fn levels(
    terms: &Terms,
    body: Id,
    (fun, keeping): (Fun, &Keeping),
    decisions: &mut Decisions,
) -> FxHashMap<Id, Keep> {
    let sequences = terms
        .reachable(body)
        .into_iter()
        .filter(|id| matches!(terms.head(*id), Head::Fold | Head::Scan) && has_floats(terms.ty(terms.kids(*id)[0])));
    decisions.functions.insert(fun);
    let mut out = FxHashMap::default();
    for (number, id) in sequences.enumerate() {
        let (span, fold) = (terms.spans(id).first().copied(), terms.head(id) == Head::Fold);
        decisions.sequences.insert((fun, number), Sequence { span, fold });
        out.insert(id, keeping.of((fun, number)));
    }
    out
}

/// Folds and scans of a body of which less is kept than of others.
#[derive(Default)]
pub struct Less {
    /// Folds over parts.
    pub over_parts: FxHashSet<Id>,
    /// Those that keep nothing of what their steps bind, folds over parts among them.
    pub bare: FxHashSet<Id>,
}

/// The body with its folds and scans as their levels say.
pub fn checkpoint(terms: &mut Terms, body: Id, levels: &FxHashMap<Id, Keep>) -> (Id, Less) {
    let mut c = Checkpoint { terms, levels, memo: FxHashMap::default(), less: Less::default() };
    let body = c.term(body);
    (body, c.less)
}

impl Checkpoint<'_> {
    fn term(&mut self, id: Id) -> Id {
        if let Some(done) = self.memo.get(&id) {
            return *done;
        }
        let (head, kids) = (self.terms.head(id), self.terms.kids(id).to_vec());
        let kids: Vec<Id> = kids.into_iter().map(|k| deep(|| self.term(k))).collect();
        let keep = self.levels.get(&id).copied().unwrap_or(Keep::Values);
        let out = match head {
            Head::Fold if keep == Keep::Few => self.fold(&kids),
            _ => self.terms.put(head, kids),
        };
        if keep != Keep::Values {
            self.less.bare.insert(out);
        }
        self.terms.keep_hints(id, out);
        self.memo.insert(id, out);
        out
    }

    fn int(&mut self, index: u32) -> Id {
        self.terms.var(index, Ty::int())
    }

    /// A fold, as `let v, n, m, k, parts` around a fold over the rest that starts with one over parts: `m`
    /// is the size of a part, `k` the number of parts.
    fn fold(&mut self, kids: &[Id]) -> Id {
        let [init, vector, body] = *kids else { return self.terms.put(Head::Fold, kids.iter().copied()) };
        let (state, of) = (self.terms.ty(init), self.terms.ty(vector));
        let v = self.terms.var(0, of);
        let size = shape(self.terms, v)[0];
        let part = self.part_size();
        let (n, m) = (self.int(1), self.int(0));
        let count = self.terms.op(Op::Div, [n, m]);
        let parts = self.parts(of);
        let rest = self.rest(of);
        let all = self.terms.ty(parts);
        let over_parts = {
            let (s, x) = (self.terms.var(1, state), self.terms.var(0, of));
            let each = shift_above(self.terms, body, 2, 7);
            let inner = self.terms.put(Head::Fold, [s, x, each]);
            self.less.bare.insert(inner);
            let (first, parts) = (self.terms.shift(init, 5), self.terms.var(0, all));
            self.terms.put(Head::Fold, [first, parts, inner])
        };
        self.less.over_parts.insert(over_parts);
        let each = shift_above(self.terms, body, 2, 5);
        let whole = self.terms.put(Head::Fold, [over_parts, rest, each]);
        self.less.bare.extend([over_parts, whole]);
        [vector, size, part, count, parts]
            .into_iter()
            .rev()
            .fold(whole, |inside, value| self.terms.put(Head::Let, [value, inside]))
    }

    /// The integer part of √n, at least 1; under `v, n`.
    fn part_size(&mut self) -> Id {
        let n = self.int(0);
        let n = self.terms.op(Op::ToFloat, [n]);
        let root = self.terms.op(Op::Sqrt, [n]);
        let root = self.terms.op(Op::Truncate, [root]);
        let one = self.terms.int(1);
        self.terms.op(Op::Max, [root, one])
    }

    /// All whole parts; under `v, n, m, k`.
    fn parts(&mut self, of: Ty) -> Id {
        let at = {
            let (c, m, j) = (self.int(1), self.int(3), self.int(0));
            let start = self.terms.op(Op::Mul, [c, m]);
            self.terms.op(Op::Add, [start, j])
        };
        let v = self.terms.var(5, of);
        let element = self.terms.put(Head::Index(1), [at, v]);
        let (k, m) = (self.int(0), self.int(2));
        let part = self.terms.put(Head::Build(1), [m, element]);
        self.terms.put(Head::Build(1), [k, part])
    }

    /// The elements after the last whole part; under `v, n, m, k, parts`.
    fn rest(&mut self, of: Ty) -> Id {
        let (n, m, k) = (self.int(3), self.int(2), self.int(1));
        let start = self.terms.op(Op::Mul, [k, m]);
        let count = self.terms.op(Op::Sub, [n, start]);
        let (start, j) = (self.terms.shift(start, 1), self.int(0));
        let at = self.terms.op(Op::Add, [start, j]);
        let v = self.terms.var(5, of);
        let element = self.terms.put(Head::Index(1), [at, v]);
        self.terms.put(Head::Build(1), [count, element])
    }
}
