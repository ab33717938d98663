//! The features of a stage as one list of numbers with names.

use super::lowered::Lowered;
use super::schedule::Schedule;
use super::stage::Seen;
use super::{accesses, operations, schedule};
use crate::tune::facts::Facts;
use crate::tune::parts::Work;
use std::sync::LazyLock;

/// Which features there are: another number where a name or a meaning is another one.
pub const VERSION: u32 = 1;

/// The features of a stage.
#[derive(Clone, PartialEq, Debug)]
pub struct Features {
    /// The name of the stage; nothing for what belongs to none.
    pub stage: String,
    /// The features, by [`names`].
    pub values: Vec<f64>,
    /// The work that is counted of it.
    pub work: Work,
}

/// The names of the features, in order.
pub fn names() -> &'static [String] {
    static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
        let schedule = Schedule::NAMES.iter().map(ToString::to_string);
        operations::names().chain(accesses::names()).chain(schedule).collect()
    });
    &NAMES
}

impl Features {
    /// The value of a feature.
    pub fn get(&self, name: &str) -> Option<f64> {
        let at = names().iter().position(|n| n == name)?;
        self.values.get(at).copied()
    }
}

/// The features of the stages that are computed, in the order of the graph, and at the end of what belongs to none: that has
/// work alone.
pub fn of(facts: &Facts, lowered: &Lowered<'_>) -> Vec<Features> {
    let seen = Seen::all(facts);
    let count = facts.by_stage.len().saturating_sub(1);
    let mut out = vec![];
    for (k, work) in facts.by_stage.iter().enumerate().take(count) {
        let Some(stage) = seen.stage(k, lowered) else {
            // What it costs is not lost.
            if work.0.iter().any(|n| *n > 0.0) {
                out.push(bare(lowered.plans.graph.stages[k].name.clone(), *work));
            }
            continue;
        };
        let mut values = operations::values(&seen, &stage);
        values.extend(accesses::values(&seen, &stage));
        values.extend(schedule::of(&seen, &stage, lowered).values());
        out.push(Features { stage: lowered.plans.graph.stages[k].name.clone(), values, work: *work });
    }
    if let Some(work) = facts.by_stage.last().filter(|w| w.0.iter().any(|n| *n > 0.0)) {
        out.push(bare(String::new(), *work));
    }
    out
}

fn bare(stage: String, work: Work) -> Features {
    Features { stage, values: vec![0.0; names().len()], work }
}
