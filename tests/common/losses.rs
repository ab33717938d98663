//! A seed becomes a random loss as text: smooth but for what asks for corners, over two sizes that may grow.
//!
//! Its loops run over named sizes alone, so that it has a value at all of them. It must not know what is done with it.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

struct Maker {
    rng: StdRng,
    /// Variables of loops, with whether they run over `n`; other loops run over `k`.
    loops: Vec<(String, bool)>,
    /// Numbers in scope.
    numbers: Vec<String>,
    /// Vectors in scope, with whether they have `n` elements.
    vectors: Vec<(String, bool)>,
    count: usize,
    corners: bool,
}

/// The loss of a seed: `main`, a `Float` of two vectors, a matrix, places in the first vector, and a number.
pub fn loss(seed: u64, budget: usize, corners: bool) -> String {
    let vectors = vec![("x".to_string(), true), ("y".to_string(), false)];
    let rng = StdRng::seed_from_u64(seed);
    let mut maker = Maker { rng, loops: vec![], numbers: vec!["a".into()], vectors, count: 0, corners };
    let body = maker.tables(budget);
    format!(
        "(def main Float ((x : (Vec Float) n) (y : (Vec Float) k) (m : (Tensor 2 Float) (n k)) (p : (Vec Integer) n) (a : Float))\n  {body})\n"
    )
}

impl Maker {
    fn name(&mut self, like: &str) -> String {
        self.count += 1;
        format!("{like}{}", self.count)
    }

    /// Some vectors that are made first, and a number of them.
    fn tables(&mut self, fuel: usize) -> String {
        let made: Vec<String> = (0..self.rng.random_range(0..3))
            .map(|_| {
                let (name, long) = (self.name("t"), self.rng.random_bool(0.5));
                let value = self.vector(long, fuel / 3);
                self.vectors.push((name.clone(), long));
                format!("(let ({name} {value})\n  ")
            })
            .collect();
        let sum = self.summed(fuel);
        format!("{}{sum}{}", made.concat(), ")".repeat(made.len()))
    }

    fn size(long: bool) -> &'static str {
        if long { "n" } else { "k" }
    }

    /// A body under the variable of a loop.
    fn under(&mut self, long: bool, fuel: usize) -> (String, String) {
        let i = self.name("i");
        self.loops.push((i.clone(), long));
        let body = self.number(fuel);
        self.loops.pop();
        (i, body)
    }

    fn vector(&mut self, long: bool, fuel: usize) -> String {
        let size = Maker::size(long);
        match self.rng.random_range(0..6) {
            0 => {
                let (s, t) = (self.name("s"), self.name("i"));
                self.numbers.push(s.clone());
                self.loops.push((t.clone(), long));
                let next = self.number(fuel);
                self.loops.pop();
                self.numbers.pop();
                format!("(scan (lam (({s} : Float) ({t} : Integer)) (tanh {next})) a {size})")
            }
            1 if long => {
                let (i, value) = self.under(true, fuel);
                format!("(buildFromSparse n n (lam ({i} : Integer) (tuple (mod (index {i} p) n) {value})))")
            }
            2 => {
                let of = self.vectors.iter().filter(|v| v.1 == long).map(|v| v.0.clone()).collect::<Vec<_>>();
                let of = &of[self.rng.random_range(0..of.len())];
                format!("(map (lam (e : Float) (sin (mul e a))) {of})")
            }
            _ => {
                let (i, value) = self.under(long, fuel);
                format!("(build {size} (lam ({i} : Integer) {value}))")
            }
        }
    }

    fn summed(&mut self, fuel: usize) -> String {
        let long = self.rng.random_bool(0.6);
        if self.rng.random_bool(0.15) {
            let (s, e) = (self.name("s"), self.name("e"));
            self.numbers.extend([s.clone(), e.clone()]);
            let next = self.number(fuel);
            self.numbers.truncate(self.numbers.len() - 2);
            let of = if long { "x" } else { "y" };
            return format!("(fold (lam (({s} : Float) ({e} : Float)) (tanh {next})) a {of})");
        }
        let (i, body) = self.under(long, fuel);
        let most = self.corners && self.rng.random_bool(0.15);
        let form = if most { "reduce max" } else { "sumbuild" };
        format!("({form} {} (lam ({i} : Integer) {body}))", Maker::size(long))
    }

    /// An element of a vector or of the matrix, at a variable of a loop or at an index that is made of one.
    fn element(&mut self) -> String {
        let Some((i, long)) = self.loops.get(self.rng.random_range(0..self.loops.len().max(1))).cloned() else {
            return self.numbers[self.rng.random_range(0..self.numbers.len())].clone();
        };
        let other = self.loops.iter().find(|l| l.1 != long).map(|l| l.0.clone());
        if let Some(j) = other.filter(|_| self.rng.random_bool(0.4)) {
            return if long { format!("(index (tuple {i} {j}) m)") } else { format!("(index (tuple {j} {i}) m)") };
        }
        let of: Vec<String> = self.vectors.iter().filter(|v| v.1 == long).map(|v| v.0.clone()).collect();
        let of = &of[self.rng.random_range(0..of.len())];
        let n = Maker::size(long);
        let at = match self.rng.random_range(0..12) {
            0 => format!("(sub (sub {n} 1) {i})"),
            1 => format!("(mod (add {i} 1) {n})"),
            2 => format!("(max 0 (sub {i} 1))"),
            3 if long => format!("(mod (index {i} p) n)"),
            4 => format!("(div {i} 2)"),
            _ => i,
        };
        format!("(index {at} {of})")
    }

    fn leaf(&mut self) -> String {
        match self.rng.random_range(0..6) {
            0 => format!("{:?}", f64::from(self.rng.random_range(-8..=8)) / 8.0),
            1 => self.numbers[self.rng.random_range(0..self.numbers.len())].clone(),
            _ => self.element(),
        }
    }

    fn number(&mut self, fuel: usize) -> String {
        if fuel == 0 {
            return self.leaf();
        }
        let fuel = fuel - 1;
        match self.rng.random_range(0..18) {
            0 | 1 => self.leaf(),
            2..5 => format!("(mul {} {})", self.number(fuel / 2), self.number(fuel / 2)),
            5..7 => format!("(add {} {})", self.number(fuel / 2), self.number(fuel / 2)),
            7 => format!("(sub {} {})", self.number(fuel / 2), self.number(fuel / 2)),
            8 => format!("(sin {})", self.number(fuel)),
            9 => format!("(tanh {})", self.number(fuel)),
            10 => format!("(exp (tanh {}))", self.number(fuel)),
            11 => {
                let v = self.name("v");
                format!("(let ({v} {}) (sqrt (add 1.0 (mul {v} {v}))))", self.number(fuel))
            }
            12 => {
                let v = self.name("v");
                let by = self.number(fuel / 2);
                format!("(let ({v} {by}) (div {} (add 2.0 (mul {v} {v}))))", self.number(fuel / 2))
            }
            13 => {
                let (v, value) = (self.name("v"), self.number(fuel / 2));
                self.numbers.push(v.clone());
                let body = self.number(fuel / 2);
                self.numbers.pop();
                format!("(let ({v} {value}) {body})")
            }
            14 if self.corners => {
                let (a, b) = (self.number(fuel / 3), self.number(fuel / 3));
                format!("(if (gt {} 0.25) {a} {b})", self.leaf())
            }
            15 if self.corners => format!("(max {} {})", self.number(fuel / 2), self.number(fuel / 2)),
            _ if self.loops.len() < 3 => self.summed(fuel),
            _ => self.leaf(),
        }
    }
}
