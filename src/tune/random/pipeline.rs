//! A seed becomes a whole pipeline: which stages follow each other, and its text.

use super::making::Making;
use super::tensor::Element;
use rand::RngExt;
use std::fmt::Write;

/// Which pipelines seeds stand for: another number where the same seed gives another text.
pub const VERSION: u32 = 1;

/// Stages of a pipeline, at least and at most as many as are tried.
const STAGES: std::ops::RangeInclusive<usize> = 3..=13;
/// Stages that are tried for one that fits.
const TRIES: usize = 40;

/// A pipeline: the definition `main`.
#[derive(Clone, PartialEq, Debug)]
pub struct Pipeline {
    /// Its seed.
    pub seed: u64,
    /// The program.
    pub text: String,
    /// Sizes of its parameters where time is measured.
    pub large: Vec<(String, u64)>,
    /// Sizes where bits are compared with the interpreter.
    pub small: Vec<(String, u64)>,
}

/// A kind of stages, which may not fit.
type Kind = fn(&mut Making) -> bool;

/// Kinds of stages, and how often they are tried.
const KINDS: [(Kind, u32); 14] = [
    (Making::pointwise, 4),
    (Making::binary, 3),
    (Making::broadcast, 2),
    (Making::converted, 2),
    (Making::looked_up, 1),
    (Making::picked, 1),
    (Making::moved, 1),
    (Making::stencil, 6),
    (Making::pool, 2),
    (Making::enlarged, 1),
    (Making::convolution, 3),
    (Making::reduced, 1),
    (Making::running, 2),
    (Making::product, 4),
];
/// Normalizations, which are several stages.
const NORMALIZED: u32 = 2;

impl Pipeline {
    /// The pipeline of a seed.
    pub fn new(seed: u64) -> Pipeline {
        let mut m = Making::new(seed);
        let wanted = m.rng.random_range(STAGES);
        let all = KINDS.iter().map(|(_, n)| n).sum::<u32>() + NORMALIZED;
        for _ in 0..TRIES {
            if m.stages.len() >= wanted {
                break;
            }
            // A vector is read by elements and scans alone.
            let mut at = m.rng.random_range(0..all);
            let kind = KINDS.iter().find(|(_, n)| {
                let here = at < *n;
                at = at.saturating_sub(*n);
                here
            });
            let kind = kind.map_or(Making::normalized as Kind, |(kind, _)| *kind);
            kind(&mut m);
        }
        while m.stages.len() < *STAGES.start() {
            let (last, element) = (m.last.clone(), m.last.element);
            let n = if element == Element::F32 { "0.5f32".to_string() } else { element.whole(3) };
            let e = format!("(add {n} {})", last.at(&m.here()));
            m.stage(element, last.sizes, 1.0, &e);
        }
        let mut text = format!("(def main {} ({})", m.last.ty(), m.params.join(" "));
        for (name, stage) in &m.stages {
            let _ = write!(text, "\n  (let ({name} {stage})");
        }
        let _ = writeln!(text, "\n  {}{})", m.last.name, ")".repeat(m.stages.len()));
        let large = m.sizes.iter().map(|(n, large, _)| (n.clone(), *large)).collect();
        let small = m.sizes.iter().map(|(n, _, small)| (n.clone(), *small)).collect();
        Pipeline { seed, text, large, small }
    }
}
