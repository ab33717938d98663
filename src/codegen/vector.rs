//! Vector expressions and statements become C++ over the vectors of `runtime/vector.hpp`.
//!
//! The forms of access are told apart here: next to each other, with a stride, or anywhere; in all lanes, in the
//! first ones, or where a mask says.

use super::cpp::{Writer, negated};
use super::types::{cpp_ty, lanes_ty};
use crate::ir::op::Lanes;
use crate::ir::{Op, Scalar};
use crate::nest::stretch::{Stretch, parts};
use crate::nest::{Buf, Expr, Var};

/// What masks an access.
enum Where<'e> {
    All,
    First(&'e Expr),
    Mask(&'e Expr),
}

fn masked(mask: Option<&Expr>) -> Where<'_> {
    match mask {
        None => Where::All,
        Some(Expr::PrefixMask(live, _)) => Where::First(live),
        Some(mask) => Where::Mask(mask),
    }
}

/// The first of neighbours that are divided by a number, that number, and the remainder that they are compared with.
fn remainders(args: &[Expr]) -> Option<(&Expr, i64, &Expr)> {
    let [Expr::Op(Op::Mod, Scalar::I64, of), Expr::Broadcast(left, _)] = args else { return None };
    let (first, by) = parts(of)?;
    Some((first, by, left))
}

/// What compares vectors as a sign compares numbers.
fn compared(sign: &str) -> &'static str {
    match sign {
        "<" => "less",
        "<=" => "at_most",
        ">" => "greater",
        ">=" => "at_least",
        "==" => "equal",
        _ => "unequal",
    }
}

impl Writer<'_> {
    fn lanes_of(&self, e: &Expr) -> u32 {
        self.f.lanes(e)
    }

    /// The place of the first lane, and what else an access needs: its kind and further arguments.
    fn access(&self, b: Buf, at: &Expr, mask: Option<&Expr>) -> (&'static str, String) {
        let name = self.names.buf(b);
        let (kind, mut args) = match at {
            Expr::Ramp(p, _) if p[1] == Expr::int(1) => ("near", format!("{name} + {}", self.expr(&p[0]))),
            Expr::Ramp(p, _) => ("strided", format!("{name} + {}, {}", self.expr(&p[0]), self.expr(&p[1]))),
            _ => ("anywhere", format!("{name}, {}", self.expr(at))),
        };
        match masked(mask) {
            Where::All => {}
            Where::First(live) => args += &format!(", ks::First{{{}}}", self.expr(live)),
            Where::Mask(mask) => args += &format!(", {}", self.expr(mask)),
        }
        (kind, args)
    }

    /// The elements at a vector of indices.
    pub(super) fn vector_load(&self, b: Buf, at: &Expr, mask: Option<&Expr>) -> String {
        if let (Some((base, first, by)), None) = (Stretch::of_index(at), mask) {
            let (name, [base, first]) = (self.names.buf(b), [base, first].map(|e| self.expr(e)));
            return format!("ks::load_stretched<{}, {by}>({name} + {base}, {first})", self.lanes_of(at));
        }
        let (kind, args) = self.access(b, at, mask);
        format!("ks::load_{kind}<{}>({args})", self.lanes_of(at))
    }

    /// A statement that writes to a vector of indices.
    pub(super) fn vector_store(&self, b: Buf, at: &Expr, e: &Expr, mask: Option<&Expr>) -> String {
        let (kind, args) = self.access(b, at, mask);
        format!("ks::store_{kind}<{}>({}, {args});", self.lanes_of(at), self.expr(e))
    }

    /// A truth value as a lane of a mask.
    pub(super) fn lane_value(&self, ty: Scalar, text: String) -> String {
        if ty == Scalar::Bool { format!("-({text})") } else { text }
    }

    /// An operation on vectors with these texts.
    pub(super) fn vector_op(&self, op: Op, ty: Scalar, args: &[Expr], text: &[String]) -> String {
        let lanes = args.first().map_or(1, |a| self.lanes_of(a));
        let two = |sign: &str| format!("({} {sign} {})", text[0], text[1]);
        if let (Op::Eq, Some((first, by, left))) = (op, remainders(args)) {
            return format!("ks::leaves<{lanes}, {by}>({}, {})", self.expr(first), self.expr(left));
        }
        match (op.row().lanes, op) {
            (Lanes::Infix(sign), _) => two(sign),
            (Lanes::Compare(sign), _) => format!("ks::{}<{lanes}>({}, {})", compared(sign), text[0], text[1]),
            (Lanes::Call | Lanes::No, _) => format!("ks::{}({})", op.row().name, text.join(", ")),
            (Lanes::Own, op) => self.own_op(op, ty, lanes, args, text),
        }
    }

    /// An operation that has text of its own.
    fn own_op(&self, op: Op, ty: Scalar, lanes: u32, args: &[Expr], text: &[String]) -> String {
        let two = |sign: &str| format!("({} {sign} {})", text[0], text[1]);
        match op {
            // The divisor as a literal: it is lowered to multiplications before calls are inlined.
            Op::Div | Op::Mod if ty.is_int() => {
                let by = if let Expr::Broadcast(n, _) = &args[1] { self.expr(n) } else { text[1].clone() };
                format!("({} {} ({}){by})", text[0], if op == Op::Div { "/" } else { "%" }, cpp_ty(ty))
            }
            Op::Div => two("/"),
            // Amounts of shifts count modulo the width.
            Op::Shl | Op::Shr => {
                let (sign, last) = (if op == Op::Shl { "<<" } else { ">>" }, ty.bits() - 1);
                format!("({} {sign} ({} & {last}))", text[0], text[1])
            }
            Op::Abs => format!("ks::absolute<{lanes}>({})", text[0]),
            Op::Neg => format!("ks::negated<{lanes}>({})", text[0]),
            Op::Not | Op::BitNot => format!("(~{})", text[0]),
            Op::Min => format!("ks::least({}, {})", text[0], text[1]),
            Op::Max => format!("ks::greatest({}, {})", text[0], text[1]),
            Op::Precedes => format!("ks::mask<{lanes}>(ks::precedes({}, {}))", text[0], text[1]),
            Op::Select => format!("ks::select<{}>({}, {}, {})", lanes, text[0], text[1], text[2]),
            Op::BoolToFloat => {
                format!("ks::select<{lanes}>({}, ks::all<{lanes}>(1.0), ks::all<{lanes}>(0.0))", text[0])
            }
            Op::ToFloat => self.convert(&text[0], ty, lanes),
            Op::Truncate => format!("ks::saturate<int64_t, {lanes}>({})", text[0]),
            Op::Pow => format!("ks::power({}, {})", text[0], text[1]),
            _ => format!("ks::{}({})", op.row().name, text.join(", ")),
        }
    }

    fn convert(&self, text: &str, to: Scalar, lanes: u32) -> String {
        format!("ks::convert<{}, {lanes}>({text})", cpp_ty(to))
    }

    /// An expression that makes a vector, or takes one apart; nothing where it is an expression of numbers.
    pub(super) fn vector(&self, e: &Expr) -> Option<String> {
        Some(match e {
            Expr::Load(b, at) if self.lanes_of(at) > 1 => self.vector_load(*b, at, None),
            Expr::MaskedLoad(b, p) => self.vector_load(*b, &p[0], Some(&p[1])),
            Expr::Op(op, ty, args) if args.first().is_some_and(|a| self.lanes_of(a) > 1) => {
                if let Some(of) = negated(*op, args) {
                    return Some(self.vector_op(Op::Neg, *ty, args, &[self.expr(of)]));
                }
                let text: Vec<String> = args.iter().map(|a| self.expr(a)).collect();
                self.vector_op(*op, *ty, args, &text)
            }
            Expr::Cast(to, a) if self.lanes_of(a) > 1 => self.cast_lanes(*to, a),
            Expr::Ramp(p, n) => format!("ks::ramp<{n}>({}, {})", self.expr(&p[0]), self.expr(&p[1])),
            Expr::Broadcast(a, n) => {
                let ty = cpp_ty(self.f.ty(a));
                format!("ks::all<{n}>(({ty}){})", self.expr(a))
            }
            Expr::PrefixMask(live, n) => format!("ks::first<{n}>({})", self.expr(live)),
            Expr::Extract(p) => {
                let text = format!("{}[{}]", self.expr(&p[0]), self.expr(&p[1]));
                if self.f.ty(&p[0]) == Scalar::Bool { format!("({text} != 0)") } else { text }
            }
            Expr::All(a) => format!("ks::every({})", self.expr(a)),
            Expr::PerLane(v, n, p) => self.per_lane(*v, *n, p),
            _ => return None,
        })
    }

    fn cast_lanes(&self, to: Scalar, a: &Expr) -> String {
        let (from, lanes, text) = (self.f.ty(a), self.lanes_of(a), self.expr(a));
        match from {
            _ if from == to => text,
            Scalar::Bool => {
                let one = |v: i64| format!("ks::all<{lanes}>(({}){v})", cpp_ty(to));
                format!("ks::select<{lanes}>({text}, {}, {})", one(1), one(0))
            }
            _ if from.is_float() && !to.is_float() => format!("ks::saturate<{}, {lanes}>({text})", cpp_ty(to)),
            _ => self.convert(&text, to, lanes),
        }
    }

    fn per_lane(&self, v: Var, n: u32, p: &[Expr; 2]) -> String {
        let ty = self.f.ty(&p[1]);
        let value = self.lane_value(ty, self.expr(&p[1]));
        let live = if p[0] == Expr::int(n.into()) { String::new() } else { format!(", {}", self.expr(&p[0])) };
        format!("ks::each<{}>([&](int64_t {}) {{ return {value}; }}{live})", lanes_ty(ty, n), self.names.var(v))
    }
}
