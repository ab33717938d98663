//! The binary as a user meets it: output, exit codes, files.

use crate::common::root;
use ndarray::{Array1, Array2, array};
use ndarray_npy::{read_npy, write_npy};
use std::path::Path;
use std::process::{Command, Output, Stdio};

const PROGRAM: &str = "
(def scale (Vec Float) ((a : Float) (x : (Vec Float) n)) (map (lam (v : Float) (mul a v)) x))
(def rows (Vec Float) (m : (Vec (Vec Float))) (map (lam (r : (Vec Float)) (sum r)) m))
(def pair (Tuple Float Integer) (k : Integer) (tuple (to_float k) k))
(def pick Float (x : Float) x)
(def pick Float (x : Integer) (to_float x))
(def hello Integer () (print \"a\\nb\" 3))
(def shout Integer () (let (n (print \"before\")) (div n 0)))
";

fn dir() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("p.ks"), PROGRAM).unwrap();
    dir
}

fn daedal(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_daedal")).current_dir(dir).args(args).output().unwrap()
}

fn out(o: &Output) -> String {
    String::from_utf8_lossy(&o.stdout).to_string()
}

/// What a command that succeeds prints.
fn good(dir: &Path, args: &[&str]) -> String {
    let o = daedal(dir, args);
    assert!(o.status.success(), "{args:?}: {}", String::from_utf8_lossy(&o.stderr));
    assert!(o.stderr.is_empty(), "{args:?}: {}", String::from_utf8_lossy(&o.stderr));
    out(&o)
}

/// The message of a command that fails with an exit code.
fn bad(dir: &Path, code: i32, args: &[&str]) -> String {
    let o = daedal(dir, args);
    let message = String::from_utf8_lossy(&o.stderr).to_string();
    assert_eq!(o.status.code(), Some(code), "{args:?}: {message}{}", out(&o));
    assert!(!message.contains("panicked"), "{message}");
    message
}

/// Protects: what the commands print, for people and for machines.
#[test]
fn commands_print_results() {
    let dir = dir();
    let d = dir.path();
    assert!(good(d, &["check", "p.ks"]).contains("(scale (a : Float) (x : (Vec Float) n)) -> (Vec Float)"));
    let json: serde_json::Value = serde_json::from_str(&good(d, &["check", "p.ks", "--json"])).unwrap();
    assert_eq!(json["defs"][0]["params"][1]["sizes"][0], "n");
    assert_eq!(good(d, &["eval", "p.ks", "scale", "-2", "[1,0.5]"]), "[-2.0,-1.0]\n");
    assert_eq!(good(d, &["eval", "p.ks", "scale", "-2.5e1", "[]", "--json"]), "{\"value\":[]}\n");
    assert_eq!(good(d, &["eval", "p.ks", "scale", "inf", "[1]"]), "[\"inf\"]\n");
    assert_eq!(good(d, &["eval", "p.ks", "pair", "-3"]), "[-3.0,-3]\n");
    assert_eq!(good(d, &["eval", "p.ks", "hello", "--json"]), "a\nb3\n{\"value\":5}\n");
    let text = good(d, &["emit", "p.ks", "--target", "ks"]);
    std::fs::write(d.join("q.ks"), &text).unwrap();
    assert_eq!(good(d, &["emit", "q.ks", "--target", "ks"]), text);
    assert!(good(d, &["emit", "p.ks", "pair", "--target", "ks"]).starts_with("(def pair "));
}

/// Protects: each kind of wrong call has its message and exit code.
#[test]
fn wrong_calls_are_told() {
    let dir = dir();
    let d = dir.path();
    std::fs::write(d.join("empty.ks"), "; nothing\n").unwrap();
    std::fs::write(d.join("latin.ks"), b"(def f\xe9 Float () 1.0)").unwrap();
    for (args, text) in [
        (&["eval", "none.ks", "f"][..], "`none.ks` cannot be read: there is no such file"),
        (&["check", "."], "it is a directory"),
        (&["check", "empty.ks"], "`empty.ks` has no definitions"),
        (&["check", "latin.ks"], "the byte at offset 6"),
        (&["eval", "p.ks", "scle", "1", "[]"], "did you mean `scale`?"),
        (&["eval", "p.ks", "qqqqqqqqq"], "it defines `scale`, `rows`"),
        (&["eval", "p.ks", "pick", "1"], "candidate: (pick (x : Integer)) -> Float"),
        (&["eval", "p.ks", "scale", "1"], "`scale` takes 2 arguments, found 1"),
        (&["eval", "p.ks", "scale", "one", "[]"], "expected Float, found \"one\""),
        (&["eval", "p.ks", "scale", "1", "[1"], "the argument is no JSON"),
        (&["eval", "p.ks", "rows", "[[1,2],[3]]"], "the argument is ragged"),
        (&["eval", "p.ks", "pair", "1.5"], "argument 1 is k : Integer"),
        (&["eval", "p.ks", "scale", "1", "@x.txt"], "expected a file that ends in `.npy`, `.png` or `.json`"),
        (&["eval", "p.ks", "scale", "1", "@x.npy"], "there is no such file"),
        (&["frobnicate"], "unrecognized subcommand"),
        (&["eval", "p.ks"], "required"),
    ] {
        let message = bad(d, 1, args);
        assert!(message.contains(text), "{args:?}: {message}");
    }
    let o = daedal(d, &["eval", "p.ks", "shout"]);
    assert_eq!((o.status.code(), out(&o).as_str()), (Some(1), "before\n"));
    assert_eq!(daedal(d, &["--help"]).status.code(), Some(0));
}

/// Protects: a file that is too large is a limit, found before it is read.
#[test]
fn large_files_are_a_limit() {
    let dir = dir();
    let d = dir.path();
    let file = std::fs::File::create(d.join("large.ks")).unwrap();
    file.set_len((1 << 30) + 1).unwrap();
    assert!(bad(d, 2, &["check", "large.ks"]).contains("larger than 1 GiB"));
}

/// Protects: arrays go in and out as files.
#[test]
fn files_are_arguments_and_results() {
    let dir = dir();
    let d = dir.path();
    write_npy(d.join("x.npy"), &array![1.0f32, 2.5]).unwrap();
    write_npy(d.join("m.npy"), &array![[1i32, 2], [3, 4]]).unwrap();
    std::fs::write(d.join("x.json"), "[3, 4]").unwrap();
    assert_eq!(good(d, &["eval", "p.ks", "scale", "2", "@x.npy"]), "[2.0,5.0]\n");
    assert_eq!(good(d, &["eval", "p.ks", "scale", "2", "@x.json"]), "[6.0,8.0]\n");
    assert_eq!(good(d, &["eval", "p.ks", "rows", "@m.npy", "-o", "y.npy"]), "");
    let y: Array1<f64> = read_npy(d.join("y.npy")).unwrap();
    assert_eq!(y, array![3.0, 7.0]);
    assert_eq!(good(d, &["eval", "p.ks", "pair", "3", "-o", "p.json"]), "");
    assert_eq!(std::fs::read_to_string(d.join("p.json")).unwrap(), "[3.0,3]\n");
    let m: Array2<i32> = read_npy(d.join("m.npy")).unwrap();
    assert_eq!(m.len(), 4);
    let left: Vec<_> = std::fs::read_dir(d).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 6, "something is left over: {left:?}");
}

/// Protects: an output that cannot be written changes nothing, and is told in one message.
#[test]
fn outputs_are_complete_or_untouched() {
    let dir = dir();
    let d = dir.path();
    std::fs::write(d.join("old.npy"), "old").unwrap();
    let mut fixed = std::fs::metadata(d.join("old.npy")).unwrap().permissions();
    fixed.set_readonly(true);
    std::fs::set_permissions(d.join("old.npy"), fixed).unwrap();
    std::fs::write(d.join("keep.npy"), "keep").unwrap();
    std::fs::create_dir(d.join("dir.npy")).unwrap();
    for (def, place, text) in [
        ("3", "old.npy", "`old.npy` cannot be written: it is read-only"),
        ("3", "dir.npy", "it is a directory"),
        ("3", "none/x.npy", "its directory does not exist"),
        ("3", "x.csv", "expected an output that ends in `.npy`, `.png` or `.json`"),
        ("3", "keep.npy", "a result of type (Tuple Float Integer) cannot be written as an `.npy` file"),
    ] {
        let message = bad(d, 1, &["eval", "p.ks", "pair", def, "-o", place]);
        assert!(message.contains(text) && message.matches("error").count() == 1, "{message}");
    }
    bad(d, 1, &["eval", "p.ks", "shout", "-o", "keep.npy"]);
    assert_eq!(std::fs::read_to_string(d.join("old.npy")).unwrap(), "old");
    assert_eq!(std::fs::read_to_string(d.join("keep.npy")).unwrap(), "keep");
    assert_eq!(std::fs::read_dir(d).unwrap().count(), 4);
}

/// Protects: damaged arrays are the user's error.
#[test]
fn damaged_files_are_refused() {
    let dir = dir();
    let d = dir.path();
    write_npy(d.join("x.npy"), &array![1.0, 2.5]).unwrap();
    let bytes = std::fs::read(d.join("x.npy")).unwrap();
    std::fs::write(d.join("short.npy"), &bytes[..bytes.len() - 1]).unwrap();
    std::fs::write(d.join("empty.npy"), "").unwrap();
    std::fs::write(d.join("noise.npy"), [0xab; 500]).unwrap();
    write_npy(d.join("cube.npy"), &Array2::<f64>::zeros((2, 2)).insert_axis(ndarray::Axis(0))).unwrap();
    for (file, text) in [
        ("@short.npy", "cut short"),
        ("@empty.npy", "is empty"),
        ("@noise.npy", "the file is no `.npy` array"),
        ("@cube.npy", "expected 1 axis for (Vec Float), found 3"),
    ] {
        let message = bad(d, 1, &["eval", "p.ks", "scale", "1", file]);
        assert!(message.contains(text) && message.contains(&file[1..]), "{message}");
    }
}

/// Protects: a reader that goes away early is no crash.
#[test]
fn a_broken_pipe_is_quiet() {
    let file = root("programs/blas.ks");
    let mut child = Command::new(env!("CARGO_BIN_EXE_daedal"))
        .arg("check")
        .arg(file)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let o = child.wait_with_output().unwrap();
    assert!(o.status.success() && o.stderr.is_empty(), "{}", String::from_utf8_lossy(&o.stderr));
}

/// Protects: each way in which a file of rules can be wrong has its message and its place, before anything is written.
#[test]
fn wrong_rules_are_told() {
    let dir = dir();
    let d = dir.path();
    std::fs::write(d.join("out.ks"), "old").unwrap();
    for (text, message) in [
        ("(rule \"r\" ((a : Float) (b : Float)) (add a 0.0) (add a b))", "the metavariable `b` is unbound"),
        ("(rule \"r\" ((a : Float) (b : Float)) (add a 1.0) a :when (nonzero b))", "the metavariable `b` is unbound"),
        ("(rule \"r\" (a : Float) (div a a) 1.0 :when (nonzer a))", "did you mean `nonzero`?"),
        ("(rule \"r\" (a : Float) (div a a) 1.0 :when (nonzero a a))", "wrong number of arguments of `nonzero`"),
        ("(rule \"r\" (a : Float) (div a a) 1.0 :when (nonzero 3))", "a condition speaks of metavariables"),
        ("(rule \"r\" (a : Float) (div a a) 1.0 :when nonzero)", "expected a condition"),
        ("(rule \"r\" (a : Float) (div a a) 1.0 :when)", "an attribute without a value"),
        (
            "(rule \"r\" (a : Float) (div a a) 1.0 :unless (nonzero a))",
            "expected `:level`, `:when`, `:phase` or `:simplify`",
        ),
        ("(rule \"r\" (a : Float) (div a a) 1.0 :level bits)", "expected `exact` or `real`"),
        (
            "(rule \"r\" (a : Float) (mul 2.0 a) (add a a) :simplify)",
            "`a` stands on the right 2 times, and on the left 1",
        ),
        (
            "(rule \"r\" (a : Float) (sub 0.0 a) (mul a -1.0) :simplify)",
            "the right side has 3 nodes, and the left one 3",
        ),
        (
            "(rule \"r\" (a : Float) (div a a) 1.0 :when (nonzero a) :simplify)",
            "a rule that simplifies has no conditions",
        ),
        (
            "(rule \"r\" (n : Integer) (sumbuild n (lam (i : Integer) 0.0)) 0.0 :simplify)",
            "a rule that simplifies binds no variables",
        ),
        ("(rule \"r\" (a : Float) (div a a) 1.0 :phase 10)", "a number from 1 to 9"),
        ("(rule \"r\" (a : Float) (div a a) 1)", "expected Float, found Integer"),
        ("(rule \"r\" (a : ?F) (div a a) 1.0)", "expected ?F, found Float"),
        ("(rule \"r\" (a : ?Q) (div a a) a)", "a type variable starts with ?T"),
        ("(rule \"r\" (a : Float) (frob a) a)", "unknown function `frob`"),
        ("(rule \"r\" (a : Float) a (add a 0.0))", "the left side matches every term"),
        (
            "(rule \"r\" ((n : Integer) (b : (Lam Integer Float)))
               (build n (lam (i : Integer) (b (add i 1)))) (build n (lam (i : Integer) (b i))))",
            "on the left a metavariable may be applied to bound variables only",
        ),
        ("(rule \"add-zero\" (a : Float) (add a 0.0) a)", "the first is in rules/arith.rules"),
        ("(rule \"r\" (a : Float) (div a a) a) (rule \"r\" (a : Float) (sub a a) a)", "two rules are called `r`"),
        ("(rule r (a : Float) (div a a) 1.0)", "expected the name of the rule"),
        ("(rule \"r\" (a : Float) (div a a))", "parts are missing"),
        ("(rule \"r\" (a : Float) (div a a) 1.0", "a bracket is never closed"),
        ("div", "expected a rule"),
    ] {
        std::fs::write(d.join("r.rules"), text).unwrap();
        for args in [
            &["optimize", "p.ks", "--rules", "r.rules", "-o", "out.ks"][..],
            &["emit", "p.ks", "--optimize", "--rules", "r.rules"],
            &["rules", "list", "r.rules"],
        ] {
            let said = bad(d, 1, args);
            assert!(said.contains(message) && said.contains("r.rules:"), "{args:?} {text}: {said}");
            assert_eq!(said.matches("error").count(), 1, "{said}");
        }
    }
    std::fs::write(d.join("latin.rules"), b"; \xe9").unwrap();
    for (file, message) in [("none.rules", "no such file"), (".", "is a directory"), ("latin.rules", "offset 2")] {
        for args in [&["optimize", "p.ks", "-o", "out.ks", "--rules", file][..], &["rules", "list", file]] {
            let said = bad(d, 1, args);
            assert!(said.contains(message), "{args:?}: {said}");
        }
    }
    assert_eq!(std::fs::read_to_string(d.join("out.ks")).unwrap(), "old");
}

/// Protects: what `optimize` and `emit` refuse, they refuse before they work, and old outputs stay.
#[test]
fn wrong_calls_of_the_optimizer_are_told() {
    let dir = dir();
    let d = dir.path();
    std::fs::write(d.join("out.ks"), "old").unwrap();
    std::fs::write(d.join("fixed.ks"), "old").unwrap();
    let mut fixed = std::fs::metadata(d.join("fixed.ks")).unwrap().permissions();
    fixed.set_readonly(true);
    std::fs::set_permissions(d.join("fixed.ks"), fixed).unwrap();
    std::fs::write(d.join("wrong.ks"), "(def f Float () 1)").unwrap();
    for (args, text) in [
        (&["optimize", "p.ks", "-o", "fixed.ks"][..], "`fixed.ks` cannot be written: it is read-only"),
        (&["optimize", "p.ks", "-o", "none/x.ks"], "its directory does not exist"),
        (&["optimize", "p.ks", "-o", "."], "it is a directory"),
        (&["optimize", "wrong.ks", "-o", "out.ks"], "expected Float, found Integer"),
        (&["optimize", "p.ks", "-o", "out.ks", "--def", "scle"], "did you mean `scale`?"),
        (&["optimize", "p.ks", "-o", "out.ks", "--size", "n"], "such as `n=1000`"),
        (&["optimize", "p.ks", "-o", "out.ks", "--size", "n=-1"], "such as `n=1000`"),
        (&["optimize", "p.ks", "-o", "out.ks", "--size", "len=3"], "no definition of `p.ks` names a size `len`"),
        (&["optimize", "p.ks", "-o", "out.ks", "--cost", "best"], "possible values: knossos, analytic"),
        (&["emit", "p.ks", "--target", "cpp"], "`--target cpp` shows one definition"),
        (&["emit", "p.ks", "scle", "--target", "nest"], "did you mean `scale`?"),
        (&["emit", "p.ks", "scale", "--cost", "analytic"], "--optimize"),
        (&["run", "p.ks", "pair", "3", "--time", "0"], "0 is not in 1.."),
    ] {
        let said = bad(d, 1, args);
        assert!(said.contains(text), "{args:?}: {said}");
    }
    assert_eq!(std::fs::read_to_string(d.join("out.ks")).unwrap(), "old");
    assert_eq!(std::fs::read_to_string(d.join("fixed.ks")).unwrap(), "old");
    assert_eq!(std::fs::read_dir(d).unwrap().count(), 4, "something is left over");
}

/// Protects: the optimizer's output is a program, and its reports are what people and machines are promised.
#[test]
fn optimize_reports() {
    let dir = dir();
    let d = dir.path();
    std::fs::write(d.join("r.rules"), "(rule \"twice\" (k : Integer) (to_float k) (to_float k))").unwrap();
    let twice = "(def twice (Vec Float) ((a : Float) (x : (Vec Float) n)) (scale a (scale a x)))";
    std::fs::write(d.join("t.ks"), format!("{PROGRAM}{twice}")).unwrap();
    let args = ["optimize", "t.ks", "--def", "twice", "--rules", "r.rules", "--size", "n=50", "-o", "fast.ks"];
    let table = good(d, &args);
    let lines: Vec<Vec<&str>> = table.lines().map(|l| l.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["def", "before", "after", "ratio", "seconds"]);
    assert_eq!((lines.len(), lines[1][0], lines[2][0]), (3, "twice", "total"));
    let number = |w: &str| w.parse::<f64>().unwrap();
    assert!(number(lines[1][2]) < number(lines[1][1]), "{table}");
    let call = ["eval", "fast.ks", "twice", "3", "[1,2]"];
    assert_eq!(good(d, &call), "[9.0,18.0]\n");
    let more = good(d, &[&args[..], &["--verbose"]].concat());
    assert!(more.contains("\ntwice: rules that fired\n") && more.contains("1  index-of-build\n"), "{more}");
    let json: serde_json::Value = serde_json::from_str(&good(d, &[&args[..], &["--json"]].concat())).unwrap();
    assert_eq!((&json["cost_model"], &json["defs"][0]["name"]), (&"analytic".into(), &"twice".into()));
    let row = &json["defs"][0];
    assert!(row["cost_after"].as_f64() < row["cost_before"].as_f64(), "{json}");
    assert!(row["engine"].is_string() && row["steps"].is_u64() && row["seconds"].is_f64(), "{json}");
    assert!(row["fired"]["index-of-build"].as_u64() >= Some(1), "{json}");
    // Definitions are worked on side by side: the total is what the clock says.
    let many: String = (0..6).map(|k| format!("{}\n", twice.replace("twice", &format!("f{k}")))).collect();
    std::fs::write(d.join("m.ks"), format!("{PROGRAM}{many}")).unwrap();
    let from = std::time::Instant::now();
    let json: serde_json::Value =
        serde_json::from_str(&good(d, &["optimize", "m.ks", "--threads", "2", "--json"])).unwrap();
    let (total, clock) = (json["seconds"].as_f64().unwrap(), from.elapsed().as_secs_f64());
    let rows = json["defs"].as_array().unwrap().iter().map(|r| r["seconds"].as_f64().unwrap());
    assert!(total <= clock && rows.fold(0.0, f64::max) <= total, "{clock}: {json}");
    let text = good(d, &["emit", "t.ks", "twice", "--optimize"]);
    // One tensor is made, by the form that the source has.
    assert_eq!((text.matches("build").count(), text.matches("(map ").count()), (0, 1), "{text}");
    let json = good(d, &["rules", "list", "r.rules", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let last = json["rules"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["name"], &last["level"], &last["phase"]), (&"twice".into(), &"real".into(), &1.into()));
}

/// Protects: what is not rewritten says why, to people and to machines; a derivative says what it came to.
#[test]
fn what_is_skipped_is_told() {
    let dir = dir();
    let d = dir.path();
    let power = "(def power Float ((x : Float) (n : Integer)) (if (lte n 0) 1.0 (mul x (power x (sub n 1)))))";
    let total = "(def total Float (x : (Vec Float) n) (sumbuild n (lam (i : Integer) (exp (index i x)))))";
    std::fs::write(d.join("p.ks"), format!("{power}\n{total}\n")).unwrap();
    let table = good(d, &["optimize", "p.ks"]);
    assert!(table.lines().nth(1).unwrap().ends_with("  skipped: it calls itself"), "{table}");
    assert!(!table.lines().nth(2).unwrap().contains("skipped"), "{table}");
    let json: serde_json::Value = serde_json::from_str(&good(d, &["optimize", "p.ks", "--json"])).unwrap();
    assert_eq!((&json["defs"][0]["skipped"], &json["defs"][1]["skipped"]), (&"it calls itself".into(), &().into()));
    let few = good(d, &["optimize", "p.ks", "--def", "total", "--max-nodes", "8"]);
    assert!(few.contains("skipped: too large: 7 nodes"), "{few}");
    let grad = ["grad", "p.ks", "total", "--optimize"];
    let notes = |args: &[&str]| String::from_utf8(daedal(d, args).stderr).unwrap();
    let told = notes(&grad);
    assert!(told.starts_with("note: `rev$total") && told.ends_with("as made (analytic)\n"), "{told}");
    assert_eq!(notes(&[&grad[..], &["--quiet"]].concat()), "");
    let json: serde_json::Value = serde_json::from_str(&good(d, &[&grad[..], &["--json"]].concat())).unwrap();
    assert!(json["cost_after"].as_f64() <= json["cost_before"].as_f64() && json["skipped"].is_null(), "{json}");
}

/// Protects: native runs say how long they took, and a missing compiler is told as the user's error.
#[test]
fn native_runs_report() {
    let dir = dir();
    let d = dir.path();
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cli");
    let run = |more: &[&str], cxx: Option<&str>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_daedal"));
        command.current_dir(d).env("DAEDAL_CACHE", &cache).args(["run", "p.ks", "scale", "2", "[1,2]"]).args(more);
        command.envs(cxx.map(|c| ("CXX", c))).output().unwrap()
    };
    assert_eq!(out(&run(&[], None)), "[2.0,4.0]\n");
    let timed = out(&run(&["--time", "3"], None));
    let (first, rest) = timed.split_once('\n').unwrap();
    assert!(first.starts_with("min ") && first.contains(" s, median ") && first.ends_with(" bytes"), "{timed}");
    assert_eq!(rest, "[2.0,4.0]\n");
    let json: serde_json::Value = serde_json::from_str(&out(&run(&["--time", "3", "--json"], None))).unwrap();
    assert!(json["min_seconds"].as_f64() <= json["median_seconds"].as_f64() && json["peak_bytes"].is_u64(), "{json}");
    assert_eq!(json["value"], serde_json::json!([2.0, 4.0]));
    std::fs::write(d.join("old.json"), "old").unwrap();
    let o = run(&["-o", "old.json"], Some("/nonexistent/c++"));
    let said = String::from_utf8_lossy(&o.stderr);
    assert_eq!(o.status.code(), Some(1), "{said}");
    assert!(said.contains("`/nonexistent/c++` cannot be run") && said.contains("hint: install g++"), "{said}");
    assert_eq!(std::fs::read_to_string(d.join("old.json")).unwrap(), "old");
}

/// Protects: an option that would mean nothing is refused.
#[test]
fn few_states_are_for_reverse_mode() {
    let dir = dir();
    let d = dir.path();
    assert!(good(d, &["grad", "p.ks", "scale", "--checkpoint"]).starts_with("(def rev$scale "));
    let message = bad(d, 1, &["grad", "p.ks", "scale", "--checkpoint", "--mode", "fwd"]);
    assert!(message.contains("`--checkpoint` is for reverse mode only"), "{message}");
}

/// What a command that succeeds prints on a terminal, standard output and error together.
#[cfg(target_os = "linux")]
fn on_terminal(dir: &Path, line: &str) -> String {
    let command = format!("{} {line}", env!("CARGO_BIN_EXE_daedal"));
    let o = Command::new("script").current_dir(dir).args(["-qec", &command, "/dev/null"]).env("TERM", "xterm").output();
    let o = o.unwrap();
    assert!(o.status.success(), "{line}: {}", out(&o));
    out(&o)
}

/// Protects: a large result is shortened for a person alone; what is left out is counted.
#[cfg(target_os = "linux")]
#[test]
fn large_results_are_shortened_on_a_terminal() {
    let dir = dir();
    let d = dir.path();
    std::fs::write(d.join("large.ks"), "(def up (Vec Integer) (n : Integer) (build n (lam (i : Integer) i)))").unwrap();
    let piped = good(d, &["eval", "large.ks", "up", "1000"]);
    assert!(piped.contains("499,500,501") && piped.lines().count() == 1, "{piped}");
    let shown = on_terminal(d, "eval large.ks up 1000");
    assert!(shown.contains("10,11,…,998,999]") && shown.contains("; 986 elements are left out"), "{shown}");
    assert!(on_terminal(d, "eval large.ks up 20").contains("9,10,11,12"));
    let json = on_terminal(d, "eval large.ks up 1000 --json");
    assert!(json.contains("499,500,501"), "{json}");
    assert_eq!(good(d, &["eval", "large.ks", "up", "1000", "--quiet"]), "");
    assert_eq!(on_terminal(d, "eval large.ks up 1000 -o all.json -q"), "");
    assert!(std::fs::read_to_string(d.join("all.json")).unwrap().contains("499,500,501"));
}

/// Protects: how far the work is stands on a terminal, and nowhere else.
#[cfg(target_os = "linux")]
#[test]
fn progress_is_for_terminals() {
    let dir = dir();
    let d = dir.path();
    let shown = on_terminal(d, "optimize p.ks");
    assert!(shown.contains(" of 7") && shown.contains("scale"), "{shown}");
    for line in ["optimize p.ks --quiet", "optimize p.ks --json"] {
        let shown = on_terminal(d, line);
        assert!(!shown.contains(" of 7"), "{line}: {shown}");
    }
    // `good` asserts that a pipe gets nothing beside the table.
    assert!(good(d, &["optimize", "p.ks"]).contains("total"));
}

/// Protects: messages and tables have colours on terminals, unless they are not wanted.
#[cfg(target_os = "linux")]
#[test]
fn colours_are_for_terminals() {
    let dir = dir();
    let d = dir.path();
    let coloured = |text: &str| text.contains("\u{1b}[");
    assert!(coloured(&good(d, &["optimize", "p.ks", "--color", "always"])));
    assert!(!coloured(&good(d, &["optimize", "p.ks"])));
    assert!(coloured(&bad(d, 1, &["check", "missing.ks", "--color", "always"])));
    assert!(!coloured(&bad(d, 1, &["check", "missing.ks"])));
    // So it is with what is wrong about the words themselves.
    assert!(coloured(&bad(d, 1, &["--color", "always", "chekc", "p.ks"])));
    assert!(coloured(&bad(d, 1, &["check", "p.ks", "--unknown", "--color=always"])));
    assert!(!coloured(&bad(d, 1, &["--color", "never", "chekc", "p.ks"])));
    let line = "optimize p.ks 2> /dev/null";
    assert!(coloured(&on_terminal(d, line)));
    assert!(!coloured(&on_terminal(d, &format!("--color never {line}"))));
}

/// Protects: shells and the manual know every command.
#[test]
fn shells_and_the_manual_know_the_commands() {
    let dir = dir();
    let d = dir.path();
    for shell in ["bash", "zsh", "fish"] {
        let script = good(d, &["completions", shell]);
        for word in ["optimize", "rules", "max-seconds", "completions"] {
            assert!(script.contains(word), "{shell}: no {word}");
        }
    }
    let page = good(d, &["man"]);
    assert!(page.contains(".TH daedal 1") && page.contains("optimize"), "{page}");
    let page = good(d, &["man", "rules", "check"]);
    assert!(page.contains("mutate"), "{page}");
    let message = bad(d, 1, &["man", "optimise"]);
    assert!(message.contains("did you mean `optimize`?"), "{message}");
    // `trial` is for the program alone.
    let message = bad(d, 1, &["man", "nosuch"]);
    assert!(message.contains("it has check, ") && !message.contains("trial"), "{message}");
}

/// Protects: numbers out of range are refused as such, and files without rules as such.
#[test]
fn odd_options_are_told_for_what_they_are() {
    let dir = dir();
    let d = dir.path();
    for (option, value) in [("--max-nodes", "-1"), ("--max-seconds", "-0.5"), ("--threads", "0"), ("--budget", "-7")] {
        let message = bad(d, 1, &["optimize", "p.ks", option, value]);
        assert!(message.contains(&format!("invalid value '{value}' for '{option}")), "{message}");
    }
    assert!(bad(d, 1, &["grad", "p.ks", "pick", "--check", "--samples", "0"]).contains("0 is not in 1.."));
    for args in [&["optimize", "p.ks", "--rules", "p.ks"][..], &["rules", "list", "p.ks"], &["rules", "check", "p.ks"]]
    {
        assert!(bad(d, 1, args).contains("`p.ks` has no rules"), "{args:?}");
    }
}

const PREDICT: &str = "
(def mm (Vec (Vec Float)) ((a : (Vec (Vec Float)) (n k)) (b : (Vec (Vec Float)) (k m)))
  (build n (lam (i : Integer) (build m (lam (j : Integer)
    (sumbuild k (lam (l : Integer) (mul (index l (index i a)) (index j (index l b))))))))))
(def tr (Vec (Vec Float)) ((a : (Vec (Vec Float)) (n m)))
  (build m (lam (j : Integer) (build n (lam (i : Integer) (index j (index i a)))))))
(def predict (Vec (Vec Float)) ((f : (Vec (Vec Float)) (n n)) (p : (Vec (Vec Float)) (n n)))
  (mm (mm f p) (tr f)))
";

/// Protects: a derivation never makes a result dearer in silence. A better one without a proof is told in the
/// text, the JSON and the report, with both costs; and a replay prints JSON.
#[test]
fn what_has_no_derivation_is_told() {
    let dir = dir();
    let d = dir.path();
    std::fs::write(d.join("k.ks"), PREDICT).unwrap();
    let json = |args: &[&str]| -> serde_json::Value {
        let all: Vec<&str> = ["optimize", "k.ks", "--def", "predict", "--json"].iter().chain(args).copied().collect();
        serde_json::from_str(&good(d, &all)).unwrap()
    };
    let (without, with) = (json(&[]), json(&["--derivation", "k.jsonl"]));
    let cost = |o: &serde_json::Value| o["defs"][0]["cost_after"].as_f64().unwrap();
    assert!(without["defs"][0]["unproved"].is_null());
    let text = good(d, &["optimize", "k.ks", "--def", "predict", "--report", "k.html"]);
    let page = std::fs::read_to_string(d.join("k.html")).unwrap();
    let said =
        |text: &str| text.contains(" was found, ") && text.contains(&format!("{:.1} has a derivation", cost(&with)));
    match cost(&with) > cost(&without) + 1e-6 {
        true => {
            let unproved = &with["defs"][0]["unproved"];
            assert_eq!(unproved["cost"].as_f64(), Some(cost(&without)), "{with}");
            assert!(!unproved["why"].as_str().unwrap().is_empty());
            assert!(said(&text) && said(&page), "{text}");
        }
        // All of it has a proof, so there is nothing to tell.
        false => assert!(!said(&text) && !said(&page) && with["defs"][0]["unproved"].is_null(), "{text}"),
    }
    let told: serde_json::Value = serde_json::from_str(&good(d, &["replay", "k.ks", "k.jsonl", "--json"])).unwrap();
    assert_eq!(told["defs"][0]["name"], "predict");
    assert_eq!(told["defs"][0]["cost_after"], with["defs"][0]["cost_after"]);
    let changed = std::fs::read_to_string(d.join("k.jsonl")).unwrap().replace("analytic", "knossos");
    std::fs::write(d.join("k.jsonl"), changed).unwrap();
    let message = bad(d, 1, &["replay", "k.ks", "k.jsonl", "--json"]);
    assert!(message.contains("k.jsonl:2: `predict`: the definition costs"), "{message}");
}

/// Protects: arguments of small types are written as JSON has them, or as programs do, with their type; no other type is taken.
#[test]
fn arguments_may_end_in_their_type() {
    let dir = dir();
    let d = dir.path();
    let text = "(def f Float32 ((x : Float32) (v : (Vec UInt8))) (add x (cast Float32 (sum v))))";
    std::fs::write(d.join("t.ks"), text).unwrap();
    for (x, v) in [("1.5", "[1,2]"), ("1.5f32", "[1,2]"), ("1.5f32", "[\"1u8\",2]")] {
        assert_eq!(good(d, &["eval", "t.ks", "f", x, v]).trim(), "4.5");
    }
    for (x, v) in [("1.5u8", "[1,2]"), ("1.5f64", "[1]"), ("1.5", "[\"1i8\"]"), ("1.5", "[\"300u8\"]")] {
        assert!(bad(d, 1, &["eval", "t.ks", "f", x, v]).contains("does not fit its type"));
    }
}

/// Protects: sizes of which nothing is said are named where arguments of them would be too large.
#[test]
fn sizes_that_were_assumed_are_named() {
    let dir = dir();
    let d = dir.path();
    std::fs::write(d.join("t.ks"), "(def f Float (x : (Tensor 3 Float) (h w c)) (index (tuple 0 0 0) x))").unwrap();
    let told = bad(d, 2, &["schedule", "t.ks", "f", "--size", "h=4000", "--size", "w=4000"]);
    assert!(told.contains("256 was assumed for `c`") && told.contains("--size c=N"), "{told}");
    let told = bad(d, 2, &["schedule", "t.ks", "f", "--size", "h=4000", "--size", "w=4000", "--size", "c=256"]);
    assert!(told.contains("smaller sizes do for a search"), "{told}");
}

/// Protects: schedules and their code are shown for all sizes, and for stated ones, which arguments have, too.
#[test]
fn schedules_are_shown_for_sizes() {
    let dir = dir();
    let d = dir.path();
    assert!(good(d, &["schedule", "p.ks", "scale"]).contains("< x_size0"));
    for more in [&["--size", "n=12"][..], &["2.0", "[1,2,3,4,5,6,7,8,9,10,11,12]"]] {
        for apply in [&[][..], &["--apply", "default"]] {
            let shown = good(d, &[&["schedule", "p.ks", "scale"], apply, more].concat());
            assert!(!shown.contains("x_size0"), "{shown}");
        }
    }
    let emit = ["emit", "p.ks", "scale", "--target", "nest", "--schedule", "default"];
    assert!(good(d, &[&emit[..], &["--size", "n=12"]].concat()).contains(" 12)"));
    assert!(!good(d, &emit).contains(" 12)"));
    let unknown = bad(d, 1, &[&emit[..], &["--size", "m=12"]].concat());
    assert!(unknown.contains("`m`"), "{unknown}");
}

/// Protects: programs run under the default schedule unless another is asked for, as they stand where there is none, and under
/// steps that were printed for their sizes alone.
#[test]
fn programs_run_under_a_schedule_unasked() {
    let dir = dir();
    let d = dir.path();
    let text = "(def power Float ((x : Float) (n : Integer)) (if (gt n 0) (mul x (power x (sub n 1))) 1.0))
        (def both (Tensor 3 Float32) (x : (Tensor 3 Float32) (h w c))
          (build (tuple h w c) (lam ((y : Integer) (z : Integer) (k : Integer))
            (exp (add (index (tuple y z k) x) (index (tuple y (max 0 (sub z 1)) k) x))))))";
    std::fs::write(d.join("s.ks"), text).unwrap();
    let timed = |args: &[&str]| -> serde_json::Value {
        let told = good(d, &[&["run", "s.ks"], args, &["--time", "1", "--json"]].concat());
        serde_json::from_str(told.lines().last().unwrap()).unwrap()
    };
    let by_itself = timed(&["power", "2.0", "3"]);
    assert_eq!((&by_itself["value"], &by_itself["schedule"]), (&8.0.into(), &serde_json::Value::Null));
    assert!(bad(d, 2, &["run", "s.ks", "power", "2.0", "3", "--schedule", "default"]).contains("recursion"));
    let row: Vec<String> = (0..20).map(|k| format!("[{k},1,{}]", 20 - k)).collect();
    let x = format!("[[{}]]", row.join(","));
    let (plain, default) = (timed(&["both", &x, "--schedule", "none"]), timed(&["both", &x]));
    assert_eq!((&plain["schedule"], &default["schedule"]), (&serde_json::Value::Null, &"default".into()));
    assert_eq!(plain["value"], default["value"]);
    let sizes = ["--size", "h=1", "--size", "w=20", "--size", "c=3"];
    let steps = ["schedule", "s.ks", "both", "--apply", "default", "--steps"];
    let printed = good(d, &[&steps[..], &sizes].concat());
    assert!(printed.contains("fuse "), "{printed}");
    std::fs::write(d.join("s.sched"), printed).unwrap();
    let by_file = timed(&["both", &x, "--schedule", "s.sched"]);
    assert_eq!((&by_file["value"], &by_file["schedule"]), (&default["value"], &"s.sched".into()));
    let other = bad(d, 1, &["run", "s.ks", "both", &x, "--schedule", "s.sched", "--general"]);
    assert!(other.contains("s.sched:"), "{other}");
}
