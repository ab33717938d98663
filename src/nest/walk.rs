//! The one way to visit and to map the parts of a nest: passes say what they do at a node, not how to reach it.

use super::{Expr, Stmt};
use smallvec::{SmallVec, smallvec};

impl Expr {
    /// The direct sub-expressions.
    pub fn kids(&self) -> &[Expr] {
        match self {
            Expr::Lit(_) | Expr::Var(_) => &[],
            Expr::Load(_, e) | Expr::Cast(_, e) | Expr::Broadcast(e, _) | Expr::PrefixMask(e, _) | Expr::All(e) => {
                std::slice::from_ref(e)
            }
            Expr::Op(_, _, args) => args,
            Expr::MaskedLoad(_, parts) | Expr::Ramp(parts, _) | Expr::Extract(parts) | Expr::PerLane(_, _, parts) => {
                parts.as_slice()
            }
            Expr::Cond(parts) => parts.as_slice(),
        }
    }

    /// The direct sub-expressions, to change.
    pub fn kids_mut(&mut self) -> &mut [Expr] {
        match self {
            Expr::Lit(_) | Expr::Var(_) => &mut [],
            Expr::Load(_, e) | Expr::Cast(_, e) | Expr::Broadcast(e, _) | Expr::PrefixMask(e, _) | Expr::All(e) => {
                std::slice::from_mut(e)
            }
            Expr::Op(_, _, args) => args,
            Expr::MaskedLoad(_, parts) | Expr::Ramp(parts, _) | Expr::Extract(parts) | Expr::PerLane(_, _, parts) => {
                parts.as_mut_slice()
            }
            Expr::Cond(parts) => parts.as_mut_slice(),
        }
    }

    /// Whether a predicate holds of it or of a part of it.
    pub fn any(&self, f: &mut dyn FnMut(&Expr) -> bool) -> bool {
        f(self) || self.kids().iter().any(|k| k.any(f))
    }

    /// Visits it and all its parts, outer ones first.
    pub fn visit(&self, f: &mut dyn FnMut(&Expr)) {
        f(self);
        self.kids().iter().for_each(|k| k.visit(f));
    }

    /// Changes all its parts and it, inner ones first.
    pub fn map(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        self.kids_mut().iter_mut().for_each(|k| k.map(f));
        f(self);
    }
}

impl Stmt {
    /// The expressions that stand in the statement itself, not in its blocks, in the order of evaluation.
    pub fn exprs(&self) -> SmallVec<[&Expr; 4]> {
        match self {
            Stmt::Let(_, e) | Stmt::Mut(_, e) | Stmt::Set(_, e) | Stmt::Leave(_, e) | Stmt::If(e, ..) => smallvec![e],
            Stmt::Alloc(_, dims) => dims.iter().collect(),
            Stmt::Point(_, _, at) => smallvec![at],
            Stmt::Store(_, a, b) | Stmt::SetLane(_, a, b) => smallvec![a, b],
            Stmt::MaskedStore(_, a, b, c) | Stmt::StoreLane(_, a, b, c) => smallvec![a, b, c],
            Stmt::Check(ok, _, values) => std::iter::once(ok).chain(values).collect(),
            Stmt::For(l) => smallvec![&l.from, &l.to],
            Stmt::Mark(_) | Stmt::Reset(_) => smallvec![],
            Stmt::Call(_, args, _) | Stmt::Print(_, args, _) => args.iter().map(|a| a.expr()).collect(),
        }
    }

    /// As [`Stmt::exprs`], to change.
    pub fn exprs_mut(&mut self) -> SmallVec<[&mut Expr; 4]> {
        match self {
            Stmt::Let(_, e) | Stmt::Mut(_, e) | Stmt::Set(_, e) | Stmt::Leave(_, e) | Stmt::If(e, ..) => smallvec![e],
            Stmt::Alloc(_, dims) => dims.iter_mut().collect(),
            Stmt::Point(_, _, at) => smallvec![at],
            Stmt::Store(_, a, b) | Stmt::SetLane(_, a, b) => smallvec![a, b],
            Stmt::MaskedStore(_, a, b, c) | Stmt::StoreLane(_, a, b, c) => smallvec![a, b, c],
            Stmt::Check(ok, _, values) => std::iter::once(ok).chain(values).collect(),
            Stmt::For(l) => {
                let l = &mut **l;
                smallvec![&mut l.from, &mut l.to]
            }
            Stmt::Mark(_) | Stmt::Reset(_) => smallvec![],
            Stmt::Call(_, args, _) | Stmt::Print(_, args, _) => args.iter_mut().map(|a| a.expr_mut()).collect(),
        }
    }

    /// The blocks of the statement.
    pub fn blocks(&self) -> SmallVec<[&[Stmt]; 2]> {
        match self {
            Stmt::For(l) => smallvec![l.body.as_slice()],
            Stmt::If(_, a, b) => smallvec![a.as_slice(), b.as_slice()],
            _ => smallvec![],
        }
    }

    /// The blocks of the statement, to change.
    pub fn blocks_mut(&mut self) -> SmallVec<[&mut Vec<Stmt>; 2]> {
        match self {
            Stmt::For(l) => smallvec![&mut l.body],
            Stmt::If(_, a, b) => smallvec![a, b],
            _ => smallvec![],
        }
    }

    /// Visits it and all statements in it, outer ones first.
    pub fn visit(&self, f: &mut dyn FnMut(&Stmt)) {
        f(self);
        self.blocks().into_iter().for_each(|b| visit(b, f));
    }

    /// Changes all expressions in it and in its blocks, with their parts, inner ones first.
    pub fn map_exprs(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        self.exprs_mut().into_iter().for_each(|e| e.map(f));
        self.blocks_mut().into_iter().for_each(|b| b.iter_mut().for_each(|s| s.map_exprs(f)));
    }
}

/// Visits all statements of a block, outer ones first.
pub fn visit(stmts: &[Stmt], f: &mut dyn FnMut(&Stmt)) {
    stmts.iter().for_each(|s| s.visit(f));
}

/// The number of statements, those inside of others included.
pub fn count(stmts: &[Stmt]) -> usize {
    let mut n = 0;
    visit(stmts, &mut |_| n += 1);
    n
}
