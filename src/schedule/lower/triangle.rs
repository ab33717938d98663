//! Tiles of which rows are reductions of different lengths: what all of them have in loops over the tile, and the rest of each
//! row in loops of its own. Each element takes its terms in their order.

use super::loops::{Each, Run};
use super::{Lower, Lowered};
use crate::ir::Op;
use crate::nest::LoopKind;
use crate::schedule::plan::Loop;
use crate::schedule::triangle::Triangle;
use crate::stage::Body;

impl<'s> Lower<'s> {
    /// Runs a body for each term of each element of a tile, in loops over what is reduced and over elements.
    pub(super) fn over_triangle(
        &mut self,
        run: &mut Run,
        loops: &[Loop],
        of: &Triangle,
        body: &mut Each<'_, 's>,
    ) -> Lowered<()> {
        let common = self.least_length(run, of);
        run.parts.insert(of.over.clone(), common);
        let made = self.nested(run, loops, body);
        run.parts.remove(&of.over);
        made?;
        let is_row = |l: &&Loop| of.rows.iter().any(|(name, _)| *name == l.name);
        let rows: Vec<Loop> = loops.iter().filter(is_row).cloned().collect();
        let inside: Vec<Loop> = loops.iter().filter(|l| !is_row(l) && l.name != of.over).cloned().collect();
        let Some(over) = loops.iter().find(|l| l.name == of.over).cloned() else { return Ok(()) };
        self.nested(run, &rows, &mut |l, run| {
            let all = l.extent(run, &of.over);
            let left = l.ints(Op::Sub, all, common);
            if l.g.bodies.as_int(left).is_some_and(|n| n <= 0) {
                return Ok(());
            }
            let kind = (LoopKind::Serial, false);
            l.iterations(run, &over, (common, left), kind, &mut |l, run| l.nested(run, &inside, body))
        })
    }

    /// How many terms the shortest row has: none of a tile has less.
    fn least_length(&mut self, run: &Run, of: &Triangle) -> Body {
        let mut shortest = run.clone();
        let (zero, one) = (self.g.bodies.int(0), self.g.bodies.int(1));
        for (row, more) in &of.rows {
            let at = if *more {
                zero
            } else {
                let all = self.extent(&shortest, row);
                self.ints(Op::Sub, all, one)
            };
            shortest.values.insert(row.clone(), at);
        }
        let n = self.extent(&shortest, &of.over);
        if self.never_more(zero, n) { n } else { self.ints(Op::Max, n, zero) }
    }
}
