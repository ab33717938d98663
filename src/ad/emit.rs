//! Terms under construction: values with the depth they were made at, lets that wait for their
//! body, and loops that are open.
//!
//! A let that nobody uses is dropped when its scope closes, and one that is used once, outside of
//! loops, is put where it is used. So the transforms may bind whatever they might need. It must not
//! know what a derivative is.

use crate::ir::{Free, Head, Id, Lit, Monoid, Op, Scalar, Terms, Ty, deep};
use rustc_hash::FxHashMap;

/// A term with the number of variables that were in scope when it was made.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Val {
    /// The term.
    pub id: Id,
    /// The number of variables in scope then.
    pub depth: usize,
}

/// How a variable came into scope.
#[derive(Clone, Copy)]
enum Bound {
    /// A parameter or the variable of a loop.
    Open,
    /// A let that waits, with its value one level further out, and whether it stays wherever it is used.
    Let(Id, bool),
}

/// Variables of a scope that waits to be gone on with.
pub struct Aside(Vec<(Ty, Bound)>);

/// In a scope of more lets than this, what is longer than that stays a let even where it is used once: it
/// would be copied for every let between its place and its use, which in long chains is each of them.
const MANY: usize = 500;
const SHORT: u64 = 24;
/// Tables of more than this are made anew rather than cleared.
const ROOM: usize = 256;

/// Terms under construction.
pub struct Emit<'t> {
    /// The arena.
    pub terms: &'t mut Terms,
    scope: Vec<(Ty, Bound)>,
}

impl<'t> Emit<'t> {
    /// Nothing in scope.
    pub fn new(terms: &'t mut Terms) -> Emit<'t> {
        Emit { terms, scope: vec![] }
    }

    /// The number of variables in scope.
    pub fn depth(&self) -> usize {
        self.scope.len()
    }

    /// Brings the variable of a parameter or a loop into scope.
    pub fn enter(&mut self, ty: Ty) -> Val {
        self.scope.push((ty, Bound::Open));
        self.top()
    }

    fn top(&mut self) -> Val {
        let level = self.depth() - 1;
        Val { id: self.level(level), depth: self.depth() }
    }

    /// The variable of a level, counted from the outermost.
    pub fn level(&mut self, level: usize) -> Id {
        let index = self.depth() - 1 - level;
        self.terms.var(index as u32, self.scope[level].0)
    }

    /// The value of the let of a level, right one level further out; nothing where it is no let.
    pub fn let_value(&self, level: usize) -> Option<Id> {
        match self.scope[level].1 {
            Bound::Let(value, _) => Some(value),
            Bound::Open => None,
        }
    }

    /// A term just made.
    pub fn val(&self, id: Id) -> Val {
        Val { id, depth: self.depth() }
    }

    /// What a let binds to a value that is its variable.
    pub fn bound_value(&self, v: Val) -> Option<Id> {
        let Head::Var(i, _) = self.terms.head(v.id) else { return None };
        self.let_value(v.depth - 1 - i as usize)
    }

    /// The term where the work stands.
    pub fn now(&mut self, v: Val) -> Id {
        let by = self.depth() - v.depth;
        self.terms.shift(v.id, by)
    }

    /// The type.
    pub fn ty(&self, id: Id) -> Ty {
        self.terms.ty(id)
    }

    /// A node.
    #[track_caller]
    pub fn put(&mut self, head: Head, kids: impl IntoIterator<Item = Id>) -> Id {
        self.terms.put(head, kids)
    }

    /// Binds a term by a let; variables, literals and tuples of them stand for themselves.
    pub fn bind(&mut self, id: Id) -> Val {
        self.bound(id, false)
    }

    /// As [`Emit::bind`]; the let stays, however often it is used.
    pub fn bind_always(&mut self, id: Id) -> Val {
        self.bound(id, true)
    }

    fn bound(&mut self, id: Id, stays: bool) -> Val {
        if self.atomic(id) {
            return self.val(id);
        }
        self.scope.push((self.terms.ty(id), Bound::Let(id, stays)));
        self.top()
    }

    fn atomic(&self, id: Id) -> bool {
        match self.terms.head(id) {
            Head::Var(..) | Head::Const(_) => true,
            Head::Tuple => self.terms.kids(id).iter().all(|k| deep(|| self.atomic(*k))),
            _ => false,
        }
    }

    /// The term with the lets opened since `mark` around it, moved to the depth `mark`; there must
    /// be no loop variables between. They stay open.
    pub fn wrapped(&mut self, mark: usize, id: Id) -> Id {
        let top = self.depth();
        if top == mark {
            return id;
        }
        let uses = self.uses(mark, id);
        let mut place: Vec<Place> = vec![];
        let mut kept: Vec<Id> = vec![];
        for level in mark..top {
            let value = self.let_value(level).unwrap_or(id);
            let count = uses[level - mark];
            let moved = if count == 0 { value } else { self.replace(value, level, mark, &place, kept.len()) };
            let alias = matches!(self.terms.head(moved), Head::Var(..) | Head::Const(_));
            let stays = matches!(self.scope[level].1, Bound::Let(_, true));
            place.push(match count {
                0 => Place::Gone,
                _ if alias => Place::Inline(moved, kept.len()),
                _ if count == 1 && !stays && (top - mark <= MANY || self.terms.size(moved) <= SHORT) => {
                    Place::Inline(moved, kept.len())
                }
                _ => {
                    kept.push(moved);
                    Place::Kept(kept.len() - 1)
                }
            });
        }
        let mut out = self.replace(id, top, mark, &place, kept.len());
        for value in kept.into_iter().rev() {
            out = self.put(Head::Let, [value, out]);
        }
        out
    }

    /// As [`Emit::wrapped`], and takes the lets out of scope.
    pub fn close(&mut self, mark: usize, id: Id) -> Id {
        let out = self.wrapped(mark, id);
        self.leave(mark);
        out
    }

    /// The term with all lets opened since `mark` around it, as they are, moved to the depth `mark`; they stay
    /// open. Nothing is moved, so that deep nests are made in linear time; they are for [`super::sweep`].
    pub fn as_nested(&mut self, mark: usize, id: Id) -> Id {
        let mut out = id;
        for level in (mark..self.depth()).rev() {
            if let Some(value) = self.let_value(level) {
                out = self.put(Head::Let, [value, out]);
            }
        }
        out
    }

    /// Takes variables out of scope, so that `mark` remain, to go on with them later.
    pub fn set_aside(&mut self, mark: usize) -> Aside {
        Aside(self.scope.split_off(mark))
    }

    /// Goes on where the same variables are in scope as when these were set aside.
    pub fn reopen(&mut self, aside: Aside) {
        self.scope.extend(aside.0);
    }

    /// Takes variables out of scope, so that `mark` remain.
    pub fn leave(&mut self, mark: usize) {
        self.scope.truncate(mark);
    }

    /// How often each level from `mark` on is used; inside a loop counts as often.
    fn uses(&self, mark: usize, id: Id) -> Vec<usize> {
        let top = self.depth();
        let mut uses = vec![0; top - mark];
        let mut seen = FxHashMap::default();
        self.count(id, top, mark, 0, 1, &mut uses, &mut seen);
        for level in (mark..top).rev() {
            if uses[level - mark] > 0
                && let Some(value) = self.let_value(level)
            {
                // To clear a table takes time by what it could hold.
                match seen.capacity() {
                    0..=ROOM => seen.clear(),
                    _ => seen = FxHashMap::default(),
                }
                self.count(value, level, mark, 0, 1, &mut uses, &mut seen);
            }
        }
        uses
    }

    #[expect(clippy::too_many_arguments, reason = "a walk with its place")]
    fn count(
        &self,
        id: Id,
        depth: usize,
        mark: usize,
        under: usize,
        weight: usize,
        uses: &mut [usize],
        seen: &mut FxHashMap<(Id, usize), usize>,
    ) {
        // Variables that matter have an index below this.
        let reach = depth - mark + under;
        let free = self.terms.free(id);
        if free.outside(under) == Free::default() || !free.outside(under).below(reach - under) {
            return;
        }
        if let Head::Var(i, _) = self.terms.head(id) {
            if let Some(level) = (depth + under).checked_sub(1 + i as usize)
                && (mark..depth).contains(&level)
            {
                uses[level - mark] += weight;
            }
            return;
        }
        let times = seen.entry((id, under)).or_default();
        *times += weight;
        if *times > 2 * weight {
            return;
        }
        let head = self.terms.head(id);
        let n = self.terms.kids(id).len();
        for (k, kid) in self.terms.kids(id).iter().enumerate() {
            let binds = head.binds(k, n);
            let weight = if binds > 0 && head.is_loop() { 2 } else { weight };
            deep(|| self.count(*kid, depth, mark, under + binds, weight, uses, seen));
        }
    }

    /// A term of `depth` with the levels from `mark` on replaced by their places, in the scope of
    /// `mark` and `kept` lets.
    fn replace(&mut self, id: Id, depth: usize, mark: usize, places: &[Place], kept: usize) -> Id {
        let inner = depth - mark;
        self.terms.map_free(id, 0, &mut |t, i, ty, under| {
            let i = i as usize;
            if i >= inner {
                return t.var((i - inner + kept + under) as u32, ty);
            }
            match places[inner - 1 - i] {
                Place::Kept(k) => t.var((kept - 1 - k + under) as u32, ty),
                Place::Inline(id, then) => t.shift(id, kept - then + under),
                Place::Gone => t.var((kept + under) as u32, ty),
            }
        })
    }

    /// An integer.
    pub fn int(&mut self, v: i64) -> Id {
        self.terms.int(v)
    }

    /// A literal of a float type.
    pub fn float(&mut self, s: Scalar, v: f64) -> Id {
        self.terms.lit(Lit::of(s, v))
    }

    /// Whether a term is a number literal of this value.
    pub fn is(&self, id: Id, v: f64) -> bool {
        self.terms.as_lit(id).and_then(Lit::to_f64) == Some(v)
    }

    /// The sum, without what adds nothing.
    pub fn add(&mut self, a: Id, b: Id) -> Id {
        if self.is(a, 0.0) {
            return b;
        }
        if self.is(b, 0.0) {
            return a;
        }
        self.op(Op::Add, [a, b])
    }

    /// The difference of integers.
    pub fn sub(&mut self, a: Id, b: Id) -> Id {
        if self.is(b, 0.0) {
            return a;
        }
        if let (Some(Lit::Int(s, x)), Some(Lit::Int(_, y))) = (self.terms.as_lit(a), self.terms.as_lit(b)) {
            return self.terms.lit(Lit::Int(s, s.wrap(x.wrapping_sub(y))));
        }
        self.op(Op::Sub, [a, b])
    }

    /// The product of floats, without what changes nothing.
    pub fn mul(&mut self, a: Id, b: Id) -> Id {
        match () {
            () if self.is(a, 1.0) => b,
            () if self.is(b, 1.0) => a,
            () if self.is(a, -1.0) => self.op(Op::Neg, [b]),
            () if self.is(b, -1.0) => self.op(Op::Neg, [a]),
            () => self.op(Op::Mul, [a, b]),
        }
    }

    /// A scalar operation.
    #[track_caller]
    pub fn op(&mut self, op: Op, args: impl IntoIterator<Item = Id>) -> Id {
        self.terms.op(op, args)
    }

    /// A part of a tuple; that part itself where the tuple is made here.
    pub fn get(&mut self, k: u32, n: u32, of: Id) -> Id {
        match self.terms.head(of) {
            Head::Tuple => self.terms.kids(of)[k as usize],
            _ => self.put(Head::Get(k, n), [of]),
        }
    }

    /// A sum over one index.
    pub fn sum(&mut self, extent: Id, body: Id) -> Id {
        self.put(Head::Reduce(Monoid::Add, 1), [extent, body])
    }
}

#[derive(Clone, Copy)]
enum Place {
    /// The let of this number among those that stay.
    Kept(usize),
    /// This term, made when so many lets stayed.
    Inline(Id, usize),
    /// Not used.
    Gone,
}
