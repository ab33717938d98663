//! Folds become folds of folds: n elements are cut into parts of about √n, and an outer fold goes over
//! the parts. Reverse mode then keeps the states between parts, and makes those within a part again
//! when it comes to that part: about 4√n states and adjoints in place of 2n, for one more run forwards.
//!
//! The elements that fill no part are folded after. The values stay the same to the bit. Steps that keep nothing of
//! what they bind, beside others that do, stand behind an assertion that holds, where nobody looks for what is worth
//! keeping; simplification takes it away. It must not know what a derivative is.

use super::flow::has_floats;
use super::keeping::{Decisions, Keep, Keeping, Sequence};
use super::piece::shift_above;
use crate::ir::{Fun, Head, Id, Lit, Op, Terms, Ty, deep};
use crate::types::shape::shape;
use rustc_hash::{FxHashMap, FxHashSet};

/// Rewrites the folds and scans of one body, the innermost first.
struct Checkpoint<'a> {
    terms: &'a mut Terms,
    levels: &'a FxHashMap<Id, Keep>,
    /// Whether some steps keep what they bind, so that others have to say that they do not.
    mixed: bool,
    memo: FxHashMap<Id, Id>,
    over_parts: FxHashSet<Id>,
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

/// The body with its folds and scans as their levels say, and the folds over parts.
pub fn checkpoint(terms: &mut Terms, body: Id, levels: &FxHashMap<Id, Keep>) -> (Id, FxHashSet<Id>) {
    let some = |keep: Keep| levels.values().any(|k| *k == keep);
    if !some(Keep::Few) && !some(Keep::States) {
        return (body, FxHashSet::default());
    }
    let (mixed, memo, over_parts) = (some(Keep::Values), FxHashMap::default(), FxHashSet::default());
    let mut c = Checkpoint { terms, levels, mixed, memo, over_parts };
    let body = c.term(body);
    (body, c.over_parts)
}

impl Checkpoint<'_> {
    fn term(&mut self, id: Id) -> Id {
        if let Some(done) = self.memo.get(&id) {
            return *done;
        }
        let (head, kids) = (self.terms.head(id), self.terms.kids(id).to_vec());
        let mut kids: Vec<Id> = kids.into_iter().map(|k| deep(|| self.term(k))).collect();
        let keep = self.levels.get(&id).copied().unwrap_or(Keep::Values);
        if let Some(steps) = kids.last_mut().filter(|_| self.mixed && keep != Keep::Values) {
            *steps = self.apart(*steps);
        }
        let out = match head {
            Head::Fold if keep == Keep::Few => self.fold(&kids),
            _ => self.terms.put(head, kids),
        };
        self.terms.keep_hints(id, out);
        self.memo.insert(id, out);
        out
    }

    /// A body of steps that keep nothing of what they bind.
    fn apart(&mut self, body: Id) -> Id {
        let holds = self.terms.lit(Lit::Bool(true));
        self.terms.put(Head::Assert, [holds, body])
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
            let inner = if self.mixed { self.apart(inner) } else { inner };
            let (first, parts) = (self.terms.shift(init, 5), self.terms.var(0, all));
            self.terms.put(Head::Fold, [first, parts, inner])
        };
        self.over_parts.insert(over_parts);
        let each = shift_above(self.terms, body, 2, 5);
        let whole = self.terms.put(Head::Fold, [over_parts, rest, each]);
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
