//! Bodies of a stage become what one point of it takes: operations, and places of sources as multiples of indices.

use crate::ir::{Op, Scalar};
use crate::stage::{Bodies, Body, DimId, Node, Source};
use crate::tune::work::weight;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Where something is read: a stage by its number, or an input, whose numbers begin after those.
pub type From = usize;

/// An index of one axis: multiples of a stage's own indices, and a constant.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Axis {
    /// Multiples, by the place of the dimension among those of the stage, in order.
    pub terms: SmallVec<[(u8, f64); 2]>,
    /// What is added.
    pub constant: f64,
    /// Whether it is clamped: not in the middle of a loop that is cut there.
    pub clamped: bool,
    /// Whether it is divided or chosen, so that lanes are found one by one where it differs between them.
    pub bent: bool,
    /// Whether data decide it.
    pub wild: bool,
}

/// A place that a point reads.
#[derive(Clone, PartialEq, Debug)]
pub struct Load {
    /// Of what.
    pub from: From,
    /// Which component of it.
    pub component: u32,
    /// Bytes of an element.
    pub bytes: f64,
    /// The place.
    pub at: SmallVec<[Axis; 3]>,
}

/// Places that differ in their constants only.
#[derive(Clone, PartialEq, Debug)]
pub struct Group {
    /// The first of them.
    pub first: Load,
    /// The least and the greatest constant of each axis.
    pub range: SmallVec<[(f64, f64); 3]>,
    /// How many there are.
    pub count: f64,
}

/// What a point takes.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Reads {
    /// What its operations are worth, by the dimensions whose indices their values differ with.
    pub operations: Operations,
    /// The places it reads, each once.
    pub loads: Vec<Load>,
    /// The same by how they step.
    pub groups: Vec<Group>,
}

/// Dimensions, one bit each.
pub type Dims = u32;
/// All of them.
const ALL: Dims = Dims::MAX;
/// Dimensions, and additions that operations are worth, by the bytes of their values: 1, 2, 4, 8.
pub type Operations = SmallVec<[(Dims, [f64; 4]); 2]>;

/// Adds so many times what some operations are worth.
fn spend(all: &mut Operations, of: Dims, worth: [f64; 4], times: f64) {
    // What is the same for all points is made once.
    if of == 0 {
        return;
    }
    match all.iter_mut().find(|(dims, _)| *dims == of) {
        Some((_, own)) => own.iter_mut().zip(worth).for_each(|(own, n)| *own += n * times),
        None => all.push((of, worth.map(|n| n * times))),
    }
}

/// More places are not read by one point: what would be inlined is not.
pub const MOST: usize = 192;

impl Axis {
    fn wild() -> Axis {
        Axis { wild: true, ..Axis::default() }
    }

    /// Adds a multiple of another one.
    fn add(&mut self, other: &Axis, by: f64) {
        for (d, c) in &other.terms {
            match self.terms.iter_mut().find(|(e, _)| e == d) {
                Some((_, own)) => *own += c * by,
                None => self.terms.push((*d, c * by)),
            }
        }
        self.terms.retain(|(_, c)| *c != 0.0);
        self.terms.sort_unstable_by_key(|(d, _)| *d);
        self.constant += other.constant * by;
        self.clamped |= other.clamped;
        self.bent |= other.bent;
        self.wild |= other.wild;
    }

    /// The dimensions that it differs with.
    fn dims(&self) -> Dims {
        self.terms.iter().fold(0, |all, (d, _)| all | 1 << d)
    }

    /// The multiple of a dimension.
    pub fn coefficient(&self, dim: u8) -> f64 {
        self.terms.iter().find(|(d, _)| *d == dim).map_or(0.0, |(_, c)| *c)
    }
}

impl Reads {
    /// What points take that have operations and places.
    fn new(operations: Operations, loads: Vec<Load>) -> Reads {
        let mut out = Reads { operations, loads: vec![], groups: vec![] };
        loads.into_iter().for_each(|l| out.put(l));
        out
    }

    fn put(&mut self, load: Load) {
        if self.loads.contains(&load) {
            return;
        }
        let alike = |g: &Group| {
            let same =
                |a: &Axis, b: &Axis| (&a.terms, a.clamped, a.bent, a.wild) == (&b.terms, b.clamped, b.bent, b.wild);
            let own = &g.first;
            own.from == load.from
                && own.component == load.component
                && own.at.iter().zip(&load.at).all(|(a, b)| same(a, b))
        };
        match self.groups.iter_mut().find(|g| alike(g)) {
            Some(g) => {
                g.count += 1.0;
                g.range.iter_mut().zip(&load.at).for_each(|(r, a)| *r = (r.0.min(a.constant), r.1.max(a.constant)));
            }
            None => {
                let range = load.at.iter().map(|a| (a.constant, a.constant)).collect();
                self.groups.push(Group { first: load.clone(), range, count: 1.0 });
            }
        }
        self.loads.push(load);
    }

    /// The same where the elements of a stage are computed where they are read; nothing where that is too much.
    pub fn inlined(&self, stage: From, inner: &Reads) -> Option<Reads> {
        let (within, mut all): (Vec<&Load>, Vec<&Load>) = self.loads.iter().partition(|l| l.from == stage);
        if all.len() + within.len() * inner.loads.len() > MOST {
            return None;
        }
        // Components of one element are computed together.
        let mut places: Vec<&Load> = vec![];
        within.iter().for_each(|l| {
            if !places.iter().any(|p| p.at == l.at) {
                places.push(l)
            }
        });
        let mut operations = self.operations.clone();
        for (dims, worth) in &inner.operations {
            for place in &places {
                let named = place.at.iter().enumerate().filter(|(k, _)| dims >> k & 1 == 1);
                let of = named.fold(0, |all, (_, a)| all | if a.wild { ALL } else { a.dims() });
                spend(&mut operations, of, *worth, 1.0);
            }
        }
        let substituted = |place: &&Load, load: &Load| -> Load {
            let axis = |a: &Axis| {
                let mut out = Axis { terms: SmallVec::default(), ..a.clone() };
                for (d, c) in &a.terms {
                    match place.at.get(usize::from(*d)) {
                        Some(at) => out.add(at, *c),
                        None => out.wild = true,
                    }
                }
                out
            };
            Load { at: load.at.iter().map(axis).collect(), ..load.clone() }
        };
        let new: Vec<Load> = places.iter().flat_map(|p| inner.loads.iter().map(|l| substituted(p, l))).collect();
        all.extend(&new);
        Some(Reads::new(operations, all.into_iter().cloned().collect()))
    }
}

/// Reads bodies of a stage whose dimensions have places.
pub struct Reader<'a> {
    /// All bodies.
    pub bodies: &'a Bodies,
    /// The places of dimensions, those that are reduced last.
    pub dims: FxHashMap<DimId, u8>,
    /// How many stages there are.
    pub stages: usize,
}

impl Reader<'_> {
    /// What a point of some bodies takes.
    pub fn reads(&self, of: &[Body]) -> Reads {
        let (mut operations, mut loads) = (Operations::new(), vec![]);
        // Whether a body is of elements, not of indices alone; and the dimensions that it differs with.
        let mut data: FxHashMap<Body, (bool, Dims)> = FxHashMap::default();
        for b in self.bodies.reachable(of.iter().copied()) {
            let node = self.bodies.node(b);
            let below = node.kids().iter().any(|k| data[k].0);
            let own = match node {
                Node::Index(d) => self.dims.get(d).map_or(0, |k| 1 << k),
                Node::Acc(..) => ALL,
                _ => 0,
            };
            let varies = node.kids().iter().fold(own, |all, k| all | data[k].1);
            let mut spend = |ty: Scalar, n: f64| spend(&mut operations, varies, worth(ty, n), 1.0);
            match node {
                Node::Load(from, ty, at) => {
                    let (from, component) = match from {
                        Source::Stage(s, k) => (s.0 as usize, *k),
                        Source::Input(k) => (self.stages + *k as usize, 0),
                    };
                    let at = at.iter().map(|i| self.axis(*i)).collect();
                    loads.push(Load { from, component, bytes: f64::from(ty.bytes()), at });
                }
                // Arithmetic of indices costs next to nothing.
                Node::Op(op, ty, _) if below => spend(*ty, weight(*op, *ty)),
                Node::If(_) => spend(self.bodies.ty(b), 1.0),
                Node::Cast(ty, _) if below => spend(*ty, 1.0),
                _ => {}
            }
            let of_data = below || matches!(node, Node::Load(..) | Node::Acc(..)) || self.bodies.ty(b).is_float();
            data.insert(b, (of_data, varies));
        }
        Reads::new(operations, loads)
    }

    /// How many operations stand between accumulators and what they become.
    pub fn chain(&self, of: &[Body]) -> f64 {
        let mut depth: FxHashMap<Body, f64> = FxHashMap::default();
        for b in self.bodies.reachable(of.iter().copied()) {
            let node = self.bodies.node(b);
            let below = node.kids().iter().filter_map(|k| depth.get(k)).copied().reduce(f64::max);
            match (node, below) {
                (Node::Acc(..), _) => drop(depth.insert(b, 0.0)),
                (Node::Op(..), Some(n)) => drop(depth.insert(b, n + 1.0)),
                (_, Some(n)) => drop(depth.insert(b, n)),
                _ => {}
            }
        }
        of.iter().filter_map(|b| depth.get(b)).copied().fold(0.0, f64::max)
    }

    fn axis(&self, b: Body) -> Axis {
        let Some(form) = self.bodies.linear(b) else { return Axis::wild() };
        let mut out = Axis { constant: form.offset() as f64, ..Axis::default() };
        form.terms().for_each(|(atom, c)| out.add(&self.atom(atom, b), c as f64));
        out
    }

    /// What stands in a sum, which is `whole`.
    fn atom(&self, b: Body, whole: Body) -> Axis {
        let bent = |a: Axis| Axis { bent: true, ..a };
        let more = |x: Axis, y: Axis| if y.terms.len() > x.terms.len() { y } else { x };
        let part = |b: Body| if b == whole { Axis::wild() } else { self.axis(b) };
        match self.bodies.node(b) {
            Node::Index(d) => match self.dims.get(d) {
                Some(k) => Axis { terms: [(*k, 1.0)].into_iter().collect(), ..Axis::default() },
                None => Axis::default(),
            },
            Node::Op(Op::Div | Op::FloorDiv, _, args) => {
                let mut out = Axis::default();
                let by = self.bodies.as_int(args[1]).filter(|n| *n != 0).unwrap_or(1);
                out.add(&part(args[0]), 1.0 / by as f64);
                bent(out)
            }
            Node::Op(Op::Mod | Op::FloorMod, _, args) => bent(part(args[0])),
            Node::Op(Op::Min | Op::Max, _, args) => Axis { clamped: true, ..more(part(args[0]), part(args[1])) },
            Node::If(parts) => bent(more(part(parts[1]), part(parts[2]))),
            Node::Cast(_, of) => part(*of),
            Node::Symbol(_) => Axis::default(),
            _ => Axis::wild(),
        }
    }
}

/// So many additions of a type.
fn worth(ty: Scalar, n: f64) -> [f64; 4] {
    let class = match ty.bytes() {
        1 => 0,
        2 => 1,
        4 => 2,
        _ => 3,
    };
    std::array::from_fn(|k| if k == class { n } else { 0.0 })
}
