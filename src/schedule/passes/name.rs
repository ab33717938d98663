//! Calls of library functions, and divisions, get names, so that equal ones are found and made once; after vectorization so do
//! those of all lanes, of which arms are no longer a matter, and loads of lanes that lie anywhere, or far apart.

use crate::ir::op::Class;
use crate::ir::{Op, Scalar};
use crate::nest::stretch::Stretch;
use crate::nest::{Arg, Expr, Func, Info, Stmt};

/// Names all costly parts of a function's expressions.
pub fn name(func: &mut Func) {
    named(func, &costly);
}

/// Names all calls of library functions for several lanes, and all loads of lanes that are not next to each other.
pub fn name_lanes(func: &mut Func) {
    named(func, &|func, e| called(func, e).or_else(|| gathered(func, e)));
}

/// Names all calls of library functions for several lanes in some statements.
pub(super) fn name_calls(func: &mut Func, stmts: &mut Vec<Stmt>) {
    Namer { func, which: &called, made: vec![] }.block(stmts);
}

/// What a part that is worth a name is called.
type Named<'a> = &'a dyn Fn(&Func, &Expr) -> Option<Info>;

fn named(func: &mut Func, which: Named<'_>) {
    let mut body = std::mem::take(&mut func.body);
    Namer { func, which, made: vec![] }.block(&mut body);
    func.body = body;
}

fn costly(_: &Func, e: &Expr) -> Option<Info> {
    let Expr::Op(op, Scalar::F64, _) = e else { return None };
    matches!(op.row().class, Class::Transcendental | Class::Divide).then(|| Info::scalar(op.name(), Scalar::F64))
}

/// The library function that an expression calls for several lanes, with its type.
pub(super) fn call(func: &Func, e: &Expr) -> Option<(Op, Scalar)> {
    let Expr::Op(op, ty, _) = e else { return None };
    (op.row().class == Class::Transcendental && func.lanes(e) > 1).then_some((*op, *ty))
}

fn called(func: &Func, e: &Expr) -> Option<Info> {
    let (op, ty) = call(func, e)?;
    Some(Info { name: op.name().into(), ty, lanes: func.lanes(e) })
}

fn gathered(func: &Func, e: &Expr) -> Option<Info> {
    let (b, at) = match e {
        Expr::Load(b, at) => (b, &**at),
        Expr::MaskedLoad(b, parts) => (b, &parts[0]),
        _ => return None,
    };
    let near = matches!(at, Expr::Ramp(p, _) if p[1] == Expr::int(1)) || Stretch::of_index(at).is_some();
    let (of, lanes) = (func.buf(*b), func.lanes(at));
    (lanes > 1 && of.lanes == 1 && !near).then(|| Info { name: of.name.clone(), ty: of.ty, lanes })
}

struct Namer<'a> {
    func: &'a mut Func,
    which: Named<'a>,
    /// What has to stand before the statement.
    made: Vec<Stmt>,
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
                Stmt::Mut(..)
                | Stmt::Set(..)
                | Stmt::If(..)
                | Stmt::Store(..)
                | Stmt::Leave(..)
                | Stmt::SetLane(..)
                | Stmt::StoreLane(..)
                | Stmt::MaskedStore(..) => s.exprs_mut().into_iter().for_each(|e| self.expr(e)),
            }
            out.append(&mut self.made);
            s.blocks_mut().into_iter().for_each(|b| self.block(b));
            out.push(s);
        }
        *stmts = out;
    }

    fn expr(&mut self, e: &mut Expr) {
        self.inside(e);
        if let Some(info) = (self.which)(self.func, e) {
            let var = self.func.fresh_var(info);
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
