//! One stage: memory for its box, loops over it, elements or accumulators.

use super::elements::zero;
use super::loops::{Each, Run};
use super::{Block, Boxed, Lower, Lowered, Memory, Storage};
use crate::ir::{Op, Scalar};
use crate::nest::{Expr, Info, Stmt, Var};
use crate::schedule::plan::{Kind, Loop, Plan, Site};
use crate::schedule::triangle;
use crate::stage::{Body, Definition, Node, Output, Source, StageId};

impl<'s> Lower<'s> {
    /// A stage that is computed whole.
    pub(super) fn at_root(&mut self, stage: StageId) -> Lowered<()> {
        let zero = self.g.bodies.int(0);
        for k in 0..self.order.len() {
            let p = self.order[k];
            let plan = self.s.plan(p);
            if plan.beside && matches!(plan.site, Site::At(host, _) if host == stage) {
                let sizes = self.sizes(p)?;
                let room: Vec<Body> = sizes.iter().map(|n| self.room(*n)).collect();
                let least = vec![zero; room.len()];
                match room.is_empty() {
                    true => self.declare(p),
                    false => self.reserve(p, least.clone(), room, None),
                }
                if self.s.collects(p) {
                    self.begin(&Run::new(p, self.s.plan(p).clone(), least, sizes))?;
                }
            }
        }
        let extent = self.sizes(stage)?;
        self.compute(stage, vec![zero; extent.len()], extent, false)
    }

    /// Sets the elements of a reduction that collects to what they are before the first point.
    fn begin(&mut self, run: &Run) -> Lowered<()> {
        let Definition::Reduce { init, .. } = self.g.stage(run.stage).def.clone() else { return Ok(()) };
        let mut run = Run { hosts: false, ..run.clone() };
        (run.plan.loops, run.plan.splits) = (self.elements_of(&run.plan, 0), vec![]);
        let (loops, (before, _)) = (run.plan.loops.clone(), self.g.checks(run.stage));
        self.nested(&mut run, &loops, &mut |l, run| {
            let values = l.at_here(run, &before, &init);
            l.store(run, values);
            Ok(())
        })
    }

    /// Plain loops over the dimensions that a stage has elements of, from one on.
    fn elements_of(&self, plan: &Plan, from: usize) -> Vec<Loop> {
        let plain = |(name, _): &(String, _)| Loop { name: name.clone(), kind: Kind::Serial };
        plan.dims[from..plan.dims.len() - plan.over].iter().map(plain).collect()
    }

    /// The stages that are computed in a loop of the one that runs.
    pub(super) fn hosted(&mut self, run: &Run, name: &str) -> Lowered<()> {
        let outer = std::mem::take(&mut self.boxes);
        let made = self.keep_stages(run, name).and_then(|()| self.all_hosted(run, name));
        self.boxes = outer;
        made
    }

    fn all_hosted(&mut self, run: &Run, name: &str) -> Lowered<()> {
        let windows = self.windows(run, name)?;
        for k in 0..self.order.len() {
            let p = self.order[k];
            if self.s.plan(p).site == Site::At(run.stage, name.to_string()) && !self.is_state(p, run.stage) {
                if let Some(w) = windows.iter().find(|w| w.is_of(p)) {
                    self.slide(w, run, name)?;
                    continue;
                }
                let (least, extent) = self.region(p, run)?;
                self.compute(p, least, extent, false)?;
            }
        }
        Ok(())
    }

    /// Computes a box of a stage, in memory of its own where it has none that is kept.
    pub(super) fn compute(&mut self, stage: StageId, least: Vec<Body>, extent: Vec<Body>, kept: bool) -> Lowered<()> {
        let plan = self.s.plan(stage).clone();
        let mut dims = self.g.stage(stage).dims.iter();
        let fixed = dims.all(|d| self.g.bodies.dims(self.g.dim(*d).extent).is_empty());
        let scatters = self.g.stage(stage).looped() < self.g.stage(stage).dims.len();
        let there = plan.beside || kept;
        let single = !there
            && !scatters
            && fixed
            && extent.iter().all(|n| self.g.bodies.as_int(*n) == Some(1))
            && !self.is_result(stage);
        let when = self.g.stage(stage).when;
        let mut run =
            Run { hosts: true, when, collects: self.s.collects(stage), ..Run::new(stage, plan, least, extent) };
        if let Definition::Recur { axis, init, next, .. } = self.g.stage(stage).def.clone() {
            return self.recurrence(&mut run, axis, &init, &next);
        }
        if single {
            self.see_memory(stage, Memory { least: run.least.clone(), room: None, ring: None });
        } else if !there {
            let room: Vec<Body> = run.extent.iter().map(|n| self.room(*n)).collect();
            self.reserve(stage, run.least.clone(), room, None);
        }
        match self.g.stage(stage).def.clone() {
            Definition::Pure(each) => self.pure(&mut run, &each, single),
            Definition::Reduce { init, next, .. } => self.reduce(&mut run, &init, &next, single),
            Definition::Scatter { only, at, value, .. } => self.scatter(&mut run, only, &at, &value),
            Definition::Recur { .. } => Ok(()),
        }
    }

    /// Whether the elements of a stage are handed out.
    fn is_result(&self, stage: StageId) -> bool {
        self.g.outputs.iter().any(|o| matches!(o, Output::Data(Source::Stage(s, _)) if *s == stage))
    }

    /// Memory for a box, which one of its dimensions may make a ring.
    pub(super) fn reserve(&mut self, stage: StageId, least: Vec<Body>, room: Vec<Body>, ring: Option<usize>) {
        self.see_memory(stage, Memory { least: least.clone(), room: Some(room.clone()), ring });
        let dims = self.element(&room);
        let known = self.g.stage(stage).clone();
        let mut bufs = vec![];
        for ty in &known.tys {
            let b = self.f.fresh_buf(Info::scalar(known.name.clone(), *ty));
            self.push(Stmt::Alloc(b, dims.clone()));
            bufs.push(b);
        }
        let layout = self.layout(stage);
        self.stored.insert(stage, Storage::Bufs(Boxed { bufs, least, room, ring, layout }));
    }

    /// The order of the dimensions of a stage in memory, where that is not their own: as the schedule says, or the one that is
    /// the lanes of vectors last.
    fn layout(&self, stage: StageId) -> Vec<usize> {
        let said = &self.s.plan(stage).layout;
        match self.near(stage) {
            Some(k) if said.is_empty() => {
                let all = self.g.stage(stage).dims.len();
                (0..all).filter(|other| *other != k).chain([k]).collect()
            }
            _ => said.clone(),
        }
    }

    /// The dimension of a stage whose indices are the lanes of vectors, here and wherever it is read, where that is not the
    /// last: they lie next to each other then. What is computed whole, and what data decide, lies as the source says.
    fn near(&self, stage: StageId) -> Option<usize> {
        let (known, plan) = (self.g.stage(stage), self.s.plan(stage));
        if let Some((leader, _)) = known.recurrence() {
            // States of rows that are lanes of a step.
            let rows = lanes(self.s.plan(leader)).filter(|k| Some(*k) != self.s.plan(leader).steps)?;
            return (self.s.has_tensors_in_steps(leader) && !self.is_result(stage)).then_some(rows);
        }
        let inside = matches!(plan.site, Site::At(..)) && !plan.beside && known.looped() == known.dims.len();
        let k = lanes(plan).filter(|k| inside && k + 1 < known.dims.len())?;
        let reads_so = |r: &StageId| {
            let lane = lanes(self.s.plan(*r)).map(|k| self.s.plan(*r).dims[k].1);
            let bodies = &self.g.bodies;
            bodies.reachable(self.g.stage(*r).bodies()).into_iter().all(|b| match bodies.node(b) {
                Node::Load(Source::Stage(p, _), _, at) if *p == stage => {
                    at.iter().enumerate().all(|(j, i)| lane.is_some_and(|d| bodies.dims(*i).contains(&d)) == (j == k))
                }
                _ => true,
            })
        };
        self.g.consumers(stage).iter().all(reads_so).then_some(k)
    }

    /// Variables for the one element of a stage.
    pub(super) fn variables(&mut self, stage: StageId) -> Vec<Var> {
        let known = self.g.stage(stage).clone();
        known.tys.iter().map(|ty| self.scalar(&known.name, *ty)).collect()
    }

    /// Variables for the one element of a stage, which is set later.
    fn declare(&mut self, stage: StageId) {
        let vars = self.variables(stage);
        for v in &vars {
            let ty = self.f.var(*v).ty;
            self.push(Stmt::Mut(*v, Expr::Lit(zero(ty))));
        }
        self.stored.insert(stage, Storage::Vars(vars));
    }

    fn pure(&mut self, run: &mut Run, each: &[Body], single: bool) -> Lowered<()> {
        let (stage, loops) = (run.stage, run.plan.loops.clone());
        let checks = self.g.stage(stage).checks.clone();
        if single {
            self.declare(stage);
        }
        self.nested(run, &loops, &mut |l, run| {
            let values = l.at_here(run, &checks, each);
            l.store(run, values);
            Ok(())
        })
    }

    /// Sets the element of the stage at the indices of its loops.
    pub(super) fn store(&mut self, run: &Run, values: Vec<Expr>) {
        match self.stored.get(&run.stage).cloned() {
            Some(Storage::Vars(vars)) => {
                for (v, e) in vars.iter().zip(values) {
                    self.push(Stmt::Set(*v, e));
                }
            }
            Some(Storage::Bufs(of)) => {
                let at = self.place_here(run, &of);
                for (b, e) in of.bufs.iter().zip(values) {
                    self.push(Stmt::Store(*b, at.clone(), e));
                }
            }
            None => {}
        }
    }

    /// Where the element of the stage at the indices of its loops is.
    fn place_here(&mut self, run: &Run, of: &Boxed) -> Expr {
        let dims = run.plan.dims.len() - run.plan.over;
        let at: Vec<Body> = (0..dims).filter_map(|k| self.dim_value(run, k)).collect();
        let at = self.place(&at, of);
        self.element(&[at])[0].clone()
    }

    /// Zeros, and then values that are added in the order of the loops.
    fn scatter(&mut self, run: &mut Run, only: Option<Body>, to: &[Body], values: &[Body]) -> Lowered<()> {
        let stage = self.g.stage(run.stage).clone();
        let (outer, over) = run.plan.loops.split_at(stage.looped());
        let (outer, over) = (outer.to_vec(), over.to_vec());
        let elements = self.elements_of(&run.plan, stage.looped());
        let zeros: Vec<Expr> = stage.tys.iter().map(|ty| Expr::Lit(zero(*ty))).collect();
        let (before, at_each) = self.g.checks(run.stage);
        self.nested(run, &outer, &mut |l, run| {
            l.at_here(run, &before, &[]);
            l.nested(run, &elements, &mut |l, run| {
                l.store(run, zeros.clone());
                Ok(())
            })?;
            run.apart = l.adds_apart(run, to);
            l.nested(run, &over, &mut |l, run| {
                let c = l.at_here(run, &at_each, only.as_slice());
                l.blocks.push(Block::default());
                let each = l.at_here(run, &[], &[to, values].concat());
                let (to, values) = each.split_at(to.len());
                l.add_at(run, to, values);
                let block = l.blocks.pop().unwrap_or_default();
                match c.into_iter().next() {
                    Some(c) => l.push(Stmt::If(c, block.stmts, vec![])),
                    None => block.stmts.into_iter().for_each(|s| l.push(s)),
                }
                Ok(())
            })
        })
    }

    /// The innermost loop of a scatter, where its iterations add to different elements: one of the indices steps with it.
    fn adds_apart(&self, run: &Run, to: &[Body]) -> Option<String> {
        let (name, d) = run.plan.dims.last()?;
        let bodies = &self.g.bodies;
        let is_own = |a: Body| matches!(bodies.node(a), Node::Index(e) if e == d);
        let steps = |i: &Body| {
            let form = bodies.linear(*i).filter(|_| bodies.is_small(*i));
            form.is_some_and(|f| {
                f.terms().any(|(a, _)| is_own(a)) && f.terms().all(|(a, _)| is_own(a) || !bodies.dims(a).contains(d))
            })
        };
        to.iter().any(steps).then(|| name.clone())
    }

    /// Adds values to the element at indices of the last dimensions.
    fn add_at(&mut self, run: &Run, to: &[Expr], values: &[Expr]) {
        let Some(Storage::Bufs(of)) = self.stored.get(&run.stage).cloned() else { return };
        let Boxed { bufs, least, room, .. } = of;
        let outer: Vec<Body> = (0..least.len() - to.len()).filter_map(|k| self.dim_value(run, k)).collect();
        let at = self.inside(&outer, &least);
        // Row-major: the outer indices first, then each of the others.
        let (own, inner) = room.split_at(outer.len());
        let at = self.offset(&at, own);
        let mut at = self.element(&[at])[0].clone();
        for (i, n) in to.iter().zip(self.element(inner)) {
            at = Expr::folded(Op::Mul, Scalar::I64, vec![at, n]);
            at = Expr::folded(Op::Add, Scalar::I64, vec![at, i.clone()]);
        }
        let place = self.scalar("at", Scalar::I64);
        self.push(Stmt::Let(place, at));
        let values = if values.len() > 1 { self.held(values.to_vec()) } else { values.to_vec() };
        for (b, v) in bufs.iter().zip(values) {
            let (ty, at) = (self.f.ty(&v), Expr::Var(place));
            let sum = Expr::Op(Op::Add, ty, vec![Expr::Load(*b, Box::new(at.clone())), v]);
            self.push(Stmt::Store(*b, at, sum));
        }
    }

    fn reduce(&mut self, run: &mut Run, init: &[Body], next: &[Body], single: bool) -> Lowered<()> {
        let loops = run.plan.loops.clone();
        let (parts, rest) = loops.split_at(run.plan.parts());
        if !single && !rest.is_empty() {
            // What one part gives is added to what lies in memory of those before, so that only a tile is in registers.
            self.begin(run)?;
            return self.nested(run, parts, &mut |l, run| {
                run.collects = true;
                let made = l.reduce_in(run, rest, (init, next), false);
                run.collects = false;
                made
            });
        }
        self.reduce_in(run, &loops, (init, next), single)
    }

    /// A reduction in loops.
    fn reduce_in(
        &mut self,
        run: &mut Run,
        loops: &[Loop],
        (init, next): (&[Body], &[Body]),
        single: bool,
    ) -> Lowered<()> {
        let first = loops.iter().position(|l| run.plan.reduces(&l.name)).unwrap_or(loops.len());
        let (outer, inner) = loops.split_at(first);
        let (outer, inner) = (outer.to_vec(), inner.to_vec());
        let tile: Vec<Loop> = inner.iter().filter(|l| !run.plan.reduces(&l.name)).cloned().collect();
        // What is set in an arm, or in loops, is declared outside of them.
        let single = single && {
            let inside = run.when.is_some() || !tile.is_empty();
            if inside {
                self.declare(run.stage);
            }
            !inside
        };
        let wanted = if tile.is_empty() { None } else { self.wanted(run.stage) };
        self.nested(run, &outer, &mut |l, run| {
            if tile.is_empty() {
                return l.accumulate(run, &inner, init, next, single);
            }
            l.where_wanted(run, wanted, &mut |l, run| l.accumulate_tile(run, &inner, &tile, init, next))
        })
    }

    /// What is greater than 0 where the elements of a stage are read, where tiles of which none is read may be left out:
    /// nothing that is computed in its loops is read after them.
    fn wanted(&mut self, stage: StageId) -> Option<Body> {
        let beside =
            |p: StageId| self.s.plan(p).beside && matches!(self.s.plan(p).site, Site::At(host, _) if host == stage);
        if self.g.ids().any(beside) {
            return None;
        }
        self.g.wanted(stage)
    }

    /// Computes a tile where one of its elements is read.
    fn where_wanted(&mut self, run: &mut Run, wanted: Option<Body>, body: &mut Each<'_, 's>) -> Lowered<()> {
        let Some(wanted) = wanted else { return body(self, run) };
        let Some(most) = self.most_here(wanted, run)? else { return body(self, run) };
        let zero = self.g.bodies.int(0);
        let c = self.test(Op::Gt, most, zero);
        self.blocks.push(Block::default());
        let made = body(self, run);
        let block = self.blocks.pop().unwrap_or_default();
        made?;
        self.push(Stmt::If(c, block.stmts, vec![]));
        Ok(())
    }

    /// The value of each body at the indices of the loops, after checks.
    pub(super) fn at_here(&mut self, run: &Run, checks: &[Body], each: &[Body]) -> Vec<Expr> {
        let of = self.dim_values(run);
        let checks: Vec<Body> = checks.iter().map(|c| self.g.bodies.substitute(*c, &of)).collect();
        let each: Vec<Body> = each.iter().map(|b| self.g.bodies.substitute(*b, &of)).collect();
        self.checked(&checks, &each)
    }

    /// A reduction whose accumulators are variables.
    fn accumulate(&mut self, run: &mut Run, over: &[Loop], init: &[Body], next: &[Body], single: bool) -> Lowered<()> {
        let vars = self.variables(run.stage);
        let (before, at_each) = self.g.checks(run.stage);
        let first = self.first(run, &before, init);
        for (v, e) in vars.iter().zip(first) {
            self.push(Stmt::Mut(*v, e));
        }
        let outer = std::mem::replace(&mut self.accs, vars.iter().map(|v| Expr::Var(*v)).collect());
        let accs = self.accs.clone();
        let done = self.nested(run, over, &mut |l, run| {
            l.accs = accs.clone();
            let values = l.at_here(run, &at_each, next);
            l.set_all(&vars, values);
            Ok(())
        });
        self.accs = outer;
        done?;
        if single {
            self.stored.insert(run.stage, Storage::Vars(vars));
        } else {
            self.store(run, accs);
        }
        Ok(())
    }

    /// What an element is before the first term: after checks, what the source says, or what earlier parts have collected.
    fn first(&mut self, run: &Run, before: &[Body], init: &[Body]) -> Vec<Expr> {
        let of = match self.stored.get(&run.stage).cloned().filter(|_| run.collects) {
            Some(Storage::Bufs(of)) => of,
            Some(Storage::Vars(vars)) => return vars.into_iter().map(Expr::Var).collect(),
            None => return self.at_here(run, before, init),
        };
        let at = self.place_here(run, &of);
        of.bufs.iter().map(|b| Expr::Load(*b, Box::new(at.clone()))).collect()
    }

    /// Sets variables at once: all values are of those before.
    pub(super) fn set_all(&mut self, vars: &[Var], values: Vec<Expr>) {
        let [_] = vars else {
            let mut held = vec![];
            for (v, e) in vars.iter().zip(values) {
                let name = self.f.var(*v).name.clone();
                let ty = self.f.var(*v).ty;
                let new = self.f.fresh(name, ty);
                self.push(Stmt::Let(new, e));
                held.push(Stmt::Set(*v, Expr::Var(new)));
            }
            held.into_iter().for_each(|s| self.push(s));
            return;
        };
        for (v, e) in vars.iter().zip(values) {
            self.push(Stmt::Set(*v, e));
        }
    }

    /// A reduction with loops over elements inside those over what is reduced: each element has accumulators of its own.
    fn accumulate_tile(
        &mut self,
        run: &mut Run,
        inner: &[Loop],
        tile: &[Loop],
        init: &[Body],
        next: &[Body],
    ) -> Lowered<()> {
        let tile = self.tile(run, tile);
        let (before, at_each) = self.g.checks(run.stage);
        let hosts = std::mem::replace(&mut run.hosts, false);
        self.nested(run, &tile.loops, &mut |l, run| {
            let at = l.place_in(&tile, run);
            let values = l.first(run, &before, init);
            l.accumulated(&tile, &at, values);
            Ok(())
        })?;
        run.hosts = hosts;
        let outer = std::mem::take(&mut self.accs);
        let mut add = |l: &mut Self, run: &mut Run| {
            let at = l.place_in(&tile, run);
            l.accs = tile.load(&at);
            let values = l.at_here(run, &at_each, next);
            let values: Vec<Expr> = if values.len() == 1 { values } else { l.held(values) };
            l.accumulated(&tile, &at, values);
            Ok(())
        };
        let done = match triangle::of(&self.g, &run.plan)? {
            Some(triangle) => self.over_triangle(run, inner, &triangle, &mut add),
            None => self.nested(run, inner, &mut add),
        };
        self.accs = outer;
        done?;
        run.hosts = false;
        self.nested(run, &tile.loops, &mut |l, run| {
            let at = l.place_in(&tile, run);
            l.store(run, tile.load(&at));
            Ok(())
        })?;
        run.hosts = hosts;
        Ok(())
    }

    pub(super) fn held(&mut self, values: Vec<Expr>) -> Vec<Expr> {
        self.constants("next", values).into_iter().map(Expr::Var).collect()
    }
}

/// The dimension of a plan whose indices are the lanes of vectors.
fn lanes(plan: &Plan) -> Option<usize> {
    let of = plan.loops.iter().find(|l| l.kind == Kind::Vector)?;
    plan.root(&of.name).filter(|k| *k < plan.dims.len() - plan.over)
}
