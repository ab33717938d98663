//! Nests as text for people.

use super::{Arg, Expr, Func, LoopKind, Nest, Slot, Stmt};
use std::fmt::{self, Display, Formatter, Write};

impl Display for Nest {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for func in &self.funcs {
            writeln!(f, "{func}")?;
        }
        write!(f, "{}", self.entry)
    }
}

impl Display for Func {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "func {}(", self.name)?;
        for (k, slot) in self.params.iter().enumerate() {
            f.write_str(if k == 0 { "" } else { ", " })?;
            match slot {
                Slot::Scalar(v) | Slot::Size(v) => write!(f, "{}", self.var_name(*v))?,
                Slot::Data(b) => write!(f, "{}[]", self.buf_name(*b))?,
            }
        }
        f.write_str(")\n")?;
        self.block(f, &self.body, 1)?;
        write!(f, "  return {}", self.args(&self.results))
    }
}

impl Func {
    fn var_name(&self, v: super::Var) -> String {
        format!("{}.{}", self.vars.get(v.0 as usize).map_or("?", |i| &i.name), v.0)
    }

    fn buf_name(&self, b: super::Buf) -> String {
        format!("{}:{}", self.bufs.get(b.0 as usize).map_or("?", |i| &i.name), b.0)
    }

    pub(super) fn expr(&self, e: &Expr) -> String {
        match e {
            Expr::Lit(l) => l.to_string(),
            Expr::Var(v) => self.var_name(*v),
            Expr::Load(b, at) => format!("{}[{}]", self.buf_name(*b), self.expr(at)),
            Expr::Op(op, _, args) => {
                args.iter().fold(format!("({}", op.name()), |t, a| format!("{t} {}", self.expr(a))) + ")"
            }
            Expr::Cast(s, e) => format!("(cast {} {})", s.name(), self.expr(e)),
            Expr::Cond(p) => format!("(if {} {} {})", self.expr(&p[0]), self.expr(&p[1]), self.expr(&p[2])),
            Expr::MaskedLoad(b, p) => format!("{}[{} where {}]", self.buf_name(*b), self.expr(&p[0]), self.expr(&p[1])),
            Expr::Ramp(p, n) => format!("(ramp {} by {} x{n})", self.expr(&p[0]), self.expr(&p[1])),
            Expr::Broadcast(e, n) => format!("(broadcast {} x{n})", self.expr(e)),
            Expr::PrefixMask(e, n) => format!("(first {} x{n})", self.expr(e)),
            Expr::Extract(p) => format!("(lane {} of {})", self.expr(&p[1]), self.expr(&p[0])),
            Expr::All(e) => format!("(all {})", self.expr(e)),
            Expr::PerLane(v, n, p) => {
                format!("(lanes {} < {} x{n} {})", self.var_name(*v), self.expr(&p[0]), self.expr(&p[1]))
            }
        }
    }

    fn args(&self, args: &[Arg]) -> String {
        let one = |a: &Arg| match a {
            Arg::Scalar(e) | Arg::Size(e) => self.expr(e),
            Arg::Data(b, at) => format!("&{}[{}]", self.buf_name(*b), self.expr(at)),
        };
        args.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    fn block(&self, f: &mut Formatter<'_>, stmts: &[Stmt], depth: usize) -> fmt::Result {
        for s in stmts {
            for _ in 0..depth {
                f.write_str("  ")?;
            }
            self.stmt(f, s, depth)?;
        }
        Ok(())
    }

    fn stmt(&self, f: &mut Formatter<'_>, s: &Stmt, depth: usize) -> fmt::Result {
        match s {
            Stmt::Let(v, e) => writeln!(f, "let {} = {}", self.var_name(*v), self.expr(e)),
            Stmt::Mut(v, e) => writeln!(f, "var {} = {}", self.var_name(*v), self.expr(e)),
            Stmt::Set(v, e) => writeln!(f, "{} = {}", self.var_name(*v), self.expr(e)),
            Stmt::Alloc(b, n) => {
                let n: Vec<String> = n.iter().map(|n| self.expr(n)).collect();
                writeln!(f, "alloc {}[{}]", self.buf_name(*b), n.join(" * "))
            }
            Stmt::Point(b, of, at) => {
                writeln!(f, "point {} at &{}[{}]", self.buf_name(*b), self.buf_name(*of), self.expr(at))
            }
            Stmt::Store(b, at, e) => writeln!(f, "{}[{}] = {}", self.buf_name(*b), self.expr(at), self.expr(e)),
            Stmt::MaskedStore(b, at, e, mask) => {
                let (at, e, mask) = (self.expr(at), self.expr(e), self.expr(mask));
                writeln!(f, "{}[{at}] = {e} where {mask}", self.buf_name(*b))
            }
            Stmt::SetLane(v, lane, e) => {
                writeln!(f, "lane {} of {} = {}", self.expr(lane), self.var_name(*v), self.expr(e))
            }
            Stmt::StoreLane(b, at, lane, e) => {
                let (at, lane, e) = (self.expr(at), self.expr(lane), self.expr(e));
                writeln!(f, "lane {lane} of {}[{at}] = {e}", self.buf_name(*b))
            }
            Stmt::Leave(v, e) => writeln!(f, "leave {} if {}", self.var_name(*v), self.expr(e)),
            Stmt::Check(c, site, _) => writeln!(f, "check {} else #{}", self.expr(c), site.0),
            Stmt::Mark(m) => writeln!(f, "mark {m}"),
            Stmt::Reset(m) => writeln!(f, "reset {m}"),
            Stmt::For(l) => {
                let from = if l.from == Expr::int(0) { String::new() } else { format!("{} <= ", self.expr(&l.from)) };
                let kind = match l.kind {
                    LoopKind::Serial => String::new(),
                    LoopKind::Parallel { overlap: false } => " parallel".to_string(),
                    LoopKind::Parallel { overlap: true } => " parallel, the last two in order".to_string(),
                    LoopKind::Vector(n) => format!(" vector {n}"),
                };
                writeln!(f, "for {from}{} < {}{kind}", self.var_name(l.var), self.expr(&l.to))?;
                self.block(f, &l.body, depth + 1)
            }
            Stmt::If(c, a, b) => {
                writeln!(f, "if {}", self.expr(c))?;
                self.block(f, a, depth + 1)?;
                if !b.is_empty() {
                    writeln!(f, "{}else", "  ".repeat(depth))?;
                    self.block(f, b, depth + 1)?;
                }
                Ok(())
            }
            Stmt::Call(at, args, slots) => {
                let mut into = String::new();
                for s in slots {
                    match s {
                        Slot::Scalar(v) | Slot::Size(v) => write!(into, "{} ", self.var_name(*v))?,
                        Slot::Data(b) => write!(into, "{}[] ", self.buf_name(*b))?,
                    }
                }
                writeln!(f, "let {into}= call {at}({})", self.args(args))
            }
            Stmt::Print(at, args, v) => {
                writeln!(f, "let {} = print #{}({})", self.var_name(*v), at.0, self.args(args))
            }
        }
    }
}
