//! A pipeline in the making: its parameters, its stages so far, and chance.

use super::tensor::{Element, Size, Tensor};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

/// The names of indices, outermost first.
pub const INDICES: [&str; 4] = ["i", "j", "k", "l"];
/// Sums of operations of all stages at most, where time is measured, and elements of one stage.
const WORK: f64 = 1.2e8;
const ELEMENTS: f64 = 2.5e6;
/// Sizes at which bits are compared are at least so large.
const SMALLEST: u64 = 4;

/// A pipeline in the making.
pub struct Making {
    /// Chance.
    pub rng: StdRng,
    /// Parameters, as the program writes them.
    pub params: Vec<String>,
    /// Named sizes: where time is measured, and where bits are compared.
    pub sizes: Vec<(String, u64, u64)>,
    /// Stages: names and texts.
    pub stages: Vec<(String, String)>,
    /// What the next stage reads.
    pub last: Tensor,
    /// What stages before gave.
    pub earlier: Vec<Tensor>,
    work: f64,
}

impl Making {
    /// Begins with an input.
    pub fn new(seed: u64) -> Making {
        let rng = StdRng::seed_from_u64(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x7069_7065);
        let none = Tensor { name: String::new(), element: Element::F32, sizes: vec![], nested: false };
        let mut out =
            Making { rng, params: vec![], sizes: vec![], stages: vec![], last: none, earlier: vec![], work: 0.0 };
        let (element, sizes) = out.input();
        out.last = out.param(element, sizes);
        out
    }

    /// What comes in: an image with channels or without, a matrix, or a vector.
    fn input(&mut self) -> (Element, Vec<Size>) {
        let element = *[Element::F32, Element::F32, Element::F32, Element::U8, Element::I16]
            .choose(&mut self.rng)
            .unwrap_or(&Element::F32);
        match self.rng.random_range(0..10) {
            0..4 => (element, vec![self.size("h", 200, 700, 19), self.size("w", 200, 800, 23)]),
            4..6 => {
                let channels = *[3, 4, 8, 16].choose(&mut self.rng).unwrap_or(&3);
                let most = 300_000 / channels / 150;
                let (h, w) = (self.size("h", 60, 150, 17), self.size("w", 60, most.min(500), 18));
                (element, vec![h, w, Size::number(channels)])
            }
            6..9 => (Element::F32, vec![self.size("n", 48, 600, 11), self.size("m", 48, 600, 19)]),
            _ => (element, vec![self.size("n", 20_000, 500_000, 70)]),
        }
    }

    /// A named size; half of them are multiples of 16.
    pub fn size(&mut self, name: &str, from: u64, to: u64, small: u64) -> Size {
        let any = self.rng.random_range(from..=to);
        let large = if self.rng.random_bool(0.5) { (any / 16 * 16).max(16) } else { any };
        self.sizes.push((name.to_string(), large, small));
        Size { text: name.to_string(), large, small }
    }

    /// A further parameter. Sizes that are no names are not said.
    pub fn param(&mut self, element: Element, sizes: Vec<Size>) -> Tensor {
        let name = format!("p{}", self.params.len());
        let out = Tensor { name: name.clone(), element, sizes, nested: false };
        let mut names = vec![];
        for s in &out.sizes {
            match s.text.parse::<u64>() {
                // A number has a name of its own where the sizes of arguments are told.
                Ok(n) => {
                    let own = format!("s{}", self.sizes.len());
                    self.sizes.push((own.clone(), n, n));
                    names.push(own);
                }
                Err(_) => names.push(s.text.clone()),
            }
        }
        self.params.push(format!("({name} : {} ({}))", out.ty(), names.join(" ")));
        out
    }

    /// A parameter whose sizes have names of their own: weights and tables.
    pub fn weights(&mut self, element: &str, sizes: &[u64]) -> (String, Vec<String>) {
        let name = format!("p{}", self.params.len());
        let names: Vec<String> = sizes
            .iter()
            .map(|n| {
                let own = format!("s{}", self.sizes.len());
                self.sizes.push((own.clone(), *n, *n));
                own
            })
            .collect();
        self.params.push(format!("({name} : (Tensor {} {element}) ({}))", sizes.len(), names.join(" ")));
        (name, names)
    }

    /// Whether a stage of such sizes, with so many operations an element, is not too large, nor too small to compare.
    pub fn fits(&self, sizes: &[Size], operations: f64) -> bool {
        let elements: f64 = sizes.iter().map(|s| s.large as f64).product();
        let enough = |s: &Size| s.text.parse::<u64>().is_ok() || s.small >= SMALLEST && s.large >= 8;
        elements <= ELEMENTS && self.work + elements * operations <= WORK && sizes.iter().all(enough)
    }

    /// Adds a stage, which the next one reads. Its text is a body over the indices of [`INDICES`].
    pub fn stage(&mut self, element: Element, sizes: Vec<Size>, operations: f64, body: &str) -> Tensor {
        let extents: Vec<String> = sizes.iter().map(|s| s.text.clone()).collect();
        let (extent, lambda) = match extents.as_slice() {
            [one] => (one.clone(), format!("({} : Integer)", INDICES[0])),
            many => {
                let each: Vec<String> = INDICES.iter().take(many.len()).map(|i| format!("({i} : Integer)")).collect();
                (format!("(tuple {})", many.join(" ")), format!("({})", each.join(" ")))
            }
        };
        self.raw(element, sizes, operations, false, format!("(build {extent} (lam {lambda} {body}))"))
    }

    /// Adds a stage as it is.
    pub fn raw(&mut self, element: Element, sizes: Vec<Size>, operations: f64, nested: bool, text: String) -> Tensor {
        let name = format!("t{}", self.stages.len() + 1);
        self.stages.push((name.clone(), text));
        let made = Tensor { name, element, sizes, nested };
        self.work += made.elements() * operations;
        self.earlier.push(std::mem::replace(&mut self.last, made.clone()));
        made
    }

    /// The indices of the last tensor.
    pub fn here(&self) -> Vec<String> {
        INDICES.iter().take(self.last.sizes.len()).map(ToString::to_string).collect()
    }

    /// A float.
    pub fn float(&mut self) -> String {
        let n = self.rng.random_range(1..=24);
        format!("{:?}f32", f64::from(n) / 16.0)
    }

    /// One of several.
    pub fn pick<T: Copy>(&mut self, from: &[T], otherwise: T) -> T {
        from.choose(&mut self.rng).copied().unwrap_or(otherwise)
    }
}
