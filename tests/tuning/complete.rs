//! Schedules that are begun by hand and completed by a search: the steps of the hand stay, what they leave open is decided, and
//! all bits are the program's.

use crate::common;
use crate::common::command::{daedal, good, refused};
use crate::common::native::difference;
use crate::common::schedules::random;
use daedal::diag::Source;
use daedal::eval::Interpreter;
use daedal::ir::Program;
use daedal::machine::Machine;
use daedal::nest::interpret;
use daedal::pipeline::native;
use daedal::pipeline::tuning::{self, Mode, Options, space_from};
use daedal::schedule::Step;
use daedal::search::Space as _;
use daedal::stage::extract;
use daedal::tune::explore::{Settings, Way, search};
use daedal::tune::record::Known;
use daedal::tune::tree::steps;
use daedal::tune::{Model, example};

fn kernels() -> Program {
    let path = common::root("benches/schedules/kernels.ks");
    daedal::types::program(&Source::new("kernels.ks", std::fs::read_to_string(path).unwrap())).unwrap()
}

fn machine() -> Machine {
    Machine { vector_bytes: 32, threads: 2, caches: [32 << 10, 1 << 20, 8 << 20] }
}

fn sizes() -> Vec<(String, u64)> {
    let all = [("n", 13), ("m", 11), ("p", 9), ("z", 3), ("d", 9), ("h", 13), ("w", 17), ("a", 3), ("b", 4)];
    all.iter().map(|(n, v)| ((*n).to_string(), *v)).collect()
}

/// What a step decides of a stage.
fn decides(step: &Step) -> Option<&'static str> {
    match step {
        Step::ComputeRoot { .. } | Step::ComputeAt { .. } | Step::StoreAt { .. } | Step::FuseStages { .. } => {
            Some("place")
        }
        Step::Inline { .. } => Some("both"),
        Step::IfConvert { .. } | Step::Contract { .. } | Step::Reassociate { .. } | Step::Layout { .. } => None,
        Step::Split { .. } | Step::Strip { .. } | Step::Fuse { .. } | Step::Reorder { .. } => Some("loops"),
        Step::Run { .. } | Step::CacheRead { .. } => Some("loops"),
    }
}

/// Protects: whatever steps come first, random ones, all that a search finds begins with them, says nothing again of what they
/// say, and keeps every bit.
#[test]
fn what_is_begun_stays_and_changes_no_bit() {
    let program = kernels();
    let (mut checked, mut more) = (0, 0);
    for (k, name) in
        ["product", "softmax", "attention", "blur", "clamped_blur", "convolution", "corners"].iter().enumerate()
    {
        let def = program.named(name)[0];
        let args = example::arguments(def, &sizes(), 1).unwrap();
        let graph = extract(&program, def).unwrap_or_else(|u| panic!("{}", u.diagnostic(&program)));
        let want = Interpreter::new(&program).run(def, &args);
        for seed in 0..6 {
            let (_, begun, _) = random(&graph.only_for(&example::incoming(def, &args)), seed * 100 + k as u64);
            let begun: Vec<Step> = begun.into_iter().filter(|s| !s.is_rewrite()).take(3).collect();
            let Ok((tree, plain)) = space_from(def, graph.clone(), &args, &machine(), &begun) else { continue };
            let settings = Settings { way: Way::Random, beam: 1, evaluations: 30, seed, keep: 3 };
            let (found, _) = search(&tree, &Model::default(), &settings, &|| false);
            let edited =
                daedal::tune::edits::offspring(&tree, &Model::default(), std::slice::from_ref(&plain), 6, seed);
            let all = found.into_iter().chain(edited).map(|j| j.schedule).chain([plain, tree.complete(&tree.root())]);
            for s in all {
                let (own, rest) = s.steps.split_at(begun.len());
                let text = || format!("{name}\n{}\nbegun with {begun:?}", steps(&s));
                assert_eq!(own, begun, "{}", text());
                for step in &begun {
                    let again = rest.iter().find(|r| {
                        let (a, b) = (decides(step), decides(r));
                        r.stage() == step.stage() && a.is_some() && b.is_some() && (a == b || a == Some("both"))
                    });
                    assert!(again.is_none(), "{again:?} of\n{}", text());
                }
                more += usize::from(!rest.is_empty());
                let nest = native::scheduled_nest(def, &s, &machine()).unwrap_or_else(|d| panic!("{d}\n{}", text()));
                let have = interpret(&nest, &args, &mut String::new());
                assert_eq!(difference(&want, &have).map(|d| format!("{d}\n{}", text())), None);
                checked += 1;
            }
        }
    }
    assert!(checked >= 100 && more >= 80, "{checked} checked, {more} say more than they began with");
}

/// Protects: without measurements the model chooses among what completes the steps, and all else done plainly is the first.
#[test]
fn a_completion_is_chosen_by_the_model() {
    let program = kernels();
    let def = program.named("blur")[0];
    let args = example::arguments(def, &[("h".into(), 200), ("w".into(), 300)], 1).unwrap();
    let graph = || extract(&program, def).unwrap_or_else(|u| panic!("{}", u.diagnostic(&program)));
    let stage = graph().stages[0].name.clone();
    let kept = [Step::ComputeRoot { stage }];
    let search = Settings { way: Way::Beam, beam: 2, evaluations: 120, seed: 0, keep: 8 };
    let (model, known) = (Model::default(), Known::default());
    let options = Options { mode: Mode::OneShot, model, search, measurements: 0, stop: &|| false, known };
    let none = &mut |_: &[String]| Ok(vec![]);
    let tuned = tuning::complete(def, (graph(), &kept), &args, &machine(), &options, none).unwrap();
    assert_eq!(tuned.schedule.steps[0], kept[0]);
    assert!(tuned.expected <= tuned.default.expected);
}

/// Protects: from the command line: the steps of the file stand first, what is found runs, and what cannot be is told.
#[test]
fn files_are_completed_from_the_command_line() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    std::fs::copy(common::root("programs/imaging/blur.ks"), d.join("blur.ks")).unwrap();
    let begun = "split down y 16\ncompute-at across down yi\nstore-at across down yo\n";
    std::fs::write(d.join("begun.sched"), format!("; by hand\n{begun}")).unwrap();
    let words = |file: &'static str, more: &[&'static str]| -> Vec<&'static str> {
        let some = ["schedule", "blur.ks", "blur", "--size", "h=40", "--size", "w=70", "--apply", file, "--complete"];
        some.into_iter().chain(more.iter().copied()).collect()
    };
    let said = good(d, &words("begun.sched", &["-o", "whole.sched"]));
    assert!(said.contains("; the rest plainly  not measured, expected"), "{said}");
    let whole = std::fs::read_to_string(d.join("whole.sched")).unwrap();
    let steps: String = whole.lines().filter(|l| !l.starts_with(';')).map(|l| format!("{l}\n")).collect();
    assert!(steps.starts_with(begun) && steps.lines().count() > 3, "{whole}");
    assert!(whole.contains("; found for what the steps above leave open"), "{whole}");
    let image: Vec<Vec<u32>> = (0..9).map(|i| (0..12).map(|j| i * j * 37 % 1000).collect()).collect();
    let image = serde_json::to_string(&image).unwrap();
    let plain = good(d, &["run", "blur.ks", "blur", &image]);
    assert_eq!(good(d, &["run", "blur.ks", "blur", "--schedule", "whole.sched", &image]), plain);
    let more = ["--mode", "top-k", "--measurements", "3", "--json", "--report", "r.html"];
    let measured = good(d, &words("begun.sched", &more));
    assert!(measured.contains("\"seconds\""), "{measured}");
    // The page has steps, loops, picture, counts, plots, and what became of each schedule; it loads nothing.
    let page = std::fs::read_to_string(d.join("r.html")).unwrap();
    let parts = [
        "compute-at across down yi",
        "for yo",
        "data:image/svg+xml",
        "lines from memory",
        "best time measured",
        "least cost in the search",
        "chosen",
        "% slower",
    ];
    for part in parts {
        assert!(page.contains(part), "no `{part}` in the page");
    }
    assert!(!page.contains("src=") && !page.contains("<link"), "the page loads something");

    std::fs::write(d.join("wrong.sched"), "split down q 16\n").unwrap();
    let wrong = refused(d, &words("wrong.sched", &[]));
    assert!(wrong.contains("wrong.sched:1:1") && wrong.contains("no loop `q`"), "{wrong}");
    std::fs::write(d.join("empty.sched"), "; nothing\n").unwrap();
    assert!(refused(d, &words("empty.sched", &[])).contains("`empty.sched` has no steps"));
    assert!(refused(d, &words("default", &[])).contains("`--complete` needs the file of a schedule"));
    assert!(refused(d, &words("begun.sched", &["--space", "toy"])).contains("begin with everything inlined"));
    let both = ["schedule", "blur.ks", "blur", "--apply", "begun.sched", "--mode", "one-shot"];
    assert!(refused(d, &both).contains("hint: with `--complete`"));
    assert!(refused(d, &["schedule", "blur.ks", "blur", "--report", "x.html"]).contains("`--report` is for searches"));
    assert!(refused(d, &["schedule", "blur.ks", "blur", "-o", "x.sched"]).contains("`--output` is for searches"));
    assert_eq!(daedal(d, &["schedule", "blur.ks", "blur", "--complete"]).status.code(), Some(1));
}
