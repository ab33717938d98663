//! Calls of the library and forms of functions as text, where the source has such calls: they stand for the longer terms
//! that they are spelled out in.

use super::head::Head;
use super::lambdas::{Element, Looped};
use super::print::{Alias, Part, Printer};
use super::spelled::{Arg, Args, Spelled};
use super::term::Id;
use super::ty::Ty;

impl Printer<'_> {
    /// What a call of the library, or a form of a function, consists of, where a term is one that the source has.
    pub(super) fn told(&self, id: Id) -> Option<Vec<Part>> {
        if let Some(name) = self.alias(id) {
            return Some(vec![Part::Text(name.to_string())]);
        }
        let names = |i: u32, axis: usize| self.size_name(i, axis);
        if let Some((call, args)) = self.terms.call_of(id, &names) {
            return Some(self.library(call, &args));
        }
        if let Some((name, form)) = self.terms.looped(id, &names) {
            // A contracted sum has a form of its own.
            return (!matches!(form, Looped::Iterate { .. }) || self.contracted(id).is_none()).then(|| match form {
                Looped::Map { build, of, lets, rank, body } => self.mapped((name, build), &of, (lets, rank), body),
                Looped::Diag { rows, columns, body } => self.diagonal(id, (rows, columns), body),
                Looped::Iterate { count, numbered } => self.iterated(name, id, count, numbered),
            });
        }
        let (arms, last) = self.terms.arms(id)?;
        let mut out = vec![Part::Text("(cond".into())];
        for (c, e) in arms {
            out.extend([Part::Break, Part::Text("(".into()), Part::Term(c), Part::Text(" ".into()), Part::Term(e)]);
            out.push(Part::Text(")".into()));
        }
        out.extend([Part::Break, Part::Text("(else ".into()), Part::Term(last), Part::Text("))".into())]);
        Some(out)
    }

    /// What the source calls a size of a variable, where that is a parameter, and the first parameter that has the name.
    fn size_name(&self, i: u32, axis: usize) -> Option<(&str, (u32, usize))> {
        let level = self.scope.len().checked_sub(1 + i as usize)?;
        let name = self.params.get(level)?.sizes.get(axis)?;
        let at = |sizes: &[String]| sizes.iter().position(|n| n == name);
        let (first, axis) = self.params.iter().enumerate().find_map(|(p, param)| Some((p, at(&param.sizes)?)))?;
        Some((name, ((self.scope.len() - 1 - first) as u32, axis)))
    }

    /// The name of an element that the parameter of a function stands for.
    pub(super) fn alias(&self, id: Id) -> Option<&str> {
        let level = |id: &Id| match self.terms.head(*id) {
            Head::Var(i, _) => self.scope.len().checked_sub(1 + i as usize),
            _ => None,
        };
        let (Head::Index(_), [indices @ .., of]) = (self.terms.head(id), self.terms.kids(id)) else { return None };
        let known = self.aliases.iter().find(|a| {
            let own = |(k, i): (usize, &Id)| level(i) == Some(a.first + k);
            indices.len() == a.rank && level(of) == Some(a.of) && indices.iter().enumerate().all(own)
        })?;
        Some(&known.name)
    }

    fn library(&self, call: &Spelled<Id>, args: &Args<Id>) -> Vec<Part> {
        let of = call.of.map(|ty| format!(" {ty}")).unwrap_or_default();
        let mut out = vec![Part::Text(format!("({}{of}", call.name))];
        for arg in args {
            match arg {
                Arg::Var(i) => out.push(Part::Text(format!(" {}", self.variable(*i)))),
                Arg::Lit(lit) => out.push(Part::Text(format!(" {lit}"))),
                Arg::Size(i, axis) => {
                    let name = self.size_name(*i, *axis).map_or("", |(name, _)| name);
                    out.push(Part::Text(format!(" {name}")));
                }
                Arg::Term(id) => out.extend([Part::Break, Part::Term(*id)]),
            }
        }
        out.push(Part::Text(")".into()));
        out
    }

    fn mapped(
        &self,
        (name, build): (&str, Id),
        of: &[(u32, Element)],
        (lets, rank): (usize, usize),
        body: Id,
    ) -> Vec<Part> {
        let outside = self.scope.len();
        let brackets = if of.len() == 1 { ("", "") } else { ("(", ")") };
        let mut out = vec![Part::Text(format!("({name} (lam {}", brackets.0)), Part::Hide(lets + rank)];
        let mut leave = vec![];
        for (k, (t, element)) in of.iter().enumerate() {
            out.push(Part::Text(if k == 0 { "(" } else { " (" }.into()));
            let ty = match element {
                Element::Bound(id) => {
                    out.push(Part::Enter(0, *id));
                    leave.push(Part::Leave);
                    self.terms.ty(self.terms.kids(*id)[0])
                }
                Element::Once(id) => {
                    let names = self.terms.parameters(build).filter(|names| names.len() == of.len());
                    let before = of.iter().filter(|(other, _)| other > t).count();
                    let name = names.map_or_else(String::new, |names| names[before].clone());
                    let tensor = outside - 1 - *t as usize;
                    out.push(Part::Alias(*id, Alias { name, first: outside + lets, rank, of: tensor }));
                    leave.push(Part::Unalias);
                    self.terms.ty(*id)
                }
            };
            out.push(Part::Text(format!(" : {ty})")));
        }
        out.extend([Part::Text(brackets.1.into()), Part::Break, Part::Term(body)]);
        out.extend(leave.into_iter().rev());
        let tensors: Vec<String> = of.iter().map(|(t, _)| self.variable(*t)).collect();
        out.extend([Part::Show(lets + rank), Part::Text(format!(") {})", tensors.join(" ")))]);
        out
    }

    fn diagonal(&self, id: Id, (rows, columns): (Id, Id), body: Id) -> Vec<Part> {
        vec![
            Part::Text("(diag ".into()),
            Part::Term(rows),
            Part::Hide(1),
            Part::Text(" ".into()),
            Part::Term(columns),
            Part::Show(1),
            Part::Text(" (lam (".into()),
            Part::Enter(0, id),
            Part::Text(" : Integer)".into()),
            Part::Break,
            Part::Term(body),
            Part::Leave,
            Part::Text("))".into()),
        ]
    }

    fn iterated(&self, name: &str, id: Id, count: Id, numbered: bool) -> Vec<Part> {
        let (init, body) = (self.terms.kids(id)[0], self.terms.kids(id)[2]);
        let brackets = if numbered { ("(", ")") } else { ("", "") };
        let mut out = vec![Part::Text(format!("({name} ")), Part::Term(count)];
        out.extend([Part::Text(format!(" (lam {}(", brackets.0)), Part::Enter(0, id)]);
        out.push(Part::Text(format!(" : {})", self.terms.ty(init))));
        match numbered {
            true => out.extend([Part::Text(" (".into()), Part::Enter(1, id), Part::Text(format!(" : {})", Ty::int()))]),
            false => out.push(Part::Hide(1)),
        }
        out.extend([Part::Text(brackets.1.into()), Part::Break, Part::Term(body)]);
        out.extend([if numbered { Part::Leave } else { Part::Show(1) }, Part::Leave, Part::Text(")".into())]);
        out.extend([Part::Break, Part::Term(init), Part::Text(")".into())]);
        out
    }
}
