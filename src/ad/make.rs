//! Requests become definitions: signatures, parameters and the order in which they stand.

use super::adapter;
use super::adjoint::Reverse;
use super::checkpoint::{Less, checkpoint, levels};
use super::declared::{base, kind, packed_parameters, twice};
use super::emit::{Emit, Val};
use super::env::{Active, Entry};
use super::flow::has_floats;
use super::keeping::{Decisions, Keeping};
use super::like::Like;
use super::mode::Mode;
use super::nested::Nested;
use super::normal::normal;
use super::order::order;
use super::parameters::{known_sizes, parameters, readable, sizes_of};
use super::requests::{Key, Request, Requests};
use super::scalar::Partials;
use super::shared::shared;
use super::split::{lifted, split};
use super::sweep::sweep;
use super::unread::without_unread;
use super::walk::Walk;
use super::written::ByHand;
use crate::diag::{Diagnostic, Result};
use crate::ir::{Body, Def, Fun, Head, Id, Param, Program, Signature, Terms, Ty};
use crate::types::verify;
use indexmap::IndexMap;
use rustc_hash::FxHashMap;

/// Normal bodies with more nodes than this are called, not inlined.
const INLINED: u64 = 20_000;
/// Of functions of numbers, folds and scans get the bodies with at most so many nodes.
const SMALL: u64 = 200;

/// A derivative to be made beside the definitions of a program.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Of what.
    pub fun: Fun,
    /// Which way.
    pub mode: Mode,
    /// By which parameters.
    pub wrt: Vec<bool>,
    /// Whether the value comes with it.
    pub value: bool,
    /// Whether folds keep about √n of their n states for the way back, and make the others again.
    pub checkpoint: bool,
}

/// Gives every derivative that a program declares its body.
///
/// # Errors
/// What has no derivative, with its place.
pub fn complete(program: &Program) -> Result<Program> {
    if program.defs.values().all(|d| d.body != Body::Derivative) {
        return Ok(program.clone());
    }
    let mut maker = Maker::new(program);
    for def in program.defs.values() {
        let done = match def.body {
            Body::Derivative => maker.declared(def),
            Body::Term(_) | Body::External => {
                maker.known(def);
                Ok(())
            }
        };
        done.map_err(|d| d.within(&program.source))?;
    }
    maker.finish()
}

/// Makes a derivative by parameters, after all definitions of a program: the function takes the
/// arguments one by one, then tangents or the adjoint.
///
/// # Errors
/// What has no derivative, with its place.
pub fn derive(program: &Program, wanted: &Wanted) -> Result<(Program, Fun)> {
    let keeping = if wanted.checkpoint { Keeping::few() } else { Keeping::everything() };
    let made = derive_keeping(program, wanted, &keeping)?;
    Ok((made.program, made.fun))
}

/// A derivative, and what was to be decided of it.
#[derive(Clone)]
pub struct Made {
    /// The program with the derivative.
    pub program: Program,
    /// The derivative.
    pub fun: Fun,
    /// What there was to decide.
    pub decisions: Decisions,
}

/// As [`derive`], where it is said what is kept for the way back; [`Wanted::checkpoint`] is not looked at.
///
/// # Errors
/// As [`derive`].
pub fn derive_keeping(program: &Program, wanted: &Wanted, keeping: &Keeping) -> Result<Made> {
    let mut maker = Maker { keeping: keeping.clone(), ..Maker::new(program) };
    for def in program.defs.values() {
        maker.known(def);
    }
    let fun = maker.wanted(wanted).map_err(|d| d.within(&program.source))?;
    let decisions = std::mem::take(&mut maker.decisions);
    Ok(Made { program: maker.finish()?, fun, decisions })
}

/// The body of a definition as derivatives of a mode see it: normal, with calls of functions of tensors inlined. What has
/// a derivative by hand, or no body, stays a call.
pub fn normal_body(program: &Program, def: &Def, mode: Mode) -> (Terms, Id) {
    let mut maker = Maker::new(program);
    program.defs.values().for_each(|def| maker.known(def));
    let n = def.params.len();
    let vars: Vec<Id> = (0..n).map(|k| maker.terms.var((n - 1 - k) as u32, def.params[k].ty)).collect();
    let body = match def.term() {
        Some(body) if !maker.requests.is_written(def.fun, mode) => body,
        _ => maker.terms.put(Head::Call(def.fun), vars),
    };
    let body = normal(&mut maker.terms, &maker.inline[usize::from(mode == Mode::Reverse)], body);
    (maker.terms, body)
}

/// # Errors
/// A function has no derivative by any parameter, and why.
pub fn differentiable(def: &Def) -> Result<()> {
    let sig = def.fun.sig();
    let what = match (sig.params.iter().any(|t| has_floats(*t)), has_floats(sig.ret)) {
        (true, true) => return Ok(()),
        (false, _) => "takes",
        (true, false) => "gives",
    };
    let message = format!("`{}` {what} no floats, so it has no derivative", sig.name);
    Err(Diagnostic::user(message).at(def.span, "this function"))
}

struct Maker<'a> {
    program: &'a Program,
    terms: Terms,
    requests: Requests,
    partials: Partials,
    /// Definitions in their new order.
    out: IndexMap<Fun, Def>,
    /// Normal bodies of functions that are inlined, for each mode.
    inline: [FxHashMap<Fun, Id>; 2],
    /// Normal bodies of small functions of numbers.
    scalars: FxHashMap<Fun, Id>,
    /// How many requests have a body.
    done: usize,
    /// What is kept for the way back.
    keeping: Keeping,
    /// What there was to decide of that.
    decisions: Decisions,
}

impl<'a> Maker<'a> {
    fn new(program: &'a Program) -> Maker<'a> {
        let requests = Requests::new(program);
        let (partials, out, inline, scalars) = Default::default();
        let terms = program.terms.clone();
        let (keeping, decisions) = (Keeping::everything(), Decisions::default());
        Maker { program, terms, requests, partials, out, inline, scalars, done: 0, keeping, decisions }
    }

    /// Takes over a definition, and inlines it from now on if it is about tensors or only about integers.
    fn known(&mut self, def: &Def) {
        self.out.insert(def.fun, def.clone());
        let Some(body) = def.term() else { return };
        let sig = def.fun.sig();
        let plain = sig.params.iter().chain([&sig.ret]).all(|t| !t.has_tensor()) && has_floats(sig.ret);
        let recursive = self.terms.reachable(body).iter().any(|id| self.terms.head(*id) == Head::Call(def.fun));
        if plain && !recursive && !self.requests.is_written(def.fun, Mode::Reverse) {
            let made = normal(&mut self.terms, &self.inline[1], body);
            if self.terms.size(made) <= SMALL {
                self.scalars.insert(def.fun, made);
            }
        }
        if plain || recursive {
            return;
        }
        for (k, mode) in [Mode::Forward, Mode::Reverse].into_iter().enumerate() {
            if !self.requests.is_written(def.fun, mode) {
                let made = normal(&mut self.terms, &self.inline[k], body);
                if self.terms.size(made) <= INLINED {
                    self.inline[k].insert(def.fun, made);
                }
            }
        }
    }

    /// A derivative that the source declares.
    fn declared(&mut self, declared: &Def) -> Result<()> {
        let of = base(self.program, declared)?;
        let sig = of.fun.sig();
        let kind = kind(declared);
        if kind == "CL" {
            let params = declared.params.iter().enumerate();
            let n = declared.params.len();
            let args: Vec<Id> = params.map(|(k, p)| self.terms.var((n - 1 - k) as u32, p.ty)).collect();
            let body = self.terms.put(Head::Call(of.fun), args);
            self.out.insert(declared.fun, Def { body: Body::Term(body), ..declared.clone() });
            return Ok(());
        }
        let mode = if kind == "fwd" { Mode::Forward } else { Mode::Reverse };
        let wrt: Vec<bool> = sig.params.iter().map(|t| has_floats(*t)).collect();
        let moves = wrt.contains(&true) && has_floats(sig.ret);
        let passes = ["sufrev", "sufrevpass"].contains(&kind);
        self.requests.prefer(passes);
        let request = match self.requests.written(of.fun, mode) {
            Ok(Some(ByHand::Passes(..))) if kind == "sufrevpass" => return Err(twice(declared)),
            Ok(None | Some(ByHand::Flat(..) | ByHand::Passes(..))) if !moves => None,
            _ => Some(self.requests.get(of.fun, mode, &wrt, Some(declared.span))?),
        };
        let body = match request {
            None => self.still(declared, of, mode),
            Some(Request::Made(flat)) => {
                self.work()?;
                self.wrapper(declared, of, (mode, &wrt), flat)
            }
            Some(Request::Written(by_hand)) if by_hand.sig().name != declared.name() => {
                let mut e = Emit::new(&mut self.terms);
                let (x, d) = packed_parameters(&mut e, declared);
                let (x, d) = (e.now(x), e.now(d));
                e.put(Head::Call(by_hand), [x, d])
            }
            Some(Request::Written(_)) => return Err(twice(declared)),
        };
        let names = if kind == "sufrevpass" { ["dx", "x"] } else { ["x", "dx"] };
        let sizes = |p: &Param, name: &str| match name == "x" || mode == Mode::Forward {
            true => sizes_of(of, p.ty, names),
            false => vec![],
        };
        let params = declared.params.iter().zip(names);
        let params = params.map(|(p, name)| Param { name: name.into(), ty: p.ty, sizes: sizes(p, name) }).collect();
        self.known(&Def { params, body: Body::Term(body), ..declared.clone() });
        Ok(())
    }

    /// The body of `[fwd f]` or `[rev f]`: packed arguments are taken apart for the flat function.
    fn wrapper(&mut self, declared: &Def, of: &Def, (mode, wrt): (Mode, &[bool]), flat: Fun) -> Id {
        let mut e = Emit::new(&mut self.terms);
        let (x, d) = packed_parameters(&mut e, declared);
        let n = of.params.len();
        let parts = |e: &mut Emit<'_>, v: Val| -> Vec<Id> {
            let of = e.now(v);
            match n {
                1 => vec![of],
                n => (0..n).map(|k| e.put(Head::Get(k as u32, n as u32), [of])).collect(),
            }
        };
        let args = parts(&mut e, x);
        if mode == Mode::Forward {
            let changes = parts(&mut e, d);
            let moving = changes.into_iter().zip(wrt).filter(|(_, w)| **w).map(|(c, _)| c);
            return e.put(Head::Call(flat), args.into_iter().chain(moving));
        }
        let d = e.now(d);
        let all = e.put(Head::Call(flat), args.iter().copied().chain([d]));
        if n == 1 {
            return all;
        }
        let all = e.bind(all);
        let count = wrt.iter().filter(|w| **w).count();
        let (mut out, mut next) = (vec![], 0);
        for (k, w) in wrt.iter().enumerate() {
            let whole = e.now(all);
            let arg = e.terms.shift(args[k], 1);
            out.push(match w {
                true if count == 1 => whole,
                true => {
                    next += 1;
                    e.put(Head::Get(next - 1, count as u32), [whole])
                }
                false => without_floats(&mut e, arg),
            });
        }
        let tuple = e.put(Head::Tuple, out);
        e.close(2, tuple)
    }

    /// The derivative of a function that takes or gives no floats: nothing moves.
    fn still(&mut self, declared: &Def, of: &Def, mode: Mode) -> Id {
        let mut w = Walk::new(&mut self.terms, &mut self.requests, &mut self.partials);
        let (x, _) = packed_parameters(&mut w.e, declared);
        let (mark, x) = (w.e.depth(), w.e.now(x));
        let like = match mode {
            Mode::Forward => {
                let n = of.params.len() as u32;
                let args: Vec<Id> = if n == 1 { vec![x] } else { (0..n).map(|k| w.e.get(k, n, x)).collect() };
                w.e.put(Head::Call(of.fun), args)
            }
            Mode::Reverse => x,
        };
        let like = w.e.bind(like);
        let like = w.e.now(like);
        let zero = w.zero(like, &[]);
        w.e.close(mark, zero)
    }

    /// A derivative that is asked for from outside.
    fn wanted(&mut self, wanted: &Wanted) -> Result<Fun> {
        let def = &self.program.defs[&wanted.fun];
        differentiable(def)?;
        self.requests.prefer(false);
        let flat = match self.requests.get(wanted.fun, wanted.mode, &wanted.wrt, Some(def.span))? {
            Request::Made(flat) => flat,
            Request::Written(by_hand) => self.unpacked(wanted, def, ByHand::Packed(by_hand)),
        };
        self.work()?;
        let by_hand = self.requests.is_written(wanted.fun, wanted.mode);
        if !wanted.value {
            return Ok(flat);
        }
        let key = self.requests.key(wanted.fun, wanted.mode, &wanted.wrt);
        let made = if by_hand { self.with_value(def, flat) } else { self.body(&key, true)? };
        let sig = flat.sig();
        let ret = Ty::tuple(vec![def.fun.sig().ret, sig.ret]);
        let fun = Fun::new(Signature { name: format!("value${}", sig.name), params: sig.params.clone(), ret });
        let params = self.out[&flat].params.clone();
        if !by_hand {
            // The derivative alone is not what was asked for.
            self.out.shift_remove(&flat);
        }
        self.out.insert(fun, Def { fun, params, body: Body::Term(made), span: def.span });
        self.work()?;
        Ok(fun)
    }

    /// Value and derivative side by side, where the derivative is written by hand.
    fn with_value(&mut self, def: &Def, flat: Fun) -> Id {
        let tys = &flat.sig().params;
        let n = tys.len();
        let vars: Vec<Id> = tys.iter().enumerate().map(|(k, t)| self.terms.var((n - 1 - k) as u32, *t)).collect();
        let value = self.terms.put(Head::Call(def.fun), vars[..def.params.len()].iter().copied());
        let derivative = self.terms.put(Head::Call(flat), vars);
        self.terms.put(Head::Tuple, [value, derivative])
    }

    /// A derivative that is written by hand, as a function of arguments one by one.
    fn unpacked(&mut self, wanted: &Wanted, def: &Def, own: ByHand) -> Fun {
        let key = self.requests.key(wanted.fun, wanted.mode, &wanted.wrt);
        let flat = self.requests.plain(&key);
        let body = self.adapted(def, &key, own);
        let params = parameters(def, &key);
        self.out.insert(flat, Def { fun: flat, params, body: Body::Term(body), span: def.span });
        flat
    }

    /// The body of a derivative that is written by hand.
    fn adapted(&mut self, def: &Def, key: &Key, own: ByHand) -> Id {
        let mut w = Walk::new(&mut self.terms, &mut self.requests, &mut self.partials);
        let vars: Vec<Val> = parameters(def, key).iter().map(|p| w.e.enter(p.ty)).collect();
        adapter::body(&mut w, own, (key.mode, &key.wrt), vars.split_at(def.params.len()))
    }

    /// Makes the bodies of all requests, and puts them behind what they call.
    fn work(&mut self) -> Result<()> {
        let mut made = vec![];
        while let Some((key, fun)) = self.requests.made.get_index(self.done).map(|(k, f)| (k.clone(), *f)) {
            self.done += 1;
            let body = self.body(&key, false)?;
            let of = self.definition(key.fun)?;
            let params = parameters(&of, &key);
            self.requests.know_recursion(&self.terms, fun, body);
            made.push(Def { fun, params, body: Body::Term(body), span: of.span });
        }
        while !made.is_empty() {
            let waiting: Vec<Fun> = made.iter().map(|d| d.fun).collect();
            let ready = made.iter().position(|d| {
                let body = d.term().into_iter().flat_map(|b| self.terms.reachable(b));
                !body.into_iter().any(|id| match self.terms.head(id) {
                    Head::Call(f) => f != d.fun && waiting.contains(&f),
                    _ => false,
                })
            });
            let def = made.remove(ready.unwrap_or(0));
            self.out.insert(def.fun, def);
        }
        Ok(())
    }

    /// A definition: of the program, or made before.
    fn definition(&self, fun: Fun) -> Result<Def> {
        let found = self.out.get(&fun).or_else(|| self.program.defs.get(&fun));
        found.cloned().ok_or_else(|| Diagnostic::bug(format!("`{}` is defined nowhere", fun.sig().name)))
    }

    fn body(&mut self, key: &Key, value: bool) -> Result<Id> {
        let def = self.definition(key.fun)?;
        self.requests.prefer(key.passes);
        if let Some(own) = self.requests.written(key.fun, key.mode)? {
            return Ok(self.adapted(&def, key, own));
        }
        let Some(body) = def.term() else {
            return Err(Diagnostic::bug(format!("`{}` has no body to differentiate", def.name())));
        };
        let mode = usize::from(key.mode == Mode::Reverse);
        let body = normal(&mut self.terms, &self.inline[mode], body);
        let mut body = shared(&mut self.terms, body);
        let tys: Vec<Ty> = def.params.iter().map(|p| p.ty).collect();
        let deep = Nested::is_deep_within(&self.terms, body);
        if key.mode == Mode::Reverse && self.keeping.tables(key.fun) {
            body = split(&mut self.terms, &self.scalars, &tys, body);
        } else if deep {
            body = lifted(&mut self.terms, &tys, body);
        }
        let (body, less) = match key.mode {
            Mode::Reverse => {
                let levels = levels(&self.terms, body, (key.fun, &self.keeping), &mut self.decisions);
                checkpoint(&mut self.terms, body, &levels)
            }
            Mode::Forward => (body, Less::default()),
        };
        let mut w = Walk::new(&mut self.terms, &mut self.requests, &mut self.partials);
        for p in &def.params {
            let val = w.e.enter(p.ty);
            w.push(val);
        }
        let n = def.params.len();
        known_sizes(&mut w, &def);
        let out = match key.mode {
            Mode::Forward => {
                for (k, _) in key.wrt.iter().enumerate().filter(|(_, w)| **w) {
                    let change = w.e.enter(def.params[k].ty.tangent());
                    w.env[k].active = Active::Tangent(change);
                }
                let mark = w.e.depth();
                let (first, made) = match value {
                    true => w.both(body).map(|(first, made)| (Some(first), made))?,
                    false => {
                        let made = w.tangent_or_zero(body)?;
                        (None, w.e.val(made))
                    }
                };
                let made = w.e.now(made);
                paired(&mut w, first, made, mark)
            }
            Mode::Reverse => {
                let dr = w.e.enter(def.fun.sig().ret.tangent());
                let frames = vec![Default::default()];
                let (likes, tables, separate, kept) = Default::default();
                let (sequences, arms) = (0, 0);
                let step = None;
                let mut r = Reverse { w, frames, likes, tables, less, sequences, step, arms, separate, kept };
                gradient(&mut r, (body, n), &key.wrt, dr, value)?
            }
        };
        let out = without_unread(&mut self.terms, out);
        // What nests give and nobody takes, at their outermost level too.
        Ok(if deep { sweep(&mut self.terms, out, false) } else { out })
    }

    fn finish(mut self) -> Result<Program> {
        let made: Vec<Fun> = self.out.keys().filter(|f| !self.program.defs.contains_key(*f)).copied().collect();
        for fun in made {
            let def = readable(&self.out, &self.terms, self.out[&fun].clone());
            self.out.insert(fun, def);
        }
        order(&self.terms, &mut self.out).map_err(|d| d.within(&self.program.source))?;
        let program = Program { terms: self.terms, defs: self.out, source: self.program.source.clone() };
        verify::verify(&program)?;
        Ok(program)
    }
}

/// The gradient of a body by parameters, with its lets; the parameters and the adjoint are in scope.
fn gradient(r: &mut Reverse<'_, '_>, (body, n): (Id, usize), wrt: &[bool], dr: Val, value: bool) -> Result<Id> {
    let mark = r.w.e.depth();
    for (k, by) in wrt.iter().enumerate().take(n) {
        let Entry { val, sizes, .. } = r.w.env[k].clone();
        let number = r.adjoint(r.w.e.ty(val.id), Like { val, sizes });
        if *by {
            r.w.env[k].active = Active::Adjoint(number);
        }
    }
    let contribution = r.whole(dr);
    let terms = &r.w.e.terms;
    let steps = terms.reachable(body).into_iter().any(|id| matches!(terms.head(id), Head::Fold | Head::Scan));
    let first = if value && (steps || r.w.nested.is_deep(r.w.e.terms, body)) {
        Some(r.with_value(body, vec![contribution])?)
    } else {
        // Rewriting finds what both share, but for what is in steps and deep nests.
        let first = value.then(|| r.w.value(body));
        r.back(body, vec![contribution])?;
        first
    };
    let mut parts = vec![];
    for k in (0..n).filter(|k| wrt[*k]) {
        let contributions = r.take(k);
        let (ty, like) = r.likes[k].clone();
        let made = r.w.force(ty, &like, contributions)?;
        parts.push(r.w.e.val(made));
    }
    let parts: Vec<Id> = parts.into_iter().map(|v| r.w.e.now(v)).collect();
    let made = match parts.as_slice() {
        [one] => *one,
        _ => r.w.e.put(Head::Tuple, parts),
    };
    Ok(paired(&mut r.w, first, made, mark))
}

/// The result with its lets, behind the value where that is wanted.
fn paired(w: &mut Walk<'_, '_>, first: Option<Val>, made: Id, mark: usize) -> Id {
    let made = match first {
        Some(v) => {
            let v = w.e.now(v);
            w.e.put(Head::Tuple, [v, made])
        }
        None => made,
    };
    w.e.close(mark, made)
}

/// The zero tangent of a value without floats.
fn without_floats(e: &mut Emit<'_>, like: Id) -> Id {
    let ty = e.ty(like);
    if let Some(parts) = ty.as_tuple() {
        let n = parts.len() as u32;
        let parts: Vec<Id> = (0..n)
            .map(|k| {
                let part = e.get(k, n, like);
                without_floats(e, part)
            })
            .collect();
        return e.put(Head::Tuple, parts);
    }
    let Some((rank, _)) = ty.as_tensor() else { return e.put(Head::Tuple, []) };
    let sizes: Vec<Id> = (0..rank).map(|k| e.put(Head::Size(k), [like])).collect();
    let inside = e.terms.shift(like, rank);
    let at: Vec<Id> = (0..rank).map(|k| e.terms.var((rank - 1 - k) as u32, Ty::int())).collect();
    let element = e.put(Head::Index(rank), at.into_iter().chain([inside]));
    let zero = without_floats(e, element);
    e.put(Head::Build(rank), sizes.into_iter().chain([zero]))
}
