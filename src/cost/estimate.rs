//! Estimated sizes: an abstract run of a term in which integers are guesses.

use super::model::{ASSUMED, Model, assumed_trips};
use crate::ir::{Head, Lit, Op, Ty, TyKind};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// What an extent counts as at least that is computed from sizes which nobody told: `n - k + 1` is 1 where both
/// are assumed alike, and what runs that often seems to cost nothing. Where sizes are taken to be larger, so is this.
pub const LEAST: f64 = 4.0;

/// A guess of a number.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Guess {
    /// The number.
    pub value: f64,
    /// What it counts as at least as an extent: nothing where it follows from literals and from what was told.
    pub least: f64,
}

impl Guess {
    /// A number that is known.
    pub fn told(value: f64) -> Guess {
        Guess { value, least: 0.0 }
    }

    /// A number that is only assumed.
    pub fn assumed(value: f64) -> Guess {
        Guess { value, least: LEAST }
    }

    /// The number as an extent.
    fn extent(self) -> Guess {
        Guess { value: self.value.max(self.least), ..self }
    }

    fn half(self) -> Guess {
        Guess { value: (self.value / 2.0).max(1.0), ..self }
    }

    /// The larger one.
    fn or(self, other: Guess) -> Guess {
        Guess { value: self.value.max(other.value), least: self.least.max(other.least) }
    }
}

/// A guess of a value.
#[derive(Clone, PartialEq, Debug)]
pub enum Est {
    /// A number; what is no number counts as 1.
    Num(Guess),
    /// Components.
    Tuple(Arc<[Est]>),
    /// Sizes of the outer tensor, and an element.
    Tensor(Dims, Arc<Est>),
}

type Dims = SmallVec<[Guess; 2]>;

impl Est {
    /// A value of a type of which nothing is known.
    pub fn unknown(ty: Ty) -> Est {
        Est::of(ty, &mut || Guess::assumed(ASSUMED))
    }

    /// A value of a type; each size, by axis through nested tensors, and each number is the next guess.
    pub fn of(ty: Ty, next: &mut dyn FnMut() -> Guess) -> Est {
        match ty.kind() {
            TyKind::Scalar(_) | TyKind::String | TyKind::Var(..) => Est::Num(next()),
            TyKind::Tuple(parts) => Est::Tuple(parts.iter().map(|p| Est::of(*p, next)).collect()),
            TyKind::Tensor(rank, elem) => {
                let dims = (0..*rank).map(|_| next()).collect();
                Est::Tensor(dims, Arc::new(Est::of(*elem, next)))
            }
        }
    }

    /// The number.
    pub fn num(&self) -> Guess {
        match self {
            Est::Num(v) => *v,
            Est::Tuple(_) | Est::Tensor(..) => Guess::assumed(ASSUMED),
        }
    }

    /// How many scalars there are.
    pub fn elements(&self) -> f64 {
        match self {
            Est::Num(_) => 1.0,
            Est::Tuple(parts) => parts.iter().map(Est::elements).sum(),
            Est::Tensor(dims, elem) => dims.iter().map(|d| d.value).product::<f64>() * elem.elements(),
        }
    }

    /// The same value of a type, with no guess of what is no integer.
    pub fn of_integers(&self, ty: Ty) -> Est {
        match (self, ty.kind()) {
            (Est::Num(_), TyKind::Scalar(s)) if s.is_float() => Est::Num(Guess::assumed(ASSUMED)),
            (Est::Tuple(parts), TyKind::Tuple(tys)) if parts.len() == tys.len() => {
                Est::Tuple(parts.iter().zip(tys.iter()).map(|(part, ty)| part.of_integers(*ty)).collect())
            }
            (Est::Tensor(dims, elem), TyKind::Tensor(_, ty)) => {
                Est::Tensor(dims.clone(), Arc::new(elem.of_integers(*ty)))
            }
            (est, _) => est.clone(),
        }
    }

    /// Numbers that tell guesses apart: equal for equal ones.
    pub fn key(&self, out: &mut Vec<u64>) {
        let mut guess = |g: &Guess| out.extend([g.value.to_bits(), g.least.to_bits()]);
        match self {
            Est::Num(v) => guess(v),
            Est::Tuple(parts) => parts.iter().for_each(|p| p.key(out)),
            Est::Tensor(dims, elem) => {
                dims.iter().for_each(guess);
                elem.key(out);
            }
        }
    }

    fn dims(&self) -> &[Guess] {
        match self {
            Est::Tensor(dims, _) => dims,
            Est::Num(_) | Est::Tuple(_) => &[],
        }
    }

    /// How many elements the outer tensor has.
    fn length(&self) -> f64 {
        self.dims().iter().map(|d| d.value).product()
    }

    /// One element of a tensor.
    pub fn element(&self) -> Est {
        match self {
            Est::Tensor(_, elem) => (**elem).clone(),
            Est::Num(_) | Est::Tuple(_) => Est::Num(Guess::assumed(ASSUMED)),
        }
    }

    /// The size along an axis, through nested tensors.
    pub fn axis(&self, k: usize) -> Guess {
        match self {
            Est::Tensor(dims, elem) => dims.get(k).copied().unwrap_or_else(|| elem.axis(k - dims.len())),
            Est::Num(_) | Est::Tuple(_) => Guess::assumed(ASSUMED),
        }
    }

    /// The larger one of two values of a type: which arm is taken, and which operand comes first, is no matter.
    fn or(&self, other: &Est) -> Est {
        match (self, other) {
            (Est::Num(a), Est::Num(b)) => Est::Num(a.or(*b)),
            (Est::Tuple(a), Est::Tuple(b)) if a.len() == b.len() => {
                Est::Tuple(a.iter().zip(b.iter()).map(|(a, b)| a.or(b)).collect())
            }
            (Est::Tensor(m, a), Est::Tensor(n, b)) if m.len() == n.len() => {
                Est::Tensor(m.iter().zip(n).map(|(m, n)| m.or(*n)).collect(), Arc::new(a.or(b)))
            }
            _ => self.clone(),
        }
    }
}

/// The guesses of the variables that a node binds, from its other children.
pub fn bound(head: Head, kids: &[Est]) -> Vec<Est> {
    let half = |e: &Est| Est::Num(e.num().half());
    match head {
        Head::Let => vec![kids[0].clone()],
        Head::Fold => vec![kids[0].clone(), kids[1].element()],
        Head::Scan => vec![kids[0].clone(), half(&kids[1])],
        Head::Build(d) | Head::Reduce(_, d) => kids[..d].iter().map(half).collect(),
        Head::Arg(_) => vec![half(&kids[0])],
        Head::Scatter(d) => vec![half(&kids[d])],
        _ => vec![],
    }
}

/// The guess of a node from those of its children.
pub fn node(head: Head, ty: Ty, kids: &[Est]) -> Est {
    let nums = |range: std::ops::Range<usize>| kids[range].iter().map(|e| e.num().extent()).collect::<Dims>();
    match head {
        Head::Const(l) => Est::Num(Guess::told(l.to_f64().unwrap_or(1.0))),
        Head::Let | Head::Assert => kids[1].clone(),
        Head::If => kids[1].or(&kids[2]),
        Head::Tuple => Est::Tuple(kids.into()),
        Head::Get(i, _) => match &kids[0] {
            Est::Tuple(parts) => parts[i as usize].clone(),
            Est::Num(_) | Est::Tensor(..) => Est::unknown(ty),
        },
        Head::Op(op) => operation(op, ty, kids),
        Head::Cast(_) => kids[0].clone(),
        Head::Build(d) => Est::Tensor(nums(0..d), Arc::new(kids[d].clone())),
        Head::Reduce(_, d) => kids[d].clone(),
        Head::Sum => kids[0].element(),
        Head::Index(d) => kids[d].element(),
        Head::Size(k) => Est::Num(kids[0].axis(k)),
        Head::Fold => kids[0].clone(),
        Head::Scan => Est::Tensor(nums(1..2), Arc::new(kids[0].clone())),
        Head::ConstVec(d) => Est::Tensor(nums(0..d), Arc::new(kids[d].clone())),
        Head::DeltaVec(d) => Est::Tensor(nums(0..d), Arc::new(kids[2 * d].clone())),
        Head::VecInit => Est::Tensor(smallvec![Guess::told(kids.len() as f64)], Arc::new(kids[0].clone())),
        Head::Scatter(d) => Est::Tensor(
            nums(0..d),
            Arc::new(match &kids[d + 1] {
                Est::Tuple(pair) => pair[1].clone(),
                Est::Num(_) | Est::Tensor(..) => Est::Num(Guess::told(1.0)),
            }),
        ),
        Head::Var(..) | Head::Call(_) | Head::Arg(_) | Head::Print => Est::unknown(ty),
    }
}

fn operation(op: Op, ty: Ty, kids: &[Est]) -> Est {
    let tensors = kids.iter().filter(|k| !k.dims().is_empty());
    if let Some(tensor) = tensors.cloned().reduce(|a, b| a.or(&b)) {
        return tensor;
    }
    if ty.as_scalar().is_none() {
        return Est::unknown(ty);
    }
    // The table evaluates floats, so guesses of integers are computed as floats.
    // How often loops run together is a product: none of the factors is nothing because it is not known.
    let guess = |k: &Est| match k.num() {
        g if op == Op::Mul && g.value >= 0.0 => g.extent().value,
        g => g.value,
    };
    let args: SmallVec<[Lit; 3]> = kids.iter().map(|k| Lit::float(guess(k))).collect();
    let least = kids.iter().map(|k| k.num().least).fold(0.0, f64::max);
    match op.eval(&args).ok().and_then(Lit::to_f64).filter(|v| v.is_finite()) {
        Some(value) => Est::Num(Guess { value, least }),
        None => Est::Num(Guess::assumed(ASSUMED)),
    }
}

/// How often the last child of a loop runs.
pub fn trips(model: Model, head: Head, kids: &[Est]) -> f64 {
    let product = |range: std::ops::Range<usize>| kids[range].iter().map(|e| e.num().extent().value).product::<f64>();
    let estimated = match head {
        Head::Build(d) | Head::Reduce(_, d) => product(0..d),
        Head::Arg(_) => product(0..1),
        Head::Scan => product(1..2),
        Head::Scatter(d) => product(d..d + 1),
        Head::Fold | Head::Sum => kids[usize::from(head == Head::Fold)].length(),
        _ => return 1.0,
    };
    match (model, head) {
        (Model::Analytic | Model::Stored | Model::Recomputed, _) => estimated,
        (Model::Knossos, Head::Sum) => ASSUMED.powi(kids[0].dims().len() as i32),
        (Model::Knossos, _) => assumed_trips(head),
    }
}
