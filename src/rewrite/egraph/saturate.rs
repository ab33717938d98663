//! Rules are applied until nothing changes or a limit is reached. Limits are counts.
//!
//! The node limit is checked before each single application, so it is passed by one application at
//! most.

use super::Graph;
use super::fire::fire;
use super::fresh::{Fresh, Part};
use super::graph::Facts;
use super::language::Label;
use super::parts::simplify;
use super::pattern::Compiled;
use crate::ir::{Head, Op};
use crate::rules::Level;
use egg::{Id, SearchMatches, Subst};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

/// Limits of one search.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// E-nodes.
    pub nodes: usize,
    /// Rounds in which every rule is tried.
    pub rounds: usize,
    /// Classes at which a rule is looked for, and matches that are found: what a search takes time for.
    pub looked: usize,
    /// Matches of one rule in one round, above which the rule is set aside for some rounds.
    pub matches: usize,
    /// Whether members that no cheapest term has are forgotten: all but the literal of a class whose value
    /// is known, and those that are part of themselves but for products with 1. Rules would unroll them for
    /// ever: 0 is 0 times anything, and every number is itself and 0.
    pub forget: bool,
}

/// What a search did.
#[derive(Clone, Default, Debug)]
pub struct Report {
    /// How often each rule changed something.
    pub fired: std::collections::BTreeMap<String, usize>,
    /// Whether nothing more could be done.
    pub saturated: bool,
    /// Rounds that ran.
    pub rounds: usize,
    /// Nodes at the start, and after each round.
    pub growth: Vec<usize>,
    /// Classes at which a rule was looked for, and matches that were found: what a search takes time for.
    pub looked: usize,
}

/// A rule, when it was looked for last, and the matches that it was applied to.
struct Watched<'a> {
    rule: &'a Compiled<'a>,
    looked: u32,
    /// Only of rules of which equal matches make equal terms. A class that was united counts as another one.
    done: FxHashSet<SmallVec<[Id; 4]>>,
}

/// Applies rules, phase by phase, within limits, until `stop` says that it is enough; in a part only, where
/// there is one.
pub fn saturate(
    g: &mut Graph,
    rules: &[Compiled<'_>],
    limits: &Limits,
    part: Option<&Part>,
    stop: &dyn Fn() -> bool,
) -> Report {
    let mut report = Report { growth: vec![g.total_size()], ..Report::default() };
    let last = rules.iter().map(|r| r.rule.phase).max().unwrap_or(1);
    let mut watched: Vec<Watched<'_>> = vec![];
    for phase in 1..=last {
        watched.extend(rules.iter().filter(|r| r.rule.phase == phase).map(Watched::new));
        report.saturated = Rounds { watched: &mut watched, limits, part, stop, report: &mut report }.run(g);
        report.growth.push(g.total_size());
        if g.total_size() >= limits.nodes || report.looked >= limits.looked || stop() {
            break;
        }
    }
    report
}

impl<'a> Watched<'a> {
    fn new(rule: &'a Compiled<'a>) -> Watched<'a> {
        Watched { rule, looked: 0, done: FxHashSet::default() }
    }

    /// Applies the rule to a match, unless that was done before; whether anything changed.
    fn fire(&mut self, g: &mut Graph, class: Id, subst: &Subst) -> bool {
        if !self.rule.flat {
            return fire(g, self.rule, class, subst).is_some_and(|changed| changed);
        }
        let classes: SmallVec<[Id; 4]> = self.rule.places.values().map(|p| subst[p.var]).collect();
        if self.done.contains(&classes) {
            return false;
        }
        let changed = fire(g, self.rule, class, subst);
        // Where a condition is not known to hold it may be, later.
        if changed.is_some() {
            self.done.insert(classes);
        }
        changed == Some(true)
    }
}

/// The rounds of one phase.
struct Rounds<'a, 'r> {
    watched: &'a mut [Watched<'r>],
    limits: &'a Limits,
    part: Option<&'a Part>,
    stop: &'a dyn Fn() -> bool,
    report: &'a mut Report,
}

/// A rule by its number, and its matches.
type Found<'r> = (usize, Vec<SearchMatches<'r, super::language::ENode>>);

/// Congruence is closed once this share of the classes may have changed: that takes a look at all of them.
const REBUILD_SHARE: usize = 16;

impl<'r> Rounds<'_, 'r> {
    /// Whether nothing more can be done.
    fn run(&mut self, g: &mut Graph) -> bool {
        // A rule with too many matches rests for a while, each time longer (egg's backoff).
        let mut resting = vec![(0usize, 0u32); self.watched.len()];
        for round in 0..self.limits.rounds {
            if self.report.rounds > 0 {
                self.report.growth.push(g.total_size());
            }
            self.report.rounds += 1;
            let mut changed = simplify(g, self.limits.nodes);
            settle(g, self.limits.forget);
            let Some((found, skipped)) = self.search(g, round, &mut resting) else { return false };
            g.analysis.now += 1;
            let Some(fired) = self.apply(g, found) else { return false };
            changed |= fired;
            if g.analysis.contradiction.is_some() || !changed && !skipped {
                return !changed;
            }
        }
        false
    }

    /// All rules are searched for before any is applied, so that those at the end of the list see the same
    /// terms as those at its beginning. Also, whether one of them rests.
    fn search(&mut self, g: &Graph, round: usize, resting: &mut [(usize, u32)]) -> Option<(Vec<Found<'r>>, bool)> {
        let fresh = Fresh::new(g, self.watched.iter().map(|w| w.rule.reach).max().unwrap_or(0), self.part);
        let (mut found, mut skipped) = (vec![], false);
        for (k, (watched, (until, times))) in self.watched.iter_mut().zip(resting).enumerate() {
            if *until > round {
                skipped = true;
                continue;
            }
            if self.report.looked >= self.limits.looked || (self.stop)() {
                return None;
            }
            let limit = self.limits.matches << *times;
            let (matches, looked) = fresh.matches(g, watched.rule, watched.looked, limit + 1);
            let total: usize = matches.iter().map(|m| m.substs.len()).sum();
            self.report.looked += looked + total;
            if total > limit {
                (*until, *times) = (round + 2 + (1 << *times), *times + 1);
                skipped = true;
                continue;
            }
            watched.looked = g.analysis.now;
            if total > 0 {
                found.push((k, matches));
            }
        }
        Some((found, skipped))
    }

    /// Whether anything changed; nothing where a limit was met.
    fn apply(&mut self, g: &mut Graph, found: Vec<Found<'r>>) -> Option<bool> {
        let (mut changed, mut due) = (false, 0);
        for (k, matches) in found {
            let mut fired = 0;
            for m in &matches {
                for subst in &m.substs {
                    if g.total_size() >= self.limits.nodes || (self.stop)() {
                        settle(g, self.limits.forget);
                        return None;
                    }
                    fired += usize::from(self.watched[k].fire(g, m.eclass, subst));
                }
            }
            if fired > 0 {
                *self.report.fired.entry(self.watched[k].rule.rule.name.clone()).or_default() += fired;
                changed = true;
            }
            due += fired;
            if fired > 0 && due * REBUILD_SHARE >= g.number_of_classes() {
                g.rebuild();
                due = 0;
            }
        }
        // Even a match that came to nothing may have added nodes on its way.
        settle(g, self.limits.forget);
        Some(changed)
    }
}

/// Closes congruence, and forgets what no cheapest term has.
fn settle(g: &mut Graph, forget: bool) {
    g.rebuild();
    for class in g.classes_mut().filter(|c| forget && c.nodes.len() > 1) {
        let (id, known) = (class.id, class.data.konst.map(|lit| Label::Head(Head::Const(lit))));
        let keeps = |n: &super::language::ENode| match known {
            Some(literal) => n.label == literal,
            // That x is x times 1 shows common factors: x + b x, and the sign of -x.
            None => matches!(n.label, Label::Head(Head::Var(..) | Head::Op(Op::Mul))) || !n.kids.contains(&id),
        };
        if class.nodes.iter().any(keeps) {
            class.nodes.retain(keeps);
        }
    }
}

/// An empty e-graph for rules of a level.
pub fn graph(level: Level) -> Graph {
    Graph::new(Facts { rounds: level == Level::Exact, now: 1, ..Facts::default() })
}
