//! Boxes and loops as lowering made them become numbers and short text. Where a stage or loop has several texts, the largest box
//! and the most iterations stand for all, or, where symbols decide which that is, those of whole parts.

use super::{Input, Maker, Memory};
use crate::ir::Scalar;
use crate::schedule::lower::{Memory as Box, Parts, Trips};
use crate::stage::{Body, Graph, StageId};
use std::collections::BTreeSet;

/// The longest text of an extent.
const EXTENT: usize = 28;
/// The longest text of an extent for those who ask.
const LONG: usize = 120;
/// So many boxes of a stage are told apart.
const BOXES: usize = 6;

/// How often a loop runs, in words.
pub(super) struct Count {
    /// As `< 16`.
    pub count: String,
    /// What is special about the last iteration.
    pub last: Option<String>,
    /// At length.
    pub more: Vec<String>,
}

impl Maker<'_> {
    pub(super) fn input(&self, k: usize) -> Input {
        let (g, known) = (&self.s.graph, &self.s.graph.inputs[k]);
        let text = extents(g, &known.sizes, EXTENT);
        let text = format!("{} {}", known.ty.name(), if text.is_empty() { "1".into() } else { text });
        let memory = Memory { text, bytes: bytes(g, &[known.ty], &known.sizes), each: vec![] };
        Input { id: g.stages.len() + k, name: known.name.clone(), memory }
    }

    /// What is allocated for a stage where it is computed.
    pub(super) fn memory(&self, of: StageId) -> Memory {
        let tys = &self.s.graph.stage(of).tys;
        let each = self.seen.memory.get(&of).map_or(&[][..], Vec::as_slice);
        let rooms: Vec<Vec<Body>> = each.iter().map(|b| b.room.clone().unwrap_or_default()).collect();
        let (Some(k), false) = (self.largest(tys, &rooms), tys.is_empty()) else { return Memory::default() };
        let more = each.iter().take(BOXES).map(|b| self.one_box(b));
        let mut found = Memory { each: more.collect(), ..self.known(tys, &rooms[k], &each[k]) };
        if let Some(store) = &self.s.plan(of).store {
            found.text = format!("{}, taken in {store}", found.text);
        }
        found
    }

    /// The tile of accumulators of a stage.
    pub(super) fn tile(&self, of: StageId) -> Option<Memory> {
        let tys = &self.s.graph.stage(of).tys;
        let rooms = self.seen.tiles.get(&of)?;
        let room = &rooms[self.largest(tys, rooms)?];
        Some(self.known(tys, room, &Box { least: vec![], room: Some(room.clone()), ring: None }))
    }

    fn known(&self, tys: &[Scalar], room: &[Body], of: &Box) -> Memory {
        let g = &self.seen.graph;
        let names: Vec<&str> = tys.iter().map(|ty| ty.name()).collect();
        let names = if names.len() == 1 { names[0].to_string() } else { format!("({})", names.join(", ")) };
        let text = match of.room {
            Some(_) if !room.is_empty() => format!("{names} {}", extents(g, room, EXTENT)),
            _ => names,
        };
        let text = match of.ring {
            Some(k) if g.bodies.as_int(room[k]) == Some(1) => format!("{text}, changed in place"),
            Some(k) => format!("{text}, a ring of {}", g.brief(room[k], EXTENT, &[])),
            None => text,
        };
        Memory { text, bytes: bytes(g, tys, room), each: vec![] }
    }

    /// Which room is the largest one, where all are numbers; else the first.
    fn largest(&self, tys: &[Scalar], rooms: &[Vec<Body>]) -> Option<usize> {
        let sizes: Option<Vec<u64>> = rooms.iter().map(|room| bytes(&self.seen.graph, tys, room)).collect();
        match sizes {
            Some(sizes) => (0..sizes.len()).rev().max_by_key(|k| sizes[*k]),
            None => (!rooms.is_empty()).then_some(0),
        }
    }

    fn one_box(&self, of: &Box) -> String {
        let g = &self.seen.graph;
        let Some(room) = &of.room else { return "a variable for each component".into() };
        let from: Vec<String> = of.least.iter().map(|b| g.brief(*b, LONG, &[])).collect();
        let from = if from.iter().all(|b| b == "0") { String::new() } else { format!(" from [{}]", from.join(", ")) };
        match room.is_empty() {
            true => "memory for one element".into(),
            false => format!("memory for {}{from}", extents(g, room, LONG)),
        }
    }

    /// How often a loop runs.
    pub(super) fn trips(&self, of: StageId, name: &str) -> Count {
        let seen = self.seen.trips.get(&(of, name.to_string())).map_or(&[][..], Vec::as_slice);
        let more: BTreeSet<String> = seen.iter().map(|t| self.at_length(t)).collect();
        let more: Vec<String> = more.into_iter().take(BOXES).collect();
        let inner = self.s.plan(of).splits.iter().find(|p| p.inner == name);
        // A loop that no text has is part of what no iteration reaches, and nothing is said of it.
        let each = seen.iter().map(|t| self.number(t)).collect::<Option<Vec<_>>>().unwrap_or_default();
        if let Some((n, _, last)) = each.iter().rev().max_by_key(|(n, ..)| *n) {
            // That the last part is shorter, the loop over parts says.
            let fewer = inner.is_none() && each.iter().any(|(m, exact, _)| m < n || !exact);
            let last = last.clone().or_else(|| fewer.then(|| "or fewer".into()));
            return Count { count: format!("< {n}"), last, more };
        }
        if let Some(split) = inner {
            return Count { count: format!("< {}", split.factor), last: None, more };
        }
        let (count, last) = match seen.first() {
            Some(Trips { of, parts: None, .. }) => (format!("< {}", self.seen.graph.brief(*of, EXTENT, &[])), None),
            Some(Trips { parts: Some(parts), .. }) => (String::new(), Some(format!("parts of {}", parts.by))),
            None => (String::new(), None),
        };
        Count { count, last, more }
    }

    /// How often where that is a number, or else at most how often, whether it is always so often, and, if so, what is special
    /// about the last iteration.
    fn number(&self, t: &Trips) -> Option<(u64, bool, Option<String>)> {
        let bodies = &self.seen.graph.bodies;
        let n = u64::try_from(bodies.as_int(t.most)?).unwrap_or(0);
        let exact = bodies.as_int(t.of).is_some();
        let Some(parts) = t.parts else { return Some((n, exact, None)) };
        let by = u64::try_from(parts.by).ok()?.max(1);
        let last = match n % by {
            _ if !exact => None,
            0 => None,
            left if left == n => Some(format!("a part of {n}")),
            _ if parts.inwards => Some("last overlaps".into()),
            left => Some(format!("last part {left}")),
        };
        Some((n.div_ceil(by), exact, last))
    }

    fn at_length(&self, t: &Trips) -> String {
        let n = self.seen.graph.brief(t.of, LONG, &[]);
        match t.parts {
            None => format!("{n} iterations"),
            Some(Parts { by, inwards: true }) => {
                format!("{n} in parts of {by}; the last one begins so early that it is whole")
            }
            Some(Parts { by, inwards: false }) => format!("{n} in parts of {by}; the last one may be shorter"),
        }
    }
}

fn extents(g: &Graph, each: &[Body], most: usize) -> String {
    each.iter().map(|n| g.brief(*n, most, &[])).collect::<Vec<_>>().join(" × ")
}

/// Bytes of so many elements of these types, where the extents are numbers.
fn bytes(g: &Graph, tys: &[Scalar], extents: &[Body]) -> Option<u64> {
    let one: u64 = tys.iter().map(|ty| u64::from(ty.bytes())).sum();
    extents.iter().try_fold(one, |all, n| all.checked_mul(u64::try_from(g.bodies.as_int(*n)?).unwrap_or(0)))
}
