//! What both modes share: the variables of the body that is differentiated, and its values in the
//! text that is made.
//!
//! Every operand that a derivative may need is bound by a let, once a scope; what is not needed
//! disappears when the scope closes.

use super::Requests;
use super::emit::{Emit, Val};
use super::env::{Active, Entry, Env};
use super::flow::{Flow, Known};
use super::like::part_of;
use super::nested::Nested;
use super::scalar::Partials;
use super::slope::Slope;
use crate::diag::{Diagnostic, Result};
use crate::ir::{Head, Id, Terms, Ty, TyKind, deep};
use crate::types::shape::{all_sizes_as_made, shape_as_made};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::rc::Rc;

/// A body under differentiation.
pub struct Walk<'a, 't> {
    /// The text under construction.
    pub e: Emit<'t>,
    /// The variables of the source.
    pub env: Env,
    /// Derivatives of other functions.
    pub requests: &'a mut Requests,
    /// Partial derivatives of operations.
    pub partials: &'a mut Partials,
    memo: FxHashMap<(Id, usize), Val>,
    /// Slopes of conditions whose values are known.
    slopes: FxHashMap<(Id, usize), Rc<Vec<Slope>>>,
    /// What was noted, and whether it is slopes.
    log: Vec<((Id, usize), bool)>,
    /// How deep conditions are nested in terms of the source.
    pub nested: Nested,
    /// How many conditions that are made at once with their derivatives are open.
    pub joint: usize,
    /// Where the adjoint of a state that steps carry on is made: the levels of the indices of its element, as far as there
    /// are such.
    pub carried: Option<std::ops::Range<usize>>,
    /// Whether derivatives flow through a term, by the set of its variables that carry one.
    flowing: RefCell<Known>,
}

impl<'a, 't> Walk<'a, 't> {
    /// Nothing in scope.
    pub fn new(terms: &'t mut Terms, requests: &'a mut Requests, partials: &'a mut Partials) -> Walk<'a, 't> {
        let (env, memo, slopes, log, nested, flowing) = Default::default();
        Walk {
            e: Emit::new(terms),
            env,
            requests,
            partials,
            memo,
            slopes,
            log,
            nested,
            joint: 0,
            carried: None,
            flowing,
        }
    }

    /// A place to come back to with [`Walk::forget`].
    pub fn mark(&self) -> usize {
        self.log.len()
    }

    /// Forgets the values that were made since the mark: their scope has ended.
    pub fn forget(&mut self, mark: usize) {
        for (key, slopes) in self.log.drain(mark..) {
            if slopes {
                self.slopes.remove(&key);
            } else {
                self.memo.remove(&key);
            }
        }
    }

    /// The slopes of a condition of the source, where they were made.
    pub fn slopes(&self, id: Id) -> Option<Rc<Vec<Slope>>> {
        self.slopes.get(&(id, self.env.len())).cloned()
    }

    /// From here on a condition of the source has these slopes, until that is forgotten.
    pub fn remember_slopes(&mut self, id: Id, slopes: Vec<Slope>) {
        let key = (id, self.env.len());
        self.slopes.insert(key, Rc::new(slopes));
        self.log.push((key, true));
    }

    /// The value of a term of the source, where it was made already.
    pub fn known(&self, id: Id) -> Option<Val> {
        self.memo.get(&(id, self.env.len())).copied()
    }

    /// From here on a term of the source has this value, until that is forgotten.
    pub fn remember(&mut self, id: Id, val: Option<Val>) {
        let key = (id, self.env.len());
        if let Some(val) = val
            && !self.memo.contains_key(&key)
        {
            self.memo.insert(key, val);
            self.log.push((key, false));
        }
    }

    /// Brings a variable without derivative into scope.
    pub fn push(&mut self, val: Val) {
        self.env.push(Entry { val, active: Active::No, sizes: vec![] });
    }

    /// Whether a derivative flows through a term of the source.
    pub fn active(&self, id: Id) -> bool {
        self.active_under(id, 0)
    }

    /// Whether a derivative flows from the body of a let to the value that it binds.
    pub fn active_let(&self, id: Id) -> bool {
        let value = self.e.terms.kids(id)[0];
        self.active(value) && self.flowing.borrow_mut().matters(self.e.terms, id)
    }

    /// Whether a derivative flows through a term under `binds` more variables without derivative.
    pub fn active_under(&self, id: Id, binds: usize) -> bool {
        let env = &self.env;
        let outer = |i: usize| env[env.len() - 1 - i].active != Active::No;
        let mut known = self.flowing.take();
        let prefixes = env.prefixes(&mut known);
        let mut flow = Flow::knowing(self.e.terms, &outer, &prefixes, known);
        let found = flow.under(&vec![false; binds], id);
        self.flowing.replace(flow.known());
        found
    }

    /// A term of the source as it is.
    pub fn translate(&mut self, id: Id) -> Id {
        let n = self.env.len();
        let at = self.e.depth();
        let env = &self.env;
        self.e.terms.map_free(id, 0, &mut |t, i, _, under| {
            let val = env[n - 1 - i as usize].val;
            t.shift(val.id, at - val.depth + under)
        })
    }

    /// The value of a term of the source, bound by a let with all its operands.
    pub fn value(&mut self, id: Id) -> Val {
        let key = (id, self.env.len());
        if let Some(val) = self.memo.get(&key) {
            return *val;
        }
        let val = deep(|| self.made(id));
        self.memo.insert(key, val);
        self.log.push((key, false));
        val
    }

    fn made(&mut self, id: Id) -> Val {
        let (head, kids) = (self.e.terms.head(id), self.e.terms.kids(id).to_vec());
        match head {
            Head::Var(i, _) => self.env[self.env.len() - 1 - i as usize].val,
            Head::Const(_) => self.e.val(id),
            Head::Let => {
                let entry = self.entry(kids[0], Active::No);
                let mark = self.mark();
                self.env.push(entry);
                let out = self.value(kids[1]);
                self.env.pop();
                self.forget(mark);
                out
            }
            Head::Size(k) => {
                if let Head::Var(i, _) = self.e.terms.head(kids[0])
                    && let Some(size) = self.env[self.env.len() - 1 - i as usize].sizes.get(k)
                {
                    return *size;
                }
                self.by_kids(id, head, &kids)
            }
            Head::Op(_)
            | Head::Cast(_)
            | Head::Index(_)
            | Head::Tuple
            | Head::Assert
            | Head::Get(..)
            | Head::VecInit
            | Head::Call(_)
            | Head::DeltaVec(_) => self.by_kids(id, head, &kids),
            _ => {
                let made = self.translate(id);
                self.e.terms.called_as(made, id);
                self.e.bind(made)
            }
        }
    }

    fn by_kids(&mut self, id: Id, head: Head, kids: &[Id]) -> Val {
        let kids: Vec<Val> = kids.iter().map(|k| self.value(*k)).collect();
        let kids: Vec<Id> = kids.into_iter().map(|v| self.e.now(v)).collect();
        let made = match head {
            Head::Get(k, n) => self.e.get(k, n, kids[0]),
            _ => self.e.put(head, kids),
        };
        self.e.terms.keep_hints(id, made);
        self.e.bind(made)
    }

    /// The value where the work stands.
    pub fn value_now(&mut self, id: Id) -> Id {
        let val = self.value(id);
        self.e.now(val)
    }

    /// A variable bound to a term of the source.
    pub fn entry(&mut self, value: Id, active: Active) -> Entry {
        let val = self.value(value);
        let sizes = self.sizes(value);
        Entry { val, active, sizes }
    }

    /// The sizes of a term of the source, nested tensors included.
    pub fn sizes(&mut self, id: Id) -> Vec<Val> {
        let known = self.known_sizes(id);
        if !known.is_empty() {
            return known;
        }
        let axes = self.e.ty(id).axes();
        let all = match self.e.ty(id).all_axes() > axes {
            true => all_sizes_as_made(self.e.terms, id),
            false => None,
        };
        let all = all.unwrap_or_else(|| shape_as_made(self.e.terms, id));
        let mut sizes: Vec<Val> = all.into_iter().map(|s| self.value(s)).collect();
        self.e.only_safe(self.e.ty(id), &mut sizes);
        sizes
    }

    /// The sizes of a variable of the source, or of a part or an element of one, where they are known with it.
    fn known_sizes(&self, id: Id) -> Vec<Val> {
        let kids = self.e.terms.kids(id);
        match self.e.terms.head(id) {
            Head::Var(i, _) => self.env[self.env.len() - 1 - i as usize].sizes.clone(),
            Head::Get(k, _) => {
                let ty = self.e.ty(kids[0]);
                deep(|| part_of(ty, k as usize, &self.known_sizes(kids[0])).to_vec())
            }
            Head::Index(d) => deep(|| self.known_sizes(kids[d]).get(d..).unwrap_or_default().to_vec()),
            _ => vec![],
        }
    }

    /// The zero tangent of a value. Sizes of its axes may be known beside.
    pub fn zero(&mut self, like: Id, sizes: &[Id]) -> Id {
        let ty = self.e.ty(like);
        match ty.kind() {
            TyKind::Scalar(s) if s.is_float() => self.e.float(*s, 0.0),
            TyKind::Scalar(_) | TyKind::String | TyKind::Var(..) => self.e.put(Head::Tuple, []),
            TyKind::Tuple(parts) => {
                let n = parts.len();
                let known: Vec<Val> = sizes.iter().map(|s| self.e.val(*s)).collect();
                let parts: Vec<Id> = (0..n)
                    .map(|k| {
                        let part = self.e.get(k as u32, n as u32, like);
                        let sizes: Vec<Id> = part_of(ty, k, &known).iter().map(|s| s.id).collect();
                        self.zero(part, &sizes)
                    })
                    .collect();
                self.e.put(Head::Tuple, parts)
            }
            TyKind::Tensor(rank, elem) => {
                let mut kids = self.axes(like, *rank, sizes);
                let inner: Vec<Id> = sizes.get(*rank..).unwrap_or_default().to_vec();
                if let TyKind::Scalar(_) | TyKind::String = elem.kind() {
                    kids.push(match elem.as_scalar().filter(|s| s.is_float()) {
                        Some(s) => self.e.float(s, 0.0),
                        None => self.e.put(Head::Tuple, []),
                    });
                    return self.e.put(Head::ConstVec(*rank), kids);
                }
                let all_safe = !inner.is_empty() && inner.iter().all(|s| self.e.is_safe_size(*s, self.e.depth()));
                if elem.as_tensor().is_some() && all_safe {
                    // The same zeros for every index; the first element need not exist, so that sizes that may be
                    // negative are those of elements that are made one by one.
                    let once = inner.iter().all(|s| self.is_certain_size(*s));
                    let heads = if once { Head::ConstVec } else { Head::Build };
                    if let Some(zero) = self.zeros_of(*elem, &inner, heads) {
                        kids.push(if once { zero } else { self.e.terms.shift(zero, *rank) });
                        return self.e.put(heads(*rank), kids);
                    }
                }
                let depth = self.e.depth();
                let at: Vec<Val> = (0..*rank).map(|_| self.e.enter(Ty::int())).collect();
                let mut index: Vec<Id> = at.into_iter().map(|v| self.e.now(v)).collect();
                index.push(self.e.terms.shift(like, *rank));
                let element = self.e.put(Head::Index(*rank), index);
                let inner: Vec<Id> = match elem.as_tuple() {
                    Some(_) => inner.iter().map(|s| self.e.terms.shift(*s, *rank)).collect(),
                    None => vec![],
                };
                let zero = self.zero(element, &inner);
                let zero = self.e.wrapped(depth + rank, zero);
                self.e.leave(depth);
                kids.push(zero);
                self.e.put(Head::Build(*rank), kids)
            }
        }
    }

    /// Whether a term is a size for certain: that of a variable, or a number.
    pub fn is_certain_size(&self, size: Id) -> bool {
        match self.e.terms.head(size) {
            Head::Size(_) => matches!(self.e.terms.head(self.e.terms.kids(size)[0]), Head::Var(..)),
            _ => self.e.terms.as_lit(size).and_then(|l| l.as_int()).is_some_and(|n| n >= 0),
        }
    }

    /// Zeros of nested tensors of scalars from their sizes alone.
    fn zeros_of(&mut self, ty: Ty, sizes: &[Id], heads: fn(usize) -> Head) -> Option<Id> {
        match ty.kind() {
            TyKind::Scalar(s) if s.is_float() => Some(self.e.float(*s, 0.0)),
            TyKind::Scalar(_) | TyKind::String => Some(self.e.put(Head::Tuple, [])),
            TyKind::Tensor(rank, elem) => {
                let (mut kids, inner) = (sizes.get(..*rank)?.to_vec(), &sizes[*rank..]);
                let binds = heads(*rank).binds(*rank, rank + 1);
                let zero = self.zeros_of(*elem, inner, heads)?;
                kids.push(self.e.terms.shift(zero, binds));
                Some(self.e.put(heads(*rank), kids))
            }
            TyKind::Tuple(_) | TyKind::Var(..) => None,
        }
    }

    /// The outer sizes of a tensor, from what is known or from the tensor.
    pub fn axes(&mut self, like: Id, rank: usize, sizes: &[Id]) -> Vec<Id> {
        match sizes.get(..rank) {
            Some(known) => known.to_vec(),
            None => (0..rank).map(|k| self.e.put(Head::Size(k), [like])).collect(),
        }
    }

    /// An error at a term of the source.
    pub fn error(&self, id: Id, message: impl Into<String>, label: &str) -> Box<Diagnostic> {
        let d = Diagnostic::user(message);
        match self.e.terms.spans(id).first() {
            Some(span) => d.at(*span, label),
            None => d,
        }
    }

    /// The partial derivative of an operation by one of its arguments, times a tangent or adjoint.
    ///
    /// # Errors
    /// The operation has none.
    pub fn scaled_partial(&mut self, id: Id, k: usize, by: Val) -> Result<Id> {
        let Head::Op(op) = self.e.terms.head(id) else { return Err(Diagnostic::bug("no operation")) };
        let kids = self.e.terms.kids(id).to_vec();
        let args: Vec<Val> = kids.iter().map(|a| self.value(*a)).collect();
        let r = self.value_now(id);
        let args: Vec<Id> = args.into_iter().map(|v| self.e.now(v)).collect();
        let Some(s) = self.e.ty(id).as_scalar() else { return Err(Diagnostic::bug("an operation on a tensor")) };
        let partial = self.partials.of(&mut self.e, op, k, &args, r, s)?;
        let by = self.e.now(by);
        match partial {
            Some(p) => Ok(self.e.mul(by, p)),
            None => {
                let message = format!("`{}` has no derivative", op.name());
                Err(self.error(id, message, "a derivative flows through this expression"))
            }
        }
    }
}
