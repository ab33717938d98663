//! Words become commands, and what they print.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the command line of a bench says: names that choose among what it measures, all where there are none, and the page
/// whose section the table goes into.
pub struct Chosen {
    pub names: Vec<String>,
    pub page: Option<PathBuf>,
}

impl Chosen {
    pub fn read() -> Chosen {
        let (mut page, mut names, mut words) = (None, vec![], std::env::args().skip(1));
        while let Some(word) = words.next() {
            match word.as_str() {
                // Cargo adds it.
                "--bench" => {}
                "--write" => page = Some(PathBuf::from(words.next().expect("--write needs a file"))),
                _ => names.push(word),
            }
        }
        Chosen { names, page }
    }

    /// Stops where a name is none of what there is.
    pub fn are_known<'a>(&self, what: &str, all: impl Iterator<Item = &'a str>) {
        let all: Vec<&str> = all.collect();
        for name in &self.names {
            assert!(all.contains(&name.as_str()), "no {what} is called {name}; there are {}", all.join(", "));
        }
    }

    pub fn has(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|n| n == name)
    }
}

/// What `daedal` prints; its messages go where those of the bench go.
pub fn daedal(words: &[&str]) -> String {
    let out = Command::new(env!("CARGO_BIN_EXE_daedal")).args(words).stderr(Stdio::inherit()).output().unwrap();
    assert!(out.status.success(), "daedal {}", words.join(" "));
    String::from_utf8(out.stdout).unwrap()
}

/// A script of `benches/`, run by `python3` or what PYTHON names; its messages go where those of the bench go.
pub fn python(script: &str) -> Command {
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".into());
    let mut command = Command::new(python);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("benches").join(script)).stderr(Stdio::inherit());
    command
}

/// The version that a script prints of the library that it needs; nothing where that is not there.
#[allow(dead_code, reason = "not every bench says it")]
pub fn version(script: &str) -> Option<String> {
    let out = python(script).output().ok()?;
    assert!(out.status.success(), "benches/{script} fails");
    let said = String::from_utf8(out.stdout).unwrap().trim().to_string();
    (!said.is_empty()).then_some(said)
}
