//! The memory of a nest that is interpreted: an arena of buffers in which every access is checked.
//!
//! It must not know of statements or of values of the language.

use crate::diag::{Diagnostic, Result};
use crate::eval::large;
use crate::ir::Lit;
use rustc_hash::FxHashMap;

/// A pointer into a buffer: which one, and the offset in numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pointer {
    buffer: usize,
    from: usize,
}

struct Buffer {
    name: String,
    /// Numbers; nothing where none was written yet.
    cells: Vec<Option<Lit>>,
    alive: bool,
    /// Bytes of the arena that it takes.
    bytes: u64,
}

/// Which iterations touched a number.
#[derive(Clone, Copy, Default)]
struct Touch {
    wrote: Option<u64>,
    read: Option<u64>,
    /// Whether several iterations read it.
    shared: bool,
}

/// A loop whose iterations claim to be independent.
struct Watch {
    iteration: u64,
    /// Buffers from here on belong to the iteration.
    own: usize,
    touched: FxHashMap<(usize, usize), Touch>,
}

/// All buffers, and the loops that are watched.
#[derive(Default)]
pub(super) struct Memory {
    buffers: Vec<Buffer>,
    /// The buffers that hold memory, in the order of the arena.
    arena: Vec<usize>,
    watches: Vec<Watch>,
    /// Bytes of the arena: taken so far, taken now, and taken at once at most.
    bytes: [u64; 3],
}

/// As many numbers as the interpreter of terms may hold in a tensor, about.
const MAX_CELLS: usize = 1 << 28;

fn wrong<T>(what: String) -> Result<T> {
    Err(Diagnostic::bug(format!("the loop nest {what}")))
}

impl Memory {
    /// A buffer outside of the arena, with its content.
    pub(super) fn input(&mut self, name: &str, data: Vec<Lit>) -> Pointer {
        let cells = data.into_iter().map(Some).collect();
        self.buffers.push(Buffer { name: name.to_string(), cells, alive: true, bytes: 0 });
        Pointer { buffer: self.buffers.len() - 1, from: 0 }
    }

    /// Takes memory from the arena for elements of these sizes, each of so many numbers of so many bytes.
    pub(super) fn alloc(&mut self, name: &str, sizes: &[u64], [lanes, bytes]: [u32; 2]) -> Result<Pointer> {
        let count = sizes.iter().fold(u64::from(lanes), |n, d| n.saturating_mul(*d)) as usize;
        if count > MAX_CELLS {
            let note = large::note(Some(name), sizes, u64::from(lanes * bytes));
            return Err(Diagnostic::limit(large::message(sizes)).note(note));
        }
        let at = self.input(name, vec![]);
        let bytes = count as u64 * u64::from(bytes);
        self.buffers[at.buffer].cells.resize(count, None);
        self.buffers[at.buffer].bytes = bytes;
        self.arena.push(at.buffer);
        let [all, now, most] = self.bytes;
        self.bytes = [all + bytes, now + bytes, most.max(now + bytes)];
        Ok(at)
    }

    /// Bytes that were taken from the arena: in all, and at once at most.
    pub(super) fn taken(&self) -> (u64, u64) {
        (self.bytes[0], self.bytes[2])
    }

    /// The top of the arena.
    pub(super) fn mark(&self) -> usize {
        self.arena.len()
    }

    /// Gives back what was taken since a mark.
    pub(super) fn reset(&mut self, mark: usize) {
        for b in self.arena.drain(mark.min(self.arena.len())..) {
            self.buffers[b].alive = false;
            self.bytes[1] -= self.buffers[b].bytes;
            self.buffers[b].cells = vec![];
        }
    }

    /// A pointer so many numbers further.
    pub(super) fn offset(&self, at: Pointer, by: i64) -> Result<Pointer> {
        match usize::try_from(at.from as i64 + by) {
            Ok(from) => Ok(Pointer { from, ..at }),
            Err(_) => wrong(format!("points before `{}`", self.buffers[at.buffer].name)),
        }
    }

    fn cell(&self, at: Pointer, index: i64) -> Result<usize> {
        let b = &self.buffers[at.buffer];
        if !b.alive {
            return wrong(format!("uses `{}` after its memory was given back", b.name));
        }
        match usize::try_from(at.from as i64 + index) {
            Ok(k) if k < b.cells.len() => Ok(k),
            _ => wrong(format!("accesses number {index} of `{}`, which has {}", b.name, b.cells.len() - at.from)),
        }
    }

    /// Reads a number.
    pub(super) fn read(&mut self, at: Pointer, index: i64) -> Result<Lit> {
        let k = self.cell(at, index)?;
        self.touch(at.buffer, k, false)?;
        match self.buffers[at.buffer].cells[k] {
            Some(l) => Ok(l),
            None => wrong(format!("reads number {index} of `{}` before it is written", self.buffers[at.buffer].name)),
        }
    }

    /// Reads the lanes of a vector. Lanes that have no iteration may hold nothing, as long as some lane does.
    pub(super) fn read_lanes(&mut self, at: Pointer, from: i64, lanes: i64, zero: Lit) -> Result<Vec<Lit>> {
        let known =
            (from..from + lanes).any(|k| self.cell(at, k).is_ok_and(|c| self.buffers[at.buffer].cells[c].is_some()));
        let mut out = vec![];
        for k in from..from + lanes {
            let cell = self.cell(at, k)?;
            let idle = known && self.buffers[at.buffer].cells[cell].is_none();
            out.push(if idle { zero } else { self.read(at, k)? });
        }
        Ok(out)
    }

    /// Writes a number.
    pub(super) fn write(&mut self, at: Pointer, index: i64, value: Lit) -> Result<()> {
        let k = self.cell(at, index)?;
        self.touch(at.buffer, k, true)?;
        self.buffers[at.buffer].cells[k] = Some(value);
        Ok(())
    }

    /// A loop begins whose iterations claim to be independent.
    pub(super) fn watch(&mut self) {
        self.watches.push(Watch { iteration: 0, own: self.buffers.len(), touched: FxHashMap::default() });
    }

    /// An iteration of the innermost watched loop begins.
    pub(super) fn iterate(&mut self) {
        if let Some(w) = self.watches.last_mut() {
            w.iteration += 1;
        }
    }

    /// The innermost watched loop ends.
    pub(super) fn unwatch(&mut self) {
        self.watches.pop();
    }

    fn touch(&mut self, buffer: usize, cell: usize, write: bool) -> Result<()> {
        for w in self.watches.iter_mut().filter(|w| buffer < w.own) {
            let t = w.touched.entry((buffer, cell)).or_default();
            let now = Some(w.iteration);
            let race = if write {
                t.wrote.is_some() && t.wrote != now || t.shared || t.read.is_some() && t.read != now
            } else {
                t.wrote.is_some() && t.wrote != now
            };
            if race {
                let name = &self.buffers[buffer].name;
                return wrong(format!("has iterations that are not independent: two use number {cell} of `{name}`"));
            }
            match write {
                true => t.wrote = now,
                false => {
                    t.shared |= t.read.is_some() && t.read != now;
                    t.read = now;
                }
            }
        }
        Ok(())
    }
}
