//! A scheduled graph becomes a nest.
//!
//! Each stage becomes loops where its site says, over the box that its readers need there. What is computed in a loop is
//! computed at the start of each iteration. The last part of a loop starts so early that it is whole, or has a text of its
//! own, so that whole parts have known lengths. Accumulators of a reduction are variables, or, where loops over elements stand in those
//! over what is reduced, a tile of them.
//!
//! Where a check fails the nest ends, and the reference runs in its place; see `stage`.

mod elements;
mod loops;
mod note;
mod recur;
mod region;
mod seen;
mod stages;
mod tile;
mod triangle;
mod update;
mod window;

pub use seen::{Memory, Parts, Seen, Trips};

use super::plan::{Refusal, Schedule, Site};
use crate::diag::{Diagnostic, Result};
use crate::ir::{Def, Op, Scalar, Ty};
use crate::nest::{Arg, Buf, Expr, Failing, Func, Info, Nest, Site as Place, SiteId, Slot, Stmt, Var};
use crate::stage::{Body, DimId, Graph, Interval, Output, Ranges, Slot as Incoming, Source, StageId};
use rustc_hash::FxHashMap;

/// The only place that can fail.
pub(super) const FAILED: SiteId = SiteId(0);

/// The nest of a definition by its schedule.
///
/// # Errors
/// A bug: steps refuse what cannot be lowered.
pub fn lower(schedule: &Schedule, def: &Def) -> Result<Nest> {
    let (entry, _) = kept_or_not(schedule, || None).map_err(bug)?;
    let sig = def.fun.sig();
    let (params, ret): (Vec<Ty>, Ty) = (sig.params.clone(), sig.ret);
    let sites = vec![Place { failing: Failing::Reference, places: vec![] }];
    Ok(Nest { entry, funcs: vec![], sites, texts: vec![], prints: vec![], params, ret })
}

/// What lowering decides of memory and loops, for those who show a schedule.
///
/// # Errors
/// A bug, as [`lower`].
pub fn seen(schedule: &Schedule) -> Result<Seen> {
    let (_, seen) = kept_or_not(schedule, || Some(Seen::default())).map_err(bug)?;
    Ok(seen.unwrap_or_default())
}

/// How stages that are to be kept over the iterations of a loop are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kept {
    /// In memory for as much as is needed at once, where that is known.
    Rings,
    /// In memory for all iterations.
    Whole,
    /// Not at all: each iteration computes all that it needs.
    Not,
}

/// How what is to be kept over iterations can be kept: the best that is proved.
///
/// # Errors
/// Why it cannot.
pub(super) fn keeps(schedule: &Schedule) -> std::result::Result<Kept, Refusal> {
    let can = |how: Kept| function(schedule, None, how).map(|_| how);
    match schedule.plans.iter().any(|p| p.store.is_some()) {
        true => can(Kept::Rings).or_else(|_| can(Kept::Whole)),
        false => Ok(Kept::Not),
    }
}

/// A proof for all sizes may not be found again for some; then nothing is kept, and each iteration computes all that it needs.
fn kept_or_not(s: &Schedule, seen: impl Fn() -> Option<Seen>) -> Lowered<(Func, Option<Seen>)> {
    function(s, seen(), keeps(s).unwrap_or(Kept::Not))
}

fn bug(Refusal(reason): Refusal) -> Box<Diagnostic> {
    Diagnostic::bug(format!("a schedule cannot be lowered: {reason}"))
}

/// Where the elements of a stage are.
#[derive(Clone, Debug)]
enum Storage {
    /// One element: a variable a component.
    Vars(Vec<Var>),
    /// A box.
    Bufs(Boxed),
}

/// The memory of a box.
#[derive(Clone, Debug)]
struct Boxed {
    /// A buffer a component.
    bufs: Vec<Buf>,
    /// The least index of each dimension.
    least: Vec<Body>,
    /// How many indices of each there is room for.
    room: Vec<Body>,
    /// The dimension of which indices that are a multiple of its room apart share their place.
    ring: Option<usize>,
    /// The order of its dimensions in memory, where that is not their own.
    layout: Vec<usize>,
}

/// Statements in the making.
#[derive(Default)]
struct Block {
    stmts: Vec<Stmt>,
    /// Whether memory is taken in it.
    takes: bool,
}

struct Lower<'a> {
    s: &'a Schedule,
    g: Graph,
    /// The stages, producers first.
    order: Vec<StageId>,
    /// The boxes of stages that are needed in the present iteration of the loop whose stages are being computed.
    boxes: FxHashMap<StageId, Vec<Interval>>,
    f: Func,
    symbols: FxHashMap<u32, Var>,
    inputs: FxHashMap<u32, Buf>,
    stored: FxHashMap<StageId, Storage>,
    /// What the index of a loop is.
    index: FxHashMap<DimId, Expr>,
    /// The ranges of the loops around.
    ranges: Ranges,
    blocks: Vec<Block>,
    /// Accumulators of the reduction in the making.
    accs: Vec<Expr>,
    /// Bodies of the element in the making that have a variable, innermost arm last.
    known: Vec<FxHashMap<Body, Expr>>,
    /// A stage that was read before it was computed: an error of this program.
    missing: Option<String>,
    /// What is decided on the way, where somebody asks.
    seen: Option<Seen>,
    /// How what is to be kept over iterations is kept.
    kept: Kept,
}

type Lowered<T> = std::result::Result<T, Refusal>;

fn function(s: &Schedule, seen: Option<Seen>, kept: Kept) -> Lowered<(Func, Option<Seen>)> {
    let g = Graph::clone(&s.graph);
    let mut l = Lower {
        s,
        // That of the graph whose sites were checked.
        order: s.order(),
        boxes: FxHashMap::default(),
        g,
        f: Func { name: s.graph.name.clone(), ..Func::default() },
        symbols: FxHashMap::default(),
        inputs: FxHashMap::default(),
        stored: FxHashMap::default(),
        index: FxHashMap::default(),
        ranges: Ranges::default(),
        blocks: vec![Block::default()],
        accs: vec![],
        known: vec![FxHashMap::default()],
        missing: None,
        seen,
        kept,
    };
    l.incoming();
    for c in l.g.entry.clone() {
        let ok = l.element(&[c]);
        l.push(Stmt::Check(ok[0].clone(), FAILED, vec![]));
    }
    for stage in l.order.clone() {
        if s.plan(stage).site == Site::Root {
            l.at_root(stage)?;
        }
    }
    l.outgoing()?;
    if let Some(name) = l.missing {
        return Err(Refusal(format!("`{name}` is read where it is not computed")));
    }
    l.f.body = l.blocks.pop().map(|b| b.stmts).unwrap_or_default();
    let Lower { f, g, seen, .. } = l;
    Ok((f, seen.map(|seen| Seen { graph: g, ..seen })))
}

impl Lower<'_> {
    fn incoming(&mut self) {
        for slot in self.g.slots.clone() {
            let slot = match slot {
                Incoming::Symbol(k) => {
                    let known = &self.g.symbols[k.0 as usize];
                    let v = self.f.fresh(known.name.clone(), known.ty);
                    self.symbols.insert(k.0, v);
                    if known.size { Slot::Size(v) } else { Slot::Scalar(v) }
                }
                Incoming::Input(k) => {
                    let known = &self.g.inputs[k as usize];
                    let b = self.f.fresh_buf(Info::scalar(known.name.clone(), known.ty));
                    self.inputs.insert(k, b);
                    Slot::Data(b)
                }
            };
            self.f.params.push(slot);
        }
    }

    fn outgoing(&mut self) -> Lowered<()> {
        for o in self.g.outputs.clone() {
            let arg = match o {
                Output::Scalar(b) => Arg::Scalar(self.element(&[b])[0].clone()),
                Output::Size(b) => Arg::Size(self.element(&[b])[0].clone()),
                Output::Data(Source::Input(k)) => Arg::Data(self.inputs[&k], Expr::int(0)),
                Output::Data(Source::Stage(s, k)) => match &self.stored.get(&s) {
                    Some(Storage::Bufs(of)) => Arg::Data(of.bufs[k as usize], Expr::int(0)),
                    _ => return Err(Refusal("a result has no memory".into())),
                },
            };
            let ty = match &arg {
                Arg::Scalar(e) | Arg::Size(e) => self.f.ty(e),
                Arg::Data(b, _) => self.f.buf(*b).ty,
            };
            self.f.outs.push(ty);
            self.f.results.push(arg);
        }
        Ok(())
    }

    fn push(&mut self, s: Stmt) {
        if let Some(b) = self.blocks.last_mut() {
            b.takes |= matches!(s, Stmt::Alloc(..)) || matches!(&s, Stmt::If(..)) && takes(&s);
            b.stmts.push(s);
        }
    }

    /// An operation on 64-bit integers.
    fn ints(&mut self, op: Op, a: Body, b: Body) -> Body {
        self.g.bodies.ints(op, a, b)
    }

    fn is_zero(&self, b: Body) -> bool {
        self.g.bodies.as_int(b) == Some(0)
    }

    fn scalar(&mut self, name: &str, ty: Scalar) -> Var {
        self.f.fresh(name, ty)
    }
}

/// Whether memory is taken in the arms of a statement, and stays taken after it.
fn takes(s: &Stmt) -> bool {
    match s {
        Stmt::Alloc(..) => true,
        Stmt::If(_, a, b) => a.iter().chain(b).any(takes),
        _ => false,
    }
}
