//! Expressions: atoms, the core forms, and the table of all other forms.

use super::meaning::Meaning;
use super::{Elab, MAX_NESTING};
use crate::diag::{Diagnostic, Result};
use crate::ir::read::{Atom, Form};
use crate::ir::{Head, Id, Lit, Op, Scalar, Ty, TyKind, deep};

type Handler = fn(&mut Elab<'_>, usize, &[usize]) -> Result<Id>;

/// A form: its name, how many arguments it takes at least and at most, and what makes its term.
struct Row(&'static str, usize, usize, Handler);

const MANY: usize = usize::MAX;

/// Every form that is not a function call.
static FORMS: &[Row] = &[
    Row("let", 2, 3, |e, at, a| e.form_let(at, a)),
    Row("if", 3, 3, |e, at, a| e.plain(at, Head::If, a)),
    Row("cond", 1, MANY, |e, at, a| e.form_cond(at, a)),
    Row("assert", 2, 2, |e, at, a| e.plain(at, Head::Assert, a)),
    Row("tuple", 0, MANY, |e, at, a| e.plain(at, Head::Tuple, a)),
    Row("lam", 0, MANY, |e, at, _| {
        Err(e.error(at, "a function may stand only as an argument of `build`, `map`, `fold` and their like", "here"))
    }),
    Row("cast", 2, 2, |e, at, a| e.form_cast(at, a)),
    Row("saturate", 2, 2, |e, at, a| e.form_saturate(at, a)),
    Row("$dummy", 1, 1, |e, _, a| e.form_dummy(a)),
    Row("build", 2, 2, |e, at, a| e.form_build(at, a)),
    Row("sumbuild", 2, 2, |e, at, a| e.form_sumbuild(at, a)),
    Row("reduce", 3, 3, |e, at, a| e.form_reduce(at, a)),
    Row("argmin", 2, 2, |e, at, a| e.form_arg(at, a, crate::ir::Monoid::Min)),
    Row("argmax", 2, 2, |e, at, a| e.form_arg(at, a, crate::ir::Monoid::Max)),
    Row("sum", 1, 1, |e, at, a| e.plain(at, Head::Sum, a)),
    Row("index", 2, 2, |e, at, a| e.form_index(at, a)),
    Row("size", 1, 1, |e, at, a| e.form_size(at, a)),
    Row("shape", 1, MANY, |e, at, a| e.form_shape(at, a)),
    Row("map", 2, 2, |e, at, a| e.form_map(at, a)),
    Row("map2", 3, 3, |e, at, a| e.form_map2(at, a)),
    Row("fold", 3, 3, |e, at, a| e.form_fold(at, a)),
    Row("iterate", 3, 3, |e, at, a| e.form_iterate(at, a)),
    Row("ifold", 3, 3, |e, at, a| e.form_iterate(at, a)),
    Row("scan", 3, 3, |e, at, a| e.form_scan(at, a)),
    Row("constVec", 2, 2, |e, at, a| e.form_const_vec(at, a)),
    Row("deltaVec", 3, 3, |e, at, a| e.form_delta_vec(at, a)),
    Row("delta", 3, 3, |e, at, a| e.form_delta(at, a)),
    Row("diag", 3, 3, |e, at, a| e.form_diag(at, a)),
    Row("Vec_init", 1, MANY, |e, at, a| e.plain(at, Head::VecInit, a)),
    Row("buildFromSparse", 3, 3, |e, at, a| e.form_sparse(at, a)),
    Row("buildFromSparseTupled", 3, 3, |e, at, a| e.form_sparse_tupled(at, a)),
    Row("unzip", 1, 1, |e, at, a| e.form_unzip(at, a)),
    Row("slice", 3, 3, |e, at, a| e.form_slice(at, a)),
    Row("stack", 1, 1, |e, at, a| e.form_stack(at, a)),
    Row("unstack", 1, 1, |e, at, a| e.form_unstack(at, a)),
    Row("ts_add", 2, 2, |e, at, a| e.form_ts_add(at, a)),
    Row("ts_scale", 2, 2, |e, at, a| e.form_ts_scale(at, a)),
    Row("ts_neg", 1, MANY, |e, at, a| e.form_ts_neg(at, a)),
    Row("ts_dot", 2, 2, |e, at, a| e.form_ts_dot(at, a)),
    Row("print", 0, MANY, |e, at, a| e.plain(at, Head::Print, a)),
    Row("$trace", 1, MANY, |e, at, a| e.one(at, a)),
    Row("$inline", 1, MANY, |e, at, a| e.one(at, a)),
    Row("$copydown", 1, MANY, |e, at, a| e.one(at, a)),
    Row("checkpoint", 1, MANY, |e, at, a| e.one(at, a)),
    Row("$check", 5, 6, |e, at, a| e.form_check(at, a)),
];

/// Forms that are no functions: a tuple does not stand for their parts.
const SYNTAX: [&str; 8] = ["let", "if", "cond", "assert", "tuple", "lam", "cast", "saturate"];

/// Operations on linear maps, refused by name.
const LINEAR_MAPS: &str = "lm";

fn row(name: &str) -> Option<&'static Row> {
    FORMS.iter().find(|r| r.0 == name)
}

/// Forms that a program may hide by a definition: older programs may use the names.
const HIDDEN: [&str; 8] = ["checkpoint", "cond", "ifold", "iterate", "saturate", "slice", "stack", "unstack"];

/// Whether a name is taken by a form for good.
pub fn is_reserved(name: &str) -> bool {
    is_form(name) && !HIDDEN.contains(&name)
}

/// Whether a name is taken by a form.
pub fn is_form(name: &str) -> bool {
    row(name).is_some() || name.starts_with("get$") || name.starts_with("size$")
}

/// The names of all forms, for hints.
pub fn form_names() -> impl Iterator<Item = &'static str> {
    FORMS.iter().map(|r| r.0)
}

impl Elab<'_> {
    /// The term of an expression.
    pub(super) fn expr(&mut self, at: usize) -> Result<Id> {
        match &self.tree.at(at).form {
            Form::Atom(Atom::Number(l)) => Ok(self.terms.lit(*l)),
            Form::Atom(Atom::Text(t)) => Ok(self.terms.lit(Lit::Str(crate::ir::lit::intern(t)))),
            Form::Atom(Atom::Name(_)) => self.name(at),
            Form::Bracket(_) => {
                let hint = self.subscript(None, at);
                Err(self.error(at, "expected an expression", "a function is no value").hint(hint))
            }
            Form::List(kids) => {
                let kids: &[usize] = kids;
                match kids.split_first() {
                    Some((head, args)) => deep(|| self.list(at, *head, args)),
                    None => Err(self.error(at, "expected an expression", "`()` is none; the unit is `(tuple)`")),
                }
            }
        }
    }

    fn name(&mut self, at: usize) -> Result<Id> {
        let tree = self.tree;
        let name = tree.name(at).unwrap_or_default();
        match name {
            "true" => return Ok(self.terms.lit(Lit::Bool(true))),
            "false" => return Ok(self.terms.lit(Lit::Bool(false))),
            _ => {}
        }
        match self.meaning(name) {
            Some(found) => found,
            None => Err(self.no_such_name(at, name)),
        }
    }

    fn list(&mut self, at: usize, head: usize, args: &[usize]) -> Result<Id> {
        let Some(name) = self.tree.name(head) else {
            // Brackets around a form are nothing but that: `((f x))` is `(f x)`.
            let bracketed = args.is_empty()
                && match &self.tree.at(head).form {
                    Form::List(kids) => !kids.is_empty(),
                    Form::Atom(Atom::Number(_) | Atom::Text(_)) => true,
                    Form::Atom(Atom::Name(_)) | Form::Bracket(_) => false,
                };
            return if bracketed { self.expr(head) } else { self.call(at, head, args) };
        };
        let shadowed = (self.generic || HIDDEN.contains(&name)) && self.by_name.contains_key(name);
        if let Some(row) = row(name).filter(|_| !shadowed) {
            if let Some(parts) = self.unpacked(row, args) {
                return row.3(self, at, &parts);
            }
            if args.len() < row.1 || args.len() > row.2 {
                let wanted = match row.2 {
                    MANY => format!("at least {}", row.1),
                    _ => row.1.to_string(),
                };
                let plural = if row.1 == 1 { "" } else { "s" };
                let label = format!("expected {wanted} argument{plural}, found {}", args.len());
                let hint = match name {
                    "reduce" => self.reduction(args),
                    "let" => self.body_among_bindings(args),
                    _ => None,
                };
                return Err(self.error(at, &format!("wrong number of arguments of `{name}`"), &label).hint(hint));
            }
            return row.3(self, at, args);
        }
        if let Some(rest) = name.strip_prefix("get$") {
            return self.form_get(at, head, rest, args);
        }
        if let Some(rest) = name.strip_prefix("size$") {
            return self.form_axis(at, head, rest, args);
        }
        if name.starts_with(LINEAR_MAPS) && name[2..].starts_with(|c: char| c.is_ascii_uppercase()) {
            return Err(self.error(head, &format!("operations on linear maps (`{name}`) are not supported"), "here"));
        }
        if args.is_empty() && self.stands_for_value(name) {
            return self.name(head);
        }
        self.call(at, head, args)
    }

    /// The parts of a tuple that stands in the place of several arguments: `(f (tuple a b))` is `(f a b)`.
    fn unpacked(&self, row: &Row, args: &[usize]) -> Option<Vec<usize>> {
        let [one] = args else { return None };
        let parts = self.tree.headed(*one, "tuple").filter(|_| row.1 > 1 && !SYNTAX.contains(&row.0))?;
        (row.1..=row.2).contains(&parts.len()).then(|| parts.to_vec())
    }

    /// The one argument of a function: several are a tuple.
    pub(super) fn one(&mut self, at: usize, args: &[usize]) -> Result<Id> {
        match args {
            [one] => self.expr(*one),
            many => self.plain(at, Head::Tuple, many),
        }
    }

    /// A node whose arguments are plain expressions.
    fn plain(&mut self, at: usize, head: Head, args: &[usize]) -> Result<Id> {
        let kids = self.each(args, Self::expr)?;
        self.node(at, head, &kids, args)
    }

    /// Adds a node that stands at a place; `places` are the forms of its children.
    pub(super) fn node(&mut self, at: usize, head: Head, kids: &[Id], places: &[usize]) -> Result<Id> {
        match self.terms.add(head, kids.iter().copied()) {
            Ok(id) if self.terms.ty(id).depth() > MAX_NESTING => Err(self.too_deep(at)),
            Ok(id) => {
                if !matches!(head, Head::Let | Head::If | Head::Tuple | Head::Get(..) | Head::Size(_)) {
                    self.terms.mark(id, self.tree.at(at).span);
                }
                Ok(id)
            }
            Err(m) => {
                let (place, found) = match m.child {
                    Some(k) => (places.get(k).copied().unwrap_or(at), self.terms.ty(kids[k]).to_string()),
                    None => {
                        let tys: Vec<String> = kids.iter().map(|k| self.terms.ty(*k).to_string()).collect();
                        (at, tys.join(" "))
                    }
                };
                let label = format!("expected {}, found {found}", m.expected);
                let hint = m.child.and_then(|k| self.conversion_hint(kids[k], place, &m.expected));
                Err(self.error(place, "type mismatch", &label).hint(hint))
            }
        }
    }

    fn form_let(&mut self, _at: usize, args: &[usize]) -> Result<Id> {
        if let [pattern, ..] = args
            && args.len() == 3
            && self.tree.name(*pattern).is_none()
        {
            let label = "expected a name, as in `(let x e body)`, or bindings and a body";
            return Err(self.error(*pattern, "expected the name of a binding", label));
        }
        // A chain of lets in body position is a loop, not a recursion.
        let (before, mark, mut wrong) = (self.mark(), self.opened(), false);
        let mut args = args.to_vec();
        let body = loop {
            let bindings = match args.as_slice() {
                [name, value, _] => vec![(*name, *value)],
                _ => self.bindings(args[0])?,
            };
            for (pattern, value) in bindings {
                if let Err(d) = self.attempt(|e| e.bind_pattern(pattern, value)) {
                    wrong = true;
                    self.errors.push(*d);
                    self.bind_unknown(pattern);
                }
            }
            let rest = args[args.len() - 1];
            match self.tree.headed(rest, "let") {
                Some(next) if next.len() == 2 => args = next.to_vec(),
                Some(next) if next.len() == 3 && self.tree.name(next[0]).is_some() => args = next.to_vec(),
                _ => break self.expr(rest)?,
            }
        };
        if wrong {
            return Err(Diagnostic::consequence());
        }
        self.forget(&before);
        Ok(self.close(mark, body))
    }

    /// Names of a pattern whose value has an error.
    fn bind_unknown(&mut self, pattern: usize) {
        let tree = self.tree;
        for part in tree.list(pattern).unwrap_or(&[pattern]) {
            if let Some(name) = tree.name(*part) {
                self.define(name, Meaning::Unknown);
            }
        }
    }

    /// `(x e)`, `((x e) (y f))` or `((x y) e)` as pairs of pattern and value.
    fn bindings(&mut self, at: usize) -> Result<Vec<(usize, usize)>> {
        let kids = self.tree.list(at).unwrap_or_default().to_vec();
        let is_names = |e: &Self, at: usize| {
            e.tree.list(at).is_some_and(|ks| !ks.is_empty() && ks.iter().all(|k| e.tree.name(*k).is_some()))
        };
        let pair = |e: &Self, at: usize| match e.tree.list(at) {
            Some([p, v]) if e.tree.name(*p).is_some() || is_names(e, *p) => Some((*p, *v)),
            _ => None,
        };
        // No pattern holds `true`, so `((x true) (y e))` is a list of bindings.
        let truth = |at: usize| matches!(self.tree.name(at), Some("true" | "false"));
        let binds_truth = |at: usize| match self.tree.list(at) {
            Some([x, v]) => !truth(*x) && truth(*v),
            _ => false,
        };
        let bindings = kids.len() == 2 && binds_truth(kids[0]) && pair(self, kids[1]).is_some();
        // `((a b) (c d))` is one pattern, whatever it looks like.
        if kids.len() == 2 && !bindings && (self.tree.name(kids[0]).is_some() || is_names(self, kids[0])) {
            return Ok(vec![(kids[0], kids[1])]);
        }
        let all: Option<Vec<_>> = kids.iter().map(|k| pair(self, *k)).collect();
        match all {
            Some(all) if !all.is_empty() => Ok(all),
            _ => Err(self.error(at, "expected bindings", "such as `(x e)`, `((x e) (y f))` or `((x y) e)`")),
        }
    }

    fn bind_pattern(&mut self, pattern: usize, value: usize) -> Result<()> {
        for part in self.tree.list(pattern).unwrap_or(&[pattern]) {
            self.may_name(*part)?;
        }
        let id = self.expr(value)?;
        if let Some(name) = self.tree.name(pattern).map(str::to_string) {
            self.open(id, Some(name.clone()));
            self.define(&name, Meaning::Level(self.depth() - 1));
            return Ok(());
        }
        let parts: Vec<String> = {
            let kids = self.tree.list(pattern).unwrap_or_default();
            kids.iter().filter_map(|k| self.tree.name(*k)).map(str::to_string).collect()
        };
        let ty = self.terms.ty(id);
        if ty.as_tuple().is_none_or(|t| t.len() != parts.len()) {
            let label = format!("expected a tuple of {}, found {ty}", parts.len());
            return Err(self.error(value, "the pattern does not fit its value", &label));
        }
        let whole = self.bind(id);
        for (k, name) in parts.iter().enumerate() {
            let part = self.part(whole, k, parts.len());
            self.open(part, Some(name.clone()));
            self.define(name, Meaning::Level(self.depth() - 1));
        }
        Ok(())
    }

    /// A value that is never looked at: zero, false, no text, tensors without elements.
    fn form_dummy(&mut self, args: &[usize]) -> Result<Id> {
        let ty = self.ty(args[0])?;
        Ok(self.dummy(ty))
    }

    fn dummy(&mut self, ty: Ty) -> Id {
        match ty.kind() {
            TyKind::Scalar(s) => self.terms.lit(Lit::zero(*s)),
            TyKind::String | TyKind::Var(..) => self.terms.lit(Lit::Str("")),
            TyKind::Tuple(parts) => {
                let parts: Vec<Id> = parts.iter().map(|p| self.dummy(*p)).collect();
                self.terms.put(Head::Tuple, parts)
            }
            TyKind::Tensor(rank, elem) => {
                let none = self.int(0);
                let elem = self.dummy(*elem);
                let kids: Vec<Id> = std::iter::repeat_n(none, *rank).chain([elem]).collect();
                self.terms.put(Head::ConstVec(*rank), kids)
            }
        }
    }

    fn form_cast(&mut self, at: usize, args: &[usize]) -> Result<Id> {
        let ty = self.ty(args[0])?;
        let Some(s) = ty.as_scalar() else {
            return Err(self.error(args[0], "a cast gives a number", &format!("found {ty}")));
        };
        let value = self.expr(args[1])?;
        self.node(at, Head::Cast(s), &[value], &args[1..])
    }

    /// `(cond (c e) … (else e))`: the first arm whose condition holds.
    fn form_cond(&mut self, at: usize, args: &[usize]) -> Result<Id> {
        let tree = self.tree;
        let (mut places, mut last) = (vec![], None);
        for (k, arm) in args.iter().enumerate() {
            match tree.list(*arm) {
                Some([c, e]) if tree.name(*c) == Some("else") && k + 1 == args.len() => last = Some(*e),
                Some([c, e]) if tree.name(*c) != Some("else") => places.extend([*c, *e]),
                Some(_) | None => {
                    return Err(self.error(
                        *arm,
                        "expected an arm",
                        "`(CONDITION VALUE)`, and `(else VALUE)` as the last",
                    ));
                }
            }
        }
        let Some(last) = last else {
            return Err(self.error(at, "the last arm of `cond` is `(else VALUE)`", "this has none"));
        };
        places.push(last);
        let ids = self.each(&places, Self::expr)?;
        self.terms.says("cond");
        let (mut out, expected) = (ids[ids.len() - 1], self.terms.ty(ids[ids.len() - 1]));
        for k in (0..ids.len() - 1).step_by(2).rev() {
            let found = self.terms.ty(ids[k + 1]);
            if found != expected {
                let label = format!("expected {expected}, as in the last arm, found {found}");
                return Err(self.error(places[k + 1], "the arms have different types", &label));
            }
            out = self.node(at, Head::If, &[ids[k], ids[k + 1], out], &[places[k], places[k + 1], at])?;
        }
        Ok(out)
    }

    /// `(saturate T e)`: the nearest number of an integer type; fractions are cut off.
    fn form_saturate(&mut self, at: usize, args: &[usize]) -> Result<Id> {
        let ty = self.ty(args[0])?;
        let Some(to) = ty.as_scalar().filter(|s| s.is_int()) else {
            return Err(self.error(args[0], "`saturate` gives an integer type", &format!("found {ty}")));
        };
        let value = self.expr(args[1])?;
        let given = self.terms.ty(value);
        if given.as_scalar().is_some_and(Scalar::is_int) {
            self.remember_call(("saturate", Some(ty)), &[0], &[given], |e, value| {
                let value = e.now(value[0]);
                Ok(e.saturated(value, to))
            })?;
            return Ok(self.saturated(value, to));
        }
        // A cast of a float goes to the nearest number already.
        self.node(at, Head::Cast(to), &[value], &args[1..])
    }

    fn saturated(&mut self, mut value: Id, to: Scalar) -> Id {
        if let Some(from) = self.terms.ty(value).as_scalar() {
            let ((lo, hi), (least, most)) = (to.range(), from.range());
            for (op, bound) in [(Op::Max, lo), (Op::Min, hi)] {
                let beyond = if op == Op::Max { least < bound } else { most > bound };
                if beyond {
                    let bound = self.terms.lit(Lit::Int(from, bound));
                    value = self.op(op, &[value, bound]);
                }
            }
        }
        self.terms.put(Head::Cast(to), [value])
    }

    /// `get$i$n`, counted from 1.
    fn form_get(&mut self, at: usize, head: usize, rest: &str, args: &[usize]) -> Result<Id> {
        let numbers = rest.split_once('$').and_then(|(i, n)| Some((i.parse::<u32>().ok()?, n.parse::<u32>().ok()?)));
        let Some((i, n)) = numbers.filter(|(i, n)| 1 <= *i && i <= n) else {
            return Err(self.error(head, "expected `get$i$n` with i from 1 to n", "here"));
        };
        let [arg] = args else {
            return Err(self.error(
                at,
                "wrong number of arguments",
                &format!("expected 1 argument, found {}", args.len()),
            ));
        };
        if let Some(name) = self.tree.name(*arg)
            && let Some(Meaning::Parts(levels)) = self.names.get(name).and_then(|m| m.last())
            && levels.len() == n as usize
        {
            let level = levels[i as usize - 1];
            return Ok(self.level(level));
        }
        // The size of a tensor of several axes is a tuple in name only.
        if let Some([of]) = self.tree.headed(*arg, "size") {
            let of = self.expr(*of)?;
            if self.terms.ty(of).as_tensor().is_some_and(|(r, _)| r == n as usize && r > 1) {
                return Ok(self.terms.put(Head::Size(i as usize - 1), [of]));
            }
        }
        self.plain(at, Head::Get(i - 1, n), args)
    }

    /// `size$k`: the size of one axis, counted from 1 through nested tensors.
    fn form_axis(&mut self, at: usize, head: usize, rest: &str, args: &[usize]) -> Result<Id> {
        match (rest.parse::<usize>(), args) {
            (Ok(k @ 1..), [_]) => self.plain(at, Head::Size(k - 1), args),
            (Ok(1..), _) => {
                let label = format!("expected 1 argument, found {}", args.len());
                Err(self.error(at, "wrong number of arguments", &label))
            }
            (Ok(_) | Err(_), _) => Err(self.error(head, "expected `size$k` with k from 1", "here")),
        }
    }
}
