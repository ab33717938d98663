//! What holds of stages that are computed beside others: in a loop over parts of a dimension that both run through, each part
//! from nothing but what is there by then. That dimension, the points of a stage, is its first one; or, where the host reduces
//! over its points, the first that the stage reduces over: it collects, and each iteration adds what the part gives. It must not
//! know how loops become text.

use super::plan::{Refusal, Schedule, Site, refuse};
use crate::stage::{Body, Definition, DimId, Node, Source, StageId};
use rustc_hash::FxHashMap;

impl Schedule {
    /// Checks that what others are computed beside is computed whole, so that no two stages are in loops of each other, and
    /// that none waits for itself.
    pub(super) fn hosts_are_in_order(&self) -> Result<(), Refusal> {
        let mut last = None;
        for s in self.graph.ids().filter(|s| self.plan(*s).beside) {
            let Site::At(to, _) = self.plan(s).site else { continue };
            let (name, host) = (&self.graph.stage(s).name, &self.graph.stage(to).name);
            if self.plan(to).site != Site::Root {
                return refuse(format!("`{name}` is computed beside `{host}`, which is not computed whole"));
            }
            last = Some((name, host));
        }
        match last {
            Some((name, host)) if !self.order_after().1 => refuse(format!(
                "`{name}`, beside `{host}`, or another stage would be computed before what it reads, or after what reads it"
            )),
            Some(_) => self.checks_come_first(),
            None => Ok(()),
        }
    }

    /// Checks that stages that only check come before all that come after them in the graph: those may read what was checked
    /// for them, and take no checks of their own along.
    fn checks_come_first(&self) -> Result<(), Refusal> {
        let order = self.order();
        let mut place = vec![0; order.len()];
        for (k, s) in order.iter().enumerate() {
            place[s.0 as usize] = k;
        }
        let starts = |mut s: StageId| {
            while let Site::At(host, _) = &self.plan(s).site {
                s = *host;
            }
            place[s.0 as usize]
        };
        for c in self.graph.ids().filter(|c| self.graph.stage(*c).tys.is_empty()) {
            let mut later = self.graph.ids().filter(|r| *r > c && self.plan(*r).site != Site::Inline);
            if let Some(r) = later.find(|r| starts(*r) <= starts(c)) {
                return refuse(format!(
                    "`{}` checks what is read after it, and would not come before `{}`",
                    self.graph.stage(c).name,
                    self.graph.stage(r).name
                ));
            }
        }
        Ok(())
    }

    /// Checks a stage that is computed in a loop of one that need not read it: the loop runs through parts of the points of
    /// both, what the stage reads is there before, and who reads it comes after.
    pub(super) fn legal_beside(&self, s: StageId, to: StageId, place: usize) -> Result<(), Refusal> {
        let (g, plan) = (&self.graph, self.plan(to));
        let (own, host) = (g.stage(s), g.stage(to));
        let (name, other) = (&own.name, &host.name);
        let plain = |p: StageId| {
            let stage = g.stage(p);
            // What is in an arm of its own runs where the arm is taken; a host runs all of its loop.
            let whole = stage.looped() == stage.dims.len() && (p == s || stage.when.is_none());
            let known = stage.dims.iter().all(|d| g.bodies.dims(g.dim(*d).extent).is_empty());
            whole && known && stage.recurrence().is_none() && self.steps_of(p).is_none()
        };
        if let Some(p) = [s, to].into_iter().find(|p| !plain(*p)) {
            return refuse(format!(
                "`{}` is a scatter, part of a recurrence, an arm that others would be in, or has rows of different lengths",
                g.stage(p).name
            ));
        }
        let root = plan.root(&plan.loops[place].name).filter(|k| *k == 0 || *k == plan.dims.len() - plan.over);
        if root.is_none() || !plan.loops[..=place].iter().all(|l| plan.root(&l.name) == root) {
            return refuse(format!("around `{other}` there are loops of other dimensions than the first"));
        }
        let Some(points) = self.points(s, to) else {
            return refuse(format!("`{name}` and `{other}` have first dimensions of different lengths"));
        };
        self.legal_collected(s, to, points)?;
        // What it reads in the same loop is there before it.
        let late = self.read_by(s).into_iter().find(|p| {
            self.inside(*p, to).is_some_and(|at| !plan.find(at).is_ok_and(|at| at <= place))
                && self.inside(*p, s).is_none()
        });
        if let Some(p) = late {
            return refuse(format!("`{name}` reads `{}`, which is computed in a loop inside of that", g.stage(p).name));
        }
        // And what reads it there comes after it.
        let early = self
            .consumers(s)
            .iter()
            .find(|r| **r != to && self.inside(**r, to).is_some_and(|at| plan.find(at).is_ok_and(|at| at < place)));
        if let Some(r) = early {
            let reader = &g.stage(*r).name;
            return refuse(format!("`{reader}` reads `{name}`, and is computed in a loop around that"));
        }
        match self.reads_others(s, to) {
            Some(r) => {
                let reader = &g.stage(r).name;
                refuse(format!("`{reader}` reads more of `{name}` than the part that is computed there"))
            }
            None => Ok(()),
        }
    }

    /// Checks a stage that collects what the parts of its points give: its elements are begun before the loop and whole only
    /// after it, and it runs over each point once, in order.
    fn legal_collected(&self, s: StageId, to: StageId, points: DimId) -> Result<(), Refusal> {
        if !self.collects(s) {
            return Ok(());
        }
        let (g, own, plan) = (&self.graph, self.graph.stage(s), self.plan(s));
        let (name, other) = (&own.name, &g.stage(to).name);
        if own.when.is_some() {
            return refuse(format!("`{name}` is in an arm, and collects what all points give"));
        }
        let Definition::Reduce { init, .. } = &own.def else { return Ok(()) };
        let begins: Vec<Body> = init.iter().copied().chain(g.checks(s).0).collect();
        if let Some(p) = g.ids().find(|p| self.inside(*p, to).is_some() && self.leads_to(begins.clone(), *p)) {
            let read = &g.stage(p).name;
            return refuse(format!("`{name}` begins with what `{read}` has, which is computed in loops of `{other}`"));
        }
        let within = |p: &StageId| *p == to || *p != s && self.inside(*p, to).is_some();
        if let Some(r) = self.consumers(s).iter().find(|r| within(r)) {
            let reader = &g.stage(*r).name;
            return refuse(format!(
                "`{reader}` reads `{name}` in loops of `{other}`, and it is not whole before their end"
            ));
        }
        let first = plan.loops.iter().find(|l| plan.reduces(&l.name));
        let d = first.and_then(|l| plan.root(&l.name)).map(|k| plan.dims[k].1);
        match d == Some(points) {
            true => Ok(()),
            false => refuse(format!("`{name}` reduces over others before its points, part after part")),
        }
    }

    /// Whether a stage is beside a host whose parts it collects.
    pub fn collects(&self, s: StageId) -> bool {
        let Site::At(to, _) = self.plan(s).site else { return false };
        self.plan(s).beside && self.points(s, to).is_some_and(|d| !self.graph.stage(s).dims.contains(&d))
    }

    /// The dimension of a stage that a host's loop over its own points runs through in parts: its first one; or the first that it
    /// reduces over, where the host reduces over its points, too, and so takes each once, in order.
    pub(super) fn points(&self, s: StageId, to: StageId) -> Option<DimId> {
        let (g, own) = (&self.graph, self.graph.stage(s));
        let host = self.host_points(to)?;
        let extent = g.dim(host).extent;
        let is_long = |d: &&DimId| g.dim(**d).extent == extent;
        let first = own.dims.first().filter(is_long);
        let collected = || own.over().first().filter(is_long).filter(|_| g.stage(to).over().contains(&host));
        first.or_else(collected).copied()
    }

    /// The dimension of a host that its outermost loop runs through.
    pub(super) fn host_points(&self, to: StageId) -> Option<DimId> {
        let plan = self.plan(to);
        let k = plan.loops.first().and_then(|l| plan.root(&l.name))?;
        plan.dims.get(k).map(|(_, d)| *d)
    }

    /// The stages, each after what it reads; and where others are computed beside one, that after all they read, and before
    /// those that read them later.
    pub fn order(&self) -> Vec<StageId> {
        self.order_after().0
    }

    /// The order, and whether there is one.
    fn order_after(&self) -> (Vec<StageId>, bool) {
        let mut after: FxHashMap<StageId, Vec<StageId>> = FxHashMap::default();
        for s in self.graph.ids().filter(|s| self.plan(*s).beside) {
            let Site::At(host, _) = self.plan(s).site else { continue };
            after.entry(host).or_default().push(s);
            for r in self.consumers(s).iter().copied() {
                if r != host && self.inside(r, host).is_none() {
                    after.entry(r).or_default().push(host);
                }
            }
        }
        self.graph.order_after(&after)
    }

    /// The stages that a stage reads.
    fn read_by(&self, s: StageId) -> Vec<StageId> {
        self.graph.reads(self.graph.stage(s).bodies()).into_iter().filter_map(Source::stage).collect()
    }

    /// A stage in the loop of a host that reads another one, or what is made of it there, at other indices of the first
    /// dimension than its own.
    fn reads_others(&self, s: StageId, to: StageId) -> Option<StageId> {
        let (mut todo, mut seen) = (vec![s], vec![s]);
        while let Some(p) = todo.pop() {
            for r in self.consumers(p).iter().copied() {
                let inside = r == to || self.inside(r, to).is_some();
                if !inside {
                    continue;
                }
                let points = if r == to { self.host_points(to) } else { self.points_there(r, to) };
                if !points.is_some_and(|d| self.reads_at(r, d, p)) {
                    return Some(r);
                }
                if r != to && !self.plan(r).beside && !seen.contains(&r) {
                    seen.push(r);
                    todo.push(r);
                }
            }
        }
        None
    }

    /// The dimension over parts of which a stage in loops of a host runs, if it runs over parts of the host's points.
    fn points_there(&self, r: StageId, to: StageId) -> Option<DimId> {
        if self.plan(r).beside { self.points(r, to) } else { self.graph.stage(r).dims.first().copied() }
    }

    /// Whether a stage reads another one at its own index of the first dimension alone.
    pub(super) fn reads_own(&self, reader: StageId, stage: StageId) -> bool {
        let first = self.graph.stage(reader).dims.first();
        first.map_or_else(|| !self.consumers(stage).contains(&reader), |d| self.reads_at(reader, *d, stage))
    }

    /// Whether a stage reads another one, of the first dimension of that, at the index of a dimension alone.
    pub(super) fn reads_at(&self, reader: StageId, d: DimId, stage: StageId) -> bool {
        let own = |at: &Vec<Body>| at.first().is_some_and(|i| *self.graph.bodies.node(*i) == Node::Index(d));
        self.graph.loads_of(stage, reader).iter().all(own)
    }
}
