//! The kinds of nodes and edges that a network knows, and what it is told of a node beside its kind.
//!
//! Weights are stored with the names of the kinds, so that a network that was trained on others is refused.

use crate::ir::op::ROWS;
use crate::ir::{Head, Monoid, Op, Scalar, Ty, TyKind};
use std::sync::LazyLock;

/// Grows whenever the meaning of features or edges changes, or a kind changes its meaning.
pub const VERSION: u32 = 1;

/// The names of all kinds of nodes.
pub static KINDS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let fixed = FIXED.iter().map(ToString::to_string);
    let reductions = Monoid::ALL.iter().flat_map(|m| [format!("reduce {}", m.name()), format!("arg {}", m.name())]);
    // Some names stand for several operations, so each has its number among those of its name.
    let operations = ROWS.iter().map(|row| {
        let nth = Op::named(row.name).position(|o| o == row.op).unwrap_or_default();
        if nth == 0 { row.name.to_string() } else { format!("{} {}", row.name, nth + 1) }
    });
    fixed.chain(reductions).chain(operations).collect()
});

/// The kinds of the other operations that cost as much as this one: a network that does not know an
/// operation takes it for one of its class.
pub fn class_of(kind: usize) -> Vec<&'static str> {
    let Some(at) = kind.checked_sub(FIXED.len() + 2 * Monoid::ALL.len()) else { return vec![] };
    let class = ROWS[at].class;
    let alike = ROWS.iter().enumerate().filter(|(k, row)| *k != at && row.class == class);
    alike.map(|(k, _)| KINDS[FIXED.len() + 2 * Monoid::ALL.len() + k].as_str()).collect()
}

const FIXED: [&str; 22] = [
    "constant",
    "variable",
    "parameter",
    "call",
    "let",
    "if",
    "assert",
    "tuple",
    "get",
    "cast",
    "build",
    "sum",
    "index",
    "size",
    "fold",
    "scan",
    "constVec",
    "deltaVec",
    "vector",
    "scatter",
    "print",
    "text",
];

/// The kind of a head; calls are told apart from parameters by who asks.
pub fn kind(head: Head) -> usize {
    let reduction = |m: Monoid, k: usize| {
        FIXED.len() + 2 * Monoid::ALL.iter().position(|other| *other == m).unwrap_or_default() + k
    };
    match head {
        Head::Const(crate::ir::Lit::Str(_)) => 21,
        Head::Const(_) => 0,
        Head::Var(..) => 1,
        Head::Call(_) => 3,
        Head::Let => 4,
        Head::If => 5,
        Head::Assert => 6,
        Head::Tuple => 7,
        Head::Get(..) => 8,
        Head::Cast(_) => 9,
        Head::Build(_) => 10,
        Head::Sum => 11,
        Head::Index(_) => 12,
        Head::Size(_) => 13,
        Head::Fold => 14,
        Head::Scan => 15,
        Head::ConstVec(_) => 16,
        Head::DeltaVec(_) => 17,
        Head::VecInit => 18,
        Head::Scatter(_) => 19,
        Head::Print => 20,
        Head::Reduce(m, _) => reduction(m, 0),
        Head::Arg(m) => reduction(m, 1),
        Head::Op(op) => FIXED.len() + 2 * Monoid::ALL.len() + op as usize,
    }
}

/// The kind of a call that stands for a parameter.
pub const PARAMETER: usize = 2;

/// How many kinds of elements there are: the scalars, texts, tuples.
pub const ELEMENTS: usize = Scalar::NAMES.len() + 2;

/// What a value of a type is made of, under all its tensors.
pub fn element(ty: Ty) -> usize {
    let mut ty = ty;
    while let Some((_, elem)) = ty.as_tensor() {
        ty = elem;
    }
    match ty.kind() {
        TyKind::Scalar(s) => Scalar::NAMES.iter().position(|(other, _)| other == s).unwrap_or_default(),
        TyKind::String => Scalar::NAMES.len(),
        TyKind::Tuple(_) | TyKind::Tensor(..) | TyKind::Var(..) => Scalar::NAMES.len() + 1,
    }
}

/// Numbers that tell of a node: of its own number whether it is 0, whether it is 1, its sign, whether it is
/// whole, and its magnitude; the axes of its type; its uses; its cost, and that as a share of the whole.
pub const FEATURES: usize = 9;

/// Kinds of edges from a node to its children: the first, the second, the third, later ones, and the
/// variables that it binds. Each is passed in both directions, with weights of its own.
pub const CHILDREN: usize = 5;
/// Of these, the edge to a bound variable.
pub const BINDS: usize = 4;
/// Kinds of edges, both directions counted: those to parents come after those to children.
pub const EDGES: usize = 2 * CHILDREN;

/// The kind of the edge to a child, and how much it weighs: later ones weigh less and less, so that they
/// can be told apart.
pub fn edge(position: usize) -> (usize, f32) {
    (position.min(3), 4.0 / (position.max(3) + 1) as f32)
}
