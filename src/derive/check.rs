//! A definition and steps become the flat term that the steps lead to, or the reason why not.
//!
//! Two arguments make a chain of steps sound. *Values*: each step replaces a part by one that has the
//! same value wherever the left side of its rule has one, at the rule's number level. *Failures*: a
//! rule may remove a failure and never adds one, so a step from left to right needs no more than the
//! rule's conditions. A step from right to left brings a left side back, and is refused unless every
//! part of that is proved not to fail, or is evaluated anyway: by what stood in its place, or by some
//! earlier program of the chain for all values of the loops around it. So wherever the input has a
//! value, each program of the chain has that value; what an earlier one was certain to evaluate
//! therefore has a value, too.

use super::axioms::Axiom;
use super::canonical::Canonical;
use super::everywhere::{Everywhere, holds};
use super::flat::{Looked, Scope, Site, bound, certain, to_body};
use super::guard::{Guard, Guards, guard};
use super::hypotheses::Hypotheses;
use super::matching::{instance, matched};
use super::pace::Pace;
use super::prove::{Asked, Local, Prover};
use super::text::Naming;
use super::unfold::{Unfolded, unfold};
use super::{Place, Refused, Step};
use crate::ir::{Def, Fun, Head, Id, Op, Program, Terms, Ty};
use crate::rules::{Condition, Level, Meta, Rule};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// Rules by name.
pub type Rules<'a> = BTreeMap<&'a str, &'a Rule>;

/// A program on its way.
#[derive(Clone)]
pub struct Checker<'a> {
    pub(super) def: &'a Def,
    rules: &'a Rules<'a>,
    level: Level,
    pub(super) kept: &'a FxHashSet<Fun>,
    pub(super) program: &'a Program,
    /// The arena of the flat terms.
    pub terms: Terms,
    /// The present flat term.
    pub now: Id,
    /// Parts that have a value wherever the input has one.
    pub(super) known: FxHashSet<Site>,
    /// Where such parts were looked for.
    looked: Looked,
    /// What the input evaluates early, rewritten as the program is: it has a value wherever the input has one
    /// and the loops around it run.
    early: Vec<(Id, Scope)>,
    /// What is taken for granted of the parameters; nothing where they are inputs.
    pub(super) granted: Option<Hypotheses>,
    /// What the granted conditions say at any place.
    pub(super) always: Guards,
    /// The conditions around the place of the present step.
    pub(super) guards: Guards,
    /// The spellings of what is known, and these for so many parts that are.
    pub(super) alike: Canonical,
    pub(super) spelled: (usize, Rc<FxHashSet<Site>>),
    /// What is evaluated beside the place of the present step, where that is looked at.
    pub(super) also: Local,
    /// How many steps were taken.
    taken: usize,
    /// Earlier programs whose certain parts were not collected yet.
    pub(super) unread: VecDeque<Id>,
    /// Whether these are looked at where a proof needs that.
    pub looks_back: bool,
    /// When to give up: what is asked later is refused.
    pub(super) pace: Option<&'a Pace<'a>>,
    pub(super) naming: Naming<'a>,
}

/// So many parts that the input evaluates early are rewritten as the program is, at most.
const MAX_EARLY: usize = 64;
/// Each of so many nodes as a tree, which is how many places it may have to be looked at in, at most.
const MAX_EARLY_SIZE: u64 = 5_000;
/// Parts of more nodes are not shown.
const LONG: u64 = 120;
/// Why what is asked too late is refused.
pub const LATE: &str = "the time is up";

/// The functions whose calls stay calls: those that call themselves.
pub fn kept(program: &Program) -> FxHashSet<Fun> {
    let calls_itself = |fun: &Fun, body: Id| {
        program.terms.reachable(body).iter().any(|id| program.terms.head(*id) == Head::Call(*fun))
    };
    program.defs.iter().filter(|(f, d)| d.term().is_some_and(|b| calls_itself(f, b))).map(|(f, _)| *f).collect()
}

impl<'a> Checker<'a> {
    /// Unfolds a definition of a program: the first step of every derivation.
    ///
    /// # Errors
    /// The definition has no body, or is too large without lets and calls.
    pub fn new(
        program: &'a Program,
        def: &'a Def,
        kept: &'a FxHashSet<Fun>,
        rules: &'a Rules<'a>,
        level: Level,
    ) -> Result<Checker<'a>, Refused> {
        let body = def.term().ok_or("it has no body")?;
        let mut terms = Terms::default();
        let params: Vec<Ty> = def.params.iter().map(|p| p.ty).collect();
        let unfolded = unfold(program, kept, (&program.terms, body), &params, &mut terms);
        let Unfolded { id, certain, looked, mut strict, .. } =
            unfolded.ok_or("without lets and calls it is too large")?;
        let small = |value: Id| terms.size(value) <= MAX_EARLY_SIZE;
        strict.retain(|(value, _)| *value != id && !terms.kids(*value).is_empty() && small(*value));
        strict.sort_by_key(|(value, scope)| (Reverse(terms.size(*value)), *value, scope.clone()));
        strict.truncate(MAX_EARLY);
        let (unread, naming, taken, guards) = (VecDeque::new(), Naming::new(program, kept, def), 0, vec![]);
        let (now, known, early) = (id, certain, strict);
        let (granted, always, alike, spelled, also) = Default::default();
        Ok(Checker {
            def,
            rules,
            level,
            kept,
            program,
            terms,
            now,
            known,
            looked,
            early,
            granted,
            always,
            guards,
            alike,
            spelled,
            also,
            taken,
            unread,
            looks_back: true,
            pace: None,
            naming,
        })
    }

    /// Gives up when it is too late.
    pub fn until(&mut self, pace: Option<&'a Pace<'a>>) {
        self.pace = pace;
    }

    /// Refuses what is asked too late.
    pub(super) fn in_time(&self) -> Result<(), Refused> {
        if self.pace.is_some_and(Pace::late) { Err(LATE.into()) } else { Ok(()) }
    }

    /// Takes conditions on the parameters for granted.
    pub(super) fn grant(&mut self, hypotheses: Hypotheses) {
        for (index, n) in &hypotheses.below {
            let zero = self.terms.int(0);
            for (op, other) in [(Op::Gte, zero), (Op::Lt, *n)] {
                let cond = self.terms.op(op, [*index, other]);
                self.always.push(Guard { cond, depth: 0, holds: true });
            }
        }
        self.granted = Some(hypotheses);
    }

    /// What can be proved of the present program.
    pub fn proving<R>(&mut self, f: impl FnOnce(&mut Prover<'_>) -> R) -> R {
        self.learn();
        self.guards.clone_from(&self.always);
        f(&mut self.prover(&Local::default(), Asked::Total))
    }

    pub(super) fn prover<'p>(&'p mut self, local: &'p Local, asked: Asked) -> Prover<'p> {
        Prover::new(&mut self.terms, self.def, (&self.known, local), asked, self.guards.clone())
            .granting(self.granted.as_ref())
            .until(self.pace)
    }

    /// Checks one step and takes it.
    ///
    /// # Errors
    /// The place, the rule, a condition or the term brought back is not what it has to be; or it is too late.
    pub fn step(&mut self, step: &Step) -> Result<(), Refused> {
        // What was not proved for want of time is no fault of the step.
        self.in_time()?;
        self.checked(step).map_err(|why| if self.in_time().is_err() { LATE.into() } else { why })
    }

    fn checked(&mut self, step: &Step) -> Result<(), Refused> {
        let back = match (&step.to, step.at.first()) {
            (Some(text), Some(path)) => Some(self.read(text, path)?),
            _ => None,
        };
        let mut replaced: FxHashMap<(Id, Scope, Guards), Id> = FxHashMap::default();
        let mut now = self.now;
        for path in &step.at {
            self.in_time()?;
            let (old, scope, guards) = self.part(now, path)?;
            self.guards = guards.clone();
            let new = match replaced.get(&(old, scope.clone(), guards.clone())) {
                Some(new) => *new,
                None => {
                    let new = match back {
                        Some(left) => self.brought(step, left, (old, &scope), (now, path))?,
                        None => self.forward(step, old, &scope)?,
                    };
                    replaced.insert((old, scope, guards), new);
                    new
                }
            };
            if self.terms.ty(new) != self.terms.ty(old) {
                return Err(format!("the step changes the type {} to {}", self.terms.ty(old), self.terms.ty(new)));
            }
            now = match step.place {
                Place::Here => self.put(now, path, new)?,
                Place::Everywhere => self.put_everywhere(step, (now, &vec![]), None, (old, new))?,
                Place::Within(length) => {
                    let (part, ..) = self.part(now, path.get(..length).ok_or("the path is too short")?)?;
                    self.put_everywhere(step, (now, &vec![]), Some(part), (old, new))?
                }
            };
        }
        if now == self.now {
            return Err("the step changes nothing".into());
        }
        if back.is_some() {
            // Only what was read from text could have variables of other places.
            let (n, tys) = (self.def.params.len(), self.def.params.iter().map(|p| p.ty).collect::<Vec<_>>());
            let body = to_body(&mut self.terms, now, n, 0);
            crate::types::verify::closed(&self.terms, body, &tys)?;
        }
        let mut pairs: Vec<(Id, Id)> = replaced.iter().map(|((old, ..), new)| (*old, *new)).collect();
        pairs.sort_unstable();
        pairs.dedup();
        pairs.into_iter().for_each(|(old, new)| self.carry(step, old, new));
        self.now = now;
        self.unread.push_back(now);
        self.taken += 1;
        Ok(())
    }

    /// Takes a step also in what the input evaluates early, where the same part stands there and the step is
    /// good there. The program that comes of it adds no failure to the one before.
    fn carry(&mut self, step: &Step, old: Id, new: Id) {
        let mut memo = FxHashMap::default();
        for k in 0..self.early.len() {
            let (id, scope) = self.early[k].clone();
            let small = self.terms.size(id) <= MAX_EARLY_SIZE;
            if !small || !holds(&self.terms, id, old, &mut memo) {
                continue;
            }
            if let Ok(after) = self.put_everywhere(step, (id, &scope), None, (old, new)) {
                certain(&mut self.terms, after, &mut scope.clone(), &mut self.known, &mut self.looked);
                self.early[k] = (after, scope);
            }
        }
    }

    fn read(&mut self, text: &str, path: &[usize]) -> Result<Id, Refused> {
        let (old, ..) = self.part(self.now, path)?;
        let tys = self.types_at(path);
        self.naming.read(text, self.terms.ty(old), &tys, &mut self.terms).map_err(|e| format!("the term given: {e}"))
    }

    /// The types of the loop variables around a place.
    pub fn types_at(&self, path: &[usize]) -> Vec<Ty> {
        let (mut id, mut out) = (self.now, vec![]);
        for k in path {
            let (head, kids) = (self.terms.head(id), self.terms.kids(id));
            let Some(kid) = kids.get(*k) else { break };
            if head.binds(*k, kids.len()) > 0 {
                out.extend(head.bound_tys(&kids.iter().map(|k| self.terms.ty(*k)).collect::<Vec<_>>()));
            }
            id = *kid;
        }
        out
    }

    /// The text of the part of the present program at a place; nothing where that is long.
    pub fn shown(&mut self, path: &[usize]) -> Option<String> {
        let (id, ..) = self.part(self.now, path).ok()?;
        (self.terms.size(id) <= LONG).then(|| self.show(id, path))
    }

    /// The text of a flat term at a place.
    pub fn show(&mut self, id: Id, path: &[usize]) -> String {
        self.show_with(id, path, &mut |_, body, _| body)
    }

    /// The same with lets: `share` is told the term over parameters and loop variables, and the types of these.
    pub fn show_with(&mut self, id: Id, path: &[usize], share: &mut dyn FnMut(&mut Terms, Id, &[Ty]) -> Id) -> String {
        let tys = self.types_at(path);
        let body = to_body(&mut self.terms, id, self.def.params.len(), tys.len());
        let body = share(&mut self.terms, body, &tys);
        self.naming.show(&self.terms, body, &tys)
    }

    /// The definition.
    pub fn def(&self) -> &'a Def {
        self.def
    }

    /// The text of a part under so many loops, the types of whose variables only the part itself says.
    pub(super) fn named(&mut self, id: Id, depth: usize) -> String {
        self.naming.named(&mut self.terms, id, depth)
    }

    /// Collects what the programs so far were certain to evaluate.
    pub(super) fn learn(&mut self) {
        while self.looks_back && self.learn_next() {}
    }

    /// Collects what the next of the programs so far was certain to evaluate; whether there was one. Where a proof needs
    /// them all are collected, which takes long after many steps.
    pub fn learn_next(&mut self) -> bool {
        let Some(id) = self.unread.pop_front() else { return false };
        certain(&mut self.terms, id, &mut vec![], &mut self.known, &mut self.looked);
        true
    }

    fn forward(&mut self, step: &Step, old: Id, scope: &Scope) -> Result<Id, Refused> {
        self.rewritten(&step.by, old, scope, Asked::Defined)
    }

    /// The term that is brought back; where it is brought back at one place only, what is evaluated beside that counts.
    fn brought(
        &mut self,
        step: &Step,
        left: Id,
        (old, scope): (Id, &Scope),
        (now, path): (Id, &[usize]),
    ) -> Result<Id, Refused> {
        let made = self.backward(step, left, old, scope);
        if made.is_ok() || step.place != Place::Here || step.at.len() != 1 {
            return made;
        }
        self.also = self.beside(now, path);
        let made = self.backward(step, left, old, scope);
        self.also = Local::default();
        made
    }

    /// The same, after everything about it was checked.
    fn backward(&mut self, step: &Step, left: Id, old: Id, scope: &Scope) -> Result<Id, Refused> {
        let right = self.rewritten(&step.by, left, scope, Asked::Kept)?;
        if right != old {
            return Err(format!("from right to left `{}` does not lead here from the term given", step.by));
        }
        let mut local = Local::default();
        self.evaluated(old, (&mut scope.clone(), &mut self.guards.clone()), scope.len(), &mut local);
        let asked = if self.level == Level::Real { Asked::Kept } else { Asked::Total };
        if self.prover(&local, asked).safe(left, scope) {
            return Ok(left);
        }
        // What earlier programs were certain to evaluate is looked at where it is needed: it takes long.
        self.learn();
        if self.prover(&local, asked).safe(left, scope) {
            return Ok(left);
        }
        let Some((id, depth)) = self.unsafe_alike(left, (&local, None), scope, asked) else { return Ok(left) };
        let part = self.named(id, depth);
        Err(format!("what `{}` brings back could fail where the program did not: `{part}`", step.by))
    }

    /// What a rule or an axiom makes of a term; `defined` is what its condition of that name asks.
    fn rewritten(&mut self, by: &str, left: Id, scope: &Scope, defined: Asked) -> Result<Id, Refused> {
        if let Some((_, axiom)) = Axiom::TABLE.iter().find(|(name, _)| *name == by) {
            let local = Local::default();
            let new = axiom.apply(&mut self.prover(&local, Asked::Total), left, scope);
            return new.ok_or_else(|| format!("`{by}` does not apply here"));
        }
        let Some(rule) = self.rules.get(by).copied() else {
            return Err(format!("there is no rule `{by}`"));
        };
        if rule.level > self.level {
            return Err(format!("`{by}` is a rule for `{}`, and `{}` is asked for", rule.level, self.level));
        }
        let Some(found) = matched(rule, &mut self.terms, left) else {
            return Err(format!("the left side of `{by}` does not match here"));
        };
        for (condition, metas) in &rule.when {
            let values: Vec<Id> = metas.iter().filter_map(|m| found.metas.get(m).copied()).collect();
            let plain = metas.iter().all(|m| matches!(m, Meta::Plain(_))) && values.len() == metas.len();
            if !plain || !self.holds(rule, *condition, &values, scope, defined) {
                let name = condition.name();
                return Err(format!("the condition `{name}` of `{by}` is not proved here"));
            }
        }
        instance(rule, &mut self.terms, found).ok_or_else(|| format!("the right side of `{by}` has no types here"))
    }

    fn holds(&mut self, rule: &Rule, condition: Condition, values: &[Id], scope: &Scope, defined: Asked) -> bool {
        let evaluates = matches!(condition, Condition::Total | Condition::Defined | Condition::Valued);
        let now = self.holds_now(rule, condition, values, scope, defined);
        if now || !evaluates {
            return now;
        }
        self.learn();
        if self.holds_now(rule, condition, values, scope, defined) {
            return true;
        }
        let asked = if condition == Condition::Total { Asked::Total } else { defined };
        matches!(asked, Asked::Total | Asked::Kept)
            && self.unsafe_alike(values[0], (&Local::default(), None), scope, asked).is_none()
    }

    /// The same without what is certain of programs that were not looked at yet.
    fn holds_now(&mut self, rule: &Rule, condition: Condition, values: &[Id], scope: &Scope, defined: Asked) -> bool {
        let (id, local) = (values[0], Local::default());
        // Bounds are over the reals; bits are known of literals and integers only.
        let exact = rule.level == Level::Real || self.terms.as_lit(id).is_some() || !self.terms.ty(id).is_linear();
        if condition == Condition::Valued && self.prover(&local, Asked::Valued).safe(id, scope) {
            return true;
        }
        let of_value = matches!(condition, Condition::Defined | Condition::Valued);
        let mut p = self.prover(&local, if of_value { defined } else { Asked::Total });
        match condition {
            Condition::Nonzero => exact && p.range(id, scope).nonzero,
            Condition::Positive => {
                let r = p.range(id, scope);
                exact && (r.lo > 0.0 || r.lo >= 0.0 && r.nonzero)
            }
            Condition::Nonnegative => exact && p.range(id, scope).lo >= 0.0,
            Condition::Divisor => {
                let r = p.range(id, scope);
                r.nonzero || (r.lo, r.hi) != (0.0, 0.0)
            }
            Condition::Total | Condition::Defined | Condition::Valued => p.safe(id, scope),
            Condition::InRange => p.in_range(id, values[1], scope),
            Condition::SameSize => p.same_shape(id, values[1], scope),
        }
    }

    /// The part at a path of child numbers, and the loops and conditions around it.
    fn part(&mut self, root: Id, path: &[usize]) -> Result<(Id, Scope, Guards), Refused> {
        let (mut id, mut scope, mut guards) = (root, vec![], self.always.clone());
        for k in path {
            let (head, kids) = (self.terms.head(id), self.terms.kids(id).to_vec());
            let Some(kid) = kids.get(*k) else {
                return Err(format!("there is no part {k} of a node with {} parts", kids.len()));
            };
            guards.extend(guard(head, &kids, *k, scope.len()));
            if head.binds(*k, kids.len()) > 0 {
                scope.extend(bound(&mut self.terms, head, &kids));
            }
            id = *kid;
        }
        Ok((id, scope, guards))
    }

    fn put(&mut self, root: Id, path: &[usize], new: Id) -> Result<Id, Refused> {
        let mut spine = vec![root];
        for k in path {
            let at = spine[spine.len() - 1];
            spine.push(*self.terms.kids(at).get(*k).ok_or("the place is gone")?);
        }
        let mut out = new;
        for (id, k) in spine.iter().zip(path).rev() {
            let mut kids = self.terms.kids(*id).to_vec();
            kids[*k] = out;
            out = self.terms.add(self.terms.head(*id), kids).map_err(|_| "the types do not fit")?;
        }
        Ok(out)
    }

    /// Replaces a part wherever it stands, or wherever it stands within another one. Each further place is checked
    /// as the first was: at first only by the loops that the part depends on, since what holds there holds whatever
    /// other loops are around.
    fn put_everywhere(
        &mut self,
        step: &Step,
        root: (Id, &Scope),
        within: Option<Id>,
        part: (Id, Id),
    ) -> Result<Id, Refused> {
        // What holds at all of the places holds under no conditions.
        let guards = std::mem::replace(&mut self.guards, self.always.clone());
        let own = self.put_all(step, root, within, part, true);
        let out = own.or_else(|_| self.put_all(step, root, within, part, false));
        self.guards = guards;
        out
    }

    fn put_all(
        &mut self,
        step: &Step,
        root: (Id, &Scope),
        within: Option<Id>,
        (old, new): (Id, Id),
        own: bool,
    ) -> Result<Id, Refused> {
        let mut walk = Everywhere::new((old, new), within, own);
        let out = walk.replace(&mut self.terms, root.0, &mut root.1.clone(), within.is_none());
        if walk.left == 0 {
            return Err("the same part stands in too many loops".into());
        }
        let mut scopes: Vec<Scope> = walk.scopes.into_iter().collect();
        scopes.sort();
        for scope in scopes {
            self.in_time()?;
            let made = match step.to {
                Some(_) => self.backward(step, new, old, &scope)?,
                None => self.forward(step, old, &scope)?,
            };
            if made != new {
                return Err("the step means something else at another place".into());
            }
        }
        Ok(out)
    }

    /// Checks the text of the result, and reads it: a program of the result alone.
    ///
    /// # Errors
    /// It is no definition like the input, or not what the steps lead to.
    pub fn result(&mut self, text: &str) -> Result<(Program, Def), Refused> {
        // What stays as it was may bind early what it did before.
        if self.taken == 0
            && let Ok(result) = Checker::unchanged(self.program, self.def, text)
        {
            return Ok(result);
        }
        let (read, def) = self.naming.result(self.program, text)?;
        self.shared(&read.terms, def.term().ok_or("it has no body")?)?;
        Ok((read, def))
    }

    /// Reads the text of a result that is the definition itself.
    ///
    /// # Errors
    /// It is another one.
    pub fn unchanged(program: &Program, def: &Def, text: &str) -> Result<(Program, Def), Refused> {
        let (read, new) = Naming::new(program, &kept(program), def).result(program, text)?;
        let body = new.term().ok_or("it has no body")?;
        match Some(program.terms.clone().import(&read.terms, body)) == def.term() {
            true => Ok((read, new)),
            false => Err("the result is another program than the input, and no step leads to it".into()),
        }
    }
}
