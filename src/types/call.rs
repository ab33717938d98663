//! Calls: user functions by name and argument types, then operations, then the prelude.

use super::Elab;
use super::scope::Val;
use crate::diag::{Diagnostic, Result, nearest};
use crate::ir::op::ROWS;
use crate::ir::{Fun, Head, Id, Monoid, Op, Ty};

/// Prelude functions that are no rows of the table: name, parameter types, result.
fn prelude() -> Vec<(&'static str, Vec<Ty>, Ty)> {
    let (f, v, m) = (Ty::float(), Ty::tensor(1, Ty::float()), Ty::tensor(2, Ty::float()));
    let vv = Ty::tensor(1, v);
    vec![
        ("mul", vec![m, v], v),
        ("mul", vec![vv, v], v),
        ("mymul", vec![f, v], v),
        ("max", vec![v], f),
        ("imax", vec![v], Ty::int()),
        ("clamp", vec![f, f, f], f),
        ("revpow", vec![f, Ty::int(), f], f),
    ]
}

/// Whether the prelude has this function.
pub fn in_prelude(name: &str, params: &[Ty], ret: Ty) -> bool {
    prelude().iter().any(|(n, p, r)| *n == name && p == params && *r == ret)
}

impl Elab<'_> {
    /// A call of anything that has a name.
    pub(super) fn call(&mut self, at: usize, head: usize, args: &[usize]) -> Result<Id> {
        let name = self.fun_name(head)?;
        let ids = args.iter().map(|a| self.expr(*a)).collect::<Result<Vec<_>>>()?;
        let tys: Vec<Ty> = ids.iter().map(|i| self.terms.ty(*i)).collect();
        if let Some(id) = self.user_call(at, &name, &ids, &tys, args)? {
            return Ok(id);
        }
        if let Some(op) = Op::named(&name).find(|op| op.result_ty(&tys).is_some()) {
            return self.node(at, Head::Op(op), &ids, args);
        }
        // One argument that is a tuple stands for several.
        if let ([one], [ty]) = (ids.as_slice(), tys.as_slice())
            && let Some(parts) = ty.as_tuple()
            && let Some(op) = Op::named(&name).find(|op| op.result_ty(parts).is_some())
        {
            let mark = self.opened();
            let kids = self.unpack(*one, parts.len());
            let id = self.node(at, Head::Op(op), &kids, &[])?;
            return Ok(self.close(mark, id));
        }
        match self.prelude_call(at, &name, &ids, &tys)? {
            Some(id) => Ok(id),
            None => Err(self.no_such_call(head, &name, &tys)),
        }
    }

    /// The components of a tuple; a let may open.
    fn unpack(&mut self, id: Id, n: usize) -> Vec<Id> {
        if self.terms.head(id) == Head::Tuple {
            return self.terms.kids(id).to_vec();
        }
        let whole = self.bind(id);
        (0..n).map(|k| self.part(whole, k, n)).collect()
    }

    fn user_call(&mut self, at: usize, name: &str, ids: &[Id], tys: &[Ty], places: &[usize]) -> Result<Option<Id>> {
        let funs = self.by_name.get(name).cloned().unwrap_or_default();
        if let Some(f) = funs.iter().find(|f| f.sig().params == tys) {
            return self.node(at, Head::Call(*f), ids, places).map(Some);
        }
        let packed = Ty::tuple(tys.to_vec());
        if let Some(f) = funs.iter().find(|f| f.sig().params == [packed]) {
            let arg = self.terms.put(Head::Tuple, ids.iter().copied());
            return self.node(at, Head::Call(*f), &[arg], &[at]).map(Some);
        }
        let parts = if tys.len() == 1 { tys[0].as_tuple() } else { None };
        if let Some((parts, f)) = parts.and_then(|p| Some((p, *funs.iter().find(|f| f.sig().params == p)?))) {
            let mark = self.opened();
            let kids = self.unpack(ids[0], parts.len());
            let id = self.node(at, Head::Call(f), &kids, &[])?;
            return Ok(Some(self.close(mark, id)));
        }
        Ok(None)
    }

    fn prelude_call(&mut self, at: usize, name: &str, ids: &[Id], tys: &[Ty]) -> Result<Option<Id>> {
        let mark = self.opened();
        let id = match (name, ids, tys) {
            ("clamp", [x, lo, hi], [a, b, c]) if a == b && b == c && a.as_scalar().is_some() => {
                let top = self.op(Op::Max, &[*x, *lo]);
                self.op(Op::Min, &[top, *hi])
            }
            ("revpow", [x, n, dr], [a, b, c]) if *a == Ty::float() && *b == Ty::int() && *c == Ty::float() => {
                let one = self.int(1);
                let less = self.op(Op::Sub, &[*n, one]);
                let power = self.op(Op::Pow, &[*x, less]);
                let factor = self.op(Op::ToFloat, &[*n]);
                let slope = self.op(Op::Mul, &[factor, power]);
                self.op(Op::Mul, &[slope, *dr])
            }
            ("eq" | "ne", [a, b], [ta, tb]) if ta == tb => {
                let (a, b) = (self.val(*a), self.val(*b));
                let (a, b) = (self.now(a), b);
                let a = self.bind(a);
                let b = self.now(b);
                let b = self.bind(b);
                let same = self.equal(a, b);
                if name == "eq" { same } else { self.op(Op::Not, &[same]) }
            }
            ("mymul", [r, v], [a, _]) if *a == Ty::float() => {
                return self.node(at, Head::Op(Op::Mul), &[*r, *v], &[]).map(Some);
            }
            ("max", [v], [t]) | ("imax", [v], [t])
                if t.as_tensor().is_some_and(|(r, e)| r == 1 && e.as_scalar().is_some_and(|s| s.is_float())) =>
            {
                let v = self.bind(*v);
                self.extremum(at, name, v)?
            }
            ("mul", [m, v], [tm, tv]) if tv.as_tensor().is_some_and(|(r, e)| r == 1 && e.as_scalar().is_some()) => {
                let matrix = Ty::tensor(1, *tv);
                let dense = tv.as_tensor().map(|(_, e)| Ty::tensor(2, e));
                if *tm != matrix && Some(*tm) != dense {
                    return Ok(None);
                }
                let v = self.val(*v);
                let m = self.bind(*m);
                let v = self.now(v);
                let v = self.bind(v);
                self.matrix_times_vector(at, m, v)?
            }
            _ => return Ok(None),
        };
        Ok(Some(self.close(mark, id)))
    }

    fn extremum(&mut self, at: usize, name: &str, v: Val) -> Result<Id> {
        let size = self.sizes(v, 1)[0];
        let body = self.under(&[Ty::int()], |e, levels| e.element(levels, v));
        let head = if name == "max" { Head::Reduce(Monoid::Max, 1) } else { Head::Arg(Monoid::Max) };
        self.node(at, head, &[size, body], &[])
    }

    fn matrix_times_vector(&mut self, at: usize, m: Val, v: Val) -> Result<Id> {
        let rows = self.sizes(m, 1)[0];
        let nested = self.terms.ty(m.id).as_tensor().is_some_and(|(r, _)| r == 1);
        let from = self.depth();
        self.scope.push(Ty::int());
        let size = self.sizes(v, 1)[0];
        self.scope.push(Ty::int());
        let (i, j) = (self.level(from), self.level(from + 1));
        let mat = self.now(m);
        let entry = if nested {
            let row = self.node(at, Head::Index(1), &[i, mat], &[])?;
            self.node(at, Head::Index(1), &[j, row], &[])?
        } else {
            self.node(at, Head::Index(2), &[i, j, mat], &[])?
        };
        let x = self.element(&[from + 1], v);
        self.terms.mark(x, self.tree.at(at).span);
        let body = self.op(Op::Mul, &[entry, x]);
        self.scope.truncate(from + 1);
        let row = self.node(at, Head::Reduce(Monoid::Add, 1), &[size, body], &[])?;
        self.scope.truncate(from);
        let product = self.node(at, Head::Build(1), &[rows, row], &[])?;
        // Without rows there is no column to count: the inner size of an empty tensor is 0.
        let (mat, entries) = (self.now(m), self.sizes(v, 1)[0]);
        let columns = self.terms.put(Head::Size(1), [mat]);
        let zero = self.int(0);
        let none = self.op(Op::Eq, &[rows, zero]);
        let fits = self.op(Op::Eq, &[columns, entries]);
        let fits = self.op(Op::Or, &[none, fits]);
        self.node(at, Head::Assert, &[fits, product], &[])
    }

    fn no_such_call(&self, head: usize, name: &str, tys: &[Ty]) -> Box<Diagnostic> {
        let show = |tys: &[Ty]| tys.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        let user = self.by_name.get(name).into_iter().flatten();
        let sigs = user.map(|f: &Fun| format!("({name} {}) -> {}", show(&f.sig().params), f.sig().ret));
        let ops = ROWS.iter().filter(|r| r.name == name).map(|r| format!("{name} takes {}", describe(r.op)));
        let known = prelude();
        let more = known.iter().filter(|p| p.0 == name).map(|(_, p, r)| format!("({name} {}) -> {r}", show(p)));
        let candidates: Vec<String> = sigs.chain(ops).chain(more).collect();
        if candidates.is_empty() {
            let mut names: Vec<&str> = self.by_name.keys().map(String::as_str).collect();
            names.extend(ROWS.iter().map(|r| r.name));
            for form in super::expr::form_names() {
                names.push(form);
            }
            names.extend(known.iter().map(|p| p.0));
            let hint = nearest(name, names);
            let hint = hint.or_else(|| {
                name.starts_with('[').then(|| "derivatives exist where a `gdef` or a `def` makes them".to_string())
            });
            let below = self.tree.top.iter().any(|at| {
                let parts = self.tree.headed(*at, "def").unwrap_or_default();
                parts.first().is_some_and(|n| self.tree.name(*n) == Some(name))
            });
            let hint = match below {
                true => Some(format!("`{name}` is defined below; a definition stands above its uses")),
                false => hint,
            };
            return self.error(head, &format!("unknown function `{name}`"), "not defined above").hint(hint);
        }
        let label = if tys.is_empty() { "found no arguments".to_string() } else { format!("found ({})", show(tys)) };
        let mut d = self.error(head, &format!("`{name}` does not take these arguments"), &label);
        for c in candidates {
            d = d.note(format!("candidate: {c}"));
        }
        let mixed = tys.contains(&Ty::float()) && tys.contains(&Ty::int());
        let is_op = Op::named(name).next().is_some();
        d.hint(if mixed && is_op { super::expr::float_hint("Float", "Integer") } else { None })
    }
}

/// The argument types of an operation in words.
fn describe(op: Op) -> String {
    use crate::ir::op::Sig;
    match op.row().sig {
        Sig::Number => "a number".into(),
        Sig::Numbers => "two numbers of one type".into(),
        Sig::Ints => "two integers of one type".into(),
        Sig::Order => "two numbers of one type, gives Bool".into(),
        Sig::Equality => "two values of one type, gives Bool".into(),
        Sig::Bools(1) => "Bool".into(),
        Sig::Bools(_) => "two Bools".into(),
        Sig::Choice => "Bool and two scalars of one type".into(),
        Sig::FloatFn => "a Float or Float32".into(),
        Sig::Floats => "two floats of one type".into(),
        Sig::FloatInt => "a float and an Integer".into(),
        Sig::Fixed([], to) => format!("no arguments, gives {}", to.name()),
        Sig::Fixed(from, to) => {
            let from: Vec<&str> = from.iter().map(|s| s.name()).collect();
            format!("{}, gives {}", from.join(" "), to.name())
        }
    }
}
