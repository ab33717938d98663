//! Terms and definitions become text that reads back to the same terms.
//!
//! Names come from the source where it chose some, else from a fixed list by the kind of binder, so
//! that terms without remembered names print the same whatever they were once called.

use super::head::{Head, Monoid, Signature};
use super::lit::Lit;
use super::names::{self, Numbers};
use super::op::Op;
use super::program::{Body, Def, Param, Program};
use super::term::{Id, Terms, deep};
use super::ty::{Ty, TyKind};
use rustc_hash::FxHashMap;

/// Lines are broken where they would be longer.
const WIDTH: usize = 96;
/// Indentation stops to grow here, so that deep terms print in linear space.
const MARGIN: usize = 60;

/// Prints a whole program.
pub fn program(p: &Program) -> String {
    p.defs.values().map(|d| def(&p.terms, d) + "\n").collect::<Vec<_>>().join("\n")
}

/// Prints one definition.
pub fn def(terms: &Terms, def: &Def) -> String {
    let sig = def.fun.sig();
    let args = || sig.params.iter().map(ToString::to_string).collect::<Vec<_>>();
    match def.body {
        Body::External => format!("(edef {} {} ({}))", sig.name, sig.ret, args().join(" ")),
        Body::Derivative => derivative(sig),
        Body::Term(body) => {
            let params: Vec<String> = def
                .params
                .iter()
                .map(|p| match p.sizes.len() {
                    0 => format!("({} : {})", p.name, p.ty),
                    1 => format!("({} : {} {})", p.name, p.ty, p.sizes[0]),
                    _ => format!("({} : {} ({}))", p.name, p.ty, p.sizes.join(" ")),
                })
                .collect();
            let head = format!("(def {} {} ({})", sig.name, sig.ret, params.join(" "));
            let mut printer = Printer::for_def(terms, def);
            printer.out = head;
            printer.newline(2);
            printer.term(body, 2);
            printer.out.push(')');
            printer.out
        }
    }
}

/// `(gdef rev [f T])` from the name `[rev f]` and the types of the derivative.
fn derivative(sig: &Signature) -> String {
    let inner = sig.name.strip_prefix('[').and_then(|n| n.strip_suffix(']')).unwrap_or(&sig.name);
    let (kind, of) = inner.split_once(' ').unwrap_or((inner, ""));
    // The others take the argument of `f` as a whole, and a tangent beside it.
    let arg = match (kind, sig.params.as_slice()) {
        ("CL", [one]) => *one,
        ("CL", many) => Ty::tuple(many),
        ("sufrevpass", [_, arg]) => *arg,
        (_, [arg, ..]) => *arg,
        (_, []) => Ty::tuple([]),
    };
    format!("(gdef {kind} [{of} {arg}])")
}

/// Prints a term whose free variables are `names`, outermost first.
pub fn term(terms: &Terms, id: Id, names: &[String]) -> String {
    let mut printer = Printer::new(terms);
    for n in names {
        printer.enter(n.clone());
    }
    printer.term(id, 0);
    printer.out
}

/// The parameter of a function that stands for an element of a tensor at the indices of a loop.
pub(super) struct Alias {
    pub name: String,
    /// The level of the first index.
    pub first: usize,
    /// How many indices there are.
    pub rank: usize,
    /// The level of the tensor.
    pub of: usize,
}

pub(super) struct Printer<'a> {
    pub terms: &'a Terms,
    /// The outermost variables, where these are parameters.
    pub params: &'a [Param],
    pub scope: Vec<String>,
    /// Parameters of functions in scope that are no variables of the term.
    pub aliases: Vec<Alias>,
    used: FxHashMap<String, usize>,
    numbers: Numbers,
    /// Text for the size of an axis of a parameter: (level, axis) to name.
    sizes: FxHashMap<(usize, usize), String>,
    out: String,
    column: usize,
}

impl<'a> Printer<'a> {
    fn new(terms: &'a Terms) -> Printer<'a> {
        let (scope, aliases, used, numbers, sizes) = Default::default();
        Printer { terms, params: &[], scope, aliases, used, numbers, sizes, out: String::new(), column: 0 }
    }

    fn for_def(terms: &'a Terms, def: &'a Def) -> Printer<'a> {
        let mut printer = Printer { params: &def.params, ..Printer::new(terms) };
        for (level, p) in def.params.iter().enumerate() {
            for axis in 0..p.sizes.len() {
                if let Some(name) = def.named_size((level, axis)) {
                    let name = name.to_string();
                    printer.sizes.insert((level, axis), name.clone());
                    *printer.used.entry(name.clone()).or_default() += 1;
                }
            }
        }
        for p in &def.params {
            printer.enter(p.name.clone());
        }
        printer
    }

    fn enter(&mut self, name: String) {
        *self.used.entry(name.clone()).or_default() += 1;
        self.scope.push(name);
    }

    fn leave(&mut self) {
        if let Some(name) = self.scope.pop() {
            self.forget(&name);
        }
    }

    /// Says that a name has left the scope.
    fn forget(&mut self, name: &str) {
        match self.used.get_mut(name) {
            Some(n) if *n > 1 => *n -= 1,
            _ => {
                self.used.remove(name);
                self.numbers.left(name);
            }
        }
    }

    fn push(&mut self, text: &str) {
        self.out.push_str(text);
        self.column += text.len();
    }

    fn newline(&mut self, indent: usize) {
        let indent = indent.min(MARGIN);
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n(' ', indent));
        self.column = indent;
    }

    /// A name for variable `k` of those that `id` binds: remembered or by kind, and new in scope.
    fn fresh(&mut self, id: Id, k: usize) -> String {
        let free = |n: &str| !self.used.contains_key(n);
        let chosen = self.terms.chosen(id).and_then(|names| names.get(k)).map(String::as_str);
        // A let that a pass made is called what its value was called, unless the pass knows that it had no name.
        let made = self.terms.head(id) == Head::Let && self.terms.names(id).is_none();
        let value = || if made { self.terms.labelled(self.terms.kids(id)[0]) } else { None };
        match chosen.or_else(value) {
            Some(name) => self.numbers.free(names::base(name), free),
            None => self.numbers.generated(self.terms.head(id), k, free),
        }
    }

    /// The term on one line, if that is at most `room` characters.
    fn flat(&mut self, id: Id, room: usize) -> Option<String> {
        // Every node but a let-bound variable, and a call of the library, prints at least two characters.
        if self.terms.size(id) > room as u64 && self.told(id).is_none() {
            return None;
        }
        let (out, column) = (std::mem::take(&mut self.out), self.column);
        self.column = 0;
        self.line(id, room);
        let text = std::mem::replace(&mut self.out, out);
        self.column = column;
        (text.len() <= room).then_some(text)
    }

    fn line(&mut self, id: Id, room: usize) {
        if self.out.len() > room {
            return;
        }
        let parts = self.parts(id);
        for part in parts {
            match part {
                Part::Text(t) => self.out.push_str(&t),
                Part::Break => self.out.push(' '),
                Part::Term(kid) => self.line(kid, room),
                other => {
                    let name = self.scoped(other);
                    self.out.push_str(&name);
                }
            }
        }
    }

    fn term(&mut self, id: Id, indent: usize) {
        let room = WIDTH.saturating_sub(self.column).max(24);
        if let Some(text) = self.flat(id, room) {
            self.push(&text);
            return;
        }
        if self.terms.head(id) == Head::Let && self.told(id).is_none() {
            return self.lets(id, indent);
        }
        for part in self.parts(id) {
            match part {
                Part::Text(t) => self.push(&t),
                Part::Break => self.newline(indent + 2),
                Part::Term(kid) => deep(|| self.term(kid, indent + 2)),
                other => {
                    let name = self.scoped(other);
                    self.push(&name);
                }
            }
        }
    }

    /// Changes what is in scope; gives the name that stands there.
    fn scoped(&mut self, part: Part) -> String {
        match part {
            Part::Enter(k, of) => {
                let name = self.fresh(of, k);
                self.enter(name.clone());
                return name;
            }
            Part::Again(k, of) => {
                let name = self.fresh(of, k);
                self.enter(name);
            }
            Part::Leave => self.leave(),
            Part::Hide(n) => self.scope.extend(std::iter::repeat_n(String::new(), n)),
            Part::Show(n) => self.scope.truncate(self.scope.len() - n),
            Part::Alias(of, alias) => {
                let free = |n: &str| !self.used.contains_key(n);
                let known = Some(alias.name.as_str()).filter(|name| !name.is_empty());
                let name = match known.or_else(|| self.terms.labelled(of)) {
                    Some(name) => self.numbers.free(names::base(name), free),
                    None => self.numbers.generated(Head::Let, 0, free),
                };
                *self.used.entry(name.clone()).or_default() += 1;
                self.aliases.push(Alias { name: name.clone(), ..alias });
                return name;
            }
            Part::Unalias => {
                if let Some(alias) = self.aliases.pop() {
                    self.forget(&alias.name);
                }
            }
            Part::Text(_) | Part::Break | Part::Term(_) => {}
        }
        String::new()
    }

    /// A chain of lets as one form with a binding a line.
    fn lets(&mut self, mut id: Id, indent: usize) {
        let from = self.scope.len();
        self.push("(let (");
        while self.terms.head(id) == Head::Let && self.told(id).is_none() {
            let (value, body) = (self.terms.kids(id)[0], self.terms.kids(id)[1]);
            if self.scope.len() > from {
                self.newline(indent + 6);
            }
            let name = self.fresh(id, 0);
            // `((a b) (c d))` would read as one pattern, so such a binding gets a form of its own.
            let alone = self.scope.len() == from && self.is_word(value);
            self.push(&if alone { format!("{name} ") } else { format!("({name} ") });
            deep(|| self.term(value, indent + 6));
            self.enter(name);
            id = body;
            if alone {
                break;
            }
            self.push(")");
        }
        self.push(")");
        self.newline(indent + 2);
        deep(|| self.term(id, indent + 2));
        self.push(")");
        while self.scope.len() > from {
            self.leave();
        }
    }

    /// Whether a term is printed without parentheses.
    fn is_word(&self, id: Id) -> bool {
        self.alias(id).is_some()
            || self.terms.kids(id).len() <= 1
                && matches!(self.parts(id).as_slice(), [Part::Text(t)] if !t.starts_with('('))
    }

    fn parts(&self, id: Id) -> Vec<Part> {
        if let Some(told) = self.told(id) {
            return told;
        }
        let node = self.terms.node(id);
        let kids = &node.kids;
        let text = |t: String| vec![Part::Text(t)];
        match node.head {
            Head::Const(l) => text(l.to_string()),
            Head::Var(i, _) => text(self.variable(i)),
            Head::Let => vec![
                Part::Text("(let (".into()),
                Part::Enter(0, id),
                Part::Leave,
                Part::Text(" ".into()),
                Part::Term(kids[0]),
                Part::Text(") ".into()),
                Part::Again(0, id),
                Part::Term(kids[1]),
                Part::Leave,
                Part::Text(")".into()),
            ],
            Head::If => self.call("if", kids),
            Head::Assert => self.call("assert", kids),
            Head::Tuple => self.call("tuple", kids),
            Head::Get(i, n) => self.call(&format!("get${}${n}", i + 1), kids),
            Head::Call(f) => self.call(&f.sig().name, kids),
            Head::Op(op) => self.call(op.name(), kids),
            Head::Cast(s) => self.call(&format!("cast {}", s.name()), kids),
            Head::Build(d) => self.looped("build", id, d),
            Head::Reduce(Monoid::Add, d) => self.looped("sumbuild", id, d),
            Head::Reduce(m, d) => self.looped(&format!("reduce {}", m.name()), id, d),
            Head::Arg(m) => self.looped(if m == Monoid::Min { "argmin" } else { "argmax" }, id, 1),
            Head::Scatter(d) => {
                let mut out = vec![Part::Text("(buildFromSparse ".into())];
                self.index(&kids[..d], &mut out);
                out.extend([Part::Break, Part::Term(kids[d]), Part::Break]);
                self.lambda(id, &mut out);
                out.push(Part::Text(")".into()));
                out
            }
            Head::Sum => self.call("sum", kids),
            Head::Index(d) => {
                let mut out = vec![Part::Text("(index ".into())];
                self.index(&kids[..d], &mut out);
                out.extend([Part::Break, Part::Term(kids[d]), Part::Text(")".into())]);
                out
            }
            Head::Size(k) => self.size(k, kids[0]),
            Head::Fold => {
                if let Some(out) = self.contracted(id) {
                    return out;
                }
                let mut out = vec![Part::Text("(fold ".into())];
                self.lambda(id, &mut out);
                for kid in &kids[..2] {
                    out.extend([Part::Break, Part::Term(*kid)]);
                }
                out.push(Part::Text(")".into()));
                out
            }
            Head::Scan => {
                let mut out = vec![Part::Text("(scan ".into())];
                self.lambda(id, &mut out);
                for kid in &kids[..2] {
                    out.extend([Part::Break, Part::Term(*kid)]);
                }
                out.push(Part::Text(")".into()));
                out
            }
            Head::ConstVec(d) => {
                let mut out = vec![Part::Text("(constVec ".into())];
                self.index(&kids[..d], &mut out);
                out.extend([Part::Break, Part::Term(kids[d]), Part::Text(")".into())]);
                out
            }
            Head::DeltaVec(d) => {
                let mut out = vec![Part::Text("(deltaVec ".into())];
                self.index(&kids[..d], &mut out);
                out.push(Part::Break);
                self.index(&kids[d..2 * d], &mut out);
                out.extend([Part::Break, Part::Term(kids[2 * d]), Part::Text(")".into())]);
                out
            }
            Head::VecInit => self.call("Vec_init", kids),
            Head::Print => self.call("print", kids),
        }
    }

    pub(super) fn variable(&self, i: u32) -> String {
        match self.scope.len().checked_sub(1 + i as usize) {
            Some(level) => self.scope[level].clone(),
            None => format!("<free {}>", i as usize - self.scope.len()),
        }
    }

    fn size(&self, axis: usize, of: Id) -> Vec<Part> {
        if let Head::Var(i, _) = self.terms.head(of)
            && let Some(level) = self.scope.len().checked_sub(1 + i as usize)
            && let Some(name) = self.sizes.get(&(level, axis))
        {
            return vec![Part::Text(name.clone())];
        }
        match self.terms.ty(of).kind() {
            TyKind::Tensor(1, _) if axis == 0 => self.call("size", &[of]),
            _ => self.call(&format!("size${}", axis + 1), &[of]),
        }
    }

    fn call(&self, name: &str, kids: &[Id]) -> Vec<Part> {
        let mut out = vec![Part::Text(format!("({name}"))];
        for kid in kids {
            out.extend([Part::Break, Part::Term(*kid)]);
        }
        out.push(Part::Text(")".into()));
        out
    }

    /// One index, or a tuple of several.
    fn index(&self, kids: &[Id], out: &mut Vec<Part>) {
        match kids {
            [one] => out.push(Part::Term(*one)),
            many => {
                out.push(Part::Text("(tuple".into()));
                for kid in many {
                    out.extend([Part::Text(" ".into()), Part::Term(*kid)]);
                }
                out.push(Part::Text(")".into()));
            }
        }
    }

    fn looped(&self, name: &str, id: Id, rank: usize) -> Vec<Part> {
        let mut out = vec![Part::Text(format!("({name} "))];
        self.index(&self.terms.kids(id)[..rank], &mut out);
        out.push(Part::Text(" ".into()));
        self.lambda(id, &mut out);
        out.push(Part::Text(")".into()));
        out
    }

    /// A sum of products that are contracted, from 0: `(reduce fma n (lam (i : Integer) (tuple a b)))`.
    pub(super) fn contracted(&self, id: Id) -> Option<Vec<Part>> {
        let [first, steps, step] = *self.terms.kids(id) else { return None };
        let zero = self.terms.ty(first).as_scalar().filter(|s| s.is_float()).map(Lit::zero);
        let (Head::Build(1), [n, each]) = (self.terms.head(steps), self.terms.kids(steps)) else { return None };
        let (Head::Op(Op::Fma), [a, b, acc]) = (self.terms.head(step), self.terms.kids(step)) else { return None };
        let is = |id: Id, k: u32| matches!(self.terms.head(id), Head::Var(i, _) if i == k);
        let reads = |id: Id| self.terms.free(id).has(1);
        if zero.is_none() || self.terms.as_lit(first) != zero || !is(*each, 0) || !is(*acc, 1) || reads(*a) || reads(*b)
        {
            return None;
        }
        Some(vec![
            Part::Text("(reduce fma ".into()),
            Part::Term(*n),
            Part::Text(" (lam (".into()),
            Part::Again(0, id),
            Part::Enter(1, id),
            Part::Text(" : Integer)".into()),
            Part::Break,
            Part::Text("(tuple ".into()),
            Part::Term(*a),
            Part::Text(" ".into()),
            Part::Term(*b),
            Part::Text(")".into()),
            Part::Leave,
            Part::Leave,
            Part::Text("))".into()),
        ])
    }

    /// The last child as a lambda.
    fn lambda(&self, id: Id, out: &mut Vec<Part>) {
        let kids = self.terms.kids(id);
        let tys: Vec<Ty> = kids.iter().map(|k| self.terms.ty(*k)).collect();
        let bound = self.terms.head(id).bound_tys(&tys);
        out.push(Part::Text(if bound.len() == 1 { "(lam " } else { "(lam (" }.into()));
        for (k, ty) in bound.iter().enumerate() {
            out.push(Part::Text(if k == 0 { "(" } else { " (" }.into()));
            out.push(Part::Enter(k, id));
            out.push(Part::Text(format!(" : {ty})")));
        }
        out.push(Part::Text(if bound.len() == 1 { "" } else { ")" }.into()));
        out.push(Part::Break);
        if let Some(body) = kids.last() {
            out.push(Part::Term(*body));
        }
        out.extend(bound.iter().map(|_| Part::Leave));
        out.push(Part::Text(")".into()));
    }
}

/// What text is made of.
pub(super) enum Part {
    Text(String),
    Break,
    Term(Id),
    /// Prints a name for variable k of a binder and brings it into scope.
    Enter(usize, Id),
    /// Brings the name into scope that was printed before.
    Again(usize, Id),
    Leave,
    /// Brings so many variables into scope that have no names, since nothing prints them.
    Hide(usize),
    /// Takes them out of scope.
    Show(usize),
    /// Prints a name for the element that stands there, the one that is known or else that of its value, and brings it
    /// into scope.
    Alias(Id, Alias),
    Unalias,
}
