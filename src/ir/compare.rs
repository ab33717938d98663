//! Comparisons become others that say the same of sides exchanged, or the contrary. It must not know what is compared.

use super::Op;

impl Op {
    /// The comparison of integers that holds where this one does not.
    pub fn opposite(self) -> Option<Op> {
        Some(match self {
            Op::Lt => Op::Gte,
            Op::Lte => Op::Gt,
            Op::Gt => Op::Lte,
            Op::Gte => Op::Lt,
            _ => return None,
        })
    }

    /// The comparison that holds of two sides exchanged where this one holds.
    pub fn mirrored(self) -> Option<Op> {
        Some(match self {
            Op::Lt => Op::Gt,
            Op::Lte => Op::Gte,
            Op::Gt => Op::Lt,
            Op::Gte => Op::Lte,
            Op::Eq | Op::Ne => self,
            _ => return None,
        })
    }
}
