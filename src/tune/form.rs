//! Integer expressions of a nest become linear forms of loop variables at estimated sizes: guesses, never proofs.

use crate::ir::{Op, Scalar};
use crate::nest::{Expr, Var};
use rustc_hash::FxHashMap;

/// A constant and multiples of loop variables, by variable.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Form {
    /// The constant.
    pub constant: f64,
    /// The multiples, none of which is 0, in the order of the variables.
    pub terms: Vec<(Var, f64)>,
}

impl Form {
    /// A number.
    pub fn constant(constant: f64) -> Form {
        Form { constant, terms: vec![] }
    }

    /// A loop variable.
    pub fn var(v: Var) -> Form {
        Form { constant: 0.0, terms: vec![(v, 1.0)] }
    }

    /// The multiple of a variable.
    pub fn coefficient(&self, v: Var) -> f64 {
        self.terms.iter().find(|(w, _)| *w == v).map_or(0.0, |(_, c)| *c)
    }

    fn scaled(&self, by: f64) -> Form {
        let terms = self.terms.iter().filter(|_| by != 0.0).map(|(v, c)| (*v, c * by)).collect();
        Form { constant: self.constant * by, terms }
    }

    fn plus(&self, other: &Form) -> Form {
        let mut terms = self.terms.clone();
        for (v, c) in &other.terms {
            match terms.iter_mut().find(|(w, _)| w == v) {
                Some((_, own)) => *own += c,
                None => terms.push((*v, *c)),
            }
        }
        terms.retain(|(_, c)| *c != 0.0);
        terms.sort_by_key(|(v, _)| *v);
        Form { constant: self.constant + other.constant, terms }
    }
}

/// What variables stand for: forms, and the middle of each loop variable's range.
#[derive(Default)]
pub struct Environment {
    /// Forms of variables that are set once.
    pub forms: FxHashMap<Var, Form>,
    /// The middle of what a loop variable runs over.
    pub middle: FxHashMap<Var, f64>,
    /// What variables that are set once are in the middle of all loops.
    pub numbers: FxHashMap<Var, f64>,
}

impl Environment {
    /// The value of a form in the middle of all loops.
    pub fn value(&self, form: &Form) -> f64 {
        form.terms.iter().fold(form.constant, |sum, (v, c)| sum + c * self.middle.get(v).copied().unwrap_or(0.0))
    }

    /// The value of an expression in the middle of all loops; nothing where data decides it. How long a part of a loop
    /// is, is the least of two numbers, of which its form is only one.
    pub fn number(&self, e: &Expr) -> Option<f64> {
        match e {
            Expr::Var(v) if self.numbers.contains_key(v) => self.numbers.get(v).copied(),
            Expr::Cond(parts) => self.number(&parts[if self.number(&parts[0])? != 0.0 { 1 } else { 2 }]),
            Expr::Op(
                op @ (Op::Min | Op::Max | Op::Add | Op::Sub | Op::Mul | Op::Div | Op::FloorDiv),
                Scalar::I64,
                args,
            ) => {
                let (a, b) = (self.number(args.first()?)?, self.number(args.get(1)?)?);
                Some(match op {
                    Op::Min => a.min(b),
                    Op::Max => a.max(b),
                    Op::Add => a + b,
                    Op::Sub => a - b,
                    Op::Mul => a * b,
                    _ if b == 0.0 => return None,
                    _ => (a / b).floor(),
                })
            }
            _ => self.form(e).map(|f| self.value(&f)),
        }
    }

    /// The form of an expression; nothing where data decides it.
    pub fn form(&self, e: &Expr) -> Option<Form> {
        match e {
            Expr::Lit(l) => l.to_f64().or(l.as_bool().map(|b| f64::from(u8::from(b)))).map(Form::constant),
            Expr::Var(v) => self.forms.get(v).cloned(),
            Expr::Cast(_, e) | Expr::Broadcast(e, _) => self.form(e),
            Expr::Cond(parts) => {
                let chosen = if self.number(&parts[0])? != 0.0 { 1 } else { 2 };
                self.form(&parts[chosen])
            }
            Expr::Op(op, ty, args) => {
                let each = args.iter().map(|a| self.form(a)).collect::<Option<Vec<Form>>>()?;
                self.operation(*op, *ty, &each)
            }
            _ => None,
        }
    }

    fn operation(&self, op: Op, ty: Scalar, args: &[Form]) -> Option<Form> {
        let values: Vec<f64> = args.iter().map(|a| self.value(a)).collect();
        let truth = |holds: bool| Some(Form::constant(f64::from(u8::from(holds))));
        match (op, args, values.as_slice()) {
            (Op::Add, [a, b], _) => Some(a.plus(b)),
            (Op::Sub, [a, b], _) => Some(a.plus(&b.scaled(-1.0))),
            (Op::Neg, [a], _) => Some(a.scaled(-1.0)),
            (Op::ToFloat, [a], _) => Some(a.clone()),
            // Of a product of two forms, how it grows around the middle.
            (Op::Mul, [a, b], [x, y]) => {
                let both = a.scaled(*y).plus(&b.scaled(*x));
                Some(Form { constant: both.constant - x * y, ..both })
            }
            (Op::Div | Op::FloorDiv, [a, _], [x, y]) if *y != 0.0 => {
                Some(match a.terms.is_empty() && ty == Scalar::I64 {
                    true => Form::constant((x / y).floor()),
                    false => a.scaled(1.0 / y),
                })
            }
            (Op::Mod | Op::FloorMod, [a, _], [x, y]) if *y != 0.0 => Some(match a.terms.is_empty() {
                true => Form::constant(x.rem_euclid(*y)),
                false => a.clone(),
            }),
            // A start that is clamped to a range moves with the loop nearly everywhere.
            (Op::Min | Op::Max, [a, b], [x, y]) => {
                let first = match a.terms.len().cmp(&b.terms.len()) {
                    std::cmp::Ordering::Equal => (op == Op::Min) == (x <= y),
                    order => order.is_gt(),
                };
                Some(if first { a.clone() } else { b.clone() })
            }
            (Op::Lt, _, [x, y]) => truth(x < y),
            (Op::Lte, _, [x, y]) => truth(x <= y),
            (Op::Gt, _, [x, y]) => truth(x > y),
            (Op::Gte, _, [x, y]) => truth(x >= y),
            (Op::Eq, _, [x, y]) => truth(x == y),
            (Op::Ne, _, [x, y]) => truth(x != y),
            (Op::And, _, [x, y]) => truth(*x != 0.0 && *y != 0.0),
            (Op::Or, _, [x, y]) => truth(*x != 0.0 || *y != 0.0),
            (Op::Not, _, [x]) => truth(*x == 0.0),
            _ => None,
        }
    }
}
