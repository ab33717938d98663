//! Measurements of schedules: what crashes, hangs, lies or takes too much is told so, never chosen, and ends nothing; a search
//! that is killed goes on as if nothing had happened.

use crate::common;
use daedal::diag::Source;
use daedal::machine::Machine;
use daedal::pipeline::lab::{self, Book, Lab, Limits, Setup};
use daedal::pipeline::tuning::{self, Mode, Options};
use daedal::run::{child, memory};
use daedal::stage::extract;
use daedal::tune::explore::{Settings, Way};
use daedal::tune::record::{self, Known, Outcome};
use daedal::tune::{Model, example, tree};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// What stands for `daedal measure`: by the check sum of a schedule it crashes, hangs, gives another value in no time, takes
/// memory, fails with a message, writes nonsense, or says some time.
const PLANTED: &str = r#"#!/bin/sh
case " $* " in *" --compile "*) exit 0 ;; esac
if [ "$3" = none ]; then echo '{"min":0.5,"median":0.5,"digest":"right"}'; exit 0; fi
n=$(cksum < "$3" | cut -d' ' -f1)
case $((n % 9)) in
  0) kill -SEGV $$ ;;
  1) sleep 60 ;;
  2) echo '{"min":1e-9,"median":1e-9,"digest":"wrong"}' ;;
  3) head -c 400000000 /dev/zero | tail -c 300000000 | sleep 60 ;;
  4) echo 'error: it failed in its own way' >&2; exit 1 ;;
  5) echo 'nonsense' ;;
  *) echo "{\"min\":0.00$((n % 1000 + 1000)),\"median\":0.01,\"digest\":\"right\"}" ;;
esac
"#;

/// What each of them comes to.
const REASONS: [&str; 6] = [
    "it was ended by signal 11",
    "it did not end within 0.7 s",
    "it gives another value",
    "it took more than 100 MB of memory",
    "error: it failed in its own way",
    "it said nothing of its time",
];

fn script(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("planted");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Protects: whatever candidates do, the search ends, each of them has its reason among the records, and the best of those that
/// did nothing wrong is chosen; with the records nothing is measured again.
#[test]
fn planted_candidates_are_told_apart_and_never_chosen() {
    let folder = tempfile::tempdir().unwrap();
    let (daedal, path) = (script(folder.path(), PLANTED), folder.path().join("r.jsonl"));
    let text = std::fs::read_to_string(common::root("benches/schedules/kernels.ks")).unwrap();
    let program = daedal::types::program(&Source::new("kernels.ks", text)).unwrap();
    let def = program.named("corners")[0];
    let sizes = [("h".to_string(), 40), ("w".to_string(), 64)];
    let args = example::arguments(def, &sizes, 1).unwrap();
    let machine = Machine { vector_bytes: 32, threads: 2, caches: [32 << 10, 1 << 20, 8 << 20] };
    let run = |known: Known| {
        let limits = Limits { compiling: 20.0, measuring: 0.7, bytes: 100 << 20 };
        let (daedal, stop) = (daedal.clone(), &|| false);
        let setup = Setup { daedal, words: vec![], threads: 2, real: false, limits, stop };
        let (mut count, mut said) = (0, vec![]);
        let mut told = |outcome: Option<&Outcome>| count += usize::from(outcome.is_some());
        let mut lab = Lab::new(setup, Some(Book { path: &path, case: "c", cut: false }), &mut told).unwrap();
        let search = Settings { way: Way::Beam, beam: 2, evaluations: 200, seed: 0, keep: 16 };
        let options = Options { mode: Mode::Autotune, model: Model::default(), search, measurements: 48, stop, known };
        let graph = extract(&program, def).unwrap_or_else(|u| panic!("{}", u.diagnostic(&program)));
        let tuned = tuning::tune(def, graph, &args, &machine, &options, &mut |steps| {
            said.extend(steps.to_vec());
            lab.measure(steps)
        });
        drop(lab);
        (tuned.unwrap_or_else(|d| panic!("{}", d.render())), count, said)
    };
    let (tuned, count, _) = run(Known::default());
    let records = record::read(&std::fs::read_to_string(&path).unwrap(), "c");
    assert_eq!((count, records.outcomes.len(), records.unread), (48, 48, 0));
    let mut found: BTreeMap<&str, usize> = BTreeMap::new();
    for outcome in records.outcomes.values() {
        if let Outcome::Failed(why) = outcome {
            *found.entry(why).or_insert(0) += 1;
        }
    }
    for reason in REASONS {
        assert!(found.contains_key(reason), "{reason}: {found:?}");
    }
    assert_eq!(found.len(), REASONS.len(), "{found:?}");
    let best = records.outcomes.values().map(Outcome::seconds).fold(f64::INFINITY, f64::min);
    assert!(best >= 1e-3 && tuned.outcome.as_ref().unwrap().seconds() == best, "{:?}", tuned.outcome);
    let (again, _, asked) = run(records);
    assert_eq!((tree::steps(&again.schedule), asked), (tree::steps(&tuned.schedule), vec![]));
}

/// Protects: a program that cannot even be measured as it stands is an error, whatever the reason.
#[test]
fn a_program_that_cannot_be_measured_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let daedal = script(folder.path(), "#!/bin/sh\nkill -ABRT $$\n");
    let limits = Limits { compiling: 5.0, measuring: 5.0, bytes: memory::available() };
    let setup = |daedal: PathBuf| Setup { daedal, words: vec![], threads: 1, real: false, limits, stop: &|| false };
    let error = |daedal: PathBuf| {
        let mut told = |_: Option<&Outcome>| {};
        Lab::new(setup(daedal), None, &mut told).unwrap().measure(&["parallel a i\n".into()]).unwrap_err().render()
    };
    let crashed = error(daedal);
    assert!(crashed.contains("cannot be measured") && crashed.contains("signal 6"), "{crashed}");
    let missing = error(folder.path().join("nothing"));
    assert!(missing.contains("cannot be started"), "{missing}");
}

/// Protects: what a process started ends with it, and nobody waits for it: neither for one that hangs, nor for what holds its
/// pipes.
#[test]
fn nothing_is_left_of_a_process_that_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    let text = format!("#!/bin/sh\n(sleep 1.5; echo left > '{}') &\nsleep 60\n", mark.display());
    let daedal = script(folder.path(), &text);
    let from = Instant::now();
    let limits = child::Limits { seconds: 0.3, bytes: u64::MAX, stop: &|| false };
    let said = child::output(&daedal, &[], &limits).unwrap();
    assert_eq!(said.unwrap_err(), "it did not end within 0.3 s");
    let stopped = child::Limits { seconds: 60.0, bytes: u64::MAX, stop: &|| from.elapsed().as_secs_f64() > 0.6 };
    assert_eq!(child::output(&daedal, &[], &stopped).unwrap().unwrap_err(), "nobody waited for it any more");
    assert!(from.elapsed().as_secs_f64() < 1.4, "{:?}", from.elapsed());
    std::thread::sleep(Duration::from_secs(2));
    assert!(!mark.exists(), "what it started went on");
}

/// Protects: a full disk is told, and is no panic.
#[test]
fn a_record_that_cannot_be_written_is_an_error() {
    let full = Path::new("/dev/full");
    if full.exists() {
        let error = lab::append(full, &mut false, "{}").unwrap_err().render();
        assert!(error.contains("cannot write /dev/full"), "{error}");
    }
}

fn daedal(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_daedal"));
    command.current_dir(dir).env("DAEDAL_CACHE", dir.join("cache")).args(args);
    command
}

fn good(o: Output) -> (serde_json::Value, String) {
    let notes = String::from_utf8_lossy(&o.stderr).into_owned();
    assert!(o.status.success(), "{notes}");
    (serde_json::from_slice(&o.stdout).unwrap(), notes)
}

/// Moments at which a search is killed, in seconds, anew for each attempt.
const KILLED: [f64; 10] = [0.15, 0.3, 0.35, 0.2, 0.6, 0.25, 0.45, 0.1, 0.7, 0.5];

/// Protects: a search that is killed at any moment loses nothing that was measured, and ends with what one finds that is never
/// interrupted and has the same records.
#[test]
fn a_killed_search_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    std::fs::copy(common::root("benches/schedules/kernels.ks"), d.join("k.ks")).unwrap();
    let words = [
        "schedule",
        "k.ks",
        "blur",
        "--size",
        "h=40",
        "--size",
        "w=70",
        "--evaluations",
        "60",
        "--beam",
        "2",
        "--mode",
        "autotune",
        "--measurements",
        "12",
        "--json",
        "--records",
    ];
    let with = |records: &'static str| -> Vec<&str> { words.iter().copied().chain([records]).collect() };
    let path = d.join("r.jsonl");
    // Whole lines: the last one may be cut off.
    let whole = || -> Vec<String> {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let end = text.rfind('\n').map_or(0, |k| k + 1);
        text[..end].lines().map(str::to_string).collect()
    };
    let (mut before, mut kills) = (whole(), 0);
    for moment in KILLED {
        let mut child = daedal(d, &with("r.jsonl")).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_secs_f64(moment));
        kills += usize::from(child.try_wait().unwrap().is_none());
        let _ = (child.kill(), child.wait());
        let now = whole();
        assert!(now.starts_with(&before), "lost: {before:?} became {now:?}");
        before = now;
    }
    assert!(kills >= 3, "only {kills} were killed: the search is too fast for this test");
    let (ended, _) = good(daedal(d, &with("r.jsonl")).output().unwrap());
    let records = whole();
    assert!(records.starts_with(&before));
    let steps = |line: &String| serde_json::from_str::<record::Record>(line).unwrap().steps;
    let mut each: Vec<String> = records.iter().map(steps).collect();
    each.sort();
    each.dedup();
    assert_eq!((records.len(), each.len()), (12, 12), "each schedule is measured once");
    std::fs::copy(&path, d.join("whole.jsonl")).unwrap();
    let (uninterrupted, _) = good(daedal(d, &with("whole.jsonl")).output().unwrap());
    assert_eq!((&ended["steps"], &ended["outcome"]), (&uninterrupted["steps"], &uninterrupted["outcome"]));
    assert_eq!(std::fs::read(&path).unwrap(), std::fs::read(d.join("whole.jsonl")).unwrap());
    let best = records.iter().map(|l| serde_json::from_str::<record::Record>(l).unwrap().outcome.seconds());
    assert_eq!(ended["outcome"]["seconds"]["min"].as_f64().unwrap(), best.fold(f64::INFINITY, f64::min));

    // A line that is no record is told of, skipped and kept; records of another number of threads are told of.
    let spoilt = records[..4].join("\n") + "\nno record\n" + &records[4..].join("\n") + "\n";
    std::fs::write(&path, &spoilt).unwrap();
    let (_, notes) = good(daedal(d, &with("r.jsonl")).output().unwrap());
    assert!(notes.contains("note: 1 line of r.jsonl cannot be read; nothing there is changed"), "{notes}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), spoilt);
    let words: Vec<&str> = with("whole.jsonl").into_iter().chain(["--max-seconds", "0.01"]).collect();
    let other: Vec<&str> = words.iter().copied().chain(["--threads", "7"]).collect();
    let (_, notes) = good(daedal(d, &other).output().unwrap());
    assert!(notes.contains("12 lines of whole.jsonl tell of other programs"), "{notes}");
    let small: Vec<&str> = with("none.jsonl").into_iter().chain(["--max-memory", "1", "--size", "h=3000"]).collect();
    let refused = daedal(d, &small).output().unwrap();
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(1) && text.contains("it took more than 1 MB of memory"), "{refused:?}");
    let unasked: Vec<OsString> = ["schedule", "k.ks", "blur", "--max-memory", "5"].map(OsString::from).into();
    let refused = daedal(d, &[]).args(unasked).output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("hint: `--mode` says"), "{refused:?}");
}
