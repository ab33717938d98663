//! Calls compiled functions: values become words and flat buffers, and back.

use super::measure::{Timing, repeat};
use super::memory;
use super::toolchain::Toolchain;
use crate::codegen::{Interface, Unit};
use crate::diag::{Diagnostic, Result, Source};
use crate::eval::{self, Elements, Numbers, Value, large};
use crate::ir::{Lit, Scalar, Ty, TyKind};
use indexmap::IndexSet;
use libloading::Library;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, OnceLock};

/// The most address space for tensors, and the least that is worth a try.
const SPACE: u64 = 1 << 36;
const LEAST_SPACE: u64 = 1 << 24;
/// Stack for functions that call themselves, and what must be left for those that do not.
const STACK: usize = 1 << 30;
const STACK_LEFT: usize = 1 << 20;

#[repr(C)]
struct Failure {
    site: i32,
    count: i32,
    values: [i64; 32],
}

/// The same as `ks::Call` of the runtime.
#[repr(C)]
struct Call {
    input: *const u64,
    output: *mut u64,
    base: *mut u8,
    capacity: u64,
    stack: u64,
    peak: u64,
    failure: Failure,
    write: unsafe extern "C" fn(*mut c_void, i32, *const u64) -> i64,
    writer: *mut c_void,
    threads: i64,
}

type Entry = unsafe extern "C" fn(*mut Call) -> i32;

/// A loaded object and its memory, which one call at a time may use. What never runs by itself needs none.
struct Loaded {
    library: Library,
    memory: Mutex<Option<Space>>,
}

struct Space {
    base: *mut u8,
    bytes: u64,
}

// SAFETY: the memory is used only under the lock that owns this value.
unsafe impl Send for Space {}

impl Drop for Loaded {
    fn drop(&mut self) {
        let Some(space) = self.memory.get_mut().unwrap_or_else(|e| e.into_inner()) else { return };
        // SAFETY: the symbol has this type in the runtime, and nobody else has the memory.
        unsafe {
            if let Ok(release) = self.library.get::<unsafe extern "C" fn(*mut u8, u64)>(b"ks_release") {
                release(space.base, space.bytes);
            }
        }
    }
}

/// A compiled definition.
pub struct Native {
    loaded: Arc<Loaded>,
    entry: Entry,
    text: Arc<str>,
    interface: Interface,
    /// What the last run printed.
    printed: Mutex<String>,
    source: Arc<Source>,
    /// Enough stack for the function's variables.
    frame: usize,
    /// How many threads parallel loops use at most.
    threads: usize,
    /// What runs where this one is of no use for its arguments.
    reference: Option<Reference>,
}

/// How a function is made.
type Make = dyn Fn() -> Result<Native> + Send + Sync;

/// A function that few calls need: made when the first one does, and kept.
struct Reference {
    make: Box<Make>,
    made: OnceLock<Box<Native>>,
}

impl Reference {
    /// The function. Where it cannot be made, the next call tries again.
    fn get(&self) -> Result<&Native> {
        if let Some(made) = self.made.get() {
            return Ok(made);
        }
        let made = (self.make)()?;
        Ok(self.made.get_or_init(|| Box::new(made)))
    }
}

impl Native {
    /// Compiles a unit; one function for each entry, in order.
    ///
    /// # Errors
    /// What the toolchain says.
    pub fn load(unit: Unit, source: &Arc<Source>, tools: &Toolchain) -> Result<Vec<Native>> {
        let text: Arc<str> = unit.text.into();
        let object = tools.object(&text)?;
        let loaded = match load(&object) {
            // Another process has removed it meanwhile.
            Err(_) if !object.exists() => load(&tools.object(&text)?)?,
            loaded => loaded?,
        };
        let loaded = Arc::new(loaded);
        unit.entries.into_iter().map(|interface| Native::entry(&loaded, &text, interface, source)).collect()
    }

    fn entry(loaded: &Arc<Loaded>, text: &Arc<str>, interface: Interface, source: &Arc<Source>) -> Result<Native> {
        // SAFETY: generated code defines the symbol with this type, and the library stays loaded.
        let entry = unsafe { loaded.library.get::<Entry>(interface.symbol.as_bytes()).map(|s| *s) };
        let entry = entry.map_err(|e| Diagnostic::bug("a compiled object lacks its entry").note(e.to_string()))?;
        Ok(Native {
            loaded: loaded.clone(),
            entry,
            text: text.clone(),
            frame: STACK_LEFT + 32 * interface.variables,
            interface,
            printed: Mutex::default(),
            source: source.clone(),
            threads: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            reference: None,
        })
    }

    /// The same function on so many threads at most.
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Native {
        self.threads = threads.max(1);
        self
    }

    /// The function of a schedule, with how to make what runs where its checks do not hold: a function of the same
    /// parameters and result.
    #[must_use]
    pub fn with_reference(mut self, make: impl Fn() -> Result<Native> + Send + Sync + 'static) -> Native {
        self.reference = Some(Reference { make: Box::new(make), made: OnceLock::new() });
        self
    }

    /// The C++ text.
    pub fn cpp(&self) -> &str {
        &self.text
    }

    /// Calls the function.
    ///
    /// # Errors
    /// The failures of the language; memory or stack that does not suffice.
    pub fn call(&self, args: &[Value]) -> Result<Value> {
        let mut out = None;
        self.with(args, |run| {
            run.once()?;
            out = Some(run.value());
            Ok(())
        })?;
        out.ok_or_else(|| Diagnostic::bug("a call gave nothing"))
    }

    /// Takes what the last call printed, or its last round.
    pub fn take_printed(&self) -> String {
        std::mem::take(&mut *self.printed.lock().unwrap_or_else(|e| e.into_inner()))
    }

    /// Calls the function repeatedly; values are converted outside the measured time.
    ///
    /// # Errors
    /// As [`Native::call`].
    pub fn time(&self, args: &[Value], repeats: usize) -> Result<Timing> {
        let mut out = None;
        self.with(args, |run| {
            let (min_seconds, median_seconds) = repeat(repeats, || run.once())?;
            out = Some(Timing { value: run.value(), min_seconds, median_seconds, peak_bytes: run.peak });
            Ok(())
        })?;
        out.ok_or_else(|| Diagnostic::bug("a call gave nothing"))
    }

    /// The seconds that all threads have spent in each of so many stages since the last time this was asked, and how often the
    /// loops of each have begun; nothing where the code has no timers.
    pub fn stage_times(&self, stages: usize) -> Option<Vec<(f64, f64)>> {
        let (mut seconds, mut times) = (vec![0.0; stages + 1], vec![0.0; stages + 1]);
        // SAFETY: the symbol has this type in the runtime, and writes one number for each of the stages that the code was made
        // for, which are as many.
        unsafe {
            let symbol = self.loaded.library.get::<unsafe extern "C" fn(*mut f64, *mut f64)>(b"ks_stage_times").ok()?;
            symbol(seconds.as_mut_ptr(), times.as_mut_ptr());
        }
        Some(seconds.into_iter().zip(times).take(stages).collect())
    }

    fn with(&self, args: &[Value], work: impl FnOnce(&mut Run) -> Result<()>) -> Result<()> {
        if args.len() != self.interface.params.len() {
            let (want, have) = (self.interface.params.len(), args.len());
            return Err(Diagnostic::user(format!("the function takes {want} arguments, not {have}")));
        }
        let (mut packed, mut texts) = (vec![], self.interface.texts.iter().copied().collect());
        for (v, ty) in args.iter().zip(&self.interface.params) {
            let mut p = Packed::new(*ty)?;
            p.add(v, &mut texts)?;
            packed.push(p);
        }
        let mut input = vec![];
        packed.iter().for_each(|p| p.words(false, &mut input));
        let mut memory = self.loaded.memory.lock().unwrap_or_else(|e| e.into_inner());
        let space = match &mut *memory {
            Some(space) => space,
            none => none.insert(reserve(&self.loaded.library)?),
        };
        let output = vec![0; self.interface.words];
        let mut run = Run { native: self, input, output, space, peak: 0, texts, printed: String::new() };
        let done = self.on_stack(|| work(&mut run));
        *self.printed.lock().unwrap_or_else(|e| e.into_inner()) = run.printed;
        done.map_err(|d| d.within(&self.source))
    }

    /// Does something where there is enough stack for the function.
    fn on_stack<T>(&self, work: impl FnOnce() -> T) -> T {
        if self.interface.recursive {
            stacker::grow(STACK, work)
        } else {
            stacker::maybe_grow(self.frame, self.frame * 2, work)
        }
    }
}

fn load(path: &std::path::Path) -> Result<Loaded> {
    // SAFETY: the object is generated code, whose one initializer makes an empty pool of threads.
    let library = unsafe { Library::new(path) }.map_err(|e| {
        Diagnostic::user(format!("{} cannot be loaded", path.display())).note(e.to_string()).note(
            "hint: CXX names what makes shared objects for this machine; DAEDAL_CACHE a folder that may have them",
        )
    })?;
    Ok(Loaded { library, memory: Mutex::default() })
}

/// Address space for the tensors of an object's calls.
fn reserve(library: &Library) -> Result<Space> {
    let bad = |e: libloading::Error| Diagnostic::bug("a compiled object cannot be loaded").note(e.to_string());
    // SAFETY: the symbol has this type in the runtime.
    let reserve = unsafe { library.get::<unsafe extern "C" fn(u64) -> *mut u8>(b"ks_reserve") }.map_err(bad)?;
    let mut bytes = SPACE.min(memory::available());
    while bytes >= LEAST_SPACE {
        // SAFETY: it only asks the system for address space.
        let base = unsafe { reserve(bytes) };
        if !base.is_null() {
            return Ok(Space { base, bytes });
        }
        bytes = (bytes / 2) & !4095;
    }
    Err(Diagnostic::limit("no address space for tensors is to be had"))
}

/// A prepared call.
struct Run<'a> {
    native: &'a Native,
    input: Vec<u64>,
    output: Vec<u64>,
    space: &'a Space,
    peak: u64,
    /// Texts by their numbers: those of the source, then those of the arguments.
    texts: IndexSet<&'static str>,
    printed: String,
}

/// Writes what compiled code prints; gives the number of characters.
///
/// # Safety
/// The writer is a run, and there are as many words as the types of the place take.
unsafe extern "C" fn write(writer: *mut c_void, place: i32, words: *const u64) -> i64 {
    // SAFETY: the call that is under way was given this run, and does not touch it itself.
    let run = unsafe { &mut *writer.cast::<Run<'_>>() };
    let Some(tys) = usize::try_from(place).ok().and_then(|k| run.native.interface.prints.get(k)) else { return 0 };
    // SAFETY: as many words are read as the types take.
    let mut words = (0..).map(|k| unsafe { *words.add(k) });
    let values: Vec<Value> = tys.iter().map(|ty| Unpacked::new(*ty, false, &mut words).value(0, &run.texts)).collect();
    eval::json::print(&values, &mut run.printed) as i64
}

impl Run<'_> {
    fn once(&mut self) -> Result<()> {
        let scheduled = self.native;
        let done = self.attempt();
        // Whatever went wrong in scheduled code, memory included, the reference knows what it means.
        let Some(reference) = scheduled.reference.as_ref().filter(|_| done.is_err()) else { return done };
        self.native = reference.get()?;
        let done = self.native.on_stack(|| self.attempt());
        self.native = scheduled;
        done
    }

    fn attempt(&mut self) -> Result<()> {
        self.printed.clear();
        let stack = if self.native.interface.recursive { STACK - STACK_LEFT } else { STACK_LEFT };
        let mut call = Call {
            input: self.input.as_ptr(),
            output: self.output.as_mut_ptr(),
            base: self.space.base,
            capacity: self.space.bytes,
            stack: stack as u64,
            peak: 0,
            failure: Failure { site: 0, count: 0, values: [0; 32] },
            write,
            writer: std::ptr::from_mut(self).cast(),
            threads: self.native.threads as i64,
        };
        // SAFETY: generated code reads as many words as there are parameters and writes as many as
        // there are results; it checks every access to the buffers behind them.
        let failed = unsafe { (self.native.entry)(&mut call) } != 0;
        self.peak = call.peak;
        if !failed {
            return Ok(());
        }
        let values = &call.failure.values[..call.failure.count.clamp(0, 32) as usize];
        Err(
            match (
                call.failure.site,
                usize::try_from(call.failure.site).ok().and_then(|k| self.native.interface.sites.get(k)),
            ) {
                (_, Some(site)) => site.diagnostic(values),
                (-1, None) => self.no_room(values),
                (-2, None) => Diagnostic::limit("recursion is too deep for the stack of compiled code"),
                _ => Diagnostic::bug("compiled code failed at an unknown place"),
            },
        )
    }

    /// That a tensor does not fit: which one, and its sizes.
    fn no_room(&self, values: &[i64]) -> Box<Diagnostic> {
        let what = values.first().and_then(|k| self.native.interface.tensors.get(usize::try_from(*k).ok()?));
        let sizes: Vec<u64> = values.iter().skip(1).map(|n| u64::try_from(*n).unwrap_or(0)).collect();
        let (name, each) = what.map_or((None, 1), |(name, each)| (Some(name.as_str()), *each));
        let d = Diagnostic::limit(large::message(&sizes)).note(large::note(name, &sizes, each));
        d.note(format!("there is room for {} bytes of tensors in all", self.space.bytes))
    }

    /// The result of the last run; it lies in memory that the next run uses again.
    fn value(&self) -> Value {
        let mut words = self.output.iter().copied();
        Unpacked::new(self.native.interface.ret, false, &mut words).value(0, &self.texts)
    }
}

/// Bytes of numbers one after another, in words of memory.
#[derive(Default)]
struct Buffer {
    words: Vec<u64>,
    bytes: usize,
}

impl Buffer {
    fn add(&mut self, bytes: &[u8]) {
        let (from, to) = (self.bytes, self.bytes + bytes.len());
        self.words.resize(to.div_ceil(8), 0);
        // SAFETY: words have no padding, and 8 bytes each; nobody else sees them meanwhile.
        let all = unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast::<u8>(), 8 * self.words.len()) };
        all[from..to].copy_from_slice(bytes);
        self.bytes = to;
    }
}

/// A value on its way in: one buffer for each scalar component.
enum Packed {
    Scalar(Scalar, Buffer),
    /// Numbers of texts.
    Text(Vec<u64>),
    Tuple(Vec<Packed>),
    Tensor(Vec<usize>, bool, Box<Packed>),
}

impl Packed {
    fn new(ty: Ty) -> Result<Packed> {
        Ok(match ty.kind() {
            TyKind::Scalar(s) => Packed::Scalar(*s, Buffer::default()),
            TyKind::String => Packed::Text(vec![]),
            TyKind::Tuple(parts) => Packed::Tuple(parts.iter().map(|p| Packed::new(*p)).collect::<Result<_>>()?),
            TyKind::Tensor(d, elem) => Packed::Tensor(vec![0; *d], false, Box::new(Packed::new(*elem)?)),
            TyKind::Var(..) => return Err(Diagnostic::bug("a parameter of an unknown type")),
        })
    }

    fn add(&mut self, v: &Value, texts: &mut IndexSet<&'static str>) -> Result<()> {
        match (self, v) {
            (Packed::Text(words), Value::Scalar(Lit::Str(text))) => {
                words.push(texts.insert_full(text).0 as u64);
                Ok(())
            }
            (Packed::Scalar(s, buffer), Value::Scalar(l)) if l.ty() == Ty::scalar(*s) => {
                buffer.add(&bits(*l).to_le_bytes()[..s.bytes() as usize]);
                Ok(())
            }
            (Packed::Tuple(parts), Value::Tuple(each)) if parts.len() == each.len() => {
                parts.iter_mut().zip(each.iter()).try_for_each(|(p, v)| p.add(v, texts))
            }
            (Packed::Tensor(dims, seen, elem), Value::Tensor(t)) if dims.len() == t.dims.len() => {
                if *seen && dims[..] != t.dims[..] || t.dims.iter().product::<usize>() != t.len() {
                    return Err(Diagnostic::user("the argument is ragged"));
                }
                *seen = true;
                dims.copy_from_slice(&t.dims);
                elem.add_all(t.elements(), texts)
            }
            _ => Err(Diagnostic::user("the argument does not fit its type")),
        }
    }

    /// Adds the elements of a tensor: numbers all at once.
    fn add_all(&mut self, elements: &Elements, texts: &mut IndexSet<&'static str>) -> Result<()> {
        match (self, elements.numbers(), elements.components()) {
            (Packed::Scalar(s, buffer), Some(all), _) if all.scalar() == *s => {
                buffer.add(all.bytes());
                Ok(())
            }
            (Packed::Tuple(parts), _, Some(each)) if parts.len() == each.len() => {
                parts.iter_mut().zip(each).try_for_each(|(p, e)| p.add_all(e, texts))
            }
            (one, ..) => elements.iter().try_for_each(|v| one.add(&v, texts)),
        }
    }

    fn words(&self, inside: bool, out: &mut Vec<u64>) {
        match self {
            Packed::Scalar(_, Buffer { words, .. }) | Packed::Text(words) if inside => out.push(words.as_ptr() as u64),
            Packed::Scalar(_, Buffer { words, .. }) | Packed::Text(words) => {
                out.push(words.first().copied().unwrap_or(0));
            }
            Packed::Tuple(parts) => parts.iter().for_each(|p| p.words(inside, out)),
            Packed::Tensor(dims, _, elem) => {
                out.extend(dims.iter().map(|n| *n as u64));
                elem.words(true, out);
            }
        }
    }
}

fn bits(l: Lit) -> u64 {
    match l {
        Lit::F64(b) => b,
        Lit::F32(b) => b.into(),
        Lit::Int(_, v) => v as u64,
        Lit::Bool(b) => b.into(),
        Lit::Str(_) => 0,
    }
}

fn literal(s: Scalar, word: u64) -> Lit {
    match s {
        Scalar::F64 => Lit::F64(word),
        Scalar::F32 => Lit::F32(word as u32),
        Scalar::Bool => Lit::Bool(word & 1 == 1),
        _ => Lit::Int(s, s.wrap(word as i64)),
    }
}

/// A value on its way out, in memory of the compiled code.
enum Unpacked {
    Word(Scalar, u64),
    Data(Scalar, *const u8),
    /// What stands for texts.
    Text(Box<Unpacked>),
    Tuple(Vec<Unpacked>),
    Tensor(Vec<usize>, Box<Unpacked>),
}

impl Unpacked {
    fn new(ty: Ty, inside: bool, words: &mut impl Iterator<Item = u64>) -> Unpacked {
        let mut next = || words.next().unwrap_or(0);
        match ty.kind() {
            TyKind::Scalar(s) if inside => Unpacked::Data(*s, next() as *const u8),
            TyKind::Scalar(s) => Unpacked::Word(*s, next()),
            TyKind::Tuple(parts) => Unpacked::Tuple(parts.iter().map(|p| Unpacked::new(*p, inside, words)).collect()),
            TyKind::Tensor(d, elem) => {
                let dims = (0..*d).map(|_| next() as usize).collect();
                Unpacked::Tensor(dims, Box::new(Unpacked::new(*elem, true, words)))
            }
            TyKind::String => Unpacked::Text(Box::new(Unpacked::new(Ty::int(), inside, words))),
            TyKind::Var(..) => Unpacked::Tuple(vec![]),
        }
    }

    fn value(&self, at: usize, texts: &IndexSet<&'static str>) -> Value {
        match self {
            Unpacked::Text(number) => {
                let number = number.value(at, texts).lit().and_then(|l| l.as_int());
                let text = number.and_then(|k| texts.get_index(usize::try_from(k).ok()?));
                Value::Scalar(Lit::Str(text.copied().unwrap_or_default()))
            }
            Unpacked::Word(s, w) => Value::Scalar(literal(*s, *w)),
            Unpacked::Data(s, from) => {
                let n = s.bytes() as usize;
                let mut word = [0u8; 8];
                // SAFETY: generated code gives a buffer of as many elements as its sizes say.
                unsafe { std::ptr::copy_nonoverlapping(from.add(at * n), word.as_mut_ptr(), n) };
                Value::Scalar(literal(*s, u64::from_le_bytes(word)))
            }
            Unpacked::Tuple(parts) => Value::tuple(parts.iter().map(|p| p.value(at, texts)).collect()),
            Unpacked::Tensor(dims, elem) => {
                let n: usize = dims.iter().product();
                Value::tensor(dims.clone(), elem.elements(at * n, n, texts))
            }
        }
    }

    /// So many values from a place on: numbers all at once.
    fn elements(&self, from: usize, n: usize, texts: &IndexSet<&'static str>) -> Elements {
        let same = match self {
            Unpacked::Data(s, _) if n == 0 => Some(Numbers::new(*s).into()),
            Unpacked::Data(s, data) => {
                let bytes = s.bytes() as usize;
                // SAFETY: generated code gives a buffer of as many elements as its sizes say.
                let all = unsafe { std::slice::from_raw_parts(data.add(from * bytes), n * bytes) };
                Some(Numbers::from_bytes(*s, all).into())
            }
            Unpacked::Tuple(parts) => Elements::tuples(parts.iter().map(|p| p.elements(from, n, texts)).collect(), n),
            Unpacked::Word(..) | Unpacked::Text(_) | Unpacked::Tensor(..) => None,
        };
        same.unwrap_or_else(|| (from..from + n).map(|k| self.value(k, texts)).collect())
    }
}
