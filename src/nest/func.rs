//! Functions of a nest, and the nest itself.

use super::{Arg, Buf, Expr, Site, Slot, Stmt, Var};
use crate::ir::{Scalar, Ty};

/// What the source calls a variable or buffer, and the type of its elements.
#[derive(Clone, PartialEq, Debug)]
pub struct Info {
    /// A name as the source writes it; not unique.
    pub name: String,
    /// The scalar type.
    pub ty: Scalar,
    /// How many numbers it holds, or each element of it: more than one is a vector.
    pub lanes: u32,
}

impl Info {
    /// A variable of one number, or a buffer of numbers.
    pub fn scalar(name: impl Into<String>, ty: Scalar) -> Info {
        Info { name: name.into(), ty, lanes: 1 }
    }
}

/// A function: slots in, statements, slots out.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Func {
    /// The name in the source.
    pub name: String,
    /// Parameters, flattened: the sizes of a tensor stand before its buffers.
    pub params: Vec<Slot>,
    /// Variables.
    pub vars: Vec<Info>,
    /// Buffers.
    pub bufs: Vec<Info>,
    /// Statements.
    pub body: Vec<Stmt>,
    /// Results, flattened like parameters.
    pub results: Vec<Arg>,
    /// Types of what the results are sent to, in their order.
    pub outs: Vec<Scalar>,
    /// The variable that counts the calls that are open, in functions that call themselves.
    pub depth: Option<Var>,
}

/// The lowered form of a definition.
#[derive(Clone, PartialEq, Debug)]
pub struct Nest {
    /// The definition itself.
    pub entry: Func,
    /// The functions that call themselves, by index of [`Stmt::Call`].
    pub funcs: Vec<Func>,
    /// The places that can fail.
    pub sites: Vec<Site>,
    /// The texts of the source: a text is its index here, and texts that are not here have others.
    pub texts: Vec<&'static str>,
    /// The types of what each place writes that prints.
    pub prints: Vec<Vec<Ty>>,
    /// Parameter types.
    pub params: Vec<Ty>,
    /// Result type.
    pub ret: Ty,
}

impl Nest {
    /// Changes all functions.
    pub fn each_func(&mut self, mut f: impl FnMut(&mut Func)) {
        self.funcs.iter_mut().chain([&mut self.entry]).for_each(&mut f);
    }
}

impl Func {
    /// What is known of a variable.
    pub fn var(&self, v: Var) -> &Info {
        &self.vars[v.0 as usize]
    }

    /// What is known of a buffer.
    pub fn buf(&self, b: Buf) -> &Info {
        &self.bufs[b.0 as usize]
    }

    /// Declares a variable of one number.
    pub fn fresh(&mut self, name: impl Into<String>, ty: Scalar) -> Var {
        self.fresh_var(Info::scalar(name, ty))
    }

    /// Declares a variable.
    pub fn fresh_var(&mut self, info: Info) -> Var {
        self.vars.push(info);
        Var(self.vars.len() as u32 - 1)
    }

    /// Declares a buffer.
    pub fn fresh_buf(&mut self, info: Info) -> Buf {
        self.bufs.push(info);
        Buf(self.bufs.len() as u32 - 1)
    }

    /// The scalar type of an expression, or of its lanes.
    pub fn ty(&self, e: &Expr) -> Scalar {
        match e {
            Expr::Lit(l) => l.ty().as_scalar().unwrap_or(Scalar::I64),
            Expr::Var(v) => self.var(*v).ty,
            Expr::Load(b, _) | Expr::MaskedLoad(b, _) => self.buf(*b).ty,
            Expr::Op(_, s, _) | Expr::Cast(s, _) => *s,
            Expr::Cond(parts) => self.ty(&parts[1]),
            Expr::Ramp(..) => Scalar::I64,
            Expr::Broadcast(e, _) => self.ty(e),
            Expr::PrefixMask(..) | Expr::All(_) => Scalar::Bool,
            Expr::Extract(parts) => self.ty(&parts[0]),
            Expr::PerLane(_, _, parts) => self.ty(&parts[1]),
        }
    }

    /// How many lanes an expression has: 1 where it is no vector.
    pub fn lanes(&self, e: &Expr) -> u32 {
        match e {
            Expr::Lit(_) | Expr::Extract(_) | Expr::All(_) => 1,
            Expr::Var(v) => self.var(*v).lanes,
            Expr::Load(b, at) => self.lanes(at).max(self.buf(*b).lanes),
            Expr::MaskedLoad(_, parts) => self.lanes(&parts[0]),
            Expr::Op(_, _, args) => args.first().map_or(1, |a| self.lanes(a)),
            Expr::Cast(_, e) => self.lanes(e),
            Expr::Cond(parts) => self.lanes(&parts[1]),
            Expr::Ramp(_, n) | Expr::Broadcast(_, n) | Expr::PrefixMask(_, n) | Expr::PerLane(_, n, _) => *n,
        }
    }
}
