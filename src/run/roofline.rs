//! What this machine does at most, measured: multiplications with an addition, and bytes moved between the levels of its
//! memory, on one thread and on all.
//!
//! The code is compiled as that of programs is, and lies in memory of the same kind. It must not know what programs do.

use super::toolchain::Toolchain;
use crate::codegen;
use crate::diag::{Diagnostic, Result};
use crate::machine::Machine;
use libloading::Library;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::sync::Barrier;
use std::time::Instant;

/// Seconds of a measurement, and how many there are of each kind, of which the fastest counts.
const SECONDS: f64 = 5e-3;
const ROUNDS: usize = 8;
/// Bytes that no cache holds: so many times the last one, within bounds.
const BEYOND: u64 = 4;
const BEYOND_BOUNDS: [u64; 2] = [64 << 20, 1 << 30];
/// Numbers of 64 bits that all kernels move in whole rounds, and bytes between arrays, so that they share no places.
const ROUND: u64 = 64;
const APART: u64 = 320;

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Operations, two in each multiplication with an addition, in billions a second; of so many bits.
    Fma,
    /// Bytes that a copy reads and writes, in billions a second; from so many bytes.
    Copy,
    /// The same of a sum with a multiple.
    Triad,
}

/// A ceiling: what is measured, on one thread and on all.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Ceiling {
    /// What.
    pub kind: Kind,
    /// Where: bits of a number, or the level of memory, 4 beyond all caches.
    pub of: u64,
    /// Bytes that are moved, those of a thread.
    pub bytes: u64,
    /// Billions a second on one thread.
    pub one: f64,
    /// Billions a second on all threads.
    pub all: f64,
    /// How many these are.
    pub threads: usize,
}

type Fused = unsafe extern "C" fn(i64, f64, f64) -> f64;
type Moved = unsafe extern "C" fn(*mut f64, *const f64, *const f64, f64, i64, i64);

/// The compiled code.
struct Code {
    fused: [(u64, Fused); 2],
    moved: [(Kind, Moved); 2],
    /// Bytes of all sums of a round.
    sums: u64,
    reserve: unsafe extern "C" fn(u64) -> *mut u8,
    release: unsafe extern "C" fn(*mut u8, u64),
    _library: Library,
}

/// Measures all ceilings of this machine.
///
/// # Errors
/// No compiler, or no memory.
pub fn measure(tools: &Toolchain, machine: &Machine) -> Result<Vec<Ceiling>> {
    let code = Code::load(tools)?;
    let threads = machine.threads.max(1);
    let mut out = vec![];
    for (bits, fused) in code.fused {
        let each = (code.sums * 8 / bits * 2) as f64;
        // SAFETY: it touches no memory.
        let work = |_: usize, rounds: i64| {
            black_box(unsafe { fused(rounds, black_box(0.5), black_box(1.0)) });
        };
        let [one, all] = [1, threads].map(|n| rate(n, each, &work));
        out.push(Ceiling { kind: Kind::Fma, of: bits, bytes: 0, one, all, threads });
    }
    let beyond = (BEYOND * machine.caches[2]).clamp(BEYOND_BOUNDS[0], BEYOND_BOUNDS[1]);
    let [first, second, last] = machine.caches.map(|bytes| bytes / 2);
    for (level, bytes) in (1..).zip([first, second, last, beyond]) {
        // The nearer caches are those of one core.
        let shared = if level > 2 { threads as u64 } else { 1 };
        for (kind, moved) in code.moved {
            let one = code.moving(kind, moved, bytes, 1)?;
            let all = code.moving(kind, moved, bytes / shared, threads)?;
            out.push(Ceiling { kind, of: level, bytes, one, all, threads });
        }
    }
    Ok(out)
}

impl Code {
    fn load(tools: &Toolchain) -> Result<Code> {
        let object = tools.object(&codegen::roofline())?;
        let bad = |e: libloading::Error| Diagnostic::bug("a compiled object cannot be loaded").note(e.to_string());
        // SAFETY: the object is code of this program without initializers, and defines symbols of these types; the library
        // stays loaded as long as they are used.
        unsafe {
            let library = Library::new(&object).map_err(bad)?;
            let number = |name: &[u8]| {
                let get = library.get::<unsafe extern "C" fn() -> i64>(name).map_err(bad);
                get.map(|f| f().unsigned_abs())
            };
            let fused = |name: &[u8]| library.get::<Fused>(name).map(|f| *f).map_err(bad);
            let moved = |name: &[u8]| library.get::<Moved>(name).map(|f| *f).map_err(bad);
            Ok(Code {
                fused: [(64, fused(b"ks_fused_64")?), (32, fused(b"ks_fused_32")?)],
                moved: [(Kind::Copy, moved(b"ks_copy")?), (Kind::Triad, moved(b"ks_triad")?)],
                sums: number(b"ks_chains")? * number(b"ks_register_bytes")?,
                reserve: *library.get(b"ks_reserve").map_err(bad)?,
                release: *library.get(b"ks_release").map_err(bad)?,
                _library: library,
            })
        }
    }

    /// Bytes moved in a nanosecond where each thread has so many.
    fn moving(&self, kind: Kind, moved: Moved, bytes: u64, threads: usize) -> Result<f64> {
        let arrays = if kind == Kind::Copy { 2 } else { 3 };
        let n = (bytes / (8 * arrays) / ROUND).max(1) * ROUND;
        let share = (arrays * (8 * n + APART)).next_multiple_of(4096);
        let all = share * threads as u64;
        // SAFETY: it only asks the system for address space.
        let base = unsafe { (self.reserve)(all) };
        if base.is_null() {
            return Err(Diagnostic::user(format!("there is no memory of {all} bytes to measure")));
        }
        let start = base as usize;
        let work = |thread: usize, rounds: i64| {
            let array = |k: u64| (start + thread * share as usize + (k * (8 * n + APART)) as usize) as *mut f64;
            // SAFETY: each thread has memory of its own for its arrays of n numbers, which start at whole vectors.
            unsafe { moved(array(0), array(1), array(arrays - 1), black_box(0.5), n as i64, rounds) };
        };
        let found = rate(threads, (arrays * 8 * n) as f64, &work);
        // SAFETY: all threads have ended.
        unsafe { (self.release)(base, all) };
        Ok(found)
    }
}

/// Billions a second of what a round of a thread does `each` of: the most that was seen.
fn rate(threads: usize, each: f64, work: &(dyn Fn(usize, i64) + Sync)) -> f64 {
    let mut rounds = 1i64;
    let mut seconds = together(threads, rounds, work);
    // The first rounds touch memory, and wake the processor.
    while seconds < SECONDS / 2.0 && rounds < 1 << 40 {
        rounds *= 2;
        seconds = together(threads, rounds, work);
    }
    let mut least = f64::INFINITY;
    for _ in 0..ROUNDS {
        least = least.min(together(threads, rounds, work));
    }
    1e-9 * each * threads as f64 * rounds as f64 / least
}

/// Seconds that the slowest of some threads takes, which begin together.
fn together(threads: usize, rounds: i64, work: &(dyn Fn(usize, i64) + Sync)) -> f64 {
    let barrier = Barrier::new(threads);
    let run = |k: usize| {
        barrier.wait();
        let from = Instant::now();
        work(k, rounds);
        from.elapsed().as_secs_f64()
    };
    std::thread::scope(|s| {
        let others: Vec<_> = (1..threads).map(|k| s.spawn(move || run(k))).collect();
        let own = run(0);
        // A thread that ended otherwise measured nothing.
        others.into_iter().map(|t| t.join().unwrap_or(f64::INFINITY)).fold(own, f64::max)
    })
}
