//! Calls compiled functions: values become words and flat buffers, and back.

use super::measure::{Timing, repeat};
use super::toolchain::Toolchain;
use crate::codegen;
use crate::diag::{Diagnostic, Result, Source};
use crate::eval::Value;
use crate::ir::{Def, Lit, Program, Scalar, Ty, TyKind};
use crate::nest::{self, Nest, Site};
use libloading::Library;
use std::sync::{Arc, Mutex};

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
}

type Entry = unsafe extern "C" fn(*mut Call) -> i32;

/// A loaded object and its memory, which one call at a time may use.
struct Loaded {
    library: Library,
    memory: Mutex<Space>,
}

struct Space {
    base: *mut u8,
    bytes: u64,
}

// SAFETY: the memory is used only under the lock that owns this value.
unsafe impl Send for Space {}

impl Drop for Loaded {
    fn drop(&mut self) {
        let space = self.memory.get_mut().unwrap_or_else(|e| e.into_inner());
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
    params: Vec<Ty>,
    ret: Ty,
    outputs: usize,
    sites: Vec<Site>,
    source: Arc<Source>,
    recursive: bool,
    /// Enough stack for the function's variables.
    frame: usize,
}

impl Native {
    /// Compiles a definition.
    ///
    /// # Errors
    /// What lowering refuses, and what the toolchain says.
    pub fn compile(program: &Program, def: &Def, tools: &Toolchain) -> Result<Native> {
        match Native::compile_all(program, &[def], tools)?.pop() {
            Some(one) => one,
            None => Err(Diagnostic::bug("nothing was compiled")),
        }
    }

    /// Compiles several definitions as one object; one result each, in order.
    ///
    /// # Errors
    /// What the toolchain says; refusals of lowering are the inner results.
    pub fn compile_all(program: &Program, defs: &[&Def], tools: &Toolchain) -> Result<Vec<Result<Native>>> {
        let nests: Vec<Result<Nest>> = defs.iter().map(|d| checked(program, d)).collect();
        let good: Vec<&Nest> = nests.iter().filter_map(|n| n.as_ref().ok()).collect();
        if good.is_empty() {
            return Ok(nests.into_iter().map(|n| n.and_then(|_| Err(Diagnostic::bug("no nest")))).collect());
        }
        let text: Arc<str> = codegen::unit(&good).into();
        let loaded = Arc::new(load(&tools.object(&text)?)?);
        let mut k = 0;
        let mut out = vec![];
        for nest in nests {
            out.push(match nest {
                Ok(nest) => {
                    k += 1;
                    Native::entry(&loaded, &text, nest, k - 1, &program.source)
                }
                Err(d) => Err(d),
            });
        }
        Ok(out)
    }

    fn entry(loaded: &Arc<Loaded>, text: &Arc<str>, nest: Nest, k: usize, source: &Arc<Source>) -> Result<Native> {
        let name = codegen::entry_name(k);
        // SAFETY: generated code defines the symbol with this type, and the library stays loaded.
        let entry = unsafe { loaded.library.get::<Entry>(name.as_bytes()).map(|s| *s) };
        let entry = entry.map_err(|e| Diagnostic::bug("a compiled object lacks its entry").note(e.to_string()))?;
        Ok(Native {
            loaded: loaded.clone(),
            entry,
            text: text.clone(),
            outputs: nest.entry.results.len(),
            recursive: !nest.funcs.is_empty(),
            frame: STACK_LEFT + 32 * nest.entry.vars.len(),
            params: nest.params,
            ret: nest.ret,
            sites: nest.sites,
            source: source.clone(),
        })
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

    fn with(&self, args: &[Value], work: impl FnOnce(&mut Run) -> Result<()>) -> Result<()> {
        if args.len() != self.params.len() {
            let (want, have) = (self.params.len(), args.len());
            return Err(Diagnostic::user(format!("the function takes {want} arguments, not {have}")));
        }
        let mut packed = vec![];
        for (v, ty) in args.iter().zip(&self.params) {
            let mut p = Packed::new(*ty)?;
            p.add(v)?;
            packed.push(p);
        }
        let mut input = vec![];
        packed.iter().for_each(|p| p.words(false, &mut input));
        let space = self.loaded.memory.lock().unwrap_or_else(|e| e.into_inner());
        let mut run = Run { native: self, input, output: vec![0; self.outputs], space: &space, peak: 0 };
        let done = if self.recursive {
            stacker::grow(STACK, || work(&mut run))
        } else {
            stacker::maybe_grow(self.frame, self.frame * 2, || work(&mut run))
        };
        done.map_err(|d| d.within(&self.source))
    }
}

/// Lowers a definition; while developing, with the verifier after it.
fn checked<'a>(program: &'a Program, def: &'a Def) -> Result<Nest> {
    let nest = nest::lower(program, def)?;
    if cfg!(debug_assertions) {
        nest::verify(&nest)?;
    }
    Ok(nest)
}

fn load(path: &std::path::Path) -> Result<Loaded> {
    let bad = |e: libloading::Error| Diagnostic::bug("a compiled object cannot be loaded").note(e.to_string());
    // SAFETY: the object is generated code without initializers.
    let library = unsafe { Library::new(path) }.map_err(bad)?;
    let mut space = None;
    {
        // SAFETY: the symbol has this type in the runtime.
        let reserve = unsafe { library.get::<unsafe extern "C" fn(u64) -> *mut u8>(b"ks_reserve") }.map_err(bad)?;
        let mut bytes = SPACE.min(machine_memory());
        while space.is_none() && bytes >= LEAST_SPACE {
            // SAFETY: it only asks the system for address space.
            let base = unsafe { reserve(bytes) };
            if base.is_null() {
                bytes = (bytes / 2) & !4095;
            } else {
                space = Some(Space { base, bytes });
            }
        }
    }
    match space {
        Some(space) => Ok(Loaded { library, memory: Mutex::new(space) }),
        None => Err(Diagnostic::limit("no address space for tensors is to be had")),
    }
}

/// Most of the machine's memory, or of what this process may have: who takes all is killed.
fn machine_memory() -> u64 {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let total = read("/proc/meminfo")
        .lines()
        .find_map(|l| l.strip_prefix("MemTotal:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok())
        .map_or(SPACE, |kb| kb * 1024);
    let groups = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let most = groups.iter().filter_map(|p| read(p).trim().parse::<u64>().ok()).fold(total, u64::min);
    (most / 4 * 3) & !4095
}

/// A prepared call.
struct Run<'a> {
    native: &'a Native,
    input: Vec<u64>,
    output: Vec<u64>,
    space: &'a Space,
    peak: u64,
}

impl Run<'_> {
    fn once(&mut self) -> Result<()> {
        let stack = if self.native.recursive { STACK - STACK_LEFT } else { STACK_LEFT };
        let mut call = Call {
            input: self.input.as_ptr(),
            output: self.output.as_mut_ptr(),
            base: self.space.base,
            capacity: self.space.bytes,
            stack: stack as u64,
            peak: 0,
            failure: Failure { site: 0, count: 0, values: [0; 32] },
        };
        // SAFETY: generated code reads as many words as there are parameters and writes as many as
        // there are results; it checks every access to the buffers behind them.
        let failed = unsafe { (self.native.entry)(&mut call) } != 0;
        self.peak = call.peak;
        if !failed {
            return Ok(());
        }
        let values = &call.failure.values[..call.failure.count.clamp(0, 32) as usize];
        Err(match (call.failure.site, usize::try_from(call.failure.site).ok().and_then(|k| self.native.sites.get(k))) {
            (_, Some(site)) => site.diagnostic(values),
            (-1, None) => Diagnostic::limit("the tensors do not fit in memory"),
            (-2, None) => Diagnostic::limit("recursion is too deep for the stack of compiled code"),
            _ => Diagnostic::bug("compiled code failed at an unknown place"),
        })
    }

    /// The result of the last run; it lies in memory that the next run uses again.
    fn value(&self) -> Value {
        let mut words = self.output.iter().copied();
        Unpacked::new(self.native.ret, false, &mut words).value(0)
    }
}

/// A value on its way in: one buffer for each scalar component.
enum Packed {
    Scalar(Scalar, Vec<u64>, usize),
    Tuple(Vec<Packed>),
    Tensor(Vec<usize>, bool, Box<Packed>),
}

fn width(s: Scalar) -> usize {
    match s {
        Scalar::F64 | Scalar::I64 => 8,
        Scalar::F32 | Scalar::I32 | Scalar::U32 => 4,
        Scalar::I16 | Scalar::U16 => 2,
        Scalar::I8 | Scalar::U8 | Scalar::Bool => 1,
    }
}

impl Packed {
    fn new(ty: Ty) -> Result<Packed> {
        Ok(match ty.kind() {
            TyKind::Scalar(s) => Packed::Scalar(*s, vec![], 0),
            TyKind::Tuple(parts) => Packed::Tuple(parts.iter().map(|p| Packed::new(*p)).collect::<Result<_>>()?),
            TyKind::Tensor(d, elem) => Packed::Tensor(vec![0; *d], false, Box::new(Packed::new(*elem)?)),
            TyKind::String | TyKind::Var(..) => return Err(Diagnostic::limit("text is not compiled")),
        })
    }

    fn add(&mut self, v: &Value) -> Result<()> {
        match (self, v) {
            (Packed::Scalar(s, words, count), Value::Scalar(l)) if l.ty() == Ty::scalar(*s) => {
                let (bits, each) = (bits(*l), 8 / width(*s));
                let shift = *count % each * (64 / each);
                if shift == 0 {
                    words.push(0);
                }
                let mask = if each == 1 { u64::MAX } else { (1 << (64 / each)) - 1 };
                if let Some(last) = words.last_mut() {
                    *last |= (bits & mask) << shift;
                }
                *count += 1;
                Ok(())
            }
            (Packed::Tuple(parts), Value::Tuple(each)) if parts.len() == each.len() => {
                parts.iter_mut().zip(each.iter()).try_for_each(|(p, v)| p.add(v))
            }
            (Packed::Tensor(dims, seen, elem), Value::Tensor(t)) if dims.len() == t.dims.len() => {
                if *seen && *dims != t.dims || t.dims.iter().product::<usize>() != t.data.len() {
                    return Err(Diagnostic::user("the argument is ragged"));
                }
                *seen = true;
                dims.clone_from(&t.dims);
                t.data.iter().try_for_each(|v| elem.add(v))
            }
            _ => Err(Diagnostic::user("the argument does not fit its type")),
        }
    }

    fn words(&self, inside: bool, out: &mut Vec<u64>) {
        match self {
            Packed::Scalar(_, words, _) if inside => out.push(words.as_ptr() as u64),
            Packed::Scalar(_, words, _) => out.push(words.first().copied().unwrap_or(0)),
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
            TyKind::String | TyKind::Var(..) => Unpacked::Tuple(vec![]),
        }
    }

    fn value(&self, at: usize) -> Value {
        match self {
            Unpacked::Word(s, w) => Value::Scalar(literal(*s, *w)),
            Unpacked::Data(s, from) => {
                let n = width(*s);
                let mut word = [0u8; 8];
                // SAFETY: generated code gives a buffer of as many elements as its sizes say.
                unsafe { std::ptr::copy_nonoverlapping(from.add(at * n), word.as_mut_ptr(), n) };
                Value::Scalar(literal(*s, u64::from_le_bytes(word)))
            }
            Unpacked::Tuple(parts) => Value::tuple(parts.iter().map(|p| p.value(at)).collect()),
            Unpacked::Tensor(dims, elem) => {
                let n: usize = dims.iter().product();
                Value::tensor(dims.clone(), (0..n).map(|k| elem.value(at * n + k)).collect())
            }
        }
    }
}
