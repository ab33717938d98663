//! Derivatives agree with differences, with each other, and with themselves after every other pass.
#![allow(clippy::unwrap_used, reason = "a test that meets what it does not expect should stop there")]

mod common;

use common::generate::{self, Knobs};
use common::{arguments, corpus};
use daedal::ad::check::{self, Checked};
use daedal::ir::{Body, Def, print};
use rayon::prelude::*;

/// Why a definition of the corpus is left out, where its derivative is refused with reason.
fn refused(message: &str) -> bool {
    ["no derivative", "no floats"].iter().any(|m| message.contains(m))
}

fn floats(def: &Def) -> Vec<bool> {
    def.params.iter().map(|p| p.ty.tangent().depth() > 0 || p.ty.is_linear()).collect()
}

/// Protects: both modes on the whole corpus, at the arguments of its run lines.
#[test]
fn the_corpus_has_right_derivatives() {
    let only = std::env::var("ONLY").ok();
    let results: Vec<(usize, usize, Vec<String>)> = corpus()
        .par_iter()
        .map(|case| {
            let (mut modes, mut smooth, mut failed) = (0, 0, vec![]);
            for run in &case.runs {
                if only.as_ref().is_some_and(|o| !format!("{}:{}", case.name, run.def).contains(o)) {
                    continue;
                }
                for def in case.program.named(&run.def) {
                    if !matches!(def.body, Body::Term(_)) {
                        continue;
                    }
                    let Ok(args) = arguments(def, &run.args) else { continue };
                    let wrt = floats(def);
                    let checked = match Checked::new(&case.program, def, &wrt) {
                        Ok(c) => c,
                        Err(d) if refused(&d.message) => continue,
                        Err(d) => {
                            failed.push(format!("{}:{} {}: {d}", case.name, run.line, run.def));
                            continue;
                        }
                    };
                    let show = || {
                        let (f, r) = checked.derivatives();
                        let p = checked.program();
                        [f, r].map(|f| print::def(&p.terms, &p.defs[&f])).join("\n")
                    };
                    match checked.at(&args, 7) {
                        Err(d) => failed.push(format!("{}:{} {}: {d}\n{}", case.name, run.line, run.def, show())),
                        Ok(None) => {}
                        Ok(Some(p)) => {
                            modes += 1;
                            if p.difference.is_some() {
                                smooth += 1;
                            }
                            let bad = p.off_modes() > check::MODES || p.off_difference().is_some_and(|d| d > check::DIFFERENCE);
                            if bad && p.forward.is_finite() {
                                failed.push(format!("{}:{} {}: {p:?}\n{}", case.name, run.line, run.def, show()));
                            }
                        }
                    }
                }
            }
            (modes, smooth, failed)
        })
        .collect();
    let modes: usize = results.iter().map(|r| r.0).sum();
    let smooth: usize = results.iter().map(|r| r.1).sum();
    println!("{modes} points, {smooth} smooth");
    let failed: Vec<String> = results.into_iter().flat_map(|r| r.2).collect();
    assert!(failed.is_empty(), "{} failures\n{}", failed.len(), failed.join("\n"));
    assert!(only.is_some() || modes >= 100, "only {modes} points were compared");
}

#[allow(dead_code)]
fn unused(k: &Knobs) {
    let _ = generate::program(0, k);
}
