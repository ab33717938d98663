//! What a reader may rely on without looking: layers in order, short files, no orphans, no stubs.
#![allow(clippy::unwrap_used, reason = "a test that meets what it does not expect should stop there")]

mod common;

use common::{files, root};
use std::collections::BTreeSet;
use std::path::Path;

/// Files that wait for the layers they call. A file leaves this list when its `mod` line is written.
const WAITING: &[&str] = &[];

/// The longest file, in lines.
const LONGEST: usize = 600;

fn sources() -> Vec<(String, String)> {
    let all = files(&root("src"), "rs");
    assert!(all.len() > 20, "the sources were not found");
    all.iter().map(|p| (local(p), std::fs::read_to_string(p).unwrap())).collect()
}

fn local(path: &Path) -> String {
    path.strip_prefix(root("")).unwrap_or(path).display().to_string()
}

/// The names of `mod` lines in order, tests left out.
fn modules(text: &str) -> Vec<String> {
    let lines = text.lines().map(|l| l.trim_start_matches("pub ").trim_start_matches("pub(crate) "));
    lines.filter_map(|l| Some(l.strip_prefix("mod ")?.strip_suffix(';')?.to_string())).collect()
}

/// The layer that a file belongs to.
fn layer(path: &str) -> Option<&str> {
    let rest = path.strip_prefix("src/")?;
    let name = rest.split(['/', '.']).next()?;
    (name != "lib" && name != "main").then_some(name)
}

/// Protects: no layer names one that is declared after it, so each can be read knowing only those above.
#[test]
fn a_layer_names_only_layers_above_it() {
    let order = modules(&std::fs::read_to_string(root("src/lib.rs")).unwrap());
    assert!(order.len() >= 6, "the layers were not found: {order:?}");
    let mut wrong = vec![];
    for (path, text) in sources() {
        let Some(layer) = layer(&path).filter(|_| !WAITING.contains(&path.as_str())) else { continue };
        let own = order.iter().position(|l| l == layer);
        let own = own.unwrap_or_else(|| panic!("{path} is in no layer of lib.rs"));
        for (k, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            for used in code.split("crate::").skip(1) {
                let name: String = used.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                match order.iter().position(|l| *l == name) {
                    Some(at) if at <= own => {}
                    Some(_) => wrong.push(format!("{path}:{}: `{layer}` uses the later layer `{name}`", k + 1)),
                    None => wrong.push(format!("{path}:{}: `crate::{name}` is no layer", k + 1)),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Protects: every file says first what becomes what, and stays short enough to read at once.
#[test]
fn files_open_with_a_doc_and_are_short() {
    let mut wrong = vec![];
    for (path, text) in sources() {
        if !text.starts_with("//! ") {
            wrong.push(format!("{path} does not start with `//!`"));
        }
        if text.lines().count() > LONGEST {
            wrong.push(format!("{path} has {} lines, more than {LONGEST}", text.lines().count()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Protects: the text search of the layer test sees every use, and nothing pretends to be finished.
#[test]
fn no_grouped_layers_and_no_stubs() {
    let mut wrong = vec![];
    for (path, text) in sources() {
        for (k, line) in text.lines().enumerate() {
            for bad in ["use crate::{", "todo!", "unimplemented!", "FIXME", "TODO", "XXX"] {
                if line.contains(bad) {
                    wrong.push(format!("{path}:{}: `{bad}`", k + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The files that a file declares.
fn children(path: &str, text: &str) -> Vec<String> {
    let (dir, file) = path.rsplit_once('/').unwrap_or_default();
    let stem = file.trim_end_matches(".rs");
    let base = if ["lib", "main", "mod"].contains(&stem) { dir.to_string() } else { format!("{dir}/{stem}") };
    let both = |m: String| [format!("{base}/{m}.rs"), format!("{base}/{m}/mod.rs")];
    modules(text).into_iter().flat_map(both).filter(|p| root(p).exists()).collect()
}

/// Protects: no file is left out of the build, where it would rot.
#[test]
fn every_file_is_reached() {
    let all: BTreeSet<String> = sources().into_iter().map(|(p, _)| p).collect();
    let mut reached = BTreeSet::new();
    let mut todo = vec!["src/lib.rs".to_string(), "src/main.rs".to_string()];
    while let Some(path) = todo.pop() {
        if reached.insert(path.clone()) {
            todo.extend(children(&path, &std::fs::read_to_string(root(&path)).unwrap()));
        }
    }
    let waiting: BTreeSet<String> = WAITING.iter().map(ToString::to_string).collect();
    let orphans: BTreeSet<String> = all.difference(&reached).cloned().collect();
    assert_eq!(orphans, waiting, "left: files without a `mod` line; right: those that are known to wait");
}
