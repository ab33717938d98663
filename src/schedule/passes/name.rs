//! Calls of library functions, and divisions, get names, so that equal ones are found and made once.

use crate::ir::op::Class;
use crate::ir::{Op, Scalar};
use crate::nest::{Arg, Expr, Func, Info, Stmt, Var};

/// Names all costly parts of a function's expressions.
pub fn name(func: &mut Func) {
    let mut body = std::mem::take(&mut func.body);
    Namer { vars: &mut func.vars, made: vec![] }.block(&mut body);
    func.body = body;
}

struct Namer<'a> {
    vars: &'a mut Vec<Info>,
    /// What has to stand before the statement.
    made: Vec<Stmt>,
}

fn is_costly(op: Op, ty: Scalar) -> bool {
    ty == Scalar::F64 && matches!(op.row().class, Class::Transcendental | Class::Divide)
}

impl Namer<'_> {
    fn block(&mut self, stmts: &mut Vec<Stmt>) {
        let mut out = Vec::with_capacity(stmts.len());
        for mut s in stmts.drain(..) {
            match &mut s {
                Stmt::Let(_, e) => self.inside(e),
                Stmt::Check(e, ..) => self.expr(e),
                Stmt::Call(_, args, _) | Stmt::Print(_, args, _) => args.iter_mut().for_each(|a| {
                    if let Arg::Scalar(e) = a {
                        self.expr(e);
                    }
                }),
                Stmt::Alloc(..) | Stmt::Point(..) | Stmt::For(_) | Stmt::Mark(_) | Stmt::Reset(_) => {}
                Stmt::Mut(..) | Stmt::Set(..) | Stmt::If(..) | Stmt::Store(..) | Stmt::Leave(..) => {
                    s.exprs_mut().into_iter().for_each(|e| self.expr(e));
                }
                Stmt::SetLane(..) | Stmt::StoreLane(..) | Stmt::MaskedStore(..) => {}
            }
            out.append(&mut self.made);
            s.blocks_mut().into_iter().for_each(|b| self.block(b));
            out.push(s);
        }
        *stmts = out;
    }

    fn expr(&mut self, e: &mut Expr) {
        self.inside(e);
        let Expr::Op(op, ty, _) = e else { return };
        if is_costly(*op, *ty) {
            let var = Var(self.vars.len() as u32);
            self.vars.push(Info::scalar(op.name(), *ty));
            self.made.push(Stmt::Let(var, std::mem::replace(e, Expr::Var(var))));
        }
    }

    /// Names parts, but not the whole; only one arm of a choice is evaluated, so those stay.
    fn inside(&mut self, e: &mut Expr) {
        match e {
            Expr::Cond(parts) => self.expr(&mut parts[0]),
            Expr::PerLane(..) => {}
            _ => e.kids_mut().iter_mut().for_each(|k| self.expr(k)),
        }
    }
}
