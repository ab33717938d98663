//! Terms that a call of the language's library makes, of which printing makes that call again.
//!
//! What such a call means is spelled out in the nodes of the language, and its arguments are variables there. So the
//! term that it made once is a pattern: a term that differs from it by which variables it has is the same call of
//! those, and reads back as the same term. Only calls that the source has are told again: loops that somebody wrote
//! stay loops.

use super::head::Head;
use super::spelled::{Arg, Args, Inner, Spelled};
use super::term::{Id, Terms};

impl Terms {
    /// Remembers that a term is a call of these variables and literals; with other arguments it is not remembered.
    /// Of a product of matrices it is said where its `inner` size comes from.
    pub fn spell(&mut self, name: &'static str, term: Id, args: &[Id], inner: Option<Inner>) {
        let arg = |id: &Id| match self.head(*id) {
            Head::Var(i, _) => self.free(term).has(i as usize).then_some(Arg::Var(i)),
            Head::Const(lit) => Some(Arg::Lit(lit)),
            _ => None,
        };
        if let Some(args) = args.iter().map(arg).collect::<Option<Args>>() {
            self.remember(Spelled { name, term, args, inner });
        }
    }

    /// Remembers the calls that another arena knows.
    pub fn spell_like(&mut self, from: &Terms) {
        for spelled in &from.spelled {
            let term = self.import(from, spelled.term);
            self.remember(Spelled { term, ..spelled.clone() });
        }
    }

    fn remember(&mut self, new: Spelled<Id>) {
        let knows = |s: &Spelled<Id>| {
            s.name == new.name && s.inner == new.inner && self.arguments(s, new.term).as_ref() == Some(&new.args)
        };
        if !self.spelled.iter().any(knows) {
            self.spelled.push(new);
        }
    }

    /// Forgets the calls of a name, which means something else from here on.
    pub fn unspell(&mut self, name: &str) {
        self.spelled.retain(|s| s.name != name);
    }

    /// The call that makes a term; `inner` says where the inner size of a product of two variables comes from.
    pub fn call_of(&self, id: Id, inner: &dyn Fn(Arg, Arg) -> Inner) -> Option<(&'static str, Args)> {
        self.spelled.iter().find_map(|s| {
            let args = self.arguments(s, id)?;
            let fits = s.inner.is_none_or(|known| matches!(*args, [a, b] if inner(a, b) == known));
            fits.then_some((s.name, args))
        })
    }

    /// What a call is called with where it makes a term.
    fn arguments(&self, spelled: &Spelled<Id>, id: Id) -> Option<Args> {
        let mut same = vec![];
        if self.size(spelled.term) != self.size(id) || !self.alike((spelled.term, id), 0, &mut same) {
            return None;
        }
        let of = |arg: &Arg| match arg {
            Arg::Var(i) => same.iter().find(|(a, _)| a == i).map(|(_, b)| Arg::Var(*b)),
            Arg::Lit(_) => Some(*arg),
        };
        spelled.args.iter().map(of).collect()
    }

    /// Whether terms differ by their free variables alone: those of the first stand for those of the second that `same`
    /// says. A term that was spelled is small.
    fn alike(&self, (a, b): (Id, Id), depth: u32, same: &mut Vec<(u32, u32)>) -> bool {
        let (heads, kids) = ((self.head(a), self.head(b)), (self.kids(a), self.kids(b)));
        if let (Head::Var(i, t), Head::Var(j, u)) = heads {
            return match (i.checked_sub(depth), j.checked_sub(depth)) {
                (None, None) => i == j,
                (Some(i), Some(j)) => {
                    let known = same.iter().find(|(a, _)| *a == i).map(|(_, b)| *b);
                    if known.is_none() {
                        same.push((i, j));
                    }
                    t == u && known.is_none_or(|k| k == j)
                }
                _ => false,
            };
        }
        let n = kids.0.len();
        let inner = |k: usize| depth + heads.0.binds(k, n) as u32;
        heads.0 == heads.1 && n == kids.1.len() && (0..n).all(|k| self.alike((kids.0[k], kids.1[k]), inner(k), same))
    }
}
