//! `daedal train cost` from end to end: pipelines are measured once, what is learned is a file that searches take, and what is no
//! such file is refused.

use crate::common;
use crate::common::command::{daedal, good, refused};
use daedal::machine::Machine;
use daedal::pipeline::lessons::Lesson;
use daedal::pipeline::samples::{Case, schedules};
use daedal::tune::Model;
use daedal::tune::random::{Pipeline, VERSION};
use daedal::tune::record::Outcome;
use rayon::prelude::*;
use serde_json::Value as Json;
use std::path::Path;

/// Schedules of a pipeline with made-up times: vectors cost far more than is stated.
fn lessons(seed: u64, machine: &Machine) -> Vec<String> {
    let case = Case::of(&Pipeline::new(seed)).unwrap();
    let (tree, standard) = case.space(machine).unwrap();
    let graph = case.graph().unwrap();
    let one = |steps: String| {
        let source = daedal::diag::Source::new("s", &steps);
        let made = daedal::schedule::text::apply_for(graph.clone(), tree.incoming(), &source).ok()?;
        let mut work = tree.work(&made)?;
        work.0[0] *= 3.0;
        let seconds = Model::default().seconds(&work.0);
        let outcome = Outcome::Seconds { min: seconds, median: seconds };
        let lesson = Lesson { version: VERSION, seed, machine: format!("{machine:?}"), steps, outcome };
        Some(serde_json::to_string(&lesson).unwrap() + "\n")
    };
    schedules(&tree, &standard, seed).into_iter().filter_map(one).collect()
}

fn lines(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap().lines().map(str::to_string).collect()
}

/// Protects: a pipeline is measured, and not measured again; a record that cannot be read is told of and kept; what is learned
/// is graded on pipelines that were held out, written, and judges searches; too few pipelines, no weights, weights that are
/// none, of another version or cut short are refused with a reason.
#[test]
fn models_of_costs_are_trained_and_used() {
    let dir = tempfile::tempdir().unwrap();
    let (d, path) = (dir.path(), dir.path().join("r.jsonl"));
    let object = |text: &str| -> Json { serde_json::from_str(text.trim()).unwrap() };
    let words = ["train", "cost", "--records", "r.jsonl", "--threads", "2", "--json"];
    let with = |more: &[&'static str]| -> Vec<&str> { words.iter().copied().chain(more.iter().copied()).collect() };
    let first = object(&good(d, &with(&["--pipelines", "1", "--seed", "3"])));
    let measured = lines(&path);
    assert!(first["schedules"].as_u64().unwrap() >= 2 && first["failed"] == 0, "{first}");
    assert!(measured.iter().all(|l| serde_json::from_str::<Lesson>(l).unwrap().seed == 3), "{measured:?}");
    assert_eq!(object(&good(d, &with(&["--pipelines", "1", "--seed", "3"]))), first);
    assert_eq!(lines(&path), measured, "what stands there is measured again");
    let few = refused(d, &with(&["--pipelines", "0", "-o", "w.safetensors"]));
    assert!(few.contains("too few to learn from") && !d.join("w.safetensors").exists(), "{few}");

    let machine = Machine { threads: 2, ..Machine::host() };
    let more: Vec<String> = (20..32).into_par_iter().flat_map_iter(|seed| lessons(seed, &machine)).collect();
    std::fs::write(&path, measured.join("\n") + "\nno record\n" + &more.concat()).unwrap();
    let before = lines(&path);
    let said = daedal(d, &with(&["--pipelines", "0", "--epochs", "4", "-o", "w.safetensors"]));
    let (out, notes) = (String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
    assert!(said.status.success() && notes.contains("1 lines of r.jsonl"), "{notes}");
    assert_eq!(lines(&path), before);
    let learned = object(&out);
    let graded: Vec<&str> =
        learned["held_out"].as_array().unwrap().iter().map(|m| m["model"].as_str().unwrap()).collect();
    assert_eq!(
        (learned["pipelines"].as_u64(), graded),
        (Some(13), vec!["linear", "linear, fitted", "mlp"]),
        "{learned}"
    );
    assert!(learned["held_out"][2]["pairs"].as_f64().unwrap() > 0.5, "{learned}");

    std::fs::write(
        d.join("f.ks"),
        "(def f (Vec Float) (x : (Vec Float) n) (build n (lam (i : Integer) (mul 2.0 (index i x)))))",
    )
    .unwrap();
    let search = ["schedule", "f.ks", "f", "--size", "n=500", "--mode", "one-shot", "--model", "mlp"];
    let by = |more: &[&'static str]| -> Vec<&str> { search.iter().copied().chain(more.iter().copied()).collect() };
    assert!(good(d, &by(&["--weights", "w.safetensors"])).contains("schedules judged"));
    assert!(refused(d, &by(&[])).contains("needs the weights of a network"));
    assert!(refused(d, &by(&["--weights", "none.safetensors"])).contains("none.safetensors"));
    let bytes = std::fs::read(d.join("w.safetensors")).unwrap();
    std::fs::write(d.join("cut.safetensors"), &bytes[..bytes.len() / 2]).unwrap();
    assert!(refused(d, &by(&["--weights", "cut.safetensors"])).contains("no file of weights"));
    let value = common::root("src/rewrite/agent/value/shipped.safetensors");
    std::fs::copy(value, d.join("value.safetensors")).unwrap();
    assert!(refused(d, &by(&["--weights", "value.safetensors"])).contains("holds no model of costs"));
}

/// Protects: where there is nothing to schedule a search says what it finds, or why it cannot search, and never panics.
#[test]
fn little_to_schedule_is_no_failure() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    let text = "(def scalar Float (x : Float) (mul x 2.0))\n(def same (Vec Float) (x : (Vec Float) n) x)\n\
                (def empty (Vec Float) (x : (Vec Float) n) (build 0 (lam (i : Integer) 1.0)))\n";
    std::fs::write(d.join("f.ks"), text).unwrap();
    for def in ["scalar", "same", "empty"] {
        for mode in ["one-shot", "top-k"] {
            let said = daedal(d, &["schedule", "f.ks", def, "--mode", mode, "--measurements", "2"]);
            let notes = String::from_utf8_lossy(&said.stderr).into_owned();
            assert!(matches!(said.status.code(), Some(0 | 1)) && !notes.contains("panicked"), "{def} {mode}: {notes}");
            assert!(said.status.success() || notes.contains("error: "), "{def} {mode}: {notes}");
        }
    }
}
