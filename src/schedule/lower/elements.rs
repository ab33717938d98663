//! Bodies become expressions, with variables for what is used more than once.
//!
//! What stands in an arm of a condition is computed in that arm: it may read what is only there when the arm is taken.

use super::{Boxed, FAILED, Lower, Storage};
use crate::ir::{Op, Scalar};
use crate::nest::{Expr, Stmt};
use crate::stage::{Body, Node, Source};
use rustc_hash::FxHashMap;

/// Expressions of more nodes get a variable.
const MAX_EXPR: usize = 16;

impl Lower<'_> {
    /// The values of some bodies at the indices of the loops around.
    pub(super) fn element(&mut self, each: &[Body]) -> Vec<Expr> {
        self.checked(&[], each)
    }

    /// Checks that come first, and the values of some bodies.
    pub(super) fn checked(&mut self, checks: &[Body], each: &[Body]) -> Vec<Expr> {
        let outer = std::mem::replace(&mut self.known, vec![FxHashMap::default()]);
        let uses = self.uses(checks.iter().chain(each).copied());
        for c in checks {
            let ok = self.expr(*c, &uses);
            self.push(Stmt::Check(ok, FAILED, vec![]));
        }
        let out = each.iter().map(|b| self.root(*b, &uses)).collect();
        self.known = outer;
        out
    }

    /// The value of a body that is used once needs no variable of its own, however large it is: what is added to a sum is seen
    /// in one statement.
    fn root(&mut self, b: Body, uses: &FxHashMap<Body, usize>) -> Expr {
        match uses.get(&b) {
            Some(1) if !self.known.iter().any(|k| k.contains_key(&b)) => crate::ir::deep(|| self.made(b, uses)),
            _ => self.expr(b, uses),
        }
    }

    /// How often each body is named, by others and from outside.
    fn uses(&self, roots: impl Iterator<Item = Body> + Clone) -> FxHashMap<Body, usize> {
        let mut out = FxHashMap::default();
        for b in self.g.bodies.reachable(roots.clone()) {
            for k in self.g.bodies.node(b).kids() {
                *out.entry(*k).or_insert(0) += 1;
            }
        }
        for b in roots {
            *out.entry(b).or_insert(0) += 1;
        }
        out
    }

    fn expr(&mut self, b: Body, uses: &FxHashMap<Body, usize>) -> Expr {
        if let Some(e) = self.known.iter().rev().find_map(|k| k.get(&b)) {
            return e.clone();
        }
        let e = crate::ir::deep(|| self.made(b, uses));
        let often = uses.get(&b).copied().unwrap_or(0) > 1;
        if e.is_atom() || !(often || e.weight() > MAX_EXPR) {
            return e;
        }
        let name = self.g.bodies.named(b).unwrap_or("v").to_string();
        let v = self.f.fresh(name, self.g.bodies.ty(b));
        self.push(Stmt::Let(v, e));
        if let Some(known) = self.known.last_mut() {
            known.insert(b, Expr::Var(v));
        }
        Expr::Var(v)
    }

    fn made(&mut self, b: Body, uses: &FxHashMap<Body, usize>) -> Expr {
        match self.g.bodies.node(b).clone() {
            Node::Lit(l) => Expr::Lit(l),
            Node::Symbol(s) => Expr::Var(self.symbols[&s.0]),
            Node::Index(d) => match self.index.get(&d) {
                Some(e) => e.clone(),
                None => {
                    self.missing = Some(self.g.dim(d).name.clone());
                    Expr::int(0)
                }
            },
            Node::Acc(k, _) => self.accs[k as usize].clone(),
            Node::Load(from, _, at) => self.load(from, &at, uses),
            Node::Op(op, ty, args) => {
                let args: Vec<Expr> = args.iter().map(|a| self.expr(*a, uses)).collect();
                if ty == Scalar::I64 { Expr::folded(op, ty, args) } else { Expr::Op(op, ty, args) }
            }
            Node::Cast(to, b) => Expr::Cast(to, Box::new(self.expr(b, uses))),
            Node::If(parts) => self.cond(b, parts, uses),
        }
    }

    fn load(&mut self, from: Source, at: &[Body], uses: &FxHashMap<Body, usize>) -> Expr {
        match from {
            Source::Input(k) => {
                let sizes = self.g.inputs[k as usize].sizes.clone();
                let at = self.offset(at, &sizes);
                Expr::Load(self.inputs[&k], Box::new(self.expr(at, uses)))
            }
            Source::Stage(s, k) => match self.stored.get(&s).cloned() {
                Some(Storage::Vars(vars)) => Expr::Var(vars[k as usize]),
                Some(Storage::Bufs(of)) => {
                    let at = self.place(at, &of);
                    Expr::Load(of.bufs[k as usize], Box::new(self.expr(at, uses)))
                }
                None => {
                    self.missing = Some(self.g.stage(s).name.clone());
                    Expr::Lit(zero(self.g.stage(s).tys[k as usize]))
                }
            },
        }
    }

    /// Indices counted from the start of a box.
    pub(super) fn inside(&mut self, at: &[Body], least: &[Body]) -> Vec<Body> {
        at.iter().zip(least).map(|(i, l)| self.ints(Op::Sub, *i, *l)).collect()
    }

    /// The position of indices in the memory of a box.
    pub(super) fn place(&mut self, at: &[Body], of: &Boxed) -> Body {
        let (mut at, mut room) = (self.inside(at, &of.least), of.room.clone());
        if let Some(k) = of.ring {
            at[k] = self.ints(Op::Mod, at[k], room[k]);
        }
        if !of.layout.is_empty() {
            at = of.layout.iter().map(|k| at[*k]).collect();
            room = of.layout.iter().map(|k| room[*k]).collect();
        }
        self.offset(&at, &room)
    }

    /// The row-major position of indices.
    pub(super) fn offset(&mut self, at: &[Body], sizes: &[Body]) -> Body {
        let mut out = self.g.bodies.int(0);
        let mut stride = self.g.bodies.int(1);
        for (i, n) in at.iter().zip(sizes).rev() {
            let step = self.ints(Op::Mul, *i, stride);
            out = self.ints(Op::Add, out, step);
            stride = self.ints(Op::Mul, stride, *n);
        }
        out
    }

    fn cond(&mut self, b: Body, [c, x, y]: [Body; 3], uses: &FxHashMap<Body, usize>) -> Expr {
        let c = self.expr(c, uses);
        let mut arms = vec![];
        for arm in [x, y] {
            self.blocks.push(super::Block::default());
            self.known.push(FxHashMap::default());
            let e = self.expr(arm, uses);
            self.known.pop();
            arms.push((self.blocks.pop().unwrap_or_default().stmts, e));
        }
        if let [(s, x), (t, y)] = arms.as_slice()
            && s.is_empty()
            && t.is_empty()
        {
            return Expr::Cond(Box::new([c, x.clone(), y.clone()]));
        }
        let ty = self.g.bodies.ty(b);
        let v = self.f.fresh(self.g.bodies.named(b).unwrap_or("chosen").to_string(), ty);
        self.push(Stmt::Mut(v, Expr::Lit(zero(ty))));
        let mut blocks = arms.into_iter().map(|(mut s, e)| {
            s.push(Stmt::Set(v, e));
            s
        });
        let (a, b) = (blocks.next().unwrap_or_default(), blocks.next().unwrap_or_default());
        self.push(Stmt::If(c, a, b));
        Expr::Var(v)
    }
}

/// The first value of a variable that is set before it is read.
pub(super) fn zero(ty: Scalar) -> crate::ir::Lit {
    crate::ir::Lit::zero(ty)
}
