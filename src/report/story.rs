//! What the page is told: texts and numbers.

/// One definition's way from the input to the output.
#[derive(Clone, Debug, Default)]
pub struct Story {
    /// The name of the definition.
    pub name: String,
    /// Cost as written, and as optimized.
    pub cost: (f64, f64),
    /// Text as written, and as optimized.
    pub text: (String, String),
    /// The steps of the derivation in order: what was done, and the cost of the program after it, no number where it is unsaid.
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
