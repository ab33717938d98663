//! Random schedules of random programs at length, and under sanitizers.
//!
//! `cargo bench --bench random_schedules -- --count 50000 --seed 0` makes a random program of each seed and a random schedule
//! of it, and compares its nests in their interpreter and its C++ on one thread and two with the interpreter of programs, to
//! the bit. `--sanitize address,undefined` and `--sanitize thread` compile with what the compiler has to watch addresses,
//! undefined behaviour and races. Blocks of seeds have processes of their own, so that one that crashes ends no other; each
//! failure is told with its seed and the line that runs it alone. `--seconds N` begins no block later, and says where to go on.
//!
//! Exit code 1 where anything is wrong; needs g++, or what CXX names.
#![allow(clippy::unwrap_used, reason = "a benchmark that meets what it does not expect should stop there")]

#[path = "../../tests/common/mod.rs"]
mod common;
mod planted;
mod trial;

use rayon::prelude::*;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Instant;

/// Seeds of a block: those of one translation unit, or few where the compiler is slow.
const BLOCK: u64 = 100;
const WATCHED: u64 = 10;

/// What is asked for.
#[derive(Clone, Default)]
struct Asked {
    count: u64,
    seed: u64,
    seconds: Option<f64>,
    sanitize: Option<String>,
    /// Whether this process is one that runs a block.
    worker: bool,
    /// The fault that it commits instead.
    planted: Option<String>,
}

impl Asked {
    fn read(words: &[String]) -> Result<Asked, String> {
        let mut out = Asked { count: 1000, ..Asked::default() };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if word == "--worker" {
                out.worker = true;
                continue;
            }
            let value = words.next().ok_or_else(|| format!("`{word}` needs a value"))?;
            let number = || value.parse::<u64>().map_err(|_| format!("`{word} {value}`: expected a number"));
            match word.as_str() {
                "--count" => out.count = number()?,
                "--seed" => out.seed = number()?,
                "--seconds" => out.seconds = Some(number()? as f64),
                "--sanitize" => out.sanitize = Some(value.clone()),
                "--planted" => out.planted = Some(value.clone()),
                _ => return Err(format!("`{word}`: expected --count N, --seed S, --seconds N or --sanitize WHAT")),
            }
        }
        Ok(out)
    }

    /// The line that runs some seeds again.
    fn line(&self, seed: u64, count: u64) -> String {
        let watched = self.sanitize.as_ref().map_or(String::new(), |s| format!(" --sanitize {s}"));
        format!("cargo bench --bench random_schedules -- --count {count} --seed {seed}{watched}")
    }
}

/// What came of some seeds.
#[derive(Default)]
struct Came {
    staged: u64,
    parallel: u64,
    given_up: u64,
    wrong: Vec<(u64, String)>,
}

impl Came {
    fn add(&mut self, other: Came) {
        self.staged += other.staged;
        self.parallel += other.parallel;
        self.given_up += other.given_up;
        self.wrong.extend(other.wrong);
    }
}

/// Runs seeds in processes of their own, and goes on behind one that ends its process.
fn block(asked: &Asked, from: u64, to: u64) -> Came {
    let (mut out, mut at) = (Came::default(), from);
    while at < to {
        let said = worker(asked, at, to - at).output().unwrap();
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        let mut running = at;
        for line in text.lines() {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            let numbers: Vec<u64> = rest.split(' ').filter_map(|n| n.parse().ok()).collect();
            match (word, numbers.as_slice()) {
                ("running", [seed]) => running = *seed,
                ("came", [staged, parallel, given_up]) => {
                    out.add(Came { staged: *staged, parallel: *parallel, given_up: *given_up, wrong: vec![] });
                }
                ("wrong", [seed, ..]) => {
                    let shown: String = serde_json::from_str(rest.split_once(' ').map_or("", |(_, s)| s)).unwrap();
                    out.wrong.push((*seed, shown));
                }
                _ => {}
            }
        }
        if said.status.success() {
            return out;
        }
        let errors = String::from_utf8_lossy(&said.stderr);
        let shown = errors.lines().take(60).collect::<Vec<_>>().join("\n");
        out.wrong.push((running, format!("the process ended: {}\n{shown}", said.status)));
        at = running + 1;
    }
    out
}

/// The process that runs some seeds.
fn worker(asked: &Asked, seed: u64, count: u64) -> Command {
    let own = std::env::current_exe().unwrap();
    let words = ["--worker".to_string(), "--seed".into(), seed.to_string(), "--count".into(), count.to_string()];
    let Some(what) = &asked.sanitize else {
        let mut command = Command::new(own);
        command.args(words).env("RAYON_NUM_THREADS", "1");
        return command;
    };
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "g++".into());
    // What watches is there before all else; GCC 12 needs its addresses where it expects them, which chance may not choose.
    let watch: Vec<String> = what.split(',').filter_map(|name| library(&compiler, name)).collect();
    let mut command = Command::new("setarch");
    command.args(["-R", "env"]).arg(format!("LD_PRELOAD={}", watch.join(":"))).arg(own).args(words);
    command.args(["--sanitize", what]).env("RAYON_NUM_THREADS", "1");
    command.env("CXX", format!("{compiler} -g1 -fsanitize={what} -fno-sanitize-recover=all"));
    command.env("ASAN_OPTIONS", "detect_leaks=0").env("UBSAN_OPTIONS", "print_stacktrace=1");
    command.env("TSAN_OPTIONS", "halt_on_error=1:report_signal_unsafe=0");
    command
}

/// The library of a sanitizer.
fn library(compiler: &str, name: &str) -> Option<String> {
    let short = match name {
        "address" => "asan",
        "undefined" => "ubsan",
        "thread" => "tsan",
        _ => return None,
    };
    let out = Command::new(compiler).arg(format!("-print-file-name=lib{short}.so")).output().unwrap();
    Some(String::from_utf8_lossy(&out.stdout).trim().to_string())
}

/// Where compiled code of this run is kept.
fn cache() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("random_schedules")
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let asked = match Asked::read(&words) {
        Ok(asked) => asked,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::from(2);
        }
    };
    if asked.worker {
        let compiler = std::env::var("CXX").ok();
        if let Some(name) = &asked.planted {
            planted::commit(name, compiler, cache());
            return ExitCode::SUCCESS;
        }
        trial::run(asked.seed, asked.count, asked.sanitize.as_deref() == Some("thread"), compiler, cache());
        return ExitCode::SUCCESS;
    }
    // What sees no fault says nothing where it finds none.
    for name in asked.sanitize.iter().flat_map(|s| s.split(',')) {
        let said = worker(&asked, 0, 0).args(["--planted", name]).output().unwrap();
        let errors = String::from_utf8_lossy(&said.stderr);
        if said.status.success() || !errors.contains(planted::sign(name)) {
            eprintln!("the sanitizer `{name}` does not see a fault that was planted: {}\n{errors}", said.status);
            return ExitCode::from(2);
        }
    }
    let (start, size) = (Instant::now(), if asked.sanitize.is_some() { WATCHED } else { BLOCK });
    let (mut came, mut at, end) = (Came::default(), asked.seed, asked.seed + asked.count);
    // All that comes before is done where the next seed is told.
    let wave = size * rayon::current_num_threads() as u64;
    while at < end && asked.seconds.is_none_or(|s| start.elapsed().as_secs_f64() < s) {
        let to = (at + wave).min(end);
        let blocks: Vec<u64> = (at..to).step_by(size as usize).collect();
        let each: Vec<Came> = blocks.par_iter().map(|from| block(&asked, *from, (from + size).min(to))).collect();
        for found in each {
            for (seed, shown) in &found.wrong {
                println!("seed {seed} is wrong: {shown}\nagain: {}\n", asked.line(*seed, 1));
            }
            came.add(found);
        }
        at = to;
        if (at - asked.seed) % (20 * wave) == 0 {
            println!("{} seeds, {} staged, {} wrong", at - asked.seed, came.staged, came.wrong.len());
        }
    }
    println!(
        "{} seeds from {}: {} are staged, {} of them with loops on threads, {} leave their call to the reference; {} wrong, \
         in {:.0} s",
        at - asked.seed,
        asked.seed,
        came.staged,
        came.parallel,
        came.given_up,
        came.wrong.len(),
        start.elapsed().as_secs_f64()
    );
    if at < end {
        println!("go on: {}", asked.line(at, end - at));
    }
    ExitCode::from(u8::from(!came.wrong.is_empty()))
}
