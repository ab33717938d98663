//! The reference interpreter: a program and arguments become a value. It defines the language.
//!
//! Simple before fast. It must not know of any optimization.

mod count;
mod event;
pub mod json;
pub mod large;
pub mod numbers;
mod room;
pub mod tally;
pub mod value;

pub use event::{Event, What};
pub use numbers::{Number, Numbers};
pub use tally::Tally;
pub use value::{Dims, Elements, Tensor, Value};

use crate::diag::{Diagnostic, Kind, Result};
use crate::ir::op::Failure;
use crate::ir::{Body, Def, Fun, Head, Id, Lit, Monoid, Op, Program, Terms, TyKind, deep};
use crate::types::shape;
use rustc_hash::FxHashMap;
use smallvec::smallvec;
use std::cell::{Cell, RefCell};

/// A tensor may have so many elements, whatever their type: those of 8 bytes take 4 GiB.
pub const MAX_ELEMENTS: usize = 1 << 29;

/// Calls may nest so deep.
pub const MAX_CALLS: usize = 100_000;

/// Runs the definitions of a program.
pub struct Interpreter<'a> {
    program: &'a Program,
    /// The program's terms and those for the sizes of sums over nothing.
    terms: Terms,
    /// Sizes of a sum's element where the sum has nothing to take them from.
    empty: FxHashMap<Id, Vec<Id>>,
    calls: Cell<usize>,
    /// What `print` wrote.
    printed: RefCell<String>,
    /// The greatest finite magnitude of any float that a scalar operation gave.
    magnitude: Cell<f64>,
    /// How many terms a run may evaluate.
    allowed: u64,
    /// How many more the present one may.
    work: Cell<u64>,
    /// Told of what is done to scalars.
    watch: Option<&'a dyn Fn(&Event<'_>)>,
    /// What was done so far, where that is counted.
    tally: Option<RefCell<Tally>>,
}

impl<'a> Interpreter<'a> {
    /// Prepares a program.
    pub fn new(program: &'a Program) -> Interpreter<'a> {
        let (terms, empty) = shape::empty_sums(program);
        let terms = terms.into_owned();
        let (calls, printed, magnitude) = Default::default();
        Interpreter {
            program,
            terms,
            empty,
            calls,
            printed,
            magnitude,
            allowed: u64::MAX,
            work: Cell::new(u64::MAX),
            watch: None,
            tally: None,
        }
    }

    /// Evaluates at most so many terms in a run, those of every round of a loop counted; then it ends
    /// with a limit.
    pub fn with_work(self, terms: u64) -> Interpreter<'a> {
        Interpreter { allowed: terms, ..self }
    }

    /// Tells of all that is done to scalars.
    pub fn watched(self, watch: &'a dyn Fn(&Event<'_>)) -> Interpreter<'a> {
        Interpreter { watch: Some(watch), ..self }
    }

    fn tell(&self, at: Id, what: What, args: &[Lit], value: Lit) {
        if let Some(watch) = self.watch {
            watch(&Event { at, what, args, value });
        }
        self.count_event(what, args, value);
    }

    /// The value of a definition at arguments.
    ///
    /// # Errors
    /// The failures of the language, with the places of the failing expression.
    pub fn run(&self, def: &Def, args: &[Value]) -> Result<Value> {
        self.calls.set(0);
        self.work.set(self.allowed);
        self.call(def, args.to_vec(), None).map_err(|d| d.within(&self.program.source))
    }

    /// Takes what `print` wrote so far.
    pub fn take_printed(&self) -> String {
        self.printed.take()
    }

    /// The greatest finite magnitude seen since the start: the scale of rounding errors.
    pub fn magnitude(&self) -> f64 {
        self.magnitude.get()
    }

    fn call(&self, def: &Def, args: Vec<Value>, at: Option<Id>) -> Result<Value> {
        for ((p, a), (q, b), name) in def.equal_sizes() {
            let (n, m) = (args[p].size(a), args[q].size(b));
            if n != m {
                let (p, q) = (&def.params[p].name, &def.params[q].name);
                let (n, m) = (n.unwrap_or(0), m.unwrap_or(0));
                let message = format!("sizes disagree: `{name}` is {n} in `{p}` and {m} in `{q}`");
                return Err(match at {
                    Some(at) => self.fail(at, message),
                    None => Diagnostic::user(message).at(def.span, "at the call of this function"),
                });
            }
        }
        let Some(body) = def.term() else {
            let message = match def.body {
                Body::Derivative => format!("the derivative `{}` is declared, but not made", def.name()),
                Body::External | Body::Term(_) => format!("`{}` is declared, but not defined here", def.name()),
            };
            return Err(match at {
                Some(at) => self.fail(at, message),
                None => Diagnostic::user(message).at(def.span, "only declared"),
            });
        };
        if self.calls.get() >= MAX_CALLS {
            let message = format!("recursion is deeper than {MAX_CALLS} calls");
            return Err(Diagnostic::limit(message).at(def.span, "in this function"));
        }
        self.calls.set(self.calls.get() + 1);
        let mut env = args;
        let out = self.eval(body, &mut env);
        self.calls.set(self.calls.get() - 1);
        out
    }

    /// A failure at a term, with every place where the term stands.
    fn fail(&self, at: Id, message: impl Into<String>) -> Box<Diagnostic> {
        let mut d = Diagnostic::user(message);
        for (k, span) in self.terms.spans(at).iter().enumerate() {
            d = d.at(*span, if k == 0 { "this expression" } else { "which also stands here" });
        }
        d
    }

    fn scalar(&self, id: Id, env: &mut Vec<Value>) -> Result<Lit> {
        match self.eval(id, env)? {
            Value::Scalar(l) => Ok(l),
            Value::Tuple(_) | Value::Tensor(_) => Err(Diagnostic::bug("a scalar was expected in evaluation")),
        }
    }

    fn int(&self, id: Id, env: &mut Vec<Value>) -> Result<i64> {
        Ok(self.scalar(id, env)?.as_int().unwrap_or_default())
    }

    /// A size: not negative, and small enough to be made.
    fn size(&self, at: Id, id: Id, env: &mut Vec<Value>) -> Result<usize> {
        let n = self.int(id, env)?;
        usize::try_from(n).map_err(|_| self.fail(at, format!("negative size {n}")))
    }

    fn sizes(&self, at: Id, ids: &[Id], env: &mut Vec<Value>) -> Result<Dims> {
        ids.iter().map(|k| self.size(at, *k, env)).collect()
    }

    fn tensor(&self, id: Id, env: &mut Vec<Value>) -> Result<std::sync::Arc<Tensor>> {
        match self.eval(id, env)? {
            Value::Tensor(t) => Ok(t),
            Value::Scalar(_) | Value::Tuple(_) => Err(Diagnostic::bug("a tensor was expected in evaluation")),
        }
    }

    fn eval(&self, id: Id, env: &mut Vec<Value>) -> Result<Value> {
        let Some(left) = self.work.get().checked_sub(1) else {
            return Err(self.limit(id, "the work that may be done is done".into()));
        };
        self.work.set(left);
        let node = self.terms.node(id);
        match node.head {
            Head::Const(l) => Ok(Value::Scalar(l)),
            Head::Var(i, _) => Ok(env[env.len() - 1 - i as usize].clone()),
            Head::Op(op) if node.kids.len() <= 2 && !self.terms.ty(id).has_tensor() => self.op(id, op, &node.kids, env),
            _ => deep(|| self.node(id, env)),
        }
    }

    fn op(&self, id: Id, op: Op, kids: &[Id], env: &mut Vec<Value>) -> Result<Value> {
        let mut args = [Value::Scalar(Lit::Bool(false)), Value::Scalar(Lit::Bool(false))];
        for (slot, k) in args.iter_mut().zip(kids) {
            *slot = deep(|| self.eval(*k, env))?;
        }
        self.lift(id, op, &args[..kids.len()])
    }

    #[expect(clippy::too_many_lines, reason = "one arm a head")]
    fn node(&self, id: Id, env: &mut Vec<Value>) -> Result<Value> {
        let node = self.terms.node(id);
        let kids = &node.kids;
        match node.head {
            Head::Const(_) | Head::Var(..) => self.eval(id, env),
            Head::Let => {
                let value = self.eval(kids[0], env)?;
                env.push(value);
                let out = self.eval(kids[1], env);
                env.pop();
                out
            }
            Head::If => {
                let c = self.scalar(kids[0], env)?.as_bool() == Some(true);
                self.count(Tally::branch);
                self.eval(kids[if c { 1 } else { 2 }], env)
            }
            Head::Assert => match self.scalar(kids[0], env)?.as_bool() {
                Some(true) => self.eval(kids[1], env),
                _ => Err(self.fail(id, "assertion failed")),
            },
            Head::Tuple => Ok(Value::tuple(self.each(kids, env)?)),
            Head::Get(i, _) => match self.eval(kids[0], env)? {
                Value::Tuple(parts) => Ok(parts[i as usize].clone()),
                Value::Scalar(_) | Value::Tensor(_) => Err(Diagnostic::bug("a tuple was expected in evaluation")),
            },
            Head::Call(f) => self.call_at(id, f, kids, env),
            Head::Op(op) => {
                let args = self.each(kids, env)?;
                self.lift(id, op, &args)
            }
            Head::Cast(s) => {
                let l = self.scalar(kids[0], env)?;
                let out = l.cast(s).ok_or_else(|| Diagnostic::bug("a text was cast"))?;
                self.tell(id, What::Cast(s), &[l], out);
                Ok(Value::Scalar(out))
            }
            Head::Build(d) => {
                let dims = self.sizes(id, &kids[..d], env)?;
                self.build(id, dims, kids[d], env)
            }
            Head::Reduce(m, d) => self.reduce(id, m, d, env),
            Head::Arg(m) => self.arg(id, m, env),
            Head::Sum => {
                let t = self.tensor(kids[0], env)?;
                let mut acc = self.zero(id, self.terms.ty(id), t.first().as_ref(), env)?;
                self.read_all(t.elements());
                for x in t.iter() {
                    acc = self.lift(id, Op::Add, &[acc, x])?;
                }
                Ok(acc)
            }
            Head::Index(d) => {
                let index: Vec<i64> = kids[..d].iter().map(|k| self.int(*k, env)).collect::<Result<_>>()?;
                let t = self.tensor(kids[d], env)?;
                match offset(&index, &t.dims) {
                    Some(at) => {
                        let element = t.get(at);
                        self.read(&element);
                        Ok(element)
                    }
                    None => {
                        Err(self.fail(id, format!("index out of range: {}, of size {}", list(&index), list(&t.dims))))
                    }
                }
            }
            Head::Size(k) => {
                let t = self.eval(kids[0], env)?;
                Ok(Value::Scalar(Lit::int(t.size(k).unwrap_or_default() as i64)))
            }
            Head::Fold => {
                let mut state = self.eval(kids[0], env)?;
                for x in self.tensor(kids[1], env)?.iter() {
                    self.read(&x);
                    state = self.step(id, kids[2], state, x, env)?;
                }
                Ok(state)
            }
            Head::Scan => {
                let mut state = self.eval(kids[0], env)?;
                let n = self.size(id, kids[1], env)?;
                let mut states = self.room(id, &[n])?;
                for k in 0..n {
                    state = self.step(id, kids[2], state, Value::Scalar(Lit::int(k as i64)), env)?;
                    states.push(state.clone());
                }
                Ok(self.made(smallvec![n], states))
            }
            Head::ConstVec(d) => {
                let dims = self.sizes(id, &kids[..d], env)?;
                let value = self.eval(kids[d], env)?;
                let elements = self.filled(id, &dims, &value)?;
                Ok(self.made(dims, elements))
            }
            Head::DeltaVec(d) => {
                let dims = self.sizes(id, &kids[..d], env)?;
                let index: Vec<i64> = kids[d..2 * d].iter().map(|k| self.int(*k, env)).collect::<Result<_>>()?;
                let value = self.eval(kids[2 * d], env)?;
                let mut elements = self.filled(id, &dims, &value.zero_like())?;
                if let Some(at) = offset(&index, &dims) {
                    elements.set(at, value);
                }
                Ok(self.made(dims, elements))
            }
            Head::VecInit => {
                let elements = Elements::from(self.each(kids, env)?);
                self.same_shapes(id, &elements)?;
                Ok(self.made(smallvec![elements.len()], elements))
            }
            Head::Scatter(d) => self.scatter(id, d, env),
            Head::Print => {
                let n = json::print(&self.each(kids, env)?, &mut self.printed.borrow_mut());
                Ok(Value::Scalar(Lit::int(n as i64)))
            }
        }
    }

    fn each(&self, kids: &[Id], env: &mut Vec<Value>) -> Result<Vec<Value>> {
        kids.iter().map(|k| self.eval(*k, env)).collect()
    }

    fn call_at(&self, id: Id, f: Fun, kids: &[Id], env: &mut Vec<Value>) -> Result<Value> {
        let args = self.each(kids, env)?;
        match self.program.defs.get(&f) {
            Some(def) => self.call(def, args, Some(id)),
            None => Err(self.fail(id, format!("`{}` has no definition", f.sig().name))),
        }
    }

    /// A scalar operation, by element on tensors and tuples.
    fn lift(&self, id: Id, op: Op, args: &[Value]) -> Result<Value> {
        let mut lits = [Lit::Bool(false); 3];
        let scalars = args.len() <= 3
            && args.iter().zip(&mut lits).all(|(v, slot)| match v {
                Value::Scalar(l) => {
                    *slot = *l;
                    true
                }
                Value::Tuple(_) | Value::Tensor(_) => false,
            });
        if scalars {
            let out = op.eval(&lits[..args.len()]).map_err(|f| match f {
                Failure::DivisionByZero => self.fail(id, "division by zero"),
                Failure::Types => Diagnostic::bug(format!("`{}` was given wrong types in evaluation", op.name())),
            })?;
            if let Some(v) = out.as_f64().filter(|v| v.abs() > self.magnitude.get() && v.is_finite()) {
                self.magnitude.set(v.abs());
            }
            self.tell(id, What::Op(op), &lits[..args.len()], out);
            return Ok(Value::Scalar(out));
        }
        let tensor = args.iter().find_map(|v| match v {
            Value::Tensor(t) => Some(t),
            Value::Scalar(_) | Value::Tuple(_) => None,
        });
        if let Some(first) = tensor {
            for v in args {
                let Value::Tensor(t) = v else { continue };
                if t.dims != first.dims {
                    let message = format!("sizes disagree: {} and {}", list(&first.dims), list(&t.dims));
                    return Err(self.fail(id, message));
                }
                self.read_all(t.elements());
            }
            let at = |k: usize, v: &Value| match v {
                Value::Tensor(t) => t.get(k),
                Value::Scalar(_) | Value::Tuple(_) => v.clone(),
            };
            let each = (0..first.len()).map(|k| self.lift_each(id, op, args, |v| at(k, v)));
            return Ok(self.made(first.dims.clone(), each.collect::<Result<_>>()?));
        }
        let n = args.iter().find_map(|v| if let Value::Tuple(p) = v { Some(p.len()) } else { None }).unwrap_or(0);
        let at = |k: usize, v: &Value| match v {
            Value::Tuple(p) => p[k].clone(),
            Value::Scalar(_) | Value::Tensor(_) => v.clone(),
        };
        let each = (0..n).map(|k| self.lift_each(id, op, args, |v| at(k, v)));
        Ok(Value::tuple(each.collect::<Result<_>>()?))
    }

    /// The operation on something of each argument.
    fn lift_each(&self, id: Id, op: Op, args: &[Value], of: impl Fn(&Value) -> Value) -> Result<Value> {
        match args {
            [a] => self.lift(id, op, &[of(a)]),
            [a, b] => self.lift(id, op, &[of(a), of(b)]),
            all => self.lift(id, op, &all.iter().map(of).collect::<Vec<_>>()),
        }
    }

    /// All index tuples in order, the last one fastest, as variables of the body.
    fn indices(
        &self,
        id: Id,
        dims: &[usize],
        env: &mut Vec<Value>,
        mut body: impl FnMut(&mut Vec<Value>, usize) -> Result<()>,
    ) -> Result<()> {
        let Some(total) = product(dims) else {
            return Err(self.limit(id, format!("a loop over {} indices is too long", list(dims))));
        };
        for at in 0..total {
            let mut rest = at;
            let from = env.len();
            env.resize(from + dims.len(), Value::Scalar(Lit::int(0)));
            for (k, n) in dims.iter().enumerate().rev() {
                env[from + k] = Value::Scalar(Lit::int((rest % n) as i64));
                rest /= n;
            }
            let done = body(env, at);
            env.truncate(from);
            done?;
        }
        Ok(())
    }

    fn limit(&self, id: Id, message: String) -> Box<Diagnostic> {
        let mut d = self.fail(id, message);
        d.kind = Kind::Limit;
        d
    }

    fn build(&self, id: Id, dims: Dims, body: Id, env: &mut Vec<Value>) -> Result<Value> {
        let mut elements = self.room(id, &dims)?;
        self.indices(id, &dims, env, |env, _| {
            elements.push(self.eval(body, env)?);
            Ok(())
        })?;
        self.same_shapes(id, &elements)?;
        Ok(self.made(dims, elements))
    }

    fn same_shapes(&self, id: Id, elements: &Elements) -> Result<()> {
        if elements.same_shapes() { Ok(()) } else { Err(self.fail(id, "elements differ in shape")) }
    }

    fn step(&self, id: Id, body: Id, state: Value, x: Value, env: &mut Vec<Value>) -> Result<Value> {
        let old = state.clone();
        env.push(state);
        env.push(x);
        let new = self.eval(body, env);
        env.truncate(env.len() - 2);
        let new = new?;
        if !old.same_shape(&new) {
            return Err(self.fail(id, "the state changes its shape"));
        }
        Ok(new)
    }

    fn reduce(&self, id: Id, m: Monoid, d: usize, env: &mut Vec<Value>) -> Result<Value> {
        let kids = &self.terms.node(id).kids;
        let dims = self.sizes(id, &kids[..d], env)?;
        let op = self.terms.ty(id).as_scalar().map_or(m.op(), |s| m.combines(s));
        let mut acc = match self.terms.ty(id).as_scalar().and_then(|s| m.identity(s)) {
            Some(identity) => Some(Value::Scalar(identity)),
            None if dims.contains(&0) => Some(self.zero(id, self.terms.ty(id), None, env)?),
            None => None,
        };
        self.indices(id, &dims, env, |env, _| {
            let x = self.eval(kids[d], env)?;
            let old = acc.take().unwrap_or_else(|| self.made_all(x.zero_like()));
            acc = Some(self.lift(id, op, &[old, x])?);
            Ok(())
        })?;
        acc.ok_or_else(|| Diagnostic::bug("a reduction has no value"))
    }

    fn arg(&self, id: Id, m: Monoid, env: &mut Vec<Value>) -> Result<Value> {
        let kids = &self.terms.node(id).kids;
        let n = self.size(id, kids[0], env)?;
        let mut best: Option<(Lit, usize)> = None;
        self.indices(id, &[n], env, |env, k| {
            let key = self.scalar(kids[1], env)?;
            let op = if m == Monoid::Min { Op::Lt } else { Op::Gt };
            let better = best.is_none_or(|(b, _)| m.takes(key, b));
            if let Some((b, _)) = best {
                self.tell(id, What::Op(op), &[key, b], Lit::Bool(better));
            }
            if better {
                best = Some((key, k));
            }
            Ok(())
        })?;
        match best {
            Some((_, k)) => Ok(Value::Scalar(Lit::int(k as i64))),
            None => Err(self.fail(id, "no least or greatest of nothing")),
        }
    }

    fn scatter(&self, id: Id, d: usize, env: &mut Vec<Value>) -> Result<Value> {
        let kids = &self.terms.node(id).kids;
        let dims = self.sizes(id, &kids[..d], env)?;
        let n = self.size(id, kids[d], env)?;
        let TyKind::Tensor(_, elem) = self.terms.ty(id).kind() else {
            return Err(Diagnostic::bug("a scatter gives a tensor"));
        };
        let zero = self.zero(id, *elem, None, env)?;
        let mut elements = self.filled(id, &dims, &zero)?;
        self.indices(id, &[n], env, |env, _| {
            let Value::Tuple(pair) = self.eval(kids[d + 1], env)? else {
                return Err(Diagnostic::bug("a scatter takes pairs"));
            };
            let index: Vec<i64> = match &pair[0] {
                Value::Tuple(each) => each.iter().filter_map(|v| v.lit()?.as_int()).collect(),
                one => one.lit().and_then(Lit::as_int).into_iter().collect(),
            };
            let Some(at) = offset(&index, &dims) else {
                return Err(self.fail(id, format!("index out of range: {}, of size {}", list(&index), list(&dims))));
            };
            let old = elements.get(at);
            self.read(&old);
            let new = self.lift(id, Op::Add, &[old, pair[1].clone()])?;
            self.rewritten(&new);
            elements.set(at, new);
            Ok(())
        })?;
        Ok(self.made(dims, elements))
    }
}

/// The number of elements; nothing where it is too large to count.
pub fn product(dims: &[usize]) -> Option<usize> {
    // Sizes around a 0 make nothing, however large they are.
    if dims.contains(&0) { Some(0) } else { dims.iter().try_fold(1usize, |a, n| a.checked_mul(*n)) }
}

/// The row-major place of an index; nothing where it is out of range.
fn offset(index: &[i64], dims: &[usize]) -> Option<usize> {
    let mut at = 0;
    for (i, n) in index.iter().zip(dims) {
        let i = usize::try_from(*i).ok().filter(|i| i < n)?;
        at = at * n + i;
    }
    Some(at)
}

fn list<T: ToString>(each: &[T]) -> String {
    match each {
        [one] => one.to_string(),
        many => format!("({})", many.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")),
    }
}
