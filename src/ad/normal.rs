//! Bodies become terms with fewer kinds of nodes: operations by element, `sum`, `constVec` are
//! loops, reductions that differentiate by position have one index, calls of functions of tensors
//! are inlined, and sizes are known from what makes a tensor.
//!
//! The values stay the same, and so do the sizes of sums over nothing. It must not know what a derivative is.

use super::contribution::simple;
use crate::ir::{Fun, Head, Id, Lit, Monoid, Op, Terms, Ty, TyKind, deep};
use crate::types::rows::as_made;
use crate::types::shape::{empty_sum, lower, shape_as_made};
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
        let mut out = self.node(head, kids);
        if matches!(head, Head::Sum | Head::Reduce(Monoid::Add, _)) && self.terms.ty(id).has_tensor() {
            out = self.with_shape(id, out);
        }
        self.terms.keep_hints(id, out);
        self.memo.insert(id, out);
        out
    }

    fn node(&mut self, head: Head, kids: Vec<Id>) -> Id {
        match head {
            Head::Op(op) if kids.iter().any(|k| self.terms.ty(*k).as_scalar().is_none()) => {
                self.by_element(op, kids, None)
            }
            Head::Sum => self.sum(kids[0]),
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
                shape_as_made(self.terms, kids[0])[k]
            }
            Head::Get(i, _) if self.terms.head(kids[0]) == Head::Tuple => self.terms.kids(kids[0])[i as usize],
            // What holds is not asked, neither here nor of cotangents.
            Head::Assert if self.known(kids[0]) == Some(true) => kids[1],
            Head::If if self.known(kids[0]).is_some() => kids[1 + usize::from(self.known(kids[0]) == Some(false))],
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

    /// The literal that a condition is.
    fn known(&self, condition: Id) -> Option<bool> {
        self.terms.as_lit(condition).and_then(Lit::as_bool)
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

    /// The sum of a normal tensor. That of tensors is a loop over what makes them, where that can be seen: what
    /// is taken out of a tensor of none has no sizes.
    fn sum(&mut self, tensor: Id) -> Id {
        let (head, kids) = (self.terms.head(tensor), self.terms.kids(tensor).to_vec());
        let (rank, elem) = self.terms.ty(tensor).as_tensor().unwrap_or((1, Ty::int()));
        match head {
            Head::Let if elem.has_tensor() => {
                let body = deep(|| self.sum(kids[1]));
                self.terms.put(head, [kids[0], body])
            }
            Head::Build(d) if elem.has_tensor() => self.terms.put(Head::Reduce(Monoid::Add, d), kids),
            _ => self.bound(vec![tensor], |me, kids| {
                let outer = shape_as_made(me.terms, kids[0]);
                me.over(Head::Reduce(Monoid::Add, rank), &outer[..rank], |me, vars| me.element(kids[0], vars))
            }),
        }
    }

    /// The normal form of a sum of tensors, with the sizes that the sum has over nothing: those of the element
    /// as it is written, which need not be those of its normal form.
    fn with_shape(&mut self, id: Id, made: Id) -> Id {
        let Some(dims) = empty_sum(self.terms, id) else { return made };
        let dims: Vec<Id> = dims.into_iter().map(|s| deep(|| self.term(s))).collect();
        if shape_of_nothing(self.terms, made).as_ref() == Some(&dims) {
            return made;
        }
        let dims: Vec<Id> = dims.into_iter().map(|s| as_made(self.terms, s)).collect();
        let kids = self.terms.kids(id).to_vec();
        let extents = match self.terms.head(id) {
            Head::Reduce(_, d) => kids[..d].to_vec(),
            _ => {
                let rank = self.terms.ty(kids[0]).as_tensor().map_or(1, |(r, _)| r);
                shape_as_made(self.terms, kids[0])[..rank].to_vec()
            }
        };
        let zero = zeros(self.terms, self.terms.ty(id), &dims);
        let none = self.terms.int(0);
        extents.into_iter().fold(made, |made, n| {
            let n = deep(|| self.term(n));
            match self.terms.as_lit(n).and_then(|l| l.as_int()) {
                Some(0) => zero,
                Some(_) => made,
                None => {
                    let empty = self.terms.op(Op::Eq, [n, none]);
                    self.terms.put(Head::If, [empty, zero, made])
                }
            }
        })
    }

    /// A loop over indices of these extents: the body gets them.
    fn over(&mut self, head: Head, sizes: &[Id], body: impl FnOnce(&mut Self, &[Id]) -> Id) -> Id {
        let (rank, mut kids) = (sizes.len(), sizes.to_vec());
        let vars: Vec<Id> = (0..rank).map(|k| self.terms.var((rank - 1 - k) as u32, Ty::int())).collect();
        kids.push(body(self, &vars));
        self.terms.put(head, kids)
    }

    fn element(&mut self, tensor: Id, vars: &[Id]) -> Id {
        let inside = self.terms.shift(tensor, vars.len());
        let mut at = vars.to_vec();
        at.push(inside);
        self.terms.put(Head::Index(vars.len()), at)
    }

    /// The sizes of the first tensor are `known`, or those of what makes it, where these are simple: a name for
    /// it would say them only where it has elements.
    fn by_element(&mut self, op: Op, args: Vec<Id>, known: Option<Vec<Id>>) -> Id {
        let tensor = |t: &Terms, a: &Id| t.ty(*a).as_tensor().map(|(rank, _)| rank);
        let tuple = |t: &Terms, a: &Id| t.ty(*a).as_tuple().map(<[_]>::len);
        if let Some((rank, first)) = args.iter().find_map(|a| tensor(self.terms, a).map(|rank| (rank, *a))) {
            let moved = args.iter().filter(|a| !self.atom(**a)).count();
            let known = known.or_else(|| {
                let found = shape_as_made(self.terms, first);
                found.iter().all(|s| simple(self.terms, *s)).then_some(found)
            });
            let known = known.map(|sizes| sizes.into_iter().map(|s| self.terms.shift(s, moved)).collect::<Vec<_>>());
            return self.bound(args, |me, args| {
                let first = args.iter().copied().find(|a| tensor(me.terms, a).is_some()).unwrap_or(args[0]);
                let all = known.clone().unwrap_or_else(|| shape_as_made(me.terms, first));
                let inner = known.map(|s| s[rank..].iter().map(|s| me.terms.shift(*s, rank)).collect());
                me.over(Head::Build(rank), &all[..rank], |me, vars| {
                    let each: Vec<Id> = args
                        .iter()
                        .map(|a| match tensor(me.terms, a) {
                            Some(_) => me.element(*a, vars),
                            None => me.terms.shift(*a, rank),
                        })
                        .collect();
                    me.by_element(op, each, inner)
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
                        me.by_element(op, each, None)
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

/// Zeros of a type of tensors of the sizes, whose innermost elements have no tensors.
pub fn zeros(terms: &mut Terms, ty: Ty, sizes: &[Id]) -> Id {
    match ty.kind() {
        TyKind::Tensor(rank, elem) => {
            let (outer, inner) = sizes.split_at(*rank);
            let inner: Vec<Id> = inner.iter().map(|s| terms.shift(*s, *rank)).collect();
            let zero = zeros(terms, *elem, &inner);
            terms.put(Head::Build(*rank), outer.iter().copied().chain([zero]))
        }
        TyKind::Tuple(parts) => {
            let parts: Vec<Id> = parts.iter().map(|p| zeros(terms, *p, sizes)).collect();
            terms.put(Head::Tuple, parts)
        }
        TyKind::Scalar(s) => terms.lit(Lit::zero(*s)),
        TyKind::String | TyKind::Var(..) => terms.lit(Lit::Str("")),
    }
}

/// The sizes that a normal sum has over nothing, as it is written; nothing where it has none, or is no sum.
fn shape_of_nothing(terms: &mut Terms, id: Id) -> Option<Vec<Id>> {
    match terms.head(id) {
        Head::Let => {
            let body = terms.kids(id)[1];
            let sizes = deep(|| shape_of_nothing(terms, body))?;
            lower(terms, &sizes, 1)
        }
        Head::Reduce(Monoid::Add, _) => empty_sum(terms, id),
        _ => None,
    }
}
