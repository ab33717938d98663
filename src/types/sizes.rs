//! Sizes that a declaration gives different names, where a program needs them to be equal.
//!
//! Names are followed through a body to the tensors of an operation. Different names may still stand
//! for equal numbers, so a body that compares the two sizes itself may rely on that; one that does
//! not is refused. What has no name is not judged here: it is checked when the program runs.

use crate::diag::{Diagnostic, Span};
use crate::ir::{Def, Fun, Head, Id, Op, Param, Terms, deep};
use indexmap::IndexMap;
use rustc_hash::{FxHashMap, FxHashSet};

/// Pairs of integers that a node needs to be equal, in the scope of the node: its form says so.
pub type Fits = FxHashMap<Id, Vec<(Id, Id)>>;

/// A name of a size, as a number.
type Name = u32;

/// What is known of the sizes of a value.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Known {
    Nothing,
    /// An integer that is this size.
    Size(Name),
    /// A tensor with sizes of these names, through nested tensors.
    Tensor(Vec<Option<Name>>),
    Tuple(Vec<Known>),
}

/// A scope as a number: equal knowledge of the variables is one scope.
type Scope = u32;

const ROOT: Scope = 0;

struct Walk<'a> {
    terms: &'a Terms,
    defs: &'a IndexMap<Fun, Def>,
    fits: &'a Fits,
    /// What is known of the variables in scope, outermost first, and the scope after each.
    env: Vec<(Known, Scope)>,
    scopes: FxHashMap<(Scope, Known), Scope>,
    seen: FxHashMap<(Id, Scope), Known>,
    /// Sizes that must be equal, and where.
    needed: Vec<(Id, Name, Name)>,
    /// Sizes that the body compares.
    compared: Vec<(Name, Name)>,
    /// Sizes that the body compares with something that has no name.
    free: FxHashSet<Name>,
}

/// What a body gets wrong about the named sizes of its parameters. `place` is its declaration.
pub fn check(
    terms: &Terms,
    defs: &IndexMap<Fun, Def>,
    fits: &Fits,
    (params, body, place): (&[Param], Id, Span),
) -> Vec<Diagnostic> {
    let mut names: Vec<&str> = vec![];
    for name in params.iter().flat_map(|p| &p.sizes) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    if names.len() < 2 {
        return vec![];
    }
    let number = |name: &String| names.iter().position(|n| n == name).map(|k| k as Name);
    let (env, scopes, seen, needed, compared, free) = Default::default();
    let mut walk = Walk { terms, defs, fits, env, scopes, seen, needed, compared, free };
    for p in params {
        walk.enter(match p.sizes.is_empty() {
            true => Known::Nothing,
            false => Known::Tensor(p.sizes.iter().map(number).collect()),
        });
    }
    walk.term(body);
    walk.errors(&names, place)
}

/// Whether a body may stand in a definition: it needs nothing of named sizes that a reader of its
/// text would refuse.
pub fn agree(defs: &IndexMap<Fun, Def>, def: &Def, terms: &Terms, body: Id) -> bool {
    check(terms, defs, &Fits::default(), (&def.params, body, def.span)).is_empty()
}

impl Walk<'_> {
    fn scope(&self) -> Scope {
        self.env.last().map_or(ROOT, |e| e.1)
    }

    fn enter(&mut self, known: Known) {
        let next = self.scopes.len() as Scope + 1;
        let scope = *self.scopes.entry((self.scope(), known.clone())).or_insert(next);
        self.env.push((known, scope));
    }

    fn term(&mut self, id: Id) -> Known {
        if let Head::Var(i, _) = self.terms.head(id) {
            let level = self.env.len().checked_sub(1 + i as usize);
            return level.map_or(Known::Nothing, |l| self.env[l].0.clone());
        }
        let scope = if self.terms.free(id).is_closed() { ROOT } else { self.scope() };
        if let Some(known) = self.seen.get(&(id, scope)) {
            return known.clone();
        }
        let known = deep(|| self.node(id));
        self.seen.insert((id, scope), known.clone());
        known
    }

    fn node(&mut self, id: Id) -> Known {
        let (terms, fits) = (self.terms, self.fits);
        let (head, kids) = (terms.head(id), terms.kids(id));
        let own = fits.get(&id);
        for (a, b) in own.into_iter().flatten() {
            let (a, b) = (self.term(*a), self.term(*b));
            self.equal(id, &a, &b);
        }
        let mut known = vec![];
        for (k, kid) in kids.iter().enumerate() {
            // A comparison that a form makes is a need, no question.
            if own.is_some() && head == Head::Assert && k == 0 {
                known.push(Known::Nothing);
                continue;
            }
            let depth = self.env.len();
            for bound in self.bound(head, &known, head.binds(k, kids.len())) {
                self.enter(bound);
            }
            let of = self.term(*kid);
            self.env.truncate(depth);
            known.push(of);
        }
        self.result(id, head, known)
    }

    /// What is known of the variables that a node binds, from its first children.
    fn bound(&self, head: Head, known: &[Known], n: usize) -> Vec<Known> {
        match head {
            _ if n == 0 => vec![],
            Head::Let => vec![known[0].clone()],
            Head::Fold => vec![known[0].clone(), inner(&known[1], 1)],
            Head::Scan => vec![known[0].clone(), Known::Nothing],
            _ => vec![Known::Nothing; n],
        }
    }

    fn result(&mut self, id: Id, head: Head, known: Vec<Known>) -> Known {
        let size = |k: &Known| if let Known::Size(n) = k { Some(*n) } else { None };
        let tensor = |sizes: &[Known], of: &Known| {
            let axes = self.terms.ty(id).axes();
            let inner = axes_of(of).into_iter().chain(std::iter::repeat(None));
            Known::Tensor(sizes.iter().map(size).chain(inner).take(axes).collect())
        };
        match head {
            Head::Let | Head::Assert => known[1].clone(),
            Head::If => common(&known[1], &known[2]),
            Head::Tuple => Known::Tuple(known),
            Head::Get(i, _) => match &known[0] {
                Known::Tuple(parts) => parts[i as usize].clone(),
                _ => Known::Nothing,
            },
            Head::Build(d) | Head::ConstVec(d) => tensor(&known[..d], &known[d]),
            Head::DeltaVec(d) => tensor(&known[..d], &known[2 * d]),
            Head::Scatter(d) => tensor(&known[..d], &Known::Nothing),
            Head::Scan => tensor(&known[1..2], &known[0]),
            Head::VecInit => {
                known[1..].iter().for_each(|k| self.equal(id, &known[0], k));
                let inner = axes_of(&known[0]);
                Known::Tensor([vec![None], inner].concat())
            }
            Head::Index(d) => inner(&known[d], d),
            Head::Sum => inner(&known[0], self.terms.ty(self.terms.kids(id)[0]).as_tensor().map_or(1, |t| t.0)),
            Head::Reduce(_, d) => known[d].clone(),
            Head::Fold => known[0].clone(),
            Head::Size(k) => match axes_of(&known[0]).get(k) {
                Some(Some(n)) => Known::Size(*n),
                Some(None) | None => Known::Nothing,
            },
            Head::Op(op) => self.operation(id, op, known),
            Head::Call(f) => {
                let pairs = self.defs.get(&f).map(Def::equal_sizes).unwrap_or_default();
                for ((p, a), (q, b), _) in pairs {
                    let at = |k: usize, axis: usize| axes_of(&known[k]).get(axis).copied().flatten();
                    self.need(id, at(p, a), at(q, b));
                }
                Known::Nothing
            }
            Head::Const(_) | Head::Var(..) | Head::Cast(_) | Head::Arg(_) | Head::Print => Known::Nothing,
        }
    }

    fn operation(&mut self, id: Id, op: Op, known: Vec<Known>) -> Known {
        if self.terms.ty(id).has_tensor() {
            let mut all = known.into_iter().filter(|k| !matches!(k, Known::Nothing | Known::Size(_)));
            let Some(first) = all.next() else { return Known::Nothing };
            return all.fold(first, |a, b| {
                self.equal(id, &a, &b);
                either(&a, &b)
            });
        }
        match (op, known.as_slice()) {
            (Op::Eq | Op::Ne | Op::Lt | Op::Gt | Op::Lte | Op::Gte, [Known::Size(a), Known::Size(b)]) => {
                self.compared.push((*a, *b));
            }
            (Op::Eq | Op::Ne, [Known::Size(a), _] | [_, Known::Size(a)]) => {
                self.free.insert(*a);
            }
            _ => {}
        }
        Known::Nothing
    }

    /// Says that two values must have equal sizes.
    fn equal(&mut self, at: Id, a: &Known, b: &Known) {
        match (a, b) {
            (Known::Size(a), Known::Size(b)) => self.need(at, Some(*a), Some(*b)),
            (Known::Tensor(a), Known::Tensor(b)) => a.iter().zip(b).for_each(|(a, b)| self.need(at, *a, *b)),
            (Known::Tuple(a), Known::Tuple(b)) => a.iter().zip(b).for_each(|(a, b)| self.equal(at, a, b)),
            _ => {}
        }
    }

    fn need(&mut self, at: Id, a: Option<Name>, b: Option<Name>) {
        if let (Some(a), Some(b)) = (a, b)
            && a != b
        {
            self.needed.push((at, a, b));
        }
    }

    /// The needs that nothing in the body asks for, one a node.
    fn errors(&self, names: &[&str], place: Span) -> Vec<Diagnostic> {
        let mut class: Vec<Name> = (0..names.len() as Name).collect();
        for (a, b) in &self.compared {
            let (a, b) = (class[*a as usize], class[*b as usize]);
            class.iter_mut().filter(|c| **c == a).for_each(|c| *c = b);
        }
        let mut told = FxHashSet::default();
        let wrong = self.needed.iter().filter(|(_, a, b)| {
            class[*a as usize] != class[*b as usize] && !self.free.contains(a) && !self.free.contains(b)
        });
        let once = wrong.filter(|(id, ..)| told.insert(*id)).collect::<Vec<_>>();
        once.into_iter().map(|(id, a, b)| *self.error(*id, names[*a as usize], names[*b as usize], place)).collect()
    }

    fn error(&self, id: Id, a: &str, b: &str, place: Span) -> Box<Diagnostic> {
        let inside = |s: &&Span| place.start <= s.start && s.end <= place.end;
        let at = self.terms.spans(id).iter().find(inside).copied().unwrap_or(place);
        let matrices = |k: &Id| self.terms.ty(*k).axes() == 2;
        let (what, hint) = match self.terms.head(id) {
            Head::Op(Op::Mul) if self.terms.kids(id).iter().all(matrices) => {
                ("`mul` works by element and needs".into(), Some("`matmul` is the product of matrices".to_string()))
            }
            Head::Op(op) => (format!("`{}` works by element and needs", op.name()), None),
            Head::Call(f) => (format!("`{}` needs", f.sig().name), None),
            _ => ("this needs".to_string(), None),
        };
        Diagnostic::user(format!("{what} equal sizes, and `{a}` and `{b}` are declared as two"))
            .at(at, format!("expected one size, found `{a}` and `{b}`"))
            .note(format!(
                "where they are one, both are called `{a}`; where they may be, `(assert (eq {a} {b}) …)` asks"
            ))
            .hint(hint)
    }
}

fn axes_of(k: &Known) -> Vec<Option<Name>> {
    match k {
        Known::Tensor(axes) => axes.clone(),
        Known::Nothing | Known::Size(_) | Known::Tuple(_) => vec![],
    }
}

/// What is known of the elements behind `n` axes.
fn inner(k: &Known, n: usize) -> Known {
    match k {
        Known::Tensor(axes) if axes.len() > n => Known::Tensor(axes[n..].to_vec()),
        _ => Known::Nothing,
    }
}

/// What holds of both.
fn common(a: &Known, b: &Known) -> Known {
    match (a, b) {
        (Known::Tensor(a), Known::Tensor(b)) => {
            Known::Tensor(a.iter().zip(b).map(|(a, b)| if a == b { *a } else { None }).collect())
        }
        (Known::Tuple(a), Known::Tuple(b)) => Known::Tuple(a.iter().zip(b).map(|(a, b)| common(a, b)).collect()),
        _ if a == b => a.clone(),
        _ => Known::Nothing,
    }
}

/// What is known of two values of equal sizes together.
fn either(a: &Known, b: &Known) -> Known {
    match (a, b) {
        (Known::Tensor(a), Known::Tensor(b)) => Known::Tensor(a.iter().zip(b).map(|(a, b)| a.or(*b)).collect()),
        (Known::Tuple(a), Known::Tuple(b)) => Known::Tuple(a.iter().zip(b).map(|(a, b)| either(a, b)).collect()),
        (Known::Nothing, b) => b.clone(),
        _ => a.clone(),
    }
}
