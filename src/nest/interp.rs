//! Runs a nest on values: what compiled code must agree with to the bit, and the judge of every access.
//!
//! It knows nothing of how the nest was made. What is wrong with the nest is a bug that says so; what fails as the
//! program demands is the failure of its place.

use super::memory::{Memory, Pointer};
use super::{Arg, Expr, Failing, Func, Loop, LoopKind, Nest, Slot, Stmt, Var};
use crate::diag::{Diagnostic, Result};
use crate::eval::{self, Tally, Value};
use crate::ir::{Lit, Op, Scalar, Ty, TyKind, deep};
use indexmap::IndexSet;
use rustc_hash::FxHashMap;

/// Runs a nest; what it prints goes to the end of a text.
///
/// # Errors
/// The failures of the program, with their places; bugs of the nest: accesses out of bounds, before a value is
/// there, or after memory is given back, iterations that are not independent, types that do not fit.
pub fn interpret(nest: &Nest, args: &[Value], printed: &mut String) -> Result<Value> {
    Run::new(nest, printed).entry(args)
}

/// As [`interpret`], and what was done: an operation on vectors counts once for each lane. Nothing where the nest is of no
/// use for the arguments, and the reference is to run instead.
///
/// # Errors
/// As [`interpret`].
pub fn count(nest: &Nest, args: &[Value], printed: &mut String) -> Result<Option<(Value, Tally)>> {
    let mut run = Run { tally: Some(Tally::default()), ..Run::new(nest, printed) };
    let value = match run.entry(args) {
        Err(_) if run.gave_up => return Ok(None),
        outcome => outcome?,
    };
    let (bytes, peak) = run.memory.taken();
    Ok(Some((value, Tally { bytes, peak_bytes: Some(peak), ..run.tally.unwrap_or_default() })))
}

fn wrong<T>(what: impl std::fmt::Display) -> Result<T> {
    Err(Diagnostic::bug(format!("the loop nest {what}")))
}

/// A number, or one in each lane.
#[derive(Clone, Debug)]
enum Num {
    One(Lit),
    Many(Vec<Lit>),
}

impl Num {
    fn lit(self) -> Result<Lit> {
        match self {
            Num::One(l) => Ok(l),
            Num::Many(_) => wrong("has a vector where a number is meant"),
        }
    }

    fn int(self) -> Result<i64> {
        match self.lit()?.as_int() {
            Some(v) => Ok(v),
            None => wrong("has no integer where one is meant"),
        }
    }

    fn truth(self) -> Result<bool> {
        match self.lit()?.as_bool() {
            Some(v) => Ok(v),
            None => wrong("has no condition where one is meant"),
        }
    }

    fn each(self) -> Vec<Lit> {
        match self {
            Num::One(l) => vec![l],
            Num::Many(all) => all,
        }
    }
}

/// What is passed in a slot.
#[derive(Clone, Debug)]
enum Word {
    Number(Lit),
    Data(Pointer),
}

/// How a block ended.
#[derive(PartialEq)]
enum Flow {
    On,
    Leave(Var),
}

struct Frame<'a> {
    func: &'a Func,
    vars: Vec<Option<Num>>,
    bufs: Vec<Option<Pointer>>,
    marks: FxHashMap<u32, usize>,
}

struct Run<'a> {
    nest: &'a Nest,
    memory: Memory,
    /// Texts by their numbers: those of the source, then those of the arguments.
    texts: IndexSet<&'static str>,
    printed: &'a mut String,
    /// What was done so far, where that is counted.
    tally: Option<Tally>,
    /// Whether the nest said that it is of no use here.
    gave_up: bool,
}

impl<'a> Run<'a> {
    fn new(nest: &'a Nest, printed: &'a mut String) -> Run<'a> {
        let texts = nest.texts.iter().copied().collect();
        Run { nest, memory: Memory::default(), texts, printed, tally: None, gave_up: false }
    }

    fn entry(&mut self, args: &[Value]) -> Result<Value> {
        let mut words = vec![];
        for (v, ty) in args.iter().zip(&self.nest.params) {
            let mut packed = Packed::new(*ty)?;
            packed.add(v, &mut self.texts)?;
            packed.words(false, &mut self.memory, &mut words);
        }
        let results = self.call(&self.nest.entry, &words)?;
        self.value(self.nest.ret, &[], &mut results.into_iter())
    }

    fn tell(&mut self, f: impl FnOnce(&mut Tally)) {
        if let Some(tally) = &mut self.tally {
            f(tally);
        }
    }

    fn call(&mut self, func: &'a Func, words: &[Word]) -> Result<Vec<Word>> {
        let mut f = Frame {
            func,
            vars: vec![None; func.vars.len()],
            bufs: vec![None; func.bufs.len()],
            marks: FxHashMap::default(),
        };
        f.take(&func.params, words)?;
        deep(|| self.block(&mut f, &func.body))?;
        func.results.iter().map(|r| self.word(&mut f, r)).collect()
    }

    fn word(&mut self, f: &mut Frame<'a>, a: &'a Arg) -> Result<Word> {
        let value = self.expr(f, a.expr())?;
        match a {
            Arg::Scalar(_) | Arg::Size(_) => Ok(Word::Number(value.lit()?)),
            Arg::Data(b, _) => {
                let at = f.buf(*b)?;
                Ok(Word::Data(self.memory.offset(at, value.int()?)?))
            }
        }
    }

    fn block(&mut self, f: &mut Frame<'a>, stmts: &'a [Stmt]) -> Result<Flow> {
        for s in stmts {
            match self.stmt(f, s)? {
                Flow::On => {}
                leave @ Flow::Leave(_) => return Ok(leave),
            }
        }
        Ok(Flow::On)
    }

    fn stmt(&mut self, f: &mut Frame<'a>, s: &'a Stmt) -> Result<Flow> {
        match s {
            Stmt::Let(v, e) | Stmt::Mut(v, e) | Stmt::Set(v, e) => {
                let value = self.expr(f, e)?;
                f.vars[v.0 as usize] = Some(value);
            }
            Stmt::SetLane(v, lane, e) => {
                let (lane, value) = (self.expr(f, lane)?.int()?, self.expr(f, e)?.lit()?);
                match (&mut f.vars[v.0 as usize], usize::try_from(lane)) {
                    (Some(Num::Many(all)), Ok(k)) if k < all.len() => all[k] = value,
                    _ => return wrong(format!("sets lane {lane} of a variable that has none")),
                }
            }
            Stmt::Alloc(b, dims) => {
                let mut sizes = vec![];
                for d in dims {
                    sizes.push(u64::try_from(self.expr(f, d)?.int()?).unwrap_or(0));
                }
                let info = f.func.buf(*b);
                f.bufs[b.0 as usize] = Some(self.memory.alloc(&info.name, &sizes, [info.lanes, info.ty.bytes()])?);
            }
            Stmt::Point(b, of, at) => {
                let by = self.expr(f, at)?.int()?;
                f.bufs[b.0 as usize] = Some(self.memory.offset(f.buf(*of)?, by)?);
            }
            Stmt::Store(b, at, e) => {
                let (at, value) = (self.expr(f, at)?, self.expr(f, e)?);
                let all = vec![true; value.clone().each().len()];
                self.store(f, *b, at, value, &all)?;
            }
            Stmt::MaskedStore(b, at, e, mask) => {
                let (at, value, mask) = (self.expr(f, at)?, self.expr(f, e)?, self.expr(f, mask)?);
                let mask: Vec<bool> = mask.each().iter().map(|l| l.as_bool() == Some(true)).collect();
                self.store(f, *b, at, value, &mask)?;
            }
            Stmt::StoreLane(b, at, lane, e) => {
                let (at, lane) = (self.expr(f, at)?.int()?, self.expr(f, lane)?.int()?);
                let (to, lanes, value) = (f.buf(*b)?, i64::from(f.func.buf(*b).lanes), self.expr(f, e)?.lit()?);
                if !(0..lanes).contains(&lane) {
                    return wrong(format!("writes lane {lane} of {lanes}"));
                }
                self.memory.write(to, at * lanes + lane, value)?;
                self.tell(|t| t.written += 1);
            }
            Stmt::Check(ok, site, values) => {
                if !self.expr(f, ok)?.truth()? {
                    let values = values.iter().map(|v| self.expr(f, v)?.int()).collect::<Result<Vec<_>>>()?;
                    let Some(site) = self.nest.sites.get(site.0 as usize) else {
                        return wrong("names an unknown place");
                    };
                    self.gave_up = site.failing == Failing::Reference;
                    return Err(site.diagnostic(&values));
                }
            }
            Stmt::For(l) => return self.run_loop(f, l),
            Stmt::Leave(v, e) => {
                if self.expr(f, e)?.truth()? {
                    return Ok(Flow::Leave(*v));
                }
            }
            Stmt::If(c, a, b) => {
                let arm = if self.expr(f, c)?.truth()? { a } else { b };
                self.tell(Tally::branch);
                return self.block(f, arm);
            }
            Stmt::Mark(m) => drop(f.marks.insert(*m, self.memory.mark())),
            Stmt::Reset(m) => match f.marks.get(m) {
                Some(at) => self.memory.reset(*at),
                None => return wrong("goes back to a mark that was not set"),
            },
            Stmt::Call(at, args, slots) => {
                let words = args.iter().map(|a| self.word(f, a)).collect::<Result<Vec<_>>>()?;
                let Some(func) = self.nest.funcs.get(*at) else { return wrong("calls an unknown function") };
                let words = deep(|| self.call(func, &words))?;
                f.take(slots, &words)?;
            }
            Stmt::Print(at, args, v) => {
                let words = args.iter().map(|a| self.word(f, a)).collect::<Result<Vec<_>>>()?;
                let Some(tys) = self.nest.prints.get(at.0 as usize) else { return wrong("prints at an unknown place") };
                let mut words = words.into_iter();
                let values = tys.iter().map(|ty| self.value(*ty, &[], &mut words)).collect::<Result<Vec<_>>>()?;
                let n = eval::json::print(&values, self.printed);
                f.vars[v.0 as usize] = Some(Num::One(Lit::int(n as i64)));
            }
        }
        Ok(Flow::On)
    }

    fn run_loop(&mut self, f: &mut Frame<'a>, l: &'a Loop) -> Result<Flow> {
        let (from, to) = (self.expr(f, &l.from)?.int()?, self.expr(f, &l.to)?.int()?);
        if l.is_judged() {
            self.memory.watch();
        }
        let overlap = l.kind == LoopKind::Parallel { overlap: true };
        let mut flow = Flow::On;
        for k in from..to {
            // The last two may be one.
            if l.is_judged() && !(overlap && k > from && k == to - 1) {
                self.memory.iterate();
            }
            f.vars[l.var.0 as usize] = Some(Num::One(Lit::int(k)));
            let mark = self.memory.mark();
            flow = deep(|| self.block(f, &l.body))?;
            if l.takes {
                self.memory.reset(mark);
            }
            if flow != Flow::On {
                break;
            }
        }
        if l.is_judged() {
            self.memory.unwatch();
        }
        Ok(if flow == Flow::Leave(l.var) { Flow::On } else { flow })
    }

    /// The first numbers of the elements at an index, one for each lane.
    fn places(&self, f: &Frame<'_>, b: super::Buf, at: Num) -> Result<Vec<i64>> {
        let lanes = i64::from(f.func.buf(b).lanes);
        match at {
            Num::Many(_) if lanes > 1 => wrong("has a vector of indices for a buffer of vectors"),
            Num::Many(each) => each.into_iter().map(|l| Num::One(l).int()).collect(),
            Num::One(l) => {
                let k = Num::One(l).int()?;
                Ok((0..lanes).map(|lane| k * lanes + lane).collect())
            }
        }
    }

    fn store(&mut self, f: &Frame<'_>, b: super::Buf, at: Num, value: Num, mask: &[bool]) -> Result<()> {
        let (to, places, value) = (f.buf(b)?, self.places(f, b, at)?, value.each());
        if places.len() != value.len() || mask.len() != value.len() {
            return wrong("stores another number of lanes than it has places");
        }
        for ((k, v), on) in places.into_iter().zip(value).zip(mask) {
            if *on {
                self.memory.write(to, k, v)?;
                self.tell(|t| t.written += 1);
            }
        }
        Ok(())
    }

    fn load(&mut self, f: &Frame<'_>, b: super::Buf, at: Num, mask: Option<&[Lit]>) -> Result<Num> {
        let (from, single) = (f.buf(b)?, matches!(at, Num::One(_)) && f.func.buf(b).lanes == 1);
        let (lanes, zero) = (i64::from(f.func.buf(b).lanes), Lit::zero(f.func.buf(b).ty));
        if lanes > 1 {
            let first = self.places(f, b, at)?[0];
            self.tell(|t| t.read += lanes as u64);
            return Ok(Num::Many(self.memory.read_lanes(from, first, lanes, zero)?));
        }
        let mut out = vec![];
        for (lane, k) in self.places(f, b, at)?.into_iter().enumerate() {
            let off = mask.is_some_and(|m| m.get(lane) != Some(&Lit::Bool(true)));
            out.push(if off { zero } else { self.memory.read(from, k)? });
            self.tell(|t| t.read += u64::from(!off));
        }
        Ok(if single { Num::One(out.swap_remove(0)) } else { Num::Many(out) })
    }

    fn expr(&mut self, f: &mut Frame<'a>, e: &'a Expr) -> Result<Num> {
        Ok(match e {
            Expr::Lit(l) => Num::One(*l),
            Expr::Var(v) => match &f.vars[v.0 as usize] {
                Some(n) => n.clone(),
                None => return wrong(format!("uses `{}` before it has a value", f.func.var(*v).name)),
            },
            Expr::Load(b, at) => {
                let at = self.expr(f, at)?;
                self.load(f, *b, at, None)?
            }
            Expr::MaskedLoad(b, parts) => {
                let (at, mask) = (self.expr(f, &parts[0])?, self.expr(f, &parts[1])?.each());
                self.load(f, *b, at, Some(&mask))?
            }
            Expr::Op(op, _, args) => self.op(f, *op, args)?,
            Expr::Cast(s, e) => {
                let value = self.expr(f, e)?;
                lanewise(&[value], |each| match each[0].cast(*s) {
                    Some(l) => {
                        self.tell(|t| t.conversion(each[0], *s));
                        Ok(l)
                    }
                    None => wrong("casts a text"),
                })?
            }
            Expr::Cond(p) => {
                let arm = if self.expr(f, &p[0])?.truth()? { &p[1] } else { &p[2] };
                self.tell(Tally::branch);
                self.expr(f, arm)?
            }
            Expr::Ramp(p, n) => {
                let (first, step) = (self.expr(f, &p[0])?.int()?, self.expr(f, &p[1])?.int()?);
                Num::Many((0..i64::from(*n)).map(|k| Lit::int(first.wrapping_add(k.wrapping_mul(step)))).collect())
            }
            Expr::Broadcast(e, n) => Num::Many(vec![self.expr(f, e)?.lit()?; *n as usize]),
            Expr::PrefixMask(e, n) => {
                let live = self.expr(f, e)?.int()?;
                Num::Many((0..i64::from(*n)).map(|k| Lit::Bool(k < live)).collect())
            }
            Expr::Extract(p) => {
                let (all, lane) = (self.expr(f, &p[0])?.each(), self.expr(f, &p[1])?.int()?);
                match usize::try_from(lane).ok().and_then(|k| all.get(k)) {
                    Some(l) => Num::One(*l),
                    None => return wrong(format!("reads lane {lane} of {}", all.len())),
                }
            }
            Expr::All(e) => {
                let all = self.expr(f, e)?.each();
                Num::One(Lit::Bool(all.iter().all(|l| l.as_bool() == Some(true))))
            }
            Expr::PerLane(v, n, p) => {
                let live = self.expr(f, &p[0])?.int()?;
                let mut out = vec![];
                for k in 0..i64::from(*n) {
                    f.vars[v.0 as usize] = Some(Num::One(Lit::int(k)));
                    out.push(if k < live { self.expr(f, &p[1])?.lit()? } else { Lit::zero(f.func.ty(&p[1])) });
                }
                Num::Many(out)
            }
        })
    }

    /// An operation lane by lane.
    fn op(&mut self, f: &mut Frame<'a>, op: Op, args: &'a [Expr]) -> Result<Num> {
        let args = args.iter().map(|a| self.expr(f, a)).collect::<Result<Vec<_>>>()?;
        lanewise(&args, |each| match op.eval(each) {
            Ok(l) => {
                self.tell(|t| t.operation(op, each, l));
                Ok(l)
            }
            Err(_) => wrong(format!("gives `{}` what it has no value for", op.name())),
        })
    }

    fn text(&self, number: Lit) -> Lit {
        let at = number.as_int().and_then(|k| self.texts.get_index(usize::try_from(k).ok()?));
        Lit::Str(at.copied().unwrap_or_default())
    }

    /// The value of a type whose sizes and numbers come as results; `outer` are the sizes around it.
    fn value(&mut self, ty: Ty, outer: &[usize], words: &mut impl Iterator<Item = Word>) -> Result<Value> {
        let found = self.parts(ty, outer, words)?;
        Ok(found.at(0))
    }

    fn parts(&mut self, ty: Ty, outer: &[usize], words: &mut impl Iterator<Item = Word>) -> Result<Parts> {
        Ok(match (ty.kind(), outer) {
            (TyKind::Scalar(_), []) => match words.next() {
                Some(Word::Number(l)) => Parts::Data(vec![l]),
                _ => return wrong("gives no number as a result"),
            },
            (TyKind::Scalar(_), dims) => {
                let Some(Word::Data(at)) = words.next() else { return wrong("gives no buffer as a result") };
                let n: usize = dims.iter().product();
                Parts::Data((0..n).map(|k| self.memory.read(at, k as i64)).collect::<Result<_>>()?)
            }
            (TyKind::Tuple(parts), _) => {
                Parts::Tuple(parts.iter().map(|p| self.parts(*p, outer, words)).collect::<Result<_>>()?)
            }
            (TyKind::Tensor(d, elem), _) => {
                let mut dims = vec![];
                for _ in 0..*d {
                    match words.next() {
                        Some(Word::Number(l)) => {
                            dims.push(l.as_int().and_then(|n| usize::try_from(n).ok()).unwrap_or(0))
                        }
                        _ => return wrong("gives no size as a result"),
                    }
                }
                let inner = self.parts(*elem, &[outer, &dims].concat(), words)?;
                Parts::Tensor(dims, Box::new(inner))
            }
            (TyKind::String, _) => match self.parts(Ty::int(), outer, words)? {
                Parts::Data(numbers) => Parts::Data(numbers.into_iter().map(|n| self.text(n)).collect()),
                other => other,
            },
            (TyKind::Var(..), _) => return wrong("gives a result of an unknown type"),
        })
    }
}

fn lanewise(args: &[Num], mut f: impl FnMut(&[Lit]) -> Result<Lit>) -> Result<Num> {
    let many = args.iter().find_map(|a| if let Num::Many(all) = a { Some(all.len()) } else { None });
    let Some(n) = many else {
        let each = args.iter().map(|a| a.clone().lit()).collect::<Result<Vec<_>>>()?;
        return Ok(Num::One(f(&each)?));
    };
    let mut out = vec![];
    for k in 0..n {
        let each = args.iter().map(|a| match a {
            Num::Many(all) if all.len() == n => Ok(all[k]),
            Num::Many(_) | Num::One(_) => wrong("gives an operation other numbers of lanes"),
        });
        out.push(f(&each.collect::<Result<Vec<_>>>()?)?);
    }
    Ok(Num::Many(out))
}

impl Frame<'_> {
    fn buf(&self, b: super::Buf) -> Result<Pointer> {
        match self.bufs[b.0 as usize] {
            Some(at) => Ok(at),
            None => wrong(format!("uses `{}` before it is there", self.func.buf(b).name)),
        }
    }

    fn take(&mut self, slots: &[Slot], words: &[Word]) -> Result<()> {
        if slots.len() != words.len() {
            return wrong("passes another number of values than are taken");
        }
        for (slot, word) in slots.iter().zip(words) {
            match (slot, word) {
                (Slot::Scalar(v) | Slot::Size(v), Word::Number(l)) => self.vars[v.0 as usize] = Some(Num::One(*l)),
                (Slot::Data(b), Word::Data(at)) => self.bufs[b.0 as usize] = Some(*at),
                _ => return wrong("passes a number for a buffer"),
            }
        }
        Ok(())
    }
}

/// A value on its way in: the numbers of each scalar component.
enum Packed {
    Scalar(Scalar, Vec<Lit>),
    Tuple(Vec<Packed>),
    Tensor(Vec<usize>, bool, Box<Packed>),
}

impl Packed {
    fn new(ty: Ty) -> Result<Packed> {
        Ok(match ty.kind() {
            TyKind::Scalar(s) => Packed::Scalar(*s, vec![]),
            TyKind::Tuple(parts) => Packed::Tuple(parts.iter().map(|p| Packed::new(*p)).collect::<Result<_>>()?),
            TyKind::Tensor(d, elem) => Packed::Tensor(vec![0; *d], false, Box::new(Packed::new(*elem)?)),
            TyKind::String => Packed::Scalar(Scalar::I64, vec![]),
            TyKind::Var(..) => return wrong("has a parameter of an unknown type"),
        })
    }

    fn add(&mut self, v: &Value, texts: &mut IndexSet<&'static str>) -> Result<()> {
        match (self, v) {
            // A text is a number: where it stands among the texts.
            (Packed::Scalar(Scalar::I64, all), Value::Scalar(Lit::Str(text))) => {
                all.push(Lit::int(texts.insert_full(text).0 as i64));
                Ok(())
            }
            (Packed::Scalar(s, all), Value::Scalar(l)) if l.ty() == Ty::scalar(*s) => {
                all.push(*l);
                Ok(())
            }
            (Packed::Tuple(parts), Value::Tuple(each)) if parts.len() == each.len() => {
                parts.iter_mut().zip(each.iter()).try_for_each(|(p, v)| p.add(v, texts))
            }
            (Packed::Tensor(dims, seen, elem), Value::Tensor(t)) if dims.len() == t.dims.len() => {
                if *seen && dims[..] != t.dims[..] {
                    return Err(Diagnostic::user("the argument is ragged"));
                }
                *seen = true;
                dims.copy_from_slice(&t.dims);
                t.iter().try_for_each(|v| elem.add(&v, texts))
            }
            _ => Err(Diagnostic::user("the argument does not fit its type")),
        }
    }

    fn words(self, inside: bool, memory: &mut Memory, out: &mut Vec<Word>) {
        match self {
            Packed::Scalar(_, all) if inside => out.push(Word::Data(memory.input("argument", all))),
            Packed::Scalar(s, all) => out.push(Word::Number(all.first().copied().unwrap_or(Lit::zero(s)))),
            Packed::Tuple(parts) => parts.into_iter().for_each(|p| p.words(inside, memory, out)),
            Packed::Tensor(dims, _, elem) => {
                out.extend(dims.iter().map(|n| Word::Number(Lit::int(*n as i64))));
                elem.words(true, memory, out);
            }
        }
    }
}

/// A value on its way out.
enum Parts {
    Data(Vec<Lit>),
    Tuple(Vec<Parts>),
    Tensor(Vec<usize>, Box<Parts>),
}

impl Parts {
    fn at(&self, k: usize) -> Value {
        match self {
            Parts::Data(all) => Value::Scalar(all[k]),
            Parts::Tuple(parts) => Value::tuple(parts.iter().map(|p| p.at(k)).collect()),
            Parts::Tensor(dims, elem) => {
                let n: usize = dims.iter().product();
                Value::tensor(dims.clone(), (0..n).map(|j| elem.at(k * n + j)).collect())
            }
        }
    }
}
