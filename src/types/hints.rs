//! Names and calls that mean nothing become errors that say what was meant.
//!
//! A hint is a guess, so it is made only where what it proposes would be right.

use super::Elab;
use super::expr::{form_names, is_form};
use super::meaning::Meaning;
use super::named::suffixed;
use super::{call, foreign};
use crate::diag::{Diagnostic, nearest};
use crate::ir::op::{ROWS, Sig};
use crate::ir::read::{Atom, Form};
use crate::ir::{Fun, Id, Lit, Monoid, Op, Scalar, Ty};

/// Parts of a hint that are longer than this are left out.
const SHORT: usize = 24;

/// Calls of more arguments are not searched for conversions.
const CONVERTED: usize = 4;

/// Another type that an argument could have, how it would be written, and how much that changes.
struct Conversion {
    ty: Ty,
    text: String,
    cost: usize,
}

impl Elab<'_> {
    /// A name that stands for no value.
    pub(super) fn no_such_name(&mut self, at: usize, name: &str) -> Box<Diagnostic> {
        if !self.missed.insert(format!("value {name}")) {
            return Diagnostic::consequence();
        }
        let hint = if self.is_function(name) {
            Some(format!("`{name}` is a function; call it with brackets: `({name} …)`"))
        } else {
            let known = || self.names.keys().map(String::as_str);
            foreign::value(name)
                .or_else(|| whole_number(name))
                .or_else(|| self.punctuated(name))
                .or_else(|| nearest(name, known()))
        };
        self.error(at, &format!("unknown name `{name}`"), "not in scope here").hint(hint)
    }

    fn is_function(&self, name: &str) -> bool {
        let built_in = |name: &str| Op::named(name).next().is_some() || call::is_prelude(name);
        let older = || suffixed(name).is_some_and(|(base, _)| built_in(base));
        self.by_name.contains_key(name) || is_form(name) || built_in(name) || older() || self.is_derivative(name)
    }

    /// Whether a word is a number or the name of a value.
    fn is_value(&self, word: &str) -> bool {
        self.names.contains_key(word) || word.parse::<f64>().is_ok()
    }

    /// Whether a name is that of a value and of no function.
    pub(super) fn stands_for_value(&self, name: &str) -> bool {
        (matches!(name, "true" | "false") || self.names.contains_key(name)) && !self.is_function(name)
    }

    /// `x+1.0` and `x,` are names here: what was meant by them.
    fn punctuated(&self, name: &str) -> Option<String> {
        let bare = name.trim_matches(',');
        if bare != name && self.is_value(bare) {
            return Some("parts are separated by spaces alone".into());
        }
        let split = name.char_indices().skip(1).find_map(|(k, _)| {
            let signs = name[k..].find(|c: char| c.is_alphanumeric() || c == '_')?;
            let (a, sign, b) = (&name[..k], &name[k..k + signs], &name[k + signs..]);
            let op = *foreign::function(sign).first()?;
            (self.is_value(a) && self.is_value(b) && self.is_function(op)).then(|| format!("({op} {a} {b})"))
        });
        split.map(|s| format!("an operation stands before its arguments: `{s}`"))
    }

    /// A call of what is no function of that name at all; nothing where there is one.
    pub(super) fn no_such_function(
        &mut self,
        at: usize,
        head: usize,
        name: &str,
        args: &[usize],
    ) -> Option<Box<Diagnostic>> {
        if self.is_function(name) {
            return None;
        }
        if self.doubtful.contains(name) || !self.missed.insert(format!("function {name}")) {
            return Some(Diagnostic::consequence());
        }
        let message = format!("unknown function `{name}`");
        if let Some(hint) = self.infix(&[&[head], args].concat()) {
            let message = if self.is_value(name) { format!("`{name}` is no function") } else { message };
            return Some(self.error(at, &message, "an operation stands before its arguments").hint(Some(hint)));
        }
        if self.is_value(name) {
            let hint = args.first().and_then(|brackets| self.subscript(Some(head), *brackets));
            return Some(self.error(head, &format!("`{name}` is no function"), "this is a value").hint(hint));
        }
        Some(self.error(head, &message, "not defined above").hint(self.function_hint(name, args)))
    }

    /// What a call of a value, or of no name, means to people of other languages.
    pub(super) fn infix(&self, parts: &[usize]) -> Option<String> {
        let [left, sign, right, ..] = parts else { return None };
        let names = foreign::function(self.tree.name(*sign).filter(|n| foreign::is_operator(n))?);
        let name = names.iter().find(|n| self.is_function(n))?;
        Some(format!("write {}", self.spelled(name, &[*left, *right])))
    }

    /// Brackets behind a tensor, as in `v[0]`: how an element is read here.
    pub(super) fn subscript(&self, of: Option<usize>, brackets: usize) -> Option<String> {
        let Form::Bracket(parts) = &self.tree.at(brackets).form else { return None };
        let is_index = |at: &usize| match &self.tree.at(*at).form {
            Form::Atom(Atom::Name(_)) => self.tree.name(*at).is_some_and(|name| self.is_value(name)),
            Form::Atom(Atom::Number(_)) | Form::List(_) => true,
            Form::Atom(Atom::Text(_)) | Form::Bracket(_) => false,
        };
        if parts.is_empty() || !parts.iter().all(is_index) {
            return None;
        }
        let each: Vec<&str> = parts.iter().map(|at| self.source(*at)).collect();
        let index = if let [one] = each.as_slice() { one.to_string() } else { format!("(tuple {})", each.join(" ")) };
        Some(format!("an element is read by `(index {index} {})`", of.map_or("…", |at| self.source(at))))
    }

    /// What was meant by a reduction of another language.
    pub(super) fn reduction(&self, args: &[usize]) -> Option<String> {
        let said = self.tree.name(*args.first()?)?;
        let mut names = std::iter::once(said).chain(foreign::function(said).iter().copied());
        let name = names.find(|n| Monoid::ALL.iter().any(|m| m.name() == *n))?;
        let called = (name != said).then(|| format!("`{said}` is called `{name}`"));
        let [_, of] = args else { return called };
        let of = self.source(*of);
        let whole = match name {
            "add" => format!("write `(sum {of})`"),
            _ => format!("write `(reduce {name} (size {of}) (lam (i : Integer) (index i {of})))`"),
        };
        Some(called.into_iter().chain([whole]).collect::<Vec<_>>().join("; "))
    }

    fn function_hint(&self, name: &str, args: &[usize]) -> Option<String> {
        let below = self.tree.top.iter().any(|at| {
            let parts = self.tree.headed(*at, "def").unwrap_or_default();
            parts.first().is_some_and(|n| self.tree.name(*n) == Some(name))
        });
        if below {
            return Some(format!("`{name}` is defined below; a definition stands above its uses"));
        }
        if let (Some(op), [one]) = (foreign::twice(name), args) {
            return Some(format!("write {}", self.spelled(op, &[*one, *one])));
        }
        let unary = |n: &&str| Op::named(n).all(|op| matches!(op.row().sig, Sig::Number | Sig::FloatFn));
        let here = foreign::function(name).iter().filter(|n| self.is_function(n) || n.starts_with("get$"));
        let mut here: Vec<&str> = here.copied().collect();
        if let Some(one) = here.iter().find(|n| args.len() == 1 && Op::named(n).next().is_some() && unary(n)) {
            here = vec![*one];
        } else if foreign::is_operator(name) {
            here.retain(|n| args.len() == 1 || Op::named(n).next().is_none() || !unary(n));
        }
        if let [first, ..] = here.as_slice() {
            let names: Vec<String> = here.iter().map(|n| format!("`{n}`")).collect();
            let example = match Op::named(first).next() {
                Some(_) if !args.is_empty() => format!(": {}", self.spelled(first, args)),
                Some(_) | None => String::new(),
            };
            return Some(format!("it is called {}{example}", names.join(" or ")));
        }
        let mut names: Vec<&str> = self.by_name.keys().map(String::as_str).collect();
        names.extend(ROWS.iter().map(|r| r.name));
        for form in form_names() {
            names.push(form);
        }
        names.extend(call::prelude().iter().map(|p| p.0));
        self.punctuated(name).or_else(|| nearest(name, names)).or_else(|| {
            name.starts_with('[').then(|| "derivatives exist where a `gdef` or a `def` makes them".to_string())
        })
    }

    /// A call as it would be written, arguments that are long left out, and whole numbers beside floats as floats.
    fn spelled(&self, name: &str, args: &[usize]) -> String {
        let alike = |op: Op| matches!(op.row().sig, Sig::Numbers | Sig::Order | Sig::Equality | Sig::Floats);
        let float = args.iter().find_map(|at| self.type_of(*at)?.as_scalar().filter(|s| s.is_float()));
        let float = float.filter(|_| Op::named(name).any(alike));
        let written = |at: &usize| match (&self.tree.at(*at).form, float) {
            (Form::Atom(Atom::Number(lit)), Some(s)) => exact(*lit, s).map(|lit| lit.to_string()),
            _ => None,
        };
        let args = args.iter().map(|at| written(at).unwrap_or_else(|| self.source(*at).to_string()));
        format!("`({name} {})`", args.collect::<Vec<_>>().join(" "))
    }

    /// The type of a number or a name; nothing of what would have to be looked into.
    fn type_of(&self, at: usize) -> Option<Ty> {
        match &self.tree.at(at).form {
            Form::Atom(Atom::Number(lit)) => Some(lit.ty()),
            Form::Atom(Atom::Name(_)) => match self.names.get(self.tree.name(at)?)?.last()? {
                Meaning::Level(level) => self.scope.get(*level).copied(),
                Meaning::Size(..) => Some(Ty::int()),
                Meaning::Parts(_) | Meaning::Unknown => None,
            },
            Form::Atom(Atom::Text(_)) | Form::List(_) | Form::Bracket(_) => None,
        }
    }

    /// What was meant by an element whose tensor stands before its index.
    pub(super) fn swapped(&self, args: &[usize]) -> Option<String> {
        let [of, index] = *args else { return None };
        self.type_of(of)?.as_tensor()?;
        (self.type_of(index)? == Ty::int()).then(|| format!("write {}", self.spelled("index", &[index, of])))
    }

    /// What was meant by a `let` without a body: what stands last among its bindings is a call.
    pub(super) fn body_among_bindings(&self, args: &[usize]) -> Option<String> {
        let [bindings] = *args else { return None };
        let Form::List(each) = &self.tree.at(bindings).form else { return None };
        let [first @ .., body] = each.as_slice() else { return None };
        let Form::List(call) = &self.tree.at(*body).form else { return None };
        let called = call.first().and_then(|head| self.tree.name(*head)).is_some_and(|name| self.is_function(name));
        let first: Vec<&str> = first.iter().map(|at| self.source(*at)).collect();
        let body = self.source(*body);
        (called && !first.is_empty())
            .then(|| format!("the body stands behind the bindings: `(let ({}) {body})`", first.join(" ")))
    }

    /// The text of a form where it is short.
    fn source(&self, at: usize) -> &str {
        let span = self.tree.at(at).span;
        let text = self.text.get(span.start as usize..span.end as usize).unwrap_or("…");
        if text.len() > SHORT || text.contains('\n') { "…" } else { text }
    }

    /// A call whose name is known, but not with these arguments.
    pub(super) fn no_such_call(
        &self,
        head: usize,
        name: &str,
        ids: &[Id],
        tys: &[Ty],
        args: &[usize],
    ) -> Box<Diagnostic> {
        if self.doubtful.contains(name) || self.is_doubtful_derivative(name) {
            return Diagnostic::consequence();
        }
        let show = |tys: &[Ty]| tys.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        let user = self.by_name.get(name).into_iter().flatten();
        let sigs = user.map(|f: &Fun| format!("({name} {}) -> {}", show(&f.sig().params), f.sig().ret));
        let ops = ROWS.iter().filter(|r| r.name == name).map(|r| format!("{name} takes {}", describe(r.op)));
        let known = call::prelude();
        let more = known.iter().filter(|p| p.0 == name).map(|(_, p, r)| format!("({name} {}) -> {r}", show(p)));
        let label = if tys.is_empty() { "found no arguments".to_string() } else { format!("found ({})", show(tys)) };
        let mut d = self.error(head, &format!("`{name}` does not take these arguments"), &label);
        for c in sigs.chain(ops).chain(more).chain(self.derivatives(name)) {
            d = d.note(format!("candidate: {c}"));
        }
        d.hint(self.converted(name, ids, tys, args))
    }

    /// The arguments that would have to be converted for the call to be one, and how.
    fn converted(&self, name: &str, ids: &[Id], tys: &[Ty], args: &[usize]) -> Option<String> {
        if tys.len() > CONVERTED || ids.len() != args.len() {
            return None;
        }
        // Each argument as it is, or converted; the least change that makes a call.
        let mut ways: Vec<(usize, Vec<Ty>, Vec<String>)> = vec![(0, vec![], vec![])];
        for (k, id) in ids.iter().enumerate() {
            let options = self.conversions(*id, args[k]);
            let mut next = vec![];
            for (cost, so_far, texts) in ways {
                next.push((cost, [so_far.as_slice(), &[tys[k]]].concat(), texts.clone()));
                for o in &options {
                    let texts = [texts.as_slice(), std::slice::from_ref(&o.text)].concat();
                    next.push((cost + o.cost, [so_far.as_slice(), &[o.ty]].concat(), texts));
                }
            }
            ways = next;
        }
        ways.sort_by_key(|w| w.0);
        let (_, _, texts) = ways.into_iter().find(|(_, tys, texts)| !texts.is_empty() && self.accepts(name, tys))?;
        Some(format!("write {}", texts.join(" and ")))
    }

    /// What to write where another scalar type is expected.
    pub(super) fn conversion_hint(&self, id: Id, at: usize, expected: &str) -> Option<String> {
        let found = self.conversions(id, at).into_iter().find(|c| c.ty.to_string() == expected)?;
        Some(format!("write {}", found.text))
    }

    /// The other numbers that one could be made into, cheapest first.
    fn conversions(&self, id: Id, at: usize) -> Vec<Conversion> {
        let (ty, tree) = (self.terms.ty(id), self.tree);
        let Some(from) = ty.as_scalar().filter(|s| *s != Scalar::Bool) else { return vec![] };
        let literal = match &tree.at(at).form {
            Form::Atom(Atom::Number(_)) => self.terms.as_lit(id),
            Form::Atom(Atom::Name(_) | Atom::Text(_)) | Form::List(_) | Form::Bracket(_) => None,
        };
        let numbers = Scalar::NAMES.iter().map(|(s, _)| *s).filter(|s| *s != Scalar::Bool && *s != from);
        let each = numbers.filter_map(|to| {
            let (text, cost) = match literal {
                Some(lit) => (exact(lit, to)?.to_string(), 1),
                None => {
                    let source = self.source(at);
                    let narrower = from.is_float() && (to.is_int() || to == Scalar::F32);
                    let text = match (from, to) {
                        (Scalar::I64, Scalar::F64) => format!("(to_float {source})"),
                        (Scalar::F64, Scalar::I64) => format!("(truncate {source})"),
                        _ => format!("(cast {} {source})", to.name()),
                    };
                    (text, if narrower { 4 } else { 2 })
                }
            };
            Some(Conversion { ty: Ty::scalar(to), text: format!("`{text}`"), cost })
        });
        each.collect()
    }
}

/// `.5` and `5.` as numbers are written here.
fn whole_number(name: &str) -> Option<String> {
    let digits = name.trim_start_matches(['-', '+']);
    let number = name
        .parse::<f64>()
        .ok()
        .filter(|v| v.is_finite() && digits.starts_with(|c: char| c == '.' || c.is_ascii_digit()))?;
    Some(format!("write `{number:?}`: digits stand on both sides of the point"))
}

/// A literal in another type, where that has the same value.
fn exact(lit: Lit, to: Scalar) -> Option<Lit> {
    let cast = lit.cast(to)?;
    let same = match (lit.as_int(), cast.as_int()) {
        (Some(a), Some(b)) => a == b,
        (None, Some(_)) => return None,
        // Decimal fractions are rounded in every width.
        (_, None) => cast.as_f64().is_some_and(f64::is_finite),
    };
    same.then_some(cast)
}

/// The argument types of an operation in words.
fn describe(op: Op) -> String {
    let many = call::MANY.contains(&op.name());
    match op.row().sig {
        Sig::Numbers if many => "two or more numbers of one type".into(),
        Sig::Bools(_) if many => "two or more Bools".into(),
        Sig::Number => "a number".into(),
        Sig::Numbers => "two numbers of one type".into(),
        Sig::Ints => "two integers of one type".into(),
        Sig::Int => "an integer".into(),
        Sig::Order => "two numbers of one type, gives Bool".into(),
        Sig::Equality => "two values of one type, gives Bool".into(),
        Sig::Bools(1) => "Bool".into(),
        Sig::Bools(_) => "two Bools".into(),
        Sig::Choice => "Bool and two scalars of one type".into(),
        Sig::FloatFn => "a Float or Float32".into(),
        Sig::Floats => "two floats of one type".into(),
        Sig::ThreeFloats => "three floats of one type".into(),
        Sig::FloatInt => "a float and an Integer".into(),
        Sig::Fixed([], to) => format!("no arguments, gives {}", to.name()),
        Sig::Fixed(from, to) => {
            let from: Vec<&str> = from.iter().map(|s| s.name()).collect();
            format!("{}, gives {}", from.join(" "), to.name())
        }
    }
}
