//! Searches of schedules: what they return keeps every bit, measurements are kept and never repeated, and what fails is
//! never chosen.

use crate::common;
use crate::common::command::{daedal, good, refused};
use crate::common::native::difference;
use daedal::diag::Source;
use daedal::eval::{Interpreter, Value};
use daedal::ir::{Def, Lit, Program};
use daedal::machine::Machine;
use daedal::nest::interpret;
use daedal::pipeline::native;
use daedal::pipeline::tuning::{self, Mode, Options, Tuned};
use daedal::schedule::{Schedule, text};
use daedal::stage::{Graph, extract};
use daedal::tune::edits::offspring;
use daedal::tune::explore::{Settings, Way, search};
use daedal::tune::record::{self, Known, Outcome, Record};
use daedal::tune::tree::steps;
use daedal::tune::work::{self, Work};
use daedal::tune::{Judged, Model, Tree, example};

/// Programs of several stages: products, chains of stencils, normalizations.
fn kernels() -> Program {
    let path = common::root("benches/schedules/kernels.ks");
    daedal::types::program(&Source::new("kernels.ks", std::fs::read_to_string(path).unwrap())).unwrap()
}

fn graph(program: &Program, def: &Def) -> Graph {
    extract(program, def).unwrap_or_else(|u| panic!("{}", u.diagnostic(program)))
}

fn sizes(of: &[(&str, u64)]) -> Vec<(String, u64)> {
    of.iter().map(|(n, v)| ((*n).to_string(), *v)).collect()
}

/// Two threads and small vectors, so that small sizes have whole ones.
fn machine() -> Machine {
    Machine { vector_bytes: 32, threads: 2, caches: [32 << 10, 1 << 20, 8 << 20] }
}

const EACH: [&str; 9] = [
    "product",
    "products",
    "columns_times_vector",
    "softmax",
    "attention",
    "blur",
    "clamped_blur",
    "convolution",
    "corners",
];

/// The sizes of small images and matrices, primes and smaller than a vector included.
fn some_sizes(k: usize) -> Vec<(String, u64)> {
    let all = [[13, 11, 9, 17], [32, 16, 8, 64], [7, 5, 6, 7], [64, 33, 2, 10]];
    let [a, b, c, d] = all[k % all.len()];
    sizes(&[("n", a), ("m", b), ("p", c), ("z", 3), ("d", c), ("h", a), ("w", d), ("a", 3), ("b", 4)])
}

fn wrong(program: &Program, def: &Def, schedule: &Schedule, args: &[Value]) -> Option<String> {
    let want = Interpreter::new(program).run(def, args);
    let nest = native::scheduled_nest(def, schedule, &machine())
        .unwrap_or_else(|d| panic!("{}\n{}", d.render(), steps(schedule)));
    let have = interpret(&nest, args, &mut String::new());
    difference(&want, &have).map(|d| format!("{}: {d}\n{}\n{nest}", def.name(), steps(schedule)))
}

/// Protects: every schedule that a search comes by has the program's bits, at the sizes it was made for and at others.
#[test]
fn searched_schedules_change_no_bit() {
    let program = kernels();
    let mut checked = 0;
    for (k, name) in EACH.into_iter().enumerate() {
        let def = program.named(name)[0];
        let args = example::arguments(def, &some_sizes(k), 1).unwrap();
        let tree = Tree::new(def, Schedule::new(graph(&program, def)), example::incoming(def, &args), machine());
        let settings = Settings { way: Way::Random, beam: 1, evaluations: 60, seed: k as u64, keep: 6 };
        let (mut found, tally) = search(&tree, &Model::default(), &settings, &|| false);
        assert!(tally.evaluations >= 20, "{name}: only {} schedules were judged", tally.evaluations);
        let mut parents: Vec<Schedule> = found.iter().map(|j| j.schedule.clone()).collect();
        parents.extend(vec![daedal::schedule::default(graph(&program, def), &machine()); 6]);
        found.extend(offspring(&tree, &Model::default(), &parents, 12, 3));
        for (i, Judged { schedule, .. }) in found.iter().enumerate() {
            let others = example::arguments(def, &some_sizes(k + i + 1), 2).unwrap();
            let special = schedule.specialized(&example::incoming(def, &others));
            for (schedule, args) in [(schedule, &args), (schedule, &others), (&special, &others)] {
                assert_eq!(wrong(&program, def, schedule, args), None);
            }
            checked += 1;
        }
    }
    assert!(checked >= 60, "only {checked} schedules were checked");
}

/// Protects: code for stated sizes is of no use for others, and says so.
#[test]
fn specialized_code_refuses_other_sizes() {
    let program = kernels();
    let def = program.named("blur")[0];
    let at = |h: u64, w: u64| example::arguments(def, &sizes(&[("h", h), ("w", w)]), 1).unwrap();
    let special = Schedule::new(graph(&program, def)).specialized(&example::incoming(def, &at(9, 12)));
    let nest = native::scheduled_nest(def, &special, &machine()).unwrap();
    assert!(interpret(&nest, &at(9, 12), &mut String::new()).is_ok());
    let other = interpret(&nest, &at(12, 9), &mut String::new()).unwrap_err();
    assert!(other.message.contains("the reference nest was to run"), "{}", other.message);
}

/// Protects: how many there are is a number in code for a call where a float that comes in decides it; other floats of as many
/// are taken, and those of more or fewer refused.
#[test]
fn floats_that_decide_sizes_are_known() {
    let text = "(def grid (Vec Float) ((range : Float) (x : Float))
      (build (add 2 (cast Integer (div 1.0 range))) (lam (i : Integer) (mul x (mul range (to_float i))))))";
    let program = daedal::types::program(&Source::new("grid", text)).unwrap_or_else(|d| panic!("{}", d.render()));
    let def = program.named("grid")[0];
    let args = |range: f64| [range, 0.3].map(|v| Value::Scalar(Lit::float(v))).to_vec();
    let special = graph(&program, def).specialized(&example::incoming(def, &args(0.1)));
    assert!(special.to_string().contains("< 12]"), "{special}");
    let schedule = daedal::schedule::default(special, &machine());
    let nest = native::scheduled_nest(def, &schedule, &machine()).unwrap();
    for range in [0.1, 0.099, 0.0999] {
        assert_eq!(wrong(&program, def, &schedule, &args(range)), None);
        assert!(interpret(&nest, &args(range), &mut String::new()).is_ok(), "{range}\n{nest}");
    }
    for range in [0.101, 0.05, 2.0, f64::NAN, 0.0, -1.0] {
        let other = interpret(&nest, &args(range), &mut String::new()).unwrap_err();
        assert!(other.message.contains("the reference nest was to run"), "{range}: {}", other.message);
    }
}

/// Protects: the same seed finds the same schedules, whatever runs beside it, and the text of each reads back as itself.
#[test]
fn searches_are_deterministic_and_their_steps_read_back() {
    let program = kernels();
    let def = program.named("corners")[0];
    let args = example::arguments(def, &sizes(&[("h", 64), ("w", 96)]), 1).unwrap();
    let tree = Tree::new(def, Schedule::new(graph(&program, def)), example::incoming(def, &args), machine());
    for way in [Way::Greedy, Way::Beam, Way::Mb2fbs, Way::Mcts, Way::Random] {
        let settings = Settings { way, beam: 2, evaluations: 150, seed: 5, keep: 4 };
        let found = || search(&tree, &Model::default(), &settings, &|| false).0;
        let (one, other) = (found(), found());
        let texts = |all: &[Judged]| all.iter().map(|j| steps(&j.schedule)).collect::<Vec<_>>();
        assert_eq!(texts(&one), texts(&other), "{way:?}");
        assert!(!one.is_empty(), "{way:?} finds nothing");
        for (j, text) in one.iter().zip(texts(&one)) {
            let read = text::apply(Schedule::new(graph(&program, def)), &Source::new("s.sched", text.clone()));
            let read = read.unwrap_or_else(|d| panic!("{}", d.render()));
            assert_eq!((steps(&read), read.plans), (text, j.schedule.plans.clone()));
        }
    }
}

/// The work of a product under steps.
fn product(n: u64, steps: &str, threads: usize) -> Work {
    let program = kernels();
    let def = program.named("product")[0];
    let args = example::arguments(def, &sizes(&[("n", n), ("m", n), ("p", n)]), 1).unwrap();
    let incoming = example::incoming(def, &args);
    let read = text::apply(Schedule::new(graph(&program, def)), &Source::new("s.sched", steps));
    let schedule = read.unwrap_or_else(|d| panic!("{}", d.render())).specialized(&incoming);
    let nest = daedal::schedule::lower(&schedule, def).unwrap();
    work::count(&nest.entry, &incoming, &Machine { threads, ..machine() })
}

/// Protects: the model counts loops as later passes leave them, with the numbers of iterations that they have: in vectors where
/// nothing is clamped, and strips of rows as long as they are.
#[test]
fn counted_work_is_what_later_passes_leave() {
    let program = kernels();
    let work = |name: &str, steps: &str| {
        let def = program.named(name)[0];
        let args = example::arguments(def, &sizes(&[("h", 512), ("w", 512)]), 1).unwrap();
        let tree = Tree::new(def, Schedule::new(graph(&program, def)), example::incoming(def, &args), machine());
        let s = text::apply(Schedule::new(graph(&program, def)), &Source::new("s", steps.to_string())).unwrap();
        tree.work(&s).unwrap().0
    };
    // `across` has no vectors by steps, but for what is between its ends.
    let (clamped, blur) = (work("clamped_blur", "compute-root across"), work("blur", "compute-root across"));
    assert!(clamped[0] < blur[0] && clamped[6] < 0.5 * 512.0 * 512.0, "{clamped:?} {blur:?}");
    let strips = "split tensor y 32\ncompute-at across tensor yo\nparallel tensor yo\n";
    let (whole, strips) =
        (work("blur", "compute-root across\nparallel tensor y\nparallel across y"), work("blur", strips));
    assert!(strips[4] < 1.5 * whole[4], "{strips:?} {whole:?}");
}

/// Protects: what the model counts is what schedules are for: a chain of additions waits for itself, tiles of accumulators
/// do not; rows that are read again and again come from a far cache, blocks of them do not; threads share work.
#[test]
fn counted_work_is_what_schedules_change() {
    let vectors = "split sum j 8\nreorder sum i jo k ji\nvectorize sum ji\n";
    let tiled = "split sum j 16\nsplit sum ji 8\nsplit sum i 4\nreorder sum jo io k ii jio jii\nvectorize sum jii\n\
                 unroll sum jio\nunroll sum ii\n";
    let (plain, vector, tile) = (product(256, "", 1), product(256, vectors, 1), product(256, tiled, 1));
    // Each of 256³ additions waits four cycles for the one before; eight lanes wait together, eight vectors for nobody.
    let points = f64::from(256 * 256 * 256);
    assert!((plain.0[0] / points - 4.0).abs() < 0.1, "{plain:?}");
    assert!((vector.0[0] / points - 0.5).abs() < 0.05, "{vector:?}");
    assert!(tile.0[0] / points < 0.2, "{tile:?}");
    // A matrix of a quarter of a megabyte does not stay in a cache of 32 kB: each row of the result reads it anew.
    let whole = |n: f64| n * n * 4.0 / 64.0;
    assert!(plain.0[1] > 200.0 * whole(256.0), "{plain:?}");
    // Rows whose distance is a power of two share the sets of a cache, others do not.
    let other = product(240, tiled, 1);
    assert!(other.0[1] < 0.9 * tile.0[1] && other.0[1] < 80.0 * whole(240.0), "{tile:?} {other:?}");
    let both = product(256, &format!("{tiled}parallel sum jo\n"), 2);
    assert!((both.0[0] / tile.0[0] - 0.5).abs() < 0.02 && both.0[5] == 1.0, "{both:?}");
}

/// Protects: a model that is fitted ranks by what was measured, and stays near what is stated where little was.
#[test]
fn models_learn_from_measurements() {
    let work = |core: f64, lines: f64| Work([core, lines, 0.0, 0.0, 0.0, 0.0, 0.0]);
    // A machine on which lines from the second cache cost far more than is stated.
    let samples: Vec<(Vec<f64>, f64)> = [(1e6, 1e5), (2e6, 1e4), (5e5, 3e5), (1e6, 0.0)]
        .into_iter()
        .map(|(core, lines)| (work(core, lines).0.to_vec(), 0.3e-9 * core + 20e-9 * lines))
        .collect();
    let (stated, fitted) = (Model::default(), Model::default().fitted(&samples));
    let (a, b) = (work(1.2e6, 0.0), work(4e5, 1e5));
    assert!(stated.seconds(&a.0) > stated.seconds(&b.0) && fitted.seconds(&a.0) < fitted.seconds(&b.0));
    for (work, seconds) in &samples {
        assert!((fitted.seconds(work) / seconds - 1.0).abs() < 0.2, "{} for {seconds}", fitted.seconds(work));
    }
    assert_eq!(Model::default().fitted(&[]).seconds(&a.0), stated.seconds(&a.0));
}

/// Tunes with made-up measurements: a failure for some, else the number of steps.
fn tuned(mode: Mode, known: Known, measure: &mut tuning::Measure<'_>) -> Tuned {
    let program = kernels();
    let def = program.named("blur")[0];
    let args = example::arguments(def, &sizes(&[("h", 40), ("w", 64)]), 1).unwrap();
    let search = Settings { way: Way::Beam, beam: 2, evaluations: 120, seed: 0, keep: 8 };
    let options = Options { mode, model: Model::default(), search, measurements: 20, stop: &|| false, known };
    tuning::tune(def, graph(&program, def), &args, &machine(), &options, measure)
        .unwrap_or_else(|d| panic!("{}", d.render()))
}

fn made_up(steps: &str) -> Outcome {
    let n = steps.lines().count();
    match n % 3 {
        0 => Outcome::Failed("it was ended by signal 11".into()),
        _ => Outcome::Seconds { min: n as f64 * 1e-3, median: n as f64 * 2e-3 },
    }
}

/// Protects: what failed is never chosen; a run that was killed and begins again with its records measures only what is
/// missing, and ends with the same schedule.
#[test]
fn tuning_goes_on_from_records_and_never_chooses_what_fails() {
    let mut all: Vec<Record> = vec![];
    let whole = tuned(Mode::Autotune, Known::default(), &mut |each| {
        let outcomes: Vec<Outcome> = each.iter().map(|s| made_up(s)).collect();
        let record = |(s, o): (&String, &Outcome)| Record { case: "c".into(), steps: s.clone(), outcome: o.clone() };
        all.extend(each.iter().zip(&outcomes).map(record));
        Ok(outcomes)
    });
    assert_eq!(all.len(), 20);
    let best = all.iter().map(|r| r.outcome.seconds()).fold(f64::INFINITY, f64::min);
    assert_eq!(whole.outcome.as_ref().unwrap().seconds(), best);
    assert!(all.iter().any(|r| matches!(r.outcome, Outcome::Failed(_))), "nothing failed");
    for cut in [0, 1, 7, 8, 13, 20] {
        // A line that was cut off by the end of a process, and one of another case.
        let mut text: String = all[..cut].iter().map(|r| serde_json::to_string(r).unwrap() + "\n").collect();
        text += "{\"case\":\"c\",\"ste\n";
        let other = Record { case: "d".into(), ..all[0].clone() };
        text += &(serde_json::to_string(&other).unwrap() + "\n");
        let known = record::read(&text, "c");
        assert_eq!((known.outcomes.len(), known.unread), (cut, 1));
        let mut measured = 0;
        let again = tuned(Mode::Autotune, known, &mut |each| {
            measured += each.len();
            Ok(each.iter().map(|s| made_up(s)).collect())
        });
        assert_eq!((steps(&again.schedule), measured), (steps(&whole.schedule), 20 - cut), "cut at {cut}");
    }
}

/// Protects: from the command line to measured code and back: the file that a search writes is a schedule that `run` takes;
/// what was measured is not measured again.
#[test]
fn schedules_are_searched_from_the_command_line() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    std::fs::copy(common::root("benches/schedules/kernels.ks"), d.join("k.ks")).unwrap();
    let blur = ["schedule", "k.ks", "blur", "--size", "h=40", "--size", "w=70", "--evaluations", "60", "--beam", "2"];
    let with =
        |more: &[&'static str]| -> Vec<&'static str> { blur.iter().copied().chain(more.iter().copied()).collect() };
    let found = good(d, &with(&["--mode", "one-shot", "-o", "one.sched"]));
    assert!(found.contains("not measured, expected"), "{found}");
    let searched = with(&["--mode", "top-k", "--measurements", "3", "--records", "r.jsonl", "--json"]);
    let object = |text: &str| -> serde_json::Value { serde_json::from_str(text.trim()).unwrap() };
    let first = object(&good(d, &searched));
    assert!(first["outcome"]["seconds"]["min"].as_f64().is_some_and(|s| s > 0.0), "{first}");
    let records = std::fs::read_to_string(d.join("r.jsonl")).unwrap();
    assert_eq!(records.lines().count(), 3, "{records}");
    let second = object(&good(d, &searched));
    assert_eq!((&first["steps"], &first["outcome"]), (&second["steps"], &second["outcome"]));
    assert_eq!(std::fs::read_to_string(d.join("r.jsonl")).unwrap(), records);
    // The end of a process may cut a line off: only what stood there is measured again, and stays from then on.
    std::fs::write(d.join("r.jsonl"), &records[..records.len() - 40]).unwrap();
    daedal(d, &searched);
    let mended = std::fs::read_to_string(d.join("r.jsonl")).unwrap();
    assert_eq!(mended.lines().count(), 4, "{mended}");
    daedal(d, &searched);
    assert_eq!(std::fs::read_to_string(d.join("r.jsonl")).unwrap(), mended);
    // Where sums may be taken in another order, what is compared is the program so rewritten.
    let dot = ["schedule", "k.ks", "times_vector", "--size", "n=40", "--size", "m=300", "--mode", "top-k"];
    let real: Vec<&str> = dot.iter().copied().chain(["--measurements", "4", "--float", "real", "--json"]).collect();
    let real = object(&good(d, &real));
    assert!(real["steps"][0].as_str().is_some_and(|s| s.starts_with("contract ")), "{real}");
    assert!(real["outcome"]["seconds"]["min"].as_f64().is_some_and(|s| s > 0.0), "{real}");
    let image: Vec<Vec<f64>> = (0..9).map(|i| (0..12).map(|j| f64::from(i * j % 7)).collect()).collect();
    let image = serde_json::to_string(&image).unwrap();
    let plain = good(d, &["run", "k.ks", "blur", &image]);
    assert_eq!(good(d, &["run", "k.ks", "blur", "--schedule", "one.sched", &image]), plain);
    assert_eq!(good(d, &["run", "k.ks", "blur", "--schedule", "one.sched", "--general", &image]), plain);

    let refused = |more: &[&'static str]| refused(d, &with(more));
    assert!(refused(&["--mode", "one-shot", "--size", "q=3"]).contains("names a size `q`"));
    assert!(refused(&["--mode", "one-shot", "-o", "no/such/folder.sched"]).contains("no/such"));
    assert!(refused(&["--mode", "top-k", "--size", "h=1"]).contains("cannot be measured at these arguments"));
    assert!(refused(&["--records", "r.jsonl"]).contains("--mode"));
    let many = refused(&["--mode", "one-shot", "--apply", "one.sched"]);
    assert!(many.contains("cannot be used with"), "{many}");
}
