//! Shared and loop-invariant parts of a let-free term are bound by lets: common subexpression
//! elimination and loop-invariant motion in one pass, after Cranelift's scoped elaboration.
//!
//! A part is bound in the outermost loop where its variables are in scope. A part that may fail is never moved
//! to where it was not certain to run. One that cannot fail, and takes loops or more, may leave the arms of `if`s
//! together with a loop around them: it is computed once, also where no arm asks for it, and else again whenever
//! one does. Which is cheaper, a cost says.

use super::uses::{Kind, Part, Place, Scope, Uses};
use crate::cost::{Model, Shape};
use crate::ir::op::Class;
use crate::ir::{Head, Id, Param, Terms, Ty, deep, named_size};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A node whose bound variables are named by the instance of their binder, so that equal parts are
/// one part wherever they stand.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Label {
    Head(Head),
    /// A parameter, by level.
    Param(usize, Ty),
    /// Variable `slot` of a binder.
    Bound {
        binder: usize,
        slot: usize,
        ty: Ty,
    },
    /// A looping node: its binder makes it one of a kind.
    Binder(Head, usize),
}

struct Node {
    label: Label,
    kids: SmallVec<[Part; 3]>,
    /// The binders whose variables it depends on.
    needs: Vec<usize>,
    ty: Ty,
    total: bool,
    /// Not worth a name: variables, literals, parts of tuples.
    free: bool,
    /// Takes loops, tensors or transcendental functions: making it where nobody asks for it can be worth it.
    costly: bool,
    /// How many variables its last child binds.
    binds: usize,
    /// The term it was first met as, which has its names.
    from: Option<Id>,
}

/// Whether a node is worth a name: computing it costs more than binding it.
pub fn is_named(model: Model, head: Head, kids: &[Ty], ty: Ty) -> bool {
    let shape = Shape { ty, kids, elements: 1.0, inner: 1.0, trips: 2.0 };
    model.own(head, &shape) > model.binding()
}

/// Binds the shared and invariant parts of a let-free term over parameters. `total` says which terms
/// cannot fail; the model which nodes are worth a name. No part leaves an arm.
pub fn elaborate(terms: &mut Terms, root: Id, params: &[Param], total: &FxHashMap<Id, bool>, model: Model) -> Id {
    elaborate_within(terms, root, params, total, (model, usize::MAX)).unwrap_or(root)
}

/// As [`elaborate`]. None where the term would have more than `most` parts.
pub fn elaborate_within(
    terms: &mut Terms,
    root: Id,
    params: &[Param],
    total: &FxHashMap<Id, bool>,
    (model, most): (Model, usize),
) -> Option<Id> {
    let (nodes, root) = unfolded(terms, root, params, total, (model, most));
    (nodes.len() <= most).then(|| placed(terms, params, &nodes, root, false).0)
}

/// A term with lets.
pub struct Elaborated {
    /// The term of [`elaborate`].
    pub within: Id,
    /// Where something can leave arms with loops, the same term with all of that moved out.
    pub outside: Option<Id>,
    /// How many parts the term has: what stands in several loops counts in each.
    pub parts: usize,
}

/// As [`elaborate`], both ways. None where the term would have more than `most` parts.
pub fn elaborate_both(
    terms: &mut Terms,
    root: Id,
    params: &[Param],
    total: &FxHashMap<Id, bool>,
    (model, most): (Model, usize),
) -> Option<Elaborated> {
    let (nodes, root) = unfolded(terms, root, params, total, (model, most));
    if nodes.len() > most {
        return None;
    }
    let (within, _) = placed(terms, params, &nodes, root, false);
    // Parts leave arms together with loops around them.
    let arms = nodes.iter().any(|n| n.label == Label::Head(Head::If));
    let loops = nodes.iter().any(|n| matches!(n.label, Label::Binder(..)));
    let outside = (arms && loops).then(|| placed(terms, params, &nodes, root, true));
    let outside = outside.and_then(|(id, left)| left.then_some(id));
    Some(Elaborated { within, outside, parts: nodes.len() })
}

fn unfolded(
    terms: &mut Terms,
    root: Id,
    params: &[Param],
    total: &FxHashMap<Id, bool>,
    (model, most): (Model, usize),
) -> (Vec<Node>, Part) {
    let (nodes, known, memo, binders) = Default::default();
    let mut graph = Unfold { terms, params, total, model, most, nodes, known, memo, binders, count: 0 };
    let mut scope: Vec<Label> = params.iter().enumerate().map(|(k, p)| Label::Param(k, p.ty)).collect();
    let root = graph.part(root, &mut scope, usize::MAX);
    (graph.nodes, root)
}

/// The term with lets, and whether a part left an arm.
fn placed(terms: &mut Terms, params: &[Param], nodes: &[Node], root: Part, leave: bool) -> (Id, bool) {
    let homes = vec![vec![]; nodes.len()];
    let mut placing = Placing { nodes, leave, left: false, scopes: vec![], inner: FxHashMap::default(), homes };
    placing.scopes.push(Scope { parent: None, depth: 0, kind: Kind::Top });
    placing.place_all(root);
    let left = placing.left;
    let mut bound: Vec<Vec<Part>> = vec![vec![]; placing.scopes.len()];
    for (part, homes) in placing.homes.iter().enumerate() {
        for home in homes.iter().filter(|h| h.named) {
            bound[home.at].push(part);
        }
    }
    let (levels, binders) = (vec![vec![]; nodes.len()], FxHashMap::default());
    let mut emit = Emit { placing, bound, levels, binders, depth: params.len(), terms };
    (emit.scope(0, root), left)
}

/// Terms become parts.
struct Unfold<'a> {
    terms: &'a mut Terms,
    params: &'a [Param],
    total: &'a FxHashMap<Id, bool>,
    model: Model,
    /// Where there are more parts than this, the rest does not matter.
    most: usize,
    nodes: Vec<Node>,
    known: FxHashMap<(Label, SmallVec<[Part; 3]>), Part>,
    /// Parts by term and the innermost binder in scope.
    memo: FxHashMap<(Id, usize, usize), Part>,
    /// Binders by their term with renumbered variables, and what those variables are.
    binders: FxHashMap<(Id, Vec<Part>), Part>,
    count: usize,
}

impl Unfold<'_> {
    fn part(&mut self, id: Id, scope: &mut Vec<Label>, innermost: usize) -> Part {
        if let Head::Var(i, _) = self.terms.head(id) {
            let label = scope[scope.len() - 1 - i as usize].clone();
            return self.variable(label);
        }
        if let Some(done) = self.memo.get(&(id, innermost, scope.len())) {
            return *done;
        }
        if self.nodes.len() > self.most {
            return 0;
        }
        let out = deep(|| self.node(id, scope, innermost));
        self.memo.insert((id, innermost, scope.len()), out);
        out
    }

    fn variable(&mut self, label: Label) -> Part {
        let (needs, ty) = match label {
            Label::Bound { binder, ty, .. } => (vec![binder], ty),
            Label::Param(_, ty) => (vec![], ty),
            Label::Head(_) | Label::Binder(..) => (vec![], Ty::tuple([])),
        };
        let (kids, from) = (SmallVec::new(), None);
        self.intern(Node { label, kids, needs, ty, total: true, free: true, costly: false, binds: 0, from })
    }

    fn intern(&mut self, node: Node) -> Part {
        let key = (node.label.clone(), node.kids.clone());
        if let Some(found) = self.known.get(&key) {
            // What is known to be total at one place may not be at another.
            self.nodes[*found].total &= node.total;
            // Copies of one part may have been called something at one place only.
            let unnamed = |id: &Id| self.terms.labelled(*id).is_none();
            if self.nodes[*found].from.as_ref().is_some_and(unnamed) {
                self.nodes[*found].from = node.from.or(self.nodes[*found].from);
            }
            return *found;
        }
        let part = self.nodes.len();
        self.known.insert(key, part);
        self.nodes.push(node);
        part
    }

    fn node(&mut self, id: Id, scope: &mut Vec<Label>, innermost: usize) -> Part {
        let (head, ids) = (self.terms.head(id), self.terms.kids(id).to_vec());
        let total = self.total.get(&id) == Some(&true);
        let n = ids.len();
        let binds = if n > 0 { head.binds(n - 1, n) } else { 0 };
        if binds == 0 {
            let kids: SmallVec<[Part; 3]> = ids.iter().map(|k| self.part(*k, scope, innermost)).collect();
            let needs = self.needs(&kids);
            let tys: Vec<Ty> = ids.iter().map(|k| self.terms.ty(*k)).collect();
            let ty = self.terms.ty(id);
            let free = self.has_name(head, &kids) || !is_named(self.model, head, &tys, ty);
            let (label, from, costly) = (Label::Head(head), Some(id), self.costly(head, ty, &kids));
            return self.intern(Node { label, kids, needs, ty, total, free, costly, binds: 0, from });
        }
        let key = self.binder_key(id, scope);
        if let Some(key) = &key
            && let Some(found) = self.binders.get(key)
        {
            self.nodes[*found].total &= total;
            return *found;
        }
        let mut kids: SmallVec<[Part; 3]> = ids[..n - 1].iter().map(|k| self.part(*k, scope, innermost)).collect();
        let binder = self.count;
        self.count += 1;
        let tys: Vec<Ty> = ids.iter().map(|k| self.terms.ty(*k)).collect();
        let from = scope.len();
        let bound = head.bound_tys(&tys);
        scope.extend(bound.iter().enumerate().map(|(slot, ty)| Label::Bound { binder, slot, ty: *ty }));
        kids.push(self.part(ids[n - 1], scope, binder));
        scope.truncate(from);
        let mut needs = self.needs(&kids);
        needs.retain(|b| *b != binder);
        let ty = self.terms.ty(id);
        let (label, from) = (Label::Binder(head, binder), Some(id));
        let part = self.intern(Node { label, kids, needs, ty, total, free: false, costly: true, binds, from });
        if let Some(key) = key {
            self.binders.insert(key, part);
        }
        part
    }

    /// Whether a node without variables of its own takes loops, a tensor or a transcendental function, itself or
    /// in a child.
    fn costly(&self, head: Head, ty: Ty, kids: &[Part]) -> bool {
        let own = match head {
            Head::Op(op) => ty.has_tensor() || op.row().class == Class::Transcendental,
            Head::Call(_) | Head::Sum | Head::ConstVec(_) | Head::DeltaVec(_) | Head::VecInit => true,
            _ => false,
        };
        own || kids.iter().any(|k| self.nodes[*k].costly)
    }

    /// Whether a part is the size of a parameter that the definition has a name for.
    fn has_name(&self, head: Head, kids: &[Part]) -> bool {
        let Head::Size(axis) = head else { return false };
        let Label::Param(level, _) = self.nodes[kids[0]].label else { return false };
        named_size(self.params, (level, axis)).is_some()
    }

    fn needs(&self, kids: &[Part]) -> Vec<usize> {
        let mut needs: Vec<usize> = kids.iter().flat_map(|k| self.nodes[*k].needs.iter().copied()).collect();
        needs.sort_unstable();
        needs.dedup();
        needs
    }

    /// The term with its free variables renumbered, and what they are: equal for equal computations.
    /// Nothing where a variable is too far out to be told apart.
    fn binder_key(&mut self, id: Id, scope: &[Label]) -> Option<(Id, Vec<Part>)> {
        let free = self.terms.free(id);
        if free.has(63) {
            return None;
        }
        let indices: Vec<usize> = (0..63).filter(|i| free.has(*i)).collect();
        let parts: Vec<Part> = indices.iter().map(|i| self.variable(scope[scope.len() - 1 - i].clone())).collect();
        let renumber = |i: u32| indices.iter().position(|j| *j == i as usize).unwrap_or(0);
        let renamed = self.terms.map_free(id, 0, &mut |t, i, ty, depth| t.var((renumber(i) + depth) as u32, ty));
        Some((renamed, parts))
    }
}

/// Where one part is computed, for some of its uses.
#[derive(Clone, Debug)]
struct Home {
    at: Place,
    /// Whether a let binds it there; else it stands at its one use.
    named: bool,
}

struct Placing<'a> {
    nodes: &'a [Node],
    /// Whether parts may leave arms, and whether one did.
    leave: bool,
    left: bool,
    scopes: Vec<Scope>,
    /// The scope of a child that runs elsewhere than its parent: by part, its place, and child.
    inner: FxHashMap<(Part, Place, usize), Place>,
    homes: Vec<Vec<Home>>,
}

impl Placing<'_> {
    fn place_all(&mut self, root: Part) {
        let mut uses: Vec<Vec<Place>> = vec![vec![]; self.nodes.len()];
        let mut within = Uses::default();
        uses[root].push(0);
        // Children have smaller numbers, so every use of a part is known when it is reached.
        for part in (0..self.nodes.len()).rev() {
            let sites = std::mem::take(&mut uses[part]);
            if sites.is_empty() {
                continue;
            }
            let nodes = self.nodes;
            let node = &nodes[part];
            let homes = if node.free { inline_homes(&sites) } else { self.homes_of(part, &sites, &mut within) };
            for home in &homes {
                for (k, kid) in node.kids.iter().enumerate() {
                    let at = self.scope_of(part, home.at, k);
                    uses[*kid].push(at);
                }
            }
            self.homes[part] = homes;
        }
    }

    /// The scope in which child `k` of a part at a place runs.
    fn scope_of(&mut self, part: Part, at: Place, k: usize) -> Place {
        let node = &self.nodes[part];
        let kind = match node.label {
            Label::Binder(_, binder) if k + 1 == node.kids.len() => Kind::Loop(binder),
            Label::Head(Head::If) if k > 0 => Kind::Arm(part, k),
            Label::Head(_) | Label::Param(..) | Label::Bound { .. } | Label::Binder(..) => return at,
        };
        if let Some(known) = self.inner.get(&(part, at, k)) {
            return *known;
        }
        let depth = self.scopes[at].depth + 1;
        self.scopes.push(Scope { parent: Some(at), depth, kind });
        self.inner.insert((part, at, k), self.scopes.len() - 1);
        self.scopes.len() - 1
    }

    fn homes_of(&mut self, part: Part, sites: &[Place], uses: &mut Uses) -> Vec<Home> {
        let mut homes = vec![];
        uses.of(&self.scopes, sites);
        self.homes_in(part, uses, 0, &mut homes);
        homes
    }

    /// Adds the homes for the uses in a scope.
    fn homes_in(&mut self, part: Part, uses: &Uses, scope: Place, homes: &mut Vec<Home>) {
        let common = uses.common(scope);
        let (total, within) = (self.nodes[part].total, uses.in_scope(common));
        if !total && !within.certain || !self.in_scope(part, common) {
            // It may fail, and nobody is sure to need it here; or its loop stands here more than once
            // for that reason. Each branch computes its own.
            within.inner.iter().for_each(|inner| deep(|| self.homes_in(part, uses, *inner, homes)));
            return;
        }
        let mut at = if total { self.hoisted(part, common) } else { common };
        if let Some(outside) = self.outside(part, at).filter(|_| total && self.leave) {
            (at, self.left) = (outside, true);
        }
        let named = within.count > 1 || at != common;
        homes.push(Home { at, named });
    }

    /// Whether all binders that the part depends on are around a scope.
    fn in_scope(&self, part: Part, at: Place) -> bool {
        let needs = &self.nodes[part].needs;
        // No binder is around itself.
        let (mut missing, mut place) = (needs.len(), Some(at));
        while let Some(p) = place.filter(|_| missing > 0) {
            if let Kind::Loop(binder) = self.scopes[p].kind {
                missing -= usize::from(needs.contains(&binder));
            }
            place = self.scopes[p].parent;
        }
        missing == 0
    }

    /// As far out as loops go that the part does not depend on.
    fn hoisted(&self, part: Part, mut at: Place) -> Place {
        while let (Kind::Loop(binder), Some(parent)) = (self.scopes[at].kind, self.scopes[at].parent) {
            if self.nodes[part].needs.contains(&binder) {
                break;
            }
            at = parent;
        }
        at
    }

    /// The place around the outermost loop that a costly part can leave together with arms in it; none where it
    /// depends on all loops around the arms.
    fn outside(&self, part: Part, mut at: Place) -> Option<Place> {
        let node = &self.nodes[part];
        let mut out = None;
        while let (true, Some(parent)) = (node.costly, self.scopes[at].parent) {
            match self.scopes[at].kind {
                Kind::Loop(binder) if node.needs.contains(&binder) => break,
                Kind::Loop(_) => out = Some(parent),
                Kind::Arm(..) | Kind::Top => {}
            }
            at = parent;
        }
        out
    }
}

/// A part without a cost stands at each of its uses.
fn inline_homes(sites: &[Place]) -> Vec<Home> {
    sites.iter().map(|at| Home { at: *at, named: false }).collect()
}

/// Parts become terms with lets.
struct Emit<'a> {
    placing: Placing<'a>,
    /// By place.
    bound: Vec<Vec<Part>>,
    /// Levels of parts that are bound around the present place, by part, the innermost last; and of binders' variables.
    levels: Vec<Vec<usize>>,
    binders: FxHashMap<usize, usize>,
    depth: usize,
    terms: &'a mut Terms,
}

impl Emit<'_> {
    /// Everything bound in a scope, around the part that is its result.
    fn scope(&mut self, at: Place, root: Part) -> Id {
        let parts = self.bound[at].clone();
        let mut values = Vec::with_capacity(parts.len());
        for part in &parts {
            values.push(self.node(*part, at));
            self.levels[*part].push(self.depth);
            self.depth += 1;
        }
        let mut out = self.part(root, at);
        for (part, value) in parts.into_iter().zip(values).rev() {
            out = self.terms.put(Head::Let, [value, out]);
            self.called(out, part);
            self.levels[part].pop();
            self.depth -= 1;
        }
        out
    }

    /// Lets the variable of a let be called what its part was called. That says the part alone: with lets around it
    /// the value may be the same term as another part without them.
    fn called(&mut self, bound: Id, part: Part) {
        let name = self.placing.nodes[part].from.and_then(|from| self.terms.labelled(from)).map(str::to_string);
        let chosen = name.is_some();
        self.terms.name(bound, vec![name.unwrap_or_else(|| "v".to_string())], chosen);
    }

    /// A use of a part: its name where a let binds it, else the part itself.
    fn part(&mut self, part: Part, at: Place) -> Id {
        if let Some(level) = self.levels[part].last() {
            let ty = self.placing.nodes[part].ty;
            return self.terms.var((self.depth - 1 - level) as u32, ty);
        }
        deep(|| self.node(part, at))
    }

    fn node(&mut self, part: Part, at: Place) -> Id {
        let node = &self.placing.nodes[part];
        let kids = node.kids.clone();
        let binds = node.binds;
        match node.label.clone() {
            Label::Param(level, ty) => self.terms.var((self.depth - 1 - level) as u32, ty),
            Label::Bound { binder, slot, ty } => {
                let level = self.binders.get(&binder).copied().unwrap_or(0) + slot;
                self.terms.var((self.depth - 1 - level) as u32, ty)
            }
            Label::Head(head) => {
                let ids: Vec<Id> = (0..kids.len()).map(|k| self.child(part, at, k, kids[k])).collect();
                self.made(part, head, ids)
            }
            Label::Binder(head, binder) => {
                let last = kids.len() - 1;
                let mut ids: Vec<Id> = (0..last).map(|k| self.child(part, at, k, kids[k])).collect();
                let outer = self.binders.insert(binder, self.depth);
                self.depth += binds;
                ids.push(self.child(part, at, last, kids[last]));
                self.depth -= binds;
                match outer {
                    Some(level) => self.binders.insert(binder, level),
                    None => self.binders.remove(&binder),
                };
                self.made(part, head, ids)
            }
        }
    }

    /// The term of a part, called what the part was called.
    fn made(&mut self, part: Part, head: Head, kids: Vec<Id>) -> Id {
        let out = self.terms.put(head, kids);
        if let Some(from) = self.placing.nodes[part].from {
            self.terms.called_as(out, from);
        }
        out
    }

    fn child(&mut self, part: Part, at: Place, k: usize, kid: Part) -> Id {
        let node = &self.placing.nodes[part];
        let inside = match node.label {
            Label::Binder(..) => k + 1 == node.kids.len(),
            Label::Head(head) => head == Head::If && k > 0,
            Label::Param(..) | Label::Bound { .. } => false,
        };
        let inner = if inside { self.placing.inner.get(&(part, at, k)).copied() } else { None };
        match inner {
            Some(inner) => self.scope(inner, kid),
            None => self.part(kid, at),
        }
    }
}
