//! Each float of a result becomes its gradient, by the elements of parameters that it reads.

use super::component::Component;
use super::maker::Maker;
use super::reads::{Place, Read, replaced};
use crate::ad::Mode;
use crate::ad::normal::zeros;
use crate::ad::parameters::add;
use crate::diag::{Diagnostic, Result};
use crate::ir::{Body, Def, Fun, Head, Id, Lit, Op, Param, Scalar, Signature, Terms, Ty};

/// The gradients of a part of the result, in its structure. `loops` has the extents of the loops around it, each in the
/// scope of those before it.
///
/// # Errors
/// What has no derivative.
pub fn rows(m: &mut Maker<'_>, part: &Component, loops: &mut Vec<Id>) -> Result<Id> {
    match part {
        Component::Still => Ok(m.program.terms.put(Head::Tuple, [])),
        Component::Float { term, reads } => row(m, *term, reads, loops),
        Component::Parts(parts) => {
            let parts = parts.iter().map(|p| rows(m, p, loops)).collect::<Result<Vec<Id>>>()?;
            Ok(m.program.terms.put(Head::Tuple, parts))
        }
        Component::Listed(all) => {
            let all = all.iter().map(|p| rows(m, p, loops)).collect::<Result<Vec<Id>>>()?;
            Ok(m.program.terms.put(Head::VecInit, all))
        }
        Component::Loop { sizes, each } => {
            // The extents of one loop are all in the scope of those before it.
            let inside = sizes.iter().enumerate().map(|(k, s)| m.program.terms.shift(*s, k));
            loops.extend(inside);
            let each = rows(m, each, loops);
            loops.truncate(loops.len() - sizes.len());
            let each = each?;
            Ok(m.program.terms.put(Head::Build(sizes.len()), sizes.iter().copied().chain([each])))
        }
    }
}

/// The gradient of a float, a part for each parameter that is differentiated by: its tangent, that of the element that is
/// read or a tuple of those, or an empty tuple where nothing is.
fn row(m: &mut Maker<'_>, term: Id, reads: &[Read], loops: &[Id]) -> Result<Id> {
    let elements = Elements::of(m, reads, loops);
    let by = elements.all.len() + reads.iter().filter(|r| matches!(r, Read::Whole)).count();
    if by == 0 {
        let nothing = reads.iter().map(|_| m.program.terms.put(Head::Tuple, [])).collect();
        return Ok(packed(&mut m.program.terms, nothing));
    }
    let (fun, wrt) = elements.function(m, term, reads);
    let gradient = m.derivative(fun, Mode::Reverse, wrt)?;
    let terms = &mut m.program.terms;
    let one = terms.lit(Lit::of(float(terms.ty(term))?, 1.0));
    let gradient = terms.substitute(gradient, &[one]);
    let out = elements.apart(terms, gradient, by, reads);
    Ok(elements.bound(terms, out))
}

/// Whether indices of a parameter are those of loops that go over its axes.
fn within(m: &mut Maker<'_>, of: usize, at: &[Id], loops: &[Id]) -> bool {
    let n = m.def.params.len();
    at.iter().enumerate().all(|(axis, i)| {
        let Head::Var(i, _) = m.program.terms.head(*i) else { return false };
        let Some(number) = loops.len().checked_sub(1 + i as usize) else { return false };
        let extent = loops[number];
        let Head::Size(k) = m.program.terms.head(extent) else { return false };
        let Head::Var(v, _) = m.program.terms.head(m.program.terms.kids(extent)[0]) else { return false };
        let Some(other) = (n + number).checked_sub(1 + v as usize) else { return false };
        other == of && k == axis || m.same_size((other, k), (of, axis))
    })
}

/// The type of a float.
fn float(ty: Ty) -> Result<Scalar> {
    ty.as_scalar().filter(|s| s.is_float()).ok_or_else(|| Diagnostic::bug(format!("a component of type {ty}")))
}

/// One part is itself, several are a tuple.
pub fn packed(terms: &mut Terms, parts: Vec<Id>) -> Id {
    match parts.as_slice() {
        [one] => *one,
        _ => terms.put(Head::Tuple, parts),
    }
}

/// An element of a parameter that a float reads.
struct Element {
    /// The parameter, from the first, and the index of its variable.
    of: usize,
    var: usize,
    place: Place,
    /// The type of the parameter and that of its elements.
    tensor: Ty,
    ty: Ty,
}

impl Element {
    /// Its value, where so many variables are between the scope of its indices and the term. An element that is not
    /// certain to be read is zero where there is none.
    fn value(&self, terms: &mut Terms, under: usize) -> Id {
        let of = terms.var((self.var + under) as u32, self.tensor);
        let at: Vec<Id> = self.place.at.iter().map(|i| terms.shift(*i, under)).collect();
        let rank = at.len();
        let read = terms.put(Head::Index(rank), at.iter().copied().chain([of]));
        if self.place.certain {
            return read;
        }
        let zero = terms.int(0);
        let within: Vec<Id> = (0..rank)
            .flat_map(|k| {
                let size = terms.put(Head::Size(k), [of]);
                [terms.op(Op::Gte, [at[k], zero]), terms.op(Op::Lt, [at[k], size])]
            })
            .collect();
        let sizes: Vec<Id> = (0..self.ty.axes()).map(|k| terms.put(Head::Size(rank + k), [of])).collect();
        let nothing = zeros(terms, self.ty, &sizes);
        let no = terms.lit(Lit::Bool(false));
        let inner = |out, c: Id, terms: &mut Terms| terms.put(Head::If, [c, out, no]);
        let last = within[within.len() - 1];
        let all = within[..within.len() - 1].iter().rev().fold(last, |out, c| inner(out, *c, terms));
        terms.put(Head::If, [all, read, nothing])
    }
}

/// All of them, and how many variables are in scope.
struct Elements {
    all: Vec<Element>,
    depth: usize,
}

impl Elements {
    fn of(m: &mut Maker<'_>, reads: &[Read], loops: &[Id]) -> Elements {
        let depth = m.def.params.len() + loops.len();
        let mut all = vec![];
        for (of, read) in m.by.clone().into_iter().zip(reads) {
            let Read::Elements(places) = read else { continue };
            let tensor = m.def.params[of].ty;
            let ty = tensor.as_tensor().map_or(tensor, |(_, elem)| elem);
            for place in places {
                let certain = place.certain || within(m, of, &place.at, loops);
                let place = Place { certain, ..place.clone() };
                all.push(Element { of, var: depth - 1 - of, place, tensor, ty });
            }
        }
        Elements { all, depth }
    }

    /// The float as a function of the parameters, the indices of the loops around it, and the elements that it reads; and
    /// by which of these it is differentiated.
    fn function(&self, m: &mut Maker<'_>, term: Id, reads: &[Read]) -> (Fun, Vec<bool>) {
        let n = self.all.len();
        let mut params = m.def.params.clone();
        let mut wrt: Vec<bool> = vec![false; params.len()];
        for (k, _) in m.by.iter().zip(reads).filter(|(_, r)| matches!(r, Read::Whole)) {
            wrt[*k] = true;
        }
        (params.len()..self.depth).for_each(|_| add(&mut params, "i".into(), Ty::int(), vec![]));
        for e in &self.all {
            let Param { name, sizes, ty } = &m.def.params[e.of];
            let rank = ty.as_tensor().map_or(0, |(rank, _)| rank);
            let sizes = sizes.get(rank..).unwrap_or_default().to_vec();
            add(&mut params, format!("{name}_i"), e.ty, sizes);
        }
        wrt.resize(self.depth, false);
        wrt.resize(self.depth + n, true);
        let terms = &mut m.program.terms;
        let mut body = terms.shift(term, n);
        for e in &self.all {
            let all = self.all.iter().enumerate().filter(|(_, o)| o.of == e.of);
            let numbers: Vec<(usize, Vec<Id>)> =
                all.map(|(k, o)| (k, o.place.at.iter().map(|i| terms.shift(*i, n)).collect())).collect();
            let (ty, var) = (e.ty, e.var + n);
            body = replaced(terms, body, var, &mut |t, at, under| {
                let number = numbers.iter().find(|(_, place)| place == at).map_or(0, |(k, _)| *k);
                t.var((n - 1 - number + under) as u32, ty)
            });
        }
        let tys: Vec<Ty> = params.iter().map(|p| p.ty).collect();
        let ret = terms.ty(term);
        let fun = Fun::new(Signature { name: m.program.unused_name("row"), params: tys, ret });
        m.program.defs.insert(fun, Def { fun, params, body: Body::Term(body), span: m.def.span });
        (fun, wrt)
    }

    /// The gradient by whole parameters and elements, in the order of the parameters.
    fn apart(&self, terms: &mut Terms, gradient: Id, by: usize, reads: &[Read]) -> Id {
        let whole = by - self.all.len();
        if self.in_order(whole, reads) {
            return gradient;
        }
        let all = terms.var(0, terms.ty(gradient));
        let get = |terms: &mut Terms, k: usize| match by {
            1 => all,
            _ => terms.put(Head::Get(k as u32, by as u32), [all]),
        };
        let (mut next, mut element) = (0, whole);
        let mut parts = vec![];
        for read in reads {
            parts.push(match read {
                Read::Nothing => terms.put(Head::Tuple, []),
                Read::Whole => {
                    next += 1;
                    get(terms, next - 1)
                }
                Read::Elements(places) => {
                    let each: Vec<Id> = (0..places.len()).map(|k| get(terms, element + k)).collect();
                    element += places.len();
                    packed(terms, each)
                }
            });
        }
        let out = packed(terms, parts);
        terms.put(Head::Let, [gradient, out])
    }

    /// Whether the gradient is what is asked for as it stands: a part for each parameter, first those that are whole.
    fn in_order(&self, whole: usize, reads: &[Read]) -> bool {
        reads.iter().enumerate().all(|(k, r)| match r {
            Read::Nothing => false,
            Read::Whole => k < whole,
            Read::Elements(places) => k >= whole && (places.len() == 1 || reads.len() == 1),
        })
    }

    /// A term over the elements, each bound to its value.
    fn bound(&self, terms: &mut Terms, out: Id) -> Id {
        self.all.iter().enumerate().rev().fold(out, |out, (k, e)| {
            let value = e.value(terms, k);
            terms.put(Head::Let, [value, out])
        })
    }
}
