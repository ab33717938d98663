//! One random program through the optimizer: what it means before and after, what it costs, and whether
//! its derivation replays.

use super::generate::{self, Knobs};
use super::{agree, arguments, knossos, read};
use daedal::cost::Model;
use daedal::derive::record;
use daedal::diag::Source;
use daedal::eval::{Interpreter, Value};
use daedal::ir::{Def, Program, print};
use daedal::pipeline::{Engine, Options, Outcome, optimize_with, replay};
use daedal::rewrite::egraph::pattern::Compiled;
use daedal::rules::{Level, Library};
use daedal::search::Algorithm as Agent;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// All engines.
pub const ENGINES: [Engine; 8] = [
    Engine::Egraph,
    Engine::Agent(Agent::Greedy),
    Engine::Agent(Agent::Astar),
    Engine::Agent(Agent::Mcts),
    Engine::Auto,
    Engine::Agent(Agent::Beam),
    Engine::Agent(Agent::Mb2fbs),
    Engine::Agent(Agent::Random),
];

fn finite(v: &Value) -> bool {
    match v {
        Value::Scalar(l) => l.as_f64().is_none_or(f64::is_finite),
        Value::Tuple(parts) => parts.iter().all(finite),
        Value::Tensor(t) => t.iter().all(|v| finite(&v)),
    }
}

/// Compares the original with the optimized program on one call. A failure may vanish, never appear.
///
/// # Errors
/// What differs.
pub fn compare(before: &Program, after: &Program, name: &str, args: &[Value], float: Level) -> Result<(), String> {
    let (one, two) = (Interpreter::new(before), Interpreter::new(after));
    let def =
        |p: &Program| p.defs.values().find(|d| d.name() == name && d.params.len() == args.len()).cloned().unwrap();
    let find = |p: &Program, like: &Def| p.defs.values().find(|d| d.fun == like.fun).cloned().unwrap();
    let def = before
        .named(name)
        .into_iter()
        .find(|d| d.params.len() == args.len() && one.run(d, args).is_ok())
        .cloned()
        .unwrap_or_else(|| def(before));
    let Ok(want) = one.run(&def, args) else { return Ok(()) };
    let have = two.run(&find(after, &def), args).map_err(|d| format!("`{name}` fails after optimization: {d}"))?;
    let good = match float {
        Level::Exact => agree(&want, &have, 0.0),
        // Where the reals have no value, no rule promises one.
        Level::Real => {
            !finite(&want) || agree(&want, &have, 1e-9) || near(&want, &have, one.magnitude().max(two.magnitude()))
        }
    };
    if good { Ok(()) } else { Err(format!("`{name}`: expected {}, found {}", want.to_json(), have.to_json())) }
}

/// Equal up to rounding at the scale of the numbers on the way.
/// Whether the numbers of two values are near each other, beside a scale.
pub fn near(a: &Value, b: &Value, scale: f64) -> bool {
    match (a, b) {
        (Value::Scalar(x), Value::Scalar(y)) => match (x.as_f64(), y.as_f64()) {
            (Some(p), Some(q)) => (p - q).abs() <= 1e-9 * scale.max(1.0),
            _ => x == y,
        },
        (Value::Tuple(x), Value::Tuple(y)) => x.iter().zip(y.iter()).all(|(p, q)| near(p, q, scale)),
        (Value::Tensor(x), Value::Tensor(y)) => {
            x.dims == y.dims && x.iter().zip(y.iter()).all(|(p, q)| near(&p, &q, scale))
        }
        _ => false,
    }
}

/// The text of a program without calls of the library, which the other code does not know.
fn in_loops(program: &Program) -> String {
    let mut program = program.clone();
    program.terms.spell_out();
    print::program(&program)
}

/// Whether no definition costs more than before, by the published model, recomputed from the text.
///
/// # Errors
/// One that does, or one whose cost is not what the optimizer says.
pub fn recosted(before: &Program, after: &Program, rows: &[daedal::pipeline::Row]) -> Result<(), String> {
    let (old, new) = (knossos::costs(&in_loops(before)), knossos::costs(&in_loops(after)));
    if old.len() != new.len() || new.len() != rows.len() {
        return Err(format!("{} definitions, then {}, and {} rows", old.len(), new.len(), rows.len()));
    }
    for (((name, a), (_, b)), row) in old.iter().zip(&new).zip(rows) {
        if *b > a + 1e-6 {
            return Err(format!("`{name}` costs {a} before and {b} after"));
        }
        for (mine, theirs) in [(a, row.cost_before), (b, row.cost_after)] {
            if (mine - theirs).abs() > 1e-6 * theirs.abs().max(1.0) {
                return Err(format!("`{name}` costs {mine}, not {theirs}"));
            }
        }
    }
    Ok(())
}

/// How random programs are optimized and checked.
pub struct Trial<'a> {
    /// All rules, which a derivation names.
    pub library: &'a Library,
    /// Those of the level.
    pub rules: &'a [Compiled<'a>],
    /// The level.
    pub float: Level,
    /// What programs look like.
    pub knobs: Knobs,
    /// Which engines take turns.
    pub engines: &'a [Engine],
    /// Whether results are derived, and the derivations replayed.
    pub derive: bool,
}

/// What became of a program.
#[derive(Clone, Copy, Default)]
pub struct Checked {
    /// A definition got cheaper.
    pub cheaper: bool,
    /// Steps of all derivations.
    pub steps: usize,
    /// Definitions of which a cheaper result was not used because no proof was found.
    pub given_up: usize,
}

impl Trial<'_> {
    /// Optimizes the random program of a seed and checks meaning, under the published model cost, and
    /// derivations where they are asked for.
    ///
    /// # Errors
    /// What is wrong, with the program.
    pub fn check(&self, seed: u64) -> Result<Checked, String> {
        let (float, made) = (self.float, generate::program(seed, &self.knobs));
        let before = read("random.ks", &made.text).map_err(|d| d.to_string())?;
        let cost = if seed.is_multiple_of(2) { Model::Knossos } else { Model::Analytic };
        let engine = self.engines[(seed / 2) as usize % self.engines.len()];
        let base = Options { max_nodes: 600, budget: 150, depth: 12, threads: 1, seed, ..Options::standard() };
        let options = Options { cost, float, engine, derive: self.derive, ..base };
        let of = |e: &str| format!("seed {seed} ({cost:?}, {float}, {}): {e}\n{}", engine.name(), made.text);
        let after = catch_unwind(AssertUnwindSafe(|| optimize_with(&before, self.rules, &options)))
            .map_err(|_| of("the optimizer panics"))?
            .map_err(|d| of(&d.to_string()))?;
        let main = before.named("main")[0].clone();
        let args = arguments(&main, &made.args).map_err(|e| of(&e))?;
        let told = |e: String| of(&format!("{e}\n{}\nargs {:?}", print::program(&after.program), made.args));
        compare(&before, &after.program, "main", &args, float).map_err(told)?;
        if cost == Model::Knossos {
            recosted(&before, &after.program, &after.rows).map_err(told)?;
        }
        let steps = if self.derive { replayed(&before, &after, self.library, &options).map_err(told)? } else { 0 };
        let cheaper = after.rows.iter().any(|r| r.cost_after < r.cost_before);
        Ok(Checked { cheaper, steps, given_up: after.rows.iter().filter(|r| r.unproved.is_some()).count() })
    }
}

/// Writes the derivations of an outcome, reads them and replays them, costs included; the number of steps.
///
/// # Errors
/// A step or a cost that is refused, or a result that no derivation leads to.
pub fn replayed(
    program: &Program,
    outcome: &Outcome,
    library: &Library,
    options: &Options<'_>,
) -> Result<usize, String> {
    let text = replay::record(program, outcome, library, options);
    let of = |d: String| format!("{d}\n{text}");
    let record = record::read(&Source::new("steps.jsonl", text.clone())).map_err(|d| of(d.to_string()))?;
    let verdicts =
        replay::replayed(program, &record, library, "steps.jsonl", |_| true).map_err(|d| of(d.to_string()))?;
    if verdicts.len() != outcome.rows.len() {
        return Err(of(format!("{} of {} definitions are derived", verdicts.len(), outcome.rows.len())));
    }
    Ok(verdicts.iter().map(|v| v.steps).sum())
}
