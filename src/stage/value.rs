//! Values while a graph is made: what a term is, as bodies.

use super::body::{Bodies, Body, DimId, SymbolId};
use super::graph::{Graph, Input, Slot, Symbol};
use crate::ir::{Op, Scalar, Ty, TyKind};
use rustc_hash::FxHashMap;

/// A value of the language.
#[derive(Clone, Debug)]
pub(super) enum Val {
    /// A number or truth value.
    Scalar(Body),
    /// Components.
    Tuple(Vec<Val>),
    /// The element at the indices of dimensions that stand for any index, and the sizes.
    Tensor { dims: Vec<DimId>, sizes: Vec<Body>, elem: Box<Val> },
}

impl Val {
    /// The value with other bodies for indices.
    pub fn substitute(&self, bodies: &mut Bodies, of: &FxHashMap<DimId, Body>) -> Val {
        match self {
            Val::Scalar(b) => Val::Scalar(bodies.substitute(*b, of)),
            Val::Tuple(parts) => Val::Tuple(parts.iter().map(|p| p.substitute(bodies, of)).collect()),
            Val::Tensor { dims, sizes, elem } => Val::Tensor {
                dims: dims.clone(),
                sizes: sizes.iter().map(|n| bodies.substitute(*n, of)).collect(),
                elem: Box::new(elem.substitute(bodies, of)),
            },
        }
    }

    /// The element of a tensor at indices.
    pub fn at(&self, bodies: &mut Bodies, indices: &[Body]) -> Option<Val> {
        match self {
            Val::Tensor { dims, elem, .. } => {
                Some(elem.substitute(bodies, &dims.iter().copied().zip(indices.iter().copied()).collect()))
            }
            Val::Scalar(_) | Val::Tuple(_) => None,
        }
    }

    /// The value with other scalars, in the same order.
    pub fn with_scalars(&self, next: &mut dyn FnMut(Body) -> Body) -> Val {
        match self {
            Val::Scalar(b) => Val::Scalar(next(*b)),
            Val::Tuple(parts) => Val::Tuple(parts.iter().map(|p| p.with_scalars(next)).collect()),
            Val::Tensor { dims, sizes, elem } => {
                Val::Tensor { dims: dims.clone(), sizes: sizes.clone(), elem: Box::new(elem.with_scalars(next)) }
            }
        }
    }

    /// All scalars and sizes, those of elements included.
    pub fn bodies(&self) -> Vec<Body> {
        match self {
            Val::Scalar(b) => vec![*b],
            Val::Tuple(parts) => parts.iter().flat_map(Val::bodies).collect(),
            Val::Tensor { sizes, elem, .. } => sizes.iter().copied().chain(elem.bodies()).collect(),
        }
    }

    /// All scalars, those of elements included.
    pub fn scalars(&self) -> Vec<Body> {
        match self {
            Val::Scalar(b) => vec![*b],
            Val::Tuple(parts) => parts.iter().flat_map(Val::scalars).collect(),
            Val::Tensor { elem, .. } => elem.scalars(),
        }
    }

    /// The size of an axis, counted through nested tensors: 0 inside an empty one.
    pub fn size(&self, bodies: &mut Bodies, axis: usize) -> Option<Body> {
        let Val::Tensor { dims, sizes, elem } = self else { return None };
        match axis.checked_sub(sizes.len()) {
            None => Some(sizes[axis]),
            Some(inner) => {
                // The sizes of all elements are equal, so those of the first are the tensor's.
                let zero = bodies.int(0);
                let first: FxHashMap<DimId, Body> = dims.iter().map(|d| (*d, zero)).collect();
                let size = elem.size(bodies, inner)?;
                let size = bodies.substitute(size, &first);
                let mut some = bodies.bool(true);
                for n in sizes {
                    let more = bodies.test(Op::Gt, *n, zero);
                    some = bodies.test(Op::And, some, more);
                }
                Some(bodies.cond(some, size, zero))
            }
        }
    }
}

/// The value of a parameter, whose slots and symbols are added to the graph; nothing for texts.
pub(super) fn incoming(g: &mut Graph, ty: Ty, name: &str, outer: &[(DimId, Body)]) -> Option<Val> {
    match ty.kind() {
        TyKind::Scalar(s) if outer.is_empty() => {
            let id = add_symbol(g, name.to_string(), *s, false);
            Some(Val::Scalar(g.bodies.symbol(id, *s)))
        }
        TyKind::Scalar(s) => {
            let at: Vec<Body> = outer.iter().map(|(d, _)| g.bodies.index(*d)).collect();
            let from = g.inputs.len() as u32;
            let sizes = outer.iter().map(|(_, n)| *n).collect();
            g.inputs.push(Input { name: name.to_string(), ty: *s, sizes });
            g.slots.push(Slot::Input(from));
            Some(Val::Scalar(g.bodies.load(super::body::Source::Input(from), *s, at)))
        }
        TyKind::Tuple(parts) => {
            let each = parts.iter().enumerate();
            let each = each.map(|(k, p)| incoming(g, *p, &format!("{name}_{}", k + 1), outer));
            Some(Val::Tuple(each.collect::<Option<_>>()?))
        }
        TyKind::Tensor(d, elem) => {
            let mut own = vec![];
            for k in 0..*d {
                let id = add_symbol(g, format!("{name}_size{}", outer.len() + k), Scalar::I64, true);
                let size = g.bodies.symbol(id, Scalar::I64);
                own.push((g.add_dim(format!("{name}_at{}", outer.len() + k), size), size));
            }
            let elem = incoming(g, *elem, name, &[outer, &own].concat())?;
            let (dims, sizes) = own.into_iter().unzip();
            Some(Val::Tensor { dims, sizes, elem: Box::new(elem) })
        }
        TyKind::String | TyKind::Var(..) => None,
    }
}

fn add_symbol(g: &mut Graph, name: String, ty: Scalar, size: bool) -> SymbolId {
    let id = SymbolId(g.symbols.len() as u32);
    g.symbols.push(Symbol { name, ty, size });
    g.slots.push(Slot::Symbol(id));
    if size {
        let n = g.bodies.symbol(id, ty);
        g.bodies.assume_size(n);
    }
    id
}
