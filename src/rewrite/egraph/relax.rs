//! A linear program whose least value no choice can undercut: the bound of the exact search.
//!
//! A class may stand in several loops, and is computed in each. So the e-graph is unfolded into
//! places: a class with the binders of its free variables. Elaboration moves a place to the loop of
//! its innermost variable, so its cost counts as often as that loop's body runs; each place is paid
//! once; a let is paid where two places read one, or where one is moved out of a loop. The dearer arm
//! of an `if` costs at least the mean of both, so what stands in arms counts half for each `if`.

use super::extract::{Candidates, extracted_kids, free_of};
use super::language::{ENode, Label};
use crate::cost::Model;
use crate::ir::{Head, Lit};
use egg::Id;
use good_lp::{Expression, ProblemVariables, ResolutionError, Solution, SolverModel, Variable, microlp, variable};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// The members that may still be chosen, by class: positions in [`Candidates::nodes`].
pub type Open = BTreeMap<Id, Vec<usize>>;

/// Members that may not all be chosen: they would make a cycle.
pub type Cut = Vec<(Id, usize)>;

/// The value of the linear program, and how much of each member its solution takes.
pub struct Relaxed {
    /// No choice costs less.
    pub bound: f64,
    /// Between 0 and 1, in the order of [`Open`].
    pub taken: BTreeMap<Id, Vec<f64>>,
}

/// What the linear program says.
pub enum Verdict {
    /// A bound.
    Bound(Relaxed),
    /// There is no choice.
    Nothing,
    /// The program is too large, or the solver failed.
    Unknown,
}

/// Arms inside arms count down to this depth.
const ARMS: usize = 4;

/// One variable of a binder: the place and member that bind it, and which of its variables it is.
type Bound = (usize, usize, usize);

/// What binds the free variables of a class, by index.
type Scope = Vec<(usize, Bound)>;

/// A member that reads a place: whether it is chosen, how often it reads, and whether what it reads is
/// moved out of a loop.
type Reader = (Variable, usize, bool);

/// The members that read a place, by their places.
type Readers = BTreeMap<usize, Vec<Reader>>;

/// A class where it is computed.
struct Place {
    class: Id,
    scope: Scope,
    /// How many arms it stands in.
    arms: usize,
    /// How often the loop runs in which it is computed.
    times: f64,
    /// The classes whose loops it stands in: it cannot be one of them again.
    inside: BTreeSet<Id>,
    /// Its members with their children, those left out that cannot be chosen here.
    members: Vec<(usize, Vec<Edge>)>,
}

/// A child of a member at a place.
#[derive(Clone, Copy)]
struct Edge {
    to: usize,
    /// Whether the child is moved out of a loop that it is written in.
    leaves: bool,
}

/// Whether the linear program bounds the cost that counts, whatever is chosen.
pub fn is_bound(all: &Candidates<'_>, open: &Open) -> bool {
    let members = || open.iter().flat_map(|(id, each)| each.iter().map(move |k| (*id, *k)));
    let regular = members().all(|(id, k)| {
        let (node, free) = (&all.nodes[&id][k], all.graph()[id].data.free);
        let loops = node.head().is_some_and(|h| h.is_loop());
        free_of(all.graph(), node) == free && !free.has(60) && (!loops || all.price(id, k).1 >= 2.0)
    });
    all.model() == Model::Knossos && regular && literals_differ(all, open)
}

/// Whether no two classes can become the same literal: then equal terms are of equal classes.
fn literals_differ(all: &Candidates<'_>, open: &Open) -> bool {
    let mut values: BTreeMap<Id, BTreeSet<Lit>> = BTreeMap::new();
    loop {
        let mut changed = false;
        for (id, each) in open {
            for k in each {
                let Some(new) = folded(&all.nodes[id][*k], &values) else { return false };
                let known = values.entry(*id).or_default();
                let before = known.len();
                known.extend(new);
                changed |= known.len() > before;
                if known.len() > 8 {
                    return false;
                }
            }
        }
        if !changed {
            break;
        }
    }
    let mut seen = BTreeSet::new();
    values.values().flatten().all(|v| seen.insert(*v))
}

/// The literals that a member can become. Nothing where they are many.
fn folded(node: &ENode, values: &BTreeMap<Id, BTreeSet<Lit>>) -> Option<Vec<Lit>> {
    let mut args: Vec<Vec<Lit>> = vec![vec![]];
    match node.label {
        Label::Head(Head::Const(lit)) => return Some(vec![lit]),
        Label::Head(Head::Op(_) | Head::Cast(_)) => {
            for kid in &node.kids {
                let known = values.get(kid);
                let with = |a: &Vec<Lit>| known.into_iter().flatten().map(|v| [a.as_slice(), &[*v]].concat()).collect();
                args = args.iter().flat_map(|a| -> Vec<Vec<Lit>> { with(a) }).collect();
                if args.len() > 64 {
                    return None;
                }
            }
        }
        Label::Head(_) | Label::Param(..) | Label::Unknown => return Some(vec![]),
    }
    let value = |a: &Vec<Lit>| match node.head()? {
        Head::Op(op) => op.eval(a).ok(),
        Head::Cast(s) => a.first()?.cast(s),
        _ => None,
    };
    Some(args.iter().filter_map(value).collect())
}

/// The bound of all choices within `open`.
pub fn relax(all: &Candidates<'_>, root: Id, open: &Open, cuts: &[Cut], most: usize) -> Verdict {
    let mut unfold = Unfold { all, open, places: vec![], known: FxHashMap::default(), most };
    if unfold.run(root).is_none() {
        return Verdict::Unknown;
    }
    let places = unfold.places;
    let mut program = Program::new(all, open, &places);
    program.activate();
    program.charge();
    program.solve(cuts)
}

struct Unfold<'a> {
    all: &'a Candidates<'a>,
    open: &'a Open,
    places: Vec<Place>,
    known: FxHashMap<(Id, Scope, usize), usize>,
    most: usize,
}

impl Unfold<'_> {
    /// All places, from the root on. Nothing where they are too many.
    fn run(&mut self, root: Id) -> Option<()> {
        self.place(root, vec![], 0)?;
        let mut next = 0;
        let mut members = 0;
        while next < self.places.len() {
            let class = self.places[next].class;
            for k in &self.open[&class] {
                if let Some(edges) = self.edges(next, *k) {
                    self.places[next].members.push((*k, edges));
                    members += 1;
                }
            }
            if self.places.len() > self.most || members > 4 * self.most {
                return None;
            }
            next += 1;
        }
        Some(())
    }

    /// The place of a class under binders. Nothing where it would stand inside itself.
    fn place(&mut self, class: Id, scope: Scope, arms: usize) -> Option<usize> {
        let inside: BTreeSet<Id> = scope
            .iter()
            .flat_map(|(_, (p, ..))| self.places[*p].inside.iter().copied().chain([self.places[*p].class]))
            .collect();
        if inside.contains(&class) {
            return None;
        }
        let key = (class, scope, arms);
        if let Some(found) = self.known.get(&key) {
            return Some(*found);
        }
        let times = key.1.first().map_or(1.0, |(_, (p, k, _))| {
            let binder = &self.places[*p];
            binder.times * self.all.price(binder.class, *k).1
        });
        self.places.push(Place { class, scope: key.1.clone(), arms, times, inside, members: vec![] });
        self.known.insert(key, self.places.len() - 1);
        Some(self.places.len() - 1)
    }

    fn edges(&mut self, from: usize, member: usize) -> Option<Vec<Edge>> {
        let node = &self.all.nodes[&self.places[from].class][member];
        let kids = extracted_kids(node);
        let n = kids.len();
        let mut out = vec![];
        for (k, kid) in kids.iter().enumerate() {
            let head = node.head()?;
            let binds = head.binds(k, n);
            let free = self.all.graph()[*kid].data.free;
            let mut scope = vec![];
            for i in (0..60).filter(|i| free.has(*i)) {
                let bound = match i.checked_sub(binds) {
                    None => (from, member, binds - 1 - i),
                    Some(outer) => self.places[from].scope.iter().find(|(j, _)| *j == outer)?.1,
                };
                scope.push((i, bound));
            }
            let arm = usize::from(head == Head::If && k > 0);
            let arms = (self.places[from].arms + arm).min(ARMS);
            // The loop around the place where the child is written, and those that the child needs.
            let around = match binds {
                0 => self.places[from].scope.first().map(|(_, (p, m, _))| (*p, *m)),
                _ => Some((from, member)),
            };
            let leaves = around.is_some_and(|(p, m)| scope.iter().all(|(_, (q, l, _))| (*q, *l) != (p, m)));
            out.push(Edge { to: self.place(*kid, scope, arms)?, leaves: leaves && arm == 0 });
        }
        Some(out)
    }
}

/// A linear program over places.
struct Program<'a> {
    all: &'a Candidates<'a>,
    open: &'a Open,
    places: &'a [Place],
    variables: ProblemVariables,
    /// Whether a member is the choice of its class.
    chosen: BTreeMap<Id, Vec<Variable>>,
    /// Whether a place is computed by a member; those of a class with one place are its choice.
    used: Vec<Vec<Variable>>,
    constraints: Vec<good_lp::Constraint>,
    objective: Expression,
}

impl<'a> Program<'a> {
    fn new(all: &'a Candidates<'a>, open: &'a Open, places: &'a [Place]) -> Program<'a> {
        let mut variables = ProblemVariables::new();
        let mut count: BTreeMap<Id, usize> = BTreeMap::new();
        for place in places {
            *count.entry(place.class).or_default() += 1;
        }
        let fraction = || variable().min(0.0).max(1.0);
        let mut chosen: BTreeMap<Id, Vec<Variable>> = BTreeMap::new();
        for id in count.keys() {
            chosen.insert(*id, open[id].iter().map(|_| variables.add(fraction())).collect());
        }
        let (mut used, mut constraints) = (vec![], vec![]);
        for place in places {
            let mut each = vec![];
            for (k, _) in &place.members {
                let at = open[&place.class].iter().position(|m| m == k).unwrap_or_default();
                let choice = chosen[&place.class][at];
                each.push(match count[&place.class] {
                    1 => choice,
                    _ => {
                        let here = variables.add(fraction());
                        constraints.push((here - choice).leq(0.0));
                        here
                    }
                });
            }
            used.push(each);
        }
        for choice in chosen.values().filter(|c| c.len() > 1) {
            constraints.push(choice.iter().sum::<Expression>().leq(1.0));
        }
        Program { all, open, places, variables, chosen, used, constraints, objective: Expression::default() }
    }

    /// How much a place is computed.
    fn active(&self, place: usize) -> Expression {
        self.used[place].iter().sum()
    }

    /// The readers of each place.
    fn readers(&self) -> Vec<Readers> {
        let mut out = vec![Readers::new(); self.places.len()];
        for (p, place) in self.places.iter().enumerate() {
            for ((_, edges), var) in place.members.iter().zip(&self.used[p]) {
                let mut seen: BTreeMap<usize, (usize, bool)> = BTreeMap::new();
                for e in edges {
                    let entry = seen.entry(e.to).or_default();
                    *entry = (entry.0 + 1, entry.1 || e.leaves);
                }
                for (to, (n, leaves)) in seen {
                    out[to].entry(p).or_default().push((*var, n, leaves));
                }
            }
        }
        out
    }

    /// The root is computed, and whatever a computed member reads.
    fn activate(&mut self) {
        self.constraints.push(self.active(0).geq(1.0));
        for (to, readers) in self.readers().into_iter().enumerate() {
            for each in readers.into_values() {
                let reads: Expression = each.iter().map(|(var, ..)| var).sum();
                self.constraints.push((self.active(to) - reads).geq(0.0));
            }
        }
    }

    /// What places and lets cost.
    fn charge(&mut self) {
        let mut at: BTreeMap<(Id, &Scope), Vec<usize>> = BTreeMap::new();
        for (p, place) in self.places.iter().enumerate() {
            at.entry((place.class, &place.scope)).or_default().push(p);
        }
        for same in at.values() {
            for p in same {
                let shallower: Vec<usize> =
                    same.iter().copied().filter(|q| self.places[*q].arms < self.places[*p].arms).collect();
                self.pay(*p, &shallower);
            }
        }
        for (to, readers) in self.readers().into_iter().enumerate() {
            if self.places[to].arms == 0 {
                self.bind(to, &readers);
            }
        }
    }

    /// What a place costs where none of the `shallower` ones, outside of its arms, is computed anyway.
    fn pay(&mut self, p: usize, shallower: &[usize]) {
        let places = self.places;
        let place = &places[p];
        let share = if place.arms >= ARMS { 0.0 } else { 0.5f64.powi(place.arms as i32) };
        for (k, (member, _)) in place.members.iter().enumerate() {
            let cost = self.all.price(place.class, *member).0 * place.times * share;
            if cost == 0.0 {
                continue;
            }
            let var = self.used[p][k];
            if shallower.is_empty() {
                self.objective.add_mul(cost, var);
                continue;
            }
            let paid = self.variables.add(variable().min(0.0));
            let anyway: Expression = shallower.iter().map(|q| self.active(*q)).sum();
            self.constraints.push((paid + anyway - var).geq(0.0));
            self.objective.add_mul(cost, paid);
        }
    }

    /// The let of a place that is read twice, or moved out of a loop.
    fn bind(&mut self, to: usize, readers: &Readers) {
        let place = &self.places[to];
        let named = place.members.iter().all(|(k, _)| self.all.is_named(place.class, *k));
        let least = place.members.iter().map(|(k, _)| self.all.price(place.class, *k).0).fold(f64::INFINITY, f64::min);
        let cost = self.all.model().binding().min(least) * place.times;
        let solid: Vec<&Vec<Reader>> =
            readers.iter().filter(|(p, _)| self.places[**p].arms == 0).map(|(_, each)| each).collect();
        if !named || cost <= 0.0 || !cost.is_finite() || solid.is_empty() {
            return;
        }
        let bound = self.variables.add(variable().min(0.0).max(1.0));
        let sum = |each: &[Reader], alone: bool| -> Expression {
            each.iter().filter(|(_, n, leaves)| !alone || *n > 1 || *leaves).map(|(var, ..)| var).sum()
        };
        for each in &solid {
            self.constraints.push((bound - sum(each, true)).geq(0.0));
        }
        for (k, a) in solid.iter().enumerate() {
            for b in &solid[k + 1..] {
                self.constraints.push((bound - sum(a, false) - sum(b, false)).geq(-1.0));
            }
        }
        self.objective.add_mul(cost, bound);
    }

    fn solve(self, cuts: &[Cut]) -> Verdict {
        let Program { variables, mut constraints, objective, chosen, open, .. } = self;
        for cut in cuts {
            let var = |(id, k): &(Id, usize)| {
                let at = open.get(id)?.iter().position(|m| m == k)?;
                chosen.get(id).map(|c| c[at])
            };
            if let Some(vars) = cut.iter().map(var).collect::<Option<Vec<_>>>() {
                constraints.push(vars.iter().sum::<Expression>().leq(vars.len() as f64 - 1.0));
            }
        }
        let solved = variables.minimise(objective.clone()).using(microlp).with_all(constraints).solve();
        match solved {
            Ok(solution) => {
                let taken = chosen.iter().map(|(id, vars)| (*id, vars.iter().map(|v| solution.value(*v)).collect()));
                Verdict::Bound(Relaxed { bound: solution.eval(&objective), taken: taken.collect() })
            }
            Err(ResolutionError::Infeasible) => Verdict::Nothing,
            Err(_) => Verdict::Unknown,
        }
    }
}
