//! Which loops run several iterations at once, one in each lane, and what each variable is then. Sums can too: what an
//! iteration adds at its end is added one after another.
//!
//! Every lane does what its iteration does, in the order of its iteration, so results have the same bits.
//! Where a check fails in one lane only, the iterations are done again one after another, which finds the
//! failure that comes first. Code generation asks [`classify`].

use super::{Buf, Expr, Func, Loop, Stmt, Var};
use crate::ir::{Op, Scalar};
use rustc_hash::{FxHashMap, FxHashSet};

/// Iterations that run at once: as many 64-bit numbers as the widest vectors hold.
pub const LANES: usize = 8;

/// Strides of more nodes are not worth their text.
const MAX_STRIDE: usize = 12;

/// How the values of an expression differ from lane to lane.
#[derive(Clone, PartialEq, Debug)]
pub enum Class {
    /// Not at all.
    Uniform,
    /// An integer that grows by this from each lane to the next.
    Affine(Expr),
    /// In any way.
    Varying,
}

/// What is known of the body of a loop in lanes.
#[derive(Clone, Debug, Default)]
pub struct Lanes {
    /// All variables that are not uniform.
    vars: FxHashMap<Var, Class>,
    /// Buffers of which each lane has its own.
    private: FxHashSet<Buf>,
    /// Variables that are set more than once: what is made of them is no stride.
    mutable: FxHashSet<Var>,
    /// Whether a check can fail in some lanes only.
    pub checks: bool,
    /// Whether iterations may be done twice, up to what they add: they write nothing that they read.
    pub repeatable: bool,
    /// What iterations add to, one after another, at their end.
    carried: FxHashSet<Var>,
}

/// What stands in the body of a loop.
#[derive(Default)]
struct Inside {
    declared: FxHashSet<Var>,
    mutable: FxHashSet<Var>,
    taken: FxHashSet<Buf>,
    set: FxHashSet<Var>,
    read: FxHashSet<Var>,
    loaded: FxHashSet<Buf>,
    stored: FxHashSet<Buf>,
}

impl Inside {
    fn expr(&mut self, e: &Expr) {
        match e {
            Expr::Load(b, _) => drop(self.loaded.insert(*b)),
            Expr::Var(v) => drop(self.read.insert(*v)),
            _ => {}
        }
        e.kids().iter().for_each(|k| self.expr(k));
    }

    fn block(&mut self, stmts: &[Stmt]) {
        for s in stmts {
            match s {
                Stmt::Let(v, e) | Stmt::Mut(v, e) => {
                    self.declared.insert(*v);
                    if matches!(s, Stmt::Mut(..)) {
                        self.mutable.insert(*v);
                    }
                    self.expr(e);
                }
                Stmt::Set(v, e) => {
                    self.set.insert(*v);
                    self.expr(e);
                }
                Stmt::Alloc(b, dims) => {
                    self.taken.insert(*b);
                    dims.iter().for_each(|e| self.expr(e));
                }
                Stmt::Store(b, at, e) => {
                    self.stored.insert(*b);
                    self.expr(at);
                    self.expr(e);
                }
                Stmt::Check(ok, _, values) => {
                    self.expr(ok);
                    values.iter().for_each(|e| self.expr(e));
                }
                Stmt::For(l) => {
                    self.declared.insert(l.var);
                    self.expr(&l.extent);
                    self.block(&l.body);
                }
                Stmt::If(c, a, b) => {
                    self.expr(c);
                    self.block(a);
                    self.block(b);
                }
                Stmt::Mark(_) | Stmt::Reset(_) | Stmt::Call(..) => {}
            }
        }
    }
}

/// Whether lanes hold values of a type.
pub fn fits(ty: Scalar) -> bool {
    matches!(ty, Scalar::F64 | Scalar::I64 | Scalar::Bool)
}

/// What a statement adds to a variable, by any operation.
fn added(s: &Stmt) -> Option<(Var, &Expr)> {
    match s {
        Stmt::Set(v, Expr::Op(_, _, args)) => match args.as_slice() {
            [Expr::Var(to), e] if to == v => Some((*v, e)),
            _ => None,
        },
        _ => None,
    }
}

/// What the body of a loop is in lanes; nothing where it cannot run so. Iterations of a loop that is not parallel
/// can, but for its end, where each only adds to what is read nowhere else.
pub fn classify(func: &Func, l: &Loop) -> Option<Lanes> {
    let mut inside = Inside::default();
    let end = if l.parallel { 0 } else { l.body.iter().rev().take_while(|s| added(s).is_some()).count() };
    let (work, end) = l.body.split_at(l.body.len() - end);
    inside.block(work);
    let sums: Vec<(Var, &Expr)> = end.iter().filter_map(added).collect();
    sums.iter().for_each(|(_, e)| inside.expr(e));
    let carried: FxHashSet<Var> = sums.iter().map(|(v, _)| *v).collect();
    let number = |v: &Var| matches!(func.vars[v.0 as usize].ty, Scalar::F64 | Scalar::I64);
    let apart = inside.read.is_disjoint(&carried) && sums.len() == carried.len() && carried.iter().all(number);
    if !inside.set.is_subset(&inside.declared) || !apart {
        return None;
    }
    if !l.parallel && (carried.is_empty() || !inside.stored.is_subset(&inside.taken)) {
        return None;
    }
    let shared = |b: &&Buf| !inside.taken.contains(b);
    let repeatable = !inside.stored.iter().filter(shared).any(|b| inside.loaded.contains(b));
    let mut written = inside.stored.iter().chain(&inside.taken);
    if !written.all(|b| fits(func.bufs[b.0 as usize].ty)) {
        return None;
    }
    let (private, mutable) = (inside.taken, inside.mutable);
    let mut lanes = Lanes { private, mutable, repeatable, carried, ..Lanes::default() };
    lanes.vars.insert(l.var, Class::Affine(Expr::int(1)));
    while lanes.block(func, &l.body, false)? {}
    if lanes.checks && !repeatable { None } else { Some(lanes) }
}

impl Lanes {
    /// Whether each lane has a buffer of its own.
    pub fn is_private(&self, b: Buf) -> bool {
        self.private.contains(&b)
    }

    /// Whether iterations add to a variable one after another.
    pub fn carries(&self, v: Var) -> bool {
        self.carried.contains(&v)
    }

    /// Whether the last iterations may be done again.
    pub fn may_overlap(&self) -> bool {
        self.repeatable && self.carried.is_empty()
    }

    /// The class of an expression.
    pub fn class(&self, e: &Expr) -> Class {
        match e {
            Expr::Lit(_) => Class::Uniform,
            Expr::Var(v) => self.vars.get(v).cloned().unwrap_or(Class::Uniform),
            Expr::Load(b, at) if self.is_private(*b) || self.class(at) != Class::Uniform => Class::Varying,
            Expr::Op(op @ (Op::Add | Op::Sub | Op::Mul), Scalar::I64, args) => self.affine(*op, &args[0], &args[1]),
            _ if e.kids().iter().all(|k| self.is_uniform(k)) => Class::Uniform,
            _ => Class::Varying,
        }
    }

    /// Whether an expression has one value in all lanes.
    pub fn is_uniform(&self, e: &Expr) -> bool {
        self.class(e) == Class::Uniform
    }

    fn affine(&self, op: Op, a: &Expr, b: &Expr) -> Class {
        use Class::{Affine, Uniform, Varying};
        let stride = |op, s: Expr, t: Expr| Expr::folded(op, Scalar::I64, vec![s, t]);
        let out = match (op, self.class(a), self.class(b)) {
            (_, Uniform, Uniform) => return Uniform,
            (Op::Add | Op::Sub, Affine(s), Uniform) | (Op::Add, Uniform, Affine(s)) => s,
            (Op::Sub, Uniform, Affine(s)) => stride(Op::Sub, Expr::int(0), s),
            (Op::Add | Op::Sub, Affine(s), Affine(t)) => stride(op, s, t),
            (Op::Mul, Affine(s), Uniform) => stride(Op::Mul, s, b.clone()),
            (Op::Mul, Uniform, Affine(s)) => stride(Op::Mul, s, a.clone()),
            _ => return Varying,
        };
        if self.steady(&out) && weight(&out) <= MAX_STRIDE { Affine(out) } else { Varying }
    }

    /// Whether an expression has the same value as long as its variables are in scope.
    fn steady(&self, e: &Expr) -> bool {
        match e {
            Expr::Load(..) => false,
            Expr::Var(v) => !self.mutable.contains(v),
            _ => e.kids().iter().all(|k| self.steady(k)),
        }
    }

    fn raise(&mut self, v: Var, to: Class) -> bool {
        let old = self.vars.get(&v).unwrap_or(&Class::Uniform);
        let new = match (old, to) {
            (_, Class::Uniform) | (Class::Varying, _) => return false,
            (Class::Affine(s), Class::Affine(t)) if *s == t => return false,
            (Class::Uniform, to) => to,
            _ => Class::Varying,
        };
        self.vars.insert(v, new);
        true
    }

    /// Raises classes as far as statements demand; says whether any rose. `apart`: lanes run these statements
    /// one after another, because not all of them run all of them.
    fn block(&mut self, func: &Func, stmts: &[Stmt], apart: bool) -> Option<bool> {
        let mut rose = false;
        for s in stmts {
            rose |= self.stmt(func, s, apart)?;
        }
        Some(rose)
    }

    fn stmt(&mut self, func: &Func, s: &Stmt, apart: bool) -> Option<bool> {
        let whole = |class: Class| if class == Class::Uniform && !apart { class } else { Class::Varying };
        let rose = match s {
            Stmt::Let(v, e) => {
                let class = self.class(e);
                self.raise(*v, if apart { Class::Varying } else { class })
            }
            Stmt::Set(v, _) if self.carries(*v) => false,
            Stmt::Mut(v, e) | Stmt::Set(v, e) => {
                let class = whole(self.class(e));
                self.raise(*v, class)
            }
            Stmt::Alloc(_, dims) => return (!apart && dims.iter().all(|n| self.is_uniform(n))).then_some(false),
            Stmt::Store(b, at, _) => return (self.is_private(*b) || !self.is_uniform(at)).then_some(false),
            Stmt::Check(ok, _, values) => {
                let known = values.iter().all(|v| self.class(v) != Class::Varying);
                let varies = apart || !known || !self.is_uniform(ok);
                let before = self.checks;
                self.checks |= varies;
                before != self.checks
            }
            Stmt::For(l) => {
                let class = whole(self.class(&l.extent));
                let apart = class != Class::Uniform;
                let rose = self.raise(l.var, class);
                self.block(func, &l.body, apart)? | rose
            }
            Stmt::If(c, a, b) => {
                let apart = apart || !self.is_uniform(c);
                self.block(func, a, apart)? | self.block(func, b, apart)?
            }
            Stmt::Mark(_) | Stmt::Reset(_) => return (!apart).then_some(false),
            Stmt::Call(..) => return None,
        };
        match s {
            Stmt::Let(v, _) | Stmt::Mut(v, _) if !apart && !self.is_uniform(&Expr::Var(*v)) => {
                fits(func.vars[v.0 as usize].ty).then_some(rose)
            }
            _ => Some(rose),
        }
    }
}

fn weight(e: &Expr) -> usize {
    1 + e.kids().iter().map(weight).sum::<usize>()
}

/// Whether nothing in an expression fails or is out of bounds where its value is not wanted.
pub fn is_safe(e: &Expr) -> bool {
    let whole = matches!(e, Expr::Load(..)) || matches!(e, Expr::Op(Op::Div | Op::Mod, ty, _) if ty.is_int());
    !whole && e.kids().iter().all(is_safe)
}

/// Whether statements can run in all lanes, with the changes kept in some: they only set variables.
pub fn is_masked(stmts: &[Stmt]) -> bool {
    stmts.iter().all(|s| matches!(s, Stmt::Set(_, e) if is_safe(e)))
}

/// Whether an operation is one of vectors.
pub fn is_direct(func: &Func, op: Op, ty: Scalar, args: &[Expr]) -> bool {
    let number = |s: Scalar| matches!(s, Scalar::F64 | Scalar::I64);
    let arg = args.first().map_or(ty, |a| func.ty(a));
    match op {
        Op::Add | Op::Sub | Op::Mul | Op::Neg | Op::Min | Op::Max => number(ty),
        Op::Div | Op::Exp | Op::Log | Op::Tanh => ty == Scalar::F64,
        Op::Lt | Op::Gt | Op::Lte | Op::Gte | Op::Eq | Op::Ne => fits(arg),
        Op::And | Op::Or | Op::Not | Op::ToFloat | Op::BoolToFloat => true,
        Op::Select => fits(ty),
        _ => false,
    }
}

impl Loop {
    /// Whether compilers see at once that iterations may change places.
    pub fn is_flat(&self) -> bool {
        let flat = |s: &Stmt| !matches!(s, Stmt::For(_) | Stmt::Alloc(..) | Stmt::Call(..) | Stmt::If(..));
        self.parallel && !self.takes && self.body.iter().all(flat)
    }
}
