//! A rule over scalars becomes a formula: satisfiable where the rule breaks its promise.
//!
//! Integers are bit vectors, which wrap; floats are IEEE numbers in an exact rule and real numbers
//! in another. A metavariable has a value, or fails, or has no value over the reals. What has loops,
//! tensors or library functions has no formula. It must not call the solver.

use super::instance::{Types, ground};
use super::real::text;
use crate::ir::op::Sig;
use crate::ir::{Head, Id, Lit, Op, Scalar, Terms};
use crate::rules::{Condition, Level, Meta, Rule};
use num_rational::BigRational;
use num_traits::Signed;

/// A term as formulas: its value, whether it fails, whether it has no value over the reals.
#[derive(Clone)]
struct Said {
    value: String,
    fails: String,
    nothing: String,
    sort: Scalar,
}

struct Writer<'a> {
    rule: &'a Rule,
    types: &'a Types,
}

/// The formula of a rule at some types. Nothing where it cannot be said.
pub fn formula(rule: &Rule, types: &Types) -> Option<String> {
    let writer = Writer { rule, types };
    if !rule.sides.funs.is_empty() {
        return None;
    }
    let mut text = String::new();
    for k in 0..rule.sides.params.len() {
        let m = writer.meta(k)?;
        text += &format!(
            "(declare-const m{k} {})\n(declare-const f{k} Bool)\n(declare-const n{k} Bool)\n",
            writer.sort(m.sort)
        );
    }
    let (left, right) = (writer.term(rule.sides.sides.0)?, writer.term(rule.sides.sides.1)?);
    text += &format!("(assert (not {}))\n", left.fails);
    for (condition, metas) in &rule.when {
        text += &format!("(assert {})\n", writer.condition(*condition, metas)?);
    }
    let same = format!("(= {} {})", left.value, right.value);
    let kept = match rule.level {
        Level::Exact => same,
        Level::Real => format!("(and (= {0} {1}) (or {0} {same}))", left.nothing, right.nothing),
    };
    Some(text + &format!("(assert (not (and (not {}) {kept})))\n(check-sat)\n", right.fails))
}

fn list(op: &str, each: &[&str]) -> String {
    format!("({op} {})", each.join(" "))
}

impl Writer<'_> {
    fn real(&self) -> bool {
        self.rule.level == Level::Real
    }

    fn sort(&self, s: Scalar) -> String {
        match s {
            Scalar::Bool => "Bool".into(),
            s if s.is_float() && self.real() => "Real".into(),
            Scalar::F64 => "(_ FloatingPoint 11 53)".into(),
            Scalar::F32 => "(_ FloatingPoint 8 24)".into(),
            s => format!("(_ BitVec {})", s.bits()),
        }
    }

    fn meta(&self, k: usize) -> Option<Said> {
        let sort = ground(self.rule.sides.params[k].ty, self.types).as_scalar()?;
        let nothing = if self.real() { format!("n{k}") } else { "false".into() };
        Some(Said { value: format!("m{k}"), fails: format!("f{k}"), nothing, sort })
    }

    fn literal(&self, l: Lit) -> Option<Said> {
        let sort = l.ty().as_scalar()?;
        let value = match l {
            Lit::Bool(b) => b.to_string(),
            Lit::Int(s, v) => bit_vector(s, v),
            Lit::F64(b) if !self.real() => format!("((_ to_fp 11 53) #x{b:016x})"),
            Lit::F32(b) if !self.real() => format!("((_ to_fp 8 24) #x{b:08x})"),
            l => {
                let v = BigRational::from_float(l.as_f64()?)?;
                let size = format!("(/ {}.0 {}.0)", v.numer().magnitude(), v.denom());
                if v.is_negative() { format!("(- {size})") } else { size }
            }
        };
        Some(Said { value, fails: "false".into(), nothing: "false".into(), sort })
    }

    fn term(&self, id: Id) -> Option<Said> {
        let (head, kids) = (self.rule.sides.terms.head(id), self.rule.sides.terms.kids(id));
        match head {
            Head::Var(i, _) => self.meta(self.rule.sides.params.len() - 1 - i as usize),
            Head::Const(l) => self.literal(l),
            Head::If | Head::Assert | Head::Op(_) => {
                let each = kids.iter().map(|k| self.term(*k)).collect::<Option<Vec<_>>>()?;
                match (head, each.as_slice()) {
                    (Head::If, [c, a, b]) => Some(choice(c, a, b, false)),
                    (Head::Assert, [c, v]) => {
                        let fails = format!("(or {} (and (not {}) (not {})) {})", c.fails, c.nothing, c.value, v.fails);
                        Some(Said { fails, nothing: list("or", &[&c.nothing, &v.nothing]), ..v.clone() })
                    }
                    (Head::Op(Op::Select), [c, a, b]) => Some(choice(c, a, b, true)),
                    (Head::Op(op), each) => self.op(op, each),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn op(&self, op: Op, args: &[Said]) -> Option<Said> {
        let s = args.first()?.sort;
        if s.is_float()
            && self.real()
            && let Some((terms, body)) = text(op)
        {
            return self.said(terms, body, args);
        }
        let values: Vec<&str> = args.iter().map(|a| a.value.as_str()).collect();
        let all =
            |f: fn(&Said) -> &String| args.iter().fold("false".to_string(), |sum, a| format!("(or {sum} {})", f(a)));
        let (mut fails, mut nothing) = (all(|a| &a.fails), all(|a| &a.nothing));
        let value = match s {
            Scalar::Bool => logic(op, &values)?,
            s if s.is_float() && self.real() => {
                if op == Op::Div {
                    nothing = format!("(or {nothing} (= {} 0.0))", values[1]);
                }
                real(op, &values)?
            }
            s if s.is_float() => float(op, &values)?,
            s => {
                if matches!(op, Op::Div | Op::Mod) {
                    fails = format!("(or {fails} (= {} {}))", values[1], bit_vector(s, 0));
                }
                integer(op, s, &values)?
            }
        };
        let compares = matches!(op.row().sig, Sig::Order | Sig::Equality);
        Some(Said { value, fails, nothing, sort: if compares { Scalar::Bool } else { s } })
    }

    /// What a text of the table says of arguments.
    fn said(&self, terms: &Terms, id: Id, args: &[Said]) -> Option<Said> {
        match terms.head(id) {
            Head::Var(i, _) => args.get(args.len().checked_sub(1 + i as usize)?).cloned(),
            Head::Const(l) => self.literal(l),
            Head::Op(op) => {
                let each = terms.kids(id).iter().map(|k| self.said(terms, *k, args)).collect::<Option<Vec<_>>>()?;
                self.op(op, &each)
            }
            _ => None,
        }
    }

    fn condition(&self, c: Condition, metas: &[Meta]) -> Option<String> {
        let Meta::Plain(k) = metas[0] else { return None };
        let m = self.meta(k)?;
        let vague = list("or", &[&m.fails, &m.nothing]);
        let zero = self.literal(match m.sort {
            s if s.is_int() => Lit::Int(s, 0),
            s => Lit::of(s, 0.0),
        })?;
        let float = m.sort.is_float() && !self.real();
        // An exact rule knows the sign of finite literals only.
        let literal = format!("(not {}) (not (fp.isNaN m{k})) (not (fp.isInfinite m{k}))", m.fails);
        let compare = |op: Op| Some(self.op(op, &[m.clone(), zero.clone()])?.value);
        Some(match c {
            Condition::Total => format!("(not {})", m.fails),
            Condition::Defined => format!("(not {vague})"),
            Condition::Nonzero if float => format!("(and {literal} (not (fp.isZero m{k})))"),
            Condition::Positive | Condition::Nonnegative | Condition::Nonzero => {
                let test = compare(match c {
                    Condition::Positive => Op::Gt,
                    Condition::Nonnegative => Op::Gte,
                    _ => Op::Ne,
                })?;
                if float { format!("(and {literal} {test})") } else { format!("(or {vague} {test})") }
            }
            Condition::InRange | Condition::SameSize | Condition::Divisor | Condition::Valued => return None,
        })
    }
}

/// One of two; a `strict` choice evaluates both.
fn choice(c: &Said, a: &Said, b: &Said, strict: bool) -> Said {
    let pick = |x: &str, y: &str| list("ite", &[&c.value, x, y]);
    let fails = if strict { list("or", &[&a.fails, &b.fails]) } else { pick(&a.fails, &b.fails) };
    Said {
        value: pick(&a.value, &b.value),
        // Without a value of the condition neither arm is evaluated.
        fails: format!("(or {} (and (not {}) {fails}))", c.fails, if strict { "false" } else { &c.nothing }),
        nothing: format!("(or {} {})", c.nothing, pick(&a.nothing, &b.nothing)),
        sort: a.sort,
    }
}

fn bit_vector(s: Scalar, v: i64) -> String {
    let n = s.bits();
    let low = if n == 64 { v as u64 } else { v as u64 & ((1 << n) - 1) };
    format!("(_ bv{low} {n})")
}

fn logic(op: Op, x: &[&str]) -> Option<String> {
    Some(match op {
        Op::And => list("and", x),
        Op::Or => list("or", x),
        Op::Not => list("not", x),
        Op::Eq => list("=", x),
        Op::Ne => list("distinct", x),
        _ => return None,
    })
}

fn least(less: &str, x: &[&str], min: bool) -> String {
    let test = if min { list(less, &[x[0], x[1]]) } else { list(less, &[x[1], x[0]]) };
    list("ite", &[&test, x[0], x[1]])
}

/// The least or greatest float: none where one is none, and -0 below +0.
fn extreme(x: &[&str], min: bool) -> String {
    let ([a, b], [c, d]) = ([x[0], x[1]], if min { [x[0], x[1]] } else { [x[1], x[0]] });
    let equal = format!("(ite (fp.eq {a} {b}) (ite (fp.isNegative {a}) {c} {d}) (fp.add RNE {a} {b}))");
    format!("(ite (fp.lt {a} {b}) {c} (ite (fp.lt {b} {a}) {d} {equal}))")
}

fn real(op: Op, x: &[&str]) -> Option<String> {
    Some(match op {
        Op::Add => list("+", x),
        Op::Sub | Op::Neg => list("-", x),
        Op::Mul => list("*", x),
        Op::Div => list("/", x),
        Op::Abs => format!("(ite (< {0} 0.0) (- {0}) {0})", x[0]),
        Op::Min => least("<", x, true),
        Op::Max => least("<", x, false),
        Op::Lt => list("<", x),
        Op::Gt => list(">", x),
        Op::Lte => list("<=", x),
        Op::Gte => list(">=", x),
        Op::Eq => list("=", x),
        Op::Ne => list("distinct", x),
        _ => return None,
    })
}

fn float(op: Op, x: &[&str]) -> Option<String> {
    let rounded = |name: &str| format!("({name} RNE {})", x.join(" "));
    Some(match op {
        Op::Add => rounded("fp.add"),
        Op::Sub => rounded("fp.sub"),
        Op::Mul => rounded("fp.mul"),
        Op::Div => rounded("fp.div"),
        Op::Sqrt => rounded("fp.sqrt"),
        Op::Fma => rounded("fp.fma"),
        Op::Neg => list("fp.neg", x),
        Op::Abs => list("fp.abs", x),
        Op::Min | Op::Max => least("fp.lt", x, op == Op::Min),
        Op::Minimum | Op::Maximum => extreme(x, op == Op::Minimum),
        Op::Precedes => {
            let [a, b] = [x[0], x[1]];
            let zeros = format!("(and (fp.eq {a} {b}) (fp.isNegative {a}) (not (fp.isNegative {b})))");
            format!("(or (fp.lt {a} {b}) {zeros} (and (fp.isNaN {a}) (not (fp.isNaN {b}))))")
        }
        Op::Lt => list("fp.lt", x),
        Op::Gt => list("fp.gt", x),
        Op::Lte => list("fp.leq", x),
        Op::Gte => list("fp.geq", x),
        Op::Eq => list("fp.eq", x),
        Op::Ne => format!("(not {})", list("fp.eq", x)),
        _ => return None,
    })
}

fn integer(op: Op, s: Scalar, x: &[&str]) -> Option<String> {
    let signed = s.range().0 < 0;
    let sign = |yes: &'static str, no: &'static str| if signed { yes } else { no };
    Some(match op {
        Op::Add => list("bvadd", x),
        Op::Sub => list("bvsub", x),
        Op::Mul => list("bvmul", x),
        Op::Div => list(sign("bvsdiv", "bvudiv"), x),
        Op::Mod => list(sign("bvsrem", "bvurem"), x),
        Op::BitAnd => list("bvand", x),
        Op::BitOr => list("bvor", x),
        Op::BitXor => list("bvxor", x),
        Op::BitNot => list("bvnot", x),
        Op::Shl | Op::Shr => {
            let name = if op == Op::Shl { "bvshl" } else { sign("bvashr", "bvlshr") };
            format!("({name} {} (bvand {} {}))", x[0], x[1], bit_vector(s, i64::from(s.bits()) - 1))
        }
        Op::Neg => list("bvneg", x),
        Op::Abs if signed => format!("(ite (bvslt {0} {1}) (bvneg {0}) {0})", x[0], bit_vector(s, 0)),
        Op::Abs => x[0].to_string(),
        Op::Min | Op::Minimum => least(sign("bvslt", "bvult"), x, true),
        Op::Max | Op::Maximum => least(sign("bvslt", "bvult"), x, false),
        Op::Lt | Op::Precedes => list(sign("bvslt", "bvult"), x),
        Op::Gt => list(sign("bvsgt", "bvugt"), x),
        Op::Lte => list(sign("bvsle", "bvule"), x),
        Op::Gte => list(sign("bvsge", "bvuge"), x),
        Op::Eq => list("=", x),
        Op::Ne => list("distinct", x),
        _ => return None,
    })
}
