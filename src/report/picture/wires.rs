//! Who reads whom becomes lines beside the rectangles: what is stored has one line down to the last that reads it, and each
//! reader one line across, with a dot where it reads.

use super::nest::Placed;
use crate::report::ink::{INK, colour};
use crate::report::svg::Drawing;
use rustc_hash::FxHashMap;

/// From the rectangles to the first line, and between lines.
const FIRST: f64 = 22.0;
const STEP: f64 = 9.0;

/// A line down from what is stored.
struct Down {
    name: String,
    /// Where it begins.
    from: (f64, f64),
    /// The least and the greatest height that it reaches.
    ends: (f64, f64),
    /// Its place, counted from the rectangles.
    lane: usize,
    readers: Vec<usize>,
}

/// A line across to what reads.
struct Across {
    name: String,
    to: (f64, f64),
    /// The lines down that it meets.
    meets: Vec<usize>,
}

/// All lines.
pub struct Wires {
    left: f64,
    down: Vec<Down>,
    across: Vec<Across>,
    lanes: usize,
}

impl Wires {
    /// The lines of what was placed to the left of some place.
    pub fn of(placed: &Placed, left: f64) -> Wires {
        let mut down: Vec<Down> = vec![];
        let mut by_id: FxHashMap<usize, usize> = FxHashMap::default();
        for (id, name, from) in &placed.stored {
            by_id.insert(*id, down.len());
            down.push(Down { name: name.clone(), from: *from, ends: (from.1, from.1), lane: 0, readers: vec![] });
        }
        let mut across = vec![];
        for (name, to, reads) in &placed.readers {
            let meets: Vec<usize> = reads.iter().filter_map(|id| by_id.get(id).copied()).collect();
            for k in &meets {
                let d = &mut down[*k];
                d.ends = (d.ends.0.min(to.1), d.ends.1.max(to.1));
                d.readers.push(across.len());
            }
            if !meets.is_empty() {
                across.push(Across { name: name.clone(), to: *to, meets });
            }
        }
        let lanes = lanes(&mut down);
        Wires { left, down, across, lanes }
    }

    /// How wide all lines are.
    pub fn width(&self) -> f64 {
        if self.lanes == 0 { 0.0 } else { FIRST + STEP * (self.lanes - 1) as f64 + 4.0 }
    }

    /// Whether something is read above where it is stored: in a later step.
    pub fn waits(&self) -> bool {
        self.across.iter().any(|a| a.meets.iter().any(|k| self.is_before(a, *k)))
    }

    fn is_before(&self, a: &Across, k: usize) -> bool {
        a.to.1 < self.down[k].from.1
    }

    fn lane(&self, k: usize) -> f64 {
        self.left + FIRST + STEP * self.down[k].lane as f64
    }

    /// Draws them.
    pub fn draw(&self, out: &mut Drawing) {
        for a in &self.across {
            let far = a.meets.iter().map(|k| self.lane(*k)).fold(0.0, f64::max);
            let names: Vec<&str> = a.meets.iter().map(|k| self.down[*k].name.as_str()).collect();
            out.begin("across", &format!("{} reads {}", a.name, names.join(", ")));
            let (x, y) = a.to;
            out.line("", "#8a94a3", &[(far, y), (x + 6.0, y)]);
            out.line("arrow", "none", &[(x + 8.0, y - 4.0), (x + 1.0, y), (x + 8.0, y + 4.0)]);
            out.end();
        }
        for (k, d) in self.down.iter().enumerate().filter(|(_, d)| !d.readers.is_empty()) {
            let ink = colour(INK[k % INK.len()]);
            let names: Vec<&str> = d.readers.iter().map(|r| self.across[*r].name.as_str()).collect();
            out.begin("wire", &format!("{} is read by {}", d.name, names.join(", ")));
            let x = self.lane(k);
            out.line("", &ink, &[d.from, (x, d.from.1)]);
            out.line("", &ink, &[(x, d.ends.0), (x, d.ends.1)]);
            for r in &d.readers {
                let a = &self.across[*r];
                match self.is_before(a, k) {
                    true => out.dot("before", &format!("stroke=\"{ink}\""), (x, a.to.1), 3.2),
                    false => out.dot("", &format!("fill=\"{ink}\""), (x, a.to.1), 3.2),
                }
            }
            out.end();
        }
    }
}

/// Gives each line a place where it meets no other, short ones next to the rectangles; how many places there are.
fn lanes(down: &mut [Down]) -> usize {
    let mut order: Vec<usize> = (0..down.len()).filter(|k| !down[*k].readers.is_empty()).collect();
    order.sort_by(|a, b| {
        let length = |k: &usize| down[*k].ends.1 - down[*k].ends.0;
        length(a).total_cmp(&length(b)).then(a.cmp(b))
    });
    let mut taken: Vec<Vec<(f64, f64)>> = vec![];
    for k in order {
        let (top, bottom) = down[k].ends;
        let free = |t: &Vec<(f64, f64)>| t.iter().all(|(a, b)| bottom + STEP < *a || *b + STEP < top);
        let lane = taken.iter().position(free).unwrap_or(taken.len());
        if lane == taken.len() {
            taken.push(vec![]);
        }
        taken[lane].push((top, bottom));
        down[k].lane = lane;
    }
    taken.len()
}
