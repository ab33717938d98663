//! A choice becomes a term. A plan is a choice with the tensors that are made once and read.

use super::Graph;
use super::extract::{Choice, MAX_FAMILIES, extracted_kids};
use super::facts::node_total;
use super::language::{ENode, Label};
use super::names;
use super::tree::Trees;
use crate::ir::{Head, Id as TermId, Lit, Op, Terms, deep};
use egg::Id;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// What to extract: a choice, and tensors that are made once and read.
///
/// An element of a tensor is in one e-class with what the tensor's definition computes for it. So a
/// choice of one member a class cannot both make the tensor and read it: the definition of a kept
/// tensor has a choice of its own, in which that tensor is not kept.
#[derive(Clone)]
pub struct Plan<'a> {
    /// The choice outside the definitions of kept tensors.
    pub top: Rc<Choice>,
    /// The kept tensors with the choices of their definitions.
    kept: BTreeMap<Id, Rc<Inside<'a>>>,
}

/// The choice inside the definition of a kept tensor. Many are kept that nothing reads, so it is made when it is asked
/// for.
struct Inside<'a> {
    trees: &'a Trees<'a>,
    /// The tensors that are kept there.
    kept: BTreeSet<Id>,
    choice: OnceCell<Rc<Choice>>,
}

impl<'a> Plan<'a> {
    /// The choice inside the definitions of kept tensors, the last one innermost.
    pub fn choice(&self, defining: &[Id]) -> &Rc<Choice> {
        let Some(inside) = defining.last().map(|t| &self.kept[t]) else { return &self.top };
        inside.choice.get_or_init(|| inside.trees.tree(&inside.kept))
    }

    /// Whether a tensor is kept.
    pub fn keeps(&self, id: Id) -> bool {
        self.kept.contains_key(&id)
    }

    /// What the term of a class depends on, where the definitions of tensors are being made, the last one innermost: on
    /// the choice there, and on which of the tensors may stand in it and cannot be read.
    pub fn around(&self, id: Id, defining: &[Id]) -> Around {
        let holds = |t: &&Id| self.kept[*t].trees.holders(**t).contains(&id);
        let mut inside: Vec<Id> = defining.iter().filter(holds).copied().collect();
        inside.sort_unstable();
        (defining.last().copied(), inside)
    }

    /// A choice that keeps nothing.
    pub fn plain(top: Rc<Choice>) -> Plan<'a> {
        Plan { top, kept: Default::default() }
    }

    /// A plan that keeps all tensors.
    pub fn keep_all(trees: &'a Trees<'a>) -> Plan<'a> {
        let none = Plan { top: Rc::default(), kept: BTreeMap::new() };
        let every: Vec<Id> = trees.all.families.iter().take(MAX_FAMILIES).flatten().copied().collect();
        none.toggled(trees, &every)
    }

    /// The plan with a family of tensors kept that was not, or the other way round.
    pub fn toggled(&self, trees: &'a Trees<'a>, family: &[Id]) -> Plan<'a> {
        let mut tensors: BTreeSet<Id> = self.kept.keys().copied().collect();
        let keep = family.iter().any(|t| !tensors.contains(t));
        for tensor in family {
            if keep {
                tensors.insert(*tensor)
            } else {
                tensors.remove(tensor)
            };
        }
        let family = |t: &Id| trees.all.families.iter().position(|f| f.contains(t));
        let without = |t: &Id| tensors.iter().copied().filter(|o| family(o) != family(t)).collect();
        let inside = |t: &Id| Rc::new(Inside { trees, kept: without(t), choice: OnceCell::new() });
        let kept = tensors.iter().map(|t| (*t, inside(t))).collect();
        Plan { top: trees.tree(&tensors), kept }
    }
}

/// The tensor whose definition is being made, and those of the tensors around it that matter.
pub type Around = (Option<Id>, Vec<Id>);

/// A plan makes so many parts at most: it is no good where definitions in definitions make more.
const MAX_MADE: usize = 200_000;

/// Makes terms from a choice.
pub struct Builder<'a> {
    g: &'a Graph,
    plan: &'a Plan<'a>,
    params: usize,
    /// Kept tensors whose definition is being made: in it they cannot be read.
    defining: Vec<Id>,
    memo: FxHashMap<(Id, usize, Around), Option<TermId>>,
    open: FxHashSet<(Id, Around)>,
    /// Whether a term cannot fail.
    pub total: FxHashMap<TermId, bool>,
    /// Whether a tensor that would be copied element by element is taken as it is.
    pub copies: bool,
}

impl<'a> Builder<'a> {
    /// For a definition of so many parameters.
    pub fn new(g: &'a Graph, plan: &'a Plan<'a>, params: usize) -> Builder<'a> {
        let (defining, memo, open, total) = Default::default();
        Builder { g, plan, params, defining, memo, open, total, copies: true }
    }

    /// The term of a class at a depth. Nothing where the choice has a gap or a cycle.
    pub fn term(&mut self, terms: &mut Terms, id: Id, depth: usize) -> Option<TermId> {
        let id = self.g.find(id);
        let around = self.plan.around(id, &self.defining);
        let key = (id, depth, around.clone());
        if let Some(known) = self.memo.get(&key) {
            return *known;
        }
        // A class may not stand inside itself, at whatever depth.
        if self.memo.len() >= MAX_MADE || !self.open.insert((id, around.clone())) {
            return None;
        }
        let defines = self.plan.keeps(id) && !self.defining.contains(&id);
        if defines {
            self.defining.push(id);
        }
        let choice = self.plan.choice(&self.defining).clone();
        let node = choice.get(&id);
        let strict = self.g[id].data.strict;
        let out = node.and_then(|node| deep(|| self.node(terms, node, depth, strict)));
        if let (Some(node), Some(out)) = (node, out) {
            names::tell(self.g, id, node, terms, out);
        }
        if defines {
            self.defining.pop();
        }
        self.open.remove(&(id, around));
        self.memo.insert(key, out);
        out
    }

    fn node(&mut self, terms: &mut Terms, node: &ENode, depth: usize, strict: bool) -> Option<TermId> {
        let head = match node.label {
            Label::Head(head) => head,
            Label::Param(k, ty) => {
                let id = terms.var((depth + self.params - 1 - k as usize) as u32, ty);
                self.total.insert(id, true);
                return Some(id);
            }
            Label::Unknown => return None,
        };
        let kids = extracted_kids(node);
        let mut ids: Vec<TermId> = vec![];
        for (k, kid) in kids.iter().enumerate() {
            ids.push(self.term(terms, *kid, depth + head.binds(k, kids.len()))?);
        }
        if self.copies
            && let Some(tensor) = self.copied(terms, node, head, &ids)
        {
            return Some(tensor);
        }
        if let Some(lit) = folded(terms, head, &ids) {
            let id = terms.lit(lit);
            self.total.insert(id, true);
            return Some(id);
        }
        let all_total = ids.iter().all(|k| self.total.get(k) == Some(&true));
        let total = strict || node_total(self.g, node) && (all_total || self.guarded(terms, head, &ids));
        let id = terms.add(head, ids).ok()?;
        // One term may come from classes that know different things of it.
        let entry = self.total.entry(id).or_insert(total);
        *entry &= total;
        Some(id)
    }

    /// Whether an `if` asks for an element before it looks for the greatest or least, and else cannot fail.
    fn guarded(&self, terms: &Terms, head: Head, ids: &[TermId]) -> bool {
        let total = |id: &TermId| self.total.get(id) == Some(&true);
        let (Head::If, [asked, found, other]) = (head, ids) else { return false };
        let [extent, key] = terms.kids(*found) else { return false };
        let zero = |id: TermId| terms.as_lit(id) == Some(Lit::int(0));
        let some = match (terms.head(*asked), terms.kids(*asked)) {
            (Head::Op(Op::Gt), [n, z]) | (Head::Op(Op::Lt), [z, n]) => n == extent && zero(*z),
            _ => false,
        };
        matches!(terms.head(*found), Head::Arg(_)) && some && [asked, extent, key, other].into_iter().all(total)
    }

    /// The tensor itself, where the node would copy it element by element.
    fn copied(&mut self, terms: &mut Terms, node: &ENode, head: Head, ids: &[TermId]) -> Option<TermId> {
        let Head::Build(d) = head else { return None };
        let (read, kids) = (terms.head(ids[d]), terms.kids(ids[d]).to_vec());
        let in_order = |k: usize| matches!(terms.head(kids[k]), Head::Var(i, _) if i as usize == d - 1 - k);
        if read != Head::Index(d) || !(0..d).all(in_order) {
            return None;
        }
        // The sizes of the tensor that is read are known by its class.
        let choice = self.plan.choice(&self.defining).clone();
        let body = choice.get(&self.g.find(node.kids[d]))?;
        let dims = &self.g[*body.kids.last()?].data.dims;
        let same =
            (0..d).all(|k| dims.get(k).copied().flatten().is_some_and(|n| self.g.find(n) == self.g.find(node.kids[k])));
        if body.label != Label::Head(read) || !same {
            return None;
        }
        let out = crate::types::shape::lowered(terms, kids[d], d)?;
        same_totality(terms, &mut self.total, kids[d], out, &mut FxHashSet::default());
        Some(out)
    }
}

/// Says of the parts of a copy with other variables what is known of the parts of the original. What is certain to
/// be evaluated may have an arm that fails, so a term that cannot fail says nothing of its parts.
pub fn same_totality(
    terms: &Terms,
    total: &mut FxHashMap<TermId, bool>,
    from: TermId,
    to: TermId,
    seen: &mut FxHashSet<(TermId, TermId)>,
) {
    if from == to || !seen.insert((from, to)) {
        return;
    }
    let known = total.get(&from) == Some(&true);
    total.entry(to).or_insert(known);
    for (a, b) in terms.kids(from).iter().zip(terms.kids(to)) {
        deep(|| same_totality(terms, total, *a, *b, seen));
    }
}

/// The value of an operation on literals: the same bits as at run time.
fn folded(terms: &Terms, head: Head, ids: &[TermId]) -> Option<Lit> {
    let args = || ids.iter().map(|k| terms.as_lit(*k)).collect::<Option<Vec<_>>>();
    let value = match head {
        Head::Op(op) => op.eval(&args()?).ok()?,
        Head::Cast(s) => args()?.first()?.cast(s)?,
        _ => return None,
    };
    value.as_f64().is_none_or(f64::is_finite).then_some(value)
}
