//! A body with lets becomes another one, step by step: lemmas are taken in it, and its lets are placed anew.
//!
//! *Values.* A lemma is taken where its left side stands, to the letter, over variables in scope of which its
//! hypotheses are proved. Where lets are placed anew, both bodies have one normal flat term. *Failures.* What a lemma
//! says of its left side holds wherever that stands, since variables have values. A body with other lets evaluates
//! nothing that might fail but what the one before evaluates, too: at the same place, or around it. It must not know
//! how bodies are found.

use super::early::{Early, SHAPELESS};
use super::flat::{Site, as_parameter, certain, lowered, replaced_leaves};
use super::hypotheses::Hypotheses;
use super::lemma::{Lemma, Lemmas};
use super::prove::{Asked, Local, Prover};
use super::text::Naming;
use super::visited::{Inside, Sum, There, Visited, World};
use super::{Place, Refused, Step};
use crate::ir::{Def, Fun, Head, Id, Program, Terms, Ty};
use crate::types;
use crate::types::shape::empty_sum;
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;
use std::sync::Arc;

/// The step that places lets anew; its text is the body.
pub const LETS: &str = "lets";
/// So many parts that might fail are looked for at most.
const MAX_EARLY: usize = 200;

/// A body on its way.
pub struct Bodies<'a> {
    world: World<'a>,
    lemmas: Lemmas,
    /// The arena of the bodies.
    pub terms: Terms,
    /// The present body.
    pub now: Id,
    naming: Naming<'a>,
}

impl<'a> Bodies<'a> {
    /// Begins with the body of a definition.
    ///
    /// # Errors
    /// It has none.
    pub fn new(program: &'a Program, def: &'a Def, kept: &'a FxHashSet<Fun>) -> Result<Bodies<'a>, Refused> {
        let mut terms = Terms::default();
        let now = terms.import(&program.terms, def.term().ok_or("it has no body")?);
        let (world, naming) = (World::new(program, kept, def), Naming::new(program, kept, def));
        Ok(Bodies { world, lemmas: Lemmas::new(), terms, now, naming })
    }

    /// Adds a lemma.
    pub fn know(&mut self, name: String, lemma: Arc<Lemma>) {
        self.lemmas.insert(name, lemma);
    }

    /// The name of the variable at a level.
    pub fn variable(&self, level: usize) -> String {
        self.naming.variable(level)
    }

    /// Checks one step and takes it.
    ///
    /// # Errors
    /// What is not what it has to be.
    pub fn step(&mut self, step: &Step) -> Result<(), Refused> {
        let (Some(to), [path], Place::Here) = (&step.to, step.at.as_slice(), step.place) else {
            return Err("between bodies a step is taken at one place, and says to what".into());
        };
        if step.by != LETS {
            let lemma = self.lemmas.get(&step.by).cloned().ok_or(format!("there is no lemma `{}`", step.by))?;
            return self.lemma(&lemma, path, to);
        }
        if !path.is_empty() {
            return Err("lets are placed anew in the whole body".into());
        }
        self.result(to)?;
        Ok(())
    }

    /// Checks the text of a definition whose lets are placed anew, and goes on with its body; it in a program of its
    /// own.
    ///
    /// # Errors
    /// It is another definition, or evaluates what might fail.
    pub fn result(&mut self, text: &str) -> Result<(Program, Def), Refused> {
        let (read, def) = self.naming.result(self.world.program, text)?;
        let body = def.term().ok_or("it has no body")?;
        if let Some(early) = self.early(&read.terms, body)?.into_iter().next() {
            return Err(early.why);
        }
        self.now = self.terms.import(&read.terms, body);
        Ok((read, def))
    }

    /// The parts of a body that might fail where the present one does not.
    ///
    /// # Errors
    /// Without its lets it is another one.
    pub fn early(&mut self, terms: &Terms, body: Id) -> Result<Vec<Early>, Refused> {
        let new = self.terms.import(terms, body);
        let large = || "without lets and calls it is too large".to_string();
        let before = self.world.visited(&self.terms, self.now).ok_or_else(large)?;
        let after = self.world.visited(&self.terms, new).ok_or_else(large)?;
        if before.id != after.id {
            return Err("without its lets the body is another one than before".into());
        }
        let mut facts = Facts::new(&mut self.world, &before, &after);
        let mut out: Vec<Early> = vec![];
        for visit in &after.visits {
            if out.len() >= MAX_EARLY || out.iter().any(|early| early.from.is_some() && early.from == visit.from) {
                continue;
            }
            if let Some((id, depth)) = facts.refused(visit.id, visit.place) {
                let part = self.naming.named(&mut facts.world.flat, id, depth);
                let why = format!("a let of the result evaluates early what might fail: `{part}`");
                out.push(Early { from: visit.from, why });
            }
        }
        // A sum over nothing has a shape where it had one before.
        let lost = |of: &Visited, terms: &mut Terms| -> Vec<Sum> {
            let lost = |sum: &Sum| sum.from.is_none_or(|id| empty_sum(terms, id).is_none());
            of.sums.iter().copied().filter(lost).collect()
        };
        let (then, now) = (lost(&before, &mut self.terms), lost(&after, &mut self.terms));
        for sum in now {
            let same = then.iter().any(|other| other.flat == sum.flat && facts.is_same(other.place, sum.place));
            if !same && !facts.runs(sum.flat, sum.place) {
                let last = sum.from.and_then(|id| self.terms.kids(id).last().copied());
                let from = last.filter(|last| self.terms.head(*last) == Head::Let);
                let part = self.naming.named(&mut facts.world.flat, sum.flat, after.places[sum.place].scope.len());
                out.push(Early { from, why: format!("{SHAPELESS}: `{part}`") });
            }
        }
        // The numbers of lets are those of the arena that was given.
        let given: FxHashMap<Id, Id> = match out.is_empty() {
            true => FxHashMap::default(),
            false => terms.reachable(body).into_iter().map(|id| (self.terms.import(terms, id), id)).collect(),
        };
        out.iter_mut().for_each(|early| early.from = early.from.and_then(|id| given.get(&id).copied()));
        Ok(out)
    }

    /// Takes a lemma at a place, for variables by name.
    fn lemma(&mut self, lemma: &Lemma, path: &[usize], names: &str) -> Result<(), Refused> {
        let there = self.world.there(&self.terms, self.now, path).ok_or("there is no such part")?;
        let levels: Option<Vec<usize>> = names.split_whitespace().map(|name| self.naming.level(name)).collect();
        let levels = levels.filter(|levels| levels.iter().all(|level| *level < there.values.len()));
        let levels = levels.ok_or("a variable is not in scope there")?;
        let fits = |(level, ty): (&usize, &Ty)| self.world.flat.ty(there.values[*level]) == *ty;
        if levels.len() != lemma.params.len() || !levels.iter().zip(&lemma.params).all(fits) {
            return Err("the variables are not those of the lemma".into());
        }
        if self.side(lemma, lemma.left, &there, &levels) != there.id {
            return Err("the left side of the lemma does not stand here".into());
        }
        self.granted(lemma, &there, &levels)?;
        let new = self.side(lemma, lemma.right, &there, &levels);
        let mut spine = vec![self.now];
        for k in path {
            spine.push(self.terms.kids(spine[spine.len() - 1])[*k]);
        }
        let mut now = new;
        for (id, k) in spine.iter().zip(path).rev() {
            let mut kids = self.terms.kids(*id).to_vec();
            kids[*k] = now;
            now = self.terms.add(self.terms.head(*id), kids).map_err(|_| "the types do not fit")?;
            self.terms.keep_hints(*id, now);
            if matches!(self.terms.head(now), Head::Reduce(..))
                && empty_sum(&mut self.terms, now).is_none()
                && empty_sum(&mut self.terms, *id).is_some()
            {
                return Err(format!("{SHAPELESS}, around what the lemma makes"));
            }
        }
        let tys: Vec<Ty> = self.world.def.params.iter().map(|p| p.ty).collect();
        types::verify::closed(&self.terms, now, &tys)?;
        if now == self.now {
            return Err("the step changes nothing".into());
        }
        self.now = now;
        Ok(())
    }

    /// A side of a lemma over the variables of these levels.
    fn side(&mut self, lemma: &Lemma, side: Id, there: &There, levels: &[usize]) -> Id {
        let (depth, n) = (there.values.len(), levels.len());
        let id = self.terms.import(&lemma.terms, side);
        self.terms
            .map_free(id, 0, &mut |t, i, ty, under| t.var((depth - 1 - levels[n - 1 - i as usize] + under) as u32, ty))
    }

    /// Whether all hypotheses of a lemma hold of these variables.
    fn granted(&mut self, lemma: &Lemma, there: &There, levels: &[usize]) -> Result<(), Refused> {
        let (flat, def) = (&mut self.world.flat, self.world.def);
        let Hypotheses { given, below, defined } = &lemma.hypotheses;
        let mut of = |id: Id| {
            let id = flat.import(&lemma.flat, id);
            replaced_leaves(flat, id, &mut |t, id, under| {
                let k = as_parameter(t.head(id))?;
                Some(t.shift(there.values[*levels.get(k)?], under))
            })
        };
        let given: Vec<(Id, Id)> = given.iter().map(|(a, b)| (of(*a), of(*b))).collect();
        let below: Vec<(Id, Id)> = below.iter().map(|(a, b)| (of(*a), of(*b))).collect();
        let (known, local) = (FxHashSet::default(), Local::default());
        let mut p = Prover::new(flat, def, (&known, &local), Asked::Total, there.guards.clone());
        let equal = given.iter().all(|(a, b)| p.same_number(*a, *b, &there.scope));
        let inside = below.iter().all(|(i, n)| p.in_range(*i, *n, &there.scope));
        let mut p = Prover::new(flat, def, (&known, &local), Asked::Defined, there.guards.clone());
        let defined = defined.iter().all(|k| p.safe(there.values[levels[*k]], &there.scope));
        let failed = [(equal, "sizes are equal"), (inside, "an index is in range"), (defined, "a number is real")];
        match failed.into_iter().find(|(holds, _)| !holds) {
            Some((_, what)) => Err(format!("the lemma needs that {what}, which is not proved here")),
            None => Ok(()),
        }
    }
}

/// What is evaluated at places, under each number of loops that is around them.
type Levels = Rc<Vec<(usize, Rc<FxHashSet<Id>>)>>;

/// What one body may evaluate, because another one does.
struct Facts<'w, 'a> {
    world: &'w mut World<'a>,
    before: &'w Visited,
    after: &'w Visited,
    /// The numbers of the places of either: equal ones for what is the same place.
    numbers: (Vec<usize>, Vec<usize>),
    /// What the one before evaluates at each place of the other one.
    same: Vec<Rc<FxHashSet<Id>>>,
    levels: FxHashMap<usize, Levels>,
    refused: FxHashMap<(Id, usize), Option<(Id, usize)>>,
    /// Parts that the one before is certain to evaluate, once somebody asked.
    known: Option<FxHashSet<Site>>,
}

impl<'w, 'a> Facts<'w, 'a> {
    fn new(world: &'w mut World<'a>, before: &'w Visited, after: &'w Visited) -> Facts<'w, 'a> {
        // A place is the same where all that is around it is.
        let mut numbers: FxHashMap<(usize, Inside), usize> = FxHashMap::default();
        let mut numbered = |of: &Visited| {
            let mut out: Vec<usize> = vec![];
            for place in &of.places {
                let inside = match place.inside {
                    Inside::Arm(_, cond, holds) => Inside::Arm(cond, cond, holds),
                    other => other,
                };
                let next = numbers.len();
                let parent = out.get(place.parent).copied().unwrap_or_default();
                out.push(*numbers.entry((parent, inside)).or_insert(next));
            }
            out
        };
        let (mine, others) = (numbered(before), numbered(after));
        let mut sets: FxHashMap<usize, FxHashSet<Id>> = FxHashMap::default();
        for visit in &before.visits {
            sets.entry(mine[visit.place]).or_default().insert(visit.id);
        }
        let sets: FxHashMap<usize, Rc<FxHashSet<Id>>> = sets.into_iter().map(|(k, set)| (k, Rc::new(set))).collect();
        let same = others.iter().map(|k| sets.get(k).cloned().unwrap_or_default()).collect();
        let (levels, refused, known) = Default::default();
        Facts { world, before, after, numbers: (mine, others), same, levels, refused, known }
    }

    /// Whether a place of the one before is a place of the other one.
    fn is_same(&self, before: usize, after: usize) -> bool {
        self.numbers.0[before] == self.numbers.1[after]
    }

    /// Whether a loop at a place is certain to run.
    fn runs(&mut self, id: Id, place: usize) -> bool {
        let (none, local) = (FxHashSet::default(), Local::default());
        let super::visited::Place { scope, guards, .. } = &self.after.places[place];
        let World { flat, def, .. } = &mut *self.world;
        let kids = flat.kids(id).to_vec();
        let mut p = Prover::new(flat, def, (&none, &local), Asked::Total, guards.clone());
        kids[..kids.len() - 1].iter().all(|n| p.at_least_one(*n, scope))
    }

    /// A part of what is evaluated at a place that might fail there where the body before does not, and how many
    /// loops are around it; nothing where there is none.
    fn refused(&mut self, id: Id, place: usize) -> Option<(Id, usize)> {
        if matches!(self.world.flat.head(id), Head::Const(_) | Head::Var(..)) {
            return None;
        }
        if let Some(known) = self.refused.get(&(id, place)) {
            return *known;
        }
        let out = self.unproved(id, place);
        self.refused.insert((id, place), out);
        out
    }

    fn unproved(&mut self, id: Id, place: usize) -> Option<(Id, usize)> {
        let levels = self.levels(place);
        let at = &self.after.places[place];
        for (depth, facts) in levels.iter() {
            let by = at.scope.len() - depth;
            if lowered(&mut self.world.flat, id, by).is_some_and(|outside| facts.contains(&outside)) {
                return None;
            }
        }
        self.proved(id, place, &levels).err()?;
        if self.known.is_none() {
            let (mut known, mut looked) = Default::default();
            for visit in self.before.visits.iter().rev().filter(|v| v.place == 0) {
                certain(&mut self.world.flat, visit.id, &mut vec![], &mut known, &mut looked);
            }
            self.known = Some(known);
            return self.proved(id, place, &levels).err();
        }
        self.proved(id, place, &levels).err()
    }

    fn proved(&mut self, id: Id, place: usize, levels: &Levels) -> Result<(), (Id, usize)> {
        let (none, local) = (FxHashSet::default(), Local::default());
        let known = self.known.as_ref().unwrap_or(&none);
        let super::visited::Place { scope, guards, .. } = &self.after.places[place];
        let World { flat, def, .. } = &mut *self.world;
        let mut p = Prover::new(flat, def, (known, &local), Asked::Total, guards.clone()).beside(levels);
        if p.safe(id, scope) { Ok(()) } else { Err(p.unsafe_part(id, scope)) }
    }

    /// What is evaluated anyway at a place and around it.
    fn levels(&mut self, place: usize) -> Levels {
        if let Some(done) = self.levels.get(&place) {
            return done.clone();
        }
        let at = self.after.places[place].clone();
        let mut out = vec![(at.scope.len(), self.same[place].clone())];
        if place > 0 {
            // What is evaluated as a whole is evaluated in all its parts.
            let (whole, last) = match at.inside {
                Inside::Loop(whole) => (whole, self.world.flat.kids(whole).len() - 1),
                Inside::Arm(whole, _, holds) => (whole, if holds { 1 } else { 2 }),
                Inside::Whole => (self.after.id, 0),
            };
            if self.refused(whole, at.parent).is_none() {
                let mut parts = FxHashSet::default();
                let part = self.world.flat.kids(whole)[last];
                strict(&self.world.flat, part, &mut parts);
                out.push((at.scope.len(), Rc::new(parts)));
            }
            out.extend(self.levels(at.parent).iter().cloned());
        }
        let out = Rc::new(out);
        self.levels.insert(place, out.clone());
        out
    }
}

/// The parts of a term that are evaluated whenever it is, outside of its own loops and arms.
fn strict(terms: &Terms, id: Id, out: &mut FxHashSet<Id>) {
    if !out.insert(id) {
        return;
    }
    let (head, kids) = (terms.head(id), terms.kids(id));
    for (k, kid) in kids.iter().enumerate() {
        if head.binds(k, kids.len()) == 0 && !(head == Head::If && k > 0) {
            crate::ir::deep(|| strict(terms, *kid, out));
        }
    }
}
