//! A schedule becomes a tree of words and numbers, for those who draw it: stages, loops, boxes, and who reads whom.
//!
//! Its numbers are those that lowering decides ([`super::lower::seen`]); what depends on symbols stands as text, and what is not
//! known is left out. It must not know how it is drawn.

mod boxes;
mod read;
mod words;

use super::lower::{Seen, seen};
use super::plan::{Kind, Schedule, Site};
use crate::diag::Result;
use crate::ir::{Scalar, deep};
use crate::stage::{Slot, StageId};

/// A schedule as words and numbers.
#[derive(Clone, Debug, Default)]
pub struct Outline {
    /// The name of the definition.
    pub name: String,
    /// Numbers that come in, where the schedule is for these alone: names and values.
    pub sizes: Vec<(String, String)>,
    /// Tensors that come in.
    pub inputs: Vec<Input>,
    /// The stages that are computed whole, in the order in which they run.
    pub stages: Vec<Stage>,
    /// The stages that would be computed where they are read, and are read by nothing: checks that always hold.
    pub unread: Vec<String>,
}

/// A tensor that comes in.
#[derive(Clone, Debug)]
pub struct Input {
    /// Its number among all that is read.
    pub id: usize,
    /// What it is called.
    pub name: String,
    /// Its elements and extents.
    pub memory: Memory,
}

/// What is allocated, or comes in.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// Element types and extents.
    pub text: String,
    /// Bytes, where the extents are numbers.
    pub bytes: Option<u64>,
    /// Each box that is allocated in some text of the loops, with where it begins.
    pub each: Vec<String>,
}

/// A stage, with all that is computed in its loops.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Its number among all that is read.
    pub id: usize,
    /// Its name.
    pub name: String,
    /// Its dimensions.
    pub dims: Vec<String>,
    /// Whether it is part of the result.
    pub result: bool,
    /// What is allocated for it where it is computed.
    pub memory: Memory,
    /// The tile of accumulators, where it has one.
    pub tile: Option<Memory>,
    /// Its outermost loop.
    pub outer: Option<Box<Loop>>,
    /// What its innermost loop does.
    pub body: Body,
    /// Its definition at length.
    pub definition: Vec<String>,
}

/// What a stage does at each point.
#[derive(Clone, Debug)]
pub struct Body {
    /// The elements, in one line; nothing where it has none.
    pub text: String,
    /// What it reads, by number and name; what is inlined in it reads for it.
    pub reads: Vec<(usize, String)>,
    /// The stages that are computed where it reads them.
    pub inlined: Vec<String>,
}

/// A loop, with all that is computed in it.
#[derive(Clone, Debug)]
pub struct Loop {
    /// Its name.
    pub name: String,
    /// How often it runs, as `< 16`; nothing where that is not known.
    pub count: String,
    /// How it runs, and what is special about its last iteration.
    pub notes: Vec<String>,
    /// How it runs.
    pub kind: Kind,
    /// Whether each iteration needs the one before.
    pub ordered: bool,
    /// More about it, for those who ask.
    pub more: Vec<String>,
    /// The stages that are computed in each iteration, in order.
    pub hosted: Vec<Stage>,
    /// The loop inside of it; nothing where it is the innermost one.
    pub inner: Option<Box<Loop>>,
}

impl Outline {
    /// The outline of a schedule, which may be for some numbers that come in alone.
    ///
    /// # Errors
    /// A bug: the schedule cannot be lowered.
    pub fn of(s: &Schedule, incoming: Option<&[f64]>) -> Result<Outline> {
        let maker = Maker { s, seen: seen(s)?, order: s.order() };
        let g = &s.graph;
        let numbers = g.slots.iter().zip(incoming.unwrap_or_default()).filter_map(|(slot, n)| match slot {
            Slot::Symbol(k) => {
                let known = &g.symbols[k.0 as usize];
                (known.ty == Scalar::I64).then(|| (known.name.clone(), format!("{n}")))
            }
            Slot::Input(_) => None,
        });
        let roots = maker.order.iter().filter(|p| s.plan(**p).site == Site::Root);
        let read = |p: StageId| s.plans.iter().any(|plan| plan.inlined.iter().any(|(q, _)| *q == p));
        let unread = |p: &&StageId| s.plan(**p).site == Site::Inline && !read(**p);
        Ok(Outline {
            name: g.name.clone(),
            sizes: numbers.collect(),
            inputs: (0..g.inputs.len()).map(|k| maker.input(k)).collect(),
            stages: roots.map(|p| maker.stage(*p)).collect(),
            unread: maker.order.iter().filter(unread).map(|p| g.stage(*p).name.clone()).collect(),
        })
    }
}

/// What outlines are made of.
struct Maker<'a> {
    s: &'a Schedule,
    seen: Seen,
    /// The stages, producers first.
    order: Vec<StageId>,
}

impl Maker<'_> {
    fn stage(&self, of: StageId) -> Stage {
        deep(|| {
            let (plan, known) = (self.s.plan(of), self.s.graph.stage(of));
            let own = plan.dims.len() - plan.over;
            let mut inner = None;
            for k in (0..plan.loops.len()).rev() {
                inner = Some(Box::new(self.one_loop(of, k, inner)));
            }
            Stage {
                id: of.0 as usize,
                name: known.name.clone(),
                dims: plan.dims[..own].iter().map(|(name, _)| name.clone()).collect(),
                result: self.s.graph.handed().iter().any(|from| from.stage() == Some(of)),
                memory: self.memory(of),
                tile: self.tile(of),
                outer: inner,
                body: self.body(of),
                definition: self.definition(of),
            }
        })
    }

    fn one_loop(&self, of: StageId, k: usize, inner: Option<Box<Loop>>) -> Loop {
        let plan = self.s.plan(of);
        let l = &plan.loops[k];
        let trips = self.trips(of, &l.name);
        let mut notes: Vec<String> = match l.kind {
            Kind::Serial => vec![],
            Kind::Parallel => vec!["parallel".into()],
            Kind::Vector => vec!["vector".into()],
            Kind::Unrolled => vec!["unrolled".into()],
        };
        let ordered = plan.reduces(&l.name);
        if ordered {
            notes.push(if plan.root(&l.name) == plan.steps { "steps".into() } else { "reduced".into() });
        }
        notes.extend(trips.last);
        let (name, kind) = (l.name.clone(), l.kind);
        Loop {
            name,
            count: trips.count,
            notes,
            kind,
            ordered,
            more: trips.more,
            hosted: self.hosted(of, &l.name),
            inner,
        }
    }

    /// What is computed in each iteration of a loop; states of a recurrence follow what is computed for them.
    fn hosted(&self, host: StageId, name: &str) -> Vec<Stage> {
        let is_here = |p: &&StageId| matches!(&self.s.plan(**p).site, Site::At(to, at) if *to == host && at == name);
        let state = |p: &StageId| self.s.graph.leader(*p) == host;
        let (states, others): (Vec<StageId>, Vec<StageId>) = self.order.iter().filter(is_here).partition(|p| state(p));
        others.into_iter().chain(states).map(|p| self.stage(p)).collect()
    }
}
