//! The stages of a graph become lets around its result.

use super::maker::{Item, Made, Maker};
use super::scope::Bound;
use super::ways::{Access, Ways};
use crate::diag::Source as Text;
use crate::eval::MAX_ELEMENTS;
use crate::ir::{self, Def, Head, Id, Lit, Op, Program, Scalar, Ty, TyKind, deep};
use crate::stage::{Body, DimId, Graph, Node, Output, Source, StageId};
use indexmap::{IndexMap, IndexSet};

/// A longer text is not made.
const MAX_NODES: u64 = 200_000;

impl Graph {
    /// A program of one definition that computes what the graph does, under the name and parameters of `def`, whose graph it
    /// is. Where a check of the graph does not hold, it fails.
    ///
    /// # Errors
    /// What the language cannot say: ragged tensors in states, scatters over triangles, text beyond reason.
    pub fn program(&self, def: &Def) -> Result<Program, String> {
        let ways = Ways::new(&def.params);
        let (terms, scope, recurrences, steps, fixed) = Default::default();
        let mut maker = Maker { g: self.clone(), terms, scope, ways, recurrences, steps, fixed };
        maker.find_recurrences();
        for (k, p) in def.params.iter().enumerate() {
            maker.scope.push(Bound::Param(k), p.ty);
        }
        let body = maker.whole(def)?;
        if maker.terms.size(body) > MAX_NODES {
            return Err(format!("its text would have more than {MAX_NODES} nodes"));
        }
        let new = Def { body: ir::Body::Term(body), ..def.clone() };
        let defs = IndexMap::from_iter([(def.fun, new)]);
        let program = Program { terms: maker.terms, defs, source: Text::new(def.name(), "") };
        crate::types::verify::verify(&program).map_err(|d| d.message.clone())?;
        Ok(program)
    }
}

impl Maker {
    fn whole(&mut self, def: &Def) -> Made<Id> {
        let entry = self.g.entry.clone().into_iter();
        let entry: Vec<Body> = entry.filter(|c| !self.is_granted(*c, def) && !self.is_said(*c)).collect();
        self.after(&entry, &mut |m| {
            let items = m.in_order(m.wanted(), None);
            m.bound(&items, &[], &mut |m| {
                let (mut outputs, ret) = (m.g.outputs.clone().into_iter(), def.fun.sig().ret);
                m.result(ret, &mut outputs, &mut vec![])
            })
        })
    }

    /// Whether a condition of the start holds of all arguments, or of all that have room in memory: sizes of one name are
    /// compared at the call, and limits of sizes are no part of a program.
    fn is_granted(&self, c: Body, def: &Def) -> bool {
        let bodies = &self.g.bodies;
        let Node::Op(op, _, args) = bodies.node(c) else { return false };
        let axis = |b: Body| match bodies.node(b) {
            Node::Symbol(s) => self.ways.symbols.get(s.0 as usize).and_then(Access::own_axis),
            _ => None,
        };
        match (op, args.as_slice()) {
            (Op::Eq, [a, b]) => {
                let (a, b) = (axis(*a), axis(*b));
                let named = |(p, axis): (usize, usize)| def.params[p].sizes.get(axis);
                a.zip(b).is_some_and(|(a, b)| named(a).is_some() && named(a) == named(b))
            }
            (Op::Lt, [a, most]) => {
                let of_sizes = bodies.reachable([*a]).into_iter().all(|b| match bodies.node(b) {
                    Node::Symbol(_) => axis(b).is_some(),
                    _ => true,
                });
                of_sizes && bodies.as_lit(*most).and_then(Lit::to_f64).is_some_and(|v| v >= MAX_ELEMENTS as f64)
            }
            _ => false,
        }
    }

    /// Whether another condition of the start says more of the same number than this one.
    fn is_said(&self, c: Body) -> bool {
        let bodies = &self.g.bodies;
        let side = |c: Body| match bodies.node(c) {
            Node::Op(op @ (Op::Lt | Op::Gt | Op::Gte), _, args) => {
                Some((*op == Op::Lt, args[0], bodies.as_int(args[1])?))
            }
            _ => None,
        };
        let Some((below, a, end)) = side(c) else { return false };
        let closer = |e: i64| if below { e < end } else { e > end };
        self.g.entry.iter().filter_map(|o| side(*o)).any(|(b, of, e)| (b, of) == (below, a) && closer(e))
    }

    /// Whether a stage may fail: then it is computed, whether anything reads it or not.
    pub(super) fn fails(&self, s: StageId) -> bool {
        !self.g.stage(s).checks.is_empty()
    }

    /// The stages that the result needs, and those that may fail: in steps these are computed with their recurrence.
    fn wanted(&self) -> Vec<StageId> {
        let failing = self.g.ids().filter(|s| self.fails(*s)).map(|s| self.made_in(s).map_or(s, |r| r.leader));
        self.g.ids().filter(|s| self.g.is_output(*s)).chain(failing).collect()
    }

    // Lets.

    /// What some stages need, in an order in which each comes after what it reads; with a step, only what is made in it.
    pub(super) fn in_order(&self, wanted: Vec<StageId>, step: Option<&IndexSet<StageId>>) -> Vec<Item> {
        let mut out = IndexSet::new();
        wanted.into_iter().for_each(|s| self.visit(s, step, &mut out));
        out.into_iter().collect()
    }

    fn visit(&self, s: StageId, step: Option<&IndexSet<StageId>>, out: &mut IndexSet<Item>) {
        if step.is_some_and(|members| !members.contains(&s)) {
            return;
        }
        let item = match self.g.stage(s).recurrence() {
            Some((leader, _)) => Item::States(leader),
            None => Item::Stage(s),
        };
        if out.contains(&item) {
            return;
        }
        self.needs(item).into_iter().for_each(|read| deep(|| self.visit(read, step, out)));
        out.insert(item);
    }

    /// The stages that have to be there before one, or before the states of a recurrence; what is made in its steps is made
    /// with it, and read from outside after it.
    fn needs(&self, item: Item) -> Vec<StageId> {
        match item {
            Item::Stage(s) => self.made_in(s).map(|r| r.leader).into_iter().chain(self.read_by(s)).collect(),
            Item::States(leader) => {
                let Some(r) = self.recurrence(leader) else { return vec![] };
                let all = r.states.iter().chain(&r.members).flat_map(|s| self.read_by(*s));
                all.filter(|s| !r.members.contains(s) && !r.states.contains(s)).collect()
            }
        }
    }

    /// The stages that a stage reads, or that say how long its loops are.
    pub(super) fn read_by(&self, s: StageId) -> Vec<StageId> {
        let stage = self.g.stage(s);
        let extents = stage.dims.iter().chain(stage.over()).map(|d| self.g.dim(*d).extent);
        let all = self.g.reads(stage.bodies().into_iter().chain(extents));
        all.into_iter().filter_map(Source::stage).collect()
    }

    /// A term with lets around it.
    pub(super) fn bound(
        &mut self,
        items: &[Item],
        fixed: &[DimId],
        inner: &mut dyn FnMut(&mut Self) -> Made<Id>,
    ) -> Made<Id> {
        let mut values = vec![];
        let before = self.fixed.clone();
        for item in items {
            let (value, what, s) = match *item {
                Item::Stage(s) => (self.value(s, fixed)?, Bound::Stage(s), s),
                Item::States(s) => (self.all_states(s, fixed)?, Bound::States(s), s),
            };
            self.scope.push(what, self.terms.ty(value));
            self.fixed.insert(*item, fixed.to_vec());
            values.push((value, s));
        }
        let mut out = inner(self)?;
        for (value, s) in values.into_iter().rev() {
            self.scope.pop(1);
            if matches!(self.terms.head(out), Head::Var(0, _)) {
                out = value;
                continue;
            }
            out = self.put(Head::Let, vec![value, out])?;
            self.terms.name(out, vec![self.g.stage(s).name.clone()], true);
        }
        self.fixed = before;
        Ok(out)
    }

    /// An element of a stage.
    pub(super) fn read(&mut self, s: StageId, k: u32, at: &[Body]) -> Made<Id> {
        if self.g.stage(s).recurrence().is_some() {
            return self.read_state(s, k, at);
        }
        let stage = self.g.stage(s).clone();
        let left = self.not_fixed(Item::Stage(s), &stage.dims, at)?;
        let looped = left.iter().filter(|(d, _)| stage.dims[..stage.looped()].contains(d)).count();
        let at: Vec<Body> = left.into_iter().map(|(_, b)| b).collect();
        let mut out = self.variable(Bound::Stage(s))?;
        for own in [&at[..looped], &at[looped..]] {
            out = self.indexed(out, own)?;
        }
        self.part(out, k)
    }

    /// The indices of those dimensions that are not fixed where a value is bound; the others are the step's own.
    pub(super) fn not_fixed(&self, item: Item, dims: &[DimId], at: &[Body]) -> Made<Vec<(DimId, Body)>> {
        let fixed = self.fixed.get(&item).map_or(&[][..], Vec::as_slice);
        let (inner, outer): (Vec<_>, Vec<_>) =
            dims.iter().copied().zip(at.iter().copied()).partition(|(d, _)| !fixed.contains(d));
        if outer.iter().any(|(d, b)| !self.is_index(*b, *d)) {
            return Err("a step that reads what another step has computed".into());
        }
        Ok(inner)
    }

    /// An element of a tensor; the value itself, where there are no indices.
    pub(super) fn indexed(&mut self, value: Id, at: &[Body]) -> Made<Id> {
        if at.is_empty() {
            return Ok(value);
        }
        let at = self.each(at)?;
        self.put(Head::Index(at.len()), at.into_iter().chain([value]).collect())
    }

    // Results.

    /// The result of a type, whose parts come one after another; inside of tensors at indices.
    fn result(&mut self, ty: Ty, outputs: &mut std::vec::IntoIter<Output>, at: &mut Vec<DimId>) -> Made<Id> {
        match ty.kind() {
            TyKind::Tuple(parts) => {
                let each = parts.iter().map(|p| self.result(*p, outputs, at)).collect::<Made<Vec<Id>>>()?;
                self.put(Head::Tuple, each)
            }
            TyKind::Tensor(d, elem) => {
                let mut dims = vec![];
                for _ in 0..*d {
                    let Some(Output::Size(n)) = outputs.next() else { return Err("a result without its size".into()) };
                    dims.push(self.g.add_dim("i", n));
                }
                if let (Some(Output::Data(from)), true) = (outputs.as_slice().first(), at.is_empty())
                    && let Some(whole) = self.entire(*from, ty)?
                {
                    outputs.next();
                    return Ok(whole);
                }
                at.extend(&dims);
                let depth = at.len() - dims.len();
                let out = self.over(&dims, &mut |m| m.result(*elem, outputs, at))?;
                at.truncate(depth);
                Ok(out)
            }
            _ => match outputs.next() {
                Some(Output::Scalar(b)) => self.number(b),
                Some(Output::Data(from)) => {
                    let index: Vec<Body> = at.iter().map(|d| self.g.bodies.index(*d)).collect();
                    let b = self.g.bodies.load(from, scalar(ty)?, index);
                    self.number(b)
                }
                Some(Output::Size(_)) | None => Err("a result without its number".into()),
            },
        }
    }

    /// The value that holds all elements of a result, where it is a tensor of just its type.
    fn entire(&mut self, from: Source, ty: Ty) -> Made<Option<Id>> {
        let Source::Stage(s, 0) = from else { return Ok(None) };
        let Some((k, own)) = self.scope.find(Bound::Stage(s)) else { return Ok(None) };
        let box_of = self.g.stage(s).dims.iter().all(|d| self.g.bodies.dims(self.g.dim(*d).extent).is_empty());
        Ok((own == ty && box_of && self.g.stage(s).when.is_none()).then(|| self.terms.var(k, ty)))
    }
}

fn scalar(ty: Ty) -> Made<Scalar> {
    ty.as_scalar().ok_or_else(|| "text".to_string())
}
