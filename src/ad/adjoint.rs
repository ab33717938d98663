//! Contributions of adjoints leave the scopes in which they were made.
//!
//! A contribution that leaves a loop gets one more loop around it. What it needs of the values of the loop's
//! body is made again where that is cheap, and otherwise kept in a table over the loop's indices, so
//! no loop of the result does more work than a constant times a loop of the source. Where a table
//! would be ragged, the contribution becomes a tensor inside the loop, and the loop a sum of tensors.

use super::checkpoint::Less;
use super::contribution::{Contribution, Item};
use super::emit::Val;
use super::kept::Kept;
use super::like::Like;
use super::scope::{Place, Plan, Scope};
use super::walk::Walk;
use crate::diag::Result;
use crate::ir::{Head, Id, Monoid, Op, Ty, TyKind};
use crate::types::shape::empty_sum;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Arms within so many arms give all that they collect as one value: a guard for each arm around a contribution would
/// make long chains of conditions grow with their square.
const NESTED: usize = 8;

/// Collected contributions by the number of the adjoint.
pub type Frame = BTreeMap<usize, Vec<Contribution>>;

/// A walk backwards through a body.
pub struct Reverse<'a, 't> {
    /// Values, and the text under construction.
    pub w: Walk<'a, 't>,
    /// What was collected in the scopes that are open.
    pub frames: Vec<Frame>,
    /// What each adjoint has the shape of, and its type.
    pub likes: Vec<(Ty, Like)>,
    /// The sizes in tables of tuples: equal for all rows. Each stands where its table stands.
    pub tables: FxHashMap<Id, Vec<Id>>,
    /// Folds and scans of which less is kept: what happens in a part of a fold over parts is not.
    pub less: Less,
    /// How many folds and scans are open.
    pub sequences: usize,
    /// The number of variables around the step backwards that is open, the innermost.
    pub step: Option<usize>,
    /// How many arms are open.
    pub arms: usize,
    /// Conditions that are not made at once with their derivatives, because an arm has none.
    pub separate: FxHashSet<Id>,
    /// What is kept of the steps of folds and scans in scope, by the term and the number of variables around it.
    pub kept: FxHashMap<(Id, usize), Vec<Kept>>,
}

/// A scope that contributions leave.
pub enum Leaving {
    /// A loop with these extents.
    Loop(Vec<Id>),
    /// A loop with these extents, of whose body no table is made but of what its contributions come to.
    Parts(Vec<Id>),
    /// The arm of a condition that holds.
    Arm(Id),
}

impl Reverse<'_, '_> {
    /// A new adjoint, of a value.
    pub fn adjoint(&mut self, ty: Ty, like: Like) -> usize {
        self.likes.push((ty, like));
        self.likes.len() - 1
    }

    /// Collects a contribution.
    pub fn collect(&mut self, adjoint: usize, contribution: Contribution) {
        if let Some(frame) = self.frames.last_mut() {
            frame.entry(adjoint).or_default().push(contribution);
        }
    }

    /// What was collected of an adjoint in the scope that is open.
    pub fn take(&mut self, adjoint: usize) -> Vec<Contribution> {
        self.frames.last_mut().and_then(|f| f.remove(&adjoint)).unwrap_or_default()
    }

    /// Ends the scope opened when `outer` variables were in scope: what was collected in it goes to the
    /// scope around it.
    ///
    /// # Errors
    /// Bugs only.
    pub fn leave(&mut self, outer: usize, how: &Leaving) -> Result<()> {
        let mut frame = self.frames.pop().unwrap_or_default();
        let (mut indices, mut only) = (0, None);
        match how {
            Leaving::Loop(extents) => indices = extents.len(),
            Leaving::Parts(extents) => {
                indices = extents.len();
                only = Some(self.elements(&mut frame)?);
            }
            Leaving::Arm(_) => {}
        }
        let mut scope = Scope::new((outer, indices), self.w.e.depth() - outer - indices, only);
        let at_once = matches!(how, Leaving::Parts(_)) || self.is_nested(how);
        // First it is decided for all contributions: what is done then opens further lets.
        let (mut contributions, mut stuck) = (vec![], vec![]);
        let mut now = |list: Vec<Contribution>| list.into_iter().map(|p| p.now(&mut self.w.e)).collect();
        let frame: Vec<(usize, Vec<Contribution>)> =
            frame.into_iter().map(|(adjoint, list)| (adjoint, now(list))).collect();
        for (id, loops) in frame.iter().flat_map(|(_, list)| list).flat_map(all_terms) {
            self.note_repeated(&mut scope, id, loops);
        }
        for (adjoint, list) in frame {
            let mut left = vec![];
            for p in list {
                let whole = p.steps.is_empty() && !self.likes[adjoint].0.has_tensor();
                let terms = all_terms(&p);
                let fits = !(whole && self.is_nested(how))
                    && terms.iter().all(|(id, loops)| self.plan_term(&mut scope, *id, *loops));
                if fits { contributions.push((adjoint, p)) } else { left.push(p) }
            }
            if !left.is_empty() {
                stuck.push((adjoint, left));
            }
        }
        let sums = match how {
            // What happens in a part or an arm is done again for each sum, so there is only one.
            _ if at_once && stuck.len() > 1 => vec![self.tensors_at_once(&scope, how, stuck)?],
            _ => {
                let each = stuck.into_iter();
                each.map(|(a, left)| Ok((vec![a], self.tensors(&scope, how, a, left)?))).collect::<Result<_>>()?
            }
        };
        let table = self.table(&mut scope, how, &contributions);
        let moved: Vec<(usize, Contribution)> = contributions
            .into_iter()
            .map(|(a, p)| {
                let p = p.now(&mut self.w.e);
                (a, self.moved(&scope, how, table.is_some(), p))
            })
            .collect();
        self.w.e.leave(outer);
        if let Some(table) = table {
            self.w.e.bind(table);
        }
        for (adjoint, p) in moved {
            self.collect(adjoint, p);
        }
        self.collect_sums(outer, sums);
        Ok(())
    }

    /// Whether a scope is an arm within many arms.
    fn is_nested(&self, how: &Leaving) -> bool {
        matches!(how, Leaving::Arm(_)) && self.arms > NESTED
    }

    /// Collects sums, each of one adjoint or a tuple for several, made when `outer` variables were in scope.
    fn collect_sums(&mut self, outer: usize, sums: Vec<(Vec<usize>, Id)>) {
        for (adjoints, sum) in sums {
            let sum = self.w.e.now(Val { id: sum, depth: outer });
            let sum = self.w.e.bind(sum);
            let n = adjoints.len() as u32;
            for (k, adjoint) in adjoints.into_iter().enumerate() {
                let whole = self.w.e.now(sum);
                let value = if n == 1 { whole } else { self.w.e.get(k as u32, n, whole) };
                let value = self.w.e.bind(value);
                let contribution = self.whole(value);
                self.collect(adjoint, contribution);
            }
        }
    }

    /// Contributions as one tensor, summed over the loop, in the scope around it.
    fn tensors(
        &mut self,
        scope: &Scope,
        how: &Leaving,
        adjoint: usize,
        contributions: Vec<Contribution>,
    ) -> Result<Id> {
        let (ty, like) = self.likes[adjoint].clone();
        let dense = self.w.force(ty, &like, contributions)?;
        let first = scope.first_let();
        let body = self.w.e.wrapped(first, dense);
        match how {
            Leaving::Loop(extents) | Leaving::Parts(extents) => {
                let head = Head::Reduce(Monoid::Add, extents.len());
                let sum = self.w.e.put(head, extents.iter().copied().chain([body]));
                Ok(self.with_shape(scope, (ty, &like), extents, sum))
            }
            Leaving::Arm(c) => {
                // The zero is made in the scope around the arm, where no let of the arm may be used.
                let zero = self.zero_outside(scope.outer, &like);
                Ok(self.w.e.put(Head::If, [*c, body, zero]))
            }
        }
    }

    /// As [`Reverse::tensors`], for several adjoints: one sum of tuples, in the order of the adjoints.
    fn tensors_at_once(
        &mut self,
        scope: &Scope,
        how: &Leaving,
        stuck: Vec<(usize, Vec<Contribution>)>,
    ) -> Result<(Vec<usize>, Id)> {
        let (mut adjoints, mut each, mut zeros) = (vec![], vec![], vec![]);
        for (adjoint, contributions) in stuck {
            let (ty, like) = self.likes[adjoint].clone();
            let dense = self.w.force(ty, &like, contributions)?;
            each.push(self.w.e.val(dense));
            zeros.push(self.zero_outside(scope.outer, &like));
            adjoints.push(adjoint);
        }
        let each: Vec<Id> = each.into_iter().map(|v| self.w.e.now(v)).collect();
        let all = self.w.e.put(Head::Tuple, each);
        let body = self.w.e.wrapped(scope.first_let(), all);
        let zero = self.w.e.put(Head::Tuple, zeros);
        let made = match how {
            Leaving::Loop(extents) | Leaving::Parts(extents) => {
                let head = Head::Reduce(Monoid::Add, extents.len());
                let sum = self.w.e.put(head, extents.iter().copied().chain([body]));
                self.unless_nothing(extents, sum, zero)
            }
            Leaving::Arm(c) => self.w.e.put(Head::If, [*c, body, zero]),
        };
        Ok((adjoints, made))
    }

    /// A sum with the shape that it is to have, also over nothing: there it has that of its element as written.
    fn with_shape(&mut self, scope: &Scope, (ty, like): (Ty, &Like), extents: &[Id], sum: Id) -> Id {
        if !ty.has_tensor() {
            return sum;
        }
        let wanted: Vec<Id> = like.sizes.iter().map(|s| self.w.e.terms.shift(s.id, scope.outer - s.depth)).collect();
        if empty_sum(self.w.e.terms, sum).is_some_and(|sizes| sizes == wanted) {
            return sum;
        }
        let zero = self.zero_outside(scope.outer, like);
        self.unless_nothing(extents, sum, zero)
    }

    /// The sum where all extents are positive, else the zero.
    fn unless_nothing(&mut self, extents: &[Id], sum: Id, zero: Id) -> Id {
        let none = self.w.e.int(0);
        extents.iter().fold(sum, |out, n| {
            let some = self.w.e.op(Op::Gt, [*n, none]);
            self.w.e.put(Head::If, [some, out, zero])
        })
    }

    fn zero_outside(&mut self, outer: usize, like: &Like) -> Id {
        let by = |v: &Val| outer - v.depth;
        let val = self.w.e.terms.shift(like.val.id, by(&like.val));
        let sizes: Vec<Id> = like.sizes.iter().map(|s| self.w.e.terms.shift(s.id, by(s))).collect();
        self.w.zero(val, &sizes)
    }

    /// The table of what contributions need, in the scope around; nothing where they need nothing.
    fn table(&mut self, scope: &mut Scope, how: &Leaving, contributions: &[(usize, Contribution)]) -> Option<Id> {
        let first = scope.first_let();
        let n = scope.plans.len();
        let mut needed = vec![false; n];
        for (_, p) in contributions {
            for (id, loops) in all_terms(p) {
                self.need(scope, id, first + n + loops, loops, &mut needed);
            }
        }
        scope.kept = (0..n).filter(|k| needed[*k] && scope.plans[*k] == Plan::Table).map(|k| first + k).collect();
        if scope.kept.is_empty() {
            return None;
        }
        let each: Vec<Id> = scope.kept.clone().into_iter().map(|l| self.w.e.level(l)).collect();
        let one = match each.as_slice() {
            [one] => *one,
            _ => self.w.e.put(Head::Tuple, each.iter().copied()),
        };
        let body = self.w.e.wrapped(first, one);
        let mut sizes = self.sizes_of_kept(scope);
        let table = match how {
            Leaving::Loop(extents) | Leaving::Parts(extents) => {
                let head = Head::Build(extents.len());
                sizes = sizes.map(|s| [extents.as_slice(), &s].concat());
                self.w.e.put(head, extents.iter().copied().chain([body]))
            }
            Leaving::Arm(c) => {
                let others: Vec<Id> = scope.kept.clone().into_iter().map(|l| self.in_place_of(scope, l)).collect();
                let other = match others.as_slice() {
                    [one] => *one,
                    _ => self.w.e.put(Head::Tuple, others),
                };
                self.w.e.put(Head::If, [*c, body, other])
            }
        };
        if let Some(sizes) = sizes {
            self.tables.insert(table, sizes);
        }
        Some(table)
    }

    /// The sizes of what is kept in a table, where all are known in the scope around.
    fn sizes_of_kept(&mut self, scope: &Scope) -> Option<Vec<Id>> {
        let mut out = vec![];
        for level in scope.kept.clone() {
            let value = self.w.e.let_value(level)?;
            out.extend(self.sizes_outside(scope.outer, value, Place::at(level))?);
        }
        Some(out)
    }

    /// What stands for the let of an arm where its condition does not hold: it is never read. It has the
    /// let's sizes where they are known outside, so that a table of such values is not ragged.
    fn in_place_of(&mut self, scope: &Scope, level: usize) -> Id {
        let Some(value) = self.w.e.let_value(level) else { return self.w.e.int(0) };
        let ty = self.w.e.ty(value);
        let outside = self.sizes_outside(scope.outer, value, Place::at(level));
        if let Some(made) = outside.and_then(|s| self.w.stand_in_of(ty, &mut s.into_iter())) {
            return made;
        }
        self.w.stand_in(ty)
    }

    /// Notes the lets that a term needs of a table.
    fn need(&mut self, scope: &Scope, id: Id, depth: usize, loops: usize, needed: &mut [bool]) {
        let first = scope.first_let();
        let free = self.w.e.terms.variables(id);
        let top = depth - loops;
        for level in first..top {
            let at = level - first;
            if at >= needed.len() || !free.has(depth - 1 - level) || needed[at] {
                continue;
            }
            needed[at] = true;
            if scope.plans[at] == Plan::Again
                && let Some(value) = self.w.e.let_value(level)
            {
                self.need(scope, value, level, 0, needed);
            }
        }
    }

    /// A contribution in the scope around.
    fn moved(&mut self, scope: &Scope, how: &Leaving, table: bool, p: Contribution) -> Contribution {
        let now = self.w.e.depth();
        let mut out = p.map(&mut |id, loops| self.term_outside(scope, table, id, now, loops));
        let outer = scope.outer + usize::from(table);
        let mut items = match how {
            Leaving::Loop(extents) | Leaving::Parts(extents) => {
                let by = usize::from(table);
                extents.iter().enumerate().map(|(k, n)| Item::Loop(self.w.e.terms.shift(*n, by + k))).collect()
            }
            Leaving::Arm(c) => vec![Item::Guard(self.w.e.terms.shift(*c, usize::from(table)))],
        };
        items.append(&mut out.items);
        Contribution { depth: outer, items, ..out }
    }

    /// A term of the scope at `depth`, under loops, in the scope around with the table and the indices.
    fn term_outside(&mut self, scope: &Scope, table: bool, id: Id, depth: usize, loops: usize) -> Id {
        let first = scope.first_let();
        let by = usize::from(table);
        let total = first + by;
        // What stands for each level, in the scope around with table and indices.
        let free = self.w.e.terms.variables(id);
        let mut values: Vec<Option<Id>> = vec![None; depth - first];
        for level in first..depth {
            if free.has(depth - 1 - level + loops) {
                values[level - first] = Some(self.let_outside(scope, table, level));
            }
        }
        self.w.e.terms.map_free(id, loops, &mut |t, i, ty, under| {
            let level = depth - 1 - i as usize;
            if level >= first {
                let value = values[level - first].unwrap_or_else(|| t.var(0, ty));
                return t.shift(value, loops + under);
            }
            let level = if level >= scope.outer { level + by } else { level };
            t.var((total - 1 - level + loops + under) as u32, ty)
        })
    }

    fn let_outside(&mut self, scope: &Scope, table: bool, level: usize) -> Id {
        if let Some(k) = scope.kept.iter().position(|l| *l == level) {
            // The indices are the innermost variables, and the table stands right around them.
            let n = scope.indices;
            let tys: Vec<Ty> =
                scope.kept.iter().map(|l| self.w.e.let_value(*l).map_or(Ty::int(), |v| self.w.e.ty(v))).collect();
            let entry = if tys.len() == 1 { tys[0] } else { Ty::tuple(tys.clone()) };
            let row = match n {
                0 => self.w.e.terms.var(0, entry),
                _ => {
                    let of = self.w.e.terms.var(n as u32, Ty::tensor(n, entry));
                    let at: Vec<Id> = (0..n).map(|k| self.w.e.terms.var((n - 1 - k) as u32, Ty::int())).collect();
                    self.w.e.put(Head::Index(n), at.into_iter().chain([of]))
                }
            };
            return if tys.len() == 1 { row } else { self.w.e.get(k as u32, tys.len() as u32, row) };
        }
        match self.w.e.let_value(level) {
            Some(value) => self.term_outside(scope, table, value, level, 0),
            None => self.w.e.int(0),
        }
    }
}

/// Whether tensors inside of a tensor's elements have sizes of their own.
pub fn contains_tuple_of_tensors(ty: Ty) -> bool {
    match ty.kind() {
        TyKind::Tuple(parts) => parts.iter().any(|p| p.has_tensor()),
        TyKind::Tensor(_, e) => contains_tuple_of_tensors(*e),
        TyKind::Scalar(_) | TyKind::String | TyKind::Var(..) => false,
    }
}

/// The terms of a contribution, with the number of loops that each stands under.
fn all_terms(p: &Contribution) -> Vec<(Id, usize)> {
    let mut out = vec![];
    let copy = p.clone();
    copy.map(&mut |id, loops| {
        out.push((id, loops));
        id
    });
    out
}
