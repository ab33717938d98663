//! `daedal` as users start it, with a cache of its own in their folder.

use std::path::Path;
use std::process::{Command, Output};

/// What a command in a folder says and prints.
pub fn daedal(dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_daedal"));
    command.current_dir(dir).env("DAEDAL_CACHE", dir.join("cache")).args(args).output().unwrap()
}

/// What a command that succeeds prints.
pub fn good(dir: &Path, args: &[&str]) -> String {
    let o = daedal(dir, args);
    assert!(o.status.success(), "{args:?}: {}", String::from_utf8_lossy(&o.stderr));
    String::from_utf8_lossy(&o.stdout).into_owned()
}

/// What a command that is the user's mistake says.
pub fn refused(dir: &Path, args: &[&str]) -> String {
    let o = daedal(dir, args);
    assert_eq!(o.status.code(), Some(1), "{args:?}: {}", String::from_utf8_lossy(&o.stdout));
    String::from_utf8_lossy(&o.stderr).into_owned()
}
