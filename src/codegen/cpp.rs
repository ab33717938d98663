//! A nest becomes a C++17 function that is called with words: scalars, sizes and pointers.
//!
//! Text of scalar operations comes from the table of operations; everything that generated code
//! calls is in `runtime/`. The text keeps the bits of the interpreter under the flags of the
//! toolchain.

use super::names::{Names, identifier};
use super::types::{cpp_ty, lanes_ty};
use super::work::work;
use crate::ir::{Lit, Op, Scalar};
use crate::nest::{Arg, Buf, Expr, Func, Loop, LoopKind, Nest, Slot, Stmt, Var, walk};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::fmt::Write;

/// How deep the statements of a function stand, whose buffers may be its results.
const FUNCTION: usize = 1;
/// Buffers of more elements stay in the arena.
const MAX_LOCAL: i64 = 16;

/// The number of elements, where it is known and small.
fn small(dims: &[Expr]) -> Option<i64> {
    let n = dims.iter().try_fold(1, |n: i64, d| n.checked_mul(d.as_int()?))?;
    (1..=MAX_LOCAL).contains(&n).then_some(n)
}

fn slot_ty(f: &Func, s: Slot) -> Scalar {
    match s {
        Slot::Scalar(v) | Slot::Size(v) => f.vars[v.0 as usize].ty,
        Slot::Data(b) => f.bufs[b.0 as usize].ty,
    }
}

fn callee(f: &Func, at: usize) -> String {
    format!("f{at}_{}", identifier(&f.name))
}

/// The head of a function that calls itself.
pub(super) fn head(f: &Func, at: usize) -> String {
    let w = Names::default();
    let mut parts = vec!["ks::Arena& arena".to_string()];
    let names = Named::new(f, w);
    for p in &f.params {
        parts.push(match p {
            Slot::Scalar(v) | Slot::Size(v) => format!("{} {}", cpp_ty(slot_ty(f, *p)), names.var(*v)),
            Slot::Data(b) => format!("const {}* {}", cpp_ty(slot_ty(f, *p)), names.buf(*b)),
        });
    }
    for (k, r) in f.results.iter().enumerate() {
        let data = if matches!(r, Arg::Data(..)) { "const " } else { "" };
        let star = if data.is_empty() { "" } else { "*" };
        parts.push(format!("{data}{}{star}& out{k}", cpp_ty(f.outs[k])));
    }
    format!("static void {}({})", callee(f, at), parts.join(", "))
}

/// The definition's own function: typed parameters, so that the compiler knows that inputs are never
/// written, and a start that unpacks the words.
pub(super) fn entry(nest: &Nest, timed: Option<&BTreeMap<Var, usize>>) -> String {
    let f = &nest.entry;
    let w = Writer { timed, ..Writer::new(f, nest) };
    let (mut params, mut args) = (vec![], vec![]);
    for (k, p) in f.params.iter().enumerate() {
        let ty = cpp_ty(slot_ty(f, *p));
        match p {
            Slot::Scalar(v) | Slot::Size(v) => {
                params.push(format!("const {ty} {}", w.names.var(*v)));
                args.push(format!("ks::get<{ty}>(in[{k}])"));
            }
            Slot::Data(b) => {
                params.push(format!("const {ty}* __restrict const {}", w.names.buf(*b)));
                args.push(format!("ks::get<const {ty}*>(in[{k}])"));
            }
        }
    }
    params.push("uint64_t* out, ks::Arena& whole".to_string());
    args.push("out, whole".to_string());
    let name = format!("entry_{}", identifier(&f.name));
    let mut text = format!("\nstatic __attribute__((noinline)) void {name}({}) {{\n", params.join(", "));
    text.push_str("  ks::Arena arena = whole;\n");
    text.push_str(&w.function());
    text.push_str("  whole = arena;\n}\n");
    let _ = write!(
        text,
        "\nstatic void start(const uint64_t* in, uint64_t* out, ks::Arena& whole) {{\n  (void)in;\n  {name}({});\n}}\n",
        args.join(", ")
    );
    text
}

/// The identifiers of a function's variables and buffers.
pub(super) struct Named {
    vars: Vec<String>,
    bufs: Vec<String>,
}

impl Named {
    fn new(f: &Func, mut names: Names) -> Named {
        for k in 0..f.results.len() {
            names.give(&format!("out{k}"));
        }
        names.give("whole");
        let bufs = f.bufs.iter().map(|b| names.give(&b.name)).collect();
        let vars = f.vars.iter().map(|v| names.give(&v.name)).collect();
        Named { vars, bufs }
    }

    pub(super) fn var(&self, v: Var) -> &str {
        &self.vars[v.0 as usize]
    }

    pub(super) fn buf(&self, b: Buf) -> &str {
        &self.bufs[b.0 as usize]
    }
}

/// Writes the body of a function.
pub(super) struct Writer<'a> {
    pub(super) f: &'a Func,
    nest: &'a Nest,
    /// The number of the function's first buffer among those of the nest.
    first: usize,
    pub(super) names: Named,
    /// The variables of loops whose iterations take memory.
    taking: FxHashSet<Var>,
    /// The buffers that are local arrays.
    arrays: FxHashSet<Buf>,
    /// The buffers that become names of others.
    pointed: FxHashSet<Buf>,
    /// The loops that are timed, by their variables, each with the number of what its time is.
    timed: Option<&'a BTreeMap<Var, usize>>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(f: &'a Func, nest: &'a Nest) -> Writer<'a> {
        let mut taking = FxHashSet::default();
        walk::visit(&f.body, &mut |s| {
            if let Stmt::For(l) = s
                && l.takes
            {
                taking.insert(l.var);
            }
        });
        let (mut arrays, mut pointed) = (FxHashSet::default(), FxHashSet::default());
        walk::visit(&f.body, &mut |s| {
            if let Stmt::Point(b, ..) = s {
                pointed.insert(*b);
            }
        });
        f.body.iter().flat_map(Stmt::blocks).for_each(|b| {
            walk::visit(b, &mut |s| {
                if let Stmt::Alloc(b, dims) = s
                    && small(dims).is_some()
                {
                    arrays.insert(*b);
                }
            });
        });
        let before = nest.funcs.iter().take_while(|other| !std::ptr::eq(*other, f));
        let first = before.map(|other| other.bufs.len()).sum();
        Writer { f, nest, first, names: Named::new(f, Names::default()), taking, arrays, pointed, timed: None }
    }

    pub(super) fn function(&self) -> String {
        let mut out = String::new();
        if self.f.depth.is_some() {
            out.push_str("  ks::check_stack(arena);\n");
        }
        self.block(&mut out, &self.f.body, FUNCTION);
        for (k, r) in self.f.results.iter().enumerate() {
            let value = match r {
                Arg::Scalar(e) | Arg::Size(e) => self.expr(e),
                Arg::Data(b, at) => self.pointer(*b, at),
            };
            let ty = cpp_ty(self.f.outs[k]);
            let _ = match (self.f.depth.is_some(), r) {
                (true, _) => writeln!(out, "  out{k} = {value};"),
                (false, Arg::Data(..)) => writeln!(out, "  out[{k}] = ks::word<const {ty}*>({value});"),
                (false, _) => writeln!(out, "  out[{k}] = ks::word<{ty}>({value});"),
            };
        }
        out
    }

    pub(super) fn block(&self, out: &mut String, stmts: &[Stmt], depth: usize) {
        for s in stmts {
            self.stmt(out, s, depth);
        }
    }

    pub(super) fn stmt(&self, out: &mut String, s: &Stmt, depth: usize) {
        let pad = "  ".repeat(depth);
        let ty = |v: &Var| lanes_ty(self.f.var(*v).ty, self.f.var(*v).lanes);
        let _ = match s {
            Stmt::Let(v, e) => writeln!(out, "{pad}const {} {} = {};", ty(v), self.names.var(*v), self.expr(e)),
            Stmt::Mut(v, e) => writeln!(out, "{pad}{} {} = {};", ty(v), self.names.var(*v), self.expr(e)),
            Stmt::Set(v, e) => writeln!(out, "{pad}{} = {};", self.names.var(*v), self.expr(e)),
            Stmt::Alloc(b, dims) => {
                let ty = lanes_ty(self.f.buf(*b).ty, self.f.buf(*b).lanes);
                writeln!(out, "{pad}{}", self.taken(&ty, *b, dims, depth))
            }
            Stmt::Point(b, of, at) => writeln!(out, "{pad}{} = {};", self.names.buf(*b), self.pointer(*of, at)),
            Stmt::Store(b, at, e) if self.f.lanes(at) > 1 => {
                writeln!(out, "{pad}{}", self.vector_store(*b, at, e, None))
            }
            Stmt::MaskedStore(b, at, e, mask) => writeln!(out, "{pad}{}", self.vector_store(*b, at, e, Some(mask))),
            Stmt::SetLane(v, lane, e) => {
                let value = self.lane_value(self.f.var(*v).ty, self.expr(e));
                writeln!(out, "{pad}{}[{}] = {value};", self.names.var(*v), self.expr(lane))
            }
            Stmt::StoreLane(b, at, lane, e) => {
                let value = self.lane_value(self.f.buf(*b).ty, self.expr(e));
                writeln!(out, "{pad}{}[{}][{}] = {value};", self.names.buf(*b), self.expr(at), self.expr(lane))
            }
            Stmt::Leave(v, e) if self.taking.contains(v) => {
                let (c, name, label) = (self.expr(e), self.names.var(*v), self.end_label(*v));
                writeln!(out, "{pad}if ({c}) {{\n{pad}  arena.top = mark_{name};\n{pad}  goto {label};\n{pad}}}")
            }
            Stmt::Leave(v, e) => writeln!(out, "{pad}if ({}) goto {};", self.expr(e), self.end_label(*v)),
            Stmt::Store(b, at, e) => {
                writeln!(out, "{pad}{}[{}] = {};", self.names.buf(*b), self.expr(at), self.expr(e))
            }
            Stmt::Check(ok, site, values) => {
                writeln!(out, "{pad}if (!{}) ks::fail({}, {{{}}});", self.expr(ok), site.0, self.list(values))
            }
            Stmt::Mark(m) => writeln!(out, "{pad}char* const mark{m} = arena.top;"),
            Stmt::Reset(m) => writeln!(out, "{pad}arena.top = mark{m};"),
            Stmt::For(l) => {
                self.for_loop(out, l, depth);
                Ok(())
            }
            Stmt::If(c, a, b) => {
                let _ = writeln!(out, "{pad}if ({}) {{", self.expr(c));
                self.block(out, a, depth + 1);
                if !b.is_empty() {
                    let _ = writeln!(out, "{pad}}} else {{");
                    self.block(out, b, depth + 1);
                }
                writeln!(out, "{pad}}}")
            }
            Stmt::Call(at, args, slots) => {
                self.call(out, *at, args, slots, &pad);
                Ok(())
            }
            Stmt::Print(at, args, v) => {
                let words: Vec<String> = args.iter().map(|a| self.word(a)).collect();
                let (name, words) = (self.names.var(*v), words.join(", "));
                writeln!(out, "{pad}const int64_t {name} = ks::print(arena, {}, {{{words}}});", at.0)
            }
        };
    }

    /// Memory for a buffer. What is small, and gone at the end of a block, is a local array: compilers make
    /// variables of it.
    pub(super) fn taken(&self, ty: &str, b: Buf, dims: &[Expr], depth: usize) -> String {
        let name = self.names.buf(b);
        if self.pointed.contains(&b) {
            return format!("const {ty}* {name} = nullptr;");
        }
        match small(dims) {
            Some(n) if depth > FUNCTION => format!("{ty} {name}[{n}];"),
            _ => {
                let (what, sizes) = (self.first + b.0 as usize, self.list(dims));
                format!("{ty}* const {name} = ks::take<{ty}>(arena, {what}, {sizes});")
            }
        }
    }

    fn for_loop(&self, out: &mut String, l: &Loop, depth: usize) {
        let Some(timer) = self.timed.and_then(|of| of.get(&l.var)) else { return self.plain_loop(out, l, depth, None) };
        let pad = "  ".repeat(depth);
        let _ = writeln!(out, "{pad}{{\n{pad}  const ks::Timed timed({timer}, true);");
        self.plain_loop(out, l, depth + 1, Some(*timer));
        let _ = writeln!(out, "{pad}}}");
    }

    /// A loop, whose timer counts on the threads that it runs on.
    fn plain_loop(&self, out: &mut String, l: &Loop, depth: usize, timer: Option<usize>) {
        let (pad, v, from) = ("  ".repeat(depth), self.names.var(l.var), self.expr(&l.from));
        if let LoopKind::Parallel { overlap } = l.kind {
            let inner = has_parallel(&l.body);
            let (to, each) = (self.expr(&l.to), work(self.f, l, &|e| self.expr(e)));
            let _ = writeln!(out, "{pad}ks::parallel<{overlap}, {inner}>(arena, {from}, {to}, {each},");
            let _ = writeln!(
                out,
                "{pad}  [{}](int64_t from_{v}, int64_t to_{v}, ks::Arena& arena) __attribute__((always_inline)) {{",
                self.captures(l)
            );
            if let Some(timer) = timer {
                let _ = writeln!(out, "{pad}  const ks::Timed timed({timer}, false);");
            }
            self.rounds(out, l, [&format!("from_{v}"), &format!("to_{v}")], depth + 1);
            let _ = writeln!(out, "{pad}}});");
            return;
        }
        self.rounds(out, l, [&from, &self.expr(&l.to)], depth);
    }

    /// What the body of a parallel loop has copies of: all but small buffers of the blocks around, which are local arrays.
    fn captures(&self, l: &Loop) -> String {
        let mut used: Vec<Buf> = vec![];
        let mut own: FxHashSet<Buf> = FxHashSet::default();
        walk::visit(&l.body, &mut |s| {
            match s {
                Stmt::Alloc(b, _) => drop(own.insert(*b)),
                Stmt::Store(b, ..) | Stmt::MaskedStore(b, ..) | Stmt::StoreLane(b, ..) => used.push(*b),
                _ => {}
            }
            s.exprs().into_iter().for_each(|e| {
                e.visit(&mut |e| {
                    if let Expr::Load(b, _) | Expr::MaskedLoad(b, _) = e {
                        used.push(*b);
                    }
                });
            });
        });
        used.sort_unstable();
        used.dedup();
        let arrays = used.into_iter().filter(|b| self.arrays.contains(b) && !own.contains(b));
        std::iter::once("=".to_string())
            .chain(arrays.map(|b| format!("&{}", self.names.buf(b))))
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// A loop of one iteration after another.
    fn rounds(&self, out: &mut String, l: &Loop, [from, to]: [&str; 2], depth: usize) {
        let (pad, v) = ("  ".repeat(depth), self.names.var(l.var));
        if l.is_flat() {
            let _ = writeln!(out, "#pragma GCC ivdep");
        }
        let _ = writeln!(out, "{pad}for (int64_t {v} = {from}; {v} < {to}; ++{v}) {{");
        if l.takes {
            let _ = writeln!(out, "{pad}  char* const mark_{v} = arena.top;");
        }
        self.block(out, &l.body, depth + 1);
        if l.takes {
            let _ = writeln!(out, "{pad}  arena.top = mark_{v};");
        }
        let _ = writeln!(out, "{pad}}}");
        if leaves(&l.body, l.var) {
            let _ = writeln!(out, "{pad}{}:;", self.end_label(l.var));
        }
    }

    /// The label after a loop.
    fn end_label(&self, v: Var) -> String {
        format!("end_of_{}", self.names.var(v))
    }

    fn call(&self, out: &mut String, at: usize, args: &[Arg], slots: &[Slot], pad: &str) {
        let mut parts = vec!["arena".to_string()];
        for a in args {
            parts.push(match a {
                Arg::Scalar(e) | Arg::Size(e) => self.expr(e),
                Arg::Data(b, at) => self.pointer(*b, at),
            });
        }
        for s in slots {
            let ty = cpp_ty(slot_ty(self.f, *s));
            let name = match s {
                Slot::Scalar(v) | Slot::Size(v) => {
                    let _ = writeln!(out, "{pad}{ty} {};", self.names.var(*v));
                    self.names.var(*v)
                }
                Slot::Data(b) => {
                    let _ = writeln!(out, "{pad}const {ty}* {};", self.names.buf(*b));
                    self.names.buf(*b)
                }
            };
            parts.push(name.to_string());
        }
        let _ = writeln!(out, "{pad}{}({});", callee(&self.nest.funcs[at], at), parts.join(", "));
    }

    /// A value as it goes to whoever called the function.
    fn word(&self, a: &Arg) -> String {
        match a {
            Arg::Scalar(e) | Arg::Size(e) => format!("ks::word<{}>({})", cpp_ty(self.f.ty(e)), self.expr(e)),
            Arg::Data(b, at) => {
                let ty = cpp_ty(self.f.bufs[b.0 as usize].ty);
                format!("ks::word<const {ty}*>({})", self.pointer(*b, at))
            }
        }
    }

    fn pointer(&self, b: Buf, at: &Expr) -> String {
        match at.as_int() {
            Some(0) => self.names.buf(b).to_string(),
            _ => format!("{} + {}", self.names.buf(b), self.expr(at)),
        }
    }

    pub(super) fn list(&self, each: &[Expr]) -> String {
        each.iter().map(|e| self.expr(e)).collect::<Vec<_>>().join(", ")
    }

    /// Text that stands as an operand of any operator.
    pub(super) fn expr(&self, e: &Expr) -> String {
        if let Some(text) = self.vector(e) {
            return text;
        }
        let part = |e: &Expr| self.expr(e);
        match e {
            Expr::Lit(l) => literal(*l),
            Expr::Var(v) => self.names.var(*v).to_string(),
            Expr::Load(b, at) => format!("{}[{}]", self.names.buf(*b), part(at)),
            Expr::Op(op, ty, args) => match negated(*op, args) {
                Some(of) => self.op(Op::Neg, *ty, vec![part(of)]),
                None => self.op(*op, *ty, args.iter().map(part).collect()),
            },
            Expr::Cast(s, e) => format!("ks::cast<{}>({})", cpp_ty(*s), part(e)),
            Expr::Cond(p) => format!("({} ? {} : {})", part(&p[0]), part(&p[1]), part(&p[2])),
            // These are vectors, or take one apart, which the file beside writes.
            Expr::MaskedLoad(..)
            | Expr::Ramp(..)
            | Expr::Broadcast(..)
            | Expr::PrefixMask(..)
            | Expr::Extract(..)
            | Expr::All(_)
            | Expr::PerLane(..) => String::new(),
        }
    }

    /// An operation on arguments with these texts.
    pub(super) fn op(&self, op: Op, ty: Scalar, text: Vec<String>) -> String {
        // Arithmetic of these types needs no conversion back, and the text stays readable.
        let plain = match op {
            _ if !matches!(ty, Scalar::F64 | Scalar::F32 | Scalar::I64) => None,
            Op::Add => Some("+"),
            Op::Sub => Some("-"),
            Op::Mul => Some("*"),
            Op::Div if ty.is_float() => Some("/"),
            _ => None,
        };
        if let (Some(sign), [a, b]) = (plain, text.as_slice()) {
            return format!("({a} {sign} {b})");
        }
        let template = op.row().cpp;
        let mut out = String::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            out.push_str(before);
            let (key, tail) = after.split_once('}').unwrap_or((after, ""));
            match key {
                "T" => out.push_str(cpp_ty(ty)),
                k => out.push_str(k.parse().ok().and_then(|k: usize| text.get(k)).map_or("", String::as_str)),
            }
            rest = tail;
        }
        out.push_str(rest);
        out
    }
}

/// What an operation with a literal is the negation of: compilers see that, too, and must not do it their way (`ks::neg`).
pub(super) fn negated(op: Op, args: &[Expr]) -> Option<&Expr> {
    let [a, b] = args else { return None };
    let is = |e: &Expr, v: f64| {
        let of = if let Expr::Broadcast(of, _) = e { of } else { e };
        matches!(of, Expr::Lit(l @ (Lit::F64(_) | Lit::F32(_))) if l.as_f64().is_some_and(|w| w.to_bits() == v.to_bits()))
    };
    match op {
        Op::Mul | Op::Div if is(b, -1.0) => Some(a),
        Op::Mul if is(a, -1.0) => Some(b),
        Op::Sub if is(a, -0.0) => Some(b),
        _ => None,
    }
}

/// Whether a parallel loop stands among statements.
fn has_parallel(stmts: &[Stmt]) -> bool {
    let mut found = false;
    walk::visit(stmts, &mut |s| found |= matches!(s, Stmt::For(l) if matches!(l.kind, LoopKind::Parallel { .. })));
    found
}

/// Whether statements leave the loop of a variable.
fn leaves(stmts: &[Stmt], v: Var) -> bool {
    let mut found = false;
    walk::visit(stmts, &mut |s| found |= matches!(s, Stmt::Leave(w, _) if *w == v));
    found
}

fn literal(l: Lit) -> String {
    let signed = |text: String| if text.starts_with('-') { format!("({text})") } else { text };
    match l {
        Lit::F64(b) => match f64::from_bits(b) {
            v if v.is_nan() => "__builtin_nan(\"\")".to_string(),
            v if v.is_infinite() => if v > 0.0 { "__builtin_inf()" } else { "(-__builtin_inf())" }.to_string(),
            v => signed(format!("{v:?}")),
        },
        Lit::F32(b) => match f32::from_bits(b) {
            v if v.is_nan() => "__builtin_nanf(\"\")".to_string(),
            v if v.is_infinite() => if v > 0.0 { "__builtin_inff()" } else { "(-__builtin_inff())" }.to_string(),
            v => signed(format!("{v:?}f")),
        },
        Lit::Int(Scalar::I64, i64::MIN) => "INT64_MIN".to_string(),
        Lit::Int(Scalar::I64, v) => signed(format!("{v}L")),
        Lit::Int(s, v) => format!("({})({v}L)", cpp_ty(s)),
        Lit::Bool(b) => b.to_string(),
        Lit::Str(_) => "0".to_string(),
    }
}
