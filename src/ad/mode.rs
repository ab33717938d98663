//! The two ways of derivatives.

/// Which way derivatives flow.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Mode {
    /// Tangents with the values.
    Forward,
    /// Adjoints against them.
    Reverse,
}

impl Mode {
    /// The word that names derivatives of the mode.
    pub fn word(self) -> &'static str {
        match self {
            Mode::Forward => "fwd",
            Mode::Reverse => "rev",
        }
    }
}
