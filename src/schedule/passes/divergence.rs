//! Divergence: what differs between iterations of a loop that run at once, one in each lane of vectors.
//!
//! A value is uniform, an integer that grows from lane to lane, or divergent. A loop can run so where its iterations
//! are independent, or independent but for their end, where each only adds to what no iteration reads: those
//! additions are made one after another. Every lane does what its iteration does, so results have the same bits.
//! Where a check fails in one lane only, the iterations are done again one after another, which finds the failure
//! that comes first.

use crate::ir::op::Lanes;
use crate::ir::{Op, Scalar};
use crate::nest::stretch::Stretch;
use crate::nest::{Buf, Expr, Func, Loop, Stmt, Var, walk};
use rustc_hash::{FxHashMap, FxHashSet};

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
    Divergent,
}

/// What is known of the body of a loop whose iterations run at once.
#[derive(Clone, Debug, Default)]
pub struct Divergence {
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
    /// Indices that grow by one every few lanes.
    stretched: FxHashMap<Var, Stretch>,
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
        e.visit(&mut |e| match e {
            Expr::Load(b, _) | Expr::MaskedLoad(b, _) => drop(self.loaded.insert(*b)),
            Expr::Var(v) => drop(self.read.insert(*v)),
            _ => {}
        });
    }

    fn block(&mut self, stmts: &[Stmt]) {
        walk::visit(stmts, &mut |s| {
            match s {
                Stmt::Let(v, _) => drop(self.declared.insert(*v)),
                Stmt::Mut(v, _) => {
                    self.declared.insert(*v);
                    self.mutable.insert(*v);
                }
                Stmt::Set(v, _) => drop(self.set.insert(*v)),
                Stmt::Alloc(b, _) => drop(self.taken.insert(*b)),
                Stmt::Store(b, ..) => drop(self.stored.insert(*b)),
                Stmt::For(l) => drop(self.declared.insert(l.var)),
                _ => {}
            }
            s.exprs().into_iter().for_each(|e| self.expr(e));
        });
    }
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

/// What is known of the body of a loop; nothing where its iterations cannot run at once.
pub fn analyse(func: &Func, l: &Loop) -> Option<Divergence> {
    let mut inside = Inside::default();
    let end = if l.independent { 0 } else { l.body.iter().rev().take_while(|s| added(s).is_some()).count() };
    let (work, end) = l.body.split_at(l.body.len() - end);
    inside.block(work);
    let sums: Vec<(Var, &Expr)> = end.iter().filter_map(added).collect();
    sums.iter().for_each(|(_, e)| inside.expr(e));
    let carried: FxHashSet<Var> = sums.iter().map(|(v, _)| *v).collect();
    let number = |v: &Var| func.var(*v).ty != Scalar::Bool;
    let separate = inside.read.is_disjoint(&carried) && sums.len() == carried.len() && carried.iter().all(number);
    if !inside.set.is_subset(&inside.declared) || !separate {
        return None;
    }
    if !l.independent && (carried.is_empty() || !inside.stored.is_subset(&inside.taken)) {
        return None;
    }
    let shared = |b: &&Buf| !inside.taken.contains(b);
    let repeatable = !inside.stored.iter().filter(shared).any(|b| inside.loaded.contains(b));
    let (private, mutable) = (inside.taken, inside.mutable);
    let mut known = Divergence { private, mutable, repeatable, carried, ..Divergence::default() };
    known.vars.insert(l.var, Class::Affine(Expr::int(1)));
    while known.block(&l.body, false)? {}
    if known.checks && !repeatable { None } else { Some(known) }
}

impl Divergence {
    /// Whether each lane has a buffer of its own.
    pub fn is_private(&self, b: Buf) -> bool {
        self.private.contains(&b)
    }

    /// How an index stretches over the lanes, if it is known to do so.
    pub(super) fn stretched(&self, v: Var) -> Option<&Stretch> {
        self.stretched.get(&v)
    }

    /// Whether iterations add to a variable one after another.
    pub fn carries(&self, v: Var) -> bool {
        self.carried.contains(&v)
    }

    /// Whether the last iterations may be done again.
    pub fn may_overlap(&self) -> bool {
        self.repeatable && self.carried.is_empty()
    }

    /// Whether iterations neither check anything nor add to anything outside of them.
    pub fn is_plain(&self) -> bool {
        !self.checks && self.carried.is_empty()
    }

    /// The class of an expression.
    pub fn class(&self, e: &Expr) -> Class {
        match e {
            Expr::Lit(_) => Class::Uniform,
            Expr::Var(v) => self.vars.get(v).cloned().unwrap_or(Class::Uniform),
            Expr::Load(b, at) if self.is_private(*b) || self.class(at) != Class::Uniform => Class::Divergent,
            Expr::Op(op @ (Op::Add | Op::Sub | Op::Mul), Scalar::I64, args) => self.affine(*op, &args[0], &args[1]),
            _ if e.kids().iter().all(|k| self.is_uniform(k)) => Class::Uniform,
            _ => Class::Divergent,
        }
    }

    /// Whether an expression has one value in all lanes.
    pub fn is_uniform(&self, e: &Expr) -> bool {
        self.class(e) == Class::Uniform
    }

    fn affine(&self, op: Op, a: &Expr, b: &Expr) -> Class {
        use Class::{Affine, Divergent, Uniform};
        let stride = |op, s: Expr, t: Expr| Expr::folded(op, Scalar::I64, vec![s, t]);
        let out = match (op, self.class(a), self.class(b)) {
            (_, Uniform, Uniform) => return Uniform,
            (Op::Add | Op::Sub, Affine(s), Uniform) | (Op::Add, Uniform, Affine(s)) => s,
            (Op::Sub, Uniform, Affine(s)) => stride(Op::Sub, Expr::int(0), s),
            (Op::Add | Op::Sub, Affine(s), Affine(t)) => stride(op, s, t),
            (Op::Mul, Affine(s), Uniform) => stride(Op::Mul, s, b.clone()),
            (Op::Mul, Uniform, Affine(s)) => stride(Op::Mul, s, a.clone()),
            _ => return Divergent,
        };
        if self.steady(&out) && out.weight() <= MAX_STRIDE { Affine(out) } else { Divergent }
    }

    /// Whether an expression has the same value as long as its variables are in scope.
    pub(super) fn steady(&self, e: &Expr) -> bool {
        match e {
            Expr::Load(..) => false,
            Expr::Var(v) => !self.mutable.contains(v),
            _ => e.kids().iter().all(|k| self.steady(k)),
        }
    }

    fn raise(&mut self, v: Var, to: Class) -> bool {
        let old = self.vars.get(&v).unwrap_or(&Class::Uniform);
        let new = match (old, to) {
            (_, Class::Uniform) | (Class::Divergent, _) => return false,
            (Class::Affine(s), Class::Affine(t)) if *s == t => return false,
            (Class::Uniform, to) => to,
            _ => Class::Divergent,
        };
        self.vars.insert(v, new);
        true
    }

    /// Raises classes as far as statements demand; says whether any rose. `apart`: lanes run these statements
    /// one after another, because not all of them run all of them.
    fn block(&mut self, stmts: &[Stmt], apart: bool) -> Option<bool> {
        let mut rose = false;
        for s in stmts {
            rose |= self.stmt(s, apart)?;
        }
        Some(rose)
    }

    fn stmt(&mut self, s: &Stmt, apart: bool) -> Option<bool> {
        let whole = |class: Class| if class == Class::Uniform && !apart { class } else { Class::Divergent };
        Some(match s {
            Stmt::Let(v, e) => {
                // What cannot fail has its value in the lanes that do not ask for it, too.
                let class = if apart && !is_safe(e) { Class::Divergent } else { self.class(e) };
                match self.stretch(e).filter(|_| class == Class::Divergent && !apart) {
                    Some(of) => drop(self.stretched.insert(*v, of)),
                    None => drop(self.stretched.remove(v)),
                }
                self.raise(*v, class)
            }
            Stmt::Set(v, _) if self.carries(*v) => false,
            Stmt::Mut(v, e) | Stmt::Set(v, e) => {
                let class = whole(self.class(e));
                self.raise(*v, class)
            }
            Stmt::Alloc(_, dims) => return (!apart && dims.iter().all(|n| self.is_uniform(n))).then_some(false),
            Stmt::Store(b, at, _) => return (self.is_private(*b) || !self.is_uniform(at)).then_some(false),
            Stmt::Check(ok, _, values) => {
                let known = values.iter().all(|v| self.class(v) != Class::Divergent);
                let varies = apart || !known || !self.is_uniform(ok);
                let before = self.checks;
                self.checks |= varies;
                before != self.checks
            }
            Stmt::For(l) => {
                let class = match l.extent() {
                    Some(n) => whole(self.class(n)),
                    None => return None,
                };
                let apart = class != Class::Uniform;
                let rose = self.raise(l.var, class);
                self.block(&l.body, apart)? | rose
            }
            Stmt::If(c, a, b) => {
                let apart = apart || !self.is_uniform(c);
                self.block(a, apart)? | self.block(b, apart)?
            }
            Stmt::Mark(_) | Stmt::Reset(_) => return (!apart).then_some(false),
            // These are in the body of a loop only after vectors are made of it, or of one in it.
            Stmt::SetLane(..) | Stmt::MaskedStore(..) | Stmt::StoreLane(..) | Stmt::Leave(..) => return None,
            Stmt::Call(..) | Stmt::Print(..) | Stmt::Point(..) => return None,
        })
    }
}

/// Whether nothing in an expression fails or is out of bounds where its value is not wanted.
pub fn is_safe(e: &Expr) -> bool {
    let fails = |e: &Expr| match e {
        Expr::Load(..) => true,
        Expr::Op(op, ty, args) => op.divides() && ty.is_int() && !is_by_literal(args),
        _ => false,
    };
    !fails(e) && e.kids().iter().all(is_safe)
}

/// Whether a division of integers is by a literal above 0, which never fails.
fn is_by_literal(args: &[Expr]) -> bool {
    args[1].as_int().is_some_and(|n| n > 0)
}

/// Whether an operation is one instruction, or a sequence of them, on vectors.
pub fn is_direct(op: Op, ty: Scalar, args: &[Expr]) -> bool {
    match op {
        // Multiplications, where those have the upper halves of products, or shifts.
        Op::Div | Op::Mod if ty.is_int() => {
            is_by_literal(args) && (ty.bits() <= 32 || args[1].as_int().is_some_and(|n| n & (n - 1) == 0))
        }
        Op::Div => ty.is_float(),
        Op::Pow => ty == Scalar::F64,
        _ => op.row().lanes != Lanes::No,
    }
}

/// Whether a conversion is one of vectors: all but those to truth values.
pub fn is_direct_cast(to: Scalar) -> bool {
    to != Scalar::Bool
}

/// Whether statements can run in all lanes, with the changes kept in some.
pub fn are_masked(known: &Divergence, stmts: &[Stmt]) -> bool {
    stmts.iter().all(|s| match s {
        Stmt::Let(_, e) | Stmt::Mut(_, e) | Stmt::Set(_, e) => is_masked(known, e),
        Stmt::If(c, a, b) => is_masked(known, c) && are_masked(known, a) && are_masked(known, b),
        _ => false,
    })
}

/// Whether an expression can be evaluated in all lanes, where memory is read in some.
pub fn is_masked(known: &Divergence, e: &Expr) -> bool {
    let direct = match e {
        Expr::Load(b, _) => !known.is_private(*b),
        // What is one number is computed once, and by what computes numbers.
        Expr::Op(op, ty, args) if known.class(e) == Class::Divergent => is_direct(*op, *ty, args),
        Expr::Cast(to, a) if known.class(e) == Class::Divergent => is_direct_cast(*to),
        Expr::Op(op, ty, args) => !op.divides() || !ty.is_int() || is_direct(*op, *ty, args),
        Expr::Lit(_) | Expr::Var(_) | Expr::Cast(..) | Expr::Cond(_) => true,
        _ => false,
    };
    direct && e.kids().iter().all(|k| is_masked(known, k))
}
