//! Calls of library functions, and divisions, get names, so that equal ones are found and made once.

use super::{Arg, Expr, Func, Info, Stmt, Var};
use crate::ir::op::Class;
use crate::ir::{Op, Scalar};

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
                Stmt::Mut(_, e) | Stmt::Set(_, e) | Stmt::If(e, ..) | Stmt::Check(e, ..) => self.expr(e),
                Stmt::Store(_, at, e) => {
                    self.expr(at);
                    self.expr(e);
                }
                Stmt::Call(_, args, _) => args.iter_mut().for_each(|a| {
                    if let Arg::Scalar(e) = a {
                        self.expr(e);
                    }
                }),
                Stmt::Alloc(..) | Stmt::For(_) | Stmt::Mark(_) | Stmt::Reset(_) => {}
            }
            out.append(&mut self.made);
            match &mut s {
                Stmt::For(l) => self.block(&mut l.body),
                Stmt::If(_, a, b) => {
                    self.block(a);
                    self.block(b);
                }
                _ => {}
            }
            out.push(s);
        }
        *stmts = out;
    }

    fn expr(&mut self, e: &mut Expr) {
        self.inside(e);
        let Expr::Op(op, ty, _) = e else { return };
        if is_costly(*op, *ty) {
            let var = Var(self.vars.len() as u32);
            self.vars.push(Info { name: op.name().to_string(), ty: *ty });
            self.made.push(Stmt::Let(var, std::mem::replace(e, Expr::Var(var))));
        }
    }

    /// Names parts, but not the whole; only one arm of a choice is evaluated, so those stay.
    fn inside(&mut self, e: &mut Expr) {
        match e {
            Expr::Op(_, _, args) => args.iter_mut().for_each(|a| self.expr(a)),
            Expr::Load(_, e) | Expr::Cast(_, e) => self.expr(e),
            Expr::Cond(parts) => self.expr(&mut parts[0]),
            Expr::Lit(_) | Expr::Var(_) => {}
        }
    }
}
