//! The shape of a term's value before the value is made, as statements that compute its sizes.
//!
//! Like `types::shape`, but over the environment of lowering: what a let or a call binds is looked
//! at only as far as the shape needs it, and tuples of tensors have shapes, too. Sizes are not checked,
//! and what fails on the way to them is left to making the value, which knows what fails first.

use super::value::{Shape, Val, compare, product, sizeless};
use super::{Block, Expr, Lower, Slot, mask};
use crate::diag::Result;
use crate::ir::{Head, Id, Lit, Op, Scalar, deep};
use crate::nest::Stmt;

/// A block and the shape that it computes.
pub(super) struct Arm {
    pub(super) block: Block,
    pub(super) shape: Shape,
}

impl Arm {
    /// A shape that is known.
    pub(super) fn of(shape: Shape) -> Arm {
        Arm { block: Block::default(), shape }
    }

    /// Whether the block may run where its shape is not asked for.
    pub(super) fn is_free(&self) -> bool {
        self.block.stmts.iter().all(|s| matches!(s, Stmt::Let(..)))
    }
}

/// For what the shape of a sum is wanted.
#[derive(Clone, Copy)]
pub(super) enum Sum<'v> {
    /// For a promise: making the value checks the sizes.
    Promised,
    /// For the value of a reduction.
    Reduced,
    /// For the value of a sum over the elements of a tensor.
    Of(&'v Val),
}

impl Lower<'_> {
    /// The value of a variable.
    pub(super) fn variable(&mut self, index: u32) -> Result<Val> {
        let Some(at) = self.f.env.len().checked_sub(1 + index as usize) else { return self.bug("a bound variable") };
        let (id, outer) = match &self.f.env[at] {
            Slot::Val(v) => return Ok(v.clone()),
            Slot::Probe(k) => {
                self.touched[*k] = true;
                return Ok(Val::Expr(Expr::int(0)));
            }
            Slot::Lazy(_, _, Some((v, serial)))
                if self.f.blocks.iter().any(|b| b.serial == *serial || b.spliced.contains(serial)) =>
            {
                return Ok(v.clone());
            }
            Slot::Lazy(id, outer, _) => (*id, *outer),
        };
        let inner = self.f.env.split_off(outer);
        let value = self.value(id);
        self.f.env.truncate(outer);
        self.f.env.extend(inner);
        let value = self.name_val(value?, "v");
        // A tensor's memory may be given back before the next use; scalars stay in their block.
        if !self.terms.ty(id).has_tensor() {
            let serial = self.block()?.serial;
            self.f.env[at] = Slot::Lazy(id, outer, Some((value.clone(), serial)));
        }
        Ok(value)
    }

    /// The shape of a term's value.
    pub(super) fn shape(&mut self, id: Id) -> Result<Shape> {
        // Numbers have a shape whatever they are: nothing is made to find it, least of all by calls.
        if let Some(shape) = sizeless(self.terms.ty(id)) {
            return Ok(shape);
        }
        let from = self.block()?.stmts.len();
        let shape = deep(|| self.shape_node(id))?;
        if self.prints(id) && !self.block()?.stmts[from..].iter().all(is_silent) {
            return self.refuse(id, "a value whose making prints, and whose size is known only by making it,");
        }
        Ok(shape)
    }

    fn shape_node(&mut self, id: Id) -> Result<Shape> {
        let terms = self.terms;
        let kids = terms.kids(id);
        match terms.head(id) {
            Head::Var(i, _) => self.variable_shape(i),
            Head::Let => {
                self.f.env.push(Slot::Lazy(kids[0], self.f.env.len(), None));
                let out = self.shape(kids[1]);
                self.f.env.pop();
                out
            }
            Head::If => self.if_shape(kids),
            Head::Assert => self.shape(kids[1]),
            Head::Tuple => Ok(Shape::Tuple(kids.iter().map(|k| self.shape(*k)).collect::<Result<_>>()?)),
            Head::Get(i, _) => match self.shape(kids[0])? {
                Shape::Tuple(mut parts) => Ok(parts.swap_remove(i as usize)),
                _ => self.bug("the shape of a tuple"),
            },
            Head::Call(f) => self.call_shape(id, f),
            Head::Op(op) => {
                let args = kids.iter().map(|k| self.shape(*k)).collect::<Result<Vec<_>>>()?;
                self.lift_shape(op, &args)
            }
            Head::Build(d) => {
                let dims = self.ints(&kids[..d])?;
                let total = product(&dims);
                let (elem, _) = self.element_shape(d, total, kids[d])?;
                Ok(Shape::Tensor(dims, Box::new(elem)))
            }
            Head::Reduce(_, d) => {
                let dims = self.ints(&kids[..d])?;
                let total = self.atom(product(&dims), "n");
                let (arm, _) = self.element_arm(d, kids[d])?;
                self.sum_shape(id, &total, arm, Sum::Promised)
            }
            Head::Index(d) => self.inner_shape(kids[d]),
            Head::Sum => match self.shape(kids[0])? {
                Shape::Tensor(dims, elem) => {
                    let total = self.atom(product(&dims), "n");
                    self.sum_shape(id, &total, Arm::of(*elem), Sum::Promised)
                }
                _ => self.bug("the shape of a tensor"),
            },
            Head::Fold => self.shape(kids[0]),
            Head::Scan => {
                let dims = self.ints(&kids[1..2])?;
                Ok(Shape::Tensor(dims, Box::new(self.shape(kids[0])?)))
            }
            Head::ConstVec(d) | Head::DeltaVec(d) => {
                let dims = self.ints(&kids[..d])?;
                Ok(Shape::Tensor(dims, Box::new(self.shape(kids[kids.len() - 1])?)))
            }
            Head::VecInit => {
                let dims = vec![Expr::int(kids.len() as i64)];
                Ok(Shape::Tensor(dims, Box::new(self.shape(kids[0])?)))
            }
            Head::Scatter(d) => {
                let dims = self.ints(&kids[..d])?;
                Ok(Shape::Tensor(dims, Box::new(self.plain_elements(terms.ty(id))?)))
            }
            Head::Const(_) | Head::Cast(_) | Head::Arg(_) | Head::Size(_) | Head::Print => {
                let v = self.value(id)?;
                Ok(self.shape_of(&v))
            }
        }
    }

    fn variable_shape(&mut self, index: u32) -> Result<Shape> {
        let at = self.f.env.len() - 1 - index as usize;
        if let Slot::Lazy(id, outer, None) = self.f.env[at] {
            let inner = self.f.env.split_off(outer);
            let out = self.shape(id);
            self.f.env.truncate(outer);
            self.f.env.extend(inner);
            return out;
        }
        let v = self.variable(index)?;
        Ok(self.shape_of(&v))
    }

    fn inner_shape(&mut self, tensor: Id) -> Result<Shape> {
        match self.shape(tensor)? {
            Shape::Tensor(_, elem) => Ok(*elem),
            _ => self.bug("the shape of a tensor"),
        }
    }

    /// Sizes, unchecked: making the value checks them.
    fn ints(&mut self, ids: &[Id]) -> Result<Vec<Expr>> {
        let mut out = vec![];
        for k in ids {
            let e = self.guess(*k)?;
            out.push(self.atom(e, "n"));
        }
        Ok(out)
    }

    /// The result shape of an operation that works by element.
    pub(super) fn lift_shape(&self, op: Op, args: &[Shape]) -> Result<Shape> {
        let tensor = args.iter().find_map(|s| if let Shape::Tensor(d, _) = s { Some(d.clone()) } else { None });
        let tuple = args.iter().find_map(|s| if let Shape::Tuple(p) = s { Some(p.len()) } else { None });
        if let Some(dims) = tensor {
            let elem = |s: &Shape| if let Shape::Tensor(_, e) = s { (**e).clone() } else { s.clone() };
            let elems: Vec<Shape> = args.iter().map(elem).collect();
            return Ok(Shape::Tensor(dims, Box::new(self.lift_shape(op, &elems)?)));
        }
        if let Some(n) = tuple {
            let part = |s: &Shape, k: usize| if let Shape::Tuple(p) = s { p[k].clone() } else { s.clone() };
            let each = (0..n).map(|k| self.lift_shape(op, &args.iter().map(|s| part(s, k)).collect::<Vec<_>>()));
            return Ok(Shape::Tuple(each.collect::<Result<_>>()?));
        }
        let scalars: Vec<Scalar> =
            args.iter().filter_map(|s| if let Shape::Scalar(s) = s { Some(*s) } else { None }).collect();
        match op.result(&scalars) {
            Some(s) => Ok(Shape::Scalar(s)),
            None => self.bug("scalars that an operation takes"),
        }
    }

    /// The shape of a loop body's value, outside the loop, and whether it depends on the loop
    /// variables: then it is that of the first iteration.
    pub(super) fn element_shape(&mut self, binds: usize, total: Expr, body: Id) -> Result<(Shape, bool)> {
        if let Some(shape) = sizeless(self.terms.ty(body)) {
            return Ok((shape, false));
        }
        let (arm, varies) = self.element_arm(binds, body)?;
        Ok((self.shape_where(compare(Op::Gt, total, Expr::int(0)), arm)?, varies))
    }

    /// As [`Lower::element_shape`], in a block of its own.
    pub(super) fn element_arm(&mut self, binds: usize, body: Id) -> Result<(Arm, bool)> {
        let probe = self.touched.len();
        self.touched.push(false);
        self.f.env.extend((0..binds).map(|_| Slot::Probe(probe)));
        let arm = self.shape_arm(body);
        self.f.env.truncate(self.f.env.len() - binds);
        let varies = self.touched.pop().unwrap_or(true);
        Ok((arm?, varies))
    }

    /// The shape of a term's value, before the value is made.
    pub(super) fn promise(&mut self, id: Id) -> Result<Shape> {
        let arm = self.shape_arm(id)?;
        self.splice(arm.block);
        Ok(arm.shape)
    }

    /// The shape of a term's value in a block of its own.
    fn shape_arm(&mut self, id: Id) -> Result<Arm> {
        self.open_block()?;
        let shape = self.shape(id);
        let mut block = self.close_block();
        let shape = shape?;
        if mask::can_fail(&block.stmts) {
            // The value, made for its failures alone, has them in the right order; then the shape has none.
            self.open_block()?;
            let value = self.value(id);
            let mut first = self.close_block();
            value?;
            first.stmts.append(&mut block.stmts);
            block.stmts = first.stmts;
            block.takes |= first.takes;
        }
        Ok(Arm { block, shape })
    }

    /// A scalar that a shape depends on; zero where computing it fails, as making the value will.
    pub(super) fn guess(&mut self, id: Id) -> Result<Expr> {
        let Some(ty) = self.terms.ty(id).as_scalar() else { return self.bug("a scalar") };
        self.open_block()?;
        let e = self.scalar(id);
        let block = self.close_block();
        let e = e?;
        if !mask::can_fail(&block.stmts) || !mask::is_maskable(&block.stmts) {
            self.splice(block);
            return Ok(e);
        }
        let out = self.mutable("n", Expr::Lit(Lit::zero(ty)));
        let goes = self.mutable("goes", Expr::Lit(Lit::Bool(true)));
        let mut stmts = block.stmts;
        stmts.push(Stmt::Set(out, e));
        let outer = self.block()?;
        outer.stmts.extend(mask::masked(stmts, goes));
        outer.takes |= block.takes;
        Ok(Expr::Var(out))
    }

    /// A shape that is computed only where a condition holds; zeros where it does not.
    pub(super) fn shape_where(&mut self, c: Expr, arm: Arm) -> Result<Shape> {
        if arm.is_free() || c == Expr::Lit(Lit::Bool(true)) {
            self.splice(arm.block);
            return Ok(arm.shape);
        }
        self.choose(c, arm, None)
    }

    fn if_shape(&mut self, kids: &[Id]) -> Result<Shape> {
        let condition = self.guess(kids[0])?;
        let condition = self.atom(condition, "which");
        let (first, second) = (self.shape_arm(kids[1])?, self.shape_arm(kids[2])?);
        if first.block.stmts.is_empty() && second.block.stmts.is_empty() && first.shape == second.shape {
            return Ok(first.shape);
        }
        self.choose(condition, first, Some(second))
    }

    /// The shape that one of two blocks computes, as variables; zeros where there is no second one.
    pub(super) fn choose(&mut self, c: Expr, a: Arm, b: Option<Arm>) -> Result<Shape> {
        let (out, sets) = self.outcome(&a.shape);
        let arm = |arm: Arm| [arm.block.stmts, sets(&arm.shape)].concat();
        self.block()?.takes |= a.block.takes || b.as_ref().is_some_and(|b| b.block.takes);
        self.push(Stmt::If(c, arm(a), b.map(arm).unwrap_or_default()));
        Ok(out)
    }

    /// Variables for the sizes of a shape, and what sets them to those of another one of its type.
    fn outcome(&mut self, like: &Shape) -> (Shape, impl Fn(&Shape) -> Vec<Stmt> + use<>) {
        let mut vars = vec![];
        let out = self.variables(like, &mut vars);
        let sets = move |s: &Shape| {
            let mut sizes = vec![];
            flatten(s, &mut sizes);
            vars.iter().zip(sizes).map(|(v, e)| Stmt::Set(*v, e)).collect()
        };
        (out, sets)
    }

    fn variables(&mut self, s: &Shape, vars: &mut Vec<super::Var>) -> Shape {
        match s {
            Shape::Scalar(s) => Shape::Scalar(*s),
            Shape::Tuple(parts) => Shape::Tuple(parts.iter().map(|p| self.variables(p, vars)).collect()),
            Shape::Tensor(dims, elem) => {
                let mut out = vec![];
                for _ in dims {
                    let v = self.mutable("n", Expr::int(0));
                    vars.push(v);
                    out.push(Expr::Var(v));
                }
                Shape::Tensor(out, Box::new(self.variables(elem, vars)))
            }
        }
    }

    /// The size of an axis of a value, counted through nested tensors; 0 inside an empty one.
    pub(super) fn size_of(&mut self, v: &Val, axis: usize) -> Result<Expr> {
        let shape = self.shape_of(v);
        self.size_in(&shape, axis)
    }

    /// As [`Lower::size_of`], of a shape.
    pub(super) fn size_in(&mut self, s: &Shape, axis: usize) -> Result<Expr> {
        let (mut outer, mut rest, mut at) = (vec![], s, axis);
        while let Shape::Tensor(dims, elem) = rest {
            if at >= dims.len() {
                at -= dims.len();
                outer.extend(dims.iter().cloned());
                rest = elem;
                continue;
            }
            let size = dims[at].clone();
            let zeroed = matches!(&size, Expr::Var(v) if self.f.inner.get(v) == Some(&outer));
            if outer.is_empty() || zeroed {
                return Ok(size);
            }
            let total = product(&outer);
            let total = self.atom(total, "n");
            let empty = compare(Op::Eq, total, Expr::int(0));
            if let Expr::Lit(Lit::Bool(empty)) = empty {
                return Ok(if empty { Expr::int(0) } else { size });
            }
            let known = self.is_size(&size);
            let out = self.atom(Expr::Cond(Box::new([empty, Expr::int(0), size])), "n");
            if let Expr::Var(v) = &out
                && known
            {
                self.f.sizes.insert(*v);
            }
            return Ok(out);
        }
        self.bug("an axis of a tensor")
    }
}

/// Whether a statement neither prints nor fails.
fn is_silent(s: &Stmt) -> bool {
    match s {
        Stmt::Check(..) | Stmt::Call(..) | Stmt::Print(..) => false,
        Stmt::For(l) => l.body.iter().all(is_silent),
        Stmt::If(_, a, b) => a.iter().chain(b).all(is_silent),
        _ => true,
    }
}

fn flatten(s: &Shape, out: &mut Vec<Expr>) {
    match s {
        Shape::Scalar(_) => {}
        Shape::Tuple(parts) => parts.iter().for_each(|p| flatten(p, out)),
        Shape::Tensor(dims, elem) => {
            out.extend(dims.iter().cloned());
            flatten(elem, out);
        }
    }
}
