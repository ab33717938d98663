//! Terms that a call of the language's library makes, of which printing makes that call again.
//!
//! What such a call means is spelled out in the nodes of the language, and its arguments are variables there. So the
//! term that it makes of variables is a pattern: a term that differs from it by what stands for these is the same
//! call, and reads back as the same term. Of the sizes that share a name both have the first. Where the source has no call
//! of a name, loops stay loops; where it has, a loop that somebody wrote in the same words is told as that call, too.

use super::head::Head;
use super::spelled::{Arg, Args, Names, Shared, Spelled};
use super::term::{Id, Terms, deep};
use super::ty::Ty;

/// So many binders may lie between a variable and where it is looked for: of more, sets of variables know too little.
pub(super) const REACH: usize = 60;

/// What is known of the arguments of a call, and which sizes are still to be compared.
#[derive(Default)]
struct Same {
    args: Vec<(u32, Arg<Id>)>,
    /// Variables of the types of arguments of which only sizes are met.
    guesses: Vec<(u32, u32)>,
    /// An axis of an argument, and what stands there: an axis of a variable.
    sizes: Vec<((u32, usize), (u32, usize))>,
}

impl Terms {
    /// Remembers what a call makes of variables.
    pub fn spell(&mut self, spelled: Spelled<Id>) {
        if !self.spelled.contains(&spelled) {
            self.spelled.push(spelled);
        }
    }

    /// Remembers that the source has a form that takes functions or arms.
    pub fn says(&mut self, form: &'static str) {
        if !self.forms.contains(&form) {
            self.forms.push(form);
        }
    }

    /// The first of these forms that the source has.
    pub fn said<'f>(&self, forms: &[&'f str]) -> Option<&'f str> {
        forms.iter().copied().find(|f| self.forms.contains(f))
    }

    /// Remembers the calls that another arena knows.
    pub fn spell_like(&mut self, from: &Terms) {
        for spelled in &from.spelled {
            let term = self.import(from, spelled.term);
            self.spell(Spelled { term, ..spelled.clone() });
        }
        from.forms.iter().for_each(|f| self.says(f));
    }

    /// Forgets the calls of a name, which means something else from here on.
    pub fn unspell(&mut self, name: &str) {
        self.spelled.retain(|s| s.name != name);
        self.forms.retain(|f| *f != name);
    }

    /// Forgets all calls and forms: what is printed is spelled out.
    pub fn spell_out(&mut self) {
        self.spelled.clear();
        self.forms.clear();
    }

    /// The call that makes a term.
    pub fn call_of(&self, id: Id, names: Names<'_>) -> Option<(&Spelled<Id>, Args<Id>)> {
        self.spelled.iter().find_map(|s| Some((s, self.arguments(s, id, names)?)))
    }

    /// What a call is called with where it makes a term.
    fn arguments(&self, spelled: &Spelled<Id>, id: Id, names: Names<'_>) -> Option<Args<Id>> {
        let mut same = Same::default();
        if !self.alike(spelled, (spelled.term, id), 0, names, &mut same) {
            return None;
        }
        let n = spelled.args.len();
        let args = (0..n).map(|k| same.arg((n - 1 - k) as u32)).collect::<Option<Args<Id>>>()?;
        let one = |((i, axis), (j, at)): &((u32, usize), (u32, usize))| {
            let Some(Arg::Var(own)) = same.arg(*i) else { return false };
            names(own, *axis).map_or((own, *axis), |(_, first)| first) == (*j, *at)
        };
        let fits = spelled.shared.as_ref().is_none_or(|known| *known == shared(&spelled.args, &args, names));
        (fits && same.sizes.iter().all(one)).then_some(args)
    }

    /// Whether a term is what a call makes of some arguments: those that `same` says.
    fn alike(&self, spelled: &Spelled<Id>, (a, b): (Id, Id), depth: u32, names: Names<'_>, same: &mut Same) -> bool {
        let (heads, kids) = ((self.head(a), self.head(b)), (self.kids(a), self.kids(b)));
        if let Head::Var(i, ty) = heads.0 {
            return match i.checked_sub(depth) {
                None => heads.0 == heads.1,
                Some(i) => {
                    let whole = depth == 0 && spelled.whole.contains(&(spelled.args.len() - 1 - i as usize));
                    let arg = self.argument(b, depth, names).or(whole.then_some(Arg::Term(b)));
                    ty == self.ty(b) && arg.is_some_and(|arg| same.takes(i, arg))
                }
            };
        }
        if let (Head::Size(k), Head::Size(l)) = heads
            && let (Some(i), Some(j)) = (self.variable(kids.0[0], depth), self.variable(kids.1[0], depth))
        {
            same.sizes.push(((i, k), (j, l)));
            if k == l && self.ty(kids.0[0]) == self.ty(kids.1[0]) {
                same.guesses.push((i, j));
            }
            return true;
        }
        let n = kids.0.len();
        let inner = |k: usize| depth + heads.0.binds(k, n) as u32;
        heads.0 == heads.1
            && n == kids.1.len()
            && (0..n).all(|k| self.alike(spelled, (kids.0[k], kids.1[k]), inner(k), names, same))
    }

    /// The variable that a term is, counted from outside of so many binders.
    pub(super) fn variable(&self, id: Id, depth: u32) -> Option<u32> {
        if let Head::Var(i, _) = self.head(id) { i.checked_sub(depth) } else { None }
    }

    /// What may stand in a call without a binding: a variable, a literal, or a size that has a name.
    pub(super) fn argument(&self, id: Id, depth: u32, names: Names<'_>) -> Option<Arg<Id>> {
        match self.head(id) {
            Head::Var(..) => self.variable(id, depth).map(Arg::Var),
            Head::Const(lit) => Some(Arg::Lit(lit)),
            Head::Size(axis) => {
                let of = self.variable(self.kids(id)[0], depth)?;
                names(of, axis).filter(|(_, first)| *first == (of, axis)).map(|_| Arg::Size(of, axis))
            }
            _ => None,
        }
    }

    /// Whether a variable stands in a term once, and in no loop there.
    pub fn once(&self, id: Id, variable: usize) -> bool {
        let mut found = 0;
        self.count(id, variable, &mut found);
        found == 1
    }

    /// Adds up how often a variable stands in a term; what a loop repeats counts as more than once.
    fn count(&self, id: Id, variable: usize, found: &mut usize) {
        if *found > 1 || !self.free(id).has(variable) {
            return;
        }
        if variable > REACH {
            *found += 2;
            return;
        }
        let (head, kids) = (self.head(id), self.kids(id));
        if let Head::Var(i, _) = head {
            *found += usize::from(i as usize == variable);
            return;
        }
        for (k, kid) in kids.iter().enumerate() {
            let binds = head.binds(k, kids.len());
            if binds > 0 && head != Head::Let && self.free(*kid).has(variable + binds) {
                *found += 2;
            }
            deep(|| self.count(*kid, variable + binds, found));
        }
    }
}

impl Same {
    fn arg(&self, variable: u32) -> Option<Arg<Id>> {
        let known = self.args.iter().find(|(i, _)| *i == variable).map(|(_, arg)| *arg);
        let guess = || self.guesses.iter().find(|(i, _)| *i == variable).map(|(_, j)| Arg::Var(*j));
        known.or_else(guess)
    }

    /// Whether a variable may stand for this: it stands for nothing yet, or for the same.
    fn takes(&mut self, variable: u32, arg: Arg<Id>) -> bool {
        match self.args.iter().find(|(i, _)| *i == variable) {
            Some((_, known)) => *known == arg && !matches!(arg, Arg::Term(_)),
            None => {
                self.args.push((variable, arg));
                true
            }
        }
    }
}

/// Which sizes of the arguments of a call have names, and which of those are one.
pub fn shared(tys: &[Ty], args: &[Arg<Id>], names: Names<'_>) -> Shared {
    let (mut seen, mut out): (Vec<&str>, Shared) = (vec![], vec![]);
    for (k, (ty, arg)) in tys.iter().zip(args).enumerate() {
        let Arg::Var(i) = arg else { continue };
        for axis in 0..ty.axes() {
            let Some((name, _)) = names(*i, axis) else { continue };
            let class = seen.iter().position(|n| *n == name).unwrap_or_else(|| {
                seen.push(name);
                seen.len() - 1
            });
            out.push((k, axis, class));
        }
    }
    out
}
