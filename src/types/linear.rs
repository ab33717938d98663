//! Vector-space forms over any type: `ts_add` and its kin, `delta`, structural equality.

use super::Elab;
use super::scope::Val;
use crate::diag::{Diagnostic, Result};
use crate::ir::{Head, Id, Lit, Monoid, Op, Ty, TyKind};

impl Elab<'_> {
    pub(super) fn bound(&mut self, at: usize) -> Result<Val> {
        let id = self.expr(at)?;
        Ok(self.bind(id))
    }

    pub(super) fn form_ts_add(&mut self, _at: usize, args: &[usize]) -> Result<Id> {
        let mark = self.opened();
        let (a, b) = (self.expr(args[0])?, self.expr(args[1])?);
        let (ta, tb) = (self.terms.ty(a), self.terms.ty(b));
        if tb != ta.tangent() {
            let label = format!("expected {}, the tangent of {ta}, found {tb}", ta.tangent());
            return Err(self.error(args[1], "type mismatch", &label));
        }
        if ta.is_linear() {
            self.spell_operation("ts_add", Op::Add, &[a, b])?;
            return Ok(self.op(Op::Add, &[a, b]));
        }
        let b = self.val(b);
        let a = self.bind(a);
        let b = self.now(b);
        let b = self.bind(b);
        if ta.as_scalar().is_none() {
            self.spell("ts_add", &[], &[ta, tb], |e, args| Ok(e.add_tangent(args[0], args[1])))?;
        }
        let id = self.add_tangent(a, b);
        Ok(self.close(mark, id))
    }

    /// A value moved by a tangent; what has no tangent stays.
    pub(super) fn add_tangent(&mut self, a: Val, b: Val) -> Id {
        let ty = self.terms.ty(a.id);
        if ty.is_linear() {
            let (a, b) = (self.now(a), self.now(b));
            return self.op(Op::Add, &[a, b]);
        }
        match ty.kind() {
            TyKind::Scalar(_) | TyKind::String | TyKind::Var(..) => self.now(a),
            TyKind::Tuple(parts) => {
                let n = parts.len();
                let sums: Vec<Id> = (0..n)
                    .map(|k| {
                        let (x, y) = (self.part(a, k, n), self.part(b, k, n));
                        let (x, y) = (self.val(x), self.val(y));
                        self.add_tangent(x, y)
                    })
                    .collect();
                self.terms.put(Head::Tuple, sums)
            }
            TyKind::Tensor(rank, _) => self.like(a, *rank, |e, levels| {
                let (x, y) = (e.element(levels, a), e.element(levels, b));
                let (x, y) = (e.val(x), e.val(y));
                e.add_tangent(x, y)
            }),
        }
    }

    pub(super) fn linear_only(&self, at: usize, ty: Ty) -> Result<()> {
        if ty.is_linear() {
            return Ok(());
        }
        Err(self.error(at, "type mismatch", &format!("expected floats, or tuples and tensors of them, found {ty}")))
    }

    pub(super) fn form_ts_scale(&mut self, at: usize, args: &[usize]) -> Result<Id> {
        let (r, a) = (self.expr(args[0])?, self.expr(args[1])?);
        self.linear_only(args[1], self.terms.ty(a))?;
        self.spell_operation("ts_scale", Op::Mul, &[r, a])?;
        self.node(at, Head::Op(Op::Mul), &[r, a], args)
    }

    pub(super) fn form_ts_neg(&mut self, at: usize, args: &[usize]) -> Result<Id> {
        let a = self.one(at, args)?;
        self.linear_only(args[0], self.terms.ty(a))?;
        self.spell_operation("ts_neg", Op::Neg, &[a])?;
        self.node(at, Head::Op(Op::Neg), &[a], args)
    }

    pub(super) fn form_ts_dot(&mut self, at: usize, args: &[usize]) -> Result<Id> {
        let mark = self.opened();
        let (a, b) = (self.bound(args[0])?, self.bound(args[1])?);
        let (ta, tb) = (self.terms.ty(a.id), self.terms.ty(b.id));
        if ta != tb {
            return Err(self.error(args[1], "type mismatch", &format!("expected {ta}, found {tb}")));
        }
        let id = self.dot(a, b);
        self.terms.mark(id, self.tree.at(at).span);
        if ta.has_tensor() {
            self.spell("ts_dot", &[], &[ta, tb], |e, args| Ok(e.dot(args[0], args[1])))?;
        }
        Ok(self.close(mark, id))
    }

    /// The inner product; what is no float counts nothing.
    pub(super) fn dot(&mut self, a: Val, b: Val) -> Id {
        match self.terms.ty(a.id).kind() {
            TyKind::Scalar(s) if s.is_float() => {
                let (x, y) = (self.now(a), self.now(b));
                let product = self.op(Op::Mul, &[x, y]);
                if *s == crate::ir::Scalar::F64 {
                    product
                } else {
                    self.terms.put(Head::Cast(crate::ir::Scalar::F64), [product])
                }
            }
            TyKind::Scalar(_) | TyKind::String | TyKind::Var(..) => self.terms.lit(Lit::float(0.0)),
            TyKind::Tuple(parts) => {
                let n = parts.len();
                let mut sum = None;
                for k in 0..n {
                    let (x, y) = (self.part(a, k, n), self.part(b, k, n));
                    let (x, y) = (self.val(x), self.val(y));
                    let part = self.dot(x, y);
                    sum = Some(sum.map_or(part, |s| self.op(Op::Add, &[s, part])));
                }
                sum.unwrap_or_else(|| self.terms.lit(Lit::float(0.0)))
            }
            TyKind::Tensor(rank, _) => {
                let mut kids = self.sizes(a, *rank);
                kids.push(self.under(&vec![Ty::int(); *rank], |e, levels| {
                    let (x, y) = (e.element(levels, a), e.element(levels, b));
                    let (x, y) = (e.val(x), e.val(y));
                    e.dot(x, y)
                }));
                let pairs = kids[..*rank].iter().copied().zip(self.sizes(b, *rank)).collect();
                let id = self.terms.put(Head::Reduce(Monoid::Add, *rank), kids);
                self.fits.insert(id, pairs);
                id
            }
        }
    }

    pub(super) fn form_delta(&mut self, at: usize, args: &[usize]) -> Result<Id> {
        let mark = self.opened();
        let (i, j, e) = (self.bound(args[0])?, self.bound(args[1])?, self.bound(args[2])?);
        let (ti, tj) = (self.terms.ty(i.id), self.terms.ty(j.id));
        if ti != tj || ti.has_tensor() {
            return Err(self.error(args[1], "type mismatch", &format!("expected {ti}, found {tj}")));
        }
        if !self.terms.ty(e.id).is_additive() {
            let label = format!("expected numbers, or tuples and tensors of them, found {}", self.terms.ty(e.id));
            return Err(self.error(args[2], "type mismatch", &label));
        }
        let tys = [ti, tj, self.terms.ty(e.id)];
        self.spell("delta", &[], &tys, |e, args| e.where_equal(at, args))?;
        let id = self.where_equal(at, &[i, j, e])?;
        Ok(self.close(mark, id))
    }

    /// A value where two others are equal, else its zero.
    fn where_equal(&mut self, at: usize, args: &[Val]) -> Result<Id> {
        let [i, j, value] = *args else { return Err(Diagnostic::consequence()) };
        let (same, zero, value) = (self.equal(i, j), self.zero(value), self.now(value));
        self.node(at, Head::If, &[same, value, zero], &[])
    }

    /// The zero of the same type and shape.
    pub(super) fn zero(&mut self, like: Val) -> Id {
        match self.terms.ty(like.id).kind() {
            TyKind::Scalar(s) => self.terms.lit(Lit::zero(*s)),
            TyKind::String | TyKind::Var(..) => self.now(like),
            TyKind::Tuple(parts) => {
                let n = parts.len();
                let zeros: Vec<Id> = (0..n)
                    .map(|k| {
                        let part = self.part(like, k, n);
                        let part = self.val(part);
                        self.zero(part)
                    })
                    .collect();
                self.terms.put(Head::Tuple, zeros)
            }
            TyKind::Tensor(rank, _) => self.like(like, *rank, |e, levels| {
                let x = e.element(levels, like);
                let x = e.val(x);
                e.zero(x)
            }),
        }
    }

    /// Structural equality.
    pub(super) fn equal(&mut self, a: Val, b: Val) -> Id {
        match self.terms.ty(a.id).kind() {
            TyKind::Scalar(_) | TyKind::Var(..) | TyKind::String => {
                let (x, y) = (self.now(a), self.now(b));
                self.op(Op::Eq, &[x, y])
            }
            TyKind::Tuple(parts) => {
                let n = parts.len();
                let each: Vec<Id> = (0..n)
                    .map(|k| {
                        let (x, y) = (self.part(a, k, n), self.part(b, k, n));
                        let (x, y) = (self.val(x), self.val(y));
                        self.equal(x, y)
                    })
                    .collect();
                if each.is_empty() { self.terms.lit(Lit::Bool(true)) } else { self.all(&each) }
            }
            TyKind::Tensor(rank, _) => {
                let mark = self.opened();
                let sizes = self.bound_sizes(a, *rank);
                let (same, _) = self.same_sizes(&sizes, b);
                let mut kids = self.all_now(&sizes);
                kids.push(self.under(&vec![Ty::int(); *rank], |e, levels| {
                    let (x, y) = (e.element(levels, a), e.element(levels, b));
                    let (x, y) = (e.val(x), e.val(y));
                    e.equal(x, y)
                }));
                let mut id = self.terms.put(Head::Reduce(Monoid::And, *rank), kids);
                if let Some(same) = same {
                    let no = self.terms.lit(Lit::Bool(false));
                    id = self.terms.put(Head::If, [same, id, no]);
                }
                self.close(mark, id)
            }
        }
    }
}
