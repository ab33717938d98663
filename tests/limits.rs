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

/// Protects: so it does where a derivation is asked for, and what has none is not said to have had no time.
#[cfg(unix)]
#[test]
fn an_interrupt_is_told_as_one() {
    let dir = tempfile::tempdir().unwrap();
    let (out, steps) = (dir.path().join("out.ks"), dir.path().join("steps.jsonl"));
    let mut child = optimize(&out, &["--derivation", steps.to_str().unwrap()]).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(2));
    assert!(child.try_wait().unwrap().is_none(), "the search ended by itself");
    let (sent, from) = (Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap(), Instant::now());
    assert!(sent.success());
    let o = child.wait_with_output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&o.stdout), String::from_utf8_lossy(&o.stderr));
    assert!(o.status.success() && stderr.contains("stopped by interrupt"), "{stderr}");
    assert!(from.elapsed() < Duration::from_secs(20), "{:?}", from.elapsed());
    assert!(stdout.contains("it was interrupted") && !stdout.contains("the time is up"), "{stdout}");
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

/// A chain of lets, each of which rewriting finds something to do in.
fn chain(n: usize) -> String {
    let mut text = "(def f Float (x : Float)\n".to_string();
    for k in 0..n {
        let (one, two) = (k.saturating_sub(1), k.saturating_sub(2));
        let name = |j: usize| if k == 0 { "x".to_string() } else { format!("a{j}") };
        text += &format!("(let (a{k} (add (mul {} {k}.5) (sin {})))\n", name(one), name(two));
    }
    format!("{text}a{}{}\n", n - 1, ")".repeat(n + 1))
}

/// Protects: the time is that of the whole command, proofs of the result included. A loaded machine may
/// delay a process, and one of three tries is enough.
#[test]
fn the_limit_of_time_holds_whatever_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let (file, steps) = (dir.path().join("chain.ks"), dir.path().join("steps.jsonl"));
    std::fs::write(&file, chain(100)).unwrap();
    let steps = steps.to_str().unwrap();
    // Where a term has many parts in common, and loops in loops.
    let demosaic = root("programs/imaging/learned_demosaic.ks");
    // Where what is shared stands in so many places that they cannot be listed.
    let blur = root("programs/imaging/lens_blur.ks");
    let nested = dir.path().join("nested.ks");
    let arms = 20_000;
    let text = format!("(def f Float (x : Float) {}x{})", "(if (gt x 1.0) x ".repeat(arms), ")".repeat(arms));
    std::fs::write(&nested, text).unwrap();
    let cases: [(&Path, &[&str]); 10] = [
        (&file, &[]),
        (&file, &["--exact"]),
        (&file, &["--derivation", steps]),
        (&file, &["--engine", "auto", "--derivation", steps]),
        (&file, &["--engine", "astar", "--budget", "1000000000"]),
        (&file, &["--max-nodes", "1000000"]),
        (&demosaic, &["--derivation", steps]),
        (&blur, &["--def", "spread", "--engine", "greedy", "--derivation", steps]),
        (&blur, &["--def", "spread", "--engine", "mb2fbs", "--explain"]),
        (&nested, &[]),
    ];
    for (file, case) in cases {
        let took = (0..3).map(|_| {
            let from = Instant::now();
            let mut command = Command::new(env!("CARGO_BIN_EXE_daedal"));
            command.arg("optimize").arg(file).args(["--max-seconds", "2"]).args(case);
            let o = command.output().unwrap();
            assert!(o.status.success(), "{}", String::from_utf8_lossy(&o.stderr));
            from.elapsed().as_secs_f64()
        });
        let most = 2.0 * 1.1 + 0.2;
        let least = took.fold(f64::INFINITY, f64::min);
        assert!(least < most, "{} {case:?}: {least:.2} s", file.display());
    }
}

/// A command that is interrupted after so many milliseconds: what it prints, and its message.
#[cfg(unix)]
fn interrupted(after: u64, args: &[&str]) -> (String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_daedal"));
    command.args(args);
    told_to_end(after, command, args)
}

/// As [`interrupted`]; as from a terminal, what the command started is interrupted with it.
#[cfg(unix)]
fn told_to_end(after: u64, mut command: Command, args: &[&str]) -> (String, String) {
    use std::os::unix::process::CommandExt;
    command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    std::thread::sleep(Duration::from_millis(after));
    assert!(child.try_wait().unwrap().is_none(), "{args:?} ended by itself");
    let sent = Command::new("kill").args(["-INT", "--", &format!("-{}", child.id())]).status().unwrap();
    assert!(sent.success());
    let o = child.wait_with_output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&o.stdout), String::from_utf8_lossy(&o.stderr));
    assert_eq!(o.status.code(), Some(2), "{args:?}: {stdout}{stderr}");
    (stdout.to_string(), stderr.to_string())
}

/// Protects: long commands that are interrupted say what was done until then.
#[cfg(unix)]
#[test]
fn an_interrupt_keeps_what_was_done() {
    let (stdout, stderr) = interrupted(3000, &["rules", "check", "--all", "--effort", "10"]);
    assert!(stdout.contains(" rules pass, in "), "{stdout}");
    assert!(stderr.contains("interrupted: ") && stderr.contains(" rules were checked"), "{stderr}");
    let (stdout, stderr) = interrupted(2000, &["rules", "check", "--set", "--programs", "1000000"]);
    assert!(stdout.contains(" random programs"), "{stdout}");
    assert!(stderr.contains("interrupted: ") && stderr.contains(" rules are unchecked"), "{stderr}");
    let (stdout, stderr) = interrupted(2000, &["rules", "check", "--mutate", "--effort", "20"]);
    assert!(stdout.contains(" mutants: ") && stdout.contains("score "), "{stdout}");
    assert!(stderr.contains(" changed rules were checked"), "{stderr}");
    let (stdout, stderr) = interrupted(2000, &["rules", "test", "--max-nodes", "20000"]);
    assert!(stdout.contains(" of which fire nowhere"), "{stdout}");
    assert!(stderr.contains("interrupted: the rules were tried in "), "{stderr}");
    let gmm = root("programs/apps/gmm.ks");
    let (stdout, stderr) =
        interrupted(2000, &["grad", gmm.to_str().unwrap(), "logsumexp", "--check", "--samples", "100000000"]);
    assert!(stdout.lines().count() > 10, "{stdout}");
    assert!(stderr.contains("interrupted after "), "{stderr}");
    let (stdout, stderr) = interrupted(200, &["bench", "mb2fbs"]);
    assert!(stdout.contains("| β2, β1 |") && stdout.contains(" rows in "), "{stdout}");
    assert!(stderr.contains("these are the rows that were finished"), "{stderr}");
}

/// Protects: so does the proof of rules; a solver that is interrupted with it has not said that it does not know.
#[cfg(unix)]
#[test]
fn an_interrupt_keeps_what_was_proved() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let solver = dir.path().join("z3");
    let script = "#!/bin/sh\ncase \"$1\" in --version) exit 0;; esac\ncat > /dev/null\nsleep 0.2\necho unsat\n";
    std::fs::write(&solver, script).unwrap();
    std::fs::set_permissions(&solver, std::fs::Permissions::from_mode(0o755)).unwrap();
    let others = std::env::var_os("PATH").unwrap();
    let path = std::env::join_paths([dir.path().to_path_buf()].into_iter().chain(std::env::split_paths(&others)));
    let args = ["rules", "check", "--prove"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_daedal"));
    command.args(args).env("PATH", path.unwrap());
    let (stdout, stderr) = told_to_end(2000, command, &args);
    assert!(stdout.contains(": proved\n") && stdout.contains(" proved, 0 refuted, 0 unknown, "), "{stdout}");
    assert!(stderr.contains("interrupted: ") && stderr.contains(" rules were given to z3"), "{stderr}");
}
