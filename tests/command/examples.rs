//! The example programs do what they say, on the files that stand beside them.

#[path = "../../examples/adbench.rs"]
#[allow(dead_code, reason = "the example's own entry")]
mod adbench;
use crate::common::{Case, Want, agree, corpus, root};
use daedal::data;
use daedal::diag::Source;
use daedal::eval::{Interpreter, Value};
use daedal::ir::Ty;
use daedal::types;
use std::path::Path;

/// Converts a sample; gives the names of its arrays.
fn converted(format: &str, to: &Path) -> Vec<&'static str> {
    let text = std::fs::read_to_string(root(&format!("examples/data/{format}.txt"))).unwrap();
    adbench::convert(format, &text, &root("examples/data"), to).unwrap_or_else(|d| panic!("{d}"))
}

/// Runs a function of the corpus on arrays of a directory.
fn on_files(case: &Case, def: &str, names: &[&str], dir: &Path) -> Value {
    let def = case.program.named(def)[0];
    let words = names.iter().map(|n| format!("@{}", dir.join(format!("{n}.npy")).display()));
    let args: Vec<Value> = def.params.iter().zip(words).map(|(p, w)| data::argument(&w, p.ty).unwrap()).collect();
    Interpreter::new(&case.program).run(def, &args).unwrap_or_else(|d| panic!("{d}"))
}

fn case<'a>(cases: &'a [Case], name: &str) -> &'a Case {
    cases.iter().find(|c| c.name == name).unwrap()
}

/// What the first `run` line of a function expects.
fn expected(case: &Case, def: &str) -> Value {
    let run = case.runs.iter().find(|r| r.def == def).unwrap();
    match &run.want {
        Want::Value(json) => Value::from_json(json, case.program.named(def)[0].fun.sig().ret).unwrap(),
        Want::Error(text) => panic!("{def} fails with {text}"),
    }
}

/// Protects: the samples hold the numbers of the corpus, so the converter puts each where it belongs.
#[test]
fn samples_of_adbench_give_the_values_of_the_corpus() {
    let (dir, cases) = (tempfile::tempdir().unwrap(), corpus());
    let gmm = case(&cases, "programs/grad/gmm.ks");
    assert_eq!(converted("gmm", dir.path()), ["alphas", "means", "qs", "ls", "x", "gamma", "m"]);
    let found = on_files(gmm, "gradient", &["x", "alphas", "means", "qs", "ls", "gamma", "m"], dir.path());
    assert!(agree(&found, &expected(gmm, "gradient"), 1e-9), "{}", found.to_json());
    let ba = case(&cases, "programs/grad/ba.ks");
    let names = ["cameras", "points", "weights", "features", "camera_of", "point_of"];
    assert_eq!(converted("ba", dir.path()), names);
    let Value::Tensor(blocks) = on_files(ba, "jacobian", &names, dir.path()) else { panic!("no tensor") };
    assert_eq!(blocks.dims[..], [3]);
    for block in blocks.iter() {
        assert!(agree(&block, &expected(ba, "block"), 1e-9), "{}", block.to_json());
    }
}

/// Protects: the arrays of a recurrent network, by size and place.
#[test]
fn the_sample_of_a_network_has_its_sizes() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(converted("lstm", dir.path()), ["main", "extra", "state", "sequence"]);
    let read = |name: &str| {
        let word = format!("@{}", dir.path().join(format!("{name}.npy")).display());
        data::argument(&word, Ty::tensor(2, Ty::float())).unwrap().to_json().to_string()
    };
    assert_eq!(read("main"), "[[0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8],[-0.1,-0.2,-0.3,-0.4,-0.5,-0.6,-0.7,-0.8]]");
    assert_eq!(read("extra"), "[[0.5,0.25],[-0.5,0.75],[0.1,0.0]]");
    assert_eq!(read("state"), "[[0.0,0.1],[0.2,0.3]]");
    assert_eq!(read("sequence"), "[[0.0,1.0],[1.0,0.0],[1.0,1.0]]");
}

/// Protects: a hand comes from its model, with frames by rows; at rest its points are where its vertices are.
#[test]
fn the_sample_of_a_hand_is_at_rest() {
    let dir = tempfile::tempdir().unwrap();
    let names = [
        "theta",
        "parents",
        "relatives",
        "inverses",
        "positions",
        "weights",
        "correspondences",
        "measured",
        "mirrored",
    ];
    assert_eq!(converted("hand", dir.path()), names);
    let text = std::fs::read_to_string(root("benches/gradients/hand.ks")).unwrap();
    let program = types::program(&Source::new("hand.ks", text)).unwrap_or_else(|d| panic!("{d}"));
    let def = program.named("hand_errors")[0];
    let words = names.map(|n| format!("@{}", dir.path().join(format!("{n}.npy")).display()));
    let args: Vec<Value> = def.params.iter().zip(&words).map(|(p, w)| data::argument(w, p.ty).unwrap()).collect();
    let found = Interpreter::new(&program).run(def, &args).unwrap_or_else(|d| panic!("{d}"));
    assert_eq!(found.to_json().to_string(), "[[0.0,0.5,1.5],[-1.0,-0.25,2.0],[-0.5,0.0,0.5]]");
}

/// Protects: the other form of a hand has two more numbers a point, before the angles.
#[test]
fn the_other_form_of_a_hand_is_read_too() {
    let dir = tempfile::tempdir().unwrap();
    let text = "1 2 0 1.0 2.0 3.0 9.0 9.0 0.5 0.25";
    adbench::convert("hand", text, &root("examples/data"), dir.path()).unwrap_or_else(|d| panic!("{d}"));
    let word = format!("@{}", dir.path().join("theta.npy").display());
    let theta = data::argument(&word, Ty::tensor(1, Ty::float())).unwrap();
    assert_eq!(theta.to_json().to_string(), "[0.5,0.25]");
}

/// Protects: what is wrong with a file is said, and nothing is written.
#[test]
fn bad_files_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let bad = |format: &str, text: &str, message: &str| {
        let found = adbench::convert(format, text, dir.path(), dir.path()).unwrap_err();
        assert!(found.message.contains(message), "{format}: {found}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "{format}: {message}");
    };
    bad("foot", "", "unknown format `foot`");
    bad("hand", "0 0", "model/bones.txt: ");
    bad("gmm", "2 1", "the file ends after 2 numbers, where n is expected");
    bad("gmm", "1 1 0 0.5 1.5", "the file ends after 5 numbers, where icf is expected");
    bad("gmm", "1 1 0 0.5 x", "number 5 of the file is `x`, expected means");
    bad("gmm", "-1 1 1", "number 1 of the file is `-1`, expected d");
    bad("gmm", "1 1 0 0.5 1.5 0.1 1.0 0 7", "the file goes on with `7` after 8 numbers");
    bad("lstm", "4000000000 1 1", "l is 4000000000, more than");
    bad("ba", "0 1 1", "there are observations, but no camera or no point");
}
