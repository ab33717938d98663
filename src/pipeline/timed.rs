//! A scheduled definition becomes native code with timers around the loops of its stages, and calls of that become times.
//!
//! It must not know how schedules are found.

use super::native::scheduled_nest;
use crate::codegen::Unit;
use crate::diag::{Diagnostic, Result};
use crate::eval::Value;
use crate::ir::{Def, Program};
use crate::machine::Machine;
use crate::nest::{Stmt, Var};
use crate::run::{Native, Toolchain};
use crate::schedule::Schedule;
use crate::tune::owner::Owners;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What was measured of a stage.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StageTime {
    /// Its name.
    pub stage: String,
    /// Seconds of a call on all threads together, without those of other stages in its loops.
    pub seconds: f64,
    /// How often its loops begin in a call.
    pub times: f64,
}

/// Native code with timers.
pub struct Timed {
    native: Native,
    stages: Vec<String>,
}

/// Compiles a definition by a schedule, without what runs where that is of no use, and with timers.
///
/// # Errors
/// A bug in lowering, and what the toolchain says.
pub fn compile(program: &Program, def: &Def, schedule: &Schedule, tools: &Toolchain) -> Result<Timed> {
    let nest = scheduled_nest(def, schedule, &Machine::host())?;
    let owners = Owners::new(&nest.entry, &schedule.graph);
    let stages: Vec<String> = schedule.graph.stages.iter().map(|s| s.name.clone()).collect();
    let mut loops = BTreeMap::new();
    mark(&nest.entry.body, stages.len(), &owners, &mut loops);
    let unit = Unit::timed(&nest, &loops, stages.len());
    let native = Native::load(unit, &program.source, tools)?.pop();
    native.map(|native| Timed { native, stages }).ok_or_else(|| Diagnostic::bug("a function was not compiled"))
}

/// Finds the outermost loops of each stage in those of others.
fn mark(stmts: &[Stmt], around: usize, owners: &Owners, out: &mut BTreeMap<Var, usize>) {
    for (s, stage) in stmts.iter().zip(owners.each(stmts, around)) {
        match s {
            Stmt::For(l) => {
                if stage != around {
                    out.insert(l.var, stage);
                }
                mark(&l.body, stage, owners, out);
            }
            _ => s.blocks().into_iter().for_each(|b| mark(b, around, owners, out)),
        }
    }
}

impl Timed {
    /// The same code on so many threads at most.
    #[must_use]
    pub fn with_threads(self, threads: usize) -> Timed {
        Timed { native: self.native.with_threads(threads), ..self }
    }

    /// Calls the code so many times: the least seconds of a call, and those of its stages in the mean.
    ///
    /// # Errors
    /// The failures of the language; memory that does not suffice.
    pub fn measure(&self, args: &[Value], calls: usize) -> Result<(f64, Vec<StageTime>)> {
        self.native.call(args)?;
        self.times()?;
        let timed = self.native.time(args, calls.max(1))?;
        // One call warms up.
        let n = calls.max(1) as f64 + 1.0;
        let one = |(stage, (seconds, times)): (&String, (f64, f64))| StageTime {
            stage: stage.clone(),
            seconds: seconds / n,
            times: times / n,
        };
        Ok((timed.min_seconds, self.stages.iter().zip(self.times()?).map(one).collect()))
    }

    fn times(&self) -> Result<Vec<(f64, f64)>> {
        let times = self.native.stage_times(self.stages.len());
        times.ok_or_else(|| Diagnostic::bug("compiled code has no timers"))
    }
}
