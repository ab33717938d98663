//! Scatters keep their loops: most steps are not for them.

use crate::schedule::plan::{Refusal, Schedule, refuse};
use crate::stage::{Definition, StageId};

/// Refuses a step for a scatter, whose values are added in the order of the source.
pub(super) fn no_scatter(s: &Schedule, id: StageId) -> Result<(), Refusal> {
    let known = s.graph.stage(id);
    if let Definition::Scatter { .. } = known.def {
        return refuse(format!(
            "`{}` is a scatter: its loops run as they are, but for the parallel ones around it",
            known.name
        ));
    }
    Ok(())
}
