//! Runs become tables and plots.

use super::course::{Course, Training, about};
use super::experiment::Experiment;
use super::runs::{Limits, Run, Runs, Way};
use super::tasks::{SAME, Task};
use crate::diag::Result;
use crate::report::{self, Series};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;

/// Evaluations after which a run was at a cost or below.
fn until(run: &Run, known: f64) -> Option<f64> {
    if run.before <= known + SAME {
        return Some(0.0);
    }
    run.curve.iter().find(|(_, cost)| *cost <= known + SAME).map(|(n, _)| *n as f64)
}

/// One experiment with its runs.
pub struct Page<'a> {
    /// The experiment.
    pub experiment: Experiment,
    /// The rows.
    pub tasks: &'a [Task<'a>],
    /// The columns.
    pub ways: &'a [Way],
    /// What was found.
    pub runs: &'a Runs,
    /// Budget, depth and seeds.
    pub limits: Limits,
    /// What is said of ways that are not among the columns.
    pub left_out: Vec<String>,
}

/// Points of a plot.
const POINTS: usize = 100;

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let all: Vec<f64> = values.collect();
    all.iter().sum::<f64>() / all.len().max(1) as f64
}

impl Page<'_> {
    fn of(&self, task: &Task<'_>, way: &Way) -> Vec<&Run> {
        self.runs.of(task, way, self.limits)
    }

    /// The mean cost over seeds.
    fn cost(&self, task: &Task<'_>, way: &Way) -> f64 {
        mean(self.of(task, way).iter().map(|r| r.cost))
    }

    fn before(&self, task: &Task<'_>) -> f64 {
        self.ways.iter().flat_map(|w| self.of(task, w)).map(|r| r.before).next().unwrap_or(f64::NAN)
    }

    /// The least cost of all: the known one, or the best found.
    fn least(&self, task: &Task<'_>) -> f64 {
        let found = self.ways.iter().flat_map(|w| self.of(task, w)).map(|r| r.cost);
        found.chain(task.known).fold(f64::INFINITY, f64::min)
    }

    /// What the known costs are.
    fn known(&self) -> &'static str {
        match self.experiment {
            Experiment::A | Experiment::B => "least",
            _ => "best known",
        }
    }

    fn title(&self) -> String {
        let what = match self.experiment {
            Experiment::A => "Arithmetic expressions with a known least cost",
            Experiment::B => "Expressions in unseen contexts",
            Experiment::C => "Linear algebra beside the best published costs",
            Experiment::D => "Mixture model and its gradient",
            Experiment::E => "Convolution and its reverse",
            Experiment::F => "A* against Monte Carlo tree search at equal evaluations",
            Experiment::G => "Everything against equality saturation",
        };
        let (budget, depth, seeds) = self.limits;
        let chance = if seeds == 1 { "one run".to_string() } else { format!("mean of {seeds} runs") };
        format!(
            "### ({}) {what}\n\nAt most {budget} evaluations and {depth} rewrites in a row; \
             searches by chance: {chance}.\n",
            self.experiment.letter()
        )
    }

    /// The section as Markdown.
    pub fn lines(&self) -> Vec<String> {
        let mut out: Vec<String> = self.title().lines().map(str::to_string).collect();
        out.push(String::new());
        let heads: Vec<String> = self.ways.iter().map(Way::title).collect();
        out.push(format!("| definition | as written | {} | {} |", self.known(), heads.join(" | ")));
        out.push(format!("|---|---:|---:|{}", "---:|".repeat(heads.len())));
        for task in self.tasks {
            let known = task.known.map_or("–".to_string(), |k| format!("{k:.1}"));
            let cells: Vec<String> = self.ways.iter().map(|w| self.cell(task, w)).collect();
            out.push(format!("| `{}` | {:.1} | {known} | {} |", task.def.name(), self.before(task), cells.join(" | ")));
        }
        for (what, value) in self.sums() {
            out.push(format!("| *{what}* | | | {} |", value.join(" | ")));
        }
        out.push(String::new());
        out.extend(self.trainings());
        out.extend(self.left_out.iter().cloned());
        out
    }

    /// What each training took, and what its network finds with each search that it guides.
    fn trainings(&self) -> Vec<String> {
        let mut out = vec![];
        let pairs = |way: &Way| -> BTreeSet<Course> {
            way.guide.map_or(BTreeSet::new(), |guide| self.tasks.iter().map(|t| guide.course(t)).collect())
        };
        let courses: BTreeSet<Course> = self.ways.iter().flat_map(pairs).collect();
        for course in courses {
            out.extend([about(course), String::new()]);
            out.push(format!(
                "| search | seed | epochs | evaluated in training | minutes of training | met in training | at the {} | \
                 evaluations until then, mean | most |",
                self.known()
            ));
            out.push(format!("|---|{}", "---:|".repeat(8)));
            for way in self.ways.iter().filter(|way| pairs(way).contains(&course)) {
                out.extend((0..way.seeds(self.limits)).filter_map(|seed| self.trained(course, way, seed)));
            }
            out.push(String::new());
        }
        out
    }

    /// The row of a network and a search; nothing where it was not tested.
    fn trained(&self, course: Course, way: &Way, seed: u64) -> Option<String> {
        let of = |task: &&Task<'_>| way.guide.is_some_and(|guide| guide.course(task) == course);
        let tasks: Vec<&Task<'_>> = self.tasks.iter().filter(of).collect();
        let runs = |task: &&Task<'_>| Some((task.known?, self.runs.one(task, way, self.limits, seed)?));
        let found: Vec<(f64, &Run)> = tasks.iter().filter_map(runs).collect();
        if found.is_empty() {
            return None;
        }
        let learned = match self.runs.training(&course.key(seed)) {
            Some(t) => {
                let Training { epochs, evaluations, met, of, seconds, .. } = t;
                let met = if course.goals() { format!("{met} of {of}") } else { "–".to_string() };
                format!("{epochs} | {evaluations} | {:.1} | {met}", seconds / 60.0)
            }
            None => "– | – | – | –".to_string(),
        };
        let took: Vec<f64> = found.iter().filter_map(|(known, run)| until(run, *known)).collect();
        let (met, of, most) = (took.len(), tasks.len(), took.iter().copied().reduce(f64::max));
        let until = most.map_or("– | –".to_string(), |most| format!("{:.0} | {most:.0}", mean(took.into_iter())));
        Some(format!("| {} | {seed} | {learned} | {met} of {of} | {until} |", way.title()))
    }

    /// A cost; bold where none is less.
    fn cell(&self, task: &Task<'_>, way: &Way) -> String {
        let cost = self.cost(task, way);
        let text = format!("{cost:.1}");
        if cost <= self.least(task) + SAME { format!("**{text}**") } else { text }
    }

    /// The last rows: how often the known cost is reached, in every run; and the mean ratio to the least.
    fn sums(&self) -> Vec<(String, Vec<String>)> {
        let mut out = vec![];
        let with: Vec<&Task<'_>> = self.tasks.iter().filter(|t| t.known.is_some()).collect();
        if !with.is_empty() {
            let reached = |w: &Way| {
                let all = |t: &Task<'_>| self.of(t, w).iter().all(|r| t.known.is_some_and(|k| r.cost <= k + SAME));
                with.iter().filter(|t| all(t)).count()
            };
            let cells = self.ways.iter().map(|w| format!("{} of {}", reached(w), with.len())).collect();
            out.push((format!("at the {} or below", self.known()), cells));
        }
        let ratio = |w: &Way| mean(self.tasks.iter().map(|t| (self.cost(t, w) / self.least(t)).ln())).exp();
        out.push((
            "ratio to the least, geometric mean".to_string(),
            self.ways.iter().map(|w| format!("{:.3}", ratio(w))).collect(),
        ));
        out
    }

    /// The rows as objects.
    pub fn objects(&self) -> Vec<Json> {
        let object = |t: &Task<'_>| {
            let found = |w: &Way| json!({ "way": w.title(), "cost": self.cost(t, w) });
            json!({
                "experiment": self.experiment.letter().to_string(),
                "name": t.def.name(),
                "before": self.before(t),
                "known": t.known,
                "found": self.ways.iter().map(found).collect::<Vec<_>>(),
            })
        };
        self.tasks.iter().map(object).collect()
    }

    /// Best cost over the least, by evaluations; nothing where no search of terms is among the ways.
    ///
    /// # Errors
    /// A bug, where the plot cannot be drawn.
    pub fn plot(&self) -> Result<Option<String>> {
        let mut series = vec![];
        for way in self.ways {
            let runs: Vec<(f64, &Run)> =
                self.tasks.iter().flat_map(|t| self.of(t, way).into_iter().map(|r| (self.least(t), r))).collect();
            if runs.iter().all(|(_, r)| r.curve.is_empty()) {
                continue;
            }
            let at = |k: usize| {
                let most = self.limits.0 * k / POINTS;
                let best =
                    |r: &Run| r.curve.iter().take_while(|(n, _)| *n <= most.max(1)).last().map_or(r.before, |c| c.1);
                mean(runs.iter().map(|(least, r)| (best(r) / least.max(SAME)).ln())).exp()
            };
            series.push(Series { name: way.title().replace('`', ""), values: (0..=POINTS).map(at).collect() });
        }
        if series.is_empty() {
            return Ok(None);
        }
        report::lines(&series, "evaluations, in hundredths of the budget", "cost over the least").map(Some)
    }
}
