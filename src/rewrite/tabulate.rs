//! What an inner loop computes again in every round of an outer one becomes a table.
//!
//! `f(j)` inside loops over i and j, where it does not depend on i, becomes
//! `index j (build m (lam j f(j)))`. The table depends on no i, so elaboration moves it out of the
//! loop over i. Only terms that cannot fail are tabulated: a table computes all its elements.

use super::egraph::plan::same_totality;
use super::inline::{Site, bound_extents, site};
use crate::ir::op::Class;
use crate::ir::{Free, Head, Id, Lit, Node, Terms, Ty, deep};
use rustc_hash::{FxHashMap, FxHashSet};

/// A let-free term with what is known of its parts.
#[derive(Clone)]
pub struct Known {
    /// The arena.
    pub terms: Terms,
    /// The term.
    pub id: Id,
    /// Whether a term cannot fail.
    pub total: FxHashMap<Id, bool>,
}

/// A variable in scope.
#[derive(Clone, Copy)]
struct Bound {
    extent: Option<Id>,
    /// Whether something around the present term, in the loop, does not depend on it.
    left: bool,
    /// The loops that it is bound with: those over rows and columns, say, of which nothing stands between.
    with: usize,
}

/// What to turn into reads of a table. Two of one site are the same, wherever they were found.
#[derive(Clone, Debug)]
pub struct Target {
    site: Site,
    /// Whether the table is there already: a vector of these terms that is made anyway.
    made: bool,
    /// Whether it is computed again wherever it stands first: all around it depends on the loop that it does not depend on, so that
    /// nothing of that is computed outside of the loop.
    again: bool,
}

impl PartialEq for Target {
    fn eq(&self, other: &Target) -> bool {
        (&self.site, self.made) == (&other.site, other.made)
    }
}

impl Target {
    /// Whether it is arithmetic of indices and sizes, or a comparison of them: loops take longer to read that than to do
    /// it, and who cuts them into parts by it has to see it.
    pub fn is_of_indices(&self, terms: &Terms) -> bool {
        let exact = |ty: Ty| ty.as_scalar().is_some_and(|s| !s.is_float());
        terms.reachable(self.site.0).into_iter().all(|id| match terms.head(id) {
            Head::Size(_) => true,
            Head::Var(_, ty) => ty.has_tensor() || exact(ty),
            Head::Const(_) | Head::Op(_) | Head::If => exact(terms.ty(id)),
            _ => false,
        })
    }

    /// Whether it is arithmetic of floats that loops compute again.
    pub fn is_repeated(&self, terms: &Terms) -> bool {
        let of_floats = terms.ty(self.site.0).as_scalar().is_some_and(|s| s.is_float());
        self.again && of_floats && matches!(terms.head(self.site.0), Head::Op(_))
    }
}

/// The terms that tables could hold: what takes loops or transcendental functions before what does
/// not, and larger ones first.
pub fn candidates(known: &mut Known) -> Vec<Target> {
    let id = known.id;
    let mut walk = Walk { known, scope: vec![], target: None, found: vec![], seen: FxHashSet::default(), frames: 0 };
    walk.collect(id, 0);
    let mut found = walk.found;
    let terms = &known.terms;
    let mut costly: FxHashMap<Id, bool> = FxHashMap::default();
    for t in &found {
        costly.entry(t.site.0).or_insert_with(|| terms.reachable(t.site.0).into_iter().any(|id| is_costly(terms, id)));
    }
    found.sort_by_key(|t| (!t.made, !costly[&t.site.0], std::cmp::Reverse((terms.size(t.site.0), t.site.0))));
    found.dedup_by(|b, a| {
        a.again |= a == b && b.again;
        a == b
    });
    found
}

/// Whether a node alone takes more time than reading a table.
fn is_costly(terms: &Terms, id: Id) -> bool {
    match terms.head(id) {
        Head::Op(op) => op.row().class == Class::Transcendental,
        head => matches!(head, Head::Reduce(..) | Head::Sum | Head::Arg(_) | Head::Fold),
    }
}

/// The term with a table for `target` wherever that stands in a loop which it does not depend on.
pub fn tabulated(known: &Known, target: &Target) -> Known {
    let mut out = known.clone();
    let id = out.id;
    let mut walk = Walk {
        known: &mut out,
        scope: vec![],
        target: Some(target.clone()),
        found: vec![],
        seen: FxHashSet::default(),
        frames: 0,
    };
    let new = walk.replace(id, 0, &mut FxHashMap::default());
    out.id = new;
    out
}

struct Walk<'a> {
    known: &'a mut Known,
    scope: Vec<Bound>,
    target: Option<Target>,
    found: Vec<Target>,
    seen: FxHashSet<(Id, usize)>,
    frames: usize,
}

impl Walk<'_> {
    fn collect(&mut self, id: Id, frame: usize) {
        let frame = if self.known.terms.free(id).below(self.scope.len()) { frame } else { 0 };
        if !self.seen.insert((id, frame)) {
            return;
        }
        if self.table(id).is_some()
            && let Some(site) = self.site(id)
        {
            let again = self.is_computed_again(id);
            self.found.push(Target { site, made: false, again });
        }
        let left: Vec<bool> = self.scope.iter().map(|b| b.left).collect();
        self.leave(id);
        let Node { head, kids } = self.known.terms.node(id).clone();
        for (k, kid) in kids.iter().enumerate() {
            let depth = self.scope.len();
            let inner = self.enter(head, &kids, k, frame);
            if head == Head::Build(1)
                && k == 1
                && self.row(*kid).is_some()
                && let Some(site) = self.site(*kid)
            {
                self.found.push(Target { site, made: true, again: false });
            }
            deep(|| self.collect(*kid, inner));
            self.scope.truncate(depth);
        }
        self.scope.iter_mut().zip(left).for_each(|(b, left)| b.left = left);
    }

    /// Notes the loops that a term does not depend on: it is computed outside of them, with all that stands in it.
    fn leave(&mut self, id: Id) {
        let (free, depth) = (self.known.terms.free(id), self.scope.len());
        for (k, b) in self.scope.iter_mut().enumerate() {
            b.left |= !free.has(depth - 1 - k);
        }
    }

    /// Whether a loop that a term does not depend on, outside of one that it does, computes it again.
    fn is_computed_again(&self, id: Id) -> bool {
        let (free, depth) = (self.known.terms.free(id), self.scope.len());
        let innermost = (0..depth).find(|i| free.has(*i)).unwrap_or(depth);
        (innermost..depth).any(|i| !free.has(i) && !self.scope[depth - 1 - i].left)
    }

    /// Brings the variables into scope that child `k` sees; the frame of the child.
    fn enter(&mut self, head: Head, kids: &[Id], k: usize, frame: usize) -> usize {
        if head.binds(k, kids.len()) == 0 {
            return frame;
        }
        let extents = match head {
            Head::Let => vec![None],
            _ => bound_extents(&mut self.known.terms, head, kids),
        };
        self.frames += 1;
        let with = self.frames;
        self.scope.extend(extents.into_iter().map(|extent| Bound { extent, with, left: false }));
        with
    }

    /// The variables that a table of the term would have, outermost first, and their extents here.
    fn table(&mut self, id: Id) -> Option<Vec<(usize, Id)>> {
        let depth = self.scope.len();
        let terms = &self.known.terms;
        let free = terms.free(id);
        if depth > 60
            || self.known.total.get(&id) != Some(&true)
            || terms.ty(id).as_scalar().is_none()
            || !self.works(id)
        {
            return None;
        }
        // The further out the loop that repeats it, the more a table saves.
        let innermost = (0..depth).find(|i| free.has(*i))?;
        let outer: Vec<usize> = (innermost..depth).rev().filter(|i| !free.has(*i)).collect();
        outer.into_iter().find_map(|o| self.dims(free, o))
    }

    /// The variables of a table that is to stand outside the loop of variable `outer`, and of those that it is bound with.
    fn dims(&mut self, free: Free, outer: usize) -> Option<Vec<(usize, Id)>> {
        let depth = self.scope.len();
        let with = |i: &usize| self.scope[depth - 1 - i].with == self.scope[depth - 1 - outer].with;
        let outer = (outer..depth).take_while(with).last()?;
        let mut dims = vec![];
        for i in (0..=outer).rev().filter(|i| free.has(*i)) {
            let extent = self.scope[depth - 1 - i].extent?;
            let here = self.known.terms.shift(extent, i + 1);
            if self.known.terms.free(here).below(outer + 1) || !self.is_size(extent) {
                return None;
            }
            dims.push((i, here));
        }
        Some(dims)
    }

    /// The one variable of a vector of such terms that a loop around this place could have.
    fn row(&mut self, id: Id) -> Option<Vec<(usize, Id)>> {
        let free = self.known.terms.free(id);
        let scalar = self.known.terms.ty(id).as_scalar().is_some();
        if !scalar || !free.has(0) || self.known.total.get(&id) != Some(&true) || !self.works(id) {
            return None;
        }
        let extent = self.scope.last()?.extent?;
        let here = self.known.terms.shift(extent, 1);
        self.is_size(extent).then(|| vec![(0, here)])
    }

    /// The term apart from where it stands.
    fn site(&mut self, id: Id) -> Option<Site> {
        let extents: Vec<Option<Id>> = self.scope.iter().map(|b| b.extent).collect();
        site(&mut self.known.terms, id, &extents)
    }

    /// Whether the term computes anything beyond reading.
    fn works(&self, id: Id) -> bool {
        let terms = &self.known.terms;
        let works =
            |id: Id| matches!(terms.head(id), Head::Op(_) | Head::Reduce(..) | Head::Sum | Head::Arg(_) | Head::Fold);
        let reads = |id: Id| matches!(terms.head(id), Head::Index(_));
        match terms.head(id) {
            Head::Op(_) => true,
            _ => works(id) || (!reads(id) && terms.reachable(id).into_iter().any(works)),
        }
    }

    /// Whether the term is a size: never negative, and without failure.
    fn is_size(&self, id: Id) -> bool {
        match self.known.terms.head(id) {
            Head::Const(Lit::Int(_, v)) => v >= 0,
            // Extents are renumbered where they stand beside variables, so that a size may be no part of the term.
            Head::Size(_) => {
                let of = self.known.terms.kids(id)[0];
                matches!(self.known.terms.head(of), Head::Var(..)) || self.known.total.get(&id) == Some(&true)
            }
            _ => false,
        }
    }

    fn replace(&mut self, id: Id, frame: usize, memo: &mut FxHashMap<(Id, usize), Id>) -> Id {
        let frame = if self.known.terms.free(id).below(self.scope.len()) { frame } else { 0 };
        if let Some(done) = memo.get(&(id, frame)) {
            return *done;
        }
        let made = self.target.as_ref().is_some_and(|t| t.made);
        let dims = if made { self.row(id) } else { self.table(id) };
        if let Some(dims) = dims
            && self.site(id) == self.target.as_ref().map(|t| t.site.clone())
        {
            let out = self.read(id, &dims);
            memo.insert((id, frame), out);
            return out;
        }
        let Node { head, kids } = self.known.terms.node(id).clone();
        let mut new = vec![];
        for (k, kid) in kids.iter().enumerate() {
            let depth = self.scope.len();
            let inner = self.enter(head, &kids, k, frame);
            // The table itself stays what it is.
            let table = made && head == Head::Build(1) && k == 1 && self.row(*kid).is_some();
            new.push(if table { *kid } else { deep(|| self.replace(*kid, inner, memo)) });
            self.scope.truncate(depth);
        }
        let out = self.known.terms.put(head, new);
        self.known.terms.called_as(out, id);
        if let Some(total) = self.known.total.get(&id).copied() {
            *self.known.total.entry(out).or_insert(total) &= total;
        }
        memo.insert((id, frame), out);
        out
    }

    /// A table of the term, read at the variables in scope.
    fn read(&mut self, id: Id, dims: &[(usize, Id)]) -> Id {
        let n = dims.len();
        let terms = &mut self.known.terms;
        let place = |i: usize| dims.iter().position(|(d, _)| *d == i);
        let body = terms.map_free(id, 0, &mut |t, i, ty, depth| {
            let new = place(i as usize).map_or(i as usize + n, |p| n - 1 - p);
            t.var((new + depth) as u32, ty)
        });
        let table = terms.put(Head::Build(n), dims.iter().map(|(_, e)| *e).chain([body]));
        let mut kids: Vec<Id> = dims.iter().map(|(i, _)| terms.var(*i as u32, crate::ir::Ty::int())).collect();
        kids.push(table);
        let out = terms.put(Head::Index(n), kids.iter().copied());
        // The term cannot fail, nor can reading within the extents.
        same_totality(&self.known.terms, &mut self.known.total, id, body, &mut FxHashSet::default());
        let sizes = dims.iter().flat_map(|(_, e)| self.known.terms.reachable(*e)).collect::<Vec<_>>();
        for sure in sizes.into_iter().chain(kids).chain([body, out]) {
            self.known.total.insert(sure, true);
        }
        out
    }
}
