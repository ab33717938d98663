//! The searches of schedules by model, and what may judge them: what searches are told by words.

use crate::diag::{Diagnostic, Result};
use crate::tune::Model;
use crate::tune::explore::{Settings, Way};
use crate::tune::mlp::weights;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// How schedules are judged that are not measured.
#[derive(Args, Debug)]
pub struct Judging {
    /// The search by model; `beam` where nothing is said
    #[arg(long, value_enum, value_name = "NAME")]
    search: Option<Name>,
    /// What says how long schedules take: weights of counted work, or a network that was trained on random pipelines
    #[arg(long, value_enum, value_name = "MODEL")]
    model: Option<Costs>,
    /// The weights of the network, as `daedal train cost` writes them
    #[arg(long, value_name = "W.safetensors")]
    weights: Option<PathBuf>,
    /// How many states a beam keeps
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u16).range(1..))]
    beam: u16,
    /// Schedules that the model judges at most in the search
    #[arg(long, value_name = "N", default_value_t = 4000, value_parser = clap::value_parser!(u32).range(1..))]
    evaluations: u32,
}

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
            (self.search.is_some(), "--search"),
            (self.model.is_some(), "--model"),
            (self.weights.is_some(), "--weights"),
        ];
        all.into_iter().find(|(said, _)| *said).map(|(_, name)| name)
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
    pub fn settings(&self, seed: u64, measurements: usize) -> Settings {
        let way = match self.search.unwrap_or(Name::Beam) {
            Name::Greedy => Way::Greedy,
            Name::Beam => Way::Beam,
            Name::Mb2fbs => Way::Mb2fbs,
            Name::Mcts => Way::Mcts,
            Name::Random => Way::Random,
        };
        let (beam, evaluations) = (usize::from(self.beam), self.evaluations as usize);
        Settings { way, beam, evaluations, seed, keep: measurements.max(8) }
    }
}
