//! A schedule tree becomes a list of our steps, which is legal and changes no bit, or the reason why our steps cannot say what
//! it says.
//!
//! Memory that is taken around all loops of the function in which another one is computed has no loop of that function there:
//! its outermost loop is cut into one part, and the loop over that part stands for the place.

use super::boxes::{Boxes, counts};
use super::cost::Costs;
use super::functions::Functions;
use super::tree::{Plan, Tree};
use crate::schedule::Schedule;
use crate::schedule::Step;
use crate::schedule::plan::Kind;
use crate::stage::StageId;

/// A function with more operations at a point, all inlined ones counted at each place, is no text that a compiler takes.
const OPERATIONS: f64 = 4096.0;

/// The names of a function's loops, and of the loop over one part around them, where there is one.
#[derive(Clone, Default)]
struct Names {
    loops: Vec<String>,
    around: Option<String>,
}

/// The schedule of a tree, from one without steps but such that compute stages whole.
///
/// # Errors
/// Why our steps cannot say what the tree says.
pub fn schedule(functions: &Functions, tree: &Tree, start: &Schedule) -> Result<Schedule, String> {
    let most = Costs::new(functions).largest(tree);
    if most > OPERATIONS {
        return Err(format!("an element would be {most:.0} operations, with all that is inlined in it"));
    }
    let mut made = Making { functions, tree, s: start.clone(), names: vec![Names::default(); functions.all.len()] };
    for f in functions.order.iter().filter(|f| *tree.plan(**f) == Plan::Inline) {
        made.take(Step::Inline { stage: made.name(*f) })?;
    }
    // Readers first: where a stage is computed, loops are there.
    for f in functions.order.iter().rev().copied() {
        made.loops(f)?;
    }
    for f in functions.order.iter().rev().copied() {
        made.site(f)?;
    }
    for f in functions.order.iter().copied() {
        if let Some(k) = tree.loops(f).iter().position(|l| l.vectorized) {
            let of = made.names[f.0 as usize].loops[k].clone();
            made.take(Step::Run { stage: made.name(f), of, kind: Kind::Vector })?;
        }
    }
    Ok(made.s)
}

struct Making<'a> {
    functions: &'a Functions,
    tree: &'a Tree,
    s: Schedule,
    names: Vec<Names>,
}

impl Making<'_> {
    fn name(&self, f: StageId) -> String {
        self.functions.get(f).name.clone()
    }

    fn take(&mut self, step: Step) -> Result<(), String> {
        step.apply(&mut self.s).map_err(|why| format!("`{step}`: {why}"))
    }

    /// Whether memory of something that is computed in a function's loops is taken around all of them.
    fn is_kept(&self, f: StageId) -> bool {
        let tree = self.tree;
        self.functions.ids().any(|g| {
            let inside = matches!(tree.compute(g), Some(Some((h, _))) if h == f);
            inside && tree.storage(g) == tree.compute(f)
        })
    }

    /// Makes the loops of a function.
    fn loops(&mut self, f: StageId) -> Result<(), String> {
        let loops = self.tree.loops(f).to_vec();
        if loops.is_empty() {
            return Ok(());
        }
        let (known, stage) = (self.functions.get(f), self.name(f));
        let mut names = vec![String::new(); loops.len()];
        for dim in 0..known.extents.len() {
            let mut of = self.s.plan(f).dims[dim].0.clone();
            for (k, l) in loops.iter().enumerate().filter(|(_, l)| l.dim == dim) {
                if l.step == 1 {
                    names[k] = of.clone();
                    continue;
                }
                (names[k], of) = self.split(f, &of, l.step)?;
            }
        }
        let mut order = names.clone();
        let mut around = None;
        if self.is_kept(f) {
            let mut boxes = Boxes::new(self.functions, self.tree);
            let own = boxes.needed(f, self.tree.compute(f).flatten());
            let extents: Vec<i64> = own.iter().map(|r| r.extent()).chain(known.extents[known.own..].to_vec()).collect();
            let all = counts(&extents, &loops)[0] as i64;
            let (outer, inner) = self.split(f, &names[0].clone(), all)?;
            (order[0], names[0]) = (inner.clone(), inner);
            order.insert(0, outer.clone());
            around = Some(outer);
        }
        if self.s.plan(f).loops.iter().map(|l| &l.name).ne(&order) {
            self.take(Step::Reorder { stage, order })?;
        }
        self.names[f.0 as usize] = Names { loops: names, around };
        Ok(())
    }

    /// Cuts a loop into parts; gives the names of the loops over them and inside.
    fn split(&mut self, f: StageId, of: &str, factor: i64) -> Result<(String, String), String> {
        self.take(Step::Split { stage: self.name(f), of: of.to_string(), factor })?;
        let made = self.s.plan(f).splits.last().map(|p| (p.outer.clone(), p.inner.clone()));
        made.ok_or_else(|| "a split made no loops".to_string())
    }

    /// Computes a function where the tree says, in memory that is taken where it says.
    fn site(&mut self, f: StageId) -> Result<(), String> {
        let (Some(Some((host, k))), Some(storage)) = (self.tree.compute(f), self.tree.storage(f)) else {
            return Ok(());
        };
        let (stage, reader) = (self.name(f), self.name(host));
        let names = self.names[host.0 as usize].clone();
        let at = names.loops[k].clone();
        self.take(Step::ComputeAt { stage: stage.clone(), reader: reader.clone(), at })?;
        let at = match storage {
            Some((h, j)) if h == host && j == k => return Ok(()),
            Some((h, j)) if h == host => names.loops[j].clone(),
            _ if storage == self.tree.compute(host).flatten() => names.around.unwrap_or_default(),
            _ => {
                return Err(format!(
                    "memory of `{stage}` would be kept while loops of `{reader}` run again and again, and `store-at` names loops of `{reader}` alone"
                ));
            }
        };
        self.take(Step::StoreAt { stage, reader, at })
    }
}
