//! Programs and schedules together, beside one after the other.
//!
//! `cargo bench --bench joint` takes the programs of `programs.ks`, and measures what `daedal tune` makes of each, and what
//! `daedal optimize` and then `daedal schedule` make of it with as many measurements: seconds of a call, the least of turns in
//! which both have theirs, each in a process of its own. Names behind choose programs, `--measurements N` how many schedules
//! each way measures.
//!
//! Exit code 1 where the joint way is slower by more than a tenth: turns differ as much.
#![allow(clippy::unwrap_used, reason = "a benchmark that meets what it does not expect should stop there")]

use serde_json::Value as Json;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Programs and their sizes.
const EACH: [(&str, &[&str]); 4] = [
    ("normalized", &["n=1000", "m=1000"]),
    ("smoothed", &["h=1500", "w=2500"]),
    ("thrice", &["h=1500", "w=2500"]),
    ("edges", &["h=1500", "w=2500", "channels=3"]),
];
const TURNS: usize = 5;
const SLOWER: f64 = 1.1;

/// What `daedal` prints in a folder.
fn daedal(dir: &Path, words: &[String]) -> String {
    let out = Command::new(env!("CARGO_BIN_EXE_daedal")).current_dir(dir).args(words).output().unwrap();
    assert!(out.status.success(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

fn words(of: &[&str], sizes: &[&str]) -> Vec<String> {
    let sizes = sizes.iter().flat_map(|s| ["--size", s]);
    of.iter().copied().chain(sizes).map(ToString::to_string).collect()
}

/// Seconds of a call of a program under its schedule.
fn seconds(dir: &Path, name: &str, def: &str, sizes: &[&str]) -> f64 {
    let (ks, sched) = (format!("{name}.ks"), format!("{name}.sched"));
    let said = daedal(dir, &words(&["measure", &ks, def, "--schedule", &sched, "--float", "real"], sizes));
    serde_json::from_str::<Json>(said.trim()).unwrap()["min"].as_f64().unwrap()
}

fn main() -> ExitCode {
    let asked: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let number = asked.iter().position(|a| a == "--measurements").and_then(|k| asked.get(k + 1));
    let measurements = number.map_or("32", String::as_str);
    let named = |def: &str| asked.iter().any(|a| a == def);
    let all = !EACH.iter().any(|(def, _)| named(def));
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    std::fs::write(d.join("source.ks"), include_str!("programs.ks")).unwrap();
    println!(
        "{:12} {:>14} {:>14} {:>8}  the program of the joint way",
        "program", "one by one, ms", "together, ms", "ratio"
    );
    let mut good = true;
    for (def, sizes) in EACH.into_iter().filter(|(def, _)| all || named(def)) {
        let joint = daedal(
            d,
            &words(&["tune", "source.ks", def, "--measurements", measurements, "--json", "-o", "joint.ks"], sizes),
        );
        let joint: Json = serde_json::from_str(joint.trim()).unwrap();
        daedal(d, &words(&["optimize", "source.ks", "--def", def, "-o", "after.ks"], sizes));
        let search = ["schedule", "after.ks", def, "--mode", "autotune", "--measurements", measurements];
        let search: Vec<&str> = search.into_iter().chain(["--float", "real", "-o", "after.sched"]).collect();
        daedal(d, &words(&search, sizes));
        let (mut after, mut together) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..TURNS {
            after = after.min(seconds(d, "after", def, sizes));
            together = together.min(seconds(d, "joint", def, sizes));
        }
        let chosen: Vec<&str> = joint["chosen"].as_array().unwrap().iter().filter_map(Json::as_str).collect();
        let ratio = together / after;
        println!("{def:12} {:>14.3} {:>14.3} {ratio:>8.2}  {}", 1e3 * after, 1e3 * together, chosen.join(", "));
        good &= ratio <= SLOWER;
    }
    ExitCode::from(u8::from(!good))
}
