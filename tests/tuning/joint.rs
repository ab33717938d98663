//! `daedal tune`: equivalent programs keep the values of the source, what does not is never chosen, and runs go on from records.

use crate::common::command::{daedal, good};
use daedal::diag::{Result, Source};
use daedal::eval::Interpreter;
use daedal::ir::print;
use daedal::machine::Machine;
use daedal::pipeline::close::apart;
use daedal::pipeline::joint::{self, Bench, Contender, Options};
use daedal::pipeline::variants::variants;
use daedal::rules::Level;
use daedal::stage::extract;
use daedal::tune::explore::{Settings, Way};
use daedal::tune::record::{Known, Outcome};
use daedal::tune::{Model, example};

const TEXT: &str = "(def f (Vec Float) ((a : (Tensor 2 Float) (n m)) (x : (Vec Float) m))
  (let (y (build n (lam (i : Integer) (sumbuild m (lam (j : Integer)
            (mul (index (tuple i j) a) (mul 3.0 (exp (index j x)))))))))
    (build n (lam (i : Integer) (div (index i y) (sum y))))))\n";

fn sizes() -> Vec<(String, u64)> {
    [("n", 40), ("m", 30)].map(|(n, v)| (n.to_string(), v)).into()
}

/// Protects: equivalent programs differ in their text, and in their values by rounding alone; where bits are to stay, not at all.
#[test]
fn variants_have_the_values_of_the_source() {
    let program = daedal::types::program(&Source::new("f.ks", TEXT)).unwrap();
    let def = program.named("f")[0];
    let args = example::arguments(def, &sizes(), 3).unwrap();
    let want = Interpreter::new(&program).run(def, &args).unwrap();
    for float in [Level::Real, Level::Exact] {
        let all = variants(&program, "f", (float, &sizes()), &|_| None).unwrap();
        assert!(all.len() >= 2 && all[0].names == ["source"], "{:?}", all.iter().map(|v| &v.names).collect::<Vec<_>>());
        for v in &all {
            let have = Interpreter::new(&v.program).run(v.program.named("f")[0], &args).unwrap();
            assert_eq!(apart(&have, &want), None, "{:?}\n{}", v.names, print::program(&v.program));
            assert!(float == Level::Real || have == want, "{:?}", v.names);
        }
    }
}

/// Gives times by the number of the program, and refuses some.
struct MadeUp {
    seconds: Vec<f64>,
    refused: Vec<usize>,
    asked: usize,
}

impl Bench for MadeUp {
    fn refused(&mut self, k: usize) -> Result<Option<String>> {
        Ok(self.refused.contains(&k).then(|| "it differs".to_string()))
    }

    fn measure(&mut self, k: usize, steps: &[String]) -> Result<Vec<Outcome>> {
        self.asked += steps.len();
        let of = |s: &String| self.seconds[k] * (1.0 + 1e-3 * s.len() as f64);
        Ok(steps.iter().map(|s| Outcome::Seconds { min: of(s), median: of(s) }).collect())
    }
}

/// Protects: the program that is measured to be the fastest is chosen, never one that was refused; no more is measured than was
/// asked for; and where the source cannot be measured, that is an error.
#[test]
fn the_fastest_program_is_chosen() {
    let program = daedal::types::program(&Source::new("f.ks", TEXT)).unwrap();
    let def = program.named("f")[0];
    let args = example::arguments(def, &sizes(), 3).unwrap();
    let machine = Machine { vector_bytes: 32, threads: 2, caches: [32 << 10, 1 << 20, 8 << 20] };
    let choose = |seconds: [f64; 3], refused: &[usize], measurements: usize| {
        let graph = || extract(&program, def).unwrap_or_else(|u| panic!("{}", u.diagnostic(&program)));
        let all = (0..3).map(|_| Contender { def, graph: graph(), known: Known::default() }).collect();
        let search = Settings { way: Way::Beam, beam: 2, evaluations: 60, seed: 0, keep: 8 };
        let options = Options { model: Model::default(), search, measurements, stop: &|| false };
        let mut bench = MadeUp { seconds: seconds.into(), refused: refused.to_vec(), asked: 0 };
        let found = joint::choose(all, (&args, &machine), &options, &mut bench);
        assert!(bench.asked <= measurements, "{} of {measurements}", bench.asked);
        found.map(|(k, _)| k)
    };
    assert_eq!(choose([3.0, 2.0, 1.0], &[], 20).unwrap(), 2);
    assert_eq!(choose([1.0, 2.0, 3.0], &[], 20).unwrap(), 0);
    assert_eq!(choose([3.0, 2.0, 1.0], &[2], 20).unwrap(), 1);
    assert_eq!(choose([3.0, 2.0, 1.0], &[1, 2], 7).unwrap(), 0);
    assert!(choose([3.0, 2.0, 1.0], &[0], 20).unwrap_err().render().contains("it differs"));
}

/// Protects: source in, program and schedule out, which `run` takes; the same records give the same result, and nothing is
/// measured twice.
#[test]
fn tuning_writes_what_runs_and_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    std::fs::write(d.join("f.ks"), TEXT).unwrap();
    let words =
        ["tune", "f.ks", "f", "--size", "n=40", "--size", "m=30", "--measurements", "8", "--records", "r.jsonl"];
    let with = |more: &[&'static str]| -> Vec<&str> { words.iter().copied().chain(more.iter().copied()).collect() };
    let object = |text: &str| -> serde_json::Value { serde_json::from_str(text.trim()).unwrap() };
    let first = object(&good(d, &with(&["--json", "-o", "fast.ks"])));
    let records = std::fs::read_to_string(d.join("r.jsonl")).unwrap();
    assert!(records.lines().count() <= 8 && first["programs"].as_array().unwrap().len() >= 2, "{first}");
    let second = object(&good(d, &with(&["--json"])));
    assert_eq!((&first["program"], &first["steps"]), (&second["program"], &second["steps"]));
    assert_eq!(std::fs::read_to_string(d.join("r.jsonl")).unwrap(), records);
    std::fs::write(d.join("r.jsonl"), records.clone() + "no record\n").unwrap();
    let notes = String::from_utf8_lossy(&daedal(d, &with(&["--json"])).stderr).into_owned();
    assert_eq!(notes, "note: 1 line of r.jsonl cannot be read; nothing there is changed\n");
    let (a, x) = ("[[1.0,2.0],[3.0,4.0]]", "[0.5,0.25]");
    let run = |file: &str, more: &[&str]| -> Vec<f64> {
        let words: Vec<&str> = ["run", file, "f"].into_iter().chain(more.iter().copied()).chain([a, x]).collect();
        serde_json::from_str(good(d, &words).trim()).unwrap()
    };
    let (want, have) = (run("f.ks", &[]), run("fast.ks", &["--float", "real", "--schedule", "fast.sched"]));
    assert!(want.iter().zip(&have).all(|(a, b)| (a - b).abs() < 1e-12), "{want:?} {have:?}");
    let shown = good(d, &with(&[]));
    assert!(shown.contains("; * ") && shown.contains("source"), "{shown}");
}
