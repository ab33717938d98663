//! A seed becomes a small random e-graph; an e-graph's choices become the cheapest one, by trying all.
//!
//! Classes of one type are united at random, so a class may well be part of itself. What the members
//! mean is not looked at: only choices and their costs are.

use super::read;
use daedal::cost::{Costing, Model, Sweep};
use daedal::ir::{Def, Head, Monoid, Op, Program, Terms, Ty};
use daedal::pipeline::SMALL;
use daedal::rewrite::egraph::Graph;
use daedal::rewrite::egraph::context::Context;
use daedal::rewrite::egraph::exact::Effort;
use daedal::rewrite::egraph::extract::{Candidates, Choice, extracted_kids};
use daedal::rewrite::egraph::language::{ENode, Label};
use daedal::rewrite::egraph::optimize::{Settings, imported};
use daedal::rewrite::egraph::pattern::Compiled;
use daedal::rewrite::egraph::saturate::{Limits, saturate};
use daedal::rewrite::egraph::trial::Trials;
use daedal::rewrite::inline::{Flat, MAX_FLAT, flatten, recursive};
use daedal::rules::Level;
use egg::Id;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeSet;
use std::sync::LazyLock;
use std::time::Instant;

/// The definition whose parameters the random e-graphs have.
pub fn frame() -> Program {
    read("frame.ks", "(def main Float ((x : Float) (k : Integer) (v : (Vec Float) n)) (add x (sum v)))").unwrap()
}

/// The e-graph of a definition after its first search, and the class of its body.
pub fn saturated(program: &Program, def: &Def, rules: &[Compiled<'_>], nodes: usize) -> Option<(Graph, Id)> {
    let calls = recursive(program);
    let params: Vec<Ty> = def.params.iter().map(|p| p.ty).collect();
    let flat = |terms: &_, id| flatten(program, &calls, (terms, id), &params, MAX_FLAT);
    let start = flat(&program.terms, def.term()?).filter(|_| !calls.contains(&def.fun))?;
    let limits = Limits { nodes, rounds: 30, looked: usize::MAX, matches: 500, forget: true };
    let (mut g, root) = imported(def, &settings(rules, limits, &flat), &start, None);
    saturate(&mut g, rules, &limits, None, &|| false);
    let root = g.find(root);
    g.analysis.contradiction.is_none().then_some((g, root))
}

/// Nothing is known of parameters but what their definition says.
static PARAMETERS: LazyLock<Context> = LazyLock::new(Context::default);

fn settings<'a>(
    rules: &'a [Compiled<'a>],
    limits: Limits,
    flatten: &'a (dyn Fn(&Terms, daedal::ir::Id) -> Option<Flat> + Sync),
) -> Settings<'a> {
    let (level, model) = (Level::Real, Model::Knossos);
    Settings {
        rules,
        level,
        model,
        sizes: &[],
        limits,
        context: &PARAMETERS,
        flatten,
        restarts: 1,
        trials: 0,
        journal: false,
        effort: SMALL,
        last: None,
        stop: &|_| false,
    }
}

/// A random e-graph over the parameters of [`frame`], and a closed class of it.
pub fn random(program: &Program, seed: u64) -> (Graph, Id) {
    let def = &program.named("main")[0];
    let calls = recursive(program);
    let params: Vec<Ty> = def.params.iter().map(|p| p.ty).collect();
    let flat = |terms: &_, id| flatten(program, &calls, (terms, id), &params, MAX_FLAT);
    let limits = Limits { nodes: 100, rounds: 1, looked: usize::MAX, matches: 1, forget: true };
    let start = flat(&program.terms, def.term().unwrap()).unwrap();
    let (g, root) = imported(def, &settings(&[], limits, &flat), &start, None);
    Maker { g, rng: StdRng::seed_from_u64(seed), pool: vec![] }.make(root)
}

struct Maker {
    g: Graph,
    rng: StdRng,
    pool: Vec<Id>,
}

impl Maker {
    fn make(mut self, root: Id) -> (Graph, Id) {
        let size = self.g.lookup(ENode::new(Head::Size(0), [self.param(2)])).unwrap();
        for i in 0..2 {
            let var = ENode::new(Head::Var(i, Ty::int()), [size]);
            let var = self.add(var);
            self.add(ENode::new(Head::Op(Op::ToFloat), [var]));
        }
        self.pool.extend([root, self.param(0), self.param(1), self.param(2), size]);
        for _ in 0..self.rng.random_range(3..14) {
            if let Some(node) = self.node(size) {
                self.add(node);
            }
        }
        for _ in 0..self.rng.random_range(1..6) {
            self.unite();
        }
        let mut root = *self.pool.last().unwrap();
        if self.g[root].data.ty != Ty::float() {
            root = self.of(Ty::float());
        }
        // A class that is part of itself may stay open: then it has no term here.
        for _ in 0..3 {
            if !self.g[root].data.free.is_closed() {
                root = self.g.add(ENode::new(Head::Reduce(Monoid::Add, 1), [size, root]));
            }
        }
        self.g.rebuild();
        let root = self.g.find(root);
        (self.g, root)
    }

    fn add(&mut self, node: ENode) -> Id {
        let id = self.g.add(node);
        self.pool.push(id);
        id
    }

    fn param(&self, k: usize) -> Id {
        let is = |n: &&ENode| matches!(n.label, Label::Param(i, _) if i as usize == k);
        let class = self.g.classes().find(|c| c.nodes.iter().any(|n| is(&n)));
        class.unwrap().id
    }

    /// A class of a type, later ones more often.
    fn of(&mut self, ty: Ty) -> Id {
        let fits: Vec<Id> = self.pool.iter().copied().filter(|id| self.g[*id].data.ty == ty).collect();
        let from = if self.rng.random_bool(0.5) { fits.len() / 2 } else { 0 };
        fits[self.rng.random_range(from..fits.len())]
    }

    fn node(&mut self, size: Id) -> Option<ENode> {
        let (f, v) = (Ty::float(), Ty::tensor(1, Ty::float()));
        let two = [Op::Add, Op::Mul, Op::Div, Op::Sub];
        Some(match self.rng.random_range(0..12) {
            0..4 => ENode::new(Head::Op(two[self.rng.random_range(0..4)]), [self.of(f), self.of(f)]),
            4 => ENode::new(Head::Op(if self.rng.random_bool(0.5) { Op::Exp } else { Op::Neg }), [self.of(f)]),
            5 => ENode::new(Head::Build(1), [size, self.of(f)]),
            6 => ENode::new(Head::Reduce(Monoid::Add, 1), [size, self.of(f)]),
            7 => ENode::new(Head::Index(1), [self.of(Ty::int()), self.of(v)]),
            8 => ENode::new(Head::Sum, [self.of(v)]),
            9 => {
                let sides = [self.of(f), self.of(f)];
                let test = self.g.add(ENode::new(Head::Op(Op::Lt), sides));
                ENode::new(Head::If, [test, self.of(f), self.of(f)])
            }
            10 => ENode::new(Head::Op(Op::Div), [self.of(Ty::int()), self.of(Ty::int())]),
            11 => {
                let lit = daedal::ir::Lit::float(f64::from(self.rng.random_range(1..4)));
                ENode::new(Head::Const(lit), [])
            }
            _ => return None,
        })
    }

    /// Two classes of one type become one, unless that would say that two literals are equal.
    fn unite(&mut self) {
        let a = self.pool[self.rng.random_range(0..self.pool.len())];
        let b = self.of(self.g[a].data.ty);
        if self.g[a].data.konst.is_none() || self.g[b].data.konst.is_none() {
            self.g.union(a, b);
            self.g.rebuild();
        }
    }
}

/// The members that terms of a class may have, and whether some of them are part of themselves.
pub fn reach(all: &Candidates<'_>, root: Id) -> (usize, bool) {
    let (mut seen, mut todo) = (BTreeSet::new(), vec![root]);
    while let Some(id) = todo.pop() {
        if seen.insert(id) {
            todo.extend(all.nodes[&id].iter().flat_map(|n| extracted_kids(n).iter().copied()));
        }
    }
    let mut left = seen.clone();
    loop {
        let leaf = |id: &Id| !all.nodes[id].iter().flat_map(extracted_kids).any(|k| left.contains(k));
        let Some(id) = left.iter().copied().find(leaf) else { break };
        left.remove(&id);
    }
    (seen.iter().map(|id| all.nodes[id].len()).sum(), !left.is_empty())
}

/// The least cost over all choices.
pub fn cheapest(all: &Candidates<'_>, root: Id, price: &mut dyn FnMut(&Choice) -> Option<f64>) -> Option<f64> {
    let mut least = None;
    complete(all, &mut Choice::default(), vec![root], &mut |choice| {
        least = [least, price(choice)].into_iter().flatten().reduce(f64::min);
    });
    least
}

/// Every completion of a choice; `open` are the classes that it still needs.
fn complete(all: &Candidates<'_>, choice: &mut Choice, mut open: Vec<Id>, found: &mut dyn FnMut(&Choice)) {
    while open.last().is_some_and(|id| choice.contains_key(id)) {
        open.pop();
    }
    let Some(class) = open.pop() else { return found(choice) };
    for node in &all.nodes[&class] {
        choice.insert(class, node.clone());
        complete(all, choice, open.iter().chain(extracted_kids(node)).copied().collect(), found);
    }
    choice.remove(&class);
}

/// Trials of one definition under the published model.
pub fn with_trials<T>(program: &Program, def: &Def, run: impl FnOnce(&mut Trials<'_, '_>) -> T) -> T {
    let mut costing = Costing::new(program, Model::Knossos, &[]);
    let mut sweep = Sweep::new(program, def, Model::Knossos, &[]).unwrap();
    let before = costing.def(def).unwrap();
    run(&mut Trials::new(def, before, (&mut costing, &mut sweep), Model::Knossos, &|_| false))
}

/// What extraction finds by default, and what the exact search finds after it.
pub struct Quality {
    /// The cost of the default.
    pub found: f64,
    /// The least cost that was seen.
    pub least: f64,
    /// Whether no choice of one member a class costs less.
    pub proved: bool,
    /// How long the two took.
    pub seconds: (f64, f64),
}

impl Quality {
    /// The default by the least, where that is known.
    pub fn ratio(&self) -> Option<f64> {
        self.proved.then_some(if self.least > 0.0 { self.found / self.least } else { 1.0 })
    }
}

/// Extracts from an e-graph by default, then with an exact search.
pub fn quality(program: &Program, def: &Def, g: &mut Graph, root: Id, effort: Effort) -> Option<Quality> {
    with_trials(program, def, |t| {
        let from = Instant::now();
        t.first(g, root);
        t.all(g, root, SMALL, 300);
        let found = t.best.as_ref()?.cost;
        let first = from.elapsed().as_secs_f64();
        let all = Candidates::new(g, Model::Knossos, vec![]);
        let (_, proved) = t.exact(&all, root, effort);
        let seconds = (first, from.elapsed().as_secs_f64() - first);
        Some(Quality { found, least: t.best.as_ref()?.cost, proved, seconds })
    })
}
