//! What is assumed of divisors is used where it is asked for, written down, and needed to replay.

use crate::common::{arguments, read};
use daedal::cost::Model;
use daedal::derive::record::{self, Header};
use daedal::derive::replay::replay;
use daedal::diag::Source;
use daedal::eval::Interpreter;
use daedal::pipeline::{Engine, Options, Outcome, optimize};
use daedal::rules::assume::Assume;
use daedal::rules::{Level, Library};
use daedal::search::Algorithm;
use rayon::prelude::*;
use std::process::Command;

/// Small functions whose best forms rest on divisors that are not 0, and parameters beside `x` and `y`.
const FUNCTIONS: [(&str, &str); 20] = [
    ("", "(div x x)"),
    ("", "(div (mul x y) y)"),
    ("", "(div (mul y x) y)"),
    ("", "(mul (div x y) y)"),
    ("", "(div 0.0 x)"),
    ("", "(div (mul x x) (mul y x))"),
    ("(z : Float)", "(div (mul x z) (mul y z))"),
    ("(z : Float)", "(div (div x z) (div y z))"),
    ("", "(div x (div x y))"),
    ("", "(sub (div x y) (div x y))"),
    ("", "(mul (div x y) 0.0)"),
    ("", "(add (div x x) (div y y))"),
    ("", "(div (add x y) (add x y))"),
    ("", "(exp (div (mul x y) x))"),
    ("", "(add (mul (div x y) y) (div 0.0 y))"),
    ("", "(div (mul (sin x) y) (sin x))"),
    ("", "(sub (add (div y x) y) (div y x))"),
    ("", "(mul (div x (neg y)) (neg y))"),
    ("(n : Integer)", "(sumbuild n (lam (i : Integer) (div (mul x y) y)))"),
    ("(v : (Vec Float) n)", "(sumbuild n (lam (i : Integer) (mul (div (index i v) x) x)))"),
];

fn text(k: usize) -> String {
    let (more, body) = FUNCTIONS[k];
    format!("(def f Float ((x : Float) (y : Float) {more}) {body})")
}

fn optimized(text: &str, engine: Engine, assume: &[Assume]) -> Outcome {
    let program = read("assume", text).unwrap();
    let options = Options {
        cost: Model::Knossos,
        engine,
        assume: assume.to_vec(),
        derive: true,
        budget: 400,
        max_nodes: 2000,
        ..Options::standard()
    };
    optimize(&program, &options).unwrap_or_else(|d| panic!("{text}: {d}"))
}

/// Replays an outcome under assumptions.
fn replays(text: &str, outcome: &Outcome, assume: &[Assume]) -> Result<usize, String> {
    let (program, library) = (read("assume", text).unwrap(), Library::shipped().unwrap());
    let header = Header {
        program: record::hash(&program.source.text),
        level: Level::Real,
        assume: assume.to_vec(),
        cost_model: Model::Knossos.name().to_string(),
        sizes: vec![],
        rules: record::hash_rules(&library),
        rule_files: vec![],
    };
    let all: Vec<_> = outcome.derivations.iter().map(|d| d.derivation.clone()).collect();
    let record = record::read(&Source::new("steps.jsonl", record::write(&header, &all))).map_err(|d| d.to_string())?;
    let verdicts = replay(&program, &record, &library, "steps.jsonl").map_err(|d| d.to_string())?;
    Ok(verdicts.iter().map(|v| v.steps).sum())
}

/// Protects: with the assumption each function comes out cheaper than without, by the e-graph and by a search
/// of terms; the derivation replays with the assumption, and is refused without.
#[test]
fn divisors_are_taken_for_nonzero_where_that_is_asked_for() {
    let search = Engine::Agent(Algorithm::Astar);
    let cases: Vec<(usize, Engine)> = (0..FUNCTIONS.len()).flat_map(|k| [(k, Engine::Egraph), (k, search)]).collect();
    let wrong: Vec<String> = cases
        .into_par_iter()
        .filter_map(|(k, engine)| {
            let text = text(k);
            let (plain, assumed) = (optimized(&text, engine, &[]), optimized(&text, engine, &[Assume::Nonzero]));
            let (before, after) = (plain.rows[0].cost_after, assumed.rows[0].cost_after);
            if after >= before {
                return Some(format!("{text} by {}: {after} is not below {before}", engine.name()));
            }
            let with = replays(&text, &assumed, &[Assume::Nonzero]);
            let without = replays(&text, &assumed, &[]);
            match (with, without) {
                (Ok(steps), Err(why)) if steps > 0 && why.contains("is not proved here") => None,
                (with, without) => Some(format!("{text} by {}: {with:?} {without:?}", engine.name())),
            }
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Protects: a division that a condition guards says nothing where the condition does not hold, and neither
/// does one in a loop without rounds; integers are never assumed to be anything, and a divisor that is 0 by
/// its text is not taken for another number.
#[test]
fn guarded_divisions_keep_their_guards() {
    let cases = [
        ("(x : Float) (y : Float)", "(if (eq y 0.0) 7.0 (div (mul x y) y))", vec!["2.0 0.0", "2.0 3.0"]),
        ("(x : Float) (y : Float)", "(if (eq y 0.0) 0.0 (mul 2.0 (div x y)))", vec!["2.0 0.0", "2.0 3.0"]),
        ("(x : Float) (y : Float)", "(if (gt y 0.0) (div (mul x 0.0) y) 3.0)", vec!["2.0 0.0", "2.0 3.0"]),
        (
            "(x : Float) (n : Integer)",
            "(add 1.0 (sumbuild n (lam (i : Integer) (mul (div 1.0 x) (to_float i)))))",
            vec!["0.0 0", "2.0 3"],
        ),
        (
            "(x : Float) (n : Integer)",
            "(add 1.0 (sumbuild n (lam (i : Integer) (div (to_float i) x))))",
            vec!["0.0 0", "2.0 3"],
        ),
        ("(k : Integer) (n : Integer)", "(if (eq k 0) 1.0 (to_float (div (mul n k) k)))", vec!["0 3", "2 3"]),
        ("(x : Float)", "(if (gt x 0.0) 1.0 (div x (sub x x)))", vec!["2.0"]),
    ];
    for (params, body, all) in cases {
        let text = format!("(def f Float ({params}) {body})");
        let program = read("guarded", &text).unwrap();
        let outcome = optimized(&text, Engine::Egraph, &[Assume::Nonzero]);
        for words in all {
            let words: Vec<String> = words.split(' ').map(str::to_string).collect();
            let run = |p: &daedal::ir::Program| {
                let def = p.named("f")[0];
                Interpreter::new(p).run(def, &arguments(def, &words).unwrap()).unwrap()
            };
            assert_eq!(run(&program), run(&outcome.program), "{text} at {words:?}: {}", outcome.program.source.text);
        }
        replays(&text, &outcome, &[Assume::Nonzero]).unwrap_or_else(|why| panic!("{text}: {why}"));
    }
}

/// Protects: the command says what was assumed: in its notes, in JSON, in the derivation, in the report, and
/// again where that is replayed. What it does not know is refused.
#[test]
fn assumptions_are_written_down() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("p.ks"), text(1)).unwrap();
    let run = |args: &[&str]| {
        let out = Command::new(env!("CARGO_BIN_EXE_daedal")).current_dir(dir.path()).args(args).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).to_string();
        (out.status.code().unwrap(), text(&out.stdout), text(&out.stderr))
    };
    let says = "divisors are taken for non-zero";
    let files = ["--derivation", "d.jsonl", "--report", "r.html", "--json"];
    let (code, json, note) = run(&[&["optimize", "p.ks", "--assume", "nonzero"][..], &files].concat());
    assert!(code == 0 && json.contains("\"assume\":[\"nonzero\"]") && note.contains(says), "{json}{note}");
    let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    assert!(read("r.html").contains(says), "the report does not say it");
    let steps = read("d.jsonl");
    assert!(steps.lines().next().unwrap().contains("\"assume\":[\"nonzero\"]"), "{steps}");
    let (code, said, why) = run(&["replay", "p.ks", "d.jsonl"]);
    assert!(code == 0 && said.contains(says), "{said}{why}");
    for (other, want) in [("[]", "is not proved here"), ("[\"everything\"]", "expected the list `assume`")] {
        std::fs::write(dir.path().join("t.jsonl"), steps.replace("[\"nonzero\"]", other)).unwrap();
        let (code, _, why) = run(&["replay", "p.ks", "t.jsonl"]);
        assert!(code == 1 && why.contains(want), "{other}: {why}");
    }
    let (_, json, note) = run(&["optimize", "p.ks", "--json"]);
    assert!(json.contains("\"assume\":[]") && note.is_empty(), "{json}{note}");
}
