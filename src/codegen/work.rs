//! How much one iteration of a parallel loop does: a C++ expression of sizes, so that the running program decides whether
//! threads are worth their start.
//!
//! It counts operations, those of a vector as one, times how often loops run. Numbers of iterations that only the loop itself
//! knows are guessed: an outer loop is half-way through, and a loop that does what others left runs once. Nothing but speed
//! depends on it.

use crate::ir::Scalar;
use crate::ir::op::Class;
use crate::nest::{Expr, Func, Loop, Stmt, Var};
use rustc_hash::FxHashMap;

/// How often loops run of which nothing is known.
const TRIPS: f64 = 16.0;
/// Numbers of iterations of more nodes are guessed, too.
const MAX_NODES: usize = 64;

/// What a statement does: so many operations, and more that depend on sizes.
#[derive(Default)]
struct Work {
    fixed: f64,
    more: Vec<String>,
}

impl Work {
    fn of(fixed: f64) -> Work {
        Work { fixed, more: vec![] }
    }

    fn add(mut self, other: Work) -> Work {
        self.fixed += other.fixed;
        self.more.extend(other.more);
        self
    }

    fn text(&self) -> String {
        let all: Vec<String> = std::iter::once(format!("{:?}", self.fixed)).chain(self.more.iter().cloned()).collect();
        all.join(" + ")
    }
}

/// How often a loop runs.
enum Trips {
    Number(f64),
    Text(String),
}

struct Estimate<'a> {
    func: &'a Func,
    text: &'a dyn Fn(&Expr) -> String,
    /// What stands for the variables of the iteration, where that is known outside of it.
    known: FxHashMap<Var, Option<Expr>>,
}

/// The operations of one iteration of a loop, as an expression of what is known before it; `text` writes expressions.
pub(super) fn work(func: &Func, l: &Loop, text: &dyn Fn(&Expr) -> String) -> String {
    let mut e = Estimate { func, text, known: FxHashMap::default() };
    e.index(l);
    e.block(&l.body).text()
}

impl Estimate<'_> {
    fn block(&mut self, stmts: &[Stmt]) -> Work {
        stmts.iter().fold(Work::default(), |sum, s| sum.add(self.stmt(s)))
    }

    fn stmt(&mut self, s: &Stmt) -> Work {
        match s {
            Stmt::For(l) => self.repeated(l),
            Stmt::If(c, a, b) => self.branch(c, a, b),
            Stmt::Let(v, e) => {
                let known = self.outside(e);
                self.known.insert(*v, known);
                Work::of(self.expr(e))
            }
            Stmt::Mut(v, e) => {
                self.known.insert(*v, None);
                Work::of(self.expr(e))
            }
            Stmt::Set(_, e) => Work::of(self.expr(e)),
            Stmt::Store(_, at, e) | Stmt::MaskedStore(_, at, e, _) => Work::of(self.access(at) + self.expr(e)),
            Stmt::Check(ok, ..) => Work::of(1.0 + self.expr(ok)),
            Stmt::Call(..) | Stmt::Print(..) => Work::of(100.0),
            Stmt::Alloc(..) => Work::of(4.0),
            Stmt::Point(_, _, at) => Work::of(self.expr(at)),
            Stmt::SetLane(..) | Stmt::StoreLane(..) | Stmt::Leave(..) | Stmt::Mark(_) | Stmt::Reset(_) => Work::of(1.0),
        }
    }

    fn repeated(&mut self, l: &Loop) -> Work {
        let trips = self.trips(l);
        self.index(l);
        let each = self.block(&l.body).add(Work::of(1.0));
        match trips {
            Trips::Number(n) if each.more.is_empty() => Work::of(n * each.fixed),
            Trips::Number(n) => Work { fixed: 0.0, more: vec![format!("{n:?} * ({})", each.text())] },
            Trips::Text(n) => Work { fixed: 0.0, more: vec![format!("{n} * ({})", each.text())] },
        }
    }

    fn trips(&self, l: &Loop) -> Trips {
        let Some(from) = l.from.as_int() else { return Trips::Number(1.0) };
        match self.outside(&l.to) {
            Some(to) => match to.as_int() {
                Some(to) => Trips::Number(to.saturating_sub(from).max(0) as f64),
                None => Trips::Text(format!("ks::trips({from}, {})", (self.text)(&to))),
            },
            None => Trips::Number(TRIPS),
        }
    }

    /// The index of a loop: it is half-way through.
    fn index(&mut self, l: &Loop) {
        let half = |to: Expr| Expr::index_op(crate::ir::Op::Div, to, Expr::int(2));
        let known = self.outside(&l.to).map(half);
        self.known.insert(l.var, known);
    }

    fn branch(&mut self, c: &Expr, a: &[Stmt], b: &[Stmt]) -> Work {
        let asked = Work::of(1.0 + self.expr(c));
        let (a, b) = (self.block(a), self.block(b));
        if a.more.is_empty() && b.more.is_empty() {
            return asked.add(Work::of(a.fixed.max(b.fixed)));
        }
        let (a, b) = (a.text(), b.text());
        let one = match self.outside(c) {
            Some(c) => format!("({} ? {a} : {b})", (self.text)(&c)),
            None => format!("ks::most({a}, {b})"),
        };
        asked.add(Work { fixed: 0.0, more: vec![one] })
    }

    /// A number as it is known before the iteration, where it is, and where nothing can go wrong in computing it.
    fn outside(&self, e: &Expr) -> Option<Expr> {
        let mut out = e.clone();
        let mut known = self.func.lanes(e) == 1;
        out.map(&mut |e| match e {
            Expr::Var(v) => match self.known.get(v) {
                Some(Some(e_known)) => *e = e_known.clone(),
                Some(None) => known = false,
                None => {}
            },
            Expr::Op(op, _, args) => known &= !op.divides() || args[1].as_int().is_some_and(|n| n > 0),
            Expr::Lit(_) | Expr::Cond(_) => {}
            _ => known = false,
        });
        (known && out.weight() <= MAX_NODES).then_some(out)
    }

    /// The operations of an expression; arithmetic of indices comes with the access.
    fn expr(&self, e: &Expr) -> f64 {
        let kids = |each: &[Expr]| each.iter().map(|k| self.expr(k)).sum::<f64>();
        match e {
            Expr::Lit(_) | Expr::Var(_) | Expr::Ramp(..) => 0.0,
            Expr::Load(_, at) => self.access(at),
            Expr::MaskedLoad(_, parts) => 1.0 + self.access(&parts[0]),
            Expr::Op(op, ty, args) => kids(args) + cost(op.row().class, op.divides(), *ty),
            Expr::PerLane(_, n, parts) => f64::from(*n) * (1.0 + self.expr(&parts[1])),
            Expr::Broadcast(e, _) => self.expr(e),
            _ => 1.0 + kids(e.kids()),
        }
    }

    /// A read or write: one, or one for each lane that lies elsewhere.
    fn access(&self, at: &Expr) -> f64 {
        let lanes = self.func.lanes(at);
        match at {
            _ if lanes == 1 => 1.0,
            Expr::Ramp(parts, _) if parts[1].as_int() == Some(1) => 1.0,
            _ => f64::from(lanes),
        }
    }
}

/// The time of an operation on numbers or vectors, in additions.
fn cost(class: Class, divides: bool, ty: Scalar) -> f64 {
    match class {
        _ if divides => 6.0,
        Class::Cheap | Class::Multiply if ty == Scalar::I64 => 0.25,
        Class::Cheap | Class::Multiply => 1.0,
        Class::Divide => 6.0,
        Class::Transcendental => 20.0,
    }
}
