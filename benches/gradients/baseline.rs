//! Hand-written C++ becomes functions that can be called and timed.

use crate::data::{Array, Numbers};
use libloading::Library;
use std::ffi::c_void;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// How baselines are compiled; each is measured both ways, and the faster counts.
pub const WAYS: [(&str, &[&str]); 2] = [("fast-math", &["-ffast-math"]), ("strict", &[])];

const FLAGS: &[&str] =
    &["-std=c++17", "-O3", "-march=native", "-mprefer-vector-width=512", "-fPIC", "-w", "-Wno-psabi"];

type Entry = unsafe extern "C" fn(*const i64, *const *const c_void, *const *mut c_void);

/// A function of a baseline with its arguments and the arrays that it fills.
pub struct Call {
    entry: Entry,
    sizes: Vec<i64>,
    inputs: Vec<Array>,
    outputs: Vec<Array>,
    _library: Arc<Library>,
}

/// Compiles a file of `benches/baselines/`.
///
/// `-ffast-math` is left out where objects are linked: there it would make the whole process, Daedal's
/// code included, round small numbers to zero.
pub fn compile(compiler: &str, source: &Path, flags: &[&str], folder: &Path, name: &str) -> Arc<Library> {
    let (object, library) = (folder.join(format!("{name}.o")), folder.join(format!("{name}.so")));
    let run = |arguments: &dyn Fn(&mut Command)| {
        let mut words = compiler.split_whitespace();
        let mut command = Command::new(words.next().unwrap());
        arguments(command.args(words));
        assert!(command.status().unwrap().success(), "{} does not compile", source.display());
    };
    run(&|c| {
        c.args(FLAGS).args(flags).arg("-c").arg(source).arg("-o").arg(&object);
    });
    run(&|c| {
        c.arg("-shared").arg(&object).arg("-lm").arg("-o").arg(&library);
    });
    // SAFETY: the baselines have no initializers.
    Arc::new(unsafe { Library::new(&library) }.unwrap())
}

impl Call {
    /// Prepares a call; `outputs` have the sizes and the types that the function writes.
    pub fn new(library: &Arc<Library>, name: &str, sizes: &[i64], inputs: &[Array], outputs: &[Array]) -> Call {
        // SAFETY: all functions of the baselines have this type (benches/baselines/vectors.h), and the
        // library is kept beside the entry.
        let entry = unsafe { *library.get::<Entry>(name.as_bytes()).unwrap_or_else(|e| panic!("{name}: {e}")) };
        let (inputs, outputs) = (inputs.to_vec(), outputs.to_vec());
        Call { entry, sizes: sizes.into(), inputs, outputs, _library: library.clone() }
    }

    /// Runs it.
    pub fn run(&mut self) {
        let inputs: Vec<*const c_void> = self.inputs.iter().map(|a| start(&a.numbers)).collect();
        let outputs: Vec<*mut c_void> = self.outputs.iter_mut().map(|a| start_mut(&mut a.numbers)).collect();
        // SAFETY: the arrays have the sizes that the baseline's header states.
        unsafe { (self.entry)(self.sizes.as_ptr(), inputs.as_ptr(), outputs.as_ptr()) }
    }

    /// The bytes that it writes.
    pub fn output_bytes(&self) -> u64 {
        let bytes = |a: &Array| match &a.numbers {
            Numbers::Float(v) => std::mem::size_of_val(v.as_slice()),
            Numbers::Single(v) => std::mem::size_of_val(v.as_slice()),
            Numbers::Integer(v) => std::mem::size_of_val(v.as_slice()),
        };
        self.outputs.iter().map(bytes).sum::<usize>() as u64
    }

    /// Exchanges an argument.
    pub fn set(&mut self, at: usize, input: Array) {
        self.inputs[at] = input;
    }

    /// What the last run wrote.
    pub fn outputs(&self) -> Vec<Vec<f64>> {
        self.outputs.iter().map(Array::to_floats).collect()
    }
}

/// The bytes that functions of a baseline have taken since this was asked last; they take them again then.
pub fn memory_taken(library: &Library) -> u64 {
    // SAFETY: every baseline has this function (benches/baselines/vectors.h).
    unsafe { library.get::<unsafe extern "C" fn() -> i64>(b"memory_taken").unwrap()() as u64 }
}

fn start(numbers: &Numbers) -> *const c_void {
    match numbers {
        Numbers::Float(v) => v.as_ptr().cast(),
        Numbers::Single(v) => v.as_ptr().cast(),
        Numbers::Integer(v) => v.as_ptr().cast(),
    }
}

fn start_mut(numbers: &mut Numbers) -> *mut c_void {
    match numbers {
        Numbers::Float(v) => v.as_mut_ptr().cast(),
        Numbers::Single(v) => v.as_mut_ptr().cast(),
        Numbers::Integer(v) => v.as_mut_ptr().cast(),
    }
}
