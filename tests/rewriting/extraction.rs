//! Extraction finds the cheapest choice where it says so, and nearly that where it does not.

use crate::common::egraphs::{cheapest, frame, quality, random, reach, saturated, with_trials};
use crate::common::{Case, corpus};
use daedal::cost::Model;
use daedal::ir::Def;
use daedal::pipeline::prepare;
use daedal::rewrite::egraph::exact::{Effort, exact};
use daedal::rewrite::egraph::extract::Candidates;
use daedal::rules::{Level, Library};
use rayon::prelude::*;

/// Effort without end.
const ALL: Effort = Effort { places: 10_000, branches: 1_000_000 };

/// What one random e-graph shows.
struct Shown {
    members: usize,
    cyclic: bool,
    /// The costs that the exact search and brute force find.
    costs: (Option<f64>, Option<f64>),
    proved: bool,
    branches: usize,
}

fn show(seed: u64) -> Option<Shown> {
    let program = frame();
    let (g, root) = random(&program, seed);
    let all = Candidates::new(&g, Model::Knossos, vec![]);
    let (members, cyclic) = reach(&all, root);
    if !(4..=20).contains(&members) || !g[root].data.free.is_closed() {
        return None;
    }
    let def = program.named("main")[0];
    let brute = with_trials(&program, def, |t| cheapest(&all, root, &mut |c| t.price(&g, root, c)));
    let found = with_trials(&program, def, |t| exact(&all, root, ALL, None, &mut |c| t.price(&g, root, c), &|| false));
    let costs = (found.best.map(|(cost, _)| cost), brute);
    Some(Shown { members, cyclic, costs, proved: found.proved, branches: found.branches })
}

/// Protects: what the exact search calls proved. Brute force tries every acyclic choice.
#[test]
fn exact_extraction_is_brute_force() {
    let shown: Vec<(u64, Shown)> = (0..6000u64).into_par_iter().filter_map(|s| Some((s, show(s)?))).collect();
    let shown = &shown[..2000.min(shown.len())];
    let wrong: Vec<String> = shown
        .iter()
        .filter(|(_, s)| {
            let same = match s.costs {
                (Some(a), Some(b)) => (a - b).abs() < 1e-6,
                (a, b) => a.is_none() && b.is_none(),
            };
            !same || !s.proved
        })
        .map(|(seed, s)| format!("seed {seed}: {:?} of {} members, proved {}", s.costs, s.members, s.proved))
        .collect();
    let of = |f: &dyn Fn(&Shown) -> bool| shown.iter().filter(|(_, s)| f(s)).count();
    let branches: usize = shown.iter().map(|(_, s)| s.branches).sum();
    println!(
        "{} e-graphs, {} cyclic, {} with a term, {} branches",
        shown.len(),
        of(&|s| s.cyclic),
        of(&|s| s.costs.1.is_some()),
        branches
    );
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
    assert!(shown.len() == 2000 && of(&|s| s.cyclic) > 300 && of(&|s| s.costs.1.is_some()) > 1900);
}

/// The exact search for the corpus: what is not proved soon is left out.
const CORPUS: Effort = Effort { places: 150, branches: 25 };

/// Protects: what extraction finds by default is within 1% of the cheapest, on average over the
/// e-graphs of the corpus where that is known.
#[test]
fn default_extraction_is_near_the_cheapest() {
    let library = Library::shipped().unwrap();
    let rules = prepare(&library, Level::Real).unwrap();
    // Derivatives are so large that little of them is proved; `benches/optimize.rs` has them.
    let cases: Vec<Case> = corpus().into_iter().filter(|c| !c.name.starts_with("programs/grad/")).collect();
    let defs: Vec<_> = cases.iter().flat_map(|c| c.program.defs.values().map(move |d| (c, d))).collect();
    let ratio = |(case, def): &(&Case, &Def)| {
        let (mut g, root) = saturated(&case.program, def, &rules, 1500)?;
        Some(quality(&case.program, def, &mut g, root, CORPUS)?.ratio())
    };
    let ratios: Vec<Option<f64>> = defs.par_iter().filter_map(ratio).collect();
    let known: Vec<f64> = ratios.iter().flatten().copied().collect();
    let mean = known.iter().sum::<f64>() / known.len() as f64;
    println!("{} of {} proved, there {mean:.5} times the cheapest on average", known.len(), ratios.len());
    assert!(known.len() > 300 && mean < 1.01, "{} proved, {mean}", known.len());
}
