//! The binary as a user meets it: output, exit codes, files.
#![allow(clippy::unwrap_used, reason = "a test that meets what it does not expect should stop there")]

mod common;

use common::root;
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
        (&["eval", "p.ks", "scale", "1", "@x.txt"], "expected a file that ends in `.npy` or `.json`"),
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
        ("3", "x.csv", "expected an output that ends in `.npy` or `.json`"),
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
