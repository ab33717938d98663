//! A body becomes its floats, in the structure of its type, each with what it reads of the parameters.

use super::reads::{Read, read};
use super::settled::settled;
use crate::ir::{Head, Id, Node, Terms, Ty, TyKind, deep};
use crate::types::shape::shape_as_made;
use std::collections::BTreeMap;

/// A part of a result. Terms are in the scope of the parameters and of the loops around the part, innermost last.
pub enum Component {
    /// Something without a derivative.
    Still,
    /// A float.
    Float {
        /// Its value.
        term: Id,
        /// What it reads of each parameter that is differentiated by.
        reads: Vec<Read>,
    },
    /// The parts of a tuple.
    Parts(Vec<Component>),
    /// A tensor whose elements are one term of their indices.
    Loop {
        /// The sizes of its axes.
        sizes: Vec<Id>,
        /// An element.
        each: Box<Component>,
    },
    /// A vector whose elements are terms of their own.
    Listed(Vec<Component>),
}

/// What floats of one place in a type read of a parameter, whatever the elements are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// At most its sizes.
    Nothing,
    /// So many elements.
    Elements(usize),
    /// Anything.
    Whole,
}

/// What the floats of a result read of each parameter, by their place in its type: the parts of tuples from outside.
pub type Kinds = BTreeMap<Vec<usize>, Vec<Kind>>;

impl Read {
    /// Of what kind it is.
    pub fn kind(&self) -> Kind {
        match self {
            Read::Nothing => Kind::Nothing,
            Read::Elements(places) => Kind::Elements(places.len()),
            Read::Whole => Kind::Whole,
        }
    }
}

impl Component {
    /// The floats of a normal body over so many parameters; `by` are those that are differentiated by. Floats of one
    /// place in the type read things of one kind.
    pub fn of(terms: &mut Terms, body: Id, params: usize, by: &[usize]) -> Component {
        let mut made = Taking { terms, by }.part(body, params);
        let kinds = made.kinds();
        made.settle(&kinds);
        made
    }

    /// What its floats read.
    pub fn kinds(&mut self) -> Kinds {
        let mut out = Kinds::new();
        self.each(&mut vec![], &mut |path, reads| {
            let found: Vec<Kind> = reads.iter().map(Read::kind).collect();
            let known = out.entry(path.to_vec()).or_insert_with(|| found.clone());
            for (known, found) in known.iter_mut().zip(found) {
                if *known != found {
                    *known = Kind::Whole;
                }
            }
        });
        out
    }

    /// Lets floats read whole parameters where `compressed` says no.
    pub fn forget(&mut self, compressed: &[bool]) {
        self.each(&mut vec![], &mut |_, reads| {
            for (read, _) in reads.iter_mut().zip(compressed).filter(|(_, c)| !**c) {
                *read = Read::Whole;
            }
        });
    }

    /// Lets floats read a whole parameter where that is the kind of their place.
    fn settle(&mut self, kinds: &Kinds) {
        self.each(&mut vec![], &mut |path, reads| {
            for (read, kind) in reads.iter_mut().zip(&kinds[path]) {
                if *kind == Kind::Whole {
                    *read = Read::Whole;
                }
            }
        });
    }

    /// Shows what each float reads, with its place in the type.
    fn each(&mut self, path: &mut Vec<usize>, see: &mut dyn FnMut(&[usize], &mut [Read])) {
        match self {
            Component::Still => {}
            Component::Float { reads, .. } => see(path, reads),
            Component::Loop { each: inner, .. } => inner.each(path, see),
            Component::Listed(all) => all.iter_mut().for_each(|c| c.each(path, see)),
            Component::Parts(parts) => {
                for (k, part) in parts.iter_mut().enumerate() {
                    path.push(k);
                    part.each(path, see);
                    path.pop();
                }
            }
        }
    }
}

struct Taking<'a> {
    terms: &'a mut Terms,
    /// The parameters that are differentiated by, from the first.
    by: &'a [usize],
}

impl Taking<'_> {
    /// A term with so many variables in its scope.
    fn part(&mut self, id: Id, depth: usize) -> Component {
        let ty = self.terms.ty(id);
        match ty.kind() {
            TyKind::Scalar(s) if s.is_float() => {
                let term = settled(self.terms, id);
                let reads = self.by.iter().map(|k| read(self.terms, term, depth - 1 - k)).collect();
                Component::Float { term, reads }
            }
            TyKind::Scalar(_) | TyKind::String | TyKind::Var(..) => Component::Still,
            TyKind::Tuple(parts) => {
                let n = parts.len();
                let parts = (0..n).map(|k| {
                    let part = part_of(self.terms, id, (k, n));
                    deep(|| self.part(part, depth))
                });
                Component::Parts(parts.collect())
            }
            TyKind::Tensor(1, _) if listed(self.terms, id).is_some() => {
                let all = listed(self.terms, id).unwrap_or_default();
                Component::Listed(all.into_iter().map(|id| deep(|| self.part(id, depth))).collect())
            }
            TyKind::Tensor(rank, _) => {
                let mut sizes = shape_as_made(self.terms, id);
                sizes.truncate(*rank);
                let inside = self.terms.shift(id, *rank);
                let at: Vec<Id> = (0..*rank).map(|k| self.terms.var((rank - 1 - k) as u32, Ty::int())).collect();
                let element = element(self.terms, inside, &at);
                Component::Loop { sizes, each: Box::new(deep(|| self.part(element, depth + rank))) }
            }
        }
    }
}

/// The elements of a vector that is written one by one, also where lets stand around it.
fn listed(terms: &mut Terms, id: Id) -> Option<Vec<Id>> {
    let Node { head, kids } = terms.node(id).clone();
    match head {
        Head::VecInit => Some(kids.to_vec()),
        Head::Let | Head::Assert => {
            let inner = deep(|| listed(terms, kids[1]))?;
            Some(inner.into_iter().map(|id| terms.put(head, [kids[0], id])).collect())
        }
        Head::If => {
            let (a, b) = (deep(|| listed(terms, kids[1]))?, deep(|| listed(terms, kids[2]))?);
            let both = (a.len() == b.len()).then(|| a.into_iter().zip(b))?;
            Some(both.map(|(a, b)| terms.put(head, [kids[0], a, b])).collect())
        }
        _ => None,
    }
}

/// An element of a tensor, without the tensor where that can be helped.
fn element(terms: &mut Terms, id: Id, at: &[Id]) -> Id {
    let Node { head, kids } = terms.node(id).clone();
    match head {
        Head::Build(d) if d == at.len() => terms.substitute(kids[d], at),
        Head::ConstVec(d) if d == at.len() => kids[d],
        Head::Let => {
            let at: Vec<Id> = at.iter().map(|i| terms.shift(*i, 1)).collect();
            let inner = deep(|| element(terms, kids[1], &at));
            terms.put(Head::Let, [kids[0], inner])
        }
        Head::Assert => {
            let inner = deep(|| element(terms, kids[1], at));
            terms.put(Head::Assert, [kids[0], inner])
        }
        Head::If => {
            let arms = [1, 2].map(|k| deep(|| element(terms, kids[k], at)));
            terms.put(Head::If, [kids[0], arms[0], arms[1]])
        }
        Head::Reduce(m, d) => {
            let at: Vec<Id> = at.iter().map(|i| terms.shift(*i, d)).collect();
            let inner = deep(|| element(terms, kids[d], &at));
            terms.put(Head::Reduce(m, d), kids[..d].iter().copied().chain([inner]).collect::<Vec<_>>())
        }
        _ => terms.put(Head::Index(at.len()), at.iter().copied().chain([id]).collect::<Vec<_>>()),
    }
}

/// A part of a tuple, without the tuple where that can be helped.
fn part_of(terms: &mut Terms, id: Id, (k, n): (usize, usize)) -> Id {
    let Node { head, kids } = terms.node(id).clone();
    match head {
        Head::Tuple => kids[k],
        Head::Let | Head::Assert => {
            let inner = deep(|| part_of(terms, kids[1], (k, n)));
            terms.put(head, [kids[0], inner])
        }
        Head::If => {
            let arms = [1, 2].map(|arm| deep(|| part_of(terms, kids[arm], (k, n))));
            terms.put(head, [kids[0], arms[0], arms[1]])
        }
        _ => terms.put(Head::Get(k as u32, n as u32), [id]),
    }
}
