//! Flat terms become concrete terms of a trace and come back; and the equations that need no search.

use crate::derive::axioms::Axiom;
use crate::derive::flat::{first_of_name, parameter};
use crate::derive::pace::Pace;
use crate::ir::{Def, Head, Id, Lit, Op, Terms, deep};
use crate::rewrite::egraph::language::Label;
use crate::rewrite::egraph::trace::{Theta, Tid, Trace};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// Let-free terms over a definition's parameters become concrete terms. What several have in common becomes one
/// only once, however many loops it stands in.
pub struct Concrete<'a> {
    /// All of the terms, in one arena.
    terms: Terms,
    params: usize,
    /// By the term, the number of variables in scope, and what those that it depends on range over.
    memo: FxHashMap<(Id, usize, SmallVec<[Tid; 4]>), Tid>,
    /// Sizes as they are known.
    sizes: FxHashMap<Tid, Tid>,
    pace: &'a Pace<'a>,
}

impl<'a> Concrete<'a> {
    /// For a definition of so many parameters.
    pub fn new(params: usize, pace: &'a Pace<'a>) -> Concrete<'a> {
        let (terms, memo, sizes) = Default::default();
        Concrete { terms, params, memo, sizes, pace }
    }

    /// The concrete term of a let-free one in an arena; none where the time is up.
    pub fn of(&mut self, trace: &mut Trace, terms: &Terms, id: Id) -> Option<Tid> {
        let id = self.terms.import(terms, id);
        self.term(trace, id, &mut vec![])
    }

    fn term(&mut self, trace: &mut Trace, id: Id, scope: &mut Vec<Tid>) -> Option<Tid> {
        let head = self.terms.head(id);
        if let Head::Var(i, ty) = head {
            let i = i as usize;
            return Some(match scope.len().checked_sub(1 + i) {
                Some(level) => trace.put(Label::Head(head), [scope[level]]),
                None => {
                    let k = self.params - 1 - (i - scope.len());
                    trace.put(Label::Param(k as u32, ty), [])
                }
            });
        }
        let (free, depth) = (self.terms.free(id), scope.len());
        let over = scope.iter().rev().enumerate().filter(|(i, _)| free.has(*i)).map(|(_, extent)| *extent);
        let key = (id, depth, over.collect());
        if let Some(done) = self.memo.get(&key) {
            return Some(*done);
        }
        if self.pace.late() {
            return None;
        }
        let kids = self.terms.kids(id).to_vec();
        let mut new: Vec<Tid> = vec![];
        for (k, kid) in kids.iter().enumerate() {
            if head.binds(k, kids.len()) > 0 {
                scope.extend(extents(trace, head, &new, &mut self.sizes));
            }
            let done = deep(|| self.term(trace, *kid, scope));
            scope.truncate(depth);
            new.push(done?);
        }
        let out = trace.put(Label::Head(head), new);
        self.memo.insert(key, out);
        Some(out)
    }
}

/// What the variables of a binder range over, as the e-graph has it.
pub(super) fn extents(trace: &mut Trace, head: Head, kids: &[Tid], sizes: &mut FxHashMap<Tid, Tid>) -> Vec<Tid> {
    let unknown = trace.put(Label::Unknown, []);
    let mut closed = |size: Tid| bound(trace, size, sizes).unwrap_or(unknown);
    match head {
        Head::Build(d) | Head::Reduce(_, d) => kids[..d].iter().map(|k| closed(*k)).collect(),
        Head::Arg(_) => vec![closed(kids[0])],
        Head::Scatter(d) => vec![closed(kids[d])],
        Head::Scan => vec![unknown, closed(kids[1])],
        Head::Fold => vec![unknown, unknown],
        _ => vec![unknown],
    }
}

/// A closed term that is at least a size. A size that depends on loops may be known from what makes
/// the tensor, and then does not.
fn bound(trace: &mut Trace, size: Tid, sizes: &mut FxHashMap<Tid, Tid>) -> Option<Tid> {
    let size = if trace.free(size).is_closed() { size } else { normal(trace, size, true, sizes) };
    if trace.free(size).is_closed() {
        return Some(size);
    }
    let extent = |id: Tid| match trace.node(id) {
        (Label::Head(Head::Var(..)), kids) if trace.node(kids[0]).0 != Label::Unknown => Some(kids[0]),
        _ => None,
    };
    let one = |id: Tid| trace.node(id).0 == Label::Head(Head::Const(Lit::int(1)));
    match trace.node(size) {
        (Label::Head(Head::Op(Op::Add)), kids) if one(kids[1]) => extent(kids[0]),
        (Label::Head(Head::Op(Op::Add)), kids) if one(kids[0]) => extent(kids[1]),
        _ => extent(size),
    }
}

/// A term with parts of tuples and sizes as they are known, also where one is known from another. Records
/// why. With `inside` also the sizes inside of tensors, which are 0 where those are empty: so they are bounds
/// of sizes, and no reason is recorded.
fn normal(trace: &mut Trace, id: Tid, inside: bool, memo: &mut FxHashMap<Tid, Tid>) -> Tid {
    if let Some(done) = memo.get(&id) {
        return *done;
    }
    let (label, kids) = trace.node(id).clone();
    let kids: Vec<Tid> = kids.iter().map(|k| deep(|| normal(trace, *k, inside, memo))).collect();
    let first = kids.first().map(|k| trace.node(*k).clone());
    let known = match (label, first) {
        (Label::Head(Head::Get(i, _)), Some((Label::Head(Head::Tuple), parts))) => {
            Some((Some(Axiom::Part), parts[i as usize]))
        }
        (Label::Head(Head::Size(axis)), _) => {
            let outside = trace.ty(kids[0]).as_tensor().is_some_and(|(rank, _)| axis < rank);
            let size = if outside || inside { known_size(trace, kids[0], axis) } else { None };
            size.map(|size| (outside.then_some(Axiom::Size), size))
        }
        _ => None,
    };
    let node = trace.put(label, kids);
    if let Some((Some(axiom), known)) = known {
        trace.by(node, known, axiom.name());
    }
    let out = known.map_or(node, |(_, known)| known);
    memo.insert(id, out);
    out
}

/// Concrete terms as flat terms, where parameters are leaves.
pub struct Stripped {
    memo: FxHashMap<Tid, Id>,
}

impl Default for Stripped {
    fn default() -> Stripped {
        Stripped::new()
    }
}

impl Stripped {
    /// Nothing yet.
    pub fn new() -> Stripped {
        Stripped { memo: FxHashMap::default() }
    }

    /// One term is known already.
    pub fn with(id: Tid, flat: Id) -> Stripped {
        Stripped { memo: [(id, flat)].into_iter().collect() }
    }

    /// The flat term. Nothing where the types do not fit.
    pub fn term(&mut self, trace: &Trace, terms: &mut Terms, id: Tid) -> Option<Id> {
        if let Some(done) = self.memo.get(&id) {
            return Some(*done);
        }
        let (label, kids) = trace.node(id).clone();
        let out = match label {
            Label::Param(k, ty) => terms.add(parameter(k as usize, ty), []).ok()?,
            Label::Unknown => return None,
            Label::Head(head @ Head::Var(..)) => terms.add(head, []).ok()?,
            Label::Head(head) => {
                let kids = kids.iter().map(|k| deep(|| self.term(trace, terms, *k))).collect::<Option<Vec<_>>>()?;
                terms.add(head, kids).ok()?
            }
        };
        self.memo.insert(id, out);
        Some(out)
    }
}

/// Records what axioms say of a term and its parts, and of what they make, until the time is up.
pub fn axioms(trace: &mut Trace, def: &Def, root: Tid, seen: &mut FxHashSet<Tid>, pace: &Pace<'_>) {
    let mut todo = vec![root];
    while let Some(id) = todo.pop().filter(|_| !pace.late()) {
        if !seen.insert(id) {
            continue;
        }
        let (label, kids) = trace.node(id).clone();
        todo.extend(&kids);
        let Label::Head(head) = label else { continue };
        for (axiom, to) in equal(trace, def, head, &kids) {
            trace.by(id, to, axiom.name());
            // What reading a table gives is there already; more of it could be endless.
            if axiom != Axiom::Element {
                todo.push(to);
            }
        }
    }
}

/// So many terms are looked at by [`everywhere`], those counted that it adds.
const MAX_TERMS: usize = 400_000;

/// Records what an e-graph takes as known and what extraction does on its way, wherever it could: literals
/// fold, also those that follow from others; copies are no copies; sizes of one name and known ones are one. It ends
/// when the time is up.
pub fn everywhere(trace: &mut Trace, def: &Def, pace: &Pace<'_>) {
    let (mut values, mut known): (Vec<Option<Lit>>, FxHashMap<Tid, Tid>) = Default::default();
    // Children come before parents, and what is added here comes last.
    while values.len() < trace.len().min(MAX_TERMS) && !pace.late() {
        let id = values.len() as Tid;
        let (label, kids) = trace.node(id).clone();
        let mut value = None;
        match label {
            Label::Head(Head::Const(l)) => value = Some(l),
            Label::Head(head @ (Head::Op(_) | Head::Cast(_))) => {
                let args: Option<Vec<Lit>> = kids.iter().map(|k| values[*k as usize]).collect();
                if let Some(args) = args
                    && let Some(folded) = literal(head, &args)
                {
                    let args: Vec<Tid> = args.iter().map(|l| constant(trace, *l)).collect();
                    let (left, right) = (trace.put(label, args), constant(trace, folded));
                    trace.by(left, right, Axiom::Literals.name());
                    value = Some(folded);
                }
            }
            Label::Head(head @ (Head::Build(_) | Head::Size(_) | Head::Get(..))) => {
                for (axiom, to) in equal(trace, def, head, &kids) {
                    trace.by(id, to, axiom.name());
                }
                if !matches!(head, Head::Build(_)) {
                    normal(trace, id, false, &mut known);
                }
            }
            Label::Head(_) | Label::Param(..) | Label::Unknown => {}
        }
        values.push(value);
    }
}

fn constant(trace: &mut Trace, lit: Lit) -> Tid {
    trace.put(Label::Head(Head::Const(lit)), [])
}

fn equal(trace: &mut Trace, def: &Def, head: Head, kids: &[Tid]) -> Vec<(Axiom, Tid)> {
    let first = kids.first().map(|k| trace.node(*k).clone());
    let mut out = vec![];
    match (head, first) {
        (Head::Op(_) | Head::Cast(_), _) => {
            let args = kids.iter().map(|k| match trace.node(*k).0 {
                Label::Head(Head::Const(l)) => Some(l),
                _ => None,
            });
            if let Some(lit) = args.collect::<Option<Vec<Lit>>>().and_then(|args| literal(head, &args)) {
                out.push((Axiom::Literals, trace.put(Label::Head(Head::Const(lit)), [])));
            }
        }
        (Head::Get(i, _), Some((Label::Head(Head::Tuple), parts))) => out.push((Axiom::Part, parts[i as usize])),
        (Head::Size(axis), Some((Label::Param(k, _), _))) => {
            if let Some((k, axis)) = first_of_name(def, k as usize, axis) {
                let leaf = trace.put(Label::Param(k as u32, def.params[k].ty), []);
                out.push((Axiom::NamedSize, trace.put(Label::Head(Head::Size(axis)), [leaf])));
            }
        }
        (Head::Size(axis), _) => out.extend(known_size(trace, kids[0], axis).map(|s| (Axiom::Size, s))),
        (Head::Index(_), _) => out.extend(made(trace, head, kids).map(|e| (Axiom::Element, e))),
        (Head::Build(d), _) => {
            if let (Label::Head(Head::Index(e)), read) = trace.node(kids[d]).clone()
                && e == d
                && (0..d)
                    .all(|k| matches!(trace.node(read[k]).0, Label::Head(Head::Var(i, _)) if i as usize == d - 1 - k))
            {
                out.extend(lowered(trace, read[d], d).map(|t| (Axiom::Copy, t)));
            }
        }
        _ => {}
    }
    out
}

/// An element of a tensor that is made on the spot.
pub(super) fn element(trace: &mut Trace, id: Tid) -> Option<Tid> {
    let (Label::Head(head @ Head::Index(_)), kids) = trace.node(id).clone() else { return None };
    made(trace, head, &kids)
}

fn made(trace: &mut Trace, head: Head, kids: &[Tid]) -> Option<Tid> {
    let Head::Index(d) = head else { return None };
    let (label, inner) = trace.node(kids[d]).clone();
    if label != Label::Head(Head::Build(d)) {
        return None;
    }
    let at = kids[..d].iter().rev().map(|k| Some(*k)).collect();
    Some(trace.mapped(inner[d], &Theta { inner: at, depth: 0 }, 0))
}

fn literal(head: Head, args: &[Lit]) -> Option<Lit> {
    let value = match head {
        Head::Op(op) => op.eval(args).ok()?,
        Head::Cast(s) => args.first()?.cast(s)?,
        _ => return None,
    };
    value.as_f64().is_none_or(f64::is_finite).then_some(value)
}

/// A term moved out of the `n` innermost binders, where it does not depend on them.
pub(super) fn lowered(trace: &mut Trace, id: Tid, n: usize) -> Option<Tid> {
    let theta = Theta { inner: vec![None; n], depth: 0 };
    (!trace.free(id).below(n)).then(|| trace.mapped(id, &theta, 0))
}

/// The size of an axis, as [`crate::types::shape`] finds it; at worst the size of the term.
fn size(trace: &mut Trace, id: Tid, axis: usize) -> Tid {
    match deep(|| known_size(trace, id, axis)) {
        Some(known) => known,
        None => trace.put(Label::Head(Head::Size(axis)), [id]),
    }
}

fn known_size(trace: &mut Trace, id: Tid, axis: usize) -> Option<Tid> {
    let (label, kids) = trace.node(id).clone();
    let Label::Head(head) = label else { return None };
    match head {
        Head::Build(d) | Head::ConstVec(d) | Head::DeltaVec(d) | Head::Scatter(d) if axis < d => Some(kids[axis]),
        Head::Build(d) => {
            let inner = size(trace, kids[d], axis - d);
            lowered(trace, inner, d)
        }
        Head::ConstVec(d) => Some(size(trace, kids[d], axis - d)),
        Head::DeltaVec(d) => Some(size(trace, kids[2 * d], axis - d)),
        Head::Scan if axis == 0 => Some(kids[1]),
        Head::VecInit if axis == 0 => Some(trace.put(Label::Head(Head::Const(Lit::int(kids.len() as i64))), [])),
        Head::Scan | Head::VecInit => Some(size(trace, kids[0], axis - 1)),
        Head::Fold => Some(size(trace, kids[0], axis)),
        Head::Assert => Some(size(trace, kids[1], axis)),
        Head::Index(d) => Some(size(trace, kids[d], axis + d)),
        Head::Sum => {
            let (rank, _) = trace.ty(kids[0]).as_tensor()?;
            Some(size(trace, kids[0], axis + rank))
        }
        Head::Reduce(_, d) => {
            let inner = size(trace, kids[d], axis);
            lowered(trace, inner, d)
        }
        Head::If => {
            let (a, b) = (size(trace, kids[1], axis), size(trace, kids[2], axis));
            Some(if a == b { a } else { trace.put(label, [kids[0], a, b]) })
        }
        Head::Op(_) => {
            let tensor = kids.iter().copied().find(|k| trace.ty(*k).axes() > 0)?;
            Some(size(trace, tensor, axis))
        }
        Head::Get(i, _) => match trace.node(kids[0]).clone() {
            (Label::Head(Head::Tuple), parts) => Some(size(trace, parts[i as usize], axis)),
            _ => None,
        },
        _ => None,
    }
}
