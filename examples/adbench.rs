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
//! | `hand` | `p t`; for each point the vertex that it belongs to and where it was measured (3), for all; two more for each point where they are there, which the simple form does not take; `theta` (t) | `theta`, `correspondences` (p), `measured` (p × 3), and from the model `parents` (n), `relatives` and `inverses` (n × 4 × 4), `positions` (vertices × 4), `weights` (vertices × n), `mirrored` (0) |
//!
//! The model of a hand is in the directory `model` beside the file. `bones.txt` has a line for each bone:
//! name, parent, the frame in the parent's, and the inverse of the frame at rest, between colons. Where the
//! file writes frames by columns, it says so by their last row, 0 0 0 1. `vertices.txt` has a line for each vertex: position (3),
//! five numbers that are not read, and bones with their weights, behind how many there are.
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

impl<'a> Numbers<'a> {
    fn of(text: &'a str) -> Numbers<'a> {
        Numbers { words: text.split_whitespace(), taken: 0 }
    }
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

    fn rest(&mut self, what: &str) -> Result<Vec<f64>> {
        let n = self.words.clone().count();
        self.floats(n, what)
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

fn integers(name: &'static str, of: impl ExactSizeIterator<Item = i64>) -> (&'static str, Value, Ty) {
    let n = of.len();
    let data = of.map(|v| Value::Scalar(Lit::int(v))).collect();
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
        integers("camera_of", (0..p).map(|i| (i % n) as i64)),
        integers("point_of", (0..p).map(|i| (i % m) as i64)),
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

/// Numbers between colons, as those of a model are; of a bone without its name.
fn fields(text: &str, name: bool) -> String {
    let line = |l: &str| l.split_once(':').filter(|_| name).map_or(l, |(_, rest)| rest).replace(':', " ");
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Frames of 16 numbers each, by rows.
fn frames(name: &'static str, of: &[f64]) -> Result<(&'static str, Value, Ty)> {
    let ends = |at: [usize; 4]| of.chunks(16).all(|m| at.map(|k| m[k]) == [0.0, 0.0, 0.0, 1.0]);
    let by_row: Vec<f64> = match (ends([12, 13, 14, 15]), ends([3, 7, 11, 15])) {
        (true, _) => of.to_vec(),
        (false, true) => of.chunks(16).flat_map(|m| (0..16).map(|k| m[k % 4 * 4 + k / 4])).collect(),
        (false, false) => return Err(Diagnostic::user(format!("{name} have no last row 0 0 0 1"))),
    };
    let data = by_row.iter().map(|v| float(*v)).collect();
    Ok((name, Value::tensor(vec![of.len() / 16, 4, 4], data), Ty::tensor(3, Ty::float())))
}

fn hand(from: &mut Numbers<'_>, bones: &str, vertices: &str) -> Result<Arrays> {
    let (p, t) = (from.size("the number of points")?, from.size("the number of angles")?);
    let (mut seen, mut measured) = (vec![], vec![]);
    for _ in 0..p {
        seen.push(from.size("a vertex")?);
        measured.extend(from.floats(3, "a point")?);
    }
    let mut theta = from.floats(t, "theta")?;
    // The other form has two numbers a point before the angles.
    let rest: Vec<f64> = from.rest("theta")?;
    if rest.len() == 2 * p {
        let all: Vec<f64> = theta.into_iter().chain(rest).collect();
        theta = all[2 * p..].to_vec();
    } else if !rest.is_empty() {
        return Err(Diagnostic::user(format!("the file goes on with {} numbers after theta", rest.len())));
    }
    let n = bones.lines().filter(|l| !l.trim().is_empty()).count();
    let (bones, vertices) = (fields(bones, true), fields(vertices, false));
    let mut from = Numbers::of(&bones);
    let (mut parents, mut relatives, mut inverses) = (vec![], vec![], vec![]);
    for _ in 0..n {
        parents.push(from.word::<i64>("a parent")?);
        relatives.extend(from.floats(16, "a frame")?);
        inverses.extend(from.floats(16, "an inverse frame")?);
    }
    from.end()?;
    let (mut from, mut positions, mut weights) = (Numbers::of(&vertices), vec![], vec![]);
    let count = vertices.lines().filter(|l| !l.trim().is_empty()).count();
    for _ in 0..count {
        positions.extend(from.floats(3, "a position")?);
        positions.push(1.0);
        from.floats(5, "what is not read")?;
        let mut row = vec![0.0; n];
        for _ in 0..from.size("the number of bones")? {
            let bone = from.size("a bone")?;
            let weight = from.word("a weight")?;
            *row.get_mut(bone).ok_or_else(|| Diagnostic::user(format!("a vertex names bone {bone} of {n}")))? = weight;
        }
        weights.extend(row);
    }
    from.end()?;
    Ok(vec![
        vector("theta", &theta),
        integers("parents", parents.into_iter()),
        frames("relatives", &relatives)?,
        frames("inverses", &inverses)?,
        matrix("positions", count, 4, &positions),
        matrix("weights", count, n, &weights),
        integers("correspondences", seen.into_iter().map(|v| v as i64)),
        matrix("measured", p, 3, &measured),
        integers("mirrored", [0].into_iter()),
    ])
}

/// Reads a text in a format, and writes its arrays to a directory; gives their names. `folder` is where more may
/// stand that belongs to the text.
///
/// # Errors
/// An unknown format, a text in another one, a directory that cannot be written.
pub fn convert(format: &str, text: &str, folder: &Path, to: &Path) -> Result<Vec<&'static str>> {
    let mut numbers = Numbers::of(text);
    let model = |name: &str| read(&folder.join("model").join(name));
    let arrays = match format {
        "gmm" => gmm(&mut numbers)?,
        "ba" => ba(&mut numbers)?,
        "lstm" => lstm(&mut numbers)?,
        "hand" => hand(&mut numbers, &model("bones.txt")?, &model("vertices.txt")?)?,
        other => {
            let d = Diagnostic::user(format!("unknown format `{other}`"));
            return Err(d.note("expected `gmm`, `ba`, `lstm` or `hand`"));
        }
    };
    numbers.end()?;
    for (name, value, ty) in &arrays {
        Output::for_value(&to.join(format!("{name}.npy")), *ty)?.value(value, *ty)?;
    }
    Ok(arrays.into_iter().map(|(name, ..)| name).collect())
}

fn read(file: &Path) -> Result<String> {
    std::fs::read_to_string(file).map_err(|e| Diagnostic::user(format!("{}: {e}", file.display())))
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [format, file, to] = words.as_slice() else {
        eprintln!("expected FORMAT FILE DIRECTORY");
        return ExitCode::FAILURE;
    };
    let file = Path::new(file);
    let folder = file.parent().unwrap_or(Path::new("."));
    match read(file).and_then(|text| convert(format, &text, folder, Path::new(to))) {
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
