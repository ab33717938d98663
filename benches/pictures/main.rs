//! Pipelines of pictures beside Halide: under the default schedules, and under schedules by hand.
//!
//! `cargo bench --bench pictures [-- NAME…] [--write FILE]` measures programs of `programs/imaging/` at the sizes that the
//! table names, by `daedal measure`, with every bit kept, on one thread and on two. Where `python3`, or what PYTHON names, has
//! Halide, the same pipelines run there (`peers.py`), in turns, under its schedulers Mullapudi2016 and Adams2019 and under a
//! schedule by hand, and results must agree. A search that takes longer than a limit is left out. Names behind choose
//! pipelines. `--write` puts the table into its section of a page.
//!
//! Exit code 1 where a result is not that of Halide; no page is written then.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark that meets what it does not expect should stop there"
)]

#[path = "../common/mod.rs"]
mod common;
mod data;
mod peer;

use common::command::{Chosen, daedal, version};
use data::Picture;
use peer::Peer;
use serde_json::Value as Json;
use std::path::Path;
use std::process::ExitCode;

/// Rounds in which each way is timed once.
const TURNS: usize = 3;
const THREADS: [&str; 2] = ["1", "2"];
/// What a number may differ from Halide's by, as a part of the greatest magnitude of the result.
const BOUND: f64 = 1e-4;

const HEAD: [&str; 2] = ["| pipeline | size | threads | default | by hand |", "|---|---|---:|---:|---:|"];
const BESIDE: [&str; 2] = [
    " Mullapudi2016 | Adams2019 | Halide by hand | default to the better | by hand to by hand |",
    "---:|---:|---:|---:|---:|",
];

/// Milliseconds of the fastest calls, infinite where there are none: ours, by default and by hand, and Halide's in the order of
/// [`peer::WAYS`].
struct Times {
    own: [f64; 2],
    theirs: Option<[f64; 3]>,
}

impl Times {
    /// The default schedule to the better one of a scheduler, and that by hand to Halide's.
    fn ratios(&self) -> Option<[f64; 2]> {
        let [mullapudi, adams, hand] = self.theirs?;
        Some([self.own[0] / mullapudi.min(adams), self.own[1] / hand])
    }
}

/// Seconds of the fastest call under a schedule.
fn seconds(picture: &Picture, folder: &Path, schedule: &str, threads: &str) -> f64 {
    let mut words = vec!["measure", "--schedule", schedule, "--threads", threads];
    let arguments = picture.arguments(folder);
    words.extend(arguments.iter().map(String::as_str));
    let said: Json = serde_json::from_str(&daedal(&words)).unwrap();
    said["min"].as_f64().unwrap()
}

/// Writes the result that Halide's is held against.
fn result(picture: &Picture, folder: &Path) {
    let to = folder.join(format!("{}_result.npy", picture.name)).display().to_string();
    let mut words = vec!["run", "--quiet", "--schedule", "default", "-o", &to];
    let arguments = picture.arguments(folder);
    words.extend(arguments.iter().map(String::as_str));
    daedal(&words);
}

/// The times of a pipeline, and how far Halide's results are off.
fn measured(picture: &Picture, folder: &Path, threads: &str, beside: bool) -> (Times, f64) {
    let by_hand = picture.schedule();
    let ways = peer::WAYS.iter().filter(|_| beside);
    let mut peers: Vec<Option<Peer>> = ways.map(|way| Peer::start(folder, picture.name, way, threads)).collect();
    let mut times = Times { own: [f64::INFINITY; 2], theirs: beside.then_some([f64::INFINITY; 3]) };
    for _ in 0..TURNS {
        let ways = std::iter::once("default".to_string()).chain(by_hand.clone());
        for (best, way) in times.own.iter_mut().zip(ways) {
            *best = best.min(1e3 * seconds(picture, folder, &way, threads));
        }
        for (best, peer) in times.theirs.iter_mut().flatten().zip(&mut peers) {
            *best = peer.as_mut().map_or(f64::INFINITY, |p| best.min(1e3 * p.seconds()));
        }
    }
    (times, peers.into_iter().flatten().map(Peer::off).fold(0.0, f64::max))
}

/// A number of a row; a ratio to what is not there is 0.
fn shown(number: f64) -> String {
    if number.is_finite() && number > 0.0 { format!(" {number:.2} |") } else { " – |".into() }
}

fn line(picture: &Picture, threads: &str, times: &Times) -> String {
    let all = times.own.iter().chain(times.theirs.iter().flatten());
    let times_of: String = all.map(|t| shown(*t)).collect();
    let ratios: String = times.ratios().iter().flatten().map(|r| shown(*r)).collect();
    format!("| `{}` | {} | {threads} |{times_of}{ratios}", picture.name, picture.size())
}

/// The last lines: the geometric means of the ratios, for each number of threads, where there are any.
fn means(all: &[(&str, Times)]) -> Vec<String> {
    let mean = |threads: &str, k: usize| {
        let each = all.iter().filter(|(n, _)| *n == threads).filter_map(|(_, times)| times.ratios());
        let logarithms: Vec<f64> = each.map(|r| r[k].ln()).filter(|l| l.is_finite()).collect();
        (logarithms.iter().sum::<f64>() / logarithms.len().max(1) as f64).exp()
    };
    let ratios = |n: &&str| all.iter().any(|(m, times)| m == n && times.ratios().is_some());
    let line = |n: &str| format!("| geometric mean | | {n} | | | | | |{}{}", shown(mean(n, 0)), shown(mean(n, 1)));
    THREADS.into_iter().filter(ratios).map(line).collect()
}

fn main() -> ExitCode {
    let chosen = Chosen::read();
    let all = data::all();
    chosen.are_known("pipeline", all.iter().map(|p| p.name));
    let version = version(peer::SCRIPT);
    match &version {
        Some(version) => eprintln!("beside Halide {version}"),
        None => eprintln!("no Halide is found: the table has no columns of it; PYTHON names a Python that has it"),
    }
    let folder = tempfile::tempdir().unwrap();
    let head = |k: usize| format!("{}{}", HEAD[k], if version.is_some() { BESIDE[k] } else { "" });
    let mut lines = vec![head(0), head(1)];
    println!("{}", lines.join("\n"));
    let (mut times, mut wrong) = (vec![], vec![]);
    for picture in all.iter().filter(|p| chosen.has(p.name)) {
        picture.write(folder.path());
        result(picture, folder.path());
        for threads in THREADS {
            let (found, furthest) = measured(picture, folder.path(), threads, version.is_some());
            lines.push(line(picture, threads, &found));
            println!("{}", lines[lines.len() - 1]);
            if furthest > BOUND {
                wrong.push(format!("{} by {furthest:.0e}", picture.name));
            }
            times.push((threads, found));
        }
    }
    let last = means(&times);
    println!("{}", last.join("\n"));
    lines.extend(last);
    if !wrong.is_empty() {
        eprintln!("not what Halide makes, by more than {BOUND:.0e} of the greatest number: {}", wrong.join(", "));
        return ExitCode::FAILURE;
    }
    if let Some(page) = chosen.page {
        daedal::data::section(&page, "pictures", &lines).unwrap();
    }
    ExitCode::SUCCESS
}
