//! A body with lets becomes its normal flat term, and everything that it evaluates, each with its place: the loops and
//! arms around it.
//!
//! A place is named by what is around it alone. So what one body evaluates at a place another one may evaluate there,
//! too. It must not know who asks.

use super::flat::{Scope, bound, parameter};
use super::guard::{Guard, Guards};
use super::normal::Normal;
use crate::ir::{Def, Fun, Head, Id, Program, Terms, Ty, deep};
use crate::types::shape::empty_sums;
use rustc_hash::{FxHashMap, FxHashSet};

/// What stands right around a place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Inside {
    /// The body of the definition.
    Whole,
    /// A loop, as a flat term where it stands, of normal parts.
    Loop(Id),
    /// The arm of a choice: the choice, its condition, and what that is.
    Arm(Id, Id, bool),
}

/// Where something is evaluated.
#[derive(Clone, Debug)]
pub struct Place {
    /// The place around it; that of the whole is around itself.
    pub parent: usize,
    /// What is between the two.
    pub inside: Inside,
    /// The loops around it.
    pub scope: Scope,
    /// The conditions around it.
    pub guards: Guards,
}

/// Something that is evaluated.
#[derive(Clone, Copy, Debug)]
pub struct Visit {
    /// The normal flat term.
    pub id: Id,
    /// The number of its place.
    pub place: usize,
    /// The let in whose value it stands, the innermost one.
    pub from: Option<Id>,
}

/// What a body evaluates.
pub struct Visited {
    /// The body as a normal flat term.
    pub id: Id,
    /// All places; the whole is the first, and each comes after those around it.
    pub places: Vec<Place>,
    /// Everything that is evaluated, parts before what they are parts of.
    pub visits: Vec<Visit>,
    /// The sums of tensors: those in the body, and of those in functions that are called the ones without a shape.
    pub sums: Vec<Sum>,
}

/// A sum whose elements are tensors.
#[derive(Clone, Copy, Debug)]
pub struct Sum {
    /// In the body; nothing where it stands in a function that is called, and has no shape where it is over nothing.
    pub from: Option<Id>,
    /// The flat term, of normal parts.
    pub flat: Id,
    /// The number of its place.
    pub place: usize,
}

/// A part of a body.
pub struct There {
    /// The part.
    pub id: Id,
    /// What the variables in scope are, outermost first.
    pub values: Vec<Id>,
    /// The loops around it.
    pub scope: Scope,
    /// The conditions around it.
    pub guards: Guards,
}

/// So many nodes are visited at most: calls within calls multiply.
const MAX_STEPS: usize = 1_000_000;

/// What bodies are walked with: the arena of flat terms, and their normal forms.
pub struct World<'a> {
    /// The program.
    pub program: &'a Program,
    /// The functions whose calls stay.
    pub kept: &'a FxHashSet<Fun>,
    /// The definition.
    pub def: &'a Def,
    /// The arena.
    pub flat: Terms,
    normal: Normal,
    shifted: FxHashMap<(Id, usize), Id>,
    /// The sums of the program that have a shape where they are over nothing.
    shaped: FxHashSet<Id>,
}

impl<'a> World<'a> {
    /// For a definition of a program.
    pub fn new(program: &'a Program, kept: &'a FxHashSet<Fun>, def: &'a Def) -> World<'a> {
        let (flat, normal, shifted) = Default::default();
        let shaped = empty_sums(program).1.into_keys().collect();
        World { program, kept, def, flat, normal, shifted, shaped }
    }

    fn shift(&mut self, id: Id, by: usize) -> Id {
        if by == 0 || self.flat.free(id).is_closed() {
            return id;
        }
        if let Some(done) = self.shifted.get(&(id, by)) {
            return *done;
        }
        let out = self.flat.shift(id, by);
        self.shifted.insert((id, by), out);
        out
    }

    fn walk(&mut self) -> (Walk<'_, 'a>, Vec<Entry>) {
        let whole = Place { parent: 0, inside: Inside::Whole, scope: vec![], guards: vec![] };
        let mut env = vec![];
        for (k, p) in self.def.params.iter().enumerate() {
            env.push(Entry { value: self.flat.put(parameter(k, p.ty), []), depth: 0 });
        }
        let (visits, sums, seen, scope) = Default::default();
        let (places, from) = (vec![whole], None);
        (Walk { world: self, places, visits, sums, seen, scope, place: 0, from, calls: 0, steps: 0 }, env)
    }

    /// What a body evaluates; nothing where that is too much.
    pub fn visited(&mut self, terms: &Terms, body: Id) -> Option<Visited> {
        let (mut walk, mut env) = self.walk();
        let id = walk.term(terms, body, &mut env)?;
        let Walk { places, visits, sums, .. } = walk;
        Some(Visited { id, places, visits, sums })
    }

    /// The part of a body at a path of child numbers. Nothing where there is none.
    pub fn there(&mut self, terms: &Terms, body: Id, path: &[usize]) -> Option<There> {
        let (mut walk, mut env) = self.walk();
        let (mut id, mut guards) = (body, vec![]);
        for k in path {
            let (head, kids) = (terms.head(id), terms.kids(id));
            let kid = *kids.get(*k)?;
            let depth = walk.scope.len();
            if head == Head::Let && *k == 1 {
                let value = walk.term(terms, kids[0], &mut env)?;
                env.push(Entry { value, depth });
            } else if head == Head::If && *k > 0 {
                let cond = walk.term(terms, kids[0], &mut env)?;
                guards.push(Guard { cond, depth, holds: *k == 1 });
            } else if head.binds(*k, kids.len()) > 0 {
                let before = kids[..*k].iter().map(|kid| walk.term(terms, *kid, &mut env));
                let before = before.collect::<Option<Vec<Id>>>()?;
                walk.bind(head, &before, &mut env);
            }
            id = kid;
        }
        let scope = walk.scope.clone();
        let values = env.into_iter().map(|e| walk.here(e)).collect();
        Some(There { id, values, scope, guards })
    }
}

/// What a variable is: a flat term, made under so many loops.
#[derive(Clone, Copy)]
struct Entry {
    value: Id,
    depth: usize,
}

struct Walk<'w, 'a> {
    world: &'w mut World<'a>,
    places: Vec<Place>,
    visits: Vec<Visit>,
    sums: Vec<Sum>,
    seen: FxHashSet<(Id, usize)>,
    scope: Scope,
    place: usize,
    from: Option<Id>,
    /// How many calls are being done.
    calls: usize,
    steps: usize,
}

impl Walk<'_, '_> {
    fn here(&mut self, entry: Entry) -> Id {
        self.world.shift(entry.value, self.scope.len() - entry.depth)
    }

    /// Adds the variables that a node binds in its last child.
    fn bind(&mut self, head: Head, before: &[Id], env: &mut Vec<Entry>) {
        let flat = &mut self.world.flat;
        let tys = head.bound_tys(&before.iter().map(|k| flat.ty(*k)).collect::<Vec<Ty>>());
        self.scope.extend(bound(flat, head, before));
        let (depth, n) = (self.scope.len(), tys.len());
        env.extend(tys.iter().enumerate().map(|(k, ty)| Entry { value: flat.var((n - 1 - k) as u32, *ty), depth }));
    }

    fn term(&mut self, terms: &Terms, id: Id, env: &mut Vec<Entry>) -> Option<Id> {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return None;
        }
        let (head, kids) = (terms.head(id), terms.kids(id));
        let out = match head {
            Head::Var(i, _) => return Some(self.here(env[env.len() - 1 - i as usize])),
            Head::Let => {
                let outer = self.from;
                self.from = if self.calls == 0 { Some(id) } else { outer };
                let value = deep(|| self.term(terms, kids[0], env));
                self.from = outer;
                env.push(Entry { value: value?, depth: self.scope.len() });
                let body = deep(|| self.term(terms, kids[1], env));
                env.pop();
                return body;
            }
            Head::Call(f) if !self.world.kept.contains(&f) => {
                let args = kids.iter().map(|k| deep(|| self.term(terms, *k, env)));
                let args = args.collect::<Option<Vec<Id>>>()?;
                let program = self.world.program;
                match program.defs.get(&f).and_then(Def::term) {
                    Some(body) => {
                        let depth = self.scope.len();
                        let mut inner = args.into_iter().map(|value| Entry { value, depth }).collect();
                        self.calls += 1;
                        let out = deep(|| self.term(&program.terms, body, &mut inner));
                        self.calls -= 1;
                        return out;
                    }
                    None => self.world.flat.put(head, args),
                }
            }
            _ => self.node(terms, id, env)?,
        };
        if self.seen.insert((out, self.place)) {
            self.visits.push(Visit { id: out, place: self.place, from: self.from });
        }
        Some(out)
    }

    fn node(&mut self, terms: &Terms, id: Id, env: &mut Vec<Entry>) -> Option<Id> {
        let (head, kids) = (terms.head(id), terms.kids(id));
        let (n, depth, vars, place) = (kids.len(), self.scope.len(), env.len(), self.place);
        let (mut ids, mut inner): (Vec<Id>, Vec<usize>) = (Vec::with_capacity(n), vec![]);
        for (k, kid) in kids.iter().enumerate() {
            let binds = head.binds(k, n);
            if binds > 0 {
                self.bind(head, &ids, env);
            }
            if binds > 0 || head == Head::If && k > 0 {
                let (scope, mut guards) = (self.scope.clone(), self.places[place].guards.clone());
                if binds == 0 {
                    guards.push(Guard { cond: ids[0], depth, holds: k == 1 });
                }
                inner.push(self.places.len());
                self.place = self.places.len();
                self.places.push(Place { parent: place, inside: Inside::Whole, scope, guards });
            }
            let made = deep(|| self.term(terms, *kid, env));
            env.truncate(vars);
            self.scope.truncate(depth);
            self.place = place;
            ids.push(made?);
        }
        // What a place is in is known once all of that is.
        let whole = self.world.flat.put(head, ids.iter().copied());
        for (k, at) in inner.into_iter().enumerate() {
            let arm = Inside::Arm(whole, ids[0], k == 0);
            self.places[at].inside = if head == Head::If { arm } else { Inside::Loop(whole) };
        }
        if matches!(head, Head::Reduce(..)) && self.world.flat.ty(whole).has_tensor() {
            match self.calls {
                0 => self.sums.push(Sum { from: Some(id), flat: whole, place }),
                _ if self.world.shaped.contains(&id) => {}
                _ => self.sums.push(Sum { from: None, flat: whole, place }),
            }
        }
        let World { flat, normal, def, .. } = &mut *self.world;
        Some(normal.node(flat, def, head, ids))
    }
}
