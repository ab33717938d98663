//! Derivations: the steps from a program to its optimized form, as data, and what checks them.
//!
//! Invariant: nothing here knows how steps are found. A checker that shares no code with the search
//! follows them, and refuses whatever it cannot prove.

pub mod affine;
mod anyway;
mod around;
pub mod axioms;
pub mod bodies;
pub mod bounds;
mod canonical;
pub mod check;
mod condition;
pub mod early;
mod everywhere;
mod extent;
pub mod flat;
mod form;
pub mod found;
pub mod guard;
pub mod hypotheses;
pub mod lemma;
pub mod matching;
mod normal;
pub mod pace;
pub mod prove;
mod range;
pub mod record;
pub mod replay;
pub mod spot;
pub mod text;
pub mod unfold;
mod view;
mod visited;

/// The cost of a program on the way that nobody computed: there was no time for it, or it has too many parts.
pub const UNSAID: f64 = f64::NAN;

/// Where a step is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// At the given places.
    Here,
    /// Wherever the same part stands.
    Everywhere,
    /// Wherever the same part stands in a larger one, wherever that stands: the larger one is the part to which so
    /// many numbers of the path lead.
    Within(usize),
}

/// One replacement in a flat term, at one or more places.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// The rule, or the axiom.
    pub by: String,
    /// Paths of child numbers from the root of the flat term.
    pub at: Vec<Vec<usize>>,
    /// Whether all places of the same part are meant.
    pub place: Place,
    /// Where the step goes from right to left: the term brought back, as text. From left to right
    /// the rule alone says what becomes of its left side.
    pub to: Option<String>,
    /// The cost of the program after the step, with what is shared counted once, or [`UNSAID`].
    pub cost: f64,
}

/// A lemma as text, and the steps that prove it.
#[derive(Clone, PartialEq, Debug)]
pub struct Statement {
    /// Its name, by which steps take it.
    pub name: String,
    /// The names and types of its parameters.
    pub params: Vec<(String, String)>,
    /// The type of either side.
    pub ty: String,
    /// The left side, with lets.
    pub left: String,
    /// Integers that are equal. What stands on a left side stands on no right side.
    pub given: Vec<(String, String)>,
    /// Integers that are at least 0 and below another one.
    pub below: Vec<(String, String)>,
    /// The parameters that have a value over the reals.
    pub defined: Vec<String>,
    /// The steps from the left side to the right one.
    pub steps: Vec<Step>,
    /// The cost of the left side without lets, with what is shared counted once.
    pub start: f64,
    /// The right side, with lets.
    pub right: String,
    /// What that costs.
    pub cost: f64,
}

/// The steps from one definition to its optimized form.
#[derive(Clone, PartialEq, Debug)]
pub struct Derivation {
    /// The definition's name.
    pub name: String,
    /// Its parameter types, as text: functions may share a name.
    pub params: Vec<String>,
    /// What was proved of parts, for steps to take.
    pub lemmas: Vec<Statement>,
    /// Whether the steps go from one body with lets to the next, by lemmas; else the definition is unfolded first.
    pub bodies: bool,
    /// The steps.
    pub steps: Vec<Step>,
    /// The cost of what the steps begin with: where that is unfolded, with what is shared counted once.
    pub start: f64,
    /// The text of the optimized definition.
    pub result: String,
    /// The cost of the input.
    pub cost_before: f64,
    /// The cost of the result.
    pub cost_after: f64,
}

/// Why something was refused: what was expected, and what was found.
pub type Refused = String;
