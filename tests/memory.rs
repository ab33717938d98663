//! What memory derivatives take is known before they run, and bounded: no run takes more than was said, what fits is the
//! same gradient, and what does not fit is said by name.
#![allow(clippy::unwrap_used, reason = "a test that meets what it does not expect should stop there")]

mod common;

use common::calls::{Call, asked};
use common::command::{daedal, good, refused};
use common::generate::{self, Knobs};
use common::native::quick;
use common::{agree, agree_from, arguments, corpus};
use daedal::ad::keeping::Keeping;
use daedal::ad::{self, Made, Mode, Wanted};
use daedal::cost::Model;
use daedal::eval::{Interpreter, Value};
use daedal::ir::{Body, Def, Lit, Program};
use daedal::machine::Machine;
use daedal::pipeline::bounded::{Bound, Choice, choose};
use daedal::pipeline::needs::{self, Known};
use daedal::pipeline::{native, simplify};
use daedal::rules::Level;
use rayon::prelude::*;
use std::path::Path;

/// A machine of one thread, whose memory the interpreter of nests counts.
fn machine() -> Machine {
    Machine { threads: 1, ..Machine::host() }
}

/// The bytes that a definition is said to take, and those that its nest takes; nothing where it has no value, only the
/// interpreter runs it, or data decide.
fn both(program: &Program, def: &Def, args: &[Value]) -> Option<(u64, u64)> {
    let incoming = Known::Arguments(args).incoming(def).unwrap();
    let held = needs::held(program, def, &incoming, &machine()).ok()?;
    let schedule = needs::default_schedule(program, def, &incoming, &machine());
    let done = native::counted(program, def, schedule.as_ref(), (args, &machine()), &mut String::new()).ok()?;
    (done.scheduled == schedule.is_some()).then_some((held.bytes, done.tally.peak_bytes?))
}

fn wanted(def: &Def) -> Wanted {
    let wrt = def.params.iter().map(|p| ad::has_floats(p.ty)).collect();
    Wanted { fun: def.fun, mode: Mode::Reverse, wrt, value: false, checkpoint: false }
}

/// A derivative that keeps so much, as `grad` prints it.
fn made(program: &Program, def: &Def, keeping: &Keeping) -> daedal::diag::Result<Made> {
    let made = ad::derive_keeping(program, &wanted(def), keeping)?;
    let by_itself = |def: &Def| !program.defs.contains_key(&def.fun);
    Ok(Made { program: simplify::simplified(&made.program, &by_itself, Level::Exact)?, ..made })
}

fn floats(of: impl IntoIterator<Item = f64>) -> Value {
    let data: Vec<Value> = of.into_iter().map(|v| Value::Scalar(Lit::float(v))).collect();
    Value::tensor(vec![data.len()], data.into())
}

/// Protects: no run takes more memory than its nest was said to take, and nearly all take about as much: programs of the
/// corpus, random ones, and gradients of both, whatever these keep.
#[test]
fn no_run_takes_more_than_was_said() {
    let compared = |name: &str, program: &Program, def: &Def, args: &[Value]| -> Vec<bool> {
        let mut out = vec![];
        let mut one = |program: &Program, def: &Def, args: &[Value]| {
            let Some((said, taken)) = both(program, def, args) else { return };
            assert!(taken <= said, "{name} {}: {said} bytes were said, and {taken} are taken", def.name());
            // Lines of the cache are counted whole, and of conditions the larger arm.
            out.push(said as f64 <= 1.1 * taken as f64 + 2048.0);
        };
        one(program, def, args);
        let Ok(value) = Interpreter::new(program).run(def, args) else { return out };
        let differentiable = ad::has_floats(def.fun.sig().ret) && def.params.iter().any(|p| ad::has_floats(p.ty));
        if differentiable {
            let args = [args, &[ad::check::change(&value, 3)]].concat();
            for keeping in [Keeping::everything(), Keeping::few()] {
                let Ok(Made { program, fun, .. }) = made(program, def, &keeping) else { continue };
                one(&program, &program.defs[&fun], &args);
            }
        }
        out
    };
    let of_corpus: Vec<bool> = corpus()
        .par_iter()
        .flat_map_iter(|case| case.runs.iter().map(move |run| (case, run)))
        .flat_map_iter(|(case, run)| {
            let defs = case.program.named(&run.def);
            let found = defs.iter().find(|d| matches!(d.body, Body::Term(_)));
            let args = found.and_then(|def| arguments(def, &run.args).ok());
            found.zip(args).map_or(vec![], |(def, args)| compared(&case.name, &case.program, def, &args))
        })
        .collect();
    let random: Vec<bool> = (0..400_u64)
        .into_par_iter()
        .flat_map_iter(|seed| {
            let knobs = Knobs { budget: 30, failing: seed % 3 == 0, corners: seed % 2 == 1, ..Knobs::PLAIN };
            let made = generate::program(seed, &knobs);
            let program = common::read("random", &made.text).unwrap();
            let def = program.named("main")[0];
            let args = arguments(def, &made.args).unwrap();
            compared(&format!("seed {seed}"), &program, def, &args)
        })
        .collect();
    for (what, all, least) in [("of the corpus", of_corpus, 400), ("random", random, 400)] {
        let near = all.iter().filter(|near| **near).count();
        println!("{what}: {near} of {} within 10%", all.len());
        assert!(all.len() >= least && near * 10 >= all.len() * 9, "{what}: {near} of {} within 10%", all.len());
    }
}

const FOLDS: &str = "
(def wide Float ((w : (Vec Float) d) (xs : (Vec Float) n) (ys : (Vec Float) m))
  (let ((a (fold (lam ((s : (Vec Float)) (x : Float))
                   (let (t (build d (lam (i : Integer) (exp (mul (index i w) (index i s))))))
                     (build d (lam (i : Integer) (tanh (add (index i t) (mul x (sum t))))))))
                 w xs))
        (b (fold (lam ((s : Float) (y : Float)) (sin (add (mul s y) (sum a)))) 1.0 ys)))
    b))
(def steps (Vec Float) ((w : (Vec Float) d) (xs : (Vec Float) n) (ys : (Vec Float) m))
  (fold (lam ((s : (Vec Float)) (x : Float))
          (let (a (build d (lam (i : Integer) (sin (mul x (index i s))))))
            (fold (lam ((t : (Vec Float)) (y : Float))
                    (build d (lam (i : Integer) (tanh (add (mul (index i t) y) (mul (index i a) (index i w)))))))
                  s ys)))
        w xs))
(def scanned Float ((w : (Vec Float) d) (xs : (Vec Float) n) (ys : (Vec Float) m))
  (let (t (scan (lam ((s : (Vec Float)) (i : Integer))
                  (let (u (build d (lam (j : Integer) (exp (mul 0.1 (mul (index i xs) (index j s)))))))
                    (build d (lam (j : Integer) (sin (add (index j u) (mul (index j w) (sum u))))))))
                w n))
    (sumbuild m (lam (k : Integer) (mul (index k ys) (sum (index k t)))))))
";

fn sizes() -> Vec<(String, u64)> {
    [("d", 24), ("n", 150), ("m", 40)].map(|(name, n)| (name.to_string(), n)).to_vec()
}

fn chosen(program: &Program, def: &Def, bytes: u64) -> daedal::diag::Result<Choice> {
    let sizes = sizes();
    let known = Known::Sizes(&sizes);
    let bound = Bound { bytes, known, tangents: &[], model: Model::Analytic, machine: Machine::host() };
    choose((program, def), &bound, &|keeping| made(program, def, keeping))
}

/// Protects: under a bound of memory the gradient is the same one, takes as much as was said when it runs, and costs no less
/// than one that may take more; where everything fits, everything is kept.
#[test]
fn gradients_fit_in_memory() {
    let program = common::read("folds", FOLDS).unwrap();
    let toolchain = quick("memory");
    let args = [floats((0..24).map(|k| 0.3 - 0.02 * f64::from(k))), floats((0..150).map(|k| 0.01 * f64::from(k % 13)))];
    let args = [&args[..], &[floats((0..40).map(|k| 0.5 - 0.03 * f64::from(k % 11)))]].concat();
    for def in program.defs.values() {
        let value = Interpreter::new(&program).run(def, &args).unwrap();
        let args = [&args[..], &[ad::check::change(&value, 3)]].concat();
        let all = chosen(&program, def, u64::MAX).unwrap();
        assert_eq!(all.best.keeping, Keeping::everything(), "{}", def.name());
        let want = Interpreter::new(&all.best.made.program).run(&all.best.made.program.defs[&all.best.made.fun], &args);
        let want = want.unwrap();
        let (mut bytes, mut cost, mut fewer) = (all.best.held.bytes, all.best.cost, 0);
        // Each time one byte less than the last one takes, until nothing does.
        while let Ok(Choice { best, .. }) = chosen(&program, def, bytes - 1) {
            let of = &best.made.program;
            let native = native::compile(of, &of.defs[&best.made.fun], &toolchain).unwrap();
            let schedule = needs::default_schedule(
                of,
                &of.defs[&best.made.fun],
                &Known::Arguments(&args).incoming(&of.defs[&best.made.fun]).unwrap(),
                &Machine::host(),
            );
            let native = match schedule {
                Some(s) => native::compile_scheduled(of, &of.defs[&best.made.fun], &s, &toolchain).unwrap(),
                None => native,
            };
            let timed = native.time(&args, 1).unwrap();
            assert!(agree(&timed.value, &want, 1e-9), "{} in {bytes} bytes is another gradient", def.name());
            assert!(timed.peak_bytes <= best.held.bytes, "{}: {} of {bytes}", def.name(), timed.peak_bytes);
            assert!(best.held.bytes < bytes, "{}", def.name());
            println!("{} in {}: cost {:.0}, peak {}", def.name(), best.held.bytes, best.cost, timed.peak_bytes);
            (bytes, fewer) = (best.held.bytes, fewer + 1);
            cost = f64::max(cost, best.cost);
        }
        // What the steps of a scan bind is stored by its schedule on the way back, too.
        let saves = fewer >= 1 && cost > all.best.cost;
        assert!(saves || def.name() == "scanned", "{} always takes the same", def.name());
        let why = chosen(&program, def, bytes - 1).err().unwrap().to_string();
        let said = ["no derivative of", "is the least", "of that, `", "bytes"].iter().all(|part| why.contains(part));
        assert!(said, "{why}");
    }
}

/// Protects: whatever is kept of which fold, scan or loop, the gradient is the same: of the corpus and of random programs.
#[test]
fn whatever_is_kept_the_gradient_is_the_same() {
    let same = |&Call { name, program, def, args, seed }: &Call<'_>| {
        let Ok(plain) = made(program, def, &Keeping::everything()) else { return false };
        let decisions = &plain.decisions;
        if decisions.sequences.is_empty() || !ad::has_floats(def.fun.sig().ret) {
            return false;
        }
        let Ok(value) = Interpreter::new(program).run(def, args) else { return false };
        let args = [args, &[ad::check::change(&value, 3)]].concat();
        let run = |of: &Made| Interpreter::new(&of.program).run(&of.program.defs[&of.fun], &args);
        let Ok(want) = run(&plain) else { return false };
        for round in 0..4_u64 {
            let mut random = seed.wrapping_mul(4).wrapping_add(round).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut next = |n: u64| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (random >> 33) % n
            };
            let mut keeping = Keeping::everything();
            for place in decisions.sequences.keys() {
                use daedal::ad::keeping::Keep;
                let keep = [Keep::Values, Keep::States, Keep::Few][next(3) as usize];
                keeping = keeping.with(*place, keep);
            }
            for fun in decisions.functions.iter().filter(|_| next(2) == 0) {
                keeping = keeping.without_tables(*fun);
            }
            let less = made(program, def, &keeping).unwrap_or_else(|d| panic!("{name} {}: {d}", def.name()));
            let found = run(&less).unwrap_or_else(|d| panic!("{name} {} {keeping:?}: {d}", def.name()));
            let good = agree_from(&found, &want, 1e-7, 1e-6);
            let (found, want) = (found.to_json(), want.to_json());
            assert!(good, "{name} {} {keeping:?}: {found} is not {want}", def.name());
        }
        true
    };
    let [of_corpus, random] = asked(1600, &["(fold ", "(scan "], &same);
    assert!(of_corpus >= 40 && random >= 200, "only {of_corpus} of the corpus and {random} random ones compared");
}

/// A folder with a program in it.
fn folder(text: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("p.ks"), text).unwrap();
    dir
}

/// Protects: what the command says of a bound, for people and machines, with sizes that are told and with arguments.
#[test]
fn the_command_says_what_is_kept() {
    let dir = folder(FOLDS);
    let d = dir.path();
    let told = ["--size", "d=24", "--size", "n=150", "--size", "m=40"];
    fn grad<'a>(more: &[&'a str], told: &[&'a str]) -> Vec<&'a str> {
        [&["grad", "p.ks", "wide"], more, told].concat()
    }
    let o = daedal(d, &grad(&["--max-memory", "0.04", "-o", "g.ks"], &told));
    let said = String::from_utf8_lossy(&o.stderr).to_string();
    assert!(o.status.success(), "{said}");
    assert!(said.contains("note: `rev$wide` takes ") && said.contains("of 41943 bytes"), "{said}");
    assert!(said.contains("it keeps √n states of the fold at 3:12"), "{said}");
    assert!(said.contains("makes again the other states of the fold at 3:12"), "{said}");
    let json: serde_json::Value =
        serde_json::from_str(&good(d, &grad(&["--max-memory", "0.04", "--json"], &told))).unwrap();
    let memory = &json["memory"];
    assert!(memory["bytes"].as_u64() <= memory["bound"].as_u64() && memory["bytes"].is_u64(), "{memory}");
    assert!(memory["again"].as_array().is_some_and(|all| !all.is_empty()), "{memory}");
    for more in [&["--value"][..], &["--mode", "hvp"], &["--wrt", "w", "--optimize"]] {
        let args = [&["--max-memory", "0.5", "--json"], more].concat();
        let json: serde_json::Value = serde_json::from_str(&good(d, &grad(&args, &told))).unwrap();
        assert!(json["memory"]["bytes"].as_u64() <= Some(1 << 19), "{more:?}: {json}");
    }
    let by_arguments = ["grad", "p.ks", "wide", "[0.5,0.25]", "[1,2,3]", "[1]", "--max-memory", "1"];
    assert!(good(d, &by_arguments).starts_with("(def rev$wide "));
}

/// Protects: options that mean nothing, sizes that nobody told, and bounds that nothing fits in are the user's mistakes.
#[test]
fn bounds_that_mean_nothing_are_refused() {
    let dir = folder("
(def loss Float ((x : (Vec Float) n) (k : Integer)) (sumbuild k (lam (i : Integer) (index i x))))
(def nameless Float (x : (Vec Float)) (sum x))
(def data Float ((x : (Vec Float) n) (ks : (Vec Integer) n))
  (sumbuild n (lam (i : Integer)
    (let (t (fold (lam ((s : (Vec Float)) (y : Float)) (build (index i ks) (lam (j : Integer) (sin (add y (index j s))))))
                  (build (index i ks) (lam (j : Integer) (index i x))) x))
      (sum t)))))
");
    let d = dir.path();
    for (args, part) in [
        (&["loss", "--max-memory", "1", "--mode", "fwd"][..], "`--max-memory` is for reverse mode only"),
        (&["loss", "--max-memory", "1", "--size", "n=9"], "`--size k=N` is needed"),
        (&["loss", "--max-memory", "1", "--size", "m=9"], "names a size `m`"),
        (&["nameless", "--max-memory", "1"], "`x` has sizes or integers without names"),
        (
            &["loss", "--max-memory", "0.000001", "--size", "n=9", "--size", "k=3"],
            "no derivative of `loss` fits in 1 bytes",
        ),
        (&["data", "--max-memory", "1", "--size", "n=9"], "how much memory `rev$data"),
    ] {
        let said = refused(d, &[&["grad", "p.ks"], args].concat());
        assert!(said.contains(part), "{args:?}: {said}");
    }
    for args in [&["--max-memory", "0"][..], &["--max-memory", "1", "--checkpoint"], &["--max-memory", "1", "--check"]]
    {
        let o = daedal(d, &[&["grad", "p.ks", "nameless"], args].concat());
        assert_eq!(o.status.code(), Some(1), "{args:?}: {}", String::from_utf8_lossy(&o.stderr));
    }
}

/// What a command says that runs in so many kilobytes of addresses.
#[cfg(target_os = "linux")]
fn cramped(dir: &Path, kilobytes: u64, args: &str) -> (Option<i32>, String) {
    let line = format!("ulimit -v {kilobytes}; exec {} {args}", env!("CARGO_BIN_EXE_daedal"));
    let mut command = std::process::Command::new("sh");
    let o = command.current_dir(dir).env("DAEDAL_CACHE", dir.join("cache")).args(["-c", &line]).output().unwrap();
    (o.status.code(), String::from_utf8_lossy(&o.stderr).to_string())
}

/// Protects: a tensor that is too large for memory is named, with sizes and bytes, however it is run; of a derivative it is
/// said how to make one that takes less.
#[cfg(target_os = "linux")]
#[test]
fn tensors_that_do_not_fit_are_named() {
    let dir = folder(
        "
(def table Float (n : Integer)
  (let (t (build n (lam (i : Integer) (build n (lam (j : Integer) (sin (to_float (add i j))))))))
    (index 3 (index 2 t))))
(def long Float (n : Integer)
  (let (states (scan (lam ((s : Float) (i : Integer)) (sin (add s (to_float i)))) 1.0 n)) (index (sub n 1) states)))
(def end Float ((x : Float) (n : Integer))
  (fold (lam ((s : Float) (k : Integer)) (sin (mul s x))) 1.0 (build n (lam (i : Integer) i))))
(gdef rev [end (Tuple Float Integer)])
",
    );
    let d = dir.path();
    for (args, parts) in [
        (
            "run p.ks table 100000",
            &["a tensor of size (100000 100000) is too large", "takes 80000000000 bytes", "room for"][..],
        ),
        (
            "run p.ks long 9000000000000",
            &["a tensor of size 9000000000000 is too large", "`states` takes 72000000000000 bytes"],
        ),
        ("run p.ks long 9000000000000 --count", &["`states` takes 72000000000000 bytes"]),
        (
            "eval p.ks long 9000000000000",
            &["a tensor of size 9000000000000 is too large", "`states` takes 72000000000000 bytes"],
        ),
        (
            "run p.ks '[rev end]' '[0.5,600000000]' 1.0",
            &["size 600000000 is too large", "takes 4800000000 bytes", "hint: `daedal grad`"],
        ),
        (
            "eval p.ks '[rev end]' '[0.5,600000000]' 1.0",
            &["size 600000000 is too large", "takes 4800000000 bytes", "hint: `daedal grad`"],
        ),
    ] {
        let (code, said) = cramped(d, 3_000_000, args);
        assert_eq!(code, Some(2), "{args}: {said}");
        assert!(parts.iter().all(|part| said.contains(part)), "{args}: {said}");
        assert!(!said.contains("hint:") || args.contains("rev"), "{args}: {said}");
    }
}
