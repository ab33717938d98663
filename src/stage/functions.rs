//! An elementary function of the same that several stages take, or one for each index of a loop that it does not depend on, is
//! taken once, those inside of others too: its values are a stage that all of them read.
//!
//! So are the exponentials of a softmax and of its derivative, the hyperbolic tangents of a loss and of its slope, and a scale of
//! each coordinate that all points have in common. The table is no larger than one that is there anyway. In the steps of a
//! recurrence, as a fit by gradients has them, only values that are a stage of the same steps are read.

use super::body::{Body, DimId, Node, Source, StageId};
use super::graph::{Definition, Graph, Stage};
use super::same::{Key, Same};
use crate::ir::op::Class;
use indexmap::IndexMap;
use rustc_hash::{FxHashMap, FxHashSet};

/// Where a stage computes something: for each index of these dimensions.
struct Place {
    stage: StageId,
    body: Body,
    dims: Vec<DimId>,
}

impl Graph {
    /// Lets stages read what takes long and is computed by several of them; whether there is any.
    pub(super) fn compute_once(&mut self) -> bool {
        let (mut same, mut found) = (Same::default(), IndexMap::<Key, Vec<Place>>::new());
        let mut in_steps = IndexMap::<(Vec<DimId>, Key), Vec<Place>>::new();
        for s in self.order() {
            let steps = self.steps_around(s);
            if !steps.is_empty() && self.stage(s).when.is_some() || steps.is_empty() && !self.is_alone(s) {
                continue;
            }
            for body in self.long(s) {
                let own = self.bodies.dims(body);
                let dims = self.stage(s).all_dims().into_iter().filter(|d| own.contains(d)).collect();
                let place = Place { stage: s, body, dims };
                let key = same.key(self, &self.table(&place, String::new()), &[]);
                match steps.is_empty() {
                    true => found.entry(key).or_default().push(place),
                    false => in_steps.entry((steps.clone(), key)).or_default().push(place),
                }
            }
        }
        let mut any = self.read_in_steps(in_steps.into_values());
        // The whole before its parts: an exponential within a logarithm that is taken once is taken there.
        let mut found: Vec<Vec<Place>> = found.into_values().collect();
        found.sort_by_cached_key(|places| std::cmp::Reverse(self.bodies.reachable([places[0].body]).len()));
        for mut places in found {
            places.retain(|p| self.bodies.reachable(self.stage(p.stage).bodies()).contains(&p.body));
            if places.is_empty() {
                continue;
            }
            // What a loop takes again for each of its indices leaves it; others take it as often as that table has elements.
            let (repeated, others): (Vec<Place>, Vec<Place>) = places.into_iter().partition(|p| self.is_repeated(p));
            let again = others.iter().any(|p| p.stage != others[0].stage);
            let host = others.iter().position(|p| again && self.is_there_anyway(p));
            for (places, host) in [(&repeated, (!repeated.is_empty()).then_some(0)), (&others, host)] {
                if let Some(host) = host {
                    self.read_from_one(places, host);
                    any = true;
                }
            }
        }
        any
    }

    /// The dimensions of the steps that a stage is computed in.
    fn steps_around(&self, s: StageId) -> Vec<DimId> {
        let own = |p: StageId| self.stage(p).recurrence().map(|(_, each)| each);
        let mut all: Vec<DimId> = self.ids().filter_map(own).filter(|d| self.stage(s).dims.contains(d)).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Lets stages of the same steps read what one of them is anyway; whether there is any. Who reads it reads all that it is made
    /// of, so that neither waits for the other.
    fn read_in_steps(&mut self, found: impl Iterator<Item = Vec<Place>>) -> bool {
        let mut any = false;
        for mut places in found {
            places.retain(|p| self.bodies.reachable(self.stage(p.stage).bodies()).contains(&p.body));
            let is_value = |p: &&Place| {
                let whole = matches!(&self.stage(p.stage).def, Definition::Pure(each) if *each == [p.body]);
                whole && self.is_there_anyway(p)
            };
            let Some(host) = places.iter().find(is_value) else { continue };
            let at = |p: &Place| -> Vec<Option<usize>> {
                let steps = self.steps_around(p.stage);
                steps.iter().map(|d| p.dims.iter().position(|e| e == d)).collect()
            };
            let (host, wanted) = (host.stage, at(host));
            places.retain(|p| at(p) == wanted);
            if let Some(host) = places.iter().position(|p| p.stage == host).filter(|_| places.len() > 1) {
                self.read_from_one(&places, host);
                any = true;
            }
        }
        any
    }

    /// The elementary functions that a stage takes at each of its points.
    pub(super) fn long(&self, s: StageId) -> Vec<Body> {
        let mut todo = match &self.stage(s).def {
            Definition::Pure(each) => each.clone(),
            Definition::Reduce { init, next, .. } => init.iter().chain(next).copied().collect(),
            Definition::Scatter { .. } | Definition::Recur { .. } => vec![],
        };
        let (mut out, mut seen) = (vec![], FxHashSet::default());
        while let Some(b) = todo.pop() {
            if !seen.insert(b) {
                continue;
            }
            let node = self.bodies.node(b);
            if let Node::Op(op, ty, _) = node
                && ty.is_float()
                && op.row().class == Class::Transcendental
                && self.is_of_indices(b)
            {
                out.push(b);
            }
            match node {
                Node::If([c, ..]) => todo.push(*c),
                node => todo.extend(node.kids()),
            }
        }
        out
    }

    /// Whether a body is another one at other indices, and the same whatever was reduced before.
    fn is_of_indices(&self, b: Body) -> bool {
        let state = |b: &Body| matches!(self.bodies.node(*b), Node::Acc(..));
        !self.bodies.dims(b).is_empty() && !self.bodies.reachable([b]).iter().any(state)
    }

    /// Whether a stage has as many elements as something it computes has values, and reads what it reads at all of these.
    fn is_there_anyway(&self, place: &Place) -> bool {
        let stage = self.stage(place.stage);
        stage.dims == place.dims && self.is_box(&place.dims) && stage.checks.is_empty()
    }

    /// Whether a stage computes something again for each index of another dimension, of elements of which one tensor has as many:
    /// they are read as they lie, so that they are there also where the stage has no elements.
    fn is_repeated(&self, place: &Place) -> bool {
        let extents = |dims: &[DimId]| dims.iter().map(|d| self.dim(*d).extent).collect::<Vec<_>>();
        let lies = |from: Source, at: &[Body]| {
            let dims: Option<Vec<DimId>> =
                at.iter().map(|i| if let Node::Index(d) = self.bodies.node(*i) { Some(*d) } else { None }).collect();
            dims.filter(|dims| extents(dims) == self.extents(from))
        };
        let mut whole = false;
        let all = self.bodies.reachable([place.body]).into_iter().all(|b| match self.bodies.node(b) {
            Node::Load(from, _, at) => lies(*from, at).is_some_and(|dims| {
                whole |= place.dims.iter().all(|d| dims.contains(d));
                true
            }),
            _ => true,
        });
        all && whole && self.is_box(&place.dims) && place.dims.len() < self.stage(place.stage).all_dims().len()
    }

    /// Whether no dimension is as long as another one says.
    fn is_box(&self, dims: &[DimId]) -> bool {
        dims.iter().all(|d| self.bodies.dims(self.dim(*d).extent).is_empty())
    }

    /// The stage of the values that are computed at a place.
    fn table(&self, place: &Place, name: String) -> Stage {
        let (dims, tys) = (place.dims.clone(), vec![self.bodies.ty(place.body)]);
        Stage { name, dims, tys, when: None, def: Definition::Pure(vec![place.body]), checks: vec![] }
    }

    /// Lets all places read the values of one of them.
    fn read_from_one(&mut self, places: &[Place], host: usize) {
        let host = &places[host];
        let whole = matches!(&self.stage(host.stage).def, Definition::Pure(each) if *each == [host.body]);
        let table = if whole { host.stage } else { self.new_table(host) };
        for place in places.iter().filter(|p| p.stage != table) {
            let ty = self.bodies.ty(place.body);
            let at: Vec<Body> = place.dims.iter().map(|d| self.bodies.index(*d)).collect();
            let value = self.bodies.load(Source::Stage(table, 0), ty, at);
            let mut of = FxHashMap::from_iter([(place.body, value)]);
            let mut stage = self.stage(place.stage).clone();
            stage.bodies_mut().for_each(|b| *b = self.bodies.map(*b, &mut of, &mut |_, _| None));
            self.stages[place.stage.0 as usize] = stage;
        }
    }

    /// A stage of the values at a place, with dimensions of its own.
    fn new_table(&mut self, place: &Place) -> StageId {
        let name = self.free_name(&format!("{}_values", self.stage(place.stage).name));
        let known = self.table(place, name);
        let mut dims = vec![];
        for d in &place.dims {
            dims.push(self.add_dim(self.dim(*d).name.clone(), self.dim(*d).extent));
        }
        let of = place.dims.iter().zip(&dims).map(|(d, new)| (*d, self.bodies.index(*new))).collect();
        let body = self.bodies.substitute(place.body, &of);
        self.add_stage(Stage { dims, def: Definition::Pure(vec![body]), ..known })
    }
}
