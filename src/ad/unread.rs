//! Parts of the states of scans that nobody reads are dropped, with what makes them.
//!
//! Scans give what the way back might ask for, before it is known what it asks for (`keep.rs`). Of a scan that a let
//! binds, with parts that its own steps do not read, only those stay that the body of the let reads, row by row. Whatever
//! is read otherwise stays as it is. It must not know what a derivative is.

use crate::ir::{Head, Id, Terms, Ty, deep};
use crate::types::shape::lowered;
use rustc_hash::{FxHashMap, FxHashSet};

/// A term without parts of scans that nobody reads.
pub fn without_unread(terms: &mut Terms, id: Id) -> Id {
    let of_parts = |id: Id, terms: &Terms| {
        terms.head(id) == Head::Scan && terms.head(terms.kids(id)[0]) == Head::Tuple
    };
    if !terms.reachable(id).into_iter().any(|id| of_parts(id, terms)) {
        return id;
    }
    Unread { terms, memo: FxHashMap::default() }.term(id)
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
    Rows,
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

    /// A let of a scan with the parts alone that are read, where there are others.
    fn narrowed(&mut self, id: Id) -> Option<Id> {
        let (Head::Let, [scan, rest]) = (self.terms.head(id), self.terms.kids(id)) else { return None };
        let (scan, rest) = (*scan, *rest);
        let (Head::Scan, [init, n, body]) = (self.terms.head(scan), self.terms.kids(scan)) else { return None };
        let (init, n, body) = (*init, *n, *body);
        if self.terms.head(init) != Head::Tuple || self.terms.head(end(self.terms, body)) != Head::Tuple {
            return None;
        }
        let starts = self.terms.kids(init).to_vec();
        let mut reads = Reads { parts: vec![false; starts.len()], by_parts: true, seen: FxHashSet::default() };
        self.reads(rest, 0, Where::Rows, &mut reads);
        reads.seen.clear();
        self.reads(body, 1, Where::Itself, &mut reads);
        if !reads.by_parts || !reads.parts.contains(&false) || !reads.parts.contains(&true) {
            return None;
        }
        let kept: Vec<usize> = (0..starts.len()).filter(|k| reads.parts[*k]).collect();
        let start = self.only(&starts, &kept);
        let last = end(self.terms, body);
        let ends = self.terms.kids(last).to_vec();
        let next = self.only(&ends, &kept);
        let body = self.ending(body, next);
        let ty = self.terms.ty(start);
        let body = self.renamed(body, (1, ty), Where::Itself, &kept);
        let narrow = self.terms.put(Head::Scan, [start, n, body]);
        self.terms.keep_hints(scan, narrow);
        let ty = self.terms.ty(narrow);
        let rest = self.renamed(rest, (0, ty), Where::Rows, &kept);
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
        if let Some((k, rest)) = self.read(id, index, place) {
            out.parts[k] = true;
            rest.into_iter().for_each(|i| deep(|| self.reads(i, index, place, out)));
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

    /// The part of the variable of an index that a term is, and the index of its row.
    fn read(&self, id: Id, index: usize, place: Where) -> Option<(usize, Option<Id>)> {
        let Head::Get(k, _) = self.terms.head(id) else { return None };
        let of = self.terms.kids(id)[0];
        let is = |id: Id| matches!(self.terms.head(id), Head::Var(i, _) if i as usize == index);
        match (place, self.terms.head(of), self.terms.kids(of)) {
            (Where::Itself, ..) if is(of) => Some((k as usize, None)),
            (Where::Rows, Head::Index(1), [i, v]) if is(*v) => Some((k as usize, Some(*i))),
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
            if let Some(row) = row {
                let row = deep(|| self.renamed_at(row, (index, ty), place, kept, memo));
                of = self.terms.put(Head::Index(1), [row, of]);
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
