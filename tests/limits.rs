//! A search that is cut short by time, memory or its user still gives a program.
#![allow(clippy::unwrap_used, reason = "a test that meets what it does not expect should stop there")]

mod common;

use common::root;
use serde_json::Value as Json;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The optimizer at work on something that takes far longer than any limit of these tests.
fn optimize(out: &Path, limits: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_daedal"));
    command.arg("optimize").arg(root("programs/apps/gmm.ks"));
    command.args(["--json", "--max-nodes", "2000000", "-o"]).arg(out).args(limits);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// What is said of the definitions, after a look at the program that was written.
fn rows(stdout: &str, out: &Path) -> Vec<Json> {
    let written = std::fs::read_to_string(out).unwrap();
    common::read("out.ks", &written).unwrap_or_else(|d| panic!("{d}\n{written}"));
    let json: Json = serde_json::from_str(stdout).unwrap();
    let rows = json["defs"].as_array().unwrap().clone();
    assert!(rows.iter().all(|r| r["cost_after"].as_f64() <= r["cost_before"].as_f64()), "{stdout}");
    rows
}

/// Protects: limits of time and memory end the search with the best so far.
#[test]
fn a_search_ends_at_its_limits() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out.ks");
    for (limit, reason) in [(["--max-seconds", "1"], "time"), (["--max-memory", "1"], "memory")] {
        let from = Instant::now();
        let o = optimize(&out, &limit).output().unwrap();
        let (stdout, stderr) = (String::from_utf8_lossy(&o.stdout), String::from_utf8_lossy(&o.stderr));
        assert!(o.status.success(), "{stderr}");
        assert!(stderr.contains(&format!("stopped by {reason}")), "{stderr}");
        // Only a search without a limit takes minutes.
        assert!(from.elapsed() < Duration::from_secs(60), "{:?}", from.elapsed());
        assert!(rows(&stdout, &out).iter().any(|r| r["stopped"] == reason), "{stdout}");
    }
}

/// Protects: so do searches of terms, whose own limit is a number.
#[test]
fn a_search_of_terms_ends_at_its_limits() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out.ks");
    let from = Instant::now();
    let limits = ["--engine", "astar", "--budget", "1000000000", "--max-seconds", "2"];
    let o = optimize(&out, &limits).output().unwrap();
    let stderr = String::from_utf8_lossy(&o.stderr);
    assert!(o.status.success() && stderr.contains("stopped by time"), "{stderr}");
    assert!(from.elapsed() < Duration::from_secs(60), "{:?}", from.elapsed());
    assert!(rows(&String::from_utf8_lossy(&o.stdout), &out).iter().any(|r| r["stopped"] == "time"));
}

/// Protects: an interrupt gives the best so far, complete and with exit code 0.
#[cfg(unix)]
#[test]
fn an_interrupt_gives_the_best_so_far() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out.ks");
    let mut child = optimize(&out, &[]).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(2));
    assert!(child.try_wait().unwrap().is_none(), "the search ended by itself");
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let (mut stdout, mut stderr) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert!(child.wait().unwrap().success(), "{stderr}");
    assert!(stderr.contains("stopped by interrupt"), "{stderr}");
    assert!(rows(&stdout, &out).iter().any(|r| r["stopped"] == "interrupt"), "{stdout}");
}

/// Protects: what the search does by itself does not call for a limit.
#[test]
fn a_search_without_limits_is_not_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out.ks");
    let mut command = Command::new(env!("CARGO_BIN_EXE_daedal"));
    command.arg("optimize").arg(root("programs/scalar/tuples.ks")).args(["--json", "-o"]).arg(&out);
    let o = command.output().unwrap();
    assert!(o.stderr.is_empty(), "{}", String::from_utf8_lossy(&o.stderr));
    let rows = rows(&String::from_utf8_lossy(&o.stdout), &out);
    assert!(rows.iter().all(|r| r["stopped"].is_null()) && rows.iter().any(|r| r["proved"] == true));
}
