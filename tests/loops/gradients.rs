//! Derivatives of random losses under the default schedule have the bits of the interpreter of their term.

use crate::common::losses::loss;
use crate::common::native::quick;
use crate::common::schedules::{Scheduled, chosen, compiled, disagreement, threaded};
use crate::common::{arguments, read};
use daedal::ad::{self, Mode, Wanted};
use daedal::eval::Value;
use daedal::ir::{Def, Fun, Program};
use daedal::machine::Machine;
use daedal::pipeline::native;
use daedal::stage::extract;
use rayon::prelude::*;

/// The loss of a seed; every third one has corners.
fn text(seed: u64) -> String {
    loss(seed, 24, seed.is_multiple_of(3))
}

/// Value and gradient of it.
fn derived(seed: u64) -> (Program, Fun) {
    let program = read("loss.ks", &text(seed)).unwrap_or_else(|d| panic!("{}", d.render()));
    let fun = program.named("main")[0].fun;
    let wrt = vec![true, true, true, false, true];
    ad::derive(&program, &Wanted { fun, mode: Mode::Reverse, wrt, value: true, checkpoint: false }).unwrap()
}

/// Arguments of sizes that the seed says, around those of vectors.
fn numbers(def: &Def, seed: u64) -> Vec<Value> {
    let (n, k) = (1 + seed % 11, 1 + seed / 11 % 9);
    let at = |i: u64| ((i * 37 + seed * 11) % 101) as f64 / 50.0 - 1.0;
    let row = |from: u64, count: u64| (from..from + count).map(at).collect::<Vec<f64>>();
    let m: Vec<Vec<f64>> = (0..n).map(|i| row(i * k + 7, k)).collect();
    let p: Vec<u64> = (0..n).map(|i| (i * 5 + seed) % n).collect();
    let words = [format!("{:?}", row(1, n)), format!("{:?}", row(50, k)), format!("{m:?}"), format!("{p:?}")];
    let last = ["0.75".to_string(), "1.0".to_string()];
    arguments(def, &words.into_iter().chain(last).collect::<Vec<_>>()).unwrap()
}

/// Protects: of two thousand random losses value and gradient, under the schedule that is chosen for the sizes of the call, by the
/// interpreter of nests, which judges each access.
#[test]
fn gradients_of_random_losses_keep_their_bits() {
    let one = |seed: u64| -> Result<bool, String> {
        let (program, fun) = derived(seed);
        let def = &program.defs[&fun];
        let args = numbers(def, seed);
        let Ok(graph) = extract(&program, def) else { return Ok(false) };
        let schedule = chosen(&graph, def, &args);
        let nest = native::scheduled_nest(def, &schedule, &Machine::host()).map_err(|d| format!("seed {seed}: {d}"))?;
        let (_, wrong) = disagreement(&program, def, &args, &nest);
        wrong.map_or(Ok(true), |d| Err(format!("seed {seed}: {d}\n{}", text(seed))))
    };
    let all: Vec<_> = (0..2000).into_par_iter().map(one).collect();
    let wrong: Vec<&String> = all.iter().filter_map(|r| r.as_ref().err()).collect();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong[0]);
    let staged = all.iter().filter(|r| matches!(r, Ok(true))).count();
    assert!(staged >= 1800, "only {staged} of 2000 are staged");
}

/// Protects: the same compiled, some with more loops on threads.
#[test]
fn gradients_of_random_losses_compile_to_their_bits() {
    let all: Vec<(u64, (Program, Fun))> = (0..2000).step_by(20).map(|seed| (seed, derived(seed))).collect();
    let mut made = vec![];
    for (seed, (program, fun)) in &all {
        let def = &program.defs[fun];
        let args = numbers(def, *seed);
        let Ok(graph) = extract(program, def) else { continue };
        let schedule = chosen(&graph, def, &args);
        let schedule = if seed % 40 == 0 { threaded(schedule) } else { schedule };
        made.push(Scheduled::new(format!("seed {seed}"), program, def, args, &schedule));
    }
    assert!(made.len() >= 80, "only {} are staged", made.len());
    let wrong = compiled(&made, &quick("gradients"));
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong[0]);
}

/// Protects: tables whose size is a product with the index of a recurrence are staged, where what the factors are at most is known
/// at the start: a bound that is too large is asked of the reference.
#[test]
fn sizes_that_are_products_in_a_recurrence_are_staged() {
    let text = "(def f Float ((x : (Vec Float) m) (p : (Tensor 2 Integer) (n n)))
  (fold (lam ((s : Float) (l : Integer))
      (add (mul 0.5 s) (sumbuild n (lam (i : Integer) (sumbuild (add l 1) (lam (k : Integer)
         (sin (index (index (tuple i k) p) x))))))))
    0.0
    (build n (lam (l : Integer) l))))";
    let program = read("f.ks", text).unwrap();
    let wrt = vec![true, false];
    let wanted = Wanted { fun: program.named("f")[0].fun, mode: Mode::Reverse, wrt, value: true, checkpoint: false };
    let (made, fun) = ad::derive(&program, &wanted).unwrap();
    let def = &made.defs[&fun];
    let graph = extract(&made, def).unwrap_or_else(|u| panic!("{}", u.diagnostic(&made)));
    for n in [0, 1, 2, 5] {
        let p: Vec<Vec<usize>> = (0..n).map(|i| (0..n).map(|k| (3 * i + 5 * k) % 4).collect()).collect();
        let words = ["[0.5,-1.0,0.25,2.0]".to_string(), format!("{p:?}"), "1.0".to_string()];
        let args = arguments(def, &words).unwrap();
        let nest = native::scheduled_nest(def, &chosen(&graph, def, &args), &Machine::host()).unwrap();
        let (_, wrong) = disagreement(&made, def, &args, &nest);
        assert_eq!(wrong, None, "{n}");
    }
}
