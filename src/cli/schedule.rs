//! `daedal schedule`: a definition becomes stages, and the steps of a file say how their loops run.

use super::case::Case;
use super::how::{How, named};
use super::optimize::Float;
use super::picture::Picture;
use super::search::Search;
use super::{World, input};
use crate::diag::Result;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

/// Show the stages and loops of a definition, as a schedule runs them
///
/// A schedule has one step a line, such as `split product j 64` or `vectorize product ji`; docs/schedules.md lists them.
/// But for `contract` and `reassociate`, which `--float real` allows, none changes a bit of a result. With sizes or
/// arguments it is shown as it is compiled for these. With `--mode` a schedule is searched, with `--complete` what a file
/// leaves open.
#[derive(Args, Debug)]
pub struct Schedule {
    #[command(flatten)]
    case: Case,
    /// The schedule, or `default`; without one, the stages are computed where the program makes them
    #[arg(long, value_name = "FILE")]
    apply: Option<String>,
    /// What the schedule keeps; `real` lets it contract products that are added and reassociate sums
    #[arg(long, value_enum, default_value = "exact")]
    float: Float,
    /// Print the steps as they stand in a file, not the loops
    #[arg(long, conflicts_with = "json")]
    steps: bool,
    /// Print one object
    #[arg(long)]
    json: bool,
    /// Draw the stages, loops and memory: an SVG
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
    #[command(flatten)]
    search: Search,
}

impl Schedule {
    /// Carries it out.
    pub fn run(&self, world: &mut World<'_>) -> Result<()> {
        let program = input::program_for(&self.case.file, &self.case.def)?;
        let def = input::definition(&program, &self.case.def)?;
        let picture = self.picture.as_deref().map(Picture::at).transpose()?;
        let apply = self.apply.as_deref();
        if self.search.wanted(apply)? {
            return self.search.run(
                (&self.case, apply),
                (&program, def),
                self.float,
                (self.json, picture.as_ref()),
                world,
            );
        }
        let known = self.case.incoming(&program, def)?;
        let how = How { sizes: known.as_deref(), ..How::general(self.apply.as_deref(), self.float) };
        let made = match named(&program, def, &how)? {
            Some(made) => made,
            None => how.empty(&program, def)?,
        };
        if let Some(picture) = picture {
            picture.draw(&made, known.as_deref())?;
        }
        if self.steps {
            let each: Vec<String> = made.steps.iter().map(ToString::to_string).collect();
            return world.say(&each.join("\n"));
        }
        if self.json {
            let stages = made.graph.stages.iter().map(|s| s.name.as_str());
            let object = json!({ "def": def.name(), "stages": stages.collect::<Vec<_>>(), "loops": made.to_string(),
                "steps": made.steps.iter().map(ToString::to_string).collect::<Vec<_>>() });
            return world.say(&object.to_string());
        }
        world.say(made.to_string().trim_end())
    }
}
