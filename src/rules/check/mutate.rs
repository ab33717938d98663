//! A rule becomes wrong ones: the check is worth as much as the share of them that it notices.
//!
//! A mutant changes the right side at one place, drops a condition, or claims more. Those that say
//! the same as the rule by the symmetry of operations are told apart. It must not judge.

use crate::ir::{Head, Id, Lit, Monoid, Op, Scalar, Terms, Ty};
use crate::rules::{Level, Rule};

/// A changed rule.
pub struct Mutant {
    /// The rule.
    pub rule: Rule,
    /// What was changed, in words.
    pub change: String,
    /// It says what the rule says, or that a term is equal to itself.
    pub same: bool,
}

/// All mutants of a rule.
pub fn mutants(rule: &Rule) -> Vec<Mutant> {
    let mut out: Vec<Mutant> = vec![];
    for k in 0..rule.when.len() {
        let mut new = rule.clone();
        new.when.remove(k);
        out.push(Mutant { rule: new, change: format!("condition {} is dropped", k + 1), same: false });
    }
    if rule.level == Level::Real {
        let new = Rule { level: Level::Exact, ..rule.clone() };
        out.push(Mutant { rule: new, change: "the level is exact".into(), same: false });
    }
    let mut changer = Changer { rule, terms: rule.sides.terms.clone(), out: vec![] };
    let right = rule.sides.sides.1;
    changer.walk(right, &mut vec![], &mut vec![]);
    let Changer { mut terms, out: changed, .. } = changer;
    let real = rule.level == Level::Real;
    let normal = (normal(&mut terms, rule.sides.sides.0, real), normal(&mut terms, right, real));
    let mut seen = vec![right];
    for (id, change) in changed {
        if seen.contains(&id) || terms.ty(id) != terms.ty(right) {
            continue;
        }
        seen.push(id);
        let form = self::normal(&mut terms, id, real);
        let same = form == normal.0 || form == normal.1;
        let mut new = rule.clone();
        new.sides.terms = terms.clone();
        new.sides.sides.1 = id;
        out.push(Mutant { rule: new, change, same });
    }
    for (k, mutant) in out.iter_mut().enumerate() {
        mutant.rule.name = format!("{}#{}", rule.name, k + 1);
    }
    out
}

struct Changer<'a> {
    rule: &'a Rule,
    terms: Terms,
    out: Vec<(Id, String)>,
}

impl Changer<'_> {
    /// Changes every place below a node that `path` leads to; `scope` are the bound variables' types.
    fn walk(&mut self, id: Id, path: &mut Vec<usize>, scope: &mut Vec<Ty>) {
        for (new, change) in self.changes(id, scope) {
            if let Some(whole) = self.put(self.rule.sides.sides.1, path, new) {
                self.out.push((whole, change));
            }
        }
        let (head, kids) = (self.terms.head(id), self.terms.kids(id).to_vec());
        let tys: Vec<Ty> = kids.iter().map(|k| self.terms.ty(*k)).collect();
        for (k, kid) in kids.iter().enumerate() {
            let depth = scope.len();
            if head.binds(k, kids.len()) > 0 {
                scope.extend(head.bound_tys(&tys));
            }
            path.push(k);
            self.walk(*kid, path, scope);
            path.pop();
            scope.truncate(depth);
        }
    }

    /// The right side with another term at a place.
    fn put(&mut self, id: Id, path: &[usize], new: Id) -> Option<Id> {
        let Some((first, rest)) = path.split_first() else { return Some(new) };
        let (head, mut kids) = (self.terms.head(id), self.terms.kids(id).to_vec());
        kids[*first] = self.put(kids[*first], rest, new)?;
        self.terms.add(head, kids).ok()
    }

    fn changes(&mut self, id: Id, scope: &[Ty]) -> Vec<(Id, String)> {
        let (head, kids) = (self.terms.head(id), self.terms.kids(id).to_vec());
        let mut new: Vec<(Option<Id>, String)> = vec![];
        match head {
            Head::Const(l) => new.extend(
                other_literals(l)
                    .into_iter()
                    .map(|m| (Some(m), l))
                    .map(|(m, l)| (m.map(|m| self.terms.lit(m)), format!("{l} becomes another constant"))),
            ),
            Head::Var(i, ty) => self.variables(i, ty, scope, &mut new),
            Head::Op(op) => {
                for other in other_ops(op) {
                    let made = self.terms.add(Head::Op(*other), kids.clone()).ok();
                    new.push((made, format!("`{}` becomes `{}`", op.name(), other.name())));
                }
                if kids.len() == 1 && self.terms.ty(kids[0]) == self.terms.ty(id) {
                    new.push((Some(kids[0]), format!("`{}` is dropped", op.name())));
                }
            }
            Head::Get(i, n) => {
                let made = self.terms.add(Head::Get((i + 1) % n, n), kids.clone()).ok();
                new.push((made, "another part of the tuple".into()));
            }
            Head::Reduce(m, d) => {
                let other = if m == Monoid::Add { Monoid::Mul } else { Monoid::Add };
                let made = self.terms.add(Head::Reduce(other, d), kids.clone()).ok();
                new.push((made, format!("`{}` becomes `{}`", m.name(), other.name())));
            }
            Head::Build(_) | Head::ConstVec(_) | Head::DeltaVec(_) => {
                let one = self.terms.int(1);
                let more = self.terms.add(Head::Op(Op::Add), [kids[0], one]).ok();
                let made = more.and_then(|n| {
                    let mut kids = kids.clone();
                    kids[0] = n;
                    self.terms.add(head, kids).ok()
                });
                new.push((made, "the size is one more".into()));
            }
            _ => {}
        }
        // What stands under a binder does not change places with what does not.
        let last = (0..kids.len()).filter(|k| head.binds(*k, kids.len()) == 0).count();
        for a in 0..last {
            for b in a + 1..last {
                let mut swapped = kids.clone();
                swapped.swap(a, b);
                new.push((self.terms.add(head, swapped).ok(), format!("children {} and {} are swapped", a + 1, b + 1)));
            }
        }
        new.into_iter().filter_map(|(made, what)| Some((made?, what))).collect()
    }

    /// Another variable of the same type in the place of one.
    fn variables(&mut self, i: u32, ty: Ty, scope: &[Ty], new: &mut Vec<(Option<Id>, String)>) {
        let depth = scope.len();
        for (j, other) in scope.iter().enumerate() {
            let index = (depth - 1 - j) as u32;
            if *other == ty && index != i {
                new.push((Some(self.terms.var(index, ty)), "another bound variable".into()));
            }
        }
        if (i as usize) < depth {
            if ty == Ty::int() {
                let (zero, one, var) = (self.terms.int(0), self.terms.int(1), self.terms.var(i, ty));
                new.push((Some(zero), "a bound variable becomes 0".into()));
                new.push((self.terms.add(Head::Op(Op::Add), [var, one]).ok(), "an index is one more".into()));
            }
            return;
        }
        let params = self.rule.sides.params.len();
        for k in 0..params {
            let index = (depth + params - 1 - k) as u32;
            if self.rule.sides.params[k].ty == ty && index != i {
                let name = &self.rule.sides.params[k].name;
                new.push((Some(self.terms.var(index, ty)), format!("a metavariable becomes `{name}`")));
            }
        }
    }
}

fn other_literals(l: Lit) -> Vec<Lit> {
    match l {
        Lit::Bool(b) => vec![Lit::Bool(!b)],
        Lit::Int(s, v) => vec![Lit::Int(s, s.wrap(v + 1)), Lit::Int(s, s.wrap(v - 1))],
        Lit::F64(b) => {
            let v = f64::from_bits(b);
            vec![Lit::float(v + 1.0), Lit::float(if v == 0.0 { -0.0 } else { -v })]
        }
        Lit::F32(_) | Lit::Str(_) => vec![],
    }
}

/// Operations that take the same types.
fn other_ops(op: Op) -> &'static [Op] {
    match op {
        Op::Add => &[Op::Sub, Op::Mul],
        Op::Sub => &[Op::Add],
        Op::Mul => &[Op::Add, Op::Div],
        Op::Div => &[Op::Mul],
        Op::Min => &[Op::Max],
        Op::Max => &[Op::Min],
        Op::Minimum => &[Op::Maximum],
        Op::Maximum => &[Op::Minimum],
        Op::Lt => &[Op::Lte, Op::Gt],
        Op::Gt => &[Op::Gte, Op::Lt],
        Op::Lte => &[Op::Lt, Op::Gte],
        Op::Gte => &[Op::Gt, Op::Lte],
        Op::Eq => &[Op::Ne],
        Op::Ne => &[Op::Eq],
        Op::And => &[Op::Or],
        Op::Or => &[Op::And],
        Op::Exp => &[Op::Log],
        Op::Log => &[Op::Exp],
        Op::Sin => &[Op::Cos],
        Op::Cos => &[Op::Sin],
        Op::Tanh | Op::Sqrt | Op::Erf => &[Op::Exp],
        Op::Abs => &[Op::Neg],
        Op::Neg => &[Op::Abs],
        _ => &[],
    }
}

/// One form for all terms that are equal by the symmetry of operations, bit for bit.
fn normal(terms: &mut Terms, id: Id, real: bool) -> Id {
    let (mut head, kids) = (terms.head(id), terms.kids(id).to_vec());
    let mut kids: Vec<Id> = kids.into_iter().map(|k| normal(terms, k, real)).collect();
    let whole = |ty: Ty| ty.as_scalar().is_some_and(Scalar::is_int);
    match head {
        Head::Op(Op::Add | Op::And | Op::Or | Op::Eq | Op::Ne | Op::Minimum | Op::Maximum) => kids.sort_unstable(),
        Head::Op(Op::Mul) if terms.ty(kids[0]) == terms.ty(kids[1]) => kids.sort_unstable(),
        Head::Op(Op::Min | Op::Max) if real || whole(terms.ty(kids[0])) => kids.sort_unstable(),
        Head::Op(op @ (Op::Gt | Op::Gte)) => {
            head = Head::Op(if op == Op::Gt { Op::Lt } else { Op::Lte });
            kids.reverse();
        }
        _ => {}
    }
    terms.add(head, kids).unwrap_or(id)
}
