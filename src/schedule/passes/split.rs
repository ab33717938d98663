//! Loops that ask in every iteration which one it is become several that need not ask.
//!
//! A loop over `i` whose body is `if i < m` becomes one below `m` and one from there on. A loop over `i < m * n` that
//! asks for `i / n` and `i mod n` becomes two, one in the other. The order of iterations stays.

use crate::ir::{Lit, Op, Scalar};
use crate::nest::{Expr, Func, Info, Loop, Slot, Stmt, Var, walk};
use rustc_hash::{FxHashMap, FxHashSet};

/// Definitions are looked through up to so many nodes.
const MAX_NODES: usize = 64;
/// A product of sizes below this does not wrap.
const NO_WRAP: f64 = 4e18;

/// Splits all loops of a function where that helps.
pub fn split(func: &mut Func) {
    let mut body = std::mem::take(&mut func.body);
    let sizes = func.params.iter().filter_map(|p| if let Slot::Size(v) = p { Some(*v) } else { None }).collect();
    Split { vars: &mut func.vars, defs: FxHashMap::default(), sizes, mutable: FxHashSet::default() }.block(&mut body);
    func.body = body;
}

struct Split<'a> {
    vars: &'a mut Vec<Info>,
    /// Integer constants in scope, by their values.
    defs: FxHashMap<Var, Expr>,
    /// Variables that are not negative.
    sizes: FxHashSet<Var>,
    /// Variables that change: what is made of them is not looked through.
    mutable: FxHashSet<Var>,
}

fn op(op: Op, a: Expr, b: Expr) -> Expr {
    Expr::folded(op, Scalar::I64, vec![a, b])
}

impl Split<'_> {
    fn fresh(&mut self, name: &str) -> Var {
        self.vars.push(Info::scalar(name, Scalar::I64));
        Var(self.vars.len() as u32 - 1)
    }

    fn block(&mut self, stmts: &mut Vec<Stmt>) {
        let mut out = Vec::with_capacity(stmts.len());
        for mut s in stmts.drain(..) {
            match &mut s {
                Stmt::Let(v, e) => {
                    let fixed = !e.loads() && !e.uses(&|w| self.mutable.contains(&w));
                    if self.vars[v.0 as usize].ty == Scalar::I64 && fixed {
                        self.defs.insert(*v, e.clone());
                    }
                }
                Stmt::Mut(v, _) => drop(self.mutable.insert(*v)),
                Stmt::If(_, a, b) => {
                    self.block(a);
                    self.block(b);
                }
                Stmt::For(l) => {
                    if let Some((cond, nested)) = self.nested(l) {
                        let Stmt::For(plain) = s else { continue };
                        let mut nested = vec![nested];
                        self.block(&mut nested);
                        let mut plain = vec![Stmt::For(plain)];
                        self.inner(&mut plain);
                        out.push(Stmt::If(cond, nested, plain));
                        continue;
                    }
                    self.block(&mut l.body);
                    if let Some(both) = self.halves(l) {
                        out.extend(both);
                        continue;
                    }
                }
                _ => {}
            }
            out.push(s);
        }
        *stmts = out;
    }

    /// Splits what is in loops, but not the loops themselves.
    fn inner(&mut self, stmts: &mut [Stmt]) {
        for s in stmts {
            if let Stmt::For(l) = s {
                self.block(&mut l.body);
            }
        }
    }

    /// An iteration that asks whether it comes before another: one loop for each answer.
    fn halves(&mut self, l: &Loop) -> Option<Vec<Stmt>> {
        let (extent, (last, before)) = (l.extent()?, l.body.split_last()?);
        let Stmt::If(Expr::Op(order, _, args), yes, no) = last else { return None };
        let mut declared: FxHashSet<Var> = FxHashSet::from_iter([l.var]);
        for s in before {
            let Stmt::Let(v, e) = s else { return None };
            if e.loads() {
                return None;
            }
            declared.insert(*v);
        }
        let [Expr::Var(v), bound] = args.as_slice() else { return None };
        if *v != l.var || bound.loads() || bound.uses(&|v| declared.contains(&v)) || !steady(bound, &l.body) {
            return None;
        }
        let (first, second, end) = match order {
            Op::Lt => (yes, no, bound.clone()),
            Op::Gte => (no, yes, bound.clone()),
            _ => return None,
        };
        // No iterations where the bound is below 0, all of them where it is beyond the last.
        let low = self.fresh("low");
        let end_at = Expr::Op(Op::Max, Scalar::I64, vec![Expr::Var(low), Expr::int(0)]);
        let mut out = vec![Stmt::Let(low, Expr::Op(Op::Min, Scalar::I64, vec![end, extent.clone()]))];
        let middle = self.fresh("middle");
        out.push(Stmt::Let(middle, end_at));
        let body = |first: &[Stmt], own: Vec<Stmt>| [own, before.to_vec(), first.to_vec()].concat();
        let part = |var, extent, body| Stmt::For(Box::new(l.with(var, extent, body)));
        if !first.is_empty() {
            out.push(part(l.var, Expr::Var(middle), body(first, vec![])));
        }
        if second.is_empty() {
            return Some(out);
        }
        let from = self.fresh("from");
        let own = vec![Stmt::Let(l.var, op(Op::Add, Expr::Var(from), Expr::Var(middle)))];
        out.push(part(from, op(Op::Sub, extent.clone(), Expr::Var(middle)), body(second, own)));
        Some(out)
    }

    /// A loop over a product that asks for quotient and remainder: two loops, and when they are the same.
    fn nested(&mut self, l: &Loop) -> Option<(Expr, Stmt)> {
        let by = divisors(l).into_iter().map(|e| (self.factors(&e), e)).min_by_key(|(f, _)| f.len())?;
        let (small, by) = by;
        let (guard, extent) = self.product(l.extent()?);
        let outer = without(&self.factors(&extent), &small)?;
        let all = outer.iter().chain(&small);
        if all.clone().any(|e| !self.is_size(e)) {
            return None;
        }
        let (q, r) = (self.fresh("q"), self.fresh("r"));
        let mut body = l.body.clone();
        let ask = Ask { split: self, var: l.var, small: &small, q, r };
        body.iter_mut().for_each(|s| s.map_exprs(&mut |e| ask.expr(e)));
        let var = op(Op::Add, op(Op::Mul, Expr::Var(q), by.clone()), Expr::Var(r));
        body.insert(0, Stmt::Let(l.var, var));
        names(&mut body, q);
        let count = outer.iter().cloned().fold(Expr::int(1), |a, b| op(Op::Mul, a, b));
        let count = match guard {
            Some(c) => Expr::Cond(Box::new([c, count, Expr::int(0)])),
            None => count,
        };
        let part = |var, extent, body, takes| Stmt::For(Box::new(Loop { takes, ..l.with(var, extent, body) }));
        let inner = part(r, by, body, l.takes);
        let float = |e: &Expr| Expr::Op(Op::ToFloat, Scalar::F64, vec![e.clone()]);
        let whole = all.map(float).reduce(|a, b| Expr::Op(Op::Mul, Scalar::F64, vec![a, b]))?;
        let cond = Expr::Op(Op::Lt, Scalar::Bool, vec![whole, Expr::Lit(Lit::float(NO_WRAP))]);
        Some((cond, part(q, count, vec![inner], false)))
    }

    /// What an expression is made of, where its parts are constants in scope.
    fn expand(&self, e: &Expr, fuel: &mut usize) -> Expr {
        if *fuel == 0 {
            return e.clone();
        }
        *fuel -= 1;
        match e {
            Expr::Var(v) => match self.defs.get(v) {
                Some(d) => self.expand(d, fuel),
                None => e.clone(),
            },
            Expr::Op(op, ty, args) => Expr::Op(*op, *ty, args.iter().map(|a| self.expand(a, fuel)).collect()),
            _ => e.clone(),
        }
    }

    /// The factors of a product.
    fn factors(&self, e: &Expr) -> Vec<Expr> {
        let mut out = vec![];
        let mut todo = vec![self.expand(e, &mut MAX_NODES.clone())];
        while let Some(e) = todo.pop() {
            match e {
                Expr::Op(Op::Mul, Scalar::I64, args) => todo.extend(args),
                other => out.push(other),
            }
        }
        out
    }

    /// An extent that is 0 unless conditions hold.
    fn product(&self, e: &Expr) -> (Option<Expr>, Expr) {
        let (mut guard, mut rest) = (None, self.expand(e, &mut MAX_NODES.clone()));
        loop {
            match rest {
                Expr::Cond(parts) if parts[2] == Expr::int(0) && !parts[0].loads() => {
                    let [c, product, _] = *parts;
                    guard = Some(match guard {
                        Some(g) => Expr::Op(Op::And, Scalar::Bool, vec![g, c]),
                        None => c,
                    });
                    rest = self.expand(&product, &mut MAX_NODES.clone());
                }
                other => return (guard, other),
            }
        }
    }

    fn is_size(&self, e: &Expr) -> bool {
        match e {
            Expr::Lit(l) => l.as_int().is_some_and(|n| n >= 0),
            Expr::Var(v) => self.sizes.contains(v) || self.defs.get(v).is_some_and(|d| self.is_size(d)),
            Expr::Cond(parts) => self.is_size(&parts[1]) && self.is_size(&parts[2]),
            _ => false,
        }
    }
}

/// Replaces quotients and remainders of a loop's variable.
struct Ask<'a, 'b> {
    split: &'a Split<'b>,
    var: Var,
    small: &'a [Expr],
    q: Var,
    r: Var,
}

impl Ask<'_, '_> {
    fn expr(&self, e: &mut Expr) {
        let Expr::Op(what @ (Op::Div | Op::Mod), Scalar::I64, args) = e else { return };
        if args[0] != Expr::Var(self.var) {
            return;
        }
        let by = self.split.factors(&args[1]);
        let Some(rest) = without(&by, self.small) else { return };
        if rest.is_empty() {
            *e = Expr::Var(if *what == Op::Div { self.q } else { self.r });
        } else if *what == Op::Div {
            let rest = rest.into_iter().reduce(|a, b| op(Op::Mul, a, b)).unwrap_or(Expr::int(1));
            *e = Expr::Op(Op::Div, Scalar::I64, vec![Expr::Var(self.q), rest]);
        }
    }
}

/// Some factors without others, where all of those are among them.
fn without(all: &[Expr], some: &[Expr]) -> Option<Vec<Expr>> {
    let mut out = all.to_vec();
    for e in some {
        let at = out.iter().position(|o| o == e)?;
        out.remove(at);
    }
    Some(out)
}

/// Puts a variable in the place of the constants that only name it.
fn names(body: &mut Vec<Stmt>, q: Var) {
    let named: FxHashSet<Var> = body
        .iter()
        .filter_map(|s| if let Stmt::Let(v, Expr::Var(w)) = s { (*w == q).then_some(*v) } else { None })
        .collect();
    body.iter_mut().for_each(|s| {
        s.map_exprs(&mut |e| {
            if matches!(e, Expr::Var(v) if named.contains(v)) {
                *e = Expr::Var(q);
            }
        });
    });
    for s in body {
        if let Stmt::If(_, a, b) = s {
            names(a, q);
            names(b, q);
        }
    }
}

/// What the variable of a loop is divided by.
fn divisors(l: &Loop) -> Vec<Expr> {
    let mut out: Vec<Expr> = vec![];
    let mut look = |e: &Expr| {
        if let Expr::Op(Op::Div | Op::Mod, Scalar::I64, args) = e
            && args[0] == Expr::Var(l.var)
            && !args[1].loads()
            && steady(&args[1], &l.body)
            && !out.contains(&args[1])
        {
            out.push(args[1].clone());
        }
    };
    walk::visit(&l.body, &mut |s| s.exprs().into_iter().for_each(|e| e.visit(&mut look)));
    out
}

/// Whether a loop's body neither declares nor sets what an expression is made of.
fn steady(e: &Expr, body: &[Stmt]) -> bool {
    let mut steady = true;
    walk::visit(body, &mut |s| {
        let other = |v: &Var| !e.uses(&|w| w == *v);
        steady &= match s {
            Stmt::Let(v, _) | Stmt::Mut(v, _) | Stmt::Set(v, _) | Stmt::SetLane(v, ..) | Stmt::Print(_, _, v) => {
                other(v)
            }
            Stmt::For(l) => other(&l.var),
            Stmt::Call(_, _, slots) => slots.iter().all(|s| match s {
                Slot::Scalar(v) | Slot::Size(v) => other(v),
                Slot::Data(_) => true,
            }),
            _ => true,
        };
    });
    steady
}
