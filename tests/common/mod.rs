//! The harness of all tests: corpus files become expectations, and values are compared with them.
//!
//! It must not know what a mode does: a mode is a function from a program and a call to an outcome.
#![allow(dead_code, reason = "every test crate uses its own part")]

pub mod calls;
pub mod command;
pub mod dice;
pub mod egraphs;
pub mod generate;
pub mod imports;
pub mod knossos;
pub mod losses;
pub mod native;
pub mod planted;
pub mod points;
pub mod random;
pub mod scheduled;
pub mod schedules;
pub mod sharing;
pub mod sized;
pub mod steps;
pub mod sums;

use daedal::ad;
use daedal::diag::{Result, Source};
use daedal::eval::{Interpreter, Value};
use daedal::ir::{Def, Program, Ty};
use daedal::types;
use serde_json::Value as Json;
use std::path::{Path, PathBuf};

/// Floats agree within this, relative to the greater.
pub const TOLERANCE: f64 = 1e-9;

/// A corpus file and what its header expects.
pub struct Case {
    /// Path from the root of the repository.
    pub name: String,
    /// The program.
    pub program: Program,
    /// `;; run` lines.
    pub runs: Vec<Run>,
    /// `;; cost` lines.
    pub costs: Vec<Bound>,
    /// `;; builds` lines.
    pub builds: Vec<Bound>,
}

/// `;; run NAME ARG… => VALUE` or `=> error TEXT`.
pub struct Run {
    /// Line of the file.
    pub line: usize,
    /// What is called.
    pub def: String,
    /// JSON words.
    pub args: Vec<String>,
    /// What it gives.
    pub want: Want,
}

/// The outcome of a run.
#[derive(Clone, Debug)]
pub enum Want {
    /// A value.
    Value(Json),
    /// A failure whose message holds a text.
    Error(String),
}

/// `;; cost MODEL NAME <= N`, or `;; builds NAME <= N` with an empty model.
pub struct Bound {
    /// Line of the file.
    pub line: usize,
    /// The cost model.
    pub model: String,
    /// The definition.
    pub def: String,
    /// The greatest value allowed.
    pub most: f64,
}

/// A path below the root of the repository.
pub fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// All files below a directory with an ending, sorted.
pub fn files(below: &Path, ending: &str) -> Vec<PathBuf> {
    let mut out = vec![];
    let mut todo = vec![below.to_path_buf()];
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())) {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|e| e == ending) {
                out.push(path);
            }
        }
    }
    out.sort();
    out
}

/// Reads and checks a text, and makes the derivatives that it asks for.
pub fn read(name: &str, text: &str) -> Result<Program> {
    ad::complete(&types::program(&Source::new(name, text))?)
}

/// The whole corpus.
///
/// # Panics
/// If a file does not check or has a header that cannot be read: it would assert nothing.
pub fn corpus() -> Vec<Case> {
    let apart = WORKLOADS.map(root);
    let each = files(&root("programs"), "ks");
    each.iter().filter(|path| !apart.iter().any(|dir| path.starts_with(dir))).map(|path| case(path)).collect()
}

/// Pictures and tensors: programs of many loops in 32 bits, which are scheduled rather than differentiated.
///
/// # Panics
/// As [`corpus`].
pub fn workloads() -> Vec<Case> {
    WORKLOADS.iter().flat_map(|dir| files(&root(dir), "ks")).map(|path| case(&path)).collect()
}

/// The corpus and the workloads.
///
/// # Panics
/// As [`corpus`].
pub fn everything() -> Vec<Case> {
    corpus().into_iter().chain(workloads()).collect()
}

const WORKLOADS: [&str; 2] = ["programs/imaging", "programs/tensor"];

fn case(path: &Path) -> Case {
    let name = path.strip_prefix(root("")).unwrap_or(path).display().to_string();
    let text = std::fs::read_to_string(path).unwrap();
    let program = read(&name, &text).unwrap_or_else(|d| panic!("{d}"));
    let mut case = Case { name, program, runs: vec![], costs: vec![], builds: vec![] };
    for (k, line) in text.lines().enumerate() {
        if let Some(words) = line.strip_prefix(";;") {
            directive(&mut case, k + 1, words.trim()).unwrap_or_else(|what| panic!("{}:{}: {what}", case.name, k + 1));
        }
    }
    assert!(!case.runs.is_empty(), "{}: the file expects nothing", case.name);
    case
}

fn directive(case: &mut Case, line: usize, words: &str) -> std::result::Result<(), String> {
    let (kind, rest) = words.split_once(' ').ok_or("an empty directive")?;
    let bound = |rest: &str| -> Option<(String, f64)> {
        let (name, most) = rest.split_once(" <= ")?;
        Some((name.trim().to_string(), most.trim().parse().ok()?))
    };
    match kind {
        "run" => case.runs.push(run(line, rest)?),
        "cost" => {
            let (def, most) = bound(rest).ok_or("expected `cost MODEL NAME <= NUMBER`")?;
            let (model, def) = def.split_once(' ').ok_or("expected `cost MODEL NAME <= NUMBER`")?;
            case.costs.push(Bound { line, model: model.into(), def: known(case, def)?, most });
        }
        "builds" => {
            let (def, most) = bound(rest).ok_or("expected `builds NAME <= NUMBER`")?;
            case.builds.push(Bound { line, model: String::new(), def: known(case, &def)?, most });
        }
        other => return Err(format!("unknown directive `{other}`")),
    }
    Ok(())
}

fn known(case: &Case, def: &str) -> std::result::Result<String, String> {
    match case.program.named(def).len() {
        1 => Ok(def.to_string()),
        n => Err(format!("`{def}` has {n} definitions")),
    }
}

fn run(line: usize, rest: &str) -> std::result::Result<Run, String> {
    let (call, want) = rest.split_once(" => ").ok_or("expected `run NAME ARG… => VALUE`")?;
    let mut words = call.split_whitespace().map(str::to_string);
    let def = words.next().ok_or("expected a name")?;
    let want = match want.trim().strip_prefix("error ") {
        Some(text) => Want::Error(text.trim().to_string()),
        None => Want::Value(serde_json::from_str(want).map_err(|e| format!("the value is no JSON: {e}"))?),
    };
    Ok(Run { line, def, args: words.collect(), want })
}

/// The values of JSON words at the parameter types of a definition.
pub fn arguments(def: &Def, words: &[String]) -> std::result::Result<Vec<Value>, String> {
    if words.len() != def.params.len() {
        return Err(format!("`{}` takes {} arguments, found {}", def.name(), def.params.len(), words.len()));
    }
    let each = def.params.iter().zip(words);
    each.map(|(p, w)| {
        let json = serde_json::from_str(w).map_err(|e| format!("`{w}` is no JSON: {e}"))?;
        Value::from_json(&json, p.ty).map_err(|d| d.to_string())
    })
    .collect()
}

/// A mode of running: a name for messages, and a function that prepares a program once and gives
/// back what runs each of its calls.
pub struct Mode {
    /// Its name.
    pub name: &'static str,
    /// Prepares a program.
    pub prepare: for<'a> fn(&'a Program) -> Result<Runner<'a>>,
}

/// Runs calls of one program.
pub type Runner<'a> = Box<dyn Fn(&Def, &[Value]) -> Result<Value> + 'a>;

/// The reference interpreter.
pub fn interpreted(program: &Program) -> Result<Runner<'_>> {
    let interpreter = Interpreter::new(program);
    Ok(Box::new(move |def, args| interpreter.run(def, args)))
}

/// Runs every `run` line of the corpus in a mode: the number of lines, and what failed.
pub fn check_all(cases: &[Case], mode: &Mode) -> (usize, Vec<String>) {
    let (mut lines, mut failed) = (0, vec![]);
    for case in cases {
        let runner = match (mode.prepare)(&case.program) {
            Ok(runner) => runner,
            Err(d) => {
                failed.push(format!("{} ({}): {d}", case.name, mode.name));
                continue;
            }
        };
        for run in &case.runs {
            lines += 1;
            if let Err(what) = check(&case.program, run, &runner) {
                failed.push(format!("{}:{} ({}): {what}", case.name, run.line, mode.name));
            }
        }
    }
    (lines, failed)
}

/// Runs one line.
pub fn check(program: &Program, run: &Run, runner: &Runner<'_>) -> std::result::Result<(), String> {
    let defs = program.named(&run.def);
    let fits: Vec<(&Def, Vec<Value>)> = defs.iter().filter_map(|d| Some((*d, arguments(d, &run.args).ok()?))).collect();
    let [(def, args)] = fits.as_slice() else {
        let why = defs.first().and_then(|d| arguments(d, &run.args).err()).unwrap_or_default();
        return Err(format!("{} definitions of `{}` take these arguments: {why}", fits.len(), run.def));
    };
    match (runner(def, args), &run.want) {
        (Ok(found), Want::Value(want)) => {
            let want = Value::from_json(want, def.fun.sig().ret).map_err(|d| format!("the expectation: {d}"))?;
            match agree(&found, &want, TOLERANCE) {
                true => Ok(()),
                false => Err(format!("expected {}, found {}", want.to_json(), found.to_json())),
            }
        }
        (Err(d), Want::Error(text)) if d.message.contains(text.as_str()) => Ok(()),
        (Err(d), Want::Error(text)) => Err(format!("expected an error with `{text}`, found: {}", d.message)),
        (Ok(found), Want::Error(text)) => Err(format!("expected an error with `{text}`, found {}", found.to_json())),
        (Err(d), Want::Value(want)) => Err(format!("expected {want}, found an error: {d}")),
    }
}

/// Whether two values of one type agree: floats within a relative tolerance, NaN with NaN, shapes
/// and all else exactly.
pub fn agree(a: &Value, b: &Value, tolerance: f64) -> bool {
    agree_from(a, b, tolerance, f64::MIN_POSITIVE)
}

/// As [`agree`], but floats below `least` are compared as if they were that large: where terms cancel, what
/// is left is their rounding.
pub fn agree_from(a: &Value, b: &Value, tolerance: f64, least: f64) -> bool {
    match (a, b) {
        (Value::Scalar(a), Value::Scalar(b)) => match (a.as_f64(), b.as_f64()) {
            (Some(x), Some(y)) => {
                x == y || x.is_nan() && y.is_nan() || (x - y).abs() <= tolerance * x.abs().max(y.abs()).max(least)
            }
            _ => a == b,
        },
        (Value::Tuple(a), Value::Tuple(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(x, y)| agree_from(x, y, tolerance, least))
        }
        (Value::Tensor(a), Value::Tensor(b)) => {
            a.dims == b.dims && a.iter().zip(b.iter()).all(|(x, y)| agree_from(&x, &y, tolerance, least))
        }
        _ => false,
    }
}

/// Text in so many levels around `inner`, each by a literal, an eighth more than that around it, and what is within.
pub fn nested(depth: u32, inner: &str, level: impl Fn(&str, &str) -> String) -> String {
    (1..=depth).rev().fold(inner.to_string(), |rest, k| level(&format!("{:?}", f64::from(k) / 8.0), &rest))
}

/// The value of a type from a JSON text.
pub fn value(json: &str, ty: Ty) -> Value {
    Value::from_json(&serde_json::from_str(json).unwrap(), ty).unwrap_or_else(|d| panic!("{d}"))
}
