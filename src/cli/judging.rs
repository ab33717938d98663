//! The searches of schedules by model, and what may judge them: what searches are told by words.

use crate::diag::{Diagnostic, Result};
use crate::tune::Model;
use crate::tune::explore::{Settings, Way};
use crate::tune::mlp::weights;
use crate::tune::toy;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// How schedules are judged that are not measured.
#[derive(Args, Debug)]
pub struct Judging {
    /// What is searched: places, tiles and blocks of stages, or the schedule trees of the published toy autoscheduler, by its
    /// own cost and a beam of 300
    #[arg(long, value_enum, value_name = "SPACE")]
    space: Option<Space>,
    /// The search by model; `beam` where nothing is said
    #[arg(long, value_enum, value_name = "NAME")]
    search: Option<Name>,
    /// What says how long schedules take: weights of counted work, or a network that was trained on random pipelines
    #[arg(long, value_enum, value_name = "MODEL")]
    model: Option<Costs>,
    /// The weights of the network, as `daedal train cost` writes them
    #[arg(long, value_name = "W.safetensors")]
    weights: Option<PathBuf>,
    /// How many states a beam keeps: 30, of schedule trees 300, where nothing is said; a fifth of that where each schedule
    /// has to be lowered to be judged
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    beam: Option<u16>,
    /// Schedules that are judged at most in the search: 40000, of schedule trees 1000000, where nothing is said; a tenth of
    /// that where each has to be lowered
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    evaluations: Option<u32>,
}

/// Names of the spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Space {
    /// Decisions about stages
    Tree,
    /// Trees of the toy autoscheduler
    Toy,
}

/// States that a beam of decisions keeps.
pub const BEAM: usize = 30;
/// Schedules that are estimated.
pub const EVALUATIONS: usize = 40_000;

/// Names of the searches.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Name {
    /// Always the best next decision
    Greedy,
    /// Beam search
    Beam,
    /// Memory-bounded best-first beam search
    Mb2fbs,
    /// Monte-Carlo tree search
    Mcts,
    /// Random decisions
    Random,
}

/// Names of the models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Costs {
    /// Weights of counted work, stated and fitted
    Linear,
    /// A network
    Mlp,
}

impl Judging {
    /// The first word that says something of searches and models.
    pub fn said(&self) -> Option<&'static str> {
        let all = [
            (self.space.is_some(), "--space"),
            (self.search.is_some(), "--search"),
            (self.model.is_some(), "--model"),
            (self.weights.is_some(), "--weights"),
        ];
        all.into_iter().find(|(said, _)| *said).map(|(_, name)| name)
    }

    /// Whether the trees of the published toy autoscheduler are asked for.
    pub fn is_toy(&self) -> bool {
        self.space == Some(Space::Toy)
    }

    /// The model that is asked for.
    ///
    /// # Errors
    /// It has no weights, or the file of weights is none.
    pub fn model(&self) -> Result<Model> {
        match (self.model.unwrap_or(Costs::Linear), &self.weights) {
            (Costs::Linear, None) => Ok(Model::default()),
            (Costs::Linear, Some(_)) => Err(Diagnostic::user("`--weights` are those of `--model mlp`")),
            (Costs::Mlp, Some(path)) => Ok(Model::learned(weights::read(path)?.0)),
            (Costs::Mlp, None) => {
                Err(Diagnostic::user("`--model mlp` needs the weights of a network: `--weights FILE`")
                    .note("`daedal train cost` makes them on this machine"))
            }
        }
    }

    /// The search that is asked for, where so many schedules are measured.
    ///
    /// # Errors
    /// Another search than the published one is asked for in the published space.
    pub fn settings(&self, seed: u64, measurements: usize) -> Result<Settings> {
        let way = match (self.space.unwrap_or(Space::Tree), self.search.unwrap_or(Name::Beam)) {
            (Space::Toy, Name::Beam) => Way::Toy,
            (Space::Toy, _) => {
                return Err(Diagnostic::user("`--space toy` is searched as published, by `--search beam`")
                    .note("hint: `--beam` says how many trees are kept"));
            }
            (Space::Tree, Name::Greedy) => Way::Greedy,
            (Space::Tree, Name::Beam) => Way::Beam,
            (Space::Tree, Name::Mb2fbs) => Way::Mb2fbs,
            (Space::Tree, Name::Mcts) => Way::Mcts,
            (Space::Tree, Name::Random) => Way::Random,
        };
        let (beam, evaluations) = if way == Way::Toy { (toy::BEAM, toy::EVALUATIONS) } else { (BEAM, EVALUATIONS) };
        let beam = self.beam.map_or(beam, usize::from);
        let evaluations = self.evaluations.map_or(evaluations, |n| n as usize);
        Ok(Settings { way, beam, evaluations, seed, keep: measurements.max(8) })
    }
}
