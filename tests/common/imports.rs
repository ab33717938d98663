//! The texts of source files become a graph: which file names an item of which other one.
//!
//! An item is followed through `use` to the file that defines it. A `mod.rs` that only declares and re-exports defines
//! nothing, so it is no file of the graph; one with code of its own is. Methods have no paths: a file that calls one
//! without naming its type is not seen to do so. It must not know what is wrong with a graph.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The path of a module or an item, name by name.
type Path = Vec<String>;

/// Which file names which others, by their paths below `src`.
pub type Graph = BTreeMap<String, BTreeSet<String>>;

/// What a file says of others.
#[derive(Default)]
struct File {
    /// Its path below `src`.
    path: String,
    /// The files that it declares.
    children: BTreeSet<String>,
    /// Names and what they stand for, by `use`.
    bound: BTreeMap<String, Path>,
    /// What is written out with `::`, and what `use` names.
    named: Vec<Path>,
    /// Its functions: one may have the name of a file beside it.
    functions: BTreeSet<String>,
    /// It has more than declarations and `use`.
    defines: bool,
}

/// The graph of files, each a path below `src` and its text.
///
/// # Panics
/// Where `*` stands for all that a module passes on: the text does not say what that is.
pub fn graph(sources: &[(String, String)]) -> Graph {
    let files: BTreeMap<Path, File> = sources.iter().map(|(path, text)| (module(path), read(path, text))).collect();
    let mut graph = Graph::new();
    for (at, file) in files.iter().filter(|(_, f)| f.defines) {
        let to = file.named.iter().filter_map(|path| home(&files, path, at));
        graph.insert(file.path.clone(), to.filter(|f| f.path != file.path).map(|f| f.path.clone()).collect());
    }
    graph
}

/// The shortest circle through each file that is in one; each once, from the first of its files on.
pub fn circles(graph: &Graph) -> BTreeSet<Vec<String>> {
    graph.keys().filter_map(|from| circle(graph, from)).collect()
}

fn circle(graph: &Graph, from: &str) -> Option<Vec<String>> {
    let mut before = BTreeMap::<&str, &str>::new();
    let mut todo = VecDeque::from([from]);
    while let Some(at) = todo.pop_front() {
        for to in graph.get(at).into_iter().flatten() {
            if to == from {
                let back = std::iter::successors(Some(at), |f| before.get(f).copied());
                let mut out: Vec<String> = back.map(String::from).collect();
                out.reverse();
                let first = (0..out.len()).min_by_key(|k| &out[*k])?;
                out.rotate_left(first);
                return Some(out);
            }
            if !before.contains_key(to.as_str()) {
                before.insert(to, at);
                todo.push_back(to);
            }
        }
    }
    None
}

/// `a/b.rs` and `a/b/mod.rs` are the module `a::b`.
fn module(path: &str) -> Path {
    let path = path.trim_end_matches(".rs");
    let path = path.strip_suffix("/mod").unwrap_or(path);
    if path == "lib" { vec![] } else { path.split('/').map(String::from).collect() }
}

fn read(path: &str, text: &str) -> File {
    let mut file = File { path: path.to_string(), ..File::default() };
    let (mut mentioned, mut passed_on) = (BTreeSet::new(), vec![]);
    for statement in statements(text) {
        let words = words(visible(&statement));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["mod", name, ";"] => drop(file.children.insert((*name).to_string())),
            ["use", tree @ .., ";"] => {
                let used = used(&[], tree);
                file.bound.extend(used.iter().cloned());
                match statement.starts_with("use ") {
                    true => file.named.extend(used.into_iter().map(|(_, path)| path)),
                    false => passed_on.extend(used),
                }
            }
            _ => {
                file.defines = true;
                file.named.extend(paths(&words));
                file.functions.extend(words.windows(2).filter(|w| w[0] == "fn").map(|w| w[1].to_string()));
                mentioned.extend(words.into_iter().map(String::from));
            }
        }
    }
    // What is only passed on is not used.
    file.named.extend(passed_on.into_iter().filter(|(name, _)| mentioned.contains(name)).map(|(_, path)| path));
    file
}

/// Each `use` of a text in one piece, and all other lines; without comments, attributes and tests. As rustfmt has it.
fn statements(text: &str) -> Vec<String> {
    let mut out: Vec<String> = vec![];
    let mut open = false;
    // The margin of the `mod … {` that a line stands in. There `super` is this file.
    let mut inner: Option<usize> = None;
    let text = text.split("\nmod tests {").next().unwrap_or_default();
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or_default();
        let (margin, code) = (line.len() - line.trim_start().len(), line.trim());
        if code.is_empty() || code.starts_with("#[") || code.starts_with("#![") {
            continue;
        }
        match inner {
            Some(at) if at == margin && code == "}" => inner = None,
            Some(_) if code.starts_with("use super::") => continue,
            None if visible(code).starts_with("mod ") && code.ends_with('{') => inner = Some(margin),
            _ => {}
        }
        let code = if inner.is_some() { code.replace("super::", "self::") } else { code.to_string() };
        match out.last_mut().filter(|_| open) {
            Some(last) => *last += &code,
            None => out.push(code),
        }
        open = out.last().is_some_and(|s| visible(s).starts_with("use ") && !s.ends_with(';'));
    }
    out
}

/// A line behind `pub` and `pub(…)`.
fn visible(code: &str) -> &str {
    let Some(rest) = code.strip_prefix("pub") else { return code };
    let behind = rest.strip_prefix('(').and_then(|r| Some(r.split_once(')')?.1)).unwrap_or(rest);
    if behind.starts_with(' ') { behind.trim_start() } else { code }
}

/// Names, `::`, and all other signs one by one.
fn words(code: &str) -> Vec<String> {
    let mut out = vec![];
    let mut rest = code;
    while let Some(c) = rest.chars().next() {
        let name = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let long = if rest.starts_with("::") { 2 } else { name.max(c.len_utf8()) };
        if !c.is_whitespace() {
            out.push(rest[..long].to_string());
        }
        rest = &rest[long..];
    }
    out
}

/// Two names or more that are joined by `::`.
fn paths(words: &[&str]) -> Vec<Path> {
    let is_name = |w: &&str| w.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let mut out: Vec<Path> = vec![];
    let mut joined = false;
    for (k, word) in words.iter().enumerate() {
        if is_name(word) {
            match out.last_mut().filter(|_| joined) {
                Some(path) => path.push((*word).to_string()),
                None => out.push(vec![(*word).to_string()]),
            }
        }
        joined = *word == "::" && k > 0 && is_name(&words[k - 1]);
    }
    out.retain(|path| path.len() > 1);
    out
}

/// What one tree of `use` binds, below what stands before its brace: names and paths.
fn used(before: &[&str], tree: &[&str]) -> Vec<(String, Path)> {
    if let Some(at) = tree.iter().position(|w| *w == "{") {
        let before: Vec<&str> = before.iter().chain(&tree[..at]).copied().filter(|w| *w != "::").collect();
        let mut depth = 0;
        let parts = tree[at + 1..tree.len() - 1].split(|w| {
            depth += i32::from(*w == "{") - i32::from(*w == "}");
            depth == 0 && *w == ","
        });
        return parts.filter(|p| !p.is_empty()).flat_map(|part| used(&before, part)).collect();
    }
    let (tree, alias) = match tree {
        [tree @ .., "as", alias] => (tree, Some(*alias)),
        _ => (tree, None),
    };
    let mut path: Path = before.iter().chain(tree).filter(|w| **w != "::").map(ToString::to_string).collect();
    if path.len() > 1 && path.last().is_some_and(|p| p == "self") {
        path.pop();
    }
    let name = alias.map_or_else(|| path.last().cloned().unwrap_or_default(), String::from);
    vec![(name, path)]
}

/// The file that defines what a path names in a module, where that is a file of the graph.
fn home<'a>(files: &'a BTreeMap<Path, File>, path: &Path, from: &Path) -> Option<&'a File> {
    let mut at = from.clone();
    let mut rest: VecDeque<String> = path.clone().into();
    // A name that stands for itself would be followed for ever.
    for _ in 0..64 {
        let file = files.get(&at)?;
        let here = file.defines.then_some(file);
        let Some(first) = rest.pop_front() else { return here };
        match first.as_str() {
            "crate" => at.clear(),
            "self" => {}
            "super" => drop(at.pop()),
            "*" => {
                assert!(file.defines, "{}: `*` does not say what `{}` passes on", files[from].path, file.path);
                return here;
            }
            name if file.functions.contains(name) && rest.is_empty() => return here,
            name if file.children.contains(name) => at.push(first),
            name => match file.bound.get(name) {
                None => return here,
                // The name of another crate.
                Some(path) if path.first() == Some(&first) => return None,
                Some(path) => path.iter().rev().for_each(|p| rest.push_front(p.clone())),
            },
        }
    }
    None
}
