//! Statements of a nest are told by stages: each belongs to the stage that is written next.
//!
//! Lowering names the memory and the variables of a stage after it. A loop belongs to the stage of its last write, since what is
//! computed in the loops of another stage is computed at the start of each iteration. It must hold of any nest, and say
//! nothing where it cannot tell.

use crate::nest::{Buf, Func, Slot, Stmt, Var};
use crate::stage::Graph;
use rustc_hash::{FxHashMap, FxHashSet};

/// What accumulators in memory are called after the name of their stage.
const ACCUMULATORS: &str = "_acc";

/// Whose memory and variables those of a function are.
pub struct Owners {
    bufs: FxHashMap<Buf, (usize, bool)>,
    vars: FxHashMap<Var, usize>,
}

impl Owners {
    /// Those of a function that a graph was lowered to.
    pub fn new(func: &Func, graph: &Graph) -> Owners {
        let stages: FxHashMap<&str, usize> =
            graph.stages.iter().enumerate().map(|(k, s)| (s.name.as_str(), k)).collect();
        let incoming: FxHashSet<Buf> =
            func.params.iter().filter_map(|s| if let Slot::Data(b) = s { Some(*b) } else { None }).collect();
        let mut out = Owners { bufs: FxHashMap::default(), vars: FxHashMap::default() };
        for (k, info) in func.bufs.iter().enumerate() {
            let (buf, name) = (Buf(k as u32), info.name.as_str());
            let own = stages.get(name).map(|s| (*s, false));
            let tile = || Some((*stages.get(name.strip_suffix(ACCUMULATORS)?)?, true));
            if let Some(found) = own.or_else(tile).filter(|_| !incoming.contains(&buf)) {
                out.bufs.insert(buf, found);
            }
        }
        let named = |(k, info): (usize, &crate::nest::Info)| Some((Var(k as u32), *stages.get(info.name.as_str())?));
        out.vars = func.vars.iter().enumerate().filter_map(named).collect();
        out
    }

    /// The stage whose memory a buffer is, and whether it holds accumulators.
    pub fn buf(&self, b: Buf) -> Option<(usize, bool)> {
        self.bufs.get(&b).copied()
    }

    /// The stage whose element or accumulator a variable is.
    pub fn var(&self, v: Var) -> Option<usize> {
        self.vars.get(&v).copied()
    }

    /// The stage of the last write in a statement.
    pub fn last(&self, s: &Stmt) -> Option<usize> {
        match s {
            Stmt::Alloc(b, _) | Stmt::Store(b, ..) | Stmt::MaskedStore(b, ..) | Stmt::StoreLane(b, ..) => {
                self.buf(*b).map(|(stage, _)| stage)
            }
            Stmt::Mut(v, _) | Stmt::Set(v, _) | Stmt::SetLane(v, ..) => self.var(*v),
            Stmt::For(l) => l.body.iter().rev().find_map(|s| self.last(s)),
            Stmt::If(_, a, b) => a.iter().chain(b).rev().find_map(|s| self.last(s)),
            _ => None,
        }
    }

    /// The stage of each statement of a block: that of the next write, or else the one of what is around.
    pub fn each(&self, block: &[Stmt], around: usize) -> Vec<usize> {
        let mut next = around;
        let mut out: Vec<usize> = block
            .iter()
            .rev()
            .map(|s| {
                next = self.last(s).unwrap_or(next);
                next
            })
            .collect();
        out.reverse();
        out
    }
}
