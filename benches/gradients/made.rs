//! What Daedal makes of an objective: its code and that of its value and gradient, as it stands and under the default
//! schedule, compared with the hand-written derivative before anything is timed.

use crate::check;
use crate::workloads::{Case, Meaning, Workload};
use daedal::ad::jacobian::{Layout, jacobian};
use daedal::ad::{self, Mode, Wanted};
use daedal::eval::Value;
use daedal::ir::{Def, Program};
use daedal::machine::Machine;
use daedal::pipeline::{self, Options, around, native};
use daedal::run::{Native, Toolchain};
use daedal::tune::example;
use daedal::{schedule, stage};
use libloading::Library;
use std::path::Path;
use std::sync::Arc;

/// How a schedule runs: whether only values over the reals stay, and on how many threads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct How {
    pub real: bool,
    pub threads: usize,
}

/// Code with its arguments: one turn gives the seconds of its calls.
pub struct Made {
    native: Native,
    arguments: Vec<Value>,
    /// The bytes that a call takes beside its arguments, its results included.
    pub bytes: u64,
}

impl Made {
    fn new(native: Native, arguments: Vec<Value>) -> Made {
        let bytes = native.time(&arguments, 1).unwrap_or_else(|d| panic!("{d}")).peak_bytes;
        Made { native, arguments, bytes }
    }

    /// The least and the middle time of a few calls.
    pub fn turn(&self) -> Vec<f64> {
        let timed = self.native.time(&self.arguments, 3).unwrap_or_else(|d| panic!("{d}"));
        vec![timed.min_seconds, timed.median_seconds]
    }
}

/// A definition compiled, under the default schedule for the sizes of the arguments if it is asked for. Nothing where it is
/// not staged.
fn compiled(program: &Program, def: &Def, how: Option<How>, arguments: &[Value], tools: &Toolchain) -> Option<Native> {
    let Some(how) = how else {
        return Some(native::compile(program, def, tools).unwrap_or_else(|d| panic!("{d}")).with_threads(1));
    };
    let graph = stage::extract(program, def);
    let mut graph = graph.map_err(|u| println!("{} has no schedule: {}", def.name(), u.reason)).ok()?;
    graph.real = how.real;
    let machine = Machine { threads: how.threads, ..Machine::host() };
    let schedule = schedule::default_for(graph, &example::incoming(def, arguments), &machine);
    let made = native::compile_scheduled(program, def, &schedule, tools);
    Some(made.unwrap_or_else(|d| panic!("{d}")).with_threads(how.threads))
}

/// The objective as Daedal optimizes and compiles it.
pub fn primal(root: &Path, w: &Workload, tools: &Toolchain, how: Option<How>) -> Option<Made> {
    let program = check::program(root, w.timed());
    let options = Options { defs: vec![w.timed().def.into()], ..Options::standard() };
    let optimized = pipeline::optimize(&program, &options).unwrap_or_else(|d| panic!("{d}")).program;
    let def = check::definition(&optimized, w.timed());
    let arguments = check::arguments(def, &w.large);
    Some(Made::new(compiled(&optimized, def, how, &arguments, tools)?, arguments))
}

/// Value and gradient as Daedal derives, optimizes and compiles them, by the inputs that `w.meaning`
/// names; of many numbers, the whole Jacobian. The result is compared with that of the first
/// hand-written one.
pub struct Gradient {
    program: Program,
    name: String,
}

impl Gradient {
    /// Derives and optimizes it, as the command line does.
    pub fn new(root: &Path, w: &Workload) -> Gradient {
        let inputs = check::inputs_of(w.meaning);
        let program = around::before(&check::program(root, w.timed())).unwrap_or_else(|d| panic!("{d}"));
        let def = check::definition(&program, w.timed());
        let wrt = (0..def.params.len()).map(|k| inputs.contains(&k)).collect();
        let wanted = Wanted { fun: def.fun, mode: Mode::Reverse, wrt, value: true, checkpoint: false };
        let whole = |layout| jacobian(&program, &wanted, layout).map(|made| (made.program, made.fun));
        let made = match w.meaning {
            Meaning::Gradient(_) => ad::derive(&program, &wanted),
            Meaning::Observations => whole(Layout::Rows),
            Meaning::Angles => whole(Layout::Columns),
        };
        let (derived, fun) = made.unwrap_or_else(|d| panic!("{d}"));
        let name = fun.sig().name.clone();
        let derived = around::after(&derived, &|d: &Def| d.name() == name).unwrap_or_else(|d| panic!("{d}"));
        let options = Options { defs: vec![name.clone()], ..Options::standard() };
        let program = pipeline::optimize(&derived, &options).unwrap_or_else(|d| panic!("{d}")).program;
        Gradient { program, name }
    }

    /// Its code, checked at small sizes.
    pub fn made(&self, w: &Workload, tools: &Toolchain, library: &Arc<Library>, how: Option<How>) -> Option<Made> {
        let def = self.program.defs.values().find(|d| d.name() == self.name).unwrap();
        let with_adjoint = |case: &Case| {
            let mut arguments = check::arguments(def, case);
            if let Meaning::Gradient(_) = w.meaning {
                arguments.push(check::one(def.params[def.params.len() - 1].ty));
            }
            arguments
        };
        let entry = w.precise.unwrap_or(w.entries[0]);
        for case in &w.small {
            let arguments = with_adjoint(case);
            let native = compiled(&self.program, def, how, &arguments, tools)?;
            let made = native.call(&arguments).unwrap_or_else(|d| panic!("{d}"));
            let tolerance = if w.single.is_some() { 1e-3 } else { 1e-9 };
            check::gradient(library, entry, case, &made, tolerance);
        }
        let arguments = with_adjoint(&w.large);
        Some(Made::new(compiled(&self.program, def, how, &arguments, tools)?, arguments))
    }
}
