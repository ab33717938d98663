//! Work is counted: what runs do.
#![allow(clippy::unwrap_used, reason = "a test that meets what it does not expect should stop there")]

mod common;

use common::{arguments, read};
use daedal::eval::{Interpreter, Tally, Value};
use daedal::ir::{Def, Program};
use daedal::machine::Machine;
use daedal::pipeline::native;
use std::process::Command;

fn machine() -> Machine {
    Machine { vector_bytes: 32, threads: 1, caches: [32 << 10, 512 << 10, 8 << 20] }
}

fn interpreted(program: &Program, def: &Def, args: &[Value], terms: u64) -> Option<(Value, Tally)> {
    let interpreter = Interpreter::new(program).with_work(terms).counted();
    let value = interpreter.run(def, args).ok()?;
    Some((value, interpreter.tally()))
}

const COUNTED: &str = "
(def dot Float ((x : (Vec Float) n) (y : (Vec Float) n))
  (sumbuild n (lam (i : Integer) (mul (index i x) (index i y)))))
(def shifted (Vec Float) (x : (Vec Float) n)
  (build n (lam (i : Integer) (if (gt i 0) (div (exp (index (sub i 1) x)) 2.0) 0.0))))
(def table (Vec Float) (x : (Vec Float) n) (add x (map (lam (e : Float) (mul e e)) x)))
(def rows (Vec (Vec Float)) ((m : (Vec (Vec Float)) (n k))) (build n (lam (i : Integer) (index i m))))
(def count Integer (x : (Vec Float) n) (sumbuild n (lam (i : Integer) (if (gt (index i x) 0.0) 1 0))))
(def bins (Vec Float) ((p : (Vec Integer) n) (x : (Vec Float) n))
  (buildFromSparse 3 n (lam (i : Integer) (tuple (index i p) (index i x)))))
(def last Float (x : (Vec Float) n) (fold (lam ((s : Float) (e : Float)) (add s e)) 0.0 x))
";

/// The counts of a call by the interpreter of terms, and by that of loops without a schedule.
fn counts(name: &str, words: &[&str]) -> [Tally; 2] {
    let program = read("counted.ks", COUNTED).unwrap();
    let def = program.named(name)[0];
    let words: Vec<String> = words.iter().map(ToString::to_string).collect();
    let args = arguments(def, &words).unwrap();
    let (value, terms) = interpreted(&program, def, &args, u64::MAX).unwrap();
    let done = native::counted(&program, def, None, (&args, &machine()), &mut String::new()).unwrap();
    assert_eq!((done.value, done.scheduled), (value, false));
    [terms, done.tally]
}

/// Protects: what is counted, by hand: of terms, and of loops, whose sums have no accumulator in memory, whose sizes are
/// compared, and whose vectors count in all lanes.
#[test]
fn counts_are_those_of_hand() {
    let of = |name: &str, words: &[&str], wanted: [Tally; 2]| {
        let [terms, loops] = wanted;
        let loops = Tally { peak_bytes: Some(loops.bytes), ..loops };
        assert_eq!(counts(name, words), [terms, loops], "{name}");
    };
    let dot = Tally { simple: 8, read: 8, ..Tally::default() };
    of("dot", &["[1,2,3,4]", "[1,2,3,4]"], [dot, Tally { simple: 9, ..dot }]);
    // A comparison and a choice for each of three elements; in loops, three more comparisons of indices with sizes.
    let [divisions, transcendental, indices] = [2; 3];
    let shifted =
        Tally { simple: 6, divisions, transcendental, indices, read: 2, written: 3, bytes: 24, peak_bytes: None };
    of("shifted", &["[1,2,3]"], [shifted, Tally { simple: 12, ..shifted }]);
    let table = Tally { simple: 6, read: 9, written: 6, bytes: 48, ..Tally::default() };
    of("table", &["[1,2,3]"], [table; 2]);
    // The interpreter passes rows by reference.
    let rows = Tally { indices: 15, read: 6, written: 6, bytes: 48, ..Tally::default() };
    of("rows", &["[[1,2],[3,4],[5,6]]"], [Tally::default(), rows]);
    of("count", &["[1,-1,1,1]"], [Tally { simple: 12, read: 4, ..Tally::default() }; 2]);
    let bins = Tally { simple: 4, read: 12, written: 7, bytes: 24, ..Tally::default() };
    of("bins", &["[0,2,2,0]", "[1,2,3,4]"], [bins, Tally { simple: 17, ..bins }]);
    of("last", &["[1,2,3]"], [Tally { simple: 3, read: 3, ..Tally::default() }; 2]);
}

/// Protects: the command line shows counts before the value, and in the object beside it.
#[test]
fn counts_are_printed() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("c.ks"), COUNTED).unwrap();
    let run = |args: &[&str]| {
        let out = Command::new(env!("CARGO_BIN_EXE_daedal")).current_dir(dir.path()).args(args).output().unwrap();
        assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    };
    let call = ["c.ks", "shifted", "[1,2,3]"];
    let value = run(&[&["eval"][..], &call].concat());
    for command in ["eval", "run"] {
        let shown = run(&[&[command][..], &call, &["--count"]].concat());
        assert_eq!(shown.lines().last(), value.lines().last(), "{shown}");
        assert!(shown.lines().any(|l| l.starts_with("transcendental functions") && l.ends_with("times 20")), "{shown}");
        let json = run(&[&[command][..], &call, &["--count", "--json"]].concat());
        let json: serde_json::Value = serde_json::from_str(json.lines().last().unwrap()).unwrap();
        assert_eq!(json["value"].to_string(), value.trim_end());
        assert_eq!(json["count"]["transcendental"], 2);
        assert_eq!(json["count"]["peak_bytes"].is_null(), command == "eval");
    }
}
