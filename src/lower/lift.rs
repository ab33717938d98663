//! Scalar operations that work by element on tensors and by component on tuples.

use super::value::{Mode, Shape, Val, compare, product};
use super::{Expr, Failing, Lower};
use crate::diag::Result;
use crate::ir::{Id, Op};
use crate::nest::Stmt;

impl Lower<'_> {
    /// Fails unless tensors that are combined by element have equal sizes.
    pub(super) fn check_sizes(&mut self, id: Id, a: &Val, b: &Val) -> Result<()> {
        match (a, b) {
            (Val::Tensor(m, x), Val::Tensor(n, y)) => {
                let ok = self.same_dims(m, n);
                self.check(ok, Failing::Sizes(m.len()), id, [m.as_slice(), n].concat());
                if matches!(**x, Val::Place(..)) {
                    return Ok(());
                }
                self.open_block()?;
                self.check_sizes(id, x, y)?;
                let inner = self.close_arm();
                if !inner.is_empty() {
                    let some = compare(Op::Gt, product(m), Expr::int(0));
                    self.push(Stmt::If(some, inner, vec![]));
                }
                Ok(())
            }
            (Val::Tuple(a), Val::Tuple(b)) => a.iter().zip(b).try_for_each(|(a, b)| self.check_sizes(id, a, b)),
            _ => Ok(()),
        }
    }

    /// A scalar operation by element on values.
    pub(super) fn lift(&mut self, id: Id, op: Op, args: &[Val], dest: Option<(&Val, Mode)>) -> Result<Val> {
        let shapes: Vec<Shape> = args.iter().map(|a| self.shape_of(a)).collect();
        let shape = self.lift_shape(op, &shapes)?;
        let mut tensors = args.iter().filter(|a| matches!(a, Val::Tensor(..)));
        if let Some(first) = tensors.next() {
            for other in tensors {
                self.check_sizes(id, first, other)?;
            }
        }
        let (dest, mode) = match dest {
            Some((d, mode)) => {
                let have = self.shape_of(d);
                self.fits_shape(&have, &shape)?;
                (d.clone(), mode)
            }
            None => (self.alloc(&shape, "v")?, Mode::Store),
        };
        let args: Vec<Val> = args.iter().map(|a| self.name_val(a.clone(), "v")).collect();
        self.lift_into(id, op, &args, &dest, mode)?;
        Ok(dest)
    }

    fn lift_into(&mut self, id: Id, op: Op, args: &[Val], dest: &Val, mode: Mode) -> Result<()> {
        match dest {
            Val::Tensor(dims, elem) => {
                let total = self.atom(product(dims), "n");
                let k = self.open_loop(&total, "k")?;
                let mut each = vec![];
                for a in args {
                    each.push(match a {
                        Val::Tensor(_, inner) => {
                            let place = self.at(inner, &Expr::Var(k));
                            self.read(place)
                        }
                        other => other.clone(),
                    });
                }
                let place = self.at(elem, &Expr::Var(k));
                self.lift_into(id, op, &each, &place, mode)?;
                self.close_loop(k, total, true);
                Ok(())
            }
            Val::Tuple(parts) => {
                for (k, part) in parts.iter().enumerate() {
                    let at = |a: &Val| if let Val::Tuple(p) = a { p[k].clone() } else { a.clone() };
                    let each: Vec<Val> = args.iter().map(at).collect();
                    // Tensors that stand in tuples have not been compared yet.
                    let tensors: Vec<&Val> = each.iter().filter(|v| matches!(v, Val::Tensor(..))).collect();
                    if let [a, b] = tensors.as_slice() {
                        self.check_sizes(id, a, b)?;
                    }
                    self.lift_into(id, op, &each, part, mode)?;
                }
                Ok(())
            }
            Val::Expr(_) | Val::Place(..) => {
                let scalars: Vec<Expr> =
                    args.iter().filter_map(|a| if let Val::Expr(e) = a { Some(e.clone()) } else { None }).collect();
                let out = self.operate(id, op, scalars)?;
                self.put(dest, out, mode)
            }
        }
    }
}
