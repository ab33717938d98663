//! `if-convert`: both arms of a stage's conditions are evaluated, and one of them is selected, so that lanes of a vector that
//! take different arms stay one vector. Arms that may have no value where they are not taken stay conditions.

use crate::schedule::plan::{Refusal, Schedule, refuse};

pub(super) fn if_convert(s: &mut Schedule, stage: &str) -> Result<(), Refusal> {
    let id = s.stage(stage)?;
    if !s.if_convert(id) {
        return refuse(format!(
            "`{stage}` has no condition both arms of which are known to have a value at all its indices"
        ));
    }
    Ok(())
}
