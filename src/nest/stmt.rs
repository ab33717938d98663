//! Statements of a nest, and what functions of it pass to each other.

use super::{Buf, Expr, PrintId, SiteId, Var};

/// A statement.
#[derive(Clone, PartialEq, Debug)]
pub enum Stmt {
    /// Declares a constant.
    Let(Var, Expr),
    /// Declares a variable that is set later, with its first value.
    Mut(Var, Expr),
    /// Sets a variable.
    Set(Var, Expr),
    /// Sets one lane (second) of a vector variable.
    SetLane(Var, Expr, Expr),
    /// Declares a buffer of as many elements as the product of the factors.
    Alloc(Buf, Vec<Expr>),
    /// Makes a buffer, which was declared without elements, the name of another one (second) from an index (third) on.
    /// Neither is written after that.
    Point(Buf, Buf, Expr),
    /// Writes a value (third) at an index (second); a vector of values at a vector of indices, lane 0 first.
    Store(Buf, Expr, Expr),
    /// As [`Stmt::Store`] in the lanes where the mask (fourth) holds; the others are not written.
    MaskedStore(Buf, Expr, Expr, Expr),
    /// Writes one lane (third) of a buffer of vectors at an index (second).
    StoreLane(Buf, Expr, Expr, Expr),
    /// Fails unless the condition holds; the values go into the message.
    Check(Expr, SiteId, Vec<Expr>),
    /// Runs the body for each value of the variable in the range.
    For(Box<Loop>),
    /// Ends the loop of a variable, which is around this statement, if the condition holds.
    Leave(Var, Expr),
    /// Runs one of two blocks.
    If(Expr, Vec<Stmt>, Vec<Stmt>),
    /// Remembers the top of the arena.
    Mark(u32),
    /// Gives back all memory taken since the mark.
    Reset(u32),
    /// Calls a function of the nest: arguments in, declared slots out.
    Call(usize, Vec<Arg>, Vec<Slot>),
    /// Writes values; declares the number of characters.
    Print(PrintId, Vec<Arg>, Var),
}

/// How the iterations of a loop run. It never changes what is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LoopKind {
    /// One after another.
    #[default]
    Serial,
    /// In any order, on several threads; each has memory of its own. Where they overlap, the last iteration may compute
    /// again what the one before it does, and follows it on its thread.
    Parallel {
        /// Whether the last two iterations may write the same.
        overlap: bool,
    },
    /// So many at once, one in each lane of vectors, until the pass that makes vectors has run.
    Vector(u32),
}

/// A loop.
#[derive(Clone, PartialEq, Debug)]
pub struct Loop {
    /// The loop variable.
    pub var: Var,
    /// Its first value.
    pub from: Expr,
    /// One past its last value.
    pub to: Expr,
    /// The statements.
    pub body: Vec<Stmt>,
    /// Whether an iteration takes memory, which is given back at its end.
    pub takes: bool,
    /// Whether no iteration reads or writes what another writes.
    pub independent: bool,
    /// How the iterations run.
    pub kind: LoopKind,
    /// How many iterations there are about, where the range does not say: for estimates alone.
    pub likely: Option<i64>,
}

impl Loop {
    /// A serial loop from 0 that takes no memory.
    pub fn new(var: Var, to: Expr, body: Vec<Stmt>) -> Loop {
        Loop {
            var,
            from: Expr::int(0),
            to,
            body,
            takes: false,
            independent: false,
            kind: LoopKind::Serial,
            likely: None,
        }
    }

    /// The same way of running over another range and body.
    pub fn with(&self, var: Var, to: Expr, body: Vec<Stmt>) -> Loop {
        Loop { takes: self.takes, independent: self.independent, ..Loop::new(var, to, body) }
    }

    /// Whether no iteration may touch what another writes, but perhaps for the last two.
    pub fn is_judged(&self) -> bool {
        self.independent || matches!(self.kind, LoopKind::Parallel { .. })
    }

    /// The number of iterations, where the loop starts from 0.
    pub fn extent(&self) -> Option<&Expr> {
        (self.from == Expr::int(0)).then_some(&self.to)
    }

    /// Whether compilers see at once that iterations may change places.
    pub fn is_flat(&self) -> bool {
        let flat = |s: &Stmt| {
            !matches!(
                s,
                Stmt::For(_) | Stmt::Alloc(..) | Stmt::Call(..) | Stmt::Print(..) | Stmt::If(..) | Stmt::Point(..)
            )
        };
        self.independent && !self.takes && self.body.iter().all(flat)
    }
}

/// A parameter or a declared result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slot {
    /// A scalar.
    Scalar(Var),
    /// The size of an axis.
    Size(Var),
    /// The elements of a tensor.
    Data(Buf),
}

/// An argument or a result.
#[derive(Clone, PartialEq, Debug)]
pub enum Arg {
    /// A scalar.
    Scalar(Expr),
    /// The size of an axis.
    Size(Expr),
    /// The elements of a tensor, from an offset.
    Data(Buf, Expr),
}

impl Arg {
    /// Its expression.
    pub fn expr(&self) -> &Expr {
        match self {
            Arg::Scalar(e) | Arg::Size(e) | Arg::Data(_, e) => e,
        }
    }

    /// Its expression, to change.
    pub fn expr_mut(&mut self) -> &mut Expr {
        match self {
            Arg::Scalar(e) | Arg::Size(e) | Arg::Data(_, e) => e,
        }
    }
}
