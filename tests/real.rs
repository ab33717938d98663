//! Sums in another order, and contracted products: where data are small whole numbers no float rounds, so that every bit must
//! stay; where floats round, the difference is bounded by the sum of the magnitudes of what is added.
#![allow(clippy::unwrap_used, reason = "a test that meets what it does not expect should stop there")]

mod common;

use common::native::difference;
use common::scheduled::{empty, read, tensor, tools};
use common::sums::SUMS;
use daedal::diag::Source;
use daedal::eval::{Interpreter, Value};
use daedal::ir::{Def, Lit, Program, Scalar, Ty, TyKind};
use daedal::machine::Machine;
use daedal::nest::interpret;
use daedal::pipeline::native;
use daedal::run::Native;
use daedal::schedule::{self, Schedule, Step, text};
use daedal::stage::Order;
use daedal::tune::example::incoming;

/// Whole numbers from -8 to 8, and as indices from 0 to 3.
fn whole(def: &Def, sizes: [usize; 2]) -> Vec<Value> {
    let (mut seed, shape) = (sizes[0] * 31 + sizes[1], |d: usize| sizes[..d].to_vec());
    let mut number = |ty: Scalar| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let of = if ty.is_int() { (seed >> 40) % 4 } else { (seed >> 40) % 17 };
        Value::Scalar(Lit::of(ty, of as f64 - if ty.is_int() { 0.0 } else { 8.0 }))
    };
    let mut value = |ty: Ty| match ty.kind() {
        TyKind::Tensor(d, of) => {
            let dims = shape(*d);
            let n = dims.iter().product();
            let of = of.as_scalar().unwrap();
            Value::tensor(dims, (0..n).map(|_| number(of)).collect())
        }
        _ => number(Scalar::F64),
    };
    def.params.iter().map(|p| value(p.ty)).collect()
}

/// A definition where only values over the reals have to stay.
fn over_the_reals(program: &Program, def: &str) -> Schedule {
    let mut graph = empty(program, def).graph.as_ref().clone().contracted();
    graph.real = true;
    Schedule::new(graph)
}

/// The orders that a reduction is taken in, one after another.
fn orders() -> Vec<Vec<Order>> {
    let alone = [Order::Strided(2), Order::Strided(8), Order::Strided(64), Order::Blocks(1), Order::Blocks(7)];
    let mut out: Vec<Vec<Order>> = alone.into_iter().map(|o| vec![o]).collect();
    out.push(vec![Order::Strided(16), Order::Strided(4)]);
    out.push(vec![Order::Strided(4), Order::Blocks(3)]);
    out.push(vec![Order::Blocks(20), Order::Strided(4)]);
    out
}

/// Reassociates all stages that there are at the start; gives how many steps were taken.
fn reassociated(s: &mut Schedule, orders: &[Order]) -> usize {
    let stages: Vec<String> = s.graph.stages.iter().map(|s| s.name.clone()).collect();
    let mut taken = 0;
    for (stage, order) in stages.iter().flat_map(|s| orders.iter().map(move |o| (s, *o))) {
        taken += usize::from(Step::Reassociate { stage: stage.clone(), order }.apply(s).is_ok());
    }
    taken
}

const SIZES: [[usize; 2]; 8] = [[0, 3], [3, 0], [1, 1], [5, 7], [8, 64], [65, 9], [40, 131], [130, 16]];

/// Protects: a reduction in any order has the same terms: sums that do not round keep every bit, at all sizes, with what is
/// left of lanes and blocks; and failures stay what they are.
#[test]
fn whole_numbers_keep_their_bits_in_any_order() {
    let program = read(SUMS);
    let mut taken = 0;
    for def in program.defs.values() {
        let name = def.name();
        let each = orders().into_iter().map(|orders| {
            let mut s = over_the_reals(&program, name);
            let n = reassociated(&mut s, &orders);
            (s, n)
        });
        let mut made: Vec<Schedule> = vec![];
        for (s, n) in each {
            assert!(n > 0, "no order for `{name}`\n{}", s.graph);
            taken += n;
            made.push(s);
        }
        let graph = over_the_reals(&program, name).graph;
        made.push(schedule::default(graph.as_ref().clone(), &Machine::host()));
        for sizes in SIZES {
            let args = whole(def, sizes);
            let want = Interpreter::new(&program).run(def, &args);
            let special = schedule::default(graph.only_for(&incoming(def, &args)), &Machine::host());
            let known = made.iter().map(|s| s.specialized(&incoming(def, &args)));
            for s in known.chain(made.iter().cloned()).chain([special]) {
                let nest = native::scheduled_nest(def, &s, &Machine::host()).unwrap_or_else(|d| panic!("{d}"));
                let have = interpret(&nest, &args, &mut String::new());
                if have.as_ref().is_err_and(|d| d.message.contains("the reference nest was to run")) {
                    assert!(sizes.contains(&0) || want.is_err(), "`{name}` at {sizes:?} is left\n{}\n{nest}", s.graph);
                } else if let Some(d) = difference(&want, &have) {
                    panic!("`{name}` at {sizes:?}: {d}\n{}\n{nest}", s.graph);
                }
            }
        }
    }
    assert!(taken >= 100, "only {taken} reductions were reassociated");
}

/// Protects: compiled code of reassociated sums, on threads; and that sums of floats stay within the error of their terms: for
/// n terms at most n roundings of the sum of their magnitudes, in each of two orders (Higham, 2002, section 4.2).
#[test]
fn floats_stay_near_in_any_order() {
    let program = read(SUMS);
    let magnitudes = read(&SUMS.replace("(mul (index i x) (index i y))", "(abs (mul (index i x) (index i y)))"));
    let def = program.named("dot")[0];
    for n in [5, 1000, 200_003] {
        let args = [tensor(Scalar::F64, &[n], 3), tensor(Scalar::F64, &[n], 4)].to_vec();
        let number = |v: Value| match v {
            Value::Scalar(l) => l.as_f64().unwrap(),
            other => panic!("{other:?} is no number"),
        };
        let want = number(Interpreter::new(&program).run(def, &args).unwrap());
        let most = number(Interpreter::new(&magnitudes).run(magnitudes.named("dot")[0], &args).unwrap());
        let graph = over_the_reals(&program, "dot").graph.only_for(&incoming(def, &args));
        let s = schedule::default(graph, &Machine::host());
        let strided = s.steps.iter().any(|s| matches!(s, Step::Reassociate { order: Order::Strided(_), .. }));
        let blocks = s.steps.iter().any(|s| matches!(s, Step::Reassociate { order: Order::Blocks(_), .. }));
        assert_eq!((strided, blocks), (n >= 1000, n >= 200_000), "{n}");
        let nest = native::scheduled_nest(def, &s, &Machine::host()).unwrap();
        let have = [1, 2].map(|threads| {
            let (program, def) = (program.clone(), def.clone());
            let native =
                Native::load(common::native::eager(daedal::codegen::Unit::new(&[&nest])), &program.source, &tools());
            let native = native.unwrap().pop().unwrap().with_threads(threads);
            let native = native.with_reference(move || native::compile(&program, &def, &tools()));
            number(native.call(&args).unwrap())
        });
        assert!(have[0].to_bits() == have[1].to_bits(), "threads change the bits: {have:?}");
        let bound = 2.0 * n as f64 * f64::EPSILON * most;
        assert!((have[0] - want).abs() <= bound, "{} is not within {bound} of {want}", have[0]);
    }
}

/// Protects: what changes bits is refused unless it was asked for, exact orders never are, and both say why.
#[test]
fn what_rounds_otherwise_is_asked_for() {
    let program = read(SUMS);
    let refused = |s: Schedule, steps: &str| {
        let error = text::apply(s, &Source::new("test.sched", steps)).map(|s| s.steps.len());
        error.map_err(|d| d.message.clone())
    };
    let step = |def: &str, steps: &str| refused(empty(&program, def), steps);
    let real = |def: &str, steps: &str| refused(over_the_reals(&program, def), steps);
    let says =
        |have: Result<usize, String>, what: &str| assert!(have.clone().is_err_and(|e| e.contains(what)), "{have:?}");
    says(step("dot", "reassociate sum strided 8"), "`--float real` allows that");
    assert_eq!(real("dot", "reassociate sum strided 8"), Ok(1));
    assert_eq!(step("most", "reassociate sum strided 8"), Ok(1));
    says(real("dot", "split sum i 8\nreassociate sum strided 8"), "before all steps");
    says(real("dot", "reassociate sum strided 12"), "a power of two");
    says(real("dot", "reassociate sum blocks 0"), "at least one");
    says(real("dot", "reassociate sum strided eight"), "a number in place of `eight`");
    says(real("dot", "reassociate sum by 8"), "`reassociate STAGE strided LANES`");
    let program =
        read("(def f Float (x : (Vec Float)) (fold (lam ((a : Float) (v : Float)) (div v (add a 1.0))) 1.0 x))");
    let mut s = Schedule::new(empty(&program, "f").graph.as_ref().clone());
    let stage = s.graph.stages[0].name.clone();
    let why = Step::Reassociate { stage, order: Order::Strided(8) }.apply(&mut s).unwrap_err();
    assert!(why.0.contains("terms that stand by themselves"), "{}", why.0);
}
