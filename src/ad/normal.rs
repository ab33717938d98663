//! Bodies become terms with fewer kinds of nodes: operations by element, `sum`, `constVec` are
//! loops, reductions that differentiate by position have one index, calls of functions of tensors
//! are inlined, and sizes are known from what makes a tensor.
//!
//! The values stay the same. It must not know what a derivative is.

use crate::ir::{Fun, Head, Id, Monoid, Op, Terms, Ty, deep};
use crate::types::shape::shape;
use rustc_hash::FxHashMap;

/// Rewrites terms of one arena; free variables keep their meaning.
pub struct Normal<'a> {
    terms: &'a mut Terms,
    /// The normal body of a function that is to be inlined, over its parameters.
    inline: &'a FxHashMap<Fun, Id>,
    memo: FxHashMap<Id, Id>,
}

/// The normal form of a term.
pub fn normal(terms: &mut Terms, inline: &FxHashMap<Fun, Id>, id: Id) -> Id {
    Normal { terms, inline, memo: FxHashMap::default() }.term(id)
}

impl Normal<'_> {
    fn term(&mut self, id: Id) -> Id {
        if let Some(done) = self.memo.get(&id) {
            return *done;
        }
        let (head, kids) = (self.terms.head(id), self.terms.kids(id).to_vec());
        let kids: Vec<Id> = kids.into_iter().map(|k| deep(|| self.term(k))).collect();
        let out = self.node(head, kids);
        self.terms.keep_hints(id, out);
        self.memo.insert(id, out);
        out
    }

    fn node(&mut self, head: Head, kids: Vec<Id>) -> Id {
        match head {
            Head::Op(op) if kids.iter().any(|k| self.terms.ty(*k).as_scalar().is_none()) => self.by_element(op, kids),
            Head::Sum => self.bound(kids, |me, kids| {
                let rank = me.terms.ty(kids[0]).as_tensor().map_or(1, |(r, _)| r);
                me.over(Head::Reduce(Monoid::Add, rank), kids[0], rank, |_, element, _| element)
            }),
            Head::ConstVec(d) => {
                let value = kids[d];
                let sizes = kids[..d].to_vec();
                let moved = usize::from(!self.atom(value));
                self.bound(vec![value], |me, value| {
                    let mut all: Vec<Id> = sizes.iter().map(|s| me.terms.shift(*s, moved)).collect();
                    all.push(me.terms.shift(value[0], d));
                    me.terms.put(Head::Build(d), all)
                })
            }
            Head::Reduce(m @ (Monoid::Mul | Monoid::Min | Monoid::Max), d) if d > 1 => self.flat_reduction(m, d, kids),
            Head::Size(k) if self.terms.ty(kids[0]).as_tensor().is_some_and(|(rank, _)| k < rank) => {
                shape(self.terms, kids[0])[k]
            }
            Head::Get(i, _) if self.terms.head(kids[0]) == Head::Tuple => self.terms.kids(kids[0])[i as usize],
            Head::Let if self.atom(kids[0]) => {
                // Sizes of the variable have become sizes of its value.
                let body = self.terms.substitute(kids[1], &[kids[0]]);
                self.term(body)
            }
            Head::Call(f) => match self.inline.get(&f) {
                Some(body) => {
                    let body = *body;
                    self.bound(kids, |me, args| me.inlined(body, &args))
                }
                None => self.terms.put(head, kids),
            },
            _ => self.terms.put(head, kids),
        }
    }

    /// A body over parameters with atoms for them.
    fn inlined(&mut self, body: Id, args: &[Id]) -> Id {
        let n = args.len();
        let body = self.terms.map_free(body, 0, &mut |t, i, _, depth| {
            let arg = args[n - 1 - i as usize];
            t.shift(arg, depth)
        });
        // Sizes of parameters have become sizes of arguments.
        self.term(body)
    }

    /// Whether a value needs no let: a variable, a literal, or a row of a variable, which says more than
    /// a name for it.
    fn atom(&self, id: Id) -> bool {
        match self.terms.head(id) {
            Head::Var(..) | Head::Const(_) => true,
            Head::Index(_) | Head::Get(..) => {
                self.terms.ty(id).as_tensor().is_some() && self.terms.kids(id).iter().all(|k| self.atom(*k))
            }
            _ => false,
        }
    }

    /// A body that uses values more than once: each is bound by a let, unless it is an atom.
    fn bound(&mut self, values: Vec<Id>, body: impl FnOnce(&mut Self, Vec<Id>) -> Id) -> Id {
        let lets: Vec<Id> = values.iter().copied().filter(|v| !self.atom(*v)).collect();
        let n = lets.len();
        let mut next = 0;
        let mut atoms = vec![];
        for v in &values {
            if self.atom(*v) {
                atoms.push(self.terms.shift(*v, n));
            } else {
                let ty = self.terms.ty(*v);
                atoms.push(self.terms.var((n - 1 - next) as u32, ty));
                next += 1;
            }
        }
        let mut out = body(self, atoms);
        for (k, value) in lets.into_iter().enumerate().rev() {
            let value = self.terms.shift(value, k);
            out = self.terms.put(Head::Let, [value, out]);
        }
        out
    }

    /// A loop over the indices of a tensor: the body gets its element and the number of binders.
    fn over(&mut self, head: Head, tensor: Id, rank: usize, body: impl FnOnce(&mut Self, Id, &[Id]) -> Id) -> Id {
        let sizes = shape(self.terms, tensor);
        let mut kids: Vec<Id> = sizes[..rank].to_vec();
        let vars: Vec<Id> = (0..rank).map(|k| self.terms.var((rank - 1 - k) as u32, Ty::int())).collect();
        let element = self.element(tensor, &vars);
        kids.push(body(self, element, &vars));
        self.terms.put(head, kids)
    }

    fn element(&mut self, tensor: Id, vars: &[Id]) -> Id {
        let inside = self.terms.shift(tensor, vars.len());
        let mut at = vars.to_vec();
        at.push(inside);
        self.terms.put(Head::Index(vars.len()), at)
    }

    fn by_element(&mut self, op: Op, args: Vec<Id>) -> Id {
        let tensor = |t: &Terms, a: &Id| t.ty(*a).as_tensor().map(|(rank, _)| rank);
        let tuple = |t: &Terms, a: &Id| t.ty(*a).as_tuple().map(<[_]>::len);
        if let Some(rank) = args.iter().find_map(|a| tensor(self.terms, a)) {
            return self.bound(args, |me, args| {
                let first = args.iter().copied().find(|a| tensor(me.terms, a).is_some()).unwrap_or(args[0]);
                me.over(Head::Build(rank), first, rank, |me, _, vars| {
                    let each: Vec<Id> = args
                        .iter()
                        .map(|a| match tensor(me.terms, a) {
                            Some(_) => me.element(*a, vars),
                            None => me.terms.shift(*a, rank),
                        })
                        .collect();
                    me.by_element(op, each)
                })
            });
        }
        if let Some(n) = args.iter().find_map(|a| tuple(self.terms, a)) {
            return self.bound(args, |me, args| {
                let parts: Vec<Id> = (0..n)
                    .map(|k| {
                        let each = args
                            .iter()
                            .map(|a| match tuple(me.terms, a) {
                                Some(_) => me.terms.put(Head::Get(k as u32, n as u32), [*a]),
                                None => *a,
                            })
                            .collect();
                        me.by_element(op, each)
                    })
                    .collect();
                me.terms.put(Head::Tuple, parts)
            });
        }
        self.terms.op(op, args)
    }

    /// A reduction over several indices as one over their number, the last index fastest.
    fn flat_reduction(&mut self, m: Monoid, d: usize, kids: Vec<Id>) -> Id {
        let body = kids[d];
        let sizes = kids[..d].to_vec();
        let mut total = sizes[0];
        for s in &sizes[1..] {
            total = self.terms.op(Op::Mul, [total, *s]);
        }
        // Under the one index: the last index is the remainder by its size, and so on.
        let mut rest = self.terms.var(0, Ty::int());
        let mut at = vec![];
        for s in sizes.iter().rev() {
            let s = self.terms.shift(*s, 1);
            at.push(self.terms.op(Op::Mod, [rest, s]));
            rest = self.terms.op(Op::Div, [rest, s]);
        }
        at.reverse();
        let body = self.terms.map_free(body, 0, &mut |t, i, ty, depth| match (i as usize) < d {
            true => t.shift(at[d - 1 - i as usize], depth),
            false => t.var(i - d as u32 + 1 + depth as u32, ty),
        });
        self.terms.put(Head::Reduce(m, 1), [total, body])
    }
}
