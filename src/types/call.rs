//! Calls: user functions by name and argument types, then operations, then the prelude.

use super::Elab;
use super::named::{Named, packed, suffixed};
use super::scope::Val;
use crate::diag::{Diagnostic, Result};
use crate::ir::{Head, Id, Lit, Monoid, Op, Scalar, Ty};

/// Operations that take any number of arguments from two on: the first two, their result and the
/// third, and so on.
pub const MANY: [&str; 6] = ["add", "mul", "min", "max", "and", "or"];

/// Prelude functions that are no rows of the table: name, parameter types, result.
pub fn prelude() -> Vec<(&'static str, Vec<Ty>, Ty)> {
    let (f, v, m) = (Ty::float(), Ty::tensor(1, Ty::float()), Ty::tensor(2, Ty::float()));
    let vv = Ty::tensor(1, v);
    vec![
        ("mul", vec![m, v], v),
        ("mul", vec![vv, v], v),
        ("matmul", vec![m, m], m),
        ("matmul", vec![m, v], v),
        ("matmul", vec![vv, v], v),
        ("mymul", vec![f, v], v),
        ("max", vec![v], f),
        ("imax", vec![v], Ty::int()),
        ("min", vec![v], f),
        ("imin", vec![v], Ty::int()),
        ("clamp", vec![f, f, f], f),
        ("setAt", vec![Ty::int(), v, f], v),
        ("setAt", vec![Ty::tuple(vec![Ty::int(); 2]), m, f], m),
        ("revpow", vec![f, Ty::int(), f], f),
    ]
}

/// Whether an operation or the prelude has this function, in any of its spellings.
pub fn is_known(name: &str, params: &[Ty], ret: Ty) -> bool {
    let has = |name: &str| {
        Op::named(name).any(|op| op.result_ty(params) == Some(ret))
            || prelude().iter().any(|(n, p, r)| *n == name && p == params && *r == ret)
    };
    has(name) || suffixed(name).is_some_and(|(base, said)| said == params && has(base))
}

/// Whether an operation or the prelude takes these, whatever it gives, in any of its spellings.
pub fn has_operation(name: &str, params: &[Ty]) -> bool {
    let has = |name: &str| Op::named(name).any(|op| op.result_ty(params).is_some()) || in_prelude(name, params, None);
    has(name) || suffixed(name).is_some_and(|(base, said)| said == params && has(base))
}

/// Whether the prelude has this function, with this result where one is given.
pub fn in_prelude(name: &str, params: &[Ty], ret: Option<Ty>) -> bool {
    prelude().iter().any(|(n, p, r)| *n == name && p == params && ret.is_none_or(|ret| ret == *r))
}

/// Whether the prelude has a function of this name.
pub fn is_prelude(name: &str) -> bool {
    name == "pr" || prelude().iter().any(|p| p.0 == name)
}

impl Elab<'_> {
    /// A call of anything that has a name.
    pub(super) fn call(&mut self, at: usize, head: usize, args: &[usize]) -> Result<Id> {
        let named = match self.fun_name(head) {
            Ok(named) => named,
            Err(d) => return Err(d.hint(self.infix(&[&[head], args].concat()))),
        };
        if let Some(id) = self.call_outside(at, head, &named, args)? {
            return Ok(id);
        }
        let name = named.name.as_str();
        if let Some(d) = self.no_such_function(at, head, name, args) {
            self.errors.push(*d);
            // The arguments may have errors of their own; the parts of a form of another language are none.
            let read = args.first().is_some_and(|brackets| self.subscript(None, *brackets).is_some());
            let plain = !read && (super::foreign::is_operator(name) || super::foreign::function(name).is_empty());
            if plain && self.infix(&[&[head], args].concat()).is_none() {
                self.each(args, Self::expr)?;
            }
            return Err(Diagnostic::consequence());
        }
        let ids = self.each(args, Self::expr)?;
        self.call_on(at, head, &named, &ids, args)
    }

    /// A call of a named function where a lambda could stand. Functions of one argument that are
    /// forms may stand there, too.
    pub(super) fn call_named(&mut self, at: usize, named: &Named, ids: &[Id]) -> Result<Id> {
        let name = named.name.as_str();
        if let ("sum" | "size", [of]) = (name, ids) {
            return match (name, self.terms.ty(*of).as_tensor()) {
                ("size", Some((rank, _))) if rank > 1 => {
                    let sizes = (0..rank).map(|k| self.terms.put(Head::Size(k), [*of])).collect::<Vec<_>>();
                    Ok(self.terms.put(Head::Tuple, sizes))
                }
                ("size", _) => self.node(at, Head::Size(0), ids, &[]),
                _ => self.node(at, Head::Sum, ids, &[]),
            };
        }
        let part = name.strip_prefix("get$").and_then(|rest| rest.split_once('$'));
        if let Some((Ok(i @ 1..), Ok(n))) = part.map(|(i, n)| (i.parse::<u32>(), n.parse::<u32>())) {
            return self.node(at, Head::Get(i - 1, n), ids, &[]);
        }
        if super::expr::is_form(name) && !self.by_name.contains_key(name) {
            let label = format!("write `(lam (x : …) ({name} …))`");
            return Err(self.error(at, &format!("`{name}` is a form, no function that has a value"), &label));
        }
        self.call_on(at, at, named, ids, &[])
    }

    /// Whether a name can be called with arguments of these types.
    pub(super) fn accepts(&self, name: &str, tys: &[Ty]) -> bool {
        let packed = Ty::tuple(tys.to_vec());
        let takes = |params: &[Ty]| {
            params == tys || params == [packed] || matches!(tys, [one] if one.as_tuple() == Some(params))
        };
        let user = self.by_name.get(name).into_iter().flatten().any(|f| takes(&f.sig().params));
        let name = if self.by_name.contains_key(name) { name } else { suffixed(name).map_or(name, |(base, _)| base) };
        let parts = if let [one] = tys { one.as_tuple() } else { None };
        let op = |tys: &[Ty]| Op::named(name).any(|op| op.result_ty(tys).is_some());
        user || op(tys) || parts.is_some_and(op) || in_prelude(name, tys, None)
    }

    /// A call on arguments that have been read.
    fn call_on(&mut self, at: usize, head: usize, named: &Named, ids: &[Id], args: &[usize]) -> Result<Id> {
        let tys: Vec<Ty> = ids.iter().map(|i| self.terms.ty(*i)).collect();
        if !(named.fits(&tys) || tys.len() == 1 && named.fits(tys[0].as_tuple().unwrap_or_default())) {
            return Err(self.other_argument(head, named, "is given", &tys));
        }
        let name = named.name.as_str();
        if let Some(id) = self.user_call(at, named, ids, &tys, args)? {
            return Ok(id);
        }
        if let Some(id) = self.known_call(at, name, ids, &tys, args)? {
            return Ok(id);
        }
        if let Some((base, said)) = suffixed(name)
            && !self.by_name.contains_key(name)
            && packed(&said) == packed(&tys)
        {
            let base = Named { name: base.to_string(), arg: None };
            if let Some(id) = self.user_call(at, &base, ids, &tys, args)? {
                return Ok(id);
            }
            if let Some(id) = self.known_call(at, &base.name, ids, &tys, args)? {
                return Ok(id);
            }
        }
        if let Some(id) = self.derivative_call(at, named, ids, &tys)? {
            return Ok(id);
        }
        Err(self.no_such_call(head, name, ids, &tys, args))
    }

    /// A call of a named function with values, where it takes them.
    pub(super) fn call_values(&mut self, head: usize, ids: &[Id]) -> Result<Option<Id>> {
        let named = self.fun_name(head)?;
        let tys: Vec<Ty> = ids.iter().map(|i| self.terms.ty(*i)).collect();
        if let Some(id) = self.user_call(head, &named, ids, &tys, &[])? {
            return Ok(Some(id));
        }
        match self.known_call(head, &named.name, ids, &tys, &[])? {
            Some(id) => Ok(Some(id)),
            None => self.derivative_call(head, &named, ids, &tys),
        }
    }

    /// A call of an operation or of a prelude function, where there is one.
    pub(super) fn known_call(
        &mut self,
        at: usize,
        name: &str,
        ids: &[Id],
        tys: &[Ty],
        places: &[usize],
    ) -> Result<Option<Id>> {
        if let Some(op) = Op::named(name).find(|op| op.result_ty(tys).is_some()) {
            self.plainly(op, tys);
            return self.node(at, Head::Op(op), ids, places).map(Some);
        }
        if MANY.contains(&name) && ids.len() > 2 {
            let mut all = ids[0];
            for k in 1..ids.len() {
                let (pair, tys) = ([all, ids[k]], [self.terms.ty(all), tys[k]]);
                let own = Named { name: name.to_string(), arg: None };
                if let Some(id) = self.user_call(at, &own, &pair, &tys, &[at])? {
                    all = id;
                    continue;
                }
                let Some(op) = Op::named(name).find(|op| op.result_ty(&tys).is_some()) else { return Ok(None) };
                self.plainly(op, &tys);
                all = self.node(at, Head::Op(op), &pair, &[at])?;
            }
            return Ok(Some(all));
        }
        // One argument that is a tuple stands for several.
        if let ([one], [ty]) = (ids, tys)
            && let Some(parts) = ty.as_tuple()
            && let Some(op) = Op::named(name).find(|op| op.result_ty(parts).is_some())
        {
            let mark = self.opened();
            let kids = self.unpack(*one, parts.len());
            let id = self.node(at, Head::Op(op), &kids, &[])?;
            return Ok(Some(self.close(mark, id)));
        }
        if let Some(made) = self.prelude_call(at, name, ids, tys)? {
            return Ok(Some(made));
        }
        match (ids, tys) {
            ([one], [ty]) if ty.as_tuple().is_some() => self.prelude_call_of_tuple(at, name, *one, *ty),
            _ => Ok(None),
        }
    }

    /// A call of a function of the prelude with a tuple of its arguments.
    fn prelude_call_of_tuple(&mut self, at: usize, name: &str, one: Id, ty: Ty) -> Result<Option<Id>> {
        let before = (self.mark(), self.opened());
        let parts = ty.as_tuple().unwrap_or_default();
        let kids = self.unpack(one, parts.len());
        match self.prelude_call(at, name, &kids, parts)? {
            Some(id) => Ok(Some(self.close(before.1, id))),
            None => {
                self.restore(&before.0);
                Ok(None)
            }
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

    /// A call of a function of the program, where one takes these arguments.
    pub(super) fn user_call(
        &mut self,
        at: usize,
        named: &Named,
        ids: &[Id],
        tys: &[Ty],
        places: &[usize],
    ) -> Result<Option<Id>> {
        let funs = self.meant(named);
        if let Some(f) = funs.iter().find(|f| f.sig().params == tys) {
            self.one_of(at, named, &funs, *f)?;
            return self.node(at, Head::Call(*f), ids, places).map(Some);
        }
        let packed = Ty::tuple(tys.to_vec());
        if let Some(f) = funs.iter().find(|f| f.sig().params == [packed]) {
            self.one_of(at, named, &funs, *f)?;
            let arg = self.terms.put(Head::Tuple, ids.iter().copied());
            return self.node(at, Head::Call(*f), &[arg], &[at]).map(Some);
        }
        let parts = if tys.len() == 1 { tys[0].as_tuple() } else { None };
        if let Some((parts, f)) = parts.and_then(|p| Some((p, funs.iter().copied().find(|f| f.sig().params == p)?))) {
            self.one_of(at, named, &funs, f)?;
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
                let all = [*x, *lo, *hi].map(|id| self.val(id));
                self.spell("clamp", &[0, 1, 2], tys, |e, args| Ok(e.clamped(args)))?;
                self.clamped(&all)
            }
            ("revpow", [x, n, dr], [a, b, c]) if *a == Ty::float() && *b == Ty::int() && *c == Ty::float() => {
                let all = [*x, *n, *dr].map(|id| self.val(id));
                self.spell("revpow", &[], tys, |e, args| Ok(e.power_back(args)))?;
                self.power_back(&all)
            }
            ("eq" | "ne", [a, b], [ta, tb]) if ta == tb => {
                let (a, b) = (self.val(*a), self.val(*b));
                let (a, b) = (self.now(a), b);
                let a = self.bind(a);
                let b = self.now(b);
                let b = self.bind(b);
                let shape = |e: &mut Self, args: &[Val]| Ok(e.equal(args[0], args[1]));
                let same = if ta.has_tensor() { self.spell_as("eq", &[a, b], shape)? } else { shape(self, &[a, b])? };
                if name == "eq" { same } else { self.op(Op::Not, &[same]) }
            }
            ("setAt", [place, tensor, new], [at_place, of, with])
                if of.as_tensor().is_some_and(|(rank, elem)| elem == *with && *at_place == Ty::index(rank)) =>
            {
                let (place, tensor, new) = (self.val(*place), self.val(*tensor), self.val(*new));
                self.with_element(at, [place, tensor, new])?
            }
            ("pr", ids, _) => {
                let line = self.terms.lit(Lit::Str("\n"));
                let lines: Vec<Id> =
                    ids.iter().flat_map(|id| [*id, line]).take((2 * ids.len()).saturating_sub(1)).collect();
                return self.node(at, Head::Print, &lines, &[]).map(Some);
            }
            ("mymul", [r, v], [a, _]) if *a == Ty::float() => {
                self.spell_operation("mymul", Op::Mul, &[*r, *v])?;
                return self.node(at, Head::Op(Op::Mul), &[*r, *v], &[]).map(Some);
            }
            ("max" | "imax" | "min" | "imin", [v], [t])
                if t.as_tensor().is_some_and(|(r, e)| r == 1 && e.as_scalar().is_some_and(|s| s.is_float())) =>
            {
                let v = self.bind(*v);
                let name = ["max", "imax", "min", "imin"].into_iter().find(|n| *n == name).unwrap_or("max");
                self.extremum(at, name, v)?
            }
            ("matmul", [a, b], [ta, tb])
                if ta == tb
                    && ta
                        .as_tensor()
                        .is_some_and(|(r, e)| r == 2 && e.as_scalar().is_some_and(|s| s != Scalar::Bool)) =>
            {
                let b = self.val(*b);
                let a = self.bind(*a);
                let b = self.now(b);
                let b = self.bind(b);
                self.matrix_product(at, a, b)?
            }
            ("mul" | "matmul", [m, v], [tm, tv])
                if tv.as_tensor().is_some_and(|(r, e)| r == 1 && e.as_scalar().is_some()) =>
            {
                let matrix = Ty::tensor(1, *tv);
                let dense = tv.as_tensor().map(|(_, e)| Ty::tensor(2, e));
                if *tm != matrix && Some(*tm) != dense {
                    return Ok(None);
                }
                let v = self.val(*v);
                let m = self.bind(*m);
                let v = self.now(v);
                let v = self.bind(v);
                self.matrix_times_vector(at, name, (m, v))?
            }
            _ => return Ok(None),
        };
        Ok(Some(self.close(mark, id)))
    }

    fn clamped(&mut self, args: &[Val]) -> Id {
        let args = self.all_now(args);
        let top = self.op(Op::Max, &args[..2]);
        self.op(Op::Min, &[top, args[2]])
    }

    fn power_back(&mut self, args: &[Val]) -> Id {
        let args = self.all_now(args);
        let one = self.int(1);
        let less = self.op(Op::Sub, &[args[1], one]);
        let power = self.op(Op::Pow, &[args[0], less]);
        let factor = self.op(Op::ToFloat, &[args[1]]);
        let slope = self.op(Op::Mul, &[factor, power]);
        self.op(Op::Mul, &[slope, args[2]])
    }

    fn extremum(&mut self, at: usize, name: &'static str, v: Val) -> Result<Id> {
        let ty = self.terms.ty(v.id);
        let shape = |e: &mut Self, v: Val| {
            let size = e.sizes(v, 1)[0];
            let body = e.under(&[Ty::int()], |e, levels| e.element(levels, v));
            let monoid = if name.ends_with("max") { Monoid::Max } else { Monoid::Min };
            let head = if name.starts_with('i') { Head::Arg(monoid) } else { Head::Reduce(monoid, 1) };
            e.node(at, head, &[size, body], &[])
        };
        self.spell(name, &[], &[ty], |e, args| shape(e, args[0]))?;
        shape(self, v)
    }

    fn matrix_times_vector(&mut self, at: usize, name: &str, factors: (Val, Val)) -> Result<Id> {
        let name = if name == "mul" { "mul" } else { "matmul" };
        self.product(at, name, factors, |e, (m, v), inner| {
            let rows = e.sizes(m, 1)[0];
            let nested = e.terms.ty(m.id).as_tensor().is_some_and(|(r, _)| r == 1);
            let from = e.depth();
            e.scope.push(Ty::int());
            // A row of a nested matrix is read once.
            let within = e.opened();
            let (mat, i) = (e.now(m), e.level(from));
            let row = if nested {
                let row = e.node(at, Head::Index(1), &[i, mat], &[])?;
                Some(e.bind(row))
            } else {
                None
            };
            let size = e.now(inner);
            let outside = e.depth();
            e.scope.push(Ty::int());
            let (i, j) = (e.level(from), e.level(outside));
            let entry = match row {
                Some(row) => {
                    let row = e.now(row);
                    e.node(at, Head::Index(1), &[j, row], &[])?
                }
                None => {
                    let mat = e.now(m);
                    e.node(at, Head::Index(2), &[i, j, mat], &[])?
                }
            };
            let x = e.element(&[outside], v);
            e.terms.mark(x, e.tree.at(at).span);
            let body = e.op(Op::Mul, &[entry, x]);
            e.scope.truncate(outside);
            let row = e.node(at, Head::Reduce(Monoid::Add, 1), &[size, body], &[])?;
            let row = e.close(within, row);
            e.scope.truncate(from);
            // Without rows there is no column to count: the inner size of an empty tensor is 0.
            let zero = e.int(0);
            let none = e.op(Op::Eq, &[rows, zero]);
            Ok((e.node(at, Head::Build(1), &[rows, row], &[])?, Some(none)))
        })
    }

    /// The matrix product; it fails where the rows of the first have another size than the columns
    /// of the second.
    fn matrix_product(&mut self, at: usize, a: Val, b: Val) -> Result<Id> {
        self.product(at, "matmul", (a, b), |e, (a, b), inner| {
            let (rows, across) = (e.sizes(a, 2)[0], e.sizes(b, 2)[1]);
            let from = e.depth();
            e.scope.extend([Ty::int(), Ty::int()]);
            let size = e.now(inner);
            e.scope.push(Ty::int());
            let x = e.element(&[from, from + 2], a);
            let y = e.element(&[from + 2, from + 1], b);
            for read in [x, y] {
                e.terms.mark(read, e.tree.at(at).span);
            }
            let product = e.op(Op::Mul, &[x, y]);
            e.scope.truncate(from + 2);
            let sum = e.node(at, Head::Reduce(Monoid::Add, 1), &[size, product], &[])?;
            e.scope.truncate(from);
            Ok((e.node(at, Head::Build(2), &[rows, across, sum], &[])?, None))
        })
    }

    /// What `made` makes of the size that two factors have in common, checked: the columns of the first must be as many
    /// as the second has rows or elements, unless a condition holds that `made` gives, too.
    fn product(
        &mut self,
        at: usize,
        name: &'static str,
        (m, with): (Val, Val),
        made: impl Fn(&mut Self, (Val, Val), Val) -> Result<(Id, Option<Id>)>,
    ) -> Result<Id> {
        self.spell_as(name, &[m, with], |e, args| {
            let (mark, factors) = (e.opened(), (args[0], args[1]));
            let mat = e.now(factors.0);
            let (columns, rows) = (e.axis(mat, 1), e.sizes(factors.1, 1)[0]);
            if e.share_name(columns, rows) {
                let columns = e.val(columns);
                return Ok(made(e, factors, columns)?.0);
            }
            let first = e.size_name(columns).is_some();
            let columns = e.val(columns);
            let rows = if first { e.val(rows) } else { e.bind(rows) };
            let (product, unless) = made(e, factors, if first { columns } else { rows })?;
            let (columns, rows) = (e.now(columns), e.now(rows));
            let mut fits = e.op(Op::Eq, &[columns, rows]);
            if let Some(unless) = unless {
                fits = e.op(Op::Or, &[unless, fits]);
            }
            let id = e.node(at, Head::Assert, &[fits, product], &[])?;
            e.fits.insert(id, vec![(columns, rows)]);
            Ok(e.close(mark, id))
        })
    }
}
