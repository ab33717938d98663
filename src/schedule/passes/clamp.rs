//! Loops whose indices are clamped, or that ask whether they are at an end, become three: between the ends nothing is clamped
//! or asked, so that vectors can be made of it.
//!
//! Of `for c < n: … x[max(0, c - 1)] …`, where `0` and `n` stay, the iterations from 1 on read `x[c - 1]`, and `if c == 0 …` is
//! not asked there; so of `max(0, c / 2 - 1)` from 2 on. Where the middle begins and ends is found before the loop runs; the order of iterations stays.
//! Innermost loops are looked at, and those with nothing but sums of a known number of terms in them: `if j - m >= 0 …`, where `m`
//! has 5 values, is not asked from 4 on.

use super::asked::{self, Answer};
use crate::ir::{Op, Scalar};
use crate::nest::{Expr, Func, Info, Loop, LoopKind, Stmt, Var, walk};
use rustc_hash::{FxHashMap, FxHashSet};

/// Definitions are looked through up to so many times.
const DEPTH: usize = 12;
/// Loops of fewer iterations, and of larger bodies, stay as they are.
const FEW: i64 = 16;
const LARGE: usize = 2000;
/// What is added to a variable is smaller, or nothing is taken for the middle: sums would wrap.
const SMALL: i64 = 1 << 58;
/// The loop's variable is divided by this at most, and multiplied.
const DIVIDED: i64 = 8;
const MULTIPLE: i64 = 8;
/// So many iterations are an end, in which what is asked is asked again.
const END: i64 = 2;
/// Loops inside have so many iterations at most; around them are so many at least, of which an end is at most this share: what is
/// left of an end is not much less than a vector.
const TERMS: i64 = 32;
const LONG: i64 = 128;
const SHARE: i64 = 8;

/// Cuts all loops of a function where that helps.
pub fn clamp(func: &mut Func) {
    let mut body = std::mem::take(&mut func.body);
    block(&mut body, &mut func.vars);
    func.body = body;
}

fn block(stmts: &mut Vec<Stmt>, vars: &mut Vec<Info>) {
    let mut out = Vec::with_capacity(stmts.len());
    for mut s in stmts.drain(..) {
        if let Stmt::For(l) = &s
            && let Some(parts) = cut(l, vars)
        {
            out.extend(parts);
            continue;
        }
        // What is in a vector stays in one piece.
        if !matches!(&s, Stmt::For(l) if matches!(l.kind, LoopKind::Vector(_))) {
            s.blocks_mut().into_iter().for_each(|b| block(b, vars));
        }
        out.push(s);
    }
    *stmts = out;
}

fn op(op: Op, a: Expr, b: Expr) -> Expr {
    Expr::index_op(op, a, b)
}

fn cut(l: &Loop, vars: &mut Vec<Info>) -> Option<Vec<Stmt>> {
    let n = l.extent().filter(|n| n.as_int().is_none_or(|n| n >= FEW))?.clone();
    let sums = if l.kind == LoopKind::Serial { sums_inside(&l.body)? } else { return None };
    if !sums.is_empty() && n.as_int().is_none_or(|n| n < LONG) {
        return None;
    }
    let known = Known::new(l, sums);
    let (mut from, mut to, mut small, mut sure) = (vec![], vec![], vec![], true);
    let mut look = |e: &Expr| {
        let sides = if let Some((is_least, fixed, of)) = known.clamped(e) {
            if is_least {
                to.push(of.first_above(&fixed))
            } else {
                from.push(of.first_from(&fixed))
            }
            vec![fixed, of.rest, of.after]
        } else if let Some((answer, sides)) = known.asked(e, &n) {
            from.extend(answer.from);
            to.extend(answer.to);
            sides.to_vec()
        } else {
            return;
        };
        for e in sides {
            match e.as_int() {
                Some(n) => sure &= n.unsigned_abs() < SMALL.unsigned_abs(),
                None => small.push(e),
            }
        }
    };
    walk::visit(&l.body, &mut |s| s.exprs().into_iter().for_each(|e| e.visit(&mut look)));
    if from.is_empty() && to.is_empty() || !sure {
        return None;
    }
    let mut fresh = |name: &str| {
        vars.push(Info::scalar(name, Scalar::I64));
        Var(vars.len() as u32 - 1)
    };
    let names = [fresh("low"), fresh("high")];
    let mut first = from.into_iter().fold(Expr::int(0), |a, b| op(Op::Max, a, b));
    small.sort_by_key(|e| format!("{e:?}"));
    small.dedup();
    for e in small {
        let sure = |c: Op, n: i64| Expr::Op(c, Scalar::Bool, vec![e.clone(), Expr::int(n)]);
        let both = Expr::Op(Op::And, Scalar::Bool, vec![sure(Op::Lt, SMALL), sure(Op::Gt, -SMALL)]);
        first = Expr::Cond(Box::new([both, first, n.clone()]));
    }
    let last = to.into_iter().fold(n.clone(), |a, b| op(Op::Min, a, b));
    let mut middle = l.body.clone();
    middle.iter_mut().for_each(|s| s.map_exprs(&mut |e| known.free(e, &n)));
    asked::fold(&mut middle);
    let mut out = vec![];
    let mut bound = |v: Var, at: Expr| match at.as_int() {
        Some(n) => Expr::int(n),
        None => {
            out.push(Stmt::Let(v, at));
            Expr::Var(v)
        }
    };
    let low = bound(names[0], op(Op::Min, first, n.clone()));
    let high = bound(names[1], op(Op::Max, last, low.clone()));
    if low != Expr::int(0) {
        out.push(Stmt::For(Box::new(l.with(l.var, low.clone(), l.body.clone()))));
    }
    for (name, from, to, body) in [("middle", low, high.clone(), middle), ("end", high, n, l.body.clone())] {
        let (var, count) = (fresh(name), op(Op::Sub, to, from.clone()));
        if count != Expr::int(0) {
            let own = vec![Stmt::Let(l.var, op(Op::Add, Expr::Var(var), from))];
            let likely = (name == "middle").then(|| l.to.as_int()).flatten();
            out.push(Stmt::For(Box::new(Loop { likely, ..l.with(var, count, [own, body].concat()) })));
        }
    }
    Some(out)
}

/// The loops in a body, and how many iterations each has, where all are short ones of a known number, and it has nothing that only
/// some passes make, and is not large.
fn sums_inside(body: &[Stmt]) -> Option<FxHashMap<Var, i64>> {
    let (mut plain, mut weight, mut sums) = (true, 0, FxHashMap::default());
    walk::visit(body, &mut |s| {
        plain &= match s {
            Stmt::Let(..) | Stmt::Mut(..) | Stmt::Set(..) | Stmt::Store(..) | Stmt::If(..) | Stmt::Check(..) => true,
            Stmt::For(l) => {
                let n = l.extent().and_then(Expr::as_int).filter(|n| (1..=TERMS).contains(n));
                sums.extend(n.map(|n| (l.var, n)));
                n.is_some() && l.kind == LoopKind::Serial && !l.takes
            }
            _ => false,
        };
        weight += s.exprs().iter().map(|e| e.weight()).sum::<usize>();
    });
    (plain && weight <= LARGE).then_some(sums)
}

/// Whether a variable is read only where it is set: what is added to a sum may be a vector.
fn is_own(body: &[Stmt], v: Var) -> bool {
    let mut own = true;
    walk::visit(body, &mut |s| {
        let sets = matches!(s, Stmt::Set(to, _) if *to == v);
        s.exprs().into_iter().for_each(|e| e.visit(&mut |e| own &= sets || *e != Expr::Var(v)));
    });
    own
}

/// An integer that moves with the loop's variable: a multiple of the variable plus a rest, or the variable plus a rest, divided
/// by a number, plus what comes after.
struct Moving {
    times: i64,
    rest: Expr,
    by: i64,
    after: Expr,
}

impl Moving {
    /// The first of the variable's values from which on it is at least so much.
    fn first_from(&self, least: &Expr) -> Expr {
        let least = op(Op::Sub, least.clone(), self.after.clone());
        if self.by == 1 {
            return self.reaches(op(Op::Sub, least, self.rest.clone()));
        }
        // Below 0 it is rounded towards 0, and not looked at.
        let least = op(Op::Max, op(Op::Mul, least, Expr::int(self.by)), Expr::int(0));
        op(Op::Sub, least, self.rest.clone())
    }

    /// The first of the variable's values from which on its multiple is at least so much.
    fn reaches(&self, least: Expr) -> Expr {
        if self.times == 1 {
            return least;
        }
        // All values are, where that is less than 0.
        let least = op(Op::Max, least, Expr::int(0));
        op(Op::Div, op(Op::Add, least, Expr::int(self.times - 1)), Expr::int(self.times))
    }

    /// The first of the variable's values at which it is greater than so much.
    fn first_above(&self, greatest: &Expr) -> Expr {
        let greatest = op(Op::Sub, greatest.clone(), self.after.clone());
        let next = op(Op::Add, greatest.clone(), Expr::int(1));
        if self.by == 1 {
            return self.reaches(op(Op::Sub, next, self.rest.clone()));
        }
        let first = op(Op::Sub, op(Op::Mul, next, Expr::int(self.by)), self.rest.clone());
        match greatest.as_int() {
            Some(n) if n >= 0 => first,
            Some(_) => Expr::int(0),
            None => {
                let positive = Expr::Op(Op::Gte, Scalar::Bool, vec![greatest, Expr::int(0)]);
                Expr::Cond(Box::new([positive, first, Expr::int(0)]))
            }
        }
    }
}

/// What is known of the variables of a loop.
struct Known {
    var: Var,
    defs: FxHashMap<Var, Expr>,
    /// Variables of loops inside, and how many values each has.
    inside: FxHashMap<Var, i64>,
    /// Those that change in an iteration, or from one to the next.
    changed: FxHashSet<Var>,
    /// Whether some go from one iteration to the next, and others are made of them: no vectors can be made of the loop, so that
    /// questions may stay.
    carried: bool,
}

impl Known {
    fn new(l: &Loop, inside: FxHashMap<Var, i64>) -> Known {
        let (mut defs, mut changed, mut own) = (FxHashMap::default(), FxHashSet::default(), FxHashSet::default());
        walk::visit(&l.body, &mut |s| match s {
            Stmt::Let(v, e) => drop(defs.insert(*v, e.clone())),
            Stmt::Mut(v, _) => drop((changed.insert(*v), own.insert(*v))),
            Stmt::Set(v, _) => drop(changed.insert(*v)),
            _ => {}
        });
        let carried = changed.iter().any(|v| !own.contains(v) && !is_own(&l.body, *v));
        Known { var: l.var, defs, inside, changed, carried }
    }

    /// Whether an expression is the least (or the greatest) of something fixed, and what moves with the loop's variable; both.
    fn clamped(&self, e: &Expr) -> Option<(bool, Expr, Moving)> {
        self.clamped_in(e, DEPTH)
    }

    fn clamped_in(&self, e: &Expr, depth: usize) -> Option<(bool, Expr, Moving)> {
        let Expr::Op(which @ (Op::Min | Op::Max), Scalar::I64, args) = e else { return None };
        let is_least = *which == Op::Min;
        let moves = |k: usize| self.moving(&args[k], depth).map(|of| (k, of));
        let (k, of) = moves(0).or_else(|| moves(1))?;
        Some((is_least, self.bound(&args[1 - k], !is_least, depth)?, of))
    }

    /// How an integer moves with the loop's variable; of what is clamped, as it does in the middle.
    fn moving(&self, e: &Expr, depth: usize) -> Option<Moving> {
        let below = depth.checked_sub(1)?;
        if let Expr::Op(Op::Min | Op::Max, Scalar::I64, _) = e {
            return Some(self.clamped_in(e, below)?.2);
        }
        if let Some((times @ 1..=MULTIPLE, rest)) = self.linear(e, depth) {
            return Some(Moving { times, rest, by: 1, after: Expr::int(0) });
        }
        match e {
            Expr::Var(v) if !self.changed.contains(v) => self.moving(self.defs.get(v)?, below),
            Expr::Op(Op::Div, Scalar::I64, args) => {
                let by = args[1].as_int().filter(|by| (2..=DIVIDED).contains(by))?;
                let (1, rest) = self.linear(&args[0], below)? else { return None };
                Some(Moving { times: 1, rest, by, after: Expr::int(0) })
            }
            Expr::Op(which @ (Op::Add | Op::Sub), Scalar::I64, args) => {
                let (own, fixed) = match self.linear(&args[1], below) {
                    Some((0, fixed)) => (&args[0], fixed),
                    _ if *which == Op::Add => (&args[1], self.linear(&args[0], below).filter(|(c, _)| *c == 0)?.1),
                    _ => return None,
                };
                let of = self.moving(own, below)?;
                Some(Moving { after: op(*which, of.after, fixed), ..of })
            }
            _ => None,
        }
    }

    /// A bound of an integer in all iterations, the greatest or the least: of what is the same in all of them but for
    /// remainders.
    fn bound(&self, e: &Expr, up: bool, depth: usize) -> Option<Expr> {
        let below = depth.checked_sub(1)?;
        if let Some((0, fixed)) = self.linear(e, depth) {
            return Some(fixed);
        }
        match e {
            Expr::Var(v) => self.bound(self.defs.get(v)?, up, below),
            Expr::Op(Op::Add, Scalar::I64, args) => {
                Some(op(Op::Add, self.bound(&args[0], up, below)?, self.bound(&args[1], up, below)?))
            }
            Expr::Op(Op::Mod, Scalar::I64, args) => {
                let n = args[1].as_int().filter(|n| (1..SMALL).contains(n))?;
                Some(Expr::int(if up { n - 1 } else { 1 - n }))
            }
            _ => None,
        }
    }

    /// The answer to a question that an expression asks of the loop's variable, and the two sides without that.
    fn asked(&self, e: &Expr, n: &Expr) -> Option<(Answer, [Expr; 2])> {
        let Expr::Op(which @ (Op::Lt | Op::Lte | Op::Gt | Op::Gte | Op::Eq | Op::Ne), Scalar::Bool, args) = e else {
            return None;
        };
        let [a, b] = args.as_slice() else { return None };
        if self.carried {
            return None;
        }
        let ([a, x], [b, y]) = (self.ends(a, DEPTH)?, self.ends(b, DEPTH)?);
        if [&a, &b] != [&x, &y] && matches!(which, Op::Eq | Op::Ne) {
            return None;
        }
        // The sides for which the answer is hardest to come by.
        let all = (n, self.end(n));
        let holds = asked::answer(*which, a.clone(), b.clone(), all)?.holds;
        let (a, b) = if matches!(which, Op::Lt | Op::Lte) == holds { (x, b) } else { (a, y) };
        let sides = [a.1.clone(), b.1.clone()];
        let answer = asked::answer(*which, a, b, all)?;
        (answer.holds == holds).then_some((answer, sides))
    }

    /// How many of so many iterations are an end: what sums ask in each of their terms takes long.
    fn end(&self, n: &Expr) -> i64 {
        let share = n.as_int().filter(|_| !self.inside.is_empty()).map_or(0, |n| n / SHARE);
        share.clamp(END, TERMS)
    }

    /// The multiple of the loop's variable in an integer, with the least and the greatest rest over all values of loops inside.
    fn ends(&self, e: &Expr, depth: usize) -> Option<[asked::Form; 2]> {
        let below = depth.checked_sub(1)?;
        if let Some(form) = self.linear(e, depth) {
            return Some([form.clone(), form]);
        }
        match e {
            Expr::Var(v) => match self.inside.get(v) {
                Some(n) => Some([(0, Expr::int(0)), (0, Expr::int(n - 1))]),
                None if self.changed.contains(v) => None,
                None => self.ends(self.defs.get(v)?, below),
            },
            Expr::Op(which @ (Op::Add | Op::Sub), Scalar::I64, args) => {
                let ([a, x], [b, y]) = (self.ends(&args[0], below)?, self.ends(&args[1], below)?);
                let both = |(c, a): asked::Form, (d, b): asked::Form| {
                    let all = if *which == Op::Add { c.checked_add(d) } else { c.checked_sub(d) };
                    Some((all?, op(*which, a, b)))
                };
                let (low, high) = if *which == Op::Add { (b, y) } else { (y, b) };
                Some([both(a, low)?, both(x, high)?])
            }
            _ => None,
        }
    }

    /// What an expression is where nothing is clamped, and nothing asked.
    fn free(&self, e: &mut Expr, n: &Expr) {
        if let Some((answer, _)) = self.asked(e, n) {
            *e = Expr::bool(answer.holds);
            return;
        }
        if self.clamped(e).is_some()
            && let Expr::Op(_, _, args) = e
        {
            let moves = args.iter().position(|a| self.moving(a, DEPTH).is_some());
            *e = args[moves.unwrap_or(0)].clone();
        }
    }

    /// The multiple of the loop's variable in an integer, and the rest, which is the same in all iterations; of what is
    /// clamped, as it is in the middle.
    fn linear(&self, e: &Expr, depth: usize) -> Option<(i64, Expr)> {
        let below = depth.checked_sub(1)?;
        match e {
            Expr::Lit(l) if l.as_int().is_some() => Some((0, e.clone())),
            Expr::Var(v) if *v == self.var => Some((1, Expr::int(0))),
            Expr::Var(v) if self.changed.contains(v) || self.inside.contains_key(v) => None,
            Expr::Var(v) => match self.defs.get(v) {
                Some(e) => self.linear(e, below),
                None => Some((0, e.clone())),
            },
            Expr::Op(which, Scalar::I64, args) if args.len() == 2 => {
                if let Some((_, _, Moving { times, rest, by: 1, .. })) = self.clamped_in(e, below) {
                    return Some((times, rest));
                }
                let ((c, a), (d, b)) = (self.linear(&args[0], below)?, self.linear(&args[1], below)?);
                match which {
                    Op::Add => Some((c.checked_add(d)?, op(Op::Add, a, b))),
                    Op::Sub => Some((c.checked_sub(d)?, op(Op::Sub, a, b))),
                    _ if (c, d) == (0, 0) && !which.divides() => Some((0, op(*which, a, b))),
                    Op::Mul => match (a.as_int(), b.as_int()) {
                        (Some(a), _) if c == 0 => Some((d.checked_mul(a)?, op(Op::Mul, Expr::int(a), b))),
                        (_, Some(b)) if d == 0 => Some((c.checked_mul(b)?, op(Op::Mul, a, Expr::int(b)))),
                        _ => None,
                    },
                    _ => None,
                }
            }
            _ => None,
        }
    }
}
