//! Each float of a parameter becomes the derivative of the whole result by it, or by the same float of all elements at
//! once, where no float of the result reads two of them.

use super::component::{Kind, Kinds};
use super::maker::Maker;
use super::rows::packed;
use super::seed::{Of, Step, seed};
use crate::ad::Mode;
use crate::diag::Result;
use crate::ir::{Head, Id, Terms, Ty, TyKind};

/// The derivatives by each parameter that is differentiated by, in its structure: for those that are `compressed` in the
/// structure of an element.
///
/// # Errors
/// What has no derivative.
pub fn columns(m: &mut Maker<'_>, compressed: &[bool]) -> Result<Id> {
    let n = m.def.params.len();
    let mut out = vec![];
    for (k, one) in m.by.clone().into_iter().zip(compressed) {
        let wrt = (0..n).map(|j| j == k).collect();
        let body = m.derivative(m.def.fun, Mode::Forward, wrt)?;
        let terms = &mut m.program.terms;
        let ty = m.def.params[k].ty;
        let variable = terms.var((n - 1 - k) as u32, ty);
        let root = Of::whole(terms, variable);
        let mut each = Each { terms, root, body, params: n, steps: vec![] };
        out.push(match (one, ty.as_tensor()) {
            (true, Some((rank, _))) => {
                let first = vec![each.terms.int(0); rank];
                let element = root.element(each.terms, &first);
                each.steps.push(Step::All(rank));
                each.float(element, n)
            }
            _ => each.float(root, n),
        });
    }
    Ok(packed(&mut m.program.terms, out))
}

/// Which parameters have one element in all floats of the result that depend on them, and no tensors in tuples in it.
pub fn compressed(kinds: &Kinds, tys: &[Ty]) -> Vec<bool> {
    let one = |k: usize| {
        let mut kinds = kinds.values().map(|each| each[k]);
        let single = kinds.clone().any(|k| k == Kind::Elements(1));
        single && kinds.all(|k| [Kind::Nothing, Kind::Elements(1)].contains(&k))
    };
    let plain = |ty: &Ty| ty.as_tensor().is_some_and(|(_, elem)| elem.as_tuple().is_none() || !elem.has_tensor());
    tys.iter().enumerate().map(|(k, ty)| plain(ty) && one(k)).collect()
}

/// The derivative along one parameter, which is taken along each float of it.
struct Each<'a> {
    terms: &'a mut Terms,
    /// The parameter, in the scope of the parameters.
    root: Of,
    /// The forward derivative over the parameters and the tangent of this one.
    body: Id,
    params: usize,
    /// The way to the part that is looked at.
    steps: Vec<Step>,
}

impl Each<'_> {
    /// The derivatives by all floats of a part of the parameter, in a scope of so many variables.
    fn float(&mut self, of: Of, depth: usize) -> Id {
        match of.ty.kind() {
            TyKind::Scalar(s) if s.is_float() => {
                let loops = depth - self.params;
                let root = self.root.under(self.terms, loops);
                let tangent = seed(self.terms, root, &self.steps, depth);
                let moved = |t: &mut Terms, i: u32, ty: Ty, under: usize| t.var(i + (1 + loops + under) as u32, ty);
                let body = self.terms.map_free(self.body, 1, &mut |t, i, ty, under| moved(t, i, ty, under));
                self.terms.put(Head::Let, [tangent, body])
            }
            TyKind::Scalar(_) | TyKind::String | TyKind::Var(..) => self.terms.put(Head::Tuple, []),
            TyKind::Tuple(parts) => {
                let n = parts.len();
                let mut out = vec![];
                for k in 0..n {
                    self.steps.push(Step::Part(k));
                    let part = of.part(self.terms, k, n);
                    out.push(self.float(part, depth));
                    self.steps.pop();
                }
                self.terms.put(Head::Tuple, out)
            }
            TyKind::Tensor(rank, _) => {
                let sizes = of.sizes(self.terms, *rank);
                let inside = of.under(self.terms, *rank);
                let at: Vec<Id> = (0..*rank).map(|k| self.terms.var((rank - 1 - k) as u32, Ty::int())).collect();
                let element = inside.element(self.terms, &at);
                self.steps.push(Step::At(depth, *rank));
                let each = self.float(element, depth + rank);
                self.steps.pop();
                self.terms.put(Head::Build(*rank), sizes.into_iter().chain([each]))
            }
        }
    }
}
