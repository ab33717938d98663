//! No baseline is measured that is wrong: differences, the interpreter, and 64 bits against 32.

use crate::baseline::Call;
use crate::data::{Array, Stream};
use crate::workloads::{Case, Meaning, Objective};
use daedal::diag::Source;
use daedal::eval::{Interpreter, Value};
use daedal::ir::{Def, Program, Ty};
use daedal::types;
use libloading::Library;
use serde_json::Value as Json;
use std::path::Path;
use std::sync::Arc;

/// A step for central differences: the square of it is far below the tolerance, rounding over it too.
const STEP: f64 = 1e-6;

/// Arrays for what the primal, or primal and gradient, write.
pub fn outputs(case: &Case, with_gradient: bool) -> Vec<Array> {
    let more = if with_gradient { &case.derivatives[..] } else { &[] };
    case.outputs.iter().chain(more).map(|d| Array::zeros(d)).collect()
}

/// The derivatives of the primal's outputs where input `by` moves along a direction, and how large their
/// terms are.
fn directional(meaning: Meaning, case: &Case, made: &[Vec<f64>], by: usize, direction: &[f64]) -> (Vec<f64>, f64) {
    let made = &made[case.outputs.len()..];
    let all = match meaning {
        Meaning::Gradient(inputs) => {
            let at = inputs.iter().position(|w| *w == by).unwrap();
            let terms = || made[at].iter().zip(direction).map(|(g, d)| g * d);
            return (vec![terms().sum()], terms().map(f64::abs).sum());
        }
        Meaning::Observations => observations(case, made, by, direction),
        Meaning::Angles => {
            let rows = made[0].len() / direction.len();
            (0..rows).map(|i| direction.iter().enumerate().map(|(j, d)| d * made[0][j * rows + i]).sum()).collect()
        }
    };
    let scale = all.iter().fold(1.0f64, |m, x| m.max(x.abs()));
    (all, scale)
}

fn observations(case: &Case, made: &[Vec<f64>], by: usize, direction: &[f64]) -> Vec<f64> {
    let p = case.outputs[1][0];
    // Where the input stands in a row, how wide it is, and which of its rows an observation sees.
    let (from, width) = [(0, 11), (11, 3), (14, 1)][by];
    let seen = |i: usize| if by == 2 { i } else { case.inputs[4 + by].index(i) };
    let row = |r: usize| (0..width).map(|k| made[0][15 * r + from + k] * direction[seen(r / 2) * width + k]).sum();
    let errors = (0..2 * p).map(row);
    errors.chain((0..p).map(|i| if by == 2 { made[1][i] * direction[i] } else { 0.0 })).collect()
}

/// The inputs that derivatives are taken by.
pub fn inputs_of(meaning: Meaning) -> &'static [usize] {
    match meaning {
        Meaning::Gradient(by) => by,
        Meaning::Observations => &[0, 1, 2],
        Meaning::Angles => &[0],
    }
}

/// Compares derivatives with central differences along a random direction for each input.
///
/// `kinks`: how far differences may be off where a direction passes maxima that change place.
pub fn differences(library: &Arc<Library>, entry: &str, meaning: Meaning, case: &Case, kinks: f64) {
    let call = |kind: &str| {
        let name = format!("{entry}_{kind}");
        Call::new(library, &name, &case.sizes, &case.inputs, &outputs(case, kind == "gradient"))
    };
    let (mut primal, mut gradient) = (call("primal"), call("gradient"));
    primal.run();
    gradient.run();
    let made = gradient.outputs();
    let value: Vec<f64> = primal.outputs().concat();
    agree(&format!("{entry}: value beside the gradient"), &made[..case.outputs.len()].concat(), &value, 1e-11);
    for by in inputs_of(meaning) {
        let input = &case.inputs[*by];
        let direction = Stream(100 + *by as u64).floats(&input.dims, -1.0, 1.0).to_floats();
        let (want, scale) = directional(meaning, case, &made, *by, &direction);
        let mut at = |step: f64| {
            primal.set(*by, input.moved(&direction, step));
            primal.run();
            primal.outputs().concat()
        };
        let (above, below) = (at(STEP), at(-STEP));
        primal.set(*by, input.clone());
        assert_eq!(want.len(), above.len(), "{entry}: the derivatives are of other values");
        let largest = value.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        let allowed = (1e-6 + kinks) * scale + 100.0 * f64::EPSILON * largest / STEP;
        for (i, want) in want.iter().enumerate() {
            let found = (above[i] - below[i]) / (2.0 * STEP);
            let off = (found - want).abs();
            assert!(off <= allowed, "{entry}, input {by}, value {i}: differences say {found}, the gradient {want}");
        }
    }
}

/// Compares 32-bit outputs with the same in 64 bits, array by array.
pub fn precision(library: &Arc<Library>, entry: &str, precise: &str, case: &Case) {
    let made = |entry: &str, single: bool| {
        let as_needed = |a: Array| if single { a.single() } else { a };
        let inputs: Vec<Array> = case.inputs.iter().cloned().map(as_needed).collect();
        let outputs: Vec<Array> = outputs(case, true).into_iter().map(as_needed).collect();
        let mut call = Call::new(library, &format!("{entry}_gradient"), &case.sizes, &inputs, &outputs);
        call.run();
        call.outputs()
    };
    for (single, double) in made(entry, true).iter().zip(made(precise, false)) {
        agree(&format!("{entry} beside {precise}"), single, &double, 1e-3);
    }
}

/// Panics unless two lists of numbers agree, relative to the greatest of them.
fn agree(what: &str, have: &[f64], want: &[f64], tolerance: f64) {
    assert_eq!(have.len(), want.len(), "{what}: other sizes");
    let scale = want.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    for (a, b) in have.iter().zip(want) {
        assert!((a - b).abs() <= tolerance * scale, "{what}: {a} is not {b}");
    }
}

/// The program of an objective.
pub fn program(root: &Path, objective: &Objective) -> Program {
    let read = |f: &&str| std::fs::read_to_string(root.join(f)).unwrap_or_else(|e| panic!("{f}: {e}"));
    let text: Vec<String> = objective.files.iter().map(read).collect();
    types::program(&Source::new(objective.files.join("+"), text.join("\n"))).unwrap_or_else(|d| panic!("{d}"))
}

/// The definition of an objective.
pub fn definition<'a>(program: &'a Program, objective: &Objective) -> &'a Def {
    program.named(objective.def)[0]
}

/// The arguments of a case as the program takes them.
pub fn arguments(def: &Def, case: &Case) -> Vec<Value> {
    let arrays = case.inputs.iter().chain(&case.extra);
    let value = |(a, p): (&Array, &daedal::ir::Param)| Value::from_json(&a.to_json(), p.ty);
    arrays.zip(&def.params).map(|pair| value(pair).unwrap_or_else(|d| panic!("{d}"))).collect()
}

/// Compares a baseline's value with that of the interpreter.
pub fn meaning(library: &Arc<Library>, entry: &str, case: &Case, program: &Program, def: &Def) {
    let value = Interpreter::new(program).run(def, &arguments(def, case)).unwrap_or_else(|d| panic!("{d}"));
    let mut want = vec![];
    flat(&value.to_json(), &mut want);
    let mut primal = Call::new(library, &format!("{entry}_primal"), &case.sizes, &case.inputs, &outputs(case, false));
    primal.run();
    agree(&format!("{entry} beside the interpreter"), &primal.outputs().concat(), &want, 1e-10);
}

/// Compares a value with its gradient with what a baseline writes, within a part of the greatest number.
pub fn gradient(library: &Arc<Library>, entry: &str, case: &Case, made: &Value, tolerance: f64) {
    let mut have = vec![];
    flat(&made.to_json(), &mut have);
    let mut call = Call::new(library, &format!("{entry}_gradient"), &case.sizes, &case.inputs, &outputs(case, true));
    call.run();
    agree(&format!("the gradient beside {entry}"), &have, &call.outputs().concat(), tolerance);
}

/// The adjoint of a loss: 1.
pub fn one(ty: Ty) -> Value {
    Value::from_json(&serde_json::json!(1.0), ty).unwrap_or_else(|d| panic!("{d}"))
}

fn flat(json: &Json, out: &mut Vec<f64>) {
    match json {
        Json::Array(each) => each.iter().for_each(|j| flat(j, out)),
        other => out.push(other.as_f64().unwrap()),
    }
}
