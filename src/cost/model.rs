//! The models: what a node costs without its children.

use crate::ir::op::Class;
use crate::ir::{Head, Op, Ty};

/// The size that is assumed where none is known (Knossos, `costs.py`: 16 for every dimension).
pub const ASSUMED: f64 = 16.0;

/// Which numbers to use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Model {
    /// The published one: abstract units, every size 16.
    Knossos,
    /// Operations by class, memory traffic and allocations, with estimated sizes.
    Analytic,
    /// The same where tensors cost next to nothing: what is the cheapest then stores what it reads more than once.
    Stored,
    /// The same where tensors cost many times as much: what is the cheapest then computes again what it reads.
    Recomputed,
}

impl Model {
    /// The model of a name.
    pub fn named(name: &str) -> Option<Model> {
        [Model::Knossos, Model::Analytic].into_iter().find(|m| m.name() == name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Model::Knossos => "knossos",
            Model::Analytic => "analytic",
            Model::Stored => "stored",
            Model::Recomputed => "recomputed",
        }
    }

    /// The cost of binding a value.
    pub fn binding(self) -> f64 {
        match self {
            Model::Knossos => 0.1,
            Model::Analytic | Model::Stored | Model::Recomputed => 0.01,
        }
    }

    /// The cost of a definition that is called, once however often: the published model binds each function
    /// around the expression that calls it (`rlo/sparser.py`), and a let costs. So does a let for each of
    /// several parameters, which unpacks them, in every call. The definition that is rewritten is bound there
    /// too, which adds the same to all that it may become: it is not counted, and neither are its parameters.
    pub fn definition(self) -> f64 {
        match self {
            Model::Knossos => self.binding(),
            Model::Analytic | Model::Stored | Model::Recomputed => 0.0,
        }
    }

    /// The model that compares terms at other sizes: one that looks at sizes.
    #[must_use]
    pub fn sized(self) -> Model {
        match self {
            Model::Knossos => Model::Analytic,
            Model::Analytic | Model::Stored | Model::Recomputed => self,
        }
    }

    /// The cost of the cheaper arm of an `if`, as a part of its own.
    pub const OTHER_ARM: f64 = 1e-4;
}

/// What a model looks at in a node, apart from its label.
pub struct Shape<'a> {
    /// The result type.
    pub ty: Ty,
    /// The types of the children.
    pub kids: &'a [Ty],
    /// How many scalars the result has.
    pub elements: f64,
    /// How many scalars one element of a loop has, or the first tensor child's.
    pub inner: f64,
    /// How often the last child of a loop runs.
    pub trips: f64,
}

impl Model {
    /// The cost of a node without its children. The children of a loop's last place count
    /// [`Shape::trips`] times; an `if` counts its dearer arm.
    pub fn own(self, head: Head, shape: &Shape<'_>) -> f64 {
        match self {
            Model::Knossos => knossos(head, shape),
            Model::Analytic => analytic(head, shape, 1.0),
            Model::Stored => analytic(head, shape, NEXT_TO_NOTHING),
            Model::Recomputed => analytic(head, shape, MANY_TIMES),
        }
    }
}

/// The table of the reference implementation (`rlo/costs.py`); operations that it lacks cost what
/// their class costs there.
fn knossos(head: Head, s: &Shape<'_>) -> f64 {
    let class = |op: Op| match op {
        Op::Pi => 0.0,
        _ => match op.row().class {
            Class::Cheap => 1.0,
            Class::Multiply if op == Op::RanHash => 1.0,
            Class::Multiply | Class::Divide => 2.0,
            Class::Transcendental => 4.0,
        },
    };
    let tuple = 0.1 * s.kids.len() as f64;
    match head {
        Head::Const(_) | Head::Var(..) | Head::Get(..) => 0.0,
        Head::Let => Model::Knossos.binding(),
        Head::If | Head::Assert | Head::Index(_) | Head::Size(_) | Head::Cast(_) | Head::Print => 1.0,
        Head::Tuple => tuple,
        // Several arguments are one tuple there.
        Head::Call(_) => 2.0 + if s.kids.len() > 1 { tuple } else { 0.0 },
        Head::Op(op) if s.ty.has_tensor() => class(op) * s.elements + 2.0,
        Head::Op(op) => class(op) * s.elements.max(1.0),
        Head::Build(_) | Head::ConstVec(_) | Head::DeltaVec(_) | Head::VecInit | Head::Scan => 2.0,
        Head::Reduce(m, _) => (s.trips - 1.0) * s.inner * class(m.op()),
        Head::Arg(_) => s.trips - 1.0,
        Head::Sum => (s.trips - 1.0) * s.elements,
        Head::Fold => 0.0,
        Head::Scatter(_) => 2.0 + s.trips * s.inner,
    }
}

/// So many times what tensors take of memory costs, where they are to be stored, or computed again.
const NEXT_TO_NOTHING: f64 = 0.02;
const MANY_TIMES: f64 = 20.0;

/// Weights are rough cycles of one scalar on a current core: throughput of arithmetic, a load or
/// store a unit, an allocation a small loop; `memory` times as much of what makes tensors.
fn analytic(head: Head, s: &Shape<'_>, memory: f64) -> f64 {
    let class = |op: Op| match op.row().class {
        Class::Cheap | Class::Multiply => 1.0,
        Class::Divide => 4.0,
        Class::Transcendental => 20.0,
    };
    let allocation = 50.0 * memory;
    match head {
        Head::Const(_) | Head::Var(..) | Head::Get(..) | Head::Tuple | Head::Size(_) => 0.0,
        Head::Let => 0.01,
        Head::If | Head::Assert | Head::Cast(_) | Head::Print | Head::Index(_) => 1.0,
        Head::Call(_) => 5.0,
        Head::Op(op) if s.ty.has_tensor() => allocation + s.elements * (class(op) + 3.0 * memory),
        Head::Op(op) => class(op) * s.elements.max(1.0),
        Head::Build(_) => allocation + s.elements * memory,
        Head::ConstVec(_) | Head::DeltaVec(_) | Head::VecInit => allocation + s.elements * memory,
        Head::Scan => allocation + s.elements * memory,
        Head::Reduce(m, _) if s.ty.has_tensor() => allocation + s.trips * s.inner * (class(m.op()) + 2.0),
        Head::Reduce(m, _) => s.trips * s.inner * class(m.op()) + 1.0,
        Head::Arg(_) => 2.0 * s.trips,
        Head::Sum => s.trips * s.elements * 2.0 + 1.0,
        Head::Fold => s.trips,
        Head::Scatter(_) => allocation + s.elements * memory + 3.0 * s.trips * s.inner,
    }
}

/// How often the last child of a loop runs, where every size is the assumed one.
pub fn assumed_trips(head: Head) -> f64 {
    match head {
        Head::Build(d) | Head::Reduce(_, d) => ASSUMED.powi(d as i32),
        _ => ASSUMED,
    }
}
