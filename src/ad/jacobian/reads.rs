//! A term and a variable become the elements of the variable that the term reads.

use crate::ir::{Head, Id, Node, Terms, Ty, deep};
use crate::types::shape::lower;
use rustc_hash::{FxHashMap, FxHashSet};

/// Of more elements a parameter is read as a whole.
pub const ELEMENTS: usize = 8;

/// An element that is read.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its indices, in the scope of the term.
    pub at: Vec<Id>,
    /// Whether the term cannot have a value without reading it.
    pub certain: bool,
}

/// What a term reads of a variable.
#[derive(Clone, Debug)]
pub enum Read {
    /// At most its sizes.
    Nothing,
    /// These elements, by indices of the scope of the term. Indices that are not certain to be read have a value all the
    /// same.
    Elements(Vec<Place>),
    /// Other elements, or many.
    Whole,
}

/// What a term reads of a variable of its scope, counted from the innermost.
pub fn read(terms: &mut Terms, id: Id, var: usize) -> Read {
    let mut looking = Looking { terms, var, places: vec![], seen: FxHashSet::default() };
    if looking.node(id, 0, true).is_none() {
        return Read::Whole;
    }
    let places = looking.places;
    let total = |terms: &Terms, p: &Place| p.at.iter().all(|id| has_value(terms, *id));
    match places.is_empty() {
        true => Read::Nothing,
        false if places.iter().all(|p| p.certain || total(terms, p)) => Read::Elements(places),
        false => Read::Whole,
    }
}

/// Whether nothing in a term can fail.
fn has_value(terms: &Terms, id: Id) -> bool {
    terms.reachable(id).into_iter().all(|id| {
        let tys: Vec<Ty> = terms.kids(id).iter().map(|k| terms.ty(*k)).collect();
        !terms.head(id).is_partial(&tys)
    })
}

struct Looking<'a> {
    terms: &'a mut Terms,
    var: usize,
    places: Vec<Place>,
    seen: FxHashSet<(Id, usize, bool)>,
}

impl Looking<'_> {
    /// A node under so many more binders; nothing where it reads more than elements.
    fn node(&mut self, id: Id, under: usize, certain: bool) -> Option<()> {
        if !self.terms.free(id).has(self.var + under) || !self.seen.insert((id, under, certain)) {
            return Some(());
        }
        let Node { head, kids } = self.terms.node(id).clone();
        match head {
            Head::Var(..) if is_variable(self.terms, id, self.var + under) => return None,
            Head::Size(_) if is_variable(self.terms, kids[0], self.var + under) => return Some(()),
            Head::Index(d) if is_variable(self.terms, kids[d], self.var + under) => {
                let at = lower(self.terms, &kids[..d], under)?;
                return self.place(at, certain);
            }
            _ => {}
        }
        let n = kids.len();
        for (k, kid) in kids.into_iter().enumerate() {
            let once = !head.is_loop() || k + 1 < n;
            let certain = certain && once && !(head == Head::If && k > 0);
            let inner = under + head.binds(k, n);
            deep(|| self.node(kid, inner, certain))?;
        }
        Some(())
    }

    fn place(&mut self, at: Vec<Id>, certain: bool) -> Option<()> {
        if at.iter().any(|i| self.terms.free(*i).has(self.var)) {
            return None;
        }
        if let Some(place) = self.places.iter_mut().find(|p| p.at == at) {
            place.certain |= certain;
            return Some(());
        }
        (self.places.len() < ELEMENTS).then(|| self.places.push(Place { at, certain }))
    }
}

/// What stands for an element that is read: the arena, the indices in the scope of the whole term, and how many binders
/// lie between that and the place.
type With<'a> = dyn FnMut(&mut Terms, &[Id], usize) -> Id + 'a;

/// A term in which something else stands for every element that is read of a variable.
pub fn replaced(terms: &mut Terms, id: Id, var: usize, with: &mut With<'_>) -> Id {
    Replacing { terms, var, with, memo: FxHashMap::default() }.node(id, 0)
}

struct Replacing<'a, 'w> {
    terms: &'a mut Terms,
    var: usize,
    with: &'a mut With<'w>,
    memo: FxHashMap<(Id, usize), Id>,
}

impl Replacing<'_, '_> {
    fn node(&mut self, id: Id, under: usize) -> Id {
        if !self.terms.free(id).has(self.var + under) {
            return id;
        }
        if let Some(done) = self.memo.get(&(id, under)) {
            return *done;
        }
        let Node { head, kids } = self.terms.node(id).clone();
        let out = match self.element(head, &kids, under) {
            Some(at) => (self.with)(self.terms, &at, under),
            None => {
                let n = kids.len();
                let inner = |k| under + head.binds(k, n);
                let kids: Vec<Id> = (0..n).map(|k| deep(|| self.node(kids[k], inner(k)))).collect();
                let out = self.terms.put(head, kids);
                self.terms.keep_hints(id, out);
                out
            }
        };
        self.memo.insert((id, under), out);
        out
    }

    /// The indices of an element of the variable.
    fn element(&mut self, head: Head, kids: &[Id], under: usize) -> Option<Vec<Id>> {
        let Head::Index(d) = head else { return None };
        is_variable(self.terms, kids[d], self.var + under).then(|| lower(self.terms, &kids[..d], under))?
    }
}

fn is_variable(terms: &Terms, id: Id, index: usize) -> bool {
    matches!(terms.head(id), Head::Var(i, _) if i as usize == index)
}
