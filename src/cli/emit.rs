//! `daedal emit`: a program at one of its levels becomes text.

use super::case;
use super::how::How;
use super::optimize::{self, Cost, Float};
use super::{World, input, lowered};
use crate::diag::Result;
use crate::ir::{Def, Program, print};
use crate::tune::example;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Print a program, or one definition of it, at a level of its way to native code
#[derive(Args, Debug)]
pub struct Emit {
    /// The program
    file: PathBuf,
    /// One definition; all of them where none is given
    def: Option<String>,
    /// The level
    #[arg(long, value_enum, default_value_t)]
    target: Target,
    /// Optimize before, as `daedal optimize` does
    #[arg(long)]
    optimize: bool,
    /// What the optimizer makes small
    #[arg(long, value_enum, requires = "optimize", default_value_t)]
    cost: Cost,
    /// A file of further rules for the optimizer; may be given more than once
    #[arg(long, value_name = "FILE", requires = "optimize")]
    rules: Vec<PathBuf>,
    /// A schedule for the loops and the C++ (see `daedal schedule`), `default` or `none`
    #[arg(long, value_name = "FILE")]
    schedule: Option<String>,
    /// A named size or integer parameter for which the schedule is compiled, or `x.1`, the first size of a parameter `x`
    /// without names, 256 where nothing is said of the others; may be given more than once
    #[arg(long = "size", value_name = "NAME=N", value_parser = optimize::size, requires = "schedule")]
    sizes: Vec<(String, u64)>,
    /// What a schedule keeps; `real` lets it contract products that are added and reassociate sums
    #[arg(long, value_enum, default_value = "exact")]
    float: Float,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, ValueEnum)]
enum Target {
    /// The language itself, in its plain spelling; with a schedule as what changes bits leaves it
    #[default]
    Ks,
    /// What is computed: stages over their dimensions; with a schedule as what changes bits leaves them
    Stages,
    /// Loops
    Nest,
    /// C++
    Cpp,
}

impl Emit {
    /// Carries it out.
    pub fn run(&self, world: &mut World<'_>) -> Result<()> {
        let mut program = input::program(&self.file)?;
        if let Some(name) = &self.def {
            // An unknown name is told before the long work.
            input::definition(&program, name)?;
        }
        if self.optimize {
            program = lowered::optimized(&program, self.cost.model(), &self.rules)?;
        }
        let def = self.def.as_ref().map(|name| input::definition(&program, name)).transpose()?;
        let sizes = def.map(|def| self.sizes(&program, def)).transpose()?.flatten();
        let how = How { sizes: sizes.as_deref(), ..How::general(self.schedule.as_deref(), self.float) };
        let text = match (def, self.target) {
            (Some(def), Target::Ks) if self.schedule.is_some() => {
                print::program(&lowered::rewritten(&program, def, &how)?)
            }
            (None, Target::Ks) if self.schedule.is_some() => return Err(lowered::one_only("ks")),
            (Some(def), Target::Ks) => print::def(&program.terms, def),
            (None, Target::Ks) => print::program(&program),
            (Some(def), Target::Stages) => lowered::stages(&program, def, &how)?,
            (Some(def), Target::Nest) => lowered::nest(&program, def, &how)?.to_string(),
            (Some(def), Target::Cpp) => lowered::cpp(&program, def, &how)?,
            (None, Target::Stages) => return Err(lowered::one_only("stages")),
            (None, Target::Nest) => return Err(lowered::one_only("nest")),
            (None, Target::Cpp) => return Err(lowered::one_only("cpp")),
        };
        world.say(text.trim_end())
    }

    /// The whole numbers that come in, where they are known.
    fn sizes(&self, program: &Program, def: &Def) -> Result<Option<Vec<f64>>> {
        if self.sizes.is_empty() {
            return Ok(None);
        }
        case::made_up(program, def, &self.sizes, 0).map(|args| Some(example::incoming(def, &args)))
    }
}
