//! A loop in lanes becomes C++ with vectors of the compiler (`__attribute__((vector_size))`), and a plain loop for
//! the iterations that are left. Where there are fewer iterations than lanes, and more than one, they are the first
//! lanes of one vector.
//!
//! What differs from lane to lane is a vector; what does not, or only grows from lane to lane, stays a number, that
//! of lane 0. Statements that not all lanes run are done lane by lane.

use super::cpp::{Writer, cpp_ty};
use crate::ir::{Op, Scalar};
use crate::nest::lanes::{Class, LANES, Lanes, classify, fits, is_direct, is_masked, is_safe};
use crate::nest::{Expr, Loop, Stmt, Var};
use rustc_hash::FxHashSet;
use std::fmt::Write;

/// Writes a loop in lanes; says whether that can be done.
pub(super) fn write(w: &Writer<'_>, out: &mut String, l: &Loop, depth: usize) -> bool {
    let Some(lanes) = classify(w.f, l) else { return false };
    let pad = "  ".repeat(depth);
    let (v, n) = (w.names.var(l.var), w.expr(&l.extent));
    // A split loop may stand twice: where it stands makes the name its own.
    let one_by_one = format!("plain_{v}_{}", out.len());
    let reset = if l.takes { format!("arena.top = mark_{v};") } else { String::new() };
    let _ = writeln!(out, "{pad}{{\n{pad}  int64_t {v} = 0;");
    if l.takes {
        let _ = writeln!(out, "{pad}  char* const mark_{v} = arena.top;");
    }
    if lanes.may_overlap() {
        // The last vector overlaps the one before: it writes the same again.
        let _ = writeln!(out, "{pad}  for (; {v} < {n}; {v} += {LANES}) {{");
        let _ = writeln!(out, "{pad}    if ({v} + {LANES} > {n}) {{\n{pad}      if ({n} < {LANES}) break;");
        let _ = writeln!(out, "{pad}      {v} = {n} - {LANES};\n{pad}    }}");
    } else {
        let _ = writeln!(out, "{pad}  for (; {v} + {LANES} <= {n}; {v} += {LANES}) {{");
    }
    let label = one_by_one.clone();
    let mut writer = LaneWriter { w, lanes, one_by_one: label, own: FxHashSet::default(), jumps: false, few: false };
    writer.block(out, &l.body, depth + 2);
    let _ = writeln!(out, "{pad}    {reset}\n{pad}  }}");
    if writer.may_be_few(l) {
        writer.few = true;
        writer.own.clear();
        let _ = writeln!(out, "{pad}  if ({n} < {LANES} && {n} > 1) {{\n{pad}    const int64_t live = {n};");
        writer.block(out, &l.body, depth + 2);
        let _ = writeln!(out, "{pad}    {v} = live;\n{pad}    {reset}\n{pad}  }}");
    }
    if writer.jumps {
        let _ = writeln!(out, "{pad}{one_by_one}:\n{pad}  {reset};");
    }
    let _ = writeln!(out, "{pad}  for (; {v} < {n}; ++{v}) {{");
    w.block(out, &l.body, depth + 2);
    let _ = writeln!(out, "{pad}    {reset}\n{pad}  }}\n{pad}}}");
    true
}

struct LaneWriter<'w, 'a> {
    w: &'w Writer<'a>,
    lanes: Lanes,
    /// Where the plain loop starts.
    one_by_one: String,
    /// Variables of statements that run lane by lane: plain numbers.
    own: FxHashSet<Var>,
    /// Whether anything goes to the plain loop.
    jumps: bool,
    /// Whether only the first `live` lanes have iterations.
    few: bool,
}

/// Bodies of more statements are not written once more for few iterations.
const MAX_FEW: usize = 60;

fn count(stmts: &[Stmt]) -> usize {
    let inner = |s: &Stmt| match s {
        Stmt::For(l) => count(&l.body),
        Stmt::If(_, a, b) => count(a) + count(b),
        _ => 0,
    };
    stmts.iter().map(|s| 1 + inner(s)).sum()
}

fn vector_ty(s: Scalar) -> &'static str {
    if s == Scalar::F64 { "ks::Floats" } else { "ks::Ints" }
}

impl LaneWriter<'_, '_> {
    fn block(&mut self, out: &mut String, stmts: &[Stmt], depth: usize) {
        for s in stmts {
            self.stmt(out, s, depth);
        }
    }

    /// Whether a loop can have more than one iteration, but not one for every lane, and is worth the text.
    fn may_be_few(&self, l: &Loop) -> bool {
        l.extent.as_int().is_none() && count(&l.body) <= MAX_FEW
    }

    /// The last argument of what works on the lanes that have iterations.
    fn live(&self) -> &'static str {
        if self.few { ", live" } else { "" }
    }

    /// The loop over the lanes that have iterations.
    fn for_lanes(&self) -> String {
        if self.few {
            "for (int lane = 0; lane < live; ++lane) {".to_string()
        } else {
            format!("for (int lane = 0; lane < {LANES}; ++lane) {{")
        }
    }

    fn varies(&self, v: Var) -> bool {
        self.lanes.class(&Expr::Var(v)) == Class::Varying
    }

    /// A statement for all lanes at once.
    fn stmt(&mut self, out: &mut String, s: &Stmt, depth: usize) {
        let w = self.w;
        let pad = "  ".repeat(depth);
        let ty = |v: &Var| vector_ty(w.f.vars[v.0 as usize].ty);
        let _ = match s {
            Stmt::Let(v, e) if self.varies(*v) => {
                writeln!(out, "{pad}const {} {} = {};", ty(v), w.names.var(*v), self.vector(e))
            }
            Stmt::Mut(v, e) if self.varies(*v) => {
                writeln!(out, "{pad}{} {} = {};", ty(v), w.names.var(*v), self.vector(e))
            }
            Stmt::Set(v, Expr::Op(op, ty, args)) if self.lanes.carries(*v) => {
                self.add(out, *v, (*op, *ty, args), depth);
                Ok(())
            }
            Stmt::Set(v, e) if self.varies(*v) => writeln!(out, "{pad}{} = {};", w.names.var(*v), self.vector(e)),
            Stmt::Alloc(b, dims) => {
                let ty = vector_ty(w.f.bufs[b.0 as usize].ty);
                writeln!(out, "{pad}{}", w.taken(ty, *b, dims, depth))
            }
            Stmt::Store(b, at, e) => {
                let (name, value) = (w.names.buf(*b), self.vector(e));
                match self.lanes.class(at) {
                    Class::Uniform => writeln!(out, "{pad}{name}[{}] = {value};", w.expr(at)),
                    Class::Affine(s) if s == Expr::int(1) && !self.lanes.is_private(*b) => {
                        writeln!(out, "{pad}ks::put({name} + {}, {value}{});", w.expr(at), self.live())
                    }
                    _ => writeln!(out, "{pad}ks::scatter({name}, {}, {value}{});", self.vector(at), self.live()),
                }
            }
            Stmt::Check(ok, _, values) => {
                let known = values.iter().all(|v| self.lanes.class(v) != Class::Varying);
                if known && self.lanes.is_uniform(ok) {
                    w.stmt(out, s, depth);
                    return;
                }
                self.jumps = true;
                writeln!(out, "{pad}if (!{}) goto {};", self.every(ok), self.one_by_one)
            }
            Stmt::For(l) if self.lanes.is_uniform(&l.extent) => {
                self.for_loop(out, l, depth);
                Ok(())
            }
            Stmt::If(c, a, b) if self.lanes.is_uniform(c) => {
                let _ = writeln!(out, "{pad}if ({}) {{", w.expr(c));
                self.block(out, a, depth + 1);
                let _ = writeln!(out, "{pad}}} else {{");
                self.block(out, b, depth + 1);
                writeln!(out, "{pad}}}")
            }
            Stmt::If(c, a, b) if is_masked(a) && is_masked(b) => {
                let _ = writeln!(out, "{pad}{{\n{pad}  const ks::Ints lane = {};", self.vector(c));
                for (sign, arm) in [("lane", a), ("~lane", b)] {
                    for s in arm {
                        let Stmt::Set(v, e) = s else { continue };
                        let name = w.names.var(*v);
                        let _ = writeln!(out, "{pad}  {name} = {sign} ? {} : {name};", self.vector(e));
                    }
                }
                writeln!(out, "{pad}}}")
            }
            Stmt::For(_) | Stmt::If(..) => {
                let _ = writeln!(out, "{pad}{}", self.for_lanes());
                self.alone(out, s, depth + 1);
                writeln!(out, "{pad}}}")
            }
            Stmt::Let(..) | Stmt::Mut(..) | Stmt::Set(..) | Stmt::Mark(_) | Stmt::Reset(_) | Stmt::Call(..) => {
                w.stmt(out, s, depth);
                Ok(())
            }
        };
    }

    /// Each lane adds to a variable, in the order of the iterations.
    fn add(&mut self, out: &mut String, v: Var, (op, ty, args): (Op, Scalar, &[Expr]), depth: usize) {
        let (pad, name) = ("  ".repeat(depth), self.w.names.var(v));
        let (vector, each) = (vector_ty(self.w.f.ty(&args[1])), self.vector(&args[1]));
        let sum = self.w.op(op, ty, args, vec![name.to_string(), "step[lane]".to_string()]);
        let _ = writeln!(out, "{pad}{{\n{pad}  const {vector} step = {each};");
        let _ = writeln!(out, "{pad}  {} {name} = {sum}; }}\n{pad}}}", self.for_lanes());
    }

    fn for_loop(&mut self, out: &mut String, l: &Loop, depth: usize) {
        let pad = "  ".repeat(depth);
        let (v, n) = (self.w.names.var(l.var), self.w.expr(&l.extent));
        let _ = writeln!(out, "{pad}for (int64_t {v} = 0; {v} < {n}; ++{v}) {{");
        if l.takes {
            let _ = writeln!(out, "{pad}  char* const mark_{v} = arena.top;");
        }
        self.block(out, &l.body, depth + 1);
        if l.takes {
            let _ = writeln!(out, "{pad}  arena.top = mark_{v};");
        }
        let _ = writeln!(out, "{pad}}}");
    }

    /// A statement for the lane `lane`.
    fn alone(&mut self, out: &mut String, s: &Stmt, depth: usize) {
        let w = self.w;
        let pad = "  ".repeat(depth);
        let ty = |v: &Var| cpp_ty(w.f.vars[v.0 as usize].ty);
        let _ = match s {
            Stmt::Let(v, e) | Stmt::Mut(v, e) => {
                let text = self.number(e);
                self.own.insert(*v);
                writeln!(out, "{pad}{} {} = {text};", ty(v), w.names.var(*v))
            }
            Stmt::Set(v, e) => {
                let (name, value) = (w.names.var(*v), self.number(e));
                if self.own.contains(v) {
                    writeln!(out, "{pad}{name} = {value};")
                } else if w.f.vars[v.0 as usize].ty == Scalar::Bool {
                    writeln!(out, "{pad}{name}[lane] = -(int64_t){value};")
                } else {
                    writeln!(out, "{pad}{name}[lane] = {value};")
                }
            }
            Stmt::Store(b, at, e) => {
                let (name, at, value) = (w.names.buf(*b), self.number(at), self.number(e));
                match (self.lanes.is_private(*b), w.f.bufs[b.0 as usize].ty) {
                    (true, Scalar::Bool) => writeln!(out, "{pad}{name}[{at}][lane] = -(int64_t){value};"),
                    (true, _) => writeln!(out, "{pad}{name}[{at}][lane] = {value};"),
                    (false, _) => writeln!(out, "{pad}{name}[{at}] = {value};"),
                }
            }
            Stmt::Check(ok, ..) => {
                self.jumps = true;
                writeln!(out, "{pad}if (!{}) goto {};", self.number(ok), self.one_by_one)
            }
            Stmt::For(l) => {
                let (v, n) = (w.names.var(l.var), self.number(&l.extent));
                self.own.insert(l.var);
                let _ = writeln!(out, "{pad}for (int64_t {v} = 0; {v} < {n}; ++{v}) {{");
                l.body.iter().for_each(|s| self.alone(out, s, depth + 1));
                writeln!(out, "{pad}}}")
            }
            Stmt::If(c, a, b) => {
                let _ = writeln!(out, "{pad}if ({}) {{", self.number(c));
                a.iter().for_each(|s| self.alone(out, s, depth + 1));
                let _ = writeln!(out, "{pad}}} else {{");
                b.iter().for_each(|s| self.alone(out, s, depth + 1));
                writeln!(out, "{pad}}}")
            }
            // Classification lets none of these stand here.
            Stmt::Alloc(..) | Stmt::Mark(_) | Stmt::Reset(_) | Stmt::Call(..) => Ok(()),
        };
    }

    /// The value of the lane `lane`.
    fn number(&self, e: &Expr) -> String {
        let w = self.w;
        w.expr_with(e, &|e| match e {
            Expr::Var(v) if self.own.contains(v) => None,
            Expr::Var(v) => match self.lanes.class(e) {
                Class::Uniform => None,
                Class::Affine(s) => Some(format!("({} + lane * {})", w.names.var(*v), w.expr(&s))),
                Class::Varying if w.f.ty(e) == Scalar::Bool => Some(format!("({}[lane] != 0)", w.names.var(*v))),
                Class::Varying => Some(format!("{}[lane]", w.names.var(*v))),
            },
            Expr::Load(b, at) if self.lanes.is_private(*b) => {
                let text = format!("{}[{}][lane]", w.names.buf(*b), self.number(at));
                Some(if w.f.ty(e) == Scalar::Bool { format!("({text} != 0)") } else { text })
            }
            _ => None,
        })
    }

    /// The values of all lanes, computed lane by lane.
    fn each(&self, e: &Expr) -> String {
        let value = self.number(e);
        let value = if self.w.f.ty(e) == Scalar::Bool { format!("-(int64_t){value}") } else { value };
        format!("ks::each<{}>([&](int lane) {{ return {value}; }}{})", vector_ty(self.w.f.ty(e)), self.live())
    }

    /// Whether a condition holds in all lanes. What grows from lane to lane is least in the first and greatest in the
    /// last.
    fn every(&self, e: &Expr) -> String {
        let w = self.w;
        if self.lanes.is_uniform(e) {
            return w.expr(e);
        }
        let Expr::Op(op, _, args) = e else { return self.every_of(e) };
        let step = args.first().map_or(Class::Varying, |a| self.lanes.class(a));
        match (op, step) {
            (Op::And, _) => format!("({} && {})", self.every(&args[0]), self.every(&args[1])),
            (Op::Gt | Op::Gte | Op::Lt | Op::Lte, Class::Affine(s))
                if s.as_int().is_some_and(|s| (0..1 << 20).contains(&s)) && self.lanes.is_uniform(&args[1]) =>
            {
                let (step, first) = (s.as_int().unwrap_or(0), w.expr(&args[0]));
                let worst = match op {
                    Op::Lt | Op::Lte if self.few => format!("({first} + {step}L * (live - 1L))"),
                    Op::Lt | Op::Lte => {
                        let end = Expr::int(step * (LANES as i64 - 1));
                        w.expr(&Expr::folded(Op::Add, Scalar::I64, vec![args[0].clone(), end]))
                    }
                    _ => first,
                };
                w.op(*op, Scalar::Bool, args, vec![worst, w.expr(&args[1])])
            }
            _ => self.every_of(e),
        }
    }

    fn every_of(&self, e: &Expr) -> String {
        format!("ks::every({}{})", self.vector(e), self.live())
    }

    /// An operation that is done lane by lane on arguments that are vectors.
    fn call(&self, op: Op, ty: Scalar, args: &[Expr]) -> String {
        let (mut named, mut text) = (String::new(), vec![]);
        for (k, a) in args.iter().enumerate() {
            let _ = write!(named, "{}a{k} = {}", if k == 0 { "" } else { ", " }, self.vector(a));
            let value = format!("a{k}[lane]");
            text.push(if self.w.f.ty(a) == Scalar::Bool { format!("({value} != 0)") } else { value });
        }
        let value = self.w.op(op, ty, args, text);
        let value = if ty == Scalar::Bool { format!("-(int64_t){value}") } else { value };
        format!("ks::each<{}>([{named}](int lane) {{ return {value}; }}{})", vector_ty(ty), self.live())
    }

    /// The values of all lanes.
    fn vector(&self, e: &Expr) -> String {
        let w = self.w;
        match self.lanes.class(e) {
            Class::Uniform => return format!("ks::all(({}){})", cpp_ty(w.f.ty(e)), w.expr(e)),
            Class::Affine(s) => return format!("ks::ramp({}, {})", w.expr(e), w.expr(&s)),
            Class::Varying => {}
        }
        match e {
            Expr::Var(v) => w.names.var(*v).to_string(),
            Expr::Load(b, at) => self.load(e, *b, at),
            Expr::Op(op, ty, args) if is_direct(w.f, *op, *ty, args) => {
                let text: Vec<String> = args.iter().map(|a| self.vector(a)).collect();
                direct(*op, &text)
            }
            Expr::Cond(p) if is_safe(&p[1]) && is_safe(&p[2]) => {
                let [c, a, b] = [0, 1, 2].map(|k| self.vector(&p[k]));
                format!("({c} ? {a} : {b})")
            }
            Expr::Op(op, ty, args) if args.iter().all(|a| fits(w.f.ty(a))) => self.call(*op, *ty, args),
            Expr::Op(..) | Expr::Cast(..) | Expr::Cond(_) | Expr::Lit(_) => self.each(e),
        }
    }

    fn load(&self, e: &Expr, b: crate::nest::Buf, at: &Expr) -> String {
        let (w, name, live) = (self.w, self.w.names.buf(b), self.live());
        let plain = matches!(w.f.ty(e), Scalar::F64 | Scalar::I64);
        match self.lanes.class(at) {
            Class::Uniform if self.lanes.is_private(b) => format!("{name}[{}]", w.expr(at)),
            _ if self.lanes.is_private(b) || !plain => self.each(e),
            Class::Affine(s) if s == Expr::int(1) => format!("ks::get({name} + {}{live})", w.expr(at)),
            Class::Affine(s) => format!("ks::gather({name} + {}, {}{live})", w.expr(at), w.expr(&s)),
            Class::Uniform | Class::Varying => format!("ks::gather({name}, {}{live})", self.vector(at)),
        }
    }
}

/// An operation on vectors.
fn direct(op: Op, args: &[String]) -> String {
    let two = |sign: &str| format!("({} {sign} {})", args[0], args[1]);
    match op {
        Op::Add => two("+"),
        Op::Sub => two("-"),
        Op::Mul => two("*"),
        Op::Div => two("/"),
        Op::Lt => two("<"),
        Op::Gt => two(">"),
        Op::Lte => two("<="),
        Op::Gte => two(">="),
        Op::Eq => two("=="),
        Op::Ne => two("!="),
        Op::And => two("&"),
        Op::Or => two("|"),
        Op::Neg => format!("(-{})", args[0]),
        Op::Not => format!("(~{})", args[0]),
        Op::Min => format!("({0} < {1} ? {0} : {1})", args[0], args[1]),
        Op::Max => format!("({0} > {1} ? {0} : {1})", args[0], args[1]),
        Op::Select => format!("({} ? {} : {})", args[0], args[1], args[2]),
        Op::Exp | Op::Log | Op::Tanh => format!("ks::{}({})", op.row().name, args[0]),
        Op::BoolToFloat => format!("({} ? ks::all(1.0) : ks::all(0.0))", args[0]),
        _ => format!("__builtin_convertvector({}, ks::Floats)", args[0]),
    }
}
