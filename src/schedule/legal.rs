//! What holds of a schedule after every step: each stage is computed before, and around, all that reads it; whole, where it
//! may fail.

use super::plan::{Kind, Loop, Refusal, Schedule, Site, refuse};
use super::strips::along;
use crate::stage::{Body, Definition, Node, Source, StageId};

impl Schedule {
    /// Checks the sites of all stages.
    ///
    /// # Errors
    /// The stage that would be read where it is not there.
    pub fn legal(&self) -> Result<(), Refusal> {
        self.hosts_are_in_order()?;
        self.strips_are_apart()?;
        self.chains_are_apart()?;
        self.triangles_are_plain()?;
        for s in self.graph.ids() {
            self.legal_in_steps(s)?;
            let Site::At(to, name) = &self.plan(s).site else { continue };
            let (stage, host) = (&self.graph.stage(s).name, &self.graph.stage(*to).name);
            let Ok(place) = self.plan(*to).find(name) else {
                return refuse(format!(
                    "`{stage}` is computed in `{name}` of `{host}`, and there would be no such loop"
                ));
            };
            if self.plan(*to).loops[..=place].iter().any(|l| l.kind == Kind::Vector) {
                return refuse(format!("`{name}` of `{host}` is a vector, and has no place for `{stage}`"));
            }
            if self.plan(*to).site == Site::Inline {
                return refuse(format!("`{stage}` is computed in a loop of `{host}`, which would have no loops"));
            }
            if self.may_fail(s) && !self.whole(s) {
                return refuse(format!(
                    "`{stage}` may fail, and in `{name}` of `{host}` not all of it would be computed"
                ));
            }
            if self.leads_to(self.graph.stage(*to).when.into_iter().collect(), s) {
                return refuse(format!("`{stage}` decides where `{host}` is computed, and is computed before it"));
            }
            let plan = self.plan(*to);
            let later = plan.steps.is_some() && self.graph.leads(*to).is_none();
            let later = later || plan.loops[..=place].iter().any(|l| plan.reduces(&l.name));
            if later && self.reads_first(*to, s) {
                return refuse(format!("`{host}` reads `{stage}` before it reduces, and not in `{name}`"));
            }
            if self.plan(s).beside {
                self.legal_beside(s, *to, place)?;
                continue;
            }
            self.legal_kept(s, *to, place)?;
            let readers = self.consumers(s);
            let checks = self.steps_of(s).is_some_and(|of| of.leader == *to);
            if readers.is_empty() && !checks {
                return refuse(format!("nothing reads `{stage}` in `{host}`"));
            }
            if let Some(other) = readers.iter().find(|r| !self.covers(**r, *to, place)) {
                let other = &self.graph.stage(*other).name;
                return refuse(format!(
                    "`{other}` reads `{stage}`, outside of `{name}` of `{host}`, where it is computed"
                ));
            }
        }
        super::lower::keeps(self).map(|_| ())
    }

    /// Checks recurrences whose states are computed in strips: what a step computes is part of the next states, which read those
    /// before them at their own index.
    fn strips_are_apart(&self) -> Result<(), Refusal> {
        for s in self.graph.ids() {
            let Some(strip) = &self.plan(s).strip else { continue };
            let (state, g) = (&self.graph.stage(strip.state).name, &self.graph);
            let within = |p: &StageId| self.steps_of(*p).is_some_and(|of| of.leader == s && !of.state);
            if let Some(p) = g.ids().find(|p| within(p) && self.plan(*p).site != Site::Inline) {
                let name = &g.stage(p).name;
                return refuse(format!(
                    "`{name}` is computed whole in a step of `{state}`: where it is inlined it is not"
                ));
            }
            along(g, strip.state, strip.axis)
                .or_else(|Refusal(why)| refuse(format!("`{state}` cannot be computed in strips: {why}")))?;
        }
        Ok(())
    }

    /// Checks recurrences of which several take a step together, since other loops stand in the loop over steps. Each has an
    /// outer index of its own, by which alone it reads its states, so what they compute in a step are boxes of their rows.
    fn chains_are_apart(&self) -> Result<(), Refusal> {
        for s in self.graph.ids().filter(|s| self.graph.leads(*s).is_some()) {
            if self.plan(s).strip.is_some() && self.takes_steps_together(s) {
                let name = &self.graph.stage(s).name;
                return refuse(format!(
                    "the loop over the steps of `{name}` is the innermost one, since its states are computed in strips"
                ));
            }
        }
        Ok(())
    }

    /// Whether loops over rows stand in the loop over the steps of a recurrence.
    fn takes_steps_together(&self, leader: StageId) -> bool {
        let plan = self.plan(leader);
        let over = plan.loops.iter().position(|l| plan.root(&l.name) == plan.steps);
        over.is_some_and(|k| k + 1 < plan.loops.len())
    }

    /// Whether tensors are computed in the steps of a recurrence, those of its state among them.
    pub(super) fn has_tensors_in_steps(&self, leader: StageId) -> bool {
        let steps = self.loop_of(leader);
        let within = |p: StageId| p != leader && self.inside(p, leader).is_some_and(|at| Some(at) == steps);
        self.graph.ids().any(within)
    }

    /// Checks a stage whose memory is taken in a loop around the one that it is computed in: one iteration after another finds
    /// what the earlier ones computed.
    fn legal_kept(&self, s: StageId, to: StageId, place: usize) -> Result<(), Refusal> {
        let (plan, known) = (self.plan(to), self.graph.stage(s));
        let Some(store) = &self.plan(s).store else { return Ok(()) };
        let (name, host) = (&known.name, &self.graph.stage(to).name);
        let Some(around) = plan.loops.iter().position(|l| l.name == *store).filter(|k| *k < place) else {
            return refuse(format!(
                "memory of `{name}` is taken in `{store}` of `{host}`, which would not be around it"
            ));
        };
        let inside = &plan.loops[around + 1..=place];
        if let Some(l) = inside.iter().find(|l| l.kind == Kind::Parallel) {
            return refuse(format!(
                "iterations of `{}` of `{host}` run on several threads, and cannot find what earlier ones computed of `{name}`",
                l.name
            ));
        }
        let steps = self.steps_of(s).is_some() || self.graph.stage(to).recurrence().is_some();
        if matches!(known.def, Definition::Scatter { .. } | Definition::Recur { .. }) || steps {
            return refuse(format!("`{name}` is a scatter or part of a recurrence, and computed at once"));
        }
        Ok(())
    }

    /// Checks that states, and what reads them for a step, are computed in the steps of their recurrence, and only that is.
    fn legal_in_steps(&self, s: StageId) -> Result<(), Refusal> {
        let (plan, name) = (self.plan(s), &self.graph.stage(s).name);
        let of = self.steps_of(s);
        if let Site::At(host, at) = &plan.site
            && self.loop_of(*host) == Some(at)
            && self.graph.leads(*host).is_some()
            && of.is_none_or(|of| of.leader != *host)
        {
            return refuse(format!("`{name}` is not part of a step, and is computed before `{at}` or whole"));
        }
        let Some(of) = of else { return Ok(()) };
        let leader = &self.graph.stage(of.leader).name;
        let steps = self.loop_of(of.leader);
        if of.state && plan.site != Site::At(of.leader, steps.unwrap_or_default().to_string()) {
            return refuse(format!("`{name}` is a state of `{leader}`, and computed in its steps"));
        }
        if of.waits && plan.site != Site::Inline && self.inside(s, of.leader) != steps {
            return refuse(format!("`{name}` is part of a step of `{leader}`, and computed in that"));
        }
        Ok(())
    }

    /// Whether a reduction reads a stage before its first step: in first values, or in checks before them.
    fn reads_first(&self, reader: StageId, s: StageId) -> bool {
        let mut all = self.graph.checks(reader).0;
        if let Definition::Reduce { init, .. } | Definition::Recur { init, .. } = &self.graph.stage(reader).def {
            all.extend(init);
        }
        self.leads_to(all, s)
    }

    /// Whether bodies read a stage: a state is computed where its recurrence is.
    pub(super) fn leads_to(&self, bodies: Vec<Body>, s: StageId) -> bool {
        let mut read = self.graph.reads(bodies).into_iter().filter_map(Source::stage);
        read.any(|p| p == s || self.graph.leader(p) == s)
    }

    /// Whether all elements of a stage are computed: at the start; or in loops over dimensions of its own, of a stage that
    /// reads it at its own indices, and of which all elements are computed, where it is in no arm but that of its own.
    pub(super) fn whole(&self, s: StageId) -> bool {
        let (host, name) = match &self.plan(s).site {
            Site::Root => return true,
            Site::Inline => return false,
            Site::At(host, name) => (*host, name),
        };
        if self.plan(s).beside {
            return self.whole(host);
        }
        let (g, plan) = (&self.graph, self.plan(host));
        if self.steps_of(s).is_some_and(|of| of.leader == host) {
            // A step computes all of it, and all steps are taken.
            return self.whole(host);
        }
        if g.stage(host).when.is_some_and(|c| g.stage(s).when != Some(c)) {
            return false;
        }
        let dims = &g.stage(s).dims;
        let own = |l: &Loop| plan.root(&l.name).is_some_and(|k| dims.contains(&plan.dims[k].1));
        let Ok(place) = plan.find(name) else { return false };
        plan.loops[..=place].iter().all(own) && self.reads_at_own(host, place, s) && self.whole(host)
    }

    /// Whether a stage reads another at the index that the other has there, by itself or by way of stages that it reads so and
    /// that are computed in a loop of it, which has this place.
    fn reads_at_own(&self, host: StageId, place: usize, s: StageId) -> bool {
        let g = &self.graph;
        let (mut todo, mut seen) = (vec![host], vec![host]);
        while let Some(reader) = todo.pop() {
            for b in g.bodies.reachable(g.stage(reader).bodies()) {
                let Node::Load(Source::Stage(p, _), _, at) = g.bodies.node(b) else { continue };
                let (p, of) = (*p, g.stage(*p));
                let at_own = at.iter().zip(&of.dims).all(|(i, d)| *g.bodies.node(*i) == Node::Index(*d));
                if at_own && p == s {
                    return true;
                }
                let there = self.covers(p, host, place);
                if at_own && there && of.when.is_none() && of.recurrence().is_none() && !seen.contains(&p) {
                    seen.push(p);
                    todo.push(p);
                }
            }
        }
        false
    }

    /// Whether a stage runs inside of a loop of another, which has this place.
    pub(super) fn covers(&self, reader: StageId, to: StageId, place: usize) -> bool {
        if reader == to {
            return true;
        }
        let Some(name) = self.inside(reader, to) else { return false };
        self.plan(to).find(name).is_ok_and(|at| at >= place)
    }
}
