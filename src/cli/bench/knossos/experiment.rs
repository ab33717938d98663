//! The experiments: what each optimizes, how it searches, and within which limits.

use super::runs::Way;
use super::tasks::Task;
use crate::search::Algorithm;
use clap::ValueEnum;

/// An experiment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Experiment {
    /// Eight arithmetic expressions with a known least cost
    A,
    /// Twelve expressions that were not trained on
    B,
    /// Linear algebra beside the best published costs
    C,
    /// The mixture model and its gradient, in one phase and in two
    D,
    /// Convolution and its reverse
    E,
    /// A* against Monte Carlo tree search at equal evaluations
    F,
    /// Everything against equality saturation and `auto`
    G,
}

/// Networks of each kind where four kinds are compared.
const PAIRED: u64 = 2;

impl Experiment {
    /// Its letter.
    pub fn letter(self) -> char {
        match self {
            Experiment::A => 'a',
            Experiment::B => 'b',
            Experiment::C => 'c',
            Experiment::D => 'd',
            Experiment::E => 'e',
            Experiment::F => 'f',
            Experiment::G => 'g',
        }
    }

    /// The programs whose definitions it optimizes.
    pub fn files(self) -> &'static [&'static str] {
        match self {
            Experiment::A => &["arithmetic"],
            Experiment::B => &["sharing"],
            Experiment::C => &["blas"],
            Experiment::D => &["gmm", "gmm_gradient"],
            Experiment::E => &["conv1d", "conv1d_gradient"],
            Experiment::F => &["sharing", "blas"],
            Experiment::G => &["arithmetic", "sharing", "blas", "gmm", "conv1d"],
        }
    }

    /// States evaluated at most, as published, and rewrites in a row.
    pub fn limits(self) -> (usize, usize) {
        match self {
            Experiment::A | Experiment::B => (5_000, 10),
            Experiment::C | Experiment::F | Experiment::G => (5_000, 30),
            Experiment::D | Experiment::E => (5_000, 30),
        }
    }

    /// How it searches: the columns of its table.
    pub fn ways(self) -> Vec<Way> {
        let (egraph, auto) = (Way::egraph(), Way::auto());
        let placed = Way::searches(&["astar"], false);
        let bound = Way::searches(&["astar", "greedy", "random", "mcts"], true);
        match self {
            Experiment::A | Experiment::B => {
                [vec![egraph], placed, bound, vec![Way::trained(Algorithm::Astar, Algorithm::Astar, 5)]].concat()
            }
            Experiment::C => {
                let others = Way::searches(&["astar"], true);
                let trained = vec![Way::trained(Algorithm::Astar, Algorithm::Astar, PAIRED)];
                [vec![egraph, auto], Way::searches(&["astar", "mcts", "greedy"], false), others, trained].concat()
            }
            Experiment::D | Experiment::E => {
                let two = Way { phased: true, ..placed[0].clone() };
                [vec![egraph], placed, vec![two], Way::searches(&["mcts"], false)].concat()
            }
            Experiment::F => {
                let pair = ["astar", "mcts"];
                let engines = [Algorithm::Astar, Algorithm::Mcts];
                let trained = engines.iter().flat_map(|by| engines.map(|engine| Way::trained(engine, *by, PAIRED)));
                [Way::searches(&pair, false), Way::searches(&pair, true), trained.collect()].concat()
            }
            Experiment::G => {
                let all = ["astar", "mcts", "beam", "mb2fbs", "greedy", "random"];
                [vec![egraph, auto], Way::searches(&all, false)].concat()
            }
        }
    }

    /// Whether it is about a task.
    pub fn wants(self, task: &Task<'_>) -> bool {
        match self {
            Experiment::B | Experiment::F | Experiment::G if task.file == "sharing" => {
                task.def.name().starts_with("test")
            }
            Experiment::C | Experiment::F => task.file != "blas" || task.known.is_some(),
            _ => true,
        }
    }
}
