//! What a reader may rely on without looking: layers in order, short files, no orphans, no stubs.

use crate::common::imports::{circles, graph};
use crate::common::{files, root};
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

/// A circle file by file, back to where it begins.
fn shown(circle: &[String]) -> String {
    circle.iter().chain(circle.first()).map(String::as_str).collect::<Vec<_>>().join(" -> ")
}

/// Protects: no two files need each other, within a layer either, so each can be read knowing only those it imports.
#[test]
fn no_file_imports_in_a_circle() {
    let all = sources().into_iter().filter(|(path, _)| path != "src/main.rs");
    let all: Vec<_> = all.map(|(path, text)| (path["src/".len()..].to_string(), text)).collect();
    let graph = graph(&all);
    let imports: usize = graph.values().map(BTreeSet::len).sum();
    assert!(imports > 4 * graph.len(), "the imports were not found: {imports} of {} files", graph.len());
    let found: Vec<String> = circles(&graph).iter().map(|circle| shown(circle)).collect();
    assert!(found.is_empty(), "files that import in a circle:\n{}", found.join("\n"));
}

/// Each line `FILE: TEXT` is a line of a file; the circles of these files.
fn circles_of(tree: &str) -> Vec<String> {
    let mut files: Vec<(String, String)> = vec![];
    for line in tree.lines() {
        let (path, text) = line.split_once(": ").unwrap();
        match files.iter_mut().find(|(p, _)| p == path) {
            Some((_, whole)) => *whole += &format!("{text}\n"),
            None => files.push((path.to_string(), format!("{text}\n"))),
        }
    }
    circles(&graph(&files)).iter().map(|circle| shown(circle)).collect()
}

/// Files whose `mod.rs` only passes on what they define; `a/one.rs` imports from `b`.
const TREE: &str = "\
lib.rs: pub mod a;
lib.rs: pub mod b;
a/mod.rs: mod one;
a/mod.rs: mod two;
a/mod.rs: pub use one::One;
a/mod.rs: pub use two::{Two as Second, two};
a/one.rs: use crate::b;
a/one.rs: pub struct One(b::three::Three);
a/two.rs: pub struct Two;
a/two.rs: pub fn two() {}
b/mod.rs: pub mod three;
b/three.rs: pub struct Three;
";

/// Protects: circles are found through whatever passes an item on, and nothing else is one.
#[test]
fn planted_circles_are_found() {
    let planted = |more: &str| circles_of(&format!("{TREE}{more}"));
    assert_eq!(planted(""), Vec::<String>::new());
    let circle = vec!["a/one.rs -> b/three.rs -> a/one.rs".to_string()];
    for line in [
        "use crate::a::One;",
        "use crate::a::{\nb/three.rs: two,\nb/three.rs: One as First,\nb/three.rs: };",
        "pub use crate::{a::{self}};\nb/three.rs: fn f(_: a::One) {}",
        "use super::super::a;\nb/three.rs: fn f(_: Vec<a::One>) {}",
        "fn f() -> usize { crate::a::one::One::count() }",
        "fn f() {\nb/three.rs:     use crate::a::One;\nb/three.rs: }",
        "use crate::a::one::*;",
        "mod inner {\nb/three.rs:     use super::*;\nb/three.rs: }\nb/three.rs: use crate::a::One;",
    ] {
        assert_eq!(planted(&format!("b/three.rs: {line}\n")), circle, "{line}");
    }
    for line in [
        "use crate::a::Second;",
        "use crate::a::two;",
        "// crate::a::One",
        "pub use crate::a::One;",
        "use crate::a;",
        "use std::one::One;",
        "#[cfg(test)]\nb/three.rs: mod tests {\nb/three.rs:     use crate::a::One;\nb/three.rs: }",
    ] {
        assert_eq!(planted(&format!("b/three.rs: {line}\n")), Vec::<String>::new(), "{line}");
    }
}

/// Protects: circles of more than two files are told whole, and a `mod.rs` with code of its own is a file.
#[test]
fn circles_are_told_file_by_file() {
    let through = "a/two.rs: use crate::a::One;\nb/three.rs: fn f() { crate::a::two() }\n";
    assert_eq!(circles_of(&format!("{TREE}{through}")), ["a/one.rs -> b/three.rs -> a/two.rs -> a/one.rs"]);
    let above = "a/mod.rs: pub const MOST: usize = 1;\na/two.rs: use super::MOST;\n";
    assert_eq!(circles_of(&format!("{TREE}{above}")), Vec::<String>::new());
    let both = format!("{TREE}{above}a/mod.rs: pub fn most() {{ two() }}\n");
    assert_eq!(circles_of(&both), ["a/mod.rs -> a/two.rs -> a/mod.rs"]);
}
