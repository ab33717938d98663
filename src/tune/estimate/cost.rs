//! Boxes and loops of one stage become its work: the same parts that are counted of a nest, by the same numbers.

use super::known::{Fixed, Known};
use super::reads::{Axis, From, Group, Reads};
use super::shape::{Extents, Ring, Shape};
use crate::schedule::plan::Kind;
use crate::tune::parts::Work;
use crate::tune::traffic::LINE;
use crate::tune::tree::Place;
use crate::tune::work::{ARITHMETIC, LOADS, REGISTERS, WILD, registers};
use smallvec::SmallVec;

/// Elements further apart are not read in vectors where no step says so.
const FEW: f64 = 4.0;

/// What is read or written, as a stage sees it.
struct Operand<'a> {
    /// How it is read; nothing for what the stage writes.
    group: Option<&'a Group>,
    /// The box that there is memory for.
    storage: Extents,
    /// The distance of elements along each axis of it, in elements.
    strides: Extents,
    /// How many loops are around that memory.
    level: usize,
    /// Bytes of an element.
    bytes: f64,
    /// Whether it is a copy that was made for the stage.
    packed: bool,
}

/// A stage while it is judged.
pub struct Judged<'a> {
    /// All stages.
    pub known: &'a Known,
    /// Its number.
    pub number: usize,
    /// Where and how it is computed.
    pub shape: &'a Shape,
    /// What a point takes.
    pub reads: &'a Reads,
}

/// Memory of a source: the box it has, and how many loops are around it.
pub type Memory<'a> = dyn Fn(From) -> (Extents, usize) + 'a;

impl Judged<'_> {
    /// The work of the stage, where sources have memory.
    pub fn work(&self, memory: &Memory<'_>) -> Work {
        let mut out = Work::default();
        if self.shape.choice.place == Place::Inline || self.shape.boxes[0].extents.contains(&0.0) {
            return out;
        }
        let operands: SmallVec<[Operand<'_>; 8]> = self.operands(memory);
        let shared = self.shared();
        self.core(&operands, shared, &mut out);
        self.moved(&operands, shared, &mut out);
        out
    }

    fn fixed(&self) -> &Fixed {
        &self.known.stages[self.number]
    }

    /// The share of iterations that the busiest thread takes.
    fn shared(&self) -> f64 {
        let spread = self.shape.path.iter().find(|r| r.own.kind == Kind::Parallel && r.own.trips > 1.0);
        spread.map_or(1.0, |r| (r.own.trips / self.known.machine.threads as f64).ceil() / r.own.trips)
    }

    fn operands(&self, memory: &Memory<'_>) -> SmallVec<[Operand<'_>; 8]> {
        let (of, shape) = (self.fixed(), self.shape);
        let strides = |storage: &Extents, order: &[usize]| -> Extents {
            let mut out: Extents = storage.iter().map(|_| 1.0).collect();
            let mut step = 1.0;
            for k in (0..storage.len()).rev() {
                let axis = order.get(k).copied().unwrap_or(k);
                out[axis] = step;
                step *= storage[axis];
            }
            out
        };
        let panel = shape.around + of.own.saturating_sub(2) + self.blocks() + 1;
        let one = |g: &'_ Group| {
            let pack = of.packs.iter().find(|(from, _)| shape.choice.tiling.pack && *from == g.first.from);
            let (storage, level) = memory(g.first.from);
            let (storage, level) = match pack {
                Some(_) => ((0..g.first.at.len()).map(|a| self.extent(g, a, panel, storage[a])).collect(), panel),
                None => (storage, level),
            };
            let strides = strides(&storage, pack.map_or(&[], |(_, axes)| axes));
            (storage, strides, level, pack.is_some())
        };
        let mut out: SmallVec<[Operand<'_>; 8]> = SmallVec::new();
        for g in &self.reads.groups {
            let (storage, strides, level, packed) = one(g);
            out.push(Operand { group: Some(g), storage, strides, level, bytes: g.first.bytes, packed });
        }
        let storage: Extents = shape.storage()[..of.own].iter().copied().collect();
        let strides = strides(&storage, &[]);
        let bytes = of.bytes * of.components;
        out.push(Operand { group: None, storage, strides, level: shape.around, bytes, packed: false });
        out
    }

    /// How many of its loops run over blocks.
    fn blocks(&self) -> usize {
        let t = &self.shape.choice.tiling;
        usize::from(t.block[0] > 0 && self.fixed().own > 1) + usize::from(t.block[1] > 0)
    }

    /// How far places of a group reach along an axis in one iteration of so many loops.
    fn extent(&self, g: &Group, axis: usize, level: usize, most: f64) -> f64 {
        let (at, spans) = (&g.first.at[axis], self.shape.at(level));
        if at.wild {
            return most;
        }
        let reach: f64 = at.terms.iter().map(|(d, c)| c.abs() * (spans[usize::from(*d)] - 1.0)).sum();
        (reach + 1.0 + g.range[axis].1 - g.range[axis].0).min(most)
    }

    /// Lines that an operand touches in one iteration of so many loops.
    fn lines(&self, o: &Operand<'_>, level: usize) -> f64 {
        // What is there for an inner loop is the same for all iterations around it.
        let level = level.max(o.level);
        if let Some(g) = o.group
            && g.first.at.iter().any(|a| a.wild)
        {
            let points: f64 = self.shape.at(level).iter().product();
            return points.min(o.storage.iter().product::<f64>() * o.bytes / LINE).max(1.0) * g.count;
        }
        let spans = self.shape.at(level);
        let extent = |axis: usize| match o.group {
            Some(g) => self.extent(g, axis, level, o.storage[axis]),
            None => spans[axis].min(o.storage[axis]),
        };
        // Rows that are whole lie next to each other.
        let (mut run, mut rows, mut whole) = (1.0, 1.0, true);
        for axis in (0..o.storage.len()).rev() {
            let n = extent(axis);
            match whole || o.strides[axis] * o.bytes < LINE {
                true => run *= n,
                false => rows *= n,
            }
            whole &= n >= o.storage[axis];
        }
        rows * (run * o.bytes / LINE).max(1.0)
    }

    /// Lines moved between caches and memory: those that one iteration of the outermost loop touches that fits.
    fn moved(&self, operands: &[Operand<'_>], shared: f64, out: &mut Work) {
        let levels = self.shape.path.len() + 1;
        let mut lines: SmallVec<[SmallVec<[f64; 14]>; 8]> = SmallVec::new();
        for o in operands {
            lines.push((0..levels).map(|l| self.lines(o, l)).collect());
        }
        for (cache, bytes) in self.known.machine.caches.iter().enumerate() {
            let fits = |level: &usize| {
                let own = lines.iter().map(|l| l[*level]).sum::<f64>() * LINE;
                own + self.shape.part(*level).held <= *bytes as f64
            };
            let level = (0..levels).find(fits).unwrap_or(levels);
            if level == 0 && self.known.bytes <= *bytes as f64 {
                continue;
            }
            let around = level.saturating_sub(1);
            let times: f64 = self.shape.path[..around].iter().map(|r| r.own.trips).product();
            let mut all = 0.0;
            for (o, l) in operands.iter().zip(&lines) {
                // What is there for an inner loop only stays in the cache where that loop fits.
                let once = if level == 0 || o.level >= level && o.level > 0 { 1.0 } else { times };
                all += once * l[around] * if o.group.is_none() { 2.0 } else { 1.0 };
            }
            out.0[1 + cache] = if cache < 2 { all * shared } else { all * (1.0 + shared) / 2.0 };
        }
    }

    /// What the processor does, and how often loops begin anew.
    fn core(&self, operands: &[Operand<'_>], shared: f64, out: &mut Work) {
        let (of, shape) = (self.fixed(), self.shape);
        let (lane, cut, lanes) = self.lanes(operands);
        // What the compiler runs in vectors has so many fewer iterations.
        let fewer = if cut { lanes } else { 1.0 };
        let wide = f64::from(self.known.machine.vector_bytes);
        let instructions = |bytes: f64| (lanes * bytes / wide).ceil().max(1.0);
        let (mut times, mut serial, mut unrolled, mut inside) = (1.0, 1.0, 1.0, 1.0);
        for (k, r) in shape.path.iter().enumerate() {
            let over = usize::from(r.own.dim) >= of.own && k >= shape.around;
            match r.own.kind {
                Kind::Vector => {}
                Kind::Unrolled => {
                    (unrolled, inside) = (unrolled * r.own.trips, if over { inside * r.own.trips } else { inside })
                }
                _ => (times, serial) = (times * r.own.trips, if over { serial * r.own.trips } else { serial }),
            }
            if k >= shape.around && !matches!(r.own.kind, Kind::Vector | Kind::Unrolled) {
                let each = if r.own.kind == Kind::Parallel { times * shared } else { times };
                // What runs once is no loop.
                out.0[4] += if r.own.trips > 1.0 { each } else { 0.0 };
                let begins = r.own.kind == Kind::Parallel && r.own.trips > 1.0;
                let nested = shape.path[..k].iter().any(|r| r.own.kind == Kind::Parallel && r.own.trips > 1.0);
                out.0[5] += if begins && !nested { times / r.own.trips } else { 0.0 };
            }
        }
        let arithmetic = self.arithmetic((lane, cut), &instructions);
        let mut loads = 0.0;
        for o in operands {
            if let Some(g) = o.group.filter(|_| !self.in_registers(o)) {
                let (count, gathered) = self.loaded(o, g, (lane, cut), instructions(o.bytes));
                loads += count;
                out.0[6] += times / fewer * gathered;
            }
        }
        // Elements are written once, however many steps they take.
        let vectors = unrolled / inside;
        times /= fewer;
        let stores = of.components * vectors * instructions(of.bytes);
        let waits = if of.reduces && serial > 1.0 { of.wait * inside } else { 0.0 };
        let spilled = if of.reduces { (stores - registers(&self.known.machine)).max(0.0) } else { 0.0 };
        let steps = if of.reduces { spilled } else { stores };
        let body = [arithmetic / ARITHMETIC, (loads + spilled) / LOADS, steps].into_iter().fold(waits, f64::max);
        let once = if of.reduces { times / serial * stores } else { 0.0 };
        let copied = self.packing(operands, instructions(of.bytes), out);
        out.0[0] += (times * body + once + copied) * shared;
    }

    /// What operations take in one iteration of what is not unrolled: those whose values are the same for iterations of the
    /// innermost loops, for what is unrolled or for lanes are made once for these.
    fn arithmetic(&self, (lane, cut): (Option<u8>, bool), instructions: &dyn Fn(f64) -> f64) -> f64 {
        let named = |dims: u32, d: u8| dims >> d & 1 == 1;
        let mut sum = 0.0;
        for (dims, worth) in &self.reads.operations {
            let mut times = 1.0;
            let (mut serial, own) = (true, self.shape.own());
            for r in own.iter().rev() {
                match (r.own.kind, named(*dims, r.own.dim)) {
                    (Kind::Vector, _) | (Kind::Unrolled, false) => {}
                    (Kind::Unrolled, true) => times *= r.own.trips,
                    (_, false) if serial => {
                        times /=
                            if cut && Some(r.own.dim) == lane { r.own.trips / self.fixed().lanes } else { r.own.trips }
                    }
                    _ => serial = false,
                }
            }
            let wide = lane.is_some_and(|l| named(*dims, l));
            let each = |(k, n): (usize, &f64)| n * if wide { instructions((1u32 << k) as f64) } else { 1.0 };
            sum += times * worth.iter().enumerate().map(each).sum::<f64>();
        }
        sum
    }

    /// The dimension whose indices are lanes, whether it is that of an innermost loop of which later passes make vectors, and
    /// cut it where indices are clamped, and how many lanes there are.
    fn lanes(&self, operands: &[Operand<'_>]) -> (Option<u8>, bool, f64) {
        let (of, shape) = (self.fixed(), self.shape);
        if let Some(r) = shape.own().iter().find(|r| r.own.kind == Kind::Vector) {
            return (Some(r.own.dim), false, of.lanes);
        }
        let inner = shape.own().iter().rev().find(|r| r.own.kind != Kind::Unrolled);
        let last = |r: &&Ring| usize::from(r.own.dim) + 1 == of.own && r.own.kind == Kind::Serial;
        let Some(r) = inner.filter(last).filter(|r| r.own.trips >= 2.0 * of.lanes) else { return (None, false, 1.0) };
        let near = |o: &Operand<'_>| {
            let Some(g) = o.group else { return true };
            let step = |(a, s): (&Axis, &f64)| a.coefficient(r.own.dim) * s;
            let step: f64 = g.first.at.iter().zip(&o.strides).map(step).sum();
            let plain = |a: &Axis| !a.wild && (!a.bent || a.coefficient(r.own.dim) == 0.0);
            step.abs() <= FEW && g.first.at.iter().all(plain)
        };
        match operands.iter().all(near) {
            true => (Some(r.own.dim), true, of.lanes),
            false => (None, false, 1.0),
        }
    }

    /// Loads of a group for one iteration of what is not unrolled, and elements of them that are found lane by lane.
    fn loaded(&self, o: &Operand<'_>, g: &Group, (lane, cut): (Option<u8>, bool), instructions: f64) -> (f64, f64) {
        let dims = self.shape.own().iter().filter(|r| r.own.kind == Kind::Unrolled);
        let named = |d: u8| g.first.at.iter().any(|a| a.coefficient(d) != 0.0);
        let (mut places, mut vectors) = (g.count, 1.0);
        let mut trips: SmallVec<[(u8, f64); 4]> = SmallVec::new();
        for r in dims.filter(|r| named(r.own.dim)) {
            places *= r.own.trips;
            match Some(r.own.dim) == lane {
                true => vectors *= r.own.trips,
                false => trips.push((r.own.dim, r.own.trips)),
            }
        }
        // Places that iterations have in common are read once.
        let reach = |(a, (lo, hi)): (&Axis, &(f64, f64))| {
            let far = |(d, n): &(u8, f64)| a.coefficient(*d).abs() * (n - 1.0);
            1.0 + hi - lo + trips.iter().map(far).sum::<f64>()
        };
        places = places.min(vectors * g.first.at.iter().zip(&g.range).map(reach).product::<f64>());
        let Some(lane) = lane else { return (places, 0.0) };
        let step: f64 = g.first.at.iter().zip(&o.strides).map(|(a, s)| a.coefficient(lane) * s).sum();
        let wild = g.first.at.iter().any(|a| a.wild || (a.bent || a.clamped && !cut) && a.coefficient(lane) != 0.0);
        let lanes = self.fixed().lanes;
        match step.abs() {
            _ if wild => (places * lanes, places * lanes * WILD),
            0.0 => (places, 0.0),
            1.0 => (places * instructions, 0.0),
            _ => (places * lanes, places * lanes),
        }
    }

    /// Whether an operand is so small, and so near, that it stays in registers.
    fn in_registers(&self, o: &Operand<'_>) -> bool {
        let serial = |r: &Ring| !matches!(r.own.kind, Kind::Vector | Kind::Unrolled) && r.own.trips > 1.0;
        let known = |a: &Axis| !(a.clamped || a.bent || a.wild);
        let inside = &self.shape.path[o.level.min(self.shape.path.len())..];
        let near = o.level > 0 && !o.packed && !inside.iter().any(serial);
        near && o.group.is_some_and(|g| g.first.at.iter().all(known))
            && o.storage.iter().product::<f64>() <= REGISTERS * self.fixed().lanes
    }

    /// Cycles of copying what is packed, each panel anew.
    fn packing(&self, operands: &[Operand<'_>], instructions: f64, out: &mut Work) -> f64 {
        let mut cycles = 0.0;
        for o in operands.iter().filter(|o| o.packed) {
            let times: f64 =
                self.shape.path[..o.level.min(self.shape.path.len())].iter().map(|r| r.own.trips).product();
            let elements = o.storage.iter().product::<f64>();
            cycles += times * elements / self.fixed().lanes * instructions;
            let moved = o.strides.windows(2).any(|w| w[0] < w[1]);
            out.0[6] += if moved { times * elements } else { 0.0 };
        }
        cycles
    }
}
