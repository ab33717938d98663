//! The corpus and random programs under schedules: the empty one, and random steps. Every nest is run by the interpreter
//! of nests, which judges each access; many are compiled, too. All have the interpreter's bits.

use crate::common::native::quick;
use crate::common::schedules::{Scheduled, chosen, compiled, disagreement, generated, random, threaded};
use crate::common::{Case, arguments, corpus, everything};
use daedal::ad::{self, Mode, Wanted};
use daedal::diag::Source;
use daedal::eval::Value;
use daedal::ir::{Def, Fun, Program};
use daedal::machine::Machine;
use daedal::pipeline::native;
use daedal::run::Toolchain;
use daedal::schedule::plan::{Kind, Site};
use daedal::schedule::{Schedule, Step, lower};
use daedal::stage::extract;
use daedal::tune::example::incoming;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// The definition that a line of a program runs, and its arguments.
fn targets(case: &Case) -> Vec<(&Def, Vec<Value>)> {
    let each = case.runs.iter().filter_map(|run| {
        let defs = case.program.named(&run.def);
        let fits = defs.into_iter().filter(|d| d.term().is_some());
        fits.filter_map(|d| Some((d, arguments(d, &run.args).ok()?))).next()
    });
    each.collect()
}

/// Protects: the program as stages has its own bits, under the empty and the default schedule; what is no graph says why.
#[test]
fn the_corpus_is_staged() {
    let all = everything();
    let found: Vec<_> = all
        .par_iter()
        .map(|case| {
            let (mut wrong, mut reasons, mut staged, mut given_up) = (vec![], BTreeMap::<String, usize>::new(), 0, 0);
            for (def, args) in targets(case) {
                let graph = match extract(&case.program, def) {
                    Ok(g) => g,
                    Err(u) => {
                        *reasons.entry(u.reason).or_insert(0) += 1;
                        continue;
                    }
                };
                staged += 1;
                let made = daedal::schedule::default(graph.clone(), &Machine::host());
                for schedule in [Schedule::new(graph), made] {
                    let lowered = lower(&schedule, def).unwrap_or_else(|d| panic!("{}: {d}", case.name));
                    let last =
                        native::scheduled_nest(def, &schedule, &Machine::host()).unwrap_or_else(|d| panic!("{d}"));
                    for nest in [&lowered, &last] {
                        let (gave_up, d) = disagreement(&case.program, def, &args, nest);
                        given_up += usize::from(gave_up);
                        let shown = || format!("{} {}\n{}\n{nest}", case.name, def.name(), schedule.graph);
                        wrong.extend(d.map(|d| format!("{d}\n{}", shown())));
                    }
                }
            }
            (wrong, reasons, staged, given_up)
        })
        .collect();
    let (mut wrong, mut reasons, mut staged, mut given_up) = (vec![], BTreeMap::new(), 0, 0);
    for (w, r, s, g) in found {
        wrong.extend(w);
        r.into_iter().for_each(|(why, n)| *reasons.entry(why).or_insert(0) += n);
        staged += s;
        given_up += g;
    }
    println!("{staged} calls are staged, {given_up} nests leave them to the reference; not staged: {reasons:#?}");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.into_iter().take(3).collect::<Vec<_>>().join("\n"));
    assert!(staged >= 750, "only {staged} calls were staged");
}

/// Protects: no step changes a bit, whatever steps come before; a refused one says why and changes nothing.
#[test]
fn random_schedules_change_no_bit() {
    let all = everything();
    let seeds: u64 = std::env::var("DAEDAL_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(3);
    let counts: Vec<[usize; 10]> = all
        .par_iter()
        .map(|case| {
            let [
                mut nests,
                mut steps,
                mut fused,
                mut converted,
                mut reordered,
                mut together,
                mut kept,
                mut strips,
                mut collecting,
                mut refusals,
            ] = [0; 10];
            for (k, (def, args)) in targets(case).into_iter().enumerate() {
                let Ok(graph) = extract(&case.program, def) else { continue };
                for seed in 0..seeds {
                    // For all sizes, for all and then for these, and for these from the start: more is legal there.
                    let sizes = incoming(def, &args);
                    let start = if seed % 3 == 2 { graph.specialized(&sizes) } else { graph.clone() };
                    let (mut schedule, taken, refused) = random(&start, seed * 1000 + k as u64);
                    if seed % 3 == 1 {
                        schedule = schedule.specialized(&sizes);
                    }
                    let shown = || taken.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
                    let nest = native::scheduled_nest(def, &schedule, &Machine::host()).unwrap_or_else(|d| {
                        panic!("{} {}: {d}\n{}\n{}", case.name, def.name(), schedule.graph, shown())
                    });
                    if let (_, Some(d)) = disagreement(&case.program, def, &args, &nest) {
                        panic!("{} {}: {d}\n{}\n{}\n{nest}", case.name, def.name(), schedule.graph, shown());
                    }
                    nests += 1;
                    steps += taken.len();
                    fused += taken.iter().filter(|s| matches!(s, Step::Fuse { .. })).count();
                    converted += taken.iter().filter(|s| matches!(s, Step::IfConvert { .. })).count();
                    reordered += taken.iter().filter(|s| matches!(s, Step::Reassociate { .. })).count();
                    together += taken.iter().filter(|s| matches!(s, Step::FuseStages { .. })).count();
                    kept += taken.iter().filter(|s| matches!(s, Step::StoreAt { .. })).count();
                    strips += taken.iter().filter(|s| matches!(s, Step::Strip { .. })).count();
                    collecting += schedule.graph.ids().filter(|s| schedule.collects(*s)).count();
                    refusals += refused;
                }
            }
            [nests, steps, fused, converted, reordered, together, kept, strips, collecting, refusals]
        })
        .collect();
    let [nests, steps, fused, converted, reordered, together, kept, strips, collecting, refusals] =
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map(|k| counts.iter().map(|c| c[k]).sum::<usize>());
    let found = format!(
        "{nests} nests, {steps} steps, {fused} of them fuse, {converted} convert conditions, {reordered} reassociate, \
         {together} fuse stages, {kept} keep what is computed, {strips} cut strips, {collecting} sums collect, {refusals} refused"
    );
    println!("{found}");
    assert!(nests >= 1000 && steps >= 3000 && refusals >= 1000, "{found}");
    assert!(fused >= 50 && converted >= 50 && reordered >= 50 && together >= 50 && kept >= 50, "{found}");
    assert!(collecting >= 1, "{found}");
}

/// Protects: compiled code of random schedules.
#[test]
fn random_schedules_compile_to_the_same_bits() {
    let all = corpus();
    let mut made: Vec<Scheduled<'_>> = vec![];
    for (k, case) in all.iter().enumerate() {
        for (def, args) in targets(case).into_iter().take(2) {
            let Ok(graph) = extract(&case.program, def) else { continue };
            let (schedule, ..) = random(&graph, 77_000 + k as u64);
            let name = format!("{} {}", case.name, def.name());
            made.push(Scheduled::new(name, &case.program, def, args, &schedule));
        }
    }
    assert!(made.len() >= 60, "only {} programs are staged", made.len());
    assert!(made.iter().any(|s| s.nest.to_string().contains(" parallel")), "no loop is parallel");
    let wrong = compiled(&made, &quick("schedules"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Protects: compiled code of the corpus under the default schedule, with more loops on threads.
#[test]
fn the_corpus_on_threads_compiles_to_the_same_bits() {
    let all = corpus();
    let mut made: Vec<Scheduled<'_>> = vec![];
    for case in &all {
        for (def, args) in targets(case).into_iter().take(2) {
            let Ok(graph) = extract(&case.program, def) else { continue };
            let schedule = threaded(daedal::schedule::default(graph, &Machine::host()));
            let name = format!("{} {}", case.name, def.name());
            made.push(Scheduled::new(name, &case.program, def, args, &schedule));
        }
    }
    let parallel = made.iter().filter(|s| s.nest.to_string().contains(" parallel")).count();
    let overlapping = made.iter().filter(|s| s.nest.to_string().contains("the last two in order")).count();
    assert!(parallel >= 30 && overlapping >= 20, "{parallel} of {} are parallel, {overlapping} overlap", made.len());
    let wrong = compiled(&made, &quick("schedules"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The text of an array of these sizes whose elements lie about zero.
fn elements(dims: &[usize], next: &mut u64) -> String {
    let Some((n, rest)) = dims.split_first() else {
        *next = (*next * 37 + 11) % 101;
        return format!("{}", (*next as f64 - 50.0) / 100.0);
    };
    let each: Vec<String> = (0..*n).map(|_| elements(rest, next)).collect();
    format!("[{}]", each.join(","))
}

/// The value and gradient of an LSTM of so many layers and cells on so many characters.
fn lstm([layers, cells, characters]: [usize; 3]) -> (Program, Fun, Vec<String>) {
    let text = include_str!("../../benches/gradients/lstm.ks");
    let program = daedal::types::program(&Source::new("lstm", text)).unwrap();
    let def = program.named("lstm_objective")[0];
    let wanted = Wanted { fun: def.fun, mode: Mode::Reverse, wrt: vec![true; 4], value: true, checkpoint: false };
    let (program, fun) = ad::derive(&program, &wanted).unwrap();
    let sizes = [&[layers, 2, 4, cells][..], &[3, cells], &[layers, 2, cells], &[characters, cells]];
    let mut next = 1;
    let mut args: Vec<String> = sizes.iter().map(|dims| elements(dims, &mut next)).collect();
    args.push("1.0".to_string());
    (program, fun, args)
}

/// Protects: what `daedal run --schedule default` compiles for the sizes of a call, with all that the compiler does. GCC 12
/// took loads under a condition for loads of other elements in one of these gradients.
#[test]
fn the_corpus_compiles_as_users_run_it() {
    let all = everything();
    let lstm = [[2, 3, 4], [1, 2, 3], [2, 5, 3], [3, 4, 6]].map(lstm);
    let mut calls: Vec<(String, &Program, &Def, Vec<Value>)> = vec![];
    for case in &all {
        // Pictures take long to compile.
        let most = if case.name.starts_with("programs/imaging") { 1 } else { 2 };
        let each = targets(case).into_iter().take(most);
        calls.extend(each.map(|(def, args)| (format!("{} {}", case.name, def.name()), &case.program, def, args)));
    }
    for (program, fun, args) in &lstm {
        let def = &program.defs[fun];
        calls.push((format!("lstm {args:?}"), program, def, arguments(def, args).unwrap()));
    }
    let mut made: Vec<Scheduled<'_>> = vec![];
    for (name, program, def, args) in calls {
        let Ok(graph) = extract(program, def) else { continue };
        let schedule = chosen(&graph, def, &args);
        made.push(Scheduled::new(name, program, def, args, &schedule));
    }
    assert!(made.iter().filter(|s| s.name.starts_with("lstm")).count() == lstm.len(), "a gradient is not staged");
    let wrong = compiled(&made, &Toolchain { level: 3, ..quick("schedules") });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Protects: compiled code of random programs under the default schedule, for all sizes and for those of the call, on one
/// thread and two: what may be divided by zero
/// or read out of range would end the process.
#[test]
fn random_programs_compile_to_the_same_bits() {
    let cases: u64 = std::env::var("DAEDAL_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(200);
    let all: Vec<_> = (0..cases).map(|seed| (seed, generated(1_000_000 + seed))).collect();
    let mut made = vec![];
    for (seed, (program, made_up)) in &all {
        let def = program.named("main")[0];
        let Ok(graph) = extract(program, def) else { continue };
        let args = arguments(def, &made_up.args).unwrap();
        let general = seed % 2 == 0;
        let schedule =
            if general { daedal::schedule::default(graph, &Machine::host()) } else { chosen(&graph, def, &args) };
        made.push(Scheduled::new(format!("seed {seed}\n{}", made_up.text), program, def, args, &threaded(schedule)));
    }
    assert!(made.len() as u64 * 2 >= cases, "only {} of {cases} are staged", made.len());
    let wrong = compiled(&made, &quick("schedules"));
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong[0]);
}

/// Protects: what the test says of a stage that is computed in another, so that it is no test of roots alone.
#[test]
fn random_schedules_are_varied() {
    let all = everything();
    let (mut at, mut inline, mut vector) = (0, 0, 0);
    for case in &all {
        for (def, _) in targets(case).into_iter().take(1) {
            let Ok(graph) = extract(&case.program, def) else { continue };
            for seed in 0..24 {
                let (s, ..) = random(&graph, seed);
                at += s.plans.iter().filter(|p| matches!(p.site, Site::At(..))).count();
                inline += s.plans.iter().filter(|p| p.site == Site::Inline).count();
                vector += s.plans.iter().filter(|p| p.loops.iter().any(|l| l.kind == Kind::Vector)).count();
            }
        }
    }
    assert!(at >= 50 && inline >= 20 && vector >= 10, "{at} at loops, {inline} inlined, {vector} vectors");
}

/// A random program under six schedules: whether it is staged, whether a nest leaves its call to the reference, and what is
/// wrong.
fn staged_at_random(seed: u64) -> (bool, bool, Option<String>) {
    let (program, made) = generated(seed);
    let def = program.named("main")[0];
    let args = arguments(def, &made.args).unwrap();
    let Ok(graph) = extract(&program, def) else { return (false, false, None) };
    let default = daedal::schedule::default(graph.clone(), &Machine::host());
    let mut given_up = false;
    let special = default.specialized(&incoming(def, &args));
    let chosen = chosen(&graph, def, &args);
    let start = if seed.is_multiple_of(3) { graph.specialized(&incoming(def, &args)) } else { graph.clone() };
    let all =
        [Schedule::new(graph.clone()), threaded(default.clone()), default, special, chosen, random(&start, seed).0];
    for schedule in all {
        let steps = schedule.steps.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        let shown = format!("{}\n{:?}\n{graph}\n{steps}", made.text, made.args);
        let last = native::scheduled_nest(def, &schedule, &Machine::host());
        for nest in [lower(&schedule, def), last] {
            let nest = match nest {
                Ok(nest) => nest,
                Err(d) => return (true, false, Some(format!("seed {seed}: {d}\n{shown}"))),
            };
            let (gave_up, d) = disagreement(&program, def, &args, &nest);
            given_up |= gave_up;
            if let Some(d) = d {
                return (true, given_up, Some(format!("seed {seed}: {d}\n{shown}\n{nest}")));
            }
        }
    }
    (true, given_up, None)
}

/// Protects: random programs, with indices out of range, divisions by zero and arms that fail, have the interpreter's
/// bits or failures as stages: under the empty, the default and a random schedule, and with more loops on threads.
#[test]
fn random_programs_are_staged() {
    let cases: u64 = std::env::var("DAEDAL_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(4000);
    let all: Vec<_> = (0..cases).into_par_iter().map(staged_at_random).collect();
    let staged = all.iter().filter(|c| c.0).count();
    let given_up = all.iter().filter(|c| c.1).count();
    let wrong: Vec<String> = all.into_iter().filter_map(|c| c.2).collect();
    println!("{staged} of {cases} are staged, {given_up} leave a call to the reference");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.into_iter().take(3).collect::<Vec<_>>().join("\n\n"));
    assert!(staged as u64 * 4 >= cases, "only {staged} of {cases} are staged");
}
