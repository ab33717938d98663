//! Compiled code is kept and found again, whatever happens to the folder or the compiler.

use crate::common;
use daedal::run::Toolchain;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

const PROGRAM: &str = "(def twice Float (x : Float) (mul 2.0 x))\n(def thrice Float (x : Float) (mul 3.0 x))\n";

/// A folder with a program in it and a cache beside.
fn dir() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("p.ks"), PROGRAM).unwrap();
    dir
}

fn command(dir: &Path, def: &str, vars: &[(&str, &str)]) -> Command {
    let mut out = Command::new(env!("CARGO_BIN_EXE_daedal"));
    out.current_dir(dir).args(["run", "p.ks", def, "1.5"]).env("DAEDAL_CACHE", dir.join("cache"));
    out.env_remove("CXX").env_remove("DAEDAL_CACHE_SIZE").envs(vars.iter().copied());
    out
}

fn run(dir: &Path, def: &str) {
    let want = if def == "twice" { "3.0\n" } else { "4.5\n" };
    good(&command(dir, def, &[]).output().unwrap(), want);
}

fn good(o: &Output, want: &str) {
    let message = String::from_utf8_lossy(&o.stderr);
    assert!(o.status.success() && message.is_empty(), "{:?}: {message}", o.status);
    assert_eq!(String::from_utf8_lossy(&o.stdout), want);
}

/// The message of a run with another compiler, which is the user's error.
fn refused(dir: &Path, compiler: &str) -> String {
    let o = command(dir, "twice", &[("CXX", compiler)]).output().unwrap();
    let message = String::from_utf8_lossy(&o.stderr).to_string();
    assert_eq!(o.status.code(), Some(1), "{message}");
    assert!(message.contains("hint: install g++, or name another compiler"), "{message}");
    message
}

/// What lies in the cache, by the end of its name.
fn inside(dir: &Path, end: &str) -> Vec<PathBuf> {
    common::files(&dir.join("cache"), end)
}

fn leftovers(dir: &Path) -> Vec<PathBuf> {
    let each = fs::read_dir(dir.join("cache")).unwrap().map(|e| e.unwrap().path());
    each.filter(|p| p.file_name().unwrap().to_string_lossy().starts_with("making-")).collect()
}

/// A compiler that says its version, and then does what the script says.
fn script(dir: &Path, name: &str, does: &str) -> String {
    let path = dir.join(name);
    let text = format!("#!/bin/sh\nif [ \"$1\" = --version ]; then echo {name}; exit 0; fi\n{does}\n");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

fn age(path: &Path, hours: u64) {
    let then = SystemTime::now() - Duration::from_secs(3600 * hours);
    File::options().append(true).open(path).unwrap().set_modified(then).unwrap();
}

/// Protects: an object that is not what was written is compiled anew, silently, and never loaded.
#[test]
fn damaged_objects_are_compiled_again() {
    let dir = dir();
    let d = dir.path();
    run(d, "thrice");
    let other = fs::read(&inside(d, "so")[0]).unwrap();
    fs::remove_dir_all(d.join("cache")).unwrap();
    run(d, "twice");
    let object = inside(d, "so").remove(0);
    let whole = fs::read(&object).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    let damages: [(&str, Vec<u8>); 7] = [
        ("truncated", whole[..whole.len() / 2].to_vec()),
        ("shorter by a byte", whole[..whole.len() - 1].to_vec()),
        ("zeroed", vec![0; whole.len()]),
        ("emptied", vec![]),
        ("a text", b"no object".to_vec()),
        ("another object", other),
        ("one bit", flipped),
    ];
    for (what, damage) in damages {
        fs::write(&object, &damage).unwrap();
        run(d, "twice");
        assert!(fs::read(&object).unwrap() != damage, "{what} was left");
    }
    fs::remove_file(&object).unwrap();
    fs::create_dir(&object).unwrap();
    fs::write(object.join("file"), "").unwrap();
    run(d, "twice");
    assert!(object.is_file() && leftovers(d).is_empty());
}

/// Protects: an object that is whole is not compiled again.
#[test]
fn whole_objects_are_found() {
    let dir = dir();
    let d = dir.path();
    let compiler = script(d, "counting", "echo x >> count; exec g++ \"$@\"");
    for _ in 0..3 {
        good(&command(d, "twice", &[("CXX", &compiler)]).output().unwrap(), "3.0\n");
    }
    assert_eq!(fs::read_to_string(d.join("count")).unwrap(), "x\n");
}

/// Protects: the cache stays within its bound, and what was used last stays in it.
#[test]
fn the_least_recently_used_go_first() {
    let dir = dir();
    let cache = dir.path().join("cache");
    let mut tools = Toolchain { level: 0, ..Toolchain::discover(None, Some(cache)) };
    let text = |k: usize| format!("extern \"C\" int f() {{ return {k}; }}");
    let objects: Vec<PathBuf> = (0..3).map(|k| tools.object(&text(k)).unwrap()).collect();
    for (object, hours) in objects.iter().zip([3, 2, 1]) {
        age(object, hours);
    }
    // The oldest is used, so that it becomes the youngest.
    assert_eq!(tools.object(&text(0)).unwrap(), objects[0]);
    tools.bound = objects.iter().map(|o| fs::metadata(o).unwrap().len()).sum();
    let new = tools.object(&text(3)).unwrap();
    assert_eq!([&objects[0], &objects[1], &objects[2], &new].map(|o| o.exists()), [true, false, true, true]);
    // What was used just now stays, whatever the bound.
    tools.bound = 0;
    let last = tools.object(&text(4)).unwrap();
    assert_eq!([&objects[0], &objects[2], &new, &last].map(|o| o.exists()), [true, false, true, true]);
}

/// Protects: the bound is the environment's, and what is no number is refused.
#[test]
fn the_environment_bounds_the_cache() {
    let dir = dir();
    let d = dir.path();
    run(d, "twice");
    let old = inside(d, "so").remove(0);
    age(&old, 1);
    good(&command(d, "thrice", &[("DAEDAL_CACHE_SIZE", "0")]).output().unwrap(), "4.5\n");
    assert!(!old.exists() && inside(d, "so").len() == 1);
    for wrong in ["much", "-1", "99999999999999999999"] {
        let o = command(d, "thrice", &[("DAEDAL_CACHE_SIZE", wrong)]).output().unwrap();
        let message = String::from_utf8_lossy(&o.stderr);
        assert!(o.status.code() == Some(1) && message.contains("expected a number of megabytes"), "{message}");
    }
}

/// Protects: what a killed compilation leaves is removed by the next one, what a running one needs is not.
#[test]
fn leftovers_of_killed_compilers_go() {
    let dir = dir();
    let d = dir.path();
    let killing = script(d, "killing", "echo part > \"$TMPDIR/part.s\"; kill -9 $PPID");
    let o = command(d, "twice", &[("CXX", &killing)]).output().unwrap();
    assert_eq!(o.status.code(), None, "the process was to be killed");
    let left = leftovers(d);
    assert_eq!(left.len(), 1);
    assert!(left[0].join("part.s").exists());
    // This one waits until it may go on.
    let waiting = script(d, "waiting", "touch begun; until [ -e go ]; do sleep 0.05; done; exec g++ \"$@\"");
    let mut slow = command(d, "twice", &[("CXX", &waiting)]);
    let slow = slow.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until(|| d.join("begun").exists());
    assert!(!left[0].exists(), "the next compilation left it");
    let running = leftovers(d);
    assert_eq!(running.len(), 1);
    run(d, "thrice");
    assert!(running[0].exists(), "a running compilation lost its folder");
    fs::write(d.join("go"), "").unwrap();
    good(&slow.wait_with_output().unwrap(), "3.0\n");
    assert!(leftovers(d).is_empty());
}

fn until(done: impl Fn() -> bool) {
    for _ in 0..1200 {
        if done() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("a minute was not enough");
}

/// Protects: compilers that are none are the user's error, and said for what they are.
#[test]
fn broken_compilers_are_explained() {
    let dir = dir();
    let d = dir.path();
    let silent = refused(d, "/bin/false");
    assert!(silent.contains("`/bin/false` fails without a message, with exit code 1"), "{silent}");
    let idle = refused(d, "/bin/true");
    assert!(idle.contains("`/bin/true` succeeds, but writes nothing"), "{idle}");
    let loud = refused(d, &script(d, "loud", "echo no license found >&2; exit 3"));
    assert!(loud.contains("does not compile") && loud.contains("no license found"), "{loud}");
    // What is small still compiles where there is little room.
    let room = "for text; do :; done; grep -q ks_trivial \"$text\" && exec g++ \"$@\";";
    let full = format!("{room} echo final link failed: No space left on device >&2; exit 1");
    let full = command(d, "twice", &[("CXX", &script(d, "full", &full))]).output().unwrap();
    let message = String::from_utf8_lossy(&full.stderr);
    let told = message.contains("cannot write in") && message.contains("No space left on device");
    assert!(full.status.code() == Some(1) && told && message.contains("DAEDAL_CACHE"), "{message}");
    let killed = command(d, "twice", &[("CXX", &script(d, "killed", "kill -9 $$"))]).output().unwrap();
    let message = String::from_utf8_lossy(&killed.stderr);
    assert!(killed.status.code() == Some(1) && message.contains("was ended by signal 9"), "{message}");
    let wrong = script(d, "wrong", "while [ \"$1\" != -o ]; do shift; done; echo no object > \"$2\"");
    let wrong = command(d, "twice", &[("CXX", &wrong)]).output().unwrap();
    let message = String::from_utf8_lossy(&wrong.stderr);
    assert!(wrong.status.code() == Some(1) && message.contains("cannot be loaded"), "{message}");
    assert!(leftovers(d).is_empty());
    run(d, "twice");
}

/// Protects: processes that begin at once in an empty cache all get their value.
#[test]
fn processes_share_the_cache() {
    let dir = dir();
    let d = dir.path();
    let all: Vec<(Child, &str)> = (0..6)
        .map(|k| {
            let (def, want) = if k % 2 == 0 { ("twice", "3.0\n") } else { ("thrice", "4.5\n") };
            let mut c = command(d, def, &[("DAEDAL_CACHE_SIZE", "0")]);
            (c.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap(), want)
        })
        .collect();
    for (child, want) in all {
        good(&child.wait_with_output().unwrap(), want);
    }
    assert_eq!(inside(d, "so").len(), 2);
    assert!(leftovers(d).is_empty());
}
