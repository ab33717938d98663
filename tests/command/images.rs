//! Pictures come in and go out, by the command line.

use std::path::{Path, PathBuf};
use std::process::Command;

fn imaging(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/imaging").join(name)
}

/// What a command says, and whether it succeeds.
fn daedal(dir: &Path, args: &[&str]) -> (bool, String) {
    let o = Command::new(env!("CARGO_BIN_EXE_daedal")).current_dir(dir).args(args).output().unwrap();
    (o.status.success(), [o.stdout, o.stderr].map(|b| String::from_utf8_lossy(&b).into_owned()).concat())
}

/// Protects: the picture of the repository is the one that its program draws, interpreted and compiled.
#[test]
fn the_scene_is_drawn_again() {
    let (dir, program) = (tempfile::tempdir().unwrap(), imaging("scene.ks"));
    let file = program.to_str().unwrap();
    for way in [&["eval"][..], &["run"], &["run", "--schedule", "default"]] {
        let done = daedal(dir.path(), &[way, &[file, "scene", "96", "128", "-o", "scene.png"]].concat());
        assert_eq!(done, (true, String::new()), "{way:?}");
        let [have, want] = [dir.path().join("scene.png"), imaging("scene.png")].map(|p| std::fs::read(p).unwrap());
        assert!(have == want, "{way:?}: another picture");
    }
}

/// Protects: pictures that come in are fractions or samples, and the same picture goes out whatever runs the program.
#[test]
fn pictures_come_in_and_go_out() {
    let dir = tempfile::tempdir().unwrap();
    let photo = format!("@{}", imaging("scene.png").display());
    for (name, def) in [("unsharp.ks", "unsharp"), ("histogram.ks", "histogram")] {
        let program = imaging(name);
        let file = program.to_str().unwrap();
        let mut made = vec![];
        for (k, way) in [&["eval"][..], &["run"], &["run", "--schedule", "default"]].into_iter().enumerate() {
            let out = format!("{def}{k}.png");
            let done = daedal(dir.path(), &[way, &[file, def, &photo, "-o", &out]].concat());
            assert_eq!(done, (true, String::new()), "{name} {way:?}");
            made.push(std::fs::read(dir.path().join(out)).unwrap());
        }
        assert!(made[0] == made[1] && made[1] == made[2], "{name}: three pictures");
        assert!(made[0] != std::fs::read(imaging("scene.png")).unwrap(), "{name}: the picture stays as it was");
    }
}

/// Protects: pictures that are damaged or have no place say so, before anything is computed or written.
#[test]
fn pictures_without_a_place_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let whole = std::fs::read(imaging("scene.png")).unwrap();
    std::fs::write(dir.path().join("half.png"), &whole[..whole.len() / 2]).unwrap();
    std::fs::write(dir.path().join("whole.png"), &whole).unwrap();
    std::fs::write(
        dir.path().join("p.ks"),
        "(def gray (Tensor 2 UInt8) (x : (Tensor 2 UInt8)) x)\n(def one Float (x : Float) x)",
    )
    .unwrap();
    let sharp = imaging("unsharp.ks");
    for (args, text) in [
        (&["run", sharp.to_str().unwrap(), "unsharp", "@half.png"][..], "the image is cut short"),
        (
            &["run", "p.ks", "gray", "@whole.png"],
            "the image has 3 channels, and its parameter, of type (Tensor 2 UInt8), no axis",
        ),
        (&["run", "p.ks", "one", "@whole.png"], "a parameter of type Float cannot come from an image"),
        (&["run", "p.ks", "one", "1.5", "-o", "one.png"], "a result of type Float cannot be written as an image"),
        (&["run", "p.ks", "gray", "[[1,2]]", "-o", "none/x.png"], "its directory does not exist"),
    ] {
        let (done, said) = daedal(dir.path(), args);
        assert!(!done && said.contains(text) && said.matches("error").count() == 1, "{args:?}: {said}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3);
}
