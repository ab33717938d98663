//! Schedule trees: root, loop, storage and compute nodes, whose ancestry says in what order all runs.
//!
//! A tree is kept as what it says of each function: its loops, the loop (of another function) in which it is computed, and
//! that in which its memory is. From that the nodes follow, since what is computed in one place stands there in the order of
//! producers, each before what reads it. As published, the path from a function's compute node to the root has all its loops
//! and its storage node, and callees come before callers in a depth-first traversal; a tree of which that does not hold is
//! none. All readers of a function are in the loop in which it is computed, as Halide asks.

use super::functions::Functions;
use crate::stage::StageId;
use std::fmt::{self, Write};

/// A place in a tree: the root, or inside of a loop of a function, counted from its outermost.
pub type Level = Option<(StageId, usize)>;

/// A loop node of a function.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Loop {
    /// Over which of its dimensions.
    pub dim: usize,
    /// How far an iteration moves: 1, or how long the parts are that it runs over. Of a dimension that was split, loops of
    /// greater steps stand around those of smaller ones.
    pub step: i64,
    /// Whether its iterations are the lanes of a vector. The published implementation has these and sequential ones.
    pub vectorized: bool,
}

/// What a tree says of one function.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Plan {
    /// Compute nodes below those of its readers: computed where it is read.
    Inline,
    /// Nodes of its own.
    Own {
        /// Its loop nodes, outermost first.
        loops: Vec<Loop>,
        /// Where its outermost loop stands.
        compute: Level,
        /// Where its storage node stands; of the output, which has none, the root.
        storage: Level,
    },
}

/// A schedule tree.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Tree {
    /// By the numbers of stages.
    pub plans: Vec<Plan>,
}

/// A node, for those who look at trees.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Node {
    /// The top.
    Root(Vec<Node>),
    /// A loop of a function.
    Loop(StageId, Loop, Vec<Node>),
    /// Memory of a function, for all below.
    Storage(StageId, Vec<Node>),
    /// A function, with what is inlined in it.
    Compute(StageId, Vec<Node>),
}

impl Tree {
    /// The default schedule: outputs in the order of rows, all that they call inlined. What cannot be inlined is computed
    /// whole, in memory of its own.
    pub fn standard(functions: &Functions) -> Tree {
        let plan = |f: StageId| match functions.get(f).inlines {
            true => Plan::Inline,
            false => Tree::whole(functions, f),
        };
        Tree { plans: functions.ids().map(plan).collect() }
    }

    /// A function computed whole, in the order of the source.
    pub fn whole(functions: &Functions, f: StageId) -> Plan {
        let known = functions.get(f);
        let each = |dim: &usize| Loop { dim: *dim, step: 1, vectorized: false };
        let loops = if known.loops { known.order.iter().map(each).collect() } else { vec![] };
        Plan::Own { loops, compute: None, storage: None }
    }

    /// What it says of a function.
    pub fn plan(&self, f: StageId) -> &Plan {
        &self.plans[f.0 as usize]
    }

    /// The loops of a function; none where it is inlined.
    pub fn loops(&self, f: StageId) -> &[Loop] {
        match self.plan(f) {
            Plan::Inline => &[],
            Plan::Own { loops, .. } => loops,
        }
    }

    /// Where a function is computed; nothing where it is inlined.
    pub fn compute(&self, f: StageId) -> Option<Level> {
        match self.plan(f) {
            Plan::Inline => None,
            Plan::Own { compute, .. } => Some(*compute),
        }
    }

    /// Where the memory of a function is; nothing where it is inlined.
    pub fn storage(&self, f: StageId) -> Option<Level> {
        match self.plan(f) {
            Plan::Inline => None,
            Plan::Own { storage, .. } => Some(*storage),
        }
    }

    /// The place around a place: the loop around it, or where its function is computed.
    pub fn around(&self, level: Level) -> Level {
        match level {
            Some((h, k)) if k > 0 => Some((h, k - 1)),
            Some((h, _)) => self.compute(h).flatten(),
            None => None,
        }
    }

    /// Whether a place is another one, or around it. There is no circle of places in a tree; where there would be one, the
    /// answer is no.
    pub fn is_around(&self, outer: Level, inner: Level) -> bool {
        let mut at = inner;
        for _ in 0..=self.plans.len() * 8 {
            if at == outer {
                return true;
            }
            if at.is_none() {
                return false;
            }
            at = self.around(at);
        }
        false
    }

    /// Where a function runs: in its innermost loop.
    pub fn body(&self, f: StageId) -> Level {
        match self.loops(f).len() {
            0 => self.compute(f).flatten(),
            n => Some((f, n - 1)),
        }
    }

    /// The functions that read one where they run: in place of what is inlined, what that is inlined in.
    pub fn callers(&self, functions: &Functions, f: StageId) -> Vec<StageId> {
        let (mut todo, mut seen, mut out): (Vec<StageId>, Vec<StageId>, Vec<StageId>) = (vec![f], vec![], vec![]);
        while let Some(p) = todo.pop() {
            for r in functions.readers(p) {
                if seen.contains(&r) {
                    continue;
                }
                seen.push(r);
                match self.plan(r) {
                    Plan::Inline => todo.push(r),
                    Plan::Own { .. } => out.push(r),
                }
            }
        }
        out.sort_unstable();
        out
    }

    /// Whether it is a tree: storage is around what is computed, that around all that reads it.
    pub fn is_well_formed(&self, functions: &Functions) -> bool {
        functions.ids().all(|f| {
            let (Some(compute), Some(storage)) = (self.compute(f), self.storage(f)) else { return true };
            let host = |level: Level| level.is_none_or(|(h, k)| h != f && k < self.loops(h).len());
            let inside = |r: &StageId| self.is_around(compute, self.body(*r));
            host(compute)
                && host(storage)
                && self.is_around(None, compute)
                && self.is_around(storage, compute)
                && (compute.is_none() || self.callers(functions, f).iter().all(inside))
        })
    }

    /// The nodes of the tree.
    pub fn nodes(&self, functions: &Functions) -> Node {
        Node::Root(self.below(functions, None))
    }

    /// What stands below a place: storage, then what is computed there.
    fn below(&self, functions: &Functions, level: Level) -> Vec<Node> {
        let here = |f: &StageId| self.compute(*f) == Some(level);
        let mut out: Vec<Node> =
            functions.order.iter().copied().filter(here).map(|f| self.chain(functions, f, 0)).collect();
        if let Some((f, k)) = level.filter(|(f, k)| *k < self.loops(*f).len()) {
            out.push(self.chain(functions, f, k + 1));
        }
        let stored = |f: &StageId| self.storage(*f) == Some(level) && !functions.get(*f).output;
        for f in functions.order.iter().rev().copied().filter(stored) {
            out = vec![Node::Storage(f, out)];
        }
        out
    }

    /// A function from its k-th loop on.
    fn chain(&self, functions: &Functions, f: StageId, k: usize) -> Node {
        match self.loops(f).get(k) {
            Some(l) => Node::Loop(f, *l, self.below(functions, Some((f, k)))),
            None => Node::Compute(f, self.inlined(functions, f)),
        }
    }

    /// What is inlined in a function, below what it is inlined in.
    fn inlined(&self, functions: &Functions, f: StageId) -> Vec<Node> {
        let mut read: Vec<StageId> = functions.get(f).reads.iter().map(|r| r.from).collect();
        read.sort_unstable();
        read.dedup();
        read.retain(|p| *self.plan(*p) == Plan::Inline);
        read.into_iter().map(|p| Node::Compute(p, self.inlined(functions, p))).collect()
    }

    /// The tree as text, a node a line.
    pub fn text(&self, functions: &Functions) -> String {
        let mut out = String::new();
        // Writing to a text does not fail.
        let _ = show(&mut out, functions, &self.nodes(functions), 0);
        out
    }
}

fn show(out: &mut String, functions: &Functions, node: &Node, depth: usize) -> fmt::Result {
    let name = |f: &StageId| &functions.get(*f).name;
    let pad = "  ".repeat(depth);
    let below = match node {
        Node::Root(below) => {
            writeln!(out, "{pad}root")?;
            below
        }
        Node::Loop(f, l, below) => {
            let by = if l.step == 1 { String::new() } else { format!(" by {}", l.step) };
            let kind = if l.vectorized { "vectorized" } else { "sequential" };
            writeln!(out, "{pad}loop {} {}{by}, {kind}", name(f), l.dim)?;
            below
        }
        Node::Storage(f, below) => {
            writeln!(out, "{pad}storage {}", name(f))?;
            below
        }
        Node::Compute(f, below) => {
            writeln!(out, "{pad}compute {}", name(f))?;
            below
        }
    };
    below.iter().try_for_each(|n| show(out, functions, n, depth + 1))
}
