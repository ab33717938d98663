//! Places that can fail, and the messages of the interpreter for them.

use crate::diag::{Diagnostic, Kind, Span};
use crate::eval::large;

/// A place in the source that can fail: an index into [`super::Nest::sites`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct SiteId(pub u32);

/// A place that prints: an index into [`super::Nest::prints`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct PrintId(pub u32);

/// What a failure says; values come from the running program.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Failing {
    /// So many indices and as many sizes.
    Index(usize),
    /// A failed `assert`.
    Assertion,
    /// Integer division by 0.
    Division,
    /// A size below 0.
    NegativeSize,
    /// A tensor has too many elements: what the source calls it, and the bytes of each.
    TooLarge(Option<String>, u64),
    /// Elements of different shape.
    ElementShape,
    /// Two tensors of so many axes differ.
    Sizes(usize),
    /// A named size differs between two parameters.
    NamedSize(String, String, String),
    /// A fold or scan whose state changes its shape.
    StateShape,
    /// The least or greatest of nothing.
    Nothing,
    /// A sum over nothing whose shape is unknown.
    NoShape,
    /// A function without a body is called.
    NoBody(String),
    /// Calls are nested too deep.
    Recursion(usize),
    /// Sizes that lowering took for equal differ.
    Internal,
    /// The nest is of no use for these arguments: the reference nest of the same definition is to run instead.
    Reference,
}

/// A place that can fail.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Site {
    /// What is wrong there.
    pub failing: Failing,
    /// Where, with a text each.
    pub places: Vec<(Span, &'static str)>,
}

impl Site {
    /// The message of the interpreter, with the values that the running program gave.
    pub fn diagnostic(&self, values: &[i64]) -> Box<Diagnostic> {
        let halves = || values.split_at(values.len() / 2);
        let sizes = || values.iter().map(|n| u64::try_from(*n).unwrap_or(0)).collect::<Vec<u64>>();
        let one = || values.first().copied().unwrap_or_default();
        let (kind, message) = match &self.failing {
            Failing::Index(_) => {
                let (at, size) = halves();
                (Kind::User, format!("index out of range: {}, of size {}", list(at), list(size)))
            }
            Failing::Assertion => (Kind::User, "assertion failed".to_string()),
            Failing::Division => (Kind::User, "division by zero".to_string()),
            Failing::NegativeSize => (Kind::User, format!("negative size {}", one())),
            Failing::TooLarge(..) => (Kind::Limit, large::message(&sizes())),
            Failing::ElementShape => (Kind::User, "elements differ in shape".to_string()),
            Failing::Sizes(_) => {
                let (a, b) = halves();
                (Kind::User, format!("sizes disagree: {} and {}", list(a), list(b)))
            }
            Failing::NamedSize(name, p, q) => {
                let other = values.get(1).copied().unwrap_or_default();
                (Kind::User, format!("sizes disagree: `{name}` is {} in `{p}` and {other} in `{q}`", one()))
            }
            Failing::StateShape => (Kind::User, "the state changes its shape".to_string()),
            Failing::Nothing => (Kind::User, "no least or greatest of nothing".to_string()),
            Failing::NoShape => (Kind::User, "a sum over nothing has no shape here".to_string()),
            Failing::NoBody(name) => (Kind::User, format!("`{name}` is declared, but not defined here")),
            Failing::Recursion(most) => (Kind::Limit, format!("recursion is deeper than {most} calls")),
            Failing::Reference => (Kind::Bug, "the reference nest was to run instead".to_string()),
            Failing::Internal => (Kind::Bug, "compiled code found other sizes than lowering".to_string()),
        };
        let d = match kind {
            Kind::User => Diagnostic::user(message),
            Kind::Limit => Diagnostic::limit(message),
            Kind::Bug | Kind::Consequence => Diagnostic::bug(message),
        };
        let d = match &self.failing {
            Failing::TooLarge(name, each) => d.note(large::note(name.as_deref(), &sizes(), *each)),
            _ => d,
        };
        self.places.iter().fold(d, |d, (span, label)| d.at(*span, *label))
    }
}

fn list(each: &[i64]) -> String {
    match each {
        [one] => one.to_string(),
        many => format!("({})", many.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")),
    }
}
