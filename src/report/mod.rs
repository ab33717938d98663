//! What an optimization did becomes a page that a person would rather look at: one HTML file, with
//! plots, that needs nothing else; and a schedule becomes a drawing. It knows texts and numbers, nothing of terms and searches.

mod html;
mod marks;
mod picture;
mod plot;
mod svg;
mod text;

pub use html::page;
pub use marks::{Kind, Mark, marks};
pub use picture::picture;
pub use plot::{Series, above, lines};

/// Colours of lines that stand beside each other.
const INK: [(u8, u8, u8); 8] = [
    (38, 92, 168),
    (196, 88, 33),
    (46, 128, 84),
    (128, 70, 140),
    (170, 44, 60),
    (20, 136, 150),
    (150, 120, 30),
    (96, 96, 96),
];

/// A colour as attributes have it.
fn colour((r, g, b): (u8, u8, u8)) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// One definition's way from the input to the output.
#[derive(Clone, Debug, Default)]
pub struct Story {
    /// The name of the definition.
    pub name: String,
    /// Cost as written, and as optimized.
    pub cost: (f64, f64),
    /// Text as written, and as optimized.
    pub text: (String, String),
    /// The steps of the derivation in order: what was done, and the cost of the program after it.
    pub steps: Vec<(String, f64)>,
    /// How often each rule fired in the search, most often first.
    pub fired: Vec<(String, usize)>,
    /// Nodes of the e-graph after each round, one list for each time the search started.
    pub growth: Vec<Vec<usize>>,
    /// A cheaper result that is not used, because it has no derivation: both costs, and why.
    pub unproved: Option<String>,
}

impl Story {
    /// Whether the optimized definition is another one.
    pub fn changed(&self) -> bool {
        self.cost.0 != self.cost.1 || !self.steps.is_empty() || self.unproved.is_some()
    }
}

/// What the page says of the whole.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// The name of the input file.
    pub file: String,
    /// The name of the cost model.
    pub model: String,
    /// What the rules keep.
    pub level: String,
}
