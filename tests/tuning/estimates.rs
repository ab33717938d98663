//! Estimates of schedules: what is judged on the way is what the whole list of decisions leads to, decisions are the steps that
//! they become, and the order of estimates is that of what is lowered.

use crate::common;
use daedal::diag::Source;
use daedal::ir::Program;
use daedal::machine::Machine;
use daedal::pipeline::tuning;
use daedal::search::Space as _;
use daedal::stage::extract;
use daedal::tune::estimate::loops::{Loops, loops, planned};
use daedal::tune::estimate::{Estimates, State};
use daedal::tune::explore::{Settings, Way, search};
use daedal::tune::ranking::ranking;
use daedal::tune::tree::{Place, steps};
use daedal::tune::{Model, Tree, example};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

fn program(path: &str) -> Program {
    let text = std::fs::read_to_string(common::root(path)).unwrap();
    daedal::types::program(&Source::new("p.ks", text)).unwrap_or_else(|d| panic!("{}", d.render()))
}

fn machine() -> Machine {
    Machine { vector_bytes: 32, threads: 2, caches: [32 << 10, 1 << 20, 8 << 20] }
}

const KERNELS: &str = "benches/schedules/kernels.ks";
/// Definitions, the files they stand in, and sizes.
const EACH: [(&str, &str, [u64; 3]); 9] = [
    (KERNELS, "product", [96, 130, 64]),
    (KERNELS, "softmax", [60, 500, 3]),
    (KERNELS, "attention", [80, 64, 48]),
    (KERNELS, "blur", [300, 2000, 3]),
    (KERNELS, "clamped_blur", [200, 400, 3]),
    (KERNELS, "convolution", [50, 90, 5]),
    (KERNELS, "corners", [250, 700, 3]),
    ("programs/imaging/harris.ks", "harris", [260, 520, 3]),
    ("programs/imaging/unsharp.ks", "unsharp", [130, 700, 3]),
];

/// Does something with the space of a definition.
fn with<T>((path, name, [a, b, c]): (&str, &str, [u64; 3]), does: impl FnOnce(&Tree<'_>, &Estimates<'_>) -> T) -> T {
    let program = program(path);
    let def = program.named(name)[0];
    let all =
        [("n", a), ("m", b), ("p", c), ("z", 3), ("d", c), ("h", a), ("w", b), ("a", 3), ("b", 4), ("channels", 3)];
    let sizes: Vec<(String, u64)> = all.iter().map(|(n, v)| ((*n).to_string(), *v)).collect();
    let incoming = example::incoming(def, &example::arguments(def, &sizes, 1).unwrap());
    let graph = extract(&program, def).unwrap_or_else(|u| panic!("{}", u.diagnostic(&program)));
    let tree = Tree::new(def, tuning::plainly(graph, &incoming), incoming, machine());
    let space = Estimates::of(&tree).unwrap_or_else(|| panic!("{name} is not estimated"));
    does(&tree, &space)
}

/// A state after random decisions.
fn walked(space: &Estimates<'_>, most: usize, rng: &mut StdRng) -> State {
    let mut state = space.root();
    for _ in 0..rng.random_range(0..=most) {
        let Some(by) = space.moves(&state).choose(rng).copied() else { break };
        state = space.apply(&state, &by);
    }
    state
}

/// Protects: what is changed from decision to decision is all that a decision changes: any state has the entries, and to the
/// bit the work, that its whole list of decisions leads to.
#[test]
fn states_are_the_fold_of_their_decisions() {
    let mut seen = 0;
    for each in EACH {
        with(each, |tree, space| {
            let mut rng = StdRng::seed_from_u64(7);
            for k in 0..1200 {
                let state = walked(space, tree.depth(), &mut rng);
                let (quick, whole) = (space.finished(&state), space.folded(&space.choices(&state)));
                for s in 0..tree.stages().len() {
                    assert_eq!(quick.get(s), whole.get(s), "{}, state {k}, stage {s}", each.1);
                }
                assert_eq!(quick.work(), whole.work());
                assert!(quick.work().0.iter().all(|n| n.is_finite() && *n >= 0.0), "{:?}", quick.work());
                seen += 1;
            }
        });
    }
    assert!(seen >= 10_000, "only {seen} states were compared");
}

/// Protects: decisions become the steps that they stand for: each stage is where it was estimated, in the loops that were
/// estimated; none of what the space offers is refused.
#[test]
fn decisions_are_the_schedules_that_they_become() {
    let mut loops_seen = 0;
    for each in EACH {
        with(each, |tree, space| {
            let mut rng = StdRng::seed_from_u64(11);
            for k in 0..40 {
                let state = walked(space, tree.depth(), &mut rng);
                let (choices, all) = (space.choices(&state), space.finished(&state));
                let mut s = tree.start().clone();
                for (stage, choice) in tree.stages().iter().zip(&choices) {
                    let made = tree.decide(&mut s, *stage, choice);
                    let name = &s.graph.stage(*stage).name;
                    assert_eq!(made.place, choice.place, "{}, state {k}: `{name}`\n{}", each.1, steps(&s));
                    if choice.place != Place::Inline {
                        assert_eq!(made.tiling, choice.tiling, "{}, state {k}: `{name}`\n{}", each.1, steps(&s));
                    }
                }
                for (stage, choice) in tree.stages().iter().zip(&choices).filter(|(_, c)| c.place != Place::Inline) {
                    let of = &space.known().stages[stage.0 as usize];
                    let (have, want): (Loops, Loops) =
                        (planned(&s, *stage, &of.extents), loops(of, &of.extents, &choice.tiling));
                    assert_eq!(have, want, "{}: `{}`, {choice:?}\n{}", each.1, s.graph.stage(*stage).name, steps(&s));
                    let shape = &all.get(stage.0 as usize).shape;
                    let kinds = |l: &Loops| l.iter().map(|l| (l.dim, l.kind)).collect::<Vec<_>>();
                    let own: Loops = shape.own().iter().map(|r| r.own).collect();
                    assert_eq!(kinds(&own), kinds(&want));
                    loops_seen += own.len();
                }
            }
        });
    }
    assert!(loops_seen > 2000, "only {loops_seen} loops were compared");
}

/// Protects: estimates order schedules as the work does that is counted of what they are lowered to.
#[test]
fn estimates_order_schedules_as_counted_work_does() {
    let model = Model::default();
    for each in EACH {
        let (estimated, counted) = with(each, |tree, space| {
            let mut rng = StdRng::seed_from_u64(3);
            let pair = |_| {
                let state = walked(space, 3 * tree.depth(), &mut rng);
                let counted = tree.work(&space.schedule(&state)).unwrap();
                (model.seconds(&space.finished(&state).work().0), model.seconds(&counted.0))
            };
            (0..40).map(pair).unzip::<f64, f64, Vec<_>, Vec<_>>()
        });
        let of = ranking(&[(estimated.clone(), counted.clone())]);
        // A search lowers more than one of those that it likes best.
        let mut order: Vec<usize> = (0..counted.len()).collect();
        order.sort_by(|a, b| estimated[*a].total_cmp(&estimated[*b]));
        let least = |all: &mut dyn Iterator<Item = usize>| all.map(|k| counted[k]).fold(f64::INFINITY, f64::min);
        let (found, best) = (least(&mut order[..8].iter().copied()), least(&mut (0..counted.len())));
        assert!(of.ranks > 0.6 && of.pairs > 0.75 && found < 1.3 * best, "{}: {of:?}, {found} of {best}", each.1);
    }
}

/// Protects: however long a search runs, what it returns is lowered and judged by that, best first, and the same each time.
#[test]
fn what_is_returned_is_lowered_and_judged() {
    with(EACH[6], |tree, _| {
        let settings = Settings { way: Way::Beam, beam: 8, evaluations: 3000, seed: 0, keep: 8 };
        let (found, tally) = search(tree, &Model::default(), &settings, &|| false);
        let (again, _) = search(tree, &Model::default(), &settings, &|| false);
        assert!(found.len() >= 4 && tally.evaluations > 300 && tally.evaluations <= 3000, "{tally:?}");
        for (j, other) in found.iter().zip(&again) {
            assert_eq!(tree.work(&j.schedule), Some(j.work));
            assert_eq!(steps(&j.schedule), steps(&other.schedule));
        }
        assert!(found.windows(2).all(|w| w[0].expected <= w[1].expected));
    });
}
