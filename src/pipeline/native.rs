//! A definition becomes a nest and native code: every pass that runs over nests is named here, in order.

use crate::codegen::Unit;
use crate::diag::{Diagnostic, Result};
use crate::eval::{Tally, Value};
use crate::ir::{Def, Program};
use crate::lower::lower;
use crate::machine::Machine;
use crate::nest::{self, Func, Nest, verify};
use crate::run::{Native, Toolchain};
use crate::schedule::passes::{
    aligned, choose, clamp, dead, in_place, interleave, name, registers, share, split, vectorize,
};
use crate::schedule::{self, Schedule};

/// A pass from nest to nest: it keeps every bit of the results, and the first failure.
pub struct Pass {
    /// Its name.
    pub name: &'static str,
    /// What it does to one function.
    pub run: fn(&mut Func, &Machine),
}

/// The passes, in order.
pub const PASSES: &[Pass] = &[
    Pass { name: "name costly operations", run: |f, _| name::name(f) },
    Pass { name: "value numbering", run: |f, _| share::share(f) },
    Pass { name: "tables in place", run: |f, _| in_place::share_memory(f) },
    Pass { name: "loop splitting", run: |f, _| split::split(f) },
    Pass { name: "dead code", run: |f, _| dead::remove(f) },
    Pass { name: "choice of vector loops", run: |f, m| choose::choose(f, m.vector_bytes) },
    Pass { name: "vectorization", run: |f, _| vectorize::vectorize(f) },
];

/// The nest of a definition as lowering makes it.
///
/// # Errors
/// What lowering refuses.
pub fn reference(program: &Program, def: &Def) -> Result<Nest> {
    let nest = lower(program, def)?;
    checked("lowering", nest)
}

/// The nest of a definition after all passes.
///
/// # Errors
/// What lowering refuses; a bug that names the pass whose result the verifier refuses.
pub fn nest(program: &Program, def: &Def, machine: &Machine) -> Result<Nest> {
    PASSES.iter().try_fold(reference(program, def)?, |nest, pass| apply(pass, nest, machine))
}

/// One pass over all functions of a nest.
///
/// # Errors
/// A bug that names the pass, where the verifier refuses its result.
pub fn apply(pass: &Pass, mut nest: Nest, machine: &Machine) -> Result<Nest> {
    nest.each_func(|f| (pass.run)(f, machine));
    checked(pass.name, nest)
}

/// While developing, the verifier looks at every step.
fn checked(by: &str, nest: Nest) -> Result<Nest> {
    if cfg!(debug_assertions) {
        verify(&nest).map_err(|d| Diagnostic::bug(format!("after {by}: {}", d.message)))?;
    }
    Ok(nest)
}

/// The passes over the nest of a schedule, in order: the schedule has decided the rest.
pub const SCHEDULED: &[Pass] = &[
    Pass { name: "name costly operations", run: |f, _| name::name(f) },
    Pass { name: "value numbering", run: |f, _| share::share(f) },
    Pass { name: "dead code", run: |f, _| dead::remove(f) },
    Pass { name: "loops without clamps", run: |f, _| clamp::clamp(f) },
    // What clamps alone asked for would say how many lanes there are.
    Pass { name: "dead code of clamps", run: |f, _| dead::remove(f) },
    Pass { name: "choice of the remaining vector loops", run: |f, m| choose::complete(f, m.vector_bytes) },
    Pass { name: "quotients of vectors", run: |f, _| aligned::align(f) },
    Pass { name: "vectorization", run: |f, _| vectorize::vectorize(f) },
    Pass { name: "registers", run: |f, _| registers::promote(f) },
    Pass { name: "name costly lanes", run: |f, _| name::name_lanes(f) },
    Pass { name: "value numbering of vectors", run: |f, _| share::share(f) },
    Pass { name: "interleaving of chains", run: |f, _| interleave::interleave(f) },
];

/// The nest of a definition by a schedule, after all passes.
///
/// # Errors
/// A bug, where the schedule cannot be lowered or the verifier refuses the result.
pub fn scheduled_nest(def: &Def, schedule: &Schedule, machine: &Machine) -> Result<Nest> {
    let nest = checked("lowering of a schedule", schedule::lower(schedule, def)?)?;
    SCHEDULED.iter().try_fold(nest, |nest, pass| apply(pass, nest, machine))
}

/// Compiles a definition by a schedule. Where what the schedule relies on does not hold, the reference runs: it is compiled
/// in the first call that needs it.
///
/// # Errors
/// A bug, where the schedule cannot be lowered, and what the toolchain says.
pub fn compile_scheduled(program: &Program, def: &Def, schedule: &Schedule, tools: &Toolchain) -> Result<Native> {
    let made = scheduled_nest(def, schedule, &Machine::host())?;
    let scheduled = Native::load(Unit::new(&[&made]), &program.source, tools)?.pop();
    let (program, def, tools) = (program.clone(), def.clone(), tools.clone());
    let reference = move || compile(&program, &def, &tools);
    match scheduled {
        Some(scheduled) => Ok(scheduled.with_reference(reference)),
        None => Err(Diagnostic::bug("nothing was compiled")),
    }
}

/// Compiles a definition by a schedule, without what runs where that is of no use: there it fails.
///
/// # Errors
/// A bug in lowering, and what the toolchain says.
pub fn compile_alone(program: &Program, def: &Def, schedule: &Schedule, tools: &Toolchain) -> Result<Native> {
    let nest = scheduled_nest(def, schedule, &Machine::host())?;
    let made = Native::load(Unit::new(&[&nest]), &program.source, tools)?.pop();
    made.ok_or_else(|| Diagnostic::bug("a function was not compiled"))
}

/// What native code does.
pub struct Counted {
    /// The value.
    pub value: Value,
    /// What was done for it.
    pub tally: Tally,
    /// Whether the loops of the schedule did it, not the reference.
    pub scheduled: bool,
}

/// What native code of a definition does at arguments, under a schedule where there is one: its loops are interpreted, and
/// what they print goes to the end of a text.
///
/// # Errors
/// What lowering refuses, and the failures of the program.
pub fn counted(
    program: &Program,
    def: &Def,
    schedule: Option<&Schedule>,
    (args, machine): (&[Value], &Machine),
    printed: &mut String,
) -> Result<Counted> {
    let mut run = |nest: Nest, scheduled: bool| {
        let before = printed.len();
        let done = nest::count(&nest, args, printed).map_err(|d| d.within(&program.source))?;
        if done.is_none() {
            printed.truncate(before);
        }
        Ok::<_, Box<Diagnostic>>(done.map(|(value, tally)| Counted { value, tally, scheduled }))
    };
    if let Some(schedule) = schedule
        && let Some(done) = run(scheduled_nest(def, schedule, machine)?, true)?
    {
        return Ok(done);
    }
    let done = run(nest(program, def, machine)?, false)?;
    done.ok_or_else(|| Diagnostic::bug("the reference nest gives up"))
}

/// Compiles a definition for this machine.
///
/// # Errors
/// What lowering refuses, and what the toolchain says.
pub fn compile(program: &Program, def: &Def, tools: &Toolchain) -> Result<Native> {
    match compile_all(program, &[def], tools)?.pop() {
        Some(one) => one,
        None => Err(Diagnostic::bug("nothing was compiled")),
    }
}

/// Compiles several definitions as one object; one result each, in order.
///
/// # Errors
/// What the toolchain says; refusals of lowering are the inner results.
pub fn compile_all(program: &Program, defs: &[&Def], tools: &Toolchain) -> Result<Vec<Result<Native>>> {
    let machine = Machine::host();
    let nests: Vec<Result<Nest>> = defs.iter().map(|d| nest(program, d, &machine)).collect();
    let good: Vec<&Nest> = nests.iter().filter_map(|n| n.as_ref().ok()).collect();
    let compiled = if good.is_empty() { vec![] } else { Native::load(Unit::new(&good), &program.source, tools)? };
    let mut compiled = compiled.into_iter();
    let lost = || Err(Diagnostic::bug("a function was not compiled"));
    Ok(nests.into_iter().map(|n| n.and_then(|_| compiled.next().map_or_else(lost, Ok))).collect())
}
