//! What lowering decides is written down, where somebody asks.

use super::Lower;
use super::seen::{Memory, Parts, Trips};
use crate::stage::{Body, StageId};

fn note<T: PartialEq>(to: &mut Vec<T>, new: T) {
    if !to.contains(&new) {
        to.push(new);
    }
}

impl Lower<'_> {
    pub(super) fn see_memory(&mut self, of: StageId, new: Memory) {
        if let Some(seen) = &mut self.seen {
            note(seen.memory.entry(of).or_default(), new);
        }
    }

    pub(super) fn see_tile(&mut self, of: StageId, room: &[Body]) {
        if let Some(seen) = &mut self.seen {
            note(seen.tiles.entry(of).or_default(), room.to_vec());
        }
    }

    pub(super) fn see_trips(&mut self, stage: StageId, name: &str, of: Body, parts: Option<Parts>) {
        if self.seen.is_none() {
            return;
        }
        let most = self.room(of);
        if let Some(seen) = &mut self.seen {
            note(seen.trips.entry((stage, name.to_string())).or_default(), Trips { of, most, parts });
        }
    }
}
