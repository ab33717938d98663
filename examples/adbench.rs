//! Files of ADBench become `.npy` files that `daedal run` takes:
//!
//! ```sh
//! cargo run --release --example adbench -- gmm examples/data/gmm.txt DIRECTORY
//! ```
//!
//! A file is numbers between blanks; a line has no meaning of its own. In their order:
//!
//! | format | numbers | written |
//! |---|---|---|
//! | `gmm` | `d k n`; `alphas` (k); `means` (k × d); `icf` (k × d(d+1)/2); `x` (n × d); `gamma m` | `alphas means x gamma m`, and `icf` in two: `qs` (k × d) the logarithms of diagonals, `ls` what is below |
//! | `ba` | `n m p`; one camera (11), one point (3), one weight, one feature (2), each for all | `cameras` (n × 11), `points` (m × 3), `weights` (p), `features` (p × 2), and what observation i sees: `camera_of` i mod n, `point_of` i mod m |
//! | `lstm` | `l c b`; `main` (2l × 4b); `extra` (3 × b); `state` (2l × b); `sequence` (c × b) | these four |
//!
//! The hand tracking data is a directory of meshes and skeletons in a format of its own, which is not
//! read here.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program of the command line")]

use daedal::data::Output;
use daedal::diag::{Diagnostic, Result};
use daedal::eval::Value;
use daedal::ir::{Lit, Ty};
use std::path::Path;
use std::process::ExitCode;

/// Sizes beyond this are refused: the greatest published file says 29 millions.
const MOST: u32 = 100_000_000;

/// The numbers of a file that were not yet taken.
struct Numbers<'a> {
    words: std::str::SplitWhitespace<'a>,
    taken: usize,
}

/// Arrays to be written, by name.
type Arrays = Vec<(&'static str, Value, Ty)>;

impl Numbers<'_> {
    fn word<T: std::str::FromStr>(&mut self, what: &str) -> Result<T> {
        self.taken += 1;
        let at = self.taken;
        let Some(word) = self.words.next() else {
            let found = at - 1;
            return Err(Diagnostic::user(format!("the file ends after {found} numbers, where {what} is expected")));
        };
        word.parse().map_err(|_| Diagnostic::user(format!("number {at} of the file is `{word}`, expected {what}")))
    }

    fn size(&mut self, what: &str) -> Result<usize> {
        let n: u32 = self.word(what)?;
        match n <= MOST {
            true => Ok(n as usize),
            false => Err(Diagnostic::limit(format!("{what} is {n}, more than {MOST}"))),
        }
    }

    fn floats(&mut self, n: usize, what: &str) -> Result<Vec<f64>> {
        (0..n).map(|_| self.word(what)).collect()
    }

    /// A matrix, which `.npy` files know from nested vectors by its type alone.
    fn matrix(&mut self, (rows, columns): (usize, usize), what: &'static str) -> Result<(&'static str, Value, Ty)> {
        Ok(matrix(what, rows, columns, &self.floats(rows * columns, what)?))
    }

    fn end(mut self) -> Result<()> {
        match self.words.next() {
            None => Ok(()),
            Some(word) => Err(Diagnostic::user(format!("the file goes on with `{word}` after {} numbers", self.taken))),
        }
    }
}

fn float(v: f64) -> Value {
    Value::Scalar(Lit::float(v))
}

fn matrix(name: &'static str, rows: usize, columns: usize, of: &[f64]) -> (&'static str, Value, Ty) {
    let data = of.iter().map(|v| float(*v)).collect();
    (name, Value::tensor(vec![rows, columns], data), Ty::tensor(2, Ty::float()))
}

fn vector(name: &'static str, of: &[f64]) -> (&'static str, Value, Ty) {
    let data = of.iter().map(|v| float(*v)).collect();
    (name, Value::tensor(vec![of.len()], data), Ty::tensor(1, Ty::float()))
}

fn integers(name: &'static str, of: impl ExactSizeIterator<Item = usize>) -> (&'static str, Value, Ty) {
    let n = of.len();
    let data = of.map(|v| Value::Scalar(Lit::int(v as i64))).collect();
    (name, Value::tensor(vec![n], data), Ty::tensor(1, Ty::int()))
}

fn gmm(from: &mut Numbers<'_>) -> Result<Arrays> {
    let (d, k, n) = (from.size("d")?, from.size("k")?, from.size("n")?);
    let below = d * d.saturating_sub(1) / 2;
    let alphas = vector("alphas", &from.floats(k, "alphas")?);
    let means = from.matrix((k, d), "means")?;
    let (mut qs, mut ls) = (vec![], vec![]);
    for _ in 0..k {
        qs.extend(from.floats(d, "icf")?);
        ls.extend(from.floats(below, "icf")?);
    }
    let x = from.matrix((n, d), "x")?;
    let gamma = ("gamma", float(from.word("gamma")?), Ty::float());
    let m = ("m", Value::Scalar(Lit::int(from.word("m")?)), Ty::int());
    Ok(vec![alphas, means, matrix("qs", k, d, &qs), matrix("ls", k, below, &ls), x, gamma, m])
}

fn ba(from: &mut Numbers<'_>) -> Result<Arrays> {
    let (n, m, p) = (from.size("n")?, from.size("m")?, from.size("p")?);
    if p > 0 && (n == 0 || m == 0) {
        return Err(Diagnostic::user("there are observations, but no camera or no point"));
    }
    let camera = from.floats(11, "a camera")?;
    let point = from.floats(3, "a point")?;
    let weight = from.floats(1, "a weight")?;
    let feature = from.floats(2, "a feature")?;
    Ok(vec![
        matrix("cameras", n, 11, &camera.repeat(n)),
        matrix("points", m, 3, &point.repeat(m)),
        vector("weights", &weight.repeat(p)),
        matrix("features", p, 2, &feature.repeat(p)),
        integers("camera_of", (0..p).map(|i| i % n)),
        integers("point_of", (0..p).map(|i| i % m)),
    ])
}

fn lstm(from: &mut Numbers<'_>) -> Result<Arrays> {
    let (l, c, b) = (from.size("l")?, from.size("c")?, from.size("b")?);
    Ok(vec![
        from.matrix((2 * l, 4 * b), "main")?,
        from.matrix((3, b), "extra")?,
        from.matrix((2 * l, b), "state")?,
        from.matrix((c, b), "sequence")?,
    ])
}

/// Reads a text in a format, and writes its arrays to a directory; gives their names.
///
/// # Errors
/// An unknown format, a text in another one, a directory that cannot be written.
pub fn convert(format: &str, text: &str, to: &Path) -> Result<Vec<&'static str>> {
    let mut numbers = Numbers { words: text.split_whitespace(), taken: 0 };
    let arrays = match format {
        "gmm" => gmm(&mut numbers)?,
        "ba" => ba(&mut numbers)?,
        "lstm" => lstm(&mut numbers)?,
        other => {
            return Err(Diagnostic::user(format!("unknown format `{other}`")).note("expected `gmm`, `ba` or `lstm`"));
        }
    };
    numbers.end()?;
    for (name, value, ty) in &arrays {
        Output::for_value(&to.join(format!("{name}.npy")))?.value(value, *ty)?;
    }
    Ok(arrays.into_iter().map(|(name, ..)| name).collect())
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [format, file, to] = words.as_slice() else {
        eprintln!("expected FORMAT FILE DIRECTORY");
        return ExitCode::FAILURE;
    };
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(e) => {
            eprintln!("{file}: {e}");
            return ExitCode::FAILURE;
        }
    };
    match convert(format, &text, Path::new(to)) {
        Ok(names) => {
            names.iter().for_each(|name| println!("{to}/{name}.npy"));
            ExitCode::SUCCESS
        }
        Err(d) => {
            eprintln!("{d}");
            ExitCode::FAILURE
        }
    }
}
