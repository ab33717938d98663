//! `daedal bench`: the pages it writes are what it prints.

use std::path::Path;
use std::process::{Command, Output};

fn bench(args: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    Command::new(env!("CARGO_BIN_EXE_daedal")).current_dir(root).arg("bench").args(args).output().unwrap()
}

/// Protects: the costs that `docs/results.md` claims, and that none is above the best published.
#[test]
fn the_page_of_results_holds_what_the_suite_gives() {
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("results.md");
    let written = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/results.md")).unwrap();
    std::fs::write(&page, &written).unwrap();
    let trees = bench(&["mb2fbs", "--write", page.to_str().unwrap()]);
    assert!(trees.status.success(), "{}", String::from_utf8_lossy(&trees.stderr));
    let out = bench(&["costs", "--json", "--write", page.to_str().unwrap()]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert_eq!(
        std::fs::read_to_string(&page).unwrap(),
        written,
        "write it again: daedal bench SUITE --write docs/results.md"
    );
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let rows = json["rows"].as_array().unwrap();
    assert!(rows.len() >= 10);
    for row in rows {
        assert!(row["after"].as_f64().unwrap() <= row["published"].as_f64().unwrap() + 1e-9, "{row}");
    }
}

/// Protects: costs are held against times: each variant has both, the source is one of them, and names are asked for.
#[test]
fn costs_are_held_against_times() {
    let out = bench(&["cost-model", "--only", "dot", "--only", "normalize", "--json"]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let rows = json["rows"].as_array().unwrap();
    let of = |def: &str| rows.iter().filter(|r| r["definition"] == def).collect::<Vec<_>>();
    let (dot, normalize) = (of("dot"), of("normalize"));
    assert_eq!(dot.len() + normalize.len(), rows.len());
    assert!(rows.iter().all(|r| r["cost"].as_f64().unwrap() > 0.0 && r["seconds"].as_f64().unwrap() > 0.0), "{json}");
    // Each element sums all of them anew, as it is written: 500 times as much, by costs and by time.
    let least = |what: &str, of: &[&serde_json::Value]| {
        of.iter().map(|r| r[what].as_f64().unwrap()).fold(f64::INFINITY, f64::min)
    };
    let source = normalize.iter().find(|r| r["variant"].as_str().unwrap().contains("source")).unwrap();
    for what in ["cost", "seconds"] {
        assert!(least(what, &normalize) * 10.0 < source[what].as_f64().unwrap(), "{what}: {json}");
    }
    let out = bench(&["cost-model", "--only", "nothing"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&out.stderr).contains("the suite has no definition `nothing`"));
}

/// Protects: a page without the section is left as it is, and the message says what is missing.
#[test]
fn a_page_without_the_section_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("page.md");
    std::fs::write(&page, "nothing\n").unwrap();
    let out = bench(&["costs", "--write", page.to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&out.stderr).contains("has no line `<!-- costs: begin -->`"));
    assert_eq!(std::fs::read_to_string(&page).unwrap(), "nothing\n");
}

/// Protects: a bench of searches that was interrupted goes on where it was, and its table is the same. A build that can
/// train would train the networks of the other columns.
#[cfg(not(feature = "torch"))]
#[test]
fn an_interrupted_bench_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("results");
    let run = || {
        let args = ["knossos", "f", "--budget", "20", "--seeds", "2", "--json", "--output", folder.to_str().unwrap()];
        let out = bench(&args);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        json["rows"].clone()
    };
    let whole = run();
    assert_eq!(whole.as_array().unwrap().len(), 24);
    assert!(std::fs::read_to_string(folder.join("knossos-f.svg")).unwrap().starts_with("<svg"));
    let path = folder.join("knossos.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 24 * (2 + 2 * 2));
    // Killed while it wrote a line.
    std::fs::write(&path, &text[..text.len() / 2]).unwrap();
    assert_eq!(run(), whole);
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), text.lines().count());
    // Killed just before a line ended.
    std::fs::write(&path, text.trim_end()).unwrap();
    assert_eq!(run(), whole);
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), text.lines().count());
    std::fs::write(&path, "{}\n").unwrap();
    let out = bench(&["knossos", "f", "--output", folder.to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&out.stderr).contains("knossos.jsonl:1: expected a run of this bench"));
}

/// Protects: columns of trained networks. A build that cannot train says which weights it lacks; with weights in the
/// folder it searches with them once, and what was run stays on the page without them.
#[cfg(not(feature = "torch"))]
#[test]
fn trained_columns_come_from_weights_or_from_runs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let dir = tempfile::tempdir().unwrap();
    let page = || {
        let args = ["knossos", "a", "--budget", "20", "--seeds", "2", "--output", dir.path().to_str().unwrap()];
        let out = bench(&args);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    };
    let without = page();
    assert!(!without.contains("trained |"), "{without}");
    let line = without.lines().find(|l| l.contains("some runs are left out")).unwrap();
    let files: Vec<_> = line.split('`').filter(|w| w.ends_with(".safetensors")).map(|w| dir.path().join(w)).collect();
    assert_eq!(files.len(), 2, "{line}");
    for file in &files {
        std::fs::copy(root.join("src/rewrite/agent/value/shipped.safetensors"), file).unwrap();
    }
    let with = page();
    assert!(with.contains("trained |") && !with.contains("left out"), "{with}");
    // Nobody recorded how they were trained, but both were tested on the eight expressions.
    assert_eq!(with.lines().filter(|l| l.contains("| – | – | – | – |") && l.contains(" of 8 |")).count(), 2, "{with}");
    let records = std::fs::read_to_string(dir.path().join("knossos.jsonl")).unwrap();
    assert_eq!(records.lines().filter(|l| l.contains("trained")).count(), 8 * 2);
    files.iter().for_each(|file| std::fs::remove_file(file).unwrap());
    let table = |page: &str| page.lines().filter(|l| l.starts_with('|')).map(str::to_string).collect::<Vec<_>>();
    assert_eq!(table(&page()), table(&with));
    // A line of a training is a record like any other.
    let name = files[0].file_stem().unwrap().to_str().unwrap().strip_prefix("knossos-").unwrap();
    let training =
        format!("{{\"training\":\"{name}\",\"epochs\":7,\"evaluations\":1234,\"met\":8,\"of\":8,\"seconds\":90.0}}\n");
    std::fs::write(dir.path().join("knossos.jsonl"), records + &training).unwrap();
    assert!(page().contains("| 0 | 7 | 1234 | 1.5 | 8 of 8 |"), "{}", page());
}

/// Protects: the ceilings of the machine: all are there, on one thread and on all, and each is a rate that a processor may have:
/// a loop that the compiler left out would be beyond.
#[test]
fn the_machine_is_measured() {
    let out = bench(&["roofline", "--json"]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let rows = json["rows"].as_array().unwrap();
    let named = |r: &serde_json::Value| format!("{} {}", r["kind"].as_str().unwrap(), r["of"]);
    let names: Vec<String> = rows.iter().map(named).collect();
    let levels = (1..=4).flat_map(|k| [format!("copy {k}"), format!("triad {k}")]);
    let want: Vec<String> = ["fma 64", "fma 32"].map(String::from).into_iter().chain(levels).collect();
    assert_eq!(names, want);
    for row in rows {
        let threads = row["threads"].as_f64().unwrap();
        for (rate, of) in [(&row["one"], 1.0), (&row["all"], threads)] {
            let rate = rate.as_f64().unwrap();
            assert!(rate > 0.05 && rate < 2000.0 * of, "{row}");
        }
    }
}

/// Protects: what is no definition of the suite, and a file of another one, are told before anything runs.
#[test]
fn searches_of_schedules_say_what_they_cannot_bench() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().to_str().unwrap();
    let told = |args: &[&str]| {
        let out = bench(args);
        assert_eq!(out.status.code(), Some(1));
        String::from_utf8_lossy(&out.stderr).into_owned()
    };
    let unknown = told(&["autoschedule", "--only", "nothing", "--output", folder]);
    assert!(
        unknown.contains("no program of this suite is called `nothing`") && unknown.contains("`harris`"),
        "{unknown}"
    );
    assert!(told(&["costs", "--only", "harris"]).contains("has no definitions to choose"));
    std::fs::write(dir.path().join("autoschedule.jsonl"), "{\"other\":1}\n").unwrap();
    let other = told(&["autoschedule", "--only", "harris", "--output", folder]);
    assert!(other.contains("autoschedule.jsonl:1: expected a line of this suite"), "{other}");
}
