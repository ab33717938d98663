//! What holds for any number of parts or axes, and so is no line of a rule file: each axiom says
//! what a flat term equals, or that it does not apply.

use super::flat::{Scope, as_parameter, first_of_name, lowered, parameter};
use super::prove::Prover;
use crate::ir::{Head, Id, Lit};
use crate::types::shape::shape;

/// An axiom.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Axiom {
    /// An operation on literals has the value that it has at run time.
    Literals,
    /// A part of a tuple that is made on the spot.
    Part,
    /// An operation on tuples, or a reduction of them, is done by part.
    Parts,
    /// The size of a tensor is known from what makes it.
    Size,
    /// Sizes that share a name are equal.
    NamedSize,
    /// A tensor copied element by element is that tensor.
    Copy,
    /// An element of a tensor that is made on the spot.
    Element,
    /// An integer is another one, as a lemma takes for granted.
    Given,
}

impl Axiom {
    /// Names and axioms.
    pub const TABLE: [(&'static str, Axiom); 8] = [
        ("literals", Axiom::Literals),
        ("part", Axiom::Part),
        ("parts", Axiom::Parts),
        ("size", Axiom::Size),
        ("named-size", Axiom::NamedSize),
        ("copy", Axiom::Copy),
        ("element", Axiom::Element),
        ("given", Axiom::Given),
    ];

    /// Its name in a derivation.
    pub fn name(self) -> &'static str {
        Axiom::TABLE.iter().find(|(_, a)| *a == self).map_or("", |(n, _)| n)
    }

    /// What a term equals by the axiom. Nothing where it does not apply.
    pub fn apply(self, p: &mut Prover<'_>, id: Id, scope: &Scope) -> Option<Id> {
        let (head, kids) = (p.terms.head(id), p.terms.kids(id).to_vec());
        match (self, head) {
            (Axiom::Literals, _) => {
                let value = literal(p, head, &kids)?;
                Some(p.terms.lit(value))
            }
            (Axiom::Part, Head::Get(i, _)) if p.terms.head(kids[0]) == Head::Tuple => {
                p.terms.kids(kids[0]).get(i as usize).copied()
            }
            (Axiom::Parts, Head::Op(_) | Head::Reduce(..)) => by_part(p, head, &kids),
            (Axiom::Size, Head::Size(axis)) => {
                let (rank, _) = p.terms.ty(kids[0]).as_tensor()?;
                let sizes = shape(p.terms, kids[0]);
                // Inside a tensor without elements every size is 0.
                let inside = axis < rank || sizes[..axis].iter().all(|n| p.at_least_one(*n, scope));
                inside.then(|| sizes[axis])
            }
            (Axiom::NamedSize, Head::Size(axis)) => {
                let k = as_parameter(p.terms.head(kids[0]))?;
                let (first, axis) = first_of_name(p.def, k, axis)?;
                let leaf = p.terms.put(parameter(first, p.def.params[first].ty), []);
                Some(p.terms.put(Head::Size(axis), [leaf]))
            }
            (Axiom::Copy, Head::Build(d)) => copied(p, d, &kids, scope),
            (Axiom::Element, Head::Index(d)) if p.terms.head(kids[d]) == Head::Build(d) => {
                let body = p.terms.kids(kids[d])[d];
                Some(p.terms.substitute(body, &kids[..d]))
            }
            (Axiom::Given, _) => p.granted?.given.iter().find(|(from, _)| *from == id).map(|(_, to)| *to),
            _ => None,
        }
    }
}

fn literal(p: &Prover<'_>, head: Head, kids: &[Id]) -> Option<Lit> {
    let args = kids.iter().map(|k| p.terms.as_lit(*k)).collect::<Option<Vec<_>>>()?;
    let value = match head {
        Head::Op(op) => op.eval(&args).ok()?,
        Head::Cast(s) => args.first()?.cast(s)?,
        _ => return None,
    };
    value.as_f64().is_none_or(f64::is_finite).then_some(value)
}

fn by_part(p: &mut Prover<'_>, head: Head, kids: &[Id]) -> Option<Id> {
    let parts_of = |p: &Prover<'_>, id: Id| {
        (p.terms.head(id) == Head::Tuple && !p.terms.kids(id).is_empty()).then(|| p.terms.kids(id).to_vec())
    };
    let (before, tuples) = match head {
        Head::Reduce(_, d) => (&kids[..d], &kids[d..]),
        _ => (&kids[..0], kids),
    };
    let parts: Vec<Option<Vec<Id>>> = tuples.iter().map(|k| parts_of(p, *k)).collect();
    let n = parts.iter().flatten().map(Vec::len).next()?;
    if tuples.iter().zip(&parts).any(|(k, part)| part.is_none() && p.terms.ty(*k).as_tuple().is_some()) {
        return None;
    }
    let mut out = vec![];
    for i in 0..n {
        let at = tuples.iter().zip(&parts).map(|(k, part)| part.as_ref().map_or(Some(*k), |q| q.get(i).copied()));
        let at = before.iter().copied().map(Some).chain(at).collect::<Option<Vec<_>>>()?;
        out.push(p.terms.add(head, at).ok()?);
    }
    Some(p.terms.put(Head::Tuple, out))
}

fn copied(p: &mut Prover<'_>, d: usize, kids: &[Id], scope: &Scope) -> Option<Id> {
    let read = p.terms.kids(kids[d]).to_vec();
    let in_order = |k: usize| matches!(p.terms.head(read[k]), Head::Var(i, _) if i as usize == d - 1 - k);
    if p.terms.head(kids[d]) != Head::Index(d) || !(0..d).all(in_order) {
        return None;
    }
    let tensor = lowered(p.terms, read[d], d)?;
    let sizes = shape(p.terms, tensor);
    (0..d).all(|k| p.same_size(sizes[k], kids[k], scope)).then_some(tensor)
}
