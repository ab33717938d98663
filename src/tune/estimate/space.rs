//! The decisions of [`Tree`] as a space of estimates: a decision makes entries of the decided stage and of those that read it,
//! and shares all others with the state before.

use super::cost::Judged;
use super::known::{Fixed, Known};
use super::reads::{Axis, From};
use super::sequence::Sequence;
use super::shape::{Entry, Extents, Part, Parts, Ring, Shape};
use crate::schedule::plan::{Kind, Schedule};
use crate::schedule::tiling::{Tiling, blocks};
use crate::search::Space;
use crate::stage::StageId;
use crate::tune::parts::Work;
use crate::tune::tree::{Choice, DECISIONS, Move, Place, Tree};
use rustc_hash::FxHasher;
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Stages behind the decided ones that are taken to be done plainly; those behind these are computed whole.
const AHEAD: usize = 4;

/// Stages that are looked at for what is kept beside another one.
const NEAR: usize = 16;

/// The schedules of one graph, estimated.
pub struct Estimates<'a> {
    tree: &'a Tree<'a>,
    known: Known,
    begin: Sequence<Entry>,
}

/// Decisions so far.
#[derive(Clone)]
pub struct State {
    /// Decisions made: three a stage.
    made: usize,
    /// All stages where the last one that is decided, or in part, is not decided yet, and with it.
    before: Sequence<Entry>,
    now: Sequence<Entry>,
    /// What stands for the decisions before that one, by levels, coarse to fine.
    keys: [u64; 3],
}

impl<'a> Estimates<'a> {
    /// The schedules of a space. Nothing where some of it is decided already, or a stage is of a kind that is not estimated.
    pub fn of(tree: &'a Tree<'a>) -> Option<Estimates<'a>> {
        let start = tree.start();
        let open = |s: StageId| tree.is_open(s) == (true, true);
        if tree.stages().len() != start.graph.stages.len() || !start.graph.ids().all(open) {
            return None;
        }
        let known = Known::of(start, tree.special(), tree.machine)?;
        let plain = Choice { place: Place::Root, tiling: plain_tiling(tree) };
        let whole = |(number, of): (usize, &Fixed)| {
            let boxes = [all_of(of)].into_iter().collect();
            let shape = Arc::new(Shape::new((number, of), plain, &[], boxes));
            Arc::new(Entry { shape, reads: of.reads.clone(), work: Work::default() })
        };
        let begin = Sequence::new(known.stages.iter().enumerate().map(whole));
        let mut out = Estimates { tree, known, begin };
        let judged = |k: usize| {
            let entry = out.begin.get(k);
            Arc::new(Entry { work: out.judged(&out.begin, k, entry), ..Entry::clone(entry) })
        };
        out.begin = Sequence::new((0..out.known.stages.len()).map(judged));
        Some(out)
    }

    /// What is known of the stages.
    pub fn known(&self) -> &Known {
        &self.known
    }

    /// The work that is expected of a state: of its decisions, with the next stages done plainly.
    pub fn work(&self, state: &State) -> Work {
        self.ahead(state, AHEAD).work()
    }

    /// The choices of a state for all stages, in the order of the space: those that are not made yet are plain.
    pub fn choices(&self, state: &State) -> Vec<Choice> {
        let all = self.ahead(state, self.tree.stages().len());
        self.tree.stages().iter().map(|s| all.get(s.0 as usize).shape.choice).collect()
    }

    /// The schedule of a state.
    pub fn schedule(&self, state: &State) -> Schedule {
        let mut s = self.tree.start().clone();
        for (stage, choice) in self.tree.stages().iter().zip(self.choices(state)) {
            self.tree.decide(&mut s, *stage, &choice);
        }
        s
    }

    /// The entries of a state after all decisions, plain ones where they are not made yet.
    pub fn finished(&self, state: &State) -> Sequence<Entry> {
        self.ahead(state, self.tree.stages().len())
    }

    /// The entries that choices for all stages lead to, each judged once, when all is decided: what was judged on the way must
    /// be the same.
    pub fn folded(&self, choices: &[Choice]) -> Sequence<Entry> {
        let mut all = self.begin.clone();
        for (s, choice) in self.tree.stages().iter().zip(choices) {
            self.decide(&mut all, s.0 as usize, choice, false);
        }
        let judged = |k: usize| {
            let entry = all.get(k);
            Arc::new(Entry { work: self.judged(&all, k, entry), ..Entry::clone(entry) })
        };
        Sequence::new((0..self.known.stages.len()).map(judged))
    }

    /// The entries of a state where so many stages behind those that are decided are done plainly.
    fn ahead(&self, state: &State, count: usize) -> Sequence<Entry> {
        let mut all = state.now.clone();
        for s in self.tree.stages().iter().skip(state.made.div_ceil(DECISIONS)).take(count) {
            let place = self.plain_place(&all, s.0 as usize);
            let choice = Choice { place, tiling: plain_tiling(self.tree) };
            self.decide(&mut all, s.0 as usize, &choice, true);
        }
        all
    }

    fn judged(&self, all: &Sequence<Entry>, number: usize, entry: &Entry) -> Work {
        let memory = |from: From| -> (Extents, usize) {
            match self.known.inputs.get(from.wrapping_sub(self.known.stages.len())) {
                Some(extents) => (extents.iter().copied().collect(), 0),
                None => {
                    let (shape, own) = (&all.get(from).shape, self.known.stages[from].own);
                    (shape.storage()[..own].iter().copied().collect(), shape.around)
                }
            }
        };
        Judged { known: &self.known, number, shape: &entry.shape, reads: &entry.reads }.work(&memory)
    }

    /// Makes a choice for a stage whose readers are decided, or computes it whole where its place is none.
    fn decide(&self, all: &mut Sequence<Entry>, number: usize, choice: &Choice, judging: bool) {
        let readers = self.readers(all, number);
        if choice.place == Place::Inline && self.inline(all, number, &readers, judging) {
            return;
        }
        let around = match choice.place {
            Place::At(host, level) => self.around(all, (number, host.0 as usize, level), &readers),
            _ => None,
        };
        let place = if around.is_some() { choice.place } else { Place::Root };
        let around = around.unwrap_or_default();
        let tiling = Tiling { parallel: choice.tiling.parallel && place == Place::Root, ..choice.tiling };
        let mut boxes = self.boxes(all, number, around.len(), &readers);
        self.hold(all, (number, &around), &readers, &mut boxes);
        let shape = Shape::new((number, &self.known.stages[number]), Choice { place, tiling }, &around, boxes);
        let moved = shape.around > 0 || shape.storage() != all.get(number).shape.storage();
        let entry = Entry { shape: Arc::new(shape), reads: all.get(number).reads.clone(), work: Work::default() };
        self.put(all, number, entry, judging);
        // Its readers find it elsewhere.
        for r in readers.iter().filter(|_| moved) {
            self.put(all, *r, Entry::clone(all.get(*r)), judging);
        }
    }

    fn put(&self, all: &mut Sequence<Entry>, number: usize, entry: Entry, judging: bool) {
        let work = if judging { self.judged(all, number, &entry) } else { Work::default() };
        all.set(number, Arc::new(Entry { work, ..entry }));
    }

    /// Computes a stage where it is read; whether that can be.
    fn inline(&self, all: &mut Sequence<Entry>, number: usize, readers: &[usize], judging: bool) -> bool {
        if !self.known.stages[number].inlines || readers.is_empty() {
            return false;
        }
        let inner = all.get(number).reads.clone();
        let new: Option<Vec<_>> = readers.iter().map(|r| all.get(*r).reads.inlined(number, &inner)).collect();
        let Some(new) = new else { return false };
        for (r, reads) in readers.iter().zip(new) {
            let entry = Entry { reads: Arc::new(reads), ..Entry::clone(all.get(*r)) };
            self.put(all, *r, entry, judging);
        }
        let choice = Choice { place: Place::Inline, tiling: Tiling::plain() };
        let shape = Shape { choice, path: SmallVec::new(), around: 0, boxes: all.get(number).shape.boxes[..1].into() };
        all.set(number, Arc::new(Entry { shape: Arc::new(shape), reads: inner, work: Work::default() }));
        true
    }

    /// The stages in whose loops a stage is read: of a reader that is computed where it is read, those that read that.
    fn readers(&self, all: &Sequence<Entry>, number: usize) -> SmallVec<[usize; 8]> {
        let mut out: SmallVec<[usize; 8]> = self.known.stages[number].readers.iter().copied().collect();
        let mut k = 0;
        while k < out.len() {
            if all.get(out[k]).is_inlined() {
                let others = &self.known.stages[out[k]].readers;
                out.extend(others.iter().copied());
            }
            k += 1;
        }
        out.retain(|r| !all.get(*r).is_inlined());
        out.sort_unstable();
        out.dedup();
        out
    }

    /// The loops around a stage that is computed in a loop of another, which must be around all that reads it.
    fn around(
        &self,
        all: &Sequence<Entry>,
        (number, host, level): (usize, usize, usize),
        readers: &[usize],
    ) -> Option<SmallVec<[Ring; 12]>> {
        let (of, shape) = (&self.known.stages[host], &all.get(host).shape);
        let own = shape.own().get(..=level)?;
        let plain = |r: &Ring| !matches!(r.own.kind, Kind::Vector | Kind::Unrolled) && usize::from(r.own.dim) < of.own;
        let path = &shape.path[..=shape.around + level];
        let good = self.known.stages[number].moves && of.hosts && !readers.is_empty() && own.iter().all(plain);
        (good && readers.iter().all(|r| all.get(*r).shape.is_in(path))).then(|| path.into())
    }

    /// What one iteration of each of so many loops around a stage needs of it, first all.
    fn boxes(&self, all: &Sequence<Entry>, number: usize, around: usize, readers: &[usize]) -> Parts {
        let whole = all_of(&self.known.stages[number]);
        let mut out: Parts = [whole.clone()].into_iter().collect();
        for level in 1..=around {
            let mut own = whole.clone();
            for axis in 0..self.known.stages[number].own {
                let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
                for r in readers {
                    let entry = all.get(*r);
                    let part = entry.shape.part(level);
                    for g in entry.reads.groups.iter().filter(|g| g.first.from == number) {
                        let (from, to) = reached(&g.first.at[axis], g.range[axis], part);
                        (low, high) = (low.min(from), high.max(to));
                    }
                }
                let last = whole.extents[axis] - 1.0;
                (low, high) = (low.floor().clamp(0.0, last), high.ceil().clamp(0.0, last));
                (own.from[axis], own.extents[axis]) = (low, (high - low).max(0.0) + 1.0);
            }
            out.push(own);
        }
        out
    }

    /// Notes what other stages that are decided keep in each iteration of the loops around a stage: those that read it there,
    /// what else these read, and those that read these.
    fn hold(&self, all: &Sequence<Entry>, (number, around): (usize, &[Ring]), readers: &[usize], boxes: &mut Parts) {
        let mut near: SmallVec<[usize; 16]> = SmallVec::new();
        let mut todo: SmallVec<[usize; 16]> = readers.iter().copied().collect();
        while let Some(r) = todo.pop().filter(|_| near.len() < NEAR) {
            let shape = &all.get(r).shape;
            if near.contains(&r) || around.first().is_none_or(|ring| shape.path.first().map(|p| p.of) != Some(ring.of))
            {
                continue;
            }
            near.push(r);
            todo.extend(self.readers(all, r));
            let sources = all.get(r).reads.groups.iter().map(|g| g.first.from);
            todo.extend(sources.filter(|s| *s != number && *s < self.known.stages.len()));
        }
        for r in near {
            let (shape, of) = (&all.get(r).shape, &self.known.stages[r]);
            let bytes = shape.storage()[..of.own].iter().product::<f64>() * of.bytes * of.components;
            // What is kept in an inner loop is kept in those around it.
            let shared = shape.path[..shape.around].iter().zip(around).take_while(|(a, b)| a.of == b.of).count();
            let inside = shared == shape.around;
            boxes.iter_mut().take(shared + 1).filter(|_| inside).for_each(|b| b.held += bytes);
        }
    }

    /// The stages in whose loops a stage might be computed: its readers, and those in which they are computed.
    fn hosts(&self, all: &Sequence<Entry>, readers: &[usize]) -> SmallVec<[usize; 8]> {
        let paths = readers.iter().flat_map(|r| all.get(*r).shape.path.iter().map(|ring| ring.of.0));
        let mut out: SmallVec<[usize; 8]> = paths.chain(readers.iter().copied()).collect();
        out.sort_unstable();
        out.dedup();
        out
    }

    /// The places of a stage that are worth trying: a loop further in must need less of it.
    fn places(&self, all: &Sequence<Entry>, number: usize) -> Vec<Place> {
        let readers = self.readers(all, number);
        let mut out = vec![Place::Root];
        if self.known.stages[number].inlines && !readers.is_empty() {
            out.push(Place::Inline);
        }
        for host in self.hosts(all, &readers) {
            let shape = &all.get(host).shape;
            for level in 0..shape.own().len() {
                let Some(around) = self.around(all, (number, host, level), &readers) else { break };
                let boxes = self.boxes(all, number, around.len(), &readers);
                if boxes[around.len()].extents != boxes[around.len() - 1].extents {
                    out.push(Place::At(StageId(host as u32), level));
                }
            }
        }
        out
    }

    /// Where a stage is computed as long as nobody has decided it: cheap ones where they are read, others in the blocks of what
    /// reads them.
    fn plain_place(&self, all: &Sequence<Entry>, number: usize) -> Place {
        if self.known.stages[number].cheap {
            return Place::Inline;
        }
        let readers = self.readers(all, number);
        for host in self.hosts(all, &readers) {
            let shape = &all.get(host).shape;
            let parts = shape.own().iter().take_while(|r| r.own.kind != Kind::Vector && r.own.parts).count();
            if parts > 0 && self.around(all, (number, host, parts - 1), &readers).is_some() {
                return Place::At(StageId(host as u32), parts - 1);
            }
        }
        Place::Root
    }

    /// The tilings that are worth trying for a stage: of registers, or with blocks that are smaller than what is computed.
    fn tilings(&self, state: &State, number: usize, choice: &Choice, blocked: bool) -> Vec<Move> {
        let parallel = |t: &Tiling| Tiling { parallel: t.parallel && choice.place == Place::Root, ..*t };
        let of = &self.known.stages[number];
        let storage = state.now.get(number).shape.storage().clone();
        if !blocked {
            // A tile has no more rows and vectors than there are.
            let filled = |t: &&Tiling| {
                let rows = t.rows <= 1 || of.own > 1 && t.rows as f64 <= storage[of.own - 2];
                rows && (t.vectors <= 1 || t.vectors as f64 * of.lanes <= storage[of.own - 1])
            };
            return of.tiles.iter().filter(filled).map(|t| Move::Tiling(parallel(t))).collect();
        }
        let all = blocks(self.tree.start(), StageId(number as u32), &choice.tiling);
        let smaller = |t: &Tiling| {
            let fits = |k: usize, block: i64| block == 0 || (block as f64) < storage[k];
            of.own < 2 || fits(of.own - 2, t.block[0]) && fits(of.own - 1, t.block[1])
        };
        all.into_iter().filter(smaller).map(Move::Tiling).collect()
    }
}

/// All of a stage.
fn all_of(of: &Fixed) -> Part {
    let extents: Extents = of.extents.iter().copied().collect();
    Part { from: extents.iter().map(|_| 0.0).collect(), extents, held: 0.0 }
}

/// The first and the last index of an axis that places reach from a part.
fn reached(at: &Axis, (low, high): (f64, f64), part: &Part) -> (f64, f64) {
    if at.wild {
        return (0.0, f64::MAX);
    }
    let (mut from, mut to) = (low, high);
    for (d, c) in &at.terms {
        let first = part.from[usize::from(*d)];
        let last = first + part.extents[usize::from(*d)] - 1.0;
        let (a, b) = (c * first, c * last);
        (from, to) = (from + a.min(b), to + a.max(b));
    }
    (from, to)
}

fn plain_tiling(tree: &Tree<'_>) -> Tiling {
    Tiling { parallel: tree.machine.threads > 1, ..Tiling::plain() }
}

/// Keys of a choice beside those before it, coarse to fine: where stages are computed, which loops are cut, the numbers.
fn keyed(before: [u64; 3], c: &Choice) -> [u64; 3] {
    let key = |level: usize| {
        let mut hash = FxHasher::default();
        (before[level], c.place).hash(&mut hash);
        match level {
            0 => {}
            1 => (c.tiling.block.map(|n| n > 0), c.tiling.pack, c.tiling.vectors > 0).hash(&mut hash),
            _ => c.tiling.hash(&mut hash),
        }
        hash.finish()
    };
    [key(0), key(1), key(2)]
}

impl Space for Estimates<'_> {
    type State = State;
    type Move = Move;

    fn root(&self) -> State {
        State { made: 0, before: self.begin.clone(), now: self.begin.clone(), keys: [0; 3] }
    }

    fn moves(&self, state: &State) -> Vec<Move> {
        let Some(stage) = self.tree.stages().get(state.made / DECISIONS) else { return vec![] };
        let number = stage.0 as usize;
        let choice = state.now.get(number).shape.choice;
        match (state.made % DECISIONS, choice.place) {
            (0, _) => self.places(&state.now, number).into_iter().map(Move::Place).collect(),
            (_, Place::Inline) => vec![Move::Tiling(choice.tiling)],
            (phase, _) => self.tilings(state, number, &choice, phase == 2),
        }
    }

    fn apply(&self, state: &State, by: &Move) -> State {
        let Some(stage) = self.tree.stages().get(state.made / DECISIONS) else { return state.clone() };
        let number = stage.0 as usize;
        let last = state.now.get(number).shape.choice;
        let (before, choice) = match by {
            Move::Place(place) => (&state.now, Choice { place: *place, tiling: plain_tiling(self.tree) }),
            Move::Tiling(tiling) => (&state.before, Choice { tiling: *tiling, ..last }),
        };
        let mut out = State { made: state.made + 1, before: before.clone(), now: before.clone(), keys: state.keys };
        // Nothing is to be decided of loops that there are not.
        if last.place == Place::Inline && matches!(by, Move::Tiling(_)) {
            out.now = state.now.clone();
        } else {
            self.decide(&mut out.now, number, &choice, true);
        }
        if out.made.is_multiple_of(DECISIONS) {
            out.keys = keyed(state.keys, &out.now.get(number).shape.choice);
        }
        out
    }

    fn terminal(&self, state: &State) -> bool {
        state.made >= self.tree.depth()
    }

    fn depth(&self, state: &State) -> usize {
        state.made
    }

    fn key(&self, state: &State, level: usize) -> u64 {
        let mut keys = state.keys;
        if let Some(stage) =
            self.tree.stages().get(state.made / DECISIONS).filter(|_| !state.made.is_multiple_of(DECISIONS))
        {
            keys = keyed(keys, &state.now.get(stage.0 as usize).shape.choice);
        }
        let mut hash = FxHasher::default();
        (state.made, keys[level.min(2)]).hash(&mut hash);
        hash.finish()
    }

    /// A state is a whole schedule at any time.
    fn solution(&self, _: &State) -> bool {
        true
    }
}
