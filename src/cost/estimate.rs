//! Estimated sizes: an abstract run of a term in which integers are guesses.

use super::model::{ASSUMED, Model, assumed_trips};
use crate::ir::{Head, Lit, Op, Ty, TyKind};

/// A guess of a value.
#[derive(Clone, PartialEq, Debug)]
pub enum Est {
    /// A number; what is no number counts as 1.
    Num(f64),
    /// Components.
    Tuple(Vec<Est>),
    /// Sizes of the outer tensor, and an element.
    Tensor(Vec<f64>, Box<Est>),
}

impl Est {
    /// A value of a type; sizes by axis through nested tensors, the assumed one where they end.
    pub fn of(ty: Ty, dims: &[f64]) -> Est {
        match ty.kind() {
            TyKind::Scalar(_) | TyKind::String | TyKind::Var(..) => Est::Num(ASSUMED),
            TyKind::Tuple(parts) => Est::Tuple(parts.iter().map(|p| Est::of(*p, &[])).collect()),
            TyKind::Tensor(rank, elem) => {
                let at = |k: usize| dims.get(k).copied().unwrap_or(ASSUMED);
                let rest = dims.get(*rank..).unwrap_or(&[]);
                Est::Tensor((0..*rank).map(at).collect(), Box::new(Est::of(*elem, rest)))
            }
        }
    }

    /// A number in place of a guess.
    pub fn with_value(self, value: Option<f64>) -> Est {
        match (self, value) {
            (Est::Num(_), Some(v)) => Est::Num(v),
            (other, _) => other,
        }
    }

    /// The number.
    pub fn num(&self) -> f64 {
        match self {
            Est::Num(v) => *v,
            Est::Tuple(_) | Est::Tensor(..) => ASSUMED,
        }
    }

    /// How many scalars there are.
    pub fn elements(&self) -> f64 {
        match self {
            Est::Num(_) => 1.0,
            Est::Tuple(parts) => parts.iter().map(Est::elements).sum(),
            Est::Tensor(dims, elem) => dims.iter().product::<f64>() * elem.elements(),
        }
    }

    fn dims(&self) -> &[f64] {
        match self {
            Est::Tensor(dims, _) => dims,
            Est::Num(_) | Est::Tuple(_) => &[],
        }
    }

    /// One element of a tensor.
    pub fn element(&self) -> Est {
        match self {
            Est::Tensor(_, elem) => (**elem).clone(),
            Est::Num(_) | Est::Tuple(_) => Est::Num(ASSUMED),
        }
    }

    fn axis(&self, k: usize) -> f64 {
        match self {
            Est::Tensor(dims, elem) => dims.get(k).copied().unwrap_or_else(|| elem.axis(k - dims.len())),
            Est::Num(_) | Est::Tuple(_) => ASSUMED,
        }
    }
}

/// The guesses of the variables that a node binds, from its other children.
pub fn bound(head: Head, kids: &[Est]) -> Vec<Est> {
    let half = |e: &Est| Est::Num((e.num() / 2.0).max(1.0));
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
    let nums = |range: std::ops::Range<usize>| kids[range].iter().map(|e| e.num().max(0.0)).collect::<Vec<_>>();
    match head {
        Head::Const(l) => Est::Num(l.to_f64().unwrap_or(1.0)),
        Head::Let | Head::Assert => kids[1].clone(),
        Head::If => kids[1].clone(),
        Head::Tuple => Est::Tuple(kids.to_vec()),
        Head::Get(i, _) => match &kids[0] {
            Est::Tuple(parts) => parts[i as usize].clone(),
            Est::Num(_) | Est::Tensor(..) => Est::of(ty, &[]),
        },
        Head::Op(op) => operation(op, ty, kids),
        Head::Cast(_) => kids[0].clone(),
        Head::Build(d) => Est::Tensor(nums(0..d), Box::new(kids[d].clone())),
        Head::Reduce(_, d) => kids[d].clone(),
        Head::Sum => kids[0].element(),
        Head::Index(d) => kids[d].element(),
        Head::Size(k) => Est::Num(kids[0].axis(k)),
        Head::Fold => kids[0].clone(),
        Head::Scan => Est::Tensor(nums(1..2), Box::new(kids[0].clone())),
        Head::ConstVec(d) => Est::Tensor(nums(0..d), Box::new(kids[d].clone())),
        Head::DeltaVec(d) => Est::Tensor(nums(0..d), Box::new(kids[2 * d].clone())),
        Head::VecInit => Est::Tensor(vec![kids.len() as f64], Box::new(kids[0].clone())),
        Head::Scatter(d) => Est::Tensor(
            nums(0..d),
            Box::new(match &kids[d + 1] {
                Est::Tuple(pair) => pair[1].clone(),
                Est::Num(_) | Est::Tensor(..) => Est::Num(1.0),
            }),
        ),
        Head::Var(..) | Head::Call(_) | Head::Arg(_) | Head::Print => Est::of(ty, &[]),
    }
}

fn operation(op: Op, ty: Ty, kids: &[Est]) -> Est {
    if let Some(tensor) = kids.iter().find(|k| !k.dims().is_empty()) {
        return tensor.clone();
    }
    if ty.as_scalar().is_none() {
        return Est::of(ty, &[]);
    }
    // The table evaluates floats, so guesses of integers are computed as floats.
    let args: Vec<Lit> = kids.iter().map(|k| Lit::float(k.num())).collect();
    match op.eval(&args) {
        Ok(l) => Est::Num(l.to_f64().filter(|v| v.is_finite()).unwrap_or(ASSUMED)),
        Err(_) => kids.first().cloned().unwrap_or(Est::Num(ASSUMED)),
    }
}

/// How often the last child of a loop runs.
pub fn trips(model: Model, head: Head, kids: &[Est]) -> f64 {
    let product = |range: std::ops::Range<usize>| kids[range].iter().map(|e| e.num().max(0.0)).product::<f64>();
    let estimated = match head {
        Head::Build(d) | Head::Reduce(_, d) => product(0..d),
        Head::Arg(_) => product(0..1),
        Head::Scan => product(1..2),
        Head::Scatter(d) => product(d..d + 1),
        Head::Fold | Head::Sum => kids[usize::from(head == Head::Fold)].dims().iter().product(),
        _ => return 1.0,
    };
    match (model, head) {
        (Model::Analytic, _) => estimated,
        (Model::Knossos, Head::Sum) => ASSUMED.powi(kids[0].dims().len() as i32),
        (Model::Knossos, _) => assumed_trips(head),
    }
}
