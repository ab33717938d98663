//! Parts of the states of scans, and of the elements of tensors, that nobody reads are dropped, with what makes them.
//!
//! Scans and loops give what the way back might ask for, before it is known what it asks for (`keep.rs`). Of one that a let
//! binds, with parts that its own steps do not read, only those stay that the body of the let reads, row by row. Whatever
//! is read otherwise stays as it is. It must not know what a derivative is.

use crate::ir::{Head, Id, Terms, Ty, deep};
use crate::types::shape::lowered;
use rustc_hash::{FxHashMap, FxHashSet};

/// A term without parts of scans and tensors that nobody reads.
pub fn without_unread(terms: &mut Terms, id: Id) -> Id {
    let of_parts = |id: Id| made_of(terms, id).is_some();
    if !terms.reachable(id).into_iter().any(of_parts) {
        return id;
    }
    Unread { terms, memo: FxHashMap::default() }.term(id)
}

/// Of a scan or a loop, the body, where that is seen to come to a tuple.
fn made_of(terms: &Terms, id: Id) -> Option<Id> {
    let kids = terms.kids(id);
    let body = match terms.head(id) {
        Head::Scan if terms.head(kids[0]) == Head::Tuple => kids[2],
        Head::Build(d) => kids[d],
        _ => return None,
    };
    (terms.head(end(terms, body)) == Head::Tuple).then_some(body)
}

struct Unread<'t> {
    terms: &'t mut Terms,
    memo: FxHashMap<Id, Id>,
}

/// How a variable is read.
struct Reads {
    /// Which parts.
    parts: Vec<bool>,
    /// Whether by parts alone.
    by_parts: bool,
    seen: FxHashSet<(Id, usize)>,
}

/// Where parts of a variable's value stand: in its rows, or in itself.
#[derive(Clone, Copy)]
enum Where {
    Rows(usize),
    Itself,
}

impl Unread<'_> {
    fn term(&mut self, id: Id) -> Id {
        if let Some(done) = self.memo.get(&id) {
            return *done;
        }
        let narrowed = self.narrowed(id).unwrap_or(id);
        let (head, kids) = (self.terms.head(narrowed), self.terms.kids(narrowed).to_vec());
        let kids: Vec<Id> = kids.into_iter().map(|k| deep(|| self.term(k))).collect();
        let out = self.terms.put(head, kids);
        self.terms.keep_hints(id, out);
        self.memo.insert(id, out);
        out
    }

    /// A let of a scan or loop with the parts alone that are read, where there are others.
    fn narrowed(&mut self, id: Id) -> Option<Id> {
        let (Head::Let, [made, rest]) = (self.terms.head(id), self.terms.kids(id)) else { return None };
        let (made, rest) = (*made, *rest);
        let body = made_of(self.terms, made)?;
        let (head, mut kids) = (self.terms.head(made), self.terms.kids(made).to_vec());
        let ends = self.terms.kids(end(self.terms, body)).to_vec();
        let mut reads = Reads { parts: vec![false; ends.len()], by_parts: true, seen: FxHashSet::default() };
        let rows = Where::Rows(if let Head::Build(d) = head { d } else { 1 });
        self.reads(rest, 0, rows, &mut reads);
        if head == Head::Scan {
            reads.seen.clear();
            self.reads(body, 1, Where::Itself, &mut reads);
        }
        if !reads.by_parts || !reads.parts.contains(&false) || !reads.parts.contains(&true) {
            return None;
        }
        let kept: Vec<usize> = (0..ends.len()).filter(|k| reads.parts[*k]).collect();
        let next = self.only(&ends, &kept);
        let mut body = self.ending(body, next);
        if head == Head::Scan {
            let starts = self.terms.kids(kids[0]).to_vec();
            kids[0] = self.only(&starts, &kept);
            let ty = self.terms.ty(kids[0]);
            body = self.renamed(body, (1, ty), Where::Itself, &kept);
        }
        if let Some(last) = kids.last_mut() {
            *last = body;
        }
        let narrow = self.terms.put(head, kids);
        self.terms.keep_hints(made, narrow);
        let ty = self.terms.ty(narrow);
        let rest = self.renamed(rest, (0, ty), rows, &kept);
        let out = self.terms.put(Head::Let, [narrow, rest]);
        self.terms.keep_hints(id, out);
        Some(out)
    }

    /// A tuple of some of these; of one alone itself.
    fn only(&mut self, all: &[Id], kept: &[usize]) -> Id {
        match kept {
            [one] => all[*one],
            _ => self.terms.put(Head::Tuple, kept.iter().map(|k| all[*k])),
        }
    }

    /// The lets of a body that are still used, around another end.
    fn ending(&mut self, body: Id, last: Id) -> Id {
        let (Head::Let, [value, rest]) = (self.terms.head(body), self.terms.kids(body)) else { return last };
        let (value, rest) = (*value, *rest);
        let inside = deep(|| self.ending(rest, last));
        match lowered(self.terms, inside, 1) {
            Some(out) => out,
            None => {
                let out = self.terms.put(Head::Let, [value, inside]);
                self.terms.keep_hints(body, out);
                out
            }
        }
    }

    /// Notes how the variable of an index is read.
    fn reads(&self, id: Id, index: usize, place: Where, out: &mut Reads) {
        if !self.terms.free(id).has(index) || !out.by_parts || !out.seen.insert((id, index)) {
            return;
        }
        if let Some((k, row)) = self.read(id, index, place) {
            out.parts[k] = true;
            row.into_iter().for_each(|i| deep(|| self.reads(i, index, place, out)));
            return;
        }
        if matches!(self.terms.head(id), Head::Var(i, _) if i as usize == index) {
            out.by_parts = false;
            return;
        }
        let (head, kids) = (self.terms.head(id), self.terms.kids(id));
        for (k, kid) in kids.iter().enumerate() {
            deep(|| self.reads(*kid, index + head.binds(k, kids.len()), place, out));
        }
    }

    /// The part of the variable of an index that a term is, and the indices of its row.
    fn read(&self, id: Id, index: usize, place: Where) -> Option<(usize, Vec<Id>)> {
        let Head::Get(k, _) = self.terms.head(id) else { return None };
        let of = self.terms.kids(id)[0];
        let is = |id: Id| matches!(self.terms.head(id), Head::Var(i, _) if i as usize == index);
        match (place, self.terms.head(of), self.terms.kids(of)) {
            (Where::Itself, ..) if is(of) => Some((k as usize, vec![])),
            (Where::Rows(d), Head::Index(n), [row @ .., v]) if d == n && is(*v) => Some((k as usize, row.to_vec())),
            _ => None,
        }
    }

    /// A term whose variable of an index has another type, of these parts alone.
    fn renamed(&mut self, id: Id, (index, ty): (usize, Ty), place: Where, kept: &[usize]) -> Id {
        self.renamed_at(id, (index, ty), place, kept, &mut FxHashMap::default())
    }

    fn renamed_at(
        &mut self,
        id: Id,
        (index, ty): (usize, Ty),
        place: Where,
        kept: &[usize],
        memo: &mut FxHashMap<(Id, usize), Id>,
    ) -> Id {
        if !self.terms.free(id).has(index) {
            return id;
        }
        if let Some(done) = memo.get(&(id, index)) {
            return *done;
        }
        let out = if let Some((k, row)) = self.read(id, index, place) {
            let mut of = self.terms.var(index as u32, ty);
            if let Where::Rows(d) = place {
                let mut at = Vec::with_capacity(d + 1);
                for i in row {
                    at.push(deep(|| self.renamed_at(i, (index, ty), place, kept, memo)));
                }
                at.push(of);
                of = self.terms.put(Head::Index(d), at);
            }
            match kept.iter().position(|kept| *kept == k) {
                Some(at) if kept.len() > 1 => self.terms.put(Head::Get(at as u32, kept.len() as u32), [of]),
                _ => of,
            }
        } else {
            let (head, kids) = (self.terms.head(id), self.terms.kids(id).to_vec());
            let n = kids.len();
            let mut made = Vec::with_capacity(n);
            for (k, kid) in kids.into_iter().enumerate() {
                let inside = index + head.binds(k, n);
                made.push(deep(|| self.renamed_at(kid, (inside, ty), place, kept, memo)));
            }
            self.terms.put(head, made)
        };
        self.terms.keep_hints(id, out);
        memo.insert((id, index), out);
        out
    }
}

/// What a body comes to behind its lets.
fn end(terms: &Terms, mut body: Id) -> Id {
    while terms.head(body) == Head::Let {
        body = terms.kids(body)[1];
    }
    body
}
